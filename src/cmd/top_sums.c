/* A recording as sums: the sink of `stave top`, to which the recorder writes instead of a file.
 *
 * Samples become functions, waits what they are for and who waits, system calls files, states of
 * threads shares of their time. What has begun and not ended counts up to the present; what is
 * reported when it ends counts in the interval with its part in it. */
#include "cmd/top.h"

#include "core/base/mem.h"
#include "subjects/io/words.h"
#include "why/words.h"

#include <stdlib.h>
#include <string.h>

enum { ROWS_MAX = 1 << 14, FRAMES_MAX = 256 };

struct sv_top_open {
    enum sv_top_table table;
    sv_track track;
    sv_str name, in;
    int64_t counted_ns; /* up to here it has been added */
};

/* ---- rows ---- */

/* Where there are too many names, the rest are one row. */
static struct sv_top_row *row_of(struct sv_top *t, enum sv_top_table table, sv_str name, sv_str in)
{
    struct sv_top_rows *r = &t->tables[table];
    bool is_new;
    if (r->n >= ROWS_MAX && !sv_map_find(&r->by_name, (uint64_t)name << 32 | in)) {
        name = sv_dict_cstr(t->names, "(others)");
        in = 0;
    }
    uint64_t *at = sv_map_add(&r->by_name, (uint64_t)name << 32 | in, &is_new);
    if (is_new) {
        r->rows = sv_grow(r->rows, &r->cap, r->n + 1, sizeof *r->rows);
        r->rows[r->n] = (struct sv_top_row){.name = name, .in = in};
        *at = ++r->n;
    }
    return &r->rows[*at - 1];
}

static void sum(struct sv_top_sum *to, const struct sv_top_sum *more)
{
    to->ns += more->ns;
    to->n += more->n;
    to->more += more->more;
}

void sv_top_add(struct sv_top *t, enum sv_top_table table, sv_str name, sv_str in,
                const struct sv_top_sum *more)
{
    struct sv_top_row *row = row_of(t, table, name, in);
    sum(&row->now, more);
    sum(&row->all, more);
}

/* Of a span only its part in this interval is of now. */
static void add_span(struct sv_top *t, enum sv_top_table table, sv_str name, sv_str in,
                     int64_t begin_ns, int64_t end_ns, uint64_t n)
{
    struct sv_top_row *row = row_of(t, table, name, in);
    int64_t from = begin_ns > t->from_ns ? begin_ns : t->from_ns;
    row->now.n += n;
    row->all.n += n;
    row->now.ns += end_ns > from ? end_ns - from : 0;
    row->all.ns += end_ns > begin_ns ? end_ns - begin_ns : 0;
}

/* ---- arguments ---- */

static const struct sv_arg *find(const struct sv_top *t, const struct sv_event *e, const char *key)
{
    sv_str wanted = sv_dict_find_str(t->dict, key, strlen(key));
    const struct sv_arg *end = e->args + e->n_args;
    for (const struct sv_arg *a = e->args; wanted && a < end; a = sv_arg_next(a))
        if (a->key == wanted)
            return a;
    return NULL;
}

static const struct sv_arg *stack_of(const struct sv_event *e)
{
    const struct sv_arg *end = e->args + e->n_args;
    for (const struct sv_arg *a = e->args; a < end; a = sv_arg_next(a))
        if (a->type == SV_ARG_STACK && a->size > 0)
            return a;
    return NULL;
}

static sv_str text_of(struct sv_top *t, const struct sv_arg *a)
{
    return a && a->type == SV_ARG_TEXT ? sv_dict_str(t->names, a->text, a->size) : 0;
}

static bool has(const struct sv_arg *frame, const char *part)
{
    return frame->type == SV_ARG_TEXT && memmem(frame->text, frame->size, part, strlen(part));
}

static bool begins(const struct sv_arg *frame, const char *word)
{
    size_t len = strlen(word);
    return frame->type == SV_ARG_TEXT && frame->size >= len && !memcmp(frame->text, word, len);
}

/* A function with its file, without the line: "f (train.py:12)" and ":14)" are one. So are places
 * of a library that has no names: "[libx.so+0x12]" is "[libx.so]". */
static sv_str function_of(struct sv_top *t, const struct sv_arg *frame)
{
    char text[512];
    size_t len = frame->type == SV_ARG_TEXT ? frame->size : 0, at = len;
    const char *plus = begins(frame, "[") ? memmem(frame->text, len, "+0x", 3) : NULL;
    if (plus && (size_t)(plus - frame->text) < sizeof text - 1) {
        at = (size_t)(plus - frame->text);
        memcpy(text, frame->text, at);
        text[at] = ']';
        return sv_dict_str(t->names, text, at + 1);
    }
    if (len < 3 || len >= sizeof text || frame->text[len - 1] != ')')
        return text_of(t, frame);
    for (at = len - 1; at > 0 && frame->text[at - 1] >= '0' && frame->text[at - 1] <= '9';)
        at--;
    if (at == len - 1 || frame->text[at - 1] != ':')
        return text_of(t, frame);
    memcpy(text, frame->text, at - 1);
    text[at - 1] = ')';
    return sv_dict_str(t->names, text, at);
}

/* The user's code: the innermost function of Python; else the innermost one that has a name which
 * no C library gives; else the innermost. */
static sv_str waiter_of(struct sv_top *t, const struct sv_event *e)
{
    const struct sv_arg *stack = stack_of(e), *named = NULL;
    if (!stack)
        return 0;
    for (uint32_t i = stack->size; i > 0; i--) {
        if (has(&stack[i], ".py"))
            return function_of(t, &stack[i]);
        if (!named && stack[i].type == SV_ARG_TEXT && stack[i].size &&
            !strchr("[_", stack[i].text[0]) && has(&stack[i], "("))
            named = &stack[i];
    }
    return function_of(t, named ? named : &stack[stack->size]);
}

/* ---- events ---- */

/* Python's functions, and what the innermost one of them has called: how the interpreter gets from
 * one to the next is left out, and so are its own places that have no name. */
static size_t visible(const struct sv_arg *stack, const struct sv_arg *to[static FRAMES_MAX])
{
    size_t n = 0;
    bool has_python = false;
    for (uint32_t i = stack->size; i > 0 && n < FRAMES_MAX; i--) {
        const struct sv_arg *frame = &stack[i];
        bool is_python = has(frame, ".py)") || has(frame, ".py:");
        if (!has_python || is_python)
            to[n++] = frame;
        if (!is_python || has_python)
            continue;
        has_python = true;
        size_t kept = 0;
        for (size_t k = 0; k < n; k++)
            if (!begins(to[k], "[python") && !begins(to[k], "[libpython"))
                to[kept++] = to[k];
        n = kept;
    }
    return n;
}

static void take_sample(struct sv_top *t, const struct sv_event *e)
{
    sv_str seen[FRAMES_MAX];
    const struct sv_arg *frames[FRAMES_MAX], *stack = stack_of(e);
    size_t n = 0, n_frames = stack ? visible(stack, frames) : 0;
    struct sv_text name = sv_dict_text(t->dict, e->name);
    sv_str own = n_frames ? function_of(t, frames[0]) : sv_dict_str(t->names, name.bytes, name.len);
    t->samples_now++;
    t->samples_all++;
    sv_top_add(t, SV_TOP_FUNCTIONS, own, 0, &(struct sv_top_sum){.n = 1, .more = 1});
    seen[n++] = own;
    for (size_t i = 1; i < n_frames; i++) {
        sv_str caller = function_of(t, frames[i]);
        size_t k = 0;
        while (k < n && seen[k] != caller)
            k++;
        if (k < n)
            continue; /* it calls itself */
        seen[n++] = caller;
        sv_top_add(t, SV_TOP_FUNCTIONS, caller, 0, &(struct sv_top_sum){.more = 1});
    }
}

static void take_call(struct sv_top *t, const struct sv_event *e)
{
    const struct sv_arg *bytes = find(t, e, "bytes");
    sv_str path = text_of(t, find(t, e, SV_WAIT_PATH));
    if (!path)
        return;
    add_span(t, SV_TOP_FILES, path, 0, e->ts_ns, e->ts_ns + e->dur_ns, 1);
    if (bytes && bytes->type == SV_ARG_INT && bytes->i > 0)
        sv_top_add(t, SV_TOP_FILES, path, 0, &(struct sv_top_sum){.more = (uint64_t)bytes->i});
}

static void open_span(struct sv_top *t, const struct sv_top_open *o)
{
    bool is_new;
    uint64_t *at = sv_map_add(&t->open, o->track, &is_new);
    if (is_new) {
        t->opened = sv_grow(t->opened, &t->cap_opened, t->n_opened + 1, sizeof *t->opened);
        *at = ++t->n_opened;
    }
    t->opened[*at - 1] = *o;
}

static void drop_open(struct sv_top *t, sv_track track)
{
    uint64_t *at = sv_map_find(&t->open, track);
    if (!at)
        return;
    size_t i = *at - 1;
    sv_map_remove(&t->open, track);
    t->opened[i] = t->opened[--t->n_opened];
    if (i < t->n_opened && (at = sv_map_find(&t->open, t->opened[i].track)))
        *at = i + 1;
}

static void close_span(struct sv_top *t, sv_track track, int64_t ts_ns)
{
    const uint64_t *at = sv_map_find(&t->open, track);
    if (!at)
        return;
    const struct sv_top_open *o = &t->opened[*at - 1];
    add_span(t, o->table, o->name, o->in, o->counted_ns, ts_ns, 0);
    drop_open(t, track);
}

/* Running, and what else is known: the reason of a wait, or the state. */
static sv_str state_name(struct sv_top *t, const struct sv_event *e)
{
    sv_str reason = text_of(t, find(t, e, SV_WAIT_REASON));
    struct sv_text name = sv_dict_text(t->dict, e->name);
    return reason ? reason : sv_dict_str(t->names, name.bytes, name.len);
}

static void take_span(struct sv_top *t, const struct sv_event *e, enum sv_top_table table)
{
    struct sv_top_open o = {.table = table,
                            .track = e->track,
                            .name = state_name(t, e),
                            .in = table == SV_TOP_WAITS ? waiter_of(t, e) : 0,
                            .counted_ns = e->ts_ns};
    if (e->kind == SV_SLICE && e->dur_ns >= 0) {
        add_span(t, table, o.name, o.in, e->ts_ns, e->ts_ns + e->dur_ns, 1);
        return;
    }
    close_span(t, e->track, e->ts_ns);
    row_of(t, table, o.name, o.in)->now.n++;
    row_of(t, table, o.name, o.in)->all.n++;
    open_span(t, &o);
}

static bool is_text(struct sv_text text, const char *word)
{
    return text.len == strlen(word) && memcmp(text.bytes, word, text.len) == 0;
}

static void take(struct sv_top *t, const struct sv_event *e)
{
    struct sv_text cat = sv_dict_text(t->dict, e->cat);
    if (e->kind == SV_END) {
        close_span(t, e->track, e->ts_ns);
    } else if (e->kind == SV_LOSS) {
        t->lost += e->n_args && e->args[0].i > 0 ? (uint64_t)e->args[0].i : 1;
    } else if (is_text(cat, SV_CAT_THREAD_STATE)) {
        take_span(t, e, SV_TOP_STATES);
    } else if (is_text(cat, SV_CAT_CPU_SAMPLE)) {
        take_sample(t, e);
    } else if (is_text(cat, SV_CAT_OFFCPU_SAMPLE)) {
        take_span(t, e, SV_TOP_WAITS);
    } else if (is_text(cat, SV_CAT_SYSCALL) && e->kind == SV_SLICE) {
        take_call(t, e);
    }
}

static int write_events(struct sv_sink *s, const struct sv_event *events, size_t n,
                        struct sv_err *err)
{
    (void)err;
    for (size_t i = 0; i < n; i++)
        take((struct sv_top *)s, &events[i]);
    return 0;
}

static void forget(struct sv_sink *s, sv_track track)
{
    drop_open((struct sv_top *)s, track);
}

static int flush_nothing(struct sv_sink *s, struct sv_err *err)
{
    (void)s, (void)err;
    return 0;
}

static int close_nothing(struct sv_sink *s, bool failed, struct sv_err *err)
{
    (void)s, (void)failed, (void)err;
    return 0;
}

/* ---- for the command ---- */

void sv_top_init(struct sv_top *t)
{
    *t = (struct sv_top){.names = sv_dict_new()};
}

void sv_top_fini(struct sv_top *t)
{
    for (int i = 0; i < SV_TOP_TABLES; i++) {
        sv_map_fini(&t->tables[i].by_name);
        free(t->tables[i].rows);
    }
    sv_map_fini(&t->open);
    sv_map_fini(&t->files);
    free(t->opened);
    sv_dict_free(t->names);
}

struct sv_sink *sv_top_sink(struct sv_top *t, const struct sv_dict *dict)
{
    t->dict = dict;
    t->sink = (struct sv_sink){.write = write_events,
                               .close = close_nothing,
                               .flush = flush_nothing,
                               .forget = forget,
                               .takes = SV_HAS_ANYTHING};
    return &t->sink;
}

void sv_top_catch_up(struct sv_top *t, int64_t now_ns)
{
    t->now_ns = now_ns;
    for (size_t i = 0; i < t->n_opened; i++) {
        struct sv_top_open *o = &t->opened[i];
        if (o->counted_ns < now_ns)
            add_span(t, o->table, o->name, o->in, o->counted_ns, now_ns, 0);
        o->counted_ns = o->counted_ns < now_ns ? now_ns : o->counted_ns;
    }
}

void sv_top_next(struct sv_top *t, bool all)
{
    for (int i = 0; i < SV_TOP_TABLES; i++)
        for (size_t k = 0; k < t->tables[i].n; k++) {
            struct sv_top_row *row = &t->tables[i].rows[k];
            row->now = (struct sv_top_sum){0};
            row->all = all ? (struct sv_top_sum){0} : row->all;
        }
    t->from_ns = t->now_ns;
    t->began_ns = all ? t->now_ns : t->began_ns;
    t->samples_now = 0;
    t->samples_all = all ? 0 : t->samples_all;
}
