/* Files with explicit times: stave/file.h.
 *
 * Part of libstave.a and of the Python package. A file is a dictionary, a batch and a sink with the
 * stages that it needs (sort, split or lanes); events are handed on in batches. One lock per file.
 * An exhausted heap fails the file, not the program; so does a write that the system refuses. */
#include "core/files/out_name.h"
#include "core/stream/stages.h"
#include "core/stream/writer.h"
#include "sdk/drain/drain_items.h"
#include "sdk/emit/track_rows.h"
#include "sdk/session/destination.h"
#include "sdk/session/quiet.h"
#include "sdk/session/say.h"
#include "sdk/write/writer.h"

#include <stave/file.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct stave_file {
    pthread_mutex_t lock;
    struct sv_dict *dict;
    struct sv_report report;
    struct sv_sink *sink, *end; /* the first stage, which sorts; the format */
    int64_t released_ns;        /* what begins before is in the file */
    struct sv_batch *batch;
    struct sv_err err; /* the first failure */
    bool failed;
    char path[SV_PATH_MAX], part[SV_PATH_MAX + 64];
};

static _Atomic unsigned n_files;
#define WRITER "libstave"

/* What the first failure is for the caller. */
static int code_of(const struct sv_err *err)
{
    return err->code == SV_ENOMEM   ? STAVE_EMEMORY
           : err->code == SV_EUSAGE ? STAVE_EUSAGE
                                    : STAVE_EOUTPUT;
}

/* Runs `f` so that an exhausted heap comes back here, and a refused write (`writes`: there may be
 * one) without a signal. */
static int guarded(struct stave_file *file, int (*f)(struct stave_file *, const void *),
                   const void *arg, bool writes)
{
    jmp_buf jump;
    jmp_buf *outer = sv_no_memory;
    volatile int status = STAVE_EMEMORY;
    struct sv_quiet quiet;
    if (writes)
        sv_quiet_begin(&quiet);
    sv_no_memory = &jump;
    if (setjmp(jump) == 0) {
        status = f(file, arg);
    } else {
        file->failed = true;
        sv_error(&file->err, SV_ENOMEM, "out of memory");
    }
    sv_no_memory = outer;
    if (writes)
        sv_quiet_end(&quiet);
    return status;
}

static int locked(struct stave_file *file, int (*f)(struct stave_file *, const void *),
                  const void *arg)
{
    pthread_mutex_lock(&file->lock);
    bool writes = file->batch->n + 1 >= SV_BATCH; /* full batches are handed on */
    int status = file->failed ? code_of(&file->err) : guarded(file, f, arg, writes);
    pthread_mutex_unlock(&file->lock);
    return status;
}

/* ---- open and close ---- */

struct opening {
    const char *compress;
    const char *dialect; /* of TraceSmith's JSON; NULL: the suffix selects the format */
};

static int open_tracesmith(struct stave_file *f, const char *dialect)
{
    enum sv_compression whole = SV_PLAIN;
    struct sv_write_options options = {.dialect = dialect, .adds_metadata = true};
    struct sv_output *o;
    if (!sv_name_suffix(f->path, sv_chrome_writer.suffixes, &whole))
        whole = SV_PLAIN; /* any name will do */
    int status = sv_output_open(f->part, SV_OUTPUT_GROW, whole, &o, &f->err);
    if (status < 0)
        return status;
    status = sv_tracesmith_writer.open(o, &options, f->dict, &f->report, &f->sink, &f->err);
    if (status < 0)
        sv_output_discard(o);
    return status;
}

static int prepare(struct stave_file *f, const void *arg)
{
    const struct opening *how = arg;
    f->dict = sv_dict_new();
    sv_report_init(&f->report);
    f->batch = sv_alloc(sizeof *f->batch);
    sv_batch_init(f->batch);
    f->released_ns = INT64_MIN;
    if (!how->dialect)
        sv_dict_set_meta(f->dict, "writer", WRITER, strlen(WRITER), false);
    int status = how->dialect ? open_tracesmith(f, how->dialect)
                              : sv_destination_sink(f->path, f->part, how->compress, f->dict,
                                                    &f->report, &f->sink, &f->err);
    if (status < 0)
        return code_of(&f->err);
    f->end = f->sink;
    f->sink = sv_pump_adapt(SV_HAS_SLICES | SV_IN_NO_ORDER, f->sink, f->dict, &f->report, NULL);
    return 0;
}

static void release(struct stave_file *f)
{
    if (f->batch) {
        sv_batch_fini(f->batch);
        free(f->batch);
    }
    if (f->dict) {
        sv_dict_free(f->dict);
        sv_report_fini(&f->report);
    }
    pthread_mutex_destroy(&f->lock);
    free(f);
}

/* `why` is what is wrong with the path, or NULL. */
static struct stave_file *open_file(const char *path, const struct opening *how, const char *why,
                                    struct stave_error *error)
{
    sv_fail(error, STAVE_OK, 0, "");
    if (!why && sv_stream_is(path))
        why = "explicit times go to files only";
    struct stave_file *f = why ? NULL : calloc(1, sizeof *f);
    if (!f) {
        sv_fail(error, why ? STAVE_EUSAGE : STAVE_EMEMORY, 0, why ? why : "out of memory");
        return NULL;
    }
    pthread_mutex_init(&f->lock, NULL);
    unsigned number = atomic_fetch_add(&n_files, 1);
    why = sv_destination_expand(path, (uint32_t)getpid(), f->path, sizeof f->path);
    snprintf(f->part, sizeof f->part, "%s.%d.%u.part", f->path, (int)getpid(), number);
    int status = why ? STAVE_EUSAGE : guarded(f, prepare, how, true);
    if (status == 0)
        return f;
    sv_fail(error, status, 0, why ? why : f->err.msg);
    unlink(f->part);
    release(f);
    return NULL;
}

static const char need_name[] = "a name is needed";

struct stave_file *stave_file_open(const char *path, const char *compress,
                                   struct stave_error *error)
{
    struct opening how = {.compress = compress ? compress : ""};
    char text[SV_DESTINATION_TEXT];
    const char *why = path && *path ? sv_destination_check(path, how.compress, text, sizeof text)
                                    : need_name;
    return open_file(path, &how, why, error);
}

struct stave_file *stave_file_open_tracesmith(const char *path, unsigned parts,
                                              struct stave_error *error)
{
    static const char *const dialects[] = {SV_TRACESMITH_BASIC, SV_TRACESMITH_NO_FLOWS,
                                           SV_TRACESMITH_NO_TRACKS, SV_TRACESMITH};
    struct opening how = {.compress = "", .dialect = dialects[parts & 3]};
    return open_file(path, &how, path && *path ? NULL : need_name, error);
}

static int hand_on(struct stave_file *f)
{
    int status = f->sink->write(f->sink, f->batch->events, f->batch->n, &f->err);
    sv_batch_reset(f->batch);
    f->failed = status < 0;
    return status < 0 ? code_of(&f->err) : 0;
}

static int finish(struct stave_file *f, const void *arg)
{
    (void)arg;
    int status = f->batch->n ? hand_on(f) : 0;
    struct sv_sink *sink = f->sink;
    f->sink = NULL;
    int closed = sink->close(sink, status < 0, &f->err);
    return status < 0 ? status : closed < 0 ? code_of(&f->err) : 0;
}

static int release_events(struct stave_file *f, const void *arg)
{
    int64_t before_ns = *(const int64_t *)arg;
    if (!f->end->flush)
        return STAVE_EUSAGE;
    if (before_ns > f->released_ns)
        f->released_ns = before_ns;
    int status = f->batch->n ? hand_on(f) : 0;
    if (status >= 0)
        status = sv_sort_release(f->sink, f->released_ns, &f->err);
    if (status >= 0)
        status = f->end->flush(f->end, &f->err);
    f->failed = status < 0;
    return status < 0 ? code_of(&f->err) : 0;
}

int stave_file_flush(struct stave_file *f, int64_t before_ns)
{
    pthread_mutex_lock(&f->lock);
    int status = f->failed ? code_of(&f->err) : guarded(f, release_events, &before_ns, true);
    pthread_mutex_unlock(&f->lock);
    return status;
}

int stave_file_close(struct stave_file *f, struct stave_error *error)
{
    int status = f->failed ? code_of(&f->err) : guarded(f, finish, NULL, true);
    if (f->failed && f->sink) /* its memory may be what is missing: it stays */
        f->sink = NULL;
    if (status == 0 && rename(f->part, f->path) != 0) {
        sv_err_sys(&f->err, "cannot rename the finished file");
        status = STAVE_EOUTPUT;
    }
    sv_fail(error, status, 0, status != 0 ? f->err.msg : "");
    if (status != 0)
        unlink(f->part);
    release(f);
    return status;
}

static int drop(struct stave_file *f, const void *arg)
{
    (void)arg;
    struct sv_sink *sink = f->sink;
    f->sink = NULL;
    return sink->close(sink, true, &f->err);
}

void stave_file_discard(struct stave_file *f)
{
    if (!f->failed) /* else its memory may be what is missing: it stays */
        guarded(f, drop, NULL, true);
    unlink(f->part);
    release(f);
}

/* ---- tracks ---- */

struct wanted {
    unsigned kind;
    uint32_t parent;
    int64_t pid, tid;
    const char *name, *unit;
    uint32_t track;
};

static int find_track(struct stave_file *f, const void *arg)
{
    struct wanted *w = (struct wanted *)(uintptr_t)arg;
    struct sv_dict *d = f->dict;
    if (w->parent >= d->n_tracks)
        return -1;
    sv_str name = sv_dict_cstr(d, w->name ? w->name : "");
    if (w->kind == SV_TRACK_PROCESS)
        w->track = sv_dict_process(d, 0, w->pid);
    else if (w->kind == SV_TRACK_THREAD)
        w->track = sv_dict_thread(d, 0, w->pid, w->tid);
    else
        w->track = sv_dict_child(d, w->parent, w->kind, name);
    struct sv_track_info *info = &d->tracks[w->track];
    if (info->name != name || !info->is_described) {
        info->name = name;
        info->is_described = true;
        sv_dict_touch(d, w->track);
    }
    if (w->unit && *w->unit)
        info->unit = sv_dict_cstr(d, w->unit);
    return 0;
}

static uint32_t track_of(struct stave_file *f, struct wanted w)
{
    return locked(f, find_track, &w) == 0 ? w.track : 0;
}

uint32_t stave_file_process(struct stave_file *f, int64_t pid, const char *name)
{
    return track_of(f, (struct wanted){.kind = SV_TRACK_PROCESS, .pid = pid, .name = name});
}

uint32_t stave_file_thread(struct stave_file *f, int64_t pid, int64_t tid, const char *name)
{
    return track_of(f,
                    (struct wanted){.kind = SV_TRACK_THREAD, .pid = pid, .tid = tid, .name = name});
}

uint32_t stave_file_track(struct stave_file *f, uint32_t parent, const char *name)
{
    return track_of(f, (struct wanted){.kind = SV_TRACK_CUSTOM, .parent = parent, .name = name});
}

uint32_t stave_file_track_as(struct stave_file *f, enum stave_row row, uint32_t parent,
                             const char *name)
{
    return track_of(
        f, (struct wanted){.kind = sv_track_kind_of_row(row), .parent = parent, .name = name});
}

uint32_t stave_file_counter(struct stave_file *f, uint32_t parent, const char *name,
                            const char *unit)
{
    return track_of(
        f, (struct wanted){
               .kind = SV_TRACK_COUNTER, .parent = parent, .name = name, .unit = unit ? unit : ""});
}

struct metadata {
    const char *key, *value;
};

static int put_metadata(struct stave_file *f, const void *arg)
{
    const struct metadata *m = arg;
    sv_dict_set_meta(f->dict, m->key, m->value, strlen(m->value), false);
    return 0;
}

int stave_file_metadata(struct stave_file *f, const char *key, const char *value)
{
    struct metadata m = {key, value};
    return key && *key && value ? locked(f, put_metadata, &m) : STAVE_EUSAGE;
}

/* ---- events ---- */

static int put_event(struct stave_file *f, const void *arg)
{
    const struct stave_event *given = arg;
    static const uint8_t kinds[] = {[STAVE_KIND_INSTANT] = SV_INSTANT,
                                    [STAVE_KIND_COUNTER] = SV_COUNTER,
                                    [STAVE_KIND_COMPLETE] = SV_SLICE};
    if (given->track == 0 || given->track >= f->dict->n_tracks ||
        (size_t)given->kind >= sizeof kinds || kinds[given->kind] == 0)
        return STAVE_EUSAGE;
    int64_t dur_ns = given->kind == STAVE_KIND_COMPLETE && given->dur_ns > 0 ? given->dur_ns : 0;
    int64_t end_ns;
    if (__builtin_add_overflow(given->start_ns, dur_ns, &end_ns) ||
        given->start_ns < f->released_ns)
        return STAVE_EUSAGE;
    struct sv_batch *b = f->batch;
    struct sv_event *e = sv_batch_event(b);
    *e = (struct sv_event){.ts_ns = given->start_ns,
                           .dur_ns = dur_ns,
                           .track = given->track,
                           .kind = kinds[given->kind]};
    if (given->kind == STAVE_KIND_COUNTER) {
        struct sv_arg *a = sv_batch_arg(b);
        a->type = SV_ARG_DOUBLE;
        a->d = given->value;
    } else {
        e->name = sv_dict_cstr(f->dict, given->name ? given->name : "");
        e->cat = sv_dict_cstr(f->dict, given->category ? given->category : "");
        if (given->args) {
            const char *bytes =
                sv_batch_text(b, given->args->bytes, given->args->len); /* until the batch goes */
            sv_items_put(f->dict, b, 0, (const uint8_t *)bytes, given->args->len);
        }
    }
    sv_batch_finish(b, e);
    return b->n == SV_BATCH ? hand_on(f) : 0;
}

int stave_file_emit(struct stave_file *f, const struct stave_event *event)
{
    return locked(f, put_event, event);
}
