/* Who talks to whom over sockets. Called by why/ledger.c. */
#include "why/talkers.h"

#include "core/base/mem.h"

#include <stdlib.h>
#include <string.h>

/* Below it are the ports that programs choose for others to find (Linux: ip_local_port_range). */
enum { EPHEMERAL_PORT = 32768 };

static uint64_t pair(sv_track own, sv_track its)
{
    return (uint64_t)own << 32 | its;
}

static void set_client(struct sv_talkers *p, sv_track own, sv_track its)
{
    bool is_new;
    if (own != its)
        *sv_map_add(&p->clients, pair(own, its), &is_new) = 1;
}

static int64_t number(const struct sv_talkers *p, uint32_t row, sv_str key)
{
    const struct sv_trace *t = p->states->trace;
    struct sv_arg a;
    return key && sv_trace_arg(t, t->slices.args[row], key, &a) && a.type == SV_ARG_INT ? a.i : -1;
}

/* The address of the other end; empty: not known. */
static struct sv_text address(const struct sv_talkers *p, uint32_t row)
{
    const struct sv_trace *t = p->states->trace;
    struct sv_arg a;
    bool has = p->peer && sv_trace_arg(t, t->slices.args[row], p->peer, &a) &&
               a.type == SV_ARG_TEXT;
    return has ? (struct sv_text){a.text, a.size} : (struct sv_text){"", 0};
}

static uint64_t address_key(const struct sv_talkers *p, uint32_t row, struct sv_text text)
{
    const struct sv_trace *t = p->states->trace;
    return sv_hash_bytes(text.bytes, text.len, t->dict->tracks[t->slices.track[row]].space);
}

/* Not each call says which process is at the other end: others with the same address may. */
static int64_t peer_pid(const struct sv_talkers *p, uint32_t row)
{
    int64_t pid = number(p, row, p->peer_pid);
    struct sv_text text = address(p, row);
    const uint64_t *known =
        pid <= 0 && text.len ? sv_map_find(&p->by_address, address_key(p, row, text)) : NULL;
    return known ? (int64_t)*known : pid;
}

/* The main thread of the process at the other end; SV_NO_THREAD: not in the trace. */
static uint32_t peer_of(const struct sv_talkers *p, uint32_t row)
{
    const struct sv_trace *t = p->states->trace;
    int64_t pid = peer_pid(p, row);
    return pid > 0 ? sv_thread_by_tid(p->states, t->dict->tracks[t->slices.track[row]].space, pid)
                   : SV_NO_THREAD;
}

/* The port of "10.0.0.7:443"; -1: it has none. */
static int64_t port_of_peer(const struct sv_talkers *p, uint32_t row)
{
    struct sv_text text = address(p, row);
    const char *colon = text.len ? memrchr(text.bytes, ':', text.len) : NULL;
    int64_t port = 0;
    for (const char *at = colon ? colon + 1 : NULL; colon && at < text.bytes + text.len; at++) {
        if (*at < '0' || *at > '9' || port > 65535)
            return -1;
        port = port * 10 + (*at - '0');
    }
    return colon ? port : -1;
}

static void learn(struct sv_talkers *p, sv_track own, uint32_t row)
{
    const struct sv_trace *t = p->states->trace;
    struct sv_text name = sv_dict_text(t->dict, t->slices.name[row]), text = address(p, row);
    int64_t pid = number(p, row, p->peer_pid);
    bool is_new;
    if (pid > 0 && text.len) {
        uint64_t *known = sv_map_add(&p->by_address, address_key(p, row, text), &is_new);
        *known = is_new || *known == (uint64_t)pid ? (uint64_t)pid : 0; /* 0: of several */
    }
    uint32_t peer = peer_of(p, row);
    sv_track its = peer != SV_NO_THREAD ? p->states->threads[peer].process : 0;
    if (name.len >= 6 && memcmp(name.bytes, "accept", 6) == 0) {
        if (its)
            set_client(p, its, own);
        return;
    }
    bool is_connect = name.len == 7 && memcmp(name.bytes, "connect", 7) == 0;
    int64_t port = port_of_peer(p, row);
    if (is_connect ||
        (port > 0 && port < EPHEMERAL_PORT && number(p, row, p->port) >= EPHEMERAL_PORT))
        set_client(p, own, its);
}

static void learn_all(struct sv_talkers *p, const struct sv_thread_rows *x)
{
    const struct sv_thread_states *s = p->states;
    const struct sv_trace *t = s->trace;
    for (uint32_t row = t->tracks[x->calls].first; row < t->tracks[x->calls].end; row++)
        if (s->call_class[t->slices.name[row]] == SV_CALL_SOCKET && sv_state_is_call(s, row))
            learn(p, x->process, row);
}

void sv_talkers_init(struct sv_talkers *p, const struct sv_thread_states *s)
{
    const struct sv_dict *d = s->trace->dict;
    *p = (struct sv_talkers){.states = s,
                             .first = sv_alloc(((size_t)d->n_tracks + 1) * sizeof *p->first),
                             .next = sv_alloc(((size_t)s->n + 1) * sizeof *p->next),
                             .peer_pid = sv_dict_find_str(d, "peer_pid", 8),
                             .peer = sv_dict_find_str(d, "peer", 4),
                             .port = sv_dict_find_str(d, "port", 4)};
    for (uint32_t i = s->n; i-- > 0;) {
        sv_track process = s->threads[i].process;
        p->next[i] = p->first[process];
        p->first[process] = i + 1;
        if (s->threads[i].calls && (p->peer || p->peer_pid))
            learn_all(p, &s->threads[i]);
    }
}

void sv_talkers_fini(struct sv_talkers *p)
{
    sv_map_fini(&p->clients);
    sv_map_fini(&p->by_address);
    free(p->first);
    free(p->next);
    *p = (struct sv_talkers){0};
}

bool sv_talkers_is_client(const struct sv_talkers *p, sv_track own, sv_track its)
{
    return sv_map_find(&p->clients, pair(own, its)) != NULL;
}

uint32_t sv_talkers_thread(const struct sv_talkers *p, const struct sv_state_piece *x, bool *runs)
{
    enum { THREADS_MAX = 64, PIECES_MAX = 256 };
    uint32_t peer = x->call != SV_NO_ROW ? peer_of(p, x->call) : SV_NO_THREAD, best = peer;
    int64_t longest = 0;
    *runs = false;
    if (peer == SV_NO_THREAD)
        return peer;
    uint32_t at = p->first[p->states->threads[peer].process];
    for (int n = 0; at && n < THREADS_MAX; n++, at = p->next[at - 1]) {
        struct sv_state_cursor c = sv_state_window(p->states, at - 1, x->from_ns, x->to_ns);
        int64_t ns = 0;
        int pieces = 0;
        for (struct sv_state_piece y; pieces < PIECES_MAX && sv_state_next(&c, &y); pieces++)
            ns += sv_state_is_work(&y) && y.state != SV_WAIT_NO_STATE ? y.to_ns - y.from_ns : 0;
        if (ns > longest) {
            longest = ns;
            best = at - 1;
        }
    }
    *runs = longest > (x->to_ns - x->from_ns) / 10;
    return best;
}
