/* The Perfetto reader: its source, its frames and its batches.
 *
 * open_source() → next()* → close(). A trace is a list of packets (tag 0x0a, length, bytes); next()
 * takes them from blocks that were decoded ahead, or cuts them out of the unpacked bytes of a
 * compressed packet or (where the file is damaged) of the input window, and hands them to
 * sv_pf_packet_read() until the batch is nearly full. Blocks, window and unpacked bytes move only
 * while the batch is empty, because texts of events point into them.
 *
 * Where a frame is broken, reading continues at the next place from which several packets follow
 * each other; what was passed over is reported. A file that breaks off gives every whole packet
 * before the break. */
#include "formats/perfetto/read.h"

#include "core/base/mem.h"
#include "core/perfetto/stave.h"
#include "formats/formats.h"
#include "formats/writers.h"
#include "store/once_paths.h"

#include <stdio.h>
#include <stdlib.h>
#include <zlib.h>
#ifdef SV_HAVE_ZSTD
#include <zstd.h>
#endif

#define BATCH_FULL   (SV_BATCH - 16) /* one packet may give several events */
#define UNPACK_BYTES SV_TABLE((size_t)1 << 20, (size_t)4 << 10)
#define RESYNC_MAX   ((size_t)1 << 20) /* a longer packet is not believed while searching */
#define RESYNC_CHAIN 3                 /* packets in a row that make a place believable */
#define CHUNKS_KEPT  4
#define NEXT_SEEN    4096 /* of the packet after a damaged one */
#define BLOCK_BYTES  ((size_t)256 << 10)
/* Input that is read packet by packet after damage. Going back to blocks costs as many bytes as
 * were read ahead, so it must not be often. */
#define SINGLE_BLOCKS 8
#define THREADS_FROM  ((uint64_t)1 << 20) /* smaller files are read before threads have started */

enum form { IDLE, DEFLATE, ZSTD };

struct sv_pf_unpacker {
    enum form form;
    z_stream zlib;
    bool has_zlib, is_ended;
#ifdef SV_HAVE_ZSTD
    ZSTD_DStream *zstd;
#endif
    const uint8_t *src; /* compressed bytes, in the input window */
    size_t src_len;
    uint8_t *buffer, *data; /* unpacked bytes: data[0 … len) */
    size_t cap, len;
    uint64_t total;
    int64_t pos; /* of the compressed packet */
};

/* ---- batches ---- */

static struct sv_pf_chunk *take_chunk(struct sv_pf *r)
{
    struct sv_pf_chunk *c = r->free_chunks;
    if (c) {
        r->free_chunks = c->next;
        c->next = NULL;
        return c;
    }
    c = sv_alloc(sizeof *c);
    sv_batch_init(&c->batch);
    return c;
}

static void free_chunks(struct sv_pf_chunk *c)
{
    while (c) {
        struct sv_pf_chunk *next = c->next;
        sv_batch_fini(&c->batch);
        free(c);
        c = next;
    }
}

void sv_pf_spill(struct sv_pf *r, struct sv_pf_chunk *list)
{
    struct sv_pf_chunk *c = list;
    if (r->spill)
        r->spill_last->next = c;
    else
        r->spill = c;
    while (c->next)
        c = c->next;
    r->spill_last = c;
}

void sv_pf_more(struct sv_pf *r)
{
    if (r->copy_texts) {
        sv_pf_clocks_more(r);
        return;
    }
    struct sv_pf_chunk *c = take_chunk(r);
    sv_pf_spill(r, c);
    r->b = &c->batch;
}

void sv_pf_finish_slow(struct sv_pf *r, struct sv_event *e)
{
    if (!sv_batch_finish(r->b, e))
        sv_pf_damage(r, "too many arguments", "an event has more than %u; the rest is dropped",
                     SV_ARGS_MAX);
}

/* What the last call gave away is no longer in use. */
static void release(struct sv_pf *r)
{
    struct sv_pf_chunk *c = r->in_flight;
    r->in_flight = NULL;
    if (c) {
        size_t kept = 0;
        for (struct sv_pf_chunk *f = r->free_chunks; f; f = f->next)
            kept++;
        sv_batch_reset(&c->batch);
        c->next = kept < CHUNKS_KEPT ? r->free_chunks : NULL;
        if (kept < CHUNKS_KEPT)
            r->free_chunks = c;
        else
            free_chunks(c);
    }
    if (r->spill)
        return;
    while (r->n_graveyard > 0)
        sv_pf_state_free(r->graveyard[--r->n_graveyard]);
}

/* Moves the oldest spilled batch into b; its texts stay where they are until the next call. */
static bool deliver_spill(struct sv_pf *r, struct sv_batch *b)
{
    struct sv_pf_chunk *c = r->spill;
    if (!c)
        return false;
    r->spill = c->next;
    if (!r->spill)
        r->spill_last = NULL;
    c->next = NULL;
    if (c->batch.n == 0) { /* the caller added no event */
        free_chunks(c);
        return true;
    }
    memcpy(b->events, c->batch.events, c->batch.n * sizeof *b->events);
    b->n = c->batch.n;
    for (size_t i = 0; i < b->n; i++) {
        size_t bytes = b->events[i].n_args * sizeof(struct sv_arg);
        if (bytes)
            b->events[i].args = memcpy(sv_arena_get(&b->arena, bytes, _Alignof(struct sv_arg)),
                                       b->events[i].args, bytes);
    }
    r->in_flight = c;
    return true;
}

/* ---- findings ---- */

__attribute__((format(printf, 4, 0))) static void finding(struct sv_pf *r,
                                                          enum sv_severity severity,
                                                          const char *what, const char *fmt,
                                                          va_list ap)
{
    char detail[200];
    vsnprintf(detail, sizeof detail, fmt, ap);
    sv_report_add(r->report, severity, what, 1, r->pos, "%s", detail);
}

void sv_pf_damage(struct sv_pf *r, const char *what, const char *detail_fmt, ...)
{
    va_list ap;
    va_start(ap, detail_fmt);
    finding(r, SV_DAMAGE, what, detail_fmt, ap);
    va_end(ap);
}

void sv_pf_note(struct sv_pf *r, const char *what, const char *detail_fmt, ...)
{
    va_list ap;
    va_start(ap, detail_fmt);
    finding(r, SV_NOTE, what, detail_fmt, ap);
    va_end(ap);
}

/* ---- compressed packets ---- */

static void unpack_stop(struct sv_pf_unpacker *u)
{
    u->is_ended = true;
    u->src_len = 0;
}

static void unpack_start(struct sv_pf *r, const struct sv_pf_packet *k)
{
    struct sv_pf_unpacker *u = r->unpacker;
    if (u->form != IDLE) {
        sv_pf_damage(r, "compressed packets inside compressed packets", "skipped");
        return;
    }
    if (!u->buffer) {
        u->cap = UNPACK_BYTES;
        u->buffer = sv_alloc(u->cap + SV_INPUT_PAD);
    }
    u->src = k->payload.bytes;
    u->src_len = k->payload.len;
    u->data = u->buffer;
    u->len = 0;
    u->total = 0;
    u->is_ended = false;
    u->pos = r->pos;
    if (k->payload_id == SV_PF_PACKET_COMPRESSED) {
        int rc = u->has_zlib ? inflateReset(&u->zlib) : inflateInit2(&u->zlib, 15 + 32);
        u->has_zlib = u->has_zlib || rc == Z_OK;
        u->form = rc == Z_OK ? DEFLATE : IDLE;
        return;
    }
#ifdef SV_HAVE_ZSTD
    if (!u->zstd)
        u->zstd = ZSTD_createDStream();
    if (u->zstd && !ZSTD_isError(ZSTD_initDStream(u->zstd)))
        u->form = ZSTD;
#else
    sv_report_add(r->report, SV_SKIPPED, "zstd_compressed_packets packet", 1, r->pos,
                  "this build cannot read zstd");
#endif
}

static void inflate_some(struct sv_pf *r, uint8_t *at, size_t cap)
{
    struct sv_pf_unpacker *u = r->unpacker;
    u->zlib.next_in = (Bytef *)(uintptr_t)u->src;
    u->zlib.avail_in = (uInt)u->src_len;
    u->zlib.next_out = at;
    u->zlib.avail_out = (uInt)cap;
    int rc = inflate(&u->zlib, Z_NO_FLUSH);
    size_t made = cap - u->zlib.avail_out;
    u->src += u->src_len - u->zlib.avail_in;
    u->src_len = u->zlib.avail_in;
    u->len += made;
    if (rc == Z_STREAM_END) {
        unpack_stop(u);
    } else if ((rc != Z_OK && rc != Z_BUF_ERROR) || (made == 0 && u->zlib.avail_out > 0)) {
        sv_pf_damage(r, "broken compressed packet", "%s",
                     u->zlib.msg ? u->zlib.msg : "it ends too early");
        unpack_stop(u);
    }
}

#ifdef SV_HAVE_ZSTD
static void unzstd_some(struct sv_pf *r, uint8_t *at, size_t cap)
{
    struct sv_pf_unpacker *u = r->unpacker;
    ZSTD_outBuffer out = {at, cap, 0};
    ZSTD_inBuffer in = {u->src, u->src_len, 0};
    size_t rc = ZSTD_decompressStream(u->zstd, &out, &in);
    u->src += in.pos;
    u->src_len -= in.pos;
    u->len += out.pos;
    if (ZSTD_isError(rc)) {
        sv_pf_damage(r, "broken compressed packet", "%s", ZSTD_getErrorName(rc));
        unpack_stop(u);
    } else if (rc == 0 && u->src_len == 0) {
        unpack_stop(u);
    } else if (rc != 0 && u->src_len == 0 && out.pos < cap) {
        sv_pf_damage(r, "broken compressed packet", "it ends too early");
        unpack_stop(u);
    }
}
#else
static void unzstd_some(struct sv_pf *r, uint8_t *at, size_t cap)
{
    (void)at;
    (void)cap;
    unpack_stop(r->unpacker);
}
#endif

/* More unpacked bytes, until there are `need` or the packet is used up. */
static void unpack_fill(struct sv_pf *r, size_t need)
{
    struct sv_pf_unpacker *u = r->unpacker;
    r->pos = u->pos;
    if (u->data != u->buffer && u->len > 0)
        memmove(u->buffer, u->data, u->len);
    u->data = u->buffer;
    while (u->len < need && !u->is_ended) {
        if (u->len == u->cap) {
            u->cap *= 2;
            u->buffer = sv_realloc(u->buffer, u->cap + SV_INPUT_PAD);
            u->data = u->buffer;
        }
        size_t before = u->len;
        if (u->form == DEFLATE)
            inflate_some(r, u->data + u->len, u->cap - u->len);
        else
            unzstd_some(r, u->data + u->len, u->cap - u->len);
        u->total += u->len - before;
        if (u->total > SV_PF_UNPACKED_MAX && !u->is_ended) {
            sv_pf_damage(r, "compressed packet too large",
                         "it expands to more than %llu bytes; the rest is dropped",
                         (unsigned long long)SV_PF_UNPACKED_MAX);
            unpack_stop(u);
        }
    }
}

/* ---- the bytes at hand: the input window, or the unpacked ones ---- */

struct view {
    const uint8_t *data;
    size_t len;
    bool is_end; /* nothing follows */
};

static struct view view_of(const struct sv_pf *r)
{
    const struct sv_pf_unpacker *u = r->unpacker;
    if (__builtin_expect(u->form == IDLE, 1))
        return (struct view){r->in->data, r->in->len, r->in->eof};
    return (struct view){u->data, u->len, u->is_ended};
}

static void view_skip(struct sv_pf *r, size_t n)
{
    struct sv_pf_unpacker *u = r->unpacker;
    if (__builtin_expect(u->form == IDLE, 1)) {
        sv_input_skip(r->in, n);
        return;
    }
    u->data += n;
    u->len -= n;
}

static int view_fill(struct sv_pf *r, size_t need, struct sv_err *err)
{
    if (r->unpacker->form == IDLE)
        return sv_input_fill(r->in, need, err);
    unpack_fill(r, need);
    return 0;
}

static int64_t view_pos(const struct sv_pf *r)
{
    return r->unpacker->form == IDLE ? (int64_t)r->in->pos : r->unpacker->pos;
}

/* ---- frames ---- */

/* Do packets follow each other from p on? 1 yes, 0 no, -1: not enough bytes to decide (*need says
 * how many). */
static int chain_at(struct view v, size_t at, size_t *need)
{
    for (int i = 0; i < RESYNC_CHAIN; i++) {
        struct sv_pf_frame f;
        if (at == v.len && v.is_end)
            return i > 0;
        enum sv_pf_frame_state s = sv_pf_frame_at(v.data + at, v.len - at, &f);
        if (s == SV_PF_FRAME_BAD || f.len > RESYNC_MAX)
            return 0;
        if (s == SV_PF_FRAME_SHORT) {
            *need = at + f.header + f.len;
            return v.is_end ? 0 : -1;
        }
        if (sv_pf_packet_plausible(v.data + at + f.header, f.len, f.len) < 2)
            return 0;
        at += f.header + f.len;
    }
    return 1;
}

/* The frame at hand is broken: continues at the next believable place. Called with an empty
 * batch. */
static int resync(struct sv_pf *r, const struct sv_pf_frame *broken, struct sv_err *err)
{
    int64_t start = view_pos(r);
    struct view v = view_of(r);
    size_t skipped = 0, at = 1;
    bool found = false;
    r->damage++;
    while (!found) {
        const uint8_t *p = at < v.len ? memchr(v.data + at, 0x0a, v.len - at) : NULL;
        size_t need = 1;
        at = p ? (size_t)(p - v.data) : v.len;
        int chain = p ? chain_at(v, at, &need) : -1;
        if (chain == 0) {
            at++;
            continue;
        }
        view_skip(r, at);
        skipped += at;
        found = chain > 0;
        if (!found) {
            if (v.is_end)
                break;
            int rc = view_fill(r, p ? need - at : 1, err);
            if (rc < 0)
                return rc;
            v = view_of(r);
            at = 0;
        }
    }
    bool is_cut = broken->len > 0 && skipped < broken->header + broken->len;
    if (is_cut && !found) /* only its end is missing */
        sv_report_add(r->report, SV_DAMAGE, "truncated packet", 1, start,
                      "%zu of its %zu bytes are here", skipped, broken->header + broken->len);
    else if (skipped > 0)
        sv_report_add(r->report, SV_DAMAGE, "bytes outside packets", skipped, start,
                      found ? "skipped up to the next packet" : "skipped up to the end");
    return 0;
}

/* ---- the loop ---- */

enum step { STEP_ON, STEP_BROKEN, STEP_WAIT, STEP_END };

/* A packet with a malformed field: its frame is believed when another one follows it. What is
 * looked at of that one must not depend on how much of it was read by chance. */
static enum step damaged_packet(struct sv_pf *r, struct view v, struct sv_pf_frame f, int *rc,
                                struct sv_err *err)
{
    struct sv_pf_frame next;
    size_t at = f.header + f.len, need = at + SV_PF_HEADER_MAX + NEXT_SEEN;
    if (v.len < need && !v.is_end) {
        if (r->out->n > 0)
            return STEP_WAIT;
        *rc = view_fill(r, need, err);
        return *rc < 0 ? STEP_END : STEP_ON;
    }
    size_t have = v.len - at < NEXT_SEEN ? v.len - at : NEXT_SEEN;
    bool is_framed =
        have == 0 ||
        (sv_pf_frame_at(v.data + at, have, &next) != SV_PF_FRAME_BAD && next.header <= have &&
         sv_pf_packet_plausible(v.data + at + next.header, next.len, have - next.header) > 0);
    if (!is_framed)
        return STEP_BROKEN;
    sv_pf_damage(r, "malformed packet", "a field of it is damaged; the packet is skipped");
    view_skip(r, at);
    return STEP_ON;
}

static enum step whole_packet(struct sv_pf *r, struct view v, struct sv_pf_frame f, int *rc,
                              struct sv_err *err)
{
    struct sv_pf_packet k;
    r->pos = view_pos(r);
    r->b = r->out;
    r->copy_texts = false;
    if (__builtin_expect(!sv_pf_packet_split(v.data + f.header, f.len, &k), 0))
        return damaged_packet(r, v, f, rc, err);
    if (k.payload_id == SV_PF_PACKET_COMPRESSED || k.payload_id == SV_PF_PACKET_ZSTD_COMPRESSED) {
        if (r->out->n > 0)
            return STEP_WAIT;
        view_skip(r, f.header + f.len);
        unpack_start(r, &k);
        return STEP_ON;
    }
    sv_pf_packet_read(r, &k);
    view_skip(r, f.header + f.len);
    return STEP_ON;
}

/* Bytes are missing: gets them, or finds that there are none. */
static enum step short_frame(struct sv_pf *r, struct view v, struct sv_pf_frame f, int *rc,
                             struct sv_err *err)
{
    if (!v.is_end) {
        if (r->out->n > 0)
            return STEP_WAIT;
        size_t need = f.header + f.len;
        if (r->unpacker->form == IDLE && need > r->in->window_limit)
            return STEP_BROKEN;
        *rc = view_fill(r, need, err);
        return *rc < 0 ? STEP_END : STEP_ON;
    }
    if (v.len > 0)
        return STEP_BROKEN;
    if (r->unpacker->form == IDLE)
        return STEP_END;
    r->unpacker->form = IDLE;
    return STEP_ON;
}

static bool has_room(const struct sv_pf *r)
{
    return r->out->n < BATCH_FULL && !r->spill && r->n_graveyard < SV_PF_GRAVES;
}

/* Reads packets one by one until the batch is full, bytes must move, or the input ends. */
static enum step read_frames(struct sv_pf *r, int *rc, struct sv_err *err)
{
    enum step step = STEP_ON;
    while (step == STEP_ON && has_room(r) && (r->is_single || r->unpacker->form != IDLE)) {
        struct view v = view_of(r);
        struct sv_pf_frame f;
        enum sv_pf_frame_state s = sv_pf_frame_at(v.data, v.len, &f);
        if (__builtin_expect(s == SV_PF_FRAME_WHOLE, 1))
            step = whole_packet(r, v, f, rc, err);
        else if (s == SV_PF_FRAME_SHORT)
            step = short_frame(r, v, f, rc, err);
        else
            step = STEP_BROKEN;
        if (__builtin_expect(step == STEP_BROKEN, 0)) {
            if (r->out->n > 0)
                return STEP_WAIT;
            *rc = resync(r, &f, err);
            step = *rc < 0 ? STEP_END : STEP_ON;
            if (r->is_single) /* else the input is the line's, which reads ahead */
                r->single_until = r->in->pos + SINGLE_BLOCKS * r->block_bytes;
        }
    }
    return step;
}

/* ---- blocks ---- */

/* What was read ahead, from the packet at `at` of the block at hand on, goes back to the input, and
 * is read one by one. */
static void put_back(struct sv_pf *r, size_t at)
{
    struct sv_buf bytes;
    sv_buf_init(&bytes, SIZE_MAX);
    sv_line_halt(r->line);
    for (struct sv_pf_block *k = r->block; k; k = sv_line_next(r->line), at = 0)
        sv_buf_add(&bytes, k->in.data + at, k->in.len - at);
    sv_input_put_back(r->in, bytes.data, bytes.len);
    sv_buf_fini(&bytes);
    r->block = NULL;
}

static void read_singly(struct sv_pf *r)
{
    r->is_single = true;
    r->single_until = r->in->pos + SINGLE_BLOCKS * r->block_bytes;
}

static enum step read_whole(struct sv_pf *r, const struct sv_pf_quick *q)
{
    struct sv_pf_packet k;
    if (q->kind == SV_PF_QUICK_DAMAGED) {
        if (r->out->n > 0)
            return STEP_WAIT;
        put_back(r, q->at);
        read_singly(r);
        return STEP_ON;
    }
    sv_pf_packet_split(q->bytes, q->len, &k);
    bool is_packed = k.payload_id == SV_PF_PACKET_COMPRESSED ||
                     k.payload_id == SV_PF_PACKET_ZSTD_COMPRESSED;
    if (is_packed && r->out->n > 0)
        return STEP_WAIT;
    r->block->next++;
    if (is_packed)
        unpack_start(r, &k);
    else
        sv_pf_packet_read(r, &k);
    return STEP_ON;
}

/* Another block; none when the input ends, or a frame is broken. */
static enum step next_block(struct sv_pf *r)
{
    if (r->out->n > 0)
        return STEP_WAIT; /* texts of its events are in the block at hand */
    r->block = sv_line_next(r->line);
    if (!r->block)
        read_singly(r);
    return STEP_ON;
}

/* Reads records until the batch is full, or another way of reading has to go on. */
static enum step read_blocks(struct sv_pf *r)
{
    enum step step = STEP_ON;
    while (step == STEP_ON && has_room(r) && !r->is_single && r->unpacker->form == IDLE) {
        struct sv_pf_block *k = r->block;
        if (!k || k->next == k->n_records) {
            step = next_block(r);
            continue;
        }
        const struct sv_pf_quick *q = &k->records[k->next];
        r->pos = (int64_t)(k->in.pos + q->at);
        r->b = r->out;
        r->copy_texts = false;
        if (__builtin_expect(q->kind != SV_PF_QUICK_EVENT, 0)) {
            step = read_whole(r, q);
            continue;
        }
        sv_pf_quick_event(r, q);
        k->next++;
        k->next_arg += q->n_args;
    }
    return step;
}

/* Reads on, in the way that is due. */
static enum step read_some(struct sv_pf *r, int *rc, struct sv_err *err)
{
    bool is_idle = r->unpacker->form == IDLE;
    if (!r->line)
        r->line = sv_line_new(r->workers, &sv_pf_block_ops, r);
    if (r->is_single && is_idle && r->out->n == 0 && r->in->pos >= r->single_until) {
        r->is_single = false;
        sv_line_resume(r->line);
    }
    return r->is_single || !is_idle ? read_frames(r, rc, err) : read_blocks(r);
}

static void finish(struct sv_pf *r)
{
    if (r->is_finished)
        return;
    r->is_finished = true;
    r->pos = (int64_t)r->in->pos;
    r->b = r->out; /* the last packet may have put its events among those that wait */
    r->copy_texts = false;
    sv_pf_clocks_finish(r);
    sv_pf_gpu_finish(r);
    sv_pf_packet_finish(r);
    sv_pf_meta_finish(r);
    sv_pf_tracks_finish(r);
    sv_input_report(r->in, r->report);
}

static int source_next(struct sv_source *s, struct sv_batch *b, struct sv_err *err)
{
    struct sv_pf *r = (struct sv_pf *)s;
    int rc = 0;
    release(r);
    r->out = r->b = b;
    while (b->n == 0) {
        if (deliver_spill(r, b))
            continue;
        if (r->is_finished)
            return sv_source_given(s, 0, err);
        if (read_some(r, &rc, err) != STEP_END)
            continue;
        if (rc < 0)
            return rc;
        finish(r);
    }
    if (r->once_paths)
        sv_once_paths_fill_in(r->once_paths, b);
    return sv_source_given(s, b->n, err);
}

static void source_close(struct sv_source *s)
{
    struct sv_pf *r = (struct sv_pf *)s;
    sv_line_free(r->line);
    sv_once_paths_free(r->once_paths);
    struct sv_pf_unpacker *u = r->unpacker;
    if (u->has_zlib)
        inflateEnd(&u->zlib);
#ifdef SV_HAVE_ZSTD
    ZSTD_freeDStream(u->zstd);
#endif
    free(u->buffer);
    free(u);
    free_chunks(r->spill);
    free_chunks(r->in_flight);
    free_chunks(r->free_chunks);
    while (r->n_graveyard > 0)
        sv_pf_state_free(r->graveyard[--r->n_graveyard]);
    sv_pf_clocks_free(r);
    sv_pf_sequences_free(r);
    sv_pf_gpu_free(r);
    free(r->losses);
    sv_arena_fini(&r->arena);
    free(r);
}

static int open_source(struct sv_input *in, const struct sv_read_options *options,
                       struct sv_dict *dict, struct sv_report *report, struct sv_source **out,
                       struct sv_err *err)
{
    (void)err; /* damage is found while reading */
    struct sv_pf *r = sv_alloc(sizeof *r);
    r->source = (struct sv_source){.next = source_next,
                                   .close = source_close,
                                   .gives = SV_HAS_EDGES | SV_HAS_SLICES | SV_IN_NO_ORDER |
                                            SV_HAS_FLOW_POINTS,
                                   .dict = dict,
                                   .report = report,
                                   .beside_from = 2};
    r->dict = dict;
    r->report = report;
    r->in = in;
    r->space = options ? options->space : 0;
    r->block_bytes = options && options->block_bytes ? options->block_bytes : BLOCK_BYTES;
    bool is_small = in->size_bytes > 0 && in->size_bytes < THREADS_FROM;
    if (options && (options->block_bytes || !is_small))
        r->workers = options->workers;
    r->unpacker = sv_alloc(sizeof *r->unpacker);
    sv_arena_init(&r->arena, (size_t)1 << 16);
    r->str.value = sv_dict_cstr(dict, "value");
    r->str.file = sv_dict_cstr(dict, "file");
    r->str.function = sv_dict_cstr(dict, "function");
    r->str.line = sv_dict_cstr(dict, "line");
    r->str.loss = sv_dict_cstr(dict, "packets dropped");
    r->str.loss_category = sv_dict_cstr(dict, SV_PF_LOSS_CATEGORY);
    r->str.loss_count = sv_dict_cstr(dict, SV_PF_LOSS_COUNT);
    r->str.loss_span = sv_dict_cstr(dict, SV_PF_LOSS_SPAN);
    *out = &r->source;
    return SV_OK;
}

static int probe(const uint8_t *head, size_t n)
{
    int whole = 0;
    for (size_t at = 0; at < n;) {
        struct sv_pf_frame f;
        enum sv_pf_frame_state s = sv_pf_frame_at(head + at, n - at, &f);
        if (s == SV_PF_FRAME_BAD || n - at < f.header)
            return s == SV_PF_FRAME_BAD || whole == 0 ? 0 : 100;
        size_t have = s == SV_PF_FRAME_WHOLE ? f.len : n - at - f.header;
        int plausible = sv_pf_packet_plausible(head + at + f.header, f.len, have);
        if (plausible == 0)
            return 0;
        if (s == SV_PF_FRAME_SHORT)
            return whole > 0 ? 100 : plausible == 2 ? 90 : 40;
        if (++whole >= 8)
            return 100;
        at += f.header + f.len;
    }
    return whole > 1 ? 100 : whole == 1 ? 90 : 0;
}

static const struct sv_dialect dialects[] = {
    {SV_PERFETTO_GPU, "GPU work as GPU packets",
     "nested arguments of GPU work; grid and block come back under other names",
     &sv_perfetto_gpu_writer},
    {0},
};

const struct sv_format sv_perfetto_format = {
    .name = "perfetto",
    .help = "Perfetto protobuf trace",
    .lacks =
        "slices with a duration (written as begin and end), times before zero (moved by an "
        "origin that the file states), a second use of a flow number (gets another one), bytes "
        "that are not UTF-8 (become `\\xNN`)",
    .probe = probe,
    .open_source = open_source,
    .writer = &sv_perfetto_writer,
    .dialects = dialects,
    .readers_sort = true,
};
