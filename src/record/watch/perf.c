/* Stacks of running threads by the kernel's software clock (perf_event_open), where
 * perf_event_paranoid and the filter of system calls allow it for own processes: of programs that
 * are not Python, whose frames the looks read.
 *
 * One event for each CPU, opened on the command before it executes and inherited by all that it
 * starts. A sample has the registers and a copy of the stack, as that of the kernel programs. */
#include "record/watch/parts.h"

#include "record/bpf/sample.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__)

enum { DATA_BYTES = 256 << 10, PAGE = 4096, N_REGS = 17 };

/* The kernel's numbers of registers (asm/perf_regs.h), in the order of unwind information. */
static const uint8_t numbers[N_REGS] = {0, 3, 2, 1, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23, 8};

static uint64_t register_mask(void)
{
    uint64_t mask = 0;
    for (unsigned i = 0; i < N_REGS; i++)
        mask |= (uint64_t)1 << numbers[i];
    return mask;
}

static int open_event(uint32_t pid, int cpu, unsigned hz)
{
    struct perf_event_attr a = {
        .type = PERF_TYPE_SOFTWARE,
        .size = sizeof a,
        .config = PERF_COUNT_SW_CPU_CLOCK,
        .sample_freq = hz,
        .freq = 1,
        .sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU |
                       PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER,
        .sample_regs_user = register_mask(),
        .sample_stack_user = SV_WATCH_COPY,
        .exclude_kernel = 1,
        .exclude_hv = 1,
        .inherit = 1,
        .disabled = 1,
        .enable_on_exec = 1,
        .use_clockid = 1,
        .clockid = CLOCK_BOOTTIME,
    };
    return (int)syscall(SYS_perf_event_open, &a, (pid_t)pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

bool sv_watch_can_sample(int *why)
{
    int fd = open_event(0, -1, 1);
    *why = fd >= 0 ? 0 : errno;
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

void sv_watch_sample(struct sv_watch *w, uint32_t pid, unsigned hz)
{
    long n = sysconf(_SC_NPROCESSORS_CONF);
    for (int cpu = 0; cpu < n && w->n_perf < SV_WATCH_CPUS; cpu++) {
        int fd = open_event(pid, cpu, hz);
        if (fd < 0)
            continue; /* a CPU that is off */
        void *at = mmap(NULL, PAGE + DATA_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (at == MAP_FAILED) { /* the memory that a user may lock is used up */
            close(fd);
            break;
        }
        w->perf[w->n_perf++] = (struct sv_watch_perf){fd, at};
    }
}

void sv_watch_sample_close(struct sv_watch *w)
{
    for (unsigned i = 0; i < w->n_perf; i++) {
        munmap(w->perf[i].at, PAGE + DATA_BYTES);
        close(w->perf[i].fd);
    }
    w->n_perf = 0;
}

/* ---- records ---- */

/* A sample up to the copy of its stack; what follows: size, the bytes, how many of them are it. */
struct sample {
    struct perf_event_header head;
    uint32_t pid, tid;
    uint64_t ts_ns;
    uint32_t cpu, pad;
    uint64_t abi, regs[N_REGS], stack_bytes;
};

/* The kernel gives registers by rising number. */
static uint64_t register_of(const struct sample *s, unsigned number)
{
    unsigned at = 0;
    for (unsigned i = 0; i < N_REGS; i++)
        at += numbers[i] < number;
    return s->regs[at];
}

static void put_sample(struct sv_watch *w, const uint8_t *record, size_t size)
{
    const struct sample *s = (const void *)record;
    const struct sv_watch_process *p;
    struct sv_wire_sample *r = (void *)w->room;
    uint64_t dynamic = 0;
    if (size < sizeof *s || s->abi != PERF_SAMPLE_REGS_ABI_64 || s->stack_bytes > SV_WATCH_COPY ||
        size < sizeof *s + s->stack_bytes + sizeof dynamic)
        return;
    p = sv_watch_process(w, s->pid);
    if (!p || p->has_python)
        return;
    memcpy(&dynamic, record + sizeof *s + s->stack_bytes, sizeof dynamic);
    memset(r, 0, sizeof *r);
    sv_watch_head(&r->head, SV_WIRE_SAMPLE, s->pid, s->tid, (int64_t)s->ts_ns);
    r->head.flags = SV_STATE_INFERRED;
    r->head.what = s->cpu;
    for (unsigned i = 0; i < N_REGS; i++)
        r->stack.regs[i] = register_of(s, numbers[i]);
    r->stack.copy_bytes = !w->options.copies_stacks  ? 0
                          : dynamic < s->stack_bytes ? (uint32_t)dynamic
                                                     : (uint32_t)s->stack_bytes;
    memcpy(r + 1, record + sizeof *s, r->stack.copy_bytes);
    sv_watch_put(w, r, sizeof *r + r->stack.copy_bytes);
    w->sums.stacks++;
}

static void put_record(struct sv_watch *w, const uint8_t *record, size_t size)
{
    const struct perf_event_header *h = (const void *)record;
    uint64_t lost[2]; /* identity, number */
    if (h->type == PERF_RECORD_SAMPLE) {
        put_sample(w, record, size);
    } else if (h->type == PERF_RECORD_LOST && size >= sizeof *h + sizeof lost) {
        memcpy(lost, record + sizeof *h, sizeof lost);
        w->sums.lost += lost[1];
    }
}

static void copy_out(const uint8_t *data, uint64_t from, uint8_t *to, size_t n)
{
    size_t at = from & (DATA_BYTES - 1), first = n < DATA_BYTES - at ? n : DATA_BYTES - at;
    memcpy(to, data + at, first);
    memcpy(to + first, data, n - first);
}

bool sv_watch_take_samples(struct sv_watch *w)
{
    static _Alignas(8) uint8_t record[1 << 16]; /* as long as the head's number can be */
    uint64_t before = w->ring.producer;
    for (unsigned i = 0; i < w->n_perf; i++) {
        struct perf_event_mmap_page *page = w->perf[i].at;
        const uint8_t *data = (const uint8_t *)page + PAGE;
        uint64_t end = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE), at = page->data_tail;
        struct perf_event_header h;
        while (at + sizeof h <= end) {
            copy_out(data, at, (uint8_t *)&h, sizeof h);
            if (h.size < sizeof h || at + h.size > end)
                break;
            copy_out(data, at, record, h.size);
            put_record(w, record, h.size);
            at += h.size;
        }
        __atomic_store_n(&page->data_tail, end, __ATOMIC_RELEASE);
    }
    return w->ring.producer != before;
}

#else

bool sv_watch_can_sample(int *why)
{
    *why = ENOSYS;
    return false;
}
void sv_watch_sample(struct sv_watch *w, uint32_t pid, unsigned hz)
{
    (void)w;
    (void)pid;
    (void)hz;
}
void sv_watch_sample_close(struct sv_watch *w)
{
    (void)w;
}
bool sv_watch_take_samples(struct sv_watch *w)
{
    (void)w;
    return false;
}

#endif
