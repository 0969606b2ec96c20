/* Every function of a program as a slice: the companion of -finstrument-functions.
 *
 *     cc -finstrument-functions program.c -lstave-functions -lstave
 *     STAVE_OUT=t.pftrace STAVE_FUNCTIONS='*,-libc*' STAVE_FUNCTIONS_MIN_US=10 ./a.out
 *
 * The compiler calls the two functions at the bottom. Each traced function gets a call place of its
 * own at its first entry, named from the symbols of its module (the full table where it is not
 * stripped, the dynamic one otherwise; address minus load address, so PIE and dlopen work; what
 * dlclose takes away is forgotten, since others may come to the same addresses), and from then on
 * costs what a macro costs plus one lookup. With a minimum duration slices are recorded when they
 * end, and only if they were long enough. STAVE_FUNCTIONS: globs of module names, -GLOB
 * excludes. */
#include "core/base/globs.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <link.h>
#include <stave/stave.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define PLAIN __attribute__((no_instrument_function))
#define GONE  ((uintptr_t)1) /* the address of a function whose library was unloaded */
enum { SLOTS = 1 << 16, DEPTH_MAX = 1024, NAME_MAX_BYTES = 200 };

struct function {
    _Atomic uintptr_t address;
    struct stave_site *_Atomic site; /* NULL: not wanted */
    struct stave_site place;
    char name[NAME_MAX_BYTES];
};

struct frame {
    struct function *function;
    int64_t start_ns; /* with a minimum duration */
    uint32_t session; /* without */
};

static struct function *_Atomic functions; /* SLOTS of them, by hash */
static _Atomic int lock;
static int64_t min_ns;
static _Thread_local struct frame frames[DEPTH_MAX];
static _Thread_local unsigned depth;
static _Thread_local bool inside;

extern char *__cxa_demangle(const char *, char *, size_t *, int *) __attribute__((weak));

/* ---- names ---- */

struct module {
    uintptr_t address, base;
    char path[512];
};

PLAIN static int find_module(struct dl_phdr_info *info, size_t size, void *arg)
{
    (void)size;
    struct module *m = arg;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        uintptr_t start = info->dlpi_addr + p->p_vaddr;
        if (p->p_type != PT_LOAD || m->address < start || m->address >= start + p->p_memsz)
            continue;
        m->base = info->dlpi_addr;
        snprintf(m->path, sizeof m->path, "%s",
                 info->dlpi_name && *info->dlpi_name ? info->dlpi_name : "/proc/self/exe");
        return 1;
    }
    return 0;
}

/* The symbol that holds the value, from one table; false: none. */
PLAIN static bool find_in_table(const uint8_t *file, size_t n, const ElfW(Shdr) * table,
                                const ElfW(Shdr) * texts, uintptr_t value, char *name)
{
    if (table->sh_offset > n || table->sh_size > n - table->sh_offset || texts->sh_offset > n ||
        texts->sh_size > n - texts->sh_offset)
        return false;
    const ElfW(Sym) *s = (const ElfW(Sym) *)(const void *)(file + table->sh_offset);
    for (size_t i = 0; i < table->sh_size / sizeof *s; i++) {
        if ((s[i].st_info & 0xf) != STT_FUNC || value < s[i].st_value ||
            value >= s[i].st_value + (s[i].st_size ? s[i].st_size : 1) ||
            s[i].st_name >= texts->sh_size)
            continue;
        snprintf(name, NAME_MAX_BYTES, "%.*s", (int)(texts->sh_size - s[i].st_name),
                 (const char *)file + texts->sh_offset + s[i].st_name);
        return true;
    }
    return false;
}

PLAIN static bool find_in_file(const uint8_t *file, size_t n, uintptr_t value, char *name)
{
    const ElfW(Ehdr) *h = (const ElfW(Ehdr) *)(const void *)file;
    if (n < sizeof *h || memcmp(h->e_ident, ELFMAG, SELFMAG) != 0 ||
        h->e_shentsize != sizeof(ElfW(Shdr)) || h->e_shoff > n ||
        (size_t)h->e_shnum * sizeof(ElfW(Shdr)) > n - h->e_shoff)
        return false;
    const ElfW(Shdr) *sections = (const ElfW(Shdr) *)(const void *)(file + h->e_shoff);
    static const unsigned kinds[] = {SHT_SYMTAB, SHT_DYNSYM};
    for (int k = 0; k < 2; k++)
        for (unsigned i = 0; i < h->e_shnum; i++)
            if (sections[i].sh_type == kinds[k] && sections[i].sh_link < h->e_shnum &&
                find_in_table(file, n, &sections[i], &sections[sections[i].sh_link], value, name))
                return true;
    return false;
}

PLAIN static void resolve(const struct module *m, char *name)
{
    struct stat st;
    int fd = open(m->path, O_RDONLY | O_CLOEXEC);
    void *file = MAP_FAILED;
    if (fd >= 0 && fstat(fd, &st) == 0 && st.st_size > 0)
        file = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (fd >= 0)
        close(fd);
    snprintf(name, NAME_MAX_BYTES, "0x%lx", (unsigned long)m->address);
    if (file == MAP_FAILED)
        return;
    if (find_in_file(file, (size_t)st.st_size, m->address - m->base, name) && __cxa_demangle) {
        char *plain = __cxa_demangle(name, NULL, NULL, NULL);
        if (plain)
            snprintf(name, NAME_MAX_BYTES, "%s", plain);
        free(plain);
    }
    munmap(file, (size_t)st.st_size);
}

PLAIN static bool matches(const char *glob, const char *end, const char *text)
{
    char copy[512];
    snprintf(copy, sizeof copy, "%.*s", (int)(end - glob), glob);
    return fnmatch(copy, text, 0) == 0;
}

/* STAVE_FUNCTIONS, as categories: globs over the module's file name. */
PLAIN static bool is_wanted(const struct module *m)
{
    const char *text = secure_getenv("STAVE_FUNCTIONS");
    const char *slash = strrchr(m->path, '/'), *base = slash ? slash + 1 : m->path;
    return sv_globs_match(text && *text ? text : "*", base, matches);
}

/* ---- functions ---- */

PLAIN static void meet(struct function *f, uintptr_t address)
{
    static const char *const keys[] = {"", "", "", 0};
    static const uint8_t types[] = {STAVE_I_TRACK, STAVE_I_START, STAVE_I_DUR, 0};
    struct module m = {.address = address};
    const char *min = secure_getenv("STAVE_FUNCTIONS_MIN_US");
    min_ns = min ? strtoll(min, NULL, 10) * 1000 : 0;
    if (dl_iterate_phdr(find_module, &m) != 0 && is_wanted(&m)) {
        resolve(&m, f->name);
        f->place = (struct stave_site){.state = 1,
                                       .kind = min_ns ? STAVE_KIND_COMPLETE : STAVE_KIND_BEGIN,
                                       .n_args = min_ns ? 3 : 0,
                                       .cat = STAVE_CATEGORY,
                                       .name = f->name,
                                       .file = "",
                                       .func = f->name,
                                       .keys = keys,
                                       .types = types,
                                       .dso = &stave_i_dso};
        atomic_store_explicit(&f->site, &f->place, memory_order_relaxed);
    }
    atomic_store_explicit(&f->address, address, memory_order_release);
}

PLAIN static struct function *table(void)
{
    struct function *t = atomic_load_explicit(&functions, memory_order_acquire);
    if (t)
        return t;
    t = mmap(NULL, SLOTS * sizeof *t, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    struct function *none = NULL;
    if (t == MAP_FAILED)
        return NULL;
    return atomic_compare_exchange_strong(&functions, &none, t) ? t : none;
}

PLAIN static struct function *find(uintptr_t address)
{
    struct function *t = table();
    for (size_t i = (address >> 4) * 0x9e3779b97f4a7c15u >> 48, n = 0; t && n < SLOTS;
         i = (i + 1) % SLOTS, n++) {
        uintptr_t at = atomic_load_explicit(&t[i].address, memory_order_acquire);
        if (at == address)
            return &t[i];
        if (at != 0)
            continue;
        while (atomic_exchange_explicit(&lock, 1, memory_order_acquire))
            ;
        at = atomic_load_explicit(&t[i].address, memory_order_relaxed);
        if (at == 0)
            meet(&t[i], address);
        atomic_store_explicit(&lock, 0, memory_order_release);
        if (atomic_load_explicit(&t[i].address, memory_order_relaxed) == address)
            return &t[i];
    }
    return NULL;
}

PLAIN static void forget_unloaded(void)
{
    struct function *t = atomic_load_explicit(&functions, memory_order_acquire);
    for (size_t i = 0; t && i < SLOTS; i++) {
        struct module m = {.address = atomic_load_explicit(&t[i].address, memory_order_acquire)};
        if (m.address > GONE && dl_iterate_phdr(find_module, &m) == 0)
            atomic_store_explicit(&t[i].address, GONE, memory_order_release);
    }
}

/* In the way of libc's own. */
STAVE_API PLAIN int dlclose(void *__handle)
{
    static int (*real)(void *);
    if (!real)
        *(void **)(void *)&real = dlsym(RTLD_NEXT, "dlclose");
    int code = real ? real(__handle) : -1;
    bool was_inside = inside;
    inside = true;
    if (code == 0)
        forget_unloaded();
    inside = was_inside;
    return code;
}

STAVE_API PLAIN void __cyg_profile_func_enter(void *function, void *caller);
STAVE_API PLAIN void __cyg_profile_func_exit(void *function, void *caller);

void __cyg_profile_func_enter(void *function, void *caller)
{
    (void)caller;
    unsigned d = depth++;
    if (d >= DEPTH_MAX || inside)
        return;
    inside = true;
    frames[d] = (struct frame){0};
    struct function *f = find((uintptr_t)function);
    struct stave_site *site = f ? atomic_load_explicit(&f->site, memory_order_relaxed) : NULL;
    if (site && STAVE_I_ON(*site)) {
        frames[d].function = f;
        if (min_ns)
            frames[d].start_ns = stave_now_ns();
        else
            frames[d].session = stave_i_begin0(site);
    }
    inside = false;
}

void __cyg_profile_func_exit(void *function, void *caller)
{
    (void)function;
    (void)caller;
    unsigned d = --depth;
    if (d >= DEPTH_MAX || inside || !frames[d].function)
        return;
    inside = true;
    if (!min_ns) {
        if (frames[d].session)
            stave_i_scope_end(frames[d].session);
    } else {
        int64_t dur = stave_now_ns() - frames[d].start_ns;
        if (dur >= min_ns)
            stave_i_emit(
                &frames[d].function->place,
                (const uint64_t[]){STAVE_THREAD, (uint64_t)frames[d].start_ns, (uint64_t)dur});
    }
    frames[d].function = NULL;
    inside = false;
}
