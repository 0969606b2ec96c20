/* Texts as fields of CSV: quoting by RFC 4180, nothing that a spreadsheet would run or a terminal
 * would obey, and a way back.
 *
 * Most texts are written as they are. Three rules for the others, each of which sv_csv_text_undo()
 * takes back:
 *   quoting   a field with a comma, a semicolon, a quote, a tab or a line break is quoted, its
 *             quotes are doubled
 *   escapes   a text with characters that core/base/printable.h does not print (line feed and tab
 *             excepted), or one that already holds
 *             \xNN, has them as \xNN, byte by byte, and its backslashes doubled
 *   guard     a text that a spreadsheet would take for a formula, because it begins with = + - @, a
 *             tab, a line feed or one of the
 *             wide forms of these signs, has a ' before it; so has one that begins with ' and then
 *             such a sign. A text that is
 *             a number, such as -5 or +1.5e3, is written as it is.
 * Numbers are not texts: callers write them themselves. */
#pragma once

#include "core/base/buf.h"

/* One field. */
void sv_buf_csv(struct sv_buf *b, const char *s, size_t len);
/* The same for files whose readers take line by line: always quoted, and a line feed is escaped,
 * too. */
void sv_buf_csv_line(struct sv_buf *b, const char *s, size_t len);

/* The text of a field whose quotes are off: takes guard and escapes back, in place. Returns its
 * length. */
size_t sv_csv_text_undo(char *field, size_t len);
/* Would it change anything? Lets callers keep what is not theirs to change. */
bool sv_csv_text_is_changed(const char *field, size_t len);
