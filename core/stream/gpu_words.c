/* The vocabulary of accelerator work: see gpu_words.h. Called by analysis, writers and stages; must
 * not change the dictionary but for interning the keys it looks for. */
#include "core/stream/gpu_words.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const struct {
    const char *word;
    enum sv_gpu_class means;
} categories[] = {
    {"kernel", SV_GPU_KERNEL},
    {"gpu_kernel", SV_GPU_KERNEL},
    {"concurrent_kernel", SV_GPU_KERNEL},
    {"gpu_memcpy", SV_GPU_COPY},
    {"memcpy", SV_GPU_COPY},
    {"gpu_memset", SV_GPU_SET},
    {"memset", SV_GPU_SET},
    {"mtia_ccp_events", SV_GPU_KERNEL}, /* of Meta's accelerators */
    {"hpu_op", SV_GPU_KERNEL},          /* of Gaudi */
    {"cuda_sync", SV_GPU_WAIT},
    {"gpu_user_annotation", SV_GPU_RANGE},
    {"cuda_runtime", SV_GPU_CALL},
    {"cuda_driver", SV_GPU_CALL},
    {"hip_runtime", SV_GPU_CALL},
    {"opencl_runtime", SV_GPU_CALL},
    {"level_zero_runtime", SV_GPU_CALL},
    {"gpu_runtime", SV_GPU_CALL},
    {"hip_driver", SV_GPU_CALL},
    {"xpu_runtime", SV_GPU_CALL},
    {"xpu_driver", SV_GPU_CALL},
    {"mtia_runtime", SV_GPU_CALL},
    {"glow_runtime", SV_GPU_CALL},
    {"privateuse1_runtime", SV_GPU_CALL},
    {"privateuse1_driver", SV_GPU_CALL},
    {"runtime", SV_GPU_CALL},
    {"gpu_alloc", SV_GPU_ALLOC},
    {"gpu_event", SV_GPU_POINT},
    {"gpu_stream", SV_GPU_POINT},
    {"gpu_context", SV_GPU_POINT},
    {"gpu_device", SV_GPU_POINT},
    {"gpu", SV_GPU_POINT},
};

static enum sv_gpu_class class_of_one(const char *cat, size_t len)
{
    for (size_t i = 0; i < sizeof categories / sizeof *categories; i++)
        if (strlen(categories[i].word) == len && strncasecmp(categories[i].word, cat, len) == 0)
            return categories[i].means;
    return len >= 7 && strncmp(cat, "gpu_mem", 7) == 0 ? SV_GPU_COPY : SV_GPU_NONE;
}

enum sv_gpu_class sv_gpu_class(const char *cat, size_t len)
{
    enum sv_gpu_class found = SV_GPU_NONE;
    if (len == 0)
        return found;
    for (const char *at = cat, *end = cat + len; at <= end && found == SV_GPU_NONE;) {
        const char *comma = memchr(at, ',', (size_t)(end - at));
        found = class_of_one(at, (size_t)((comma ? comma : end) - at));
        at = comma ? comma + 1 : end + 1;
    }
    return found;
}

static bool has_word(const char *text, size_t len, const char *word)
{
    size_t n = strlen(word);
    for (size_t i = 0; i + n <= len; i++)
        if (strncasecmp(text + i, word, n) == 0)
            return true;
    return false;
}

enum sv_gpu_direction sv_gpu_direction(const char *name, size_t len)
{
    static const struct {
        const char *word;
        enum sv_gpu_direction means;
    } words[] = {
        {"htod", SV_GPU_DIR_H2D},
        {"hosttodevice", SV_GPU_DIR_H2D},
        {"h2d", SV_GPU_DIR_H2D},
        {"dtoh", SV_GPU_DIR_D2H},
        {"devicetohost", SV_GPU_DIR_D2H},
        {"d2h", SV_GPU_DIR_D2H},
        {"ptop", SV_GPU_DIR_P2P},
        {"p2p", SV_GPU_DIR_P2P},
        {"dtod", SV_GPU_DIR_D2D},
        {"devicetodevice", SV_GPU_DIR_D2D},
        {"d2d", SV_GPU_DIR_D2D},
        {"htoh", SV_GPU_DIR_H2H},
        {"h2h", SV_GPU_DIR_H2H},
        {"host_to_device", SV_GPU_DIR_H2D},
        {"device_to_host", SV_GPU_DIR_D2H},
        {"device_to_device", SV_GPU_DIR_D2D},
        {"host_to_host", SV_GPU_DIR_H2H},
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (has_word(name, len, words[i].word))
            return words[i].means;
    return SV_GPU_DIR_UNKNOWN;
}

/* ---- arguments ---- */

void sv_gpu_words_init(struct sv_gpu_words *w, struct sv_dict *d)
{
    *w = (struct sv_gpu_words){
        .correlation = {sv_dict_cstr(d, "correlation"), sv_dict_cstr(d, "correlation_id")},
        .device = {sv_dict_cstr(d, "device"), sv_dict_cstr(d, "device_id"),
                   sv_dict_cstr(d, "Device Id")},
        .context = {sv_dict_cstr(d, "context")},
        .stream = {sv_dict_cstr(d, "stream"), sv_dict_cstr(d, "stream_id")},
        .bytes = {sv_dict_cstr(d, "bytes"), sv_dict_cstr(d, "Bytes"),
                  sv_dict_cstr(d, "size_bytes")},
        .copy_kind = {sv_dict_cstr(d, "copyKind")},
    };
}

void sv_gpu_words_fini(struct sv_gpu_words *w)
{
    free(w->classes);
    *w = (struct sv_gpu_words){0};
}

enum sv_gpu_class sv_gpu_class_of(struct sv_gpu_words *w, const struct sv_dict *d, sv_str cat)
{
    enum { UNKNOWN = SV_GPU_CLASSES };
    if (cat >= w->n) {
        w->classes = sv_grow(w->classes, &w->cap, (size_t)cat + 1, 1);
        memset(w->classes + w->n, UNKNOWN, w->cap - w->n);
        w->n = w->cap;
    }
    if (w->classes[cat] == UNKNOWN) {
        struct sv_text text = sv_dict_text(d, cat);
        w->classes[cat] = (uint8_t)sv_gpu_class(text.bytes, text.len);
    }
    return (enum sv_gpu_class)w->classes[cat];
}

static bool is_key(const sv_str *keys, size_t n, sv_str key)
{
    for (size_t i = 0; i < n; i++)
        if (keys[i] == key)
            return true;
    return false;
}

/* A whole number, also as text: TraceSmith writes some so. */
bool sv_gpu_whole(const struct sv_arg *a, int64_t *out)
{
    char text[24];
    char *end;
    if (a->type == SV_ARG_INT || a->type == SV_ARG_UINT || a->type == SV_ARG_POINTER) {
        *out = a->i;
        return true;
    }
    if (a->type != SV_ARG_TEXT || a->size == 0 || a->size >= sizeof text)
        return false;
    memcpy(text, a->text, a->size);
    text[a->size] = '\0';
    *out = strtoll(text, &end, 0);
    return *end == '\0' && (isdigit((unsigned char)*text) || *text == '-');
}

struct sv_gpu_facts sv_gpu_facts(struct sv_gpu_words *w, const struct sv_dict *d,
                                 const struct sv_event *e)
{
    struct sv_gpu_facts f = {sv_gpu_class_of(w, d, e->cat), -1, -1, -1, -1, 0, SV_GPU_DIR_UNKNOWN};
    const struct {
        const sv_str *keys;
        size_t n;
        int64_t *to;
    } rows[] = {
        {w->device, 3, &f.device},
        {w->stream, 2, &f.stream},
        {w->context, 1, &f.context},
        {w->bytes, 3, &f.bytes},
    };
    for (const struct sv_arg *a = e->args, *end = a + e->n_args; a < end; a = sv_arg_next(a)) {
        int64_t v;
        if (a->type == SV_ARG_CORRELATION) {
            f.correlation = a->u;
        } else if (a->key && is_key(w->correlation, 2, a->key) && sv_gpu_whole(a, &v)) {
            f.correlation = (uint64_t)v;
        } else if (a->key && a->key == w->copy_kind[0] && a->type == SV_ARG_TEXT) {
            f.direction = sv_gpu_direction(a->text, a->size);
        } else {
            for (size_t i = 0; a->key && i < sizeof rows / sizeof *rows; i++)
                if (is_key(rows[i].keys, rows[i].n, a->key) && sv_gpu_whole(a, &v))
                    *rows[i].to = v;
        }
    }
    if (f.class_ == SV_GPU_COPY && f.direction == SV_GPU_DIR_UNKNOWN) {
        struct sv_text name = sv_dict_text(d, e->name);
        f.direction = sv_gpu_direction(name.bytes, name.len);
    }
    return f;
}

/* ---- tracks ---- */

int64_t sv_gpu_number_in(struct sv_text name)
{
    const char *p = name.bytes, *end = p + name.len;
    int64_t v = 0;
    while (p < end && !isdigit((unsigned char)*p))
        p++;
    if (p == end)
        return -1;
    for (; p < end && isdigit((unsigned char)*p) && v < INT64_MAX / 100; p++)
        v = v * 10 + (*p - '0');
    return v;
}

static sv_track above(const struct sv_dict *d, sv_track t, unsigned kind)
{
    for (unsigned steps = 0; t && steps < 64; steps++, t = d->tracks[t].parent)
        if (d->tracks[t].kind == kind)
            return t;
    return 0;
}

sv_track sv_gpu_device_of(const struct sv_dict *d, sv_track t)
{
    return above(d, t, SV_TRACK_GPU);
}

sv_track sv_gpu_stream_of(const struct sv_dict *d, sv_track t)
{
    return above(d, t, SV_TRACK_STREAM);
}
