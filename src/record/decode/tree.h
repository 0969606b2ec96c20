/* The followed processes: names, threads, open files, working directories. Turns descriptors into
 * paths.
 *
 * Kept from the records of the kernel programs; a process whose start was not recorded (attach,
 * loss) is completed from /proc by procfs.h. */
#ifndef SV_RECORD_DECODE_TREE_H
#define SV_RECORD_DECODE_TREE_H

#include "core/base/map.h"
#include "core/stream/dict.h"
#include "core/stream/lanes.h"
#include "record/decode/descriptors.h"
#include "record/probes/probe.h"

/* A path, once however many descriptors refer to it. Its counts are what the summary shows. */
struct sv_file {
    uint64_t opens, reads, writes, read_bytes, written_bytes, errors;
    int64_t time_ns, longest_ns;
    /* The members that a search reads are next to each other, before the text. */
    struct sv_file *next; /* in its bucket; in the list of those to be freed */
    uint64_t hash;
    uint32_t refs;
    uint32_t len : 30;
    uint32_t is_own : 1;        /* of a session of Stave's: rings, names */
    uint32_t is_identified : 1; /* inodes.h has asked for its number */
    char path[];
};

enum { SV_TREE_PATH_MAX = 4096 };
enum { SV_MEMORY_PARTS = 3 }; /* anonymous, of files, shared */

struct sv_proc {
    uint32_t pid, parent;
    /* What it calls itself, when it is in a pid namespace of its own (a container); 0: `pid`. */
    uint32_t inner_pid, inner_namespace;
    uint64_t image;       /* its program since the last exec, see sv_tree_image(); 0: since ever */
    uint16_t command_len; /* of its description, which begins with its command */
    sv_track track;
    struct sv_descriptors open;
    struct sv_file *cwd;
    struct sv_file *root; /* after chroot(); NULL: the recorder's own */
    bool is_ended, has_snapshot;
    bool is_threaded; /* has, or had, more than one thread */
    int64_t ended_ns;
    uint64_t calls, bytes_read, bytes_written;
    int64_t time_ns; /* in calls */
    char name[16];
    struct { /* record/sample/usage.c's */
        sv_track cpu, memory;
        sv_track parts[SV_MEMORY_PARTS]; /* of the memory; 0: the kernel does not say it */
        uint64_t ticks, turn;
        int64_t gone_ns; /* /proc has not had it since; 0: it has */
    } usage;
};

/* What is left of a process that was forgotten. */
struct sv_gone {
    uint32_t pid;
    char name[16];
    uint64_t calls, bytes_read, bytes_written;
    int64_t time_ns;
};

struct sv_traced_thread {
    uint32_t pid, tid;
    bool is_own;                /* a thread of libstave's */
    int64_t ended_ns;           /* 0: it runs */
    sv_track track, calls;      /* the thread, and its row of system calls */
    sv_track rows[SV_N_PROBES]; /* rows of its probes, 0: none yet */
    int64_t end_ns;             /* of its last call */
    sv_track uring;             /* its row of io_uring's requests, 0: none yet */
    uint8_t state;              /* enum sv_wire_state, 0: not known */
    int64_t state_ns;           /* since when */
};

enum {
    SV_FILES_KEPT_MAX = 1 << 16, /* paths remembered for the summary after they were closed */
    SV_GONE_MAX = 16             /* of the processes that were forgotten, the busiest */
};

struct sv_tree {
    struct sv_dict *dict;
    struct sv_proc **processes;
    size_t n, cap;
    struct sv_map by_pid; /* pid → index + 1 */
    struct sv_traced_thread *threads;
    size_t n_threads, cap_threads;
    struct sv_map by_tid; /* tgid << 32 | tid → index + 1 */
    bool has_own_threads; /* or had */
    struct sv_file **buckets;
    size_t n_buckets, n_files;
    /* freed by sv_tree_sweep(): events in flight may still point to their paths */
    struct sv_file *unused;
    uint64_t n_forgotten_files;
    size_t n_ended;       /* processes and threads that could be forgotten, about */
    uint64_t n_forgotten; /* processes; those of them that made calls */
    uint64_t n_forgotten_active;
    struct sv_gone gone[SV_GONE_MAX];
    size_t n_gone;
    struct sv_lanes lanes; /* of rows whose slices overlap */
    sv_str calls_name;
    bool hides_commands; /* no command lines */
    /* The folder that a name leads to, where that is a symbolic link; false: it is none, or nobody
     * knows. NULL: nobody can be asked. */
    bool (*link_of)(void *ctx, const char *path, char to[SV_TREE_PATH_MAX]);
    void *link_ctx;
    /* Names that are no links, since the last sweep: a `..` asks for the one before it. */
    uint64_t no_links[64];
};

void sv_tree_init(struct sv_tree *t, struct sv_dict *dict);
void sv_tree_fini(struct sv_tree *t);
void sv_tree_sweep(struct sv_tree *t);

struct sv_proc *sv_tree_process(struct sv_tree *t, uint32_t pid, bool *is_new);
struct sv_proc *sv_tree_find(const struct sv_tree *t, uint32_t pid);
struct sv_traced_thread *sv_tree_thread(struct sv_tree *t, uint32_t pid, uint32_t tid);
bool sv_tree_is_own_thread(const struct sv_tree *t, uint32_t pid, uint32_t tid);
void sv_tree_name_thread(struct sv_tree *t, uint32_t pid, uint32_t tid, const char *name);
void sv_tree_name_process(struct sv_tree *t, struct sv_proc *p, const char *name,
                          const char *command, size_t command_len);

/* Its number in its own pid namespace: part of its description from now on. */
void sv_tree_set_inner(struct sv_tree *t, struct sv_proc *p, uint32_t pid, uint32_t pid_namespace);

/* What a process has in its memory, from an exec on. Forks share it: they map the same files. */
struct sv_proc_image {
    uint32_t pid; /* one of its processes */
    uint64_t number;
};
struct sv_proc_image sv_tree_image(const struct sv_tree *t, uint32_t pid);
static inline uint64_t sv_image_number(uint32_t pid, uint64_t exec_ns)
{
    return sv_mix64(exec_ns * 31 + pid);
}

/* The child starts with its parent's files and directory. */
void sv_tree_fork(struct sv_tree *t, uint32_t parent, uint32_t child);
/* Its files are released, its sums stay until it is forgotten. */
void sv_tree_end(struct sv_tree *t, struct sv_proc *p, int64_t now_ns);
void sv_tree_end_thread(struct sv_tree *t, uint32_t pid, uint32_t tid, int64_t now_ns);

struct sv_tree_forgetting {
    bool (*keeps)(void *ctx, uint32_t pid); /* true: the tracks of this process are still in use */
    void (*forgets)(void *ctx, sv_track root); /* a process's or a thread's row */
    void *ctx;
};
/* Forgets processes and threads that ended before this time: late records need them for a while.
 * Costs as much as there are of all. */
void sv_tree_forget(struct sv_tree *t, int64_t before_ns, const struct sv_tree_forgetting *how);

/* The path as the file's object: joined to the directory `dir` (may be NULL) when it is
 * relative. */
struct sv_file *sv_tree_file(struct sv_tree *t, const struct sv_file *dir, const char *path,
                             size_t len);
/* The same of a path that a process uses: it begins below its root, where that is another. */
struct sv_file *sv_tree_file_of(struct sv_tree *t, const struct sv_proc *p,
                                const struct sv_file *dir, const char *path, size_t len);
void sv_file_put(struct sv_tree *t, struct sv_file *f);

static inline struct sv_fd *sv_fd_at(const struct sv_proc *p, int64_t fd)
{
    uint64_t page = (uint64_t)fd / SV_FDS_PAGE; /* of a negative one: past the end */
    struct sv_fd *fds = page < p->open.n_pages ? p->open.pages[page] : NULL;
    return fds ? &fds[fd % SV_FDS_PAGE] : NULL;
}

#endif
