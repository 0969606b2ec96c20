/* Perfetto writer: packets to blocks to the output, and what opens a window.
 *
 * Called by the other files of the writer: pf_packet() for every packet but those from shapes,
 * which are appended to the block directly; pf_window_begin() by the sink, before the first packet
 * and whenever a window is full; the flush at the end. A window opens with the synchronization
 * marker, never compressed, so that it can be found by scanning; then clocks and metadata.
 * Everything else in a window (descriptors, sequence starts, interned strings) is written at first
 * use.
 *
 * A packet that is in the block stays: later packets use the numbers that it defines. */
#include "core/perfetto/write.h"

#include <assert.h>
#include <stdlib.h>
#include <zlib.h>
#ifdef SV_HAVE_ZSTD
#include <zstd.h>
#endif

enum { ZLIB_LEVEL = 6 };
enum { META_SHARE = 64 }; /* of a window: more metadata than this part is not repeated */

#ifdef SV_HAVE_ZSTD
/* Packets of one sequence repeat in long pieces: the strategy that looks at one place only, for six
 * bytes or more, makes of grouped packets what a thorough search makes of others, in a fifth of the
 * time. */
static ZSTD_CCtx *zstd_new(void)
{
    static const struct {
        ZSTD_cParameter parameter;
        int value;
    } settings[] = {
        {ZSTD_c_strategy, ZSTD_fast},
        {ZSTD_c_minMatch, 6},
        {ZSTD_c_hashLog, 17},
        {ZSTD_c_targetLength, 0},
    };
    ZSTD_CCtx *z = ZSTD_createCCtx();
    for (size_t i = 0; z && i < sizeof settings / sizeof settings[0]; i++)
        ZSTD_CCtx_setParameter(z, settings[i].parameter, settings[i].value);
    return z;
}
#endif

int pf_block_init(struct pf *w, struct sv_err *err)
{
    w->block_bytes = w->compression == SV_PLAIN ? PF_BLOCK_BYTES : PF_PACKED_BLOCK_BYTES;
    sv_buf_init(&w->block, 2 * (size_t)PF_EVENT_LIMIT);
    sv_buf_init(&w->packed, 2 * (size_t)PF_EVENT_LIMIT);
    sv_buf_init(&w->grouped, 2 * (size_t)PF_EVENT_LIMIT);
    sv_buf_reserve(&w->block, w->block_bytes);
    if (w->compression == SV_GZIP) {
        z_stream *z = w->zlib = sv_alloc(sizeof *z);
        if (deflateInit(z, ZLIB_LEVEL) != Z_OK)
            return sv_error(err, SV_ENOMEM, "cannot start zlib");
    } else if (w->compression == SV_ZSTD) {
#ifdef SV_HAVE_ZSTD
        w->zstd = zstd_new();
        if (!w->zstd)
            return sv_error(err, SV_ENOMEM, "cannot start zstd");
#else
        return sv_error(err, SV_EUSAGE, "zstd was not built in; compress with gzip instead");
#endif
    }
    return 0;
}

void pf_block_fini(struct pf *w)
{
    if (w->zlib) {
        deflateEnd(w->zlib);
        free(w->zlib);
    }
#ifdef SV_HAVE_ZSTD
    ZSTD_freeCCtx(w->zstd);
#endif
    sv_buf_fini(&w->block);
    sv_buf_fini(&w->packed);
    sv_buf_fini(&w->grouped);
    free(w->group_at);
    free(w->meta_written);
}

/* ---- blocks ---- */

/* The block, compressed into w->packed; 0: does not help. */
static uint32_t compress_block(struct pf *w)
{
    sv_buf_clear(&w->packed);
    if (w->zlib) {
        z_stream *z = w->zlib;
        size_t bound = deflateBound(z, w->block.len);
        deflateReset(z);
        if (!sv_buf_reserve(&w->packed, bound))
            return 0;
        z->next_in = w->block.data;
        z->avail_in = (uInt)w->block.len;
        z->next_out = w->packed.data;
        z->avail_out = (uInt)bound;
        if (deflate(z, Z_FINISH) != Z_STREAM_END)
            return 0;
        w->packed.len = bound - z->avail_out;
        return w->packed.len < w->block.len ? SV_PF_PACKET_COMPRESSED : 0;
    }
#ifdef SV_HAVE_ZSTD
    size_t bound = ZSTD_compressBound(w->block.len);
    if (!sv_buf_reserve(&w->packed, bound))
        return 0;
    size_t n = ZSTD_compress2(w->zstd, w->packed.data, bound, w->block.data, w->block.len);
    if (ZSTD_isError(n) || n >= w->block.len)
        return 0;
    w->packed.len = n;
    return SV_PF_PACKET_ZSTD_COMPRESSED;
#else
    return 0;
#endif
}

/* The sequence of a packet; 0: none, or the shared one. */
static uint32_t group_of(const struct pf *w, const struct sv_pb_field *packet)
{
    struct sv_pb fields = sv_pb_sub(packet);
    for (struct sv_pb_field f; sv_pb_next(&fields, &f);)
        if (f.id == SV_PF_PACKET_SEQUENCE_ID)
            return f.u == w->sequences[0]->id ? 0 : (uint32_t)f.u;
    return 0;
}

/* Packets of a sequence come one after the other, which compresses better than threads in turn.
 * Those that belong to no sequence or to the shared one come first: they describe tracks, and a
 * track may change from the shared sequence to its own within a block, never back. */
static void group_packets(struct pf *w)
{
    size_t n_groups = (size_t)w->n_sequence_ids + 1;
    struct sv_pb packets = sv_pb_at(w->block.data, w->block.len);
    struct sv_pb_field packet;
    if (w->n_sequences <= 2)
        return;
    sv_buf_clear(&w->grouped);
    if (!sv_buf_reserve(&w->grouped, w->block_bytes)) /* it is the next block, too */
        return;
    w->group_at = sv_realloc(w->group_at, (n_groups + 1) * sizeof *w->group_at);
    memset(w->group_at, 0, (n_groups + 1) * sizeof *w->group_at);
    for (const uint8_t *from = packets.p; sv_pb_next(&packets, &packet); from = packets.p)
        w->group_at[group_of(w, &packet) + 1] += (uint32_t)(packets.p - from);
    for (size_t i = 0; i < n_groups; i++)
        w->group_at[i + 1] += w->group_at[i];
    packets = sv_pb_at(w->block.data, w->block.len);
    for (const uint8_t *from = packets.p; sv_pb_next(&packets, &packet); from = packets.p) {
        uint32_t *at = &w->group_at[group_of(w, &packet)];
        memcpy(w->grouped.data + *at, from, (size_t)(packets.p - from));
        *at += (uint32_t)(packets.p - from);
    }
    w->grouped.len = w->block.len;
    struct sv_buf was = w->block;
    w->block = w->grouped;
    w->grouped = was;
}

static size_t tag_at(uint8_t *at, uint32_t field, uint32_t wire_type)
{
    return sv_put_varint_at(at, (uint64_t)field << 3 | wire_type);
}

/* A nested message or bytes field: the tag and the length. */
static size_t bytes_head_at(uint8_t *at, uint32_t field, size_t len)
{
    size_t n = tag_at(at, field, SV_PB_BYTES);
    return n + sv_put_varint_at(at + n, len);
}

void pf_block_flush(struct pf *w)
{
    if (w->block.len == 0)
        return;
    w->window_bytes += w->block.len;
    /* A packet larger than a block stays as it is: readers need not unpack more than they
     * expect. */
    bool packs = w->compression != SV_PLAIN && w->block.len <= w->block_bytes;
    if (packs)
        group_packets(w);
    uint32_t field = packs ? compress_block(w) : 0;
    if (field) {
        uint8_t inner[20], outer[20];
        size_t n_inner = bytes_head_at(inner, field, w->packed.len);
        size_t n_outer = bytes_head_at(outer, SV_PF_TRACE_PACKET, n_inner + w->packed.len);
        sv_output_write(w->out, outer, n_outer);
        sv_output_write(w->out, inner, n_inner);
        sv_output_write(w->out, w->packed.data, w->packed.len);
    } else {
        sv_output_write(w->out, w->block.data, w->block.len);
    }
    sv_buf_clear(&w->block);
}

void pf_packet(struct pf *w, const struct sv_buf *head, const struct sv_buf *interned,
               uint32_t payload_field, const struct sv_buf *payload)
{
    uint8_t start[20], interned_head[20], payload_head[20];
    size_t n_interned = 0, n_payload = 0, size = head ? head->len : 0;
    if (interned && interned->len) {
        n_interned = bytes_head_at(interned_head, SV_PF_PACKET_INTERNED_DATA, interned->len);
        size += n_interned + interned->len;
    }
    if (payload_field) {
        n_payload = bytes_head_at(payload_head, payload_field, payload->len);
        size += n_payload + payload->len;
    }
    size_t n_start = bytes_head_at(start, SV_PF_TRACE_PACKET, size);
    if (w->block.len + n_start + size > w->block_bytes)
        pf_block_flush(w);
    struct sv_buf *b = &w->block;
    sv_buf_add(b, start, n_start);
    if (n_interned) {
        sv_buf_add(b, interned_head, n_interned);
        sv_buf_add(b, interned->data, interned->len);
    }
    if (n_payload) {
        sv_buf_add(b, payload_head, n_payload);
        sv_buf_add(b, payload->data, payload->len);
    }
    if (head)
        sv_buf_add(b, head->data, head->len);
    assert(!b->failed);
}

/* ---- clocks ---- */

/* The number under which a reading is written, 0: not at all. */
static uint32_t wire_clock_of(const struct pf *w, const struct sv_snapshot *s, uint32_t i)
{
    uint32_t clock = s->readings[i].clock;
    for (uint32_t j = 0; j < i; j++)
        if (s->readings[j].clock == clock)
            return 0;
    if (clock == SV_CLOCK_UNKNOWN)
        return w->dict->clocks.trace_clock == SV_CLOCK_UNKNOWN ? SV_PF_CLOCK_TRACE_FILE : 0;
    if (clock >= SV_PF_CLOCK_SEQUENCE_FIRST && clock <= SV_PF_CLOCK_SEQUENCE_LAST)
        return 0; /* they need a sequence, and Perfetto refuses the file without */
    return clock;
}

void pf_clock_put(struct sv_buf *b, uint32_t clock, uint64_t reading)
{
    size_t mark = sv_put_begin(b, SV_PF_SNAPSHOT_CLOCKS);
    sv_put_u64(b, SV_PF_CLOCK_ID, clock);
    sv_put_u64(b, SV_PF_CLOCK_TIMESTAMP, reading);
    sv_put_end(b, mark);
}

void pf_primary_put(const struct pf *w, struct sv_buf *b)
{
    sv_put_u64(b, SV_PF_SNAPSHOT_PRIMARY, w->wire_clock);
    if (w->alias_clock)
        sv_put_u64(b, SV_PF_STAVE_CLOCK, w->alias_clock);
    if (w->origin_ns)
        sv_put_i64(b, SV_PF_STAVE_ORIGIN, w->origin_ns);
}

/* Only the trace clock has an origin; what others showed before zero has no place in the file. */
static void reading_put(struct pf *w, struct sv_buf *b, uint32_t clock, int64_t ns)
{
    if (clock == w->wire_clock || clock == w->alias_clock)
        pf_clock_put(b, clock, pf_wire_ns(w, ns));
    else if (ns >= 0)
        pf_clock_put(b, clock, (uint64_t)ns);
    else
        sv_report_add(w->report, SV_SKIPPED, "reading of a clock before its zero", 1, SV_NO_POS,
                      "clock %u", clock);
}

static void snapshot_write(struct pf *w, const struct sv_snapshot *s)
{
    struct sv_buf *b = &w->scratch;
    sv_buf_clear(b);
    for (uint32_t i = 0; i < s->n; i++) {
        uint32_t clock = wire_clock_of(w, s, i);
        if (clock)
            reading_put(w, b, clock, s->readings[i].ns);
    }
    int64_t ns;
    if (w->alias_clock && sv_snapshot_get(s, w->alias_clock, &ns))
        pf_clock_put(b, w->wire_clock, pf_wire_ns(w, ns));
    pf_primary_put(w, b);
    if (s->uncertainty_ns >= 0)
        sv_put_i64(b, SV_PF_STAVE, s->uncertainty_ns);
    if (s->wall_state) {
        sv_put_u64(b, SV_PF_STAVE_WALL, s->wall_state);
        sv_put_i64(b, SV_PF_STAVE_WALL_ERROR, s->wall_error_ns);
    }
    pf_packet(w, NULL, NULL, SV_PF_PACKET_CLOCK_SNAPSHOT, b);
}

static int64_t trace_time_of(const struct pf *w, const struct sv_snapshot *s)
{
    int64_t ns;
    return sv_snapshot_get(s, w->dict->clocks.trace_clock, &ns) ? ns : INT64_MIN;
}

static int by_trace_time(const void *a, const void *b, void *ctx)
{
    const struct sv_snapshot *const *x = a, *const *y = b;
    int64_t i = trace_time_of(ctx, *x), j = trace_time_of(ctx, *y);
    return i < j ? -1 : i > j ? 1 : *x < *y ? -1 : *x > *y;
}

/* The earliest trace time of those that are not written yet. */
static int64_t snapshots_begin(const struct pf *w)
{
    const struct sv_clocks *c = &w->dict->clocks;
    int64_t first = 0, ns;
    for (size_t i = w->n_snapshots; i < c->n; i++)
        if (sv_snapshot_get(&c->snapshots[i], c->trace_clock, &ns) && ns < first)
            first = ns;
    return first;
}

/* Perfetto wants the trace clock of snapshots to go forward, merged files bring them in any
 * order. */
void pf_snapshots_write(struct pf *w)
{
    const struct sv_clocks *c = &w->dict->clocks;
    pf_origin_lower(w, snapshots_begin(w)); /* writes them where it begins a window */
    size_t n = c->n - w->n_snapshots;
    if (n == 0)
        return;
    const struct sv_snapshot **sorted = sv_alloc(n * sizeof *sorted);
    for (size_t i = 0; i < n; i++)
        sorted[i] = &c->snapshots[w->n_snapshots + i];
    qsort_r(sorted, n, sizeof *sorted, by_trace_time, w);
    for (size_t i = 0; i < n; i++) {
        int64_t ns = trace_time_of(w, sorted[i]);
        if (ns != INT64_MIN && ns < w->snapshot_ns) {
            sv_report_add(w->report, SV_SKIPPED, "clock snapshot older than one already written", 1,
                          SV_NO_POS, NULL);
            continue;
        }
        w->snapshot_ns = ns != INT64_MIN ? ns : w->snapshot_ns;
        snapshot_write(w, sorted[i]);
    }
    free(sorted);
    w->n_snapshots = c->n;
}

/* A file cut at a resync point still knows its clocks: the latest snapshot, once more. */
static void snapshot_repeat(struct pf *w)
{
    const struct sv_clocks *c = &w->dict->clocks;
    for (size_t i = w->n_snapshots; i-- > 0;) {
        if (trace_time_of(w, &c->snapshots[i]) == w->snapshot_ns) {
            snapshot_write(w, &c->snapshots[i]);
            return;
        }
    }
}

/* ---- metadata and statistics ---- */

static void attribute_put(struct pf *w, struct sv_buf *b, const struct sv_meta *m)
{
    struct sv_text key = sv_dict_text(w->dict, m->key), value = sv_dict_text(w->dict, m->value);
    size_t mark = sv_put_begin(b, SV_PF_ATTRIBUTES_LIST);
    sv_put_text(b, SV_PF_ATTRIBUTE_KEY, key.bytes, key.len);
    sv_put_text(b, SV_PF_ATTRIBUTE_STRING, value.bytes, value.len);
    if (m->is_json)
        sv_put_u64(b, SV_PF_STAVE, SV_PF_STAVE_JSON);
    sv_put_end(b, mark);
}

static bool meta_is_written(const struct pf *w, uint32_t i)
{
    const struct sv_meta *now = &w->dict->meta[i], *then = &w->meta_written[i];
    return i < w->n_meta_written && now->value == then->value && now->is_json == then->is_json;
}

void pf_meta_write(struct pf *w, bool changed_only)
{
    const struct sv_dict *d = w->dict;
    struct sv_buf *b = &w->scratch;
    sv_buf_clear(b);
    for (uint32_t i = 0; i < d->n_meta; i++)
        if (!changed_only || !meta_is_written(w, i))
            attribute_put(w, b, &d->meta[i]);
    if (!changed_only)
        w->meta_bytes = b->len;
    if (b->len == 0)
        return;
    if (b->failed)
        sv_report_add(w->report, SV_SKIPPED, "metadata larger than a packet may be", 1, SV_NO_POS,
                      NULL);
    else
        pf_packet(w, NULL, NULL, SV_PF_PACKET_ATTRIBUTES, b);
    w->meta_written = sv_realloc(w->meta_written, d->n_meta * sizeof *w->meta_written);
    memcpy(w->meta_written, d->meta, d->n_meta * sizeof *w->meta_written);
    w->n_meta_written = d->n_meta;
}

/* Perfetto counts previous_packet_dropped only for sequences that the statistics assign to a
 * buffer. */
void pf_stats_write(struct pf *w)
{
    struct sv_buf *b = &w->scratch;
    if (w->n_losses == 0)
        return;
    sv_buf_clear(b);
    sv_put_end(b, sv_put_begin(b, SV_PF_TRACE_STATS_BUFFERS));
    for (uint32_t id = 1; id <= w->n_sequence_ids; id++) {
        if (!pf_bits_has(&w->sequence_lost, id))
            continue;
        size_t writer = sv_put_begin(b, SV_PF_TRACE_STATS_WRITERS);
        sv_put_u64(b, SV_PF_WRITER_SEQUENCE_ID, id);
        sv_put_u64(b, SV_PF_WRITER_BUFFER, 0);
        sv_put_end(b, writer);
    }
    pf_packet(w, NULL, NULL, SV_PF_PACKET_TRACE_STATS, b);
}

/* ---- windows ---- */

void pf_marker_write(struct pf *w)
{
    /* The packet and its only field, whose tag has two bytes. */
    static const uint8_t start[] = {SV_PF_TRACE_PACKET << 3 | SV_PB_BYTES,
                                    3 + SV_PF_SYNC_MARKER_SIZE,
                                    (SV_PF_PACKET_SYNC_MARKER << 3 & 0x7f) | SV_PB_BYTES | 0x80,
                                    SV_PF_PACKET_SYNC_MARKER >> 4, SV_PF_SYNC_MARKER_SIZE};
    sv_output_write(w->out, start, sizeof start);
    sv_output_write(w->out, SV_PF_SYNC_MARKER, SV_PF_SYNC_MARKER_SIZE);
}

/* Perfetto ties every file to BOOTTIME; a clock that nothing relates to it goes as the file's own
 * time line. */
static void choose_wire_clock(struct pf *w)
{
    const struct sv_clocks *c = &w->dict->clocks;
    uint32_t clock = c->trace_clock;
    bool is_known = clock != SV_CLOCK_UNKNOWN && clock < SV_PF_CLOCK_SEQUENCE_FIRST;
    int64_t ns;
    bool is_tied = clock == SV_CLOCK_BOOTTIME ||
                   sv_clocks_convert(c, clock, SV_CLOCK_BOOTTIME, 0, &ns);
    w->wire_clock = is_known && is_tied ? clock : SV_PF_CLOCK_TRACE_FILE;
    w->alias_clock = is_known && !is_tied ? clock : 0;
}

void pf_window_begin(struct pf *w, int64_t origin_ns)
{
    if (w->window > 0) {
        pf_tracks_describe_put_off(w);
        pf_sequences_prune(w);
        pf_numbers_forget(w);
        w->origin_ns = origin_ns; /* what came before had its own */
    } else {
        choose_wire_clock(w);
        w->origin_ns = origin_ns;
        pf_origin_lower(w, snapshots_begin(w));
    }
    pf_block_flush(w);
    pf_marker_write(w);
    w->window++;
    w->window_bytes = 0;
    pf_origin_write(w);
    snapshot_repeat(w);
    pf_snapshots_write(w);
    /* A thousand ranks have megabytes of it, once is enough then. */
    pf_meta_write(w, w->window > 1 && w->meta_bytes > w->resync_bytes / META_SHARE);
}
