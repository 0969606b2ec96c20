#!/usr/bin/env bash
# The Debian package: its dependencies are the ones its binaries need, and what is in it runs.
. "$SRC/tests/harness/cli.sh"
command -v dpkg-shlibdeps >/dev/null || skip_all "no dpkg-shlibdeps (dpkg-dev)"

pack() { (cd "$BUILD" && cpack -G DEB -B "$TMP/deb") && [ -f "$(echo "$TMP"/deb/stave_*.deb)" ]; }
check packs pack
deb=$(echo "$TMP"/deb/stave_*.deb)

depends() { # the C library's package and one for each library that the program links besides it
  local depends needed
  depends=$(dpkg-deb -f "$deb" Depends); echo "Depends: $depends"
  case $depends in *'libc6 (>= '*) ;; *) return 1 ;; esac
  needed=$(objdump -p "$TMP/root/usr/bin/stave" | sed -n 's/ *NEEDED *//p'); echo "$needed"
  case $needed in *libz.so*) [[ $depends == *zlib1g* ]] || return 1 ;; esac
  case $needed in *libzstd.so*) [[ $depends == *libzstd1* ]] || return 1 ;; esac
}
# What is loaded by name: each package that a message names (core/base/late.h).
recommends() {
  local recommends name; recommends="$(dpkg-deb -f "$deb" Recommends),"; echo "Recommends: $recommends"
  for name in libcurl4 libcairo2 libmicrohttpd12; do case $recommends in *"$name,"*) ;; *) return 1 ;; esac; done
}
check unpacks dpkg-deb -x "$deb" "$TMP/root"
check service_disabled sh -c 'test -s "$TMP/root/usr/lib/systemd/system/stave-record.service" && ! find "$TMP/root" -path "*.wants*" | grep -q .'
check depends depends
check recommends recommends
check runs "$TMP/root/usr/bin/stave" --version

tidy() { # every entry under usr/, owned by root, not writable by others
  dpkg-deb -c "$deb" | awk '$2 != "root/root" || $1 ~ /^.{8}w/ && $1 !~ /^l/ || $6 !~ /^\.\/(usr\/|$)/ { print; bad = 1 } END { exit bad }'
}
check tidy tidy

# ---- python3-stave ----
if ! [ -f "$BUILD/python/interpreter" ]; then skip python "Python's headers are absent (package python3-dev)"; exit; fi
python=$(cat "$BUILD/python/interpreter")
deb=$(echo "$TMP"/deb/python3-stave_*.deb)
check python_unpacks dpkg-deb -x "$deb" "$TMP/root"
check python_tidy tidy
python_depends() { # on the very library, and on the one version of Python that the extension is for
  local depends minor
  depends=$(dpkg-deb -f "$deb" Depends); echo "Depends: $depends"
  minor=$("$python" -c 'import sys; print(sys.version_info.minor)')
  [[ $depends == *"stave (= $(dpkg-deb -f "$TMP"/deb/stave_*.deb Version))"* && $depends == *"python3 (>= 3.$minor), python3 (<< 3.$((minor + 1)))"* ]]
}
check python_depends python_depends
python_traces() { # by the library of the other package
  local lib; lib=$(dirname "$(find "$TMP/root/usr/lib" -name libstave.so.0)")
  PYTHONPATH=$TMP/root/usr/lib/python3/dist-packages LD_LIBRARY_PATH=$lib "$python" - "$TMP/root/" <<'PY' || return 1
import sys, stave, stave.compat
assert stave.__file__.startswith(sys.argv[1]), stave.__file__
with stave.open("deb.pftrace"), stave.trace("packaged"):
    pass
assert any(sys.argv[1] in line for line in open("/proc/self/maps") if "/libstave.so" in line)
PY
  "$TMP/root/usr/bin/stave" query -q deb.pftrace 'select name from slice' | grep -qx packaged
}
check python_traces python_traces
