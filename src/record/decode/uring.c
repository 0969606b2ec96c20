/* Requests of io_uring to events. Called by the decoder for each completion. Operations that this table does not have yet are shown by number. */
#include "record/decode/uring.h"

#include <stdio.h>

/* The kernel's numbers (include/uapi/linux/io_uring.h). */
enum {
    OP_READV = 1,
    OP_WRITEV = 2,
    OP_READ_FIXED = 4,
    OP_WRITE_FIXED = 5,
    OP_SEND = 26,
    OP_RECV = 27,
    OP_READ = 22,
    OP_WRITE = 23
};

static const char *const names[SV_URING_OPS] = {"nop",
                                                "readv",
                                                "writev",
                                                "fsync",
                                                "read_fixed",
                                                "write_fixed",
                                                "poll_add",
                                                "poll_remove",
                                                "sync_file_range",
                                                "sendmsg",
                                                "recvmsg",
                                                "timeout",
                                                "timeout_remove",
                                                "accept",
                                                "async_cancel",
                                                "link_timeout",
                                                "connect",
                                                "fallocate",
                                                "openat",
                                                "close",
                                                "files_update",
                                                "statx",
                                                "read",
                                                "write",
                                                "fadvise",
                                                "madvise",
                                                "send",
                                                "recv",
                                                "openat2",
                                                "epoll_ctl",
                                                "splice",
                                                "provide_buffers",
                                                "remove_buffers",
                                                "tee",
                                                "shutdown",
                                                "renameat",
                                                "unlinkat",
                                                "mkdirat",
                                                "symlinkat",
                                                "linkat",
                                                "msg_ring",
                                                "fsetxattr",
                                                "setxattr",
                                                "fgetxattr",
                                                "getxattr",
                                                "socket",
                                                "uring_cmd",
                                                "send_zc",
                                                "sendmsg_zc",
                                                "read_multishot",
                                                "waitid",
                                                "futex_wait",
                                                "futex_wake",
                                                "futex_waitv",
                                                "fixed_fd_install",
                                                "ftruncate",
                                                "bind",
                                                "listen",
                                                "recv_zc",
                                                "epoll_wait",
                                                "readv_fixed",
                                                "writev_fixed"};

bool sv_uring_is_read(unsigned opcode)
{
    return opcode == OP_READV || opcode == OP_READ_FIXED || opcode == OP_READ || opcode == OP_RECV;
}

bool sv_uring_is_write(unsigned opcode)
{
    return opcode == OP_WRITEV || opcode == OP_WRITE_FIXED || opcode == OP_WRITE ||
           opcode == OP_SEND;
}

void sv_uring_init(struct sv_uring *u, struct sv_dict *dict)
{
    *u = (struct sv_uring){.cat = sv_dict_cstr(dict, "io_uring"),
                           .row = sv_dict_cstr(dict, "io_uring"),
                           .fd = sv_dict_cstr(dict, "fd"),
                           .fixed_fd = sv_dict_cstr(dict, "fixed_file"),
                           .requested = sv_dict_cstr(dict, "requested"),
                           .bytes = sv_dict_cstr(dict, "bytes"),
                           .offset = sv_dict_cstr(dict, "offset"),
                           .ret = sv_dict_cstr(dict, "ret"),
                           .error = sv_dict_cstr(dict, "errno"),
                           .opcode = sv_dict_cstr(dict, "opcode")};
}

static sv_str name_of(struct sv_uring *u, struct sv_dict *dict, unsigned opcode)
{
    char text[48] = "io_uring_request";
    if (opcode >= SV_URING_OPS || !names[opcode])
        return sv_dict_cstr(dict, text);
    if (u->names[opcode] == 0) {
        snprintf(text, sizeof text, "io_uring_%s", names[opcode]);
        u->names[opcode] = sv_dict_cstr(dict, text);
    }
    return u->names[opcode];
}

struct sv_event *sv_uring_begin(struct sv_uring *u, struct sv_tree *t, struct sv_batch *b,
                                const struct sv_wire_uring *r, int64_t *end_ns)
{
    struct sv_traced_thread *x = sv_tree_thread(t, r->head.tgid, r->head.tid);
    int64_t start = (int64_t)r->start_ns;
    unsigned opcode = r->head.what;
    *end_ns = (int64_t)r->head.ts_ns;
    if (!x->uring) {
        x->uring = sv_alloc(sizeof *x->uring);
        sv_rows_init(x->uring, sv_dict_child(t->dict, x->track, SV_TRACK_CUSTOM, u->row));
    }
    sv_track lane = sv_rows_take(x->uring, t->dict, &start, end_ns);
    struct sv_event *e = sv_batch_event(b);
    *e = (struct sv_event){.kind = SV_BEGIN,
                           .ts_ns = start,
                           .track = lane,
                           .name = name_of(u, t->dict, opcode),
                           .cat = u->cat};
    if (opcode >= SV_URING_OPS || !names[opcode])
        sv_batch_int(b, u->opcode, opcode);
    if (r->fd >= 0 && opcode != 0)
        sv_batch_int(b, r->head.flags & SV_WIRE_FIXED_FILE ? u->fixed_fd : u->fd, r->fd);
    return e;
}

void sv_uring_end(struct sv_uring *u, struct sv_batch *b, struct sv_event *begin,
                  const struct sv_wire_uring *r, int64_t end_ns)
{
    unsigned op = r->head.what;
    bool is_transfer = sv_uring_is_read(op) || sv_uring_is_write(op);
    bool has_len = is_transfer && op != OP_READV && op != OP_WRITEV && op != OP_SEND &&
                   op != OP_RECV; /* of a vector it is the number of buffers */
    if (has_len && (int64_t)r->len != r->res)
        sv_batch_int(b, u->requested, r->len);
    if (is_transfer && r->offset >= 0)
        sv_batch_int(b, u->offset, r->offset);
    if (r->res < 0)
        sv_batch_int(b, u->error, -(int64_t)r->res);
    else if (is_transfer)
        sv_batch_int(b, u->bytes, r->res);
    else if (r->res > 0)
        sv_batch_int(b, u->ret, r->res);
    sv_batch_finish(b, begin);
    struct sv_event *e = sv_batch_event(b);
    *e = (struct sv_event){.kind = SV_END, .ts_ns = end_ns, .track = begin->track};
}
