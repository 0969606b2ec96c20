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
  { block "$SRC/README.md" c; printf 'int main(void)\n{\n    for (int i = 0; i < 3000; i++)\n        attention(i, 2 * i);\n    return 0;\n}\n'; } >program.c
  { block "$SRC/README.md" python; printf 'for i in range(100): train_step([i])\n'; } >train.py
  { cat train.py; printf 'import os\nos.kill(os.getpid(), 9)\n'; } >killed.py
}

# Recorded ones: run.pftrace with requests of the application, the ranks of a job.
sandbox_recordings() {
  local i
  STAVE_OUT=run.pftrace "$BUILD/examples/training" 5
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
  mkdir -p bin sessions && mkdir -m 700 run
  printf '#!/bin/sh\nexec "$@"\n' >bin/sudo && chmod +x bin/sudo # who runs this is root, or is nobody who could become it
}

# sandbox: makes the folder $TMP/sandbox and goes there.
sandbox() {
  local entry
  sandbox_install
  mkdir sandbox && cd sandbox || exit 2
  for entry in "$SRC"/*; do case ${entry##*/} in out | traces) ;; *) ln -s "$entry" . ;; esac; done
  sandbox_inputs && sandbox_recordings
}
