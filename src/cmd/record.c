/* stave record: runs a command, or joins running processes, and puts what they do on one time
 * axis. */
#include "cli/console.h"
#include "cli/dispositions.h"
#include "cli/yaml.h"
#include "cmd/commands.h"
#include "cmd/record_end.h"
#include "core/files/part_name.h"
#include "core/files/recording_mode.h"
#include "record/output/owner.h"
#include "record/output/parts.h"
#include "record/sample/procfs.h"
#include "record/session/recorder.h"
#include "record/session/spend.h"
#include "record/spool/defer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

/* Can a trace begin there? Tried: rights, quotas, Landlock and full disks differ. errno says why
 * not. */
static bool can_hold_trace(const char *folder)
{
    enum { BEGINS_BYTES = 64 << 10 };
    char path[256];
    snprintf(path, sizeof path, "%s/.stave-%d", folder, (int)getpid());
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return false;
    int why = posix_fallocate(fd, 0, BEGINS_BYTES);
    unlink(path);
    close(fd);
    errno = why;
    return why == 0;
}

/* For a name by -o, without trying: a recording around this one would show the file. */
static bool is_closed_here(void)
{
    struct statvfs v;
    return access(".", W_OK | X_OK) < 0 || (statvfs(".", &v) == 0 && v.f_bavail == 0);
}

/* Where a trace goes that has no folder by -o: this one, or where the user can write at all. NULL:
 * nowhere. */
static const char *default_folder(void)
{
    const char *const places[] = {getenv("TMPDIR"), "/tmp", "/var/tmp", getenv("XDG_RUNTIME_DIR"),
                                  "/dev/shm"};
    if (can_hold_trace("."))
        return "";
    int why = errno;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        if (!places[i] || places[i][0] != '/' || strlen(places[i]) > 200 ||
            strchr(places[i], '%') || !can_hold_trace(places[i]))
            continue;
        sv_console_note("this folder cannot be written to (%s): the trace goes to %s (-o chooses "
                        "another place)",
                        strerror(why), places[i]);
        return places[i];
    }
    return NULL;
}

/* Nothing can be written anywhere: what was asked for first is that the command runs. */
static int run_unrecorded(const struct sv_words *operands, struct sv_err *err)
{
    const char **argv = sv_alloc((operands->n + 1) * sizeof *argv);
    memcpy(argv, operands->items, operands->n * sizeof *argv);
    sv_console_note("no folder can be written to: '%s' runs and is not recorded (-o FILE names a "
                    "place, TMPDIR a folder)",
                    operands->items[0]);
    sv_dispositions_restore();
    execvp(argv[0], (char *const *)(const void *)argv);
    free(argv);
    return sv_err_sys(err, "cannot run '%s'", operands->items[0]);
}

/* A pattern like -o: percent signs of the command's name are doubled. */
static const char *default_path(const struct sv_words *operands, const char *folder, char path[512])
{
    const char *name = operands->n ? operands->items[0] : "record";
    const char *slash = strrchr(name, '/');
    time_t now = time(NULL);
    struct tm tm;
    size_t at = (size_t)snprintf(path, 512, "%s%s", folder, folder[0] ? "/" : "");
    for (name = slash ? slash + 1 : name; *name && at < 460; name++) {
        if (*name == '%')
            path[at++] = '%';
        path[at++] = *name;
    }
    localtime_r(&now, &tm);
    strftime(path + at, 512 - at, "-%Y%m%d-%H%M%S.pftrace", &tm);
    return path;
}

/* Of -o: a file in this folder, not a place that the user has chosen. */
static bool is_name_only(const char *out)
{
    return out && out[0] && strcmp(out, "-") != 0 && !strchr(out, '/') && strlen(out) < 250;
}

static const char *path_in(const char *folder, const char *name, char path[512])
{
    snprintf(path, 512, "%s/%s", folder, name);
    return path;
}

/* Everything that others could have, too, is claimed before anything is made. */
static int take_place(struct sv_recorder *r, struct sv_record_options *o,
                      struct sv_record_place *place, char *path, struct sv_err *err)
{
    if (!o->out.path)
        o->out.path = "trace.pftrace"; /* in a folder of its own */
    int code = sv_record_name(o, path, err);
    if (code >= 0)
        code = sv_record_place(o, place, err);
    if (code < 0)
        return code;
    code = sv_record_claim(r, err);
    if (code < 0 && place->folder[0])
        rmdir(place->folder);
    return code;
}

/* What is complete, to the user for whom root recorded. */
static void give_files(const struct sv_record_owner *owner, const struct sv_record_options *o,
                       const struct sv_recorder *r, const struct sv_record_place *place)
{
    char path[1400];
    sv_record_owner_give(owner, place->trace);
    for (uint32_t i = r->output.first_part; r->output.first_part && i <= r->output.last_part; i++) {
        sv_parts_name(place->trace, i, path, sizeof path);
        sv_record_owner_give(owner, path);
    }
    if (o->detach) {
        snprintf(path, sizeof path, "%s.log", o->out.path);
        sv_record_owner_give(owner, path);
    }
    if (o->use.copy_output) {
        sv_record_owner_give(owner, place->out_log);
        sv_record_owner_give(owner, place->err_log);
    }
    if (o->use.archive)
        sv_record_owner_give(owner, place->archive);
    if (place->folder[0])
        sv_record_owner_give_folder(owner, place->folder);
}

static int record_to_place(struct sv_record_options *o, const struct sv_words *operands,
                           struct sv_err *err)
{
    char path[SV_CLAIM_PATH_MAX];
    struct sv_record_place place = {0};
    struct sv_recorder r = {.options = o,
                            .command = operands,
                            .explain = sv_record_explain_saved,
                            .detach_fd = -1,
                            .copier.fds = {-1, -1},
                            .child.umask = sv_recording_umask()};
    struct sv_record_owner owner = sv_record_owner_find(o);
    if (o->detach) {
        bool is_parent;
        int code = sv_record_detach(&r.detach_fd, &is_parent, err);
        if (is_parent || code < 0)
            return code;
    }
    int code = take_place(&r, o, &place, path, err);
    if (code < 0)
        return code;
    if (o->detach)
        code = sv_record_leave_terminal(o->out.path, r.detach_fd, err);
    if (code >= 0 && o->use.copy_output)
        code = sv_copy_open(&r, &place, err);
    if (code >= 0)
        code = sv_recorder_run(&r, err);
    sv_record_unclaim(&r);
    int copied = sv_copy_close(&r, err);
    snprintf(place.trace, sizeof place.trace, "%s", r.output.claim.out);
    int packed = code < 0
                     ? code
                     : sv_record_package(o, &place, r.output.first_part, r.output.last_part, err);
    give_files(&owner, o, &r, &place);
    if (packed >= 0 && copied >= 0)
        sv_record_end(&r, place.trace);
    return packed < 0 ? packed : copied < 0 ? copied : code;
}

/* --always: what is worth its cost every day. Each of it can be given otherwise. */
static void always_on(struct sv_record_options *o)
{
    if (!o->always)
        return;
    o->sum_calls = o->sum_calls ? o->sum_calls : "1ms";
    o->offcpu_min = o->offcpu_min || o->probes[SV_PROBE_offcpu].is_off ? o->offcpu_min : "1ms";
    o->interval = o->interval ? o->interval : "1s";
    if (!o->probes[SV_PROBE_sample].number)
        o->probes[SV_PROBE_sample].number = SV_SAMPLE_HZ_LITTLE;
    o->probes[SV_PROBE_block].is_given = true;      /* --no-block */
    o->probes[SV_PROBE_page_cache].is_given = true; /* --no-page-cache */
}

static int record(struct sv_record_options *o, const struct sv_words *operands, struct sv_err *err)
{
    char path[512];
    bool joins = o->pids.n > 0 || o->comm || o->cgroup;
    if (o->cgroup && !sv_procfs_is_cgroup(o->cgroup))
        return sv_err_set(err, SV_EUSAGE, SV_NO_POS,
                          "--cgroup: '%s' is not a cgroup: give a folder below /sys/fs/cgroup that "
                          "has a file cgroup.procs",
                          o->cgroup);
    if (operands->n == 0 && !joins && !o->all)
        return sv_err_set(
            err, SV_EUSAGE, SV_NO_POS,
            "nothing to record: give a command after --, or -p PID, --comm, --cgroup or --all");
    if (operands->n > 0 && joins)
        return sv_err_set(err, SV_EUSAGE, SV_NO_POS,
                          "a command cannot be combined with -p, --comm or --cgroup");
    if (o->only && (strcmp(o->only, "sdk") != 0 || operands->n == 0))
        return sv_err_set(err, SV_EUSAGE, SV_NO_POS,
                          "--only: it can be sdk, and needs a command that stave starts");
    if (o->always && !o->use.rotate && !o->use.last)
        o->use.last = "60s";
    if (sv_recording_option(o->mode, err) < 0 || sv_record_sync_check(o, err) < 0)
        return err->code;
    bool can_move = operands->n > 0 && !o->strict, is_here = is_name_only(o->out.path);
    if (!o->use.out_dir && (!o->out.path || (is_here && can_move && is_closed_here()))) {
        const char *folder = default_folder();
        if (!folder && can_move)
            return run_unrecorded(operands, err);
        if (!o->out.path)
            o->out.path = default_path(operands, folder ? folder : "", path);
        else if (folder[0])
            o->out.path = path_in(folder, o->out.path, path);
    }
    if (o->out.path && strcmp(o->out.path, "-") == 0)
        return sv_err_set(err, SV_EUSAGE, SV_NO_POS,
                          "standard output is used by the command; use -o FILE");
    if ((o->use.inject.n > 0 || o->use.copy_output) && operands->n == 0)
        return sv_err_set(err, SV_EUSAGE, SV_NO_POS,
                          "--inject and --copy-output need a command that stave starts");
    if (sv_inject(&o->use.inject, err) < 0 || sv_triggers_check(o, err) < 0 ||
        (o->use.archive && sv_record_archive_check(err) < 0) || sv_record_logs_check(o, err) < 0 ||
        sv_parts_check(o, err) < 0 || sv_defer_check(o, err) < 0 || sv_spending_check(o, err) < 0)
        return err->code;
    o->probes[SV_PROBE_syscalls].is_given &= !o->use.io; /* --io undoes --no-io */
    /* What a library in the command records, the kernel does not record again. */
    o->probes[SV_PROBE_syscalls].is_given |= sv_inject_has("io");
    o->probes[SV_PROBE_offcpu].is_off |= sv_inject_has("locks");
    if (operands->n > 0)
        sv_inject_check(operands->items[0]);
    o->no_samples = sv_option_is_given("sample") && !o->probes[SV_PROBE_sample].number;
    always_on(o);
    for (unsigned i = 0; o->light && i < SV_N_PROBES; i++)
        o->probes[i].is_off = true;
    o->no_sockets |= o->light;
    o->no_summary |= o->json;
    return record_to_place(o, operands, err);
}

#define AT(member) offsetof(struct sv_record_options, member)

/* The options of the probes, by the types that list.h gives. */
#define PROBE_NONE(probe)
#define PROBE_FLAG(probe)                                                              \
    {0,           sv_probe_##probe.option.name,          NULL,                         \
     SV_OPT_FLAG, AT(probes[SV_PROBE_##probe].is_given), sv_probe_##probe.option.help, \
     NULL,        sv_probe_##probe.option.topic},
#define PROBE_PAIR(probe)                                                                   \
    PROBE_FLAG(probe){                                                                      \
        0,           sv_probe_##probe.option.off_name,    NULL,                             \
        SV_OPT_FLAG, AT(probes[SV_PROBE_##probe].is_off), sv_probe_##probe.option.off_help, \
        NULL,        sv_probe_##probe.option.topic},
#define PROBE_COUNT(probe)                \
    {0,                                   \
     sv_probe_##probe.option.name,        \
     sv_probe_##probe.option.arg,         \
     SV_OPT_COUNT,                        \
     AT(probes[SV_PROBE_##probe].number), \
     sv_probe_##probe.option.help,        \
     NULL,                                \
     sv_probe_##probe.option.topic},

static const struct sv_option record_options[] = {
    SV_OUTPUT_OPTIONS(struct sv_record_options),
    SV_RECORDING_MODE_OPTION(struct sv_record_options, mode),
    {'p', "pid", "PID", SV_OPT_LIST, AT(pids),
     "record this running process, its threads and descendants; may be given several times", NULL,
     NULL},
    {0, "comm", "NAME", SV_OPT_TEXT, AT(comm),
     "record all processes with this name, running now or started later, and their descendants",
     NULL, "Which processes"},
    {0, "cgroup", "FOLDER", SV_OPT_TEXT, AT(cgroup),
     "record the processes of this cgroup (a container), in it now or entering later, and their "
     "descendants",
     NULL, "Which processes"},
    {0, "all", NULL, SV_OPT_FLAG, AT(all),
     "record every process of the machine except stave itself", NULL, "Which processes"},
    {0, "duration", "TIME", SV_OPT_TEXT, AT(duration),
     "stop after this time (10s, 2min); the command continues unrecorded (default: no limit)", NULL,
     NULL},
    {0, "max-size", "SIZE", SV_OPT_BYTES, AT(max_bytes),
     "stop when the trace has reached this size; the command continues unrecorded (default: no "
     "limit)",
     NULL, "Long recordings"},
    {0, "light", NULL, SV_OPT_FLAG, AT(light),
     "record less: no thread states, no waits with stacks, no calls on sockets; for the smallest "
     "files and the lowest cost",
     NULL, NULL},
    {0, "only", "WHAT", SV_OPT_TEXT, AT(only),
     "sdk: nothing but the events of programs that trace with libstave, and of what --inject "
     "names; "
     "needs no privileges",
     "sdk", "The run"},
    {0, "always", NULL, SV_OPT_FLAG, AT(always),
     "record what can stay on all the time: states, waits and calls of 1 ms and more, shorter "
     "calls "
     "as sums, processes, counters every second, libstave's events and 19 samples a second, in a "
     "ring of 60s (--last); with --when what goes wrong is saved",
     NULL, NULL},
    {0, "budget", "SHARE", SV_OPT_TEXT, AT(budget),
     "give up detail while the recording costs more than this share of the workload's CPU (1%), "
     "and take it back when it costs less than half of it: samples, stacks of waits, short waits, "
     "short calls, all calls, in this order; each change is an event of the trace",
     NULL, NULL},
#define SV_PROBE(probe, type, ...) PROBE_##type(probe)
#include "record/probes/list.h"
#undef SV_PROBE
    {0, "stacks", "HOW", SV_OPT_TEXT, AT(stacks),
     "frames of programs in stacks: dwarf (by unwind information, reaches main; default where "
     "possible), fp (by frame pointers) or none (innermost only)",
     "dwarf fp none", "Stacks"},
    {0, "offcpu-min", "TIME", SV_OPT_TEXT, AT(offcpu_min),
     "skip waits shorter than this; they are filtered in the kernel (default 1ms)", NULL,
     "Threads"},
    {0, "look", "HZ", SV_OPT_COUNT, AT(look_hz),
     "without kernel programs: look at the threads in /proc so many times a second (default 20, "
     "less often where there are very many threads)",
     NULL, "Threads"},
    {0, "no-look", NULL, SV_OPT_FLAG, AT(no_look),
     "without kernel programs: do not look at the threads in /proc", NULL, "Threads"},
    {0, "self", NULL, SV_OPT_FLAG, AT(self),
     "record libstave's own threads and files in traced programs, too", NULL, "System calls"},
    {0, "calls", "GROUPS", SV_OPT_TEXT, AT(calls),
     "which system calls: files, maps, sync, names, stat, sockets, uring, all; separated by commas "
     "(default: all, those on sockets only where they waited)",
     "files maps sync names stat sockets uring all", "System calls"},
    {0, "no-sockets", NULL, SV_OPT_FLAG, AT(no_sockets),
     "do not record calls on sockets that waited", NULL, "System calls"},
    {0, "min-latency", "TIME", SV_OPT_TEXT, AT(min_latency),
     "skip calls shorter than this (20us); they are filtered in the kernel and counted (default: "
     "none)",
     NULL, "System calls"},
    {0, "sum-calls", "TIME", SV_OPT_TEXT, AT(sum_calls),
     "calls shorter than this (1ms) are no events of their own: each second has, for each process, "
     "call and file, their number, bytes and time",
     NULL, "System calls"},
    {0, "path", "PREFIX", SV_OPT_TEXT, AT(prefix),
     "record only calls on files whose path starts with this; filtered in the kernel where "
     "possible",
     NULL, "System calls"},
    {0, "paths", "HOW", SV_OPT_TEXT, AT(paths),
     "all: every call has the path of its file (default); once: only the first call on each "
     "descriptor has it, which makes the file an eighth smaller; stave fills in the others when it "
     "reads the file, other programs do not",
     "all once", "System calls"},
    {0, "ring", "SIZE", SV_OPT_BYTES, AT(ring_bytes),
     "ring buffer per CPU between kernel and stave (default 16M, less with more than 32 CPUs)",
     NULL, "Between kernel and trace"},
    {0, "spool", "SIZE", SV_OPT_TEXT, AT(spool),
     "disk beside OUT for records that wait while the workload makes very many calls; they are "
     "decoded when it is calm and at the end (default 1G; 0: decode at once)",
     NULL, "Between kernel and trace"},
    {0, "hooks", "KIND", SV_OPT_TEXT, AT(hooks),
     "kind of kernel tracepoints: btf, raw or tracepoints (default: best, the first of these that "
     "works; 'stave doctor' shows which)",
     "best btf raw tracepoints", "Between kernel and trace"},
    {0, "interval", "TIME", SV_OPT_TEXT, AT(interval),
     "sampling interval of utilisation (CPUs, memory, disks, network, processes); 0 disables it "
     "(default 100ms)",
     NULL, "Utilisation"},
    {0, "drop-caches", NULL, SV_OPT_FLAG, AT(drop_caches),
     "empty the page cache first, so that files are read from disk", NULL, "The run"},
    {0, "redact", "LIST", SV_OPT_TEXT, AT(redact),
     "leave out what others must not see: paths (each component becomes a token, the same wherever "
     "it occurs), sql (values become ?), args=GLOB (values of arguments with such keys), all; "
     "command lines always",
     "paths sql all", "Output"},
    {0, "detach", NULL, SV_OPT_FLAG, AT(detach),
     "record in the background, without a terminal; use 'stave status' and 'stave stop'", NULL,
     NULL},
    {0, "strict", NULL, SV_OPT_FLAG, AT(strict),
     "stop if something cannot be recorded; exit with 1 if events were lost", NULL, "The run"},
    SV_RECORD_USE_OPTIONS(struct sv_record_options),
    SV_TRIGGER_OPTIONS(struct sv_record_options),
    {0, "explain", NULL, SV_OPT_FLAG, AT(explain),
     "say at the end what slows the command down, also with -q, --no-summary and for large traces",
     NULL, "The run"},
    {0, "no-explain", NULL, SV_OPT_FLAG, AT(no_explain),
     "do not say at the end what slows the command down", NULL, "The run"},
    {0, "json", NULL, SV_OPT_FLAG, AT(json),
     "the summary as one line of JSON on standard error, at the end (docs/json.md)", NULL,
     "The run"},
    {0, "no-summary", NULL, SV_OPT_FLAG, AT(no_summary), "print no summary at the end", NULL,
     "The run"},
    {0},
};

static int run(void *options, const struct sv_words *operands, struct sv_err *err)
{
    struct sv_record_options *o = options;
    struct sv_words command = {0};
    struct sv_yaml *config = NULL;
    int code = 0;
    for (size_t i = 0; i < operands->n; i++)
        sv_words_add(&command, operands->items[i]);
    if (o->use.config)
        code = sv_record_config(o->use.config, record_options, o, &command, &config, err);
    if (code >= 0)
        code = record(o, &command, err);
    sv_words_free(&command);
    sv_words_free(&o->pids);
    sv_words_free(&o->use.logs);
    sv_words_free(&o->use.inject);
    sv_words_free(&o->triggers.when);
    free(o->sync);
    sv_yaml_free(config);
    return code;
}

static const struct sv_example examples[] = {
    {"stave record -o train.pftrace -- python3 train.py",
     "the command, all its children and threads; its exit code is passed on"},
    {"stave record -o job.pftrace -p 4711 --duration 30s", "record a running job for 30 seconds"},
    {"mpirun -n 4 stave record -o job.pftrace -- ./train",
     "job.rank0000.pftrace to job.rank0003.pftrace"},
    {"mpirun -n 4 stave record --sync -o job.pftrace -- ./train",
     "the same, and the clocks of the ranks are related by pings"},
    {"stave record --detach -o night.pftrace -p 4711",
     "record in the background; 'stave stop' ends it"},
    {"stave record --config night.yml -- ./job",
     "options from a file: each long option is a key, unknown keys are an error"},
    {"stave record -o gpu.pftrace --inject opencl,nvtx -- ./job",
     "with the OpenCL calls and NVTX ranges of the command; needs no root"},
    {"stave record --out-dir runs --archive --log train.log -- python3 train.py",
     "runs/run-0001 with trace, report and picture, runs/run-0001.tar.zst with all of it"},
    {"stave record --detach --last 30s -o job.pftrace -p 4711",
     "keep the last 30 seconds; 'stave trigger' saves them"},
    {"stave record -o slow.pftrace --min-latency 1ms --path /data/ -- ./job",
     "only calls of a millisecond or more, only below /data/"},
    {"stave record -o waits.pftrace -- python3 train.py && stave plot flame --offcpu "
     "waits.pftrace -o waits.svg",
     "where threads waited, and for what"},
    {"stave record --light -o calls.pftrace -- ./job",
     "calls on files, disk requests and processes only, at the lowest cost"},
    {"stave record -o hot.pftrace --sample 99 -- python3 train.py && stave plot flame --samples "
     "hot.pftrace -o hot.svg",
     "where the CPUs spent their time, as a flame graph"},
    {0},
};

const struct sv_command sv_command_record = {
    .name = "record",
    .operands = "[-o OUT] -- COMMAND [WORD…]",
    .summary = "record a workload: processes, file and disk I/O on one time axis",
    .description =
        "Starts COMMAND (or attaches to processes with -p) and records it with all its children "
        "and threads until it exits: what each thread did and waited for, with the stacks and "
        "wakers of waits of 1 ms or more, every file operation with path, bytes, offset and "
        "duration, calls on sockets that waited, with their peers, every block request with its "
        "device, process starts and exits, the utilisation of CPUs, memory, disks and network, and "
        "the events of programs that trace with libstave. --light records less, single parts have "
        "options such as --no-sched, and the file says what was recorded ('stave info'). The "
        "result has the format of OUT's suffix; without -o it is COMMAND-DATE-TIME.pftrace.\n\n"
        "System calls and block requests come from the kernel by eBPF, which needs root or the "
        "capabilities CAP_BPF and CAP_PERFMON. Without them stave reports this and looks at the "
        "command's threads in /proc instead, 20 times a second: states, waits and stacks of "
        "Python; with --strict it stops. Into a command that is Python it loads hooks of PyTorch "
        "(--no-inject: not). Run 'stave doctor' to see what works here. It ends with what slows "
        "the command down, as 'stave explain' says it.\n\n"
        "In OUT, %p is the pid of stave, %h the host, %r the rank, %j the job and %% a percent "
        "sign. Where a launcher such as mpirun started several ranks, the rank is put before the "
        "suffix unless OUT has %r. A second recording to the same OUT is refused.\n\n"
        "Ctrl-C ends the recording and saves it; a second one ends stave at once, and 'stave "
        "recover OUT' makes a trace of what was recorded. Lost events are counted, "
        "marked in the trace where they were lost, and reported at the end. If the disk is full, "
        "the trace ends there, the command continues, and the exit code is 4. If stave itself is "
        "killed, OUT.part holds everything but the last moments, and 'stave recover OUT' makes a "
        "trace of it.",
    .options = record_options,
    .examples = examples,
    .lists = sv_format_lists,
    .options_size = sizeof(struct sv_record_options),
    .takes_command = true,
    .run = run,
};
