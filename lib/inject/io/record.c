/* A call of the program into the trace. */
#include "io.h"

#define WAITED_NS 1000000

void io_begin_for(struct io_call *c, const char *name, const void *caller)
{
    c->caller = caller;
    c->name = name;
    c->args.has = 0;
    c->start_ns = stave_now_ns();
}

void io_end(struct io_call *c, bool failed)
{
    c->error = errno;
    c->failed = failed;
    c->end_ns = stave_now_ns();
    IO_ENTER();
}

void io_done(struct io_call *c)
{
    if (c->failed)
        pre_put(&c->args, PRE_ERRNO, (uint64_t)c->error);
    pre_record(c->name, c->start_ns, c->end_ns, &c->args);
    IO_LEAVE();
    errno = c->error;
}

void io_put_fd(struct io_call *c, int fd)
{
    pre_put(&c->args, PRE_FD, (uint64_t)(int64_t)fd);
    pre_put_text(&c->args, PRE_PATH, io_path(fd));
}

void io_put_bytes(struct io_call *c, int64_t got, uint64_t requested)
{
    if (requested <= INT64_MAX && (int64_t)requested != got)
        pre_put(&c->args, PRE_REQUESTED, requested);
    if (got >= 0)
        pre_put(&c->args, PRE_BYTES, (uint64_t)got);
}

static void done_as_wait(struct io_call *c, const char *reason)
{
    struct pre_wait w = {
        .reason = reason,
        .function = c->name,
        .caller = c->caller,
        .start_ns = c->start_ns,
        .end_ns = c->end_ns,
        .by_tid = c->args.has >> PRE_WAKER_TID & 1 ? (uint32_t)c->args.v[PRE_WAKER_TID] : 0};
    if (io_is_alone && c->end_ns - c->start_ns >= WAITED_NS)
        pre_waited(&w);
    io_done(c);
}

void io_done_on(struct io_call *c, int fd, bool is_out)
{
    if (!RARELY(io_has_ends(fd))) {
        io_done(c);
        return;
    }
    struct io_ends ends = io_ends(fd);
    io_ends_waker(c, fd, is_out);
    done_as_wait(c, ends.in == ends.out ? "pipe" : "socket");
}

void io_done_if_waited(struct io_call *c, const char *reason, int fd)
{
    if (c->end_ns - c->start_ns < WAITED_NS) {
        IO_LEAVE();
        errno = c->error;
        return;
    }
    if (fd >= 0)
        io_put_fd(c, fd);
    done_as_wait(c, reason);
}
