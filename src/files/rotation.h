/* The parts of one recording ('stave record --rotate') as one trace.
 *
 * Each part is a trace of its own: what is open where it ends is ended there and begun again in the
 * next part. Such events, and counters that are repeated, carry the number of the part in which
 * they go on as argument SV_ARG_PART, and the metadata SV_META_ROTATION of a part say of which
 * recording it is, its number, and when it began. Parts that follow each other are read one after
 * the other with one dictionary, and what was put in between is left out: the events are those of a
 * recording that was not rotated. */
#pragma once

#include "cli/command.h"
#include "core/base/err.h"
#include "core/stream/dict.h"

struct sv_opened;
struct sv_read_options;

/* Parts of one recording, in their order; at least two. */
struct sv_rotation {
    const char **paths; /* borrowed */
    uint32_t *numbers;
    size_t n;
};

/* What the first events of a file say of it. */
struct sv_part_label {
    char recording[64];
    uint32_t number;  /* from 1 on; 0: no part */
    int64_t start_ns; /* on the trace's clock; of what is no part, the first event */
    int64_t utc_ns;   /* the same by the wall clock */
    bool has_utc, is_trace;
};
struct sv_part_label sv_part_label_of(const char *path, const char *from);

/* Opens a part. Of one that is being written (OUT.part) only what its writer says is whole. */
struct sv_input;
int sv_part_input(const char *path, struct sv_input **in, struct sv_err *err);

/* Inputs of a command, with the parts of each recording put together. */
struct sv_rotations {
    const char **inputs; /* the first part stands for all; borrowed */
    size_t n;
    struct sv_rotation *items; /* by input; n is 0: a file alone */
};

/* Looks into each file. What cannot be read stays as it is: who opens it says why. */
void sv_rotations_find(const char *const *paths, size_t n, const char *from,
                       struct sv_rotations *r);
void sv_rotations_fini(struct sv_rotations *r);
/* NULL: a file alone. */
const struct sv_rotation *sv_rotation_of(const struct sv_rotations *r, const char *path);

/* Called when `o` has its bytes and no source yet: is it a part? */
bool sv_is_part(struct sv_opened *o);
/* Puts itself before o->source, which is that of a part or of the first of `parts` (NULL: it is
 * alone). */
void sv_rotation_wrap(struct sv_opened *o, const struct sv_rotation *parts,
                      const struct sv_read_options *options, struct sv_dict *dict);
