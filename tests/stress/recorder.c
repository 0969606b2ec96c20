/* recorder SCENE: what a flight recorder keeps, and when it writes. Prints `recorded N`, and the
 * counts at the end. */
#include <pthread.h>
#include <stave/stave.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static uint64_t n_recorded;

static void record(uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        STAVE_INSTANT("seq", "n", "thread", 0, "seq", n_recorded);
        n_recorded++;
    }
}

static void pause_ms(int ms)
{
    struct timespec t = {ms / 1000, (long)(ms % 1000) * 1000000};
    nanosleep(&t, NULL);
}

static int scene_keep(
    void) /* STAVE_KEEP_MS=2000: the old ones have a place in the ring, but are too old */
{
    STAVE_INSTANT("life", "too old");
    pause_ms(2200);
    STAVE_INSTANT("life", "young");
    return stave_trigger("keep") != 1;
}

static int scene_after(void) /* STAVE_AFTER_MS=1500 */
{
    STAVE_INSTANT("life", "before");
    int number = stave_trigger("after");
    STAVE_INSTANT("life", "soon after");
    int second = stave_trigger("another");
    while (access("t.2.pftrace", F_OK) != 0)
        pause_ms(10);
    STAVE_INSTANT("life", "long after");
    return number != 1 || second != 2;
}

static int scene_repeated(void) /* a file for each, all with all names */
{
    for (int i = 1; i <= 20; i++) {
        char reason[32];
        snprintf(reason, sizeof reason, "trigger %d", i);
        record(10000);
        STAVE_COUNTER_ON(stave_counter(stave_track(STAVE_PROCESS, "group"), "level", "W"), "life",
                         i);
        if (stave_trigger(reason) != i)
            return 1;
    }
    return 0;
}

static int scene_counts(void) /* what is not in the file is counted, to the last one */
{
    record(300000);
    return stave_trigger("counts") != 1;
}

static void *one_thread(void *arg)
{
    (void)arg;
    for (int i = 0; i < 50; i++)
        STAVE_INSTANT("life", "short");
    return NULL;
}

static int scene_threads(void) /* memory stays bounded; the newest threads are there */
{
    for (int i = 0; i < 2000; i++) {
        pthread_t t;
        if (pthread_create(&t, NULL, one_thread, NULL) != 0)
            return 1;
        pthread_join(t, NULL);
    }
    n_recorded = 2000 * 50;
    return stave_trigger("threads") != 1;
}

static int scene_die(void)
{
    record(300000);
    printf("recorded %llu\n", (unsigned long long)n_recorded);
    fflush(stdout);
    _exit(0);
}

static int scene_stop(
    void) /* the end of the program does not wait for what comes after a trigger */
{
    STAVE_INSTANT("life", "before");
    stave_trigger("stop");
    printf("the file is %s\n", access("t.1.pftrace", F_OK) == 0 ? "there" : "to come");
    return 0;
}

static int scene_off(void)
{
    return stave_trigger("no recorder") >= 0;
}

static const struct {
    const char *name;
    int (*run)(void);
} scenes[] = {{"keep", scene_keep},     {"after", scene_after},     {"repeated", scene_repeated},
              {"counts", scene_counts}, {"threads", scene_threads}, {"die", scene_die},
              {"stop", scene_stop},     {"off", scene_off}};

int main(int argc, char **argv)
{
    for (size_t i = 0; argc == 2 && i < sizeof scenes / sizeof *scenes; i++) {
        if (strcmp(argv[1], scenes[i].name) != 0)
            continue;
        int status = scenes[i].run();
        struct stave_counts c = {.size = sizeof c};
        stave_count(&c);
        printf("recorded %llu\noverwritten %llu\nlost %llu\n", (unsigned long long)n_recorded,
               (unsigned long long)c.lost_overwritten,
               (unsigned long long)(c.lost_full + c.lost_nested + c.lost_ring + c.lost_output));
        return status;
    }
    return 2;
}
