/* What the inference server reads and decides, without StarPU and HTTP: models, requests,
 * configurations, congestion, metrics. */
#include "core/base/json_scan.h"
#include "core/base/mem.h"
#include "server/congestion.h"
#include "server/infer_message.h"
#include "server/network.h"
#include "server/server_metrics.h"

#include "tests/harness/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- models ---- */

static const char *write_file(const void *bytes, size_t n)
{
    const char *path = test_scratch("model");
    FILE *f = fopen(path, "wb");
    REQUIRE(f && fwrite(bytes, 1, n, f) == n && fclose(f) == 0);
    return path;
}

/* A safetensors file of this header and so many bytes of data. */
static const char *write_tensors(const char *header, size_t data)
{
    static uint8_t bytes[4096];
    size_t n = strlen(header);
    REQUIRE(n + data + 8 <= sizeof bytes);
    memset(bytes, 0, sizeof bytes);
    bytes[0] = (uint8_t)n;
    bytes[1] = (uint8_t)(n >> 8);
    memcpy(bytes + 8, header, n);
    return write_file(bytes, 8 + n + data);
}

#define META(input, layers) \
    "{\"__metadata__\":{\"stave.input\":\"" input "\",\"stave.layers\":\"" layers "\"}"
#define TENSOR(name, shape, from, to) \
    ",\"" name "\":{\"dtype\":\"F32\",\"shape\":[" shape "],\"data_offsets\":[" #from "," #to "]}"

TEST(server_model_is_read)
{
    struct sv_network *net = NULL;
    struct sv_err err = {0};
    const char *path = write_tensors(
        META("1x4x4", "conv c relu, maxpool 2, dense d softmax")
            TENSOR("c.weight", "2,1,3,3", 0, 72) TENSOR("c.bias", "2", 72, 80)
                TENSOR("d.weight", "3,8", 80, 176) TENSOR("d.bias", "3", 176, 188) "}",
        188);
    int code = sv_network_open(path, &net, &err);
    CHECK_STR_EQ(err.msg, "");
    REQUIRE(code == 0);
    CHECK_UINT_EQ(net->n, 3);
    CHECK_UINT_EQ(net->in_size, 16);
    CHECK_UINT_EQ(net->out_size, 3);
    CHECK_UINT_EQ(net->widest, 32);
    CHECK_UINT_EQ(net->columns, 9 * 16);
    CHECK_UINT_EQ(net->layers[1].out.h, 2);
    CHECK_INT_EQ(net->layers[2].act, SV_ACT_SOFTMAX);
    CHECK((const char *)net->layers[2].weight - (const char *)net->layers[0].weight == 80);
    sv_network_close(net);
    unlink(path);
}

TEST(server_model_is_refused)
{
    static const struct {
        const char *header, *says;
        size_t data;
    } rows[] = {
        {"{\"__metadata__\":{}}", "stave.input or stave.layers is missing", 0},
        {"nonsense", "header is not JSON", 0},
        {"[1,2]", "not a JSON object", 0},
        {META("2", "dense d") TENSOR("d.weight", "1,2", 0, 8) TENSOR("d.bias", "1", 8, 12) "}",
         "offsets do not match", 8},
        {META("2", "dense d") TENSOR("d.weight", "1,2", 0, 12) TENSOR("d.bias", "1", 8, 12) "}",
         "offsets do not match", 12},
        {META("2", "dense d") TENSOR("d.weight", "1,2", 8, 0) "}", "damaged offsets", 12},
        {META("2", "dense d") TENSOR("d.weight", "1,-2", 0, 8) "}", "damaged shape", 12},
        {META("2", "dense d") TENSOR("d.weight", "16777216,16777216,16777216,16777216", 0, 8) "}",
         "damaged shape", 12},
        {META("2",
              "dense d") ",\"d.weight\":{\"dtype\":\"F16\",\"shape\":[2],\"data_offsets\":[0,4]}}",
         "only dtype F32", 8},
        {META("2", "dense d") TENSOR("d.weight", "1,2", 0, 8) TENSOR("d.weight", "1,2", 0, 8) "}",
         "duplicate tensor", 12},
        {META("2", "dense d") "}", "missing weight", 0},
        {META("3", "dense d") TENSOR("d.weight", "1,2", 0, 8) TENSOR("d.bias", "1", 8, 12) "}",
         "does not match the input", 12},
        {META("2", "dense d") TENSOR("d.weight", "1,2", 0, 8) "}", "bias", 12},
        {META("2", "dens d") "}", "no such kind of layer", 0},
        {META("2", "dense d tanh") "}", "no such activation", 0},
        {META("1x4x4", "maxpool 9") "}", "window does not fit", 0},
        {META("1x4x4", "maxpool") "}", "missing after", 0},
        {META("2x2", "dense d") "}", "stave.input must be", 0},
        {META("0", "dense d") "}", "stave.input must be", 0},
        {META("99999999x99999999x1", "dense d") "}", "stave.input must be", 0},
    };
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        struct sv_network *net = NULL;
        struct sv_err err = {0};
        const char *path = write_tensors(rows[i].header, rows[i].data);
        CONTEXT("%s: %s", rows[i].header, rows[i].says);
        CHECK(sv_network_open(path, &net, &err) < 0);
        CHECK(strstr(err.msg, rows[i].says) != NULL);
        unlink(path);
    }
}

/* A length that the file does not have, and a file that ends early. */
TEST(server_model_is_torn)
{
    static const uint8_t huge[] = {255, 255, 255, 255, 255, 255, 255, 127, '{', '}', 0, 0};
    struct sv_network *net = NULL;
    struct sv_err err = {0};
    CHECK(sv_network_open(write_file(huge, sizeof huge), &net, &err) < 0);
    sv_err_clear(&err);
    const char *path = write_file(huge, 3);
    CHECK(sv_network_open(path, &net, &err) < 0);
    CHECK(strstr(err.msg, "too short") != NULL);
    unlink(path);
    sv_err_clear(&err);
    CHECK_INT_EQ(sv_network_open("/nowhere/at/all", &net, &err), SV_EINPUT);
}

/* ---- requests ---- */

static const struct sv_infer_model tiny = {
    .name = "tiny",
    .version = "1",
    .platform = "p",
    .inputs = {{.name = "input", .type = SV_TYPE_FP32, .n_dims = 1, .dims = {2}}},
    .outputs = {{.name = "output", .type = SV_TYPE_FP32, .n_dims = 1, .dims = {1}}},
    .n_inputs = 1,
    .n_outputs = 1,
    .rows_max = 4};

static double number_at(const struct sv_infer_request *r, size_t i)
{
    float f;
    REQUIRE(r->in[0].len >= (i + 1) * sizeof f);
    memcpy(&f, r->in[0].bytes + i * sizeof f, sizeof f);
    return (double)f;
}

static int parse(const char *text, size_t len, size_t json_len, struct sv_infer_request *out,
                 struct sv_err *err)
{
    uint8_t *body = calloc(1, len + SV_JSON_PAD);
    REQUIRE(body);
    memcpy(body, text, len);
    memset(err, 0, sizeof *err);
    int code = sv_infer_parse(&tiny, body, len, json_len, out, err);
    free(body);
    return code;
}

#define INPUT(shape, more) \
    "{\"inputs\":[{\"name\":\"input\",\"datatype\":\"FP32\",\"shape\":[" shape "]" more "}]}"

TEST(server_request_is_read)
{
    static const char *const texts[] = {
        INPUT("2,2", ",\"data\":[1,2,-3.5,4e1]"),
        INPUT("2,2", ",\"data\":[[1,2],[-3.5, 40.0]]"),
        "{\"id\":\"x\\n\",\"unknown\":[{}],\"inputs\":[{\"shape\":[2,2],\"data\":[1,2,-3.5,40],"
        "\"datatype\":\"FP32\","
        "\"name\":\"input\"}]}",
    };
    for (size_t i = 0; i < TEST_COUNT(texts); i++) {
        struct sv_infer_request r;
        struct sv_err err;
        CONTEXT("%s", texts[i]);
        REQUIRE(parse(texts[i], strlen(texts[i]), strlen(texts[i]), &r, &err) == 0);
        CHECK_UINT_EQ(r.rows, 2);
        CHECK_DOUBLE_EQ(number_at(&r, 2), -3.5);
        CHECK_DOUBLE_EQ(number_at(&r, 3), 40);
        CHECK(!r.wants_binary[0]);
        CHECK_STR_EQ(r.id, i == 2 ? "x\n" : "");
        sv_infer_request_free(&r);
    }
}

TEST(server_request_is_binary)
{
    static const char json[] =
        "{\"inputs\":[{\"name\":\"input\",\"datatype\":\"FP32\",\"shape\":[1,2],\"parameters\":{"
        "\"binary_data_size\":8}}],"
        "\"outputs\":[{\"name\":\"output\",\"parameters\":{\"binary_data\":true}}]}";
    const float numbers[2] = {1.5f, -2};
    char whole[sizeof json + 8];
    struct sv_infer_request r;
    struct sv_err err;
    memcpy(whole, json, sizeof json - 1);
    memcpy(whole + sizeof json - 1, numbers, 8);
    REQUIRE(parse(whole, sizeof json - 1 + 8, sizeof json - 1, &r, &err) == 0);
    CHECK_DOUBLE_EQ(number_at(&r, 0), 1.5);
    CHECK_DOUBLE_EQ(number_at(&r, 1), -2);
    CHECK(r.wants_binary[0]);
    sv_infer_request_free(&r);
    CHECK(parse(whole, sizeof json - 1 + 7, sizeof json - 1, &r, &err) < 0);
    CHECK(parse(whole, sizeof json - 1 + 8, sizeof json + 99, &r, &err) < 0);
    CHECK(strstr(err.msg, "larger than the body") != NULL);
}

TEST(server_request_is_refused)
{
    static const struct {
        const char *text, *says;
    } rows[] = {
        {"", "not valid JSON"},
        {"{", "not valid JSON"},
        {"[]", "must be a JSON object"},
        {"{}", "has no inputs"},
        {"{\"inputs\":{}}", "inputs must be an array"},
        {"{\"inputs\":[]}", "has no inputs"},
        {"{\"inputs\":[1]}", "must be objects"},
        {"{\"inputs\":[{\"name\":\"other\"}]}", "the input of the model is 'input'"},
        {"{\"inputs\":[{\"name\":\"input\"}]}", "needs name, datatype and shape"},
        {"{\"inputs\":[{\"name\":\"input\",\"datatype\":\"INT8\"}]}", "must be FP32"},
        {INPUT("1,3", ",\"data\":[1,2,3]"), "must be [rows, 2]"},
        {INPUT("1", ",\"data\":[1,2]"), "must be [rows, 2]"},
        {INPUT("1,2,1", ",\"data\":[1,2]"), "must be [rows, 2]"},
        {INPUT("0,2", ",\"data\":[]"), "must be [rows, 2]"},
        {INPUT("5,2", ",\"data\":[]"), "at most 4"},
        {INPUT("4294967297,2", ",\"data\":[]"), "must be [rows, 2]"},
        {INPUT("1,2", ",\"data\":[1]"), "fewer numbers"},
        {INPUT("1,2", ",\"data\":[1,2,3]"), "more numbers"},
        {INPUT("1,2", ",\"data\":[1,\"2\"]"), "array of numbers"},
        {INPUT("1,2", ",\"data\":[1,null]"), "array of numbers"},
        {INPUT("1,2", ",\"data\":\"1,2\""), "array of numbers"},
        {INPUT("1,2", ""), "either data or"},
        {INPUT("1,2", ",\"parameters\":{\"binary_data_size\":8}"),
         "binary_data_size does not match"},
        {"{\"id\":7}", "id must be a text"},
        {"{\"outputs\":[{\"name\":\"x\"}]}", "the output of the model is 'output'"},
    };
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        struct sv_infer_request r;
        struct sv_err err;
        CONTEXT("%s: %s", rows[i].text, rows[i].says);
        CHECK(parse(rows[i].text, strlen(rows[i].text), strlen(rows[i].text), &r, &err) < 0);
        CHECK(strstr(err.msg, rows[i].says) != NULL);
    }
}

TEST(server_answer_is_written)
{
    float data[2] = {0.1f, 3};
    struct sv_infer_request asked = {0};
    struct sv_tensor_value out = {.dims = {1}, .bytes = (uint8_t *)data, .len = sizeof data};
    struct sv_infer_answer a = {.id = "q\"",
                                .rows = 2,
                                .out = &out,
                                .request_asks = &asked,
                                .request = 5,
                                .batch = 6,
                                .batch_rows = 7,
                                .worker = 1};
    struct sv_buf b;
    size_t json_len;
    sv_buf_init(&b, 1 << 16);
    sv_infer_write(&tiny, &a, &b, &json_len);
    CHECK_STR_EQ(sv_buf_cstr(&b), "{\"model_name\":\"tiny\",\"model_version\":\"1\",\"id\":"
                                  "\"q\\\"\",\"parameters\":{\"request_id\":5,"
                                  "\"batch_id\":6,\"batch_size\":7,\"worker_id\":1},\"outputs\":[{"
                                  "\"name\":\"output\",\"datatype\":\"FP32\","
                                  "\"shape\":[2,1],\"data\":[0.100000001,3]}]}");
    sv_buf_clear(&b);
    asked.wants_all_binary = true;
    sv_infer_write(&tiny, &a, &b, &json_len);
    CHECK_UINT_EQ(b.len, json_len + 8);
    CHECK_MEM_EQ(b.data + json_len, data, 8);
    CHECK(memmem(b.data, json_len, "\"binary_data_size\":8", 20) != NULL);
    sv_buf_fini(&b);
}

/* ---- configurations ---- */

static char said[4096];

/* From its line number on. */
static void keep_line(const char *line)
{
    size_t n = strlen(said);
    const char *from = strchr(line, ':');
    snprintf(said + n, sizeof said - n, "%s\n", from ? from : line);
}

/* "" for one that is taken, else all that is said about it. */
static const char *config_error(const char *text, bool is_first)
{
    struct sv_err err = {0};
    struct sv_config *c = NULL;
    said[0] = '\0';
    if (sv_config_open(write_file(text, strlen(text)), is_first, &c, keep_line, &err) == 0)
        sv_config_free(c);
    else
        keep_line(err.msg);
    return said;
}

#define BASIC "name: m\nmodel: /dev/../etc/passwd\n"

TEST(server_config_says_all_that_is_wrong)
{
    CHECK_STR_EQ(config_error("name: a b\nmodel: /dev/../etc/passwd\npool_size: none\n"
                              "pol_size: 4\nfixed_batching: {batch_size: 0, batch_sizes: 1}\n"
                              "max_queue_size: 2\nuse_cpu: false\n",
                              true),
                 ":3: pool_size: expected a whole number, found none\n"
                 ":4: unknown key 'pol_size'; did you mean 'pool_size'?\n"
                 ":5: batch_size: 0 is not within 1 and 4096\n"
                 ":5: unknown key 'batch_sizes'; did you mean 'batch_size'?\n"
                 ":1: name: letters, digits, '_', '.' and '-' only, at most 100\n"
                 ":6: max_queue_size is smaller than a batch: no batch could fill\n"
                 ":7: neither use_cpu nor use_opencl is true: there would be no worker\n");
}

TEST(server_config_of_the_older_server_is_taken)
{
    struct sv_config *c = NULL;
    struct sv_err err = {0};
    const char *text = BASIC "verbosity: 3\nsync: true\nuse_cuda: false\n"
                             "group_cpu_by_numa: true\ndevice_ids: [0, 1]\n"
                             "gpu_model_replication: per_worker\nscheduler: lws\n";
    size_t lines = 0;
    said[0] = '\0';
    REQUIRE(sv_config_open(write_file(text, strlen(text)), true, &c, keep_line, &err) == 0);
    sv_config_free(c);
    CHECK(strstr(said, ":3: warning: 'verbosity' has no effect: verbose: true") != NULL);
    CHECK(strstr(said, ":9: warning: 'scheduler' has no effect: set STARPU_SCHED") != NULL);
    for (const char *p = said; *p; p++)
        lines += *p == '\n';
    CHECK_UINT_EQ(lines, 7);
}

/* As its own examples have it, for GPUs: CPU workers compute. */
TEST(server_config_of_the_older_server_for_gpus)
{
    struct sv_config *c = NULL;
    struct sv_err err = {0};
    const char *text = BASIC
        "use_cpu: false\nuse_cuda:\n  - { device_ids: [0] }\nlibtorch:\n  intraop_threads: 8\n"
        "congestion:\n  enabled: true\n  queue_latency_budget_ratio: 0.25\n"
        "  queue_latency_budget_ms: 30\n  alpha_ewma: 0.4\n  tick_interval_ms: 500\n";
    size_t lines = 0;
    said[0] = '\0';
    REQUIRE(sv_config_open(write_file(text, strlen(text)), true, &c, keep_line, &err) == 0);
    CHECK(c->use_cpu);
    CHECK_INT_EQ(c->congestion.tick_ms, 500);
    CHECK_DOUBLE_EQ(c->congestion.alpha, 0.4);
    sv_config_free(c);
    CHECK(strstr(said, ":3: warning: 'use_cpu' has no effect: use_cuda has none") != NULL);
    CHECK(strstr(said, ":10: warning: 'queue_latency_budget_ratio' has no effect") != NULL);
    for (const char *p = said; *p; p++)
        lines += *p == '\n';
    CHECK_UINT_EQ(lines, 5);
    CHECK(strstr(config_error(BASIC "use_cpu: false\nuse_cuda: false\n", true),
                 "there would be no worker") != NULL);
    CHECK(strstr(config_error("name: m\nmodel: none.pt\n", true), "export it as ONNX") != NULL);
}

TEST(server_config_is_read)
{
    struct sv_config *c = NULL;
    struct sv_err err = {0};
    const char *text = BASIC
        "batching:\n  trace_enabled: true\n  trace_output: /tmp/  # as the guide has it\n"
        "  max_batch_size: 8\nmax_queue_size: 9\npool_size: 3\n";
    REQUIRE(sv_config_open(write_file(text, strlen(text)), true, &c, keep_line, &err) == 0);
    CHECK(c->trace_enabled);
    CHECK_STR_EQ(c->trace_output, "/tmp/");
    CHECK_INT_EQ(sv_config_batch_limit(c), 8);
    CHECK_INT_EQ(c->max_inflight_tasks, 3);
    CHECK_INT_EQ(c->strategy, SV_STRATEGY_ADAPTIVE);
    sv_config_free(c);
    CHECK_STR_EQ(config_error(BASIC "trace_enabled: true\nbatching_strategy: fixed\n", true), "");
    CHECK_STR_EQ(config_error(BASIC "dynamic_batching: false\n", false), "");
}

TEST(server_config_is_refused)
{
    static const struct {
        const char *text, *line, *says;
    } rows[] = {
        {"name: m\n", "", "model"},
        {BASIC "batchin:\n  trace_enabled: true\n", ":3:", "batching"},
        {BASIC "batching:\n  trace_enable: true\n", ":4:", "trace_enabled"},
        {BASIC "trace_enabled: maybe\n", ":3:", "trace_enabled"},
        {BASIC "batching: {pool_size: 1}\npool_size: 2\n", ":3:", "given twice"},
        {BASIC "trace_output: /tmp/none/x.json\n", ":3:", "omit the filename"},
        {BASIC "trace_output: /etc/passwd\n", ":3:", "must be a directory"},
        {BASIC "pool_size: 0\n", ":3:", "pool_size"},
        {BASIC "batching_strategy: greedy\n", ":3:", "batching_strategy"},
        {BASIC "max_queue_size: 3\n", ":3:", "smaller than a batch"},
        {BASIC "adaptive_batching: {min_batch_size: 9, max_batch_size: 3}\n", ":3:", "larger than"},
        {BASIC "congestion: {fill_low: 0.9}\n", ":3:", "fill_low"},
        {BASIC "starpu_env: {LD_PRELOAD: x}\n", ":3:", "STARPU_"},
        {BASIC "use_cpu: false\n", ":3:", "there would be no worker"},
        {BASIC "dynamic_batching: false\nbatching_strategy: fixed\n", ":3:", "contradicts"},
        {"name: a/b\nmodel: x\n", ":1:", "letters, digits"},
        {"name: m\nmodel: nowhere.safetensors\n", ":2:", "no such file"},
        {"name: m\nmodel: nowhere.onnx\n", ":2:", "no such file"},
        {"- 1\n", ":1:", ""},
    };
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        const char *says = config_error(rows[i].text, true);
        CONTEXT("%s → %s, expected %s %s", rows[i].text, says, rows[i].line, rows[i].says);
        CHECK(says[0] != 0);
        CHECK(strstr(says, rows[i].line) != NULL && strstr(says, rows[i].says) != NULL);
    }
    CHECK(strstr(config_error(BASIC "address: 127.0.0.1:1\n", false), "first --config") != NULL);
    unlink(write_file("", 0));
}

/* ---- congestion ---- */

TEST(server_congestion_comes_and_goes)
{
    const struct sv_congestion_config config = {.enabled = true,
                                                .tick_ms = 1000,
                                                .entry_horizon_ms = 2000,
                                                .exit_horizon_ms = 2000,
                                                .alpha = 1,
                                                .fill_high = 0.8,
                                                .fill_low = 0.6,
                                                .rho_high = 1.05,
                                                .rho_low = 0.9,
                                                .latency_slo_ms = 100,
                                                .e2e_warn_ratio = 0.9,
                                                .e2e_ok_ratio = 0.8};
    static const struct {
        struct sv_congestion_sample sample;
        bool is_congested;
    } rows[] = {
        {{.arrived = 100, .completed = 100}, false},
        {{.arrived = 120, .completed = 100}, false}, /* pressure, but not for long enough */
        {{.arrived = 100, .completed = 120}, false},
        {{.arrived = 120, .completed = 100}, false},
        {{.arrived = 120, .completed = 100}, true},
        {{.arrived = 100, .completed = 120, .fill = 0.7}, true}, /* the queue is not calm */
        {{.arrived = 100, .completed = 120}, true},
        {{.arrived = 100, .completed = 120}, false},
        {{.arrived = 100, .completed = 120, .rejected = 1}, true}, /* at once */
        {{.arrived = 0}, true},
        {{.arrived = 0}, false}, /* nothing comes any more */
        {{.arrived = 100, .completed = 120, .p95_ms = 95}, false},
        {{.arrived = 100, .completed = 120, .p95_ms = 95}, true}, /* latency alone */
    };
    struct sv_congestion g;
    sv_congestion_init(&g, &config);
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        CONTEXT("tick %zu", i);
        sv_congestion_tick(&g, &rows[i].sample);
        CHECK_INT_EQ(g.is_congested, rows[i].is_congested);
    }
}

TEST(server_pressure_begins_at_its_edge)
{
    const struct sv_congestion_config config = {
        .tick_ms = 1000, .alpha = 1, .fill_high = 0.8, .fill_low = 0.6, .rho_high = 1.05};
    static const struct {
        struct sv_congestion_sample sample;
        int pressure;
    } rows[] = {
        {{.inflight = 0.95}, SV_PRESSURE_SEVERE},
        {{.fill = 0.95}, SV_PRESSURE_SEVERE},
        {{.rejected = 1}, SV_PRESSURE_SEVERE},
        {{.inflight = 0.94}, SV_PRESSURE_HIGH},
        {{.inflight = 0.75}, SV_PRESSURE_HIGH},
        {{.fill = 0.9}, SV_PRESSURE_HIGH},
        {{.arrived = 11, .completed = 10}, SV_PRESSURE_HIGH},
        {{.inflight = 0.74}, SV_PRESSURE_NONE},
        {{.inflight = 0.26}, SV_PRESSURE_NONE},
        {{.fill = 0.8}, SV_PRESSURE_NONE},
        {{.fill = 0.6}, SV_PRESSURE_NONE},
        {{.inflight = 0.25}, SV_PRESSURE_LOW},
    };
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        CONTEXT("row %zu", i);
        struct sv_congestion g;
        sv_congestion_init(&g, &config);
        sv_congestion_tick(&g, &rows[i].sample);
        CHECK_INT_EQ(g.pressure, rows[i].pressure);
    }
}

TEST(server_target_follows)
{
    struct sv_congestion g = {.pressure = SV_PRESSURE_LOW};
    CHECK_INT_EQ(sv_congestion_target(&g, 5, 2, 32), 4);
    CHECK_INT_EQ(sv_congestion_target(&g, 2, 2, 32), 2);
    g.pressure = SV_PRESSURE_HIGH;
    CHECK_INT_EQ(sv_congestion_target(&g, 5, 2, 32), 9);
    g.pressure = SV_PRESSURE_SEVERE;
    CHECK_INT_EQ(sv_congestion_target(&g, 30, 2, 32), 32);
    g.is_congested = true;
    CHECK_INT_EQ(sv_congestion_target(&g, 2, 2, 32), 32);
}

/* ---- metrics ---- */

TEST(server_histogram)
{
    static const double bounds[] = {1, 10};
    struct sv_histogram h;
    struct sv_buf b;
    sv_histogram_init(&h, bounds, 2);
    sv_histogram_add(&h, 0.5);
    sv_histogram_add(&h, 1);
    sv_histogram_add(&h, 7);
    sv_histogram_add(&h, 70);
    CHECK_DOUBLE_EQ(sv_histogram_quantile(&h, 0.5), 1);
    CHECK_DOUBLE_EQ(sv_histogram_quantile(&h, 0.75), 10);
    sv_buf_init(&b, 1 << 16);
    sv_metrics_family(&b, "x_ms", "histogram", "why");
    sv_metrics_histogram(&b, "x_ms", "model=\"m\"", &h);
    CHECK_STR_EQ(sv_buf_cstr(&b),
                 "# HELP x_ms why\n# TYPE x_ms histogram\n"
                 "x_ms_bucket{model=\"m\",le=\"1.0\"} 2\nx_ms_bucket{model=\"m\",le=\"10.0\"} 3\n"
                 "x_ms_bucket{model=\"m\",le=\"+Inf\"} 4\nx_ms_sum{model=\"m\"} 78.5\n"
                 "x_ms_count{model=\"m\"} 4\n");
    sv_buf_fini(&b);
}
