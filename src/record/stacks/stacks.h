/* Stacks that kernel programs took (record/bpf/stack.h) as texts: native frames by unwind
 * information or frame pointers, Python's frames in their places.
 *
 * For every probe whose records have a stack. Memory is bounded; nothing of a stack is kept but its
 * names. */
#ifndef SV_RECORD_STACKS_STACKS_H
#define SV_RECORD_STACKS_STACKS_H

#include "record/bpf/stack.h"
#include "record/symbols/symbols.h"

enum { SV_STACKS_FRAMES = 1024 };

struct sv_stacks;

struct sv_stacks_options {
    bool asks_procfs; /* off for recorded bytes: this machine's names are not theirs */
    bool hides_files; /* --redact: no names of files */
    bool has_kernel;  /* stacks have frames of the kernel */
    /* A process runs Python: the kernel programs are to read its frames; `offsets` NULL: it has
     * ended. NULL: they do not. */
    void (*found_python)(void *ctx, uint32_t pid, const struct sv_wire_python *offsets);
    /* A process had stacks, and nothing had to be looked up while it lived: of other processes of
     * this program the first stack is not urgent. May be NULL. */
    void (*knows_program)(void *ctx, uint64_t inode);
    void *ctx;
};

struct sv_stacks *sv_stacks_new(struct sv_symbols *symbols,
                                const struct sv_stacks_options *options);
void sv_stacks_free(struct sv_stacks *s);

/* The frames of a stack, innermost first, at most SV_STACKS_FRAMES; `bytes` follow the struct. 0:
 * there is none, -1: it is malformed. The texts are valid until sv_stacks_sweep(), *innermost (may
 * be NULL) is the innermost function without its place in a file. */
int sv_stacks_frames(struct sv_stacks *s, const struct sv_wire_head *head,
                     const struct sv_wire_stack *stack, size_t bytes, const char **frames,
                     const char **innermost);
/* The name of the lock at an address: that of the variable that holds it; NULL: not known. *is_gil:
 * it belongs to the interpreter of Python. */
const char *sv_stacks_lock(struct sv_stacks *s, uint32_t pid, uint64_t address, bool *is_gil);
/* The function at an address of a process, with file and line where they are known; NULL: not
 * known. The text is valid until sv_stacks_sweep(). */
const char *sv_stacks_name(struct sv_stacks *s, uint32_t pid, uint64_t address, int64_t ts_ns);
/* Between batches of events: frees texts where there are too many. */
void sv_stacks_sweep(struct sv_stacks *s);

/* A process runs another program: if it is a Python, its frames are read from the first stack
 * on. */
void sv_stacks_exec(struct sv_stacks *s, uint32_t pid, const char *program);
/* A process has ended; before its symbols do. */
void sv_stacks_end(struct sv_stacks *s, uint32_t pid);
/* A code object of Python. False: the record is malformed. */
bool sv_stacks_code(struct sv_stacks *s, const struct sv_wire_code *code, size_t size);

/* Build ids of the files whose functions have no names. */
struct sv_names_build;
size_t sv_stacks_builds(const struct sv_stacks *s, const struct sv_names_build **builds);

/* What the stacks lack and how to get it, one line each; `say` is called for each. */
void sv_stacks_explain(const struct sv_stacks *s, void (*say)(void *ctx, const char *line),
                       void *ctx);

/* "dwarf", "fp", "none"; false: no such way. */
bool sv_stacks_way(const char *text, enum sv_stack_way *way);

#endif
