/* Slices of named tracks, planned over rings made by hand: which begin an end closes, and on which
 * row both are. */
#include "core/base/buf.h"
#include "sdk/drain/drain.h"
#include "sdk/drain/drain_tracks.h"
#include "sdk/ring/session_layout.h"
#include "tests/harness/gen_events.h"
#include "tests/harness/shape_check.h"
#include "tests/harness/test.h"

#include <stave/stave.h>
#include <stdio.h>
#include <string.h>

enum { SIZE = 16 << 10, RINGS = 3, ROW = 3, OTHER = 4 };
enum { BEGIN = 1, END, OWNED };

struct bench {
    struct sv_ring ring[RINGS];
    uint8_t data[RINGS][2 * SIZE];
    struct sv_dict *dict;
    struct sv_report report;
    struct sv_drain *drain;
    struct sv_batch batch;
    struct shape_check shape;
    struct sv_buf text;
    struct sv_tick last;
};

static void put_name(struct sv_buf *b, struct sv_name_head h, const char *texts, size_t n)
{
    h.size = (uint32_t)((sizeof h + n + 7) & ~(size_t)7);
    sv_buf_add(b, &h, sizeof h);
    sv_buf_add(b, texts, n);
    while (b->len % 8)
        sv_buf_byte(b, 0);
}

/* Sites: a begin and an end with a track and an own name, and a begin whose owner is given. */
static void put_names(struct bench *t)
{
    struct sv_buf b;
    sv_buf_init(&b, 1 << 20);
    struct sv_name_head site = {
        .kind = SV_NAME_SITE, .event = STAVE_KIND_BEGIN, .n_args = 2, .id = BEGIN};
    const char begin[] = {'c', 0, 0, 0, 0, 0, 0, STAVE_I_TRACK, STAVE_I_NAME};
    put_name(&b, site, begin, sizeof begin);
    site.event = STAVE_KIND_END;
    site.id = END;
    const char end[] = {'c', 0, 0, 0, 0, 0, 0, STAVE_I_TRACK, STAVE_I_SLICE};
    put_name(&b, site, end, sizeof end);
    site.event = STAVE_KIND_BEGIN;
    site.id = OWNED;
    site.n_args = 3;
    const char owned[] = {'c', 0, 0, 0, 0, 0, 0, 0, STAVE_I_TRACK, STAVE_I_OWNER, STAVE_I_NAME};
    put_name(&b, site, owned, sizeof owned);
    struct sv_name_head track = {
        .kind = SV_NAME_TRACK, .event = SV_TRACK_CUSTOM, .id = ROW, .parent = 1};
    put_name(&b, track, "row\0", 5);
    track.id = OTHER;
    put_name(&b, track, "other\0", 7);
    CHECK_UINT_EQ(sv_drain_names(t->drain, b.data, b.len), b.len);
    sv_buf_fini(&b);
}

static void tick(struct bench *t, uint64_t raw)
{
    t->last = (struct sv_tick){.raw = raw, .boot_ns = (int64_t)raw, .mono_ns = (int64_t)raw};
    sv_drain_tick(t->drain, &t->last);
}

static void open_drain(struct bench *t, const uint64_t *from)
{
    t->drain = sv_drain_new(t->dict, &t->report, 42);
    put_names(t);
    tick(t, 0);
    tick(t, 1000000);
    for (uint32_t i = 0; i < RINGS; i++)
        sv_drain_add_ring(t->drain, &t->ring[i], t->data[i], SIZE, from ? from[i] : SIZE);
}

static void open_bench(struct bench *t)
{
    memset(t, 0, sizeof *t);
    for (uint32_t i = 0; i < RINGS; i++) {
        t->ring[i].size = SIZE;
        t->ring[i].tid = 10 + i;
        t->ring[i].owner = 1;
        t->ring[i].number = i;
        t->ring[i].head = SIZE;
    }
    t->dict = sv_dict_new();
    sv_report_init(&t->report);
    sv_batch_init(&t->batch);
    sv_buf_init(&t->text, 1 << 20);
    open_drain(t, NULL);
    shape_check_sink(&t->shape, sv_drain_source(t->drain)->gives, NULL);
}

static void close_bench(struct bench *t)
{
    CHECK_STR_EQ(shape_check_end(&t->shape), "");
    sv_drain_free(t->drain);
    sv_batch_fini(&t->batch);
    sv_report_fini(&t->report);
    sv_buf_fini(&t->text);
    sv_dict_free(t->dict);
}

static void put(struct bench *t, unsigned ring, const uint64_t *words, size_t n)
{
    uint64_t head = t->ring[ring].head;
    for (size_t i = 0; i < n; i++) {
        uint64_t at = (head + 8 * i) & (SIZE - 1);
        memcpy(t->data[ring] + at, &words[i], 8);
        memcpy(t->data[ring] + SIZE + at, &words[i], 8);
    }
    t->ring[ring].head = head + 8 * n;
}

static uint64_t word(const char *name)
{
    uint64_t w = 0;
    memcpy(&w, name, strlen(name));
    return w;
}

/* Returns the number of the slice. */
static uint64_t begin(struct bench *t, unsigned ring, uint64_t ns, uint64_t track, const char *name)
{
    uint64_t id = sv_slice_id(ring, t->ring[ring].head);
    put(t, ring,
        (uint64_t[]){SV_WORD(BEGIN, STAVE_KIND_BEGIN, 2, 5), ns, track, strlen(name), word(name)},
        5);
    return id;
}

static uint64_t begin_of(struct bench *t, unsigned ring, uint64_t ns, uint64_t owner,
                         const char *name)
{
    uint64_t id = sv_slice_id(ring, t->ring[ring].head);
    put(t, ring,
        (uint64_t[]){SV_WORD(OWNED, STAVE_KIND_BEGIN, 3, 6), ns, ROW, owner, strlen(name),
                     word(name)},
        6);
    return id;
}

/* 0: the newest. */
static void end(struct bench *t, unsigned ring, uint64_t ns, uint64_t track, uint64_t slice)
{
    put(t, ring, (uint64_t[]){SV_WORD(END, STAVE_KIND_END, 2, 4), ns, track, slice}, 4);
}

/* A round, as "begin row a 5" or "end row 9" in the order in which they come; further rows of the
 * name have apostrophes. */
static const char *go(struct bench *t)
{
    struct sv_source *s = sv_drain_source(t->drain);
    sv_buf_clear(&t->text);
    sv_drain_round(t->drain);
    for (;;) {
        sv_batch_reset(&t->batch);
        if (s->next(s, &t->batch, NULL) == 0)
            break;
        shape_check_see(&t->shape, t->batch.events, t->batch.n);
        for (size_t i = 0; i < t->batch.n; i++) {
            const struct sv_event *e = &t->batch.events[i];
            const struct sv_track_info *info = &t->dict->tracks[e->track];
            sv_buf_printf(&t->text, "%s %s", sv_kind_name(e->kind),
                          sv_dict_text(t->dict, info->name).bytes);
            for (sv_track k = 1; k < e->track; k++)
                if (t->dict->tracks[k].name == info->name)
                    sv_buf_byte(&t->text, '\'');
            if (e->name)
                sv_buf_printf(&t->text, " %s", sv_dict_text(t->dict, e->name).bytes);
            sv_buf_printf(&t->text, " %lld%s", (long long)e->ts_ns, e->n_args ? " +" : "");
            sv_buf_byte(&t->text, '\n');
        }
    }
    return sv_buf_cstr(&t->text);
}

TEST(slices_that_nest_share_a_row)
{
    static struct bench t;
    open_bench(&t);
    uint64_t a = begin(&t, 0, 10, ROW, "a"), b = begin(&t, 0, 20, ROW, "b");
    end(&t, 0, 30, ROW, b);
    end(&t, 0, 40, ROW, a);
    begin(&t, 0, 50, OTHER, "c");
    end(&t, 0, 60, OTHER, 0);
    CHECK_STR_EQ(go(&t), "begin row a 10\nbegin row b 20\nend row 30\nend row 40\n"
                         "begin other c 50\nend other 60\n");
    CHECK_UINT_EQ(t.report.n, 0);
    close_bench(&t);
}

TEST(slices_that_cross_do_not)
{
    static struct bench t;
    open_bench(&t);
    uint64_t a = begin(&t, 0, 10, ROW, "a"), b = begin(&t, 0, 20, ROW, "b");
    end(&t, 0, 30, ROW, a);
    end(&t, 0, 40, ROW, b);
    uint64_t c = begin(&t, 0, 50, ROW, "c"); /* the row is free again */
    end(&t, 0, 60, ROW, c);
    CHECK_STR_EQ(go(&t), "begin row a 10\nbegin row' b 20\nend row 30\nend row' 40\n"
                         "begin row c 50\nend row 60\n");
    close_bench(&t);
}

/* They were thought to nest: when the outer one ends first, the inner one continues on another
 * row. */
TEST(slices_that_turn_out_to_cross)
{
    static struct bench t;
    open_bench(&t);
    uint64_t a = begin(&t, 0, 10, ROW, "a"), b = begin(&t, 0, 20, ROW, "b"),
             c = begin(&t, 0, 25, ROW, "c");
    CHECK_STR_EQ(go(&t), "begin row a 10\nbegin row b 20\nbegin row c 25\n");
    tick(&t, 2000000);
    end(&t, 0, 30, ROW, a);
    CHECK_STR_EQ(go(&t),
                 "end row 30\nend row 30\nend row 30\nbegin row'' b 30 +\nbegin row' c 30 +\n");
    end(&t, 0, 40, ROW, c);
    end(&t, 0, 50, ROW, b);
    CHECK_STR_EQ(go(&t), "end row' 40\nend row'' 50\n");
    uint64_t d = begin(&t, 0, 60, ROW, "d");
    end(&t, 0, 70, ROW, d);
    CHECK_STR_EQ(go(&t), "begin row d 60\nend row 70\n");
    close_bench(&t);
}

/* Slices of tasks are never thought to nest. */
TEST(slices_of_tasks)
{
    static struct bench t;
    open_bench(&t);
    uint64_t a = begin_of(&t, 0, 10, 0, "a"), b = begin_of(&t, 0, 20, 2, "b");
    CHECK_STR_EQ(go(&t), "begin row a 10\nbegin row' b 20\n");
    tick(&t, 2000000);
    end(&t, 0, 30, ROW, b);
    end(&t, 0, 40, ROW, a);
    CHECK_STR_EQ(go(&t), "end row' 30\nend row 40\n");
    close_bench(&t);
}

TEST(ends_without_a_number)
{
    static struct bench t;
    open_bench(&t);
    begin(&t, 0, 10, ROW, "a");
    begin(&t, 1, 20, ROW, "b");
    end(&t, 0, 30, ROW, 0); /* its own thread's, though that is older */
    end(&t, 2, 40, ROW, 0); /* the newest of any */
    end(&t, 2, 50, ROW, 0); /* of nothing */
    CHECK_STR_EQ(go(&t), "begin row a 10\nend row 30\nbegin row' b 20\nend row' 40\n");
    begin(&t, 0, 60, ROW, "c");
    begin(&t, 1, 70, ROW, "d");
    begin(&t, 0, 75, OTHER, "e");
    go(&t);
    tick(&t, 2000000);
    end(&t, 0, 80, ROW, 0); /* begun in an earlier round */
    end(&t, 2, 90, ROW, 0);
    end(&t, 2, 91, OTHER, 0);
    end(&t, 2, 95, ROW, 0);
    CHECK_STR_EQ(go(&t), "end row 80\nend row' 90\nend other 91\n");
    CHECK_UINT_EQ(t.report.n, 0);
    close_bench(&t);
}

TEST(ends_of_other_threads)
{
    static struct bench t;
    open_bench(&t);
    uint64_t a = begin(&t, 1, 10, ROW, "a"), b = begin(&t, 1, 20, ROW, "b");
    end(&t, 0, 30, ROW, b);
    end(&t, 2, 40, ROW, a);
    end(&t, 2, 45, ROW, a); /* twice: it is over */
    CHECK_STR_EQ(go(&t), "end row 30\nbegin row a 10\nbegin row b 20\nend row 40\n");
    end(&t, 0, 50, ROW, sv_slice_id(1, 8));                    /* before what was read */
    end(&t, 0, 51, ROW, sv_slice_id(77, SIZE));                /* no such ring */
    end(&t, 0, 52, ROW, sv_slice_id(0, t.ring[0].head + 400)); /* of its own ring, later */
    CHECK_STR_EQ(go(&t), "");
    CHECK_UINT_EQ(t.report.n, 0);
    close_bench(&t);
}

/* The clocks of two processors: an end is not before its begin. */
TEST(ends_that_seem_to_be_early)
{
    static struct bench t;
    open_bench(&t);
    uint64_t a = begin(&t, 1, 100, ROW, "a");
    end(&t, 0, 90, ROW, a);
    CHECK_STR_EQ(go(&t), "end row 100\nbegin row a 100\n");
    close_bench(&t);
}

/* An end is read before the begin that another thread recorded shows: it waits for a round. */
TEST(an_end_waits_for_its_begin)
{
    static struct bench t;
    open_bench(&t);
    uint64_t a = sv_slice_id(1, t.ring[1].head);
    end(&t, 0, 90, ROW, a);
    struct sv_source *s = sv_drain_source(t.drain);
    sv_drain_round(t.drain);
    begin(&t, 1, 50, ROW, "a"); /* after the heads were read */
    sv_batch_reset(&t.batch);
    CHECK_INT_EQ(s->next(s, &t.batch, NULL), 0);
    CHECK_STR_EQ(go(&t), "end row 90\nbegin row a 50\n");
    end(&t, 0, 95, ROW, sv_slice_id(1, t.ring[1].head)); /* one that never comes */
    CHECK_STR_EQ(go(&t), "");
    uint64_t b = begin(&t, 0, 100, ROW, "b");
    end(&t, 0, 110, ROW, b);
    CHECK_STR_EQ(go(&t), "begin row b 100\nend row 110\n");
    close_bench(&t);
}

/* A record is changed after it was planned: what was planned behind it does not happen. An outer
 * slice whose end was there stays open, so that nothing is put beside it until then; later slices
 * are not affected. */
TEST(a_plan_that_ends_in_damage)
{
    static struct bench t;
    open_bench(&t);
    uint64_t outer = begin(&t, 0, 10, ROW, "outer"), at = 0, none = 0;
    for (uint64_t i = 0; i < 150; i++) {
        at = i == 140 ? t.ring[0].head : at;
        uint64_t inner = begin(&t, 0, 20 + 10 * i, ROW, "inner");
        end(&t, 0, 25 + 10 * i, ROW, inner);
    }
    uint64_t open = begin(&t, 0, 2000, OTHER, "open");
    end(&t, 0, 2100, OTHER, sv_slice_id(77, SIZE)); /* of nothing */
    end(&t, 0, 5000, ROW, outer);
    struct sv_source *s = sv_drain_source(t.drain);
    sv_drain_round(t.drain);
    CHECK_INT_EQ(s->next(s, &t.batch, NULL), SV_BATCH);
    shape_check_see(&t.shape, t.batch.events, t.batch.n);
    memcpy(t.data[0] + (at & (SIZE - 1)), &none, 8);
    memcpy(t.data[0] + SIZE + (at & (SIZE - 1)), &none, 8);
    sv_batch_reset(&t.batch);
    CHECK_INT_EQ(s->next(s, &t.batch, NULL), 1 + 2 * 140 - SV_BATCH);
    shape_check_see(&t.shape, t.batch.events, t.batch.n);
    CHECK_UINT_EQ(sv_report_count(&t.report, SV_DAMAGE), 1);
    end(&t, 1, 2500, OTHER, open); /* its begin is behind the damage */
    uint64_t beside = begin(&t, 1, 3000, ROW, "beside");
    end(&t, 1, 3010, ROW, beside);
    uint64_t later = begin(&t, 1, 6000, ROW, "later");
    end(&t, 1, 6010, ROW, later);
    CHECK_STR_EQ(go(&t), "begin row'' beside 3000\nend row'' 3010\n"
                         "begin row later 6000\nend row 6010\n");
    close_bench(&t);
}

/* Recovery continues after a mark: slices that are open in the file end there, on their rows. */
TEST(open_slices_are_marked)
{
    static struct bench t;
    open_bench(&t);
    uint64_t a = begin(&t, 0, 10, ROW, "a"), b = begin(&t, 1, 20, ROW, "b");
    uint64_t c = begin(&t, 0, 30, OTHER, "c");
    CHECK_STR_EQ(go(&t), "begin row a 10\nbegin other c 30\nbegin row' b 20\n");
    for (uint64_t i = 0; i < RINGS; i++)
        sv_drain_mark(t.drain, i, &t.ring[i], 1);
    const struct sv_mark *m = &t.ring[0].mark[1];
    CHECK_UINT_EQ(m->round, 1);
    CHECK_UINT_EQ(m->pos, t.ring[0].head);
    CHECK_UINT_EQ(m->n_slices, 2);
    CHECK_UINT_EQ(t.ring[1].mark[1].n_slices, 1);
    CHECK_UINT_EQ(t.ring[2].mark[1].n_slices, 0);
    CHECK_INT_EQ(m->until_ns, 30);
    CHECK_UINT_EQ(m->n_lanes, 2);
    const struct sv_mark_slice *s = m->slices[0].id == a ? &m->slices[0] : &m->slices[1];
    CHECK(s->id == a && s->begin_ns == 10 && s->track == ROW && s->lane == 0);
    s = &t.ring[1].mark[1].slices[0];
    CHECK(s->id == b && s->begin_ns == 20 && s->track == ROW && s->lane == 1);
    sv_drain_mark(t.drain, 0, &t.ring[0], 2); /* the older one of the two */
    CHECK_UINT_EQ(t.ring[0].mark[0].round, 2);
    CHECK_UINT_EQ(t.ring[0].mark[1].round, 1);

    end(&t, 2, 40, ROW, b);
    end(&t, 0, 50, ROW, a);
    end(&t, 0, 60, OTHER, c);
    uint64_t from[RINGS];
    for (uint32_t i = 0; i < RINGS; i++)
        from[i] = t.ring[i].mark[1].pos;
    CHECK_STR_EQ(shape_check_end(&t.shape), "");
    sv_drain_free(t.drain);
    sv_dict_free(t.dict);
    t.dict = sv_dict_new();
    open_drain(&t, from);
    for (size_t i = 0; i < RINGS; i++)
        sv_drain_resume(t.drain, i, &t.ring[i].mark[1]);
    shape_check_sink(&t.shape, sv_drain_source(t.drain)->gives, NULL);
    CHECK_STR_EQ(go(&t), "end row 50\nend other 60\nend row' 40\n");
    close_bench(&t);
}
