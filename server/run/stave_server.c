/* stave-server: reads its configurations, loads the models, serves until SIGINT or SIGTERM, and
 * leaves complete files behind.
 *
 * Order: the ports, trace, StarPU and models, HTTP (which answers "not ready"), warm-up, ready,
 * wait for a signal; then backwards: no new requests, what is queued is computed and answered,
 * StarPU, the trace's files, the plots. */
#include "cli/console.h"
#include "server/program/program.h"
#include "server/run/grpc_front.h"
#include "server/run/otlp_live.h"
#include "server/run/trace_control.h"

#include "core/base/mem.h"
#include "core/files/claim.h"
#include "net/listen_socket.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct server_options {
    struct sv_words configs;
    const char *address, *grpc, *keep, *rotate;
    bool check, keys;
};

#define OPTION(member) offsetof(struct server_options, member)

static const struct sv_option options[] = {
    {'c', "config", "FILE.yml", SV_OPT_LIST, OPTION(configs),
     "a model and how it is served; the first one also describes the server. May be given several "
     "times, "
     "once for each model",
     NULL, NULL},
    {'a', "address", "HOST:PORT", SV_OPT_TEXT, OPTION(address),
     "address to listen on instead of that of the configuration; port 0: any free port", NULL,
     NULL},
    {0, "grpc", "HOST:PORT", SV_OPT_TEXT, OPTION(grpc),
     "the same for gRPC (grpc_address), which the other address takes, too; same: only that; off: "
     "no "
     "gRPC",
     NULL, NULL},
    {0, "trace-keep", "RULE", SV_OPT_TEXT, OPTION(keep),
     "which requests are recorded (trace_keep): all, failed, 'slow > 50ms', p99, or several with "
     "commas; failed ones always are",
     NULL, NULL},
    {0, "trace-rotate", "SIZE|TIME[,COUNT]", SV_OPT_TEXT, OPTION(rotate),
     "begin a new part of the .pftrace after SIZE or TIME (trace_rotate), such as 100M,10 or "
     "60min; "
     "the newest COUNT parts are kept",
     NULL, NULL},
    {0, "check", NULL, SV_OPT_FLAG, OPTION(check),
     "check the configurations and the models, and exit", NULL, NULL},
    {0, "keys", NULL, SV_OPT_FLAG, OPTION(keys), "list the keys of a configuration", NULL, NULL},
    {0},
};

static const struct sv_example examples[] = {
    {"stave-server --config examples/server/mlp.yml",
     "serve on " SV_SERVER_ADDRESS " until Ctrl-C"},
    {"stave-load --requests 2000", "send requests, from a second terminal"},
    {"stave-server -c examples/server/mlp.yml -c examples/server/conv.yml", "two models"},
    {"stave-server --check -c model.yml", "check a configuration"},
    {"stave-server -c model.yml --grpc 0.0.0.0:8001", "gRPC for other machines, too"},
    {"stave-server -c model.yml --trace-rotate 100M,10", "a trace of 1 GB at most, in ten parts"},
    {"stave-server --keys", "every key, with its meaning"},
    {0},
};

__attribute__((format(printf, 1, 2))) static void say(const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    if (!sv_common.quiet)
        sv_vprint_styled(stderr, SV_RESET, format, ap);
    va_end(ap);
}

/* ---- the plots ---- */

static bool find_stave(char *out, size_t size)
{
    ssize_t n = readlink("/proc/self/exe", out, size - 8);
    if (n > 0) {
        out[n] = 0;
        char *slash = strrchr(out, '/');
        memcpy(slash + 1, "stave", 6);
        if (access(out, X_OK) == 0)
            return true;
    }
    snprintf(out, size, "stave");
    return false;
}

/* Waits for the child, at most so long. */
static bool wait_child(pid_t pid, int64_t seconds)
{
    int status;
    for (int64_t i = 0; i < seconds * 100; i++) {
        pid_t got = waitpid(pid, &status, WNOHANG);
        if (got == pid)
            return WIFEXITED(status) && WEXITSTATUS(status) == 0;
        if (got < 0 && errno != EINTR)
            return false;
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    say("stave-server: 'stave' took longer than trace_plot_seconds and was ended\n");
    return false;
}

/* batching_trace_summary.3.csv with "_plots" and ".png" → batching_trace_plots.3.png: the number of
 * a run is in all its names. */
static void name_beside(const char *path, const char *what, const char *suffix, char *out,
                        size_t size)
{
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    const char *dot = strrchr(base, '.');
    size_t end = dot ? (size_t)(dot - path) : strlen(path), n = end;
    while (n > (size_t)(base - path) && path[n - 1] >= '0' && path[n - 1] <= '9')
        n--;
    bool has_number = n < end && n > (size_t)(base - path) && path[n - 1] == '.';
    size_t stem = has_number ? n - 1 : end;
    int number = (int)(end - stem);
    const char *digits = path + stem;
    if (stem > 8 && memcmp(path + stem - 8, "_summary", 8) == 0)
        stem -= 8;
    snprintf(out, size, "%.*s%s%.*s%s", (int)stem, path, what, number, digits, suffix);
}

/* Runs the program stave with these words; false: it failed, or took too long. */
static bool run_stave(const struct sv_config *c, const char *const *words)
{
    char program[PATH_MAX + 8];
    char *argv[16] = {program};
    for (size_t i = 0; words[i] && i < 14; i++)
        argv[i + 1] = (char *)(uintptr_t)words[i]; /* execvp() does not change them */
    find_stave(program, sizeof program);
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        sigset_t none;
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        execvp(program, argv);
        _exit(127);
    }
    return pid > 0 && wait_child(pid, c->trace_plot_seconds);
}

static void draw_plots(const struct sv_config *c, const char *csv)
{
    char png[PATH_MAX];
    name_beside(csv, "_plots", ".png", png, sizeof png);
    const char *const words[] = {"plot", "batch", "-q", csv, "-o", png, NULL};
    if (run_stave(c, words))
        say("plots: %s\n", png);
    else
        say("stave-server: no plots: 'stave plot batch %s' failed\n", csv);
}

/* ---- StarPU's own trace ---- */

/* What StarPU recorded, with arrows from each batch to the task that computed it:
 * batching_trace.pftrace → batching_trace_starpu.pftrace. */
static void join_fxt(const struct sv_config *c, const char *fxt, const char *pftrace)
{
    char joined[PATH_MAX];
    name_beside(pftrace, "_starpu", ".pftrace", joined, sizeof joined);
    const char *const words[] = {"merge", "-q", "--same-host", "-o", joined, pftrace, fxt, NULL};
    say("fxt:   %s\n", fxt);
    if (!pftrace[0])
        return;
    if (run_stave(c, words))
        say("       %s: both on one axis\n", joined);
    else
        say("stave-server: 'stave merge --same-host %s %s' failed\n", pftrace, fxt);
}

static void describe_fxt(const struct sv_fxt *f)
{
    if (f->is_wanted && !f->is_there)
        sv_print(stderr,
                 "stave-server: STARPU_FXT_TRACE has no effect: this StarPU was built without FxT; "
                 "tools/build-starpu-fxt makes one with it\n");
}

/* ---- the trace ---- */

/* A server that was killed has left its trace unfinished. It is completed before the files get
 * their number: one number for a run, plots included. */
static void complete_earlier(const struct sv_config *c)
{
    bool is_newer = strcmp(c->trace_names, "perfetto") == 0;
    const char *dir = c->trace_output ? c->trace_output : ".";
    char pftrace[PATH_MAX], csv[PATH_MAX], png[PATH_MAX];
    struct sv_claim claim;
    snprintf(pftrace, sizeof pftrace, "%s/%s.pftrace", dir, is_newer ? "trace" : "batching_trace");
    snprintf(csv, sizeof csv, "%s/%s.csv", dir, is_newer ? "trace" : "batching_trace_summary");
    if (!c->trace_enabled || sv_claim_read(pftrace, &claim) != SV_CLAIM_THERE ||
        sv_process_id_state(&claim.holder) != SV_PROCESS_GONE)
        return;
    const char *const words[] = {"recover", "-q", pftrace, NULL};
    if (!run_stave(c, words)) {
        say("stave-server: the trace of a killed server is not complete: run 'stave recover %s'\n",
            pftrace);
        return;
    }
    say("recovered the trace of a server that was killed: %s\n", pftrace);
    name_beside(csv, "_plots", ".png", png, sizeof png);
    if (c->trace_plots && access(csv, F_OK) == 0 && access(png, F_OK) != 0)
        draw_plots(c, csv);
}

/* The files of a run that are there. */
static void list_files(const char *const *paths, size_t n)
{
    const char *head = "trace:";
    for (size_t i = 0; i < n; i++) {
        if (!paths[i][0] || access(paths[i], F_OK) != 0)
            continue;
        say("%-6s %s\n", head, paths[i]);
        head = "";
    }
}

static void close_trace(struct sv_engine *e)
{
    struct stave_error error;
    char json[PATH_MAX], csv[PATH_MAX], pftrace[PATH_MAX] = "";
    sv_fxt_find(&e->fxt);
    if (e->trace)
        snprintf(pftrace, sizeof pftrace, "%s",
                 stave_serving_file(e->trace, STAVE_SERVING_PFTRACE));
    if (!e->trace) {
        if (e->fxt.file[0])
            join_fxt(e->config, e->fxt.file, "");
        return;
    }
    snprintf(csv, sizeof csv, "%s", stave_serving_file(e->trace, STAVE_SERVING_CSV));
    snprintf(json, sizeof json, "%s", stave_serving_file(e->trace, STAVE_SERVING_JSON));
    struct stave_counts counts = {.size = sizeof counts};
    if (stave_serving_close(e->trace, &error) < 0)
        sv_print(stderr, "stave-server: trace: %s\n", error.text);
    stave_count(&counts);
    list_files((const char *const[]){json, csv, pftrace}, 3); /* now they have their names */
    if (e->trace_rotate && counts.parts_removed)
        say("       %llu parts, the oldest %llu of them removed\n",
            (unsigned long long)counts.parts, (unsigned long long)counts.parts_removed);
    else if (e->trace_rotate)
        say("       %llu parts\n", (unsigned long long)counts.parts);
    if (e->fxt.file[0])
        join_fxt(e->config, e->fxt.file, pftrace);
    if (e->config->trace_plots && csv[0])
        draw_plots(e->config, csv);
}

/* ---- serving ---- */

static void describe_side(struct sv_buf *b, const struct sv_tensor_spec *specs, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        sv_buf_printf(b, "%s%s %s [rows", i ? ", " : "", specs[i].name,
                      sv_datatype_name(specs[i].type));
        for (uint32_t k = 0; k < specs[i].n_dims; k++)
            sv_buf_printf(b, ", %lld", (long long)specs[i].dims[k]);
        sv_buf_str(b, "]");
    }
}

/* input FP32 [rows, 32] → output FP32 [rows, 8] */
static void describe_tensors(const struct sv_tensor_spec *in, uint32_t n_in,
                             const struct sv_tensor_spec *out, uint32_t n_out, char *text,
                             size_t size)
{
    struct sv_buf b;
    sv_buf_init(&b, 1 << 16);
    describe_side(&b, in, n_in);
    sv_buf_str(&b, " → ");
    describe_side(&b, out, n_out);
    snprintf(text, size, "%s", sv_buf_cstr(&b));
    sv_buf_fini(&b);
}

/* The listening line comes last: who waits for it finds all that was said before. */
static void describe(const struct sv_engine *e, uint16_t port)
{
    const char *colon = strrchr(e->config->address, ':');
    describe_fxt(&e->fxt);
    const char *grpc_colon = strrchr(e->config->grpc_address, ':');
    if (sv_common.quiet)
        return;
    for (uint32_t i = 0; i < e->n_workers; i++)
        sv_print(stderr, "worker %u: %s\n", i, e->workers[i].name);
    for (uint32_t i = 0; i < e->n_models; i++) {
        const struct sv_model *m = &e->models[i];
        char tensors[1200];
        describe_tensors(m->describes.inputs, m->describes.n_inputs, m->describes.outputs,
                         m->describes.n_outputs, tensors, sizeof tensors);
        sv_print(
            stderr, "model %s: %s, %s, at most %u rows a batch%s%s\n", m->config->name, tensors,
            m->config->strategy == SV_STRATEGY_DISABLED ? "no batching" : m->config->strategy_word,
            m->rows_max, m->onnx ? ", ONNX Runtime on CPU workers only, version " : "",
            m->onnx ? sv_onnx_version(m->onnx) : "");
    }
    if (e->grpc && grpc_colon && sv_grpc_front_port(e->grpc))
        sv_print(stderr, "gRPC on %.*s:%u\n", (int)(grpc_colon - e->config->grpc_address),
                 e->config->grpc_address, sv_grpc_front_port(e->grpc));
    sv_print(stderr, "listening on http://%.*s:%u %s(Ctrl-C stops)\n",
             (int)(colon - e->config->address), e->config->address, port,
             e->grpc ? "for HTTP and gRPC " : "");
}

static void wait_for_signal(const sigset_t *set)
{
    int number;
    while (sigwait(set, &number) != 0)
        ;
    /* A second one ends the program at once. Where it is traced, libstave's handler first ends the
     * trace, or says how to recover it. */
    for (int sig = 1; sig < NSIG; sig++) {
        struct sigaction now;
        if (sigismember(set, sig) == 1 && sigaction(sig, NULL, &now) == 0 &&
            now.sa_handler == SIG_IGN)
            signal(sig, SIG_DFL);
    }
    pthread_sigmask(SIG_UNBLOCK, set, NULL);
}

/* The fronts answer to the end: who comes while the queue is worked off gets a 503 or UNAVAILABLE,
 * and finds no closed port. */
static void shut_down(struct sv_engine *e, struct sv_front *f)
{
    say("stopping\n");
    atomic_store(&e->is_ready, false);
    sv_watch_stop();
    int64_t until_ns = stave_now_ns() + e->config->drain_timeout_ms * 1000000;
    uint32_t n_dropped = 0;
    for (uint32_t i = 0; i < e->n_models; i++)
        n_dropped += sv_batcher_stop(&e->models[i], until_ns);
    if (n_dropped)
        sv_print(stderr,
                 "stave-server: %u queued request%s answered with 503: drain_timeout_ms was over\n",
                 n_dropped, n_dropped == 1 ? " was" : "s were");
    starpu_task_wait_for_all();
    sv_front_stop(f);
    sv_grpc_front_stop(e->grpc);
    sv_front_close(f);
    sv_grpc_front_close(e->grpc);
    e->grpc = NULL;
    sv_engine_close(e);
}

static void close_early(struct sv_engine *e)
{
    if (e->trace)
        stave_serving_close(e->trace, NULL);
    sv_otlp_live_close(e->otlp);
}

static int serve_on(struct sv_engine *e, struct sv_config *const *configs, uint32_t n,
                    struct sv_listeners *l, const sigset_t *set, struct sv_err *err)
{
    struct sv_front *front = NULL;
    complete_earlier(configs[0]);
    e->config = configs[0];
    int code = sv_trace_start(e, err);
    if (code == 0)
        code = sv_engine_open(e, configs, n, err);
    if (code < 0) {
        close_early(e);
        return code;
    }
    code = sv_grpc_front_start(e->grpc, err); /* before connections are given to it */
    if (code == 0)
        code = sv_front_open(e, l, &front, err);
    if (code == 0) {
        sv_engine_warm_up(e);
        sv_watch_start(e);
        atomic_store_explicit(&e->is_ready, true, memory_order_release);
        describe(e, l->port);
        wait_for_signal(set);
    }
    shut_down(e, front);
    close_trace(e);
    sv_otlp_live_close(e->otlp);
    free(e->trace_folder);
    free(e->trace_keep);
    free(e->trace_rotate);
    return code;
}

/* Without gRPC, or its port, the server is still one: only who has asked for an address gets an
 * error. */
static int open_grpc(struct sv_engine *e, const struct sv_config *c, struct sv_err *err)
{
    struct sv_err own = {0};
    if (strcmp(c->grpc_address, "off") == 0)
        return 0;
    if (c->grpc_is_given)
        return sv_grpc_front_open(
            e, c, strcmp(c->grpc_address, "same") != 0 ? c->grpc_address : NULL, &e->grpc, err);
    if (sv_grpc_front_open(e, c, c->grpc_address, &e->grpc, &own) < 0)
        say("stave-server: %s; serving %s only (set grpc_address, or to off)\n", own.msg,
            sv_grpc_front_open(e, c, NULL, &e->grpc, NULL) == 0 ? "gRPC on the port of HTTP"
                                                                : "HTTP");
    return 0;
}

static int serve(struct sv_engine *e, struct sv_config *const *configs, uint32_t n,
                 struct sv_err *err)
{
    struct sv_listeners l;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &set, NULL); /* before any thread: only this one waits for them */
    int code = sv_listeners_open(&l, configs[0]->address, configs[0]->metrics_port, err);
    if (code == 0)
        code = open_grpc(e, configs[0], err);
    if (code == 0)
        code = serve_on(e, configs, n, &l, &set, err);
    sv_grpc_front_close(e->grpc); /* after a failure */
    sv_listeners_close(&l);
    return code;
}

static void print_key(const char *line)
{
    sv_print(stdout, "%s\n", line);
}

static int check_names(struct sv_config *const *configs, uint32_t n, struct sv_err *err)
{
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < i; j++)
            if (strcmp(configs[i]->name, configs[j]->name) == 0)
                return sv_error(err, SV_EUSAGE, "two models are called '%s'", configs[i]->name);
    return 0;
}

static int check_models(struct sv_config *const *configs, uint32_t n, struct sv_err *err)
{
    for (uint32_t i = 0; i < n; i++) {
        struct sv_network *net = NULL;
        struct sv_onnx *onnx = NULL;
        int code = sv_engine_load(configs[i], configs[0], &net, &onnx, err);
        if (code < 0)
            return code;
        sv_print(stdout, "%s: model %s, ", sv_yaml_name(configs[i]->yaml), configs[i]->name);
        if (onnx)
            sv_print(stdout, "ONNX Runtime %s", sv_onnx_version(onnx));
        else
            sv_print(stdout, "%u layers", net->n);
        char tensors[1200];
        describe_tensors(net->inputs, net->n_inputs, net->outputs, net->n_outputs, tensors,
                         sizeof tensors);
        sv_print(stdout, ", %s\n", tensors);
        sv_network_close(net);
        sv_onnx_close(onnx);
    }
    return 0;
}

static void say_line(const char *line)
{
    sv_print(stderr, "stave-server: %s\n", line);
}

static int open_configs(const struct server_options *o, struct sv_config **configs, uint32_t *n,
                        struct sv_err *err)
{
    int code = 0;
    if (o->configs.n == 0)
        return sv_error(err, SV_EUSAGE,
                        "no model given: use --config FILE.yml; examples are in examples/server");
    if (o->configs.n > SV_MODELS_MAX)
        return sv_error(err, SV_EUSAGE, "at most %d models", SV_MODELS_MAX);
    for (; code == 0 && *n < o->configs.n; *n += code == 0)
        code = sv_config_open(o->configs.items[*n], *n == 0, &configs[*n], say_line, err);
    return code == 0 ? check_names(configs, *n, err) : code;
}

static int run(void *opaque, const struct sv_words *operands, struct sv_err *err)
{
    struct server_options *o = opaque;
    struct sv_config *configs[SV_MODELS_MAX] = {0};
    uint32_t n = 0;
    if (operands->n)
        return sv_error(err, SV_EUSAGE,
                        "unexpected argument '%s': give a configuration with --config",
                        operands->items[0]);
    if (o->keys) {
        sv_config_keys(print_key);
        return 0;
    }
    int code = open_configs(o, configs, &n, err);
    if (code == 0 && o->keep)
        configs[0]->trace_keep = o->keep;
    if (code == 0 && o->rotate)
        configs[0]->trace_rotate = o->rotate;
    if (code == 0)
        code = sv_trace_check_keep(configs[0]->trace_keep, err);
    if (code == 0 && configs[0]->trace_rotate)
        code = sv_trace_check_rotate(configs[0]->trace_rotate, err);
    if (code == 0 && o->check) {
        code = check_models(configs, n, err);
    } else if (code == 0) {
        struct sv_engine *engine = sv_alloc(sizeof *engine);
        assert(configs[0]);
        if (o->address)
            configs[0]->address = o->address;
        if (o->grpc) {
            configs[0]->grpc_address = o->grpc;
            configs[0]->grpc_is_given = true;
        }
        code = serve(engine, configs, n, err);
        free(engine);
    }
    for (uint32_t i = 0; i < n; i++)
        sv_config_free(configs[i]);
    sv_words_free(&o->configs);
    return code;
}

static const struct sv_command command = {
    .name = "server",
    .operands = "--config FILE.yml…",
    .summary = "serves models over HTTP and gRPC with dynamic batching, and traces every request",
    .description =
        "An inference server on StarPU: requests of the Open Inference Protocol (KServe v2; HTTP "
        "with JSON or binary tensors, gRPC) are collected into batches and computed by StarPU's "
        "CPU and OpenCL "
        "workers.\n\n"
        "With trace_enabled: true it writes batching_trace.json, batching_trace_summary.csv and "
        "batching_trace.pftrace: which requests shared a batch, where each of them waited, and "
        "which worker computed it; at shutdown the plots. See docs/server.md.\n\n"
        "SIGINT and SIGTERM stop it: queued requests are still answered, then the files are "
        "completed.",
    .options = options,
    .examples = examples,
    .options_size = sizeof(struct server_options),
    .run = run,
    .is_program = true,
};

int main(int argc, char **argv)
{
    return sv_program_main(&command, argc, argv);
}
