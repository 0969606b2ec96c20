/* Pages about models: see model_pages.h. Called by both fronts; read the engine, change nothing. */
#include "server/run/model_pages.h"

#include "core/base/json_scan.h"
#include "core/base/wire.h"
#include "core/stream/json_members.h"

#include <stdio.h>
#include <string.h>

const char *const sv_server_extensions[] = {"binary_tensor_data", "statistics",
                                            "model_configuration", "model_repository", "trace"};
const size_t sv_server_n_extensions = sizeof sv_server_extensions / sizeof *sv_server_extensions;

const char *sv_model_state(const struct sv_model *m)
{
    return atomic_load(&m->engine->is_ready) ? "READY" : "UNAVAILABLE";
}

const char *sv_model_reason(const struct sv_model *m)
{
    return atomic_load(&m->engine->is_ready) ? "" : "the server is not ready";
}

void sv_page_server(struct sv_engine *e, struct sv_model *m, struct sv_buf *out)
{
    struct sv_json j;
    (void)e;
    (void)m;
    sv_json_init(&j, out);
    sv_json_begin(&j, '{');
    sv_json_put(&j, "name", cstr, "stave-server");
    sv_json_put(&j, "version", cstr, stave_version());
    sv_json_put(&j, "extensions", begin, '[');
    for (size_t i = 0; i < sv_server_n_extensions; i++)
        sv_json_cstr(&j, sv_server_extensions[i]);
    sv_json_end(&j);
    sv_json_end(&j);
}

void sv_page_models(struct sv_engine *e, struct sv_model *m, struct sv_buf *out)
{
    struct sv_json j;
    (void)m;
    sv_json_init(&j, out);
    sv_json_begin(&j, '{');
    sv_json_put(&j, "models", begin, '[');
    for (uint32_t i = 0; i < e->n_models; i++)
        sv_json_cstr(&j, e->models[i].config->name);
    sv_json_end(&j);
    sv_json_end(&j);
}

void sv_page_model(struct sv_engine *e, struct sv_model *m, struct sv_buf *out)
{
    (void)e;
    sv_infer_describe(&m->describes, out);
}

void sv_page_stats(struct sv_engine *e, struct sv_model *m, struct sv_buf *out)
{
    struct sv_json j;
    sv_json_init(&j, out);
    sv_json_begin(&j, '{');
    sv_json_put(&j, "model_stats", begin, '[');
    for (uint32_t i = 0; i < e->n_models; i++) {
        struct sv_model *one = &e->models[i];
        if (!m || m == one)
            sv_model_stats_json(&one->stats, one->config->name, one->config->version, &j);
    }
    sv_json_end(&j);
    sv_json_end(&j);
}

/* ---- the index ---- */

bool sv_page_index_asks(const uint8_t *body, size_t len, bool *ready_only)
{
    struct sv_member m;
    if (len == 0)
        return true;
    if (!sv_json_valid(body, len))
        return false;
    struct sv_members members = sv_members_of((const char *)body, len);
    while (members.is_object && sv_member_next(&members, &m))
        if (sv_member_is(&m, "ready"))
            *ready_only = m.type == 't';
    return members.is_object;
}

static void index_page(struct sv_engine *e, bool ready_only, struct sv_buf *out)
{
    struct sv_json j;
    sv_json_init(&j, out);
    sv_json_begin(&j, '[');
    for (uint32_t i = 0; i < e->n_models; i++) {
        const struct sv_model *m = &e->models[i];
        if (ready_only && !atomic_load(&e->is_ready))
            continue;
        sv_json_begin(&j, '{');
        sv_json_put(&j, "name", cstr, m->config->name);
        sv_json_put(&j, "version", cstr, m->config->version);
        sv_json_put(&j, "state", cstr, sv_model_state(m));
        sv_json_put(&j, "reason", cstr, sv_model_reason(m));
        sv_json_end(&j);
    }
    sv_json_end(&j);
}

void sv_page_index(struct sv_engine *e, struct sv_model *m, struct sv_buf *out)
{
    (void)m;
    index_page(e, false, out);
}

void sv_page_index_ready(struct sv_engine *e, struct sv_model *m, struct sv_buf *out)
{
    (void)m;
    index_page(e, true, out);
}

/* ---- the configuration ---- */

static const char *type_word(enum sv_datatype t, char word[24])
{
    snprintf(word, 24, "TYPE_%s", t == SV_TYPE_BYTES ? "STRING" : sv_datatype_name(t));
    return word;
}

static void config_tensors(struct sv_json *j, const struct sv_tensor_spec *specs, uint32_t n)
{
    char word[24];
    sv_json_begin(j, '[');
    for (uint32_t i = 0; i < n; i++) {
        sv_json_begin(j, '{');
        sv_json_put(j, "name", cstr, specs[i].name);
        sv_json_put(j, "data_type", cstr, type_word(specs[i].type, word));
        sv_json_lit(j, "dims"); /* without the rows, as Triton has it */
        sv_json_begin(j, '[');
        for (uint32_t k = 0; k < specs[i].n_dims; k++)
            sv_json_i64(j, specs[i].dims[k]);
        sv_json_end(j);
        sv_json_end(j);
    }
    sv_json_end(j);
}

static const char *backend(const struct sv_model *m)
{
    return m->onnx ? "onnxruntime" : "stave";
}

static int64_t delay_us(const struct sv_config *c)
{
    return c->strategy == SV_STRATEGY_DISABLED ? 0 : c->batch_coalesce_timeout_ms * 1000;
}

static void config_parameters(struct sv_json *j, const struct sv_config *c)
{
    const struct {
        const char *key, *value;
    } all[] = {
        {"batching_strategy", c->strategy == SV_STRATEGY_DISABLED ? "disabled" : c->strategy_word},
        {"padding", c->padding}};
    sv_json_put(j, "parameters", begin, '{');
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        sv_json_key(j, all[i].key, strlen(all[i].key));
        sv_json_begin(j, '{');
        sv_json_put(j, "string_value", cstr, all[i].value);
        sv_json_end(j);
    }
    sv_json_end(j);
}

void sv_page_config(struct sv_engine *e, struct sv_model *m, struct sv_buf *out)
{
    struct sv_json j;
    const struct sv_infer_model *d = &m->describes;
    (void)e;
    sv_json_init(&j, out);
    sv_json_begin(&j, '{');
    sv_json_put(&j, "name", cstr, d->name);
    sv_json_put(&j, "platform", cstr, d->platform);
    sv_json_put(&j, "backend", cstr, backend(m));
    sv_json_put(&j, "max_batch_size", u64, m->rows_max);
    sv_json_lit(&j, "input");
    config_tensors(&j, d->inputs, d->n_inputs);
    sv_json_lit(&j, "output");
    config_tensors(&j, d->outputs, d->n_outputs);
    sv_json_put(&j, "dynamic_batching", begin, '{');
    sv_json_put(&j, "max_queue_delay_microseconds", i64, delay_us(m->config));
    sv_json_put(&j, "default_queue_policy", begin, '{');
    sv_json_put(&j, "max_queue_size", i64, m->config->max_queue_size);
    sv_json_end(&j);
    sv_json_end(&j);
    config_parameters(&j, m->config);
    sv_json_end(&j);
}

/* name 1, platform 2, max_batch_size 4, input 5, output 6, backend 17; of a tensor: name 1,
 * data_type 2, dims 4 (of an output 3). */
void sv_config_proto(const struct sv_model *m, struct sv_buf *out)
{
    const struct sv_infer_model *d = &m->describes;
    sv_put_bytes(out, 1, d->name, strlen(d->name));
    sv_put_bytes(out, 2, d->platform, strlen(d->platform));
    sv_put_u64(out, 4, m->rows_max);
    for (uint32_t side = 0; side < 2; side++) {
        const struct sv_tensor_spec *specs = side ? d->outputs : d->inputs;
        for (uint32_t i = 0; i < (side ? d->n_outputs : d->n_inputs); i++) {
            size_t mark = sv_put_begin(out, 5 + side);
            sv_put_bytes(out, 1, specs[i].name, strlen(specs[i].name));
            sv_put_u64(out, 2, (uint64_t)specs[i].type + 1);
            size_t dims = sv_put_begin(out, side ? 3 : 4);
            for (uint32_t k = 0; k < specs[i].n_dims; k++)
                sv_put_varint(out, (uint64_t)specs[i].dims[k]);
            sv_put_end(out, dims);
            sv_put_end(out, mark);
        }
    }
    sv_put_bytes(out, 17, backend(m), strlen(backend(m)));
}
