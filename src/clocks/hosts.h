/* Which inputs of a merge come from the same machine, and which numbers of theirs mean the same.
 *
 * Equal boot ids are one machine since its last start; different ones never are, whatever the host
 * is called. An input without a boot id goes by its host name: it belongs to the one machine of
 * that name, and to none of them when there are several.
 *
 * On one machine each pid namespace (a container) has numbers of its own. An input that does not
 * say which it is belongs to the only one that is known there, and to one of its own when there are
 * several. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sv_host {
    const char *host, *boot; /* NULL: unknown */
    const char *pids;        /* namespace of its pids, NULL: unknown */
    int64_t rank;            /* of the job */
    uint32_t n_spaces;       /* of pids; more than one when it was merged before */
    bool is_mixed; /* it was merged of several machines: its host name is none of theirs */
    /* Found by sv_hosts_number(): */
    uint32_t machine; /* numbers in the order of the inputs */
    uint32_t group;   /* of those on one machine with one rank: flow numbers are shared */
    uint32_t place;   /* of those on one machine with one pid namespace: pids are shared */
    uint32_t space;   /* the first of its place */
    bool is_only;     /* no other input has its host name */
};

struct sv_hosts {
    uint32_t n_machines, n_groups, n_places;
};

/* `same_host`: all come from one machine, whatever they say. */
struct sv_hosts sv_hosts_number(struct sv_host *const *inputs, size_t n, bool same_host);
