/* Perfetto writer: numbers for strings (Perfetto: interning), and which sequence has interned
 * which.
 *
 * Called while an event is built: each function returns the number to write, and appends the
 * definition to w->interned when the event's sequence has not interned it in this window. Strings
 * of the dictionary are looked up by index, never hashed. Texts of arguments are not in the
 * dictionary: a table of fixed size remembers hashes, a text gets its number when it occurs for the
 * second time, so that unique ones cost nothing. All is forgotten at the end of a window, which
 * bounds the memory. */
#include "core/perfetto/write.h"

#include <assert.h>
#include <stdlib.h>

static const uint32_t field_of[PF_NUMBERS] = {
    [PF_NAME] = SV_PF_INTERNED_NAMES,
    [PF_CATEGORY] = SV_PF_INTERNED_CATEGORIES,
    [PF_KEY] = SV_PF_INTERNED_ANNOTATION_NAMES,
    [PF_TYPE] = SV_PF_INTERNED_ANNOTATION_TYPES,
    [PF_TEXT] = SV_PF_INTERNED_ANNOTATION_STRINGS,
    [PF_SOURCE] = SV_PF_INTERNED_SOURCE_LOCATIONS,
};

/* ---- what a sequence has interned ---- */

void pf_bits_set(struct pf_bits *b, uint32_t i)
{
    uint32_t need = (i >> 6) + 1;
    if (need > b->n_words) {
        uint32_t n = need < 4 ? 4 : need + need / 2;
        b->words = sv_realloc(b->words, n * sizeof *b->words);
        memset(b->words + b->n_words, 0, (n - b->n_words) * sizeof *b->words);
        b->n_words = n;
    }
    b->words[i >> 6] |= (uint64_t)1 << (i & 63);
}

void pf_interned_clear(struct pf_sequence *s)
{
    for (unsigned k = 0; k < PF_NUMBERS; k++)
        if (s->interned[k].n_words)
            memset(s->interned[k].words, 0, s->interned[k].n_words * sizeof *s->interned[k].words);
    for (unsigned i = 0; s->shapes && i < PF_SHAPES; i++)
        s->shapes[i].rest = 0;
}

/* Appends the definition unless the sequence has it. */
static void intern_text(struct pf *w, struct pf_sequence *s, enum pf_number kind, uint32_t number,
                        const char *text, size_t len)
{
    struct sv_buf *b = &w->interned;
    if (pf_bits_has(&s->interned[kind], number))
        return;
    pf_bits_set(&s->interned[kind], number);
    size_t entry = sv_put_begin(b, field_of[kind]);
    sv_put_u64(b, SV_PF_INTERNED_IID, number);
    sv_put_text(b, SV_PF_INTERNED_TEXT, text, len);
    sv_put_end(b, entry);
}

/* ---- strings of the dictionary ---- */

static uint32_t number_new(struct pf *w, enum pf_number kind, sv_str str)
{
    uint32_t number = ++w->n_numbers[kind];
    w->number_of[kind][str] = number;
    w->numbered[kind] =
        sv_grow(w->numbered[kind], &w->cap_numbered[kind], number, sizeof *w->numbered[kind]);
    w->numbered[kind][number - 1] = str;
    return number;
}

uint32_t pf_number(struct pf *w, struct pf_sequence *s, enum pf_number kind, sv_str str)
{
    assert(kind < PF_DICT_NUMBERS && str < w->dict->n_strings);
    size_t had = w->cap_number_of[kind];
    if (str >= had) {
        w->number_of[kind] = sv_grow(w->number_of[kind], &w->cap_number_of[kind], (size_t)str + 1,
                                     sizeof *w->number_of[kind]);
        memset(w->number_of[kind] + had, 0,
               (w->cap_number_of[kind] - had) * sizeof *w->number_of[kind]);
    }
    uint32_t number = w->number_of[kind][str];
    if (number == 0)
        number = number_new(w, kind, str);
    struct sv_text text = sv_dict_text(w->dict, str);
    intern_text(w, s, kind, number, text.bytes, text.len);
    return number;
}

/* ---- texts and source locations ---- */

enum { POOL_TEXTS, POOL_SOURCES, POOL_WAYS = 4 };

/* The slot of these bytes, or the best one to put them into; NULL when all in reach are taken. */
static struct pf_pool_slot *pool_find(struct pf *w, int pool, uint64_t hash, const char *bytes,
                                      size_t len, bool *is_found)
{
    struct pf_pool_slot *slots = w->pool[pool], *best = NULL;
    if (!slots)
        slots = w->pool[pool] = sv_alloc(PF_POOL_SLOTS * sizeof *slots);
    for (unsigned way = 0; way < POOL_WAYS; way++) {
        struct pf_pool_slot *p = &slots[(hash + way) & (PF_POOL_SLOTS - 1)];
        if (p->hash == hash && p->len == len &&
            (p->number == 0 || memcmp(p->bytes, bytes, len) == 0)) {
            *is_found = true;
            return p;
        }
        /* A free slot rather than the first one that was met once only. */
        if (p->number == 0 && (!best || (best->hash != 0 && p->hash == 0)))
            best = p;
    }
    *is_found = false;
    return best;
}

static void pool_keep(struct pf *w, struct pf_pool_slot *p, enum pf_number kind, const char *bytes,
                      size_t len)
{
    p->bytes = sv_arena_copy(&w->pool_bytes, bytes, len);
    p->number = ++w->n_numbers[kind];
}

/* Replaces the text that was at this address, else the oldest one. */
static void recent_put(struct pf *w, struct pf_recent r)
{
    struct pf_recent *set = pf_recent_set(w, r.text);
    size_t i = 0;
    while (i < PF_RECENT_WAYS - 1 && set[i].text != r.text)
        i++;
    memmove(set + 1, set, i * sizeof *set);
    set[0] = r;
}

uint32_t pf_number_text(struct pf *w, struct pf_sequence *s, const char *text, size_t len)
{
    bool is_found;
    uint32_t number = pf_number_recent(w, text, len);
    if (number) {
        intern_text(w, s, PF_TEXT, number, text, len);
        return number;
    }
    if (len < PF_POOL_TEXT_MIN || len > PF_POOL_TEXT_MAX)
        return 0;
    uint64_t hash = sv_hash_bytes(text, len, 0) | 1; /* 0 means free */
    struct pf_pool_slot *p = pool_find(w, POOL_TEXTS, hash, text, len, &is_found);
    if (!p)
        return 0;
    if (!is_found) {
        *p = (struct pf_pool_slot){.hash = hash, .len = (uint32_t)len};
        return 0;
    }
    if (p->number == 0)
        pool_keep(w, p, PF_TEXT, text, len);
    recent_put(w, (struct pf_recent){text, p->bytes, (uint32_t)len, p->number});
    intern_text(w, s, PF_TEXT, p->number, text, len);
    return p->number;
}

uint32_t pf_number_source(struct pf *w, struct pf_sequence *s, const struct sv_buf *message)
{
    bool is_found = false;
    const char *bytes = (const char *)message->data;
    uint64_t hash = sv_hash_bytes(bytes, message->len, 0) | 1;
    struct pf_pool_slot *p = pool_find(w, POOL_SOURCES, hash, bytes, message->len, &is_found);
    if (p && !is_found && message->len <= 4 * PF_POOL_TEXT_MAX) {
        *p = (struct pf_pool_slot){.hash = hash, .len = (uint32_t)message->len};
        pool_keep(w, p, PF_SOURCE, bytes, message->len);
        is_found = true;
    }
    /* What is not remembered gets a number for this once. */
    assert(p || !is_found);
    uint32_t number = is_found ? p->number : ++w->n_numbers[PF_SOURCE];
    if (is_found && pf_bits_has(&s->interned[PF_SOURCE], number))
        return number;
    if (is_found)
        pf_bits_set(&s->interned[PF_SOURCE], number);
    size_t entry = sv_put_begin(&w->interned, field_of[PF_SOURCE]);
    sv_put_u64(&w->interned, SV_PF_SOURCE_IID, number);
    sv_buf_add(&w->interned, bytes, message->len);
    sv_put_end(&w->interned, entry);
    return number;
}

/* ---- the end of a window ---- */

/* What came more than once will come again: in the next window it gets its number at once. */
static void text_forget(struct pf_pool_slot *p)
{
    *p = p->number ? (struct pf_pool_slot){.hash = p->hash, .len = p->len}
                   : (struct pf_pool_slot){0};
}

bool pf_numbers_full(const struct pf *w)
{
    for (unsigned k = 0; k < PF_NUMBERS; k++)
        if (w->n_numbers[k] >= PF_NUMBERS_MAX)
            return true;
    return false;
}

void pf_numbers_forget(struct pf *w)
{
    for (unsigned k = 0; k < PF_DICT_NUMBERS; k++)
        for (uint32_t i = 0; i < w->n_numbers[k]; i++)
            w->number_of[k][w->numbered[k][i]] = 0;
    memset(w->n_numbers, 0, sizeof w->n_numbers);
    for (size_t i = 0; w->pool[POOL_TEXTS] && i < PF_POOL_SLOTS; i++)
        text_forget(&w->pool[POOL_TEXTS][i]);
    if (w->pool[POOL_SOURCES])
        memset(w->pool[POOL_SOURCES], 0, PF_POOL_SLOTS * sizeof *w->pool[POOL_SOURCES]);
    memset(w->recent, 0, (sizeof *w->recent * PF_RECENT_WAYS) << PF_RECENT_BITS);
    sv_arena_reset(&w->pool_bytes);
}

void pf_numbers_fini(struct pf *w)
{
    for (unsigned k = 0; k < PF_DICT_NUMBERS; k++) {
        free(w->number_of[k]);
        free(w->numbered[k]);
    }
    free(w->pool[POOL_TEXTS]);
    free(w->pool[POOL_SOURCES]);
    free(w->recent);
    sv_arena_fini(&w->pool_bytes);
}
