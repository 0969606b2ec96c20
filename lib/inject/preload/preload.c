/* See preload.h: start-up, threads, and the call sites of recorded calls. */
#include "inject/preload/preload.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

_Thread_local struct pre_thread pre_self;
const uint32_t *pre_gate;
uintptr_t pre_own_from, pre_own_to;

/* ---- the functions behind ours ---- */

/* A module of the program may have loaded it for itself. */
static void *find_elsewhere(const char *name)
{
    static const char *const files[] = {"libpthread.so.0", "librt.so.1", "liburing.so.2",
                                        "liburing.so.1"};
    void *found = NULL;
    for (size_t i = 0; !found && i < sizeof files / sizeof *files; i++) {
        void *library = dlopen(files[i], RTLD_LAZY | RTLD_NOLOAD);
        found = library ? dlsym(library, name) : NULL;
    }
    return found;
}

/* Stands for a function that this libc does not have. */
static long missing(void)
{
    errno = ENOSYS;
    return -1;
}

pre_fn *pre_find(struct pre_next *next)
{
    void *symbol = NULL;
    pre_fn *found;
    if (strncmp(next->name, "pthread_cond_", 13) == 0) /* an older one has another structure */
        symbol = dlvsym(RTLD_NEXT, next->name, "GLIBC_2.3.2");
    symbol = symbol ? symbol : dlsym(RTLD_NEXT, next->name);
    symbol = symbol ? symbol : find_elsewhere(next->name);
    memcpy(&found, &symbol, sizeof found);
    if (!symbol)
        return (pre_fn *)missing; /* asked for again: its library may be loaded later */
    __atomic_store_n(&next->found, found, __ATOMIC_RELAXED);
    return found;
}

extern struct pre_next __start_pre_nexts[] __attribute__((visibility("hidden")));
extern struct pre_next __stop_pre_nexts[] __attribute__((visibility("hidden")));

/* ---- start ---- */

/* A word that is 1, and 0 again in every kind of forked child: the kernel wipes its page. */
static uint32_t *alive, always_alive = 1;
static uint32_t generation;

static void make_alive(void)
{
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    bool is_wiped = page != MAP_FAILED && madvise(page, 4096, MADV_WIPEONFORK) == 0;
    alive = is_wiped ? page : &always_alive;
}

struct code {
    uintptr_t inside, from, to;
};
static struct code ours; /* of this library */

static int find_code(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct code *c = arg;
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        uintptr_t from = info->dlpi_addr + p->p_vaddr, to = from + p->p_memsz;
        if (p->p_type != PT_LOAD || !(p->p_flags & PF_X) || c->inside < from || c->inside >= to)
            continue;
        c->from = from;
        c->to = to;
        return 1;
    }
    return 0;
}

/* After libstave's own constructor, which this library needs. Where privileges come with the
 * program the linker has left us out; if it has not, nothing is recorded. */
__attribute__((constructor(101))) static void start(void)
{
    for (struct pre_next *n = __start_pre_nexts; n < __stop_pre_nexts; n++)
        pre_next(n);
    if (getauxval(AT_SECURE))
        return;
    pre_stacks_init();
    make_alive();
    *alive = 1;
    generation = 1;
    struct code libstave = {.inside = (uintptr_t)dlsym(RTLD_DEFAULT, "stave_i_emit")};
    ours.inside = (uintptr_t)start;
    dl_iterate_phdr(find_code, &libstave);
    dl_iterate_phdr(find_code, &ours);
    pre_own_from = libstave.from;
    pre_own_to = libstave.to;
    __atomic_store_n(&pre_gate, stave_i_gate(), __ATOMIC_RELEASE);
}

struct pre_thread *pre_thread(void)
{
    struct pre_thread *t = &pre_self;
    if (RARELY(!*alive)) { /* a forked child: there is one thread */
        generation++;
        *alive = 1;
    }
    if (RARELY(t->generation != generation)) {
        t->tid = (uint32_t)syscall(SYS_gettid);
        t->calls = t->waits = 0;
        t->generation = generation;
    }
    return t;
}

/* ---- what was missed ---- */

static _Atomic uint32_t n_missed;

bool pre_missed(const void *caller)
{
    uintptr_t at = (uintptr_t)caller;
    bool is_own = (at >= pre_own_from && at < pre_own_to) || (at >= ours.from && at < ours.to);
    if (pre_self.is_quiet == PRE_AT_WORK && caller && !is_own)
        atomic_fetch_add_explicit(&n_missed, 1, memory_order_relaxed);
    return false;
}

/* With the next call that is recorded. */
static void tell_missed(void)
{
    static const char *const lost_keys[] = {"", "", ""};
    static const uint8_t lost_types[] = {STAVE_I_TRACK, STAVE_I_NAME, STAVE_I_UINT};
    static struct stave_site lost = {.state = STAVE_I_NEW,
                                     .kind = STAVE_KIND_LOSS,
                                     .n_args = 3,
                                     .cat = "syscall",
                                     .file = "",
                                     .func = "",
                                     .keys = lost_keys,
                                     .types = lost_types,
                                     .dso = &stave_i_dso};
    uint32_t n = atomic_exchange_explicit(&n_missed, 0, memory_order_relaxed);
    if (n && stave_i_on(&lost))
        stave_i_emit(
            &lost, (const uint64_t[]){pre_calls_row(), (uintptr_t) "calls in signal handlers", n});
}

/* ---- call sites ---- */

/* One for each call and set of arguments that occurs, made when it first does. */
enum { SITES = 1024, PLACES = 4096, HEAD = 3 };

struct kept {
    struct stave_site site;
    uint32_t has;
    const char *keys[HEAD + PRE_N_ARGS];
    uint8_t types[HEAD + PRE_N_ARGS];
};
static struct kept sites[SITES];
static _Atomic uint32_t n_sites;
static struct kept *_Atomic places[PLACES];

static const char *const keys[PRE_N_ARGS] = {
#define KEY(member, key, type) key,
    PRE_ARGS(KEY)
#undef KEY
};
static const uint8_t types[PRE_N_ARGS] = {
#define TYPE(member, key, type) STAVE_I_##type,
    PRE_ARGS(TYPE)
#undef TYPE
};

static struct kept *make_site(const char *name, uint32_t has)
{
    uint32_t i = atomic_fetch_add_explicit(&n_sites, 1, memory_order_relaxed);
    if (i >= SITES) {
        atomic_store_explicit(&n_sites, SITES, memory_order_relaxed);
        return NULL;
    }
    struct kept *k = &sites[i];
    unsigned n = HEAD;
    static const uint8_t head[HEAD] = {STAVE_I_TRACK, STAVE_I_START, STAVE_I_DUR};
    for (unsigned h = 0; h < HEAD; h++) {
        k->keys[h] = "";
        k->types[h] = head[h];
    }
    for (unsigned a = 0; a < PRE_N_ARGS; a++) {
        if (!(has >> a & 1))
            continue;
        k->keys[n] = keys[a];
        k->types[n++] = types[a];
    }
    k->has = has;
    k->site = (struct stave_site){.state = STAVE_I_NEW,
                                  .kind = STAVE_KIND_COMPLETE,
                                  .n_args = (uint8_t)n,
                                  .cat = "syscall",
                                  .name = name,
                                  .file = "",
                                  .func = "",
                                  .keys = k->keys,
                                  .types = k->types,
                                  .dso = &stave_i_dso};
    return k;
}

static struct kept *site_of(const char *name, uint32_t has)
{
    uint64_t hash = ((uintptr_t)name ^ (uint64_t)has << 32) * 0x9e3779b97f4a7c15u;
    for (uint32_t i = (uint32_t)(hash >> 52);; i = (i + 1) % PLACES) {
        struct kept *k = atomic_load_explicit(&places[i], memory_order_acquire), *none = NULL;
        if (k && k->site.name == name && k->has == has)
            return k;
        if (k)
            continue;
        k = make_site(name, has);
        if (!k || atomic_compare_exchange_strong(&places[i], &none, k))
            return k;
        if (none->site.name == name && none->has == has)
            return none; /* another thread was quicker */
    }
}

stave_track_t pre_calls_row(void)
{
    struct pre_thread *t = pre_thread();
    if (RARELY(!t->calls))
        t->calls = stave_track(stave_thread_track(t->tid), "system calls");
    return t->calls;
}

void pre_record(const char *name, int64_t start_ns, int64_t end_ns, const struct pre_call *c)
{
    uint64_t words[HEAD + PRE_N_ARGS];
    struct kept *k = site_of(name, c->has);
    unsigned n = HEAD;
    if (RARELY(!k) || !stave_i_on(&k->site))
        return;
    words[0] = pre_calls_row();
    words[1] = (uint64_t)start_ns;
    words[2] = (uint64_t)(end_ns - start_ns);
    for (uint32_t left = c->has; left; left &= left - 1)
        words[n++] = c->v[__builtin_ctz(left)];
    stave_i_emit(&k->site, words);
    if (RARELY(atomic_load_explicit(&n_missed, memory_order_relaxed)))
        tell_missed();
}
