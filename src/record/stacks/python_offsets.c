/* Where CPython keeps what, for x86-64 and arm64. Up to 3.12 it is a table of each version, made
 * from its headers; from 3.13 on the interpreter says it itself (struct _Py_DebugOffsets at the
 * beginning of _PyRuntime). What is not known is left alone: a wrong offset would give wrong
 * names. */
#include "record/stacks/python.h"

#include "core/base/python_said.h"

#include <string.h>
#include <sys/uio.h>

static const struct sv_wire_python python_3_11 = {
    .current = 576,
    .interpreters = 40,
    .threads = 16,
    .next = 8,
    .native_id = 160,
    .cframe = 56,
    .frame = 8,
    .code = 32,
    .previous = 48,
    .instr = 56,
    .owner = 69,
    .entry = 68,
    .first_line = 72,
    .file = 112,
    .name = 128,
    .linetable = 136,
    .bytecode = 184,
    .text_ascii = 48,
    .text_other = 72,
};

static const struct sv_wire_python python_3_12 = {
    .current = SV_PYTHON_NONE,
    .interpreters = 40,
    .threads = 72,
    .holder = 1048,
    .locked = 1056,
    .next = 8,
    .native_id = 144,
    .cframe = 56,
    .frame = 0,
    .code = 0,
    .previous = 8,
    .instr = 56,
    .owner = 70,
    .entry = SV_PYTHON_NONE,
    .first_line = 68,
    .file = 112,
    .name = 128,
    .linetable = 136,
    .bytecode = 192,
    .text_ascii = 40,
    .text_other = 56,
};

static uint32_t said(const struct sv_python_words *w, unsigned at)
{
    uint64_t number;
    memcpy(&number, w->head + at * sizeof number, sizeof number);
    return number < 1 << 20 ? (uint32_t)number : SV_PYTHON_NONE;
}

static bool offsets_said(const struct sv_python_words *w, struct sv_wire_python *p)
{
    const struct sv_python_said *at = sv_python_said(w->version);
    uint64_t version;
    memcpy(&version, w->head + SV_PYTHON_SAYS_VERSION * sizeof version, sizeof version);
    if (!at || memcmp(w->head, "xdebugpy", 8) != 0 || version != w->version ||
        said(w, SV_PYTHON_SAYS_FREE_THREADED) != 0)
        return false;
    *p = (struct sv_wire_python){
        .current = SV_PYTHON_NONE,
        .interpreters = said(w, at->interpreters),
        .threads = said(w, at->threads),
        .holder = said(w, at->holder),
        .locked = said(w, at->locked),
        .next = said(w, at->next),
        .native_id = said(w, at->native_id),
        .cframe = SV_PYTHON_NONE,
        .frame = said(w, at->frame),
        .code = said(w, at->code),
        .previous = said(w, at->previous),
        .instr = said(w, at->instr),
        .owner = said(w, at->owner),
        .entry = SV_PYTHON_NONE,
        .first_line = said(w, at->first_line),
        .file = said(w, at->file),
        .name = said(w, at->name),
        .linetable = said(w, at->linetable),
        .bytecode = said(w, at->bytecode),
        .text_ascii = 40,
        .text_other = 56,
    };
    /* The kernel program reads so much of a frame and of a code object (stack_python.h). */
    return p->code == 0 && p->previous == 8 && p->instr <= 72 && p->owner < 80 && p->file <= 136 &&
           p->name <= 136 && p->linetable <= 136 && p->first_line <= 136;
}

bool sv_python_offsets(const struct sv_python_words *words, struct sv_wire_python *out)
{
    bool is_known = true;
    switch (words->version >> 16) {
    case 0x030b: *out = python_3_11; break;
    case 0x030c: *out = python_3_12; break;
    default: is_known = offsets_said(words, out); break;
    }
    out->runtime = words->runtime;
    return is_known;
}

static bool read_process(uint32_t pid, uint64_t at, void *to, size_t size)
{
    struct iovec local = {to, size}, remote = {(void *)(uintptr_t)at, size};
    return process_vm_readv((int)pid, &local, 1, &remote, 1, 0) == (ssize_t)size;
}

bool sv_python_ask(uint32_t pid, uint64_t runtime, uint64_t version, struct sv_python_words *out)
{
    uint64_t number = 0;
    *out = (struct sv_python_words){.runtime = runtime};
    if ((version && !read_process(pid, version, &number, sizeof number)) ||
        !read_process(pid, runtime, out->head, sizeof out->head))
        return false;
    out->version = (uint32_t)number; /* 0 before 3.11, which does not say it */
    return true;
}
