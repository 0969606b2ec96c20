/* See record/session/triggers.h. Called by the recorder's loop and by the meter. */
#include "record/session/triggers.h"

#include "cli/console.h"
#include "core/base/mem.h"
#include "record/output/saved_name.h"
#include "record/session/recorder.h"
#include "record/spool/defer.h"
#include "record/when/when.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { DISK_LEAST = 1 << 20 };
enum { KEEP_DEFAULT = 20, KEEP_MOST = 100000, EXPLAIN_MOST = 4, INSTANTS_PER_S = 10 };
#define LATE_NS ((int64_t)500000000) /* events reach us at most so late: for what did not happen */

struct saved {
    char *path;
    uint64_t bytes;
};

struct sv_triggers {
    struct sv_when *when;
    int64_t tail_ns, pause_ns;
    uint64_t keep;
    sv_track row;
    sv_str cat, cause_key, number_key;
    bool writes;        /* our own instants are no events to judge */
    bool is_due;        /* `hit` waits for its tail until due_ns */
    bool has_saved_end; /* a hit at the end of the recording */
    int64_t due_ns, rests_until_ns;
    struct sv_when_hit hit;
    char path[SV_CLAIM_PATH_MAX];                   /* being saved */
    char line[SV_WHEN_CAUSE_MAX + 256];             /* what is said when it is */
    uint64_t n_hits, n_saved, n_removed, n_skipped; /* skipped: counted, and not said yet */
    uint64_t skipped_all;
    int64_t second_ns; /* since when instants are counted, and how many there were */
    unsigned n_instants;
    uint32_t number; /* of the last file without %t */
    struct saved *saved;
    size_t first_saved, end_saved, cap_saved;
    char explains[EXPLAIN_MOST][SV_CLAIM_PATH_MAX];
    size_t n_explains;
    pid_t explainer;
};

/* ---- options ---- */

static int parse_time(const char *text, const char *missing, const char *option, int64_t *ns,
                      struct sv_err *err)
{
    struct sv_moment m = {0};
    text = text ? text : missing;
    if (sv_parse_moment(text, strlen(text), &m) < 0 || m.is_absolute || m.ns < 0)
        return sv_error(err, SV_EUSAGE, "--%s: '%s' is not a time such as 2s or 500ms", option,
                        text);
    *ns = m.ns;
    return 0;
}

static int parse(const struct sv_record_options *o, struct sv_triggers *t, struct sv_err *err)
{
    const struct sv_trigger_options *u = &o->triggers;
    int code = parse_time(u->tail, "2s", "tail", &t->tail_ns, err);
    if (code >= 0)
        code = parse_time(u->pause, "30s", "pause", &t->pause_ns, err);
    t->keep = u->keep ? u->keep : KEEP_DEFAULT;
    if (code >= 0 && t->keep > KEEP_MOST)
        code = sv_error(err, SV_EUSAGE, "--keep: at most %d files", KEEP_MOST);
    for (size_t i = 0; code >= 0 && i < u->when.n; i++)
        code = sv_when_add(t->when, u->when.items[i], err);
    return code;
}

static int check_needs(const struct sv_record_options *o, const struct sv_when *w,
                       struct sv_err *err)
{
    bool has_samples = !o->interval || strcmp(o->interval, "0") != 0;
    if ((sv_when_needs(w) & (SV_WHEN_PRESSURE | SV_WHEN_OOM)) && !has_samples)
        return sv_error(err, SV_EUSAGE,
                        "--when: pressure and oom are sampled: they need an --interval");
    if ((sv_when_needs(w) & SV_WHEN_PRESSURE) && access("/proc/pressure/cpu", R_OK) != 0)
        return sv_error(err, SV_EIO,
                        "--when: this kernel has no /proc/pressure (CONFIG_PSI, or psi=1 on the "
                        "kernel's command line)");
    return 0;
}

int sv_triggers_check(struct sv_record_options *o, struct sv_err *err)
{
    const struct sv_trigger_options *u = &o->triggers;
    if (u->disk_bytes && !u->when.n && !o->use.rotate)
        return sv_error(err, SV_EUSAGE, "--disk means something only with --rotate or --when");
    if (u->disk_bytes && u->disk_bytes < DISK_LEAST)
        return sv_error(err, SV_EUSAGE, "--disk: at least 1M");
    if (!u->when.n) {
        const char *alone = u->keep ? "keep" : u->tail ? "tail" : u->pause ? "pause" : NULL;
        return !alone ? 0
                      : sv_error(err, SV_EUSAGE, "--%s means something only with --when", alone);
    }
    if (o->use.rotate)
        return sv_error(err, SV_EUSAGE,
                        "--when saves a ring (--last): it cannot be combined with --rotate");
    struct sv_dict *dict = sv_dict_new();
    struct sv_triggers t = {.when = sv_when_new(dict)};
    int code = parse(o, &t, err);
    if (code >= 0)
        code = check_needs(o, t.when, err);
    sv_when_free(t.when);
    sv_dict_free(dict);
    if (!o->use.last)
        o->use.last = "60s";
    return code;
}

int sv_triggers_open(struct sv_recorder *r, struct sv_err *err)
{
    if (!r->options->use.last)
        return 0;
    struct sv_triggers *t = sv_alloc(sizeof *t);
    struct sv_dict *d = r->dict;
    r->triggers = t;
    t->when = sv_when_new(d);
    t->cat = sv_dict_cstr(d, "trigger");
    t->cause_key = sv_dict_cstr(d, "cause");
    t->number_key = sv_dict_cstr(d, "hit");
    int code = parse(r->options, t, err);
    if (code >= 0 && sv_when_needs(t->when) & SV_WHEN_OOM)
        r->samplers.also |= SV_USAGE_OOM;
    if (code >= 0 && sv_when_needs(t->when) & SV_WHEN_PRESSURE)
        r->samplers.also |= SV_USAGE_PRESSURE;
    return code;
}

/* ---- what is fed ---- */

void sv_triggers_feed(struct sv_recorder *r, const struct sv_event *events, size_t n)
{
    if (r->triggers && !r->triggers->writes)
        sv_when_feed(r->triggers->when, events, n);
}

void sv_triggers_forget(struct sv_recorder *r, sv_track track)
{
    if (r->triggers)
        sv_when_forget(r->triggers->when, track);
}

void sv_triggers_suspended(struct sv_recorder *r, int64_t ns)
{
    if (r->triggers)
        sv_when_suspended(r->triggers->when, ns);
}

/* ---- hits ---- */

/* What a trace may have of a hit. */
static const char *said_condition(const struct sv_recorder *r, const struct sv_when_hit *h)
{
    const struct sv_when *w = r->triggers->when;
    bool is_hidden = r->options->redact && sv_when_is_private(w, h->condition);
    return is_hidden ? "log (redacted)" : sv_when_text(w, h->condition);
}

static const char *said_cause(const struct sv_recorder *r, const struct sv_when_hit *h)
{
    bool is_hidden = r->options->redact && sv_when_is_private(r->triggers->when, h->condition);
    return is_hidden ? "a new line of a log (redacted)" : h->cause;
}

/* Into the trace: the event, its condition and its cause. */
static int write_instant(struct sv_recorder *r, const struct sv_when_hit *h, struct sv_err *err)
{
    struct sv_triggers *t = r->triggers;
    struct sv_dict *d = r->dict;
    if (h->ts_ns - t->second_ns >= 1000000000 || h->ts_ns < t->second_ns) {
        t->second_ns = h->ts_ns;
        t->n_instants = 0;
    }
    if (t->n_instants++ >= INSTANTS_PER_S)
        return 0;
    if (!t->row)
        t->row = sv_dict_child(d, 0, SV_TRACK_CUSTOM, sv_dict_cstr(d, "Triggers"));
    const char *cause = said_cause(r, h);
    const struct sv_arg args[] = {
        {.key = t->cause_key,
         .type = SV_ARG_TEXT,
         .size = (uint32_t)strlen(cause) & 0xffffff,
         .text = cause},
        {.key = t->number_key, .type = SV_ARG_INT, .i = (int64_t)t->n_hits},
    };
    struct sv_event e = {.ts_ns = h->ts_ns,
                         .track = t->row,
                         .name = sv_dict_cstr(d, said_condition(r, h)),
                         .cat = t->cat,
                         .kind = SV_INSTANT,
                         .flags = SV_SCOPE_GLOBAL,
                         .n_args = 2,
                         .args = args};
    t->writes = true;
    int code = r->meter.input->write(r->meter.input, &e, 1, err);
    t->writes = false;
    return code;
}

static int take_hits(struct sv_recorder *r, int64_t now, struct sv_err *err)
{
    struct sv_triggers *t = r->triggers;
    struct sv_when_hit h;
    int code = 0;
    while (code >= 0 && sv_when_next(t->when, &h)) {
        t->n_hits++;
        code = write_instant(r, &h, err);
        if (t->is_due || now < t->rests_until_ns) {
            t->n_skipped++;
            t->skipped_all++;
            continue;
        }
        t->is_due = true;
        t->hit = h;
        t->due_ns = (h.ts_ns < now ? now : h.ts_ns) + t->tail_ns;
    }
    return code;
}

static void say_unseen(struct sv_triggers *t)
{
    unsigned condition;
    const char *what;
    while (sv_when_unseen(t->when, false, &condition, &what))
        sv_console_note("--when '%s': for a minute nothing was recorded that is %s: is the name "
                        "right, and is it recorded?",
                        sv_when_text(t->when, condition), what);
}

/* ---- saving ---- */

static void forget_oldest(struct sv_triggers *t)
{
    struct saved *s = &t->saved[t->first_saved++];
    unlink(s->path);
    free(s->path);
    t->n_removed++;
}

/* --keep and --disk. The newest one stays. */
static void make_room(struct sv_recorder *r)
{
    struct sv_triggers *t = r->triggers;
    uint64_t disk = r->options->triggers.disk_bytes, sum = sv_parts_bytes(r);
    for (size_t i = t->first_saved; i < t->end_saved; i++)
        sum += t->saved[i].bytes;
    while (t->end_saved - t->first_saved > 1 &&
           (t->end_saved - t->first_saved > t->keep || (disk && sum > disk))) {
        sum -= t->saved[t->first_saved].bytes;
        forget_oldest(t);
    }
}

static void keep_saved(struct sv_recorder *r, const char *path)
{
    struct sv_triggers *t = r->triggers;
    struct stat st;
    if (t->first_saved > 64 && t->first_saved > t->end_saved / 2) {
        t->end_saved -= t->first_saved;
        memmove(t->saved, t->saved + t->first_saved, t->end_saved * sizeof *t->saved);
        t->first_saved = 0;
    }
    SV_APPEND(t->saved, t->end_saved, t->cap_saved) =
        (struct saved){.path = sv_strndup(path, strlen(path)),
                       .bytes = stat(path, &st) == 0 ? (uint64_t)st.st_size : 0};
    if (r->options->triggers.when.n)
        make_room(r);
}

static int save_hit(struct sv_recorder *r, int64_t now, struct sv_err *err)
{
    struct sv_triggers *t = r->triggers;
    char utc[32];
    int code = sv_defer_waiting(r) > 0 ? sv_defer_catch_up(r, err) : 0;
    if (code < 0)
        return code;
    sv_saved_time(r, t->hit.ts_ns, utc);
    sv_saved_name(r->options, utc, &t->number, t->path, sizeof t->path);
    snprintf(t->line, sizeof t->line, "%s: %s", sv_when_text(t->when, t->hit.condition),
             t->hit.cause);
    const struct sv_saved_cause cause = {.condition = said_condition(r, &t->hit),
                                         .cause = said_cause(r, &t->hit),
                                         .utc = utc,
                                         .ts_ns = t->hit.ts_ns,
                                         .skipped = t->n_skipped};
    t->is_due = false;
    t->rests_until_ns = now + t->pause_ns;
    t->n_skipped = 0;
    return sv_parts_save(r, now, t->path, &cause, err);
}

/* Asked for by SIGUSR1. */
static int save_manually(struct sv_recorder *r, int64_t now, struct sv_err *err)
{
    struct sv_triggers *t = r->triggers;
    char utc[32];
    sv_saved_time(r, now, utc);
    sv_saved_name(r->options, utc, &t->number, t->path, sizeof t->path);
    t->line[0] = '\0';
    r->signals.n_triggers = 0;
    return sv_parts_save(r, now, t->path, NULL, err);
}

void sv_triggers_saved(struct sv_recorder *r, const char *path)
{
    struct sv_triggers *t = r->triggers;
    sv_console_note(t->line[0] ? "saved %s: %s" : "saved %s%s", path, t->line);
    t->n_saved++;
    r->status.shown_ns = 0; /* at once: stave trigger waits for it */
    keep_saved(r, path);
    if (r->explain && r->options->explain && t->n_explains < EXPLAIN_MOST)
        snprintf(t->explains[t->n_explains++], sizeof t->explains[0], "%s", path);
}

/* One after the other, each in a process of its own. */
static void explain(struct sv_recorder *r, bool waits)
{
    struct sv_triggers *t = r->triggers;
    int status;
    if (t->explainer > 0 && waitpid(t->explainer, &status, waits ? 0 : WNOHANG) == t->explainer)
        t->explainer = 0;
    if (t->explainer > 0 || t->n_explains == 0)
        return;
    fflush(NULL);
    t->explainer = fork();
    if (t->explainer == 0) {
        sigprocmask(SIG_SETMASK, &r->child.mask, NULL);
        r->explain(t->explains[0], t->line);
        fflush(NULL);
        _exit(0);
    }
    memmove(t->explains[0], t->explains[1], (EXPLAIN_MOST - 1) * sizeof t->explains[0]);
    t->n_explains--;
}

int sv_triggers_round(struct sv_recorder *r, int64_t now, struct sv_err *err)
{
    struct sv_triggers *t = r->triggers;
    if (!t)
        return 0;
    if (sv_defer_waiting(r) == 0) /* else what has not come may be waiting */
        sv_when_tick(t->when, now - LATE_NS);
    int code = take_hits(r, now, err);
    say_unseen(t);
    explain(r, false);
    if (code < 0 || sv_parts_is_saving(r))
        return code;
    if (r->signals.n_triggers > 0)
        return save_manually(r, now, err);
    return t->is_due && now >= t->due_ns ? save_hit(r, now, err) : 0;
}

/* Without kernel programs no event says how the command ended. */
static void feed_command(struct sv_recorder *r, int64_t now)
{
    if (r->system.kernel || !r->child.has_ended)
        return;
    const char *slash = strrchr(r->command->items[0], '/');
    sv_when_exit(r->triggers->when, now, slash ? slash + 1 : r->command->items[0], r->child.status);
}

int sv_triggers_finish(struct sv_recorder *r, int64_t now, struct sv_err *err)
{
    struct sv_triggers *t = r->triggers;
    if (!t)
        return 0;
    feed_command(r, now);
    sv_when_tick(t->when, now);
    int code = take_hits(r, now, err);
    if (code < 0 || !t->is_due)
        return code;
    sv_parts_wait(r);
    t->has_saved_end = true;
    return save_hit(r, now, err);
}

bool sv_triggers_drop_rest(const struct sv_recorder *r)
{
    bool failed = r->command->n > 0 && sv_child_exit_code(r) != 0;
    return r->options->saved_pattern[0] && (!failed || r->triggers->has_saved_end);
}

void sv_triggers_close(struct sv_recorder *r)
{
    struct sv_triggers *t = r->triggers;
    if (!t)
        return;
    sv_parts_wait(r);
    while (t->explainer > 0 || t->n_explains > 0)
        explain(r, true);
    if (t->skipped_all)
        sv_console_note("%llu more events met a condition while another was saved or within "
                        "--pause: they are in the trace, not in files of their own",
                        (unsigned long long)t->skipped_all);
    while (t->first_saved < t->end_saved)
        free(t->saved[t->first_saved++].path);
    free(t->saved);
    sv_when_free(t->when);
    free(t);
    r->triggers = NULL;
}

struct sv_trigger_counts sv_triggers_counts(const struct sv_recorder *r)
{
    const struct sv_triggers *t = r->triggers;
    if (!t)
        return (struct sv_trigger_counts){.newest = ""};
    return (struct sv_trigger_counts){
        .hits = t->n_hits,
        .saved = t->n_saved,
        .removed = t->n_removed,
        .skipped = t->skipped_all,
        .newest = t->end_saved > t->first_saved ? t->saved[t->end_saved - 1].path : ""};
}
