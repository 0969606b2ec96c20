/* The stage `gpu rows`: work of devices to rows by device, context and stream, or by kind of work.
 *
 * Called by `stave convert --gpu-tracks`. Kineto's files have device and stream as pid and tid,
 * TraceSmith's say the kind of work in an argument: here both become rows. What an event does not
 * say about itself is asked of its track. Flow points follow the newest slice that came from their
 * track, which formats write directly before them. Everything else passes. Whole slices come in; on
 * the new rows they may overlap. */
#include "core/stream/gpu_words.h"
#include "core/stream/stages.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct rows {
    struct sv_sink sink;
    struct sv_sink *next;
    struct sv_dict *dict;
    struct sv_gpu_words words;
    bool by_kind;
    sv_track *moved; /* by old track: where its newest event went */
    size_t n_moved, cap_moved;
};

static sv_track child(struct rows *r, sv_track parent, unsigned kind, const char *name)
{
    return sv_dict_child(r->dict, parent, kind, sv_dict_cstr(r->dict, name));
}

static sv_track numbered(struct rows *r, sv_track parent, unsigned kind, const char *word,
                         int64_t n)
{
    char name[64];
    snprintf(name, sizeof name, "%s %lld", word, (long long)n);
    sv_track t = child(r, parent, kind, name);
    if (!r->dict->tracks[t].has_order) {
        r->dict->tracks[t].has_order = true;
        r->dict->tracks[t].order = n;
        sv_dict_touch(r->dict, t);
    }
    return t;
}

/* The number that the event says, else that of its track (Kineto: pid and tid), else 0. */
static int64_t number_of(const struct rows *r, int64_t said, sv_track above, int64_t otherwise)
{
    if (said >= 0 || !above)
        return said >= 0 ? said : otherwise >= 0 ? otherwise : 0;
    int64_t n = sv_gpu_number_in(sv_dict_text(r->dict, r->dict->tracks[above].name));
    return n >= 0 ? n : 0;
}

static const char *copy_row(enum sv_gpu_direction d)
{
    switch (d) {
    case SV_GPU_DIR_H2D: return "GPU Memory Copy (H→D)";
    case SV_GPU_DIR_D2H: return "GPU Memory Copy (D→H)";
    case SV_GPU_DIR_P2P: return "GPU Memory Copy (P→P)";
    default: return "GPU Memory Copy (D→D)";
    }
}

static const char *kind_row(const struct sv_gpu_facts *f, const char *cat)
{
    switch (f->class_) {
    case SV_GPU_KERNEL: return "GPU Compute";
    case SV_GPU_COPY: return copy_row(f->direction);
    case SV_GPU_SET:
    case SV_GPU_ALLOC: return "GPU Memory Ops";
    case SV_GPU_WAIT: return "GPU Synchronization";
    case SV_GPU_POINT: return strcmp(cat, "gpu") == 0 ? "GPU Other" : "GPU Stream";
    default: return "GPU Other";
    }
}

static sv_track new_track(struct rows *r, const struct sv_event *e, const struct sv_gpu_facts *f)
{
    const struct sv_dict *d = r->dict;
    sv_track process = sv_dict_process_of(d, e->track), thread = sv_dict_thread_of(d, e->track);
    sv_track device = sv_gpu_device_of(d, e->track), stream = sv_gpu_stream_of(d, e->track);
    sv_track gpu = device;
    if (!device)
        gpu = numbered(r, process, SV_TRACK_GPU, "GPU",
                       number_of(r, f->device, 0, process ? d->tracks[process].pid : -1));
    if (r->by_kind)
        return child(r, gpu, SV_TRACK_STREAM, kind_row(f, sv_dict_text(d, e->cat).bytes));
    if (stream && device)
        return e->track;
    if (f->context > 0)
        gpu = numbered(r, gpu, SV_TRACK_CUSTOM, "Context", f->context);
    if (f->stream < 0 && !stream && thread && d->tracks[thread].tid < 0)
        return gpu; /* Kineto's waits for a whole device have the stream -1 */
    return numbered(r, gpu, SV_TRACK_STREAM, "Stream",
                    number_of(r, f->stream, stream, thread ? d->tracks[thread].tid : -1));
}

static sv_track *moved_of(struct rows *r, sv_track t)
{
    if (t >= r->n_moved) {
        r->moved = sv_grow(r->moved, &r->cap_moved, (size_t)t + 1, sizeof *r->moved);
        memset(r->moved + r->n_moved, 0, (r->cap_moved - r->n_moved) * sizeof *r->moved);
        r->n_moved = r->cap_moved;
    }
    return &r->moved[t];
}

/* Host calls, counters and what is known of a device stay. */
static bool is_moved(const struct rows *r, const struct sv_event *e, enum sv_gpu_class c)
{
    return (e->kind == SV_SLICE || e->kind == SV_INSTANT) && c != SV_GPU_NONE && c != SV_GPU_CALL &&
           strcmp(sv_dict_text(r->dict, e->cat).bytes, "gpu_device") != 0;
}

static sv_track place(struct rows *r, const struct sv_event *e)
{
    if (e->kind == SV_FLOW) {
        sv_track t = *moved_of(r, e->track);
        return t ? t : e->track;
    }
    enum sv_gpu_class c = sv_gpu_class_of(&r->words, r->dict, e->cat);
    if (!is_moved(r, e, c))
        return e->track;
    struct sv_gpu_facts f = sv_gpu_facts(&r->words, r->dict, e);
    sv_track t = new_track(r, e, &f);
    if (e->kind == SV_SLICE)
        *moved_of(r, e->track) = t;
    return t;
}

static int rows_write(struct sv_sink *s, const struct sv_event *events, size_t n,
                      struct sv_err *err)
{
    struct rows *r = (struct rows *)s;
    struct sv_event out[SV_BATCH];
    for (size_t done = 0; done < n;) {
        size_t part = n - done < SV_BATCH ? n - done : SV_BATCH;
        for (size_t i = 0; i < part; i++) {
            out[i] = events[done + i];
            out[i].track = place(r, &out[i]);
        }
        int code = r->next->write(r->next, out, part, err);
        if (code < 0)
            return code;
        done += part;
    }
    return 0;
}

static int rows_close(struct sv_sink *s, bool failed, struct sv_err *err)
{
    struct rows *r = (struct rows *)s;
    int code = r->next->close(r->next, failed, err);
    sv_gpu_words_fini(&r->words);
    free(r->moved);
    free(r);
    return code;
}

struct sv_sink *sv_gpu_rows_new(struct sv_dict *dict, struct sv_report *report, bool by_kind,
                                struct sv_sink *next)
{
    struct rows *r = sv_alloc(sizeof *r);
    unsigned shape = SV_HAS_SLICES | SV_IN_NO_ORDER | SV_HAS_FLOW_POINTS;
    r->sink = (struct sv_sink){.write = rows_write, .close = rows_close, .takes = shape};
    r->next = sv_pump_adapt(shape, next, dict, report, NULL);
    r->dict = dict;
    r->by_kind = by_kind;
    sv_gpu_words_init(&r->words, dict);
    return &r->sink;
}
