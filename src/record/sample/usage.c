/* Samples /proc. Called by the recorder at its interval; numbers that the kernel counts up become
 * means over the time since the last sample.
 *
 * Lines that do not look as expected are left out: a missing value is no value, never 0. */
#include "record/sample/usage.h"
#include "record/decode/values.h"
#include "record/sample/disks.h"
#include "record/sample/procfs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CPU_FIELDS = 10, DISK_FIELDS = 11, TEXT_MAX = 1 << 20, SECTOR = 512 };
#define GONE_AFTER_NS ((int64_t)2000000000)

/* Something that counts up: what it was at the last sample, and the rows it is drawn on. */
struct gauge {
    char name[32];
    uint64_t last[DISK_FIELDS];
    sv_track tracks[DISK_FIELDS];
    bool is_active;
};

struct gauges {
    struct gauge *all;
    size_t n, cap, hint;
};

struct sv_usage {
    struct sv_source source;
    struct sv_tree *tree;
    char root[256];
    char *text;
    struct gauges cpus, disks, nets;
    sv_track memory[4];
    unsigned also; /* enum sv_usage_also */
    sv_track pressure[3], oom_kills;
    struct sv_values values;
    int64_t now_ns, last_ns;
    uint64_t turn;
    double ticks_per_s, page_bytes;
};

/* ---- rows ---- */

static sv_track group(struct sv_usage *u, sv_track parent, unsigned kind, const char *name)
{
    return sv_dict_child(u->source.dict, parent, kind, sv_dict_cstr(u->source.dict, name));
}

static sv_track counter(struct sv_usage *u, sv_track parent, const char *name, const char *unit)
{
    struct sv_dict *d = u->source.dict;
    sv_track t = sv_dict_child(d, parent, SV_TRACK_COUNTER, sv_dict_cstr(d, name));
    d->tracks[t].unit = sv_dict_cstr(d, unit);
    return t;
}

static void put_value(struct sv_usage *u, sv_track track, double v)
{
    sv_values_put(&u->values, track, v);
}

/* Lines come in the same order every time, so the search begins after the last hit. */
static struct gauge *gauge_of(struct gauges *g, const char *name, bool *is_new)
{
    *is_new = false;
    for (size_t i = 0; i < g->n; i++) {
        size_t at = (g->hint + i) % g->n;
        if (strcmp(g->all[at].name, name) == 0) {
            g->hint = at + 1;
            return &g->all[at];
        }
    }
    *is_new = true;
    g->all = sv_grow(g->all, &g->cap, g->n + 1, sizeof *g->all);
    struct gauge *x = &g->all[g->n++];
    *x = (struct gauge){0};
    snprintf(x->name, sizeof x->name, "%s", name);
    g->hint = g->n;
    return x;
}

static size_t read_text(struct sv_usage *u, const char *name)
{
    char path[320];
    snprintf(path, sizeof path, "%s/%s", u->root, name);
    return sv_procfs_text(path, u->text, TEXT_MAX);
}

/* Up to `max` numbers; returns how many there were. */
static size_t numbers(const char *at, uint64_t *to, size_t max)
{
    size_t n = 0;
    char *end;
    while (n < max) {
        while (*at == ' ' || *at == '\t')
            at++;
        if (*at < '0' || *at > '9')
            break;
        to[n++] = strtoull(at, &end, 10);
        at = end;
    }
    return n;
}

static double seconds(const struct sv_usage *u)
{
    return (double)(u->now_ns - u->last_ns) / 1e9;
}

/* Counters of the kernel may jump back (a device is replaced): that is no rate. */
static double difference(uint64_t now, uint64_t last)
{
    return now >= last ? (double)(now - last) : 0;
}

/* ---- CPUs ---- */

static void cpu_rows(struct sv_usage *u, struct gauge *g)
{
    static const char *const names[CPU_FIELDS] = {"user",   "nice",      "system",  "idle",
                                                  "iowait", "irq",       "softirq", "steal",
                                                  "guest",  "guest_nice"};
    sv_track parent = group(u, 0, SV_TRACK_CUSTOM, "CPU");
    if (g->name[3]) {
        char name[40];
        snprintf(name, sizeof name, "CPU %.20s", g->name + 3);
        parent = group(u, parent, SV_TRACK_CPU, name);
    }
    for (size_t i = 0; i < CPU_FIELDS; i++)
        g->tracks[i] = counter(u, parent, names[i], "%");
}

static void one_cpu(struct sv_usage *u, const char *name, const uint64_t *now)
{
    bool is_new;
    struct gauge *g = gauge_of(&u->cpus, name, &is_new);
    double all = 0;
    if (is_new)
        cpu_rows(u, g);
    for (size_t i = 0; i < 8; i++) /* guest time is in user time already */
        all += difference(now[i], g->last[i]);
    for (size_t i = 0; !is_new && all > 0 && i < CPU_FIELDS; i++) {
        if (i >= 8 && now[i] == 0)
            continue; /* no guests here */
        put_value(u, g->tracks[i], 100 * difference(now[i], g->last[i]) / all);
    }
    memcpy(g->last, now, CPU_FIELDS * sizeof *now);
}

static void sample_cpus(struct sv_usage *u)
{
    read_text(u, "stat");
    for (char *line = u->text, *next; strncmp(line, "cpu", 3) == 0; line = next) {
        next = strchr(line, '\n');
        if (!next)
            break;
        *next++ = 0;
        uint64_t now[CPU_FIELDS] = {0};
        size_t len = strcspn(line, " ");
        if (len >= 24 || numbers(line + len, now, CPU_FIELDS) < 5)
            continue;
        line[len] = 0;
        one_cpu(u, line, now);
    }
}

/* ---- memory ---- */

static bool memory_field(const char *text, const char *name, double *bytes)
{
    const char *at = strstr(text, name);
    uint64_t kib;
    if (!at || numbers(at + strlen(name), &kib, 1) != 1)
        return false;
    *bytes = (double)kib * 1024;
    return true;
}

static void sample_memory(struct sv_usage *u)
{
    double total, available, cached, dirty;
    if (!read_text(u, "meminfo"))
        return;
    if (!u->memory[0]) {
        static const char *const names[] = {"used", "available", "cached", "dirty"};
        sv_track parent = group(u, 0, SV_TRACK_CUSTOM, "Memory");
        for (size_t i = 0; i < 4; i++)
            u->memory[i] = counter(u, parent, names[i], "bytes");
    }
    if (memory_field(u->text, "MemAvailable:", &available)) {
        put_value(u, u->memory[1], available);
        if (memory_field(u->text, "MemTotal:", &total))
            put_value(u, u->memory[0], total - available);
    }
    if (memory_field(u->text, "\nCached:", &cached))
        put_value(u, u->memory[2], cached);
    if (memory_field(u->text, "\nDirty:", &dirty))
        put_value(u, u->memory[3], dirty);
}

/* ---- pressure, kills for want of memory ---- */

/* "some avg10=1.23 …" */
static void sample_pressure(struct sv_usage *u)
{
    static const char *const names[] = {"cpu", "memory", "io"};
    for (size_t i = 0; i < 3; i++) {
        char file[32];
        snprintf(file, sizeof file, "pressure/%s", names[i]);
        const char *at = read_text(u, file) ? strstr(u->text, "some avg10=") : NULL;
        if (!at)
            continue;
        if (!u->pressure[i])
            u->pressure[i] = counter(u, group(u, 0, SV_TRACK_CUSTOM, "Pressure"), names[i], "%");
        put_value(u, u->pressure[i], strtod(at + strlen("some avg10="), NULL));
    }
}

/* Of the whole machine since it was started; cgroups' own limits count, too. */
static void sample_oom_kills(struct sv_usage *u)
{
    uint64_t n;
    const char *at = read_text(u, "vmstat") ? strstr(u->text, "\noom_kill ") : NULL;
    if (!at || numbers(at + strlen("\noom_kill "), &n, 1) != 1)
        return;
    if (!u->oom_kills)
        u->oom_kills = counter(u, group(u, 0, SV_TRACK_CUSTOM, "Memory"), "oom kills", "count");
    put_value(u, u->oom_kills, (double)n);
}

void sv_usage_also(struct sv_usage *u, unsigned also)
{
    u->also |= also;
}

/* ---- disks and network ---- */

enum disk_field {
    READS,
    READ_SECTORS = 2,
    READ_MS,
    WRITES,
    WRITE_SECTORS = 6,
    WRITE_MS,
    QUEUE,
    BUSY_MS
};

static void disk_rows(struct sv_usage *u, struct gauge *g)
{
    sv_track disk = sv_disk_track(u->source.dict, g->name);
    g->tracks[READS] = counter(u, disk, "reads", "1/s");
    g->tracks[READ_SECTORS] = counter(u, disk, "read", "B/s");
    g->tracks[WRITES] = counter(u, disk, "writes", "1/s");
    g->tracks[WRITE_SECTORS] = counter(u, disk, "write", "B/s");
    g->tracks[READ_MS] = counter(u, disk, "read_wait", "ms");
    g->tracks[WRITE_MS] = counter(u, disk, "write_wait", "ms");
    g->tracks[QUEUE] = counter(u, disk, "queue", "requests");
    g->tracks[BUSY_MS] = counter(u, disk, "busy", "%");
}

static void wait_value(struct sv_usage *u, const struct gauge *g, const uint64_t *now,
                       size_t count_field, size_t ms_field)
{
    double n = difference(now[count_field], g->last[count_field]);
    if (n > 0)
        put_value(u, g->tracks[ms_field], difference(now[ms_field], g->last[ms_field]) / n);
}

static void one_disk(struct sv_usage *u, const char *name, const uint64_t *now)
{
    bool is_new;
    struct gauge *g = gauge_of(&u->disks, name, &is_new);
    double s = seconds(u);
    /* One that never did anything has no rows. */
    if (!is_new && !g->is_active && memcmp(g->last, now, DISK_FIELDS * sizeof *now) != 0) {
        disk_rows(u, g);
        g->is_active = true;
    }
    if (g->is_active && s > 0) {
        static const uint8_t rates[] = {READS, WRITES, READ_SECTORS, WRITE_SECTORS};
        for (size_t i = 0; i < 4; i++) {
            double scale = i < 2 ? 1 : SECTOR;
            put_value(u, g->tracks[rates[i]],
                      scale * difference(now[rates[i]], g->last[rates[i]]) / s);
        }
        double busy = difference(now[BUSY_MS], g->last[BUSY_MS]) / 10 / s;
        put_value(u, g->tracks[BUSY_MS], busy > 100 ? 100 : busy);
        put_value(u, g->tracks[QUEUE], (double)now[QUEUE]);
        wait_value(u, g, now, READS, READ_MS);
        wait_value(u, g, now, WRITES, WRITE_MS);
    }
    memcpy(g->last, now, DISK_FIELDS * sizeof *now);
}

static void sample_disks(struct sv_usage *u)
{
    char *rest = NULL;
    read_text(u, "diskstats");
    for (char *line = strtok_r(u->text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        char name[32];
        int used = 0;
        uint64_t now[DISK_FIELDS];
        if (sscanf(line, " %*u %*u %31s%n", name, &used) != 1 ||
            numbers(line + used, now, DISK_FIELDS) < DISK_FIELDS)
            continue;
        one_disk(u, name, now);
    }
}

static void one_net(struct sv_usage *u, const char *name, uint64_t received, uint64_t sent)
{
    bool is_new;
    struct gauge *g = gauge_of(&u->nets, name, &is_new);
    double s = seconds(u);
    if (!is_new && !g->is_active && (g->last[0] != received || g->last[1] != sent)) {
        sv_track net = group(u, group(u, 0, SV_TRACK_CUSTOM, "Network"), SV_TRACK_CUSTOM, name);
        g->tracks[0] = counter(u, net, "received", "B/s");
        g->tracks[1] = counter(u, net, "sent", "B/s");
        g->is_active = true;
    }
    if (g->is_active && s > 0) {
        put_value(u, g->tracks[0], difference(received, g->last[0]) / s);
        put_value(u, g->tracks[1], difference(sent, g->last[1]) / s);
    }
    g->last[0] = received;
    g->last[1] = sent;
}

static void sample_nets(struct sv_usage *u)
{
    char *rest = NULL;
    read_text(u, "net/dev");
    for (char *line = strtok_r(u->text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        char *colon = strchr(line, ':');
        uint64_t now[9];
        if (!colon || colon - line > 30)
            continue;
        *colon = 0;
        if (numbers(colon + 1, now, 9) == 9)
            one_net(u, line + strspn(line, " "), now[0], now[8]);
    }
}

/* ---- processes ---- */

/* Behind the name, which may hold anything, parentheses included: state is field 3. */
static bool process_numbers(const char *text, uint64_t *ticks, uint64_t *pages)
{
    const char *at = strrchr(text, ')');
    unsigned long long user, system;
    long long resident;
    if (!at || sscanf(at + 1,
                      " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %*d %*d %*d %*d %*d "
                      "%*d %*u %*u %lld",
                      &user, &system, &resident) != 3)
        return false;
    *ticks = user + system;
    *pages = resident > 0 ? (uint64_t)resident : 0;
    return true;
}

/* The kernel programs report its exit, unless they are not loaded or the record was lost. In a
 * container pids may be others than the kernel's: who was never found here is not gone. */
static void miss_process(struct sv_usage *u, struct sv_proc *p)
{
    if (p->usage.cpu == 0)
        return;
    if (p->usage.gone_ns == 0)
        p->usage.gone_ns = u->now_ns;
    else if (u->now_ns - p->usage.gone_ns > GONE_AFTER_NS)
        sv_tree_end(u->tree, p, u->now_ns);
}

/* What of it is the program's own, and what are pages of files, which the kernel takes back when it
 * needs them. Returns their sum, or `all` where they are not known: newer kernels round what is in
 * `stat` by CPUs, and count these exactly. */
static double memory_parts(struct sv_usage *u, struct sv_proc *p, double all)
{
    static const struct {
        const char *line, *name;
    } parts[SV_MEMORY_PARTS] = {{"\nRssAnon:", "memory_anon"},
                                {"\nRssFile:", "memory_file"},
                                {"\nRssShmem:", "memory_shared"}};
    char path[32];
    double sum = 0;
    unsigned n = 0;
    snprintf(path, sizeof path, "%u/status", p->pid);
    if (!read_text(u, path))
        return all;
    for (unsigned i = 0; i < SV_MEMORY_PARTS; i++) {
        const char *at = strstr(u->text, parts[i].line);
        uint64_t kib;
        if (!at || numbers(at + strlen(parts[i].line), &kib, 1) != 1)
            continue;
        if (!p->usage.parts[i])
            p->usage.parts[i] = counter(u, p->track, parts[i].name, "bytes");
        put_value(u, p->usage.parts[i], (double)kib * 1024);
        sum += (double)kib * 1024;
        n++;
    }
    return n == SV_MEMORY_PARTS ? sum : all;
}

static void one_process(struct sv_usage *u, struct sv_proc *p)
{
    char path[32];
    uint64_t ticks, pages;
    snprintf(path, sizeof path, "%u/stat", p->pid);
    if (!read_text(u, path) || !process_numbers(u->text, &ticks, &pages)) {
        miss_process(u, p);
        return;
    }
    p->usage.gone_ns = 0;
    if (p->usage.cpu == 0) {
        p->usage.cpu = counter(u, p->track, "cpu", "%");
        p->usage.memory = counter(u, p->track, "memory", "bytes");
    } else if (seconds(u) > 0 && p->usage.turn + 1 == u->turn) {
        put_value(u, p->usage.cpu,
                  100 * difference(ticks, p->usage.ticks) / u->ticks_per_s / seconds(u));
    }
    put_value(u, p->usage.memory, memory_parts(u, p, (double)pages * u->page_bytes));
    p->usage.ticks = ticks;
    p->usage.turn = u->turn;
}

/* ---- the source ---- */

void sv_usage_sample(struct sv_usage *u, int64_t now_ns)
{
    u->now_ns = now_ns;
    u->turn++;
    sv_values_begin(&u->values, now_ns);
    sample_cpus(u);
    sample_memory(u);
    if (u->also & SV_USAGE_PRESSURE)
        sample_pressure(u);
    if (u->also & SV_USAGE_OOM)
        sample_oom_kills(u);
    sample_disks(u);
    sample_nets(u);
    for (size_t i = 0; u->tree && i < u->tree->n; i++)
        if (!u->tree->processes[i]->is_ended)
            one_process(u, u->tree->processes[i]);
    u->last_ns = now_ns;
}

static int next(struct sv_source *source, struct sv_batch *b, struct sv_err *err)
{
    (void)err;
    return sv_values_next(&((struct sv_usage *)source)->values, b);
}

static void close_source(struct sv_source *source)
{
    (void)source; /* sv_usage_free() */
}

struct sv_usage *sv_usage_new(struct sv_dict *dict, struct sv_tree *tree, const char *root)
{
    struct sv_usage *u = sv_alloc(sizeof *u);
    u->source =
        (struct sv_source){.next = next, .close = close_source, .gives = SV_IN_ORDER, .dict = dict};
    u->tree = tree;
    u->text = sv_alloc(TEXT_MAX);
    u->ticks_per_s = (double)sysconf(_SC_CLK_TCK);
    u->page_bytes = (double)sysconf(_SC_PAGESIZE);
    snprintf(u->root, sizeof u->root, "%s", root);
    return u;
}

void sv_usage_free(struct sv_usage *u)
{
    if (!u)
        return;
    free(u->cpus.all);
    free(u->disks.all);
    free(u->nets.all);
    sv_values_fini(&u->values);
    free(u->text);
    free(u);
}

struct sv_source *sv_usage_source(struct sv_usage *u)
{
    return &u->source;
}
