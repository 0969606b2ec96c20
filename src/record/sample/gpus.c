/* Rows and values of GPUs of all vendors. Called by the recorder at its interval; asks the vendors'
 * files for the numbers. */
#include "record/decode/values.h"
#include "record/sample/gpu_vendors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name, *unit;
} kinds[SV_GPU_VALUES] = {
    [SV_GPU_SM] = {"sm", "%"},
    [SV_GPU_MEMORY] = {"memory", "%"},
    [SV_GPU_ENCODER] = {"encoder", "%"},
    [SV_GPU_DECODER] = {"decoder", "%"},
    [SV_GPU_FRAMEBUFFER] = {"framebuffer", "bytes"},
    [SV_GPU_POWER] = {"power", "W"},
    [SV_GPU_TEMPERATURE] = {"temperature", "°C"},
};

struct sv_gpus {
    struct sv_source source;
    struct sv_tree *tree;
    struct sv_nvml *nvml;
    struct sv_amd *amd;
    char names[SV_GPUS_MAX][96];
    size_t n;
    char why[256];
    struct sv_values values;
};

/* Rows are found by name each time: a handful of dictionary look-ups per sample, and no table of
 * processes to keep. */
static sv_track row_of(struct sv_gpus *g, size_t device, uint32_t pid, enum sv_gpu_value which)
{
    struct sv_dict *d = g->source.dict;
    char name[24];
    sv_track parent = 0;
    if (pid != 0) {
        const struct sv_proc *p = g->tree ? sv_tree_find(g->tree, pid) : NULL;
        if (!p)
            return 0;
        parent = p->track;
    }
    snprintf(name, sizeof name, "GPU %zu", device);
    sv_track gpu =
        sv_dict_child(d, parent, pid ? SV_TRACK_CUSTOM : SV_TRACK_GPU, sv_dict_cstr(d, name));
    if (pid == 0 && d->tracks[gpu].desc == 0) {
        d->tracks[gpu].desc = sv_dict_cstr(d, g->names[device]);
        sv_dict_touch(d, gpu);
    }
    sv_track t = sv_dict_child(d, gpu, SV_TRACK_COUNTER, sv_dict_cstr(d, kinds[which].name));
    if (d->tracks[t].unit == 0)
        d->tracks[t].unit = sv_dict_cstr(d, kinds[which].unit);
    return t;
}

void sv_gpu_put(struct sv_gpus *g, size_t device, uint32_t pid, enum sv_gpu_value which, double v)
{
    sv_track t = row_of(g, device, pid, which);
    if (t != 0)
        sv_values_put(&g->values, t, v);
}

size_t sv_gpu_add(struct sv_gpus *g, const char *name)
{
    if (g->n == SV_GPUS_MAX)
        return SIZE_MAX;
    snprintf(g->names[g->n], sizeof g->names[0], "%.95s", name);
    return g->n++;
}

static int next(struct sv_source *source, struct sv_batch *b, struct sv_err *err)
{
    (void)err;
    return sv_values_next(&((struct sv_gpus *)source)->values, b);
}

static void close_source(struct sv_source *source)
{
    (void)source; /* sv_gpus_free() */
}

struct sv_gpus *sv_gpus_new(struct sv_dict *dict, struct sv_tree *tree, const char *nvml,
                            const char *sysfs)
{
    struct sv_gpus *g = sv_alloc(sizeof *g);
    char nvidia[120] = "", amd[120] = "";
    g->source =
        (struct sv_source){.next = next, .close = close_source, .gives = SV_IN_ORDER, .dict = dict};
    g->tree = tree;
    g->nvml = sv_nvml_open(g, nvml ? nvml : "libnvidia-ml.so.1", nvidia, sizeof nvidia);
    g->amd = sv_amd_open(g, sysfs ? sysfs : "/sys", amd, sizeof amd);
    if (g->n == 0)
        snprintf(g->why, sizeof g->why, "%s; %s", nvidia, amd);
    return g;
}

void sv_gpus_free(struct sv_gpus *g)
{
    if (!g)
        return;
    sv_nvml_close(g->nvml);
    sv_amd_close(g->amd);
    sv_values_fini(&g->values);
    free(g);
}

struct sv_source *sv_gpus_source(struct sv_gpus *g)
{
    return &g->source;
}

size_t sv_gpus_count(const struct sv_gpus *g)
{
    return g->n;
}

const char *sv_gpus_why_none(const struct sv_gpus *g)
{
    return g->why;
}

const char *sv_gpus_name(const struct sv_gpus *g, size_t i)
{
    return i < g->n ? g->names[i] : "";
}

void sv_gpus_sample(struct sv_gpus *g, int64_t now_ns)
{
    sv_values_begin(&g->values, now_ns);
    if (g->nvml)
        sv_nvml_sample(g->nvml, g);
    if (g->amd)
        sv_amd_sample(g->amd, g);
}
