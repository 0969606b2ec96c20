/* numbers THREADS EVENTS PROGRESS: each thread records instants that carry its number and a running
 * count, some of them inside slices, and after each one writes the count to the file PROGRESS (8
 * bytes per thread, mapped). The script that kills it knows which events must be in the recovered
 * trace. EVENTS 0: until killed. */
#include <fcntl.h>
#include <pthread.h>
#include <stave/stave.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static _Atomic uint64_t *progress;
static uint64_t limit;

static void one(uint64_t thread, uint64_t i)
{
    char text[32];
    snprintf(text, sizeof text, "event %llu", (unsigned long long)i);
    if (i % 8 == 0) {
        STAVE_SCOPE("slices", "outer", "i", i);
        STAVE_INSTANT("seq", "n", "thread", thread, "seq", i);
    } else if (i % 8 == 3) {
        STAVE_INSTANT("seq", "n", "thread", thread, "seq", i, "text", text);
    } else {
        STAVE_INSTANT("seq", "n", "thread", thread, "seq", i);
    }
}

static void *run(void *arg)
{
    uint64_t thread = (uint64_t)(uintptr_t)arg;
    for (uint64_t i = 0; limit == 0 || i < limit; i++) {
        one(thread, i);
        progress[thread] = i + 1;
    }
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    unsigned n = (unsigned)strtoul(argv[1], NULL, 10);
    limit = strtoull(argv[2], NULL, 10);
    int fd = open(argv[3], O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (fd < 0 || n == 0 || n > 500 || ftruncate(fd, 4096) != 0)
        return 2;
    progress = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (progress == MAP_FAILED)
        return 2;
    pthread_t threads[500];
    for (unsigned i = 0; i < n; i++)
        if (pthread_create(&threads[i], NULL, run, (void *)(uintptr_t)i) != 0)
            return 3;
    for (unsigned i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
    struct stave_counts c = {.size = sizeof c};
    stave_flush();
    stave_count(&c);
    printf("%llu lost\n",
           (unsigned long long)(c.lost_full + c.lost_nested + c.lost_ring + c.lost_output));
    return 0;
}
