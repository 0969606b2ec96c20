/* The flight recorder: rings that keep the newest, written when something happens.
 *
 * The writer thread's other life: it does not empty the rings, it waits for a trigger
 * (stave_trigger, a signal, a slice that took too long), lets the session run on for a while if
 * asked to, and then writes what the rings hold to the next numbered file. Names and tracks are not
 * in the rings and therefore never overwritten. Threads continue recording meanwhile: each ring is
 * copied, and what was overwritten during the copy is left out. */
#include "sdk/drain/drain.h"
#include "sdk/session/destination.h"
#include "sdk/write/writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TICK_MS = 1000, SCAN_DEPTH = 64, WAIT_MS = 10 };

/* ---- rings that are being written ----
 *
 * A thread overwrites what is read here, by design: whoever reads asks afterwards how far the
 * thread has come, and throws away what may be torn. ThreadSanitizer cannot know that. */

#define RACES_BY_DESIGN __attribute__((no_sanitize("thread"), noinline))

RACES_BY_DESIGN static void copy_words(void *to, const void *from, size_t bytes)
{
    uint64_t *t = to;
    const volatile uint64_t *f = from;
    for (size_t i = 0; i < bytes / 8; i++)
        t[i] = f[i];
}

/* The thread may be writing so far past its head. */
static uint64_t margin_of(uint64_t size)
{
    return size / 4 < SV_RECORD_BYTES_MAX ? size / 4 : SV_RECORD_BYTES_MAX;
}

/* Where the thread is now, at the earliest after everything that was read before. */
static uint64_t head_after(const struct sv_ring *r)
{
#ifndef __x86_64__ /* there loads keep their order */
    atomic_thread_fence(memory_order_acquire);
#endif
    return atomic_load_explicit(&r->head, memory_order_acquire);
}

/* ---- triggers ---- */

static _Atomic uint32_t signalled; /* by the handler; one recorder per process */

static void on_trigger_signal(int sig)
{
    (void)sig;
    atomic_store(&signalled, 1);
}

void sv_flight_begin(struct sv_session_writer *w)
{
    if (!w->plan.trigger_signal)
        return;
    struct sigaction act = {.sa_handler = on_trigger_signal, .sa_flags = SA_RESTART};
    w->has_old_action = sigaction(w->plan.trigger_signal, &act, &w->old_action) == 0;
}

void sv_flight_end(struct sv_session_writer *w)
{
    if (w->has_old_action)
        sigaction(w->plan.trigger_signal, &w->old_action, NULL);
}

/* The slices of one ring that are open, as far as seen since the scan began. */
struct sv_flight_scan {
    uint64_t pos;
    uint32_t depth;
    uint64_t begun[SCAN_DEPTH]; /* raw time of those with the name, else 0 */
};

static bool has_name(struct sv_session_writer *w, uint32_t site)
{
    const struct sv_drain_site *s = sv_drain_site(sv_drain_all_names(w->drain), site);
    return s && w->trigger_str && s->name == w->trigger_str;
}

/* Reads one record of the scan; true: a slice of the name took too long. */
static bool scan_record(struct sv_session_writer *w, struct sv_flight_scan *scan, const uint64_t *r)
{
    unsigned kind = sv_word_kind(r[0]);
    if (kind == STAVE_KIND_BEGIN) {
        if (scan->depth < SCAN_DEPTH)
            scan->begun[scan->depth] = has_name(w, sv_word_site(r[0])) ? r[1] : 0;
        scan->depth++;
    } else if (kind == STAVE_KIND_END && scan->depth > 0) {
        scan->depth--;
        uint64_t begun = scan->depth < SCAN_DEPTH ? scan->begun[scan->depth] : 0;
        struct sv_ticks *t = sv_drain_ticks(w->drain);
        return begun &&
               sv_ticks_ns(t, r[1]) - sv_ticks_ns(t, begun) > (int64_t)w->plan.trigger_ms * 1000000;
    }
    return false;
}

static bool scan_ring(struct sv_session_writer *w, struct sv_flight_scan *scan,
                      const struct sv_ring_ref *ref)
{
    uint64_t head = atomic_load_explicit(&ref->ring->head, memory_order_acquire);
    uint64_t size = ref->ring->size;
    if (scan->pos == 0 || head - scan->pos > size / 2) { /* too far behind: begin again here */
        *scan = (struct sv_flight_scan){.pos = head};
        return false;
    }
    bool hit = false;
    uint64_t first = scan->pos;
    while (scan->pos < head) {
        uint64_t r[SV_RECORD_HEAD / 8];
        copy_words(r, ref->data + (scan->pos & (size - 1)), sizeof r);
        uint64_t bytes = sv_word_bytes(r[0]);
        if (bytes < SV_RECORD_HEAD || bytes > head - scan->pos)
            break;
        hit |= scan_record(w, scan, r);
        scan->pos += bytes;
    }
    scan->pos = head;
    if (head_after(ref->ring) + margin_of(size) - first <= size)
        return hit;
    *scan = (struct sv_flight_scan){.pos = head}; /* overtaken: nothing of it is certain */
    return false;
}

static bool scan_rings(struct sv_session_writer *w)
{
    if (!w->plan.trigger_name[0])
        return false;
    uint32_t n = atomic_load_explicit(&w->process->n_rings, memory_order_acquire);
    size_t had = w->n_scans;
    w->scans = sv_grow(w->scans, &w->cap_scans, n, sizeof *w->scans);
    if (n > had)
        memset(w->scans + had, 0, (n - had) * sizeof *w->scans);
    w->n_scans = n;
    sv_session_writer_names(w);
    w->trigger_str = sv_dict_find_str(w->dict, w->plan.trigger_name, strlen(w->plan.trigger_name));
    bool hit = false;
    for (uint32_t i = 0; i < n; i++)
        hit |= scan_ring(w, &w->scans[i], &w->process->rings[i]);
    return hit;
}

/* ---- a file ---- */

struct copy {
    struct sv_ring ring;
    uint8_t *data;
    uint64_t start, forgotten;
};

/* The oldest block that is still whole after the copy. */
static uint64_t oldest(const struct sv_ring *r, uint64_t floor, uint64_t head)
{
    uint64_t best = head;
    for (int i = 0; i < SV_RING_BLOCKS; i++) {
        uint64_t first = atomic_load_explicit(&r->block_first[i], memory_order_relaxed);
        if (first >= floor && first >= r->size && first < best)
            best = first;
    }
    return best;
}

static void copy_ring(struct copy *c, const struct sv_ring_ref *ref)
{
    uint64_t size = ref->ring->size;
    uint64_t head = atomic_load_explicit(&ref->ring->head, memory_order_acquire);
    c->data = sv_realloc(NULL, 2 * (size_t)size);
    copy_words(c->data, ref->data, (size_t)size);
    copy_words(&c->ring, ref->ring, sizeof c->ring);
    uint64_t last, lost;
    sv_ring_forgot(ref->ring, &last, &lost);
    sv_ring_forget(&c->ring, last, lost);
    atomic_store(&c->ring.head, head);
    atomic_store(&c->ring.lost_full, 0);
    uint64_t after = head_after(ref->ring) + margin_of(size);
    memcpy(c->data + size, c->data, size);
    c->start = oldest(&c->ring, after > size ? after - size : 0, head);
    uint64_t begun =
        atomic_load(&c->ring.tail); /* nobody moves it: what is before is another session's */
    if (c->start < begun)
        c->start = begun;
    c->forgotten = sv_ring_forgotten(&c->ring, c->data, c->ring.size, c->start);
}

static void write_trigger(struct sv_session_writer *w, struct sv_sink *sink, struct sv_dict *dict,
                          const char *reason, int64_t when_ns)
{
    struct sv_arg arg = {.key = sv_dict_cstr(dict, "reason"), .type = SV_ARG_TEXT};
    arg.text = reason;
    arg.size = (uint32_t)strlen(reason) & 0xffffff;
    struct sv_event e = {.ts_ns = when_ns,
                         .track = sv_dict_process(dict, 0, w->process->pid),
                         .name = sv_dict_cstr(dict, "trigger"),
                         .cat = sv_dict_cstr(dict, "stave"),
                         .kind = SV_INSTANT,
                         .n_args = 1,
                         .args = &arg};
    sink->write(sink, &e, 1, NULL);
}

/* In front of the file: counts what is handed to it. */
struct counting {
    struct sv_sink sink;
    struct sv_sink *next;
    struct sv_session_file *session;
};

static int count_write(struct sv_sink *s, const struct sv_event *events, size_t n,
                       struct sv_err *err)
{
    struct counting *c = (struct counting *)s;
    atomic_fetch_add_explicit(&c->session->n_events, n, memory_order_relaxed);
    return c->next->write(c->next, events, n, err);
}

static int pump_copies(struct sv_session_writer *w, struct sv_sink *sink, struct sv_dict *dict,
                       struct copy *copies, uint32_t n, struct sv_err *err)
{
    struct sv_drain *d = sv_drain_new(dict, &w->report, w->process->pid);
    struct sv_ticks *ticks = sv_drain_ticks(w->drain);
    struct sv_tick now = sv_ticks_read((enum sv_counter)w->process->session->counter);
    sv_drain_tick(d, &ticks->first);
    for (size_t i = 0; i < ticks->n; i++)
        sv_drain_tick(d, &ticks->at[i]);
    sv_drain_tick(d, &now);
    if (w->plan.keep_ms)
        sv_drain_from(d, now.boot_ns - (int64_t)(w->plan.keep_ms + w->plan.after_ms) * 1000000);
    sv_session_writer_names_into(d);
    for (uint32_t i = 0; i < n; i++)
        sv_drain_add_ring(d, &copies[i].ring, copies[i].data, copies[i].ring.size, copies[i].start)
            ->lost_overwritten = copies[i].forgotten;
    sv_drain_round(d);
    struct counting counting = {
        {.write = count_write, .takes = sink->takes}, sink, w->process->session};
    int status = sv_pump_round(sv_drain_source(d), &counting.sink, w->batch, err);
    for (uint32_t i = 0; i < n; i++) {
        struct sv_drain_ring *r = sv_drain_ring(d, i);
        sv_drain_name_thread(d, r,
                             copies[i].ring.name[0] ? copies[i].ring.name : copies[i].ring.comm);
    }
    sv_drain_free(d);
    return status;
}

/* t.pftrace → t.1.pftrace */
static bool write_file(struct sv_session_writer *w, uint32_t number, const char *reason,
                       int64_t when_ns, struct sv_err *err)
{
    char out[SV_PATH_MAX], part[SV_PATH_MAX + 8];
    snprintf(out, sizeof out, "%s", w->out);
    if (!sv_destination_number(out, sizeof out, number))
        return false;
    snprintf(part, sizeof part, "%s.part", out);
    struct sv_dict *dict = sv_dict_new();
    dict->clocks.trace_clock = SV_CLOCK_BOOTTIME;
    sv_destination_describe(dict, w->process->pid);
    sv_dict_set_meta(dict, "trigger", reason, strlen(reason), false);
    struct sv_snapshot snapshot;
    sv_ticks_snapshot(&snapshot, NULL);
    sv_clocks_add(&dict->clocks, &snapshot);
    struct sv_sink *sink = NULL;
    int status = sv_destination_sink(out, part, w->plan.compress, dict, &w->report, &sink, err);
    if (status >= 0) {
        uint32_t n = atomic_load_explicit(&w->process->n_rings, memory_order_acquire);
        struct copy *copies = sv_alloc((n + 1) * sizeof *copies);
        for (uint32_t i = 0; i < n; i++)
            copy_ring(&copies[i], &w->process->rings[i]);
        status = pump_copies(w, sink, dict, copies, n, err);
        write_trigger(w, sink, dict, reason, when_ns);
        int closed = sink->close(sink, status < 0, err);
        status = status < 0 ? status : closed;
        for (uint32_t i = 0; i < n; i++)
            free(copies[i].data);
        free(copies);
    }
    if (status >= 0 && rename(part, out) != 0)
        status = sv_err_sys(err, "cannot rename the finished file");
    sv_dict_free(dict);
    return status >= 0;
}

/* Or is about to be: who asks what a thread may do ends the program next. */
static bool is_ended(const struct sv_session_writer *w)
{
    return atomic_load(&w->stop) || atomic_load(&w->process->is_ending) ||
           atomic_load(&w->process->restricted) == SV_RESTRICTED_ASKED;
}

/* Recording continues for a while, unless the program ends. */
static void wait_after(struct sv_session_writer *w)
{
    int64_t until = sv_session_writer_now_ns() + (int64_t)w->plan.after_ms * 1000000;
    while (!is_ended(w) && sv_session_writer_now_ns() < until)
        usleep(w->plan.after_ms < WAIT_MS ? 500 : WAIT_MS * 1000);
}

static void fire(struct sv_session_writer *w, const char *reason, uint32_t number, int64_t when_ns)
{
    struct sv_err err = {0};
    if (w->plan.after_ms)
        wait_after(w);
    if (!write_file(w, number, reason, when_ns, &err))
        sv_say("%s: %s", w->out, err.msg[0] ? err.msg : "cannot write the flight recorder's file");
}

/* ---- the loop ---- */

/* Files of an earlier run stay. */
static uint32_t next_number(struct sv_session_writer *w)
{
    char out[SV_PATH_MAX];
    struct stat st;
    uint32_t n;
    do {
        n = atomic_fetch_add(&w->n_files, 1) + 1;
        snprintf(out, sizeof out, "%s", w->out);
    } while (sv_destination_number(out, sizeof out, n) && lstat(out, &st) == 0);
    return n;
}

void sv_flight_round(struct sv_session_writer *w)
{
    int64_t now = sv_session_writer_now_ns();
    if (now - w->tick_ns > TICK_MS * 1000000ll) {
        sv_session_writer_tick(w);
        w->tick_ns = now;
    }
    while (atomic_load_explicit(&w->triggers_asked, memory_order_acquire) !=
           atomic_load_explicit(&w->triggers_done, memory_order_relaxed)) {
        const struct sv_trigger *t =
            &w->triggers[atomic_load_explicit(&w->triggers_done, memory_order_relaxed) %
                         SV_TRIGGERS_MAX];
        fire(w, t->reason, t->number, t->when_ns);
        atomic_fetch_add_explicit(&w->triggers_done, 1, memory_order_release);
    }
    if (atomic_exchange(&signalled, 0))
        fire(w, "signal", next_number(w), sv_session_writer_boot_ns());
    if (scan_rings(w)) {
        fire(w, w->plan.trigger_name, next_number(w), sv_session_writer_boot_ns());
        for (size_t i = 0; i < w->n_scans; i++)
            w->scans[i].pos = 0;
    }
}

int stave_trigger(const char *reason)
{
    struct sv_process *p = sv_process;
    if (!p || atomic_load(&p->ready) != 2)
        return STAVE_EUSAGE;
    sv_control_lock(p);
    int number = STAVE_EUSAGE;
    if (p->has_writer && p->full == STAVE_FULL_OVERWRITE) {
        struct sv_session_writer *w = p->writer;
        uint32_t asked = atomic_load_explicit(&w->triggers_asked, memory_order_relaxed);
        number = STAVE_ELIMIT;
        /* Pairs with the release of the writer: it has read what was in the place. */
        if (asked - atomic_load_explicit(&w->triggers_done, memory_order_acquire) <
            SV_TRIGGERS_MAX) {
            struct sv_trigger *t = &w->triggers[asked % SV_TRIGGERS_MAX];
            snprintf(t->reason, sizeof t->reason, "%s", reason ? reason : "");
            t->number = next_number(w);
            t->when_ns = sv_session_writer_boot_ns();
            number = (int)t->number;
            atomic_store_explicit(&w->triggers_asked, asked + 1, memory_order_release);
            if (!w->plan.after_ms)
                sv_session_writer_flush(p);
        }
    }
    sv_control_unlock(p);
    return number;
}
