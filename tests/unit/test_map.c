/* The hash map against a plain array, and the hashes' fixed values (they are part of file
 * formats). */
#include "core/base/map.h"
#include "tests/harness/test.h"

TEST(behaves_like_an_array_under_random_operations)
{
    enum { KEYS = 500 };
    bool there[KEYS] = {false};
    uint64_t values[KEYS] = {0}, random = 1;
    struct sv_map m = {0};
    for (int step = 0; step < 50000; step++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        size_t k = (random >> 33) % KEYS;
        if ((random >> 20) % 3 == 0) {
            CHECK_INT_EQ(sv_map_remove(&m, k), there[k]);
            there[k] = false;
        } else {
            bool is_new;
            uint64_t *v = sv_map_add(&m, k, &is_new);
            CHECK_INT_EQ(is_new, !there[k]);
            if (!is_new)
                CHECK_UINT_EQ(*v, values[k]);
            *v = values[k] = random;
            there[k] = true;
        }
    }
    size_t n = 0;
    for (size_t k = 0; k < KEYS; k++) {
        uint64_t *v = sv_map_find(&m, k);
        CHECK_INT_EQ(v != NULL, there[k]);
        if (v)
            CHECK_UINT_EQ(*v, values[k]);
        n += there[k];
    }
    CHECK_UINT_EQ(m.n, n);
    sv_map_fini(&m);
}

TEST(hashes_never_change)
{
    CHECK_UINT_EQ(sv_mix64(1), 0x3c0aad46f555e0b9u);
    CHECK_UINT_EQ(sv_hash_bytes("", 0, 0), 0xfe3832a7bbafbde2u);
    CHECK_UINT_EQ(sv_hash_bytes("stave", 5, 0), 0xf0995199d4c54c60u);
    CHECK_UINT_EQ(sv_hash_bytes("a longer text of more than 8 bytes", 34, 7), 0x39faa95ca7b76280u);
}

TEST(equal_prefixes_hash_apart)
{
    CHECK(sv_hash_bytes("abc", 3, 0) != sv_hash_bytes("abc\0", 4, 0));
    CHECK(sv_hash_bytes("abc", 3, 0) != sv_hash_bytes("abc", 3, 1));
}

/* The number that sv_mix64() makes x of. */
static uint64_t unmix(uint64_t x)
{
    const uint64_t k = 0xe9846af9b1a615dull;
    uint64_t inverse = k; /* Newton's way: each round doubles the digits that are right */
    for (int i = 0; i < 6; i++)
        inverse *= 2 - k * inverse;
    x ^= x >> 28 ^ x >> 56;
    x *= inverse;
    x ^= x >> 32;
    x *= inverse;
    return x ^ x >> 32;
}

static size_t longest_way(const struct sv_map *m)
{
    size_t most = 0;
    for (size_t i = 0; i < m->cap; i++) {
        if (!m->used[i])
            continue;
        size_t way = (i - sv_mix64(m->slots[i].key ^ m->salt)) & (m->cap - 1);
        most = way > most ? way : most;
    }
    return most;
}

/* Keys that all want one place: a hostile file has as many as it likes. */
TEST(keys_that_were_chosen_to_meet_are_taken_apart)
{
    enum { N = 20000 };
    struct sv_map m = {0};
    REQUIRE(sv_mix64(unmix(0x123456789abcdefull)) == 0x123456789abcdefull);
    for (uint64_t i = 1; i <= N; i++)
        *sv_map_add(&m, unmix(i << 32 | 5), NULL) = i;
    CHECK(m.salt != 0);
    CHECK_UINT_EQ(m.n, N);
    CHECK(longest_way(&m) <= SV_MAP_STEPS_MAX + 1);
    for (uint64_t i = 1; i <= N; i++) {
        const uint64_t *value = sv_map_find(&m, unmix(i << 32 | 5));
        if (!CHECK(value && *value == i))
            break;
    }
    for (uint64_t i = 1; i <= N; i += 2)
        CHECK(sv_map_remove(&m, unmix(i << 32 | 5)));
    CHECK_UINT_EQ(m.n, N / 2);
    CHECK(!sv_map_find(&m, unmix(1ull << 32 | 5)));
    CHECK(sv_map_find(&m, unmix(2ull << 32 | 5)) != NULL);
    sv_map_fini(&m);
}

TEST(keys_that_were_not_keep_their_places)
{
    struct sv_map m = {0};
    for (uint64_t i = 0; i < 300000; i++)
        *sv_map_add(&m, i * 8, NULL) = i;
    CHECK_UINT_EQ(m.salt, 0);
    sv_map_fini(&m);
}
