/* Files of other tools that Stave does not read, although people will try: what they are, and what
 * to do with them. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* NULL: none of these. `head` is the beginning of the file, as a format's probe gets it. */
const char *sv_foreign_file(const uint8_t *head, size_t n);
