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
check service grep -q "^ExecStart=stave record " "$prefix/lib/systemd/system/stave-record.service"
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
    $(pkg-config --static --libs-only-l stave | sed -E 's/-lstave(-[a-z]+)?( |$)//g') && LD_LIBRARY_PATH='' says_version ./static
}
# A plugin with libstave.a: all that it needs is named, it does not need libstave.so, and it exports nothing of the copy.
pkg_config_plugin() {
  pkg-config --static --libs stave | grep -q -- ' -lz ' || { pkg-config --static --libs stave; return 1; }
  gcc "${strict[@]}" user.c -o static2 $(pkg-config --cflags --libs stave-static) && LD_LIBRARY_PATH='' says_version ./static2 || return 1
  gcc "${strict[@]}" -shared -fPIC user.c -o plugin.so -Wl,--no-undefined $(pkg-config --cflags --libs stave-static) || return 1
  local other; other=$(readelf -d plugin.so | grep 'NEEDED.*libstave'; nm -D --defined-only plugin.so | grep ' stave_'); [ -z "$other" ] || { echo "$other"; return 1; }
}
check pkg_config_c pkg_config_c
check pkg_config_plugin pkg_config_plugin
check pkg_config_cpp pkg_config_cpp
check pkg_config_static pkg_config_static

# Every function that a public C header declares: the compiler lists them with their headers, a program has the address of each, and one package or target links
# it. declared NAME HEADER…: NAME.c has the functions of these headers (and what they include); too_old.h takes the place of another.
declared() {
  local name=$1; shift
  printf '#include <stave/%s>\n' "$@" >"$name.h"
  gcc -std=c11 "${strict[@]}" -fsyntax-only -aux-info "$name.txt" $(pkg-config --cflags stave) -x c "$name.h" || return 1
  sed -nE 's|^/\* [^ ]*/include/stave/[a-z_]+\.h:.* \*/ extern .*[ *](stave_[a-z0-9_]+) \(.*|\1|p' "$name.txt" | sort -u >"$name.names"
  { cat "$name.h"; echo 'void (*const all[])(void) = {'; sed 's/.*/    (void (*)(void))&,/' "$name.names"; echo '};'
    echo 'int main(void) { for (unsigned i = 0; i < sizeof all / sizeof *all; i++) if (!all[i]) return 1; return 0; }'; } >"$name.c"
}
all_headers() { for header in "$prefix"/include/stave/*.h; do case ${header##*/} in too_old.h) ;; *) echo "${header##*/}" ;; esac; done; }
links() { # NAME FLAG…
  gcc -std=c11 -Wall -Werror -Wno-cast-function-type -I. "$1.c" -o "$1" $(pkg-config --cflags stave) "${@:2}" && "./$1"
}
everything() { # of read.h in libstave-read, which needs no libstave
  declared every $(all_headers) && declared of_read read.h && declared of_others $(all_headers | grep -vx read.h) || return 1
  local name
  for name in stave_start stave_i_emit stave_file_emit stave_trace_writer_push stave_gpu_device stave_serving_open stave_read_open; do
    grep -qx $name every.names || { echo "$name is not among the $(wc -l <every.names) functions"; return 1; }
  done
  links of_others $(pkg-config --libs stave) && links of_read $(pkg-config --libs stave-read)
}
check pkg_config_links_every_declaration everything
# Statically, with nothing but what pkg-config names. libstave-read is a shared library only.
static_package() { # PACKAGE HEADER…
  local package=$1; shift
  declared "static_$package" "$@" && links "static_$package" -static $(pkg-config --static --libs "$package") && ! readelf -d "static_$package" | grep NEEDED
}
check static_stave static_package stave $(all_headers | grep -vx read.h)
check static_stave-static static_package stave-static stave.h file.h trace_writer.h trace_context.h
check static_stave-gpu static_package stave-gpu gpu.h
check static_stave-serving static_package stave-serving serving.h
# Whatever a .pc file names is installed, or is a library of the system that links.
named_exists() {
  local file package word n=0
  for file in "$prefix"/lib/pkgconfig/*.pc; do
    package=${file##*/}; package=${package%.pc}; n=$((n + 1))
    for word in $(pkg-config --static --libs-only-l "$package"); do
      case $word in
      -lstave*) [ -e "$prefix/lib/lib${word#-l}.so" ] || { echo "$package names $word"; return 1; } ;;
      -l:*) [ -e "$prefix/lib/${word#-l:}" ] || { echo "$package names $word"; return 1; } ;;
      esac
    done
    echo 'int main(void) { return 0; }' | gcc -x c - -o nothing $(pkg-config --static --libs "$package") || return 1
  done
  [ $n -ge 5 ]
}
check pkg_config_names_what_exists named_exists
only_what_is_used() { # the other libraries only where a program calls them
  local needed; needed=$(objdump -p c | sed -n 's/ *NEEDED *//p' | grep stave); [ "$needed" = "libstave.so.${version%%.*}" ] || { echo "$needed"; return 1; }
}
check pkg_config_links_only_what_is_used only_what_is_used
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
    gcc "${strict[@]}" writer.c -o writer_static $(pkg-config --cflags stave) "$prefix/lib/libstave.a" $(pkg-config --static --libs-only-l stave | sed -E 's/-lstave(-[a-z]+)?( |$)//g') && LD_LIBRARY_PATH='' ./writer_static &&
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
    struct stave_error error;
    struct stave_serving_config config = {.size = sizeof config, .trace_enabled = true, .trace_output = "server_out"};
    struct stave_serving *s = stave_serving_open(&config, &error);
    stave_serving_enqueued(s, 1, stave_serving_model(s, "m"), 0, 0);
    return !s || stave_serving_close(s, &error) || puts(stave_version()) < 0;
}
C
serving_shared() { gcc -std=c11 "${strict[@]}" server.c -o server $(pkg-config --cflags --libs stave-serving) && says_version ./server; }
serving_static() {
  gcc "${strict[@]}" server.c -o server_static $(pkg-config --cflags stave-serving) "$prefix/lib/libstave-serving.a" "$prefix/lib/libstave.a" \
    $(pkg-config --static --libs-only-l stave | sed -E 's/-lstave(-[a-z]+)?( |$)//g') && LD_LIBRARY_PATH='' says_version ./server_static
}
check serving_shared serving_shared
check serving_static serving_static
serving_exports_public_api_only() { [ -z "$(nm -D --defined-only "$prefix/lib/libstave-serving.so" | awk '$2 != "A" && $3 !~ /^stave_serving_/')" ]; }
check serving_exports_public_api_only serving_exports_public_api_only

# libstave-read: asks a trace in process, needs no libstave, and brings neither the program's other libraries nor variables that threads would share.
cat >reader.c <<'C'
#include <stave/read.h>
#include <stdio.h>
int main(int n, char **words)
{
    struct stave_error error;
    const char *path = words[n - 1];
    struct stave_read *trace = stave_read_open(&path, 1, NULL, &error);
    struct stave_read_table *t = trace ? stave_read_query(trace, "SELECT name, dur FROM slice ORDER BY ts", &error) : NULL;
    if (!t) {
        printf("%d %s\n", error.code, error.text);
        return 1;
    }
    for (size_t row = 0; row < stave_read_n_rows(t); row++)
        printf("%s %lld\n", stave_read_text(t, 0, row, NULL), (long long)stave_read_column(t, 1)->ints[row]);
    stave_read_close(trace);
    stave_read_table_free(t);
    return 0;
}
C
echo '[{"name":"a","ph":"X","ts":1,"dur":2,"pid":1,"tid":1},{"name":"b","ph":"X","ts":5,"dur":7,"pid":1,"tid":1}]' >two.json
reads() { [ "$("$1" two.json)" = "$(printf 'a 2000\nb 7000')" ]; }
read_c() { gcc -std=c11 "${strict[@]}" reader.c -o reader $(pkg-config --cflags --libs stave-read) && reads ./reader; }
read_cpp() { g++ -std=c++17 "${strict[@]}" -x c++ reader.c -o reader_cpp $(pkg-config --cflags --libs stave-read) && reads ./reader_cpp; }
read_says_why() { local said; said=$(./reader nowhere.json); [ $? = 1 ] && [[ $said == '-5 nowhere.json: cannot open: No such file'* ]] || { echo "$said"; return 1; }; }
read_exports_public_api_only() { [ -z "$(nm -D --defined-only "$prefix/lib/libstave-read.so" | awk '$2 != "A" && $3 !~ /^stave_read_/')" ]; }
read_needs_little() {
  local needed
  needed=$(objdump -p "$prefix/lib/libstave-read.so" | awk '$1 == "NEEDED" && $2 !~ /^(libc|libm|libz|libzstd|libsqlite3|ld-linux.*|lib[atu].*san|libgcc_s)\.so/ { print $2 }')
  [ -z "$needed" ] || { echo "needs $needed"; return 1; }
}
# What a process knows of itself (its console, its CPUs, libraries that it loaded when they were needed) is no state of a trace.
read_shares_nothing() {
  local other
  other=$(objdump -t "$prefix/lib/libstave-read.so" | awk '$3 == "O" && $4 ~ /^\.(data|bss)$/ && $NF !~ /^(__.*|completed\.[0-9]+|is_muted|console|watch|sv_common|default_threads|known\.[0-9]+|loads_cairo|lib|is_said\.[0-9]+|is_looked_up\.[0-9]+|found\.[0-9]+)$/ { print $NF }')
  [ -z "$other" ] || { echo "variables: $other"; return 1; }
}
check read_c read_c
check read_cpp read_cpp
check read_says_why read_says_why
check read_exports_public_api_only read_exports_public_api_only
check read_needs_little read_needs_little
case $BUILD in */build) check read_shares_nothing read_shares_nothing ;; esac

cat >CMakeLists.txt <<'C'
cmake_minimum_required(VERSION 3.16)
project(user C)
find_package(stave REQUIRED)
add_executable(shared user.c)
target_link_libraries(shared stave::stave)
add_executable(archive user.c)
target_link_libraries(archive stave::static)
add_executable(file writer.c)
target_link_libraries(file stave::file)
add_executable(every every.c)
target_link_libraries(every stave::stave)
add_executable(of_read of_read.c)
target_link_libraries(of_read stave::read)
add_executable(of_gpu of_gpu.c)
target_link_libraries(of_gpu stave::gpu)
add_executable(of_serving of_serving.c)
target_link_libraries(of_serving stave::serving)
C
find_package() {
  declared of_gpu gpu.h && declared of_serving serving.h || return 1
  cmake -S . -B b -DCMAKE_PREFIX_PATH="$prefix" >/dev/null && cmake --build b >/dev/null || return 1
  local program
  for program in file every of_read of_gpu of_serving; do b/$program || { echo "$program"; return 1; }; done
  says_version b/shared && LD_LIBRARY_PATH='' says_version b/archive
}
check find_package find_package
check find_package_links_only_what_is_used sh -c '[ "$(objdump -p b/shared | grep -c "NEEDED.*stave")" = 1 ]'
