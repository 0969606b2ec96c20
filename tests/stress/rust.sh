#!/usr/bin/env bash
# The crate in lib/rust, by cargo or by rustc alone: its tests, against the library of this build. A line per test.
set -uo pipefail
case $BUILD in *san) echo "the crate is tested with the plain libraries"; exit 77 ;; esac
if ! command -v cargo >/dev/null && ! command -v rustc >/dev/null; then echo "neither cargo nor rustc is installed (packages cargo, rustc)"; exit 77; fi
(rustc --version || cargo --version) >"$TMP/version" 2>&1 || { echo "rustc does not run: $(head -n 1 "$TMP/version")"; exit 77; }
cp -r "$SRC/lib/rust" "$TMP/crate" && rm -rf "$TMP/crate/target" "$TMP/crate/Cargo.lock" && cd "$TMP/crate" || exit 1
unset STAVE_TRACE_OUT FERRUM_TRACE_OUT
export STAVE_SESSION_DIR=$TMP/sessions STAVE_LIB_DIR=$BUILD CARGO_TARGET_DIR=$TMP/target TMPDIR=$TMP RUSTFLAGS=-Dwarnings CARGO_INCREMENTAL=0
ulimit -c 0
by_rustc() {
  local flags=(--edition 2021 -L "native=$BUILD" -l stave -l stave-file -L "$TMP/target" -C "link-arg=-Wl,-rpath,$BUILD" -Dwarnings) crate=(--extern "stave=$TMP/target/libstave.rlib")
  mkdir -p "$TMP/target/deps" "$TMP/target/examples" &&
    rustc "${flags[@]}" --crate-type rlib --crate-name stave src/lib.rs -o "$TMP/target/libstave.rlib" &&
    rustc "${flags[@]}" --test --crate-name stave src/lib.rs -o "$TMP/target/deps/unit" &&
    rustc "${flags[@]}" "${crate[@]}" examples/ends.rs -o "$TMP/target/examples/ends" &&
    rustc "${flags[@]}" "${crate[@]}" examples/scopes.rs -o "$TMP/target/examples/scopes" &&
    rustc "${flags[@]}" "${crate[@]}" --test tests/ferrum.rs -o "$TMP/target/deps/ferrum" &&
    "$TMP/target/deps/unit" && "$TMP/target/deps/ferrum"
}
if command -v cargo >/dev/null && [ "${RUST_BY:-cargo}" = cargo ]; then
  { cargo build --offline --quiet --example ends --example scopes && cargo test --offline --quiet --lib --tests -- --format pretty; } >"$TMP/out" 2>"$TMP/err" # what the library says must not tear the lines
else
  by_rustc >"$TMP/out" 2>"$TMP/err"
fi
code=$?
sed -nE 's/^test (.*) \.\.\. ok$/ok rust: \1/p; s/^test (.*) \.\.\. FAILED$/not ok rust: \1/p' "$TMP/out"
if ! [ $code = 0 ] || ! [ "$(grep -c '\.\.\. ok$' "$TMP/out")" -ge 12 ]; then cat "$TMP/out" "$TMP/err"; exit 1; fi

# Scopes in a .pftrace, and the same without a file.
say() { if [ "$1" = 0 ]; then echo "ok rust: $2"; else echo "not ok rust: $2: ${3:-}"; fi; }
scopes=$(find "$TMP/target" -name scopes -type f -perm -u+x | head -n 1)
"$scopes" 2>err; say $? "scopes without a file" "$(cat err)"
"$scopes" "$TMP/scopes.pftrace" 2>err; say $? "scopes into a file" "$(cat err)"
"$STAVE" query -q --to csv "$TMP/scopes.pftrace" "select name, category, depth, dur > 0, extract_arg(arg_set_id, 'layer'), extract_arg(arg_set_id, 'kind') from slice order by ts, depth" >out 2>err
[ "$(tail -n +2 out | tr '\n' ' ')" = 'forward,nn,0,1,, attention,nn,1,1,0,causal attention,nn,1,1,1,causal softmax,nn,2,1,, attention,nn,1,1,2,causal softmax,nn,2,1,, cache miss,io,0,0,, layer 7,nn,0,1,, panics?,nn,0,1,, ' ]
say $? "slices nest, end by return and panic" "$(cat out err)"

# With serde's traits: where cargo has the crates without a network (Debian: librust-serde-json-dev), or STAVE_CRATES names their folder.
crates=${STAVE_CRATES:-/usr/share/cargo/registry}
if ! command -v cargo >/dev/null || ! ls "$crates"/serde_json-[0-9]* >/dev/null 2>&1; then echo "skip rust: serde: no crate serde_json in $crates (package librust-serde-json-dev)"; exit; fi
mkdir -p serde/.cargo && printf '[source.crates-io]\nreplace-with = "here"\n[source.here]\ndirectory = "%s"\n' "$crates" >serde/.cargo/config.toml
(cd serde && cargo test --offline --quiet --tests -- --format pretty) >"$TMP/out" 2>"$TMP/err"; code=$?
sed -nE 's/^test (.*) \.\.\. ok$/ok rust: serde: \1/p; s/^test (.*) \.\.\. FAILED$/not ok rust: serde: \1/p' "$TMP/out"
[ $code = 0 ] && [ "$(grep -c '\.\.\. ok$' "$TMP/out")" = 5 ]; say $? "serde" "$(cat "$TMP/out" "$TMP/err")"
cargo build --offline --quiet --features serde >"$TMP/out" 2>&1; [ $? != 0 ] && grep -q 'the feature serde has a manifest of its own' "$TMP/out"; say $? "serde without its manifest" "$(cat "$TMP/out")"
