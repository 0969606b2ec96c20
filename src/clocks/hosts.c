/* Machines of a merge: see hosts.h. Called once all inputs have been read.
 *
 * Texts become numbers in a dictionary of their own, so that many inputs cost no more than one
 * after the other. */
#include "clocks/hosts.h"

#include "core/base/map.h"
#include "core/stream/dict.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEVERAL UINT64_MAX

struct numbering {
    struct sv_dict *texts;
    struct sv_map boots;                    /* host → its boot id, or SEVERAL */
    struct sv_map users;                    /* host → inputs that have it */
    struct sv_map pids;                     /* machine → its pid namespace, or SEVERAL */
    struct sv_map machines, groups, places; /* key → number */
    struct sv_hosts counts;
};

static uint64_t text(struct numbering *n, const char *s)
{
    return sv_dict_str(n->texts, s, strlen(s));
}

static void learn(struct numbering *n, const struct sv_host *in)
{
    bool is_new;
    if (!in->host)
        return;
    uint64_t host = text(n, in->host);
    ++*sv_map_add(&n->users, host, &is_new);
    if (!in->boot)
        return;
    uint64_t boot = text(n, in->boot), *slot = sv_map_add(&n->boots, host, &is_new);
    *slot = is_new || *slot == boot ? boot : SEVERAL;
}

/* The same for inputs of one machine; 0: it is a machine of its own. Host names and boot ids do not
 * mix: the low bit says which. */
static uint64_t key_of(struct numbering *n, const struct sv_host *in)
{
    if (in->boot)
        return text(n, in->boot) << 1 | 1;
    if (!in->host || in->is_mixed)
        return 0;
    uint64_t host = text(n, in->host), *boot = sv_map_find(&n->boots, host);
    return boot && *boot != SEVERAL ? *boot << 1 | 1 : host << 1;
}

static uint32_t number_of(struct sv_map *map, uint64_t key, uint32_t *n)
{
    bool is_new;
    uint64_t *slot = sv_map_add(map, key, &is_new);
    if (is_new)
        *slot = (*n)++;
    return (uint32_t)*slot;
}

static void number_one(struct numbering *n, struct sv_host *in, bool same_host)
{
    char group[64];
    uint64_t key = same_host ? 1 : key_of(n, in);
    in->is_only = in->host && *sv_map_find(&n->users, text(n, in->host)) == 1;
    if (key == 0) {
        in->machine = n->counts.n_machines++;
        in->group = n->counts.n_groups++;
        return;
    }
    in->machine = number_of(&n->machines, key, &n->counts.n_machines);
    snprintf(group, sizeof group, "%" PRIu32 " %" PRId64, in->machine, in->rank);
    in->group = number_of(&n->groups, text(n, group), &n->counts.n_groups);
}

static void learn_pids(struct numbering *n, const struct sv_host *in)
{
    bool is_new;
    if (!in->pids)
        return;
    uint64_t pids = text(n, in->pids), *slot = sv_map_add(&n->pids, in->machine, &is_new);
    *slot = is_new || *slot == pids ? pids : SEVERAL;
}

static void place_one(struct numbering *n, struct sv_host *in, bool same_host)
{
    char key[64];
    const uint64_t *only = sv_map_find(&n->pids, in->machine);
    if (!same_host && !in->pids && in->n_spaces > 1) { /* merged before, of several */
        in->place = n->counts.n_places++;
        return;
    }
    uint64_t pids = in->pids ? text(n, in->pids) : only && *only != SEVERAL ? *only : 0;
    snprintf(key, sizeof key, "%" PRIu32 "/%" PRIu64, in->machine, same_host ? 0 : pids);
    in->place = number_of(&n->places, text(n, key), &n->counts.n_places);
}

/* Each place takes as many spaces as its input that has the most. */
static void give_spaces(struct sv_host *const *inputs, size_t n, uint32_t n_places)
{
    uint32_t *first = sv_alloc(((size_t)n_places + 1) * sizeof *first), next = 0;
    for (size_t i = 0; i < n; i++)
        if (inputs[i]->n_spaces > first[inputs[i]->place])
            first[inputs[i]->place] = inputs[i]->n_spaces;
    for (uint32_t p = 0; p < n_places; p++) {
        uint32_t taken = first[p];
        first[p] = next;
        next += taken;
    }
    for (size_t i = 0; i < n; i++)
        inputs[i]->space = first[inputs[i]->place];
    free(first);
}

struct sv_hosts sv_hosts_number(struct sv_host *const *inputs, size_t n, bool same_host)
{
    struct numbering all = {.texts = sv_dict_new()};
    for (size_t i = 0; i < n; i++)
        learn(&all, inputs[i]);
    for (size_t i = 0; i < n; i++)
        number_one(&all, inputs[i], same_host);
    for (size_t i = 0; i < n; i++)
        learn_pids(&all, inputs[i]);
    for (size_t i = 0; i < n; i++)
        place_one(&all, inputs[i], same_host);
    give_spaces(inputs, n, all.counts.n_places);
    sv_map_fini(&all.pids);
    sv_map_fini(&all.places);
    sv_map_fini(&all.boots);
    sv_map_fini(&all.users);
    sv_map_fini(&all.machines);
    sv_map_fini(&all.groups);
    sv_dict_free(all.texts);
    return all.counts;
}
