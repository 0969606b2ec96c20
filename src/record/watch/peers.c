/* Who can end a wait: the child that a process waits for, the process at the other end of a pipe.
 * Only where it is one: nobody is named by a guess. */
#include "record/watch/parts.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum { PEERS_MAX = 4096, LOOKS_KEPT = 20 };

/* The only child that is watched. */
static uint32_t only_child(const struct sv_watch *w, uint32_t pid)
{
    uint32_t found = 0;
    for (size_t i = 0; i < w->n_processes; i++) {
        if (w->processes[i].parent != pid || w->processes[i].is_gone)
            continue;
        if (found)
            return 0;
        found = w->processes[i].pid;
    }
    return found;
}

uint32_t sv_watch_child(const struct sv_watch *w, uint32_t pid, uint32_t nr, const uint64_t args[6])
{
    bool is_one = nr == SYS_wait4 ? (int32_t)args[0] > 0 : args[0] == P_PID;
    uint32_t child = nr == SYS_wait4 ? (uint32_t)args[0] : (uint32_t)args[1];
    return !is_one ? only_child(w, pid) : sv_watch_process(w, child) ? child : 0;
}

/* The permissions of the link say how it is open. */
static bool has_end(const struct sv_watch *w, uint32_t pid, uint64_t inode, mode_t mode)
{
    char path[300];
    struct stat st;
    bool has = false;
    snprintf(path, sizeof path, "%s/%u/fd", w->options.root, pid);
    DIR *dir = opendir(path);
    for (struct dirent *e; dir && !has && (e = readdir(dir));) {
        if (e->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "%s/%u/fd/%.20s", w->options.root, pid, e->d_name);
        has = stat(path, &st) == 0 && S_ISFIFO(st.st_mode) && st.st_ino == inode &&
              lstat(path, &st) == 0 && st.st_mode & mode;
    }
    if (dir)
        closedir(dir);
    return has;
}

static uint32_t find_end(const struct sv_watch *w, uint32_t pid, uint64_t inode, bool is_writer)
{
    uint32_t found = 0;
    for (size_t i = 0; i < w->n_processes; i++) {
        const struct sv_watch_process *p = &w->processes[i];
        if (p->pid == pid || p->is_gone ||
            !has_end(w, p->pid, inode, is_writer ? S_IWUSR : S_IRUSR))
            continue;
        if (found)
            return 0;
        found = p->pid;
    }
    return found;
}

uint32_t sv_watch_pipe_end(struct sv_watch *w, uint32_t pid, uint64_t inode, bool is_writer)
{
    bool is_new;
    if (w->peers.n >= PEERS_MAX)
        sv_map_clear(&w->peers);
    uint64_t *at = sv_map_add(&w->peers, sv_mix64(inode * 2 + is_writer) ^ pid, &is_new);
    if (is_new || (uint32_t)w->sums.looks - (uint32_t)(*at >> 32) > LOOKS_KEPT)
        *at = w->sums.looks << 32 | find_end(w, pid, inode, is_writer);
    return (uint32_t)*at;
}
