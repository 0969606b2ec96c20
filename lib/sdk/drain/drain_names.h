/* What the numbers in records mean: sites and tracks of one process, numbered in the dictionary at
 * first sight. */
#pragma once

#include "core/stream/dict.h"

struct sv_report;

struct sv_drain_site {
    sv_str name, cat, file, func;
    uint32_t line;
    uint8_t kind, n_args;
    /* BEGIN and END on a track: which of the words says the track, the slice, the owner; 0: none,
     * else the number plus 1 */
    uint8_t track_at, slice_at, owner_at;
    sv_track counter; /* COUNTER without a track of its own */
    sv_str *keys;
    uint8_t *types;
    uint8_t *specials; /* enum sv_arg_type of keys with a meaning, else 0 */
};

struct sv_drain_names {
    struct sv_dict *dict;
    uint32_t pid;
    sv_track process;
    struct sv_drain_site *sites; /* by number */
    size_t n_sites, cap_sites;
    sv_track *tracks; /* by number */
    size_t n_tracks, cap_tracks;
    size_t n_records; /* of the log so far */
    bool has_edges;   /* some site begins or ends slices on tracks */
    struct sv_arena arena;
};

void sv_drain_names_init(struct sv_drain_names *n, struct sv_dict *dict, uint32_t pid);
void sv_drain_names_fini(struct sv_drain_names *n);
size_t sv_drain_names_read(struct sv_drain_names *n, struct sv_report *report, const uint8_t *bytes,
                           size_t len);
size_t sv_drain_names_bytes(const struct sv_drain_names *n); /* memory held */
sv_track sv_drain_track(const struct sv_drain_names *n, uint64_t number);
sv_track sv_drain_counter_track(struct sv_drain_names *n, struct sv_drain_site *s);

/* NULL: no such site. */
static inline struct sv_drain_site *sv_drain_site(const struct sv_drain_names *n, uint32_t number)
{
    return __builtin_expect(number < n->n_sites && n->sites[number].kind != 0, 1)
               ? &n->sites[number]
               : NULL;
}

/* Does the record begin or end a slice on a named track? It has the words of its site. */
bool sv_record_is_edge(const struct sv_drain_site *s, const uint64_t *rec);
/* Can the record be read: are its kind, words and texts those of its site (NULL: there is none)?
 * `bytes`: its size, which has a head. */
bool sv_record_is_whole(const struct sv_drain_site *s, const uint64_t *rec, uint64_t bytes);
