/* Waits of C unlike those of the other programs:
 *
 *     varied range | warm | polling | waiting | spinning
 *
 * range: each step reads pages of a mapped file; every tenth one comes to a range that is not
 * cached. warm: all of it is cached. polling: a producer takes long, and the consumer looks for its
 * item every 2 ms. waiting: the producer is faster than the consumer. spinning: the consumer looks
 * for the item of a fast producer all the time, which is computing to everybody but itself. */
#include "truth.h"

#include <sched.h>
#include <sys/mman.h>

enum { STEPS = 60, SIZE = 24 << 20, COLD = 16 << 20, SLOW_EACH = 10 };

static volatile unsigned sink;
static int made;  /* items; atomic */
static int taken; /* items; atomic */
static int is_over;
static const char *how;

/* ---- a mapped file ---- */

__attribute__((noinline)) static void look_up(const char *map, size_t from, size_t to, int64_t ns)
{
    int64_t end = why_now() + ns; /* however fast the disk is */
    for (unsigned i = 0; i < (to - from) / 4096 && why_now() < end; i++)
        sink += (unsigned char)map[from + (size_t)i * 1031 % ((to - from) / 4096) * 4096];
}

static void map_steps(struct why *w)
{
    int fd = why_file("embeddings.bin", O_CREAT | O_RDWR), is_cold = strcmp(how, "range") == 0;
    int64_t cold = 0, slow = 0, usual = 0;
    char *block = malloc(1 << 20);
    memset(block, 7, 1 << 20);
    for (int i = 0; i < SIZE >> 20; i++)
        if (pwrite(fd, block, 1 << 20, (off_t)i << 20) != 1 << 20)
            abort();
    fsync(fd);
    char *map = mmap(NULL, SIZE, PROT_READ, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED)
        abort();
    look_up(map, 0, SIZE, INT64_MAX / 2);
    why_begin(w);
    for (int i = 0; i < STEPS; i++) {
        STAVE_SCOPE("step", "step", "n", i);
        int64_t begin = why_now();
        int is_slow = is_cold && i % SLOW_EACH == SLOW_EACH - 1;
        if (is_slow) {
            madvise(map + COLD, SIZE - COLD, MADV_DONTNEED);
            posix_fadvise(fd, COLD, SIZE - COLD, POSIX_FADV_DONTNEED);
            madvise(map + COLD, SIZE - COLD, MADV_RANDOM);
            int64_t at = why_now();
            look_up(map, COLD, SIZE, 150000000);
            cold += why_now() - at;
        }
        look_up(map, 0, COLD, 2000000);
        why_spin_ms(12);
        *(is_slow ? &slow : &usual) += why_now() - begin;
    }
    why_end(w);
    int n = STEPS / SLOW_EACH;
    if (!is_cold)
        return;
    why_cause(w, "\"page_fault\"", cold, "\"path\": \"embeddings.bin\"");
    double excess = (double)slow / n - (double)usual / (STEPS - n);
    snprintf(w->more, sizeof w->more,
             ",\n \"slow\": {\"n\": %d, \"cause\": [\"page_fault\"], \"culprit\": [{\"path\": "
             "\"embeddings.bin\"}], \"share\": %.4f}",
             n, (double)cold / n / excess);
}

/* ---- a producer ---- */

static void *produce(void *arg)
{
    (void)arg;
    prctl(PR_SET_NAME, "producer");
    while (!__atomic_load_n(&is_over, __ATOMIC_ACQUIRE)) {
        if (strcmp(how, "polling") == 0)
            why_sleep_ms(30);
        else
            why_sleep_ms(strcmp(how, "spinning") == 0 ? 12 : 4);
        __atomic_add_fetch(&made, 1, __ATOMIC_RELEASE);
        while (__atomic_load_n(&made, __ATOMIC_ACQUIRE) >
                   __atomic_load_n(&taken, __ATOMIC_ACQUIRE) &&
               !__atomic_load_n(&is_over, __ATOMIC_ACQUIRE))
            why_sleep_ms(1);
    }
    return NULL;
}

__attribute__((noinline)) static void poll_item(int i)
{
    while (__atomic_load_n(&made, __ATOMIC_ACQUIRE) <= i)
        if (strcmp(how, "spinning") != 0)
            why_sleep_ms(2);
}

static void item_steps(struct why *w)
{
    pthread_t t;
    int64_t waited = 0;
    pthread_create(&t, NULL, produce, NULL);
    why_begin(w);
    for (int i = 0; i < STEPS; i++) {
        STAVE_SCOPE("step", "step", "n", i);
        int64_t begin = why_now();
        poll_item(i);
        waited += why_now() - begin;
        __atomic_store_n(&taken, i + 1, __ATOMIC_RELEASE);
        why_spin_ms(10);
    }
    why_end(w);
    __atomic_store_n(&is_over, 1, __ATOMIC_RELEASE);
    pthread_join(t, NULL);
    if (strcmp(how, "polling") == 0)
        why_cause(w, "\"sleep\", \"data\"", waited,
                  "\"function\": \"poll_item\"}, {\"name\": \"producer\"");
    else
        why_allow(w, "\"sleep\", \"data\"", waited);
}

int main(int argc, char **argv)
{
    struct why w = {0};
    how = argc > 1 ? argv[1] : "range";
    if (strcmp(how, "range") == 0 || strcmp(how, "warm") == 0)
        map_steps(&w);
    else
        item_steps(&w);
    why_write(&w, "step", STEPS, 1);
}
