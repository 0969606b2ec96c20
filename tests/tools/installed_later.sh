#!/usr/bin/env bash
# A package that is installed after the first configuration is found by the next build in the same folder, and only what uses it is compiled
# again: `make`, then `make server`. Nothing is compiled here; the packages are descriptions for pkg-config in a folder of our own.
. "$SRC/tests/harness/cli.sh"
case $BUILD in */build) ;; *) skip_all "once is enough" ;; esac
for module in grpc_unsecure starpu-1.3 ompi-c openblas OpenCL libmicrohttpd; do
  pkg-config --exists $module || skip_all "no $module (tools/install-deps server)"
done

mkdir all some
IFS=: read -ra folders < <(pkg-config --variable pc_path pkg-config)
for folder in "${folders[@]}"; do if [ -d "$folder" ]; then cp -L "$folder"/*.pc all/ 2>/dev/null; fi; done
cp all/* some/; rm -f some/{grpc,starpu,ompi}*.pc
export PKG_CONFIG_LIBDIR=$TMP/some

commands() { ninja -C b -t commands all 2>/dev/null | grep ' -c ' | sort; }
run_any first 0 cmake --preset release -S "$SRC" -B "$TMP/b"
commands >before
for name in 'grpc: absent' 'mpi: absent' 'stave-server: left out'; do check "says_that ${name}" grep -q "$name" first.err; done
run_any no_server 1 ninja -C b server
check says_what_the_server_needs grep -q 'make server installs them' no_server.out
check nothing_uses_it test "$(grep -c SV_HAVE_GRPC before)" = 0

cp all/{grpc,starpu,ompi}*.pc some/
run_any again 0 ninja -C b build.ninja
check configures_again grep -q Re-running again.out
commands >after
check uses_it grep -q SV_HAVE_GRPC=1 after
check makes_the_server grep -q 'server/run/http_front' after
check makes_the_injection grep -q 'lib/inject/mpi' after
# Of what was there before, the part that talks gRPC.
changed() { comm -23 before after | grep -oE '[^ ]+\.c$' | grep -v '/src/net/'; [ "$(comm -23 before after | wc -l)" -gt 0 ]; }
others() { local n; n=$(comm -23 before after | grep -cv '/src/net/[^ ]*\.c'); comm -23 before after | tail -n 3; echo "$n others"; [ "$n" = 0 ]; }
check compiles_that_again changed
check compiles_nothing_else_again others
run_any settled 0 ninja -C b build.ninja
check is_settled sh -c '! grep -q Re-running settled.out'
