/* The Python extension _serving, seen from inside: libstave-serving's public header as four types.
 *
 *   py_server.c    the module, and Server: opening, names, what has no object
 *   py_request.c   Request: its life cycle, its trace context, the current one (contextvars)
 *   py_batch.c     Batch and Run
 *   py_step.c      Step: a step of an engine, with its members
 *
 * It uses <stave/…> only. It is apart from _stave, so that `import stave` does not load
 * libstave-serving. Life-cycle calls hold the GIL, so that close() cannot meet one; they wait for
 * nothing (with full="block" for 0.1 ms at a time). */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stave/serving.h>
#include <stave/trace_context.h>
#include <stdbool.h>

struct py_serving {
    PyTypeObject *server, *request, *batch, *run, *step;
    PyObject *current; /* the context variable */
};

struct py_server {
    PyObject_HEAD struct stave_serving *s; /* NULL: not traced, or closed */
    struct py_serving *st;                 /* of the module, which the type holds */
    uint64_t next_request, next_batch;
    unsigned n_flushing;
    PyObject *models;   /* dict: name → number */
    PyObject *engines;  /* dict: name → number */
    uint64_t steps[64]; /* the number of each engine's last step */
};

struct py_request {
    PyObject_HEAD struct py_server *server;
    uint64_t id;
    uint32_t model;
    bool is_warmup, has_ended, is_in_batch, has_context, has_caller;
    bool is_left_out; /* it is not one of those that are recorded: its calls do nothing */
    int64_t enqueued_ns;
    struct stave_trace_context own, caller;
    PyObject *token; /* while it is the current one */
};

extern PyType_Spec py_request_spec, py_batch_spec, py_run_spec, py_step_spec;

/* ---- py_server.c ---- */

/* -1: an error is set. Numbers are taken as they are, names are looked up. */
int py_model_number(struct py_server *v, PyObject *model, uint32_t *number);
int py_engine_number(struct py_server *v, PyObject *engine, uint32_t *number);
uint64_t py_next(uint64_t *counter);
/* The time that is the only, optional argument of most calls. -1: an error is set. */
int py_time(PyObject *const *args, Py_ssize_t n, Py_ssize_t at, int64_t *time_ns);
/* "ValueError: too long", from an exception. */
void py_reason(PyObject *type, PyObject *value, char reason[256]);
/* Copies the text of any object; false: an error is set. */
bool py_reason_text(PyObject *object, char reason[256]);

/* ---- py_request.c ---- */

PyObject *py_server_request(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *py_server_rejected(PyObject *self, PyObject *args, PyObject *kwargs);
/* Where the calls about it go; NULL: nowhere. */
static inline struct stave_serving *py_recorded(const struct py_request *r)
{
    return r->is_left_out ? NULL : r->server->s;
}
/* Of a Request or an int. -1: an error is set. */
int py_request_id(struct py_server *v, PyObject *object, uint64_t *id);

/* ---- py_batch.c, py_step.c ---- */

PyObject *py_server_batch(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *py_server_step(PyObject *self, PyObject *args, PyObject *kwargs);

#define PY_FUNCTION(f) ((PyCFunction)(void (*)(void))(f))
#define PY_SLOT(f)     ((void *)(f))
