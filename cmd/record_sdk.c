/* Programs that trace with libstave: they find the session by STAVE_SESSION in their environment, the recorder empties their rings. Called by the recorder only. */
#include "cmd/console.h"
#include "cmd/recorder.h"
#include "sdk/collect.h"
#include "sdk/session_layout.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define COMMIT_EVERY_NS ((int64_t)200000000)

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
    setenv("STAVE_SESSION", dir, 1);
    unsetenv("STAVE_OUT");
}

/* Rings are given back when their events are in the file. */
static int commit(struct sv_recorder *r, int64_t now, struct sv_err *err)
{
    struct stat st;
    int code = r->sink->flush ? r->sink->flush(r->sink, err) : 0;
    if (code >= 0)
        sv_collect_commit(r->collect, stat(r->part, &st) == 0 ? (uint64_t)st.st_size : 0);
    r->commit_ns = now;
    return code;
}

int sv_record_sdk_round(struct sv_recorder *r, int64_t now, bool is_last, struct sv_err *err)
{
    if (!r->collect)
        return 0;
    uint64_t bytes = sv_collect_round(r->collect, is_last);
    r->uncommitted += bytes;
    int code = sv_recorder_pull(r, sv_collect_source(r->collect), err);
    if (code < 0 || (r->uncommitted == 0 && !is_last))
        return code;
    if (is_last || sv_collect_is_pressed(r->collect) || now - r->commit_ns >= COMMIT_EVERY_NS) {
        code = commit(r, now, err);
        r->uncommitted = 0;
    }
    return code;
}

/* Closing the output replaces it: what was committed is not where it was. */
void sv_record_sdk_whole(struct sv_recorder *r)
{
    if (r->collect)
        sv_collect_commit(r->collect, SV_PART_WHOLE);
}

/* The output is whole or was given up: nothing is left to recover. */
void sv_record_sdk_close(struct sv_recorder *r)
{
    if (r->collect)
        sv_collect_close(r->collect, false);
    r->collect = NULL;
}
