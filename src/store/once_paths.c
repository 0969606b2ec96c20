/* Tables of paths by descriptor: see once_paths.h. Called by the recorder, and by the readers of
 * files that a recorder has written.
 *
 * A table holds one text per open descriptor. A text that is replaced lives until the next call,
 * because events of the batch point to it. */
#include "store/once_paths.h"

#include "core/base/map.h"
#include "core/base/mem.h"

#include <stdlib.h>
#include <string.h>

struct path {
    struct path *next; /* in the list of those to be freed */
    uint32_t len;
    char text[];
};

struct sv_once_paths {
    struct sv_dict *dict;
    sv_str syscall, fd, path, close;
    struct sv_map *tables; /* by the track of the process: descriptor → struct path */
    size_t n_tables, cap_tables;
    struct path *replaced;
};

static void sweep(struct sv_once_paths *p)
{
    while (p->replaced) {
        struct path *next = p->replaced->next;
        free(p->replaced);
        p->replaced = next;
    }
}

static struct sv_map *table_of(struct sv_once_paths *p, sv_track process)
{
    if (process >= p->n_tables) {
        p->tables = sv_grow(p->tables, &p->cap_tables, (size_t)process + 1, sizeof *p->tables);
        memset(p->tables + p->n_tables, 0, ((size_t)process + 1 - p->n_tables) * sizeof *p->tables);
        p->n_tables = (size_t)process + 1;
    }
    return &p->tables[process];
}

static struct path *find(const struct sv_map *table, int64_t fd)
{
    const uint64_t *at = sv_map_find(table, (uint64_t)fd);
    return at ? (struct path *)(uintptr_t)*at : NULL;
}

static void forget(struct sv_once_paths *p, struct sv_map *table, int64_t fd)
{
    struct path *old = find(table, fd);
    if (!old)
        return;
    sv_map_remove(table, (uint64_t)fd);
    old->next = p->replaced;
    p->replaced = old;
}

/* False: it is in the table already. */
static bool remember(struct sv_once_paths *p, struct sv_map *table, int64_t fd,
                     const struct sv_arg *path)
{
    const struct path *old = find(table, fd);
    bool is_new;
    if (old && old->len == path->size && memcmp(old->text, path->text, path->size) == 0)
        return false;
    forget(p, table, fd);
    struct path *now = sv_alloc(sizeof *now + path->size);
    now->len = path->size;
    memcpy(now->text, path->text, path->size);
    *sv_map_add(table, (uint64_t)fd, &is_new) = (uint64_t)(uintptr_t)now;
    return true;
}

/* The event's arguments again, with this path after `fd` (NULL: without one). */
static void rewrite(const struct sv_once_paths *p, struct sv_batch *b, struct sv_event *e,
                    const char *text, uint32_t len)
{
    const struct sv_arg *old = e->args;
    for (size_t i = 0, n = e->n_args; i < n; i++) {
        if (old[i].key == p->path)
            continue;
        *sv_batch_arg(b) = old[i];
        if (text && old[i].key == p->fd)
            *sv_batch_arg(b) = (struct sv_arg){
                .key = p->path, .type = SV_ARG_TEXT, .size = len & SV_TEXT_MAX, .text = text};
    }
    sv_batch_finish(b, e);
}

/* The slot with this key and type among the plain arguments at the top, or NULL. */
static const struct sv_arg *argument(const struct sv_event *e, sv_str key, unsigned type)
{
    const struct sv_arg *end = e->args + e->n_args;
    for (const struct sv_arg *a = e->args; a < end; a = sv_arg_next(a))
        if (a->key == key && a->type == type)
            return a;
    return NULL;
}

static void fill_in(struct sv_once_paths *p, struct sv_map *table, int64_t fd, struct sv_batch *b,
                    struct sv_event *e)
{
    const struct sv_arg *path = argument(e, p->path, SV_ARG_TEXT);
    if (path && path->size > 0) {
        remember(p, table, fd, path);
    } else if (path) {
        forget(p, table, fd);
        rewrite(p, b, e, NULL, 0);
    } else {
        const struct path *known = find(table, fd);
        if (known)
            rewrite(p, b, e, known->text, known->len);
    }
}

static void leave_out(struct sv_once_paths *p, struct sv_map *table, int64_t fd, struct sv_batch *b,
                      struct sv_event *e)
{
    const struct sv_arg *path = argument(e, p->path, SV_ARG_TEXT);
    if (path && path->size > 0) {
        if (!remember(p, table, fd, path))
            rewrite(p, b, e, NULL, 0);
    } else if (find(table, fd)) { /* or a reader would take it for an earlier file */
        forget(p, table, fd);
        rewrite(p, b, e, "", 0);
    }
}

static void each_call(struct sv_once_paths *p, struct sv_batch *b,
                      void (*change)(struct sv_once_paths *p, struct sv_map *table, int64_t fd,
                                     struct sv_batch *b, struct sv_event *e))
{
    sweep(p);
    for (struct sv_event *e = b->events; e < b->events + b->n; e++) {
        if (e->cat != p->syscall || (e->kind != SV_BEGIN && e->kind != SV_SLICE))
            continue;
        const struct sv_arg *arg = argument(e, p->fd, SV_ARG_INT);
        if (!arg)
            continue;
        int64_t fd = arg->i;
        struct sv_map *table = table_of(p, sv_dict_process_of(p->dict, e->track));
        change(p, table, fd, b, e);
        if (e->name == p->close)
            forget(p, table, fd);
    }
}

void sv_once_paths_fill_in(struct sv_once_paths *p, struct sv_batch *b)
{
    each_call(p, b, fill_in);
}

void sv_once_paths_leave_out(struct sv_once_paths *p, struct sv_batch *b)
{
    each_call(p, b, leave_out);
}

static void clear_table(struct sv_map *table)
{
    for (size_t i = 0; i < table->cap; i++)
        if (table->used[i])
            free((void *)(uintptr_t)table->slots[i].value);
    sv_map_fini(table);
    *table = (struct sv_map){0};
}

void sv_once_paths_new_file(struct sv_once_paths *p)
{
    for (size_t i = 0; i < p->n_tables; i++)
        clear_table(&p->tables[i]);
}

struct sv_once_paths *sv_once_paths_new(struct sv_dict *dict)
{
    struct sv_once_paths *p = sv_alloc(sizeof *p);
    p->dict = dict;
    p->syscall = sv_dict_cstr(dict, "syscall");
    p->fd = sv_dict_cstr(dict, "fd");
    p->path = sv_dict_cstr(dict, "path");
    p->close = sv_dict_cstr(dict, "close");
    return p;
}

void sv_once_paths_free(struct sv_once_paths *p)
{
    if (!p)
        return;
    sv_once_paths_new_file(p);
    sweep(p);
    free(p->tables);
    free(p);
}

bool sv_once_paths_asked(struct sv_once_paths **p, struct sv_dict *dict, const char *key,
                         const char *value, size_t len)
{
    if (strcmp(key, SV_PATHS_KEY) != 0 || len != strlen(SV_PATHS_ONCE) ||
        memcmp(value, SV_PATHS_ONCE, len) != 0)
        return false;
    if (!*p)
        *p = sv_once_paths_new(dict);
    sv_dict_set_meta(dict, SV_PATHS_KEY, "all", 3, false);
    return true;
}

/* ---- the stage ---- */

struct once_sink {
    struct sv_sink sink;
    struct sv_sink *next;
    struct sv_once_paths *paths;
    struct sv_batch batch;
};

static int once_write(struct sv_sink *s, const struct sv_event *events, size_t n,
                      struct sv_err *err)
{
    struct once_sink *o = (struct once_sink *)s;
    int code = 0;
    for (size_t done = 0; done < n && code >= 0; done += o->batch.n) {
        sv_batch_reset(&o->batch);
        o->batch.n = n - done < SV_BATCH ? n - done : SV_BATCH;
        memcpy(o->batch.events, events + done, o->batch.n * sizeof *events);
        sv_once_paths_leave_out(o->paths, &o->batch);
        code = o->next->write(o->next, o->batch.events, o->batch.n, err);
    }
    return code;
}

static void once_forget(struct sv_sink *s, sv_track track)
{
    struct once_sink *o = (struct once_sink *)s;
    if (track < o->paths->n_tables)
        clear_table(&o->paths->tables[track]);
    o->next->forget(o->next, track);
}

static int once_close(struct sv_sink *s, bool failed, struct sv_err *err)
{
    struct once_sink *o = (struct once_sink *)s;
    (void)failed, (void)err;
    sv_once_paths_free(o->paths);
    sv_batch_fini(&o->batch);
    free(o);
    return 0;
}

struct sv_sink *sv_once_paths_sink(struct sv_dict *dict, struct sv_sink *next)
{
    struct once_sink *o = sv_alloc(sizeof *o);
    o->sink = (struct sv_sink){
        .write = once_write, .close = once_close, .forget = next->forget ? once_forget : NULL};
    sv_sink_takes_as(&o->sink, next, SV_IN_NO_ORDER);
    o->next = next;
    o->paths = sv_once_paths_new(dict);
    sv_batch_init(&o->batch);
    return &o->sink;
}

void sv_once_paths_sink_new_file(struct sv_sink *s)
{
    sv_once_paths_new_file(((struct once_sink *)s)->paths);
}
