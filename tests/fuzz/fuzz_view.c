/* Requests to the viewer from somebody who has the token: the first line is the address, the rest
 * the body. A small trace is shown. */
#include "core/base/json_scan.h"
#include "core/base/mem.h"
#include "view/answers.h"

#include <stdlib.h>

static struct sv_trace *make_trace(void)
{
    static const struct {
        int64_t ts_ns, dur_ns, thread;
    } slices[] = {{0, 100, 1}, {10, 30, 1}, {50, 10, 1}, {20, 60, 2}, {40, 90, 2}};
    struct sv_err err;
    struct sv_dict *dict = sv_dict_new();
    struct sv_trace *t = sv_trace_new(dict, NULL, 0);
    struct sv_sink *sink = sv_trace_sink(t);
    sv_err_clear(&err);
    for (size_t i = 0; i < sizeof slices / sizeof *slices; i++) {
        struct sv_event e = {.kind = SV_SLICE,
                             .ts_ns = slices[i].ts_ns,
                             .dur_ns = slices[i].dur_ns,
                             .track = sv_dict_thread(dict, 0, 1, slices[i].thread),
                             .name = sv_dict_cstr(dict, i % 2 ? "outer" : "inner")};
        if (sink->write(sink, &e, 1, &err) < 0)
            abort();
    }
    struct sv_arg value = {.type = SV_ARG_INT, .i = 7};
    struct sv_event counter = {
        .kind = SV_COUNTER,
        .ts_ns = 5,
        .track = sv_dict_child(dict, 0, SV_TRACK_COUNTER, sv_dict_cstr(dict, "m")),
        .n_args = 1,
        .args = &value};
    if (sink->write(sink, &counter, 1, &err) < 0 || sv_trace_finish(t, &err) < 0)
        abort();
    return t;
}

static struct sv_viewer *make_viewer(void)
{
    static const char *const files[] = {"run"};
    struct sv_viewer *v;
    struct sv_err err;
    sv_err_clear(&err);
    if (sv_viewer_open(
            &(struct sv_viewer_options){.files = files, .n_files = 1, .notes = "/dev/full/notes"},
            &v, &err) < 0)
        abort();
    sv_viewer_show(v, make_trace(), &(struct sv_viewer_trace){0});
    return v;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct sv_viewer *v;
    const uint8_t *line = size ? memchr(data, '\n', size) : NULL;
    if (!line)
        return 0;
    if (!v)
        v = make_viewer();
    size_t len = size - (size_t)(line + 1 - data);
    char *path = sv_strndup((const char *)data, (size_t)(line - data));
    uint8_t *body = sv_alloc(len + SV_JSON_PAD);
    memcpy(body, line + 1, len);
    struct sv_web_request q = {.path = path, .is_post = len > 0, .body = body, .len = len};
    struct sv_web_answer a = {0};
    sv_buf_init(&a.body, (size_t)16 << 20);
    /* SQL is SQLite's, and slow */
    if (strcmp(path, "/api/sql") != 0 && strcmp(path, "/api/tables") != 0)
        sv_viewer_answer(v, &q, &a);
    sv_buf_fini(&a.body);
    free(path);
    free(body);
    return 0;
}
