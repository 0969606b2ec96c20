/* tracks SCENE [ROUNDS]: slices of several threads on the same few tracks: nested, crossing, handed
 * from one thread to another. Each slice has its number with its begin and again with its end:
 * wrong pairs show two different ones. Prints how many slices were ended. */
#include <pthread.h>
#include <semaphore.h>
#include <stave/stave.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { THREADS = 4, TRACKS = 3, OPEN_MAX = 8 };

static stave_track_t tracks[TRACKS];
static _Atomic uint64_t n_numbers, n_ended;
static unsigned rounds = 400;

static uint32_t random_of(uint64_t *state)
{
    *state ^= *state << 13, *state ^= *state >> 7, *state ^= *state << 17;
    return (uint32_t)(*state >> 32);
}

/* Some slices are shorter than a round of the writer, some longer. */
static void take_time(uint64_t *state)
{
    uint32_t r = random_of(state) % 64;
    if (r == 0)
        usleep(random_of(state) % 12000);
    else if (r < 8)
        usleep(random_of(state) % 200);
}

static int on_threads(void *(*body)(void *))
{
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, body, (void *)i) != 0)
            return 1;
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    return 0;
}

/* ---- begin and end by hand: each thread's own nest ---- */

static void nested(uint64_t *state, unsigned depth)
{
    stave_track_t track = tracks[random_of(state) % TRACKS];
    uint64_t n = ++n_numbers;
    STAVE_BEGIN_ON(track, "tracks", "nested", "n", n, "depth", depth);
    take_time(state);
    for (unsigned i = random_of(state) % 3; depth < 4 && i > 0; i--)
        nested(state, depth + 1);
    if (random_of(state) % 4 == 0) {
        STAVE_SCOPE_ON(track, "tracks", "block", "depth", depth + 1);
        take_time(state);
        n_ended++;
    }
    STAVE_END_ON(track, "tracks", "n_end", n);
    n_ended++;
}

/* ---- by number: in any order, by any thread ---- */

struct open {
    uint64_t slice, n;
    stave_track_t track;
};
static struct open handed[OPEN_MAX];
static pthread_mutex_t handed_lock = PTHREAD_MUTEX_INITIALIZER;

static struct open begin(uint64_t *state)
{
    struct stave_args args;
    struct open o = {.n = ++n_numbers, .track = tracks[random_of(state) % TRACKS]};
    stave_args_init(&args);
    stave_args_uint(&args, "n", o.n);
    o.slice = stave_slice_begin(&(struct stave_event){.size = sizeof(struct stave_event),
                                                      .track = o.track,
                                                      .category = "tracks",
                                                      .name = "numbered",
                                                      .args = &args});
    return o;
}

static void end(struct open *o)
{
    struct stave_args args;
    if (!o->slice)
        return;
    stave_args_init(&args);
    stave_args_uint(&args, "n_end", o->n);
    stave_slice_end(o->slice, &(struct stave_event){.size = sizeof(struct stave_event),
                                                    .track = o->track,
                                                    .category = "tracks",
                                                    .args = &args});
    n_ended++;
    o->slice = 0;
}

static void crossing(uint64_t *state, struct open *own)
{
    struct open *o = &own[random_of(state) % OPEN_MAX];
    end(o);
    *o = begin(state);
    take_time(state);
    if (random_of(state) % 4 == 0) {
        pthread_mutex_lock(&handed_lock);
        struct open *other = &handed[random_of(state) % OPEN_MAX], was = *other;
        *other = *o;
        *o = was;
        pthread_mutex_unlock(&handed_lock);
    }
}

static void *work(void *arg)
{
    uint64_t state = 88172645463325252u + (uint64_t)(uintptr_t)arg;
    struct open own[OPEN_MAX] = {{0}};
    for (unsigned i = 0; rounds == 0 || i < rounds; i++) {
        nested(&state, 0);
        crossing(&state, own);
    }
    for (int i = 0; i < OPEN_MAX; i++)
        end(&own[i]);
    return NULL;
}

static int scene_mixed(void)
{
    int status = on_threads(work);
    for (int i = 0; i < OPEN_MAX; i++)
        end(&handed[i]);
    return status;
}

/* ---- one operation at a time, begun by one thread and ended by the other, without a number
 * ---- */

/* No spinning: two threads on a busy machine would take turns by its time slices. */
static sem_t begun, ended;

static void *end_in_turn(void *arg)
{
    (void)arg;
    for (uint64_t i = 0; i < 2000; i++) {
        sem_wait(&begun);
        STAVE_END_ON(tracks[0], "tracks", "n_end", i + 1);
        n_ended++;
        sem_post(&ended);
    }
    return NULL;
}

static int scene_handed(void)
{
    pthread_t t;
    if (sem_init(&begun, 0, 0) != 0 || sem_init(&ended, 0, 0) != 0 ||
        pthread_create(&t, NULL, end_in_turn, NULL) != 0)
        return 1;
    for (uint64_t i = 0; i < 2000; i++) {
        STAVE_BEGIN_ON(tracks[0], "tracks", "operation", "n", i + 1);
        sem_post(&begun);
        sem_wait(&ended);
    }
    pthread_join(t, NULL);
    return 0;
}

/* ---- threads that take turns: all of it fits on the track itself ---- */

static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;

static void *take_turns(void *arg)
{
    uint64_t state = 88172645463325252u + (uint64_t)(uintptr_t)arg;
    for (unsigned i = 0; i < rounds; i++) {
        pthread_mutex_lock(&one_at_a_time);
        uint64_t n = ++n_numbers;
        STAVE_BEGIN_ON(tracks[0], "tracks", "turn", "n", n);
        take_time(&state);
        STAVE_END_ON(tracks[0], "tracks", "n_end", n);
        n_ended++;
        pthread_mutex_unlock(&one_at_a_time);
    }
    return NULL;
}

/* ---- more than the rings take ---- */

static void *flood(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < 20000; i++) {
        uint64_t outer = ++n_numbers, inner = ++n_numbers;
        STAVE_BEGIN_ON(tracks[0], "tracks", "outer", "n", outer);
        STAVE_BEGIN_ON(tracks[0], "tracks", "inner", "n", inner);
        STAVE_END_ON(tracks[0], "tracks", "n_end", inner);
        STAVE_END_ON(tracks[0], "tracks", "n_end", outer);
        n_ended += 2;
    }
    return NULL;
}

static int scene_turns(void)
{
    return on_threads(take_turns);
}

static int scene_flood(void)
{
    return on_threads(flood);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(void);
    } scenes[] = {{"mixed", scene_mixed},
                  {"handed", scene_handed},
                  {"turns", scene_turns},
                  {"flood", scene_flood}};
    tracks[0] = stave_track(STAVE_PROCESS, "shared");
    tracks[1] = stave_track(STAVE_ROOT, "top");
    tracks[2] = stave_async(STAVE_PROCESS, "request", 7);
    if (argc == 3)
        rounds = (unsigned)strtoul(argv[2], NULL, 10);
    for (size_t i = 0; argc > 1 && i < sizeof scenes / sizeof *scenes; i++) {
        if (strcmp(argv[1], scenes[i].name) != 0)
            continue;
        int status = scenes[i].run();
        printf("%llu slices\n", (unsigned long long)n_ended);
        return status;
    }
    return 2;
}
