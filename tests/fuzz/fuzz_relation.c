/* Arbitrary bytes as relations between clocks: what is accepted is written and read back as it is,
 * and what it says about any time is in range. */
#include "clocks/relation.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_times(const struct sv_relation *r)
{
    static const int64_t times[] = {INT64_MIN, -1, 0, 1, 1000000000, INT64_MAX};
    struct sv_sync s;
    struct sv_sync_round *copy = malloc((r->n + 1) * sizeof *copy);
    assert(copy);
    memcpy(copy, r->rounds, r->n * sizeof *copy);
    sv_sync_fit(&s, copy, r->n);
    free(copy);
    for (size_t i = 0; i + 1 < s.n; i++)
        assert(s.points[i].at_ns < s.points[i + 1].at_ns);
    for (size_t i = 0; s.n && i < sizeof times / sizeof *times; i++) {
        assert(sv_sync_at(&s, times[i]).bound_ns >= 0);
        assert(sv_sync_bound(&s, times[0], times[i]) >= 0);
    }
    sv_sync_fini(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sv_relation r, again;
    struct sv_err err = {0};
    if (sv_relation_parse(&r, (const char *)data, size, &err) < 0) {
        assert(err.msg[0]);
        return 0;
    }
    struct sv_buf json;
    sv_buf_init(&json, 1 << 20);
    sv_relation_put(&r, &json);
    assert(sv_relation_parse(&again, (const char *)json.data, json.len, &err) == 0);
    assert(again.n == r.n && memcmp(again.rounds, r.rounds, r.n * sizeof *r.rounds) == 0);
    assert(again.is_estimate == r.is_estimate);
    try_times(&r);
    sv_relation_fini(&again);
    sv_relation_fini(&r);
    sv_buf_fini(&json);
    return 0;
}
