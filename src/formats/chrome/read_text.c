/* The Chrome reader's texts: strings and keys, duplicates of keys, and what to make of text that is
 * not quite JSON.
 *
 * Called by the tree and event files while they walk over the window. Everything is bounded by
 * `end`; text without escapes stays in the window, other text goes to the batch's arena. What is
 * not JSON but can be understood is noted and taken; what cannot ends in chrome_stop(), and the
 * caller decides. Searches after an unescaped quote are limited and remembered, so that no input
 * makes them quadratic. */
#include "formats/chrome/reader.h"

#include <assert.h>

#define MEND_MAX 4096u /* how far a closing quote is searched after an unescaped one */
#define LOOK_MAX 256u  /* longest key that is recognised by looking ahead */

_Static_assert(FOUND_N <= 64, "pending findings are bits");
_Static_assert(SV_JSON_PAD <= SV_INPUT_PAD, "the window's pad serves the scanner");

/* ---- findings ---- */

static const struct {
    enum sv_severity severity;
    const char *what;
} findings[] = {
#define ROW(name, severity, what) {severity, what},
    CHROME_FINDINGS(ROW)
#undef ROW
};

void chrome_note_n(struct chrome_reader *r, enum chrome_finding what, uint32_t count,
                   const uint8_t *at)
{
    int64_t pos = chrome_pos(r, at);
    if (!(r->pending_mask >> what & 1)) {
        r->pending_mask |= (uint64_t)1 << what;
        r->pending[what] = 0;
        r->pending_pos[what] = pos;
    }
    if (pos < r->pending_pos[what])
        r->pending_pos[what] = pos;
    r->pending[what] += count;
}

void chrome_note(struct chrome_reader *r, enum chrome_finding what, const uint8_t *at)
{
    chrome_note_n(r, what, 1, at);
}

void chrome_flush_notes(struct chrome_reader *r)
{
    while (r->pending_mask) {
        unsigned what = (unsigned)__builtin_ctzll(r->pending_mask);
        r->pending_mask &= r->pending_mask - 1;
        sv_report_add(r->source.report, findings[what].severity, findings[what].what,
                      r->pending[what], r->pending_pos[what], NULL);
    }
}

void chrome_drop_notes(struct chrome_reader *r)
{
    r->pending_mask = 0;
}

const bool chrome_ends[256] = {
    [0] = true,  [1] = true,  [2] = true,   [3] = true,   [4] = true,   [5] = true,
    [6] = true,  [7] = true,  [8] = true,   [9] = true,   [10] = true,  [11] = true,
    [12] = true, [13] = true, [14] = true,  [15] = true,  [16] = true,  [17] = true,
    [18] = true, [19] = true, [20] = true,  [21] = true,  [22] = true,  [23] = true,
    [24] = true, [25] = true, [26] = true,  [27] = true,  [28] = true,  [29] = true,
    [30] = true, [31] = true, [' '] = true, [','] = true, [']'] = true, ['}'] = true};

/* ---- strings ---- */

static void note_oddities(struct chrome_reader *r, unsigned oddities, const uint8_t *at)
{
    if (oddities & SV_JSON_BAD_ESCAPE)
        chrome_note(r, FOUND_BAD_ESCAPE, at);
    if (oddities & SV_JSON_LONE_SURROGATE)
        chrome_note(r, FOUND_SURROGATE, at);
    if (oddities & SV_JSON_CONTROL)
        chrome_note(r, FOUND_CONTROL, at);
    if (oddities & SV_JSON_BAD_UTF8)
        chrome_note(r, FOUND_BAD_UTF8, at);
}

/* The text between the quotes, as the model wants it. Without a backslash it stays where it is. */
static struct chrome_span decode(struct chrome_reader *r, const uint8_t *p, size_t len)
{
    unsigned oddities = 0;
    struct chrome_span out = {p, len};
    if (memchr(p, '\\', len)) {
        char *copy = sv_arena_get(&r->batch->arena, len + SV_JSON_PAD, 1);
        out.p = (const uint8_t *)copy;
        out.len = sv_json_unescape(p, len, copy, &oddities);
    } else {
        oddities = sv_json_text_oddities(p, len);
    }
    if (oddities)
        note_oddities(r, oddities, p);
    return out;
}

/* The closing quote of the string whose text starts at p, or NULL at the end of the window. */
static const uint8_t *closing_quote(struct chrome_reader *r, const uint8_t *p, const uint8_t *end)
{
    while (p < end) {
        p = r->scan->quote(p, end);
        if (p == end)
            break;
        if (*p == '"')
            return p;
        p += 2; /* an escape and what it escapes */
    }
    return NULL;
}

static const uint8_t *string_slow(struct chrome_reader *r, const uint8_t *p, const uint8_t *end,
                                  struct chrome_span *out)
{
    const uint8_t *q = closing_quote(r, p + 1, end);
    if (!q)
        return chrome_stop(r, end, end);
    *out = decode(r, p + 1, (size_t)(q - p - 1));
    return q + 1;
}

/* The string whose opening quote is at p. */
const uint8_t *chrome_string(struct chrome_reader *r, const uint8_t *p, const uint8_t *end,
                             struct chrome_span *out)
{
    const uint8_t *q = sv_json_special(r->scan, p + 1, end);
    if (__builtin_expect(q == end || *q != '"', 0))
        return string_slow(r, p, end, out);
    *out = (struct chrome_span){p + 1, (size_t)(q - p - 1)};
    return q + 1;
}

static inline uint64_t text_hash(const uint8_t *p, size_t len)
{
    uint64_t a, b = 0;
    if (len >= 16) { /* ends and middle: a wrong guess only costs a comparison */
        a = sv_json_load8(p) ^ sv_json_load8(p + len - 16) * 0x9e3779b97f4a7c15ull;
        b = sv_json_load8(p + len - 8) ^ sv_json_load8(p + len / 2) * 0xc2b2ae3d27d4eb4full;
    } else if (len >= 8) {
        a = sv_json_load8(p);
        b = sv_json_load8(p + len - 8);
    } else {
        a = len ? sv_json_load8(p) << (64 - 8 * len) : 0;
    }
    uint64_t h = (a ^ len) * 0x9e3779b97f4a7c15ull;
    h = (h ^ h >> 29 ^ b) * 0xd6e8feb86659fd93ull;
    return h ^ h >> 32;
}

/* The number of a text, by a small cache before the dictionary. p has readable bytes after it, as
 * the window does. */
sv_str chrome_intern(struct chrome_reader *r, const uint8_t *p, size_t len)
{
    if (len > UINT32_MAX / 2) /* beyond any window, but the dictionary insists */
        len = UINT32_MAX / 2;
    if (len == 0)
        return 0;
    struct chrome_text *t = &r->texts[text_hash(p, len) % CHROME_TEXTS];
    if (t->len == len && sv_json_same16(p, t->head, len < 16 ? (unsigned)len : 16) &&
        (len <= 16 || memcmp(p + 16, t->bytes + 16, len - 16) == 0))
        return t->str;
    t->str = sv_dict_str(r->dict, (const char *)p, len);
    t->bytes = sv_dict_text(r->dict, t->str).bytes;
    t->len = (uint32_t)len;
    memcpy(t->head, p, len < 16 ? len : 16);
    return t->str;
}

/* ---- keys ---- */

static uint8_t field_of(struct chrome_span key)
{
    static const struct {
        const char *key;
        uint8_t len;
    } fields[] = {{"", 0},
#define ROW(name, key) {key, sizeof key - 1},
                  CHROME_FIELDS(ROW)
#undef ROW
    };
    for (unsigned i = 1; i < FIELD_N; i++)
        if (fields[i].len == key.len && memcmp(fields[i].key, key.p, key.len) == 0)
            return (uint8_t)i;
    return FIELD_OTHER;
}

/* The key whose opening quote is at p; returns the byte after its closing quote. */
const uint8_t *chrome_key(struct chrome_reader *r, const uint8_t *p, const uint8_t *end,
                          struct chrome_guess *out)
{
    struct chrome_span text;
    const uint8_t *q = chrome_string(r, p, end, &text);
    if (!q)
        return NULL;
    if (text.len > CHROME_KEY_MAX) {
        out->str = chrome_intern(r, text.p, text.len);
        out->field = FIELD_OTHER;
        return q;
    }
    struct chrome_key *k = &r->keys[text_hash(text.p, text.len) % CHROME_KEYS];
    if (k->len != text.len || memcmp(k->text, text.p, text.len) != 0) {
        memcpy(k->text, text.p, text.len);
        k->len = (uint8_t)text.len;
        k->str = chrome_intern(r, text.p, text.len);
        k->field = field_of(text);
    }
    out->str = k->str;
    out->field = k->field;
    return q;
}

/* Remembers the bytes between p and q, in front of those remembered before. */
static void learn(struct chrome_guess *ways, const uint8_t *p, const uint8_t *q,
                  const struct chrome_guess *what)
{
    size_t len = (size_t)(q - p);
    if (len > CHROME_GUESS_MAX)
        return;
    ways[1] = ways[0];
    struct chrome_guess *g = &ways[0];
    memcpy(g->text, p, len);
    g->len = (uint8_t)len;
    g->skip = (uint16_t)(len < 16 ? 0xffffu << len : 0u);
    g->field = what->field;
    g->least = what->field == FIELD_CLOSE ? 0 : ' ' + 1;
    g->str = what->str;
}

/* The end of the object at p, after a comma perhaps. */
static const struct chrome_guess *close_object(struct chrome_reader *r, const uint8_t *start,
                                               const uint8_t *p, bool is_comma, bool is_odd,
                                               struct chrome_guess *ways)
{
    r->odd.field = FIELD_CLOSE;
    if (is_comma)
        chrome_note(r, FOUND_EXTRA_COMMA, p);
    else if (!is_odd)
        learn(ways, start, p + 1, &r->odd);
    r->odd_end = p + 1;
    return &r->odd;
}

const struct chrome_guess *chrome_member(struct chrome_reader *r, const uint8_t *p,
                                         const uint8_t *end, const uint8_t *value,
                                         struct chrome_guess *ways)
{
    const uint8_t *start = p;
    p = sv_json_solid(p, end);
    bool is_odd = false, is_comma = false;
    r->mended.p = NULL;
    if (value && p < end && *p == ',') {
        is_comma = true;
        p++;
    } else if (value && (p >= end || *p != '}')) {
        is_odd = true;
        if (!(p = chrome_odd_end(r, value, p, end, &r->mended)))
            return NULL;
    }
    for (;;) {
        p = sv_json_solid(p, end);
        if (p < end && *p == '"')
            break;
        if (p < end && *p == '}')
            return close_object(r, start, p, is_comma, is_odd, ways);
        is_odd = true;
        if (!(p = chrome_odd_key(r, p, end)))
            return NULL;
    }
    uint64_t notes = r->pending_mask;
    if (!(p = chrome_key(r, p, end, &r->odd)) || !(p = chrome_colon(r, p, end)))
        return NULL;
    if (!is_odd && r->pending_mask == notes)
        learn(ways, start, p, &r->odd);
    r->odd_end = p;
    return &r->odd;
}

/* ---- duplicates ---- */

void chrome_grow_seen(struct chrome_reader *r, sv_str key)
{
    size_t old = r->cap_seen;
    r->seen = sv_grow(r->seen, &r->cap_seen, (size_t)key + 1, sizeof *r->seen);
    memset(r->seen + old, 0, (r->cap_seen - old) * sizeof *r->seen);
}

/* A later value replaces this one: its slots vanish when the event is done. */
void chrome_bury(struct chrome_reader *r, uint32_t at, uint32_t n)
{
    struct sv_batch *b = r->batch;
    for (uint32_t i = at; i < at + n;) {
        struct sv_arg *a = &b->args[i];
        uint32_t slots = (uint32_t)(sv_arg_next(a) - a);
        a->type = 0;
        a->size = (slots - 1) & 0xffffff;
        i += slots;
    }
    r->has_tombs = true;
}

/* A key was given twice; `at` is its quote or the separator before it. */
static void note_duplicate(struct chrome_reader *r, const uint8_t *at)
{
    const uint8_t *end = r->in->data + r->in->len, *quote = memchr(at, '"', (size_t)(end - at));
    chrome_note(r, FOUND_DUPLICATE, quote ? quote : at);
}

void chrome_seen_before(struct chrome_reader *r, sv_str key, const uint8_t *at)
{
    struct chrome_seen *s = &r->seen[key];
    if (s->stamp == r->stamp_now && r->is_stave)
        return; /* the model allows it; JSON as such does not say what it means */
    if (s->stamp == r->stamp_now) {
        if (s->at < (uint32_t)(r->batch->arg - r->batch->args))
            chrome_bury(r, s->at, 1);
        note_duplicate(r, at);
        return;
    }
    /* Seen in an object around this one, perhaps: that must be known again when this one closes. */
    SV_APPEND(r->undo, r->n_undo, r->cap_undo) = (struct chrome_undo){key, *s};
}

void chrome_begin_event(struct chrome_reader *r)
{
    if (r->stamp > UINT32_MAX / 2) { /* so many objects in one event cannot be */
        memset(r->seen, 0, r->cap_seen * sizeof *r->seen);
        r->stamp = 0;
    }
    r->event_stamp = r->stamp_now = ++r->stamp;
    r->depth = 0;
    r->n_undo = 0;
    r->has_tombs = false;
}

/* Takes out what was buried; containers shrink accordingly. */
void chrome_drop_tombs(struct chrome_reader *r)
{
    struct sv_batch *b = r->batch;
    uint32_t n = (uint32_t)(b->arg - b->args), out = 0, depth = 0;
    struct {
        uint32_t at, end;
    } open[CHROME_DEPTH_MAX + 4];
    for (uint32_t i = 0; i <= n; i++) {
        while (depth && open[depth - 1].end <= i) {
            depth--;
            b->args[open[depth].at].size = (out - open[depth].at - 1) & 0xffffff;
        }
        if (i == n)
            break;
        struct sv_arg a = b->args[i];
        if (a.type == 0) {
            i += a.size;
            continue;
        }
        uint32_t slots = (uint32_t)(sv_arg_next(&b->args[i]) - &b->args[i]);
        if (slots > 1) {
            assert(depth < CHROME_DEPTH_MAX + 4);
            open[depth].at = out;
            open[depth++].end = i + slots < n ? i + slots : n;
        }
        b->args[out++] = a;
    }
    if (n > 0) /* else there may be no space for arguments yet */
        b->arg = b->args + out;
    r->has_tombs = false;
}

/* ---- looking ahead in damaged text ---- */

/* Is `"…" :` at p? A look that runs into the end of the window answers yes: the caller will notice
 * there. */
static bool looks_like_key(struct chrome_reader *r, const uint8_t *p, const uint8_t *end)
{
    if (p >= end || *p != '"')
        return p >= end;
    const uint8_t *limit = (size_t)(end - p) > LOOK_MAX ? p + LOOK_MAX : end;
    const uint8_t *q = closing_quote(r, p + 1, limit);
    if (!q)
        return limit == end;
    q = sv_json_solid(q + 1, end);
    return q == end || *q == ':';
}

static bool starts_value(uint8_t c)
{
    return c == '"' || c == '{' || c == '[' || c == '-' || (c >= '0' && c <= '9') || c == 't' ||
           c == 'f' || c == 'n';
}

/* Could a string end at the quote before p? Then the byte of the next member or the closing
 * bracket. */
static const uint8_t *plausible_end(struct chrome_reader *r, const uint8_t *p, const uint8_t *end,
                                    bool in_object)
{
    p = sv_json_solid(p, end);
    if (p == end || *p == '}' || *p == ']')
        return p;
    if (*p != ',')
        return NULL;
    p = sv_json_solid(p + 1, end);
    if (p == end)
        return p;
    if (in_object ? looks_like_key(r, p, end) : starts_value(*p))
        return p;
    return NULL;
}

/* The string at `value` seemed to end before `p`, but what follows is malformed: its quote was not
 * escaped. Finds the quote that closes it, unless something like a key comes first: then two
 * records ran into each other. */
static const uint8_t *mend_string(struct chrome_reader *r, const uint8_t *value, const uint8_t *p,
                                  const uint8_t *end, bool in_object, struct chrome_span *out)
{
    if ((uint64_t)chrome_pos(r, p) < r->no_quote_until)
        return NULL;
    const uint8_t *limit = (size_t)(end - p) > MEND_MAX ? p + MEND_MAX : end;
    for (const uint8_t *q = p; q < limit; q++) {
        q = r->scan->quote(q, limit);
        if (q == limit)
            break;
        if (*q == '\\') {
            q++;
            continue;
        }
        const uint8_t *next = plausible_end(r, q + 1, end, in_object);
        if (next == end && !r->in->eof)
            return chrome_stop(r, end, end);
        if (next) {
            *out = decode(r, value + 1, (size_t)(q - value - 1));
            chrome_note(r, FOUND_QUOTE, closing_quote(r, value + 1, end));
            return next;
        }
        const uint8_t *after = sv_json_solid(q + 1, end);
        if (after < end && *after == ':') {
            limit = q;
            break;
        }
    }
    if (limit == end && !r->in->eof)
        return chrome_stop(r, end, end);
    r->no_quote_until = (uint64_t)chrome_pos(r, limit);
    return NULL;
}

static const uint8_t *skip_nuls(struct chrome_reader *r, const uint8_t *p, const uint8_t *end)
{
    const uint8_t *start = p;
    while (p < end && *p == 0)
        p++;
    chrome_note_n(r, FOUND_NUL, (uint32_t)(p - start), start);
    return p;
}

/* Where a key or a closing brace should be, there is something else. */
const uint8_t *chrome_odd_key(struct chrome_reader *r, const uint8_t *p, const uint8_t *end)
{
    if (p < end && *p == ',') {
        chrome_note(r, FOUND_EXTRA_COMMA, p);
        return p + 1;
    }
    if (p < end && *p == 0)
        return skip_nuls(r, p, end);
    return chrome_stop(r, p, end);
}

/* After the value at `value` neither a comma nor the closing bracket is at p. Returns where the
 * next member or the closing bracket is; `mended` gets the text of a string that had to be taken
 * longer. */
const uint8_t *chrome_odd_end(struct chrome_reader *r, const uint8_t *value, const uint8_t *p,
                              const uint8_t *end, struct chrome_span *mended)
{
    bool in_object = r->depth == 0 || r->levels[r->depth - 1].close == '}';
    uint8_t close = r->depth == 0 ? '}' : r->levels[r->depth - 1].close;
    if (p >= end)
        return chrome_stop(r, end, end);
    if (*p == 0) {
        p = sv_json_solid(skip_nuls(r, p, end), end);
        if (p < end && *p == ',')
            return p + 1;
        return p < end && (*p == close || (in_object && looks_like_key(r, p, end)))
                   ? p
                   : chrome_stop(r, p, end);
    }
    if (in_object ? *p == '"' && looks_like_key(r, p, end) : starts_value(*p) && *value != '"') {
        chrome_note(r, FOUND_MISSING_COMMA, p);
        return p;
    }
    if (*value == '"') {
        r->stop_is_cut = false;
        const uint8_t *next = mend_string(r, value, p, end, in_object, mended);
        if (next || r->stop_is_cut)
            return next;
    }
    if (!in_object && starts_value(*p)) {
        chrome_note(r, FOUND_MISSING_COMMA, p);
        return p;
    }
    return chrome_stop(r, p, end);
}
