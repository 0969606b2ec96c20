#!/usr/bin/env bash
# share/systemd/stave-record.service: systemd reads it without a complaint, and a user with nothing but its capabilities records the machine by its
# options, twice under one name.
. "$SRC/tests/harness/cli.sh"
unit=$SRC/share/systemd/stave-record.service
value() { sed -n "s/^$1=//p" "$unit"; }
if command -v systemd-analyze >/dev/null; then # the program is not installed where systemd looks for it
  sed -E "s|^(Exec[A-Za-z]*=-?)stave |\1$STAVE |" "$unit" >stave-record.service
  run_any verify 0 systemd-analyze verify --man=no ./stave-record.service
  check verify_silent test ! -s verify.err -a ! -s verify.out
else skip verify "no systemd-analyze here (package systemd)"; fi
check same_capabilities test "$(value AmbientCapabilities)" = "$(value CapabilityBoundingSet)" -a -n "$(value AmbientCapabilities)"
check not_root test "$(value DynamicUser)" = yes -a "$(value NoNewPrivileges)" = yes

[ "$(id -u)" = 0 ] || skip_all "needs root: to become a user with some capabilities"
"$STAVE" record -q --strict --no-summary -o can.pftrace -- true 2>/dev/null || skip_all "no kernel programs here"
caps=-all; for cap in $(value AmbientCapabilities); do cap=${cap#CAP_}; caps+=,+${cap,,}; done
options=$(sed -n 's/^Environment="STAVE_OPTIONS=\(.*\)"$/\1/p' "$unit" | sed 's/%%/%/g')
check has_options test -n "$options"
chmod 711 "$TMP"; mkdir -m 700 state run; chown 65534:65534 state run
serve() { # one start of the service, for as long as it takes to record something
  # shellcheck disable=SC2086 # words
  env XDG_RUNTIME_DIR="$TMP/run" STAVE_SESSION_DIR="$TMP/run" setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps="$caps" --ambient-caps="$caps" --bounding-set="$caps" --no-new-privs \
    "$STAVE" record --no-summary --no-explain $options -o "$TMP/state/machine.pftrace" --duration 1s
}
run_any first 0 serve
run_any second 0 serve
check by_kernel test "$("$STAVE" query -q state/machine.pftrace "select str_value from metadata where name = 'hooks'" | tail -n 1)" = btf
check others_states test "$("$STAVE" query -q state/machine.pftrace "select count(distinct upid) > 1 from thread_state join thread using (utid)" | tail -n 1)" = 1
check both_kept test "$(find state -name '*.pftrace' | wc -l)" = 2
run_any two 2 "$STAVE" stats -q state
run_any newest 0 "$STAVE" info -q state --since -1s
