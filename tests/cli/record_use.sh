#!/usr/bin/env bash
# How stave record is used: configurations and injected libraries. Nothing here needs root: without it the kernel's side is missing, which is fine.
# shellcheck disable=SC2016 # words for inner shells
. "$SRC/tests/harness/cli.sh"
export STAVE_SESSION_DIR=$TMP XDG_RUNTIME_DIR=$TMP
quiet=(-q --no-summary)

# ---- --config ----
cat >good.yml <<'Y'
# comments are fine
output: from_file.pftrace
interval: 50ms
no-io: yes
max-size: 1G
command: [sh, -c, "echo $0 said; exit 3", somebody]
Y
run_any config 3 "$STAVE" record "${quiet[@]}" --config good.yml
check config_command grep -qx "somebody said" config.out
check config_output "$STAVE" validate -q from_file.pftrace
run_any config_line_wins 0 "$STAVE" record "${quiet[@]}" --config good.yml -o from_line.pftrace -- true
check config_line_output test -s from_line.pftrace
run_any config_io 0 "$STAVE" record "${quiet[@]}" --config good.yml --io -o io.pftrace -- true

bad() { # NAME TEXT MESSAGE: exit 2 (or 3 for what is no YAML), the message ends so
  local name=bad_$1 code; printf '%b' "$2" >"$name.yml"
  "$STAVE" record "${quiet[@]}" --config "$name.yml" -- true >/dev/null 2>"$name.err"; code=$?
  check "$name" test "$code" -ge 2 -a "$code" -le 3
  check "${name}_says" grep -qF -- "$name.yml:$3" "$name.err"
}
bad key 'output: x.pftrace\ndurration: 3s\n' "2: unknown key 'durration'; did you mean 'duration'?"
bad config 'config: other.yml\n' "1: unknown key 'config'"
bad flag 'no-io: perhaps\n' "1: no-io: expected true or false"
bad size '\nmax-size: big\n' "2: max-size: 'big' is not a size such as 512M or 2G"
bad list 'calls: [files, sync]\n' "1: calls: expected one text, words separated by commas"
bad empty 'output:\n' "1: output: expected one value"
bad command 'command: echo hi\n' "1: command: expected a list of words"
bad command_map 'command: [a, {b: c}]\n' "1: command: expected a word"
bad root '- a\n' "1: expected keys such as 'duration: 30s'"
bad nothing '' "1: expected keys such as 'duration: 30s'"
bad yaml 'output: "x\n' "1: a quote is not closed on its line"
run_any config_missing 4 "$STAVE" record --config nowhere.yml -- true
check config_missing_says grep -q "nowhere.yml: .*No such file" config_missing.err
printf 'duration: soon\n' >time.yml
run_any config_time 2 "$STAVE" record -q --config time.yml -o x.pftrace -- true
check config_time_says grep -q "'soon' is not a time" config_time.err

# ---- --inject ----
mkdir inject; for l in opencl nvtx itt cuda; do : >inject/libstave-$l.so; done
show='printf "%s\n" "$OPENCL_LAYERS" "$NVTX_INJECTION64_PATH" "$INTEL_LIBITTNOTIFY64" "$CUDA_INJECTION64_PATH" "$STAVE_NEXT_NVTX_INJECTION64_PATH"'
export STAVE_INJECT_DIR=$TMP/inject
run_any inject 0 "$STAVE" record "${quiet[@]}" -o i.pftrace --inject opencl,nvtx,itt,cuda -- sh -c "$show"
check inject_sets diff inject.out <(printf "$TMP/inject/libstave-%s.so\n" opencl nvtx itt cuda; echo)
run_any inject_chain 0 env OPENCL_LAYERS=/a:/b NVTX_INJECTION64_PATH=/n "$STAVE" record "${quiet[@]}" -o i.pftrace --inject nvtx,opencl -- sh -c "$show"
check inject_keeps diff inject_chain.out <(printf '%s\n' "/a:/b:$TMP/inject/libstave-opencl.so" "$TMP/inject/libstave-nvtx.so" "" "" /n)
run_any inject_again 0 env OPENCL_LAYERS="$TMP/inject/libstave-opencl.so" "$STAVE" record "${quiet[@]}" -o i.pftrace --inject opencl -- sh -c "$show"
check inject_once test "$(head -n 1 inject_again.out)" = "$TMP/inject/libstave-opencl.so"
run_any inject_unknown 2 "$STAVE" record -q -o i.pftrace --inject opncl -- true
check inject_unknown_says grep -q "no 'opncl'; did you mean 'opencl'?" inject_unknown.err
run_any inject_joins 2 "$STAVE" record -q -o i.pftrace --inject nvtx --all
rm inject/libstave-itt.so; cp "$STAVE" ./stave_alone
run_any inject_missing 4 ./stave_alone record -q -o i.pftrace --inject itt -- true
check inject_missing_says grep -q "libstave-itt.so is neither beside stave nor in its lib/stave: build it with 'make'" inject_missing.err
