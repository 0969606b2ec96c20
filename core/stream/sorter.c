/* The sorter: an external merge sort that is nearly a memory copy when the input is in order
 * already.
 *
 * Events become packed records in chunks of memory: the first 32 bytes of the event and, only when
 * it has arguments, a size word and the packed arguments. While every event ranks at or after the
 * one before it, that is all. Once there was disorder an index is made, sorted by radix on the time
 * and then by rank within equal times. When memory is full its events go to disk as a run, in
 * order; at the end all runs are read back as one.
 *
 * Order of calls: add…, finish, next…, free at any time. */
#include "core/stream/sorter.h"
#include "core/base/mem.h"
#include "core/stream/args.h"
#include "core/stream/runs.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define HEAD_BYTES ((size_t)32) /* a record without arguments is only this */
#define SIZE_BYTES ((size_t)8)  /* then its size, a multiple of 8, with bit 0: it has texts */
#define MEMORY_MIN ((size_t)64 << 10)
#define CHUNK_MIN  ((size_t)16 << 10)
#define CHUNK_MAX \
    ((size_t)16 << 20) /* several large pages; chunks never move, so they stay large */
#define PREFETCH 12

_Static_assert(offsetof(struct sv_event, args) == HEAD_BYTES,
               "a record is an event without its pointer");

struct entry {
    uint64_t time; /* ts_ns moved so that unsigned order is time order */
    uint8_t *record;
};

struct chunk {
    uint8_t *data;
    size_t len, cap;
};

struct sv_sorter {
    size_t memory_bytes;
    /* Records, none across two chunks. Those before `now` are full, those after it wait to be used
     * again. */
    struct chunk *chunks;
    size_t n_chunks, cap_chunks, now;
    size_t held_bytes, used_bytes; /* of all chunks; of all records */
    size_t n;
    struct sv_rank last;
    bool has_disorder, is_finished;
    struct sv_runs *runs; /* what did not fit */
    /* Reading, in memory: the records in order of the index, or as they lie when there is none. */
    struct entry *index;
    size_t next, pos; /* record; without an index, its place in chunks[now] */
};

struct sv_sorter *sv_sorter_new(size_t memory_bytes)
{
    struct sv_sorter *s = sv_alloc(sizeof *s);
    if (memory_bytes == 0)
        memory_bytes = SV_SORT_MEMORY_DEFAULT;
    s->memory_bytes = memory_bytes < MEMORY_MIN ? MEMORY_MIN : memory_bytes;
    s->runs = sv_runs_new();
    return s;
}

void sv_sorter_share(struct sv_sorter *s, struct sv_runs_file *file)
{
    sv_runs_share(s->runs, file);
}

static void free_chunks(struct sv_sorter *s)
{
    for (size_t i = 0; i < s->n_chunks; i++)
        free(s->chunks[i].data);
    free(s->chunks);
    s->chunks = NULL;
    s->n_chunks = s->cap_chunks = s->now = 0;
    s->held_bytes = 0;
}

void sv_sorter_free(struct sv_sorter *s)
{
    if (!s)
        return;
    sv_runs_free(s->runs);
    free(s->index);
    free_chunks(s);
    free(s);
}

/* ---- records ---- */

static struct sv_rank record_rank(const uint8_t *record)
{
    struct sv_event e;
    memcpy(&e, record, HEAD_BYTES);
    return sv_rank_of(e.ts_ns, e.dur_ns, e.kind);
}

static unsigned record_n_args(const uint8_t *record)
{
    uint16_t n;
    memcpy(&n, record + offsetof(struct sv_event, n_args), sizeof n);
    return n;
}

static size_t record_size(const uint8_t *record)
{
    uint64_t size;
    if (record_n_args(record) == 0)
        return HEAD_BYTES;
    memcpy(&size, record + HEAD_BYTES, sizeof size);
    return (size_t)(size & ~(uint64_t)1);
}

static void record_write(uint8_t *at, const struct sv_event *e, size_t size, bool has_text)
{
    memcpy(at, e, HEAD_BYTES);
    if (e->kind == SV_FLOW) {
        int64_t mark = sv_flow_mark(e);
        memcpy(at + offsetof(struct sv_event, dur_ns), &mark, sizeof mark);
    }
    if (e->n_args) {
        uint64_t word = size | has_text;
        memcpy(at + HEAD_BYTES, &word, sizeof word);
        sv_args_pack(at + HEAD_BYTES + SIZE_BYTES, e->args, e->n_args);
    }
}

/* Turns the record into an event that points into it; returns its size. Only once per record: texts
 * are unpacked in place. */
static size_t record_read(uint8_t *record, struct sv_event *e)
{
    memcpy(e, record, HEAD_BYTES);
    if (e->kind == SV_FLOW)
        e->dur_ns = 0;
    if (e->n_args == 0) {
        e->args = NULL;
        return HEAD_BYTES;
    }
    uint64_t word;
    memcpy(&word, record + HEAD_BYTES, sizeof word);
    uint8_t *args = record + HEAD_BYTES + SIZE_BYTES;
    if (word & 1)
        sv_args_unpack(args, e->n_args);
    e->args = (const struct sv_arg *)(const void *)args;
    return (size_t)(word & ~(uint64_t)1);
}

/* ---- the index of a buffer in disorder ---- */

static uint64_t time_bits(int64_t ts_ns)
{
    return (uint64_t)ts_ns ^ (uint64_t)1 << 63;
}

static struct entry *index_new(const struct sv_sorter *s, uint64_t *min, uint64_t *max)
{
    size_t bytes = 2 * s->n * sizeof(struct entry); /* the second half is scratch */
    struct entry *index = sv_realloc(NULL, bytes), *next = index;
    sv_advise_huge(index, bytes);
    *min = UINT64_MAX;
    *max = 0;
    for (size_t i = 0; i < s->n_chunks; i++) {
        uint8_t *record = s->chunks[i].data, *end = record + s->chunks[i].len;
        for (; record < end; record += record_size(record)) {
            int64_t ts_ns;
            memcpy(&ts_ns, record, sizeof ts_ns);
            uint64_t time = time_bits(ts_ns);
            *min = time < *min ? time : *min;
            *max = time > *max ? time : *max;
            *next++ = (struct entry){.time = time, .record = record};
        }
    }
    assert(next == index + s->n);
    return index;
}

/* One stable pass over eight bits of the time. False: all had the same digit, nothing was moved. */
static bool radix_pass(const struct entry *from, struct entry *to, size_t n, uint64_t min,
                       unsigned shift)
{
    size_t start[256] = {0}, sum = 0;
    for (size_t i = 0; i < n; i++)
        start[(from[i].time - min) >> shift & 255]++;
    if (start[(from[0].time - min) >> shift & 255] == n)
        return false;
    for (size_t d = 0; d < 256; d++) {
        size_t count = start[d];
        start[d] = sum;
        sum += count;
    }
    for (size_t i = 0; i < n; i++)
        to[start[(from[i].time - min) >> shift & 255]++] = from[i];
    return true;
}

static int64_t entry_tie(const struct entry *e)
{
    return record_rank(e->record).tie;
}

/* Stable merge sort by tie of entries with equal times; there may be any number of them in a
 * hostile file. */
static void sort_ties(struct entry *items, struct entry *scratch, size_t n)
{
    for (size_t i = 1; i < n; i++) { /* short groups, and those in order, end here */
        struct entry e = items[i];
        int64_t tie = entry_tie(&e);
        size_t j = i;
        while (j > 0 && i < 16 && entry_tie(&items[j - 1]) > tie) {
            items[j] = items[j - 1];
            j--;
        }
        items[j] = e;
        if (i >= 16 && entry_tie(&items[i - 1]) > tie)
            break;
        if (i == n - 1)
            return;
    }
    for (size_t width = 1; width < n; width *= 2) {
        for (size_t lo = 0; lo < n; lo += 2 * width) {
            size_t mid = lo + width < n ? lo + width : n, hi = mid + width < n ? mid + width : n;
            size_t a = lo, b = mid;
            for (size_t k = lo; k < hi; k++) {
                bool left = b == hi || (a < mid && entry_tie(&items[a]) <= entry_tie(&items[b]));
                scratch[k] = left ? items[a++] : items[b++];
            }
        }
        memcpy(items, scratch, n * sizeof *items);
    }
}

static struct entry *index_sorted(const struct sv_sorter *s)
{
    uint64_t min, max;
    struct entry *index = index_new(s, &min, &max);
    struct entry *from = index, *to = index + s->n;
    for (unsigned shift = 0; shift < 64 && (max - min) >> shift; shift += 8) {
        if (!radix_pass(from, to, s->n, min, shift))
            continue;
        struct entry *swap = from;
        from = to;
        to = swap;
    }
    for (size_t i = 0, j; i < s->n; i = j) {
        for (j = i + 1; j < s->n && from[j].time == from[i].time; j++)
            continue;
        if (j - i > 1)
            sort_ties(from + i, to, j - i);
    }
    if (from != index)
        memcpy(index, from, s->n * sizeof *index);
    return sv_realloc(index, s->n * sizeof *index);
}

/* ---- spilling ---- */

/* What lies behind the chunk in use waits from an earlier buffer without disorder: the index takes
 * its space. */
static void free_waiting_chunks(struct sv_sorter *s)
{
    while (s->n_chunks > s->now + 1) {
        struct chunk *c = &s->chunks[--s->n_chunks];
        s->held_bytes -= c->cap;
        free(c->data);
    }
}

static int write_in_order(struct sv_sorter *s, struct sv_err *err)
{
    free_waiting_chunks(s);
    struct entry *index = index_sorted(s);
    int code = 0;
    for (size_t i = 0; i < s->n && code == 0; i++) {
        struct sv_event e;
        if (i + PREFETCH < s->n)
            __builtin_prefetch(index[i + PREFETCH].record);
        record_read(index[i].record, &e);
        code = sv_runs_add(s->runs, &e, err);
    }
    free(index);
    return code;
}

static int write_as_is(struct sv_sorter *s, struct sv_err *err)
{
    int code = 0;
    for (size_t i = 0; i < s->n_chunks; i++) {
        struct sv_event e;
        uint8_t *record = s->chunks[i].data, *end = record + s->chunks[i].len;
        while (record < end && code == 0) {
            record += record_read(record, &e);
            code = sv_runs_add(s->runs, &e, err);
        }
    }
    return code;
}

static void forget_records(struct sv_sorter *s)
{
    for (size_t i = 0; i < s->n_chunks; i++)
        s->chunks[i].len = 0;
    s->now = s->n = s->used_bytes = 0;
    s->has_disorder = false;
}

static int spill(struct sv_sorter *s, struct sv_err *err)
{
    assert(!s->is_finished);
    if (s->n == 0)
        return 0;
    int code = s->has_disorder ? write_in_order(s, err) : write_as_is(s, err);
    if (code == 0)
        code = sv_runs_end(s->runs, err);
    if (code == 0)
        forget_records(s);
    return code;
}

/* ---- adding ---- */

/* Would one more record be too much, with the index that disorder needs? */
static bool is_full(const struct sv_sorter *s, size_t size, bool disorder)
{
    size_t index = disorder ? 2 * (s->n + 1) * sizeof(struct entry) : 0;
    return s->used_bytes + size + index > s->memory_bytes;
}

/* Chunks double until they are large, and are small against the limit. */
static size_t chunk_size(const struct sv_sorter *s, size_t need)
{
    size_t size = s->held_bytes > CHUNK_MIN ? s->held_bytes : CHUNK_MIN;
    size_t limit = s->memory_bytes / 4 < CHUNK_MAX ? s->memory_bytes / 4 : CHUNK_MAX;
    size = size < limit ? size : limit;
    return size > need ? size : need;
}

/* Moves on to a chunk with space for `size` bytes. False: it would be too much. */
static bool next_chunk(struct sv_sorter *s, size_t size)
{
    if (s->n_chunks && s->chunks[s->now].len)
        s->now++;
    if (s->now < s->n_chunks && s->chunks[s->now].cap >= size)
        return true;
    size_t cap = chunk_size(s, size);
    if (s->now == s->n_chunks) {
        if (s->n && s->held_bytes + cap > s->memory_bytes) {
            s->now--;
            return false;
        }
        SV_APPEND(s->chunks, s->n_chunks, s->cap_chunks) = (struct chunk){0};
    }
    /* A record larger than any chunk so far gets one to its measure. */
    struct chunk *c = &s->chunks[s->now];
    free(c->data);
    s->held_bytes += cap - c->cap;
    *c = (struct chunk){.data = sv_realloc(NULL, cap), .cap = cap};
    sv_advise_huge(c->data, cap);
    return true;
}

static uint8_t *space_in_chunk(struct sv_sorter *s, size_t size)
{
    struct chunk *c = s->n_chunks ? &s->chunks[s->now] : NULL;
    return c && c->cap - c->len >= size ? c->data + c->len : NULL;
}

/* The slow path of add: disorder, which counts the index too, or the end of a chunk. */
static uint8_t *make_space(struct sv_sorter *s, size_t size, bool disorder, struct sv_err *err)
{
    if (s->n && is_full(s, size, s->has_disorder || disorder) && spill(s, err) < 0)
        return NULL;
    uint8_t *at = space_in_chunk(s, size);
    if (!at && !next_chunk(s, size) &&
        (spill(s, err) < 0 || (!space_in_chunk(s, size) && !next_chunk(s, size))))
        return NULL;
    s->has_disorder |= disorder && s->n;
    return at ? at : space_in_chunk(s, size);
}

int sv_sorter_add(struct sv_sorter *s, const struct sv_event *events, size_t n, struct sv_err *err)
{
    assert(!s->is_finished);
    for (const struct sv_event *e = events, *end = events + n; e < end; e++) {
        size_t size = HEAD_BYTES;
        bool has_text = false;
        if (e->n_args)
            size += SIZE_BYTES + sv_args_bytes(e->args, e->n_args, &has_text);
        struct sv_rank rank = sv_rank_of(e->ts_ns, sv_flow_mark(e), e->kind);
        bool disorder = s->n && sv_rank_before(rank, s->last);
        uint8_t *at = disorder || s->has_disorder ? NULL : space_in_chunk(s, size);
        if (!at)
            at = make_space(s, size, disorder, err);
        if (!at)
            return SV_EIO;
        record_write(at, e, size, has_text);
        s->chunks[s->now].len += size;
        s->used_bytes += size;
        s->n++;
        s->last = rank;
    }
    return 0;
}

int sv_sorter_spill(struct sv_sorter *s, struct sv_err *err)
{
    int code = spill(s, err);
    if (code == 0)
        free_chunks(s);
    return code;
}

size_t sv_sorter_bytes(const struct sv_sorter *s)
{
    return s->held_bytes;
}

bool sv_sorter_has_spilled(const struct sv_sorter *s)
{
    return sv_runs_count(s->runs) > 0;
}

/* ---- reading ---- */

int sv_sorter_finish(struct sv_sorter *s, size_t memory_bytes, struct sv_err *err)
{
    assert(!s->is_finished);
    bool has_runs = sv_runs_count(s->runs) > 0;
    if (has_runs) {
        /* The rest becomes a run too: one reader for all, and its memory serves the read
         * buffers. */
        int code = spill(s, err);
        if (code < 0)
            return code;
        free_chunks(s);
    }
    s->is_finished = true;
    s->now = 0;
    if (has_runs)
        return sv_runs_open(s->runs, memory_bytes ? memory_bytes : s->memory_bytes, err);
    if (s->has_disorder)
        s->index = index_sorted(s);
    return 0;
}

static size_t next_in_memory(struct sv_sorter *s, struct sv_event *events, size_t max)
{
    size_t n = s->n - s->next < max ? s->n - s->next : max;
    for (size_t i = 0; i < n; i++, s->next++) {
        if (s->index) {
            if (s->next + PREFETCH < s->n)
                __builtin_prefetch(s->index[s->next + PREFETCH].record);
            record_read(s->index[s->next].record, &events[i]);
            continue;
        }
        while (s->pos == s->chunks[s->now].len) {
            s->now++;
            s->pos = 0;
        }
        s->pos += record_read(s->chunks[s->now].data + s->pos, &events[i]);
    }
    return n;
}

int sv_sorter_next(struct sv_sorter *s, struct sv_event *events, size_t max, struct sv_err *err)
{
    assert(s->is_finished && max > 0 && max <= INT32_MAX);
    if (sv_runs_count(s->runs) > 0)
        return sv_runs_next(s->runs, events, max, err);
    return (int)next_in_memory(s, events, max);
}
