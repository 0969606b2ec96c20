/* Engines on the time line: a track of steps for each engine, with all that the words say
 * (core/serving/engine_words.h), counters, and requests with the phases that they had. Made by the
 * writing thread. */
#pragma once

#include "serving/server_tracks.h"

void sv_engine_tracks_init(struct sv_timeline *t);
void sv_engine_tracks_fini(struct sv_timeline *t);
/* Before and after sv_life_step() with the same step. */
void sv_engine_step_begin(struct sv_timeline *t);
void sv_engine_step_end(struct sv_timeline *t, const struct sv_life_step *step);
void sv_engine_request_joined(struct sv_timeline *t, const struct sv_life_request *r);
void sv_engine_request_over(struct sv_timeline *t, struct sv_life *l,
                            const struct sv_life_request *r);
/* Steps that were lost since the last call. */
void sv_engine_lost(struct sv_timeline *t, uint64_t steps);
