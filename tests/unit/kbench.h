/* Kernel ring buffers made by hand, for the tests of the decoder: records go in, events come out as
 * text. */
#ifndef TESTS_UNIT_KBENCH_H
#define TESTS_UNIT_KBENCH_H

#include "record/bpf/block.h"
#include "record/bpf/io_uring.h"
#include "record/bpf/network.h"
#include "record/bpf/page_cache.h"
#include "record/bpf/page_fault.h"
#include "record/bpf/process.h"
#include "record/bpf/rivals.h"
#include "record/bpf/sample.h"
#include "record/bpf/sched.h"
#include "record/bpf/syscalls.h"
#include "record/decode/decode.h"
#include "record/session/totals.h"
#include "store/once_paths.h"
#include "tests/harness/shape_check.h"

enum { KBENCH_RINGS = 2, KBENCH_SIZE = 64 << 10 };

struct kbench {
    struct {
        uint64_t consumer, producer;
        _Alignas(8) uint8_t data[2 * KBENCH_SIZE];
    } rings[KBENCH_RINGS];
    struct sv_dict *dict;
    struct sv_report report;
    struct sv_decode *decode;
    struct sv_once_paths *left_out, *filled_in; /* NULL: kbench_once() was not called */
    struct sv_totals totals;
    /* what kbench_round() pulls: the counted decoder, unless the test puts another source around
     * it */
    struct sv_source *source;
    struct sv_batch batch;
    struct shape_check shape; /* of all rounds, for tests whose records a kernel could give */
    char text[1 << 16];       /* one line per event */
};

struct kbench *kbench_new(const struct sv_decode_options *options);
void kbench_free(struct kbench *k);
/* A record and `text_len` bytes behind it. `bits` are those of the ring's own head (busy,
 * discarded). */
void kbench_put(struct kbench *k, unsigned ring, const void *record, size_t size, const char *text,
                size_t text_len, uint32_t bits);
/* From now on paths are left out, as with --paths once, and filled in again, as by a reader. */
void kbench_once(struct kbench *k, bool fills_in);
/* A round up to this time; the events are in k->text. Returns how many. */
size_t kbench_round(struct kbench *k, uint64_t cutoff_ns);

/* Call `nr` of thread 11 of process 10. */
struct sv_wire_call kbench_call(long nr, uint64_t start_ns, uint64_t end_ns, int fd, int64_t ret);

#endif
