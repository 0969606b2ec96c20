/* Runs on disk: see runs.h. Only the sorter calls this.
 *
 * A record is its length and then: one byte of kind and of what is present, the time since the
 * record before, track, name, category, duration, flags, arguments; numbers as varints. Reading
 * merges all runs through a heap, with one large buffer per run; a run that stays ahead of the
 * others is drained without touching the heap, so nearly sorted input merges at one comparison per
 * event. A buffer is only refilled between two calls, since events point into it. */
#include "core/stream/runs.h"
#include "core/base/heap.h"
#include "core/base/mem.h"
#include "core/base/wire.h"
#include "core/files/unlinked.h"
#include "core/files/write_all.h"
#include "core/stream/sorter.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define BUFFER_MIN  ((size_t)64 << 10)
#define WRITE_BYTES ((size_t)1 << 20)
#define HEAD_MAX \
    ((size_t)48) /* of a record without arguments: 1 + 10 + 3 × 5 + 10 + 1 + 3, and a reserve */
#define ARG_MAX ((size_t)24) /* of an argument without its text */

/* The first byte: the kind in three bits, and what follows. */
enum present { HAS_DUR = 8, HAS_NAME = 16, HAS_CAT = 32, HAS_FLAGS = 64, HAS_ARGS = 128 };

struct run {
    uint64_t at, end; /* what is not read yet, in the file */
    uint8_t *data;
    size_t pos, len, cap;
    int64_t last_ns;      /* of the record before */
    struct sv_event head; /* the next event, its arguments not yet decoded */
    struct sv_rank rank;
    size_t args_at, next_at; /* its arguments and the record after it, in data */
};

struct sv_runs_file {
    int fd;                       /* -1: nothing was written */
    uint64_t bytes;               /* written */
    const struct sv_runs *writer; /* whose run is not whole yet */
};

struct sv_runs {
    struct sv_runs_file *file, own; /* the one in use; its own, unless it shares one */
    struct sv_buf out;
    int64_t last_ns;
    uint64_t run_at; /* where the run that is being written begins */
    struct run *items;
    size_t n, cap;
    /* Reading: run numbers, the least rank on top; `is_stale`: the top one needs a refill first. */
    uint32_t *heap;
    size_t n_heap;
    bool is_stale;
    struct sv_arena args; /* of the events given out last */
};

struct sv_runs_file *sv_runs_file_new(void)
{
    struct sv_runs_file *f = sv_alloc(sizeof *f);
    f->fd = -1;
    return f;
}

static void close_file(struct sv_runs_file *f)
{
    if (f->fd >= 0)
        close(f->fd);
    f->fd = -1;
}

void sv_runs_file_free(struct sv_runs_file *f)
{
    if (f)
        close_file(f);
    free(f);
}

struct sv_runs *sv_runs_new(void)
{
    struct sv_runs *r = sv_alloc(sizeof *r);
    r->own.fd = -1;
    r->file = &r->own;
    sv_buf_init(&r->out, SIZE_MAX);
    sv_arena_init(&r->args, (size_t)1 << 16);
    return r;
}

void sv_runs_free(struct sv_runs *r)
{
    if (!r)
        return;
    for (size_t i = 0; i < r->n; i++)
        free(r->items[i].data);
    if (r->file->writer == r) /* it ends within a run: nobody reads that */
        r->file->writer = NULL;
    close_file(&r->own);
    sv_buf_fini(&r->out);
    sv_arena_fini(&r->args);
    free(r->items);
    free(r->heap);
    free(r);
}

void sv_runs_share(struct sv_runs *r, struct sv_runs_file *file)
{
    assert(r->n == 0 && r->out.len == 0);
    r->file = file;
}

size_t sv_runs_count(const struct sv_runs *r)
{
    return r->n;
}

/* ---- the file ---- */

static int file_failed(struct sv_err *err, const char *what)
{
    return sv_error(err, SV_EIO,
                    "sorting needs a temporary file, and %s in %s failed: %s; set TMPDIR to a "
                    "directory with more space",
                    what, sv_temporary_dir(), strerror(errno));
}

static int flush(struct sv_runs *r, struct sv_err *err)
{
    struct sv_runs_file *f = r->file;
    if (f->fd < 0)
        f->fd = sv_open_unlinked(sv_temporary_dir());
    if (f->fd < 0)
        return file_failed(err, "creating it");
    assert(!f->writer || f->writer == r);
    if (!f->writer)
        r->run_at = f->bytes;
    f->writer = r;
    if (!sv_write_all_at(f->fd, r->out.data, r->out.len, f->bytes))
        return file_failed(err, "writing");
    f->bytes += r->out.len;
    sv_buf_clear(&r->out);
    return 0;
}

/* ---- writing ---- */

enum shape { SHAPE_NONE, SHAPE_SIGNED, SHAPE_UNSIGNED, SHAPE_BITS, SHAPE_TEXT, SHAPE_SIZE };

static enum shape shape_of(unsigned type)
{
    switch (type) {
    case SV_ARG_NULL: return SHAPE_NONE;
    case SV_ARG_BOOL:
    case SV_ARG_INT:
    case SV_ARG_THREAD_TIME:
    case SV_ARG_THREAD_DUR: return SHAPE_SIGNED;
    case SV_ARG_DOUBLE: return SHAPE_BITS;
    case SV_ARG_TEXT: return SHAPE_TEXT;
    case SV_ARG_DICT:
    case SV_ARG_ARRAY:
    case SV_ARG_SOURCE:
    case SV_ARG_STACK: return SHAPE_SIZE;
    default: return SHAPE_UNSIGNED;
    }
}

static uint8_t *write_arg(uint8_t *p, const struct sv_arg *a)
{
    *p++ = (uint8_t)a->type;
    p += sv_put_varint_at(p, a->key);
    switch (shape_of(a->type)) {
    case SHAPE_SIGNED: return p + sv_put_varint_at(p, sv_zigzag(a->i));
    case SHAPE_UNSIGNED: return p + sv_put_varint_at(p, a->u);
    case SHAPE_SIZE: return p + sv_put_varint_at(p, a->size);
    case SHAPE_BITS: memcpy(p, &a->u, sizeof a->u); return p + sizeof a->u;
    case SHAPE_TEXT:
        p += sv_put_varint_at(p, a->size);
        if (a->size)
            memcpy(p, a->text, a->size);
        return p + a->size;
    default: return p;
    }
}

static uint8_t *write_event(uint8_t *p, const struct sv_event *e, int64_t last_ns)
{
    *p++ = (uint8_t)((e->kind & 7) | (e->dur_ns ? HAS_DUR : 0) | (e->name ? HAS_NAME : 0) |
                     (e->cat ? HAS_CAT : 0) | (e->flags ? HAS_FLAGS : 0) |
                     (e->n_args ? HAS_ARGS : 0));
    p += sv_put_varint_at(p, (uint64_t)e->ts_ns - (uint64_t)last_ns);
    p += sv_put_varint_at(p, e->track);
    if (e->name)
        p += sv_put_varint_at(p, e->name);
    if (e->cat)
        p += sv_put_varint_at(p, e->cat);
    if (e->dur_ns)
        p += sv_put_varint_at(p, sv_zigzag(e->dur_ns));
    if (e->flags)
        *p++ = e->flags;
    if (e->n_args)
        p += sv_put_varint_at(p, e->n_args);
    for (size_t i = 0; i < e->n_args; i++)
        p = write_arg(p, &e->args[i]);
    return p;
}

static size_t bound(const struct sv_event *e)
{
    size_t size = HEAD_MAX + e->n_args * ARG_MAX;
    for (size_t i = 0; i < e->n_args; i++)
        if (e->args[i].type == SV_ARG_TEXT)
            size += e->args[i].size;
    return size;
}

/* The length comes first and is known last: its width is chosen by the bound, the varint padded to
 * it. */
static void write_length(uint8_t *at, size_t width, size_t length)
{
    for (size_t i = 0; i < width; i++, length >>= 7)
        at[i] = (uint8_t)((length & 127) | (i + 1 < width ? 128 : 0));
    assert(length == 0);
}

int sv_runs_add(struct sv_runs *r, const struct sv_event *e, struct sv_err *err)
{
    struct sv_event marked = *e;
    marked.dur_ns = sv_flow_mark(e);
    e = &marked;
    size_t most = bound(e), width = most < 1u << 7 ? 1 : most < 1u << 14 ? 2 : 7;
    if (r->out.len && r->out.len + width + most > WRITE_BYTES) {
        int code = flush(r, err);
        if (code < 0)
            return code;
    }
    if (r->out.len == 0)
        sv_buf_reserve(&r->out, width + most > WRITE_BYTES ? width + most : WRITE_BYTES);
    uint8_t *at = r->out.data + r->out.len;
    uint8_t *end = write_event(at + width, e, r->last_ns);
    assert((size_t)(end - at) <= width + most);
    write_length(at, width, (size_t)(end - at) - width);
    r->out.len += (size_t)(end - at);
    r->last_ns = e->ts_ns;
    return 0;
}

int sv_runs_end(struct sv_runs *r, struct sv_err *err)
{
    int code = flush(r, err);
    if (code < 0)
        return code;
    if (r->file->bytes > r->run_at)
        SV_APPEND(r->items, r->n, r->cap) = (struct run){.at = r->run_at, .end = r->file->bytes};
    sv_buf_fini(&r->out); /* who has written all may wait long to be read */
    sv_buf_init(&r->out, SIZE_MAX);
    r->file->writer = NULL;
    r->last_ns = 0;
    return 0;
}

/* ---- reading ---- */

static inline uint64_t read_varint(struct sv_pb *w)
{
    uint64_t v = 0;
    if (!sv_pb_varint(w, &v))
        w->bad = true;
    return v;
}

static void read_arg(struct sv_pb *w, struct sv_arg *a)
{
    unsigned type = w->p < w->end ? *w->p++ : 0;
    *a = (struct sv_arg){.type = type & 0xff};
    a->key = (sv_str)read_varint(w);
    switch (shape_of(type)) {
    case SHAPE_SIGNED: a->i = sv_unzigzag(read_varint(w)); break;
    case SHAPE_UNSIGNED: a->u = read_varint(w); break;
    case SHAPE_SIZE: a->size = (uint32_t)read_varint(w) & 0xffffff; break;
    case SHAPE_BITS:
        w->bad |= w->end - w->p < 8;
        if (!w->bad)
            memcpy(&a->u, w->p, 8);
        w->p += w->bad ? 0 : 8;
        break;
    case SHAPE_TEXT:
        a->size = (uint32_t)read_varint(w) & 0xffffff;
        w->bad |= (size_t)(w->end - w->p) < a->size;
        a->text = (const char *)w->p;
        w->p += w->bad ? 0 : a->size;
        break;
    default: break;
    }
}

static int damaged(struct sv_err *err)
{
    return sv_error(err, SV_EIO, "the temporary file in %s was changed while it was in use",
                    sv_temporary_dir());
}

/* Decodes the next event but for its arguments. 1: there is one; 0: the buffer ends within it;
 * negative: damage. */
static int run_peek(struct run *run, struct sv_err *err)
{
    struct sv_pb w = sv_pb_at(run->data + run->pos, run->len - run->pos);
    uint64_t length;
    if (!sv_pb_varint(&w, &length))
        return run->len - run->pos < 10 ? 0 : damaged(err);
    if (length > (uint64_t)(w.end - w.p))
        return length > run->end ? damaged(err) : 0;
    w.end = w.p + length;
    unsigned first = length ? *w.p++ : 0;
    struct sv_event *e = &run->head;
    *e = (struct sv_event){.kind = first & 7};
    e->ts_ns = (int64_t)((uint64_t)run->last_ns + read_varint(&w));
    e->track = (sv_track)read_varint(&w);
    if (first & HAS_NAME)
        e->name = (sv_str)read_varint(&w);
    if (first & HAS_CAT)
        e->cat = (sv_str)read_varint(&w);
    if (first & HAS_DUR)
        e->dur_ns = sv_unzigzag(read_varint(&w));
    if (first & HAS_FLAGS && w.p < w.end)
        e->flags = *w.p++;
    if (first & HAS_ARGS)
        e->n_args = (uint16_t)read_varint(&w);
    run->args_at = (size_t)(w.p - run->data);
    run->next_at = (size_t)(w.end - run->data);
    run->rank = sv_rank_of(e->ts_ns, e->dur_ns, e->kind);
    return w.bad ? damaged(err) : 1;
}

/* Reads on until the next event is whole. 0: the run is at its end. */
static int run_fill(struct sv_runs *r, struct run *run, struct sv_err *err)
{
    for (;;) {
        size_t have = run->len - run->pos;
        int code = have ? run_peek(run, err) : 0;
        if (code != 0 || (have == 0 && run->at == run->end))
            return code;
        if (run->at == run->end)
            return damaged(err);
        memmove(run->data, run->data + run->pos, have);
        run->pos = 0;
        run->len = have;
        if (have == run->cap) { /* an event larger than the buffer */
            run->cap *= 2;
            run->data = sv_realloc(run->data, run->cap);
        }
        uint64_t left = run->end - run->at;
        size_t ask = run->cap - have < left ? run->cap - have : (size_t)left;
        ssize_t got = pread(r->file->fd, run->data + have, ask, (off_t)run->at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return file_failed(err, "reading back");
        if (got == 0)
            return damaged(err);
        run->at += (uint64_t)got;
        run->len += (size_t)got;
    }
}

/* Gives the event out and steps over it. */
static int run_take(struct sv_runs *r, struct run *run, struct sv_event *e, struct sv_err *err)
{
    *e = run->head;
    if (e->kind == SV_FLOW)
        e->dur_ns = 0;
    if (e->n_args) {
        struct sv_pb w = {.p = run->data + run->args_at, .end = run->data + run->next_at};
        struct sv_arg *args =
            sv_arena_get(&r->args, e->n_args * sizeof *args, _Alignof(struct sv_arg));
        for (size_t i = 0; i < e->n_args; i++)
            read_arg(&w, &args[i]);
        if (w.bad)
            return damaged(err);
        e->args = args;
    }
    run->last_ns = e->ts_ns;
    run->pos = run->next_at;
    return 0;
}

/* Earlier runs came earlier: ties keep the order of arrival. */
static bool run_before(const struct sv_runs *r, uint32_t a, uint32_t b)
{
    struct sv_rank x = r->items[a].rank, y = r->items[b].rank;
    if (x.ts_ns != y.ts_ns || x.tie != y.tie)
        return sv_rank_before(x, y);
    return a < b;
}

static void heap_sink(struct sv_runs *r, size_t i)
{
    SV_HEAP_SINK(r->heap, r->n_heap, i, a, b, run_before(r, *a, *b));
}

/* The run that comes next if the top one is left aside, -1 when there is none. */
static int64_t heap_second(const struct sv_runs *r)
{
    if (r->n_heap < 2)
        return -1;
    if (r->n_heap > 2 && run_before(r, r->heap[2], r->heap[1]))
        return r->heap[2];
    return r->heap[1];
}

/* Loads the next event of the top run, or lets the run go. */
static int heap_refill(struct sv_runs *r, struct sv_err *err)
{
    struct run *run = &r->items[r->heap[0]];
    int code = run_fill(r, run, err);
    if (code < 0)
        return code;
    if (code == 0) {
        free(run->data);
        run->data = NULL;
        run->len = run->pos = 0;
        r->heap[0] = r->heap[--r->n_heap];
    }
    if (r->n_heap)
        heap_sink(r, 0);
    r->is_stale = false;
    return 0;
}

int sv_runs_open(struct sv_runs *r, size_t memory_bytes, struct sv_err *err)
{
    assert(r->n > 0 && r->out.len == 0);
    sv_buf_fini(&r->out);
    size_t buffer = memory_bytes / r->n;
    buffer = buffer < BUFFER_MIN ? BUFFER_MIN : buffer;
    r->heap = sv_alloc(r->n * sizeof *r->heap);
    for (size_t i = 0; i < r->n; i++) {
        struct run *run = &r->items[i];
        run->cap = run->end - run->at < buffer ? (size_t)(run->end - run->at) : buffer;
        run->data = sv_realloc(NULL, run->cap);
        int code = run_fill(r, run, err);
        if (code <= 0) /* no run is empty */
            return code < 0 ? code : damaged(err);
        r->heap[r->n_heap++] = (uint32_t)i;
    }
    for (size_t i = r->n_heap / 2; i-- > 0;)
        heap_sink(r, i);
    return 0;
}

/* Drains the top run as long as it stays ahead, there is space and no refill is needed. */
static int drain_top(struct sv_runs *r, struct sv_event *events, size_t max, struct sv_err *err)
{
    uint32_t top = r->heap[0];
    int64_t second = heap_second(r);
    struct run *run = &r->items[top];
    size_t n = 0;
    do {
        int code = run_take(r, run, &events[n++], err);
        code = code < 0 ? code : run_peek(run, err);
        if (code < 0)
            return code;
        r->is_stale = code == 0;
    } while (!r->is_stale && n < max && (second < 0 || run_before(r, top, (uint32_t)second)));
    if (!r->is_stale)
        heap_sink(r, 0);
    return (int)n;
}

int sv_runs_next(struct sv_runs *r, struct sv_event *events, size_t max, struct sv_err *err)
{
    size_t n = 0;
    sv_arena_reset(&r->args);
    while (n < max) {
        if (r->is_stale) {
            if (n > 0) /* a refill would move what the events so far point to */
                break;
            int code = heap_refill(r, err);
            if (code < 0)
                return code;
        }
        if (r->n_heap == 0)
            break;
        int got = drain_top(r, events + n, max - n, err);
        if (got < 0)
            return got;
        n += (size_t)got;
    }
    return (int)n;
}
