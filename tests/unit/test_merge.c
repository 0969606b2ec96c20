/* Merge and rebase: identities that join and those that must not, times on one axis, independence
 * of the order. */
#include "clocks/merge.h"
#include "core/stream/stages.h"
#include "store/rebase.h"

#include "tests/harness/gen_events.h"
#include "tests/harness/test.h"

#include <stdlib.h>
#include <string.h>

struct fixture {
    struct sv_dict *dict;
    struct sv_report report;
    struct collect out;
    struct sv_err err;
    struct gen gens[4];
    int code;
};

static void teardown(struct fixture *f)
{
    collect_fini(&f->out);
    sv_report_fini(&f->report);
    sv_dict_free(f->dict);
}

struct part {
    const char *name, *host, *rank, *boot;
    uint64_t seed;
    uint32_t clock;
    bool has_offset;
    int64_t offset_ns;
};

static void set_meta(struct sv_dict *d, const char *key, const char *value)
{
    if (value)
        sv_dict_set_meta(d, key, value, strlen(value), false);
}

/* Generates the parts in the given order, merges, collects. */
static void run(struct fixture *f, const struct part *parts, const size_t *order, size_t n,
                struct sv_merge_options options)
{
    memset(f, 0, sizeof *f);
    f->dict = sv_dict_new();
    sv_report_init(&f->report);
    struct sv_merge *m = sv_merge_new(&options);
    for (size_t i = 0; i < n; i++) {
        const struct part *p = &parts[order ? order[i] : i];
        struct gen *g = &f->gens[i];
        unsigned shape = SV_HAS_EDGES | SV_HAS_SLICES | SV_HAS_FLOW_POINTS;
        gen_make(
            g, &(struct gen_options){.seed = p->seed, .n = 400, .shape = shape, .extras = GEN_ALL});
        g->dict->clocks.trace_clock = p->clock;
        set_meta(g->dict, "hostname", p->host);
        set_meta(g->dict, "rank", p->rank);
        set_meta(g->dict, "boot_id", p->boot);
        set_meta(g->dict, "tool", "generator");
        struct sv_merge_input in = {.name = p->name,
                                    .dict = g->dict,
                                    .has_offset = p->has_offset,
                                    .offset_ns = p->offset_ns};
        CHECK_INT_EQ(sv_merge_add(m, &in, gen_source(g, shape, NULL), NULL, &f->err), 0);
        g->dict = NULL; /* the merge's */
    }
    struct sv_source *source;
    f->code = sv_merge_source(m, f->dict, &f->report, &source, &f->err);
    if (f->code == 0)
        CHECK_INT_EQ(sv_pump(source, collect_sink(&f->out, SV_HAS_ANYTHING), NULL, &f->err), 0);
    else
        sv_merge_free(m);
    for (size_t i = 0; i < n; i++)
        gen_fini(&f->gens[i]);
}

static void check_equal(struct fixture *a, struct fixture *b)
{
    struct sv_buf x, y;
    sv_buf_init(&x, SIZE_MAX);
    sv_buf_init(&y, SIZE_MAX);
    CHECK_UINT_EQ(a->out.n, b->out.n);
    CHECK(strcmp(dump(&x, a->dict, a->out.events, a->out.n),
                 dump(&y, b->dict, b->out.events, b->out.n)) == 0);
    CHECK_UINT_EQ(a->dict->n_tracks, b->dict->n_tracks);
    CHECK_UINT_EQ(a->dict->n_strings, b->dict->n_strings);
    CHECK_UINT_EQ(a->dict->n_meta, b->dict->n_meta);
    for (uint32_t t = 1; t < a->dict->n_tracks && t < b->dict->n_tracks; t++) {
        CHECK_UINT_EQ(a->dict->tracks[t].uuid, b->dict->tracks[t].uuid);
        CHECK_UINT_EQ(a->dict->tracks[t].space, b->dict->tracks[t].space);
        CHECK_UINT_EQ(a->dict->tracks[t].parent, b->dict->tracks[t].parent);
    }
    sv_buf_fini(&x);
    sv_buf_fini(&y);
}

static const struct part hosts[] = {
    {.name = "a.json", .host = "alpha", .rank = "1", .seed = 1, .clock = SV_CLOCK_REALTIME},
    {.name = "b.json", .host = "beta", .rank = "0", .seed = 2, .clock = SV_CLOCK_REALTIME},
    {.name = "c.json", .host = NULL, .rank = NULL, .seed = 3, .clock = SV_CLOCK_REALTIME},
};

TEST(law_the_order_of_inputs_does_not_matter)
{
    static const size_t orders[][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                       {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    for (unsigned mode = 0; mode < 3; mode++) {
        struct sv_merge_options options = {.same_host = mode == 1, .memory_bytes = mode == 2};
        struct fixture first;
        run(&first, hosts, orders[0], 3, options);
        CHECK(first.out.n > 1000);
        for (size_t i = 1; i < TEST_COUNT(orders); i++) {
            CONTEXT("mode %u, order %zu", mode, i);
            struct fixture other;
            run(&other, hosts, orders[i], 3, options);
            check_equal(&first, &other);
            teardown(&other);
        }
        teardown(&first);
    }
}

TEST(law_one_input_comes_out_as_it_went_in)
{
    struct fixture f;
    run(&f, hosts, NULL, 1, (struct sv_merge_options){0});
    struct gen g;
    unsigned shape = SV_HAS_EDGES | SV_HAS_SLICES | SV_HAS_FLOW_POINTS;
    gen_make(&g, &(struct gen_options){.seed = 1, .n = 400, .shape = shape, .extras = GEN_ALL});
    struct collect c = {0};
    struct sv_sink *s =
        sv_pair_new(g.dict, NULL, sv_sort_new(g.dict, 0, collect_sink(&c, SV_HAS_ANYTHING)));
    CHECK_INT_EQ(gen_push(&g, s, NULL), 0);
    struct sv_buf x, y;
    sv_buf_init(&x, SIZE_MAX);
    sv_buf_init(&y, SIZE_MAX);
    CHECK(strcmp(dump(&x, f.dict, f.out.events, f.out.n), dump(&y, g.dict, c.events, c.n)) == 0);
    sv_buf_fini(&x);
    sv_buf_fini(&y);
    collect_fini(&c);
    gen_fini(&g);
    teardown(&f);
}

static size_t count_processes(const struct sv_dict *d)
{
    size_t n = 0;
    for (uint32_t t = 1; t < d->n_tracks; t++)
        n += d->tracks[t].kind == SV_TRACK_PROCESS;
    return n;
}

TEST(pids_meet_on_one_machine_only)
{
    static const struct {
        const char *host_a, *host_b;
        bool same_host;
        size_t processes;
        const char *boot_a, *boot_b;
    } rows[] = {
        {"x", "x", false, 2, NULL, NULL},   {"x", "y", false, 4, NULL, NULL},
        {NULL, NULL, false, 4, NULL, NULL}, {"x", NULL, false, 4, NULL, NULL},
        {NULL, NULL, true, 2, NULL, NULL},  {"x", "y", true, 2, NULL, NULL},
        {"x", "x", false, 4, "1", "2"},     {"x", "y", false, 2, "1", "1"},
        {"x", "x", false, 2, "1", NULL},    {"x", "x", true, 2, "1", "2"},
    };
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        CONTEXT("row %zu", i);
        const struct part parts[] = {{.name = "a",
                                      .host = rows[i].host_a,
                                      .boot = rows[i].boot_a,
                                      .seed = 1,
                                      .clock = SV_CLOCK_REALTIME},
                                     {.name = "b",
                                      .host = rows[i].host_b,
                                      .boot = rows[i].boot_b,
                                      .seed = 2,
                                      .clock = SV_CLOCK_REALTIME}};
        struct fixture f;
        run(&f, parts, NULL, 2, (struct sv_merge_options){.same_host = rows[i].same_host});
        CHECK_UINT_EQ(count_processes(f.dict), rows[i].processes);
        teardown(&f);
    }
}

TEST(processes_of_several_machines_are_labelled)
{
    struct fixture f;
    run(&f, hosts, NULL, 3, (struct sv_merge_options){0});
    bool found[3] = {false};
    for (uint32_t t = 1; t < f.dict->n_tracks; t++) {
        const char *desc = sv_dict_text(f.dict, f.dict->tracks[t].desc).bytes;
        found[0] |= strcmp(desc, "rank 0") == 0 && f.dict->tracks[t].space == 0;
        found[1] |= strcmp(desc, "rank 1") == 0 && f.dict->tracks[t].space == 1;
        found[2] |= strcmp(desc, "c.json") == 0 && f.dict->tracks[t].space == 2;
    }
    CHECK(found[0] && found[1] && found[2]);
    CHECK_STR_EQ(sv_dict_text(f.dict, sv_dict_find_meta(f.dict, "tool")->value).bytes, "generator");
    CHECK(sv_dict_find_meta(f.dict, "hostname") == NULL);
    CHECK_STR_EQ(sv_dict_text(f.dict, sv_dict_find_meta(f.dict, "rank 1/hostname")->value).bytes,
                 "alpha");
    teardown(&f);
}

/* A merge of two machines of one name, merged again with a file of the second: it must not fall
 * among the processes of the first. */
TEST(what_was_merged_before_keeps_its_machines)
{
    struct sv_dict *mixed = sv_dict_new(), *second = sv_dict_new(), *out = sv_dict_new();
    set_meta(mixed, "hostname", "x");
    set_meta(mixed, "a.json/boot_id", "1");
    set_meta(mixed, "b.json/boot_id", "2");
    set_meta(second, "hostname", "x");
    set_meta(second, "boot_id", "2");
    struct sv_dict *dicts[] = {mixed, second};
    struct sv_merge *m = sv_merge_new(&(struct sv_merge_options){0});
    for (size_t i = 0; i < 2; i++) {
        dicts[i]->clocks.trace_clock = SV_CLOCK_REALTIME;
        struct sv_merge_input in = {.name = i ? "second" : "mixed", .dict = dicts[i]};
        sv_track t = sv_dict_process(dicts[i], 0, 10);
        struct sv_event e = {.ts_ns = 1, .track = t, .kind = SV_INSTANT};
        struct gen g = {.dict = dicts[i], .events = &e, .n = 1};
        CHECK_INT_EQ(sv_merge_add(m, &in, gen_source(&g, SV_HAS_NESTED, NULL), NULL, NULL), 0);
    }
    struct sv_source *source;
    struct collect c = {0};
    REQUIRE(sv_merge_source(m, out, NULL, &source, NULL) == 0);
    CHECK_INT_EQ(sv_pump(source, collect_sink(&c, SV_HAS_ANYTHING), NULL, NULL), 0);
    CHECK_UINT_EQ(count_processes(out), 2);
    collect_fini(&c);
    sv_dict_free(out);
}

TEST(clocks_that_cannot_be_related_are_refused)
{
    const struct part parts[] = {{.name = "a.json", .seed = 1, .clock = SV_CLOCK_UNKNOWN},
                                 {.name = "b.pftrace", .seed = 2, .clock = SV_CLOCK_BOOTTIME}};
    struct fixture f;
    run(&f, parts, NULL, 2, (struct sv_merge_options){0});
    CHECK_INT_EQ(f.code, SV_EUSAGE);
    CHECK(strstr(f.err.msg, "a.json: unknown; b.pftrace: boottime") != NULL);
    CHECK(strstr(f.err.msg, "--offset a.json") != NULL);
    teardown(&f);
    run(&f, parts, NULL, 2, (struct sv_merge_options){.assume = true});
    CHECK_INT_EQ(f.code, 0);
    CHECK_UINT_EQ(f.dict->clocks.trace_clock, SV_CLOCK_BOOTTIME);
    CHECK_UINT_EQ(sv_report_count(&f.report, SV_NOTE), 1);
    teardown(&f);
}

TEST(the_result_is_in_order_and_shifted)
{
    const struct part parts[] = {{.name = "a", .host = "x", .seed = 1, .clock = SV_CLOCK_MONOTONIC},
                                 {.name = "b",
                                  .host = "x",
                                  .seed = 1,
                                  .clock = SV_CLOCK_MONOTONIC,
                                  .has_offset = true,
                                  .offset_ns = 1000000000}};
    struct fixture f;
    run(&f, parts, NULL, 2, (struct sv_merge_options){0});
    CHECK_INT_EQ(f.code, 0);
    REQUIRE(f.out.n > 0 && f.out.n % 2 == 0);
    for (size_t i = 1; i < f.out.n; i++)
        CHECK(f.out.events[i - 1].ts_ns <= f.out.events[i].ts_ns);
    for (size_t i = 0; i < f.out.n / 2;
         i++) { /* the same events, a second later, on the same tracks */
        const struct sv_event *a = &f.out.events[i], *b = &f.out.events[i + f.out.n / 2];
        CHECK_INT_EQ(a->ts_ns + 1000000000, b->ts_ns);
        CHECK_INT_EQ(a->dur_ns, b->dur_ns);
        CHECK_UINT_EQ(a->track, b->track);
        CHECK_UINT_EQ(a->name, b->name);
    }
    teardown(&f);
}

/* ---- rebase ---- */

struct pair_of_dicts {
    struct sv_dict *from, *to;
    struct sv_rebase r;
    struct sv_batch b;
};

static void setup_rebase(struct pair_of_dicts *p, uint32_t space, uint64_t salt, uint32_t group)
{
    memset(p, 0, sizeof *p);
    p->from = sv_dict_new();
    p->to = sv_dict_new();
    p->r = (struct sv_rebase){
        .from = p->from, .to = p->to, .space = space, .salt = salt, .flow_group = group};
    sv_batch_init(&p->b);
}

static void teardown_rebase(struct pair_of_dicts *p)
{
    sv_rebase_fini(&p->r);
    sv_batch_fini(&p->b);
    sv_dict_free(p->from);
    sv_dict_free(p->to);
}

static const struct sv_track_info *rebased(struct pair_of_dicts *p, sv_track t)
{
    struct sv_event e = {.kind = SV_INSTANT, .track = t};
    sv_batch_reset(&p->b);
    sv_rebase_event(&p->r, &e, &p->b);
    return &p->to->tracks[p->b.events[0].track];
}

TEST(tracks_keep_or_change_their_identity)
{
    struct pair_of_dicts p;
    setup_rebase(&p, 2, 77, 0);
    struct sv_dict *d = p.from;
    sv_track process = sv_dict_process(d, 0, 10), thread = sv_dict_thread(d, 0, 10, 11);
    sv_track child = sv_dict_child(d, process, SV_TRACK_COUNTER, sv_dict_cstr(d, "load"));
    sv_track top = sv_dict_child(d, 0, SV_TRACK_GPU, sv_dict_cstr(d, "GPU 0"));
    sv_track foreign = sv_dict_track(d, 1, NULL);
    sv_track lane =
        sv_dict_track(d, sv_uuid_child(d->tracks[thread].uuid, SV_TRACK_LANE, "3", 1), NULL);
    d->tracks[lane].kind = SV_TRACK_LANE;
    d->tracks[lane].parent = thread;
    d->tracks[lane].order = 3;
    uint64_t thread_uuid = sv_uuid_thread(2, 10, 11);
    CHECK_UINT_EQ(rebased(&p, thread)->uuid, thread_uuid);
    CHECK_UINT_EQ(rebased(&p, process)->uuid, sv_uuid_process(2, 10));
    CHECK_UINT_EQ(rebased(&p, process)->space, 2);
    CHECK_UINT_EQ(p.to->tracks[rebased(&p, thread)->parent].uuid, sv_uuid_process(2, 10));
    CHECK_UINT_EQ(rebased(&p, child)->uuid,
                  sv_uuid_child(sv_uuid_process(2, 10), SV_TRACK_COUNTER, "load", 4));
    CHECK_UINT_EQ(rebased(&p, lane)->uuid, sv_uuid_child(thread_uuid, SV_TRACK_LANE, "3", 1));
    CHECK(rebased(&p, top)->uuid != d->tracks[top].uuid);
    CHECK(rebased(&p, foreign)->uuid != 1);
    teardown_rebase(&p);
}

/* Files of other tools give processes any uuid, and numbers are reused. */
TEST(only_one_track_claims_a_pid)
{
    struct pair_of_dicts p;
    setup_rebase(&p, 0, 77, 0);
    sv_track tracks[3];
    for (size_t i = 0; i < 3; i++) {
        tracks[i] = sv_dict_track(p.from, 1000 + i, NULL);
        p.from->tracks[tracks[i]].kind = SV_TRACK_PROCESS;
        p.from->tracks[tracks[i]].pid = i < 2 ? 5 : 6;
    }
    CHECK_UINT_EQ(rebased(&p, tracks[1])->uuid, sv_uuid_process(0, 5));
    CHECK(rebased(&p, tracks[0])->uuid != sv_uuid_process(0, 5));
    CHECK_UINT_EQ(rebased(&p, tracks[2])->uuid, sv_uuid_process(0, 6));
    CHECK_UINT_EQ(p.to->n_tracks, 4);
    teardown_rebase(&p);
}

/* … but the track whose uuid says that it is the process goes first, whenever it appears. */
TEST(a_uuid_that_fits_claims_the_pid)
{
    struct pair_of_dicts p;
    setup_rebase(&p, 0, 77, 0);
    sv_track foreign = sv_dict_track(p.from, 1000, NULL);
    p.from->tracks[foreign].kind = SV_TRACK_PROCESS;
    p.from->tracks[foreign].pid = 5;
    sv_track own = sv_dict_process(p.from, 0, 5);
    CHECK(rebased(&p, foreign)->uuid != sv_uuid_process(0, 5));
    CHECK_UINT_EQ(rebased(&p, own)->uuid, sv_uuid_process(0, 5));
    teardown_rebase(&p);
}

TEST(parents_in_a_circle_end)
{
    struct pair_of_dicts p;
    setup_rebase(&p, 0, 5, 0);
    sv_track a = sv_dict_track(p.from, 1, NULL), b = sv_dict_track(p.from, 2, NULL);
    p.from->tracks[a].parent = b;
    p.from->tracks[b].parent = a;
    rebased(&p, a);
    CHECK_UINT_EQ(p.to->n_tracks, 3);
    teardown_rebase(&p);
}

TEST(flow_and_correlation_numbers_move_by_group)
{
    static const struct {
        uint32_t group;
        uint64_t from, to; /* to 0: anything else */
    } rows[] = {{0, 7, 7},
                {0, UINT64_MAX, UINT64_MAX},
                {1, 7, (1ull << 40) + 7},
                {3, 0, 3ull << 40},
                {1, 1ull << 40, 0}};
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        CONTEXT("row %zu", i);
        struct pair_of_dicts p;
        setup_rebase(&p, 0, 0, rows[i].group);
        const struct sv_arg args[] = {
            {.type = SV_ARG_FLOW_BEGIN, .u = rows[i].from},
            {.type = SV_ARG_CORRELATION, .u = rows[i].from},
            {.key = sv_dict_cstr(p.from, "k"), .type = SV_ARG_POINTER, .u = rows[i].from},
            /* Kineto's, and one within another argument, which is somebody else's. */
            {.key = sv_dict_cstr(p.from, "correlation"), .type = SV_ARG_UINT, .u = rows[i].from},
            {.key = sv_dict_cstr(p.from, "d"), .type = SV_ARG_DICT, .size = 1},
            {.key = sv_dict_cstr(p.from, "correlation"), .type = SV_ARG_INT, .i = 5},
            {.key = sv_dict_cstr(p.from, "correlation"), .type = SV_ARG_INT, .i = -1}};
        struct sv_event e = {.kind = SV_INSTANT, .args = args, .n_args = 7};
        sv_rebase_event(&p.r, &e, &p.b);
        const struct sv_arg *out = p.b.events[0].args;
        if (rows[i].to || !rows[i].from)
            CHECK_UINT_EQ(out[0].u, rows[i].to);
        else
            CHECK(out[0].u != rows[i].from);
        CHECK_UINT_EQ(out[1].u, out[0].u);
        CHECK_UINT_EQ(out[2].u, rows[i].from);
        CHECK_STR_EQ(sv_dict_text(p.to, out[2].key).bytes, "k");
        CHECK_UINT_EQ(out[3].u, out[0].u);
        CHECK_INT_EQ(out[5].i, 5);
        CHECK_INT_EQ(out[6].i, -1);
        teardown_rebase(&p);
    }
}

TEST(the_first_description_stays_and_gaps_are_filled)
{
    struct pair_of_dicts p, q;
    setup_rebase(&p, 0, 1, 0);
    setup_rebase(&q, 0, 2, 0);
    q.r.to = p.to;
    sv_track a = sv_dict_process(p.from, 0, 1), b = sv_dict_process(q.from, 0, 1);
    p.from->tracks[a].name = sv_dict_cstr(p.from, "one");
    q.from->tracks[b].name = sv_dict_cstr(q.from, "two");
    q.from->tracks[b].desc = sv_dict_cstr(q.from, "about");
    sv_track t = sv_dict_find_track(p.to, rebased(&p, a)->uuid);
    struct sv_event e = {.kind = SV_INSTANT, .track = b};
    sv_rebase_event(&q.r, &e, &q.b);
    CHECK_UINT_EQ(q.b.events[0].track, t);
    CHECK_STR_EQ(sv_dict_text(p.to, p.to->tracks[t].name).bytes, "one");
    CHECK_STR_EQ(sv_dict_text(p.to, p.to->tracks[t].desc).bytes, "about");
    teardown_rebase(&q);
    teardown_rebase(&p);
}

TEST(both_ends_of_a_slice_are_converted)
{
    struct pair_of_dicts p;
    setup_rebase(&p, 0, 0, 0);
    struct sv_clock_point *points = sv_alloc(2 * sizeof *points);
    points[1] = (struct sv_clock_point){1000, 2000};
    p.r.shift = (struct sv_shift){.points = points, .n = 2};
    struct sv_event e = {.ts_ns = 100, .dur_ns = 200, .kind = SV_SLICE};
    CHECK(sv_rebase_time(&p.r, &e));
    CHECK_INT_EQ(e.ts_ns, 200);
    CHECK_INT_EQ(e.dur_ns, 400);
    e = (struct sv_event){.ts_ns = 100, .dur_ns = SV_UNFINISHED, .kind = SV_SLICE};
    CHECK(sv_rebase_time(&p.r, &e));
    CHECK_INT_EQ(e.dur_ns, SV_UNFINISHED);
    e = (struct sv_event){.ts_ns = INT64_MAX - 1500, .dur_ns = 500, .kind = SV_SLICE};
    CHECK(sv_rebase_time(&p.r, &e));
    CHECK_INT_EQ(e.ts_ns, INT64_MAX - 500);
    CHECK_INT_EQ(e.dur_ns, 500);
    CHECK(!sv_rebase_time(&p.r, &e)); /* it would begin past the end of time */
    e = (struct sv_event){.ts_ns = INT64_MAX - 1500, .dur_ns = 501, .kind = SV_SLICE};
    CHECK(!sv_rebase_time(&p.r, &e));
    teardown_rebase(&p);
}

TEST(a_source_that_fails_fails_the_merge)
{
    struct gen g;
    gen_make(&g,
             &(struct gen_options){.seed = 1, .n = 20000, .shape = SV_HAS_NESTED | SV_IN_NO_ORDER});
    setenv("TMPDIR", "/nonexistent/place", 1);
    struct sv_merge *m = sv_merge_new(&(struct sv_merge_options){.memory_bytes = 1});
    struct sv_merge_input in = {.name = "a", .dict = g.dict};
    struct sv_err err = {0};
    CHECK_INT_EQ(
        sv_merge_add(m, &in, gen_source(&g, SV_HAS_NESTED | SV_IN_NO_ORDER, NULL), NULL, &err),
        SV_EIO);
    g.dict = NULL;
    gen_fini(&g);
    sv_merge_free(m);
    m = sv_merge_new(&(struct sv_merge_options){0});
    struct sv_source *source;
    struct sv_dict *d = sv_dict_new();
    CHECK_INT_EQ(sv_merge_source(m, d, NULL, &source, &err), SV_EUSAGE);
    sv_merge_free(m);
    sv_dict_free(d);
}
