/*
 * Stands in for libFuzzer where there is none: gives each file named on the command line (or in a
 * named folder) to the fuzz target once. A crash is the finding; the name printed last is its input.
 */
#include <ftw.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned replayed;

static int replay(const char *path, const struct stat *st, int type)
{
    if (type != FTW_F)
        return 0;
    size_t size = (size_t)st->st_size;
    uint8_t *data = malloc(size ? size : 1); /* exactly the size: ASan sees one byte too far */
    FILE *f = fopen(path, "rb");
    if (!data || !f || fread(data, 1, size, f) != size) {
        perror(path);
        exit(2);
    }
    fclose(f);
    printf("%s\n", path);
    fflush(stdout);
    LLVMFuzzerTestOneInput(data, size);
    free(data);
    replayed++;
    return 0;
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (ftw(argv[i], replay, 16) != 0) {
            perror(argv[i]);
            return 2;
        }
    }
    printf("# %u inputs\n", replayed);
    return 0;
}
