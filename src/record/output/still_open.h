/* What is still open where one file ends and the next begins: slices without an end, and the last
 * value of each counter.
 *
 *     sv_still_note() for every event that is written; then, between two files, sv_still_end() into
 *     the old one and sv_still_begin() into the new one. */
#ifndef SV_RECORD_OUTPUT_STILL_OPEN_H
#define SV_RECORD_OUTPUT_STILL_OPEN_H

#include "core/stream/stream.h"

struct sv_still_row;

struct sv_still {
    struct sv_still_row *rows; /* by track */
    size_t n, cap;
};

void sv_still_fini(struct sv_still *s);
void sv_still_note(struct sv_still *s, const struct sv_event *events, size_t n);
void sv_still_forget(struct sv_still *s, sv_track track); /* its number will be another's */
/* Ends all open slices, innermost first, not before not_before_ns. They stay open here. What is
 * written has the number of the part in which it goes on as argument (core/stream/machine.h); 0:
 * none. */
int sv_still_end(struct sv_still *s, int64_t not_before_ns, uint32_t part, struct sv_dict *dict,
                 struct sv_sink *to, struct sv_err *err);
/* Begins them again, outermost first, with `continued` as argument, and repeats the counters'
 * values. */
int sv_still_begin(struct sv_still *s, int64_t not_before_ns, uint32_t part, struct sv_dict *dict,
                   struct sv_sink *to, struct sv_err *err);

#endif
