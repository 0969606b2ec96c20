/* See trace_control.h. Called by the program at its start, by inference.c for each request, and by
 * http_front.c for /v2/trace/setting. */
#include "server/run/trace_control.h"
#include "server/run/otlp_live.h"

#include "core/base/json.h"
#include "core/base/json_scan.h"
#include "core/base/mem.h"
#include "core/files/peer.h"
#include "core/files/token.h"
#include "core/stream/json_members.h"

#include "cli/command.h"
#include "cli/console.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- each request ---- */

/* The setting that holds for a model: its own where it has one. */
static struct sv_trace_setting *either(struct sv_model *m, const _Atomic bool *has_own)
{
    return atomic_load_explicit(has_own, memory_order_relaxed) ? &m->tracing : &m->engine->tracing;
}

static bool is_counted(struct sv_trace_setting *s)
{
    int64_t left = atomic_load_explicit(&s->left, memory_order_relaxed);
    while (left > 0)
        if (atomic_compare_exchange_weak(&s->left, &left, left - 1))
            return true;
    return left < 0;
}

struct stave_serving *sv_trace_for(struct sv_model *m, const struct stave_trace_context *caller)
{
    struct stave_serving *trace = atomic_load_explicit(&m->engine->trace, memory_order_acquire);
    if (!trace || !either(m, &m->tracing.has_level)->is_on)
        return NULL;
    if (caller && either(m, &m->tracing.has_parent)->by_parent)
        return caller->flags & 1 ? trace : NULL;
    struct sv_trace_setting *r = either(m, &m->tracing.has_rate);
    uint32_t rate = atomic_load_explicit(&r->rate, memory_order_relaxed);
    if (rate > 1 && atomic_fetch_add_explicit(&r->turn, 1, memory_order_relaxed) % rate != 0)
        return NULL;
    return is_counted(either(m, &m->tracing.has_count)) ? trace : NULL;
}

/* ---- opening ---- */

static int open_trace(struct sv_engine *e, struct stave_serving **trace, struct sv_err *err)
{
    const struct sv_config *c = e->config;
    struct stave_error error = {0};
    struct sv_rotate rotate = {0};
    if (e->trace_rotate)
        sv_parse_rotate(e->trace_rotate, &rotate); /* it was checked */
    struct stave_serving_config config = {
        .size = sizeof config,
        .trace_enabled = true,
        .trace_output = e->trace_folder,
        .server = "StarPU Inference Server",
        .names = strcmp(c->trace_names, "perfetto") == 0 ? STAVE_SERVING_NAMES_NEWER
                                                         : STAVE_SERVING_NAMES_DEFAULT,
        .truncate = c->trace_truncate,
        .keep = e->trace_keep,
        .rotate_bytes = rotate.bytes,
        .rotate_ns = rotate.ns,
        .rotate_parts = rotate.parts,
        .outputs = e->trace_rotate ? STAVE_SERVING_PFTRACE : 0,
        .ended = e->otlp ? sv_otlp_live_put : NULL,
        .ended_ctx = e->otlp,
    };
    *trace = stave_serving_open(&config, &error);
    if (*trace && e->trace_rotate)
        sv_print(stderr,
                 "stave-server: trace_rotate: JSON, CSV and plots have no parts and are not "
                 "written; from the .pftrace 'stave convert' makes the JSON and 'stave plot batch' "
                 "the plots\n");
    return *trace ? 0 : sv_error(err, SV_EIO, "trace: %.400s", error.text);
}

static void name_all(struct sv_engine *e, struct stave_serving *trace)
{
    for (uint32_t i = 0; i < e->n_models; i++)
        e->models[i].traced = stave_serving_model(trace, e->models[i].config->name);
    for (uint32_t i = 0; i < e->n_workers; i++)
        stave_serving_worker(trace, (int32_t)i, e->workers[i].type, e->workers[i].device);
    sv_starpu_view_start(e);
}

static void set_configured(struct sv_engine *e, struct sv_trace_setting *s)
{
    s->is_on = e->config->trace_enabled;
    s->by_parent = e->config->trace_by_parent;
    s->rate = (uint32_t)e->config->trace_rate;
    s->left = e->config->trace_count;
}

/* With the lock, or before there are others. The rule was checked. */
static void keep(struct sv_engine *e, const char *rule)
{
    free(e->trace_keep);
    e->trace_keep = sv_strndup(rule, strlen(rule));
    atomic_store(&e->keeps_all, strcmp(rule, "all") == 0);
    stave_serving_keep(e->trace, rule, NULL);
}

int sv_trace_check_keep(const char *rule, struct sv_err *err)
{
    struct stave_error error = {0};
    return stave_serving_keep(NULL, rule, &error) == 0
               ? 0
               : sv_error(err, SV_EUSAGE, "trace_%.300s", error.text);
}

int sv_trace_check_rotate(const char *text, struct sv_err *err)
{
    struct sv_rotate ignored;
    return sv_parse_rotate(text, &ignored) == 0
               ? 0
               : sv_error(err, SV_EUSAGE, "trace_rotate: '%.80s' is " SV_NO_ROTATE, text);
}

/* NULL: the trace has no parts. */
static void rotate(struct sv_engine *e, const char *text)
{
    free(e->trace_rotate);
    e->trace_rotate = text ? sv_strndup(text, strlen(text)) : NULL;
}

int sv_trace_start(struct sv_engine *e, struct sv_err *err)
{
    struct stave_serving *trace = NULL;
    pthread_mutex_init(&e->trace_lock, NULL);
    e->trace_folder = sv_strndup(e->config->trace_output, strlen(e->config->trace_output));
    keep(e, e->config->trace_keep);
    rotate(e, e->config->trace_rotate);
    set_configured(e, &e->tracing);
    int code = e->config->trace_otlp ? sv_otlp_live_open(e->config->trace_otlp, &e->otlp, err) : 0;
    if (code == 0 && e->config->trace_enabled)
        code = open_trace(e, &trace, err);
    e->trace = trace;
    return code;
}

void sv_trace_name(struct sv_engine *e)
{
    if (e->trace)
        name_all(e, e->trace);
}

/* With the lock. Switched on while the server runs. */
static int open_late(struct sv_engine *e, struct sv_err *err)
{
    struct stave_serving *trace = NULL;
    int code = e->trace ? 0 : open_trace(e, &trace, err);
    if (!trace)
        return code;
    name_all(e, trace);
    atomic_store_explicit(&e->trace, trace, memory_order_release);
    return 0;
}

/* ---- what a client wants ---- */

struct wanted {
    bool has_level, has_rate, has_count, has_parent, has_file, has_keep,
        has_rotate; /* it says something */
    bool no_level, no_rate, no_count, no_parent, no_keep,
        no_rotate; /* null: as it was configured */
    bool is_on, by_parent;
    uint32_t rate;
    int64_t count;
    char file[PATH_MAX], keep[128], rotate[128];
};

/* 5 and "5". */
static bool number(const struct sv_member *m, int64_t least, int64_t most, int64_t *out)
{
    struct sv_member plain = *m;
    if (m->type == '"')
        plain.type = '0';
    return m->value.len && sv_member_i64(&plain, out) && *out >= least && *out <= most;
}

static bool is_text(const struct sv_member *m, const char *text)
{
    return m->type == '"' && m->value.len == strlen(text) &&
           memcmp(m->value.bytes, text, m->value.len) == 0;
}

static bool is_level(const struct sv_member *m, struct wanted *w)
{
    bool is_off = is_text(m, "OFF"), is_known = is_off || is_text(m, "TIMESTAMPS");
    w->is_on |= is_known && !is_off;
    return is_known;
}

static int take_level(const struct sv_member *m, struct wanted *w, struct sv_err *err)
{
    struct sv_member one;
    bool is_good = m->type == '[' || is_level(m, w);
    if (m->type == '[')
        for (struct sv_members all = sv_members_of(m->value.bytes, m->value.len);
             is_good && sv_member_next(&all, &one);)
            is_good = is_level(&one, w);
    return is_good
               ? 0
               : sv_error(err, SV_EUSAGE, "trace_level: expected [\"OFF\"] or [\"TIMESTAMPS\"]");
}

static int take_rate(const struct sv_member *m, struct wanted *w, struct sv_err *err)
{
    int64_t rate;
    if (!number(m, 1, 1000000000, &rate))
        return sv_error(err, SV_EUSAGE, "trace_rate: expected a number from 1 to 1000000000");
    w->rate = (uint32_t)rate;
    return 0;
}

static int take_count(const struct sv_member *m, struct wanted *w, struct sv_err *err)
{
    return number(m, -1, INT64_MAX, &w->count)
               ? 0
               : sv_error(err, SV_EUSAGE, "trace_count: expected a number, or -1 for no limit");
}

static int take_parent(const struct sv_member *m, struct wanted *w, struct sv_err *err)
{
    w->by_parent = m->type == 't' || is_text(m, "true");
    return w->by_parent || m->type == 'f' || is_text(m, "false")
               ? 0
               : sv_error(err, SV_EUSAGE, "trace_by_parent: expected true or false");
}

/* A text that is not empty, as it is. */
static bool take_text(const struct sv_member *m, char *to, size_t size)
{
    struct sv_batch b;
    sv_batch_init(&b);
    struct sv_text text = m->type == '"' ? sv_member_text(m, &b) : (struct sv_text){0};
    bool is_good = text.len && text.len < size && !memchr(text.bytes, 0, text.len);
    if (is_good)
        snprintf(to, size, "%.*s", (int)text.len, text.bytes);
    sv_batch_fini(&b);
    return is_good;
}

static int take_file(const struct sv_member *m, struct wanted *w, struct sv_err *err)
{
    return take_text(m, w->file, sizeof w->file)
               ? 0
               : sv_error(err, SV_EUSAGE, "trace_file: expected the path of a folder");
}

static int take_keep(const struct sv_member *m, struct wanted *w, struct sv_err *err)
{
    return take_text(m, w->keep, sizeof w->keep)
               ? sv_trace_check_keep(w->keep, err)
               : sv_error(err, SV_EUSAGE, "trace_keep: expected a text such as \"slow > 50ms\"");
}

static int take_rotate(const struct sv_member *m, struct wanted *w, struct sv_err *err)
{
    return take_text(m, w->rotate, sizeof w->rotate)
               ? sv_trace_check_rotate(w->rotate, err)
               : sv_error(err, SV_EUSAGE, "trace_rotate: expected a text such as \"100M,10\"");
}

/* What Triton has besides, with the only value that means something here. */
static int take_fixed(const struct sv_member *m, const char *only, struct sv_err *err)
{
    int64_t n;
    if (is_text(m, only) || (only[0] == '0' && number(m, 0, 0, &n)))
        return 0;
    return sv_error(err, SV_EUSAGE, "%.*s: this server supports only \"%s\"",
                    (int)(m->key.len < 40 ? m->key.len : 40), m->key.bytes, only);
}

static int take(const struct sv_member *m, struct wanted *w, struct sv_err *err)
{
    const struct {
        const char *key;
        bool *has, *no;
        int (*read)(const struct sv_member *m, struct wanted *w, struct sv_err *err);
    } rows[] = {{"trace_level", &w->has_level, &w->no_level, take_level},
                {"trace_rate", &w->has_rate, &w->no_rate, take_rate},
                {"trace_count", &w->has_count, &w->no_count, take_count},
                {"trace_by_parent", &w->has_parent, &w->no_parent, take_parent},
                {"trace_keep", &w->has_keep, &w->no_keep, take_keep},
                {"trace_rotate", &w->has_rotate, &w->no_rotate, take_rotate},
                {"trace_file", &w->has_file, NULL, take_file}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (!sv_member_is(m, rows[i].key))
            continue;
        bool is_null = m->type == 'n' && rows[i].no;
        *rows[i].has = true;
        if (is_null)
            *rows[i].no = true;
        return is_null ? 0 : rows[i].read(m, w, err);
    }
    if (sv_member_is(m, "log_frequency"))
        return take_fixed(m, "0", err);
    if (sv_member_is(m, "trace_mode"))
        return take_fixed(m, "triton", err);
    return sv_error(err, SV_EUSAGE,
                    "no setting '%.*s'; there are trace_level, trace_rate, trace_count, "
                    "trace_by_parent, trace_keep, trace_rotate and trace_file",
                    (int)(m->key.len < 40 ? m->key.len : 40), m->key.bytes);
}

static int read_wanted(const uint8_t *body, size_t len, struct wanted *w, struct sv_err *err)
{
    struct sv_member m;
    if (!len || !sv_json_valid(body, len))
        return sv_error(err, SV_EUSAGE, "the body must be a JSON object of settings");
    struct sv_members all = sv_members_of((const char *)body, len);
    int code = all.is_object ? 0 : sv_error(err, SV_EUSAGE, "the body must be a JSON object");
    while (code == 0 && sv_member_next(&all, &m))
        code = take(&m, w, err);
    return code;
}

/* ---- taking it over ---- */

static int move_folder(struct sv_engine *e, const struct sv_model *m, const char *folder,
                       struct sv_err *err)
{
    struct stave_error error = {0};
    if (strcmp(folder, e->trace_folder) == 0)
        return 0;
    if (m || e->trace)
        return sv_error(err, SV_EUSAGE, "trace_file: %s %s: it stays until the server stops",
                        m ? "the whole server traces to" : "a trace is being written to",
                        e->trace_folder);
    if (stave_serving_check_output(folder, &error) < 0)
        return sv_error(err, SV_EUSAGE, "trace_file: %.300s", error.text);
    free(e->trace_folder);
    e->trace_folder = sv_strndup(folder, strlen(folder));
    return 0;
}

/* The parts of a trace are as it was begun. */
static int set_rotate(struct sv_engine *e, const struct sv_model *m, const struct wanted *w,
                      struct sv_err *err)
{
    if (m)
        return sv_error(err, SV_EUSAGE,
                        "trace_rotate holds for the whole server: /v2/trace/setting");
    if (e->trace)
        return sv_error(err, SV_EUSAGE,
                        "trace_rotate: a trace is being written to %s: it stays as it was begun "
                        "until the server stops",
                        e->trace_folder);
    rotate(e, w->no_rotate ? e->config->trace_rotate : w->rotate);
    return 0;
}

/* null: of a model, the server's; of the server, the configuration's. */
static void apply(struct sv_engine *e, struct sv_model *m, const struct wanted *w)
{
    struct sv_trace_setting *to = m ? &m->tracing : &e->tracing, base;
    set_configured(e, &base);
    if (w->has_rate)
        to->rate = w->no_rate ? base.rate : w->rate;
    if (w->has_rate)
        to->turn = 0;
    if (w->has_count)
        to->left = w->no_count ? base.left : w->count;
    if (w->has_parent)
        to->by_parent = w->no_parent ? base.by_parent : w->by_parent;
    if (w->has_level)
        to->is_on = w->no_level ? base.is_on : w->is_on;
    if (w->has_keep)
        keep(e, w->no_keep ? e->config->trace_keep : w->keep);
    to->has_rate = w->has_rate ? !w->no_rate : to->has_rate;
    to->has_count = w->has_count ? !w->no_count : to->has_count;
    to->has_parent = w->has_parent ? !w->no_parent : to->has_parent;
    to->has_level = w->has_level ? !w->no_level : to->has_level;
}

int sv_trace_set(struct sv_engine *e, struct sv_model *m, const uint8_t *body, size_t len,
                 struct sv_err *err)
{
    struct wanted w = {0};
    int code = read_wanted(body, len, &w, err);
    if (code < 0)
        return code;
    pthread_mutex_lock(&e->trace_lock);
    if (w.has_keep && m)
        code = sv_error(err, SV_EUSAGE, "trace_keep holds for the whole server: /v2/trace/setting");
    if (code == 0 && w.has_file)
        code = move_folder(e, m, w.file, err);
    if (code == 0 && w.has_rotate)
        code = set_rotate(e, m, &w, err);
    if (code == 0 && w.has_level && w.is_on)
        code = open_late(e, err);
    if (code == 0)
        apply(e, m, &w);
    pthread_mutex_unlock(&e->trace_lock);
    return code;
}

/* All values are texts, as Triton's. */
void sv_page_trace(struct sv_engine *e, struct sv_model *m, struct sv_buf *out)
{
    struct sv_trace_setting *s = &e->tracing;
    struct sv_json j;
    sv_json_init(&j, out);
    pthread_mutex_lock(&e->trace_lock);
    bool is_on = (m ? either(m, &m->tracing.has_level) : s)->is_on && e->trace;
    sv_json_begin(&j, '{');
    sv_json_put(&j, "trace_level", begin, '[');
    sv_json_cstr(&j, is_on ? "TIMESTAMPS" : "OFF");
    sv_json_end(&j);
    sv_json_put(&j, "trace_rate", i64_text, (m ? either(m, &m->tracing.has_rate) : s)->rate);
    sv_json_put(&j, "trace_count", i64_text, (m ? either(m, &m->tracing.has_count) : s)->left);
    sv_json_put(&j, "log_frequency", cstr, "0");
    sv_json_put(&j, "trace_file", cstr, e->trace_folder);
    sv_json_put(&j, "trace_mode", cstr, "triton");
    bool by_parent = (m ? either(m, &m->tracing.has_parent) : s)->by_parent;
    sv_json_put(&j, "trace_by_parent", cstr, by_parent ? "true" : "false");
    sv_json_put(&j, "trace_keep", cstr, e->trace_keep);
    if (e->trace_rotate)
        sv_json_put(&j, "trace_rotate", cstr, e->trace_rotate);
    sv_json_end(&j);
    pthread_mutex_unlock(&e->trace_lock);
}

bool sv_trace_may(uid_t uid, const char *header, size_t len)
{
    const char *token = getenv("STAVE_TOKEN");
    if (token && *token && header)
        return sv_token_is_bearer(token, header, len);
    return sv_peer_may(uid, NULL);
}
