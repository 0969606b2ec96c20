/* The rest of ferrum's files: see recover_events.h. Called by recover.c. */
#include "cmd/recover_events.h"

#include "cli/console.h"
#include "compat/unwritten.h"
#include "record/output/leftovers.h"

#include <string.h>
#include <sys/stat.h>

struct visiting {
    const struct sv_recover_events *r;
    const char *name;
    char absolute[SV_PATH_MAX];
    struct stat st;
    bool has_stat;
    size_t n, n_removable;
    int first; /* the first error, which is in *err */
    struct sv_err *err;
};

static void look_for(struct visiting *v, const char *name)
{
    v->name = name;
    v->has_stat = stat(name, &v->st) == 0;
    if (!sv_leftovers_absolute(name, v->absolute, sizeof v->absolute))
        v->absolute[0] = '\0';
}

static bool is_file(const struct visiting *v, const struct sv_unwritten_left *l)
{
    return v->has_stat && v->st.st_dev == l->device && v->st.st_ino == l->inode;
}

static bool is_named(const struct visiting *v, const struct sv_unwritten_left *l)
{
    return strcmp(v->absolute, l->path) == 0 || strcmp(v->absolute, l->dir) == 0 || is_file(v, l);
}

static void print_one(const struct sv_unwritten_left *l, const char *state)
{
    char bytes[32];
    sv_print(stdout, "%s  pid %u (%s)\n  %s: ", l->dir, l->pid, state, l->path);
    if (l->n > 0)
        sv_print(stdout, "%s of events that are not in it\n", sv_human_bytes(bytes, l->n));
    else
        sv_print(stdout, "every event is in it\n");
}

/* ---- one name ---- */

static int recover_one(void *ctx, const struct sv_unwritten_left *l)
{
    struct visiting *v = ctx;
    struct sv_err err = {0};
    char bytes[32];
    if (!is_named(v, l))
        return 0;
    const char *path = is_file(v, l) ? v->name : l->path; /* it may have been renamed */
    v->n++;
    if (v->r->dry_run) {
        print_one(l, sv_unwritten_is_held(l) ? "running" : "exited");
        return 0;
    }
    int code = sv_unwritten_complete(l, path, &err);
    if (code < 0) {
        if (v->first < 0)
            sv_console_error(NULL, SV_NO_POS, err.msg);
        else
            *v->err = err;
        v->first = v->first < 0 ? v->first : code;
        return 0;
    }
    if (l->n > 0)
        sv_console_note("%s: %s of events were added", path, sv_human_bytes(bytes, l->n));
    else
        sv_console_note("%s: every event is in it already", path);
    if (!v->r->keep)
        sv_unwritten_discard(l->dir);
    return 0;
}

int sv_recover_events(const struct sv_recover_events *r, const char *name, struct sv_err *err)
{
    struct visiting v = {.r = r, .err = err};
    look_for(&v, name);
    sv_unwritten_each(recover_one, &v);
    return v.first;
}

static int find_one(void *ctx, const struct sv_unwritten_left *l)
{
    return is_named(ctx, l);
}

bool sv_recover_events_has(const char *name)
{
    struct visiting v = {0};
    look_for(&v, name);
    return sv_unwritten_each(find_one, &v) != 0;
}

/* ---- all of them ---- */

static int list_one(void *ctx, const struct sv_unwritten_left *l)
{
    ++*(size_t *)ctx;
    print_one(l, sv_unwritten_is_held(l) ? "running" : "exited");
    return 0;
}

size_t sv_recover_events_list(void)
{
    size_t n = 0;
    sv_unwritten_each(list_one, &n);
    return n;
}

static bool is_discarded(struct visiting *v, const struct sv_unwritten_left *l)
{
    for (size_t i = 0; i < v->r->discard->n; i++) {
        look_for(v, v->r->discard->items[i]);
        if (is_named(v, l))
            return true;
    }
    return false;
}

static int clean_one(void *ctx, const struct sv_unwritten_left *l)
{
    struct visiting *v = ctx;
    bool is_held = sv_unwritten_is_held(l), may_go = !is_held && (l->n == 0 || is_discarded(v, l));
    v->n++;
    v->n_removable += may_go;
    print_one(l, is_held ? "running" : "exited");
    sv_print(stdout, "  %s\n",
             is_held     ? "kept: a process is writing the file"
             : !may_go   ? "kept: not recovered; recover it, or add --discard and its name"
             : v->r->yes ? "removed"
                         : "would be removed");
    if (may_go && v->r->yes)
        sv_unwritten_discard(l->dir);
    return 0;
}

size_t sv_recover_events_clean(const struct sv_recover_events *r, size_t *n_removable)
{
    struct visiting v = {.r = r};
    sv_unwritten_each(clean_one, &v);
    *n_removable += v.n_removable;
    return v.n;
}
