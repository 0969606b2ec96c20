/* An engine with continuous batching in small: clients, one engine thread with steps, chunked
 * prefill, a KV cache that is too small (so requests are preempted and computed again), a prefix
 * cache, speculation and streamed answers.
 *
 *     ./continuous_batching DIRECTORY [REQUESTS [SEED]]     writes DIRECTORY/batching_trace.pftrace
 *     stave report llm DIRECTORY/batching_trace.pftrace
 *
 * The "model" is arithmetic: the work of a step depends on its tokens only, and so does every
 * answer. What the engine counts by itself is printed at the end, and the trace's figures equal it.
 * There is no language model here; the example shows where the tracing calls go. */
#include <inttypes.h>
#include <pthread.h>
#include <stave/serving.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    CLIENTS = 4,
    SLOTS = 16,        /* requests in a step at most */
    STEP_TOKENS = 128, /* tokens computed in a step at most */
    BLOCK = 16,        /* tokens in a block of the KV cache */
    KV_BLOCKS = 96,    /* blocks of it */
    PREFIX = 32,       /* tokens of the common system prompt that the prefix cache holds */
    SPECULATION = 2,   /* tokens proposed at once */
    REQUESTS_MAX = 100000
};

struct request {
    uint64_t id;
    uint32_t prompt, answer; /* tokens that it has and wants */
    uint32_t computed;       /* tokens in the KV cache */
    uint32_t given;          /* tokens of the answer so far */
    uint32_t cached;         /* prompt tokens from the prefix cache */
    bool was_scheduled, is_cancelled;
    struct request *next;
};

/* What the engine counts by itself. */
struct counts {
    uint64_t steps, members, tokens_in, tokens_out, cached, proposed, accepted, preemptions,
        finished, cancelled, prompt_tokens, streamed;
};

static struct stave_serving *tracer;
static uint32_t model, engine;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct request *waiting_first, *waiting_last; /* the queue; under the lock */
static uint32_t n_waiting, clients_left = CLIENTS;
static uint64_t n_requests = 200, seed = 1;
static struct counts counts;
static volatile uint32_t
    answer_sum; /* what the model computes, so that no compiler leaves it out */

static uint64_t mixed(uint64_t x)
{
    x = (x + seed) * 0x9E3779B97F4A7C15u;
    x ^= x >> 29;
    x *= 0xBF58476D1CE4E5B9u;
    return x ^ x >> 32;
}

static uint32_t blocks_of(uint32_t tokens)
{
    return (tokens + BLOCK - 1) / BLOCK;
}

/* ---- clients ---- */

/* With the lock held. */
static void wait_first(struct request *r) /* preempted ones come before new ones */
{
    r->next = waiting_first;
    waiting_first = r;
    waiting_last = waiting_last ? waiting_last : r;
    n_waiting++;
}

static void wait_last(struct request *r)
{
    r->next = NULL;
    *(waiting_last ? &waiting_last->next : &waiting_first) = r;
    waiting_last = r;
    n_waiting++;
}

static void *client(void *number)
{
    for (uint64_t id = (uint64_t)(size_t)number; id < n_requests; id += CLIENTS) {
        struct request *r = calloc(1, sizeof *r);
        if (!r)
            break;
        r->id = id;
        r->prompt = PREFIX + 1 + (uint32_t)(mixed(id) % 300);
        r->answer = 1 + (uint32_t)(mixed(id + 1000003) % 60);
        r->is_cancelled = mixed(id + 2000003) % 37 == 0; /* its client goes away half-way */
        pthread_mutex_lock(&lock);
        stave_serving_enqueued(tracer, id, model, 0, 0);
        wait_last(r);
        pthread_cond_signal(&changed);
        pthread_mutex_unlock(&lock);
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    }
    pthread_mutex_lock(&lock);
    clients_left--;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
    return NULL;
}

/* ---- the engine ---- */

static struct request *running[SLOTS]; /* oldest first */
static uint32_t n_running, kv_used;

/* Blocks that the running requests need for what they have now; what they still write is not
 * counted, so it can become too much. */
static uint32_t blocks_needed(void)
{
    uint32_t blocks = 0;
    for (uint32_t i = 0; i < n_running; i++)
        blocks += blocks_of(running[i]->prompt + running[i]->given);
    return blocks;
}

static void admit(void)
{
    pthread_mutex_lock(&lock);
    while (!waiting_first && n_running == 0 && clients_left > 0)
        pthread_cond_wait(&changed, &lock);
    while (waiting_first && n_running < SLOTS) {
        struct request *r = waiting_first;
        if (blocks_needed() + blocks_of(r->prompt + r->given) > KV_BLOCKS && n_running > 0)
            break;
        waiting_first = r->next;
        waiting_last = waiting_first ? waiting_last : NULL;
        n_waiting--;
        if (r->was_scheduled)
            stave_serving_resumed(tracer, r->id, 0);
        else
            stave_serving_scheduled(tracer, r->id, 0);
        r->was_scheduled = true;
        running[n_running++] = r;
    }
    pthread_mutex_unlock(&lock);
}

/* The newest request gives its blocks back and is computed again later. */
static void preempt(void)
{
    struct request *r = running[--n_running];
    kv_used -= blocks_of(r->computed);
    r->computed = 0;
    counts.preemptions++;
    stave_serving_preempted(tracer, r->id, 0);
    pthread_mutex_lock(&lock);
    wait_first(r);
    pthread_mutex_unlock(&lock);
}

/* What a request computes in this step. False: the step has no space for it. */
static bool plan(struct request *r, uint32_t budget, struct stave_serving_member *m)
{
    uint32_t known = r->prompt + r->given, left = known - r->computed;
    *m = (struct stave_serving_member){.request = r->id, .position = r->computed};
    if (r->computed == 0 && left > PREFIX) {
        m->cached = PREFIX; /* not computed, but in the cache */
        left -= PREFIX;
    }
    /* All but the newest token are in the cache: a decode. Each second one has speculation. */
    if (r->given > 0 && left == 1) {
        m->phase = STAVE_SERVING_DECODE;
        m->proposed = (r->given & 1) && r->answer - r->given > SPECULATION ? SPECULATION : 0;
        m->accepted = m->proposed ? (uint16_t)(mixed(r->id * 977 + r->given) % (SPECULATION + 1))
                                  : 0;
        m->tokens_in = 1u + m->proposed;
        m->tokens_out = 1u + m->accepted;
        return m->tokens_in <= budget;
    }
    m->tokens_in = left < budget ? left : budget;
    m->tokens_out = m->tokens_in == left; /* the last chunk gives a token */
    return m->tokens_in > 0;
}

static uint32_t after(const struct request *r, const struct stave_serving_member *m)
{
    bool is_decode = m->phase == STAVE_SERVING_DECODE;
    return r->computed + m->cached + (is_decode ? m->tokens_out : m->tokens_in);
}

/* Fills the step; preempts while the KV cache is too small for it. */
static uint32_t schedule(struct stave_serving_member *members)
{
    uint32_t n = 0, budget = STEP_TOKENS;
    for (uint32_t i = 0; i < n_running; i++) {
        struct request *r = running[i];
        if (!plan(r, budget, &members[n]))
            continue;
        uint32_t more = blocks_of(after(r, &members[n])) - blocks_of(r->computed);
        while (kv_used + more > KV_BLOCKS && n_running > i + 1)
            preempt();
        if (kv_used + more > KV_BLOCKS)
            continue;
        kv_used += more;
        budget -= members[n++].tokens_in;
    }
    return n;
}

static void compute(uint32_t tokens)
{
    uint32_t x = answer_sum + tokens;
    for (uint32_t i = 0; i < tokens * 400; i++)
        x = x * 1664525u + 1013904223u;
    answer_sum = x;
}

static void count_member(const struct stave_serving_member *m)
{
    counts.members++;
    counts.tokens_in += m->tokens_in;
    counts.tokens_out += m->tokens_out;
    counts.cached += m->cached;
    counts.proposed += m->proposed;
    counts.accepted += m->accepted;
}

static bool is_over(struct request *r)
{
    bool goes_away = r->is_cancelled && r->given * 2 >= r->answer;
    if (!goes_away && r->given < r->answer)
        return false;
    counts.prompt_tokens += r->prompt;
    if (goes_away) {
        counts.cancelled++;
        stave_serving_cancelled(tracer, r->id, 0);
    } else {
        counts.finished++;
        stave_serving_responded(tracer, r->id, 0);
    }
    kv_used -= blocks_of(r->computed);
    free(r);
    return true;
}

/* After the step: what its members have now, and who is ready. */
static void apply(const struct stave_serving_member *members, uint32_t n)
{
    uint32_t kept = 0;
    for (uint32_t i = 0, k = 0; i < n_running; i++) {
        struct request *r = running[i];
        const struct stave_serving_member *m = k < n && members[k].request == r->id ? &members[k++]
                                                                                    : NULL;
        if (m) {
            r->computed = after(r, m);
            r->given += m->tokens_out;
            count_member(m);
            if (m->tokens_out) {
                counts.streamed += m->tokens_out;
                stave_serving_streamed(tracer, r->id, m->tokens_out, 0);
            }
        }
        if (!m || !m->tokens_out || !is_over(r))
            running[kept++] = r;
    }
    n_running = kept;
}

static void run_engine(void)
{
    struct stave_serving_member members[SLOTS];
    for (uint64_t number = 1;; number++) {
        admit();
        if (n_running == 0)
            return;
        struct stave_serving_step step = {.size = sizeof step,
                                          .step = number,
                                          .engine = engine,
                                          .start_ns = stave_now_ns(),
                                          .members = members,
                                          .kv_total = KV_BLOCKS};
        uint32_t tokens = 0, n = schedule(members);
        step.n = n;
        for (uint32_t i = 0; i < n; i++)
            tokens += members[i].tokens_in;
        {
            STAVE_SCOPE("kernel", "model", "tokens", tokens);
            compute(tokens);
        }
        pthread_mutex_lock(&lock);
        step.waiting = n_waiting;
        pthread_mutex_unlock(&lock);
        step.kv_used = kv_used;
        step.graph = tokens == n ? STAVE_SERVING_GRAPH_FULL : STAVE_SERVING_GRAPH_EAGER;
        stave_serving_step(tracer, &step);
        counts.steps++;
        apply(members, n);
    }
}

static void print_counts(void)
{
    printf("steps %" PRIu64 "\nmembers %" PRIu64 "\ntokens_in %" PRIu64 "\ntokens_out %" PRIu64
           "\ncached %" PRIu64 "\nproposed %" PRIu64 "\naccepted %" PRIu64 "\npreemptions %" PRIu64
           "\nfinished %" PRIu64 "\ncancelled %" PRIu64 "\nprompt_tokens %" PRIu64
           "\nstreamed %" PRIu64 "\n",
           counts.steps, counts.members, counts.tokens_in, counts.tokens_out, counts.cached,
           counts.proposed, counts.accepted, counts.preemptions, counts.finished, counts.cancelled,
           counts.prompt_tokens, counts.streamed);
}

int main(int argc, char **argv)
{
    struct stave_error error;
    pthread_t clients[CLIENTS];
    if (argc < 2)
        return fprintf(stderr, "usage: continuous_batching DIRECTORY [REQUESTS [SEED]]\n"), 2;
    n_requests = argc > 2 ? strtoull(argv[2], NULL, 10) : n_requests;
    seed = argc > 3 ? strtoull(argv[3], NULL, 10) : seed;
    if (n_requests > REQUESTS_MAX)
        return fprintf(stderr, "at most %d requests\n", REQUESTS_MAX), 2;
    struct stave_serving_config config = {.size = sizeof config,
                                          .trace_enabled = true,
                                          .trace_output = argv[1],
                                          .server = "continuous batching",
                                          .outputs = STAVE_SERVING_PFTRACE};
    tracer = stave_serving_open(&config, &error);
    if (!tracer)
        return fprintf(stderr, "%s\n", error.text), 1;
    model = stave_serving_model(tracer, "arithmetic");
    engine = stave_serving_engine(tracer, "engine 0");
    for (size_t i = 0; i < CLIENTS; i++)
        if (pthread_create(&clients[i], NULL, client, (void *)i) != 0)
            return fprintf(stderr, "no thread\n"), 1;
    run_engine();
    for (size_t i = 0; i < CLIENTS; i++)
        pthread_join(clients[i], NULL);
    print_counts();
    if (stave_serving_close(tracer, &error) != 0)
        return fprintf(stderr, "%s\n", error.text), 1;
    return 0;
}
