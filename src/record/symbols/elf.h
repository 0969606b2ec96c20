/* Names of functions in an ELF file: what .symtab and .dynsym say, by address. For 64-bit files of this machine's byte order. */
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
    char *names;
    size_t n_names;
    struct sv_elf_load *loads;
    size_t n_loads;
};

/* Reads at most `limit` bytes of tables. False: not an ELF file of this machine, damaged, or too large; *e is then empty. */
bool sv_elf_read(const char *path, size_t limit, struct sv_elf *e);
void sv_elf_fini(struct sv_elf *e);
size_t sv_elf_bytes(const struct sv_elf *e); /* memory held */

/* The function that holds this byte of the file, NULL when none does. */
const char *sv_elf_name(const struct sv_elf *e, uint64_t file_offset);

#endif
