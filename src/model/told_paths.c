/* Fills in paths: see told_paths.h. Put around every opened source by files/open.c; costs nothing where the metadata does not ask for it.
 *
 * The book holds one text per open descriptor. A text that is replaced lives until the next call, because events of the batch point to it. */
#include "model/told_paths.h"

#include "core/base/map.h"
#include "core/base/mem.h"

#include <stdlib.h>
#include <string.h>

struct told {
    struct told *next; /* in the list of those to be freed */
    uint32_t len;
    char text[];
};

struct told_paths {
    struct sv_source source; /* first: the handle */
    struct sv_source *inner;
    bool has_looked, is_on;
    sv_str syscall, fd, path, close;
    struct sv_map book; /* process << 32 | fd → struct told */
    struct told *doomed;
};

static void sweep(struct told_paths *t)
{
    while (t->doomed) {
        struct told *next = t->doomed->next;
        free(t->doomed);
        t->doomed = next;
    }
}

static struct told *find(const struct told_paths *t, uint64_t key)
{
    const uint64_t *at = sv_map_find(&t->book, key);
    return at ? (struct told *)(uintptr_t)*at : NULL;
}

static void forget(struct told_paths *t, uint64_t key)
{
    struct told *old = find(t, key);
    if (!old)
        return;
    sv_map_remove(&t->book, key);
    old->next = t->doomed;
    t->doomed = old;
}

static void remember(struct told_paths *t, uint64_t key, const char *text, uint32_t len)
{
    const struct told *old = find(t, key);
    bool is_new;
    if (old && old->len == len && memcmp(old->text, text, len) == 0)
        return;
    forget(t, key);
    struct told *now = sv_alloc(sizeof *now + len);
    now->len = len;
    memcpy(now->text, text, len);
    *sv_map_add(&t->book, key, &is_new) = (uint64_t)(uintptr_t)now;
}

/* The event's arguments again, with the path behind `fd`, or without the empty one. */
static void rewrite(struct told_paths *t, struct sv_batch *b, struct sv_event *e,
                    const struct told *path)
{
    const struct sv_arg *old = e->args;
    for (size_t i = 0, n = e->n_args; i < n; i++) {
        if (old[i].key == t->path)
            continue;
        *sv_batch_arg(b) = old[i];
        if (path && old[i].key == t->fd)
            *sv_batch_arg(b) = (struct sv_arg){.key = t->path,
                                               .type = SV_ARG_TEXT,
                                               .size = path->len & SV_TEXT_MAX,
                                               .text = path->text};
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

static void on_call(struct told_paths *t, struct sv_batch *b, struct sv_event *e)
{
    const struct sv_arg *fd = argument(e, t->fd, SV_ARG_INT);
    if (!fd)
        return;
    const struct sv_arg *path = argument(e, t->path, SV_ARG_TEXT);
    uint64_t key = (uint64_t)sv_dict_process_of(t->source.dict, e->track) << 32 | (uint32_t)fd->i;
    if (path && path->size > 0) {
        remember(t, key, path->text, path->size);
    } else if (path) {
        forget(t, key);
        rewrite(t, b, e, NULL);
    } else {
        const struct told *told = find(t, key);
        if (told)
            rewrite(t, b, e, told);
    }
    if (e->name == t->close)
        forget(t, key);
}

/* Whoever writes the events again writes them whole. Readers come upon the metadata more than once. */
static void unsay(struct told_paths *t)
{
    const struct sv_meta *m = sv_dict_find_meta(t->source.dict, SV_PATHS_KEY);
    if (strcmp(sv_dict_text(t->source.dict, m->value).bytes, SV_PATHS_ONCE) == 0)
        sv_dict_set_meta(t->source.dict, SV_PATHS_KEY, "all", 3, false);
}

/* The metadata comes before the first event. */
static void look(struct told_paths *t)
{
    struct sv_dict *d = t->source.dict;
    const struct sv_meta *m = sv_dict_find_meta(d, SV_PATHS_KEY);
    t->has_looked = true;
    t->is_on = m && strcmp(sv_dict_text(d, m->value).bytes, SV_PATHS_ONCE) == 0;
    if (!t->is_on)
        return;
    t->syscall = sv_dict_cstr(d, "syscall");
    t->fd = sv_dict_cstr(d, "fd");
    t->path = sv_dict_cstr(d, "path");
    t->close = sv_dict_cstr(d, "close");
}

static int next(struct sv_source *source, struct sv_batch *b, struct sv_err *err)
{
    struct told_paths *t = (struct told_paths *)source;
    sweep(t);
    int n = t->inner->next(t->inner, b, err);
    if (n > 0 && !t->has_looked)
        look(t);
    if (t->is_on)
        unsay(t);
    for (size_t i = 0; t->is_on && i < b->n; i++) {
        struct sv_event *e = &b->events[i];
        if (e->cat == t->syscall && (e->kind == SV_BEGIN || e->kind == SV_SLICE))
            on_call(t, b, e);
    }
    return n;
}

static void close_source(struct sv_source *source)
{
    struct told_paths *t = (struct told_paths *)source;
    for (size_t i = 0; i < t->book.cap; i++)
        if (t->book.used[i])
            free((void *)(uintptr_t)t->book.slots[i].value);
    sweep(t);
    sv_map_fini(&t->book);
    t->inner->close(t->inner);
    free(t);
}

struct sv_source *sv_told_paths_source(struct sv_source *inner)
{
    struct told_paths *t = sv_alloc(sizeof *t);
    t->source = (struct sv_source){.next = next,
                                   .close = close_source,
                                   .gives = inner->gives,
                                   .dict = inner->dict,
                                   .report = inner->report};
    t->inner = inner;
    return &t->source;
}
