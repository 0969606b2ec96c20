/* Arbitrary bytes as a tar archive: the reader must end, stay within its limit and give the same
 * members however much of their content is taken.
 *
 * The first byte of the data chooses how much; the rest is the archive. */
#include "formats/tar.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);

#define LIMIT ((uint64_t)1 << 22)
enum { SUM_AT = 148, SUM_BYTES = 8, MAGIC_AT = 257 };

struct outcome {
    uint64_t hash, members;
    int code;
};

static void add(struct outcome *o, const void *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        o->hash = (o->hash ^ ((const uint8_t *)bytes)[i]) * 0x100000001b3u;
}

/* `most` bytes of each content are taken. */
static struct outcome read_all(const uint8_t *data, size_t size, size_t most)
{
    struct outcome o = {0};
    struct sv_err err = {0};
    struct sv_input *in;
    struct sv_tar_member m;
    if (sv_input_open_memory(data, size, "fuzz", &in, &err) != SV_OK)
        return o;
    struct sv_tar t = sv_tar_at(in, LIMIT);
    while ((o.code = sv_tar_next(&t, &m, &err)) > 0) {
        assert(in->pos + m.bytes <= LIMIT && m.bytes <= t.next - in->pos);
        add(&o, m.name, strlen(m.name));
        add(&o, &m.kind, sizeof m.kind);
        add(&o, &m.bytes, sizeof m.bytes);
        o.members++;
        uint64_t want = m.bytes < most ? m.bytes : most;
        if (sv_input_need(in, (size_t)want, &err) > 0)
            sv_input_skip(in, (size_t)want);
    }
    assert(o.code == 0 || err.code == o.code);
    assert(o.members <= LIMIT / SV_TAR_BLOCK);
    sv_tar_fini(&t);
    sv_input_close(in);
    return o;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const size_t most[] = {1, 511, 512, 513, 100000, (size_t)LIMIT};
    if (size == 0)
        return 0;
    struct outcome none = read_all(data + 1, size - 1, 0);
    struct outcome some =
        read_all(data + 1, size - 1, most[data[0] % (sizeof most / sizeof *most)]);
    assert(none.hash == some.hash && none.members == some.members && none.code == some.code);
    return 0;
}

/* A change that the sum would give away reaches nothing behind it: headers get their sums again. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    size = LLVMFuzzerMutate(data, size, max_size);
    for (size_t at = 1; seed % 4 && at + SV_TAR_BLOCK <= size; at += SV_TAR_BLOCK) {
        uint8_t *head = data + at;
        unsigned sum = 0;
        if (memcmp(head + MAGIC_AT, "ustar", 5) != 0)
            continue;
        memset(head + SUM_AT, ' ', SUM_BYTES);
        for (size_t i = 0; i < SV_TAR_BLOCK; i++)
            sum += head[i];
        char text[SUM_BYTES + 8];
        snprintf(text, sizeof text, "%06o", sum);
        memcpy(head + SUM_AT, text, 7);
    }
    return size;
}
