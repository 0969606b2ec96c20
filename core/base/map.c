/* The hash map and the hashes.
 *
 * Linear probing at a load of at most 3/4; removal shifts the following run back, so lookups never
 * meet tombstones. The byte hash reads eight bytes at a time and folds by a 64×64→128
 * multiplication; its values are part of the file formats (track uuids), so it must never change.
 * Both hashes are public, so keys can be made that all want one place; then the map takes another
 * order, by where it lies in memory. */
#include "core/base/map.h"
#include "core/base/mem.h"

#include <stdlib.h>
#include <string.h>

uint64_t sv_mix64(uint64_t x)
{
    x ^= x >> 32;
    x *= 0xe9846af9b1a615dull;
    x ^= x >> 32;
    x *= 0xe9846af9b1a615dull;
    x ^= x >> 28;
    return x;
}

static uint64_t fold(uint64_t a, uint64_t b)
{
    __extension__ typedef unsigned __int128 u128;
    u128 m = (u128)a * b;
    return (uint64_t)m ^ (uint64_t)(m >> 64);
}

static uint64_t load_tail(const uint8_t *p, size_t n)
{
    uint64_t w = 0;
    memcpy(&w, p, n);
    return w;
}

uint64_t sv_hash_bytes(const void *bytes, size_t len, uint64_t seed)
{
    static const uint64_t k0 = 0x9e3779b97f4a7c15ull, k1 = 0xd6e8feb86659fd93ull;
    const uint8_t *p = bytes;
    uint64_t h = seed ^ fold(len ^ k0, k1);
    for (size_t left = len; left;) {
        uint64_t w;
        if (left >= 8) {
            memcpy(&w, p, 8);
            p += 8;
            left -= 8;
        } else {
            w = load_tail(p, left);
            left = 0;
        }
        h = fold(h ^ w ^ k0, k1 ^ h << 1);
        h += w; /* keeps a zero product from forgetting the past */
    }
    return sv_mix64(h);
}

void sv_map_fini(struct sv_map *m)
{
    free(m->slots);
    free(m->used);
    *m = (struct sv_map){0};
}

void sv_map_clear(struct sv_map *m)
{
    if (m->cap)
        memset(m->used, 0, m->cap);
    m->n = 0;
}

static size_t home(const struct sv_map *m, uint64_t key)
{
    return (size_t)sv_mix64(key ^ m->salt) & (m->cap - 1);
}

/* The slot that holds key, or the free one where it belongs. */
static size_t locate(const struct sv_map *m, uint64_t key)
{
    size_t i = home(m, key);
    while (m->used[i] && m->slots[i].key != key)
        i = (i + 1) & (m->cap - 1);
    return i;
}

/* The same keys in a table of `cap` slots. A map that has a salt gets another one, since the
 * address is another. */
static void remake(struct sv_map *m, size_t cap, bool is_salted)
{
    struct sv_map old = *m;
    m->cap = cap;
    m->slots = sv_alloc(m->cap * sizeof *m->slots);
    m->salt = is_salted ? sv_mix64((uintptr_t)m->slots) | 1 : 0;
    m->used = sv_alloc(m->cap);
    for (size_t i = 0; i < old.cap; i++) {
        if (!old.used[i])
            continue;
        size_t at = locate(m, old.slots[i].key);
        m->used[at] = 1;
        m->slots[at] = old.slots[i];
    }
    free(old.slots);
    free(old.used);
}

/* A new key came to slot i: was the way there longer than chance makes it? */
static bool is_crowded(const struct sv_map *m, uint64_t key, size_t i)
{
    return ((i - home(m, key)) & (m->cap - 1)) > SV_MAP_STEPS_MAX && m->n >= m->calm;
}

uint64_t *sv_map_find(const struct sv_map *m, uint64_t key)
{
    if (m->n == 0)
        return NULL;
    size_t i = locate(m, key);
    return m->used[i] ? &m->slots[i].value : NULL;
}

uint64_t *sv_map_add(struct sv_map *m, uint64_t key, bool *is_new)
{
    if (m->n >= m->cap / 4 * 3)
        remake(m, m->cap ? m->cap * 2 : 16, m->salt != 0);
    size_t i = locate(m, key);
    bool fresh = !m->used[i];
    if (fresh && is_crowded(m, key, i)) {
        m->calm = 2 * m->n;
        remake(m, m->cap, true);
        i = locate(m, key);
    }
    if (fresh) {
        m->used[i] = 1;
        m->slots[i] = (struct sv_map_slot){.key = key};
        m->n++;
    }
    if (is_new)
        *is_new = fresh;
    return &m->slots[i].value;
}

bool sv_map_remove(struct sv_map *m, uint64_t key)
{
    if (m->n == 0)
        return false;
    size_t hole = locate(m, key), mask = m->cap - 1;
    if (!m->used[hole])
        return false;
    for (size_t i = (hole + 1) & mask; m->used[i]; i = (i + 1) & mask) {
        /* An entry may move back only if its home does not lie after the hole. */
        if (((i - home(m, m->slots[i].key)) & mask) >= ((i - hole) & mask)) {
            m->slots[hole] = m->slots[i];
            hole = i;
        }
    }
    m->used[hole] = 0;
    m->n--;
    return true;
}
