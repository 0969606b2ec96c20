/* A libnvidia-ml.so.1 for machines without NVIDIA: two GPUs whose numbers are known. Built from
 * NVML's public signatures only.
 *
 * FAKE_NVML=broken: nvmlInit_v2 fails; none: no device; bare: nothing but names is supported.
 * FAKE_NVML_PID: the process that uses GPU 0. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define API __attribute__((visibility("default")))
enum { OK = 0, NOT_SUPPORTED = 3, TOO_SMALL = 7, NOT_LOADED = 9 };
typedef struct fake_device *device;

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

API int nvmlInit_v2(void);
API int nvmlShutdown(void);
API int nvmlDeviceGetCount_v2(unsigned *n);
API int nvmlDeviceGetHandleByIndex_v2(unsigned i, device *d);
API int nvmlDeviceGetName(device d, char *text, unsigned size);
API int nvmlDeviceGetUtilizationRates(device d, struct rates *r);
API int nvmlDeviceGetMemoryInfo(device d, struct memory *m);
API int nvmlDeviceGetPowerUsage(device d, unsigned *mw);
API int nvmlDeviceGetTemperature(device d, int sensor, unsigned *c);
API int nvmlDeviceGetProcessUtilization(device d, struct process_sample *s, unsigned *n,
                                        unsigned long long since);
API int nvmlDeviceGetComputeRunningProcesses_v3(device d, unsigned *n, struct process_memory *all);

static int is_mode(const char *word)
{
    const char *mode = getenv("FAKE_NVML");
    return mode && strcmp(mode, word) == 0;
}

static unsigned index_of(device d)
{
    return (unsigned)((size_t)d - 1);
}

static unsigned user(void)
{
    const char *pid = getenv("FAKE_NVML_PID");
    FILE *f = pid ? fopen(pid, "re") : NULL; /* a file that will hold it */
    unsigned n = 0;
    if (f && fscanf(f, "%u", &n) != 1)
        n = 0;
    if (f)
        (void)fclose(f);
    return n;
}

int nvmlInit_v2(void)
{
    return is_mode("broken") ? NOT_LOADED : OK;
}

int nvmlShutdown(void)
{
    return OK;
}

int nvmlDeviceGetCount_v2(unsigned *n)
{
    *n = is_mode("none") ? 0 : 2;
    return OK;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned i, device *d)
{
    *d = (device)((size_t)i + 1); // NOLINT(performance-no-int-to-ptr)
    return OK;
}

int nvmlDeviceGetName(device d, char *text, unsigned size)
{
    snprintf(text, size, "Fake %u", index_of(d));
    return OK;
}

int nvmlDeviceGetUtilizationRates(device d, struct rates *r)
{
    *r = (struct rates){40 + index_of(d), 20 + index_of(d)};
    return is_mode("bare") ? NOT_SUPPORTED : OK;
}

int nvmlDeviceGetMemoryInfo(device d, struct memory *m)
{
    *m = (struct memory){8000000000, 7000000000, 1000000000 + index_of(d)};
    return is_mode("bare") ? NOT_SUPPORTED : OK;
}

int nvmlDeviceGetPowerUsage(device d, unsigned *mw)
{
    *mw = 123456;
    return index_of(d) || is_mode("bare") ? NOT_SUPPORTED : OK; /* only the first one supports it */
}

int nvmlDeviceGetTemperature(device d, int sensor, unsigned *c)
{
    *c = 61 + index_of(d);
    return sensor != 0 || is_mode("bare") ? NOT_SUPPORTED : OK;
}

/* Two samples of the user, one unfilled place as drivers leave it, one of somebody else. */
int nvmlDeviceGetProcessUtilization(device d, struct process_sample *s, unsigned *n,
                                    unsigned long long since)
{
    static unsigned long long now_us = 1000;
    unsigned pid = user();
    if (is_mode("bare") || index_of(d))
        return NOT_SUPPORTED;
    if (!s || *n < 4) {
        *n = 4;
        return TOO_SMALL;
    }
    now_us = now_us > since ? now_us : since + 1;
    s[0] = (struct process_sample){pid, now_us + 1, 10, 4, 0, 0};
    s[1] = (struct process_sample){1, now_us + 2, 99, 99, 99, 99};
    s[2] = (struct process_sample){pid, now_us + 3, 21, 8, 0, 0};
    s[3] = (struct process_sample){pid, 0, 4294967295u, 0, 0, 0};
    *n = 4;
    return OK;
}

int nvmlDeviceGetComputeRunningProcesses_v3(device d, unsigned *n, struct process_memory *all)
{
    if (is_mode("bare") || index_of(d))
        return NOT_SUPPORTED;
    if (!all || *n < 2) {
        *n = 2;
        return TOO_SMALL;
    }
    all[0] = (struct process_memory){user(), 777000000, 0, 0};
    all[1] = (struct process_memory){1, ~0ull, 0, 0};
    *n = 2;
    return OK;
}
