/* Bands: the rows of a figure of a whole machine, without any drawing: CPU, GPUs, disks, and what
 * each process or group of them does with files and devices.
 *
 *     struct sv_bands b;
 *     sv_bands_find(&b, trace, &(struct sv_bands_wanted){.what = SV_BANDS_ALL, .bins = {from, to,
 *     1200}});
 *     for (size_t i = 0; i < b.n; i++) … sv_band_draw(picture, &b.bands[i], …)
 *
 * A band is a stack of series (CPU), lines with up to two axes (a GPU, a disk), or lanes that are
 * the darker the more of the time is spent in them. Only what the trace holds becomes a band;
 * conventions are those of docs/io.md. */
#pragma once

#include "plot/axis.h"
#include "plot/bins.h"

#define SV_BAND_PARTS_MAX 6u
#define SV_BAND_LANES_MAX 3u

enum sv_band_kind { SV_BAND_STACK, SV_BAND_LINES, SV_BAND_LANES };

/* A series, or one half of a lane. */
struct sv_band_part {
    const char *name;
    uint32_t color;
    bool is_right;   /* lines: on the second axis */
    uint8_t lane;    /* lanes: which one */
    uint8_t order;   /* of its kind, in a legend */
    double *value;   /* by bin; NaN: not known. Lanes: the share of time, 0 … 1 */
    uint32_t *count; /* lanes: what begins in the bin */
    double *bytes;   /* lanes: what those move */
};

struct sv_band {
    enum sv_band_kind kind;
    char title[96], note[64];
    struct sv_band_part parts[SV_BAND_PARTS_MAX];
    size_t n;
    struct sv_axis left, right; /* unit, suffix and `to`; right.to 0: there is none */
    const char *lanes[SV_BAND_LANES_MAX];
    size_t n_lanes;
};

enum sv_bands_what {
    SV_BANDS_CPU = 1,
    SV_BANDS_GPU = 2,
    SV_BANDS_DISK = 4,
    SV_BANDS_IO = 8,
    SV_BANDS_ALL = 15
};

enum sv_io_grouping { SV_GROUP_PROCESS, SV_GROUP_ROLE, SV_GROUP_ALL };

struct sv_bands;
struct sv_bands_wanted;

/* Who finds the bands of I/O: subjects/io/, which lies above this folder. */
struct sv_bands_io {
    bool (*has)(const struct sv_trace *t);
    void (*find)(struct sv_bands *b, const struct sv_trace *t, const struct sv_bands_wanted *w);
};

struct sv_bands_wanted {
    unsigned what; /* enum sv_bands_what */
    const struct sv_bands_io *io;
    struct sv_bins bins;
    enum sv_io_grouping grouping;
    size_t processes_max; /* further ones are put together; 0: 10 */
};

struct sv_bands {
    struct sv_bins bins;
    struct sv_band *bands;
    size_t n, cap;
};

void sv_bands_find(struct sv_bands *b, const struct sv_trace *t, const struct sv_bands_wanted *w);
void sv_bands_fini(struct sv_bands *b);
/* Which of them the trace has anything for, at any time. */
unsigned sv_bands_there(const struct sv_trace *t, const struct sv_bands_io *io);

/* ---- painting ---- */

double sv_band_height(const struct sv_band *b);
/* The plot area is [x0, x1] wide, labels are left of it from `label_x` on; the second axis right of
 * it. */
void sv_band_draw(struct sv_picture *p, const struct sv_band *b, const struct sv_bins *bins,
                  double label_x, double x0, double x1, double y);

/* ---- the parts, for each other ---- */

struct sv_band *sv_bands_add(struct sv_bands *b, enum sv_band_kind kind);
/* All bins NaN (series) or 0 (lanes). */
struct sv_band_part *sv_band_part_add(struct sv_bands *all, struct sv_band *b, const char *name,
                                      uint32_t color);
