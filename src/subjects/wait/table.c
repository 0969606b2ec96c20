/* The table `why`: the ledger of time, a row for each piece (why/ledger.h). */
#include "sql/sql.h"

#ifdef SV_HAVE_SQLITE
#include "core/base/mem.h"
#include "sql/impl.h"
#include "subjects/engine/request_units.h"

#include <stdlib.h>
#include <string.h>

static struct sv_ledger *ledger_of(struct sv_sql *q)
{
    void **kept = sv_sql_kept(q, &sv_wait_tables);
    if (!*kept) {
        struct sv_ledger *l = *kept = sv_alloc(sizeof *l);
        sv_why_make(l, q->trace, &(struct sv_ledger_options){.step = -1});
    }
    return *kept;
}

static uint64_t why_rows(struct sv_sql *q)
{
    const struct sv_ledger *l = *sv_sql_kept(q, &sv_wait_tables);
    return l ? l->n_pieces : 10000;
}

static int why_start(struct sv_sql_cursor *c, int order, const struct sv_sql_cond *conds, size_t n)
{
    (void)order;
    (void)conds;
    (void)n;
    sv_sql_range(c, 0, ledger_of(c->q)->n_pieces);
    return SQLITE_OK;
}

static void put_text(sqlite3_context *ctx, struct sv_text t)
{
    if (t.len)
        sqlite3_result_text(ctx, t.bytes, (int)t.len, SQLITE_TRANSIENT);
}

static void put_word(sqlite3_context *ctx, const char *word)
{
    sqlite3_result_text(ctx, word, -1, SQLITE_STATIC);
}

static void put_row(struct sv_sql_cursor *c, sqlite3_context *ctx, uint32_t row)
{
    if (row != SV_NO_ROW)
        sqlite3_result_int64(ctx, sv_index_id(c->q->index, row));
}

/* The tid of a thread of the ledger. */
static void put_tid(const struct sv_ledger *l, sqlite3_context *ctx, uint32_t thread)
{
    if (thread != SV_NO_THREAD)
        sqlite3_result_int64(ctx, l->trace->dict->tracks[l->states.threads[thread].track].tid);
}

enum {
    ID,
    UNIT_KIND,
    UNIT,
    UNIT_ID,
    COUNTS,
    TS,
    DUR,
    CLASS,
    HOLDER_TID,
    TID,
    DOING,
    FUNCTION,
    PATH,
    LOCK,
    LOCK_NAME,
    DEPTH,
    ASSUMED,
    SLICE,
    STATE
};

static void why_column(struct sv_sql_cursor *c, sqlite3_context *ctx, int column)
{
    const struct sv_ledger *l = ledger_of(c->q);
    const struct sv_why_piece *p = &l->pieces[c->row];
    const struct sv_why_unit *u = &l->units[p->unit];
    uint32_t first = sv_why_first_edge(l, p->edge);
    const struct sv_lock_wait *wait = sv_why_edge_wait(l, first);
    int depth = 0;
    switch (column) {
    case ID: sqlite3_result_int64(ctx, (sqlite3_int64)c->row); break;
    case UNIT_KIND: put_word(ctx, sv_unit_kind_names[u->kind]); break;
    case UNIT:
        if (u->number >= 0)
            sqlite3_result_int64(ctx, u->number);
        break;
    case UNIT_ID: put_row(c, ctx, u->row); break;
    case COUNTS: sqlite3_result_int(ctx, u->counts); break;
    case TS: sqlite3_result_int64(ctx, p->ts_ns); break;
    case DUR: sqlite3_result_int64(ctx, p->dur_ns); break;
    case CLASS: put_word(ctx, sv_why_class_names[p->class]); break;
    case HOLDER_TID:
        put_tid(l, ctx, first != SV_NO_EDGE ? l->edges[first].to : SV_NO_THREAD);
        break;
    case TID: put_tid(l, ctx, p->thread); break;
    case DOING: put_word(ctx, sv_why_doing_names[p->doing]); break;
    case FUNCTION: put_text(ctx, sv_why_frame(l, p)); break;
    case PATH: put_text(ctx, sv_why_path(l, p)); break;
    case LOCK:
        if (wait && wait->lock)
            sqlite3_result_int64(ctx, (sqlite3_int64)wait->lock);
        break;
    case LOCK_NAME:
        if (wait)
            put_text(ctx, wait->lock_name);
        break;
    case DEPTH:
        for (uint32_t e = p->edge; e != SV_NO_EDGE; e = l->edges[e].before)
            depth++;
        sqlite3_result_int(ctx, depth);
        break;
    case ASSUMED: sqlite3_result_int(ctx, p->is_assumed); break;
    case SLICE: put_row(c, ctx, p->row); break;
    case STATE: put_row(c, ctx, p->state); break;
    default: break;
    }
}

static const struct sv_sql_table sv_sql_why = {
    .name = "why",
    .columns = "id INTEGER, unit_kind TEXT, unit INTEGER, unit_slice_id INTEGER, counts INTEGER, "
               "ts INTEGER, dur INTEGER, class TEXT, holder_tid INTEGER, tid INTEGER, doing TEXT, "
               "function TEXT, path TEXT, lock INTEGER, lock_name TEXT, depth INTEGER, "
               "is_assumed INTEGER, slice_id INTEGER, state_id INTEGER",
    .rows = why_rows,
    .start = why_start,
    .column = why_column,
};

static void forget(void *kept)
{
    sv_ledger_fini(kept);
    free(kept);
}

const struct sv_sql_set sv_wait_tables = {
    .tables = (const struct sv_sql_table *const[]){&sv_sql_why, NULL},
    .forget = forget,
};
#endif
