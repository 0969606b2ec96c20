/* Arguments that hold a text: see search_args.h. Called by /api/search for the rows of a trace.
 *
 * Equal lists are stored once, so what was found out about the last ones is kept; the store looks
 * through most of them without decoding. Must not change the trace. */
#include "view/search_args.h"

#include "core/base/glob.h"
#include "core/base/mem.h"
#include "threads/workers.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { SEEN = 1 << 15 };

/* Any case; neither text is terminated. */
static bool contains(const char *text, size_t len, const char *word)
{
    size_t n = strlen(word);
    int lower = tolower((unsigned char)*word), upper = toupper((unsigned char)*word);
    for (size_t i = 0; n && i + n <= len; i++)
        if ((text[i] == (char)lower || text[i] == (char)upper) &&
            strncasecmp(text + i, word, n) == 0)
            return true;
    return false;
}

static bool text_matches(const void *ctx, const char *text, size_t len)
{
    const struct sv_arg_search *s = ctx;
    return s->is_glob ? sv_glob_match(s->text, text, len) : contains(text, len, s->text);
}

void sv_arg_search_init(struct sv_arg_search *s, const struct sv_trace *t, const char *text,
                        const uint8_t *is_match)
{
    *s = (struct sv_arg_search){
        .t = t, .text = text, .is_glob = strpbrk(text, "*?") != NULL, .is_match = is_match};
    char *end;
    errno = 0;
    s->number = strtoll(text, &end, 10);
    s->is_number = *text && !isspace((unsigned char)*text) && !*end && errno == 0;
    s->seen = sv_alloc(SEEN * sizeof *s->seen);
    s->lists = (struct sv_args_search){.is_text_hit = text_matches,
                                       .ctx = s,
                                       .key_hits = is_match,
                                       .is_number = s->is_number,
                                       .number = s->number};
    sv_batch_init(&s->scratch);
}

void sv_arg_search_fini(struct sv_arg_search *s)
{
    free(s->seen);
    free(s->lists.texts);
    free(s->lists.shapes);
    sv_batch_fini(&s->scratch);
}

static bool value_matches(const struct sv_arg_search *s, const struct sv_arg *a)
{
    if (a->type == SV_ARG_TEXT)
        return text_matches(s, a->text, a->size);
    bool is_whole = a->type == SV_ARG_INT || (a->type == SV_ARG_UINT && a->u <= INT64_MAX);
    return s->is_number && is_whole && a->i == s->number;
}

const struct sv_arg *sv_arg_search_find(struct sv_arg_search *s, uint32_t handle, sv_str *key)
{
    size_t n;
    sv_batch_reset(&s->scratch);
    const struct sv_arg *args = sv_trace_args(s->t, handle, &s->scratch, &n);
    *key = 0;
    for (size_t i = 0; i < n; i++) {
        *key = args[i].key ? args[i].key : *key;
        if ((args[i].key && s->is_match[args[i].key]) || value_matches(s, &args[i]))
            return &args[i];
    }
    return NULL;
}

bool sv_arg_search_has(struct sv_arg_search *s, uint32_t handle)
{
    sv_str key;
    if (handle == 0)
        return false;
    uint64_t *seen = &s->seen[handle % SEEN];
    if (*seen >> 1 != handle) {
        enum sv_args_hit hit = sv_trace_args_search(s->t, handle, &s->lists);
        bool is_hit = hit == SV_ARGS_UNSURE ? sv_arg_search_find(s, handle, &key) != NULL
                                            : hit == SV_ARGS_HIT;
        *seen = (uint64_t)handle << 1 | is_hit;
    }
    return *seen & 1;
}

/* ---- all slices ---- */

struct looking {
    const struct sv_trace *t;
    const char *text;
    const uint8_t *is_match;
    uint64_t *rows;
    size_t n_parts;
};

/* Parts begin at whole words of bits: nobody else writes there. */
static void look_at_part(void *ctx, size_t part)
{
    const struct looking *x = ctx;
    const struct sv_slices *c = &x->t->slices;
    struct sv_arg_search s;
    size_t from, to;
    sv_workers_share(((size_t)c->n + 63) / 64, part, x->n_parts, &from, &to);
    to = to * 64 < c->n ? to * 64 : (size_t)c->n;
    sv_arg_search_init(&s, x->t, x->text, x->is_match);
    for (size_t row = from * 64; row < to; row++)
        if (sv_arg_search_has(&s, c->args[row]))
            x->rows[row / 64] |= (uint64_t)1 << (row % 64);
    sv_arg_search_fini(&s);
}

void sv_arg_hits_init(struct sv_arg_hits *f)
{
    *f = (struct sv_arg_hits){0};
    pthread_mutex_init(&f->lock, NULL);
}

void sv_arg_hits_fini(struct sv_arg_hits *f)
{
    free(f->text);
    free(f->rows);
    pthread_mutex_destroy(&f->lock);
}

const uint64_t *sv_arg_hits_rows(struct sv_arg_hits *f, const struct sv_trace *t, const char *text,
                                 const uint8_t *is_match)
{
    enum { THREADS_FROM = 1 << 16 };
    if (f->text && strcmp(f->text, text) == 0)
        return f->rows;
    struct sv_workers *w = t->slices.n < THREADS_FROM ? NULL : sv_workers_new(0);
    struct looking x = {t, text, is_match, NULL, sv_workers_count(w)};
    free(f->text);
    free(f->rows);
    f->text = sv_strndup(text, strlen(text));
    f->rows = x.rows = sv_alloc(((size_t)t->slices.n / 64 + 1) * sizeof *x.rows);
    sv_workers_each(w, x.n_parts, look_at_part, &x);
    sv_workers_free(w);
    return f->rows;
}
