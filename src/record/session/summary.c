/* What `stave record` says at the end: the slowest files, the busiest processes, where the trace
 * is. On standard error: standard output is the command's. */
#include "cli/console.h"
#include "core/files/claim.h"
#include "record/decode/short_calls.h"
#include "record/session/recorder.h"
#include "sdk/session/folders.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

enum { ROWS = 5, PATH_SHOWN = 60 };

static int by_time(const void *a, const void *b)
{
    const struct sv_file *x = *(const struct sv_file *const *)a;
    const struct sv_file *y = *(const struct sv_file *const *)b;
    return x->time_ns < y->time_ns ? 1 : x->time_ns > y->time_ns ? -1 : strcmp(x->path, y->path);
}

static int by_process_time(const void *a, const void *b)
{
    const struct sv_gone *x = a, *y = b;
    return x->time_ns < y->time_ns ? 1 : x->time_ns > y->time_ns ? -1 : 0;
}

static bool ends_with(const struct sv_file *f, const char *end)
{
    size_t n = strlen(end);
    return f->len > n && memcmp(f->path + f->len - n, end, n) == 0;
}

/* A growing file that is whole by now has the name without the suffix: that much of the path. */
static size_t present_len(const struct sv_file *f)
{
    struct stat st;
    if (!ends_with(f, SV_PART_SUFFIX) || stat(f->path, &st) == 0)
        return f->len;
    size_t len = f->len - strlen(SV_PART_SUFFIX);
    char *whole = sv_alloc(len + 1);
    memcpy(whole, f->path, len);
    bool is_there = stat(whole, &st) == 0;
    free(whole);
    return is_there ? len : f->len;
}

/* As the trace has it (--redact). The end of a path says more than its beginning. Bytes that a
 * terminal would obey are masked. */
static void shorten(const struct sv_recorder *r, const struct sv_file *f, char text[PATH_SHOWN + 4])
{
    size_t len = present_len(f), n = 0;
    char *other = r->options->redact ? sv_redact_text(&r->system.redact, "path", f->path, len, &len)
                                     : NULL;
    const char *from = other ? other : f->path;
    if (len > PATH_SHOWN) {
        memcpy(text, "…", strlen("…"));
        n = strlen("…");
        from += len - (PATH_SHOWN - 1);
        len = PATH_SHOWN - 1;
    }
    for (size_t i = 0; i < len; i++)
        text[n++] = (unsigned char)from[i] < 32 || from[i] == 127 ? '?' : from[i];
    text[n] = 0;
    free(other);
}

static bool is_below(const char *path, const char *folder)
{
    size_t n = folder ? strlen(folder) : 0;
    return n && strncmp(path, folder, n) == 0 && path[n] == '/';
}

/* What sessions and their folders hold (session_files.c, collect.c). */
static bool is_name_in_session(const char *name)
{
    int n = 0;
    return strcmp(name, "session") == 0 || strcmp(name, "names") == 0 ||
           strncmp(name, "ring.", 5) == 0 || strncmp(name, "record-", 7) == 0 ||
           (sscanf(name, "%*[0-9]-%*[0-9a-f]%n", &n) == 0 && n > 0 && name[n] == '\0');
}

/* A session or a marker of this recorder or of another one that was recorded, which is gone when it
 * has ended. */
static bool is_own(const struct sv_file *f)
{
    struct sv_folder folders[SV_FOLDERS_MAX];
    struct stat st;
    const char *name = strrchr(f->path, '/') + 1;
    if (is_below(f->path, getenv("STAVE_SESSION")))
        return true;
    bool is_marker = ends_with(f, SV_CLAIM_SUFFIX) ||
                     (strstr(name, SV_CLAIM_SUFFIX) && ends_with(f, ".new"));
    if ((!is_marker && !is_name_in_session(name)) || stat(f->path, &st) == 0)
        return false;
    size_t n = is_marker ? 0 : sv_folders(folders);
    for (size_t i = 0; i < n; i++)
        is_marker |= is_below(f->path, folders[i].path);
    return is_marker;
}

/* What a person would call a slow file: not a pipe or socket, whose reader waits for another
 * process, and not our own rings. */
static bool is_file(const struct sv_file *f)
{
    return f->opens + f->reads + f->writes > 0 && f->path[0] == '/' && !is_own(f);
}

static void show_files(const struct sv_recorder *r)
{
    const struct sv_tree *t = sv_decode_tree(r->system.decode);
    struct sv_file **all = sv_alloc((t->n_files + 1) * sizeof *all);
    size_t n = 0;
    for (size_t i = 0; i < t->n_buckets; i++)
        for (struct sv_file *f = t->buckets[i]; f; f = f->next)
            if (is_file(f))
                all[n++] = f;
    qsort(all, n, sizeof *all, by_time);
    if (n > 0)
        sv_print(stderr, "\n  %10s %10s %8s %10s %10s  slowest files (%zu in all)\n", "time",
                 "longest", "calls", "read", "written", n + t->n_forgotten_files);
    for (size_t i = 0; i < n && i < ROWS; i++) {
        char a[32], b[32], c[32], d[32], path[PATH_SHOWN + 4];
        uint64_t calls = all[i]->opens + all[i]->reads + all[i]->writes;
        shorten(r, all[i], path);
        sv_print(stderr, "  %10s %10s %8llu %10s %10s  %s\n", sv_human_ns(a, all[i]->time_ns),
                 sv_human_ns(b, all[i]->longest_ns), (unsigned long long)calls,
                 sv_human_bytes(c, all[i]->read_bytes), sv_human_bytes(d, all[i]->written_bytes),
                 path);
    }
    free(all);
}

static void add_calls(struct sv_gone *to, const struct sv_gone *from)
{
    to->calls += from->calls;
    to->time_ns += from->time_ns;
    to->bytes_read += from->bytes_read;
    to->bytes_written += from->bytes_written;
}

/* Both sides may have seen calls of a process. */
static size_t add_inside(struct sv_gone *all, size_t n, const struct sv_inside *x)
{
    bool *is_in = sv_alloc(x->n + 1);
    for (size_t k = 0; x->n > 0 && k < n; k++) {
        const uint64_t *at = sv_map_find(&x->by_pid, all[k].pid);
        if (at && !is_in[*at - 1]) {
            add_calls(&all[k], &x->all[*at - 1]);
            is_in[*at - 1] = true;
        }
    }
    for (size_t i = 0; i < x->n; i++)
        if (!is_in[i])
            all[n++] = x->all[i];
    free(is_in);
    return n;
}

static void show_processes(const struct sv_tree *t, const struct sv_inside *x)
{
    struct sv_gone *all = sv_alloc((t->n + t->n_gone + x->n + 1) * sizeof *all);
    size_t n = 0;
    for (; n < t->n_gone; n++)
        all[n] = t->gone[n];
    for (size_t i = 0; i < t->n; i++) {
        const struct sv_proc *p = t->processes[i];
        if (p->calls == 0)
            continue;
        all[n] = (struct sv_gone){.pid = p->pid,
                                  .calls = p->calls,
                                  .bytes_read = p->bytes_read,
                                  .bytes_written = p->bytes_written,
                                  .time_ns = p->time_ns};
        memcpy(all[n++].name, p->name, sizeof p->name);
    }
    n = add_inside(all, n, x);
    qsort(all, n, sizeof *all, by_process_time);
    uint64_t n_all = n - t->n_gone + t->n_forgotten_active;
    if (n > 0)
        sv_print(stderr, "\n  %10s %10s %8s %10s %10s  busiest processes (%llu in all)\n",
                 "in calls", "", "calls", "read", "written", (unsigned long long)n_all);
    for (size_t i = 0; i < n && i < ROWS; i++) {
        char a[32], b[32], c[32];
        sv_print(stderr, "  %10s %10s %8llu %10s %10s  %s (%u)\n", sv_human_ns(a, all[i].time_ns),
                 "", (unsigned long long)all[i].calls, sv_human_bytes(b, all[i].bytes_read),
                 sv_human_bytes(c, all[i].bytes_written), all[i].name, all[i].pid);
    }
    free(all);
}

int64_t sv_recorder_cpu_ns(void)
{
    struct rusage u;
    if (getrusage(RUSAGE_SELF, &u) != 0)
        return 0;
    return (int64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000000 +
           (int64_t)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1000;
}

/* `more`: that the totals do not have. */
static void show_sum(const struct sv_totals *t, unsigned probe, const struct sv_probe_sum *s,
                     uint64_t more)
{
    char text[32];
    uint64_t n = more + (s->of ? sv_totals_sum(t, probe, s->of) : 0);
    if (n == 0 && !s->is_always)
        return;
    sv_print(stderr, "%s%s %s", s->is_always ? "" : ", ",
             s->of == SV_SUM_BYTES ? sv_human_bytes(text, n) : sv_human_count(text, n), s->text);
}

/* The line of sums: system calls, where they could be recorded, and processes, then what else there
 * was. */
static void show_sums(const struct sv_recorder *r)
{
    const struct sv_inside *x = &r->collected.inside;
    bool has_calls = r->system.kernel || x->n_calls > 0;
    const struct sv_tree *t = sv_decode_tree(r->system.decode);
    uint64_t processes = t->n + t->n_forgotten + sv_inside_others(x);
    uint64_t calls = x->n_calls + sv_short_calls_summed(sv_decode_short_calls(r->system.decode));
    for (unsigned k = 0; k < SV_PROBE_SUMS; k++)
        for (unsigned i = 0; i < SV_N_PROBES; i++) {
            if (has_calls || !sv_probes[i]->sums[k].is_always)
                show_sum(&r->system.totals, i, &sv_probes[i]->sums[k],
                         i == SV_PROBE_syscalls && k == 0 ? calls : 0);
            if (k == 0 && i == SV_PROBE_process)
                sv_print(stderr, "%s%llu process%s", has_calls ? ", " : "",
                         (unsigned long long)processes, processes == 1 ? "" : "es");
        }
    sv_print(stderr, "\n");
}

/* By what was lost: which ring was full, and what would fill it less. */
static void advise(const struct sv_recorder *r)
{
    const char *said[SV_N_PROBES] = {0};
    char size[32];
    unsigned n = 0;
    for (size_t i = 0; i < r->losses.n; i++) {
        const struct sv_probe *p = sv_probe_that_lost(r->losses.rows[i].what);
        bool is_said = !p;
        for (unsigned k = 0; k < n && !is_said; k++)
            is_said = said[k] == p->less || (p->less && said[k] && !strcmp(said[k], p->less));
        if (!is_said)
            said[n++] = p->less;
    }
    if (n == 0) /* an interrupt came while a record was written, or the kernel had no memory */
        return;
    sv_print(stderr, "    stave did not empty the rings in time; a larger --ring");
    if (r->system.kernel)
        sv_print(stderr, " (%s each now)",
                 sv_human_bytes(size, sv_kernel_ring_bytes(r->system.kernel)));
    for (unsigned k = 0; k < n; k++)
        if (said[k])
            sv_print(stderr, ", %s", said[k]);
    sv_print(stderr, " would help\n");
}

static void show_losses(const struct sv_recorder *r)
{
    char a[32];
    if (!r->losses.sum)
        return;
    sv_print_styled(stderr, SV_RED, "  %s events were lost\n", sv_human_count(a, r->losses.sum));
    for (size_t i = 0; i < r->losses.n; i++)
        sv_print(stderr, "    CPU %u: %llu %s\n", r->losses.rows[i].cpu,
                 (unsigned long long)r->losses.rows[i].n, r->losses.rows[i].what);
    advise(r);
}

void sv_recorder_summary(const struct sv_recorder *r)
{
    char a[32], b[32], c[32];
    struct stat st;
    struct rusage own;
    const struct sv_tree *t = sv_decode_tree(r->system.decode);
    if (sv_common.quiet)
        return;
    show_files(r);
    show_processes(t, &r->collected.inside);
    sv_print(stderr, "\n  %s recorded: ",
             sv_human_ns(a, (r->times.stopped_ns ? r->times.stopped_ns : r->times.round_ns) -
                                r->times.started_ns));
    show_sums(r);
    show_losses(r);
    if (r->system.kernel) {
        struct sv_kernel_sums k = sv_kernel_count(r->system.kernel);
        if (k.filtered)
            sv_print(stderr, "  %s %s calls left out\n", sv_human_count(a, k.filtered),
                     r->options->prefix ? "filtered" : "shorter");
        if (k.no_stack)
            sv_print(stderr,
                     "  %s waits have only their innermost function, or no stack of their waker: "
                     "there were more than 400 a second on a CPU%s; a longer --offcpu-min would "
                     "leave stacks to the longer ones\n",
                     sv_human_count(a, k.no_stack),
                     r->options->budget ? ", or --budget gave them up" : "");
        if (k.foreign)
            sv_print(stderr, "  %s calls of 32-bit programs left out\n",
                     sv_human_count(a, k.foreign));
        if (k.invisible)
            sv_print(stderr,
                     "  %s threads were not followed: they are outside of this pid namespace%s\n",
                     sv_human_count(a, k.invisible),
                     sv_kernel_hooks(r->system.kernel) == SV_HOOKS_PLAIN
                         ? ", or inside of another one, which plain tracepoints do not see"
                         : "");
    }
    sv_record_ladder_summary(r);
    sv_record_gpus_summary(r);
    if (getrusage(RUSAGE_SELF, &own) == 0)
        sv_print(stderr,
                 "  stave itself: %s of CPU, %s of it during the recording, %s of memory at most\n",
                 sv_human_ns(a, sv_recorder_cpu_ns()), sv_human_ns(c, r->times.cpu_ran_ns),
                 sv_human_bytes(b, (uint64_t)own.ru_maxrss * 1024));
    if (r->output.is_dropped)
        return;
    const char *trace = r->output.is_kept ? r->output.part : r->output.claim.out;
    if (stat(trace, &st) == 0)
        sv_print(stderr, "  %s (%s)\n", trace, sv_human_bytes(a, (uint64_t)st.st_size));
}
