/* stave export --to otlp: which slices become spans, and their ids. See export_otlp.h.
 *
 * Ids: those of the arguments trace_id and span_id where a slice has them. Others are made of the
 * track's uuid, the time, the name and the duration, so that the same slice has the same ids
 * whenever it is exported, and a receiver can recognise repeats. A slice in another one that is
 * exported is its child and of its trace; one at the top begins a trace. */
#include "cmd/export_otlp.h"
#include "cli/console.h"
#include "core/base/mem.h"
#include "core/base/sort.h"
#include "core/base/wire.h"
#include "core/serving/engine_words.h"
#include "formats/otlp/encode.h"
#include "formats/otlp/json.h"
#include "formats/otlp/reader.h"
#include "store/ranks.h"

#include <stave/stave.h>
#include <stdio.h>
#include <stdlib.h>

enum { SPANS_PER_REQUEST = 512 };
#define REQUEST_BYTES ((size_t)1 << 20) /* no more is put into a request that has so much */
#define SPAN_BYTES    ((size_t)256 << 20)

/* ---- which slices ---- */

/* One of the categories of a slice, which are joined by commas. */
static bool has_category(struct sv_text list, const char *category)
{
    const char *p = list.bytes, *end = list.bytes + list.len;
    size_t n = strlen(category);
    while (p < end) {
        const char *comma = memchr(p, ',', (size_t)(end - p));
        size_t len = (size_t)((comma ? comma : end) - p);
        if (len == n && memcmp(p, category, n) == 0)
            return true;
        p += len + 1;
    }
    return false;
}

static bool is_chosen(const struct otlp_export *x, uint32_t row)
{
    const struct sv_slices *s = &x->t->slices;
    struct sv_text cat = sv_dict_text(x->dict, s->cat[row]);
    if (s->kind[row] != SV_SLICE)
        return false;
    for (size_t i = 0; i < x->o->categories.n; i++)
        if (has_category(cat, x->o->categories.items[i]))
            return true;
    struct sv_arg id;
    bool is_batch = x->word.batch_cat && s->cat[row] == x->word.batch_cat && x->key.span_id &&
                    sv_trace_arg(x->t, s->args[row], x->key.span_id, &id); /* a span before */
    return x->o->categories.n == 0 && (has_category(cat, "otlp") || is_batch ||
                                       otlp_is_request(x, row) || otlp_is_step(x, row));
}

/* ---- ids ---- */

static void put_word(uint8_t *to, uint64_t v)
{
    for (int i = 7; i >= 0; i--, v >>= 8)
        to[i] = (uint8_t)v;
}

static uint64_t get_word(const uint8_t *from)
{
    uint64_t v = 0;
    for (int i = 0; i < 8; i++)
        v = v << 8 | from[i];
    return v;
}

static uint64_t made_id(const struct otlp_export *x, uint32_t row)
{
    const struct sv_slices *s = &x->t->slices;
    struct sv_text name = sv_dict_text(x->dict, s->name[row]);
    uint64_t h = sv_hash_bytes(name.bytes, name.len, x->dict->tracks[s->track[row]].uuid);
    h = sv_mix64(h + wall_of(x, s->ts_ns[row]));
    h = sv_mix64(h + (uint64_t)s->dur_ns[row]);
    return h ? h : 1;
}

/* The nearest slice around it that is exported. */
static uint32_t parent_of(const struct otlp_export *x, uint32_t row)
{
    uint32_t parent = x->t->slices.parent[row];
    while (parent != SV_NO_ROW && x->of_row[parent] == OTLP_NONE)
        parent = x->t->slices.parent[parent];
    return parent == SV_NO_ROW ? OTLP_NONE : x->of_row[parent];
}

static bool take_own_ids(const struct otlp_export *x, struct otlp_chosen *c)
{
    struct sv_arg trace, span;
    uint32_t handle = x->t->slices.args[c->ids_row];
    c->has_own =
        x->key.trace_id && x->key.span_id && sv_trace_arg(x->t, handle, x->key.trace_id, &trace) &&
        sv_trace_arg(x->t, handle, x->key.span_id, &span) &&
        sv_otlp_id(&trace, c->trace_id, sizeof c->trace_id) &&
        sv_otlp_id(&span, c->id, sizeof c->id) &&
        !sv_map_find(&x->by_id, get_word(c->id)); /* of two with one id the first keeps it */
    return c->has_own;
}

void otlp_make_ids(struct otlp_export *x, struct otlp_chosen *c, uint64_t id)
{
    while (sv_map_find(&x->by_id, id))
        id = sv_mix64(id + 1) | 1;
    put_word(c->id, id);
    if (c->parent != OTLP_NONE) {
        memcpy(c->trace_id, x->chosen[c->parent].trace_id, sizeof c->trace_id);
    } else {
        put_word(c->trace_id, sv_mix64(id + 0x7ace));
        put_word(c->trace_id + 8, sv_mix64(id + 0x1d) | 1);
    }
}

static void note_request(struct otlp_export *x, const struct otlp_chosen *c, uint32_t number)
{
    struct sv_arg a;
    if (c->life != OTLP_NONE)
        *sv_map_add(&x->requests, x->llm.requests[c->life].id, NULL) = (uint64_t)number + 1;
    else if (otlp_is_request(x, c->row) && x->word.request &&
             sv_trace_arg(x->t, x->t->slices.args[c->row], x->word.request, &a) &&
             (a.type == SV_ARG_INT || a.type == SV_ARG_UINT))
        *sv_map_add(&x->requests, a.u, NULL) = (uint64_t)number + 1;
}

void otlp_choose(struct otlp_export *x, uint32_t row, uint32_t ids_row, uint32_t life)
{
    bool is_new;
    int64_t wall;
    if (__builtin_add_overflow(x->t->slices.ts_ns[row], x->wall_ns, &wall) || wall <= 0) {
        x->n_early++;
        return;
    }
    x->chosen = sv_grow(x->chosen, &x->cap, x->n + 1, sizeof *x->chosen);
    struct otlp_chosen *c = &x->chosen[x->n];
    *c = (struct otlp_chosen){.row = row,
                              .parent = life == OTLP_NONE ? parent_of(x, row) : OTLP_NONE,
                              .first_event = OTLP_NONE,
                              .ids_row = ids_row,
                              .batch = OTLP_NONE,
                              .life = life};
    if (!take_own_ids(x, c))
        otlp_make_ids(x, c, made_id(x, row));
    *sv_map_add(&x->by_id, get_word(c->id), &is_new) = x->n;
    note_request(x, c, (uint32_t)x->n);
    x->of_row[row] = (uint32_t)x->n++;
}

/* Instants that name their span are its events. From the last to the first, so that each chain is
 * in the order of time. */
static void find_events(struct otlp_export *x)
{
    const struct sv_slices *s = &x->t->slices;
    struct sv_arg a;
    uint8_t id[SV_SPAN_ID_BYTES];
    for (uint64_t row = s->n; x->key.span_id && row-- > 0;) {
        if (s->kind[row] != SV_INSTANT || !sv_trace_arg(x->t, s->args[row], x->key.span_id, &a) ||
            !sv_otlp_id(&a, id, sizeof id))
            continue;
        const uint64_t *chosen = sv_map_find(&x->by_id, get_word(id));
        if (!chosen)
            continue;
        struct otlp_chosen *c = &x->chosen[*chosen];
        x->events = sv_grow(x->events, &x->cap_events, x->n_events + 1, sizeof *x->events);
        x->events[x->n_events] = (struct otlp_instant){(uint32_t)row, c->first_event};
        c->first_event = (uint32_t)x->n_events++;
    }
}

/* ---- resources ---- */

static sv_track root_of(const struct sv_dict *d, sv_track track)
{
    sv_track process = sv_dict_process_of(d, track);
    for (unsigned i = 0; !process && d->tracks[track].parent && i < 1000; i++)
        track = d->tracks[track].parent;
    return process ? process : track;
}

/* A head that the reader of OTLP kept in the metadata, as protobuf. False: it is none. */
static bool read_kept(const struct otlp_export *x, const struct sv_meta *meta, const char *name,
                      const struct sv_otlp_message *m, struct sv_buf *out)
{
    static const uint8_t pad[SV_INPUT_PAD];
    struct sv_text key = sv_dict_text(x->dict, meta->key);
    struct sv_text value = sv_dict_text(x->dict, meta->value);
    struct sv_otlp_json how = {0};
    struct sv_buf text;
    if (value.len == 0 || !memmem(key.bytes, key.len, name, strlen(name)))
        return false;
    sv_buf_clear(out);
    sv_buf_init(&text, (size_t)1 << 25);
    sv_buf_add(&text, value.bytes, value.len);
    sv_buf_add(&text, pad, sizeof pad);
    bool ok = !text.failed &&
              sv_otlp_from_json(m, text.data, text.data + value.len, out, &how) != NULL;
    sv_buf_fini(&text);
    return ok;
}

static struct sv_pb find_sub(const struct sv_buf *message, uint32_t id)
{
    struct sv_pb w = {0}, found = {0};
    if (message->len)
        w = sv_pb_at(message->data, message->len);
    for (struct sv_pb_field f; sv_pb_next(&w, &f);)
        if (f.id == id && f.type == SV_PB_BYTES)
            found = sv_pb_sub(&f);
    return found;
}

static bool is_same(struct otlp_text a, struct sv_text b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.bytes, b.bytes, a.len) == 0);
}

/* Is this kept resource that of the process? */
static bool is_resource_of(const struct otlp_export *x, struct sv_pb resource, sv_track root)
{
    const struct sv_track_info *info = &x->dict->tracks[root];
    struct otlp_text name = {0};
    int64_t pid = -1;
    for (struct sv_pb_field f; sv_pb_next(&resource, &f);) {
        struct otlp_text key;
        struct sv_pb value;
        if (f.id != OTLP_RESOURCE_ATTRIBUTES || !otlp_key_value(sv_pb_sub(&f), &key, &value))
            continue;
        if (otlp_is(key, "process.pid"))
            otlp_value_int(value, &pid);
        if (otlp_is(key, "service.name"))
            otlp_value_text(value, &name);
    }
    return pid == (info->kind == SV_TRACK_PROCESS ? info->pid : -1) &&
           is_same(name, sv_dict_text(x->dict, info->name));
}

static bool put_kept_resource(const struct otlp_export *x, struct sv_buf *out, sv_track root)
{
    const struct sv_otlp_message *m = sv_otlp_field(&sv_otlp_request, OTLP_RESOURCE_SPANS)->message;
    struct sv_buf head;
    bool is_found = false;
    sv_buf_init(&head, (size_t)1 << 24);
    for (uint32_t i = 0; i < x->dict->n_meta && !is_found; i++)
        is_found = read_kept(x, &x->dict->meta[i], OTLP_META_RESOURCE, m, &head) &&
                   is_resource_of(x, find_sub(&head, OTLP_RS_RESOURCE), root);
    if (is_found)
        sv_buf_add(out, head.data, head.len);
    sv_buf_fini(&head);
    return is_found;
}

static void put_resource(const struct otlp_export *x, struct sv_buf *out, sv_track root)
{
    const struct sv_track_info *info = &x->dict->tracks[root];
    struct sv_text name = sv_dict_text(x->dict, info->name);
    const char *host = sv_host_of_track(x->t, root);
    if (put_kept_resource(x, out, root))
        return;
    size_t mark = sv_put_begin(out, OTLP_RS_RESOURCE);
    sv_otlp_put_text(out, OTLP_RESOURCE_ATTRIBUTES, "service.name", name.len ? name.bytes : "stave",
                     name.len ? name.len : 5);
    if (info->kind == SV_TRACK_PROCESS)
        sv_otlp_put_int(out, OTLP_RESOURCE_ATTRIBUTES, "process.pid", info->pid);
    if (host && *host)
        sv_otlp_put_text(out, OTLP_RESOURCE_ATTRIBUTES, "host.name", host, strlen(host));
    sv_put_end(out, mark);
}

static bool put_kept_scope(const struct otlp_export *x, struct sv_buf *out, struct sv_text name,
                           struct sv_text version)
{
    const struct sv_otlp_message *rs =
        sv_otlp_field(&sv_otlp_request, OTLP_RESOURCE_SPANS)->message;
    const struct sv_otlp_message *m = sv_otlp_field(rs, OTLP_RS_SCOPE_SPANS)->message;
    struct sv_buf head;
    bool is_found = false;
    sv_buf_init(&head, (size_t)1 << 24);
    for (uint32_t i = 0; i < x->dict->n_meta && !is_found; i++) {
        struct otlp_text own = {0}, own_version = {0};
        struct sv_pb_field f;
        if (!read_kept(x, &x->dict->meta[i], OTLP_META_SCOPE, m, &head))
            continue;
        for (struct sv_pb w = find_sub(&head, OTLP_SS_SCOPE); sv_pb_next(&w, &f);) {
            if (f.id == OTLP_SCOPE_NAME)
                own = (struct otlp_text){f.bytes, (size_t)f.u};
            else if (f.id == OTLP_SCOPE_VERSION)
                own_version = (struct otlp_text){f.bytes, (size_t)f.u};
        }
        is_found = is_same(own, name) && is_same(own_version, version);
    }
    if (is_found)
        sv_buf_add(out, head.data, head.len);
    sv_buf_fini(&head);
    return is_found;
}

static void put_scope(const struct otlp_export *x, struct sv_buf *out, struct sv_text name,
                      struct sv_text version)
{
    static const char own[] = "stave";
    char text[40];
    if (name.len && put_kept_scope(x, out, name, version))
        return;
    size_t mark = sv_put_begin(out, OTLP_SS_SCOPE);
    if (name.len == 0) {
        snprintf(text, sizeof text, "%d.%d.%d", STAVE_VERSION_MAJOR, STAVE_VERSION_MINOR,
                 STAVE_VERSION_PATCH);
        name = (struct sv_text){own, sizeof own - 1};
        version = (struct sv_text){text, (uint32_t)strlen(text)};
    }
    sv_put_text(out, OTLP_SCOPE_NAME, name.bytes, name.len);
    if (version.len)
        sv_put_text(out, OTLP_SCOPE_VERSION, version.bytes, version.len);
    sv_put_end(out, mark);
}

/* ---- requests ---- */

struct order {
    sv_track root;
    uint32_t chosen;
};

static bool is_before(const struct order *a, const struct order *b, const void *ctx)
{
    (void)ctx;
    return a->root != b->root ? a->root < b->root : a->chosen < b->chosen;
}
SV_SORT_DEFINE(sort_order, struct order, is_before)

static struct sv_text text_arg(const struct otlp_export *x, uint32_t row, sv_str key)
{
    struct sv_arg a;
    if (!key || !sv_trace_arg(x->t, x->t->slices.args[row], key, &a) || a.type != SV_ARG_TEXT)
        return (struct sv_text){"", 0};
    return (struct sv_text){a.text, a.size};
}

/* Spans of one resource and one scope, as many as one request has. Returns the first that is
 * left. */
static size_t fill(struct otlp_export *x, const struct order *all, size_t n, size_t at,
                   struct sv_buf *out)
{
    size_t spans = 0;
    while (at < n && spans < SPANS_PER_REQUEST && out->len < REQUEST_BYTES) {
        sv_track root = all[at].root;
        size_t resource = sv_put_begin(out, OTLP_RESOURCE_SPANS);
        put_resource(x, out, root);
        while (at < n && all[at].root == root && spans < SPANS_PER_REQUEST &&
               out->len < REQUEST_BYTES) {
            uint32_t row = x->chosen[all[at].chosen].row;
            struct sv_text name = text_arg(x, row, x->key.scope), other = name;
            size_t scope = sv_put_begin(out, OTLP_RS_SCOPE_SPANS);
            put_scope(x, out, name, text_arg(x, row, x->key.scope_version));
            while (at < n && all[at].root == root && other.len == name.len &&
                   memcmp(other.bytes, name.bytes, name.len) == 0 && spans < SPANS_PER_REQUEST &&
                   out->len < REQUEST_BYTES) {
                otlp_put_span(x, out, all[at++].chosen);
                spans++;
                if (at < n)
                    other = text_arg(x, x->chosen[all[at].chosen].row, x->key.scope);
            }
            sv_put_end(out, scope);
        }
        sv_put_end(out, resource);
    }
    return at;
}

static int send_all(struct otlp_export *x, struct otlp_out *to, struct sv_err *err)
{
    struct order *all = sv_alloc((x->n + 1) * sizeof *all);
    struct order *spare = sv_alloc(SV_SORT_SPARE(x->n) * sizeof *spare);
    struct sv_buf request;
    int code = 0;
    for (size_t i = 0; i < x->n; i++)
        all[i] =
            (struct order){root_of(x->dict, x->t->slices.track[x->chosen[i].row]), (uint32_t)i};
    sort_order(all, x->n, spare, NULL);
    free(spare);
    sv_buf_init(&request, SPAN_BYTES);
    for (size_t at = 0; at < x->n && code >= 0;) {
        sv_buf_clear(&request);
        at = fill(x, all, x->n, at, &request);
        code = otlp_out_put(to, &request, err);
    }
    sv_buf_fini(&request);
    free(all);
    return code;
}

/* ---- all of it ---- */

static void find_keys(struct otlp_export *x)
{
    const struct {
        sv_str *to;
        const char *word;
    } rows[] = {
#define ROW(name, word) {&x->key.name, word},
        OTLP_KEYS(ROW)
#undef ROW
            {&x->word.batch_cat, SV_BATCH_CATEGORY},
        {&x->word.request_cat, SV_LLM_CATEGORY},
        {&x->word.request_name, SV_LLM_REQUEST},
        {&x->word.step_cat, SV_ENGINE_CATEGORY},
        {&x->word.step_name, SV_ENGINE_STEP},
        {&x->word.request, SV_REQUEST},
        {&x->word.request_id, "request_id"},
        {&x->word.members, SV_STEP_MEMBERS},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        *rows[i].to = sv_dict_find_str(x->dict, rows[i].word, strlen(rows[i].word));
}

/* One offset for the whole trace, so that durations stay what they are. */
static int find_wall(struct otlp_export *x, struct sv_err *err)
{
    const struct sv_clocks *c = &x->dict->clocks;
    int64_t wall;
    if (!sv_clocks_convert(c, c->trace_clock, SV_CLOCK_REALTIME, x->t->first_ns, &wall) ||
        __builtin_sub_overflow(wall, x->t->first_ns, &x->wall_ns))
        return sv_error(err, SV_ELIMIT,
                        "nothing relates the trace's clock (%s) to the time of day, which spans "
                        "have; record it with Stave, or merge it with a trace that relates both",
                        sv_clock_name(c->trace_clock));
    return 0;
}

static void make_spans(struct otlp_export *x)
{
    uint64_t n = x->t->slices.n;
    x->of_row = sv_alloc((n + 1) * sizeof *x->of_row);
    memset(x->of_row, 0xff, (n + 1) * sizeof *x->of_row);
    for (uint64_t row = 0; row < n; row++)
        if (is_chosen(x, (uint32_t)row))
            otlp_choose(x, (uint32_t)row, (uint32_t)row, OTLP_NONE);
    if (x->o->categories.n == 0)
        otlp_find_requests(x);
    find_events(x);
}

static int write_spans(struct otlp_export *x, struct sv_err *err)
{
    struct otlp_out *to;
    uint64_t rejected = 0;
    char count[32];
    if (x->n == 0)
        return sv_error(err, SV_EUSAGE, "the trace has %s: choose others by --category",
                        x->o->categories.n ? "no slices of this category"
                                           : "no spans, requests or engine steps");
    int code = otlp_out_open(x->o, &to, err);
    if (code >= 0)
        code = send_all(x, to, err);
    int closed = otlp_out_close(to, code < 0, &rejected, err);
    code = code < 0 ? code : closed;
    if (code >= 0)
        sv_console_note("%s: %s spans", x->o->output, sv_human_count(count, x->n));
    return code < 0 ? code : rejected ? SV_EXIT_FOUND : 0;
}

/* SV_EXIT_FOUND: the collector has rejected some of the spans. */
static int write_otlp(const struct sv_export_options *o, const struct sv_trace *t,
                      struct sv_err *err)
{
    struct otlp_export x = {.t = t, .dict = t->dict, .o = o};
    sv_batch_init(&x.scratch);
    find_keys(&x);
    int code = find_wall(&x, err);
    if (code >= 0) {
        make_spans(&x);
        code = write_spans(&x, err);
    }
    if (x.n_early)
        sv_console_note("%llu slices are before 1970 and were left out",
                        (unsigned long long)x.n_early);
    sv_batch_fini(&x.scratch);
    sv_map_fini(&x.by_id);
    sv_map_fini(&x.requests);
    sv_map_fini(&x.called);
    sv_map_fini(&x.batches);
    sv_llm_fini(&x.llm);
    sv_serving_report_fini(&x.served);
    free(x.of_row);
    free(x.chosen);
    free(x.events);
    return code;
}

const struct sv_export_form sv_export_otlp = {
    .name = "otlp",
    .help = "slices as spans of OpenTelemetry, into a file or to a collector",
    .about = "otlp: slices as spans of OpenTelemetry, into a file (.json or .jsonl: JSON lines, "
             "else protobuf) or to a collector (http://HOST:PORT[/PATH], the path /v1/traces "
             "without one). Ids are the same in each export, so that a receiver can recognise "
             "spans that come twice; a collector that is busy or not there is asked again. "
             "Headers for it come from OTEL_EXPORTER_OTLP_HEADERS. The exit status is 1 when the "
             "collector rejected spans. See docs/otlp.md.",
    .options = "category retry",
    .needs_no_sqlite = true,
    .to_stdout = true,
    .check = otlp_check,
    .write_trace = write_otlp,
};
