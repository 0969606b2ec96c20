/* The table of system calls. Asked by the loader (plans) and by the decoder (meaning); adding a
 * call is a line here. */
#include "record/decode/calls.h"

#include <string.h>
#include <sys/syscall.h>

#define N SV_WIRE_NONE

/* Old names that newer architectures leave out. */
#if defined(__x86_64__)
#define HAS_OLD_CALLS 1
#else
#define HAS_OLD_CALLS 0
#endif

/* clang-format off */
/* name, fd, path, path2, size, offset, aux, group, effect, sense, position. For calls with a path
 * `fd` is the directory it starts from. */
#define CALL(n, fd_, path_, path2_, size_, offset_, aux_, group_, effect_, sense_, position_) \
    {.name = #n, .nr = SYS_##n, .fd = fd_, .path = path_, .path2 = path2_, .size = size_, .offset = offset_, .aux = aux_, \
     .group = SV_CALLS_##group_, .effect = SV_EFFECT_##effect_, .sense = SV_SENSE_##sense_, .has_position = position_}

/* name, from, size, to, pointers to the offsets in both: copies from one descriptor to another. */
#define COPY(n, from_, size_, to_, from_at_, to_at_) \
    {.name = #n, .nr = SYS_##n, .fd = from_, .path = N, .path2 = N, .size = size_, .offset = N, .aux = to_, \
     .group = SV_CALLS_FILES, .sense = SV_SENSE_TRANSFER, .places = (from_at_) | (to_at_) << 4}

const struct sv_call sv_calls[] = {
    CALL(openat,          0, 1, N, 3, N, 2, FILES, OPEN,   FLAGS,    false),
    CALL(openat2,         0, 1, N, N, N, N, FILES, OPEN2,  PLAIN,    false),
    CALL(close,           0, N, N, N, N, N, FILES, CLOSE,  PLAIN,    false),
    CALL(read,            0, N, N, 2, N, N, FILES, NONE,   TRANSFER, true),
    CALL(write,           0, N, N, 2, N, N, FILES, NONE,   TRANSFER, true),
    CALL(pread64,         0, N, N, 2, 3, N, FILES, NONE,   TRANSFER, false),
    CALL(pwrite64,        0, N, N, 2, 3, N, FILES, NONE,   TRANSFER, false),
    CALL(readv,           0, N, N, 2, N, N, FILES, NONE,   VECTOR,   true),
    CALL(writev,          0, N, N, 2, N, N, FILES, NONE,   VECTOR,   true),
    CALL(preadv,          0, N, N, 2, 3, N, FILES, NONE,   VECTOR,   false),
    CALL(pwritev,         0, N, N, 2, 3, N, FILES, NONE,   VECTOR,   false),
    CALL(preadv2,         0, N, N, 2, 3, N, FILES, NONE,   VECTOR,   false),
    CALL(pwritev2,        0, N, N, 2, 3, N, FILES, NONE,   VECTOR,   false),
    CALL(lseek,           0, N, N, N, N, N, FILES, NONE,   SEEK,     false),
    CALL(ftruncate,       0, N, N, 1, N, N, FILES, NONE,   RANGE,    false),
    CALL(fallocate,       0, N, N, 3, 2, 1, FILES, NONE,   RANGE,    false),
    COPY(sendfile,        1, 3, 0, 2, N),
    COPY(copy_file_range, 0, 4, 2, 1, 3),
    COPY(splice,          0, 4, 2, 1, 3),
    CALL(readahead,       0, N, N, 2, 1, N, FILES, NONE,   RANGE,    false),
    CALL(fadvise64,       0, N, N, 2, 1, 3, FILES, NONE,   RANGE,    false),
    CALL(truncate,        N, 0, N, 1, N, N, FILES, NONE,   RANGE,    false),
    CALL(mmap,            4, N, N, 1, 5, 3, MAPS,  MAP,    MAP,      false),
    CALL(munmap,          N, N, N, 1, N, N, MAPS,  NONE,   RANGE,    false),
    CALL(msync,           N, N, N, 1, N, 2, MAPS,  NONE,   RANGE,    false),
    CALL(madvise,         N, N, N, 1, N, 2, MAPS,  NONE,   RANGE,    false),
    CALL(fsync,           0, N, N, N, N, N, SYNC,  NONE,   PLAIN,    false),
    CALL(fdatasync,       0, N, N, N, N, N, SYNC,  NONE,   PLAIN,    false),
    CALL(sync_file_range, 0, N, N, 2, 1, 3, SYNC,  NONE,   RANGE,    false),
    CALL(syncfs,          0, N, N, N, N, N, SYNC,  NONE,   PLAIN,    false),
    CALL(mkdirat,         0, 1, N, 2, N, N, NAMES, NONE,   MODE,     false),
    CALL(unlinkat,        0, 1, N, N, N, 2, NAMES, NONE,   PLAIN,    false),
    CALL(renameat2,       0, 1, 3, N, N, 2, NAMES, NONE,   PLAIN,    false),
    CALL(linkat,          0, 1, 3, N, N, 2, NAMES, NONE,   PLAIN,    false),
    CALL(symlinkat,       1, 2, 0, N, N, N, NAMES, SYMLINK, PLAIN,   false),
    CALL(newfstatat,      0, 1, N, N, N, N, STAT,  NONE,   PLAIN,    false),
    CALL(statx,           0, 1, N, N, N, N, STAT,  NONE,   PLAIN,    false),
    CALL(fstat,           0, N, N, N, N, N, STAT,  NONE,   PLAIN,    false),
    CALL(faccessat,       0, 1, N, N, N, N, STAT,  NONE,   PLAIN,    false),
    CALL(faccessat2,      0, 1, N, N, N, N, STAT,  NONE,   PLAIN,    false),
    CALL(readlinkat,      0, 1, N, N, N, N, STAT,  NONE,   PLAIN,    false),
    CALL(statfs,          N, 0, N, N, N, N, STAT,  NONE,   PLAIN,    false),
    CALL(getdents64,      0, N, N, 2, N, N, STAT,  NONE,   TRANSFER, false),
    CALL(io_uring_setup,  N, N, N, N, N, N, URING, SOCKET, PLAIN,    false),
    CALL(io_uring_enter,  0, N, N, 1, N, 2, URING, NONE,   RET,      false),
    CALL(io_uring_register, 0, N, N, N, N, 1, URING, NONE, PLAIN,    false),
    CALL(io_submit,       N, N, N, 1, N, N, URING, SUBMIT, RET,      false),
    CALL(io_getevents,    N, N, N, 2, N, N, URING, REAP,   RET,      false),
    CALL(io_pgetevents,   N, N, N, 2, N, N, URING, REAP,   RET,      false),
    CALL(connect,         0, N, N, N, N, N, SOCKETS, NONE, PLAIN,    false),
    CALL(accept,          0, N, N, N, N, N, SOCKETS, SOCKET, PLAIN,  false),
    CALL(accept4,         0, N, N, N, N, N, SOCKETS, SOCKET, PLAIN,  false),
    CALL(sendto,          0, N, N, 2, N, N, SOCKETS, NONE, TRANSFER, false),
    CALL(recvfrom,        0, N, N, 2, N, N, SOCKETS, NONE, TRANSFER, false),
    CALL(sendmsg,         0, N, N, N, N, N, SOCKETS, NONE, VECTOR,   false),
    CALL(recvmsg,         0, N, N, N, N, N, SOCKETS, NONE, VECTOR,   false),
    CALL(sendmmsg,        0, N, N, N, N, N, SOCKETS, NONE, RET,      false),
    CALL(recvmmsg,        0, N, N, N, N, N, SOCKETS, NONE, RET,      false),
    CALL(ppoll,           N, N, N, N, N, N, POLL,  NONE,   RET,      false),
    CALL(pselect6,        N, N, N, N, N, N, POLL,  NONE,   RET,      false),
    CALL(epoll_pwait,     0, N, N, N, N, N, POLL,  NONE,   RET,      false),
#if defined(SYS_epoll_pwait2)
    CALL(epoll_pwait2,    0, N, N, N, N, N, POLL,  NONE,   RET,      false),
#endif
    CALL(dup,             0, N, N, N, N, N, FDS,   DUP,    PLAIN,    false),
    CALL(dup3,            0, N, N, N, N, 2, FDS,   DUP2,   PLAIN,    false),
    CALL(fcntl,           0, N, N, 2, N, 1, FDS,   FCNTL,  PLAIN,    false),
    CALL(close_range,     0, N, N, 2, N, 1, FDS,   CLOSE_RANGE, PLAIN, false),
    CALL(chdir,           N, 0, N, N, N, N, FDS,   CHDIR,  PLAIN,    false),
    CALL(fchdir,          0, N, N, N, N, N, FDS,   FCHDIR, PLAIN,    false),
    CALL(chroot,          N, 0, N, N, N, N, FDS,   CHROOT, PLAIN,    false),
    CALL(socket,          N, N, N, N, N, N, FDS,   SOCKET, PLAIN,    false),
    CALL(memfd_create,    N, 0, N, N, N, 1, FDS,   MEMFD,  PLAIN,    false),
    CALL(epoll_create1,   N, N, N, N, N, N, FDS,   SOCKET, PLAIN,    false),
    CALL(eventfd2,        N, N, N, N, N, N, FDS,   SOCKET, PLAIN,    false),
    CALL(inotify_init1,   N, N, N, N, N, N, FDS,   SOCKET, PLAIN,    false),
    CALL(pidfd_open,      N, N, N, N, N, N, FDS,   SOCKET, PLAIN,    false),
    CALL(pidfd_getfd,     N, N, N, N, N, N, FDS,   SOCKET, PLAIN,    false),
    CALL(timerfd_create,  N, N, N, N, N, N, FDS,   SOCKET, PLAIN,    false),
    CALL(open_by_handle_at, N, N, N, N, N, N, FDS,  SOCKET, PLAIN,   false),
    CALL(pipe2,           N, N, N, 0, N, N, FDS,   PAIR,   PLAIN,    false),
    CALL(socketpair,      N, N, N, 3, N, N, FDS,   PAIR,   PLAIN,    false),
#if HAS_OLD_CALLS
    CALL(open,            N, 0, N, 2, N, 1, FILES, OPEN,   FLAGS,    false),
    CALL(creat,           N, 0, N, 1, N, N, FILES, OPEN2,  MODE,     false),
    CALL(mkdir,           N, 0, N, 1, N, N, NAMES, NONE,   MODE,     false),
    CALL(rmdir,           N, 0, N, N, N, N, NAMES, NONE,   PLAIN,    false),
    CALL(unlink,          N, 0, N, N, N, N, NAMES, NONE,   PLAIN,    false),
    CALL(rename,          N, 0, 1, N, N, N, NAMES, NONE,   PLAIN,    false),
    CALL(renameat,        0, 1, 3, N, N, 2, NAMES, NONE,   PLAIN,    false),
    CALL(link,            N, 0, 1, N, N, N, NAMES, NONE,   PLAIN,    false),
    CALL(symlink,         N, 1, 0, N, N, N, NAMES, SYMLINK, PLAIN,   false),
    CALL(stat,            N, 0, N, N, N, N, STAT,  NONE,   PLAIN,    false),
    CALL(lstat,           N, 0, N, N, N, N, STAT,  NONE,   PLAIN,    false),
    CALL(access,          N, 0, N, N, N, N, STAT,  NONE,   PLAIN,    false),
    CALL(readlink,        N, 0, N, N, N, N, STAT,  NONE,   PLAIN,    false),
    CALL(poll,            N, N, N, N, N, N, POLL,  NONE,   RET,      false),
    CALL(select,          N, N, N, N, N, N, POLL,  NONE,   RET,      false),
    CALL(epoll_wait,      0, N, N, N, N, N, POLL,  NONE,   RET,      false),
    CALL(dup2,            0, N, N, N, N, N, FDS,   DUP2,   PLAIN,    false),
    CALL(pipe,            N, N, N, 0, N, N, FDS,   PAIR,   PLAIN,    false),
    CALL(epoll_create,    N, N, N, N, N, N, FDS,   SOCKET, PLAIN,    false),
    CALL(eventfd,         N, N, N, N, N, N, FDS,   SOCKET, PLAIN,    false),
    CALL(inotify_init,    N, N, N, N, N, N, FDS,   SOCKET, PLAIN,    false),
#endif
};
/* clang-format on */
const size_t sv_n_calls = sizeof sv_calls / sizeof *sv_calls;

const char *const sv_call_group_names[] = {"files", "maps",    "sync",  "names",
                                           "stat",  "sockets", "uring", NULL};

void sv_calls_index(const struct sv_call *index[SV_WIRE_CALLS_MAX])
{
    memset(index, 0, SV_WIRE_CALLS_MAX * sizeof *index);
    for (size_t i = 0; i < sv_n_calls; i++)
        index[sv_calls[i].nr] = &sv_calls[i];
}

bool sv_call_writes(const struct sv_call *c)
{
    return (c->sense == SV_SENSE_TRANSFER || c->sense == SV_SENSE_VECTOR) && !c->places &&
           (strstr(c->name, "write") || strncmp(c->name, "send", 4) == 0);
}

/* What a call on a socket gives: it waits for somebody. */
static unsigned waits_of(const struct sv_call *c, unsigned groups)
{
    bool is_transfer = c->sense == SV_SENSE_TRANSFER || c->sense == SV_SENSE_VECTOR;
    if (!(groups & SV_CALLS_WAITING))
        return 0;
    if (c->group == SV_CALLS_POLL) /* epoll and select do not say of which descriptor */
        return SV_WIRE_IF_WAITED | (strstr(c->name, "ppoll") || strcmp(c->name, "poll") == 0
                                        ? SV_WIRE_POLLS | SV_WIRE_HAS_PEER
                                        : 0);
    if (c->group == SV_CALLS_SOCKETS)
        return SV_WIRE_HAS_PEER | (groups & SV_CALLS_SOCKETS ? 0 : SV_WIRE_IF_WAITED);
    return c->group == SV_CALLS_FILES && is_transfer && c->aux == N
               ? SV_WIRE_HAS_PEER | SV_WIRE_IS_FILE
               : 0;
}

void sv_calls_plan(unsigned groups, struct sv_wire_plan *plans)
{
    memset(plans, 0, SV_WIRE_CALLS_MAX * sizeof *plans);
    for (size_t i = 0; i < sv_n_calls; i++) {
        const struct sv_call *c = &sv_calls[i];
        struct sv_wire_plan *p = &plans[c->nr];
        unsigned waits = waits_of(c, groups);
        bool changes_fds = (c->effect != SV_EFFECT_NONE && c->effect < SV_EFFECT_SYMLINK) ||
                           (waits && c->nr == SYS_connect); /* whose end of a connection it is */
        bool is_wanted = (c->group & groups && c->group != SV_CALLS_FDS) ||
                         waits & SV_WIRE_IF_WAITED;
        *p = (struct sv_wire_plan){.fd = c->fd,
                                   .path = c->path,
                                   .path2 = c->path2,
                                   .size = c->size,
                                   .offset = c->offset,
                                   .aux = c->aux,
                                   .places = c->places,
                                   .waits = (uint8_t)waits,
                                   .maps = c->effect == SV_EFFECT_MAP};
        p->wants = (uint16_t)((is_wanted ? SV_WIRE_WANTED : 0) |
                              (changes_fds && groups ? SV_WIRE_CHANGES_FDS : 0) |
                              (c->has_position ? SV_WIRE_POSITION : 0) |
                              (c->sense == SV_SENSE_VECTOR && c->size != N ? SV_WIRE_VECTOR : 0) |
                              (c->effect == SV_EFFECT_OPEN ? SV_WIRE_OPENS : 0) |
                              (c->effect == SV_EFFECT_OPEN || c->effect == SV_EFFECT_OPEN2 ||
                                       c->effect == SV_EFFECT_SOCKET || c->effect == SV_EFFECT_MEMFD
                                   ? SV_WIRE_RETURNS_FD
                                   : 0) |
                              (sv_call_writes(c) ? SV_WIRE_WRITES : 0) |
                              (c->effect == SV_EFFECT_SUBMIT ? SV_WIRE_SUBMITS : 0) |
                              (c->effect == SV_EFFECT_REAP ? SV_WIRE_REAPS : 0) |
                              (c->effect == SV_EFFECT_CLOSE ? SV_WIRE_CLOSES : 0) |
                              (c->effect == SV_EFFECT_PAIR ? SV_WIRE_PAIR : 0));
        if (!(p->wants & (SV_WIRE_WANTED | SV_WIRE_CHANGES_FDS)))
            p->wants = 0;
    }
}

static bool add_group(const char *word, size_t len, unsigned *groups)
{
    if (len == 3 && memcmp(word, "all", 3) == 0) {
        *groups |= SV_CALLS_DEFAULT | SV_CALLS_SOCKETS;
        return true;
    }
    for (unsigned i = 0; sv_call_group_names[i]; i++) {
        if (strlen(sv_call_group_names[i]) == len &&
            memcmp(sv_call_group_names[i], word, len) == 0) {
            *groups |= 1u << i;
            return true;
        }
    }
    return false;
}

bool sv_calls_groups(const char *text, unsigned *groups, char bad[32])
{
    *groups = 0;
    while (*text) {
        size_t len = strcspn(text, ",");
        if (!add_group(text, len, groups)) {
            memset(bad, 0, 32);
            memcpy(bad, text, len < 31 ? len : 31);
            return false;
        }
        text += len + (text[len] == ',');
    }
    return *groups != 0;
}

static void lengthen(const struct sv_wire_short_call *s, struct sv_wire_call *whole)
{
    *whole = (struct sv_wire_call){.head = s->head,
                                   .start_ns = s->head.ts_ns - s->took_ns,
                                   .ret = s->ret,
                                   .fd = s->fd,
                                   .aux = s->aux,
                                   .size = s->size,
                                   .offset = s->offset == UINT32_MAX ? -1 : (int64_t)s->offset,
                                   .inode = s->inode};
}

bool sv_call_whole(const struct sv_wire_head *record, uint32_t size, struct sv_wire_call *whole,
                   const char **text)
{
    struct sv_wire_short_call s = {.offset = UINT32_MAX};
    const char *bytes = (const char *)record;
    if (!(record->flags & SV_WIRE_SHORT)) {
        *text = bytes + sizeof *whole;
        if (size >= sizeof *whole)
            memcpy(whole, record, sizeof *whole);
        return size >= sizeof *whole;
    }
    if (size < offsetof(struct sv_wire_short_call, offset))
        return false;
    uint32_t fixed = size < sizeof s ? size : (uint32_t)sizeof s;
    memcpy(&s, record, fixed);
    *text = bytes + fixed;
    lengthen(&s, whole);
    if (fixed < sizeof s)
        whole->size = (uint64_t)whole->ret;
    return s.took_ns <= s.head.ts_ns;
}
