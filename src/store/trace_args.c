/* The pool of argument lists: how the store keeps arguments small.
 *
 * A list is a shape and values. The shape (keys, types, sizes of containers) is the same for most
 * events of a name and is kept once; the values follow each other as bytes:
 *
 *     list  = shape number (varint), values        | INLINE, n, (key, type, [size], value)…: no
 *                                                  shape for it
 *           | JOIN, list, list: of a begin and an end | CHAIN, list, list: one after the other
 *     value = BOOL, UINT, POINTER, FLOW*, CORRELATION: varint · INT, THREAD_*: zigzag varint
 *           | DOUBLE: varint (zigzag × 2) of an integer value, or the byte 1 and eight bytes
 *           | TEXT: varint number × 2 of a text met before, or length × 2 + 1 and the bytes
 *           | NULL and containers: nothing
 *
 * A text is stored in the list where it is met first; met again, it gets a number that refers to
 * that list. Two caches of fixed size find texts and whole lists that were met before: what they
 * forget is stored again, so they bound memory, not what can be stored. trace.c adds lists while
 * loading, trace_sort.c and trace_flow.c combine them, everybody decodes. The bytes are ours:
 * decoding trusts them. */
#include "core/base/wire.h"
#include "core/stream/args.h"
#include "store/args_hash.h"
#include "store/image.h"
#include "store/trace_impl.h"

#include <assert.h>
#include <stdlib.h>

enum { INLINE = 0, JOIN = 1, CHAIN = 2, SHAPE_FIRST = 3 };

#define SHAPE_SLOTS_MAX 64u /* longer lists are written without shape */
#define SHAPES_MAX      (1u << 16)
#define TEXT_CACHE      SV_TABLE(1u << 16, 256u) /* slots, in pairs */
#define LIST_CACHE      SV_TABLE(1u << 15, 256u) /* slots */
#define TEXT_SHORT      2u                       /* bytes that are cheaper repeated than found */
#define TEXT_LONG       (1u << 16)               /* bytes from which a text is not looked up */
#define TEXTS_MAX       (1u << 24)
#define VALUE_MAX       16u /* bytes of a value without text; as many for the head of an inline slot */
#define UNIT            4u /* lists begin at multiples of it; handles count in it */
#define POOL_MAX        ((size_t)UINT32_MAX * UNIT)

struct sv_list_shape {
    uint64_t hash;
    uint32_t first;   /* in slots */
    uint32_t flow[3]; /* the same followed by a flow of each type, 0: not met yet */
    uint16_t n;
    uint16_t flags;
    uint32_t unused; /* no holes: images hold the bytes as they are */
};
_Static_assert(sizeof(struct sv_list_shape) == 32, "raise SV_IMAGE_VERSION");

/* A text in the cache. Its place is the position of its bytes in the pool. */
struct sv_text_slot {
    uint64_t hash : 40, len : 24;
    uint64_t place : 40, number : 24; /* number 0: met once */
};

struct sv_list_slot {
    uint32_t hash, list;
};

#define BIT(t) (1u << (t))
static const uint32_t containers = BIT(SV_ARG_DICT) | BIT(SV_ARG_ARRAY) | BIT(SV_ARG_SOURCE) |
                                   BIT(SV_ARG_STACK);
static const uint32_t flows = BIT(SV_ARG_FLOW_BEGIN) | BIT(SV_ARG_FLOW) | BIT(SV_ARG_FLOW_END);

/* ---- memory ---- */

void sv_lists_init(struct sv_lists *p)
{
    *p = (struct sv_lists){.used = UNIT, .n_shapes = SHAPE_FIRST, .n_texts = 1};
}

void sv_lists_seal(struct sv_lists *p)
{
    free(p->by_hash);
    free(p->text_cache);
    free(p->list_cache);
    p->by_hash = NULL;
    p->text_cache = NULL;
    p->list_cache = NULL;
    p->cap_by_hash = 0;
    sv_block_trim(&p->bytes, p->used);
}

void sv_lists_fini(struct sv_lists *p)
{
    sv_lists_seal(p);
    sv_block_fini(&p->bytes);
    free(p->shapes);
    free(p->slots);
    free(p->texts);
}

size_t sv_lists_bytes(const struct sv_lists *p)
{
    return p->used + p->cap_shapes * sizeof *p->shapes + p->cap_slots * sizeof *p->slots +
           p->cap_by_hash * sizeof *p->by_hash + p->cap_texts * sizeof *p->texts +
           (p->text_cache ? TEXT_CACHE * sizeof *p->text_cache : 0) +
           (p->list_cache ? LIST_CACHE * sizeof *p->list_cache : 0);
}

static bool reserve(struct sv_lists *p, size_t bytes)
{
    if (p->used + bytes > POOL_MAX || !sv_block_reserve(&p->bytes, p->used + bytes + UNIT))
        p->failed = true;
    return !p->failed;
}

static uint8_t *byte_at(const struct sv_lists *p, size_t position)
{
    return (uint8_t *)p->bytes.at + position;
}

/* ---- numbers ---- */

static inline uint8_t *put_varint(uint8_t *at, uint64_t v)
{
    if (v < 0x80) {
        *at = (uint8_t)v;
        return at + 1;
    }
    if (v < 0x4000) {
        at[0] = (uint8_t)(v | 0x80);
        at[1] = (uint8_t)(v >> 7);
        return at + 2;
    }
    while (v >= 0x80) {
        *at++ = (uint8_t)(v | 0x80);
        v >>= 7;
    }
    *at++ = (uint8_t)v;
    return at;
}

static inline const uint8_t *get_varint(const uint8_t *at, uint64_t *v)
{
    uint64_t x = *at++;
    if (x >= 0x80) {
        x &= 0x7f;
        for (unsigned shift = 7;; shift += 7) {
            uint64_t byte = *at++;
            x |= (byte & 0x7f) << shift;
            if (byte < 0x80)
                break;
        }
    }
    *v = x;
    return at;
}

/* Whole numbers are common (byte counts written as 12.0): they take few bytes. Minus zero is not
 * whole. */
static uint8_t *put_double(uint8_t *at, double d)
{
    uint64_t bits;
    memcpy(&bits, &d, sizeof bits);
    if (d > -1e15 && d < 1e15) {
        int64_t whole = (int64_t)d;
        double back = (double)whole;
        uint64_t back_bits;
        memcpy(&back_bits, &back, sizeof back_bits);
        if (back_bits == bits)
            return put_varint(at, sv_zigzag(whole) << 1);
    }
    *at++ = 1;
    memcpy(at, &bits, sizeof bits);
    return at + sizeof bits;
}

static const uint8_t *get_double(const uint8_t *at, double *d)
{
    if (*at == 1) {
        memcpy(d, at + 1, sizeof *d);
        return at + 1 + sizeof *d;
    }
    uint64_t u;
    at = get_varint(at, &u);
    *d = (double)sv_unzigzag(u >> 1);
    return at;
}

/* ---- shapes ---- */

/* What two lists of one shape have in common at a slot. */
static inline uint64_t head_of(const struct sv_arg *a)
{
    uint64_t size = containers >> a->type & 1 ? a->size : 0;
    return (uint64_t)a->key << 32 | size << 8 | a->type;
}

static inline struct sv_arg arg_of(uint64_t head)
{
    return (struct sv_arg){.key = (sv_str)(head >> 32),
                           .type = (uint32_t)(head & 0xff),
                           .size = (uint32_t)(head >> 8 & 0xffffff)};
}

/* Independent products, added up: no chain to wait for. */
static inline uint64_t head_hash(uint64_t head, size_t i)
{
    return head * (HASH_STEP * (2 * i + 1));
}

static void grow_shape_index(struct sv_lists *p)
{
    free(p->by_hash);
    p->cap_by_hash = p->cap_by_hash ? p->cap_by_hash * 2 : 256;
    p->by_hash = sv_alloc(p->cap_by_hash * sizeof *p->by_hash);
    for (size_t i = SHAPE_FIRST; i < p->n_shapes; i++) {
        size_t at = p->shapes[i].hash & (p->cap_by_hash - 1);
        while (p->by_hash[at])
            at = (at + 1) & (p->cap_by_hash - 1);
        p->by_hash[at] = (uint32_t)i;
    }
}

static uint32_t new_shape(struct sv_lists *p, const uint64_t *heads, size_t n, uint64_t hash)
{
    if (p->n_shapes >= SHAPES_MAX)
        return INLINE;
    p->shapes = sv_grow(p->shapes, &p->cap_shapes, p->n_shapes + 1, sizeof *p->shapes);
    if (p->n_shapes == SHAPE_FIRST) /* images hold the unused ones, too */
        memset(p->shapes, 0, SHAPE_FIRST * sizeof *p->shapes);
    p->slots = sv_grow(p->slots, &p->cap_slots, p->n_slots + n, sizeof *p->slots);
    struct sv_list_shape *s = &p->shapes[p->n_shapes];
    *s = (struct sv_list_shape){.hash = hash, .first = (uint32_t)p->n_slots, .n = (uint16_t)n};
    for (size_t i = 0; i < n; i++)
        if (flows >> (heads[i] & 0xff) & 1)
            s->flags |= SV_LIST_HAS_FLOW;
    memcpy(p->slots + p->n_slots, heads, n * sizeof *heads);
    p->n_slots += n;
    return (uint32_t)p->n_shapes++;
}

static uint32_t find_shape(struct sv_lists *p, const uint64_t *heads, size_t n, uint64_t hash)
{
    if (p->n_shapes * 2 >= p->cap_by_hash)
        grow_shape_index(p);
    size_t at = hash & (p->cap_by_hash - 1);
    for (; p->by_hash[at]; at = (at + 1) & (p->cap_by_hash - 1)) {
        const struct sv_list_shape *s = &p->shapes[p->by_hash[at]];
        if (s->hash == hash && s->n == n &&
            memcmp(p->slots + s->first, heads, n * sizeof *heads) == 0)
            return p->by_hash[at];
    }
    uint32_t shape = new_shape(p, heads, n, hash);
    if (shape)
        p->by_hash[at] = shape;
    return shape;
}

/* ---- writing ---- */

/* Where a list is being written, and whether it holds bytes that texts refer to. */
struct writer {
    struct sv_lists *pool;
    uint8_t *at;
    bool has_new_text;
};

static bool same_text(const struct sv_lists *p, const struct sv_text_slot *s, uint64_t hash,
                      const char *text, size_t len)
{
    return s->len == len && s->hash == hash && memcmp(byte_at(p, s->place), text, len) == 0;
}

static uint32_t number_text(struct sv_lists *p, struct sv_text_slot *s)
{
    if (s->number == 0 && p->n_texts < TEXTS_MAX) {
        p->texts = sv_grow(p->texts, &p->cap_texts, p->n_texts + 1, sizeof *p->texts);
        p->texts[0] = 0; /* unused */
        p->texts[p->n_texts] = (uint64_t)s->place << 24 | s->len;
        s->number = p->n_texts++ & 0xffffff;
    }
    return s->number;
}

static void put_new_text(struct writer *w, const char *text, size_t len)
{
    w->at = put_varint(w->at, (uint64_t)len << 1 | 1);
    if (len)
        memcpy(w->at, text, len);
    w->at += len;
}

static void put_text(struct writer *w, const char *text, size_t len)
{
    struct sv_lists *p = w->pool;
    if (len <= TEXT_SHORT || len >= TEXT_LONG) {
        put_new_text(w, text, len);
        return;
    }
    if (!p->text_cache)
        p->text_cache = sv_alloc(TEXT_CACHE * sizeof *p->text_cache);
    uint64_t full = hash_bytes((const uint8_t *)text, len), hash = full >> 24;
    struct sv_text_slot *pair = &p->text_cache[full & (TEXT_CACHE - 2)];
    for (struct sv_text_slot *s = pair; s < pair + 2; s++) {
        if (s->len && same_text(p, s, hash, text, len)) {
            uint32_t number = number_text(p, s);
            if (number) {
                w->at = put_varint(w->at, (uint64_t)number << 1);
                return;
            }
        }
    }
    put_new_text(w, text, len);
    w->has_new_text = true;
    size_t place = (size_t)(w->at - (uint8_t *)p->bytes.at) - len;
    /* The first of a pair is for texts that repeat, the second for the newest. */
    if (pair[1].number)
        pair[0] = pair[1];
    pair[1] = (struct sv_text_slot){
        .hash = hash & 0xffffffffff, .len = len & 0xffffff, .place = place & 0xffffffffff};
}

static inline void put_value(struct writer *w, const struct sv_arg *a)
{
    switch (a->type) {
    case SV_ARG_INT:
    case SV_ARG_THREAD_TIME:
    case SV_ARG_THREAD_DUR: w->at = put_varint(w->at, sv_zigzag(a->i)); break;
    case SV_ARG_TEXT: put_text(w, a->text, a->size); break;
    case SV_ARG_DOUBLE: w->at = put_double(w->at, a->d); break;
    case SV_ARG_BOOL: *w->at++ = a->i != 0; break;
    case SV_ARG_UINT:
    case SV_ARG_POINTER:
    case SV_ARG_FLOW_BEGIN:
    case SV_ARG_FLOW:
    case SV_ARG_FLOW_END:
    case SV_ARG_CORRELATION: w->at = put_varint(w->at, a->u); break;
    default: break; /* NULL and containers have no value */
    }
}

static unsigned put_inline(struct writer *w, const struct sv_arg *args, size_t n)
{
    unsigned flags = 0;
    w->at = put_varint(w->at, INLINE);
    w->at = put_varint(w->at, n);
    for (size_t i = 0; i < n; i++) {
        w->at = put_varint(w->at, args[i].key);
        *w->at++ = args[i].type & 0xff;
        if (containers >> args[i].type & 1)
            w->at = put_varint(w->at, args[i].size);
        if (flows >> args[i].type & 1)
            flags |= SV_LIST_HAS_FLOW;
        put_value(w, &args[i]);
    }
    return flags;
}

/* Ends the list at `start`: finds an equal one or keeps it. Lists that others' texts point into are
 * kept. */
static uint32_t close_list(struct writer *w, size_t start)
{
    struct sv_lists *p = w->pool;
    size_t len = (size_t)(w->at - byte_at(p, start));
    uint32_t list = (uint32_t)(start / UNIT);
    /* Where nearly every list is different, looking each of them up is a waste. */
    bool skip = p->list_tries > 4096 && p->list_hits < p->list_tries / 64 && p->used / UNIT % 16;
    if (!w->has_new_text && !skip && len <= 256) {
        if (!p->list_cache)
            p->list_cache = sv_alloc(LIST_CACHE * sizeof *p->list_cache);
        uint64_t hash = hash_bytes(byte_at(p, start), len);
        struct sv_list_slot *s = &p->list_cache[hash & (LIST_CACHE - 1)];
        p->list_tries++;
        /* An equal list that ends where this one begins, or before it: the bytes are all there to
         * compare. */
        if (s->list && s->hash == (uint32_t)(hash >> 32) &&
            memcmp(byte_at(p, (size_t)s->list * UNIT), byte_at(p, start), len) == 0) {
            p->list_hits++;
            p->newest = 0;
            return s->list;
        }
        *s = (struct sv_list_slot){.hash = (uint32_t)(hash >> 32), .list = list};
    }
    p->used = start + (len + UNIT - 1) / UNIT * UNIT;
    p->newest = list;
    p->newest_end = start + len;
    return list;
}

uint32_t sv_lists_add(struct sv_lists *p, const struct sv_arg *args, size_t n, unsigned *flags)
{
    uint64_t heads[SHAPE_SLOTS_MAX], hash = n;
    size_t need = 2 * VALUE_MAX;
    bool small = n <= SHAPE_SLOTS_MAX;
    assert(n > 0);
    for (size_t i = 0; i < n; i++) {
        if (small) {
            heads[i] = head_of(&args[i]);
            hash += head_hash(heads[i], i);
        }
        need += args[i].type == SV_ARG_TEXT ? VALUE_MAX + args[i].size : VALUE_MAX;
    }
    if (!reserve(p, small ? need : need + n * VALUE_MAX))
        return 0;
    size_t start = p->used;
    struct writer w = {.pool = p, .at = byte_at(p, start)};
    uint32_t shape = small ? find_shape(p, heads, n, stir(hash, n)) : INLINE;
    if (shape == INLINE) {
        *flags = put_inline(&w, args, n);
        return close_list(&w, start);
    }
    *flags = p->shapes[shape].flags;
    w.at = put_varint(w.at, shape);
    for (size_t i = 0; i < n; i++)
        put_value(&w, &args[i]);
    return close_list(&w, start);
}

/* ---- combining ---- */

static uint32_t put_pair(struct sv_lists *p, unsigned tag, uint32_t a, uint32_t b)
{
    if (!reserve(p, 3 * VALUE_MAX))
        return 0;
    struct writer w = {.pool = p, .at = byte_at(p, p->used)};
    w.at = put_varint(w.at, tag);
    w.at = put_varint(w.at, a);
    w.at = put_varint(w.at, b);
    return close_list(&w, p->used);
}

static unsigned read_pair(const struct sv_lists *p, uint32_t list, uint32_t *a, uint32_t *b)
{
    uint64_t tag, x, y;
    if (list == 0)
        return INLINE;
    const uint8_t *at = get_varint(byte_at(p, (size_t)list * UNIT), &tag);
    if (tag != JOIN && tag != CHAIN)
        return INLINE;
    at = get_varint(at, &x);
    get_varint(at, &y);
    *a = (uint32_t)x;
    *b = (uint32_t)y;
    return (unsigned)tag;
}

uint32_t sv_lists_join(struct sv_lists *p, uint32_t begin, uint32_t end)
{
    if (begin && end && sv_lists_count(p, begin) + sv_lists_count(p, end) > SV_ARGS_MAX) {
        p->crowded++;
        return begin;
    }
    return end ? put_pair(p, JOIN, begin, end) : begin;
}

void sv_lists_split(const struct sv_lists *p, uint32_t list, uint32_t *begin, uint32_t *end)
{
    if (read_pair(p, list, begin, end) != JOIN) {
        *begin = list;
        *end = 0;
    }
}

/* The shape of a list that is followed by a flow, or INLINE. */
static uint32_t shape_with_flow(struct sv_lists *p, uint32_t shape, unsigned type)
{
    uint64_t heads[SHAPE_SLOTS_MAX], hash;
    size_t n = p->shapes[shape].n;
    uint32_t *known = &p->shapes[shape].flow[type - SV_ARG_FLOW_BEGIN];
    if (*known || n == SHAPE_SLOTS_MAX)
        return *known;
    memcpy(heads, p->slots + p->shapes[shape].first, n * sizeof *heads);
    heads[n++] = type;
    hash = n;
    for (size_t i = 0; i < n; i++)
        hash += head_hash(heads[i], i);
    uint32_t found = find_shape(p, heads, n, stir(hash, n));
    p->shapes[shape].flow[type - SV_ARG_FLOW_BEGIN] = found;
    return found;
}

/* Writes a flow after the newest list, which nobody else has; false when there is no space for the
 * number of its new shape. */
static bool extend_newest(struct sv_lists *p, unsigned type, uint64_t id)
{
    uint64_t shape;
    size_t start = (size_t)p->newest * UNIT;
    size_t head = (size_t)(get_varint(byte_at(p, start), &shape) - byte_at(p, start));
    if (shape < SHAPE_FIRST || !reserve(p, 2 * VALUE_MAX))
        return false;
    uint8_t number[VALUE_MAX];
    uint32_t with_flow = shape_with_flow(p, (uint32_t)shape, type);
    if (with_flow == INLINE || (size_t)(put_varint(number, with_flow) - number) != head)
        return false;
    memcpy(byte_at(p, start), number, head);
    p->newest_end = (size_t)(put_varint(byte_at(p, p->newest_end), id) - (uint8_t *)p->bytes.at);
    p->used = (p->newest_end + UNIT - 1) / UNIT * UNIT;
    return true;
}

uint32_t sv_lists_add_flow(struct sv_lists *p, uint32_t list, unsigned type, uint64_t id)
{
    struct sv_arg flow = {.type = type & 0xff, .u = id};
    uint32_t a, b;
    unsigned flags;
    if (list && list == p->newest && extend_newest(p, type, id))
        return list;
    if (list == 0)
        return sv_lists_add(p, &flow, 1, &flags);
    if (read_pair(p, list, &a, &b) != INLINE || sv_lists_count(p, list) >= SV_ARGS_MAX)
        return 0;
    return put_pair(p, CHAIN, list, sv_lists_add(p, &flow, 1, &flags));
}

uint32_t sv_lists_drop_flow(struct sv_lists *p, uint32_t list, unsigned type, uint64_t id)
{
    uint32_t begin, end;
    unsigned flags;
    sv_lists_split(p, list, &begin, &end);
    struct sv_arg *args = sv_alloc(sv_lists_count(p, begin) * sizeof *args);
    size_t n = sv_lists_decode(p, begin, args), at = n, cap = 2 * VALUE_MAX;
    for (size_t i = 0; i < n; i++)
        cap += 2 * VALUE_MAX + (args[i].type == SV_ARG_TEXT ? args[i].size : 0);
    while (at > 0 && !(args[at - 1].type == type && args[at - 1].u == id))
        at--;
    if (at > 0 && reserve(p, cap)) { /* texts lie in the pool, which now stays where it is */
        sv_lists_decode(p, begin, args);
        memmove(args + at - 1, args + at, (n - at) * sizeof *args);
        begin = --n ? sv_lists_add(p, args, n, &flags) : 0;
        list = sv_lists_join(p, begin, end);
    }
    free(args);
    return list;
}

uint32_t sv_lists_append(struct sv_lists *p, uint32_t list, uint32_t more)
{
    uint32_t begin, end;
    sv_lists_split(p, list, &begin, &end);
    begin = begin ? put_pair(p, CHAIN, begin, more) : more;
    return sv_lists_join(p, begin, end);
}

/* ---- reading ---- */

/* Walks the slots of a list that is not a pair. */
struct reader {
    const struct sv_lists *pool;
    const uint8_t *at;
    const uint64_t *heads; /* NULL: inline */
    size_t left;
};

static struct reader read_list(const struct sv_lists *p, uint32_t list)
{
    struct reader r = {.pool = p};
    uint64_t shape, n;
    r.at = get_varint(byte_at(p, (size_t)list * UNIT), &shape);
    if (shape == INLINE) {
        r.at = get_varint(r.at, &n);
        r.left = (size_t)n;
    } else {
        r.heads = p->slots + p->shapes[shape].first;
        r.left = p->shapes[shape].n;
    }
    return r;
}

static struct sv_arg read_head(struct reader *r)
{
    if (r->heads)
        return arg_of(*r->heads++);
    uint64_t key, size = 0;
    r->at = get_varint(r->at, &key);
    uint8_t type = *r->at++;
    if (containers >> type & 1)
        r->at = get_varint(r->at, &size);
    return arg_of(key << 32 | size << 8 | type);
}

static void read_text(struct reader *r, struct sv_arg *a)
{
    uint64_t v;
    r->at = get_varint(r->at, &v);
    if (v & 1) {
        a->text = (const char *)r->at;
        a->size = v >> 1 & 0xffffff;
        r->at += a->size;
        return;
    }
    uint64_t ref = r->pool->texts[v >> 1];
    a->text = (const char *)byte_at(r->pool, (size_t)(ref >> 24));
    a->size = ref & 0xffffff;
}

/* The next slot with its value. The caller has seen r->left > 0. */
static inline struct sv_arg read_arg(struct reader *r)
{
    uint64_t v;
    struct sv_arg a = read_head(r);
    r->left--;
    switch (a.type) {
    case SV_ARG_INT:
    case SV_ARG_THREAD_TIME:
    case SV_ARG_THREAD_DUR:
        r->at = get_varint(r->at, &v);
        a.i = sv_unzigzag(v);
        break;
    case SV_ARG_TEXT: read_text(r, &a); break;
    case SV_ARG_DOUBLE: r->at = get_double(r->at, &a.d); break;
    case SV_ARG_BOOL: a.i = *r->at++; break;
    case SV_ARG_UINT:
    case SV_ARG_POINTER:
    case SV_ARG_FLOW_BEGIN:
    case SV_ARG_FLOW:
    case SV_ARG_FLOW_END:
    case SV_ARG_CORRELATION: r->at = get_varint(r->at, &a.u); break;
    default: break;
    }
    return a;
}

size_t sv_lists_count(const struct sv_lists *p, uint32_t list)
{
    uint32_t a, b;
    if (list == 0)
        return 0;
    unsigned tag =
        read_pair(p, list, &a, &b); /* at most a join of chains of chains of plain lists */
    if (tag == INLINE)
        return read_list(p, list).left;
    size_t n = sv_lists_count(p, a) + sv_lists_count(p, b);
    return tag == JOIN ? 2 * n + 1 : n;
}

size_t sv_lists_decode(const struct sv_lists *p, uint32_t list, struct sv_arg *out)
{
    uint32_t a, b;
    if (list == 0)
        return 0;
    unsigned tag = read_pair(p, list, &a, &b);
    if (tag == JOIN) { /* both after the space for the result */
        struct sv_arg *begin = out + sv_lists_count(p, a) + sv_lists_count(p, b) + 1;
        size_t n_begin = sv_lists_decode(p, a, begin);
        struct sv_arg *end = begin + n_begin;
        return sv_args_join(out, begin, n_begin, end, sv_lists_decode(p, b, end));
    }
    if (tag == CHAIN) {
        size_t n = sv_lists_decode(p, a, out);
        return n + sv_lists_decode(p, b, out + n);
    }
    size_t n = 0;
    for (struct reader r = read_list(p, list); r.left; n++)
        out[n] = read_arg(&r);
    return n;
}

static bool matches(const struct sv_arg *a, sv_str key, unsigned type)
{
    return type ? a->type == type : a->key == key;
}

static bool find_plain(const struct sv_lists *p, uint32_t list, sv_str key, unsigned type,
                       struct sv_arg *out)
{
    struct reader r = read_list(p, list);
    while (r.left) {
        struct sv_arg a = read_arg(&r);
        if (matches(&a, key, type)) {
            *out = a;
            return true;
        }
        if (containers >> a.type & 1) /* members are not of the top level */
            for (size_t skip = a.size; skip && r.left; skip--)
                (void)read_arg(&r);
    }
    return false;
}

bool sv_lists_find(const struct sv_lists *p, uint32_t list, sv_str key, unsigned type,
                   struct sv_arg *out)
{
    uint32_t a, b;
    if (list == 0)
        return false;
    unsigned tag = read_pair(p, list, &a, &b);
    if (tag == INLINE)
        return find_plain(p, list, key, type, out);
    if (tag == JOIN && type == 0) /* what the end said is newer */
        return sv_lists_find(p, b, key, type, out) || sv_lists_find(p, a, key, type, out);
    if (sv_lists_find(p, a, key, type, out))
        return true;
    struct sv_arg start, end;
    if (tag == JOIN && type == SV_ARG_THREAD_DUR &&
        sv_lists_find(p, a, 0, SV_ARG_THREAD_TIME, &start) &&
        sv_lists_find(p, b, 0, SV_ARG_THREAD_TIME, &end)) {
        *out = (struct sv_arg){.type = SV_ARG_THREAD_DUR, .i = (int64_t)(end.u - start.u)};
        return true;
    }
    return sv_lists_find(p, b, key, type, out);
}

/* ---- searching ---- */

enum { KEY_IS_HIT = 255 }; /* else how many slots of a shape have to be looked at, and 1 */

static uint8_t slots_to_search(const uint64_t *heads, size_t n, const struct sv_args_search *s)
{
    size_t last = 0;
    for (size_t i = 0; i < n; i++) {
        if (heads[i] >> 32 && s->key_hits[heads[i] >> 32])
            return KEY_IS_HIT;
        last = s->is_number || (heads[i] & 0xff) == SV_ARG_TEXT ? i + 1 : last;
    }
    return (uint8_t)(last + 1);
}

static bool has_text_hit(const struct sv_lists *p, uint64_t v, const uint8_t *at,
                         struct sv_args_search *s)
{
    if (v & 1)
        return s->is_text_hit(s->ctx, (const char *)at, v >> 1 & 0xffffff);
    uint64_t ref = p->texts[v >> 1];
    uint8_t *known = &s->texts[v >> 1];
    if (!*known)
        *known = 1 + s->is_text_hit(s->ctx, (char *)byte_at(p, ref >> 24), ref & 0xffffff);
    return *known == 2;
}

enum sv_args_hit sv_lists_search(const struct sv_lists *p, uint32_t list, struct sv_args_search *s)
{
    uint64_t shape, v = 0;
    double d;
    const uint8_t *at = get_varint(byte_at(p, (size_t)list * UNIT), &shape);
    if (shape < SHAPE_FIRST)
        return SV_ARGS_UNSURE;
    const uint64_t *heads = p->slots + p->shapes[shape].first;
    uint8_t *known = &s->shapes[shape];
    *known = *known ? *known : slots_to_search(heads, p->shapes[shape].n, s);
    if (*known == KEY_IS_HIT)
        return SV_ARGS_HIT;
    for (size_t i = 0; i + 1 < *known; i++) {
        unsigned type = heads[i] & 0xff;
        if (1u << type & containers || type == SV_ARG_NULL)
            continue;
        at = type == SV_ARG_DOUBLE ? get_double(at, &d) : get_varint(at, &v);
        if (type == SV_ARG_TEXT && has_text_hit(p, v, at, s))
            return SV_ARGS_HIT;
        at += type == SV_ARG_TEXT && v & 1 ? v >> 1 & 0xffffff : 0;
        if ((type == SV_ARG_INT && s->is_number && sv_unzigzag(v) == s->number) ||
            (type == SV_ARG_UINT && s->is_number && s->number >= 0 && v == (uint64_t)s->number))
            return SV_ARGS_HIT;
    }
    return SV_ARGS_NO_HIT;
}

/* ---- files ---- */

void sv_lists_put(const struct sv_lists *p, struct sv_image_writer *w)
{
    size_t n_shapes = p->shapes ? p->n_shapes : 0, n_texts = p->texts ? p->n_texts : 0;
    sv_image_add(w, "args.bytes", p->bytes.at, p->bytes.at ? p->used : 0, 1);
    sv_image_add(w, "args.shapes", p->shapes, n_shapes * sizeof *p->shapes, sizeof *p->shapes);
    sv_image_add(w, "args.slots", p->slots, p->n_slots * sizeof *p->slots, sizeof *p->slots);
    sv_image_add(w, "args.texts", p->texts, n_texts * sizeof *p->texts, sizeof *p->texts);
}

void sv_lists_let_go(struct sv_lists *p)
{
    sv_lists_init(p);
}

/* Containers end within the ones that they are in. */
static bool nests(const uint64_t *heads, size_t n, uint32_t n_strings)
{
    uint32_t *ends = sv_alloc((n + 1) * sizeof *ends);
    size_t depth = 0;
    bool ok = true;
    ends[0] = (uint32_t)n;
    for (size_t i = 0; i < n && ok; i++) {
        struct sv_arg a = arg_of(heads[i]);
        while (depth && ends[depth] == i)
            depth--;
        ok = a.type >= SV_ARG_NULL && a.type <= SV_ARG_THREAD_DUR && a.key < n_strings;
        if (!ok || !(containers >> a.type & 1))
            continue;
        ok = a.size <= ends[depth] - i - 1;
        if (a.size)
            ends[++depth] = (uint32_t)i + 1 + a.size;
    }
    free(ends);
    return ok;
}

static bool check_tables(const struct sv_lists *p, uint32_t n_strings)
{
    for (size_t i = SHAPE_FIRST; i < p->n_shapes; i++) {
        const struct sv_list_shape *s = &p->shapes[i];
        if (s->n > SHAPE_SLOTS_MAX || s->first > p->n_slots || s->n > p->n_slots - s->first ||
            !nests(p->slots + s->first, s->n, n_strings))
            return false;
    }
    bool ok = true;
    for (size_t i = 1; i < p->n_texts; i++)
        ok &= (p->texts[i] >> 24) + (p->texts[i] & 0xffffff) <= p->used;
    return ok;
}

bool sv_lists_of_image(struct sv_lists *p, const struct sv_image *im, uint32_t n_strings)
{
    uint64_t used, n_shapes, n_slots, n_texts;
    const void *bytes = sv_image_find(im, "args.bytes", 1, &used);
    const void *shapes = sv_image_find(im, "args.shapes", sizeof *p->shapes, &n_shapes);
    const void *slots = sv_image_find(im, "args.slots", sizeof *p->slots, &n_slots);
    const void *texts = sv_image_find(im, "args.texts", sizeof *p->texts, &n_texts);
    sv_lists_init(p);
    if (!bytes || !shapes || !slots || !texts || used % UNIT || used > POOL_MAX)
        return false;
    p->bytes.at = (void *)(uintptr_t)bytes; /* nobody writes to a pool that is sealed */
    p->used = used ? (size_t)used : UNIT;
    p->shapes = (void *)(uintptr_t)shapes;
    p->n_shapes = n_shapes ? (size_t)n_shapes : SHAPE_FIRST;
    p->slots = (void *)(uintptr_t)slots;
    p->n_slots = (size_t)n_slots;
    p->texts = (void *)(uintptr_t)texts;
    p->n_texts = n_texts ? (size_t)n_texts : 1;
    return n_shapes != 1 && n_shapes != 2 && check_tables(p, n_strings);
}

#define PAIRS_MAX 62u /* in a list, beside itself; the store makes three */

/* A walk over all lists that believes nothing. */
struct checker {
    const struct sv_lists *pool;
    const uint8_t *at, *end;
    uint64_t *starts;
    uint64_t *heads; /* of an inline list */
    uint32_t n_strings;
};

static bool take_varint(struct checker *c, uint64_t *v)
{
    *v = 0;
    for (unsigned shift = 0; shift < 64 && c->at < c->end; shift += 7) {
        uint8_t byte = *c->at++;
        *v |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return true;
    }
    return false;
}

static bool take_bytes(struct checker *c, uint64_t n)
{
    if (n > (uint64_t)(c->end - c->at))
        return false;
    c->at += n;
    return true;
}

static bool take_value(struct checker *c, unsigned type)
{
    uint64_t v;
    switch (type) {
    case SV_ARG_BOOL: return take_bytes(c, 1);
    case SV_ARG_DOUBLE:
        if (c->at < c->end && *c->at == 1)
            return take_bytes(c, 1 + sizeof(double));
        return take_varint(c, &v);
    case SV_ARG_TEXT:
        if (!take_varint(c, &v))
            return false;
        return v & 1 ? v >> 1 <= 0xffffff && take_bytes(c, v >> 1)
                     : v >> 1 > 0 && v >> 1 < c->pool->n_texts;
    case SV_ARG_NULL:
    case SV_ARG_DICT:
    case SV_ARG_ARRAY:
    case SV_ARG_SOURCE:
    case SV_ARG_STACK: return true;
    default: return take_varint(c, &v);
    }
}

static bool take_inline(struct checker *c)
{
    uint64_t n, key, size;
    if (!take_varint(c, &n) || n > SV_ARGS_MAX)
        return false;
    for (uint64_t i = 0; i < n; i++) {
        size = 0;
        if (!take_varint(c, &key) || key > UINT32_MAX || c->at == c->end)
            return false;
        uint8_t type = *c->at++;
        if (type > SV_ARG_THREAD_DUR)
            return false;
        if (containers >> type & 1 && (!take_varint(c, &size) || size > SV_ARGS_MAX))
            return false;
        c->heads[i] = key << 32 | size << 8 | type;
        if (!take_value(c, type))
            return false;
    }
    return nests(c->heads, n, c->n_strings);
}

static bool is_start(const struct checker *c, uint64_t list)
{
    return list < c->pool->used / UNIT && c->starts[list / 64] >> list % 64 & 1;
}

/* Pairs of pairs stay small: what may still be decoded. */
struct budget {
    size_t pairs, args;
};

static bool spend(const struct checker *c, uint32_t list, struct budget *left)
{
    uint32_t a, b;
    if (list && read_pair(c->pool, list, &a, &b) != INLINE)
        return left->pairs-- > 0 && spend(c, a, left) && spend(c, b, left);
    size_t n = list ? read_list(c->pool, list).left : 0;
    if (n > left->args)
        return false;
    left->args -= n;
    return true;
}

/* Both parts come before the pair, so that there is no circle, and were checked. */
static bool take_pair(struct checker *c)
{
    uint64_t a, b;
    struct budget left = {.pairs = PAIRS_MAX, .args = 2 * (size_t)SV_ARGS_MAX};
    return take_varint(c, &a) && take_varint(c, &b) && (a == 0 || is_start(c, a)) &&
           is_start(c, b) && spend(c, (uint32_t)a, &left) && spend(c, (uint32_t)b, &left);
}

static bool take_list(struct checker *c)
{
    uint64_t shape;
    if (!take_varint(c, &shape) || shape >= c->pool->n_shapes)
        return false;
    if (shape == INLINE)
        return take_inline(c);
    if (shape < SHAPE_FIRST)
        return take_pair(c);
    const struct sv_list_shape *s = &c->pool->shapes[shape];
    for (size_t i = 0; i < s->n; i++)
        if (!take_value(c, arg_of(c->pool->slots[s->first + i]).type))
            return false;
    return true;
}

bool sv_lists_check(const struct sv_lists *p, uint32_t n_strings, uint64_t *starts)
{
    if (!p->bytes.at || p->used <= UNIT)
        return true;
    struct checker c = {.pool = p,
                        .at = byte_at(p, UNIT),
                        .end = byte_at(p, p->used),
                        .starts = starts,
                        .heads = sv_alloc((SV_ARGS_MAX + 1) * sizeof *c.heads),
                        .n_strings = n_strings};
    bool ok = true;
    while (ok && c.at < c.end) {
        size_t start = (size_t)(c.at - byte_at(p, 0));
        ok = take_list(&c);
        starts[start / UNIT / 64] |= (uint64_t)1 << start / UNIT % 64;
        size_t end = (size_t)(c.at - byte_at(p, 0));
        c.at = byte_at(p, (end + UNIT - 1) / UNIT * UNIT);
    }
    free(c.heads);
    return ok;
}
