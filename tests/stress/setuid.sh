#!/usr/bin/env bash
# A program that runs with more rights than its caller takes nothing from the environment: no STAVE_* variable of the caller makes it write.
set -uo pipefail
case $BUILD in *tsan | *asan) echo "a sanitizer does not work in setuid programs"; exit 77 ;; esac
[ "$(id -u)" = 0 ] || { echo "needs root, to make a setuid program"; exit 77; }
command -v setpriv >/dev/null || { echo "needs setpriv (package util-linux)"; exit 77; }
# Of its own: the caller must be able to enter it.
place=$(mktemp -d "${TMPDIR:-/tmp}/stave-setuid.XXXXXX") || exit 2
trap 'rm -rf "$place"' EXIT
chmod 755 "$place"
mkdir -m 755 "$place/owned" "$place/sessions"; mkdir -m 777 "$place/free"
say() { if [ "$1" = 0 ]; then echo "ok setuid: $2"; else echo "not ok setuid: $2: ${3:-}"; fi; }
# caller VARIABLE=VALUE…: runs the program as nobody
caller() { (cd "$place/free" && env -i PATH="$PATH" "$@" setpriv --reuid 65534 --regid 65534 --clear-groups "$place/program" 1 100 progress) >"$place/out" 2>"$place/err"; }
cp "$BUILD/tests/stress/numbers" "$place/program" && chown 0:0 "$place/program" && chmod 4755 "$place/program"
if ! setpriv --reuid 65534 --regid 65534 --clear-groups sh -c 'cd /' 2>/dev/null; then echo "cannot run as another user here"; exit 77; fi
if [ "$(findmnt -n -o OPTIONS -T "$place" | grep -c nosuid)" != 0 ]; then echo "$place is mounted nosuid"; exit 77; fi

try() { # try NAME VARIABLE=VALUE…
  local name=$1; shift
  rm -f "$place"/free/* "$place"/owned/*; echo old >"$place/owned/victim.pftrace"; touch "$place/start"; sleep 0.01
  caller "$@"; local code=$? new; new=$(find "$place/owned" "$place/sessions" "$place/free" -newer "$place/start" -type f ! -name progress)
  [ $code = 0 ] && [ -z "$new" ] && [ "$(cat "$place/owned/victim.pftrace")" = old ] && [ ! -s "$place/err" ]
  say $? "$name" "exit $code, made $new, said $(cat "$place/err")"
}
try "STAVE_OUT creates nothing" STAVE_OUT="$place/owned/planted.pftrace"
try "nor overwrites" STAVE_OUT="$place/owned/victim.pftrace"
try "nor in the caller's own folder" STAVE_OUT="$place/free/mine.pftrace"
try "STAVE_SESSION_DIR is not used" STAVE_OUT="$place/owned/planted.pftrace" STAVE_SESSION_DIR="$place/free"
try "STAVE_SESSION is not joined" STAVE_SESSION="$place/free"
# The same program without the bit, by the same way: the test would have noticed.
chmod 755 "$place/program"
rm -f "$place"/free/*
caller STAVE_OUT="$place/free/mine.pftrace" STAVE_SESSION_DIR="$place/free"; code=$?
[ $code = 0 ] && [ -s "$place/free/mine.pftrace" ]; say $? "without the bit it writes" "exit $code $(cat "$place/err")"
