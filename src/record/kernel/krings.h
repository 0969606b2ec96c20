/* The kernel's ring buffers, read in place: one per CPU, merged by time.
 *
 * A ring is what BPF_MAP_TYPE_RINGBUF maps: two positions and the records, each after a head of 8
 * bytes. Tests give bytes of their own. Contents come from the kernel and are checked all the same:
 * a wrong length ends the reading of that ring, counted. */
#ifndef SV_RECORD_KERNEL_KRINGS_H
#define SV_RECORD_KERNEL_KRINGS_H

#include "record/bpf/records.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

struct sv_kring {
    uint64_t *consumer;       /* ours; NULL: a piece */
    const uint64_t *producer; /* the kernel's; NULL: a piece, which ends at `end` */
    const uint8_t *data;      /* mapped twice in a row, unless `is_once` */
    uint64_t mask;
    bool is_once; /* no record goes over the end of the ring */
    /* this round */
    uint64_t pos, end;
    const struct sv_wire_head *first; /* the next record, NULL: none */
    uint32_t first_size;
    bool is_broken;
    uint64_t last_ns;     /* of the last record that was taken */
    uint64_t released_ns; /* of the last one that was given back */
};

struct sv_krings {
    struct sv_kring *all;
    size_t n, cap;
    uint64_t cutoff_ns;
    bool is_blocked;   /* a record that is not complete yet holds up what comes after it */
    size_t at;         /* the ring that is being read */
    uint64_t yield_ns; /* another ring has an older record than this */
    uint64_t n_broken;
};

/* `is_once`: the records are mapped once, and none goes over the end. */
void sv_krings_add(struct sv_krings *r, uint64_t *consumer, const uint64_t *producer,
                   const uint8_t *data, uint64_t size, bool is_once);
void sv_krings_fini(struct sv_krings *r);

/* A new round. Records that were complete before `cutoff_ns` (read from the clock before this call)
 * come in an order in which each thread's are by time, whatever CPUs it ran on; later ones wait for
 * the next round. Returns the bytes that wait. */
uint64_t sv_krings_round(struct sv_krings *r, uint64_t cutoff_ns);
/* The next record of the round and its size, NULL at its end. It stays valid until
 * sv_krings_release(). */
const struct sv_wire_head *sv_krings_next(struct sv_krings *r, uint32_t *size);
void sv_krings_release(struct sv_krings *r); /* gives what was read back to the kernel */
void sv_krings_rewind(struct sv_krings *r);  /* what was read and not given back is read again */

/* After the last round: how many records no later than `until_ns` were not read, because one of
 * them or one before them never became complete. */
uint64_t sv_krings_unread(const struct sv_krings *r, uint64_t until_ns);

/* What was read of ring `i` and not given back, as it is in the ring, with the heads of its
 * records. Returns its bytes; where the ring is mapped once they may be in two places. */
size_t sv_krings_piece(const struct sv_krings *r, size_t i, struct iovec at[2]);
/* Such a piece as a ring of its own, to be read once. It must stay until then. */
void sv_krings_add_piece(struct sv_krings *r, const uint8_t *bytes, uint64_t len);

#endif
