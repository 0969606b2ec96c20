/* Domains, categories, texts and call places of the NVTX library.
 *
 * Looking something up takes no lock: tables are read with acquire loads, entries are published by
 * release stores and never freed. A new text does not wait either: who finds the lock taken records
 * this one event with its text instead. Memory is bounded: after NVTX_NAMES_MAX texts, or with a
 * text longer than NVTX_TEXT_MAX, names travel as text. */
#include "inject/nvtx/nvtx.h"

#include "core/base/globs.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { SLOTS = NVTX_NAMES_MAX * 4, CATEGORY_NAME_MAX = 200, DOMAINS_MAX = 4096 };

static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;
static struct nvtx_name *names[SLOTS];
static size_t n_names, n_domains;
static struct nvtx_domain *domains;
static struct nvtx_domain standard = {.is_default = true, .name = ""};
static const char *domain_globs;

__attribute__((constructor)) static void read_settings(void)
{
    domain_globs = secure_getenv("STAVE_NVTX_DOMAINS");
    standard.is_off = domain_globs && !sv_globs_match(domain_globs, "default", sv_globs_plain);
}

static void after_fork(void)
{
    pthread_mutex_init(&making, NULL);
}

__attribute__((constructor)) static void survive_forks(void)
{
    pthread_atfork(NULL, NULL, after_fork);
}

#define LOAD(at)       __atomic_load_n(at, __ATOMIC_ACQUIRE)
#define PUBLISH(at, v) __atomic_store_n(at, v, __ATOMIC_RELEASE)

/* ---- texts ---- */

const char *nvtx_narrow(const wchar_t *wide, char *out, size_t size)
{
    size_t n = 0;
    for (; wide && *wide; wide++) {
        uint32_t c = (uint32_t)*wide;
        if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
            c = 0xfffd;
        unsigned len = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
        if (n + len >= size)
            break;
        static const uint8_t lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
        for (unsigned i = len; i-- > 1; c >>= 6)
            out[n + i] = (char)(0x80 | (c & 0x3f));
        out[n] = (char)(lead[len] | c);
        n += len;
    }
    out[n] = '\0';
    return out;
}

/* ---- domains and categories ---- */

struct nvtx_domain *nvtx_domain_of(nvtxDomainHandle_t handle)
{
    return handle ? (struct nvtx_domain *)handle : &standard;
}

static struct nvtx_domain *domain_find(const char *name)
{
    struct nvtx_domain *d = LOAD(&domains);
    while (d && strcmp(d->name, name) != 0)
        d = d->next_domain;
    return d;
}

/* Two shared objects that make a domain of one name mean the same one. */
struct nvtx_domain *nvtx_domain_make(const char *name)
{
    char cut[NVTX_TEXT_MAX + 1];
    size_t len = strnlen(name ? name : "", NVTX_TEXT_MAX);
    memcpy(cut, name ? name : "", len);
    cut[len] = '\0';
    pthread_mutex_lock(&making);
    struct nvtx_domain *d = domain_find(cut);
    if (!d && n_domains < DOMAINS_MAX && (d = calloc(1, sizeof *d + len + 1))) {
        d->name = memcpy(d + 1, cut, len + 1);
        d->is_off = domain_globs && !sv_globs_match(domain_globs, cut, sv_globs_plain);
        d->next_domain = domains;
        n_domains++;
        PUBLISH(&domains, d);
    }
    pthread_mutex_unlock(&making);
    return d ? d : &standard;
}

static struct nvtx_category *category_find(const struct nvtx_domain *d, uint32_t id)
{
    struct nvtx_category *c = LOAD(&d->categories[id % 64]);
    while (c && c->id != id)
        c = LOAD(&c->next);
    return c;
}

const char *nvtx_category_find(const struct nvtx_domain *d, uint32_t id)
{
    const struct nvtx_category *c = category_find(d, id);
    return c ? c->name : NULL;
}

/* The first name stays: events may be on their way that point to it. */
void nvtx_category_name(struct nvtx_domain *d, uint32_t id, const char *name)
{
    if (!name)
        return;
    pthread_mutex_lock(&making);
    size_t len = strnlen(name, CATEGORY_NAME_MAX);
    struct nvtx_category *c = category_find(d, id) ? NULL : calloc(1, sizeof *c + len + 1);
    if (c) {
        c->id = id;
        memcpy(c->name, name, len);
        c->next = d->categories[id % 64];
        PUBLISH(&d->categories[id % 64], c);
    }
    pthread_mutex_unlock(&making);
}

/* ---- names ---- */

static uint64_t hash_of(const struct nvtx_domain *d, const char *text, size_t len)
{
    uint64_t h = (uintptr_t)d ^ len * 0x9e3779b97f4a7c15u;
    for (; len >= 8; text += 8, len -= 8) {
        uint64_t w;
        memcpy(&w, text, 8);
        h = (h ^ w) * 0xff51afd7ed558ccdu;
        h ^= h >> 32;
    }
    uint64_t rest = 0;
    memcpy(&rest, text, len);
    h = (h ^ rest) * 0xff51afd7ed558ccdu;
    return h ^ h >> 32;
}

static struct nvtx_name *name_make(struct nvtx_domain *d, const char *text, size_t len,
                                   uint64_t hash, size_t slot)
{
    if (n_names >= NVTX_NAMES_MAX || pthread_mutex_trylock(&making) != 0)
        return NULL;
    struct nvtx_name *n;
    while ((n = names[slot]) &&
           !(n->hash == hash && n->domain == d && n->len == len && memcmp(n->text, text, len) == 0))
        slot = (slot + 1) % SLOTS;
    if (!n && (n = calloc(1, sizeof *n + len + 1))) {
        n->hash = hash;
        n->domain = d;
        n->len = (uint32_t)len;
        memcpy(n->text, text, len);
        __atomic_store_n(&n_names, n_names + 1, __ATOMIC_RELAXED);
        PUBLISH(&names[slot], n);
    }
    pthread_mutex_unlock(&making);
    return n;
}

struct nvtx_name *nvtx_name_find(struct nvtx_domain *d, const char *text)
{
    size_t len = strlen(text);
    if (len > NVTX_TEXT_MAX)
        return NULL;
    uint64_t hash = hash_of(d, text, len);
    size_t slot = hash % SLOTS;
    for (struct nvtx_name *n; (n = LOAD(&names[slot])); slot = (slot + 1) % SLOTS)
        if (n->hash == hash && n->domain == d && n->len == len && memcmp(n->text, text, len) == 0)
            return n;
    return name_make(d, text, len, hash, slot);
}

/* ---- call places ---- */

static const struct {
    uint32_t shape;
    uint8_t type;
    const char *key;
} arguments[] = {
    {NVTX_DOMAIN, STAVE_I_TEXT, "domain"},
    {NVTX_CATEGORY_NAME, STAVE_I_TEXT, "category"},
    {NVTX_CATEGORY_NUMBER, STAVE_I_UINT, "category"},
    {NVTX_COLOR, STAVE_I_TEXT, "color"},
    {NVTX_INT, STAVE_I_INT, "payload"},
    {NVTX_UINT, STAVE_I_UINT, "payload"},
    {NVTX_DOUBLE, STAVE_I_DOUBLE, "payload"},
    {NVTX_EXTENDED, STAVE_I_ARGS, ""},
    {NVTX_STARTED_ON, STAVE_I_UINT, "started on thread"},
    {NVTX_EXTENDED_END, STAVE_I_ARGS, ""},
    {NVTX_CONTINUED, STAVE_I_BOOL, "continued"},
    {NVTX_UNFINISHED, STAVE_I_BOOL, "unfinished"},
};

static void describe(struct nvtx_site *s, enum stave_kind kind, const char *name)
{
    uint8_t n = 0;
    if (kind == STAVE_KIND_COMPLETE) {
        s->types[n++] = STAVE_I_TRACK;
        s->types[n++] = STAVE_I_START;
        s->types[n++] = STAVE_I_DUR;
    }
    if (s->shape & NVTX_DYNAMIC)
        s->types[n++] = STAVE_I_NAME;
    for (unsigned i = 0; i < n; i++)
        s->keys[i] = "";
    for (size_t i = 0; i < sizeof arguments / sizeof *arguments; i++) {
        if (s->shape & arguments[i].shape) {
            s->types[n] = arguments[i].type;
            s->keys[n++] = arguments[i].key;
        }
    }
    s->site = (struct stave_site){.state = STAVE_I_NEW,
                                  .kind = (uint8_t)kind,
                                  .n_args = n,
                                  .cat = NVTX_CATEGORY,
                                  .name = s->shape & NVTX_DYNAMIC ? NULL : name,
                                  .file = "",
                                  .func = "",
                                  .keys = s->keys,
                                  .types = s->types,
                                  .dso = &stave_i_dso};
}

static struct nvtx_site *site_find(struct nvtx_site *s, uint32_t shape)
{
    while (s && s->shape != shape)
        s = s->next;
    return s;
}

static struct stave_site *site_make(struct nvtx_name *n, enum stave_kind kind, uint32_t shape)
{
    pthread_mutex_lock(&making);
    struct nvtx_site *s = site_find(n->sites[kind], shape);
    if (!s && (s = calloc(1, sizeof *s))) {
        s->shape = shape;
        describe(s, kind, n->text);
        s->next = n->sites[kind];
        PUBLISH(&n->sites[kind], s);
    }
    pthread_mutex_unlock(&making);
    return s ? &s->site : NULL;
}

static struct nvtx_name *anonymous_of(struct nvtx_domain *d)
{
    struct nvtx_name *n = LOAD(&d->anonymous);
    if (n)
        return n;
    pthread_mutex_lock(&making);
    if (!d->anonymous && (n = calloc(1, sizeof *n + 1))) {
        n->domain = d;
        PUBLISH(&d->anonymous, n);
    }
    n = d->anonymous;
    pthread_mutex_unlock(&making);
    return n;
}

struct stave_site *nvtx_site_of(struct nvtx_event *e, enum stave_kind kind)
{
    struct nvtx_name *n = e->name;
    if (!n) {
        n = anonymous_of(e->domain);
        e->shape |= NVTX_DYNAMIC;
        if (!n)
            return NULL;
    }
    struct nvtx_site *s = site_find(LOAD(&n->sites[kind]), e->shape);
    return s ? &s->site : site_make(n, kind, e->shape);
}
