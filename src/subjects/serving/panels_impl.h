/* Inside the panels of batches: what their files share. */
#pragma once

#include "plot/axes.h"
#include "subjects/serving/panels.h"

#define SV_NO_ARRIVALS "no data: the file does not say when requests arrived (request_arrival_us)"
#define SV_NAMES_MAX   12u /* workers or sizes that one panel shows */

/* A panel in the making: the batches that it shows, by number. */
struct sv_panel_draw {
    struct sv_axes a;
    const struct sv_panel *panel;
    const struct sv_batch_rows *b;
    const struct sv_batch_row **rows;
    size_t n;
    double *xs, *ys; /* n each: scratch */
};

extern const uint32_t sv_batch_phase_colors[SV_N_BATCH_PHASES];
extern const uint32_t sv_batch_device_colors[SV_N_BATCH_DEVICES];
extern const char *const sv_batch_device_names[SV_N_BATCH_DEVICES];

/* Workers or batch sizes, the most frequent first. */
struct sv_panel_group {
    struct sv_name name;
    uint64_t key;
    size_t n; /* batches */
    uint64_t requests;
    uint8_t device;
    double total_ns, phase_ns[SV_N_BATCH_PHASES]; /* sums */
};
size_t sv_panel_by_size(const struct sv_panel_draw *d, struct sv_panel_group *groups);
size_t sv_panel_by_worker(const struct sv_panel_draw *d, struct sv_panel_group *groups);
bool sv_panel_is_in(const struct sv_panel_group *g, const struct sv_batch_row *r, bool by_size);

struct sv_axis sv_panel_time_axis(double largest_ns);
struct sv_axis sv_panel_count_axis(double largest);
double sv_panel_largest(const double *values, size_t n);
/* An axis of latencies ends where nearly all of them are: a few that took many times as long would
 * press the others to the floor. Those are drawn at its end and counted beside it. */
struct sv_latency_range {
    double end_ns, most_ns;
};
struct sv_latency_range sv_panel_latencies(const struct sv_panel_draw *d);
/* Says how many batches lie past the end of the axis. */
void sv_panel_outliers(struct sv_panel_draw *d, const struct sv_axis *axis, const char *where);
void sv_panel_phase_legend(struct sv_panel_draw *d);
/* p (0 … 1) of values in rising order. */
double sv_panel_quantile(const double *sorted, size_t n, double p);
void sv_panel_sort(double *values, size_t n);

typedef void sv_panel_fn(struct sv_panel_draw *d);
sv_panel_fn sv_panel_phases_by_size, sv_panel_phases_by_worker, sv_panel_correlation,
    sv_panel_waterfall, sv_panel_pareto, sv_panel_composition, sv_panel_worker_phases,
    sv_panel_worker_time, sv_panel_radar, sv_panel_worker_tasks, sv_panel_worker_boxes,
    sv_panel_sizes, sv_panel_violin, sv_panel_cdf_type, sv_panel_cdf_worker, sv_panel_cdf_size,
    sv_panel_arrivals, sv_panel_arrival_rate, sv_panel_throughput, sv_panel_queue;
