/* The gRPC server's loop: see grpc.h.
 *
 * Threads take completions from one queue. Each operation in work, and each message that is not
 * answered, holds a reference on its call; the last one frees it. A call's lock orders its
 * operations (the library demands it) and is taken at every completion, so that what one thread
 * wrote before an operation is seen by the thread that gets its end. */
#include "net/grpc.h"

#include "net/grpc_library.h"

#ifdef SV_HAVE_GRPC
#include "core/base/mem.h"
#include "core/base/now.h"
#include "core/files/peer.h"
#include "net/grpc_message.h"
#include "net/listen_socket.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define THREADS_MAX 16
#define SWEEP_MS    250
#define AWAITED \
    64 /* calls that find somebody who takes them; the others the library would cancel at a stop */

/* The library orders what is before an operation and after its end; ThreadSanitizer cannot see
 * it. */
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SEES_THREADS 1
#endif
#elif defined(__SANITIZE_THREAD__)
#define SEES_THREADS 1
#endif
#ifdef SEES_THREADS
void __tsan_acquire(void *address);
void __tsan_release(void *address);
#define HAND_OVER(tag) __tsan_release(tag)
#define TAKE_OVER(tag) __tsan_acquire(tag)
#else
#define HAND_OVER(tag) (void)(tag)
#define TAKE_OVER(tag) (void)(tag)
#endif

enum what { CAME, READ, SENT, CLOSED, STOPPED };

struct event {
    enum what what;
    struct sv_grpc_call *call;
};

struct answer {
    struct answer *next;
    grpc_byte_buffer *message;
};

struct sv_grpc_call {
    struct sv_grpc *server;
    const struct sv_grpc_method *method;
    struct event came, read, sent, closed;
    _Atomic uint32_t refs;
    _Atomic bool is_gone;
    grpc_call *call;
    grpc_call_details details;
    grpc_metadata_array headers;
    bool is_open;                      /* and therefore in the list of open calls: */
    struct sv_grpc_call *next, **back; /* under the server's lock */
    /* Below: under the lock. */
    pthread_mutex_t lock;
    grpc_byte_buffer *in;
    int was_cancelled;
    bool is_reading, is_sending, has_read_all, has_sent_headers, has_ended;
    bool has_header;
    grpc_metadata header; /* of the answer */
    unsigned owed;        /* messages whose answer is not sent yet */
    struct answer *first, **last, *sending;
    bool wants_end;
    enum sv_grpc_status status;
    char why[512];
    int64_t read_since_ms;
};

struct sv_grpc {
    struct sv_grpc_options o;
    const struct sv_grpc_library *f;
    grpc_server *server;
    grpc_completion_queue *queue;
    grpc_resource_quota *quota;
    struct event stopped;
    uint16_t port;
    struct sockaddr_in own; /* the address that it listens on */
    pthread_t threads[THREADS_MAX];
    unsigned n_threads;
    _Atomic uint64_t calls, failed, gone, late, refused;
    _Atomic int64_t swept_ms, came_ms; /* when the last call came */
    _Atomic bool is_draining;          /* new calls are refused by us */
    _Atomic bool is_stopping;          /* and by the library, which does it less kindly */
    /* Below: under the lock. */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct sv_grpc_call *open;
    uint32_t n_open;
    bool is_down; /* the library has no call left */
    struct adopted *adopted;
    size_t n_adopted, cap_adopted;
};

/* A connection that was given to it. The library closes it and does not say when: its descriptor
 * may be another one by then, whose client has another address. */
struct adopted {
    int fd;
    struct sockaddr_in from;
};

/* ---- the life of a call ---- */

static void hold(struct sv_grpc_call *c)
{
    atomic_fetch_add_explicit(&c->refs, 1, memory_order_relaxed);
}

/* Of a call found in the list, which may be at its end already. */
static bool hold_if_alive(struct sv_grpc_call *c)
{
    uint32_t n = atomic_load_explicit(&c->refs, memory_order_relaxed);
    while (n && !atomic_compare_exchange_weak_explicit(&c->refs, &n, n + 1, memory_order_relaxed,
                                                       memory_order_relaxed))
        ;
    return n != 0;
}

static struct sv_grpc_call *new_call(struct sv_grpc *g)
{
    struct sv_grpc_call *c = sv_alloc(sizeof *c);
    c->server = g;
    c->came = (struct event){CAME, c};
    c->read = (struct event){READ, c};
    c->sent = (struct event){SENT, c};
    c->closed = (struct event){CLOSED, c};
    c->last = &c->first;
    atomic_store_explicit(&c->refs, 1, memory_order_relaxed);
    pthread_mutex_init(&c->lock, NULL);
    g->f->grpc_call_details_init(&c->details);
    g->f->grpc_metadata_array_init(&c->headers);
    return c;
}

static void drop_answers(struct sv_grpc_call *c)
{
    for (struct answer *a = c->first, *next; a; a = next) {
        next = a->next;
        c->server->f->grpc_byte_buffer_destroy(a->message);
        free(a);
    }
    c->first = NULL;
    c->last = &c->first;
}

static void release(struct sv_grpc_call *c)
{
    struct sv_grpc *g = c->server;
    if (atomic_fetch_sub_explicit(&c->refs, 1, memory_order_acq_rel) != 1)
        return;
    drop_answers(c);
    g->f->grpc_call_details_destroy(&c->details);
    g->f->grpc_metadata_array_destroy(&c->headers);
    if (c->has_header) {
        g->f->grpc_slice_unref(c->header.key);
        g->f->grpc_slice_unref(c->header.value);
    }
    if (c->call)
        g->f->grpc_call_unref(c->call);
    /* The last use of the server, which may be closed after it. */
    if (c->is_open) {
        pthread_mutex_lock(&g->lock);
        *c->back = c->next;
        if (c->next)
            c->next->back = c->back;
        if (--g->n_open == 0)
            pthread_cond_broadcast(&g->changed);
        pthread_mutex_unlock(&g->lock);
    }
    pthread_mutex_destroy(&c->lock);
    free(c);
}

/* ---- operations; with the call's lock ---- */

static bool begin(struct sv_grpc_call *c, const grpc_op *ops, size_t n, struct event *tag)
{
    hold(c);
    HAND_OVER(tag);
    if (c->server->f->grpc_call_start_batch(c->call, ops, n, tag, NULL) == GRPC_CALL_OK)
        return true;
    /* Not the last one: the caller has its own. */
    atomic_fetch_sub_explicit(&c->refs, 1, memory_order_relaxed);
    atomic_store_explicit(&c->is_gone, true, memory_order_relaxed);
    return false;
}

static void begin_read(struct sv_grpc_call *c)
{
    grpc_op op = {.op = GRPC_OP_RECV_MESSAGE};
    op.data.recv_message.recv_message = &c->in;
    c->read_since_ms = sv_now_ms();
    c->is_reading = begin(c, &op, 1, &c->read);
}

/* The next answer, or the end of the call, whichever is due. */
static void send_next(struct sv_grpc_call *c)
{
    grpc_op ops[3];
    size_t n = 0;
    grpc_slice details;
    const struct sv_grpc_library *f = c->server->f;
    bool is_stream = c->method->is_stream;
    struct answer *a = c->wants_end ? NULL : c->first;
    bool ends = c->wants_end || (a && !is_stream) || (!a && c->has_read_all && c->owed == 0);
    if (c->is_sending || c->has_ended || (!a && !ends) || sv_grpc_is_gone(c))
        return;
    memset(ops, 0, sizeof ops);
    if (!c->has_sent_headers) {
        ops[n].data.send_initial_metadata.count = c->has_header;
        ops[n].data.send_initial_metadata.metadata = c->has_header ? &c->header : NULL;
        ops[n++].op = GRPC_OP_SEND_INITIAL_METADATA;
    }
    if (a) {
        c->first = a->next;
        c->last = c->first ? c->last : &c->first;
        c->sending = a;
        ops[n].op = GRPC_OP_SEND_MESSAGE;
        ops[n++].data.send_message.send_message = a->message;
    }
    if (ends) {
        details = f->grpc_slice_from_copied_buffer(c->why, strlen(c->why));
        ops[n].op = GRPC_OP_SEND_STATUS_FROM_SERVER;
        ops[n].data.send_status_from_server.status = (grpc_status_code)c->status;
        ops[n++].data.send_status_from_server.status_details = &details;
    }
    c->has_sent_headers = true;
    c->has_ended = ends;
    c->is_sending = begin(c, ops, n, &c->sent);
    if (ends)
        f->grpc_slice_unref(details);
}

static const char stops[] = "the server stops";

static void end_with(struct sv_grpc_call *c, enum sv_grpc_status status, const char *why)
{
    if (c->wants_end || c->has_ended)
        return;
    c->wants_end = true;
    c->status = status;
    size_t n = strlen(why);
    n = n < sizeof c->why ? n : sizeof c->why - 1;
    memcpy(c->why, why, n);
    atomic_fetch_add_explicit(&c->server->failed, 1, memory_order_relaxed);
    send_next(c);
}

/* A stream takes no more messages when the server stops: it ends after the answers that it owes. */
static void end_if_stopping(struct sv_grpc_call *c)
{
    if (c->method && c->method->is_stream && c->owed == 0 && !c->has_read_all &&
        atomic_load(&c->server->is_draining))
        end_with(c, SV_GRPC_UNAVAILABLE, stops);
}

static void read_more(struct sv_grpc_call *c)
{
    if (c->method->is_stream && !c->is_reading && !c->has_read_all && !c->wants_end &&
        c->owed < c->server->o.stream_max && !sv_grpc_is_gone(c))
        begin_read(c);
}

/* ---- answers ---- */

void sv_grpc_answer(struct sv_grpc_call *c, const void *bytes, size_t len)
{
    const struct sv_grpc_library *f = c->server->f;
    struct answer *a = sv_alloc(sizeof *a);
    grpc_slice slice = f->grpc_slice_from_copied_buffer(bytes, len);
    a->message = f->grpc_raw_byte_buffer_create(&slice, 1);
    f->grpc_slice_unref(slice);
    pthread_mutex_lock(&c->lock);
    *c->last = a;
    c->last = &a->next;
    send_next(c);
    pthread_mutex_unlock(&c->lock);
    release(c);
}

void sv_grpc_fail(struct sv_grpc_call *c, enum sv_grpc_status status, const char *message)
{
    pthread_mutex_lock(&c->lock);
    end_with(c, status, message);
    pthread_mutex_unlock(&c->lock);
    release(c);
}

bool sv_grpc_is_gone(const struct sv_grpc_call *c)
{
    return atomic_load_explicit(&c->is_gone, memory_order_relaxed);
}

const char *sv_grpc_header(const struct sv_grpc_call *c, const char *name, size_t *len)
{
    size_t n = strlen(name);
    for (size_t i = 0; i < c->headers.count; i++) {
        const grpc_metadata *m = &c->headers.metadata[i];
        if (GRPC_SLICE_LENGTH(m->key) != n || memcmp(GRPC_SLICE_START_PTR(m->key), name, n) != 0)
            continue;
        *len = GRPC_SLICE_LENGTH(m->value);
        return (const char *)GRPC_SLICE_START_PTR(m->value);
    }
    return NULL;
}

/* "ipv4:127.0.0.1:43210"; whoever is elsewhere has no user here. */
uid_t sv_grpc_uid(const struct sv_grpc_call *c)
{
    static const char kind[] = "ipv4:";
    const struct sv_grpc_library *f = c->server->f;
    struct sockaddr_in from;
    struct sv_err err = {0};
    uid_t uid = SV_PEER_UNKNOWN;
    char *peer = f->grpc_call_get_peer(c->call);
    if (peer && strncmp(peer, kind, sizeof kind - 1) == 0 &&
        sv_address_read(peer + sizeof kind - 1, &from, &err) == 0)
        uid = sv_peer_uid_of((const struct sockaddr *)&c->server->own,
                             (const struct sockaddr *)&from);
    f->gpr_free(peer);
    return uid;
}

void sv_grpc_answer_header(struct sv_grpc_call *c, const char *name, const char *value)
{
    const struct sv_grpc_library *f = c->server->f;
    pthread_mutex_lock(&c->lock);
    if (!c->has_header && !c->has_sent_headers) {
        c->header.key = f->grpc_slice_from_copied_buffer(name, strlen(name));
        c->header.value = f->grpc_slice_from_copied_buffer(value, strlen(value));
        c->has_header = true;
    }
    pthread_mutex_unlock(&c->lock);
}

/* ---- completions ---- */

static const struct sv_grpc_method no_method;

static const struct sv_grpc_method *find_method(const struct sv_grpc *g, grpc_slice path)
{
    for (size_t i = 0; i < g->o.n_methods; i++) {
        const char *known = g->o.methods[i].path;
        if (strlen(known) == GRPC_SLICE_LENGTH(path) &&
            memcmp(known, GRPC_SLICE_START_PTR(path), strlen(known)) == 0)
            return &g->o.methods[i];
    }
    return &no_method;
}

static void await_call(struct sv_grpc *g)
{
    struct sv_grpc_call *c = new_call(g);
    HAND_OVER(&c->came);
    if (atomic_load(&g->is_stopping) ||
        g->f->grpc_server_request_call(g->server, &c->call, &c->details, &c->headers, g->queue,
                                       g->queue, &c->came) != GRPC_CALL_OK)
        release(c);
}

/* false: there are too many. */
static bool enter(struct sv_grpc_call *c)
{
    struct sv_grpc *g = c->server;
    c->is_open = true;
    pthread_mutex_lock(&g->lock);
    c->next = g->open;
    c->back = &g->open;
    if (c->next)
        c->next->back = &c->next;
    g->open = c;
    bool fits = ++g->n_open <= g->o.calls_max;
    pthread_mutex_unlock(&g->lock);
    return fits;
}

static void on_came(struct sv_grpc_call *c, bool is_ok)
{
    struct sv_grpc *g = c->server;
    if (!is_ok) { /* the server stops */
        release(c);
        return;
    }
    await_call(g);
    atomic_fetch_add_explicit(&g->calls, 1, memory_order_relaxed);
    atomic_store_explicit(&g->came_ms, sv_now_ms(), memory_order_relaxed);
    bool fits = enter(c);
    grpc_op op = {.op = GRPC_OP_RECV_CLOSE_ON_SERVER};
    pthread_mutex_lock(&c->lock);
    c->method = find_method(g, c->details.method);
    op.data.recv_close_on_server.cancelled = &c->was_cancelled;
    begin(c, &op, 1, &c->closed);
    if (c->method == &no_method) {
        end_with(c, SV_GRPC_UNIMPLEMENTED, "no such method");
    } else if (atomic_load(&g->is_draining)) {
        end_with(c, SV_GRPC_UNAVAILABLE, stops);
    } else if (!fits) {
        atomic_fetch_add_explicit(&g->refused, 1, memory_order_relaxed);
        end_with(c, SV_GRPC_RESOURCE_EXHAUSTED, "too many open calls");
    } else {
        begin_read(c);
    }
    pthread_mutex_unlock(&c->lock);
    release(c);
}

/* The message is the method's; without one the client has sent its last. */
static void deliver(struct sv_grpc_call *c, grpc_byte_buffer *in)
{
    struct sv_grpc *g = c->server;
    struct sv_grpc_message m;
    enum sv_grpc_status status = sv_grpc_message_open(&m, in, g->o.message_max);
    if (status == SV_GRPC_OK)
        c->method->message(g->o.ctx, c, m.bytes, m.len);
    else
        sv_grpc_fail(c, status, m.why);
    sv_grpc_message_close(&m);
    g->f->grpc_byte_buffer_destroy(in);
}

/* Only after the method has had the last one: messages of a stream come in their order. */
static void read_on(struct sv_grpc_call *c)
{
    pthread_mutex_lock(&c->lock);
    c->is_reading = false;
    read_more(c);
    pthread_mutex_unlock(&c->lock);
}

static void on_read(struct sv_grpc_call *c, bool is_ok)
{
    pthread_mutex_lock(&c->lock);
    grpc_byte_buffer *in = c->in;
    c->in = NULL;
    bool has_message = is_ok && in && !c->wants_end;
    if (has_message) {
        c->owed++;
        hold(c);
    } else {
        c->is_reading = false;
        c->has_read_all = true;
        if (!c->method->is_stream)
            end_with(c, SV_GRPC_INVALID_ARGUMENT, "the call has no message");
        send_next(c);
    }
    pthread_mutex_unlock(&c->lock);
    if (has_message) {
        deliver(c, in);
        read_on(c);
    } else if (in) {
        c->server->f->grpc_byte_buffer_destroy(in);
    }
    release(c);
}

static void on_sent(struct sv_grpc_call *c)
{
    pthread_mutex_lock(&c->lock);
    c->is_sending = false;
    if (c->sending) {
        c->server->f->grpc_byte_buffer_destroy(c->sending->message);
        free(c->sending);
        c->sending = NULL;
        c->owed--;
    }
    end_if_stopping(c);
    send_next(c);
    read_more(c);
    pthread_mutex_unlock(&c->lock);
    release(c);
}

static void on_closed(struct sv_grpc_call *c)
{
    pthread_mutex_lock(&c->lock);
    if (c->was_cancelled) {
        atomic_store_explicit(&c->is_gone, true, memory_order_relaxed);
        atomic_fetch_add_explicit(&c->server->gone, 1, memory_order_relaxed);
    }
    pthread_mutex_unlock(&c->lock);
    release(c);
}

/* ---- all open calls ---- */

/* One that takes too long to send its message. */
static void end_if_late(struct sv_grpc_call *c)
{
    int64_t now = sv_now_ms();
    if (c->is_reading && !c->method->is_stream && !c->wants_end &&
        now - c->read_since_ms > c->server->o.read_ms) {
        atomic_fetch_add_explicit(&c->server->late, 1, memory_order_relaxed);
        end_with(c, SV_GRPC_DEADLINE_EXCEEDED, "the message was not complete in time");
    }
}

static void for_each_open(struct sv_grpc *g, void (*look)(struct sv_grpc_call *c))
{
    struct sv_grpc_call **found;
    size_t n = 0;
    pthread_mutex_lock(&g->lock);
    found = sv_alloc((g->n_open + 1) * sizeof *found);
    for (struct sv_grpc_call *c = g->open; c; c = c->next)
        if (hold_if_alive(c))
            found[n++] = c;
    pthread_mutex_unlock(&g->lock);
    for (size_t i = 0; i < n; i++) {
        pthread_mutex_lock(&found[i]->lock);
        look(found[i]);
        pthread_mutex_unlock(&found[i]->lock);
        release(found[i]);
    }
    free(found);
}

static void sweep(struct sv_grpc *g)
{
    int64_t now = sv_now_ms(), last = atomic_load(&g->swept_ms);
    if (now - last >= SWEEP_MS && atomic_compare_exchange_strong(&g->swept_ms, &last, now))
        for_each_open(g, end_if_late);
}

/* ---- threads ---- */

static void handle(struct sv_grpc *g, const struct event *e, bool is_ok)
{
    switch (e->what) {
    case CAME: on_came(e->call, is_ok); break;
    case READ: on_read(e->call, is_ok); break;
    case SENT: on_sent(e->call); break;
    case CLOSED: on_closed(e->call); break;
    case STOPPED:
        pthread_mutex_lock(&g->lock);
        g->is_down = true;
        pthread_cond_broadcast(&g->changed);
        pthread_mutex_unlock(&g->lock);
        break;
    }
}

static void *run(void *arg)
{
    struct sv_grpc *g = arg;
    const struct sv_grpc_library *f = g->f;
    for (;;) {
        gpr_timespec until = f->gpr_time_add(f->gpr_now(GPR_CLOCK_MONOTONIC),
                                             f->gpr_time_from_millis(SWEEP_MS, GPR_TIMESPAN));
        grpc_event e = f->grpc_completion_queue_next(g->queue, until, NULL);
        if (e.type == GRPC_QUEUE_SHUTDOWN)
            return NULL;
        if (e.type == GRPC_OP_COMPLETE) {
            TAKE_OVER(e.tag);
            handle(g, e.tag, e.success);
        }
        sweep(g);
    }
}

/* ---- opening and closing ---- */

static void set_defaults(struct sv_grpc_options *o)
{
    o->memory_max = o->memory_max ? o->memory_max : (size_t)256 << 20;
    o->threads = o->threads ? o->threads : 1;
    o->threads = o->threads < THREADS_MAX ? o->threads : THREADS_MAX;
    o->calls_max = o->calls_max ? o->calls_max : 1024;
    o->stream_max = o->stream_max ? o->stream_max : 16;
    o->read_ms = o->read_ms ? o->read_ms : 30000;
}

static grpc_arg whole(const char *key, int value)
{
    grpc_arg a = {.type = GRPC_ARG_INTEGER, .key = (char *)(uintptr_t)key};
    a.value.integer = value;
    return a;
}

static grpc_server *create(struct sv_grpc *g)
{
    grpc_arg quota = {.type = GRPC_ARG_POINTER, .key = (char *)(uintptr_t)GRPC_ARG_RESOURCE_QUOTA};
    size_t max = g->o.message_max;
    quota.value.pointer.p = g->quota;
    quota.value.pointer.vtable = g->f->grpc_resource_quota_arg_vtable();
    grpc_arg args[] = {
        whole(GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, max < INT_MAX ? (int)max : INT_MAX),
        whole(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0), /* ours has a limit */
        whole(GRPC_ARG_ALLOW_REUSEPORT, 0),                  /* a port that is taken is an error */
        whole(GRPC_ARG_MAX_CONCURRENT_STREAMS, 256),
        whole(GRPC_ARG_MAX_METADATA_SIZE, 16 << 10),
        whole(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, 10000),
        whole(GRPC_ARG_MAX_CONNECTION_IDLE_MS, 600000),
        whole(GRPC_ARG_KEEPALIVE_TIME_MS, 60000), /* finds clients that vanished */
        whole(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 20000),
        quota,
    };
    grpc_channel_args all = {sizeof args / sizeof *args, args};
    return g->f->grpc_server_create(&all, NULL);
}

/* The library does not say why it cannot listen. */
static int try_port(const char *address, const struct sockaddr_in *a, struct sv_err *err)
{
    int fd = sv_listen_on((const struct sockaddr *)a, sizeof *a, 1);
    if (fd < 0)
        return sv_err_sys(err, "cannot listen on %s for gRPC", address);
    close(fd);
    return 0;
}

static int listen_on(struct sv_grpc *g, const char *address, struct sv_err *err)
{
    struct sockaddr_in a;
    int code = sv_address_read(address, &a, err);
    if (code == 0)
        code = try_port(address, &a, err);
    if (code < 0)
        return code;
    grpc_server_credentials *open = g->f->grpc_insecure_server_credentials_create();
    int port = g->f->grpc_server_add_http2_port(g->server, address, open);
    g->f->grpc_server_credentials_release(open);
    if (port <= 0)
        return sv_error(err, SV_EIO, "cannot listen on %s for gRPC", address);
    g->port = (uint16_t)port;
    g->own = a;
    g->own.sin_port = htons(g->port);
    return 0;
}

int sv_grpc_open(const struct sv_grpc_options *o, const char *address, struct sv_grpc **out,
                 struct sv_err *err)
{
    const struct sv_grpc_library *f = sv_grpc_library(err);
    if (!f)
        return SV_EIO;
    struct sv_grpc *g = sv_alloc(sizeof *g);
    pthread_condattr_t attr;
    g->o = *o;
    g->f = f;
    g->stopped.what = STOPPED;
    set_defaults(&g->o);
    pthread_mutex_init(&g->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&g->changed, &attr);
    pthread_condattr_destroy(&attr);
    f->grpc_init();
    g->quota = f->grpc_resource_quota_create("stave");
    f->grpc_resource_quota_resize(g->quota, g->o.memory_max);
    g->queue = f->grpc_completion_queue_create_for_next(NULL);
    g->server = create(g);
    f->grpc_server_register_completion_queue(g->server, g->queue, NULL);
    int code = address ? listen_on(g, address, err) : 0;
    if (code < 0) {
        sv_grpc_close(g, 0);
        return code;
    }
    *out = g;
    return 0;
}

static int start_thread(struct sv_grpc *g)
{
    int code = pthread_create(&g->threads[g->n_threads], NULL, run, g);
    g->n_threads += code == 0;
    return code;
}

int sv_grpc_start(struct sv_grpc *g, struct sv_err *err)
{
    g->f->grpc_server_start(g->server);
    for (unsigned i = 0; i < AWAITED; i++)
        await_call(g);
    for (unsigned i = 0; i < g->o.threads; i++) {
        errno = start_thread(g);
        if (errno)
            return sv_err_sys(err, "cannot start a thread for gRPC");
    }
    return 0;
}

uint16_t sv_grpc_port(const struct sv_grpc *g)
{
    return g->port;
}

struct sv_grpc_counts sv_grpc_count(struct sv_grpc *g)
{
    pthread_mutex_lock(&g->lock);
    uint32_t open = g->n_open;
    pthread_mutex_unlock(&g->lock);
    return (struct sv_grpc_counts){.calls = atomic_load(&g->calls),
                                   .failed = atomic_load(&g->failed),
                                   .gone = atomic_load(&g->gone),
                                   .late = atomic_load(&g->late),
                                   .refused = atomic_load(&g->refused),
                                   .open = open};
}

void sv_grpc_stop(struct sv_grpc *g)
{
    atomic_store(&g->is_draining, true);
    for_each_open(g, end_if_stopping);
}

static struct timespec after_ms(int64_t ms)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_sec += ms / 1000;
    t.tv_nsec += ms % 1000 * 1000000;
    t.tv_sec += t.tv_nsec / 1000000000;
    t.tv_nsec %= 1000000000;
    return t;
}

/* Until the last open call has ended, and none has come for a moment: whom we
 * refuse learns the reason; whose connection is closed does not. */
static void wait_idle(struct sv_grpc *g, int64_t limit_ms)
{
    enum { QUIET_MS = 100, STEP_MS = 10 };
    int64_t end = sv_now_ms() + limit_ms;
    pthread_mutex_lock(&g->lock);
    while (sv_now_ms() < end && (g->n_open || sv_now_ms() - atomic_load(&g->came_ms) < QUIET_MS)) {
        struct timespec until = after_ms(STEP_MS);
        pthread_cond_timedwait(&g->changed, &g->lock, &until);
    }
    pthread_mutex_unlock(&g->lock);
}

static bool is_still_there(const struct adopted *a)
{
    struct sockaddr_in from;
    socklen_t n = sizeof from;
    return getpeername(a->fd, (struct sockaddr *)&from, &n) == 0 && from.sin_family == AF_INET &&
           from.sin_port == a->from.sin_port && from.sin_addr.s_addr == a->from.sin_addr.s_addr;
}

/* With the lock. Before more memory is taken, those that have ended are forgotten. */
static void remember(struct sv_grpc *g, const struct adopted *a)
{
    size_t n = 0;
    if (g->n_adopted == g->cap_adopted) {
        for (size_t i = 0; i < g->n_adopted; i++)
            if (is_still_there(&g->adopted[i]))
                g->adopted[n++] = g->adopted[i];
        g->n_adopted = n;
        if (2 * n >= g->cap_adopted)
            g->adopted = sv_grow(g->adopted, &g->cap_adopted, 2 * n + 16, sizeof *g->adopted);
    }
    g->adopted[g->n_adopted++] = *a;
}

void sv_grpc_adopt(struct sv_grpc *g, int fd)
{
    struct adopted a = {.fd = fd};
    socklen_t n = sizeof a.from;
    int yes = 1;
    if (getpeername(fd, (struct sockaddr *)&a.from, &n) != 0) { /* it has gone */
        close(fd);
        return;
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    pthread_mutex_lock(&g->lock);
    remember(g, &a);
    pthread_mutex_unlock(&g->lock);
    grpc_server_credentials *open = g->f->grpc_insecure_server_credentials_create();
    g->f->grpc_server_add_channel_from_fd(g->server, fd, open);
    g->f->grpc_server_credentials_release(open);
}

/* Is it the socket that listens on the server's port, or one of its connections? */
static bool is_ours(const struct sv_grpc *g, int fd)
{
    struct sockaddr_storage a;
    socklen_t n = sizeof a;
    if (getsockname(fd, (struct sockaddr *)&a, &n) != 0)
        return false;
    if (a.ss_family == AF_INET)
        return ((const struct sockaddr_in *)(const void *)&a)->sin_port == htons(g->port);
    return a.ss_family == AF_INET6 &&
           ((const struct sockaddr_in6 *)(const void *)&a)->sin6_port == htons(g->port);
}

/* From here on nothing can be sent, and nobody can connect. The library resets the streams that it
 * finds after its stop, and their clients take that for an answer (CANCELLED). Without a writing
 * side no reset reaches them: they see the connection close, which is UNAVAILABLE to them. The
 * library gives no access to its sockets. */
static void hang_up(struct sv_grpc *g)
{
    pthread_mutex_lock(&g->lock);
    for (size_t i = 0; i < g->n_adopted; i++)
        if (is_still_there(&g->adopted[i]))
            shutdown(g->adopted[i].fd, SHUT_WR);
    pthread_mutex_unlock(&g->lock);
    DIR *d = g->port ? opendir("/proc/self/fd") : NULL;
    for (const struct dirent *e; d && (e = readdir(d));) {
        int listens = 0, fd = (int)strtol(e->d_name, NULL, 10);
        socklen_t n = sizeof listens;
        if (e->d_name[0] == '.' || fd == dirfd(d) || !is_ours(g, fd))
            continue;
        getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &n);
        shutdown(fd, listens ? SHUT_RD : SHUT_WR);
    }
    if (d)
        closedir(d);
}

static bool wait_down(struct sv_grpc *g, int64_t limit_ms)
{
    struct timespec until = after_ms(limit_ms);
    pthread_mutex_lock(&g->lock);
    while ((!g->is_down || g->n_open) &&
           pthread_cond_timedwait(&g->changed, &g->lock, &until) != ETIMEDOUT)
        ;
    bool is_down = g->is_down && g->n_open == 0;
    pthread_mutex_unlock(&g->lock);
    return is_down;
}

static void destroy(struct sv_grpc *g)
{
    const struct sv_grpc_library *f = g->f;
    f->grpc_completion_queue_shutdown(g->queue);
    for (unsigned i = 0; i < g->n_threads; i++)
        pthread_join(g->threads[i], NULL);
    f->grpc_server_destroy(g->server);
    f->grpc_completion_queue_destroy(g->queue);
    f->grpc_resource_quota_unref(g->quota);
    f->grpc_shutdown();
    pthread_mutex_destroy(&g->lock);
    pthread_cond_destroy(&g->changed);
    free(g->adopted);
    free(g);
}

bool sv_grpc_close(struct sv_grpc *g, int64_t limit_ms)
{
    enum { CANCELLED_MS = 5000 };
    if (!g)
        return true;
    /* One that was never started has nobody who takes the end of its stop. */
    if (g->n_threads == 0 && start_thread(g) != 0)
        return false;
    sv_grpc_stop(g);
    wait_idle(g, limit_ms);
    hang_up(g);
    hang_up(g); /* what was being accepted the first time */
    atomic_store(&g->is_stopping, true);
    g->f->grpc_server_shutdown_and_notify(g->server, g->queue, &g->stopped);
    if (!wait_down(g, 100)) {
        g->f->grpc_server_cancel_all_calls(g->server);
        if (!wait_down(g, CANCELLED_MS))
            return false;
    }
    destroy(g);
    return true;
}

#else
/* ---- without the library ---- */

int sv_grpc_open(const struct sv_grpc_options *o, const char *address, struct sv_grpc **out,
                 struct sv_err *err)
{
    char why[256];
    (void)o;
    (void)address;
    *out = NULL;
    sv_grpc_version(why, sizeof why);
    return sv_error(err, SV_EIO, "%s", why);
}

int sv_grpc_start(struct sv_grpc *g, struct sv_err *err)
{
    (void)g;
    return sv_error(err, SV_EIO, "no gRPC");
}

uint16_t sv_grpc_port(const struct sv_grpc *g)
{
    (void)g;
    return 0;
}

struct sv_grpc_counts sv_grpc_count(struct sv_grpc *g)
{
    (void)g;
    return (struct sv_grpc_counts){0};
}

void sv_grpc_adopt(struct sv_grpc *g, int fd)
{
    (void)g;
    (void)fd;
}

void sv_grpc_stop(struct sv_grpc *g)
{
    (void)g;
}

bool sv_grpc_close(struct sv_grpc *g, int64_t limit_ms)
{
    (void)g;
    (void)limit_ms;
    return true;
}

void sv_grpc_answer(struct sv_grpc_call *c, const void *bytes, size_t len)
{
    (void)c;
    (void)bytes;
    (void)len;
}

void sv_grpc_fail(struct sv_grpc_call *c, enum sv_grpc_status status, const char *message)
{
    (void)c;
    (void)status;
    (void)message;
}

bool sv_grpc_is_gone(const struct sv_grpc_call *c)
{
    (void)c;
    return true;
}

const char *sv_grpc_header(const struct sv_grpc_call *c, const char *name, size_t *len)
{
    (void)c;
    (void)name;
    (void)len;
    return NULL;
}

uid_t sv_grpc_uid(const struct sv_grpc_call *c)
{
    (void)c;
    return (uid_t)-1;
}

void sv_grpc_answer_header(struct sv_grpc_call *c, const char *name, const char *value)
{
    (void)c;
    (void)name;
    (void)value;
}
#endif
