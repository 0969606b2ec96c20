/* Requests of io_uring as slices on a row `io_uring` below the thread that submitted them. They overlap, so the row has lanes. */
#ifndef SV_RECORD_DECODE_URING_H
#define SV_RECORD_DECODE_URING_H

#include "core/stream/batch.h"
#include "record/bpf/records.h"
#include "record/decode/tree.h"

enum { SV_URING_OPS = 64 };

struct sv_uring {
    sv_str cat, row, fd, fixed_fd, requested, bytes, offset, ret, error, opcode;
    sv_str names[SV_URING_OPS];
};

void sv_uring_init(struct sv_uring *u, struct sv_dict *dict);
/* Gives a begin and an end. The arguments of `path` are the caller's: sv_uring_begin(), its own ones, sv_uring_end(). */
struct sv_event *sv_uring_begin(struct sv_uring *u, struct sv_tree *t, struct sv_batch *b,
                                const struct sv_wire_uring *r, int64_t *end_ns);
void sv_uring_end(struct sv_uring *u, struct sv_batch *b, struct sv_event *begin,
                  const struct sv_wire_uring *r, int64_t end_ns);
bool sv_uring_is_read(unsigned opcode);
bool sv_uring_is_write(unsigned opcode);

#endif
