#!/usr/bin/env bash
# --threads: the same answers whatever the number of threads, from whole, damaged and compressed files of more than a block, and from pipes.
. "$SRC/tests/harness/cli.sh"
export LC_ALL=C

# 60,000 slices on 5 threads with arguments: 4 MB, so that threads are started.
awk 'BEGIN { print "["; for (i = 0; i < 60000; i++)
  printf "{\"ph\":\"X\",\"name\":\"op%d\",\"cat\":\"c\",\"ts\":%d,\"dur\":%d,\"pid\":1,\"tid\":%d,\"args\":{\"n\":%d,\"s\":\"t%d\"}}%s\n",
    i % 50, i * 3, 2 + i % 9, i % 5, i, i % 7, i < 59999 ? "," : "]" }' >big.json
"$STAVE" convert -q big.json -o big.pftrace
"$STAVE" convert -q big.json -o packed.pftrace --compress gzip
gzip -c big.pftrace >big.pftrace.gz
head -c 2500000 big.pftrace >cut.pftrace
split -n 4 big.json piece. # members that several threads unpack: whole, and the third one damaged
for piece in piece.*; do gzip -1 -c "$piece"; done >members.json.gz
{ head -c 450000 members.json.gz; printf 'damage'; tail -c +450007 members.json.gz; } >torn.json.gz
{ head -c 700000 big.pftrace; printf 'these bytes are no packets'; tail -c +700001 big.pftrace; } >torn.pftrace

# answers FILE THREADS…: all that a command prints and says, in one file.
answers() {
  local file=$1; shift
  for verb in 'convert --to text -o -' 'stats --no-index --top 0 --group-by track,name' 'query --no-index'; do
    # shellcheck disable=SC2086
    case $verb in
      query*) "$STAVE" $verb "$file" 'select count(*), sum(dur), sum(depth) from slice; select * from stats' "$@" ;;
      *) "$STAVE" $verb "$file" "$@" ;;
    esac
    echo "exit $?"
  done 2>&1
}
for file in big.json big.pftrace packed.pftrace big.pftrace.gz cut.pftrace torn.pftrace members.json.gz torn.json.gz; do
  answers "$file" --threads 1 >want
  answers "$file" --threads 3 >got
  check "$file with 3 threads" cmp want got
done
check the_cut_file_is_reported grep -q 'truncated packet' <(answers cut.pftrace --threads 2)
check the_torn_member_is_reported grep -q 'gzip stream breaks off after [0-9]* stored bytes' <(answers torn.json.gz --threads 2)
check the_torn_file_is_reported grep -qE 'byte (69|70)[0-9]{4}: bytes outside packets' <(answers torn.pftrace --threads 2)

"$STAVE" convert -q big.pftrace --to text -o - >want
run_any from_a_pipe 0 sh -c 'cat big.pftrace | "$0" convert -q --threads 3 - --to text -o -' "$STAVE"
check a_pipe_is_the_same cmp want from_a_pipe.out

run_any strict 1 "$STAVE" stats --no-index --threads 2 --strict torn.pftrace
check strict_says_so grep -q 'refused because of --strict' strict.err
run_any limit 4 "$STAVE" stats --no-index --threads 2 --memory-limit 1M big.pftrace
check the_limit_says_so grep -q 'does not fit the memory limit' limit.err
run_any no_number 2 "$STAVE" stats --threads two big.pftrace
check no_number_says_so grep -q -- "--threads: 'two' is not a whole number" no_number.err

# Bands of I/O: 80,000 calls of 13 processes, four of them in one band, and requests of the disk on a row of their own.
awk 'BEGIN { print "["; for (i = 0; i < 80000; i++)
    printf "{\"ph\":\"X\",\"name\":\"%s\",\"cat\":\"syscall\",\"ts\":%d.%03d,\"dur\":%d.%03d,\"pid\":%d,\"tid\":%d,\"args\":{\"bytes\":%d,\"path\":\"%s%d\"}},\n",
      i % 5 == 4 ? "openat" : i % 3 ? "read" : "write", i * 3, i % 997, 2 + i % 90, i % 991, i % 13 + 1, i % 8, i % 8192, i % 7 ? "/data/f" : "socket:", i % 40
  for (i = 0; i < 500; i++)
    printf "{\"ph\":\"X\",\"name\":\"%s\",\"cat\":\"block\",\"ts\":%d.7,\"dur\":90.3,\"pid\":1,\"tid\":99,\"args\":{\"bytes\":4096,\"pid\":%d}}%s\n",
      i % 3 ? "read" : "write", i * 400, i % 13 + 1, i < 499 ? "," : "]" }' >calls.json
for by in process role all; do
  for n in 1 3; do "$STAVE" plot timeline -q calls.json --group $by --threads $n -o "$by.$n.svg" || echo "not ok plot $by $n"; done
  check "bands by $by" cmp "$by.1.svg" "$by.3.svg"
done
check bands_are_there sh -c 'for word in "block read" "write, sync" "read/write" "4 other processes"; do grep -q "$word" process.3.svg || exit 1; done'

# A limit of address space: an answer or the usual refusal, with threads as without. (A sanitizer needs terabytes of it.)
sizes=(60000 100000 140000 300000); case $BUILD in *san) sizes=() ;; esac
for kb in "${sizes[@]}"; do
  (ulimit -v "$kb"; exec "$STAVE" stats -q --no-index --threads 4 big.pftrace) >small.out 2>small.err
  code=$?
  check "with $kb KB it ends well ($code)" sh -c '[ "$0" = 0 ] || { [ "$0" = 4 ] && grep -q memory small.err; } || [ "$0" = 127 ]' "$code"
done

# report io: 300,000 calls on 5 threads during 30 steps, so many that threads are used.
if [ "${STAVE_LONG:-}" = 1 ]; then
  awk 'BEGIN { print "["; split("openat read read lseek write close", call, " ")
    for (i = 0; i < 300000; i++) {
      if (i % 10000 == 0) printf "{\"ph\":\"X\",\"name\":\"ProfilerStep#%d\",\"cat\":\"step\",\"ts\":%d,\"dur\":29000,\"pid\":1,\"tid\":9},\n", i / 10000, i * 3
      printf "{\"ph\":\"X\",\"name\":\"%s\",\"cat\":\"io\",\"ts\":%d,\"dur\":%d,\"pid\":%d,\"tid\":%d,\"args\":{\"path\":\"/data/%d/f%d\",\"bytes\":%d,\"offset\":%d}}%s\n",
        call[1 + i % 6], i * 3, 1 + i % 17, 1 + i % 2, i % 5, i % 7, i % 91, i % 4096, i * 8, i < 299999 ? "," : "]" } }' >calls.json
  "$STAVE" report io --no-index --json calls.json --threads 1 >want 2>&1
  "$STAVE" report io --no-index --json calls.json --threads 3 >got 2>&1
  check report_io_has_steps grep -q 'ProfilerStep' want
  check report_io_is_the_same cmp want got
else
  skip report_io_with_threads "only with STAVE_LONG=1: 300,000 calls"
fi
