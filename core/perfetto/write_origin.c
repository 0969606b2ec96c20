/* Perfetto writer: times before zero.
 *
 * Perfetto's timestamps are unsigned. A file with times before zero is written with an origin
 * (core/perfetto/stave.h): each time is stored as its distance from there. Steps between two events
 * of a sequence are the same with every origin, so only absolute times depend on it: clock
 * snapshots, events that go back in time, start times of processes.
 *
 * pf_origin_lower() is called before a time is written that may be too early. Events mostly come in
 * order, so the first batch has the earliest one. A live writer may get an earlier one later: it
 * begins a new window with the new origin. Stave reads such a file as it is, also after a crash;
 * Perfetto does not know origins, so pf_origin_unify() writes the file anew when it is closed. */
#include "core/perfetto/write.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
#include <zlib.h>
#ifdef SV_HAVE_ZSTD
#include <zstd.h>
#endif

enum { READ_BYTES = 256 << 10 };

/* A power of ten, so that people can subtract it in their head, and so that times which go back by
 * and by begin few windows. */
static int64_t origin_for(int64_t ns)
{
    const int64_t quintillion = INT64_C(1000000000000000000);
    int64_t origin = -1;
    while (origin > ns && origin > -quintillion)
        origin *= 10;
    while (origin > ns && origin > -9 * quintillion)
        origin -= quintillion;
    return origin > ns ? INT64_MIN : origin;
}

void pf_origin_lower(struct pf *w, int64_t ns)
{
    if (ns >= w->origin_ns)
        return;
    if (w->window == 0) {
        w->origin_ns = origin_for(ns);
        return;
    }
    w->sink.rewrites = true;
    pf_window_begin(w, origin_for(ns));
}

static void attribute_put(const struct pf *w, struct sv_buf *b)
{
    char text[160];
    int n =
        snprintf(text, sizeof text,
                 "%lld: the trace has times before zero, which Perfetto cannot store; all times "
                 "in this file are %llu ns later",
                 (long long)w->origin_ns, (unsigned long long)pf_wire_ns(w, 0));
    size_t mark = sv_put_begin(b, SV_PF_ATTRIBUTES_LIST);
    sv_put_bytes(b, SV_PF_ATTRIBUTE_KEY, SV_PF_ORIGIN_KEY, sizeof SV_PF_ORIGIN_KEY - 1);
    sv_put_bytes(b, SV_PF_ATTRIBUTE_STRING, text, (size_t)n);
    sv_put_u64(b, SV_PF_STAVE, SV_PF_STAVE_EXPLAINS);
    sv_put_end(b, mark);
}

void pf_origin_write(struct pf *w)
{
    struct sv_buf *b = &w->scratch;
    if (w->origin_ns == 0)
        return;
    sv_buf_clear(b);
    sv_put_i64(b, SV_PF_STAVE_ORIGIN, w->origin_ns);
    attribute_put(w, b);
    pf_packet(w, NULL, NULL, SV_PF_PACKET_ATTRIBUTES, b);
}

void pf_origin_report(struct pf *w)
{
    if (w->origin_ns == 0)
        return;
    sv_report_add(w->report, SV_NOTE, "times before zero", 1, SV_NO_POS,
                  "Perfetto shows all times %llu ns later; Stave reads them as they are",
                  (unsigned long long)pf_wire_ns(w, 0));
    for (uint32_t i = 0; i < PF_SEQUENCES_MAX && w->sequences[i]; i++) {
        const struct pf_sequence *s = w->sequences[i];
        if (s->last_ns <= w->origin_ns || pf_wire_ns(w, s->last_ns) <= INT64_MAX)
            continue;
        sv_report_add(w->report, SV_NOTE, "times more than 292 years apart", 1, SV_NO_POS,
                      "Perfetto drops the later ones; Stave reads them");
        return;
    }
}

/* ---- packets with another origin ---- */

/* From the old origin to the writer's. */
struct move {
    struct pf *w;
    int64_t from_ns; /* the origin of the packets that are read */
    struct sv_buf packet, message, part;
};

static uint64_t moved(const struct move *m, uint64_t wire)
{
    return wire + (uint64_t)m->from_ns - (uint64_t)m->w->origin_ns;
}

/* A field as it was; false for one that is none. */
static void copy_field(struct sv_buf *b, const struct sv_pb_field *f)
{
    uint32_t u32 = (uint32_t)f->u;
    switch (f->type) {
    case SV_PB_VARINT: sv_put_u64(b, f->id, f->u); break;
    case SV_PB_BYTES: sv_put_bytes(b, f->id, f->bytes, (size_t)f->u); break;
    case SV_PB_FIXED64: sv_put_fixed64(b, f->id, f->u); break;
    default:
        sv_put_varint(b, (uint64_t)f->id << 3 | SV_PB_FIXED32);
        sv_buf_add(b, &u32, sizeof u32);
        break;
    }
}

/* The value of a field of numbers, 0 when it is absent. */
static uint64_t number_in(struct sv_pb w, uint32_t id)
{
    uint64_t u = 0;
    for (struct sv_pb_field f; sv_pb_next(&w, &f);)
        if (f.id == id && f.type == SV_PB_VARINT)
            u = f.u;
    return u;
}

/* Copies a message and moves the times in its field `id`. */
static void move_numbers(const struct move *m, struct sv_buf *to, struct sv_pb w, uint32_t id)
{
    for (struct sv_pb_field f; sv_pb_next(&w, &f);) {
        if (f.id == id && f.type == SV_PB_VARINT)
            f.u = moved(m, f.u);
        copy_field(to, &f);
    }
}

static void move_snapshot(struct move *m, struct sv_pb w)
{
    uint64_t primary = number_in(w, SV_PF_SNAPSHOT_PRIMARY),
             alias = number_in(w, SV_PF_STAVE_CLOCK);
    sv_buf_clear(&m->message);
    for (struct sv_pb_field f; sv_pb_next(&w, &f);) {
        if (f.id == SV_PF_STAVE_ORIGIN)
            continue;
        uint64_t clock = number_in(sv_pb_sub(&f), SV_PF_CLOCK_ID);
        if (f.id != SV_PF_SNAPSHOT_CLOCKS ||
            (clock != primary && clock != alias && clock != m->w->sequence_clock)) {
            copy_field(&m->message, &f);
            continue;
        }
        sv_buf_clear(&m->part);
        move_numbers(m, &m->part, sv_pb_sub(&f), SV_PF_CLOCK_TIMESTAMP);
        sv_put_bytes(&m->message, f.id, m->part.data, m->part.len);
    }
    sv_put_i64(&m->message, SV_PF_STAVE_ORIGIN, m->w->origin_ns);
}

static void move_descriptor(struct move *m, struct sv_pb w)
{
    sv_buf_clear(&m->message);
    for (struct sv_pb_field f; sv_pb_next(&w, &f);) {
        if (f.id != SV_PF_TRACK_PROCESS || f.type != SV_PB_BYTES) {
            copy_field(&m->message, &f);
            continue;
        }
        sv_buf_clear(&m->part);
        move_numbers(m, &m->part, sv_pb_sub(&f), SV_PF_PROCESS_START_NS);
        sv_put_bytes(&m->message, f.id, m->part.data, m->part.len);
    }
}

/* Copies the packet into m->packet; false: it holds an origin, and the writer writes its own. */
static bool move_packet(struct move *m, struct sv_pb w)
{
    bool has_clock = number_in(w, SV_PF_PACKET_CLOCK_ID) != 0;
    sv_buf_clear(&m->packet);
    for (struct sv_pb_field f; sv_pb_next(&w, &f);) {
        if (f.id == SV_PF_PACKET_ATTRIBUTES && number_in(sv_pb_sub(&f), SV_PF_STAVE_ORIGIN)) {
            m->from_ns = (int64_t)number_in(sv_pb_sub(&f), SV_PF_STAVE_ORIGIN);
            return false;
        }
        if (f.id == SV_PF_PACKET_TIMESTAMP && has_clock)
            f.u = moved(m, f.u);
        if (f.id == SV_PF_PACKET_CLOCK_SNAPSHOT)
            move_snapshot(m, sv_pb_sub(&f));
        else if (f.id == SV_PF_PACKET_TRACK_DESCRIPTOR)
            move_descriptor(m, sv_pb_sub(&f));
        else {
            copy_field(&m->packet, &f);
            continue;
        }
        sv_put_bytes(&m->packet, f.id, m->message.data, m->message.len);
    }
    return true;
}

static void move_init(struct move *m, struct pf *w)
{
    *m = (struct move){.w = w};
    sv_buf_init(&m->packet, 2 * (size_t)PF_EVENT_LIMIT);
    sv_buf_init(&m->message, 2 * (size_t)PF_EVENT_LIMIT);
    sv_buf_init(&m->part, 2 * (size_t)PF_EVENT_LIMIT);
}

static void move_fini(struct move *m)
{
    sv_buf_fini(&m->packet);
    sv_buf_fini(&m->message);
    sv_buf_fini(&m->part);
}

/* Writes all whole packets at p and returns how many bytes they have; the compressed ones in
 * `packed` are left to the caller. */
static size_t move_packets(struct move *m, const uint8_t *p, size_t n, struct sv_pb_field *packed)
{
    struct sv_pb w = sv_pb_at(p, n), inside;
    struct sv_pb_field f, first;
    *packed = (struct sv_pb_field){0};
    while (sv_pb_next(&w, &f)) {
        inside = sv_pb_sub(&f);
        bool has_first = sv_pb_next(&inside, &first);
        if (has_first && first.id == SV_PF_PACKET_SYNC_MARKER) {
            pf_block_flush(m->w);
            pf_marker_write(m->w);
            pf_origin_write(m->w);
        } else if (has_first && (first.id == SV_PF_PACKET_COMPRESSED ||
                                 first.id == SV_PF_PACKET_ZSTD_COMPRESSED)) {
            *packed = first;
            break;
        } else if (move_packet(m, sv_pb_sub(&f))) {
            pf_packet(m->w, &m->packet, NULL, 0, NULL);
        }
    }
    return (size_t)(w.p - p);
}

void pf_packets_write(struct pf *w, const uint8_t *packets, size_t n)
{
    struct move m;
    struct sv_pb_field packed;
    if (w->window == 0)
        pf_window_begin(w, w->origin_ns);
    move_init(&m, w);
    move_packets(&m, packets, n, &packed);
    move_fini(&m);
}

/* ---- the finished file once more ---- */

/* The bytes of a compressed packet; blocks have at most PF_PACKED_BLOCK_BYTES. */
static bool unpack(const struct sv_pb_field *packed, struct sv_buf *to)
{
    sv_buf_clear(to);
    if (!sv_buf_reserve(to, PF_PACKED_BLOCK_BYTES))
        return false;
    if (packed->id == SV_PF_PACKET_COMPRESSED) {
        z_stream z = {.next_in = (Bytef *)(uintptr_t)packed->bytes, .avail_in = (uInt)packed->u};
        z.next_out = to->data;
        z.avail_out = PF_PACKED_BLOCK_BYTES;
        if (inflateInit(&z) != Z_OK)
            return false;
        bool is_whole = inflate(&z, Z_FINISH) == Z_STREAM_END;
        to->len = PF_PACKED_BLOCK_BYTES - z.avail_out;
        inflateEnd(&z);
        return is_whole;
    }
#ifdef SV_HAVE_ZSTD
    size_t n = ZSTD_decompress(to->data, PF_PACKED_BLOCK_BYTES, packed->bytes, (size_t)packed->u);
    to->len = ZSTD_isError(n) ? 0 : n;
    return !ZSTD_isError(n);
#else
    return false;
#endif
}

/* What is left of `in`, and more of the file after it. 0: there is no more. */
static ssize_t read_more(int fd, struct sv_buf *in, size_t used)
{
    memmove(in->data, in->data + used, in->len - used);
    in->len -= used;
    if (!sv_buf_reserve(in, READ_BYTES))
        return -1;
    ssize_t n;
    do
        n = read(fd, in->data + in->len, in->cap - in->len);
    while (n < 0 && errno == EINTR);
    in->len += n > 0 ? (size_t)n : 0;
    return n;
}

/* False: the file cannot be read, or is not what was written. */
static bool move_file(struct move *m, int fd, struct sv_buf *in, struct sv_buf *unpacked)
{
    struct sv_pb_field packed;
    size_t used = 0;
    for (;;) {
        ssize_t n = read_more(fd, in, used);
        if (n <= 0)
            return n == 0 && in->len == 0;
        for (used = 0;;) {
            used += move_packets(m, in->data + used, in->len - used, &packed);
            if (packed.id == 0)
                break;
            if (!unpack(&packed, unpacked) ||
                move_packets(m, unpacked->data, unpacked->len, &packed) != unpacked->len)
                return false;
        }
    }
}

static bool move_whole(struct pf *w, int fd)
{
    struct move m;
    struct sv_buf in, unpacked;
    move_init(&m, w);
    sv_buf_init(&in, 2 * (size_t)PF_EVENT_LIMIT);
    sv_buf_init(&unpacked, PF_PACKED_BLOCK_BYTES);
    sv_buf_reserve(&in, READ_BYTES);
    bool ok = move_file(&m, fd, &in, &unpacked);
    pf_block_flush(w);
    sv_buf_fini(&in);
    sv_buf_fini(&unpacked);
    move_fini(&m);
    return ok;
}

static bool unify(struct pf *w, struct sv_err *err)
{
    struct sv_output *finished = w->out, *again;
    const char *path = sv_output_file(finished);
    if (sv_output_flush(finished, err) < 0 || !path)
        return false;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return sv_err_sys(err, "cannot read it again") == 0;
    bool ok = sv_output_open(path, SV_OUTPUT_RENAME, SV_PLAIN, &again, err) >= 0;
    if (ok) {
        w->out = again;
        ok = move_whole(w, fd);
        w->out = finished;
        if (ok)
            ok = sv_output_close(again, err) >= 0;
        else
            sv_output_discard(again);
    }
    close(fd);
    return ok;
}

void pf_origin_unify(struct pf *w)
{
    struct sv_err err = {0};
    if (unify(w, &err))
        return;
    sv_report_add(w->report, SV_NOTE, "times before zero that came late", 1, SV_NO_POS,
                  "Stave reads them, Perfetto shows wrong times; 'stave convert' writes a file for "
                  "Perfetto%s%s",
                  err.msg[0] ? ": " : "", err.msg);
}
