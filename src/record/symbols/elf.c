/* Reads the symbol tables of an ELF file by pread: files change and shrink while programs run from
 * them, so nothing is mapped.
 *
 * Called by symbols.c for each file that a sampled address lies in. Every number of the file is
 * checked before it is used. */
#include "record/symbols/elf.h"
#include "core/base/mem.h"
#include "core/base/search.h"

#include <assert.h>
#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SECTIONS_MAX = 1 << 16, LOADS_MAX = 256 };

struct reading {
    struct sv_elf *e;
    int fd;
    uint64_t file_size, left; /* of the limit */
    Elf64_Ehdr head;
    Elf64_Shdr *sections;
};

static bool read_at(const struct reading *r, void *to, uint64_t size, uint64_t at)
{
    if (at > r->file_size || size > r->file_size - at)
        return false;
    for (uint64_t n = 0; n < size;) {
        ssize_t got = pread(r->fd, (char *)to + n, size - n, (off_t)(at + n));
        if (got <= 0)
            return false;
        n += (uint64_t)got;
    }
    return true;
}

/* A table of the file in memory of its own, NULL when it is not there whole or the limit is
 * reached. */
static void *read_table(struct reading *r, uint64_t at, uint64_t size)
{
    if (size == 0 || size > r->left || at > r->file_size || size > r->file_size - at)
        return NULL;
    char *table = sv_alloc(size);
    if (!read_at(r, table, size, at)) {
        free(table);
        return NULL;
    }
    r->left -= size;
    return table;
}

static bool read_head(struct reading *r)
{
    const Elf64_Ehdr *h = &r->head;
    const unsigned char order = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB
                                                                          : ELFDATA2MSB;
    return read_at(r, &r->head, sizeof r->head, 0) && memcmp(h->e_ident, ELFMAG, SELFMAG) == 0 &&
           h->e_ident[EI_CLASS] == ELFCLASS64 && h->e_ident[EI_DATA] == order;
}

/* The table of functions that unwinders search: a head of four bytes that says how what follows is
 * written, a pointer, a count, and the pairs. */
static void read_functions(struct reading *r, const Elf64_Phdr *p)
{
    enum { VERSION = 1, POINTER = 0x1b, COUNT = 0x03, PAIRS = 0x3b, HEAD = 12 };
    uint8_t head[HEAD];
    uint32_t n;
    if (p->p_filesz < HEAD || !read_at(r, head, HEAD, p->p_offset) || head[0] != VERSION ||
        head[1] != POINTER || head[2] != COUNT || head[3] != PAIRS)
        return;
    memcpy(&n, head + 8, sizeof n);
    if (n > (p->p_filesz - HEAD) / 8)
        return;
    r->e->functions = read_table(r, p->p_offset + HEAD, (uint64_t)n * 8);
    r->e->n_functions = r->e->functions ? n : 0;
    r->e->functions_from = p->p_vaddr;
    r->e->functions_at = p->p_offset;
}

static bool read_loads(struct reading *r)
{
    const Elf64_Ehdr *h = &r->head;
    if (h->e_phnum == 0 || h->e_phnum > LOADS_MAX || h->e_phentsize != sizeof(Elf64_Phdr))
        return false;
    Elf64_Phdr *all = read_table(r, h->e_phoff, (uint64_t)h->e_phnum * sizeof *all);
    if (!all)
        return false;
    r->e->loads = sv_alloc(h->e_phnum * sizeof *r->e->loads);
    for (unsigned i = 0; i < h->e_phnum; i++)
        if (all[i].p_type == PT_LOAD && all[i].p_flags & PF_X)
            r->e->loads[r->e->n_loads++] =
                (struct sv_elf_load){all[i].p_offset, all[i].p_filesz, all[i].p_vaddr};
    for (unsigned i = 0; i < h->e_phnum && !r->e->functions; i++)
        if (all[i].p_type == PT_GNU_EH_FRAME)
            read_functions(r, &all[i]);
    for (unsigned i = 0; i < h->e_phnum && !r->e->interpreter; i++)
        if (all[i].p_type == PT_INTERP && all[i].p_filesz <= PATH_MAX) {
            r->e->interpreter = read_table(r, all[i].p_offset, all[i].p_filesz);
            if (r->e->interpreter) /* has its NUL */
                r->e->interpreter[all[i].p_filesz - 1] = 0;
        }
    free(all);
    return true;
}

static void look_for_python(struct sv_elf *e, const Elf64_Sym *s, const char *name)
{
    if (strcmp(name, "_PyRuntime") == 0)
        e->python_runtime = s->st_value;
    else if (strcmp(name, "Py_Version") == 0)
        e->python_version = s->st_value;
}

/* Variables too small for a lock are left out. */
static void add_variable(struct sv_elf *e, const Elf64_Sym *s, size_t first_name)
{
    if (s->st_size < sizeof(uint32_t) || s->st_name == 0)
        return;
    e->variables =
        sv_grow(e->variables, &e->cap_variables, e->n_variables + 1, sizeof *e->variables);
    e->variables[e->n_variables++] =
        (struct sv_elf_symbol){s->st_value, s->st_size, (uint32_t)(first_name + s->st_name)};
}

static void add_symbols(struct sv_elf *e, const Elf64_Sym *all, size_t n, size_t first_name,
                        size_t n_names)
{
    for (size_t i = 0; i < n; i++) {
        unsigned type = ELF64_ST_TYPE(all[i].st_info);
        if (type == STT_OBJECT && all[i].st_shndx != SHN_UNDEF && all[i].st_name < n_names) {
            look_for_python(e, &all[i], e->names + first_name + all[i].st_name);
            add_variable(e, &all[i], first_name);
        }
        if ((type != STT_FUNC && type != STT_GNU_IFUNC) || all[i].st_shndx == SHN_UNDEF ||
            all[i].st_name == 0 || all[i].st_name >= n_names)
            continue;
        e->symbols = sv_grow(e->symbols, &e->cap, e->n + 1, sizeof *e->symbols);
        e->symbols[e->n++] = (struct sv_elf_symbol){all[i].st_value, all[i].st_size,
                                                    (uint32_t)(first_name + all[i].st_name)};
    }
}

static bool read_symbols(struct reading *r, const Elf64_Shdr *s)
{
    struct sv_elf *e = r->e;
    if (s->sh_link >= r->head.e_shnum || s->sh_entsize != sizeof(Elf64_Sym))
        return false;
    const Elf64_Shdr *texts = &r->sections[s->sh_link];
    Elf64_Sym *all = read_table(r, s->sh_offset, s->sh_size);
    char *names = all ? read_table(r, texts->sh_offset, texts->sh_size) : NULL;
    bool is_good = names != NULL;
    if (is_good) {
        size_t first = e->n_names;
        e->names = sv_realloc(e->names, first + texts->sh_size + 1);
        memcpy(e->names + first, names, texts->sh_size);
        e->names[first + texts->sh_size] = 0;
        e->n_names = first + texts->sh_size + 1;
        add_symbols(e, all, s->sh_size / sizeof *all, first, texts->sh_size);
    }
    free(all);
    free(names);
    return is_good;
}

static bool read_sections(struct reading *r)
{
    const Elf64_Ehdr *h = &r->head;
    bool is_found = false;
    if (h->e_shnum == 0 || h->e_shentsize != sizeof(Elf64_Shdr))
        return false;
    r->sections = read_table(r, h->e_shoff, (uint64_t)h->e_shnum * sizeof *r->sections);
    if (!r->sections)
        return false;
    /* The full table has all that the other has, where it was not stripped. */
    for (unsigned wanted = 0; !is_found && wanted < 2; wanted++)
        for (unsigned i = 0; i < h->e_shnum; i++)
            if (r->sections[i].sh_type == (wanted == 0 ? SHT_SYMTAB : SHT_DYNSYM))
                is_found |= read_symbols(r, &r->sections[i]);
    return is_found;
}

static int by_address(const void *a, const void *b)
{
    const struct sv_elf_symbol *x = a, *y = b;
    if (x->at != y->at)
        return x->at < y->at ? -1 : 1;
    if (x->size != y->size)
        return x->size < y->size ? -1 : 1;
    return x->name < y->name ? -1 : x->name > y->name;
}

bool sv_elf_read(int fd, size_t limit, struct sv_elf *e)
{
    struct stat st;
    struct reading r = {.e = e, .left = limit, .fd = fd};
    assert(limit <= INT32_MAX); /* so that places of names are 32 bits wide */
    *e = (struct sv_elf){0};
    bool is_good = fstat(r.fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0;
    r.file_size = is_good ? (uint64_t)st.st_size : 0;
    is_good = is_good && read_head(&r) && read_loads(&r);
    e->entry = r.head.e_entry;
    if (is_good)
        read_sections(&r);
    free(r.sections);
    if (!is_good) {
        sv_elf_fini(e);
        return false;
    }
    if (e->n > 1)
        qsort(e->symbols, e->n, sizeof *e->symbols, by_address);
    if (e->n_variables > 1)
        qsort(e->variables, e->n_variables, sizeof *e->variables, by_address);
    return true;
}

void sv_elf_fini(struct sv_elf *e)
{
    free(e->symbols);
    free(e->variables);
    free(e->names);
    free(e->loads);
    free(e->functions);
    free(e->interpreter);
    *e = (struct sv_elf){0};
}

size_t sv_elf_bytes(const struct sv_elf *e)
{
    return (e->cap + e->cap_variables) * sizeof *e->symbols + e->n_names + 8 * e->n_functions;
}

uint64_t sv_elf_address(const struct sv_elf *e, uint64_t file_offset)
{
    uint64_t at = UINT64_MAX;
    for (size_t i = 0; i < e->n_loads; i++)
        if (file_offset >= e->loads[i].offset &&
            file_offset - e->loads[i].offset < e->loads[i].size)
            at = file_offset - e->loads[i].offset + e->loads[i].at;
    return at;
}

static uint64_t begin_of(const struct sv_elf *e, size_t i)
{
    return e->functions_from + (uint64_t)(int64_t)e->functions[2 * i];
}

/* Between functions with rules there may be others without: the entry says how long its function
 * is. */
uint64_t sv_elf_begin(const struct sv_elf *e, int fd, uint64_t address)
{
    enum { LENGTH, CIE, BEGIN, RANGE, WORDS };
    size_t low;
    uint32_t entry[WORDS];
    SV_SEARCH(low, middle, 0, e->n_functions, begin_of(e, middle) <= address);
    if (low == 0)
        return address;
    uint64_t begin = begin_of(e, low - 1);
    int64_t at = (int64_t)e->functions_at + e->functions[2 * (low - 1) + 1];
    bool is_known = at >= 0 && pread(fd, entry, sizeof entry, at) == (ssize_t)sizeof entry &&
                    entry[LENGTH] != UINT32_MAX && address - begin < entry[RANGE];
    return is_known ? begin : address;
}

const struct sv_elf_symbol *sv_elf_symbol(const struct sv_elf *e, uint64_t address)
{
    /* the first symbol after it */
    size_t low;
    SV_SEARCH(low, middle, 0, e->n, e->symbols[middle].at <= address);
    enum { INNER_MAX = 8 }; /* small symbols that lie in a larger one */
    for (unsigned i = 0; i < INNER_MAX && low > i && address != UINT64_MAX; i++) {
        const struct sv_elf_symbol *s = &e->symbols[low - 1 - i];
        /* Hand-written code often has no size: it reaches to the next symbol. */
        if ((s->size == 0 && i == 0) || address - s->at < s->size)
            return s;
    }
    return NULL;
}

const char *sv_elf_name(const struct sv_elf *e, uint64_t file_offset)
{
    const struct sv_elf_symbol *s = sv_elf_symbol(e, sv_elf_address(e, file_offset));
    return s ? e->names + s->name : NULL;
}

const char *sv_elf_variable(const struct sv_elf *e, uint64_t address)
{
    size_t low;
    SV_SEARCH(low, middle, 0, e->n_variables, e->variables[middle].at <= address);
    const struct sv_elf_symbol *v = low ? &e->variables[low - 1] : NULL;
    return v && address - v->at < v->size ? e->names + v->name : NULL;
}
