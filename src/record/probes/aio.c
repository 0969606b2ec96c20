/* Probe `aio`: requests of io_submit() as slices on a row `aio` below the thread that submitted
 * them, until io_getevents() has brought them back. They overlap, so the row has lanes. */
#include "record/bpf/aio.h"
#include "record/decode/state.h"

#include <stdlib.h>

enum { REQUESTS_MAX = 1 << 16 }; /* under way; of more than that the program has lost track, too */

struct request {
    uint64_t start_ns, len;
    int64_t offset;
    struct sv_file *file; /* held; NULL: not known */
    uint32_t tid, opcode;
    int32_t fd;
};

struct aio {
    struct sv_map by_request; /* process and address → index + 1 */
    struct request *all;
    size_t n, cap, *unused, n_unused, cap_unused;
    sv_str cat, row;
};

enum { OP_PREAD, OP_PWRITE, OP_FSYNC, OP_FDSYNC, OP_POLL = 5, OP_NOOP, OP_PREADV, OP_PWRITEV };

static const char *name_of(unsigned opcode)
{
    static const char *const names[] = {
        [OP_PREAD] = "aio_read",    [OP_PWRITE] = "aio_write",  [OP_FSYNC] = "aio_fsync",
        [OP_FDSYNC] = "aio_fdsync", [OP_POLL] = "aio_poll",     [OP_NOOP] = "aio_noop",
        [OP_PREADV] = "aio_readv",  [OP_PWRITEV] = "aio_writev"};
    const char *name = opcode < sizeof names / sizeof *names ? names[opcode] : NULL;
    return name ? name : "aio_request";
}

static bool is_read(unsigned op)
{
    return op == OP_PREAD || op == OP_PREADV;
}

static bool is_write(unsigned op)
{
    return op == OP_PWRITE || op == OP_PWRITEV;
}

static void open_aio(struct sv_decode *d, void *state)
{
    struct aio *s = state;
    s->cat = sv_dict_cstr(d->source.dict, SV_CAT_AIO);
    s->row = sv_dict_cstr(d->source.dict, SV_ROW_AIO);
}

static void close_aio(struct sv_decode *d, void *state)
{
    struct aio *s = state;
    for (size_t i = 0; i < s->n; i++)
        sv_file_put(&d->tree, s->all[i].file);
    free(s->all);
    free(s->unused);
    sv_map_fini(&s->by_request);
}

static uint64_t key_of(const struct sv_wire_aio *a)
{
    return sv_mix64(a->request) ^ a->head.tgid;
}

static void submitted(struct sv_decode *d, struct aio *s, const struct sv_wire_aio *a)
{
    struct sv_proc *p = sv_decode_process(d, a->head.tgid);
    struct sv_fd *now;
    bool is_new;
    if (s->by_request.n >= REQUESTS_MAX)
        return;
    uint64_t *at = sv_map_add(&s->by_request, key_of(a), &is_new);
    if (is_new && s->n_unused) {
        *at = s->unused[--s->n_unused] + 1;
    } else if (is_new) {
        s->all = sv_grow(s->all, &s->cap, s->n + 1, sizeof *s->all);
        s->all[s->n] = (struct request){0};
        *at = ++s->n;
    }
    struct request *r = &s->all[*at - 1];
    sv_file_put(&d->tree, r->file); /* the program uses its memory again */
    *r = (struct request){.start_ns = a->start_ns,
                          .len = a->len,
                          .offset = a->offset,
                          .file = sv_decode_descriptor(
                              d, p, a->fd, (struct sv_fd_when){.start_ns = a->start_ns}, &now),
                          .tid = a->head.tid,
                          .opcode = a->head.what,
                          .fd = a->fd};
}

static void put_request(struct sv_decode *d, const struct aio *s, struct sv_batch *b,
                        const struct sv_wire_aio *a, const struct request *r)
{
    const struct sv_traced_thread *x = sv_tree_thread(&d->tree, a->head.tgid, r->tid);
    sv_track row = sv_dict_child(d->source.dict, x->track, SV_TRACK_CUSTOM, s->row);
    int64_t start = (int64_t)r->start_ns, end = (int64_t)a->head.ts_ns;
    bool is_transfer = is_read(r->opcode) || is_write(r->opcode);
    bool has_len = r->opcode == OP_PREAD || r->opcode == OP_PWRITE; /* else it counts buffers */
    sv_track lane = sv_lane_take(&d->tree.lanes,
                                 sv_lanes_row(&d->tree.lanes, row, &sv_lanes_by_end), &start, &end);
    struct sv_event *e = sv_batch_put(b, SV_BEGIN, start, lane,
                                      sv_dict_cstr(d->source.dict, name_of(r->opcode)), s->cat);
    sv_batch_int(b, d->words.fd, r->fd);
    if (r->file)
        sv_decode_path(b, d->words.path, r->file->path, r->file->len);
    if (has_len && (int64_t)r->len != a->res)
        sv_batch_int(b, d->words.requested, (int64_t)r->len);
    if (is_transfer && r->offset >= 0)
        sv_batch_int(b, d->words.offset, r->offset);
    if (a->res < 0)
        sv_batch_int(b, d->words.error, -a->res);
    else if (is_transfer)
        sv_batch_int(b, d->words.bytes, a->res);
    sv_batch_finish(b, e);
    sv_batch_put(b, SV_END, end, lane, 0, 0);
}

static void add_sums(struct sv_proc *p, const struct sv_wire_aio *a, const struct request *r)
{
    uint64_t bytes = a->res > 0 ? (uint64_t)a->res : 0;
    bool reads = is_read(r->opcode), writes = is_write(r->opcode);
    p->bytes_read += reads ? bytes : 0;
    p->bytes_written += writes ? bytes : 0;
    if (!r->file)
        return;
    r->file->reads += reads;
    r->file->writes += writes;
    r->file->read_bytes += reads ? bytes : 0;
    r->file->written_bytes += writes ? bytes : 0;
    r->file->errors += a->res < 0;
}

static void done(struct sv_decode *d, struct aio *s, struct sv_batch *b,
                 const struct sv_wire_aio *a)
{
    const uint64_t *at = sv_map_find(&s->by_request, key_of(a));
    if (!at)
        return; /* it was submitted before the recording */
    size_t i = (size_t)*at - 1;
    struct request *r = &s->all[i];
    if (!sv_decode_hides(d, r->file) && (!d->prefix_len || sv_decode_is_below(d, r->file)) &&
        a->head.ts_ns >= r->start_ns) {
        put_request(d, s, b, a, r);
        add_sums(sv_decode_process(d, a->head.tgid), a, r);
    }
    sv_file_put(&d->tree, r->file);
    *r = (struct request){0};
    sv_map_remove(&s->by_request, key_of(a));
    s->unused = sv_grow(s->unused, &s->cap_unused, s->n_unused + 1, sizeof *s->unused);
    s->unused[s->n_unused++] = i;
}

static bool decode_aio(struct sv_decode *d, void *state, struct sv_batch *b,
                       const struct sv_wire_head *record, uint32_t size)
{
    const struct sv_wire_aio *a = (const void *)record;
    (void)size;
    if (a->start_ns > INT64_MAX)
        return false;
    if (a->head.flags & SV_WIRE_AIO_DONE)
        done(d, state, b, a);
    else
        submitted(d, state, a);
    return true;
}

const struct sv_probe sv_probe_aio = {
    .name = "aio",
    .cat = SV_CAT_AIO,
    .records = {{SV_WIRE_AIO, sizeof(struct sv_wire_aio), "requests of io_submit", decode_aio}},
    .sums = {{SV_SUM_EVENTS, "requests of io_submit", false}},
    .docs = {"requests of `io_submit` (libaio)",
             "`aio` below the thread that submitted them, with lanes",
             "operation, descriptor, path, bytes, offset, errno; from the call that submits to the "
             "`io_getevents` that brings it back"},
    .groups = SV_CALLS_URING,
    .state_size = sizeof(struct aio),
    .open = open_aio,
    .close = close_aio,
};
