/* Text for people where the locale is C: the characters that Stave itself uses have words of ASCII,
 * others become \u{…}. Data for programs is never changed. Called by console.c and rows.c.
 *
 * Only a locale that was chosen counts: containers and services have none, and their terminals know
 * UTF-8. */
#include "cli/console.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool sv_locale_is_c(void)
{
    static int known; /* 1: ASCII, 2: UTF-8 */
    static const char *const variables[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    const char *locale = NULL;
    for (size_t i = 0; !known && i < sizeof variables / sizeof *variables; i++) {
        const char *value = getenv(variables[i]);
        if (!locale && value && *value)
            locale = value;
    }
    if (!known)
        known = locale && (strcmp(locale, "C") == 0 || strcmp(locale, "POSIX") == 0) ? 1 : 2;
    return known == 1;
}

static const struct {
    const char *text, *ascii;
} words[] = {{"…", "..."}, {"→", "->"}, {"←", "<-"}, {"↑", "^"}, {"↓", "v"},  {"·", "."},
             {"µ", "u"},   {"μ", "u"},  {"×", "x"},  {"–", "-"}, {"—", "--"}, {"−", "-"},
             {"≥", ">="},  {"≤", "<="}, {"±", "+-"}, {"•", "*"}, {"’", "'"},  {"“", "\""},
             {"”", "\""},  {"│", "|"},  {"─", "-"}};

static const char *word_for(const char *at, size_t len)
{
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strlen(words[i].text) == len && memcmp(words[i].text, at, len) == 0)
            return words[i].ascii;
    return NULL;
}

void sv_buf_ascii(struct sv_buf *b, const char *s, size_t len)
{
    for (size_t at = 0; at < len;) {
        uint8_t c = (uint8_t)s[at];
        size_t n = c < 0x80 ? 1 : c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc0 ? 2 : 1;
        n = n < len - at ? n : len - at;
        const char *word = c < 0x80 ? NULL : word_for(s + at, n);
        if (c < 0x80) {
            sv_buf_byte(b, c);
        } else if (word) {
            sv_buf_str(b, word);
        } else {
            uint32_t code = n == 1 ? c : c & (0x7fu >> n);
            char text[16];
            for (size_t i = 1; i < n; i++)
                code = code << 6 | ((uint8_t)s[at + i] & 0x3f);
            snprintf(text, sizeof text, n == 1 ? "\\x%02x" : "\\u{%x}", (unsigned)code);
            sv_buf_str(b, text);
        }
        at += n;
    }
}
