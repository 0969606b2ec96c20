/* Who takes part in a merge of many ranks, and how they are read: machine by machine, through one
 * temporary file. */
#include "clocks/merge.h"
#include "clocks/merge_ranks.h"

#include "tests/harness/gen_events.h"
#include "tests/harness/test.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

/* ---- cards ---- */

static struct sv_merge_card card(const char *name, int64_t rank, int64_t begin_ns, int64_t end_ns)
{
    return (struct sv_merge_card){.name = name,
                                  .kind = "chrome",
                                  .rank = rank,
                                  .pid = 7,
                                  .has_span = true,
                                  .begin_ns = begin_ns,
                                  .end_ns = end_ns};
}

static int check_two(struct sv_merge_card *a, struct sv_merge_card *b, bool skips_bad,
                     struct sv_err *err)
{
    struct sv_merge_card *cards[] = {a, b};
    sv_err_clear(err);
    return sv_merge_check_ranks(cards, 2, skips_bad, NULL, err);
}

TEST(a_rank_given_twice_is_refused_with_both_names)
{
    struct sv_merge_card a = card("a.json", 3, 0, 10), b = card("b.json", 3, 10, 20);
    struct sv_err err;
    CHECK_INT_EQ(check_two(&a, &b, false, &err), SV_EUSAGE);
    CHECK(strstr(err.msg, "rank 3") && strstr(err.msg, "a.json") && strstr(err.msg, "b.json"));
    CHECK_INT_EQ(check_two(&a, &b, true, &err), SV_EUSAGE); /* none is damaged */
    b.begin_ns = 11;
    CHECK_INT_EQ(check_two(&a, &b, false, &err), 0); /* one after the other */
    b.begin_ns = 5;
    b.rank = 4;
    CHECK_INT_EQ(check_two(&a, &b, false, &err), 0);
    a.rank = b.rank = SV_CARD_NO_RANK;
    CHECK_INT_EQ(check_two(&a, &b, false, &err), 0);
}

TEST(files_of_a_rank_that_complete_each_other_are_taken)
{
    struct sv_merge_card a = card("a", 3, 0, 10), b = card("b", 3, 0, 10);
    struct sv_err err;
    b.kind = "perfetto";
    CHECK_INT_EQ(check_two(&a, &b, false, &err), SV_EUSAGE); /* one is a conversion of the other */
    b.end_ns = 11;
    CHECK_INT_EQ(check_two(&a, &b, false, &err), 0);
    b.kind = "chrome";
    a.job = "17";
    CHECK_INT_EQ(check_two(&a, &b, false, &err), SV_EUSAGE); /* b may be of that job */
    b.job = "18";
    CHECK_INT_EQ(check_two(&a, &b, false, &err), 0);
    b.job = "17";
    a.writer = "stave record";
    b.writer = "libstave";
    CHECK_INT_EQ(check_two(&a, &b, false, &err), 0);
    b.writer = "stave record";
    CHECK_INT_EQ(check_two(&a, &b, false, &err), SV_EUSAGE);
    b.pid = 8; /* another process of the rank */
    CHECK_INT_EQ(check_two(&a, &b, false, &err), 0);
}

TEST(of_one_rank_the_damaged_file_can_be_left_out)
{
    struct sv_merge_card a = card("a", 3, 0, 10), b = card("b", 3, 0, 10);
    struct sv_err err;
    a.is_damaged = true;
    CHECK_INT_EQ(check_two(&a, &b, true, &err), 0);
    CHECK(a.is_out && !b.is_out);
}

static void set_base(struct sv_clocks *c, int64_t base_ns)
{
    struct sv_snapshot s = {.n = 2, .uncertainty_ns = -1};
    s.readings[0] = (struct sv_reading){SV_CLOCK_UNKNOWN, 0};
    s.readings[1] = (struct sv_reading){SV_CLOCK_REALTIME, base_ns};
    sv_clocks_add(c, &s);
}

TEST(a_cut_file_takes_the_base_of_its_host_and_job)
{
    struct sv_clocks whole = {0}, cut = {0};
    struct sv_merge_card a = card("a", 0, 0, 10), b = card("b", 1, 0, 10);
    struct sv_merge_card *cards[] = {&a, &b};
    struct sv_report report;
    int64_t ns;
    sv_report_init(&report);
    a.clocks = &whole;
    b.clocks = &cut;
    b.is_damaged = true;
    set_base(&whole, 1700);

    b.machine = 1; /* of another host */
    sv_merge_find_clocks(cards, 2, false, &report);
    CHECK(b.is_out && !a.is_out && cut.n == 0);
    CHECK_UINT_EQ(sv_report_count(&report, SV_DAMAGE), 1);
    b.is_out = false;
    sv_merge_find_clocks(cards, 2, true, NULL); /* --assume: as it is */
    CHECK(!b.is_out && cut.n == 0);
    b.has_offset = true;
    sv_merge_find_clocks(cards, 2, false, NULL);
    CHECK(!b.is_out && cut.n == 0);
    b.has_offset = false;
    b.machine = 0;
    a.job = "1";
    b.job = "2";
    sv_merge_find_clocks(cards, 2, false, NULL);
    CHECK(b.is_out && cut.n == 0);
    b.is_out = false;
    b.job = "1";
    sv_merge_find_clocks(cards, 2, false, &report);
    CHECK(!b.is_out);
    REQUIRE(cut.n == 1);
    CHECK(sv_snapshot_get(&cut.snapshots[0], SV_CLOCK_REALTIME, &ns) && ns == 1700);
    sv_report_fini(&report);
    sv_clocks_fini(&whole);
    sv_clocks_fini(&cut);
}

TEST(files_that_never_had_a_clock_are_not_taken_for_cut_ones)
{
    struct sv_clocks none = {0}, realtime = {.trace_clock = SV_CLOCK_REALTIME};
    struct sv_merge_card a = card("a", 0, 0, 10), b = card("b", 1, 0, 10);
    struct sv_merge_card *cards[] = {&a, &b};
    a.clocks = &realtime;
    b.clocks = &none;
    sv_merge_find_clocks(cards, 2, false, NULL);
    CHECK(!a.is_out && !b.is_out);
}

/* ---- machine by machine ---- */

enum { HOSTS = 5, PER_HOST = 8, INPUTS = HOSTS * PER_HOST, EVENTS = 3000 };

static size_t count_open_files(void)
{
    size_t n = 0;
    DIR *dir = opendir("/proc/self/fd");
    if (!dir)
        return 0;
    while (readdir(dir))
        n++;
    closedir(dir);
    return n;
}

/* Ranks go round the hosts, so that neighbours in the order of inputs are of different hosts. */
static struct sv_merge *make_merge(void)
{
    struct sv_merge *m = sv_merge_new(&(struct sv_merge_options){.memory_bytes = 1});
    for (int i = 0; i < INPUTS; i++) {
        struct gen g;
        char name[32], host[32];
        gen_make(&g, &(struct gen_options){.seed = (uint64_t)i + 1,
                                           .n = EVENTS,
                                           .shape = SV_HAS_NESTED | SV_HAS_FLOW_POINTS,
                                           .extras = GEN_ALL});
        snprintf(name, sizeof name, "%d", i);
        snprintf(host, sizeof host, "host%d", i % HOSTS);
        sv_dict_set_meta(g.dict, "rank", name, strlen(name), false);
        sv_dict_set_meta(g.dict, "hostname", host, strlen(host), false);
        g.dict->clocks.trace_clock = SV_CLOCK_REALTIME;
        struct sv_merge_input in = {.name = name, .dict = g.dict};
        CHECK_INT_EQ(sv_merge_add(m, &in, gen_source(&g, SV_HAS_NESTED | SV_HAS_FLOW_POINTS, NULL),
                                  NULL, NULL),
                     0);
        g.dict = NULL;
        gen_fini(&g);
    }
    return m;
}

static void collect_merge(struct collect *c, struct sv_dict *dict, unsigned takes)
{
    struct sv_merge *m = make_merge();
    REQUIRE(sv_merge_relate(m, dict, NULL, NULL) == 0);
    CHECK_INT_EQ(sv_merge_pump(m, collect_sink(c, takes), NULL), 0);
}

/* How often the machine changes, and where times go back though it does not. */
static void look(const struct collect *c, const struct sv_dict *d, size_t *changes, size_t *back)
{
    *changes = *back = 0;
    for (size_t i = 1; i < c->n; i++) {
        uint32_t space = d->tracks[c->events[i].track].space;
        bool is_other = space != d->tracks[c->events[i - 1].track].space;
        *changes += is_other;
        *back += !is_other && c->events[i].ts_ns < c->events[i - 1].ts_ns;
    }
}

static uint64_t sum_of_times(const struct collect *c)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < c->n; i++)
        sum += (uint64_t)c->events[i].ts_ns * 31 + (uint64_t)c->events[i].dur_ns;
    return sum;
}

TEST(sinks_without_order_get_one_machine_after_the_other)
{
    struct collect parts = {0}, whole = {0};
    struct sv_dict *a = sv_dict_new(), *b = sv_dict_new();
    size_t changes, back;
    collect_merge(&parts, a, SV_HAS_ANYTHING);
    look(&parts, a, &changes, &back);
    CHECK_UINT_EQ(changes, HOSTS - 1);
    CHECK_UINT_EQ(back, 0);
    collect_merge(&whole, b, SV_HAS_ANYTHING & ~SV_ORDER_BITS);
    look(&whole, b, &changes, &back);
    CHECK(changes > 1000);
    for (size_t i = 1; i < whole.n; i++)
        CHECK(whole.events[i].ts_ns >= whole.events[i - 1].ts_ns);
    CHECK_UINT_EQ(parts.n, whole.n);
    CHECK_UINT_EQ(sum_of_times(&parts), sum_of_times(&whole));
    CHECK_UINT_EQ(a->n_tracks, b->n_tracks);
    collect_fini(&parts);
    collect_fini(&whole);
    sv_dict_free(a);
    sv_dict_free(b);
}

TEST(all_inputs_share_one_temporary_file)
{
    size_t before = count_open_files();
    struct sv_merge *m = make_merge();
    CHECK_UINT_EQ(count_open_files(), before + 1);
    sv_merge_free(m);
    CHECK_UINT_EQ(count_open_files(), before);
}

static int fail(struct sv_source *s, struct sv_batch *b, struct sv_err *err)
{
    (void)s;
    (void)b;
    return sv_err_set(err, SV_EFORMAT, 17, "broken");
}

static void close_nothing(struct sv_source *s)
{
    (void)s;
}

TEST(a_merge_goes_on_without_an_input_that_failed)
{
    struct sv_merge *m = make_merge();
    struct sv_dict *out = sv_dict_new(), *bad = sv_dict_new();
    struct sv_source source = {
        .next = fail, .close = close_nothing, .gives = SV_HAS_NESTED, .dict = bad};
    struct sv_err err = {0};
    struct collect c = {0};
    CHECK_INT_EQ(
        sv_merge_add(m, &(struct sv_merge_input){.name = "bad", .dict = bad}, &source, NULL, &err),
        SV_EFORMAT);
    REQUIRE(sv_merge_relate(m, out, NULL, NULL) == 0);
    CHECK_INT_EQ(sv_merge_pump(m, collect_sink(&c, SV_HAS_ANYTHING), NULL), 0);
    CHECK(c.n >= (size_t)INPUTS * EVENTS / 2);
    collect_fini(&c);
    sv_dict_free(out);
}
