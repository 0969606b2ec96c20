/* GPUs over a sysfs made by hand, and the ways in which there is none. NVML is tested against a
 * false library by tests/cli/record_use.sh. */
#include "record/sample/gpus.h"
#include "tests/harness/test.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char no_nvml[] = "/nonexistent/libnvidia-ml.so.1";
static char root[256];

/* Makes the folders on the way. */
static void put(const char *name, const char *text)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", root, name);
    for (char *slash = path + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = 0;
        mkdir(path, 0700);
        *slash = '/';
    }
    FILE *f = fopen(path, "w");
    REQUIRE(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

static void open_root(void)
{
    snprintf(root, sizeof root, "%s", test_scratch("gpus"));
    REQUIRE(mkdir(root, 0700) == 0);
}

static void close_root(void)
{
    nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* All values of a sample as "GPU 0/sm=12 …", in their order. */
static void sample(struct sv_gpus *g, struct sv_dict *d, char *text, size_t size)
{
    struct sv_batch b;
    struct sv_err err = {0};
    size_t n = 0;
    text[0] = 0;
    sv_batch_init(&b);
    sv_gpus_sample(g, 1000);
    while (sv_batch_reset(&b), sv_gpus_source(g)->next(sv_gpus_source(g), &b, &err) > 0)
        for (size_t i = 0; i < b.n; i++) {
            const struct sv_event *e = &b.events[i];
            const struct sv_track_info *t = &d->tracks[e->track];
            double v = e->args[0].type == SV_ARG_INT ? (double)e->args[0].i : e->args[0].d;
            n += (size_t)snprintf(text + n, size - n, "%s%s/%s=%.15g", n ? " " : "",
                                  sv_dict_text(d, d->tracks[t->parent].name).bytes,
                                  sv_dict_text(d, t->name).bytes, v);
            CHECK_INT_EQ(e->ts_ns, 1000);
        }
    sv_batch_fini(&b);
}

TEST(amd_gpus_by_sysfs)
{
    char text[1024];
    open_root();
    put("class/drm/card0/device/vendor", "0x1002\n");
    put("class/drm/card0/device/product_name", "Radeon Test\n");
    put("class/drm/card0/device/gpu_busy_percent", "37\n");
    put("class/drm/card0/device/mem_busy_percent", "11\n");
    put("class/drm/card0/device/mem_info_vram_used", "4294967296\n");
    put("class/drm/card0/device/hwmon/hwmon3/power1_average", "151500000\n");
    put("class/drm/card0/device/hwmon/hwmon3/temp1_input", "65000\n");
    put("class/drm/card1/device/vendor", "0x8086\n"); /* somebody else's */
    put("class/drm/card1/device/gpu_busy_percent", "1\n");
    put("class/drm/card2/device/vendor", "0x1002\n"); /* has few values */
    put("class/drm/card2/device/gpu_busy_percent", "5\n");
    put("class/drm/card0-DP-1/device/vendor", "0x1002\n"); /* a connector */
    put("class/drm/card0-DP-1/device/gpu_busy_percent", "99\n");
    struct sv_dict *d = sv_dict_new();
    struct sv_gpus *g = sv_gpus_new(d, NULL, no_nvml, root);
    CHECK_UINT_EQ(sv_gpus_count(g), 2);
    CHECK_STR_EQ(sv_gpus_name(g, 0), "Radeon Test");
    CHECK_STR_EQ(sv_gpus_name(g, 1), "AMD");
    sample(g, d, text, sizeof text);
    CHECK_STR_EQ(text, "GPU 0/sm=37 GPU 0/memory=11 GPU 0/framebuffer=4294967296 GPU 0/power=151.5 "
                       "GPU 0/temperature=65 GPU 1/sm=5");
    /* A file that goes or says nonsense is no value. */
    put("class/drm/card0/device/gpu_busy_percent", "busy\n");
    put("class/drm/card2/device/gpu_busy_percent", "");
    sample(g, d, text, sizeof text);
    CHECK_STR_EQ(text, "GPU 0/memory=11 GPU 0/framebuffer=4294967296 GPU 0/power=151.5 "
                       "GPU 0/temperature=65");
    sv_gpus_free(g);
    sv_dict_free(d);
    close_root();
}

TEST(amd_power_of_newer_kernels)
{
    char text[256];
    open_root();
    put("class/drm/card0/device/vendor", "0x1002\n");
    put("class/drm/card0/device/gpu_busy_percent", "0\n");
    put("class/drm/card0/device/hwmon/hwmon0/power1_input", "42000000\n");
    struct sv_dict *d = sv_dict_new();
    struct sv_gpus *g = sv_gpus_new(d, NULL, no_nvml, root);
    sample(g, d, text, sizeof text);
    CHECK_STR_EQ(text, "GPU 0/sm=0 GPU 0/power=42");
    sv_gpus_free(g);
    sv_dict_free(d);
    close_root();
}

TEST(no_gpu_says_why)
{
    char text[256];
    open_root();
    struct sv_dict *d = sv_dict_new();
    struct sv_gpus *g = sv_gpus_new(d, NULL, no_nvml, root);
    CHECK_UINT_EQ(sv_gpus_count(g), 0);
    CHECK(strstr(sv_gpus_why_none(g), "no NVIDIA driver (/nonexistent/") != NULL);
    CHECK(strstr(sv_gpus_why_none(g), "no AMD GPU in /") != NULL);
    CHECK(strstr(sv_gpus_why_none(g), "/gpus") != NULL);
    sample(g, d, text, sizeof text);
    CHECK_STR_EQ(text, "");
    sv_gpus_free(g);
    /* A library that is none of NVML's. */
    g = sv_gpus_new(d, NULL, "libc.so.6", root);
    CHECK(strstr(sv_gpus_why_none(g), "libc.so.6 is not NVML") != NULL);
    sv_gpus_free(g);
    sv_dict_free(d);
    close_root();
}
