/* Questions about a trace, measured: SQL over the store.
 *
 *     query FILE [SQL]    one line per question: its name, CPU seconds (the best of three), rows
 *     query -l            the ten that are compared with a peer: name, tab, SQL
 *
 * Loading is a figure of its own. Indexes that a question makes at its first use are part of the
 * first run only; `first` is that run. CPU time, since the machine may be shared. */
#include "files/load.h"
#include "sql/sql.h"
#include "stats/self.h"
#include "stats/stats.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct counted {
    struct sv_rows_sink rows;
    uint64_t n;
};

static int no_head(struct sv_rows_sink *r, const char *const *names, size_t n, struct sv_err *err)
{
    (void)names;
    (void)n;
    (void)err;
    ((struct counted *)r)->n = 0;
    return 0;
}

static int count_row(struct sv_rows_sink *r, const struct sv_cell *cells, size_t n,
                     struct sv_err *err)
{
    (void)cells;
    (void)n;
    (void)err;
    ((struct counted *)r)->n++;
    return 0;
}

static int no_end(struct sv_rows_sink *r, struct sv_err *err)
{
    (void)r;
    (void)err;
    return 0;
}

static double seconds(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static void measure(struct sv_sql *q, const char *name, const char *sql)
{
    struct counted c = {.rows = {no_head, count_row, no_end}};
    struct sv_err err = {0};
    double first = 0, best = 0;
    for (int i = 0; i < 3; i++) {
        double start = seconds();
        if (sv_sql_run(q, sql, &c.rows, &err) < 0) {
            fprintf(stderr, "query: %s\n", err.msg);
            exit(1);
        }
        double spent = seconds() - start;
        first = i ? first : spent;
        best = i == 0 || spent < best ? spent : best;
    }
    printf("%s seconds %.6f first %.6f rows %" PRIu64 "\n", name, best, first, c.n);
    fflush(stdout);
}

static const struct {
    const char *name, *sql;
} questions[] = {
    {"point_id", "SELECT * FROM slice WHERE id = (SELECT id / 2 FROM (SELECT 5000001 AS id))"},
    {"range_track",
     "SELECT count(*), sum(dur) FROM slice WHERE track_id = (SELECT max(id) FROM track) "
     "AND ts BETWEEN trace_start() + trace_dur() / 2 AND trace_start() + trace_dur() / 2 + "
     "1000000"},
    {"range_all",
     "SELECT count(*), sum(dur) FROM slice WHERE ts BETWEEN trace_start() + trace_dur() "
     "/ 2 AND trace_start() + trace_dur() / 2 + 1000000"},
    {"one_name",
     "SELECT count(*), sum(dur) FROM slice WHERE name = (SELECT name FROM slice LIMIT 1)"},
    {"sum_all", "SELECT sum(dur) FROM slice"},
    {"parents", "SELECT max(parent_id) FROM slice"},
    /* Ten that people use; the peer gets the same words. */
    {"group_by_name", "SELECT name, count(*), sum(dur) FROM slice GROUP BY name"},
    {"percentiles",
     "SELECT name, percentile(dur, 50), percentile(dur, 99) FROM slice GROUP BY name"},
    {"by_thread",
     "SELECT t.name, count(*), sum(s.dur) FROM slice s JOIN thread_track k ON s.track_id = "
     "k.id JOIN thread t USING (utid) GROUP BY t.utid"},
    {"longest_names",
     "SELECT name, sum(dur) AS total, avg(dur), max(dur) FROM slice GROUP BY name ORDER BY "
     "total DESC LIMIT 10"},
    {"totals", "SELECT count(*), sum(dur), min(ts), max(dur) FROM slice"},
    {"by_category",
     "SELECT category, depth, count(*), avg(dur) FROM slice GROUP BY category, depth"},
    {"long_ones", "SELECT name, count(*) FROM slice WHERE dur > 100000 GROUP BY name"},
    {"one_name_literal", "SELECT count(*), avg(dur) FROM slice WHERE name = 'operation_7'"},
    {"top_ten", "SELECT id, name, dur FROM slice ORDER BY dur DESC LIMIT 10"},
    {"names", "SELECT DISTINCT name FROM slice ORDER BY name"},
};
#define N_QUESTIONS (sizeof questions / sizeof *questions)
#define N_COMMON    10u /* the last ones */

int main(int argc, char **argv)
{
    struct sv_loaded l;
    struct sv_sql *q;
    struct sv_err err;
    if (argc < 2) {
        fprintf(stderr, "usage: query FILE [SQL] | -l\n");
        return 2;
    }
    if (strcmp(argv[1], "-l") == 0) {
        for (size_t i = N_QUESTIONS - N_COMMON; i < N_QUESTIONS; i++)
            printf("%s\t%s\n", questions[i].name, questions[i].sql);
        return 0;
    }
    sv_err_clear(&err);
    double start = seconds();
    if (sv_load(argv[1], (struct sv_load_how[]){{.index = SV_INDEX_NOT_USED}}, &l, &err) < 0 ||
        sv_sql_open(l.trace, &(struct sv_sql_options){0}, &q, &err) < 0) {
        fprintf(stderr, "query: %s\n", err.msg);
        return 1;
    }
    printf("load seconds %.3f slices %" PRIu64 "\n", seconds() - start, l.trace->slices.n);
    if (argc == 2) {
        start = seconds();
        struct sv_stats stats;
        int64_t *self = sv_self_times(l.trace);
        sv_stats_make(&stats, l.trace, self, NULL, SV_BY_NAME);
        printf("stats seconds %.3f groups %zu\n", seconds() - start, stats.n);
        sv_stats_fini(&stats);
        free(self);
    }
    for (size_t i = 0; argc == 2 && i < N_QUESTIONS; i++)
        measure(q, questions[i].name, questions[i].sql);
    for (int i = 2; i < argc; i++)
        measure(q, "given", argv[i]);
    sv_sql_close(q);
    sv_loaded_free(&l);
    return 0;
}
