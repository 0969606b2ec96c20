/* Reads and checks the server's YAML.
 *
 * Called once per --config. One table says what each key is; what a table cannot say (values that
 * contradict each other, folders that must exist) is checked after it, always with the line of the
 * key. Sets nothing outside its struct. */
#include "server/server_config.h"

#include "core/base/buf.h"
#include "core/base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define AT(member)   offsetof(struct sv_config, member)
#define WITHIN(p, m) offsetof(struct p, m)
#define INT(k, a, b, h)                                    \
    {                                                      \
#k, SV_YAML_INT, a, b, h, AT(k), NULL, NULL, false \
    }
#define BOOL(k, h)                                          \
    {                                                       \
#k, SV_YAML_BOOL, 0, 0, h, AT(k), NULL, NULL, false \
    }
#define TEXT(k, h, c)                                    \
    {                                                    \
#k, SV_YAML_TEXT, 0, 0, h, AT(k), c, NULL, false \
    }

static const struct sv_yaml_field adaptive_fields[] = {
    {"min_batch_size", SV_YAML_INT, 1, 4096, "smallest target when there is no pressure",
     WITHIN(sv_adaptive_config, min_batch_size), NULL, NULL, false},
    {"max_batch_size", SV_YAML_INT, 1, 4096, "largest target",
     WITHIN(sv_adaptive_config, max_batch_size), NULL, NULL, false},
    {0}};

static const struct sv_yaml_field fixed_fields[] = {
    {"batch_size", SV_YAML_INT, 1, 4096, "rows that a batch waits for",
     WITHIN(sv_fixed_config, batch_size), NULL, NULL, false},
    {0}};

#define CONGESTION(k, type, a, b, h)                                          \
    {                                                                         \
#k, type, a, b, h, WITHIN(sv_congestion_config, k), NULL, NULL, false \
    }
#define CONGESTION_FOREIGN(k)                                                          \
    {                                                                                  \
#k, SV_YAML_ANY, 0, 0, NULL, WITHIN(sv_congestion_config, foreign),            \
            "the whole latency is judged: latency_slo_ms, e2e_warn_ratio", NULL, false \
    }
static const struct sv_yaml_field congestion_fields[] = {
    CONGESTION(enabled, SV_YAML_BOOL, 0, 0, "whether congestion is detected"),
    CONGESTION(tick_ms, SV_YAML_INT, 10, 60000, "how often"),
    CONGESTION(entry_horizon_ms, SV_YAML_INT, 1, 600000, "pressure must last this long"),
    CONGESTION(exit_horizon_ms, SV_YAML_INT, 1, 600000, "calm must last this long"),
    CONGESTION(alpha, SV_YAML_NUMBER, 0.001, 1, "weight of the newest tick in the averages"),
    CONGESTION(fill_high, SV_YAML_NUMBER, 0.001, 1, "queue fill that is pressure when it grows"),
    CONGESTION(fill_low, SV_YAML_NUMBER, 0.001, 1, "queue fill that is calm"),
    CONGESTION(rho_high, SV_YAML_NUMBER, 0.001, 1000, "arrivals per completion that are pressure"),
    CONGESTION(rho_low, SV_YAML_NUMBER, 0.001, 1000, "arrivals per completion that are calm"),
    CONGESTION(latency_slo_ms, SV_YAML_NUMBER, 0, 3600000, "latency goal; 0: none"),
    CONGESTION(e2e_warn_ratio, SV_YAML_NUMBER, 0.001, 10, "share of the goal that is pressure"),
    CONGESTION(e2e_ok_ratio, SV_YAML_NUMBER, 0.001, 10, "share of the goal that is calm"),
    /* As the StarPU server calls them. */
    {"tick_interval_ms", SV_YAML_INT, 10, 60000, NULL, WITHIN(sv_congestion_config, tick_ms), NULL,
     NULL, false},
    {"alpha_ewma", SV_YAML_NUMBER, 0.001, 1, NULL, WITHIN(sv_congestion_config, alpha), NULL, NULL,
     false},
    CONGESTION_FOREIGN(queue_latency_budget_ms),
    CONGESTION_FOREIGN(queue_latency_budget_ratio),
    {0}};

/* Keys that are allowed at the root or under batching:. */
#define BATCHING_FIELDS                                                                            \
    {                                                                                              \
        "batching_strategy",                                                                       \
        SV_YAML_TEXT,                                                                              \
        0,                                                                                         \
        0,                                                                                         \
        "how batches are formed",                                                                  \
        AT(strategy_word),                                                                         \
        "disabled fixed adaptive",                                                                 \
        NULL,                                                                                      \
        false},                                                                                    \
        BOOL(dynamic_batching, "false: the strategy disabled"),                                    \
        INT(max_batch_size, 1, 4096, "maximum number of rows of a batch"),                         \
        INT(batch_coalesce_timeout_ms, 0, 60000, "time that a batch waits for more requests"),     \
        INT(max_queue_size, 1, 1000000,                                                            \
            "maximum of waiting requests; more are answered with 429"),                            \
        INT(max_inflight_tasks, 0, 100000,                                                         \
            "maximum number of batches being computed; 0: one per buffer"),                        \
        INT(pool_size, 1, 1024, "buffers for batches"),                                            \
        {"adaptive_batching", SV_YAML_PART, 0, 0, "for the strategy adaptive", AT(adaptive), NULL, \
         adaptive_fields,     false},                                                              \
        {"fixed_batching", SV_YAML_PART, 0, 0, "for the strategy fixed", AT(fixed), NULL,          \
         fixed_fields,     false},                                                                 \
    {                                                                                              \
        "congestion", SV_YAML_PART, 0, 0, "when the server counts as congested", AT(congestion),   \
            NULL, congestion_fields, false                                                         \
    }

#define TRACE_FIELDS                                                                               \
    BOOL(trace_enabled, "write a trace of every request and batch"),                               \
        TEXT(trace_output, "folder of the trace files (default: the working directory)", NULL),    \
        TEXT(trace_names,                                                                          \
             "batching: batching_trace.json and its CSV; perfetto: perfetto_trace.json",           \
             "batching perfetto"),                                                                 \
        BOOL(trace_truncate, "overwrite earlier files instead of numbering them"),                 \
        BOOL(trace_plots, "draw the plots at shutdown"),                                           \
        INT(trace_plot_seconds, 1, 3600, "time limit of the plots"),                               \
        INT(trace_rate, 1, 1000000000, "one of so many requests is traced"),                       \
        INT(trace_count, -1, 1000000000000000, "so many requests are traced; -1: no limit"),       \
        TEXT(trace_keep, "of those: all, failed, slow > 50ms, p99, or several with commas", NULL), \
        TEXT(trace_rotate, "100M or 1h: a new file then; 100M,10 keeps ten; .pftrace only", NULL), \
        TEXT(trace_otlp,                                                                           \
             "http://HOST:4318 or grpc://HOST:4317 of an OpenTelemetry collector that gets the "   \
             "spans of the trace while the server runs",                                           \
             NULL),                                                                                \
        BOOL(trace_operators, "the layers of a batch, too (networks of safetensors, on CPUs)"),    \
        BOOL(trace_by_parent,                                                                      \
             "requests of a traced caller as its traceparent says: sampled or not")

/* Keys of the server that these files were first written for, which mean nothing here: each is
 * answered by a warning, so that a file can be taken as it is. */
#define FOREIGN(key, why)                                            \
    {                                                                \
#key, SV_YAML_ANY, 0, 0, NULL, AT(foreign), why, NULL, false \
    }
#define FOREIGN_FIELDS                                                                    \
    FOREIGN(verbosity, "verbose: true prints a line per batch"),                          \
        FOREIGN(model_name, "the model is called as 'name' says"),                        \
        FOREIGN(scheduler, "set STARPU_SCHED under starpu_env"),                          \
        FOREIGN(sync, "tasks are always submitted asynchronously"),                       \
        FOREIGN(use_cuda, "there are no CUDA workers: use_cpu, use_opencl"),              \
        FOREIGN(device_ids, "there are no CUDA workers: use_cpu, use_opencl"),            \
        FOREIGN(gpu_model_replication, "there are no CUDA workers: use_cpu, use_opencl"), \
        FOREIGN(group_cpu_by_numa, "each CPU worker computes by itself: see workers"),    \
        FOREIGN(libtorch, "models are ONNX or safetensors files"),                        \
        FOREIGN(request_nb, "it is of the load: stave-load --requests"),                  \
        FOREIGN(delay_us, "it is of the load: stave-load --rate"),                        \
        FOREIGN(pregen_inputs, "warmup_pregen_inputs is of the warm-up"),                 \
        FOREIGN(rtol, "answers are not compared with a reference"),                       \
        FOREIGN(atol, "answers are not compared with a reference"),                       \
        FOREIGN(validate_results, "answers are not compared with a reference")

static const struct sv_yaml_field batching_fields[] = {BATCHING_FIELDS, TRACE_FIELDS, {0}};

static const struct sv_yaml_field fields[] = {
    {"name", SV_YAML_TEXT, 0, 0, "the model's name in addresses and traces", AT(name), NULL, NULL,
     true},
    {"model", SV_YAML_TEXT, 0, 0, "a .safetensors or .onnx file, relative to this file", AT(model),
     NULL, NULL, true},
    TEXT(version, "its version in addresses", NULL),
    {"inputs", SV_YAML_ANY, 0, 0, "list of {name, data_type, dims}: checked against the model",
     AT(inputs), NULL, NULL, false},
    {"outputs", SV_YAML_ANY, 0, 0, "the same", AT(outputs), NULL, NULL, false},
    TEXT(padding,
         "requests whose dynamic dimensions differ; off: each shape has its own batches; zeros: "
         "shorter ones are filled up with zeros",
         "off zeros"),
    BATCHING_FIELDS,
    {"batching", SV_YAML_PART, 0, 0, "the keys of batching and tracing may be given here, too", 0,
     NULL, batching_fields, false},
    INT(warmup_pregen_inputs, 0, 1000, "number of different warm-up inputs; 0: no warm-up"),
    INT(warmup_request_nb, 0, 10000, "number of warm-up requests"),
    INT(warmup_batches_per_worker, 0, 1000,
        "batches that each worker runs before the first request"),
    INT(seed, 0, 4294967295, "seed of the warm-up inputs"),
    TRACE_FIELDS,
    TEXT(address, "HOST:PORT; port 0: any free port", NULL),
    TEXT(grpc_address,
         "HOST:PORT of gRPC, which the HTTP port takes, too; port 0: any free port; same: only the "
         "HTTP port; off: no gRPC",
         NULL),
    INT(grpc_threads, 1, 16, "gRPC threads"),
    INT(metrics_port, 1, 65535, "a separate port for /metrics, in addition to that of the server"),
    INT(max_message_bytes, 1024, 1073741824, "largest request"),
    INT(max_pending_bytes, 1024, 1099511627776,
        "memory of all incomplete requests (default: 256 MiB, or two of the largest)"),
    INT(max_pending_bytes_per_client, 1024, 1099511627776,
        "the same for one client address (default: half of it, or one of the largest)"),
    INT(header_timeout_ms, 10, 3600000, "time from the connection to the end of the headers"),
    INT(request_timeout_ms, 10, 3600000, "time from the headers to the end of the body"),
    INT(drain_timeout_ms, 0, 3600000,
        "time for queued requests after SIGTERM or SIGINT; those that are left are answered with "
        "503"),
    INT(http_threads, 1, 16, "HTTP threads"),
    INT(workers, 1, 64, "number of StarPU's CPU workers (default: one per processor)"),
    BOOL(use_cpu, "compute on CPU workers"),
    BOOL(use_opencl, "compute on OpenCL workers, too (also CPUs, through PoCL)"),
    BOOL(verbose, "print a line per batch on standard error"),
    {"starpu_env", SV_YAML_ANY, 0, 0,
     "STARPU_… variables; those of the environment take precedence", AT(starpu_env), NULL, NULL,
     false},
    TEXT(onnxruntime,
         "path of libonnxruntime.so.1; the variable STAVE_ONNXRUNTIME takes precedence", NULL),
    FOREIGN_FIELDS,
    {0}};

static const char *const server_keys[] = {
    "address",           "grpc_address",       "grpc_threads",      "metrics_port",
    "max_message_bytes", "http_threads",       "max_pending_bytes", "max_pending_bytes_per_client",
    "header_timeout_ms", "request_timeout_ms", "drain_timeout_ms",  "workers",
    "use_cpu",           "use_opencl",         "starpu_env",        "verbose",
    "trace_enabled",     "trace_output",       "trace_names",       "trace_truncate",
    "trace_plots",       "trace_plot_seconds", "onnxruntime",       "trace_rate",
    "trace_count",       "trace_by_parent",    "trace_keep",        "trace_operators",
    "trace_otlp",        "trace_rotate"};

static void set_defaults(struct sv_config *c)
{
    *c = (struct sv_config){
        .version = "1",
        .strategy_word = "adaptive",
        .dynamic_batching = true,
        .max_batch_size = 16,
        .batch_coalesce_timeout_ms = 2,
        .max_queue_size = 100,
        .pool_size = 4,
        .congestion = {.enabled = true,
                       .tick_ms = 1000,
                       .entry_horizon_ms = 1000,
                       .exit_horizon_ms = 2000,
                       .alpha = 0.2,
                       .fill_high = 0.80,
                       .fill_low = 0.60,
                       .rho_high = 1.05,
                       .rho_low = 0.90,
                       .e2e_warn_ratio = 0.90,
                       .e2e_ok_ratio = 0.80},
        .warmup_pregen_inputs = 2,
        .warmup_request_nb = 2,
        .warmup_batches_per_worker = 1,
        .padding = "off",
        .address = SV_SERVER_ADDRESS,
        .grpc_address = SV_GRPC_ADDRESS,
        .grpc_threads = 1,
        .max_message_bytes = 32 << 20,
        .header_timeout_ms = 10000,
        .request_timeout_ms = 30000,
        .drain_timeout_ms = 30000,
        .http_threads = 1,
        .use_cpu = true,
        .trace_output = ".",
        .trace_names = "batching",
        .trace_plots = true,
        .trace_plot_seconds = 60,
        .trace_rate = 1,
        .trace_count = -1,
        .trace_keep = "all",
    };
}

/* The node of a key, at the root or under batching:. */
static const struct sv_yaml_node *given(const struct sv_config *c, const char *key)
{
    const struct sv_yaml_node *root = sv_yaml_root(c->yaml);
    const struct sv_yaml_node *node = sv_yaml_find(root, key);
    return node ? node : sv_yaml_find(sv_yaml_find(root, "batching"), key);
}

static int fail(const struct sv_config *c, const char *key, struct sv_err *err, const char *text)
{
    const struct sv_yaml_node *node = given(c, key);
    return sv_yaml_fail(c->yaml, node ? node : sv_yaml_root(c->yaml), err, "%s", text);
}

static int check_places(const struct sv_config *c, bool is_first, struct sv_err *err)
{
    const struct sv_yaml_node *root = sv_yaml_root(c->yaml);
    const struct sv_yaml_node *batching = sv_yaml_find(root, "batching");
    for (const struct sv_yaml_node *m = batching ? batching->first : NULL; m; m = m->next)
        if (sv_yaml_find(root, m->key))
            return sv_yaml_fail(c->yaml, m, err, "'%s' is given twice: here and at the root",
                                m->key);
    for (size_t i = 0; !is_first && i < sizeof server_keys / sizeof *server_keys; i++)
        if (given(c, server_keys[i]))
            return sv_yaml_fail(c->yaml, given(c, server_keys[i]), err,
                                "'%s' describes the server: it belongs in the first --config",
                                server_keys[i]);
    return 0;
}

static int check_name(const struct sv_config *c, struct sv_err *err)
{
    size_t n = strspn(c->name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-");
    if (c->name[n] || n > 100)
        return fail(c, "name", err, "name: letters, digits, '_', '.' and '-' only, at most 100");
    n = strspn(c->version, "0123456789");
    if (c->version[n] || n > 9)
        return fail(c, "version", err, "version must be a whole number");
    return 0;
}

/* `trace_output` is a folder: one that exists or can be made. */
static int check_trace(const struct sv_config *c, struct sv_err *err)
{
    struct stat st;
    size_t n = strlen(c->trace_output);
    if (stat(c->trace_output, &st) == 0 && !S_ISDIR(st.st_mode))
        return fail(c, "trace_output", err,
                    "trace_output must be a directory path (omit the filename)");
    if (n > 5 && strcmp(c->trace_output + n - 5, ".json") == 0 && stat(c->trace_output, &st) != 0)
        return fail(c, "trace_output", err,
                    "trace_output must be a directory path (omit the filename): the server writes "
                    "batching_trace.json inside");
    return 0;
}

static int check_batching(struct sv_config *c, struct sv_err *err)
{
    c->strategy = strcmp(c->strategy_word, "disabled") == 0 ? SV_STRATEGY_DISABLED
                  : strcmp(c->strategy_word, "fixed") == 0  ? SV_STRATEGY_FIXED
                                                            : SV_STRATEGY_ADAPTIVE;
    if (!c->dynamic_batching) {
        if (given(c, "batching_strategy") && c->strategy != SV_STRATEGY_DISABLED)
            return fail(c, "dynamic_batching", err,
                        "dynamic_batching: false contradicts batching_strategy");
        c->strategy = SV_STRATEGY_DISABLED;
    }
    if (!c->adaptive.max_batch_size)
        c->adaptive.max_batch_size = c->max_batch_size;
    if (!c->adaptive.min_batch_size)
        c->adaptive.min_batch_size = 1;
    if (!c->fixed.batch_size)
        c->fixed.batch_size = c->max_batch_size;
    if (c->adaptive.min_batch_size > c->adaptive.max_batch_size)
        return fail(c, "adaptive_batching", err, "min_batch_size is larger than max_batch_size");
    if (c->max_queue_size < sv_config_batch_limit(c))
        return fail(c, "max_queue_size", err,
                    "max_queue_size is smaller than a batch: no batch could fill");
    if (!c->max_inflight_tasks || c->max_inflight_tasks > c->pool_size)
        c->max_inflight_tasks = c->pool_size;
    return 0;
}

static int check_congestion(const struct sv_config *c, struct sv_err *err)
{
    const struct sv_congestion_config *g = &c->congestion;
    if (g->fill_low >= g->fill_high)
        return fail(c, "congestion", err, "congestion: fill_low must be below fill_high");
    if (g->rho_low >= g->rho_high)
        return fail(c, "congestion", err, "congestion: rho_low must be below rho_high");
    if (g->e2e_ok_ratio > g->e2e_warn_ratio)
        return fail(c, "congestion", err,
                    "congestion: e2e_ok_ratio must not exceed e2e_warn_ratio");
    return 0;
}

static int check_limits(struct sv_config *c, struct sv_err *err)
{
    int64_t one = c->max_message_bytes + 4096; /* and what goes with it */
    if (!c->max_pending_bytes)
        c->max_pending_bytes = 2 * one > 256 << 20 ? 2 * one : 256 << 20;
    if (!c->max_pending_bytes_per_client)
        c->max_pending_bytes_per_client = c->max_pending_bytes / 2 > one ? c->max_pending_bytes / 2
                                                                         : one;
    if (c->max_pending_bytes < one)
        return fail(c, "max_pending_bytes", err,
                    "max_pending_bytes is smaller than one request of max_message_bytes");
    if (c->max_pending_bytes_per_client < one)
        return fail(
            c, "max_pending_bytes_per_client", err,
            "max_pending_bytes_per_client is smaller than one request of max_message_bytes");
    return 0;
}

static int check_env(const struct sv_config *c, struct sv_err *err)
{
    if (!c->starpu_env)
        return 0;
    if (c->starpu_env->kind != SV_YAML_MAP)
        return sv_yaml_fail(c->yaml, c->starpu_env, err, "starpu_env must be a map of variables");
    for (const struct sv_yaml_node *m = c->starpu_env->first; m; m = m->next)
        if (strncmp(m->key, "STARPU_", 7) != 0 || m->kind != SV_YAML_SCALAR)
            return sv_yaml_fail(c->yaml, m, err,
                                "starpu_env: '%s' is not a STARPU_… variable with a value", m->key);
    return 0;
}

bool sv_config_is_pytorch(const char *model)
{
    const char *dot = strrchr(model, '.');
    return dot && (strcmp(dot, ".pt") == 0 || strcmp(dot, ".pth") == 0 || strcmp(dot, ".ts") == 0);
}

static int check_model(struct sv_config *c, const char *path, struct sv_err *err)
{
    const char *slash = strrchr(path, '/');
    struct stat st;
    struct sv_buf b;
    sv_buf_init(&b, 1 << 16);
    if (c->model[0] != '/' && slash)
        sv_buf_add(&b, path, (size_t)(slash - path) + 1);
    sv_buf_str(&b, c->model);
    c->model_path = sv_strndup(sv_buf_cstr(&b), b.len);
    sv_buf_fini(&b);
    if (stat(c->model_path, &st) == 0 && S_ISREG(st.st_mode))
        return 0;
    sv_yaml_fail(c->yaml, given(c, "model"), err, "model: no such file: %s%s", c->model_path,
                 sv_config_is_pytorch(c->model)
                     ? "; PyTorch's files cannot be served in any case: export it as ONNX"
                     : "");
    return err->code = SV_EINPUT;
}

static void warn(const struct sv_config *c, const struct sv_yaml_node *node, const char *why,
                 void (*say)(const char *line))
{
    char line[400];
    snprintf(line, sizeof line, "%s:%u: warning: '%s' has no effect: %s", sv_yaml_name(c->yaml),
             node->key_line, node->key, why);
    say(line);
}

/* Those of a map whose fields are stored at this offset. */
static void warn_of_foreign(const struct sv_config *c, const struct sv_yaml_node *map,
                            const struct sv_yaml_field *f, size_t offset,
                            void (*say)(const char *line))
{
    const struct sv_yaml_node *node;
    for (; f->key; f++)
        if (f->offset == offset && (node = sv_yaml_find(map, f->key)))
            warn(c, node, f->choices, say);
}

/* A file for GPUs is served by CPUs. */
static void take_cpus(struct sv_config *c, void (*say)(const char *line))
{
    const struct sv_yaml_node *node = given(c, "use_cpu"), *cuda = given(c, "use_cuda");
    bool wants_cuda = cuda && (cuda->kind != SV_YAML_SCALAR || strcmp(cuda->text, "false") != 0);
    if (c->use_cpu || c->use_opencl || !wants_cuda || !node)
        return;
    warn(c, node, "use_cuda has none, and there must be a worker: CPU workers compute", say);
    c->use_cpu = true;
}

/* In their order: the last one is the caller's. */
static void say_others(const struct sv_config *c, void (*say)(const char *line), struct sv_err *err)
{
    size_t n;
    const char *const *others = sv_yaml_others(c->yaml, &n);
    if (n == 0)
        return;
    say(err->msg);
    for (size_t i = 0; i + 1 < n; i++)
        say(others[i]);
    snprintf(err->msg, sizeof err->msg, "%s", others[n - 1]);
}

/* Everything that is wrong with the file, whatever the rest is. */
static void check_all(struct sv_config *c, const char *path, bool is_first, struct sv_err *err)
{
    enum { MOST = 8 };
    struct sv_err own[MOST] = {0};
    check_places(c, is_first, &own[0]);
    c->grpc_is_given = given(c, "grpc_address");
    if (c->name)
        check_name(c, &own[1]);
    check_batching(c, &own[2]);
    check_congestion(c, &own[3]);
    check_limits(c, &own[4]);
    check_env(c, &own[5]);
    check_trace(c, &own[6]);
    if (c->model)
        check_model(c, path, &own[7]);
    for (size_t i = 0; i < MOST; i++)
        sv_yaml_also(c->yaml, &own[i], err);
    struct sv_err workers = {0};
    if (!c->use_cpu && !c->use_opencl)
        fail(c, "use_cpu", &workers,
             "neither use_cpu nor use_opencl is true: there would be no worker");
    sv_yaml_also(c->yaml, &workers, err);
}

int sv_config_open(const char *path, bool is_first, struct sv_config **out,
                   void (*say)(const char *line), struct sv_err *err)
{
    struct sv_config *c = sv_alloc(sizeof *c);
    set_defaults(c);
    int code = sv_yaml_open(path, &c->yaml, err);
    if (code < 0) {
        err->code = code == SV_EIO ? SV_EINPUT : code;
    } else if (sv_yaml_root(c->yaml)->kind != SV_YAML_MAP) {
        code = sv_yaml_read(c->yaml, sv_yaml_root(c->yaml), fields, c, err);
    } else {
        sv_yaml_read(c->yaml, sv_yaml_root(c->yaml), fields, c, err);
        take_cpus(c, say);
        check_all(c, path, is_first, err);
        code = err->code;
        warn_of_foreign(c, sv_yaml_root(c->yaml), fields, AT(foreign), say);
        warn_of_foreign(c, given(c, "congestion"), congestion_fields,
                        WITHIN(sv_congestion_config, foreign), say);
        say_others(c, say, err);
    }
    if (code < 0) {
        code = err->code;
        sv_config_free(c);
        return code;
    }
    *out = c;
    return 0;
}

void sv_config_free(struct sv_config *c)
{
    if (!c)
        return;
    sv_yaml_free(c->yaml);
    free(c->model_path);
    free(c);
}

int64_t sv_config_batch_limit(const struct sv_config *c)
{
    switch (c->strategy) {
    case SV_STRATEGY_DISABLED: return 1;
    case SV_STRATEGY_FIXED: return c->fixed.batch_size;
    default: return c->adaptive.max_batch_size;
    }
}

static void print_keys(const struct sv_yaml_field *f, const char *indent,
                       void (*line)(const char *))
{
    for (; f->key; f++) {
        char text[256];
        if (!f->help)
            continue;
        if (f->choices)
            snprintf(text, sizeof text, "%s%-27s %s (%s)", indent, f->key, f->help, f->choices);
        else
            snprintf(text, sizeof text, "%s%-27s %s", indent, f->key, f->help);
        line(text);
        if (f->fields && f->fields != batching_fields)
            print_keys(f->fields, "    ", line);
    }
}

void sv_config_keys(void (*line)(const char *text))
{
    print_keys(fields, "", line);
}
