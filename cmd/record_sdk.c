/* Programs that trace with libstave: they find the session by STAVE_SESSION in their environment, the recorder empties their rings. Called by the recorder only. */
#include "cmd/console.h"
#include "cmd/recorder.h"
#include "sdk/collect.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define COMMIT_EVERY_NS ((int64_t)200000000)

void sv_record_sdk_open(struct sv_recorder *r)
{
    struct sv_err why = {0};
    if (sv_collect_open(NULL, r->options->out.path, r->part, r->dict, &r->report, r->sink->takes,
                        &r->collect, &why) < 0) {
        sv_console_note("without libstave's events: %s", why.msg);
        r->is_partial = true;
        return;
    }
    setenv("STAVE_SESSION", sv_collect_dir(r->collect), 1);
    unsetenv("STAVE_OUT");
}

int sv_record_sdk_commit(struct sv_recorder *r, int64_t now, struct sv_err *err)
{
    struct stat st;
    if (!r->collect || sv_collect_n_ever(r->collect) == 0)
        return 0; /* without rings there is nothing to commit: all that was flushed counts */
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
    sv_collect_round(r->collect, is_last);
    int code = sv_recorder_pull(r, sv_collect_source(r->collect), err);
    bool is_due = is_last || sv_collect_is_pressed(r->collect) ||
                  now - r->commit_ns >= COMMIT_EVERY_NS;
    return code >= 0 && is_due ? sv_record_sdk_commit(r, now, err) : code;
}

/* The output is whole or was given up: nothing is left to recover. */
void sv_record_sdk_close(struct sv_recorder *r)
{
    if (r->collect)
        sv_collect_close(r->collect, false);
    r->collect = NULL;
}
