/* The Chrome reader's events: one JSON object becomes a struct chrome_fields and arguments in the
 * batch.
 *
 * Called by the document file for every object of traceEvents. This is the hot loop: keys are
 * guessed from the last event of the same phase, times and pids are read by integer arithmetic,
 * names and categories are interned through a cache. Key order is arbitrary and may put `args`
 * first; a key given twice counts the second time. No track is made and no event emitted here: the
 * object may still turn out to be cut. */
#include "formats/chrome/reader.h"

static const uint64_t powers[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};

/* ---- times ---- */

enum time_status { TIME_OK, TIME_BAD, TIME_OVER };

static enum time_status time_of(struct chrome_reader *r, const struct sv_json_number *n,
                                const uint8_t *at, int64_t *ns)
{
    enum sv_json_exactness exactness = sv_json_number_int(n, 3, ns);
    if (exactness == SV_JSON_OVERFLOW)
        return TIME_OVER;
    if (exactness == SV_JSON_ROUNDED)
        chrome_note(r, FOUND_ROUNDED, at);
    if (n->is_odd)
        chrome_note(r, FOUND_NUMBER, at);
    return TIME_OK;
}

static const uint8_t *read_time_slow(struct chrome_reader *r, const uint8_t *p, const uint8_t *end,
                                     int64_t *ns, enum time_status *status)
{
    struct sv_json_number n;
    *status = TIME_BAD;
    if (*p == '"') {
        struct chrome_span text;
        const uint8_t *q = chrome_string(r, p, end, &text);
        if (q && sv_json_number(text.p, text.p + text.len, &n) == text.p + text.len)
            *status = time_of(r, &n, p, ns);
        return q;
    }
    const uint8_t *q = sv_json_number(p, end, &n);
    if (q == end)
        return chrome_stop(r, end, end);
    if (q && chrome_ends[*q]) {
        *status = time_of(r, &n, p, ns);
        return q;
    }
    if (q && (*q == '{' || *q == '"')) /* the next record ran into it: do not believe the part */
        return chrome_stop(r, q, end);
    return chrome_skip(r, p, end);
}

/* A time that is not simply digits, or no time at all. */
static const uint8_t *read_odd_time(struct chrome_reader *r, const uint8_t *p, const uint8_t *end,
                                    struct chrome_fields *f, unsigned field, int64_t *ns)
{
    enum time_status status;
    const uint8_t *start = p;
    p = read_time_slow(r, p, end, ns, &status);
    f->has &= ~FIELD_BIT(field);
    if (p && status == TIME_OK)
        f->has |= FIELD_BIT(field);
    else if (p && field == FIELD_TS)
        f->ts_is_over = status == TIME_OVER;
    else if (p && field == FIELD_DUR) {
        f->dur_is_bad = true;
        f->dur_is_over = status == TIME_OVER;
    } else if (p)
        chrome_note(r, FOUND_BAD_THREAD_TIME, start);
    return p;
}

/* Microseconds, mostly with three decimals, become nanoseconds without passing through a double. */
static const uint8_t *read_time(struct chrome_reader *r, const uint8_t *p, const uint8_t *end,
                                struct chrome_fields *f, unsigned field, int64_t *ns)
{
    unsigned n, more;
    const uint8_t *q = p;
    uint64_t v = sv_json_digits8(q, &n), fraction = 0;
    if (__builtin_expect(f->has >> field & 1, 0))
        chrome_note(r, FOUND_DUPLICATE, p);
    q += n;
    if (n == 8) {
        uint32_t low = sv_json_digits8(q, &more);
        v = v * powers[more] + low;
        q += more;
    }
    if (*q == '.') {
        unsigned a = q[1] - (unsigned)'0', b = q[2] - (unsigned)'0', c = q[3] - (unsigned)'0';
        if (__builtin_expect(a > 9 || b > 9 || c > 9, 0))
            return read_odd_time(r, p, end, f, field, ns);
        fraction = a * 100 + b * 10 + c;
        q += 4;
    }
    if (__builtin_expect(n == 0 || (*p == '0' && n > 1) || q >= end || !chrome_ends[*q] ||
                             v > INT64_MAX / 1000 - 1,
                         0))
        return read_odd_time(r, p, end, f, field, ns);
    *ns = (int64_t)(v * 1000 + fraction);
    f->has |= FIELD_BIT(field);
    return q;
}

/* ---- pid and tid ---- */

static const uint8_t *read_odd_id(struct chrome_reader *r, const uint8_t *p, const uint8_t *end,
                                  struct chrome_fields *f, unsigned field, int64_t *out)
{
    struct sv_json_number n;
    f->has |= FIELD_BIT(field);
    if (*p == '"') {
        struct chrome_span text;
        const uint8_t *q = chrome_string(r, p, end, &text);
        if (!q)
            return NULL;
        if (text.len == 0 || sv_json_number(text.p, text.p + text.len, &n) != text.p + text.len ||
            !n.is_integer || n.is_odd || sv_json_number_int(&n, 0, out) != SV_JSON_EXACT)
            *out = chrome_text_number(r, text.p, text.len);
        return q;
    }
    const uint8_t *q = sv_json_number(p, end, &n);
    if (q == end)
        return chrome_stop(r, end, end);
    if (q && chrome_ends[*q] && sv_json_number_int(&n, 0, out) == SV_JSON_EXACT)
        return q;
    f->has &= ~FIELD_BIT(field);
    if (q && (*q == '{' || *q == '"'))
        return chrome_stop(r, q, end);
    if (*p != 'n')
        chrome_note(r, FOUND_BAD_PID, p);
    return chrome_skip(r, p, end);
}

static inline const uint8_t *read_id(struct chrome_reader *r, const uint8_t *p, const uint8_t *end,
                                     struct chrome_fields *f, unsigned field, int64_t *out)
{
    unsigned n;
    uint64_t v = sv_json_digits8(p, &n);
    const uint8_t *q = p + n;
    if (__builtin_expect(f->has >> field & 1, 0))
        chrome_note(r, FOUND_DUPLICATE, p);
    if (__builtin_expect(n == 0 || n == 8 || q >= end || !chrome_ends[*q] || (*p == '0' && n != 1),
                         0))
        return read_odd_id(r, p, end, f, field, out);
    *out = (int64_t)v;
    f->has |= FIELD_BIT(field);
    return q;
}

/* ---- texts ---- */

static void phase_from(struct chrome_fields *f, struct chrome_span text)
{
    f->has &= ~FIELD_BIT(FIELD_PH);
    if (text.len == 0)
        return;
    f->ph = text.p[0];
    f->ph_is_long = text.len > 1;
    f->has |= FIELD_BIT(FIELD_PH);
}

static const uint8_t *read_odd_phase(struct chrome_reader *r, const uint8_t *p, const uint8_t *end,
                                     struct chrome_fields *f)
{
    struct chrome_span text;
    if (*p != '"') {
        f->has &= ~FIELD_BIT(FIELD_PH);
        return chrome_skip(r, p, end);
    }
    p = chrome_string(r, p, end, &text);
    if (p)
        phase_from(f, text);
    return p;
}

static inline const uint8_t *read_phase(struct chrome_reader *r, const uint8_t *p,
                                        const uint8_t *end, struct chrome_fields *f)
{
    if (__builtin_expect(f->has >> FIELD_PH & 1, 0))
        chrome_note(r, FOUND_DUPLICATE, p);
    if (__builtin_expect(*p != '"' || p[2] != '"' || p[1] <= ' ' || p[1] == '\\' || p[1] == '"' ||
                             p[1] >= 0x7f || p + 3 >= end,
                         0))
        return read_odd_phase(r, p, end, f);
    f->ph = p[1];
    f->ph_is_long = false;
    f->has |= FIELD_BIT(FIELD_PH);
    return p + 3;
}

/* A name or category. A number is taken as its text, null as none; a container becomes an argument
 * of that key. */
static const uint8_t *read_name(struct chrome_reader *r, const uint8_t *p, const uint8_t *end,
                                sv_str key, sv_str *out)
{
    struct chrome_span text;
    const uint8_t *q;
    if (__builtin_expect(*out != 0, 0))
        chrome_note(r, FOUND_DUPLICATE, p);
    if (__builtin_expect(*p == '"', 1)) {
        q = chrome_string(r, p, end, &text);
        if (q)
            *out = chrome_intern(r, text.p, text.len);
        return q;
    }
    if (*p == '{' || *p == '[')
        return chrome_value(r, p, end, key);
    q = chrome_skip(r, p, end);
    if (q)
        *out = *p == 'n' ? 0 : chrome_intern(r, p, (size_t)(q - p));
    return q;
}

/* ---- the object ---- */

static const uint8_t *read_args(struct chrome_reader *r, const uint8_t *p, const uint8_t *end,
                                struct chrome_fields *f, sv_str key)
{
    struct sv_batch *b = r->batch;
    const uint8_t *start = p;
    if (__builtin_expect(f->args.p != NULL, 0)) {
        chrome_note(r, FOUND_DUPLICATE, p);
        chrome_bury(r, f->args_at, f->n_args);
    }
    f->args_at = (uint32_t)(b->arg - b->args);
    r->memo_name = f->name;
    if (__builtin_expect(*p == '{', 1))
        p = chrome_args(r, p, end, f->cat);
    else if (*p == 'n')
        p = chrome_skip(r, p, end);
    else
        p = chrome_value(r, p, end, key);
    f->n_args = (uint32_t)(b->arg - b->args) - f->args_at;
    f->args = (struct chrome_span){start, p ? (size_t)(p - start) : 0};
    return p;
}

static const uint8_t *read_raw(struct chrome_reader *r, const uint8_t *p, const uint8_t *end,
                               struct chrome_fields *f, unsigned field)
{
    const uint8_t *q = chrome_skip(r, p, end);
    if (f->has >> field & 1)
        chrome_note(r, FOUND_DUPLICATE, p);
    if (q) {
        f->raw[field - FIELD_ID] = (struct chrome_span){p, (size_t)(q - p)};
        f->has |= FIELD_BIT(field);
    }
    return q;
}

/* A string was taken longer than its first quote: the field gets the mended text. */
static void mend_field(struct chrome_reader *r, struct chrome_fields *f, unsigned field,
                       struct chrome_span text)
{
    struct sv_batch *b = r->batch;
    if (field == FIELD_NAME)
        f->name = chrome_intern(r, text.p, text.len);
    else if (field == FIELD_CAT)
        f->cat = chrome_intern(r, text.p, text.len);
    else if (field == FIELD_OTHER && b->arg > b->args && b->arg[-1].type == SV_ARG_TEXT) {
        b->arg[-1].text = (const char *)text.p;
        b->arg[-1].size = (uint32_t)(text.len < SV_TEXT_MAX ? text.len : SV_TEXT_MAX) & 0xffffff;
    }
}

/* Fields that are not in every event. */
static const uint8_t *read_rare_field(struct chrome_reader *r, const uint8_t *p, const uint8_t *end,
                                      struct chrome_fields *f, unsigned field, sv_str key,
                                      const uint8_t *start)
{
    switch (field) {
    case FIELD_TTS: return read_time(r, p, end, f, FIELD_TTS, &f->tts_ns);
    case FIELD_TDUR: return read_time(r, p, end, f, FIELD_TDUR, &f->tdur_ns);
    case FIELD_OTHER:
        f->n_others++;
        chrome_mark_key(r, key, start);
        return chrome_value(r, p, end, key);
    default: return read_raw(r, p, end, f, field);
    }
}

/* The event object at p. f is zeroed; what was read before a stop is in it. chrome_args() repeats
 * this loop on purpose: these two are the reader's hottest loops, and a shared one would need an
 * indirect call per member. */
const uint8_t *chrome_event(struct chrome_reader *r, const uint8_t *p, const uint8_t *end,
                            struct chrome_fields *f)
{
    struct chrome_guess *ways = r->event_guesses[0];
    const uint8_t *value = NULL;
    unsigned field = FIELD_OTHER;
    chrome_begin_event(r);
    for (p++;;) {
        const uint8_t *start = p;
        const struct chrome_guess *g = chrome_guess(p, end, ways);
        if (__builtin_expect(g != NULL, 1)) {
            p += g->len;
        } else {
            if (!(g = chrome_member(r, p, end, value, ways)))
                return NULL;
            p = r->odd_end;
            if (r->mended.p)
                mend_field(r, f, field, r->mended);
        }
        value = p;
        field = g->field;
        switch (field) {
        case FIELD_CLOSE: f->is_empty = start[-1] == '{' && start == f->start + 1; return p;
        case FIELD_PH:
            p = read_phase(r, p, end, f);
            ways = chrome_same_place(r, ways, f->ph);
            break;
        case FIELD_NAME: p = read_name(r, p, end, g->str, &f->name); break;
        case FIELD_CAT: p = read_name(r, p, end, g->str, &f->cat); break;
        case FIELD_PID: p = read_id(r, p, end, f, FIELD_PID, &f->pid); break;
        case FIELD_TID: p = read_id(r, p, end, f, FIELD_TID, &f->tid); break;
        case FIELD_TS: p = read_time(r, p, end, f, FIELD_TS, &f->ts_ns); break;
        case FIELD_DUR: p = read_time(r, p, end, f, FIELD_DUR, &f->dur_ns); break;
        case FIELD_ARGS: p = read_args(r, p, end, f, g->str); break;
        default: p = read_rare_field(r, p, end, f, field, g->str, start); break;
        }
        if (!p)
            return NULL;
        ways += ways->step;
    }
}
