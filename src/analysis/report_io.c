/* The I/O report: one walk over the store that adds each call and request to its process, file, folder and device.
 *
 * Called by the report command. Latencies are kept per group until their percentiles are known, 12 bytes per call and kind of group at a time. */
#include "analysis/report_io.h"

#include "analysis/index.h"
#include "analysis/stats.h"
#include "core/base/map.h"
#include "core/base/mem.h"
#include "core/base/sat.h"
#include "model/kernel_words.h"

#include <stdlib.h>
#include <string.h>

#define NO_GROUP UINT32_MAX

const char *const sv_io_by_names[SV_N_IO_BY] = {"process", "file", "folder", "device"};

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
    {"sendfile", SV_OP_WRITE},
    {"copy_file_range", SV_OP_WRITE},
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
    {"splice", SV_OP_OTHER},
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
};

static const struct {
    const char *name;
    enum sv_io_kind kind;
} categories[] = {{SV_CAT_SYSCALL, SV_IO_CALL}, {"io", SV_IO_CALL},
                  {"vfs", SV_IO_CALL},          {SV_CAT_IO_URING, SV_IO_CALL},
                  {SV_CAT_BLOCK, SV_IO_BLOCK},  {SV_CAT_PAGE_CACHE, SV_IO_CACHE_MISS}};

static sv_str find(const struct sv_trace *t, const char *word)
{
    return sv_dict_find_str(t->dict, word, strlen(word));
}

static uint64_t process_key(uint32_t space, int64_t pid)
{
    return sv_mix64((uint64_t)pid) ^ space;
}

void sv_io_words_init(struct sv_io_words *w, const struct sv_trace *t)
{
    *w = (struct sv_io_words){.trace = t, .n = t->dict->n_strings};
    w->ops = sv_alloc(w->n + 1);
    w->kinds = sv_alloc(w->n + 1);
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++)
        w->ops[find(t, operations[i].name)] = (uint8_t)operations[i].op;
    for (size_t i = 0; i < sizeof categories / sizeof *categories; i++)
        w->kinds[find(t, categories[i].name)] = (uint8_t)categories[i].kind;
    w->ops[0] = w->kinds[0] = 0; /* what the trace does not have was found here */
    w->path = find(t, "path");
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
    return kind == SV_IO_CALL && w->ops[s->name[row]] == SV_OP_NONE ? SV_IO_NOTHING : kind;
}

enum sv_io_op sv_io_op_at(const struct sv_io_words *w, uint64_t row)
{
    const struct sv_slices *s = &w->trace->slices;
    return w->kinds[s->cat[row]] == SV_IO_CALL ? (enum sv_io_op)w->ops[s->name[row]] : SV_OP_NONE;
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

/* ---- groups ---- */

struct maker {
    struct sv_io_report *report;
    struct sv_io_words words;
    struct sv_map index[SV_N_IO_BY]; /* string or process → number of the group */
    size_t cap[SV_N_IO_BY];
    uint32_t *member[SV_N_IO_BY]; /* by row: the number of its group */
    struct sv_map streams;        /* of process and file: the current position */
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
    bool is_error, has_bytes, is_compared, is_sequential;
    uint64_t bytes, count;
};

static void add_item(struct sv_io_group *g, const struct item *i)
{
    uint64_t *const counters[] = {
        [SV_OP_NONE] = &g->others, [SV_OP_OPEN] = &g->opens,   [SV_OP_CLOSE] = &g->others,
        [SV_OP_READ] = &g->reads,  [SV_OP_WRITE] = &g->writes, [SV_OP_SYNC] = &g->syncs,
        [SV_OP_MAP] = &g->maps,    [SV_OP_SEEK] = &g->others,  [SV_OP_OTHER] = &g->others};
    *counters[i->op] += i->count;
    g->errors += i->is_error;
    if (i->op == SV_OP_READ)
        g->bytes_read += i->bytes;
    if (i->op == SV_OP_WRITE)
        g->bytes_written += i->bytes;
    if (i->has_bytes)
        g->sizes[size_bucket(i->bytes)]++;
    if (i->is_compared)
        *(i->is_sequential ? &g->sequential : &g->random) += 1;
}

/* The current position of a stream of transfers: the offset + 1 (0: not known), and two flags. */
#define MOVED       (UINT64_C(1) << 63) /* by a seek, since the last transfer */
#define TRANSFERRED (UINT64_C(1) << 62)
#define POSITION    (TRANSFERRED - 1)

/* Does this transfer continue where the stream's last one ended? Without an offset (-1) a descriptor continues by itself, unless it was moved. */
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

static void add_call(struct maker *m, uint64_t row)
{
    struct sv_io_report *r = m->report;
    const struct sv_io_words *w = &m->words;
    struct sv_text path = text_arg(w, row, w->path);
    sv_track process = sv_dict_process_of(r->trace->dict, r->trace->slices.track[row]);
    int64_t bytes = sv_io_arg(w, row, w->bytes, -1), count = sv_io_arg(w, row, w->count, 1);
    struct item item = {.op = sv_io_op_at(w, row),
                        .is_error = sv_io_arg(w, row, w->errno_, 0) != 0,
                        .count = count > 0 ? (uint64_t)count : 1};
    bool is_transfer = item.op == SV_OP_READ || item.op == SV_OP_WRITE;
    item.has_bytes = is_transfer && bytes >= 0;
    item.bytes = item.has_bytes ? (uint64_t)bytes : 0;
    sv_str file = path.len ? sv_dict_str(r->strings, path.bytes, path.len) : 0;
    int64_t fd = sv_io_arg(w, row, w->fd, -1);
    if (file || fd >= 0) {
        uint64_t stream =
            sv_mix64((uint64_t)process << 32 | (file ? file : 1u << 31 | (uint32_t)fd));
        if (item.has_bytes && item.bytes > 0)
            compare_place(m, stream, &item, sv_io_arg(w, row, w->offset, -1));
        else if (item.op == SV_OP_SEEK)
            seek(m, stream, sv_io_arg(w, row, w->ret, sv_io_arg(w, row, w->offset, -1)));
        else if (item.op == SV_OP_OPEN)
            *sv_map_add(&m->streams, stream, NULL) = 1; /* at its beginning */
    }
    m->member[SV_IO_PROCESS][row] = group_of(m, SV_IO_PROCESS, process, 0, process);
    if (file) {
        sv_str folder = folder_of(r->strings, path);
        m->member[SV_IO_FILE][row] = group_of(m, SV_IO_FILE, file, file, 0);
        m->member[SV_IO_FOLDER][row] = group_of(m, SV_IO_FOLDER, folder, folder, 0);
    }
    for (int by = 0; by < SV_N_IO_BY; by++)
        if (m->member[by][row] != NO_GROUP)
            add_item(&r->by[by].groups[m->member[by][row]], &item);
    add_item(&r->total, &item);
    r->n_calls++;
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
                        .is_error = sv_io_arg(w, row, w->errno_, 0) != 0,
                        .has_bytes = is_read || is_write,
                        .bytes = bytes > 0 ? (uint64_t)bytes : 0,
                        .count = 1};
    sv_str id = sv_dict_str(r->strings, device.bytes, device.len);
    if (sector >= 0 && sector < INT64_MAX / 512)
        compare_place(m, sv_mix64(~(uint64_t)id), &item, sector * 512);
    uint32_t number = group_of(m, SV_IO_DEVICE, id, id, 0);
    m->member[SV_IO_DEVICE][row] = number;
    add_item(&r->by[SV_IO_DEVICE].groups[number], &item);
    int64_t pid = sv_io_arg(w, row, w->pid, -1);
    sv_track process = sv_io_process(w, s->track[row], pid);
    struct sv_io_group *g = process_group(m, process);
    struct sv_io_group *const targets[] = {g, &r->total};
    for (size_t i = 0; i < 2; i++) {
        targets[i]->block_reads += is_read;
        targets[i]->block_writes += is_write;
        targets[i]->block_bytes_read += is_read ? item.bytes : 0;
        targets[i]->block_bytes_written += is_write ? item.bytes : 0;
    }
    r->n_block++;
}

static void add_miss(struct maker *m, uint64_t row)
{
    struct sv_io_report *r = m->report;
    if (strcmp(sv_dict_text(r->trace->dict, r->trace->slices.name[row]).bytes, "add") != 0)
        return;
    sv_track process = sv_dict_process_of(r->trace->dict, r->trace->slices.track[row]);
    int64_t bytes = sv_io_arg(&m->words, row, m->words.bytes, 0);
    struct sv_io_group *const targets[] = {process_group(m, process), &r->total};
    for (size_t i = 0; i < 2; i++) {
        targets[i]->cache_misses++;
        targets[i]->cache_miss_bytes += bytes > 0 ? (uint64_t)bytes : 0;
    }
    r->n_cache_misses++;
}

/* ---- latencies ---- */

static int64_t duration(const struct sv_trace *t, uint64_t row)
{
    return sv_trace_end_ns(t, row) - t->slices.ts_ns[row];
}

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

/* Which latency of a group a row belongs to: 0 all, 1 read, 2 write. Instants have no duration. */
static bool is_of(const struct maker *m, uint64_t row, int which)
{
    const struct sv_slices *s = &m->report->trace->slices;
    if (s->kind[row] != SV_SLICE)
        return false;
    if (which == 0)
        return true;
    enum sv_io_op op = sv_io_op_at(&m->words, row);
    if (op == SV_OP_NONE) /* a block request */
        op = (enum sv_io_op)m->words.ops[s->name[row]];
    return op == (which == 1 ? SV_OP_READ : SV_OP_WRITE);
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

static void set_all_latencies(struct maker *m)
{
    struct sv_io_report *r = m->report;
    uint32_t *one = sv_alloc((r->trace->slices.n + 1) * sizeof *one);
    for (uint64_t row = 0; row < r->trace->slices.n; row++)
        one[row] = m->member[SV_IO_PROCESS][row] == NO_GROUP ? NO_GROUP : 0;
    for (int which = 0; which < 3; which++) {
        for (int by = 0; by < SV_N_IO_BY; by++)
            set_latencies(m, m->member[by], r->by[by].groups, r->by[by].n, which);
        set_latencies(m, one, &r->total, 1, which);
    }
    free(one);
}

/* ---- the whole ---- */

static int most_time_first(const void *a, const void *b)
{
    const struct sv_io_group *x = a, *y = b;
    if (x->all.total_ns != y->all.total_ns)
        return x->all.total_ns > y->all.total_ns ? -1 : 1;
    uint64_t n = x->bytes_read + x->bytes_written, k = y->bytes_read + y->bytes_written;
    if (n != k)
        return n > k ? -1 : 1;
    if (x->name != y->name)
        return x->name < y->name ? -1 : 1;
    return x->process < y->process ? -1 : x->process > y->process;
}

/* In the order of time, over all threads: what is sequential depends on it. */
static void walk(struct maker *m)
{
    const struct sv_trace *t = m->report->trace;
    struct sv_index *x = sv_index_new(t);
    const uint32_t *order = sv_index_order(x);
    for (int by = 0; by < SV_N_IO_BY; by++) {
        m->member[by] = sv_alloc((t->slices.n + 1) * sizeof *m->member[by]);
        memset(m->member[by], 0xff, t->slices.n * sizeof *m->member[by]); /* NO_GROUP */
    }
    for (uint64_t i = 0; i < t->slices.n; i++) {
        switch (sv_io_kind_at(&m->words, order[i])) {
        case SV_IO_CALL: add_call(m, order[i]); break;
        case SV_IO_BLOCK: add_block(m, order[i]); break;
        case SV_IO_CACHE_MISS: add_miss(m, order[i]); break;
        default: break;
        }
    }
    sv_index_free(x);
}

void sv_io_report_make(struct sv_io_report *r, const struct sv_trace *t)
{
    struct maker m = {.report = r};
    *r = (struct sv_io_report){.trace = t, .strings = sv_dict_new()};
    sv_io_words_init(&m.words, t);
    walk(&m);
    set_all_latencies(&m);
    for (int by = 0; by < SV_N_IO_BY; by++) {
        free(m.member[by]);
        sv_map_fini(&m.index[by]);
        if (r->by[by].n)
            qsort(r->by[by].groups, r->by[by].n, sizeof *r->by[by].groups, most_time_first);
    }
    sv_map_fini(&m.streams);
    sv_io_find_spans(r, &m.words);
    sv_io_find_roles(r, &m.words);
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
