/* The Chrome reader's device rows: work of accelerators in files whose categories do not say so
 * (docs/gpu.md).
 *
 * TensorFlow and rocprof name a process after what its slices are, TraceSmith's first form has a
 * number among the arguments. Metadata events note the rows here; the phase file asks for every
 * slice once there is such a row, and for slices with an id, which TraceSmith's have; so other
 * files pay one branch. Given are a category of the vocabulary and what the name knew: `device`,
 * `stream`, `correlation`, `bytes`. Arguments of the file stay. A row whose name comes later than
 * its slices is not found. */
#include "formats/chrome/reader.h"

#include "core/stream/gpu_words.h"

#include <stdlib.h>
#include <strings.h>

/* ---- text ---- */

/* What follows the first `word`, in any case; false when it is not there. */
static bool after(struct sv_text t, const char *word, struct sv_text *rest)
{
    size_t n = strlen(word);
    for (size_t i = 0; i + n <= t.len; i++) {
        if (strncasecmp(t.bytes + i, word, n) == 0) {
            *rest = (struct sv_text){t.bytes + i + n, (uint32_t)(t.len - i - n)};
            return true;
        }
    }
    return false;
}

static bool has_word(struct sv_text t, const char *word)
{
    struct sv_text rest;
    return after(t, word, &rest);
}

/* The digits that t starts with; false without any or when they are too many. */
static bool number(struct sv_text t, int64_t *out)
{
    enum { DIGITS_MAX = 18 };
    size_t i = 0;
    int64_t v = 0;
    for (; i < t.len && i < DIGITS_MAX && t.bytes[i] >= '0' && t.bytes[i] <= '9'; i++)
        v = v * 10 + (t.bytes[i] - '0');
    *out = v;
    return i > 0 && i < DIGITS_MAX;
}

/* ---- rows ---- */

/* TensorFlow writes the same work up to three times: as the executor's operations on a device, for
 * all streams, for each stream. The most exact one that is named before the slices counts. */
enum { LEVEL_OPERATIONS = 1, LEVEL_ALL_STREAMS, LEVEL_STREAM };

/* "/device:GPU:0/stream:13<MemcpyH2D> Compute", "/job:…/device:GPU:0 Compute", "/gpu:0/stream:all
 * Compute", "/device:GPU:0". */
static bool tensorflow_row(struct sv_text name, struct chrome_device_row *row)
{
    struct sv_text rest, stream;
    if (sv_text_begins(name, "/host:CPU")) {
        row->what = CHROME_ROW_HOST;
        return true;
    }
    if (!sv_text_begins(name, "/") ||
        !(after(name, "device:GPU:", &rest) || after(name, "/gpu:", &rest)) ||
        !number(rest, &row->device) || has_word(rest, " Tensors"))
        return false;
    row->what = CHROME_ROW_TENSORFLOW;
    row->level = LEVEL_OPERATIONS;
    if (after(rest, "/sync", &stream)) {
        row->what = CHROME_ROW_WAITS;
        row->level = 0; /* nobody repeats them */
    } else if (after(rest, "/memcpy", &stream) || after(rest, "stream:all", &stream)) {
        row->level = LEVEL_ALL_STREAMS;
    } else if (after(rest, "stream:", &stream) || after(rest, "stream#", &stream)) {
        row->level = LEVEL_STREAM;
        if (!number(stream, &row->stream))
            row->stream = -1;
    }
    row->is_copy = has_word(rest, "memcpy");
    return true;
}

/* "GPU0", "COPY", "CPU HIP API"; tools that merge ranks add a word. */
static bool rocprof_row(struct sv_text name, struct chrome_device_row *row)
{
    static const struct {
        const char *name;
        enum chrome_row what;
    } rows[] = {
        {"COPY", CHROME_ROW_ROCM_COPY},
        {"CPU HIP API", CHROME_ROW_HIP},
        {"CPU HSA API", CHROME_ROW_HSA},
        {"Markers and Ranges", CHROME_ROW_ROCM_RANGES},
    };
    if (sv_text_begins(name, "GPU") &&
        number((struct sv_text){name.bytes + 3, name.len - 3}, &row->device)) {
        row->what = CHROME_ROW_ROCM;
        return true;
    }
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        size_t n = strlen(rows[i].name);
        if (sv_text_begins(name, rows[i].name) && (name.len == n || name.bytes[n] == ' ')) {
            row->what = rows[i].what;
            return true;
        }
    }
    return false;
}

void chrome_device_row(struct chrome_reader *r, sv_track process)
{
    struct sv_text name = sv_dict_text(r->dict, r->dict->tracks[process].name);
    struct chrome_device_row row = {.device = -1, .stream = -1};
    if (r->is_stave || (!tensorflow_row(name, &row) && !rocprof_row(name, &row)))
        return;
    if (row.level) {
        uint64_t *level = sv_map_add(&r->device_levels, (uint64_t)row.device, NULL);
        *level = row.level > *level ? row.level : *level;
    }
    r->device_rows = sv_grow(r->device_rows, &r->cap_device_rows, r->n_device_rows + 1, sizeof row);
    r->device_rows[r->n_device_rows++] = row;
    *sv_map_add(&r->device_row_of, process, NULL) = r->n_device_rows;
}

void chrome_device_fini(struct chrome_reader *r)
{
    sv_map_fini(&r->device_row_of);
    sv_map_fini(&r->device_levels);
    free(r->device_rows);
}

/* ---- slices ---- */

/* What an event is said to be; the numbers are -1 when they are not known. */
struct work {
    const char *cat;
    int64_t device, stream, correlation, bytes;
    const char *copy_kind; /* or NULL */
};

static int64_t arg_number(struct chrome_reader *r, const struct chrome_fields *f, const char *key)
{
    int64_t v;
    const struct sv_arg *a = chrome_find_arg(r, f, key);
    return a && sv_gpu_whole(a, &v) ? v : -1;
}

static bool has_arg(struct chrome_reader *r, const struct chrome_fields *f, const char *key)
{
    return chrome_find_arg(r, f, key) != NULL;
}

static bool starts_in_any_case(struct sv_text t, const char *word)
{
    size_t n = strlen(word);
    return t.len >= n && strncasecmp(t.bytes, word, n) == 0;
}

/* By the start of the name only: kernels that copy or fill are kernels. */
static const char *work_category(struct sv_text name, bool is_copy)
{
    if (starts_in_any_case(name, "memset") || sv_text_is(name, "FillBuffer"))
        return "gpu_memset";
    return is_copy || starts_in_any_case(name, "memcpy") ? "gpu_memcpy" : "kernel";
}

/* "kind:pageable size:8 dest:0 async:1" */
static int64_t bytes_in_details(struct chrome_reader *r, const struct chrome_fields *f)
{
    const struct sv_arg *a = chrome_find_arg(r, f, "memcpy_details");
    struct sv_text rest;
    int64_t v;
    if (!a || a->type != SV_ARG_TEXT ||
        !after((struct sv_text){a->text, a->size}, "size:", &rest) || !number(rest, &v))
        return -1;
    return v;
}

/* Threads of a profile's device are streams, "Stream #13(Compute)", or what was derived from them
 * ("XLA Ops", "Steps"), which must not count again. Those of a timeline have no names. */
static bool tensorflow_thread(const struct chrome_reader *r, sv_track thread, int64_t *stream)
{
    struct sv_text name = sv_dict_text(r->dict, r->dict->tracks[thread].name), rest;
    if (name.len == 0)
        return true;
    if (!sv_text_begins(name, "Stream #") || !after(name, "#", &rest))
        return false;
    if (!number(rest, stream))
        *stream = -1;
    return true;
}

static bool tensorflow_work(struct chrome_reader *r, const struct chrome_fields *f, sv_track thread,
                            const struct chrome_device_row *row, struct work *w)
{
    const uint64_t *level = sv_map_find(&r->device_levels, (uint64_t)row->device);
    struct sv_text name = sv_dict_text(r->dict, f->name);
    if ((level && row->level && row->level < *level) || !tensorflow_thread(r, thread, &w->stream))
        return false;
    bool is_copy = row->is_copy || has_arg(r, f, "memcpy_details");
    w->cat = row->what == CHROME_ROW_WAITS ? "cuda_sync" : work_category(name, is_copy);
    w->correlation = arg_number(r, f, "correlation_id");
    w->bytes = bytes_in_details(r, f);
    return true;
}

/* A call of the driver on the host says which work it launched. */
static bool tensorflow_call(struct chrome_reader *r, const struct chrome_fields *f, struct work *w)
{
    w->correlation = arg_number(r, f, "correlation_id");
    w->cat = sv_text_begins(sv_dict_text(r->dict, f->name), "hip") ? "hip_runtime" : "cuda_driver";
    return w->correlation >= 0;
}

/* All of rocprof's slices have BeginNs; other files may have processes that are called GPU0. */
static bool rocprof_work(struct chrome_reader *r, const struct chrome_fields *f,
                         const struct chrome_device_row *row, struct work *w)
{
    struct sv_text name = sv_dict_text(r->dict, f->name);
    if (!has_arg(r, f, "BeginNs"))
        return false;
    if (row->what == CHROME_ROW_ROCM_RANGES) {
        w->cat = "user_annotation";
        return true;
    }
    if (row->what == CHROME_ROW_HSA) { /* counts its calls by itself */
        w->cat = "gpu_runtime";
        return true;
    }
    w->correlation = arg_number(r, f, "Index");
    if (row->what == CHROME_ROW_HIP) {
        w->cat = "hip_runtime";
        return true;
    }
    if (w->device < 0)
        w->device = arg_number(r, f, "dev-id");
    else if (has_arg(r, f, "gpu-id")) /* dispatches are numbered apart from the calls */
        w->correlation = -1;
    if (row->what == CHROME_ROW_ROCM_COPY && w->device < 0)
        w->correlation = -1; /* a copy of HSA */
    w->stream = arg_number(r, f, "stream-id");
    if (w->stream < 0)
        w->stream = arg_number(r, f, "queue-id");
    w->cat = row->what == CHROME_ROW_ROCM && sv_text_is(name, "Marker")
                 ? "cuda_sync"
                 : work_category(name, row->what == CHROME_ROW_ROCM_COPY);
    return true;
}

static bool row_work(struct chrome_reader *r, const struct chrome_fields *f, sv_track thread,
                     struct work *w)
{
    const uint64_t *at = sv_map_find(&r->device_row_of, r->dict->tracks[thread].parent);
    if (!at || (f->cat && !sv_text_is(sv_dict_text(r->dict, f->cat), "Op")))
        return false;
    const struct chrome_device_row *row = &r->device_rows[*at - 1];
    w->device = row->device;
    w->stream = row->stream;
    switch (row->what) {
    case CHROME_ROW_TENSORFLOW:
    case CHROME_ROW_WAITS: return tensorflow_work(r, f, thread, row, w);
    case CHROME_ROW_HOST: return tensorflow_call(r, f, w);
    default: return rocprof_work(r, f, row, w);
    }
}

/* TraceSmith until its version 0.1.1: the kind of event is a number, the id is the correlation. */
static bool tracesmith_work(struct chrome_reader *r, const struct chrome_fields *f, struct work *w)
{
    static const struct {
        const char *cat, *was, *copy_kind;
    } types[] = {
        [0] = {"", "", NULL},
        [1] = {"kernel", "kernel", NULL},
        [2] = {"kernel", "kernel", NULL},
        [3] = {"gpu_memcpy", "memory", "HtoD"},
        [4] = {"gpu_memcpy", "memory", "DtoH"},
        [5] = {"gpu_memcpy", "memory", "DtoD"},
        [6] = {"gpu_memset", "memory", NULL},
        [7] = {"cuda_sync", "stream", NULL},
        [8] = {"cuda_sync", "sync", NULL},
    };
    uint64_t id;
    int64_t type = arg_number(r, f, "type");
    if (!(f->has >> FIELD_ID & 1) || type < 1 || type >= (int64_t)(sizeof types / sizeof *types) ||
        !sv_text_is(sv_dict_text(r->dict, f->cat), types[type].was) ||
        !has_arg(r, f, "device_id") || !has_arg(r, f, "stream_id"))
        return false;
    w->cat = types[type].cat;
    w->copy_kind = types[type].copy_kind;
    if (chrome_id_number(r, f->raw[0], &id) && id && id <= INT64_MAX)
        w->correlation = (int64_t)id;
    return true;
}

/* Only what the event does not say itself. */
static void put_number(struct chrome_reader *r, const struct chrome_fields *f, const char *key,
                       int64_t v)
{
    if (v < 0 || has_arg(r, f, key))
        return;
    sv_batch_int(r->batch, sv_dict_cstr(r->dict, key), v);
}

void chrome_device_slice(struct chrome_reader *r, const struct chrome_fields *f, struct sv_event *e)
{
    struct work w = {.device = -1, .stream = -1, .correlation = -1, .bytes = -1};
    if (!row_work(r, f, e->track, &w) && !tracesmith_work(r, f, &w))
        return;
    e->cat = sv_dict_cstr(r->dict, w.cat);
    put_number(r, f, "device", w.device);
    put_number(r, f, "stream", w.stream);
    put_number(r, f, "correlation", w.correlation);
    put_number(r, f, "bytes", w.bytes);
    if (w.copy_kind)
        sv_batch_str(r->batch, sv_dict_cstr(r->dict, "copyKind"), w.copy_kind, strlen(w.copy_kind));
}
