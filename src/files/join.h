/* Several inputs on one time axis: what `merge` does, and `convert` with more than one input. */
#pragma once

#include "files/open.h"

#define SV_JOIN_NOTED_MAX 16 /* of more inputs only the problems are printed */

struct sv_found;
struct sv_relation;
struct sv_rotations;

struct sv_join {
    struct sv_output_choice out;
    const char *from;
    bool strict, assume, same_host;
    bool skip_bad;     /* inputs that cannot be read are named and left out */
    bool repeat_ranks; /* see clocks/merge.h */
    const struct sv_words
        *inputs; /* sv_join_run(): files, and folders of which all traces are meant */
    const struct sv_rotations *rotations; /* of the inputs; found by sv_join_run() */
    const struct sv_words *offsets;       /* FILE=±TIME; NULL: none */
    const struct sv_relation *relations;  /* of `stave sync` */
    size_t n_relations;
    bool align_collectives;
    struct sv_read_options read; /* zone and date of files that need them */
    const struct sv_found *file; /* sv_join_add(): what `path` means; NULL: a file */
};

int sv_join_run(const struct sv_join *join, struct sv_err *err);

/* Its parts: reads one input into the merge (*dict, if wanted, stays with the merge), and writes
 * the merge, which it frees. */
struct sv_merge;
int sv_join_add(const struct sv_join *join, struct sv_merge *merge, const char *path,
                const struct sv_dict **dict, struct sv_err *err);
int sv_join_write(const struct sv_join *join, struct sv_merge *merge, struct sv_err *err);
/* SV_EUSAGE when --offset names a file that is not an input. */
int sv_join_check(const struct sv_join *join, struct sv_err *err);
