/* play_uring: requests of io_uring that are known one by one, by bare system calls, for the tests
 * of `stave record`.
 *
 *   play_uring FILE N [fixed]     N writes and N reads of 4 KiB by their offsets, one fsync, one
 *                                 read past the end, one on a bad descriptor, one open by the path,
 *                                 one by a path that is not there, one close;
 *                            fixed: the file by its number in the ring's own table */
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { ENTRIES = 64, BLOCK = 4096 };

struct ring {
    int fd;
    _Atomic uint32_t *sq_tail, *cq_head, *cq_tail;
    uint32_t sq_mask, cq_mask;
    uint32_t *sq_array;
    struct io_uring_sqe *sqes;
    struct io_uring_cqe *cqes;
};

static void need(int ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "play_uring: %s: %s\n", what, strerror(errno));
    exit(errno == ENOSYS || errno == EPERM ? 77 : 1);
}

static void open_ring(struct ring *r)
{
    struct io_uring_params p = {0};
    r->fd = (int)syscall(SYS_io_uring_setup, ENTRIES, &p);
    need(r->fd >= 0, "io_uring_setup");
    size_t size = p.sq_off.array + p.sq_entries * sizeof(uint32_t);
    uint8_t *sq = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, r->fd, IORING_OFF_SQ_RING);
    size = p.cq_off.cqes + p.cq_entries * sizeof(struct io_uring_cqe);
    uint8_t *cq = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, r->fd, IORING_OFF_CQ_RING);
    r->sqes = mmap(NULL, p.sq_entries * sizeof *r->sqes, PROT_READ | PROT_WRITE, MAP_SHARED, r->fd,
                   IORING_OFF_SQES);
    need(sq != MAP_FAILED && cq != MAP_FAILED && r->sqes != MAP_FAILED, "mmap");
    r->sq_tail = (void *)(sq + p.sq_off.tail);
    r->sq_mask = *(uint32_t *)(void *)(sq + p.sq_off.ring_mask);
    r->sq_array = (void *)(sq + p.sq_off.array);
    r->cq_head = (void *)(cq + p.cq_off.head);
    r->cq_tail = (void *)(cq + p.cq_off.tail);
    r->cq_mask = *(uint32_t *)(void *)(cq + p.cq_off.ring_mask);
    r->cqes = (void *)(cq + p.cq_off.cqes);
}

/* One request, submitted and waited for. Returns its result. */
static int run(struct ring *r, struct io_uring_sqe sqe)
{
    uint32_t tail = atomic_load(r->sq_tail), at = tail & r->sq_mask;
    r->sqes[at] = sqe;
    r->sq_array[at] = at;
    atomic_store(r->sq_tail, tail + 1);
    need(syscall(SYS_io_uring_enter, r->fd, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) == 1,
         "io_uring_enter");
    uint32_t head = atomic_load(r->cq_head);
    need(head != atomic_load(r->cq_tail), "a completion");
    int res = r->cqes[head & r->cq_mask].res;
    atomic_store(r->cq_head, head + 1);
    return res;
}

int main(int argc, char **argv)
{
    static char block[BLOCK];
    struct ring r;
    if (argc < 3)
        return 2;
    long n = strtol(argv[2], NULL, 10);
    int is_fixed = argc > 3;
    open_ring(&r);
    int fd = open(argv[1], O_RDWR | O_CREAT | O_TRUNC, 0644);
    need(fd >= 0, argv[1]);
    if (is_fixed)
        need(syscall(SYS_io_uring_register, r.fd, IORING_REGISTER_FILES, &fd, 1) == 0, "register");
    struct io_uring_sqe s = {.fd = is_fixed ? 0 : fd,
                             .flags = is_fixed ? IOSQE_FIXED_FILE : 0,
                             .addr = (uint64_t)(uintptr_t)block,
                             .len = BLOCK};
    for (long i = 0; i < 2 * n; i++) {
        s.opcode = i < n ? IORING_OP_WRITE : IORING_OP_READ;
        s.off = (uint64_t)(i % n) * BLOCK;
        need(run(&r, s) == BLOCK, "a transfer");
    }
    s.off = (uint64_t)n * BLOCK - 100;
    need(run(&r, s) == 100, "a short read");
    need(run(&r, (struct io_uring_sqe){.opcode = IORING_OP_FSYNC, .fd = s.fd, .flags = s.flags}) ==
             0,
         "fsync");
    if (!is_fixed)
        need(run(&r,
                 (struct io_uring_sqe){
                     .opcode = IORING_OP_READ, .fd = 999, .addr = s.addr, .len = BLOCK}) == -EBADF,
             "a bad descriptor");
    struct io_uring_sqe opens = {.opcode = IORING_OP_OPENAT,
                                 .fd = AT_FDCWD,
                                 .addr = (uint64_t)(uintptr_t)argv[1],
                                 .open_flags = O_RDONLY};
    int second = run(&r, opens);
    need(second >= 0, "an open");
    opens.addr = (uint64_t)(uintptr_t) "/nowhere/at/all";
    need(run(&r, opens) == -ENOENT, "an open that fails");
    need(pread(second, block, 7, 0) == 7, "read");
    need(run(&r, (struct io_uring_sqe){.opcode = IORING_OP_CLOSE, .fd = second}) == 0, "close");
    return 0;
}
