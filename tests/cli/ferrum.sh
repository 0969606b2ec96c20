#!/usr/bin/env bash
# --dialect ferrum: the file of ferrum's trace writer, for readers that accept nothing else.
. "$SRC/tests/harness/cli.sh"
command -v python3 >/dev/null || skip_all "no python3"
strict() { python3 "$SRC/tests/harness/ferrum_strict.py" "$@"; }

# As ferrum writes it; events of one layer overlap. The same bytes come back, directly and through other formats.
printf '%s' '[{"name":"attn","cat":"attention","ph":"X","ts":0,"dur":19054,"pid":0,"tid":0},{"name":"moe","cat":"moe","ph":"X","ts":100,"dur":30000,"pid":0,"tid":0,"args":{"tokens":4,"dims":[1,2,{"a":null}]}},{"name":"q \"k\" v","cat":"","ph":"X","ts":200,"dur":0,"pid":0,"tid":7}]' >ferrum.json
check strict_reader_reads_ferrum strict ferrum.json
run_any directly 0 "$STAVE" convert ferrum.json --dialect ferrum -o directly.json
check directly_the_same cmp ferrum.json directly.json
check nothing_is_said test ! -s directly.err
for suffix in pftrace txt json; do
  run_any "to_$suffix" 0 "$STAVE" convert -q ferrum.json -o "through.$suffix"
  run_any "from_$suffix" 0 "$STAVE" convert "through.$suffix" --dialect ferrum -o "back_$suffix.json"
  check "the_same_through_$suffix" cmp ferrum.json "back_$suffix.json"
done

# Other traces: layers by name, times before 0, parts of a microsecond, numbers that are too large, what it cannot hold.
cat >other.txt <<'END'
# stave text 1
clock boottime
track #1 process uuid=0x1 pid=7 name="engine"
track #2 custom uuid=0x2 parent=#1 name="Layer 12"
track #3 thread uuid=0x3 parent=#1 pid=7 tid=5000000000
track #4 custom uuid=0x4 parent=#1 name="layers"
track #5 counter uuid=0x5 parent=#1 name="power" unit="W"
-0.000001000 begin #2 "first" cat="norm"
-0.000000500 begin #2 "inside"
0.000000400 end #2
0.000000400 end #2
0.000000400 begin #2 "next" {@flow:0x5}
0.000001900 end #2
0.000002000 begin #3 "wide" {a="ü" b={c=1.5}}
0.000003000 instant #3 "now"
0.000003000 counter #5 {7}
0.000004000 end #3
0.000005000 begin #4 "elsewhere"
0.000006000 end #4
0.000007000 begin #4 "open"
END
run_any other 0 "$STAVE" convert other.txt --dialect ferrum -o other.json
strict other.json >other.list
cat >expected.list <<'END'
first|norm|1|7|12|{}
inside||1|7|12|{}
next||1|7|12|{}
wide||2|7|TID|{"a": "\u00fc", "b": {"c": 1.5}}
elsewhere||1|7|TID|{}
open||0|7|TID|{}
END
tr '\t' '|' <other.list | sed -E 's/\|2147483[0-9]{3}\|/|TID|/' >masked.list
check every_event diff expected.list masked.list
check rows_of_their_own test "$(cut -f5 other.list | sort -u | wc -l)" = 3
check begins_at_0 grep -q '^\[{"name":"first","cat":"norm","ph":"X","ts":0,' other.json
for what in 'instant' 'counter value' 'flow' 'slice that never ended'; do check "says: $what" grep -q "$what" other.err; done
check neighbours_do_not_overlap python3 - <<'END'
import json
t = {e["name"]: e for e in json.load(open("other.json"))}
end = lambda e: e["ts"] + e["dur"]
assert end(t["first"]) <= t["next"]["ts"] and t["first"]["ts"] <= t["inside"]["ts"] and end(t["inside"]) <= end(t["first"]), t
END
echo '[]' >none.json
run_any none 5 "$STAVE" convert -q none.json --dialect ferrum -o none_ferrum.json
check no_events test "$(cat none_ferrum.json)" = '[]'
