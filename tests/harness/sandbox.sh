# shellcheck shell=bash
# A folder in which the commands of the documentation can run: the tree (by links), an installed program, and inputs with the names that the
# documentation uses, made from the samples of the tree. For tests/install/readme.sh and docs.sh; needs tests/harness/cli.sh.

# block FILE LANGUAGE: the first fenced block of this language
block() { awk -v head="\`\`\`$2" '$0 == head { inside = 1; next } /^```/ { if (inside) exit } inside' "$1"; }

sandbox_inputs() {
  local good=$SRC/tests/golden/good i
  cp "$good/kineto.json" trace.json; cp trace.json before.json; cp trace.json after.json; cp trace.json run.json
  gzip -c trace.json >trace.json.gz; gzip -c trace.json >run.json.gz
  for i in 0 1; do sed "s/\"rank\": *[0-9]*/\"rank\": $i/" trace.json | gzip -c >rank$i.json.gz; done
  cp -r "$SRC/tests/golden/run" exp_20260720
  mkdir traces && cp rank*.json.gz traces/ && echo "no trace" >traces/notes.txt
  { block "$SRC/docs/tutorial.md" c; printf 'int main(void)\n{\n    for (int i = 0; i < 3000; i++)\n        attention(i, 2 * i);\n    return 0;\n}\n'; } >program.c
  { block "$SRC/docs/tutorial.md" python; printf 'for i in range(100): train_step([i])\n'; } >train.py
  { cat train.py; printf 'import os\nos.kill(os.getpid(), 9)\n'; } >killed.py
}

# Recorded ones: run.pftrace with requests of the application, the ranks of a job.
sandbox_recordings() {
  local i
  STAVE_OUT=run.pftrace "$BUILD/examples/training" 9
  cp run.pftrace trace.pftrace
  (mkdir ranks && cd ranks && python3 "$SRC/tests/cli/report_comm/kineto.py") || return
  for i in 0 1 2; do "$STAVE" convert -q "ranks/new.own.rank$i.json" -o job.rank000$i.pftrace || return; done
  "$STAVE" merge -q job.rank*.pftrace -o all.pftrace
}

# sandbox_install: what `make install` leaves is found first.
sandbox_install() {
  export PREFIX=$TMP/prefix
  export PATH=$TMP/bin:$PREFIX/bin:$PATH PKG_CONFIG_PATH=$PREFIX/lib/pkgconfig LD_LIBRARY_PATH=$PREFIX/lib PYTHONPATH=$SRC/build/python
  export XDG_RUNTIME_DIR=$TMP/run STAVE_SESSION_DIR=$TMP/sessions
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
  mkdir -p bin sessions && mkdir -m 700 run
  printf '#!/bin/sh\nexec "$@"\n' >bin/sudo && chmod +x bin/sudo # who runs this is root, or is nobody who could become it
}

# sandbox_more: what the pages of docs/ name beyond README.md.
sandbox_more() {
  local good=$SRC/tests/golden/good name
  make install >/dev/null || return
  STAVE_LONG='' "$BUILD/examples/serving" . && mkdir -p traces out/server && cp batching_trace* out/server/ && cp batching_trace.pftrace server.pftrace && cp batching_trace.pftrace traces/ || return
  for name in new old; do cp batching_trace.pftrace $name.pftrace; done
  cp batching_trace_summary.csv trace.csv
  for name in a b app system kernel hot; do cp run.pftrace $name.pftrace; done
  cp trace.json a.json; cp trace.json b.json; cp "$good/otlp_example.json" spans.json; cp "$good/vllm.log" vllm.log
  cp "$good/flight_recorder_3.out" nccl_trace_rank_3; cp "$good/flight_recorder_rank1.json" nccl_trace_rank_1
  cp -r exp_20260720 traces_4gpu
  for name in 0 1 2; do cp job.rank000$name.pftrace rank$name.pftrace; done
  echo '2026-11-17T08:00:00.5 17 4096 1500 /data/a.bin' >app.log; echo '1763366400.5,read,1.5,4096' >app.csv; echo '1000,10' >day.csv
  printf '#!/bin/sh\nexec ./program\n' >train.sh && chmod +x train.sh
  # shellcheck disable=SC2046 # words
  cc program.c $(pkg-config --cflags --libs stave) -o program && cp program train && cp program rank && cp program a.out
  head -c 100000 /dev/zero >data.bin
}

# sandbox: makes the folder $TMP/sandbox and goes there.
sandbox() {
  local entry
  sandbox_install
  mkdir sandbox && cd sandbox || exit 2
  for entry in "$SRC"/*; do case ${entry##*/} in out | traces) ;; *) ln -s "$entry" . ;; esac; done
  sandbox_inputs && sandbox_recordings
  alone=() # ports are not taken here
  # shellcheck disable=SC2034 # for the scripts
  if unshare -n ip link set lo up 2>/dev/null; then alone=(unshare -n sh -c 'ip link set lo up; exec "$@"' sh); fi
}
