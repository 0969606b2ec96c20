/* Frames of CPython: where each version keeps its state, which code objects the kernel programs
 * have met, and their lines. */
#ifndef SV_RECORD_STACKS_PYTHON_H
#define SV_RECORD_STACKS_PYTHON_H

#include "record/bpf/stack.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a process says about its Python: Py_Version, and the first bytes of _PyRuntime. */
enum { SV_PYTHON_HEAD = 512 };
struct sv_python_words {
    uint64_t runtime; /* address of _PyRuntime */
    uint32_t version; /* 0x030b02f0 is 3.11.2 */
    uint8_t head[SV_PYTHON_HEAD];
};
/* Reads them from the process. False: it is gone, or does not let itself be read. */
bool sv_python_ask(uint32_t pid, uint64_t runtime, uint64_t version, struct sv_python_words *out);

/* False: a version that is not known. */
bool sv_python_offsets(const struct sv_python_words *words, struct sv_wire_python *out);

struct sv_python_codes;
struct sv_python_codes *sv_python_codes_new(void);
void sv_python_codes_free(struct sv_python_codes *c);

/* A process has ended: its code objects are forgotten. */
void sv_python_codes_end(struct sv_python_codes *c, uint32_t pid);

/* `size` of the record with what follows it. False: it is malformed. */
bool sv_python_codes_add(struct sv_python_codes *c, const struct sv_wire_code *code, size_t size);

/* "Model.forward (model.py:41)" for a frame, without the place where `has_files` is false; the
 * length, 0: its code is not known. */
size_t sv_python_frame(const struct sv_python_codes *c, uint32_t pid,
                       const struct sv_wire_pyframe *frame, bool has_files, char *text, size_t max);

#endif
