/* The decoder: records of the kernel programs to events. A source like any other, live: next()
 * gives 0 at the end of each round.
 *
 *     sv_decode_new → sv_krings_add(sv_decode_rings()) → per round: sv_decode_round(),
 *     sv_pump_round(), sv_decode_release()
 *
 * Gives slices and edges in the form of docs/io.md; the slices of a thread's calls follow one
 * another. Knows nothing of how the records came: tests feed it bytes. */
#ifndef SV_RECORD_DECODE_DECODE_H
#define SV_RECORD_DECODE_DECODE_H

#include "core/stream/stream.h"
#include "record/decode/calls.h"
#include "record/decode/tree.h"
#include "record/kernel/krings.h"
#include "record/stacks/stacks.h"

struct sv_decode;
struct sv_inodes;
struct sv_short_calls;
struct sv_notes;

struct sv_decode_options {
    const char *prefix;    /* only files below it; NULL: all */
    bool shows_own;        /* what threads and files of libstave's do, too */
    bool asks_procfs;      /* complete processes from /proc; off for recorded bytes */
    bool follows_maps;     /* every file that is mapped comes as a call */
    bool has_kernel;       /* stacks have frames of the kernel */
    uint64_t sum_below_ns; /* calls that are shorter are summed; 0: none */
    bool hides_files;      /* of functions in stacks */
    /* A process runs Python: sv_stacks_options has it. */
    void (*found_python)(void *ctx, uint32_t pid, const struct sv_wire_python *offsets);
    void (*knows_program)(void *ctx, uint64_t inode);
    void *python_ctx;
    /* Given every record as it came, for tests that play it back; NULL: not wanted. */
    void (*keep)(void *ctx, const struct sv_wire_head *record, uint32_t size);
    void *keep_ctx;
};

struct sv_decode *sv_decode_new(struct sv_dict *dict, struct sv_report *report,
                                const struct sv_decode_options *options);
void sv_decode_free(struct sv_decode *d);
struct sv_source *sv_decode_source(struct sv_decode *d);
struct sv_krings *sv_decode_rings(struct sv_decode *d);
struct sv_tree *sv_decode_tree(struct sv_decode *d);
struct sv_short_calls *sv_decode_short_calls(struct sv_decode *d); /* NULL: none are summed */
struct sv_inodes *sv_decode_inodes(struct sv_decode *d);

/* Until it is called again with NULL: the records come from these rings, and are older than what
 * /proc says, so notes are asked instead of it. Where nothing was noted, `asks_procfs`, what is
 * there now must do. */
void sv_decode_read_from(struct sv_decode *d, struct sv_krings *older, const struct sv_notes *notes,
                         bool asks_procfs);

uint64_t sv_decode_round(struct sv_decode *d, uint64_t cutoff_ns); /* bytes that wait */
void sv_decode_release(struct sv_decode *d);

/* Something was lost on this CPU up to now: an event reports it, and what /proc knows is read
 * again. */
void sv_decode_lost(struct sv_decode *d, unsigned cpu, const char *what, uint64_t n,
                    uint64_t since_ns, uint64_t now_ns);

/* Calls were made that no record says: what /proc knows is read again. */
void sv_decode_missed(struct sv_decode *d);

/* What this process does before its next exec is not shown: it is not yet the command that was
 * asked for. */
void sv_decode_hide_until_exec(struct sv_decode *d, uint32_t pid);

struct sv_stacks *sv_decode_stacks(struct sv_decode *d);
struct sv_symbols *sv_decode_symbols(struct sv_decode *d);

/* Records that made no sense, and were left out. */
uint64_t sv_decode_malformed(const struct sv_decode *d);

#endif
