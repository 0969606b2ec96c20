#!/usr/bin/env bash
# The Python package: every test_*.py here by pytest, against the package of this build. A line per test.
set -uo pipefail
if ! [ -f "$BUILD/python/interpreter" ]; then echo "the Python package was not built (python3-dev is absent)"; exit 77; fi
python=$(cat "$BUILD/python/interpreter")
if ! "$python" -c 'import pytest' 2>/dev/null; then echo "$python has no pytest (package python3-pytest)"; exit 77; fi
export PYTHONPATH=$BUILD/python PYTHONDONTWRITEBYTECODE=1 TEST_LINES=$TMP/lines PYTHONNOUSERSITE=1
# Otherwise each of some 300 interpreters would compile the package again.
PYTHONDONTWRITEBYTECODE='' "$python" -m compileall -q "$BUILD/python/stave" >/dev/null 2>&1
case $BUILD in
  *asan) # the sanitizer must be there before the interpreter; Python itself does not free everything
    LD_PRELOAD=$(gcc -print-file-name=libasan.so); export LD_PRELOAD PYTHONMALLOC=malloc ASAN_OPTIONS="$ASAN_OPTIONS:detect_leaks=0" ;;
esac
"$python" -m pytest -q -p no:cacheprovider --basetemp="$TMP/pytest" "$SRC/tests/python" "$@" >"$TMP/out" 2>&1 </dev/null
code=$?
cat "$TMP/lines" 2>/dev/null
[ $code = 0 ] || cat "$TMP/out"
exit $code
