/* The meter: the sink that all sources of a recording write to. It counts events and losses,
 * commits in the middle of a round that brings many, and continues when the output fails. With
 * --paths once a stage is in front of it. */
#ifndef SV_RECORD_SESSION_METER_H
#define SV_RECORD_SESSION_METER_H

#include "core/stream/stream.h"

struct sv_recorder;

struct sv_record_meter {
    struct sv_sink sink;
    struct sv_sink *once;  /* the stage of --paths once, or the sink */
    struct sv_sink *input; /* what sources write to: the sink, after the stages for all of them */
    uint64_t events;
    uint64_t lost;        /* what losses among the events count, themselves left out */
    uint64_t uncommitted; /* bytes of clients' rings */
};

void sv_record_meter_open(struct sv_recorder *r, bool has_paths_once); /* the output is open */
void sv_record_meter_close(struct sv_recorder *r);
void sv_record_meter_new_file(struct sv_recorder *r); /* --rotate, --last: another one has begun */

#endif
