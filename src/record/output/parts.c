/* Parts and rings of long recordings; see record/output/parts.h. Called by the recorder only.
 *
 * A part ends its open slices and the next one begins them again, so each is whole by itself. The
 * segments of a ring are not: they are joined byte by byte, which Perfetto's format allows, after a
 * small file with what was open when the oldest of them began. Joining on a trigger happens in a
 * process of its own, so that the recording continues meanwhile. */
#include "record/output/parts.h"
#include "cli/console.h"
#include "core/files/out_name.h"
#include "core/files/output.h"
#include "core/files/part_name.h"
#include "core/serving/life.h"
#include "core/stream/machine.h"
#include "core/stream/still_open.h"
#include "files/rotation.h"
#include "record/output/ring_files.h"
#include "record/output/saved_name.h"
#include "record/session/recorder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SEGMENTS = 8, SEGMENTS_MAX = 4 * SEGMENTS, CHUNK = 1 << 18, PATH_SIZE = 1200 };
_Static_assert(SEGMENTS_MAX + 1 < SV_RING_SEGMENTS_MAX, "segments of a ring have their numbers");
enum { SNAPSHOTS_MAX = 8192 };
#define LATE_NS ((int64_t)1000000000) /* events reach us at most so late */

struct segment {
    uint32_t number;
    uint64_t bytes;
    int64_t start_ns;
};

struct sv_parts {
    struct sv_sink sink; /* what the recorder writes to */
    struct sv_sink *file;
    struct sv_still still;
    struct sv_clocks old; /* snapshots of the files before */
    bool is_ring;
    uint64_t limit_bytes, count;
    int64_t limit_ns;
    struct segment kept[SEGMENTS_MAX]; /* closed ones, oldest first */
    size_t n_kept;
    uint64_t kept_bytes;
    uint32_t oldest;  /* --rotate: the first part that is still there */
    uint32_t earlier; /* --disk: the first that may be one of a recording before */
    uint64_t earlier_bytes;
    uint32_t first;  /* --rotate: of this recording; what has lower numbers was there before */
    uint32_t number; /* of the file that grows */
    char recording[SV_PART_ID]; /* the same in all parts, and in no other recording */
    int64_t start_ns;
    pid_t saver;
    char saving[PATH_SIZE];
};

/* ---- the sink ---- */

static struct sv_parts *of(struct sv_sink *s)
{
    return (struct sv_parts *)(void *)s;
}

static int parts_write(struct sv_sink *s, const struct sv_event *events, size_t n,
                       struct sv_err *err)
{
    struct sv_parts *p = of(s);
    sv_still_note(&p->still, events, n);
    return p->file->write(p->file, events, n, err);
}

static int parts_flush(struct sv_sink *s, struct sv_err *err)
{
    return of(s)->file->flush(of(s)->file, err);
}

static void parts_forget(struct sv_sink *s, sv_track track)
{
    struct sv_parts *p = of(s);
    sv_still_forget(&p->still, track);
    p->file->forget(p->file, track);
}

/* The parts themselves live on until sv_parts_free(). */
static int parts_close(struct sv_sink *s, bool failed, struct sv_err *err)
{
    struct sv_parts *p = of(s);
    int code = p->file ? p->file->close(p->file, failed, err) : 0;
    p->file = NULL;
    return code;
}

/* ---- which part ---- */

/* Parts of one recording are one trace for whoever reads several of them: files/rotation.h. */
static uint32_t part_of(const struct sv_parts *p)
{
    return p->is_ring ? 0 : p->number - p->first + 1;
}

static void label(struct sv_recorder *r)
{
    const struct sv_parts *p = r->output.parts;
    if (!p->is_ring)
        sv_still_label(r->dict, p->recording, part_of(p), p->start_ns);
}

/* ---- options ---- */

/* 30s, 2min or 256M. */
static int parse_last(const char *text, uint64_t *bytes, int64_t *ns)
{
    size_t len = strlen(text);
    struct sv_moment m = {0};
    *bytes = 0;
    *ns = 0;
    if (sv_is_a_time(text, len)) {
        if (sv_parse_moment(text, len, &m) < 0 || m.is_absolute)
            return SV_EUSAGE;
        *ns = m.ns;
        return m.ns >= 1000000000 ? 0 : SV_EUSAGE;
    }
    if (len == 0 || (text[len - 1] >= '0' && text[len - 1] <= '9'))
        return SV_EUSAGE;
    return sv_parse_bytes(text, bytes);
}

static int parse(const struct sv_record_options *o, struct sv_parts *p, struct sv_err *err)
{
    const struct sv_record_use *u = &o->use;
    struct sv_rotate rotate = {0};
    if (u->rotate && sv_parse_rotate(u->rotate, &rotate) < 0)
        return sv_err_set(err, SV_EUSAGE, SV_NO_POS, "--rotate: '%s' is " SV_NO_ROTATE, u->rotate);
    p->limit_bytes = rotate.bytes;
    p->limit_ns = rotate.ns;
    p->count = rotate.parts;
    if (u->last && (parse_last(u->last, &p->limit_bytes, &p->limit_ns) < 0 ||
                    (p->limit_bytes && p->limit_bytes < SV_ROTATE_BYTES_MIN * SEGMENTS)))
        return sv_err_set(err, SV_EUSAGE, SV_NO_POS,
                          "--last: '%s' is neither a time of at least a second, such as 30s, nor a "
                          "size of at least 2M, such as 256M",
                          u->last);
    p->is_ring = u->last != NULL;
    return 0;
}

int sv_parts_check(const struct sv_record_options *o, struct sv_err *err)
{
    struct sv_parts ignored = {0};
    enum sv_compression around = SV_PLAIN;
    if (!o->use.rotate && !o->use.last)
        return 0;
    if (o->use.rotate && o->use.last)
        return sv_err_set(err, SV_EUSAGE, SV_NO_POS, "--rotate and --last exclude each other");
    const struct sv_format *f = o->out.to     ? sv_format_named(o->out.to)
                                : o->out.path ? sv_format_for_path(o->out.path, &around)
                                              : sv_format_named("perfetto");
    if (!f || strcmp(f->name, "perfetto") != 0 || around != SV_PLAIN)
        return sv_err_set(err, SV_EUSAGE, SV_NO_POS,
                          "--rotate and --last write Perfetto files: give -o a name that ends in "
                          ".pftrace");
    return parse(o, &ignored, err);
}

static uint64_t size_of(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 ? (uint64_t)st.st_size : 0;
}

/* Of a recording before, under this name. */
static bool is_earlier_part(const char *path)
{
    return access(path, F_OK) == 0 && sv_part_label_of(path, NULL).number > 0;
}

/* The newest part of a recording before has the name that ours will have: it gets a number, too. So
 * does what was recovered of one, which need not say that it is a part. */
static void number_earlier(const char *out)
{
    char path[PATH_SIZE];
    if (access(out, F_OK) != 0 || !sv_part_label_of(out, NULL).is_trace)
        return;
    sv_parts_name(out, sv_parts_free_number(out), path, sizeof path);
    if (renameat2(AT_FDCWD, out, AT_FDCWD, path, RENAME_NOREPLACE) != 0 && access(path, F_OK) != 0)
        (void)rename(out, path); /* a file system that cannot refuse to replace */
}

/* What --disk also counts: a recorder that is started again and again shall not fill the disk. */
static void count_earlier(struct sv_parts *p, const char *out)
{
    char path[PATH_SIZE];
    p->earlier = p->first;
    for (uint32_t n = p->first; n-- > 1;) {
        sv_parts_name(out, n, path, sizeof path);
        if (is_earlier_part(path)) {
            p->earlier = n;
            p->earlier_bytes += size_of(path);
        }
    }
}

/* The file that grows now. */
static void begin_file(struct sv_parts *p, struct sv_sink *file)
{
    p->file = file;
    p->sink.file = file->file;
}

int sv_parts_open(struct sv_recorder *r, struct sv_err *err)
{
    if (!r->options->use.rotate && !r->options->use.last)
        return 0;
    struct sv_parts *p = sv_alloc(sizeof *p);
    p->sink = (struct sv_sink){.write = parts_write,
                               .close = parts_close,
                               .flush = parts_flush,
                               .forget = r->output.sink->forget ? parts_forget : NULL};
    sv_sink_takes_as(&p->sink, r->output.sink, SV_IN_NO_ORDER);
    begin_file(p, r->output.sink);
    static const char *const naming[] = SV_LIFE_NAMING;
    sv_still_repeat(&p->still, r->dict, SV_LIFE_CATEGORY, naming);
    if (r->options->use.rotate)
        number_earlier(r->options->out.path);
    p->first = r->options->use.rotate ? sv_parts_free_number(r->options->out.path)
                                      : r->output.claim.segment;
    if (r->options->use.rotate && r->options->triggers.disk_bytes)
        count_earlier(p, r->options->out.path);
    p->number = p->oldest = p->first;
    p->start_ns = sv_recorder_now_ns();
    r->output.parts = p;
    r->output.sink = &p->sink;
    int code = parse(r->options, p, err);
    sv_part_new_id(p->recording);
    label(r);
    return code;
}

/* ---- names ---- */

static void segment_name(const struct sv_recorder *r, uint32_t number, bool is_open,
                         char path[static SV_RING_PATH_MAX])
{
    sv_ring_segment_name(r->options->out.path, number, is_open, path);
}

/* ---- the next file ---- */

static void remove_segment(const struct sv_recorder *r, uint32_t number)
{
    char path[PATH_SIZE];
    for (int is_open = 0; is_open < 2; is_open++) {
        segment_name(r, number, is_open, path);
        unlink(path);
    }
}

static void drop_oldest(struct sv_recorder *r)
{
    struct sv_parts *p = r->output.parts;
    remove_segment(r, p->kept[0].number);
    p->kept_bytes -= p->kept[0].bytes;
    memmove(p->kept, p->kept + 1, --p->n_kept * sizeof *p->kept);
}

/* What the ring may forget: never more than was asked for is kept on the disk, never less than the
 * time. */
static void forget(struct sv_recorder *r, int64_t now)
{
    struct sv_parts *p = r->output.parts;
    while (p->n_kept == SEGMENTS_MAX ||
           (p->limit_bytes && p->n_kept &&
            p->kept_bytes > p->limit_bytes / SEGMENTS * (SEGMENTS - 1)) ||
           (p->limit_ns && p->n_kept > 1 && p->kept[1].start_ns <= now - p->limit_ns))
        drop_oldest(r);
}

static void drop_oldest_part(struct sv_recorder *r)
{
    struct sv_parts *p = r->output.parts;
    char gone[PATH_SIZE];
    sv_parts_name(r->options->out.path, p->oldest++, gone, sizeof gone);
    uint64_t bytes = size_of(gone);
    if (unlink(gone) == 0)
        p->kept_bytes -= bytes < p->kept_bytes ? bytes : p->kept_bytes;
}

/* What is no part, or gone, is left alone. */
static void drop_earlier(struct sv_recorder *r)
{
    struct sv_parts *p = r->output.parts;
    char path[PATH_SIZE];
    sv_parts_name(r->options->out.path, p->earlier++, path, sizeof path);
    uint64_t bytes = size_of(path);
    if (is_earlier_part(path) && unlink(path) == 0)
        p->earlier_bytes -= bytes < p->earlier_bytes ? bytes : p->earlier_bytes;
}

/* --disk: the parts and the one that grows are never more for longer than a round. */
static void keep_to_disk(struct sv_recorder *r)
{
    struct sv_parts *p = r->output.parts;
    uint64_t disk = r->options->triggers.disk_bytes;
    while (disk && !p->is_ring && (p->earlier < p->first || p->oldest < p->number) &&
           p->earlier_bytes + p->kept_bytes + sv_output_position(p->sink.file) > disk) {
        if (p->earlier < p->first)
            drop_earlier(r);
        else
            drop_oldest_part(r);
    }
}

/* The file that has ended gets its name: a part that stays, or a segment. */
static int put_away(struct sv_recorder *r, int64_t now, struct sv_err *err)
{
    struct sv_parts *p = r->output.parts;
    char path[PATH_SIZE];
    if (p->is_ring)
        segment_name(r, p->number, false, path);
    else
        sv_parts_name(r->options->out.path, p->number, path, sizeof path);
    /* the newest one counts */
    while (!p->is_ring && p->count > 1 && p->number - p->oldest + 1 >= p->count)
        drop_oldest_part(r);
    if (p->count == 1 ? unlink(r->output.part) != 0 : rename(r->output.part, path) != 0)
        return sv_err_sys(err, "cannot rename %s", r->output.part);
    p->oldest += p->count == 1;
    uint64_t bytes = size_of(path);
    p->kept_bytes += bytes;
    if (p->is_ring) {
        p->kept[p->n_kept++] = (struct segment){p->number, bytes, p->start_ns};
        forget(r, now);
    }
    return 0;
}

/* Of very many every second one goes, so that days need no more memory than hours. */
static void thin_out(struct sv_clocks *old)
{
    size_t n = 0;
    for (size_t i = 0; old->n >= SNAPSHOTS_MAX && i < old->n; i += 2)
        old->snapshots[n++] = old->snapshots[i];
    old->n = n ? n : old->n;
}

/* Only the newest snapshot goes into the next file; the others are kept for the logs and for names
 * with %t. */
static void turn_clocks(struct sv_recorder *r)
{
    struct sv_clocks *c = &r->dict->clocks;
    thin_out(&r->output.parts->old);
    for (size_t i = 0; i + 1 < c->n; i++)
        sv_clocks_add(&r->output.parts->old, &c->snapshots[i]);
    if (c->n > 1) {
        c->snapshots[0] = c->snapshots[c->n - 1];
        c->n = 1;
    }
}

/* Ring: what is open now, as a file of its own, for the day when this segment is the oldest one. */
static int write_open(struct sv_recorder *r, int64_t now, struct sv_err *err)
{
    char path[PATH_SIZE];
    struct sv_sink *sink;
    struct sv_output_choice choice = r->options->out;
    choice.joined = SV_RING_JOINED_OPEN;
    segment_name(r, r->output.parts->number, true, path);
    int code = sv_open_growing(&choice, path, r->dict, &r->report, &sink, err);
    if (code < 0)
        return code;
    code = sv_still_begin(&r->output.parts->still, now - LATE_NS, 0, r->dict, sink, err);
    int closed = sink->close(sink, code < 0, err);
    return code < 0 ? code : closed;
}

static int end_file(struct sv_recorder *r, int64_t now, struct sv_err *err)
{
    struct sv_parts *p = r->output.parts;
    sv_recorder_snapshot(r);
    sv_record_commit(r, now, true, err);
    if (r->output.why.code != 0) /* that has ended it */
        return sv_err_set(err, r->output.why.code, SV_NO_POS, "%s", r->output.why.msg);
    int code = p->is_ring
                   ? 0
                   : sv_still_end(&p->still, now - LATE_NS, part_of(p) + 1, r->dict, p->file, err);
    int closed = code < 0 ? p->file->close(p->file, true, err)
                          : sv_record_output_end(r, p->file, err);
    p->file = NULL;
    if (code >= 0)
        code = closed;
    if (code >= 0)
        code = put_away(r, now, err);
    if (code >= 0)
        sv_record_output_turned(r);
    return code;
}

static int turn(struct sv_recorder *r, int64_t now, struct sv_err *err)
{
    struct sv_parts *p = r->output.parts;
    int code = end_file(r, now, err);
    if (code < 0)
        return code;
    turn_clocks(r);
    sv_record_meter_new_file(r);
    p->number++;
    p->start_ns = sv_recorder_now_ns(); /* `now` is from before what this round has written */
    struct sv_sink *file;
    label(r);
    struct sv_output_choice choice = r->options->out;
    choice.joined = p->is_ring ? sv_ring_joined(p->number) : 0;
    code = sv_open_growing(&choice, r->output.part, r->dict, &r->report, &file, err);
    if (code >= 0) {
        begin_file(p, file);
        code = p->is_ring
                   ? write_open(r, now, err)
                   : sv_still_begin(&p->still, now - LATE_NS, part_of(p), r->dict, p->file, err);
    }
    if (code >= 0)
        sv_record_commit(r, now, true, err);
    return code;
}

/* ---- saving a ring ---- */

static int copy_into(struct sv_output *out, int fd, struct sv_err *err)
{
    static char chunk[CHUNK];
    ssize_t n;
    while ((n = read(fd, chunk, sizeof chunk)) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return sv_err_sys(err, "cannot read a segment");
        sv_output_write(out, chunk, (size_t)n);
        if (sv_output_failure(out, err) < 0)
            return err->code;
    }
    return 0;
}

struct join_list {
    int fds[SEGMENTS_MAX + 3];
    size_t n;
};

/* Opened before anything can be forgotten; the first one says what was open before the second. */
static int open_segments(const struct sv_recorder *r, struct join_list *list, bool with_newest,
                         struct sv_err *err)
{
    const struct sv_parts *p = r->output.parts;
    char path[PATH_SIZE];
    uint32_t oldest = p->n_kept ? p->kept[0].number : p->number;
    list->n = 0;
    segment_name(r, oldest, true, path);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) /* the very first segment has none */
        list->fds[list->n++] = fd;
    for (size_t i = 0; i < p->n_kept + with_newest; i++) {
        if (i < p->n_kept)
            segment_name(r, p->kept[i].number, false, path);
        fd = open(i < p->n_kept ? path : r->output.part, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            return sv_err_sys(err, "%s", i < p->n_kept ? path : r->output.part);
        list->fds[list->n++] = fd;
    }
    return 0;
}

static void close_segments(struct join_list *list)
{
    for (size_t i = 0; i < list->n; i++)
        close(list->fds[i]);
    list->n = 0;
}

static int join_segments(const struct join_list *list, const char *to, struct sv_err *err)
{
    struct sv_output *out;
    int code = sv_output_open(to, SV_OUTPUT_RENAME, SV_PLAIN, &out, err);
    for (size_t i = 0; code >= 0 && i < list->n; i++) {
        code = copy_into(out, list->fds[i], err);
        if (code < 0)
            sv_output_discard(out);
    }
    return code < 0 ? code : sv_output_close(out, err);
}

/* Why it is saved, before everything else. */
static int open_head(struct sv_recorder *r, struct join_list *list,
                     const struct sv_saved_cause *cause, struct sv_err *err)
{
    char path[PATH_SIZE];
    snprintf(path, sizeof path, "%.1100s.head", r->output.part);
    int code = sv_saved_head(r, path, cause, err);
    if (code < 0)
        return code;
    list->fds[list->n] = open(path, O_RDONLY | O_CLOEXEC);
    unlink(path);
    if (list->fds[list->n] < 0)
        return sv_err_sys(err, "%s", path);
    list->n++;
    return 0;
}

/* The segments up to now, in the background. */
int sv_parts_save(struct sv_recorder *r, int64_t now, const char *path,
                  const struct sv_saved_cause *cause, struct sv_err *err)
{
    struct sv_parts *p = r->output.parts;
    struct join_list list = {0};
    if (r->output.why.code != 0) /* nothing is written any more */
        return 0;
    int code = turn(r, now, err);
    if (code < 0)
        return sv_record_output_fail(r, err);
    snprintf(p->saving, sizeof p->saving, "%s", path);
    struct sv_err why = {0};
    if (open_segments(r, &list, false, &why) >= 0 &&
        (!cause || open_head(r, &list, cause, &why) >= 0)) {
        fflush(NULL);
        p->saver = fork();
        if (p->saver == 0)
            _exit(join_segments(&list, p->saving, &why) < 0 ? 1 : 0);
    }
    if (p->saver < 0 || why.code != SV_OK)
        sv_console_note("could not save %s", p->saving);
    close_segments(&list);
    return 0;
}

static void look_after_saver(struct sv_recorder *r, bool waits)
{
    struct sv_parts *p = r->output.parts;
    int status = 0;
    if (p->saver <= 0 || waitpid(p->saver, &status, waits ? 0 : WNOHANG) != p->saver)
        return;
    p->saver = 0;
    if (status != 0)
        sv_console_note("could not save %s: is the disk full?", p->saving);
    else
        sv_triggers_saved(r, p->saving);
}

bool sv_parts_is_saving(const struct sv_recorder *r)
{
    return r->output.parts && r->output.parts->saver > 0;
}

void sv_parts_wait(struct sv_recorder *r)
{
    if (r->output.parts)
        look_after_saver(r, true);
}

/* ---- the recorder's calls ---- */

static bool is_time(const struct sv_recorder *r, int64_t now)
{
    const struct sv_parts *p = r->output.parts;
    unsigned parts = p->is_ring ? SEGMENTS : 1;
    uint64_t limit = p->limit_bytes / parts;
    if (p->limit_ns)
        return now - p->start_ns >= p->limit_ns / parts;
    return sv_output_position(p->sink.file) >= limit;
}

int sv_parts_round(struct sv_recorder *r, int64_t now, struct sv_err *err)
{
    struct sv_parts *p = r->output.parts;
    if (!p || r->output.why.code != 0)
        return 0;
    look_after_saver(r, false);
    keep_to_disk(r);
    return is_time(r, now) ? turn(r, now, err) : 0;
}

/* Beside the growing file until it is whole. */
static int finish_ring(struct sv_recorder *r, struct sv_err *err)
{
    struct join_list list = {0};
    char made[PATH_SIZE];
    snprintf(made, sizeof made, "%.1100s.new", r->output.part);
    look_after_saver(r, true);
    if (sv_triggers_drop_rest(r)) {
        r->output.is_dropped = true;
        unlink(r->output.part);
        sv_claim_release(&r->output.claim);
        return 0;
    }
    int code = open_segments(r, &list, access(r->output.part, F_OK) == 0, err);
    if (code >= 0)
        code = join_segments(&list, made, err);
    close_segments(&list);
    if (code >= 0)
        code = sv_claim_settle_as(&r->output.claim, made, err);
    if (code < 0)
        unlink(made);
    return code;
}

int sv_parts_finish(struct sv_recorder *r, struct sv_err *err)
{
    const struct sv_parts *p = r->output.parts;
    const char *out = r->options->out.path;
    char newest[PATH_SIZE];
    if (p->is_ring)
        return finish_ring(r, err);
    r->output.first_part = p->oldest;
    r->output.last_part = p->number;
    if (access(r->output.part, F_OK) != 0 &&
        p->number > p->first) { /* a full disk: no other was begun */
        sv_parts_name(out, --r->output.last_part, newest, sizeof newest);
        return sv_claim_settle_as(&r->output.claim, newest, err);
    }
    if (p->oldest > p->first)
        sv_console_note("%u parts, the oldest %u of them removed; the newest is %s",
                        p->number - p->first + 1, p->oldest - p->first, out);
    else if (p->number > p->first)
        sv_console_note("%u parts; the newest is %s", p->number - p->first + 1, out);
    return sv_claim_settle(&r->output.claim, err);
}

void sv_parts_free(struct sv_recorder *r)
{
    struct sv_parts *p = r->output.parts;
    if (!p)
        return;
    look_after_saver(r, true);
    while (p->n_kept > 0 && !r->output.is_kept)
        drop_oldest(r);
    if (p->is_ring && !r->output.is_kept)
        remove_segment(r, p->number);
    sv_still_fini(&p->still);
    sv_clocks_fini(&p->old);
    free(p);
    r->output.parts = NULL;
}

uint64_t sv_parts_bytes(const struct sv_recorder *r)
{
    return r->output.parts ? r->output.parts->kept_bytes : 0;
}

void sv_parts_counts(const struct sv_recorder *r, uint64_t *n, uint64_t *n_removed)
{
    const struct sv_parts *p = r->output.parts;
    bool has = p && !p->is_ring;
    *n = has ? p->number - p->first + 1 : 0;
    *n_removed = has ? p->oldest - p->first : 0;
}

void sv_parts_clocks(const struct sv_recorder *r, struct sv_clocks *all)
{
    const struct sv_clocks *halves[] = {r->output.parts ? &r->output.parts->old : NULL,
                                        &r->dict->clocks};
    *all = (struct sv_clocks){.trace_clock = r->dict->clocks.trace_clock};
    for (int h = 0; h < 2; h++)
        for (size_t i = 0; halves[h] && i < halves[h]->n; i++)
            sv_clocks_add(all, &halves[h]->snapshots[i]);
}
