/* Growing files: pwrite over the closing bytes. Used by the tracer's writing thread. */
#include "serving/growing_file.h"

#include "core/files/recording_mode.h"
#include "core/files/trusted.h"
#include "core/files/write_all.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

bool sv_growing_open(struct sv_growing_file *f, const char *path, const char *closing)
{
    *f = (struct sv_growing_file){.fd = -1, .closing = closing};
    int fd = sv_trusted_target(path) ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, sv_recording_mode())
                                     : -1;
    if (fd < 0)
        return false;
    if (flock(fd, LOCK_EX | LOCK_NB) != 0 || ftruncate(fd, 0) != 0) {
        int saved = errno;
        close(fd);
        errno = saved;
        return false;
    }
    f->fd = fd;
    return true;
}

static void write_all(struct sv_growing_file *f, const uint8_t *bytes, size_t n)
{
    if (!f->error && !sv_write_all_at(f->fd, bytes, n, f->end))
        f->error = errno;
}

void sv_growing_flush(struct sv_growing_file *f, struct sv_buf *b)
{
    size_t len = b->len;
    if (f->fd < 0 || f->error || (len == 0 && f->end > 0)) {
        sv_buf_clear(b);
        return;
    }
    sv_buf_str(b, f->closing);
    if (b->failed)
        f->error = ENOMEM;
    else
        write_all(f, b->data, b->len);
    f->end += f->error ? 0 : len;
    sv_buf_clear(b);
}

int sv_growing_close(struct sv_growing_file *f)
{
    if (f->fd < 0)
        return 0;
    if (close(f->fd) != 0 && !f->error)
        f->error = errno;
    f->fd = -1;
    return f->error;
}

bool sv_growing_is_busy(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    bool is_busy = flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    close(fd);
    return is_busy;
}
