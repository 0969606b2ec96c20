/* A trace and the page in one HTML file, which needs no server: `stave view --export`. */
#pragma once

#include "core/files/output.h"
#include "view/viewer.h"

#define SV_EXPORT_SLICES_MAX 300000u /* all of them are in the page's memory */

/* Appends the page to `out`. The viewer shows the trace, offline. */
int sv_view_export(struct sv_viewer *v, struct sv_output *out, struct sv_err *err);
