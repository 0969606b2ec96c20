/* What is still open where one file ends and the next begins: slices without an end, and the last
 * value of each counter.
 *
 *     sv_still_note() for every event that is written; then, between two files, sv_still_end() into
 *     the old one and sv_still_begin() into the new one. */
#ifndef SV_CORE_STREAM_STILL_OPEN_H
#define SV_CORE_STREAM_STILL_OPEN_H

#include "core/stream/stream.h"

struct sv_still_row;
struct sv_still_lasting;

enum { SV_STILL_NAMES = 2, SV_STILL_LASTING_MAX = 4096 };

struct sv_still {
    struct sv_still_row *rows; /* by track */
    size_t n, cap;
    sv_str cat, names[SV_STILL_NAMES]; /* of instants that each file repeats */
    struct sv_still_lasting *lasting;
    size_t n_lasting, cap_lasting;
};

/* The metadata of a part (core/stream/machine.h). */
void sv_still_label(struct sv_dict *dict, const char *id, uint32_t part, int64_t start_ns);
/* Instants of this category with one of these names hold for all that follows, such as what a
 * number stands for: each file has them at its beginning. */
void sv_still_repeat(struct sv_still *s, struct sv_dict *dict, const char *cat,
                     const char *const names[static SV_STILL_NAMES]);

void sv_still_fini(struct sv_still *s);
void sv_still_note(struct sv_still *s, const struct sv_event *events, size_t n);
void sv_still_forget(struct sv_still *s, sv_track track); /* its number will be another's */
/* Ends all open slices, innermost first, not before not_before_ns. They stay open here. What is
 * written has the number of the part in which it goes on as argument (core/stream/machine.h); 0:
 * none. */
int sv_still_end(struct sv_still *s, int64_t not_before_ns, uint32_t part, struct sv_dict *dict,
                 struct sv_sink *to, struct sv_err *err);
/* Begins them again, outermost first, with `continued` as argument, and repeats the counters'
 * values and the instants that hold. */
int sv_still_begin(struct sv_still *s, int64_t not_before_ns, uint32_t part, struct sv_dict *dict,
                   struct sv_sink *to, struct sv_err *err);

#endif
