/* Errors: what went wrong, at which byte, in one sentence.
 *
 * Functions that can fail return 0 (or a count) on success and a negative SV_E… on failure; the
 * details go to the caller's struct sv_err, always the last parameter. Libraries never print: cmd/
 * prints, in the shape `stave VERB: FILE: byte N: message`. */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

enum sv_errno {
    SV_OK = 0,
    SV_EUSAGE = -1,  /* the caller made a request that is malformed or contradictory */
    SV_EIO = -2,     /* the operating system said no: open, read, write, rename */
    SV_EFORMAT = -3, /* the input is not what it says it is, and nothing can be recovered past it */
    SV_ENOMEM = -4,  /* out of memory, or past a stated memory limit */
    SV_ELIMIT = -5,  /* a stated limit other than memory was reached */
    SV_EFOUND = -6,  /* --strict: damage was found */
    SV_EAGAIN = -7,  /* a live source has nothing right now */
    SV_EINPUT = -8,  /* the input cannot be opened or read on */
    SV_EHELD = -9,   /* another process holds it */
    SV_EPIPE = -10   /* the reader of standard output has closed it: the end, but no failure */
};

#define SV_NO_POS (-1)

struct sv_err {
    int code;
    int64_t pos; /* byte position in the (decompressed) input, or SV_NO_POS */
    char msg[512];
};

/* Fills err (which may be NULL) and returns code, so that `return sv_err_set(…)` reads well. The
 * first error of a chain wins: an err that already holds one is not changed. */
int sv_err_set(struct sv_err *err, int code, int64_t pos, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* The same where no byte of an input is to blame. */
#define sv_error(err, code, ...) sv_err_set(err, code, SV_NO_POS, __VA_ARGS__)

/* The same with ": strerror(errno)" appended. */
int sv_err_sys(struct sv_err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Standard output could not be written (see errno): SV_EPIPE when its reader has left, else as
 * above. */
int sv_err_stdout(struct sv_err *err);

void sv_err_clear(struct sv_err *err);
