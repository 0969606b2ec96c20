/* AMD's GPUs through sysfs, as the kernel's amdgpu driver shows them: utilisation, memory, power,
 * temperature.
 *
 * Called by record/sample/gpus.c. The files are described in the kernel's documentation ("Misc
 * AMDGPU driver information", "GPU Power/Thermal"); one that is not there gives no value. */
#include "record/sample/gpu_vendors.h"
#include "record/sample/procfs.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_SIZE = 300 };

struct card {
    size_t number;
    char folder[200]; /* …/class/drm/card0/device */
    char hwmon[250];  /* its sensors; "": none */
};

struct sv_amd {
    struct card cards[SV_GPUS_MAX];
    size_t n;
};

static bool read_number(const char *folder, const char *name, double *v)
{
    char path[PATH_SIZE], text[64], *end;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (!sv_procfs_text(path, text, sizeof text))
        return false;
    *v = (double)strtoll(text, &end, 10);
    return end != text;
}

static void trim(char *text)
{
    text[strcspn(text, "\r\n")] = 0;
}

static void add_card(struct sv_amd *a, struct sv_gpus *g, const char *folder)
{
    char path[PATH_SIZE], text[96];
    double busy;
    glob_t found;
    struct card *c = &a->cards[a->n];
    snprintf(path, sizeof path, "%.200s/vendor", folder);
    if (a->n == SV_GPUS_MAX || strlen(folder) >= sizeof c->folder ||
        !sv_procfs_text(path, text, sizeof text) || strncmp(text, "0x1002", 6) != 0 ||
        !read_number(folder, "gpu_busy_percent", &busy))
        return;
    snprintf(c->folder, sizeof c->folder, "%s", folder);
    snprintf(path, sizeof path, "%s/hwmon/hwmon*", folder);
    c->hwmon[0] = 0;
    if (glob(path, 0, NULL, &found) == 0 && strlen(found.gl_pathv[0]) < sizeof c->hwmon)
        snprintf(c->hwmon, sizeof c->hwmon, "%s", found.gl_pathv[0]);
    globfree(&found);
    snprintf(path, sizeof path, "%s/product_name", folder);
    if (!sv_procfs_text(path, text, sizeof text) || text[0] == '\n')
        snprintf(text, sizeof text, "AMD");
    trim(text);
    c->number = sv_gpu_add(g, text);
    a->n += c->number != SIZE_MAX;
}

struct sv_amd *sv_amd_open(struct sv_gpus *g, const char *sysfs, char *why, size_t size)
{
    struct sv_amd *a = sv_alloc(sizeof *a);
    char pattern[PATH_SIZE];
    glob_t found;
    /* card0, card1, not their connectors card0-DP-1 */
    snprintf(pattern, sizeof pattern, "%.200s/class/drm/card[0-9]*/device", sysfs);
    if (glob(pattern, 0, NULL, &found) == 0)
        for (size_t i = 0; i < found.gl_pathc; i++)
            if (!strchr(strstr(found.gl_pathv[i], "/drm/card") + 5, '-'))
                add_card(a, g, found.gl_pathv[i]);
    globfree(&found);
    if (a->n > 0)
        return a;
    snprintf(why, size, "no AMD GPU in %.60s/class/drm", sysfs);
    free(a);
    return NULL;
}

void sv_amd_close(struct sv_amd *a)
{
    free(a);
}

void sv_amd_sample(struct sv_amd *a, struct sv_gpus *g)
{
    for (size_t i = 0; i < a->n; i++) {
        const struct card *c = &a->cards[i];
        double v;
        if (read_number(c->folder, "gpu_busy_percent", &v))
            sv_gpu_put(g, c->number, 0, SV_GPU_SM, v);
        if (read_number(c->folder, "mem_busy_percent", &v))
            sv_gpu_put(g, c->number, 0, SV_GPU_MEMORY, v);
        if (read_number(c->folder, "mem_info_vram_used", &v))
            sv_gpu_put(g, c->number, 0, SV_GPU_FRAMEBUFFER, v);
        if (!c->hwmon[0])
            continue;
        if (read_number(c->hwmon, "power1_average", &v) ||
            read_number(c->hwmon, "power1_input", &v))
            sv_gpu_put(g, c->number, 0, SV_GPU_POWER, v / 1e6);
        if (read_number(c->hwmon, "temp1_input", &v))
            sv_gpu_put(g, c->number, 0, SV_GPU_TEMPERATURE, v / 1e3);
    }
}
