/* The server's configuration: what its YAML may say, with defaults and limits.
 *
 * Keys are at the root, as in the first versions of such servers, or grouped under `batching:`;
 * given in both places is an error. One file describes one model; the first file given also
 * describes the server. */
#pragma once

#include "cli/yaml.h"
#include "core/base/err.h"

#define SV_SERVER_ADDRESS "127.0.0.1:8000"
#define SV_GRPC_ADDRESS   "127.0.0.1:8001"

enum sv_strategy { SV_STRATEGY_DISABLED, SV_STRATEGY_FIXED, SV_STRATEGY_ADAPTIVE };

struct sv_congestion_config {
    bool enabled;
    int64_t tick_ms, entry_horizon_ms, exit_horizon_ms;
    double alpha, fill_high, fill_low, rho_high, rho_low;
    double latency_slo_ms; /* 0: latency does not count */
    double e2e_warn_ratio, e2e_ok_ratio;
    const struct sv_yaml_node *foreign; /* one of the keys that mean nothing here */
};

struct sv_adaptive_config {
    int64_t min_batch_size, max_batch_size;
};

struct sv_fixed_config {
    int64_t batch_size;
};

struct sv_config {
    struct sv_yaml *yaml; /* owns the texts */
    /* The model. */
    const char *name, *model, *version;
    char *model_path; /* model, relative to the configuration's folder */
    const struct sv_yaml_node *inputs, *outputs;
    const char *padding; /* "off", "zeros" */
    /* Batching. */
    const char *strategy_word;
    enum sv_strategy strategy;
    bool dynamic_batching;
    int64_t max_batch_size, batch_coalesce_timeout_ms, max_queue_size, max_inflight_tasks,
        pool_size;
    struct sv_adaptive_config adaptive;
    struct sv_fixed_config fixed;
    struct sv_congestion_config congestion;
    int64_t warmup_pregen_inputs, warmup_request_nb, warmup_batches_per_worker, seed;
    /* The server: of the first file. */
    const char *address;
    const char *grpc_address; /* "off": none */
    bool grpc_is_given;
    int64_t metrics_port, max_message_bytes, http_threads, grpc_threads, workers;
    int64_t max_pending_bytes, max_pending_bytes_per_client, header_timeout_ms, request_timeout_ms,
        drain_timeout_ms;
    bool use_cpu, use_opencl, verbose;
    const struct sv_yaml_node *starpu_env, *foreign;
    const char *onnxruntime; /* path of its library; NULL: where the loader looks */
    /* Tracing. */
    bool trace_enabled, trace_truncate, trace_plots;
    const char *trace_output, *trace_names, *trace_keep, *trace_otlp, *trace_rotate;
    int64_t trace_plot_seconds, trace_rate, trace_count;
    bool trace_by_parent, trace_operators;
};

/* is_first: keys of the server are allowed. */
/* say: gets a line for each key that has no effect here, and for each thing that is wrong
 * but the last, which is in err. */
int sv_config_open(const char *path, bool is_first, struct sv_config **out,
                   void (*say)(const char *line), struct sv_err *err);
void sv_config_free(struct sv_config *c);

/* A file of PyTorch or TorchScript, by its name: no model for this server. */
bool sv_config_is_pytorch(const char *model);
/* The rows a batch may have. */
int64_t sv_config_batch_limit(const struct sv_config *c);
/* `name = value  # help` for each key, for --help-config. */
void sv_config_keys(void (*line)(const char *text));
