/* Mutations of lists of records that begin with their size (rings, logs of names, records of the
 * kernel programs): sizes stay right, so that changes reach the code behind the check of the size.
 *
 * A record is chosen and a word of it changed, its end grown or cut, or it is removed, repeated or
 * moved. One change in sixteen goes to the bytes as they are, sizes included; the bytes before the
 * first record (struct mutate_shape.first) are changed as words. */
#ifndef TESTS_FUZZ_MUTATE_RECORDS_H
#define TESTS_FUZZ_MUTATE_RECORDS_H

#include "tests/fuzz/mutate.h"

struct mutate_shape {
    size_t first; /* bytes before the first record */
    size_t head;  /* bytes that every record has; 0: there are no records, only words */
    size_t align; /* of a record's size: a power of two */
    size_t most;  /* bytes of one record */
    /* Bytes of the record, as it says itself; 0: it says nothing that can be right. `left` is at
     * least `head`. */
    size_t (*size_of)(const uint8_t *at, size_t left);
    void (*set_size)(uint8_t *at, size_t bytes);
};

/* One of the whole records, each as likely as the others. False: there is none. */
static inline bool mutate_choose_record(struct mutate *m, const struct mutate_shape *s, size_t *at,
                                        size_t *bytes)
{
    size_t n = 0;
    for (size_t i = s->first; i < m->size && m->size - i >= s->head;) {
        size_t size = s->size_of(m->data + i, m->size - i);
        if (size < s->head || size > m->size - i)
            break;
        if (mutate_one_in(m, ++n)) {
            *at = i;
            *bytes = size;
        }
        i += size;
    }
    return n > 0;
}

/* A number of 1, 2, 4 or 8 bytes, at a place where one may be. */
static inline void mutate_word(struct mutate *m, size_t at, size_t bytes)
{
    size_t width = (size_t)1 << mutate_below(m, 4);
    if (bytes < width)
        return;
    size_t place = at + mutate_below(m, bytes / width) * width;
    uint64_t word = 0;
    memcpy(&word, m->data + place, width); /* little-endian, as all that Stave reads */
    word = mutate_number(m, word);
    memcpy(m->data + place, &word, width);
}

/* The bytes behind the head, changed; the size follows. */
static inline void mutate_body(struct mutate *m, const struct mutate_shape *s, size_t at,
                               size_t bytes)
{
    size_t n = mutate_bytes(m, at + s->head, bytes - s->head);
    while ((s->head + n) % s->align != 0 && n < sizeof m->scratch)
        m->scratch[n++] = 0;
    n -= (s->head + n) % s->align;
    if (s->head + n > s->most || !mutate_replace(m, at + s->head, bytes - s->head, m->scratch, n))
        return;
    s->set_size(m->data + at, s->head + n);
}

static inline void mutate_records_once(struct mutate *m, const struct mutate_shape *s)
{
    size_t at = 0, bytes = 0, other = 0, other_bytes = 0, n;
    size_t first = s->head == 0 || s->first > m->size ? m->size : s->first;
    if (s->head == 0 || (first > 0 && mutate_one_in(m, 8))) {
        mutate_word(m, 0, first);
        return;
    }
    if (!mutate_choose_record(m, s, &at, &bytes) ||
        !mutate_choose_record(m, s, &other, &other_bytes)) {
        m->size = LLVMFuzzerMutate(m->data, m->size, m->max);
        return;
    }
    switch (mutate_below(m, 8)) {
    case 0: (void)mutate_replace(m, at, bytes, NULL, 0); return;
    case 1:
    case 2: /* again, elsewhere */
        n = mutate_pick_up(m, at, bytes);
        if (n == bytes)
            (void)mutate_replace(m, other, 0, m->scratch, n);
        return;
    case 3: /* the body of another */
        n = mutate_pick_up(m, other + s->head, other_bytes - s->head);
        if (n == other_bytes - s->head &&
            mutate_replace(m, at + s->head, bytes - s->head, m->scratch, n))
            s->set_size(m->data + at, s->head + n);
        return;
    case 4: mutate_body(m, s, at, bytes); return;
    default:
        mutate_word(m, at, bytes);
        if (!mutate_one_in(m, 8))
            s->set_size(m->data + at, bytes);
        return;
    }
}

static inline size_t mutate_records(struct mutate *m, const struct mutate_shape *s)
{
    if (m->size == 0 || mutate_one_in(m, 16))
        return m->size = LLVMFuzzerMutate(m->data, m->size, m->max);
    do
        mutate_records_once(m, s);
    while (mutate_one_in(m, 2));
    return m->size;
}

/* A record of data2 among those of data1. */
static inline size_t mutate_records_cross(struct mutate *m, const struct mutate_shape *s,
                                          const uint8_t *data2, size_t size2)
{
    struct mutate from = {.data = (uint8_t *)(uintptr_t)data2, .size = size2, .max = size2};
    size_t at = m->size, bytes = 0, other = 0, other_bytes = 0;
    from.state = mutate_random(m);
    if (mutate_choose_record(&from, s, &other, &other_bytes)) {
        (void)mutate_choose_record(m, s, &at, &bytes);
        (void)mutate_replace(m, at, 0, data2 + other, other_bytes);
    }
    return m->size;
}

/* ---- shapes that several targets know ---- */

/* Rings: the upper 16 bits of the first word are the size in words (sdk/ring/session_layout.h). */
static inline size_t mutate_ring_size(const uint8_t *at, size_t left)
{
    (void)left;
    return ((size_t)at[6] | (size_t)at[7] << 8) * 8;
}
static inline void mutate_ring_set_size(uint8_t *at, size_t bytes)
{
    at[6] = (uint8_t)(bytes / 8);
    at[7] = (uint8_t)(bytes / 8 >> 8);
}

/* Logs of names: the first four bytes are the size (struct sv_name_head). */
static inline size_t mutate_name_size(const uint8_t *at, size_t left)
{
    uint32_t size;
    (void)left;
    memcpy(&size, at, sizeof size);
    return size;
}
static inline void mutate_name_set_size(uint8_t *at, size_t bytes)
{
    uint32_t size = (uint32_t)bytes;
    memcpy(at, &size, sizeof size);
}

#define MUTATE_RING_SHAPE(first_)                                                              \
    {                                                                                          \
        .first = (first_), .head = 16, .align = 8, .most = 65536, .size_of = mutate_ring_size, \
        .set_size = mutate_ring_set_size                                                       \
    }
#define MUTATE_NAMES_SHAPE(first_)                                                             \
    {                                                                                          \
        .first = (first_), .head = 24, .align = 8, .most = 65536, .size_of = mutate_name_size, \
        .set_size = mutate_name_set_size                                                       \
    }

/* The two functions that libFuzzer asks for; `change` is an expression over `m`, the input as a
 * `struct mutate`. */
#define MUTATE_BY(change, shape_)                                                                \
    size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)   \
    {                                                                                            \
        static struct mutate m;                                                                  \
        mutate_init(&m, data, size, max_size, seed);                                             \
        return change;                                                                           \
    }                                                                                            \
    size_t LLVMFuzzerCustomCrossOver(const uint8_t *data1, size_t size1, const uint8_t *data2,   \
                                     size_t size2, uint8_t *out, size_t max_size, unsigned seed) \
    {                                                                                            \
        static struct mutate m;                                                                  \
        mutate_init_copy(&m, data1, size1, out, max_size, seed);                                 \
        return mutate_records_cross(&m, shape_, data2, size2);                                   \
    }

/* For an input that is one list of records. */
#define MUTATE_BY_RECORDS(shape_) MUTATE_BY(mutate_records(&m, shape_), shape_)

#endif
