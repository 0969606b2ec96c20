/* Call paths, added up. Called by the flame graph.
 *
 * One pass per trace: parents have smaller rows, so the path of a row is its parent's and one name
 * more. Totals are added up backwards, since calls come after their parents. */
#include "stats/calltree.h"

#include "core/base/map.h"
#include "core/base/sat.h"
#include "core/stream/frame_text.h"
#include "stats/select.h"
#include "stats/self.h"
#include "why/steps.h"
#include "why/words.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STACK_MAX = 1000 }; /* frames; deeper ones count for those above them */

struct building {
    struct sv_calltree *c;
    const struct sv_trace *t;
    unsigned which; /* trace 0 or 1 */
    struct sv_map *map;
    const struct sv_calltree_options *o;
    struct sv_text *names; /* by sv_str: as they count */
    uint64_t *keys;
    uint32_t *call_of; /* by row */
};

/* The text without digits, and what is around them made smooth. */
static struct sv_text without_numbers(struct sv_arena *a, struct sv_text text)
{
    char out[256];
    size_t n = 0;
    for (size_t i = 0; i < text.len && n < sizeof out - 1; i++) {
        char ch = text.bytes[i];
        if (!isdigit((unsigned char)ch) && !(ch == ' ' && (n == 0 || out[n - 1] == ' ')))
            out[n++] = ch;
    }
    while (n && out[n - 1] == ' ')
        n--;
    return (struct sv_text){sv_arena_copy(a, out, n), (uint32_t)n};
}

static void prepare_names(struct building *b, const struct sv_steps *steps)
{
    const struct sv_dict *d = b->t->dict;
    b->names = sv_alloc(((size_t)d->n_strings + 1) * sizeof *b->names);
    b->keys = sv_alloc(((size_t)d->n_strings + 1) * sizeof *b->keys);
    for (sv_str s = 0; s < d->n_strings; s++)
        b->names[s] = sv_dict_text(d, s);
    for (size_t i = 0; i < steps->n; i++) {
        sv_str s = b->t->slices.name[steps->steps[i].row];
        b->names[s] = without_numbers(&b->c->names, sv_dict_text(d, s));
    }
    for (sv_str s = 0; s < d->n_strings; s++)
        b->keys[s] = sv_hash_bytes(b->names[s].bytes, b->names[s].len, 1);
}

static uint32_t call_under(struct building *b, uint32_t parent, struct sv_text name, uint64_t key)
{
    struct sv_calltree *c = b->c;
    bool is_new;
    if (c->n >= SV_CALLS_MAX) {
        const uint64_t *known = sv_map_find(b->map, sv_mix64(key * 5 + parent));
        c->is_cut |= !known;
        return known ? (uint32_t)*known : parent;
    }
    uint64_t *number = sv_map_add(b->map, sv_mix64(key * 5 + parent), &is_new);
    if (!is_new)
        return (uint32_t)*number;
    *number = c->n;
    c->calls = sv_grow(c->calls, &c->cap, c->n + 1, sizeof *c->calls);
    c->calls[c->n] = (struct sv_call_node){.name = sv_arena_copy(&c->names, name.bytes, name.len),
                                           .len = name.len,
                                           .parent = parent,
                                           .depth = c->calls[parent].depth + 1,
                                           .row = {SV_NO_ROW, SV_NO_ROW}};
    return (uint32_t)c->n++;
}

static uint32_t call_of_track(struct building *b, sv_track track)
{
    const struct sv_dict *d = b->t->dict;
    if (b->o->merge_tracks)
        return 0;
    for (unsigned up = 0; up < 64 && d->tracks[track].kind == SV_TRACK_LANE; up++) {
        if (d->tracks[track].parent == 0)
            break;
        track = d->tracks[track].parent;
    }
    struct sv_text name = sv_dict_text(d, d->tracks[track].name);
    name = without_numbers(&b->c->names, name);
    if (name.len == 0) {
        name.bytes = sv_track_kind_name(d->tracks[track].kind);
        name.len = (uint32_t)strlen(name.bytes);
    }
    return call_under(b, 0, name, sv_hash_bytes(name.bytes, name.len, 2));
}

/* Self times within a window: what the clipped children leave of the clipped slice. */
static int64_t *clipped_self(const struct sv_trace *t, int64_t from, int64_t to)
{
    int64_t *self = sv_alloc_aligned((t->slices.n + 1) * sizeof *self, 64);
    for (uint64_t row = 0; row < t->slices.n; row++) {
        int64_t begin = t->slices.ts_ns[row], end = sv_trace_end_ns(t, row);
        begin = begin > from ? begin : from;
        end = end < to ? end : to;
        self[row] = end > begin ? end - begin : 0;
    }
    /* Children come after their parents and are complete themselves only once theirs were taken
     * off: backwards would subtract too little, so the lengths are taken before. */
    int64_t *length = sv_alloc_aligned((t->slices.n + 1) * sizeof *length, 64);
    memcpy(length, self, t->slices.n * sizeof *length);
    for (uint64_t row = 0; row < t->slices.n; row++)
        if (t->slices.parent[row] != SV_NO_ROW)
            self[t->slices.parent[row]] -= length[row];
    free(length);
    return self;
}

static void add_rows(struct building *b, const int64_t *self)
{
    const struct sv_slices *s = &b->t->slices;
    sv_track track = 0;
    uint32_t top = 0;
    struct sv_meanwhile left_out = sv_meanwhile_of(b->t->dict);
    b->call_of = sv_alloc_aligned((s->n + 1) * sizeof *b->call_of, 64);
    for (uint64_t row = 0; row < s->n; row++) {
        if (s->track[row] != track || row == 0) {
            track = s->track[row];
            top = call_of_track(b, track);
        }
        uint32_t parent = s->parent[row] == SV_NO_ROW ? top : b->call_of[s->parent[row]];
        b->call_of[row] = parent;
        if (s->kind[row] != SV_SLICE || sv_is_meanwhile(&left_out, s->cat[row]))
            continue;
        uint32_t call = call_under(b, parent, b->names[s->name[row]], b->keys[s->name[row]]);
        struct sv_call_node *x = &b->c->calls[call];
        b->call_of[row] = call;
        x->self_ns[b->which] = sv_sat_add(x->self_ns[b->which], self[row] > 0 ? self[row] : 0);
        if (x->count[b->which]++ == 0)
            x->row[b->which] = (uint32_t)row;
    }
}

int64_t sv_sample_ns(const struct sv_dict *d)
{
    const struct sv_meta *m = sv_dict_find_meta(d, "sample_hz");
    double hz = m ? strtod(sv_dict_text(d, m->value).bytes, NULL) : 0;
    return hz >= 0.001 && hz <= 1e9 ? (int64_t)(1e9 / hz) : 1000000;
}

/* The frames of a stack below `call`; each is one path more. */
static uint32_t call_of_stack(struct building *b, uint32_t call, const struct sv_arg *stack)
{
    for (uint32_t i = 1; i <= stack->size; i++) {
        if (stack[i].type != SV_ARG_TEXT || b->c->calls[call].depth >= STACK_MAX)
            continue;
        char room[1024];
        size_t len = stack[i].size;
        const char *text = sv_frame_without_line(stack[i].text, &len, room, sizeof room);
        struct sv_text name = {text, (uint32_t)len};
        call = call_under(b, call, name, sv_hash_bytes(name.bytes, name.len, 1));
    }
    return call;
}

static int64_t number_of(const struct building *b, uint64_t row, const char *key)
{
    struct sv_arg a;
    sv_str k = sv_dict_find_str(b->t->dict, key, strlen(key));
    bool is_there = k && sv_trace_arg(b->t, b->t->slices.args[row], k, &a);
    return is_there && a.type == SV_ARG_INT ? a.i : 0;
}

/* What of a time lies in the window, where there is one. */
static int64_t within(const struct building *b, int64_t from, int64_t to)
{
    if (b->c->n_traces == 1 && b->o->from_ns != b->o->to_ns) {
        from = from > b->o->from_ns ? from : b->o->from_ns;
        to = to < b->o->to_ns ? to : b->o->to_ns;
    }
    return to > from ? to - from : 0;
}

/* One frame for what it waited for, below it the stack. */
static void add_wait(struct building *b, uint32_t call, struct sv_text reason,
                     const struct sv_arg *stack, int64_t ns)
{
    char text[64];
    if (ns <= 0)
        return;
    int len = snprintf(text, sizeof text, "[%.*s]", (int)(reason.len < 40 ? reason.len : 40),
                       reason.bytes);
    struct sv_text name = {text, (uint32_t)len};
    call = call_under(b, call, name, sv_hash_bytes(name.bytes, name.len, 1));
    call = call_of_stack(b, call, stack); /* moves the calls */
    struct sv_call_node *x = &b->c->calls[call];
    x->self_ns[b->which] = sv_sat_add(x->self_ns[b->which], ns);
    x->count[b->which]++;
}

/* A wait is as wide as it is long. Its last part, for a CPU, is apart. */
static void add_waits_of(struct building *b, uint64_t row, uint32_t call,
                         const struct sv_arg *stack)
{
    const struct sv_slices *s = &b->t->slices;
    struct sv_text cpu = {"cpu", 3};
    int64_t queued = number_of(b, row, SV_WAIT_QUEUED), end = sv_trace_end_ns(b->t, row);
    int64_t dur = end - s->ts_ns[row];
    int64_t woken = end - (queued > 0 ? queued < dur ? queued : dur : 0);
    add_wait(b, call, sv_dict_text(b->t->dict, s->name[row]), stack,
             within(b, s->ts_ns[row], woken));
    add_wait(b, call, cpu, stack, within(b, woken, end));
}

static void add_sample(struct building *b, uint64_t row, struct sv_batch *scratch)
{
    const struct sv_slices *s = &b->t->slices;
    const struct sv_dict *d = b->t->dict;
    size_t n;
    sv_batch_reset(scratch);
    const struct sv_arg *a = sv_trace_args(b->t, s->args[row], scratch, &n), *end = a + n;
    while (a < end && a->type != SV_ARG_STACK)
        a = sv_arg_next(a);
    sv_track thread = sv_dict_thread_of(d, s->track[row]);
    uint32_t call = call_of_track(b, thread ? thread : s->track[row]);
    if (a >= end)
        return;
    if (b->o->of_waits) {
        add_waits_of(b, row, call, a);
        return;
    }
    call = call_of_stack(b, call, a);
    struct sv_call_node *x = &b->c->calls[call];
    x->self_ns[b->which] += sv_sample_ns(d);
    x->count[b->which]++;
}

static void add_samples(struct building *b)
{
    const struct sv_slices *s = &b->t->slices;
    bool has_window = b->c->n_traces == 1 && b->o->from_ns != b->o->to_ns && !b->o->of_waits;
    sv_str waits = sv_dict_find_str(b->t->dict, SV_CAT_OFFCPU_SAMPLE, strlen(SV_CAT_OFFCPU_SAMPLE));
    struct sv_batch scratch;
    sv_batch_init(&scratch);
    for (uint64_t row = 0; row < s->n; row++) {
        struct sv_arg found;
        bool is_wait = waits && s->cat[row] == waits;
        if ((is_wait || s->kind[row] == SV_INSTANT) && s->args[row] != 0 &&
            is_wait == b->o->of_waits &&
            !(has_window && (s->ts_ns[row] < b->o->from_ns || s->ts_ns[row] >= b->o->to_ns)) &&
            sv_trace_arg_of_type(b->t, s->args[row], SV_ARG_STACK, &found))
            add_sample(b, row, &scratch);
    }
    sv_batch_fini(&scratch);
}

static void add_trace(struct sv_calltree *c, unsigned which, const struct sv_trace *t,
                      struct sv_map *map, const struct sv_calltree_options *o)
{
    struct building b = {.c = c, .t = t, .which = which, .map = map, .o = o};
    struct sv_steps steps;
    sv_steps_find(&steps, t, NULL);
    c->steps[which] = steps.n;
    prepare_names(&b, &steps);
    if (o->of_samples || o->of_waits) {
        add_samples(&b);
        free(b.names);
        free(b.keys);
        sv_steps_fini(&steps);
        return;
    }
    bool has_window = c->n_traces == 1 && o->from_ns != o->to_ns;
    int64_t *self = has_window ? clipped_self(t, o->from_ns, o->to_ns) : sv_self_times(t);
    add_rows(&b, self);
    free(self);
    free(b.names);
    free(b.keys);
    free(b.call_of);
    sv_steps_fini(&steps);
}

struct ordering {
    const struct sv_calltree *c;
};

static int by_parent_and_total(const void *a, const void *b, void *ctx)
{
    const struct sv_calltree *c = ((const struct ordering *)ctx)->c;
    const struct sv_call_node *x = &c->calls[*(const uint32_t *)a],
                              *y = &c->calls[*(const uint32_t *)b];
    size_t last = c->n_traces - 1;
    if (x->parent != y->parent)
        return x->parent < y->parent ? -1 : 1;
    if (x->total_ns[last] != y->total_ns[last])
        return x->total_ns[last] > y->total_ns[last] ? -1 : 1;
    return x < y ? -1 : x > y;
}

/* Totals, then children of one call side by side. */
static void finish(struct sv_calltree *c)
{
    for (size_t i = c->n; i-- > 0;)
        for (size_t k = 0; k < c->n_traces; k++) {
            struct sv_call_node *x = &c->calls[i];
            x->total_ns[k] = sv_sat_add(x->total_ns[k], x->self_ns[k]);
            int64_t *above = &c->calls[x->parent].total_ns[k];
            if (i)
                *above = sv_sat_add(*above, x->total_ns[k]);
        }
    c->order = sv_alloc((c->n + 1) * sizeof *c->order);
    for (size_t i = 1; i < c->n; i++)
        c->order[i - 1] = (uint32_t)i;
    if (c->n > 2)
        qsort_r(c->order, c->n - 1, sizeof *c->order, by_parent_and_total,
                &(struct ordering){.c = c});
    for (size_t i = 0; i + 1 < c->n; i++) {
        struct sv_call_node *parent = &c->calls[c->calls[c->order[i]].parent];
        if (parent->n_children++ == 0)
            parent->first_child = (uint32_t)i;
    }
}

void sv_calltree_make(struct sv_calltree *c, const struct sv_trace *const *traces, size_t n,
                      const struct sv_calltree_options *o)
{
    struct sv_map map = {0};
    *c = (struct sv_calltree){.n_traces = n, .of_samples = o->of_samples || o->of_waits};
    sv_arena_init(&c->names, 1u << 16);
    c->calls = sv_grow(c->calls, &c->cap, 1, sizeof *c->calls);
    c->calls[c->n++] =
        (struct sv_call_node){.name = "all", .len = 3, .row = {SV_NO_ROW, SV_NO_ROW}};
    for (unsigned i = 0; i < n; i++)
        add_trace(c, i, traces[i], &map, o);
    sv_map_fini(&map);
    bool all_have_steps = c->steps[0] && (n == 1 || c->steps[1]);
    for (size_t i = 0; i < 2; i++)
        c->steps[i] = all_have_steps && i < n ? c->steps[i] : 1;
    finish(c);
}

void sv_calltree_fini(struct sv_calltree *c)
{
    free(c->calls);
    free(c->order);
    sv_arena_fini(&c->names);
    *c = (struct sv_calltree){0};
}
