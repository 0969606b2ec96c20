/* Whom a group of waits is charged to, in names: the culprit with its function, file and lock, what
 * it does, and the chain. Called by explain/explain_waits.c and explain/explain_files.c. */
#include "explain/waits.h"

#include "core/base/mem.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const char *const sv_doing_words[SV_N_DOINGS] = {"computes",
                                                 "reads",
                                                 "writes",
                                                 "opens and looks up files",
                                                 "waits for pages",
                                                 "sleeps",
                                                 "waits for a CPU",
                                                 "waits for a device",
                                                 "works outside of this trace",
                                                 "waits in turn"};

/* Is it the one that is named: a thread, or any of a process? */
static bool is_named(const struct sv_ledger *l, uint32_t thread, uint32_t holder, bool is_process)
{
    return thread == holder ||
           (is_process && thread != SV_NO_THREAD && holder != SV_NO_THREAD &&
            l->states.threads[thread].process == l->states.threads[holder].process);
}

/* Is the group's culprit a process, not a thread? */
static bool is_of_process(const struct sv_wait_group *w, const struct sv_why_piece *p)
{
    return sv_is_of_loader(w->x->ledger, p) || w->class == SV_WHY_CHILD || w->class == SV_WHY_COMM;
}

/* Of a lock: where it is held, whatever the holder calls meanwhile. Else where the holder is, which
 * may wait in turn for the one who did the piece. */
static struct sv_text frame_for(const struct sv_wait_group *w, const struct sv_why_piece *p)
{
    const struct sv_ledger *l = w->x->ledger;
    uint32_t holder = sv_waits_holder(l, p), first = sv_why_first_edge(l, p->edge);
    struct sv_text held = {"", 0};
    if (w->class == SV_WHY_LOCK || w->class == SV_WHY_GIL)
        held = sv_why_released_in(l, first);
    if (held.len || is_named(l, p->thread, holder, is_of_process(w, p)) ||
        p->thread == SV_NO_THREAD)
        return held.len ? held : sv_why_frame(l, p);
    for (uint32_t e = p->edge; e != SV_NO_EDGE; e = l->edges[e].before) {
        const struct sv_lock_wait *wait = sv_why_edge_wait(l, e);
        if (l->edges[e].thread == holder && wait && wait->frame.len)
            return wait->frame;
    }
    return sv_why_released_in(l, first);
}

/* Of the pieces that one holder has: the function that has most of them. */
static struct sv_text main_frame(const struct sv_wait_group *w, uint32_t holder, size_t *piece)
{
    const struct sv_ledger *l = w->x->ledger;
    enum { OWN_PART = 10 };
    struct sv_why_sums frames = {0}, calls = {0}; /* functions; system calls without a stack */
    for (size_t i = 0; i < l->n_pieces; i++) {
        const struct sv_why_piece *p = &l->pieces[i];
        if (!sv_waits_has(w, i) || sv_waits_holder(l, p) != holder)
            continue;
        struct sv_text frame = frame_for(w, p);
        bool is_call = p->row != SV_NO_ROW && sv_state_is_call(&l->states, p->row) &&
                       frame.bytes ==
                           sv_dict_text(l->trace->dict, l->trace->slices.name[p->row]).bytes;
        if (frame.len)
            sv_why_sums_add(is_call ? &calls : &frames, sv_hash_bytes(frame.bytes, frame.len, 7),
                            (uint32_t)i, p->dur_ns);
    }
    const struct sv_why_sum *most = sv_why_sums_most(&frames), *call = sv_why_sums_most(&calls);
    if (!most || (call && most->ns < call->ns / OWN_PART))
        most = call;
    struct sv_text found = {"", 0};
    if (most) {
        *piece = most->piece;
        found = frame_for(w, &l->pieces[most->piece]);
    }
    sv_why_sums_fini(&frames);
    sv_why_sums_fini(&calls);
    return found;
}

/* Of a process: the name of its thread, unless the waiter is called the same ("MainThread"). */
static void name_of(const struct sv_wait_group *w, uint32_t thread, bool is_process, char *to,
                    size_t size)
{
    const struct sv_ledger *l = w->x->ledger;
    const struct sv_thread_rows *x = &l->states.threads[thread];
    const struct sv_track_info *tracks = l->trace->dict->tracks;
    uint32_t waiter = l->units[w->piece->unit].thread;
    bool says_nothing = waiter != SV_NO_THREAD && tracks[x->process].name &&
                        tracks[l->states.threads[waiter].track].name == tracks[x->track].name;
    sv_explain_name(l->trace, is_process && says_nothing ? x->process : x->track, to, size);
}

/* "computes", "reads data/a.bin" … */
static void what_it_does(const struct sv_wait_group *w, const struct sv_why_piece *p, char *to,
                         size_t size)
{
    struct sv_text path = sv_why_path(w->x->ledger, p);
    bool has_path = path.len && p->doing >= SV_DOING_READS && p->doing <= SV_DOING_FAULTS &&
                    p->doing != SV_DOING_NAMES;
    snprintf(to, size, "%s%s%s%.*s", sv_doing_words[p->doing], has_path ? " " : "",
             has_path && p->doing == SV_DOING_FAULTS ? "of " : "",
             has_path ? (int)(path.len < 150 ? path.len : 150) : 0, path.bytes);
}

void sv_culprit_where(const struct sv_culprit *c, char *to, size_t size)
{
    *to = 0;
    if (c->function[0] && c->file[0] && c->line)
        snprintf(to, size, " in %s() (%s:%" PRIu32 ")", c->function, c->file, c->line);
    else if (c->function[0] && c->file[0])
        snprintf(to, size, " in %s() (%s)", c->function, c->file);
    else if (c->function[0])
        snprintf(to, size, " in %s", c->function);
}

void sv_waits_tell_doing(const struct sv_wait_group *w, unsigned doing, char *to, size_t size)
{
    const struct sv_ledger *l = w->x->ledger;
    struct sv_why_piece p = *w->piece;
    p.doing = (uint8_t)doing;
    if (!w->last) {
        what_it_does(w, &p, to, size);
        return;
    }
    const struct sv_track_info *info =
        &l->trace->dict->tracks[l->states.threads[w->last->thread].track];
    struct sv_culprit its = SV_NOBODY;
    char name[96], does[200], where[200];
    bool is_process = info->pid != w->answer.culprit.pid;
    name_of(w, w->last->thread, is_process, name, sizeof name);
    what_it_does(w, w->last, does, sizeof does);
    struct sv_text frame = sv_why_frame(l, w->last);
    if (frame.len && w->last->doing != SV_DOING_RUNS)
        sv_culprit_frame(&its, frame);
    sv_culprit_where(&its, where, sizeof where);
    snprintf(to, size, "waits in turn for %s%s (%s %" PRId64 "), which %s%s",
             is_process ? "" : "thread ", name, is_process ? "pid" : "tid",
             is_process ? info->pid : info->tid, does, where);
}

static void name_lock(struct sv_wait_group *w, const struct sv_why_piece *p)
{
    const struct sv_ledger *l = w->x->ledger;
    const struct sv_lock_wait *wait = sv_why_edge_wait(l, sv_why_first_edge(l, p->edge));
    struct sv_culprit *c = &w->answer.culprit;
    if (!wait || (w->class != SV_WHY_LOCK && w->class != SV_WHY_GIL))
        return;
    if (wait->is_gil)
        snprintf(c->lock, sizeof c->lock, "the interpreter lock");
    else if (wait->lock_name.len)
        snprintf(c->lock, sizeof c->lock, "%.*s", (int)wait->lock_name.len, wait->lock_name.bytes);
    else if (wait->lock)
        snprintf(c->lock, sizeof c->lock, "0x%" PRIx64, wait->lock);
}

/* One line for each edge of the piece that stands for the group, then what the last one does. */
static void tell_chain(struct sv_wait_group *w, const struct sv_why_piece *p)
{
    const struct sv_ledger *l = w->x->ledger;
    struct sv_answer *a = &w->answer;
    uint32_t edges[SV_EXPLAIN_LINKS - 1];
    size_t n = 0;
    for (uint32_t e = p->edge; e != SV_NO_EDGE && n < SV_EXPLAIN_LINKS - 1; e = l->edges[e].before)
        edges[n++] = e;
    for (size_t i = n; i-- > 0;) {
        const struct sv_why_edge *e = &l->edges[edges[i]];
        char from[96], to[96] = "somebody outside of this trace";
        sv_explain_name(l->trace, l->states.threads[e->thread].track, from, sizeof from);
        if (e->to != SV_NO_THREAD)
            sv_explain_name(l->trace, l->states.threads[e->to].track, to, sizeof to);
        struct sv_text frame = sv_why_released_in(l, edges[i]);
        snprintf(a->chain[a->n_chain++], sizeof *a->chain, "%.40s waits for %.40s (%s%s%.*s)", from,
                 to, e->by_flow ? "flow" : sv_wait_reason_name(e->reason),
                 frame.len ? ", released in " : "", (int)(frame.len < 60 ? frame.len : 60),
                 frame.bytes);
    }
    char who[96] = "somebody", does[200];
    if (p->thread != SV_NO_THREAD)
        sv_explain_name(l->trace, l->states.threads[p->thread].track, who, sizeof who);
    what_it_does(w, p, does, sizeof does);
    snprintf(a->chain[a->n_chain++], sizeof *a->chain, "%.40s %.110s", who, does);
}

/* Who did most of what the holder has: of its own process, where it may only pass on what another
 * thread makes, as the feeder of a queue does; or of all whom it waits for in turn. */
static struct sv_why_sum who_did(const struct sv_wait_group *w, uint32_t holder, bool of_all)
{
    const struct sv_ledger *l = w->x->ledger;
    struct sv_why_sums by = {0};
    for (size_t i = 0; i < l->n_pieces; i++) {
        const struct sv_why_piece *p = &l->pieces[i];
        if (p->thread != SV_NO_THREAD && sv_waits_has(w, i) &&
            (of_all ? sv_waits_holder(l, p) == holder && p->doing != SV_DOING_AWAY
                    : is_named(l, p->thread, holder, true)))
            sv_why_sums_add(&by, p->thread, (uint32_t)i, p->dur_ns);
    }
    const struct sv_why_sum *most = sv_why_sums_most(&by);
    struct sv_why_sum who = most ? *most : (struct sv_why_sum){.key = holder};
    sv_why_sums_fini(&by);
    return who;
}

/* The culprit, and who did most for it. */
static void name_holder(struct sv_wait_group *w, uint32_t holder, bool is_process)
{
    const struct sv_ledger *l = w->x->ledger;
    struct sv_culprit *c = &w->answer.culprit;
    uint32_t named = is_process ? (uint32_t)who_did(w, holder, false).key : holder;
    const struct sv_track_info *info = &l->trace->dict->tracks[l->states.threads[named].track];
    c->kind = is_process ? "process" : "thread";
    c->pid = info->pid;
    c->tid = info->tid;
    name_of(w, named, is_process, c->name, sizeof c->name);
    struct sv_why_sum last = who_did(w, holder, true);
    if (last.n && !is_named(l, (uint32_t)last.key, holder, is_process))
        w->last = &l->pieces[last.piece];
}

/* The file that has most of it; where none has much, the folder, which ends in a slash. */
static void name_path(struct sv_wait_group *w)
{
    const struct sv_ledger *l = w->x->ledger;
    struct sv_why_sums folders = {0};
    const struct sv_why_sum *most = sv_why_sums_most(&w->paths);
    struct sv_text path = {"", 0};
    if (most && most->ns > w->ns / 4)
        path = sv_why_path(l, &l->pieces[most->piece]);
    for (size_t i = 0; !path.len && i < w->paths.n; i++) {
        const struct sv_why_sum *x = &w->paths.items[i];
        struct sv_text its = sv_why_path(l, &l->pieces[x->piece]);
        const char *slash = its.len ? memrchr(its.bytes, '/', its.len) : NULL;
        if (slash)
            sv_why_sums_add(&folders, sv_hash_bytes(its.bytes, (size_t)(slash - its.bytes), 7),
                            x->piece, x->ns);
    }
    most = sv_why_sums_most(&folders);
    if (most && most->ns > w->ns / 2) {
        path = sv_why_path(l, &l->pieces[most->piece]);
        path.len = (uint32_t)((const char *)memrchr(path.bytes, '/', path.len) + 1 - path.bytes);
    }
    sv_why_sums_fini(&folders);
    snprintf(w->answer.culprit.path, sizeof w->answer.culprit.path, "%.*s", (int)path.len,
             path.bytes);
}

void sv_waits_name(struct sv_wait_group *w)
{
    const struct sv_ledger *l = w->x->ledger;
    const struct sv_why_sum *most = sv_why_sums_most(&w->holders);
    struct sv_culprit *c = &w->answer.culprit;
    if (!most)
        return;
    size_t piece = most->piece;
    struct sv_text frame = main_frame(w, (uint32_t)most->key, &piece);
    const struct sv_why_piece *p = &l->pieces[piece];
    uint32_t holder = (uint32_t)most->key;
    w->piece = p;
    /* Without states and a flow only the waiter is known, which is nobody's culprit. */
    bool is_victim = p->edge == SV_NO_EDGE && p->is_assumed &&
                     (w->class == SV_WHY_LOCK || w->class == SV_WHY_GIL ||
                      w->class == SV_WHY_DATA || w->class == SV_WHY_CHILD ||
                      w->class == SV_WHY_PIPE || w->class == SV_WHY_SOCKET);
    if (is_victim) {
        snprintf(w->waits_in, sizeof w->waits_in, "%.*s", (int)(frame.len < 90 ? frame.len : 90),
                 frame.bytes);
        frame = (struct sv_text){"", 0};
        holder = SV_NO_THREAD;
    }
    if (holder != SV_NO_THREAD)
        name_holder(w, holder, is_of_process(w, p));
    if (frame.len)
        sv_culprit_frame(c, frame);
    name_lock(w, p);
    name_path(w);
    tell_chain(w, p);
}
