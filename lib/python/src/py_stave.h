/* The Python extension _stave, seen from inside: what its files share.
 *
 *   py_module.c    the module: start, flush, stop, trace, instant, and the list of everything
 *   py_names.c     names to call sites: strings are looked up by address, so that an event costs no
 *                  hashing
 *   py_convert.c   Python values to arguments; nothing that a value does can break the program
 *   py_slice.c     what trace() returns: a context manager without a temporary object
 *   py_func.c      what the decorators return
 *   py_track.c     tracks and counters
 *   py_tasks.c     rows for asyncio tasks
 *   py_text.c      names as C strings; the names of threads and processes
 *   py_auto.c      every function of chosen modules: sys.setprofile, sys.monitoring
 *   py_file.c      files with explicit times
 *   py_trace_writer.c   the writer of ferrum's files
 *
 * It uses <stave/…> only. Python objects live in the module's state, one per interpreter; what
 * reaches a ring is bytes. Call places are ordinary C memory, shared by all interpreters and never
 * freed. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stave/stave.h>
#include <stdbool.h>

/* ---- names and call sites (py_names.c) ---- */

/* How a call site looks: its kind and the words before the arguments. */
enum py_shape {
    PY_BEGIN,                      /* no arguments */
    PY_BEGIN_ARGS,                 /* args */
    PY_BEGIN_ON,                   /* track, owner, args */
    PY_INSTANT,                    /* no arguments */
    PY_INSTANT_ARGS,               /* args */
    PY_INSTANT_ON,                 /* track, args */
    PY_COMPLETE,                   /* track, start, duration, args */
    PY_NAME_SHAPES,                /* from here on the name is a word, or there is none */
    PY_BEGIN_DYN = PY_NAME_SHAPES, /* name, args */
    PY_BEGIN_ON_DYN,               /* track, owner, name, args */
    PY_INSTANT_ON_DYN,
    PY_COMPLETE_DYN, /* track, start, duration, name, args */
    PY_END_ARGS,     /* args */
    PY_END_ON,       /* track, slice, args */
    PY_COUNT_INT,    /* track, value */
    PY_COUNT_DOUBLE,
    PY_SHAPES
};

struct py_category {
    PyObject *text;  /* str */
    PyObject *names; /* dict: str → capsule of struct py_name */
    struct stave_site *sites[PY_SHAPES];
};

/* An event name of a category. text NULL: too many names, `dynamic` is this one's for the
 * moment. */
struct py_name {
    PyObject *text;
    struct py_category *category;
    struct stave_site *sites[PY_NAME_SHAPES]; /* made at first use */
};

enum { PY_NAMES_MAX = 16384, PY_CACHE_SLOTS = 1024, PY_PAIRS = 64 };

struct py_cache_slot {
    PyObject *text; /* owned: its address is the key */
    struct py_category *category;
    struct py_name *name;
};

struct py_state {
    PyObject *module; /* borrowed */
    PyTypeObject *slice_type, *off_type, *special_type, *func_type, *track_type, *counter_type,
        *file_type;
    PyObject *off;             /* what trace() returns when nothing is recorded */
    PyObject *pairs[PY_PAIRS]; /* slices with their __exit__, to be used again (py_slice.c) */
    unsigned n_pairs, max_pairs, next_pair;
    PyObject *categories; /* dict: str → capsule of struct py_category */
    struct py_category *trace_category, *func_category, *count_category;
    struct py_cache_slot cache[PY_CACHE_SLOTS];
    /* interned words */
    PyObject *w_category, *w_flow, *w_incoming, *w_outgoing, *w_stave_row;
    /* asyncio, NULL until it is seen */
    PyObject *get_loop, *current_task, *new_row;
    PyObject *name_thread; /* of stave._names, NULL until it is needed */
    /* auto */
    PyObject *auto_filter, *disable;
    Py_ssize_t auto_index; /* of the slot in code objects, -1: none yet */
    uint32_t auto_turn;
    uint64_t auto_max_depth;
};

/* The module that most events come from and its state: PyModule_GetState() is a tenth of an event's
 * cost. Other interpreters have other modules. */
struct py_usual {
    PyObject *module; /* compared only */
    struct py_state *state;
};
extern struct py_usual py_usual;
static inline struct py_state *py_state_of(PyObject *module)
{
    if (__builtin_expect(__atomic_load_n(&py_usual.module, __ATOMIC_ACQUIRE) == module, 1))
        return __atomic_load_n(&py_usual.state, __ATOMIC_RELAXED);
    return PyModule_GetState(module);
}
struct py_state *py_state_of_type(PyTypeObject *type);

struct py_category *py_category_find(struct py_state *st, PyObject *value); /* NULL: error set */
/* NULL without an error: too many names; use the shapes with a word for it. */
struct py_name *py_name_find(struct py_state *st, struct py_category *c, PyObject *value);
/* The same, if the object was looked up lately; NULL: look it up. */
static inline struct py_cache_slot *py_cache_slot(struct py_state *st, PyObject *value)
{
    return &st->cache[((uintptr_t)value >> 4 ^ (uintptr_t)value >> 14) % PY_CACHE_SLOTS];
}
static inline struct py_name *py_name_known(struct py_state *st, const struct py_category *c,
                                            PyObject *value)
{
#ifdef Py_GIL_DISABLED /* without a lock the dictionary alone is safe to share */
    (void)st, (void)c, (void)value;
    return NULL;
#else
    const struct py_cache_slot *slot = py_cache_slot(st, value);
    return slot->text == value && slot->category == c ? slot->name : NULL;
#endif
}
struct stave_site *py_site_make(enum py_shape shape, const char *category, const char *name);
void py_names_clear(struct py_state *st);

struct stave_site *py_site_of_name(struct py_name *n, enum py_shape shape);

/* Call places of a name and of a category. Never NULL: without memory it is one that is off. */
static inline struct stave_site *py_site(struct py_name *n, enum py_shape shape)
{
    struct stave_site *site = __atomic_load_n(&n->sites[shape], __ATOMIC_ACQUIRE);
    return __builtin_expect(site != NULL, 1) ? site : py_site_of_name(n, shape);
}
struct stave_site *py_category_site(struct py_category *c, enum py_shape shape);

static inline bool py_is_on(const struct stave_site *site)
{
    return __atomic_load_n(&site->state, __ATOMIC_RELAXED) != 0;
}

/* ---- names (py_text.c) ---- */

enum { PY_NAME_BYTES = 1000, PY_KEY_BYTES = 4096 };

/* A str as a C string of at most `max` bytes: a NUL is written as \x00, a lone surrogate likewise,
 * and what is cut is counted at the end. Borrowed from the str or from *keep (a new reference, or
 * NULL). */
const char *py_c_text(PyObject *text, Py_ssize_t max, PyObject **keep);

/* Converters for PyArg_ParseTuple's O&: a name, and one without a limit. Free it with
 * py_text_free(). */
struct py_text {
    const char *text;
    PyObject *keep;
};
int py_name_arg(PyObject *value, void *text);
int py_text_arg(PyObject *value, void *text);
void py_text_free(struct py_text *t);

/* A thread is named at its first event in each session and after each fork. */
extern _Thread_local uint32_t py_named_turn __attribute__((tls_model("initial-exec")));
extern uint32_t py_turn; /* of sessions and forks, from 1 */
void py_name_thread_slow(struct py_state *st);
static inline void py_name_thread(struct py_state *st)
{
    if (__builtin_expect(py_named_turn != __atomic_load_n(&py_turn, __ATOMIC_RELAXED), 0))
        py_name_thread_slow(st);
}
void py_name_again(void); /* a session begins */
void py_text_init(void);

/* ---- arguments (py_convert.c) ---- */

void py_add(struct stave_args *a, const char *key, PyObject *value);
void py_add_pairs(struct stave_args *a, PyObject *dict); /* its items as arguments */
void py_add_exception(struct stave_args *a, PyObject *type, PyObject *value);
void py_add_flows(struct stave_args *a, PyObject *flows); /* numbers, flows, or lists of them */
/* An event never raises: what is wrong with its value goes to sys.unraisablehook, once. */
void py_value_is_wrong(PyObject *value);
void py_forget_error(void); /* after a value failed: only what must get through is kept */
/* UTF-8 of a str, borrowed from it or, where it has none, of *keep (a new reference). */
const char *py_utf8(PyObject *text, Py_ssize_t *len, PyObject **keep);

/* What trace(), instant() and so on were called with. */
struct py_call {
    PyObject *name; /* borrowed */
    struct py_category *category;
    PyObject *outgoing; /* list of new flow numbers, or NULL */
};
/* `first` is where the arguments of the event begin. False: an error is set. */
bool py_call_read(struct py_state *st, struct py_call *c, struct stave_args *a,
                  PyObject *const *args, Py_ssize_t n, PyObject *kwnames, Py_ssize_t first);
/* Only what a switched-off event must still do: flow numbers. NULL without error: none. */
PyObject *py_call_outgoing(struct py_state *st, PyObject *const *args, Py_ssize_t n,
                           PyObject *kwnames);
PyObject *py_new_flows(long n);

/* ---- events ---- */

extern const uint32_t *py_gate; /* stave_i_gate(): set before any event */
static inline bool py_records(void)
{
    const uint32_t *gate = __atomic_load_n(&py_gate, __ATOMIC_RELAXED);
    return __atomic_load_n(gate, __ATOMIC_RELAXED) != 0;
}

/* Whose slices on a track are in order with each other: those of one task, or outside of tasks of
 * one thread (its context). A task's own row is its own. is_sure: nothing that encloses it can end
 * before it does. */
static inline uint64_t py_owner(bool on_row, bool is_sure)
{
    uintptr_t context = on_row ? 0 : (uintptr_t)PyThreadState_Get()->context;
    return (uint64_t)context << 1 | is_sure;
}

/* A begin on `track` (0: the thread's). Returns what py_end() takes, 0: not recorded. */
uint64_t py_begin(struct py_name *n, struct py_call *c, uint32_t track, uint64_t owner,
                  const struct stave_args *a);
void py_end(struct py_category *c, uint64_t begun, uint32_t track, const struct stave_args *a);
PyObject *py_instant(struct py_state *st, uint32_t track, PyObject *const *args, Py_ssize_t n,
                     PyObject *kwnames);
/* While something is recorded; else st->off is the slice. */
PyObject *py_trace(struct py_state *st, uint32_t track, PyObject *const *args, Py_ssize_t n,
                   PyObject *kwnames);

/* ---- asyncio (py_tasks.c) ---- */

void py_tasks_look(struct py_state *st); /* is asyncio there? */
uint32_t py_tasks_row_slow(struct py_state *st);
/* The row of the running task, 0: no task is running. */
static inline uint32_t py_tasks_row(struct py_state *st)
{
    return __builtin_expect(st->get_loop != NULL, 0) ? py_tasks_row_slow(st) : 0;
}

/* ---- types: 0 or -1 with an error ---- */

int py_slice_init(struct py_state *st);
void py_slice_clear(struct py_state *st); /* the pairs */
int py_slice_traverse(struct py_state *st, visitproc visit, void *arg);
int py_func_init(struct py_state *st);
int py_track_init(struct py_state *st);
int py_file_init(struct py_state *st);
PyObject *py_func_new(struct py_state *st, PyObject *function, uint32_t track, bool with_args,
                      PyObject *name, PyObject *category);

extern PyMethodDef py_text_methods[], py_func_methods[], py_auto_methods[], py_tasks_methods[],
    py_trace_writer_methods[];
void py_auto_clear(struct py_state *st);

/* Casts of CPython's tables, in one place. */
#define PY_FUNCTION(f) ((PyCFunction)(void (*)(void))(f))
#define PY_SLOT(f)     ((void *)(f))
