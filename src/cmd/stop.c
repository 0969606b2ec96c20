/* stave stop: ends recordings and waits until their traces are complete. */
#include "cli/console.h"
#include "cmd/commands.h"
#include "files/open.h"
#include "record/session/running.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { WAIT_MS = 50, WAIT_MAX_MS = 60000 };

struct stop_options {
    bool all;
};

static bool still_runs(const struct sv_process_id *id)
{
    struct sv_running *all;
    size_t n = sv_running_all(&all);
    bool runs = false;
    for (size_t i = 0; i < n; i++)
        runs |= sv_process_id_equal(&all[i].id, id);
    free(all);
    return runs;
}

static int stop_one(const struct sv_running *r, struct sv_err *err)
{
    int code = sv_running_signal(r, SIGTERM, err);
    if (code < 0)
        return code;
    for (int ms = 0; ms < WAIT_MAX_MS && still_runs(&r->id); ms += WAIT_MS)
        nanosleep(&(struct timespec){.tv_nsec = WAIT_MS * 1000000L}, NULL);
    if (still_runs(&r->id))
        return sv_error(err, SV_EIO, "recording %u was asked to stop, but is still running",
                        r->id.pid);
    sv_print(stdout, "%s\n", r->out);
    return 0;
}

static void list(const struct sv_running *all, size_t n)
{
    for (size_t i = 0; i < n; i++)
        sv_console_note("%u records %s → %s, started in %s", all[i].id.pid, all[i].name, all[i].out,
                        all[i].folder);
}

/* The one that is meant without a word: the only one from this terminal or folder. Another may be
 * somebody's night of work. */
static const struct sv_running *find_near(const struct sv_running *all, size_t n,
                                          struct sv_err *err)
{
    const struct sv_running *near = NULL;
    size_t n_near = 0;
    for (size_t i = 0; i < n; i++)
        if (sv_running_is_near(&all[i])) {
            near = &all[i];
            n_near++;
        }
    if (n_near == 1)
        return near;
    list(all, n);
    sv_error(err, SV_EUSAGE,
             n_near ? "%zu recordings were started from this terminal or folder: give the pid of "
                      "one, or use --all"
                    : "%zu recordings are running, none started from this terminal or folder: give "
                      "the pid of one, or use --all",
             n_near ? n_near : n);
    return NULL;
}

static int run(void *options, const struct sv_words *operands, struct sv_err *err)
{
    const struct stop_options *o = options;
    struct sv_running *all;
    char text[700];
    int code = sv_expect_operands(operands, 0, 1, "recording", err);
    if (code < 0)
        return code;
    size_t n = sv_running_all(&all), n_stopped = 0;
    const char *word = operands->n ? operands->items[0] : NULL;
    const struct sv_running *near = n && !word && !o->all ? find_near(all, n, err) : NULL;
    code = n && !word && !o->all && !near ? SV_EUSAGE : 0;
    for (size_t i = 0; code >= 0 && i < n; i++) {
        if (word ? !sv_running_is(&all[i], word) : near && near != &all[i])
            continue;
        code = stop_one(&all[i], err);
        n_stopped++;
    }
    const char *problem = n == 0 ? sv_running_problem(text, sizeof text) : NULL;
    if (code >= 0 && problem)
        code = sv_error(err, SV_EINPUT, "%s", problem);
    else if (code >= 0 && n_stopped == 0)
        code = word ? sv_error(err, SV_EINPUT, "no recording '%s' is running", word)
                    : sv_error(err, SV_EINPUT, "no recording is running");
    free(all);
    return code;
}

static const struct sv_option options[] = {
    {0, "all", NULL, SV_OPT_FLAG, offsetof(struct stop_options, all), "stop all running recordings",
     NULL, NULL},
    {0},
};

static const struct sv_example examples[] = {
    {"stave stop", "end the recording that was started from this terminal or folder; prints the "
                   "path of its trace"},
    {"stave stop 4711", "by its pid, the name of its command or its output (see stave status)"},
    {0},
};

const struct sv_command sv_command_stop = {
    .name = "stop",
    .operands = "[RECORDING]",
    .summary = "end a recording and wait for its trace",
    .description = "Asks a recording of this user to end, as Ctrl-C would, waits until its trace "
                   "is complete and prints its name. A command that was started by the recording "
                   "is asked to exit, too; processes that it attached to continue.\n\n"
                   "Without RECORDING it ends the only one that was started from this terminal or "
                   "in this folder; others are listed and need their pid, or --all.",
    .options = options,
    .examples = examples,
    .options_size = sizeof(struct stop_options),
    .run = run,
};
