#!/usr/bin/env bash
# `make wheel`: the wheel is installed into a fresh environment, without a network, and used from elsewhere; with STAVE_LONG the source distribution, too,
# and the wheel is compiled as a whole (else objects that are the same in the release build are taken from there).
# shellcheck disable=SC2016 # programs of other languages
. "$SRC/tests/harness/cli.sh"
case $BUILD in */build) ;; *) skip_all "wheels have a build of their own: tested once, with the release build" ;; esac
[ -f "$BUILD/python/interpreter" ] || skip_all "Python's headers are absent (package python3-dev)"
python=$(cat "$BUILD/python/interpreter")
modules=(pip venv) make=("$python" "$SRC/tools/make-wheel" --reuse "$python")
if [ -n "${STAVE_LONG:-}" ]; then modules+=(setuptools wheel) make=(make -C "$SRC" wheel PYTHONS="$python"); fi
for module in "${modules[@]}"; do
  "$python" -c "import $module" 2>/dev/null || skip_all "$python has no $module (package python3-$module)"
done
unset PYTHONPATH
export PIP_CONFIG_FILE=/dev/null PIP_DISABLE_PIP_VERSION_CHECK=1 PYTHONNOUSERSITE=1
dist=$SRC/build-wheel/dist

cat >use.py <<'PY'
import os, sys, stave
folder = os.path.dirname(stave.__file__)
assert sys.argv[1] in folder, folder
assert os.path.exists(os.path.join(folder, "py.typed"))
maps = {line.split()[-1] for line in open("/proc/self/maps") if "/libstave" in line}
assert maps == {os.path.join(folder, "libstave.so.0"), os.path.join(folder, "libstave-file.so.0")}, maps
with stave.open(sys.argv[2], compress="gzip"):
    with stave.trace("installed", a=1):
        pass
with stave.TraceGenerator("sim.pftrace") as t:
    t.get_cluster_tgen(0, 1).create_track("engine").duration(1.5, 0.25, "matmul")
with stave.load(sys.argv[2]) as t:  # by libstave-read, which is beside the package
    assert [tuple(row) for row in t.query("select name from slice").rows()] == [("installed",)]
import stave.serving
with stave.serving.open("served", truncate=True) as server, server.request("m"):
    pass
with stave.load("served/batching_trace.pftrace") as t:
    assert [tuple(row) for row in t.query("select outcome from request").rows()] == [("responded",)]
assert {f"libstave{l}.so.0" for l in ("", "-read", "-serving")} <= {os.path.basename(line.split()[-1]) for line in open("/proc/self/maps") if folder in line}
assert os.path.join(folder, "libstave-read.so.0") in open("/proc/self/maps").read()
PY
traces() { rm -f ./*.pftrace; "$1/bin/python" use.py "/$1/" t.pftrace && [ "$("$STAVE" query -q t.pftrace 'select name from slice' | tail -n 1)" = installed ]; }

# ---- the source distribution builds the package and its libraries ----
if [ -n "${STAVE_LONG:-}" ]; then
  check makes_sdist "$python" "$SRC/tools/make-wheel" --sdist
  sdist() {
    "$python" -m venv --without-pip --system-site-packages source &&
      source/bin/python -m pip install -q --no-index --no-build-isolation --no-deps "$dist"/stave-*.tar.gz
  }
  check installs_sdist sdist
  check sdist_traces traces source
  no_program() { source/bin/stave --version 2>err; [ $? = 1 ] && grep -q 'built without the program' err; }
  check sdist_has_no_program no_program
fi

# ---- the wheel ----
check makes_wheel "${make[@]}"
wheels=("$dist"/*-manylinux_*.whl)
wheel=${wheels[0]}
pip_wheel() { # nothing of the system's packages, not even pip
  "$python" -m venv --without-pip fresh && "$python" -m pip --python fresh/bin/python install -q --no-index "$wheel"
}
check installs_wheel pip_wheel
check wheel_traces traces fresh
program() {
  local stave=fresh/bin/stave
  [ "$($stave --version)" = "$("$STAVE" --version)" ] && [ "$($stave query -q t.pftrace 'select name from slice' | tail -n 1)" = installed ] &&
    $stave plot timeline t.pftrace -o t.svg && grep -q '<svg' t.svg
}
check wheel_has_the_program program
views() { # the web server is in it, without TLS
  local pid address code=1
  exec 7< <(exec fresh/bin/stave view t.pftrace 2>&1 </dev/null)
  pid=$!
  while IFS= read -r -t 60 address <&7; do
    echo "$address"
    address=$(grep -oE 'http://[^ ]+' <<<"$address") || continue
    "$python" -c 'import sys, urllib.request; sys.exit(b"<html" not in urllib.request.urlopen(sys.argv[1], timeout=60).read().lower())' "$address" && code=0
    break
  done
  kill $pid; exec 7<&-
  return $code
}
check wheel_views views
refuses_tls() { # what is linked for GnuTLS: a server that is asked for TLS does not start, and nothing else happens
  local archive; archive=$(sed -n 's/^SV_ARCHIVE_microhttpd:[A-Z]*=//p' "$SRC/build-wheel/CMakeCache.txt")
  cat >tls.c <<'C'
#include <microhttpd.h>
static enum MHD_Result on_call(void *a, struct MHD_Connection *c, const char *b, const char *d, const char *e, const char *f, size_t *g, void **h)
{
    return MHD_NO;
}
int main(void)
{
    return MHD_start_daemon(MHD_USE_TLS | MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_ERROR_LOG, 0, 0, 0, on_call, 0, MHD_OPTION_HTTPS_MEM_KEY, "key",
                            MHD_OPTION_HTTPS_MEM_CERT, "certificate", MHD_OPTION_END) ? 1 : 42;
}
C
  gcc tls.c "$archive" "$SRC/build-wheel/libsv_no_tls.a" -lpthread -o tls && { ./tls; [ $? = 42 ]; }
}
if [ -e "$SRC/build-wheel/libsv_no_tls.a" ]; then check wheel_refuses_tls refuses_tls
else skip wheel_refuses_tls "the wheel has no web server"; fi
records() {
  fresh/bin/python -m stave record -q -o r.pftrace -- use_record.py && fresh/bin/stave query -q r.pftrace 'select name from slice' | grep -qx recorded
}
printf 'import stave\nwith stave.trace("recorded"): pass\n' >use_record.py
check wheel_records records

every_verb() { # python3 -m stave VERB is stave VERB: the same help, the same answer to what is wrong, the same exit code
  local verb bad=0 n=0
  while read -r verb _; do
    n=$((n + 1))
    for words in "--help all" --no-such-option; do
      [ "$verb $words" != "record --help all" ] || continue # says more: the options of Python
      # shellcheck disable=SC2086 # words
      fresh/bin/stave "$verb" $words >as.out 2>as.err </dev/null; code=$?
      # shellcheck disable=SC2086
      fresh/bin/python -m stave "$verb" $words >module.out 2>module.err </dev/null; [ $? = $code ] && cmp as.out module.out && cmp as.err module.err || { echo "$verb $words"; bad=1; }
    done
  done < <(fresh/bin/stave verbs)
  [ $n -ge 30 ] && [ $bad = 0 ]
}
check wheel_every_verb_by_python every_verb

"$python" -m zipfile -e "$wheel" unpacked
binaries=$(find unpacked/stave -type f \( -name '*.so*' -o -path '*/_program/stave' \))
tag() { # the newest version that a binary wants is the tag's: by the undefined symbols, not by what the wheel's maker reads
  local newest said
  newest=$(for f in $binaries; do nm -D --undefined-only "$f"; done | grep -oE 'GLIBC_2\.[0-9]+' | sort -V | tail -n 1)
  said=${wheel##*manylinux_2_}
  echo "$newest in $wheel"
  [ "$newest" = "GLIBC_2.${said%%_*}" ]
}
check wheel_tag tag
alone() { # of the machine it needs the C library only, and libgcc_s, which manylinux has
  local f needed bad=0
  for f in $binaries; do
    for needed in $(objdump -p "$f" | sed -n 's/ *NEEDED *//p'); do
      case $needed in libc.so.* | libm.so.* | libgcc_s.so.1 | ld-linux*) ;; *) [ -f "unpacked/stave/$needed" ] || { echo "$f needs $needed"; bad=1; } ;; esac
    done
  done
  [ -n "$binaries" ] && [ $bad = 0 ]
}
check wheel_needs_the_c_library_only alone
recorded() {
  "$python" - unpacked <<'PY'
import base64, csv, glob, hashlib, os, sys
os.chdir(sys.argv[1])
rows = list(csv.reader(open(glob.glob("*.dist-info/RECORD")[0])))
files = {os.path.join(d, f)[2:] for d, _, names in os.walk(".") for f in names}
assert {r[0] for r in rows} == files, files ^ {r[0] for r in rows}
for name, digest, size in rows:
    data = open(name, "rb").read()
    if not name.endswith("RECORD"):
        assert int(size) == len(data) and digest == "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode(), name
PY
}
check wheel_record recorded

# ---- without root, from a place that cannot be written to ----
check wheel_has_what_records_without_root test "$(for f in libstave-io.so libstave-locks.so stave-torch/sitecustomize.py; do [ -f "unpacked/stave/_program/$f" ] && echo $f; done | wc -l)" = 3
cat >locked.py <<'PY'
import threading, time
lock = threading.Lock()
def hold_long():
    while True:
        with lock: time.sleep(0.05)
        time.sleep(0.001)
threading.Thread(target=hold_long, daemon=True).start()
end = time.monotonic() + 2
while time.monotonic() < end:
    with lock: pass
PY
unprivileged() { # one command from an empty environment names the planted lock
  mkdir -p work && chmod 777 work && chmod -R a+rX fresh locked.py . || return 1
  (cd work && setpriv --reuid=1234 --regid=1234 --clear-groups env -u HOME ../fresh/bin/stave record -o r.pftrace -- ../fresh/bin/python ../locked.py) >work/said 2>&1
  grep -q 'for a lock.*hold_long() (locked.py' work/said || { cat work/said; return 1; }
}
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then check wheel_without_root unprivileged
else skip wheel_without_root "needs root to become another user"; fi
says_why_no_png() { # in Python's words where there is no cairo
  fresh/bin/python - <<'PY'
import os, stave
with stave.open("p.pftrace"):
    stave.instant("i")
try:
    stave.load("p.pftrace").plot().save("p.png")
    assert open("p.png", "rb").read(4) == b"\x89PNG"
except ValueError as error:
    assert "cairo" in str(error) and not os.path.exists("p.png"), error
PY
}
check wheel_png_or_why says_why_no_png
