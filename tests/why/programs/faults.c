/* Each step reads pages of a mapped file: faults cold | warm. Cold pages are dropped from the page
 * cache before the step, and read one by one. */
#include "truth.h"

#include <sys/mman.h>

enum { STEPS = 40, SIZE = 16 << 20 };

static volatile unsigned sink;

__attribute__((noinline)) static void touch_pages(const char *map, int step, int64_t ns)
{
    int64_t end = why_now() + ns; /* however fast the disk is */
    for (unsigned i = 0; i < SIZE / 4096 && why_now() < end; i++)
        sink += (unsigned char)map[(size_t)(i * 1031 + (unsigned)step * 7) % (SIZE / 4096) * 4096];
}

int main(int argc, char **argv)
{
    int cold = argc < 2 || strcmp(argv[1], "cold") == 0;
    struct why w = {0};
    int64_t waited = 0;
    int fd = why_file("table.bin", O_CREAT | O_RDWR);
    char *block = calloc(1, 1 << 20);
    for (int i = 0; i < SIZE >> 20; i++) {
        memset(block, i + 1, 1 << 20);
        if (pwrite(fd, block, 1 << 20, (off_t)i << 20) != 1 << 20)
            abort();
    }
    fsync(fd);
    char *map = mmap(NULL, SIZE, PROT_READ, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED)
        abort();
    why_begin(&w);
    for (int i = 0; i < STEPS; i++) {
        STAVE_SCOPE("step", "step", "n", i);
        if (cold) { /* unmapped pages leave the cache */
            madvise(map, SIZE, MADV_DONTNEED);
            posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
            madvise(map, SIZE, MADV_RANDOM);
        }
        int64_t begin = why_now();
        touch_pages(map, i, cold ? 40000000 : 1000000);
        waited += why_now() - begin;
        why_spin_ms(cold ? 20 : 40);
    }
    why_end(&w);
    if (cold)
        why_cause(&w, "\"page_fault\"", waited, "\"path\": \"table.bin\"");
    why_write(&w, "step", STEPS, 1);
}
