/* A small training loop, instrumented: the workload that `make run` records.
 *
 *     STAVE_OUT=train.pftrace training [STEPS]        default 12
 *
 * Two loader threads read sample files (written to a temporary folder first), the main thread
 * multiplies matrices forward and backward and updates the weights. What the trace shows: which
 * loader brought which batch (an arrow from the read to the step that used it), how long the main
 * thread waits for data, the loss going down and the queue filling up. Everything is real work;
 * nothing sleeps. */
#include <stave/stave.h>

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FILES = 16, FILE_FLOATS = 1 << 15, BATCH = 48, IN = 128, OUT = 96, QUEUE = 4 };

struct batch {
    float x[BATCH][IN];
    float y[BATCH][OUT];
    uint64_t flow; /* connects the read with the step */
};

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct batch *items[QUEUE];
    unsigned n, next_file, wanted;
    char folder[64];
} queue = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void file_name(char *path, size_t size, unsigned i)
{
    snprintf(path, size, "%s/sample%u.bin", queue.folder, i % FILES);
}

static void write_samples(void)
{
    STAVE_SCOPE("setup", "write samples", "files", FILES);
    static float data[FILE_FLOATS];
    char path[128];
    for (unsigned i = 0; i < FILES; i++) {
        for (unsigned k = 0; k < FILE_FLOATS; k++)
            data[k] = sinf((float)(i * 31 + k));
        file_name(path, sizeof path, i);
        FILE *f = fopen(path, "wb");
        if (!f || fwrite(data, sizeof data, 1, f) != 1 || fclose(f) != 0) {
            perror(path);
            exit(1);
        }
    }
}

static void read_file(const char *path, float *data, size_t n)
{
    STAVE_SCOPE("data", "read file", "path", path, "bytes", n * sizeof *data);
    FILE *f = fopen(path, "rb");
    if (!f || fread(data, sizeof *data, n, f) != n) {
        perror(path);
        exit(1);
    }
    fclose(f);
}

static struct batch *load_batch(unsigned i)
{
    static _Thread_local float data[FILE_FLOATS];
    char path[128];
    struct batch *b = malloc(sizeof *b);
    if (!b)
        abort();
    b->flow = stave_flow_new();
    STAVE_SCOPE("dataloader", "load batch", "index", i, STAVE_FLOW_OUT, b->flow);
    file_name(path, sizeof path, i);
    read_file(path, data, FILE_FLOATS);
    STAVE_SCOPE("data", "decode", "samples", BATCH);
    for (unsigned r = 0; r < BATCH; r++) {
        for (unsigned c = 0; c < IN; c++)
            b->x[r][c] = tanhf(data[(r * IN + c) % FILE_FLOATS]);
        for (unsigned c = 0; c < OUT; c++)
            b->y[r][c] = 0.5f * b->x[r][c % IN] - 0.25f * b->x[r][(c * 7) % IN];
    }
    return b;
}

static void *loader(void *name)
{
    stave_set_thread_name(name);
    for (;;) {
        pthread_mutex_lock(&queue.lock);
        unsigned i = queue.next_file++;
        pthread_mutex_unlock(&queue.lock);
        if (i >= queue.wanted)
            return NULL;
        struct batch *b = load_batch(i);
        pthread_mutex_lock(&queue.lock);
        while (queue.n == QUEUE)
            pthread_cond_wait(&queue.changed, &queue.lock);
        queue.items[queue.n++] = b;
        STAVE_COUNTER("dataloader", "batches ready", (int64_t)queue.n);
        pthread_cond_broadcast(&queue.changed);
        pthread_mutex_unlock(&queue.lock);
    }
}

static struct batch *next_batch(void)
{
    STAVE_SCOPE("dataloader", "wait for data");
    pthread_mutex_lock(&queue.lock);
    while (queue.n == 0)
        pthread_cond_wait(&queue.changed, &queue.lock);
    struct batch *b = queue.items[0];
    queue.n--;
    memmove(queue.items, queue.items + 1, queue.n * sizeof *queue.items);
    STAVE_COUNTER("dataloader", "batches ready", (int64_t)queue.n);
    pthread_cond_broadcast(&queue.changed);
    pthread_mutex_unlock(&queue.lock);
    return b;
}

static float weights[IN][OUT], gradient[IN][OUT], output[BATCH][OUT];

static double forward(const struct batch *b)
{
    STAVE_SCOPE("compute", "forward", "layer", "linear", "rows", BATCH);
    double loss = 0;
    for (unsigned r = 0; r < BATCH; r++) {
        for (unsigned o = 0; o < OUT; o++) {
            float sum = 0;
            for (unsigned i = 0; i < IN; i++)
                sum += b->x[r][i] * weights[i][o];
            output[r][o] = sum - b->y[r][o];
            loss += (double)output[r][o] * (double)output[r][o];
        }
    }
    return loss / BATCH;
}

static void backward(const struct batch *b)
{
    STAVE_SCOPE("compute", "backward", "layer", "linear");
    memset(gradient, 0, sizeof gradient);
    for (unsigned r = 0; r < BATCH; r++)
        for (unsigned i = 0; i < IN; i++)
            for (unsigned o = 0; o < OUT; o++)
                gradient[i][o] += b->x[r][i] * output[r][o];
}

static void optimizer_step(float rate)
{
    STAVE_SCOPE("compute", "optimizer", "rate", (double)rate);
    for (unsigned i = 0; i < IN; i++)
        for (unsigned o = 0; o < OUT; o++)
            weights[i][o] -= rate / BATCH * gradient[i][o];
}

static void checkpoint(unsigned step)
{
    char path[128];
    snprintf(path, sizeof path, "%s/checkpoint.bin", queue.folder);
    STAVE_SCOPE("checkpoint", "save checkpoint", "step", step, "path", path, "bytes",
                sizeof weights);
    FILE *f = fopen(path, "wb");
    if (f) {
        fwrite(weights, sizeof weights, 1, f);
        fflush(f);
        fsync(fileno(f));
        fclose(f);
        unlink(path);
    }
}

static void train(unsigned steps)
{
    for (unsigned step = 0; step < steps; step++) {
        STAVE_SCOPE("step", "training step", "step", step);
        struct batch *b = next_batch();
        double loss;
        {
            STAVE_SCOPE("step", "use batch", STAVE_FLOW_IN, b->flow);
            loss = forward(b);
            backward(b);
            optimizer_step(0.05f);
        }
        STAVE_COUNTER("step", "loss", loss);
        if (step % 5 == 4)
            checkpoint(step);
        free(b);
    }
}

static void remove_samples(void)
{
    char path[128];
    for (unsigned i = 0; i < FILES; i++) {
        file_name(path, sizeof path, i);
        unlink(path);
    }
    rmdir(queue.folder);
}

int main(int argc, char **argv)
{
    pthread_t loaders[2];
    static char names[2][16] = {"loader 0", "loader 1"};
    unsigned steps = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 12;
    snprintf(queue.folder, sizeof queue.folder, "/tmp/stave-training.XXXXXX");
    if (!mkdtemp(queue.folder)) {
        perror("mkdtemp");
        return 1;
    }
    stave_set_thread_name("trainer");
    queue.wanted = steps;
    write_samples();
    for (unsigned i = 0; i < 2; i++)
        pthread_create(&loaders[i], NULL, loader, names[i]);
    train(steps);
    for (unsigned i = 0; i < 2; i++)
        pthread_join(loaders[i], NULL);
    STAVE_INSTANT("step", "training done", "steps", steps);
    remove_samples();
    return 0;
}
