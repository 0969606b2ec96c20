/* The clients of a collector: the processes whose rings it reads. The collector is a traced program
 * (its clients are its forked children, and it reads its own rings as well) or a command
 * (collect.h; its clients are all traced programs of its session).
 *
 *     sv_clients_init → per round: sv_clients_round(), sv_pump_round(&clients.source) → per commit:
 *     sv_clients_mark(), the journal's round,
 *     sv_clients_release() → at the end: sv_clients_part() or sv_clients_refuse(),
 *     sv_clients_fini()
 *
 * The directory of a client is in that of its collector (session_layout.h). The collector's journal
 * covers the rings of its clients. A client is closed, with a finding in the report, when its files
 * are truncated or replaced, when it belongs to another user, or when it needs more memory than
 * SV_CLIENT_BYTES_MAX. The others are not affected. */
#pragma once

#include "core/base/map.h"
#include "core/stream/stream.h"
#include "sdk/collect/client.h"
#include "sdk/ring/ring_view.h"

#define SV_CLIENTS_GIVE (SV_HAS_EDGES | SV_HAS_NESTED | SV_IN_TRACK_ORDER)

struct sv_clients {
    struct sv_source source; /* first; next() gives 0 at the end of a round; is not closed */
    int dir_fd;              /* borrowed: the collector's directory */
    struct sv_process_id self;
    bool with_source;
    bool is_lost;        /* the output failed: what is read is dropped */
    size_t budget_bytes; /* of each client */
    struct sv_client *all;
    size_t n, cap, at;
    /* hashes of all directories seen so far, of closed clients as well */
    struct sv_map names;
    struct sv_ring_view window;
    uint64_t n_ever;
    int64_t dir_changed_ns, looked_ns, checked_ns;
    bool has_gone;         /* some have ended; the next commit removes them */
    bool has_unknown_dirs; /* some directories are not sessions yet */
    uint64_t round;        /* of the collector's journal */
    /* read before the first client: its first round needs two clock pairs */
    struct sv_tick opened;
};

/* The collector's directory has another descriptor now. */
void sv_clients_use_dir(struct sv_clients *g, int dir_fd);
void sv_clients_init(struct sv_clients *g, int dir_fd, struct sv_dict *dict,
                     struct sv_report *report);
void sv_clients_fini(struct sv_clients *g);

/* Opens new clients and reads the heads of all rings. Returns the bytes of this round. With `look`
 * it also checks which clients still run; without, it does so from time to time. */
uint64_t sv_clients_round(struct sv_clients *g, int64_t now_ns, bool look);
bool sv_clients_are_pressed(const struct sv_clients *g);

void sv_clients_mark(struct sv_clients *g, uint64_t round);
/* Gives back the space in the rings. Clients that have ended are removed by the next round. */
void sv_clients_release(struct sv_clients *g);

/* The collector ends. part() calls leave() for each client that still runs, which makes it
 * independent. refuse() marks each session as no longer read. */
void sv_clients_part(struct sv_clients *g, bool (*leave)(void *ctx, struct sv_client_files *files),
                     void *ctx);
void sv_clients_refuse(struct sv_clients *g);
/* Are there rings that could not be opened? Then only recovery can read them. */
bool sv_clients_are_unread(const struct sv_clients *g);
