/* Mutations of protobuf messages that leave every length right, so that changes reach the code
 * behind the frames.
 *
 * No schema is needed: bytes that parse as a message to their last byte are taken for one. A field
 * is chosen at any depth and changed, removed, repeated, moved, renumbered, or given another's
 * value; then the lengths of all messages around it are written anew. */
#ifndef TESTS_FUZZ_MUTATE_WIRE_H
#define TESTS_FUZZ_MUTATE_WIRE_H

#include "core/base/wire.h"
#include "tests/fuzz/mutate.h"

enum { MUTATE_DEPTH = 10 };

struct mutate_field {
    size_t at, value, end; /* offsets: tag, value (behind a length), end */
    size_t around
        [MUTATE_DEPTH]; /* offsets of the lengths of the messages around it, outermost first */
    size_t depth;
    uint32_t id, type;
    bool is_leaf; /* no message in it */
};

struct mutate_choice {
    struct mutate *m;
    struct mutate_field *chosen;
    size_t around[MUTATE_DEPTH];
    size_t n; /* fields seen */
};

static inline bool mutate_is_message(const uint8_t *bytes, size_t len)
{
    struct sv_pb w = sv_pb_at(bytes, len);
    struct sv_pb_field f;
    while (sv_pb_next(&w, &f)) {}
    return len > 0 && !w.bad;
}

/* One of all fields from `at` to `end`, each as likely as the others. */
static inline void mutate_visit(struct mutate_choice *c, size_t at, size_t end, size_t depth)
{
    struct mutate *m = c->m;
    struct sv_pb w = sv_pb_at(m->data + at, end - at);
    struct sv_pb_field f;
    for (const uint8_t *start = w.p; sv_pb_next(&w, &f); start = w.p) {
        bool is_bytes = f.type == SV_PB_BYTES;
        size_t value = is_bytes ? (size_t)(f.bytes - m->data) : 0;
        bool is_leaf = !is_bytes || depth == MUTATE_DEPTH ||
                       !mutate_is_message(f.bytes, (size_t)f.u);
        struct sv_pb tag = sv_pb_at(start, (size_t)(w.p - start));
        uint64_t unused;
        (void)sv_pb_varint(&tag, &unused);
        if (mutate_one_in(m, ++c->n)) {
            *c->chosen =
                (struct mutate_field){.at = (size_t)(start - m->data),
                                      .value = is_bytes ? value : (size_t)(tag.p - m->data),
                                      .end = (size_t)(w.p - m->data),
                                      .depth = depth,
                                      .id = f.id,
                                      .type = f.type,
                                      .is_leaf = is_leaf};
            memcpy(c->chosen->around, c->around, sizeof c->around);
        }
        if (is_leaf)
            continue;
        c->around[depth] = (size_t)(tag.p - m->data);
        mutate_visit(c, value, value + (size_t)f.u, depth + 1);
    }
}

/* False: there is no field. What follows the last whole field of the outermost message is left
 * alone. */
static inline bool mutate_choose(struct mutate *m, struct mutate_field *f)
{
    struct mutate_choice c = {.m = m, .chosen = f};
    mutate_visit(&c, 0, m->size, 0);
    return c.n > 0;
}

/* Replaces bytes inside the messages around `f` and writes their lengths anew. */
static inline void mutate_splice(struct mutate *m, const struct mutate_field *f, size_t at,
                                 size_t n_old, const uint8_t *bytes, size_t n_new)
{
    if (n_new > n_old && n_new - n_old + 10 * f->depth > m->max - m->size)
        return; /* each length may become longer by some bytes */
    size_t before = m->size;
    if (!mutate_replace(m, at, n_old, bytes, n_new))
        return;
    for (size_t i = f->depth; i-- > 0;) {
        struct sv_pb w = sv_pb_at(m->data + f->around[i], m->size - f->around[i]);
        uint64_t len;
        uint8_t text[10];
        if (!sv_pb_varint(&w, &len))
            return;
        len += m->size - before; /* by all that became longer or shorter in it so far */
        size_t n = sv_put_varint_at(text, len);
        size_t n_text = (size_t)(w.p - m->data) - f->around[i];
        (void)mutate_replace(m, f->around[i], n_text, text, n);
    }
}

static inline size_t mutate_put_field(struct mutate *m, uint8_t *to, uint32_t id, uint32_t type,
                                      uint64_t value)
{
    size_t n = sv_put_varint_at(to, (uint64_t)id << 3 | type);
    if (type == SV_PB_VARINT)
        return n + sv_put_varint_at(to + n, value);
    if (type == SV_PB_BYTES) {
        to[n++] = 8;
        type = SV_PB_FIXED64;
    }
    uint64_t random = mutate_one_in(m, 2) ? value : mutate_random(m);
    memcpy(to + n, &random, 8);
    return n + (type == SV_PB_FIXED32 ? 4 : 8);
}

static inline uint32_t mutate_id(struct mutate *m, uint32_t old, uint32_t other)
{
    switch (mutate_below(m, 4)) {
    case 0: return other;
    case 1: return old + 1;
    case 2: return old > 1 ? old - 1 : 1;
    default: return 1 + (uint32_t)mutate_below(m, 128);
    }
}

static inline void mutate_value(struct mutate *m, const struct mutate_field *f)
{
    uint64_t old = 0;
    size_t n;
    if (f->type == SV_PB_BYTES) {
        n = mutate_bytes(m, f->value, f->end - f->value);
        uint8_t made[MUTATE_SCRATCH + 20];
        size_t head = sv_put_varint_at(made, (uint64_t)f->id << 3 | SV_PB_BYTES);
        head += sv_put_varint_at(made + head, n);
        memcpy(made + head, m->scratch, n);
        mutate_splice(m, f, f->at, f->end - f->at, made, head + n);
        return;
    }
    if (f->type == SV_PB_VARINT) {
        struct sv_pb w = sv_pb_at(m->data + f->value, f->end - f->value);
        (void)sv_pb_varint(&w, &old);
        n = sv_put_varint_at(m->scratch, mutate_number(m, old));
    } else {
        n = f->end - f->value;
        memcpy(&old, m->data + f->value, n);
        old = mutate_number(m, old);
        memcpy(m->scratch, &old, n);
    }
    mutate_splice(m, f, f->value, f->end - f->value, m->scratch, n);
}

/* The tag of f before the value of another field (with its length), in place of f. */
static inline void mutate_retag(struct mutate *m, const struct mutate_field *f, uint32_t id,
                                const struct mutate_field *from)
{
    uint8_t made[MUTATE_SCRATCH + 10];
    struct sv_pb tag = sv_pb_at(m->data + from->at, from->end - from->at);
    uint64_t old;
    (void)sv_pb_varint(&tag, &old);
    size_t rest = from->end - (size_t)(tag.p - m->data);
    if (rest > MUTATE_SCRATCH)
        return;
    size_t n = sv_put_varint_at(made, (uint64_t)id << 3 | from->type);
    memcpy(made + n, tag.p, rest);
    mutate_splice(m, f, f->at, f->end - f->at, made, n + rest);
}

static inline void mutate_wire_once(struct mutate *m)
{
    struct mutate_field f, other;
    if (!mutate_choose(m, &f) || !mutate_choose(m, &other))
        return;
    size_t n;
    switch (mutate_below(m, 10)) {
    case 0: mutate_splice(m, &f, f.at, f.end - f.at, NULL, 0); return;
    case 1: /* again, behind itself or elsewhere */
        n = mutate_pick_up(m, f.at, f.end - f.at);
        if (n == f.end - f.at)
            mutate_splice(m, &other, other.end, 0, m->scratch, n);
        return;
    case 2: mutate_retag(m, &f, f.id, &other); return;
    case 3: mutate_retag(m, &f, mutate_id(m, f.id, other.id), &f); return;
    case 4:
        n = mutate_put_field(m, m->scratch, mutate_id(m, f.id, other.id),
                             (const uint32_t[]){0, 1, 2, 5}[mutate_below(m, 4)],
                             mutate_number(m, f.end));
        mutate_splice(m, &f, f.at, 0, m->scratch, n);
        return;
    case 5: /* the other kind of number */
        n = mutate_put_field(m, m->scratch, f.id,
                             f.type == SV_PB_VARINT ? SV_PB_FIXED64 : SV_PB_VARINT,
                             mutate_number(m, f.end));
        mutate_splice(m, &f, f.at, f.end - f.at, m->scratch, n);
        return;
    default:
        if (f.is_leaf || mutate_one_in(m, 8))
            mutate_value(m, &f);
        else
            mutate_value(m, &other);
        return;
    }
}

/* One to four changes; one time in sixteen to the bytes as they are, frames included. */
static inline size_t mutate_wire(struct mutate *m)
{
    if (m->size == 0 || mutate_one_in(m, 16))
        return m->size = LLVMFuzzerMutate(m->data, m->size, m->max);
    do
        mutate_wire_once(m);
    while (mutate_one_in(m, 2));
    return m->size;
}

/* data1 with one of data2's fields in it, at the same depth where there is one. */
static inline size_t mutate_wire_cross(struct mutate *m, const uint8_t *data2, size_t size2)
{
    struct mutate from = {.data = (uint8_t *)(uintptr_t)data2, .size = size2, .max = size2};
    struct mutate_field f, to;
    from.state = mutate_random(m);
    if (!mutate_choose(&from, &f))
        return m->size;
    bool found = false;
    for (int i = 0; !found && i < 4; i++)
        found = mutate_choose(m, &to) && to.depth == f.depth;
    if (f.end - f.at > sizeof m->scratch || (!found && m->size > 0))
        return m->size;
    if (!found)
        to = (struct mutate_field){.end = m->size};
    mutate_splice(m, &to, to.end, 0, data2 + f.at, f.end - f.at);
    return m->size;
}

#endif
