/* Tokens for paths: the same for the same, different for different, nothing left of the words. */
#include "files/redact_path.h"
#include "tests/harness/test.h"

#include <string.h>

TEST(components_become_stable_tokens)
{
    struct sv_redact r = {{1, 2}}, other = {{1, 3}};
    char a[64], b[64];
    size_t n = sv_redact_path(&r, "/data/x/data", 12, a, sizeof a);
    CHECK_UINT_EQ(n, 3 + 3 * SV_REDACT_TOKEN);
    CHECK_MEM_EQ(a + 1, a + 3 + 2 * SV_REDACT_TOKEN, SV_REDACT_TOKEN);
    CHECK(memcmp(a + 1, a + 2 + SV_REDACT_TOKEN, SV_REDACT_TOKEN) != 0);
    CHECK(!memmem(a, n, "data", 4));
    sv_redact_path(&other, "/data", 5, b, sizeof b);
    CHECK(memcmp(a, b, 1 + SV_REDACT_TOKEN) != 0); /* another key, other tokens */
}

TEST(odd_paths_stay_within_bounds)
{
    struct sv_redact r = {{5, 6}};
    char to[16];
    CHECK_UINT_EQ(sv_redact_path(&r, "", 0, to, sizeof to), 0);
    CHECK_UINT_EQ(sv_redact_path(&r, "//", 2, to, sizeof to), 2);
    CHECK_UINT_EQ(sv_redact_path(&r, "/a/b", 4, to, sizeof to),
                  2 + SV_REDACT_TOKEN); /* the second does not fit */
    CHECK_UINT_EQ(sv_redact_path(&r, "pipe:[17]", 9, to, sizeof to), 9);
    CHECK_MEM_EQ(to, "pipe:[17]", 9);
    CHECK(sv_redact_init(&r));
}

/* The reference value of SipHash-2-4 for the key 00…0f and the message 00…0e is a129ca6149be45e5;
 * the tokens are its low bits, five at a time. */
TEST(the_hash_is_siphash)
{
    struct sv_redact r = {{0x0706050403020100u, 0x0f0e0d0c0b0a0908u}};
    char message[15], to[16], expected[SV_REDACT_TOKEN];
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz234567";
    for (int i = 0; i < 15; i++)
        message[i] = (char)i;
    for (int i = 0; i < SV_REDACT_TOKEN; i++)
        expected[i] = letters[0xa129ca6149be45e5u >> (i * 5) & 31];
    CHECK_UINT_EQ(sv_redact_path(&r, message, 15, to, sizeof to), SV_REDACT_TOKEN);
    CHECK_MEM_EQ(to, expected, SV_REDACT_TOKEN);
}
