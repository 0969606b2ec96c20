/* The descriptors of a process: which file each of them is, and was when a call began. Part of the
 * table of processes (tree.h).
 *
 * Records come in the order in which calls end, but calls take effect earlier: a descriptor is free
 * as soon as its close has begun, so another thread may open it, use it and close it before the
 * record of the first close comes. So a descriptor is opened when its open ends and closed when its
 * close begins, and what it was before is kept for calls that began then.
 *
 * Times alone cannot say what a call saw that began in the middle of another thread's close or
 * dup2. The kernel can: where threads share descriptors a record has the inode of its file (0: not
 * known), and a descriptor with another inode is not the one. */
#ifndef SV_RECORD_DECODE_DESCRIPTORS_H
#define SV_RECORD_DECODE_DESCRIPTORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sv_file;
struct sv_proc;
struct sv_tree;

struct sv_fd {
    struct sv_file *file; /* NULL: not open, or not known */
    uint64_t since_ns;    /* when the call that opened it ended; 0: before that was seen */
    uint64_t inode;       /* 0: not known yet */
    bool closes_on_exec;
};

/* What a descriptor was. */
struct sv_fd_past {
    struct sv_file *file;
    uint64_t since_ns, until_ns, inode;
    int32_t fd;   /* -1: free */
    bool is_owed; /* the record of its close is still to come */
};

enum { SV_FD_PASTS = 64 };     /* per process that has threads */
enum { SV_FDS_MAX = 1 << 20 }; /* per process; higher numbers stay without a path */
enum { SV_FDS_PAGE = 64 };     /* one high number must not cost as much as all below it */

struct sv_descriptors {
    struct sv_fd **pages; /* SV_FDS_PAGE descriptors each; NULL: none of them was open so far */
    size_t n_pages;
    struct sv_fd_past *pasts; /* SV_FD_PASTS of them in a ring; NULL: none yet */
    unsigned next_past;
};

/* Of a call: when it began and the inode that the kernel saw then. */
struct sv_fd_when {
    uint64_t start_ns, inode;
    bool is_bad; /* it ended with EBADF: nothing was open there, or not for this */
};

/* A call that ended at `since_ns` made this descriptor. Takes the reference. What was there before
 * was closed by a call whose record is still to come, or by this one. */
void sv_fd_open(struct sv_tree *t, struct sv_proc *p, int64_t fd, struct sv_fd is, bool was_closed);
/* A call that ended at `end_ns` closed it. `now` is what sv_fd_find() said. */
void sv_fd_close(struct sv_tree *t, struct sv_proc *p, int64_t fd, struct sv_fd_when when,
                 const struct sv_fd *now, uint64_t end_ns);
void sv_fds_exec(struct sv_tree *t, struct sv_proc *p); /* closes what is to be closed */
void sv_fds_copy(struct sv_tree *t, struct sv_proc *to, const struct sv_proc *from);
void sv_fds_clear(struct sv_tree *t, struct sv_proc *p);
void sv_fds_free(struct sv_descriptors *d); /* without the files */
void sv_fds_lost(struct sv_proc *p);        /* records were lost: closes may never come */

/* The first descriptor from *fd on that may be open, and its number; NULL: there is no more. */
struct sv_fd *sv_fds_next(const struct sv_proc *p, size_t *fd);

/* The file of a call on this descriptor, NULL: not known. *now is the descriptor when it is still
 * that one, or NULL. */
struct sv_file *sv_fd_find(struct sv_proc *p, int64_t fd, struct sv_fd_when when,
                           struct sv_fd **now);
/* The usual case of it: the descriptor is what it was when the call began, and its file is
 * known. */
static inline bool sv_fd_is_now(const struct sv_fd *at, uint64_t start_ns, uint64_t inode)
{
    return at && at->file && at->since_ns <= start_ns && at->inode == inode;
}

#endif
