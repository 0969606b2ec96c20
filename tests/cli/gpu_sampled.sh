#!/usr/bin/env bash
# A trace with counters of GPUs only (NVML, nvidia-smi pmon): stave report gpu says from them how long devices were busy and idle, in each step, too.
. "$SRC/tests/harness/cli.sh"

# A value is about the time since the one before: GPU 0 is half busy from 0.1 to 0.2, busy to 0.3, idle to 0.4; of GPU 1 only what the process 7 did is known.
cat >nvml.txt <<'END'
# stave text 1
track #1 process uuid=0x11 pid=7 name="job"
track #2 thread uuid=0x12 parent=#1 pid=7 tid=7 name="main"
track #3 gpu uuid=0x20 name="GPU 0"
track #4 counter uuid=0x21 parent=#3 name="sm" unit="%"
track #5 counter uuid=0x22 parent=#3 name="power" unit="W"
track #6 custom uuid=0x23 parent=#1 name="GPU 1"
track #7 counter uuid=0x24 parent=#6 name="sm" unit="%"
track #8 custom uuid=0x25 parent=#1 name="GPU 0"
track #9 counter uuid=0x26 parent=#8 name="sm" unit="%"
0.100000000 counter #4 {100}
0.100000000 counter #5 {90}
0.100000000 counter #7 {0}
0.100000000 counter #9 {50}
0.100000000 slice #2 "step 0" dur=0.150000000
0.200000000 counter #4 {50}
0.250000000 slice #2 "step 1" dur=0.150000000
0.300000000 counter #4 {100}
0.300000000 counter #7 {20}
0.300000000 counter #9 {10}
0.400000000 counter #4 {0}
END
run_any nvml 0 "$STAVE" report gpu -q --no-index --csv --by sampled nvml.txt
check nvml_devices diff - nvml.out <<'END'
device,pid,values,known_ns,busy_ns,idle_ns,utilisation
GPU 0,,4,300000000,150000000,150000000,0.5
GPU 1,7,2,200000000,40000000,160000000,0.2
GPU 0,7,2,200000000,20000000,180000000,0.1
END
run_any steps 0 "$STAVE" report gpu -q --no-index --csv --by step nvml.txt
check nvml_steps diff - steps.out <<'END'
step,start_ns,dur_ns,known_ns,busy_ns,idle_ns,utilisation
0,100000000,150000000,300000000,130000000,170000000,0.43333333333333335
1,250000000,150000000,200000000,60000000,140000000,0.3
END
run_any table 0 "$STAVE" report gpu -q --no-index nvml.txt
check table_says_what grep -q 'by counters of their utilisation' table.out
