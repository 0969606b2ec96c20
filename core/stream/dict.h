/* The dictionary: strings, tracks, clocks and metadata enter once and get small numbers.
 *
 * Every source of a run fills the same dictionary and every sink reads it. It only grows, but for
 * tracks that a live source forgets. A track may learn its name after its first events (Chrome
 * files do that): by `revision` a sink sees that a description it has written must be written
 * again. */
#pragma once

#include "core/base/mem.h"
#include "core/stream/clock.h"
#include "core/stream/event.h"

#include <stdbool.h>
#include <string.h>

struct sv_text {
    const char *bytes; /* terminated, but may hold NUL bytes */
    uint32_t len;
};

static inline bool sv_text_begins(struct sv_text t, const char *word)
{
    size_t n = strlen(word);
    return t.len >= n && memcmp(t.bytes, word, n) == 0;
}

static inline bool sv_text_is(struct sv_text t, const char *word)
{
    return t.len == strlen(word) && memcmp(t.bytes, word, t.len) == 0;
}

enum sv_track_kind {
    SV_TRACK_CUSTOM = 1, /* a named row or group */
    SV_TRACK_PROCESS,
    SV_TRACK_THREAD,
    SV_TRACK_COUNTER,
    SV_TRACK_CPU,
    SV_TRACK_GPU,
    SV_TRACK_STREAM,
    SV_TRACK_LANE, /* made by `split`: holds what overlaps on its parent */
    SV_TRACK_ASYNC /* one operation with an id of its own; rows of the same name belong together */
};

enum sv_child_order {
    SV_ORDER_DEFAULT = 0,
    SV_ORDER_LEXICOGRAPHIC,
    SV_ORDER_CHRONOLOGICAL,
    SV_ORDER_EXPLICIT
};
enum sv_sibling_merge { SV_MERGE_DEFAULT = 0, SV_MERGE_BY_NAME, SV_MERGE_NONE, SV_MERGE_BY_KEY };

struct sv_track_info {
    uint64_t uuid;         /* stable: see sv_uuid_*() */
    sv_track parent;       /* 0: top level */
    uint8_t kind;          /* enum sv_track_kind */
    uint8_t child_order;   /* how its children are sorted: enum sv_child_order */
    uint8_t sibling_merge; /* enum sv_sibling_merge */
    bool has_order;        /* `order` was given */
    /* counter: the source wrote deltas (values in events are always absolute) */
    bool is_incremental;
    bool is_described;  /* a descriptor or name was seen, not only a reference */
    bool is_state;      /* each slice is a state that ends the one before it */
    uint8_t unused;     /* no holes: images hold the bytes as they are */
    int32_t revision;   /* grows with every change */
    int64_t order;      /* among its siblings */
    int64_t pid, tid;   /* PROCESS: pid; THREAD: both; others inherit: -1 */
    int64_t start_ns;   /* PROCESS: start time, 0 unknown */
    int64_t multiplier; /* counter: shown value = value × multiplier; 0 means 1 */
    sv_str name;
    sv_str unit;      /* counter: "ns", "count", "bytes", or any text */
    sv_str cat;       /* counter: categories */
    sv_str desc;      /* description, Chrome's process_labels, cmdline */
    sv_str merge_key; /* with SV_MERGE_BY_KEY */
    /* whose pids these are: 0 unless files of several machines or containers were merged */
    uint32_t space;
    /* PROCESS, and tracks without a parent: the label of the metadata that are about it ("rank 3"
     * of "rank 3/hostname"); 0: those without a label are. See store/ranks.h. */
    sv_str origin;
    uint32_t unused_end;
};

struct sv_meta {
    sv_str key;   /* "trace_name", "hostname", "rank", "command", "chrome.displayTimeUnit" … */
    sv_str value; /* text; a number or JSON value is kept as its text */
    bool is_json; /* value is JSON text rather than a plain string */
};

struct sv_dict_impl;
struct sv_lanes;

struct sv_dict {
    const struct sv_text *strings; /* [0] is "" */
    uint32_t n_strings;
    struct sv_track_info *tracks; /* [0] is unused */
    uint32_t n_tracks;
    struct sv_meta *meta;
    uint32_t n_meta;
    struct sv_clocks clocks;
    struct sv_lanes *loose; /* of live sources: sv_lanes_loose(); NULL: none */
    struct sv_dict_impl *impl;
};

struct sv_dict *sv_dict_new(void);
void sv_dict_free(struct sv_dict *d);
size_t sv_dict_bytes(const struct sv_dict *d); /* memory held */
/* The same without what tables have in reserve: grows evenly, so that a part of it can be charged
 * to a source. */
size_t sv_dict_used_bytes(const struct sv_dict *d);

sv_str sv_dict_str(struct sv_dict *d, const char *bytes, size_t len);
sv_str sv_dict_cstr(struct sv_dict *d, const char *s);
sv_str sv_dict_find_str(const struct sv_dict *d, const char *bytes, size_t len); /* 0 when absent */

static inline struct sv_text sv_dict_text(const struct sv_dict *d, sv_str s)
{
    return d->strings[s];
}

/* The track with this uuid, made on first sight (kind CUSTOM, no parent, not described). */
sv_track sv_dict_track(struct sv_dict *d, uint64_t uuid, bool *is_new);
sv_track sv_dict_find_track(const struct sv_dict *d, uint64_t uuid);

/* Chrome-like identity: the process or thread with this number in this space, made on first
 * sight. */
sv_track sv_dict_process(struct sv_dict *d, uint32_t space, int64_t pid);
sv_track sv_dict_thread(struct sv_dict *d, uint32_t space, int64_t pid, int64_t tid);
/* A child of `parent` with this name and kind, made on first sight. */
sv_track sv_dict_child(struct sv_dict *d, sv_track parent, unsigned kind, sv_str name);

/* The process a track belongs to (itself included), 0 when none; the same for the thread. */
sv_track sv_dict_process_of(const struct sv_dict *d, sv_track t);
sv_track sv_dict_thread_of(const struct sv_dict *d, sv_track t);

/* Gives the track a description of its own, which is not shared with others of the same text and
 * goes with the track. */
void sv_dict_describe(struct sv_dict *d, sv_track t, const char *bytes, size_t len);

/* Recordings without an end: the track will not be used any more by its number, which another one
 * may get. Nobody may hold it: the sinks have been notified (sv_sink.forget), the tracks below it
 * are forgotten, too. Its uuid may come again, as a new track. */
void sv_dict_forget(struct sv_dict *d, sv_track t);

/* Call after changing a track: its revision grows, so that sinks describe it again. */
static inline void sv_dict_touch(struct sv_dict *d, sv_track t)
{
    d->tracks[t].revision++;
}

void sv_dict_set_meta(struct sv_dict *d, const char *key, const char *value, size_t len,
                      bool is_json);
void sv_dict_unset_meta(struct sv_dict *d, const char *key); /* nothing if there is none */
const struct sv_meta *sv_dict_find_meta(const struct sv_dict *d, const char *key);

/* All of a dictionary at once, for one that was kept in a file: see sv_dict_is_plain(). The texts
 * follow each other, each with a zero byte; the first is "". Numbers must have been checked by the
 * caller; false when two strings are equal, or two tracks. */
struct sv_dict_content {
    const char *texts;
    const uint32_t *lens;
    uint32_t n_strings;
    const struct sv_track_info *tracks; /* with the unused first one */
    uint32_t n_tracks;
    const struct sv_meta *meta;
    uint32_t n_meta;
};
bool sv_dict_fill(struct sv_dict *d, const struct sv_dict_content *c); /* d is new */
/* Nothing was forgotten and no description goes with its track, so that content is all there is. */
bool sv_dict_is_plain(const struct sv_dict *d);

/* Stable identities. The path form: uuid of the parent, kind and name of the child. */
uint64_t sv_uuid_process(uint32_t space, int64_t pid);
uint64_t sv_uuid_thread(uint32_t space, int64_t pid, int64_t tid);
uint64_t sv_uuid_child(uint64_t parent_uuid, unsigned kind, const char *name, size_t len);

const char *sv_track_kind_name(unsigned kind);
