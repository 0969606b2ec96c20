/* The watcher's ring, its interval, and its looks: see watch.h. Called by the recorder.
 *
 * The ring has the kernel's form and is read in the same thread right after each look, so it never
 * wraps around within a record: what is left of its end is discarded. */
#include "record/watch/parts.h"

#include "core/base/mem.h"

#include <linux/bpf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { RING = 8 << 20, THOROUGH_EVERY = 10, YOUNG_LOOKS = 3, COST_SHARE = 40, FDS_LEFT = 128 };
#define EVERY_MOST_NS ((int64_t)1000000000)

static int64_t cpu_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Half of the descriptors that this process may have. */
static int descriptors_to_use(void)
{
    struct rlimit l;
    if (getrlimit(RLIMIT_NOFILE, &l) != 0)
        return 0;
    int64_t n = l.rlim_cur == RLIM_INFINITY || l.rlim_cur > 16384 ? 16384 : (int64_t)l.rlim_cur;
    return n > FDS_LEFT ? (int)(n - FDS_LEFT) / 2 : 0;
}

struct sv_watch *sv_watch_new(const struct sv_watch_options *options, struct sv_krings *rings)
{
    struct sv_watch *w = sv_alloc(sizeof *w);
    w->options = *options;
    w->ring.data = sv_alloc(RING);
    w->room = sv_alloc(sizeof(struct sv_wire_offcpu) +
                       SV_STACK_PYTHON_MAX * sizeof(struct sv_wire_pyframe) + SV_WATCH_COPY);
    w->sums.every_ns = options->every_ns;
    w->max_fds = descriptors_to_use();
    sv_krings_add(rings, &w->ring.consumer, &w->ring.producer, w->ring.data, RING, true);
    return w;
}

void sv_watch_all(struct sv_watch *w)
{
    w->options.inside = NULL;
}

void sv_watch_free(struct sv_watch *w)
{
    if (!w)
        return;
    for (size_t i = 0; i < w->n_threads; i++) {
        for (unsigned k = 0; k < SV_WATCH_FILES; k++)
            if (w->threads[i].fds[k] >= 0)
                close(w->threads[i].fds[k]);
        free(w->threads[i].stack);
    }
    sv_watch_sample_close(w);
    sv_map_fini(&w->by_pid);
    sv_map_fini(&w->by_tid);
    sv_map_fini(&w->codes);
    sv_map_fini(&w->peers);
    free(w->processes);
    free(w->threads);
    free(w->ring.data);
    free(w->room);
    free(w);
}

/* ---- the ring ---- */

static void put_head(struct sv_watch *w, uint32_t size)
{
    memcpy(w->ring.data + (w->ring.producer & (RING - 1)), &size, sizeof size);
}

void sv_watch_put(struct sv_watch *w, const void *record, size_t size)
{
    uint64_t step = (size + BPF_RINGBUF_HDR_SZ + 7) & ~(uint64_t)7;
    uint64_t to_end = RING - (w->ring.producer & (RING - 1));
    uint64_t skipped = step > to_end ? to_end : 0;
    if (w->ring.producer + skipped + step - w->ring.consumer > RING) {
        w->sums.lost++;
        return;
    }
    if (skipped) {
        put_head(w, (uint32_t)(skipped - BPF_RINGBUF_HDR_SZ) | BPF_RINGBUF_DISCARD_BIT);
        w->ring.producer += skipped;
    }
    put_head(w, (uint32_t)size);
    memcpy(w->ring.data + (w->ring.producer & (RING - 1)) + BPF_RINGBUF_HDR_SZ, record, size);
    w->ring.producer += step;
}

/* ---- looks ---- */

struct sv_watch_process *sv_watch_process(const struct sv_watch *w, uint32_t pid)
{
    const uint64_t *at = sv_map_find(&w->by_pid, pid);
    return at ? &w->processes[*at - 1] : NULL;
}

void sv_watch_add(struct sv_watch *w, uint32_t pid)
{
    bool is_new;
    uint64_t *at = sv_map_add(&w->by_pid, pid, &is_new);
    if (!is_new)
        return;
    w->processes =
        sv_grow(w->processes, &w->cap_processes, w->n_processes + 1, sizeof *w->processes);
    w->processes[w->n_processes] = (struct sv_watch_process){.pid = pid};
    *at = ++w->n_processes;
}

void sv_watch_python(struct sv_watch *w, uint32_t pid, const struct sv_wire_python *offsets)
{
    struct sv_watch_process *p = sv_watch_process(w, pid);
    if (!p)
        return;
    p->has_python = offsets != NULL;
    if (offsets)
        p->python = *offsets;
}

static uint64_t tid_key(const struct sv_watch_thread *x)
{
    return (uint64_t)x->pid << 32 | x->tid;
}

static void drop_thread(struct sv_watch *w, size_t i)
{
    struct sv_watch_thread *x = &w->threads[i], *last = &w->threads[w->n_threads - 1];
    for (unsigned k = 0; k < SV_WATCH_FILES; k++)
        if (x->fds[k] >= 0) {
            close(x->fds[k]);
            w->n_fds--;
        }
    free(x->stack);
    sv_map_remove(&w->by_tid, tid_key(x));
    if (x != last) {
        uint64_t *at = sv_map_find(&w->by_tid, tid_key(last));
        *x = *last;
        if (at)
            *at = i + 1;
    }
    w->n_threads--;
}

static void drop_process(struct sv_watch *w, size_t i)
{
    struct sv_watch_process *p = &w->processes[i], *last = &w->processes[w->n_processes - 1];
    sv_map_remove(&w->by_pid, p->pid);
    if (p != last) {
        uint64_t *at = sv_map_find(&w->by_pid, last->pid);
        *p = *last;
        if (at)
            *at = i + 1;
    }
    w->n_processes--;
}

static void end_processes(struct sv_watch *w, int64_t now_ns)
{
    for (size_t i = 0; i < w->n_processes;) {
        const struct sv_watch_process *p = &w->processes[i];
        if (!p->is_gone) {
            i++;
            continue;
        }
        struct sv_wire_exit e = {.code = -1, .is_last = 1};
        sv_watch_head(&e.head, SV_WIRE_EXIT, p->pid, p->pid, now_ns);
        if (w->options.has_processes && p->is_known)
            sv_watch_put(w, &e, sizeof e);
        drop_process(w, i);
    }
}

static void look(struct sv_watch *w, int64_t now_ns)
{
    int64_t began = cpu_now_ns();
    bool is_thorough = w->sums.looks % THOROUGH_EVERY == 0;
    sv_watch_find(w, now_ns, is_thorough);
    for (size_t i = 0; i < w->n_threads;) {
        struct sv_watch_thread *x = &w->threads[i];
        if (x->looks++ < YOUNG_LOOKS || (is_thorough && x->named_at != x->last.switches))
            sv_watch_name(w, x, now_ns);
        if (sv_watch_thread(w, &w->threads[i], now_ns)) {
            i++;
            continue;
        }
        sv_watch_thread_end(w, &w->threads[i], now_ns);
        drop_thread(w, i);
    }
    end_processes(w, now_ns);
    int64_t spent = cpu_now_ns() - began;
    w->sums.spent_ns += spent;
    w->sums.looks++;
    /* At most a fortieth of one CPU: with very many threads it looks less often. */
    int64_t every = spent * COST_SHARE;
    every = every < w->options.every_ns ? w->options.every_ns : every;
    w->sums.every_ns = every > EVERY_MOST_NS ? EVERY_MOST_NS : every;
    /* Not in step with what the program repeats: from a half to three halves of the interval. */
    w->random = sv_mix64(w->random + (uint64_t)now_ns);
    w->next_ns = now_ns + w->sums.every_ns / 2 + (int64_t)(w->random % (uint64_t)w->sums.every_ns);
}

int64_t sv_watch_next_ns(const struct sv_watch *w)
{
    return w->next_ns;
}

bool sv_watch_look(struct sv_watch *w, int64_t now_ns)
{
    bool has_samples = sv_watch_take_samples(w);
    if (now_ns < w->next_ns)
        return has_samples;
    look(w, now_ns);
    return true;
}

void sv_watch_look_now(struct sv_watch *w, int64_t now_ns)
{
    sv_watch_take_samples(w);
    look(w, now_ns);
}

void sv_watch_finish(struct sv_watch *w, int64_t now_ns)
{
    look(w, now_ns);
    while (w->n_threads > 0) {
        sv_watch_thread_end(w, &w->threads[w->n_threads - 1], now_ns);
        drop_thread(w, w->n_threads - 1);
    }
}

struct sv_watch_sums sv_watch_sums(const struct sv_watch *w)
{
    return w->sums;
}
