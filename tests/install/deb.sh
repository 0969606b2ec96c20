#!/usr/bin/env bash
# The Debian package: its dependencies are the ones its binaries need, and what is in it runs.
. "$SRC/tests/harness/cli.sh"
command -v dpkg-shlibdeps >/dev/null || skip_all "no dpkg-shlibdeps (dpkg-dev)"

pack() { (cd "$BUILD" && cpack -G DEB -B "$TMP/deb") && deb=$(echo "$TMP"/deb/*.deb) && [ -f "$deb" ]; }
check packs pack
deb=$(echo "$TMP"/deb/*.deb)

depends() { # the C library's package and one for each library that the program links besides it
  local depends needed
  depends=$(dpkg-deb -f "$deb" Depends); echo "Depends: $depends"
  case $depends in *'libc6 (>= '*) ;; *) return 1 ;; esac
  needed=$(objdump -p "$TMP/root/usr/bin/stave" | sed -n 's/ *NEEDED *//p'); echo "$needed"
  case $needed in *libz.so*) [[ $depends == *zlib1g* ]] || return 1 ;; esac
  case $needed in *libzstd.so*) [[ $depends == *libzstd1* ]] || return 1 ;; esac
}
check unpacks dpkg-deb -x "$deb" "$TMP/root"
check depends depends
check runs "$TMP/root/usr/bin/stave" --version

tidy() { # every entry under usr/, owned by root, not writable by others
  dpkg-deb -c "$deb" | awk '$2 != "root/root" || $1 ~ /^.{8}w/ && $1 !~ /^l/ || $6 !~ /^\.\/(usr\/|$)/ { print; bad = 1 } END { exit bad }'
}
check tidy tidy
