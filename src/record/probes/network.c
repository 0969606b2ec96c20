/* Probe `network`: transfers over TCP as slices on a row below the thread, with the peer's
 * address. */
#include "record/bpf/network.h"
#include "record/decode/calls.h"
#include "record/decode/peers.h"
#include "record/spool/scout.h"

#include <arpa/inet.h>

#define LONGEST_NS ((uint64_t)1 << 56) /* two years: sums stay sums */

static bool decode_transfer(struct sv_decode *d, void *state, struct sv_batch *b,
                            const struct sv_wire_head *record, uint32_t size)
{
    const struct sv_wire_transfer *t = (const void *)record;
    char peer[INET6_ADDRSTRLEN + 16];
    (void)state;
    (void)size;
    if (t->start_ns > record->ts_ns || record->ts_ns - t->start_ns > LONGEST_NS ||
        (t->family != AF_INET && t->family != AF_INET6))
        return false;
    if (d->hidden && record->tgid == d->hidden)
        return true; /* not the command yet */
    sv_track row = sv_decode_row(d, record, SV_PROBE_network, SV_ROW_NETWORK);
    struct sv_event *e = sv_batch_put(b, SV_SLICE, (int64_t)t->start_ns, row,
                                      record->what ? d->words.tcp_send : d->words.tcp_recv,
                                      d->words.cat_network);
    e->dur_ns = (int64_t)(record->ts_ns - t->start_ns);
    size_t len = sv_peer_text(t->family, t->peer, t->peer_port, peer, sizeof peer);
    sv_decode_text(b, d->words.peer, peer, len);
    sv_batch_int(b, d->words.port, t->port);
    if (t->ret < 0)
        sv_batch_int(b, d->words.error, -(int64_t)t->ret);
    else
        sv_batch_int(b, d->words.bytes, t->ret);
    sv_batch_finish(b, e);
    return true;
}

const struct sv_probe sv_probe_network = {
    .name = "network",
    .cat = SV_CAT_NETWORK,
    .records = {{SV_WIRE_TRANSFER, sizeof(struct sv_wire_transfer), "transfers over TCP",
                 decode_transfer}},
    .sums = {{SV_SUM_EVENTS, "transfers over TCP", false}},
    .less = "no sockets among --calls",
    .docs = {"transfers over TCP", "`network` below the thread",
             "peer, own port, bytes, errno; with `--calls sockets`"},
    .groups = SV_CALLS_SOCKETS,
    .tracepoint = "sock_recv_length",
    .can_wait = sv_scout_always,
};
