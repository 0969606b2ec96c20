/* What record/kernel/kernel.h offers in a build without eBPF: nothing, and it says so. */
#include "record/kernel/kernel.h"

#ifndef SV_HAVE_EBPF

bool sv_kernel_is_built(void)
{
    return false;
}

int sv_kernel_open(const struct sv_kernel_options *options, struct sv_kernel **out,
                   struct sv_err *err)
{
    (void)options;
    *out = NULL;
    return sv_err_set(
        err, SV_EUSAGE, SV_NO_POS,
        "this stave was built without eBPF (clang, libbpf-dev and bpftool at build time)");
}

void sv_kernel_close(struct sv_kernel *k)
{
    (void)k;
}

enum sv_hooks sv_kernel_hooks(const struct sv_kernel *k)
{
    (void)k;
    return SV_HOOKS_BEST;
}

const char *sv_kernel_why_hooks(const struct sv_kernel *k)
{
    (void)k;
    return "";
}

const char *sv_kernel_missing(const struct sv_kernel *k)
{
    (void)k;
    return "";
}

bool sv_kernel_knows_calls(const struct sv_kernel *k)
{
    (void)k;
    return false;
}

enum sv_stack_way sv_kernel_stacks(const struct sv_kernel *k)
{
    (void)k;
    return SV_STACK_NONE;
}

void sv_kernel_python(struct sv_kernel *k, uint32_t pid, const struct sv_wire_python *offsets)
{
    (void)k;
    (void)pid;
    (void)offsets;
}

void sv_kernel_knows_program(struct sv_kernel *k, uint64_t inode)
{
    (void)k;
    (void)inode;
}

void sv_kernel_rings(const struct sv_kernel *k, struct sv_krings *rings)
{
    (void)k;
    (void)rings;
}

int sv_kernel_poll_fd(const struct sv_kernel *k)
{
    (void)k;
    return -1;
}

int sv_kernel_follow(struct sv_kernel *k, uint32_t pid, struct sv_err *err)
{
    (void)k;
    (void)pid;
    return sv_err_set(err, SV_EUSAGE, SV_NO_POS, "built without eBPF");
}

int sv_kernel_enroll(struct sv_kernel *k, const uint32_t *pids, size_t n, struct sv_err *err)
{
    (void)pids;
    (void)n;
    return sv_kernel_follow(k, 0, err);
}

void sv_kernel_losses(struct sv_kernel *k,
                      void (*report)(void *ctx, unsigned cpu, const char *what, uint64_t n),
                      void *ctx)
{
    (void)k;
    (void)report;
    (void)ctx;
}

int sv_kernel_in_flight(struct sv_kernel *k, struct sv_err *err)
{
    return sv_kernel_follow(k, 0, err);
}

struct sv_kernel_sums sv_kernel_count(const struct sv_kernel *k)
{
    (void)k;
    return (struct sv_kernel_sums){0};
}

uint64_t sv_kernel_ring_bytes(const struct sv_kernel *k)
{
    (void)k;
    return 0;
}

void sv_kernel_limit(struct sv_kernel *k, const struct sv_kernel_limits *limits)
{
    (void)k;
    (void)limits;
}

void sv_kernel_sample(struct sv_kernel *k, unsigned hz)
{
    (void)k;
    (void)hz;
}

int sv_kernel_attach_calls(struct sv_kernel *k, bool is_on, struct sv_err *err)
{
    (void)is_on;
    return sv_kernel_follow(k, 0, err);
}

bool sv_kernel_time_programs(struct sv_kernel *k)
{
    (void)k;
    return false;
}

int64_t sv_kernel_run_ns(const struct sv_kernel *k)
{
    (void)k;
    return 0;
}

unsigned sv_kernel_cpus(const struct sv_kernel *k)
{
    (void)k;
    return 0;
}

#endif
