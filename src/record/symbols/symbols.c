/* Who is at an address. Called by samples.c for each frame of a stack.
 *
 * Races with the processes: their maps are read when they are first sampled and again when an address lies outside of what is known and was
 * sampled after the last reading: once per round of the recorder at most. A process that is gone by then keeps the maps that were read, or its parent's. */
#include "record/symbols/symbols.h"
#include "core/base/map.h"
#include "core/base/mem.h"
#include "core/base/search.h"
#include "record/sample/procfs.h"
#include "record/symbols/elf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MAPS_BYTES = 4 << 20, FILES_MAX = 4096, NAME_MAX_SHOWN = 512 };
#define TABLES_BYTES   ((size_t)512 << 20) /* of all files together */
#define KALLSYMS_BYTES ((size_t)64 << 20)

struct file {
    struct sv_elf elf;
    char *path;
    const char *nameless; /* "[libc.so.6]" */
    bool is_read;
};

struct range {
    uint64_t start, end, offset;
    uint32_t file;
};

struct space {
    struct range *ranges; /* by address */
    size_t n, cap;
    int64_t read_ns;
    bool is_known; /* own maps were read since the last exec */
};

struct kernel_symbol {
    uint64_t at;
    const char *name;
};

struct sv_symbols {
    struct file *files;
    size_t n_files, cap_files;
    struct sv_map by_path; /* hash of path and inode → index + 1 */
    struct space *spaces;
    size_t n_spaces, cap_spaces;
    struct sv_map by_pid; /* → index + 1 */
    struct kernel_symbol *kernel;
    size_t n_kernel, cap_kernel;
    struct sv_arena names;
    size_t bytes;
    char *kallsyms;
    bool has_kernel;
};

struct sv_symbols *sv_symbols_new(const char *kallsyms)
{
    struct sv_symbols *s = sv_alloc(sizeof *s);
    s->kallsyms = sv_alloc(4096);
    snprintf(s->kallsyms, 4096, "%s", kallsyms ? kallsyms : "/proc/kallsyms");
    sv_arena_init(&s->names, 1u << 16);
    return s;
}

void sv_symbols_free(struct sv_symbols *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->n_files; i++) {
        sv_elf_fini(&s->files[i].elf);
        free(s->files[i].path);
    }
    for (size_t i = 0; i < s->n_spaces; i++)
        free(s->spaces[i].ranges);
    free(s->files);
    free(s->spaces);
    free(s->kernel);
    free(s->kallsyms);
    sv_map_fini(&s->by_path);
    sv_map_fini(&s->by_pid);
    sv_arena_fini(&s->names);
    free(s);
}

/* ---- the kernel ---- */

static int by_address(const void *a, const void *b)
{
    const struct kernel_symbol *x = a, *y = b;
    return x->at < y->at ? -1 : x->at > y->at;
}

/* "ffffffff81000000 T name" and for modules a tab and "[module]". Names get the mark that flame graphs know the kernel's frames by. */
static void read_kernel(struct sv_symbols *s)
{
    char line[1024], name[NAME_MAX_SHOWN], text[NAME_MAX_SHOWN + 8];
    FILE *f = fopen(s->kallsyms, "re");
    s->has_kernel = true;
    while (f && s->n_kernel * 40 < KALLSYMS_BYTES && fgets(line, sizeof line, f)) {
        unsigned long long at;
        char type;
        if (sscanf(line, "%llx %c %511s", &at, &type, name) != 3 || at == 0 ||
            !strchr("tTwW", type))
            continue;
        int n = snprintf(text, sizeof text, "%s_[k]", name);
        s->kernel = sv_grow(s->kernel, &s->cap_kernel, s->n_kernel + 1, sizeof *s->kernel);
        s->kernel[s->n_kernel++] =
            (struct kernel_symbol){at, sv_arena_copy(&s->names, text, (size_t)n)};
    }
    if (f)
        fclose(f);
    if (s->n_kernel > 1)
        qsort(s->kernel, s->n_kernel, sizeof *s->kernel, by_address);
}

const char *sv_symbols_kernel(struct sv_symbols *s, uint64_t address)
{
    if (!s->has_kernel)
        read_kernel(s);
    size_t low;
    SV_SEARCH(low, middle, 0, s->n_kernel, s->kernel[middle].at <= address);
    return low ? s->kernel[low - 1].name : "[kernel]";
}

/* ---- processes ---- */

static struct space *space_of(struct sv_symbols *s, uint32_t pid)
{
    bool is_new;
    uint64_t *at = sv_map_add(&s->by_pid, pid, &is_new);
    if (is_new) {
        s->spaces = sv_grow(s->spaces, &s->cap_spaces, s->n_spaces + 1, sizeof *s->spaces);
        s->spaces[s->n_spaces++] = (struct space){0};
        *at = s->n_spaces;
    }
    return &s->spaces[*at - 1];
}

void sv_symbols_exec(struct sv_symbols *s, uint32_t pid)
{
    const uint64_t *at = sv_map_find(&s->by_pid, pid);
    if (at)
        s->spaces[*at - 1].n = 0, s->spaces[*at - 1].read_ns = 0;
}

void sv_symbols_end(struct sv_symbols *s, uint32_t pid)
{
    uint64_t *at = sv_map_find(&s->by_pid, pid);
    if (!at)
        return;
    struct space *x = &s->spaces[*at - 1];
    free(x->ranges);
    *x = (struct space){0}; /* stays in its place: the number may come again */
}

void sv_symbols_fork(struct sv_symbols *s, uint32_t parent, uint32_t child)
{
    const uint64_t *at = sv_map_find(&s->by_pid, parent);
    if (!at || s->spaces[*at - 1].n == 0)
        return;
    size_t from = *at - 1;
    struct space *x = space_of(s, child);
    size_t n = s->spaces[from].n;
    x->ranges = sv_grow(x->ranges, &x->cap, n, sizeof *x->ranges);
    memcpy(x->ranges, s->spaces[from].ranges, n * sizeof *x->ranges);
    x->n = n;
    x->is_known = false;
    x->read_ns = 0;
}

static const char *nameless(struct sv_symbols *s, const char *path)
{
    char text[300];
    const char *slash = strrchr(path, '/');
    const char *base = slash ? slash + 1 : path;
    int n = base[0] == '[' ? snprintf(text, sizeof text, "%.255s", base)
                           : snprintf(text, sizeof text, "[%.255s]", base[0] ? base : "anonymous");
    return sv_arena_copy(&s->names, text, (size_t)n);
}

static uint32_t file_of(struct sv_symbols *s, const char *path, uint64_t identity)
{
    bool is_new;
    uint64_t *at = sv_map_add(&s->by_path, sv_hash_bytes(path, strlen(path), identity), &is_new);
    if (!is_new)
        return (uint32_t)*at - 1;
    if (s->n_files == FILES_MAX) {
        *at = 1; /* too many: they share a name */
        return 0;
    }
    s->files = sv_grow(s->files, &s->cap_files, s->n_files + 1, sizeof *s->files);
    struct file *f = &s->files[s->n_files++];
    *f = (struct file){.nameless = nameless(s, path)};
    f->path = sv_alloc(strlen(path) + 1);
    memcpy(f->path, path, strlen(path));
    *at = s->n_files;
    return (uint32_t)s->n_files - 1;
}

/* 7f0c…-7f0d… r-xp 00026000 fe:00 1234   /usr/lib/libc.so.6 */
static void add_range(struct sv_symbols *s, struct space *x, const char *line, size_t len)
{
    char text[4352];
    unsigned long long start, end, offset, inode;
    char rights[8];
    unsigned major, minor;
    int path_at = 0;
    if (len >= sizeof text)
        return;
    memcpy(text, line, len);
    text[len] = 0;
    if (sscanf(text, "%llx-%llx %7s %llx %x:%x %llu %n", &start, &end, rights, &offset, &major,
               &minor, &inode, &path_at) < 7 ||
        end <= start || rights[2] != 'x')
        return;
    const char *path = path_at > 0 ? text + path_at : "";
    uint64_t identity = inode ^ (uint64_t)major << 52 ^ (uint64_t)minor << 40;
    uint32_t file = file_of(s, path, identity);
    x->ranges = sv_grow(x->ranges, &x->cap, x->n + 1, sizeof *x->ranges);
    x->ranges[x->n++] = (struct range){start, end, offset, file};
}

void sv_symbols_maps(struct sv_symbols *s, uint32_t pid, const char *text, int64_t now_ns)
{
    struct space *x = space_of(s, pid);
    x->n = 0;
    while (*text) { /* the kernel writes them by address */
        size_t len = strcspn(text, "\n");
        add_range(s, x, text, len);
        text += len + (text[len] == '\n');
    }
    x->is_known = true;
    x->read_ns = now_ns;
}

static void read_maps(struct sv_symbols *s, uint32_t pid)
{
    struct timespec t;
    char path[64];
    clock_gettime(CLOCK_BOOTTIME, &t);
    int64_t now_ns = (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
    snprintf(path, sizeof path, "%s/%u/maps", sv_procfs_root(), pid);
    char *text = sv_alloc(MAPS_BYTES);
    if (sv_procfs_text(path, text, MAPS_BYTES) > 0)
        sv_symbols_maps(s, pid, text, now_ns);
    else
        space_of(s, pid)->read_ns = now_ns;
    free(text);
}

static const struct range *range_of(const struct space *x, uint64_t address)
{
    size_t low;
    SV_SEARCH(low, middle, 0, x->n, x->ranges[middle].end <= address);
    return low < x->n && x->ranges[low].start <= address ? &x->ranges[low] : NULL;
}

/* The file as the process sees it, which may be in a container; else as we do. */
static void read_file(struct sv_symbols *s, struct file *f, uint32_t pid)
{
    char path[4400];
    size_t left = TABLES_BYTES - (s->bytes < TABLES_BYTES ? s->bytes : TABLES_BYTES);
    f->is_read = true;
    if (f->path[0] != '/')
        return;
    snprintf(path, sizeof path, "%s/%u/root%s", sv_procfs_root(), pid, f->path);
    if (!sv_elf_read(path, left, &f->elf) && !sv_elf_read(f->path, left, &f->elf))
        return;
    s->bytes += sv_elf_bytes(&f->elf);
}

const char *sv_symbols_user(struct sv_symbols *s, uint32_t pid, uint64_t address, int64_t ts_ns)
{
    struct space *x = space_of(s, pid);
    const struct range *r = range_of(x, address);
    if ((!x->is_known || !r) && ts_ns > x->read_ns) {
        read_maps(s, pid);
        x = space_of(s, pid);
        r = range_of(x, address);
    }
    if (!r)
        return "[unknown]";
    struct file *f = &s->files[r->file];
    if (!f->is_read)
        read_file(s, f, pid);
    const char *name = sv_elf_name(&f->elf, address - r->start + r->offset);
    return name && *name ? name : f->nameless;
}
