/* /api/search: slices by name. A name is compared once; then one pass over the column of names
 * finds the slices. */
#include "view/answers.h"

#include "core/base/glob.h"
#include "core/base/mem.h"

#include <stdlib.h>

#define HITS_MAX 10000

struct hit {
    int64_t ts_ns;
    uint32_t slice;
};

static int compare_hits(const void *a, const void *b)
{
    const struct hit *x = a, *y = b;
    if (x->ts_ns != y->ts_ns)
        return x->ts_ns < y->ts_ns ? -1 : 1;
    return x->slice < y->slice ? -1 : x->slice > y->slice;
}

struct finding {
    const struct sv_trace *t;
    uint8_t *is_match; /* by string */
    uint64_t total;
    /* The first ones in the order of time: a heap, the latest of them on top. */
    struct hit *hits;
    size_t n, max;
    /* Or the neighbour of a place. */
    bool has_place, is_next;
    struct hit place, best;
    bool has_best;
};

static void match_names(struct finding *f, const char *text)
{
    const struct sv_dict *d = f->t->dict;
    bool is_glob = strpbrk(text, "*?") != NULL;
    f->is_match = sv_alloc((size_t)d->n_strings + 1);
    for (uint32_t i = 1; i < d->n_strings; i++) {
        const char *name = sv_dict_text(d, i).bytes;
        f->is_match[i] = is_glob ? sv_glob_match(text, name, sv_dict_text(d, i).len)
                                 : strcasestr(name, text) != NULL;
    }
}

static void sink_top(struct finding *f)
{
    for (size_t at = 0;;) {
        size_t child = 2 * at + 1;
        if (child >= f->n)
            return;
        if (child + 1 < f->n && compare_hits(&f->hits[child], &f->hits[child + 1]) < 0)
            child++;
        if (compare_hits(&f->hits[child], &f->hits[at]) <= 0)
            return;
        struct hit h = f->hits[at];
        f->hits[at] = f->hits[child];
        f->hits[child] = h;
        at = child;
    }
}

static void keep_hit(struct finding *f, struct hit h)
{
    if (f->n < f->max) {
        size_t at = f->n++;
        f->hits[at] = h;
        for (; at && compare_hits(&f->hits[(at - 1) / 2], &f->hits[at]) < 0; at = (at - 1) / 2) {
            struct hit up = f->hits[(at - 1) / 2];
            f->hits[(at - 1) / 2] = f->hits[at];
            f->hits[at] = up;
        }
    } else if (f->max && compare_hits(&h, &f->hits[0]) < 0) {
        f->hits[0] = h;
        sink_top(f);
    }
}

static void see_hit(struct finding *f, struct hit h)
{
    f->total++;
    if (!f->has_place) {
        keep_hit(f, h);
        return;
    }
    int order = compare_hits(&h, &f->place);
    bool is_candidate = f->is_next ? order > 0 : order < 0;
    int to_best = f->has_best ? compare_hits(&h, &f->best) : 0;
    if (is_candidate && (!f->has_best || (f->is_next ? to_best < 0 : to_best > 0))) {
        f->best = h;
        f->has_best = true;
    }
}

static void scan(struct finding *f)
{
    const struct sv_slices *c = &f->t->slices;
    for (uint64_t i = 0; i < c->n; i++)
        if (f->is_match[c->name[i]])
            see_hit(f, (struct hit){c->ts_ns[i], (uint32_t)i});
}

/* How many hits come before the best one. */
static uint64_t count_before(const struct finding *f)
{
    const struct sv_slices *c = &f->t->slices;
    uint64_t n = 0;
    for (uint64_t i = 0; i < c->n; i++)
        n += f->is_match[c->name[i]] &&
             compare_hits(&(struct hit){c->ts_ns[i], (uint32_t)i}, &f->best) < 0;
    return n;
}

static void reply(struct sv_shown *s, struct finding *f, struct sv_web_answer *a)
{
    struct sv_json j;
    sv_json_init(&j, &a->body);
    sv_json_begin(&j, '{');
    sv_json_put(&j, "total", u64_text, f->total);
    if (f->has_best)
        sv_json_put(&j, "index", u64_text, count_before(f));
    sv_json_put(&j, "hits", begin, '[');
    if (f->has_best)
        sv_put_short(&j, s, f->best.slice);
    qsort(f->hits, f->n, sizeof *f->hits, compare_hits);
    for (size_t i = 0; i < f->n; i++)
        sv_put_short(&j, s, f->hits[i].slice);
    sv_json_end(&j);
    sv_json_end(&j);
}

void sv_answer_search(struct sv_shown *s, const struct sv_web_request *q, struct sv_web_answer *a)
{
    struct sv_ask ask;
    if (sv_ask_read(&ask, s, q, a)) {
        int64_t limit = ask.limit < 1 ? 200 : ask.limit > HITS_MAX ? HITS_MAX : ask.limit;
        struct finding f = {.t = s->trace,
                            .max = (size_t)limit,
                            .has_place = ask.has_slice || ask.has_at,
                            .is_next = strcmp(ask.to_word, "previous") != 0};
        f.hits = sv_alloc((size_t)limit * sizeof *f.hits);
        if (ask.has_slice)
            f.place = (struct hit){s->trace->slices.ts_ns[ask.slice], (uint32_t)ask.slice};
        else if (
            ask.has_at) /* at or after: nothing comes before slice 0 of an earlier nanosecond */
            f.place = (struct hit){ask.at_ns > INT64_MIN ? ask.at_ns - 1 : ask.at_ns, UINT32_MAX};
        match_names(&f, ask.text);
        scan(&f);
        reply(s, &f, a);
        free(f.is_match);
        free(f.hits);
    }
    sv_ask_fini(&ask);
}
