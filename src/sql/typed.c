/* The exported tables with their types, and values in these types. Used by the exports of column
 * files and to servers; it must know all columns that they write, and no more than docs/sql.md
 * describes. Rank and host are not among them: outside they are columns of every table. */
#include "sql/typed.h"

#include <math.h>
#include <string.h>

#define INT(name)                  \
    {                              \
        name, SV_COLUMN_INT, false \
    }
#define REAL(name)                  \
    {                               \
        name, SV_COLUMN_REAL, false \
    }
#define TEXT(name)                  \
    {                               \
        name, SV_COLUMN_TEXT, false \
    }
#define ANY(name)                  \
    {                              \
        name, SV_COLUMN_TEXT, true \
    }

static const struct sv_typed_column slice_columns[] = {
    INT("id"),
    INT("ts"),
    INT("dur"),
    INT("track_id"),
    TEXT("category"),
    TEXT("name"),
    INT("depth"),
    INT("parent_id"),
    INT("arg_set_id"),
    INT("thread_ts"),
    INT("thread_dur"),
    INT("thread_instruction_count"),
    INT("thread_instruction_delta"),
    TEXT("cat"),
    INT("slice_id"),
};
static const struct sv_typed_column track_columns[] = {
    INT("id"),         TEXT("name"),
    TEXT("type"),      INT("dimension_arg_set_id"),
    INT("parent_id"),  INT("source_arg_set_id"),
    INT("machine_id"), INT("track_group_id"),
    INT("owner_utid"), INT("owner_upid"),
    TEXT("unit"),      TEXT("description"),
    TEXT("kind"),      INT("is_counter"),
    INT("uuid"),       INT("cpu"),
    INT("is_state"),
};
static const struct sv_typed_column thread_columns[] = {
    INT("utid"),     INT("id"),         INT("tid"),        TEXT("name"),
    INT("start_ts"), INT("end_ts"),     INT("upid"),       INT("is_main_thread"),
    INT("is_idle"),  INT("machine_id"), INT("arg_set_id"),
};
static const struct sv_typed_column process_columns[] = {
    INT("upid"),          INT("id"),
    INT("pid"),           TEXT("name"),
    INT("start_ts"),      INT("end_ts"),
    INT("parent_upid"),   INT("uid"),
    INT("android_appid"), INT("android_user_id"),
    TEXT("cmdline"),      INT("arg_set_id"),
    INT("machine_id"),    INT("local_rank"),
    INT("world_size"),    TEXT("job"),
    TEXT("launcher"),     TEXT("boot_id"),
};
static const struct sv_typed_column counter_columns[] = {
    INT("id"), INT("ts"), INT("track_id"), REAL("value"), INT("arg_set_id"),
};
static const struct sv_typed_column args_columns[] = {
    INT("id"),          INT("arg_set_id"),  TEXT("flat_key"),
    TEXT("key"),        INT("int_value"),   TEXT("string_value"),
    REAL("real_value"), TEXT("value_type"), TEXT("display_value"),
};
static const struct sv_typed_column flow_columns[] = {
    INT("id"), INT("slice_out"), INT("slice_in"), INT("trace_id"), INT("arg_set_id"),
};
static const struct sv_typed_column loss_columns[] = {
    INT("id"), INT("ts"), INT("dur"), INT("track_id"), TEXT("cause"), INT("count"),
};
static const struct sv_typed_column io_columns[] = {
    INT("id"),      TEXT("op"),       INT("ts"),       INT("dur"),    INT("pid"), INT("tid"),
    TEXT("path"),   INT("fd"),        INT("bytes"),    INT("offset"), INT("ret"), INT("errno"),
    TEXT("device"), TEXT("category"), INT("track_id"), TEXT("path2"), INT("fd2"), INT("offset2"),
};
static const struct sv_typed_column kernel_columns[] = {
    INT("id"),          TEXT("name"),   INT("ts"),       INT("dur"),
    INT("device"),      INT("stream"),  TEXT("grid"),    TEXT("block"),
    INT("correlation"), INT("context"), INT("track_id"), INT("arg_set_id"),
};
static const struct sv_typed_column memcpy_columns[] = {
    INT("id"),          TEXT("name"),    INT("ts"),         INT("dur"),
    INT("device"),      INT("stream"),   INT("bytes"),      REAL("gb_per_s"),
    INT("correlation"), INT("track_id"), INT("arg_set_id"),
};
static const struct sv_typed_column step_columns[] = {
    INT("id"),
    INT("number"),
    INT("ts"),
    INT("dur"),
    INT("track_id"),
    INT("slice_id"),
    INT("is_outlier"),
    INT("other_ns"),
    INT("data_ns"),
    INT("copy_ns"),
    INT("forward_ns"),
    INT("backward_ns"),
    INT("optimizer_ns"),
    INT("comm_ns"),
    INT("checkpoint_ns"),
    INT("idle_ns"),
    INT("disk_ns"),
    INT("untraced_ns"),
    INT("device_kernel_ns"),
    INT("device_copy_ns"),
    INT("device_comm_ns"),
};
static const struct sv_typed_column batch_columns[] = {
    INT("id"),     TEXT("name"), INT("ts"),      INT("dur"),      TEXT("batch_id"),
    TEXT("model"), INT("size"),  TEXT("worker"), INT("track_id"), INT("arg_set_id"),
};
static const struct sv_typed_column request_columns[] = {
    INT("id"),
    TEXT("name"),
    INT("ts"),
    INT("dur"),
    TEXT("request_id"),
    TEXT("batch_id"),
    TEXT("model"),
    INT("track_id"),
    INT("arg_set_id"),
    TEXT("outcome"),
    INT("scheduled_ts"),
    INT("first_token_ts"),
    INT("last_token_ts"),
    INT("ttft_ns"),
    INT("tpot_ns"),
    INT("queue_ns"),
    INT("prefill_ns"),
    INT("decode_ns"),
    INT("preempted_ns"),
    INT("transfer_ns"),
    INT("respond_ns"),
    INT("prompt_tokens"),
    INT("cached_tokens"),
    INT("output_tokens"),
    INT("proposed"),
    INT("accepted"),
    INT("preemptions"),
    INT("steps"),
    INT("load"),
    INT("share_ns"),
    INT("kernel_ns"),
    INT("io_ns"),
    INT("is_warmup"),
};
/* These three are declared by their lists here in SQL, too (engine.c, whose columns have this
 * order). */
static const struct sv_typed_column engine_step_columns[] = {
    INT("id"),         INT("number"),        INT("ts"),
    INT("dur"),        TEXT("engine"),       INT("requests"),
    INT("prefill"),    INT("decode"),        INT("tokens_in"),
    INT("tokens_out"), INT("cached_tokens"), INT("proposed"),
    INT("accepted"),   INT("kv_used"),       INT("kv_total"),
    INT("waiting"),    TEXT("graph"),        INT("kernel_ns"),
    INT("io_ns"),      INT("is_warmup"),     INT("track_id"),
    INT("slice_id"),
};
static const struct sv_typed_column engine_step_member_columns[] = {
    INT("id"),         INT("step_id"),       ANY("request_id"), TEXT("phase"),   INT("tokens_in"),
    INT("tokens_out"), INT("cached_tokens"), INT("position"),   INT("proposed"), INT("accepted"),
    INT("share_ns"),   INT("kernel_ns"),     INT("io_ns"),
};
static const struct sv_typed_column token_columns[] = {
    INT("id"),     ANY("request_id"), INT("number"),  INT("ts"),
    INT("gap_ns"), INT("made_ts"),    INT("step_id"),
};
static const struct sv_typed_column collective_columns[] = {
    INT("id"),       TEXT("name"),    INT("ts"),          INT("dur"),         TEXT("op"),
    TEXT("group"),   INT("seq"),      INT("bytes"),       INT("group_size"),  INT("peer"),
    INT("track_id"), INT("slice_id"), INT("arg_set_id"),  TEXT("group_name"), INT("utid"),
    INT("wait_ns"),  INT("skew_ns"),  INT("transfer_ns"), INT("is_last"),
};
static const struct sv_typed_column clock_snapshot_columns[] = {
    INT("id"),          INT("ts"),           INT("clock_id"),
    TEXT("clock_name"), INT("clock_value"),  INT("snapshot_id"),
    INT("machine_id"),  INT("max_error_ns"), INT("is_synchronised"),
};
static const struct sv_typed_column machine_columns[] = {
    INT("id"),
    INT("raw_id"),
    TEXT("name"),
    TEXT("boot_id"),
};
static const struct sv_typed_column metadata_columns[] = {
    INT("id"),         TEXT("name"),      TEXT("key_type"), INT("int_value"),
    TEXT("str_value"), INT("machine_id"), INT("trace_id"),
};
static const struct sv_typed_column stats_columns[] = {
    INT("id"),      TEXT("name"), INT("key"),          INT("idx"),        TEXT("severity"),
    TEXT("source"), INT("value"), TEXT("description"), INT("machine_id"), INT("trace_id"),
};
static const struct sv_typed_column trace_bounds_columns[] = {
    INT("start_ts"),
    INT("end_ts"),
};

/* The number of a table's columns; too many of them do not compile. */
#define COLUMNS_OF(name)                                                                        \
    (sizeof name##_columns / sizeof *name##_columns +                                           \
     0 * sizeof(struct {                                                                        \
         _Static_assert(sizeof name##_columns / sizeof *name##_columns <= SV_TYPED_COLUMNS_MAX, \
                        "raise SV_TYPED_COLUMNS_MAX");                                          \
         char member;                                                                           \
     }))
#define TABLE_OF(name, categories)                          \
    {                                                       \
#name, name##_columns, COLUMNS_OF(name), categories \
    }
#define TABLE(name) TABLE_OF(name, NULL)

const struct sv_typed_table sv_typed_tables[] = {
    TABLE(slice),
    TABLE(track),
    TABLE(thread),
    TABLE(process),
    TABLE(counter),
    TABLE(args),
    TABLE(flow),
    TABLE(loss),
    TABLE_OF(io, SV_CATEGORIES_IO),
    TABLE_OF(kernel, SV_CATEGORIES_KERNEL),
    TABLE_OF(memcpy, SV_CATEGORIES_MEMCPY),
    TABLE(step),
    TABLE_OF(batch, SV_CATEGORIES_BATCH),
    TABLE_OF(request, SV_CATEGORIES_ENGINE),
    TABLE_OF(engine_step, SV_CATEGORIES_ENGINE_STEP),
    TABLE_OF(engine_step_member, SV_CATEGORIES_ENGINE_STEP),
    TABLE_OF(token, SV_CATEGORIES_ENGINE_STEP),
    TABLE(collective), /* kernels of NCCL, too */
    TABLE(clock_snapshot),
    TABLE(machine),
    TABLE(metadata),
    TABLE(stats),
    TABLE(trace_bounds),
};
const size_t sv_n_typed_tables = sizeof sv_typed_tables / sizeof *sv_typed_tables;

const struct sv_typed_table *sv_typed_table(const char *name)
{
    for (size_t i = 0; i < sv_n_typed_tables; i++)
        if (strcmp(sv_typed_tables[i].name, name) == 0)
            return &sv_typed_tables[i];
    return NULL;
}

void sv_typed_declare(const struct sv_typed_table *t, struct sv_buf *sql)
{
    for (size_t i = 0; i < t->n; i++) {
        const struct sv_typed_column *c = &t->columns[i];
        const char *type = c->type == SV_COLUMN_INT    ? " INTEGER"
                           : c->type == SV_COLUMN_REAL ? " REAL"
                                                       : " TEXT";
        sv_buf_printf(sql, "%s\"%s\"%s", i ? ", " : "", c->name, c->is_any ? "" : type);
    }
}

void sv_typed_select(const struct sv_typed_table *t, struct sv_buf *sql)
{
    for (size_t i = 0; i < t->n; i++)
        sv_buf_printf(sql, "%s\"%s\"", i ? ", " : "SELECT ", t->columns[i].name);
    sv_buf_printf(sql, " FROM \"%s\"", t->name);
}

static bool to_int(struct sv_cell *c)
{
    if (c->type == SV_CELL_INT)
        return true;
    if (c->type != SV_CELL_REAL || c->d != trunc(c->d) || c->d >= 9223372036854775808.0 ||
        c->d < -9223372036854775808.0)
        return false;
    c->i = (int64_t)c->d;
    return true;
}

/* Past 2^53 a double may be another number. */
static bool to_real(struct sv_cell *c)
{
    if (c->type == SV_CELL_REAL)
        return true;
    if (c->type != SV_CELL_INT || c->i > (int64_t)1 << 53 || c->i < -((int64_t)1 << 53))
        return false;
    c->d = (double)c->i;
    return true;
}

static bool to_text(struct sv_cell *c, struct sv_buf *text)
{
    if (c->type == SV_CELL_TEXT)
        return true;
    if (c->type == SV_CELL_BLOB)
        return false;
    sv_buf_clear(text);
    if (c->type == SV_CELL_INT)
        sv_buf_i64(text, c->i);
    else
        sv_buf_double(text, c->d);
    c->text = sv_buf_cstr(text);
    c->len = text->len;
    return true;
}

bool sv_typed_convert(enum sv_column_type type, struct sv_cell *cell, struct sv_buf *text)
{
    bool fits;
    if (cell->type == SV_CELL_NULL)
        return true;
    switch (type) {
    case SV_COLUMN_INT:
        fits = to_int(cell);
        cell->type = SV_CELL_INT;
        break;
    case SV_COLUMN_REAL:
        fits = to_real(cell);
        cell->type = SV_CELL_REAL;
        break;
    default:
        fits = to_text(cell, text);
        cell->type = SV_CELL_TEXT;
        break;
    }
    if (!fits)
        *cell = (struct sv_cell){.type = SV_CELL_NULL};
    return fits;
}
