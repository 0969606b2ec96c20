/* Addresses to names of functions: the kernel's by /proc/kallsyms, a process's by /proc/PID/maps and the symbols of its files.
 *
 * Names are as the compiler made them (C++ stays mangled). What has none is called by its file, "[libc.so.6]". */
#ifndef SV_RECORD_SYMBOLS_SYMBOLS_H
#define SV_RECORD_SYMBOLS_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sv_symbols;

/* `kallsyms` NULL: the kernel's own file. */
struct sv_symbols *sv_symbols_new(const char *kallsyms);
void sv_symbols_free(struct sv_symbols *s);

/* Both valid until sv_symbols_free(). */
const char *sv_symbols_kernel(struct sv_symbols *s, uint64_t address);
const char *sv_symbols_user(struct sv_symbols *s, uint32_t pid, uint64_t address, int64_t ts_ns);

/* The process runs another program now; the child runs its parent's. */
void sv_symbols_exec(struct sv_symbols *s, uint32_t pid);
void sv_symbols_fork(struct sv_symbols *s, uint32_t parent, uint32_t child);
void sv_symbols_end(struct sv_symbols *s, uint32_t pid);

/* Adds the lines of a maps file for a process; for tests and for sv_symbols_user(). */
void sv_symbols_maps(struct sv_symbols *s, uint32_t pid, const char *text, int64_t now_ns);

#endif
