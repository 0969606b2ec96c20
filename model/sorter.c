/* The sorter: an external merge sort that is nearly a memory copy when the input is in order already.
 *
 * Events become packed records in chunks of memory: the first 32 bytes of the event and, only when it has arguments,
 * a size word and the packed arguments. While every event ranks at or after the one before it, that is all. Once there was
 * disorder an index is made, sorted by radix on the time and then by rank within equal times. When memory is full it
 * becomes a run: the records in order, appended to one unlinked file. At the end runs are merged through a heap with
 * one large read per run and refill; a run that stays ahead of the others is drained without touching the heap, so
 * nearly sorted inputs merge at the speed of one comparison per event.
 *
 * Order of calls: add…, finish, next…, free at any time. */
#include "model/sorter.h"
#include "base/mem.h"
#include "model/args.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HEAD_BYTES ((size_t)32) /* a record without arguments is only this */
#define SIZE_BYTES \
    ((size_t)8) /* then the size word: bytes of the whole record, bit 0: it has texts */
#define MEMORY_MIN ((size_t)64 << 10)
#define CHUNK_MIN  ((size_t)16 << 10)
#define CHUNK_MAX \
    ((size_t)16 << 20) /* several large pages; chunks never move, so they stay large */
#define RUN_BUFFER_MIN ((size_t)64 << 10)
#define WRITE_BYTES    ((size_t)1 << 20)
#define PREFETCH       12

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

struct run {
    uint64_t at, end; /* what is not read yet, in the file */
    uint8_t *data;
    size_t pos, len, cap;
    struct sv_rank rank; /* of the record at pos */
};

struct sv_sorter {
    size_t memory_bytes;
    /* Records, none across two chunks. Those before `now` are full, those after it wait to be used again. */
    struct chunk *chunks;
    size_t n_chunks, cap_chunks, now;
    size_t held_bytes, used_bytes; /* of all chunks; of all records */
    size_t n;
    struct sv_rank last;
    bool has_disorder, is_finished;
    int fd; /* -1: nothing was spilled */
    uint64_t file_bytes;
    struct run *runs;
    size_t n_runs, cap_runs;
    /* Reading, in memory: the records in order of the index, or as they lie when there is none. */
    struct entry *index;
    size_t next, pos; /* record; without an index, its place in chunks[now] */
    /* Reading runs: a heap of run numbers, the least rank on top; `is_stale`: the top one needs a refill. */
    uint32_t *heap;
    size_t n_heap;
    bool is_stale;
};

struct sv_sorter *sv_sorter_new(size_t memory_bytes)
{
    struct sv_sorter *s = sv_alloc(sizeof *s);
    if (memory_bytes == 0)
        memory_bytes = SV_SORT_MEMORY_DEFAULT;
    s->memory_bytes = memory_bytes < MEMORY_MIN ? MEMORY_MIN : memory_bytes;
    s->fd = -1;
    return s;
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
    for (size_t i = 0; i < s->n_runs; i++)
        free(s->runs[i].data);
    if (s->fd >= 0)
        close(s->fd);
    free(s->runs);
    free(s->heap);
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
    if (e->n_args) {
        uint64_t word = size | has_text;
        memcpy(at + HEAD_BYTES, &word, sizeof word);
        sv_args_pack(at + HEAD_BYTES + SIZE_BYTES, e->args, e->n_args);
    }
}

/* Turns the record into an event that points into it; returns its size. Only once per record: texts are unpacked in place. */
static size_t record_read(uint8_t *record, struct sv_event *e)
{
    memcpy(e, record, HEAD_BYTES);
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

/* Stable merge sort by tie of entries with equal times; there may be any number of them in a hostile file. */
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

/* ---- the file ---- */

static int open_unlinked(const char *dir)
{
    int fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC | O_EXCL, 0600);
    if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != ENOENT && errno != EINVAL))
        return fd;
    char path[4096];
    size_t len = strlen(dir);
    static const char tail[] = "/stave-XXXXXX";
    if (len + sizeof tail > sizeof path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(path, dir, len);
    memcpy(path + len, tail, sizeof tail);
    fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0)
        unlink(path);
    return fd;
}

/* The directory in use, for messages. */
static const char *temporary_dir(void)
{
    const char *dir = getenv("TMPDIR");
    if (dir && *dir)
        return dir;
    return access("/var/tmp", W_OK) == 0 ? "/var/tmp" : "/tmp";
}

static int file_failed(struct sv_err *err, const char *what)
{
    return sv_err_set(err, SV_EIO, SV_NO_POS,
                      "sorting needs a temporary file, and %s in %s failed: %s; set TMPDIR to a "
                      "directory with more room",
                      what, temporary_dir(), strerror(errno));
}

static int file_open(struct sv_sorter *s, struct sv_err *err)
{
    if (s->fd < 0)
        s->fd = open_unlinked(temporary_dir());
    return s->fd < 0 ? file_failed(err, "creating it") : 0;
}

static int file_write(struct sv_sorter *s, const uint8_t *bytes, size_t n, struct sv_err *err)
{
    while (n) {
        ssize_t done = pwrite(s->fd, bytes, n, (off_t)s->file_bytes);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return file_failed(err, "writing");
        bytes += done;
        n -= (size_t)done;
        s->file_bytes += (uint64_t)done;
    }
    return 0;
}

static int write_in_order(struct sv_sorter *s, const struct entry *index, struct sv_err *err)
{
    uint8_t *out = sv_realloc(NULL, WRITE_BYTES);
    size_t len = 0;
    int code = 0;
    for (size_t i = 0; i < s->n && code == 0; i++) {
        if (i + PREFETCH < s->n)
            __builtin_prefetch(index[i + PREFETCH].record);
        const uint8_t *record = index[i].record;
        size_t size = record_size(record);
        if (len + size > WRITE_BYTES) {
            code = file_write(s, out, len, err);
            len = 0;
        }
        if (size > WRITE_BYTES) {
            code = code < 0 ? code : file_write(s, record, size, err);
        } else {
            memcpy(out + len, record, size);
            len += size;
        }
    }
    if (code == 0)
        code = file_write(s, out, len, err);
    free(out);
    return code;
}

static int write_as_is(struct sv_sorter *s, struct sv_err *err)
{
    int code = 0;
    for (size_t i = 0; i < s->n_chunks && code == 0; i++)
        code = file_write(s, s->chunks[i].data, s->chunks[i].len, err);
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
    int code = file_open(s, err);
    if (code < 0)
        return code;
    struct run run = {.at = s->file_bytes};
    if (s->has_disorder) {
        struct entry *index = index_sorted(s);
        code = write_in_order(s, index, err);
        free(index);
    } else {
        code = write_as_is(s, err);
    }
    if (code < 0)
        return code;
    run.end = s->file_bytes;
    s->runs = sv_grow(s->runs, &s->cap_runs, s->n_runs + 1, sizeof *s->runs);
    s->runs[s->n_runs++] = run;
    forget_records(s);
    return 0;
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

/* Moves on to a chunk with room for `size` bytes. False: it would be too much. */
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
        s->chunks = sv_grow(s->chunks, &s->cap_chunks, s->n_chunks + 1, sizeof *s->chunks);
        s->chunks[s->n_chunks++] = (struct chunk){0};
    }
    /* A record larger than any chunk so far gets one to its measure. */
    struct chunk *c = &s->chunks[s->now];
    free(c->data);
    s->held_bytes += cap - c->cap;
    *c = (struct chunk){.data = sv_realloc(NULL, cap), .cap = cap};
    sv_advise_huge(c->data, cap);
    return true;
}

static uint8_t *room(struct sv_sorter *s, size_t size)
{
    struct chunk *c = s->n_chunks ? &s->chunks[s->now] : NULL;
    return c && c->cap - c->len >= size ? c->data + c->len : NULL;
}

/* The slow path of add: disorder, which counts the index too, or the end of a chunk. */
static uint8_t *make_room(struct sv_sorter *s, size_t size, bool disorder, struct sv_err *err)
{
    if (s->n && is_full(s, size, s->has_disorder || disorder) && spill(s, err) < 0)
        return NULL;
    uint8_t *at = room(s, size);
    if (!at && !next_chunk(s, size) &&
        (spill(s, err) < 0 || (!room(s, size) && !next_chunk(s, size))))
        return NULL;
    s->has_disorder |= disorder && s->n;
    return at ? at : room(s, size);
}

int sv_sorter_add(struct sv_sorter *s, const struct sv_event *events, size_t n, struct sv_err *err)
{
    assert(!s->is_finished);
    for (const struct sv_event *e = events, *end = events + n; e < end; e++) {
        size_t size = HEAD_BYTES;
        bool has_text = false;
        if (e->n_args)
            size += SIZE_BYTES + sv_args_bytes(e->args, e->n_args, &has_text);
        struct sv_rank rank = sv_rank_of(e->ts_ns, e->dur_ns, e->kind);
        bool disorder = s->n && sv_rank_before(rank, s->last);
        uint8_t *at = disorder || s->has_disorder ? NULL : room(s, size);
        if (!at)
            at = make_room(s, size, disorder, err);
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

/* ---- reading ---- */

/* Makes the record at pos whole in memory. 1: it is, 0: the run is at its end. */
static int run_fill(struct sv_sorter *s, struct run *r, struct sv_err *err)
{
    size_t need = HEAD_BYTES;
    for (;;) {
        size_t have = r->len - r->pos;
        if (have >= need) {
            const uint8_t *record = r->data + r->pos;
            if (need == HEAD_BYTES && record_n_args(record))
                need += SIZE_BYTES;
            else if (need == HEAD_BYTES + SIZE_BYTES && need < record_size(record))
                need = record_size(record);
            else
                break;
            continue;
        }
        if (r->at == r->end && have == 0)
            return 0;
        memmove(r->data, r->data + r->pos, have);
        r->pos = 0;
        r->len = have;
        if (need > r->cap) {
            r->cap = need;
            r->data = sv_realloc(r->data, r->cap);
        }
        uint64_t left = r->end - r->at;
        size_t ask = r->cap - have < left ? r->cap - have : (size_t)left;
        ssize_t got = pread(s->fd, r->data + have, ask, (off_t)r->at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return file_failed(err, "reading back");
        r->at += (uint64_t)got;
        r->len += (size_t)got;
    }
    r->rank = record_rank(r->data + r->pos);
    return 1;
}

/* True when the next record lies whole in memory; then its rank is known. Never moves the buffer. */
static bool run_peek(struct run *r)
{
    size_t have = r->len - r->pos;
    const uint8_t *record = r->data + r->pos;
    if (have < HEAD_BYTES || (record_n_args(record) && have < HEAD_BYTES + SIZE_BYTES) ||
        have < record_size(record))
        return false;
    r->rank = record_rank(record);
    return true;
}

/* Earlier runs came earlier: ties keep the order of arrival. */
static bool run_before(const struct sv_sorter *s, uint32_t a, uint32_t b)
{
    struct sv_rank x = s->runs[a].rank, y = s->runs[b].rank;
    if (x.ts_ns != y.ts_ns || x.tie != y.tie)
        return sv_rank_before(x, y);
    return a < b;
}

static void heap_sink(struct sv_sorter *s, size_t i)
{
    uint32_t moved = s->heap[i];
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= s->n_heap)
            break;
        if (child + 1 < s->n_heap && run_before(s, s->heap[child + 1], s->heap[child]))
            child++;
        if (!run_before(s, s->heap[child], moved))
            break;
        s->heap[i] = s->heap[child];
        i = child;
    }
    s->heap[i] = moved;
}

/* The run that comes next if the top one is left aside, -1 when there is none. */
static int64_t heap_second(const struct sv_sorter *s)
{
    if (s->n_heap < 2)
        return -1;
    if (s->n_heap > 2 && run_before(s, s->heap[2], s->heap[1]))
        return s->heap[2];
    return s->heap[1];
}

/* Loads the next record of the top run, or lets the run go. */
static int heap_refill(struct sv_sorter *s, struct sv_err *err)
{
    struct run *r = &s->runs[s->heap[0]];
    int code = run_fill(s, r, err);
    if (code < 0)
        return code;
    if (code == 0) {
        free(r->data);
        r->data = NULL;
        r->len = r->pos = 0;
        s->heap[0] = s->heap[--s->n_heap];
    }
    if (s->n_heap)
        heap_sink(s, 0);
    s->is_stale = false;
    return 0;
}

static int open_runs(struct sv_sorter *s, size_t memory_bytes, struct sv_err *err)
{
    size_t buffer = memory_bytes / s->n_runs;
    buffer = buffer < RUN_BUFFER_MIN ? RUN_BUFFER_MIN : buffer;
    s->heap = sv_alloc(s->n_runs * sizeof *s->heap);
    for (size_t i = 0; i < s->n_runs; i++) {
        struct run *r = &s->runs[i];
        r->cap = r->end - r->at < buffer ? (size_t)(r->end - r->at) : buffer;
        r->data = sv_realloc(NULL, r->cap);
        int code = run_fill(s, r, err);
        if (code < 0)
            return code;
        assert(code == 1); /* no run is empty */
        s->heap[s->n_heap++] = (uint32_t)i;
    }
    for (size_t i = s->n_heap / 2; i-- > 0;)
        heap_sink(s, i);
    return 0;
}

int sv_sorter_finish(struct sv_sorter *s, size_t memory_bytes, struct sv_err *err)
{
    assert(!s->is_finished);
    if (s->n_runs > 0) {
        /* The rest becomes a run too: one reader for all, and its memory serves the read buffers. */
        int code = spill(s, err);
        if (code < 0)
            return code;
        free_chunks(s);
    }
    s->is_finished = true;
    s->now = 0;
    if (s->n_runs > 0)
        return open_runs(s, memory_bytes ? memory_bytes : s->memory_bytes, err);
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
    if (s->n_runs == 0)
        return (int)next_in_memory(s, events, max);
    size_t n = 0;
    while (n < max) {
        if (s->is_stale) {
            if (n > 0) /* a refill would move what the events so far point to */
                break;
            int code = heap_refill(s, err);
            if (code < 0)
                return code;
        }
        if (s->n_heap == 0)
            break;
        uint32_t top = s->heap[0];
        int64_t second = heap_second(s);
        struct run *r = &s->runs[top];
        do {
            r->pos += record_read(r->data + r->pos, &events[n++]);
            s->is_stale = !run_peek(r);
        } while (!s->is_stale && n < max && (second < 0 || run_before(s, top, (uint32_t)second)));
        if (!s->is_stale)
            heap_sink(s, 0);
    }
    return (int)n;
}
