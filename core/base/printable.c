/* Printable text: which characters are kept, how the others are shown, and a printf that shows its
 * texts that way.
 *
 * Called by whatever prints for people: errors (core/base/err.c), the console and the tables of
 * cmd/. It must not be used for formats that programs read back. */
#include "core/base/printable.h"

#include "core/base/utf8.h"

#include <assert.h>
#include <stdio.h>

/* Characters that act on a terminal or turn the text around them: controls, separators of lines,
 * directions. */
static bool is_acting(uint32_t c)
{
    return c < 0x20 || (c >= 0x7f && c <= 0x9f) || c == 0x061c || c == 0x200e || c == 0x200f ||
           (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

size_t sv_printable_length(const char *s, size_t len)
{
    size_t n = sv_utf8_length(s, len);
    return n && !is_acting(sv_utf8_code_point(s, n)) ? n : 0;
}

size_t sv_printable_run(const char *s, size_t len)
{
    size_t i = 0, n = 1;
    while (i < len && n > 0) {
        bool is_plain = s[i] >= 0x20 && s[i] < 0x7f; /* most of most texts */
        n = is_plain ? 1 : sv_printable_length(s + i, len - i);
        i += n;
    }
    return i;
}

/* The escape of the character at s in out (at most 7 bytes with its end); *taken: bytes of s. */
static size_t escape(char out[8], const char *s, size_t len, size_t *taken)
{
    size_t n = sv_utf8_length(s, len);
    const char *shorts = "\n\t\r", *letters = "ntr";
    const char *at = *s ? strchr(shorts, *s) : NULL;
    *taken = n ? n : 1;
    if (at)
        return (size_t)snprintf(out, 8, "\\%c", letters[at - shorts]);
    if (n > 1)
        return (size_t)snprintf(out, 8, "\\u%04x", (unsigned)sv_utf8_code_point(s, n) & 0xffff);
    return (size_t)snprintf(out, 8, "\\x%02x", (unsigned)(unsigned char)*s);
}

void sv_buf_printable(struct sv_buf *b, const char *s, size_t len)
{
    for (size_t i = 0, n; i < len; i += n) {
        char text[8];
        n = sv_printable_run(s + i, len - i);
        if (n)
            sv_buf_add(b, s + i, n);
        else
            sv_buf_add(b, text, escape(text, s + i, len - i, &n));
    }
}

size_t sv_printable(char *out, size_t size, const char *s)
{
    size_t at = 0, len = strlen(s);
    assert(size > 0);
    for (size_t i = 0, n; i < len; i += n) {
        char text[8];
        const char *bytes = s + i;
        size_t n_out = n = sv_printable_length(s + i, len - i);
        if (n == 0) {
            n_out = escape(text, s + i, len - i, &n);
            bytes = text;
        }
        if (n_out >= size - at)
            break;
        memcpy(out + at, bytes, n_out);
        at += n_out;
    }
    out[at] = '\0';
    return at;
}

/* ---- printf ---- */

/* One conversion of a format: the text of it without '*', what '*' brought, and the type of its
 * argument. */
struct conversion {
    char text[40]; /* "%-13s" */
    size_t len;
    int width, precision; /* -1: none */
    bool is_left;
    char size; /* the length modifier: 0, 'h', 'l', 'L' for ll, 'z', 'j', 't' */
    char letter;
};

static void keep(struct conversion *c, char letter)
{
    assert(c->len + 1 < sizeof c->text);
    c->text[c->len++] = letter;
    c->text[c->len] = '\0';
}

/* Digits or '*'; -1 when there are none. */
static int take_number(struct conversion *c, const char **fmt, va_list *ap)
{
    int value = -1;
    if (**fmt == '*') {
        (*fmt)++;
        value = va_arg(*ap, int);
    } else {
        for (; **fmt >= '0' && **fmt <= '9'; (*fmt)++)
            value = (value < 0 ? 0 : value) * 10 + (**fmt - '0');
    }
    char digits[16];
    if (value >= 0)
        snprintf(digits, sizeof digits, "%d", value);
    for (const char *d = digits; value >= 0 && *d; d++)
        keep(c, *d);
    return value;
}

/* fmt is after the '%'; returns what follows the conversion. */
static const char *take_conversion(struct conversion *c, const char *fmt, va_list *ap)
{
    *c = (struct conversion){.width = -1, .precision = -1};
    keep(c, '%');
    for (; *fmt && strchr("-+ #0'", *fmt); fmt++) {
        c->is_left |= *fmt == '-';
        keep(c, *fmt);
    }
    c->width = take_number(c, &fmt, ap);
    if (*fmt == '.') {
        fmt++;
        keep(c, '.');
        c->precision = take_number(c, &fmt, ap);
        if (c->precision < 0)
            c->precision = 0;
    }
    for (; *fmt && strchr("hlzjt", *fmt); fmt++) {
        c->size = c->size == 'l' && *fmt == 'l' ? 'L' : *fmt;
        keep(c, *fmt);
    }
    c->letter = *fmt;
    keep(c, *fmt);
    return *fmt ? fmt + 1 : fmt;
}

static void add_text(struct sv_buf *b, const struct conversion *c, const char *s)
{
    size_t len = !s ? 0 : c->precision < 0 ? strlen(s) : strnlen(s, (size_t)c->precision);
    size_t start = b->len;
    sv_buf_printable(b, s ? s : "", len);
    size_t columns = sv_utf8_columns((const char *)b->data + start, b->len - start);
    size_t pad = c->width > 0 && (size_t)c->width > columns ? (size_t)c->width - columns : 0;
    size_t grown = b->len - start;
    for (size_t i = 0; i < pad; i++)
        sv_buf_byte(b, ' ');
    if (pad && !c->is_left && !b->failed) {
        memmove(b->data + start + pad, b->data + start, grown);
        memset(b->data + start, ' ', pad);
    }
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"

static void add_integer(struct sv_buf *b, const struct conversion *c, va_list *ap)
{
    switch (c->size) {
    case 'l': sv_buf_printf(b, c->text, va_arg(*ap, long)); break;
    case 'L': sv_buf_printf(b, c->text, va_arg(*ap, long long)); break;
    case 'z': sv_buf_printf(b, c->text, va_arg(*ap, size_t)); break;
    case 'j': sv_buf_printf(b, c->text, va_arg(*ap, intmax_t)); break;
    case 't': sv_buf_printf(b, c->text, va_arg(*ap, ptrdiff_t)); break;
    default: sv_buf_printf(b, c->text, va_arg(*ap, int)); break;
    }
}

static void add_conversion(struct sv_buf *b, const struct conversion *c, va_list *ap)
{
    char letter;
    switch (c->letter) {
    case '%': sv_buf_byte(b, '%'); break;
    case 's': add_text(b, c, va_arg(*ap, const char *)); break;
    case 'c':
        letter = (char)va_arg(*ap, int);
        sv_buf_printable(b, &letter, 1);
        break;
    case 'p': sv_buf_printf(b, c->text, va_arg(*ap, void *)); break;
    case 'd':
    case 'i':
    case 'u':
    case 'x':
    case 'X':
    case 'o': add_integer(b, c, ap); break;
    case 'f':
    case 'e':
    case 'g':
    case 'E':
    case 'G': sv_buf_printf(b, c->text, va_arg(*ap, double)); break;
    default: assert(false && "a conversion that printable formats know");
    }
}

#pragma GCC diagnostic pop

void sv_buf_printable_vformat(struct sv_buf *b, const char *fmt, va_list ap)
{
    va_list args;
    va_copy(args, ap);
    while (*fmt) {
        size_t n = strcspn(fmt, "%");
        sv_buf_add(b, fmt, n);
        fmt += n;
        if (*fmt) {
            struct conversion c;
            fmt = take_conversion(&c, fmt + 1, &args);
            add_conversion(b, &c, &args);
        }
    }
    va_end(args);
}

void sv_buf_printable_format(struct sv_buf *b, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    sv_buf_printable_vformat(b, fmt, ap);
    va_end(ap);
}
