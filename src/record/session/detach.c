/* --detach: the recording continues without the terminal. The caller waits only until it has begun,
 * or failed to. Called by `stave record`: the fork before anything is made, since a claim belongs
 * to the process that records; the terminal is left, and OUT.log made, when the output is
 * claimed. */
#include "cli/console.h"
#include "files/open.h"
#include "record/session/recorder.h"
#include "record/session/running.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int sv_record_leave_terminal(const char *out, int fd, struct sv_err *err)
{
    char log[1100], line[1100];
    snprintf(log, sizeof log, "%.1024s.log", out);
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    int to = sv_open_log(log, err);
    if (to < 0)
        return sv_err_in_file(err, "--detach");
    if (null < 0 || setsid() < 0)
        return sv_err_sys(err, "--detach: cannot write %s", log);
    int n = snprintf(line, sizeof line, "%.1024s\n", out);
    if (write(fd, line, (size_t)n) != n)
        return sv_err_sys(err, "--detach: the starting process is gone");
    dup2(null, STDIN_FILENO);
    dup2(to, STDOUT_FILENO);
    dup2(to, STDERR_FILENO);
    close(null);
    close(to);
    return 0;
}

/* The output's name and a line end when it leaves the terminal, one more byte when it records. */
static void read_words(int fd, char *to, size_t size)
{
    size_t at = 0;
    for (ssize_t n = 1; n > 0 && at < size - 1;) {
        n = read(fd, to + at, size - 1 - at);
        if (n < 0 && errno == EINTR)
            n = 1;
        else if (n > 0)
            at += (size_t)n;
        const char *end = memchr(to, '\n', at);
        if (end && end + 1 < to + at)
            break;
    }
    to[at] = '\0';
}

static int wait_for_word(pid_t pid, int fd, struct sv_err *err)
{
    char out[1100];
    int status = 0;
    read_words(fd, out, sizeof out);
    close(fd);
    char *end = strchr(out, '\n');
    if (end && end[1]) {
        *end = '\0';
        sv_console_note("recording in the background as %d, to %s; 'stave stop %d' ends it, its "
                        "messages are in %s.log",
                        (int)pid, out, (int)pid, out);
        return 0;
    }
    waitpid(pid, &status, 0);
    if (!end && WIFEXITED(status) && WEXITSTATUS(status) != 0)
        return WEXITSTATUS(status); /* it has said why */
    if (end)
        *end = '\0';
    return sv_err_set(err, SV_EIO, SV_NO_POS, "the recording did not begin; see %s.log", out);
}

int sv_record_detach(int *fd, bool *is_parent, struct sv_err *err)
{
    sv_running_remember_terminal();
    int pipes[2];
    *is_parent = true;
    if (pipe2(pipes, O_CLOEXEC) != 0)
        return sv_err_sys(err, "--detach: cannot make a pipe");
    fflush(NULL);
    pid_t pid = fork();
    if (pid < 0)
        return sv_err_sys(err, "--detach: cannot start a process");
    if (pid > 0) {
        close(pipes[1]);
        return wait_for_word(pid, pipes[0], err);
    }
    *is_parent = false;
    close(pipes[0]);
    *fd = pipes[1];
    return 0;
}
