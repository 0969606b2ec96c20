/* The Chrome reader's phases: what an event object means for the model.
 *
 * Called by the document file once an object was read to its end (or is worth keeping in part). One
 * table says for every phase which kind of event it gives, on which track, and which of the raw
 * fields it uses up; raw fields that nobody used stay with the event as arguments under their own
 * key, so nothing vanishes. Times leave here on the trace clock. */
#include "core/chrome/keys.h"
#include "formats/chrome/reader.h"

enum how {
    HOW_UNKNOWN, /* an instant on the thread, with the phase as an argument */
    HOW_THREAD,  /* the event of this kind on the thread */
    HOW_MARK,    /* HOW_UNKNOWN, but known */
    HOW_INSTANT, /* scope decides the track */
    HOW_COUNTER, /* one event per series */
    HOW_ASYNC,   /* on the track of its id */
    HOW_LEGACY,  /* on the track of its id and name */
    HOW_OBJECT,  /* on the track of the object: id, name, process */
    HOW_FLOW,
    HOW_SYNC, /* HOW_MARK, and the args as metadata of the trace */
    HOW_METADATA
};

#define IDS (FIELD_BIT(FIELD_ID) | FIELD_BIT(FIELD_ID2) | FIELD_BIT(FIELD_SCOPE))
#define STACKS \
    (FIELD_BIT(FIELD_SF) | FIELD_BIT(FIELD_ESF) | FIELD_BIT(FIELD_STACK) | FIELD_BIT(FIELD_ESTACK))
#define BINDS (FIELD_BIT(FIELD_BIND_ID) | FIELD_BIT(FIELD_FLOW_IN) | FIELD_BIT(FIELD_FLOW_OUT))
#define COMMON                                                                                 \
    (FIELD_BIT(FIELD_PH) | FIELD_BIT(FIELD_PID) | FIELD_BIT(FIELD_TID) | FIELD_BIT(FIELD_TS) | \
     FIELD_BIT(FIELD_DUR))

static const struct phase {
    uint8_t how, kind;
    uint32_t uses; /* raw fields that the phase itself understands */
} phases[128] = {
    ['B'] = {HOW_THREAD, SV_BEGIN, 0},
    ['E'] = {HOW_THREAD, SV_END, 0},
    ['X'] = {HOW_THREAD, SV_SLICE, 0},
    ['i'] = {HOW_INSTANT, SV_INSTANT, FIELD_BIT(FIELD_S)},
    ['I'] = {HOW_INSTANT, SV_INSTANT, FIELD_BIT(FIELD_S)},
    ['C'] = {HOW_COUNTER, SV_COUNTER, FIELD_BIT(FIELD_ID)},
    ['b'] = {HOW_ASYNC, SV_BEGIN, IDS},
    ['n'] = {HOW_ASYNC, SV_INSTANT, IDS},
    ['e'] = {HOW_ASYNC, SV_END, IDS},
    ['S'] = {HOW_LEGACY, SV_BEGIN, IDS},
    ['T'] = {HOW_LEGACY, SV_INSTANT, IDS},
    ['p'] = {HOW_LEGACY, SV_INSTANT, IDS},
    ['F'] = {HOW_LEGACY, SV_END, IDS},
    ['N'] = {HOW_OBJECT, SV_BEGIN, IDS},
    ['O'] = {HOW_OBJECT, SV_INSTANT, IDS},
    ['D'] = {HOW_OBJECT, SV_END, IDS},
    ['s'] = {HOW_FLOW, SV_FLOW, IDS | FIELD_BIT(FIELD_BP)},
    ['t'] = {HOW_FLOW, SV_FLOW, IDS | FIELD_BIT(FIELD_BP)},
    ['f'] = {HOW_FLOW, SV_FLOW, IDS | FIELD_BIT(FIELD_BP)},
    ['P'] = {HOW_MARK, SV_INSTANT, 0},
    ['R'] = {HOW_INSTANT, SV_INSTANT, FIELD_BIT(FIELD_S)},
    ['('] = {HOW_MARK, SV_INSTANT, 0},
    [')'] = {HOW_MARK, SV_INSTANT, 0},
    ['v'] = {HOW_MARK, SV_INSTANT, 0},
    ['V'] = {HOW_MARK, SV_INSTANT, 0},
    ['c'] = {HOW_SYNC, SV_INSTANT, 0},
    ['M'] = {HOW_METADATA, 0, 0},
};

static inline bool has(const struct chrome_fields *f, unsigned field)
{
    return f->has >> field & 1;
}

static struct chrome_span raw(const struct chrome_fields *f, unsigned field)
{
    return f->raw[field - FIELD_ID];
}

static struct sv_arg *put(struct chrome_reader *r, sv_str key, unsigned type)
{
    struct sv_arg *a = sv_batch_arg(r->batch);
    a->key = key;
    a->type = type & 0xff;
    return a;
}

/* ---- arguments that Chrome keeps outside of args ---- */

static bool is_true(struct chrome_span v)
{
    return (v.len == 4 && memcmp(v.p, "true", 4) == 0) ||
           (v.len == 6 && memcmp(v.p, "\"true\"", 6) == 0) || (v.len == 1 && *v.p == '1');
}

/* bind_id with flow_in and flow_out: the slice itself is a point of the flow. */
static uint32_t put_bind(struct chrome_reader *r, const struct chrome_fields *f)
{
    bool in = has(f, FIELD_FLOW_IN) && is_true(raw(f, FIELD_FLOW_IN));
    bool out = has(f, FIELD_FLOW_OUT) && is_true(raw(f, FIELD_FLOW_OUT));
    uint64_t id;
    if (!chrome_id_number(r, raw(f, FIELD_BIND_ID), &id)) {
        chrome_note(r, FOUND_NO_FLOW_ID, f->start);
        return 0;
    }
    if (!in && !out) {
        chrome_note(r, FOUND_FLOW_DIRECTION, f->start);
        return 0;
    }
    unsigned type = in && out ? SV_ARG_FLOW : in ? SV_ARG_FLOW_END : SV_ARG_FLOW_BEGIN;
    put(r, 0, type)->u = r->space ? sv_hash_pair(id, r->space) : id;
    return BINDS;
}

static uint32_t put_stack(struct chrome_reader *r, const struct chrome_fields *f, unsigned field)
{
    bool is_end = field == FIELD_ESF || field == FIELD_ESTACK;
    sv_str key = is_end ? sv_dict_cstr(r->dict, "estack") : 0;
    bool done = chrome_put_stack(r, raw(f, field), key, is_end ? SV_ARG_ARRAY : SV_ARG_STACK);
    return done ? FIELD_BIT(field) : 0;
}

static void put_leftovers(struct chrome_reader *r, const struct chrome_fields *f, uint32_t fields)
{
    static const char *const keys[] = {"",
#define ROW(name, key) key,
                                       CHROME_FIELDS(ROW)
#undef ROW
    };
    for (unsigned i = FIELD_ID; i < FIELD_N; i++) {
        if (!(fields >> i & 1))
            continue;
        const uint8_t *p = raw(f, i).p;
        if (!chrome_value(r, p, r->in->data + r->in->len, sv_dict_cstr(r->dict, keys[i]))) {
            chrome_close_levels(r);
            chrome_note(r, FOUND_NO_VALUE, p);
        }
    }
}

/* Everything but `args`, which is in the batch already. */
static void put_extras(struct chrome_reader *r, const struct chrome_fields *f, uint32_t used)
{
    if (has(f, FIELD_TTS))
        put(r, 0, SV_ARG_THREAD_TIME)->i = f->tts_ns;
    if (has(f, FIELD_TDUR))
        put(r, 0, SV_ARG_THREAD_DUR)->i = f->tdur_ns;
    if (has(f, FIELD_BIND_ID))
        used |= put_bind(r, f);
    for (unsigned i = FIELD_SF; i <= FIELD_ESTACK; i++)
        if (has(f, i))
            used |= put_stack(r, f, i);
    put_leftovers(r, f, f->has & FIELDS_RAW & ~used);
}

static void put_phase(struct chrome_reader *r, const struct chrome_fields *f)
{
    struct sv_arg *a = put(r, sv_dict_cstr(r->dict, SV_CHROME_PHASE), SV_ARG_TEXT);
    a->text = sv_batch_text(r->batch, &f->ph, 1);
    a->size = 1;
}

static void finish(struct chrome_reader *r, const struct chrome_fields *f, struct sv_event *e)
{
    if (__builtin_expect(r->has_tombs, 0))
        chrome_drop_tombs(r);
    if (__builtin_expect(!sv_batch_finish(r->batch, e), 0))
        chrome_note(r, FOUND_ARGS_CUT, f->start);
}

/* ---- events ---- */

static struct sv_event *add(struct chrome_reader *r, const struct chrome_fields *f, unsigned kind,
                            sv_track track)
{
    struct sv_event *e = sv_batch_event(r->batch);
    e->ts_ns = f->ts_ns;
    e->track = track;
    e->kind = (uint8_t)kind;
    if (kind != SV_END ||
        (r->is_stave && f->ph == 'E')) { /* elsewhere the name of an end says nothing */
        e->name = f->name;
        e->cat = f->cat;
    }
    return e;
}

static int64_t duration(struct chrome_reader *r, const struct chrome_fields *f)
{
    if (__builtin_expect(has(f, FIELD_DUR), 1)) {
        if (f->dur_ns >= 0)
            return f->dur_ns;
        chrome_note(r, FOUND_NEGATIVE_DUR, f->start);
        return 0;
    }
    if (!f->dur_is_over)
        chrome_note(r, f->dur_is_bad ? FOUND_BAD_DUR : FOUND_NO_DUR, f->start);
    return 0;
}

static inline sv_track thread_of(struct chrome_reader *r, struct chrome_fields *f)
{
    const uint32_t both = FIELD_BIT(FIELD_PID) | FIELD_BIT(FIELD_TID);
    const struct chrome_thread *t = chrome_thread_slot(r, f->pid, f->tid);
    if (__builtin_expect(
            t->track && t->pid == f->pid && t->tid == f->tid && (f->has & both) == both, 1))
        return t->track;
    return chrome_thread_slow(r, f);
}

static void emit_on(struct chrome_reader *r, struct chrome_fields *f, unsigned kind, sv_track track,
                    uint32_t used, unsigned flags)
{
    struct sv_event *e = add(r, f, kind, track);
    e->flags = (uint8_t)flags;
    if (kind == SV_SLICE) {
        e->dur_ns = duration(r, f);
        if (__builtin_expect(!sv_event_ends(e) || f->dur_is_over, 0))
            sv_source_refuse(&r->source, chrome_pos(r, f->start));
    } else if (has(f, FIELD_DUR))
        put(r, sv_dict_cstr(r->dict, "dur_ns"), SV_ARG_INT)->i = f->dur_ns;
    if (__builtin_expect(f->has & ~COMMON & ~used, 0))
        put_extras(r, f, used);
    if (__builtin_expect(r->n_device_rows || f->has & FIELD_BIT(FIELD_ID), 0) && kind == SV_SLICE)
        chrome_device_slice(r, f, e);
    finish(r, f, e);
    if ((kind == SV_BEGIN || kind == SV_END) && !r->is_stave)
        chrome_balance_edge(&r->balance, e, chrome_pos(r, f->start));
}

static void emit_loss(struct chrome_reader *r, struct chrome_fields *f, sv_str cat)
{
    int64_t count = 0, span = 0;
    chrome_arg_int(chrome_find_arg(r, f, SV_CHROME_LOSS_COUNT), &count);
    chrome_arg_int(chrome_find_arg(r, f, SV_CHROME_LOSS_SPAN), &span);
    sv_batch_drop_args(r->batch);
    struct sv_event *e = add(r, f, SV_LOSS, thread_of(r, f));
    e->cat = cat;
    e->dur_ns = span;
    if (!sv_event_ends(e))
        sv_source_refuse(&r->source, chrome_pos(r, f->start));
    put(r, 0, SV_ARG_INT)->i = count;
    finish(r, f, e);
}

static void emit_instant(struct chrome_reader *r, struct chrome_fields *f)
{
    sv_str cat;
    if (r->is_stave && chrome_stave_is_loss(r, f, &cat)) {
        emit_loss(r, f, cat);
        return;
    }
    struct chrome_span s = raw(f, FIELD_S);
    uint8_t scope = !has(f, FIELD_S) ? 't' : s.len == 3 && *s.p == '"' ? s.p[1] : '?';
    uint32_t used = FIELD_BIT(FIELD_S);
    sv_track named = chrome_named_track(r, f);
    if (f->ph == 'R')
        put_phase(r, f);
    switch (scope) {
    case 'g':
        emit_on(r, f, SV_INSTANT, named ? named : chrome_global(r), used, SV_SCOPE_GLOBAL);
        break;
    case 'p':
        if (!named && !(named = chrome_process(r, f)))
            named = chrome_global(r);
        emit_on(r, f, SV_INSTANT, named, used, SV_SCOPE_PROCESS);
        break;
    default:
        chrome_note(r, FOUND_BAD_SCOPE, s.p);
        used = 0;
        /* fall through */
    case 't': emit_on(r, f, SV_INSTANT, thread_of(r, f), used, 0); break;
    }
}

static struct chrome_id id_or_name(struct chrome_reader *r, const struct chrome_fields *f)
{
    struct chrome_id id = chrome_event_id(r, f);
    if (!id.is_given) { /* at least events of one name stay together */
        chrome_note(r, FOUND_NO_ASYNC_ID, f->start);
        id.number = chrome_hash_str(r, f->name);
        id.is_local = true;
    }
    return id;
}

static void emit_async(struct chrome_reader *r, struct chrome_fields *f, const struct phase *ph)
{
    bool is_legacy = ph->how == HOW_LEGACY;
    if (is_legacy && f->ph == 'T' && has(f, FIELD_DUR) &&
        !(f->has & IDS)) { /* a thread state, as Perfetto reads it */
        sv_track t = sv_dict_child(r->dict, thread_of(r, f), SV_TRACK_CUSTOM,
                                   sv_dict_cstr(r->dict, "thread state"));
        emit_on(r, f, SV_SLICE, t, 0, 0);
        return;
    }
    sv_track track = ph->how == HOW_ASYNC ? 0 : chrome_named_track(r, f);
    if (!track) {
        struct chrome_id id = id_or_name(r, f);
        bool is_object = ph->how == HOW_OBJECT;
        track = chrome_async(r, f, id, is_legacy || is_object,
                             id.is_local || (is_object && !has(f, FIELD_ID2)));
    }
    if (is_legacy && ph->kind == SV_INSTANT)
        put_phase(r, f);
    emit_on(r, f, ph->kind, track, ph->uses, 0);
}

static void emit_mark(struct chrome_reader *r, struct chrome_fields *f)
{
    put_phase(r, f);
    emit_on(r, f, SV_INSTANT, thread_of(r, f), 0, 0);
}

/* ---- flows ---- */

static uint64_t flow_number(struct chrome_reader *r, struct chrome_fields *f, struct chrome_id id)
{
    if (r->is_stave)
        return r->space ? sv_hash_pair(id.number, r->space) : id.number;
    struct chrome_flow_hash *h = &r->flow_hashes[(f->cat ^ f->name * 3) % CHROME_FLOW_HASHES];
    if (h->cat != f->cat || h->name != f->name || !h->hash) {
        h->cat = f->cat;
        h->name = f->name;
        h->hash = sv_hash_pair(chrome_hash_str(r, f->cat), chrome_hash_str(r, f->name));
    }
    uint64_t owner = id.is_local ? sv_uuid_process(r->space, f->pid) : r->space;
    return sv_hash_pair(sv_hash_pair(h->hash, owner), id.number);
}

static void emit_flow(struct chrome_reader *r, struct chrome_fields *f)
{
    if (r->is_stave && f->cat == r->keys_of_stave.flow) { /* its slice has it in its args */
        sv_batch_drop_args(r->batch);
        return;
    }
    if (!f->has_bond)
        chrome_look_up(r, f);
    if (!f->id.is_given) {
        chrome_note(r, FOUND_NO_FLOW_ID, f->start);
        sv_batch_drop_args(r->batch);
        return;
    }
    unsigned type = f->ph == 's' ? SV_ARG_FLOW_BEGIN : f->ph == 't' ? SV_ARG_FLOW : SV_ARG_FLOW_END;
    struct sv_event *e = add(r, f, SV_FLOW, thread_of(r, f));
    e->flags = f->is_enclosing ? 0 : SV_BIND_NEXT;
    uint32_t used = IDS | FIELD_BIT(FIELD_BP);
    if (f->has & ~COMMON & ~used)
        put_extras(r, f, used);
    put(r, 0, type);
    struct sv_batch *b = r->batch;
    size_t n = (size_t)(b->arg - b->args);
    memmove(b->args + 1, b->args, (n - 1) * sizeof *b->args);
    b->args[0] = (struct sv_arg){.type = type & 0xff, .u = flow_number(r, f, f->id)};
    finish(r, f, e);
    if (!r->is_stave)
        chrome_balance_flow(&r->balance, e, chrome_pos(r, f->start));
}

/* ---- counters ---- */

static const struct sv_arg *next_member(const struct sv_arg *a)
{
    return a->type == 0 ? a + 1 + a->size : sv_arg_next(a);
}

/* The value of a series as INT or DOUBLE; false when it is not a number. */
static bool counter_value(struct sv_arg *a)
{
    struct sv_json_number n;
    const uint8_t *text = (const uint8_t *)a->text;
    switch (a->type) {
    case SV_ARG_INT:
    case SV_ARG_DOUBLE: break;
    case SV_ARG_BOOL: a->type = SV_ARG_INT; break;
    case SV_ARG_UINT:
        a->d = (double)a->u;
        a->type = SV_ARG_DOUBLE;
        break;
    case SV_ARG_TEXT:
        if (sv_json_not_finite(text, a->size, &a->d)) {
            a->type = SV_ARG_DOUBLE;
            a->size = 0;
            break;
        }
        if (a->size == 0 || sv_json_number(text, text + a->size, &n) != text + a->size)
            return false;
        if (n.is_integer && sv_json_number_int(&n, 0, &a->i) == SV_JSON_EXACT) {
            a->type = SV_ARG_INT;
        } else {
            a->d = sv_json_number_double(&n, text, a->size);
            a->type = SV_ARG_DOUBLE;
        }
        a->size = 0;
        break;
    default: return false;
    }
    a->key = 0;
    return true;
}

static bool str_is(const struct chrome_reader *r, sv_str s, const char *text)
{
    struct sv_text t = sv_dict_text(r->dict, s);
    return t.len == strlen(text) && memcmp(t.bytes, text, t.len) == 0;
}

struct counter {
    sv_track group; /* named after the event */
    sv_track fixed; /* all values go there, or 0 */
    sv_str unit;
    size_t n_series;
};

static void describe_counter(struct chrome_reader *r, const struct chrome_fields *f, sv_track t,
                             sv_str unit)
{
    struct sv_track_info *info = &r->dict->tracks[t];
    if ((unit == 0 || info->unit == unit) && (f->cat == 0 || info->cat))
        return;
    if (unit)
        info->unit = unit;
    if (!info->cat)
        info->cat = f->cat;
    sv_dict_touch(r->dict, t);
}

/* name, or name[id] when the event has an id. */
static sv_str counter_name(struct chrome_reader *r, const struct chrome_fields *f)
{
    struct chrome_span id;
    if (r->is_stave || !has(f, FIELD_ID) || !chrome_span_text(r, raw(f, FIELD_ID), &id))
        return f->name;
    struct sv_text name = sv_dict_text(r->dict, f->name);
    char *text = sv_arena_get(&r->batch->arena, name.len + id.len + 2, 1);
    memcpy(text, name.bytes, name.len);
    text[name.len] = '[';
    memcpy(text + name.len + 1, id.p, id.len);
    text[name.len + 1 + id.len] = ']';
    return sv_dict_str(r->dict, text, name.len + id.len + 2);
}

/* How many series there are and where they go. A text `unit` among the values is not a series. */
static struct counter survey_counter(struct chrome_reader *r, struct chrome_fields *f,
                                     struct sv_arg *first, const struct sv_arg *last)
{
    struct counter c = {.fixed = chrome_named_track(r, f)};
    const struct sv_arg *only = NULL;
    for (struct sv_arg *a = first; a < last; a = (struct sv_arg *)(uintptr_t)next_member(a)) {
        if (a->type == SV_ARG_TEXT && str_is(r, a->key, "unit")) {
            c.unit = chrome_intern(r, (const uint8_t *)a->text, a->size);
            a->type = 0;
            a->size = 0;
        } else if (a->type) {
            c.n_series++;
            only = a;
        }
    }
    if (c.fixed)
        return c;
    c.group = sv_dict_child(r->dict, chrome_process(r, f), SV_TRACK_COUNTER, counter_name(r, f));
    describe_counter(r, f, c.group, c.unit);
    if (c.n_series == 1 && (only->key == f->name || str_is(r, only->key, "value")))
        c.fixed = c.group;
    return c;
}

static bool emit_counter(struct chrome_reader *r, struct chrome_fields *f)
{
    struct sv_batch *b = r->batch;
    struct sv_arg *first = f->n_args ? b->args + f->args_at : NULL;
    const struct sv_arg *last = f->n_args ? first + f->n_args : NULL;
    struct counter c = survey_counter(r, f, first, last);
    size_t n = 0;
    if (f->n_others || f->has & ~COMMON & ~(FIELD_BIT(FIELD_ID)))
        chrome_note(r, FOUND_COUNTER_FIELD, f->start);
    if (c.n_series == 0)
        chrome_note(r, FOUND_COUNTER_EMPTY, f->start);
    for (struct sv_arg *a = first; a < last; a = (struct sv_arg *)(uintptr_t)next_member(a)) {
        sv_str key = a->key;
        if (a->type == 0 || n++ < r->series_done)
            continue;
        if (b->n == SV_BATCH) { /* the rest in the next batch, from the same bytes */
            r->series_done = n - 1;
            sv_batch_drop_args(b);
            return false;
        }
        if (!counter_value(a)) {
            chrome_note(r, FOUND_COUNTER_VALUE, f->start);
            continue;
        }
        sv_track t = c.fixed ? c.fixed : sv_dict_child(r->dict, c.group, SV_TRACK_COUNTER, key);
        if (!c.fixed && c.unit)
            describe_counter(r, f, t, c.unit);
        struct sv_event *e = add(r, f, SV_COUNTER, t);
        e->name = 0;
        e->args = a;
        e->n_args = 1;
    }
    r->series_done = 0;
    b->args = b->arg; /* the values stay where they are */
    b->overflow = false;
    return true;
}

/* ---- phases ---- */

bool chrome_is_usable(const struct chrome_fields *f)
{
    if (!has(f, FIELD_PH) || f->ph >= 128 || phases[f->ph].how == HOW_UNKNOWN)
        return false;
    if (phases[f->ph].how == HOW_METADATA)
        return f->n_args > 0;
    return has(f, FIELD_TS) && (f->ph != 'X' || has(f, FIELD_DUR));
}

/* Older versions of PyTorch write no base: their times are microseconds since 1970. No other clock
 * has run for thirty years. */
static void see_epoch(struct chrome_reader *r, const struct chrome_fields *f)
{
    static const int64_t year_2001 = 1000000000000000000, year_2100 = 4102444800000000000;
    r->may_be_epoch = false;
    if (r->dict->clocks.trace_clock != SV_CLOCK_UNKNOWN || f->ts_ns < year_2001 ||
        f->ts_ns >= year_2100)
        return;
    r->dict->clocks.trace_clock = SV_CLOCK_REALTIME;
    chrome_note(r, FOUND_EPOCH, f->start);
}

static bool has_phase_and_time(struct chrome_reader *r, struct chrome_fields *f)
{
    if (!has(f, FIELD_PH)) {
        chrome_note(r, f->is_empty ? FOUND_EMPTY_EVENT : FOUND_NO_PHASE, f->start);
        return false;
    }
    if (f->ph == 'M')
        return true;
    bool has_ts = has(f, FIELD_TS);
    if (__builtin_expect(r->may_be_epoch, 0) && has_ts)
        see_epoch(r, f);
    if (has_ts && !__builtin_add_overflow(f->ts_ns, r->base_ns, &f->ts_ns))
        return true;
    if (has_ts || f->ts_is_over)
        sv_source_refuse(&r->source, chrome_pos(r, f->start));
    else
        chrome_note(r, FOUND_NO_TIME, f->start);
    return false;
}

bool chrome_emit(struct chrome_reader *r, struct chrome_fields *f)
{
    if (__builtin_expect(!has_phase_and_time(r, f), 0)) {
        sv_batch_drop_args(r->batch);
        return true;
    }
    const struct phase *ph = &phases[f->ph < 128 ? f->ph : 0];
    if (__builtin_expect(r->is_stave, 0) && f->n_args)
        chrome_stave_args(r, f);
    if (__builtin_expect(f->ph_is_long, 0))
        chrome_note(r, FOUND_LONG_PHASE, f->start);
    switch (ph->how) {
    case HOW_THREAD: emit_on(r, f, ph->kind, thread_of(r, f), 0, 0); break;
    case HOW_INSTANT: emit_instant(r, f); break;
    case HOW_COUNTER: return emit_counter(r, f);
    case HOW_ASYNC:
    case HOW_LEGACY:
    case HOW_OBJECT: emit_async(r, f, ph); break;
    case HOW_FLOW: emit_flow(r, f); break;
    case HOW_METADATA:
        chrome_metadata(r, f);
        sv_batch_drop_args(r->batch);
        break;
    case HOW_SYNC:
        if (f->args.len)
            chrome_meta(r, "clock_sync", f->args.p, f->args.len);
        emit_mark(r, f);
        break;
    case HOW_MARK: emit_mark(r, f); break;
    default:
        chrome_note(r, FOUND_PHASE, f->start);
        emit_mark(r, f);
        break;
    }
    return true;
}
