/* stave doctor: what of `stave record` works here, and what the rest needs. Tries things rather
 * than guessing; changes nothing. */
#include "cmd/doctor.h"
#include "cli/console.h"
#include "cmd/commands.h"
#include "core/base/json.h"
#include "core/base/printable.h"
#include "core/files/launcher.h"
#include "files/open.h"
#include "net/grpc.h"
#include "record/decode/calls.h"
#include "record/kernel/tracepoints.h"
#include "record/sample/gpus.h"
#include "record/sample/procfs.h"
#include "record/session/use.h"
#include "record/stacks/cfi.h"
#include "record/watch/watch.h"
#include "sdk/session/folders.h"
#include "store/demangle.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

enum verdict { GOOD, LACKING, ABSENT }; /* ABSENT: fine on machines that have no such thing */

struct doctor_options {
    bool strict, json;
};

/* With --json: what is said goes here; NULL: to the terminal. */
static struct report {
    struct sv_buf text;
    struct sv_json json;
    bool has_line; /* one is open, to which remedies belong */
} * report;

struct doctor {
    unsigned n_lacking;
};

__attribute__((format(printf, 1, 0))) static void put_text(const char *fmt, va_list args)
{
    struct sv_buf b;
    sv_buf_init(&b, 1u << 16);
    sv_buf_printable_vformat(&b, fmt, args);
    sv_json_text(&report->json, sv_buf_cstr(&b), b.len);
    sv_buf_fini(&b);
}

static void end_line(void)
{
    if (report->has_line) {
        sv_json_end(&report->json);
        sv_json_end(&report->json);
    }
    report->has_line = false;
}

__attribute__((format(printf, 3, 0))) static void say_json(enum verdict v, const char *what,
                                                           const char *fmt, va_list args)
{
    struct sv_json *j = &report->json;
    end_line();
    sv_json_line(j);
    sv_json_begin(j, '{');
    sv_json_put(j, "what", cstr, what);
    sv_json_lit(j, "ok");
    if (v == ABSENT)
        sv_json_null(j);
    else
        sv_json_bool(j, v == GOOD);
    sv_json_lit(j, "says");
    put_text(fmt, args);
    sv_json_lit(j, "fix");
    sv_json_begin(j, '[');
    report->has_line = true;
}

__attribute__((format(printf, 4, 5))) static void say(struct doctor *d, enum verdict v,
                                                      const char *what, const char *fmt, ...)
{
    static const char *const words[] = {"ok", "no", "-"};
    static const enum sv_style_code colours[] = {SV_BOLD, SV_RED, SV_DIM};
    va_list args;
    d->n_lacking += v == LACKING;
    va_start(args, fmt);
    if (report) {
        say_json(v, what, fmt, args);
    } else {
        sv_print_styled(stdout, colours[v], "%-3s", words[v]);
        sv_print(stdout, " %-26s ", what);
        sv_vprint_styled(stdout, SV_RESET, fmt, args);
        sv_print(stdout, "\n");
    }
    va_end(args);
}

/* What to type, on a line of its own. */
__attribute__((format(printf, 1, 2))) static void fix(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    if (report) {
        put_text(fmt, args);
    } else {
        sv_print(stdout, "      ");
        sv_vprint_styled(stdout, SV_DIM, fmt, args);
        sv_print(stdout, "\n");
    }
    va_end(args);
}

static bool first_line(const char *path, char *text, size_t size)
{
    sv_procfs_text(path, text, size);
    text[strcspn(text, "\n")] = 0;
    return text[0] != 0;
}

static bool has_proc(void)
{
    return access("/proc/self", F_OK) == 0;
}

static void own_path(char path[512])
{
    ssize_t n = readlink("/proc/self/exe", path, 511);
    if (n > 0)
        path[n] = 0;
    else
        snprintf(path, 512, "\"$(command -v stave)\"");
}

/* From the kernel, which says it without /proc, too. */
static uint64_t own_capabilities(void)
{
    struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2] = {0};
    if (syscall(SYS_capget, &head, data) != 0)
        return 0;
    return data[0].effective | (uint64_t)data[1].effective << 32;
}

/* ---- the kernel's side ---- */

/* The kernel's numbers of the namespaces that a machine starts with (PROC_USER_INIT_INO,
 * PROC_PID_INIT_INO). */
#define USER_INITIAL 0xeffffffdu
#define PID_INITIAL  0xeffffffcu

/* Ours is this one, or is not known. */
static bool is_namespace(const char *kind, ino_t number)
{
    char path[64];
    struct stat st;
    snprintf(path, sizeof path, "/proc/self/ns/%s", kind);
    return stat(path, &st) != 0 || st.st_ino == number;
}

static void look_at_capabilities(struct doctor *d)
{
    enum { PERFMON = 38, BPF = 39, SYS_ADMIN = 21 };
    char path[512];
    uint64_t caps = own_capabilities();
    bool has_admin = caps >> SYS_ADMIN & 1;
    bool has_both = caps >> PERFMON & 1 && caps >> BPF & 1;
    if ((has_admin || has_both) && !is_namespace("user", USER_INITIAL)) {
        say(d, LACKING, "capabilities", "only those of a user namespace, which do not count");
        fix("record from outside of the container: sudo stave record -p PID, or --cgroup FOLDER");
        return;
    }
    if (has_admin || has_both) {
        say(d, GOOD, "capabilities", "%s", has_admin ? "root's" : "CAP_BPF and CAP_PERFMON");
        return;
    }
    own_path(path);
    say(d, LACKING, "capabilities", "neither root nor CAP_BPF and CAP_PERFMON");
    fix("sudo stave record …, or once: sudo setcap cap_bpf,cap_perfmon+ep %s", path);
}

static void look_at_btf(struct doctor *d)
{
    struct utsname u;
    const char *release = uname(&u) == 0 ? u.release : "?";
    if (access("/sys/kernel/btf/vmlinux", R_OK) == 0) {
        say(d, GOOD, "kernel type information", "Linux %s", release);
        return;
    }
    say(d, LACKING, "kernel type information", "Linux %s has no /sys/kernel/btf/vmlinux", release);
    fix("a kernel with CONFIG_DEBUG_INFO_BTF=y (distribution kernels since 2020 have it); in a "
        "container: mount /sys");
}

/* What the kernel has tracepoints for and stave does not record: a module has its types beside the
 * kernel's. */
static void look_below(struct doctor *d)
{
    static const struct {
        const char *name, *tracepoint, *module;
    } all[] = {{"FUSE", "fuse_request_send", "/sys/kernel/btf/fuse"},
               {"NFS", "nfs_initiate_read", "/sys/kernel/btf/nfs"},
               {"TCP retransmits", "tcp_retransmit_skb", NULL}};
    struct sv_tracepoints there;
    char has[64] = "", lacks[64] = "";
    sv_tracepoints_read(&there, "/sys/kernel/btf/vmlinux");
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        bool is_there = sv_tracepoints_find(&there, all[i].tracepoint) ||
                        (all[i].module && access(all[i].module, F_OK) == 0);
        char *to = is_there ? has : lacks;
        size_t n = strlen(to);
        snprintf(to + n, sizeof has - n, "%s%s", n ? ", " : "", all[i].name);
    }
    sv_tracepoints_fini(&there);
    say(d, ABSENT, "below files and sockets",
        "not recorded; this kernel could show: %s; could not: %s", *has ? has : "nothing",
        *lacks ? lacks : "nothing");
}

/* The slower ways, each tried by itself: on another kernel they are what remains. */
static void look_at_other_hooks(struct doctor *d, struct sv_kernel_options options)
{
    static const struct {
        enum sv_hooks hooks;
        const char *name, *what;
    } ways[] = {
        {SV_HOOKS_RAW, "  raw tracepoints", "the same records, a little slower"},
        {SV_HOOKS_PLAIN, "  plain tracepoints", "system calls and processes only"},
    };
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        struct sv_kernel *kernel = NULL;
        struct sv_err err = {0};
        options.hooks = ways[i].hooks;
        if (sv_kernel_open(&options, &kernel, &err) < 0)
            say(d, ABSENT, ways[i].name, "%s", err.msg);
        else if (sv_doctor_trial(kernel, &err) < 0)
            say(d, LACKING, ways[i].name, "attached, but %s", err.msg);
        else
            say(d, GOOD, ways[i].name, "possible: %s", ways[i].what);
        sv_kernel_close(kernel);
    }
}

static void check_hooks(struct doctor *d, const struct sv_kernel *kernel)
{
    static const char *const words[] = {[SV_HOOKS_BTF] = "typed tracepoints (tp_btf)",
                                        [SV_HOOKS_RAW] = "raw tracepoints",
                                        [SV_HOOKS_PLAIN] = "plain tracepoints"};
    enum sv_hooks hooks = sv_kernel_hooks(kernel);
    const char *missing = sv_kernel_missing(kernel), *why = sv_kernel_why_hooks(kernel);
    if (missing[0])
        say(d, LACKING, "kernel programs", "loaded by %s, but without %s", words[hooks], missing);
    else
        say(d, GOOD, "kernel programs",
            "loaded and attached by %s: system calls, processes, block requests, the scheduler, "
            "stacks",
            words[hooks]);
    if (why[0])
        fix("not by typed tracepoints: %s", why);
}

static void try_recording(struct doctor *d, struct sv_kernel *kernel)
{
    struct sv_err err = {0};
    if (sv_doctor_trial(kernel, &err) < 0)
        say(d, LACKING, "a recording", "%s", err.msg);
    else
        say(d, GOOD, "a recording",
            "a child process was followed, all its system calls were recorded");
}

/* Whose pids and whose /proc these are. */
static void look_at_namespace(struct doctor *d)
{
    struct sv_err err = {0};
    if (sv_procfs_open(&err) < 0) {
        say(d, LACKING, "pid namespace", "%s", err.msg);
        return;
    }
    say(d, GOOD, "pid namespace", "%s%s",
        is_namespace("pid", PID_INITIAL)
            ? "initial namespace: every process can be recorded"
            : "namespace of a container: its processes can be recorded, by their pids in it",
        strcmp(sv_procfs_root(), "/proc") == 0
            ? ""
            : "; /proc belongs to another namespace, a private one is mounted");
}

static void check_stacks(struct doctor *d, const struct sv_kernel *kernel)
{
    bool can_copy = sv_kernel_stacks(kernel) == SV_STACK_COPY;
    if (!sv_cfi_is_built()) {
        say(d, LACKING, "stacks", "by frame pointers only: this stave was built without libdw");
        fix("sudo apt-get install libdw-dev, then build again");
    } else if (!can_copy) {
        say(d, ABSENT, "stacks",
            "by frame pointers only: unwinding needs x86-64, Linux 5.15 and typed tracepoints");
    } else {
        say(d, GOOD, "stacks",
            "unwound to the start of the thread, with frames of CPython 3.11 to 3.14%s",
            sv_demangle_is_possible() ? "" : "; C++ names stay mangled (no libstdc++.so.6)");
    }
}

/* Can they be used? */
static bool look_at_programs(struct doctor *d)
{
    struct sv_kernel_options options = {.groups = SV_CALLS_FILES,
                                        .probes = {[SV_PROBE_block] = 1,
                                                   [SV_PROBE_sched] = 1,
                                                   [SV_PROBE_sample] = 99,
                                                   [SV_PROBE_offcpu] = 1},
                                        .stacks = SV_STACK_COPY,
                                        .ring_bytes = 1 << 20};
    struct sv_kernel *kernel = NULL;
    struct sv_err err = {0};
    char text[64];
    if (!sv_kernel_is_built()) {
        say(d, LACKING, "kernel programs", "this stave was built without eBPF");
        fix("sudo apt-get install clang libbpf-dev bpftool, then build again");
        return false;
    }
    if (sv_kernel_open(&options, &kernel, &err) < 0) {
        say(d, LACKING, "kernel programs", "%s", err.msg);
        if (first_line("/proc/sys/kernel/unprivileged_bpf_disabled", text, sizeof text))
            fix("kernel.unprivileged_bpf_disabled is %s; containers also need permission in their "
                "seccomp profile",
                text);
        return false;
    }
    enum sv_hooks hooks = sv_kernel_hooks(kernel);
    check_hooks(d, kernel);
    check_stacks(d, kernel);
    say(d, sv_kernel_knows_calls(kernel) ? GOOD : ABSENT, "waits",
        sv_kernel_knows_calls(kernel) ? "with stacks, locks and wakers (--offcpu)"
                                      : "--offcpu needs x86-64, Linux 5.15 and typed tracepoints");
    try_recording(d, kernel);
    sv_kernel_close(kernel);
    if (hooks == SV_HOOKS_BTF)
        look_at_other_hooks(d, options);
    return true;
}

/* ---- the rest ---- */

static void look_at_proc(struct doctor *d)
{
    static const char *const files[] = {"/proc/stat", "/proc/meminfo", "/proc/diskstats",
                                        "/proc/net/dev"};
    char text[256], lacking[128] = "";
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        size_t n = strlen(lacking);
        if (sv_procfs_text(files[i], text, sizeof text) == 0)
            snprintf(lacking + n, sizeof lacking - n, " %s", files[i]);
    }
    if (!has_proc()) {
        say(d, LACKING, "utilisation", "CPUs, memory, disks and network: /proc is not mounted");
        fix("mount -t proc proc /proc");
    } else if (lacking[0])
        say(d, LACKING, "utilisation", "cannot read%s", lacking);
    else
        say(d, GOOD, "utilisation", "CPUs, memory, disks and network from /proc");
}

/* Where the rings of a new session would be: the folder around the first that can be used. False:
 * none can, dir is the one that was preferred. */
static bool find_session_folder(char dir[static SV_PATH_MAX])
{
    struct sv_folder all[SV_FOLDERS_MAX];
    size_t n = sv_folders(all);
    for (size_t i = 0; i < n; i++) {
        int fd = sv_folder_open(&all[i], false);
        /* Another user's: libstave takes another name beside it. */
        bool is_usable = fd >= 0 || errno == ENOENT || (errno == EPERM && !all[i].is_given);
        if (fd >= 0)
            close(fd);
        if (!is_usable)
            continue;
        memcpy(dir, all[i].path, SV_PATH_MAX);
        char *slash = strrchr(dir, '/');
        if (!all[i].is_given && slash > dir)
            *slash = '\0';
        return true;
    }
    memcpy(dir, all[0].path, SV_PATH_MAX);
    return false;
}

static void look_at_rings(struct doctor *d)
{
    struct statvfs v;
    char text[32], dir[SV_PATH_MAX];
    if (!find_session_folder(dir)) {
        say(d, LACKING, "libstave's rings", "another user could have written to %s", dir);
        fix("remove it, or set STAVE_SESSION_DIR to a folder that you own");
        return;
    }
    if (access(dir, W_OK | X_OK) != 0 || statvfs(dir, &v) != 0) {
        say(d, LACKING, "libstave's rings", "cannot write to %s: %s", dir, strerror(errno));
        fix("export STAVE_SESSION_DIR=/tmp (slower if it is not in memory)");
        return;
    }
    uint64_t bytes = (uint64_t)v.f_bavail * v.f_frsize;
    bool is_enough = bytes >= (uint64_t)32 << 20;
    say(d, is_enough ? GOOD : LACKING, "libstave's rings", "%s has %s free", dir,
        sv_human_bytes(text, bytes));
    if (!is_enough)
        fix("docker run --shm-size 1g …, or STAVE_SESSION_DIR in a larger folder");
}

static void look_at_clock(struct doctor *d)
{
    char text[64];
    if (!first_line("/sys/devices/system/clocksource/clocksource0/current_clocksource", text,
                    sizeof text))
        say(d, ABSENT, "clock", "clock source unknown");
    else if (strcmp(text, "tsc") == 0 || strcmp(text, "arch_sys_counter") == 0)
        say(d, GOOD, "clock", "%s: read without a system call", text);
    else
        say(d, ABSENT, "clock", "%s: correct, but slower to read than tsc", text);
}

static void look_at_gpus(struct doctor *d)
{
    struct sv_dict *dict = sv_dict_new();
    struct sv_gpus *g = sv_gpus_new(dict, NULL, NULL, NULL);
    if (sv_gpus_count(g) == 0)
        say(d, ABSENT, "GPUs", "%s: no driver found, or not available in this container",
            sv_gpus_why_none(g));
    for (size_t i = 0; i < sv_gpus_count(g); i++)
        say(d, GOOD, "GPUs", "%zu: %s", i, sv_gpus_name(g, i));
    sv_gpus_free(g);
    sv_dict_free(dict);
}

static void look_at_caches(struct doctor *d)
{
    if (access("/proc/sys/vm/drop_caches", W_OK) == 0)
        say(d, GOOD, "--drop-caches", "possible");
    else
        say(d, ABSENT, "--drop-caches", has_proc() ? "needs root" : "/proc is not mounted");
}

static void look_at_launcher(struct doctor *d)
{
    struct sv_launcher l = sv_launcher_find();
    char size[32] = "", local[48] = "", job[80] = "";
    if (l.size >= 0)
        snprintf(size, sizeof size, " of %" PRId64, l.size);
    if (l.local_rank >= 0)
        snprintf(local, sizeof local, ", local rank %" PRId64, l.local_rank);
    if (l.job[0])
        snprintf(job, sizeof job, ", job %s", l.job);
    if (l.rank < 0)
        say(d, ABSENT, "launcher",
            "none that Stave knows (mpirun, srun, torchrun, PMIx, PMI, or RANK with WORLD_SIZE): "
            "one "
            "process, one file");
    else if (!l.name)
        say(d, ABSENT, "launcher", "RANK=%" PRId64 " without WORLD_SIZE: one process, one file",
            l.rank);
    else
        say(d, GOOD, "launcher", "%s: rank %" PRId64 "%s%s%s: %s", l.name, l.rank, size, local, job,
            sv_launcher_has_many(&l) ? "each rank writes a file of its own" : "one file");
}

/* For stave-server; who has no StarPU does not miss it. */
static void look_at_starpu(struct doctor *d)
{
    enum sv_starpu starpu = sv_doctor_starpu();
    if (starpu == SV_STARPU_FXT)
        say(d, GOOD, "StarPU", "with FxT: STARPU_FXT_TRACE=1 records what it does");
    else if (starpu == SV_STARPU_PLAIN)
        say(d, ABSENT, "StarPU",
            "built without FxT: STARPU_FXT_TRACE=1 has no effect (tools/build-starpu-fxt makes one "
            "with it)");
}

static void look_at_injection(void *ctx, const char *name, const char *path, const char *needs)
{
    char what[32];
    snprintf(what, sizeof what, "--inject %s", name);
    if (path)
        say(ctx, GOOD, what, "%s", path);
    else
        say(ctx, ABSENT, what, "its library is not here: it was not built%s", needs);
}

static void find_torch(void *ctx, const char *name, const char *path, const char *needs)
{
    char *to = ctx;
    (void)needs;
    if (path && strcmp(name, "torch") == 0)
        snprintf(to, SV_PATH_MAX, "%s", path);
}

/* What is left without kernel programs, and which of the two `stave record` takes here. */
static void look_at_user(struct doctor *d, bool has_kernel)
{
    static const enum verdict verdicts[] = {[SV_DOCTOR_NO_PYTHON] = ABSENT,
                                            [SV_DOCTOR_NO_HOOKS] = LACKING,
                                            [SV_DOCTOR_HAS_HOOKS] = GOOD};
    char text[400], hooks[SV_PATH_MAX] = "";
    bool has_looks = sv_doctor_looks(text, sizeof text);
    say(d, has_looks ? GOOD : LACKING, "looks at /proc", "%s", text);
    int why;
    bool has_perf = sv_watch_can_sample(&why);
    say(d, has_perf ? GOOD : ABSENT, "perf events", "%s%s%s",
        has_perf ? "stacks of own programs without root"
                 : "no stacks of running programs but Python: ",
        has_perf ? "" : strerror(why),
        has_perf ? "" : " (kernel.perf_event_paranoid above 2, or a filter of system calls)");
    sv_inject_look(find_torch, hooks);
    enum sv_doctor_python python = sv_doctor_python(hooks[0] ? hooks : NULL, text, sizeof text);
    say(d, verdicts[python], "Python hooks", "%s", text);
    say(d, GOOD, "stave record", "here: %s",
        has_kernel  ? "kernel programs"
        : has_looks ? "looks at /proc, libraries and hooks in the command"
                    : "what /proc shows, libraries and hooks in the command");
}

/* For stave-server, and for OTLP over gRPC. */
static void look_at_grpc(struct doctor *d)
{
    char why[256];
    const char *version = sv_grpc_version(why, sizeof why);
    say(d, version ? GOOD : ABSENT, "gRPC", "%s%s", version ? "libgrpc " : why,
        version ? version : "");
}

static void begin_report(struct report *r)
{
    sv_buf_init(&r->text, 1u << 20);
    sv_json_init(&r->json, &r->text);
    sv_json_begin(&r->json, '{');
    sv_json_put(&r->json, "version", u64, 1);
    sv_json_put(&r->json, "uid", u64, geteuid());
    sv_json_lit(&r->json, "parts");
    sv_json_begin(&r->json, '[');
    report = r;
}

static int end_report(const struct doctor *d, struct sv_err *err)
{
    end_line();
    sv_json_end(&report->json);
    sv_json_put(&report->json, "lacking", u64, d->n_lacking);
    sv_json_end(&report->json);
    struct sv_buf *text = &report->text;
    report = NULL;
    return sv_print_json(text, err);
}

static void look_at_all(struct doctor *d)
{
    look_at_btf(d);
    look_at_capabilities(d);
    look_at_namespace(d);
    bool has_kernel = look_at_programs(d);
    look_below(d);
    look_at_proc(d);
    look_at_rings(d);
    look_at_clock(d);
    look_at_gpus(d);
    look_at_caches(d);
    look_at_launcher(d);
    look_at_starpu(d);
    look_at_grpc(d);
    sv_inject_look(look_at_injection, d);
    look_at_user(d, has_kernel);
}

static int run(void *options, const struct sv_words *operands, struct sv_err *err)
{
    const struct doctor_options *o = options;
    struct doctor d = {0};
    struct report as_json = {0};
    int code = sv_expect_operands(operands, 0, 0, "word", err);
    if (code < 0)
        return code;
    if (o->json)
        begin_report(&as_json);
    look_at_all(&d);
    if (o->json)
        code = end_report(&d, err);
    else if (d.n_lacking == 0)
        sv_print(stdout, "\neverything that stave record needs is available\n");
    else
        sv_print(stdout, "\nstave record also works without the lines marked 'no' and reports what "
                         "is missing; with --strict it stops instead\n");
    return code < 0 ? code : o->strict && d.n_lacking > 0 ? SV_EXIT_FOUND : SV_EXIT_OK;
}

static const struct sv_option options[] = {
    {0, "json", NULL, SV_OPT_FLAG, offsetof(struct doctor_options, json),
     "the same as JSON, for programs (docs/json.md)", NULL, NULL},
    {0, "strict", NULL, SV_OPT_FLAG, offsetof(struct doctor_options, strict),
     "exit with 1 if something is missing", NULL, NULL},
    {0},
};

static const struct sv_example examples[] = {
    {"stave doctor", "what works as this user"},
    {"sudo stave doctor", "what works as root"},
    {"stave doctor --strict -q >/dev/null || echo 'no system calls here'", "in a script"},
    {0},
};

const struct sv_command sv_command_doctor = {
    .name = "doctor",
    .operands = "",
    .summary = "show which parts of stave record work here, and what the rest needs",
    .description =
        "Tests everything that 'stave record' uses (kernel type information, capabilities, the pid "
        "namespace, loading and attaching the eBPF programs, recording a child process, /proc, "
        "shared memory, clocks, GPUs, the launcher and the rank of this process, gRPC, the "
        "libraries "
        "of --inject) and prints what works. For everything that does not work it "
        "prints the command that enables it. Nothing is changed.",
    .options = options,
    .examples = examples,
    .options_size = sizeof(struct doctor_options),
    .run = run,
};
