/* Mutations of inputs that are cut into sections (tests/fuzz/session_fuzz.h): four bytes of length,
 * then the bytes. A section is changed by what its number says is in it, and its length written
 * anew; now and then a whole section is removed, repeated or moved. */
#ifndef TESTS_FUZZ_MUTATE_SECTIONS_H
#define TESTS_FUZZ_MUTATE_SECTIONS_H

#include "tests/fuzz/mutate_records.h"

enum { MUTATE_SECTION_HEAD = 4, MUTATE_SECTION_MAX = 64 << 10 };

static inline size_t mutate_section_size(const uint8_t *at, size_t left)
{
    uint32_t len;
    memcpy(&len, at, sizeof len);
    return len <= left - MUTATE_SECTION_HEAD ? MUTATE_SECTION_HEAD + (size_t)len : 0;
}

static inline void mutate_section_set_size(uint8_t *at, size_t bytes)
{
    uint32_t len = (uint32_t)(bytes - MUTATE_SECTION_HEAD);
    memcpy(at, &len, sizeof len);
}

static const struct mutate_shape mutate_section_shape = {.head = MUTATE_SECTION_HEAD,
                                                         .align = 1,
                                                         .most = MUTATE_SECTION_MAX,
                                                         .size_of = mutate_section_size,
                                                         .set_size = mutate_section_set_size};

static inline size_t mutate_section_number(const struct mutate *m, size_t of)
{
    size_t n = 0;
    for (size_t at = 0; at < of; n++)
        at += mutate_section_size(m->data + at, m->size - at);
    return n;
}

/* shapes[i]: what the i-th section holds; those past the end are like the last ones, `period` of
 * them in turn. */
static inline size_t mutate_sections(struct mutate *m, const struct mutate_shape *shapes,
                                     size_t n_shapes, size_t period)
{
    static struct mutate inner;
    static uint8_t bytes[MUTATE_SECTION_MAX];
    size_t at = 0, size = 0;
    if (mutate_one_in(m, 16) || !mutate_choose_record(m, &mutate_section_shape, &at, &size) ||
        size > MUTATE_SECTION_MAX / 2)
        return mutate_records(m, &mutate_section_shape);
    size_t number = mutate_section_number(m, at), len = size - MUTATE_SECTION_HEAD;
    while (number >= n_shapes)
        number -= period;
    size_t left = m->max - m->size, most = len + (left < len + 256 ? left : len + 256);
    memcpy(bytes, m->data + at + MUTATE_SECTION_HEAD, len);
    mutate_init(&inner, bytes, len, most, (unsigned)mutate_random(m));
    size_t made = mutate_records(&inner, &shapes[number]);
    if (mutate_replace(m, at + MUTATE_SECTION_HEAD, len, bytes, made))
        mutate_section_set_size(m->data + at, MUTATE_SECTION_HEAD + made);
    return m->size;
}

/* For an input that is a list of sections. */
#define MUTATE_BY_SECTIONS(shapes_, n_shapes_, period_) \
    MUTATE_BY(mutate_sections(&m, shapes_, n_shapes_, period_), &mutate_section_shape)

#endif
