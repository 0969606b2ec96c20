/* Slices: what trace() returns.
 *
 * `with` looks up __enter__ and __exit__ and calls each once; ordinarily both lookups make a bound
 * method, which costs more than the event. Here the two names are descriptors. __enter__ gives the
 * slice itself, which can be called. __exit__ gives a builtin function, since the interpreter has a
 * shorter way for these than for other objects. A slice and its function are made as a pair and
 * used again as soon as nobody else has a reference to either. So an event makes no object as a
 * rule, and a switched-off one never.
 *
 * A slice belongs to the thread that entered it: on the thread's own track only that thread can end
 * it. Inside an asyncio task it is on the task's row instead (py_tasks.c). On a row or a named
 * track it is ended by its number, by whatever thread and in whatever order.
 *
 * Slices of one owner on one track are drawn inside each other, also while they are open, if it is
 * sure that they end in order: a `with` statement ends before the one around it, unless a generator
 * is between them, which can be left alone in the middle. */
#include "py_stave.h"

#include <stddef.h>
#include <string.h>
#include <structmember.h>

/* Without a GIL threads would share the pairs. */
#if defined(Py_GIL_DISABLED) || defined(Py_TRACE_REFS)
enum { KEEPS_PAIRS = 0 };
#else
enum { KEEPS_PAIRS = 1 };
#endif

struct slice {
    PyObject_HEAD vectorcallfunc call;
    struct py_state *st;
    struct py_name *name; /* NULL: nothing is recorded */
    struct py_category *category;
    PyObject *dynamic;       /* the name where there were too many */
    struct stave_args *args; /* of the begin, cut to size; NULL: none */
    struct stave_args *more; /* of the end: whole, NULL until there are any */
    const void *thread;
    uint64_t begun; /* of py_begin() */
    uint32_t track, given_track, depth;
    unsigned number; /* of the pair */
    bool has_exit;   /* `with` has asked for __exit__, before it enters */
    PyObject *
        /* of a pair: the function, which holds the slice in turn; NULL: the slice is called
         * itself */
        exit;
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
    py_name_thread(s->st);
    s->track = track;
    s->begun = py_begin(s->name, &c, track, owner, s->args);
    s->thread = &py_named_turn;
    s->depth++;
}

static __attribute__((noinline)) void enter_anyhow(struct slice *s)
{
    uint32_t row = s->given_track ? 0 : py_tasks_row(s->st);
    uint32_t track = row ? row : s->given_track;
    enter_as(s, track, track ? py_owner(row != 0, s->has_exit && !in_generator()) : 0);
}

static PyObject *enter(struct slice *s)
{
    bool is_plain = s->name && !s->args && !s->given_track && !s->st->get_loop;
    if (__builtin_expect(is_plain, 1)) {
        py_name_thread(s->st);
        struct stave_site *site = py_site(s->name, PY_BEGIN);
        s->track = 0;
        s->begun = py_is_on(site) ? stave_i_begin0(site) : 0;
        s->thread = &py_named_turn;
        s->depth++;
    } else if (s->category) {
        enter_anyhow(s);
    }
    return Py_NewRef(s);
}

static __attribute__((noinline)) void leave_with(struct slice *s, PyObject *type, PyObject *value)
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

static __attribute__((noinline)) void leave_anyhow(struct slice *s, PyObject *type, PyObject *value)
{
    if (!s->begun || (!s->track && s->thread != &py_named_turn))
        return;
    if (type != Py_None || s->more)
        leave_with(s, type, value);
    else
        py_end(s->category, s->begun, s->track, NULL);
}

static inline void leave(struct slice *s, PyObject *type, PyObject *value)
{
    if (__builtin_expect(s->depth == 0, 0))
        return;
    s->depth--;
    s->has_exit = false;
    bool is_plain = type == Py_None && !s->more && !s->track && s->begun;
    if (__builtin_expect(is_plain && s->thread == &py_named_turn, 1))
        stave_i_scope_end((uint32_t)s->begun);
    else
        leave_anyhow(s, type, value);
}

static PyObject *wrong_call(void)
{
    PyErr_SetString(PyExc_TypeError,
                    "a slice is used with `with`; to decorate a function: @stave.trace_func");
    return NULL;
}

static PyObject *slice_call(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    Py_ssize_t n = PyVectorcall_NARGS(nargsf);
    struct slice *s = (struct slice *)self;
    if (!kwnames && n == 0)
        return enter(s);
    if (kwnames || n != 3)
        return wrong_call();
    leave(s, args[0], args[1]);
    Py_RETURN_NONE;
}

/* The slice of everything that is not recorded. */
static PyObject *off_call(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    if (__builtin_expect(!kwnames && PyVectorcall_NARGS(nargsf) == 0, 1))
        return Py_NewRef(self);
    return slice_call(self, args, nargsf, kwnames);
}

static inline bool has_parts(const struct slice *s)
{
    return s->dynamic || s->args || s->more;
}

static __attribute__((noinline)) void free_parts(struct slice *s)
{
    Py_CLEAR(s->dynamic);
    PyMem_Free(s->args);
    PyMem_Free(s->more);
    s->args = s->more = NULL;
}

static PyObject *slice_exit(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    struct slice *s = (struct slice *)self;
    if (__builtin_expect(n != 3, 0))
        return wrong_call();
    leave(s, args[0], args[1]);
    if (__builtin_expect(has_parts(s), 0) && s->depth == 0 && Py_REFCNT(s) == 1)
        free_parts(s);            /* nobody can enter it again */
    s->st->next_pair = s->number; /* it is probably free when the caller has dropped the function */
    Py_RETURN_NONE;
}

/* ExitStack calls it with the slice before the three. */
static PyObject *off_exit(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    (void)self, (void)args;
    if (__builtin_expect(n != 3 && n != 4, 0))
        return wrong_call();
    Py_RETURN_NONE;
}

static PyMethodDef exit_method = {"__exit__", PY_FUNCTION(slice_exit), METH_FASTCALL, NULL};
static PyMethodDef off_exit_method = {"__exit__", PY_FUNCTION(off_exit), METH_FASTCALL, NULL};

/* ---- __enter__ and __exit__ ---- */

static PyObject *special_get(PyObject *self, PyObject *obj, PyObject *type)
{
    (void)type;
    if (!obj)
        return Py_NewRef(self);
    if (!((struct special *)self)->is_exit)
        return Py_NewRef(obj);
    ((struct slice *)obj)->has_exit = true;
    PyObject *function = ((struct slice *)obj)->exit;
    return Py_NewRef(function ? function : obj);
}

static bool is_slice(const struct py_state *st, PyObject *obj)
{
    return Py_IS_TYPE(obj, st->slice_type) || Py_IS_TYPE(obj, st->off_type);
}

/* type(x).__exit__(x, …), as contextlib.ExitStack does it. */
static PyObject *special_call(PyObject *self, PyObject *const *args, size_t nargsf,
                              PyObject *kwnames)
{
    Py_ssize_t n = PyVectorcall_NARGS(nargsf);
    bool is_exit = ((struct special *)self)->is_exit;
    struct py_state *st = py_state_of_type(Py_TYPE(self));
    if (kwnames || n != (is_exit ? 4 : 1) || !is_slice(st, args[0])) {
        PyErr_SetString(PyExc_TypeError, "expected a slice of stave.trace()");
        return NULL;
    }
    struct slice *s = (struct slice *)args[0];
    if (!is_exit)
        return enter(s);
    leave(s, args[1], args[2]);
    Py_RETURN_NONE;
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

/* For the end of the slice; before it is entered, for its begin would be right, but the end is as
 * good: readers show one slice. */
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
    if (s->category && (!a || !py_call_read(s->st, &c, a, args, n, kwnames, 0)))
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
    PyTypeObject *type = Py_TYPE(self);
    free_parts((struct slice *)self);
    type->tp_free(self);
    Py_DECREF(type); /* last: the module may go with it */
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
/* Apart from the other one for its __exit__, which needs no slice. */
static PyType_Spec off_spec = {"_stave.SliceOff", sizeof(struct slice), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL |
                                   Py_TPFLAGS_DISALLOW_INSTANTIATION,
                               slice_slots};

static struct slice *make_slice(struct py_state *st, PyTypeObject *type)
{
    struct slice *s = PyObject_New(struct slice, type);
    if (!s)
        return NULL;
    memset((char *)s + offsetof(struct slice, call), 0, sizeof *s - offsetof(struct slice, call));
    s->call = slice_call;
    s->st = st;
    return s;
}

/* ---- pairs ---- */

/* Each holds the other, and nobody else has one of them. */
static inline bool is_free(struct slice *s)
{
    return Py_REFCNT(s) == 1 && Py_REFCNT(s->exit) == 1;
}

static struct slice *make_pair(struct py_state *st)
{
    struct slice *s = make_slice(st, st->slice_type);
    if (!s)
        return NULL;
    s->exit = PyCFunction_NewEx(&exit_method, (PyObject *)s, NULL);
    if (!s->exit) {
        Py_DECREF(s);
        return NULL;
    }
    s->number = st->n_pairs;
    st->pairs[st->n_pairs++] = (PyObject *)s;
    st->next_pair = st->n_pairs;
    return s;
}

/* The expected one is in use. After a search in vain a number of slices are made without another
 * search. */
static __attribute__((noinline)) struct slice *find_slice(struct py_state *st)
{
    unsigned n = st->n_pairs, from = st->next_pair;
    if (!KEEPS_PAIRS)
        return make_slice(st, st->slice_type);
    if (from > PY_PAIRS) {
        st->next_pair--;
        return make_slice(st, st->slice_type);
    }
    for (unsigned i = 0; i < n; i++) {
        struct slice *s = (struct slice *)st->pairs[(from + i) % n];
        if (is_free(s)) {
            free_parts(s);
            st->next_pair = s->number + 1;
            return (struct slice *)Py_NewRef(s);
        }
    }
    if (n < st->max_pairs)
        return make_pair(st);
    st->next_pair = 2 * PY_PAIRS;
    return make_slice(st, st->slice_type);
}

static inline struct slice *new_slice(struct py_state *st, uint32_t track)
{
    struct slice *s = NULL;
    if (__builtin_expect(st->next_pair < st->n_pairs, 1))
        s = (struct slice *)st->pairs[st->next_pair];
    if (__builtin_expect(s && is_free(s) && !has_parts(s), 1)) {
        Py_INCREF(s);
        st->next_pair++;
    } else if (!(s = find_slice(st))) {
        return NULL;
    }
    s->category = st->trace_category;
    s->given_track = track;
    s->name = NULL;
    s->depth = 0;
    s->has_exit = false;
    return s;
}

void py_slice_clear(struct py_state *st)
{
    st->max_pairs = 0;
    while (st->n_pairs > 0) {
        struct slice *s = (struct slice *)st->pairs[--st->n_pairs];
        Py_CLEAR(s->exit); /* the last reference to the slice goes with it */
    }
}

static int visit_type(PyObject *slice, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(slice));
    return 0;
}

/* The references to their types of slices that only the module has: the collector cannot see
 * them. */
int py_slice_traverse(struct py_state *st, visitproc visit, void *arg)
{
    int status = st->off && Py_REFCNT(st->off) == 1 ? visit_type(st->off, visit, arg) : 0;
    for (unsigned i = 0; !status && i < st->n_pairs; i++)
        if (is_free((struct slice *)st->pairs[i]))
            status = visit_type(st->pairs[i], visit, arg);
    return status;
}

/* ---- types ---- */

static int add_special(struct py_state *st, PyTypeObject *type, const char *name, bool is_exit)
{
    struct special *special = PyObject_New(struct special, st->special_type);
    if (!special)
        return -1;
    special->call = special_call;
    special->is_exit = is_exit;
    int status = PyObject_SetAttrString((PyObject *)type, name, (PyObject *)special);
    Py_DECREF(special);
    return status;
}

static int add_off(struct py_state *st)
{
    PyObject *exit = PyCFunction_NewEx(&off_exit_method, NULL, NULL);
    struct slice *off = exit ? make_slice(st, st->off_type) : NULL;
    if (!off || add_special(st, st->off_type, "__enter__", false) < 0 ||
        PyObject_SetAttrString((PyObject *)st->off_type, "__exit__", exit) < 0) {
        Py_XDECREF(off);
        Py_XDECREF(exit);
        return -1;
    }
    Py_DECREF(exit);
    off->call = off_call;
    st->off = (PyObject *)off;
    return 0;
}

static PyTypeObject *make_type(struct py_state *st, PyType_Spec *spec)
{
    return (PyTypeObject *)PyType_FromModuleAndSpec(st->module, spec, NULL);
}

int py_slice_init(struct py_state *st)
{
    st->special_type = make_type(st, &special_spec);
    st->slice_type = make_type(st, &slice_spec);
    st->off_type = make_type(st, &off_spec);
    st->max_pairs = PY_PAIRS;
    if (!st->special_type || !st->slice_type || !st->off_type ||
        add_special(st, st->slice_type, "__enter__", false) < 0 ||
        add_special(st, st->slice_type, "__exit__", true) < 0 || add_off(st) < 0)
        return -1;
    return PyModule_AddType(st->module, st->slice_type);
}

/* ---- trace() ---- */

/* The arguments in memory of their size: what the hot path reads of them is the length and the
 * bytes. */
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

/* With arguments, or with a name that was not seen lately. */
static __attribute__((noinline)) PyObject *trace_anyhow(struct py_state *st, uint32_t track,
                                                        PyObject *const *args, Py_ssize_t n,
                                                        PyObject *kwnames)
{
    if (n < 1) {
        PyErr_SetString(PyExc_TypeError, "trace() needs a name");
        return NULL;
    }
    struct slice *s = new_slice(st, track);
    if (!s)
        return NULL;
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

PyObject *py_trace(struct py_state *st, uint32_t track, PyObject *const *args, Py_ssize_t n,
                   PyObject *kwnames)
{
    struct py_name *name = n == 1 && !kwnames ? py_name_known(st, st->trace_category, args[0])
                                              : NULL;
    if (__builtin_expect(!name, 0))
        return trace_anyhow(st, track, args, n, kwnames);
    struct slice *s = new_slice(st, track);
    if (s)
        s->name = name;
    return (PyObject *)s;
}
