/* --detach: the recording goes on without the terminal. The caller waits only until it has begun, or failed to. Called by `stave record` before anything is opened. */
#include "cmd/console.h"
#include "cmd/recorder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* In the one that goes on: its talk goes to OUT.log. */
static int leave_terminal(const char *log, struct sv_err *err)
{
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    int to = open(log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (null < 0 || to < 0 || setsid() < 0)
        return sv_err_sys(err, "--detach: cannot write %s", log);
    dup2(null, STDIN_FILENO);
    dup2(to, STDOUT_FILENO);
    dup2(to, STDERR_FILENO);
    close(null);
    close(to);
    return 0;
}

static int wait_for_word(pid_t pid, int fd, const char *out, const char *log, struct sv_err *err)
{
    char byte;
    ssize_t n;
    do
        n = read(fd, &byte, 1);
    while (n < 0 && errno == EINTR);
    close(fd);
    if (n == 1) {
        sv_console_note("recording in the background as %d, to %s; 'stave stop %d' ends it, its "
                        "words are in %s",
                        (int)pid, out, (int)pid, log);
        return 0;
    }
    waitpid(pid, NULL, 0);
    return sv_err_set(err, SV_EIO, SV_NO_POS, "the recording did not begin; see %s", log);
}

int sv_record_detach(const char *out, int *word, bool *is_parent, struct sv_err *err)
{
    int pipes[2];
    char log[1100];
    snprintf(log, sizeof log, "%.1024s.log", out);
    *is_parent = true;
    if (pipe2(pipes, O_CLOEXEC) != 0)
        return sv_err_sys(err, "--detach: cannot make a pipe");
    fflush(NULL);
    pid_t pid = fork();
    if (pid < 0)
        return sv_err_sys(err, "--detach: cannot start a process");
    if (pid > 0) {
        close(pipes[1]);
        return wait_for_word(pid, pipes[0], out, log, err);
    }
    *is_parent = false;
    close(pipes[0]);
    *word = pipes[1];
    return leave_terminal(log, err);
}
