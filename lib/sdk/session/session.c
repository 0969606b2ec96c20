/* Sessions: from options or the environment to a running writer, and back.
 *
 * start, flush and stop come from users at any time and in any order, from atexit handlers too; one
 * at a time, all idempotent. A program that was started with STAVE_OUT starts before main and stops
 * after the last atexit handler. A forked child starts at its first event, with the plan it
 * inherited: as a client of its parent's session, or with a file of its own (%p).
 *
 * Whatever goes wrong ends as one line on stderr and tracing off. Nothing here may end or delay the
 * program. */

#include "core/files/part_name.h"
#include "core/files/trusted.h"
#include "sdk/collect/client_files.h"
#include "sdk/ring/ringless.h"
#include "sdk/session/copy.h"
#include "sdk/session/destination.h"
#include "sdk/session/joining.h"
#include "sdk/session/signals.h"
#include "sdk/write/writer.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define RING_BYTES_DEFAULT ((uint64_t)1 << 20)
enum { COLLECTOR_LOOK_MS = 50 };

__attribute__((weak)) uint32_t stave_i_obeys_environment = 1;

static struct sv_plan plan;             /* of the running session; inherited by children */
static char collector_dir[SV_PATH_MAX]; /* the session that forked children join, "": none */
static _Atomic uint32_t next_epoch = SV_EPOCH_FIRST, default_full = STAVE_FULL_DROP;

/* What a call of stave_start() says is also kept for its caller. */
void sv_said(const char *text, size_t len)
{
    struct sv_process *p = sv_process;
    if (p && atomic_load(&p->control_owner) == (uint32_t)gettid())
        snprintf(p->said, sizeof p->said, "%.*s", (int)len, text);
}

static void gates(bool on)
{
    uint32_t epoch = on ? atomic_fetch_add(&next_epoch, 1) : 0;
    atomic_store_explicit(&sv_epoch, epoch, memory_order_release);
    sv_sites_switch(on, on ? plan.categories : NULL);
}

bool sv_session_close_gates(void)
{
    enum { WAIT_MS = 100 };
    atomic_store_explicit(&sv_epoch, 0, memory_order_release);
    return sv_sites_off(WAIT_MS);
}

void sv_session_fail(const char *what, int error)
{
    if (atomic_exchange(&sv_process->start_failed, 1))
        return;
    gates(false);
    if (error)
        sv_say("%s: %s; tracing is off", what, strerror(error));
    else
        sv_say("%s; tracing is off", what);
}

/* Records stay in the rings until these are full; what comes then is counted in them. */
void sv_session_unread(const char *what)
{
    if (!atomic_exchange(&sv_process->start_failed, 1) && sv_ringless_may_say())
        sv_say("%s ('stave recover' saves what is in the rings); further events are lost and "
               "counted",
               what);
}

/* With the path and the variables that change it: whoever reads this has a container with a small
 * /dev/shm, a limit, or another user. */
void sv_session_count_only(const char *what, int error)
{
    const struct sv_process *p = sv_process;
    if (sv_ringless_may_say())
        sv_say("%s in %s (STAVE_SESSION_DIR=DIR is another place, STAVE_BUFFER=SIZE another size): "
               "%s; events without a ring are lost and counted",
               what, p->dir[0] ? p->dir : collector_dir,
               error ? strerror(error) : "too many threads");
}

/* A session that cannot begin. A forked child's events are counted in its parent's. */
static void say_off(bool is_child, const char *what, const char *why)
{
    if (!is_child || !sv_ringless_are_used())
        sv_say("%s: %s; tracing is off", what, why);
    else if (sv_ringless_may_say())
        sv_say("%s (STAVE_SESSION_DIR=DIR is another place for the rings): %s; events of forked "
               "processes are lost and counted",
               what, why);
}

/* ---- one at a time; a thread is not cancelled meanwhile, and gets no signal for what it writes
 * ---- */

void sv_control_lock(struct sv_process *p)
{
    int cancel;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    pthread_mutex_lock(&p->control);
    p->control_cancel = cancel;
    sv_quiet_begin(&p->control_quiet);
    atomic_store(&p->control_owner, (uint32_t)gettid());
}

bool sv_control_try(struct sv_process *p)
{
    if (pthread_mutex_trylock(&p->control) != 0)
        return false;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &p->control_cancel);
    sv_quiet_begin(&p->control_quiet);
    atomic_store(&p->control_owner, (uint32_t)gettid());
    return true;
}

void sv_control_unlock(struct sv_process *p)
{
    int cancel = p->control_cancel;
    struct sv_quiet quiet = p->control_quiet;
    atomic_store(&p->control_owner, 0);
    pthread_mutex_unlock(&p->control);
    sv_quiet_end(&quiet);
    pthread_setcancelstate(cancel, NULL);
}

/* ---- the plan: options first, then the environment, then defaults ---- */

struct wish {
    const char *name; /* of the variable, for messages */
    const char *text;
};

static bool bad(const struct wish *w, const char *why)
{
    sv_say("%s=%.200s: %s; tracing is off", w->name, w->text, why);
    return false;
}

/* 64k, 4M, 1G or bytes. */
static bool parse_bytes(const struct wish *w, uint64_t *out)
{
    char *end;
    errno = 0;
    unsigned long long v = strtoull(w->text, &end, 10);
    unsigned shift = 0;
    switch (tolower((unsigned char)*end)) {
    case 'k': shift = 10; break;
    case 'm': shift = 20; break;
    case 'g': shift = 30; break;
    default: break;
    }
    if (!isdigit((unsigned char)*w->text) || errno != 0 || end[shift ? 1 : 0] != '\0' ||
        v << shift >> shift != v || v << shift < SV_RING_BYTES_MIN ||
        v << shift > SV_RING_BYTES_MAX)
        return bad(w, "expected a size from 16k to 1G");
    *out = v << shift;
    return true;
}

static bool parse_number(const struct wish *w, uint64_t *out)
{
    char *end;
    errno = 0;
    *out = strtoull(w->text, &end, 10);
    return (isdigit((unsigned char)*w->text) && errno == 0 && *end == '\0') ||
           bad(w, "expected a number");
}

static bool parse_full(const struct wish *w, uint32_t *out)
{
    static const char *const names[] = {[STAVE_FULL_DROP] = "drop",
                                        [STAVE_FULL_BLOCK] = "block",
                                        [STAVE_FULL_OVERWRITE] = "overwrite"};
    for (uint32_t i = STAVE_FULL_DROP; i <= STAVE_FULL_OVERWRITE; i++) {
        if (strcmp(w->text, names[i]) == 0) {
            *out = i;
            return true;
        }
    }
    return bad(w, "expected drop, block or overwrite");
}

/* NAME:MS */
static bool parse_trigger(const struct wish *w, struct sv_plan *p)
{
    const char *colon = strrchr(w->text, ':');
    if (!colon || colon == w->text || (size_t)(colon - w->text) >= sizeof p->trigger_name)
        return bad(w, "expected NAME:MILLISECONDS");
    struct wish ms = {w->name, colon + 1};
    memcpy(p->trigger_name, w->text, (size_t)(colon - w->text));
    p->trigger_name[colon - w->text] = '\0';
    return parse_number(&ms, &p->trigger_ms);
}

static bool copy(const struct wish *w, char *to, size_t size)
{
    size_t len = strlen(w->text);
    if (len >= size)
        return bad(w, "too long");
    memcpy(to, w->text, len + 1);
    return true;
}

static struct wish wish(const char *given, const char *variable)
{
    return (struct wish){variable, given ? given : sv_trusted_getenv(variable)};
}

static bool has(const struct wish *w)
{
    return w->text && *w->text;
}

static bool plan_numbers(const struct stave_options *o, struct sv_plan *p)
{
    struct wish buffer = wish(NULL, "STAVE_BUFFER"), full = wish(NULL, "STAVE_FULL");
    struct wish keep = wish(NULL, "STAVE_KEEP_MS"), after = wish(NULL, "STAVE_AFTER_MS");
    struct wish sig = wish(NULL, "STAVE_TRIGGER_SIGNAL"), trigger = wish(NULL, "STAVE_TRIGGER");
    struct wish source = wish(NULL, "STAVE_SOURCE");
    uint64_t number = 0;
    p->with_source = has(&source) && strcmp(source.text, "0") != 0;
    p->buffer_bytes = o->buffer_bytes;
    if (p->buffer_bytes > SV_RING_BYTES_MAX) {
        sv_say("buffer_bytes=%zu: expected at most 1G; tracing is off", o->buffer_bytes);
        return false;
    }
    if (p->buffer_bytes == 0 && has(&buffer) && !parse_bytes(&buffer, &p->buffer_bytes))
        return false;
    p->full = (uint32_t)o->full;
    if (p->full == STAVE_FULL_DEFAULT && has(&full) && !parse_full(&full, &p->full))
        return false;
    p->full_by_default = p->full == STAVE_FULL_DEFAULT || p->full > STAVE_FULL_OVERWRITE;
    if (p->full_by_default)
        p->full = default_full;
    p->keep_ms = o->keep_ms;
    if (p->keep_ms == 0 && has(&keep) && !parse_number(&keep, &p->keep_ms))
        return false;
    p->after_ms = o->after_ms;
    if (p->after_ms == 0 && has(&after) && !parse_number(&after, &p->after_ms))
        return false;
    p->trigger_signal = o->trigger_signal;
    if (p->trigger_signal == 0 && has(&sig)) {
        if (!parse_number(&sig, &number) || number > 64)
            return false;
        p->trigger_signal = (int)number;
    }
    if (o->trigger_name) {
        struct wish name = {"trigger_name", o->trigger_name};
        p->trigger_ms = o->trigger_ms;
        return copy(&name, p->trigger_name, sizeof p->trigger_name);
    }
    return !has(&trigger) || parse_trigger(&trigger, p);
}

static bool plan_parts(const struct stave_options *o, const struct wish *out, struct sv_plan *p)
{
    bool rotates = o->rotate_bytes || o->rotate_ns;
    if (p->is_collected || !rotates)
        return true;
    if (!sv_destination_rotates(p->pattern) || p->full == STAVE_FULL_OVERWRITE)
        return bad(out, "parts need a name that ends in .pftrace, and no flight recorder");
    if ((o->rotate_bytes && o->rotate_bytes < SV_ROTATE_BYTES_MIN) ||
        (o->rotate_ns && o->rotate_ns < SV_ROTATE_NS_MIN))
        return bad(out, "a part has at least 262144 bytes, or a second");
    p->rotate_bytes = o->rotate_bytes;
    p->rotate_ns = o->rotate_ns;
    p->rotate_parts = o->rotate_parts;
    return true;
}

/* 1: a plan; 0: no session is requested; -1: bad values, reported on stderr. */
static int make_plan(const struct stave_options *given, struct sv_plan *p)
{
    struct stave_options o = {0};
    if (given)
        memcpy(&o, given, given->size < sizeof o ? given->size : sizeof o);
    *p = (struct sv_plan){0};
    struct wish out = wish(o.out, "STAVE_OUT"), cats = wish(o.categories, "STAVE_CATEGORIES");
    struct wish compress = wish(o.compress, "STAVE_COMPRESS");
    struct wish join = wish(NULL, "STAVE_SESSION");
    p->is_shared = !o.out;
    if (!o.out && has(&join)) { /* a collector writes, wherever it likes */
        p->is_collected = true;
        if (!copy(&join, collector_dir, sizeof collector_dir - 64))
            return -1;
        out.text = "collected.pftrace";
    }
    if (!has(&out))
        return 0;
    if (!copy(&out, p->pattern, sizeof p->pattern))
        return -1;
    struct wish all = {"STAVE_CATEGORIES", "*"};
    if (!copy(has(&cats) ? &cats : &all, p->categories, sizeof p->categories))
        return -1;
    if (has(&compress) && !copy(&compress, p->compress, sizeof p->compress))
        return -1;
    char text[SV_DESTINATION_TEXT];
    const char *why = sv_destination_check(p->pattern, p->compress, text, sizeof text);
    if (why) {
        bad(&out, why);
        return -1;
    }
    return plan_numbers(&o, p) && plan_parts(&o, &out, p) ? 1 : -1;
}

/* ---- start, flush, stop ---- */

static uint64_t power_of_two(uint64_t v)
{
    uint64_t p = SV_RING_BYTES_MIN;
    while (p < v)
        p <<= 1;
    return p;
}

/* Forked children without a file of their own (%p) are clients of their parent; so are programs
 * that a collector starts. */
static bool joins(const struct sv_plan *p)
{
    const char *at = p->pattern;
    while ((at = strchr(at, '%')) && at[1] && at[1] != 'p')
        at += 2;
    return p->is_collected || (!(at && at[1] == 'p') && p->full != STAVE_FULL_OVERWRITE);
}

static void use_plan(struct sv_process *p)
{
    p->full = plan.full;
    p->ring_bytes_given = plan.buffer_bytes != 0;
    p->ring_bytes = power_of_two(plan.buffer_bytes ? plan.buffer_bytes : RING_BYTES_DEFAULT);
}

/* 0, or why not. */
static int join_collector(struct sv_process *p)
{
    use_plan(p);
    if (!sv_lock())
        return EDEADLK;
    errno = 0;
    int error = sv_join(p, collector_dir, &plan) ? 0 : errno ? errno : EIO;
    sv_unlock();
    return error;
}

static int start_collected(struct sv_process *p, bool is_child)
{
    char what[SV_PATH_MAX + 32];
    int error = p->collector ? 0 : join_collector(p);
    if (error == 0)
        return 0;
    snprintf(what, sizeof what, "STAVE_SESSION=%s", collector_dir);
    say_off(is_child, what,
            error == ESRCH || error == ENOENT ? "no collector runs there"
            : error == EPERM                  ? "other users have access to the session"
                                              : strerror(error));
    return -1;
}

/* STAVE_OUT is for all copies of the library in this process. The first one writes; the others are
 * its clients. */
static bool join_copy(struct sv_process *p)
{
    char out[SV_OUT_MAX];
    struct sv_claim c;
    struct sv_process_id self = sv_process_id_self();
    if (!plan.is_shared || p->session || !joins(&plan) || sv_stream_is(plan.pattern) ||
        sv_destination_name(plan.pattern, p->pid, false, out, sizeof out) != NULL ||
        sv_claim_read(out, &c) != SV_CLAIM_THERE || !sv_process_id_equal(&c.holder, &self) ||
        !c.session[0] || !sv_collector_reads(c.session))
        return false;
    snprintf(collector_dir, sizeof collector_dir, "%s", c.session);
    return join_collector(p) == 0;
}

static int start_own(struct sv_process *p, bool is_child)
{
    char out[SV_OUT_MAX];
    const char *why = sv_destination_name(plan.pattern, p->pid, is_child, out, sizeof out);
    if (why) {
        say_off(is_child, plan.pattern, why);
        return -1;
    }
    if (!sv_lock())
        return -1;
    bool is_new = !p->session;
    bool ok = sv_files_open(p, NULL) && sv_names_flush();
    int error = errno;
    sv_unlock();
    if (!ok) {
        say_off(is_child, "cannot make a session directory", strerror(error));
        return -1;
    }
    use_plan(p);
    struct sv_err err = {0};
    if (!sv_session_writer_start(p, &plan, out, &err)) {
        say_off(is_child, out, err.msg);
        if (is_child && is_new) { /* no rings in a session that nobody reads */
            sv_files_remove(p);
            __atomic_store_n(&p->session, NULL, __ATOMIC_RELEASE);
        }
        return -1;
    }
    sv_ringless_use(sv_session_ringless(p->session));
    atomic_store(&p->start_failed, 0);
    atomic_store(&p->output_failed, 0);
    sv_signals_begin();
    snprintf(collector_dir, sizeof collector_dir, "%s", joins(&plan) ? p->dir : "");
    return 0;
}

static void say_orphan(struct sv_process *p)
{
    if (!atomic_exchange(&p->is_orphan, 1))
        sv_say("the collector has exited; 'stave recover' finds the events that the rings hold");
}

/* A client whose collector has left: a writer and a file of its own, from where the collector has
 * read. */
static int continue_alone(struct sv_process *p)
{
    /* events are recorded until the rings are full, then counted in them */
    if (plan.is_collected) {
        say_orphan(p);
        return -1;
    }
    if (!sv_leave_collector(p)) {
        sv_session_fail("cannot leave the parent's session", errno);
        return -1;
    }
    p->resumes = true;
    int status = start_own(p, true);
    if (status != 0) {
        atomic_store(&p->start_failed, 1);
        gates(false);
    }
    return status;
}

/* The collector has said why. */
static bool leave_failed_collector(struct sv_process *p)
{
    if (sv_collector_look(p, false) != SV_COLLECTOR_FAILED)
        return true;
    atomic_store(&p->start_failed, 1);
    gates(false);
    return false;
}

/* A forked child for which there is no space beside its parent, which reads on and counts for it. A
 * session of its own would find none either, or take what the others need. */
static bool is_counted_only(int error)
{
    return sv_ringless_are_used() &&
           (error == ENOSPC || error == EDQUOT || error == ENOMEM || error == EFBIG);
}

static int start_locked(struct sv_process *p, bool is_child)
{
    if (plan.is_collected)
        return start_collected(p, is_child);
    if (p->collector) /* a client that was stopped */
        return sv_collector_look(p, true) == SV_COLLECTOR_THERE ? 0 : continue_alone(p);
    int error = is_child && collector_dir[0] && !p->session ? join_collector(p) : ESRCH;
    if (error == 0)
        return 0;
    if (is_counted_only(error)) {
        say_off(is_child, collector_dir, strerror(error));
        return -1;
    }
    if (!is_child && join_copy(p))
        return 0;
    return start_own(p, is_child);
}

/* Programs that were built before know no such member. */
static bool wants_quiet(const struct stave_options *given)
{
    return given->size > offsetof(struct stave_options, quiet) && given->quiet;
}

int stave_start(const struct stave_options *options, struct stave_error *error)
{
    if (!sv_process_init() || !sv_registry_init()) {
        static const char why[] = "out of memory; tracing is off";
        sv_say("%s", why);
        return sv_fail(error, STAVE_EMEMORY, ENOMEM, why);
    }
    struct sv_process *p = sv_process;
    sigset_t mask;
    sv_signals_hold(&mask); /* a claim without a writer would stay for ever */
    sv_control_lock(p);
    p->said[0] = '\0';
    sv_say_return_errors(error && options && wants_quiet(options));
    int status = 0;
    bool is_on = p->has_writer || (p->collector && atomic_load(&sv_epoch) != 0);
    if (!is_on) {
        struct sv_plan fresh;
        int wanted = make_plan(options, &fresh);
        if (wanted > 0) {
            plan = fresh;
            status = start_locked(p, false) == 0 ? 0 : STAVE_EOUTPUT;
            if (status == 0) {
                gates(true);
                sv_attach(); /* now, while system calls are allowed */
            }
        } else {
            status = wanted == 0 ? 0 : STAVE_EUSAGE;
        }
    }
    sv_say_return_errors(false);
    sv_fail(error, status, 0, status == 0 ? "" : p->said); /* else it may be a note */
    sv_control_unlock(p);
    sv_signals_release(&mask);
    return status;
}

static bool has_failed(const struct sv_process *p)
{
    return atomic_load(&p->start_failed) || atomic_load(&p->output_failed);
}

int stave_flush(void)
{
    struct sv_process *p = sv_process;
    if (!p || atomic_load(&p->ready) != 2)
        return 0;
    sv_control_lock(p);
    if (p->collector && !atomic_load(&p->is_orphan) && !sv_joined_flush(p) &&
        leave_failed_collector(p))
        continue_alone(p);
    if (p->has_writer)
        sv_session_writer_flush(p);
    int status = has_failed(p) ? STAVE_EOUTPUT : 0;
    sv_control_unlock(p);
    return status;
}

static int stop(struct sv_process *p, bool frees)
{
    sv_control_lock(p);
    int status = 0;
    if (p->collector) {
        gates(false); /* the collector has the file, and what is in the rings */
    } else if (p->has_writer) {
        gates(false);
        sv_session_writer_stop(p);
        sv_signals_end();
        status = has_failed(p) ? STAVE_EOUTPUT : 0;
    }
    if (frees)
        sv_session_writer_free();
    sv_control_unlock(p);
    return status;
}

int stave_stop(void)
{
    struct sv_process *p = sv_process;
    if (!p || atomic_load(&p->ready) != 2) /* nothing, or a forked child that never traced */
        return 0;
    return stop(p, true);
}

/* The session may run already: STAVE_OUT starts it when the library is loaded, before a binding can
 * call this. */
void stave_i_default_full(uint32_t full)
{
    if (full != STAVE_FULL_DROP && full != STAVE_FULL_BLOCK)
        return;
    default_full = full;
    struct sv_process *p = sv_process;
    if (!p || atomic_load(&p->ready) != 2)
        return;
    sv_control_lock(p);
    if (plan.full_by_default) {
        plan.full = full;
        p->full = full;
    }
    sv_control_unlock(p);
}

/* Gates are open (inherited), but this process has nothing yet. */
void sv_session_inherit(void)
{
    struct sv_process *p = sv_process;
    if (plan.pattern[0] == '\0' || atomic_load(&p->start_failed))
        return;
    if (atomic_load(&p->control_owner) == (uint32_t)gettid())
        return; /* a signal handler in the middle of this; its event is lost */
    sv_control_lock(p);
    if (!p->session && !p->has_writer && start_locked(p, true) != 0) {
        atomic_store(&p->start_failed, 1);
        if (!sv_ringless_are_used()) /* else its events are counted there */
            gates(false);
    }
    sv_control_unlock(p);
}

bool sv_session_check_collector(void)
{
    struct sv_process *p = sv_process;
    int64_t now = stave_now_ns();
    if (!p->collector || atomic_load_explicit(&p->is_orphan, memory_order_relaxed) ||
        sv_collector_is_seen(p) || !sv_control_try(p))
        return false;
    bool is_due = now - p->collector_looked_ns > COLLECTOR_LOOK_MS * 1000000ll;
    if (is_due)
        p->collector_looked_ns = now;
    bool changed = p->collector && leave_failed_collector(p) &&
                   sv_collector_look(p, is_due) == SV_COLLECTOR_LEFT && continue_alone(p) == 0;
    sv_control_unlock(p);
    return changed;
}

const char *stave_session(void)
{
    return atomic_load(&sv_epoch) != 0 ? collector_dir : "";
}

void stave_count(struct stave_counts *counts)
{
    struct sv_process *p = sv_process;
    struct stave_counts c = {.size = sizeof c, .lost_ring = sv_ringless_mine()};
    if (p) { /* also of a session that has ended */
        c.parts = atomic_load(&p->n_parts);
        c.parts_removed = atomic_load(&p->n_parts_removed);
    }
    if (p && p->session) {
        c.events = atomic_load(&p->session->n_events);
        c.lost_output = atomic_load(&p->session->lost_output);
        uint32_t n = atomic_load(&p->n_rings);
        for (uint32_t i = 0; i < n; i++) {
            c.lost_full += atomic_load(&p->rings[i].ring->lost_full);
            c.lost_nested += atomic_load(&p->rings[i].ring->lost_nested);
            uint64_t oldest, lost;
            sv_ring_forgot(p->rings[i].ring, &oldest, &lost);
            c.lost_overwritten += lost;
            if (atomic_load(&p->start_failed)) /* what the output does not have and will not get */
                c.lost_output += sv_ring_pending(p->rings[i].ring, p->rings[i].data);
        }
    }
    size_t size = counts->size < sizeof c ? counts->size : sizeof c;
    c.size = counts->size;
    memcpy(counts, &c, size);
}

/* ---- with the program ---- */

/* What the first pass through a call site needs, while system calls are allowed: a program that is
 * not traced may restrict itself, too. Where the address space is limited it is left to the
 * program. */
static void prepare(void)
{
    struct rlimit space;
    if (getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur == RLIM_INFINITY && sv_process_init())
        sv_registry_init();
}

__attribute__((constructor)) static void begin_with_program(void)
{
    prepare();
    const char *out = sv_trusted_getenv("STAVE_OUT"), *session = sv_trusted_getenv("STAVE_SESSION");
    sv_say_begin();
    if (stave_i_obeys_environment && ((out && *out) || (session && *session)))
        stave_start(NULL, NULL);
}

static bool has_unread(struct sv_process *p)
{
    uint32_t n = atomic_load(&p->n_rings);
    for (uint32_t i = 0; i < n; i++)
        if (atomic_load(&p->rings[i].ring->head) != atomic_load(&p->rings[i].ring->tail))
            return true;
    return false;
}

/* The collector ended before this program and gave the rings back. Where it has read them to the
 * end there is nothing to recover. */
static void drop_returned(struct sv_process *p)
{
    struct sv_claim claim;
    if (atomic_load(&p->session->state) != SV_SESSION_OPEN || has_unread(p))
        return;
    sv_control_lock(p);
    bool is_alone = sv_leave_collector(p);
    sv_control_unlock(p);
    if (!is_alone)
        return;
    if (p->session->out[0] && sv_claim_of_session(p->session->out, p->dir, &claim))
        sv_claim_abandon(&claim);
    sv_files_remove(p);
}

/* Perhaps in a signal handler of the program: it frees no memory. */
static void finish(struct sv_process *p)
{
    if (p->has_writer && sv_files_dir(p) < 0)
        atomic_store(&p->is_out_of_reach, 1);
    stop(p, false);
    if (p->collector) {
        if (sv_joined_end(p) || sv_collector_look(p, false) == SV_COLLECTOR_FAILED)
            return; /* the collector cleans up */
        if (plan.is_collected) {
            drop_returned(p);
            if (p->dir_fd >= 0) /* `stave recover` finds it */
                say_orphan(p);
            return;
        }
        sv_control_lock(p);
        continue_alone(p);
        sv_control_unlock(p);
        stop(p, false);
    }
    /* What is not in the output is in the rings. */
    if (p->session && atomic_load(&p->session->state) != SV_SESSION_OPEN)
        sv_files_remove(p);
}

/* A filter of system calls (seccomp) may kill who makes the wrong one. The writer, which has none,
 * sees it; all but futex() is left to it. */
static bool is_restricted(struct sv_process *p)
{
    if (!p->has_writer)
        return false;
    uint32_t none = SV_RESTRICTED_UNKNOWN;
    const struct sv_ring *ring = sv_self->ring;
    atomic_store(&p->restricted_tid, ring ? atomic_load(&ring->tid) : p->pid);
    atomic_compare_exchange_strong(&p->restricted, &none, SV_RESTRICTED_ASKED);
    sv_wake_writer();
    while (atomic_load(&p->restricted) == SV_RESTRICTED_ASKED &&
           atomic_load(&p->writer_state) == SV_WRITER_RUNS)
        sv_wait_at(&p->restricted, SV_RESTRICTED_ASKED, 10);
    return atomic_load(&p->restricted) == SV_RESTRICTED_YES;
}

static void leave_end_to_writer(struct sv_process *p)
{
    atomic_store(&p->is_ending, 1);
    sv_wake_writer();
    while (atomic_load(&p->writer_state) == SV_WRITER_RUNS)
        sv_wait_at(&p->writer_state, SV_WRITER_RUNS, 100);
}

void stave_finish(void)
{
    sigset_t mask;
    if (!sv_process || atomic_load(&sv_process->ready) != 2 || !sv_process->session)
        return; /* nothing was started */
    if (is_restricted(sv_process)) {
        leave_end_to_writer(sv_process);
        return;
    }
    sv_signals_hold(&mask); /* until nothing is left behind */
    finish(sv_process);
    sv_signals_release(&mask);
}

/* Late: after the destructors of those who use us. */
__attribute__((destructor(101))) static void end_with_program(void)
{
    stave_finish();
    sv_session_writer_free();
    if (sv_is_in_plugin())
        sv_process_unload();
}
