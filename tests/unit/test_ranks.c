/* Ranks and machines of tracks: in one file, in merged ones, in those merged again; through the
 * formats. */
#include "clocks/merge.h"
#include "store/ranks.h"

#include "core/stream/launched.h"
#include "core/stream/machine.h"
#include "tests/harness/gen_events.h"
#include "tests/harness/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct part {
    const char *name, *rank, *host, *boot;
    int64_t pid;
};

/* A slice on the process, one on its thread, and one on a track of the machine. */
struct short_source {
    struct sv_source source;
    sv_track tracks[3];
    size_t at;
};

static int short_next(struct sv_source *s, struct sv_batch *b, struct sv_err *err)
{
    struct short_source *x = (struct short_source *)s;
    (void)err;
    if (x->at == TEST_COUNT(x->tracks))
        return 0;
    struct sv_event *e = sv_batch_event(b);
    *e = (struct sv_event){
        .kind = SV_SLICE, .ts_ns = 100 + (int64_t)x->at, .dur_ns = 5, .track = x->tracks[x->at++]};
    return 1;
}

static void short_close(struct sv_source *s)
{
    free(s);
}

static void set_meta(struct sv_dict *d, const char *key, const char *value)
{
    if (value)
        sv_dict_set_meta(d, key, value, strlen(value), false);
}

static struct sv_dict *part_dict(const struct part *p)
{
    struct sv_dict *d = sv_dict_new();
    d->clocks.trace_clock = SV_CLOCK_REALTIME;
    set_meta(d, SV_META_RANK, p->rank);
    set_meta(d, SV_META_HOST, p->host);
    set_meta(d, SV_META_BOOT, p->boot);
    set_meta(d, SV_META_WORLD_SIZE, p->rank ? "4" : NULL);
    return d;
}

static struct sv_source *part_source(struct sv_dict *d, int64_t pid)
{
    struct short_source *x = sv_alloc(sizeof *x);
    x->source = (struct sv_source){
        .next = short_next, .close = short_close, .gives = SV_HAS_SLICES, .dict = d};
    x->tracks[0] = sv_dict_process(d, 0, pid);
    x->tracks[1] = sv_dict_thread(d, 0, pid, pid);
    x->tracks[2] = sv_dict_child(d, 0, SV_TRACK_CUSTOM, sv_dict_cstr(d, "Disks"));
    return &x->source;
}

/* The parts as one trace. */
static struct sv_trace *merged(const struct part *parts, size_t n)
{
    struct sv_merge *m = sv_merge_new(&(struct sv_merge_options){0});
    struct sv_err err = {0};
    struct sv_source *source = NULL;
    for (size_t i = 0; i < n; i++) {
        struct sv_dict *d = part_dict(&parts[i]);
        struct sv_merge_input in = {.name = parts[i].name, .dict = d};
        CHECK_INT_EQ(sv_merge_add(m, &in, part_source(d, parts[i].pid), NULL, &err), 0);
    }
    struct sv_dict *dict = sv_dict_new();
    struct sv_trace *t = sv_trace_new(dict, NULL, 0);
    CHECK_INT_EQ(sv_merge_source(m, dict, NULL, &source, &err), 0);
    CHECK_INT_EQ(sv_pump(source, sv_trace_sink(t), NULL, &err), 0);
    return t;
}

static void drop(struct sv_trace *t)
{
    struct sv_dict *d = t->dict;
    sv_trace_free(t);
    sv_dict_free(d);
}

static sv_track process_with(const struct sv_dict *d, int64_t pid)
{
    for (sv_track t = 1; t < d->n_tracks; t++)
        if (d->tracks[t].kind == SV_TRACK_PROCESS && d->tracks[t].pid == pid)
            return t;
    return 0;
}

static sv_track thread_with(const struct sv_dict *d, int64_t tid)
{
    for (sv_track t = 1; t < d->n_tracks; t++)
        if (d->tracks[t].kind == SV_TRACK_THREAD && d->tracks[t].tid == tid)
            return t;
    return 0;
}

TEST(one_file)
{
    const struct part p = {"a", "3", "alpha", "b1", 7};
    struct sv_trace *t = merged(&p, 1);
    sv_track thread = thread_with(t->dict, 7);
    CHECK_INT_EQ(sv_rank_of_track(t, thread), 3);
    CHECK_STR_EQ(sv_host_of_track(t, thread), "alpha");
    CHECK_STR_EQ(sv_boot_of_track(t, thread), "b1");
    struct sv_origin o = sv_origin_of(t->dict, 0);
    CHECK_INT_EQ(o.world_size, 4);
    CHECK_INT_EQ(o.local_rank, -1);
    CHECK(o.job == NULL);
    CHECK_INT_EQ(sv_rank_of_track(t, 4000000), 3); /* no such track */
    drop(t);
}

TEST(merged_files)
{
    /* two ranks of one machine, one of another, and a file that names no rank */
    static const struct part parts[] = {{"r0", "0", "alpha", "b1", 10},
                                        {"r1", "1", "alpha", "b1", 11},
                                        {"r2", "2", "beta", "b2", 12},
                                        {"sys", NULL, "beta", "b2", 13}};
    static const char *const hosts[] = {"alpha", "alpha", "beta", "beta"};
    struct sv_trace *t = merged(parts, TEST_COUNT(parts));
    for (int i = 0; i < 4; i++) {
        CONTEXT("part %d", i);
        sv_track thread = thread_with(t->dict, 10 + i);
        CHECK(thread != 0);
        CHECK_INT_EQ(sv_rank_of_track(t, thread), i < 3 ? i : -1);
        CHECK_INT_EQ(sv_rank_of_track(t, process_with(t->dict, 10 + i)), i < 3 ? i : -1);
        CHECK_STR_EQ(sv_host_of_track(t, thread), hosts[i]);
        CHECK_INT_EQ(sv_origin_of(t->dict, thread).world_size, 4);
    }
    /* The disks of alpha belong to both of its ranks, so to none. */
    for (sv_track k = 1; k < t->dict->n_tracks; k++)
        if (t->dict->tracks[k].parent == 0 && t->dict->tracks[k].kind == SV_TRACK_CUSTOM)
            CHECK_INT_EQ(sv_rank_of_track(t, k), -1);
    drop(t);
}

/* A library's file names the rank of a process that the file of the machine describes, too. */
TEST(a_rank_joins_a_process_without_one)
{
    static const struct part parts[] = {{"a", NULL, "alpha", "b1", 10},
                                        {"b", "1", "alpha", "b1", 10}};
    struct sv_trace *t = merged(parts, 2);
    CHECK_INT_EQ(sv_rank_of_track(t, process_with(t->dict, 10)), 1);
    drop(t);
}

TEST(labels_of_labels)
{
    struct sv_dict *d = sv_dict_new();
    struct sv_trace *t = sv_trace_new(d, NULL, 0);
    sv_track p = sv_dict_process(d, 0, 5);
    static const char *const keys[] = {"rank", "b/rank", "a/b/rank", "a/hostname", "b/boot_id"};
    static const char *const values[] = {"1", "2", "3", "alpha", "id"};
    for (size_t i = 0; i < TEST_COUNT(keys); i++)
        set_meta(d, keys[i], values[i]);
    CHECK_INT_EQ(sv_rank_of_track(t, p), 1);
    d->tracks[p].origin = sv_dict_cstr(d, "c/b");
    CHECK_INT_EQ(sv_rank_of_track(t, p), 2);
    d->tracks[p].origin = sv_dict_cstr(d, "a/b");
    CHECK_INT_EQ(sv_rank_of_track(t, p), 3);
    CHECK_STR_EQ(sv_host_of_track(t, p), "alpha");
    CHECK_STR_EQ(sv_boot_of_track(t, p), "id");
    drop(t);
}

TEST(ranks_that_are_no_numbers)
{
    static const char *const bad[] = {"", "x", "1x", "-1", "99999999999999999999"};
    struct sv_dict *d = sv_dict_new();
    struct sv_trace *t = sv_trace_new(d, NULL, 0);
    for (size_t i = 0; i < TEST_COUNT(bad); i++) {
        set_meta(d, SV_META_RANK, bad[i]);
        CHECK_INT_EQ(sv_rank_of_track(t, 0), -1);
    }
    char longest[5000];
    memset(longest, '/', sizeof longest);
    sv_track p = sv_dict_process(d, 0, 5);
    d->tracks[p].origin = sv_dict_str(d, longest, sizeof longest);
    CHECK_INT_EQ(sv_rank_of_track(t, p), -1);
    d->tracks[p].origin = sv_dict_str(d, longest, 500);
    CHECK_INT_EQ(sv_rank_of_track(t, p), -1);
    drop(t);
}
