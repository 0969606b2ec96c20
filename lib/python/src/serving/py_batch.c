/* Batches of a Python server, and their runs on a worker.
 *
 *     with server.batch(requests) as b:       collected … callback
 *         with b.run(worker=0): compute()     submitted, started … finished, or the batch failed
 *         answer()
 *
 * Made by Server.batch() and Batch.run(). What a plain call has reported is not reported again. */
#include "py_serving.h"

#include <string.h>

struct py_batch {
    PyObject_HEAD struct py_server *server;
    uint64_t id;
    bool is_submitted, is_over, is_left_out;
    int64_t finished_ns;
};

struct py_run {
    PyObject_HEAD struct py_batch *batch;
    int32_t worker;
};

static struct py_batch *as_batch(PyObject *self)
{
    return (struct py_batch *)(void *)self;
}

/* NULL: none of its requests is recorded. */
static struct stave_serving *recorded(const struct py_batch *b)
{
    return b->is_left_out ? NULL : b->server->s;
}

static void batch_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    Py_XDECREF(as_batch(self)->server);
    type->tp_free(self);
    Py_DECREF(type);
}

/* ---- new ones ---- */

/* What the batch has of its requests: the numbers of those that are recorded, and the model and
 * flags of the first one. */
struct members {
    uint64_t *ids;
    size_t n;
    uint32_t model;
    bool has_model, is_warmup, are_left_out;
};

static int read_members(struct py_server *v, PyObject *requests, struct members *m)
{
    PyObject *list = PySequence_Fast(requests, "stave: a sequence of requests is needed");
    if (!list)
        return -1;
    Py_ssize_t n = PySequence_Fast_GET_SIZE(list), i = 0;
    m->ids = PyMem_Malloc(((size_t)n + 1) * sizeof *m->ids);
    if (!m->ids)
        PyErr_NoMemory();
    for (; m->ids && i < n; i++) {
        PyObject *o = PySequence_Fast_GET_ITEM(list, i);
        if (py_request_id(v, o, &m->ids[m->n]) < 0)
            break;
        struct py_request *r = Py_IS_TYPE(o, v->st->request) ? (struct py_request *)(void *)o
                                                             : NULL;
        m->n += !r || !r->is_left_out;
        if (!r)
            continue;
        r->is_in_batch = true;
        m->model = m->has_model ? m->model : r->model;
        m->has_model = true;
        m->is_warmup |= r->is_warmup;
    }
    Py_DECREF(list);
    m->are_left_out = n > 0 && m->n == 0;
    return PyErr_Occurred() ? -1 : 0;
}

struct words {
    PyObject *requests, *model;
    unsigned samples;
    int is_warmup;
    long long start_ns, end_ns;
};

static PyObject *new_batch(struct py_server *v, const struct words *w, struct members *m)
{
    if (read_members(v, w->requests, m) < 0)
        return NULL;
    if (w->model != Py_None && py_model_number(v, w->model, &m->model) < 0)
        return NULL;
    if (w->model == Py_None && !m->has_model) {
        PyErr_SetString(PyExc_TypeError, "stave: batch() of numbers needs the model");
        return NULL;
    }
    struct py_batch *b = PyObject_New(struct py_batch, v->st->batch);
    if (!b)
        return NULL;
    memset((char *)b + sizeof(PyObject), 0, sizeof *b - sizeof(PyObject));
    b->server = (struct py_server *)(void *)Py_NewRef((PyObject *)v);
    b->id = py_next(&v->next_batch);
    b->is_left_out = m->are_left_out;
    stave_serving_collected(recorded(b), b->id, m->model, m->ids, m->n, w->samples,
                            w->is_warmup || m->is_warmup ? STAVE_SERVING_WARMUP : 0, w->start_ns,
                            w->end_ns);
    return (PyObject *)b;
}

PyObject *py_server_batch(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"requests", "model", "samples", "warmup", "start_ns", "end_ns", NULL};
    struct words w = {.model = Py_None};
    struct members m = {0};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O$IpLL:batch", names, &w.requests, &w.model,
                                     &w.samples, &w.is_warmup, &w.start_ns, &w.end_ns))
        return NULL;
    PyObject *b = new_batch((struct py_server *)(void *)self, &w, &m);
    PyMem_Free(m.ids);
    return b;
}

/* ---- what happens to it ---- */

static void submit(struct py_batch *b, int64_t time_ns)
{
    if (!b->is_submitted)
        stave_serving_submitted(recorded(b), b->id, time_ns);
    b->is_submitted = true;
}

static void finish(struct py_batch *b, int64_t time_ns)
{
    b->finished_ns = time_ns ? time_ns : stave_now_ns();
    stave_serving_finished(recorded(b), b->id, b->finished_ns);
}

static void fail(struct py_batch *b, const char *reason, int64_t time_ns)
{
    if (!b->is_over)
        stave_serving_batch_failed(recorded(b), b->id, reason, time_ns);
    b->is_over = true;
}

static void over(struct py_batch *b, int64_t start_ns, int64_t end_ns)
{
    if (!b->is_over)
        stave_serving_callback(recorded(b), b->id, start_ns, end_ns);
    b->is_over = true;
}

static PyObject *submitted(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    int64_t time_ns;
    if (py_time(args, n, 0, &time_ns) < 0)
        return NULL;
    submit(as_batch(self), time_ns);
    Py_RETURN_NONE;
}

static PyObject *started(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    int64_t time_ns;
    struct py_batch *b = as_batch(self);
    int worker = n ? (int)PyLong_AsLong(args[0]) : 0;
    if (PyErr_Occurred() || py_time(args, n, 1, &time_ns) < 0)
        return NULL;
    stave_serving_started(recorded(b), b->id, worker, time_ns);
    Py_RETURN_NONE;
}

static PyObject *finished(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    int64_t time_ns;
    if (py_time(args, n, 0, &time_ns) < 0)
        return NULL;
    finish(as_batch(self), time_ns);
    Py_RETURN_NONE;
}

static PyObject *callback(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    int64_t start_ns, end_ns;
    if (py_time(args, n < 1 ? n : 1, 0, &start_ns) < 0 || py_time(args, n, 1, &end_ns) < 0)
        return NULL;
    over(as_batch(self), start_ns, end_ns);
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
    fail(as_batch(self), reason, time_ns);
    Py_RETURN_NONE;
}

static PyObject *enter(PyObject *self, PyObject *unused)
{
    (void)unused;
    return Py_NewRef(self);
}

/* The callback is what followed the run. */
static PyObject *leave(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    struct py_batch *b = as_batch(self);
    char reason[256];
    if (n < 2 || args[0] == Py_None) {
        over(b, b->finished_ns, 0);
    } else {
        py_reason(args[0], args[1], reason);
        fail(b, reason, 0);
    }
    Py_RETURN_NONE;
}

static PyObject *get_id(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromUnsignedLongLong(as_batch(self)->id);
}

static PyObject *get_flow(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromUnsignedLongLong(
        stave_serving_batch_flow(recorded(as_batch(self)), as_batch(self)->id));
}

/* ---- runs ---- */

static PyObject *run(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"worker", NULL};
    struct py_batch *b = as_batch(self);
    int worker = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|i:run", names, &worker))
        return NULL;
    submit(b, 0);
    struct py_run *r = PyObject_New(struct py_run, b->server->st->run);
    if (!r)
        return NULL;
    r->batch = (struct py_batch *)(void *)Py_NewRef(self);
    r->worker = worker;
    return (PyObject *)r;
}

static PyObject *run_enter(PyObject *self, PyObject *unused)
{
    struct py_run *r = (struct py_run *)(void *)self;
    (void)unused;
    stave_serving_started(recorded(r->batch), r->batch->id, r->worker, 0);
    return Py_NewRef((PyObject *)r->batch);
}

static PyObject *run_leave(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    struct py_run *r = (struct py_run *)(void *)self;
    char reason[256];
    finish(r->batch, 0);
    if (n >= 2 && args[0] != Py_None) {
        py_reason(args[0], args[1], reason);
        fail(r->batch, reason, r->batch->finished_ns);
    }
    Py_RETURN_NONE;
}

static void run_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    Py_XDECREF(((struct py_run *)(void *)self)->batch);
    type->tp_free(self);
    Py_DECREF(type);
}

/* ---- types ---- */

static PyMethodDef batch_methods[] = {
    {"run", PY_FUNCTION(run), METH_VARARGS | METH_KEYWORDS,
     "run($self, worker=0)\n--\n\n`with batch.run(worker): …`: a worker computes it."},
    {"submitted", PY_FUNCTION(submitted), METH_FASTCALL,
     "submitted($self, time_ns=0, /)\n--\n\nIt is handed to the run time."},
    {"started", PY_FUNCTION(started), METH_FASTCALL,
     "started($self, worker=0, time_ns=0, /)\n--\n\nA worker begins with it."},
    {"finished", PY_FUNCTION(finished), METH_FASTCALL,
     "finished($self, time_ns=0, /)\n--\n\nThe worker is done."},
    {"callback", PY_FUNCTION(callback), METH_FASTCALL,
     "callback($self, start_ns=0, end_ns=0, /)\n--\n\nIts callback ran. This ends the batch."},
    {"failed", PY_FUNCTION(failed), METH_FASTCALL,
     "failed($self, reason, time_ns=0, /)\n--\n\n"
     "It was not computed. Its requests are reported one by one."},
    {"__enter__", enter, METH_NOARGS, NULL},
    {"__exit__", PY_FUNCTION(leave), METH_FASTCALL, NULL},
    {0}};

static PyGetSetDef batch_getters[] = {
    {"id", get_id, NULL, "Its number in the trace.", NULL},
    {"flow", get_flow, NULL, "The number of its flow, for stave.trace(flow=…).", NULL},
    {0}};

static PyType_Slot batch_slots[] = {{Py_tp_dealloc, PY_SLOT(batch_dealloc)},
                                    {Py_tp_methods, batch_methods},
                                    {Py_tp_getset, batch_getters},
                                    {0, NULL}};

PyType_Spec py_batch_spec = {
    .name = "stave._serving.Batch",
    .basicsize = sizeof(struct py_batch),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = batch_slots,
};

static PyMethodDef run_methods[] = {{"__enter__", run_enter, METH_NOARGS, NULL},
                                    {"__exit__", PY_FUNCTION(run_leave), METH_FASTCALL, NULL},
                                    {0}};

static PyType_Slot run_slots[] = {
    {Py_tp_dealloc, PY_SLOT(run_dealloc)}, {Py_tp_methods, run_methods}, {0, NULL}};

PyType_Spec py_run_spec = {
    .name = "stave._serving.Run",
    .basicsize = sizeof(struct py_run),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = run_slots,
};
