/* Units that nobody marked: requests on the sockets of a server, and the turns of a loop that makes
 * the same call again and again. Called by why/ledger.c where a trace has no steps, epochs or
 * phases.
 *
 * A request is what a process reads from a socket on which it was not the first to write, up to its
 * answer. A turn begins with a call on the same file, or on files whose names differ in digits
 * only; such calls must follow each other in regular times and fill most of the run. */
#include "why/ledger.h"

#include "core/base/map.h"
#include "core/base/mem.h"
#include "core/base/sat.h"
#include "store/ranks.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { UNITS_LEAST = 10 };

/* ---- requests ---- */

struct transfer {
    uint64_t socket;
    int64_t ts_ns, end_ns;
    uint32_t thread;
    bool is_read;
};

static int by_socket(const void *a, const void *b)
{
    const struct transfer *x = a, *y = b;
    if (x->socket != y->socket)
        return x->socket < y->socket ? -1 : 1;
    if (x->end_ns != y->end_ns)
        return x->end_ns < y->end_ns ? -1 : 1;
    return (x->thread > y->thread) - (x->thread < y->thread);
}

static bool begins(struct sv_text t, const char *word)
{
    size_t len = strlen(word);
    return t.len >= len && memcmp(t.bytes, word, len) == 0;
}

/* A call that moved bytes through a socket: 'r', 'w', or 0. */
static char direction(const struct sv_thread_states *s, uint32_t row, sv_str bytes)
{
    const struct sv_trace *t = s->trace;
    struct sv_text name = sv_dict_text(t->dict, t->slices.name[row]);
    struct sv_arg a;
    bool is_read = begins(name, "read") || begins(name, "recv"),
         is_write = begins(name, "write") || begins(name, "send");
    if ((!is_read && !is_write) || sv_call_file_kind(s, row) != SV_FILE_SOCKET)
        return 0;
    if (bytes && sv_trace_arg(t, t->slices.args[row], bytes, &a) && a.type == SV_ARG_INT &&
        a.i <= 0)
        return 0;
    return is_read ? 'r' : 'w';
}

/* Transfers of all threads of the process, by socket and time. To be freed. */
static struct transfer *find_transfers(const struct sv_ledger *l, sv_track process, size_t *n)
{
    const struct sv_thread_states *s = &l->states;
    struct transfer *list = NULL;
    size_t cap = 0;
    sv_str bytes = sv_dict_find_str(l->trace->dict, "bytes", 5);
    *n = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        sv_track calls = s->threads[i].process == process ? s->threads[i].calls : 0;
        for (uint32_t row = l->trace->tracks[calls].first;
             calls && row < l->trace->tracks[calls].end; row++) {
            char way = sv_state_is_call(s, row) ? direction(s, row, bytes) : 0;
            if (!way)
                continue;
            struct sv_text path = sv_call_path(s, row);
            list = sv_grow(list, &cap, *n + 1, sizeof *list);
            list[(*n)++] = (struct transfer){.socket = sv_hash_bytes(path.bytes, path.len, 5),
                                             .ts_ns = l->trace->slices.ts_ns[row],
                                             .end_ns = sv_trace_end_ns(l->trace, row),
                                             .thread = i,
                                             .is_read = way == 'r'};
        }
    }
    if (*n > 1)
        qsort(list, *n, sizeof *list, by_socket);
    return list;
}

static size_t find_requests(const struct sv_ledger *l, sv_track process,
                            struct sv_given_unit **units)
{
    size_t n, n_units = 0, cap = 0;
    struct transfer *list = find_transfers(l, process, &n);
    bool is_server = false;
    int64_t asked = INT64_MIN;
    for (size_t i = 0; i < n; i++) {
        const struct transfer *x = &list[i];
        if (i == 0 || x->socket != list[i - 1].socket) {
            is_server = x->is_read;
            asked = INT64_MIN;
        }
        if (!is_server)
            continue;
        if (x->is_read) {
            asked = asked == INT64_MIN ? x->end_ns : asked;
        } else if (asked != INT64_MIN && x->end_ns > asked) {
            *units = sv_grow(*units, &cap, n_units + 1, sizeof **units);
            (*units)[n_units] = (struct sv_given_unit){.number = (int64_t)n_units,
                                                       .from_ns = asked,
                                                       .run_ns = asked,
                                                       .done_ns = x->end_ns,
                                                       .to_ns = x->end_ns,
                                                       .thread = x->thread};
            n_units++;
            asked = INT64_MIN;
        }
    }
    free(list);
    return n_units;
}

/* ---- turns of a loop ---- */

/* Calls of one name on files whose paths differ in digits only. */
struct repeated {
    uint64_t key;
    int64_t *at;
    size_t n, cap;
    uint64_t path;
    bool is_stream; /* reads or writes one file on: a buffer that is full is no turn */
};

static uint64_t key_of(const struct sv_thread_states *s, uint32_t row)
{
    struct sv_text path = sv_call_path(s, row);
    char plain[256];
    size_t n = 0;
    for (uint32_t i = 0; i < path.len && n < sizeof plain; i++)
        if (path.bytes[i] < '0' || path.bytes[i] > '9')
            plain[n++] = path.bytes[i];
    return sv_hash_bytes(plain, n, s->trace->slices.name[row]);
}

static bool is_stream(const struct sv_thread_states *s, uint32_t row)
{
    struct sv_text name = sv_dict_text(s->trace->dict, s->trace->slices.name[row]);
    return (begins(name, "read") || begins(name, "write")) &&
           sv_call_file_kind(s, row) == SV_FILE_REGULAR;
}

static int by_number(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Keeps the first of each burst, and of what is left the longest stretch of regular intervals. A
 * slow turn is a turn, but the first one: that is what comes before the loop. */
static void keep_regular(struct repeated *r)
{
    enum { BURST = 5, SHORTER = 3, LONGER = 20, BEFORE = 5 };
    int64_t *gaps = sv_alloc((r->n + 1) * sizeof *gaps);
    size_t n = r->n, kept = 1, first = 0, best = 0, best_n = 0;
    for (size_t i = 1; i < n; i++)
        gaps[i - 1] = r->at[i] - r->at[i - 1];
    qsort(gaps, n - 1, sizeof *gaps, by_number);
    int64_t usual = gaps[(n - 1) * 3 / 4];
    for (size_t i = 1; i < n; i++)
        if (r->at[i] - r->at[kept - 1] >= usual / BURST)
            r->at[kept++] = r->at[i];
    for (size_t i = 1; i < kept; i++)
        gaps[i - 1] = r->at[i] - r->at[i - 1];
    qsort(gaps, kept - 1, sizeof *gaps, by_number);
    usual = gaps[(kept - 1) / 2];
    for (size_t i = 1; i <= kept; i++) {
        int64_t gap = i < kept ? r->at[i] - r->at[i - 1] : 0;
        if (i < kept && gap >= usual / SHORTER && gap / LONGER <= usual)
            continue;
        if (i - first > best_n) {
            best = first;
            best_n = i - first;
        }
        first = i;
    }
    if (best_n > 1 && (r->at[best + 1] - r->at[best]) / BEFORE > usual) {
        best++;
        best_n--;
    }
    memmove(r->at, r->at + best, best_n * sizeof *r->at);
    r->n = best_n;
    free(gaps);
}

/* The calls of a thread by what they repeat. To be freed, with each list. */
static struct repeated *find_repeated(const struct sv_ledger *l, uint32_t thread, size_t *n)
{
    const struct sv_thread_states *s = &l->states;
    sv_track calls = s->threads[thread].calls;
    struct repeated *all = NULL;
    struct sv_map by_key = {0};
    size_t cap = 0;
    *n = 0;
    for (uint32_t row = l->trace->tracks[calls].first; calls && row < l->trace->tracks[calls].end;
         row++) {
        if (!sv_state_is_call(s, row) || !sv_call_path(s, row).len)
            continue;
        bool is_new;
        uint64_t key = key_of(s, row), *at = sv_map_add(&by_key, key, &is_new);
        struct sv_text text = sv_call_path(s, row);
        uint64_t path = sv_hash_bytes(text.bytes, text.len, 5);
        if (is_new) {
            all = sv_grow(all, &cap, *n + 1, sizeof *all);
            all[*n] = (struct repeated){.key = key, .path = path, .is_stream = is_stream(s, row)};
            *at = (*n)++;
        }
        assert(*at < *n);
        struct repeated *r = &all[*at];
        r->is_stream &= r->path == path;
        r->at = sv_grow(r->at, &r->cap, r->n + 1, sizeof *r->at);
        r->at[r->n++] = l->trace->slices.ts_ns[row];
    }
    sv_map_fini(&by_key);
    return all;
}

/* The rarest call that repeats regularly over most of the run: what is made several times in a turn
 * is not the turn. */
static size_t find_turns(const struct sv_ledger *l, uint32_t thread, struct sv_given_unit **units)
{
    size_t n, n_units = 0;
    struct repeated *all = find_repeated(l, thread, &n), *best = NULL;
    const struct sv_thread_rows *x = &l->states.threads[thread];
    for (size_t i = 0; i < n; i++) {
        struct repeated *r = &all[i];
        if (r->n < UNITS_LEAST || r->is_stream)
            continue;
        keep_regular(r);
        if (r->n >= UNITS_LEAST && r->at[r->n - 1] - r->at[0] > (x->to_ns - x->from_ns) / 2 &&
            (!best || r->n < best->n || (r->n == best->n && r->at[0] < best->at[0])))
            best = r;
    }
    if (best) {
        int64_t usual = (best->at[best->n - 1] - best->at[0]) / (int64_t)(best->n - 1);
        *units = sv_alloc(best->n * sizeof **units);
        for (size_t i = 0; i < best->n; i++) {
            int64_t to = i + 1 < best->n ? best->at[i + 1] : sv_sat_add(best->at[i], usual);
            (*units)[n_units++] = (struct sv_given_unit){.number = (int64_t)i,
                                                         .from_ns = best->at[i],
                                                         .run_ns = best->at[i],
                                                         .done_ns = to < x->to_ns ? to : x->to_ns,
                                                         .to_ns = to < x->to_ns ? to : x->to_ns,
                                                         .thread = thread};
        }
    }
    for (size_t i = 0; i < n; i++)
        free(all[i].at);
    free(all);
    return n_units;
}

size_t sv_units_repeat(const struct sv_ledger *l, uint32_t thread, enum sv_unit_kind *kind,
                       struct sv_given_unit **units)
{
    sv_track process = l->states.threads[thread].process;
    *units = NULL;
    *kind = SV_UNIT_IS_REQUEST;
    /* A rank talks to its launcher and to other ranks. */
    size_t n = sv_rank_of_track(l->trace, process) < 0 ? find_requests(l, process, units) : 0;
    if (n >= UNITS_LEAST)
        return n;
    free(*units);
    *units = NULL;
    *kind = SV_UNIT_IS_TURN;
    n = find_turns(l, thread, units);
    return n;
}
