/* Descriptors through time: see descriptors.h. Called by the decoder for each call on a descriptor,
 * by procfs.c for what was open before.
 *
 * The usual case, a call on what the descriptor is now, looks at nothing else. */
#include "record/decode/descriptors.h"
#include "record/decode/tree.h"

#include <stdlib.h>
#include <string.h>

/* ---- what was ---- */

static void add_past(struct sv_tree *t, struct sv_proc *p, struct sv_fd_past past)
{
    struct sv_descriptors *d = &p->open;
    if (!d->pasts) {
        d->pasts = sv_alloc(SV_FD_PASTS * sizeof *d->pasts);
        for (size_t i = 0; i < SV_FD_PASTS; i++)
            d->pasts[i].fd = -1;
    }
    struct sv_fd_past *to = &d->pasts[d->next_past++ % SV_FD_PASTS];
    /* Whose close is still to come is needed for sure: the next one goes instead, unless they all
     * are. */
    for (size_t i = 1; to->is_owed && i < SV_FD_PASTS; i++)
        to = &d->pasts[d->next_past++ % SV_FD_PASTS];
    if (to->fd >= 0)
        sv_file_put(t, to->file);
    *to = past;
}

/* A process without threads has no call under way while it makes another one. */
static void leave(struct sv_tree *t, struct sv_proc *p, int64_t fd, uint64_t until_ns, bool is_owed)
{
    struct sv_fd *at = sv_fd_at(p, fd);
    if (at->file && p->is_threaded)
        add_past(t, p,
                 (struct sv_fd_past){.file = at->file,
                                     .since_ns = at->since_ns,
                                     .until_ns = until_ns,
                                     .inode = at->inode,
                                     .fd = (int32_t)fd,
                                     .is_owed = is_owed});
    else
        sv_file_put(t, at->file);
    *at = (struct sv_fd){0};
}

/* Neither is known to be another one than the other. */
static bool agree(uint64_t inode, uint64_t other)
{
    return inode == other || !inode || !other;
}

static struct sv_fd_past *past_by_time(const struct sv_descriptors *d, int64_t fd,
                                       struct sv_fd_when when)
{
    for (unsigned i = 1; d->pasts && i <= SV_FD_PASTS; i++) { /* the latest first */
        struct sv_fd_past *x = &d->pasts[(d->next_past - i) % SV_FD_PASTS];
        if (x->fd == fd && agree(x->inode, when.inode) && x->since_ns <= when.start_ns &&
            when.start_ns <= x->until_ns)
            return x;
    }
    return NULL;
}

static struct sv_fd_past *past_by_inode(const struct sv_descriptors *d, int64_t fd, uint64_t inode)
{
    for (unsigned i = 1; d->pasts && inode && i <= SV_FD_PASTS; i++) {
        struct sv_fd_past *x = &d->pasts[(d->next_past - i) % SV_FD_PASTS];
        if (x->fd == fd && x->inode == inode)
            return x;
    }
    return NULL;
}

/* ---- what is ---- */

static struct sv_fd *make(struct sv_descriptors *d, int64_t fd)
{
    size_t page = (size_t)fd / SV_FDS_PAGE;
    if (page >= d->n_pages) {
        size_t n = d->n_pages ? d->n_pages : 1;
        while (n <= page)
            n *= 2;
        /* A process that begins again has no table. NOLINTNEXTLINE(clang-analyzer-unix.Malloc) */
        d->pages = sv_realloc(d->pages, n * sizeof *d->pages);
        memset(d->pages + d->n_pages, 0, (n - d->n_pages) * sizeof *d->pages);
        d->n_pages = n;
    }
    if (!d->pages[page])
        d->pages[page] = sv_alloc(SV_FDS_PAGE * sizeof **d->pages);
    return &d->pages[page][fd % SV_FDS_PAGE];
}

void sv_fd_open(struct sv_tree *t, struct sv_proc *p, int64_t fd, struct sv_fd is, bool was_closed)
{
    if (fd < 0 || fd >= SV_FDS_MAX) {
        sv_file_put(t, is.file);
        return;
    }
    struct sv_fd *at = make(&p->open, fd);
    if (at->file)
        leave(t, p, fd, is.since_ns, !was_closed);
    *at = is;
}

/* By its time, or, if the call began in the middle of another one that opens or closes the
 * descriptor, by its inode. NULL: `past` or nothing. */
static struct sv_fd *resolve(struct sv_proc *p, int64_t fd, struct sv_fd_when when,
                             struct sv_fd_past **past)
{
    struct sv_fd *at = sv_fd_at(p, fd);
    bool is_now = at && at->since_ns <= when.start_ns && agree(at->inode, when.inode);
    *past = NULL;
    if (is_now && (at->file || at->since_ns))
        return at;
    *past = past_by_time(&p->open, fd, when);
    if (!*past && at && when.inode && at->inode == when.inode)
        return at;
    if (!*past)
        *past = past_by_inode(&p->open, fd, when.inode);
    return is_now && !*past ? at : NULL;
}

void sv_fd_close(struct sv_tree *t, struct sv_proc *p, int64_t fd, struct sv_fd_when when,
                 const struct sv_fd *now, uint64_t end_ns)
{
    struct sv_fd_past *past;
    if (now)
        leave(t, p, fd, end_ns, false);
    else if (!resolve(p, fd, when, &past) && past) /* it was opened again meanwhile */
        past->is_owed = false;
}

struct sv_file *sv_fd_find(struct sv_proc *p, int64_t fd, struct sv_fd_when when,
                           struct sv_fd **now)
{
    struct sv_fd_past *past;
    *now = resolve(p, fd, when, &past);
    if (*now) {
        if (when.inode)
            (*now)->inode = when.inode;
        return (*now)->file;
    }
    return past && !when.is_bad ? past->file : NULL;
}

/* ---- all of them ---- */

static void forget_pasts(struct sv_tree *t, struct sv_descriptors *d)
{
    for (size_t i = 0; d->pasts && i < SV_FD_PASTS; i++)
        if (d->pasts[i].fd >= 0)
            sv_file_put(t, d->pasts[i].file);
    free(d->pasts);
    d->pasts = NULL;
}

struct sv_fd *sv_fds_next(const struct sv_proc *p, size_t *fd)
{
    const struct sv_descriptors *d = &p->open;
    size_t page = *fd / SV_FDS_PAGE;
    if (page < d->n_pages && d->pages[page])
        return &d->pages[page][*fd % SV_FDS_PAGE];
    while (page < d->n_pages && !d->pages[page])
        page++;
    *fd = page * SV_FDS_PAGE;
    return page < d->n_pages ? d->pages[page] : NULL;
}

void sv_fds_exec(struct sv_tree *t, struct sv_proc *p)
{
    const struct sv_fd *at;
    forget_pasts(t, &p->open); /* the other threads are gone */
    p->is_threaded = false;
    for (size_t i = 0; (at = sv_fds_next(p, &i)); i++)
        if (at->closes_on_exec)
            leave(t, p, (int64_t)i, 0, false);
}

void sv_fds_copy(struct sv_tree *t, struct sv_proc *to, const struct sv_proc *from)
{
    const struct sv_fd *at;
    for (size_t i = 0; (at = sv_fds_next(from, &i)); i++) {
        if (!at->file)
            continue;
        at->file->refs++;
        sv_fd_open(t, to, (int64_t)i, *at, true);
    }
}

void sv_fds_clear(struct sv_tree *t, struct sv_proc *p)
{
    const struct sv_fd *at;
    forget_pasts(t, &p->open);
    for (size_t i = 0; (at = sv_fds_next(p, &i)); i++)
        sv_file_put(t, at->file);
    sv_fds_free(&p->open);
}

void sv_fds_free(struct sv_descriptors *d)
{
    for (size_t i = 0; i < d->n_pages; i++)
        free(d->pages[i]);
    free(d->pages);
    free(d->pasts);
    *d = (struct sv_descriptors){0};
}

void sv_fds_lost(struct sv_proc *p)
{
    for (size_t i = 0; p->open.pasts && i < SV_FD_PASTS; i++)
        p->open.pasts[i].is_owed = false;
}
