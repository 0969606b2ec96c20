/* Where CPython's description of itself (struct _Py_DebugOffsets, the beginning of _PyRuntime) has
 * what: words of 64 bits, by version. It has been there since 3.13 and grows in the middle, so that
 * each version has a table. For the recorder and for what runs in the process. */
#pragma once

#include <stdint.h>

enum { SV_PYTHON_SAYS_VERSION = 1, SV_PYTHON_SAYS_FREE_THREADED = 2 };

struct sv_python_said {
    uint8_t interpreters, threads, locked, holder;       /* runtime, interpreter and its lock */
    uint8_t next, frame, native_id;                      /* thread */
    uint8_t previous, code, instr, owner;                /* frame */
    uint8_t file, name, linetable, first_line, bytecode; /* code object */
};

/* A NULL pointer: a version that is not known, or says nothing. */
static inline const struct sv_python_said *sv_python_said(uint64_t version)
{
    static const struct sv_python_said said_3_13 = {5,  9,  17, 18, 21, 23, 25, 29,
                                                    30, 31, 33, 35, 37, 38, 39, 43},
                                       said_3_14 = {5,  9,  18, 19, 24, 26, 28, 32,
                                                    33, 34, 36, 40, 41, 43, 44, 48};
    switch (version >> 16) {
    case 0x030d: return &said_3_13;
    case 0x030e: return &said_3_14;
    default: return 0;
    }
}

/* From this owner on a frame is the interpreter's own. 3.14 has two of them. */
enum { SV_PYTHON_SHIM = 3 };
/* A reference to a code object may have marks in its lowest bits (3.14). */
#define SV_PYTHON_POINTER(word) ((word) & ~(uint64_t)7)
