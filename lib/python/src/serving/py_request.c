/* Requests of a Python server.
 *
 *     with server.request("bert", traceparent=header) as r:   enqueued … responded, failed, cancelled
 *         …
 *
 * Made by Server.request(); a request is the current one (a context variable) inside its `with`
 * block, and so in the tasks that begin there. Its end is reported once, whoever comes first. */
#include "py_serving.h"

#include <string.h>

static struct py_request *as_request(PyObject *self)
{
    return (struct py_request *)(void *)self;
}

/* ---- new ones ---- */

static int read_header(PyObject *header, struct stave_trace_context *to, bool *is_there)
{
    const char *text = NULL;
    Py_ssize_t len = 0;
    *is_there = false;
    if (!header || header == Py_None)
        return 0;
    if (PyBytes_Check(header)) {
        text = PyBytes_AS_STRING(header);
        len = PyBytes_GET_SIZE(header);
    } else if (PyUnicode_Check(header)) {
        text = PyUnicode_AsUTF8AndSize(header, &len);
    } else {
        PyErr_Format(PyExc_TypeError, "stave: traceparent is a %.100s, not the header's text",
                     Py_TYPE(header)->tp_name);
        return -1;
    }
    if (!text) { /* lone surrogates: not a header */
        PyErr_Clear();
        return 0;
    }
    while (len && (text[len - 1] == ' ' || text[len - 1] == '\t'))
        len--;
    for (; len && (*text == ' ' || *text == '\t'); text++)
        len--;
    *is_there = stave_traceparent_read(text, (size_t)len, to);
    return 0;
}

/* The header's text if it may be one: printable ASCII. */
static const char *state_of(PyObject *state)
{
    const char *text = !state                   ? NULL
                       : PyBytes_Check(state)   ? PyBytes_AS_STRING(state)
                       : PyUnicode_Check(state) ? PyUnicode_AsUTF8(state)
                                                : NULL;
    PyErr_Clear();
    for (const char *p = text; p && *p; p++)
        if ((*p < 0x20 || *p > 0x7e) && *p != '\t')
            return NULL;
    return text;
}

static void report_context(struct py_request *r, PyObject *state)
{
    stave_serving_context(py_recorded(r), r->id, &r->own, r->has_caller ? &r->caller : NULL,
                          r->has_caller ? state_of(state) : NULL);
}

/* Whoever it calls decides as we have. */
static void tell_sampled(struct py_request *r)
{
    r->own.flags = (uint8_t)((r->own.flags & ~1u) | !r->is_left_out);
}

static struct py_request *new_request(struct py_server *v, PyObject *model, PyObject *parent,
                                      int is_warmup)
{
    uint32_t number;
    struct stave_trace_context caller;
    bool has_caller;
    if (py_model_number(v, model, &number) < 0 || read_header(parent, &caller, &has_caller) < 0)
        return NULL;
    struct py_request *r = PyObject_GC_New(struct py_request, v->st->request);
    if (!r)
        return NULL;
    memset((char *)r + sizeof(PyObject), 0, sizeof *r - sizeof(PyObject));
    r->server = (struct py_server *)(void *)Py_NewRef((PyObject *)v);
    r->id = py_next(&v->next_request);
    r->model = number;
    r->is_warmup = is_warmup;
    r->has_caller = r->has_context = has_caller;
    r->is_left_out = !stave_serving_sampled(v->s, has_caller ? &caller : NULL);
    if (has_caller) {
        r->caller = caller;
        stave_trace_context_new(&caller, &r->own);
        tell_sampled(r);
    }
    PyObject_GC_Track(r);
    return r;
}

struct words {
    PyObject *model, *parent, *state;
    int is_warmup;
    long long time_ns;
};

static bool read_words(PyObject *args, PyObject *kwargs, const char *format, struct words *w)
{
    static char *names[] = {"model", "traceparent", "tracestate", "warmup", "time_ns", NULL};
    return PyArg_ParseTupleAndKeywords(args, kwargs, format, names, &w->model, &w->parent,
                                       &w->state, &w->is_warmup, &w->time_ns);
}

static unsigned flags_of(const struct py_request *r)
{
    return r->is_warmup ? STAVE_SERVING_WARMUP : 0;
}

PyObject *py_server_request(PyObject *self, PyObject *args, PyObject *kwargs)
{
    struct py_server *v = (struct py_server *)(void *)self;
    struct words w = {0};
    if (!read_words(args, kwargs, "O|OO$pL:request", &w))
        return NULL;
    struct py_request *r = new_request(v, w.model, w.parent, w.is_warmup);
    if (!r)
        return NULL;
    r->enqueued_ns = w.time_ns ? w.time_ns : stave_now_ns();
    stave_serving_enqueued(py_recorded(r), r->id, r->model, flags_of(r), r->enqueued_ns);
    if (r->has_caller)
        report_context(r, w.state);
    return (PyObject *)r;
}

PyObject *py_server_rejected(PyObject *self, PyObject *args, PyObject *kwargs)
{
    struct py_server *v = (struct py_server *)(void *)self;
    struct words w = {0};
    if (!read_words(args, kwargs, "O|OO$pL:rejected", &w))
        return NULL;
    struct py_request *r = new_request(v, w.model, w.parent, w.is_warmup);
    if (!r)
        return NULL;
    r->has_ended = true;
    stave_serving_rejected(py_recorded(r), r->id, r->model, flags_of(r), w.time_ns);
    return (PyObject *)r;
}

int py_request_id(struct py_server *v, PyObject *object, uint64_t *id)
{
    if (Py_IS_TYPE(object, v->st->request)) {
        if (as_request(object)->server != v) {
            PyErr_SetString(PyExc_ValueError, "stave: this request is another server's");
            return -1;
        }
        *id = as_request(object)->id;
        return 0;
    }
    *id = PyLong_AsUnsignedLongLong(object);
    return PyErr_Occurred() ? -1 : 0;
}

/* ---- what happens to it ---- */

/* Calls with nothing but a time. A client may leave before the batcher comes to its request: what
 * is said after the end is not recorded. */
#define REQUEST_CALL(name)                                                                      \
    static PyObject *name(PyObject *self, PyObject *const *args, Py_ssize_t n)                  \
    {                                                                                           \
        int64_t time_ns;                                                                        \
        if (py_time(args, n, 0, &time_ns) < 0)                                                  \
            return NULL;                                                                        \
        if (!as_request(self)->has_ended)                                                       \
            stave_serving_##name(py_recorded(as_request(self)), as_request(self)->id, time_ns); \
        Py_RETURN_NONE;                                                                         \
    }
REQUEST_CALL(dequeued)
REQUEST_CALL(scheduled)
REQUEST_CALL(preempted)
REQUEST_CALL(resumed)

enum end { RESPONDED, FAILED, CANCELLED };

/* Only the first end counts. */
static void end(struct py_request *r, enum end how, const char *reason, int64_t time_ns)
{
    struct stave_serving *s = py_recorded(r);
    if (r->has_ended)
        return;
    r->has_ended = true;
    switch (how) {
    case RESPONDED: stave_serving_responded(s, r->id, time_ns); break;
    case FAILED: stave_serving_failed(s, r->id, reason, time_ns); break;
    case CANCELLED: stave_serving_cancelled(s, r->id, time_ns); break;
    }
}

static PyObject *responded(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    int64_t time_ns;
    if (py_time(args, n, 0, &time_ns) < 0)
        return NULL;
    end(as_request(self), RESPONDED, NULL, time_ns);
    Py_RETURN_NONE;
}

static PyObject *cancelled(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    int64_t time_ns;
    if (py_time(args, n, 0, &time_ns) < 0)
        return NULL;
    end(as_request(self), CANCELLED, NULL, time_ns);
    Py_RETURN_NONE;
}

static PyObject *failed(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    int64_t time_ns;
    char reason[256];
    if (n < 1) {
        PyErr_SetString(PyExc_TypeError, "failed() needs a reason");
        return NULL;
    }
    if (!py_reason_text(args[0], reason) || py_time(args, n, 1, &time_ns) < 0)
        return NULL;
    end(as_request(self), FAILED, reason, time_ns);
    Py_RETURN_NONE;
}

static PyObject *streamed(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    int64_t time_ns;
    unsigned long tokens = n ? PyLong_AsUnsignedLong(args[0]) : 1;
    if (PyErr_Occurred() || py_time(args, n, 1, &time_ns) < 0)
        return NULL;
    if (as_request(self)->has_ended)
        Py_RETURN_NONE;
    stave_serving_streamed(py_recorded(as_request(self)), as_request(self)->id,
                           tokens > UINT32_MAX ? UINT32_MAX : (uint32_t)tokens, time_ns);
    Py_RETURN_NONE;
}

static PyObject *transferred(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"from_engine", "to_engine", "bytes", "start_ns", "end_ns", NULL};
    struct py_request *r = as_request(self);
    PyObject *from, *to;
    unsigned long long bytes = 0;
    long long start_ns = 0, end_ns = 0;
    uint32_t from_number, to_number;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|KLL:transferred", names, &from, &to, &bytes,
                                     &start_ns, &end_ns) ||
        py_engine_number(r->server, from, &from_number) < 0 ||
        py_engine_number(r->server, to, &to_number) < 0)
        return NULL;
    stave_serving_transferred(py_recorded(r), r->id, from_number, to_number, bytes, start_ns,
                              end_ns);
    Py_RETURN_NONE;
}

/* Mostly after its end. */
static PyObject *transport(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"read_ns", "parse_ns", "serialise_ns", "write_ns", "time_ns", NULL};
    const struct py_request *r = as_request(self);
    long long ns[] = {-1, -1, -1, -1}, time_ns = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|LLLLL:transport", names, &ns[0], &ns[1],
                                     &ns[2], &ns[3], &time_ns))
        return NULL;
    stave_serving_transport(py_recorded(r), r->id, ns[0], ns[1], ns[2], ns[3], time_ns);
    Py_RETURN_NONE;
}

/* A server without batches: the request is one of its own, as far as it was in none. */
static PyObject *alone(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"worker", "start_ns", "end_ns", NULL};
    struct py_request *r = as_request(self);
    struct py_server *v = r->server;
    int worker = 0;
    long long start_ns = 0, end_ns = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|iLL:alone", names, &worker, &start_ns,
                                     &end_ns))
        return NULL;
    if (r->is_in_batch)
        Py_RETURN_FALSE;
    r->is_in_batch = true;
    start_ns = start_ns ? start_ns : r->enqueued_ns;
    end_ns = end_ns ? end_ns : stave_now_ns();
    uint64_t batch = py_next(&v->next_batch);
    stave_serving_dequeued(v->s, r->id, start_ns);
    stave_serving_collected(v->s, batch, r->model, &r->id, 1, 1, flags_of(r), start_ns, start_ns);
    stave_serving_submitted(v->s, batch, start_ns);
    stave_serving_started(v->s, batch, worker, start_ns);
    stave_serving_finished(v->s, batch, end_ns);
    stave_serving_callback(v->s, batch, end_ns, end_ns);
    Py_RETURN_TRUE;
}

/* ---- the current one ---- */

static PyObject *enter(PyObject *self, PyObject *unused)
{
    struct py_request *r = as_request(self);
    (void)unused;
    if (r->token) {
        PyErr_SetString(PyExc_RuntimeError, "stave: this request is in a `with` block already");
        return NULL;
    }
    r->token = PyContextVar_Set(r->server->st->current, self);
    return r->token ? Py_NewRef(self) : NULL;
}

/* For middleware, whose request is the current one more than once and goes on after it. */
static PyObject *set_current(PyObject *self, PyObject *unused)
{
    (void)unused;
    return PyContextVar_Set(as_request(self)->server->st->current, self);
}

static PyObject *reset_current(PyObject *self, PyObject *token)
{
    /* Generators may be closed in another context: then that one has nothing to put back. */
    if (PyContextVar_Reset(as_request(self)->server->st->current, token) < 0)
        PyErr_Clear();
    Py_RETURN_NONE;
}

/* Both of asyncio and of concurrent.futures end so. */
static bool is_cancellation(PyObject *type)
{
    const char *name = PyType_Check(type) ? ((PyTypeObject *)(void *)type)->tp_name : "";
    const char *dot = strrchr(name, '.');
    return strcmp(dot ? dot + 1 : name, "CancelledError") == 0 || type == PyExc_GeneratorExit ||
           type == PyExc_KeyboardInterrupt;
}

static PyObject *leave(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    struct py_request *r = as_request(self);
    PyObject *token = r->token;
    r->token = NULL;
    if (token)
        Py_DECREF(reset_current(self, token));
    Py_XDECREF(token);
    if (n < 2 || args[0] == Py_None) {
        end(r, RESPONDED, NULL, 0);
    } else if (is_cancellation(args[0])) {
        end(r, CANCELLED, NULL, 0);
    } else {
        char reason[256];
        py_reason(args[0], args[1], reason);
        end(r, FAILED, reason, 0);
    }
    Py_RETURN_NONE;
}

/* ---- what is known of it ---- */

static PyObject *get_id(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromUnsignedLongLong(as_request(self)->id);
}

static PyObject *get_ended(PyObject *self, void *unused)
{
    (void)unused;
    return PyBool_FromLong(as_request(self)->has_ended);
}

static PyObject *get_enabled(PyObject *self, void *unused)
{
    (void)unused;
    return PyBool_FromLong(py_recorded(as_request(self)) != NULL);
}

static PyObject *get_flow(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromUnsignedLongLong(
        stave_serving_request_flow(py_recorded(as_request(self)), as_request(self)->id));
}

/* Who had no caller begins a trace when it asks for the header. */
static void need_context(struct py_request *r)
{
    if (r->has_context)
        return;
    r->has_context = true;
    stave_trace_context_new(NULL, &r->own);
    tell_sampled(r);
    if (!r->has_ended)
        report_context(r, NULL);
}

static PyObject *get_traceparent(PyObject *self, void *unused)
{
    char text[STAVE_TRACEPARENT_SIZE];
    (void)unused;
    need_context(as_request(self));
    stave_traceparent_write(&as_request(self)->own, text);
    return PyUnicode_FromString(text);
}

static PyObject *hex(const uint8_t *bytes, size_t n)
{
    char text[2 * 16 + 1];
    for (size_t i = 0; i < n; i++)
        snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    return PyUnicode_FromStringAndSize(text, (Py_ssize_t)(2 * n));
}

static PyObject *get_trace_id(PyObject *self, void *unused)
{
    (void)unused;
    need_context(as_request(self));
    return hex(as_request(self)->own.trace_id, 16);
}

static PyObject *get_span_id(PyObject *self, void *unused)
{
    (void)unused;
    need_context(as_request(self));
    return hex(as_request(self)->own.span_id, 8);
}

static PyObject *repr(PyObject *self)
{
    const struct py_request *r = as_request(self);
    return PyUnicode_FromFormat("<stave.serving.Request %llu%s>", (unsigned long long)r->id,
                                r->has_ended ? ", ended" : "");
}

static int traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(as_request(self)->server);
    Py_VISIT(as_request(self)->token);
    return 0;
}

static int clear(PyObject *self)
{
    Py_CLEAR(as_request(self)->token);
    return 0;
}

static void dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    clear(self);
    Py_CLEAR(as_request(self)->server);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMethodDef methods[] = {
    {"dequeued", PY_FUNCTION(dequeued), METH_FASTCALL,
     "dequeued($self, time_ns=0, /)\n--\n\nIt was taken out of the queue."},
    {"responded", PY_FUNCTION(responded), METH_FASTCALL,
     "responded($self, time_ns=0, /)\n--\n\nIts answer is on the way. This ends it."},
    {"failed", PY_FUNCTION(failed), METH_FASTCALL,
     "failed($self, reason, time_ns=0, /)\n--\n\nThis ends it."},
    {"cancelled", PY_FUNCTION(cancelled), METH_FASTCALL,
     "cancelled($self, time_ns=0, /)\n--\n\nIts client has gone. This ends it."},
    {"scheduled", PY_FUNCTION(scheduled), METH_FASTCALL,
     "scheduled($self, time_ns=0, /)\n--\n\nAn engine has begun with it."},
    {"preempted", PY_FUNCTION(preempted), METH_FASTCALL,
     "preempted($self, time_ns=0, /)\n--\n\nThe engine put it aside."},
    {"resumed", PY_FUNCTION(resumed), METH_FASTCALL,
     "resumed($self, time_ns=0, /)\n--\n\nThe engine goes on with it."},
    {"streamed", PY_FUNCTION(streamed), METH_FASTCALL,
     "streamed($self, tokens=1, time_ns=0, /)\n--\n\nTokens left for the client."},
    {"transferred", PY_FUNCTION(transferred), METH_VARARGS | METH_KEYWORDS,
     "transferred($self, from_engine, to_engine, bytes=0, start_ns=0, end_ns=0)\n--\n\n"
     "Its KV cache went from one engine to another."},
    {"transport", PY_FUNCTION(transport), METH_VARARGS | METH_KEYWORDS,
     "transport($self, read_ns=-1, parse_ns=-1, serialise_ns=-1, write_ns=-1, time_ns=0)\n--\n\n"
     "Its answer is written. How long it was read, parsed, serialised and written; -1: not known."},
    {"alone", PY_FUNCTION(alone), METH_VARARGS | METH_KEYWORDS,
     "alone($self, worker=0, start_ns=0, end_ns=0)\n--\n\n"
     "It was computed by itself: a batch of one. False: it was in a batch already."},
    {"set_current", set_current, METH_NOARGS,
     "set_current($self)\n--\n\nIt is the current one until reset_current() of what this returns."},
    {"reset_current", reset_current, METH_O, "reset_current($self, token, /)\n--\n\n"},
    {"__enter__", enter, METH_NOARGS, NULL},
    {"__exit__", PY_FUNCTION(leave), METH_FASTCALL, NULL},
    {0}};

static PyGetSetDef getters[] = {
    {"id", get_id, NULL, "Its number in the trace.", NULL},
    {"ended", get_ended, NULL, "Its end was reported.", NULL},
    {"enabled", get_enabled, NULL, "It is recorded.", NULL},
    {"flow", get_flow, NULL, "The number of its flow, for stave.trace(flow=…).", NULL},
    {"traceparent", get_traceparent, NULL, "The header for calls on its behalf.", NULL},
    {"trace_id", get_trace_id, NULL, "32 hexadecimal digits.", NULL},
    {"span_id", get_span_id, NULL, "16 hexadecimal digits.", NULL},
    {0}};

static PyType_Slot slots[] = {{Py_tp_dealloc, PY_SLOT(dealloc)},
                              {Py_tp_traverse, PY_SLOT(traverse)},
                              {Py_tp_clear, PY_SLOT(clear)},
                              {Py_tp_methods, methods},
                              {Py_tp_getset, getters},
                              {Py_tp_repr, PY_SLOT(repr)},
                              {0, NULL}};

PyType_Spec py_request_spec = {
    .name = "stave._serving.Request",
    .basicsize = sizeof(struct py_request),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};
