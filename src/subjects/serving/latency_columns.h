/* Columns that reports share: of a latency (mean, percentiles, maximum), and how requests ended. */
#pragma once

#include "cli/rows.h"
#include "subjects/serving/report.h"

#define SV_LATENCY_COLUMNS(prefix, words)                                                       \
    {prefix "mean_ns", words "mean", SV_UNIT_NS}, {prefix "p50_ns", words "p50", SV_UNIT_NS},   \
        {prefix "p90_ns", words "p90", SV_UNIT_NS}, {prefix "p95_ns", words "p95", SV_UNIT_NS}, \
        {prefix "p99_ns", words "p99", SV_UNIT_NS},                                             \
    {                                                                                           \
        prefix "max_ns", words "max", SV_UNIT_NS                                                \
    }
enum { SV_N_LATENCY_COLUMNS = 6 };

/* Their cells, NULL without a value; returns the cell after them. */
struct sv_cell *sv_put_latency(struct sv_cell *c, const struct sv_latency *l);

#define SV_OUTCOME_COLUMNS                                                                     \
    {"requests", "requests answered", SV_UNIT_COUNT}, {"rejected", "rejected", SV_UNIT_COUNT}, \
        {"failed", "failed", SV_UNIT_COUNT}, {"cancelled", "cancelled", SV_UNIT_COUNT},        \
    {                                                                                          \
        "open", "without an end", SV_UNIT_COUNT                                                \
    }
struct sv_cell *sv_put_outcomes(struct sv_cell *c, uint64_t answered, uint64_t rejected,
                                uint64_t failed, uint64_t cancelled, uint64_t open);
