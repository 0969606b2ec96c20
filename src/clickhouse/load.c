/* One file into the database: its tables as RowBinary, in compressed pieces, several of them under
 * way while the next one is made.
 *
 * Called by the export command with an open SQL connection, whose rows are what `stave query` would
 * give. */
#include "clickhouse/answer.h"
#include "clickhouse/database.h"
#include "clickhouse/pack.h"
#include "clickhouse/schema.h"
#include "core/base/mem.h"
#include "sql/direct.h"
#include "store/ranks.h"

#include <assert.h>
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#define PIECE_BYTES \
    ((size_t)32 << 20)  /* before compression; a piece becomes one part on the server */
#define GO_ON_ROWS 4096 /* between two looks at the connections */

/* The bytes of host and rank, made once for each track. */
struct owner {
    uint32_t at, len;
};

struct load {
    struct sv_rows_sink rows; /* first: the callbacks find the rest */
    struct sv_ch_db *db;
    const struct sv_ch_file *file;
    const struct sv_trace *trace;
    const struct sv_ch_progress *progress;
    const char *host;
    uint64_t load_id;
    /* of all rows */
    struct sv_buf front;  /* run, file, load_id */
    struct sv_buf owners; /* host and rank of the file, then of tracks that differ */
    struct owner *owner_of;
    uint32_t n_tracks;
    /* of the current table */
    const struct sv_typed_table *table;
    struct sv_ch_column columns[SV_TYPED_COLUMNS_MAX];
    size_t n_columns, n_selected;
    int track_at, ts_at;    /* of the cells; -1: none */
    bool has_rank_in_front; /* its first two cells are host and rank */
    struct sv_buf piece, text;
    struct sv_ch_packer *packer;
    uint64_t n_rows, n_in_piece;
    uint64_t n_lost; /* values that their column cannot hold */
};

/* ---- RowBinary ---- */

static void add_u64(struct sv_buf *b, uint64_t v)
{
    v = htole64(v);
    sv_buf_add(b, &v, sizeof v);
}

static void add_text(struct sv_buf *b, const char *text, size_t n)
{
    uint64_t v = n;
    for (; v >= 128; v >>= 7)
        sv_buf_byte(b, (uint8_t)(v | 128));
    sv_buf_byte(b, (uint8_t)v);
    sv_buf_add(b, text, n);
}

static void add_owner(struct sv_buf *b, const char *host, int64_t rank)
{
    uint32_t v = htole32((uint32_t)(rank >= -1 && rank <= INT32_MAX ? rank : -1));
    add_text(b, host, strlen(host));
    sv_buf_add(b, &v, sizeof v);
}

/* In the column's type by now. */
static int add_cell(struct load *l, const struct sv_ch_column *c, const struct sv_cell *cell,
                    struct sv_err *err)
{
    struct sv_buf *b = &l->piece;
    if (c->is_nullable)
        sv_buf_byte(b, cell->type == SV_CELL_NULL);
    if (cell->type == SV_CELL_NULL)
        return c->is_nullable ? 0
                              : sv_error(err, SV_EFORMAT, "%s.%s has a row without a value",
                                         l->table->name, c->name);
    uint64_t bits;
    switch (c->type) {
    case SV_COLUMN_INT: add_u64(b, (uint64_t)cell->i); break;
    case SV_COLUMN_REAL:
        memcpy(&bits, &cell->d, sizeof bits);
        add_u64(b, bits);
        break;
    default: add_text(b, cell->text, cell->len); break;
    }
    return 0;
}

/* ---- pieces ---- */

static int send_piece(struct load *l, struct sv_err *err)
{
    struct sv_buf body = {0}, sql;
    if (l->n_in_piece == 0)
        return 0;
    if (l->piece.failed)
        return sv_error(err, SV_ELIMIT, "a row of %s has more than 1 GiB", l->table->name);
    int code = sv_ch_pack(l->packer, l->piece.data, l->piece.len, &body, err);
    if (code < 0) {
        sv_buf_fini(&body);
        return code;
    }
    sv_buf_init(&sql, 1u << 16);
    sv_ch_insert_into(l->db->target, l->table, &sql);
    code = sv_ch_insert(l->db->client, l->host, sv_buf_cstr(&sql), &body, err);
    sv_buf_fini(&sql);
    sv_buf_clear(&l->piece);
    l->n_in_piece = 0;
    return code;
}

/* ---- rows ---- */

static int take_head(struct sv_rows_sink *r, const char *const *names, size_t n, struct sv_err *err)
{
    const struct load *l = (struct load *)r;
    (void)names;
    return n == l->n_selected ? 0
                              : sv_error(err, SV_EFORMAT, "%s has other columns", l->table->name);
}

/* Of the track's process where the file holds several, else the file's. */
static void add_owner_of(struct load *l, const struct sv_cell *cells)
{
    struct owner o = l->owner_of[0];
    if (l->has_rank_in_front) {
        const char *host = cells[0].type == SV_CELL_TEXT ? cells[0].text : l->file->host;
        add_owner(&l->piece, host, cells[1].type == SV_CELL_INT ? cells[1].i : l->file->rank);
        return;
    }
    if (l->track_at >= 0 && cells[l->track_at].type == SV_CELL_INT && cells[l->track_at].i >= 0 &&
        cells[l->track_at].i < l->n_tracks)
        o = l->owner_of[cells[l->track_at].i];
    sv_buf_add(&l->piece, l->owners.data + o.at, o.len);
}

/* The two columns of `step` that SQL has not. */
static int add_extras(struct load *l, const struct sv_cell *cells, struct sv_err *err)
{
    struct sv_cell title = {.type = SV_CELL_TEXT}, start = {.type = SV_CELL_INT};
    sv_buf_clear(&l->text);
    sv_track_title(l->trace->dict, (sv_track)cells[l->track_at].i, &l->text);
    title.text = sv_buf_cstr(&l->text);
    title.len = l->text.len;
    start.i = cells[l->ts_at].i - l->trace->first_ns;
    int code = add_cell(l, &l->columns[l->n_columns - 2], &title, err);
    return code < 0 ? code : add_cell(l, &l->columns[l->n_columns - 1], &start, err);
}

static int take_row(struct sv_rows_sink *r, const struct sv_cell *cells, size_t n,
                    struct sv_err *err)
{
    struct load *l = (struct load *)r;
    int code = 0;
    sv_buf_add(&l->piece, l->front.data, l->front.len);
    add_owner_of(l, cells);
    cells += l->has_rank_in_front ? 2 : 0;
    n -= l->has_rank_in_front ? 2 : 0;
    for (size_t i = 0; i < n && code >= 0; i++) {
        struct sv_cell cell = cells[i];
        l->n_lost += !sv_typed_convert(l->columns[i].type, &cell, &l->text);
        code = add_cell(l, &l->columns[i], &cell, err);
    }
    if (code >= 0 && l->columns[l->n_columns - 1].is_extra)
        code = add_extras(l, cells, err);
    l->n_rows++;
    l->n_in_piece++;
    if (code >= 0 && l->piece.len >= PIECE_BYTES)
        code = send_piece(l, err);
    if (code < 0 || l->n_rows % GO_ON_ROWS)
        return code;
    l->progress->call(l->progress->ctx, l->table->name, l->n_rows);
    return sv_ch_go_on(l->db->client, err);
}

static int take_end(struct sv_rows_sink *r, struct sv_err *err)
{
    return send_piece((struct load *)r, err);
}

/* ---- tables ---- */

static void add_select(struct load *l, struct sv_buf *sql)
{
    const char *name = l->table->name;
    l->has_rank_in_front = true;
    if (strcmp(name, "process") == 0)
        sv_buf_str(sql, "SELECT host, rank");
    else if (strcmp(name, "thread") == 0)
        sv_buf_str(sql, "SELECT (SELECT host FROM process p WHERE p.upid = thread.upid), (SELECT "
                        "rank FROM process p WHERE p.upid = thread.upid)");
    else
        l->has_rank_in_front = false;
    l->n_selected = l->has_rank_in_front ? 2 : 0;
    l->track_at = l->ts_at = -1;
    for (size_t i = 0; i < l->n_columns; i++) {
        const char *column = l->columns[i].name;
        if (l->columns[i].is_extra)
            continue;
        if (strcmp(column, strcmp(name, "track") == 0 ? "id" : "track_id") == 0)
            l->track_at = (int)i;
        if (strcmp(column, "ts") == 0)
            l->ts_at = (int)i;
        sv_buf_printf(sql, "%s\"%s\"", l->n_selected++ ? ", " : "SELECT ", column);
    }
    sv_buf_printf(sql, " FROM \"%s\"", name);
}

struct counts {
    struct load *load;
    const uint64_t *sent; /* by table */
    size_t n;
};

static int take_count(void *ctx, const struct sv_cell *cells, struct sv_err *err)
{
    struct counts *c = ctx;
    size_t i = (size_t)cells[0].i;
    if (cells[0].type != SV_CELL_INT || cells[0].i < 0 || i >= sv_n_typed_tables || c->n++ != i ||
        cells[1].type != SV_CELL_INT)
        return sv_error(err, SV_EIO, "the server's counts are not what was asked for");
    if ((uint64_t)cells[1].i != c->sent[i])
        return sv_error(err, SV_EIO,
                        "ClickHouse at %.100s has %lld rows of %s instead of %llu: nothing is "
                        "loaded, try again",
                        c->load->host, (long long)cells[1].i, sv_typed_tables[i].name,
                        (unsigned long long)c->sent[i]);
    return 0;
}

/* The server must have what was sent, no more and no less. */
static int check_counts(struct load *l, const uint64_t *sent, struct sv_err *err)
{
    struct counts c = {.load = l, .sent = sent};
    struct sv_buf sql;
    sv_buf_init(&sql, 1u << 20);
    sv_buf_str(&sql, "SELECT * FROM (");
    for (size_t i = 0; i < sv_n_typed_tables; i++) {
        sv_buf_printf(&sql, "%sSELECT toInt64(%zu) AS k, count() AS n FROM %s_rows WHERE run = ",
                      i ? " UNION ALL " : "", i, sv_typed_tables[i].name);
        sv_ch_quote(&sql, l->file->run);
        sv_buf_printf(&sql, " AND load_id = %llu", (unsigned long long)l->load_id);
    }
    sv_buf_str(&sql, ") ORDER BY k");
    int code = sv_ch_each(l->db->client, l->host, sv_buf_cstr(&sql), 2, take_count, &c, err);
    sv_buf_fini(&sql);
    if (code >= 0 && c.n != sv_n_typed_tables)
        code = sv_error(err, SV_EIO, "the server's counts are not what was asked for");
    return code;
}

/* Most rows of most traces, for which SQL would take most of the time. The rows of the store have
 * the order in which they are stored there, too; the columns that are left out are the last
 * ones. */
static int load_slices(struct load *l, struct sv_sql *q, struct sv_err *err)
{
    struct sv_cell cells[SV_SQL_SLICE_CELLS];
    struct sv_index *index = sv_sql_index(q);
    struct sv_typed_column typed[SV_TYPED_COLUMNS_MAX];
    int code = 0;
    sv_typed_columns(l->table, typed);
    for (size_t i = 0; i < l->n_columns; i++)
        assert(strcmp(l->columns[i].name, typed[i].name) == 0);
    for (uint64_t row = 0; row < l->trace->slices.n && code >= 0; row++) {
        sv_sql_slice_cells(q, (uint32_t)row, sv_index_id(index, (uint32_t)row), cells);
        code = take_row(&l->rows, cells, l->n_columns, err);
    }
    return code < 0 ? code : take_end(&l->rows, err);
}

static int load_table(struct load *l, struct sv_sql *q, const struct sv_typed_table *t,
                      struct sv_err *err)
{
    struct sv_buf sql;
    l->table = t;
    l->n_columns = sv_ch_columns(t, l->columns);
    l->n_rows = l->n_lost = 0;
    sv_buf_init(&sql, 1u << 16);
    add_select(l, &sql);
    int code = 0;
    if (strcmp(t->name, "slice") == 0)
        code = load_slices(l, q, err);
    else if (!t->categories || sv_sql_has_category(q, t->categories))
        code = sv_sql_run(q, sv_buf_cstr(&sql), &l->rows, err);
    sv_buf_fini(&sql);
    if (l->n_lost)
        l->progress->lost(l->progress->ctx, t->name, l->n_lost);
    return code;
}

static int load_tables(struct load *l, struct sv_sql *q, uint64_t *slices, struct sv_err *err)
{
    uint64_t *sent = sv_alloc(sv_n_typed_tables * sizeof *sent);
    int code = 0;
    for (size_t i = 0; i < sv_n_typed_tables && code >= 0; i++) {
        code = load_table(l, q, &sv_typed_tables[i], err);
        sent[i] = l->n_rows;
        if (strcmp(sv_typed_tables[i].name, "slice") == 0)
            *slices = l->n_rows;
    }
    if (code >= 0)
        code = sv_ch_finish(l->db->client, err);
    if (code >= 0)
        code = check_counts(l, sent, err);
    free(sent);
    return code;
}

/* ---- the load ---- */

static void make_owners(struct load *l)
{
    const struct sv_dict *d = l->trace->dict;
    l->n_tracks = d->n_tracks ? d->n_tracks : 1;
    l->owner_of = sv_alloc(l->n_tracks * sizeof *l->owner_of);
    add_owner(&l->owners, l->file->host, l->file->rank);
    l->owner_of[0] = (struct owner){0, (uint32_t)l->owners.len};
    struct sv_buf one;
    sv_buf_init(&one, 1u << 20);
    for (sv_track k = 1; k < l->n_tracks; k++) {
        struct sv_origin o = sv_origin_of(d, k);
        struct owner before = l->owner_of[k - 1];
        sv_buf_clear(&one);
        add_owner(&one, o.host ? o.host : l->file->host, o.rank >= 0 ? o.rank : l->file->rank);
        bool is_same = one.len == before.len &&
                       memcmp(one.data, l->owners.data + before.at, one.len) == 0;
        l->owner_of[k] = is_same ? before
                                 : (struct owner){(uint32_t)l->owners.len, (uint32_t)one.len};
        if (!is_same)
            sv_buf_add(&l->owners, one.data, one.len);
    }
    sv_buf_fini(&one);
}

static void begin(struct load *l)
{
    sv_buf_init(&l->front, 1u << 16);
    sv_buf_init(&l->owners, (size_t)1 << 30);
    sv_buf_init(&l->piece, (size_t)1 << 30);
    sv_buf_init(&l->text, (size_t)1 << 30);
    add_text(&l->front, l->file->run, strlen(l->file->run));
    add_text(&l->front, l->file->name, strlen(l->file->name));
    add_u64(&l->front, l->load_id);
    make_owners(l);
    l->packer = sv_ch_packer_new();
}

static void end(struct load *l)
{
    sv_ch_packer_free(l->packer);
    sv_buf_fini(&l->front);
    sv_buf_fini(&l->owners);
    sv_buf_fini(&l->piece);
    sv_buf_fini(&l->text);
    free(l->owner_of);
}

struct offset_sink {
    struct sv_rows_sink rows;
    struct sv_ch_entry *entry;
};

static int offset_row(struct sv_rows_sink *r, const struct sv_cell *cells, size_t n,
                      struct sv_err *err)
{
    struct sv_ch_entry *e = ((struct offset_sink *)r)->entry;
    (void)n;
    (void)err;
    e->start_ts = cells[0].i;
    e->end_ts = cells[1].i;
    e->has_realtime = cells[2].type == SV_CELL_INT;
    e->realtime_offset = cells[2].i;
    return 0;
}

/* The bounds, and what makes a time of the trace a real one. */
static int find_bounds(struct sv_sql *q, struct sv_ch_entry *e, struct sv_err *err)
{
    struct offset_sink s = {{sv_rows_any_head, offset_row, sv_rows_no_end}, e};
    return sv_sql_run(q,
                      "SELECT trace_start(), trace_end(), to_realtime(trace_start()) - "
                      "trace_start()",
                      &s.rows, err);
}

static size_t choose_shard(const struct sv_ch_db *db, const struct sv_ch_file *f,
                           const struct sv_ch_found *found)
{
    uint64_t h = 14695981039346656037u;
    if (found->has_content || found->has_place)
        return found->shard;
    if (f->rank >= 0)
        return (size_t)((uint64_t)f->rank % db->n_shards);
    for (const char *p = f->name; *p; p++)
        h = (h ^ (uint8_t)*p) * 1099511628211u;
    return (size_t)(h % db->n_shards);
}

int sv_ch_load(struct sv_ch_db *db, const struct sv_ch_file *f, const struct sv_ch_found *found,
               struct sv_sql *q, const struct sv_trace *t, const struct sv_ch_progress *progress,
               struct sv_err *err)
{
    struct load l = {.rows = {take_head, take_row, take_end},
                     .db = db,
                     .file = f,
                     .trace = t,
                     .progress = progress,
                     .host = db->shards[choose_shard(db, f, found)].host,
                     .load_id = sv_ch_new_id()};
    struct sv_ch_entry e = {.file = f, .host = l.host, .load_id = l.load_id};
    struct sv_err ignored;
    e.world_size = sv_origin_of(t->dict, 0).world_size;
    begin(&l);
    int code = find_bounds(q, &e, err);
    bool has_begun = code >= 0 && (code = sv_ch_record(db, &e, "begun", err)) >= 0;
    if (code >= 0)
        code = load_tables(&l, q, &e.slices, err);
    if (code >= 0)
        code = sv_ch_file_is_same(f, err);
    if (code >= 0)
        code = sv_ch_record(db, &e, "done", err);
    end(&l);
    sv_err_clear(&ignored);
    sv_ch_forget(db->client);
    if (code < 0 && has_begun) /* as far as the server lets us; a later load does the rest */
        (void)sv_ch_drop(db, l.host, f->run, l.load_id, &ignored);
    return code < 0 ? code : sv_ch_clean(db, l.host, err);
}
