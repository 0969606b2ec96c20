/* The log of names, read: sites and tracks into the dictionary.
 *
 * Fed by the ring source with whole records, in the order in which they were written (a parent
 * before its children). The log may be another process's: texts must end inside their record.
 * Numbers are given in order, so that none can be larger than the count of records before it:
 * memory grows with the log, whatever it says. */
#include "sdk/drain/drain_names.h"

#include "core/base/map.h"
#include "core/base/report.h"
#include "sdk/ring/session_layout.h"

#include <stave/stave.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBER_SLACK = 8 }; /* the first numbers of sites and tracks */

static bool is_number(const struct sv_drain_names *n, uint32_t id)
{
    return id < n->n_records + NUMBER_SLACK;
}

void sv_drain_names_init(struct sv_drain_names *n, struct sv_dict *dict, uint32_t pid)
{
    *n = (struct sv_drain_names){.dict = dict, .pid = pid};
    sv_arena_init(&n->arena, 4096);
    n->process = sv_dict_process(dict, 0, pid);
}

void sv_drain_names_fini(struct sv_drain_names *n)
{
    free(n->sites);
    free(n->tracks);
    sv_arena_fini(&n->arena);
}

struct texts {
    const char *p, *end;
    bool bad;
};

/* The next terminated text as a number of the dictionary. */
static struct sv_text take_text(struct texts *t)
{
    const char *nul = t->bad ? NULL : memchr(t->p, 0, (size_t)(t->end - t->p));
    if (!nul) {
        t->bad = true;
        return (struct sv_text){"", 0};
    }
    struct sv_text text = {t->p, (uint32_t)(nul - t->p)};
    t->p = nul + 1;
    return text;
}

static sv_str take_str(struct sv_drain_names *n, struct texts *t)
{
    struct sv_text text = take_text(t);
    return sv_dict_str(n->dict, text.bytes, text.len);
}

static uint8_t special_of(struct sv_text key)
{
    if (key.len != 2 || key.bytes[0] != STAVE_FLOW_OUT[0])
        return 0;
    return key.bytes[1] == STAVE_CORRELATION[1] ? SV_ARG_CORRELATION : SV_ARG_FLOW;
}

static void find_words(struct sv_drain_names *n, struct sv_drain_site *s)
{
    if (s->kind != STAVE_KIND_BEGIN && s->kind != STAVE_KIND_END)
        return;
    for (unsigned i = 0; i < s->n_args && i < UINT8_MAX; i++) {
        uint8_t *at = s->types[i] == STAVE_I_TRACK   ? &s->track_at
                      : s->types[i] == STAVE_I_SLICE ? &s->slice_at
                      : s->types[i] == STAVE_I_OWNER ? &s->owner_at
                                                     : NULL;
        if (at)
            *at = (uint8_t)(i + 1);
    }
    n->has_edges |= s->track_at != 0;
}

static bool read_site(struct sv_drain_names *n, const struct sv_name_head *h, struct texts t)
{
    if (h->id == 0 || !is_number(n, h->id) || h->event == 0)
        return false;
    size_t had = n->n_sites;
    if (h->id >= had) {
        n->sites = sv_grow(n->sites, &n->cap_sites, (size_t)h->id + 1, sizeof *n->sites);
        memset(n->sites + had, 0, (h->id + 1 - had) * sizeof *n->sites);
        n->n_sites = (size_t)h->id + 1;
    }
    struct sv_drain_site s = {.kind = h->event, .n_args = h->n_args, .line = (uint32_t)h->value};
    s.cat = take_str(n, &t);
    s.name = take_str(n, &t);
    s.file = take_str(n, &t);
    s.func = take_str(n, &t);
    s.keys = sv_arena_get(&n->arena, (h->n_args + 1u) * sizeof *s.keys, sizeof *s.keys);
    s.types = sv_arena_get(&n->arena, 2 * (size_t)(h->n_args + 1), 1);
    s.specials = s.types + h->n_args + 1;
    for (unsigned i = 0; i < h->n_args; i++) {
        struct sv_text key = take_text(&t);
        s.keys[i] = sv_dict_str(n->dict, key.bytes, key.len);
        s.specials[i] = special_of(key);
    }
    if (t.bad || (size_t)(t.end - t.p) < h->n_args)
        return false;
    memcpy(s.types, t.p, h->n_args);
    find_words(n, &s);
    n->sites[h->id] = s;
    return true;
}

static sv_track make_track(struct sv_drain_names *n, const struct sv_name_head *h, sv_str name,
                           sv_str unit)
{
    struct sv_dict *d = n->dict;
    sv_track parent = h->parent == STAVE_ROOT ? 0 : sv_drain_track(n, h->parent);
    sv_track t;
    if (h->event == SV_TRACK_ASYNC) { /* rows of one name: the number distinguishes them */
        struct sv_text text = sv_dict_text(d, name);
        uint64_t uuid =
            sv_uuid_child(parent ? d->tracks[parent].uuid : 0, h->event, text.bytes, text.len);
        /* else it is known, or a number that hits another one's: nobody's track is changed */
        bool is_new;
        t = sv_dict_track(d, sv_mix64(uuid + (uint64_t)h->value), &is_new);
        if (is_new) {
            d->tracks[t].kind = SV_TRACK_ASYNC;
            d->tracks[t].parent = parent;
            d->tracks[t].name = name;
            d->tracks[t].is_described = true;
        }
    } else if (h->event == SV_TRACK_THREAD) {
        return sv_dict_thread(d, 0, n->pid, h->value);
    } else {
        bool is_known = h->event == SV_TRACK_COUNTER || h->event == SV_TRACK_GPU ||
                        h->event == SV_TRACK_STREAM;
        t = sv_dict_child(d, parent, is_known ? h->event : SV_TRACK_CUSTOM, name);
    }
    if (unit)
        d->tracks[t].unit = unit;
    sv_dict_touch(d, t);
    return t;
}

static bool read_track(struct sv_drain_names *n, const struct sv_name_head *h, struct texts t)
{
    if (h->id <= STAVE_ROOT || !is_number(n, h->id))
        return false;
    sv_str name = take_str(n, &t), unit = take_str(n, &t);
    if (t.bad)
        return false;
    size_t had = n->n_tracks;
    if (h->id >= had) {
        n->tracks = sv_grow(n->tracks, &n->cap_tracks, (size_t)h->id + 1, sizeof *n->tracks);
        memset(n->tracks + had, 0, (h->id + 1 - had) * sizeof *n->tracks);
        n->n_tracks = (size_t)h->id + 1;
    }
    n->tracks[h->id] = make_track(n, h, name, unit);
    return true;
}

static bool read_order(struct sv_drain_names *n, const struct sv_name_head *h)
{
    if (h->id >= n->n_tracks || n->tracks[h->id] == 0)
        return false;
    sv_track t = n->tracks[h->id];
    struct sv_track_info *info = &n->dict->tracks[t];
    info->has_order = true;
    info->order = h->value;
    if (info->parent) {
        n->dict->tracks[info->parent].child_order = SV_ORDER_EXPLICIT;
        sv_dict_touch(n->dict, info->parent);
    }
    sv_dict_touch(n->dict, t);
    return true;
}

size_t sv_drain_names_read(struct sv_drain_names *n, struct sv_report *report, const uint8_t *bytes,
                           size_t len)
{
    size_t at = 0;
    struct sv_name_head h;
    while (len - at >= sizeof h) {
        memcpy(&h, bytes + at, sizeof h);
        if (h.size < sizeof h || h.size > len - at || h.size % 8 != 0)
            break;
        struct texts t = {(const char *)bytes + at + sizeof h, (const char *)bytes + at + h.size,
                          false};
        n->n_records++;
        bool ok = h.kind == SV_NAME_SITE    ? read_site(n, &h, t)
                  : h.kind == SV_NAME_TRACK ? read_track(n, &h, t)
                  : h.kind == SV_NAME_ORDER ? read_order(n, &h)
                                            : false;
        if (!ok)
            sv_report_add(report, SV_DAMAGE, "damaged name record", 1, (int64_t)at, NULL);
        at += h.size;
    }
    return at;
}

size_t sv_drain_names_bytes(const struct sv_drain_names *n)
{
    return n->n_sites * sizeof *n->sites + n->n_tracks * sizeof *n->tracks + n->arena.used_bytes;
}

sv_track sv_drain_track(const struct sv_drain_names *n, uint64_t number)
{
    return number < n->n_tracks && n->tracks[number] ? n->tracks[number] : n->process;
}

sv_track sv_drain_counter_track(struct sv_drain_names *n, struct sv_drain_site *s)
{
    if (!s->counter) {
        s->counter = sv_dict_child(n->dict, n->process, SV_TRACK_COUNTER, s->name);
        n->dict->tracks[s->counter].cat = s->cat;
    }
    return s->counter;
}

bool sv_record_is_edge(const struct sv_drain_site *s, const uint64_t *rec)
{
    return s->track_at && s->kind == sv_word_kind(rec[0]) && rec[1 + s->track_at] != STAVE_THREAD;
}

/* A begin or an end on a track that its site does not name cannot be right: no call site records
 * it. */
bool sv_record_is_whole(const struct sv_drain_site *s, const uint64_t *rec, uint64_t bytes)
{
    unsigned kind = sv_word_kind(rec[0]);
    if (!s || kind == 0 || kind > STAVE_KIND_LOSS || s->n_args != sv_word_args(rec[0]) ||
        SV_RECORD_HEAD + 8u * s->n_args > bytes)
        return false;
    uint64_t left = bytes - SV_RECORD_HEAD - 8u * s->n_args;
    bool has_track = false;
    for (unsigned i = 0; i < s->n_args; i++) {
        has_track |= s->types[i] == STAVE_I_TRACK && rec[2 + i] != STAVE_THREAD;
        uint64_t len = s->types[i] >= STAVE_I_TEXT ? rec[2 + i] & 0xffffffff : 0;
        if (len > left)
            return false;
        left -= (len + 7) & ~(uint64_t)7;
    }
    return kind > STAVE_KIND_END || !has_track || sv_record_is_edge(s, rec);
}
