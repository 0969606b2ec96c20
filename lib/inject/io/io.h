/* What the files of the library share.
 *
 *   files.c     what each descriptor is: path and position
 *   record.c    a call of the program into the trace
 *   open.c, transfer.c, names.c, stdio.c, waits.c     the calls themselves
 *
 * A call is named as the system call that the libc makes for it, and has the arguments that the
 * kernel probes give it (docs/io.md). */
#pragma once

#include "inject/preload/preload.h"

#include <errno.h>
#include <stddef.h>
#include <sys/types.h>

/* ---- descriptors: files.c ---- */

enum { IO_FDS = 65536 }; /* higher ones have no path */
#define IO_NO_POSITION (-1)

/* The path of a descriptor as /proc names it; NULL: not known. Asks the kernel once for each. Valid
 * until the descriptor is closed; a race of the program's own threads may cut it, never more. */
const char *io_path(int fd);
/* Where a read or write will begin; IO_NO_POSITION: it has none, or it is not known. */
int64_t io_position(int fd);
void io_moved(int fd, int64_t to);
bool io_is_stored(int fd); /* a file or a folder, not a pipe, a socket or a device */

void io_know(int fd); /* asks now: after the call it is closed. Keeps errno */

void io_fd_opened(int fd, const char *path, int flags); /* path: absolute and clean */
void io_fd_unknown(int fd);                             /* it is something else now, or nothing */
void io_fd_copied(int from, int to);
void io_fds_closed(unsigned from, unsigned to);
void io_cwd_changed(void);

/* ---- who is at the other end: ends.c ---- */

struct io_call;

/* Pipes and sockets: numbers for what goes out and what comes in, equal at both ends; 0: not known,
 * or no such thing. */
struct io_ends {
    uint64_t out, in;
};
bool io_has_ends(int fd);
struct io_ends io_ends(int fd);                        /* of the table */
struct io_ends io_ends_find(int fd, const char *path); /* asks the kernel */
void io_ends_set(int fd, struct io_ends ends);
struct io_ends io_ends_between(int fd, int other); /* of a pair of sockets that was made now */
/* This thread sends through it, or empties it: whoever waits for that may be woken now. */
void io_ends_used(int fd, bool is_out);
/* Who has done so at the other end since then; 0: not known. Puts what is known of the other end
 * into the call. */
uint32_t io_ends_waker(struct io_call *c, int fd, bool is_out);
void io_ends_init(void);

/* How long a path from `dirfd` can become, and the path itself: absolute and clean where the folder
 * is known. */
size_t io_full_size(int dirfd, const char *path);
const char *io_full(int dirfd, const char *path, char *to, size_t size);
#define IO_FULL(dirfd, path) \
    io_full(dirfd, path, __builtin_alloca(io_full_size(dirfd, path)), io_full_size(dirfd, path))

/* ---- recording: record.c ---- */

extern bool io_is_alone; /* there are no kernel probes: starts of processes and waits are ours */

/* A call in flight: what is kept while it runs. */
struct io_call {
    const char *name;
    int64_t start_ns, end_ns;
    const void *caller;
    int error; /* errno after the call */
    bool failed;
    struct pre_call args;
};

/* Around the call itself. begin() must be the last thing before it, end() the first after it. */
void io_begin_for(struct io_call *c, const char *name, const void *caller);
#define io_begin(c, name) io_begin_for(c, name, PRE_CALLER())
void io_end(struct io_call *c, bool failed);
/* Writes the call and gives errno back. */
void io_done(struct io_call *c);
/* The same, only if it took a millisecond: calls that can wait for somebody. `fd`: -1: none. */
void io_done_if_waited(struct io_call *c, const char *reason, int fd);
/* Of a transfer: that of a pipe or a socket is a wait, too, if it took a millisecond. */
void io_done_on(struct io_call *c, int fd, bool is_out);

void io_put_fd(struct io_call *c, int fd); /* with its path */
/* Bytes that were moved; `requested` where it is another number. */
void io_put_bytes(struct io_call *c, int64_t got, uint64_t requested);

#define IO_INSIDE(...) __VA_ARGS__ /* of a list in parentheses */

#define IO_ENTER() (pre_self.is_quiet = PRE_AT_WORK)
#define IO_LEAVE() (pre_self.is_quiet = 0)
