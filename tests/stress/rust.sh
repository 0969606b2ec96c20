#!/usr/bin/env bash
# The crate in lib/rust, by cargo or by rustc alone: its tests, against the library of this build. A line per test.
set -uo pipefail
case $BUILD in *san) echo "the crate is tested with the plain libraries"; exit 77 ;; esac
if ! command -v cargo >/dev/null && ! command -v rustc >/dev/null; then echo "neither cargo nor rustc is installed (packages cargo, rustc)"; exit 77; fi
(rustc --version || cargo --version) >"$TMP/version" 2>&1 || { echo "rustc does not run: $(head -n 1 "$TMP/version")"; exit 77; }
cp -r "$SRC/lib/rust" "$TMP/crate" && rm -rf "$TMP/crate/target" "$TMP/crate/Cargo.lock" && cd "$TMP/crate" || exit 1
unset STAVE_TRACE_OUT FERRUM_TRACE_OUT
export STAVE_LIB_DIR=$BUILD CARGO_TARGET_DIR=$TMP/target TMPDIR=$TMP RUSTFLAGS=-Dwarnings CARGO_INCREMENTAL=0
ulimit -c 0
by_rustc() {
  local flags=(--edition 2021 -L "native=$BUILD" -l stave-file -L "$TMP/target" -C "link-arg=-Wl,-rpath,$BUILD" -Dwarnings) crate=(--extern "stave=$TMP/target/libstave.rlib")
  mkdir -p "$TMP/target/deps" "$TMP/target/examples" &&
    rustc "${flags[@]}" --crate-type rlib --crate-name stave src/lib.rs -o "$TMP/target/libstave.rlib" &&
    rustc "${flags[@]}" --test --crate-name stave src/lib.rs -o "$TMP/target/deps/unit" &&
    rustc "${flags[@]}" "${crate[@]}" examples/ends.rs -o "$TMP/target/examples/ends" &&
    rustc "${flags[@]}" "${crate[@]}" --test tests/ferrum.rs -o "$TMP/target/deps/ferrum" &&
    "$TMP/target/deps/unit" && "$TMP/target/deps/ferrum"
}
if command -v cargo >/dev/null && [ "${RUST_BY:-cargo}" = cargo ]; then
  { cargo build --offline --quiet --example ends && cargo test --offline --quiet --lib --tests -- --format pretty; } >"$TMP/out" 2>"$TMP/err" # what the library says must not tear the lines
else
  by_rustc >"$TMP/out" 2>"$TMP/err"
fi
code=$?
sed -nE 's/^test (.*) \.\.\. ok$/ok rust: \1/p; s/^test (.*) \.\.\. FAILED$/not ok rust: \1/p' "$TMP/out"
[ $code = 0 ] && [ "$(grep -c '\.\.\. ok$' "$TMP/out")" -ge 12 ] || { cat "$TMP/out" "$TMP/err"; exit 1; }
