/* Interned data of Perfetto sequences: number → text or message, until the sequence clears its
 * state.
 *
 * sv_pf_interned_data() fills the tables of the packet's sequence, sv_pf_str() and sv_pf_blob_at()
 * ask them. Texts that become names, categories and argument keys enter the dictionary at once; the
 * values of arguments do not, because there may be any number of them: they are kept here and
 * forgotten with the state.
 *
 * Small numbers index an array that grows with them; others go to a map, so that a hostile number
 * costs no memory. A state that is cleared while events still point to its texts goes to the
 * graveyard, which the next call empties. */
#include "formats/perfetto/read.h"

#include "core/base/mem.h"

#include <assert.h>
#include <stdlib.h>

#define NEAR_MAX 65536u

struct list {
    uint32_t field;
    uint8_t table;
};

/* Lists of InternedData without a row here are of no use to Stave. */
static const struct list lists[] = {
    {SV_PF_INTERNED_CATEGORIES, SV_PF_T_CATEGORY},
    {SV_PF_INTERNED_NAMES, SV_PF_T_NAME},
    {SV_PF_INTERNED_ANNOTATION_NAMES, SV_PF_T_ARG_NAME},
    {SV_PF_INTERNED_ANNOTATION_STRINGS, SV_PF_T_ARG_STRING},
    {SV_PF_INTERNED_SOURCE_LOCATIONS, SV_PF_T_SOURCE},
    {SV_PF_INTERNED_ANNOTATION_TYPES, SV_PF_T_ARG_TYPE},
    {SV_PF_INTERNED_CORRELATION_STRINGS, SV_PF_T_CORRELATION},
    {SV_PF_INTERNED_FUNCTIONS, SV_PF_T_FUNCTION},
    {SV_PF_INTERNED_FRAMES, SV_PF_T_FRAME},
    {SV_PF_INTERNED_CALLSTACKS, SV_PF_T_CALLSTACK},
    {SV_PF_INTERNED_MAPPING_PATHS, SV_PF_T_MAPPING_PATH},
    {SV_PF_INTERNED_SOURCE_PATHS, SV_PF_T_SOURCE_PATH},
    {SV_PF_INTERNED_MAPPINGS, SV_PF_T_MAPPING},
    {SV_PF_INTERNED_LOG_BODIES, SV_PF_T_LOG_BODY},
    {SV_PF_INTERNED_GRAPHICS_CONTEXTS, SV_PF_T_GPU_CONTEXT},
    {SV_PF_INTERNED_GPU_SPECS, SV_PF_T_GPU_SPEC},
    {SV_PF_INTERNED_GPU_COUNTERS, SV_PF_T_GPU_COUNTERS},
    {SV_PF_INTERNED_COMPUTE_KERNELS, SV_PF_T_KERNEL},
    {SV_PF_INTERNED_COMPUTE_ARG_NAMES, SV_PF_T_COMPUTE_ARG_NAME},
};

/* ---- tables ---- */

static void grow_near(struct sv_pf_table *t, uint32_t need)
{
    uint32_t cap = t->cap_near ? t->cap_near : 64;
    while (cap < need)
        cap *= 2;
    if (cap != t->cap_near) {
        t->near = sv_realloc(t->near, cap * sizeof *t->near);
        t->cap_near = cap;
    }
    memset(t->near + t->n_near, 0, (need - t->n_near) * sizeof *t->near);
    t->n_near = need;
}

/* The array may be at most a few times as long as the table is full: a lone large number goes to
 * the map. */
static bool is_near(const struct sv_pf_table *t, uint64_t iid)
{
    return iid < t->n_near || iid < 256 || (iid < NEAR_MAX && iid < 2 * (uint64_t)t->n_near);
}

/* The slot of an iid (0: free). */
static uint32_t *slot_of(struct sv_pf_table *t, uint64_t iid, uint64_t **far)
{
    *far = t->far.n > 0 ? sv_map_find(&t->far, iid) : NULL;
    if (*far || !is_near(t, iid)) {
        bool is_new;
        if (!*far)
            *far = sv_map_add(&t->far, iid, &is_new);
        return NULL;
    }
    if (iid >= t->n_near)
        grow_near(t, (uint32_t)iid + 1);
    return &t->near[iid];
}

bool sv_pf_find_far(const struct sv_pf_state *s, unsigned table, uint64_t iid, uint32_t *value)
{
    const struct sv_pf_table *t = &s->tables[table];
    const uint64_t *far = t->far.n > 0 ? sv_map_find(&t->far, iid) : NULL;
    if (!far || *far == 0)
        return false;
    *value = (uint32_t)*far - 1;
    return true;
}

static void put(struct sv_pf *r, unsigned table, uint64_t iid, uint32_t value, bool is_text)
{
    uint64_t *far;
    uint32_t *near = slot_of(&r->seq->state->tables[table], iid, &far);
    assert(near || far);
    uint32_t old = near ? *near : (uint32_t)*far;
    if (old) { /* Perfetto, too, keeps the first */
        if (is_text && old != value + 1)
            sv_pf_damage(r, "interned number defined twice",
                         "%llu of sequence %u; the first meaning is kept", (unsigned long long)iid,
                         r->seq->id);
        return;
    }
    if (near)
        *near = value + 1;
    else
        *far = value + 1;
}

/* ---- filling ---- */

static uint32_t add_blob(struct sv_pf_state *s, const uint8_t *bytes, size_t len)
{
    s->blobs = sv_grow(s->blobs, &s->cap_blobs, s->n_blobs + 1, sizeof *s->blobs);
    s->blobs[s->n_blobs] =
        (struct sv_pf_blob){(const uint8_t *)sv_arena_copy(&s->bytes, bytes, len), len};
    return (uint32_t)s->n_blobs++;
}

static struct sv_pf_state *state_of(struct sv_pf_seq *seq)
{
    if (!seq->state) {
        seq->state = sv_alloc(sizeof *seq->state);
        sv_arena_init(&seq->state->bytes, (size_t)1 << 13);
    }
    return seq->state;
}

static void read_entry(struct sv_pf *r, unsigned table, const struct sv_pb_field *entry)
{
    struct sv_pb w = sv_pb_sub(entry);
    struct sv_pf_blob text = {(const uint8_t *)"", 0};
    uint64_t iid = 0;
    bool has_iid = false;
    for (struct sv_pb_field f; sv_pb_next(&w, &f);) {
        if (sv_pf_tag(&f) == SV_PF_V(SV_PF_INTERNED_IID)) {
            iid = f.u;
            has_iid = true;
        } else if (sv_pf_tag(&f) == SV_PF_B(SV_PF_INTERNED_TEXT)) {
            text = sv_pf_bytes(&f);
        }
    }
    if (w.bad || !has_iid) {
        sv_pf_damage(r, "malformed interned data", "an entry %s",
                     w.bad ? "is damaged" : "has no number");
        return;
    }
    struct sv_pf_state *s = state_of(r->seq);
    if (table < SV_PF_T_TEXTS)
        put(r, table, iid, sv_dict_str(r->dict, (const char *)text.bytes, text.len), true);
    else if (table < SV_PF_T_SOURCE)
        put(r, table, iid, add_blob(s, text.bytes, text.len), false);
    else
        put(r, table, iid, add_blob(s, sv_pf_bytes(entry).bytes, (size_t)entry->u), false);
}

void sv_pf_interned_data(struct sv_pf *r, struct sv_pf_blob data)
{
    struct sv_pb w = sv_pf_wire(data);
    if (!r->seq->is_valid)
        sv_pf_note(r, "interned data before a cleared state",
                   "sequence %u; kept, Perfetto drops it", r->seq->id);
    for (struct sv_pb_field f; sv_pb_next(&w, &f);) {
        for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
            if (lists[i].field == f.id && f.type == SV_PB_BYTES) {
                read_entry(r, lists[i].table, &f);
                break;
            }
        }
    }
    if (w.bad)
        sv_pf_damage(r, "malformed interned data", "of sequence %u", r->seq->id);
}

/* ---- asking ---- */

static const char *const table_names[SV_PF_TABLES] = {
    [SV_PF_T_CATEGORY] = "category",
    [SV_PF_T_NAME] = "event name",
    [SV_PF_T_ARG_NAME] = "argument name",
    [SV_PF_T_ARG_TYPE] = "argument type",
    [SV_PF_T_COMPUTE_ARG_NAME] = "kernel argument name",
    [SV_PF_T_ARG_STRING] = "argument text",
    [SV_PF_T_CORRELATION] = "correlation id",
    [SV_PF_T_FUNCTION] = "function name",
    [SV_PF_T_MAPPING_PATH] = "mapping path",
    [SV_PF_T_SOURCE_PATH] = "source path",
    [SV_PF_T_LOG_BODY] = "log message",
    [SV_PF_T_SOURCE] = "source location",
    [SV_PF_T_FRAME] = "stack frame",
    [SV_PF_T_CALLSTACK] = "callstack",
    [SV_PF_T_MAPPING] = "mapping",
    [SV_PF_T_GPU_CONTEXT] = "graphics context",
    [SV_PF_T_GPU_SPEC] = "GPU specification",
    [SV_PF_T_GPU_COUNTERS] = "GPU counter descriptor",
    [SV_PF_T_KERNEL] = "compute kernel",
};

static void report_unknown(struct sv_pf *r, unsigned table, uint64_t iid)
{
    sv_pf_damage(r, "unknown interned number", "%s %llu of sequence %u", table_names[table],
                 (unsigned long long)iid, r->seq->id);
}

sv_str sv_pf_str(struct sv_pf *r, unsigned table, uint64_t iid)
{
    uint32_t value;
    if (sv_pf_find(r->seq->state, table, iid, &value))
        return value;
    report_unknown(r, table, iid);
    return 0;
}

struct sv_pf_blob sv_pf_blob_at(struct sv_pf *r, unsigned table, uint64_t iid)
{
    uint32_t value;
    if (sv_pf_find(r->seq->state, table, iid, &value))
        return r->seq->state->blobs[value];
    report_unknown(r, table, iid);
    return (struct sv_pf_blob){0};
}

/* ---- clearing ---- */

void sv_pf_state_free(struct sv_pf_state *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < SV_PF_TABLES; i++) {
        free(s->tables[i].near);
        sv_map_fini(&s->tables[i].far);
    }
    sv_arena_fini(&s->bytes);
    free(s->blobs);
    free(s);
}

static void forget(struct sv_pf_state *s)
{
    for (size_t i = 0; i < SV_PF_TABLES; i++) {
        s->tables[i].n_near = 0;
        sv_map_clear(&s->tables[i].far);
    }
    sv_arena_reset(&s->bytes);
    s->n_blobs = 0;
}

/* Nothing points into a state without texts of arguments, nor into any while no event is under way:
 * its memory can be used again at once. */
void sv_pf_state_clear(struct sv_pf *r, struct sv_pf_seq *seq)
{
    struct sv_pf_state *s = seq->state;
    if (!s)
        return;
    if (s->n_blobs == 0 || (r->out->n == 0 && !r->spill)) {
        forget(s);
        return;
    }
    assert(r->n_graveyard < SV_PF_GRAVES);
    r->graveyard[r->n_graveyard++] = s;
    seq->state = NULL;
}
