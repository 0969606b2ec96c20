/* Addresses to files and names of functions: the kernel's by /proc/kallsyms, a process's by
 * /proc/PID/maps and the symbols of its files.
 *
 * Names are as the compiler made them (record/stacks/ makes them readable). What has none is called
 * by its file, "[libc.so.6]". */
#ifndef SV_RECORD_SYMBOLS_SYMBOLS_H
#define SV_RECORD_SYMBOLS_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record/symbols/elf.h"

struct sv_symbols;
struct sv_cfi;
struct sv_debug_info;

/* A file with code, once for all processes that run it. */
struct sv_code_file {
    struct sv_elf elf;
    char *path;
    const char *nameless; /* "[libc.so.6]" */
    uint64_t inode;
    uint32_t number;
    int fd; /* -1: it is not open */
    bool is_read, has_elf;
    /* Made by record/stacks/ when they are asked for. */
    struct sv_cfi *cfi;
    struct sv_debug_info *debug;
    bool has_cfi, has_debug; /* they were */
};

/* A place in it. */
struct sv_code_at {
    struct sv_code_file *file;
    uint64_t offset;  /* in the file */
    uint64_t address; /* as its linker has it; UINT64_MAX: not known */
};

/* `kallsyms` NULL: the kernel's own file. */
struct sv_symbols *sv_symbols_new(const char *kallsyms);
void sv_symbols_free(struct sv_symbols *s);
/* Now, not at the first question: it takes a tenth of a second. */
void sv_symbols_read_kernel(struct sv_symbols *s);
/* Is given each file before it is freed. */
void sv_symbols_on_free(struct sv_symbols *s, void (*frees)(struct sv_code_file *f));

/* Both valid until sv_symbols_free(). */
const char *sv_symbols_kernel(struct sv_symbols *s, uint64_t address);
const char *sv_symbols_user(struct sv_symbols *s, uint32_t pid, uint64_t address, int64_t ts_ns);
/* False: no file, no mapping or no process. */
bool sv_symbols_find(struct sv_symbols *s, uint32_t pid, uint64_t address, int64_t ts_ns,
                     struct sv_code_at *at);

/* The name of a global variable of the process, NULL: not known. */
const char *sv_symbols_variable(struct sv_symbols *s, uint32_t pid, uint64_t address);

/* Where a Python of the process has its state. False: it has none. */
struct sv_python_at {
    uint64_t runtime, version; /* addresses in the process */
};
bool sv_symbols_python(struct sv_symbols *s, uint32_t pid, struct sv_python_at *at);
/* Reads the maps of a process now. */
void sv_symbols_read(struct sv_symbols *s, uint32_t pid);
/* How often the maps of a process were read: what was found in them before need not be right. */
uint64_t sv_symbols_readings(struct sv_symbols *s, uint32_t pid);

/* The process runs another program now; the child runs its parent's. */
void sv_symbols_exec(struct sv_symbols *s, uint32_t pid, int64_t ts_ns);
void sv_symbols_fork(struct sv_symbols *s, uint32_t parent, uint32_t child);
void sv_symbols_end(struct sv_symbols *s, uint32_t pid);
/* Where events of a process are read after its end: its names are kept until the second of these
 * that follow. */
void sv_symbols_keep_ended(struct sv_symbols *s);
void sv_symbols_forget_ended(struct sv_symbols *s);

/* A file whose code is mapped: learnt where the maps of the process are known. */
struct sv_mapped_code {
    int64_t ts_ns;
    uint64_t start, bytes, offset, inode;
    uint32_t device; /* major << 20 | minor */
};
void sv_symbols_map(struct sv_symbols *s, uint32_t pid, const struct sv_mapped_code *m,
                    const char *path);
/* What the kernel mapped when the program began, as its exec says (bpf/process_start.h): no maps
 * need be read then. False: the file is not what is at `path` here. */
struct sv_program {
    uint64_t inode, entry, base, vdso; /* addresses of its begin, its linker's and the vdso's */
    uint32_t device;
};
bool sv_symbols_program(struct sv_symbols *s, uint32_t pid, int64_t ts_ns,
                        const struct sv_program *p, const char *path);
/* The inode of the program whose maps were never read; 0: none. */
uint64_t sv_symbols_unread(struct sv_symbols *s, uint32_t pid);
/* Every file that is mapped comes this way: maps are read once for each program. */
void sv_symbols_follow(struct sv_symbols *s, bool follows);
/* Called with the maps of each process that are read, for others who would read them. */
void sv_symbols_on_read(struct sv_symbols *s,
                        void (*reads)(void *ctx, uint32_t pid, const char *text), void *ctx);

/* Adds the lines of a maps file for a process; for tests and for sv_symbols_user(). */
void sv_symbols_maps(struct sv_symbols *s, uint32_t pid, const char *text, int64_t now_ns);

#endif
