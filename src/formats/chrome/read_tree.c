/* The Chrome reader's trees: any JSON value becomes arguments in pre-order, appended to the open
 * list of the batch.
 *
 * Called by the event file for `args` and for fields that it does not know, and by the document
 * file for values that it looks into. Half of all bytes of a profile pass through tree(), so the
 * usual case (a key of the last event's shape, a short integer or plain text) is inline and
 * everything else is out of the way. Iterative, with a stack in the reader; deeper values are kept
 * as their text. */
#include "formats/chrome/reader.h"

#define WORD_MAX    64u /* longest bare word */
#define PLAIN_DEPTH 16u /* nesting of arrays that are read without levels */

static const uint64_t powers[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};

#define INLINE static inline __attribute__((always_inline))

/* The first half of an argument as one word: compilers write its bit fields one by one, and read
 * what was there before. */
INLINE uint64_t arg_head(sv_str key, unsigned type, uint32_t size)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    return (uint64_t)(size << 8 | type) << 32 | key;
#else
    struct sv_arg a = {.key = key, .type = type & 0xff, .size = size & 0xffffff};
    uint64_t head;
    memcpy(&head, &a, sizeof head);
    return head;
#endif
}

INLINE void put_arg(struct chrome_reader *r, sv_str key, unsigned type, uint32_t size, uint64_t u)
{
    struct sv_batch *b = r->batch;
    if (__builtin_expect(b->arg == b->args_end, 0))
        sv_batch_more_args(b);
    struct sv_arg *a = b->arg++;
    uint64_t head = arg_head(key, type, size);
    memcpy(a, &head, sizeof head);
    a->u = u;
}

static inline void put_double(struct chrome_reader *r, sv_str key, double d)
{
    uint64_t u;
    memcpy(&u, &d, sizeof u);
    put_arg(r, key, SV_ARG_DOUBLE, 0, u);
}

INLINE void put_text(struct chrome_reader *r, sv_str key, struct chrome_span text)
{
    if (__builtin_expect(text.len > SV_TEXT_MAX, 0)) {
        chrome_note(r, FOUND_TEXT_CUT, text.p);
        text.len = SV_TEXT_MAX;
    }
    put_arg(r, key, SV_ARG_TEXT, (uint32_t)text.len, (uint64_t)(uintptr_t)text.p);
}

/* ---- scalars ---- */

static void put_word(struct chrome_reader *r, sv_str key, struct chrome_span word)
{
    double d;
    if (sv_json_not_finite(word.p, word.len, &d))
        put_double(r, key, d);
    else if (word.len == 4 && memcmp(word.p, "True", 4) == 0)
        put_arg(r, key, SV_ARG_BOOL, 0, (uint64_t)(1));
    else if (word.len == 5 && memcmp(word.p, "False", 5) == 0)
        put_arg(r, key, SV_ARG_BOOL, 0, (uint64_t)(0));
    else if (word.len == 4 && memcmp(word.p, "None", 4) == 0)
        put_arg(r, key, SV_ARG_NULL, 0, 0);
    else
        put_text(r, key, word);
}

/* NaN, N/A, 0x1f, None: a run of bytes that JSON has no name for, up to the next comma, bracket or
 * blank. */
static const uint8_t *read_word(struct chrome_reader *r, const uint8_t *p, const uint8_t *end,
                                sv_str key)
{
    const uint8_t *q = p;
    while (q < end && !chrome_ends[*q]) {
        if (*q == '"' || *q == '{' || *q == '[' || *q == ':' || *q >= 0x7f ||
            (size_t)(q - p) >= WORD_MAX)
            return chrome_stop(r, q, end);
        q++;
    }
    if (q == end)
        return chrome_stop(r, end, end);
    if (q == p) { /* "key":, or "key":} */
        if (*p <= ' ')
            return chrome_stop(r, p, end);
        chrome_note(r, FOUND_NO_VALUE, p);
        put_arg(r, key, SV_ARG_NULL, 0, 0);
        return p;
    }
    chrome_note(r, FOUND_WORD, p);
    put_word(r, key, (struct chrome_span){p, (size_t)(q - p)});
    return q;
}

static void put_number(struct chrome_reader *r, sv_str key, const struct sv_json_number *n,
                       struct chrome_span text)
{
    bool fits = n->is_integer && n->exp10 == 0 && !n->cut && !n->cut_more;
    if (fits && n->digits <= (uint64_t)INT64_MAX + n->is_negative) {
        put_arg(r, key, SV_ARG_INT, 0,
                (uint64_t)(n->is_negative ? (int64_t)(0 - n->digits) : (int64_t)n->digits));
    } else if (fits && !n->is_negative) {
        put_arg(r, key, SV_ARG_UINT, 0, (uint64_t)(n->digits));
    } else {
        if (n->is_integer)
            chrome_note(r, FOUND_BIG_INT, text.p);
        put_double(r, key, sv_json_number_double(n, text.p, text.len));
    }
}

static const uint8_t *read_number(struct chrome_reader *r, const uint8_t *p, const uint8_t *end,
                                  sv_str key)
{
    struct sv_json_number n;
    const uint8_t *q = sv_json_number(p, end, &n);
    if (q == end)
        return chrome_stop(r, end, end);
    if (!q || !chrome_ends[*q])
        return read_word(r, p, end, key);
    if (n.is_odd)
        chrome_note(r, FOUND_NUMBER, p);
    put_number(r, key, &n, (struct chrome_span){p, (size_t)(q - p)});
    return q;
}

/* An integer of up to 15 digits, which is nearly every number; NULL when it is something else. */
INLINE const uint8_t *read_integer(struct chrome_reader *r, const uint8_t *p, const uint8_t *end,
                                   sv_str key)
{
    bool is_negative = *p == '-';
    const uint8_t *q = p + is_negative;
    unsigned n, more;
    uint64_t v = sv_json_digits8(q, &n);
    if (n == 0 || (*q == '0' && n > 1))
        return NULL;
    q += n;
    if (n == 8) {
        uint32_t low = sv_json_digits8(q, &more);
        if (more == 8)
            return NULL;
        v = v * powers[more] + low;
        q += more;
    }
    if (q >= end || !chrome_ends[*q])
        return NULL;
    put_arg(r, key, SV_ARG_INT, 0, (uint64_t)(is_negative ? -(int64_t)v : (int64_t)v));
    return q;
}

static const uint8_t *read_literal(struct chrome_reader *r, const uint8_t *p, const uint8_t *end,
                                   sv_str key)
{
    if (end - p > 5) {
        if (memcmp(p, "true", 4) == 0 && chrome_ends[p[4]]) {
            put_arg(r, key, SV_ARG_BOOL, 0, (uint64_t)(1));
            return p + 4;
        }
        if (memcmp(p, "false", 5) == 0 && chrome_ends[p[5]]) {
            put_arg(r, key, SV_ARG_BOOL, 0, 0);
            return p + 5;
        }
        if (memcmp(p, "null", 4) == 0 && chrome_ends[p[4]]) {
            put_arg(r, key, SV_ARG_NULL, 0, 0);
            return p + 4;
        }
    } else if (!r->in->eof) {
        return chrome_stop(r, end, end);
    }
    return read_word(r, p, end, key);
}

INLINE const uint8_t *read_scalar(struct chrome_reader *r, const uint8_t *p, const uint8_t *end,
                                  sv_str key)
{
    if (*p == '"') {
        struct chrome_span text;
        const uint8_t *q = chrome_string(r, p, end, &text);
        if (q)
            put_text(r, key, text);
        return q;
    }
    if (*p == '-' || (*p >= '0' && *p <= '9')) {
        const uint8_t *q = read_integer(r, p, end, key);
        return q ? q : read_number(r, p, end, key);
    }
    return read_literal(r, p, end, key);
}

/* ---- containers ---- */

const uint8_t *chrome_skip(struct chrome_reader *r, const uint8_t *p, const uint8_t *end)
{
    struct sv_json_skip skip = {0};
    const uint8_t *q = sv_json_skip(&skip, r->scan, p, end);
    return q ? q : chrome_stop(r, end, end);
}

static inline void open_level(struct chrome_reader *r, uint32_t at, uint8_t close)
{
    struct chrome_level *l = &r->levels[r->depth++];
    l->at = at;
    l->close = close;
    l->n_undo = (uint32_t)r->n_undo;
    l->stamp = close == '}' ? ++r->stamp : r->stamp_now;
    r->stamp_now = l->stamp;
}

static inline void close_level(struct chrome_reader *r)
{
    struct chrome_level *l = &r->levels[--r->depth];
    if (l->at != UINT32_MAX)
        sv_batch_close(r->batch, l->at);
    for (; r->n_undo > l->n_undo; r->n_undo--)
        r->seen[r->undo[r->n_undo - 1].key] = r->undo[r->n_undo - 1].seen;
    r->stamp_now = r->depth ? r->levels[r->depth - 1].stamp : r->event_stamp;
}

/* After a stop in the middle of a tree: what was read so far becomes whole. */
void chrome_close_levels(struct chrome_reader *r)
{
    while (r->depth)
        close_level(r);
}

static inline void open_container(struct chrome_reader *r, sv_str key, uint8_t bracket)
{
    uint32_t at = (uint32_t)(r->batch->arg - r->batch->args);
    put_arg(r, key, bracket == '{' ? SV_ARG_DICT : SV_ARG_ARRAY, 0, 0);
    if (__builtin_expect(r->batch->overflow, 0)) /* the one slot past the limit */
        at = (uint32_t)(r->batch->arg - r->batch->args) - 1;
    open_level(r, at, bracket == '{' ? '}' : ']');
}

/* The container at p is opened, or kept as its text when it is too deep. Returns where reading
 * continues. */
static const uint8_t *enter(struct chrome_reader *r, const uint8_t *p, const uint8_t *end,
                            sv_str key)
{
    if (__builtin_expect(r->depth == CHROME_DEPTH_MAX, 0)) {
        const uint8_t *q = chrome_skip(r, p, end);
        if (!q)
            return NULL;
        chrome_note(r, FOUND_DEEP, p);
        put_text(r, key, (struct chrome_span){p, (size_t)(q - p)});
        return q;
    }
    open_container(r, key, *p);
    return p + 1;
}

/* After a value: over the comma, or to the closing bracket; anything else is odd. */
static inline const uint8_t *after_value(struct chrome_reader *r, const uint8_t *value,
                                         const uint8_t *p, const uint8_t *end, bool *is_comma)
{
    p = sv_json_solid(p, end);
    *is_comma = *p == ',' && p < end;
    if (*is_comma)
        return p + 1;
    if (__builtin_expect(p < end && *p == r->levels[r->depth - 1].close, 1))
        return p;
    struct chrome_span mended = {0};
    p = chrome_odd_end(r, value, p, end, &mended);
    if (p && mended.p) {
        r->batch->arg--;
        put_text(r, r->batch->arg->key, mended);
    }
    return p;
}

/* Key and colon of a member; the byte where its value starts. */
static const uint8_t *read_key(struct chrome_reader *r, const uint8_t *p, const uint8_t *end,
                               sv_str *out)
{
    struct chrome_guess key;
    const uint8_t *start = p;
    p = chrome_key(r, p, end, &key);
    if (!p || !(p = chrome_colon(r, p, end)))
        return NULL;
    chrome_mark_key(r, key.str, start);
    *out = key.str;
    return p;
}

/* The array at p as far as it holds integers, plain texts and such arrays, which is what shapes and
 * types are: no level is opened for it. What it cannot finish is handed over in open levels; *value
 * is then the last element that was read, NULL when the next thing must be one. */
static const uint8_t *read_plain_array(struct chrome_reader *r, const uint8_t *p,
                                       const uint8_t *end, sv_str key, const uint8_t **value)
{
    struct sv_batch *b = r->batch;
    uint32_t open[PLAIN_DEPTH], depth = 0;
    const uint8_t *last = NULL;
    do {
        const uint8_t *q;
        last = NULL;
        if (*p == '[' && depth < PLAIN_DEPTH) {
            open[depth] = (uint32_t)(b->arg - b->args);
            put_arg(r, depth++ ? 0 : key, SV_ARG_ARRAY, 0, 0);
            q = p + 1;
            if (*q != ']') {
                p = q;
                continue;
            }
        } else if (*p == '"') {
            q = sv_json_special(r->scan, p + 1, end);
            if (q == end || *q != '"')
                break;
            put_text(r, 0, (struct chrome_span){p + 1, (size_t)(q - p - 1)});
            q++;
        } else if (!(q = read_integer(r, p, end, 0))) {
            break;
        }
        last = p;
        for (p = q; *p == ']' && p < end; p++) {
            depth--;
            b->args[open[depth]].size = (uint32_t)((b->arg - b->args) - open[depth] - 1) & 0xffffff;
            if (depth == 0)
                return p + 1;
        }
        if (*p != ',')
            break;
        last = NULL;
        p += p[1] == ' ' ? 2 : 1;
    } while (p < end);
    for (uint32_t i = 0; i < depth; i++)
        open_level(r, open[i], ']');
    *value = last;
    return p;
}

/* ---- arrays met before ---- */

/* By the start of the array, its key and the name of the event. */
static inline uint64_t memo_hash(const struct chrome_reader *r, const uint8_t *p, sv_str key)
{
    uint64_t h = (sv_json_load8(p) ^ r->memo_name) * 0x9e3779b97f4a7c15ull;
    h ^= (sv_json_load8(p + 8) ^ (uint64_t)key << 32) * 0xd6e8feb86659fd93ull;
    h += sv_json_load8(p + 16) * 0xc2b2ae3d27d4eb4full;
    return h ^ h >> 32;
}

/* The array at p if it is the one of the memo, its arguments appended; NULL otherwise. */
static inline const uint8_t *replay(struct chrome_reader *r, const struct chrome_memo *m,
                                    const uint8_t *p, const uint8_t *end, sv_str key)
{
    struct sv_batch *b = r->batch;
    size_t len = m->len, i = 0;
    if (len == 0 || (size_t)(end - p) <= len || (size_t)(b->args_end - b->arg) < m->n)
        return NULL;
    for (; i + 16 <= len; i += 16)
        if (!sv_json_same16(p + i, m->text + i, 16))
            return NULL;
    if (!sv_json_same16(p + i, m->text + i, (unsigned)(len - i)))
        return NULL;
    struct sv_arg *a = b->arg;
    for (unsigned k = 0; k < m->n; k++) {
        a[k] = m->args[k];
        a[k].u += a[k].type == SV_ARG_TEXT ? (uint64_t)(uintptr_t)p : 0;
    }
    a->key = key;
    b->arg += m->n;
    return p + len;
}

/* Keeps the array [p, q), whose arguments begin at number `at`, when it is met for the second
 * time. */
static void memorise(struct chrome_reader *r, struct chrome_memo *m, uint64_t hash,
                     const uint8_t *p, const uint8_t *q, uint32_t at)
{
    const struct sv_batch *b = r->batch;
    size_t len = (size_t)(q - p), n = (size_t)(b->arg - b->args) - at;
    bool is_new = m->met != (uint32_t)hash;
    m->met = (uint32_t)hash;
    if (is_new || len > CHROME_MEMO_TEXT || n > CHROME_MEMO_ARGS || b->overflow)
        return;
    memcpy(m->text, p, len);
    memcpy(m->args, b->args + at, n * sizeof *m->args);
    for (size_t i = 0; i < n; i++)
        if (m->args[i].type == SV_ARG_TEXT)
            m->args[i].u -= (uint64_t)(uintptr_t)p;
    m->len = (uint8_t)len;
    m->n = (uint8_t)n;
}

/* Reads until the containers past `base` are closed. */
static const uint8_t *tree(struct chrome_reader *r, const uint8_t *p, const uint8_t *end,
                           uint32_t base, bool is_comma)
{
    const uint8_t *value = NULL; /* what was read last, when a comma or bracket must follow */
    for (;;) {
        if (value && !(p = after_value(r, value, p, end, &is_comma)))
            return NULL;
        value = NULL;
        p = sv_json_solid(p, end);
        uint8_t close = r->levels[r->depth - 1].close;
        if (*p == close && p < end) {
            if (__builtin_expect(is_comma, 0))
                chrome_note(r, FOUND_EXTRA_COMMA, p);
            close_level(r);
            value = p++;
            if (r->depth == base)
                return p;
            continue;
        }
        sv_str key = 0;
        if (__builtin_expect(close == '}' ? *p != '"' : *p == ',' || *p == 0, 0) || p >= end) {
            if (!(p = chrome_odd_key(r, p, end)))
                return NULL;
            is_comma = false;
            continue;
        }
        if (close == '}' && !(p = read_key(r, p, end, &key)))
            return NULL;
        is_comma = false;
        uint32_t depth = r->depth;
        const uint8_t *start = p;
        p = *p == '{' || *p == '[' ? enter(r, p, end, key) : read_scalar(r, p, end, key);
        if (!p)
            return NULL;
        if (r->depth == depth)
            value = start;
    }
}

static const uint8_t *read_container(struct chrome_reader *r, const uint8_t *p, const uint8_t *end,
                                     sv_str key)
{
    uint32_t base = r->depth;
    bool is_comma = false;
    if (*p == '[' && base + PLAIN_DEPTH <= CHROME_DEPTH_MAX) {
        const uint8_t *value = NULL, *start = p;
        uint64_t hash = memo_hash(r, p, key);
        struct chrome_memo *memo = &r->memos[hash % CHROME_MEMOS];
        if ((p = replay(r, memo, start, end, key)))
            return p;
        uint32_t at = (uint32_t)(r->batch->arg - r->batch->args);
        p = read_plain_array(r, start, end, key, &value);
        if (__builtin_expect(r->depth == base, 1)) {
            memorise(r, memo, hash, start, p, at);
            return p;
        }
        is_comma = !value && (p[-1] == ',' || (p[-1] == ' ' && p[-2] == ','));
        if (value && !(p = after_value(r, value, p, end, &is_comma)))
            return NULL;
    } else if (!(p = enter(r, p, end, key)) || r->depth == base) {
        return p;
    }
    return tree(r, p, end, base, is_comma);
}

/* Any value, appended with this key. */
const uint8_t *chrome_value(struct chrome_reader *r, const uint8_t *p, const uint8_t *end,
                            sv_str key)
{
    if (p >= end)
        return chrome_stop(r, end, end);
    return *p == '{' || *p == '[' ? read_container(r, p, end, key) : read_scalar(r, p, end, key);
}

/* The last text had to be taken longer. */
static void mend_text(struct chrome_reader *r)
{
    r->batch->arg--;
    put_text(r, r->batch->arg->key, r->mended);
}

/* The members of the object at p, appended one by one; `shape` says which keys to expect. */
const uint8_t *chrome_args(struct chrome_reader *r, const uint8_t *p, const uint8_t *end,
                           unsigned shape)
{
    struct chrome_guess *ways = r->args_guesses[shape % CHROME_SHAPES];
    const uint8_t *value = NULL;
    open_level(r, UINT32_MAX, '}');
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
                mend_text(r);
        }
        if (g->field == FIELD_CLOSE) {
            close_level(r);
            return p;
        }
        sv_str key = g->str;
        chrome_mark_key(r, key, start);
        value = p;
        if (*p == '{' || *p == '[')
            p = read_container(r, p, end, key);
        else
            p = read_scalar(r, p, end, key);
        if (!p)
            return NULL;
        ways += ways->step;
    }
}
