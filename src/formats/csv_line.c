/* Lines of CSV files. Called by the readers of an inference server's files. It must not know what
 * the columns mean. */
#include "formats/csv_line.h"

#include "core/base/csv_text.h"
#include "core/base/mem.h"
#include "formats/lines.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* *to is where the text of a quoted field may be put. NULL: a quote is not closed. */
static const char *take_field(const char *p, const char *end, char **to, struct sv_text *field)
{
    if (p == end || *p != '"') {
        const char *start = p;
        while (p < end && *p != ',')
            p++;
        *field = (struct sv_text){start, (uint32_t)(p - start)};
        return p;
    }
    char *start = *to;
    for (p++; p < end; p++) {
        if (*p == '"') {
            if (p + 1 == end || p[1] != '"')
                break;
            p++;
        }
        *(*to)++ = *p;
    }
    if (p == end)
        return NULL;
    *field = (struct sv_text){start, (uint32_t)(*to - start)};
    return p + 1;
}

bool sv_csv_split(struct sv_csv_line *line, const char *p, size_t len)
{
    const char *end = p + len;
    size_t n = 0;
    line->n = 0;
    if (end > p && end[-1] == '\r')
        end--;
    line->texts = sv_grow(line->texts, &line->cap_texts, 2 * len + 1,
                          1); /* quoted ones, and once more as own texts */
    char *to = line->texts;
    while (n < SV_CSV_FIELDS_MAX) {
        p = take_field(p, end, &to, &line->fields[n]);
        if (!p)
            return false;
        n++;
        if (p == end) {
            line->n = n;
            line->n_texts = (size_t)(to - line->texts);
            return true;
        }
        if (*p != ',')
            return false;
        p++;
    }
    return false;
}

struct sv_text sv_csv_own_text(struct sv_csv_line *line, size_t field)
{
    struct sv_text t = line->fields[field];
    if (!sv_csv_text_is_changed(t.bytes, t.len))
        return t;
    assert(line->n_texts + t.len <= line->cap_texts);
    char *copy = line->texts + line->n_texts;
    memcpy(copy, t.bytes, t.len);
    line->n_texts += t.len;
    return (struct sv_text){copy, (uint32_t)sv_csv_text_undo(copy, t.len)};
}

void sv_csv_fini(struct sv_csv_line *line)
{
    free(line->texts);
    *line = (struct sv_csv_line){0};
}

static struct sv_text without_mark(struct sv_text t)
{
    bool has_mark = t.len >= 3 && memcmp(t.bytes, "\xef\xbb\xbf", 3) == 0;
    return has_mark ? (struct sv_text){t.bytes + 3, t.len - 3} : t;
}

void sv_csv_find(const struct sv_csv_line *head, const char *const *names, size_t n, int *place)
{
    for (size_t k = 0; k < n; k++) {
        place[k] = -1;
        for (size_t i = 0; i < head->n; i++)
            if (sv_text_is(i ? head->fields[i] : without_mark(head->fields[i]), names[k]))
                place[k] = (int)i;
    }
}

size_t sv_csv_missing(const char *const *names, const int *place, size_t n, char *out, size_t cap)
{
    size_t missing = 0, at = 0;
    out[0] = '\0';
    for (size_t k = 0; k < n; k++) {
        size_t len = strlen(names[k]);
        if (place[k] >= 0)
            continue;
        missing++;
        if (at + len + 3 < cap)
            at += (size_t)snprintf(out + at, cap - at, "%s%s", at ? ", " : "", names[k]);
    }
    return missing;
}
