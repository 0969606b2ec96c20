/* The life cycle of a server as events: instants of the category serving.life, one for each call,
 * which traces carry through every format.
 *
 *     struct sv_life_words w;
 *     sv_life_words_init(&w, dict);
 *     if (sv_life_read(&w, dict, event, &in)) sv_life_put(life, &in.call);
 *
 * The keys are those that libstave-serving writes: request, batch, model, flags, n, r0 … r7,
 * samples, took_ns, worker, type, device, name, congested; of "left out" those of
 * sv_left_out_names, of "transport" those of sv_transport_keys. */
#pragma once

#include "core/serving/life.h"
#include "core/stream/dict.h"

enum { SV_LIFE_MEMBERS_MAX = 8 };

struct sv_life_words {
    sv_str cat, ops[SV_N_LIFE_OPS];
    sv_str left_out[SV_N_LEFT_OUT], transport[SV_N_TRANSPORT];
    sv_str request, batch, model, flags, n, members[SV_LIFE_MEMBERS_MAX], samples, took, worker,
        type, device, name, congested, tokens;
};

struct sv_life_in {
    struct sv_life_call call;
    uint64_t members[SV_LIFE_MEMBERS_MAX];
    char text[256];
};

void sv_life_words_init(struct sv_life_words *w, struct sv_dict *dict);
/* The same, and the dictionary stays as it is: words that it does not have match nothing. */
void sv_life_words_find(struct sv_life_words *w, const struct sv_dict *dict);
/* False: the event is not such a call. */
bool sv_life_read(const struct sv_life_words *w, const struct sv_event *e, struct sv_life_in *in);
