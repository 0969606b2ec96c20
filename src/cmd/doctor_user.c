/* What a user without root can record here: tried with a child of this process. Part of `stave
 * doctor`. */
#include "cmd/doctor.h"

#include "record/sample/procfs.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static bool reads_file(pid_t pid, const char *name)
{
    char path[96], text[512];
    snprintf(path, sizeof path, "%s/%d/task/%d/%s", sv_procfs_root(), (int)pid, (int)pid, name);
    return sv_procfs_text(path, text, sizeof text) > 0;
}

static bool reads_memory(pid_t pid)
{
    static int word = 4711;
    int copy = 0;
    struct iovec local = {&copy, sizeof copy}, remote = {&word, sizeof word};
    return process_vm_readv(pid, &local, 1, &remote, 1, 0) == (ssize_t)sizeof copy && copy == word;
}

bool sv_doctor_looks(char *text, size_t size)
{
    char scope[16] = "";
    pid_t pid = fork();
    if (pid == 0) {
        for (;;)
            pause();
    }
    if (pid < 0) {
        snprintf(text, size, "cannot start a process: %s", strerror(errno));
        return false;
    }
    bool has_sums = reads_file(pid, "schedstat"), has_call = reads_file(pid, "syscall");
    bool has_memory = reads_memory(pid);
    int why = errno;
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    sv_procfs_text("/proc/sys/kernel/yama/ptrace_scope", scope, sizeof scope);
    if (!has_sums)
        snprintf(text, size, "cannot read /proc/PID/task/TID/schedstat of own processes");
    else if (!has_call || !has_memory)
        snprintf(text, size,
                 "states of own threads from /proc; no %s: %s (ptrace_scope %.1s, seccomp or a "
                 "security module)",
                 has_memory ? "reasons of waits" : "Python stacks",
                 has_memory ? "/proc/PID/task/TID/syscall is refused" : strerror(why),
                 scope[0] ? scope : "-");
    else
        snprintf(text, size, "states, waits and Python stacks of own processes, without root%s",
                 scope[0] >= '1' && scope[0] <= '9'
                     ? "; of commands that stave starts (ptrace_scope)"
                     : "");
    return has_sums && has_call && has_memory;
}

/* Its exit code. Python may write where it wants to: nowhere. */
static int try_python(const char *code, const char *folder)
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) {
        int null = open("/dev/null", O_RDWR | O_CLOEXEC);
        if (null >= 0 && dup2(null, 0) == 0 && dup2(null, 1) == 1 && dup2(null, 2) == 2) {
            if (folder)
                setenv("PYTHONPATH", folder, 1);
            setenv("PYTHONDONTWRITEBYTECODE", "1", 1);
            alarm(20);
            execlp("python3", "python3", "-c", code, (char *)NULL);
        }
        _exit(127);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
        return -1;
    return WEXITSTATUS(status);
}

enum sv_doctor_python sv_doctor_python(const char *hooks, char *text, size_t size)
{
    char beside[1200] = "";
    int code = try_python("pass", NULL);
    const char *slash = hooks ? strrchr(hooks, '/') : NULL;
    if (slash)
        snprintf(beside, sizeof beside, "%.*s/python", (int)(slash - hooks), hooks);
    if (code == 127) {
        snprintf(text, size, "no python3 in PATH");
        return SV_DOCTOR_NO_PYTHON;
    }
    bool has = try_python("import stave._torch_auto", NULL) == 0 ||
               (beside[0] && try_python("import stave._torch_auto", beside) == 0);
    snprintf(text, size, "%s",
             !has    ? "python3 has no usable package stave: pip install stave, or apt install "
                       "python3-stave"
             : hooks ? "steps, data loaders and checkpoints of PyTorch by default, where the "
                       "command is Python"
                     : "the package stave is here, the folder stave-torch is not: --torch of "
                       "'python3 -m stave record' works");
    return has && hooks ? SV_DOCTOR_HAS_HOOKS : SV_DOCTOR_NO_HOOKS;
}
