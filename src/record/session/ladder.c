/* The ladder: what is recorded where kernel programs are not allowed, and what is loaded into the
 * command. Called by the recorder, between the kernel and the start of the command.
 *
 *     kernel programs → perf events for own processes → looks at /proc and at the memory of own
 *     processes (record/watch/), and libraries in the command (--inject)
 *
 * Each rung fills the same tables as far as it can, and recorded.c writes down which it was. */
#include "cli/console.h"
#include "record/sample/procfs.h"
#include "record/session/recorder.h"
#include "record/stacks/cfi.h"
#include "record/watch/watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HZ = 20, HZ_MAX = 1000, SAMPLE_HZ = 49 };

/* ---- is the command Python? ---- */

static const char *base_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static bool is_python_name(const char *word)
{
    const char *base = base_of(word);
    return strncmp(base, "python", 6) == 0 && base[strspn(base + 6, "0123456789.dt") + 6] == 0;
}

/* The first line of a script names its interpreter; torchrun, accelerate and pytest are such
 * scripts. */
static bool is_python_script(const char *path)
{
    char line[256];
    FILE *f = fopen(path, "re");
    bool is = f && fgets(line, sizeof line, f) && strncmp(line, "#!", 2) == 0 &&
              strstr(line, "python");
    if (f)
        fclose(f);
    return is;
}

static bool is_python_program(const char *word)
{
    char path[1024];
    const char *list = getenv("PATH");
    if (is_python_name(word))
        return true;
    if (strchr(word, '/'))
        return is_python_script(word);
    for (const char *at = list ? list : ""; *at;) {
        size_t n = strcspn(at, ":");
        snprintf(path, sizeof path, "%.*s/%.200s", (int)(n < 800 ? n : 800), at, word);
        if (n && access(path, X_OK) == 0)
            return is_python_script(path);
        at += n + (at[n] == ':');
    }
    return false;
}

/* Programs that become another one: the rest of their words is looked at. */
static bool is_wrapper(const char *word)
{
    static const char *const names[] = {"env",     "nice",    "nohup",  "time",   "timeout",
                                        "taskset", "numactl", "stdbuf", "setsid", "sh",
                                        "bash",    "chrt",    "ionice"};
    const char *base = base_of(word);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(base, names[i]) == 0)
            return true;
    return false;
}

bool sv_record_is_python(const struct sv_words *command)
{
    if (command->n == 0)
        return false;
    if (!is_wrapper(command->items[0]))
        return is_python_program(command->items[0]);
    for (size_t i = 1; i < command->n; i++)
        if (is_python_name(command->items[i]) || strstr(command->items[i], "python3 "))
            return true;
    return false;
}

/* ---- what is loaded into the command ---- */

/* What nobody asked for is left out where it is not there. */
static bool inject_if_there(struct sv_recorder *r, const char *name)
{
    struct sv_err why = {0};
    if (r->command->n == 0 || r->options->use.no_inject || !sv_inject_is_there(name) ||
        sv_inject_names(name, &why) < 0)
        return false;
    return true;
}

/* Libraries of a sanitizer's build cannot be loaded into programs without it. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { CAN_PRELOAD = 0 };
#else
enum { CAN_PRELOAD = 1 };
#endif

static void inject_defaults(struct sv_recorder *r)
{
    struct sv_record_ladder *l = &r->ladder;
    if (sv_record_is_python(r->command))
        l->has_torch = inject_if_there(r, "torch");
    if (l->has_torch && r->options->use.inject.n == 0)
        setenv("STAVE_TORCH_DEFAULT", "1", 1);
    if (r->system.kernel || !CAN_PRELOAD)
        return;
    if (!r->options->probes[SV_PROBE_syscalls].is_given) /* --no-io */
        l->has_io = inject_if_there(r, "io");
    l->has_locks = !r->options->light && inject_if_there(r, "locks");
}

/* ---- asked for and impossible ---- */

struct impossible {
    bool is_asked;
    const char *option, *instead;
};

/* Says each that was asked for by name; returns the first, NULL: none. */
static const char *say_impossible(const struct sv_recorder *r)
{
    const struct sv_record_options *o = r->options;
    int why;
    bool can_sample = sv_watch_can_sample(&why);
    const struct impossible all[] = {
        {o->all, "--all", "record a command, or your own processes with -p"},
        {o->cgroup != NULL, "--cgroup", "processes that are in it now, of this user, are watched"},
        {o->probes[SV_PROBE_sample].number > 0 && !can_sample && !o->live, "--sample",
         "stacks of Python are taken at each look; --look HZ says how often"},
        {o->calls != NULL, "--calls", "the library io records calls on files of libc"},
        {o->prefix != NULL, "--path", "filter afterwards: stave cat --where"},
        {o->min_latency != NULL, "--min-latency", "filter afterwards: stave cat --where"},
        {o->hooks != NULL, "--hooks", "leave it out"},
        {o->drop_caches, "--drop-caches", "leave it out"},
        {o->budget != NULL, "--budget", "--look HZ and --interval say how often stave looks"},
    };
    const char *first = NULL;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (!all[i].is_asked)
            continue;
        sv_console_note("%s is not possible here; instead: %s", all[i].option, all[i].instead);
        first = first ? first : all[i].option;
    }
    return first;
}

static int report_impossible(struct sv_recorder *r, const char *why, struct sv_err *err)
{
    const char *option = say_impossible(r);
    if (!r->options->strict)
        return 0;
    return sv_err_set(err, SV_EIO, SV_NO_POS, "%s%s%s (run 'stave doctor' for details)",
                      option ? option : "", option ? ": " : "", why);
}

/* ---- the watcher ---- */

/* What is said in one line: what is recorded here instead. */
static void say(const struct sv_recorder *r, const char *why)
{
    char text[400];
    size_t n = 0;
    const struct sv_record_ladder *l = &r->ladder;
    const struct {
        bool is;
        const char *what;
    } parts[] = {{l->watch != NULL, "states, waits and Python stacks of threads by looking at "
                                    "/proc"},
                 {l->has_perf, "stacks of other programs by perf events"},
                 {l->has_io, "calls on files by a library in the command"},
                 {l->has_locks, "waits for locks by another"},
                 {l->has_torch, "PyTorch by hooks"},
                 {r->samplers.usage_interval_ns > 0, "utilisation"}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (parts[i].is)
            n += (size_t)snprintf(text + n, sizeof text - n, "%s%s", n ? ", " : "", parts[i].what);
    if (l->watch)
        n += (size_t)snprintf(text + n, sizeof text - n, " (%lld times a second)",
                              (long long)(1000000000 / l->every_ns));
    sv_console_note("without system calls and block I/O: %s (run 'stave doctor' for details); "
                    "recorded instead: %s",
                    why, n ? text : "events of libstave");
}

static void open_watch(struct sv_recorder *r)
{
    const struct sv_record_options *o = r->options;
    const uint64_t *probes = r->system.plan.probes;
    struct sv_record_ladder *l = &r->ladder;
    uint64_t hz = o->look_hz ? o->look_hz : HZ;
    if (o->no_look || (!probes[SV_PROBE_sched] && !probes[SV_PROBE_offcpu]))
        return;
    l->every_ns = 1000000000 / (int64_t)hz;
    l->watch = sv_watch_new(
        &(struct sv_watch_options){
            .root = sv_procfs_root(),
            .every_ns = l->every_ns,
            .offcpu_min_ns = (int64_t)r->system.plan.offcpu_min_ns,
            .has_states = probes[SV_PROBE_sched],
            .has_waits = probes[SV_PROBE_offcpu],
            .has_samples = probes[SV_PROBE_offcpu] || probes[SV_PROBE_sample],
            .copies_stacks = r->system.plan.stacks == SV_STACK_COPY && sv_cfi_is_built(),
            .has_processes = true,
            .inside = sv_inject_has("io")      ? "/libstave-io.so"
                      : sv_inject_has("locks") ? "/libstave-locks.so"
                                               : NULL},
        sv_decode_rings(r->system.decode));
    int no_perf;
    l->has_perf = r->command->n > 0 && probes[SV_PROBE_offcpu] && sv_watch_can_sample(&no_perf);
    /* Nobody sends what is mapped: maps are read again where an address is not known. */
    sv_symbols_follow(sv_decode_symbols(r->system.decode), false);
}

int sv_record_ladder_open(struct sv_recorder *r, const char *why, struct sv_err *err)
{
    int code = 0;
    if (r->options->look_hz > HZ_MAX)
        return sv_err_set(err, SV_EUSAGE, SV_NO_POS, "--look: at most %d times a second", HZ_MAX);
    if (!r->system.kernel)
        code = report_impossible(r, why, err);
    if (code < 0)
        return code;
    inject_defaults(r);
    if (r->system.kernel)
        return 0;
    open_watch(r);
    say(r, why);
    return 0;
}

void sv_record_ladder_without_libraries(struct sv_recorder *r)
{
    r->ladder.has_io = r->ladder.has_locks = r->ladder.has_torch = false;
    if (r->ladder.watch)
        sv_watch_all(r->ladder.watch);
}

void sv_record_ladder_prepare(struct sv_recorder *r, uint32_t pid)
{
    uint64_t hz = r->options->probes[SV_PROBE_sample].number;
    if (r->ladder.has_perf)
        sv_watch_sample(r->ladder.watch, pid, hz ? (unsigned)hz : SAMPLE_HZ);
}

void sv_record_ladder_follow(struct sv_recorder *r, uint32_t pid)
{
    if (!r->ladder.watch)
        return;
    sv_watch_add(r->ladder.watch, pid);
    sv_watch_look_now(r->ladder.watch, sv_recorder_now_ns()); /* it may end at once */
}

static int decode_looks(struct sv_recorder *r, struct sv_err *err)
{
    sv_decode_round(r->system.decode, (uint64_t)sv_recorder_now_ns());
    int code = sv_recorder_pull(r, &r->system.totals.source, err);
    sv_decode_release(r->system.decode);
    return code;
}

int sv_record_ladder_round(struct sv_recorder *r, int64_t now, struct sv_err *err)
{
    if (!r->ladder.watch || !sv_watch_look(r->ladder.watch, now))
        return 0;
    return decode_looks(r, err);
}

int sv_record_ladder_patience_ms(const struct sv_recorder *r, int most_ms)
{
    enum { CALLS_MS = 4 }; /* a thread that only reads fills its ring in some 15 ms */
    if (sv_inject_has("io"))
        most_ms = CALLS_MS;
    if (!r->ladder.watch)
        return most_ms;
    int64_t ms = (sv_watch_next_ns(r->ladder.watch) - sv_recorder_now_ns()) / 1000000;
    return ms < 1 ? 1 : ms < most_ms ? (int)ms : most_ms;
}

void sv_record_ladder_last_look(struct sv_recorder *r)
{
    struct sv_err err = {0};
    if (!r->ladder.watch)
        return;
    sv_watch_look_now(r->ladder.watch, sv_recorder_now_ns());
    if (decode_looks(r, &err) < 0)
        sv_console_note("%s", err.msg);
}

int sv_record_ladder_finish(struct sv_recorder *r, struct sv_err *err)
{
    char text[64];
    if (!r->ladder.watch)
        return 0;
    sv_watch_finish(r->ladder.watch, sv_recorder_now_ns());
    struct sv_watch_sums s = sv_watch_sums(r->ladder.watch);
    snprintf(text, sizeof text, "%llu looks, %lld ns", (unsigned long long)s.looks,
             (long long)s.spent_ns);
    sv_dict_set_meta(r->dict, "looks", text, strlen(text), false);
    if (s.lost)
        sv_decode_lost(r->system.decode, 0, "states of threads", s.lost,
                       (uint64_t)r->times.started_ns, (uint64_t)sv_recorder_now_ns());
    r->losses.sum += s.lost;
    return decode_looks(r, err);
}

void sv_record_ladder_summary(const struct sv_recorder *r)
{
    char a[32], b[32];
    if (!r->ladder.watch)
        return;
    struct sv_watch_sums s = sv_watch_sums(r->ladder.watch);
    sv_print(stderr, "  %llu looks at /proc took %s of CPU", (unsigned long long)s.looks,
             sv_human_ns(a, s.spent_ns));
    if (s.every_ns > r->ladder.every_ns)
        sv_print(stderr, "; there are many threads: now every %s", sv_human_ns(b, s.every_ns));
    sv_print(stderr, "\n");
    if (s.unreadable)
        sv_print(stderr, "  no stacks of %llu process%s that cannot be read; of the last one: %s\n",
                 (unsigned long long)s.unreadable, s.unreadable == 1 ? "" : "es", s.why_unreadable);
}

void sv_record_ladder_close(struct sv_recorder *r)
{
    sv_watch_free(r->ladder.watch);
    r->ladder.watch = NULL;
}
