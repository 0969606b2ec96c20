/* What commands do with a database of ClickHouse (clickhouse://…) instead of a file. */
#pragma once

#include "cli/rows.h"
#include "clickhouse/client.h"
#include "files/load.h"
#include "why/steps.h"

/* URL and credentials to a client. */
int sv_database_open(const char *url, struct sv_ch **out, struct sv_err *err);
/* A database is the only input: "query URL other.json" makes no sense. */
int sv_database_alone(const char *const *paths, size_t n, struct sv_err *err);

int sv_query_clickhouse(const char *url, const char *sql, const struct sv_rows_choice *to,
                        bool is_timed, struct sv_err *err);

/* Steps of one run: `track` of each is an index of titles, ts_ns counts from the start of its
 * trace. */
struct sv_step_rows {
    struct sv_steps steps;
    char **titles;
    size_t n_titles, cap_titles, cap_steps;
    int64_t n_files;
    int64_t load_id, track_id; /* of the last title */
};
/* run NULL: the only one. */
int sv_steps_clickhouse(const char *url, const char *run, struct sv_step_rows *rows,
                        struct sv_err *err);
void sv_step_rows_fini(struct sv_step_rows *rows); /* also after a failure */
