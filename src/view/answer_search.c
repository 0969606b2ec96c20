/* /api/search: slices by name, and by their arguments where these are asked for. A name is compared
 * once, a list of arguments, too; then one pass over the columns finds the slices. */
#include "view/answers.h"

#include "core/base/glob.h"
#include "core/base/mem.h"
#include "view/search_args.h"

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
    uint8_t *is_match;          /* by string */
    struct sv_arg_search *args; /* NULL: by names only */
    const uint64_t *rows;       /* those whose arguments hold the text, a bit each */
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

static bool is_hit(const struct finding *f, uint64_t row)
{
    const struct sv_slices *c = &f->t->slices;
    return f->is_match[c->name[row]] || (f->rows && (f->rows[row / 64] >> (row % 64) & 1));
}

static void scan(struct finding *f)
{
    const struct sv_slices *c = &f->t->slices;
    for (uint64_t i = 0; i < c->n; i++)
        if (is_hit(f, i))
            see_hit(f, (struct hit){c->ts_ns[i], (uint32_t)i});
}

/* How many hits come before the best one. */
static uint64_t count_before(const struct finding *f)
{
    const struct sv_slices *c = &f->t->slices;
    uint64_t n = 0;
    for (uint64_t i = 0; i < c->n; i++)
        n += is_hit(f, i) && compare_hits(&(struct hit){c->ts_ns[i], (uint32_t)i}, &f->best) < 0;
    return n;
}

/* "path = /data/a": the argument of a slice that holds the text; "" where the name does. */
static void put_match(struct sv_json *j, const struct finding *f, uint32_t slice)
{
    enum { LONGEST = 300 };
    const struct sv_slices *c = &f->t->slices;
    struct sv_buf text;
    sv_str key;
    bool by_name = f->is_match[c->name[slice]];
    const struct sv_arg *arg = by_name ? NULL : sv_arg_search_find(f->args, c->args[slice], &key);
    sv_buf_init(&text, 1u << 16);
    if (arg) {
        struct sv_text name = sv_dict_text(f->t->dict, key);
        sv_buf_add(&text, name.bytes, name.len < LONGEST ? name.len : LONGEST);
        sv_buf_str(&text, " = ");
        if (arg->type == SV_ARG_TEXT)
            sv_buf_add(&text, arg->text, arg->size < LONGEST ? arg->size : LONGEST);
        else if (arg->type == SV_ARG_INT)
            sv_buf_i64(&text, arg->i);
        else if (arg->type == SV_ARG_UINT)
            sv_buf_u64(&text, arg->u);
        else
            sv_buf_str(&text, "…");
    }
    sv_json_text(j, sv_buf_cstr(&text), text.len);
    sv_buf_fini(&text);
}

/* Beside the hits, where arguments were looked at. */
static void put_matches(struct sv_json *j, const struct finding *f)
{
    if (!f->args)
        return;
    sv_json_put(j, "matches", begin, '[');
    if (f->has_best)
        put_match(j, f, f->best.slice);
    for (size_t i = 0; i < f->n; i++)
        put_match(j, f, f->hits[i].slice);
    sv_json_end(j);
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
    put_matches(&j, f);
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
        struct sv_arg_search args;
        if (ask.args) {
            sv_arg_search_init(&args, s->trace, ask.text, f.is_match);
            f.args = &args;
            pthread_mutex_lock(&s->found.lock);
            f.rows = sv_arg_hits_rows(&s->found, s->trace, ask.text, f.is_match);
        }
        scan(&f);
        reply(s, &f, a);
        if (f.args) {
            pthread_mutex_unlock(&s->found.lock);
            sv_arg_search_fini(&args);
        }
        free(f.is_match);
        free(f.hits);
    }
    sv_ask_fini(&ask);
}
