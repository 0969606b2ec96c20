/* The Chrome reader's identities: pids, tids, ids and names become tracks; metadata events describe
 * them.
 *
 * Called by the phase file for every event whose thread is not in the cache, and for all metadata
 * events. A pid or tid that is a text gets a number made from its hash (negative, 31 bits, so that
 * every format can hold it and no real pid is met) and the text as its name until a metadata event
 * gives a better one. Ids are numbers when they look like numbers ("0x1f", 31 and "31" are one id),
 * else hashes of their text. All hashes are stable across runs and contain the input's space. */
#include "core/chrome/keys.h"
#include "formats/chrome/reader.h"

#include <stdio.h>

#define METADATA_MAX 1000u /* unknown metadata events that are kept */

static inline bool has(const struct chrome_fields *f, unsigned field)
{
    return f->has >> field & 1;
}

uint64_t chrome_hash_str(const struct chrome_reader *r, sv_str s)
{
    struct sv_text t = sv_dict_text(r->dict, s);
    return sv_hash_bytes(t.bytes, t.len, 0);
}

/* ---- ids ---- */

bool chrome_span_text(struct chrome_reader *r, struct chrome_span raw, struct chrome_span *out)
{
    if (raw.len == 0 || *raw.p == '{' || *raw.p == '[' || *raw.p == 'n')
        return false;
    *out = raw;
    return *raw.p != '"' || chrome_string(r, raw.p, raw.p + raw.len, out);
}

bool chrome_hex_number(const uint8_t *p, size_t len, uint64_t *out)
{
    if (len < 3 || len > 18 || p[0] != '0' || (p[1] | 0x20) != 'x')
        return false;
    *out = 0;
    for (size_t i = 2; i < len; i++) {
        uint8_t c = p[i] | 0x20;
        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f')))
            return false;
        *out = *out << 4 | (c <= '9' ? (uint64_t)(c - '0') : (uint64_t)(c - 'a' + 10));
    }
    return true;
}

/* An id as a number: a string or a number; false for anything else. */
bool chrome_id_number(struct chrome_reader *r, struct chrome_span raw, uint64_t *out)
{
    struct chrome_span text;
    struct sv_json_number n;
    if (!chrome_span_text(r, raw, &text))
        return false;
    if (chrome_hex_number(text.p, text.len, out))
        return true;
    const uint8_t *end = text.p + text.len;
    if (text.len && sv_json_number(text.p, end, &n) == end && n.is_integer && n.exp10 == 0 &&
        !n.is_odd && !n.cut) {
        *out = n.is_negative ? 0 - n.digits : n.digits;
        return true;
    }
    *out = sv_hash_bytes(text.p, text.len, 0x1d);
    return true;
}

/* id, or id2.global, or id2.local (which belongs to its process); `scope` keeps equal ids apart. */
static struct chrome_id read_id(struct chrome_reader *r, const struct chrome_fields *f)
{
    struct chrome_id id = {0};
    if (has(f, FIELD_ID)) {
        id.is_given = chrome_id_number(r, f->raw[0], &id.number);
    } else if (has(f, FIELD_ID2)) {
        struct chrome_span v;
        const struct chrome_span *id2 = &f->raw[FIELD_ID2 - FIELD_ID];
        if (chrome_find_member(r, *id2, "global", &v)) {
            id.is_given = chrome_id_number(r, v, &id.number);
        } else if (chrome_find_member(r, *id2, "local", &v)) {
            id.is_given = chrome_id_number(r, v, &id.number);
            id.is_local = true;
        }
    }
    struct chrome_span scope;
    if (has(f, FIELD_SCOPE) && chrome_span_text(r, f->raw[FIELD_SCOPE - FIELD_ID], &scope) &&
        scope.len)
        id.number = sv_hash_pair(id.number, sv_hash_bytes(scope.p, scope.len, 0x5c));
    return id;
}

struct chrome_id chrome_event_id(struct chrome_reader *r, const struct chrome_fields *f)
{
    return f->has_bond ? f->id : read_id(r, f);
}

void chrome_look_up(struct chrome_reader *r, struct chrome_fields *f)
{
    const struct chrome_span *bp = &f->raw[FIELD_BP - FIELD_ID];
    f->id = read_id(r, f);
    f->is_enclosing = f->ph != 'f' || (has(f, FIELD_BP) && bp->len == 3 && bp->p[1] == 'e');
    f->has_bond = true;
}

/* ---- processes and threads ---- */

int64_t chrome_text_number(struct chrome_reader *r, const uint8_t *p, size_t len)
{
    if (r->is_ahead) {
        r->needs_turn = true;
        return 0;
    }
    sv_str text = chrome_intern(r, p, len);
    for (uint64_t seed = 0;; seed++) {
        int64_t number = -1 - (int64_t)(sv_hash_bytes(p, len, seed) % 0x7ffffffe) - 1;
        bool is_new;
        uint64_t *known = sv_map_add(&r->text_numbers, (uint64_t)number, &is_new);
        if (is_new)
            *known = text;
        if (*known == text)
            return number;
    }
}

/* A process or thread whose number represents a text is named by that text. */
static void name_by_text(struct chrome_reader *r, sv_track t, int64_t number)
{
    uint64_t *text = number < 0 ? sv_map_find(&r->text_numbers, (uint64_t)number) : NULL;
    if (!text || *text == 0 || r->dict->tracks[t].name)
        return;
    r->dict->tracks[t].name = (sv_str)*text;
    sv_dict_touch(r->dict, t);
}

static int64_t pid_of(struct chrome_reader *r, const struct chrome_fields *f)
{
    if (has(f, FIELD_PID))
        return f->pid;
    chrome_note(r, FOUND_NO_PID, f->start);
    return 0;
}

sv_track chrome_process(struct chrome_reader *r, struct chrome_fields *f)
{
    int64_t pid = pid_of(r, f);
    uint64_t *named = r->pid_tracks.n ? sv_map_find(&r->pid_tracks, (uint64_t)pid) : NULL;
    if (named)
        return (sv_track)*named;
    sv_track t = sv_dict_process(r->dict, r->space, pid);
    if (r->is_stave)
        chrome_stave_plain(r, sv_uuid_process(0, pid), t);
    if (pid < 0)
        name_by_text(r, t, pid);
    return t;
}

uint64_t chrome_thread_key(int64_t pid, int64_t tid)
{
    return sv_hash_pair((uint64_t)pid, (uint64_t)tid);
}

sv_track chrome_named_track(struct chrome_reader *r, const struct chrome_fields *f)
{
    if (r->tracks.n == 0 || !has(f, FIELD_PID) || !has(f, FIELD_TID))
        return 0;
    uint64_t *t = sv_map_find(&r->tracks, chrome_thread_key(f->pid, f->tid));
    return t ? (sv_track)*t : 0;
}

/* The thread of an event, which enters the cache when both numbers are given. */
sv_track chrome_thread_slow(struct chrome_reader *r, struct chrome_fields *f)
{
    sv_track t = chrome_named_track(r, f);
    int64_t pid = pid_of(r, f), tid = f->tid;
    if (!has(f, FIELD_TID)) {
        chrome_note(r, FOUND_NO_TID, f->start);
        tid = pid;
    }
    if (!t) {
        t = sv_dict_thread(r->dict, r->space, pid, tid);
        if (r->is_stave) {
            chrome_stave_plain(r, sv_uuid_process(0, pid), r->dict->tracks[t].parent);
            chrome_stave_plain(r, sv_uuid_thread(0, pid, tid), t);
        }
        if (pid < 0)
            name_by_text(r, r->dict->tracks[t].parent, pid);
        if (tid < 0)
            name_by_text(r, t, tid);
    }
    if (has(f, FIELD_PID) && has(f, FIELD_TID))
        *chrome_thread_slot(r, pid, tid) = (struct chrome_thread){pid, tid, t};
    return t;
}

/* ---- other tracks ---- */

sv_track chrome_global(struct chrome_reader *r)
{
    if (!r->global_track) {
        bool is_new;
        uint64_t uuid = sv_hash_pair(0x91084c7ull, r->space);
        r->global_track = sv_dict_track(r->dict, uuid, &is_new);
        if (is_new) {
            sv_str name = sv_dict_cstr(r->dict, "Global");
            struct sv_track_info *info = &r->dict->tracks[r->global_track];
            info->name = name;
            info->is_described = true;
            info->space = r->space;
        }
    }
    return r->global_track;
}

/* The track of an operation with an id. Its identity is category, id and, where asked, name and
 * process; it is a child of the process that named it first. */
sv_track chrome_async(struct chrome_reader *r, struct chrome_fields *f, struct chrome_id id,
                      bool with_name, bool with_pid)
{
    sv_track process = chrome_process(r, f);
    bool is_new;
    uint64_t h = sv_hash_pair(with_name ? 0xa54ull : 0xa55ull,
                              with_pid ? r->dict->tracks[process].uuid : r->space);
    h = sv_hash_pair(h, chrome_hash_str(r, f->cat));
    if (with_name)
        h = sv_hash_pair(h, chrome_hash_str(r, f->name));
    h = sv_hash_pair(h, id.number);
    if (r->is_stave && !with_name) /* the id is the track's own */
        h = r->space ? sv_hash_pair(id.number, r->space) : id.number;
    sv_track t = sv_dict_track(r->dict, h, &is_new);
    if (is_new) {
        struct sv_track_info *info = &r->dict->tracks[t];
        info->kind = SV_TRACK_ASYNC;
        info->parent = process;
        info->name = f->name;
        info->is_described = true;
        info->space = r->space;
    }
    return t;
}

/* ---- metadata events ---- */

const struct sv_arg *chrome_find_arg(struct chrome_reader *r, const struct chrome_fields *f,
                                     const char *key)
{
    if (f->n_args == 0)
        return NULL;
    const struct sv_arg *a = r->batch->args + f->args_at, *end = a + f->n_args, *found = NULL;
    size_t len = strlen(key);
    while (a < end) {
        struct sv_text t = sv_dict_text(r->dict, a->key);
        if (a->type && t.len == len && memcmp(t.bytes, key, len) == 0)
            found = a;
        a = a->type ? sv_arg_next(a) : a + 1 + a->size;
    }
    return found;
}

/* A text argument, or a number as the text that the file has. */
static bool arg_text(struct chrome_reader *r, const struct sv_arg *a, sv_str *out)
{
    char number[32];
    if (!a)
        return false;
    if (a->type == SV_ARG_TEXT) {
        *out = chrome_intern(r, (const uint8_t *)a->text, a->size);
        return true;
    }
    if (a->type != SV_ARG_INT)
        return false;
    snprintf(number, sizeof number, "%lld", (long long)a->i);
    *out = sv_dict_cstr(r->dict, number);
    return true;
}

bool chrome_arg_int(const struct sv_arg *a, int64_t *out)
{
    struct sv_json_number n;
    if (!a)
        return false;
    if (a->type == SV_ARG_INT) {
        *out = a->i;
        return true;
    }
    if (a->type == SV_ARG_DOUBLE && a->d > -1e15 && a->d < 1e15) {
        *out = (int64_t)a->d;
        return true;
    }
    const uint8_t *text = (const uint8_t *)a->text;
    return a->type == SV_ARG_TEXT && a->size &&
           sv_json_number(text, text + a->size, &n) == text + a->size &&
           sv_json_number_int(&n, 0, out) != SV_JSON_OVERFLOW;
}

bool chrome_set_text(struct chrome_reader *r, const struct chrome_fields *f, const char *key,
                     sv_track t, size_t member)
{
    sv_str text;
    if (!arg_text(r, chrome_find_arg(r, f, key), &text))
        return false;
    sv_str *at = (sv_str *)(void *)((char *)&r->dict->tracks[t] + member);
    if (*at != text || !r->dict->tracks[t].is_described) {
        *at = text;
        r->dict->tracks[t].is_described = true;
        sv_dict_touch(r->dict, t);
    }
    return true;
}

bool chrome_set_order(struct chrome_reader *r, const struct chrome_fields *f, const char *key,
                      sv_track t)
{
    int64_t order;
    if (!chrome_arg_int(chrome_find_arg(r, f, key), &order))
        return false;
    r->dict->tracks[t].order = order;
    r->dict->tracks[t].has_order = true;
    sv_dict_touch(r->dict, t);
    return true;
}

/* Metadata that a track cannot represent is kept with the trace. */
static bool keep_metadata(struct chrome_reader *r, const struct chrome_fields *f)
{
    struct sv_text name = sv_dict_text(r->dict, f->name);
    char key[256];
    if (f->args.len == 0)
        return false;
    if (r->n_metadata++ >= METADATA_MAX) {
        chrome_note(r, FOUND_METADATA_MANY, f->start);
        return true;
    }
    int len = name.len < 128 ? (int)name.len : 128;
    if (has(f, FIELD_TID))
        snprintf(key, sizeof key, "metadata.%.*s.%lld.%lld", len, name.bytes, (long long)f->pid,
                 (long long)f->tid);
    else
        snprintf(key, sizeof key, "metadata.%.*s.%lld", len, name.bytes, (long long)f->pid);
    chrome_meta(r, key, f->args.p, f->args.len);
    return true;
}

void chrome_metadata(struct chrome_reader *r, struct chrome_fields *f)
{
    static const struct {
        const char *event, *key;
        bool is_thread, is_order;
        uint16_t member;
    } rows[] = {
        {"process_name", "name", false, false, offsetof(struct sv_track_info, name)},
        {"thread_name", "name", true, false, offsetof(struct sv_track_info, name)},
        {"process_labels", "labels", false, false, offsetof(struct sv_track_info, desc)},
        {"process_sort_index", "sort_index", false, true, 0},
        {"thread_sort_index", "sort_index", true, true, 0},
    };
    struct sv_text name = sv_dict_text(r->dict, f->name);
    if (f->n_others || f->has & FIELDS_RAW)
        chrome_note(r, FOUND_META_FIELD, f->start);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (name.len != strlen(rows[i].event) || memcmp(name.bytes, rows[i].event, name.len) != 0)
            continue;
        if (r->is_stave && rows[i].member == offsetof(struct sv_track_info, name) &&
            !rows[i].is_order && chrome_find_arg(r, f, SV_CHROME_TRACK_UUID)) {
            if (!chrome_stave_track(r, f, rows[i].is_thread))
                chrome_note(r, FOUND_BAD_TRACK, f->start);
            return;
        }
        sv_track t = rows[i].is_thread ? chrome_thread_slow(r, f) : chrome_process(r, f);
        if (t == 0) /* a pid that only groups */
            return;
        bool done = rows[i].is_order
                        ? (r->is_stave && chrome_set_order(r, f, SV_CHROME_TRACK_ORDER, t)) ||
                              chrome_set_order(r, f, rows[i].key, t)
                        : chrome_set_text(r, f, rows[i].key, t, rows[i].member);
        if (!done)
            chrome_note(r, FOUND_BAD_METADATA, f->start);
        else if (i == 0)
            chrome_device_row(r, t);
        return;
    }
    if (name.len == strlen(SV_CHROME_STAVE) && memcmp(name.bytes, SV_CHROME_STAVE, name.len) == 0) {
        chrome_stave(r, f->args);
        return;
    }
    if (!keep_metadata(r, f))
        chrome_note(r, FOUND_BAD_METADATA, f->start);
}
