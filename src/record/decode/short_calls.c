/* See record/decode/short_calls.h. Called by the probe of system calls and by the recorder. */
#include "record/decode/short_calls.h"

#include "core/base/map.h"
#include "core/base/mem.h"
#include "record/decode/state.h"

#include <stdlib.h>
#include <string.h>

enum { ROWS_MAX = SV_TABLE(1 << 16, 64) };
#define SECOND_NS ((int64_t)1000000000)

struct row {
    struct sv_short_call sum; /* its path is ours */
    uint64_t n, n_failed;
    int64_t second, time_ns, longest_ns;
    uint64_t key;
};

struct sv_short_calls {
    struct sv_source source;
    struct sv_decode *decode;
    struct row *rows;
    size_t n, cap;
    uint64_t n_calls;     /* all that were added */
    struct sv_map by_key; /* hash → index + 1 */
    size_t at;            /* of the source */
    int64_t until_ns;
    char **paths; /* of the last batch, which points to them */
    size_t n_paths, cap_paths;
    sv_str row_name, cat, failed, time, longest, since;
};

static int64_t second_of(int64_t ts_ns)
{
    return ts_ns / SECOND_NS - (ts_ns % SECOND_NS < 0);
}

static bool is_same(const struct row *r, const struct sv_short_call *c, int64_t second)
{
    return r->second == second && r->sum.process == c->process && r->sum.name == c->name &&
           !r->sum.path == !c->path && r->sum.path_len == c->path_len &&
           (!c->path || memcmp(r->sum.path, c->path, c->path_len) == 0);
}

/* Hashes of different things may be equal: the next number is tried then. */
static struct row *find(struct sv_short_calls *s, const struct sv_short_call *c, int64_t second)
{
    uint64_t key = sv_mix64(sv_mix64((uint64_t)second ^ (uint64_t)c->process << 32) ^ c->name);
    if (c->path)
        key = sv_hash_bytes(c->path, c->path_len, key);
    for (;; key++) {
        uint64_t *at = sv_map_find(&s->by_key, key);
        if (at && is_same(&s->rows[*at - 1], c, second))
            return &s->rows[*at - 1];
        if (at)
            continue;
        if (s->n >= ROWS_MAX && c->path)
            return NULL;
        bool is_new;
        *sv_map_add(&s->by_key, key, &is_new) = s->n + 1;
        struct row *r = &SV_APPEND(s->rows, s->n, s->cap);
        *r = (struct row){.sum = *c, .second = second, .key = key};
        r->sum.path = c->path ? sv_strndup(c->path, c->path_len) : NULL;
        r->sum.bytes = 0;
        return r;
    }
}

void sv_short_calls_add(struct sv_short_calls *s, const struct sv_short_call *c)
{
    struct row *r = find(s, c, second_of(c->end_ns));
    if (!r) {
        struct sv_short_call other = *c;
        other.path = NULL;
        other.path_len = 0;
        r = find(s, &other, second_of(c->end_ns));
    }
    int64_t took = c->end_ns - c->start_ns;
    s->n_calls++;
    r->n++;
    r->n_failed += c->failed;
    r->sum.bytes += c->bytes;
    r->time_ns += took;
    r->longest_ns = took > r->longest_ns ? took : r->longest_ns;
    r->sum.start_ns = c->start_ns < r->sum.start_ns ? c->start_ns : r->sum.start_ns;
    r->sum.end_ns = c->end_ns > r->sum.end_ns ? c->end_ns : r->sum.end_ns;
}

uint64_t sv_short_calls_summed(const struct sv_short_calls *s)
{
    return s ? s->n_calls : 0;
}

static void put(struct sv_short_calls *s, struct sv_batch *b, const struct row *r)
{
    const struct sv_kernel_words *w = &s->decode->words;
    struct sv_dict *d = s->source.dict;
    sv_track track = sv_dict_child(d, r->sum.process, SV_TRACK_CUSTOM, s->row_name);
    struct sv_event *e = sv_batch_put(b, SV_INSTANT, r->sum.end_ns, track, r->sum.name, s->cat);
    if (r->sum.path)
        sv_decode_path(b, w->path, r->sum.path, r->sum.path_len);
    sv_batch_int(b, w->count, (int64_t)r->n);
    if (r->sum.bytes)
        sv_batch_int(b, w->bytes, (int64_t)r->sum.bytes);
    if (r->n_failed)
        sv_batch_int(b, s->failed, (int64_t)r->n_failed);
    sv_batch_int(b, s->time, r->time_ns);
    sv_batch_int(b, s->longest, r->longest_ns);
    sv_batch_int(b, s->since, r->sum.end_ns - r->sum.start_ns);
    sv_batch_finish(b, e);
}

static void drop_paths(struct sv_short_calls *s)
{
    while (s->n_paths > 0)
        free(s->paths[--s->n_paths]);
}

/* The last row takes its place. */
static void take_out(struct sv_short_calls *s, size_t i)
{
    sv_map_remove(&s->by_key, s->rows[i].key);
    if (s->rows[i].sum.path)
        SV_APPEND(s->paths, s->n_paths, s->cap_paths) = (char *)(uintptr_t)s->rows[i].sum.path;
    s->n--;
    if (i == s->n)
        return;
    s->rows[i] = s->rows[s->n];
    *sv_map_find(&s->by_key, s->rows[i].key) = i + 1;
}

static int next(struct sv_source *source, struct sv_batch *b, struct sv_err *err)
{
    struct sv_short_calls *s = (struct sv_short_calls *)source;
    (void)err;
    drop_paths(s);
    while (s->at < s->n && b->n < SV_BATCH) {
        if ((s->rows[s->at].second + 1) * SECOND_NS > s->until_ns) {
            s->at++;
            continue;
        }
        put(s, b, &s->rows[s->at]);
        take_out(s, s->at);
    }
    return (int)b->n;
}

static void close_source(struct sv_source *source)
{
    (void)source; /* sv_short_calls_free() */
}

struct sv_source *sv_short_calls_source(struct sv_short_calls *s, int64_t until_ns)
{
    s->at = 0;
    s->until_ns = until_ns;
    return &s->source;
}

struct sv_short_calls *sv_short_calls_new(struct sv_decode *decode)
{
    struct sv_short_calls *s = sv_alloc(sizeof *s);
    struct sv_dict *d = decode->source.dict;
    s->decode = decode;
    s->source = (struct sv_source){
        .next = next, .close = close_source, .gives = SV_IN_TRACK_ORDER, .dict = d};
    s->row_name = sv_dict_cstr(d, SV_ROW_SHORT_CALLS);
    s->cat = sv_dict_cstr(d, SV_CAT_CALL_SUM);
    s->failed = sv_dict_cstr(d, "failed");
    s->time = sv_dict_cstr(d, "time_ns");
    s->longest = sv_dict_cstr(d, "longest_ns");
    s->since = sv_dict_cstr(d, "span_ns");
    return s;
}

void sv_short_calls_free(struct sv_short_calls *s)
{
    if (!s)
        return;
    drop_paths(s);
    for (size_t i = 0; i < s->n; i++)
        free((char *)(uintptr_t)s->rows[i].sum.path);
    free(s->paths);
    free(s->rows);
    sv_map_fini(&s->by_key);
    free(s);
}
