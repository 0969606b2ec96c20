/* Which files a command means that was given folders, or a range of time: the parts of one
 * recording that the range touches. Called by sv_load() and by who streams a trace (`stave info`).
 *
 *     sv_choose_parts → sv_load() or sv_chosen_open() → sv_chosen_fini
 *
 * Of each file only the beginning is read to know what it is. */
#pragma once

#include "files/open.h"
#include "files/range.h"
#include "files/rotation.h"

struct sv_chosen {
    const char **paths; /* in the order of the parts; owned */
    uint32_t *numbers;
    size_t n;
    bool is_one;            /* all of one recording: `rotation` has them */
    bool is_growing;        /* the last of them is being written */
    bool has_window;        /* only what touches [from_ns, to_ns) on the trace's clock */
    uint64_t bytes;         /* of all their files */
    int64_t from_ns, to_ns; /* INT64_MIN, INT64_MAX: no such side */
    struct sv_rotation rotation;
};

/* Is there anything to choose? */
bool sv_needs_choice(const char *const *paths, size_t n, const struct sv_range *range);
/* What was chosen of how many is said in a line. SV_EUSAGE: several recordings, which were listed;
 * SV_EINPUT: none. */
int sv_choose_parts(const char *const *paths, size_t n, const struct sv_range *range,
                    const char *from, struct sv_chosen *c, struct sv_err *err);
/* Opens what was chosen as one source. */
int sv_chosen_open(const struct sv_chosen *c, const char *from, struct sv_read_options options,
                   struct sv_dict *dict, struct sv_opened *o, struct sv_err *err);
/* Puts the window before `next`, if there is one. */
struct sv_sink *sv_chosen_window(const struct sv_chosen *c, struct sv_dict *dict,
                                 struct sv_sink *next);
void sv_chosen_fini(struct sv_chosen *c);
