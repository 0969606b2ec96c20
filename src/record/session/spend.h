/* --budget: measures what the recording costs, and gives up detail by what budget.h decides.
 *
 *     sv_spending_check → sv_spending_open → sv_spending_round … → sv_spending_finish →
 *     sv_spending_close */
#ifndef SV_RECORD_SESSION_SPEND_H
#define SV_RECORD_SESSION_SPEND_H

#include "core/base/err.h"
#include "why/words.h"

#include <stddef.h>
#include <stdint.h>

struct sv_recorder;
struct sv_record_options;

int sv_spending_check(const struct sv_record_options *o, struct sv_err *err);
/* The processes are followed. Nothing without --budget, and without kernel programs. */
void sv_spending_open(struct sv_recorder *r);
int sv_spending_round(struct sv_recorder *r, int64_t now, struct sv_err *err);
/* Writes what was not recorded into the metadata. */
void sv_spending_finish(struct sv_recorder *r, int64_t now);
void sv_spending_close(struct sv_recorder *r);

/* The budget, what was measured last (shares), and how many steps are given up now; 0 without
 * --budget. */
void sv_spending_now(const struct sv_recorder *r, double *budget, double *cost, uint64_t *steps);

/* For the metadata of a part (why/words.h): " off_ns=… less_ns=… of_ns=…", or "". */
void sv_spending_words(const struct sv_recorder *r, enum sv_coverage_part part, char *text,
                       size_t size);

#endif
