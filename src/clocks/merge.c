/* The merge: see merge.h. Each input goes through pair into a sorter of its own, on its own clock,
 * because how the clocks relate may only be known at the end of the last file. Then the sorted
 * inputs (all, or those of one machine after the other) are read side by side through a heap;
 * conversion to the common clock keeps the order within each. What does not fit into memory waits
 * in one temporary file. */
#include "clocks/merge.h"
#include "clocks/merge_axis.h"
#include "clocks/merge_ranks.h"
#include "core/base/glob.h"
#include "core/base/heap.h"
#include "core/base/sat.h"
#include "core/files/out_name.h"
#include "core/stream/launched.h"
#include "core/stream/machine.h"
#include "core/stream/runs.h"
#include "core/stream/sorter.h"
#include "store/rebase.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define NO_RANK SV_CARD_NO_RANK
/* A quarter of it holds inputs that wait, half of it sorts the one that is read. */
#define MEMORY_DEFAULT ((size_t)128 << 20)

struct input {
    struct sv_sink sink; /* the end of the pump that fills it */
    struct sv_merge_input is;
    char *name;
    struct sv_host from; /* its rank is NO_RANK when unknown */
    unsigned gives;
    int64_t begin_ns, end_ns;  /* from its first event to its last end, on its own clock */
    struct sv_merge_card card; /* for merge_ranks.c */
    struct sv_sorter *sorter;
    struct sv_rebase rebase;
    /* Reading: a block of sorted events (NULL: not begun); the one at `at` has its times
     * converted. */
    struct sv_event *block;
    size_t at, n;
    struct sv_rank order;
    struct sv_merge *merge;
    struct sv_ends ends; /* of its collectives, to align by them */
    /* To compare: */
    char letter[8]; /* its machine: A, B, … */
    int64_t anchor_ns;
    bool has_anchor;
};

struct sv_merge {
    struct sv_merge_options options;
    struct input **inputs;
    size_t n, cap;
    size_t held_bytes;         /* of the inputs that wait in memory */
    struct sv_runs_file *file; /* of all that does not fit */
    struct sv_hosts hosts;
    struct sv_merge_axis axis; /* while the inputs are related */
    struct sv_source source;
    uint32_t
        *order; /* numbers of inputs by machine; first[k] … first[k + 1] are those of machine k */
    uint32_t *first;
    uint32_t *heap; /* numbers of inputs, the one whose next event is the earliest on top */
    size_t n_heap;
};

struct sv_merge *sv_merge_new(const struct sv_merge_options *options)
{
    struct sv_merge *m = sv_alloc(sizeof *m);
    m->options = *options;
    if (m->options.memory_bytes == 0)
        m->options.memory_bytes = MEMORY_DEFAULT;
    m->file = sv_runs_file_new();
    return m;
}

/* What it takes to read the input; who it is stays. */
static void let_go(struct input *in)
{
    sv_sorter_free(in->sorter);
    sv_rebase_fini(&in->rebase);
    sv_dict_free(in->is.dict);
    sv_ends_fini(&in->ends);
    free(in->block);
    in->sorter = NULL;
    in->rebase = (struct sv_rebase){0};
    in->is.dict = NULL;
    in->block = NULL;
}

static void drop(struct sv_merge *m, size_t i)
{
    struct input *in = m->inputs[i];
    let_go(in);
    free(in->name);
    free(in);
    memmove(m->inputs + i, m->inputs + i + 1, (--m->n - i) * sizeof *m->inputs);
}

void sv_merge_free(struct sv_merge *m)
{
    if (!m)
        return;
    while (m->n > 0)
        drop(m, m->n - 1);
    sv_merge_axis_fini(&m->axis);
    sv_runs_file_free(m->file);
    free(m->inputs);
    free(m->order);
    free(m->first);
    free(m->heap);
    free(m);
}

/* ---- reading the inputs ---- */

static void see_anchor(struct input *in, const struct sv_event *e)
{
    const char *anchor = in->merge->options.anchor;
    struct sv_text name = sv_dict_text(in->is.dict, e->name);
    if (in->has_anchor && e->ts_ns >= in->anchor_ns)
        return;
    if (anchor && !sv_glob_match(anchor, name.bytes, name.len))
        return;
    in->anchor_ns = e->ts_ns;
    in->has_anchor = true;
}

static void see_span(struct input *in, const struct sv_event *events, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        int64_t begin = events[i].ts_ns;
        int64_t end = events[i].dur_ns > 0 ? sv_sat_add(begin, events[i].dur_ns) : begin;
        in->begin_ns = !in->card.has_span || begin < in->begin_ns ? begin : in->begin_ns;
        in->end_ns = !in->card.has_span || end > in->end_ns ? end : in->end_ns;
        in->card.has_span = true;
    }
}

static int input_write(struct sv_sink *s, const struct sv_event *events, size_t n,
                       struct sv_err *err)
{
    struct input *in = (struct input *)s;
    see_span(in, events, n);
    for (size_t i = 0; in->merge->options.compare && i < n; i++)
        see_anchor(in, &events[i]);
    for (size_t i = 0; in->merge->options.align_collectives && i < n; i++)
        sv_ends_see(&in->ends, in->is.dict, &events[i]);
    return sv_sorter_add(((struct input *)s)->sorter, events, n, err);
}

/* The input itself stays: it belongs to the merge. */
static int input_close(struct sv_sink *s, bool failed, struct sv_err *err)
{
    (void)s;
    (void)failed;
    (void)err;
    return 0;
}

static const char *meta_text(const struct sv_dict *d, const char *key)
{
    const struct sv_meta *meta = sv_dict_find_meta(d, key);
    return meta && meta->value ? sv_dict_text(d, meta->value).bytes : NULL;
}

static int64_t meta_rank(const struct sv_dict *d)
{
    const char *text = meta_text(d, SV_META_RANK);
    char *end;
    if (!text)
        return NO_RANK;
    long long rank = strtoll(text, &end, 10);
    return end != text && *end == '\0' ? rank : NO_RANK;
}

/* Merged before of several machines: each one's boot id is kept under a label. */
static bool is_mixed(const struct sv_dict *d)
{
    static const char end[] = "/" SV_META_BOOT;
    for (uint32_t i = 0; i < d->n_meta; i++) {
        struct sv_text key = sv_dict_text(d, d->meta[i].key);
        if (key.len >= sizeof end - 1 && strcmp(key.bytes + key.len - (sizeof end - 1), end) == 0)
            return true;
    }
    return false;
}

static uint32_t spaces_of(const struct sv_dict *d)
{
    uint32_t n = 1;
    for (uint32_t t = 1; t < d->n_tracks; t++)
        if (d->tracks[t].space >= n && d->tracks[t].space < UINT16_MAX)
            n = d->tracks[t].space + 1;
    return n;
}

static int64_t first_pid(const struct sv_dict *d)
{
    for (uint32_t t = 1; t < d->n_tracks; t++)
        if (d->tracks[t].kind == SV_TRACK_PROCESS)
            return d->tracks[t].pid;
    return -1;
}

/* Who it is, now that it has been read. */
static void learn(struct input *in)
{
    const struct sv_dict *d = in->is.dict;
    in->from = (struct sv_host){.host = meta_text(d, SV_META_HOST),
                                .boot = meta_text(d, SV_META_BOOT),
                                .pids = meta_text(d, SV_META_PIDS),
                                .rank = meta_rank(d),
                                .n_spaces = spaces_of(d),
                                .is_mixed = is_mixed(d)};
    in->card.name = in->name;
    in->card.kind = in->is.kind;
    in->card.job = meta_text(d, "job");
    in->card.writer = meta_text(d, "writer");
    in->card.pid = first_pid(d);
    in->card.rank = in->from.rank;
    in->card.clocks = &in->is.dict->clocks;
    in->card.has_offset = in->is.has_offset;
}

/* The next input needs the memory to be read. What has spilled before goes to the file whole, since
 * the next one writes there. */
static int hold_or_spill(struct sv_merge *m, struct input *in, struct sv_err *err)
{
    size_t bytes = sv_sorter_bytes(in->sorter);
    bool fits = m->held_bytes + bytes <= m->options.memory_bytes / 4;
    if (fits && !sv_sorter_has_spilled(in->sorter)) {
        m->held_bytes += bytes;
        return 0;
    }
    return sv_sorter_spill(in->sorter, err);
}

int sv_merge_add(struct sv_merge *m, const struct sv_merge_input *input, struct sv_source *source,
                 const struct sv_pump_options *pump, struct sv_err *err)
{
    struct input *in = sv_alloc(sizeof *in);
    SV_APPEND(m->inputs, m->n, m->cap) = in;
    in->is = *input;
    in->name = sv_strndup(input->name, strlen(input->name));
    in->is.name = in->name;
    in->gives = source->gives;
    in->merge = m;
    in->sorter = sv_sorter_new(m->options.memory_bytes / 4);
    sv_sorter_share(in->sorter, m->file);
    in->sink = (struct sv_sink){.write = input_write,
                                .close = input_close,
                                .takes = SV_HAS_ANYTHING & ~(unsigned)SV_HAS_EDGES};
    struct sv_pump_options options = pump ? *pump : (struct sv_pump_options){0};
    options.sort_memory_bytes = m->options.memory_bytes / 2;
    struct sv_report *report = source->report;
    uint64_t damage = report ? sv_report_count(report, SV_DAMAGE) : 0;
    int code = sv_pump(source, &in->sink, &options, err);
    if (code >= 0)
        code = hold_or_spill(m, in, err);
    if (code < 0) {
        drop(m, m->n - 1);
        return code;
    }
    in->card.is_damaged = report && sv_report_count(report, SV_DAMAGE) > damage;
    learn(in);
    if (m->options.compare) {
        snprintf(in->letter, sizeof in->letter, "%c%zu", 'A' + (int)((m->n - 1) % 26), m->n);
        in->from =
            (struct sv_host){.host = in->letter, .rank = NO_RANK, .n_spaces = in->from.n_spaces};
    }
    return 0;
}

/* ---- who is who ---- */

static int compare_texts(const char *a, const char *b)
{
    if (!a || !b)
        return !a - !b; /* unknown ones last */
    return strcmp(a, b);
}

static int compare_inputs(const void *a, const void *b)
{
    const struct input *x = *(struct input *const *)a, *y = *(struct input *const *)b;
    if (x->from.rank != y->from.rank)
        return x->from.rank < y->from.rank ? -1 : 1;
    int order = compare_texts(x->from.host, y->from.host);
    return order ? order : strcmp(x->name, y->name);
}

/* Machines and flow groups get numbers in the order of their first input. */
static void number_inputs(struct sv_merge *m)
{
    struct sv_host **hosts = sv_alloc(m->n * sizeof *hosts);
    qsort(m->inputs, m->n, sizeof *m->inputs, compare_inputs);
    for (size_t i = 0; i < m->n; i++)
        hosts[i] = &m->inputs[i]->from;
    m->hosts = sv_hosts_number(hosts, m->n, m->options.same_host);
    free(hosts);
}

/* What a person calls the input: "rank 3", else the host, else the file. */
static void label_of(const struct input *in, char *to, size_t size)
{
    if (in->from.rank != NO_RANK)
        snprintf(to, size, "rank %" PRId64, in->from.rank);
    else
        snprintf(to, size, "%s", in->from.is_only ? in->from.host : sv_base_name(in->name));
}

/* ---- the common dictionary ---- */

/* By name, not by place in the argument list; inputs of one name are kept apart by their count.
 * Never 0. */
static uint64_t salt_of(struct sv_map *seen, const char *name)
{
    bool is_new;
    uint64_t *count = sv_map_add(seen, sv_hash_bytes(name, strlen(name), 0), &is_new);
    return sv_hash_bytes(name, strlen(name), (*count)++) | 1;
}

static void prepare_rebase(struct sv_merge *m, struct sv_dict *dict)
{
    struct sv_map seen = {0};
    bool is_one = m->hosts.n_machines == 1 && m->hosts.n_groups == 1 && m->hosts.n_places == 1;
    for (size_t i = 0; i < m->n; i++) {
        struct input *in = m->inputs[i];
        struct sv_rebase *r = &in->rebase;
        char label[256];
        label_of(in, label, sizeof label);
        r->from = in->is.dict;
        r->to = dict;
        r->space = in->from.space;
        r->flow_group = in->from.group;
        r->label = is_one ? 0 : sv_dict_cstr(dict, label);
        r->origin = r->label;
        r->has_rank = in->from.rank != NO_RANK;
        r->salt = m->n > 1 ? salt_of(&seen, in->name) : 0;
    }
    sv_map_fini(&seen);
}

/* A rank that only some inputs name is not that of the others. */
static void dispute_ranks(const struct sv_merge *m, struct sv_dict *dict, struct sv_map *disputed)
{
    static const char *const keys[] = {SV_META_RANK, SV_META_LOCAL_RANK, SV_META_TIMES};
    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
        size_t n = 0;
        for (size_t i = 0; i < m->n; i++)
            n += sv_dict_find_meta(m->inputs[i]->is.dict, keys[k]) != NULL;
        if (n > 0 && n < m->n)
            sv_map_add(disputed, sv_dict_cstr(dict, keys[k]), NULL);
    }
}

/* Marks the keys on which two inputs disagree; their numbers are those of `dict`. */
static void find_disputed(const struct sv_merge *m, struct sv_dict *dict, struct sv_map *values,
                          struct sv_map *disputed)
{
    for (size_t i = 0; i < m->n; i++) {
        const struct sv_dict *from = m->inputs[i]->is.dict;
        for (uint32_t k = 0; k < from->n_meta; k++) {
            struct sv_text name = sv_dict_text(from, from->meta[k].key);
            struct sv_text value = sv_dict_text(from, from->meta[k].value);
            sv_str key = sv_dict_str(dict, name.bytes, name.len);
            bool is_new;
            uint64_t *first = sv_map_add(values, key, &is_new);
            sv_str is = sv_dict_str(dict, value.bytes, value.len);
            if (is_new)
                *first = is;
            else if (*first != is)
                sv_map_add(disputed, key, &is_new);
        }
    }
}

/* What all inputs agree on is kept as it is; the rest is kept per input, under its label. */
static void merge_metadata(struct sv_merge *m, struct sv_dict *dict)
{
    struct sv_map values = {0}, disputed = {0};
    find_disputed(m, dict, &values, &disputed);
    dispute_ranks(m, dict, &disputed);
    for (size_t i = 0; i < m->n; i++) {
        const struct sv_dict *from = m->inputs[i]->is.dict;
        char label[256], key[1024];
        label_of(m->inputs[i], label, sizeof label);
        for (uint32_t k = 0; k < from->n_meta; k++) {
            struct sv_text name = sv_dict_text(from, from->meta[k].key);
            struct sv_text value = sv_dict_text(from, from->meta[k].value);
            bool plain = !sv_map_find(&disputed, sv_dict_str(dict, name.bytes, name.len));
            if (!m->options.compare && strcmp(name.bytes, SV_META_RELATION) == 0)
                continue; /* merge_axis.c joins them */
            snprintf(key, sizeof key, "%s%s%s", plain ? "" : label, plain ? "" : "/", name.bytes);
            sv_dict_set_meta(dict, key, value.bytes, value.len, from->meta[k].is_json);
        }
    }
    sv_map_fini(&values);
    sv_map_fini(&disputed);
}

/* Without regard to clocks. */
static int place_anchors(struct sv_merge *m, struct sv_dict *dict, struct sv_err *err)
{
    dict->clocks.trace_clock = SV_CLOCK_UNKNOWN;
    for (size_t i = 0; i < m->n; i++) {
        struct input *in = m->inputs[i];
        if (!in->has_anchor && m->options.anchor)
            return sv_error(err, SV_EFOUND, "%s: no event is called '%s'", in->name,
                            m->options.anchor);
        if (in->anchor_ns == INT64_MIN)
            return sv_error(err, SV_ELIMIT, "%s: its times cannot be moved", in->name);
        in->rebase.shift = (struct sv_shift){.offset_ns = -in->anchor_ns, .uncertainty_ns = -1};
    }
    return 0;
}

/* The shifts of all inputs; what is said about them waits in m->axis until it is known who takes
 * part. */
static int relate(struct sv_merge *m, struct sv_dict *dict, struct sv_err *err)
{
    if (m->options.compare)
        return place_anchors(m, dict, err);
    struct sv_merge_axis_input *inputs = sv_alloc((m->n + 1) * sizeof *inputs);
    for (size_t i = 0; i < m->n; i++) {
        struct input *in = m->inputs[i];
        inputs[i] = (struct sv_merge_axis_input){.name = in->name,
                                                 .dict = in->is.dict,
                                                 .from = &in->from,
                                                 .has_offset = in->is.has_offset,
                                                 .offset_ns = in->is.offset_ns,
                                                 .first_ns = in->card.has_span ? in->begin_ns : 1,
                                                 .last_ns = in->card.has_span ? in->end_ns : 0,
                                                 .ends = &in->ends};
    }
    int code = sv_merge_axis_relate(&m->axis, inputs, m->n, &m->options, err);
    for (size_t i = 0; code == 0 && i < m->n; i++) {
        sv_shift_fini(&m->inputs[i]->rebase.shift); /* of a relation with others than now */
        m->inputs[i]->rebase.shift = sv_merge_axis_take(&m->axis, i);
    }
    free(inputs);
    return code;
}

/* ---- who takes part ---- */

/* The cards of all inputs, in their order; `has_shifts`: with their spans on the common clock. */
static struct sv_merge_card **cards_of(struct sv_merge *m, bool has_shifts)
{
    struct sv_merge_card **cards = sv_alloc(m->n * sizeof *cards);
    for (size_t i = 0; i < m->n; i++) {
        struct input *in = m->inputs[i];
        struct sv_merge_card *c = cards[i] = &in->card;
        c->machine = in->from.machine;
        if (has_shifts && c->has_span)
            c->has_span = sv_shift_apply(&in->rebase.shift, in->begin_ns, &c->begin_ns) &&
                          sv_shift_apply(&in->rebase.shift, in->end_ns, &c->end_ns);
    }
    return cards;
}

static bool drop_marked(struct sv_merge *m)
{
    size_t n = m->n;
    for (size_t i = m->n; i-- > 0;)
        if (m->inputs[i]->card.is_out)
            drop(m, i);
    return m->n < n;
}

static bool is_unrelated(const struct input *in)
{
    return in->rebase.shift.is_assumed && in->card.has_span; /* without events times mean nothing */
}

/* Marks those that nothing relates to the others, but not all. */
static void leave_unrelated(struct sv_merge *m)
{
    size_t kept = 0;
    for (size_t i = 0; i < m->n; i++)
        kept += m->inputs[i]->card.has_span && !is_unrelated(m->inputs[i]);
    for (size_t i = 0; i < m->n; i++) {
        struct input *in = m->inputs[i];
        if (!is_unrelated(in) || kept++ == 0)
            continue;
        in->card.is_out = true;
        m->options.left_out(m->options.left_out_ctx, in->name);
    }
}

/* Who takes part, and how they relate. */
static int settle(struct sv_merge *m, struct sv_dict *dict, struct sv_report *report,
                  struct sv_err *err)
{
    struct sv_merge_card **cards;
    int code;
    do {
        number_inputs(m);
        cards = cards_of(m, false);
        if (!m->options.compare)
            sv_merge_find_clocks(cards, m->n, m->options.assume || m->options.left_out, report);
        free(cards);
        if (drop_marked(m))
            number_inputs(m);
        code = relate(m, dict, err);
        if (code >= 0 && m->options.left_out)
            leave_unrelated(m);
        if (code < 0 || m->options.compare || m->options.repeats_ranks)
            continue;
        cards = cards_of(m, true);
        code = sv_merge_check_ranks(cards, m->n, m->options.skips_bad, report, err);
        free(cards);
    } while (code >= 0 && drop_marked(m));
    return code;
}

/* ---- the merged stream ---- */

/* The next event of the input with its times converted. 1: there is one, 0: the end. */
static int advance(struct input *in, struct sv_err *err)
{
    if (++in->at >= in->n) {
        int n = sv_sorter_next(in->sorter, in->block, SV_BATCH, err);
        if (n <= 0)
            return n;
        in->n = (size_t)n;
        in->at = 0;
    }
    struct sv_event *e = &in->block[in->at];
    if (!sv_rebase_time(&in->rebase, e))
        return sv_error(err, SV_ELIMIT,
                        "%s: the event at %" PRId64
                        " ns begins or ends more than 2^63 ns away from zero on the common clock: "
                        "give another --offset, or cut it out",
                        in->name, e->ts_ns);
    in->order = sv_rank_of(e->ts_ns, sv_flow_mark(e), e->kind);
    return 1;
}

/* Ties go by the number of the input, so that the order of the arguments does not matter. */
static bool comes_before(const struct sv_merge *m, uint32_t a, uint32_t b)
{
    struct sv_rank x = m->inputs[a]->order, y = m->inputs[b]->order;
    if (x.ts_ns != y.ts_ns || x.tie != y.tie)
        return sv_rank_before(x, y);
    return a < b;
}

static void heap_sink(struct sv_merge *m, size_t i)
{
    SV_HEAP_SINK(m->heap, m->n_heap, i, a, b, comes_before(m, *a, *b));
}

static struct sv_merge *merge_of(struct sv_source *s)
{
    return (struct sv_merge *)(void *)((char *)s - offsetof(struct sv_merge, source));
}

static int merge_next(struct sv_source *s, struct sv_batch *b, struct sv_err *err)
{
    struct sv_merge *m = merge_of(s);
    while (m->n_heap && b->n < SV_BATCH) {
        struct input *in = m->inputs[m->heap[0]];
        sv_rebase_event(&in->rebase, &in->block[in->at], b);
        int code = advance(in, err);
        if (code < 0)
            return code;
        if (code == 0)
            m->heap[0] = m->heap[--m->n_heap];
        if (m->n_heap)
            heap_sink(m, 0);
    }
    return (int)b->n;
}

static void merge_close(struct sv_source *s)
{
    sv_merge_free(merge_of(s));
}

/* ---- which inputs are read side by side ---- */

/* Numbers of inputs by machine, each machine's in their order. */
static void order_by_machine(struct sv_merge *m)
{
    m->order = sv_alloc(m->n * sizeof *m->order);
    m->first = sv_alloc(((size_t)m->hosts.n_machines + 2) * sizeof *m->first);
    for (size_t i = 0; i < m->n; i++)
        m->first[m->inputs[i]->from.machine + 2]++;
    for (size_t k = 2; k < (size_t)m->hosts.n_machines + 2; k++)
        m->first[k] += m->first[k - 1];
    for (size_t i = 0; i < m->n; i++)
        m->order[m->first[m->inputs[i]->from.machine + 1]++] = (uint32_t)i;
}

static int open_input(struct sv_merge *m, uint32_t i, size_t memory_bytes, struct sv_err *err)
{
    struct input *in = m->inputs[i];
    in->block = sv_alloc(SV_BATCH * sizeof *in->block);
    int code = sv_sorter_finish(in->sorter, memory_bytes, err);
    if (code == 0)
        code = advance(in, err);
    if (code > 0)
        m->heap[m->n_heap++] = i;
    return code;
}

/* The inputs order[from … to]. */
static int open_inputs(struct sv_merge *m, size_t from, size_t to, struct sv_err *err)
{
    free(m->heap);
    m->heap = sv_alloc((to - from + 1) * sizeof *m->heap);
    m->n_heap = 0;
    for (size_t i = from; i < to; i++) {
        int code = open_input(m, m->order[i], m->options.memory_bytes / 2 / (to - from), err);
        if (code < 0)
            return code;
    }
    for (size_t i = m->n_heap / 2; i-- > 0;)
        heap_sink(m, i);
    return 0;
}

/* Everything came out of a pair stage, and tracks of two inputs may be one. */
static unsigned shape(const struct sv_merge *m, size_t from, size_t to)
{
    unsigned gives = SV_HAS_NESTED;
    for (size_t i = from; i < to; i++)
        gives |= m->inputs[m->order[i]]->gives & (SV_HAS_SLICES | SV_HAS_FLOW_POINTS);
    return to - from > 1 ? gives | SV_HAS_SLICES : gives;
}

int sv_merge_relate(struct sv_merge *m, struct sv_dict *dict, struct sv_report *report,
                    struct sv_err *err)
{
    if (m->n == 0)
        return sv_error(err, SV_EUSAGE, "nothing to merge");
    int code = settle(m, dict, report, err);
    if (code >= 0) {
        prepare_rebase(m, dict);
        merge_metadata(m, dict);
    }
    if (!m->options.compare)
        sv_merge_axis_say(&m->axis, code >= 0 ? dict : NULL, report);
    sv_merge_axis_fini(&m->axis);
    if (code < 0)
        return code;
    order_by_machine(m);
    m->source = (struct sv_source){
        .next = merge_next, .close = merge_close, .dict = dict, .report = report};
    return 0;
}

int sv_merge_source(struct sv_merge *m, struct sv_dict *dict, struct sv_report *report,
                    struct sv_source **out, struct sv_err *err)
{
    int code = sv_merge_relate(m, dict, report, err);
    if (code == 0)
        code = open_inputs(m, 0, m->n, err);
    if (code < 0)
        return code;
    m->source.gives = shape(m, 0, m->n);
    *out = &m->source;
    return 0;
}

/* ---- machine by machine ---- */

/* What the stages of one machine end in: the sink of all of them, which stays open. */
struct part {
    struct sv_sink sink;
    struct sv_sink *next;
};

static int part_write(struct sv_sink *s, const struct sv_event *events, size_t n,
                      struct sv_err *err)
{
    struct sv_sink *next = ((struct part *)s)->next;
    return next->write(next, events, n, err);
}

static int part_close(struct sv_sink *s, bool failed, struct sv_err *err)
{
    (void)s;
    (void)failed;
    (void)err;
    return 0;
}

static void stay_open(struct sv_source *s)
{
    (void)s;
}

/* The inputs order[from … to], which share no track with others. */
static int pump_part(struct sv_merge *m, size_t from, size_t to, struct sv_sink *sink,
                     struct sv_err *err)
{
    struct part part = {.sink = {.write = part_write,
                                 .close = part_close,
                                 .takes = sink->takes,
                                 .best = sink->best},
                        .next = sink};
    int code = open_inputs(m, from, to, err);
    if (code < 0)
        return code;
    m->source.gives = shape(m, from, to);
    m->source.close = stay_open;
    code = sv_pump(&m->source, &part.sink, NULL, err);
    for (size_t i = from; i < to; i++)
        let_go(m->inputs[m->order[i]]);
    return code;
}

int sv_merge_pump(struct sv_merge *m, struct sv_sink *sink, struct sv_err *err)
{
    bool by_machine = (sink->takes & SV_ORDER_BITS) != SV_IN_ORDER;
    int code = 0;
    if (!by_machine)
        code = pump_part(m, 0, m->n, sink, err);
    for (size_t k = 0; by_machine && k < m->hosts.n_machines && code >= 0; k++)
        code = pump_part(m, m->first[k], m->first[k + 1], sink, err);
    int closed = sink->close(sink, code < 0, err);
    sv_merge_free(m);
    return code < 0 ? code : closed;
}
