/* Slices: what trace() returns.
 *
 * `with` looks up __enter__ and __exit__ and calls each once; ordinarily both lookups make a bound method, which costs more than the event. Here
 * the two names are descriptors that return the slice itself, which can be called; with no argument it
 * enters, with three it leaves. So an event makes one object, and a switched-off one none.
 *
 * A slice belongs to the thread that entered it: on the thread's own track only that thread can end it. Inside an asyncio task it is on
 * the task's row instead (py_tasks.c). On a row or a named track it is ended by its number, by whatever thread and in whatever order.
 *
 * Slices of one owner on one track are drawn inside each other, also while they are open, if it is sure that they end in order: a `with`
 * statement ends before the one around it, unless a generator is between them, which can be left alone in the middle. */
#include "py_stave.h"

#include <stddef.h>
#include <string.h>
#include <structmember.h>

struct slice {
    PyObject_HEAD vectorcallfunc call;
    struct py_name *name; /* NULL: nothing is recorded */
    struct py_category *category;
    PyObject *dynamic;       /* the name where there were too many */
    struct stave_args *args; /* of the begin, cut to size; NULL: none */
    struct stave_args *more; /* of the end: whole, NULL until there are any */
    const void *thread;
    uint64_t begun; /* of py_begin() */
    uint32_t track, given_track, depth;
    bool has_exit; /* `with` has asked for __exit__, before it enters */
};

struct special {
    PyObject_HEAD vectorcallfunc call;
    bool is_exit;
};

/* ---- begin and end ---- */

/* The name travels with the event. */
static uint64_t begin_dynamic(struct py_call *c, uint32_t track, uint64_t owner, uint64_t args)
{
    PyObject *keep = NULL;
    PyObject *name = PyUnicode_Check(c->name) ? Py_NewRef(c->name) : PyObject_Str(c->name);
    if (!name) {
        py_forget_error();
        return 0;
    }
    uint64_t text = (uintptr_t)py_c_text(name, PY_NAME_BYTES, &keep);
    uint64_t begun =
        track ? stave_i_open_on(py_category_site(c->category, PY_BEGIN_ON_DYN),
                                (uint64_t[]){track, owner, text, args})
              : stave_i_emit(py_category_site(c->category, PY_BEGIN_DYN), (uint64_t[]){text, args});
    Py_XDECREF(keep);
    Py_DECREF(name);
    return begun;
}

uint64_t py_begin(struct py_name *n, struct py_call *c, uint32_t track, uint64_t owner,
                  const struct stave_args *a)
{
    uint64_t args = (uintptr_t)a;
    if (__builtin_expect(!n, 0))
        return begin_dynamic(c, track, owner, args);
    struct stave_site *site = py_site(n, track ? PY_BEGIN_ON : a ? PY_BEGIN_ARGS : PY_BEGIN);
    if (!py_is_on(site))
        return 0;
    if (track)
        return stave_i_open_on(site, (uint64_t[]){track, owner, args});
    return a ? stave_i_emit(site, &args) : stave_i_begin0(site);
}

void py_end(struct py_category *c, uint64_t begun, uint32_t track, const struct stave_args *a)
{
    uint64_t args = (uintptr_t)a;
    if (track)
        stave_i_close_on(py_category_site(c, PY_END_ON), begun, (uint64_t[]){track, 0, args});
    else if (a)
        stave_i_scope_end_with((uint32_t)begun, py_category_site(c, PY_END_ARGS), &args);
    else
        stave_i_scope_end((uint32_t)begun);
}

/* A generator may be left in the middle, and continue when what was around it is over. */
static bool in_generator(void)
{
    PyFrameObject *frame = PyEval_GetFrame(); /* borrowed */
    if (!frame)
        return false;
    PyCodeObject *code = PyFrame_GetCode(frame);
    int flags = code->co_flags;
    Py_DECREF(code);
    return flags & (CO_GENERATOR | CO_ASYNC_GENERATOR);
}

static void enter_as(struct slice *s, uint32_t track, uint64_t owner)
{
    struct py_call c = {.name = s->dynamic, .category = s->category};
    py_name_thread(py_state_of_type(Py_TYPE(s)));
    s->track = track;
    s->begun = py_begin(s->name, &c, track, owner, s->args);
    s->thread = &py_named_turn;
    s->depth++;
}

static PyObject *enter(struct slice *s)
{
    if (s->category) {
        uint32_t row = s->given_track ? 0 : py_tasks_row(py_state_of_type(Py_TYPE(s)));
        uint32_t track = row ? row : s->given_track;
        enter_as(s, track, track ? py_owner(row != 0, s->has_exit && !in_generator()) : 0);
    }
    return Py_NewRef(s);
}

static void leave_with(struct slice *s, PyObject *type, PyObject *value)
{
    struct stave_args here, *a = s->more ? s->more : &here;
    if (!s->more)
        stave_args_init(a);
    if (type != Py_None)
        py_add_exception(a, type, value);
    py_end(s->category, s->begun, s->track, a);
    PyMem_Free(s->more);
    s->more = NULL;
}

static PyObject *leave(struct slice *s, PyObject *type, PyObject *value)
{
    if (s->depth > 0) {
        s->depth--;
        s->has_exit = false;
        if (s->begun && (s->track || s->thread == &py_named_turn)) {
            if (__builtin_expect(type != Py_None || s->more, 0))
                leave_with(s, type, value);
            else
                py_end(s->category, s->begun, s->track, NULL);
        }
    }
    Py_RETURN_NONE;
}

static PyObject *slice_call(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    Py_ssize_t n = PyVectorcall_NARGS(nargsf);
    struct slice *s = (struct slice *)self;
    if (!kwnames && n == 0)
        return enter(s);
    if (!kwnames && n == 3)
        return leave(s, args[0], args[1]);
    PyErr_SetString(PyExc_TypeError,
                    "a slice is used with `with`; to decorate a function: @stave.trace_func");
    return NULL;
}

/* ---- __enter__ and __exit__ ---- */

static PyObject *special_get(PyObject *self, PyObject *obj, PyObject *type)
{
    (void)type;
    if (obj && ((struct special *)self)->is_exit)
        ((struct slice *)obj)->has_exit = true;
    return Py_NewRef(obj ? obj : self);
}

/* type(x).__exit__(x, …), as contextlib.ExitStack does it. */
static PyObject *special_call(PyObject *self, PyObject *const *args, size_t nargsf,
                              PyObject *kwnames)
{
    Py_ssize_t n = PyVectorcall_NARGS(nargsf);
    bool is_exit = ((struct special *)self)->is_exit;
    struct py_state *st = py_state_of_type(Py_TYPE(self));
    if (kwnames || n != (is_exit ? 4 : 1) || !Py_IS_TYPE(args[0], st->slice_type)) {
        PyErr_SetString(PyExc_TypeError, "expected a slice of stave.trace()");
        return NULL;
    }
    struct slice *s = (struct slice *)args[0];
    return is_exit ? leave(s, args[1], args[2]) : enter(s);
}

static void plain_free(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMemberDef special_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(struct special, call), READONLY, NULL}, {0}};
static PyType_Slot special_slots[] = {{Py_tp_descr_get, PY_SLOT(special_get)},
                                      {Py_tp_call, PY_SLOT(PyVectorcall_Call)},
                                      {Py_tp_members, special_members},
                                      {Py_tp_dealloc, PY_SLOT(plain_free)},
                                      {0, NULL}};
static PyType_Spec special_spec = {"_stave._SpecialMethod", sizeof(struct special), 0,
                                   Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL |
                                       Py_TPFLAGS_DISALLOW_INSTANTIATION,
                                   special_slots};

/* ---- more arguments ---- */

/* For the end of the slice; before it is entered, for its begin would be right, but the end is as good: readers show one slice. */
static struct stave_args *more_of(struct slice *s)
{
    if (!s->more) {
        s->more = PyMem_Malloc(sizeof *s->more);
        if (!s->more) {
            PyErr_NoMemory();
            return NULL;
        }
        stave_args_init(s->more);
    }
    return s->more;
}

static PyObject *slice_set(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *kwnames)
{
    struct slice *s = (struct slice *)self;
    struct stave_args *a = s->category ? more_of(s) : NULL;
    struct py_call c = {0};
    if (s->category &&
        (!a || !py_call_read(py_state_of_type(Py_TYPE(s)), &c, a, args, n, kwnames, 0)))
        return NULL;
    Py_XDECREF(c.outgoing);
    return Py_NewRef(self);
}

static PyObject *slice_incoming(PyObject *self, PyObject *flows)
{
    struct slice *s = (struct slice *)self;
    struct stave_args *a = s->category ? more_of(s) : NULL;
    if (s->category && !a)
        return NULL;
    if (a)
        py_add_flows(a, flows);
    Py_RETURN_NONE;
}

static PyObject *slice_outgoing(PyObject *self, PyObject *args)
{
    int n = 1;
    if (!PyArg_ParseTuple(args, "|i", &n))
        return NULL;
    struct slice *s = (struct slice *)self;
    PyObject *flows = py_new_flows(n);
    struct stave_args *a = flows && s->category ? more_of(s) : NULL;
    if (a)
        py_add_flows(a, flows);
    else if (flows && s->category)
        Py_CLEAR(flows);
    return flows;
}

/* The slice that a task's others lie in: what ends it is the end of the task. */
static PyObject *slice_enter_row(PyObject *self, PyObject *unused)
{
    (void)unused;
    struct slice *s = (struct slice *)self;
    if (s->category)
        enter_as(s, s->given_track, py_owner(true, true));
    Py_RETURN_NONE;
}

static PyMethodDef slice_methods[] = {
    {"_enter_row", slice_enter_row, METH_NOARGS,
     "_enter_row($self)\n--\n\nAs the slice of a task."},
    {"set", PY_FUNCTION(slice_set), METH_FASTCALL | METH_KEYWORDS,
     "set($self, *args, **kwargs)\n--\n\n"
     "More arguments, written with the end of the slice. Returns the slice."},
    {"set_incoming_flow_ids", slice_incoming, METH_O,
     "set_incoming_flow_ids($self, flows, /)\n--\n\nFlows that end here."},
    {"get_outgoing_flow_ids", slice_outgoing, METH_VARARGS,
     "get_outgoing_flow_ids($self, n=1, /)\n--\n\nNumbers of new flows that start here."},
    {0}};

static void slice_free(PyObject *self)
{
    struct slice *s = (struct slice *)self;
    PyTypeObject *type = Py_TYPE(self);
    Py_XDECREF(s->dynamic);
    PyMem_Free(s->args);
    PyMem_Free(s->more);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMemberDef slice_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(struct slice, call), READONLY, NULL}, {0}};
static PyType_Slot slice_slots[] = {{Py_tp_call, PY_SLOT(PyVectorcall_Call)},
                                    {Py_tp_members, slice_members},
                                    {Py_tp_methods, slice_methods},
                                    {Py_tp_dealloc, PY_SLOT(slice_free)},
                                    {Py_tp_doc, "A slice: use it with `with`."},
                                    {0, NULL}};
static PyType_Spec slice_spec = {"_stave.Slice", sizeof(struct slice), 0,
                                 Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL |
                                     Py_TPFLAGS_DISALLOW_INSTANTIATION,
                                 slice_slots};

static struct slice *new_slice(struct py_state *st)
{
    struct slice *s = PyObject_New(struct slice, st->slice_type);
    if (s)
        memset((char *)s + offsetof(struct slice, call), 0,
               sizeof *s - offsetof(struct slice, call));
    if (s)
        s->call = slice_call;
    return s;
}

static int add_special(struct py_state *st, const char *name, bool is_exit)
{
    struct special *special = PyObject_New(struct special, st->special_type);
    if (!special)
        return -1;
    special->call = special_call;
    special->is_exit = is_exit;
    int status = PyObject_SetAttrString((PyObject *)st->slice_type, name, (PyObject *)special);
    Py_DECREF(special);
    return status;
}

int py_slice_init(struct py_state *st)
{
    st->special_type = (PyTypeObject *)PyType_FromModuleAndSpec(st->module, &special_spec, NULL);
    st->slice_type = (PyTypeObject *)PyType_FromModuleAndSpec(st->module, &slice_spec, NULL);
    if (!st->special_type || !st->slice_type || add_special(st, "__enter__", false) < 0 ||
        add_special(st, "__exit__", true) < 0)
        return -1;
    st->off = (PyObject *)new_slice(st);
    return st->off ? PyModule_AddType(st->module, st->slice_type) : -1;
}

/* ---- trace() ---- */

/* The arguments in memory of their size: what the hot path reads of them is the length and the bytes. */
static struct stave_args *keep_args(const struct stave_args *a)
{
    struct stave_args *kept = PyMem_Malloc(offsetof(struct stave_args, bytes) + a->len);
    if (!kept) {
        PyErr_NoMemory();
        return NULL;
    }
    kept->len = a->len;
    memcpy(kept->bytes, a->bytes, a->len);
    return kept;
}

/* With arguments. */
static bool read_args(struct py_state *st, struct slice *s, PyObject *const *args, Py_ssize_t n,
                      PyObject *kwnames)
{
    struct stave_args a;
    struct py_call c = {.category = s->category};
    stave_args_init(&a);
    bool ok = py_call_read(st, &c, &a, args, n, kwnames, 1);
    Py_XDECREF(c.outgoing); /* get_outgoing_flow_ids() of the slice gives them */
    if (!ok)
        return false;
    s->category = c.category;
    s->args = a.len ? keep_args(&a) : NULL;
    return !a.len || s->args;
}

PyObject *py_trace(struct py_state *st, uint32_t track, PyObject *const *args, Py_ssize_t n,
                   PyObject *kwnames)
{
    if (__builtin_expect(!stave_enabled(NULL), 1))
        return Py_NewRef(st->off);
    if (n < 1) {
        PyErr_SetString(PyExc_TypeError, "trace() needs a name");
        return NULL;
    }
    struct slice *s = new_slice(st);
    if (!s)
        return NULL;
    s->category = st->trace_category;
    s->given_track = track;
    if ((n > 1 || kwnames) && !read_args(st, s, args, n, kwnames)) {
        Py_DECREF(s);
        return NULL;
    }
    s->name = py_name_find(st, s->category, args[0]);
    if (__builtin_expect(!s->name, 0)) {
        if (PyErr_Occurred())
            Py_CLEAR(s);
        else
            s->dynamic = Py_NewRef(args[0]);
    }
    return (PyObject *)s;
}
