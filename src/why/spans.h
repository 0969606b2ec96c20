/* Sets of time: stretches in order that neither overlap nor touch. For questions like "how long did
 * any of these run".
 *
 *     struct sv_spans busy = {0};
 *     sv_spans_add(&busy, from_ns, to_ns, row);          // in the order of `from`
 *     sv_spans_unite(&busy, &other);
 *     sv_spans_within(&busy, step_from, step_to) …
 *     sv_spans_fini(&busy);
 *
 * Each stretch remembers the row that began it and the one that ended it. */
#ifndef SV_WHY_SPANS_H
#define SV_WHY_SPANS_H

#include <stddef.h>
#include <stdint.h>

struct sv_span {
    int64_t from_ns, to_ns;
    uint32_t row, last;
    int64_t before_ns; /* the length of all stretches before it */
};

struct sv_spans {
    struct sv_span *items;
    size_t n, cap;
};

void sv_spans_fini(struct sv_spans *s); /* a zeroed struct is the empty set */
/* No earlier than what was added before; empty stretches are left out. */
void sv_spans_add(struct sv_spans *s, int64_t from_ns, int64_t to_ns, uint32_t row);
void sv_spans_unite(struct sv_spans *s, const struct sv_spans *with);
/* For many sets: append them as they come, then settle, which unites all of them at once. In
 * between it is no set. */
void sv_spans_append(struct sv_spans *s, const struct sv_spans *with);
void sv_spans_settle(struct sv_spans *s);
int64_t sv_spans_length(const struct sv_spans *s);
/* How long both last at once. */
int64_t sv_spans_common(const struct sv_spans *a, const struct sv_spans *b);
/* Those that touch [from_ns, to_ns), borrowed: not to be changed or freed. */
struct sv_spans sv_spans_part(const struct sv_spans *s, int64_t from_ns, int64_t to_ns);
/* How much of [from_ns, to_ns) it covers. */
int64_t sv_spans_within(const struct sv_spans *s, int64_t from_ns, int64_t to_ns);

#endif
