/* Kinds of files and calls by their names. Called by why/thread_states.c and
 * subjects/io/figures.c. */
#include "why/file_kinds.h"

#include "core/base/mem.h"

#include <string.h>

const char *const sv_file_kind_names[SV_N_FILE_KINDS] = {"unknown", "file",     "pipe",
                                                         "socket",  "terminal", "other"};

static bool begins(struct sv_text t, const char *word)
{
    size_t n = strlen(word);
    return t.len >= n && memcmp(t.bytes, word, n) == 0;
}

enum sv_file_kind sv_file_kind_of(struct sv_text path)
{
    static const struct {
        const char *prefix;
        enum sv_file_kind kind;
    } prefixes[] = {
        {"pipe:", SV_FILE_PIPE},
        {"socket:", SV_FILE_SOCKET},
        {"TCP:", SV_FILE_SOCKET},
        {"TCPv6:", SV_FILE_SOCKET},
        {"UDP:", SV_FILE_SOCKET},
        {"UNIX", SV_FILE_SOCKET},
        {"NETLINK", SV_FILE_SOCKET},
        {"anon_inode:", SV_FILE_OTHER},
        {"/dev/pts/", SV_FILE_TERMINAL},
        {"/dev/tty", SV_FILE_TERMINAL},
        {"/dev/console", SV_FILE_TERMINAL},
        {"/dev/shm/", SV_FILE_REGULAR},
        {"/dev/mapper/", SV_FILE_REGULAR},
        {"/dev/sd", SV_FILE_REGULAR},
        {"/dev/nvme", SV_FILE_REGULAR},
        {"/dev/vd", SV_FILE_REGULAR},
        {"/dev/", SV_FILE_OTHER},
        {"/proc/", SV_FILE_OTHER},
        {"/sys/", SV_FILE_OTHER},
    };
    if (!path.len)
        return SV_FILE_UNKNOWN;
    /* Nearly all of them: asked for each call. */
    if (path.bytes[0] == '/' && !begins(path, "/dev/") && !begins(path, "/proc/") &&
        !begins(path, "/sys/"))
        return SV_FILE_REGULAR;
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (begins(path, prefixes[i].prefix))
            return prefixes[i].kind;
    return SV_FILE_REGULAR;
}

static bool has(struct sv_text path, const char *part)
{
    return memmem(path.bytes, path.len, part, strlen(part)) != NULL;
}

static bool ends(struct sv_text path, const char *suffix)
{
    size_t n = strlen(suffix);
    return path.len >= n && memcmp(path.bytes + path.len - n, suffix, n) == 0;
}

bool sv_is_data_file(struct sv_text path)
{
    static const char *const systems[] = {"/usr/", "/lib", "/etc/", "/bin/", "/sbin/", "/run/"};
    if (sv_file_kind_of(path) != SV_FILE_REGULAR || path.bytes[0] != '/')
        return false;
    for (size_t i = 0; i < sizeof systems / sizeof *systems; i++)
        if (begins(path, systems[i]))
            return false;
    return !ends(path, ".py") && !ends(path, ".pyc") && !ends(path, ".so") && !has(path, ".so.") &&
           !has(path, "/site-packages/") && !has(path, "/lib/python") && !has(path, "/dev/shm/");
}

uint8_t *sv_call_classes(const struct sv_dict *d)
{
    static const char *const names[SV_N_CALL_CLASSES] = {
        [SV_CALL_OTHER] = "",
        [SV_CALL_TRANSFER] =
            "read pread64 readv preadv preadv2 write pwrite64 writev pwritev pwritev2 "
            "sendfile splice copy_file_range io_uring_enter",
        [SV_CALL_FILE] =
            "open openat openat2 creat close fsync fdatasync msync sync_file_range syncfs sync "
            "stat lstat fstat newfstatat statx access faccessat faccessat2 getdents64 mkdir "
            "mkdirat rmdir unlink unlinkat rename renameat renameat2 link linkat symlink "
            "symlinkat readlink readlinkat truncate ftruncate fallocate flock execve",
        [SV_CALL_SOCKET] = "recvfrom recvmsg recvmmsg sendto sendmsg sendmmsg accept accept4 "
                           "connect shutdown",
        [SV_CALL_FUTEX] = "futex futex_wait futex_waitv semop semtimedop",
        [SV_CALL_POLL] = "poll ppoll select pselect6 epoll_wait epoll_pwait epoll_pwait2",
        [SV_CALL_CHILD] = "wait4 waitid waitpid",
        [SV_CALL_SLEEP] = "nanosleep clock_nanosleep pause rt_sigtimedwait",
    };
    uint8_t *classes = sv_alloc((size_t)d->n_strings + 1);
    for (unsigned k = 1; k < SV_N_CALL_CLASSES; k++) {
        for (const char *p = names[k]; *p;) {
            size_t n = strcspn(p, " ");
            sv_str s = sv_dict_find_str(d, p, n);
            if (s)
                classes[s] = (uint8_t)k;
            p += n + (p[n] == ' ');
        }
    }
    return classes;
}
