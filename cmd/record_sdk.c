/* Programs that trace with libstave: they find the session by STAVE_SESSION in their environment, the recorder empties their rings. Called by the recorder only. */
#include "cmd/console.h"
#include "cmd/recorder.h"
#include "sdk/collect.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* In shared memory where there is some: dirty pages of a disk's file would slow the traced program down. */
static bool choose_dir(char *dir, size_t size)
{
    const char *run = getenv("XDG_RUNTIME_DIR"), *tmp = getenv("TMPDIR");
    const char *const bases[] = {getenv("STAVE_SESSION_DIR"), run, "/dev/shm",
                                 tmp && *tmp ? tmp : "/tmp"};
    for (size_t i = 0; i < sizeof bases / sizeof *bases; i++) {
        if (!bases[i] || !*bases[i] || access(bases[i], W_OK | X_OK) != 0)
            continue;
        int n = snprintf(dir, size, "%s/stave-record-%d", bases[i], (int)getpid());
        return n > 0 && (size_t)n < size;
    }
    return false;
}

static void absolute(const char *path, char *to, size_t size)
{
    char cwd[1024];
    if (path[0] == '/' || !getcwd(cwd, sizeof cwd))
        snprintf(to, size, "%s", path);
    else
        snprintf(to, size, "%s/%s", cwd, path);
}

void sv_record_sdk_open(struct sv_recorder *r)
{
    char dir[512], out[2048], part[2048];
    struct sv_err why = {0};
    absolute(r->options->out.path, out, sizeof out);
    absolute(r->part, part, sizeof part);
    if (!choose_dir(dir, sizeof dir) || sv_collect_open(dir, out, part, r->dict, &r->report,
                                                        r->sink->takes, &r->collect, &why) < 0) {
        sv_console_note("without libstave's events: %s",
                        why.msg[0] ? why.msg : "no folder for them");
        r->is_partial = true;
        return;
    }
    sv_record_output_session(r, dir);
    setenv("STAVE_SESSION", dir, 1);
    unsetenv("STAVE_OUT");
}

int sv_record_sdk_round(struct sv_recorder *r, bool is_last, struct sv_err *err)
{
    if (!r->collect)
        return 0;
    r->uncommitted += sv_collect_round(r->collect, is_last);
    return sv_recorder_pull(r, sv_collect_source(r->collect), err);
}

/* Unless the growing file is kept, nothing is left to recover. */
void sv_record_sdk_close(struct sv_recorder *r)
{
    if (r->collect)
        sv_collect_close(r->collect, r->output.is_kept);
    r->collect = NULL;
}
