/* Descriptors through time: see descriptors.h. Called by the decoder for each call on a descriptor, by procfs.c for what was open before.
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
    /* Whose close is still to come is needed for sure: the next one goes instead, unless they all are. */
    for (size_t i = 1; to->is_owed && i < SV_FD_PASTS; i++)
        to = &d->pasts[d->next_past++ % SV_FD_PASTS];
    if (to->fd >= 0)
        sv_file_put(t, to->file);
    *to = past;
}

/* A process without threads has no call under way while it makes another one. */
static void leave(struct sv_tree *t, struct sv_proc *p, int64_t fd, uint64_t until_ns, bool is_owed)
{
    struct sv_fd *at = &p->open.fds[fd];
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

static void grow(struct sv_descriptors *d, int64_t fd)
{
    size_t n = d->n_fds ? d->n_fds : 16;
    while (n <= (uint64_t)fd)
        n *= 2;
    /* A process that begins again has no table. NOLINTNEXTLINE(clang-analyzer-unix.Malloc) */
    d->fds = sv_realloc(d->fds, n * sizeof *d->fds);
    memset(d->fds + d->n_fds, 0, (n - d->n_fds) * sizeof *d->fds);
    d->n_fds = n;
}

void sv_fd_open(struct sv_tree *t, struct sv_proc *p, int64_t fd, struct sv_fd is, bool was_closed)
{
    struct sv_descriptors *d = &p->open;
    if (fd < 0 || fd >= SV_FDS_MAX) {
        sv_file_put(t, is.file);
        return;
    }
    if ((uint64_t)fd >= d->n_fds)
        grow(d, fd);
    if (d->fds[fd].file)
        leave(t, p, fd, is.since_ns, !was_closed);
    d->fds[fd] = is;
}

/* By its time, or, if the call began in the middle of another one that opens or closes the descriptor, by its inode. NULL: `past` or nothing. */
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

void sv_fds_exec(struct sv_tree *t, struct sv_proc *p)
{
    forget_pasts(t, &p->open); /* the other threads are gone */
    p->is_threaded = false;
    for (size_t i = 0; i < p->open.n_fds; i++)
        if (p->open.fds[i].closes_on_exec)
            leave(t, p, (int64_t)i, 0, false);
}

void sv_fds_copy(struct sv_tree *t, struct sv_proc *to, const struct sv_proc *from)
{
    for (size_t i = 0; i < from->open.n_fds; i++) {
        struct sv_fd is = from->open.fds[i];
        if (!is.file)
            continue;
        is.file->refs++;
        sv_fd_open(t, to, (int64_t)i, is, true);
    }
}

void sv_fds_clear(struct sv_tree *t, struct sv_proc *p)
{
    forget_pasts(t, &p->open);
    for (size_t i = 0; i < p->open.n_fds; i++)
        sv_file_put(t, p->open.fds[i].file);
    free(p->open.fds);
    p->open = (struct sv_descriptors){0};
}

void sv_fds_lost(struct sv_proc *p)
{
    for (size_t i = 0; p->open.pasts && i < SV_FD_PASTS; i++)
        p->open.pasts[i].is_owed = false;
}
