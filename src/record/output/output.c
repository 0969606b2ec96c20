/* The recorder's output: see record/output/output.h. Called by `stave record` (name, claim) and by
 * the recorder.
 *
 * What was recorded stays. The file grows under a claimed name and is committed a few times a
 * second: flushed, and its length noted in the claim and in the session. When it cannot be written
 * any longer it is cut at the last commit and gets its end, with the loss in it, in bytes that were
 * reserved for that (core/files/output.h); the command continues, and everything it does is still
 * taken from the kernel and from clients, to be counted. */
#include "record/output/output.h"

#include "cli/console.h"
#include "core/files/out_name.h"
#include "core/files/output.h"
#include "core/files/trusted.h"
#include "record/output/leftovers.h"
#include "record/output/ring_files.h"
#include "record/output/saved_name.h"
#include "record/session/recorder.h"
#include "record/spool/defer.h"
#include "sdk/collect/collect.h"
#include "sdk/ring/session_layout.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define COMMIT_EVERY_NS ((int64_t)200000000)
enum { COMMIT_EVENTS = 4096, COMMIT_LINES = 512 }; /* some 100 kB */

/* ---- name and claim ---- */

int sv_record_name(struct sv_record_options *o, char path[static SV_CLAIM_PATH_MAX],
                   struct sv_err *err)
{
    struct sv_launcher l = sv_launcher_find();
    char plain[SV_CLAIM_PATH_MAX];
    const char *pattern = o->out.path;
    bool changed = false;
    if (o->use.last && sv_saved_protect(pattern, plain, sizeof plain))
        pattern = plain;
    const char *why =
        sv_name_expand(pattern, (uint32_t)getpid(), true, &l, path, SV_CLAIM_PATH_MAX);
    if (!why && !sv_name_add_rank(pattern, &l, path, SV_CLAIM_PATH_MAX, &changed))
        why = "too long";
    if (why)
        return sv_err_set(err, SV_EUSAGE, SV_NO_POS, "-o %.200s: %s", pattern, why);
    if (changed && l.rank == 0)
        sv_console_note("each rank writes a file of its own, this one %s; %%r in -o puts the rank "
                        "elsewhere",
                        path);
    if (!sv_saved_split(path, SV_CLAIM_PATH_MAX, o->saved_pattern, sizeof o->saved_pattern))
        return sv_err_set(err, SV_EUSAGE, SV_NO_POS, "-o %.200s: too long", o->out.path);
    o->out.path = path;
    return 0;
}

int sv_record_claim(struct sv_recorder *r, struct sv_err *err)
{
    const char *out = r->options->out.path;
    bool needs_end;
    int can_continue = sv_can_continue(&r->options->out, &needs_end, err);
    if (can_continue < 0)
        return can_continue;
    struct sv_claim_wish wish = {
        .kind = SV_CLAIM_RECORDER,
        .segment = r->options->use.last ? sv_ring_next_number(out) : 0,
        .journals = true,
    };
    int code = sv_claim_take(&r->output.claim, out, &wish, err);
    if (code < 0) {
        sv_err_in_file(err, out);
        return code;
    }
    sv_leftovers_note(&r->output.claim);
    r->output.is_held = true;
    r->output.is_converted = !can_continue;
    r->output.needs_end = can_continue && needs_end;
    r->output.part = r->output.claim.part;
    return 0;
}

void sv_record_unclaim(struct sv_recorder *r)
{
    if (r->output.is_held)
        sv_claim_abandon(&r->output.claim);
    r->output.is_held = false;
}

/* ---- the growing file ---- */

/* What grows: the format that was asked for if a cut file of it can be ended in order, otherwise
 * one that can. */
static struct sv_output_choice growing(const struct sv_recorder *r)
{
    if (!r->output.is_converted)
        return r->options->out;
    return (struct sv_output_choice){.path = "growing.pftrace"};
}

int sv_record_output_open(struct sv_recorder *r, struct sv_err *err)
{
    const struct sv_record_live *live = r->options->live;
    if (live) {
        r->output.part = "";
        r->output.sink = live->open(live->ctx, r->dict);
        return 0;
    }
    struct sv_output_choice choice = growing(r);
    choice.joined = sv_ring_joined(r->output.claim.segment); /* 0: no ring */
    int code = sv_open_growing(&choice, r->output.part, r->dict, &r->report, &r->output.sink, err);
    if (code < 0)
        return sv_err_in_file(err, r->options->out.path);
    return sv_parts_open(r, err);
}

void sv_record_output_session(struct sv_recorder *r, const char *dir)
{
    struct sv_err why = {0};
    if (sv_claim_set_session(&r->output.claim, dir, &why) < 0)
        sv_console_note("'stave recover' will not find the session %s: %s", dir, why.msg);
}

/* What it was cut to and ended with, by its name. Where that leads nowhere, nothing was cut. */
static uint64_t ended_bytes(const struct sv_recorder *r)
{
    struct stat st;
    bool is_there = stat(r->output.part, &st) == 0 && (uint64_t)st.st_size > r->output.whole_bytes;
    return is_there ? (uint64_t)st.st_size : r->output.whole_bytes;
}

static void note_bytes(struct sv_recorder *r, uint64_t bytes)
{
    sv_defer_note(r, bytes); /* first: see record/spool/kspool.h */
    if (r->collect)
        sv_collect_commit(r->collect, bytes);
    sv_claim_whole(&r->output.claim, bytes);
}

static void note_whole(struct sv_recorder *r)
{
    note_bytes(r, r->output.why.code != 0 ? r->output.end_bytes : r->output.whole_bytes);
}

_Static_assert(SV_PART_WHOLE == SV_CLAIM_UNKNOWN, "the same word in session and claim");

int sv_record_output_end(struct sv_recorder *r, struct sv_sink *file, struct sv_err *err)
{
    if (file->rewrites) /* what was committed will not be where it was */
        note_bytes(r, SV_PART_WHOLE);
    return file->close(file, false, err);
}

static bool has_many(const struct sv_recorder *r)
{
    return r->meter.events - r->output.whole_events >=
           (r->output.needs_end ? COMMIT_LINES : COMMIT_EVENTS);
}

static bool is_due(const struct sv_recorder *r, int64_t now)
{
    bool is_late = now - r->output.commit_ns >= COMMIT_EVERY_NS;
    if (r->meter.uncommitted > 0 && (is_late || sv_collect_is_pressed(r->collect)))
        return true;
    return is_late && r->meter.events > r->output.whole_events;
}

void sv_record_commit(struct sv_recorder *r, int64_t now, bool must, struct sv_err *err)
{
    struct sv_record_output *o = &r->output;
    if (r->options->live || (!must && !is_due(r, now)))
        return;
    r->output.commit_ns = now;
    r->meter.uncommitted = 0;
    if (o->why.code == 0 && r->output.sink->flush(r->output.sink, err) < 0)
        sv_record_output_fail(r, err);
    if (o->why.code == 0) {
        o->whole_bytes = sv_output_position(r->output.sink->file);
        o->whole_events = r->meter.events;
        o->whole_lost = r->meter.lost;
        o->whole_ns = now;
    }
    note_whole(r); /* rings are given back, also when nothing can be written */
}

void sv_record_commit_many(struct sv_recorder *r, struct sv_err *err)
{
    if (r->output.why.code == 0 && has_many(r))
        sv_record_commit(r, sv_recorder_now_ns(), true, err);
}

void sv_record_output_turned(struct sv_recorder *r)
{
    r->output.whole_bytes = 0;
    note_whole(r);
}

/* ---- failure ---- */

static int no_write(struct sv_sink *s, const struct sv_event *events, size_t n, struct sv_err *err)
{
    (void)s, (void)events, (void)n, (void)err;
    return 0;
}
static int no_close(struct sv_sink *s, bool failed, struct sv_err *err)
{
    (void)s, (void)failed, (void)err;
    return 0;
}
static int no_flush(struct sv_sink *s, struct sv_err *err)
{
    (void)s, (void)err;
    return 0;
}
static void no_forget(struct sv_sink *s, sv_track track)
{
    (void)s, (void)track;
}

/* What the recorder writes to when the file has ended. */
static struct sv_sink nowhere = {
    .write = no_write,
    .close = no_close,
    .flush = no_flush,
    .forget = no_forget,
    .takes = SV_HAS_ANYTHING,
};

/* The reason without the name of the growing file: OUT is named already. */
static const char *reason(const struct sv_recorder *r)
{
    const char *msg = r->output.why.msg;
    size_t n = strlen(r->output.part);
    return strncmp(msg, r->output.part, n) == 0 && msg[n] == ':' ? msg + n + 2 : msg;
}

/* What may be done about that reason. */
static const char *remedy(const struct sv_recorder *r)
{
    const char *why = reason(r);
    if (strstr(why, strerror(ENOSPC)) || strstr(why, strerror(EDQUOT)))
        return "free space there, record to another folder (-o) or less (--max-size, --last)";
    if (strstr(why, strerror(EFBIG)))
        return "raise the limit (ulimit -f) or record less (--max-size, --last)";
    return "record to another folder (-o)";
}

static int write_loss_to(struct sv_sink *sink, struct sv_dict *dict, const struct sv_recorder *r,
                         uint64_t n, struct sv_err *err)
{
    const struct sv_record_output *o = &r->output;
    sv_track group = sv_dict_child(dict, 0, SV_TRACK_CUSTOM, sv_dict_cstr(dict, "Lost"));
    struct sv_arg count = {.type = SV_ARG_INT, .i = (int64_t)n};
    struct sv_event e = {
        .ts_ns = o->whole_ns,
        .dur_ns = r->times.round_ns > o->whole_ns ? r->times.round_ns - o->whole_ns : 0,
        .track = sv_dict_child(dict, group, SV_TRACK_CUSTOM, sv_dict_cstr(dict, "output")),
        .name = sv_dict_cstr(dict, reason(r)),
        .kind = SV_LOSS,
        .n_args = 1,
        .args = &count,
    };
    return sink->write(sink, &e, 1, err);
}

/* The end of a file that was cut at the last commit. It has a dictionary of its own: of what the
 * file has described before nothing is needed. */
static int write_end(struct sv_recorder *r, uint64_t n_lost, struct sv_err *err)
{
    struct sv_output_choice choice = growing(r);
    struct sv_dict *dict = sv_dict_new();
    struct sv_report report;
    struct sv_sink *sink;
    choice.joined = SV_RING_JOINED_END;
    sv_report_init(&report);
    dict->clocks.trace_clock = SV_CLOCK_BOOTTIME;
    if (r->dict->clocks.n > 0)
        sv_clocks_add(&dict->clocks, &r->dict->clocks.snapshots[r->dict->clocks.n - 1]);
    int code =
        sv_open_rest(&choice, r->output.part, r->output.whole_bytes, dict, &report, &sink, err);
    if (code >= 0) {
        code = write_loss_to(sink, dict, r, n_lost, err);
        int closed = sink->close(sink, code < 0, err);
        code = code < 0 ? code : closed;
    }
    sv_report_fini(&report);
    sv_dict_free(dict);
    r->output.end_bytes = code < 0 ? r->output.whole_bytes : ended_bytes(r);
    return code;
}

int sv_record_output_fail(struct sv_recorder *r, struct sv_err *err)
{
    struct sv_record_output *o = &r->output;
    struct sv_err ignored = {0};
    if (o->why.code != 0)
        return 0;
    o->why = *err;
    sv_err_clear(err);
    if (r->output.sink)
        r->output.sink->close(r->output.sink, true, &ignored);
    r->output.sink = &nowhere;
    /* With an unknown number first: the file is valid even if this is never done again. */
    write_end(r, 0, &ignored);
    note_whole(r);
    sv_console_note("%s: %s: later events are counted but not recorded", r->options->out.path,
                    reason(r));
    return 0;
}

/* ---- the end ---- */

/* A word for a shell. */
static void quote(const char *word, char *to, size_t size)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./+=:@%,";
    bool is_plain = word[strspn(word, plain)] == '\0' && word[0] != '-';
    size_t at = 0;
    if (is_plain) {
        snprintf(to, size, "%s", word);
        return;
    }
    to[at++] = '\'';
    for (; *word && at + 6 < size; word++) {
        if (*word == '\'') {
            memcpy(to + at, "'\\''", 4);
            at += 4;
        } else {
            to[at++] = *word;
        }
    }
    to[at++] = '\'';
    to[at] = '\0';
}

/* Keeps all there is, and says how to continue: the command is printed whole, whatever else must be
 * shortened. */
static int keep(struct sv_recorder *r, struct sv_err *err)
{
    char word[sizeof err->msg - 128], how[sizeof err->msg];
    bool is_full = strstr(err->msg, strerror(ENOSPC)) || strstr(err->msg, strerror(EDQUOT));
    r->output.is_kept = true;
    sv_claim_keep(&r->output.claim);
    quote(r->options->out.path, word, sizeof word);
    size_t n = (size_t)snprintf(how, sizeof how,
                                "; it is kept as " SV_PART_SUFFIX ": %sstave recover %s",
                                is_full ? "free space there, then run: " : "", word);
    size_t len = strlen(err->msg), most = sizeof err->msg - 1 - n;
    memcpy(err->msg + (len < most ? len : most), how, n + 1);
    return err->code;
}

/* OUT in its own format, beside the growing file until it is whole. */
static int convert(struct sv_recorder *r, struct sv_err *err)
{
    struct sv_opened in;
    struct sv_sink *sink;
    struct sv_dict *dict = sv_dict_new();
    char made[SV_CLAIM_PATH_MAX + 8];
    snprintf(made, sizeof made, "%s.new", r->output.part);
    int code = sv_open_input(r->output.part, "perfetto", 0, dict, &in, err);
    in.takes_nothing = true; /* a recording without events is one */
    if (code >= 0)
        code = sv_open_growing(&r->options->out, made, dict, &in.report, &sink, err);
    if (code >= 0)
        code = sv_run(&in, sink, false, "writing", err);
    sv_opened_close(&in);
    sv_dict_free(dict);
    if (code >= 0)
        code = sv_claim_settle_as(&r->output.claim, made, err);
    if (code < 0)
        unlink(made);
    return code < 0 ? err->code : code;
}

static int settle(struct sv_recorder *r, struct sv_err *err)
{
    struct sv_record_output *o = &r->output;
    int code = r->output.parts          ? sv_parts_finish(r, err)
               : r->output.is_converted ? convert(r, err)
                                        : sv_claim_settle(&o->claim, err);
    if (code < 0) {
        sv_err_in_file(err, r->options->out.path);
        return keep(r, err);
    }
    if (strcmp(o->claim.out, r->options->out.path) != 0)
        sv_console_note("%s was written by another process meanwhile: the trace is %s",
                        r->options->out.path, o->claim.out);
    if (o->claim.has_replaced)
        sv_console_note("%s: the file of an earlier run was replaced", o->claim.out);
    return 0;
}

/* One line: what is missing, from when, and why. */
static int report_loss(const struct sv_recorder *r, uint64_t n, struct sv_err *err)
{
    const struct sv_record_output *o = &r->output;
    char count[32], until[32], rest[32];
    return sv_err_set(err, o->why.code, SV_NO_POS,
                      "%.200s: %.150s: the trace ends %s after its beginning; %s events of the %s "
                      "after that are lost",
                      o->claim.out, reason(r),
                      sv_human_ns(until, o->whole_ns - r->times.started_ns),
                      sv_human_count(count, n), sv_human_ns(rest, r->times.round_ns - o->whole_ns));
}

/* Cut at the last commit, with its end if there is space for one. False: it cannot get its name. */
static bool end_in_order(struct sv_recorder *r, uint64_t n_lost)
{
    const struct sv_record_output *o = &r->output;
    struct sv_err why = {0};
    int code = write_end(r, n_lost, &why);
    note_whole(r);
    if (code >= 0)
        return true;
    if (o->whole_bytes == 0)
        return unlink(r->output.part) == 0;
    int fd = sv_trusted_file(AT_FDCWD, r->output.part, O_WRONLY, SV_TRUST_OWN, 0);
    bool is_cut = fd >= 0 && ftruncate(fd, (off_t)o->whole_bytes) == 0;
    if (fd >= 0)
        close(fd);
    return is_cut && !o->needs_end;
}

static int close_failed(struct sv_recorder *r, struct sv_err *err)
{
    const struct sv_record_output *o = &r->output;
    uint64_t n = r->meter.events - o->whole_events + r->meter.lost - o->whole_lost;
    struct sv_err why = {0};
    bool is_in_order = end_in_order(r, n);
    if (!r->output.parts && access(r->output.part, F_OK) != 0) {
        sv_claim_release(&r->output.claim);
        return sv_err_set(err, o->why.code, SV_NO_POS, "%.200s: %.150s: nothing was recorded; %s",
                          r->options->out.path, reason(r), remedy(r));
    }
    int code = is_in_order ? settle(r, &why) : SV_EIO;
    report_loss(r, n, err);
    if (code < 0)
        return keep(r, err);
    size_t len = strlen(err->msg);
    snprintf(err->msg + len, sizeof err->msg - len, "; %s", remedy(r));
    return err->code;
}

/* As it would be after a SIGKILL, but that all is written which the sink has. */
static int close_aborted(struct sv_recorder *r, struct sv_err *err)
{
    struct sv_err ignored = {0};
    sv_record_commit(r, sv_recorder_now_ns(), true, &ignored);
    r->output.sink->close(r->output.sink, true, &ignored);
    r->output.sink = NULL;
    r->output.is_held = false;
    return keep(r, err);
}

int sv_record_output_close(struct sv_recorder *r, int code, struct sv_err *err)
{
    struct sv_record_output *o = &r->output;
    if (!o->is_held)
        return code;
    if (r->has_begun && r->is_aborted && r->output.sink)
        return close_aborted(r, err);
    if (!r->has_begun || !r->output.sink) {
        if (r->output.sink)
            r->output.sink->close(r->output.sink, true, err);
        r->output.sink = NULL;
        sv_record_unclaim(r);
        return code;
    }
    struct sv_err own = {0};
    if (o->why.code == 0) {
        int closed = sv_record_output_end(r, r->output.sink, &own);
        r->output.sink = NULL;
        if (closed < 0)
            sv_record_output_fail(r, &own);
    }
    r->output.sink = NULL;
    o->is_held = false;
    int ended = o->why.code != 0 ? close_failed(r, &own) : settle(r, &own);
    if (ended < 0 && code >= 0)
        *err = own;
    else if (ended < 0)
        sv_console_note("%s", own.msg);
    return code < 0 ? code : ended;
}
