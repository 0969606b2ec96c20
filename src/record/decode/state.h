/* The decoder from inside: what it shares with the probes, which turn its records into events. Not
 * for others: they have decode.h. */
#ifndef SV_RECORD_DECODE_STATE_H
#define SV_RECORD_DECODE_STATE_H

#include "record/decode/decode.h"
#include "record/decode/inodes.h"
#include "record/probes/probe.h"
#include "record/sample/procfs.h"
#include "record/spool/notes.h"
#include "record/stacks/stacks.h"
#include "subjects/io/words.h"

enum { SV_DECODE_LOSSES = 256 };

struct sv_decode_loss {
    sv_track track;
    sv_str name;
    uint64_t n;
    int64_t from_ns, to_ns;
};

/* The record to decode, by its kind. */
struct sv_decode_kind {
    bool (*decode)(struct sv_decode *d, void *state, struct sv_batch *b,
                   const struct sv_wire_head *record, uint32_t size);
    void *state;
    uint32_t size; /* at least; UINT32_MAX: there is no such kind */
    bool ends_gathering;
};

/* The thread of the last system call: mostly that of the next one, too. Valid until a record of
 * another kind, or the next batch. */
struct sv_decode_recent {
    uint64_t who;                    /* process << 32 | thread */
    struct sv_proc *process;         /* NULL: none */
    struct sv_traced_thread *thread; /* NULL: not looked up yet */
};

struct sv_decode {
    struct sv_source source;
    struct sv_decode_options options;
    struct sv_krings rings, *from; /* from: those that are read; see sv_decode_read_from() */
    bool can_ask_procfs;           /* as the options had it: this is where it was recorded */
    const struct sv_notes *notes;  /* what was looked up for older records; NULL: nothing */
    struct sv_tree tree;
    struct sv_inodes inodes;
    struct sv_short_calls *short_calls; /* NULL: none are summed */
    struct sv_symbols *symbols;
    struct sv_stacks *stacks;
    struct sv_kernel_words words;
    struct sv_map groups; /* cgroups by the number of their folder → string, 0: not known */
    sv_str cgroup;
    struct sv_cgroup in_cgroup; /* of the last exec */
    struct sv_decode_recent recent;
    size_t prefix_len;
    uint32_t hidden;  /* process that has not executed the command yet; 0: none */
    bool has_waiting; /* a probe has gathered events, see sv_decode_waits() */
    void *states[SV_N_PROBES];
    struct sv_decode_kind kinds[SV_WIRE_KINDS];
    struct sv_decode_loss losses[SV_DECODE_LOSSES];
    size_t n_losses;
    uint64_t malformed;
};

/* For probes that gather: flush() has something to give. */
static inline void sv_decode_waits(struct sv_decode *d)
{
    d->has_waiting = true;
}

/* ---- arguments and events ---- */

/* A text that is not kept elsewhere: it is copied into the batch. */
static inline void sv_decode_text(struct sv_batch *b, sv_str key, const char *text, size_t len)
{
    sv_batch_str(b, key, sv_batch_text(b, text, len), len);
}

/* A path. It must stay where it is until the batch is done. */
static inline void sv_decode_path(struct sv_batch *b, sv_str key, const char *text, size_t len)
{
    sv_batch_str(b, key, text, len);
}

/* ---- processes, threads and files ---- */

/* The process, completed from /proc when it is met for the first time. */
struct sv_proc *sv_decode_process(struct sv_decode *d, uint32_t pid);

/* The row of a probe below the thread of a record. */
sv_track sv_decode_row(struct sv_decode *d, const struct sv_wire_head *h,
                       enum sv_probe_number probe, const char *name);

/* A cgroup by the number of its folder, looked for once, while it is there; 0: not found. It is
 * added to the event that is being made, if it is known. */
sv_str sv_decode_cgroup(struct sv_decode *d, uint64_t number);
void sv_decode_put_cgroup(const struct sv_decode *d, struct sv_batch *b, sv_str cgroup);

/* The file of a descriptor, with a reference that the caller gives back (sv_file_put()). *now is
 * the descriptor when it still is that file. What the process's table does not have /proc may:
 * descriptors also come by messages and by io_uring. */
struct sv_file *sv_decode_descriptor(struct sv_decode *d, struct sv_proc *p, int64_t fd,
                                     struct sv_fd_when when, struct sv_fd **now);

/* A file of libstave's, which is not shown. */
static inline bool sv_decode_hides(const struct sv_decode *d, const struct sv_file *f)
{
    return f && f->is_own && !d->options.shows_own;
}

/* --path: is it recorded? */
static inline bool sv_decode_is_below(const struct sv_decode *d, const struct sv_file *f)
{
    return f && f->len >= d->prefix_len && memcmp(f->path, d->options.prefix, d->prefix_len) == 0;
}

#endif
