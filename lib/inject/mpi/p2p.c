/* Sends, receives and probes. A slice begins before MPI's call, so that one which never returns is
 * in the trace, too. */
#include "mpi_inject.h"

/* ---- sends ---- */

#define BEGIN_SEND(name, m)                                                                       \
    do {                                                                                          \
        if ((m).flow)                                                                             \
            STAVE_BEGIN(CAT_MPI, name, "op", "send", "group", (m).group, "peer", (m).peer, "tag", \
                        (m).tag, "bytes", (m).bytes, "seq", (m).seq, STAVE_FLOW_OUT, (m).flow);   \
        else                                                                                      \
            STAVE_BEGIN(CAT_MPI, name, "op", "send", "group", (m).group, "peer", (m).peer, "tag", \
                        (m).tag, "bytes", (m).bytes);                                             \
    } while (0)

#define SEND(name, params, args)                                          \
    int mpi_on_##name params                                              \
    {                                                                     \
        int code;                                                         \
        if (mpi_depth)                                                    \
            return mpi->calls.name args;                                  \
        struct mpi_message m = mpi_sending(count, type, dest, tag, comm); \
        BEGIN_SEND("MPI_" #name, m);                                      \
        CALL_MPI(code, name, args);                                       \
        END_CALL(CAT_MPI, code);                                          \
        return code;                                                      \
    }
MPI_SENDS(SEND)
MPI_ISENDS(SEND)

/* Nothing is sent yet: MPI_Start() does. */
static void track_persistent(MPI_Request request, enum mpi_kind kind, uint64_t bytes, int peer,
                             int tag, MPI_Comm comm)
{
    if (peer == MPI_PROC_NULL)
        return;
    mpi_lock();
    struct mpi_comm *c = mpi_comm_of(comm);
    mpi_unlock();
    mpi_track(request, &(struct mpi_request){.kind = kind,
                                             .is_persistent = true,
                                             .comm = c,
                                             .peer = peer,
                                             .tag = tag,
                                             .bytes = bytes});
}

#define SEND_INIT(name, params, args)                                                           \
    int mpi_on_##name params                                                                    \
    {                                                                                           \
        int code;                                                                               \
        if (mpi_depth)                                                                          \
            return mpi->calls.name args;                                                        \
        STAVE_BEGIN(CAT_MPI, "MPI_" #name);                                                     \
        CALL_MPI(code, name, args);                                                             \
        END_CALL(CAT_MPI, code);                                                                \
        if (code == MPI_SUCCESS)                                                                \
            track_persistent(*request, MPI_KIND_SEND, mpi_bytes(count, type), dest, tag, comm); \
        return code;                                                                            \
    }
MPI_SEND_INITS(SEND_INIT)

/* ---- receives ---- */

/* A receive that has begun. */
struct receiving {
    struct mpi_post *post;
    struct mpi_comm *comm;
    const char *group;
    int peer, tag;
};

static struct receiving receiving(int source, int tag, MPI_Comm comm)
{
    mpi_lock();
    struct mpi_comm *c = mpi_comm_of(comm);
    struct receiving r = {.post = mpi_post_new(c, source, tag),
                          .comm = c,
                          .group = c->group,
                          .peer = mpi_comm_peer(c, source),
                          .tag = tag};
    mpi_unlock();
    return r;
}

/* The message is an instant at the end of the slice: that may have begun before the send, and an
 * arrow leads from what is earlier to what is later. */
static void end_receive(struct receiving *r, int code, const MPI_Status *status)
{
    mpi_lock();
    if (r->post && mpi_has_received(code)) {
        struct mpi_message m = mpi_post_matched(r->post, status);
        mpi_record_receive(&m);
        mpi_post_free(r->post);
    } else if (r->post) {
        mpi_post_cancelled(r->post);
    }
    mpi_unlock();
    END_CALL(CAT_MPI, code);
}

#define BEGIN_RECEIVE(name, r, is_any)                                                            \
    do {                                                                                          \
        if (is_any)                                                                               \
            STAVE_BEGIN(CAT_MPI, name, "op", "recv", "group", (r).group, "any", true);            \
        else                                                                                      \
            STAVE_BEGIN(CAT_MPI, name, "op", "recv", "group", (r).group, "peer", (r).peer, "tag", \
                        (r).tag);                                                                 \
    } while (0)

static bool is_wild(int source, int tag)
{
    return source == MPI_ANY_SOURCE || tag == MPI_ANY_TAG;
}

int mpi_on_Recv(void *buf, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
                MPI_Status *status)
{
    int code;
    MPI_Status own;
    if (mpi_depth)
        return mpi->calls.Recv(buf, count, type, source, tag, comm, status);
    status = status == MPI_STATUS_IGNORE ? &own : status;
    struct receiving r = receiving(source, tag, comm);
    BEGIN_RECEIVE("MPI_Recv", r, is_wild(source, tag));
    CALL_MPI(code, Recv, (buf, count, type, source, tag, comm, status));
    end_receive(&r, code, status);
    return code;
}

static void track_receive(MPI_Request request, int code, struct receiving *r)
{
    if (!r->post)
        return;
    if (code == MPI_SUCCESS) {
        mpi_track(request, &(struct mpi_request){
                               .kind = MPI_KIND_RECEIVE, .comm = r->comm, .post = r->post});
        return;
    }
    mpi_lock();
    mpi_post_cancelled(r->post);
    mpi_unlock();
}

int mpi_on_Irecv(void *buf, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
                 MPI_Request *request)
{
    int code;
    if (mpi_depth)
        return mpi->calls.Irecv(buf, count, type, source, tag, comm, request);
    struct receiving r = receiving(source, tag, comm);
    BEGIN_RECEIVE("MPI_Irecv", r, is_wild(source, tag));
    CALL_MPI(code, Irecv, (buf, count, type, source, tag, comm, request));
    END_CALL(CAT_MPI, code);
    track_receive(*request, code, &r);
    return code;
}

int mpi_on_Recv_init(void *buf, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
                     MPI_Request *request)
{
    int code;
    if (mpi_depth)
        return mpi->calls.Recv_init(buf, count, type, source, tag, comm, request);
    STAVE_BEGIN(CAT_MPI, "MPI_Recv_init");
    CALL_MPI(code, Recv_init, (buf, count, type, source, tag, comm, request));
    END_CALL(CAT_MPI, code);
    if (code == MPI_SUCCESS)
        track_persistent(*request, MPI_KIND_RECEIVE, 0, source, tag, comm);
    return code;
}

/* ---- both at once: the slice is the send ---- */

int mpi_on_Sendrecv(const void *sendbuf, int sendcount, MPI_Datatype sendtype, int dest,
                    int sendtag, void *recvbuf, int recvcount, MPI_Datatype recvtype, int source,
                    int recvtag, MPI_Comm comm, MPI_Status *status)
{
    int code;
    MPI_Status own;
    if (mpi_depth)
        return mpi->calls.Sendrecv(sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount,
                                   recvtype, source, recvtag, comm, status);
    status = status == MPI_STATUS_IGNORE ? &own : status;
    struct mpi_message m = mpi_sending(sendcount, sendtype, dest, sendtag, comm);
    struct receiving r = receiving(source, recvtag, comm);
    BEGIN_SEND("MPI_Sendrecv", m);
    CALL_MPI(code, Sendrecv,
             (sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype, source,
              recvtag, comm, status));
    end_receive(&r, code, status);
    return code;
}

int mpi_on_Sendrecv_replace(void *buf, int count, MPI_Datatype type, int dest, int sendtag,
                            int source, int recvtag, MPI_Comm comm, MPI_Status *status)
{
    int code;
    MPI_Status own;
    if (mpi_depth)
        return mpi->calls.Sendrecv_replace(buf, count, type, dest, sendtag, source, recvtag, comm,
                                           status);
    status = status == MPI_STATUS_IGNORE ? &own : status;
    struct mpi_message m = mpi_sending(count, type, dest, sendtag, comm);
    struct receiving r = receiving(source, recvtag, comm);
    BEGIN_SEND("MPI_Sendrecv_replace", m);
    CALL_MPI(code, Sendrecv_replace,
             (buf, count, type, dest, sendtag, source, recvtag, comm, status));
    end_receive(&r, code, status);
    return code;
}

/* ---- probes ---- */

int mpi_on_Probe(int source, int tag, MPI_Comm comm, MPI_Status *status)
{
    int code;
    if (mpi_depth)
        return mpi->calls.Probe(source, tag, comm, status);
    STAVE_BEGIN(CAT_MPI, "MPI_Probe", "op", "probe");
    CALL_MPI(code, Probe, (source, tag, comm, status));
    END_CALL(CAT_MPI, code);
    return code;
}

/* Programs ask again and again: only what was found is recorded. */
int mpi_on_Iprobe(int source, int tag, MPI_Comm comm, int *flag, MPI_Status *status)
{
    int code;
    if (mpi_depth)
        return mpi->calls.Iprobe(source, tag, comm, flag, status);
    int64_t start_ns = stave_now_ns();
    CALL_MPI(code, Iprobe, (source, tag, comm, flag, status));
    if (code == MPI_SUCCESS && *flag)
        stave_complete(STAVE_THREAD, CAT_MPI, "MPI_Iprobe", start_ns, stave_now_ns() - start_ns,
                       "op", "probe");
    return code;
}

/* A probe that takes the message has matched it: nothing posted later can get it. */
static void take_message(MPI_Message message, const MPI_Status *status, int source, int tag,
                         MPI_Comm comm)
{
    struct receiving r = receiving(source, tag, comm);
    if (!r.post)
        return;
    mpi_lock();
    mpi_post_matched(r.post, status);
    mpi_unlock();
    mpi_track(message,
              &(struct mpi_request){.kind = MPI_KIND_MESSAGE, .comm = r.comm, .post = r.post});
}

int mpi_on_Mprobe(int source, int tag, MPI_Comm comm, MPI_Message *message, MPI_Status *status)
{
    int code;
    MPI_Status own;
    if (mpi_depth)
        return mpi->calls.Mprobe(source, tag, comm, message, status);
    status = status == MPI_STATUS_IGNORE ? &own : status;
    STAVE_BEGIN(CAT_MPI, "MPI_Mprobe", "op", "probe");
    CALL_MPI(code, Mprobe, (source, tag, comm, message, status));
    END_CALL(CAT_MPI, code);
    if (code == MPI_SUCCESS)
        take_message(*message, status, source, tag, comm);
    return code;
}

int mpi_on_Improbe(int source, int tag, MPI_Comm comm, int *flag, MPI_Message *message,
                   MPI_Status *status)
{
    int code;
    MPI_Status own;
    if (mpi_depth)
        return mpi->calls.Improbe(source, tag, comm, flag, message, status);
    status = status == MPI_STATUS_IGNORE ? &own : status;
    int64_t start_ns = stave_now_ns();
    CALL_MPI(code, Improbe, (source, tag, comm, flag, message, status));
    if (code != MPI_SUCCESS || !*flag)
        return code;
    stave_complete(STAVE_THREAD, CAT_MPI, "MPI_Improbe", start_ns, stave_now_ns() - start_ns, "op",
                   "probe");
    take_message(*message, status, source, tag, comm);
    return code;
}

/* What the probe took; its flow is 0 when that is not known yet, or was not seen. */
static struct mpi_message message_of(MPI_Message handle, struct mpi_post **post)
{
    struct mpi_message m = {.group = "?", .peer = -1, .tag = -1};
    mpi_lock();
    struct mpi_request *r = mpi_find(handle);
    *post = r ? r->post : NULL;
    if (r && r->post)
        m = r->post->is;
    if (r)
        mpi_forget(r);
    mpi_unlock();
    return m;
}

int mpi_on_Mrecv(void *buf, int count, MPI_Datatype type, MPI_Message *message, MPI_Status *status)
{
    int code;
    struct mpi_post *post;
    if (mpi_depth)
        return mpi->calls.Mrecv(buf, count, type, message, status);
    struct mpi_message m = message_of(*message, &post);
    STAVE_BEGIN(CAT_MPI, "MPI_Mrecv", "op", "recv", "group", m.group, "peer", m.peer, "tag", m.tag);
    CALL_MPI(code, Mrecv, (buf, count, type, message, status));
    if (code == MPI_SUCCESS)
        mpi_record_receive(&m);
    END_CALL(CAT_MPI, code);
    mpi_lock();
    mpi_post_free(post);
    mpi_unlock();
    return code;
}

int mpi_on_Imrecv(void *buf, int count, MPI_Datatype type, MPI_Message *message,
                  MPI_Request *request)
{
    int code;
    struct mpi_post *post;
    if (mpi_depth)
        return mpi->calls.Imrecv(buf, count, type, message, request);
    struct mpi_message m = message_of(*message, &post);
    STAVE_BEGIN(CAT_MPI, "MPI_Imrecv", "op", "recv", "group", m.group, "peer", m.peer, "tag",
                m.tag);
    CALL_MPI(code, Imrecv, (buf, count, type, message, request));
    END_CALL(CAT_MPI, code);
    if (post)
        mpi_track(*request, &(struct mpi_request){
                                .kind = MPI_KIND_RECEIVE, .comm = post->comm, .post = post});
    return code;
}
