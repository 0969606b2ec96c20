/* Open-addressing hash maps: 64-bit key → 64-bit value, and byte string → small number.
 *
 * Both grow by doubling, never shrink, and are not safe against concurrent use. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sv_map_slot {
    uint64_t key, value;
};

/* Key 0 is allowed. Deletion leaves no tombstones (backward shift). Keys may come from a hostile
 * file: when so many meet that it cannot be chance, the map is made anew with a salt that the
 * file's author cannot know. */
struct sv_map {
    struct sv_map_slot *slots;
    uint8_t *used;
    size_t n, cap; /* cap is 0 or a power of two */
    uint64_t salt; /* 0: nothing odd so far, and places are the same in every run */
    size_t calm;   /* no new salt before there are so many keys */
};

/* In a table of this kind, filled to at most 3/4 and with keys that were not chosen for it, the
 * longest way to a key has about 500 steps at 10^8 keys. */
#define SV_MAP_STEPS_MAX 1000u

void sv_map_fini(struct sv_map *m); /* a zeroed struct is a valid empty map */
void sv_map_clear(struct sv_map *m);
uint64_t *sv_map_find(const struct sv_map *m, uint64_t key);        /* NULL when absent */
uint64_t *sv_map_add(struct sv_map *m, uint64_t key, bool *is_new); /* value is 0 when new */
bool sv_map_remove(struct sv_map *m, uint64_t key);

/* 64-bit mixing (a bijection) and hashing of bytes; stable across runs and machines, so that uuids
 * made from them are too. Not for adversarial secrecy. */
uint64_t sv_mix64(uint64_t x);
static inline uint64_t sv_hash_pair(uint64_t a, uint64_t b)
{
    return sv_mix64(a ^ sv_mix64(b + 0x9e3779b97f4a7c15ull));
}
uint64_t sv_hash_bytes(const void *bytes, size_t len, uint64_t seed);
