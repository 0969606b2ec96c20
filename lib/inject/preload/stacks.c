/* Where a thread is.
 *
 * Native frames are addresses: the recorder has the symbols, also of functions that are not
 * exported. They are found by the unwind tables, with the finder that takes no lock (glibc 2.35);
 * without it there is the caller alone. Frames of Python are those of the calling thread, which
 * nobody else changes. Where the interpreter keeps them is known for 3.11 and 3.12, and 3.13 says
 * it itself; the numbers are those of src/record/stacks/python_offsets.c. */
#include "inject/preload/preload.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>
#include <unwind.h>

/* ---- Python ---- */

enum { DEPTH_MAX = 64, SHIM = 3, NONE = 0xffff };
struct offsets {
    uint16_t cframe, frame, code, previous, owner, file, name, text;
};
static const struct offsets python_3_11 = {56, 8, 32, 48, 69, 112, 128, 48},
                            python_3_12 = {56, 0, 0, 8, 70, 112, 128, 40};
static struct offsets python;
static struct {
    void *(*this_thread)(void);
    uintptr_t runtime, runtime_end;
} cpython;
static bool has_finder; /* of unwind tables, without a lock */

/* Of 3.13: by their place in struct _Py_DebugOffsets, in words. */
static bool offsets_said(const uint64_t *said, uint64_t version)
{
    enum { FRAME = 23, PREVIOUS = 29, CODE = 30, OWNER = 33, FILE_ = 35, NAME = 37 };
    if (memcmp(said, "xdebugpy", 8) != 0 || said[1] != version || said[2] != 0)
        return false;
    python = (struct offsets){.cframe = NONE,
                              .frame = (uint16_t)said[FRAME],
                              .code = (uint16_t)said[CODE],
                              .previous = (uint16_t)said[PREVIOUS],
                              .owner = (uint16_t)said[OWNER],
                              .file = (uint16_t)said[FILE_],
                              .name = (uint16_t)said[NAME],
                              .text = 40};
    return true;
}

static bool find_offsets(const void *runtime, uint64_t version)
{
    switch (version >> 16) {
    case 0x030b: python = python_3_11; return true;
    case 0x030c: python = python_3_12; return true;
    case 0x030d: return offsets_said(runtime, version);
    }
    return false;
}

void pre_stacks_init(void)
{
    void *runtime = dlsym(RTLD_DEFAULT, "_PyRuntime"),
         *state = dlsym(RTLD_DEFAULT, "PyGILState_GetThisThreadState");
    const unsigned long *version = dlsym(RTLD_DEFAULT, "Py_Version");
    void *symbol = NULL;
    Dl_info info;
    has_finder = dlsym(RTLD_DEFAULT, "_dl_find_object") != NULL;
    if (!runtime || !dladdr1(runtime, &info, &symbol, RTLD_DL_SYMENT) || !symbol)
        return;
    cpython.runtime = (uintptr_t)runtime;
    cpython.runtime_end = cpython.runtime + ((const ElfW(Sym) *)symbol)->st_size;
    if (state && version && find_offsets(runtime, *version))
        memcpy(&cpython.this_thread, &state, sizeof state);
}

bool pre_is_gil(uintptr_t address)
{
    return address >= cpython.runtime && address < cpython.runtime_end;
}

static const char *pointer_at(const char *object, unsigned offset)
{
    const char *to;
    memcpy(&to, object + offset, sizeof to);
    return to;
}

/* A str: its characters where they are ASCII; else a question mark. */
static size_t put_text(char *to, size_t room, const char *str, bool only_file)
{
    enum { LENGTH = 16, STATE = 32, IS_PLAIN = 3 << 5 };
    int64_t len;
    uint32_t state;
    memcpy(&len, str + LENGTH, sizeof len);
    memcpy(&state, str + STATE, sizeof state);
    if ((state & IS_PLAIN) != IS_PLAIN || len < 0 || len > 4096)
        str = "?", len = 1;
    else
        str += python.text;
    const char *slash = only_file ? memrchr(str, '/', (size_t)len) : NULL;
    size_t skip = slash ? (size_t)(slash + 1 - str) : 0, n = (size_t)len - skip;
    n = n < room ? n : room;
    memcpy(to, str + skip, n);
    return n;
}

/* "Model.forward (model.py)" */
static bool put_frame(struct pre_stack *s, const char *code)
{
    char text[200];
    size_t n = put_text(text, 120, pointer_at(code, python.name), false);
    memcpy(text + n, " (", 2);
    n += 2;
    n += put_text(text + n, sizeof text - n - 2, pointer_at(code, python.file), true);
    text[n++] = ')';
    text[n++] = 0;
    if (s->python_len + n > sizeof s->python)
        return false;
    memcpy(s->python + s->python_len, text, n);
    s->python_len += (uint32_t)n;
    return true;
}

static void take_python(struct pre_stack *s)
{
    const char *thread = cpython.this_thread ? cpython.this_thread() : NULL;
    if (thread && python.cframe != NONE)
        thread = pointer_at(thread, python.cframe);
    const char *frame = thread ? pointer_at(thread, python.frame) : NULL;
    for (int depth = 0; frame && depth < DEPTH_MAX; depth++) {
        const char *code = pointer_at(frame, python.code);
        if (frame[python.owner] != SHIM && code && !put_frame(s, code))
            return;
        frame = pointer_at(frame, python.previous);
    }
}

/* ---- native ---- */

struct walk {
    struct pre_stack *s;
    uintptr_t caller;
    bool has_begun;
};

static _Unwind_Reason_Code step(struct _Unwind_Context *context, void *arg)
{
    struct walk *w = arg;
    uintptr_t at = _Unwind_GetIP(context);
    w->has_begun |= at == w->caller;
    if (w->has_begun && at)
        w->s->native[w->s->n_native++] = at;
    return w->s->n_native < PRE_NATIVE_MAX ? _URC_NO_REASON : _URC_END_OF_STACK;
}

void pre_stack_take(struct pre_stack *s, const void *caller)
{
    struct walk w = {.s = s, .caller = (uintptr_t)caller};
    s->n_native = s->python_len = 0;
    take_python(s);
    if (!s->python_len && has_finder)
        _Unwind_Backtrace(step, &w);
    if (!s->n_native)
        s->native[s->n_native++] = (uintptr_t)caller;
}
