/* stdio: what the libc reads and writes behind it.
 *
 * The libc's own read and write do not come through our functions. What they moved is in its
 * buffers: bytes that a call gave to the program without having had them before were read, bytes
 * that the program gave and that are not in the buffer afterwards were written. A call that only
 * copied from or to a buffer is no event. So bytes are exact; of a call that read in several parts
 * there is one event, where the kernel probes have one for each. */
#include "io.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* What is in the buffers of a stream; they are members of glibc's public FILE. */
struct held {
    int64_t readable, unwritten;
};

static struct held held_by(const FILE *f)
{
    return (struct held){.readable = f->_IO_read_end - f->_IO_read_ptr,
                         .unwritten = f->_IO_write_ptr - f->_IO_write_base};
}

static bool is_file(const FILE *f)
{
    return f && f->_fileno >= 0;
}

/* ---- reading ---- */

/* A call has given `taken` bytes to the program. At the end of the file, or after an error, it has
 * asked in vain. */
static void was_read(struct io_call *c, FILE *f, struct held before, int64_t taken, bool at_end)
{
    int64_t got = taken - before.readable + held_by(f).readable;
    int fd = f->_fileno;
    c->error = errno;
    if (got < 0 || (got == 0 && !at_end))
        return;
    io_end(c, false);
    int64_t from = io_position(fd);
    io_put_fd(c, fd);
    if (from >= 0) /* asked after the read where it was not known */
        pre_put(&c->args, PRE_OFFSET, (uint64_t)from);
    pre_put(&c->args, PRE_BYTES, (uint64_t)got);
    io_moved(fd, from >= 0 ? from + got : IO_NO_POSITION);
    io_done_on(c, fd, false);
}

/* SYMBOL, type of the result, parameters, arguments, how much was given. */
#define READ(symbol, type, params, args, taken, at_end) \
    WRAP(type, symbol, IO_INSIDE params)                \
    {                                                   \
        struct io_call c;                               \
        if (!is_file(f) || !PRE_ON())                   \
            return NEXT(symbol) args;                   \
        struct held before = held_by(f);                \
        io_begin(&c, "read");                           \
        type got = NEXT(symbol) args;                   \
        was_read(&c, f, before, taken, at_end);         \
        return got;                                     \
    }
#define GIVES(symbol, params, args) \
    READ(symbol, size_t, params, args, (int64_t)(got * size), got < n && size)
GIVES(fread, (void *to, size_t size, size_t n, FILE *f), (to, size, n, f))
GIVES(fread_unlocked, (void *to, size_t size, size_t n, FILE *f), (to, size, n, f))
GIVES(__fread_chk, (void *to, size_t room, size_t size, size_t n, FILE *f), (to, room, size, n, f))
GIVES(__fread_unlocked_chk, (void *to, size_t room, size_t size, size_t n, FILE *f),
      (to, room, size, n, f))
#define LINE(symbol, params, args) \
    READ(symbol, char *, params, args, got ? (int64_t)strlen(got) : 0, !got)
LINE(fgets, (char *to, int n, FILE *f), (to, n, f))
LINE(fgets_unlocked, (char *to, int n, FILE *f), (to, n, f))
LINE(__fgets_chk, (char *to, size_t room, int n, FILE *f), (to, room, n, f))
LINE(__fgets_unlocked_chk, (char *to, size_t room, int n, FILE *f), (to, room, n, f))
#define RECORD(symbol, params, args) \
    READ(symbol, ssize_t, params, args, got > 0 ? (int64_t)got : 0, got < 0)
RECORD(getline, (char **to, size_t *room, FILE *f), (to, room, f))
RECORD(getdelim, (char **to, size_t *room, int end, FILE *f), (to, room, end, f))
RECORD(__getdelim, (char **to, size_t *room, int end, FILE *f), (to, room, end, f))
#define BYTE(symbol) READ(symbol, int, (FILE * f), (f), got >= 0, got < 0)
BYTE(fgetc)
BYTE(getc)
BYTE(fgetc_unlocked)
BYTE(getc_unlocked)
BYTE(_IO_getc)
BYTE(__uflow) /* what an inlined getc_unlocked calls when the buffer is empty */

/* ---- writing ---- */

/* Whoever waits for it may be woken before the call returns. */
static void begin_write(struct io_call *c, const FILE *f, const void *caller)
{
    int error = errno;
    IO_ENTER();
    if (RARELY(io_has_ends(f->_fileno)))
        io_ends_used(f->_fileno, true);
    IO_LEAVE();
    errno = error;
    io_begin_for(c, "write", caller);
}

/* The program has given `given` bytes. */
static void was_written(struct io_call *c, FILE *f, int fd, int64_t put, bool failed)
{
    if (put <= 0) {
        (void)f;
        return;
    }
    io_end(c, failed);
    int64_t from = io_position(fd);
    io_put_fd(c, fd);
    if (from >= 0)
        pre_put(&c->args, PRE_OFFSET, (uint64_t)from);
    pre_put(&c->args, PRE_BYTES, (uint64_t)put);
    io_moved(fd, from >= 0 ? from + put : IO_NO_POSITION);
    io_done_on(c, fd, true);
}

#define WRITE(symbol, type, params, args, given)                                                \
    WRAP(type, symbol, IO_INSIDE params)                                                        \
    {                                                                                           \
        struct io_call c;                                                                       \
        if (!is_file(f) || !PRE_ON())                                                           \
            return NEXT(symbol) args;                                                           \
        struct held before = held_by(f);                                                        \
        begin_write(&c, f, PRE_CALLER());                                                       \
        type got = NEXT(symbol) args;                                                           \
        was_written(&c, f, f->_fileno, before.unwritten + (given)-held_by(f).unwritten, false); \
        return got;                                                                             \
    }
#define TAKES(symbol, params, args) WRITE(symbol, size_t, params, args, (int64_t)(got * size))
TAKES(fwrite, (const void *from_, size_t size, size_t n, FILE *f), (from_, size, n, f))
TAKES(fwrite_unlocked, (const void *from_, size_t size, size_t n, FILE *f), (from_, size, n, f))
#define TEXT(symbol) \
    WRITE(symbol, int, (const char *text, FILE *f), (text, f), got >= 0 ? (int64_t)strlen(text) : 0)
TEXT(fputs)
TEXT(fputs_unlocked)
#define PUT_BYTE(symbol) WRITE(symbol, int, (int byte, FILE *f), (byte, f), got >= 0)
PUT_BYTE(fputc)
PUT_BYTE(putc)
PUT_BYTE(fputc_unlocked)
PUT_BYTE(putc_unlocked)
PUT_BYTE(_IO_putc)
PUT_BYTE(__overflow)
#define FORMAT(symbol, params, args) WRITE(symbol, int, params, args, got > 0 ? (int64_t)got : 0)
FORMAT(vfprintf, (FILE * f, const char *format, va_list list), (f, format, list))
FORMAT(__vfprintf_chk, (FILE * f, int flag, const char *format, va_list list),
       (f, flag, format, list))

/* Those with a variable list call the one with a list. */
WRAP(int, fprintf, FILE *f, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int n = on_vfprintf(f, format, list);
    va_end(list);
    return n;
}

WRAP(int, __fprintf_chk, FILE *f, int flag, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int n = on___vfprintf_chk(f, flag, format, list);
    va_end(list);
    return n;
}

/* What is in the buffers of a file goes out now. */
#define FLUSH(symbol)                                                                       \
    WRAP(int, symbol, FILE *f)                                                              \
    {                                                                                       \
        struct io_call c;                                                                   \
        if (!is_file(f) || !PRE_ON())                                                       \
            return NEXT(symbol)(f);                                                         \
        struct held before = held_by(f);                                                    \
        begin_write(&c, f, PRE_CALLER());                                                   \
        int done = NEXT(symbol)(f);                                                         \
        was_written(&c, f, f->_fileno, before.unwritten - held_by(f).unwritten, done != 0); \
        return done;                                                                        \
    }
FLUSH(fflush)
FLUSH(fflush_unlocked)

/* ---- positions ---- */

/* The libc may have moved the descriptor by what it likes. */
static void moved(FILE *f)
{
    if (is_file(f) && !pre_self.is_quiet) {
        IO_ENTER();
        io_moved(f->_fileno, IO_NO_POSITION);
        IO_LEAVE();
    }
}

#define SEEK(symbol, params, args)                                                          \
    WRAP(int, symbol, IO_INSIDE params)                                                     \
    {                                                                                       \
        struct io_call c;                                                                   \
        if (!is_file(f) || !PRE_ON())                                                       \
            return NEXT(symbol) args;                                                       \
        struct held before = held_by(f);                                                    \
        io_begin(&c, "write");                                                              \
        int done = NEXT(symbol) args;                                                       \
        was_written(&c, f, f->_fileno, before.unwritten - held_by(f).unwritten, done != 0); \
        moved(f);                                                                           \
        return done;                                                                        \
    }
SEEK(fseek, (FILE * f, long by, int whence), (f, by, whence))
SEEK(fseeko, (FILE * f, off_t by, int whence), (f, by, whence))
SEEK(fseeko64, (FILE * f, off_t by, int whence), (f, by, whence))
SEEK(fsetpos, (FILE * f, const void *to), (f, to))
SEEK(fsetpos64, (FILE * f, const void *to), (f, to))

WRAP(void, rewind, FILE *f)
{
    NEXT(rewind)(f);
    moved(f);
}

/* ---- open and close ---- */

static int flags_of(const char *mode)
{
    int flags = strchr(mode, '+') ? O_RDWR : mode[0] == 'r' ? O_RDONLY : O_WRONLY;
    flags |= mode[0] == 'w' ? O_CREAT | O_TRUNC : mode[0] == 'a' ? O_CREAT | O_APPEND : 0;
    return flags | (strchr(mode, 'x') ? O_EXCL : 0) | (strchr(mode, 'e') ? O_CLOEXEC : 0);
}

static void opened(struct io_call *c, const char *path, const char *mode, FILE *f)
{
    io_end(c, !f);
    int flags = flags_of(mode ? mode : "");
    const char *full = IO_FULL(AT_FDCWD, path);
    if (is_file(f)) {
        io_fd_opened(f->_fileno, full, flags);
        pre_put(&c->args, PRE_FD, (uint64_t)f->_fileno);
    }
    pre_put_text(&c->args, PRE_PATH, full);
    if (flags)
        pre_put(&c->args, PRE_FLAGS, (uint64_t)flags);
    if (flags & O_CREAT)
        pre_put(&c->args, PRE_MODE, 0666);
    io_done(c);
}

#define FOPEN(symbol, params, args)        \
    WRAP(FILE *, symbol, IO_INSIDE params) \
    {                                      \
        struct io_call c;                  \
        if (!PRE_ON())                     \
            return NEXT(symbol) args;      \
        io_begin(&c, "openat");            \
        FILE *made = NEXT(symbol) args;    \
        opened(&c, path, mode, made);      \
        return made;                       \
    }
FOPEN(fopen, (const char *path, const char *mode), (path, mode))
FOPEN(fopen64, (const char *path, const char *mode), (path, mode))
FOPEN(freopen, (const char *path, const char *mode, FILE *f), (path, mode, f))
FOPEN(freopen64, (const char *path, const char *mode, FILE *f), (path, mode, f))

static FILE *fresh(FILE *f)
{
    if (is_file(f) && !pre_self.is_quiet)
        io_fd_unknown(f->_fileno);
    return f;
}

WRAP(FILE *, popen, const char *command, const char *mode)
{
    return fresh(NEXT(popen)(command, mode));
}

WRAP(FILE *, tmpfile, void)
{
    return fresh(NEXT(tmpfile)());
}

WRAP(FILE *, tmpfile64, void)
{
    return fresh(NEXT(tmpfile64)());
}

/* It writes what is left, then closes: two calls, of which only the sum of their times is known. It
 * is the write's where there was one. */
#define FCLOSE(symbol)                              \
    WRAP(int, symbol, FILE *f)                      \
    {                                               \
        struct io_call c;                           \
        int fd = is_file(f) ? f->_fileno : -1;      \
        if (fd < 0 || !PRE_ON()) {                  \
            if (fd >= 0 && !pre_self.is_quiet)      \
                io_fd_unknown(fd);                  \
            return NEXT(symbol)(f);                 \
        }                                           \
        int64_t left = held_by(f).unwritten;        \
        io_know(fd);                                \
        io_begin(&c, left > 0 ? "write" : "close"); \
        int done = NEXT(symbol)(f);                 \
        closed(&c, fd, left, done);                 \
        return done;                                \
    }

static void closed(struct io_call *c, int fd, int64_t left, int done)
{
    was_written(c, NULL, fd, left, done != 0);
    if (left > 0) {
        c->name = "close";
        c->args.has = 0;
        c->start_ns = c->end_ns;
    }
    io_end(c, done != 0);
    io_put_fd(c, fd);
    io_fd_unknown(fd);
    io_done(c);
}

FCLOSE(fclose)

/* Waits for the command: that is not the file's time. */
WRAP(int, pclose, FILE *f)
{
    struct io_call c;
    if (!is_file(f) || !PRE_ON())
        return NEXT(pclose)(f);
    io_fd_unknown(f->_fileno);
    io_begin(&c, "wait4");
    int status = NEXT(pclose)(f);
    io_end(&c, status < 0);
    io_done_if_waited(&c, "child", -1);
    return status;
}
