/* --budget by itself: the steps and their order, when one is taken and taken back, what counts as
 * not recorded. */
#include "record/session/budget.h"
#include "tests/harness/test.h"

#define S  ((int64_t)1000000000)
#define MS 1000000

static const struct sv_budget_start all = {{[SV_BUDGET_SAMPLES] = {true, 19},
                                            [SV_BUDGET_STACKS] = {true, 1},
                                            [SV_BUDGET_WAITS] = {true, MS},
                                            [SV_BUDGET_CALLS] = {true, 0},
                                            [SV_BUDGET_PROBES] = {true, 1}}};
static const struct sv_budget_step in_order[] = {
    {SV_BUDGET_SAMPLES, 19, 9},
    {SV_BUDGET_SAMPLES, 9, 0},
    {SV_BUDGET_STACKS, 1, 0},
    {SV_BUDGET_WAITS, MS, 10 * MS},
    {SV_BUDGET_WAITS, 10 * MS, 100 * MS},
    {SV_BUDGET_CALLS, 0, MS},
    {SV_BUDGET_CALLS, MS, 10 * MS},
    {SV_BUDGET_CALLS, 10 * MS, 100 * MS},
    {SV_BUDGET_PROBES, 1, 0},
};
enum { STEPS = sizeof in_order / sizeof *in_order };

/* A second in which a workload of one CPU costs so much. */
static bool second(struct sv_budget *b, double cost, struct sv_budget_step *step)
{
    const struct sv_budget_cost c = {S, (int64_t)(cost * (double)S), S};
    return sv_budget_measure(b, &c, step);
}

static void check_step(const struct sv_budget_step *is, const struct sv_budget_step *want,
                       bool is_back)
{
    CHECK_INT_EQ(is->what, want->what);
    CHECK_UINT_EQ(is->from, is_back ? want->to : want->from);
    CHECK_UINT_EQ(is->to, is_back ? want->from : want->to);
}

TEST(budget_gives_up_and_takes_back_in_order)
{
    struct sv_budget b;
    struct sv_budget_step step;
    sv_budget_open(&b, 0.01, &all);
    CHECK_UINT_EQ(b.n_steps, STEPS);
    for (unsigned i = 0; i < STEPS; i++) {
        CONTEXT("step %u", i);
        CHECK(second(&b, 0.011, &step));
        check_step(&step, &in_order[i], false);
        CHECK_UINT_EQ(b.values[step.what], step.to);
    }
    CHECK(!second(&b, 0.5, &step)); /* nothing is left */
    for (unsigned i = STEPS; i-- > 0;) {
        CONTEXT("step %u back", i);
        unsigned n = 1;
        while (!second(&b, 0.0049, &step) && n < 100)
            n++;
        /* the window still has the expensive second above */
        CHECK(i == STEPS - 1 ? n >= SV_BUDGET_QUIET : n == SV_BUDGET_QUIET);
        check_step(&step, &in_order[i], true);
    }
    for (unsigned i = 0; i < SV_N_BUDGET; i++)
        CHECK_UINT_EQ(b.values[i], all.of[i].value);
    CHECK_UINT_EQ(b.n_gave_up, STEPS);
    CHECK_UINT_EQ(b.n_took_back, STEPS);
    for (unsigned i = 0; i < 30; i++)
        CHECK(!second(&b, 0.001, &step));
}

TEST(budget_holds_between_half_and_all_of_it)
{
    struct sv_budget b;
    struct sv_budget_step step;
    sv_budget_open(&b, 0.02, &all);
    CHECK(second(&b, 0.03, &step));
    for (unsigned i = 0; i < 100; i++)
        CHECK(!second(&b, i % 2 ? 0.02 : 0.011, &step));
    for (unsigned i = 0; i < 11; i++) /* the first ones do not outweigh what was before */
        CHECK(!second(&b, 0, &step));
    CHECK_UINT_EQ(b.n_quiet, SV_BUDGET_QUIET - 1);
    CHECK(!second(&b, 0.06, &step)); /* one expensive second starts the ten anew */
    CHECK_UINT_EQ(b.n_quiet, 0);
}

TEST(budget_is_of_the_mean_of_the_window)
{
    struct sv_budget b;
    struct sv_budget_step step;
    sv_budget_open(&b, 0.01, &all);
    for (unsigned i = 0; i < 4; i++)
        CHECK(!second(&b, 0.006, &step));
    CHECK(!second(&b, 0.02, &step));  /* 0.0088 */
    CHECK(second(&b, 0.02, &step));   /* 0.0116 */
    CHECK(!second(&b, 0.006, &step)); /* what was before the step is not seen again */
}

TEST(budget_of_an_idle_workload)
{
    struct sv_budget b;
    struct sv_budget_step step;
    const struct sv_budget_cost idle = {S, S / 25, 0}, busy = {S, S / 10, 0};
    sv_budget_open(&b, 0.01, &all);
    for (unsigned i = 0; i < 30; i++)
        CHECK(!sv_budget_measure(&b, &idle, &step));
    sv_budget_open(&b, 0.01, &all);
    CHECK(sv_budget_measure(&b, &busy, &step)); /* nobody works but the recorder */
    CHECK(!sv_budget_measure(&b, &idle, &step));
    sv_budget_open(&b, 0.01, &all);
    CHECK(!sv_budget_measure(&b, &(struct sv_budget_cost){0}, &step)); /* no time has passed */
}

TEST(budget_gives_up_only_what_there_is)
{
    struct sv_budget b;
    const struct sv_budget_start some = {{[SV_BUDGET_STACKS] = {false, 1},
                                          [SV_BUDGET_WAITS] = {false, 0},
                                          [SV_BUDGET_CALLS] = {true, 20 * MS}}},
                                 none = {0},
                                 most = {{[SV_BUDGET_SAMPLES] = {true, 10000},
                                          [SV_BUDGET_STACKS] = {true, 1},
                                          [SV_BUDGET_WAITS] = {true, 0},
                                          [SV_BUDGET_CALLS] = {true, 0}}};
    sv_budget_open(&b, 0.01, &some);
    CHECK_UINT_EQ(b.n_steps, 1);
    CHECK_UINT_EQ(b.steps[0].from, 20 * MS);
    CHECK_UINT_EQ(b.steps[0].to, 100 * MS);
    sv_budget_open(&b, 0.01, &none);
    CHECK_UINT_EQ(b.n_steps, 0);
    sv_budget_open(&b, 0.01, &most); /* all of them fit */
    CHECK(b.n_steps < SV_BUDGET_STEPS);
    CHECK_INT_EQ(b.steps[b.n_steps - 1].what, SV_BUDGET_CALLS);
    CHECK_UINT_EQ(b.steps[b.n_steps - 1].to, 100 * MS);
}

TEST(budget_counts_for_how_long_what_was_not_recorded)
{
    struct sv_budget b;
    struct sv_budget_step step;
    sv_budget_open(&b, 0.01, &all);
    for (unsigned i = 0; i < STEPS; i++)
        CHECK(second(&b, 0.011, &step));
    sv_budget_passed(&b, S / 2);
    /* The second that ends with a step still had what the step gives up. */
    CHECK_INT_EQ(b.all_ns, STEPS * S + S / 2);
    CHECK_INT_EQ(b.gaps[SV_BUDGET_OF_SAMPLES].less_ns, S);
    CHECK_INT_EQ(b.gaps[SV_BUDGET_OF_SAMPLES].off_ns, 7 * S + S / 2);
    CHECK_INT_EQ(b.gaps[SV_BUDGET_OF_WAITS].less_ns, 6 * S + S / 2);
    CHECK_INT_EQ(b.gaps[SV_BUDGET_OF_WAITS].off_ns, 0);
    CHECK_INT_EQ(b.gaps[SV_BUDGET_OF_CALLS].less_ns, 3 * S);
    CHECK_INT_EQ(b.gaps[SV_BUDGET_OF_CALLS].off_ns, S / 2);
}

/* Takes all steps that a measurement asks for; returns how many. */
static unsigned steps_of(struct sv_budget *b, double cost)
{
    struct sv_budget_step step;
    unsigned n = second(b, cost, &step);
    while (n && sv_budget_more(b, &step))
        n++;
    CHECK(n == 0 || step.what == b->steps[b->n_taken - 1].what);
    return n;
}

TEST(budget_of_a_load_that_explodes)
{
    struct sv_budget b;
    sv_budget_open(&b, 0.02, &all);
    CHECK_UINT_EQ(steps_of(&b, 0.09), 5); /* half of what is left */
    CHECK_UINT_EQ(steps_of(&b, 0.09), 2);
    CHECK_UINT_EQ(steps_of(&b, 0.09), 1);
    CHECK_UINT_EQ(steps_of(&b, 0.09), 1);
    CHECK_UINT_EQ(steps_of(&b, 0.09), 0); /* nothing is left */
    CHECK_UINT_EQ(b.n_taken, STEPS);
    sv_budget_open(&b, 0.02, &all);
    CHECK_UINT_EQ(steps_of(&b, 0.05), 2);
    CHECK_UINT_EQ(steps_of(&b, 0.03), 1);
    CHECK_UINT_EQ(steps_of(&b, 0.02), 0);
}

TEST(budget_is_patient_with_what_costs_too_much_again)
{
    struct sv_budget b;
    struct sv_budget_step step;
    sv_budget_open(&b, 0.02, &all);
    CHECK_UINT_EQ(steps_of(&b, 0.03), 1);
    unsigned patience[5];
    for (unsigned i = 0; i < TEST_COUNT(patience); i++) {
        for (patience[i] = 1; !second(&b, 0, &step); patience[i]++)
            CHECK(patience[i] < 1000);
        CHECK_UINT_EQ(b.n_taken, 0);
        CHECK_UINT_EQ(steps_of(&b, 0.03), 1);
    }
    CHECK_UINT_EQ(patience[0], SV_BUDGET_QUIET);
    CHECK_UINT_EQ(patience[1], 2 * SV_BUDGET_QUIET);
    CHECK_UINT_EQ(patience[4], SV_BUDGET_QUIET_MOST);
    /* Much later it is another load. */
    for (unsigned i = 0; i < 1000; i++)
        second(&b, 0.015, &step);
    CHECK_UINT_EQ(steps_of(&b, 0.3), 4);
    for (patience[0] = 1; !second(&b, 0, &step); patience[0]++)
        CHECK(patience[0] < 1000);
    CHECK_UINT_EQ(patience[0], SV_BUDGET_QUIET);
}

TEST(budget_shares)
{
    static const char *const bad[] = {"",    "%",    "1",    "0%",   "-1%",   "1 %", "101%",
                                      "1%%", "nan%", "0x1%", "1.%.", "1..5%", "inf%"};
    double share = 0;
    CHECK(sv_budget_parse("1%", &share) && share > 0.00999 && share < 0.01001);
    CHECK(sv_budget_parse("0.0001%", &share) && share > 0.99e-6 && share < 1.01e-6);
    CHECK(sv_budget_parse("100%", &share) && share > 0.999);
    for (unsigned i = 0; i < TEST_COUNT(bad); i++) {
        CONTEXT("'%s'", bad[i]);
        CHECK(!sv_budget_parse(bad[i], &share));
    }
}
