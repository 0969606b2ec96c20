/* The event generator: time walks forward in small steps with many ties, and at each step one track
 * does something that it may do at that moment. Sizes are small on purpose: laws break on ties,
 * empty slices and nesting, not on volume. */
#include "tests/harness/gen_events.h"

#include "core/stream/args.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* splitmix64 */
uint64_t rng_next(struct rng *r)
{
    uint64_t z = r->state += 0x9e3779b97f4a7c15ull;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return z ^ z >> 31;
}

uint64_t rng_below(struct rng *r, uint64_t n)
{
    assert(n > 0);
    return rng_next(r) % n;
}

enum { FLOWS_MAX = 1000, TRACKS_MAX = 64, DEPTH_MAX = 64, ARGS_CAP = 96, ODD_ARGS_CAP = 600 };

enum form { SLICE, ENDLESS, EDGE };

struct lane {
    sv_track track;
    int64_t begins[DEPTH_MAX], ends[DEPTH_MAX]; /* of open slices */
    enum form forms[DEPTH_MAX];
    size_t n;
};

struct maker {
    struct gen *g;
    const struct gen_options *o;
    struct lane lanes[TRACKS_MAX];
    size_t n_lanes, depth;
    sv_track counters[2];
    int64_t now_ns;
    int64_t flow_ns[FLOWS_MAX]; /* when the number was used last */
    bool is_flow_used[FLOWS_MAX];
};

/* ---- arguments ---- */

static sv_str word(struct gen *g, const char *prefix, uint64_t i)
{
    char text[40];
    int len = snprintf(text, sizeof text, "%s%" PRIu64, prefix, i);
    return sv_dict_str(g->dict, text, (size_t)len);
}

static bool is_odd(const struct maker *m, unsigned what, uint64_t one_in)
{
    return m->o->odd & what && rng_below(&m->g->rng, one_in) == 0;
}

/* A name that a format may stumble over. */
static sv_str odd_word(struct maker *m)
{
    static const struct {
        const char *text;
        size_t len;
    } words[] = {{"", 0},
                 {" ", 1},
                 {"\x1b[31mred\x1b[0m", 12},
                 {"a\0b", 3},
                 {"\n", 1},
                 {"\"\\/", 3},
                 {"true", 4},
                 {"-12.5e3", 7},
                 {"\xc3\xa9", 2},
                 {"a.b[0]", 6},
                 {"@flow", 5},
                 {"{\"x\":1}", 7},
                 {"name0", 5},
                 {"\x7f\x01", 2},
                 {"\xe2\x80\xa8", 3},
                 {"cat=\"x\"", 7},
                 {"process0", 8},
                 {"#1", 2},
                 {"\xf0\x9f\x98\x80", 4},
                 {"null", 4}};
    static const struct {
        const char *text;
        size_t len;
    } no_utf8[] = {{"\xff", 1}, {"a\xc3", 2}, {"\xed\xa0\x80", 3}, {"\xc0\x80z", 3}};
    struct rng *r = &m->g->rng;
    if (is_odd(m, GEN_ODD_BYTES, 4)) {
        size_t i = rng_below(r, sizeof no_utf8 / sizeof *no_utf8);
        return sv_dict_str(m->g->dict, no_utf8[i].text, no_utf8[i].len);
    }
    if (rng_below(r, 12) == 0) {
        static char text[70000];
        size_t len = rng_below(r, 6) ? 200 + rng_below(r, 400) : sizeof text;
        memset(text, 'a' + (int)rng_below(r, 3), len);
        return sv_dict_str(m->g->dict, text, len);
    }
    size_t i = rng_below(r, sizeof words / sizeof *words);
    return sv_dict_str(m->g->dict, words[i].text, words[i].len);
}

static bool is_type_allowed(const struct gen_options *o, unsigned type)
{
    return o->arg_types == 0 || o->arg_types >> type & 1;
}

static void make_odd_text(struct maker *m, struct sv_arg *a)
{
    struct gen *g = m->g;
    struct sv_text t = sv_dict_text(g->dict, odd_word(m));
    size_t times = 1 + (rng_below(&g->rng, 20) == 0 ? rng_below(&g->rng, 3000) : 0);
    times = t.len > 1000 ? 1 : times;
    char *text = sv_arena_get(&g->arena, t.len * times + 1, 1);
    for (size_t i = 0; i < times; i++)
        memcpy(text + i * t.len, t.bytes, t.len);
    a->text = text;
    a->size = (uint32_t)(t.len * times) & 0xffffff;
}

static void make_text(struct gen *g, struct sv_arg *a)
{
    static const char alphabet[] = "ab\"\\/ \n\t\xc3\xa9z0,{}";
    size_t len = rng_below(&g->rng, 12);
    char text[16];
    for (size_t i = 0; i < len; i++)
        text[i] = alphabet[rng_below(&g->rng, sizeof alphabet - 1)];
    /* A cut "é" is not a text that every format can hold. */
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)text[i] >= 0x80)
            text[i] = '~';
    a->text = sv_arena_copy(&g->arena, text, len);
    a->size = (uint32_t)len & 0xffffff;
}

static void make_odd_number(struct gen *g, struct sv_arg *a)
{
    static const double doubles[] = {-0.0, 5e-324, 1.7976931348623157e308,
                                     0.1,  1e22,   9007199254740993.0};
    static const double others[] = {__builtin_nan(""), __builtin_inf(), -__builtin_inf()};
    if (a->type == SV_ARG_DOUBLE)
        a->d = rng_below(&g->rng, 2) ? doubles[rng_below(&g->rng, 6)]
                                     : others[rng_below(&g->rng, 3)];
}

static void make_value(struct gen *g, struct sv_arg *a)
{
    static const int64_t ints[] = {0, 1, -1, 42, INT64_MAX, INT64_MIN, 1ll << 53};
    static const double doubles[] = {0.5, -1.25, 1e300, 3.0, 1e-9};
    switch (a->type) {
    case SV_ARG_BOOL: a->i = (int64_t)rng_below(&g->rng, 2); break;
    case SV_ARG_INT: a->i = ints[rng_below(&g->rng, 7)]; break;
    case SV_ARG_UINT: a->u = UINT64_MAX - rng_below(&g->rng, 9); break;
    case SV_ARG_DOUBLE: a->d = doubles[rng_below(&g->rng, 5)]; break;
    case SV_ARG_POINTER: a->u = rng_next(&g->rng) >> 16; break;
    case SV_ARG_TEXT: make_text(g, a); break;
    default: break;
    }
}

/* Appends one argument with its members; siblings have different keys, unless odd ones are
 * wanted. */
static size_t make_arg(struct maker *m, struct sv_arg *args, size_t n, sv_str key, unsigned level)
{
    struct gen *g = m->g;
    bool is_deep = m->o->odd & GEN_ODD_ARGS && level > 0;
    size_t cap = m->o->odd & GEN_ODD_ARGS ? ODD_ARGS_CAP : ARGS_CAP;
    unsigned type = SV_ARG_NULL + (unsigned)rng_below(&g->rng, SV_ARG_ARRAY);
    if (is_deep && level < 40 && rng_below(&g->rng, 3))
        type = rng_below(&g->rng, 2) ? SV_ARG_DICT : SV_ARG_ARRAY;
    bool container = type == SV_ARG_DICT || type == SV_ARG_ARRAY;
    unsigned deepest = m->o->odd & GEN_ODD_ARGS ? 40 : 3;
    if (!is_type_allowed(m->o, type) || (container && (level >= deepest || n + 8 > cap)))
        type = SV_ARG_INT;
    size_t at = n++;
    args[at] = (struct sv_arg){.key = key, .type = type & 0xff};
    make_value(g, &args[at]);
    if (type == SV_ARG_TEXT && is_odd(m, GEN_ODD_NAMES, 3))
        make_odd_text(m, &args[at]);
    if (is_odd(m, GEN_ODD_NUMBERS, 2))
        make_odd_number(g, &args[at]);
    if (type != SV_ARG_DICT && type != SV_ARG_ARRAY)
        return n;
    size_t members = rng_below(&g->rng, is_odd(m, GEN_ODD_ARGS, 20) ? 60 : 4);
    for (size_t i = 0; i < members && n < cap; i++) {
        sv_str name = is_odd(m, GEN_ODD_NAMES, 4) ? odd_word(m) : word(g, "m", i);
        name = name ? name : word(g, "m", i);
        n = make_arg(m, args, n, type == SV_ARG_DICT ? name : 0, level + 1);
    }
    args[at].size = (uint32_t)(n - at - 1) & 0xffffff;
    return n;
}

static size_t text_arg(struct maker *m, struct sv_arg *args, size_t n, const char *key)
{
    args[n] = (struct sv_arg){.key = key ? sv_dict_cstr(m->g->dict, key) : 0, .type = SV_ARG_TEXT};
    make_text(m->g, &args[n]);
    return n + 1;
}

/* Arguments with a meaning of their own. */
static size_t make_special(struct maker *m, struct sv_arg *args, size_t n, const struct sv_event *e)
{
    struct rng *r = &m->g->rng;
    size_t at = n;
    if (rng_below(r, 4) == 0) {
        args[n++] = (struct sv_arg){.type = SV_ARG_SOURCE};
        n = text_arg(m, args, n, "file");
        n = text_arg(m, args, n, "function");
        args[n++] = (struct sv_arg){.key = sv_dict_cstr(m->g->dict, "line"),
                                    .type = SV_ARG_INT,
                                    .i = (int64_t)rng_below(r, 100000)};
        args[at].size = 3;
    }
    at = n;
    if (rng_below(r, 4) == 0) {
        args[n++] = (struct sv_arg){.type = SV_ARG_STACK};
        for (uint64_t frames = rng_below(r, 5); frames > 0; frames--)
            n = text_arg(m, args, n, NULL);
        args[at].size = (uint32_t)(n - at - 1) & 0xffffff;
    }
    if (e->kind == SV_SLICE && e->dur_ns >= 0 && rng_below(r, 4) == 0) {
        args[n++] =
            (struct sv_arg){.type = SV_ARG_THREAD_TIME, .i = (int64_t)rng_below(r, 1000000)};
        args[n++] = (struct sv_arg){.type = SV_ARG_THREAD_DUR, .i = (int64_t)rng_below(r, 1000)};
    }
    return n;
}

/* The number of a flow; 0: none, since it was used at this very moment, and formats do not agree on
 * which of two events of one flow and one time is the first, unless the later one ends it. */
static uint64_t flow_number(struct maker *m, unsigned type)
{
    uint64_t i = rng_below(&m->g->rng, FLOWS_MAX);
    if (type != SV_ARG_FLOW_END && m->is_flow_used[i] && m->flow_ns[i] == m->now_ns)
        return 0;
    m->is_flow_used[i] = true;
    m->flow_ns[i] = m->now_ns;
    return 1 + i;
}

static void make_args(struct maker *m, struct sv_event *e, const char *prefix, bool flows)
{
    struct sv_arg args[ODD_ARGS_CAP + 200];
    size_t n = 0;
    struct rng *r = &m->g->rng;
    if (m->o->extras & GEN_ARGS && rng_below(r, 2))
        for (size_t i = 0, count = rng_below(r, 4); i < count && n < ARGS_CAP - 4; i++) {
            sv_str key = is_odd(m, GEN_ODD_NAMES, 4) ? odd_word(m) : 0;
            n = make_arg(m, args, n, key ? key : word(m->g, prefix, i), 0);
        }
    if (flows && is_odd(m, GEN_ODD_ARGS, 3))
        n = make_special(m, args, n, e);
    if (flows && m->o->extras & GEN_FLOWS && rng_below(r, 3) == 0) {
        unsigned type = SV_ARG_FLOW_BEGIN + (unsigned)rng_below(r, 4);
        uint64_t number = type == SV_ARG_CORRELATION ? 1 + rng_below(r, 1000)
                                                     : flow_number(m, type);
        if (number)
            args[n++] = (struct sv_arg){.type = type & 0xff, .u = number};
    }
    if (n == 0)
        return;
    void *copy = sv_arena_get(&m->g->arena, sv_args_bytes(args, n, NULL), 16);
    e->args = sv_args_copy(copy, args, n);
    e->n_args = (uint16_t)n;
}

/* ---- events ---- */

static struct sv_event *add(struct maker *m, unsigned kind, sv_track track)
{
    struct gen *g = m->g;
    g->events = sv_grow(g->events, &g->cap, g->n + 1, sizeof *g->events);
    struct sv_event *e = &g->events[g->n++];
    *e = (struct sv_event){.ts_ns = m->now_ns, .track = track, .kind = (uint8_t)kind};
    return e;
}

static void give_name(struct maker *m, struct sv_event *e)
{
    struct rng *r = &m->g->rng;
    e->name = word(m->g, "name", rng_below(r, 20));
    if (rng_below(r, 3))
        e->cat = sv_dict_cstr(m->g->dict, rng_below(r, 2) ? "cpu" : "gpu,kernel");
    if (is_odd(m, GEN_ODD_NAMES, 4))
        e->name = odd_word(m);
    if (is_odd(m, GEN_ODD_NAMES, 8))
        e->cat = odd_word(m);
}

static void close_ended(struct lane *l, int64_t now_ns)
{
    while (l->n && l->forms[l->n - 1] == SLICE && l->ends[l->n - 1] <= now_ns)
        l->n--;
}

/* A step or a length: of any size where odd times are wanted. */
static int64_t length_below(struct maker *m, uint64_t usual)
{
    struct rng *r = &m->g->rng;
    if (!is_odd(m, GEN_ODD_TIMES, 3))
        return (int64_t)rng_below(r, usual);
    return (int64_t)(rng_next(r) >> (1 + rng_below(r, 63)));
}

/* `ns` later, but not past the end of time. */
static int64_t later(int64_t now_ns, int64_t ns)
{
    int64_t sum;
    return __builtin_add_overflow(now_ns, ns, &sum) ? INT64_MAX : sum;
}

static void push(struct lane *l, int64_t begin_ns, int64_t end_ns, enum form form)
{
    l->begins[l->n] = begin_ns;
    l->forms[l->n] = form;
    l->ends[l->n++] = end_ns;
}

static void make_slice(struct maker *m, struct lane *l)
{
    struct rng *r = &m->g->rng;
    struct sv_event *e = add(m, SV_SLICE, l->track);
    bool overlap = (m->o->shape & SV_HAS_SLICES) == SV_HAS_SLICES;
    close_ended(l, m->now_ns);
    bool is_inside = !overlap && l->n && l->forms[l->n - 1] == SLICE;
    int64_t dur_ns = rng_below(r, 5) == 0 ? 0 : length_below(m, 1001);
    int64_t end_ns = later(m->now_ns, dur_ns);
    if (is_inside && end_ns > l->ends[l->n - 1])
        end_ns = l->ends[l->n - 1];
    if (l->n == m->depth) /* no place to remember it, so it must be over at once */
        end_ns = m->now_ns;
    bool is_unfinished = m->o->extras & GEN_UNFINISHED && l->n < m->depth && !is_inside &&
                         rng_below(r, 50) == 0;
    if (!sv_event_until(e, end_ns))
        end_ns = e->ts_ns;
    if (is_unfinished)
        e->dur_ns = SV_UNFINISHED;
    if (!overlap && l->n < m->depth)
        push(l, m->now_ns, end_ns, is_unfinished ? ENDLESS : SLICE);
    give_name(m, e);
    make_args(m, e, "k", true);
}

static void make_instant(struct maker *m, sv_track track)
{
    struct sv_event *e = add(m, SV_INSTANT, track);
    give_name(m, e);
    make_args(m, e, "k", true);
    if (rng_below(&m->g->rng, 5) == 0)
        e->flags = rng_below(&m->g->rng, 2) ? SV_SCOPE_PROCESS : SV_SCOPE_GLOBAL;
}

static bool fits(int64_t begin_ns, int64_t end_ns)
{
    int64_t dur_ns;
    return !__builtin_sub_overflow(end_ns, begin_ns, &dur_ns);
}

static void make_edge(struct maker *m, struct lane *l)
{
    struct rng *r = &m->g->rng;
    bool may_close = l->n && fits(l->begins[l->n - 1], m->now_ns);
    bool opens = l->n == 0 || (l->n < m->depth && (!may_close || rng_below(r, 2)));
    if (!opens && !may_close) {
        make_instant(m, l->track);
        return;
    }
    struct sv_event *e = add(m, opens ? SV_BEGIN : SV_END, l->track);
    if (opens) {
        push(l, m->now_ns, INT64_MAX, EDGE);
        give_name(m, e);
        make_args(m, e, "k", true);
    } else {
        l->n--;
        if (rng_below(r, 4) == 0)
            make_args(m, e, "e", false);
    }
}

static void make_counter(struct maker *m)
{
    struct rng *r = &m->g->rng;
    size_t which = rng_below(r, 2);
    struct sv_event *e = add(m, SV_COUNTER, m->counters[which]);
    struct sv_arg *a = sv_arena_get(&m->g->arena, sizeof *a, 16);
    *a = (struct sv_arg){.type = SV_ARG_INT, .i = (int64_t)rng_below(r, 1000) - 500};
    if (which)
        *a = (struct sv_arg){.type = SV_ARG_DOUBLE, .d = (double)rng_below(r, 1000) / 8};
    if (is_odd(m, GEN_ODD_NUMBERS, 4))
        *a = (struct sv_arg){.type = which ? SV_ARG_DOUBLE : SV_ARG_INT,
                             .i = rng_below(r, 2) ? INT64_MAX : INT64_MIN};
    if (which && a->i == INT64_MAX) /* that is a nan */
        a->d = 1.7976931348623157e308;
    e->args = a;
    e->n_args = 1;
}

static void make_loss(struct maker *m, sv_track track)
{
    struct sv_event *e = add(m, SV_LOSS, track);
    struct sv_arg *a = sv_arena_get(&m->g->arena, sizeof *a, 16);
    *a = (struct sv_arg){.type = SV_ARG_INT, .i = (int64_t)rng_below(&m->g->rng, 100)};
    e->name = sv_dict_cstr(m->g->dict, "ring full");
    e->dur_ns = (int64_t)rng_below(&m->g->rng, 20);
    if (!sv_event_ends(e))
        e->dur_ns = 0;
    e->args = a;
    e->n_args = 1;
}

static void make_flow_point(struct maker *m, sv_track track)
{
    struct rng *r = &m->g->rng;
    unsigned type = SV_ARG_FLOW_BEGIN + (unsigned)rng_below(r, 3);
    uint64_t number = flow_number(m, type);
    if (!number || m->now_ns == INT64_MAX) /* at the last time nothing is before or behind it */
        return;
    struct sv_event *e = add(m, SV_FLOW, track);
    struct sv_arg *a = sv_arena_get(&m->g->arena, sizeof *a, 16);
    *a = (struct sv_arg){.type = type & 0xff, .u = number};
    e->args = a;
    e->n_args = 1;
    if (a->type == SV_ARG_FLOW_END && rng_below(r, 2)) /* only ends wait for the next slice */
        e->flags = SV_BIND_NEXT;
}

static bool chance(struct maker *m, unsigned extra, uint64_t one_in)
{
    return m->o->extras & extra && rng_below(&m->g->rng, one_in) == 0;
}

static void step(struct maker *m)
{
    struct rng *r = &m->g->rng;
    struct lane *l = &m->lanes[rng_below(r, m->n_lanes)];
    if (rng_below(r, 3))
        m->now_ns = later(m->now_ns, length_below(m, 40));
    if (chance(m, GEN_COUNTERS, 10))
        make_counter(m);
    else if (chance(m, GEN_LOSS, 60))
        make_loss(m, l->track);
    else if (chance(m, GEN_INSTANTS, 10))
        make_instant(m, l->track);
    else if (m->o->shape & SV_HAS_FLOW_POINTS && rng_below(r, 10) == 0)
        make_flow_point(m, l->track);
    else if (chance(m, GEN_UNMATCHED, 40) && l->n == 0 && m->o->shape & SV_HAS_EDGES)
        add(m, SV_END, l->track);
    /* A track keeps to one form, so that edges never cut through slices. */
    else if (m->o->shape & SV_HAS_EDGES && (!(m->o->shape & SV_HAS_NESTED) || l->track % 2))
        make_edge(m, l);
    else if (m->o->shape & SV_HAS_NESTED)
        make_slice(m, l);
}

static void close_edges(struct maker *m)
{
    for (size_t i = 0; i < m->n_lanes; i++) {
        struct lane *l = &m->lanes[i];
        for (; l->n && l->forms[l->n - 1] == EDGE; l->n--) {
            m->now_ns = later(m->now_ns, 3);
            if (chance(m, GEN_UNFINISHED, 3) || !fits(l->begins[l->n - 1], m->now_ns))
                break; /* what is around it stays open, too */
            add(m, SV_END, l->track);
        }
    }
}

/* A row below `parent` that no other names, whatever they are called. */
static sv_track odd_child(struct maker *m, sv_track parent, unsigned kind)
{
    struct gen *g = m->g;
    sv_track t = sv_dict_track(g->dict, rng_next(&g->rng) | 1, NULL);
    struct sv_track_info *info = &g->dict->tracks[t];
    info->kind = (uint8_t)kind;
    info->parent = parent;
    info->name = rng_below(&g->rng, 2) ? word(g, "row", rng_below(&g->rng, 2)) : odd_word(m);
    info->is_described = true;
    return t;
}

static sv_track odd_track(struct maker *m, sv_track process)
{
    static const unsigned kinds[] = {SV_TRACK_CUSTOM, SV_TRACK_CPU, SV_TRACK_GPU, SV_TRACK_STREAM};
    struct rng *r = &m->g->rng;
    sv_track t = rng_below(r, 3) ? process : 0;
    switch (rng_below(r, 4)) {
    case 0: return process;
    case 1: return odd_child(m, t, kinds[rng_below(r, 4)]);
    case 2:
        for (uint64_t depth = 1 + rng_below(r, 12); depth > 0; depth--)
            t = odd_child(m, t, SV_TRACK_CUSTOM);
        return t;
    default:
        t = sv_dict_thread(m->g->dict, 0, (int64_t)rng_below(r, 3), (int64_t)rng_below(r, 3));
        return t;
    }
}

static void make_lane(struct maker *m, size_t i)
{
    struct sv_dict *d = m->g->dict;
    sv_track process = sv_dict_process(d, 0, 100 + (int64_t)i / 3);
    d->tracks[process].name = word(m->g, "process", i / 3);
    d->tracks[process].is_described = true;
    if (is_odd(m, GEN_ODD_TRACKS, 2)) {
        m->lanes[i].track = odd_track(m, process);
        for (size_t k = 0; k < i; k++) /* each row once: what is open there is known by its lane */
            if (m->lanes[k].track == m->lanes[i].track)
                m->lanes[i].track = odd_child(m, process, SV_TRACK_CUSTOM);
        return;
    }
    if (i % 3 == 2) {
        m->lanes[i].track = sv_dict_child(d, process, SV_TRACK_STREAM, word(m->g, "stream", i));
        return;
    }
    sv_track t = sv_dict_thread(d, 0, 100 + (int64_t)i / 3, 200 + (int64_t)i);
    d->tracks[t].name = word(m->g, "thread", i);
    d->tracks[t].is_described = true;
    m->lanes[i].track = t;
}

static void make_tracks(struct maker *m)
{
    struct sv_dict *d = m->g->dict;
    m->n_lanes = m->o->n_tracks ? m->o->n_tracks : 6;
    assert(m->n_lanes <= TRACKS_MAX);
    for (size_t i = 0; i < m->n_lanes; i++)
        make_lane(m, i);
    for (size_t i = 0; i < 2; i++) {
        sv_track process = sv_dict_process(d, 0, 100);
        m->counters[i] = sv_dict_child(d, process, SV_TRACK_COUNTER, word(m->g, "counter", i));
        if (!is_odd(m, GEN_ODD_TRACKS, 2))
            continue;
        struct sv_track_info *info = &d->tracks[m->counters[i]];
        info->unit = sv_dict_cstr(d, rng_below(&m->g->rng, 2) ? "bytes" : "%");
        info->multiplier = rng_below(&m->g->rng, 2) ? 1024 : 0;
        info->is_described = true;
    }
}

static void shuffle(struct gen *g)
{
    for (size_t i = g->n; i > 1; i--) {
        size_t j = rng_below(&g->rng, i);
        struct sv_event swap = g->events[i - 1];
        g->events[i - 1] = g->events[j];
        g->events[j] = swap;
    }
}

static int64_t odd_start(struct rng *r)
{
    static const int64_t starts[] = {INT64_MIN, INT64_MIN + 1,    -1,       0,
                                     1,         INT64_MAX - 2000, INT64_MAX};
    uint64_t i = rng_below(r, 10);
    int64_t any = (int64_t)rng_next(r) >> rng_below(r, 63);
    return i < 7 ? starts[i] : any;
}

/* A stretch of the events track by track, as from a source that reads threads one by one. */
static void by_track(struct sv_event *events, size_t n)
{
    struct sv_event copy[64];
    memcpy(copy, events, n * sizeof *copy);
    size_t at = 0;
    for (size_t left = n; left-- > 0;) {
        sv_track track = copy[left].track;
        for (size_t i = 0; track && i < n; i++) {
            if (copy[i].track == track) {
                events[at++] = copy[i];
                copy[i].track = 0;
            }
        }
    }
    assert(at == n);
}

static void mix_tracks(struct gen *g)
{
    for (size_t i = 0, n; i < g->n; i += n) {
        n = 1 + rng_below(&g->rng, 64);
        n = n < g->n - i ? n : g->n - i;
        by_track(g->events + i, n);
    }
}

void gen_make(struct gen *g, const struct gen_options *options)
{
    memset(g, 0, sizeof *g);
    g->dict = sv_dict_new();
    g->rng.state = options->seed;
    sv_arena_init(&g->arena, (size_t)1 << 16);
    struct maker m = {.g = g, .o = options, .now_ns = options->start_ns};
    if (options->odd & GEN_ODD_TIMES)
        m.now_ns = odd_start(&g->rng);
    m.depth = options->depth ? (size_t)options->depth : 8;
    assert(m.depth <= DEPTH_MAX);
    make_tracks(&m);
    while (g->n < options->n)
        step(&m);
    close_edges(&m);
    unsigned order = options->shape & SV_ORDER_BITS;
    if (order == SV_IN_NO_ORDER)
        shuffle(g);
    else if (order == SV_IN_TRACK_ORDER)
        mix_tracks(g);
}

void gen_fini(struct gen *g)
{
    sv_dict_free(g->dict);
    sv_arena_fini(&g->arena);
    free(g->events);
}

/* ---- pushing ---- */

/* A batch in memory of its own, scribbled over afterwards. */
static int push_batch(const struct sv_event *events, size_t n, struct sv_sink *sink,
                      struct sv_err *err)
{
    size_t bytes = 0;
    for (size_t i = 0; i < n; i++)
        bytes += sv_args_bytes(events[i].args, events[i].n_args, NULL);
    struct sv_event *copy = sv_alloc(n * sizeof *copy);
    char *args = sv_alloc(bytes), *at = args;
    for (size_t i = 0; i < n; i++) {
        copy[i] = events[i];
        copy[i].args = events[i].n_args ? sv_args_copy(at, events[i].args, events[i].n_args) : NULL;
        at += sv_args_bytes(events[i].args, events[i].n_args, NULL);
    }
    int code = sink->write(sink, copy, n, err);
    memset(copy, 0xee, n * sizeof *copy);
    memset(args, 0xee, bytes);
    free(copy);
    free(args);
    return code;
}

int push_events(const struct sv_event *events, size_t n, struct sv_sink *sink, struct sv_err *err)
{
    struct rng rng = {.state = n};
    int code = 0;
    for (size_t i = 0; i < n && code == 0;) {
        size_t some = 1 + rng_below(&rng, SV_BATCH);
        if (some > n - i)
            some = n - i;
        code = push_batch(events + i, some, sink, err);
        i += some;
    }
    int closed = sink->close(sink, code < 0, err);
    return code < 0 ? code : closed;
}

int gen_push(struct gen *g, struct sv_sink *sink, struct sv_err *err)
{
    return push_events(g->events, g->n, sink, err);
}

struct gen_reader {
    struct sv_source source;
    struct gen *g;
    size_t at;
};

static int reader_next(struct sv_source *s, struct sv_batch *b, struct sv_err *err)
{
    struct gen_reader *r = (struct gen_reader *)s;
    (void)err;
    while (b->n < SV_BATCH && r->at < r->g->n)
        *sv_batch_event(b) = r->g->events[r->at++];
    return (int)b->n;
}

static void reader_close(struct sv_source *s)
{
    free(s);
}

struct sv_source *gen_source(struct gen *g, unsigned gives, struct sv_report *report)
{
    struct gen_reader *r = sv_alloc(sizeof *r);
    r->source = (struct sv_source){.next = reader_next,
                                   .close = reader_close,
                                   .gives = gives,
                                   .dict = g->dict,
                                   .report = report};
    r->g = g;
    return &r->source;
}

/* ---- collecting ---- */

struct collector {
    struct sv_sink sink;
    struct collect *to;
};

static int collect_write(struct sv_sink *s, const struct sv_event *events, size_t n,
                         struct sv_err *err)
{
    struct collect *c = ((struct collector *)s)->to;
    assert(n > 0 && n <= SV_BATCH && !c->closed);
    for (size_t i = 0; i < n; i++) {
        if (c->fail_at && c->n >= c->fail_at)
            return sv_err_set(err, SV_EIO, SV_NO_POS, "the collector was told to fail");
        c->events = sv_grow(c->events, &c->cap, c->n + 1, sizeof *c->events);
        struct sv_event *e = &c->events[c->n++];
        *e = events[i];
        if (e->n_args == 0)
            continue;
        void *copy = sv_arena_get(&c->arena, sv_args_bytes(e->args, e->n_args, NULL), 16);
        e->args = sv_args_copy(copy, e->args, e->n_args);
    }
    return 0;
}

static int collect_close(struct sv_sink *s, bool failed, struct sv_err *err)
{
    struct collect *c = ((struct collector *)s)->to;
    (void)err;
    assert(!c->closed);
    c->closed = true;
    c->failed = failed;
    free(s);
    return 0;
}

struct sv_sink *collect_sink(struct collect *c, unsigned takes)
{
    struct collector *s = sv_alloc(sizeof *s);
    sv_arena_init(&c->arena, (size_t)1 << 16);
    s->sink = (struct sv_sink){.write = collect_write, .close = collect_close, .takes = takes};
    s->to = c;
    return &s->sink;
}

void collect_fini(struct collect *c)
{
    sv_arena_fini(&c->arena);
    free(c->events);
    memset(c, 0, sizeof *c);
}

/* ---- text ---- */

static void dump_text(struct sv_buf *b, const struct sv_dict *d, sv_str s)
{
    struct sv_text t = sv_dict_text(d, s);
    sv_buf_escaped(b, t.bytes, t.len);
}

static void dump_arg(struct sv_buf *b, const struct sv_dict *d, const struct sv_arg *a)
{
    sv_buf_byte(b, ' ');
    if (a->key) {
        dump_text(b, d, a->key);
        sv_buf_byte(b, '=');
    }
    switch (a->type) {
    case SV_ARG_INT:
    case SV_ARG_BOOL:
    case SV_ARG_THREAD_TIME:
    case SV_ARG_THREAD_DUR: sv_buf_printf(b, "%s:%" PRId64, sv_arg_type_name(a->type), a->i); break;
    case SV_ARG_DOUBLE: sv_buf_printf(b, "double:%.17g", a->d); break;
    case SV_ARG_TEXT:
        sv_buf_byte(b, '\'');
        sv_buf_escaped(b, a->text, a->size);
        sv_buf_byte(b, '\'');
        break;
    case SV_ARG_NULL: sv_buf_str(b, "null"); break;
    case SV_ARG_DICT:
    case SV_ARG_ARRAY:
    case SV_ARG_SOURCE:
    case SV_ARG_STACK:
        sv_buf_printf(b, "%s(%u)", sv_arg_type_name(a->type), (unsigned)a->size);
        break;
    default: sv_buf_printf(b, "%s:%" PRIu64, sv_arg_type_name(a->type), a->u); break;
    }
}

static void dump_event(struct sv_buf *b, const struct sv_dict *d, const struct sv_event *e)
{
    const struct sv_track_info *t = &d->tracks[e->track];
    sv_buf_printf(b, "%" PRId64 " %" PRId64 " %s ", e->ts_ns, e->dur_ns, sv_kind_name(e->kind));
    dump_text(b, d, t->name);
    sv_buf_printf(b, "#%016" PRIx64 " ", t->uuid);
    dump_text(b, d, e->name);
    sv_buf_byte(b, ' ');
    dump_text(b, d, e->cat);
    if (e->flags)
        sv_buf_printf(b, " flags:%u", e->flags);
    for (size_t i = 0; i < e->n_args; i++)
        dump_arg(b, d, &e->args[i]);
    sv_buf_byte(b, '\n');
}

const char *dump(struct sv_buf *buf, const struct sv_dict *dict, const struct sv_event *events,
                 size_t n)
{
    sv_buf_clear(buf);
    for (size_t i = 0; i < n; i++)
        dump_event(buf, dict, &events[i]);
    return sv_buf_cstr(buf);
}

static int compare_lines(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

const char *dump_set(struct sv_buf *buf, const struct sv_dict *dict, const struct sv_event *events,
                     size_t n)
{
    char **lines = sv_alloc((n + 1) * sizeof *lines);
    for (size_t i = 0; i < n; i++) {
        sv_buf_clear(buf);
        dump_event(buf, dict, &events[i]);
        lines[i] = sv_strndup(sv_buf_cstr(buf), buf->len);
    }
    if (n)
        qsort(lines, n, sizeof *lines, compare_lines);
    sv_buf_clear(buf);
    for (size_t i = 0; i < n; i++) {
        sv_buf_str(buf, lines[i]);
        free(lines[i]);
    }
    free(lines);
    return sv_buf_cstr(buf);
}
