/* Waits and tests: what they complete is recorded within their slice. Of tests only those that
 * found something are recorded; how many did not is in the next that did. */
#include "mpi_inject.h"

#include <stdlib.h>

static _Thread_local uint64_t
    n_polls; /* tests of this thread that found nothing, since the last that did */

/* ---- persistent requests ---- */

static void start(MPI_Request handle)
{
    mpi_lock();
    struct mpi_request *r = mpi_find(handle);
    struct mpi_message m = {0};
    if (r && r->kind == MPI_KIND_SEND)
        m = mpi_sending_on(r->comm, r->bytes, r->peer, r->tag);
    else if (r && r->kind == MPI_KIND_RECEIVE && !r->post)
        r->post = mpi_post_new(r->comm, r->peer, r->tag);
    mpi_unlock();
    if (m.flow)
        STAVE_INSTANT(CAT_MPI, "MPI send started", "op", "send", "group", m.group, "peer", m.peer,
                      "tag", m.tag, "bytes", m.bytes, "seq", m.seq, STAVE_FLOW_OUT, m.flow);
}

int mpi_on_Start(MPI_Request *request)
{
    int code;
    if (mpi_depth)
        return mpi->calls.Start(request);
    STAVE_BEGIN(CAT_MPI, "MPI_Start");
    start(*request);
    CALL_MPI(code, Start, (request));
    END_CALL(CAT_MPI, code);
    return code;
}

int mpi_on_Startall(int n, MPI_Request requests[])
{
    int code;
    if (mpi_depth)
        return mpi->calls.Startall(n, requests);
    STAVE_BEGIN(CAT_MPI, "MPI_Startall", "count", n);
    for (int i = 0; i < n; i++)
        start(requests[i]);
    CALL_MPI(code, Startall, (n, requests));
    END_CALL(CAT_MPI, code);
    return code;
}

int mpi_on_Request_free(MPI_Request *request)
{
    int code;
    if (mpi_depth)
        return mpi->calls.Request_free(request);
    mpi_lock();
    struct mpi_request *r = mpi_find(*request);
    if (r) {
        mpi_post_free(r->post);
        mpi_forget(r);
    }
    mpi_unlock();
    CALL_MPI(code, Request_free, (request));
    return code;
}

/* ---- what a call completes ---- */

enum { FEW = 64 };

/* What the requests were before the call, which sets them to null, and statuses where the program
 * wants none. */
struct before {
    struct mpi_ticket few[FEW], *tickets;
    MPI_Status few_statuses[FEW], *statuses;
    void *many; /* freed */
    bool is_on; /* there is something to complete */
};

static void look(struct before *b, int n, const MPI_Request *requests, MPI_Status *statuses,
                 int n_statuses)
{
    b->tickets = b->few;
    b->statuses = statuses;
    b->many = n > FEW && mpi_tracks()
                  ? malloc((size_t)n * (sizeof(struct mpi_ticket) + sizeof(MPI_Status)))
                  : NULL;
    b->is_on = n > 0 && mpi_tracks() && (n <= FEW || b->many);
    if (!b->is_on)
        return;
    if (b->many)
        b->tickets = b->many;
    if (!statuses)
        b->statuses = b->many ? (MPI_Status *)(b->tickets + n) : b->few_statuses;
    mpi_look(requests, n, b->tickets);
    for (int i = 0; i < n_statuses; i++)
        b->statuses[i].MPI_ERROR = MPI_SUCCESS;
}

static void done(struct before *b)
{
    free(b->many);
}

/* Calls that complete several say in the statuses which of them failed. */
static void complete_one(const struct before *b, int request, const MPI_Status *status, int code)
{
    if (mpi_has_received(code == MPI_ERR_IN_STATUS ? status->MPI_ERROR : code))
        mpi_completed(b->tickets[request], status);
}

static void complete_all(const struct before *b, int n, int code)
{
    for (int i = 0; b->is_on && i < n; i++)
        complete_one(b, i, &b->statuses[i], code);
}

/* MPI_UNDEFINED, where no request was active, is below 0. */
static void complete_some(const struct before *b, int n_out, const int *indices, int code)
{
    for (int i = 0; b->is_on && i < n_out; i++)
        complete_one(b, indices[i], &b->statuses[i], code);
}

static void complete_any(const struct before *b, int index, int code)
{
    if (b->is_on && index != MPI_UNDEFINED)
        complete_one(b, index, b->statuses, code);
}

/* ---- waits ---- */

int mpi_on_Wait(MPI_Request *request, MPI_Status *status)
{
    int code;
    struct before b;
    if (mpi_depth)
        return mpi->calls.Wait(request, status);
    look(&b, 1, request, status, 0);
    STAVE_BEGIN(CAT_MPI, "MPI_Wait", "op", "wait");
    CALL_MPI(code, Wait, (request, b.statuses));
    complete_any(&b, 0, code);
    END_CALL(CAT_MPI, code);
    return code;
}

int mpi_on_Waitall(int n, MPI_Request requests[], MPI_Status statuses[])
{
    int code;
    struct before b;
    if (mpi_depth)
        return mpi->calls.Waitall(n, requests, statuses);
    look(&b, n, requests, statuses, n);
    STAVE_BEGIN(CAT_MPI, "MPI_Waitall", "op", "wait", "count", n);
    CALL_MPI(code, Waitall, (n, requests, b.statuses));
    complete_all(&b, n, code);
    END_CALL(CAT_MPI, code);
    done(&b);
    return code;
}

int mpi_on_Waitany(int n, MPI_Request requests[], int *index, MPI_Status *status)
{
    int code;
    struct before b;
    if (mpi_depth)
        return mpi->calls.Waitany(n, requests, index, status);
    look(&b, n, requests, status, 0);
    STAVE_BEGIN(CAT_MPI, "MPI_Waitany", "op", "wait", "count", n);
    CALL_MPI(code, Waitany, (n, requests, index, b.statuses));
    complete_any(&b, *index, code);
    END_CALL(CAT_MPI, code);
    done(&b);
    return code;
}

int mpi_on_Waitsome(int n, MPI_Request requests[], int *n_out, int indices[], MPI_Status statuses[])
{
    int code;
    struct before b;
    if (mpi_depth)
        return mpi->calls.Waitsome(n, requests, n_out, indices, statuses);
    look(&b, n, requests, statuses, n);
    STAVE_BEGIN(CAT_MPI, "MPI_Waitsome", "op", "wait", "count", n);
    CALL_MPI(code, Waitsome, (n, requests, n_out, indices, b.statuses));
    complete_some(&b, *n_out, indices, code);
    END_CALL(CAT_MPI, code);
    done(&b);
    return code;
}

/* ---- tests ---- */

/* The slice has been: it began at start_ns, and is recorded if it found something. */
#define TESTED(name, start_ns, has_found)                                                      \
    do {                                                                                       \
        if (has_found) {                                                                       \
            stave_complete(STAVE_THREAD, CAT_MPI, name, start_ns, stave_now_ns() - (start_ns), \
                           "op", "test", "polls", n_polls);                                    \
            n_polls = 0;                                                                       \
        } else {                                                                               \
            n_polls++;                                                                         \
        }                                                                                      \
    } while (0)

int mpi_on_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
    int code;
    struct before b;
    if (mpi_depth)
        return mpi->calls.Test(request, flag, status);
    look(&b, 1, request, status, 0);
    int64_t start_ns = stave_now_ns();
    CALL_MPI(code, Test, (request, flag, b.statuses));
    if (code == MPI_SUCCESS && *flag)
        complete_any(&b, 0, code);
    TESTED("MPI_Test", start_ns, code == MPI_SUCCESS && *flag);
    return code;
}

int mpi_on_Testall(int n, MPI_Request requests[], int *flag, MPI_Status statuses[])
{
    int code;
    struct before b;
    if (mpi_depth)
        return mpi->calls.Testall(n, requests, flag, statuses);
    look(&b, n, requests, statuses, n);
    int64_t start_ns = stave_now_ns();
    CALL_MPI(code, Testall, (n, requests, flag, b.statuses));
    if (code == MPI_SUCCESS && *flag)
        complete_all(&b, n, code);
    TESTED("MPI_Testall", start_ns, code == MPI_SUCCESS && *flag);
    done(&b);
    return code;
}

int mpi_on_Testany(int n, MPI_Request requests[], int *index, int *flag, MPI_Status *status)
{
    int code;
    struct before b;
    if (mpi_depth)
        return mpi->calls.Testany(n, requests, index, flag, status);
    look(&b, n, requests, status, 0);
    int64_t start_ns = stave_now_ns();
    CALL_MPI(code, Testany, (n, requests, index, flag, b.statuses));
    if (code == MPI_SUCCESS && *flag)
        complete_any(&b, *index, code);
    TESTED("MPI_Testany", start_ns, code == MPI_SUCCESS && *flag && *index != MPI_UNDEFINED);
    done(&b);
    return code;
}

int mpi_on_Testsome(int n, MPI_Request requests[], int *n_out, int indices[], MPI_Status statuses[])
{
    int code;
    struct before b;
    if (mpi_depth)
        return mpi->calls.Testsome(n, requests, n_out, indices, statuses);
    look(&b, n, requests, statuses, n);
    int64_t start_ns = stave_now_ns();
    CALL_MPI(code, Testsome, (n, requests, n_out, indices, b.statuses));
    complete_some(&b, *n_out, indices, code);
    TESTED("MPI_Testsome", start_ns, *n_out > 0);
    done(&b);
    return code;
}
