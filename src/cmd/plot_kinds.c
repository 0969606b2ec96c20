/* The pictures of `stave plot` that belong to no subject: each function takes what the user asked
 * for and has one plot drawn. */
#include "cmd/plot.h"

#include "cli/console.h"
#include "core/base/glob.h"
#include "plot/counters.h"
#include "plot/flame.h"
#include "plot/hist.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- flame ---- */

static int draw_flame(struct sv_plot *p, const struct sv_trace *const *traces, size_t n,
                      struct sv_err *err)
{
    struct sv_calltree tree;
    struct sv_calltree_options options = {
        .merge_tracks = p->o->merge_tracks, .of_samples = p->o->samples, .of_waits = p->o->offcpu};
    if (p->o->samples && p->o->offcpu)
        return sv_error(err, SV_EUSAGE, "--samples and --offcpu exclude each other");
    if (p->is_zoomed || p->o->around) {
        options.from_ns = p->from_ns;
        options.to_ns = p->to_ns;
    }
    struct sv_flame flame = {
        .frame = p->frame, .trace = traces[n - 1], .tracks_max = (size_t)p->o->top};
    sv_calltree_make(&tree, traces, n, &options);
    int code = 0;
    if (p->o->offcpu && tree.n == 1)
        code = sv_error(
            err, SV_EFOUND,
            "%s has no waits with stacks in that window; 'stave record --offcpu' records them",
            p->path);
    else if (p->o->samples && tree.n == 1)
        code = sv_error(
            err, SV_EFOUND,
            "%s has no stack samples in that window; 'stave record --sample 99' records them",
            p->path);
    else
        sv_flame_draw(p->picture, &tree, &flame);
    sv_calltree_fini(&tree);
    return code;
}

int sv_plot_flame(struct sv_plot *p, struct sv_err *err)
{
    struct sv_loaded other;
    char title[512];
    if (p->trace->slices.n == 0)
        return sv_error(err, SV_EFOUND, "%s has no slices", p->path);
    if (!p->o->diff) {
        return draw_flame(p, &p->trace, 1, err);
    }
    if (p->is_zoomed || p->o->around)
        return sv_error(err, SV_EUSAGE,
                        "--time with --diff: the two traces have no common time; cut them first");
    struct sv_load_how how = {.from = p->format,
                              .strict = p->o->strict,
                              .memory_limit_bytes = p->o->memory_limit,
                              .index = p->o->no_index};
    int code = sv_load(p->o->diff, &how, &other, err);
    if (code >= 0 && other.trace->slices.n == 0)
        code = sv_error(err, SV_EFOUND, "%s has no slices", p->o->diff);
    if (code >= 0) {
        const struct sv_trace *traces[2] = {p->trace, other.trace};
        snprintf(title, sizeof title, "%.200s \xe2\x86\x92 %.200s", p->name, basename(p->o->diff));
        if (!p->o->title)
            p->frame.title = title;
        code = draw_flame(p, traces, 2, err);
    }
    sv_loaded_free(&other);
    return code;
}

/* ---- hist ---- */

/* Which strings are meant: by exact name, else as a glob. */
static bool *match_strings(const struct sv_dict *d, const char *const *names, size_t n)
{
    bool *is_meant = sv_alloc((size_t)d->n_strings + 1);
    for (size_t i = 0; i < n; i++) {
        sv_str exact = sv_dict_find_str(d, names[i], strlen(names[i]));
        is_meant[exact] = true;
        for (sv_str s = 1; s < d->n_strings && strpbrk(names[i], "*?["); s++) {
            struct sv_text text = sv_dict_text(d, s);
            is_meant[s] |= sv_glob_match(names[i], text.bytes, text.len);
        }
    }
    is_meant[0] = false;
    return is_meant;
}

int sv_plot_hist(struct sv_plot *p, struct sv_err *err)
{
    const struct sv_plot_options *o = p->o;
    const struct sv_slices *s = &p->trace->slices;
    char title[512];
    if (o->buckets > SV_BUCKETS_MAX || (o->log && o->linear))
        return sv_error(err, SV_EUSAGE,
                        o->log && o->linear ? "--log or --linear, not both"
                                            : "--buckets: at most %u",
                        SV_BUCKETS_MAX);
    bool *is_meant = match_strings(p->trace->dict, p->names, p->n_names);
    struct sv_hist h = {.frame = p->frame, .buckets = (size_t)o->buckets};
    size_t cap = 0, seen = 0;
    for (uint64_t row = 0; row < s->n; row++) {
        if (!is_meant[s->name[row]] || s->kind[row] != SV_SLICE)
            continue;
        seen++;
        if (s->ts_ns[row] < p->from_ns || s->ts_ns[row] >= p->to_ns)
            continue;
        SV_APPEND(h.values, h.n, cap) = sv_trace_end_ns(p->trace, row) - s->ts_ns[row];
    }
    free(is_meant);
    if (seen == 0)
        return sv_plot_no_such_slice(p, p->names[0], err);
    if (h.n == 0)
        return sv_error(err, SV_EFOUND, "'%s' does not begin in that window", p->names[0]);
    h.scale = o->log ? SV_HIST_LOG : o->linear ? SV_HIST_LINEAR : SV_HIST_AUTO;
    snprintf(title, sizeof title, "%.200s%s \xe2\x80\x94 %.200s", p->names[0],
             p->n_names > 1 ? SV_ELLIPSIS : "", p->name);
    if (!o->title)
        h.frame.title = title;
    sv_hist_draw(p->picture, &h);
    free(h.values);
    return 0;
}

/* ---- counter ---- */

#define COUNTERS_DEFAULT 24u

/* A series of a counter goes by "counter series", by the counter's name and by its own. */
static bool is_wanted(const struct sv_plot *p, sv_track track)
{
    const struct sv_dict *d = p->trace->dict;
    sv_track parent = d->tracks[track].parent;
    struct sv_text own = sv_dict_text(d, d->tracks[track].name), whole = {"", 0};
    char both[256];
    if (d->tracks[parent].kind == SV_TRACK_COUNTER)
        whole = sv_dict_text(d, d->tracks[parent].name);
    snprintf(both, sizeof both, "%s %s", whole.bytes, own.bytes);
    const char *texts[] = {own.bytes, whole.len ? whole.bytes : own.bytes, both};
    for (size_t i = 0; i < p->n_names; i++)
        for (size_t k = 0; k < 3; k++)
            if (sv_glob_match(p->names[i], texts[k], strlen(texts[k])) ||
                strcmp(p->names[i], texts[k]) == 0)
                return true;
    return p->n_names == 0;
}

static bool is_always_zero(const struct sv_trace *t, sv_track k)
{
    for (uint32_t i = t->tracks[k].counter_first; i < t->tracks[k].counter_end; i++)
        if (t->counters.value[i] != 0)
            return false;
    return true;
}

int sv_plot_counter(struct sv_plot *p, struct sv_err *err)
{
    const struct sv_trace *t = p->trace;
    size_t most = p->o->top ? (size_t)p->o->top : p->n_names ? 1000u : COUNTERS_DEFAULT;
    size_t n_all = 0, n_wanted = 0, n_zeros = 0;
    sv_track *zeros = sv_alloc(((size_t)t->n_tracks + 1) * sizeof *zeros);
    const char **names = sv_alloc(((size_t)t->n_tracks + 1) * sizeof *names);
    sv_track *tracks = sv_alloc(((size_t)t->n_tracks + 1) * sizeof *tracks);
    struct sv_counter_plot plot = {
        .frame = p->frame, .from_ns = p->from_ns, .to_ns = p->to_ns, .tracks = tracks};
    for (sv_track k = 1; k < t->n_tracks; k++) {
        if (t->tracks[k].counter_first == t->tracks[k].counter_end)
            continue;
        sv_track parent = t->dict->tracks[k].parent;
        bool is_series = t->dict->tracks[parent].kind == SV_TRACK_COUNTER;
        names[n_all++] = sv_dict_text(t->dict, t->dict->tracks[is_series ? parent : k].name).bytes;
        if (!is_wanted(p, k))
            continue;
        n_wanted++;
        if (!p->n_names && is_always_zero(t, k))
            zeros[n_zeros++] = k;
        else if (plot.n < most)
            tracks[plot.n++] = k;
    }
    /* What is always 0 shows itself only when there is nothing else, or when it is asked for. */
    bool with_zeros = p->o->top || plot.n == 0;
    for (size_t i = 0; i < n_zeros && with_zeros && plot.n < most; i++)
        tracks[plot.n++] = zeros[i];
    int code = 0;
    if (plot.n == 0)
        code = sv_plot_no_such("counter", p->n_names ? p->names[0] : "", names, n_all, err);
    else
        sv_counters_draw(p->picture, t, &plot);
    if (n_wanted > plot.n)
        sv_console_note("%zu of %zu counters are drawn%s; give the names of others, or --top %zu",
                        plot.n, n_wanted,
                        n_zeros && !with_zeros ? " (those that are always 0 are omitted)" : "",
                        n_wanted);
    free(names);
    free(zeros);
    free(tracks);
    return code;
}
