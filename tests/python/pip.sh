#!/usr/bin/env bash
# pip install ./lib/python into a fresh environment, without a network; then a program that traces, from elsewhere.
set -uo pipefail
case $BUILD in */build) ;; *) echo "pip builds by itself: tested once, with the release build"; exit 77 ;; esac
if ! [ -f "$BUILD/python/interpreter" ]; then echo "Python's headers are absent (package python3-dev)"; exit 77; fi
python=$(cat "$BUILD/python/interpreter")
for module in pip setuptools wheel venv ensurepip; do
  "$python" -c "import $module" 2>/dev/null || { [ $module = ensurepip ] && break; echo "$python has no $module (package python3-$module)"; exit 77; }
done
# A copy: pip leaves its traces beside what it builds.
mkdir -p "$TMP/tree/lib" && cp -r "$SRC"/{core,include,src} "$TMP/tree" && cp -r "$SRC"/lib/{sdk,compat,serving,python} "$TMP/tree/lib" || exit 1
rm -rf "$TMP/tree/lib/python/build" "$TMP/tree/lib/python/stave.egg-info"
"$python" -m venv --without-pip --system-site-packages "$TMP/env" || exit 1
unset PYTHONPATH
# What is installed is to work, not to be fast: without optimisation it compiles in a third of the time (with STAVE_LONG=1 as users compile it).
# The same sources are compiled in each run: with ccache only those that changed.
compiler=gcc; if command -v ccache >/dev/null; then compiler="ccache gcc"; export CCACHE_BASEDIR=$TMP CCACHE_NOHASHDIR=1; fi
flags=(); [ -n "${STAVE_LONG:-}" ] || flags=(-U_FORTIFY_SOURCE -O0)
printf '#!/bin/sh\nexec %s "$@" %s\n' "$compiler" "${flags[*]}" >"$TMP/compiler"
chmod +x "$TMP/compiler"
export CC=$TMP/compiler
PIP_CONFIG_FILE=/dev/null "$TMP/env/bin/python" -m pip install -q --no-index --no-build-isolation --no-deps "$TMP/tree/lib/python" >"$TMP/out" 2>&1 ||
  { cat "$TMP/out"; echo "not ok pip install"; exit 1; }
echo "ok pip install"
cd "$TMP" || exit 1
"$TMP/env/bin/python" - <<'PROGRAM' || { echo "not ok the installed package traces"; exit 1; }
import os, stave, stave.compat.nova
assert "/env/" in stave.__file__, stave.__file__
assert os.path.exists(os.path.join(os.path.dirname(stave.__file__), "py.typed"))
with stave.open("pip.pftrace", compress="gzip"):
    with stave.trace("installed", a=1):
        pass
import stave.serving
with stave.serving.open("served") as server, server.request("m"):
    pass
with stave.load("served/batching_trace.pftrace") as trace:
    assert [tuple(row) for row in trace.query("select outcome from request").rows()] == [("responded",)]
with stave.load("pip.pftrace") as trace:
    assert [tuple(row) for row in trace.query("select name from slice").rows()] == [("installed",)]
PROGRAM
[ "$("$STAVE" query -q pip.pftrace 'select name from slice' | tail -n 1)" = installed ] && echo "ok the installed package traces" ||
  { echo "not ok the installed package traces"; exit 1; }
