/* Loose rows: slices that come in any order and without their ends. What is on one lane nests when
 * it is sorted by time, whatever came when. */
#include "core/stream/lanes.h"

#include "tests/harness/test.h"

#include <stdlib.h>
#include <string.h>

struct rig {
    struct sv_dict *dict;
    struct sv_lanes *lanes;
    struct sv_lane_row *row;
    sv_track track;
};

static void open_rig(struct rig *r)
{
    r->dict = sv_dict_new();
    r->lanes = sv_lanes_loose(r->dict);
    r->track = sv_dict_child(r->dict, 0, SV_TRACK_CUSTOM, sv_dict_cstr(r->dict, "stream"));
    r->row = sv_lanes_row(r->lanes, r->track, &sv_lanes_any);
}

static uint32_t place(struct rig *r, struct sv_lane_slice s, struct sv_lane_loose **open)
{
    uint32_t lane;
    struct sv_lane_loose *o = sv_lane_place(r->lanes, r->row, &s, &lane);
    if (open)
        *open = o;
    return lane;
}

static void check_lane(struct rig *r, size_t row, struct sv_lane_slice s, uint32_t lane)
{
    CONTEXT("row %zu", row);
    CHECK_UINT_EQ(place(r, s, NULL), lane);
}

TEST(whole_slices_that_cross_get_lanes)
{
    static const struct {
        int64_t begin, end;
        uint32_t lane;
    } rows[] = {
        {100, 200, 0}, {200, 300, 0}, {120, 150, 0}, /* inside */
        {50, 350, 0},                                /* around: comes after its inner ones */
        {340, 400, 1},                               /* crosses the last */
        {380, 420, 0},                               /* crosses that one, but not the first lane */
        {500, 600, 0}, {500, 700, 1},                /* same start, the longer one later */
        {500, 550, 0}, {450, 500, 2}, /* ends where one begins that is written before it */
    };
    struct rig r;
    open_rig(&r);
    for (size_t i = 0; i < TEST_COUNT(rows); i++)
        check_lane(&r, i,
                   (struct sv_lane_slice){.begin_ns = rows[i].begin,
                                          .end_ns = rows[i].end,
                                          .owner = i, /* whole ones are anybody's */
                                          .is_whole = true},
                   rows[i].lane);
    const struct sv_track_info *lane = &r.dict->tracks[r.row->lanes[1].track];
    CHECK_INT_EQ(lane->kind, SV_TRACK_LANE);
    CHECK_UINT_EQ(lane->parent, r.track);
    sv_dict_free(r.dict);
}

/* The first lane has slices that only the caller knows of. */
TEST(the_first_lane_can_be_left_out)
{
    struct rig r;
    open_rig(&r);
    struct sv_lane_slice s = {.begin_ns = 10, .end_ns = 20, .is_whole = true, .not_first = true};
    check_lane(&r, 0, s, 1); /* of a row that has no lanes yet */
    s.begin_ns = 30, s.end_ns = 40;
    check_lane(&r, 1, s, 1);
    s.not_first = false;
    check_lane(&r, 2, s, 0);
    sv_dict_free(r.dict);
}

/* More than a lane remembers: a slice that comes late is not put where one may have been that it
 * crosses. */
TEST(what_is_forgotten_is_not_crossed)
{
    struct rig r;
    open_rig(&r);
    for (int64_t i = 0; i < 200; i++)
        CHECK_UINT_EQ(place(&r,
                            (struct sv_lane_slice){
                                .begin_ns = i * 10, .end_ns = i * 10 + 5, .is_whole = true},
                            NULL),
                      0);
    static const struct {
        int64_t begin, end;
        uint32_t lane;
    } rows[] = {
        {1991, 1994, 0}, /* inside the last one, which is remembered */
        {3, 8, 1},       /* crosses the first one, which is not */
        {1986, 1989, 0}, /* between the last two */
    };
    for (size_t i = 0; i < TEST_COUNT(rows); i++)
        check_lane(&r, i,
                   (struct sv_lane_slice){
                       .begin_ns = rows[i].begin, .end_ns = rows[i].end, .is_whole = true},
                   rows[i].lane);
    sv_dict_free(r.dict);
}

TEST(open_slices_nest_only_where_that_is_sure)
{
    static const struct {
        int64_t begin, end;
        uint64_t owner;
        bool nests;
        uint32_t lane;
    } rows[] = {
        {100, SV_LANE_NEVER, 1, true, 0},  /* open from now on */
        {110, SV_LANE_NEVER, 1, true, 0},  /* of the same owner, in order */
        {120, 130, 1, false, 0},           /* its end is known, and before those of its owner */
        {120, 130, 2, true, 1},            /* another owner's: nobody knows which ends first */
        {140, SV_LANE_NEVER, 1, false, 1}, /* in order with nothing */
        {150, 160, 1, true, 0},
        {50, 90, 2, true, 0},  /* before all that is open */
        {50, 100, 2, true, 1}, /* touches it: the order of writing is not known */
    };
    struct rig r;
    open_rig(&r);
    for (size_t i = 0; i < TEST_COUNT(rows); i++)
        check_lane(&r, i,
                   (struct sv_lane_slice){.begin_ns = rows[i].begin,
                                          .end_ns = rows[i].end,
                                          .owner = rows[i].owner,
                                          .nests = rows[i].nests},
                   rows[i].lane);
    sv_dict_free(r.dict);
}

TEST(what_crosses_after_all_is_found)
{
    struct rig r;
    struct sv_lane_loose *outer, *inner;
    size_t n;
    open_rig(&r);
    struct sv_lane_slice s = {.begin_ns = 10, .end_ns = SV_LANE_NEVER, .owner = 1, .nests = true};
    place(&r, s, &outer);
    s.begin_ns = 20;
    place(&r, s, &inner);
    CHECK(sv_lane_in_the_way(inner, 30, &n) == NULL);
    CHECK(sv_lane_in_the_way(outer, 30, &n) == inner);
    CHECK_UINT_EQ(n, 1);
    CHECK(sv_lane_in_the_way(outer, 20, &n) == NULL); /* one after the other */
    place(&r, (struct sv_lane_slice){.begin_ns = 25, .end_ns = 40, .owner = 1}, NULL);
    CHECK_INT_EQ(sv_lane_earliest_end(inner, 30), 40); /* not before what lies in it */
    CHECK_INT_EQ(sv_lane_earliest_end(inner, 5), 20);
    sv_lane_end(r.lanes, inner, 40);
    sv_lane_end(r.lanes, outer, 50);
    CHECK(r.row->newest == NULL && r.row->lanes[0].top == NULL);
    CHECK_UINT_EQ(place(&r, (struct sv_lane_slice){.begin_ns = 51, .end_ns = 52, .owner = 2}, NULL),
                  0);
    sv_dict_free(r.dict);
}

TEST(lanes_of_a_file_that_goes_on_are_not_known)
{
    struct rig r;
    struct sv_lane_loose *o;
    open_rig(&r);
    sv_dict_free(r.dict);
    r.dict = sv_dict_new();
    r.lanes = sv_lanes_loose(r.dict);
    r.lanes->n_unknown = 3;
    r.lanes->known_from_ns = 1000;
    r.row = sv_lanes_row(r.lanes, sv_dict_process(r.dict, 0, 1), &sv_lanes_any);
    struct sv_lane_slice s = {.begin_ns = 900, .end_ns = SV_LANE_NEVER, .owner = 1, .nests = true};
    o = sv_lane_place_at(r.lanes, r.row, &s, 1);
    CHECK_UINT_EQ(o->lane, 1);
    s = (struct sv_lane_slice){.begin_ns = 950, .end_ns = 960, .owner = 2};
    CHECK_UINT_EQ(place(&r, s, NULL), 3); /* beyond those of the file */
    s = (struct sv_lane_slice){.begin_ns = 1001, .end_ns = 1002, .owner = 2};
    CHECK_UINT_EQ(place(&r, s, NULL), 0);
    s.owner = 1;
    CHECK_UINT_EQ(place(&r, s, NULL), 1); /* where its owner's is open, not beside another's */
    sv_lane_end(r.lanes, o, 1100);
    sv_dict_free(r.dict);
}

/* The number comes from another process: it must not be multiplied by that of the rows. */
TEST(lanes_that_are_not_known_have_a_limit)
{
    struct rig r;
    size_t n_lanes = 0, n_refused = 0;
    open_rig(&r);
    r.lanes->n_unknown = 40000;
    r.lanes->known_from_ns = INT64_MAX;
    for (uint32_t i = 1; i <= 8; i++) {
        struct sv_lane_slice s = {.begin_ns = 900, .end_ns = 1000, .owner = 1};
        r.row = sv_lanes_row(r.lanes, sv_dict_process(r.dict, 0, i), &sv_lanes_any);
        if (i % 2)
            n_refused += place(&r, s, NULL) == SV_LANE_NONE;
        else
            n_refused += sv_lane_place_at(r.lanes, r.row, &s, 39999) == NULL;
        n_lanes += r.row->n;
    }
    CHECK_UINT_EQ(n_refused, 5);
    CHECK(n_lanes < 1 << 18);
    sv_dict_free(r.dict);
}

/* ---- the law ---- */

struct edge {
    int64_t ns;
    size_t order; /* of writing */
    uint32_t lane, slice;
    bool is_begin;
};

static int by_time(const void *a, const void *b)
{
    const struct edge *x = a, *y = b;
    if (x->lane != y->lane)
        return x->lane < y->lane ? -1 : 1;
    if (x->ns != y->ns)
        return x->ns < y->ns ? -1 : 1;
    return x->order < y->order ? -1 : 1;
}

struct scene {
    struct rig rig;
    struct edge edges[4096];
    size_t n_edges;
    uint32_t n_slices;
    int64_t end_of
        /* of slices that are written whole: which end is whose does not show, its time does */
        [4096];
    uint64_t random;
};

static uint64_t random_of(struct scene *s, uint64_t n)
{
    s->random ^= s->random << 13, s->random ^= s->random >> 7, s->random ^= s->random << 17;
    return s->random % n;
}

static void write_edge(struct scene *s, uint32_t lane, uint32_t slice, int64_t ns, bool is_begin)
{
    s->edges[s->n_edges] = (struct edge){ns, s->n_edges, lane, slice, is_begin};
    s->n_edges++;
}

/* Every end closes its own begin when the edges of a lane are sorted by time. */
static void check_law(struct scene *s)
{
    static uint32_t stack[4096];
    size_t depth = 0, wrong = 0;
    qsort(s->edges, s->n_edges, sizeof *s->edges, by_time);
    for (size_t i = 0; i < s->n_edges; i++) {
        const struct edge *e = &s->edges[i];
        if (i == 0 || s->edges[i - 1].lane != e->lane)
            depth = 0;
        if (e->is_begin) {
            stack[depth++] = e->slice;
            continue;
        }
        uint32_t closed = depth ? stack[--depth] : UINT32_MAX;
        bool is_own = closed == e->slice;
        wrong += !is_own && (closed == UINT32_MAX || s->end_of[e->slice] == 0 ||
                             s->end_of[closed] != s->end_of[e->slice]);
    }
    CHECK_UINT_EQ(wrong, 0);
}

/* Threads with open slices, ended in order, and slices measured elsewhere, in any order of time;
 * the clock of each thread goes forward. */
static void play(struct scene *s)
{
    enum { THREADS = 4, DEPTH = 6 };
    struct {
        struct sv_lane_loose *open[DEPTH];
        uint32_t slice[DEPTH], depth;
        int64_t now;
    } t[THREADS] = {{{0}, {0}, 0, 100}, {{0}, {0}, 0, 100}, {{0}, {0}, 0, 100}, {{0}, {0}, 0, 100}};
    for (int step = 0; step < 600; step++) {
        uint64_t i = random_of(s, THREADS);
        struct sv_lane_slice w = {.owner = i + 1, .nests = true};
        uint32_t lane, slice = s->n_slices;
        t[i].now += (int64_t)random_of(s, 4);
        w.begin_ns = t[i].now;
        switch (random_of(s, 4)) {
        case 0: /* opens */
            if (t[i].depth == DEPTH)
                break;
            w.end_ns = SV_LANE_NEVER;
            lane = place(&s->rig, w, &t[i].open[t[i].depth]);
            t[i].slice[t[i].depth++] = s->n_slices++;
            write_edge(s, lane, slice, w.begin_ns, true);
            break;
        case 1: /* ends */
            if (t[i].depth == 0)
                break;
            t[i].depth--;
            lane = t[i].open[t[i].depth]->lane;
            write_edge(s, lane, t[i].slice[t[i].depth], t[i].now, false);
            sv_lane_end(s->rig.lanes, t[i].open[t[i].depth], t[i].now);
            break;
        case 2: /* both at once */
            w.end_ns = t[i].now += (int64_t)random_of(s, 5);
            lane = place(&s->rig, w, NULL);
            s->n_slices++;
            write_edge(s, lane, slice, w.begin_ns, true);
            write_edge(s, lane, slice, w.end_ns, false);
            break;
        default: /* measured elsewhere, some time ago or in the future */
            w.begin_ns = t[i].now - 20 + (int64_t)random_of(s, 30);
            w.end_ns = w.begin_ns + (int64_t)random_of(s, 12);
            w.is_whole = true;
            w.nests = w.end_ns <= t[i].now;
            lane = place(&s->rig, w, NULL);
            s->end_of[s->n_slices++] = w.end_ns;
            write_edge(s, lane, slice, w.begin_ns, true);
            write_edge(s, lane, slice, w.end_ns, false);
        }
    }
}

TEST(edges_of_a_lane_nest_whatever_comes)
{
    static struct scene s;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        CONTEXT("seed %llu", (unsigned long long)seed);
        memset(&s, 0, sizeof s);
        s.random = seed * 0x9e3779b97f4a7c15u;
        open_rig(&s.rig);
        play(&s);
        check_law(&s);
        sv_dict_free(s.rig.dict);
    }
}

TEST(thousands_of_open_slices_are_no_trouble)
{
    enum { N = 20000 };
    static struct sv_lane_loose *open[N];
    struct rig r;
    open_rig(&r);
    for (int i = 0; i < N; i++) {
        uint32_t lane = place(
            &r,
            (struct sv_lane_slice){.begin_ns = i, .end_ns = SV_LANE_NEVER, .owner = (uint64_t)i},
            &open[i]);
        if (lane != (uint32_t)i)
            CHECK_UINT_EQ(lane, (unsigned)i);
    }
    for (int i = 0; i < N; i++)
        sv_lane_end(r.lanes, open[i], N + i);
    CHECK_UINT_EQ(place(&r, (struct sv_lane_slice){.begin_ns = 3 * N, .end_ns = 3 * N + 1}, NULL),
                  0);
    CHECK_UINT_EQ(r.row->n, N);
    sv_dict_free(r.dict);
}

TEST(a_track_that_is_forgotten_takes_its_row_along)
{
    struct rig r;
    struct sv_lane_loose *open;
    open_rig(&r);
    struct sv_lane_slice s = {.begin_ns = 10, .end_ns = SV_LANE_NEVER, .owner = 1};
    place(&r, s, &open);
    s.owner = 2;
    place(&r, s, &open);
    sv_track lane = sv_lane_track(open);
    sv_dict_forget(r.dict, lane);
    sv_dict_forget(r.dict, r.track);
    CHECK(sv_lanes_find(r.lanes, r.track) == NULL && sv_lanes_find(r.lanes, lane) == NULL);
    CHECK(sv_lanes_row(r.lanes, r.track, &sv_lanes_any)->newest == NULL);
    sv_dict_free(r.dict);
}

/* What is recorded when it is over: the lowest lane that is free, and the last one shared when
 * there are no more. */
TEST(slices_that_are_over)
{
    struct sv_dict *dict = sv_dict_new();
    struct sv_lanes lanes;
    sv_lanes_init(&lanes, dict);
    sv_track track = sv_dict_child(dict, 0, SV_TRACK_CUSTOM, sv_dict_cstr(dict, "disk"));
    struct sv_lane_row *row = sv_lanes_row(&lanes, track, &sv_lanes_by_end);
    static const struct {
        int64_t begin_ns, end_ns;
        uint32_t lane;
    } slices[] = {{10, 20, 0}, {12, 22, 1}, {11, 23, 2}, {20, 24, 0}, {22, 25, 1},
                  {21, 26, 3}, {23, 27, 2}, {24, 24, 0}, {24, 30, 0}};
    for (size_t i = 0; i < TEST_COUNT(slices); i++) {
        int64_t begin = slices[i].begin_ns, end = slices[i].end_ns;
        sv_track took = sv_lane_take(&lanes, row, &begin, &end);
        CHECK_INT_EQ(took, row->lanes[slices[i].lane].track);
        CHECK_INT_EQ(begin, slices[i].begin_ns);
        CHECK_INT_EQ(end, slices[i].end_ns);
    }
    CHECK_INT_EQ(row->n, 4);
    CHECK_STR_EQ(sv_dict_text(dict, dict->tracks[row->lanes[3].track].name).bytes, "disk 4");
    for (uint32_t i = 0; i < sv_lanes_by_end.most; i++) {
        int64_t begin = 100, end = 200 + i;
        sv_lane_take(&lanes, row, &begin, &end);
        CHECK_INT_EQ(begin, 100);
    }
    int64_t begin = 150, end = 300;
    CHECK_INT_EQ(sv_lane_take(&lanes, row, &begin, &end),
                 row->lanes[sv_lanes_by_end.most - 1].track);
    CHECK_INT_EQ(row->n, sv_lanes_by_end.most);
    CHECK_INT_EQ(begin, 200 + sv_lanes_by_end.most - 1);
    sv_lanes_fini(&lanes);
    sv_dict_free(dict);
}
