/* stave-server: reads its configurations, loads the models, serves until SIGINT or SIGTERM, and leaves complete files behind.
 *
 * Order: the ports, trace, StarPU and models, HTTP (which answers "not ready"), warm-up, ready, wait for a signal; then backwards: no new
 * requests, what is queued is computed and answered, StarPU, the trace's files, the plots. */
#include "cli/console.h"
#include "server/program/program.h"
#include "server/run/engine.h"

#include "core/base/mem.h"
#include "net/listen_socket.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct server_options {
    struct sv_words configs;
    const char *address;
    bool check, keys;
};

#define OPTION(member) offsetof(struct server_options, member)

static const struct sv_option options[] = {
    {'c', "config", "FILE.yml", SV_OPT_LIST, OPTION(configs),
     "a model and how it is served; the first one also describes the server. May be given several "
     "times, "
     "once for each model",
     NULL},
    {'a', "address", "HOST:PORT", SV_OPT_TEXT, OPTION(address),
     "address to listen on instead of that of the configuration; port 0: any free port", NULL},
    {0, "check", NULL, SV_OPT_FLAG, OPTION(check),
     "check the configurations and the models, and exit", NULL},
    {0, "keys", NULL, SV_OPT_FLAG, OPTION(keys), "list the keys of a configuration", NULL},
    {0},
};

static const struct sv_example examples[] = {
    {"stave-server --config examples/server/mlp.yml",
     "serve on " SV_SERVER_ADDRESS " until Ctrl-C"},
    {"stave-load --requests 2000", "send requests, from a second terminal"},
    {"stave-server -c examples/server/mlp.yml -c examples/server/conv.yml", "two models"},
    {"stave-server --check -c model.yml", "check a configuration"},
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
    say("stave-server: the plots took longer than trace_plot_seconds: skipped\n");
    return false;
}

/* batching_trace_summary.csv → batching_trace_plots.png */
static void name_plots(const char *csv, char *out, size_t size)
{
    size_t n = strlen(csv);
    n = n > 4 && strcmp(csv + n - 4, ".csv") == 0 ? n - 4 : n;
    n = n > 8 && memcmp(csv + n - 8, "_summary", 8) == 0 ? n - 8 : n;
    snprintf(out, size, "%.*s_plots.png", (int)n, csv);
}

static void draw_plots(const struct sv_config *c, const char *csv)
{
    char program[PATH_MAX + 8], png[PATH_MAX];
    name_plots(csv, png, sizeof png);
    find_stave(program, sizeof program);
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        sigset_t none;
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        execlp(program, program, "plot", "batch", "-q", csv, "-o", png, (char *)NULL);
        _exit(127);
    }
    if (pid > 0 && wait_child(pid, c->trace_plot_seconds))
        say("plots: %s\n", png);
    else
        say("stave-server: no plots: 'stave plot batch %s' failed\n", csv);
}

/* ---- the trace ---- */

static int open_trace(struct sv_engine *e, const struct sv_config *c, struct sv_err *err)
{
    char message[512] = "";
    struct stave_serving_config config = {
        .size = sizeof config,
        .trace_enabled = c->trace_enabled,
        .trace_output = c->trace_output,
        .server = "StarPU Inference Server",
        .names = strcmp(c->trace_names, "perfetto") == 0 ? STAVE_SERVING_NAMES_NEWER
                                                         : STAVE_SERVING_NAMES_DEFAULT,
        .truncate = c->trace_truncate,
    };
    e->trace = stave_serving_open(&config, message, sizeof message);
    if (!e->trace && message[0])
        return sv_err_set(err, SV_EIO, SV_NO_POS, "trace: %s", message);
    return 0;
}

static void close_trace(struct sv_engine *e)
{
    char message[512] = "", csv[PATH_MAX];
    if (!e->trace)
        return;
    snprintf(csv, sizeof csv, "%s", stave_serving_file(e->trace, STAVE_SERVING_CSV));
    say("trace: %s\n", stave_serving_file(e->trace, STAVE_SERVING_JSON));
    say("       %s\n", csv);
    say("       %s\n", stave_serving_file(e->trace, STAVE_SERVING_PFTRACE));
    if (stave_serving_close(e->trace, message, sizeof message) < 0)
        sv_print(stderr, "stave-server: trace: %s\n", message);
    if (e->config->trace_plots && csv[0])
        draw_plots(e->config, csv);
}

/* ---- serving ---- */

static void describe(const struct sv_engine *e, uint16_t port)
{
    const char *colon = strrchr(e->config->address, ':');
    if (sv_common.quiet)
        return;
    for (uint32_t i = 0; i < e->n_workers; i++)
        sv_print(stderr, "worker %u: %s\n", i, e->workers[i].name);
    for (uint32_t i = 0; i < e->n_models; i++) {
        const struct sv_model *m = &e->models[i];
        sv_print(stderr, "model %s: %zu numbers in, %zu out, %s, at most %u rows a batch%s%s\n",
                 m->config->name, m->net->in_size, m->net->out_size,
                 m->config->strategy == SV_STRATEGY_DISABLED ? "no batching"
                                                             : m->config->strategy_word,
                 m->rows_max, m->onnx ? ", ONNX Runtime on CPU workers only, version " : "",
                 m->onnx ? sv_onnx_version(m->onnx) : "");
    }
    sv_print(stderr, "listening on http://%.*s:%u (Ctrl-C stops)\n",
             (int)(colon - e->config->address), e->config->address, port);
}

static void wait_for_signal(const sigset_t *set)
{
    int number;
    while (sigwait(set, &number) != 0)
        ;
    /* A second one ends the program at once. */
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    pthread_sigmask(SIG_UNBLOCK, set, NULL);
}

static void shut_down(struct sv_engine *e, struct sv_front *f)
{
    say("stopping\n");
    atomic_store(&e->is_ready, false);
    sv_watch_stop();
    sv_front_stop(f);
    for (uint32_t i = 0; i < e->n_models; i++)
        sv_batcher_stop(&e->models[i]);
    starpu_task_wait_for_all();
    sv_front_close(f);
    sv_engine_close(e);
}

static void close_early(struct sv_engine *e)
{
    if (e->trace)
        stave_serving_close(e->trace, (char[64]){0}, 64);
}

static int serve_on(struct sv_engine *e, struct sv_config *const *configs, uint32_t n,
                    struct sv_listeners *l, const sigset_t *set, struct sv_err *err)
{
    struct sv_front *front = NULL;
    int code = open_trace(e, configs[0], err);
    if (code == 0)
        code = sv_engine_open(e, configs, n, err);
    if (code < 0) {
        close_early(e);
        return code;
    }
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
    return code;
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
        code = serve_on(e, configs, n, &l, &set, err);
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
                return sv_err_set(err, SV_EUSAGE, SV_NO_POS, "two models are called '%s'",
                                  configs[i]->name);
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
        sv_print(stdout, ", %zu numbers in, %zu out\n", net->in_size, net->out_size);
        sv_network_close(net);
        sv_onnx_close(onnx);
    }
    return 0;
}

static int open_configs(const struct server_options *o, struct sv_config **configs, uint32_t *n,
                        struct sv_err *err)
{
    int code = 0;
    if (o->configs.n == 0)
        return sv_err_set(err, SV_EUSAGE, SV_NO_POS,
                          "no model given: use --config FILE.yml; examples are in examples/server");
    if (o->configs.n > SV_MODELS_MAX)
        return sv_err_set(err, SV_EUSAGE, SV_NO_POS, "at most %d models", SV_MODELS_MAX);
    for (; code == 0 && *n < o->configs.n; *n += code == 0)
        code = sv_config_open(o->configs.items[*n], *n == 0, &configs[*n], err);
    return code == 0 ? check_names(configs, *n, err) : code;
}

static int run(void *opaque, const struct sv_words *operands, struct sv_err *err)
{
    struct server_options *o = opaque;
    struct sv_config *configs[SV_MODELS_MAX] = {0};
    uint32_t n = 0;
    if (operands->n)
        return sv_err_set(err, SV_EUSAGE, SV_NO_POS,
                          "unexpected argument '%s': give a configuration with --config",
                          operands->items[0]);
    if (o->keys) {
        sv_config_keys(print_key);
        return 0;
    }
    int code = open_configs(o, configs, &n, err);
    if (code == 0 && o->check) {
        code = check_models(configs, n, err);
    } else if (code == 0) {
        struct sv_engine *engine = sv_alloc(sizeof *engine);
        assert(configs[0]);
        if (o->address)
            configs[0]->address = o->address;
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
    .summary = "serves models over HTTP with dynamic batching, and traces every request",
    .description =
        "An inference server on StarPU: requests of the Open Inference Protocol (KServe v2, JSON "
        "or binary tensors) are collected into batches and computed by StarPU's CPU and OpenCL "
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
