/* The tables of continuous batching: engine_step, engine_step_member, token, and engine_request,
 * which the view `request` has, too. All as report llm finds them (subjects/engine/llm.h). The
 * columns of the first three are listed in sql/typed.c, as they are exported. */
#include "sql/sql.h"

#ifdef SV_HAVE_SQLITE
#include "core/base/mem.h"
#include "sql/impl.h"
#include "subjects/engine/llm.h"

#include <stdlib.h>

static const void *llm_of(struct sv_sql *q)
{
    void **kept = sv_sql_kept(q, &sv_engine_tables);
    if (!*kept) {
        *kept = sv_alloc(sizeof(struct sv_llm));
        sv_llm_make(*kept, q->trace);
    }
    return *kept;
}

static void forget(void *kept)
{
    sv_llm_fini(kept);
    free(kept);
}

/* What was made already, or NULL: an estimate makes nothing. */
static const struct sv_llm *made(struct sv_sql *q)
{
    return *sv_sql_kept(q, &sv_engine_tables);
}

/* ---- values ---- */

/* A time or a length that may be unknown. */
static void known(sqlite3_context *ctx, int64_t v)
{
    if (v != SV_LLM_UNKNOWN)
        sqlite3_result_int64(ctx, v);
}

static void at_least_0(sqlite3_context *ctx, int64_t v)
{
    if (v >= 0)
        sqlite3_result_int64(ctx, v);
}

static void string(const struct sv_llm *l, sqlite3_context *ctx, sv_str s)
{
    struct sv_text text = sv_dict_text(l->strings, s);
    if (s)
        sv_sql_result_text(ctx, text.bytes, text.len);
}

static void request_id(const struct sv_llm *l, sqlite3_context *ctx, uint32_t request)
{
    const struct sv_llm_request *r = &l->requests[request];
    if (r->name)
        string(l, ctx, r->name);
    else
        sqlite3_result_int64(ctx, (sqlite3_int64)r->id);
}

/* ---- engine_request ---- */

enum request_column {
    R_ID,
    R_REQUEST,
    R_TS,
    R_DUR,
    R_MODEL,
    R_OUTCOME,
    R_SCHEDULED,
    R_FIRST_TOKEN,
    R_LAST_TOKEN,
    R_TTFT,
    R_TPOT,
    R_QUEUE,
    R_PREFILL,
    R_DECODE,
    R_PREEMPTED,
    R_TRANSFER,
    R_RESPOND,
    R_PROMPT,
    R_CACHED,
    R_OUTPUT,
    R_PROPOSED,
    R_ACCEPTED,
    R_PREEMPTIONS,
    R_STEPS,
    R_LOAD,
    R_SHARE,
    R_KERNEL,
    R_IO,
    R_IS_WARMUP,
    R_BATCH,
    R_READ,
    R_PARSE,
    R_SERIALISE,
    R_WRITE
};

static uint64_t request_rows(struct sv_sql *q)
{
    return made(q) ? made(q)->n_requests : 1000;
}

static void request_number(sqlite3_context *ctx, const struct sv_llm_request *r, int column)
{
    const int64_t numbers[] = {[R_PROMPT] = r->prompt,
                               [R_CACHED] = (int64_t)r->cached,
                               [R_OUTPUT] = (int64_t)r->output,
                               [R_PROPOSED] = (int64_t)r->proposed,
                               [R_ACCEPTED] = (int64_t)r->accepted,
                               [R_PREEMPTIONS] = r->preemptions,
                               [R_STEPS] = r->n_members,
                               [R_LOAD] = r->load,
                               [R_SHARE] = r->share_ns,
                               [R_KERNEL] = r->kernel_ns,
                               [R_IO] = r->io_ns,
                               [R_IS_WARMUP] = r->is_warmup};
    if (column >= R_PROMPT && column <= R_IS_WARMUP)
        sqlite3_result_int64(ctx, numbers[column]);
}

static void request_column(struct sv_sql_cursor *c, sqlite3_context *ctx, int column)
{
    const struct sv_llm *l = made(c->q);
    const struct sv_llm_request *r = &l->requests[c->row];
    if (r->is_untimed &&
        (column == R_TS || column == R_LOAD || (column >= R_SCHEDULED && column <= R_LAST_TOKEN)))
        return; /* made up: the file has no arrivals */
    switch (column) {
    case R_ID: sqlite3_result_int64(ctx, (sqlite3_int64)c->row); break;
    case R_REQUEST: request_id(l, ctx, (uint32_t)c->row); break;
    case R_TS: known(ctx, r->arrival_ns); break;
    case R_DUR: at_least_0(ctx, sv_llm_e2e(r)); break;
    case R_MODEL: string(l, ctx, r->model); break;
    case R_OUTCOME: sqlite3_result_text(ctx, sv_life_fate_names[r->fate], -1, SQLITE_STATIC); break;
    case R_SCHEDULED: known(ctx, r->scheduled_ns); break;
    case R_FIRST_TOKEN: known(ctx, r->first_token_ns); break;
    case R_LAST_TOKEN: known(ctx, r->last_token_ns); break;
    case R_TTFT: at_least_0(ctx, sv_llm_ttft(r)); break;
    case R_TPOT: at_least_0(ctx, sv_llm_tpot(r)); break;
    case R_BATCH:
        if (r->batch)
            sqlite3_result_int64(ctx, (sqlite3_int64)(r->batch - 1));
        break;
    case R_READ:
    case R_PARSE:
    case R_SERIALISE:
    case R_WRITE: at_least_0(ctx, r->transport_ns[column - R_READ]); break;
    case R_QUEUE:
    case R_PREFILL:
    case R_DECODE:
    case R_PREEMPTED:
    case R_TRANSFER:
    case R_RESPOND:
        sqlite3_result_int64(ctx, r->phase_ns[column - R_QUEUE + SV_ENGINE_QUEUE]);
        break;
    default: request_number(ctx, r, column); break;
    }
}

static const struct sv_sql_table sv_sql_engine_request = {
    .name = "engine_request",
    .columns = "id INTEGER, request_id, ts INTEGER, dur INTEGER, model TEXT, outcome TEXT, "
               "scheduled_ts INTEGER, first_token_ts INTEGER, last_token_ts INTEGER, "
               "ttft_ns INTEGER, tpot_ns INTEGER, queue_ns INTEGER, prefill_ns INTEGER, "
               "decode_ns INTEGER, preempted_ns INTEGER, transfer_ns INTEGER, respond_ns INTEGER, "
               "prompt_tokens INTEGER, cached_tokens INTEGER, output_tokens INTEGER, "
               "proposed INTEGER, accepted INTEGER, preemptions INTEGER, steps INTEGER, "
               "load INTEGER, share_ns INTEGER, kernel_ns INTEGER, io_ns INTEGER, "
               "is_warmup INTEGER, batch_id INTEGER, read_ns INTEGER, parse_ns INTEGER, "
               "serialise_ns INTEGER, write_ns INTEGER",
    .rows = request_rows,
    .make = llm_of,
    .column = request_column,
};

/* ---- engine_step ---- */

enum step_column {
    S_ID,
    S_NUMBER,
    S_TS,
    S_DUR,
    S_ENGINE,
    S_REQUESTS,
    S_PREFILL,
    S_DECODE,
    S_TOKENS_IN,
    S_TOKENS_OUT,
    S_CACHED,
    S_PROPOSED,
    S_ACCEPTED,
    S_KV_USED,
    S_KV_TOTAL,
    S_WAITING,
    S_GRAPH,
    S_KERNEL,
    S_IO,
    S_IS_WARMUP,
    S_TRACK,
    S_SLICE
};

static uint64_t step_rows(struct sv_sql *q)
{
    return made(q) ? made(q)->n_steps : 10000;
}

static void step_column(struct sv_sql_cursor *c, sqlite3_context *ctx, int column)
{
    const struct sv_llm *l = made(c->q);
    const struct sv_llm_step *s = &l->steps[c->row];
    const int64_t numbers[] = {[S_ID] = (int64_t)c->row,
                               [S_NUMBER] = (int64_t)s->id,
                               [S_TS] = s->ts_ns,
                               [S_DUR] = s->dur_ns,
                               [S_ENGINE] = 0,
                               [S_REQUESTS] = (int64_t)s->n_prefill + s->n_decode,
                               [S_PREFILL] = s->n_prefill,
                               [S_DECODE] = s->n_decode,
                               [S_TOKENS_IN] = (int64_t)s->tokens_in,
                               [S_TOKENS_OUT] = (int64_t)s->tokens_out,
                               [S_CACHED] = (int64_t)s->cached,
                               [S_PROPOSED] = (int64_t)s->proposed,
                               [S_ACCEPTED] = (int64_t)s->accepted,
                               [S_KV_USED] = s->kv_used,
                               [S_KV_TOTAL] = s->kv_total,
                               [S_WAITING] = s->waiting,
                               [S_GRAPH] = 0,
                               [S_KERNEL] = s->kernel_ns,
                               [S_IO] = s->io_ns,
                               [S_IS_WARMUP] = s->is_warmup,
                               [S_TRACK] = s->track};
    if ((column == S_ENGINE || column == S_TRACK || column == S_SLICE) && s->row == SV_NO_ROW)
        return; /* a batch of dynamic batching has no slice of its own */
    if (column == S_ENGINE)
        sv_sql_result_str(c->q, ctx, c->q->dict->tracks[s->track].name);
    else if (column == S_GRAPH)
        string(l, ctx, s->graph);
    else if (column == S_SLICE)
        sqlite3_result_int64(ctx, sv_index_id(c->q->index, s->row));
    else if (column >= S_KV_USED && column <= S_WAITING)
        at_least_0(ctx, numbers[column]);
    else if (column <= S_TRACK)
        sqlite3_result_int64(ctx, numbers[column]);
}

static const struct sv_sql_table sv_sql_engine_step = {
    .name = "engine_step",
    .rows = step_rows,
    .make = llm_of,
    .column = step_column,
};

/* ---- engine_step_member ---- */

static uint64_t member_rows(struct sv_sql *q)
{
    return made(q) ? made(q)->n_members : 100000;
}

static int member_start(struct sv_sql_cursor *c, int order, const struct sv_sql_cond *conds,
                        size_t n)
{
    const struct sv_llm *l = llm_of(c->q);
    const struct sv_sql_cond *step = sv_sql_find_cond(conds, n, 1, SV_OP_EQ);
    int64_t number;
    (void)order;
    if (!step)
        sv_sql_range(c, 0, l->n_members);
    else if (sv_sql_value_int(step->value, SV_OP_EQ, &number) && number >= 0 &&
             (uint64_t)number < l->n_steps)
        sv_sql_range(c, l->steps[number].first_member,
                     l->steps[number].first_member + l->steps[number].n);
    else
        sv_sql_none(c);
    return SQLITE_OK;
}

static void member_column(struct sv_sql_cursor *c, sqlite3_context *ctx, int column)
{
    const struct sv_llm *l = made(c->q);
    const struct sv_llm_member *k = &l->members[c->row];
    const int64_t numbers[] = {(int64_t)c->row, k->step,         0,           0,
                               k->m.tokens_in,  k->m.tokens_out, k->m.cached, k->m.position,
                               k->m.proposed,   k->m.accepted,   k->share_ns, k->kernel_ns,
                               k->io_ns};
    if (column == 2)
        request_id(l, ctx, k->request);
    else if (column == 3)
        sqlite3_result_text(ctx, k->m.is_decode ? "decode" : "prefill", -1, SQLITE_STATIC);
    else if (column < (int)(sizeof numbers / sizeof *numbers))
        sqlite3_result_int64(ctx, numbers[column]);
}

static const struct sv_sql_key member_keys[] = {{1, "e", 0.001}};

static const struct sv_sql_table sv_sql_engine_step_member = {
    .name = "engine_step_member",
    .keys = member_keys,
    .n_keys = 1,
    .rows = member_rows,
    .start = member_start,
    .column = member_column,
};

/* ---- token ---- */

static uint64_t token_rows(struct sv_sql *q)
{
    return made(q) ? made(q)->n_tokens : 100000;
}

static void token_column(struct sv_sql_cursor *c, sqlite3_context *ctx, int column)
{
    const struct sv_llm *l = made(c->q);
    const struct sv_llm_token *k = &l->tokens[c->row];
    switch (column) {
    case 0: sqlite3_result_int64(ctx, (sqlite3_int64)c->row); break;
    case 1: request_id(l, ctx, k->request); break;
    case 2: sqlite3_result_int64(ctx, k->number); break;
    case 3: sqlite3_result_int64(ctx, k->ts_ns); break;
    case 4: at_least_0(ctx, sv_llm_gap(l, k)); break;
    case 5: sqlite3_result_int64(ctx, k->made_ns); break;
    default: sqlite3_result_int64(ctx, k->step); break;
    }
}

static const struct sv_sql_table sv_sql_token = {
    .name = "token",
    .rows = token_rows,
    .make = llm_of,
    .column = token_column,
};

const struct sv_sql_set sv_engine_tables = {
    .tables = (const struct sv_sql_table *const[]){&sv_sql_engine_request, &sv_sql_engine_step,
                                                   &sv_sql_engine_step_member, &sv_sql_token, NULL},
    .forget = forget,
};
#endif
