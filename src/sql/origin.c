/* The columns about rank and host of the tables process, track and machine: see store/ranks.h. */
#include "sql/sql.h"

#ifdef SV_HAVE_SQLITE
#include "core/base/mem.h"
#include "sql/impl.h"

#include <stdlib.h>
#include <string.h>

static void put_number(sqlite3_context *ctx, int64_t n)
{
    if (n >= 0)
        sqlite3_result_int64(ctx, n);
}

static void put_text(sqlite3_context *ctx, const char *text)
{
    if (text)
        sv_sql_result_text(ctx, text, strlen(text));
}

/* In the order of SV_SQL_ORIGIN_COLUMNS. */
void sv_sql_origin_column(sqlite3_context *ctx, const struct sv_origin *o, int which)
{
    switch (which) {
    case 0: put_number(ctx, o->rank); break;
    case 1: put_number(ctx, o->local_rank); break;
    case 2: put_number(ctx, o->world_size); break;
    case 3: put_text(ctx, o->job); break;
    case 4: put_text(ctx, o->launcher); break;
    case 5: put_text(ctx, o->host); break;
    default: put_text(ctx, o->boot); break;
    }
}

/* A machine with several ranks has none; the rest is that of its first process, or of its first
 * track. */
static void learn(struct sv_sql *q, sv_track track, bool *is_known, bool *has_process)
{
    uint32_t machine = sv_sql_machine_of(q, q->dict->tracks[track].space);
    struct sv_origin o = sv_origin_of(q->dict, track), *to = &q->origins[machine];
    bool is_process = q->dict->tracks[track].kind == SV_TRACK_PROCESS;
    if (!is_known[machine] || (is_process && !has_process[machine])) {
        *to = o;
    } else if (is_process && to->rank != o.rank) {
        to->rank = to->local_rank = -1;
    }
    is_known[machine] = true;
    has_process[machine] |= is_process;
}

const struct sv_origin *sv_sql_machine_origin(struct sv_sql *q, uint64_t machine)
{
    if (q->origins)
        return &q->origins[machine];
    q->origins = sv_alloc(q->n_spaces * sizeof *q->origins);
    bool *is_known = sv_alloc(q->n_spaces), *has_process = sv_alloc(q->n_spaces);
    q->origins[0] = sv_origin_of(q->dict, 0);
    for (uint32_t i = 1; i < q->n_spaces; i++)
        q->origins[i] = (struct sv_origin){.rank = -1, .local_rank = -1, .world_size = -1};
    for (sv_track t = 1; t < q->dict->n_tracks; t++)
        if (q->dict->tracks[t].kind == SV_TRACK_PROCESS || q->dict->tracks[t].parent == 0)
            learn(q, t, is_known, has_process);
    free(is_known);
    free(has_process);
    return &q->origins[machine];
}
#endif
