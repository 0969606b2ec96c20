/* An ELF file made by hand, every number of it known: which symbols count, which of several is at
 * an address, limits and damage; and what the maps of a process make of its addresses. */
#include "record/symbols/elf.h"
#include "record/symbols/symbols.h"
#include "tests/harness/test.h"

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    CODE = 0x401000,
    MORE_CODE = 0x602000, /* the second part of the file with code */
    DATA = 0x605000,
    SYMBOLS_MAX = 48,
    NAMES_MAX = 512,
    FUNCTIONS = 3,
    NOBODY = 999999999 /* no process */
};
enum { NULL_SECTION, SYMBOLS, NAMES, FEWER, SECTIONS };

struct image {
    Elf64_Ehdr head;
    Elf64_Phdr parts[4];
    Elf64_Shdr sections[SECTIONS];
    Elf64_Sym symbols[SYMBOLS_MAX];
    Elf64_Sym fewer[2]; /* .dynsym */
    char names[NAMES_MAX];
    struct {
        uint8_t head[4];
        uint32_t pointer, count;
        int32_t pairs[2 * FUNCTIONS];
    } functions;
    uint32_t entries[FUNCTIONS][4];
    size_t n_symbols, n_names;
};

static uint32_t name(struct image *f, const char *text)
{
    size_t at = f->n_names, len = strlen(text) + 1;
    REQUIRE(at + len <= NAMES_MAX);
    memcpy(f->names + at, text, len);
    f->n_names += len;
    return (uint32_t)at;
}

static Elf64_Sym *symbol(struct image *f, const char *text, unsigned type, uint64_t at,
                         uint64_t size)
{
    REQUIRE(f->n_symbols < SYMBOLS_MAX);
    Elf64_Sym *s = &f->symbols[f->n_symbols++];
    *s = (Elf64_Sym){.st_name = text ? name(f, text) : 0,
                     .st_info = (uint8_t)type,
                     .st_shndx = 1,
                     .st_value = at,
                     .st_size = size};
    return s;
}

static void add_symbols(struct image *f)
{
    char text[16];
    symbol(f, "last", STT_FUNC, MORE_CODE, 0x10); /* not by address */
    symbol(f, "first", STT_FUNC, CODE, 0x10);
    symbol(f, "around_seven", STT_FUNC, CODE + 0x100, 0x100);
    symbol(f, "around_eight", STT_FUNC, CODE + 0x200, 0x100);
    for (unsigned i = 0; i < 15; i++) {
        snprintf(text, sizeof text, "in%u", i);
        symbol(f, text, STT_FUNC, CODE + (i < 7 ? 0x110u : 0x210u) + i, 1);
    }
    symbol(f, "without_size", STT_FUNC, CODE + 0x300, 0);
    symbol(f, "after_it", STT_FUNC, CODE + 0x310, 0x10);
    symbol(f, "long", STT_FUNC, CODE + 0x400, 0x20);
    symbol(f, "short", STT_FUNC, CODE + 0x400, 8);
    symbol(f, "alias_1", STT_FUNC, CODE + 0x500, 8);
    symbol(f, "alias_2", STT_FUNC, CODE + 0x500, 8);
    symbol(f, "chosen", STT_GNU_IFUNC, CODE + 0x600, 8);
    symbol(f, "elsewhere", STT_FUNC, CODE + 0x700, 8)->st_shndx = SHN_UNDEF;
    symbol(f, NULL, STT_FUNC, CODE + 0x800, 8);
    symbol(f, "a_section", STT_SECTION, CODE + 0x900, 8);
    symbol(f, "_PyRuntime", STT_OBJECT, DATA, 0x40);
    symbol(f, "Py_Version", STT_OBJECT, DATA + 0x100, 4);
    symbol(f, "too_small", STT_OBJECT, DATA + 0x200, 3);
    symbol(f, "lock", STT_OBJECT, DATA + 0x300, 0x28);
    symbol(f, "lock_elsewhere", STT_OBJECT, DATA + 0x400, 8)->st_shndx = SHN_UNDEF;
    symbol(f, NULL, STT_OBJECT, DATA + 0x500, 8);
}

/* As .eh_frame_hdr and .eh_frame have them: places count from the head. */
static void add_functions(struct image *f)
{
    const int32_t far =
        (int32_t)(offsetof(struct image, entries) - offsetof(struct image, functions));
    memcpy(f->functions.head, "\x01\x1b\x03\x3b", 4);
    f->functions.count = FUNCTIONS;
    for (int i = 0; i < FUNCTIONS; i++) {
        f->functions.pairs[2 * i] = (i + 1) * 0x100;
        f->functions.pairs[2 * i + 1] = far + i * (int32_t)sizeof f->entries[0];
        f->entries[i][3] = 0x10;
    }
}

static struct image *image(void)
{
    struct image *f = calloc(1, sizeof *f);
    REQUIRE(f);
    f->head = (Elf64_Ehdr){.e_type = ET_DYN,
                           .e_phoff = offsetof(struct image, parts),
                           .e_phentsize = sizeof(Elf64_Phdr),
                           .e_phnum = 4,
                           .e_shoff = offsetof(struct image, sections),
                           .e_shentsize = sizeof(Elf64_Shdr),
                           .e_shnum = SECTIONS,
                           .e_entry = CODE + 5};
    memcpy(f->head.e_ident, ELFMAG, SELFMAG);
    f->head.e_ident[EI_CLASS] = ELFCLASS64;
    f->head.e_ident[EI_DATA] = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB
                                                                         : ELFDATA2MSB;
    f->parts[0] = (Elf64_Phdr){.p_type = PT_LOAD,
                               .p_flags = PF_R | PF_X,
                               .p_offset = 0x1000,
                               .p_filesz = 0x1000,
                               .p_vaddr = CODE};
    f->parts[1] = f->parts[2] = f->parts[0];
    f->parts[1].p_flags = PF_R; /* data */
    f->parts[1].p_offset = 0x3000;
    f->parts[2].p_offset = 0x2000;
    f->parts[2].p_filesz = 0x800;
    f->parts[2].p_vaddr = MORE_CODE;
    f->parts[3] = (Elf64_Phdr){.p_type = PT_GNU_EH_FRAME,
                               .p_offset = offsetof(struct image, functions),
                               .p_filesz = sizeof f->functions,
                               .p_vaddr = CODE};
    f->n_names = 1;
    add_symbols(f);
    add_functions(f);
    f->fewer[0] = (Elf64_Sym){.st_name = name(f, "of_the_linker"),
                              .st_info = STT_FUNC,
                              .st_shndx = 1,
                              .st_value = CODE,
                              .st_size = 0x10};
    f->sections[SYMBOLS] = (Elf64_Shdr){.sh_type = SHT_SYMTAB,
                                        .sh_offset = offsetof(struct image, symbols),
                                        .sh_size = f->n_symbols * sizeof(Elf64_Sym),
                                        .sh_entsize = sizeof(Elf64_Sym),
                                        .sh_link = NAMES};
    f->sections[NAMES] = (Elf64_Shdr){
        .sh_type = SHT_STRTAB, .sh_offset = offsetof(struct image, names), .sh_size = f->n_names};
    f->sections[FEWER] = f->sections[SYMBOLS];
    f->sections[FEWER].sh_type = SHT_DYNSYM;
    f->sections[FEWER].sh_offset = offsetof(struct image, fewer);
    f->sections[FEWER].sh_size = sizeof(Elf64_Sym);
    return f;
}

/* Writes the file and frees it; the descriptor. */
static int put(struct image *f, const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    REQUIRE(fd >= 0 && write(fd, f, sizeof *f) == (ssize_t)sizeof *f);
    free(f);
    return fd;
}

static bool read_back(struct image *f, size_t limit, struct sv_elf *e)
{
    int fd = put(f, test_scratch("image"));
    bool is_good = sv_elf_read(fd, limit, e);
    close(fd);
    return is_good;
}

static const char *at(const struct sv_elf *e, uint64_t address)
{
    const struct sv_elf_symbol *s = sv_elf_symbol(e, address);
    return s ? e->names + s->name : "-";
}

static const char *variable(const struct sv_elf *e, uint64_t address)
{
    const char *text = sv_elf_variable(e, address);
    return text ? text : "-";
}

TEST(the_function_at_an_address_is_the_one_that_holds_it)
{
    static const struct {
        uint64_t at;
        const char *name;
    } rows[] = {
        {CODE - 1, "-"},
        {CODE, "first"},
        {CODE + 0xf, "first"},
        {CODE + 0x10, "-"},
        {CODE + 0x10f, "around_seven"},
        {CODE + 0x110, "in0"},
        {CODE + 0x116, "in6"},
        {CODE + 0x117, "around_seven"}, /* seven symbols back */
        {CODE + 0x1ff, "around_seven"},
        {CODE + 0x217, "in7"},
        {CODE + 0x21f, "-"}, /* eight back: too far */
        {CODE + 0x300, "without_size"},
        {CODE + 0x30f, "without_size"}, /* up to the next one */
        {CODE + 0x310, "after_it"},
        {CODE + 0x320, "-"},
        {CODE + 0x400, "long"},
        {CODE + 0x41f, "long"},
        {CODE + 0x420, "-"},
        {CODE + 0x500, "alias_2"},
        {CODE + 0x607, "chosen"},
        {CODE + 0x700, "-"},
        {CODE + 0x800, "-"},
        {CODE + 0x900, "-"},
        {MORE_CODE + 0xf, "last"},
        {UINT64_MAX, "-"},
    };
    struct sv_elf e;
    REQUIRE(read_back(image(), 1 << 20, &e));
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        CONTEXT("address %llx", (unsigned long long)rows[i].at);
        CHECK_STR_EQ(at(&e, rows[i].at), rows[i].name);
    }
    CHECK_UINT_EQ(e.entry, CODE + 5);
    CHECK_UINT_EQ(e.python_runtime, DATA);
    CHECK_UINT_EQ(e.python_version, DATA + 0x100);
    CHECK_STR_EQ(variable(&e, DATA - 1), "-");
    CHECK_STR_EQ(variable(&e, DATA + 0x3f), "_PyRuntime");
    CHECK_STR_EQ(variable(&e, DATA + 0x40), "-");
    CHECK_STR_EQ(variable(&e, DATA + 0x103), "Py_Version");
    CHECK_STR_EQ(variable(&e, DATA + 0x200), "-");
    CHECK_STR_EQ(variable(&e, DATA + 0x327), "lock");
    CHECK_STR_EQ(variable(&e, DATA + 0x328), "-");
    CHECK_STR_EQ(variable(&e, DATA + 0x400), "-");
    CHECK_STR_EQ(variable(&e, DATA + 0x500), "-");
    CHECK_UINT_EQ(e.n_variables, 3);
    CHECK_UINT_EQ(sv_elf_bytes(&e),
                  (e.cap + e.cap_variables) * sizeof *e.symbols + e.n_names + 8 * FUNCTIONS);
    sv_elf_fini(&e);
}

TEST(bytes_of_the_file_have_the_addresses_of_their_part)
{
    struct sv_elf e;
    REQUIRE(read_back(image(), 1 << 20, &e));
    CHECK_UINT_EQ(e.n_loads, 2);
    CHECK(sv_elf_address(&e, 0xfff) == UINT64_MAX);
    CHECK_UINT_EQ(sv_elf_address(&e, 0x1000), CODE);
    CHECK_UINT_EQ(sv_elf_address(&e, 0x1fff), CODE + 0xfff);
    CHECK_UINT_EQ(sv_elf_address(&e, 0x2000), MORE_CODE);
    CHECK_UINT_EQ(sv_elf_address(&e, 0x27ff), MORE_CODE + 0x7ff);
    CHECK(sv_elf_address(&e, 0x2800) == UINT64_MAX);
    CHECK(sv_elf_address(&e, 0x3000) == UINT64_MAX); /* data */
    CHECK_STR_EQ(sv_elf_name(&e, 0x1005), "first");
    CHECK_STR_EQ(sv_elf_name(&e, 0x2005), "last");
    CHECK(!sv_elf_name(&e, 0x1020) && !sv_elf_name(&e, 0x3000));
    sv_elf_fini(&e);
}

TEST(rules_say_where_a_function_begins)
{
    struct sv_elf e;
    struct image *f = image();
    f->entries[1][0] = UINT32_MAX;     /* an entry of the wide form */
    f->functions.pairs[5] = INT32_MIN; /* before the file */
    int fd = put(f, test_scratch("image"));
    REQUIRE(sv_elf_read(fd, 1 << 20, &e));
    CHECK_UINT_EQ(e.n_functions, FUNCTIONS);
    CHECK_UINT_EQ(sv_elf_begin(&e, fd, CODE + 0xff), CODE + 0xff);
    CHECK_UINT_EQ(sv_elf_begin(&e, fd, CODE + 0x100), CODE + 0x100);
    CHECK_UINT_EQ(sv_elf_begin(&e, fd, CODE + 0x10f), CODE + 0x100);
    CHECK_UINT_EQ(sv_elf_begin(&e, fd, CODE + 0x110), CODE + 0x110);
    CHECK_UINT_EQ(sv_elf_begin(&e, fd, CODE + 0x205), CODE + 0x205);
    CHECK_UINT_EQ(sv_elf_begin(&e, fd, CODE + 0x305), CODE + 0x305);
    CHECK_UINT_EQ(sv_elf_begin(&e, -1, CODE + 0x10f), CODE + 0x10f);
    sv_elf_fini(&e);
    close(fd);
}

/* One byte of the head of the table, or its count: then there is none. */
TEST(tables_of_functions_that_are_written_otherwise_are_left_out)
{
    for (int i = 0; i < 6; i++) {
        struct sv_elf e;
        struct image *f = image();
        CONTEXT("change %d", i);
        if (i < 4)
            f->functions.head[i] ^= 1;
        else if (i == 4)
            f->functions.count++;
        else
            f->parts[3].p_filesz = 11;
        REQUIRE(read_back(f, 1 << 20, &e));
        CHECK_UINT_EQ(e.n_functions, 0);
        CHECK_STR_EQ(at(&e, CODE), "first");
        sv_elf_fini(&e);
    }
}

TEST(files_of_other_machines_are_refused)
{
    for (int i = 0; i < 7; i++) {
        struct sv_elf e;
        struct image *f = image();
        CONTEXT("change %d", i);
        if (i == 0)
            f->head.e_ident[EI_MAG3] = 'G';
        else if (i == 1)
            f->head.e_ident[EI_CLASS] = ELFCLASS32;
        else if (i == 2)
            f->head.e_ident[EI_DATA] ^= 3;
        else if (i == 3)
            f->head.e_phnum = 0;
        else if (i == 4)
            f->head.e_phnum = 257;
        else if (i == 5)
            f->head.e_phentsize++;
        else
            f->head.e_phoff = sizeof *f;
        CHECK(!read_back(f, 1 << 20, &e));
        CHECK(e.n == 0 && e.n_loads == 0 && !e.names);
    }
}

TEST(the_smaller_table_serves_where_the_full_one_cannot)
{
    for (int i = 0; i < 8; i++) {
        struct sv_elf e;
        struct image *f = image();
        Elf64_Shdr *s = &f->sections[SYMBOLS];
        CONTEXT("change %d", i);
        if (i == 1)
            s->sh_type = SHT_NOTE;
        else if (i == 2)
            s->sh_entsize++;
        else if (i == 3)
            s->sh_link = SECTIONS;
        else if (i == 4)
            s->sh_offset = sizeof *f;
        else if (i == 5)
            s->sh_size = sizeof *f;
        else if (i == 6)
            f->head.e_shentsize++;
        else if (i == 7)
            f->head.e_shnum = 0;
        REQUIRE(read_back(f, 1 << 20, &e));
        CHECK_STR_EQ(at(&e, CODE), i == 0 ? "first" : i < 6 ? "of_the_linker" : "-");
        CHECK_UINT_EQ(e.n_functions, FUNCTIONS);
        sv_elf_fini(&e);
    }
}

/* Names end where their table does, and one that begins behind it is none. */
TEST(names_stay_within_their_table)
{
    struct sv_elf e;
    struct image *f = image();
    f->symbols[1].st_name = (uint32_t)f->n_names - 2;
    f->symbols[2].st_name = (uint32_t)f->n_names;
    f->names[f->n_names - 1] = 'x'; /* the last one has no end */
    f->names[f->n_names] = 'y';
    REQUIRE(read_back(f, 1 << 20, &e));
    CHECK_STR_EQ(at(&e, CODE), "rx");
    CHECK_STR_EQ(at(&e, CODE + 0x100), "-");
    sv_elf_fini(&e);
}

/* All tables count; what does not fit any more is not there. */
TEST(the_limit_holds_for_all_tables_together)
{
    struct sv_elf e;
    const struct image *f = image();
    size_t parts = sizeof f->parts, functions = 8 * FUNCTIONS, sections = sizeof f->sections;
    size_t all = parts + functions + sections + f->n_symbols * sizeof(Elf64_Sym) + f->n_names;
    free((void *)(uintptr_t)f);
    CHECK(!read_back(image(), parts - 1, &e));
    REQUIRE(read_back(image(), parts + functions - 1, &e));
    CHECK(e.n_functions == 0 && e.n == 0);
    sv_elf_fini(&e);
    REQUIRE(read_back(image(), parts + functions, &e));
    CHECK(e.n_functions == FUNCTIONS && e.n == 0);
    sv_elf_fini(&e);
    REQUIRE(read_back(image(), all - 1, &e));
    CHECK(e.n == 0);
    sv_elf_fini(&e);
    REQUIRE(read_back(image(), all, &e));
    CHECK(e.n > 20);
    sv_elf_fini(&e);
}

/* ---- processes ---- */

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_BOOTTIME, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* A line of maps: `size` bytes of the file from `offset` on, at `start`. */
static const char *line(char text[static 4096], const char *path, uint64_t start, uint64_t size,
                        uint64_t offset)
{
    struct stat st = {0};
    REQUIRE(stat(path, &st) == 0);
    snprintf(text, 4096, "%llx-%llx r-xp %08llx fe:00 %llu %s\n", (unsigned long long)start,
             (unsigned long long)(start + size), (unsigned long long)offset,
             (unsigned long long)st.st_ino, path);
    return text;
}

TEST(addresses_of_a_process_are_those_of_its_files_moved)
{
    enum { AT = 0x10000000 };
    char path[512], text[4096];
    struct sv_symbols *s = sv_symbols_new("/nonexistent");
    struct sv_python_at python;
    struct sv_code_at found;
    snprintf(path, sizeof path, "%s", test_scratch("libpython3.so"));
    close(put(image(), path));
    static const struct {
        uint64_t size, offset, bias;
        bool has;
    } rows[] = {
        {0x1000, 0x1000, AT - CODE, true},
        {0x800, 0x2000, AT - MORE_CODE, true},
        {0x1000, 0x800, AT + 0x800 - CODE, true}, /* the code is its second half */
        {0x400, 0x1c00, AT - 0xc00 - CODE, true}, /* the code began before it */
        {0x800, 0x800, 0, false},                 /* ends where the code begins */
        {0x1000, 0x2800, 0, false},               /* begins where it ends */
    };
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        CONTEXT("row %zu", i);
        sv_symbols_maps(s, NOBODY, line(text, path, AT, rows[i].size, rows[i].offset), INT64_MAX);
        CHECK(sv_symbols_python(s, NOBODY, &python) == rows[i].has);
        const char *lock = sv_symbols_variable(s, NOBODY, DATA + 0x300 + rows[i].bias);
        CHECK_STR_EQ(rows[i].has && lock ? lock : "-", rows[i].has ? "lock" : "-");
        if (!rows[i].has)
            continue;
        CHECK_UINT_EQ(python.runtime, DATA + rows[i].bias);
        CHECK_UINT_EQ(python.version, DATA + 0x100 + rows[i].bias);
    }
    CHECK(!sv_symbols_variable(s, NOBODY, AT - 1)); /* before all that is mapped */
    sv_symbols_maps(s, NOBODY, line(text, path, AT, 0x1000, 0x1000), INT64_MAX);
    REQUIRE(sv_symbols_find(s, NOBODY, AT + 5, 1, &found));
    CHECK_UINT_EQ(found.offset, 0x1005);
    CHECK_UINT_EQ(found.address, CODE + 5);
    CHECK_STR_EQ(sv_symbols_user(s, NOBODY, AT + 5, 1), "first");
    CHECK_STR_EQ(sv_symbols_user(s, NOBODY, AT + 0x20, 1), "[libpython3.so]");
    sv_symbols_free(s);
}

/* The data of a file is behind its own code, not behind another's. */
TEST(a_variable_is_of_the_file_before_it)
{
    char path[512], other[512], text[2][4096], both[8192];
    struct sv_symbols *s = sv_symbols_new("/nonexistent");
    struct image *f = image();
    snprintf(path, sizeof path, "%s", test_scratch("python3"));
    snprintf(other, sizeof other, "%s", test_scratch("lib.so"));
    close(put(image(), path));
    f->n_symbols = 0;
    f->sections[SYMBOLS].sh_size = f->sections[FEWER].sh_size = 0;
    close(put(f, other));
    snprintf(both, sizeof both, "%s%s", line(text[0], path, CODE, 0x1000, 0x1000),
             line(text[1], other, CODE + 0x100000, 0x1000, 0x1000));
    sv_symbols_maps(s, NOBODY, both, INT64_MAX);
    CHECK(!sv_symbols_variable(s, NOBODY, DATA + 0x300)); /* lib.so's, which has none */
    snprintf(both, sizeof both, "%s%s", line(text[0], other, CODE - 0x100000, 0x1000, 0x1000),
             line(text[1], path, CODE, 0x1000, 0x1000));
    sv_symbols_maps(s, NOBODY, both, INT64_MAX);
    const char *lock = sv_symbols_variable(s, NOBODY, DATA + 0x300);
    CHECK_STR_EQ(lock ? lock : "-", "lock");
    sv_symbols_free(s);
}

/* Another file may have the path by now. */
TEST(a_file_with_another_inode_names_nothing)
{
    char path[512], text[4096];
    struct sv_symbols *s = sv_symbols_new("/nonexistent");
    struct sv_python_at python;
    snprintf(path, sizeof path, "%s", test_scratch("python3"));
    close(put(image(), path));
    snprintf(text, sizeof text, "1000-2000 r-xp 00001000 fe:00 1 %s\n", path);
    sv_symbols_maps(s, NOBODY, text, INT64_MAX);
    CHECK_STR_EQ(sv_symbols_user(s, NOBODY, 0x1000, 1), "[python3]");
    CHECK(!sv_symbols_python(s, NOBODY, &python));
    sv_symbols_free(s);
}

TEST(lines_of_maps_are_as_long_as_paths_can_be)
{
    enum { LONGEST = 4351 };
    static char text[LONGEST + 8];
    struct sv_symbols *s = sv_symbols_new("/nonexistent");
    for (int more = 0; more < 2; more++) {
        int n = snprintf(text, sizeof text, "1000-2000 r-xp 00001000 fe:00 1 /");
        memset(text + n, 'a', (size_t)(LONGEST + more - n));
        text[LONGEST + more] = 0;
        sv_symbols_maps(s, NOBODY, text, INT64_MAX);
        CHECK_INT_EQ(strncmp(sv_symbols_user(s, NOBODY, 0x1000, 1), "[aaa", 4) == 0, !more);
    }
    sv_symbols_free(s);
}

/* More files than are told apart: the rest share one, which has no name. */
TEST(the_number_of_files_is_bounded)
{
    enum { FILES = 4096 };
    char *text = malloc((FILES + 2) * (size_t)64);
    struct sv_symbols *s = sv_symbols_new("/nonexistent");
    size_t n = 0;
    REQUIRE(text);
    for (unsigned i = 0; i < FILES + 2; i++)
        n += (size_t)snprintf(text + n, 64, "%x-%x r-xp 0 0:0 1 file%u\n", 0x10000 + i * 0x1000,
                              0x11000 + i * 0x1000, i);
    sv_symbols_maps(s, NOBODY, text, INT64_MAX);
    for (unsigned i = 0; i < FILES + 2; i += i == 0 ? FILES - 2 : 1) {
        char expected[32];
        snprintf(expected, sizeof expected, i + 1 < FILES ? "[file%u]" : "[unknown]", i);
        CHECK_STR_EQ(sv_symbols_user(s, NOBODY, 0x10000 + i * 0x1000, 1), expected);
    }
    sv_symbols_free(s);
    free(text);
}

/* Numbers that are no addresses: the maps are read again after 16 ms, then 32 ms and so on, a
 * second at most. */
TEST(maps_are_not_read_for_each_number_that_is_no_address)
{
    const uint32_t self = (uint32_t)getpid();
    const int64_t ms = 1000000;
    static const int64_t patience_ms[] = {0, 16, 32, 64, 128, 256, 512, 1000, 1000};
    struct sv_symbols *s = sv_symbols_new("/nonexistent");
    int64_t before = 1, after = 1;
    for (size_t i = 0; i < TEST_COUNT(patience_ms); i++) {
        CONTEXT("reading %zu", i);
        sv_symbols_user(s, self, 16, i ? before + patience_ms[i] * ms : 0);
        CHECK_UINT_EQ(sv_symbols_readings(s, self), i);
        int64_t ts = after + patience_ms[i] * ms + 1;
        before = now_ns();
        sv_symbols_user(s, self, 16, ts);
        after = now_ns();
        CHECK_UINT_EQ(sv_symbols_readings(s, self), i + 1);
    }
    sv_symbols_end(s, self); /* the next process of the number begins without any of it */
    CHECK_STR_EQ(sv_symbols_user(s, self, (uint64_t)(uintptr_t)&now_ns, 0), "[unknown]");
    CHECK_STR_EQ(sv_symbols_user(s, self, (uint64_t)(uintptr_t)&now_ns, 1), "now_ns");
    sv_symbols_free(s);
}
