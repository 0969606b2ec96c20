/* From a spool to the trace: each sender's stream is read by the reader of its format with a
 * dictionary of its own, what is missing of it is added as a loss, and the merge puts all of them
 * on one time axis; those that nothing relates to the others are merged into the next file. The
 * same at the end of `stave listen` and in `stave recover`.
 *
 * Streams are untrusted bytes: one that is damaged, or whose clock fits no other's, must not cost
 * the others anything. */
#include "cli/console.h"
#include "clocks/merge.h"
#include "core/files/out_name.h"
#include "core/files/trusted.h"
#include "core/stream/machine.h"
#include "files/held.h"
#include "files/open.h"
#include "listen/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PACKET_MAX ((size_t)64 << 20) /* the memory that one sender can make the reader take */
enum {
    MORE_FILES_MAX = 15
}; /* senders must not make files without end: the last one takes all that are left, as they are */

/* ---- a stream and what it lacks ---- */

struct stream {
    struct sv_source source;
    struct sv_source *inner; /* NULL: it has ended */
    const struct sv_spool_view *view;
    const struct sv_spool_slot *slot;
    struct sv_tally *given; /* where its events are counted, NULL: nowhere */
    uint64_t lost;
    int64_t last_ns;
    bool has_events, is_damaged, has_ended;
};

static void see(struct stream *s, const struct sv_batch *b)
{
    for (size_t i = 0; i < b->n; i++) {
        const struct sv_event *e = &b->events[i];
        int64_t end;
        if (e->dur_ns < 0 || __builtin_add_overflow(e->ts_ns, e->dur_ns, &end))
            end = e->ts_ns;
        if (!s->has_events || end > s->last_ns)
            s->last_ns = end;
        s->has_events = true;
    }
}

static void set_text(struct sv_dict *d, const char *key, const char *value)
{
    if (*value)
        sv_dict_set_meta(d, key, value, strlen(value), false);
}

/* What the listener knew of its machine, where the stream does not say it: that both clocks were
 * read when it began. */
static void describe_listener(struct sv_dict *d, const struct sv_spool_header *h)
{
    if (h->boot_ns > 0 && h->wall_ns > 0) {
        struct sv_snapshot began = {.n = 2, .uncertainty_ns = -1};
        began.readings[0] = (struct sv_reading){SV_CLOCK_BOOTTIME, h->boot_ns};
        began.readings[1] = (struct sv_reading){SV_CLOCK_REALTIME, h->wall_ns};
        sv_clocks_add(&d->clocks, &began);
    }
    set_text(d, SV_META_HOST, h->host);
    set_text(d, SV_META_BOOT, h->boot);
}

/* Programs that send OTLP from this machine do not say so: their processes are those of its other
 * senders. One that names another host (a container, what a collector passes on) is not of this
 * machine. */
static void claim_local(struct stream *s)
{
    struct sv_dict *d = s->source.dict;
    const struct sv_meta *host = sv_dict_find_meta(d, SV_META_HOST);
    if (s->slot->format == SV_SPOOL_OTLP_LOCAL &&
        (!host || strcmp(sv_dict_text(d, host->value).bytes, s->view->header.host) == 0))
        describe_listener(d, &s->view->header);
}

/* No event of it came. Its clock may have; otherwise what is known is when it came to the
 * listener. */
static void place(struct stream *s)
{
    struct sv_dict *d = s->source.dict;
    const struct sv_clocks *c = &d->clocks;
    const struct sv_spool_header *h = &s->view->header;
    if (c->n > 0 && sv_snapshot_get(&c->snapshots[c->n - 1], c->trace_clock, &s->last_ns))
        return;
    s->last_ns = s->slot->since_ns;
    d->clocks.trace_clock = SV_CLOCK_BOOTTIME;
    describe_listener(d, h);
}

static sv_track track_of(const struct stream *s)
{
    struct sv_dict *d = s->source.dict;
    for (uint32_t t = 1; t < d->n_tracks; t++)
        if (d->tracks[t].kind == SV_TRACK_PROCESS)
            return t;
    return sv_dict_child(d, 0, SV_TRACK_CUSTOM, sv_dict_cstr(d, s->slot->peer));
}

static void add_loss(struct stream *s, struct sv_batch *b)
{
    enum sv_spool_cause cause = s->is_damaged ? SV_SPOOL_BAD : (enum sv_spool_cause)s->slot->cause;
    if (!s->has_events)
        place(s);
    struct sv_event *e = sv_batch_event(b);
    e->ts_ns = s->last_ns;
    e->track = track_of(s);
    e->kind = SV_LOSS;
    e->name = sv_dict_cstr(s->source.dict, sv_spool_cause_name(cause));
    sv_batch_int(b, 0, (int64_t)s->lost);
    sv_batch_finish(b, e);
}

static bool is_whole(const struct stream *s)
{
    return s->lost == 0 && !s->is_damaged && s->slot->cause == SV_SPOOL_WHOLE;
}

static void end_inner(struct stream *s)
{
    if (s->inner)
        s->inner->close(s->inner);
    s->inner = NULL;
}

static int count(struct stream *s, const struct sv_batch *b)
{
    if (s->given)
        sv_tally_count(s->given, b->events, b->n);
    return (int)b->n;
}

static int next(struct sv_source *source, struct sv_batch *b, struct sv_err *err)
{
    struct stream *s = (struct stream *)source;
    struct sv_err why = {0};
    int n = s->inner ? s->inner->next(s->inner, b, &why) : 0;
    if (n == SV_EIO || n == SV_ENOMEM)
        return sv_err_set(err, n, why.pos, "%s", why.msg);
    if (n < 0) {
        sv_report_add(s->source.report, SV_DAMAGE, "a sender's stream cannot be read further", 1,
                      why.pos, "%s: %s", s->slot->peer, why.msg);
        s->is_damaged = true;
    }
    see(s, b);
    if (n > 0)
        return count(s, b);
    end_inner(s);
    if (!s->has_ended)
        claim_local(s);
    if (!s->has_ended && !is_whole(s) && b->n < SV_BATCH)
        add_loss(s, b);
    s->has_ended = true;
    return count(s, b);
}

static void close_stream(struct sv_source *source)
{
    end_inner((struct stream *)source);
}

/* ---- the merge ---- */

struct job {
    struct sv_spool_view view;
    struct sv_report report;
    struct sv_merge *merge;
    struct sv_spool_result *result;
    bool checks;  /* reads each file again and counts what it holds */
    bool *is_due; /* by number of the sender: it is in no file yet */
    size_t n_added;
    size_t n_left; /* by the merge that is being made */
};

static void name_sender(size_t i, char name[32])
{
    snprintf(name, 32, "sender-%05zu", i + 1);
}

/* The merge says who must wait for the next file. */
static void leave(void *ctx, const char *name)
{
    struct job *j = ctx;
    size_t number = strtoul(name + sizeof "sender-" - 1, NULL, 10);
    j->is_due[number - 1] = true;
    j->n_left++;
}

static int add_stream(struct job *j, size_t i, struct sv_err *err)
{
    const struct sv_spool_slot *slot = &j->view.streams[i].slot;
    struct sv_spool_frames frames;
    struct sv_input *in;
    char name[32];
    int code = sv_spool_read(&j->view, i, &frames, err);
    if (code < 0)
        return code;
    name_sender(i, name);
    struct sv_dict *dict = sv_dict_new();
    bool is_first = j->result->more_files == 0; /* all come by in the first file's merge */
    struct stream s = {.view = &j->view,
                       .slot = slot,
                       .given = is_first ? &j->result->given : NULL,
                       .lost = frames.lost};
    s.source = (struct sv_source){.next = next,
                                  .close = close_stream,
                                  .gives = SV_HAS_ANYTHING,
                                  .dict = dict,
                                  .report = &j->report};
    sv_input_open_pieces(j->view.fd, frames.pieces, frames.n, name, &in);
    in->window_limit = PACKET_MAX;
    const struct sv_format *format = slot->format == SV_SPOOL_PERFETTO ? &sv_perfetto_format
                                                                       : &sv_otlp_format;
    if (frames.n > 0 && sv_format_open(format, in, &(struct sv_read_options){0}, dict, &j->report,
                                       &s.inner, err) < 0)
        s.is_damaged = true;
    if (s.inner)
        s.source.gives = s.inner->gives;
    sv_err_clear(err);
    struct sv_merge_input input = {.name = name, .dict = dict};
    code = sv_merge_add(j->merge, &input, &s.source, NULL, err);
    j->n_added++;
    if (is_first) {
        j->result->senders++;
        j->result->cut += !is_whole(&s);
        j->result->events += frames.events;
        j->result->lost += frames.lost;
    }
    sv_input_close(in);
    sv_spool_frames_fini(&frames);
    return code;
}

/* A sender that greeted and sent nothing is not in the trace. */
static bool has_sent(const struct sv_spool_stream *s)
{
    return s->n_records > 0 || s->slot.events > 0;
}

static int add_streams(struct job *j, struct sv_err *err)
{
    int code = 0;
    j->n_added = j->n_left = 0;
    for (size_t i = 0; code >= 0 && i < j->view.n; i++) {
        bool is_due = j->is_due[i];
        j->is_due[i] = false;
        if (is_due)
            code = add_stream(j, i, err);
    }
    if (j->view.size - j->view.good >= sizeof(struct sv_spool_record))
        sv_report_add(&j->report, SV_DAMAGE, "damaged spool", 1, (int64_t)j->view.good,
                      "%llu bytes after it are not read",
                      (unsigned long long)(j->view.size - j->view.good));
    return code;
}

/* What was not said now was said to the listener. */
static struct sv_output_choice choose(const struct sv_output_choice *out,
                                      const struct sv_spool_header *h)
{
    struct sv_output_choice c = *out;
    c.to = c.to || !h->to[0] ? c.to : h->to;
    c.compress = c.compress || !h->compress[0] ? c.compress : h->compress;
    c.dialect = c.dialect || !h->dialect[0] ? c.dialect : h->dialect;
    return c;
}

/* Frees the merge. */
static int write_out(struct job *j, const struct sv_output_choice *how, struct sv_err *err)
{
    struct sv_dict *dict = sv_dict_new();
    struct sv_sink *sink;
    int code = j->n_added ? sv_merge_relate(j->merge, dict, &j->report, err) : 0;
    if (code >= 0)
        code = sv_open_output(how, dict, &j->report, &sink, err);
    if (code < 0 || !j->n_added)
        sv_merge_free(j->merge);
    if (code >= 0)
        code = j->n_added ? sv_merge_pump(j->merge, sink, err) : sink->close(sink, false, err);
    sv_dict_free(dict);
    return code;
}

/* Standard output, a pipe and a device hold one trace only. */
static bool can_be_several(const char *path)
{
    struct stat st;
    return path && strcmp(path, "-") != 0 && (stat(path, &st) != 0 || S_ISREG(st.st_mode));
}

/* OUT with a number before its suffix that no file has. */
static bool next_name(const char *path, size_t number, char *to, size_t size)
{
    char text[24];
    for (size_t tries = 0; tries < 1000; tries++) {
        snprintf(text, sizeof text, ".%zu", number + tries);
        if ((size_t)snprintf(to, size, "%s", path) >= size || !sv_name_insert(to, size, text))
            return false;
        if (access(to, F_OK) != 0)
            return true;
    }
    return false;
}

/* One file of all that are due. */
static int make_one(struct job *j, const struct sv_output_choice *how, struct sv_err *err)
{
    struct sv_merge_options options = {.repeats_ranks = true, .left_out_ctx = j};
    if (can_be_several(how->path) && j->result->more_files < MORE_FILES_MAX)
        options.left_out = leave;
    else
        options.assume = true;
    j->merge = sv_merge_new(&options);
    int code = add_streams(j, err);
    if (code < 0) {
        sv_merge_free(j->merge);
        return code;
    }
    code = write_out(j, how, err);
    if (code >= 0 && j->checks) {
        struct sv_tally one;
        code = sv_tally_file(how->path, &one, err);
        sv_tally_add(&j->result->made, &one);
    }
    return code;
}

static int make_all(struct job *j, const struct sv_output_choice *out, struct sv_err *err)
{
    char path[SV_CLAIM_PATH_MAX];
    struct sv_output_choice how = choose(out, &j->view.header);
    int code = make_one(j, &how, err);
    while (code >= 0 && j->n_left > 0) {
        j->result->more_files++;
        if (!next_name(out->path, j->result->more_files + 1, path, sizeof path))
            return sv_error(err, SV_EIO, "%s: no free name is left beside it", out->path);
        sv_console_note("%s: %zu stream%s whose clock nothing relates to the others go to %s",
                        out->path, j->n_left, j->n_left == 1 ? "" : "s", path);
        how.path = path;
        code = make_one(j, &how, err);
    }
    return code;
}

static int merge(int fd, const struct sv_output_choice *out, bool checks,
                 struct sv_spool_result *result, struct sv_err *err)
{
    struct job j = {.result = result, .checks = checks};
    *result = (struct sv_spool_result){0};
    int code = sv_spool_look(fd, &j.view, err);
    if (code < 0)
        return code;
    sv_report_init(&j.report);
    j.is_due = sv_alloc(j.view.n + 1);
    for (size_t i = 0; i < j.view.n; i++)
        j.is_due[i] = has_sent(&j.view.streams[i]);
    code = make_all(&j, out, err);
    sv_console_findings(out->path, &j.report);
    free(j.is_due);
    sv_report_fini(&j.report);
    sv_spool_view_fini(&j.view);
    return code;
}

int sv_spool_merge(int fd, const struct sv_output_choice *out, struct sv_spool_result *result,
                   struct sv_err *err)
{
    return merge(fd, out, false, result, err);
}

/* ---- the end of a claim ---- */

static void say(const char *path, const struct sv_spool_result *r)
{
    char events[32], lost[32];
    sv_human_count(events, r->events);
    if (r->lost == 0 && r->cut == 0)
        sv_console_note("%s: %zu senders, %s events", path, r->senders, events);
    else
        sv_console_note("%s: %zu senders, %s events; %s were lost, and %zu stream%s incomplete",
                        path, r->senders, events, sv_human_count(lost, r->lost), r->cut,
                        r->cut == 1 ? " is" : "s are");
}

/* The law of recovery: nothing goes before the result was read and holds what was there. */
static int check_result(const struct sv_claim *c, const char *path, const struct sv_spool_result *r,
                        struct sv_err *err)
{
    char what[96];
    if (sv_tally_holds(&r->made, &r->given, what, sizeof what))
        return 0;
    return sv_error(err, SV_EIO, "%.200s: it holds only %s of %.200s; nothing was removed", path,
                    what, c->part);
}

int sv_spool_finish(struct sv_claim *c, const struct sv_output_choice *out, unsigned how,
                    struct sv_err *err)
{
    char free_name[SV_CLAIM_PATH_MAX];
    struct sv_output_choice to = *out;
    struct sv_spool_result result;
    int fd = sv_trusted_file(AT_FDCWD, c->part, O_RDONLY, SV_TRUST_OWN, 0);
    if (fd < 0)
        return sv_error(err, SV_EINPUT, "%s: %s", c->part,
                        errno == EPERM ? "it is not a regular file that only you can write"
                                       : strerror(errno));
    if (!to.path && !sv_claim_free_name(c, free_name, sizeof free_name)) {
        close(fd);
        return sv_error(err, SV_EIO, "%s: no free name is left for it", c->out);
    }
    struct stat st;
    bool replaces = !to.path && lstat(free_name, &st) == 0 && st.st_size > 0;
    to.path = to.path ? to.path : free_name;
    int code = merge(fd, &to, how & SV_SPOOL_CHECK, &result, err);
    close(fd);
    if (code >= 0 && how & SV_SPOOL_CHECK)
        code = check_result(c, to.path, &result, err);
    if (code < 0)
        return code;
    say(to.path, &result);
    if (replaces)
        sv_console_note("%s: the file of an earlier run was replaced", to.path);
    if (!(how & SV_SPOOL_KEEP))
        sv_claim_abandon(c);
    return 0;
}
