/* A client: a traced process whose rings somebody else reads. Its files (room.h), the source of its events (drain.h), and what it may cost. */
#ifndef SV_SDK_CLIENT_H
#define SV_SDK_CLIENT_H

#include "core/stream/stream.h"
#include "sdk/room.h"

#define SV_CLIENT_BYTES_MAX ((size_t)512 << 20) /* for its names, tracks and texts */

struct sv_ring_view;

struct sv_client {
    struct sv_room *room;
    struct sv_drain *drain;
    size_t dict_bytes; /* what the dictionary has because of it */
    bool is_near;      /* in the pid namespace of whoever reads it */
    bool has_ended; /* nothing more will come; found out before the heads of this round were read */
};

/* The window is shared by all clients of a reader. False: see sv_room_open(). */
bool sv_client_open(struct sv_client *c, int base_fd, const char *path, bool is_writable,
                    struct sv_dict *dict, struct sv_report *report, struct sv_ring_view *window);
void sv_client_close(struct sv_client *c);

/* Rings that are new, how far all of them are, names that are new. Returns the bytes of this round. */
uint64_t sv_client_round(struct sv_client *c, uint64_t round);
int sv_client_next(struct sv_client *c, struct sv_batch *b, struct sv_err *err);

/* Why it cannot be read any further; NULL: it can. */
const char *sv_client_fault(const struct sv_client *c, size_t budget_bytes);
bool sv_client_runs(const struct sv_client *c); /* or nobody can tell from here */

#endif
