/* Statements without what they are about: see redact.h. Called by files/redact.c.
 *
 * The dialect is not known: in MySQL double quotes hold texts, and a backslash takes the meaning
 * from the quote after it, in others neither. What could be a text goes, and where a backslash
 * stands before a quote so does all that follows. Comments go: they have names of users and
 * requests. */
#include "core/base/mem.h"
#include "files/redact.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

static const struct {
    const char *text;
    bool is_sure; /* else it is a name unless something is in quotes */
} words[] = {{"select", true},   {"insert", true},  {"update", true}, {"delete", true},
             {"with", true},     {"pragma", false}, {"call", false},  {"copy", false},
             {"create", false},  {"alter", false},  {"merge", false}, {"replace", false},
             {"execute", false}, {"set", false},    {"grant", false}, {"explain", false},
             {"values", false}};

/* Behind blanks, brackets and a comment. */
bool sv_redact_is_sql(const char *text, size_t len)
{
    size_t i = 0;
    while (i < len && (isspace((unsigned char)text[i]) || text[i] == '('))
        i++;
    if (i + 1 < len && text[i] == '/' && text[i + 1] == '*') {
        const char *end = memmem(text + i + 2, len - i - 2, "*/", 2);
        i = end ? (size_t)(end - text) + 2 : len;
        while (i < len && isspace((unsigned char)text[i]))
            i++;
    }
    for (size_t k = 0; k < sizeof words / sizeof *words; k++) {
        size_t n = strlen(words[k].text);
        if (len - i > n && strncasecmp(text + i, words[k].text, n) == 0 &&
            (isspace((unsigned char)text[i + n]) || memchr("(*/", text[i + n], 3)) &&
            (words[k].is_sure || memchr(text, '\'', len) || memchr(text, '"', len)))
            return true;
    }
    return false;
}

struct reader {
    const char *text;
    size_t len, at;
};

/* Behind the text in quotes that begins here; two quotes are one in it. */
static void pass_quotes(struct reader *r)
{
    char quote = r->text[r->at++];
    for (; r->at < r->len; r->at++) {
        if (r->text[r->at] == '\\' && r->at + 1 < r->len && r->text[r->at + 1] == quote) {
            r->at = r->len;
            return;
        }
        if (r->text[r->at] != quote)
            continue;
        if (r->at + 1 == r->len || r->text[r->at + 1] != quote)
            break;
        r->at++;
    }
    r->at += r->at < r->len;
}

/* $tag$ … $tag$. False: it is none. */
static bool pass_dollars(struct reader *r)
{
    size_t end = r->at + 1;
    while (end < r->len && (isalnum((unsigned char)r->text[end]) || r->text[end] == '_'))
        end++;
    if (end == r->len || r->text[end] != '$')
        return false;
    size_t n = end + 1 - r->at;
    const char *close = memmem(r->text + end + 1, r->len - end - 1, r->text + r->at, n);
    r->at = close ? (size_t)(close - r->text) + n : r->len;
    return true;
}

/* False: it is none. */
static bool pass_comment(struct reader *r)
{
    const char *at = r->text + r->at, *end;
    size_t left = r->len - r->at;
    if (left < 2)
        return false;
    if (memcmp(at, "/*", 2) == 0)
        end = memmem(at + 2, left - 2, "*/", 2);
    else if (memcmp(at, "--", 2) == 0)
        end = memchr(at, '\n', left);
    else
        return false;
    r->at = end ? (size_t)(end - r->text) + (*end == '*' ? 2 : 1) : r->len;
    return true;
}

char *sv_redact_sql(const char *text, size_t len, size_t *out_len)
{
    struct reader r = {.text = text, .len = len};
    char *to = sv_alloc(len + 1);
    size_t n = 0;
    while (r.at < len) {
        char c = text[r.at];
        bool after_word = r.at > 0 &&
                          (isalnum((unsigned char)text[r.at - 1]) || text[r.at - 1] == '_');
        if (c == '\'' || c == '"') {
            pass_quotes(&r);
            to[n++] = '?';
        } else if (isdigit((unsigned char)c) && !after_word) {
            while (r.at < len && (isalnum((unsigned char)text[r.at]) || text[r.at] == '.'))
                r.at++;
            to[n++] = '?';
        } else if (c == '$' && pass_dollars(&r)) {
            to[n++] = '?';
        } else if (pass_comment(&r)) {
            to[n++] = ' ';
        } else {
            to[n++] = text[r.at++];
        }
    }
    *out_len = n;
    return to;
}
