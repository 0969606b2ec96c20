/* SHA-256: the vectors of FIPS 180-4 and of NIST's long message, in pieces of any size. */
#include "core/base/sha256.h"
#include "tests/harness/test.h"

#include <string.h>

static void hash(const char *text, size_t n, size_t piece, char hex[static SV_SHA256_TEXT])
{
    struct sv_sha256 h;
    sv_sha256_init(&h);
    for (size_t i = 0; i < n; i += piece)
        sv_sha256_add(&h, text + i, n - i < piece ? n - i : piece);
    sv_sha256_end(&h, hex);
}

TEST(vectors)
{
    static const char *const known[][2] = {
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
    };
    char hex[SV_SHA256_TEXT];
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        hash(known[i][0], strlen(known[i][0]), 1000, hex);
        CHECK_STR_EQ(hex, known[i][1]);
    }
}

TEST(pieces)
{
    static char text[1000];
    char hex[SV_SHA256_TEXT];
    memset(text, 'a', sizeof text);
    struct sv_sha256 h;
    sv_sha256_init(&h);
    for (int i = 0; i < 1000; i++)
        sv_sha256_add(&h, text, sizeof text);
    sv_sha256_end(&h, hex);
    CHECK_STR_EQ(hex, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    char whole[SV_SHA256_TEXT];
    for (size_t n = 0; n < 200; n++) {
        hash(text, n, 1000, whole);
        for (size_t piece = 1; piece < 70; piece += 3) {
            hash(text, n, piece, hex);
            CHECK_STR_EQ(hex, whole);
        }
    }
}
