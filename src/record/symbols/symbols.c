/* Who is at an address. Called by record/stacks/ for each frame of a stack.
 *
 * Where code is comes from execs and from calls that map it. Where an exec does not say it, maps
 * are read, which races with the processes: when they are first sampled and again when an address
 * lies outside of what is known and was sampled after the last reading: once per round of the
 * recorder at most. A process that is gone by then keeps the maps that were read, or its
 * parent's. */
#include "record/symbols/symbols.h"
#include "core/base/map.h"
#include "core/base/mem.h"
#include "core/base/search.h"
#include "record/sample/procfs.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

enum { MAPS_BYTES = 4 << 20, FILES_MAX = 4096, OPEN_MAX_FILES = 256, NAME_MAX_SHOWN = 512 };
#define TABLES_BYTES   ((size_t)512 << 20) /* of all files together */
#define KALLSYMS_BYTES ((size_t)64 << 20)

struct range {
    uint64_t start, end, offset;
    struct sv_code_file *file;
};

struct space {
    struct range *ranges; /* by address */
    size_t n, cap;
    int64_t read_ns;
    uint64_t readings;
    unsigned n_vain;  /* of the last readings, that did not have what was looked for */
    bool is_known;    /* its maps, or those of who forked it, were read since the last exec */
    uint64_t program; /* the inode of the one whose exec said what is mapped; 0: maps were read */
    bool has_ended;   /* and is kept for what it said before */
    unsigned execs;
    uint32_t origin; /* who forked it when nothing was known of its maps; 0: nobody */
    unsigned origin_execs;
};

struct kernel_symbol {
    uint64_t at;
    const char *name;
};

struct sv_symbols {
    struct sv_code_file **files;
    size_t n_files, cap_files, n_open;
    struct sv_map by_path; /* hash of path and inode → index + 1 */
    struct sv_map by_link; /* the same of paths that may be links → index */
    struct space *spaces;
    size_t n_spaces, cap_spaces;
    struct sv_map by_pid; /* → index + 1 */
    struct kernel_symbol *kernel;
    size_t n_kernel, cap_kernel;
    struct sv_arena names;
    size_t bytes;
    char *kallsyms;
    bool has_kernel, follows, keeps_ended;
    uint32_t *ended; /* processes; the first n_long_ended of them before the last forgetting */
    size_t n_ended, cap_ended, n_long_ended;
    void (*reads)(void *ctx, uint32_t pid, const char *text);
    void *reads_ctx;
    void (*frees)(struct sv_code_file *f);
};

struct sv_symbols *sv_symbols_new(const char *kallsyms)
{
    struct sv_symbols *s = sv_alloc(sizeof *s);
    s->kallsyms = sv_alloc(4096);
    snprintf(s->kallsyms, 4096, "%s", kallsyms ? kallsyms : "/proc/kallsyms");
    sv_arena_init(&s->names, 1u << 16);
    return s;
}

void sv_symbols_on_free(struct sv_symbols *s, void (*frees)(struct sv_code_file *f))
{
    s->frees = frees;
}

static void free_file(const struct sv_symbols *s, struct sv_code_file *f)
{
    if (s->frees)
        s->frees(f);
    if (f->fd >= 0)
        close(f->fd);
    sv_elf_fini(&f->elf);
    free(f->path);
    free(f);
}

void sv_symbols_free(struct sv_symbols *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->n_files; i++)
        free_file(s, s->files[i]);
    for (size_t i = 0; i < s->n_spaces; i++)
        free(s->spaces[i].ranges);
    free(s->files);
    free(s->spaces);
    free(s->ended);
    free(s->kernel);
    free(s->kallsyms);
    sv_map_fini(&s->by_path);
    sv_map_fini(&s->by_link);
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

/* "ffffffff81000000 T name" and for modules a tab and "[module]". Names get the mark that flame
 * graphs know the kernel's frames by. */
static void add_kernel_symbol(struct sv_symbols *s, const char *line)
{
    char text[NAME_MAX_SHOWN + 8], *end;
    uint64_t at = strtoull(line, &end, 16);
    if (at == 0 || end[0] != ' ' || !end[1] || !strchr("tTwW", end[1]) || end[2] != ' ')
        return;
    size_t n = strcspn(end + 3, " \t\n");
    if (n == 0 || n >= NAME_MAX_SHOWN)
        return;
    memcpy(text, end + 3, n);
    memcpy(text + n, "_[k]", 4);
    s->kernel = sv_grow(s->kernel, &s->cap_kernel, s->n_kernel + 1, sizeof *s->kernel);
    s->kernel[s->n_kernel++] = (struct kernel_symbol){at, sv_arena_copy(&s->names, text, n + 4)};
}

void sv_symbols_read_kernel(struct sv_symbols *s)
{
    char line[1024];
    FILE *f = s->has_kernel ? NULL : fopen(s->kallsyms, "re");
    s->has_kernel = true;
    while (f && s->n_kernel * 40 < KALLSYMS_BYTES && fgets(line, sizeof line, f))
        add_kernel_symbol(s, line);
    if (!f)
        return;
    fclose(f);
    if (s->n_kernel > 1)
        qsort(s->kernel, s->n_kernel, sizeof *s->kernel, by_address);
}

const char *sv_symbols_kernel(struct sv_symbols *s, uint64_t address)
{
    sv_symbols_read_kernel(s);
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

/* Maps that were read after it are those of the new program. */
void sv_symbols_exec(struct sv_symbols *s, uint32_t pid, int64_t ts_ns)
{
    const uint64_t *at = sv_map_find(&s->by_pid, pid);
    if (!at)
        return;
    struct space *x = &s->spaces[*at - 1];
    x->execs++;
    x->origin = 0;
    if (x->is_known && !x->has_ended && x->read_ns > ts_ns)
        return;
    x->n = x->n_vain = 0;
    x->read_ns = 0;
    x->program = 0;
    x->is_known = x->has_ended = false;
}

/* Stays in its place: the number may come again. There is nothing to read any more. */
static void forget(struct space *x)
{
    free(x->ranges);
    *x = (struct space){.readings = x->readings, .execs = x->execs + 1, .is_known = true};
}

void sv_symbols_end(struct sv_symbols *s, uint32_t pid)
{
    uint64_t *at = sv_map_find(&s->by_pid, pid);
    if (!at)
        return;
    struct space *x = &s->spaces[*at - 1];
    if (!s->keeps_ended) {
        forget(x);
        return;
    }
    x->has_ended = true;
    s->ended = sv_grow(s->ended, &s->cap_ended, s->n_ended + 1, sizeof *s->ended);
    s->ended[s->n_ended++] = pid;
}

void sv_symbols_keep_ended(struct sv_symbols *s)
{
    s->keeps_ended = true;
}

void sv_symbols_forget_ended(struct sv_symbols *s)
{
    for (size_t i = 0; i < s->n_long_ended; i++) {
        struct space *x = space_of(s, s->ended[i]);
        if (x->has_ended)
            forget(x);
    }
    s->n_ended -= s->n_long_ended;
    if (s->n_long_ended && s->n_ended)
        memmove(s->ended, s->ended + s->n_long_ended, s->n_ended * sizeof *s->ended);
    s->n_long_ended = s->n_ended;
}

static void copy_ranges(struct space *to, const struct space *from)
{
    to->ranges = sv_grow(to->ranges, &to->cap, from->n, sizeof *to->ranges);
    if (from->n)
        memcpy(to->ranges, from->ranges, from->n * sizeof *to->ranges);
    to->n = from->n;
    to->is_known = from->is_known;
    to->program = from->program;
    to->has_ended = false;
    to->read_ns = from->read_ns;
    to->n_vain = from->n_vain;
    to->readings++;
}

/* It maps the same: a fork needs no reading. */
void sv_symbols_fork(struct sv_symbols *s, uint32_t parent, uint32_t child)
{
    space_of(s, parent);
    struct space *x = space_of(s, child);
    const struct space *from = space_of(s, parent);
    if (x == from)
        return;
    copy_ranges(x, from);
    x->origin = from->is_known ? 0 : parent;
    x->origin_execs = from->execs;
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

static struct sv_code_file *file_of(struct sv_symbols *s, const char *path, uint64_t identity,
                                    uint64_t inode)
{
    bool is_new;
    uint64_t *at = sv_map_add(&s->by_path, sv_hash_bytes(path, strlen(path), identity), &is_new);
    if (!is_new)
        return s->files[*at - 1];
    if (s->n_files == FILES_MAX) {
        *at = FILES_MAX; /* too many: they share the last one, which has no name */
        return s->files[FILES_MAX - 1];
    }
    s->files = sv_grow(s->files, &s->cap_files, s->n_files + 1, sizeof *s->files);
    struct sv_code_file *f = sv_alloc(sizeof *f);
    *f = (struct sv_code_file){.inode = inode, .number = (uint32_t)s->n_files, .fd = -1};
    f->nameless = s->n_files + 1 == FILES_MAX ? "[unknown]" : nameless(s, path);
    f->path = sv_alloc(strlen(path) + 1);
    memcpy(f->path, path, strlen(path));
    s->files[s->n_files++] = f;
    *at = s->n_files;
    return f;
}

static uint64_t identity_of(uint32_t device, uint64_t inode)
{
    return inode ^ (uint64_t)(device >> 20) << 52 ^ (uint64_t)(device & 0xfffff) << 40;
}

/* 7f0c…-7f0d… r-xp 00026000 fe:00 1234   /usr/lib/libc.so.6 */
static void add_range(struct sv_symbols *s, struct space *x, const char *line, size_t len)
{
    char text[4352];
    unsigned long long start, end, offset, inode;
    char rights[8];
    unsigned on, at;
    int path_at = 0;
    if (len >= sizeof text)
        return;
    memcpy(text, line, len);
    text[len] = 0;
    if (sscanf(text, "%llx-%llx %7s %llx %x:%x %llu %n", &start, &end, rights, &offset, &on, &at,
               &inode, &path_at) < 7 ||
        end <= start || rights[2] != 'x')
        return;
    const char *path = path_at > 0 ? text + path_at : "";
    uint64_t identity = identity_of(on << 20 | (at & 0xfffff), inode);
    struct sv_code_file *file = file_of(s, path, identity, inode);
    x->ranges = sv_grow(x->ranges, &x->cap, x->n + 1, sizeof *x->ranges);
    x->ranges[x->n++] = (struct range){start, end, offset, file};
}

/* What lies in its place is gone. */
static void put_range(struct space *x, struct range new_one)
{
    size_t from, to;
    SV_SEARCH(from, middle, 0, x->n, x->ranges[middle].end <= new_one.start);
    for (to = from; to < x->n && x->ranges[to].start < new_one.end; to++)
        continue;
    struct range first = from < to ? x->ranges[from] : new_one;
    struct range last = from < to ? x->ranges[to - 1] : new_one, kept[3];
    size_t n = 0;
    if (first.start < new_one.start) {
        first.end = new_one.start;
        kept[n++] = first;
    }
    kept[n++] = new_one;
    if (last.end > new_one.end) {
        last.offset += new_one.end - last.start;
        last.start = new_one.end;
        kept[n++] = last;
    }
    x->ranges = sv_grow(x->ranges, &x->cap, x->n + 2, sizeof *x->ranges);
    memmove(x->ranges + from + n, x->ranges + to, (x->n - to) * sizeof *x->ranges);
    memcpy(x->ranges + from, kept, n * sizeof *kept);
    x->n = x->n - (to - from) + n;
}

static bool is_pythons_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && (strncmp(slash, "/python", 7) == 0 || strncmp(slash, "/libpython", 10) == 0);
}

static uint32_t device_of(const struct stat *st)
{
    return major(st->st_dev) << 20 | (minor(st->st_dev) & 0xfffff);
}

/* The file that is at a path of ours, which may have links, as maps have it. */
static struct sv_code_file *file_behind(struct sv_symbols *s, const char *path, uint32_t device,
                                        uint64_t inode)
{
    struct stat st;
    char real[PATH_MAX];
    bool is_new;
    uint64_t identity = identity_of(device, inode),
             *known = sv_map_add(&s->by_link, sv_hash_bytes(path, strlen(path), identity), &is_new);
    if (!is_new)
        return s->files[*known];
    bool is_here = path[0] == '/' && stat(path, &st) == 0 && st.st_ino == inode &&
                   device_of(&st) == device && realpath(path, real);
    struct sv_code_file *f = file_of(s, is_here ? real : path, identity, inode);
    *known = f->number;
    return f;
}

void sv_symbols_map(struct sv_symbols *s, uint32_t pid, const struct sv_mapped_code *m,
                    const char *path)
{
    const uint64_t *at = sv_map_find(&s->by_pid, pid);
    struct space *x = at ? &s->spaces[*at - 1] : NULL;
    if (!x || !x->is_known || m->ts_ns <= x->read_ns || m->bytes == 0 ||
        m->bytes > UINT64_MAX - m->start)
        return;
    uint64_t end = (m->start + m->bytes + 4095) & ~UINT64_C(4095);
    struct sv_code_file *file = file_behind(s, path, m->device, m->inode);
    if (end > m->start)
        put_range(x, (struct range){m->start, end, m->offset, file});
    x->readings += x->program && is_pythons_name(path);
}

void sv_symbols_follow(struct sv_symbols *s, bool follows)
{
    s->follows = follows;
}

void sv_symbols_on_read(struct sv_symbols *s,
                        void (*reads)(void *ctx, uint32_t pid, const char *text), void *ctx)
{
    s->reads = reads;
    s->reads_ctx = ctx;
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
    x->program = 0;
    x->read_ns = now_ns;
    x->readings++;
}

static void read_maps(struct sv_symbols *s, uint32_t pid)
{
    struct timespec t;
    char path[64];
    clock_gettime(CLOCK_BOOTTIME, &t);
    int64_t now_ns = (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
    snprintf(path, sizeof path, "%s/%u/maps", sv_procfs_root(), pid);
    char *text = sv_alloc(MAPS_BYTES);
    bool is_read = sv_procfs_text(path, text, MAPS_BYTES) > 0;
    if (is_read)
        sv_symbols_maps(s, pid, text, now_ns);
    else
        space_of(s, pid)->read_ns = now_ns;
    if (is_read && s->reads)
        s->reads(s->reads_ctx, pid, text);
    free(text);
}

void sv_symbols_read(struct sv_symbols *s, uint32_t pid)
{
    read_maps(s, pid);
}

static const struct range *range_of(const struct space *x, uint64_t address)
{
    size_t low;
    SV_SEARCH(low, middle, 0, x->n, x->ranges[middle].end <= address);
    return low < x->n && x->ranges[low].start <= address ? &x->ranges[low] : NULL;
}

static int open_regular(const char *path, uint64_t inode)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd >= 0 && (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || (inode && st.st_ino != inode))) {
        close(fd);
        fd = -1;
    }
    return fd;
}

/* The file as the process sees it, which may be in a container; or what it has mapped, though the
 * file has no name any more; else as we see it, if that is the same one. */
static int open_file(const struct sv_code_file *f, uint32_t pid, const struct range *r)
{
    char path[4400];
    snprintf(path, sizeof path, "%s/%u/root%s", sv_procfs_root(), pid, f->path);
    int fd = open_regular(path, 0);
    if (fd < 0) {
        snprintf(path, sizeof path, "%s/%u/map_files/%" PRIx64 "-%" PRIx64, sv_procfs_root(), pid,
                 r->start, r->end);
        fd = open_regular(path, 0);
    }
    return fd >= 0 ? fd : open_regular(f->path, f->inode);
}

static void read_file(struct sv_symbols *s, struct sv_code_file *f, uint32_t pid,
                      const struct range *r)
{
    size_t left = TABLES_BYTES - (s->bytes < TABLES_BYTES ? s->bytes : TABLES_BYTES);
    f->is_read = true;
    int fd = f->path[0] == '/' ? open_file(f, pid, r) : -1;
    f->has_elf = fd >= 0 && sv_elf_read(fd, left, &f->elf);
    s->bytes += sv_elf_bytes(&f->elf);
    if (f->has_elf && s->n_open < OPEN_MAX_FILES) { /* unwind information is read when needed */
        f->fd = fd;
        s->n_open++;
    } else if (fd >= 0) {
        close(fd);
    }
}

/* ---- what an exec says ---- */

/* The file at a path, read. NULL: it is another one (`inode` 0: any), or no program. */
static struct sv_code_file *program_file(struct sv_symbols *s, uint32_t pid, const char *path,
                                         uint32_t device, uint64_t inode)
{
    struct stat st;
    if (path[0] != '/' || stat(path, &st) != 0 ||
        (inode && (st.st_ino != inode || device_of(&st) != device)))
        return NULL;
    struct sv_code_file *f = file_behind(s, path, device_of(&st), st.st_ino);
    if (!f->is_read)
        read_file(s, f, pid, &(struct range){0});
    return f->has_elf ? f : NULL;
}

static void put_loads(struct space *x, struct sv_code_file *f, uint64_t bias)
{
    const uint64_t page = 4095;
    for (size_t i = 0; i < f->elf.n_loads; i++) {
        const struct sv_elf_load *l = &f->elf.loads[i];
        uint64_t from = (bias + l->at) & ~page, to = (bias + l->at + l->size + page) & ~page;
        if (from < to)
            put_range(x, (struct range){from, to, l->offset & ~page, f});
    }
}

/* The kernel's page with code in each process: as large as ours. */
static uint64_t vdso_bytes(void)
{
    static uint64_t bytes;
    char line[512];
    unsigned long long from, to;
    FILE *f = bytes ? NULL : fopen("/proc/self/maps", "re");
    while (f && fgets(line, sizeof line, f))
        if (strstr(line, "[vdso]") && sscanf(line, "%llx-%llx", &from, &to) == 2)
            bytes = to - from;
    if (f)
        fclose(f);
    return bytes;
}

bool sv_symbols_program(struct sv_symbols *s, uint32_t pid, int64_t ts_ns,
                        const struct sv_program *p, const char *path)
{
    if (!s->follows || space_of(s, pid)->is_known || !p->entry)
        return false;
    struct sv_code_file *f = program_file(s, pid, path, p->device, p->inode), *linker = NULL;
    if (!f || !!p->base != !!f->elf.interpreter)
        return false;
    if (p->base && !(linker = program_file(s, pid, f->elf.interpreter, 0, 0)))
        return false;
    struct space *x = space_of(s, pid);
    x->n = x->n_vain = 0;
    put_loads(x, f, p->entry - f->elf.entry);
    if (linker)
        put_loads(x, linker, p->base);
    if (p->vdso && vdso_bytes())
        put_range(x,
                  (struct range){p->vdso, p->vdso + vdso_bytes(), 0, file_of(s, "[vdso]", 0, 0)});
    x->is_known = true;
    x->program = p->inode;
    x->read_ns = ts_ns;
    x->readings++;
    return true;
}

uint64_t sv_symbols_unread(struct sv_symbols *s, uint32_t pid)
{
    const uint64_t *at = sv_map_find(&s->by_pid, pid);
    return at ? s->spaces[*at - 1].program : 0;
}

/* A stack that ends in a number which is no address would make us read them for each sample: 16 ms
 * after the first time, a second at most. */
static int64_t patience_ns(const struct space *x)
{
    const int64_t least = 16000000, most = 1000000000;
    int64_t ns = x->n_vain == 0 ? 0 : least << (x->n_vain < 7 ? x->n_vain - 1 : 6);
    return ns < most ? ns : most;
}

/* Who forked it has mapped the same, and lives longer. */
static void ask_origin(struct sv_symbols *s, uint32_t pid, uint32_t origin)
{
    const struct space *from = space_of(s, origin);
    if (from->execs == space_of(s, pid)->origin_execs && !from->is_known)
        read_maps(s, origin);
    from = space_of(s, origin);
    struct space *x = space_of(s, pid);
    if (from->execs == x->origin_execs && from->is_known)
        copy_ranges(x, from);
    x->origin = 0;
}

static struct space *space_with_origin(struct sv_symbols *s, uint32_t pid)
{
    const struct space *x = space_of(s, pid);
    if (!x->is_known && x->origin)
        ask_origin(s, pid, x->origin);
    return space_of(s, pid);
}

static const struct range *find_range(struct sv_symbols *s, uint32_t pid, uint64_t address,
                                      int64_t ts_ns)
{
    struct space *x = space_with_origin(s, pid);
    const struct range *r = range_of(x, address);
    bool may_read = !x->is_known || (!r && (!s->follows || x->program));
    if (may_read && ts_ns > x->read_ns + patience_ns(x)) {
        read_maps(s, pid);
        x = space_of(s, pid);
        r = range_of(x, address);
        x->n_vain = r ? 0 : x->n_vain + 1;
    }
    if (r && !r->file->is_read)
        read_file(s, r->file, pid, r);
    return r;
}

bool sv_symbols_find(struct sv_symbols *s, uint32_t pid, uint64_t address, int64_t ts_ns,
                     struct sv_code_at *at)
{
    const struct range *r = find_range(s, pid, address, ts_ns);
    if (!r)
        return false;
    at->file = r->file;
    at->offset = address - r->start + r->offset;
    at->address = sv_elf_address(&r->file->elf, at->offset);
    return true;
}

const char *sv_symbols_user(struct sv_symbols *s, uint32_t pid, uint64_t address, int64_t ts_ns)
{
    struct sv_code_at at;
    if (!sv_symbols_find(s, pid, address, ts_ns, &at))
        return "[unknown]";
    const char *name = sv_elf_name(&at.file->elf, at.offset);
    return name && *name ? name : at.file->nameless;
}

uint64_t sv_symbols_readings(struct sv_symbols *s, uint32_t pid)
{
    return space_of(s, pid)->readings;
}

/* What the mapping adds to the addresses of the linker. */
static bool bias_of(const struct range *r, uint64_t *bias)
{
    const struct sv_elf *e = &r->file->elf;
    for (size_t i = 0; i < e->n_loads; i++)
        if (e->loads[i].offset < r->offset + (r->end - r->start) &&
            r->offset < e->loads[i].offset + e->loads[i].size) {
            *bias = r->start - r->offset + e->loads[i].offset - e->loads[i].at;
            return true;
        }
    return false;
}

bool sv_symbols_python(struct sv_symbols *s, uint32_t pid, struct sv_python_at *at)
{
    const struct space *x = space_of(s, pid);
    for (size_t i = 0; i < x->n; i++) {
        const struct range *r = &x->ranges[i];
        uint64_t bias;
        if (!is_pythons_name(r->file->path))
            continue;
        if (!r->file->is_read)
            read_file(s, r->file, pid, r);
        const struct sv_elf *e = &r->file->elf;
        if (e->python_runtime && bias_of(r, &bias)) {
            at->runtime = e->python_runtime + bias;
            at->version = e->python_version ? e->python_version + bias : 0;
            return true;
        }
    }
    return false;
}

/* The data of a file is mapped behind its code. Most locks are no variables: their addresses are no
 * reason to read the maps again. */
const char *sv_symbols_variable(struct sv_symbols *s, uint32_t pid, uint64_t address)
{
    const struct space *x = space_with_origin(s, pid);
    if (!x->is_known && x->read_ns == 0) {
        read_maps(s, pid);
        x = space_of(s, pid);
    }
    const struct range *before = NULL;
    uint64_t bias;
    for (size_t i = 0; i < x->n; i++)
        if (x->ranges[i].start <= address && (!before || x->ranges[i].start > before->start))
            before = &x->ranges[i];
    if (!before)
        return NULL;
    if (!before->file->is_read)
        read_file(s, before->file, pid, before);
    return bias_of(before, &bias) ? sv_elf_variable(&before->file->elf, address - bias) : NULL;
}
