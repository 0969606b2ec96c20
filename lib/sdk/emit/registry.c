/* Call places, categories and tracks: what has a number for the life of the process and of its
 * forked children.
 *
 * Everything is a record of one append-only log in memory (session_layout.h: names), which the
 * session's file follows; a record is in the file before its number can be in a ring. Sites hang in
 * a list per shared object, so that dlclose takes them out; their numbers stay.
 *
 * Called from the slow way, thus possibly in a signal handler: no malloc; the log and the tables
 * are reserved address space that is paid for as it is used. All of it under the process's lock. */
#include "core/base/globs.h"
#include "core/base/map.h"
#include "core/files/write_all.h"
#include "sdk/emit/track_rows.h"
#include "sdk/session/sdk.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#define LOG_BYTES_MAX ((size_t)64 << 20)
#define LOG_BYTES_MIN ((size_t)1 << 20)
#define TABLE_SLOTS   ((size_t)1 << 20)
#define RETRY_NS      1000000000ll
enum { CELLS_MAX = 1024, GLOBS_BYTES = 1024, TEXT_MAX = 1000, TRACK_FIRST = 3, LOCK_MS = 20 };

struct cell {
    int64_t sum;
    const char *name; /* in the log */
};

static struct {
    uint8_t *log;
    size_t log_len, log_bytes;
    uint32_t *by_track; /* hash table: offset in the log / 8, plus 1 */
    size_t n_tracks;
    uint32_t next_site, next_track;
    struct stave_i_dso *dsos;
    bool is_on, is_full;
    char globs[GLOBS_BYTES];
} reg = {.next_site = 1, .next_track = TRACK_FIRST, .globs = "*"};

static struct cell cells[CELLS_MAX]; /* apart: nothing of it is in the file */
static size_t n_cells;

/* ---- categories ---- */

/* A site without a category brings that of each event (emit_any.c), which has asked for it. */
bool sv_category_on(const char *category)
{
    return reg.is_on && (!category || sv_globs_match(reg.globs, category, sv_globs_plain));
}

bool stave_enabled(const char *category)
{
    return atomic_load_explicit(&sv_epoch, memory_order_relaxed) != 0 && sv_category_on(category);
}

const uint32_t *stave_i_gate(void)
{
    _Static_assert(sizeof sv_epoch == sizeof(uint32_t) && ATOMIC_INT_LOCK_FREE == 2,
                   "read as it is");
    return (const uint32_t *)(uintptr_t)&sv_epoch;
}

static void switch_all(void)
{
    for (struct stave_i_dso *dso = reg.dsos; dso; dso = dso->next)
        for (struct stave_site *s = dso->sites; s; s = s->next)
            __atomic_store_n(&s->state, (uint8_t)sv_category_on(s->cat), __ATOMIC_RELAXED);
}

void sv_sites_switch(bool on, const char *globs)
{
    if (!sv_process_init())
        return;
    bool locked = sv_lock(); /* false: this thread holds it already, and failed below */
    reg.is_on = on;
    if (globs) {
        size_t len = strnlen(globs, GLOBS_BYTES - 1);
        memcpy(reg.globs, globs, len);
        reg.globs[len] = '\0';
    }
    if (on && locked)
        sv_names_flush();
    switch_all();
    if (locked)
        sv_unlock();
}

bool sv_sites_off(unsigned ms)
{
    if (!sv_lock_within(ms))
        return false;
    reg.is_on = false;
    switch_all();
    sv_unlock();
    return true;
}

void stave_set_categories(const char *globs)
{
    sv_sites_switch(reg.is_on, globs && *globs ? globs : "*");
}

/* ---- the log ---- */

static bool open_log(void)
{
    if (reg.log)
        return true;
    size_t bytes = LOG_BYTES_MAX;
    void *log = MAP_FAILED; /* as much as a limit of the address space allows */
    while (bytes >= LOG_BYTES_MIN &&
           (log = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) == MAP_FAILED)
        bytes /= 4;
    void *table = mmap(NULL, TABLE_SLOTS * sizeof *reg.by_track, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (log == MAP_FAILED || table == MAP_FAILED) {
        if (log != MAP_FAILED)
            munmap(log, bytes);
        if (table != MAP_FAILED)
            munmap(table, TABLE_SLOTS * sizeof *reg.by_track);
        return false;
    }
    reg.by_track = table;
    reg.log_bytes = bytes;
    reg.log = log;
    return true;
}

bool sv_registry_init(void)
{
    if (!sv_lock())
        return false;
    bool ok = open_log();
    sv_unlock();
    return ok;
}

void sv_registry_drop(void)
{
    if (!reg.log)
        return;
    munmap(reg.log, reg.log_bytes);
    munmap(reg.by_track, TABLE_SLOTS * sizeof *reg.by_track);
    reg.log = NULL;
    reg.by_track = NULL;
    reg.log_len = reg.n_tracks = n_cells = 0;
}

struct record {
    size_t start, at;
    bool failed;
};

static void put(struct record *r, const void *bytes, size_t n)
{
    if (r->failed || reg.log_bytes - r->at < n + 8) {
        r->failed = true;
        return;
    }
    memcpy(reg.log + r->at, bytes, n);
    r->at += n;
}

/* The text in `size` bytes with its end; one that is cut says so. Returns its length. */
static size_t cut_text(char *to, size_t size, const char *text)
{
    static const char mark[] = "...";
    size_t len = strnlen(text, size);
    if (len < size) {
        memcpy(to, text, len);
        to[len] = '\0';
        return len;
    }
    len = size - sizeof mark;
    while (len > 0 && ((unsigned char)text[len] & 0xc0) == 0x80) /* whole characters */
        len--;
    memcpy(to, text, len);
    memcpy(to + len, mark, sizeof mark);
    return len + sizeof mark - 1;
}

static void put_text(struct record *r, const char *s)
{
    char cut[TEXT_MAX + 1];
    put(r, cut, cut_text(cut, sizeof cut, s ? s : "") + 1);
}

static struct record begin_record(void)
{
    struct record r = {reg.log_len, reg.log_len + sizeof(struct sv_name_head), false};
    r.failed = reg.log_bytes - reg.log_len < sizeof(struct sv_name_head) + 8;
    return r;
}

/* The head last: only now the record exists. */
static bool end_record(struct record *r, struct sv_name_head head)
{
    while (r->at % 8)
        put(r, "", 1);
    if (r->failed) {
        reg.is_full = true;
        return false;
    }
    head.size = (uint32_t)(r->at - r->start);
    memcpy(reg.log + r->start, &head, sizeof head);
    reg.log_len = r->at;
    return true;
}

/* The part of the log from `done` on; the file's beginning is mapped. After a failure it is not
 * tried again for a second. *is_skipped: the file is out of the program's reach (it has another
 * root, and has closed it); its own writer does not need it, only recovery would. */
static bool write_names(struct sv_process *p, uint64_t done, bool *is_skipped)
{
    uint64_t mapped = p->names_map ? SV_NAMES_MAPPED : 0;
    if (done < mapped) {
        uint64_t n = (reg.log_len < mapped ? reg.log_len : mapped) - done;
        memcpy(p->names_map + done, reg.log + done, (size_t)n);
        done += n;
    }
    if (done == reg.log_len)
        return true;
    int64_t failed = atomic_load_explicit(&p->names_failed_ns, memory_order_relaxed);
    if (failed != 0 && stave_now_ns() - failed < RETRY_NS)
        return false;
    struct sv_quiet quiet;
    sv_quiet_begin(&quiet);
    int fd = sv_files_names(p);
    *is_skipped = fd < 0 && !p->collector;
    errno = 0;
    bool ok = *is_skipped ||
              (fd >= 0 && sv_write_all_at(fd, reg.log + done, reg.log_len - done, done));
    sv_quiet_end(&quiet);
    atomic_store(&p->names_failed_ns, ok ? 0 : stave_now_ns());
    if (!ok)
        sv_session_count_only("cannot write the names of events", errno ? errno : EIO);
    return ok;
}

bool sv_names_flush(void)
{
    struct sv_process *p = sv_process;
    uint64_t done = atomic_load_explicit(&p->names_written, memory_order_relaxed);
    if (!p->session || p->names_fd < 0 || done == reg.log_len)
        return true;
    bool is_skipped = false;
    if (!write_names(p, done, &is_skipped))
        return false;
    atomic_store_explicit(&p->names_known, reg.log_len, memory_order_release);
    if (is_skipped)
        return true;
    atomic_store_explicit(&p->names_written, reg.log_len, memory_order_relaxed);
    atomic_store_explicit(&p->session->names_bytes, reg.log_len, memory_order_release);
    return true;
}

/* The log only grows, and what is in it does not change. */
const uint8_t *sv_names_log(uint64_t from, size_t *n)
{
    uint64_t end = atomic_load_explicit(&sv_process->names_known, memory_order_acquire);
    *n = end > from ? (size_t)(end - from) : 0;
    return reg.log + from;
}

/* While nothing is traced nobody reads them; switching on catches up. */
static bool flush_if_on(void)
{
    return !reg.is_on || sv_names_flush();
}

/* ---- sites ---- */

static int64_t *find_cell(const char *name)
{
    for (size_t i = 0; i < n_cells; i++)
        if (strcmp(cells[i].name, name) == 0)
            return &cells[i].sum;
    return NULL;
}

static void add_site(struct stave_site *site)
{
    struct record r = begin_record();
    size_t log_len = reg.log_len;
    put_text(&r, site->cat);
    size_t name_at = r.at;
    put_text(&r, site->name);
    put_text(&r, site->file);
    put_text(&r, site->func);
    for (unsigned i = 0; i < site->n_args; i++)
        put_text(&r, site->keys[i]);
    put(&r, site->types, site->n_args);
    uint32_t id = reg.next_site;
    if (!end_record(&r, (struct sv_name_head){.kind = SV_NAME_SITE,
                                              .event = site->kind,
                                              .n_args = site->n_args,
                                              .id = id,
                                              .value = site->line}))
        return;
    if (!flush_if_on()) { /* as if it had not been tried */
        reg.log_len = log_len;
        return;
    }
    reg.next_site++;
    bool on_track = site->n_args && site->types[0] == STAVE_I_TRACK;
    site->flags = site->kind == STAVE_KIND_BEGIN && !on_track ? SV_SITE_NESTS : 0;
    if (site->n_args > 1 && site->types[1] == STAVE_I_SLICE)
        site->flags |= SV_SITE_SLICE;
    for (unsigned i = 0; i < site->n_args; i++)
        if (site->types[i] >= STAVE_I_TEXT)
            site->flags |= SV_SITE_TEXT;
    if (site->kind == STAVE_KIND_COUNTER && site->name) {
        site->sum = find_cell(site->name);
        if (!site->sum && n_cells < CELLS_MAX) {
            cells[n_cells] = (struct cell){.name = (const char *)reg.log + name_at};
            site->sum = &cells[n_cells++].sum;
        }
    }
    /* Pairs with the acquire of the hot path: flags and sum are there. */
    __atomic_store_n(&site->word, SV_WORD(id, site->kind, site->n_args, 2u + site->n_args),
                     __ATOMIC_RELEASE);
}

static void link_site(struct stave_site *site)
{
    struct stave_i_dso *dso = site->dso;
    if (!dso->registered) {
        dso->registered = 1;
        dso->next = reg.dsos;
        reg.dsos = dso;
    }
    site->next = dso->sites;
    dso->sites = site;
}

bool sv_site_register(struct stave_site *site)
{
    if (!sv_process_init())
        return false;
    if (atomic_load(&sv_epoch) != 0 && !sv_process->session)
        sv_session_inherit();
    if (!sv_lock())
        return false;
    if (__atomic_load_n(&site->word, __ATOMIC_RELAXED) == 0 && open_log()) {
        add_site(site);
        if (__atomic_load_n(&site->word, __ATOMIC_RELAXED) != 0)
            link_site(site);
        /* One that cannot be registered is on nevertheless: its events are counted as lost. */
        bool on = sv_category_on(site->cat);
        uint8_t off = site->word != 0 ? 0 : STAVE_I_NEW;
        __atomic_store_n(&site->state, on ? 1 : off, __ATOMIC_RELAXED);
    }
    bool on = __atomic_load_n(&site->state, __ATOMIC_RELAXED) == 1;
    sv_unlock();
    return on;
}

void stave_i_dso_gone(struct stave_i_dso *dso)
{
    if (!sv_process_init() || !sv_lock())
        return;
    for (struct stave_i_dso **at = &reg.dsos; *at; at = &(*at)->next) {
        if (*at == dso) {
            *at = dso->next;
            break;
        }
    }
    for (struct stave_site *s = dso->sites; s; s = s->next)
        __atomic_store_n(&s->state, 0, __ATOMIC_RELAXED);
    dso->sites = NULL;
    dso->registered = 0;
    sv_unlock();
}

void stave_i_add(struct stave_site *site, int64_t delta)
{
    if (__atomic_load_n(&site->word, __ATOMIC_ACQUIRE) == 0 && !sv_site_register(site))
        return;
    if (!site->sum)
        return;
    uint64_t value = (uint64_t)__atomic_add_fetch(site->sum, delta, __ATOMIC_RELAXED);
    stave_i_emit(site, &value);
}

/* ---- tracks ---- */

static bool is_track(const uint8_t *at, unsigned kind, uint32_t parent, int64_t value,
                     const char *name)
{
    struct sv_name_head h;
    memcpy(&h, at, sizeof h);
    return h.event == kind && h.parent == parent && h.value == value &&
           strcmp((const char *)at + sizeof h, name) == 0;
}

static stave_track_t add_track(unsigned kind, uint32_t parent, const char *name, const char *unit,
                               int64_t value, uint32_t *slot)
{
    struct record r = begin_record();
    size_t start = r.start;
    put_text(&r, name);
    put_text(&r, unit);
    uint32_t id = reg.next_track;
    if (!end_record(&r, (struct sv_name_head){.kind = SV_NAME_TRACK,
                                              .event = (uint8_t)kind,
                                              .id = id,
                                              .parent = parent,
                                              .value = value}))
        return STAVE_PROCESS;
    reg.next_track++;
    reg.n_tracks++;
    *slot = (uint32_t)(start / 8) + 1;
    flush_if_on();
    return id;
}

static stave_track_t find_track(unsigned kind, uint32_t parent, const char *name, const char *unit,
                                int64_t value)
{
    char cut[TEXT_MAX + 1];
    size_t len = cut_text(cut, sizeof cut, name ? name : "");
    if (!sv_process_init() || !sv_lock())
        return STAVE_PROCESS;
    stave_track_t found = STAVE_PROCESS;
    if (open_log() && reg.n_tracks < TABLE_SLOTS / 2) {
        uint64_t h =
            sv_hash_bytes(cut, len, sv_mix64((uint64_t)value ^ (uint64_t)parent << 8 ^ kind));
        size_t i = h & (TABLE_SLOTS - 1);
        while (reg.by_track[i] &&
               !is_track(reg.log + (size_t)(reg.by_track[i] - 1) * 8, kind, parent, value, cut))
            i = (i + 1) & (TABLE_SLOTS - 1);
        if (reg.by_track[i])
            found = ((const struct sv_name_head *)(const void *)(reg.log +
                                                                 (size_t)(reg.by_track[i] - 1) * 8))
                        ->id;
        else
            found = add_track(kind, parent, cut, unit, value, &reg.by_track[i]);
    }
    sv_unlock();
    return found;
}

static uint32_t as_parent(stave_track_t parent)
{
    return parent == STAVE_THREAD ? STAVE_PROCESS : parent;
}

stave_track_t stave_track(stave_track_t parent, const char *name)
{
    return find_track(SV_TRACK_CUSTOM, as_parent(parent), name, "", 0);
}

stave_track_t stave_track_as(enum stave_row row, stave_track_t parent, const char *name)
{
    return find_track(sv_track_kind_of_row(row), as_parent(parent), name, "", 0);
}

stave_track_t stave_thread_track(int64_t tid)
{
    return find_track(SV_TRACK_THREAD, STAVE_PROCESS, "", "", tid);
}

stave_track_t stave_counter(stave_track_t parent, const char *name, const char *unit)
{
    return find_track(SV_TRACK_COUNTER, as_parent(parent), name, unit, 0);
}

stave_track_t stave_async(stave_track_t parent, const char *name, uint64_t id)
{
    return find_track(SV_TRACK_ASYNC, as_parent(parent), name, "", (int64_t)id);
}

void stave_set_track_order(stave_track_t track, int64_t order)
{
    if (track < TRACK_FIRST || !sv_process_init() || !sv_lock())
        return;
    if (open_log()) {
        struct record r = begin_record();
        end_record(&r, (struct sv_name_head){.kind = SV_NAME_ORDER, .id = track, .value = order});
        flush_if_on();
    }
    sv_unlock();
}

void stave_set_thread_name(const char *name)
{
    struct sv_thread *t = sv_self;
    if (!t->ring && atomic_load(&sv_epoch) != 0)
        t = sv_attach();
    if (!t || !t->ring || !name)
        return;
    if (!sv_lock()) /* the writer reads it under the lock */
        return;
    cut_text(t->ring->name, sizeof t->ring->name, name);
    sv_unlock();
}

void stave_set_process_name(const char *name)
{
    if (!name || !sv_process_init() || !sv_lock())
        return;
    struct sv_process *p = sv_process;
    struct sv_session_file *session = __atomic_load_n(&p->session, __ATOMIC_ACQUIRE);
    cut_text(p->name, sizeof p->name, name);
    if (session)
        memcpy(session->name, p->name, sizeof p->name);
    atomic_fetch_add(&p->n_named, 1);
    sv_unlock();
}

bool sv_given_name(char name[SV_GIVEN_NAME])
{
    name[0] = '\0';
    if (!sv_process || !sv_lock_within(LOCK_MS)) /* the program never waits for the writer */
        return false;
    memcpy(name, sv_process->name, SV_GIVEN_NAME);
    sv_unlock();
    return name[0] != '\0';
}

/* ---- fork: the log must not be half written in the child ---- */

static _Thread_local bool locked_for_fork;

void sv_registry_before_fork(void)
{
    locked_for_fork = sv_process && atomic_load(&sv_process->ready) == 2 && sv_lock();
}

void sv_registry_after_fork(bool is_child)
{
    if (!is_child && locked_for_fork) /* the child's lock lies in wiped pages */
        sv_unlock();
    locked_for_fork = false;
}
