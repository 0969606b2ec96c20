/* Two runs beside each other, for CI, and the bars of a waterfall: what the reports batch and llm
 * share. */
#pragma once

#include "core/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A figure of two runs. */
struct sv_change {
    const char *name;
    double before, after, limit; /* limit: of the worsening; percent, or a count */
    bool is_count, less_is_worse;
};

/* Prints them, with --json as a list. True: a limit is exceeded. */
bool sv_print_changes(const struct sv_change *changes, size_t n, bool is_json);

/* The number that an option says, with or without %; `otherwise` when it was not given. */
int sv_percent_option(const char *option, const char *text, double otherwise, double *out,
                      struct sv_err *err);

/* A line of a waterfall that begins at start_ns and lasts total_ns. */
void sv_print_bar(const char *name, int64_t from_ns, int64_t to_ns, int64_t start_ns,
                  int64_t total_ns);
