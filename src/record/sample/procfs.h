/* What /proc says about processes that already run: names, command lines, open files, children.
 *
 * Numbers of processes are those of our own pid namespace. /proc may be another's (after unshare
 * --pid without --mount-proc): sv_procfs_open() finds that out, before anything else is asked. */
#ifndef SV_RECORD_SAMPLE_PROCFS_H
#define SV_RECORD_SAMPLE_PROCFS_H

#include "core/base/err.h"
#include "record/decode/tree.h"

/* Looks whether /proc is ours, or mounts one for this process only. It fails where neither is
 * possible. */
int sv_procfs_open(struct sv_err *err);
/* Where it is: "/proc" unless sv_procfs_open() had to mount one. */
const char *sv_procfs_root(void);

/* Reads /proc/PID/… into the table of processes: name, command line, working directory, open files;
 * its threads' names. False when the process is gone. */
bool sv_procfs_complete(struct sv_tree *t, uint32_t pid);
/* Its number in its own pid namespace, when that is not ours. */
void sv_procfs_inner(struct sv_tree *t, struct sv_proc *p);
/* Its command line, the words separated by NULs; the length. */
size_t sv_procfs_command(uint32_t pid, char *text, size_t size);
/* What a descriptor is now: a path, or the name of what has none ("pipe:[123]", "socket:[45]"). It
 * may have been another file when a call began: NULL unless it is the inode of that call. Without
 * an inode (0) only names are given, no paths. */
struct sv_file *sv_procfs_descriptor(struct sv_tree *t, uint32_t pid, int64_t fd, uint64_t inode);

/* `pid` and all that descends from it, by asking for the children of each thread. Returns how many;
 * 0: no such process. */
size_t sv_procfs_family(uint32_t pid, uint32_t **pids);

/* The threads of a process. Returns how many; 0: no such process. */
size_t sv_procfs_threads(uint32_t pid, uint32_t **tids);

/* Processes whose name (the first 15 bytes of it) is `comm`, and those that a cgroup's cgroup.procs
 * lists. Returns how many. */
size_t sv_procfs_named(const char *comm, uint32_t **pids);
size_t sv_procfs_in_cgroup(const char *folder, uint32_t **pids);
/* Is it a folder of a cgroup file system, whole or below /sys/fs/cgroup? */
bool sv_procfs_is_cgroup(const char *folder);
/* The number of a cgroup's folder (by which the kernel knows it), 0 when there is no such
 * folder. */
uint64_t sv_procfs_cgroup_number(const char *folder);
/* The cgroup of a process, "" for the root of them all or when it is gone. */
enum { SV_PROCFS_CGROUP_MAX = 1024 };
size_t sv_procfs_cgroup(uint32_t pid, char *text, size_t size);
/* The same, where `groups` says which processes are in the same ones (0: not known): read at most
 * once a second of the records for one after the other of them. Their address may be used again. */
struct sv_cgroup {
    uint64_t groups;
    int64_t ts_ns;
    size_t n;
    char text[SV_PROCFS_CGROUP_MAX];
};
size_t sv_procfs_cgroup_of(struct sv_cgroup *last, uint32_t pid, uint64_t groups, int64_t ts_ns,
                           char text[SV_PROCFS_CGROUP_MAX]);
/* The cgroup whose folder has this number, where the controller of CPUs is. "": it is not shown
 * here, or gone. */
size_t sv_procfs_cgroup_called(uint64_t number, char text[SV_PROCFS_CGROUP_MAX]);

/* A small file of /proc as text; the length, 0 when it cannot be read. Always terminated. */
size_t sv_procfs_text(const char *path, char *text, size_t size);

#endif
