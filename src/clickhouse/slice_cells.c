/* See slice_cells.h; tests/cli/clickhouse.sh compares all its values with those of SQL. */
#include "clickhouse/slice_cells.h"

#ifdef SV_HAVE_SQLITE
#include "analysis/sql/direct.h"

#include <string.h>

static const char *const names[] = {"id",
                                    "ts",
                                    "dur",
                                    "track_id",
                                    "category",
                                    "name",
                                    "depth",
                                    "parent_id",
                                    "arg_set_id",
                                    "thread_ts",
                                    "thread_dur",
                                    "thread_instruction_count",
                                    "thread_instruction_delta"};
enum {
    ID,
    TS,
    DUR,
    TRACK,
    CATEGORY,
    NAME,
    DEPTH,
    PARENT,
    ARGS,
    THREAD_TS,
    THREAD_DUR,
    N_FIELDS = 13
};

bool sv_slice_cells_init(struct sv_slice_cells *s, struct sv_sql *q, const struct sv_trace *t,
                         const struct sv_ch_column *columns, size_t n)
{
    *s = (struct sv_slice_cells){.q = q, .trace = t, .n = n};
    for (size_t i = 0; i < n; i++) {
        uint8_t f = 0;
        while (f < N_FIELDS && strcmp(names[f], columns[i].name) != 0)
            f++;
        if (f == N_FIELDS)
            return false;
        s->fields[i] = f;
    }
    return true;
}

static void set_int(struct sv_cell *c, int64_t value)
{
    c->type = SV_CELL_INT;
    c->i = value;
}

static void set_text(const struct sv_trace *t, struct sv_cell *c, sv_str s)
{
    if (s == 0)
        return;
    struct sv_text text = sv_dict_text(t->dict, s);
    c->type = SV_CELL_TEXT;
    c->text = text.bytes;
    c->len = text.len;
}

static void set_args(const struct sv_slice_cells *s, uint8_t field, uint32_t handle,
                     struct sv_cell *c)
{
    struct sv_arg arg;
    if (handle == 0)
        return;
    if (field == ARGS) {
        if (sv_sql_has_args(s->q, handle))
            set_int(c, handle);
    } else if (sv_trace_arg_of_type(s->trace, handle,
                                    field == THREAD_TS ? SV_ARG_THREAD_TIME : SV_ARG_THREAD_DUR,
                                    &arg)) {
        set_int(c, arg.i);
    }
}

void sv_slice_cells(const struct sv_slice_cells *s, uint32_t row, struct sv_cell *cells)
{
    const struct sv_slices *from = &s->trace->slices;
    struct sv_index *index = sv_sql_index(s->q);
    for (size_t i = 0; i < s->n; i++) {
        struct sv_cell *c = &cells[i];
        c->type = SV_CELL_NULL;
        switch (s->fields[i]) {
        case ID: set_int(c, sv_index_id(index, row)); break;
        case TS: set_int(c, from->ts_ns[row]); break;
        case DUR: set_int(c, from->dur_ns[row]); break;
        case TRACK: set_int(c, from->track[row]); break;
        case CATEGORY: set_text(s->trace, c, from->cat[row]); break;
        case NAME: set_text(s->trace, c, from->name[row]); break;
        case DEPTH: set_int(c, from->depth[row]); break;
        case PARENT:
            if (from->parent[row] != SV_NO_ROW)
                set_int(c, sv_index_id(index, from->parent[row]));
            break;
        case ARGS:
        case THREAD_TS:
        case THREAD_DUR: set_args(s, s->fields[i], from->args[row], c); break;
        default: break; /* nothing counts instructions */
        }
    }
}
#else
bool sv_slice_cells_init(struct sv_slice_cells *s, struct sv_sql *q, const struct sv_trace *t,
                         const struct sv_ch_column *columns, size_t n)
{
    (void)columns;
    *s = (struct sv_slice_cells){.q = q, .trace = t, .n = n};
    return false;
}

void sv_slice_cells(const struct sv_slice_cells *s, uint32_t row, struct sv_cell *cells)
{
    (void)s;
    (void)row;
    (void)cells;
}
#endif
