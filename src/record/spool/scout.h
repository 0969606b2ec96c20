/* The scout: looks at each record that is to be decoded later, and looks up what its decoder will
 * ask for and what may be gone by then.
 *
 * That is: the name of a descriptor without a known file (/proc has it while it is open), a process
 * that nothing is known of, the cgroup and the rank of a new program, the files that a process
 * maps. It becomes notes, or goes to the decoder's tables where the order of records does not
 * matter. A record whose probe has no such function cannot wait. What the records change about
 * descriptors is followed here, from what the decoder knows when the scout starts: only whether a
 * file is known, not which. */
#ifndef SV_RECORD_SPOOL_SCOUT_H
#define SV_RECORD_SPOOL_SCOUT_H

#include "core/base/buf.h"
#include "core/base/map.h"
#include "record/decode/inodes.h"
#include "record/decode/tree.h"
#include "record/sample/procfs.h"

struct sv_call;
struct sv_scouted;
struct sv_symbols;

typedef bool sv_can_wait_fn(struct sv_scout *s, const struct sv_wire_head *record, uint32_t size);

struct sv_scout {
    struct sv_tree *tree;
    struct sv_inodes *inodes;
    struct sv_symbols *symbols; /* NULL: no stacks can wait */
    struct sv_buf notes;        /* on the records since it was emptied */
    struct sv_map by_pid;       /* → index + 1 */
    struct sv_scouted *all, *recent;
    size_t n, cap;
    size_t free_at;   /* index + 1 of an entry that is not used; 0: none */
    size_t n_unknown; /* processes that the tree does not have yet */
    struct sv_cgroup cgroup;
    struct sv_map mapped; /* files by sv_inodes_key() whose path the decoder will have learnt */
    const struct sv_call *calls[SV_WIRE_CALLS_MAX];
    sv_can_wait_fn *by_kind[SV_WIRE_KINDS]; /* NULL: cannot */
    uint32_t sizes[SV_WIRE_KINDS];
};

void sv_scout_init(struct sv_scout *s, struct sv_tree *tree, struct sv_inodes *inodes);
/* Starts again from what the decoder knows now: all records before this moment are decoded. */
void sv_scout_begin(struct sv_scout *s);
void sv_scout_fini(struct sv_scout *s);
/* Processes that have lived for a while get into the tree: their use of CPU and memory is sampled
 * from then on. Most of very many end before that. */
void sv_scout_round(struct sv_scout *s, int64_t now_ns);
bool sv_scout_can_wait(struct sv_scout *s, const struct sv_wire_head *record, uint32_t size);

/* For the probes. */
sv_can_wait_fn sv_scout_call, sv_scout_process, sv_scout_page;
/* With a stack: its head and a struct sv_wire_stack. The maps of the process are read now. Not
 * where it runs another program than the decoder knows. */
sv_can_wait_fn sv_scout_stack;
/* Of an address in the code of its process, as sv_scout_stack(). */
bool sv_scout_code(struct sv_scout *s, const struct sv_wire_head *record, uint64_t ip);
sv_can_wait_fn sv_scout_always; /* its decoder asks for nothing */

#endif
