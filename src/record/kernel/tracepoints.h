/* The tracepoints of the running kernel, by its type information: which there are, and how many
 * arguments each has.
 *
 * libbpf can answer this, too, but reads and indexes all types for it, a second time beside the
 * load itself: a tenth of the time that a short recording takes. Here the types are passed over
 * once. */
#ifndef SV_RECORD_KERNEL_TRACEPOINTS_H
#define SV_RECORD_KERNEL_TRACEPOINTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sv_tracepoint {
    const char *name; /* sched_switch */
    uint32_t pointer; /* number of its type */
    unsigned n_args;  /* with the first one, which is the kernel's own; 0: not known */
};

struct sv_tracepoints {
    struct sv_tracepoint *all;
    size_t n, cap;
    bool has_casts; /* the kernel function bpf_rdonly_cast */
    bool is_known;  /* false: there is no type information, or it is of a newer kind */
    uint8_t *bytes;
    size_t n_mapped; /* 0: the bytes are of the heap */
};

/* Reads `path`, mostly /sys/kernel/btf/vmlinux. */
void sv_tracepoints_read(struct sv_tracepoints *t, const char *path);
void sv_tracepoints_fini(struct sv_tracepoints *t);
/* NULL: there is none of this name. */
const struct sv_tracepoint *sv_tracepoints_find(const struct sv_tracepoints *t, const char *name);

#endif
