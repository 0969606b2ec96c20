/* NVIDIA's GPUs through NVML, the library behind nvidia-smi: loaded by name, so that neither
 * building nor running needs it.
 *
 * Called by record/sample/gpus.c. The few types and numbers below are NVML's public binary
 * interface (NVML API Reference Guide); what a device or driver does not support answers with an
 * error and gives no value. */
#include "record/sample/gpu_vendors.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NVML_OK = 0, NVML_TOO_SMALL = 7, NVML_SENSOR_GPU = 0, SAMPLES_MAX = 1 << 14 };
#define NVML_UNKNOWN_BYTES UINT64_MAX

typedef struct device_of_nvml *device;

struct rates {
    unsigned gpu, memory;
};

struct memory {
    unsigned long long total, free, used;
};

struct process_sample {
    unsigned pid;
    unsigned long long time_us;
    unsigned sm, memory, encoder, decoder;
};

struct process_memory {
    unsigned pid;
    unsigned long long used;
    unsigned gpu_instance, compute_instance;
};

/* The functions, in the order of `names`. */
struct calls {
    int (*init)(void);
    int (*shutdown)(void);
    int (*count)(unsigned *n);
    int (*by_index)(unsigned i, device *d);
    int (*name)(device d, char *text, unsigned size);
    int (*rates)(device d, struct rates *r);
    int (*memory)(device d, struct memory *m);
    int (*power)(device d, unsigned *milliwatts);
    int (*temperature)(device d, int sensor, unsigned *celsius);
    int (*encoder)(device d, unsigned *percent, unsigned *period_us);
    int (*decoder)(device d, unsigned *percent, unsigned *period_us);
    int (*processes)(device d, struct process_sample *samples, unsigned *n,
                     unsigned long long since_us);
    int (*compute)(device d, unsigned *n, struct process_memory *all);
    int (*graphics)(device d, unsigned *n, struct process_memory *all);
};

/* Later versions first; all of one line take the same arguments. */
static const char *const names[][2] = {
    {"nvmlInit_v2", NULL},
    {"nvmlShutdown", NULL},
    {"nvmlDeviceGetCount_v2", NULL},
    {"nvmlDeviceGetHandleByIndex_v2", NULL},
    {"nvmlDeviceGetName", NULL},
    {"nvmlDeviceGetUtilizationRates", NULL},
    {"nvmlDeviceGetMemoryInfo", NULL},
    {"nvmlDeviceGetPowerUsage", NULL},
    {"nvmlDeviceGetTemperature", NULL},
    {"nvmlDeviceGetEncoderUtilization", NULL},
    {"nvmlDeviceGetDecoderUtilization", NULL},
    {"nvmlDeviceGetProcessUtilization", NULL},
    {"nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2"},
    {"nvmlDeviceGetGraphicsRunningProcesses_v3", "nvmlDeviceGetGraphicsRunningProcesses_v2"},
};
enum { N_CALLS = sizeof names / sizeof *names, N_NEEDED = 5 };
_Static_assert(sizeof(struct calls) == N_CALLS * sizeof(void *), "a name for each call");

struct gpu {
    device handle;
    size_t number;
    unsigned long long seen_us; /* samples of processes up to here are done */
};

struct sv_nvml {
    void *library;
    struct calls calls;
    struct gpu gpus[SV_GPUS_MAX];
    size_t n;
    struct process_sample *samples;
    struct process_memory *owners;
    size_t cap_samples, cap_owners;
};

/* ---- opening ---- */

static bool find_calls(struct sv_nvml *n)
{
    void *found[N_CALLS] = {0};
    for (size_t i = 0; i < N_CALLS; i++) {
        for (size_t k = 0; k < 2 && !found[i]; k++)
            found[i] = names[i][k] ? dlsym(n->library, names[i][k]) : NULL;
        if (!found[i] && i < N_NEEDED)
            return false;
    }
    memcpy(&n->calls, found, sizeof found);
    return true;
}

static void find_devices(struct sv_nvml *n, struct sv_gpus *g)
{
    unsigned count = 0;
    if (n->calls.count(&count) != NVML_OK)
        return;
    for (unsigned i = 0; i < count && n->n < SV_GPUS_MAX; i++) {
        char name[96] = "";
        struct gpu *x = &n->gpus[n->n];
        if (n->calls.by_index(i, &x->handle) != NVML_OK)
            continue;
        if (n->calls.name(x->handle, name, sizeof name) != NVML_OK)
            snprintf(name, sizeof name, "NVIDIA");
        name[sizeof name - 1] = 0;
        x->number = sv_gpu_add(g, name);
        n->n += x->number != SIZE_MAX;
    }
}

struct sv_nvml *sv_nvml_open(struct sv_gpus *g, const char *library, char *why, size_t size)
{
    struct sv_nvml *n = sv_alloc(sizeof *n);
    int code = 0;
    n->library = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!n->library) {
        snprintf(why, size, "no NVIDIA driver (%.60s)", library);
    } else if (!find_calls(n)) {
        snprintf(why, size, "%.60s is not NVML", library);
        (void)dlclose(n->library);
        n->library = NULL;
    } else if ((code = n->calls.init()) != NVML_OK) {
        snprintf(why, size, "NVML does not start (error %d)", code);
        (void)dlclose(n->library);
        n->library = NULL;
    }
    if (n->library) {
        find_devices(n, g);
        if (n->n > 0)
            return n;
        snprintf(why, size, "NVML knows no device");
    }
    sv_nvml_close(n);
    return NULL;
}

void sv_nvml_close(struct sv_nvml *n)
{
    if (!n)
        return;
    if (n->library) {
        (void)n->calls.shutdown();
        (void)dlclose(n->library);
    }
    free(n->samples);
    free(n->owners);
    free(n);
}

/* ---- sampling ---- */

static void sample_device(const struct sv_nvml *n, const struct gpu *x, struct sv_gpus *g)
{
    const struct calls *c = &n->calls;
    struct rates rates;
    struct memory memory;
    unsigned v, period;
    if (c->rates && c->rates(x->handle, &rates) == NVML_OK) {
        sv_gpu_put(g, x->number, 0, SV_GPU_SM, rates.gpu);
        sv_gpu_put(g, x->number, 0, SV_GPU_MEMORY, rates.memory);
    }
    if (c->memory && c->memory(x->handle, &memory) == NVML_OK)
        sv_gpu_put(g, x->number, 0, SV_GPU_FRAMEBUFFER, (double)memory.used);
    if (c->power && c->power(x->handle, &v) == NVML_OK)
        sv_gpu_put(g, x->number, 0, SV_GPU_POWER, v / 1000.0);
    if (c->temperature && c->temperature(x->handle, NVML_SENSOR_GPU, &v) == NVML_OK)
        sv_gpu_put(g, x->number, 0, SV_GPU_TEMPERATURE, v);
    if (c->encoder && c->encoder(x->handle, &v, &period) == NVML_OK)
        sv_gpu_put(g, x->number, 0, SV_GPU_ENCODER, v);
    if (c->decoder && c->decoder(x->handle, &v, &period) == NVML_OK)
        sv_gpu_put(g, x->number, 0, SV_GPU_DECODER, v);
}

/* The samples since the last call; how many. The first answer says how many there are. */
static unsigned take_samples(struct sv_nvml *n, struct gpu *x)
{
    for (int turn = 0; n->calls.processes && turn < 3; turn++) {
        unsigned count = (unsigned)n->cap_samples;
        int code =
            n->calls.processes(x->handle, n->cap_samples ? n->samples : NULL, &count, x->seen_us);
        if (code == NVML_OK && n->cap_samples > 0)
            return count <= n->cap_samples ? count : 0;
        if ((code != NVML_TOO_SMALL && code != NVML_OK) || count == 0 || count > SAMPLES_MAX)
            return 0;
        n->samples = sv_grow(n->samples, &n->cap_samples, count, sizeof *n->samples);
    }
    return 0;
}

static int by_pid(const void *a, const void *b)
{
    const struct process_sample *x = a, *y = b;
    return x->pid != y->pid ? (x->pid > y->pid) - (x->pid < y->pid)
                            : (x->time_us > y->time_us) - (x->time_us < y->time_us);
}

static bool is_percent(unsigned v)
{
    return v <= 100;
}

/* Means over the samples of each process. */
static void sample_processes(struct sv_nvml *n, struct gpu *x, struct sv_gpus *g)
{
    unsigned count = take_samples(n, x);
    if (count > 1)
        qsort(n->samples, count, sizeof *n->samples, by_pid);
    for (unsigned i = 0, k; i < count; i = k) {
        double sums[4] = {0};
        unsigned valid = 0, pid = n->samples[i].pid;
        for (k = i; k < count && n->samples[k].pid == pid; k++) {
            const struct process_sample *s = &n->samples[k];
            if (s->time_us > x->seen_us)
                x->seen_us = s->time_us;
            if (!is_percent(s->sm) || !is_percent(s->memory) || !is_percent(s->encoder) ||
                !is_percent(s->decoder))
                continue; /* drivers leave places of the answer unfilled */
            sums[0] += s->sm;
            sums[1] += s->memory;
            sums[2] += s->encoder;
            sums[3] += s->decoder;
            valid++;
        }
        for (int v = 0; valid && pid && v < 4; v++)
            sv_gpu_put(g, x->number, pid, (enum sv_gpu_value)(SV_GPU_SM + v), sums[v] / valid);
    }
}

/* Who holds how much memory, of one kind of use. */
static void sample_owners(struct sv_nvml *n, const struct gpu *x, struct sv_gpus *g,
                          int (*ask)(device, unsigned *, struct process_memory *))
{
    for (int turn = 0; ask && turn < 3; turn++) {
        unsigned count = (unsigned)n->cap_owners;
        int code = ask(x->handle, &count, n->cap_owners ? n->owners : NULL);
        if (code == NVML_TOO_SMALL && count > 0 && count <= SAMPLES_MAX) {
            n->owners = sv_grow(n->owners, &n->cap_owners, (size_t)count + 8, sizeof *n->owners);
            continue;
        }
        for (unsigned i = 0; code == NVML_OK && i < count && i < n->cap_owners; i++)
            if (n->owners[i].used != NVML_UNKNOWN_BYTES && n->owners[i].pid != 0)
                sv_gpu_put(g, x->number, n->owners[i].pid, SV_GPU_FRAMEBUFFER,
                           (double)n->owners[i].used);
        return;
    }
}

void sv_nvml_sample(struct sv_nvml *n, struct sv_gpus *g)
{
    for (size_t i = 0; i < n->n; i++) {
        sample_device(n, &n->gpus[i], g);
        sample_processes(n, &n->gpus[i], g);
        sample_owners(n, &n->gpus[i], g, n->calls.compute);
        sample_owners(n, &n->gpus[i], g, n->calls.graphics);
    }
}
