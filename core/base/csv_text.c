/* Texts as fields of CSV, there and back: the rules are in csv_text.h.
 *
 * Called by all writers of CSV (tables of commands, the format csv, the summary of an inference
 * server) and by the reader of that summary. It must not change numbers. */
#include "core/base/csv_text.h"

#include "core/base/printable.h"

#include <ctype.h>

static bool is_hex(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

/* \xNN */
static bool is_escape(const char *s, size_t len)
{
    return len >= 4 && s[0] == '\\' && s[1] == 'x' && is_hex(s[2]) && is_hex(s[3]);
}

static bool has_escape(const char *s, size_t len)
{
    for (size_t i = 0; i + 4 <= len; i++)
        if (is_escape(s + i, len - i))
            return true;
    return false;
}

static bool is_blank(char c)
{
    return c == '\n' || c == '\t';
}

/* Has the text a character that is not printed, or something that would read back as one? */
static bool needs_escapes(const char *s, size_t len, bool is_line)
{
    for (size_t i = 0; i < len;) {
        i += sv_printable_run(s + i, len - i);
        if (i < len && (!is_blank(s[i]) || (is_line && s[i] == '\n')))
            return true;
        i++;
    }
    return has_escape(s, len);
}

/* Digits with one point at most, an exponent after them; no sign. */
static bool is_plain_number(const char *s, size_t len)
{
    size_t i = 0, digits = 0, points = 0;
    for (; i < len && (isdigit((unsigned char)s[i]) || (s[i] == '.' && points == 0)); i++) {
        digits += s[i] != '.';
        points += s[i] == '.';
    }
    if (digits > 0 && i < len && (s[i] == 'e' || s[i] == 'E')) {
        i++;
        if (i < len && (s[i] == '-' || s[i] == '+'))
            i++;
        size_t first = i;
        while (i < len && isdigit((unsigned char)s[i]))
            i++;
        digits = i > first ? digits : 0;
    }
    return digits > 0 && i == len;
}

/* Does a spreadsheet see the beginning of a formula? */
static bool begins_formula(const char *s, size_t len)
{
    static const char *const signs[] = {
        "=",           "+", "-", "@", "\t", "\n", "\xef\xbc\x9d", "\xef\xbc\x8b", "\xef\xbc\x8d",
        "\xef\xbc\xa0"};
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        if (len >= strlen(signs[i]) && memcmp(s, signs[i], strlen(signs[i])) == 0)
            return true;
    return false;
}

static size_t guards(const char *s, size_t len)
{
    size_t n = 0;
    while (n < len && s[n] == '\'')
        n++;
    return n;
}

static bool needs_guard(const char *s, size_t len)
{
    size_t n = guards(s, len);
    if (!begins_formula(s + n, len - n))
        return false;
    return n > 0 || !((*s == '-' || *s == '+') && is_plain_number(s + 1, len - 1));
}

static bool needs_quotes(const char *s, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (strchr(",;\"\n\t", s[i]) && s[i])
            return true;
    return false;
}

static void add_escape(struct sv_buf *b, char c)
{
    sv_buf_byte(b, '\\');
    sv_buf_byte(b, 'x');
    sv_buf_byte(b, (uint8_t) "0123456789abcdef"[(uint8_t)c >> 4]);
    sv_buf_byte(b, (uint8_t) "0123456789abcdef"[c & 15]);
}

static void add_escaped(struct sv_buf *b, const char *s, size_t len, bool is_line)
{
    for (size_t i = 0; i < len;) {
        size_t n = sv_printable_length(s + i, len - i);
        if (s[i] == '\\' || s[i] == '"')
            sv_buf_byte(b, (uint8_t)s[i]); /* doubled */
        if (n || (is_blank(s[i]) && !(is_line && s[i] == '\n')))
            sv_buf_add(b, s + i, n ? n : 1);
        else
            add_escape(b, s[i]);
        i += n ? n : 1;
    }
}

static void add_verbatim(struct sv_buf *b, const char *s, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (s[i] == '"')
            sv_buf_byte(b, '"');
        sv_buf_byte(b, (uint8_t)s[i]);
    }
}

/* Most texts: one look is enough. */
static bool is_simple(const char *s, size_t len)
{
    if (len && !isalnum((unsigned char)*s) && (*s == '\'' || begins_formula(s, len)))
        return false;
    for (size_t i = 0; i < len; i++)
        if (s[i] < 0x20 || s[i] > 0x7e || s[i] == ',' || s[i] == ';' || s[i] == '"' || s[i] == '\\')
            return false;
    return true;
}

static void add_field(struct sv_buf *b, const char *s, size_t len, bool is_line)
{
    bool is_quoted = is_line || needs_quotes(s, len), is_escaped = needs_escapes(s, len, is_line);
    if (is_quoted)
        sv_buf_byte(b, '"');
    if (needs_guard(s, len) && !(is_line && s[guards(s, len)] == '\n'))
        sv_buf_byte(b, '\'');
    if (is_escaped)
        add_escaped(b, s, len, is_line);
    else if (is_quoted)
        add_verbatim(b, s, len);
    else
        sv_buf_add(b, s, len);
    if (is_quoted)
        sv_buf_byte(b, '"');
}

void sv_buf_csv(struct sv_buf *b, const char *s, size_t len)
{
    if (is_simple(s, len))
        sv_buf_add(b, s, len);
    else
        add_field(b, s, len, false);
}

void sv_buf_csv_line(struct sv_buf *b, const char *s, size_t len)
{
    add_field(b, s, len, true);
}

/* ---- back ---- */

static bool is_guarded(const char *s, size_t len)
{
    size_t n = guards(s, len);
    return n > 0 && begins_formula(s + n, len - n);
}

bool sv_csv_text_is_changed(const char *field, size_t len)
{
    return is_guarded(field, len) || has_escape(field, len);
}

static char value_of(char hex)
{
    return (char)(hex <= '9' ? hex - '0' : hex - 'a' + 10);
}

size_t sv_csv_text_undo(char *field, size_t len)
{
    size_t from = is_guarded(field, len), to = 0;
    bool is_escaped = has_escape(field, len);
    while (from < len) {
        if (is_escaped && is_escape(field + from, len - from)) {
            field[to++] = (char)(value_of(field[from + 2]) << 4 | value_of(field[from + 3]));
            from += 4;
            continue;
        }
        from += is_escaped && field[from] == '\\' && from + 1 < len && field[from + 1] == '\\';
        field[to++] = field[from++];
    }
    return to;
}
