/* Where a thread is.
 *
 * Native frames are addresses: the recorder has the symbols, also of functions that are not
 * exported. They are found by the unwind tables, with the finder that takes no lock (glibc 2.35);
 * without it there is the caller alone. Frames of Python are those of the calling thread, which
 * nobody else changes. Where the interpreter keeps them is known for 3.11 and 3.12, and 3.13 and
 * 3.14 say it themselves; the numbers are those of src/record/stacks/python_offsets.c. */
#include "inject/preload/preload.h"

#include "core/base/python_place.h"
#include "core/base/python_said.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <unwind.h>

/* ---- Python ---- */

enum { DEPTH_MAX = 64, NONE = 0xffff };
struct offsets {
    uint16_t cframe, frame, code, previous, instr, owner, first_line, file, name, lines, bytecode,
        text;
};
static const struct offsets python_3_11 = {56, 8, 32, 48, 56, 69, 72, 112, 128, 136, 184, 48},
                            python_3_12 = {56, 0, 0, 8, 56, 70, 68, 112, 128, 136, 192, 40};
static struct offsets python;
static struct {
    void *(*this_thread)(void);
    uintptr_t runtime, runtime_end;
} cpython;
static bool has_finder; /* of unwind tables, without a lock */

static bool offsets_said(const uint64_t *said, uint64_t version)
{
    const struct sv_python_said *at = sv_python_said(version);
    if (!at || memcmp(said, "xdebugpy", 8) != 0 || said[SV_PYTHON_SAYS_VERSION] != version ||
        said[SV_PYTHON_SAYS_FREE_THREADED] != 0)
        return false;
    python = (struct offsets){.cframe = NONE,
                              .frame = (uint16_t)said[at->frame],
                              .code = (uint16_t)said[at->code],
                              .previous = (uint16_t)said[at->previous],
                              .instr = (uint16_t)said[at->instr],
                              .owner = (uint16_t)said[at->owner],
                              .first_line = (uint16_t)said[at->first_line],
                              .lines = (uint16_t)said[at->linetable],
                              .bytecode = (uint16_t)said[at->bytecode],
                              .file = (uint16_t)said[at->file],
                              .name = (uint16_t)said[at->name],
                              .text = 40};
    return true;
}

static bool find_offsets(const void *runtime, uint64_t version)
{
    switch (version >> 16) {
    case 0x030b: python = python_3_11; return true;
    case 0x030c: python = python_3_12; return true;
    default: return offsets_said(runtime, version);
    }
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

/* A str: its characters where they are ASCII, which end with a NUL; else a question mark. */
static const char *text_of(const char *str)
{
    enum { LENGTH = 16, STATE = 32, IS_PLAIN = 3 << 5 };
    int64_t len;
    uint32_t state;
    memcpy(&len, str + LENGTH, sizeof len);
    memcpy(&state, str + STATE, sizeof state);
    return (state & IS_PLAIN) == IS_PLAIN && len >= 0 && len <= 4096 ? str + python.text : "?";
}

static int line_of(const char *frame, const char *code)
{
    enum { SIZE = 16, DATA = 32 };
    const char *lines = pointer_at(code, python.lines);
    int64_t n;
    int32_t first;
    memcpy(&first, code + python.first_line, sizeof first);
    memcpy(&n, lines + SIZE, sizeof n);
    const char *begin = code + python.bytecode, *at = pointer_at(frame, python.instr);
    return sv_python_line((const uint8_t *)lines + DATA, n > 0 ? (size_t)n : 0, first,
                          (uint32_t)(at - begin));
}

/* "Model.forward (model.py:12)" */
static bool put_frame(struct pre_stack *s, const char *frame, const char *code)
{
    const char *file = sv_python_short_file(text_of(pointer_at(code, python.file)));
    int line = line_of(frame, code);
    char text[200], place[16] = "";
    if (line > 0)
        snprintf(place, sizeof place, ":%d", line);
    int n = snprintf(text, sizeof text, "%.110s (%.70s%s)", text_of(pointer_at(code, python.name)),
                     file, place);
    if (n < 0 || s->python_len + (size_t)n + 1 > sizeof s->python)
        return false;
    memcpy(s->python + s->python_len, text, (size_t)n + 1);
    s->python_len += (uint32_t)n + 1;
    return true;
}

static const char *code_of(const char *frame)
{
    uintptr_t code = (uintptr_t)pointer_at(frame, python.code);
    return (const char *)SV_PYTHON_POINTER(code);
}

static void take_python(struct pre_stack *s)
{
    const char *thread = cpython.this_thread ? cpython.this_thread() : NULL;
    if (thread && python.cframe != NONE)
        thread = pointer_at(thread, python.cframe);
    const char *frame = thread ? pointer_at(thread, python.frame) : NULL;
    for (int depth = 0; frame && depth < DEPTH_MAX; depth++) {
        const char *code = code_of(frame);
        bool is_shim = (uint8_t)frame[python.owner] >= SV_PYTHON_SHIM;
        if (!is_shim && code && !put_frame(s, frame, code))
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
