/* What NVTX reports, as events of the SDK: marks and ranges of a thread.
 *
 * Called by the callbacks. Push and pop are begin and end on the thread's own track. NVTX keeps a
 * stack per domain, a track has only one: a pop that passes over ranges of other domains ends those
 * too and begins them again with `continued`, so that every range keeps its time and the track
 * nests. */
#include "inject/nvtx/nvtx.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LIKELY(x)   __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

struct open_range {
    struct nvtx_domain *domain;
    struct nvtx_name *name; /* NULL: not remembered */
    uint32_t session;       /* 0: not recorded */
    int level;              /* among the ranges of its domain */
};

struct thread {
    uint32_t n, beyond; /* open ranges; those deeper than the table */
    uint32_t tid, names_seen;
    struct stave_args *args;
    struct open_range open[NVTX_DEPTH_MAX];
};

static _Thread_local struct thread *self __attribute__((tls_model("initial-exec")));
static pthread_key_t ended;
static pthread_once_t ended_once = PTHREAD_ONCE_INIT;
static _Atomic uint64_t losses[NVTX_LOSSES];

void nvtx_lost(enum nvtx_loss cause)
{
    atomic_fetch_add_explicit(&losses[cause], 1, memory_order_relaxed);
}

/* ---- threads and their names ---- */

enum { NAMED_MAX = 256 };
static struct {
    uint32_t tid;
    char name[64];
} named[NAMED_MAX];
static _Atomic uint32_t n_named;
static pthread_mutex_t naming = PTHREAD_MUTEX_INITIALIZER;

static void thread_ended(void *p)
{
    struct thread *t = p;
    self = NULL;
    free(t->args);
    free(t);
}

static void make_key(void)
{
    pthread_key_create(&ended, thread_ended);
}

static struct thread *attach(void)
{
    pthread_once(&ended_once, make_key);
    struct thread *t = calloc(1, sizeof *t);
    if (!t)
        return NULL;
    t->tid = (uint32_t)syscall(SYS_gettid);
    pthread_setspecific(ended, t);
    self = t;
    return t;
}

/* Only a thread itself can name its track: others leave the name here for its next event. */
static void take_name(struct thread *t, uint32_t n)
{
    t->names_seen = n;
    char name[sizeof named[0].name] = "";
    pthread_mutex_lock(&naming);
    for (uint32_t i = n < NAMED_MAX ? n : NAMED_MAX; i-- > 0 && !*name;)
        if (named[i].tid == t->tid)
            memcpy(name, named[i].name, sizeof name);
    pthread_mutex_unlock(&naming);
    if (*name)
        stave_set_thread_name(name);
}

static inline struct thread *me(void)
{
    struct thread *t = self;
    if (UNLIKELY(!t) && !(t = attach()))
        return NULL;
    uint32_t n = atomic_load_explicit(&n_named, memory_order_relaxed);
    if (UNLIKELY(n != t->names_seen) && stave_enabled(NULL))
        take_name(t, n);
    return t;
}

uint32_t nvtx_tid(void)
{
    struct thread *t = me();
    return t ? t->tid : 0;
}

/* The number of names counts on when the table is full: its cells are used again. */
void nvtx_thread_name(uint32_t tid, const char *name)
{
    if (!name)
        return;
    pthread_mutex_lock(&naming);
    uint32_t n = atomic_load(&n_named), i = n % NAMED_MAX;
    size_t len = strnlen(name, sizeof named[i].name - 1);
    named[i].tid = tid;
    memcpy(named[i].name, name, len);
    named[i].name[len] = '\0';
    atomic_store(&n_named, n + 1);
    pthread_mutex_unlock(&naming);
    (void)me();
}

struct stave_args *nvtx_args(void)
{
    struct thread *t = me();
    if (t && !t->args)
        t->args = malloc(sizeof *t->args);
    if (!t || !t->args)
        return NULL;
    stave_args_init(t->args);
    return t->args;
}

void nvtx_object_name(const char *kind, uint64_t handle, const char *name)
{
    if (name && stave_enabled(NVTX_CATEGORY))
        STAVE_INSTANT(NVTX_CATEGORY, "NVTX name", "object", kind, "handle", handle, "name", name);
}

/* ---- an event's parts ---- */

void nvtx_event_init(struct nvtx_event *e, struct nvtx_domain *d, const char *text)
{
    e->domain = d;
    e->text = text ? text : "";
    e->name = nvtx_name_find(d, e->text);
    e->shape = 0;
    e->n = 0;
    if (!d->is_default)
        nvtx_event_add(e, NVTX_DOMAIN, (uintptr_t)d->name);
}

static void add_color(struct nvtx_event *e, uint32_t argb)
{
    static const char digits[] = "0123456789abcdef";
    unsigned n = 0, bits = argb >> 24 == 0xff ? 24 : 32;
    e->color[n++] = '#';
    while (bits) {
        bits -= 4;
        e->color[n++] = digits[argb >> bits & 15];
    }
    e->color[n] = '\0';
    nvtx_event_add(e, NVTX_COLOR, (uintptr_t)e->color);
}

static void add_category(struct nvtx_event *e, uint32_t id)
{
    const char *name = nvtx_category_find(e->domain, id);
    if (name)
        nvtx_event_add(e, NVTX_CATEGORY_NAME, (uintptr_t)name);
    else
        nvtx_event_add(e, NVTX_CATEGORY_NUMBER, id);
}

static void add_number(struct nvtx_event *e, const nvtxEventAttributes_t *a)
{
    switch (a->payloadType) {
    case NVTX_PAYLOAD_TYPE_UNSIGNED_INT64: nvtx_event_add(e, NVTX_UINT, a->payload.ullValue); break;
    case NVTX_PAYLOAD_TYPE_UNSIGNED_INT32: nvtx_event_add(e, NVTX_UINT, a->payload.uiValue); break;
    case NVTX_PAYLOAD_TYPE_INT64: nvtx_event_add(e, NVTX_INT, (uint64_t)a->payload.llValue); break;
    case NVTX_PAYLOAD_TYPE_INT32:
        nvtx_event_add(e, NVTX_INT, (uint64_t)(int64_t)a->payload.iValue);
        break;
    case NVTX_PAYLOAD_TYPE_DOUBLE:
        nvtx_event_add(e, NVTX_DOUBLE, stave_i_from_double(a->payload.dValue));
        break;
    case NVTX_PAYLOAD_TYPE_FLOAT:
        nvtx_event_add(e, NVTX_DOUBLE, stave_i_from_double((double)a->payload.fValue));
        break;
    default: break;
    }
}

static void set_message(struct nvtx_event *e, const char *message)
{
    e->text = message;
    e->name = nvtx_name_find(e->domain, message);
}

void nvtx_event_payload(struct nvtx_event *e, struct nvtx_domain *d, const nvtxPayloadData_t *data,
                        size_t n)
{
    struct stave_args *args = nvtx_args();
    if (!args)
        return;
    const char *message =
        nvtx_payload_read(d, "payload", data, n, args, e->narrow, sizeof e->narrow);
    if (message)
        set_message(e, message);
    else if (!*e->text && (message = nvtx_payload_name(d, data, n)))
        set_message(e, message);
    nvtx_event_add(e, NVTX_EXTENDED, (uintptr_t)args);
}

static void read_message(struct nvtx_event *e, struct nvtx_domain *d,
                         const nvtxEventAttributes_t *a)
{
    const nvtxMessageValue_t *m = &a->message;
    if (a->messageType == NVTX_MESSAGE_TYPE_REGISTERED && m->registered) {
        e->domain = d;
        e->name = (struct nvtx_name *)m->registered;
        e->text = e->name->text;
        e->shape = e->n = 0;
        if (!d->is_default)
            nvtx_event_add(e, NVTX_DOMAIN, (uintptr_t)d->name);
        return;
    }
    const char *text = "";
    if (a->messageType == NVTX_MESSAGE_TYPE_ASCII && m->ascii)
        text = m->ascii;
    else if (a->messageType == NVTX_MESSAGE_TYPE_UNICODE)
        text = nvtx_narrow(m->unicode, e->narrow, sizeof e->narrow);
    nvtx_event_init(e, d, text);
}

void nvtx_event_read(struct nvtx_event *e, struct nvtx_domain *d, const nvtxEventAttributes_t *a)
{
    nvtxEventAttributes_t whole = {0};
    if (!a || a->size < sizeof whole) { /* an older or shorter struct */
        if (a)
            memcpy(&whole, a, a->size);
        a = &whole;
    }
    read_message(e, d, a);
    if (a->category)
        add_category(e, a->category);
    if (a->colorType == NVTX_COLOR_ARGB)
        add_color(e, a->color);
    if (UNLIKELY(a->payloadType == NVTX_PAYLOAD_TYPE_EXT)) {
        /* The pointer is passed as a number; one payload unless the attributes say otherwise. */
        const nvtxPayloadData_t *data = NULL;
        memcpy(&data, &a->payload.ullValue, sizeof data);
        nvtx_event_payload(e, d, data, a->reserved0 > 0 ? (size_t)a->reserved0 : 1);
    } else if (a->payloadType) {
        add_number(e, a);
    }
}

/* ---- records ---- */

uint32_t nvtx_record(struct nvtx_event *e, enum stave_kind kind, const uint64_t *first,
                     unsigned n_first)
{
    struct stave_site *site = nvtx_site_of(e, kind);
    if (UNLIKELY(!site)) {
        nvtx_lost(NVTX_LOST_MEMORY);
        return 0;
    }
    if (!stave_i_on(site))
        return 0;
    if (e->n + n_first == 0 && e->name)
        return kind == STAVE_KIND_BEGIN ? stave_i_begin0(site) : stave_i_instant0(site);
    uint64_t words[NVTX_VALUES_MAX + 4];
    unsigned n = 0;
    for (unsigned i = 0; i < n_first; i++)
        words[n++] = first[i];
    if (!e->name)
        words[n++] = (uintptr_t)e->text;
    memcpy(words + n, e->values, e->n * sizeof *words);
    return stave_i_emit(site, words);
}

void nvtx_mark(struct nvtx_event *e)
{
    if (!e->domain->is_off && me())
        nvtx_record(e, STAVE_KIND_INSTANT, NULL, 0);
}

/* ---- ranges of a thread ---- */

static int level_of(const struct thread *t, const struct nvtx_domain *d)
{
    for (uint32_t i = t->n; i-- > 0;)
        if (t->open[i].domain == d)
            return t->open[i].level + 1;
    return 0;
}

static struct open_range *open_range(struct thread *t, struct nvtx_domain *d)
{
    if (UNLIKELY(t->n == NVTX_DEPTH_MAX)) {
        t->beyond++;
        nvtx_lost(NVTX_LOST_DEPTH);
        return NULL;
    }
    struct open_range *r = &t->open[t->n];
    r->level = level_of(t, d);
    t->n++;
    r->domain = d;
    r->session = 0;
    r->name = NULL;
    return r;
}

int nvtx_push(struct nvtx_event *e)
{
    struct thread *t = me();
    struct open_range *r = t ? open_range(t, e->domain) : NULL;
    if (!r)
        return NVTX_NO_PUSH_POP_TRACKING;
    r->name = e->name;
    if (!e->domain->is_off && stave_enabled(NULL))
        r->session = nvtx_record(e, STAVE_KIND_BEGIN, NULL, 0);
    return r->level;
}

/* The commonest call of all: a text in the default domain. */
int nvtx_push_text(struct nvtx_domain *d, const char *text)
{
    if (LIKELY(d->is_default && !d->is_off && text && stave_enabled(NULL))) {
        struct thread *t = me();
        struct nvtx_name *n = nvtx_name_find(d, text);
        struct nvtx_site *s = n ? __atomic_load_n(&n->sites[STAVE_KIND_BEGIN], __ATOMIC_ACQUIRE)
                                : NULL;
        if (LIKELY(t && s && s->shape == 0)) {
            struct open_range *r = open_range(t, d);
            if (UNLIKELY(!r))
                return NVTX_NO_PUSH_POP_TRACKING;
            r->name = n;
            if (LIKELY(stave_i_on(&s->site)))
                r->session = stave_i_begin0(&s->site);
            return r->level;
        }
    }
    struct nvtx_event e;
    nvtx_event_init(&e, d, text);
    return nvtx_push(&e);
}

static void end_range(const struct open_range *r, const struct stave_args *more)
{
    static const uint8_t types[] = {STAVE_I_ARGS};
    static const char *const keys[] = {"", NULL};
    static struct stave_site site = {.state = STAVE_I_NEW,
                                     .kind = STAVE_KIND_END,
                                     .n_args = 1,
                                     .cat = NVTX_CATEGORY,
                                     .file = "",
                                     .func = "",
                                     .keys = keys,
                                     .types = types,
                                     .dso = &stave_i_dso};
    if (r->session == 0)
        return;
    uint64_t value = (uintptr_t)more;
    if (UNLIKELY(more != NULL))
        stave_i_scope_end_with(r->session, &site, &value);
    else
        stave_i_scope_end(r->session);
}

static void begin_again(struct open_range *r)
{
    if (r->session == 0)
        return;
    struct nvtx_event e;
    nvtx_event_init(&e, r->domain, r->name ? r->name->text : "(continued)");
    nvtx_event_add(&e, NVTX_CONTINUED, 1);
    r->session = nvtx_record(&e, STAVE_KIND_BEGIN, NULL, 0);
}

/* Ends the range number i of the open ones, and those above it for a moment. */
static void end_below(struct thread *t, uint32_t i, const struct stave_args *more)
{
    for (uint32_t above = t->n; above-- > i + 1;)
        end_range(&t->open[above], NULL);
    end_range(&t->open[i], more);
    t->n--;
    for (uint32_t at = i; at < t->n; at++) {
        t->open[at] = t->open[at + 1];
        begin_again(&t->open[at]);
    }
}

int nvtx_pop(struct nvtx_domain *d, const struct stave_args *more)
{
    struct thread *t = self;
    if (UNLIKELY(!t))
        return NVTX_NO_PUSH_POP_TRACKING;
    if (UNLIKELY(t->beyond)) {
        t->beyond--;
        return NVTX_NO_PUSH_POP_TRACKING;
    }
    uint32_t i = t->n;
    while (i > 0 && t->open[i - 1].domain != d)
        i--;
    if (UNLIKELY(i == 0))
        return NVTX_NO_PUSH_POP_TRACKING;
    int level = t->open[--i].level;
    if (LIKELY(i + 1 == t->n)) {
        t->n--;
        end_range(&t->open[i], more);
    } else {
        end_below(t, i, more);
    }
    return level;
}

/* ---- the end of the program ---- */

static void report_losses(void)
{
    uint64_t n[NVTX_LOSSES], sum = 0;
    for (int i = 0; i < NVTX_LOSSES; i++)
        sum += n[i] = atomic_exchange(&losses[i], 0);
    if (sum)
        STAVE_INSTANT(NVTX_CATEGORY, "NVTX events not recorded", "too deep", n[NVTX_LOST_DEPTH],
                      "too many open", n[NVTX_LOST_OPEN], "no memory", n[NVTX_LOST_MEMORY],
                      "deferred", n[NVTX_LOST_DEFERRED]);
}

static void finish(void)
{
    nvtx_ranges_finish();
    report_losses();
}

static void after_fork(void)
{
    pthread_mutex_init(&naming, NULL);
    nvtx_ranges_forked();
    if (self)
        self->tid = (uint32_t)syscall(SYS_gettid);
}

/* Registered after the SDK's own, so that it runs before: what is recorded here still reaches the
 * file. */
static void begin_once(void)
{
    pthread_atfork(NULL, NULL, after_fork);
    atexit(finish);
}

void nvtx_events_init(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, begin_once);
}
