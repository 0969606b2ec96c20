/* The time line: what the machine did (CPU, GPUs, disks, I/O by process) and the tracks of the
 * trace over time. */
#pragma once

#include "plot/bands.h"
#include "plot/frame.h"
#include "plot/layout.h"

/* What the picture shows, from top to bottom. The first ones are enum sv_bands_what. */
enum sv_timeline_rows {
    SV_ROWS_APP =
        16, /* tracks of the application: phases, threads' own slices, counters; no system calls */
    SV_ROWS_TRACKS = 32, /* all tracks */
    SV_ROWS_AUTO = 0     /* bands and APP where the trace has anything for a band, else TRACKS */
};

struct sv_plot_timeline {
    struct sv_plot_frame frame;
    int64_t from_ns, to_ns; /* equal: where something happens, see activity.h */
    unsigned rows;          /* enum sv_bands_what, enum sv_timeline_rows */
    const struct sv_bands_io *io;
    enum sv_io_grouping grouping;
    size_t processes_max; /* bands of I/O; 0: some */
    size_t rows_max;      /* further rows of tracks are counted, not drawn; 0: some */
    size_t arrows_max;    /* more flows than that are not drawn */
    /* those rows_max rows with most slices in the window rather than the first ones */
    bool only_busiest;
    /* Fills `to` with at most SV_FIRST_ROWS rows that come first; NULL: none do. */
    size_t (*first_rows)(const char *order, const struct sv_track_rows *r, uint32_t *to);
    const char *order;
};
#define SV_FIRST_ROWS 8

/* Rows without anything in the window are left out. Returns how many rows were drawn. */
size_t sv_timeline_draw(struct sv_picture *p, const struct sv_trace *t,
                        const struct sv_plot_timeline *o);
