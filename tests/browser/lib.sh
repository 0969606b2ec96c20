# shellcheck shell=bash
# For tests of the page: `browse NAME` runs NAME.mjs beside the script; skips where node or a Chromium is missing.
set -uo pipefail
: "${SRC:?run me through tests/run}" "${STAVE:?}" "${TMP:?}"
browse() {
  [ -x "$STAVE" ] || { echo "not ok there_is_a_program: $STAVE is not built"; exit 1; }
  command -v node >/dev/null || { echo "node is not installed"; exit 77; }
  case $(node --version) in v1[0-7].*|v[0-9].*) echo "node $(node --version) is too old"; exit 77 ;; esac
  for browser in ${STAVE_CHROMIUM:-} chromium chromium-browser google-chrome; do
    if command -v "$browser" >/dev/null; then cd "$TMP" && exec node "$SRC/tests/browser/$1.mjs"; fi
  done
  echo "no Chromium is installed"
  exit 77
}
