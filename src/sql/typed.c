/* The exported tables with their types, and values in these types. Used by the exports of column
 * files and to servers; it must know all columns that they write, and no more than docs/sql.md
 * describes. Rank and host are not among them: outside they are columns of every table. */
#include "sql/typed.h"

#include <assert.h>
#include <math.h>
#include <string.h>

const struct sv_typed_table sv_typed_tables[] = {
    {"slice",
     "id ts dur track_id category:text name:text depth parent_id arg_set_id thread_ts "
     "thread_dur thread_instruction_count thread_instruction_delta cat:text slice_id",
     NULL},
    {"track",
     "id name:text type:text dimension_arg_set_id parent_id source_arg_set_id machine_id "
     "track_group_id owner_utid owner_upid unit:text description:text kind:text is_counter "
     "uuid cpu is_state",
     NULL},
    {"thread",
     "utid id tid name:text start_ts end_ts upid is_main_thread is_idle machine_id arg_set_id",
     NULL},
    {"process",
     "upid id pid name:text start_ts end_ts parent_upid uid android_appid android_user_id "
     "cmdline:text arg_set_id machine_id local_rank world_size job:text launcher:text "
     "boot_id:text",
     NULL},
    {"counter", "id ts track_id value:real arg_set_id", NULL},
    {"args",
     "id arg_set_id flat_key:text key:text int_value string_value:text real_value:real "
     "value_type:text display_value:text",
     NULL},
    {"flow", "id slice_out slice_in trace_id arg_set_id", NULL},
    {"loss", "id ts dur track_id cause:text count", NULL},
    {"io",
     "id op:text ts dur pid tid path:text fd bytes offset ret errno device:text category:text "
     "track_id path2:text fd2 offset2",
     SV_CATEGORIES_IO},
    {"kernel",
     "id name:text ts dur device stream grid:text block:text correlation context track_id "
     "arg_set_id",
     SV_CATEGORIES_KERNEL},
    {"memcpy",
     "id name:text ts dur device stream bytes gb_per_s:real correlation track_id arg_set_id",
     SV_CATEGORIES_MEMCPY},
    {"step",
     "id number ts dur track_id slice_id is_outlier other_ns data_ns copy_ns forward_ns "
     "backward_ns optimizer_ns comm_ns checkpoint_ns idle_ns disk_ns untraced_ns "
     "device_kernel_ns device_copy_ns device_comm_ns",
     NULL},
    {"batch",
     "id name:text ts dur batch_id:text model:text size requests worker:text track_id "
     "arg_set_id",
     SV_CATEGORIES_BATCH},
    {"request",
     "id name:text ts dur request_id:text batch_id:text model:text track_id arg_set_id "
     "outcome:text scheduled_ts first_token_ts last_token_ts ttft_ns tpot_ns queue_ns "
     "prefill_ns decode_ns preempted_ns transfer_ns respond_ns prompt_tokens cached_tokens "
     "output_tokens proposed accepted preemptions steps load share_ns kernel_ns io_ns "
     "is_warmup read_ns parse_ns serialise_ns write_ns",
     SV_CATEGORIES_ENGINE},
    /* These three are declared by their lists here in SQL, too (engine.c, whose columns have this
     * order). */
    {"engine_step",
     "id number ts dur engine:text requests prefill decode tokens_in tokens_out cached_tokens "
     "proposed accepted kv_used kv_total waiting graph:text kernel_ns io_ns is_warmup track_id "
     "slice_id",
     SV_CATEGORIES_ENGINE_STEP},
    {"engine_step_member",
     "id step_id request_id:any phase:text tokens_in tokens_out cached_tokens position "
     "proposed accepted share_ns kernel_ns io_ns",
     SV_CATEGORIES_ENGINE_STEP},
    {"token", "id request_id:any number ts gap_ns made_ts step_id", SV_CATEGORIES_ENGINE_STEP},
    /* kernels of NCCL, too */
    {"collective",
     "id name:text ts dur op:text group:text seq bytes group_size peer track_id slice_id "
     "arg_set_id group_name:text utid wait_ns skew_ns transfer_ns is_last",
     NULL},
    {"clock_snapshot",
     "id ts clock_id clock_name:text clock_value snapshot_id machine_id max_error_ns "
     "is_synchronised",
     NULL},
    {"machine", "id raw_id name:text boot_id:text", NULL},
    {"metadata", "id name:text key_type:text int_value str_value:text machine_id trace_id", NULL},
    {"stats",
     "id name:text key idx severity:text source:text value description:text machine_id "
     "trace_id",
     NULL},
    {"trace_bounds", "start_ts end_ts", NULL},
};
const size_t sv_n_typed_tables = sizeof sv_typed_tables / sizeof *sv_typed_tables;

const struct sv_typed_table *sv_typed_table(const char *name)
{
    for (size_t i = 0; i < sv_n_typed_tables; i++)
        if (strcmp(sv_typed_tables[i].name, name) == 0)
            return &sv_typed_tables[i];
    return NULL;
}

static const struct {
    char word[8], sql[12];
    enum sv_column_type type;
} types[] = {
    {"", " INTEGER", SV_COLUMN_INT},
    {"real", " REAL", SV_COLUMN_REAL},
    {"text", " TEXT", SV_COLUMN_TEXT},
    {"any", "", SV_COLUMN_TEXT}, /* in SQL each value has its own type */
};

/* The next column of the text; its number in `types`. False: there is none. */
static bool next_column(const char **at, struct sv_typed_column *c, size_t *type)
{
    *at += strspn(*at, " ");
    size_t len = strcspn(*at, " "), name = strcspn(*at, ": "),
           word = len > name ? len - name - 1 : 0;
    assert(name < sizeof c->name);
    for (*type = 0; strlen(types[*type].word) != word ||
                    strncmp(types[*type].word, *at + len - word, word) != 0;)
        ++*type;
    *c = (struct sv_typed_column){.type = types[*type].type};
    memcpy(c->name, *at, name);
    *at += len;
    return len > 0;
}

size_t sv_typed_columns(const struct sv_typed_table *t,
                        struct sv_typed_column to[SV_TYPED_COLUMNS_MAX])
{
    const char *at = t->columns;
    size_t n = 0, type;
    struct sv_typed_column c;
    while (next_column(&at, &c, &type)) {
        assert(n < SV_TYPED_COLUMNS_MAX);
        to[n++] = c;
    }
    return n;
}

void sv_typed_declare(const struct sv_typed_table *t, struct sv_buf *sql)
{
    const char *at = t->columns, *comma = "";
    struct sv_typed_column c;
    for (size_t type; next_column(&at, &c, &type); comma = ", ")
        sv_buf_printf(sql, "%s\"%s\"%s", comma, c.name, types[type].sql);
}

void sv_typed_select(const struct sv_typed_table *t, struct sv_buf *sql)
{
    const char *at = t->columns, *before = "SELECT ";
    struct sv_typed_column c;
    for (size_t type; next_column(&at, &c, &type); before = ", ")
        sv_buf_printf(sql, "%s\"%s\"", before, c.name);
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
