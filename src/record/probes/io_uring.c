/* Probe `io_uring`: requests as slices on a row `io_uring` below the thread that submitted them.
 * They overlap, so the row has lanes.
 *
 * Operations that the table does not have yet are shown by number. */
#include "record/bpf/io_uring.h"
#include "record/decode/state.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

enum { URING_OPS = 64 };

/* The kernel's numbers (include/uapi/linux/io_uring.h). */
enum {
    OP_READV = 1,
    OP_WRITEV = 2,
    OP_READ_FIXED = 4,
    OP_WRITE_FIXED = 5,
    OP_SEND = 26,
    OP_RECV = 27,
    OP_READ = 22,
    OP_WRITE = 23,
    OP_OPENAT = 18,
    OP_CLOSE = 19,
    OP_OPENAT2 = 28
};

/* Operations on a file that is open: of the others the kernel keeps no descriptor. */
#define BIT(op) (UINT64_C(1) << (op))
#define OPS_ON_FILES                                                                             \
    (BIT(1) | BIT(2) | BIT(3) | BIT(4) | BIT(5) | BIT(6) | BIT(8) | BIT(9) | BIT(10) | BIT(13) | \
     BIT(16) | BIT(17) | BIT(OP_CLOSE) | BIT(22) | BIT(23) | BIT(24) | BIT(26) | BIT(27) |       \
     BIT(30) | BIT(33) | BIT(34) | BIT(40) | BIT(41) | BIT(43) | BIT(46) | BIT(47) | BIT(48) |   \
     BIT(49) | BIT(55) | BIT(56) | BIT(57) | BIT(58) | BIT(60) | BIT(61))

/* clang-format off */
static const char *const op_names[URING_OPS] = {
    "nop", "readv", "writev", "fsync", "read_fixed", "write_fixed", "poll_add", "poll_remove",
    "sync_file_range", "sendmsg", "recvmsg", "timeout", "timeout_remove", "accept",
    "async_cancel", "link_timeout", "connect", "fallocate", "openat", "close", "files_update",
    "statx", "read", "write", "fadvise", "madvise", "send", "recv", "openat2", "epoll_ctl",
    "splice", "provide_buffers", "remove_buffers", "tee", "shutdown", "renameat", "unlinkat",
    "mkdirat", "symlinkat", "linkat", "msg_ring", "fsetxattr", "setxattr", "fgetxattr",
    "getxattr", "socket", "uring_cmd", "send_zc", "sendmsg_zc", "read_multishot", "waitid",
    "futex_wait", "futex_wake", "futex_waitv", "fixed_fd_install", "ftruncate", "bind",
    "listen", "recv_zc", "epoll_wait", "readv_fixed", "writev_fixed",
};
/* clang-format on */

enum { OPENS_MAX = 1 << 16 };

struct uring {
    sv_str names[URING_OPS];
    struct sv_map opens; /* requests under way → their files, held */
};

static bool is_on_file(unsigned opcode)
{
    return opcode >= URING_OPS || OPS_ON_FILES >> opcode & 1;
}

static bool opens(unsigned opcode)
{
    return opcode == OP_OPENAT || opcode == OP_OPENAT2;
}

static uint64_t open_key(const struct sv_wire_uring *r)
{
    return sv_mix64((uint64_t)r->offset) ^ ((uint64_t)r->head.tid << 32 | r->head.tgid);
}

static bool is_read(unsigned opcode)
{
    return opcode == OP_READV || opcode == OP_READ_FIXED || opcode == OP_READ || opcode == OP_RECV;
}

static bool is_write(unsigned opcode)
{
    return opcode == OP_WRITEV || opcode == OP_WRITE_FIXED || opcode == OP_WRITE ||
           opcode == OP_SEND;
}

static sv_str name_of(struct uring *u, struct sv_dict *dict, unsigned opcode)
{
    char text[48] = "io_uring_request";
    if (opcode >= URING_OPS || !op_names[opcode])
        return sv_dict_cstr(dict, text);
    if (u->names[opcode] == 0) {
        snprintf(text, sizeof text, "io_uring_%s", op_names[opcode]);
        u->names[opcode] = sv_dict_cstr(dict, text);
    }
    return u->names[opcode];
}

/* The lane of a request: [*start_ns, *end_ns) may become shorter. */
static sv_track lane_of(struct sv_decode *d, const struct sv_wire_head *h, int64_t *start_ns,
                        int64_t *end_ns)
{
    struct sv_traced_thread *x = sv_tree_thread(&d->tree, h->tgid, h->tid);
    if (!x->uring)
        x->uring = sv_dict_child(d->source.dict, x->track, SV_TRACK_CUSTOM,
                                 sv_dict_cstr(d->source.dict, SV_ROW_IO_URING));
    struct sv_lane_row *row = sv_lanes_row(&d->tree.lanes, x->uring, &sv_lanes_by_end);
    return sv_lane_take(&d->tree.lanes, row, start_ns, end_ns);
}

static void put_result(struct sv_decode *d, struct sv_batch *b, const struct sv_wire_uring *r)
{
    unsigned op = r->head.what;
    bool is_transfer = is_read(op) || is_write(op);
    bool has_len = is_transfer && op != OP_READV && op != OP_WRITEV && op != OP_SEND &&
                   op != OP_RECV; /* of a vector it is the number of buffers */
    if (has_len && (int64_t)r->len != r->res)
        sv_batch_int(b, d->words.requested, r->len);
    if (is_transfer && r->offset >= 0)
        sv_batch_int(b, d->words.offset, r->offset);
    if (r->res < 0)
        sv_batch_int(b, d->words.error, -(int64_t)r->res);
    else if (is_transfer)
        sv_batch_int(b, d->words.bytes, r->res);
    else if (r->res > 0 && !opens(op))
        sv_batch_int(b, d->words.ret, r->res);
}

/* A begin and an end. */
static void put_request(struct sv_decode *d, struct uring *u, struct sv_batch *b,
                        const struct sv_wire_uring *r, const struct sv_file *f)
{
    int64_t start = (int64_t)r->start_ns, end = (int64_t)r->head.ts_ns;
    unsigned opcode = r->head.what;
    sv_track lane = lane_of(d, &r->head, &start, &end);
    struct sv_event *e = sv_batch_put(b, SV_BEGIN, start, lane, name_of(u, d->source.dict, opcode),
                                      d->words.cat_io_uring);
    if (opcode >= URING_OPS || !op_names[opcode])
        sv_batch_int(b, d->words.opcode, opcode);
    if (opens(opcode) && r->res >= 0 && !r->len)
        sv_batch_int(b, d->words.fd, r->res);
    else if (r->fd >= 0 && is_on_file(opcode))
        sv_batch_int(b, r->head.flags & SV_WIRE_FIXED_FILE ? d->words.fixed_file : d->words.fd,
                     r->fd);
    if (f)
        sv_decode_path(b, d->words.path, f->path, f->len);
    put_result(d, b, r);
    sv_batch_finish(b, e);
    sv_batch_put(b, SV_END, end, lane, 0, 0);
}

static void add_sums(struct sv_proc *p, const struct sv_wire_uring *r, struct sv_file *f)
{
    uint64_t bytes = r->res > 0 ? (uint64_t)r->res : 0;
    bool reads = is_read(r->head.what), writes = is_write(r->head.what);
    p->bytes_read += reads ? bytes : 0;
    p->bytes_written += writes ? bytes : 0;
    if (!f)
        return;
    f->opens += opens(r->head.what);
    f->reads += reads;
    f->writes += writes;
    f->read_bytes += reads ? bytes : 0;
    f->written_bytes += writes ? bytes : 0;
    f->errors += r->res < 0;
}

/* A file of the ring's own table: it was open when it was put there, and mostly still is. */
static const struct sv_file *fixed_file(struct sv_decode *d, struct sv_proc *p,
                                        const struct sv_wire_uring *r)
{
    enum { OPEN_FILES_MAX = 256 };
    const struct sv_fd *at;
    for (size_t i = 0; d->options.asks_procfs && (at = sv_fds_next(p, &i)) && i < OPEN_FILES_MAX;
         i++)
        if (at->file)
            sv_inodes_identify(&d->inodes, &d->tree, at->file);
    return sv_inodes_find(&d->inodes, &d->tree, r->device, r->inode, NULL);
}

/* The path of an open that is under way. */
static bool decode_path(struct sv_decode *d, struct uring *u, struct sv_proc *p,
                        const struct sv_wire_uring *r, uint32_t size)
{
    const char *text = (const char *)(r + 1);
    size_t left = size - sizeof *r, len = strnlen(text, left);
    struct sv_fd *now;
    bool is_new;
    if (len == left || !opens(r->head.what))
        return false;
    if (u->opens.n >= OPENS_MAX)
        return true;
    const struct sv_file *from =
        r->fd == AT_FDCWD
            ? p->cwd
            : sv_fd_find(p, r->fd, (struct sv_fd_when){.start_ns = r->start_ns}, &now);
    uint64_t *at = sv_map_add(&u->opens, open_key(r), &is_new);
    if (!is_new)
        sv_file_put(&d->tree, (struct sv_file *)(uintptr_t)*at);
    *at = (uint64_t)(uintptr_t)sv_tree_file_of(&d->tree, p, from, text, len);
    return true;
}

/* The file of an open that is complete, held: its descriptor is known from now on. */
static struct sv_file *opened(struct sv_decode *d, struct uring *u, struct sv_proc *p,
                              const struct sv_wire_uring *r)
{
    const uint64_t *at = sv_map_find(&u->opens, open_key(r));
    struct sv_file *f = at ? (struct sv_file *)(uintptr_t)*at : NULL;
    if (at)
        sv_map_remove(&u->opens, open_key(r));
    if (f && r->res >= 0 && !r->len) {
        f->refs++;
        sv_fd_open(&d->tree, p, r->res, (struct sv_fd){.file = f, .since_ns = r->head.ts_ns},
                   false);
    }
    return f;
}

static void close_uring(struct sv_decode *d, void *state)
{
    struct uring *u = state;
    for (size_t i = 0; i < u->opens.cap; i++)
        if (u->opens.used[i])
            sv_file_put(&d->tree, (struct sv_file *)(uintptr_t)u->opens.slots[i].value);
    sv_map_fini(&u->opens);
}

static bool decode_uring(struct sv_decode *d, void *state, struct sv_batch *b,
                         const struct sv_wire_head *record, uint32_t size)
{
    const struct sv_wire_uring *r = (const void *)record;
    struct sv_proc *p = sv_decode_process(d, r->head.tgid);
    unsigned op = record->what;
    if (r->head.flags & SV_WIRE_URING_OPENS)
        return decode_path(d, state, p, r, size);
    bool has_fd = r->fd >= 0 && !(r->head.flags & SV_WIRE_FIXED_FILE) && is_on_file(op);
    const struct sv_fd_when when = {.start_ns = r->start_ns, .inode = r->inode};
    struct sv_fd *now;
    struct sv_file *held = opens(op) ? opened(d, state, p, r)
                           : has_fd  ? sv_decode_descriptor(d, p, r->fd, when, &now)
                                     : NULL;
    const struct sv_file *f = held;
    if (op == OP_CLOSE && has_fd && r->res == 0)
        sv_fd_close(&d->tree, p, r->fd, when, now, r->head.ts_ns);
    if (f && r->inode && f->path[0] == '/')
        sv_inodes_learn(&d->inodes, &d->tree, r->device, r->inode, held);
    else if (!f && r->inode)
        f = fixed_file(d, p, r);
    if (!d->prefix_len || sv_decode_is_below(d, f)) {
        put_request(d, state, b, r, f);
        add_sums(p, r, held);
    }
    sv_file_put(&d->tree, held);
    return true;
}

const struct sv_probe sv_probe_io_uring = {
    .name = "io_uring",
    .cat = SV_CAT_IO_URING,
    .records = {{SV_WIRE_URING, sizeof(struct sv_wire_uring), "io_uring requests", decode_uring}},
    .sums = {{SV_SUM_EVENTS, "io_uring requests", false}},
    .less = "no uring among --calls",
    .docs =
        {"requests of io_uring", "`io_uring` below the thread that submitted them, with lanes",
         "operation, descriptor or number in the ring's table, path, bytes, offset, errno; from "
         "submission to completion"},
    .groups = SV_CALLS_URING,
    .tracepoint = "io_uring_complete",
    .state_size = sizeof(struct uring),
    .close = close_uring,
};
