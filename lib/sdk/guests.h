/* Guests: the processes whose rings a host empties together with its own: forked children of a traced program, or, for a
 * collector, every traced program of its session.
 *
 *     sv_guests_init → per round: sv_guests_round(), sv_pump_round(&guests.source) → per commit: sv_guests_mark(), the journal's round,
 *     sv_guests_release() → at the end: sv_guests_part() or sv_guests_refuse(), sv_guests_fini()
 *
 * Each client has its directory in that of the host (session_layout.h). The journal is the host's: its rounds mark the clients' rings, too.
 * A client whose files are cut or replaced, that belongs to another user, or that needs more memory than SV_CLIENT_BYTES_MAX is
 * closed, with a finding in the report; the others go on. */
#ifndef SV_SDK_GUESTS_H
#define SV_SDK_GUESTS_H

#include "core/base/map.h"
#include "core/stream/stream.h"
#include "sdk/client.h"
#include "sdk/ring_view.h"

#define SV_GUESTS_GIVE (SV_HAS_EDGES | SV_HAS_NESTED | SV_IN_TRACK_ORDER)

struct sv_guests {
    struct sv_source source; /* first; next() gives 0 at the end of a round; is not closed */
    int dir_fd;              /* borrowed: of the host */
    struct sv_process_id self;
    bool with_source;
    bool is_lost;        /* what is read goes nowhere */
    size_t budget_bytes; /* of each client */
    struct sv_client *all;
    size_t n, cap, at;
    /* hashes of the directories that were met, those that were closed included */
    struct sv_map names;
    struct sv_ring_view window;
    uint64_t n_ever;
    int64_t dir_changed_ns, looked_ns, checked_ns;
    bool has_gone;      /* a commit removes them */
    bool has_strangers; /* directories that are no sessions yet */
    uint64_t round;     /* of the host's journal */
    /* read before anybody came: a client's first round needs two pairs, too */
    struct sv_tick opened;
};

void sv_guests_init(struct sv_guests *g, int dir_fd, struct sv_dict *dict,
                    struct sv_report *report);
void sv_guests_fini(struct sv_guests *g);

/* Meets new clients and reads how far all of them are. Returns the bytes of this round. `look` asks for what otherwise happens now and then:
 * to look who is still there. */
uint64_t sv_guests_round(struct sv_guests *g, int64_t now_ns, bool look);
bool sv_guests_are_pressed(const struct sv_guests *g);

void sv_guests_mark(struct sv_guests *g, uint64_t round);
/* Gives back the space in the rings. Clients that are gone are removed by the next round. */
void sv_guests_release(struct sv_guests *g);

/* The host ends. part(): calls leave() for each that still runs, which makes it independent. refuse(): they learn that nobody reads. */
void sv_guests_part(struct sv_guests *g, bool (*leave)(void *ctx, struct sv_room *room), void *ctx);
void sv_guests_refuse(struct sv_guests *g);

#endif
