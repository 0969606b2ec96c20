/* stave trigger: a recording with --last saves what its ring holds, and continues. */
#include "cli/console.h"
#include "cmd/commands.h"
#include "files/open.h"
#include "record/output/parts.h"
#include "record/session/running.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { WAIT_MS = 20, WAIT_MAX_MS = 60000 };

struct trigger_options {
    bool none; /* no option of its own */
};

/* The file has its name only when it is whole. */
static int trigger(const struct sv_running *r, struct sv_err *err)
{
    char path[PATH_MAX + 64];
    sv_parts_next_name(r->out, path, sizeof path);
    int code = sv_running_signal(r, SIGUSR1, err);
    if (code < 0)
        return code;
    for (int ms = 0; ms < WAIT_MAX_MS && access(path, F_OK) != 0; ms += WAIT_MS)
        nanosleep(&(struct timespec){.tv_nsec = WAIT_MS * 1000000L}, NULL);
    if (access(path, F_OK) != 0)
        return sv_error(err, SV_EIO, "recording %u was asked to save, but %s has not appeared",
                        r->id.pid, path);
    sv_print(stdout, "%s\n", path);
    return 0;
}

static int run(void *options, const struct sv_words *operands, struct sv_err *err)
{
    struct sv_running *all;
    const struct sv_running *chosen = NULL;
    const char *problem;
    char text[700];
    (void)options;
    int code = sv_expect_operands(operands, 0, 1, "recording", err);
    if (code < 0)
        return code;
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

static const struct sv_option options[] = {{0}};

static const struct sv_example examples[] = {
    {"stave record --detach --last 30s -o night.pftrace -p 4711", "keep the last 30 seconds"},
    {"stave trigger", "save them as night-0001.pftrace and print the name"},
    {"kill -USR1 PID", "the same from a program, with the pid that 'stave status' shows"},
    {0},
};

const struct sv_command sv_command_trigger = {
    .name = "trigger",
    .operands = "[RECORDING]",
    .summary = "save the ring of a recording with --last",
    .description =
        "Asks a recording with --last to write its ring to the next numbered file beside its "
        "output, waits until that file is complete and prints its name. The recording continues.",
    .options = options,
    .examples = examples,
    .options_size = sizeof(struct trigger_options),
    .run = run,
};
