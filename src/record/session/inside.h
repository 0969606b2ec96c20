/* What a library in the command records of its calls (--inject io), as sums for the summary. */
#ifndef SV_RECORD_SESSION_INSIDE_H
#define SV_RECORD_SESSION_INSIDE_H

#include "record/decode/tree.h"

struct sv_inside {
    const struct sv_dict *dict;
    struct sv_tree *tree;
    sv_str cat, path, path2, bytes;
    struct sv_map calls; /* name → place in sv_calls[] + 1 */
    struct sv_gone *all; /* the processes */
    size_t n, cap;
    struct sv_map by_pid; /* pid → index + 1 */
    uint64_t n_calls;
};

void sv_inside_init(struct sv_inside *x, struct sv_dict *dict, struct sv_tree *tree);
void sv_inside_fini(struct sv_inside *x);
/* An event of libstave's; those that are no calls are left out. */
void sv_inside_count(struct sv_inside *x, const struct sv_event *e);
/* Processes that the tree does not have. */
uint64_t sv_inside_others(const struct sv_inside *x);

#endif
