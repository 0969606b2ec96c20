/* Operations of a job from a timeline of its pipeline: each slice with an argument `step` on a
 * track that is called "PP rank 1, TP rank 0, …" in a process "DP rank [2]" is one.
 *
 * Called once by sv_replay_job(). In each step and worker all but sends and receives follow each
 * other in time, unless a collective runs beside computing. Each of the four kinds of sends and
 * receives is a chain: send i follows compute i, receive i lies between compute i − 1 and i. Sends
 * meet the receives of the neighbour stage, collectives those of their scope. A step whose parts do
 * not fit together is left out. */
#include "subjects/comm/job.h"

#include "core/base/mem.h"
#include "core/base/sat.h"
#include "core/base/search.h"
#include "core/stream/gpu_words.h"
#include "subjects/comm/words.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Operations that overlap by less are one after the other: clocks and rounding. */
#define OVERLAP_NS 100000

enum direction { NEITHER, FORWARD, BACKWARD, N_DIRECTIONS };
enum action { COMPUTE, SEND, RECV, COLLECTIVE, N_ACTIONS };
enum scope { ALONE, TENSOR, DATA, PIPELINE, ALL }; /* who takes part in a collective */

/* By words of the name, the first that fits. */
static const struct {
    const char *word;
    enum scope scope;
} scopes[] = {{"embedding", PIPELINE}, {"layernorm", ALONE}, {"tp-", TENSOR},
              {"clip", ALL},           {"grads", DATA},      {"params", DATA}};

struct kind {
    uint8_t direction, action, scope;
    bool is_gather, is_read;
    uint32_t number; /* SV_REPLAY_NONE: not seen yet */
};

struct place { /* of a track */
    int32_t dp, pp, tp;
    bool is_known;
    uint32_t rank, stage, worker;
};

struct item {
    int64_t step, seq, begin_ns, end_ns;
    sv_str name;
    sv_track track;
    uint32_t op;
};

struct builder {
    struct sv_job *job;
    const struct sv_trace *t;
    struct kind *kinds;   /* by string */
    struct place *places; /* by track */
    struct item *items;
    size_t n, cap;
    uint32_t n_workers, step;
    uint32_t *counts; /* by kind, of the worker in its step */
    size_t cap_counts;
};

/* ---- names ---- */

/* "PP rank 3", "DP rank [2]"; -1: not in this text. */
static int32_t rank_in(const char *text, const char *word)
{
    const char *p = strstr(text, word);
    if (!p)
        return -1;
    p += strlen(word);
    p += strspn(p, " [:=");
    return isdigit((unsigned char)*p) ? (int32_t)(strtol(p, NULL, 10) & INT32_MAX) : -1;
}

static void find_places(struct builder *b)
{
    const struct sv_dict *d = b->t->dict;
    for (sv_track k = 1; k < b->t->n_tracks; k++) {
        struct place *p = &b->places[k];
        sv_track process = sv_dict_process_of(d, k);
        *p = (struct place){-1, -1, -1, false, 0, 0, 0};
        if (b->t->tracks[k].first == b->t->tracks[k].end)
            continue;
        for (sv_track up = k; up; up = d->tracks[up].parent) {
            const char *name = sv_dict_text(d, d->tracks[up].name).bytes;
            p->dp = p->dp < 0 ? rank_in(name, "DP rank") : p->dp;
            p->pp = p->pp < 0 ? rank_in(name, "PP rank") : p->pp;
            p->tp = p->tp < 0 ? rank_in(name, "TP rank") : p->tp;
        }
        p->is_known = p->dp >= 0 || p->pp >= 0;
        if (p->dp < 0 && process)
            p->dp = (int32_t)(d->tracks[process].pid & INT32_MAX);
        p->pp = p->pp < 0 ? 0 : p->pp;
        p->tp = p->tp < 0 ? 0 : p->tp;
    }
}

static struct kind kind_of(struct sv_text name)
{
    bool is_back = strstr(name.bytes, "backward"), is_for = strstr(name.bytes, "forward");
    enum sv_comm_op op = sv_comm_op_of(name.bytes, name.len);
    struct kind k = {.direction = is_back  ? BACKWARD
                                  : is_for ? FORWARD
                                           : NEITHER,
                     .action = op == SV_COMM_SEND    ? SEND
                               : op == SV_COMM_RECV  ? RECV
                               : op != SV_COMM_OTHER ? COLLECTIVE
                                                     : COMPUTE,
                     .scope = op == SV_COMM_OTHER ? ALONE : DATA,
                     .is_gather = op == SV_COMM_ALLGATHER,
                     .is_read = true,
                     .number = SV_REPLAY_NONE};
    for (size_t i = 0; i < sizeof scopes / sizeof *scopes; i++)
        if (!k.direction && strstr(name.bytes, scopes[i].word)) {
            k.scope = (uint8_t)scopes[i].scope;
            break;
        }
    if (k.action == COMPUTE && k.scope != ALONE)
        k.action = COLLECTIVE;
    return k;
}

/* ---- items ---- */

static int64_t argument(const struct sv_trace *t, uint32_t row, sv_str key)
{
    struct sv_arg a;
    int64_t value;
    bool is_there = key && sv_trace_arg(t, t->slices.args[row], key, &a);
    return is_there && sv_gpu_whole(&a, &value) ? value : -1;
}

static void find_items(struct builder *b)
{
    const struct sv_slices *s = &b->t->slices;
    const struct sv_dict *d = b->t->dict;
    sv_str step_key = sv_dict_find_str(d, "step", 4), seq_key = sv_dict_find_str(d, "seq_id", 6);
    for (uint32_t row = 0; row < s->n && step_key; row++) {
        int64_t step = b->places[s->track[row]].is_known && s->kind[row] == SV_SLICE &&
                               s->dur_ns[row] != SV_UNFINISHED
                           ? argument(b->t, row, step_key)
                           : -1;
        if (step < 0)
            continue;
        if (!b->kinds[s->name[row]].is_read)
            b->kinds[s->name[row]] = kind_of(sv_dict_text(d, s->name[row]));
        b->items = sv_grow(b->items, &b->cap, b->n + 1, sizeof *b->items);
        b->items[b->n++] = (struct item){.step = step,
                                         .seq = argument(b->t, row, seq_key),
                                         .begin_ns = s->ts_ns[row],
                                         .end_ns = sv_trace_end_ns(b->t, row),
                                         .name = s->name[row],
                                         .track = s->track[row]};
    }
}

static int in_order(const void *a, const void *b, void *ctx)
{
    const struct item *x = a, *y = b;
    const struct place *places = ctx;
    if (x->step != y->step)
        return x->step < y->step ? -1 : 1;
    if (places[x->track].worker != places[y->track].worker)
        return places[x->track].worker < places[y->track].worker ? -1 : 1;
    if (x->begin_ns != y->begin_ns)
        return x->begin_ns < y->begin_ns ? -1 : 1;
    if (x->end_ns != y->end_ns)
        return x->end_ns < y->end_ns ? -1 : 1;
    return x->seq < y->seq ? -1 : x->seq > y->seq;
}

static int by_place(const void *a, const void *b)
{
    const struct place *x = *(struct place *const *)a, *y = *(struct place *const *)b;
    if (x->dp != y->dp)
        return x->dp < y->dp ? -1 : 1;
    if (x->pp != y->pp)
        return x->pp < y->pp ? -1 : 1;
    return x->tp < y->tp ? -1 : x->tp > y->tp;
}

/* Ranks, stages and workers get their names, in the order of their numbers. */
static void name_places(struct builder *b)
{
    struct sv_job *j = b->job;
    struct place **used = sv_alloc(((size_t)b->t->n_tracks + 1) * sizeof(struct place *));
    bool *is_used = sv_alloc((size_t)b->t->n_tracks + 1), has_tp = false;
    size_t n = 0;
    for (size_t i = 0; i < b->n; i++) {
        if (!is_used[b->items[i].track])
            used[n++] = &b->places[b->items[i].track];
        is_used[b->items[i].track] = true;
        has_tp |= b->places[b->items[i].track].tp > 0;
    }
    if (n)
        qsort(used, n, sizeof *used, by_place);
    for (size_t i = 0; i < n; i++) {
        char name[100];
        snprintf(name, sizeof name, "DP rank %" PRId32, used[i]->dp);
        used[i]->rank = sv_job_number(j, SV_REPLAY_RANK, name);
        snprintf(name, sizeof name, "stage %" PRId32, used[i]->pp);
        used[i]->stage = sv_job_number(j, SV_REPLAY_STAGE, name);
        int len = snprintf(name, sizeof name, "DP rank %" PRId32 ", stage %" PRId32, used[i]->dp,
                           used[i]->pp);
        if (has_tp)
            snprintf(name + len, sizeof name - (size_t)len, ", TP rank %" PRId32, used[i]->tp);
        used[i]->worker = sv_job_number(j, SV_REPLAY_WORKER, name);
    }
    b->n_workers = (uint32_t)j->n_names[SV_REPLAY_WORKER];
    free(used);
    free(is_used);
}

/* ---- one worker in one step ---- */

/* Operations of one direction and action, in time. */
struct row {
    uint32_t *ops;
    size_t n, cap;
};

static uint32_t group_of(struct builder *b, const struct item *it, const struct kind *k,
                         uint32_t nth)
{
    const struct place *p = &b->places[it->track];
    bool is_pair = k->action == SEND || k->action == RECV;
    /* A forward send of stage 0 and the receive of stage 1 cross border 1; backward likewise. */
    int32_t border = p->pp + ((k->action == SEND) == (k->direction == FORWARD));
    int32_t key[] = {is_pair,
                     is_pair ? k->direction : (int32_t)it->name,
                     (int32_t)b->step,
                     (int32_t)nth,
                     k->scope == DATA || k->scope == ALL ? -1 : p->dp,
                     is_pair                                   ? border
                     : k->scope == PIPELINE || k->scope == ALL ? -1
                                                               : p->pp,
                     k->scope == TENSOR || k->scope == ALL ? -1 : p->tp};
    if (is_pair)
        key[4] = p->dp;
    return k->action == COMPUTE || (!is_pair && k->scope == ALONE)
               ? SV_REPLAY_NONE
               : sv_job_key(&b->job->groups, key, sizeof key);
}

static void add_op(struct builder *b, struct item *it, struct row rows[N_DIRECTIONS][N_ACTIONS])
{
    struct kind *k = &b->kinds[it->name];
    const struct place *p = &b->places[it->track];
    if (k->number == SV_REPLAY_NONE)
        k->number = sv_job_number(b->job, SV_REPLAY_KIND, sv_dict_text(b->t->dict, it->name).bytes);
    size_t cap = b->cap_counts;
    b->counts = sv_grow(b->counts, &b->cap_counts, k->number + 1, sizeof *b->counts);
    memset(b->counts + cap, 0, (b->cap_counts - cap) * sizeof *b->counts);
    uint32_t nth = b->counts[k->number]++;
    it->op = sv_replay_add(
        &b->job->replay,
        &(struct sv_replay_op){.begin_ns = it->begin_ns,
                               .end_ns = it->end_ns,
                               .segment = b->step,
                               .step = b->step,
                               .nth = nth,
                               .same = k->number,
                               .group = group_of(b, it, k, nth),
                               .at = {p->rank, p->worker, p->stage, SV_REPLAY_NONE, k->number},
                               .is_comm = k->action != COMPUTE});
    struct row *r = &rows[k->direction][k->action];
    r->ops = sv_grow(r->ops, &r->cap, r->n + 1, sizeof *r->ops);
    r->ops[r->n++] = it->op;
}

/* By item, and one more: the next one from it on that is computing, and that is no send or
 * receive. */
struct ahead {
    size_t compute, main;
};

static struct ahead *look_ahead(const struct builder *b, const struct item *items, size_t n)
{
    struct ahead *ahead = sv_alloc((n + 1) * sizeof *ahead);
    ahead[n] = (struct ahead){n, n};
    for (size_t i = n; i-- > 0;) {
        unsigned action = b->kinds[items[i].name].action;
        ahead[i].compute = action == COMPUTE ? i : ahead[i + 1].compute;
        ahead[i].main = action == COMPUTE || action == COLLECTIVE ? i : ahead[i + 1].main;
    }
    return ahead;
}

/* A collective beside computing is in no chain: it follows what had ended, a gather precedes the
 * next computing, the others what follows the last computing. */
static void chain(struct builder *b, const struct item *items, size_t n)
{
    struct sv_replay *r = &b->job->replay;
    const struct item *last = NULL, *compute = NULL;
    struct ahead *ahead = look_ahead(b, items, n);
    size_t tail = 0, at;
    for (size_t i = 0; i < n; i++)
        if (b->kinds[items[i].name].action == COMPUTE && b->kinds[items[i].name].direction)
            tail = i;
    for (size_t i = 0; i < n; i++) {
        const struct item *it = &items[i];
        const struct kind *k = &b->kinds[it->name];
        if (k->action == SEND || k->action == RECV)
            continue;
        size_t next = ahead[i + 1].compute;
        bool is_beside = k->action == COLLECTIVE &&
                         ((compute && it->begin_ns < sv_sat_sub(compute->end_ns, OVERLAP_NS)) ||
                          (next < n && items[next].begin_ns < sv_sat_sub(it->end_ns, OVERLAP_NS)));
        if (last && (!is_beside || last->end_ns <= sv_sat_add(it->begin_ns, OVERLAP_NS)))
            sv_replay_after(r, it->op, last->op);
        if (is_beside) {
            SV_SEARCH(at, mid, i + 1, n, items[mid].begin_ns < it->end_ns);
            at = ahead[!k->is_gather && at <= tail ? tail + 1 : at].main;
            if (at < n)
                sv_replay_after(r, items[at].op, it->op);
            continue;
        }
        last = it;
        compute = k->action == COMPUTE ? it : compute;
    }
    free(ahead);
}

/* False: the numbers of sends or receives and of computes differ. */
static bool link_transfers(struct sv_replay *r, struct row rows[N_DIRECTIONS][N_ACTIONS])
{
    for (int d = FORWARD; d <= BACKWARD; d++) {
        const struct row *compute = &rows[d][COMPUTE];
        for (int a = SEND; a <= RECV; a++) {
            const struct row *moved = &rows[d][a];
            if (moved->n && moved->n != compute->n)
                return false;
            for (size_t i = 0; i < moved->n; i++) {
                if (i)
                    sv_replay_after(r, moved->ops[i], moved->ops[i - 1]);
                if (a == SEND)
                    sv_replay_after(r, moved->ops[i], compute->ops[i]);
                else
                    sv_replay_after(r, compute->ops[i], moved->ops[i]);
                if (a == RECV && i)
                    sv_replay_after(r, moved->ops[i], compute->ops[i - 1]);
            }
        }
    }
    return true;
}

static bool add_worker(struct builder *b, struct item *items, size_t n)
{
    struct row rows[N_DIRECTIONS][N_ACTIONS] = {0};
    for (size_t i = 0; i < n; i++)
        add_op(b, &items[i], rows);
    chain(b, items, n);
    bool fits = link_transfers(&b->job->replay, rows);
    for (int d = 0; d < N_DIRECTIONS; d++)
        for (int a = 0; a < N_ACTIONS; a++)
            free(rows[d][a].ops);
    for (size_t i = 0; i < n; i++)
        b->counts[b->kinds[items[i].name].number] = 0;
    return fits;
}

/* ---- steps ---- */

/* How often each kind of transfer is on each border must agree; computed before anything is added,
 * as sums of which one half is negative. */
static bool transfers_meet(const struct builder *b, const struct item *items, size_t n)
{
    struct sv_map open = {0};
    bool is_even = true;
    for (size_t i = 0; i < n; i++) {
        const struct kind *k = &b->kinds[items[i].name];
        const struct place *p = &b->places[items[i].track];
        if (k->action != SEND && k->action != RECV)
            continue;
        int32_t key[] = {p->dp, p->tp, k->direction,
                         p->pp + ((k->action == SEND) == (k->direction == FORWARD))};
        *sv_map_add(&open, sv_hash_bytes(key, sizeof key, 0), NULL) +=
            k->action == SEND ? UINT64_C(1) : UINT64_MAX;
    }
    for (size_t i = 0; i < open.cap; i++)
        is_even &= !open.used[i] || open.slots[i].value == 0;
    sv_map_fini(&open);
    return is_even;
}

static size_t workers_of(const struct builder *b, const struct item *items, size_t n)
{
    size_t workers = 0;
    for (size_t i = 0; i < n; i++)
        workers += i == 0 ||
                   b->places[items[i].track].worker != b->places[items[i - 1].track].worker;
    return workers;
}

static void add_steps(struct builder *b)
{
    struct sv_job *j = b->job;
    for (size_t i = 0, end; i < b->n; i = end) {
        for (end = i + 1; end < b->n && b->items[end].step == b->items[i].step; end++) {}
        if (workers_of(b, b->items + i, end - i) < b->n_workers ||
            !transfers_meet(b, b->items + i, end - i)) {
            j->steps_left_out++;
            continue;
        }
        bool fits = true;
        for (size_t k = i, to; k < end; k = to) {
            uint32_t worker = b->places[b->items[k].track].worker;
            for (to = k + 1; to < end && b->places[b->items[to].track].worker == worker; to++) {}
            fits &= add_worker(b, b->items + k, to - k);
        }
        if (!fits)
            snprintf(j->reason, sizeof j->reason,
                     "step %" PRId64 " has other numbers of sends or receives than of computes: "
                     "interleaved pipelines are not replayed",
                     b->items[i].step);
        b->step++;
    }
    j->replay.n_steps = b->step;
}

bool sv_job_of_pipeline(struct sv_job *j, const struct sv_trace *t)
{
    struct builder b = {.job = j, .t = t};
    b.places = sv_alloc(((size_t)t->n_tracks + 1) * sizeof *b.places);
    b.kinds = sv_alloc(((size_t)t->dict->n_strings + 1) * sizeof *b.kinds);
    find_places(&b);
    find_items(&b);
    if (b.n) {
        name_places(&b);
        qsort_r(b.items, b.n, sizeof *b.items, in_order, b.places);
        add_steps(&b);
        j->n_ranks = b.n_workers;
        if (b.n_workers < 2)
            snprintf(j->reason, sizeof j->reason,
                     "one rank, and none to compare with: give the traces of "
                     "all ranks");
        else if (!j->replay.n_steps)
            snprintf(j->reason, sizeof j->reason,
                     "none of its %zu steps is complete: each needs all %" PRIu32
                     " workers, and a receive for every send",
                     j->steps_left_out, b.n_workers);
    }
    bool is_one = b.n && !j->reason[0];
    free(b.places);
    free(b.kinds);
    free(b.items);
    free(b.counts);
    return is_one;
}
