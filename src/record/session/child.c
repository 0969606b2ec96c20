/* The recorded command: started, held until it is followed, watched, its exit code kept. Called by
 * the recorder only. */
#include "cli/dispositions.h"
#include "record/session/recorder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { EXIT_NOT_FOUND = 127, EXIT_NOT_RUNNABLE = 126 };

/* A signal in between is not the end of the pipe. */
static ssize_t read_pipe(int fd, void *to, size_t size)
{
    ssize_t n;
    do
        n = read(fd, to, size);
    while (n < 0 && errno == EINTR);
    return n;
}

/* In the child: waits for the word to begin (the end of the pipe), then becomes the command. The
 * error, if any, goes back by the other pipe. */
static _Noreturn void become(const struct sv_recorder *r, char *const *argv, int go, int back)
{
    char byte;
    sigprocmask(SIG_SETMASK, &r->child.mask, NULL);
    umask(r->child.umask);
    if (read_pipe(go, &byte, 1) <= 0)
        _exit(EXIT_NOT_RUNNABLE); /* the recorder gave up */
    close(go);
    for (int i = 0; i < 2; i++)
        if (r->copier.fds[i] >= 0 &&
            dup2(r->copier.fds[i], i == 0 ? STDOUT_FILENO : STDERR_FILENO) < 0)
            _exit(EXIT_NOT_RUNNABLE);
    sv_dispositions_restore();
    execvp(argv[0], argv);
    int saved = errno;
    if (write(back, &saved, sizeof saved) < 0)
        _exit(EXIT_NOT_RUNNABLE);
    _exit(saved == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_RUNNABLE);
}

int sv_child_start(struct sv_recorder *r, struct sv_err *err)
{
    int go[2], back[2];
    const char **argv = sv_alloc((r->command->n + 1) * sizeof *argv);
    memcpy(argv, r->command->items, r->command->n * sizeof *argv);
    if (pipe2(go, O_CLOEXEC) != 0 || pipe2(back, O_CLOEXEC) != 0) {
        free(argv);
        return sv_err_sys(err, "cannot make a pipe");
    }
    r->child.pid = fork();
    if (r->child.pid == 0) {
        close(go[1]);
        become(r, (char *const *)(const void *)argv, go[0], back[1]);
    }
    free(argv);
    sv_copy_started(r);
    close(go[0]);
    close(back[1]);
    r->child.begin_fd = go[1];
    r->child.error_fd = back[0];
    return r->child.pid > 0 ? 0 : sv_err_sys(err, "cannot start a process");
}

/* execvp() says EACCES, too, when a folder of PATH may not be searched and no other one has the
 * command. */
static bool is_in_path(const char *name)
{
    char path[4096];
    const char *list = getenv("PATH");
    for (const char *at = list ? list : ""; *at;) {
        size_t n = strcspn(at, ":");
        int len = snprintf(path, sizeof path, "%.*s/%s", (int)n, at, name);
        if (len < (int)sizeof path && access(path, F_OK) == 0)
            return true;
        at += n + (at[n] == ':');
    }
    return false;
}

static int cannot_run(const char *name, int error, struct sv_err *err)
{
    bool is_plain = !strchr(name, '/');
    if (is_plain && (error == ENOENT || (error == EACCES && !is_in_path(name))))
        return sv_error(err, SV_EIO,
                        "cannot run '%s': no folder of PATH that this user may search "
                        "has such a program",
                        name);
    errno = error;
    return sv_err_sys(err, "cannot run '%s'", name);
}

int sv_child_begin(struct sv_recorder *r, struct sv_err *err)
{
    int error = 0;
    ssize_t n = write(r->child.begin_fd, "g", 1);
    close(r->child.begin_fd);
    if (n == 1)
        n = read_pipe(r->child.error_fd, &error,
                      sizeof error); /* ends when the command has begun */
    close(r->child.error_fd);
    r->child.begin_fd = r->child.error_fd = -1;
    return n > 0 ? cannot_run(r->command->items[0], error, err) : 0;
}

bool sv_child_look(struct sv_recorder *r)
{
    siginfo_t info = {0};
    if (r->child.pid <= 0 || r->child.has_ended ||
        waitid(P_PID, (id_t)r->child.pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
        info.si_pid != r->child.pid)
        return r->child.has_ended;
    sv_record_ladder_last_look(
        r); /* what the kernel counted of it is there until it is waited for */
    r->child.has_ended = waitpid(r->child.pid, &r->child.status, WNOHANG) == r->child.pid;
    return r->child.has_ended;
}

int sv_child_exit_code(const struct sv_recorder *r)
{
    if (!r->child.has_ended)
        return 0;
    return WIFSIGNALED(r->child.status) ? 128 + WTERMSIG(r->child.status)
                                        : WEXITSTATUS(r->child.status);
}
