/* Names of functions in an ELF file: what .symtab and .dynsym say, by address. For 64-bit files of
 * this machine's byte order. */
#ifndef SV_RECORD_SYMBOLS_ELF_H
#define SV_RECORD_SYMBOLS_ELF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sv_elf_symbol {
    uint64_t at, size;
    uint32_t name; /* in `names` */
};

struct sv_elf_load { /* a part of the file that is mapped */
    uint64_t offset, size, at;
};

struct sv_elf {
    struct sv_elf_symbol *symbols; /* by address */
    size_t n, cap;
    struct sv_elf_symbol *variables; /* by address */
    size_t n_variables, cap_variables;
    char *names;
    size_t n_names;
    struct sv_elf_load *loads; /* of code */
    size_t n_loads;
    /* Pairs by address, as .eh_frame_hdr has them: where a function begins, where its rules are.
     * Counted from an address, and a place in the file. */
    int32_t *functions;
    size_t n_functions;
    uint64_t functions_from, functions_at;
    uint64_t entry;                          /* where the program or the dynamic linker begins */
    char *interpreter;                       /* the path of the latter; NULL: it needs none */
    uint64_t python_runtime, python_version; /* addresses of _PyRuntime and Py_Version, 0: none */
};

/* Reads at most `limit` bytes of tables. False: not an ELF file of this machine, or damaged; *e is
 * then empty. A file without symbols, or whose tables are too large, has none. The descriptor stays
 * the caller's. */
bool sv_elf_read(int fd, size_t limit, struct sv_elf *e);
void sv_elf_fini(struct sv_elf *e);
size_t sv_elf_bytes(const struct sv_elf *e); /* memory held */

/* Where the linker put this byte of the file, UINT64_MAX: nowhere. */
uint64_t sv_elf_address(const struct sv_elf *e, uint64_t file_offset);
/* The function at such an address, NULL: none. */
const struct sv_elf_symbol *sv_elf_symbol(const struct sv_elf *e, uint64_t address);
/* The name of the variable that holds this address, NULL: none. */
const char *sv_elf_variable(const struct sv_elf *e, uint64_t address);
/* Where the function at an address begins, also in files without symbols; the address itself where
 * that is not known. */
uint64_t sv_elf_begin(const struct sv_elf *e, int fd, uint64_t address);
/* The function that holds this byte of the file, NULL when none does. */
const char *sv_elf_name(const struct sv_elf *e, uint64_t file_offset);

#endif
