/* The rank of a followed process: see process_rank.h. Called by the decoder of execs, and for the processes that are there at the start. */
#include "record/sample/process_rank.h"
#include "core/stream/launched.h"
#include "record/sample/procfs.h"

#include <stdio.h>
#include <string.h>

enum { ENVIRONMENT_MAX = 1 << 16, LABELS_MAX = 1 << 14 };

struct environment {
    char text[ENVIRONMENT_MAX];
    size_t len;
};

/* NAME=VALUE, with a zero byte after each. */
static const char *variable(void *ctx, const char *name)
{
    const struct environment *e = ctx;
    size_t len = strlen(name);
    for (size_t at = 0; at < e->len; at += strlen(e->text + at) + 1)
        if (strncmp(e->text + at, name, len) == 0 && e->text[at + len] == '=')
            return e->text + at + len + 1;
    return NULL;
}

void sv_process_rank(struct sv_tree *t, struct sv_proc *p)
{
    struct environment e;
    char path[64];
    snprintf(path, sizeof path, "%s/%u/environ", sv_procfs_root(), p->pid);
    e.len = sv_procfs_text(path, e.text, sizeof e.text);
    struct sv_launcher l = sv_launcher_find_in(&(struct sv_environment){variable, &e});
    sv_str origin = 0;
    if (l.rank >= 0 && l.name && l.rank != sv_launcher_find().rank && l.rank < LABELS_MAX)
        origin = sv_dict_describe_rank(t->dict, &l);
    if (t->dict->tracks[p->track].origin == origin)
        return;
    t->dict->tracks[p->track].origin = origin;
    sv_dict_touch(t->dict, p->track);
}
