/*
 * Replaces libFuzzer where there is none: gives each file named on the command line (or in a named
 * folder) to the fuzz target once. A crash is the finding; the name printed last is its input.
 *
 *     fuzz_NAME [-rounds=N] [-seed=S] FILE|FOLDER…
 *
 * Where there is no file an empty input takes its place. With rounds each file is also changed N
 * times, by the target's own mutator or by the small one below, and given again. The same seed
 * gives the same inputs, so a finding comes again.
 */
#include <ftw.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
__attribute__((weak)) size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size,
                                                     unsigned seed);

static unsigned replayed;
static unsigned long rounds, seed = 1;
static uint64_t state;

static size_t random_below(size_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return n ? (size_t)(state >> 33) % n : 0;
}

/* One change of libFuzzer's kind: a bit, a byte, a run of bytes more, less or copied. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size)
{
    size_t at = random_below(size), n = 1 + random_below(16);
    switch (random_below(5)) {
    case 0:
        if (size > 0)
            data[at] ^= (uint8_t)(1u << random_below(8));
        return size;
    case 1:
        if (size > 0)
            data[at] = (uint8_t)random_below(256);
        return size;
    case 2:
        n = n < max_size - size ? n : max_size - size;
        memmove(data + at + n, data + at, size - at);
        for (size_t i = 0; i < n; i++)
            data[at + i] = (uint8_t)random_below(256);
        return size + n;
    case 3:
        n = n < size - at ? n : size - at;
        memmove(data + at, data + at + n, size - at - n);
        return size - n;
    default:
        n = n < size - at ? n : size - at;
        memmove(data + random_below(size - n + 1), data + at, n);
        return size;
    }
}

/* A buffer of exactly the size: ASan sees one byte too far. */
static void give(const uint8_t *bytes, size_t size)
{
    uint8_t *data = malloc(size ? size : 1);
    if (!data)
        abort();
    if (size)
        memcpy(data, bytes, size);
    LLVMFuzzerTestOneInput(data, size);
    free(data);
    replayed++;
}

static void give_changed(const uint8_t *bytes, size_t size)
{
    size_t max = size * 2 + 256, n = size;
    uint8_t *data = malloc(max);
    if (!data)
        abort();
    state = seed;
    for (unsigned long i = 0; i < rounds; i++) {
        if (i % 4 == 0) { /* a few changes upon each other, then from the beginning */
            memcpy(data, bytes, size);
            n = size;
        }
        n = LLVMFuzzerCustomMutator
                ? LLVMFuzzerCustomMutator(data, n, max, (unsigned)random_below(SIZE_MAX))
                : LLVMFuzzerMutate(data, n, max);
        give(data, n);
    }
    free(data);
}

static void give_all(const uint8_t *bytes, size_t size)
{
    give(bytes, size);
    give_changed(bytes, size);
}

static int replay(const char *path, const struct stat *st, int type)
{
    if (type != FTW_F)
        return 0;
    size_t size = (size_t)st->st_size;
    uint8_t *data = malloc(size ? size : 1);
    FILE *f = fopen(path, "rb");
    if (!data || !f || fread(data, 1, size, f) != size) {
        perror(path);
        exit(2);
    }
    fclose(f);
    printf("%s\n", path);
    fflush(stdout);
    give_all(data, size);
    free(data);
    return 0;
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strncmp(argv[i], "-rounds=", 8) == 0) {
            rounds = strtoul(argv[i] + 8, NULL, 10);
        } else if (strncmp(argv[i], "-seed=", 6) == 0) {
            seed = strtoul(argv[i] + 6, NULL, 10);
        } else if (ftw(argv[i], replay, 16) != 0) {
            perror(argv[i]);
            return 2;
        }
    }
    if (replayed == 0)
        give_all((const uint8_t *)"", 0);
    printf("# %u inputs\n", replayed);
    return 0;
}
