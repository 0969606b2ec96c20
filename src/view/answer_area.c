/* /api/area: what is in a rectangle of the time line, by name, and as a call tree.
 *
 * Two passes over the slices that touch it: the first counts by name and builds the tree, the
 * second collects durations for the percentiles. */
#include "view/answers.h"

#include "core/base/map.h"
#include "core/base/mem.h"
#include "core/base/percentile.h"
#include "core/base/sat.h"
#include "core/stream/frame_text.h"
#include "stats/calltree.h"
#include "subjects/io/words.h"
#include "why/words.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NODES_MAX 2000u
#define DURATIONS_MAX \
    (1u << 25) /* more slices than this have no percentiles: they would take too much memory */
#define DEPTHS          1024u /* of the tree; what is deeper counts for its ancestor there */
#define RECENT          4096u
#define NAMES_ANSWERED  5000
#define ARROWS_ANSWERED 1000u

/* What a slice is: each kind has a table and a tree of its own. */
enum area_kind { IS_SLICE, IS_STATE, IS_SAMPLE, N_KINDS };
static const char *const kind_words[N_KINDS] = {"slice", "state", "sample"};

struct name_sum {
    sv_str name;
    uint8_t color, kind;
    uint64_t count;
    int64_t total_ns, self_ns, min_ns, max_ns;
    uint64_t first; /* of its durations */
    uint64_t filled;
};

struct node {
    sv_str name;
    int32_t parent;
    int64_t total_ns, self_ns;
    uint64_t count;
};

struct area {
    const struct sv_shown *s;
    const struct sv_ask *ask;
    uint32_t *group_of; /* by name and kind: number + 1 */
    sv_str state, wait; /* the categories of states and waits; 0: not in this trace */
    struct name_sum *sums;
    size_t n_sums, cap_sums;
    uint64_t n;
    struct sv_map node_of; /* parent and name → number + 1 */
    struct {
        uint64_t key;
        int32_t node;
    } recent[RECENT]; /* of node_of, found without hashing */
    struct node *nodes;
    size_t n_nodes, cap_nodes;
    int32_t open[DEPTHS];  /* the newest node of each depth */
    struct frames *frames; /* NULL: no sample was met yet */
    int64_t *durations;
    uint32_t looked_at;
    bool is_old; /* the tab wants another area by now */
};

/* Frames of stack samples in the tree. Their texts are in no dictionary: their numbers follow those
 * of its strings. */
struct frames {
    struct sv_batch scratch;
    struct sv_map by_text; /* hash → number + 1 */
    struct sv_arena texts;
    struct sv_text *all;
    size_t n, cap;
    int64_t period_ns;
};

#define LOOK_EVERY (1u << 16) /* slices */

/* A wait has a stack, too, but no period. */
static bool is_sample(const struct area *a, uint32_t slice)
{
    const struct sv_trace *t = a->s->trace;
    struct sv_arg found;
    return (!a->wait || t->slices.cat[slice] != a->wait) && t->slices.kind[slice] == SV_INSTANT &&
           t->slices.args[slice] != 0 &&
           sv_trace_arg_of_type(t, t->slices.args[slice], SV_ARG_STACK, &found);
}

static enum area_kind kind_of(const struct area *a, uint32_t slice)
{
    sv_str cat = a->s->trace->slices.cat[slice];
    if (cat && (cat == a->state || cat == a->wait))
        return IS_STATE;
    return is_sample(a, slice) ? IS_SAMPLE : IS_SLICE;
}

static struct name_sum *sum_of(struct area *a, uint32_t slice, enum area_kind kind)
{
    sv_str name = a->s->trace->slices.name[slice];
    uint32_t *number = &a->group_of[(size_t)name * N_KINDS + kind];
    if (*number == 0) {
        SV_APPEND(a->sums, a->n_sums, a->cap_sums) =
            (struct name_sum){.name = name,
                              .kind = (uint8_t)kind,
                              .color = (uint8_t)sv_color_number(&a->s->colors, slice),
                              .min_ns = INT64_MAX};
        *number = (uint32_t)a->n_sums;
    }
    return &a->sums[*number - 1];
}

static int32_t find_node(struct area *a, uint64_t key, int32_t parent, sv_str name)
{
    bool is_new;
    uint64_t *number = sv_map_find(&a->node_of, key);
    if (number)
        return (int32_t)*number - 1;
    if (a->n_nodes == NODES_MAX) /* counts for the one above */
        return parent;
    SV_APPEND(a->nodes, a->n_nodes, a->cap_nodes) = (struct node){.name = name, .parent = parent};
    *sv_map_add(&a->node_of, key, &is_new) = a->n_nodes;
    return (int32_t)a->n_nodes - 1;
}

static int32_t node_below(struct area *a, int32_t parent, sv_str name)
{
    uint64_t key = (uint64_t)((int64_t)parent + 2 + N_KINDS) << 32 | name; /* never 0 */
    size_t at = ((uint32_t)parent * 61u + name) % RECENT;
    if (a->recent[at].key != key) {
        a->recent[at].key = key;
        a->recent[at].node = find_node(a, key, parent, name);
    }
    return a->recent[at].node;
}

/* What of the slice is inside of the area. */
static int64_t inside(const struct area *a, uint32_t slice)
{
    int64_t from = a->s->trace->slices.ts_ns[slice], to = sv_trace_end_ns(a->s->trace, slice);
    from = from > a->ask->from_ns ? from : a->ask->from_ns;
    to = to < a->ask->to_ns ? to : a->ask->to_ns;
    return to > from ? to - from : 0;
}

/* The tree of each kind has a root of its own. */
static int32_t root_of(enum area_kind kind)
{
    return -1 - (int32_t)kind;
}

static void add_to_tree(struct area *a, uint32_t slice, uint32_t depth, int64_t inside_ns,
                        int32_t root, bool has_parent)
{
    sv_str name = a->s->trace->slices.name[slice];
    depth = depth < DEPTHS - 1 ? depth : DEPTHS - 1;
    int32_t parent = depth && has_parent ? a->open[depth - 1] : root;
    int32_t node = node_below(a, parent, name);
    a->open[depth] = node;
    if (node < 0)
        return;
    a->nodes[node].count++;
    if (node != parent) {
        a->nodes[node].total_ns += inside_ns;
        a->nodes[node].self_ns += inside_ns;
    }
    if (parent >= 0 && node != parent)
        a->nodes[parent].self_ns -= inside_ns;
}

/* ---- stack samples ---- */

static struct frames *frames_of(struct area *a)
{
    if (!a->frames) {
        a->frames = sv_alloc(sizeof *a->frames);
        sv_batch_init(&a->frames->scratch);
        sv_arena_init(&a->frames->texts, 1u << 14);
        a->frames->period_ns = sv_sample_ns(a->s->trace->dict);
    }
    return a->frames;
}

static void free_frames(struct frames *f)
{
    if (!f)
        return;
    sv_batch_fini(&f->scratch);
    sv_arena_fini(&f->texts);
    sv_map_fini(&f->by_text);
    free(f->all);
    free(f);
}

static sv_str number_of_frame(const struct area *a, struct frames *f, const struct sv_arg *frame)
{
    char room[1024];
    bool is_new;
    size_t len = frame->size;
    const char *text = sv_frame_without_line(frame->text, &len, room, sizeof room);
    uint64_t *number = sv_map_add(&f->by_text, sv_hash_bytes(text, len, 0), &is_new);
    if (is_new) {
        f->all = sv_grow(f->all, &f->cap, f->n + 1, sizeof *f->all);
        f->all[f->n] = (struct sv_text){sv_arena_copy(&f->texts, text, len), (uint32_t)len};
        *number = ++f->n;
    }
    return (sv_str)(a->s->trace->dict->n_strings + *number - 1);
}

/* A sample stands for a period of the sampler in each of its frames. */
static void add_stack(struct area *a, uint32_t slice)
{
    const struct sv_trace *t = a->s->trace;
    struct frames *f = frames_of(a);
    size_t n;
    int32_t at = root_of(IS_SAMPLE);
    sv_batch_reset(&f->scratch);
    const struct sv_arg *x = sv_trace_args(t, t->slices.args[slice], &f->scratch, &n), *end = x + n;
    while (x < end && x->type != SV_ARG_STACK)
        x = sv_arg_next(x);
    for (uint32_t i = 1; x < end && i <= x->size; i++) {
        int32_t below = x[i].type == SV_ARG_TEXT ? node_below(a, at, number_of_frame(a, f, &x[i]))
                                                 : at;
        if (below == at)
            continue; /* too many: it counts for the one above */
        at = below;
        a->nodes[at].count++;
        a->nodes[at].total_ns += f->period_ns;
    }
    if (at >= 0)
        a->nodes[at].self_ns += f->period_ns;
}

static void add_slice(struct area *a, uint32_t slice, uint32_t first_line, bool nests)
{
    const struct sv_slices *c = &a->s->trace->slices;
    enum area_kind kind = kind_of(a, slice);
    struct name_sum *sum = sum_of(a, slice, kind);
    int64_t inside_ns = inside(a, slice);
    int64_t dur = sv_trace_end_ns(a->s->trace, slice) - c->ts_ns[slice];
    uint32_t parent = c->parent[slice];
    bool has_parent = nests && parent != SV_NO_ROW &&
                      sv_track_rows_line(a->s->rows, parent) >= first_line;
    a->n++;
    sum->count++;
    sum->total_ns += inside_ns;
    sum->self_ns += inside_ns;
    sum->min_ns = dur < sum->min_ns ? dur : sum->min_ns;
    sum->max_ns = dur > sum->max_ns ? dur : sum->max_ns;
    if (has_parent)
        sum_of(a, parent, kind_of(a, parent))->self_ns -= inside_ns;
    if (kind == IS_SAMPLE)
        add_stack(a, slice);
    else
        add_to_tree(a, slice, nests ? c->depth[slice] : 0, inside_ns, root_of(kind), has_parent);
}

static void add_duration(struct area *a, uint32_t slice)
{
    struct name_sum *sum = sum_of(a, slice, kind_of(a, slice));
    a->durations[sum->first + sum->filled++] = sv_trace_end_ns(a->s->trace, slice) -
                                               a->s->trace->slices.ts_ns[slice];
}

/* Each slice that touches the area and lies on one of its lines. */
static void walk_row(struct area *a, const struct sv_ask_row *row, bool is_first_pass)
{
    const struct sv_track_rows *rows = a->s->rows;
    const struct sv_row_info *info = &rows->items[row->row];
    for (size_t m = 0; info->lines && m < info->n_members; m++) {
        sv_track track = rows->members[info->first_member + m].track;
        bool nests = !a->s->trace->tracks[track].has_overlap;
        struct sv_window w = sv_trace_window(a->s->trace, track, a->ask->from_ns, a->ask->to_ns);
        for (uint32_t slice; !a->is_old && sv_window_next(&w, &slice);) {
            if (++a->looked_at % LOOK_EVERY == 0)
                a->is_old = sv_viewer_is_old(a->s->viewer, a->ask->tab, (uint64_t)a->ask->seq);
            uint32_t line = sv_track_rows_line(rows, slice) - row->first_line;
            if (line >= row->n_lines)
                continue;
            if (is_first_pass)
                add_slice(a, slice, row->first_line, nests);
            else
                add_duration(a, slice);
        }
    }
}

static void collect_durations(struct area *a)
{
    uint64_t at = 0;
    if (a->n > DURATIONS_MAX)
        return;
    a->durations = sv_alloc((a->n + 1) * sizeof *a->durations);
    for (size_t i = 0; i < a->n_sums; i++) {
        a->sums[i].first = at;
        at += a->sums[i].count;
    }
    for (size_t i = 0; i < a->ask->n_rows; i++)
        walk_row(a, &a->ask->rows[i], false);
}

/* ---- the answer ---- */

static int by_total(const void *a, const void *b)
{
    const struct name_sum *x = a, *y = b;
    if (x->total_ns != y->total_ns)
        return x->total_ns > y->total_ns ? -1 : 1;
    if (x->name != y->name)
        return x->name < y->name ? -1 : 1;
    return x->kind - y->kind;
}

static void put_percentile(struct sv_json *j, struct area *a, const struct name_sum *sum, double p)
{
    if (!a->durations)
        sv_json_null(j);
    else
        sv_json_i64_text(j, (int64_t)sv_percentile(a->durations + sum->first, sum->count, p));
}

static void put_sum(struct sv_json *j, struct area *a, const struct name_sum *sum)
{
    sv_json_begin(j, '{');
    sv_json_put(j, "name", u64, sum->name);
    sv_json_put(j, "text", str, a->s->trace->dict, sum->name);
    if (sum->kind != IS_SLICE)
        sv_json_put(j, "kind", cstr, kind_words[sum->kind]);
    sv_json_put(j, "colour", u64, sum->color);
    sv_json_put(j, "count", u64_text, sum->count);
    sv_json_put(j, "total", i64_text, sum->total_ns);
    sv_json_put(j, "self", i64_text, sum->self_ns);
    sv_json_put(j, "min", i64_text, sum->min_ns);
    sv_json_lit(j, "p50");
    put_percentile(j, a, sum, 0.5);
    sv_json_lit(j, "p90");
    put_percentile(j, a, sum, 0.9);
    sv_json_lit(j, "p99");
    put_percentile(j, a, sum, 0.99);
    sv_json_put(j, "max", i64_text, sum->max_ns);
    sv_json_end(j);
}

static void put_names(struct sv_json *j, struct area *a)
{
    size_t limit = a->ask->limit > 0 && a->ask->limit < NAMES_ANSWERED ? (size_t)a->ask->limit
                                                                       : NAMES_ANSWERED;
    size_t n = 0, shown = 0;
    for (size_t i = 0; i < a->n_sums;
         i++) /* a parent outside of the area has no slices of its own */
        if (a->sums[i].count)
            a->sums[n++] = a->sums[i];
    if (n)
        qsort(a->sums, n, sizeof *a->sums, by_total);
    sv_json_put(j, "names", begin, '[');
    for (; shown < n && shown < limit; shown++)
        put_sum(j, a, &a->sums[shown]);
    sv_json_end(j);
    sv_json_put(j, "more", u64, n - shown);
}

/* The text, and the colour of a frame as `plot flame` has it: the kernel's are grey. */
static void put_node_text(struct sv_json *j, const struct area *a, sv_str name)
{
    const struct sv_dict *d = a->s->trace->dict;
    sv_json_lit(j, "text");
    if (name < d->n_strings) {
        sv_json_str(j, d, name);
        return;
    }
    struct sv_text frame = a->frames->all[name - d->n_strings];
    bool is_kernel = frame.len > 4 && memcmp(frame.bytes + frame.len - 4, "_[k]", 4) == 0;
    uint64_t hash = sv_hash_bytes(frame.bytes, frame.len, 0);
    sv_json_text(j, frame.bytes, frame.len);
    sv_json_put(j, "colour", u64, is_kernel ? SV_N_COLORS : hash % SV_N_COLORS);
}

static void put_tree(struct sv_json *j, const struct area *a)
{
    sv_json_put(j, "flame", begin, '[');
    for (size_t i = 0; i < a->n_nodes; i++) {
        const struct node *node = &a->nodes[i];
        sv_json_begin(j, '{');
        sv_json_put(j, "name", u64, node->name);
        put_node_text(j, a, node->name);
        sv_json_put(j, "parent", i64, node->parent);
        sv_json_put(j, "total", i64_text, node->total_ns);
        sv_json_put(j, "self", i64_text, node->self_ns);
        sv_json_put(j, "count", u64_text, node->count);
        sv_json_end(j);
    }
    sv_json_end(j);
}

/* The mean is weighted by the time that each value held within the area. */
static void put_counter(struct sv_json *j, const struct area *a, uint32_t row)
{
    const struct sv_trace *t = a->s->trace;
    sv_track track = a->s->rows->items[row].track;
    uint64_t at = sv_trace_counter_from(t, track, a->ask->from_ns),
             end = t->tracks[track].counter_end;
    double min = INFINITY, max = -INFINITY, last = 0, sum = 0, time = 0;
    uint64_t not_finite = 0;
    at -= at > t->tracks[track].counter_first;
    for (; at < end && t->counters.ts_ns[at] < a->ask->to_ns; at++) {
        int64_t from = t->counters.ts_ns[at],
                to = at + 1 < end ? t->counters.ts_ns[at + 1] : t->last_ns;
        from = from > a->ask->from_ns ? from : a->ask->from_ns;
        to = to < a->ask->to_ns ? to : a->ask->to_ns;
        last = t->counters.value[at];
        if (!isfinite(last)) {
            not_finite++;
            continue;
        }
        min = fmin(min, last);
        max = fmax(max, last);
        sum += to > from ? last * (double)(to - from) : 0;
        time += to > from ? (double)(to - from) : 0;
    }
    if (min > max && !not_finite)
        return;
    if (min > max)
        min = max = NAN;
    sv_json_begin(j, '{');
    sv_json_put(j, "row", u64, row);
    sv_json_put(j, "min", double, min);
    sv_json_put(j, "max", double, max);
    sv_json_put(j, "mean", double, time > 0 ? sum / time : isfinite(last) ? last : max);
    sv_json_put(j, "last", double, last);
    sv_json_put(j, "not_finite", u64_text, not_finite);
    sv_json_end(j);
}

/* ---- arrows ---- */

/* Arrows from slices of one name to slices of another; from the end of one to the beginning of the
 * other, or from beginning to beginning where the first one lasts longer. */
struct arrow_sum {
    sv_str from, to;
    uint64_t count;
    int64_t total_ns, min_ns, max_ns;
    uint32_t longest; /* the slice that it leaves */
};

struct arrows {
    struct arrow_sum *sums;
    size_t n, cap;
    struct sv_map number_of; /* both names → number + 1 */
    uint64_t count;
};

static bool touches(const struct area *a, uint32_t slice)
{
    const struct sv_trace *t = a->s->trace;
    int64_t from = t->slices.ts_ns[slice], to = sv_trace_end_ns(t, slice);
    return from < a->ask->to_ns && (from >= a->ask->from_ns || to > a->ask->from_ns);
}

/* Is the slice in the area, on one of its lines? */
static bool is_in_area(const struct area *a, const struct sv_ask_row *const *asked, uint32_t slice)
{
    uint32_t row = a->s->rows->row_of_track[a->s->trace->slices.track[slice]];
    if (row == SV_NO_ROW || !asked[row] || !touches(a, slice))
        return false;
    return sv_track_rows_line(a->s->rows, slice) - asked[row]->first_line < asked[row]->n_lines;
}

static void add_arrow(struct arrows *x, const struct sv_trace *t, uint32_t from, uint32_t to)
{
    const struct sv_slices *c = &t->slices;
    int64_t end = sv_trace_end_ns(t, from), begin = end <= c->ts_ns[to] ? end : c->ts_ns[from];
    int64_t ns = sv_sat_sub(c->ts_ns[to], begin);
    bool is_new;
    uint64_t *number =
        sv_map_add(&x->number_of, ((uint64_t)c->name[from] << 32 | c->name[to]) + 1, &is_new);
    if (is_new) {
        SV_APPEND(x->sums, x->n, x->cap) =
            (struct arrow_sum){.from = c->name[from], .to = c->name[to], .min_ns = INT64_MAX};
        *number = x->n;
    }
    struct arrow_sum *sum = &x->sums[*number - 1];
    if (sum->count++ == 0 || ns > sum->max_ns) {
        sum->max_ns = ns;
        sum->longest = from;
    }
    sum->min_ns = ns < sum->min_ns ? ns : sum->min_ns;
    sum->total_ns = sv_sat_add(sum->total_ns, ns);
    x->count++;
}

static void find_arrows(const struct area *a, struct arrows *x)
{
    const struct sv_trace *t = a->s->trace;
    const struct sv_ask_row **asked = sv_alloc((a->s->rows->n + 1) * sizeof *asked);
    for (size_t i = 0; i < a->ask->n_rows; i++)
        asked[a->ask->rows[i].row] = &a->ask->rows[i];
    for (uint64_t i = 0; i < t->flows.n; i++)
        if (is_in_area(a, asked, t->flows.from[i]) || is_in_area(a, asked, t->flows.to[i]))
            add_arrow(x, t, t->flows.from[i], t->flows.to[i]);
    free(asked);
}

static int most_arrows(const void *p, const void *q)
{
    const struct arrow_sum *x = p, *y = q;
    if (x->count != y->count)
        return x->count > y->count ? -1 : 1;
    if (x->from != y->from)
        return x->from < y->from ? -1 : 1;
    return x->to < y->to ? -1 : x->to > y->to;
}

static void put_arrows(struct sv_json *j, const struct area *a)
{
    const struct sv_dict *d = a->s->trace->dict;
    struct arrows x = {0};
    find_arrows(a, &x);
    if (x.n)
        qsort(x.sums, x.n, sizeof *x.sums, most_arrows);
    sv_json_put(j, "arrows", u64_text, x.count);
    sv_json_put(j, "flows", begin, '[');
    for (size_t i = 0; i < x.n && i < ARROWS_ANSWERED; i++) {
        const struct arrow_sum *sum = &x.sums[i];
        sv_json_begin(j, '{');
        sv_json_put(j, "from", str, d, sum->from);
        sv_json_put(j, "to", str, d, sum->to);
        sv_json_put(j, "count", u64_text, sum->count);
        sv_json_put(j, "total", i64_text, sum->total_ns);
        sv_json_put(j, "min", i64_text, sum->min_ns);
        sv_json_put(j, "max", i64_text, sum->max_ns);
        sv_json_put(j, "longest", u64, sum->longest);
        sv_json_end(j);
    }
    sv_json_end(j);
    sv_map_fini(&x.number_of);
    free(x.sums);
}

static void reply(struct area *a, struct sv_web_answer *out)
{
    struct sv_json j;
    sv_json_init(&j, &out->body);
    sv_json_begin(&j, '{');
    sv_json_put(&j, "slices", u64_text, a->n);
    put_names(&j, a);
    put_tree(&j, a);
    sv_json_put(&j, "counters", begin, '[');
    for (size_t i = 0; i < a->ask->n_rows; i++)
        if (a->s->rows->items[a->ask->rows[i].row].lines == 0)
            put_counter(&j, a, a->ask->rows[i].row);
    sv_json_end(&j);
    put_arrows(&j, a);
    sv_json_end(&j);
}

void sv_answer_area(struct sv_shown *s, const struct sv_web_request *q, struct sv_web_answer *out)
{
    struct sv_ask ask;
    if (sv_ask_read(&ask, s, q, out)) {
        struct area *a = sv_alloc(sizeof *a);
        a->s = s;
        a->ask = &ask;
        a->state =
            sv_dict_find_str(s->trace->dict, SV_CAT_THREAD_STATE, strlen(SV_CAT_THREAD_STATE));
        a->wait =
            sv_dict_find_str(s->trace->dict, SV_CAT_OFFCPU_SAMPLE, strlen(SV_CAT_OFFCPU_SAMPLE));
        a->group_of =
            sv_alloc(((size_t)s->trace->dict->n_strings + 1) * N_KINDS * sizeof *a->group_of);
        if (!ask.has_from || !ask.has_to || ask.to_ns <= ask.from_ns) {
            sv_web_error(out, 400, "'from' and 'to' must be times, 'from' the earlier one");
        } else {
            for (size_t i = 0; i < ask.n_rows; i++)
                walk_row(a, &ask.rows[i], true);
            collect_durations(a);
            if (a->is_old)
                sv_web_error(out, 409, SV_ASKED_NEWER);
            else
                reply(a, out);
        }
        free(a->group_of);
        sv_map_fini(&a->node_of);
        free(a->sums);
        free(a->nodes);
        free(a->durations);
        free_frames(a->frames);
        free(a);
    }
    sv_ask_fini(&ask);
}
