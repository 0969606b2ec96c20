/* The ledger: which files are loaded, which loads are seen, and the removal of all others. Called
 * by load.c and the export command.
 *
 * Whatever stops a load, its rows stay unseen until its last row here; whatever stops a removal, a
 * later one continues it. */
#include "clickhouse/answer.h"
#include "clickhouse/database.h"
#include "clickhouse/schema.h"
#include "core/base/mem.h"
#include "core/base/now.h"
#include "core/files/process_id.h"

#include <stave/stave.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define SQL_MAX (1u << 20)

/* ---- what is there ---- */

struct finding {
    const struct sv_ch_file *file;
    struct sv_ch_found *found;
    size_t shard;
};

static const char *text_of(const struct sv_cell *c)
{
    return c->type == SV_CELL_TEXT ? c->text : "";
}

/* run, host, rank, file, sha256 of a current load with this content or in this place. */
static int take_current(void *ctx, const struct sv_cell *cells, struct sv_err *err)
{
    const struct finding *x = ctx;
    const struct sv_ch_file *f = x->file;
    struct sv_ch_found *to = x->found;
    bool same_content = strcmp(text_of(&cells[4]), f->sha256) == 0;
    bool same_place = f->host && strcmp(text_of(&cells[1]), f->host) == 0 &&
                      cells[2].type == SV_CELL_INT && cells[2].i == f->rank &&
                      strcmp(text_of(&cells[3]), f->name) == 0;
    (void)err;
    if (to->is_same_place || (!same_content && !same_place))
        return 0;
    to->has_content |= same_content;
    to->has_place |= same_place && !same_content;
    to->is_same_place = same_content && same_place;
    to->shard = x->shard;
    snprintf(to->run, sizeof to->run, "%s", text_of(&cells[0]));
    snprintf(to->name, sizeof to->name, "%s", text_of(&cells[3]));
    return 0;
}

int sv_ch_find(struct sv_ch_db *db, const struct sv_ch_file *f, struct sv_ch_found *found,
               struct sv_err *err)
{
    struct sv_buf sql;
    int code = 0;
    *found = (struct sv_ch_found){0};
    sv_buf_init(&sql, SQL_MAX);
    sv_buf_str(&sql,
               "SELECT run, host, rank, file, sha256 FROM load_rows WHERE state = 'done' AND ");
    if (f->run) {
        sv_buf_str(&sql, "run = ");
        sv_ch_quote(&sql, f->run);
        sv_buf_str(&sql, " AND ");
    }
    sv_buf_str(&sql, "(sha256 = ");
    sv_ch_quote(&sql, f->sha256);
    if (f->host) {
        sv_buf_str(&sql, " OR (file = ");
        sv_ch_quote(&sql, f->name);
        sv_buf_str(&sql, " AND host = ");
        sv_ch_quote(&sql, f->host);
        sv_buf_printf(&sql, " AND rank = %lld)", (long long)f->rank);
    }
    sv_buf_str(&sql, ") AND load_id IN ");
    sv_ch_current(db->target, &sql);
    for (size_t i = 0; i < db->n_shards && code >= 0; i++) {
        struct finding x = {f, found, i};
        code =
            sv_ch_each(db->client, db->shards[i].host, sv_buf_cstr(&sql), 5, take_current, &x, err);
    }
    sv_buf_fini(&sql);
    return code;
}

/* ---- what is written ---- */

uint64_t sv_ch_new_id(void)
{
    uint64_t id = 0;
    if (getrandom(&id, sizeof id, 0) != (ssize_t)sizeof id)
        id = (uint64_t)sv_now_ns(CLOCK_REALTIME);
    return id >> 1; /* the server's answers hold it as an int64 */
}

static void add_writer(struct sv_buf *sql)
{
    struct sv_process_id self = sv_process_id_self();
    const uint8_t *bytes = (const uint8_t *)&self;
    sv_buf_byte(sql, '\'');
    for (size_t i = 0; i < sizeof self; i++)
        sv_buf_printf(sql, "%02x", bytes[i]);
    sv_buf_byte(sql, '\'');
}

static void add_nullable(struct sv_buf *sql, bool is_there, int64_t value)
{
    if (is_there)
        sv_buf_printf(sql, ", %lld", (long long)value);
    else
        sv_buf_str(sql, ", NULL");
}

/* Later than whatever is there of this file: clocks of two exporting machines differ. */
static int next_version(struct sv_ch_db *db, const struct sv_ch_entry *e, int64_t *version,
                        struct sv_err *err)
{
    struct sv_buf sql;
    int64_t newest = 0;
    *version = sv_now_ns(CLOCK_REALTIME);
    sv_buf_init(&sql, SQL_MAX);
    sv_buf_str(&sql, "SELECT max(version) FROM load_rows WHERE run = ");
    sv_ch_quote(&sql, e->file->run);
    sv_buf_str(&sql, " AND file = ");
    sv_ch_quote(&sql, e->file->name);
    int code = sv_ch_number(db->client, e->host, sv_buf_cstr(&sql), &newest, err);
    if (newest >= *version && newest < INT64_MAX - UINT16_MAX) /* two loads at once differ, too */
        *version = newest + 1 + (int64_t)(e->load_id & (UINT16_MAX >> 1));
    sv_buf_fini(&sql);
    return code;
}

static int change(struct sv_ch_db *db, const char *host, struct sv_buf *sql, struct sv_err *err)
{
    int code = sv_ch_ask(db->client, host, SV_CH_ONCE, sv_buf_cstr(sql), sql->len, NULL, err);
    if (code == SV_EUSAGE) /* the statement is ours */
        code = err->code = SV_EIO;
    sv_buf_clear(sql);
    return code;
}

int sv_ch_record(struct sv_ch_db *db, const struct sv_ch_entry *e, const char *state,
                 struct sv_err *err)
{
    const struct sv_ch_file *f = e->file;
    struct sv_buf sql;
    int64_t version;
    int code = next_version(db, e, &version, err);
    if (code < 0)
        return code;
    sv_buf_init(&sql, SQL_MAX);
    sv_buf_str(&sql, "INSERT INTO load_rows (" SV_CH_LOAD_COLUMNS ") VALUES (");
    sv_ch_quote(&sql, f->run);
    sv_buf_str(&sql, ", ");
    sv_ch_quote(&sql, f->host);
    sv_buf_printf(&sql, ", %lld, ", (long long)f->rank);
    sv_ch_quote(&sql, f->name);
    sv_buf_printf(&sql, ", %llu, '%s', %lld, '%s', %llu, %lld, %lld",
                  (unsigned long long)e->load_id, state, (long long)version, f->sha256,
                  (unsigned long long)f->size_bytes, (long long)e->start_ts, (long long)e->end_ts);
    add_nullable(&sql, e->has_realtime, e->realtime_offset);
    add_nullable(&sql, e->world_size >= 0, e->world_size);
    sv_buf_printf(&sql, ", %llu, ", (unsigned long long)e->slices);
    add_writer(&sql);
    sv_buf_printf(&sql, ", '%d.%d.%d')", STAVE_VERSION_MAJOR, STAVE_VERSION_MINOR,
                  STAVE_VERSION_PATCH);
    code = change(db, e->host, &sql, err);
    sv_buf_fini(&sql);
    return code;
}

/* ---- what is removed ---- */

static int mark_dropped(struct sv_ch_db *db, const char *host, const char *run, uint64_t load_id,
                        struct sv_err *err)
{
    struct sv_buf sql;
    sv_buf_init(&sql, SQL_MAX);
    sv_buf_str(&sql,
               "INSERT INTO load_rows (" SV_CH_LOAD_COLUMNS ") SELECT run, host, rank, file, "
               "load_id, 'dropped', version, sha256, size_bytes, start_ts, end_ts, "
               "realtime_offset, world_size, slices, writer, stave FROM load_rows WHERE run = ");
    sv_ch_quote(&sql, run);
    sv_buf_printf(&sql, " AND load_id = %llu LIMIT 1", (unsigned long long)load_id);
    int code = change(db, host, &sql, err);
    sv_buf_fini(&sql);
    return code;
}

int sv_ch_drop(struct sv_ch_db *db, const char *host, const char *run, uint64_t load_id,
               struct sv_err *err)
{
    struct sv_buf sql;
    int code = mark_dropped(db, host, run, load_id, err);
    sv_buf_init(&sql, SQL_MAX);
    for (size_t i = 0; i < sv_n_typed_tables && code >= 0; i++) {
        sv_buf_printf(&sql, "ALTER TABLE %s_rows DROP PARTITION (", sv_typed_tables[i].name);
        sv_ch_quote(&sql, run);
        sv_buf_printf(&sql, ", %llu)", (unsigned long long)load_id);
        code = change(db, host, &sql, err);
    }
    sv_buf_fini(&sql);
    return code;
}

/* Loads to be removed, as the ledger has them. */
struct doomed {
    char run[256];
    uint64_t load_id;
};
struct litter {
    struct doomed *items;
    size_t n, cap;
};

static bool has_ended(const char *hex)
{
    struct sv_process_id id;
    uint8_t *bytes = (uint8_t *)&id;
    if (strlen(hex) != 2 * sizeof id)
        return false;
    for (size_t i = 0; i < sizeof id; i++) {
        unsigned v;
        if (sscanf(hex + 2 * i, "%2x", &v) != 1)
            return false;
        bytes[i] = (uint8_t)v;
    }
    return sv_process_id_state(&id) == SV_PROCESS_GONE;
}

/* run, load_id, whether it was begun only and not long ago, writer */
static int take_litter(void *ctx, const struct sv_cell *cells, struct sv_err *err)
{
    struct litter *l = ctx;
    (void)err;
    if (cells[1].type != SV_CELL_INT || strlen(text_of(&cells[0])) >= sizeof l->items->run ||
        (cells[2].i && !has_ended(text_of(&cells[3]))))
        return 0;
    l->items = sv_grow(l->items, &l->cap, l->n + 1, sizeof *l->items);
    snprintf(l->items[l->n].run, sizeof l->items->run, "%s", text_of(&cells[0]));
    l->items[l->n++].load_id = (uint64_t)cells[1].i;
    return 0;
}

/* By the parts that are stored, not by what the ledger says of removals: a server may store an
 * insert whose client was killed or lost its connection after that load's rows were removed, and
 * has parts again that it had removed when it was killed itself. */
int sv_ch_clean(struct sv_ch_db *db, const char *host, struct sv_err *err)
{
    struct litter l = {0};
    struct sv_buf sql;
    sv_buf_init(&sql, SQL_MAX);
    sv_buf_str(&sql, "SELECT run, load_id, sum(state != 'begun') = 0 AND max(at) > now() - 86400, "
                     "any(writer) FROM load_rows GROUP BY run, load_id HAVING load_id NOT IN ");
    sv_ch_current(db->target, &sql);
    sv_buf_printf(&sql,
                  " AND load_id IN (SELECT toUInt64OrZero(extract(partition, '([0-9]+)\\\\)$')) "
                  "FROM system.parts WHERE database = '%s' AND active) LIMIT 10000",
                  db->target->database);
    int code = sv_ch_each(db->client, host, sv_buf_cstr(&sql), 4, take_litter, &l, err);
    for (size_t i = 0; i < l.n && code >= 0; i++)
        code = sv_ch_drop(db, host, l.items[i].run, l.items[i].load_id, err);
    free(l.items);
    sv_buf_fini(&sql);
    return code;
}
