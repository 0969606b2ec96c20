/* See peers.h. Trusts no record: families and lengths are checked. */
#include "record/decode/peers.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

enum { ENDS_MAX = 1 << 16 }; /* then everything is forgotten: what is in use comes again */

void sv_peers_fini(struct sv_peers *p)
{
    sv_map_fini(&p->by_end);
}

size_t sv_peer_text(unsigned family, const uint32_t address[4], unsigned port, char *text,
                    size_t size)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    char name[INET6_ADDRSTRLEN] = "";
    uint8_t bytes[16];
    memcpy(bytes, address, sizeof bytes);
    bool is_mapped = family == AF_INET6 && memcmp(bytes, mapped, sizeof mapped) == 0,
         is_v6 = family == AF_INET6 && !is_mapped;
    if (!inet_ntop(is_v6 ? AF_INET6 : AF_INET, bytes + (is_mapped ? 12 : 0), name, sizeof name))
        return 0;
    return (size_t)snprintf(text, size, is_v6 ? "[%s]:%u" : "%s:%u", name, port);
}

/* The number of an end. Network namespaces are never 0. */
static uint64_t end_of(const struct sv_wire_peer *w, bool is_other)
{
    unsigned from = is_other ? w->peer_port : w->port, to = is_other ? w->port : w->peer_port;
    if (w->family == SV_WIRE_FAMILY_UNIX)
        return is_other ? w->peer : w->inode;
    return w->is_local ? (uint64_t)w->net << 32 | from << 16 | to : 0;
}

bool sv_peer_read(struct sv_wire_peer *w, const void *bytes, size_t len)
{
    if (len < sizeof *w)
        return false;
    memcpy(w, bytes, sizeof *w);
    return true;
}

void sv_peers_note(struct sv_peers *p, const struct sv_wire_peer *w, uint32_t pid)
{
    uint64_t here = end_of(w, false);
    if (p->by_end.n > ENDS_MAX)
        sv_map_clear(&p->by_end);
    if (here)
        *sv_map_add(&p->by_end, here, NULL) = pid;
}

/* Of the other end. Who made it may be who made both, for a child. */
static uint32_t pid_of(const struct sv_peers *p, const struct sv_wire_peer *w, uint32_t own)
{
    uint64_t there = end_of(w, true);
    const uint64_t *found = there ? sv_map_find(&p->by_end, there) : NULL;
    return found ? (uint32_t)*found : w->pid != own ? w->pid : 0;
}

/* A socket without a name is called as /proc calls its descriptor. */
static void put_unix(const struct sv_decode *d, struct sv_batch *b, const struct sv_wire_peer *w,
                     const char *name, size_t n)
{
    char text[32];
    if (n > 0) {
        sv_decode_path(b, d->words.peer, sv_batch_text(b, name, n), n);
    } else if (w->peer) {
        n = (size_t)snprintf(text, sizeof text, "socket:[%u]", w->peer);
        sv_decode_text(b, d->words.peer, text, n);
    }
}

void sv_peers_put(const struct sv_peers *p, const struct sv_decode *d, struct sv_batch *b,
                  const struct sv_wire_head *head, const void *bytes, size_t len, bool has_fd)
{
    struct sv_wire_peer w;
    char text[INET6_ADDRSTRLEN + 16];
    if (!sv_peer_read(&w, bytes, len))
        return;
    const char *name = (const char *)bytes + sizeof w;
    if (!has_fd && w.fd >= 0)
        sv_batch_int(b, d->words.fd, w.fd);
    if (w.family == SV_WIRE_FAMILY_UNIX) {
        put_unix(d, b, &w, name, len > sizeof w ? strnlen(name, len - sizeof w) : 0);
    } else if ((w.family == SV_WIRE_FAMILY_INET || w.family == SV_WIRE_FAMILY_INET6) &&
               w.peer_port) {
        size_t n = sv_peer_text(w.family, w.address, w.peer_port, text, sizeof text);
        sv_decode_text(b, d->words.peer, text, n);
        sv_batch_int(b, d->words.port, w.port);
    } else {
        return;
    }
    uint32_t pid = pid_of(p, &w, head->tgid);
    if (pid)
        sv_batch_int(b, d->words.peer_pid, pid);
}
