/* The writer: one thread of the traced process that moves its rings to the output.
 *
 * Looks at the rings by the clock, more often while they fill, and is woken by threads that wait
 * for ring space; never by who records. A round reads the heads, the names and a clock pair, pumps
 * events to the sink, and commits: the output is flushed, the journal of the session is written
 * (session_layout.h), and only then the tails move. So whatever the rings have given up is in the
 * file, and what the file does not have is still in the rings, at every instruction.
 *
 * It uses the parts of core/, which are single-threaded: everything below is accessed by this
 * thread only, except the struct's atomics. So are the descriptors, which are in a table of the
 * thread's own (own_table.h): other threads must not use them. When memory is exhausted it ends by
 * longjmp (sv_out_of_memory); the program continues. */
#include "sdk/write/writer.h"
#include "core/base/now.h"

#include "core/files/output.h"
#include "sdk/drain/drain.h"
#include "sdk/ring/ringless.h"
#include "sdk/session/destination.h"
#include "sdk/write/own_table.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    PERIOD_MIN_US = 1000,
    PERIOD_MAX_US = 10000,
    COMMIT_MS = 50,
    SNAPSHOT_MS = 10000,
    NAMES_MS = 1000,
    BATCHES_PER_LOOK = 16,
    ROUND_BYTES = 64 << 10,
    LAST_ROUNDS = 200,
    NEAR_LIMIT_BYTES = 1 << 20,
    PEEK_MIN_US = 500,
    ALONE_MS = 250,
    LOCK_MS = 20
};

int64_t sv_session_writer_now_ns(void)
{
    return sv_now_ns(CLOCK_MONOTONIC);
}

int64_t sv_session_writer_boot_ns(void)
{
    return sv_now_ns(CLOCK_BOOTTIME);
}

/* ---- what a round reads besides the rings ---- */

/* The log from `from` on; returns how far it was understood. */
static uint64_t read_names(struct sv_drain *d, uint64_t from)
{
    size_t n;
    const uint8_t *bytes = sv_names_log(from, &n);
    return n > 0 ? from + sv_drain_names(d, bytes, n) : from;
}

void sv_session_writer_names(struct sv_session_writer *w)
{
    w->names_read = read_names(w->drain, w->names_read);
}

void sv_session_writer_names_into(struct sv_drain *d)
{
    read_names(d, 0);
}

void sv_session_writer_tick(struct sv_session_writer *w)
{
    struct sv_session_file *s = w->process->session;
    struct sv_tick tick = sv_ticks_read((enum sv_counter)s->counter);
    sv_drain_tick(w->drain, &tick);
    uint64_t n = atomic_load_explicit(&s->n_ticks, memory_order_relaxed);
    s->ticks[n == 0 ? 0 : 1 + (n - 1) % (SV_TICKS_MAX - 1)] = tick;
    atomic_store_explicit(&s->n_ticks, n + 1, memory_order_release);
    if (w->snapshot_ns && tick.mono_ns - w->snapshot_ns < SNAPSHOT_MS * 1000000ll)
        return;
    struct sv_snapshot snapshot;
    sv_ticks_snapshot(&snapshot, &tick);
    sv_clocks_add(&w->dict->clocks, &snapshot);
    w->snapshot_ns = tick.mono_ns;
}

static void meet_rings(struct sv_session_writer *w)
{
    uint32_t n = atomic_load_explicit(&w->process->n_rings, memory_order_acquire);
    for (size_t i = sv_drain_n_rings(w->drain); i < n; i++) {
        const struct sv_ring_ref *ref = &w->process->rings[i];
        sv_drain_add_ring(w->drain, ref->ring, ref->data, ref->ring->size,
                          atomic_load_explicit(&ref->ring->tail, memory_order_relaxed));
    }
}

/* The name of the thread that has the ring, unless that is another one by now. The lock keeps new
 * owners out meanwhile. */
static bool copy_name(const struct sv_drain_ring *r, char text[SV_GIVEN_NAME])
{
    memset(text, 0, SV_GIVEN_NAME);
    if (!sv_lock_within(LOCK_MS)) /* the program never waits for the writer */
        return false;
    bool is_same = atomic_load(&r->ring->owner) == r->owner;
    bool is_given = r->ring->name[0] != '\0';
    if (is_same)
        memcpy(text, is_given ? r->ring->name : r->ring->comm,
               is_given ? sizeof r->ring->name - 1 : sizeof r->ring->comm - 1);
    sv_unlock();
    return is_same && !is_given;
}

static void name_process(struct sv_session_writer *w)
{
    char text[SV_GIVEN_NAME];
    uint32_t n = atomic_load(&w->process->n_named);
    if (n == w->n_named || !sv_given_name(text))
        return;
    w->n_named = n;
    sv_track t = sv_dict_process(w->dict, 0, w->process->pid);
    w->dict->tracks[t].name = sv_dict_cstr(w->dict, text);
    sv_dict_touch(w->dict, t);
}

/* Threads may set their names late: read them again from time to time, and at the end. */
static void name_threads(struct sv_session_writer *w, bool all)
{
    if (w->cannot_lock)
        return;
    name_process(w);
    for (size_t i = 0; i < sv_drain_n_rings(w->drain); i++) {
        struct sv_drain_ring *r = sv_drain_ring(w->drain, i);
        if (!r->track || (!all && w->dict->tracks[r->track].is_described))
            continue;
        char path[64], text[SV_GIVEN_NAME];
        if (copy_name(r, text)) {
            snprintf(path, sizeof path, "/proc/self/task/%u/comm", atomic_load(&r->ring->tid));
            bool is_live = atomic_load(&r->ring->state) == SV_RING_LIVE &&
                           (w->has_own_table || w->is_ending);
            int fd = is_live ? open(path, O_RDONLY | O_CLOEXEC) : -1;
            ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : 0;
            if (n > 0)
                text[n - 1] = '\0';
            if (fd >= 0)
                close(fd);
        }
        sv_drain_name_thread(w->drain, r, text);
    }
}

/* ---- failure ---- */

static const struct sv_commit_point *last_point(const struct sv_session_writer *w)
{
    static const struct sv_commit_point none;
    return w->n_points ? &w->points[(w->n_points - 1) % SV_POINTS] : &none;
}

static void lose(struct sv_session_writer *w, uint64_t n)
{
    w->lost += n;
    atomic_fetch_add_explicit(&w->process->session->lost_output, n, memory_order_relaxed);
}

/* What is past it is in no commit. Recovery cuts it, too. */
static void keep_what_is_whole(const struct sv_session_writer *w)
{
    if (w->fd < 0)
        sv_part_cut(w, last_point(w)->bytes);
}

/* What a stream did not take stays in the rings, for `stave recover`. What a file did not take is
 * counted. */
static bool leaves_rings(const struct sv_session_writer *w)
{
    return w->failed && w->fd >= 0;
}

static void fail_stream(struct sv_session_writer *w, const struct sv_err *err)
{
    char line[2 * SV_PATH_MAX + 700];
    snprintf(line, sizeof line, "%s: %s ('stave recover %s -o FILE' saves what was not sent)",
             w->out, err->msg, w->process->dir);
    sv_session_fail(line, 0);
}

/* Without the name of the growing file: OUT is named already. */
static const char *reason(const struct sv_session_writer *w, const struct sv_err *err)
{
    size_t n = strlen(w->part);
    return n && strncmp(err->msg, w->part, n) == 0 && err->msg[n] == ':' ? err->msg + n + 2
                                                                         : err->msg;
}

/* The output has failed. The rings are still read, so that no thread waits and all events are
 * counted. */
void sv_session_writer_fail(struct sv_session_writer *w, const struct sv_err *err)
{
    if (w->failed)
        return;
    w->failed = true;
    if (w->fd >= 0) {
        fail_stream(w, err);
        return;
    }
    w->failed_ns = sv_session_writer_boot_ns();
    w->clients.is_lost = true;
    snprintf(w->cause, sizeof w->cause, "%.120s", reason(w, err));
    atomic_store(&w->process->output_failed, 1);
    sv_say("%s: %s; further events are lost and counted%s", w->out, reason(w, err),
           sv_destination_can_go_on(w->out) ? "" : " (stave recover saves the rest: -o FILE)");
    lose(w, w->written - last_point(w)->written);
    keep_what_is_whole(w);
}

/* ---- commit ---- */

/* Everything handed to the sink is in the output; false: it is not. */
static bool flush_output(struct sv_session_writer *w, struct sv_err *err)
{
    if (w->sink->flush && w->sink->flush(w->sink, err) < 0)
        return false;
    if (w->fd >= 0 && !sv_stream_send(w, err))
        return false;
    /* Of a stream there is nothing to join: recovery has the rings only. */
    uint64_t bytes = w->fd >= 0 ? 0 : sv_output_position(w->sink->file);
    w->points[w->n_points++ % SV_POINTS] = (struct sv_commit_point){bytes, w->written};
    return true;
}

/* Bytes that the file may still grow by. */
static uint64_t space_left(const struct sv_session_writer *w)
{
    struct rlimit limit;
    struct statvfs fs;
    uint64_t bytes = last_point(w)->bytes, left = UINT64_MAX;
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
        left = limit.rlim_cur > bytes ? limit.rlim_cur - bytes : 0;
    if (fstatvfs(w->part_fd, &fs) == 0 && fs.f_bavail < left / fs.f_frsize)
        left = (uint64_t)fs.f_bavail * fs.f_frsize;
    return left;
}

void sv_session_writer_commit(struct sv_session_writer *w)
{
    struct sv_session_file *s = w->process->session;
    struct sv_err err = {0};
    if (!w->failed && !flush_output(w, &err))
        sv_session_writer_fail(w, &err);
    if (leaves_rings(w))
        return;
    uint64_t round = w->round + 1;
    for (size_t i = 0; i < sv_drain_n_rings(w->drain); i++)
        sv_drain_mark(w->drain, i, w->process->rings[i].ring, round);
    sv_drain_mark_ringless(w->drain, s, round);
    sv_clients_mark(&w->clients, round);
    atomic_store_explicit(&s->bytes[round & 1], last_point(w)->bytes, memory_order_relaxed);
    atomic_store_explicit(&s->round, round, memory_order_release); /* now it is so */
    w->round = round;
    for (size_t i = 0; i < sv_drain_n_rings(w->drain); i++) /* pairs with the acquire in slow.c */
        atomic_store_explicit(&w->process->rings[i].ring->tail, sv_drain_ring(w->drain, i)->pos,
                              memory_order_release);
    sv_clients_release(&w->clients);
    w->uncommitted = 0;
    w->commit_ns = sv_session_writer_now_ns();
    w->is_near_limit = w->fd < 0 && !w->failed && space_left(w) < NEAR_LIMIT_BYTES;
}

/* ---- rounds ---- */

/* Is some ring so full that waiting would be wrong? */
static bool is_pressed(const struct sv_session_writer *w)
{
    for (size_t i = 0; i < sv_drain_n_rings(w->drain); i++) {
        const struct sv_drain_ring *r = sv_drain_ring(w->drain, i);
        if (r->pos - atomic_load_explicit(&r->ring->tail, memory_order_relaxed) > r->size / 8)
            return true;
    }
    return sv_clients_are_pressed(&w->clients);
}

/* Counts the events of a batch: a slice with its begin, a loss with its number. */
static uint64_t weigh(struct sv_session_writer *w, const struct sv_event *events, size_t n)
{
    uint64_t weight = 0;
    for (const struct sv_event *e = events; e < events + n; e++) {
        weight += e->kind != SV_END;
        if (__builtin_expect(e->kind != SV_LOSS || e->n_args == 0 || e->args[0].i <= 0, 1))
            continue;
        uint64_t lost = (uint64_t)e->args[0].i;
        weight += lost - 1;
        if (e->name == w->cause_full)
            w->reported_full += lost;
        else if (e->name == w->cause_nested || e->name == w->cause_ring)
            w->reported_other += lost;
    }
    return weight;
}

/* Ring space is released during the round, so that waiting threads continue in parallel. Fails
 * where the round must end, because what comes stays in the rings. */
static int meter_write(struct sv_sink *s, const struct sv_event *events, size_t n,
                       struct sv_err *err)
{
    struct sv_session_writer *w =
        (struct sv_session_writer *)((char *)s - offsetof(struct sv_session_writer, meter));
    uint64_t weight = weigh(w, events, n);
    if (w->fd >= 0)
        w->sent_events += sv_stream_count(events, n);
    if (!w->failed) {
        w->written += weight;
        if (w->parts)
            sv_turn_note(w, events, n);
        if (w->sink->write(w->sink, events, n, err) < 0)
            sv_session_writer_fail(w, err);
        else
            atomic_fetch_add_explicit(&w->process->session->n_events, n, memory_order_relaxed);
    } else {
        lose(w, weight);
    }
    if (w->is_near_limit && !w->failed && !flush_output(w, err))
        sv_session_writer_fail(w, err);
    if (++w->n_batches % BATCHES_PER_LOOK == 0 && !leaves_rings(w) && is_pressed(w))
        sv_session_writer_commit(w);
    return leaves_rings(w) ? SV_EIO : 0;
}

static void pump(struct sv_session_writer *w)
{
    struct sv_err err = {0};
    w->n_batches = 0;
    if (!leaves_rings(w) &&
        sv_pump_round(sv_drain_source(w->drain), &w->meter, w->batch, &err) >= 0)
        sv_pump_round(&w->clients.source, &w->meter, w->batch, &err);
}

/* Returns how many bytes of rings it read; commits when enough has gathered. */
static uint64_t one_round(struct sv_session_writer *w, bool must_commit, bool is_last)
{
    meet_rings(w);
    uint64_t bytes = sv_drain_round(w->drain);
    sv_session_writer_names(w);
    sv_session_writer_tick(w);
    int64_t now = sv_session_writer_now_ns();
    w->clients.with_source = w->plan.with_source;
    if (!w->has_own_table)
        sv_clients_use_dir(&w->clients, sv_files_dir(w->process));
    bytes += sv_clients_round(&w->clients, now, is_last);
    if (bytes)
        name_threads(w, now - w->named_ns > NAMES_MS * 1000000ll && (w->named_ns = now) != 0);
    pump(w);
    w->uncommitted += bytes;
    bool is_due = w->uncommitted && (is_pressed(w) || now - w->commit_ns > COMMIT_MS * 1000000ll);
    if (must_commit || is_due || w->clients.has_gone)
        sv_session_writer_commit(w);
    return bytes;
}

/* Is there anything that a thread has recorded and this writer has not read, or that a thread is
 * about to record? */
static bool has_more(const struct sv_session_writer *w)
{
    for (size_t i = 0; i < sv_drain_n_rings(w->drain); i++) {
        const struct sv_drain_ring *r = sv_drain_ring(w->drain, i);
        if (atomic_load_explicit(&r->ring->head, memory_order_acquire) != r->pos)
            return true;
    }
    return atomic_load(&w->process->n_waiting) != 0;
}

/* Sites are off: records that are being written arrive within a few rounds. */
static void last_rounds(struct sv_session_writer *w)
{
    w->snapshot_ns = 0;
    one_round(w, false, true);
    for (int i = 0; i < LAST_ROUNDS && has_more(w); i++) {
        sv_session_writer_commit(w);
        usleep(100);
        one_round(w, false, true);
    }
}

/* Is a ring filling up, which this writer could empty? *heads changes when something was
 * recorded. */
static bool is_filling(const struct sv_session_writer *w, uint64_t *heads)
{
    bool can_empty = w->plan.full != STAVE_FULL_OVERWRITE && !leaves_rings(w), is_filling = false;
    uint32_t n = atomic_load_explicit(&w->process->n_rings, memory_order_acquire);
    *heads = n;
    for (uint32_t i = 0; i < n; i++) {
        const struct sv_ring *r = w->process->rings[i].ring;
        uint64_t head = atomic_load_explicit(&r->head, memory_order_relaxed);
        *heads += head;
        is_filling |= head - atomic_load_explicit(&r->tail, memory_order_relaxed) > r->size / 4 &&
                      can_empty;
    }
    return is_filling;
}

/* Nobody wakes the writer when a ring fills up: it looks at the heads meanwhile, every PEEK_MIN_US
 * while they move. */
static void wait_for_work(struct sv_session_writer *w, uint32_t seen, unsigned us)
{
    if (us >= PERIOD_MAX_US && sv_doze(w, seen))
        return;
    while (us > 0) {
        uint64_t heads;
        unsigned peek = w->peek_us < PEEK_MIN_US ? PEEK_MIN_US : w->peek_us;
        unsigned step = peek < us ? peek : us;
        struct timespec limit = {.tv_nsec = step * 1000l};
        syscall(SYS_futex, &w->process->wake, FUTEX_WAIT_PRIVATE, seen, &limit, NULL, 0);
        if (atomic_load(&w->process->wake) != seen || is_filling(w, &heads))
            return;
        /* The last step may be short: that says nothing about the next one. */
        w->peek_us = heads != w->heads      ? PEEK_MIN_US
                     : peek < PERIOD_MAX_US ? peek + peek / 4
                                            : peek;
        if (heads != w->heads)
            w->moved_ns = sv_session_writer_now_ns();
        w->heads = heads;
        us -= step;
    }
}

/* ---- what only this thread can see ---- */

/* The text of a file of /proc; "": it cannot be read. */
static void read_proc(const char *path, char *text, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, size - 1) : 0;
    text[n > 0 ? n : 0] = '\0';
    if (fd >= 0)
        close(fd);
}

/* A thread that is about to end the program asks whether system calls may kill it. */
static void answer_restricted(struct sv_process *p)
{
    char path[64], text[4096];
    if (atomic_load(&p->restricted) != SV_RESTRICTED_ASKED)
        return;
    snprintf(path, sizeof path, "/proc/self/task/%u/status", atomic_load(&p->restricted_tid));
    read_proc(path, text, sizeof text);
    const char *mode = strstr(text, "\nSeccomp:\t");
    bool is_free = !mode || mode[10] == '0';
    atomic_store(&p->restricted, is_free ? SV_RESTRICTED_NO : SV_RESTRICTED_YES);
    syscall(SYS_futex, &p->restricted, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

/* Have all threads of the program exited, the first one by pthread_exit() or the system call? Then
 * this one alone would keep the process. Not asked in the program's table: what is opened there for
 * a moment, the program may close and use again. */
static bool is_alone(struct sv_session_writer *w)
{
    struct stat st;
    char text[1024];
    int64_t now = sv_session_writer_now_ns();
    if (!sv_own_table_is() || now - w->alone_ns < ALONE_MS * 1000000ll)
        return false;
    w->alone_ns = now;
    if (stat("/proc/self/task", &st) != 0 || st.st_nlink > 4) /* two more than there are threads */
        return false;
    read_proc("/proc/self/stat", text, sizeof text);
    const char *name_end = strrchr(text, ')');
    if (!name_end || name_end[1] != ' ' || name_end[2] != 'Z')
        return false;
    const char *status = strrchr(text, ' '); /* the last field: as wait() sees it */
    w->alone_status = (int)strtol(status, NULL, 10);
    return true;
}

/* Not while a fork is under way: the child would find locks of the allocator taken by a thread that
 * it does not have. Allocators other than the C library's know nothing of fork. */
static void begin_work(struct sv_process *p)
{
    for (;;) {
        atomic_store(&p->writer_works, 1);
        if (atomic_load(&p->forks) == 0)
            return;
        atomic_store(&p->writer_works, 0);
        usleep(50);
    }
}

static void end_work(struct sv_process *p)
{
    atomic_store(&p->writer_works, 0);
}

/* Each round costs a switch of threads, clock readings and cold caches, whatever it finds: one that
 * found little waits longer, up to where it finds a good share of ROUND_BYTES. */
static unsigned next_period(unsigned us, uint64_t bytes)
{
    unsigned longer = us * 2 < PERIOD_MAX_US ? us * 2 : PERIOD_MAX_US;
    unsigned shorter = us / 2 > PERIOD_MIN_US ? us / 2 : PERIOD_MIN_US;
    return bytes < ROUND_BYTES / 4 ? longer : bytes < ROUND_BYTES ? us : shorter;
}

static bool must_end(const struct sv_session_writer *w)
{
    return atomic_load_explicit(&w->stop, memory_order_acquire) ||
           atomic_load_explicit(&w->process->is_ending, memory_order_acquire);
}

static void loop(struct sv_session_writer *w)
{
    unsigned us = PERIOD_MIN_US;
    while (!must_end(w)) {
        uint32_t seen = atomic_load_explicit(&w->process->wake, memory_order_acquire);
        uint32_t asked = atomic_load_explicit(&w->flush_asked, memory_order_acquire);
        bool must = asked != atomic_load_explicit(&w->flush_done, memory_order_relaxed);
        uint64_t bytes = 0;
        begin_work(w->process);
        if (w->plan.full == STAVE_FULL_OVERWRITE)
            sv_flight_round(w);
        else if (!leaves_rings(w))
            bytes = one_round(w, must, false);
        if (w->parts && !w->failed)
            sv_turn_round(w);
        if (leaves_rings(w))
            sv_clients_refuse(&w->clients);
        end_work(w->process);
        if (must)
            atomic_store_explicit(&w->flush_done, asked, memory_order_release);
        answer_restricted(w->process);
        if (bytes == 0 && is_alone(w))
            atomic_store(&w->process->is_ending, 1);
        us = next_period(us, bytes);
        if (bytes < ROUND_BYTES)
            wait_for_work(w, seen, us);
    }
}

/* ---- start and end ---- */

/* The growing file has a name by which it can be completed. */
static bool has_place(struct sv_session_writer *w, struct sv_err *err)
{
    if (w->fd >= 0 || w->plan.full == STAVE_FULL_OVERWRITE || sv_part_settle(w))
        return true;
    sv_error(err, SV_EIO, "the folder was moved or removed");
    return false;
}

/* Somebody removed the file, and another one or nothing can be where it was. */
static void lose_all(struct sv_session_writer *w)
{
    lose(w, w->failed ? last_point(w)->written : w->written);
    w->failed = true;
    atomic_store(&w->process->output_failed, 1);
    atomic_store(&w->process->session->n_events, 0);
    atomic_store(&w->process->session->state, SV_SESSION_CLOSED);
    sv_claim_release(&w->claim);
    sv_say("%s: it was removed while it was written, and cannot be written again: %llu events are "
           "lost",
           w->out, (unsigned long long)w->lost);
}

/* The file is whole, but cannot get its name: its folder was moved, or is not there for this
 * process any more. Nothing is cut or lost. */
static void keep_unnamed(struct sv_session_writer *w, const struct sv_err *err)
{
    w->failed = true;
    atomic_store(&w->process->output_failed, 1);
    atomic_store(&w->process->session->bytes[w->round & 1], SV_PART_WHOLE);
    sv_say("%s: %s; the trace is kept as %s" SV_PART_SUFFIX ": stave recover %s", w->out, err->msg,
           w->out, w->out);
}

/* The final name; a stream has none, and a flight recorder's files have theirs already. */
static void settle(struct sv_session_writer *w)
{
    struct sv_err err = {0};
    bool is_file = w->fd < 0;
    if (!is_file && !w->failed && !sv_stream_end(w, &err))
        sv_session_writer_fail(w, &err);
    bool has_name = has_place(w, &err);
    if (w->is_gone) {
        lose_all(w);
        return;
    }
    bool is_whole = !w->failed || (is_file && has_name && sv_cut_file(w));
    if (is_file && w->plan.full == STAVE_FULL_OVERWRITE) {
        unlink(w->part);
    } else if (is_file && is_whole &&
               (!has_name || sv_destination_settle(&w->claim, w->written > 0, &err) < 0)) {
        keep_unnamed(w, &err);
        return;
    }
    if (!is_whole) {
        keep_what_is_whole(w);
        return; /* for `stave recover` */
    }
    atomic_store(&w->process->session->state, SV_SESSION_CLOSED);
    sv_claim_release(&w->claim);
    if (w->was_removed)
        sv_say("%s: it was removed while it was written, and is written again", w->claim.out);
}

/* One line about lost events. */
static void report_losses(const struct sv_session_writer *w)
{
    uint64_t lost = w->reported_full + w->reported_other;
    const char *were = lost == 1 ? "event was" : "events were";
    bool is_reported = w->failed || atomic_load(&w->process->start_failed) || /* when it failed */
                       atomic_load(&sv_session_ringless(w->process->session)->has_said);
    if (lost == 0 || is_reported)
        return;
    if (w->reported_full)
        sv_say("%s: %llu %s lost, %llu of them because rings were full: STAVE_FULL=block "
               "waits instead, STAVE_BUFFER=16M gives larger rings",
               w->out, (unsigned long long)lost, were, (unsigned long long)w->reported_full);
    else
        sv_say("%s: %llu %s lost, in signal handlers or because a thread has no ring", w->out,
               (unsigned long long)lost, were);
}

/* There is none where the next part could not be begun. */
static int close_sink(struct sv_session_writer *w, struct sv_err *err)
{
    if (!w->sink)
        return 0;
    if (w->sink->rewrites && !w->failed && w->fd < 0)
        atomic_store(&w->process->session->bytes[w->round & 1], SV_PART_WHOLE);
    w->is_rewritten = w->sink->rewrites;
    int status = w->sink->close(w->sink, false, err);
    w->sink = NULL;
    return status;
}

static void finish(struct sv_session_writer *w)
{
    struct sv_err err = {0};
    w->is_ending = true;
    if (w->plan.full == STAVE_FULL_OVERWRITE) {
        sv_flight_round(w);
    } else if (!leaves_rings(w)) {
        last_rounds(w);
        name_threads(w, true);
        sv_session_writer_commit(w);
        if (sv_clients_are_unread(&w->clients)) /* mapping them takes memory: recovery has it */
            sv_out_of_memory(0);
        if (!leaves_rings(w))
            sv_clients_part(&w->clients, sv_hand_over, w);
    }
    if (leaves_rings(w))
        sv_clients_refuse(&w->clients);
    int status = close_sink(w, &err);
    if (status < 0)
        sv_session_writer_fail(w, &err);
    if (w->fd >= 0 && !w->failed && !sv_stream_send(w, &err))
        sv_session_writer_fail(w, &err);
    settle(w);
    report_losses(w);
}

/* Called by core/ instead of ending the program. */
_Noreturn void sv_out_of_memory(size_t size)
{
    (void)size;
    if (sv_no_memory)
        longjmp(*sv_no_memory, 1);
    abort();
}

/* Until the session has ended. */
static void serve(struct sv_session_writer *w)
{
    jmp_buf jump;
    sv_no_memory = &jump;
    if (setjmp(jump) == 0) {
        loop(w);
        begin_work(w->process);
        if (!atomic_load(&w->stop)) /* by a signal: nobody else closes them */
            w->cannot_lock = !sv_session_close_gates();
        finish(w);
        end_work(w->process);
    } else {
        end_work(w->process);
        char line[SV_PATH_MAX + 32];
        snprintf(line, sizeof line, "%s: out of memory", w->out);
        sv_session_unread(line);
        sv_clients_refuse(&w->clients);
        while (!must_end(w)) {
            answer_restricted(w->process);
            atomic_store(&w->flush_done, atomic_load(&w->flush_asked));
            wait_for_work(w, atomic_load(&w->process->wake), PERIOD_MAX_US);
        }
        keep_what_is_whole(w);
    }
    sv_no_memory = NULL;
}

static void end_thread(struct sv_process *p)
{
    atomic_store(&p->writer_state, SV_WRITER_ENDED);
    syscall(SYS_futex, &p->writer_state, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

static void free_writer(struct sv_session_writer *w)
{
    if (w->batch) {
        sv_batch_fini(w->batch);
        free(w->batch);
    }
    sv_turn_end(w);
    sv_drain_free(w->drain);
    sv_clients_fini(&w->clients);
    sv_dict_free(w->dict);
    sv_report_fini(&w->report);
    sv_buf_fini(&w->bytes);
    free(w->scans);
    free(w);
}

/* A writer that was stopped, with its memory: stave_finish() may run in a signal handler, which
 * must not free. */
static struct sv_session_writer *ended;

/* What rings hold from before belongs to no session, unless a collector has left it. */
static void begin_rings(struct sv_session_writer *w, bool resumes)
{
    struct sv_session_file *s = w->process->session;
    meet_rings(w);
    sv_drain_round(w->drain);
    for (size_t i = 0; i < sv_drain_n_rings(w->drain); i++) {
        struct sv_drain_ring *r = sv_drain_ring(w->drain, i);
        struct sv_ring_progress p = sv_ring_committed(r->ring, r->size, atomic_load(&s->round));
        sv_drain_start_at(r, resumes ? p.pos
                                     : atomic_load_explicit(&r->ring->head, memory_order_acquire));
        if (resumes) { /* after what the collector has written */
            r->lost_full = p.lost_full;
            r->lost_nested = p.lost_nested;
            continue;
        }
        atomic_store(&w->process->rings[i].ring->lost_full, 0);
        atomic_store(&w->process->rings[i].ring->lost_nested, 0);
        sv_ring_forget(w->process->rings[i].ring, r->pos, 0); /* its thread records nothing now */
    }
    atomic_store(&s->n_ticks, 0);
    atomic_store(&s->n_events, 0);
    atomic_store(&s->lost_output, 0);
    w->round = atomic_load(&s->round);
    if (resumes)
        sv_drain_resume_ringless(w->drain, w->round);
    else
        sv_ringless_begin(sv_session_ringless(s));
}

static int open_sink(struct sv_session_writer *w, struct sv_err *err)
{
    struct sv_process *p = w->process;
    struct sv_session_file *s = p->session;
    snprintf(s->out, sizeof s->out, "%s", w->out);
    if (sv_stream_is(w->out))
        return sv_stream_open(w, err);
    /* The marker leads to the session from the first moment on, even if the program is killed
     * now. */
    if (!sv_destination_claim(&w->claim, w->out, p->pid, p->dir, w->plan.is_shared, err))
        return SV_EIO;
    memcpy(s->out, w->claim.out, sizeof s->out);
    memcpy(s->part, w->claim.part, sizeof s->part);
    memcpy(w->out, w->claim.out, sizeof w->out - 1); /* claimed within that size */
    memcpy(w->part, w->claim.part, sizeof w->part);
    int status =
        sv_destination_sink(w->out, w->part, w->plan.compress, w->dict, &w->report, &w->sink, err);
    if (status >= 0)
        sv_part_open(w);
    return status;
}

static bool prepare(struct sv_session_writer *w, struct sv_err *err)
{
    struct sv_process *p = w->process;
    struct sv_session_file *s = p->session;
    s->counter = sv_ticks_counter();
    s->full = w->plan.full;
    w->dict = sv_dict_new();
    sv_report_init(&w->report);
    w->dict->clocks.trace_clock = SV_CLOCK_BOOTTIME;
    sv_destination_describe(w->dict, p->pid);
    w->cause_full = sv_dict_cstr(w->dict, SV_LOST_FULL);
    w->cause_nested = sv_dict_cstr(w->dict, SV_LOST_NESTED);
    w->cause_ring = sv_dict_cstr(w->dict, SV_LOST_RING);
    sv_turn_begin(w);
    if (open_sink(w, err) < 0)
        return false;
    w->meter = (struct sv_sink){.write = meter_write, .takes = w->sink->takes};
    w->drain = sv_drain_new(w->dict, &w->report, p->pid);
    sv_drain_watch(w->drain, s);
    sv_drain_with_source(w->drain, w->plan.with_source);
    sv_clients_init(&w->clients, p->dir_fd, w->dict, &w->report);
    w->batch = sv_alloc(sizeof *w->batch);
    sv_batch_init(w->batch);
    begin_rings(w, p->resumes);
    p->resumes = false;
    sv_session_writer_tick(w);
    if (!flush_output(w, err))
        return false;
    sv_session_writer_commit(w);
    atomic_store(&s->state, SV_SESSION_OPEN);
    return true;
}

/* Nothing stays behind. */
static void give_up(struct sv_session_writer *w)
{
    if (w->sink)
        w->sink->close(w->sink, true, NULL);
    w->sink = NULL;
    sv_claim_abandon(&w->claim);
    atomic_store(&w->process->session->state, SV_SESSION_CLOSED);
}

/* What it opens is in its own table, if it can have one: nothing of it is in the program's, not
 * even for a moment. */
static void *run(void *arg)
{
    struct sv_session_writer *w = arg;
    struct sv_process *p = w->process;
    jmp_buf jump;
    volatile bool ok = false;
    prctl(PR_SET_NAME, "stave-writer"); /* first: by it recordings know what is not the program's */
    w->has_own_table = sv_own_table_take(sv_files_dir(p));
    sv_doze_begin(w);
    sv_no_memory = &jump;
    if (setjmp(jump) == 0)
        ok = prepare(w, w->start_err);
    else
        sv_error(w->start_err, SV_ENOMEM, "out of memory");
    sv_no_memory = NULL;
    if (!ok)
        give_up(w);
    atomic_store_explicit(&w->start, ok ? SV_START_OK : SV_START_FAILED, memory_order_release);
    syscall(SYS_futex, &w->start, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    if (ok)
        serve(w);
    else
        end_work(p);
    sv_doze_end(w);
    if (w->fd >= 0)
        sv_stream_close(w);
    sv_part_close(w);
    bool is_left = atomic_load(&p->is_out_of_reach) || (ok && !atomic_load(&w->stop));
    if (is_left && atomic_load(&p->session->state) == SV_SESSION_CLOSED)
        sv_files_remove(p); /* nobody else does */
    end_thread(p);
    if (WIFEXITED(w->alone_status) && WEXITSTATUS(w->alone_status) != 0)
        syscall(SYS_exit_group, WEXITSTATUS(w->alone_status)); /* the last thread's counts */
    return NULL;
}

/* The program's signals are not for this thread. */
static int spawn(struct sv_process *p, struct sv_session_writer *w)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    atomic_store(&p->writer_works, 1); /* from its start: starting a thread allocates memory */
    atomic_store(&p->writer_state, SV_WRITER_RUNS);
    int error = pthread_create(&p->writer_thread, NULL, run, w);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error != 0) {
        end_work(p);
        atomic_store(&p->writer_state, SV_WRITER_NONE);
    }
    return error;
}

/* The thread, once it can write; false: `err` says why it has ended again. */
static bool start_thread(struct sv_process *p, struct sv_session_writer *w, struct sv_err *err)
{
    int error = spawn(p, w);
    if (error != 0) {
        errno = error;
        sv_err_sys(err, "cannot start the writer thread");
        return false;
    }
    while (atomic_load_explicit(&w->start, memory_order_acquire) == SV_START_WAITS)
        syscall(SYS_futex, &w->start, FUTEX_WAIT_PRIVATE, SV_START_WAITS, NULL, NULL, 0);
    if (atomic_load(&w->start) == SV_START_OK)
        return true;
    pthread_join(p->writer_thread, NULL);
    atomic_store(&p->writer_state, SV_WRITER_NONE);
    sv_own_table_say(p);
    return false;
}

bool sv_session_writer_start(struct sv_process *p, const struct sv_plan *plan, const char *out,
                             struct sv_err *err)
{
    sv_session_writer_free();
    struct sv_session_writer *w = calloc(1, sizeof *w);
    if (!w) {
        sv_error(err, SV_ENOMEM, "out of memory");
        return false;
    }
    w->process = p;
    w->plan = *plan;
    w->start_err = err;
    w->fd = w->claim.fd = w->part_fd = -1;
    snprintf(w->out, sizeof w->out, "%s", out);
    if (sv_stream_is(out))
        sv_stream_name(w);
    if (!start_thread(p, w, err)) {
        free_writer(w);
        return false;
    }
    w->start_err = NULL;
    sv_own_table_say(p); /* a note about an earlier program */
    sv_flight_begin(w);
    p->writer = w;
    p->has_writer = true;
    return true;
}

void sv_session_writer_flush(struct sv_process *p)
{
    struct sv_session_writer *w = p->writer;
    uint32_t asked = atomic_fetch_add_explicit(&w->flush_asked, 1, memory_order_acq_rel) + 1;
    while ((int32_t)(atomic_load_explicit(&w->flush_done, memory_order_acquire) - asked) < 0) {
        sv_wake_writer();
        struct timespec pause = {.tv_nsec = 100000};
        nanosleep(&pause, NULL);
    }
    sv_own_table_say(p);
}

void sv_session_writer_stop(struct sv_process *p)
{
    struct sv_session_writer *w = p->writer;
    atomic_store_explicit(&w->stop, 1, memory_order_release);
    sv_wake_writer();
    pthread_join(p->writer_thread, NULL);
    atomic_store(&p->writer_state, SV_WRITER_NONE);
    sv_own_table_say(p);
    sv_flight_end(w);
    p->has_writer = false;
    p->writer = NULL;
    ended = w;
}

void sv_session_writer_free(void)
{
    if (ended)
        free_writer(ended);
    ended = NULL;
}
