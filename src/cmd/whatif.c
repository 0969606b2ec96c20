/* stave whatif: what a job of many ranks would take without its stragglers, and units without what
 * they wait for. */
#include "cmd/whatif.h"

#include "cli/console.h"
#include "cli/json_fit.h"
#include "cli/rows.h"
#include "cmd/commands.h"
#include "core/base/json.h"
#include "files/load.h"
#include "subjects/comm/job.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct whatif {
    const char *from, *as_median, *unit;
    struct sv_words without;
    struct sv_range range;
    bool strict, assume, json, all, no_index;
    uint64_t memory_limit;
};

enum { SHOWN = 8 }; /* of each list, for people */

static enum sv_replay_by by_name(const char *name)
{
    unsigned by = 0;
    while (by < SV_N_REPLAY_BY && (!name || strcmp(name, sv_replay_by_names[by]) != 0))
        by++;
    return by;
}

/* ---- JSON ---- */

static void put_named(struct sv_json *j, const struct sv_replay_named *x, bool says_kind)
{
    sv_json_line(j);
    sv_json_begin(j, '{');
    if (says_kind) {
        sv_json_lit(j, "by");
        sv_json_text(j, sv_replay_by_names[x->by], strlen(sv_replay_by_names[x->by]));
    }
    sv_json_lit(j, "name");
    sv_json_text(j, x->name, strlen(x->name));
    sv_json_lit(j, "slowdown");
    sv_json_double(j, x->slowdown);
    sv_json_lit(j, "explains");
    sv_json_double(j, x->explains);
    sv_json_lit(j, "gain");
    sv_json_double(j, x->gain);
    sv_json_end(j);
}

static void put_lists(struct sv_json *j, const struct sv_replay_result *r, size_t most)
{
    sv_json_lit(j, "by");
    sv_json_begin(j, '{');
    for (unsigned by = 0; by < SV_N_REPLAY_BY; by++) {
        if (by == SV_REPLAY_WORKER && !r->by[by].n)
            continue;
        sv_json_line(j);
        sv_json_key(j, sv_replay_by_names[by], strlen(sv_replay_by_names[by]));
        sv_json_begin(j, '[');
        for (size_t i = 0; i < r->by[by].n && i < most; i++)
            put_named(j, &r->by[by].items[i], false);
        sv_json_end(j);
    }
    sv_json_end(j);
    sv_json_lit(j, "culprits");
    sv_json_begin(j, '[');
    for (size_t i = 0; i < r->n_culprits && i < most; i++)
        put_named(j, &r->culprits[i], true);
    sv_json_end(j);
}

struct result {
    const struct sv_replay_result *r;
    const char *as_median;
};

static int fill(void *ctx, size_t most, struct sv_buf *to, struct sv_err *err)
{
    const struct sv_replay_result *r = ((const struct result *)ctx)->r;
    const char *as_median = ((const struct result *)ctx)->as_median;
    struct sv_json j;
    (void)err;
    sv_json_init(&j, to);
    sv_json_begin(&j, '{');
    sv_json_lit(&j, "version");
    sv_json_i64(&j, 1);
    sv_json_lit(&j, "ranks");
    sv_json_u64(&j, r->n_ranks);
    sv_json_lit(&j, "steps");
    sv_json_u64(&j, r->n_steps);
    sv_json_lit(&j, "measured_ns");
    sv_json_i64(&j, r->measured_ns);
    sv_json_lit(&j, "replayed_ns");
    sv_json_i64(&j, r->replayed_ns);
    sv_json_lit(&j, "error");
    sv_json_double(&j, r->error);
    if (r->is_told) {
        sv_json_lit(&j, "ideal_ns");
        sv_json_i64(&j, r->ideal_ns);
        sv_json_lit(&j, "slowdown");
        sv_json_double(&j, r->slowdown);
        if (r->as_median_ns >= 0) {
            sv_json_lit(&j, "as_median");
            sv_json_begin(&j, '{');
            sv_json_lit(&j, "by");
            sv_json_text(&j, as_median, strlen(as_median));
            sv_json_lit(&j, "replayed_ns");
            sv_json_i64(&j, r->as_median_ns);
            sv_json_end(&j);
        }
        put_lists(&j, r, most);
    } else {
        sv_json_lit(&j, "cannot_say");
        sv_json_text(&j, r->reason, strlen(r->reason));
    }
    sv_json_end(&j);
    return 0;
}

static int print_json(const struct sv_replay_result *r, const char *as_median, bool all,
                      struct sv_err *err)
{
    return sv_json_fit(&(struct sv_json_fit){.fill = fill,
                                             .ctx = &(struct result){r, as_median},
                                             .all = all,
                                             .more = "--all has all of each list"},
                       err);
}

/* ---- for people ---- */

static void print_head(const struct sv_replay_result *r)
{
    char measured[32], replayed[32], ideal[32];
    if (r->n_steps)
        sv_print(stdout, "%zu ranks, %zu steps, %zu operations\n", r->n_ranks, r->n_steps,
                 r->n_ops);
    else
        sv_print(stdout, "%zu ranks, no steps found, %zu operations\n", r->n_ranks, r->n_ops);
    sv_print(stdout, "time of %s  %s measured, %s replayed (%+.1f %%)\n",
             r->n_steps ? "a step " : "the run", sv_human_ns(measured, r->measured_ns),
             sv_human_ns(replayed, r->replayed_ns), 100 * r->error);
    sv_print(stdout, "ideal            %s: all operations take what their like take\n",
             sv_human_ns(ideal, r->ideal_ns));
    sv_print(stdout, "slowdown         %.3f\n", r->slowdown);
    for (size_t i = 0; i < r->n_culprits; i++)
        sv_print(stdout,
                 "cause            %s%s: %.0f %% of the slowdown, %.1f %% of the time less if it "
                 "were like "
                 "its peers\n",
                 r->culprits[i].by == SV_REPLAY_HOST ? "host " : "", r->culprits[i].name,
                 100 * r->culprits[i].explains, 100 * r->culprits[i].gain);
    if (!r->n_culprits)
        sv_print(stdout, "cause            none: no rank, host or stage stands out\n");
}

static int print_tables(const struct sv_replay_result *r, struct sv_err *err)
{
    static const char *const columns[] = {"by", "name", "slowdown", "explains %", "gain %"};
    struct sv_printer *p = NULL;
    int code = sv_printer_open("table", &p, err);
    if (code >= 0)
        code = p->rows.head(&p->rows, columns, 5, err);
    for (unsigned by = 0; by < SV_N_REPLAY_BY; by++)
        for (size_t i = 0; code >= 0 && i < r->by[by].n && i < SHOWN; i++) {
            const struct sv_replay_named *x = &r->by[by].items[i];
            char text[3][32];
            snprintf(text[0], sizeof *text, "%.3f", x->slowdown);
            snprintf(text[1], sizeof *text, "%.1f", 100 * x->explains);
            snprintf(text[2], sizeof *text, "%.1f", 100 * x->gain);
            struct sv_cell cells[] = {sv_cell_text(sv_replay_by_names[by]), sv_cell_text(x->name),
                                      sv_cell_text(text[0]), sv_cell_text(text[1]),
                                      sv_cell_text(text[2])};
            code = p->rows.row(&p->rows, cells, 5, err);
        }
    if (code >= 0)
        code = p->rows.end(&p->rows, err);
    int closed = sv_printer_close(p, err);
    return code < 0 ? code : closed;
}

static int print_text(const struct sv_replay_result *r, const char *as_median, struct sv_err *err)
{
    char text[32];
    print_head(r);
    if (r->as_median_ns >= 0)
        sv_print(stdout, "as median        %s if every %s took the median (%+.1f %%)\n",
                 sv_human_ns(text, r->as_median_ns), as_median,
                 100 * ((double)r->as_median_ns / (double)r->replayed_ns - 1));
    if (r->steps_left_out)
        sv_console_note("steps that are left out because they are not complete: %zu",
                        r->steps_left_out);
    sv_print(stdout, "\n");
    return print_tables(r, err);
}

/* ---- the command ---- */

/* path: the first of the traces. */
static int run_loaded(const struct whatif *o, const struct sv_trace *t, const char *path,
                      struct sv_err *err)
{
    struct sv_replay_result r;
    int code = 0;
    sv_replay_job_as(&r, t, by_name(o->as_median));
    if (!r.is_job)
        code = sv_err_set(err, SV_EINPUT, SV_NO_POS, "%s: %s", path, r.reason);
    else if (o->json)
        code = print_json(&r, o->as_median, o->all, err);
    else if (r.is_told)
        code = print_text(&r, o->as_median, err);
    if (code >= 0 && r.is_job && !r.is_told) {
        sv_console_error(path, SV_NO_POS, r.reason);
        code = SV_EXIT_UNSURE;
    }
    sv_replay_result_fini(&r);
    return code;
}

static int answer(const struct whatif *o, const struct sv_words *operands, struct sv_err *err)
{
    struct sv_loaded l;
    int code = sv_expect_operands(operands, 1, 10000, "trace", err);
    if (code >= 0)
        code = sv_options_need("all", "json", err);
    unsigned by = by_name(o->as_median);
    if (code < 0)
        return code;
    if (o->as_median && (by == SV_REPLAY_WORKER || by == SV_N_REPLAY_BY))
        return sv_err_set(err, SV_EUSAGE, SV_NO_POS,
                          "--as-median: '%s' is none of rank, host, stage, kind", o->as_median);
    if (o->as_median && o->without.n)
        return sv_err_set(err, SV_EUSAGE, SV_NO_POS,
                          "--as-median asks about a job, --without about units: give one of them");
    code = sv_whatif_check(&o->without, err);
    if (code < 0)
        return code;
    code =
        sv_load_traces(operands->items, operands->n, &(struct sv_load_how)SV_LOAD_HOW(o), &l, err);
    if (code >= 0 && o->without.n)
        code = sv_whatif_units(l.trace, operands->items[0], &o->without, o->unit, o->json, err);
    else if (code >= 0)
        code = run_loaded(o, l.trace, operands->items[0], err);
    sv_loaded_free(&l);
    return code;
}

static int run(void *options, const struct sv_words *operands, struct sv_err *err)
{
    struct whatif *o = options;
    int code = answer(o, operands, err);
    sv_words_free(&o->without);
    return code;
}

static const struct sv_option options[] = {
    {0, "as-median", "WHAT", SV_OPT_TEXT, offsetof(struct whatif, as_median),
     "also replay with the median over what differs only in this: rank, host, stage; or of each "
     "kind",
     "rank host stage kind", NULL},
    {0, "without", "WHAT", SV_OPT_LIST, offsetof(struct whatif, without),
     "replay the units (steps, requests …) without file:GLOB, thread:GLOB, lock:GLOB or "
     "cause:CLASS; may be given several times, each is replayed alone",
     NULL, NULL},
    {0, "unit", "GLOB", SV_OPT_TEXT, offsetof(struct whatif, unit),
     "with --without: the slices or instants that are the units", NULL, NULL},
    {0, "json", NULL, SV_OPT_FLAG, offsetof(struct whatif, json), "the answer as JSON", NULL, NULL},
    {0, "all", NULL, SV_OPT_FLAG, offsetof(struct whatif, all),
     "with --json: all of each list, however long", NULL, NULL},
    SV_MEMORY_OPTION(struct whatif),
    SV_INDEX_OPTION(struct whatif),
    SV_RANGE_OPTIONS(struct whatif),
    SV_INPUTS_OPTIONS(struct whatif),
    {0},
};

static const struct sv_example examples[] = {
    {"stave whatif rank*.json", "who slows the job down, and by how much?"},
    {"stave whatif --as-median rank job.pftrace", "if all ranks were like the middle one"},
    {"stave whatif --without 'file:*.npy' run.pftrace", "if these files took no time"},
    {"stave whatif --without lock:index_lock --without thread:rebuilder run.pftrace",
     "without a lock, and without a thread"},
    {"stave whatif --json job.pftrace", "for tools"},
    {0},
};

const struct sv_command sv_command_whatif = {
    .name = "whatif",
    .operands = "TRACE… [--as-median rank|host|stage|kind | --without WHAT…]",
    .summary = "say what a job would take without its stragglers, a step without what it waits for",
    .description =
        "Replays the steps of a job: each operation begins when those that it follows have ended, "
        "and a collective ends after the last of its ranks has come. First with the measured "
        "lengths: the error says how well the replay gives the measured time. Then with ideal "
        "ones (the mean of like operations for computing, the median for communication): the "
        "slowdown is measured over ideal. The same with only one rank, host, stage or kind as "
        "measured is its slowdown; what is gone when only that one is ideal is what it explains. "
        "Causes are named by cost; a host or stage is named instead of its ranks where no single "
        "one explains as much.\n\n"
        "Give the traces of all ranks, or one that was merged. Collectives of 'stave record', "
        "MPI, PyTorch profiles and flight recorders are understood, and timelines of pipelines "
        "with threads called 'PP rank 1, TP rank 0' and an argument 'step'. docs/whatif.md has "
        "the rules.\n\n"
        "With --without the units of one recording (steps, requests, turns of a loop, as 'stave "
        "explain' finds them) are replayed: all threads run again, each wait lasts until the "
        "thread that ended it comes to that point, and what is left out takes no time. So a unit "
        "does not become shorter than its next longest path.\n\n"
        "Exit code 3: the trace has no ranks to compare. Exit code 6: the replay misses the "
        "measured time by more than 5 %, or operations that count as equal are not, so nothing is "
        "said.",
    .options = options,
    .examples = examples,
    .lists = sv_format_lists,
    .options_size = sizeof(struct whatif),
    .run = run,
};
