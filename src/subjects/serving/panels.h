/* Pictures of batches: the panels of an inference server's run, by name.
 *
 *     const struct sv_panel *panels = sv_batch_panels(&n);
 *     sv_batch_panel_draw(picture, &panels[i], rows, 0, 0, 900, 520);
 *     sv_batch_sheet_draw(picture, rows, title);                    // all of them
 */
#pragma once

#include "plot/picture.h"
#include "subjects/serving/rows.h"

enum sv_panel_kind {
    SV_PANEL_SIZES_OVER_TIME,
    SV_PANEL_SCATTER,
    SV_PANEL_CUMULATIVE,
    SV_PANEL_THROUGHPUT,
    SV_PANEL_SLA,
    SV_PANEL_ROLLING,
    SV_PANEL_PERCENTILES,
    SV_PANEL_COMPOSITION,
    SV_PANEL_PHASES_BY_SIZE,
    SV_PANEL_PHASES_BY_WORKER,
    SV_PANEL_CORRELATION,
    SV_PANEL_WATERFALL,
    SV_PANEL_PARETO,
    SV_PANEL_FIT,
    SV_PANEL_SIZES,
    SV_PANEL_VIOLIN,
    SV_PANEL_CDF_TYPE,
    SV_PANEL_CDF_WORKER,
    SV_PANEL_CDF_SIZE,
    SV_PANEL_WORKER_PHASES,
    SV_PANEL_WORKER_BOXES,
    SV_PANEL_WORKER_TASKS,
    SV_PANEL_WORKER_TIME,
    SV_PANEL_ARRIVALS,
    SV_PANEL_ARRIVAL_RATE,
    SV_PANEL_QUEUE,
    SV_PANEL_RADAR,
    SV_PANEL_ARRIVAL_WINDOW
};

#define SV_DEVICE_ANY SV_N_BATCH_DEVICES

struct sv_panel {
    const char *name, *title;
    enum sv_panel_kind kind;
    uint8_t device; /* enum sv_batch_device: only batches of such workers; SV_DEVICE_ANY: all */
};

const struct sv_panel *sv_batch_panels(size_t *n);
void sv_batch_panel_draw(struct sv_picture *p, const struct sv_panel *panel,
                         const struct sv_batch_rows *b, double x, double y, double w, double h);
/* All panels that have something of their own to show, below each other in columns; sets the
 * picture's height. */
void sv_batch_sheet_draw(struct sv_picture *p, const struct sv_batch_rows *b, const char *title);
