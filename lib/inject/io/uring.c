/* io_uring, of programs that use liburing: submissions are counted. Requests complete without a
 * call: when is not observed. */
#include "io.h"

/* Returns how many were submitted, or -errno. */
static int submitted(struct io_call *c, int n)
{
    int error = errno;
    io_end(c, false);
    pre_put(&c->args, n >= 0 ? PRE_RET : PRE_ERRNO, (uint64_t)(n >= 0 ? n : -n));
    io_done(c);
    errno = error;
    return n;
}

#define SUBMIT(symbol, params, args)             \
    WRAP(int, symbol, IO_INSIDE params)          \
    {                                            \
        struct io_call c;                        \
        if (!PRE_ON())                           \
            return NEXT(symbol) args;            \
        io_begin(&c, "io_uring_enter");          \
        return submitted(&c, NEXT(symbol) args); \
    }
SUBMIT(io_uring_submit, (void *ring), (ring))
SUBMIT(io_uring_submit_and_wait, (void *ring, unsigned n), (ring, n))
SUBMIT(io_uring_submit_and_wait_timeout,
       (void *ring, void **done, unsigned n, void *limit, void *mask), (ring, done, n, limit, mask))
