/* rings SCENE: threads whose rings are full, with STAVE_FULL=block. Prints `NAME N` for what must be in the file, and `lost N`. */
#include <pthread.h>
#include <stave/stave.h>
#include <stdio.h>
#include <string.h>

static void expect(const char *name, unsigned long long n)
{
    printf("%s %llu\n", name, n);
}

/* More open slices than the ring has space for their ends: waiting for space would never end. */
static void down(int depth)
{
    STAVE_SCOPE("rings", "deep");
    if (depth > 1)
        down(depth - 1);
}

static void scene_deep(void)
{
    enum { N = 3000 };
    down(N);
    expect("deep", N);
}

/* Ends by hand, with and without arguments, find their begins. */
static void scene_by_hand(void)
{
    enum { N = 100000 };
    for (int i = 0; i < N; i++) {
        STAVE_BEGIN("rings", "outer");
        STAVE_BEGIN("rings", "inner", "i", i);
        if (i % 2)
            STAVE_END("rings");
        else
            STAVE_END("rings", "result", i);
        STAVE_END("rings");
        STAVE_END("rings"); /* of nothing: ignored */
    }
    expect("outer", N);
    expect("inner", N);
}

/* The end of a begin that was not recorded closes nobody else's slice. */
static void scene_switched(void)
{
    STAVE_BEGIN("rings", "on");
    stave_categories("none");
    STAVE_BEGIN("rings", "off");
    stave_categories("*");
    STAVE_END("rings");
    STAVE_END("rings");
    expect("on", 1);
    expect("off", 0);
}

static void *fill(void *arg)
{
    for (int i = 0; i < 200000; i++)
        STAVE_INSTANT("rings", "fill", "i", i);
    return arg;
}

static void scene_threads(void)
{
    enum { THREADS = 4 };
    pthread_t t[THREADS];
    for (int i = 0; i < THREADS; i++)
        pthread_create(&t[i], NULL, fill, NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_join(t[i], NULL);
    expect("fill", 200000ull * THREADS);
}

static const struct {
    const char *name;
    void (*run)(void);
} scenes[] = {{"deep", scene_deep},
              {"by_hand", scene_by_hand},
              {"switched", scene_switched},
              {"threads", scene_threads}};

int main(int argc, char **argv)
{
    for (size_t i = 0; argc == 2 && i < sizeof scenes / sizeof *scenes; i++) {
        if (strcmp(argv[1], scenes[i].name) != 0)
            continue;
        scenes[i].run();
        struct stave_counts c = {.size = sizeof c};
        stave_flush();
        stave_count(&c);
        expect("lost", c.lost_full + c.lost_nested + c.lost_ring + c.lost_output);
        return 0;
    }
    return 2;
}
