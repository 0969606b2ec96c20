/* The event generator: time walks forward in small steps with many ties, and at each step one track does something that
 * it may do at that moment. Sizes are small on purpose: laws break on ties, empty slices and nesting, not on volume. */
#include "tests/harness/gen_events.h"

#include "model/args.h"

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

enum { TRACKS_MAX = 64, DEPTH_MAX = 64, ARGS_ROOM = 96 };

struct lane {
    sv_track track;
    int64_t ends[DEPTH_MAX]; /* of open slices, INT64_MAX for edges */
    size_t n;
};

struct maker {
    struct gen *g;
    const struct gen_options *o;
    struct lane lanes[TRACKS_MAX];
    size_t n_lanes, depth;
    sv_track counters[2];
    int64_t now_ns;
};

/* ---- arguments ---- */

static sv_str word(struct gen *g, const char *prefix, uint64_t i)
{
    char text[40];
    int len = snprintf(text, sizeof text, "%s%" PRIu64, prefix, i);
    return sv_dict_str(g->dict, text, (size_t)len);
}

static bool is_type_allowed(const struct gen_options *o, unsigned type)
{
    return o->arg_types == 0 || o->arg_types >> type & 1;
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

/* Appends one argument with its members; siblings have different keys. */
static size_t make_arg(struct maker *m, struct sv_arg *args, size_t n, sv_str key, unsigned level)
{
    struct gen *g = m->g;
    unsigned type = SV_ARG_NULL + (unsigned)rng_below(&g->rng, SV_ARG_ARRAY);
    bool container = type == SV_ARG_DICT || type == SV_ARG_ARRAY;
    if (!is_type_allowed(m->o, type) || (container && (level >= 3 || n + 8 > ARGS_ROOM)))
        type = SV_ARG_INT;
    size_t at = n++;
    args[at] = (struct sv_arg){.key = key, .type = type & 0xff};
    make_value(g, &args[at]);
    if (type != SV_ARG_DICT && type != SV_ARG_ARRAY)
        return n;
    size_t members = rng_below(&g->rng, 4);
    for (size_t i = 0; i < members && n < ARGS_ROOM; i++)
        n = make_arg(m, args, n, type == SV_ARG_DICT ? word(g, "m", i) : 0, level + 1);
    args[at].size = (uint32_t)(n - at - 1) & 0xffffff;
    return n;
}

static void make_args(struct maker *m, struct sv_event *e, const char *prefix, bool flows)
{
    struct sv_arg args[ARGS_ROOM];
    size_t n = 0;
    struct rng *r = &m->g->rng;
    if (m->o->extras & GEN_ARGS && rng_below(r, 2))
        for (size_t i = 0, count = rng_below(r, 4); i < count && n < ARGS_ROOM - 4; i++)
            n = make_arg(m, args, n, word(m->g, prefix, i), 0);
    if (flows && m->o->extras & GEN_FLOWS && rng_below(r, 3) == 0) {
        unsigned type = SV_ARG_FLOW_BEGIN + (unsigned)rng_below(r, 4);
        if (n < ARGS_ROOM)
            args[n++] = (struct sv_arg){.type = type & 0xff, .u = 1 + rng_below(r, 1000)};
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
}

static void close_ended(struct lane *l, int64_t now_ns)
{
    while (l->n && l->ends[l->n - 1] <= now_ns)
        l->n--;
}

static void make_slice(struct maker *m, struct lane *l)
{
    struct rng *r = &m->g->rng;
    struct sv_event *e = add(m, SV_SLICE, l->track);
    bool overlap = m->o->shape & SV_HAS_OVERLAP;
    close_ended(l, m->now_ns);
    int64_t room = 1000;
    if (!overlap && l->n && l->ends[l->n - 1] != INT64_MAX)
        room = l->ends[l->n - 1] - m->now_ns;
    if (room > 1000)
        room = 1000;
    if (l->n == m->depth) /* no place to remember it, so it must be over at once */
        room = 0;
    e->dur_ns = rng_below(r, 5) == 0 ? 0 : (int64_t)rng_below(r, (uint64_t)room + 1);
    bool open_ended = !l->n || l->ends[l->n - 1] == INT64_MAX;
    if (m->o->extras & GEN_UNFINISHED && room && (overlap || open_ended) && rng_below(r, 50) == 0)
        e->dur_ns = SV_UNFINISHED;
    if (!overlap && l->n < m->depth)
        l->ends[l->n++] = e->dur_ns == SV_UNFINISHED ? INT64_MAX - 1 : m->now_ns + e->dur_ns;
    give_name(m, e);
    make_args(m, e, "k", true);
}

static void make_edge(struct maker *m, struct lane *l)
{
    struct rng *r = &m->g->rng;
    bool opens = l->n == 0 || (l->n < m->depth && rng_below(r, 2));
    struct sv_event *e = add(m, opens ? SV_BEGIN : SV_END, l->track);
    if (opens) {
        l->ends[l->n++] = INT64_MAX;
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
    e->args = a;
    e->n_args = 1;
}

static void make_flow_point(struct maker *m, sv_track track)
{
    struct rng *r = &m->g->rng;
    struct sv_event *e = add(m, SV_FLOW, track);
    struct sv_arg *a = sv_arena_get(&m->g->arena, sizeof *a, 16);
    *a = (struct sv_arg){.type = (SV_ARG_FLOW_BEGIN + (unsigned)rng_below(r, 3)) & 0xff,
                         .u = 1 + rng_below(r, 1000)};
    e->args = a;
    e->n_args = 1;
    e->flags = rng_below(r, 4) == 0 ? SV_BIND_NEXT : 0;
}

static void make_instant(struct maker *m, sv_track track)
{
    struct sv_event *e = add(m, SV_INSTANT, track);
    give_name(m, e);
    make_args(m, e, "k", true);
    if (rng_below(&m->g->rng, 5) == 0)
        e->flags = rng_below(&m->g->rng, 2) ? SV_SCOPE_PROCESS : SV_SCOPE_GLOBAL;
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
        m->now_ns += (int64_t)rng_below(r, 40);
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
    else if (m->o->shape & SV_HAS_EDGES && (!(m->o->shape & SV_HAS_SLICES) || l->track % 2))
        make_edge(m, l);
    else if (m->o->shape & SV_HAS_SLICES)
        make_slice(m, l);
}

static void close_edges(struct maker *m)
{
    for (size_t i = 0; i < m->n_lanes; i++) {
        struct lane *l = &m->lanes[i];
        for (; l->n && l->ends[l->n - 1] == INT64_MAX; l->n--) {
            if (chance(m, GEN_UNFINISHED, 3))
                continue;
            m->now_ns += 3;
            add(m, SV_END, l->track);
        }
    }
}

static void make_tracks(struct maker *m)
{
    struct sv_dict *d = m->g->dict;
    m->n_lanes = m->o->n_tracks ? m->o->n_tracks : 6;
    assert(m->n_lanes <= TRACKS_MAX);
    for (size_t i = 0; i < m->n_lanes; i++) {
        sv_track process = sv_dict_process(d, 0, 100 + (int64_t)i / 3);
        d->tracks[process].name = word(m->g, "process", i / 3);
        d->tracks[process].is_described = true;
        if (i % 3 == 2) {
            m->lanes[i].track = sv_dict_child(d, process, SV_TRACK_STREAM, word(m->g, "stream", i));
            continue;
        }
        sv_track t = sv_dict_thread(d, 0, 100 + (int64_t)i / 3, 200 + (int64_t)i);
        d->tracks[t].name = word(m->g, "thread", i);
        d->tracks[t].is_described = true;
        m->lanes[i].track = t;
    }
    for (size_t i = 0; i < 2; i++) {
        sv_track process = sv_dict_process(d, 0, 100);
        m->counters[i] = sv_dict_child(d, process, SV_TRACK_COUNTER, word(m->g, "counter", i));
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

void gen_make(struct gen *g, const struct gen_options *options)
{
    memset(g, 0, sizeof *g);
    g->dict = sv_dict_new();
    g->rng.state = options->seed;
    sv_arena_init(&g->arena, (size_t)1 << 16);
    struct maker m = {.g = g, .o = options, .now_ns = options->start_ns};
    m.depth = options->depth ? (size_t)options->depth : 8;
    assert(m.depth <= DEPTH_MAX);
    make_tracks(&m);
    while (g->n < options->n)
        step(&m);
    close_edges(&m);
    if (options->shape & SV_HAS_DISORDER)
        shuffle(g);
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
