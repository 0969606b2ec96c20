/* stave status: lists the running recordings. */
#include "cli/console.h"
#include "cmd/commands.h"
#include "files/open.h"
#include "record/session/running.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct status_options {
    bool none; /* no option of its own */
};

/* Whole seconds are known. */
static const char *age_of(char to[static 32], int64_t s)
{
    if (s < 60)
        snprintf(to, 32, "%d s", s > 0 ? (int)s : 0);
    else
        snprintf(to, 32, "%lld:%02d:%02d", (long long)(s / 3600), (int)(s / 60 % 60),
                 (int)(s % 60));
    return to;
}

static int run(void *options, const struct sv_words *operands, struct sv_err *err)
{
    struct sv_running *all;
    char text[700];
    (void)options;
    int code = sv_expect_operands(operands, 0, 0, "word", err);
    if (code < 0)
        return code;
    size_t n = sv_running_all(&all);
    for (size_t i = 0; i < n; i++) {
        char age[32], size[32];
        sv_print(stdout, "%-8d %-12s %10s  %s → %s\n", (int)all[i].id.pid,
                 age_of(age, (int64_t)time(NULL) - all[i].since_s),
                 sv_human_bytes(size, all[i].bytes), all[i].name, all[i].out);
    }
    const char *problem = n == 0 ? sv_running_problem(text, sizeof text) : NULL;
    if (n == 0 && !problem)
        sv_console_note("no recording is running");
    free(all);
    return problem ? sv_error(err, SV_EINPUT, "%s", problem) : 0;
}

static const struct sv_option options[] = {{0}};

static const struct sv_example examples[] = {
    {"stave status", "one line per recording: pid, age, size so far, what is recorded, output"},
    {0},
};

const struct sv_command sv_command_status = {
    .name = "status",
    .operands = "",
    .summary = "list the running recordings",
    .description = "Lists the running recordings of this user, detached or not, oldest first. The "
                   "size is that of all files of the recording so far.",
    .options = options,
    .examples = examples,
    .options_size = sizeof(struct status_options),
    .run = run,
};
