/* See grpc_client.h. Called by stave-server's thread that sends spans. */
#include "net/grpc_client.h"

#include "net/grpc_library.h"

void sv_grpc_reply_fini(struct sv_grpc_reply *reply)
{
    sv_buf_fini(&reply->body);
    sv_buf_fini(&reply->details);
}

#ifdef SV_HAVE_GRPC
#include "core/base/mem.h"
#include "core/base/printable.h"
#include "net/grpc_message.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ANSWER_MAX = 65536, CONNECT_MS = 5000 };

struct sv_grpc_client {
    const struct sv_grpc_library *f;
    char target[300];
    grpc_channel *channel; /* NULL: the next call makes it */
    grpc_completion_queue *queue;
};

int sv_grpc_client_open(const char *host, const char *port, struct sv_grpc_client **out,
                        struct sv_err *err)
{
    const struct sv_grpc_library *f = sv_grpc_library(err);
    if (!f)
        return SV_EIO;
    struct sv_grpc_client *c = sv_alloc(sizeof *c);
    bool is_v6 = strchr(host, ':') != NULL;
    c->f = f;
    snprintf(c->target, sizeof c->target, "dns:///%s%s%s:%s", is_v6 ? "[" : "", host,
             is_v6 ? "]" : "", port);
    f->grpc_init();
    c->queue = f->grpc_completion_queue_create_for_next(NULL);
    *out = c;
    return 0;
}

/* Its waiting times are those of the caller: one that failed is given back and made anew. */
static grpc_channel *connect_to(const struct sv_grpc_client *c)
{
    static const char agent[] = "stave";
    const struct {
        const char *key;
        int value;
    } numbers[] = {{GRPC_ARG_ENABLE_HTTP_PROXY, 0},
                   {GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1},
                   {GRPC_ARG_ENABLE_RETRIES, 0},
                   {GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1},
                   {GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, CONNECT_MS},
                   {GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, ANSWER_MAX}};
    enum { N = sizeof numbers / sizeof *numbers };
    grpc_arg args[N + 1];
    for (size_t i = 0; i < N; i++) {
        args[i] = (grpc_arg){.type = GRPC_ARG_INTEGER, .key = (char *)(uintptr_t)numbers[i].key};
        args[i].value.integer = numbers[i].value;
    }
    args[N] = (grpc_arg){.type = GRPC_ARG_STRING,
                         .key = (char *)(uintptr_t)GRPC_ARG_PRIMARY_USER_AGENT_STRING};
    args[N].value.string = (char *)(uintptr_t)agent;
    const grpc_channel_args all = {N + 1, args};
    grpc_channel_credentials *open = c->f->grpc_insecure_credentials_create();
    grpc_channel *channel = c->f->grpc_channel_create(c->target, open, &all);
    c->f->grpc_channel_credentials_release(open);
    return channel;
}

/* All that one call brings. */
struct call {
    grpc_call *call;
    grpc_byte_buffer *message, *answer;
    grpc_metadata_array headers, trailers;
    grpc_status_code status;
    grpc_slice why;
};

/* Sends the message and waits for the end of the call: its deadline is its limit. */
static void run(const struct sv_grpc_client *c, struct call *k)
{
    grpc_op ops[6];
    memset(ops, 0, sizeof ops);
    ops[0].op = GRPC_OP_SEND_INITIAL_METADATA;
    ops[1].op = GRPC_OP_SEND_MESSAGE;
    ops[1].data.send_message.send_message = k->message;
    ops[2].op = GRPC_OP_SEND_CLOSE_FROM_CLIENT;
    ops[3].op = GRPC_OP_RECV_INITIAL_METADATA;
    ops[3].data.recv_initial_metadata.recv_initial_metadata = &k->headers;
    ops[4].op = GRPC_OP_RECV_MESSAGE;
    ops[4].data.recv_message.recv_message = &k->answer;
    ops[5].op = GRPC_OP_RECV_STATUS_ON_CLIENT;
    ops[5].data.recv_status_on_client.trailing_metadata = &k->trailers;
    ops[5].data.recv_status_on_client.status = &k->status;
    ops[5].data.recv_status_on_client.status_details = &k->why;
    if (c->f->grpc_call_start_batch(k->call, ops, sizeof ops / sizeof *ops, k, NULL) !=
        GRPC_CALL_OK)
        return;
    gpr_timespec never = c->f->gpr_inf_future(GPR_CLOCK_REALTIME);
    while (c->f->grpc_completion_queue_next(c->queue, never, NULL).type != GRPC_OP_COMPLETE)
        ;
}

static void read_answer(const struct call *k, struct sv_grpc_reply *reply)
{
    struct sv_grpc_message m;
    if (k->answer) {
        if (sv_grpc_message_open(&m, k->answer, ANSWER_MAX) == SV_GRPC_OK)
            sv_buf_add(&reply->body, m.bytes, m.len);
        sv_grpc_message_close(&m);
    }
    for (size_t i = 0; i < k->trailers.count; i++) {
        static const char key[] = "grpc-status-details-bin";
        const grpc_metadata *t = &k->trailers.metadata[i];
        if (GRPC_SLICE_LENGTH(t->key) == sizeof key - 1 &&
            memcmp(GRPC_SLICE_START_PTR(t->key), key, sizeof key - 1) == 0)
            sv_buf_add(&reply->details, GRPC_SLICE_START_PTR(t->value),
                       GRPC_SLICE_LENGTH(t->value));
    }
    struct sv_buf words;
    size_t n = GRPC_SLICE_LENGTH(k->why);
    sv_buf_init(&words, 4096);
    sv_buf_printable(&words, (const char *)GRPC_SLICE_START_PTR(k->why), n < 150 ? n : 150);
    snprintf(reply->why, sizeof reply->why, "%s", sv_buf_cstr(&words));
    sv_buf_fini(&words);
}

void sv_grpc_client_call(struct sv_grpc_client *c, const char *method, const void *bytes,
                         size_t len, int64_t limit_ms, struct sv_grpc_reply *reply)
{
    const struct sv_grpc_library *f = c->f;
    struct call k = {.status = GRPC_STATUS_INTERNAL};
    *reply = (struct sv_grpc_reply){0};
    sv_buf_init(&reply->body, ANSWER_MAX);
    sv_buf_init(&reply->details, ANSWER_MAX);
    if (!c->channel)
        c->channel = connect_to(c);
    grpc_slice path = f->grpc_slice_from_copied_buffer(method, strlen(method));
    grpc_slice slice = f->grpc_slice_from_copied_buffer(bytes, len);
    gpr_timespec until = f->gpr_time_add(f->gpr_now(GPR_CLOCK_MONOTONIC),
                                         f->gpr_time_from_millis(limit_ms, GPR_TIMESPAN));
    f->grpc_metadata_array_init(&k.headers);
    f->grpc_metadata_array_init(&k.trailers);
    k.why = f->grpc_slice_from_copied_buffer("", 0);
    k.message = f->grpc_raw_byte_buffer_create(&slice, 1);
    k.call = f->grpc_channel_create_call(c->channel, NULL, GRPC_PROPAGATE_DEFAULTS, c->queue, path,
                                         NULL, until, NULL);
    run(c, &k);
    read_answer(&k, reply);
    reply->status = (unsigned)k.status;
    f->grpc_call_unref(k.call);
    f->grpc_byte_buffer_destroy(k.message);
    if (k.answer)
        f->grpc_byte_buffer_destroy(k.answer);
    f->grpc_metadata_array_destroy(&k.headers);
    f->grpc_metadata_array_destroy(&k.trailers);
    f->grpc_slice_unref(k.why);
    f->grpc_slice_unref(slice);
    f->grpc_slice_unref(path);
    if (k.status == GRPC_STATUS_UNAVAILABLE || k.status == GRPC_STATUS_DEADLINE_EXCEEDED) {
        f->grpc_channel_destroy(c->channel);
        c->channel = NULL;
    }
}

void sv_grpc_client_close(struct sv_grpc_client *c)
{
    if (!c)
        return;
    const struct sv_grpc_library *f = c->f;
    if (c->channel)
        f->grpc_channel_destroy(c->channel);
    f->grpc_completion_queue_shutdown(c->queue);
    gpr_timespec never = f->gpr_inf_future(GPR_CLOCK_REALTIME);
    while (f->grpc_completion_queue_next(c->queue, never, NULL).type != GRPC_QUEUE_SHUTDOWN)
        ;
    f->grpc_completion_queue_destroy(c->queue);
    f->grpc_shutdown();
    free(c);
}

#else

int sv_grpc_client_open(const char *host, const char *port, struct sv_grpc_client **out,
                        struct sv_err *err)
{
    char why[256];
    (void)host;
    (void)port;
    *out = NULL;
    sv_grpc_version(why, sizeof why);
    return sv_error(err, SV_EIO, "%s", why);
}

void sv_grpc_client_close(struct sv_grpc_client *c)
{
    (void)c;
}

void sv_grpc_client_call(struct sv_grpc_client *c, const char *method, const void *bytes,
                         size_t len, int64_t limit_ms, struct sv_grpc_reply *reply)
{
    (void)c;
    (void)method;
    (void)bytes;
    (void)len;
    (void)limit_ms;
    *reply = (struct sv_grpc_reply){.status = SV_GRPC_UNIMPLEMENTED};
}
#endif
