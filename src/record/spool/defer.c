/* See defer.h. Called by the recorder's loop, in its thread.
 *
 * A series of entries begins with what is known of the processes, so nothing waits before it, and
 * ends when all of it is decoded. The spool may grow to half of its budget; then records are
 * decoded twice as fast as they come, which ends before it has reached the budget. */
#include "record/spool/defer.h"

#include "cli/console.h"
#include "core/base/buf.h"
#include "record/sample/procfs.h"
#include "record/session/recorder.h"
#include "record/spool/kspool.h"
#include "record/spool/notes.h"
#include "record/spool/processes.h"
#include "record/spool/scout.h"
#include "record/spool/storm.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define SPOOL_DEFAULT ((uint64_t)1 << 30)
#define SPOOL_LEAST   ((uint64_t)16 << 20)
#define FOLLOWED_NS   ((int64_t)3000000000)
#define UNWATCHED_NS  ((int64_t)500000000)
#define SLICE_NS      ((int64_t)10000000)
enum {
    ENTRY_BYTES = 256 << 10,
    ENOUGH_BYTES = 4 << 20,
    LOOK_AT_DISK = 16 << 20,
    RECORD_BYTES = 64
};

struct sv_defer {
    struct sv_kspool spool;
    struct sv_scout scout;
    struct sv_buf processes;
    uint64_t budget;
    struct sv_notes notes; /* of the entry that is being decoded */
    bool is_on, is_over, is_replaying;
    struct sv_storm storm;
    uint64_t looked_at_disk; /* at this size of the spool */
    bool is_short;           /* and there was less than the trace may need */
    int watch;               /* inotify, on the growing file; -1: not yet */
    int64_t opened_ns;
    int64_t followed_ns; /* when somebody opened it last; 0: never */
};

/* ---- options ---- */

static int budget_of(const struct sv_record_options *o, uint64_t *bytes)
{
    *bytes = SPOOL_DEFAULT;
    return o->spool ? sv_parse_bytes(o->spool, bytes) : 0;
}

int sv_defer_check(const struct sv_record_options *o, struct sv_err *err)
{
    uint64_t bytes;
    if (budget_of(o, &bytes) < 0 || (bytes > 0 && bytes < SPOOL_LEAST))
        return sv_err_set(err, SV_EUSAGE, SV_NO_POS,
                          "--spool: '%s' is not a size such as 4G, of 16M at least, or 0 for none",
                          o->spool);
    return 0;
}

void sv_defer_open(struct sv_recorder *r)
{
    const struct sv_record_options *o = r->options;
    uint64_t budget;
    bool is_live = o->use.last || o->use.rotate || o->max_bytes > 0 || o->redact ||
                   r->system.records_file;
    if (!r->system.kernel || is_live || budget_of(o, &budget) < 0 || budget == 0)
        return;
    struct sv_defer *d = r->system.defer = sv_alloc(sizeof *d);
    d->spool.fd = d->watch = -1;
    d->budget = budget;
    const char *test = getenv("STAVE_SPOOL");
    sv_storm_init(&d->storm, test && strcmp(test, "always") == 0);
    sv_buf_init(&d->processes, SV_KSPOOL_ENTRY_MAX);
    sv_scout_init(&d->scout, sv_decode_tree(r->system.decode), sv_decode_inodes(r->system.decode));
    d->scout.symbols = sv_decode_symbols(r->system.decode);
    d->opened_ns = sv_recorder_now_ns();
}

void sv_defer_close(struct sv_recorder *r)
{
    struct sv_defer *d = r->system.defer;
    if (!d)
        return;
    if (r->output.is_kept && d->is_on)
        sv_kspool_close(&d->spool);
    else
        sv_kspool_remove(&d->spool);
    if (d->watch >= 0)
        close(d->watch);
    sv_scout_fini(&d->scout);
    sv_notes_fini(&d->notes);
    sv_buf_fini(&d->processes);
    free(d);
    r->system.defer = NULL;
}

/* ---- how things are ---- */

void sv_defer_saw(struct sv_recorder *r, int64_t now, uint64_t bytes)
{
    struct sv_defer *d = r->system.defer;
    if (d)
        sv_storm_saw(&d->storm, now, bytes);
}

/* A short recording does without: the kernel takes 20 ms to end a watch. */
static void watch_file(struct sv_recorder *r, int64_t now)
{
    struct sv_defer *d = r->system.defer;
    if (d->watch >= 0 || d->is_over || (!d->storm.is_on && now - d->opened_ns < UNWATCHED_NS))
        return;
    d->watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (d->watch < 0 || inotify_add_watch(d->watch, r->output.part, IN_OPEN) < 0)
        d->is_over = true; /* nobody could follow */
}

static bool is_followed(struct sv_defer *d, int64_t now)
{
    _Alignas(struct inotify_event) char events[4096];
    while (read(d->watch, events, sizeof events) > 0)
        d->followed_ns = now;
    return d->followed_ns && now - d->followed_ns < FOLLOWED_NS;
}

/* "0.31 0.20 0.10 3/456 7890": three tasks run, we are one of them. */
static bool has_idle_cpu(void)
{
    char path[64], text[128];
    cpu_set_t set;
    unsigned running;
    snprintf(path, sizeof path, "%s/loadavg", sv_procfs_root());
    sv_procfs_text(path, text, sizeof text);
    return sched_getaffinity(0, sizeof set, &set) == 0 &&
           sscanf(text, "%*s %*s %*s %u/", &running) == 1 && running <= (unsigned)CPU_COUNT(&set);
}

/* The trace, which takes half as much, must find its place: twice what waits stays free. */
static bool has_space(struct sv_defer *d)
{
    struct statvfs fs;
    if (d->spool.end < d->looked_at_disk + LOOK_AT_DISK)
        return !d->is_short;
    d->looked_at_disk = d->spool.end;
    d->is_short = fstatvfs(d->spool.fd, &fs) == 0 &&
                  (uint64_t)fs.f_bavail * fs.f_frsize <= 2 * (d->spool.end + LOOK_AT_DISK);
    return !d->is_short;
}

static bool is_full(struct sv_defer *d)
{
    return d->spool.end >= d->budget / 2 || !has_space(d);
}

/* ---- decoding what waits ---- */

/* The time of the last record. */
static int64_t decoded_ns(const struct sv_krings *rings)
{
    uint64_t last = 0;
    for (size_t i = 0; i < rings->n; i++)
        last = rings->all[i].last_ns > last ? rings->all[i].last_ns : last;
    return (int64_t)last;
}

/* 1: an entry was decoded; 0: nothing waits. */
static int decode_entry(struct sv_recorder *r, struct sv_err *err)
{
    struct sv_defer *d = r->system.defer;
    int code = sv_kspool_next(&d->spool, err);
    if (code == SV_KSPOOL_NOTES && !sv_notes_set(&d->notes, d->spool.entry, d->spool.n, NULL, NULL))
        return sv_err_set(err, SV_EFORMAT, SV_NO_POS, "the spool is damaged");
    if (code != SV_KSPOOL_RECORDS && code != SV_KSPOOL_LATE)
        return code;
    d->is_replaying = true;
    sv_decode_read_from(r->system.decode, &d->spool.rings, &d->notes, code == SV_KSPOOL_LATE);
    sv_decode_round(r->system.decode, UINT64_MAX);
    code = sv_recorder_pull(r, &r->system.totals.source, err);
    sv_decode_read_from(r->system.decode, NULL, NULL, true);
    d->is_replaying = false;
    sv_record_commit_many(r, err);
    sv_record_forget_decoded(r, decoded_ns(&d->spool.rings));
    return code < 0 ? code : 1;
}

/* Nothing waits: the spool is given back to the disk when the growing file has all of it. */
static void end_series(struct sv_recorder *r, struct sv_err *err)
{
    struct sv_defer *d = r->system.defer;
    sv_record_commit(r, sv_recorder_now_ns(), true, err);
    sv_kspool_reset(&d->spool);
    d->is_on = false;
}

/* What could not be read again is a loss of unknown size, and the recording continues. */
static int spool_failed(struct sv_recorder *r, struct sv_err *err)
{
    struct sv_defer *d = r->system.defer;
    uint64_t n = sv_defer_waiting(r);
    sv_err_in_file(err, r->options->out.path);
    sv_console_note("%s: about %llu records are lost", err->msg, (unsigned long long)n);
    sv_err_clear(err);
    d->is_over = true;
    d->spool.at = d->spool.end;
    r->losses.sum += n;
    int64_t now = sv_recorder_now_ns();
    sv_decode_lost(r->system.decode, 0, "records of the spool", n, (uint64_t)d->storm.begun_ns,
                   (uint64_t)now);
    return 0;
}

static int decode_until(struct sv_recorder *r, uint64_t at, int64_t until_ns, struct sv_err *err)
{
    struct sv_defer *d = r->system.defer;
    int code = 1;
    while (code > 0 && d->spool.at < at && d->spool.at < d->spool.end) {
        code = decode_entry(r, err);
        if (until_ns && sv_recorder_now_ns() >= until_ns)
            break;
    }
    if (code == 0 && d->spool.at < d->spool.end) /* the file is shorter than what was written */
        code = sv_err_set(err, SV_EIO, SV_NO_POS, "the spool was truncated");
    return code < 0 ? spool_failed(r, err) : 0;
}

/* ---- moving ---- */

static bool begin_series(struct sv_recorder *r, int64_t now)
{
    struct sv_defer *d = r->system.defer;
    struct sv_err err = {0};
    const struct sv_krings *rings = sv_decode_rings(r->system.decode);
    if (d->spool.fd < 0 &&
        sv_kspool_make(&d->spool, r->output.claim.out, (uint32_t)rings->n, &err) < 0) {
        d->is_over = true;
        return false;
    }
    sv_record_commit(r, now, true, &err);
    sv_buf_clear(&d->processes);
    sv_processes_put(&d->processes, sv_decode_tree(r->system.decode),
                     sv_decode_inodes(r->system.decode));
    sv_scout_begin(&d->scout);
    d->looked_at_disk = 0;
    d->is_short = false;
    d->storm.begun_ns = now;
    if (r->output.why.code != 0 || d->processes.failed ||
        !sv_kspool_begin(&d->spool, d->processes.data, d->processes.len, r->output.whole_bytes) ||
        !has_space(d)) {
        d->is_over = true;
        return false;
    }
    d->is_on = true;
    return true;
}

/* All that the rings hold now, as far as the disk has space. False: something in it cannot wait
 * (unless it must), or cannot be written. */
static bool move(struct sv_recorder *r, int64_t now, bool must)
{
    struct sv_defer *d = r->system.defer;
    struct sv_krings *rings = sv_decode_rings(r->system.decode);
    const struct sv_wire_head *h = NULL;
    uint32_t size;
    sv_defer_saw(r, now, sv_krings_round(rings, (uint64_t)now));
    sv_scout_round(&d->scout, now);
    do {
        uint64_t bytes = 0;
        bool is_late = false;
        sv_buf_clear(&d->scout.notes);
        while (bytes < ENTRY_BYTES && (h = sv_krings_next(rings, &size))) {
            is_late = !sv_scout_can_wait(&d->scout, h, size) || is_late;
            if (is_late && !must) {
                sv_krings_rewind(rings);
                return false;
            }
            bytes += size;
        }
        const struct sv_buf *notes = &d->scout.notes;
        if (bytes > 0 && !sv_kspool_append(&d->spool, rings, is_late, notes->data, notes->len)) {
            d->is_over = true; /* what waits is decoded, and so is all that comes */
            sv_krings_rewind(rings);
            return false;
        }
        sv_krings_release(rings);
    } while (h && has_space(d));
    return true;
}

int sv_defer_catch_up(struct sv_recorder *r, struct sv_err *err)
{
    struct sv_defer *d = r->system.defer;
    int code = 0;
    if (!d || !d->is_on)
        return 0;
    while (code >= 0 && d->spool.at < d->spool.end) {
        uint64_t before = d->spool.end;
        /* The last bit is decoded before the rings can fill. */
        if (!d->is_over && !d->is_short && d->spool.end - d->spool.at > 2 * ENOUGH_BYTES)
            move(r, sv_recorder_now_ns(), true);
        uint64_t least = d->spool.end - before > ENOUGH_BYTES ? d->spool.end - before
                                                              : ENOUGH_BYTES;
        code = decode_until(r, d->spool.at + 2 * least, 0, err);
    }
    end_series(r, err);
    return code;
}

bool sv_defer_round(struct sv_recorder *r, int64_t now, int *code, struct sv_err *err)
{
    struct sv_defer *d = r->system.defer;
    *code = 0;
    if (d)
        watch_file(r, now);
    if (!d || (!d->is_on && (d->is_over || !d->storm.is_on || now < d->storm.not_before_ns ||
                             is_followed(d, now) || !begin_series(r, now))))
        return false;
    if (!move(r, now, false)) {
        sv_storm_back_off(&d->storm, now);
        *code = sv_defer_catch_up(r, err);
        return false;
    }
    if (is_full(d) || is_followed(d, now)) {
        *code = sv_defer_catch_up(r, err);
        return true;
    }
    if (!d->storm.is_on && has_idle_cpu()) {
        *code = decode_until(r, UINT64_MAX, now + SLICE_NS, err);
        if (d->spool.at >= d->spool.end)
            end_series(r, err);
    }
    return true;
}

int sv_defer_finish_step(struct sv_recorder *r, unsigned *done, struct sv_err *err)
{
    struct sv_defer *d = r->system.defer;
    *done = 1000;
    if (d && !d->is_on)
        d->is_over = true; /* the rounds that follow are the last ones: nothing waits in them */
    if (!d || !d->is_on)
        return 0;
    if (!d->is_over && !d->is_short && d->spool.end - d->spool.at > 2 * ENOUGH_BYTES)
        move(r, sv_recorder_now_ns(), true);
    int code = decode_until(r, UINT64_MAX, sv_recorder_now_ns() + 5 * SLICE_NS, err);
    if (code < 0 || d->spool.at >= d->spool.end) {
        d->is_over = true;
        end_series(r, err);
        return code;
    }
    *done = (unsigned)((double)d->spool.at * 1000 / (double)d->spool.end);
    return 1;
}

bool sv_defer_is_replaying(const struct sv_recorder *r)
{
    return r->system.defer && r->system.defer->is_replaying;
}

void sv_defer_note(struct sv_recorder *r, uint64_t part_bytes)
{
    if (r->system.defer && r->system.defer->is_on)
        sv_kspool_note(&r->system.defer->spool, part_bytes);
}

uint64_t sv_defer_waiting(const struct sv_recorder *r)
{
    const struct sv_defer *d = r->system.defer;
    return d && d->is_on ? (d->spool.end - d->spool.at) / RECORD_BYTES : 0;
}
