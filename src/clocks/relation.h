/* A relation: how the clock of one machine relates to that of another, as measured, with what is
 * needed to use it elsewhere.
 *
 * It is JSON, in the metadata SV_META_RELATION of a trace (`stave record --sync`) or in a file of
 * its own (`stave sync`):
 *
 *     {"stave_relation":1,"how":"pings",
 *      "local":{"host":"b","boot_id":"…","time_offsets":""},"reference":{"host":"a","boot_id":"…"},
 *      "offset_ns":N,"drift_ppm":N,"bound_ns":N,"rounds":[[local_ns,low_ns,high_ns],…]}
 *
 * Times are BOOTTIME of the local machine; the reference's is between low and high later. Offset
 * (in the middle), drift and bound are for people: readers use the rounds (clock_sync.h). The
 * clocks are known by boot id and time namespace, so that a relation serves every file of the two
 * machines, whoever measured it. */
#pragma once

#include "clocks/clock_sync.h"
#include "core/base/buf.h"
#include "core/base/err.h"

#define SV_META_RELATION        "clock_relation"
#define SV_RELATION_PINGS       "pings"
#define SV_RELATION_COLLECTIVES "collectives" /* an estimate: its bound is none */
enum { SV_RELATION_ROUNDS_MAX = 2048 };

/* Whose clock; empty texts: unknown. */
struct sv_clock_owner {
    char host[256], boot[40], times[64];
};
void sv_clock_owner_self(struct sv_clock_owner *o);
bool sv_clock_owner_equal(const struct sv_clock_owner *a, const struct sv_clock_owner *b);

struct sv_relation {
    struct sv_clock_owner local, reference;
    bool is_estimate;
    struct sv_sync_round *rounds;
    size_t n, cap;
};

/* Keeps them by time. Beyond the limit every second round is dropped. */
void sv_relation_add(struct sv_relation *r, const struct sv_sync_round *round);
void sv_relation_fini(struct sv_relation *r);

void sv_relation_put(const struct sv_relation *r, struct sv_buf *json);
/* The texts are those of another; SV_EFORMAT says what is wrong. Nothing has to be freed then. */
int sv_relation_parse(struct sv_relation *r, const char *json, size_t len, struct sv_err *err);
