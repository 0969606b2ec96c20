/* Globs as in a shell: * any run (also of '/'), ? one character, [a-z] one of a set, [!a-z] or
 * [^a-z] none of it, \x the character x itself. A '[' without its ']' is itself. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Does the whole text match? Characters are UTF-8; invalid bytes count as one each. Costs at most
 * len × the pattern's length. */
bool sv_glob_match(const char *pattern, const char *text, size_t len);
