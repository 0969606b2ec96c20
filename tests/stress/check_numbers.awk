# Reads the canonical text of a trace of `numbers`; -v want="n0 n1 …": the counts that each thread had reported, at least.
# Every thread's numbers must be 0, 1, 2 … without a gap or a repetition, and not end before the reported count.
function field(name,    m) { return match($0, name "=[0-9]+") ? substr($0, RSTART + length(name) + 1, RLENGTH - length(name) - 1) : -1 }
/seq=[0-9]+/ && /thread=[0-9]+/ {
  t = field("thread"); s = field("seq")
  if (s != next_of[t] + 0) { printf "thread %d: %d where %d was due\n", t, s, next_of[t]; bad++; if (bad > 5) exit 1 }
  next_of[t] = s + 1; n++
}
END {
  count = split(want, w, " ")
  for (i = 1; i <= count; i++)
    if (next_of[i - 1] + 0 < w[i] + 0) { printf "thread %d: ends at %d, %d were recorded\n", i - 1, next_of[i - 1], w[i]; bad++ }
  printf "%d events\n", n
  exit bad > 0
}
