/* The rank of a followed process: see process_rank.h. Called by the decoder of execs, and for the
 * processes that are there at the start. */
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

/* Those that are asked for: the others are nobody's business, and are not kept. */
struct asked {
    struct environment all;
    char *to;
    size_t len, size;
};

static const char *asked_variable(void *ctx, const char *name)
{
    struct asked *a = ctx;
    const char *value = variable(&a->all, name);
    int left = (int)(a->size - a->len),
        n = value ? snprintf(a->to + a->len, (size_t)left, "%s=%s", name, value) : 0;
    if (value && n + 1 < left)
        a->len += (size_t)n + 1; /* with its zero byte */
    return value;
}

size_t sv_process_rank_variables(uint32_t pid, char *text, size_t size)
{
    struct asked a = {.to = text, .size = size};
    char path[64];
    snprintf(path, sizeof path, "%s/%u/environ", sv_procfs_root(), pid);
    a.all.len = sv_procfs_text(path, a.all.text, sizeof a.all.text);
    sv_launcher_find_in(&(struct sv_environment){asked_variable, &a});
    return a.len;
}

void sv_process_set_rank(struct sv_tree *t, struct sv_proc *p, const char *text, size_t len)
{
    struct environment e = {.len = len < sizeof e.text ? len : 0};
    memcpy(e.text, text, e.len);
    e.text[e.len] = '\0';
    struct sv_launcher l = sv_launcher_find_in(&(struct sv_environment){variable, &e});
    sv_str origin = 0;
    if (l.rank >= 0 && l.name && l.rank != sv_launcher_find().rank && l.rank < LABELS_MAX)
        origin = sv_dict_describe_rank(t->dict, &l);
    if (t->dict->tracks[p->track].origin == origin)
        return;
    t->dict->tracks[p->track].origin = origin;
    sv_dict_touch(t->dict, p->track);
}

void sv_process_rank(struct sv_tree *t, struct sv_proc *p)
{
    char text[ENVIRONMENT_MAX / 4];
    size_t len = sv_process_rank_variables(p->pid, text, sizeof text);
    sv_process_set_rank(t, p, text, len);
}
