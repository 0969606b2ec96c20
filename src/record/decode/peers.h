/* The other ends of sockets: who is behind the descriptor of a call that waited. Used by the probe
 * `syscalls`. */
#ifndef SV_RECORD_DECODE_PEERS_H
#define SV_RECORD_DECODE_PEERS_H

#include "core/base/map.h"
#include "record/bpf/peer.h"
#include "record/decode/state.h"

/* Who used an end of a connection last: of connections within the machine the process at the other
 * end is known by that. */
struct sv_peers {
    struct sv_map by_end;
};
void sv_peers_fini(struct sv_peers *p);

/* What follows the record of a call. False: it is malformed, or none. */
bool sv_peer_read(struct sv_wire_peer *w, const void *bytes, size_t len);
/* The process uses this end. */
void sv_peers_note(struct sv_peers *p, const struct sv_wire_peer *w, uint32_t pid);
/* Adds the arguments peer, port and peer_pid to the call that is being made. `bytes`: what follows
 * its record; what is malformed is left out. `has_fd`: the call has its descriptor already. */
void sv_peers_put(const struct sv_peers *p, const struct sv_decode *d, struct sv_batch *b,
                  const struct sv_wire_head *head, const void *bytes, size_t len, bool has_fd);

/* 10.0.0.7:443, [fe80::1]:443. An IPv4 address in one of IPv6 is shown as such. 0: none. */
size_t sv_peer_text(unsigned family, const uint32_t address[4], unsigned port, char *text,
                    size_t size);

#endif
