/* The life cycle of requests and batches: order of calls, phases, limits. */
#include "core/serving/life.h"
#include "tests/harness/test.h"

#include <stdio.h>
#include <string.h>

struct heard {
    char text[8192];
    size_t n_over, n_batches;
    int64_t edges[SV_N_PHASES + 1];
};

static void hear(void *ctx, struct sv_life *l, enum sv_life_moment m, int64_t time_ns,
                 const struct sv_life_request *r, const struct sv_life_batch *b)
{
    static const char *const names[] = {"enqueued",  "dequeued",     "rejected",     "submitted",
                                        "finished",  "batch over",   "batch closed", "over",
                                        "congested", "not congested"};
    struct heard *h = ctx;
    size_t n = strlen(h->text);
    (void)l;
    snprintf(h->text + n, sizeof h->text - n, "%lld %s%s%lld%s%lld\n", (long long)time_ns, names[m],
             r ? " r" : "", r ? (long long)r->id : 0, b ? " b" : "", b ? (long long)b->id : 0);
    if (m == SV_MOMENT_REQUEST_OVER) {
        h->n_over++;
        sv_life_request_edges(r, b, h->edges);
    }
    if (m == SV_MOMENT_BATCH_OVER) {
        h->n_batches++;
        if (h->n_over == 0)
            sv_life_batch_edges(b, h->edges);
    }
}

static void put(struct sv_life *l, enum sv_life_op op, uint64_t id, int64_t time_ns)
{
    sv_life_put(l, &(struct sv_life_call){.op = (uint16_t)op, .id = id, .time_ns = time_ns});
}

static void collect(struct sv_life *l, uint64_t batch, const uint64_t *requests, uint32_t n,
                    int64_t start_ns, int64_t end_ns)
{
    sv_life_put(
        l, &(struct sv_life_call){
               .op = SV_LIFE_MEMBERS, .id = batch, .time_ns = end_ns, .members = requests, .n = n});
    sv_life_put(l, &(struct sv_life_call){.op = SV_LIFE_COLLECTED,
                                          .id = batch,
                                          .time_ns = end_ns,
                                          .start_ns = start_ns,
                                          .samples = n});
}

static int64_t sum(const int64_t *edges)
{
    int64_t total = 0;
    for (size_t i = 0; i < SV_N_PHASES; i++) {
        CHECK(edges[i + 1] >= edges[i]);
        total += edges[i + 1] - edges[i];
    }
    return total;
}

TEST(one_batch)
{
    struct heard h = {0};
    struct sv_life *l = sv_life_new(NULL, hear, &h);
    put(l, SV_LIFE_ENQUEUED, 7, 100);
    put(l, SV_LIFE_ENQUEUED, 8, 150);
    CHECK_INT_EQ(sv_life_count(l)->queued, 2);
    put(l, SV_LIFE_DEQUEUED, 7, 200);
    put(l, SV_LIFE_DEQUEUED, 8, 210);
    CHECK_INT_EQ(sv_life_count(l)->queued, 0);
    collect(l, 1, (uint64_t[]){7, 8}, 2, 200, 250);
    put(l, SV_LIFE_SUBMITTED, 1, 300);
    CHECK_INT_EQ(sv_life_count(l)->inflight, 1);
    put(l, SV_LIFE_STARTED, 1, 400);
    put(l, SV_LIFE_FINISHED, 1, 900);
    put(l, SV_LIFE_RESPONDED, 7, 950);
    const int64_t inner[] = {100, 200, 250, 300, 400, 900, 950, 950};
    for (size_t i = 0; i <= SV_N_PHASES; i++)
        CHECK_INT_EQ(h.edges[i], inner[i]);
    sv_life_put(l, &(struct sv_life_call){
                       .op = SV_LIFE_CALLBACK, .id = 1, .start_ns = 910, .time_ns = 1000});
    put(l, SV_LIFE_RESPONDED, 8, 1100);
    const int64_t outer[] = {150, 210, 250, 300, 400, 900, 1000, 1100};
    for (size_t i = 0; i <= SV_N_PHASES; i++)
        CHECK_INT_EQ(h.edges[i], outer[i]);
    CHECK_STR_EQ(h.text, "100 enqueued r70\n150 enqueued r80\n200 dequeued r70\n210 dequeued r80\n"
                         "300 submitted0 b1\n900 finished0 b1\n950 over r7 b1\n"
                         "1000 batch over0 b1\n1100 over r8 b1\n1000 batch closed0 b1\n");
    CHECK_INT_EQ(sv_life_open_requests(l), 0);
    CHECK_INT_EQ(sv_life_open_batches(l), 0);
    CHECK_INT_EQ(sv_life_count(l)->inflight, 0);
    sv_life_free(l);
}

/* A worker may be reported before the submission, a response before both. */
TEST(reported_out_of_order)
{
    struct heard h = {0};
    struct sv_life *l = sv_life_new(NULL, hear, &h);
    put(l, SV_LIFE_ENQUEUED, 1, 10);
    collect(l, 5, (uint64_t[]){1}, 1, 20, 30);
    put(l, SV_LIFE_STARTED, 5, 45);
    put(l, SV_LIFE_FINISHED, 5, 60);
    put(l, SV_LIFE_CALLBACK, 5, 70);
    put(l, SV_LIFE_RESPONDED, 1, 80);
    CHECK_INT_EQ(h.n_over, 0);
    put(l, SV_LIFE_SUBMITTED, 5, 50); /* the clock was read after the call */
    CHECK_INT_EQ(h.n_over, 1);
    CHECK_INT_EQ(h.n_batches, 1);
    CHECK_INT_EQ(sum(h.edges), 70);
    CHECK_INT_EQ(h.edges[SV_PHASE_RUN], 45);
    CHECK_INT_EQ(sv_life_open_batches(l), 0);
    sv_life_free(l);
}

TEST(a_request_is_in_one_batch)
{
    struct heard h = {0};
    struct sv_life *l = sv_life_new(NULL, hear, &h);
    put(l, SV_LIFE_ENQUEUED, 1, 10);
    collect(l, 1, (uint64_t[]){1}, 1, 20, 30);
    collect(l, 2, (uint64_t[]){1}, 1, 20, 30);
    CHECK_INT_EQ(sv_life_count(l)->repeated, 1);
    sv_life_free(l);
}

TEST(fates)
{
    struct heard h = {0};
    struct sv_life *l = sv_life_new(NULL, hear, &h);
    put(l, SV_LIFE_REJECTED, 1, 10);
    put(l, SV_LIFE_ENQUEUED, 2, 10);
    put(l, SV_LIFE_CANCELLED, 2, 30);
    CHECK_INT_EQ(h.edges[SV_PHASE_QUEUE + 1] - h.edges[SV_PHASE_QUEUE], 20);
    put(l, SV_LIFE_ENQUEUED, 3, 10);
    collect(l, 1, (uint64_t[]){3}, 1, 20, 30);
    put(l, SV_LIFE_BATCH_FAILED, 1, 40);
    put(l, SV_LIFE_FAILED, 3, 50);
    put(l, SV_LIFE_RESPONDED, 99, 60);
    const struct sv_life_counts *c = sv_life_count(l);
    CHECK_INT_EQ(c->rejected, 1);
    CHECK_INT_EQ(c->cancelled, 1);
    CHECK_INT_EQ(c->failed, 1);
    CHECK_INT_EQ(c->unexpected, 1);
    CHECK_INT_EQ(c->requests, 0);
    CHECK_INT_EQ(c->batches, 0);
    CHECK_INT_EQ(sv_life_open_requests(l) + sv_life_open_batches(l), 0);
    sv_life_free(l);
}

/* Requests that never end are given up, the oldest first. */
TEST(memory_is_bounded)
{
    struct heard h = {0};
    struct sv_life *l = sv_life_new(&(struct sv_life_limits){4, 2}, hear, &h);
    for (uint64_t i = 0; i < 10; i++) {
        put(l, SV_LIFE_ENQUEUED, i, 10 + (int64_t)i);
        collect(l, 100 + i, &i, 1, 20, 30);
    }
    CHECK_INT_EQ(sv_life_open_requests(l), 4);
    CHECK_INT_EQ(sv_life_open_batches(l), 2);
    CHECK_INT_EQ(sv_life_count(l)->forgotten, 6 + 8);
    put(l, SV_LIFE_SUBMITTED, 109, 40);
    put(l, SV_LIFE_FINISHED, 109, 60);
    put(l, SV_LIFE_RESPONDED, 9, 80);
    CHECK_INT_EQ(h.n_over, 1);
    sv_life_free(l);
}

/* Batches that run side by side on a worker have lanes, the smallest free one each. */
static uint32_t lanes_seen;
static void see_lane(void *ctx, struct sv_life *l, enum sv_life_moment m, int64_t time_ns,
                     const struct sv_life_request *r, const struct sv_life_batch *b)
{
    (void)ctx, (void)l, (void)time_ns, (void)r;
    if (m == SV_MOMENT_FINISHED)
        lanes_seen = lanes_seen * 10 + b->lane;
}

TEST(lanes)
{
    struct sv_life *l = sv_life_new(NULL, see_lane, NULL);
    lanes_seen = 0;
    for (uint64_t b = 1; b <= 3; b++)
        collect(l, b, NULL, 0, 1, 2);
    put(l, SV_LIFE_STARTED, 1, 10);
    put(l, SV_LIFE_STARTED, 2, 11);
    put(l, SV_LIFE_FINISHED, 1, 20);
    put(l, SV_LIFE_STARTED, 3, 21);
    put(l, SV_LIFE_FINISHED, 2, 30);
    put(l, SV_LIFE_FINISHED, 3, 31);
    CHECK_INT_EQ(lanes_seen, 10); /* 0, 1, 0 */
    sv_life_free(l);
}

/* The one who reports a batch knows what became of each request, also of one that never ended. */
struct closed {
    struct sv_life_member members[4];
    uint32_t n, times;
};

static void hear_closed(void *ctx, struct sv_life *l, enum sv_life_moment m, int64_t time_ns,
                        const struct sv_life_request *r, const struct sv_life_batch *b)
{
    struct closed *c = ctx;
    (void)l, (void)time_ns, (void)r;
    if (m != SV_MOMENT_BATCH_CLOSED)
        return;
    c->n = b->n;
    c->times++;
    memcpy(c->members, b->members, b->n * sizeof *b->members);
}

TEST(ends_of_members)
{
    struct closed c = {0};
    struct sv_life *l = sv_life_new(NULL, hear_closed, &c);
    for (uint64_t id = 1; id <= 3; id++) {
        put(l, SV_LIFE_ENQUEUED, id, 100 * (int64_t)id);
        put(l, SV_LIFE_DEQUEUED, id, 400 + (int64_t)id);
    }
    collect(l, 9, (const uint64_t[]){1, 2, 3}, 3, 400, 500);
    put(l, SV_LIFE_SUBMITTED, 9, 510);
    put(l, SV_LIFE_STARTED, 9, 520);
    put(l, SV_LIFE_FINISHED, 9, 600);
    put(l, SV_LIFE_RESPONDED, 2, 620);
    put(l, SV_LIFE_CALLBACK, 9, 630);
    put(l, SV_LIFE_CANCELLED, 1, 640);
    CHECK_INT_EQ(c.times, 0); /* one is open */
    sv_life_end(l);
    CHECK_INT_EQ(c.times, 1);
    CHECK_INT_EQ(c.n, 3);
    const struct sv_life_member expected[] = {{1, 100, 401, 640, SV_FATE_CANCELLED},
                                              {2, 200, 402, 620, SV_FATE_RESPONDED},
                                              {3, 300, 403, 0, SV_FATE_OPEN}};
    for (size_t i = 0; i < 3; i++) {
        CHECK_INT_EQ(c.members[i].id, expected[i].id);
        CHECK_INT_EQ(c.members[i].arrival_ns, expected[i].arrival_ns);
        CHECK_INT_EQ(c.members[i].dequeued_ns, expected[i].dequeued_ns);
        CHECK_INT_EQ(c.members[i].end_ns, expected[i].end_ns);
        CHECK_INT_EQ(c.members[i].fate, expected[i].fate);
    }
    put(l, SV_LIFE_RESPONDED, 3, 700); /* too late: the row is written */
    CHECK_INT_EQ(c.times, 1);
    sv_life_free(l);
}

/* A client leaves while its batch is collected: by the times it ended before or after that, and
 * threads report either first. */
TEST(ends_around_the_collection)
{
    static const struct {
        const char *name;
        int64_t end_ns;
        bool is_first;
        int64_t batch; /* that it is in */
    } rows[] = {{"before", 450, true, 0},
                {"before, reported later", 450, false, 0},
                {"at once", 500, true, 0},
                {"at once, reported later", 500, false, 0},
                {"after", 550, false, 9}};
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        CONTEXT("%s", rows[i].name);
        struct closed c = {0};
        struct heard h = {0};
        char expected[64];
        for (int pass = 0; pass < 2; pass++) {
            struct sv_life *l = pass ? sv_life_new(NULL, hear_closed, &c)
                                     : sv_life_new(NULL, hear, &h);
            for (uint64_t id = 1; id <= 2; id++) {
                put(l, SV_LIFE_ENQUEUED, id, 100 * (int64_t)id);
                put(l, SV_LIFE_DEQUEUED, id, 400);
            }
            if (rows[i].is_first)
                put(l, SV_LIFE_CANCELLED, 1, rows[i].end_ns);
            collect(l, 9, (const uint64_t[]){1, 2}, 2, 400, 500);
            if (!rows[i].is_first)
                put(l, SV_LIFE_CANCELLED, 1, rows[i].end_ns);
            put(l, SV_LIFE_SUBMITTED, 9, 510);
            put(l, SV_LIFE_STARTED, 9, 520);
            put(l, SV_LIFE_FINISHED, 9, 600);
            put(l, SV_LIFE_CALLBACK, 9, 630);
            put(l, SV_LIFE_RESPONDED, 2, 640);
            put(l, SV_LIFE_RESPONDED, 1, 640); /* what comes after its end is nothing */
            CHECK_UINT_EQ(sv_life_open_requests(l), 0);
            CHECK_UINT_EQ(sv_life_open_batches(l), 0);
            CHECK_UINT_EQ(sv_life_count(l)->cancelled, 1);
            CHECK_UINT_EQ(sv_life_count(l)->repeated, 0);
            sv_life_free(l);
        }
        snprintf(expected, sizeof expected, "%lld over r1%s", (long long)rows[i].end_ns,
                 rows[i].batch ? " b9\n" : "0\n");
        CHECK(strstr(h.text, expected) != NULL);
        CHECK_INT_EQ(c.times, 1);
        CHECK_INT_EQ(c.n, 2); /* it is named in any case */
        CHECK_INT_EQ(c.members[0].id, 1);
        CHECK_INT_EQ(c.members[0].fate, SV_FATE_CANCELLED);
        CHECK_INT_EQ(c.members[0].arrival_ns, rows[i].batch ? 100 : 0);
    }
}

/* A number that is used again is another request. */
TEST(a_number_is_used_again_after_its_client_left)
{
    struct heard h = {0};
    struct sv_life *l = sv_life_new(NULL, hear, &h);
    put(l, SV_LIFE_ENQUEUED, 1, 100);
    put(l, SV_LIFE_CANCELLED, 1, 200);
    put(l, SV_LIFE_ENQUEUED, 1, 300);
    collect(l, 9, (const uint64_t[]){1}, 1, 400, 500);
    put(l, SV_LIFE_SUBMITTED, 9, 510);
    put(l, SV_LIFE_STARTED, 9, 520);
    put(l, SV_LIFE_FINISHED, 9, 600);
    put(l, SV_LIFE_RESPONDED, 1, 640);
    CHECK(strstr(h.text, "640 over r1 b9\n") != NULL);
    for (uint64_t id = 2; id < 40000; id++) { /* more than are remembered */
        put(l, SV_LIFE_ENQUEUED, id, 700);
        put(l, SV_LIFE_CANCELLED, id, 710);
    }
    put(l, SV_LIFE_CALLBACK, 9, 720);
    CHECK_UINT_EQ(sv_life_open_requests(l), 0);
    CHECK_UINT_EQ(sv_life_open_batches(l), 0);
    sv_life_free(l);
}
