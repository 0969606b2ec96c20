/* Domains, string handles, marks' and events' names, counters: what a program makes once and uses
 * often. Any thread.
 *
 * The same name gives the same handle, as the interface promises; nothing is ever freed, since the
 * program may keep the pointer. */
#include <stdlib.h>
#include <string.h>

#include "itt.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

enum { BUCKETS = 4096, TEXT_MAX = 8192, NUMBERED_MAX = 4096 };

static struct itt_domain *domains;
static struct itt_string *strings[BUCKETS];
static struct itt_string *numbered[NUMBERED_MAX];
static int n_numbered;

static char *copy(const char *text)
{
    size_t len = strnlen(text, TEXT_MAX);
    char *s = malloc(len + 1);
    if (s) {
        memcpy(s, text, len);
        s[len] = 0;
    }
    return s;
}

static uint64_t hash(const char *text)
{
    uint64_t h = 14695981039346656037u;
    for (size_t i = 0; i < TEXT_MAX && text[i]; i++)
        h = (h ^ (unsigned char)text[i]) * 1099511628211u;
    return h ^ (h >> 29);
}

static bool is_same(const char *kept, const char *text)
{
    return strncmp(kept, text, TEXT_MAX) == 0;
}

const char *itt_name(const struct itt_string *s)
{
    return s && s->text ? s->text : "?";
}

const char *itt_domain_name(const struct itt_domain *d)
{
    return d && d->name ? d->name : "";
}

struct itt_domain *itt_domain_create(const char *name)
{
    if (!name)
        return NULL;
    pthread_mutex_lock(&lock);
    struct itt_domain *d = domains;
    while (d && !is_same(d->name, name))
        d = d->next;
    if (!d && (d = calloc(1, sizeof *d))) {
        d->name = copy(name);
        d->flags = 1;
        if (d->name) {
            d->next = domains;
            domains = d;
        } else {
            free(d);
            d = NULL;
        }
    }
    pthread_mutex_unlock(&lock);
    return d;
}

struct itt_string *itt_string_handle_create(const char *text)
{
    if (!text)
        return NULL;
    struct itt_string **bucket = &strings[hash(text) % BUCKETS];
    pthread_mutex_lock(&lock);
    struct itt_string *s = *bucket;
    while (s && !is_same(s->text, text))
        s = s->next;
    if (!s && (s = calloc(1, sizeof *s))) {
        s->text = copy(text);
        if (s->text) {
            s->next = *bucket;
            *bucket = s;
        } else {
            free(s);
            s = NULL;
        }
    }
    pthread_mutex_unlock(&lock);
    return s;
}

/* Marks and events are numbers from 1; the same name, the same number. */
static int number_of(struct itt_string *s)
{
    int number = 0;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < n_numbered && !number; i++)
        if (numbered[i] == s)
            number = i + 1;
    if (!number && s && n_numbered < NUMBERED_MAX) {
        numbered[n_numbered++] = s;
        number = n_numbered;
    }
    pthread_mutex_unlock(&lock);
    return number;
}

struct itt_string *itt_numbered(int number)
{
    struct itt_string *s = NULL;
    pthread_mutex_lock(&lock);
    if (number > 0 && number <= n_numbered)
        s = numbered[number - 1];
    pthread_mutex_unlock(&lock);
    return s;
}

int itt_mark_create(const char *name)
{
    return name ? number_of(itt_string_handle_create(name)) : 0;
}

int itt_event_create(const char *name, int len)
{
    char text[256];
    if (!name || len < 0)
        return 0;
    size_t n = strnlen(name, (size_t)len < sizeof text - 1 ? (size_t)len : sizeof text - 1);
    memcpy(text, name, n);
    text[n] = 0;
    return number_of(itt_string_handle_create(text));
}

void *itt_frame_create(const char *domain)
{
    return itt_domain_create(domain);
}

/* ---- counters ---- */

struct value {
    struct value *next;
    const void *key, *domain; /* a counter; or a name and its domain */
    stave_track_t track;
    int64_t sum;
};

static struct value *values[BUCKETS];
static pthread_mutex_t values_lock = PTHREAD_MUTEX_INITIALIZER;

struct itt_counter *itt_counter_create_typed(const char *name, const char *domain, int type)
{
    if (!name)
        return NULL;
    struct itt_string *n = itt_string_handle_create(name);
    struct itt_string *d = domain ? itt_string_handle_create(domain) : NULL;
    static struct itt_counter *counters;
    pthread_mutex_lock(&lock);
    struct itt_counter *c = counters;
    const char *own_name = itt_name(n), *own_domain = d ? d->text : NULL;
    while (c && (c->name != own_name || c->domain != own_domain || c->type != type))
        c = c->next;
    if (!c && (c = calloc(1, sizeof *c))) {
        c->name = own_name;
        c->domain = own_domain;
        c->type = type;
        c->next = counters;
        counters = c;
    }
    pthread_mutex_unlock(&lock);
    return c;
}

struct itt_counter *itt_counter_create(const char *name, const char *domain)
{
    return itt_counter_create_typed(name, domain, ITT_U64);
}

struct itt_counter *itt_counter_create_v3(const struct itt_domain *d, const char *name, int type)
{
    return itt_counter_create_typed(name, itt_domain_name(d), type);
}

void itt_counter_destroy(struct itt_counter *c)
{
    (void)c; /* others may have the same handle */
}

static stave_track_t counter_track(const char *domain, const char *name)
{
    char text[600];
    size_t len = 0;
    if (domain && *domain) {
        len = strnlen(domain, 256);
        memcpy(text, domain, len);
        memcpy(text + len, ": ", 2);
        len += 2;
    }
    size_t n = strnlen(name, 256);
    memcpy(text + len, name, n);
    text[len + n] = 0;
    return stave_counter(STAVE_PROCESS, text, NULL);
}

/* Found or made, with the lock held. */
static struct value *value_of(const void *key, const void *domain, const char *domain_name,
                              const char *name)
{
    uint64_t h = ((uint64_t)(uintptr_t)key * 31 + (uint64_t)(uintptr_t)domain) *
                 0x9E3779B97F4A7C15u;
    struct value **bucket = &values[(h >> 40) % BUCKETS], *v = *bucket;
    while (v && (v->key != key || v->domain != domain))
        v = v->next;
    if (!v && (v = calloc(1, sizeof *v))) {
        v->key = key;
        v->domain = domain;
        v->track = counter_track(domain_name, name);
        v->next = *bucket;
        *bucket = v;
    }
    return v;
}

static void add_to(const void *key, const struct itt_domain *d, const char *domain_name,
                   const char *name, uint64_t delta, bool is_down)
{
    if (!itt_is_on(d))
        return;
    pthread_mutex_lock(&values_lock);
    struct value *v = value_of(key, d, domain_name, name);
    if (v) {
        v->sum = (int64_t)((uint64_t)v->sum + (is_down ? -delta : delta));
        STAVE_COUNTER_ON(v->track, ITT_CATEGORY, v->sum); /* in the order of the sums */
    }
    pthread_mutex_unlock(&values_lock);
}

void itt_counter_inc_delta(struct itt_counter *c, unsigned long long delta)
{
    if (c && c->name)
        add_to(c, NULL, c->domain, c->name, delta, false);
}

void itt_counter_dec_delta(struct itt_counter *c, unsigned long long delta)
{
    if (c && c->name)
        add_to(c, NULL, c->domain, c->name, delta, true);
}

void itt_counter_inc(struct itt_counter *c)
{
    itt_counter_inc_delta(c, 1);
}

void itt_counter_dec(struct itt_counter *c)
{
    itt_counter_dec_delta(c, 1);
}

void itt_counter_inc_delta_v3(const struct itt_domain *d, struct itt_string *name,
                              unsigned long long delta)
{
    if (d && name)
        add_to(name, d, itt_domain_name(d), itt_name(name), delta, false);
}

void itt_counter_dec_delta_v3(const struct itt_domain *d, struct itt_string *name,
                              unsigned long long delta)
{
    if (d && name)
        add_to(name, d, itt_domain_name(d), itt_name(name), delta, true);
}

void itt_counter_inc_v3(const struct itt_domain *d, struct itt_string *name)
{
    itt_counter_inc_delta_v3(d, name, 1);
}

void itt_counter_dec_v3(const struct itt_domain *d, struct itt_string *name)
{
    itt_counter_dec_delta_v3(d, name, 1);
}

/* false: the type is not known. */
static bool read_integer(int type, const void *p, int64_t *v)
{
    int32_t i32;
    uint32_t u32;
    int16_t i16;
    uint16_t u16;
    switch (type) {
    case ITT_U64:
    case ITT_S64: memcpy(v, p, 8); return true;
    case ITT_U32:
        memcpy(&u32, p, 4);
        *v = u32;
        return true;
    case ITT_S32:
        memcpy(&i32, p, 4);
        *v = i32;
        return true;
    case ITT_U16:
        memcpy(&u16, p, 2);
        *v = u16;
        return true;
    case ITT_S16:
        memcpy(&i16, p, 2);
        *v = i16;
        return true;
    default: return false;
    }
}

void itt_counter_set_value(struct itt_counter *c, void *value)
{
    if (!c || !c->name || !value || !itt_is_on(NULL))
        return;
    pthread_mutex_lock(&values_lock);
    struct value *v = value_of(c, NULL, c->domain, c->name);
    float f;
    double real;
    if (v && read_integer(c->type, value, &v->sum)) {
        STAVE_COUNTER_ON(v->track, ITT_CATEGORY, v->sum);
    } else if (v && c->type == ITT_FLOAT) {
        memcpy(&f, value, sizeof f);
        STAVE_COUNTER_ON(v->track, ITT_CATEGORY, (double)f);
    } else if (v && c->type == ITT_DOUBLE) {
        memcpy(&real, value, sizeof real);
        STAVE_COUNTER_ON(v->track, ITT_CATEGORY, real);
    }
    pthread_mutex_unlock(&values_lock);
}

void itt_counter_set_value_v3(struct itt_counter *c, void *value)
{
    itt_counter_set_value(c, value);
}
