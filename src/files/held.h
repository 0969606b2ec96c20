/* What a trace holds, by numbers: to show that a result has at least what its inputs have. A slice
 * counts once, as its begin; losses count with their numbers; ends and flows do not count. */
#pragma once

#include "core/stream/stages.h"

void sv_tally_add(struct sv_tally *t, const struct sv_tally *more);
/* What came since `before`. */
struct sv_tally sv_tally_since(const struct sv_tally *t, const struct sv_tally *before);
uint64_t sv_tally_held(const struct sv_tally *t); /* of all kinds */
/* False: `whole` has less of some kind; `what` says so ("10 of 20,000 slices"). */
bool sv_tally_holds(const struct sv_tally *whole, const struct sv_tally *part, char *what,
                    size_t size);
/* "20,000 slices, 3 instants"; "no events". Returns `text`. */
char *sv_tally_text(const struct sv_tally *t, char *text, size_t size);
/* Counts a file as any command reads it. */
int sv_tally_file(const char *path, struct sv_tally *t, struct sv_err *err);
