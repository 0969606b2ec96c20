/* The I/O report: one walk over the store that adds each call and request to its process, file,
 * folder and device.
 *
 * Called by the report command. Latencies are kept per group until their percentiles are known, 12
 * bytes per call and kind of group at a time. */
#include "subjects/io/figures.h"

#include "core/base/mem.h"
#include "core/base/percentile.h"
#include "core/base/sat.h"
#include "store/index.h"
#include "subjects/io/words.h"
#include "threads/workers.h"

#include <stdlib.h>
#include <string.h>

#define NO_GROUP      UINT32_MAX
#define THREADS_FROM  ((uint64_t)1 << 18) /* slices */
#define FACTS         4096u               /* rows that a thread looks at at a time */
#define PATHS         1024u
#define LATENCY_PARTS 64u

const char *const sv_io_by_names[SV_N_IO_BY] = {"process", "file", "folder", "device", "peer"};

/* ---- words ---- */

static const struct {
    const char *name;
    enum sv_io_op op;
} operations[] = {
    {"open", SV_OP_OPEN},
    {"openat", SV_OP_OPEN},
    {"openat2", SV_OP_OPEN},
    {"creat", SV_OP_OPEN},
    {"close", SV_OP_CLOSE},
    {"read", SV_OP_READ},
    {"pread64", SV_OP_READ},
    {"readv", SV_OP_READ},
    {"preadv", SV_OP_READ},
    {"preadv2", SV_OP_READ},
    {"write", SV_OP_WRITE},
    {"pwrite64", SV_OP_WRITE},
    {"writev", SV_OP_WRITE},
    {"pwritev", SV_OP_WRITE},
    {"pwritev2", SV_OP_WRITE},
    {"sendfile", SV_OP_COPY},
    {"copy_file_range", SV_OP_COPY},
    {"fsync", SV_OP_SYNC},
    {"fdatasync", SV_OP_SYNC},
    {"msync", SV_OP_SYNC},
    {"sync_file_range", SV_OP_SYNC},
    {"syncfs", SV_OP_SYNC},
    {"sync", SV_OP_SYNC},
    {"mmap", SV_OP_MAP},
    {"munmap", SV_OP_MAP},
    {"madvise", SV_OP_MAP},
    {"lseek", SV_OP_SEEK},
    {"stat", SV_OP_OTHER},
    {"lstat", SV_OP_OTHER},
    {"fstat", SV_OP_OTHER},
    {"newfstatat", SV_OP_OTHER},
    {"statx", SV_OP_OTHER},
    {"access", SV_OP_OTHER},
    {"faccessat", SV_OP_OTHER},
    {"faccessat2", SV_OP_OTHER},
    {"getdents64", SV_OP_OTHER},
    {"mkdir", SV_OP_OTHER},
    {"mkdirat", SV_OP_OTHER},
    {"rmdir", SV_OP_OTHER},
    {"unlink", SV_OP_OTHER},
    {"unlinkat", SV_OP_OTHER},
    {"rename", SV_OP_OTHER},
    {"renameat", SV_OP_OTHER},
    {"renameat2", SV_OP_OTHER},
    {"link", SV_OP_OTHER},
    {"symlink", SV_OP_OTHER},
    {"readlink", SV_OP_OTHER},
    {"truncate", SV_OP_OTHER},
    {"ftruncate", SV_OP_OTHER},
    {"fallocate", SV_OP_OTHER},
    {"splice", SV_OP_COPY},
    {"io_uring_enter", SV_OP_OTHER},
    {"io_uring_read", SV_OP_READ},
    {"io_uring_readv", SV_OP_READ},
    {"io_uring_read_fixed", SV_OP_READ},
    {"io_uring_write", SV_OP_WRITE},
    {"io_uring_writev", SV_OP_WRITE},
    {"io_uring_write_fixed", SV_OP_WRITE},
    {"io_uring_fsync", SV_OP_SYNC},
    {"io_uring_openat", SV_OP_OPEN},
    {"io_uring_close", SV_OP_CLOSE},
    {"aio_read", SV_OP_READ},
    {"aio_readv", SV_OP_READ},
    {"aio_write", SV_OP_WRITE},
    {"aio_writev", SV_OP_WRITE},
    {"aio_fsync", SV_OP_SYNC},
    {"aio_fdsync", SV_OP_SYNC},
    {"tcp_recv", SV_OP_READ},
    {"tcp_send", SV_OP_WRITE},
};

static const struct {
    const char *name;
    enum sv_io_kind kind;
} categories[] = {{SV_CAT_SYSCALL, SV_IO_CALL},
                  {SV_CAT_CALL_SUM, SV_IO_SUM},
                  {"io", SV_IO_CALL},
                  {"vfs", SV_IO_CALL},
                  {SV_CAT_IO_URING, SV_IO_CALL},
                  {SV_CAT_BLOCK, SV_IO_BLOCK},
                  {SV_CAT_PAGE_CACHE, SV_IO_CACHE_MISS},
                  {SV_CAT_FAULT, SV_IO_FAULT},
                  {SV_CAT_PROCESS, SV_IO_START},
                  {SV_CAT_NETWORK, SV_IO_SOCKET},
                  {SV_CAT_PAGE_CREATED, SV_IO_CREATED},
                  {SV_CAT_AIO, SV_IO_CALL}};

static sv_str find(const struct sv_trace *t, const char *word)
{
    return sv_dict_find_str(t->dict, word, strlen(word));
}

static uint64_t process_key(uint32_t space, int64_t pid)
{
    return sv_mix64((uint64_t)pid) ^ space;
}

/* "writer" says stave record, or "rank 3/writer" of a merged trace does. */
static bool is_recording(const struct sv_dict *d)
{
    for (uint32_t i = 0; i < d->n_meta; i++) {
        struct sv_text key = sv_dict_text(d, d->meta[i].key),
                       value = sv_dict_text(d, d->meta[i].value);
        if (key.len >= 6 && strcmp(key.bytes + key.len - 6, "writer") == 0 &&
            strcmp(value.bytes, "stave record") == 0)
            return true;
    }
    return false;
}

void sv_io_words_init(struct sv_io_words *w, const struct sv_trace *t)
{
    *w = (struct sv_io_words){
        .trace = t, .n = t->dict->n_strings, .knows_paths = is_recording(t->dict)};
    w->ops = sv_alloc(w->n + 1);
    w->kinds = sv_alloc(w->n + 1);
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++)
        w->ops[find(t, operations[i].name)] = (uint8_t)operations[i].op;
    for (size_t i = 0; i < sizeof categories / sizeof *categories; i++)
        w->kinds[find(t, categories[i].name)] = (uint8_t)categories[i].kind;
    w->ops[0] = w->kinds[0] = 0; /* what the trace does not have was found here */
    w->failed = find(t, "failed");
    w->time = find(t, "time_ns");
    w->longest = find(t, "longest_ns");
    w->path = find(t, "path");
    w->path2 = find(t, "path2");
    w->fd2 = find(t, "fd2");
    w->offset2 = find(t, "offset2");
    w->bytes = find(t, "bytes");
    w->offset = find(t, "offset");
    w->errno_ = find(t, "errno");
    w->device = find(t, "device");
    w->sector = find(t, "sector");
    w->pid = find(t, "pid");
    w->fd = find(t, "fd");
    w->ret = find(t, "ret");
    w->count = find(t, "count");
    w->child = find(t, "child");
    w->readahead = find(t, "readahead");
    w->peer = find(t, "peer");
    w->port = find(t, "port");
    for (sv_track k = 1; k < t->dict->n_tracks; k++) {
        const struct sv_track_info *info = &t->dict->tracks[k];
        if (info->kind == SV_TRACK_PROCESS)
            *sv_map_add(&w->processes, process_key(info->space, info->pid), NULL) = k;
    }
}

sv_track sv_io_process(const struct sv_io_words *w, sv_track track, int64_t pid)
{
    const uint64_t *found =
        pid < 0 ? NULL
                : sv_map_find(&w->processes, process_key(w->trace->dict->tracks[track].space, pid));
    return found ? (sv_track)*found : 0;
}

void sv_io_words_fini(struct sv_io_words *w)
{
    sv_map_fini(&w->processes);
    free(w->ops);
    free(w->kinds);
}

enum sv_io_kind sv_io_kind_at(const struct sv_io_words *w, uint64_t row)
{
    const struct sv_slices *s = &w->trace->slices;
    enum sv_io_kind kind = (enum sv_io_kind)w->kinds[s->cat[row]];
    bool is_call = kind == SV_IO_CALL || kind == SV_IO_SUM;
    return is_call && w->ops[s->name[row]] == SV_OP_NONE ? SV_IO_NOTHING : kind;
}

enum sv_io_op sv_io_op_at(const struct sv_io_words *w, uint64_t row)
{
    const struct sv_slices *s = &w->trace->slices;
    uint8_t kind = w->kinds[s->cat[row]];
    return kind == SV_IO_CALL || kind == SV_IO_SUM ? (enum sv_io_op)w->ops[s->name[row]]
                                                   : SV_OP_NONE;
}

int64_t sv_io_arg(const struct sv_io_words *w, uint64_t row, sv_str key, int64_t none)
{
    struct sv_arg a;
    bool found = key && sv_trace_arg(w->trace, w->trace->slices.args[row], key, &a);
    return found && a.type == SV_ARG_INT ? a.i : none;
}

static struct sv_text text_arg(const struct sv_io_words *w, uint64_t row, sv_str key)
{
    struct sv_arg a;
    bool found = key && sv_trace_arg(w->trace, w->trace->slices.args[row], key, &a);
    return found && a.type == SV_ARG_TEXT ? (struct sv_text){a.text, a.size} : (struct sv_text){0};
}

struct sv_text sv_io_path(const struct sv_io_words *w, uint64_t row)
{
    return text_arg(w, row, w->path);
}

bool sv_io_is_on_file(const struct sv_io_words *w, enum sv_file_kind kind)
{
    return kind == SV_FILE_REGULAR || (kind == SV_FILE_UNKNOWN && !w->knows_paths);
}

bool sv_io_is_file(const struct sv_io_words *w, uint64_t row, sv_str key)
{
    return sv_io_is_on_file(w, sv_file_kind_of(text_arg(w, row, key)));
}

/* ---- groups ---- */

/* A path met before. Texts of the store that are equal mostly have the same place. */
struct known_path {
    struct sv_text text;
    sv_str file;
    uint32_t group, folder_group;
};

struct maker {
    struct sv_io_report *report;
    struct sv_io_words words;
    const uint32_t *order; /* rows by time */
    uint64_t n_looked_at;
    struct known_path paths[PATHS];
    struct sv_map index[SV_N_IO_BY]; /* string or process → number of the group */
    size_t cap[SV_N_IO_BY];
    uint32_t *member[SV_N_IO_BY]; /* by row: the number of its group */
    uint8_t *latency;             /* by row: see find_latencies() */
    struct sv_map streams;        /* of process and file: the current position */
    struct sv_map connections;    /* process, own port and peer */
    struct sv_map programs;       /* files that were executed, by the last part of their paths */
};

static uint32_t group_of(struct maker *m, enum sv_io_by by, uint64_t key, sv_str name,
                         sv_track process)
{
    struct sv_io_groups *g = &m->report->by[by];
    bool is_new;
    uint64_t *slot = sv_map_add(&m->index[by], key, &is_new);
    if (is_new) {
        g->groups = sv_grow(g->groups, &m->cap[by], g->n + 1, sizeof *g->groups);
        g->groups[g->n] = (struct sv_io_group){.name = name, .process = process};
        *slot = g->n++;
    }
    return (uint32_t)*slot;
}

/* The number first: a new group may move them all. */
static struct sv_io_group *process_group(struct maker *m, sv_track process)
{
    uint32_t number = group_of(m, SV_IO_PROCESS, process, 0, process);
    return &m->report->by[SV_IO_PROCESS].groups[number];
}

static sv_str folder_of(struct sv_dict *strings, struct sv_text path)
{
    const char *slash = path.len ? memrchr(path.bytes, '/', path.len) : NULL;
    if (!slash)
        return 0;
    return sv_dict_str(strings, path.bytes, slash == path.bytes ? 1 : (size_t)(slash - path.bytes));
}

static unsigned size_bucket(uint64_t bytes)
{
    unsigned bits = bytes ? 64u - (unsigned)__builtin_clzll(bytes) : 0;
    return bits < SV_IO_SIZES ? bits : SV_IO_SIZES - 1;
}

/* What one call or request adds to a group. */
struct item {
    enum sv_io_op op;
    bool has_bytes, is_compared, is_sequential;
    uint64_t bytes, count, errors;
    struct sv_io_summed summed;
};

static void sum_up(struct sv_io_summed *to, const struct sv_io_summed *x)
{
    to->total_ns = sv_sat_add(to->total_ns, x->total_ns);
    to->max_ns = x->max_ns > to->max_ns ? x->max_ns : to->max_ns;
}

static void add_item(struct sv_io_group *g, const struct item *i)
{
    uint64_t *const counters[] = {
        [SV_OP_NONE] = &g->others, [SV_OP_OPEN] = &g->opens,   [SV_OP_CLOSE] = &g->others,
        [SV_OP_READ] = &g->reads,  [SV_OP_WRITE] = &g->writes, [SV_OP_SYNC] = &g->syncs,
        [SV_OP_MAP] = &g->maps,    [SV_OP_SEEK] = &g->others,  [SV_OP_COPY] = &g->others,
        [SV_OP_OTHER] = &g->others};
    *counters[i->op] += i->count;
    g->errors += i->errors;
    sum_up(&g->summed, &i->summed);
    if (i->op == SV_OP_READ) {
        g->bytes_read += i->bytes;
        sum_up(&g->summed_read, &i->summed);
    }
    if (i->op == SV_OP_WRITE) {
        g->bytes_written += i->bytes;
        sum_up(&g->summed_write, &i->summed);
    }
    if (i->has_bytes)
        g->sizes[size_bucket(i->bytes)]++;
    if (i->is_compared)
        *(i->is_sequential ? &g->sequential : &g->random) += 1;
}

/* The current position of a stream of transfers: the offset + 1 (0: not known), and two flags. */
#define MOVED       (UINT64_C(1) << 63) /* by a seek, since the last transfer */
#define TRANSFERRED (UINT64_C(1) << 62)
#define POSITION    (TRANSFERRED - 1)

/* Does this transfer continue where the stream's last one ended? Without an offset (-1) a
 * descriptor continues by itself, unless it was moved. */
static void compare_place(struct maker *m, uint64_t stream, struct item *i, int64_t offset)
{
    uint64_t *state = sv_map_add(&m->streams, stream, NULL);
    uint64_t at = offset >= 0 ? (uint64_t)offset + 1 : *state & POSITION;
    bool is_known = offset < 0 || (*state & POSITION) != 0;
    i->is_compared = (*state & TRANSFERRED) && is_known;
    i->is_sequential = !(*state & MOVED) && at == (*state & POSITION);
    *state = TRANSFERRED | (at ? (at + i->bytes) & POSITION : 0);
}

static void seek(struct maker *m, uint64_t stream, int64_t to)
{
    uint64_t *state = sv_map_add(&m->streams, stream, NULL);
    uint64_t at = to >= 0 ? ((uint64_t)to + 1) & POSITION : 0;
    bool is_moved = !at || at != (*state & POSITION);
    *state = (*state & TRANSFERRED) | (is_moved ? MOVED : *state & MOVED) | at;
}

static int64_t duration(const struct sv_trace *t, uint64_t row)
{
    return sv_trace_end_ns(t, row) - t->slices.ts_ns[row];
}

/* ---- looking at rows: on any thread ---- */

/* A row, and what it says if it is a call. */
struct fact {
    uint32_t row;
    uint8_t kind, op, file_kind; /* enum sv_io_kind, sv_io_op, sv_file_kind */
    sv_track process;
    struct sv_text path;
    int64_t ns, bytes, count, errors, longest_ns;
    int64_t fd;     /* if it has no path */
    int64_t offset; /* of a transfer, or where a seek ended; -1: not known */
    bool is_second; /* the written end of a copy: its call and its time count elsewhere */
};

/* Rows in the order of time, a part of them. */
struct facts {
    struct fact v[FACTS];
    uint64_t from;
    size_t n;
};

static bool is_transfer(const struct fact *f)
{
    return f->op == SV_OP_READ || f->op == SV_OP_WRITE || f->op == SV_OP_COPY;
}

static void look_at_call(const struct maker *m, struct fact *f)
{
    const struct sv_io_words *w = &m->words;
    const struct sv_trace *t = m->report->trace;
    uint32_t row = f->row;
    f->op = (uint8_t)sv_io_op_at(w, row);
    f->is_second = false;
    f->path = text_arg(w, row, w->path);
    f->file_kind = (uint8_t)sv_file_kind_of(f->path);
    f->process = sv_dict_process_of(t->dict, t->slices.track[row]);
    f->ns = duration(t, row);
    f->bytes = sv_io_arg(w, row, w->bytes, -1);
    f->count = sv_io_arg(w, row, w->count, 1);
    f->errors = sv_io_arg(w, row, w->errno_, 0) != 0;
    if (f->kind == SV_IO_SUM) {
        f->ns = sv_io_arg(w, row, w->time, 0);
        f->errors = sv_io_arg(w, row, w->failed, 0);
        f->longest_ns = sv_io_arg(w, row, w->longest, 0);
    }
    f->fd = f->path.len ? -1 : sv_io_arg(w, row, w->fd, -1);
    f->offset = is_transfer(f) || f->op == SV_OP_SEEK ? sv_io_arg(w, row, w->offset, -1) : -1;
    if (f->op == SV_OP_SEEK)
        f->offset = sv_io_arg(w, row, w->ret, f->offset);
}

static bool fill_facts(void *ctx, void *item)
{
    struct maker *m = ctx;
    struct facts *facts = item;
    uint64_t left = m->report->trace->slices.n - m->n_looked_at;
    facts->from = m->n_looked_at;
    facts->n = left < FACTS ? (size_t)left : FACTS;
    m->n_looked_at += facts->n;
    return facts->n > 0;
}

static void look_at_rows(void *ctx, void *item)
{
    const struct maker *m = ctx;
    struct facts *facts = item;
    for (size_t i = 0; i < facts->n; i++) {
        struct fact *f = &facts->v[i];
        f->row = m->order[facts->from + i];
        f->kind = (uint8_t)sv_io_kind_at(&m->words, f->row);
        if (f->kind == SV_IO_CALL || f->kind == SV_IO_SUM)
            look_at_call(m, f);
    }
}

/* ---- adding them, in order ---- */

/* How many calls a row is. */
static uint64_t n_of(const struct fact *f)
{
    return f->kind == SV_IO_SUM && f->count > 0 ? (uint64_t)f->count : 1;
}

/* Adds a call to the sums of its kind of descriptor. False: it is none on files. */
static bool add_kind(struct maker *m, const struct fact *f)
{
    struct sv_io_report *r = m->report;
    const struct sv_io_words *w = &m->words;
    enum sv_io_op op = (enum sv_io_op)f->op;
    enum sv_file_kind kind = (enum sv_file_kind)f->file_kind;
    struct sv_io_kind_sum *k = &r->kinds[kind];
    int64_t bytes = f->bytes, ns = f->ns;
    if (w->knows_paths && kind == SV_FILE_UNKNOWN && op != SV_OP_READ && op != SV_OP_WRITE)
        return false; /* memory without a file, a failed open */
    k->calls += f->is_second ? 0 : n_of(f);
    k->time_ns = sv_sat_add(k->time_ns, ns);
    if (bytes > 0 && (op == SV_OP_READ || op == SV_OP_WRITE))
        *(op == SV_OP_READ ? &k->bytes_read : &k->bytes_written) += (uint64_t)bytes;
    if (!sv_io_is_on_file(w, kind))
        return false;
    if (op == SV_OP_READ || op == SV_OP_WRITE)
        r->transfer_ns = sv_sat_add(r->transfer_ns, ns);
    else if (op == SV_OP_OPEN || op == SV_OP_CLOSE || op == SV_OP_OTHER)
        r->names_ns = sv_sat_add(r->names_ns, ns);
    return true;
}

/* The file, and the groups of it and of its folder. */
static const struct known_path *known_path(struct maker *m, struct sv_text path)
{
    struct sv_io_report *r = m->report;
    struct known_path *k = &m->paths[sv_mix64((uintptr_t)path.bytes) % PATHS];
    if (k->text.bytes == path.bytes && k->text.len == path.len)
        return k;
    sv_str file = sv_dict_str(r->strings, path.bytes, path.len),
           folder = folder_of(r->strings, path);
    *k = (struct known_path){.text = path,
                             .file = file,
                             .group = group_of(m, SV_IO_FILE, file, file, 0),
                             .folder_group = group_of(m, SV_IO_FOLDER, folder, folder, 0)};
    return k;
}

static void follow_stream(struct maker *m, const struct fact *f, sv_str file, struct item *item)
{
    uint64_t stream =
        sv_mix64((uint64_t)f->process << 32 | (file ? file : 1u << 31 | (uint32_t)f->fd));
    if (item->has_bytes && item->bytes > 0)
        compare_place(m, stream, item, f->offset);
    else if (item->op == SV_OP_SEEK)
        seek(m, stream, f->offset);
    else if (item->op == SV_OP_OPEN)
        *sv_map_add(&m->streams, stream, NULL) = 1; /* at its beginning */
}

/* A call on one file. False: it is none on files. */
static bool add_end(struct maker *m, const struct fact *f)
{
    struct sv_io_report *r = m->report;
    uint32_t of[SV_N_IO_BY];
    if (!add_kind(m, f))
        return false;
    memset(of, 0xff, sizeof of);
    struct item item = {.op = (enum sv_io_op)f->op,
                        .errors = f->errors > 0 ? (uint64_t)f->errors : 0,
                        .count = f->count > 0 ? (uint64_t)f->count : 1,
                        .summed = f->kind == SV_IO_SUM ? (struct sv_io_summed){f->ns, f->longest_ns}
                                                       : (struct sv_io_summed){0}};
    /* Of a sum neither sizes nor places are known. */
    item.has_bytes = is_transfer(f) && f->bytes >= 0 && f->kind != SV_IO_SUM;
    item.bytes = is_transfer(f) && f->bytes >= 0 ? (uint64_t)f->bytes : 0;
    const struct known_path *path = f->path.len ? known_path(m, f->path) : NULL;
    if ((path || f->fd >= 0) && f->kind != SV_IO_SUM)
        follow_stream(m, f, path ? path->file : 0, &item);
    of[SV_IO_PROCESS] = group_of(m, SV_IO_PROCESS, f->process, 0, f->process);
    if (path) {
        of[SV_IO_FILE] = path->group;
        of[SV_IO_FOLDER] = path->folder_group;
    }
    for (int by = 0; by < SV_N_IO_BY; by++) {
        if (!f->is_second && of[by] != NO_GROUP)
            m->member[by][f->row] = of[by];
        if (of[by] != NO_GROUP)
            add_item(&r->by[by].groups[of[by]], &item);
    }
    add_item(&r->total, &item);
    r->n_calls += f->is_second ? 0 : n_of(f);
    return true;
}

/* A copy is a read of one file and a write of another. Its time is that of the one it reads, if
 * that is a file. */
static void add_call(struct maker *m, const struct fact *f)
{
    const struct sv_io_words *w = &m->words;
    struct fact from = *f, to = *f;
    if (f->op != SV_OP_COPY) {
        add_end(m, f);
        return;
    }
    from.op = SV_OP_READ;
    to.op = SV_OP_WRITE;
    to.path = text_arg(w, f->row, w->path2);
    to.file_kind = (uint8_t)sv_file_kind_of(to.path);
    to.fd = to.path.len ? -1 : sv_io_arg(w, f->row, w->fd2, -1);
    to.offset = sv_io_arg(w, f->row, w->offset2, -1);
    to.is_second = add_end(m, &from);
    to.ns = to.is_second ? 0 : f->ns;
    add_end(m, &to);
}

/* A request belongs to the run if the trace has the process that caused it. */
static void add_to_process(struct maker *m, uint64_t row, uint64_t read, uint64_t written)
{
    struct sv_io_report *r = m->report;
    const struct sv_io_words *w = &m->words;
    bool is_read = m->words.ops[r->trace->slices.name[row]] == SV_OP_READ,
         is_write = m->words.ops[r->trace->slices.name[row]] == SV_OP_WRITE;
    sv_track process = sv_io_process(w, r->trace->slices.track[row], sv_io_arg(w, row, w->pid, -1));
    struct sv_io_group *const targets[] = {process_group(m, process), &r->total};
    if (!process) {
        r->n_other_block++;
        r->other_block_bytes_read += read;
        r->other_block_bytes_written += written;
    }
    for (size_t i = 0; i < (process ? 2u : 1u); i++) {
        targets[i]->block_reads += is_read;
        targets[i]->block_writes += is_write;
        targets[i]->block_bytes_read += read;
        targets[i]->block_bytes_written += written;
    }
}

static void add_block(struct maker *m, uint64_t row)
{
    struct sv_io_report *r = m->report;
    const struct sv_io_words *w = &m->words;
    const struct sv_slices *s = &r->trace->slices;
    struct sv_text name = sv_dict_text(r->trace->dict, s->name[row]);
    struct sv_text device = text_arg(w, row, w->device);
    if (!device.len)
        device = sv_dict_text(r->trace->dict, r->trace->dict->tracks[s->track[row]].name);
    int64_t bytes = sv_io_arg(w, row, w->bytes, 0), sector = sv_io_arg(w, row, w->sector, -1);
    bool is_read = strcmp(name.bytes, "read") == 0, is_write = strcmp(name.bytes, "write") == 0;
    struct item item = {.op = is_read    ? SV_OP_READ
                              : is_write ? SV_OP_WRITE
                                         : SV_OP_OTHER,
                        .errors = sv_io_arg(w, row, w->errno_, 0) != 0,
                        .has_bytes = is_read || is_write,
                        .bytes = bytes > 0 ? (uint64_t)bytes : 0,
                        .count = 1};
    sv_str id = sv_dict_str(r->strings, device.bytes, device.len);
    if (sector >= 0 && sector < INT64_MAX / 512)
        compare_place(m, sv_mix64(~(uint64_t)id), &item, sector * 512);
    uint32_t number = group_of(m, SV_IO_DEVICE, id, id, 0);
    m->member[SV_IO_DEVICE][row] = number;
    add_item(&r->by[SV_IO_DEVICE].groups[number], &item);
    add_to_process(m, row, is_read ? item.bytes : 0, is_write ? item.bytes : 0);
    r->n_block++;
}

static void add_pages(struct sv_io_group *g, const struct sv_io_group *more)
{
    g->cache_misses += more->cache_misses;
    g->cache_miss_bytes += more->cache_miss_bytes;
    g->ahead_bytes += more->ahead_bytes;
    g->created_bytes += more->created_bytes;
    g->faults += more->faults;
    g->fault_bytes += more->fault_bytes;
    g->fault_ns = sv_sat_add(g->fault_ns, more->fault_ns);
}

/* The groups of a file and its folder; nothing where it is not known, or is no file. */
static void add_to_file(struct maker *m, struct sv_text path, const struct sv_io_group *more)
{
    struct sv_io_report *r = m->report;
    if (sv_file_kind_of(path) != SV_FILE_REGULAR)
        return;
    sv_str names[SV_N_IO_BY] = {[SV_IO_FILE] = sv_dict_str(r->strings, path.bytes, path.len),
                                [SV_IO_FOLDER] = folder_of(r->strings, path)};
    for (int by = SV_IO_FILE; by <= SV_IO_FOLDER; by++) {
        uint32_t number = group_of(m, (enum sv_io_by)by, names[by], names[by], 0);
        add_pages(&r->by[by].groups[number], more);
    }
}

/* Paths of programs may be relative. */
static uint64_t last_part(struct sv_dict *strings, struct sv_text path)
{
    const char *slash = path.len ? memrchr(path.bytes, '/', path.len) : NULL;
    size_t skip = slash ? (size_t)(slash - path.bytes) + 1 : 0;
    return sv_dict_str(strings, path.bytes + skip, path.len - skip);
}

static void note_program(struct maker *m, uint64_t row)
{
    struct sv_text path = sv_io_path(&m->words, row);
    if (path.len)
        sv_map_add(&m->programs, last_part(m->report->strings, path), NULL);
}

/* A page fault on a mapped data file, or several (`count`). */
static void add_fault(struct maker *m, uint64_t row)
{
    struct sv_io_report *r = m->report;
    const struct sv_io_words *w = &m->words;
    struct sv_text path = sv_io_path(w, row);
    int64_t bytes = sv_io_arg(w, row, w->bytes, 0), count = sv_io_arg(w, row, w->count, 1);
    if (!sv_io_is_data_fault(w, row) || sv_map_find(&m->programs, last_part(r->strings, path)))
        return;
    const struct sv_io_group more = {
        .faults = count > 0 ? (uint64_t)count : 1,
        .fault_bytes = bytes > 0 ? (uint64_t)bytes : 0,
        .fault_ns = r->trace->slices.kind[row] == SV_SLICE ? duration(r->trace, row) : 0};
    sv_track process = sv_dict_process_of(r->trace->dict, r->trace->slices.track[row]);
    add_to_file(m, path, &more);
    add_pages(process_group(m, process), &more);
    add_pages(&r->total, &more);
    r->n_faults++;
}

static void add_miss(struct maker *m, uint64_t row, bool is_created)
{
    struct sv_io_report *r = m->report;
    if (!is_created &&
        strcmp(sv_dict_text(r->trace->dict, r->trace->slices.name[row]).bytes, "add") != 0)
        return;
    sv_track process = sv_dict_process_of(r->trace->dict, r->trace->slices.track[row]);
    int64_t bytes = sv_io_arg(&m->words, row, m->words.bytes, 0);
    const uint64_t moved = bytes > 0 ? (uint64_t)bytes : 0;
    bool is_ahead = sv_io_arg(&m->words, row, m->words.readahead, 0) != 0;
    const struct sv_io_group more = {.cache_misses = !is_created,
                                     .cache_miss_bytes = is_created ? 0 : moved,
                                     .ahead_bytes = is_ahead ? moved : 0,
                                     .created_bytes = is_created ? moved : 0};
    add_to_file(m, sv_io_path(&m->words, row), &more);
    add_pages(process_group(m, process), &more);
    add_pages(&r->total, &more);
    r->n_cache_misses += !is_created;
}

/* A transfer with a peer. It is not among the calls on files. */
static void add_transfer(struct maker *m, uint64_t row)
{
    struct sv_io_report *r = m->report;
    const struct sv_io_words *w = &m->words;
    struct sv_text peer = text_arg(w, row, w->peer);
    int64_t bytes = sv_io_arg(w, row, w->bytes, -1), port = sv_io_arg(w, row, w->port, 0);
    struct item item = {.op = (enum sv_io_op)w->ops[r->trace->slices.name[row]],
                        .errors = sv_io_arg(w, row, w->errno_, 0) != 0,
                        .has_bytes = bytes >= 0,
                        .bytes = bytes > 0 ? (uint64_t)bytes : 0,
                        .count = 1};
    sv_str name = peer.len ? sv_dict_str(r->strings, peer.bytes, peer.len) : 0;
    sv_track process = sv_dict_process_of(r->trace->dict, r->trace->slices.track[row]);
    uint32_t number = group_of(m, SV_IO_PEER, name, name, 0);
    struct sv_io_group *g = &r->by[SV_IO_PEER].groups[number];
    bool is_new;
    uint64_t connection = sv_mix64(sv_mix64((uint64_t)process << 32 | name) ^ (uint64_t)port);
    sv_map_add(&m->connections, connection, &is_new);
    m->member[SV_IO_PEER][row] = number;
    add_item(g, &item);
    g->opens += is_new;
}

/* ---- latencies ---- */

static void set_latency(struct sv_io_latency *l, int64_t *values, size_t n)
{
    *l = (struct sv_io_latency){.n = n};
    if (n == 0)
        return;
    for (size_t i = 0; i < n; i++) {
        l->total_ns = sv_sat_add(l->total_ns, values[i]);
        l->max_ns = values[i] > l->max_ns ? values[i] : l->max_ns;
    }
    l->p50_ns = sv_percentile(values, n, 0.5);
    l->p90_ns = sv_percentile(values, n, 0.9);
    l->p99_ns = sv_percentile(values, n, 0.99);
}

/* Which latencies of a group a row belongs to: instants have no duration. */
enum { NO_LATENCY, OF_ALL, OF_READS, OF_WRITES };

static void find_latencies(void *ctx, size_t i)
{
    struct maker *m = ctx;
    const struct sv_slices *s = &m->report->trace->slices;
    size_t from, to;
    sv_workers_share((size_t)s->n, i, LATENCY_PARTS, &from, &to);
    for (size_t row = from; row < to; row++) {
        enum sv_io_op op = sv_io_op_at(&m->words, row);
        if (op == SV_OP_NONE) /* a block request */
            op = (enum sv_io_op)m->words.ops[s->name[row]];
        m->latency[row] = s->kind[row] != SV_SLICE ? NO_LATENCY
                          : op == SV_OP_READ       ? OF_READS
                          : op == SV_OP_WRITE      ? OF_WRITES
                                                   : OF_ALL;
    }
}

/* which: 0 all, 1 read, 2 write */
static bool is_of(const struct maker *m, uint64_t row, int which)
{
    return which == 0 ? m->latency[row] != NO_LATENCY : m->latency[row] == OF_ALL + which;
}

/* member NULL: all calls belong to one group, which is `groups`. */
static void set_latencies(struct maker *m, const uint32_t *member, struct sv_io_group *groups,
                          size_t n_groups, int which)
{
    const struct sv_trace *t = m->report->trace;
    size_t *start = sv_alloc((n_groups + 1) * sizeof *start);
    uint64_t n = t->slices.n;
    for (uint64_t row = 0; row < n; row++)
        if (member[row] != NO_GROUP && is_of(m, row, which))
            start[member[row] + 1]++;
    for (size_t i = 0; i < n_groups; i++)
        start[i + 1] += start[i];
    int64_t *values = sv_alloc((start[n_groups] + 1) * sizeof *values);
    size_t *at = sv_alloc((n_groups + 1) * sizeof *at);
    memcpy(at, start, n_groups * sizeof *at);
    for (uint64_t row = 0; row < n; row++)
        if (member[row] != NO_GROUP && is_of(m, row, which))
            values[at[member[row]]++] = duration(t, row);
    for (size_t i = 0; i < n_groups; i++) {
        struct sv_io_latency *const l[] = {&groups[i].all, &groups[i].read, &groups[i].write};
        set_latency(l[which], values + start[i], start[i + 1] - start[i]);
    }
    free(values);
    free(start);
    free(at);
}

/* All, reads and writes, each by all kinds of groups and of the whole: none touches what another
 * one sets. */
struct latencies {
    struct maker *m;
    uint32_t *one; /* the group of all calls, by row */
};

static void set_some_latencies(void *ctx, size_t i)
{
    const struct latencies *x = ctx;
    struct sv_io_report *r = x->m->report;
    int which = (int)(i % 3), by = (int)(i / 3);
    if (by < SV_N_IO_BY)
        set_latencies(x->m, x->m->member[by], r->by[by].groups, r->by[by].n, which);
    else
        set_latencies(x->m, x->one, &r->total, 1, which);
}

static void set_all_latencies(struct maker *m)
{
    struct sv_io_report *r = m->report;
    uint32_t *one = sv_alloc((r->trace->slices.n + 1) * sizeof *one);
    for (uint64_t row = 0; row < r->trace->slices.n; row++)
        one[row] = m->member[SV_IO_PROCESS][row] == NO_GROUP ? NO_GROUP : 0;
    struct sv_workers *w = r->trace->slices.n < THREADS_FROM ? NULL : sv_workers_new(0);
    m->latency = sv_alloc(r->trace->slices.n + 1);
    sv_workers_each(w, LATENCY_PARTS, find_latencies, m);
    sv_workers_each(w, 3 * ((size_t)SV_N_IO_BY + 1), set_some_latencies,
                    &(struct latencies){m, one});
    sv_workers_free(w);
    free(m->latency);
    free(one);
}

static void add_summed_to(struct sv_io_latency *l, const struct sv_io_summed *x)
{
    if (x->total_ns == 0 && x->max_ns == 0)
        return;
    *l = (struct sv_io_latency){.total_ns = sv_sat_add(l->total_ns, x->total_ns),
                                .max_ns = x->max_ns > l->max_ns ? x->max_ns : l->max_ns};
}

static void add_summed(struct sv_io_group *g)
{
    add_summed_to(&g->all, &g->summed);
    add_summed_to(&g->read, &g->summed_read);
    add_summed_to(&g->write, &g->summed_write);
}

/* ---- the whole ---- */

static int most_time_first(const void *a, const void *b)
{
    const struct sv_io_group *x = a, *y = b;
    int64_t x_ns = sv_sat_add(x->all.total_ns, x->fault_ns),
            y_ns = sv_sat_add(y->all.total_ns, y->fault_ns);
    if (x_ns != y_ns)
        return x_ns > y_ns ? -1 : 1;
    uint64_t n = x->bytes_read + x->bytes_written, k = y->bytes_read + y->bytes_written;
    if (n != k)
        return n > k ? -1 : 1;
    if (x->name != y->name)
        return x->name < y->name ? -1 : 1;
    return x->process < y->process ? -1 : x->process > y->process;
}

static void add_row(struct maker *m, const struct fact *f)
{
    switch (f->kind) {
    case SV_IO_CALL:
    case SV_IO_SUM: add_call(m, f); break;
    case SV_IO_BLOCK: add_block(m, f->row); break;
    case SV_IO_CACHE_MISS: add_miss(m, f->row, false); break;
    case SV_IO_CREATED: add_miss(m, f->row, true); break;
    case SV_IO_FAULT: add_fault(m, f->row); break;
    case SV_IO_SOCKET: add_transfer(m, f->row); break;
    case SV_IO_START: note_program(m, f->row); break;
    default: break;
    }
}

/* In the order of time, over all threads: what is sequential depends on it. Rows are looked at
 * before their turn. */
static void walk(struct maker *m)
{
    static const struct sv_line_ops ops = {fill_facts, look_at_rows, NULL, sizeof(struct facts)};
    const struct sv_trace *t = m->report->trace;
    struct sv_index *x = sv_index_new(t);
    struct sv_workers *w = t->slices.n < THREADS_FROM ? NULL : sv_workers_new(0);
    m->order = sv_index_order(x);
    for (int by = 0; by < SV_N_IO_BY; by++) {
        m->member[by] = sv_alloc((t->slices.n + 1) * sizeof *m->member[by]);
        memset(m->member[by], 0xff, t->slices.n * sizeof *m->member[by]); /* NO_GROUP */
    }
    struct sv_line *line = sv_line_new(w, &ops, m);
    for (const struct facts *facts; (facts = sv_line_next(line));)
        for (size_t i = 0; i < facts->n; i++)
            add_row(m, &facts->v[i]);
    sv_line_free(line);
    sv_workers_free(w);
    sv_index_free(x);
}

/* A trace of block requests alone has no processes that could be the run: all are. */
static void own_all(struct sv_io_report *r)
{
    const struct sv_io_groups *g = &r->by[SV_IO_PROCESS];
    for (size_t i = 0; i < g->n; i++) {
        if (g->groups[i].process)
            continue;
        r->total.block_reads += g->groups[i].block_reads;
        r->total.block_writes += g->groups[i].block_writes;
    }
    r->total.block_bytes_read += r->other_block_bytes_read;
    r->total.block_bytes_written += r->other_block_bytes_written;
    r->n_other_block = r->other_block_bytes_read = r->other_block_bytes_written = 0;
}

void sv_io_report_make(struct sv_io_report *r, const struct sv_trace *t)
{
    struct maker m = {.report = r};
    *r = (struct sv_io_report){.trace = t, .strings = sv_dict_new()};
    sv_io_words_init(&m.words, t);
    r->knows_paths = m.words.knows_paths;
    walk(&m);
    if (!r->n_calls)
        own_all(r);
    set_all_latencies(&m);
    add_summed(&r->total);
    for (int by = 0; by < SV_N_IO_BY; by++) {
        free(m.member[by]);
        sv_map_fini(&m.index[by]);
        for (size_t i = 0; i < r->by[by].n; i++)
            add_summed(&r->by[by].groups[i]);
        if (r->by[by].n)
            qsort(r->by[by].groups, r->by[by].n, sizeof *r->by[by].groups, most_time_first);
    }
    sv_map_fini(&m.streams);
    sv_map_fini(&m.programs);
    sv_map_fini(&m.connections);
    sv_io_find_spans(r, &m.words);
    sv_io_find_roles(r, &m.words);
    sv_io_judge(r, &m.words);
    sv_io_words_fini(&m.words);
}

void sv_io_report_fini(struct sv_io_report *r)
{
    for (int by = 0; by < SV_N_IO_BY; by++)
        free(r->by[by].groups);
    free(r->spans);
    sv_dict_free(r->strings);
    *r = (struct sv_io_report){0};
}

double sv_io_cached(const struct sv_io_report *r, const struct sv_io_group *g)
{
    if (r->n_block == 0 || g->bytes_read == 0)
        return -1;
    if (g->block_bytes_read >= g->bytes_read)
        return 0;
    return 1.0 - (double)g->block_bytes_read / (double)g->bytes_read;
}

double sv_io_sequential(const struct sv_io_group *g)
{
    uint64_t n = g->sequential + g->random;
    return n ? (double)g->sequential / (double)n : -1;
}
