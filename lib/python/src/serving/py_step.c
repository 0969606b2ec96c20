/* Steps of an engine with continuous batching.
 *
 *     with server.step("engine 0", kv_used=100, kv_total=4096) as step:
 *         step.prefill(r1, 512, tokens_out=1)
 *         step.decode(r2)
 *
 * Made by Server.step(). The step begins with the block and is reported at its end, with the
 * members of that moment; one that raises gave no tokens. */
#include "py_serving.h"

#include <string.h>

struct py_step {
    PyObject_HEAD struct py_server *server;
    struct stave_serving_step step;
    struct stave_serving_member *members;
    size_t n, cap;
    bool is_over;
};

static struct py_step *as_step(PyObject *self)
{
    return (struct py_step *)(void *)self;
}

static void dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyMem_Free(as_step(self)->members);
    Py_XDECREF(as_step(self)->server);
    type->tp_free(self);
    Py_DECREF(type);
}

static int graph_of(const char *name, uint32_t *graph)
{
    static const char *const names[] = {[STAVE_SERVING_GRAPH_UNKNOWN] = "unknown",
                                        [STAVE_SERVING_GRAPH_EAGER] = "eager",
                                        [STAVE_SERVING_GRAPH_PIECEWISE] = "piecewise",
                                        [STAVE_SERVING_GRAPH_FULL] = "full"};
    for (uint32_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0) {
            *graph = i;
            return 0;
        }
    PyErr_Format(PyExc_ValueError,
                 "stave: graph='%.40s': expected 'unknown', 'eager', 'piecewise' or 'full'", name);
    return -1;
}

PyObject *py_server_step(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"engine", "step",   "kv_used",  "kv_total", "waiting",
                            "graph",  "warmup", "start_ns", NULL};
    struct py_server *v = (struct py_server *)(void *)self;
    struct stave_serving_step s = {.size = sizeof s};
    PyObject *engine, *number = Py_None;
    const char *graph = "unknown";
    int is_warmup = 0;
    long long start_ns = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O$IIIspL:step", names, &engine, &number,
                                     &s.kv_used, &s.kv_total, &s.waiting, &graph, &is_warmup,
                                     &start_ns) ||
        py_engine_number(v, engine, &s.engine) < 0 || graph_of(graph, &s.graph) < 0)
        return NULL;
    uint64_t *last = &v->steps[s.engine % 64];
    s.step = number == Py_None ? *last + 1 : PyLong_AsUnsignedLongLong(number);
    if (PyErr_Occurred())
        return NULL;
    *last = s.step;
    s.flags = is_warmup ? STAVE_SERVING_WARMUP : 0;
    s.start_ns = start_ns ? start_ns : stave_now_ns();
    struct py_step *p = PyObject_New(struct py_step, v->st->step);
    if (!p)
        return NULL;
    memset((char *)p + sizeof(PyObject), 0, sizeof *p - sizeof(PyObject));
    p->server = (struct py_server *)(void *)Py_NewRef(self);
    p->step = s;
    return (PyObject *)p;
}

/* ---- members ---- */

static PyObject *add(PyObject *self, PyObject *request, const struct stave_serving_member *m)
{
    struct py_step *p = as_step(self);
    uint64_t id;
    if (py_request_id(p->server, request, &id) < 0)
        return NULL;
    if (Py_IS_TYPE(request, p->server->st->request) &&
        ((const struct py_request *)(void *)request)->is_left_out)
        Py_RETURN_NONE;
    if (p->n == p->cap) {
        size_t cap = p->cap ? 2 * p->cap : 16;
        struct stave_serving_member *more = PyMem_Realloc(p->members, cap * sizeof *more);
        if (!more)
            return PyErr_NoMemory();
        p->members = more;
        p->cap = cap;
    }
    p->members[p->n] = *m;
    p->members[p->n++].request = id;
    Py_RETURN_NONE;
}

static PyObject *prefill(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"request", "tokens_in", "tokens_out", "cached", "position", NULL};
    struct stave_serving_member m = {.phase = STAVE_SERVING_PREFILL};
    PyObject *request;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OI|III:prefill", names, &request, &m.tokens_in,
                                     &m.tokens_out, &m.cached, &m.position))
        return NULL;
    return add(self, request, &m);
}

static PyObject *decode(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"request",  "tokens_out", "tokens_in", "position",
                            "proposed", "accepted",   NULL};
    struct stave_serving_member m = {
        .phase = STAVE_SERVING_DECODE, .tokens_in = 1, .tokens_out = 1};
    PyObject *request;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|IIIHH:decode", names, &request, &m.tokens_out,
                                     &m.tokens_in, &m.position, &m.proposed, &m.accepted))
        return NULL;
    return add(self, request, &m);
}

/* ---- its end ---- */

static void report(struct py_step *p, int64_t end_ns)
{
    if (p->is_over)
        return;
    p->is_over = true;
    p->step.end_ns = end_ns ? end_ns : stave_now_ns();
    p->step.members = p->members;
    p->step.n = p->n;
    stave_serving_step(p->server->s, &p->step);
}

static PyObject *end(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    int64_t time_ns;
    if (py_time(args, n, 0, &time_ns) < 0)
        return NULL;
    report(as_step(self), time_ns);
    Py_RETURN_NONE;
}

static PyObject *enter(PyObject *self, PyObject *unused)
{
    (void)unused;
    return Py_NewRef(self);
}

static PyObject *leave(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    struct py_step *p = as_step(self);
    if (n >= 1 && args[0] != Py_None)
        for (size_t i = 0; i < p->n; i++)
            p->members[i].tokens_out = 0;
    report(p, 0);
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"prefill", PY_FUNCTION(prefill), METH_VARARGS | METH_KEYWORDS,
     "prefill($self, request, tokens_in, tokens_out=0, cached=0, position=0)\n--\n\n"
     "A chunk of the request's prompt is in the step."},
    {"decode", PY_FUNCTION(decode), METH_VARARGS | METH_KEYWORDS,
     "decode($self, request, tokens_out=1, tokens_in=1, position=0, proposed=0, accepted=0)\n--\n\n"
     "The request's next token is in the step."},
    {"end", PY_FUNCTION(end), METH_FASTCALL, "end($self, time_ns=0, /)\n--\n\nThe step is done."},
    {"__enter__", enter, METH_NOARGS, NULL},
    {"__exit__", PY_FUNCTION(leave), METH_FASTCALL, NULL},
    {0}};

static PyType_Slot slots[] = {
    {Py_tp_dealloc, PY_SLOT(dealloc)}, {Py_tp_methods, methods}, {0, NULL}};

PyType_Spec py_step_spec = {
    .name = "stave._serving.Step",
    .basicsize = sizeof(struct py_step),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};
