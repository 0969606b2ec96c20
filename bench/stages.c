/* What the stages cost: M events/s of each, next to a plain copy of the same events, so that ratios
 * of one run can be compared on a noisy machine. Prints `name value unit` lines.
 *
 *     bench/stages [MILLION EVENTS]        default 4 */
#include "core/stream/stages.h"
#include "core/stream/sorter.h"
#include "measure.h"
#include "store/filter.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TRACKS = 8, DEPTH = 4, ROUNDS = 3 };

static struct sv_dict *dict;
static sv_track tracks[TRACKS];

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    return *state ^= *state << 17;
}

/* Nested begins and ends on eight threads, in time order. */
static void make_edges(struct sv_event *events, size_t n)
{
    unsigned depth[TRACKS] = {0};
    uint64_t state = 1;
    for (size_t i = 0; i < n; i++) {
        uint64_t r = next_random(&state);
        size_t t = r % TRACKS;
        bool opens = depth[t] == 0 || (depth[t] < DEPTH && r >> 8 & 1);
        depth[t] += opens ? 1u : -1u;
        events[i] = (struct sv_event){.ts_ns = (int64_t)i * 50,
                                      .track = tracks[t],
                                      .kind = opens ? SV_BEGIN : SV_END,
                                      .name = opens ? 1 + (sv_str)(r >> 16 & 63) : 0};
    }
}

static void make_slices(struct sv_event *events, size_t n, bool overlap)
{
    uint64_t state = 2;
    for (size_t i = 0; i < n; i++) {
        uint64_t r = next_random(&state);
        int64_t dur_ns = overlap ? (int64_t)(r >> 20 & 2047) : (int64_t)(r >> 20 & 15);
        events[i] = (struct sv_event){.ts_ns = (int64_t)i * 50,
                                      .dur_ns = dur_ns,
                                      .track = tracks[r % TRACKS],
                                      .kind = SV_SLICE,
                                      .name = 1 + (sv_str)(r >> 8 & 63)};
    }
}

static void shuffle(struct sv_event *events, size_t n, size_t reach)
{
    uint64_t state = 3;
    for (size_t i = n; i > 1; i--) {
        size_t span = i < reach ? i : reach;
        size_t j = i - 1 - next_random(&state) % span;
        struct sv_event swap = events[i - 1];
        events[i - 1] = events[j];
        events[j] = swap;
    }
}

static const struct sv_arg two_args[] = {
    {.key = 1, .type = SV_ARG_INT, .i = 5},
    {.key = 2, .type = SV_ARG_TEXT, .size = 12, .text = "hello, world"}};

static void give_args(struct sv_event *events, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        events[i].args = events[i].kind == SV_END ? NULL : two_args;
        events[i].n_args = events[i].kind == SV_END ? 0 : 2;
    }
}

/* ---- the stages ---- */

struct copy_sink {
    struct sv_sink sink;
    struct sv_event *to;
};

static int copy_write(struct sv_sink *s, const struct sv_event *events, size_t n,
                      struct sv_err *err)
{
    struct copy_sink *c = (struct copy_sink *)s;
    (void)err;
    memcpy(c->to, events, n * sizeof *events);
    c->to += n;
    return 0;
}

static int copy_close(struct sv_sink *s, bool failed, struct sv_err *err)
{
    (void)failed;
    (void)err;
    free(s);
    return 0;
}

static struct sv_event *copy_to;

static struct sv_sink *make_copy(struct sv_sink *next)
{
    struct copy_sink *c = sv_alloc(sizeof *c);
    c->sink = (struct sv_sink){.write = copy_write, .close = copy_close};
    c->to = copy_to;
    next->close(next, false, NULL);
    return &c->sink;
}

static struct sv_sink *make_sort(struct sv_sink *next)
{
    return sv_sort_new(dict, (size_t)4 << 30, next);
}

static struct sv_sink *make_spill(struct sv_sink *next)
{
    return sv_sort_new(dict, (size_t)16 << 20, next);
}

static struct sv_sink *make_pair(struct sv_sink *next)
{
    return sv_pair_new(dict, NULL, next);
}

static struct sv_sink *make_split(struct sv_sink *next)
{
    return sv_split_new(dict, NULL, next);
}

static struct sv_sink *make_lanes(struct sv_sink *next)
{
    return sv_lanes_new(dict, NULL, next);
}

static struct sv_sink *make_filter(struct sv_sink *next)
{
    static const char *const names[] = {"*a*", "*b*"};
    struct sv_filter filter = SV_FILTER_ALL;
    filter.names = (struct sv_globs){.items = names, .n = 2};
    return sv_filter_new(dict, &filter, next);
}

static double run(struct sv_sink *(*make)(struct sv_sink *), const struct sv_event *events,
                  size_t n)
{
    double best = 0;
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct sv_tally tally = {0};
        struct sv_sink *s = make(sv_tally_new(&tally, NULL));
        struct sv_err err = {0};
        double start = clock_s(CLOCK_MONOTONIC);
        int code = 0;
        for (size_t i = 0; i < n && code == 0; i += SV_BATCH)
            code = s->write(s, events + i, n - i < SV_BATCH ? n - i : SV_BATCH, &err);
        int closed = s->close(s, code < 0, &err);
        if (code < 0 || closed < 0) {
            fprintf(stderr, "bench: %s\n", err.msg);
            exit(1);
        }
        double rate = (double)n / (clock_s(CLOCK_MONOTONIC) - start) / 1e6;
        best = rate > best ? rate : best;
    }
    return best;
}

static void print(const char *name, double rate)
{
    printf("%-34s %8.1f M events/s\n", name, rate);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    size_t n = (size_t)(argc > 1 ? strtod(argv[1], NULL) * 1e6 : 4e6);
    struct sv_event *events = sv_alloc((n + 1) * sizeof *events);
    copy_to = sv_alloc((n + 1) * sizeof *events);
    dict = sv_dict_new();
    for (size_t i = 0; i < TRACKS; i++)
        tracks[i] = sv_dict_thread(dict, 0, 1, (int64_t)i);
    for (unsigned i = 0; i < 70; i++) {
        char name[16];
        snprintf(name, sizeof name, "name %c%u", 'a' + (int)(i % 26), i);
        sv_dict_cstr(dict, name);
    }
    make_edges(events, n);
    print("copy", run(make_copy, events, n));
    print("sort, in order", run(make_sort, events, n));
    print("sort, in order, spilled", run(make_spill, events, n));
    print("pair", run(make_pair, events, n));
    print("filter by name", run(make_filter, events, n));
    shuffle(events, n, 1000);
    print("sort, nearly in order", run(make_sort, events, n));
    print("sort, nearly in order, spilled", run(make_spill, events, n));
    shuffle(events, n, n);
    print("sort, shuffled", run(make_sort, events, n));
    print("sort, shuffled, spilled", run(make_spill, events, n));
    make_edges(events, n);
    give_args(events, n);
    print("sort, in order, two arguments", run(make_sort, events, n));
    print("pair, two arguments", run(make_pair, events, n));
    make_slices(events, n, false);
    print("split, nested", run(make_split, events, n));
    make_slices(events, n, true);
    print("split, overlapping", run(make_split, events, n));
    print("lanes, overlapping", run(make_lanes, events, n));
    sv_dict_free(dict);
    free(copy_to);
    free(events);
    return 0;
}
