/* Resources of OTLP as processes: see reader.h.
 *
 * A resource with process.pid is the process of that number on its host (host.name or host.id, with
 * container.id where there is one), so that a merge with a recording of that machine gives one
 * process. One without is a group named by its service. */
#include "core/stream/machine.h"
#include "formats/otlp/json.h"
#include "formats/otlp/reader.h"

#include <inttypes.h>
#include <stdio.h>

enum { KEPT_MAX = 1000 /* heads in the metadata */, SPACES_MAX = 4096 };

struct resource {
    struct otlp_text service, space, instance, host, host_id, container, executable, command;
    int64_t pid;
};

static void read_attribute(struct resource *x, struct sv_pb attribute)
{
    struct otlp_text key;
    struct sv_pb value;
    const struct {
        const char *key;
        struct otlp_text *to;
    } texts[] = {
        {"service.name", &x->service},
        {"service.namespace", &x->space},
        {"service.instance.id", &x->instance},
        {"host.name", &x->host},
        {"host.id", &x->host_id},
        {"container.id", &x->container},
        {"process.executable.name", &x->executable},
        {"process.command_line", &x->command},
    };
    if (!otlp_key_value(attribute, &key, &value))
        return;
    if (otlp_is(key, "process.pid") && (!otlp_value_int(value, &x->pid) || x->pid < 0))
        x->pid = -1;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (otlp_is(key, texts[i].key))
            otlp_value_text(value, texts[i].to);
}

static uint64_t hash_text(struct otlp_text t, uint64_t seed)
{
    return t.len ? sv_hash_bytes(t.bytes, t.len, seed) : sv_mix64(seed);
}

static struct otlp_text shorter(struct otlp_text t, size_t max)
{
    t.len = t.len < max ? t.len : max;
    return t;
}

/* The first host is that of the file; the others are named as in a merged trace (store/ranks.h). */
static void name_host(struct otlp_reader *r, struct otlp_text host, bool is_another)
{
    char key[256] = SV_META_HOST;
    if (is_another)
        snprintf(key, sizeof key, "%.*s/" SV_META_HOST, (int)host.len, (const char *)host.bytes);
    if (host.len)
        sv_dict_set_meta(r->source.dict, key, (const char *)host.bytes, host.len, false);
}

/* Each host, and each container on it, has numbers of its own. The first that is named is that of
 * the resources which name none, too. */
static uint32_t space_of(struct otlp_reader *r, const struct resource *x)
{
    struct otlp_text host = x->host_id.len ? x->host_id : x->host;
    bool is_new;
    if (host.len == 0 && x->container.len == 0)
        return r->space;
    uint64_t key = hash_text(x->container, hash_text(host, 1));
    uint64_t *number = sv_map_add(&r->hosts, key, &is_new);
    if (is_new) {
        *number = r->n_hosts < SPACES_MAX ? r->n_hosts : 0;
        r->n_hosts++;
        name_host(r, shorter(x->host, 200), r->n_hosts > 1);
    }
    return r->space + (uint32_t)*number;
}

/* The head of resource spans or scope spans, which is all but their spans, as JSON: for who needs
 * more of it than the track says, and for the way back. */
static void keep_head(struct otlp_reader *r, struct otlp_kept *kept, const char *name,
                      const struct sv_otlp_message *m, struct sv_pb w, uint32_t but)
{
    struct sv_json j;
    struct sv_pb_field f;
    char key[40];
    bool is_new;
    uint64_t hash = 7;
    for (struct sv_pb all = w; sv_pb_next(&all, &f);)
        if (f.id != but && f.type == SV_PB_BYTES && sv_otlp_field(m, f.id))
            hash = sv_hash_bytes(f.bytes, (size_t)f.u, hash + f.id);
    if (hash == 7 || kept->n == KEPT_MAX)
        return;
    sv_map_add(&kept->seen, hash, &is_new);
    if (!is_new)
        return;
    struct sv_buf head;
    sv_buf_init(&head, (size_t)1 << 24);
    while (sv_pb_next(&w, &f))
        if (f.id != but && f.type == SV_PB_BYTES && sv_otlp_field(m, f.id))
            sv_put_bytes(&head, f.id, f.bytes, (size_t)f.u);
    sv_buf_clear(&r->text);
    sv_json_init(&j, &r->text);
    if (!head.failed && sv_otlp_to_json(m, head.data, head.len, &j) && !r->text.failed) {
        snprintf(key, sizeof key, "%s%" PRIu32, name, kept->n++);
        sv_dict_set_meta(r->source.dict, key, sv_buf_cstr(&r->text), r->text.len, true);
    }
    sv_buf_fini(&head);
}

static struct sv_pb find_sub(struct sv_pb w, uint32_t id)
{
    struct sv_pb found = {0};
    for (struct sv_pb_field f; sv_pb_next(&w, &f);)
        if (f.id == id && f.type == SV_PB_BYTES)
            found = sv_pb_sub(&f);
    return found;
}

/* A group for what names no process. */
static sv_track group_of(struct otlp_reader *r, const struct resource *x, struct otlp_text name)
{
    struct sv_dict *d = r->source.dict;
    uint64_t uuid = hash_text(x->instance, hash_text(x->space, hash_text(name, 0x07e1)));
    bool is_new;
    sv_track t = sv_dict_track(d, sv_mix64(uuid + r->resource_space), &is_new);
    if (is_new) {
        sv_str word = name.len ? otlp_word(r, shorter(name, 4096)) : sv_dict_cstr(d, "OTLP");
        struct sv_track_info *info = &d->tracks[t];
        info->kind = SV_TRACK_CUSTOM;
        info->name = word;
        info->is_described = true;
        info->space = r->resource_space;
    }
    return t;
}

static sv_track process_of(struct otlp_reader *r, const struct resource *x, struct otlp_text name)
{
    struct sv_dict *d = r->source.dict;
    sv_track t = sv_dict_process(d, r->resource_space, x->pid);
    sv_str word = name.len ? otlp_word(r, shorter(name, 4096)) : 0;
    sv_str origin =
        r->resource_space != r->space && x->host.len ? otlp_word(r, shorter(x->host, 200)) : 0;
    sv_str command = x->command.len ? otlp_word(r, shorter(x->command, 4096)) : 0;
    struct sv_track_info *info = &d->tracks[t];
    if (origin && !info->origin)
        info->origin = origin;
    if (word && info->name != word) {
        info->name = word;
        info->is_described = true;
        sv_dict_touch(d, t);
    }
    if (command && !info->desc) {
        info->desc = command;
        sv_dict_touch(d, t);
    }
    return t;
}

void otlp_resource(struct otlp_reader *r, struct sv_pb resource_spans)
{
    struct resource x = {.pid = -1};
    struct sv_pb w = find_sub(resource_spans, OTLP_RS_RESOURCE);
    for (struct sv_pb_field f; sv_pb_next(&w, &f);)
        if (f.id == OTLP_RESOURCE_ATTRIBUTES && f.type == SV_PB_BYTES)
            read_attribute(&x, sv_pb_sub(&f));
    if (w.bad)
        otlp_damage(r, w.p, "resource that cannot be read", NULL);
    r->has_found = true;
    struct otlp_text name = x.service.len ? x.service : x.executable;
    r->resource_space = space_of(r, &x);
    r->pid = x.pid;
    r->process = x.pid >= 0 ? process_of(r, &x, name) : group_of(r, &x, name);
    if (!w.bad)
        keep_head(r, &r->resources, OTLP_META_RESOURCE,
                  sv_otlp_field(&sv_otlp_request, OTLP_RESOURCE_SPANS)->message, resource_spans,
                  OTLP_RS_SCOPE_SPANS);
}

void otlp_scope(struct otlp_reader *r, struct sv_pb scope_spans)
{
    const struct sv_otlp_message *rs =
        sv_otlp_field(&sv_otlp_request, OTLP_RESOURCE_SPANS)->message;
    struct sv_pb w = find_sub(scope_spans, OTLP_SS_SCOPE);
    bool has_more = find_sub(scope_spans, OTLP_SS_SCHEMA_URL).p != NULL;
    r->scope = r->scope_version = (struct otlp_text){0};
    for (struct sv_pb_field f; sv_pb_next(&w, &f);) {
        if (f.id == OTLP_SCOPE_NAME && f.type == SV_PB_BYTES)
            r->scope = (struct otlp_text){f.bytes, (size_t)f.u};
        else if (f.id == OTLP_SCOPE_VERSION && f.type == SV_PB_BYTES)
            r->scope_version = (struct otlp_text){f.bytes, (size_t)f.u};
        else
            has_more = true;
    }
    if (has_more && !w.bad)
        keep_head(r, &r->scopes, OTLP_META_SCOPE, sv_otlp_field(rs, OTLP_RS_SCOPE_SPANS)->message,
                  scope_spans, OTLP_SS_SPANS);
}
