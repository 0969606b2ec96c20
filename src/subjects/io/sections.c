/* stave report io: who read and wrote what. Called by cmd/report.c with the loaded trace.
 *
 * Lets the analysis make the report, prints it as text, JSON or CSV. */
#include "subjects/io/figures.h"

#include "cli/console.h"
#include "cli/rows.h"
#include "core/base/json.h"
#include "core/base/mem.h"
#include "core/base/sat.h"
#include "store/ranks.h"
#include "subjects/subject.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define CELLS_MAX SV_CELLS_MAX
#define BY_SPAN   SV_N_IO_BY

struct report {
    const struct sv_report_options *options;
    size_t limit;
    int section; /* -1: all */
};

/* ---- cells ---- */

struct line {
    struct sv_cell cells[CELLS_MAX];
    char text[CELLS_MAX][32];
    size_t n;
};

static void add(struct line *l, struct sv_cell c)
{
    l->cells[l->n++] = c;
}

static void add_count(struct line *l, uint64_t n)
{
    add(l, sv_cell_int((int64_t)n));
}

static void add_time(struct line *l, double ns)
{
    add(l, sv_cell_text(sv_human_ns(l->text[l->n], (int64_t)ns)));
}

static void add_size(struct line *l, uint64_t bytes)
{
    add(l, sv_cell_text(sv_human_bytes(l->text[l->n], bytes)));
}

static void add_percent(struct line *l, double share)
{
    snprintf(l->text[l->n], sizeof l->text[0], "%.0f %%", share * 100);
    add(l, share < 0 ? sv_cell_text("-") : sv_cell_text(l->text[l->n]));
}

static void add_latency_text(struct line *l, const struct sv_io_latency *t)
{
    if (t->n) {
        add_time(l, t->p50_ns);
        add_time(l, t->p99_ns);
    } else {
        add(l, sv_cell_text("-"));
        add(l, sv_cell_text("-"));
    }
}

/* A group's name: of the process with its number, or of the file. */
static const char *name_of(const struct sv_io_report *r, const struct sv_io_group *g,
                           enum sv_io_by by, struct sv_buf *b)
{
    const struct sv_dict *d = r->trace->dict;
    sv_buf_clear(b);
    if (by != SV_IO_PROCESS) {
        struct sv_text t = sv_dict_text(r->strings, g->name);
        sv_buf_add(b, g->name ? t.bytes : "(not known)", g->name ? t.len : 11);
    } else if (g->process) {
        struct sv_text t = sv_dict_text(d, d->tracks[g->process].name);
        sv_rank_prefix(d, g->process, b);
        sv_buf_add(b, t.bytes, t.len);
        sv_buf_printf(b, "%spid %" PRId64 "%s", t.len ? " (" : "", d->tracks[g->process].pid,
                      t.len ? ")" : "");
    } else {
        sv_buf_str(b, "(no process)");
    }
    return sv_buf_cstr(b);
}

static size_t rows_of(const struct report *o, size_t n)
{
    return n < o->limit ? n : o->limit;
}

/* ---- text ---- */

static int print_group(const struct sv_io_report *r, const struct sv_io_group *g, enum sv_io_by by,
                       struct sv_printer *p, struct sv_err *err)
{
    struct line l = {0};
    struct sv_buf name;
    sv_buf_init(&name, 1u << 20);
    add(&l, sv_cell_text(name_of(r, g, by, &name)));
    if (by == SV_IO_PROCESS)
        add(&l, sv_cell_text(sv_io_role_name(g->role)));
    if (by != SV_IO_DEVICE)
        add_count(&l, g->opens);
    add_count(&l, g->reads);
    add_count(&l, g->writes);
    add_size(&l, g->bytes_read);
    add_size(&l, g->bytes_written);
    add_time(&l, (double)g->all.total_ns);
    add_latency_text(&l, &g->read);
    add_latency_text(&l, &g->write);
    add_time(&l, (double)g->all.max_ns);
    add_percent(&l, sv_io_sequential(g));
    if (by == SV_IO_PROCESS && r->n_block) {
        add_size(&l, g->block_bytes_read);
        add_size(&l, g->block_bytes_written);
        add_percent(&l, sv_io_cached(r, g));
    }
    if (by < SV_IO_DEVICE && r->n_faults) {
        add_size(&l, g->fault_bytes);
        add_count(&l, g->faults);
        add_time(&l, (double)g->fault_ns);
    }
    if (by < SV_IO_DEVICE && r->n_cache_misses)
        add_size(&l, g->cache_miss_bytes);
    add_count(&l, g->errors);
    int code = p->rows.row(&p->rows, l.cells, l.n, err);
    sv_buf_fini(&name);
    return code;
}

static int print_head(const struct sv_io_report *r, enum sv_io_by by, struct sv_printer *p,
                      struct sv_err *err)
{
    const char *names[CELLS_MAX];
    size_t n = 0;
    names[n++] = sv_io_by_names[by];
    if (by == SV_IO_PROCESS)
        names[n++] = "role";
    if (by != SV_IO_DEVICE)
        names[n++] = by == SV_IO_PEER ? "connections" : "opens";
    static const char *const common[] = {"reads",     "writes",   "read",      "written",
                                         "time",      "read p50", "read p99",  "write p50",
                                         "write p99", "max",      "sequential"};
    for (size_t i = 0; i < sizeof common / sizeof *common; i++)
        names[n++] = common[i];
    if (by == SV_IO_PROCESS && r->n_block) {
        names[n++] = "from disk";
        names[n++] = "to disk";
        names[n++] = "cached";
    }
    if (by < SV_IO_DEVICE && r->n_faults) {
        names[n++] = "mapped";
        names[n++] = "faults";
        names[n++] = "in faults";
    }
    if (by < SV_IO_DEVICE && r->n_cache_misses)
        names[n++] = "not cached";
    names[n++] = "errors";
    return p->rows.head(&p->rows, names, n, err);
}

static void print_roles(const struct sv_io_report *r, size_t rows)
{
    struct sv_buf name;
    sv_buf_init(&name, 1u << 20);
    for (size_t i = 0; i < rows; i++) {
        const struct sv_io_group *g = &r->by[SV_IO_PROCESS].groups[i];
        if (*g->why)
            sv_print(stdout, "  %s is %s: %s\n", name_of(r, g, SV_IO_PROCESS, &name),
                     g->role ? sv_io_role_name(g->role) : "not classified", g->why);
    }
    sv_buf_fini(&name);
}

static int print_groups(const struct report *o, const struct sv_io_report *r, enum sv_io_by by,
                        struct sv_err *err)
{
    static const char *const titles[] = {"Processes", "Files", "Folders", "Devices", "Peers (TCP)"};
    const struct sv_io_groups *groups = &r->by[by];
    size_t rows = rows_of(o, groups->n);
    struct sv_printer *p;
    if (groups->n == 0)
        return 0;
    sv_print_styled(stdout, SV_BOLD, "\n%s", titles[by]);
    sv_print(stdout, rows < groups->n ? ": %zu of %zu, by time\n" : "\n", rows, groups->n);
    (void)fflush(stdout);
    int code = sv_printer_open("table", &p, err);
    if (code < 0)
        return code;
    code = print_head(r, by, p, err);
    for (size_t i = 0; i < rows && code >= 0; i++)
        code = print_group(r, &groups->groups[i], by, p, err);
    if (code >= 0)
        code = p->rows.end(&p->rows, err);
    int closed = sv_printer_close(p, err);
    if (by == SV_IO_PROCESS && code >= 0)
        print_roles(r, rows);
    return code < 0 ? code : closed;
}

static void print_sizes(const struct sv_io_report *r)
{
    uint64_t most = 0;
    for (size_t i = 0; i < SV_IO_SIZES; i++)
        most = r->total.sizes[i] > most ? r->total.sizes[i] : most;
    if (!most)
        return;
    sv_print_styled(stdout, SV_BOLD, "\nSizes of reads and writes\n");
    for (size_t i = 0; i < SV_IO_SIZES; i++) {
        char from[32], count[32];
        if (!r->total.sizes[i])
            continue;
        sv_human_bytes(from, i ? (uint64_t)1 << (i - 1) : 0);
        int width = (int)(r->total.sizes[i] * 40 / most);
        sv_print(stdout, "  %s %10s  %10s  %.*s\n", i ? "from" : "    ", from,
                 sv_human_count(count, r->total.sizes[i]), width ? width : 1,
                 "########################################");
    }
}

/* Spans of one name together. */
struct span_sum {
    sv_str name;
    size_t n;
    int64_t dur_ns, own_ns, any_ns, worst_own_ns;
    uint64_t opens, reads, bytes_read, bytes_written, bytes_missed, bytes_mapped;
};

/* "step 17" and "ProfilerStep#17" are steps like the others; of epochs each counts for itself: the
 * first one may be cold. */
static struct sv_text stem_of(struct sv_text name)
{
    if (name.len >= 5 && strncasecmp(name.bytes, "epoch", 5) == 0)
        return name;
    while (name.len && ((name.bytes[name.len - 1] >= '0' && name.bytes[name.len - 1] <= '9') ||
                        strchr(" #_", name.bytes[name.len - 1])))
        name.len--;
    return name;
}

static size_t sum_spans(const struct sv_io_report *r, struct span_sum **out)
{
    size_t n = 0, cap = 0;
    *out = NULL;
    for (size_t i = 0; i < r->n_spans; i++) {
        const struct sv_io_span *s = &r->spans[i];
        struct sv_text name = stem_of(sv_dict_text(r->trace->dict, s->name));
        sv_str stem = sv_dict_str(r->strings, name.bytes, name.len);
        size_t k = 0;
        while (k < n && (*out)[k].name != stem)
            k++;
        if (k == n && n < 256) {
            *out = sv_grow(*out, &cap, n + 1, sizeof **out);
            (*out)[n++] = (struct span_sum){.name = stem};
        }
        if (k == n)
            continue;
        struct span_sum *sum = &(*out)[k];
        sum->n++;
        sum->dur_ns = sv_sat_add(sum->dur_ns, s->dur_ns);
        sum->own_ns = sv_sat_add(sum->own_ns, s->own_ns);
        sum->any_ns = sv_sat_add(sum->any_ns, s->any_ns);
        sum->worst_own_ns = s->own_ns > sum->worst_own_ns ? s->own_ns : sum->worst_own_ns;
        sum->opens += s->opens;
        sum->reads += s->reads;
        sum->bytes_read += s->bytes_read;
        sum->bytes_written += s->bytes_written;
        sum->bytes_missed += s->bytes_missed;
        sum->bytes_mapped += s->bytes_mapped;
    }
    return n;
}

static int print_spans(const struct report *o, const struct sv_io_report *r, struct sv_err *err)
{
    static const char *const names[] = {"name",          "count",   "mean time", "own I/O",
                                        "worst own I/O", "any I/O", "opens",     "reads",
                                        "read",          "written", "mapped",    "from disk"};
    struct span_sum *sums;
    struct sv_printer *p = NULL;
    size_t n = sum_spans(r, &sums);
    int code = 0, closed = 0;
    if (n) {
        sv_print_styled(stdout, SV_BOLD, "\nSteps and phases");
        sv_print(stdout, " (own I/O: threads of its process in I/O, added up; any: at least one "
                         "thread of the run)\n");
        (void)fflush(stdout);
        code = sv_printer_open("table", &p, err);
        if (code >= 0)
            code = p->rows.head(&p->rows, names, sizeof names / sizeof *names, err);
    }
    for (size_t i = 0; i < rows_of(o, n) && code >= 0; i++) {
        struct line l = {0};
        struct sv_text name = sv_dict_text(r->strings, sums[i].name);
        double count = (double)sums[i].n, dur = sums[i].dur_ns ? (double)sums[i].dur_ns : 1;
        add(&l, (struct sv_cell){.type = SV_CELL_TEXT, .text = name.bytes, .len = name.len});
        add_count(&l, sums[i].n);
        add_time(&l, (double)sums[i].dur_ns / count);
        add_time(&l, (double)sums[i].own_ns / count);
        add_time(&l, (double)sums[i].worst_own_ns);
        add_percent(&l, (double)sums[i].any_ns / dur);
        add_count(&l, sums[i].opens);
        add_count(&l, sums[i].reads);
        add_size(&l, sums[i].bytes_read);
        add_size(&l, sums[i].bytes_written);
        if (r->n_faults)
            add_size(&l, sums[i].bytes_mapped);
        else
            add(&l, sv_cell_text("-"));
        if (r->n_cache_misses)
            add_size(&l, sums[i].bytes_missed);
        else
            add(&l, sv_cell_text("-")); /* not recorded */
        code = p->rows.row(&p->rows, l.cells, l.n, err);
    }
    if (n && code >= 0)
        code = p->rows.end(&p->rows, err);
    if (p)
        closed = sv_printer_close(p, err);
    free(sums);
    return code < 0 ? code : closed;
}

/* Pipes, sockets, terminals and others, each on a line. */
static void print_kinds(const struct sv_io_report *r)
{
    static const char *const names[SV_N_FILE_KINDS] = {
        [SV_FILE_UNKNOWN] = "descriptors that are not known",
        [SV_FILE_PIPE] = "pipes",
        [SV_FILE_SOCKET] = "sockets",
        [SV_FILE_TERMINAL] = "terminals",
        [SV_FILE_OTHER] = "devices and others"};
    char calls[32], read[32], written[32], time[32];
    for (int k = 0; k < SV_N_FILE_KINDS; k++) {
        const struct sv_io_kind_sum *s = &r->kinds[k];
        if (!names[k] || !s->calls || (k == SV_FILE_UNKNOWN && !r->knows_paths))
            continue;
        sv_print(stdout, "not counted: %s, %s calls, %s read, %s written, %s in them\n", names[k],
                 sv_human_count(calls, s->calls), sv_human_bytes(read, s->bytes_read),
                 sv_human_bytes(written, s->bytes_written), sv_human_ns(time, s->time_ns));
    }
}

static void print_verdicts(const struct sv_io_report *r)
{
    for (size_t i = 0; i < r->n_verdicts; i++)
        sv_print(stdout, "%s: %s\n", r->verdicts[i].name, r->verdicts[i].figures);
}

static void print_summary(const struct sv_io_report *r)
{
    char calls[32], blocks[32], read[32], written[32], time[32], from_disk[32];
    const struct sv_io_group *t = &r->total;
    sv_print(stdout, "%s calls on files, %s read, %s written, %s in I/O over all threads\n",
             sv_human_count(calls, r->n_calls), sv_human_bytes(read, t->bytes_read),
             sv_human_bytes(written, t->bytes_written), sv_human_ns(time, t->all.total_ns));
    if (r->n_block)
        sv_print(stdout, "%s block requests read %s from the disks; ",
                 sv_human_count(blocks, r->n_block - r->n_other_block),
                 sv_human_bytes(from_disk, t->block_bytes_read));
    double cached = sv_io_cached(r, t);
    if (cached >= 0)
        sv_print(stdout, "at least %.0f %% of what was read came from the page cache\n",
                 cached * 100);
    else
        sv_print(stdout, r->n_block
                             ? "nothing was read by calls\n"
                             : "no block requests in the trace: page cache hits are unknown\n");
    if (r->n_cache_misses)
        sv_print(stdout, "%s page cache misses brought %s, %s of them by readahead\n",
                 sv_human_count(calls, r->n_cache_misses),
                 sv_human_bytes(read, t->cache_miss_bytes),
                 sv_human_bytes(from_disk, t->ahead_bytes));
    if (t->created_bytes)
        sv_print(stdout, "writes made %s of pages, for which nothing was read\n",
                 sv_human_bytes(written, t->created_bytes));
    if (r->n_other_block)
        sv_print(stdout,
                 "not counted: %s block requests of others (write-back included), %s read, %s "
                 "written\n",
                 sv_human_count(blocks, r->n_other_block),
                 sv_human_bytes(read, r->other_block_bytes_read),
                 sv_human_bytes(written, r->other_block_bytes_written));
    print_kinds(r);
    print_verdicts(r);
}

/* Whether anything is known of files and disks. */
static bool has_files(const struct sv_io_report *r)
{
    return r->n_calls || r->n_block || r->n_faults || r->n_cache_misses;
}

static void print_transfers(const struct sv_io_report *r)
{
    char count[32], read[32], written[32], time[32];
    uint64_t n = 0, in = 0, out = 0;
    int64_t ns = 0;
    for (size_t i = 0; i < r->by[SV_IO_PEER].n; i++) {
        const struct sv_io_group *g = &r->by[SV_IO_PEER].groups[i];
        n += g->reads + g->writes;
        in += g->bytes_read;
        out += g->bytes_written;
        ns = sv_sat_add(ns, g->all.total_ns);
    }
    sv_print(stdout,
             "no calls on files in the trace; %s transfers over TCP, %s received, %s sent, %s in "
             "them over all threads\n",
             sv_human_count(count, n), sv_human_bytes(read, in), sv_human_bytes(written, out),
             sv_human_ns(time, ns));
}

static int print_text(const struct report *o, const struct sv_io_report *r, struct sv_err *err)
{
    int code = 0;
    if (has_files(r))
        print_summary(r);
    else
        print_transfers(r);
    for (int by = 0; by < SV_N_IO_BY && code >= 0; by++)
        if (o->section < 0 || o->section == by)
            code = print_groups(o, r, (enum sv_io_by)by, err);
    if (code >= 0 && o->section < 0 && has_files(r))
        print_sizes(r);
    if (code >= 0 && (o->section < 0 || o->section == BY_SPAN))
        code = print_spans(o, r, err);
    return code;
}

/* ---- for programs: one list of columns for JSON and CSV ---- */

static const char *const columns[] = {
    "name",
    "pid",
    "role",
    "opens",
    "reads",
    "writes",
    "syncs",
    "maps",
    "others",
    "errors",
    "bytes_read",
    "bytes_written",
    "time_ns",
    "p50_ns",
    "p90_ns",
    "p99_ns",
    "max_ns",
    "read_p50_ns",
    "read_p90_ns",
    "read_p99_ns",
    "read_max_ns",
    "write_p50_ns",
    "write_p90_ns",
    "write_p99_ns",
    "write_max_ns",
    "sequential",
    "random",
    "block_reads",
    "block_bytes_read",
    "block_writes",
    "block_bytes_written",
    "cache_misses",
    "cached",
    "sizes",
    "why",
    "cache_miss_bytes",
    "faults",
    "fault_bytes",
    "fault_ns",
};
#define N_COLUMNS (sizeof columns / sizeof *columns)
_Static_assert(N_COLUMNS <= CELLS_MAX, "a cell per column");

static void add_latency(struct line *l, const struct sv_io_latency *t)
{
    add(l, t->n ? sv_cell_real(t->p50_ns) : sv_cell_null());
    add(l, t->n ? sv_cell_real(t->p90_ns) : sv_cell_null());
    add(l, t->n ? sv_cell_real(t->p99_ns) : sv_cell_null());
    add(l, t->n ? sv_cell_int(t->max_ns) : sv_cell_null());
}

/* "4096=12 8192=3": the least size of each class and how many there were. */
static const char *sizes_of(const struct sv_io_group *g, struct sv_buf *b)
{
    sv_buf_clear(b);
    for (size_t i = 0; i < SV_IO_SIZES; i++)
        if (g->sizes[i])
            sv_buf_printf(b, "%s%" PRIu64 "=%" PRIu64, b->len ? " " : "",
                          i ? (uint64_t)1 << (i - 1) : 0, g->sizes[i]);
    return sv_buf_cstr(b);
}

static void fill(const struct sv_io_report *r, const struct sv_io_group *g, enum sv_io_by by,
                 struct line *l, struct sv_buf *sizes)
{
    const struct sv_dict *d = r->trace->dict;
    struct sv_text name = by == SV_IO_PROCESS ? sv_dict_text(d, d->tracks[g->process].name)
                                              : sv_dict_text(r->strings, g->name);
    bool is_process = by == SV_IO_PROCESS && g->process;
    *l = (struct line){0};
    add(l, name.len ? (struct sv_cell){.type = SV_CELL_TEXT, .text = name.bytes, .len = name.len}
                    : sv_cell_null());
    add(l, is_process ? sv_cell_int(d->tracks[g->process].pid) : sv_cell_null());
    add(l, g->role ? sv_cell_text(sv_io_role_name(g->role)) : sv_cell_null());
    const uint64_t counts[] = {g->opens,  g->reads,  g->writes,     g->syncs,        g->maps,
                               g->others, g->errors, g->bytes_read, g->bytes_written};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        add_count(l, counts[i]);
    add(l, sv_cell_int(g->all.total_ns));
    add_latency(l, &g->all);
    add_latency(l, &g->read);
    add_latency(l, &g->write);
    const uint64_t more[] = {g->sequential,       g->random,       g->block_reads,
                             g->block_bytes_read, g->block_writes, g->block_bytes_written,
                             g->cache_misses};
    for (size_t i = 0; i < sizeof more / sizeof *more; i++)
        add_count(l, more[i]);
    double cached = by == SV_IO_PROCESS ? sv_io_cached(r, g) : -1;
    add(l, cached < 0 ? sv_cell_null() : sv_cell_real(cached));
    add(l, sv_cell_text(sizes_of(g, sizes)));
    add(l, *g->why ? sv_cell_text(g->why) : sv_cell_null());
    add_count(l, g->cache_miss_bytes);
    add_count(l, g->faults);
    add_count(l, g->fault_bytes);
    add(l, sv_cell_int(g->fault_ns));
}

static const char *const span_columns[] = {
    "name",  "category", "start_ns",   "dur_ns",        "own_io_ns",    "any_io_ns",   "opens",
    "reads", "writes",   "bytes_read", "bytes_written", "bytes_missed", "bytes_mapped"};
#define N_SPAN_COLUMNS (sizeof span_columns / sizeof *span_columns)

static void fill_span(const struct sv_io_report *r, const struct sv_io_span *s, struct line *l)
{
    struct sv_text name = sv_dict_text(r->trace->dict, s->name);
    struct sv_text cat = sv_dict_text(r->trace->dict, s->cat);
    *l = (struct line){0};
    add(l, (struct sv_cell){.type = SV_CELL_TEXT, .text = name.bytes, .len = name.len});
    add(l, (struct sv_cell){.type = SV_CELL_TEXT, .text = cat.bytes, .len = cat.len});
    const int64_t values[] = {s->ts_ns,
                              s->dur_ns,
                              s->own_ns,
                              s->any_ns,
                              (int64_t)s->opens,
                              (int64_t)s->reads,
                              (int64_t)s->writes,
                              (int64_t)s->bytes_read,
                              (int64_t)s->bytes_written};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        add(l, sv_cell_int(values[i]));
    add(l, r->n_cache_misses ? sv_cell_int((int64_t)s->bytes_missed) : sv_cell_null());
    add(l, r->n_faults ? sv_cell_int((int64_t)s->bytes_mapped) : sv_cell_null());
}

static int print_csv(const struct report *o, const struct sv_io_report *r, struct sv_err *err)
{
    struct sv_printer *p;
    struct sv_buf sizes;
    struct line l;
    bool is_span = o->section == BY_SPAN;
    enum sv_io_by by = o->section < 0 || is_span ? SV_IO_PROCESS : (enum sv_io_by)o->section;
    size_t n = rows_of(o, is_span ? r->n_spans : r->by[by].n);
    int code = sv_printer_open("csv", &p, err);
    if (code < 0)
        return code;
    sv_buf_init(&sizes, 1u << 16);
    code = p->rows.head(&p->rows, is_span ? span_columns : columns,
                        is_span ? N_SPAN_COLUMNS : N_COLUMNS, err);
    for (size_t i = 0; i < n && code >= 0; i++) {
        if (is_span)
            fill_span(r, &r->spans[i], &l);
        else
            fill(r, &r->by[by].groups[i], by, &l, &sizes);
        code = p->rows.row(&p->rows, l.cells, l.n, err);
    }
    if (code >= 0)
        code = p->rows.end(&p->rows, err);
    sv_buf_fini(&sizes);
    int closed = sv_printer_close(p, err);
    return code < 0 ? code : closed;
}

/* Calls by kind of descriptor, and the verdicts. */
static void put_kinds(struct sv_json *j, const struct sv_io_report *r)
{
    static const char *const names[] = {"kind", "calls", "bytes_read", "bytes_written", "time_ns"},
                             *const words[] = {"pattern", "figures"};
    sv_json_line(j);
    sv_json_put(j, "descriptor", begin, '[');
    for (int k = 0; k < SV_N_FILE_KINDS; k++) {
        const struct sv_io_kind_sum *s = &r->kinds[k];
        const struct sv_cell cells[] = {
            sv_cell_text(sv_file_kind_names[k]), sv_cell_int((int64_t)s->calls),
            sv_cell_int((int64_t)s->bytes_read), sv_cell_int((int64_t)s->bytes_written),
            sv_cell_int(s->time_ns)};
        sv_json_line(j);
        sv_cells_json(j, names, cells, 5);
    }
    sv_json_end(j);
    sv_json_line(j);
    sv_json_put(j, "pattern", begin, '[');
    for (size_t i = 0; i < r->n_verdicts; i++) {
        const struct sv_cell cells[] = {sv_cell_text(r->verdicts[i].name),
                                        sv_cell_text(r->verdicts[i].figures)};
        sv_json_line(j);
        sv_cells_json(j, words, cells, 2);
    }
    sv_json_end(j);
}

static int print_json(const struct report *o, const struct sv_io_report *r, struct sv_err *err)
{
    struct sv_buf b, sizes;
    struct sv_json j;
    struct line l;
    sv_buf_init(&b, (size_t)1 << 30);
    sv_buf_init(&sizes, 1u << 16);
    sv_json_init(&j, &b);
    sv_json_begin(&j, '{');
    sv_json_put(&j, "version", u64, SV_REPORT_FORM);
    sv_json_put(&j, "calls", u64, r->n_calls);
    sv_json_put(&j, "block_requests", u64, r->n_block);
    sv_json_put(&j, "other_block_requests", u64, r->n_other_block);
    sv_json_put(&j, "other_block_bytes_read", u64, r->other_block_bytes_read);
    sv_json_put(&j, "other_block_bytes_written", u64, r->other_block_bytes_written);
    sv_json_put(&j, "span_ns", i64, sv_sat_sub(r->trace->last_ns, r->trace->first_ns));
    sv_json_line(&j);
    sv_json_lit(&j, "total");
    fill(r, &r->total, SV_IO_PROCESS, &l, &sizes);
    sv_cells_json(&j, columns, l.cells, l.n);
    if (o->section < 0)
        put_kinds(&j, r);
    for (int by = 0; by <= SV_N_IO_BY; by++) {
        bool is_span = by == BY_SPAN;
        if (o->section >= 0 && o->section != by)
            continue;
        const char *name = is_span ? "span" : sv_io_by_names[by];
        sv_json_line(&j);
        sv_json_key(&j, name, strlen(name));
        sv_json_begin(&j, '[');
        size_t n = rows_of(o, is_span ? r->n_spans : r->by[by].n);
        for (size_t i = 0; i < n; i++) {
            if (is_span)
                fill_span(r, &r->spans[i], &l);
            else
                fill(r, &r->by[by].groups[i], (enum sv_io_by)by, &l, &sizes);
            sv_json_line(&j);
            sv_cells_json(&j, is_span ? span_columns : columns, l.cells, l.n);
        }
        sv_json_end(&j);
    }
    sv_json_end(&j);
    sv_buf_byte(&b, '\n');
    int code = sv_report_write(o->options, &b, err);
    sv_buf_fini(&b);
    sv_buf_fini(&sizes);
    return code;
}

/* ---- the subject ---- */

static int section_of(const char *by)
{
    if (!by)
        return -1;
    for (int i = 0; i < SV_N_IO_BY; i++)
        if (strcmp(by, sv_io_by_names[i]) == 0)
            return i;
    return BY_SPAN;
}

static int run_io(const struct sv_report_options *options, const struct sv_trace *t,
                  struct sv_err *err)
{
    struct report o = {
        .options = options, .limit = options->limit, .section = section_of(options->by)};
    struct sv_io_report r;
    int code;
    sv_io_report_make(&r, t);
    if (!has_files(&r) && !r.by[SV_IO_PEER].n)
        code = sv_error(
            err, SV_EINPUT,
            "%s has no I/O: no slices of category syscall, io, vfs, block, fault or network",
            options->path);
    else if (options->json)
        code = print_json(&o, &r, err);
    else
        code = options->csv ? print_csv(&o, &r, err) : print_text(&o, &r, err);
    sv_io_report_fini(&r);
    return code;
}

const struct sv_report_subject sv_io_report = {
    .name = "io",
    .sections = "process file folder device peer span",
    .options = "assume",
    .takes_many = true,
    .run = run_io,
};
