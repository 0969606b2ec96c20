/* Decides which detail a recording gives up: see budget.h. Called by spend.c, once a second. */
#include "record/session/budget.h"

#include <stdlib.h>
#include <string.h>

/* Fewer samples than that a second show nothing. */
enum { LEAST_HZ = 5 };

/* A workload that uses less than a tenth of a CPU counts as a tenth; and when the recorder then
 * takes less than a twentieth of a CPU, detail costs nothing, because nothing happens. */
enum { IDLE_PART = 10, IDLE_COST_PART = 20 };

static const uint64_t longer[] = {1000000, 10000000, 100000000};

static uint64_t next_value(enum sv_budget_what what, uint64_t value)
{
    if (what == SV_BUDGET_SAMPLES)
        return value / 2 < LEAST_HZ ? 0 : value / 2;
    if (what == SV_BUDGET_STACKS || what == SV_BUDGET_PROBES)
        return 0;
    for (size_t i = 0; i < sizeof longer / sizeof *longer; i++)
        if (longer[i] > value)
            return longer[i];
    return value;
}

void sv_budget_open(struct sv_budget *b, double share, const struct sv_budget_start *start)
{
    *b = (struct sv_budget){.share = share, .n_patience = SV_BUDGET_QUIET};
    for (enum sv_budget_what what = 0; what < SV_N_BUDGET; what++) {
        uint64_t value = b->start[what] = b->values[what] = start->of[what].value;
        bool ends_at_0 = what <= SV_BUDGET_STACKS || what == SV_BUDGET_PROBES;
        while (start->of[what].has && !(ends_at_0 && value == 0) && b->n_steps < SV_BUDGET_STEPS) {
            uint64_t to = next_value(what, value);
            if (to == value)
                break;
            b->steps[b->n_steps++] = (struct sv_budget_step){what, value, to};
            value = to;
        }
    }
}

static bool is_reduced(const struct sv_budget *b, enum sv_budget_what what)
{
    return b->values[what] != b->start[what];
}

void sv_budget_passed(struct sv_budget *b, int64_t took_ns)
{
    bool is_off = is_reduced(b, SV_BUDGET_SAMPLES) && b->values[SV_BUDGET_SAMPLES] == 0;
    b->all_ns += took_ns;
    if (is_off)
        b->gaps[SV_BUDGET_OF_SAMPLES].off_ns += took_ns;
    else if (is_reduced(b, SV_BUDGET_SAMPLES))
        b->gaps[SV_BUDGET_OF_SAMPLES].less_ns += took_ns;
    if (is_reduced(b, SV_BUDGET_STACKS) || is_reduced(b, SV_BUDGET_WAITS))
        b->gaps[SV_BUDGET_OF_WAITS].less_ns += took_ns;
    if (is_reduced(b, SV_BUDGET_PROBES))
        b->gaps[SV_BUDGET_OF_CALLS].off_ns += took_ns;
    else if (is_reduced(b, SV_BUDGET_CALLS))
        b->gaps[SV_BUDGET_OF_CALLS].less_ns += took_ns;
}

static struct sv_budget_cost sum_of_window(const struct sv_budget *b)
{
    struct sv_budget_cost sum = {0};
    size_t n = b->n_measured < SV_BUDGET_WINDOW ? b->n_measured : SV_BUDGET_WINDOW;
    for (size_t i = 0; i < n; i++) {
        sum.took_ns += b->window[i].took_ns;
        sum.cost_ns += b->window[i].cost_ns;
        sum.workload_ns += b->window[i].workload_ns;
    }
    return sum;
}

/* What was measured before does not show what the step changes. */
static void take_step(struct sv_budget *b, const struct sv_budget_step *step)
{
    b->values[step->what] = step->to;
    b->n_measured = b->n_quiet = 0;
}

static void give_up(struct sv_budget *b, struct sv_budget_step *step)
{
    *step = b->steps[b->n_taken++];
    b->n_gave_up++;
    take_step(b, step);
}

static double share_of(const struct sv_budget_cost *c)
{
    int64_t least = c->took_ns / IDLE_PART,
            workload = c->workload_ns > least ? c->workload_ns : least;
    return workload > 0 ? (double)c->cost_ns / (double)workload : 0;
}

/* One, two, or half of those that are left: so a load that explodes is met within four
 * measurements. */
static size_t steps_due(const struct sv_budget *b, const struct sv_budget_cost *now)
{
    size_t left = b->n_steps - b->n_taken;
    double times = share_of(now) / b->share;
    size_t n = times > 4 ? (left + 1) / 2 : times > 2 ? 2 : 1;
    return n < left ? n : left;
}

/* What was taken back and costs too much again is left alone for longer. */
static void set_patience(struct sv_budget *b)
{
    if (b->was_back && b->n_since_back < SV_BUDGET_QUIET)
        b->n_patience = b->n_patience < SV_BUDGET_QUIET_MOST ? b->n_patience * 2 : b->n_patience;
    else if (b->n_since_back > 4 * b->n_patience)
        b->n_patience = SV_BUDGET_QUIET;
    b->was_back = false;
}

bool sv_budget_measure(struct sv_budget *b, const struct sv_budget_cost *cost,
                       struct sv_budget_step *step)
{
    sv_budget_passed(b, cost->took_ns);
    b->window[b->n_measured++ % SV_BUDGET_WINDOW] = *cost;
    struct sv_budget_cost sum = sum_of_window(b);
    bool is_idle = sum.workload_ns < sum.took_ns / IDLE_PART &&
                   sum.cost_ns < sum.took_ns / IDLE_COST_PART;
    b->cost = share_of(&sum);
    b->n_quiet = is_idle || b->cost < b->share / 2 ? b->n_quiet + 1 : 0;
    b->n_since_back++;
    b->n_due = 0;
    if (!is_idle && b->cost > b->share && b->n_taken < b->n_steps) {
        set_patience(b);
        b->n_due = steps_due(b, cost) - 1;
        give_up(b, step);
        return true;
    }
    if (b->n_quiet >= b->n_patience && b->n_taken > 0) {
        const struct sv_budget_step *last = &b->steps[--b->n_taken];
        *step = (struct sv_budget_step){last->what, last->to, last->from};
        b->n_took_back++;
        b->n_since_back = 0;
        b->was_back = true;
        take_step(b, step);
        return true;
    }
    return false;
}

bool sv_budget_more(struct sv_budget *b, struct sv_budget_step *step)
{
    if (b->n_due == 0)
        return false;
    b->n_due--;
    give_up(b, step);
    return true;
}

bool sv_budget_parse(const char *text, double *share)
{
    size_t n = strspn(text, "0123456789.");
    char *end;
    if (n == 0 || strcmp(text + n, "%") != 0)
        return false;
    *share = strtod(text, &end) / 100;
    return end == text + n && *share > 0 && *share <= 1;
}
