/* The ledger that all surfaces read: of requests where a trace has them, else of the units that the
 * ledger finds itself (why/ledger.h). Called by explain, the report on waits and SQL. */
#ifndef SV_SUBJECTS_ENGINE_REQUEST_UNITS_H
#define SV_SUBJECTS_ENGINE_REQUEST_UNITS_H

#include "why/ledger.h"

/* As sv_ledger_make(). Answered requests are the units if there are SV_REQUESTS_LEAST or more and
 * the caller asks for no marker and no step. */
void sv_why_make(struct sv_ledger *l, const struct sv_trace *t, const struct sv_ledger_options *o);
#define SV_REQUESTS_LEAST 20

/* Of slow tokens: what the thread of their engine waited for. One ledger for all of them. */
struct sv_llm;
struct sv_llm_slow;
void sv_why_of_tokens(const struct sv_llm *llm, struct sv_llm_slow *slow, size_t n);

#endif
