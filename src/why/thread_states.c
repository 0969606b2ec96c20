/* States of threads, read from the store. Called by the critical path, the division of steps and
 * the report on waits. Must not change the trace. */
#include "why/thread_states.h"

#include "core/base/mem.h"
#include "core/base/sat.h"
#include "core/base/search.h"
#include "store/ranks.h"
#include "subjects/io/words.h"

#include <stdlib.h>
#include <string.h>

static const char *const state_names[SV_N_WAIT_STATES] = {"",
#define NAME(member, text) text,
                                                          SV_WAIT_STATES(NAME)
#undef NAME
};

static const char *const reason_names[SV_N_WAIT_REASONS] = {"",
#define NAME(member, text, what) text,
                                                            SV_WAIT_REASONS(NAME)
#undef NAME
};

static const char *const reason_meanings[SV_N_WAIT_REASONS] = {"",
#define NAME(member, text, what) what,
                                                               SV_WAIT_REASONS(NAME)
#undef NAME
};

const char *sv_wait_reason_name(unsigned reason)
{
    return reason < SV_N_WAIT_REASONS ? reason_names[reason] : "";
}

const char *sv_wait_reason_what(unsigned reason)
{
    return reason < SV_N_WAIT_REASONS ? reason_meanings[reason] : "";
}

/* ---- what there is ---- */

static sv_str find(const struct sv_trace *t, const char *word)
{
    return sv_dict_find_str(t->dict, word, strlen(word));
}

static uint8_t *by_name(const struct sv_trace *t, const char *const *names, unsigned n)
{
    uint8_t *of = sv_alloc((size_t)t->dict->n_strings + 1);
    for (unsigned i = 1; i < n; i++) {
        sv_str s = find(t, names[i]);
        if (s)
            of[s] = (uint8_t)i;
    }
    return of;
}

static uint64_t tid_key(uint32_t space, int64_t tid)
{
    return sv_mix64((uint64_t)tid) ^ space;
}

/* The thread above a row. Rows hang right below it, or one deeper where they overlap. */
static sv_track thread_above(const struct sv_dict *d, sv_track track)
{
    for (int depth = 0; track && depth < 4; depth++, track = d->tracks[track].parent)
        if (d->tracks[track].kind == SV_TRACK_THREAD)
            return track;
    return 0;
}

static void stretch(struct sv_thread_rows *x, const struct sv_trace *t, sv_track track)
{
    const struct sv_trace_track *k = &t->tracks[track];
    int64_t from = t->slices.ts_ns[k->first], to = sv_trace_end_ns(t, k->end - 1);
    if (x->from_ns > x->to_ns) {
        x->from_ns = from;
        x->to_ns = to;
    }
    x->from_ns = from < x->from_ns ? from : x->from_ns;
    x->to_ns = to > x->to_ns ? to : x->to_ns;
}

/* Which row this is: by the category of its first slice, instants (exec, fork) passed over. */
static void place_row(struct sv_thread_states *s, struct sv_thread_rows *x, sv_track track)
{
    const struct sv_trace *t = s->trace;
    const struct sv_trace_track *k = &t->tracks[track];
    struct sv_text name = sv_dict_text(t->dict, t->dict->tracks[track].name);
    uint32_t row = k->first;
    if (strcmp(name.bytes, SV_ROW_PAGE_FAULTS) == 0)
        x->faults = track;
    while (row < k->end && t->slices.kind[row] != SV_SLICE)
        row++;
    if (row == k->end)
        return;
    sv_str cat = t->slices.cat[row];
    if (cat && cat == s->cat_state && !x->state)
        x->state = track;
    else if (cat && cat == s->cat_call && !x->calls)
        x->calls = track;
    else if (cat && cat == s->cat_uring && !x->uring)
        x->uring = track;
    s->has_states |= x->state != 0;
    s->has_calls |= x->calls != 0;
}

static void find_threads(struct sv_thread_states *s)
{
    const struct sv_trace *t = s->trace;
    const struct sv_dict *d = t->dict;
    size_t cap = 0;
    for (sv_track k = 1; k < t->n_tracks; k++) {
        if (t->tracks[k].first == t->tracks[k].end)
            continue;
        sv_track thread = thread_above(d, k);
        if (!thread || thread >= t->n_tracks)
            continue;
        if (!s->of_track[thread]) {
            s->threads = sv_grow(s->threads, &cap, s->n + 1, sizeof *s->threads);
            s->threads[s->n] = (struct sv_thread_rows){.track = thread,
                                                       .process = sv_dict_process_of(d, thread),
                                                       .from_ns = 1,
                                                       .to_ns = 0,
                                                       .starter = SV_NO_THREAD};
            s->of_track[thread] = ++s->n;
            *sv_map_add(&s->by_tid, tid_key(d->tracks[thread].space, d->tracks[thread].tid), NULL) =
                s->n;
        }
        s->of_track[k] = s->of_track[thread];
        struct sv_thread_rows *x = &s->threads[s->of_track[k] - 1];
        stretch(x, t, k);
        place_row(s, x, k);
    }
}

/* Instants fork (with the child) and exec of category process. */
static void find_starts(struct sv_thread_states *s)
{
    const struct sv_trace *t = s->trace;
    sv_str cat = find(t, SV_CAT_PROCESS), fork = find(t, "fork"), exec = find(t, "exec"),
           child = find(t, "child");
    struct sv_arg a;
    for (uint64_t row = 0; cat && row < t->slices.n; row++) {
        if (t->slices.cat[row] != cat)
            continue;
        sv_track track = t->slices.track[row];
        uint32_t thread = sv_thread_of(s, track);
        if (thread == SV_NO_THREAD)
            continue;
        if (exec && t->slices.name[row] == exec) {
            s->threads[thread].has_exec = true;
        } else if (fork && t->slices.name[row] == fork && child &&
                   sv_trace_arg(t, t->slices.args[row], child, &a) && a.type == SV_ARG_INT) {
            uint32_t started = sv_thread_by_tid(s, t->dict->tracks[track].space, a.i);
            if (started != SV_NO_THREAD && started != thread)
                s->threads[started].starter = thread;
        }
    }
}

static uint32_t rows_of(const struct sv_thread_states *s, const struct sv_thread_rows *x)
{
    const struct sv_trace_track *k = s->trace->tracks;
    uint32_t n = k[x->track].end - k[x->track].first;
    if (x->calls && x->calls != x->track)
        n += k[x->calls].end - k[x->calls].first;
    return n + (x->state ? k[x->state].end - k[x->state].first : 0);
}

static bool is_main(const struct sv_thread_states *s, uint32_t thread)
{
    const struct sv_track_info *info = &s->trace->dict->tracks[s->threads[thread].track];
    return info->tid == info->pid;
}

/* Once for all processes: a trace may have as many of them as threads. */
static void find_mains(struct sv_thread_states *s)
{
    for (uint32_t i = 0; i < s->n; i++) {
        uint32_t *best = &s->main_of[s->threads[i].process];
        bool is_better = *best == 0 || is_main(s, i) ||
                         rows_of(s, &s->threads[i]) > rows_of(s, &s->threads[*best - 1]);
        if (is_better && !(*best && is_main(s, *best - 1)))
            *best = i + 1;
    }
}

void sv_thread_states_init(struct sv_thread_states *s, const struct sv_trace *t)
{
    *s = (struct sv_thread_states){
        .trace = t,
        .of_track = sv_alloc(((size_t)t->n_tracks + 1) * sizeof(uint32_t)),
        .main_of = sv_alloc(((size_t)t->dict->n_tracks + 1) * sizeof(uint32_t)),
        .call_class = sv_call_classes(t->dict),
        .state_of = by_name(t, state_names, SV_N_WAIT_STATES),
        .cat_call = find(t, SV_CAT_SYSCALL),
        .cat_state = find(t, SV_CAT_THREAD_STATE),
        .cat_fault = find(t, SV_CAT_FAULT),
        .cat_uring = find(t, SV_CAT_IO_URING),
        .path = find(t, SV_WAIT_PATH),
        .reason = find(t, SV_WAIT_REASON),
        .lock = find(t, SV_WAIT_LOCK),
        .holder_tid = find(t, SV_WAIT_HOLDER_TID),
        .waker = find(t, SV_WAIT_WAKER),
        .waker_tid = find(t, SV_WAIT_WAKER_TID),
        .interrupt = find(t, SV_WAIT_INTERRUPT),
        .fd = find(t, "fd"),
    };
    find_threads(s);
    find_starts(s);
    find_mains(s);
}

void sv_thread_states_fini(struct sv_thread_states *s)
{
    sv_map_fini(&s->by_tid);
    free(s->threads);
    free(s->of_track);
    free(s->main_of);
    free(s->call_class);
    free(s->state_of);
    *s = (struct sv_thread_states){0};
}

uint32_t sv_thread_of(const struct sv_thread_states *s, sv_track track)
{
    if (track < s->trace->n_tracks && s->of_track[track])
        return s->of_track[track] - 1;
    sv_track above = thread_above(s->trace->dict, track);
    return above && above < s->trace->n_tracks && s->of_track[above] ? s->of_track[above] - 1
                                                                     : SV_NO_THREAD;
}

uint32_t sv_thread_by_tid(const struct sv_thread_states *s, uint32_t space, int64_t tid)
{
    const uint64_t *found = sv_map_find(&s->by_tid, tid_key(space, tid));
    return found ? (uint32_t)*found - 1 : SV_NO_THREAD;
}

uint32_t sv_thread_main(const struct sv_thread_states *s, sv_track process)
{
    return process < s->trace->dict->n_tracks && s->main_of[process] ? s->main_of[process] - 1
                                                                     : SV_NO_THREAD;
}

/* ---- calls ---- */

struct sv_text sv_call_path(const struct sv_thread_states *s, uint32_t call)
{
    struct sv_arg a;
    bool found = s->path && sv_trace_arg(s->trace, s->trace->slices.args[call], s->path, &a);
    return found && a.type == SV_ARG_TEXT ? (struct sv_text){a.text, a.size}
                                          : (struct sv_text){"", 0};
}

enum sv_file_kind sv_call_file_kind(const struct sv_thread_states *s, uint32_t call)
{
    return sv_file_kind_of(sv_call_path(s, call));
}

bool sv_state_reads_file(const struct sv_thread_states *s, uint32_t call)
{
    struct sv_text name = sv_dict_text(s->trace->dict, s->trace->slices.name[call]);
    return s->call_class[s->trace->slices.name[call]] == SV_CALL_TRANSFER &&
           (strncmp(name.bytes, "read", 4) == 0 || strncmp(name.bytes, "pread", 5) == 0) &&
           sv_call_file_kind(s, call) == SV_FILE_REGULAR;
}

bool sv_state_is_call(const struct sv_thread_states *s, uint64_t row)
{
    return s->cat_call && s->trace->slices.cat[row] == s->cat_call &&
           s->trace->slices.kind[row] == SV_SLICE;
}

bool sv_state_is_row(const struct sv_thread_states *s, uint64_t row)
{
    sv_str cat = s->trace->slices.cat[row];
    return cat && (cat == s->cat_state || cat == s->cat_call);
}

bool sv_state_has_file(const struct sv_thread_states *s, uint64_t row)
{
    return sv_state_is_call(s, row) || (s->cat_fault && s->trace->slices.cat[row] == s->cat_fault);
}

struct sv_text sv_last_data_file(const struct sv_thread_states *s, sv_track track, int64_t ts_ns)
{
    enum { LOOK_BACK = 64 };
    const struct sv_trace *t = s->trace;
    uint32_t thread = sv_thread_of(s, track);
    sv_track calls = thread != SV_NO_THREAD ? s->threads[thread].calls : 0;
    uint32_t row = calls ? sv_trace_row_from(t, calls, ts_ns) : 0,
             first = calls ? t->tracks[calls].first : 0;
    for (int i = 0; i < LOOK_BACK && row > first; i++) {
        row--;
        struct sv_text path = sv_state_has_file(s, row) ? sv_call_path(s, row)
                                                        : (struct sv_text){"", 0};
        if (path.len && sv_is_data_file(path))
            return path;
    }
    return (struct sv_text){"", 0};
}

static enum sv_wait_reason reason_of_transfer(enum sv_file_kind kind)
{
    switch (kind) {
    case SV_FILE_REGULAR: return SV_WAIT_FOR_DISK;
    case SV_FILE_PIPE: return SV_WAIT_FOR_PIPE;
    case SV_FILE_SOCKET: return SV_WAIT_FOR_SOCKET;
    case SV_FILE_TERMINAL: return SV_WAIT_FOR_TERMINAL;
    default: return SV_WAIT_FOR_OTHER;
    }
}

static enum sv_wait_reason reason_of_call(const struct sv_thread_states *s, uint32_t call)
{
    switch (s->call_class[s->trace->slices.name[call]]) {
    case SV_CALL_TRANSFER: return reason_of_transfer(sv_call_file_kind(s, call));
    case SV_CALL_FILE: return SV_WAIT_FOR_DISK;
    case SV_CALL_SOCKET: return SV_WAIT_FOR_SOCKET;
    case SV_CALL_FUTEX: return SV_WAIT_FOR_LOCK;
    case SV_CALL_POLL: return SV_WAIT_FOR_POLL;
    case SV_CALL_CHILD: return SV_WAIT_FOR_CHILD;
    case SV_CALL_SLEEP: return SV_WAIT_FOR_SLEEP;
    default: return SV_WAIT_FOR_OTHER;
    }
}

/* ---- pieces ---- */

/* Texts of arguments are no strings of the dictionary. */
static enum sv_wait_reason reason_called(const char *text, size_t len)
{
    for (unsigned i = 1; i < SV_N_WAIT_REASONS; i++)
        if (strlen(reason_names[i]) == len && memcmp(reason_names[i], text, len) == 0)
            return (enum sv_wait_reason)i;
    return SV_WAIT_NO_REASON;
}

static void set_reason(const struct sv_thread_states *s, struct sv_state_piece *p)
{
    struct sv_arg a;
    p->is_assumed = true;
    switch (p->state) {
    case SV_WAIT_STATE_RUNNING: p->reason = SV_WAIT_NO_REASON; return;
    case SV_WAIT_STATE_RUNNABLE:
    case SV_WAIT_STATE_PREEMPTED:
        p->reason = SV_WAIT_FOR_CPU;
        p->is_assumed = false;
        return;
    case SV_WAIT_STATE_STOPPED:
        p->reason = SV_WAIT_FOR_STOPPED;
        p->is_assumed = false;
        return;
    case SV_WAIT_NO_STATE:
        /* Without states: a call that can wait is a wait, everything else is not. */
        p->reason = p->call == SV_NO_ROW ? SV_WAIT_NO_REASON : reason_of_call(s, p->call);
        if (p->reason == SV_WAIT_FOR_OTHER)
            p->reason = SV_WAIT_NO_REASON;
        return;
    default: break;
    }
    if (s->reason && sv_trace_arg(s->trace, s->trace->slices.args[p->row], s->reason, &a) &&
        a.type == SV_ARG_TEXT) {
        p->reason = reason_called(a.text, a.size);
        p->is_assumed = p->reason == SV_WAIT_NO_REASON;
    }
    if (!p->is_assumed)
        return;
    if (p->state == SV_WAIT_STATE_IO)
        p->reason = p->call != SV_NO_ROW && !sv_state_is_call(s, p->call) ? SV_WAIT_FOR_FAULT
                                                                          : SV_WAIT_FOR_DISK;
    else
        p->reason = p->call == SV_NO_ROW ? SV_WAIT_FOR_OTHER : reason_of_call(s, p->call);
}

/* The page fault that a thread without a call waits for the disk in: a slice that is open, or an
 * instant shortly before. */
static uint32_t fault_at(const struct sv_thread_states *s, const struct sv_thread_rows *x,
                         int64_t from_ns)
{
    enum { SHORTLY_NS = 100000 };
    const struct sv_trace *t = s->trace;
    if (!x->faults || from_ns == INT64_MAX)
        return SV_NO_ROW;
    uint32_t row = sv_trace_row_from(t, x->faults, from_ns + 1);
    if (row == t->tracks[x->faults].first)
        return SV_NO_ROW;
    row--;
    bool is_open = t->slices.kind[row] == SV_SLICE && sv_trace_end_ns(t, row) > from_ns;
    bool is_near = t->slices.kind[row] != SV_SLICE &&
                   sv_sat_sub(from_ns, t->slices.ts_ns[row]) <= SHORTLY_NS;
    return s->cat_fault && t->slices.cat[row] == s->cat_fault && (is_open || is_near) ? row
                                                                                      : SV_NO_ROW;
}

/* The first row of a track that may reach into a window that begins at from_ns. */
static uint32_t first_row(const struct sv_trace *t, sv_track track, int64_t from_ns)
{
    uint32_t row = sv_trace_row_from(t, track, from_ns), first = t->tracks[track].first;
    /* What nests or has no duration may lie between; more than a few are no states or calls. */
    for (int back = 0; back < 8 && row > first; back++)
        row--;
    return row;
}

struct sv_state_cursor sv_state_window(const struct sv_thread_states *s, uint32_t thread,
                                       int64_t from_ns, int64_t to_ns)
{
    const struct sv_thread_rows *x = &s->threads[thread];
    struct sv_state_cursor c = {.states = s, .thread = x, .at_ns = from_ns, .to_ns = to_ns};
    if (x->state) {
        c.state = first_row(s->trace, x->state, from_ns);
        c.state_end = s->trace->tracks[x->state].end;
    }
    if (x->calls) {
        c.call = first_row(s->trace, x->calls, from_ns);
        c.call_end = s->trace->tracks[x->calls].end;
    }
    if (x->faults && s->cat_fault) {
        c.fault = first_row(s->trace, x->faults, from_ns);
        c.fault_end = s->trace->tracks[x->faults].end;
    }
    return c;
}

static bool is_of(const struct sv_trace *t, uint32_t row, sv_str cat)
{
    return t->slices.kind[row] == SV_SLICE && t->slices.cat[row] == cat;
}

/* The row of this category that is open at at_ns, SV_NO_ROW: none; *until_ns is lowered to the next
 * change. */
static uint32_t open_row(const struct sv_trace *t, uint32_t *row, uint32_t end, sv_str cat,
                         int64_t at_ns, int64_t *until_ns)
{
    while (*row < end && (!is_of(t, *row, cat) || sv_trace_end_ns(t, *row) <= at_ns))
        ++*row;
    if (*row == end)
        return SV_NO_ROW;
    int64_t from = t->slices.ts_ns[*row], to = sv_trace_end_ns(t, *row);
    if (from > at_ns) {
        *until_ns = from < *until_ns ? from : *until_ns;
        return SV_NO_ROW;
    }
    /* A state ends where the next one begins. */
    uint32_t next = *row + 1;
    if (next < end && t->slices.ts_ns[next] > at_ns && t->slices.ts_ns[next] < to &&
        is_of(t, next, cat))
        to = t->slices.ts_ns[next];
    *until_ns = to < *until_ns ? to : *until_ns;
    return *row;
}

bool sv_state_next(struct sv_state_cursor *c, struct sv_state_piece *p)
{
    const struct sv_thread_states *s = c->states;
    int64_t until = c->to_ns;
    if (c->at_ns >= c->to_ns)
        return false;
    *p = (struct sv_state_piece){.from_ns = c->at_ns};
    p->row = open_row(s->trace, &c->state, c->state_end, s->cat_state, c->at_ns, &until);
    p->call = open_row(s->trace, &c->call, c->call_end, s->cat_call, c->at_ns, &until);
    if (p->call == SV_NO_ROW && c->fault < c->fault_end)
        p->call = open_row(s->trace, &c->fault, c->fault_end, s->cat_fault, c->at_ns, &until);
    if (p->row != SV_NO_ROW)
        p->state = (enum sv_wait_state)s->state_of[s->trace->slices.name[p->row]];
    /* From the beginning of the state: a window may begin later. */
    if (p->state == SV_WAIT_STATE_IO && p->call == SV_NO_ROW)
        p->call = fault_at(s, c->thread, s->trace->slices.ts_ns[p->row]);
    p->to_ns = c->at_ns = until;
    set_reason(s, p);
    return true;
}

struct sv_state_piece sv_state_before(const struct sv_thread_states *s, uint32_t thread,
                                      int64_t ts_ns)
{
    const struct sv_trace *t = s->trace;
    const struct sv_thread_rows *x = &s->threads[thread];
    int64_t from = x->from_ns < ts_ns ? x->from_ns : ts_ns - 1;
    const sv_track rows[] = {x->state, x->calls};
    for (int i = 0; i < 2; i++) {
        if (!rows[i])
            continue;
        /* The nearest change before ts_ns: a row that begins or one that ends. */
        uint32_t row = sv_trace_row_from(t, rows[i], ts_ns), first = t->tracks[rows[i]].first;
        for (int back = 0; back < 8 && row > first; back++) {
            row--;
            int64_t begin = t->slices.ts_ns[row], end = sv_trace_end_ns(t, row);
            from = begin > from && begin < ts_ns ? begin : from;
            from = end > from && end < ts_ns ? end : from;
        }
    }
    struct sv_state_cursor c = sv_state_window(s, thread, from, ts_ns);
    struct sv_state_piece p = {
        .from_ns = from, .to_ns = ts_ns, .row = SV_NO_ROW, .call = SV_NO_ROW};
    for (struct sv_state_piece next; sv_state_next(&c, &next);)
        p = next;
    return p;
}

/* ---- wakers ---- */

/* What the arguments of a row say of the thread that ended a wait. */
struct sv_waker sv_call_waker(const struct sv_thread_states *s, uint32_t row)
{
    const struct sv_trace *t = s->trace;
    struct sv_waker w = {.thread = SV_NO_THREAD, .tid = -1, .name = {"", 0}};
    struct sv_arg a;
    uint32_t args = t->slices.args[row];
    if (s->waker && sv_trace_arg(t, args, s->waker, &a) && a.type == SV_ARG_TEXT)
        w.name = (struct sv_text){a.text, a.size};
    if (s->interrupt && sv_trace_arg(t, args, s->interrupt, &a)) {
        w.kind = SV_WAKER_INTERRUPT;
        return w;
    }
    if (w.name.len)
        w.kind = SV_WAKER_OUTSIDE;
    if (s->waker_tid && sv_trace_arg(t, args, s->waker_tid, &a) && a.type == SV_ARG_INT) {
        w.tid = a.i;
        w.thread = sv_thread_by_tid(s, t->dict->tracks[t->slices.track[row]].space, a.i);
        w.kind = w.thread != SV_NO_THREAD ? SV_WAKER_THREAD : SV_WAKER_OUTSIDE;
    }
    return w;
}

struct sv_waker sv_state_waker(const struct sv_thread_states *s, uint32_t row)
{
    const struct sv_trace *t = s->trace;
    uint32_t next = row + 1;
    if (next >= t->tracks[t->slices.track[row]].end || !is_of(t, next, s->cat_state))
        return (struct sv_waker){.thread = SV_NO_THREAD, .tid = -1, .name = {"", 0}};
    return sv_call_waker(s, next);
}

bool sv_waker_is_timer(const struct sv_waker *w)
{
    bool is_named = w->name.len == 5 && memcmp(w->name.bytes, "timer", 5) == 0;
    return w->kind == SV_WAKER_INTERRUPT && (is_named || !w->name.len);
}

/* A wait that a time limit ended is asked for again: the row of the last one, if the thread runs
 * for no longer than this before each of them. */
static uint32_t asked_again(const struct sv_thread_states *s, uint32_t row, int64_t run_most_ns)
{
    enum { TRIES = 64 };
    const struct sv_trace *t = s->trace;
    struct sv_waker w = sv_state_waker(s, row);
    uint32_t last = row, end = t->tracks[t->slices.track[row]].end;
    int64_t ran_ns = 0;
    struct sv_arg a, b;
    if (!s->reason || !sv_trace_arg(t, t->slices.args[row], s->reason, &a))
        return row;
    for (int i = 0; i < TRIES && sv_waker_is_timer(&w) && ++row < end && ran_ns <= run_most_ns;
         i++) {
        if (s->state_of[t->slices.name[row]] == SV_WAIT_STATE_RUNNING)
            ran_ns = sv_sat_add(ran_ns, t->slices.dur_ns[row]);
        if (sv_trace_arg(t, t->slices.args[row], s->reason, &b) && b.type == SV_ARG_TEXT &&
            b.size == a.size && memcmp(a.text, b.text, a.size) == 0) {
            w = sv_state_waker(s, last = row);
            ran_ns = 0;
        }
    }
    return last;
}

/* Who asks again at once waits for the same. An event loop does other things in little time. */
uint32_t sv_state_wait_ends(const struct sv_thread_states *s, const struct sv_state_piece *p,
                            bool is_awaited)
{
    enum { POLLS_AGAIN_NS = 50000, AGAIN_NS = 200000, AWAITED_NS = 1000000 };
    if (p->row == SV_NO_ROW || (p->reason != SV_WAIT_FOR_GIL && p->reason != SV_WAIT_FOR_LOCK &&
                                p->reason != SV_WAIT_FOR_POLL))
        return p->row;
    return asked_again(s, p->row,
                       p->reason == SV_WAIT_FOR_GIL    ? INT64_MAX
                       : is_awaited                    ? AWAITED_NS
                       : p->reason == SV_WAIT_FOR_POLL ? POLLS_AGAIN_NS
                                                       : AGAIN_NS);
}

uint32_t sv_state_request(const struct sv_thread_states *s, uint32_t thread, int64_t to_ns)
{
    sv_track track = s->threads[thread].uring;
    uint32_t row = track ? sv_trace_row_from(s->trace, track, to_ns) : 0;
    return track && row > s->trace->tracks[track].first ? row - 1 : SV_NO_ROW;
}

bool sv_states_are_of_ranks(const struct sv_thread_states *s, uint32_t one, uint32_t other)
{
    sv_track own = s->threads[one].process,
             its = other != SV_NO_THREAD ? s->threads[other].process : 0;
    if (!its || its == own)
        return false;
    int64_t mine = sv_rank_of_track(s->trace, own), rank = sv_rank_of_track(s->trace, its);
    return mine >= 0 && rank >= 0 && mine != rank;
}
