/* What the parts of the ITT collector share. */
#pragma once

#include <stave/stave.h>

#include "itt_abi.h"

#define ITT_CATEGORY "user_annotation" /* as NVTX's ranges and PyTorch's annotations */

#define ITT_DECLARE(type, name, params) type itt_##name params;
ITT_FUNCTIONS(ITT_DECLARE)

bool itt_is_on(const struct itt_domain *d); /* NULL: no domain */
const char *itt_name(const struct itt_string *s);
const char *itt_domain_name(const struct itt_domain *d);
struct itt_string *itt_numbered(int number); /* name of a mark or an event */

/* Slices that may overlap: begun and ended under a key, on rows of their own (itt_spans.c). */
enum itt_span_kind { ITT_SPAN_TASK, ITT_SPAN_REGION, ITT_SPAN_FRAME, ITT_SPAN_EVENT };
struct itt_key {
    enum itt_span_kind kind;
    const void *domain;
    struct itt_id id;
};
void itt_span_begin(const struct itt_key *key, const char *domain, const char *name,
                    struct itt_id parent);
void itt_span_end(const struct itt_key *key);
void itt_span_whole(const struct itt_key *key, const char *domain, const char *name,
                    int64_t begin_ns, int64_t end_ns);
void itt_spans_at_exit(void); /* what never ended */
/* Calls f with the arguments of the open one of that id; false: there is none. */
bool itt_span_args(struct itt_id id, void (*f)(struct stave_args *, const void *),
                   const void *data);

uint64_t itt_flow(struct itt_id id);
static inline bool itt_is_null(struct itt_id id)
{
    return !(id.d1 | id.d2 | id.d3);
}
void itt_add_id(struct stave_args *a, const char *key, struct itt_id id);
