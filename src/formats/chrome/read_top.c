/* The Chrome reader's surroundings: values of the object form outside of traceEvents, and stack
 * frames.
 *
 * Called by the document file with each top-level key and its whole value. Keys that mean something
 * to the model are taken apart; every key but stack frames that events use is also kept as metadata
 * "chrome.KEY", so that a writer can give it back. The members walk here is for small objects: it
 * reads raw JSON and stops, without a finding, at the first thing that it does not understand. */
#include "core/chrome/keys.h"
#include "core/stream/machine.h"
#include "formats/chrome/reader.h"
#include "store/once_paths.h"

#include <stdio.h>

#define META_KEYS_MAX 1000u
#define STACK_MAX     512u /* frames of one stack */

/* ---- walking over small values ---- */

/* The next `"key": value` of the object whose members start at *p. */
bool chrome_next_member(struct chrome_reader *r, const uint8_t **p, const uint8_t *end,
                        struct chrome_span *key, struct chrome_span *value)
{
    const uint8_t *q = sv_json_solid(*p, end);
    if (q < end && *q == ',')
        q = sv_json_solid(q + 1, end);
    if (q >= end || *q != '"' || !(q = chrome_string(r, q, end, key)) ||
        !(q = chrome_colon(r, q, end)))
        return false;
    value->p = q;
    if (!(q = chrome_skip(r, q, end)))
        return false;
    value->len = (size_t)(q - value->p);
    *p = q;
    return true;
}

/* The next element of the array whose elements start at *p. */
bool chrome_next_element(struct chrome_reader *r, const uint8_t **p, const uint8_t *end,
                         struct chrome_span *value)
{
    const uint8_t *q = sv_json_solid(*p, end);
    if (q < end && *q == ',')
        q = sv_json_solid(q + 1, end);
    if (q >= end || *q == ']')
        return false;
    value->p = q;
    if (!(q = chrome_skip(r, q, end)) || q == value->p)
        return false;
    value->len = (size_t)(q - value->p);
    *p = q;
    return true;
}

static bool key_is(struct chrome_span key, const char *text)
{
    return key.len == strlen(text) && memcmp(key.p, text, key.len) == 0;
}

bool chrome_find_member(struct chrome_reader *r, struct chrome_span object, const char *name,
                        struct chrome_span *value)
{
    struct chrome_span key, v;
    bool found = false;
    if (object.len == 0 || *object.p != '{')
        return false;
    for (const uint8_t *p = object.p + 1;
         chrome_next_member(r, &p, object.p + object.len, &key, &v);) {
        if (key_is(key, name)) {
            *value = v;
            found = true;
        }
    }
    return found;
}

/* ---- metadata ---- */

/* Keeps a JSON value: a string as plain text, anything else as JSON if it is valid. */
void chrome_meta(struct chrome_reader *r, const char *key, const uint8_t *p, size_t len)
{
    struct chrome_span text = {p, len};
    bool is_valid = sv_json_valid(p, len), is_text = *p == '"';
    if (!is_valid)
        chrome_note(r, FOUND_BAD_TOP, p);
    if (is_text && !chrome_string(r, p, p + len, &text))
        return;
    if (!sv_once_paths_asked(&r->once_paths, r->dict, key, (const char *)text.p, text.len))
        sv_dict_set_meta(r->dict, key, (const char *)text.p, text.len, is_valid && !is_text);
}

static void keep_key(struct chrome_reader *r, struct chrome_span key, const uint8_t *p, size_t len)
{
    char name[256];
    if (len > CHROME_META_MAX || r->n_keys >= META_KEYS_MAX) {
        chrome_note(r, FOUND_TOP_BIG, p);
        return;
    }
    r->n_keys++;
    snprintf(name, sizeof name, SV_CHROME_META "%.*s", (int)(key.len < 200 ? key.len : 200),
             (const char *)key.p);
    chrome_meta(r, name, p, len);
}

static void keep_text(struct chrome_reader *r, const char *name, struct chrome_span value)
{
    struct chrome_span text;
    if (chrome_span_text(r, value, &text))
        sv_dict_set_meta(r->dict, name, (const char *)text.p, text.len, false);
}

static void keep_member(struct chrome_reader *r, struct chrome_span object, const char *name)
{
    struct chrome_span value;
    if (chrome_find_member(r, object, name, &value))
        keep_text(r, name, value);
}

/* Kineto: times count from here, on the wall clock. Before the events they are made absolute; after
 * them it is too late, and a snapshot says how the clocks relate. */
bool chrome_take_base(struct chrome_reader *r, struct chrome_span raw)
{
    struct chrome_span text;
    struct sv_json_number n;
    int64_t base;
    if (!chrome_span_text(r, raw, &text) ||
        sv_json_number(text.p, text.p + text.len, &n) != text.p + text.len ||
        sv_json_number_int(&n, 0, &base) != SV_JSON_EXACT)
        return false;
    if (r->n_events == 0) {
        r->base_ns = base;
        r->dict->clocks.trace_clock = SV_CLOCK_REALTIME;
        return true;
    }
    if (r->dict->clocks.trace_clock == SV_CLOCK_REALTIME) /* as the times show */
        return true;
    struct sv_snapshot s = {.n = 2, .uncertainty_ns = -1};
    s.readings[0] = (struct sv_reading){SV_CLOCK_UNKNOWN, 0};
    s.readings[1] = (struct sv_reading){SV_CLOCK_REALTIME, base};
    sv_clocks_add(&r->dict->clocks, &s);
    chrome_note(r, FOUND_LATE_BASE, raw.p);
    return true;
}

/* ---- stack frames ---- */

static sv_str member_text(struct chrome_reader *r, struct chrome_span value)
{
    struct chrome_span text;
    return chrome_span_text(r, value, &text) ? chrome_intern(r, text.p, text.len) : 0;
}

static void take_frame(struct chrome_reader *r, uint64_t id, struct chrome_span object)
{
    struct chrome_frame frame = {0};
    struct chrome_span key, value;
    if (*object.p != '{')
        return;
    for (const uint8_t *p = object.p + 1;
         chrome_next_member(r, &p, object.p + object.len, &key, &value);) {
        if (key_is(key, "name"))
            frame.name = member_text(r, value);
        else if (key_is(key, "parent"))
            frame.has_parent = chrome_id_number(r, value, &frame.parent);
    }
    r->frame_list = sv_grow(r->frame_list, &r->cap_frames, r->n_frames + 1, sizeof frame);
    r->frame_list[r->n_frames] = frame;
    *sv_map_add(&r->frames, id, NULL) = r->n_frames++;
}

static void take_frames(struct chrome_reader *r, const uint8_t *p, size_t len)
{
    struct chrome_span key, value;
    const uint8_t *end = p + len;
    if (*p != '{')
        return;
    for (p++; chrome_next_member(r, &p, end, &key, &value);) {
        uint64_t id;
        struct chrome_span quoted = {key.p - 1, key.len + 2};
        if (*quoted.p == '"' && chrome_id_number(r, quoted, &id))
            take_frame(r, id, value);
    }
}

static void put_frame(struct chrome_reader *r, struct chrome_span text)
{
    sv_batch_str(r->batch, 0, (const char *)text.p,
                 text.len < SV_TEXT_MAX ? text.len : SV_TEXT_MAX);
}

/* "sf": the frame and its parents, outermost first. */
static bool put_frames(struct chrome_reader *r, uint64_t id, sv_str key, unsigned type)
{
    sv_str names[STACK_MAX];
    size_t n = 0;
    for (bool more = true; more && n < STACK_MAX;) { /* the limit also ends a cycle of parents */
        uint64_t *at = sv_map_find(&r->frames, id);
        if (!at)
            break;
        const struct chrome_frame *frame = &r->frame_list[*at];
        names[n++] = frame->name;
        more = frame->has_parent;
        id = frame->parent;
    }
    if (n == 0)
        return false;
    size_t opened = sv_batch_open(r->batch, key, type);
    while (n--) {
        struct sv_text t = sv_dict_text(r->dict, names[n]);
        put_frame(r, (struct chrome_span){(const uint8_t *)t.bytes, t.len});
    }
    sv_batch_close(r->batch, opened);
    return true;
}

/* "stack": the frames themselves. */
static void put_array(struct chrome_reader *r, struct chrome_span raw, sv_str key, unsigned type)
{
    const uint8_t *p = raw.p + 1, *end = raw.p + raw.len;
    size_t opened = sv_batch_open(r->batch, key, type);
    for (struct chrome_span value, text; chrome_next_element(r, &p, end, &value);)
        put_frame(r, chrome_span_text(r, value, &text) ? text : value);
    sv_batch_close(r->batch, opened);
}

/* A stack given by reference or as an array; false when it cannot be resolved. */
bool chrome_put_stack(struct chrome_reader *r, struct chrome_span raw, sv_str key, unsigned type)
{
    uint64_t id;
    if (*raw.p == '[') {
        put_array(r, raw, key, type);
        return true;
    }
    if (chrome_id_number(r, raw, &id) && put_frames(r, id, key, type))
        return true;
    chrome_note(r, FOUND_NO_FRAME, raw.p);
    return false;
}

/* ---- keys ---- */

void chrome_top_value(struct chrome_reader *r, struct chrome_span key, const uint8_t *p, size_t len)
{
    struct chrome_span object = {p, len};
    if (len == 0) {
        chrome_note(r, FOUND_NO_VALUE, p);
        return;
    }
    if (key_is(key, SV_CHROME_BASE))
        chrome_take_base(r, object);
    if (key_is(key, "stackFrames") && r->n_events == 0) {
        take_frames(r, p, len);
        return;
    }
    if (key_is(key, "schemaVersion") || key_is(key, "deviceProperties"))
        r->may_be_epoch = r->n_events == 0 && !r->is_stave;
    if (key_is(key, "host_name") && *p == '"' && !sv_dict_find_meta(r->dict, SV_META_HOST))
        keep_text(r, SV_META_HOST, object);
    if (key_is(key, "distributedInfo")) {
        keep_member(r, object, "rank");
        keep_member(r, object, "world_size");
    }
    if (key_is(key, "otherData") && chrome_stave_other_data(r, object))
        return;
    if (r->is_stave && key_is(key, SV_CHROME_STAVE)) {
        chrome_stave(r, object);
        return;
    }
    keep_key(r, key, p, len);
}

/* Is `"key":` at p, with a key that files have after their events? */
bool chrome_is_tail_key(const uint8_t *p, const uint8_t *end)
{
    static const char *const keys[] = {"displayTimeUnit",
                                       "otherData",
                                       "metadata",
                                       "traceName",
                                       "baseTimeNanoseconds",
                                       "stackFrames",
                                       "samples",
                                       "systemTraceEvents",
                                       "distributedInfo",
                                       "deviceProperties",
                                       "schemaVersion",
                                       "powerTraceAsString",
                                       "controllerTraceDataKey",
                                       "INFO",
                                       "WARNING",
                                       "ERROR",
                                       "traceEvents",
                                       "trace_id",
                                       "host_name",
                                       "traceAnnotations"};
    if (p >= end || *p != '"')
        return false;
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        size_t len = strlen(keys[i]);
        if ((size_t)(end - p) > len + 2 && memcmp(p + 1, keys[i], len) == 0 && p[len + 1] == '"')
            return true;
    }
    return false;
}
