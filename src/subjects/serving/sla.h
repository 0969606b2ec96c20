/* --sla of the commands report and plot: limits of latency in milliseconds, "20,50". */
#pragma once

#include "core/base/err.h"

#include <stddef.h>

#define SV_SLA_MAX 8

/* NULL: 50, 100 and 200. ms holds SV_SLA_MAX values. */
int sv_parse_sla(const char *list, double *ms, size_t *n, struct sv_err *err);
