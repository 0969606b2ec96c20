/* See record/when/parse.h. */
#include "record/when/parse.h"

#include "cli/command.h"
#include "core/base/mem.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *text;
    enum sv_when_op op;
} ops[] = {{">=", SV_GE}, {"<=", SV_LE}, {"==", SV_EQ}, {"!=", SV_NE}, {">", SV_GT}, {"<", SV_LT}};

static const struct {
    const char *text;
    double factor;
} times[] = {{"ns", 1},   {"us", 1e3},   {"ms", 1e6},  {"s", 1e9},
             {"m", 60e9}, {"min", 60e9}, {"h", 3600e9}},
  sizes[] = {{"K", 1024.0}, {"M", 1048576.0}, {"G", 1073741824.0}, {"T", 1099511627776.0}};

bool sv_when_failed(const struct sv_when_reader *r)
{
    return r->err->code != SV_OK;
}

static void skip_blanks(struct sv_when_reader *r)
{
    while (*r->at == ' ' || *r->at == '\t')
        r->at++;
}

/* What is there instead: a word, or one character. */
static int found_len(const char *at)
{
    int n = 0;
    while (n < 40 && (isalnum((unsigned char)at[n]) || at[n] == '_' || at[n] == '.'))
        n++;
    return n ? n : *at ? 1 : 0;
}

void sv_when_expect(struct sv_when_reader *r, const char *expected)
{
    if (sv_when_failed(r))
        return;
    skip_blanks(r);
    int len = found_len(r->at);
    if (len == 0)
        sv_error(r->err, SV_EUSAGE, "--when '%.200s': it ends too early: expected %s", r->text,
                 expected);
    else
        sv_error(r->err, SV_EUSAGE, "--when '%.200s': character %d, '%.*s': expected %s", r->text,
                 (int)(r->at - r->text) + 1, len, r->at, expected);
}

static bool is_word_char(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

bool sv_when_word(struct sv_when_reader *r, const char *word)
{
    size_t n = strlen(word);
    skip_blanks(r);
    if (sv_when_failed(r) || strncmp(r->at, word, n) != 0 ||
        (is_word_char(word[n - 1]) && is_word_char(r->at[n])))
        return false;
    r->at += n;
    return true;
}

bool sv_when_is_quote(struct sv_when_reader *r)
{
    skip_blanks(r);
    return *r->at == '\'' || *r->at == '"';
}

char *sv_when_quoted(struct sv_when_reader *r, const char *expected)
{
    if (!sv_when_is_quote(r) || sv_when_failed(r)) {
        sv_when_expect(r, expected);
        return NULL;
    }
    const char *end = strchr(r->at + 1, *r->at);
    if (!end || end == r->at + 1) {
        sv_when_expect(r, end ? "a text between the quotes" : "a text with a quote at its end");
        return NULL;
    }
    char *text = sv_strndup(r->at + 1, (size_t)(end - r->at) - 1);
    r->at = end + 1;
    return text;
}

char *sv_when_bare(struct sv_when_reader *r, const char *expected)
{
    if (sv_when_is_quote(r))
        return sv_when_quoted(r, expected);
    size_t n = strcspn(r->at, " \t");
    if (n == 0 || sv_when_failed(r)) {
        sv_when_expect(r, expected);
        return NULL;
    }
    char *text = sv_strndup(r->at, n);
    r->at += n;
    return text;
}

enum sv_when_op sv_when_compare(struct sv_when_reader *r, bool has_equal)
{
    skip_blanks(r);
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        size_t n = strlen(ops[i].text);
        bool is_equal = ops[i].op == SV_EQ || ops[i].op == SV_NE;
        if (strncmp(r->at, ops[i].text, n) != 0 || (is_equal && !has_equal))
            continue;
        r->at += n;
        return ops[i].op;
    }
    sv_when_expect(r, has_equal ? "==, !=, <, <=, > or >=" : "<, <=, > or >=");
    return SV_GT;
}

bool sv_when_is_number(struct sv_when_reader *r)
{
    skip_blanks(r);
    return isdigit((unsigned char)*r->at) || *r->at == '.' || *r->at == '-';
}

/* No exponent: its e could be the begin of a unit. */
double sv_when_number(struct sv_when_reader *r, const char *expected)
{
    double value = 0;
    if (sv_when_failed(r) || !sv_when_is_number(r)) {
        sv_when_expect(r, expected);
        return 0;
    }
    bool is_negative = *r->at == '-';
    const char *from = r->at + is_negative;
    size_t n = strspn(from, "0123456789.");
    if (n == 0 || n > 30 || sv_parse_number(from, n, &value) < 0) {
        sv_when_expect(r, expected);
        return 0;
    }
    r->at = from + n;
    return is_negative ? -value : value;
}

bool sv_when_time_of(struct sv_when_reader *r, double number, int64_t *ns)
{
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        if (!sv_when_word(r, times[i].text))
            continue;
        double all = number * times[i].factor;
        *ns = all >= 0 && all < 9e18 ? (int64_t)all : 0;
        return true;
    }
    return false;
}

int64_t sv_when_time(struct sv_when_reader *r)
{
    static const char expected[] = "a time such as 500ms, 30s or 2m";
    int64_t ns = 0;
    const char *from = r->at;
    double number = sv_when_number(r, expected);
    if (sv_when_failed(r))
        return 1;
    if (!sv_when_time_of(r, number, &ns) || ns <= 0) {
        r->at = from;
        sv_when_expect(r, expected);
    }
    return ns > 0 ? ns : 1;
}

double sv_when_quantity(struct sv_when_reader *r, bool per_second)
{
    double value = sv_when_number(r, per_second ? "a number per second such as 100/s"
                                                : "a number such as 10%, 2G or 0.5");
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (*r->at == sizes[i].text[0]) {
            value *= sizes[i].factor;
            r->at++;
            break;
        }
    if (*r->at == 'B')
        r->at++;
    if (*r->at == '%')
        r->at++;
    else if (strncmp(r->at, "/s", 2) == 0)
        r->at += 2;
    if (!sv_when_failed(r) && *r->at && *r->at != ' ' && *r->at != '\t')
        sv_when_expect(r, "one of the units %, K, M, G, T and /s, or a blank");
    return value;
}

void sv_when_end(struct sv_when_reader *r)
{
    skip_blanks(r);
    if (*r->at)
        sv_when_expect(r, "the end of the condition");
}

bool sv_when_holds(enum sv_when_op op, double value, double limit)
{
    switch (op) {
    case SV_GT: return value > limit;
    case SV_GE: return value >= limit;
    case SV_LT: return value < limit;
    case SV_LE: return value <= limit;
    case SV_EQ: return !(value < limit) && !(value > limit);
    default: return value < limit || value > limit;
    }
}

const char *sv_when_op_text(enum sv_when_op op)
{
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (ops[i].op == op)
            return ops[i].text;
    return "";
}
