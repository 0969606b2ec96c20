/* Loading: input → store, with progress and findings. Used by every command that needs random
 * access. */
#include "files/load.h"

#include "cli/console.h"
#include "clocks/merge.h"
#include "core/base/mem.h"
#include "files/beside.h"
#include "files/recordings.h"
#include "files/tail.h"

#include <stdlib.h>
#include <string.h>

static bool fits(const struct sv_loaded *l, size_t memory_limit_bytes)
{
    return memory_limit_bytes == 0 ||
           sv_trace_bytes(l->trace) + sv_dict_bytes(l->dict) <= memory_limit_bytes;
}

/* From the index. Where that is not what reading would end with (too much memory, damage under
 * --strict) the file is read, which says so. */
static bool load_kept(const char *path, const struct sv_load_how *how, struct sv_loaded *l)
{
    bool makes = how->index == SV_INDEX_MADE || sv_kept_slices() != UINT64_MAX;
    unsigned check = how->index == SV_INDEX_MADE ? SV_IMAGE_QUICK : 0;
    sv_kept_key(path, how->from, makes, &l->key);
    sv_report_init(&l->in.report);
    l->trace = sv_kept_open(&l->key, check, &l->dict, &l->in.report, &l->in.format);
    if (!l->trace)
        return false;
    bool is_refused = how->strict && sv_report_count(&l->in.report, SV_DAMAGE);
    if (!is_refused && fits(l, how->memory_limit_bytes)) {
        l->in.path = path;
        sv_console_findings(path, &l->in.report);
        return true;
    }
    struct sv_kept_key key = l->key;
    sv_loaded_free(l);
    *l = (struct sv_loaded){.dict = sv_dict_new(), .key = key};
    return false;
}

static void keep(const char *path, const struct sv_load_how *how, const struct sv_loaded *l)
{
    struct sv_err ignored;
    sv_err_clear(&ignored);
    struct sv_image_writer *w = l->key.is_known && l->trace->slices.n >= sv_kept_slices()
                                    ? sv_kept_begin(l->trace, &l->in.report, l->in.format)
                                    : NULL;
    if (w)
        (void)sv_kept_end(w, path, how->from, &l->key, NULL, NULL, &ignored);
}

static int read_into_store(const struct sv_load_how *how, struct sv_workers *workers,
                           struct sv_loaded *l, struct sv_err *err)
{
    l->in.is_live = how->is_live;
    l->trace = sv_trace_new(l->dict, &l->in.report, how->memory_limit_bytes);
    sv_trace_use(l->trace, workers);
    struct sv_sink *sink = sv_trace_sink(l->trace);
    bool has_window = how->chosen && how->chosen->has_window;
    if (has_window)
        sink = sv_chosen_window(how->chosen, l->dict, sink);
    if (how->pass)
        sink = how->pass(how->pass_ctx, l->dict, sink);
    else if (!has_window) /* it holds events back, and their tracks with them */
        l->in.source = sv_beside(l->in.source, l->trace, workers, how->memory_limit_bytes);
    return sv_run(&l->in, sink, how->strict, "loading", err);
}

static int open_trace(const char *path, const struct sv_load_how *how, struct sv_workers *workers,
                      struct sv_loaded *l, struct sv_err *err)
{
    struct sv_read_options read = {.workers = workers, .rotation = how->rotation};
    if (how->chosen)
        return sv_chosen_open(how->chosen, how->from, read, l->dict, &l->in, err);
    return how->tail_bytes ? sv_open_tail(path, how->tail_bytes, l->dict, &l->in, err)
                           : sv_open_input_as(path, how->from, &read, l->dict, &l->in, err);
}

static int load_one(const char *path, const struct sv_load_how *how, struct sv_loaded *l,
                    struct sv_err *err)
{
    *l = (struct sv_loaded){.dict = sv_dict_new()};
    /* it is one file's */
    bool has_index = how->index != SV_INDEX_NOT_USED && !how->rotation && !how->chosen;
    if (has_index && load_kept(path, how, l))
        return 0;
    struct sv_workers *workers = sv_workers_new(how->threads);
    int code = open_trace(path, how, workers, l, err);
    if (code >= 0)
        code = read_into_store(how, workers, l, err);
    if (l->in.in)
        sv_input_unpack_end(l->in.in);
    sv_workers_free(workers);
    if (code >= 0 && has_index && how->index == SV_INDEX_USED)
        keep(path, how, l);
    return code;
}

/* The path outlives what was chosen. */
static int load_chosen(const struct sv_chosen *c, const struct sv_load_how *how,
                       struct sv_loaded *l, struct sv_err *err)
{
    struct sv_load_how with = *how;
    char *path = sv_strndup(c->paths[0], strlen(c->paths[0]));
    bool is_alone = c->n == 1 && !c->has_window && !c->is_growing;
    with.chosen = is_alone ? NULL : c;
    int code = load_one(path, &with, l, err);
    l->own_path = path;
    l->in.path = path;
    return code;
}

/* Folders, and a range of time. */
static int choose_and_load(const char *const *paths, size_t n, const struct sv_load_how *how,
                           struct sv_loaded *l, struct sv_err *err)
{
    struct sv_load_how with = *how;
    struct sv_chosen c;
    with.range = (struct sv_range){0};
    *l = (struct sv_loaded){0};
    int code = sv_choose_parts(paths, n, &how->range, how->from, &c, err);
    if (code >= 0)
        code = c.is_one ? load_chosen(&c, &with, l, err)
                        : sv_load_traces(c.paths, c.n, &with, l, err);
    if (!c.is_one)
        l->in.path = paths[0];
    sv_chosen_fini(&c);
    return code;
}

int sv_load(const char *path, const struct sv_load_how *how, struct sv_loaded *l,
            struct sv_err *err)
{
    return sv_needs_choice(&path, 1, &how->range) ? choose_and_load(&path, 1, how, l, err)
                                                  : load_one(path, how, l, err);
}

/* Reads one of several inputs into the merge. The first one's path and format are used for all. */
static int add_input(struct sv_merge *merge, const char *path, const struct sv_rotation *rotation,
                     const struct sv_load_how *how, struct sv_loaded *l, struct sv_err *err)
{
    struct sv_opened in;
    struct sv_progress progress;
    struct sv_merge_input input = {.name = path, .dict = sv_dict_new()};
    struct sv_pump_options pump = {
        .strict = how->strict, .progress = sv_progress_tick, .progress_ctx = &progress};
    struct sv_read_options read = {.rotation = rotation};
    int code = sv_open_input_as(path, how->from, &read, input.dict, &in, err);
    if (code < 0) {
        sv_dict_free(input.dict);
    } else {
        input.kind = in.format->name;
        sv_progress_begin(&progress, in.in, "loading");
        code = sv_merge_add(merge, &input, in.source, &pump, err);
        in.source = NULL;
        sv_progress_end(&progress);
        if (code < 0)
            sv_err_in_file(err, path);
        sv_console_findings(path, &in.report);
    }
    if (!l->in.path) {
        l->in.path = path;
        l->in.format = in.format;
    }
    sv_opened_close(&in);
    return code;
}

/* The merge's advice names its own command's options. */
static int not_related(int code, struct sv_err *err)
{
    struct sv_err first = *err;
    const char *option = strstr(first.msg, "--offset")         ? "--offset"
                         : strstr(first.msg, "--repeat-ranks") ? "--repeat-ranks"
                                                               : NULL;
    if (!option)
        return code;
    sv_err_clear(err);
    return sv_err_set(err, code, first.pos, "%.440s (%s: of stave merge)", first.msg, option);
}

static int load_merged(const struct sv_rotations *r, const struct sv_load_how *how,
                       struct sv_loaded *l, struct sv_err *err)
{
    struct sv_merge *merge = sv_merge_new(&(struct sv_merge_options){
        .assume = how->assume, .compare = how->compare, .anchor = how->anchor});
    int code = 0;
    for (size_t i = 0; i < r->n && code >= 0; i++)
        code = add_input(merge, r->inputs[i], sv_rotation_of(r, r->inputs[i]), how, l, err);
    if (code >= 0) {
        code = sv_merge_relate(merge, l->dict, &l->in.report, err);
        code = code < 0 ? not_related(code, err) : code;
    }
    if (code < 0) {
        sv_merge_free(merge);
        return code;
    }
    sv_console_findings(NULL, &l->in.report);
    struct sv_workers *workers = sv_workers_new(how->threads);
    l->trace = sv_trace_new(l->dict, &l->in.report, how->memory_limit_bytes);
    sv_trace_use(l->trace, workers);
    code = sv_merge_pump(merge, sv_trace_sink(l->trace), err);
    sv_workers_free(workers);
    return code;
}

int sv_load_traces(const char *const *paths, size_t n, const struct sv_load_how *how,
                   struct sv_loaded *l, struct sv_err *err)
{
    struct sv_load_how with = *how;
    struct sv_rotations r;
    if (sv_needs_choice(paths, n, &how->range))
        return choose_and_load(paths, n, how, l, err);
    if (n == 1)
        return load_one(paths[0], how, l, err);
    *l = (struct sv_loaded){.dict = sv_dict_new()};
    sv_report_init(&l->in.report);
    int code = sv_check_inputs(paths, n, NULL, err);
    if (code < 0)
        return code;
    sv_rotations_find(paths, n, how->from, &r);
    if (r.n == 1) {
        sv_loaded_free(l);
        with.rotation = &r.items[0];
        code = load_one(r.inputs[0], &with, l, err);
    } else {
        code = load_merged(&r, how, l, err);
    }
    sv_rotations_fini(&r);
    return code;
}

void sv_loaded_free(struct sv_loaded *l)
{
    if (l->trace)
        sv_trace_free(l->trace);
    sv_opened_close(&l->in);
    sv_dict_free(l->dict);
    free(l->own_path);
    *l = (struct sv_loaded){0};
}
