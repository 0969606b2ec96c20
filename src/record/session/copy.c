/* --copy-output: what the command prints goes to files, too.
 *
 * Called by `stave record` around the recording. A process of its own reads the command's pipes, so
 * that neither a slow terminal stops the recorder nor the exit of the recorder the command; it ends
 * when the last writer has closed the pipes. */
#include "cli/console.h"
#include "core/files/write_all.h"
#include "files/open.h"
#include "record/session/recorder.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { CHUNK = 1 << 16, WAIT_MAX_MS = 2000, WAIT_MS = 10 };

struct stream {
    int from, through, file;
    bool has_failed; /* the file is not whole */
};

/* Once: false when nothing more comes, or the output is closed. */
static bool pass_on(struct stream *s)
{
    static char chunk[CHUNK];
    ssize_t n = read(s->from, chunk, sizeof chunk);
    if (n < 0 && errno == EINTR)
        return true;
    if (n <= 0)
        return false;
    if (!s->has_failed && !sv_write_all(s->file, chunk, (size_t)n))
        s->has_failed = true;
    /* The reader is gone: closing our end gives the command the error that it would have had
     * without us. */
    return sv_write_all(s->through, chunk, (size_t)n);
}

static _Noreturn void be_copier(struct stream *streams)
{
    static const int ignored[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1};
    struct pollfd p[2];
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++)
        signal(ignored[i], SIG_IGN);
    for (int i = 0; i < 2; i++)
        p[i] = (struct pollfd){.fd = streams[i].from, .events = POLLIN};
    while (p[0].fd >= 0 || p[1].fd >= 0) {
        if (poll(p, 2, -1) < 0 && errno != EINTR)
            break;
        for (int i = 0; i < 2; i++)
            if (p[i].fd >= 0 && p[i].revents && !pass_on(&streams[i])) {
                close(p[i].fd);
                p[i].fd = -1;
            }
    }
    bool is_whole = true;
    for (int i = 0; i < 2; i++)
        is_whole &= close(streams[i].file) == 0 && !streams[i].has_failed;
    _exit(is_whole ? 0 : 1);
}

int sv_copy_open(struct sv_recorder *r, const struct sv_record_place *place, struct sv_err *err)
{
    const char *const paths[] = {place->out_log, place->err_log};
    struct stream streams[2];
    for (int i = 0; i < 2; i++) {
        int ends[2];
        int file = sv_open_log(paths[i], err);
        if (file < 0)
            return sv_err_in_file(err, "--copy-output");
        if (pipe2(ends, O_CLOEXEC) != 0)
            return sv_err_sys(err, "--copy-output: cannot make a pipe");
        streams[i] = (struct stream){ends[0], i == 0 ? STDOUT_FILENO : STDERR_FILENO, file, false};
        r->copier.fds[i] = ends[1];
    }
    fflush(NULL);
    r->copier.pid = fork();
    if (r->copier.pid < 0)
        return sv_err_sys(err, "--copy-output: cannot start a process");
    if (r->copier.pid == 0) {
        close(r->copier.fds[0]);
        close(r->copier.fds[1]);
        be_copier(streams);
    }
    for (int i = 0; i < 2; i++) {
        close(streams[i].from);
        close(streams[i].file);
    }
    return 0;
}

void sv_copy_started(struct sv_recorder *r)
{
    for (int i = 0; i < 2; i++) {
        if (r->copier.fds[i] >= 0)
            close(r->copier.fds[i]);
        r->copier.fds[i] = -1;
    }
}

int sv_copy_close(struct sv_recorder *r, struct sv_err *err)
{
    int status = 0;
    pid_t done = 0;
    sv_copy_started(r);
    if (r->copier.pid <= 0)
        return 0;
    for (int ms = 0; ms < WAIT_MAX_MS && done == 0; ms += WAIT_MS) {
        done = waitpid(r->copier.pid, &status, WNOHANG);
        if (done == 0)
            nanosleep(&(struct timespec){.tv_nsec = WAIT_MS * 1000000L}, NULL);
    }
    r->copier.pid = 0;
    if (done == 0)
        sv_console_note(
            "child processes of the command still write; copying continues until they exit");
    if (done > 0 && status != 0)
        return sv_err_set(
            err, SV_EIO, SV_NO_POS,
            "--copy-output: the copy of the command's output is incomplete: is the disk full?");
    return 0;
}
