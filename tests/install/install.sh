#!/usr/bin/env bash
# What `make install` leaves under a prefix is complete, can be moved, and can be built against: with pkg-config, with
# find_package, shared and static, from C and from C++.
# shellcheck disable=SC2046,SC2016 # the flags of pkg-config are words; $ORIGIN is the loader's
. "$SRC/tests/harness/cli.sh"

check installs cmake --install "$BUILD" --prefix "$TMP/first"
mv "$TMP/first" "$TMP/prefix" # nothing may remember where it was put
prefix=$TMP/prefix
version=$(sed -nE 's/^#define STAVE_VERSION_[A-Z]+ //p' "$SRC/include/stave/stave.h" | paste -sd.)

check program "$prefix/bin/stave" --version
check queries test -s "$prefix/share/stave/sql/duckdb/tables.sql"
check manual test -s "$prefix/share/man/man1/stave.1.gz"
for verb in $("$STAVE" verbs); do check "manual_$verb" test -s "$prefix/share/man/man1/stave-$verb.1.gz"; done
check bash_completion bash -n "$prefix/share/bash-completion/completions/stave"
check zsh_completion test -s "$prefix/share/zsh/vendor-completions/_stave"
check fish_completion test -s "$prefix/share/fish/vendor_completions.d/stave.fish"

exports_public_api_only() {
  local other
  other=$(nm -D --defined-only "$prefix/lib/libstave.so" | awk '$2 != "A" && $3 !~ /^stave_/ { print $3 }')
  [ -z "$other" ] || { echo "exported: $other"; return 1; }
  objdump -p "$prefix/lib/libstave.so" | grep "SONAME *libstave.so.${version%%.*}$" >/dev/null
}
check exports_public_api_only exports_public_api_only

# run_paths FOLDER: no program or library there looks for libraries in the working directory: each element of its run path begins at the root or
# at its own place. An empty element is the working directory.
run_paths() {
  local file path element bad=0 n=0
  while IFS= read -r file; do
    path=$(readelf -d "$file" 2>/dev/null | sed -nE 's/.*\((RUNPATH|RPATH)\).*\[(.*)\]/\2/p')
    n=$((n + 1))
    [ -n "$path" ] || continue
    while IFS= read -r -d : element; do
      case $element in /* | '$ORIGIN' | '$ORIGIN/'*) ;; *) echo "$file: '$element' in $path"; bad=1 ;; esac
    done <<<"$path:"
  done < <(find "$1" -type f \( -perm -u+x -o -name '*.so*' \) ! -path '*/CMakeFiles/*' ! -name '*.sh' ! -name '*.py')
  [ $n -gt 3 ] && [ $bad = 0 ]
}
check run_paths_installed run_paths "$prefix"
check run_paths_build run_paths "$BUILD"

cat >user.c <<'C'
#include <stave/stave.h>
#include <stdio.h>
int main(void)
{
    return puts(stave_version()) < 0;
}
C
cp user.c user.cpp
strict=(-Wall -Wextra -Wpedantic -Werror)
export PKG_CONFIG_PATH=$prefix/lib/pkgconfig LD_LIBRARY_PATH=$prefix/lib

says_version() { local said; said=$("$@") && [ "$said" = "$version" ] || { echo "said $said, not $version"; return 1; }; }

check pkg_config_version says_version pkg-config --modversion stave
pkg_config_c() { gcc -std=c11 "${strict[@]}" user.c -o c $(pkg-config --cflags --libs stave) && says_version ./c; }
pkg_config_cpp() { g++ -std=c++17 "${strict[@]}" user.cpp -o cpp $(pkg-config --cflags --libs stave) && says_version ./cpp; }
pkg_config_static() {
  gcc "${strict[@]}" user.c -o static $(pkg-config --cflags stave) "$prefix/lib/libstave.a" \
    $(pkg-config --static --libs-only-l stave | sed -E 's/-lstave(-file)?( |$)//g') && LD_LIBRARY_PATH='' says_version ./static
}
check pkg_config_c pkg_config_c
check pkg_config_cpp pkg_config_cpp
check pkg_config_static pkg_config_static
# What the headers declare is in what pkg-config names; a program that does not use it does not load it.
cat >writer.c <<'C'
#include <stave/stave.h>
#include <stave/trace_writer.h>
int main(void)
{
    struct stave_trace_writer *w = stave_trace_writer_open("writer.json");
    int status = stave_trace_writer_push(w, "op", "cat", 1.0, 0);
    stave_trace_writer_close(w);
    return status;
}
C
cat >writer.cpp <<'C'
#include <stave/stave.hpp>
#include <stave/trace_writer.hpp>
int main() { return stave::TraceWriter::enabled("writer.json").flush().value(); }
C
pkg_config_trace_writer() {
  gcc -std=c11 "${strict[@]}" writer.c -o writer $(pkg-config --cflags --libs stave) && ./writer && [ "$(grep -c '"name":"op"' writer.json)" = 1 ] &&
    sed '/stave\/stave.h/d' writer.c >writer_alone.c && gcc -std=c11 "${strict[@]}" writer_alone.c -o writer_alone $(pkg-config --cflags --libs-only-L stave) -lstave-file && ./writer_alone &&
    gcc "${strict[@]}" writer.c -o writer_static $(pkg-config --cflags stave) "$prefix/lib/libstave.a" $(pkg-config --static --libs-only-l stave | sed -E 's/-lstave(-file)?( |$)//g') && LD_LIBRARY_PATH='' ./writer_static &&
    g++ -std=c++17 "${strict[@]}" writer.cpp -o writer_cpp $(pkg-config --cflags --libs stave) && ./writer_cpp
}
check pkg_config_trace_writer pkg_config_trace_writer
check others_do_not_load_it sh -c 'readelf -d writer | grep -q libstave-file && ! readelf -d c | grep -q libstave-file'
cat >gpu.c <<'C'
#include <stave/gpu.h>
int main(void) { return stave_gpu_device(0, 0) == 0; }
C
pkg_config_gpu() { gcc -std=c11 "${strict[@]}" gpu.c -o gpu $(pkg-config --cflags --libs stave-gpu) && ./gpu && g++ -std=c++17 "${strict[@]}" -x c++ gpu.c -o gpu $(pkg-config --cflags --libs stave-gpu) && ./gpu; }
check pkg_config_gpu pkg_config_gpu

cat >exporter.cpp <<'C'
#include <stave/perfetto_exporter.hpp>
int main()
{
    tracesmith::PerfettoExporter exporter;
    return !exporter.exportToFile({tracesmith::TraceEvent(tracesmith::EventType::Marker, 1)}, "exporter.pftrace");
}
C
exporter_static() {
  g++ -std=c++17 "${strict[@]}" exporter.cpp -o exporter $(pkg-config --cflags stave) "$prefix/lib/libstave.a" \
    $(pkg-config --static --libs-only-l stave | sed -E 's/-lstave(-[a-z]+)?( |$)//g') && LD_LIBRARY_PATH='' ./exporter && "$prefix/bin/stave" info exporter.pftrace | grep -q 'instants *1'
}
check exporter_static exporter_static

cat >server.c <<'C'
#include <stave/serving.h>
#include <stdio.h>
int main(void)
{
    char message[256];
    struct stave_serving_config config = {.size = sizeof config, .trace_enabled = true, .trace_output = "server_out"};
    struct stave_serving *s = stave_serving_open(&config, message, sizeof message);
    stave_serving_enqueued(s, 1, stave_serving_model(s, "m"), 0, 0);
    return !s || stave_serving_close(s, message, sizeof message) || puts(stave_version()) < 0;
}
C
serving_shared() { gcc -std=c11 "${strict[@]}" server.c -o server $(pkg-config --cflags --libs stave-serving) && says_version ./server; }
serving_static() {
  gcc "${strict[@]}" server.c -o server_static $(pkg-config --cflags stave-serving) "$prefix/lib/libstave-serving.a" "$prefix/lib/libstave.a" \
    $(pkg-config --static --libs-only-l stave | sed -E 's/-lstave(-file)?( |$)//g') && LD_LIBRARY_PATH='' says_version ./server_static
}
check serving_shared serving_shared
check serving_static serving_static
serving_exports_public_api_only() { [ -z "$(nm -D --defined-only "$prefix/lib/libstave-serving.so" | awk '$2 != "A" && $3 !~ /^stave_serving_/')" ]; }
check serving_exports_public_api_only serving_exports_public_api_only

cat >CMakeLists.txt <<'C'
cmake_minimum_required(VERSION 3.16)
project(user C)
find_package(stave REQUIRED)
add_executable(shared user.c)
target_link_libraries(shared stave::stave)
add_executable(archive user.c)
target_link_libraries(archive stave::static)
add_executable(file writer.c)
target_link_libraries(file stave::stave stave::file)
C
find_package() {
  cmake -S . -B b -DCMAKE_PREFIX_PATH="$prefix" >/dev/null && cmake --build b >/dev/null &&
    b/file && says_version b/shared && LD_LIBRARY_PATH='' says_version b/archive
}
check find_package find_package
