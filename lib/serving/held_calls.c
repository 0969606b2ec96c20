/* See held_calls.h.
 *
 * Requests and batches are parts with a list of their calls; a batch has a list of its requests.
 * What nobody knows (its begin was recorded before the rule, or it was kept already) goes out as it
 * comes. Memory is bounded: when too many calls wait, all of them are kept. */
#include "serving/held_calls.h"

#include "core/base/map.h"
#include "core/base/mem.h"

#include <stdlib.h>
#include <string.h>

#define NONE UINT32_MAX
enum { CALLS_MAX = 1 << 20, MODELS_MAX = 1024, KEPT_MAX = 1 << 14 };

struct node {
    struct node *next;
    uint64_t number; /* in the order in which they came */
    struct sv_call_cell call;
    uint64_t words[];
};

struct part {
    uint64_t id;
    struct node *first, *last;
    int64_t enqueued_ns, end_ns; /* of a request */
    uint32_t model, samples;
    uint32_t batch, sibling;  /* of a request: slots of its batch and of its next request */
    uint32_t members, n_open; /* of a batch */
    uint32_t calls;           /* bits: those that a batch needs, as far as they were made */
    bool is_used, is_batch, is_over, is_kept;
};

struct left {
    uint64_t n[SV_N_LEFT_OUT];
    int64_t first_ns, last_ns;
};

struct sv_held_calls {
    sv_held_out *out;
    void *ctx;
    struct part *parts;
    size_t n_parts, cap_parts, n_free, cap_free, n_going, cap_going;
    uint32_t *free_parts;
    struct sv_map requests, batches; /* number → slot */
    struct sv_map kept;              /* requests whose TRANSPORT may still come */
    struct node *spare;              /* nodes without words */
    struct node **going;             /* those that go out now */
    uint64_t n_calls, number;
    struct left *left;
    struct sv_latencies **latencies; /* of each model */
    size_t n_models, cap_left, cap_latencies;
};

struct sv_held_calls *sv_held_new(sv_held_out *out, void *ctx)
{
    struct sv_held_calls *h = sv_alloc(sizeof *h);
    h->out = out;
    h->ctx = ctx;
    return h;
}

static void free_nodes(struct node *n)
{
    for (struct node *next; n; n = next) {
        next = n->next;
        free(n);
    }
}

void sv_held_free(struct sv_held_calls *h)
{
    if (!h)
        return;
    for (size_t i = 0; i < h->n_parts; i++)
        free_nodes(h->parts[i].first);
    for (size_t i = 0; i < h->n_models; i++)
        free(h->latencies[i]);
    free_nodes(h->spare);
    free(h->parts);
    free(h->free_parts);
    free(h->going);
    free(h->left);
    free(h->latencies);
    sv_map_fini(&h->requests);
    sv_map_fini(&h->batches);
    sv_map_fini(&h->kept);
    free(h);
}

/* ---- parts ---- */

static uint32_t find(const struct sv_map *map, uint64_t id)
{
    const uint64_t *slot = sv_map_find(map, id);
    return slot ? (uint32_t)*slot : NONE;
}

static struct sv_map *map_of(struct sv_held_calls *h, bool is_batch)
{
    return is_batch ? &h->batches : &h->requests;
}

static uint32_t new_part(struct sv_held_calls *h, uint64_t id, bool is_batch)
{
    if (!h->n_free) {
        h->parts = sv_grow(h->parts, &h->cap_parts, h->n_parts + 1, sizeof *h->parts);
        h->parts[h->n_parts].first = NULL;
        SV_APPEND(h->free_parts, h->n_free, h->cap_free) = (uint32_t)h->n_parts++;
    }
    uint32_t slot = h->free_parts[--h->n_free];
    h->parts[slot] = (struct part){.id = id,
                                   .batch = NONE,
                                   .sibling = NONE,
                                   .members = NONE,
                                   .is_used = true,
                                   .is_batch = is_batch};
    *sv_map_add(map_of(h, is_batch), id, NULL) = slot;
    return slot;
}

static void free_part(struct sv_held_calls *h, uint32_t slot)
{
    struct part *p = &h->parts[slot];
    sv_map_remove(map_of(h, p->is_batch), p->id);
    p->is_used = false;
    SV_APPEND(h->free_parts, h->n_free, h->cap_free) = slot;
}

/* ---- calls ---- */

static void append(struct sv_held_calls *h, uint32_t slot, const struct sv_call_cell *c,
                   const uint64_t *words)
{
    struct part *p = &h->parts[slot];
    struct node *n = c->words ? NULL : h->spare;
    if (n)
        h->spare = n->next;
    else
        n = sv_alloc(sizeof *n + c->words * sizeof *words);
    memcpy(n->call.word, c->word, sizeof n->call.word);
    memcpy(n->words, words, c->words * sizeof *words);
    n->number = h->number++;
    n->next = NULL;
    *(p->first ? &p->last->next : &p->first) = n;
    p->last = n;
    h->n_calls++;
}

static void give_node(struct sv_held_calls *h, struct node *n)
{
    h->n_calls--;
    if (n->call.words) {
        free(n);
        return;
    }
    n->next = h->spare;
    h->spare = n;
}

/* The part is no more; its calls go out with the next go_out(), or are forgotten. */
static void take_part(struct sv_held_calls *h, uint32_t slot, bool is_kept)
{
    struct node *n = h->parts[slot].first;
    if (is_kept && !h->parts[slot].is_batch) {
        if (h->kept.n >= KEPT_MAX) /* a server that never says it, or clients that hang */
            sv_map_clear(&h->kept);
        sv_map_add(&h->kept, h->parts[slot].id, NULL);
    }
    h->parts[slot].first = NULL;
    free_part(h, slot);
    for (struct node *next; n; n = next) {
        next = n->next;
        if (is_kept)
            SV_APPEND(h->going, h->n_going, h->cap_going) = n;
        else
            give_node(h, n);
    }
}

static int by_number(const void *a, const void *b)
{
    const struct node *x = *(struct node *const *)a, *y = *(struct node *const *)b;
    return x->number < y->number ? -1 : x->number > y->number;
}

static void go_out(struct sv_held_calls *h)
{
    if (h->n_going)
        qsort(h->going, h->n_going, sizeof *h->going, by_number);
    for (size_t i = 0; i < h->n_going; i++) {
        h->out(h->ctx, &h->going[i]->call, h->going[i]->words);
        give_node(h, h->going[i]);
    }
    h->n_going = 0;
}

void sv_held_release(struct sv_held_calls *h)
{
    for (uint32_t i = 0; i < h->n_parts; i++)
        if (h->parts[i].is_used)
            take_part(h, i, true);
    go_out(h);
}

/* ---- what is left out ---- */

static void meet_model(struct sv_held_calls *h, uint32_t model)
{
    if (model < h->n_models)
        return;
    h->left = sv_grow(h->left, &h->cap_left, model + 1, sizeof *h->left);
    h->latencies =
        sv_grow(h->latencies, &h->cap_latencies, model + 1, sizeof(struct sv_latencies *));
    for (; h->n_models <= model; h->n_models++) {
        h->left[h->n_models] = (struct left){0};
        h->latencies[h->n_models] = NULL;
    }
}

static uint32_t model_of(struct sv_held_calls *h, uint32_t model)
{
    model = model < MODELS_MAX ? model : MODELS_MAX - 1;
    meet_model(h, model);
    return model;
}

static void leave_out(struct sv_held_calls *h, const struct part *p)
{
    struct left *l = &h->left[model_of(h, p->model)];
    uint64_t took_ns = p->end_ns > p->enqueued_ns ? (uint64_t)(p->end_ns - p->enqueued_ns) : 0;
    bool is_first = l->n[SV_LEFT_REQUESTS]++ == 0;
    l->n[SV_LEFT_SUM_NS] += took_ns;
    if (took_ns > l->n[SV_LEFT_MOST_NS])
        l->n[SV_LEFT_MOST_NS] = took_ns;
    l->first_ns = is_first || p->enqueued_ns < l->first_ns ? p->enqueued_ns : l->first_ns;
    l->last_ns = is_first || p->end_ns > l->last_ns ? p->end_ns : l->last_ns;
}

uint32_t sv_held_models(const struct sv_held_calls *h)
{
    return (uint32_t)h->n_models;
}

bool sv_held_left_out(struct sv_held_calls *h, uint32_t model, uint64_t numbers[SV_N_LEFT_OUT],
                      int64_t *last_ns)
{
    struct left *l = &h->left[model];
    if (l->n[SV_LEFT_REQUESTS] == 0)
        return false;
    l->n[SV_LEFT_SPAN_NS] = (uint64_t)(l->last_ns - l->first_ns);
    memcpy(numbers, l->n, sizeof l->n);
    *last_ns = l->last_ns;
    *l = (struct left){0};
    return true;
}

/* ---- together or not at all ---- */

static void take_request(struct sv_held_calls *h, uint32_t slot, bool is_kept)
{
    if (!is_kept)
        leave_out(h, &h->parts[slot]);
    take_part(h, slot, is_kept);
}

/* The batch with its requests. */
static void take_batch(struct sv_held_calls *h, uint32_t slot, bool is_kept)
{
    const struct part *b = &h->parts[slot];
    if (!is_kept && b->members != NONE) {
        struct left *l = &h->left[model_of(h, b->model)];
        l->n[SV_LEFT_BATCHES]++;
        l->n[SV_LEFT_SAMPLES] += b->samples;
    }
    for (uint32_t r = b->members, next; r != NONE; r = next) {
        next = h->parts[r].sibling;
        take_request(h, r, is_kept);
    }
    take_part(h, slot, is_kept);
    go_out(h);
}

static void keep_request(struct sv_held_calls *h, uint64_t id)
{
    uint32_t slot = find(&h->requests, id);
    if (slot == NONE)
        return;
    if (h->parts[slot].batch != NONE) {
        take_batch(h, h->parts[slot].batch, true);
        return;
    }
    take_part(h, slot, true);
    go_out(h);
}

#define BIT(op) (1u << (op))
#define WHOLE                                                                  \
    (BIT(SV_LIFE_COLLECTED) | BIT(SV_LIFE_SUBMITTED) | BIT(SV_LIFE_FINISHED) | \
     BIT(SV_LIFE_CALLBACK))

/* Threads may report in any order: it is over when all that belongs to it was. */
static void settle_batch(struct sv_held_calls *h, uint32_t slot)
{
    const struct part *b = &h->parts[slot];
    bool is_over = (b->calls & WHOLE) == WHOLE || b->calls & BIT(SV_LIFE_BATCH_FAILED);
    if (is_over && b->n_open == 0)
        take_batch(h, slot, b->is_kept);
}

/* ---- requests ---- */

static bool is_slow(struct sv_held_calls *h, const struct sv_keep_rule *rule, const struct part *r)
{
    uint32_t model = model_of(h, r->model);
    if (!h->latencies[model] && rule->percent)
        h->latencies[model] = sv_alloc(sizeof(struct sv_latencies));
    return sv_keep_is_slow(rule, h->latencies[model], r->end_ns - r->enqueued_ns, r->end_ns);
}

static void end_request(struct sv_held_calls *h, const struct sv_keep_rule *rule, uint32_t slot,
                        const struct sv_call_cell *c)
{
    struct part *r = &h->parts[slot];
    if (r->is_over) /* a second end: the reader counts it */
        return;
    r->is_over = true;
    r->end_ns = c->time_ns;
    r->is_kept |= c->op != SV_LIFE_RESPONDED || is_slow(h, rule, r);
    if (r->batch == NONE) {
        take_request(h, slot, r->is_kept);
        go_out(h);
        return;
    }
    h->parts[r->batch].is_kept |= r->is_kept;
    h->parts[r->batch].n_open--;
    settle_batch(h, r->batch);
}

static void put_request(struct sv_held_calls *h, const struct sv_keep_rule *rule,
                        const struct sv_call_cell *c, const uint64_t *words)
{
    if (!c->is_held) /* it is in the trace already: so is all that belongs to it */
        keep_request(h, c->id);
    uint32_t slot = find(&h->requests, c->id);
    if (slot == NONE && c->op == SV_LIFE_ENQUEUED && c->is_held) {
        slot = new_part(h, c->id, false);
        h->parts[slot].enqueued_ns = c->time_ns;
        h->parts[slot].model = c->model;
        h->parts[slot].is_kept = c->flags & SV_LIFE_WARMUP;
    }
    if (slot == NONE) {
        h->out(h->ctx, c, words);
        return;
    }
    append(h, slot, c, words);
    if (c->op == SV_LIFE_RESPONDED || c->op == SV_LIFE_FAILED || c->op == SV_LIFE_CANCELLED)
        end_request(h, rule, slot, c);
}

/* ---- batches ---- */

/* False: of some the begin is in the trace already. */
static bool add_members(struct sv_held_calls *h, uint32_t slot, const uint64_t *ids, uint32_t n)
{
    bool are_held = true;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t r = find(&h->requests, ids[i]);
        if (r == NONE) {
            are_held = false;
        } else if (h->parts[r].batch == NONE) {
            h->parts[r].batch = slot;
            h->parts[r].sibling = h->parts[slot].members;
            h->parts[slot].members = r;
            h->parts[slot].n_open++;
        }
    }
    return are_held;
}

static void put_batch(struct sv_held_calls *h, const struct sv_call_cell *c, const uint64_t *words)
{
    bool has_members = c->op == SV_LIFE_COLLECTED || c->op == SV_LIFE_MEMBERS;
    uint32_t slot = find(&h->batches, c->id);
    for (uint32_t i = 0; has_members && !c->is_held && i < c->n; i++)
        keep_request(h, words[i]);
    if (slot != NONE && !c->is_held) {
        take_batch(h, slot, true);
        slot = NONE;
    }
    if (slot == NONE && has_members && c->is_held)
        slot = new_part(h, c->id, true);
    if (slot == NONE) {
        h->out(h->ctx, c, words);
        return;
    }
    append(h, slot, c, words);
    if (has_members && !add_members(h, slot, words, c->n)) {
        take_batch(h, slot, true);
        return;
    }
    struct part *b = &h->parts[slot];
    if (c->op == SV_LIFE_COLLECTED) {
        b->model = c->model;
        b->samples = c->samples;
        b->is_kept |= c->flags & SV_LIFE_WARMUP;
    }
    b->calls |= BIT(c->op);
    b->is_kept |= c->op == SV_LIFE_BATCH_FAILED;
    settle_batch(h, slot);
}

/* It comes after the end: mostly the request is kept or left out already. */
static void put_transport(struct sv_held_calls *h, const struct sv_call_cell *c,
                          const uint64_t *words)
{
    uint32_t slot = find(&h->requests, c->id);
    if (slot != NONE)
        append(h, slot, c, words);
    else if (sv_map_remove(&h->kept, c->id))
        h->out(h->ctx, c, words);
}

/* ---- all calls ---- */

static void put_step(struct sv_held_calls *h, const struct sv_call_cell *c, const uint64_t *words)
{
    const struct sv_engine_member *m = (const struct sv_engine_member *)(const void *)words;
    for (uint32_t i = 0; i < c->n && h->requests.n; i++)
        keep_request(h, m[i].request);
    h->out(h->ctx, c, words);
}

void sv_held_put(struct sv_held_calls *h, const struct sv_keep_rule *rule,
                 const struct sv_call_cell *c, const uint64_t *words)
{
    if (h->n_calls >= CALLS_MAX)
        sv_held_release(h);
    switch (c->op) {
    case SV_LIFE_ENQUEUED:
    case SV_LIFE_DEQUEUED:
    case SV_LIFE_RESPONDED:
    case SV_LIFE_FAILED:
    case SV_LIFE_CANCELLED:
    case SV_LIFE_CONTEXT: put_request(h, rule, c, words); break;
    case SV_LIFE_MEMBERS:
    case SV_LIFE_COLLECTED:
    case SV_LIFE_SUBMITTED:
    case SV_LIFE_STARTED:
    case SV_LIFE_FINISHED:
    case SV_LIFE_OPERATORS:
    case SV_LIFE_CALLBACK:
    case SV_LIFE_BATCH_FAILED: put_batch(h, c, words); break;
    case SV_LIFE_STEP: put_step(h, c, words); break;
    case SV_LIFE_TRANSPORT: put_transport(h, c, words); break;
    case SV_LIFE_REJECTED:
    case SV_LIFE_SCHEDULED:
    case SV_LIFE_PREEMPTED:
    case SV_LIFE_RESUMED:
    case SV_LIFE_TRANSFERRED:
    case SV_LIFE_STREAMED:
        keep_request(h, c->id);
        h->out(h->ctx, c, words);
        break;
    default: h->out(h->ctx, c, words); break;
    }
}
