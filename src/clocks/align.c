/* The estimate from collectives: see align.h. Called by merge after all inputs have been read. */
#include "clocks/align.h"

#include "core/base/map.h"
#include "core/base/mem.h"
#include "core/base/sort.h"
#include "subjects/comm/words.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    ENDS_MAX = 8192, /* of an input: more would not make a median better */
    MATCHES_MIN = 3, /* fewer are chance */
    WINDOW_MIN = 16, /* differences in a window */
    WINDOWS_MAX = 64
};

/* ---- ends ---- */

static void learn_words(struct sv_ends *ends, const struct sv_dict *d)
{
    ends->n_searched = d->n_strings;
    ends->category = sv_dict_find_str(d, SV_CAT_COLLECTIVE, sizeof SV_CAT_COLLECTIVE - 1);
    ends->op = sv_dict_find_str(d, SV_COMM_OP, sizeof SV_COMM_OP - 1);
    ends->group = sv_dict_find_str(d, SV_COMM_GROUP, sizeof SV_COMM_GROUP - 1);
    ends->seq = sv_dict_find_str(d, SV_COMM_SEQ, sizeof SV_COMM_SEQ - 1);
}

/* The same number for the same collective on all ranks; 0: it is none, or does not say which, or
 * its members do not wait for each other. */
static uint64_t key_of(const struct sv_ends *ends, const struct sv_event *e)
{
    uint64_t key = 0;
    bool has_group = false, has_seq = false, waits = false;
    const struct sv_arg *end = e->args + e->n_args;
    for (const struct sv_arg *a = e->args; a < end; a = sv_arg_next(a)) {
        bool is_number = a->type == SV_ARG_INT || a->type == SV_ARG_UINT;
        if (a->key == ends->group && a->type == SV_ARG_TEXT) {
            key ^= sv_mix64(sv_hash_bytes(a->text, a->size, 1));
            has_group = true;
        } else if (a->key == ends->seq && is_number) {
            key ^= sv_mix64(a->u + 0x5e9);
            has_seq = true;
        } else if (a->key == ends->op && a->type == SV_ARG_TEXT) {
            enum sv_comm_op op = sv_comm_op_of(a->text, a->size);
            waits = sv_comm_op_waits_for_all(op);
            key ^= sv_mix64((uint64_t)op + 0x0b);
        }
    }
    return has_group && has_seq && waits ? sv_mix64(key) | 1ull << 63 : 0;
}

static void thin_out(struct sv_ends *ends)
{
    size_t n = 0;
    ends->mask = ends->mask << 1 | 1;
    for (size_t i = 0; i < ends->n; i++)
        if ((ends->all[i].key & ends->mask) == 0)
            ends->all[n++] = ends->all[i];
    ends->n = n;
}

void sv_ends_see(struct sv_ends *ends, const struct sv_dict *dict, const struct sv_event *e)
{
    int64_t end_ns;
    if (e->kind != SV_SLICE || e->n_args == 0 || e->cat == 0 || e->dur_ns < 0)
        return;
    if (ends->n_searched != dict->n_strings)
        learn_words(ends, dict);
    if (e->cat != ends->category || __builtin_add_overflow(e->ts_ns, e->dur_ns, &end_ns))
        return;
    uint64_t key = key_of(ends, e);
    if (key == 0 || key & ends->mask)
        return;
    SV_APPEND(ends->all, ends->n, ends->cap) = (struct sv_end){key, end_ns};
    while (ends->n >= ENDS_MAX && ends->mask != UINT64_MAX >> 2)
        thin_out(ends);
}

void sv_ends_fini(struct sv_ends *ends)
{
    free(ends->all);
    *ends = (struct sv_ends){0};
}

static int compare_ends(const void *a, const void *b)
{
    const struct sv_end *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return x->end_ns < y->end_ns ? -1 : x->end_ns > y->end_ns;
}

/* A collective that an input has twice is none that can be matched. */
static void tidy_input(struct sv_ends *ends)
{
    size_t n = 0;
    if (ends->n > 1)
        qsort(ends->all, ends->n, sizeof *ends->all, compare_ends);
    for (size_t i = 0, next; i < ends->n; i = next) {
        for (next = i + 1; next < ends->n && ends->all[next].key == ends->all[i].key; next++)
            ;
        if (next == i + 1)
            ends->all[n++] = ends->all[i];
    }
    ends->n = n;
}

/* ---- hosts ---- */

struct host {
    size_t first; /* input */
    struct sv_ends ends;
    bool is_placed;
};

struct match {
    int64_t at_ns, offset_ns; /* on the host's clock, and to the first host's */
};

struct alignment {
    const struct sv_align_input *inputs;
    size_t n;
    uint32_t clock;
    struct host *hosts;
    size_t n_hosts;
    struct sv_map known; /* key → end on the first host's clock */
    struct match *matches;
    int64_t *offsets; /* of one window */
    struct sv_relation *relations;
    size_t n_relations;
};

static bool to_clock(const struct sv_align_input *in, uint32_t clock, int64_t *ns)
{
    return sv_clocks_convert(in->clocks, in->clocks->trace_clock, clock, *ns, ns);
}

/* Of those that have collectives at all. */
static bool all_reach(const struct alignment *a, uint32_t clock, size_t *missing)
{
    for (size_t i = 0; i < a->n; i++) {
        int64_t ns = a->inputs[i].ends->n ? a->inputs[i].ends->all[0].end_ns : 0;
        if (a->inputs[i].ends->n && !to_clock(&a->inputs[i], clock, &ns)) {
            *missing = i;
            return false;
        }
    }
    return true;
}

/* The first of a host's ranks to leave a collective stands for the host: what delays one afterwards
 * is not the clock's. */
static void join_host(struct host *h)
{
    size_t n = 0;
    if (h->ends.n > 1)
        qsort(h->ends.all, h->ends.n, sizeof *h->ends.all, compare_ends);
    for (size_t i = 0; i < h->ends.n; i++)
        if (n == 0 || h->ends.all[n - 1].key != h->ends.all[i].key)
            h->ends.all[n++] = h->ends.all[i];
    h->ends.n = n;
}

static struct host *host_of(struct alignment *a, struct sv_map *numbers, size_t i)
{
    const struct sv_clock_owner *o = &a->inputs[i].owner;
    bool is_new;
    uint64_t key =
        sv_hash_bytes(o->times, strlen(o->times), sv_hash_bytes(o->boot, strlen(o->boot), 7));
    uint64_t *slot = sv_map_add(numbers, key, &is_new);
    if (is_new) {
        *slot = a->n_hosts;
        a->hosts[a->n_hosts++].first = i;
    }
    return &a->hosts[*slot];
}

static void gather(struct alignment *a)
{
    struct sv_map numbers = {0};
    a->hosts = sv_alloc((a->n + 1) * sizeof *a->hosts);
    for (size_t i = 0; i < a->n; i++) {
        const struct sv_ends *from = a->inputs[i].ends;
        struct host *h = host_of(a, &numbers, i);
        for (size_t k = 0; k < from->n; k++) {
            struct sv_end e = from->all[k];
            if (!to_clock(&a->inputs[i], a->clock, &e.end_ns))
                continue;
            h->ends.all = sv_grow(h->ends.all, &h->ends.cap, h->ends.n + 1, sizeof e);
            h->ends.all[h->ends.n++] = e;
        }
    }
    size_t most = 0;
    for (size_t k = 0; k < a->n_hosts; k++) {
        join_host(&a->hosts[k]);
        most = a->hosts[k].ends.n > most ? a->hosts[k].ends.n : most;
    }
    a->matches = sv_alloc((most + 1) * sizeof *a->matches);
    a->offsets = sv_alloc((most + 1) * sizeof *a->offsets);
    sv_map_fini(&numbers);
}

/* ---- the estimate ---- */

static int compare_matches(const void *a, const void *b)
{
    const struct match *x = a, *y = b;
    return x->at_ns < y->at_ns ? -1 : x->at_ns > y->at_ns;
}

static size_t match(const struct alignment *a, const struct host *h)
{
    size_t n = 0;
    for (size_t i = 0; i < h->ends.n; i++) {
        const uint64_t *end = sv_map_find(&a->known, h->ends.all[i].key);
        int64_t at = h->ends.all[i].end_ns, offset;
        if (end && !__builtin_sub_overflow((int64_t)*end, at, &offset))
            a->matches[n++] = (struct match){at, offset};
    }
    if (n > 1)
        qsort(a->matches, n, sizeof *a->matches, compare_matches);
    return n;
}

/* The median; half of the differences are between low and high. */
static struct sv_sync_round window(const struct alignment *a, size_t from, size_t to)
{
    size_t n = to - from;
    for (size_t i = 0; i < n; i++)
        a->offsets[i] = a->matches[from + i].offset_ns;
    qsort(a->offsets, n, sizeof *a->offsets, sv_compare_i64);
    int64_t first = a->matches[from].at_ns, last = a->matches[to - 1].at_ns, spread;
    if (__builtin_sub_overflow(a->offsets[n - 1 - n / 4], a->offsets[n / 4], &spread))
        spread = INT64_MAX;
    int64_t median = a->offsets[n / 2], low, high;
    if (__builtin_sub_overflow(median, spread / 2, &low))
        low = INT64_MIN;
    if (__builtin_add_overflow(median, spread / 2, &high))
        high = INT64_MAX;
    return (struct sv_sync_round){.at_ns = first +
                                           (int64_t)(((uint64_t)last - (uint64_t)first) / 2),
                                  .low_ns = low,
                                  .high_ns = high};
}

static void estimate(struct alignment *a, const struct host *h, size_t n, struct sv_relation *r)
{
    size_t n_windows = n / WINDOW_MIN;
    n_windows = n_windows > WINDOWS_MAX ? WINDOWS_MAX : n_windows ? n_windows : 1;
    *r = (struct sv_relation){.local = a->inputs[h->first].owner,
                              .reference = a->inputs[a->hosts[0].first].owner,
                              .is_estimate = true};
    for (size_t w = 0; w < n_windows; w++) {
        struct sv_sync_round round = window(a, w * n / n_windows, (w + 1) * n / n_windows);
        sv_relation_add(r, &round);
    }
}

/* What the host's collectives say about those that are placed later. */
static void learn(struct alignment *a, const struct host *h, const struct sv_relation *r)
{
    struct sv_sync sync = {0};
    bool is_new;
    if (r) {
        struct sv_sync_round *copy = sv_alloc(r->n * sizeof *copy);
        memcpy(copy, r->rounds, r->n * sizeof *copy);
        sv_sync_fit(&sync, copy, r->n);
        free(copy);
    }
    for (size_t i = 0; i < h->ends.n; i++) {
        int64_t end = h->ends.all[i].end_ns;
        if (sync.n && __builtin_add_overflow(end, sv_sync_at(&sync, end).offset_ns, &end))
            continue;
        uint64_t *slot = sv_map_add(&a->known, h->ends.all[i].key, &is_new);
        if (is_new)
            *slot = (uint64_t)end;
    }
    sv_sync_fini(&sync);
}

static bool place(struct alignment *a, struct host *h, struct sv_report *report)
{
    size_t n = match(a, h);
    if (n < MATCHES_MIN)
        return false;
    struct sv_relation *r = &a->relations[a->n_relations++];
    estimate(a, h, n, r);
    learn(a, h, r);
    h->is_placed = true;
    const struct sv_sync_round *middle = &r->rounds[r->n / 2];
    int64_t half = middle->high_ns / 2 - middle->low_ns / 2;
    if (report)
        sv_report_add(report, SV_NOTE, "host aligned by its collectives, which is an estimate", 1,
                      SV_NO_POS, "%s: %zu of them, half within %" PRId64 " ns", r->local.host, n,
                      half);
    return true;
}

static void place_all(struct alignment *a, struct sv_report *report)
{
    bool goes_on = true;
    a->relations = sv_alloc((a->n_hosts + 1) * sizeof *a->relations);
    a->hosts[0].is_placed = true;
    learn(a, &a->hosts[0], NULL);
    while (goes_on) {
        goes_on = false;
        for (size_t k = 1; k < a->n_hosts; k++)
            if (!a->hosts[k].is_placed)
                goes_on |= place(a, &a->hosts[k], report);
    }
    for (size_t k = 1; report && k < a->n_hosts; k++)
        if (!a->hosts[k].is_placed)
            sv_report_add(report, SV_NOTE, "host that shares too few collectives to be aligned", 1,
                          SV_NO_POS, "%s", a->inputs[a->hosts[k].first].name);
}

int sv_align(const struct sv_align_input *inputs, size_t n, struct sv_report *report,
             uint32_t *clock, struct sv_relation **out, size_t *n_out, struct sv_err *err)
{
    struct alignment a = {.inputs = inputs, .n = n, .clock = SV_CLOCK_BOOTTIME};
    size_t missing = 0;
    *out = NULL;
    *n_out = 0;
    for (size_t i = 0; i < n; i++)
        tidy_input(inputs[i].ends);
    if (!all_reach(&a, a.clock, &missing))
        a.clock = SV_CLOCK_REALTIME;
    if (!all_reach(&a, a.clock, &missing))
        return sv_error(err, SV_EUSAGE,
                        "--align: %.200s has neither boot time nor wall clock to align",
                        inputs[missing].name);
    gather(&a);
    place_all(&a, report);
    *clock = a.clock;
    *out = a.relations;
    *n_out = a.n_relations;
    for (size_t k = 0; k < a.n_hosts; k++)
        sv_ends_fini(&a.hosts[k].ends);
    sv_map_fini(&a.known);
    free(a.hosts);
    free(a.matches);
    free(a.offsets);
    return 0;
}
