/* Text for people: what may go to a terminal as it is, and what is shown as an escape.
 *
 * Every byte that a trace, a session, a file name or another process brought passes through here
 * before a person sees it, so that it can neither move the cursor nor begin a line of its own.
 * Valid UTF-8 text is kept. Shown as escapes are
 *   \n \t \r          line feed, tab, carriage return
 *   \x1b              other C0 controls, DEL, and bytes that are not UTF-8
 *   \u009b \u202e     C1 controls, line and paragraph separators, marks that turn the direction of
 *                     the text
 * A backslash stays one, so text that was escaped once does not change when it is escaped again.
 * Formats that are read back (JSON, the canonical text, CSV) have their own, reversible rules. */
#pragma once

#include "core/base/buf.h"

#include <stdarg.h>
#include <stddef.h>

/* Bytes of the character at s (1..4) if it may be printed as it is; 0: it has to be escaped. */
size_t sv_printable_length(const char *s, size_t len);

/* Bytes at the start of s that may be printed as they are: whole characters, 0 … len. */
size_t sv_printable_run(const char *s, size_t len);

/* Appends the printable form. */
void sv_buf_printable(struct sv_buf *b, const char *s, size_t len);

/* The same into an array of `size` bytes, terminated, cut at a whole character. Does not allocate.
 * Returns the length. */
size_t sv_printable(char *out, size_t size, const char *s);

/* printf into the buffer: the format is our own text and is kept, texts that %s brings become
 * printable and are padded by columns. %n and numbered arguments are not known. */
void sv_buf_printable_format(struct sv_buf *b, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void sv_buf_printable_vformat(struct sv_buf *b, const char *fmt, va_list ap)
    __attribute__((format(printf, 2, 0)));
