/* Files for debuggers are taken only when their build id is that of the program: a name from
 * another build would be wrong. Nothing is asked of the network. */
#include "record/stacks/debug_info.h"

#ifdef SV_HAVE_DW

#include "core/base/mem.h"
#include "core/base/search.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BUILD_ID_MAX = SV_BUILD_ID_MAX, RANGES_MAX = 1 << 21 };

struct unit_range {
    uint64_t start, end;
    Dwarf_Off unit;
};

struct sv_debug_info {
    Elf *elf;              /* the program's own */
    Elf *other;            /* the file for debuggers, NULL: none */
    int fd;                /* of that file, -1 */
    struct sv_elf symbols; /* of that file */
    Dwarf *dwarf;
    struct unit_range *ranges; /* by start */
    size_t n, cap;
};

static size_t build_id(Elf *elf, uint8_t id[BUILD_ID_MAX])
{
    const void *bytes = NULL;
    ssize_t n = dwelf_elf_gnu_build_id(elf, &bytes);
    if (n < 2 || n > BUILD_ID_MAX)
        return 0;
    memcpy(id, bytes, (size_t)n);
    return (size_t)n;
}

static void to_hex(const uint8_t *id, size_t n, char *hex)
{
    for (size_t i = 0; i < n; i++)
        snprintf(hex + 2 * i, 3, "%02x", id[i]);
}

bool sv_debug_info_build_id(int fd, char hex[2 * SV_BUILD_ID_MAX + 1])
{
    uint8_t id[BUILD_ID_MAX];
    elf_version(EV_CURRENT);
    Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
    size_t n = elf ? build_id(elf, id) : 0;
    elf_end(elf);
    to_hex(id, n, hex);
    return n > 0;
}

static bool has_build_id(int fd, const uint8_t *id, size_t n)
{
    uint8_t other[BUILD_ID_MAX];
    Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
    bool is_same = elf && build_id(elf, other) == n && memcmp(other, id, n) == 0;
    elf_end(elf);
    return is_same;
}

static int open_same(const char *path, const uint8_t *id, size_t n)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd >= 0 && !has_build_id(fd, id, n)) {
        close(fd);
        fd = -1;
    }
    return fd;
}

/* By the build id, or by the name that the program has for it. */
static int open_separate(Elf *elf, const char *program)
{
    uint8_t id[BUILD_ID_MAX];
    char path[4400], hex[2 * BUILD_ID_MAX + 1] = "";
    size_t n = build_id(elf, id);
    if (n == 0)
        return -1;
    to_hex(id, n, hex);
    snprintf(path, sizeof path, "/usr/lib/debug/.build-id/%.2s/%s.debug", hex, hex + 2);
    int fd = open_same(path, id, n);
    GElf_Word crc;
    const char *name = fd < 0 ? dwelf_elf_gnu_debuglink(elf, &crc) : NULL;
    const char *slash = strrchr(program, '/');
    int folder = slash ? (int)(slash - program) : 0;
    static const char *const before[] = {"", "", "/usr/lib/debug"}, *const after[] = {"", "/.debug",
                                                                                      ""};
    for (unsigned i = 0; name && fd < 0 && i < 3 && folder < 4000 && !strchr(name, '/'); i++) {
        snprintf(path, sizeof path, "%s%.*s%s/%.255s", before[i], folder, program, after[i], name);
        fd = open_same(path, id, n);
    }
    return fd;
}

static bool has_units(Dwarf *dwarf)
{
    Dwarf_CU *unit = NULL;
    return dwarf && dwarf_get_units(dwarf, NULL, &unit, NULL, NULL, NULL, NULL) == 0;
}

/* Sections may be compressed: a small file of another user must not take all memory. */
static bool is_bounded(Elf *elf)
{
    const uint64_t most = (uint64_t)2 << 30;
    uint64_t bytes = 0;
    GElf_Shdr h;
    GElf_Chdr packed;
    for (Elf_Scn *s = elf_nextscn(elf, NULL); s && bytes <= most; s = elf_nextscn(elf, s)) {
        if (!gelf_getshdr(s, &h) || h.sh_type == SHT_NOBITS)
            continue;
        bool is_packed = h.sh_flags & SHF_COMPRESSED && gelf_getchdr(s, &packed);
        uint64_t size = is_packed ? packed.ch_size : h.sh_size;
        bytes = size > most ? most + 1 : bytes + size;
    }
    return bytes <= most;
}

/* The system's libraries: of these the names of functions say enough, and to unpack the sections of
 * their files for debuggers takes a tenth of a second for libc alone. */
static bool is_of_system(const char *path)
{
    static const char *const folders[] = {"/lib/", "/lib64/", "/usr/lib/", "/usr/lib64/"};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        if (strncmp(path, folders[i], strlen(folders[i])) == 0)
            return true;
    return false;
}

static Dwarf *open_dwarf(Elf *elf)
{
    return elf && is_bounded(elf) ? dwarf_begin_elf(elf, DWARF_C_READ, NULL) : NULL;
}

static int by_start(const void *a, const void *b)
{
    const struct unit_range *x = a, *y = b;
    return x->start < y->start ? -1 : x->start > y->start;
}

/* What each compiled unit covers. */
static void read_ranges(struct sv_debug_info *d)
{
    Dwarf_CU *unit = NULL, *next;
    Dwarf_Die die;
    uint8_t type;
    while (d->n < RANGES_MAX &&
           dwarf_get_units(d->dwarf, unit, &next, NULL, &type, &die, NULL) == 0) {
        Dwarf_Addr base, start, end;
        ptrdiff_t at = 0;
        unit = next;
        while (type == DW_UT_compile && d->n < RANGES_MAX &&
               (at = dwarf_ranges(&die, at, &base, &start, &end)) > 0) {
            if (start >= end)
                continue;
            d->ranges = sv_grow(d->ranges, &d->cap, d->n + 1, sizeof *d->ranges);
            d->ranges[d->n++] = (struct unit_range){start, end, dwarf_dieoffset(&die)};
        }
    }
    if (d->n > 1)
        qsort(d->ranges, d->n, sizeof *d->ranges, by_start);
}

struct sv_debug_info *sv_debug_info_new(const struct sv_code_file *f, size_t *left)
{
    elf_version(EV_CURRENT);
    Elf *elf = f->fd >= 0 ? elf_begin(f->fd, ELF_C_READ, NULL) : NULL;
    if (!elf)
        return NULL;
    struct sv_debug_info *d = sv_alloc(sizeof *d);
    d->elf = elf;
    d->fd = -1;
    d->dwarf = open_dwarf(elf);
    if (!has_units(d->dwarf)) {
        if (d->dwarf)
            dwarf_end(d->dwarf);
        d->fd = open_separate(elf, f->path);
        d->other = d->fd >= 0 ? elf_begin(d->fd, ELF_C_READ, NULL) : NULL;
        d->dwarf = is_of_system(f->path) ? NULL : open_dwarf(d->other);
        if (d->fd >= 0)
            sv_elf_read(d->fd, *left, &d->symbols);
        size_t bytes = sv_elf_bytes(&d->symbols);
        *left -= bytes < *left ? bytes : *left;
    }
    if (has_units(d->dwarf)) {
        read_ranges(d);
    } else if (d->symbols.n == 0) {
        sv_debug_info_free(d);
        return NULL;
    }
    return d;
}

void sv_debug_info_free(struct sv_debug_info *d)
{
    if (!d)
        return;
    if (d->dwarf)
        dwarf_end(d->dwarf);
    elf_end(d->other);
    if (d->fd >= 0)
        close(d->fd);
    elf_end(d->elf);
    sv_elf_fini(&d->symbols);
    free(d->ranges);
    free(d);
}

const char *sv_debug_info_symbol(const struct sv_debug_info *d, uint64_t address)
{
    const struct sv_elf_symbol *s = sv_elf_symbol(&d->symbols, address);
    return s ? d->symbols.names + s->name : NULL;
}

static const char *base_name(const char *path)
{
    const char *slash = path ? strrchr(path, '/') : NULL;
    return slash ? slash + 1 : path;
}

static const char *name_of(Dwarf_Die *die)
{
    Dwarf_Attribute a;
    const char *linked = dwarf_formstring(dwarf_attr_integrate(die, DW_AT_linkage_name, &a));
    return linked ? linked : dwarf_diename(die);
}

/* Where an inlined function was called. */
static void call_place(Dwarf_Die *unit, Dwarf_Die *inlined, struct sv_debug_frame *out)
{
    Dwarf_Attribute a;
    Dwarf_Word line, file;
    Dwarf_Files *files;
    size_t n;
    if (dwarf_formudata(dwarf_attr(inlined, DW_AT_call_line, &a), &line) == 0 && line < 1 << 30)
        out->line = (int)line;
    if (dwarf_formudata(dwarf_attr(inlined, DW_AT_call_file, &a), &file) == 0 &&
        dwarf_getsrcfiles(unit, &files, &n) == 0 && file < n)
        out->file = base_name(dwarf_filesrc(files, file, NULL, NULL));
}

static bool find_unit(const struct sv_debug_info *d, uint64_t address, Dwarf_Die *unit)
{
    size_t low;
    SV_SEARCH(low, middle, 0, d->n, d->ranges[middle].start <= address);
    return low > 0 && address < d->ranges[low - 1].end &&
           dwarf_offdie(d->dwarf, d->ranges[low - 1].unit, unit);
}

size_t sv_debug_info_frames(struct sv_debug_info *d, uint64_t address, struct sv_debug_frame *out,
                            size_t max)
{
    Dwarf_Die unit, *innermost = NULL, *scopes = NULL;
    if (!find_unit(d, address, &unit))
        return 0;
    struct sv_debug_frame at = {0};
    Dwarf_Line *line = dwarf_getsrc_die(&unit, address);
    if (line) {
        at.file = base_name(dwarf_linesrc(line, NULL, NULL));
        dwarf_lineno(line, &at.line);
    }
    size_t n = 0;
    /* The first call finds the innermost scope; around an inlined function it has those of its
     * definition. The second has those around the call. */
    int n_scopes = dwarf_getscopes(&unit, address, &innermost);
    if (n_scopes > 0)
        n_scopes = dwarf_getscopes_die(&innermost[0], &scopes);
    for (int i = 0; i < n_scopes && n < max; i++) {
        int tag = dwarf_tag(&scopes[i]);
        if (tag != DW_TAG_inlined_subroutine && tag != DW_TAG_subprogram)
            continue;
        at.name = name_of(&scopes[i]);
        out[n++] = at;
        at = (struct sv_debug_frame){0};
        if (tag == DW_TAG_subprogram)
            break;
        call_place(&unit, &scopes[i], &at);
    }
    free(innermost);
    free(scopes);
    return n;
}

#else

bool sv_debug_info_build_id(int fd, char hex[2 * SV_BUILD_ID_MAX + 1])
{
    (void)fd;
    hex[0] = 0;
    return false;
}

struct sv_debug_info *sv_debug_info_new(const struct sv_code_file *f, size_t *left)
{
    (void)f;
    (void)left;
    return NULL;
}

void sv_debug_info_free(struct sv_debug_info *d)
{
    (void)d;
}

size_t sv_debug_info_frames(struct sv_debug_info *d, uint64_t address, struct sv_debug_frame *out,
                            size_t max)
{
    (void)d;
    (void)address;
    (void)out;
    (void)max;
    return 0;
}

const char *sv_debug_info_symbol(const struct sv_debug_info *d, uint64_t address)
{
    (void)d;
    (void)address;
    return NULL;
}

#endif
