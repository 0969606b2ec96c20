/* The recorder's loop: rounds of all sources into one sink, clocks, losses, signals, the end.
 *
 * One thread. The kernel's rings wake it when they fill, a timer otherwise. What becomes of the
 * output is in record/output/output.c. */
#include "record/session/recorder.h"
#include "cli/console.h"
#include "core/stream/launched.h"
#include "core/stream/machine.h"
#include "record/decode/short_calls.h"
#include "record/sample/procfs.h"
#include "record/session/running.h"
#include "record/session/spend.h"
#include "record/spool/defer.h"
#include "record/stacks/cfi.h"
#include "record/stacks/names.h"
#include "record/watch/watch.h"
#include "sdk/emit/ticks.h"
#include "store/once_paths.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

enum { ROUND_MS = 20, GRACE_MS = 5000, SAMPLE_HZ_MAX = 10000 };
#define SNAPSHOT_EVERY_NS    ((int64_t)2000000000)
#define INTERVAL_SHORTEST_NS ((int64_t)10000000)
#define SHOW_EVERY_NS        ((int64_t)500000000)
#define SUMS_EVERY_NS        ((int64_t)1000000000)

int64_t sv_recorder_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_BOOTTIME, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* ---- opening ---- */

void sv_recorder_snapshot(struct sv_recorder *r)
{
    struct sv_snapshot s;
    struct sv_tick tick = sv_ticks_read(sv_ticks_counter());
    sv_ticks_snapshot(&s, &tick);
    sv_clocks_add(&r->dict->clocks, &s);
    r->times.snapshot_ns = sv_recorder_now_ns();
}

static void set_text(struct sv_dict *d, const char *key, const char *value)
{
    sv_dict_set_meta(d, key, value, strlen(value), false);
}

static bool has_paths_once(const struct sv_record_options *o)
{
    return o->paths && strcmp(o->paths, SV_PATHS_ONCE) == 0;
}

static void describe(struct sv_recorder *r)
{
    struct utsname u;
    char text[1024] = "";
    for (size_t i = 0, n = 0; i < r->command->n && n < sizeof text - 1; i++)
        n +=
            (size_t)snprintf(text + n, sizeof text - n, "%s%s", i ? " " : "", r->command->items[i]);
    r->dict->clocks.trace_clock = SV_CLOCK_BOOTTIME;
    if (text[0] && !r->options->redact)
        set_text(r->dict, "command", text);
    sv_machine_describe(r->dict);
    if (uname(&u) == 0)
        set_text(r->dict, "kernel", u.release);
    if (r->system.plan.probes[SV_PROBE_sample]) {
        snprintf(text, sizeof text, "%u", (unsigned)r->system.plan.probes[SV_PROBE_sample]);
        set_text(r->dict, "sample_hz", text);
    }
    if (has_paths_once(r->options))
        set_text(r->dict, SV_PATHS_KEY, SV_PATHS_ONCE);
    sv_dict_describe_launcher(r->dict);
    set_text(r->dict, "writer", "stave record");
}

static int parse_ns(const char *text, const char *option, int64_t *ns, struct sv_err *err)
{
    struct sv_moment m = {0};
    if (text && (sv_parse_moment(text, strlen(text), &m) < 0 || m.is_absolute || m.ns < 0))
        return sv_err_set(err, SV_EUSAGE, SV_NO_POS,
                          "--%s: '%s' is not a time such as 10s, 500ms or 20us", option, text);
    *ns = m.ns;
    return 0;
}

/* Size and bytes, as tests/unit/test_record_replay.c reads them. A test of the program, not a
 * format: no order of bytes, no version. */
static void keep_record(void *ctx, const struct sv_wire_head *record, uint32_t size)
{
    const struct sv_recorder *r = ctx;
    fwrite(&size, sizeof size, 1, r->system.records_file);
    fwrite(record, size, 1, r->system.records_file);
}

static void found_python(void *ctx, uint32_t pid, const struct sv_wire_python *offsets)
{
    const struct sv_recorder *r = ctx;
    if (r->system.kernel)
        sv_kernel_python(r->system.kernel, pid, offsets);
    if (r->ladder.watch)
        sv_watch_python(r->ladder.watch, pid, offsets);
}

static void knows_program(void *ctx, uint64_t inode)
{
    const struct sv_recorder *r = ctx;
    if (r->system.kernel)
        sv_kernel_knows_program(r->system.kernel, inode);
}

static int open_decoder(struct sv_recorder *r, struct sv_err *err)
{
    const struct sv_record_options *o = r->options;
    struct sv_decode_options d = {
        .prefix = o->prefix,
        .asks_procfs = true,
        .follows_maps = r->system.plan.probes[SV_PROBE_syscalls] && !o->prefix,
        .has_kernel = r->system.plan.probes[SV_PROBE_sample] != 0 && !r->system.plan.samples_little,
        .found_python = r->system.plan.probes[SV_PROBE_stack] ? found_python : NULL,
        .knows_program = knows_program,
        .python_ctx = r};
    if (o->paths && strcmp(o->paths, "all") != 0 && !has_paths_once(o))
        return sv_err_set(err, SV_EUSAGE, SV_NO_POS, "--paths: '%s' is not all or once", o->paths);
    if (o->redact) {
        if (sv_redact_parse(o->redact, &r->system.redact, err) < 0)
            return err->code;
        r->system.redact.commands = true;
        d.hides_files = r->system.redact.paths;
    }
    d.shows_own = o->self;
    int64_t shortest = 0;
    if (parse_ns(o->sum_calls, "sum-calls", &shortest, err) < 0)
        return err->code;
    d.sum_below_ns = (uint64_t)shortest;
    const char *records = getenv("STAVE_RECORDS");
    if (records && *records) {
        r->system.records_file = fopen(records, "wbe");
        if (!r->system.records_file)
            return sv_err_sys(err, "STAVE_RECORDS: %s", records);
        d.keep = keep_record;
        d.keep_ctx = r;
    }
    r->system.decode = sv_decode_new(r->dict, &r->report, &d);
    sv_totals_init(&r->system.totals, sv_decode_source(r->system.decode));
    sv_decode_tree(r->system.decode)->hides_commands = o->redact != NULL;
    return 0;
}

static int parse_hooks(const char *text, enum sv_hooks *hooks, struct sv_err *err)
{
    for (unsigned i = 0; text && sv_hooks_names[i]; i++) {
        *hooks = (enum sv_hooks)i;
        if (strcmp(sv_hooks_names[i], text) == 0)
            return 0;
    }
    *hooks = SV_HOOKS_BEST;
    return !text ? 0
                 : sv_err_set(err, SV_EUSAGE, SV_NO_POS,
                              "--hooks: '%s' is none of best, btf, raw and tracepoints", text);
}

/* Raw tracepoints give the same, slower; plain ones give less. */
static int report_hooks(struct sv_recorder *r, struct sv_err *err)
{
    const struct sv_kernel *k = r->system.kernel;
    const char *why = sv_kernel_why_hooks(k);
    if (why[0] && sv_kernel_hooks(k) == SV_HOOKS_PLAIN) {
        r->is_partial = true;
        if (r->options->strict)
            return sv_err_set(err, SV_EIO, SV_NO_POS, "%s (run 'stave doctor' for details)", why);
        sv_console_note("system calls and processes only, by plain tracepoints: %s", why);
    } else if (why[0]) {
        sv_console_note("by %s tracepoints: %s", sv_hooks_names[sv_kernel_hooks(k)], why);
    } else if (sv_kernel_missing(k)[0]) {
        sv_console_note(sv_kernel_hooks(k) == SV_HOOKS_PLAIN ? "by plain tracepoints, without %s"
                                                             : "this kernel has no tracepoint %s",
                        sv_kernel_missing(k));
    }
    return 0;
}

/* Frame pointers are what is left where the copy of a stack, or the means to unwind it, are not
 * there. */
static int parse_stacks(const char *text, enum sv_stack_way *way, struct sv_err *err)
{
    *way = sv_cfi_is_built() ? SV_STACK_COPY : SV_STACK_FP;
    if (text && !sv_stacks_way(text, way))
        return sv_err_set(err, SV_EUSAGE, SV_NO_POS, "--stacks: '%s' is none of dwarf, fp and none",
                          text);
    if (*way == SV_STACK_COPY && !sv_cfi_is_built())
        return sv_err_set(err, SV_EUSAGE, SV_NO_POS,
                          "--stacks dwarf: this stave was built without libdw (libdw-dev at build "
                          "time); use --stacks fp");
    return 0;
}

/* Whether somebody asked for stacks: what is wrong with them is said then. */
static bool asks_for_stacks(const struct sv_record_options *o)
{
    return o->probes[SV_PROBE_sample].number || o->probes[SV_PROBE_offcpu].is_given || o->stacks;
}

static int report_stacks(struct sv_recorder *r, struct sv_err *err)
{
    const struct sv_kernel_options *o = &r->system.plan;
    enum sv_stack_way way = sv_kernel_stacks(r->system.kernel);
    bool is_asked = r->options->stacks && strcmp(r->options->stacks, "dwarf") == 0;
    if (!o->probes[SV_PROBE_stack] || way != SV_STACK_FP || o->stacks == SV_STACK_NONE)
        return 0;
    if (is_asked && r->options->strict)
        return sv_err_set(err, SV_EIO, SV_NO_POS,
                          "--stacks dwarf needs x86-64, Linux 5.15 and typed tracepoints");
    if (!asks_for_stacks(r->options))
        return 0;
    if (o->stacks == SV_STACK_COPY)
        sv_console_note("stacks by frame pointers: unwinding needs x86-64, Linux 5.15 and typed "
                        "tracepoints ('stave doctor' shows which work)");
    else if (!r->options->stacks)
        sv_console_note("stacks by frame pointers: this stave was built without libdw");
    return 0;
}

/* Where nobody asked for waits the line about the hooks is enough. */
static int report_offcpu(struct sv_recorder *r, struct sv_err *err)
{
    if (!r->options->probes[SV_PROBE_offcpu].is_given || sv_kernel_knows_calls(r->system.kernel))
        return 0;
    r->is_partial = true;
    if (r->options->strict)
        return sv_err_set(err, SV_EIO, SV_NO_POS,
                          "--offcpu needs x86-64, Linux 5.15 and typed tracepoints");
    sv_console_note("without waits: --offcpu needs x86-64, Linux 5.15 and typed tracepoints "
                    "('stave doctor' shows which work)");
    return 0;
}

static int parse_offcpu(const struct sv_record_options *o, uint64_t *shortest, struct sv_err *err)
{
    int64_t ns = 0;
    const struct sv_probe_setting *s = &o->probes[SV_PROBE_offcpu];
    if (o->offcpu_min && s->is_off && !s->is_given)
        return sv_err_set(err, SV_EUSAGE, SV_NO_POS,
                          "--offcpu-min: no waits are recorded; add --offcpu");
    int code = parse_ns(o->offcpu_min ? o->offcpu_min : "1ms", "offcpu-min", &ns, err);
    *shortest = (uint64_t)ns;
    return code;
}

/* Without /proc nothing can be looked at, and the kernel's records have no names: a command runs
 * all the same. */
static int open_procfs(struct sv_recorder *r, struct sv_err *err)
{
    r->is_bare = r->options->only != NULL;
    int code = sv_procfs_open(err);
    if (code >= 0 || r->options->strict || r->command->n == 0)
        return code;
    sv_console_note("%s; recorded without it: events of libstave", err->msg);
    sv_err_clear(err);
    r->is_bare = r->is_partial = true;
    r->samplers.usage_interval_ns = 0;
    return 0;
}

/* A command, or some processes: few samples, so that what computes has a name at the end. */
static void plan_samples(struct sv_recorder *r)
{
    const struct sv_record_options *o = r->options;
    struct sv_kernel_options *k = &r->system.plan;
    int why;
    bool is_small = r->command->n > 0 || o->pids.n > 0;
    k->samples_little = is_small && !k->probes[SV_PROBE_sample] && k->probes[SV_PROBE_offcpu] &&
                        !o->live && !o->no_samples && sv_watch_can_sample(&why);
    if (k->samples_little)
        k->probes[SV_PROBE_sample] = SV_SAMPLE_HZ_LITTLE;
}

/* What the options ask of the kernel. */
static int plan_kernel(struct sv_recorder *r, struct sv_err *err)
{
    const struct sv_record_options *o = r->options;
    struct sv_kernel_options *k = &r->system.plan;
    bool has_calls = !o->probes[SV_PROBE_syscalls].is_given; /* --no-io */
    int64_t shortest = 0;
    *k = (struct sv_kernel_options){
        .groups = has_calls ? SV_CALLS_DEFAULT | (o->no_sockets ? 0 : SV_CALLS_WAITING) : 0,
        .follows_all = o->all,
        .prefix = o->prefix,
        .comm = o->comm,
        .cgroup = o->cgroup ? sv_procfs_cgroup_number(o->cgroup) : 0,
        .ring_bytes = o->ring_bytes};
    char bad[32];
    if (o->probes[SV_PROBE_sample].number > SAMPLE_HZ_MAX)
        return sv_err_set(err, SV_EUSAGE, SV_NO_POS, "--sample: at most %d times a second",
                          SAMPLE_HZ_MAX);
    if (o->calls && !sv_calls_groups(o->calls, &k->groups, bad))
        return sv_err_set(err, SV_EUSAGE, SV_NO_POS,
                          "--calls: unknown group '%s'; available: files, maps, sync, names, stat, "
                          "sockets, uring, all",
                          bad);
    if (k->groups & SV_CALLS_SOCKETS) /* more than those that waited; poll only then */
        k->groups |= SV_CALLS_WAITING;
    int code = parse_ns(o->min_latency, "min-latency", &shortest, err);
    if (code >= 0)
        code = parse_hooks(o->hooks, &k->hooks, err);
    if (code >= 0)
        code = parse_stacks(o->stacks, &k->stacks, err);
    if (code >= 0)
        code = parse_offcpu(o, &k->offcpu_min_ns, err);
    k->min_latency_ns = (uint64_t)shortest;
    sv_probes_choose(o->probes, k->groups, k->probes);
    if (r->is_bare) {
        memset(k->probes, 0, sizeof k->probes);
        k->groups = 0;
    }
    plan_samples(r);
    return code;
}

static int open_kernel(struct sv_recorder *r, struct sv_err *err)
{
    struct sv_err why = {0};
    if (r->is_bare)
        return 0;
    if (sv_kernel_open(&r->system.plan, &r->system.kernel, &why) < 0) {
        r->is_partial = true;
        return sv_record_ladder_open(r, why.msg, err);
    }
    sv_kernel_rings(r->system.kernel, sv_decode_rings(r->system.decode));
    int code = report_hooks(r, err);
    if (code >= 0)
        code = report_stacks(r, err);
    if (code >= 0)
        code = report_offcpu(r, err);
    return code < 0 ? code : sv_record_ladder_open(r, "", err);
}

static int open_signals(struct sv_recorder *r, struct sv_err *err)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGCHLD);
    if (r->options->use.last)
        sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_BLOCK, &set, &r->child.mask);
    r->signals.fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return r->signals.fd >= 0 ? 0 : sv_err_sys(err, "cannot wait for signals");
}

static int drop_caches(struct sv_err *err)
{
    sync();
    FILE *f = fopen("/proc/sys/vm/drop_caches", "we");
    bool is_done = f && fputs("3\n", f) >= 0;
    if (f && fclose(f) != 0)
        is_done = false;
    return is_done ? 0 : sv_err_sys(err, "--drop-caches: /proc/sys/vm/drop_caches");
}

/* ---- processes to record ---- */

/* Takes the list. */
static int join(struct sv_recorder *r, uint32_t *pids, size_t n, struct sv_err *err)
{
    for (size_t k = 0; k < n; k++) {
        sv_procfs_complete(sv_decode_tree(r->system.decode), pids[k]);
        sv_record_ladder_follow(r, pids[k]);
    }
    int code = r->system.kernel && n > 0 ? sv_kernel_enroll(r->system.kernel, pids, n, err) : 0;
    free(pids);
    return code;
}

static int join_matching(struct sv_recorder *r, struct sv_err *err)
{
    const struct sv_record_options *o = r->options;
    uint32_t *pids = NULL;
    int code = 0;
    if (o->comm) {
        size_t n = sv_procfs_named(o->comm, &pids);
        if (n == 0 && !r->system.kernel)
            return sv_err_set(err, SV_EUSAGE, SV_NO_POS, "--comm: no process is called '%s'",
                              o->comm);
        if (n == 0)
            sv_console_note(
                "no process is called '%s' yet; processes that start later are recorded", o->comm);
        code = join(r, pids, n, err);
    }
    if (code >= 0 && o->cgroup) {
        size_t n = sv_procfs_in_cgroup(o->cgroup, &pids);
        if (n == 0 && !r->system.kernel)
            return sv_err_set(err, SV_EUSAGE, SV_NO_POS, "--cgroup: no process in '%s'", o->cgroup);
        if (n == 0)
            sv_console_note(
                "no process is in cgroup '%s' yet; processes that enter later are recorded",
                o->cgroup);
        code = join(r, pids, n, err);
    }
    return code;
}

static int attach(struct sv_recorder *r, struct sv_err *err)
{
    int code = join_matching(r, err);
    for (size_t i = 0; code >= 0 && i < r->options->pids.n; i++) {
        const char *text = r->options->pids.items[i];
        char *end;
        unsigned long pid = strtoul(text, &end, 10);
        uint32_t *family = NULL;
        if (*end || pid == 0 || pid > INT32_MAX)
            return sv_err_set(err, SV_EUSAGE, SV_NO_POS, "-p: '%s' is not the pid of a process",
                              text);
        size_t n = sv_procfs_family((uint32_t)pid, &family);
        if (n == 0)
            return sv_err_set(err, SV_EUSAGE, SV_NO_POS,
                              "-p: there is no process %s here ('ps -e' lists them)", text);
        code = join(r, family, n, err);
    }
    return code;
}

static int start_command(struct sv_recorder *r, struct sv_err *err)
{
    if (r->command->n == 0)
        return 0;
    int code = sv_child_start(r, err);
    if (code < 0)
        return code;
    sv_procfs_complete(sv_decode_tree(r->system.decode), (uint32_t)r->child.pid);
    sv_decode_hide_until_exec(r->system.decode, (uint32_t)r->child.pid);
    if (r->system.kernel)
        code = sv_kernel_follow(r->system.kernel, (uint32_t)r->child.pid, err);
    sv_record_ladder_prepare(r, (uint32_t)r->child.pid);
    if (code >= 0)
        code = sv_child_begin(r, err);
    if (code >= 0)
        sv_record_ladder_follow(r, (uint32_t)r->child.pid);
    return code;
}

/* ---- rounds ---- */

static void report_loss(void *ctx, unsigned cpu, const char *what, uint64_t n)
{
    struct sv_recorder *r = ctx;
    struct sv_err err = {0};
    if (sv_defer_catch_up(r, &err) < 0) /* what waits is older than the loss */
        sv_console_note("%s", err.msg);
    r->losses.sum += n;
    size_t i = 0;
    while (i < r->losses.n &&
           (r->losses.rows[i].cpu != cpu || strcmp(r->losses.rows[i].what, what) != 0))
        i++;
    if (i == r->losses.n && i < SV_RECORDER_LOSSES)
        r->losses.rows[r->losses.n++] = (struct sv_recorder_loss){.what = what, .cpu = cpu};
    if (i < r->losses.n)
        r->losses.rows[i].n += n;
    sv_decode_lost(r->system.decode, cpu, what, n, (uint64_t)r->times.round_ns,
                   (uint64_t)sv_recorder_now_ns());
}

int sv_recorder_pull(struct sv_recorder *r, struct sv_source *source, struct sv_err *err)
{
    return sv_pump_round(source, r->meter.input, r->batch, err);
}

/* Without the kernel programs, children are found in /proc. */
static void look_for_children(struct sv_recorder *r)
{
    uint32_t *family = NULL;
    size_t n = r->child.pid > 0 ? sv_procfs_family((uint32_t)r->child.pid, &family) : 0;
    struct sv_tree *t = sv_decode_tree(r->system.decode);
    for (size_t i = 0; i < n; i++)
        if (!sv_tree_find(t, family[i]))
            sv_procfs_complete(t, family[i]);
    free(family);
}

static int sample(struct sv_recorder *r, int64_t now, struct sv_err *err)
{
    if (!r->system.kernel && !r->ladder.watch)
        look_for_children(r);
    sv_usage_sample(r->samplers.usage, now);
    r->samplers.usage_ns = now;
    return sv_recorder_pull(r, sv_usage_source(r->samplers.usage), err);
}

/* The records that the kernel has for us: decoded, or moved aside for later. */
static int kernel_round(struct sv_recorder *r, int64_t now, struct sv_err *err)
{
    int code = 0;
    sv_kernel_losses(r->system.kernel, report_loss, r);
    if (sv_defer_round(r, now, &code, err) || code < 0)
        return code;
    now = sv_recorder_now_ns(); /* it may have decoded for a while */
    sv_defer_saw(r, now, sv_decode_round(r->system.decode, (uint64_t)now));
    code = sv_recorder_pull(r, &r->system.totals.source, err);
    sv_decode_release(r->system.decode);
    return code;
}

/* --sum-calls: the sums of the seconds that are over; records come a little later. */
int sv_recorder_sums(struct sv_recorder *r, int64_t now, bool all, struct sv_err *err)
{
    struct sv_short_calls *s = sv_decode_short_calls(r->system.decode);
    if (!s || (!all && (now - r->times.summed_ns < SUMS_EVERY_NS || sv_defer_waiting(r) > 0)))
        return 0;
    r->times.summed_ns = now;
    return sv_recorder_pull(r, sv_short_calls_source(s, all ? INT64_MAX : now - SUMS_EVERY_NS / 2),
                            err);
}

static int make_round(struct sv_recorder *r, bool is_last, struct sv_err *err)
{
    int64_t now = sv_recorder_now_ns();
    int code = sv_clock_marks_round(r, err);
    if (code >= 0)
        code = r->system.kernel ? kernel_round(r, now, err) : sv_record_ladder_round(r, now, err);
    if (code >= 0)
        code = sv_recorder_sums(r, now, is_last, err);
    if (code >= 0)
        code = sv_record_sdk_round(r, is_last, err);
    if (code >= 0 && r->samplers.usage &&
        now - r->samplers.usage_ns >= r->samplers.usage_interval_ns)
        code = sample(r, now, err);
    if (code >= 0)
        code = sv_record_gpus_round(r, now, err);
    if (code >= 0 && !is_last)
        code = sv_spending_round(r, now, err);
    r->times.round_ns = now;
    if (code >= 0 && sv_defer_waiting(r) == 0) /* what waits may be of those that are gone */
        sv_record_forget(r, now);
    if (code >= 0 && now - r->times.snapshot_ns >= SNAPSHOT_EVERY_NS)
        sv_recorder_snapshot(r);
    if (code >= 0)
        sv_record_sync_round(r);
    if (code >= 0)
        sv_record_commit(r, now, is_last, err);
    if (code >= 0 && !is_last)
        code = sv_triggers_round(r, now, err);
    if (code >= 0 && !is_last && sv_parts_round(r, now, err) < 0)
        sv_record_output_fail(r, err);
    return code;
}

/* ---- the loop ---- */

static void on_signal(struct sv_recorder *r, const struct signalfd_siginfo *s)
{
    if (s->ssi_signo == SIGCHLD)
        return;
    if (s->ssi_signo == SIGUSR1) {
        r->signals.n_triggers++;
        return;
    }
    r->signals.n_stops++;
    if (r->signals.asked_ns == 0)
        r->signals.asked_ns = sv_recorder_now_ns();
    /* The terminal signals the whole process group; any other sender signalled only us. */
    if (r->child.pid > 0 && !r->child.has_ended && s->ssi_code != SI_KERNEL)
        kill(r->child.pid, (int)s->ssi_signo);
}

static void take_signals(struct sv_recorder *r)
{
    struct signalfd_siginfo s;
    while (read(r->signals.fd, &s, sizeof s) == (ssize_t)sizeof s)
        on_signal(r, &s);
}

/* A zombie counts as gone. */
static bool is_alive(const char *pid)
{
    char path[64], text[512];
    snprintf(path, sizeof path, "%s/%.20s/stat", sv_procfs_root(), pid);
    size_t n = sv_procfs_text(path, text, sizeof text);
    const char *name_end = n ? memrchr(text, ')', n) : NULL;
    return name_end && name_end + 2 < text + n && !strchr("ZX", name_end[2]);
}

static bool all_gone(const struct sv_recorder *r)
{
    for (size_t i = 0; i < r->options->pids.n; i++)
        if (is_alive(r->options->pids.items[i]))
            return false;
    return r->options->pids.n > 0;
}

/* Of all its files. */
static uint64_t bytes_so_far(const struct sv_recorder *r)
{
    struct stat st;
    return sv_parts_bytes(r) + (stat(r->output.part, &st) == 0 ? (uint64_t)st.st_size : 0);
}

static bool is_too_large(const struct sv_recorder *r)
{
    return r->options->max_bytes > 0 && bytes_so_far(r) >= r->options->max_bytes;
}

static bool is_over(struct sv_recorder *r)
{
    int64_t now = sv_recorder_now_ns();
    if (r->command->n > 0) {
        if (sv_child_look(r))
            return true;
    } else if (all_gone(r)) {
        return true;
    }
    const struct sv_record_live *live = r->options->live;
    if ((r->times.deadline_ns && now >= r->times.deadline_ns) ||
        (live && !live->round(live->ctx, now)))
        return true;
    if (is_too_large(r)) {
        sv_console_note("stopped: the trace has reached --max-size");
        return true;
    }
    if (r->signals.asked_ns == 0)
        return false;
    /* Asked to stop: the command may clean up, and that is recorded, too; but not for ever. */
    return r->command->n == 0 || now - r->signals.asked_ns > (int64_t)GRACE_MS * 1000000;
}

/* Twice a second, for `stave status` and on a terminal: time, events, rate, losses, size. */
static void show_status(struct sv_recorder *r)
{
    char a[32], b[32], c[32], d[32], e[32];
    int64_t now = sv_recorder_now_ns();
    if (now - r->status.shown_ns < SHOW_EVERY_NS)
        return;
    uint64_t events = r->meter.events + sv_defer_waiting(r),
             more = events > r->status.shown_events ? events - r->status.shown_events : 0;
    double rate = r->status.shown_ns ? (double)more * 1e9 / (double)(now - r->status.shown_ns) : 0;
    if (r->options->live)
        return;
    uint64_t size = bytes_so_far(r);
    r->status.shown_ns = now;
    r->status.shown_events = events;
    sv_record_publish(r, events, size);
    if (sv_common.quiet || !isatty(STDERR_FILENO))
        return;
    sv_print_styled(stderr, SV_DIM, "\r%s  %s events  %s/s  %s lost  %s\033[K",
                    sv_human_ns(a, now - r->times.started_ns), sv_human_count(b, events),
                    sv_human_count(c, (uint64_t)rate), sv_human_count(d, r->losses.sum),
                    sv_human_bytes(e, size));
    r->status.is_shown = true;
}

/* At once: what was written until the last commit stays, for `stave recover`. */
static int abort_recording(struct sv_recorder *r, struct sv_err *err)
{
    r->is_aborted = true;
    return sv_err_set(err, SV_EIO, SV_NO_POS, "%.200s: aborted by a second signal",
                      r->options->out.path);
}

static int run_loop(struct sv_recorder *r, struct sv_err *err)
{
    struct pollfd p[2] = {
        {.fd = r->signals.fd, .events = POLLIN},
        {.fd = r->system.kernel ? sv_kernel_poll_fd(r->system.kernel) : -1, .events = POLLIN}};
    int code = 0;
    while (code >= 0 && !is_over(r)) {
        if (poll(p, 2, sv_record_ladder_patience_ms(r, ROUND_MS)) < 0 && errno != EINTR)
            return sv_err_sys(err, "cannot wait");
        take_signals(r);
        if (r->signals.n_stops > 1)
            return abort_recording(r, err);
        code = make_round(r, false, err);
        show_status(r);
    }
    r->times.cpu_ran_ns += sv_recorder_cpu_ns();
    if (r->status.is_shown)
        sv_print(stderr, "\r\033[K");
    return code;
}

/* The rate of the CPU's counter over the recording. It converts ticks of that counter. */
static void describe_tsc_rate(struct sv_recorder *r)
{
    const struct sv_clocks *c = &r->dict->clocks;
    int64_t ticks, boot, last_ticks, last_boot;
    char text[32];
    if (c->n < 2 || !sv_snapshot_get(&c->snapshots[0], SV_CLOCK_TSC, &ticks) ||
        !sv_snapshot_get(&c->snapshots[0], SV_CLOCK_BOOTTIME, &boot) ||
        !sv_snapshot_get(&c->snapshots[c->n - 1], SV_CLOCK_TSC, &last_ticks) ||
        !sv_snapshot_get(&c->snapshots[c->n - 1], SV_CLOCK_BOOTTIME, &last_boot) ||
        last_boot <= boot || last_ticks <= ticks)
        return;
    double hz = (double)(last_ticks - ticks) * 1e9 / (double)(last_boot - boot);
    snprintf(text, sizeof text, "%.0f", hz);
    set_text(r->dict, "tsc_hz", text);
}

/* Of how many stacks only the innermost frame was kept. */
static void describe_stacks(struct sv_recorder *r)
{
    char text[32];
    uint64_t n = r->system.kernel ? sv_kernel_count(r->system.kernel).no_stack : 0;
    snprintf(text, sizeof text, "%llu", (unsigned long long)n);
    if (n)
        set_text(r->dict, "stacks_left_out", text);
    const struct sv_names_build *builds;
    size_t n_builds = sv_stacks_builds(sv_decode_stacks(r->system.decode), &builds);
    for (size_t i = 0; i < n_builds; i++) {
        char key[sizeof builds->file + sizeof SV_BUILD_ID_KEY];
        snprintf(key, sizeof key, SV_BUILD_ID_KEY "%s", builds[i].file);
        if (builds[i].id[0])
            set_text(r->dict, key, builds[i].id);
    }
}

/* What waits to be decoded, with a line on a terminal when it takes long. */
static int decode_rest(struct sv_recorder *r, struct sv_err *err)
{
    bool is_terminal = !sv_common.quiet && isatty(STDERR_FILENO);
    unsigned done;
    int code;
    while ((code = sv_defer_finish_step(r, &done, err)) > 0) {
        take_signals(r);
        if (r->signals.n_stops > 1)
            return abort_recording(r, err);
        if (is_terminal)
            sv_print_styled(stderr, SV_DIM, "\rwriting the trace: %u %%\033[K", done / 10);
        r->status.is_shown = is_terminal;
    }
    if (r->status.is_shown && is_terminal)
        sv_print(stderr, "\r\033[K");
    return code;
}

static void say_of_stacks(void *ctx, const char *line)
{
    (void)ctx;
    sv_console_note("%s", line);
}

/* What a record that never became complete holds up is lost, and so is what made no sense. */
static int count_unread(struct sv_recorder *r, struct sv_err *err)
{
    const struct sv_krings *rings = sv_decode_rings(r->system.decode);
    uint64_t n = rings->is_blocked ? sv_krings_unread(rings, (uint64_t)r->times.stopped_ns) : 0,
             n_bad = sv_decode_malformed(r->system.decode) + rings->n_broken;
    if (n > 0)
        report_loss(r, 0, "records behind one that was not complete", n);
    if (n_bad > 0)
        report_loss(r, 0, "records that made no sense", n_bad);
    return n + n_bad > 0 ? sv_recorder_pull(r, &r->system.totals.source, err) : 0;
}

/* After --duration or a signal a command may still run: it continues, unrecorded. */
static int finish(struct sv_recorder *r, struct sv_err *err)
{
    int code = make_round(r, false, err);
    struct sv_err why = {0};
    if (code >= 0)
        code = sv_record_ladder_finish(r, err);
    if (code >= 0 && r->system.kernel && sv_kernel_in_flight(r->system.kernel, &why) < 0)
        sv_console_note("calls that have not ended are left out: %s", why.msg);
    r->times.stopped_ns = sv_recorder_now_ns();
    if (code >= 0)
        code = decode_rest(r, err);
    enum { PATIENCE_MS = 200 };
    for (int i = 0; code >= 0 && i < PATIENCE_MS; i++) { /* a record is still being written */
        code = make_round(r, true, err); /* what was completed during the last round */
        if (!sv_decode_rings(r->system.decode)->is_blocked)
            break;
        poll(NULL, 0, 1);
    }
    if (code >= 0)
        code = count_unread(r, err);
    if (code >= 0)
        code = sv_triggers_finish(r, sv_recorder_now_ns(), err);
    if (r->system.kernel && sv_kernel_count(r->system.kernel).invisible > 0)
        r->is_partial = true;
    if (asks_for_stacks(r->options))
        sv_stacks_explain(sv_decode_stacks(r->system.decode), say_of_stacks, NULL);
    sv_record_sync_close(r);
    sv_recorder_snapshot(r);
    describe_tsc_rate(r);
    describe_stacks(r);
    sv_spending_finish(r, r->times.stopped_ns);
    if (code >= 0)
        sv_record_logs(r);
    return code;
}

/* Before the command begins, which may ask for it at once (stave trigger). */
static void list_recording(struct sv_recorder *r)
{
    char text[700];
    const char *name = r->command->n        ? r->command->items[0]
                       : r->options->pids.n ? r->options->pids.items[0]
                                            : "all";
    const char *slash = strrchr(name, '/');
    r->status.listing = sv_running_announce(slash ? slash + 1 : name, r->options->out.path,
                                            r->options->use.last != NULL);
    if (!r->status.listing && sv_running_problem(text, sizeof text))
        sv_console_note("'stave status' and 'stave stop' cannot find this recording: %s", text);
}

/* To the process that waits for --detach. */
static void announce(struct sv_recorder *r)
{
    if (r->detach_fd >= 0 && write(r->detach_fd, "b", 1) == 1) {
        close(r->detach_fd);
        r->detach_fd = -1;
    }
}

static int open_all(struct sv_recorder *r, struct sv_err *err)
{
    int64_t duration;
    int code = parse_ns(r->options->duration, "duration", &duration, err);
    if (code >= 0)
        code = parse_ns(r->options->interval ? r->options->interval
                        : r->options->only   ? "0"
                                             : "100ms",
                        "interval", &r->samplers.usage_interval_ns, err);
    if (code >= 0 && r->samplers.usage_interval_ns > 0 &&
        r->samplers.usage_interval_ns < INTERVAL_SHORTEST_NS)
        code = sv_err_set(err, SV_EUSAGE, SV_NO_POS, "--interval: at least 10ms, or 0 for none");
    if (code >= 0)
        code = open_procfs(r, err);
    if (code >= 0)
        code = plan_kernel(r, err);
    if (code >= 0)
        code = open_decoder(r, err);
    if (code >= 0)
        code = sv_record_gpus_open(r, err);
    if (code >= 0 && r->options->drop_caches) /* what that writes is not part of the recording */
        code = drop_caches(err);
    if (code >= 0)
        code = open_kernel(r, err);
    if (code >= 0)
        code = sv_record_output_open(r, err);
    if (code >= 0)
        code = open_signals(r, err);
    if (code < 0)
        return code;
    sv_defer_open(r);
    code = sv_triggers_open(r, err);
    if (code < 0)
        return code;
    sv_record_meter_open(r, has_paths_once(r->options));
    describe(r);
    sv_recorder_snapshot(r);
    sv_record_sdk_open(r);
    if (r->samplers.usage_interval_ns > 0) {
        r->samplers.usage =
            sv_usage_new(r->dict, sv_decode_tree(r->system.decode), sv_procfs_root());
        sv_usage_also(r->samplers.usage, r->samplers.also);
    }
    sv_record_describe_parts(r);
    r->times.started_ns = r->times.round_ns = r->output.whole_ns = sv_recorder_now_ns();
    code = attach(r, err);
    if (code >= 0) {
        if (!r->options->live)
            list_recording(r);
        code = start_command(r, err);
    }
    if (code >= 0)
        code = sv_record_sync_open(r, err);
    if (code >= 0)
        sv_spending_open(r);
    r->has_begun = code >= 0;
    r->times.cpu_ran_ns = -sv_recorder_cpu_ns();
    /* Of what is recorded: attaching takes a while. */
    r->times.deadline_ns = duration ? sv_recorder_now_ns() + duration : 0;
    if (code >= 0)
        announce(r);
    return code;
}

int sv_recorder_run(struct sv_recorder *r, struct sv_err *err)
{
    r->dict = sv_dict_new();
    r->batch = sv_alloc(sizeof *r->batch);
    r->signals.fd = r->child.begin_fd = r->child.error_fd = -1;
    sv_batch_init(r->batch);
    sv_report_init(&r->report);
    int code = open_all(r, err);
    if (code >= 0)
        code = run_loop(r, err);
    if (code >= 0)
        code = finish(r, err);
    sv_record_sync_close(r); /* where something failed before */
    sv_record_meter_close(r);
    code = sv_record_output_close(r, code, err);
    sv_defer_close(r);
    sv_triggers_close(r);
    sv_spending_close(r);
    sv_parts_free(r);
    sv_record_sdk_close(r);
    if (r->child.begin_fd >= 0)
        close(r->child.begin_fd); /* a child that never began ends now */
    sv_console_findings(r->options->out.path, &r->report);
    if ((code >= 0 || r->output.why.code != 0) && !r->options->no_summary)
        sv_recorder_summary(r);
    if (code >= 0)
        code = sv_child_exit_code(r);
    if (code == 0 && r->options->strict && (r->losses.sum > 0 || r->is_partial))
        code = SV_EXIT_FOUND;
    if (r->status.listing)
        unlink(r->status.listing);
    free(r->status.listing);
    sv_kernel_close(r->system.kernel);
    sv_record_ladder_close(r);
    sv_usage_free(r->samplers.usage);
    sv_record_gpus_close(r);
    sv_totals_fini(&r->system.totals);
    sv_inside_fini(&r->collected.inside);
    sv_decode_free(r->system.decode);
    if (r->system.records_file)
        fclose(r->system.records_file);
    sv_report_fini(&r->report);
    sv_batch_fini(r->batch);
    free(r->batch);
    sv_dict_free(r->dict);
    if (r->signals.fd >= 0)
        close(r->signals.fd);
    return code;
}
