/* The Chrome reader's own dialect: what Stave's writer adds so that nothing is lost on the way
 * through Chrome JSON.
 *
 * Called once the file has said that it is ours (otherData.stave, or the metadata event of that
 * name in the array form), for that object itself, for thread_name and process_name events with a
 * uuid, and for the arguments of every event. The rules are documented in core/chrome/keys.h.
 * Numbers of tracks and flows are believed as they are; in another space than 0 they are mixed with
 * it, so that two files do not meet. */
#include "core/chrome/keys.h"
#include "formats/chrome/reader.h"

static bool key_is(struct chrome_span key, const char *text)
{
    return key.len == strlen(text) && memcmp(key.p, text, key.len) == 0;
}

static bool span_int(struct chrome_span v, int64_t *out)
{
    struct sv_json_number n;
    return v.len && sv_json_number(v.p, v.p + v.len, &n) == v.p + v.len &&
           sv_json_number_int(&n, 0, out) == SV_JSON_EXACT;
}

/* ---- the object ---- */

/* [[clock, ns], …] */
static void take_readings(struct chrome_reader *r, struct chrome_span array, struct sv_snapshot *s)
{
    struct chrome_span pair, clock, ns;
    if (*array.p != '[')
        return;
    for (const uint8_t *p = array.p + 1; chrome_next_element(r, &p, array.p + array.len, &pair);) {
        const uint8_t *q = pair.p + 1, *end = pair.p + pair.len;
        int64_t number;
        if (*pair.p != '[' || s->n == SV_READINGS_MAX || !chrome_next_element(r, &q, end, &clock) ||
            !chrome_next_element(r, &q, end, &ns) || !span_int(clock, &number) || number < 0 ||
            number > UINT32_MAX || !span_int(ns, &s->readings[s->n].ns))
            continue;
        s->readings[s->n++].clock = (uint32_t)number;
    }
}

/* [state, error] */
static void take_wall(struct chrome_reader *r, struct chrome_span array, struct sv_snapshot *s)
{
    struct chrome_span state, error;
    const uint8_t *p = array.p + 1, *end = array.p + array.len;
    int64_t number, ns;
    if (*array.p == '[' && chrome_next_element(r, &p, end, &state) &&
        chrome_next_element(r, &p, end, &error) && span_int(state, &number) && number > 0 &&
        span_int(error, &ns))
        sv_snapshot_set_wall(s, (uint64_t)number, ns);
}

static void take_snapshots(struct chrome_reader *r, struct chrome_span array)
{
    struct chrome_span object, v;
    if (*array.p != '[')
        return;
    for (const uint8_t *p = array.p + 1;
         chrome_next_element(r, &p, array.p + array.len, &object);) {
        struct sv_snapshot s = {.uncertainty_ns = -1};
        if (chrome_find_member(r, object, SV_CHROME_READINGS, &v))
            take_readings(r, v, &s);
        if (chrome_find_member(r, object, SV_CHROME_UNCERTAINTY, &v) &&
            !span_int(v, &s.uncertainty_ns))
            s.uncertainty_ns = -1;
        if (chrome_find_member(r, object, SV_CHROME_WALL, &v))
            take_wall(r, v, &s);
        if (s.n)
            sv_clocks_add(&r->dict->clocks, &s);
    }
}

static void take_meta(struct chrome_reader *r, struct chrome_span object)
{
    struct chrome_span key, value;
    char name[256];
    if (*object.p != '{')
        return;
    for (const uint8_t *p = object.p + 1;
         chrome_next_member(r, &p, object.p + object.len, &key, &value);) {
        if (key.len >= sizeof name || value.len == 0 || key_is(key, SV_CHROME_STAVE) ||
            r->n_keys++ > 1000)
            continue;
        memcpy(name, key.p, key.len);
        name[key.len] = 0;
        chrome_meta(r, name, value.p, value.len);
    }
}

void chrome_stave(struct chrome_reader *r, struct chrome_span object)
{
    struct chrome_span key, value;
    int64_t clock = -1;
    r->is_stave = true;
    r->keys_of_stave.flow = sv_dict_cstr(r->dict, SV_CHROME_FLOW);
    r->keys_of_stave.source = sv_dict_cstr(r->dict, SV_CHROME_SOURCE);
    r->keys_of_stave.correlation = sv_dict_cstr(r->dict, SV_CHROME_CORRELATION);
    if (object.len == 0 || *object.p != '{')
        return;
    for (const uint8_t *p = object.p + 1;
         chrome_next_member(r, &p, object.p + object.len, &key, &value);) {
        if (value.len == 0)
            continue;
        if (key_is(key, SV_CHROME_CLOCK))
            span_int(value, &clock);
        else if (key_is(key, SV_CHROME_SNAPSHOTS))
            take_snapshots(r, value);
        else if (key_is(key, SV_CHROME_LATE_META))
            take_meta(r, value);
        else if (key_is(key, SV_CHROME_BASE))
            chrome_take_base(r, value);
    }
    if (clock >= 0 && clock < 128)
        r->dict->clocks.trace_clock = (uint32_t)clock;
}

/* otherData of such a file: the object, and metadata that has no key of its own in Chrome's
 * files. */
bool chrome_stave_other_data(struct chrome_reader *r, struct chrome_span object)
{
    struct chrome_span own;
    if (!chrome_find_member(r, object, SV_CHROME_STAVE, &own))
        return false;
    chrome_stave(r, own);
    take_meta(r, object);
    return true;
}

/* ---- tracks ---- */

static uint64_t in_space(const struct chrome_reader *r, uint64_t number)
{
    return number && r->space ? sv_hash_pair(number, r->space) : number;
}

/* The track with the uuid that the file gives it. In another space a process or thread has another
 * uuid of its own. */
static sv_track track_of(struct chrome_reader *r, uint64_t uuid)
{
    uint64_t *plain = r->space ? sv_map_find(&r->plain_tracks, uuid) : NULL;
    return plain ? (sv_track)*plain : uuid ? sv_dict_track(r->dict, in_space(r, uuid), NULL) : 0;
}

/* Remembers a process or thread that is not described by the uuid that others may name as their
 * parent. */
void chrome_stave_plain(struct chrome_reader *r, uint64_t uuid, sv_track t)
{
    if (r->space)
        *sv_map_add(&r->plain_tracks, uuid, NULL) = t;
}

static bool arg_uuid(struct chrome_reader *r, const struct chrome_fields *f, const char *key,
                     uint64_t *out)
{
    const struct sv_arg *a = chrome_find_arg(r, f, key);
    return a && a->type == SV_ARG_TEXT && chrome_hex_number((const uint8_t *)a->text, a->size, out);
}

static unsigned arg_kind(struct chrome_reader *r, const struct chrome_fields *f, unsigned otherwise)
{
    const struct sv_arg *a = chrome_find_arg(r, f, SV_CHROME_TRACK_KIND);
    for (unsigned k = SV_TRACK_CUSTOM; a && a->type == SV_ARG_TEXT && k <= SV_TRACK_ASYNC; k++) {
        const char *name = sv_track_kind_name(k);
        if (strlen(name) == a->size && memcmp(name, a->text, a->size) == 0)
            return k;
    }
    return otherwise;
}

static void take_numbers(struct chrome_reader *r, const struct chrome_fields *f,
                         struct sv_track_info *info)
{
    int64_t v;
    info->pid = info->kind == SV_TRACK_PROCESS || info->kind == SV_TRACK_THREAD ? f->pid : -1;
    info->tid = info->kind == SV_TRACK_THREAD ? f->tid : -1;
    if (chrome_arg_int(chrome_find_arg(r, f, SV_CHROME_TRACK_PID), &v))
        info->pid = v;
    if (chrome_arg_int(chrome_find_arg(r, f, SV_CHROME_TRACK_TID), &v))
        info->tid = v;
    if (chrome_arg_int(chrome_find_arg(r, f, SV_CHROME_TRACK_SPACE), &v) && r->space == 0)
        info->space = (uint32_t)v;
    if (chrome_arg_int(chrome_find_arg(r, f, SV_CHROME_TRACK_CHILD_ORDER), &v))
        info->child_order = (uint8_t)v;
    if (chrome_arg_int(chrome_find_arg(r, f, SV_CHROME_TRACK_MERGE), &v))
        info->sibling_merge = (uint8_t)v;
    if (chrome_arg_int(chrome_find_arg(r, f, SV_CHROME_TRACK_MULTIPLIER), &v))
        info->multiplier = v;
    if (chrome_arg_int(chrome_find_arg(r, f, SV_CHROME_TRACK_START), &v))
        info->start_ns = v;
    const struct sv_arg *a = chrome_find_arg(r, f, SV_CHROME_TRACK_INCREMENTAL);
    info->is_incremental = a && a->type == SV_ARG_BOOL && a->i;
}

static void take_texts(struct chrome_reader *r, const struct chrome_fields *f, sv_track t)
{
    static const struct {
        const char *key;
        size_t member;
    } rows[] = {
        {SV_CHROME_TRACK_UNIT, offsetof(struct sv_track_info, unit)},
        {SV_CHROME_TRACK_DESC, offsetof(struct sv_track_info, desc)},
        {SV_CHROME_TRACK_CATEGORY, offsetof(struct sv_track_info, cat)},
        {SV_CHROME_TRACK_MERGE_KEY, offsetof(struct sv_track_info, merge_key)},
        {SV_CHROME_TRACK_ORIGIN, offsetof(struct sv_track_info, origin)},
    };
    if (!chrome_set_text(r, f, SV_CHROME_TRACK_NAME, t, offsetof(struct sv_track_info, name)))
        chrome_set_text(r, f, "name", t, offsetof(struct sv_track_info, name));
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        chrome_set_text(r, f, rows[i].key, t, rows[i].member);
    chrome_set_order(r, f, SV_CHROME_TRACK_ORDER, t);
}

/* From here on this pid, or pid and tid, mean the track with that uuid. */
bool chrome_stave_track(struct chrome_reader *r, struct chrome_fields *f, bool is_thread)
{
    uint64_t uuid, parent_uuid = 0;
    uint32_t needs = FIELD_BIT(FIELD_PID);
    if (is_thread)
        needs |= FIELD_BIT(FIELD_TID);
    if (!arg_uuid(r, f, SV_CHROME_TRACK_UUID, &uuid) || (f->has & needs) != needs)
        return false;
    sv_track parent = 0, t = track_of(r, uuid);
    if (t == 0 && !is_thread) { /* a pid for a track outside all processes */
        *sv_map_add(&r->pid_tracks, (uint64_t)f->pid, NULL) = 0;
        return true;
    }
    if (arg_uuid(r, f, SV_CHROME_TRACK_PARENT, &parent_uuid))
        parent = track_of(r, parent_uuid);
    else if (is_thread)
        parent = chrome_process(r, f);
    if (t == 0)
        return false;
    struct sv_track_info *info = &r->dict->tracks[t];
    info->kind = (uint8_t)arg_kind(r, f, is_thread ? SV_TRACK_THREAD : SV_TRACK_PROCESS);
    info->parent = parent == t ? 0 : parent;
    info->space = r->space;
    info->is_described = true;
    take_numbers(r, f, info);
    take_texts(r, f, t);
    sv_dict_touch(r->dict, t);
    if (is_thread) {
        *sv_map_add(&r->tracks, chrome_thread_key(f->pid, f->tid), NULL) = t;
        chrome_thread_slot(r, f->pid, f->tid)->track = 0;
    } else {
        *sv_map_add(&r->pid_tracks, (uint64_t)f->pid, NULL) = t;
    }
    return true;
}

/* ---- arguments ---- */

/* "0x1", "begin 0x1", "end 0x1" */
static bool flow_from_text(struct chrome_reader *r, struct sv_arg *a)
{
    const uint8_t *p = (const uint8_t *)a->text;
    size_t len = a->size;
    unsigned type = SV_ARG_FLOW;
    uint64_t id;
    if (len > 6 && memcmp(p, "begin ", 6) == 0) {
        type = SV_ARG_FLOW_BEGIN;
        p += 6;
        len -= 6;
    } else if (len > 4 && memcmp(p, "end ", 4) == 0) {
        type = SV_ARG_FLOW_END;
        p += 4;
        len -= 4;
    }
    if (!chrome_hex_number(p, len, &id))
        return false;
    *a = (struct sv_arg){.type = type & 0xff, .u = in_space(r, id)};
    return true;
}

/* An array whose elements all become arguments of their own; its head is buried. */
static bool unpack_array(struct chrome_reader *r, uint32_t at,
                         bool (*convert)(struct chrome_reader *, struct sv_arg *))
{
    struct sv_arg *head = &r->batch->args[at];
    uint32_t n = head->size;
    for (uint32_t i = 1; i <= n; i++)
        if (head[i].type != SV_ARG_TEXT && head[i].type != SV_ARG_INT &&
            head[i].type != SV_ARG_UINT)
            return false;
    for (uint32_t i = 1; i <= n; i++)
        if (!convert(r, &head[i]))
            chrome_note(r, FOUND_NO_FLOW_ID, r->in->data);
    head->type = 0;
    head->size = 0;
    r->has_tombs = true;
    return true;
}

static bool correlation(struct chrome_reader *r, struct sv_arg *a)
{
    (void)r;
    if (a->type != SV_ARG_INT && a->type != SV_ARG_UINT)
        return false;
    *a = (struct sv_arg){.type = SV_ARG_CORRELATION, .u = a->u};
    return true;
}

static bool flow(struct chrome_reader *r, struct sv_arg *a)
{
    return a->type == SV_ARG_TEXT && flow_from_text(r, a);
}

/* Arguments with a meaning of their own get it back. */
void chrome_stave_args(struct chrome_reader *r, struct chrome_fields *f)
{
    struct sv_batch *b = r->batch;
    for (uint32_t i = f->args_at, end = f->args_at + f->n_args; i < end;) {
        struct sv_arg *a = &b->args[i];
        uint32_t slots = a->type ? (uint32_t)(sv_arg_next(a) - a) : (uint32_t)a->size + 1;
        if (a->key == r->keys_of_stave.flow && a->type == SV_ARG_ARRAY) {
            unpack_array(r, i, flow);
        } else if (a->key == r->keys_of_stave.correlation && a->type == SV_ARG_ARRAY) {
            unpack_array(r, i, correlation);
        } else if (a->key == r->keys_of_stave.correlation) {
            correlation(r, a);
        } else if (a->key == r->keys_of_stave.source && a->type == SV_ARG_DICT) {
            a->key = 0;
            a->type = SV_ARG_SOURCE;
        }
        i += slots;
    }
}

/* Is the instant a loss? Then *cat is its own category. */
bool chrome_stave_is_loss(const struct chrome_reader *r, const struct chrome_fields *f, sv_str *cat)
{
    struct sv_text t = sv_dict_text(r->dict, f->cat);
    size_t n = strlen(SV_CHROME_LOSS);
    if (t.len < n || memcmp(t.bytes, SV_CHROME_LOSS, n) != 0 || (t.len > n && t.bytes[n] != ','))
        return false;
    *cat = t.len > n + 1 ? sv_dict_str(r->dict, t.bytes + n + 1, t.len - n - 1) : 0;
    return true;
}
