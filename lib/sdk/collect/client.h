/* A client: a traced process whose rings another process reads. Holds its files (client_files.h),
 * the source of its events (drain.h), and the memory that it uses. */
#pragma once

#include "core/stream/stream.h"
#include "sdk/collect/client_files.h"

#define SV_CLIENT_BYTES_MAX ((size_t)512 << 20) /* for its names, tracks and texts */

struct sv_ring_view;

struct sv_client {
    struct sv_client_files *files;
    struct sv_drain *drain;
    size_t dict_bytes; /* its part of the dictionary */
    bool is_near;      /* in the pid namespace of the reader */
    bool is_replaced;  /* its process has executed another program, which has a client */
    /* Nothing more will come; set before the heads of this round were read. */
    bool has_ended;
};

/* The window is shared by all clients of a reader. False: see sv_client_files_open(). */
bool sv_client_open(struct sv_client *c, int base_fd, const char *path, bool is_writable,
                    struct sv_dict *dict, struct sv_report *report, struct sv_ring_view *window);
void sv_client_close(struct sv_client *c);

/* Reads new rings, the heads of all rings, and new names. Returns the bytes of this round. */
uint64_t sv_client_round(struct sv_client *c, uint64_t round);
int sv_client_next(struct sv_client *c, struct sv_batch *b, struct sv_err *err);

/* Why it cannot be read any further; NULL: it can. */
const char *sv_client_fault(const struct sv_client *c, size_t budget_bytes);
/* True also when its state is unknown: its process cannot be seen from here. */
bool sv_client_runs(const struct sv_client *c);
