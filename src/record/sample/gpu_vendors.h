/* Between record/sample/gpus.c and the vendors' files: a device, what may be asked of it, and how
 * answers come back. */
#ifndef SV_RECORD_SAMPLE_GPU_VENDORS_H
#define SV_RECORD_SAMPLE_GPU_VENDORS_H

#include "record/sample/gpus.h"

enum sv_gpu_value {
    SV_GPU_SM,
    SV_GPU_MEMORY,
    SV_GPU_ENCODER,
    SV_GPU_DECODER,
    SV_GPU_FRAMEBUFFER,
    SV_GPU_POWER,
    SV_GPU_TEMPERATURE,
    SV_GPU_VALUES
};

enum { SV_GPUS_MAX = 64 };

/* pid 0: the device's own value; else that of a process, which is dropped when the process is not
 * followed. */
void sv_gpu_put(struct sv_gpus *g, size_t device, uint32_t pid, enum sv_gpu_value which, double v);
/* A new device; its number, SIZE_MAX when there are too many. */
size_t sv_gpu_add(struct sv_gpus *g, const char *name);

/* Each vendor: finds its devices, samples them, lets go. NULL: there is none, `why` says why. */
struct sv_nvml *sv_nvml_open(struct sv_gpus *g, const char *library, char *why, size_t size);
void sv_nvml_sample(struct sv_nvml *n, struct sv_gpus *g);
void sv_nvml_close(struct sv_nvml *n);

struct sv_amd *sv_amd_open(struct sv_gpus *g, const char *sysfs, char *why, size_t size);
void sv_amd_sample(struct sv_amd *a, struct sv_gpus *g);
void sv_amd_close(struct sv_amd *a);

#endif
