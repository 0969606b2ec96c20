/* Reads with io_uring past the cache, one request after the other: it waits for the file. */
#define _GNU_SOURCE
#include "truth.h"

#include <errno.h>
#include <linux/io_uring.h>
#include <sys/mman.h>
#include <sys/syscall.h>

enum { FILE_MIB = 32, STEPS = 100, READS = 6, SIZE = 1 << 20 };

struct ring {
    int fd;
    char *sq, *cq;
    struct io_uring_sqe *entries;
    struct io_uring_params p;
};

static void open_ring(struct ring *r)
{
    r->fd = (int)syscall(SYS_io_uring_setup, 8, &r->p);
    if (r->fd < 0)
        exit(77); /* not allowed here */
    size_t sq = r->p.sq_off.array + r->p.sq_entries * sizeof(unsigned),
           cq = r->p.cq_off.cqes + r->p.cq_entries * sizeof(struct io_uring_cqe);
    int how = PROT_READ | PROT_WRITE;
    r->sq = mmap(NULL, sq, how, MAP_SHARED, r->fd, IORING_OFF_SQ_RING);
    r->cq = mmap(NULL, cq, how, MAP_SHARED, r->fd, IORING_OFF_CQ_RING);
    r->entries =
        mmap(NULL, r->p.sq_entries * sizeof *r->entries, how, MAP_SHARED, r->fd, IORING_OFF_SQES);
}

static unsigned *at(char *ring, unsigned offset)
{
    return (unsigned *)(void *)(ring + offset);
}

static void read_block(struct ring *r, int file, void *to, unsigned long offset)
{
    unsigned *tail = at(r->sq, r->p.sq_off.tail), *head = at(r->cq, r->p.cq_off.head),
             i = *tail & *at(r->sq, r->p.sq_off.ring_mask);
    r->entries[i] = (struct io_uring_sqe){.opcode = IORING_OP_READ,
                                          .fd = file,
                                          .addr = (unsigned long)to,
                                          .len = SIZE,
                                          .off = offset};
    at(r->sq, r->p.sq_off.array)[i] = i;
    __atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
    if (syscall(SYS_io_uring_enter, r->fd, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) < 0)
        abort();
    __atomic_store_n(head, *head + 1, __ATOMIC_RELEASE);
}

int main(void)
{
    struct why w = {0};
    struct ring r = {0};
    void *block = NULL;
    int64_t ns = 0;
    if (posix_memalign(&block, 4096, SIZE))
        abort();
    int file = why_file("table.sst", O_CREAT | O_WRONLY);
    for (int i = 0; i < FILE_MIB; i++) {
        memset(block, i + 1, SIZE);
        if (write(file, block, SIZE) != SIZE)
            abort();
    }
    fsync(file);
    close(file);
    file = why_file("table.sst", O_RDONLY | O_DIRECT);
    open_ring(&r);
    why_begin(&w);
    for (int i = 0; i < STEPS; i++) {
        STAVE_SCOPE("step", "step", "n", i);
        int64_t begin = why_now();
        for (int k = 0; k < READS; k++)
            read_block(&r, file, block, (unsigned long)((i * 7 + k * 5) % FILE_MIB) * SIZE);
        ns += why_now() - begin;
        why_spin_ms(4);
    }
    why_end(&w);
    why_cause(&w, "\"disk\", \"data\", \"slow_file\"", ns, "\"path\": \"table.sst\"");
    why_write(&w, "step", STEPS, 1);
}
