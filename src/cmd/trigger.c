/* stave trigger: a recording with --last saves what its ring holds, and continues; --check tries
 * the conditions of --when on a recorded trace. */
#include "cli/console.h"
#include "cmd/commands.h"
#include "files/open.h"
#include "record/session/running.h"
#include "record/when/when.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { WAIT_MS = 20, WAIT_MAX_MS = 60000 };

struct trigger_options {
    const char *check;
    struct sv_words when;
};

/* ---- a recording ---- */

/* Has it saved one more? Then what it said of itself is in *now. */
static bool has_saved(const struct sv_running *r, struct sv_running *now)
{
    struct sv_running *all;
    size_t n = sv_running_all(&all);
    bool is_done = false;
    for (size_t i = 0; i < n; i++)
        if (sv_process_id_equal(&all[i].id, &r->id) && all[i].state.saved > r->state.saved) {
            *now = all[i];
            is_done = true;
        }
    free(all);
    return is_done;
}

static int trigger(const struct sv_running *r, struct sv_err *err)
{
    static struct sv_running now;
    int code = sv_running_signal(r, SIGUSR1, err);
    bool is_done = false;
    if (code < 0)
        return code;
    for (int ms = 0; ms < WAIT_MAX_MS && !(is_done = has_saved(r, &now)); ms += WAIT_MS)
        nanosleep(&(struct timespec){.tv_nsec = WAIT_MS * 1000000L}, NULL);
    if (!is_done)
        return sv_error(err, SV_EIO, "recording %u was asked to save, but no file has appeared",
                        r->id.pid);
    const char *path = now.state.newest;
    sv_print(stdout, "%s%s%s\n", path[0] == '/' ? "" : now.folder, path[0] == '/' ? "" : "/", path);
    return 0;
}

static int trigger_running(const struct sv_words *operands, struct sv_err *err)
{
    struct sv_running *all;
    const struct sv_running *chosen = NULL;
    const char *problem;
    char text[700];
    int code = 0;
    size_t n = sv_running_all(&all), n_rings = 0;
    const char *word = operands->n ? operands->items[0] : NULL;
    for (size_t i = 0; i < n; i++) {
        if (word ? !sv_running_is(&all[i], word) : !all[i].is_ring)
            continue;
        chosen = &all[i];
        n_rings++;
    }
    if (n_rings > 1)
        code = sv_error(err, SV_EUSAGE,
                        "%zu recordings match; give one by its pid ('stave status' lists them)",
                        n_rings);
    else if (n == 0 && (problem = sv_running_problem(text, sizeof text)))
        code = sv_error(err, SV_EINPUT, "%s", problem);
    else if (!chosen && word)
        code = sv_error(err, SV_EINPUT, "no recording '%s' is running", word);
    else if (!chosen)
        code = sv_error(err, SV_EINPUT, "no recording with --last is running");
    else if (!chosen->is_ring)
        code =
            sv_error(err, SV_EUSAGE,
                     "recording %d keeps everything: a trigger needs --last; 'stave stop' ends it",
                     (int)chosen->id.pid);
    else
        code = trigger(chosen, err);
    free(all);
    return code;
}

/* ---- --check ---- */

struct check {
    struct sv_sink sink;
    struct sv_when *when;
    struct sv_dict *dict;
    int64_t first_ns, last_ns;
    uint64_t n_hits;
    bool is_any;
};

static void print_hits(struct check *c)
{
    struct sv_when_hit h;
    while (sv_when_next(c->when, &h)) {
        char at[32];
        sv_print(stdout, "%12s  ", sv_human_ns(at, h.ts_ns - c->first_ns));
        sv_print_text(stdout, "", sv_when_text(c->when, h.condition),
                      strlen(sv_when_text(c->when, h.condition)), ": ");
        sv_print_text(stdout, "", h.cause, strlen(h.cause), "\n");
        c->n_hits++;
    }
}

static int check_write(struct sv_sink *s, const struct sv_event *events, size_t n,
                       struct sv_err *err)
{
    struct check *c = (struct check *)s;
    (void)err;
    for (size_t i = 0; i < n; i++) {
        if (!c->is_any)
            c->first_ns = events[i].ts_ns;
        c->is_any = true;
        c->last_ns = events[i].ts_ns;
        sv_when_tick(c->when, c->last_ns); /* first: what has not come until now */
        sv_when_feed(c->when, &events[i], 1);
        print_hits(c);
    }
    return 0;
}

static int check_close(struct sv_sink *s, bool failed, struct sv_err *err)
{
    struct check *c = (struct check *)s;
    unsigned condition;
    const char *what;
    (void)err;
    print_hits(c);
    while (!failed && sv_when_unseen(c->when, true, &condition, &what))
        sv_console_note("--when '%s': nothing in this trace is %s",
                        sv_when_text(c->when, condition), what);
    if (!failed && c->n_hits == 0)
        sv_console_note("no condition holds anywhere in this trace");
    return 0;
}

static int check(const struct trigger_options *o, struct sv_err *err)
{
    struct sv_opened in;
    struct sv_dict *dict = sv_dict_new();
    struct check c = {.sink = {.write = check_write,
                               .close = check_close,
                               .takes = SV_HAS_EDGES | SV_HAS_SLICES | SV_IN_ORDER},
                      .when = sv_when_new(dict),
                      .dict = dict};
    int code = 0;
    for (size_t i = 0; code >= 0 && i < o->when.n; i++)
        code = sv_when_add(c.when, o->when.items[i], err);
    if (code >= 0 && sv_when_needs(c.when) & SV_WHEN_LOG)
        code = sv_error(err, SV_EUSAGE,
                        "--check: no trace has the lines of a log: leave out the "
                        "conditions with 'log'");
    if (code >= 0 && (code = sv_open_input(o->check, NULL, 0, dict, &in, err)) >= 0) {
        code = sv_run(&in, &c.sink, false, "checking", err);
        sv_opened_close(&in);
    }
    sv_when_free(c.when);
    sv_dict_free(dict);
    return code;
}

static int run(void *options, const struct sv_words *operands, struct sv_err *err)
{
    struct trigger_options *o = options;
    int code = sv_expect_operands(operands, 0, o->check ? 0 : 1, "recording", err);
    if (code >= 0 && !o->check != !o->when.n)
        code = sv_error(err, SV_EUSAGE,
                        "--check and --when belong together: stave trigger --check "
                        "run.pftrace --when 'step > 2x median'");
    if (code >= 0)
        code = o->check ? check(o, err) : trigger_running(operands, err);
    sv_words_free(&o->when);
    return code;
}

static const struct sv_option options[] = {
    {0, "check", "TRACE", SV_OPT_TEXT, offsetof(struct trigger_options, check),
     "try conditions on a recorded trace and list where they hold, instead of saving", NULL, NULL},
    {0, "when", "CONDITION", SV_OPT_LIST, offsetof(struct trigger_options, when),
     "with --check: a condition as for 'stave record --when'; may be given several times", NULL,
     NULL},
    {0},
};

static const struct sv_example examples[] = {
    {"stave record --detach --last 30s -o night.pftrace -p 4711", "keep the last 30 seconds"},
    {"stave trigger", "save them as night-0001.pftrace and print the name"},
    {"stave trigger --check night.pftrace --when 'step > 2x median' --when 'exit != 0'",
     "what these conditions would have found in a trace"},
    {"kill -USR1 PID", "the same from a program, with the pid that 'stave status' shows"},
    {0},
};

const struct sv_command sv_command_trigger = {
    .name = "trigger",
    .operands = "[RECORDING | --check TRACE --when CONDITION…]",
    .summary = "save the ring of a recording with --last",
    .description =
        "Asks a recording with --last to write its ring to the next numbered file beside its "
        "output, waits until that file is complete and prints its name. The recording "
        "continues.\n\n"
        "With --check it reads a trace instead and prints a line for each time at which one of the "
        "conditions holds: the time since the trace began, the condition and what happened. The "
        "conditions are those of 'stave record --when'.",
    .options = options,
    .examples = examples,
    .options_size = sizeof(struct trigger_options),
    .run = run,
};
