/* The tables `stats`, `metadata`, `clock_snapshot` and `machine`: what is known about the trace as
 * a whole.
 *
 * Few rows each, computed from the dictionary and the reader's report when a column is asked
 * for. */
#include "sql/sql.h"

#ifdef SV_HAVE_SQLITE
#include "sql/impl.h"

#include <string.h>

static void result_literal(sqlite3_context *ctx, const char *text)
{
    if (text)
        sqlite3_result_text(ctx, text, -1, SQLITE_STATIC);
}

/* ---- stats ---- */

/* Totals of the store, which come before the reader's findings. */
static const struct {
    const char *name, *severity, *description;
} totals[] = {
    {"stave_lost_events", "data_loss", "events that the recorder could not keep"},
    {"stave_loss_events", "data_loss", "places where something was lost"},
    {"stave_unmatched_ends", "error", "slice ends without a begin"},
    {"stave_unfinished_slices", "info", "slices without an end"},
    {"stave_unbound_flow_points", "info", "flow points without a slice to bind to"},
};
#define N_TOTALS (sizeof totals / sizeof *totals)

static uint64_t total(const struct sv_trace *t, uint64_t which)
{
    uint64_t lost = 0;
    switch (which) {
    case 0:
        for (uint64_t i = 0; i < t->losses.n; i++)
            lost += t->losses.count[i];
        return lost;
    case 1: return t->losses.n;
    case 2: return t->unmatched_ends;
    case 3: return t->unfinished;
    default: return t->unbound_flow_points;
    }
}

static uint64_t stats_rows(struct sv_sql *q)
{
    return N_TOTALS + (q->report ? q->report->n : 0);
}

static void stats_column(struct sv_sql_cursor *c, sqlite3_context *ctx, int column)
{
    static const char *const severities[] = {
        [SV_NOTE] = "info", [SV_SKIPPED] = "info", [SV_DAMAGE] = "error"};
    bool is_total = c->row < N_TOTALS;
    const struct sv_finding *f = is_total ? NULL : &c->q->report->rows[c->row - N_TOTALS];
    switch (column) {
    case 0: sqlite3_result_int64(ctx, (sqlite3_int64)c->row); break;
    case 1: result_literal(ctx, is_total ? totals[c->row].name : f->what); break;
    case 2: sqlite3_result_int64(ctx, (sqlite3_int64)c->row); break;
    case 4:
        result_literal(ctx, is_total ? totals[c->row].severity : severities[f->severity]);
        break;
    case 5: result_literal(ctx, is_total ? "trace" : "analysis"); break;
    case 6:
        sqlite3_result_int64(ctx,
                             (sqlite3_int64)(is_total ? total(c->q->trace, c->row) : f->count));
        break;
    case 7: result_literal(ctx, is_total ? totals[c->row].description : f->first_detail); break;
    default: break;
    }
}

const struct sv_sql_table sv_sql_stats = {
    .name = "stats",
    .rows = stats_rows,
    .column = stats_column,
};

/* ---- metadata ---- */

static uint64_t metadata_rows(struct sv_sql *q)
{
    return q->dict->n_meta + 2ull;
}

static int metadata_start(struct sv_sql_cursor *c, int order, const struct sv_sql_cond *conds,
                          size_t n)
{
    (void)order;
    (void)conds;
    (void)n;
    sv_sql_range(c, c->q->trace_type ? 0 : 1, metadata_rows(c->q) - (c->q->trace_bytes ? 0 : 1));
    return SQLITE_OK;
}

/* Row 0 is the type of the trace, the last one its size, between them what the file says. */
static void metadata_column(struct sv_sql_cursor *c, sqlite3_context *ctx, int column)
{
    const struct sv_sql *q = c->q;
    bool is_type = c->row == 0, is_size = c->row == q->dict->n_meta + 1ull;
    const struct sv_meta *m = is_type || is_size ? NULL : &q->dict->meta[c->row - 1];
    switch (column) {
    case 0: sqlite3_result_int64(ctx, (sqlite3_int64)c->row); break;
    case 1:
        if (m)
            sv_sql_result_str(q, ctx, m->key);
        else
            result_literal(ctx, is_type ? "trace_type" : "trace_size_bytes");
        break;
    case 2: result_literal(ctx, "single"); break;
    case 3:
        if (is_size)
            sqlite3_result_int64(ctx, (sqlite3_int64)q->trace_bytes);
        break;
    case 4:
        if (m)
            sv_sql_result_str(q, ctx, m->value);
        else if (is_type)
            result_literal(ctx, q->trace_type);
        break;
    default: break;
    }
}

const struct sv_sql_table sv_sql_metadata = {
    .name = "trace_metadata", /* `metadata` is a view that takes it apart further */
    .columns = "id INTEGER, name TEXT, key_type TEXT, int_value INTEGER, str_value TEXT, "
               "machine_id INTEGER, trace_id INTEGER",
    .rows = metadata_rows,
    .start = metadata_start,
    .column = metadata_column,
};

/* ---- clock_snapshot ---- */

static uint64_t clock_rows(struct sv_sql *q)
{
    return q->dict->clocks.n * SV_READINGS_MAX;
}

/* Rows are numbered snapshot × SV_READINGS_MAX + reading: not all exist. */
static bool clock_exists(const struct sv_sql_cursor *c)
{
    const struct sv_snapshot *s = &c->q->dict->clocks.snapshots[c->row / SV_READINGS_MAX];
    return c->row % SV_READINGS_MAX < s->n;
}

/* The greatest error of the wall clock, or whether something keeps it to the true time; NULL where
 * the kernel was not asked. */
static void wall_column(const struct sv_snapshot *s, sqlite3_context *ctx, bool is_error)
{
    if (s->wall_state != SV_WALL_UNKNOWN)
        sqlite3_result_int64(ctx,
                             is_error ? s->wall_error_ns : s->wall_state == SV_WALL_SYNCHRONISED);
}

static void clock_column(struct sv_sql_cursor *c, sqlite3_context *ctx, int column)
{
    const struct sv_clocks *k = &c->q->dict->clocks;
    const struct sv_snapshot *s = &k->snapshots[c->row / SV_READINGS_MAX];
    const struct sv_reading *r = &s->readings[c->row % SV_READINGS_MAX];
    int64_t ts;
    switch (column) {
    case 0: sqlite3_result_int64(ctx, (sqlite3_int64)c->row); break;
    case 1:
        if (sv_snapshot_get(s, k->trace_clock, &ts))
            sqlite3_result_int64(ctx, ts);
        break;
    case 2: sqlite3_result_int64(ctx, r->clock); break;
    case 3: result_literal(ctx, sv_clock_name(r->clock)); break;
    case 4: sqlite3_result_int64(ctx, r->ns); break;
    case 5: sqlite3_result_int64(ctx, (sqlite3_int64)(c->row / SV_READINGS_MAX)); break;
    case 6: sqlite3_result_int64(ctx, 0); break;
    default: wall_column(s, ctx, column == 7); break;
    }
}

const struct sv_sql_table sv_sql_clock_snapshot = {
    .name = "clock_snapshot",
    .rows = clock_rows,
    .column = clock_column,
    .passes = clock_exists,
};

/* ---- machine ---- */

static uint64_t machine_rows(struct sv_sql *q)
{
    return q->n_spaces;
}

enum { M_ORIGIN = 14 };

static void machine_column(struct sv_sql_cursor *c, sqlite3_context *ctx, int column)
{
    const struct sv_origin *o = sv_sql_machine_origin(c->q, c->row);
    switch (column) {
    case 0: sqlite3_result_int64(ctx, (sqlite3_int64)c->row); break;
    case 1: sqlite3_result_int64(ctx, c->q->spaces[c->row]); break;
    case 2:
        if (o->host)
            sv_sql_result_text(ctx, o->host, strlen(o->host));
        break;
    default:
        if (column >= M_ORIGIN)
            sv_sql_origin_column(ctx, o, column - M_ORIGIN);
        break;
    }
}

const struct sv_sql_table sv_sql_machine = {
    .name = "machine",
    .columns = "id INTEGER, raw_id INTEGER, name TEXT, sysname TEXT, release TEXT, version TEXT, "
               "arch TEXT, num_cpus INTEGER, android_build_fingerprint TEXT, "
               "android_device_manufacturer TEXT, android_sdk_version INTEGER, "
               "system_ram_bytes INTEGER, system_ram_gb INTEGER, label_index "
               "INTEGER, " SV_SQL_ORIGIN_COLUMNS(""),
    .rows = machine_rows,
    .column = machine_column,
};
#endif
