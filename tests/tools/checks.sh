#!/usr/bin/env bash
# tools/check-layers and tools/check-style find what they are there to find, and nothing in a clean tree.
. "$SRC/tests/harness/cli.sh"

# fresh_tree: a small tree of its own with our tools and two clean files.
fresh_tree() {
  rm -rf tree && mkdir -p tree/{core/base,src/store,src/cmd,include/stave} && cp -r "$SRC/tools" tree/ && cd tree || exit 2
  grep '^#' "$SRC/tools/style-exceptions" >tools/style-exceptions
  printf '/* What a clean header looks like. */\nstruct sv_twice {\n    int x;\n};\nint sv_clean(void);\n' >core/base/clean.h
  printf '/* What a clean file looks like: strcpy() in a comment. */\n#include "core/base/clean.h"\nstruct sv_twice;\n' >src/store/tidy.c
  cd ..
}

# finds NAME TOOL FILE WHAT: with the text of stdin in FILE, TOOL must fail and print a line `FILE:…WHAT…`.
finds() {
  local name=$1 tool=$2 file=$3 what=$4
  fresh_tree; cat >"tree/$file"
  if "tree/tools/$tool" >found 2>&1; then cat found; not_ok "$name"
  elif grep -qE "^$file:[0-9]+: .*$what" found; then ok "$name"
  else cat found; not_ok "$name"; fi
}
lines() { echo '/* Long. */'; yes '' | head -n "$1"; }
function_of() { printf '/* One function. */\nint sv_long(void)\n{\n'; yes '    ;' | head -n "$1"; echo '}'; }

fresh_tree
check layers_clean tree/tools/check-layers
check style_clean tree/tools/check-style
counted() { # each of these files has three lines of code
  fresh_tree; rm -r tree/core tree/src; mkdir -p tree/{core,lib,src,server,tests}
  printf '/* A comment\n * of two lines. */\n\nint a; /* code */\n// none\nchar *b = "/*";\nint c; /* begins\nint d; ends */\n' >tree/core/x.c
  printf '"""A text\nof two lines."""\n\n# none\na = 1  # code\nb = """\n"""\n' >tree/lib/x.py
  cp tree/core/x.c tree/server/x.h; cp tree/core/x.c tree/tests/x.c
  tree/tools/check-style | grep -x '9 lines of code in core, lib, src, server, include'
}
check counted counted

finds arrow check-layers core/base/up.c 'core/base/ must not include store/tidy.h' <<<'#include "store/tidy.h"'
finds arrow_spaced check-layers core/base/up.c 'core/base/ must not include' <<<'  #  include "cmd/x.h"'
finds api_stands_alone check-layers include/stave/x.h 'api/ must not include' <<<'#include "core/base/clean.h"'
finds base_knows_no_api check-layers core/base/up.c 'must not include stave' <<<'#include <stave/stave.h>'
finds parent check-layers src/store/up.c 'no \.\./' <<<'#include "../core/base/clean.h"'
finds threads check-layers src/store/t.c 'threads' <<<'#include <pthread.h>'

finds long_line_of_the_page check-style src/store/x.js 'code-width' < <(printf '// A page.\nconst x = [%s];\n' "$(seq -s, 60)")
finds long_file check-style core/base/x.c 'file-length' < <(lines 1000)
finds long_header check-style core/base/x.h 'header-length' < <(lines 300)
finds long_function check-style core/base/x.c 'function-length.*sv_long' < <(function_of 70)
finds opening check-style core/base/x.c 'opening' <<<'int x;'
finds banned check-style src/cmd/x.c 'banned.*strcpy' < <(printf '/* X. */\nvoid f(char *a) { strcpy(a, "b"); }\n')
finds prints check-style core/base/x.c 'prints.*printf' < <(printf '/* X. */\nvoid f(void) { printf("b"); }\n')
finds exits check-style core/base/x.c 'prints.*exit' < <(printf '/* X. */\nvoid f(void) { /* why */ exit(1); }\n')
finds setjmp check-style core/base/x.c 'setjmp' < <(printf '/* X. */\nvoid f(void) { bool is_first = setjmp(jump) == 0; }\n')
finds thread_local check-style core/base/x.c 'thread-local' < <(printf '/* X. */\nstatic _Thread_local int x;\n')
finds tab check-style core/base/x.c 'tab' < <(printf '/* X. */\n\tint x;\n')
finds trailing check-style core/base/x.c 'trailing' < <(printf '/* X. */\nint x; \n')
finds machine_path check-style core/base/x.c 'path' < <(printf '/* X. */\nchar *x = "%sjoe/x";\n' /home/)
finds tag_twice check-style src/store/x.h 'tag. sv_twice is defined in core/base/clean.h' < <(printf '/* X. */\nstruct sv_other;\nstruct sv_twice {\n    int x;\n};\n')
finds stale_excuse check-style tools/style-exceptions 'excuses nothing' <<<'prints core/base/x.c no such file'
finds no_reason check-style tools/style-exceptions 'needs its reason' <<<'prints core/base/x.c'

excused() {
  fresh_tree; function_of 80 >tree/core/base/x.c
  echo 'function-length core/base/x.c:sv_long a table in the shape of a function' >>tree/tools/style-exceptions
  tree/tools/check-style
}
check excused excused
