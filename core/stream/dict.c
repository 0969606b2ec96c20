/* The dictionary: string interning, tracks by uuid, metadata.
 *
 * Filled by sources and stages, read by sinks. Strings live in one arena and never move; the table
 * of strings and the tracks may move when they grow, so callers keep numbers, not pointers. The
 * interning table holds (hash, number) pairs and compares bytes only on equal hashes. */
#include "core/stream/dict.h"
#include "core/base/map.h"
#include "core/stream/lanes.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct string_slot {
    uint32_t hash;
    sv_str id; /* 0: free */
};

struct sv_dict_impl {
    struct sv_arena bytes;
    struct string_slot *slots;
    size_t n_slots; /* a power of two */
    /* of the strings' hashes; 0 until too many of them meet, as in core/base/map.h */
    uint64_t seed;
    uint32_t calm; /* no new seed before there are so many strings */
    size_t cap_strings, cap_tracks, cap_meta;
    struct sv_map by_uuid;
    struct sv_map meta_places; /* key → index in meta, and 1 */
    sv_track *free_tracks;     /* forgotten ones */
    struct sv_map loose;       /* texts of sv_dict_describe(), which go with their tracks */
    sv_str *free_strings;      /* of those that have gone */
    size_t n_free_tracks, cap_free_tracks, n_free_strings, cap_free_strings;
    size_t loose_bytes;
};

static struct sv_text *strings_of(struct sv_dict *d)
{
    return (struct sv_text *)(uintptr_t)d->strings;
}

struct sv_dict *sv_dict_new(void)
{
    struct sv_dict *d = sv_alloc(sizeof *d);
    d->impl = sv_alloc(sizeof *d->impl);
    sv_arena_init(&d->impl->bytes, (size_t)1 << 16);
    d->impl->n_slots = 256;
    d->impl->slots = sv_alloc(d->impl->n_slots * sizeof *d->impl->slots);
    d->strings = sv_grow(NULL, &d->impl->cap_strings, 64, sizeof *d->strings);
    strings_of(d)[0] = (struct sv_text){.bytes = "", .len = 0};
    d->n_strings = 1;
    d->tracks = sv_grow(NULL, &d->impl->cap_tracks, 16, sizeof *d->tracks);
    d->tracks[0] = (struct sv_track_info){.pid = -1, .tid = -1};
    d->n_tracks = 1;
    return d;
}

void sv_dict_free(struct sv_dict *d)
{
    if (!d)
        return;
    sv_lanes_free(d->loose);
    for (size_t i = 0; i < d->impl->loose.cap; i++)
        if (d->impl->loose.used[i])
            free((void *)(uintptr_t)d->strings[d->impl->loose.slots[i].key].bytes);
    sv_map_fini(&d->impl->loose);
    free(d->impl->free_tracks);
    free(d->impl->free_strings);
    sv_arena_fini(&d->impl->bytes);
    sv_map_fini(&d->impl->by_uuid);
    sv_map_fini(&d->impl->meta_places);
    sv_clocks_fini(&d->clocks);
    free(d->impl->slots);
    free(d->impl);
    free(strings_of(d));
    free(d->tracks);
    free(d->meta);
    free(d);
}

size_t sv_dict_bytes(const struct sv_dict *d)
{
    const struct sv_dict_impl *i = d->impl;
    return i->bytes.used_bytes + i->loose_bytes + i->n_slots * sizeof *i->slots +
           i->cap_strings * sizeof *d->strings + i->cap_tracks * sizeof *d->tracks +
           (i->by_uuid.cap + i->meta_places.cap) * (sizeof *i->by_uuid.slots + 1) +
           i->cap_meta * sizeof *d->meta;
}

size_t sv_dict_used_bytes(const struct sv_dict *d)
{
    const struct sv_dict_impl *i = d->impl;
    return i->bytes.used_bytes + i->loose_bytes +
           d->n_strings * (sizeof *d->strings + 2 * sizeof *i->slots) +
           d->n_tracks * (sizeof *d->tracks + 2 * sizeof *i->by_uuid.slots);
}

/* The slot that holds the text, or the free one where it belongs. */
static struct string_slot *locate(const struct sv_dict *d, uint32_t hash, const char *bytes,
                                  size_t len)
{
    size_t mask = d->impl->n_slots - 1;
    for (size_t i = hash & mask;; i = (i + 1) & mask) {
        struct string_slot *slot = &d->impl->slots[i];
        if (slot->id == 0)
            return slot;
        const struct sv_text *t = &d->strings[slot->id];
        if (slot->hash == hash && t->len == len && memcmp(t->bytes, bytes, len) == 0)
            return slot;
    }
}

static uint32_t hash_of(const struct sv_dict *d, const char *bytes, size_t len)
{
    return (uint32_t)sv_hash_bytes(bytes, len, d->impl->seed);
}

/* The same strings in a table of n slots, hashed anew with another seed if that is asked for. */
static void remake_slots(struct sv_dict *d, size_t n, bool is_seeded)
{
    struct sv_dict_impl *impl = d->impl;
    struct string_slot *old = impl->slots;
    size_t n_old = impl->n_slots;
    impl->n_slots = n;
    impl->slots = sv_alloc(impl->n_slots * sizeof *impl->slots);
    if (is_seeded)
        impl->seed = sv_mix64((uintptr_t)impl->slots) | 1; /* the author of a file cannot know it */
    size_t mask = impl->n_slots - 1;
    for (size_t i = 0; i < n_old; i++) {
        if (old[i].id == 0)
            continue;
        const struct sv_text *t = &d->strings[old[i].id];
        if (is_seeded)
            old[i].hash = hash_of(d, t->bytes, t->len);
        size_t at = old[i].hash & mask;
        while (impl->slots[at].id)
            at = (at + 1) & mask;
        impl->slots[at] = old[i];
    }
    free(old);
}

/* A new string wants this slot: was the way there longer than chance makes it? */
static bool is_crowded(const struct sv_dict *d, const struct string_slot *slot, uint32_t hash)
{
    size_t at = (size_t)(slot - d->impl->slots);
    return ((at - hash) & (d->impl->n_slots - 1)) > SV_MAP_STEPS_MAX &&
           d->n_strings >= d->impl->calm;
}

sv_str sv_dict_str(struct sv_dict *d, const char *bytes, size_t len)
{
    if (len == 0)
        return 0;
    assert(len <= UINT32_MAX);
    uint32_t hash = hash_of(d, bytes, len);
    struct string_slot *slot = locate(d, hash, bytes, len);
    if (slot->id)
        return slot->id;
    if (is_crowded(d, slot, hash)) {
        d->impl->calm = d->n_strings < UINT32_MAX / 2 ? 2 * d->n_strings : UINT32_MAX;
        remake_slots(d, d->impl->n_slots, true);
        hash = hash_of(d, bytes, len);
        slot = locate(d, hash, bytes, len);
    }
    assert(d->n_strings < UINT32_MAX);
    d->strings =
        sv_grow(strings_of(d), &d->impl->cap_strings, (size_t)d->n_strings + 1, sizeof *d->strings);
    sv_str id = d->n_strings++;
    strings_of(d)[id] =
        (struct sv_text){.bytes = sv_arena_copy(&d->impl->bytes, bytes, len), .len = (uint32_t)len};
    *slot = (struct string_slot){.hash = hash, .id = id};
    if (d->n_strings > d->impl->n_slots / 8 * 5)
        remake_slots(d, 2 * d->impl->n_slots, false);
    return id;
}

sv_str sv_dict_cstr(struct sv_dict *d, const char *s)
{
    return sv_dict_str(d, s, strlen(s));
}

sv_str sv_dict_find_str(const struct sv_dict *d, const char *bytes, size_t len)
{
    return len ? locate(d, hash_of(d, bytes, len), bytes, len)->id : 0;
}

sv_track sv_dict_track(struct sv_dict *d, uint64_t uuid, bool *is_new)
{
    bool fresh;
    uint64_t *slot = sv_map_add(&d->impl->by_uuid, uuid, &fresh);
    if (is_new)
        *is_new = fresh;
    if (!fresh)
        return (sv_track)*slot;
    if (d->impl->n_free_tracks > 0) {
        sv_track t = d->impl->free_tracks[--d->impl->n_free_tracks];
        int32_t revision = d->tracks[t].revision;
        d->tracks[t] = (struct sv_track_info){
            .uuid = uuid, .kind = SV_TRACK_CUSTOM, .pid = -1, .tid = -1, .revision = revision};
        *slot = t;
        return t;
    }
    assert(d->n_tracks < UINT32_MAX);
    *slot = d->n_tracks;
    d->tracks =
        sv_grow(d->tracks, &d->impl->cap_tracks, (size_t)d->n_tracks + 1, sizeof *d->tracks);
    d->tracks[d->n_tracks] =
        (struct sv_track_info){.uuid = uuid, .kind = SV_TRACK_CUSTOM, .pid = -1, .tid = -1};
    return d->n_tracks++;
}

/* ---- what goes again ---- */

static void drop_loose(struct sv_dict *d, sv_str id)
{
    struct sv_dict_impl *impl = d->impl;
    struct sv_text *t = &strings_of(d)[id];
    if (!sv_map_remove(&impl->loose, id))
        return;
    impl->loose_bytes -= (size_t)t->len + 1;
    free((void *)(uintptr_t)t->bytes);
    *t = (struct sv_text){.bytes = ""};
    SV_APPEND(impl->free_strings, impl->n_free_strings, impl->cap_free_strings) = id;
}

void sv_dict_describe(struct sv_dict *d, sv_track t, const char *bytes, size_t len)
{
    struct sv_dict_impl *impl = d->impl;
    sv_str old = d->tracks[t].desc, id = 0;
    bool is_new;
    assert(len < UINT32_MAX);
    if (len > 0) {
        char *copy = sv_alloc(len + 1);
        memcpy(copy, bytes, len);
        if (impl->n_free_strings > 0) {
            id = impl->free_strings[--impl->n_free_strings];
        } else {
            d->strings = sv_grow(strings_of(d), &impl->cap_strings, (size_t)d->n_strings + 1,
                                 sizeof *d->strings);
            id = d->n_strings++;
            if (d->n_strings > impl->n_slots / 8 * 5)
                remake_slots(d, 2 * impl->n_slots, false);
        }
        strings_of(d)[id] = (struct sv_text){.bytes = copy, .len = (uint32_t)len};
        sv_map_add(&impl->loose, id, &is_new);
        impl->loose_bytes += len + 1;
    }
    d->tracks[t].desc = id;
    drop_loose(d, old);
}

void sv_dict_forget(struct sv_dict *d, sv_track t)
{
    struct sv_dict_impl *impl = d->impl;
    if (t == 0 || t >= d->n_tracks || !sv_map_remove(&impl->by_uuid, d->tracks[t].uuid))
        return;
    drop_loose(d, d->tracks[t].desc);
    if (d->loose)
        sv_lanes_forget(d->loose, t);
    /* Nobody's: sinks that look at all tracks pass it over. */
    d->tracks[t] = (struct sv_track_info){
        .kind = SV_TRACK_CUSTOM, .pid = -1, .tid = -1, .revision = d->tracks[t].revision + 1};
    SV_APPEND(impl->free_tracks, impl->n_free_tracks, impl->cap_free_tracks) = t;
}

sv_track sv_dict_find_track(const struct sv_dict *d, uint64_t uuid)
{
    uint64_t *slot = sv_map_find(&d->impl->by_uuid, uuid);
    return slot ? (sv_track)*slot : 0;
}

sv_track sv_dict_process(struct sv_dict *d, uint32_t space, int64_t pid)
{
    bool is_new;
    sv_track t = sv_dict_track(d, sv_uuid_process(space, pid), &is_new);
    if (is_new) {
        d->tracks[t].kind = SV_TRACK_PROCESS;
        d->tracks[t].pid = pid;
        d->tracks[t].space = space;
    }
    return t;
}

sv_track sv_dict_thread(struct sv_dict *d, uint32_t space, int64_t pid, int64_t tid)
{
    bool is_new;
    sv_track t = sv_dict_track(d, sv_uuid_thread(space, pid, tid), &is_new);
    if (is_new) {
        sv_track process = sv_dict_process(d, space, pid); /* may move the tracks */
        struct sv_track_info *info = &d->tracks[t];
        info->kind = SV_TRACK_THREAD;
        info->parent = process;
        info->pid = pid;
        info->tid = tid;
        info->space = space;
    }
    return t;
}

sv_track sv_dict_child(struct sv_dict *d, sv_track parent, unsigned kind, sv_str name)
{
    bool is_new;
    struct sv_text text = sv_dict_text(d, name);
    uint64_t uuid = sv_uuid_child(parent ? d->tracks[parent].uuid : 0, kind, text.bytes, text.len);
    sv_track t = sv_dict_track(d, uuid, &is_new);
    if (is_new) {
        struct sv_track_info *info = &d->tracks[t];
        info->kind = (uint8_t)kind;
        info->parent = parent;
        info->name = name;
        info->is_described = true;
        info->space = parent ? d->tracks[parent].space : 0;
    }
    return t;
}

/* Parents come from files: a cycle must end the walk. */
static sv_track nearest(const struct sv_dict *d, sv_track t, uint8_t kind)
{
    for (unsigned steps = 0; t && steps < 1000; steps++) {
        if (d->tracks[t].kind == kind)
            return t;
        t = d->tracks[t].parent;
    }
    return 0;
}

sv_track sv_dict_process_of(const struct sv_dict *d, sv_track t)
{
    return nearest(d, t, SV_TRACK_PROCESS);
}

sv_track sv_dict_thread_of(const struct sv_dict *d, sv_track t)
{
    return nearest(d, t, SV_TRACK_THREAD);
}

const struct sv_meta *sv_dict_find_meta(const struct sv_dict *d, const char *key)
{
    sv_str id = sv_dict_find_str(d, key, strlen(key));
    const uint64_t *place = id ? sv_map_find(&d->impl->meta_places, id) : NULL;
    return place ? &d->meta[*place - 1] : NULL;
}

void sv_dict_set_meta(struct sv_dict *d, const char *key, const char *value, size_t len,
                      bool is_json)
{
    struct sv_meta *m = (struct sv_meta *)(uintptr_t)sv_dict_find_meta(d, key);
    if (!m) {
        d->meta = sv_grow(d->meta, &d->impl->cap_meta, (size_t)d->n_meta + 1, sizeof *d->meta);
        m = &d->meta[d->n_meta++];
        m->key = sv_dict_cstr(d, key);
        *sv_map_add(&d->impl->meta_places, m->key, NULL) = d->n_meta;
    }
    m->value = sv_dict_str(d, value, len);
    m->is_json = is_json;
}

void sv_dict_unset_meta(struct sv_dict *d, const char *key)
{
    const struct sv_meta *m = sv_dict_find_meta(d, key);
    if (!m)
        return;
    size_t at = (size_t)(m - d->meta);
    memmove(d->meta + at, d->meta + at + 1, (d->n_meta - at - 1) * sizeof *d->meta);
    d->n_meta--;
    sv_map_fini(&d->impl->meta_places);
    d->impl->meta_places = (struct sv_map){0};
    for (uint32_t i = 0; i < d->n_meta; i++)
        *sv_map_add(&d->impl->meta_places, d->meta[i].key, NULL) = i + 1;
}

/* ---- all at once ---- */

bool sv_dict_is_plain(const struct sv_dict *d)
{
    const struct sv_dict_impl *impl = d->impl;
    return !d->loose && impl->loose.n == 0 && impl->n_free_tracks == 0 && impl->n_free_strings == 0;
}

static bool fill_strings(struct sv_dict *d, const struct sv_dict_content *c)
{
    struct sv_dict_impl *impl = d->impl;
    size_t total = 0, n_slots = impl->n_slots;
    for (uint32_t i = 0; i < c->n_strings; i++)
        total += (size_t)c->lens[i] + 1;
    while (c->n_strings > n_slots / 8 * 5)
        n_slots *= 2;
    remake_slots(d, n_slots, false);
    d->strings = sv_grow(strings_of(d), &impl->cap_strings, c->n_strings, sizeof *d->strings);
    const char *at = memcpy(sv_arena_get(&impl->bytes, total, 1), c->texts, total);
    for (uint32_t i = 0; i < c->n_strings; i++, at += (size_t)d->strings[i - 1].len + 1) {
        strings_of(d)[i] = (struct sv_text){.bytes = at, .len = c->lens[i]};
        if (i == 0)
            continue;
        uint32_t hash = hash_of(d, at, c->lens[i]);
        struct string_slot *slot = locate(d, hash, at, c->lens[i]);
        if (slot->id || c->lens[i] == 0)
            return false;
        d->n_strings = i + 1;
        if (is_crowded(d, slot, hash)) {
            impl->calm = i < UINT32_MAX / 2 ? 2 * i : UINT32_MAX;
            remake_slots(d, impl->n_slots, true);
            hash = hash_of(d, at, c->lens[i]);
            slot = locate(d, hash, at, c->lens[i]);
        }
        *slot = (struct string_slot){.hash = hash, .id = i};
    }
    return true;
}

bool sv_dict_fill(struct sv_dict *d, const struct sv_dict_content *c)
{
    struct sv_dict_impl *impl = d->impl;
    bool is_new = true;
    assert(d->n_strings == 1 && d->n_tracks == 1 && d->n_meta == 0);
    if (c->n_strings == 0 || c->n_tracks == 0 || !fill_strings(d, c))
        return false;
    d->tracks = sv_grow(d->tracks, &impl->cap_tracks, c->n_tracks, sizeof *d->tracks);
    memcpy(d->tracks, c->tracks, c->n_tracks * sizeof *d->tracks);
    d->n_tracks = c->n_tracks;
    for (sv_track t = 1; t < c->n_tracks && is_new; t++)
        *sv_map_add(&impl->by_uuid, c->tracks[t].uuid, &is_new) = t;
    d->meta = sv_grow(d->meta, &impl->cap_meta, (size_t)c->n_meta + 1, sizeof *d->meta);
    for (uint32_t i = 0; i < c->n_meta && is_new; i++) {
        d->meta[d->n_meta++] = c->meta[i];
        *sv_map_add(&impl->meta_places, c->meta[i].key, &is_new) = d->n_meta;
    }
    return is_new;
}

/* Kinds keep a process, a thread and a child of equal numbers apart. */
uint64_t sv_uuid_process(uint32_t space, int64_t pid)
{
    return sv_hash_pair(sv_hash_pair(SV_TRACK_PROCESS, space), (uint64_t)pid);
}

uint64_t sv_uuid_thread(uint32_t space, int64_t pid, int64_t tid)
{
    return sv_hash_pair(sv_hash_pair(sv_hash_pair(SV_TRACK_THREAD, space), (uint64_t)pid),
                        (uint64_t)tid);
}

uint64_t sv_uuid_child(uint64_t parent_uuid, unsigned kind, const char *name, size_t len)
{
    return sv_hash_pair(sv_hash_pair(parent_uuid, kind), sv_hash_bytes(name, len, 0));
}

static const char *const kind_names[] = {
    [SV_TRACK_CUSTOM] = "custom",   [SV_TRACK_PROCESS] = "process", [SV_TRACK_THREAD] = "thread",
    [SV_TRACK_COUNTER] = "counter", [SV_TRACK_CPU] = "cpu",         [SV_TRACK_GPU] = "gpu",
    [SV_TRACK_STREAM] = "stream",   [SV_TRACK_LANE] = "lane",       [SV_TRACK_ASYNC] = "async",
};

const char *sv_track_kind_name(unsigned kind)
{
    return kind >= SV_TRACK_CUSTOM && kind <= SV_TRACK_ASYNC ? kind_names[kind] : "?";
}
