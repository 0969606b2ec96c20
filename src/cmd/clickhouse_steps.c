/* The steps of a database, for `stave steps clickhouse://…`: its table `step`, judged over all
 * ranks of a run as those of a merged trace are. */
#include "clickhouse/answer.h"
#include "clickhouse/schema.h"
#include "cmd/clickhouse.h"
#include "core/base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    STEPS_MAX = 1 << 24,
    TITLE_MAX = 4096,
    N_KEYS = 8,
    N_CELLS = N_KEYS + SV_N_WORK + SV_N_DEVICE
};

/* ---- which run ---- */

struct runs {
    size_t n;
    char names[200];
};

static int take_run(void *ctx, const struct sv_cell *cells, struct sv_err *err)
{
    struct runs *r = ctx;
    size_t len = strlen(r->names);
    (void)err;
    if (cells[0].type == SV_CELL_TEXT && r->n < 5)
        snprintf(r->names + len, sizeof r->names - len, "%s%.60s", r->n ? ", " : "", cells[0].text);
    r->n++;
    return 0;
}

static int check_runs(struct sv_ch *c, const char *run, struct sv_err *err)
{
    struct runs r = {0};
    if (run)
        return 0;
    int code =
        sv_ch_each(c, NULL, "SELECT DISTINCT run FROM trace ORDER BY run", 1, take_run, &r, err);
    if (code >= 0 && r.n > 1)
        code = sv_error(err, SV_EUSAGE, "the database has %zu runs: give one with --run (%s%s)",
                        r.n, r.names, r.n > 5 ? ", …" : "");
    return code;
}

/* ---- rows ---- */

/* The title of a step's track; of a file without a rank with its name, since tracks of several
 * files may be called alike. */
static void add_title(struct sv_step_rows *x, const struct sv_cell *cells)
{
    const char *file = cells[6].type == SV_CELL_TEXT ? cells[6].text : "";
    const char *track = cells[5].type == SV_CELL_TEXT ? cells[5].text : "";
    char title[TITLE_MAX];
    if (cells[7].i < 0 && x->n_files > 1)
        snprintf(title, sizeof title, "%.255s · %.3000s", file, track);
    else
        snprintf(title, sizeof title, "%.3000s", track);
    SV_APPEND(x->titles, x->n_titles, x->cap_titles) = sv_strndup(title, strlen(title));
    x->load_id = cells[0].i;
    x->track_id = cells[1].i;
}

static int take_step(void *ctx, const struct sv_cell *cells, struct sv_err *err)
{
    struct sv_step_rows *x = ctx;
    struct sv_steps *s = &x->steps;
    if (s->n == STEPS_MAX)
        return sv_error(err, SV_ELIMIT, "the run has more than %d steps", STEPS_MAX);
    if (s->n == 0 || x->load_id != cells[0].i || x->track_id != cells[1].i)
        add_title(x, cells);
    s->steps = sv_grow(s->steps, &x->cap_steps, s->n + 1, sizeof *s->steps);
    struct sv_step *to = &s->steps[s->n++];
    *to = (struct sv_step){.track = (sv_track)(x->n_titles - 1),
                           .number = cells[2].i,
                           .ts_ns = cells[3].i,
                           .dur_ns = cells[4].i};
    for (size_t i = 0; i < SV_N_WORK; i++)
        to->work_ns[i] = cells[N_KEYS + i].i;
    for (size_t i = 0; i < SV_N_DEVICE; i++)
        to->device_ns[i] = cells[N_KEYS + SV_N_WORK + i].i;
    return 0;
}

static void add_run(const char *run, struct sv_buf *sql)
{
    if (!run)
        return;
    sv_buf_str(sql, " WHERE run = ");
    sv_ch_quote(sql, run);
}

static int count_files(struct sv_ch *c, const char *run, int64_t *n, struct sv_err *err)
{
    struct sv_buf sql;
    sv_buf_init(&sql, 1u << 16);
    sv_buf_str(&sql, "SELECT count() FROM trace");
    add_run(run, &sql);
    int code = sv_ch_number(c, NULL, sv_buf_cstr(&sql), n, err);
    sv_buf_fini(&sql);
    return code;
}

static void add_question(const char *run, struct sv_buf *sql)
{
    sv_buf_str(sql, "SELECT load_id, track_id, number, start_ns, dur, track, file, rank");
    for (size_t i = 0; i < SV_N_WORK; i++)
        sv_buf_printf(sql, ", %s_ns", sv_work_names[i]);
    for (size_t i = 0; i < SV_N_DEVICE; i++)
        sv_buf_printf(sql, ", %s_ns", sv_device_names[i]);
    sv_buf_str(sql, " FROM step");
    add_run(run, sql);
    sv_buf_str(sql, " ORDER BY rank, file, load_id, track_id, start_ns");
}

int sv_steps_clickhouse(const char *url, const char *run, struct sv_step_rows *rows,
                        struct sv_err *err)
{
    struct sv_ch *c = NULL;
    struct sv_buf sql;
    *rows = (struct sv_step_rows){.steps = {.marker = "the table step"}};
    sv_buf_init(&sql, 1u << 20);
    add_question(run, &sql);
    int code = sv_database_open(url, &c, err);
    if (code >= 0)
        code = check_runs(c, run, err);
    if (code >= 0)
        code = count_files(c, run, &rows->n_files, err);
    if (code >= 0)
        code = sv_ch_each(c, NULL, sv_buf_cstr(&sql), N_CELLS, take_step, rows, err);
    sv_ch_close(c);
    sv_buf_fini(&sql);
    if (code < 0)
        return code;
    if (rows->steps.n == 0)
        return sv_error(err, SV_EFOUND, "no steps found: the database has none%s",
                        run ? " of this run" : "");
    rows->steps.n_tracks = rows->n_titles;
    sv_steps_judge(&rows->steps);
    return 0;
}

void sv_step_rows_fini(struct sv_step_rows *rows)
{
    for (size_t i = 0; i < rows->n_titles; i++)
        free(rows->titles[i]);
    free(rows->titles);
    sv_steps_fini(&rows->steps);
}
