/* Slices that may overlap and may end on another thread: overlapped tasks, regions, frames, events.
 * Any thread.
 *
 * Each is one event, recorded at its end, on the first row of its domain that was free when it
 * began. What never ends is recorded when the program does, and says so. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "itt.h"

enum { BUCKETS = 1024, OPEN_MAX = 1 << 16, ROWS_MAX = 64 };

/* Rows of one domain and kind. */
struct rows {
    struct rows *next;
    const char *domain; /* for ever */
    enum itt_span_kind kind;
    stave_track_t group;
    uint64_t is_busy;
};

struct span {
    struct span *next;
    struct itt_key key;
    const char *domain, *name; /* of handles: for ever */
    struct itt_id parent;
    int64_t begin_ns;
    struct rows *rows;
    unsigned row;
    struct stave_args *more;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct span *open_spans[BUCKETS];
static struct rows *all_rows;
static size_t n_open;

static uint64_t mix(uint64_t h, uint64_t v)
{
    h = (h ^ v) * 0x9E3779B97F4A7C15u;
    return h ^ (h >> 31);
}

uint64_t itt_flow(struct itt_id id)
{
    static atomic_uint_fast64_t of_process;
    uint64_t salt = atomic_load(&of_process);
    if (!salt) {
        uint64_t fresh = stave_flow_new() | 1;
        salt = atomic_compare_exchange_strong(&of_process, &salt, fresh) ? fresh : salt;
    }
    return mix(mix(mix(salt, id.d1), id.d2), id.d3) | 1;
}

static size_t bucket_of(struct itt_id id)
{
    return mix(mix(mix(1, id.d1), id.d2), id.d3) % BUCKETS;
}

static bool is_same(const struct itt_key *a, const struct itt_key *b)
{
    return a->kind == b->kind && a->domain == b->domain && a->id.d1 == b->id.d1 &&
           a->id.d2 == b->id.d2 && a->id.d3 == b->id.d3;
}

void itt_add_id(struct stave_args *a, const char *key, struct itt_id id)
{
    static const char digits[] = "0123456789abcdef";
    unsigned long long parts[3] = {id.d1, id.d2, id.d3};
    char text[64];
    size_t len = 0;
    for (size_t i = 0; i < 3; i++) {
        if (i && !parts[i])
            continue;
        if (i)
            text[len++] = '.';
        bool has = false;
        for (int shift = 60; shift >= 0; shift -= 4) {
            unsigned d = (unsigned)(parts[i] >> shift) & 15;
            has |= d || !shift;
            if (has)
                text[len++] = digits[d];
        }
    }
    stave_args_text_n(a, key, text, len);
}

/* ---- rows, with the lock held ---- */

static struct rows *rows_of(enum itt_span_kind kind, const char *domain)
{
    static const char *const words[] = {"ITT tasks", "ITT regions", "ITT frames", "ITT events"};
    struct rows *r = all_rows;
    while (r && (r->kind != kind || strcmp(r->domain, domain) != 0))
        r = r->next;
    if (!r && (r = calloc(1, sizeof *r))) {
        r->kind = kind;
        r->domain = domain;
        r->group = stave_track(STAVE_PROCESS, words[kind]);
        r->next = all_rows;
        all_rows = r;
    }
    return r;
}

static unsigned row_take(struct rows *r)
{
    unsigned row = 0;
    while (row < ROWS_MAX - 1 && (r->is_busy >> row & 1))
        row++;
    r->is_busy |= (uint64_t)1 << row;
    return row;
}

static stave_track_t track_of(const struct rows *r, unsigned row)
{
    return stave_async(r->group, *r->domain ? r->domain : "all", row);
}

/* ---- begin and end ---- */

static void add_span(const struct itt_key *key, const char *name, const char *domain,
                     struct itt_id parent, int64_t begin_ns, int64_t end_ns, stave_track_t track,
                     struct stave_args *more)
{
    struct stave_args own;
    if (!more) {
        stave_args_init(&own);
        more = &own;
    }
    if (*domain)
        stave_args_text(more, "domain", domain);
    if (key->kind != ITT_SPAN_EVENT && !itt_is_null(key->id)) {
        itt_add_id(more, "id", key->id);
        stave_args_flow(more, STAVE_FLOW_OUT, itt_flow(key->id));
    }
    if (!itt_is_null(parent))
        itt_add_id(more, "parent", parent);
    stave_emit(&(struct stave_event){.size = sizeof(struct stave_event),
                                     .kind = STAVE_KIND_COMPLETE,
                                     .track = track,
                                     .category = ITT_CATEGORY,
                                     .name = name,
                                     .args = more,
                                     .start_ns = begin_ns,
                                     .dur_ns = end_ns > begin_ns ? end_ns - begin_ns : 0});
}

static struct span *find(const struct itt_key *key, struct span ***at)
{
    struct span **s = &open_spans[bucket_of(key->id)];
    while (*s && !is_same(&(*s)->key, key))
        s = &(*s)->next;
    *at = s;
    return *s;
}

void itt_span_begin(const struct itt_key *key, const char *domain, const char *name,
                    struct itt_id parent)
{
    struct span **at;
    struct span *s = calloc(1, sizeof *s);
    if (!s)
        return;
    *s = (struct span){.key = *key, .domain = domain, .name = name, .parent = parent};
    pthread_mutex_lock(&lock);
    bool is_kept = n_open < OPEN_MAX && !find(key, &at) &&
                   (s->rows = rows_of(key->kind, domain)) != NULL;
    if (is_kept) {
        s->row = row_take(s->rows);
        s->begin_ns = stave_now_ns();
        s->next = open_spans[bucket_of(key->id)];
        open_spans[bucket_of(key->id)] = s;
        n_open++;
    }
    pthread_mutex_unlock(&lock);
    if (is_kept)
        return;
    free(s);
    STAVE_INSTANT_DYN(ITT_CATEGORY, name, "error", "begun twice, or too many are open");
}

static void span_free(struct span *s)
{
    free(s->more);
    free(s);
}

void itt_span_end(const struct itt_key *key)
{
    struct span **at;
    pthread_mutex_lock(&lock);
    struct span *s = find(key, &at);
    if (s) {
        *at = s->next;
        n_open--;
        s->rows->is_busy &= ~((uint64_t)1 << s->row);
        /* Under the lock: the next one of this row must not be recorded before. */
        add_span(key, s->name, s->domain, s->parent, s->begin_ns, stave_now_ns(),
                 track_of(s->rows, s->row), s->more);
    }
    pthread_mutex_unlock(&lock);
    if (s)
        span_free(s);
}

void itt_span_whole(const struct itt_key *key, const char *domain, const char *name,
                    int64_t begin_ns, int64_t end_ns)
{
    pthread_mutex_lock(&lock);
    struct rows *r = rows_of(key->kind, domain);
    if (r)
        add_span(key, name, domain, (struct itt_id){0}, begin_ns, end_ns, track_of(r, 0), NULL);
    pthread_mutex_unlock(&lock);
}

bool itt_span_args(struct itt_id id, void (*f)(struct stave_args *, const void *), const void *data)
{
    pthread_mutex_lock(&lock);
    struct span *s = open_spans[bucket_of(id)];
    while (s && (s->key.kind > ITT_SPAN_FRAME || s->key.id.d1 != id.d1 || s->key.id.d2 != id.d2 ||
                 s->key.id.d3 != id.d3))
        s = s->next;
    if (s && !s->more && (s->more = malloc(sizeof *s->more)))
        stave_args_init(s->more);
    bool is_done = s && s->more;
    if (is_done)
        f(s->more, data);
    pthread_mutex_unlock(&lock);
    return is_done;
}

void itt_spans_at_exit(void)
{
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < BUCKETS; i++) {
        struct span *next;
        for (struct span *s = open_spans[i]; s; s = next) {
            struct stave_args own, *more = s->more ? s->more : &own;
            next = s->next;
            if (!s->more)
                stave_args_init(&own);
            stave_args_bool(more, "unfinished", true);
            add_span(&s->key, s->name, s->domain, s->parent, s->begin_ns, stave_now_ns(),
                     track_of(s->rows, s->row), more);
            span_free(s);
        }
        open_spans[i] = NULL;
    }
    n_open = 0;
    pthread_mutex_unlock(&lock);
}
