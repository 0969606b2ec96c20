/* An engine with continuous batching: engine crowded | swapped | ok. Crowded: requests come faster
 * than it computes them, and spend most of their time in its queue. Swapped: in each fourth step it
 * needs the table of blocks, which another thread has locked. Shares are of the time of all
 * requests. */
#include "truth.h"

#include <stave/serving.h>

enum { REQUESTS = 60, TOKENS = 6, ROOM = 4 };

static struct {
    int64_t arrives, began, ended;
    int tokens;
} requests[REQUESTS];

static pthread_mutex_t block_table = PTHREAD_MUTEX_INITIALIZER;
static int wants;

__attribute__((noinline)) static void swap_blocks(void)
{
    pthread_mutex_lock(&block_table);
    __atomic_store_n(&wants, 2, __ATOMIC_RELEASE);
    why_sleep_ms(60);
    pthread_mutex_unlock(&block_table);
}

static void *be_swapper(void *unused)
{
    prctl(PR_SET_NAME, "swapper");
    for (;;) {
        if (__atomic_load_n(&wants, __ATOMIC_ACQUIRE) == 1)
            swap_blocks();
        why_sleep_ms(1);
    }
    return unused;
}

/* Waits until the swapper has begun, then for it. */
static void use_blocks(void)
{
    __atomic_store_n(&wants, 1, __ATOMIC_RELEASE);
    while (__atomic_load_n(&wants, __ATOMIC_ACQUIRE) != 2)
        ;
    pthread_mutex_lock(&block_table);
    pthread_mutex_unlock(&block_table);
}

static void say(struct why *w, const char *how, int64_t queued, int64_t locked)
{
    if (strcmp(how, "crowded") == 0) {
        why_cause(w, "\"queue\"", queued, "\"name\": \"engine\"");
        return;
    }
    why_allow(w, "\"queue\"", queued);
    if (strcmp(how, "swapped") == 0)
        why_cause(w, "\"lock\"", locked, "\"name\": \"swapper\", \"function\": \"swap_blocks\"");
}

int main(int argc, char **argv)
{
    int swapped = argc > 1 && strcmp(argv[1], "swapped") == 0;
    pthread_t swapper;
    int crowded = argc < 2 || strcmp(argv[1], "crowded") == 0, done = 0, enqueued = 0;
    struct stave_serving_config config = {
        .size = sizeof config, .trace_enabled = true, .trace_output = "traces"};
    struct stave_serving *s = stave_serving_open(&config, NULL);
    uint32_t model = stave_serving_model(s, "llm"), engine = stave_serving_engine(s, "engine 0");
    struct why w = {0};
    int64_t queued = 0, all = 0, locked = 0;
    if (swapped)
        pthread_create(&swapper, NULL, be_swapper, NULL);
    prctl(PR_SET_NAME, "engine");
    why_begin(&w);
    for (int i = 0; i < REQUESTS; i++)
        requests[i].arrives = w.begin + i * (crowded   ? 6000000ll
                                             : swapped ? 80000000ll
                                                       : 24000000ll);
    for (uint64_t step = 0; done < REQUESTS; step++) {
        struct stave_serving_member members[ROOM];
        int64_t start = why_now();
        size_t n = 0;
        for (; enqueued < REQUESTS && requests[enqueued].arrives <= start; enqueued++)
            stave_serving_enqueued(s, (uint64_t)enqueued, model, 0, requests[enqueued].arrives);
        for (int i = 0; i < enqueued && n < ROOM; i++) {
            if (requests[i].ended)
                continue;
            int first = requests[i].began == 0;
            if (first)
                requests[i].began = start;
            members[n++] = (struct stave_serving_member){
                .request = (uint64_t)i,
                .tokens_in = first ? 64 : 1,
                .tokens_out = 1,
                .position = first ? 0 : (uint32_t)(63 + requests[i].tokens),
                .phase = first ? STAVE_SERVING_PREFILL : STAVE_SERVING_DECODE};
        }
        if (n == 0) {
            why_sleep_ms(1);
            continue;
        }
        why_spin_ms(12);
        if (swapped && step % 4 == 3) {
            int64_t before = why_now();
            use_blocks();
            locked += (why_now() - before) * (int64_t)n;
        }
        stave_serving_step(s,
                           &(struct stave_serving_step){.size = sizeof(struct stave_serving_step),
                                                        .step = step,
                                                        .engine = engine,
                                                        .start_ns = start,
                                                        .members = members,
                                                        .n = n});
        for (size_t i = 0; i < n; i++) {
            uint64_t id = members[i].request;
            if (++requests[id].tokens < TOKENS)
                continue;
            requests[id].ended = why_now();
            queued += requests[id].began - requests[id].arrives;
            all += requests[id].ended - requests[id].arrives;
            done++;
            stave_serving_responded(s, id, 0);
        }
    }
    why_end(&w);
    w.wall = all;
    say(&w, argc > 1 ? argv[1] : "crowded", queued, locked);
    why_write(&w, "request", REQUESTS, 1);
    stave_serving_close(s, NULL);
}
