/* play_aio: requests of io_submit() that are known one by one, by bare system calls, for the tests
 * of `stave record`. A line per request: its operation, bytes (negative: the error), offset.
 *
 *   play_aio FILE N     N writes of 4 KiB at once, N reads of them, one fsync, one read past the
 *                       end, one on a bad descriptor, which io_submit refuses */
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MANY = 200, BLOCK = 4096 };

static void need(int ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "play_aio: %s: %s\n", what, strerror(errno));
    exit(errno == ENOSYS || errno == EPERM ? 77 : 1);
}

static const char *name_of(const struct iocb *r)
{
    return r->aio_lio_opcode == IOCB_CMD_PREAD    ? "aio_read"
           : r->aio_lio_opcode == IOCB_CMD_PWRITE ? "aio_write"
                                                  : "aio_fsync";
}

/* All of them at once, then until they are back. */
static void run(aio_context_t ctx, struct iocb *requests, long n)
{
    static struct iocb *pointers[MANY];
    static struct io_event events[MANY];
    for (long i = 0; i < n; i++)
        pointers[i] = &requests[i];
    need(syscall(SYS_io_submit, ctx, n, pointers) == n, "io_submit");
    for (long back = 0; back < n;) {
        long got = syscall(SYS_io_getevents, ctx, 1, n - back, events, NULL);
        need(got > 0, "io_getevents");
        for (long i = 0; i < got; i++) {
            const struct iocb *r = (const void *)(uintptr_t)events[i].obj;
            printf("%s %lld %lld\n", name_of(r), (long long)events[i].res,
                   r->aio_lio_opcode == IOCB_CMD_FSYNC ? -1 : (long long)r->aio_offset);
        }
        back += got;
    }
}

int main(int argc, char **argv)
{
    static struct iocb requests[MANY];
    static char block[BLOCK];
    aio_context_t ctx = 0;
    if (argc < 3)
        return 2;
    long n = strtol(argv[2], NULL, 10);
    int fd = open(argv[1], O_RDWR | O_CREAT | O_TRUNC, 0600);
    need(fd >= 0 && n > 0 && n < MANY, argv[1]);
    need(syscall(SYS_io_setup, MANY, &ctx) == 0, "io_setup");
    for (int turn = 0; turn < 2; turn++) {
        for (long i = 0; i < n; i++)
            requests[i] = (struct iocb){.aio_lio_opcode = turn ? IOCB_CMD_PREAD : IOCB_CMD_PWRITE,
                                        .aio_fildes = (uint32_t)fd,
                                        .aio_buf = (uint64_t)(uintptr_t)block,
                                        .aio_nbytes = BLOCK,
                                        .aio_offset = i * BLOCK};
        run(ctx, requests, n);
    }
    requests[0].aio_offset = n * BLOCK - 100;
    requests[1] = (struct iocb){.aio_lio_opcode = IOCB_CMD_FSYNC, .aio_fildes = (uint32_t)fd};
    run(ctx, requests, 2);
    struct iocb bad = {.aio_lio_opcode = IOCB_CMD_PREAD, .aio_fildes = 999}, *one = &bad;
    need(syscall(SYS_io_submit, ctx, 1L, &one) == -1 && errno == EBADF, "a bad descriptor");
    return 0;
}
