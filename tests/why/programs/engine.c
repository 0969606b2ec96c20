/* An engine with continuous batching: engine crowded | ok. Crowded: requests come faster than it
 * computes them, and spend most of their time in its queue. Shares are of the time of all
 * requests. */
#include "truth.h"

#include <stave/serving.h>

enum { REQUESTS = 60, TOKENS = 6, ROOM = 4 };

static struct {
    int64_t arrives, began, ended;
    int tokens;
} requests[REQUESTS];

int main(int argc, char **argv)
{
    int crowded = argc < 2 || strcmp(argv[1], "crowded") == 0, done = 0, enqueued = 0;
    struct stave_serving_config config = {
        .size = sizeof config, .trace_enabled = true, .trace_output = "traces"};
    struct stave_serving *s = stave_serving_open(&config, NULL);
    uint32_t model = stave_serving_model(s, "llm"), engine = stave_serving_engine(s, "engine 0");
    struct why w = {0};
    int64_t queued = 0, all = 0;
    prctl(PR_SET_NAME, "engine");
    why_begin(&w);
    for (int i = 0; i < REQUESTS; i++)
        requests[i].arrives = w.begin + i * (crowded ? 6000000ll : 24000000ll);
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
    if (crowded)
        why_cause(&w, "\"queue\"", queued, "\"name\": \"engine\"");
    else
        why_allow(&w, "\"queue\"", queued);
    why_write(&w, "request", REQUESTS, 1);
    stave_serving_close(s, NULL);
}
