/* FxT traces of StarPU (prof_file_*): what its run-time system recorded, before starpu_fxt_tool
 * converts it.
 *
 * Opened through the table of formats. The file is a word, then blocks (size, kind), one of which
 * holds the events: time, thread, code and count of the parameters, parameters. Numbers of codes
 * and meanings of parameters are those of StarPU 1.3 (its src/common/fxt.h). The bytes are decoded
 * here and not by libfxt, which crashed on some damaged files, did not return from others, prints
 * by itself, and is under the GPL. Tasks wait until all are read, because a dependency may be
 * recorded after the task that it comes from. Times are CLOCK_MONOTONIC. */
#include "core/base/map.h"
#include "core/base/mem.h"
#include "core/base/search.h"
#include "core/serving/starpu_job.h"
#include "formats/lines.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAGIC_BYTES = 4,
    BLOCK_BYTES = 16,
    EVENT_BYTES = 24,
    PARAMS_MAX = 254,
    HEAD_BYTES = 44,
    BLOCK_INFO = 1,
    BLOCK_INFO_MACHINE = 0x10,
    BLOCK_USER_64 = 0x201,
    ROWS_MAX = 1 << 16,
    OPEN_MAX = 32, /* more than there are states */
    JOBS_MAX = 1 << 21,
    EDGES_MAX = 1 << 22,
    COPIES_MAX = 1 << 16,
    FLOWS_MAX = 4096
};

enum code {
    WORKER_INIT = 0x5100,
    TASK_BEGIN = 0x5102,
    TASK_END = 0x5103,
    JOB_PUSH = 0x5104,
    JOB_POP = 0x5105,
    TASK_COUNT = 0x5106,
    TASK_DEPENDS = 0x5113,
    STEALING = 0x5115,
    DEINIT_BEGIN = 0x5116,
    SLEEP_BEGIN = 0x5118,
    TASK_SUBMIT = 0x511a,
    MODEL_NAME = 0x511c,
    USED_MEMORY = 0x512a,
    TASK_NAME = 0x512b,
    COPY_BEGIN = 0x5133,
    COPY_END = 0x5134,
    PROGRESS_END = 0x5138,
    USER_EVENT = 0x5139,
    TEXT_EVENT = 0x513c,
    THREAD_EVENT = 0x513d,
    STARPU_FIRST = 0x5100,
    STARPU_LAST = 0x51ff,
    FXT_OWN_FIRST = 0xff00, /* set-up, calibration, threads */
    FXT_OWN_START = 0x320
};

/* From one code to another a thread is in a state; `who`: the parameter with the thread, or with
 * the worker. */
static const struct state {
    uint16_t begin, end;
    uint8_t begin_who, end_who;
    bool is_worker;
    const char *name;
} states[] = {
    {0x5100, 0x5101, 6, 0, false, "Initializing"},
    {0x5107, 0x5108, 1, 1, false, "Fetching input"},
    {0x5109, 0x5110, 1, 1, false, "Pushing output"},
    {0x5116, 0x5117, 0, 1, false, "Deinitializing"},
    {0x5118, 0x5119, 0, 0, false, "Sleeping"},
    {0x5120, 0x5121, 0, 0, false, "User code"},
    {0x5123, 0x5124, 1, 1, false, "Callback"},
    {0x5127, 0x5128, 1, 1, false, "Allocating"},
    {0x5129, 0x5130, 1, 1, false, "Allocating (reuse)"},
    {0x5131, 0x5132, 2, 2, false, "Reclaiming memory"},
    {0x5137, 0x5138, 1, 1, false, "Progressing"},
    {0x5154, 0x5155, 1, 1, false, "Unpartitioning"},
    {0x5156, 0x5157, 1, 1, false, "Freeing"},
    {0x5158, 0x5159, 1, 1, false, "Writing back"},
    {0x515c, 0x515d, 1, 1, false, "Writing back (asynchronous)"},
    {0x5160, 0x5161, 0, 0, false, "Hypervisor"},
    {0x5164, 0x5165, 0, 0, false, "Scheduling"},
    {0x5166, 0x5167, 0, 0, false, "Pushing a task"},
    {0x5168, 0x5169, 0, 0, false, "Executing"},
    {0x516e, 0x516f, 0, 0, false, "Submitting a task"},
    {0x5170, 0x5171, 0, 0, false, "Building a task"},
    {0x5178, 0x5179, 1, 0, false, "Waiting for a task"},
    {0x517a, 0x517b, 0, 0, false, "Waiting for all tasks"},
    {0x517e, 0x517f, 1, 1, true, "Fetching input"},
    {0x5180, 0x5181, 0, 0, false, "Throttled"},
};
enum { N_STATES = sizeof states / sizeof *states };
_Static_assert((int)N_STATES <= (int)OPEN_MAX, "each state is open once at most");

struct open_state {
    const char *name;
    int64_t ts_ns;
};

/* A worker, or another thread. */
struct row {
    sv_track states;
    struct open_state open[OPEN_MAX];
    size_t n_open;
};

struct job {
    uint64_t id;
    sv_str name, model, arch;
    sv_track track; /* of its worker; 0: it never started */
    uint64_t worker, order, context, node, bytes, footprint;
    int64_t submit_ns, start_ns, end_ns, priority;
    bool is_submitted, has_ended;
};

struct edge {
    uint64_t from, to; /* job ids */
};

struct copy {
    uint64_t from, to, bytes, handle, prefetch;
    int64_t ts_ns;
    uint64_t next_free; /* of a place that is not used: the next one, + 1 */
};

struct event {
    int64_t ts_ns;
    uint64_t code;
    size_t n;
    uint64_t p[PARAMS_MAX];
};

struct fxt {
    struct sv_lines lines;
    struct event now;
    uint64_t left; /* bytes of the block of events; UINT64_MAX: to the end of the file */
    bool is_inside, is_begun, has_events;
    sv_track top;
    struct sv_map worker_of; /* thread → worker + 1 */
    struct sv_map by_place;  /* worker or thread → index + 1 in rows */
    struct row *rows;
    size_t n_rows, cap_rows, at_row;
    struct sv_map by_id; /* → index + 1 in jobs */
    struct job *jobs;
    size_t n_jobs, cap_jobs, at_job;
    struct edge *edges; /* by `from`, the other by `to`: sorted at the end */
    struct edge *edges_to;
    size_t n_edges, cap_edges;
    bool is_sorted;
    struct sv_map by_copy; /* number of the transfer → index + 1 in copies */
    struct copy *copies;
    size_t n_copies, cap_copies, n_under_way;
    uint64_t free_copy; /* index + 1 */
    int64_t n_ready, n_submitted;
};

/* ---- bytes ---- */

static uint64_t number_at(const uint8_t *p, size_t n, bool is_big)
{
    uint64_t v = 0;
    for (size_t i = 0; i < n; i++)
        v = v << 8 | p[is_big ? i : n - 1 - i];
    return v;
}

static uint64_t u64_at(const uint8_t *p)
{
    return number_at(p, 8, false);
}

static bool is_head(const uint8_t *h, size_t n, bool is_big)
{
    return n >= HEAD_BYTES && memcmp(h, "\0\0\0\2", MAGIC_BYTES) == 0 &&
           number_at(h + 12, 8, is_big) == BLOCK_INFO &&
           number_at(h + 28, 8, is_big) == BLOCK_INFO_MACHINE &&
           number_at(h + 4, 8, is_big) >= BLOCK_BYTES + number_at(h + 20, 8, is_big);
}

static int probe(const uint8_t *head, size_t n)
{
    return is_head(head, n, false) || is_head(head, n, true) ? 100 : 0;
}

static void damage(struct fxt *s, const char *what, const char *then)
{
    sv_report_add(s->lines.source.report, SV_DAMAGE, what, 1, (int64_t)s->lines.in->pos, "%s",
                  then);
}

/* Over bytes that nobody looks at; the input may end before. */
static int skip(struct fxt *s, uint64_t n, struct sv_err *err)
{
    struct sv_input *in = s->lines.in;
    while (n > 0) {
        int more = sv_input_need(in, 1, err);
        if (more < 0)
            return more;
        if (more == 0) {
            damage(s, "trace that is cut off", "a block is longer than the file");
            s->lines.is_at_end = true;
            return 0;
        }
        size_t step = in->len < n ? in->len : (size_t)n;
        sv_input_skip(in, step);
        n -= step;
    }
    return 0;
}

/* ---- rows ---- */

static sv_track child(struct fxt *s, sv_track parent, const char *word, uint64_t number)
{
    char name[64];
    int n = snprintf(name, sizeof name, "%s %llu", word, (unsigned long long)number);
    return sv_lines_group(&s->lines, parent, SV_TRACK_CUSTOM, name, (size_t)n);
}

static sv_track worker_track(struct fxt *s, uint64_t worker)
{
    return child(s, s->top, "Worker", worker);
}

/* NULL: more than any machine has. */
static struct row *row_of(struct fxt *s, uint64_t who, bool is_worker)
{
    const uint64_t *worker = is_worker ? NULL : sv_map_find(&s->worker_of, who);
    bool is_new;
    if (worker) {
        who = *worker - 1;
        is_worker = true;
    }
    uint64_t key = sv_mix64(who * 2 + is_worker);
    const uint64_t *found = sv_map_find(&s->by_place, key);
    if (found)
        return &s->rows[*found - 1];
    if (s->n_rows == ROWS_MAX)
        return NULL;
    s->rows = sv_grow(s->rows, &s->cap_rows, s->n_rows + 1, sizeof *s->rows);
    sv_track t = is_worker
                     ? sv_lines_group(&s->lines, worker_track(s, who), SV_TRACK_CUSTOM, "states", 6)
                     : child(s, sv_lines_group(&s->lines, s->top, SV_TRACK_CUSTOM, "others", 6),
                             "thread", who);
    s->rows[s->n_rows++] = (struct row){.states = t};
    *sv_map_add(&s->by_place, key, &is_new) = s->n_rows;
    return &s->rows[s->n_rows - 1];
}

/* ---- states ---- */

static void put_state(struct fxt *s, struct sv_batch *b, const struct row *r,
                      const struct open_state *o, int64_t end_ns)
{
    struct sv_event *e = sv_put_event(&s->lines, b, SV_SLICE, o->ts_ns, r->states,
                                      sv_dict_cstr(s->lines.dict, o->name), "state");
    e->dur_ns = end_ns > o->ts_ns ? end_ns - o->ts_ns : 0;
}

/* Ends the innermost state of this name; false: there is none. */
static bool end_state(struct fxt *s, struct sv_batch *b, struct row *r, const char *name)
{
    for (size_t i = r->n_open; i-- > 0;)
        if (strcmp(r->open[i].name, name) == 0) {
            put_state(s, b, r, &r->open[i], s->now.ts_ns);
            memmove(&r->open[i], &r->open[i + 1], (--r->n_open - i) * sizeof *r->open);
            return true;
        }
    return false;
}

static bool begin_state(struct fxt *s, struct sv_batch *b, const struct state *x)
{
    const struct event *v = &s->now;
    if (v->n <= x->begin_who)
        return sv_lines_bad(&s->lines, "an event with all its parameters");
    struct row *r = row_of(s, v->p[x->begin_who], x->is_worker);
    if (!r)
        return sv_lines_bad(&s->lines, "fewer threads");
    /* Not every end is recorded: who falls asleep no longer looks for work, who goes away is awake,
     * and what begins once more has ended. */
    if (v->code == SLEEP_BEGIN || v->code == DEINIT_BEGIN)
        end_state(s, b, r, v->code == SLEEP_BEGIN ? "Scheduling" : "Sleeping");
    end_state(s, b, r, x->name);
    r->open[r->n_open++] = (struct open_state){x->name, v->ts_ns};
    return true;
}

static bool finish_state(struct fxt *s, struct sv_batch *b, const struct state *x)
{
    const struct event *v = &s->now;
    if (v->n <= x->end_who)
        return sv_lines_bad(&s->lines, "an event with all its parameters");
    struct row *r = row_of(s, v->p[x->end_who], x->is_worker);
    if (r && v->code == PROGRESS_END) /* as above: OpenCL's workers wake so */
        end_state(s, b, r, "Sleeping");
    /* StarPU says several times that it ends to make progress. */
    if (r && !end_state(s, b, r, x->name) && v->code != PROGRESS_END)
        sv_report_add(s->lines.source.report, SV_SKIPPED, "end of a state that did not begin", 1,
                      (int64_t)s->lines.pos, "%s", x->name);
    return true;
}

/* ---- tasks ---- */

static sv_str text_from(struct fxt *s, size_t first)
{
    const struct event *v = &s->now;
    char text[PARAMS_MAX * 8];
    size_t len = 0;
    for (size_t i = first; i < v->n; i++)
        for (size_t k = 0; k < 8; k++) {
            char c = (char)(v->p[i] >> 8 * k);
            if (c == '\0')
                return sv_dict_str(s->lines.dict, text, len);
            text[len++] = c;
        }
    return sv_dict_str(s->lines.dict, text, len);
}

/* NULL: too many. The pointer holds until the next call. */
static struct job *job_of(struct fxt *s, uint64_t id)
{
    bool is_new;
    const uint64_t *found = sv_map_find(&s->by_id, id);
    if (found)
        return &s->jobs[*found - 1];
    if (s->n_jobs == JOBS_MAX) {
        sv_report_add(s->lines.source.report, SV_SKIPPED, "task past the first 2 million", 1,
                      s->lines.pos, NULL);
        return NULL;
    }
    SV_APPEND(s->jobs, s->n_jobs, s->cap_jobs) = (struct job){.id = id};
    *sv_map_add(&s->by_id, id, &is_new) = s->n_jobs;
    return &s->jobs[s->n_jobs - 1];
}

static void begin_task(struct fxt *s, struct job *j)
{
    const struct event *v = &s->now;
    if (j->track) { /* on several workers at once: the first one is shown */
        sv_report_add(s->lines.source.report, SV_SKIPPED, "further start of a task", 1,
                      s->lines.pos, "parallel tasks are shown on the worker that began");
        return;
    }
    j->context = v->p[1];
    j->worker = v->p[2];
    j->node = v->p[3];
    j->track = worker_track(s, j->worker);
    j->start_ns = v->ts_ns;
    if (v->p[4] == 1)
        j->name = text_from(s, 5);
}

static void finish_task(struct fxt *s, struct job *j)
{
    const struct event *v = &s->now;
    if (!j->track || v->p[3] != j->worker || j->has_ended) {
        sv_report_add(s->lines.source.report, SV_SKIPPED, "end of a task that did not begin there",
                      1, s->lines.pos, NULL);
        return;
    }
    j->bytes = v->p[1];
    j->footprint = v->p[2];
    j->arch = text_from(s, 5);
    j->end_ns = v->ts_ns;
    j->has_ended = true;
}

static bool on_task(struct fxt *s)
{
    const struct event *v = &s->now;
    size_t least = v->code == TASK_SUBMIT                          ? 7
                   : v->code == TASK_NAME || v->code == MODEL_NAME ? 2
                                                                   : 5;
    if (v->n < least)
        return sv_lines_bad(&s->lines, "an event with all its parameters");
    struct job *j = job_of(s, v->p[0]);
    if (!j)
        return true;
    switch (v->code) {
    case TASK_BEGIN: begin_task(s, j); break;
    case TASK_END: finish_task(s, j); break;
    case TASK_NAME: j->name = text_from(s, 1); break;
    case MODEL_NAME: j->model = text_from(s, 1); break;
    default: /* TASK_SUBMIT */
        j->is_submitted = true;
        j->submit_ns = v->ts_ns;
        j->order = v->p[3];
        j->priority = (int32_t)v->p[4];
    }
    return true;
}

static bool on_dependency(struct fxt *s)
{
    if (s->now.n < 2)
        return sv_lines_bad(&s->lines, "two tasks of a dependency");
    if (s->n_edges == EDGES_MAX) {
        sv_report_add(s->lines.source.report, SV_SKIPPED, "dependency past the first 4 million", 1,
                      s->lines.pos, NULL);
        return true;
    }
    SV_APPEND(s->edges, s->n_edges, s->cap_edges) = (struct edge){s->now.p[0], s->now.p[1]};
    return true;
}

/* ---- transfers ---- */

static bool begin_copy(struct fxt *s)
{
    const struct event *v = &s->now;
    bool is_new;
    if (v->n < 4)
        return sv_lines_bad(&s->lines, "an event with all its parameters");
    if (s->n_under_way == COPIES_MAX && !sv_map_find(&s->by_copy, v->p[3]))
        return sv_lines_bad(&s->lines, "fewer transfers that are under way at once");
    uint64_t *at = sv_map_add(&s->by_copy, v->p[3], &is_new);
    if (is_new && s->free_copy) {
        *at = s->free_copy;
        s->free_copy = s->copies[*at - 1].next_free;
    } else if (is_new) {
        s->copies = sv_grow(s->copies, &s->cap_copies, s->n_copies + 1, sizeof *s->copies);
        *at = ++s->n_copies;
    }
    s->n_under_way += is_new;
    s->copies[*at - 1] = (struct copy){.from = v->p[0],
                                       .to = v->p[1],
                                       .bytes = v->p[2],
                                       .prefetch = v->n > 4 ? v->p[4] : 0,
                                       .handle = v->n > 5 ? v->p[5] : 0,
                                       .ts_ns = v->ts_ns};
    return true;
}

static bool finish_copy(struct fxt *s, struct sv_batch *b)
{
    const struct event *v = &s->now;
    const uint64_t *at = v->n > 3 ? sv_map_find(&s->by_copy, v->p[3]) : NULL;
    if (!at)
        return sv_lines_bad(&s->lines, "the start of a transfer before its end");
    struct copy c = s->copies[*at - 1];
    sv_add_uint(&s->lines, b, "from", c.from);
    sv_add_uint(&s->lines, b, "to", c.to);
    sv_add_uint(&s->lines, b, "bytes", c.bytes);
    sv_add_uint(&s->lines, b, "prefetch", c.prefetch);
    if (c.handle)
        sv_add_pointer(&s->lines, b, "handle", c.handle);
    sv_track t = sv_lines_group(&s->lines, s->top, SV_TRACK_CUSTOM, "transfers", 9);
    struct sv_event *e = sv_put_event(&s->lines, b, SV_SLICE, c.ts_ns, t,
                                      sv_dict_cstr(s->lines.dict, "copy"), "transfer");
    e->dur_ns = v->ts_ns > c.ts_ns ? v->ts_ns - c.ts_ns : 0;
    uint64_t gone = *at;
    sv_map_remove(&s->by_copy, v->p[3]);
    s->copies[gone - 1].next_free = s->free_copy;
    s->free_copy = gone;
    s->n_under_way--;
    return true;
}

/* ---- counters and marks ---- */

static void put_count(struct fxt *s, struct sv_batch *b, const char *name, int64_t n)
{
    sv_put_counter(&s->lines, b, sv_lines_counter(&s->lines, s->top, name, "tasks"), s->now.ts_ns,
                   (double)n);
}

static bool on_memory(struct fxt *s, struct sv_batch *b)
{
    const struct event *v = &s->now;
    char name[64];
    if (v->n < 2 || v->p[0] > 1023)
        return sv_lines_bad(&s->lines, "a memory node and its bytes");
    snprintf(name, sizeof name, "memory used on node %u", (unsigned)v->p[0]);
    sv_put_counter(&s->lines, b, sv_lines_counter(&s->lines, s->top, name, "bytes"), v->ts_ns,
                   (double)v->p[1]);
    return true;
}

static bool on_mark(struct fxt *s, struct sv_batch *b)
{
    const struct event *v = &s->now;
    bool is_text = v->code == TEXT_EVENT || v->code == THREAD_EVENT;
    size_t who = v->code == USER_EVENT ? 1 : 0;
    if (v->n < (v->code == TEXT_EVENT ? 1 : 2))
        return sv_lines_bad(&s->lines, "an event with all its parameters");
    const struct row *r = v->code == TEXT_EVENT ? NULL : row_of(s, v->p[who], v->code == STEALING);
    sv_str name =
        is_text ? text_from(s, v->code == THREAD_EVENT)
                : sv_dict_cstr(s->lines.dict, v->code == STEALING ? "work stealing" : "user event");
    if (v->code == STEALING)
        sv_add_uint(&s->lines, b, "victim", v->p[1]);
    else if (!is_text)
        sv_add_uint(&s->lines, b, "code", v->p[0]);
    sv_put_event(&s->lines, b, SV_INSTANT, v->ts_ns, r ? r->states : s->top, name, "event");
    return true;
}

/* ---- one event ---- */

static bool learn_worker(struct fxt *s)
{
    static const char *const kinds[] = {"CPU", "CUDA", "OpenCL"};
    const struct event *v = &s->now;
    bool is_new;
    char about[48];
    if (v->n < 7 || v->p[1] >= ROWS_MAX)
        return sv_lines_bad(&s->lines, "a worker's number and thread");
    *sv_map_add(&s->worker_of, v->p[6], &is_new) = v->p[1] + 1;
    uint64_t kind = v->p[0] - 0x101;
    int n = snprintf(about, sizeof about, "%s %u, memory node %u", kind < 3 ? kinds[kind] : "other",
                     (unsigned)v->p[2], (unsigned)v->p[3]);
    char key[48];
    snprintf(key, sizeof key, "starpu worker %u", (unsigned)v->p[1]);
    sv_dict_set_meta(s->lines.dict, key, about, (size_t)n, false);
    return true;
}

static bool on_state(struct fxt *s, struct sv_batch *b)
{
    for (size_t i = 0; i < N_STATES; i++) {
        if (states[i].begin == s->now.code)
            return begin_state(s, b, &states[i]);
        if (states[i].end == s->now.code)
            return finish_state(s, b, &states[i]);
    }
    if ((s->now.code < STARPU_FIRST || s->now.code > STARPU_LAST) && s->now.code < FXT_OWN_FIRST &&
        s->now.code != FXT_OWN_START)
        sv_report_add(s->lines.source.report, SV_SKIPPED, "event that is not StarPU's", 1,
                      s->lines.pos, NULL);
    return true; /* StarPU's own others: locks, handles, what only its scheduler's picture needs */
}

static bool on_event(struct fxt *s, struct sv_batch *b)
{
    switch (s->now.code) {
    case TASK_BEGIN:
    case TASK_END:
    case TASK_NAME:
    case MODEL_NAME:
    case TASK_SUBMIT: return on_task(s);
    case TASK_DEPENDS: return on_dependency(s);
    case JOB_PUSH: put_count(s, b, "ready tasks", ++s->n_ready); return true;
    case TASK_COUNT: put_count(s, b, "submitted tasks", ++s->n_submitted); return true;
    case JOB_POP:
        put_count(s, b, "ready tasks", --s->n_ready);
        put_count(s, b, "submitted tasks", --s->n_submitted);
        return true;
    case USED_MEMORY: return on_memory(s, b);
    case COPY_BEGIN: return begin_copy(s);
    case COPY_END: return finish_copy(s, b);
    case STEALING:
    case USER_EVENT:
    case TEXT_EVENT:
    case THREAD_EVENT: return on_mark(s, b);
    case WORKER_INIT: return learn_worker(s) && on_state(s, b);
    default: return on_state(s, b);
    }
}

/* ---- blocks ---- */

/* Nothing after an event without a length can be found again. */
static int lose_block(struct fxt *s, const char *what, struct sv_err *err)
{
    damage(s, what, "the rest of its block is not read");
    s->is_inside = false;
    return skip(s, s->left, err);
}

static int read_event(struct fxt *s, struct sv_batch *b, struct sv_err *err)
{
    struct sv_input *in = s->lines.in;
    struct event *v = &s->now;
    int more = sv_input_need(in, EVENT_BYTES, err);
    if (more < 0)
        return more;
    if (more == 0 && in->len == 0 && s->left == UINT64_MAX) {
        s->lines.is_at_end = true;
        return 0;
    }
    if (more == 0 || s->left < EVENT_BYTES)
        return lose_block(s, "event that is cut off", err);
    uint64_t tick = u64_at(in->data), code = u64_at(in->data + 16);
    if ((code & 0xff) == 0 || tick > INT64_MAX)
        return lose_block(s, "damaged event", err);
    v->n = (size_t)(code & 0xff) - 1;
    size_t size = EVENT_BYTES + v->n * 8;
    more = sv_input_need(in, size, err);
    if (more < 0)
        return more;
    if (more == 0 || s->left < size)
        return lose_block(s, "event that is cut off", err);
    v->ts_ns = (int64_t)tick;
    v->code = code >> 8;
    for (size_t i = 0; i < v->n; i++)
        v->p[i] = u64_at(in->data + EVENT_BYTES + i * 8);
    s->lines.pos = (int64_t)in->pos;
    s->lines.why = NULL;
    if (!on_event(s, b)) {
        sv_batch_drop_args(b);
        damage(s, s->lines.kind->damaged, s->lines.why ? s->lines.why : "");
    }
    sv_input_skip(in, size);
    s->left -= s->left == UINT64_MAX ? 0 : size;
    return 0;
}

static int read_block(struct fxt *s, struct sv_err *err)
{
    struct sv_input *in = s->lines.in;
    int more = sv_input_need(in, BLOCK_BYTES, err);
    if (more < 0)
        return more;
    if (more == 0) {
        if (in->len > 0 || !s->has_events)
            damage(s, "trace that is cut off",
                   s->has_events ? "after its events" : "it has no events");
        s->lines.is_at_end = true;
        return 0;
    }
    uint64_t size = u64_at(in->data), kind = u64_at(in->data + 8);
    if (kind == BLOCK_USER_64 && (size == 0 || size >= BLOCK_BYTES)) {
        /* Its size is written when the program ends. */
        s->left = size ? size - BLOCK_BYTES : UINT64_MAX;
        s->is_inside = s->has_events = true;
        sv_input_skip(in, BLOCK_BYTES);
        return 0;
    }
    if (size < BLOCK_BYTES) {
        damage(s, "block without a size", "the rest of the file is not read");
        s->lines.is_at_end = true;
        return 0;
    }
    if (kind != BLOCK_INFO)
        sv_report_add(s->lines.source.report, SV_SKIPPED,
                      "block of events of another kind (kernel, 32 bits) or of none", 1,
                      (int64_t)in->pos, NULL);
    return skip(s, size, err);
}

static int read_next(struct sv_lines *l, struct sv_batch *b, struct sv_err *err)
{
    struct fxt *s = (struct fxt *)l;
    if (!s->is_begun) {
        s->is_begun = true;
        return skip(s, MAGIC_BYTES, err);
    }
    if (s->is_inside && s->left > 0)
        return read_event(s, b, err);
    s->is_inside = false;
    return read_block(s, err);
}

/* ---- the end: tasks with their dependencies, and what never ended ---- */

static int by_from(const void *a, const void *b)
{
    const struct edge *x = a, *y = b;
    return x->from != y->from ? (x->from > y->from ? 1 : -1) : (x->to > y->to) - (x->to < y->to);
}

static int by_to(const void *a, const void *b)
{
    const struct edge *x = a, *y = b;
    return x->to != y->to ? (x->to > y->to ? 1 : -1) : (x->from > y->from) - (x->from < y->from);
}

static bool has_run(const struct fxt *s, uint64_t id)
{
    const uint64_t *at = sv_map_find(&s->by_id, id);
    return at && s->jobs[*at - 1].track;
}

/* Only dependencies between tasks that ran, each once; those through StarPU's own empty tasks have
 * no slice to point at. */
static void sort_edges(struct fxt *s)
{
    size_t n = 0;
    if (s->n_edges > 1)
        qsort(s->edges, s->n_edges, sizeof *s->edges, by_from);
    for (size_t i = 0; i < s->n_edges; i++) {
        struct edge e = s->edges[i];
        if (n > 0 && s->edges[n - 1].from == e.from && s->edges[n - 1].to == e.to)
            continue;
        if (has_run(s, e.from) && has_run(s, e.to))
            s->edges[n++] = e;
        else
            sv_report_add(s->lines.source.report, SV_SKIPPED,
                          "dependency on or of a task that was not executed", 1, SV_NO_POS, NULL);
    }
    s->n_edges = n;
    s->edges_to = sv_alloc((n + 1) * sizeof *s->edges_to);
    if (n > 0)
        memcpy(s->edges_to, s->edges, n * sizeof *s->edges);
    if (n > 1)
        qsort(s->edges_to, n, sizeof *s->edges_to, by_to);
}

static void add_flows(struct fxt *s, struct sv_batch *b, uint64_t id, bool is_to)
{
    const struct edge *edges = is_to ? s->edges_to : s->edges;
    size_t lo;
    SV_SEARCH(lo, mid, 0, s->n_edges, (is_to ? edges[mid].to : edges[mid].from) < id);
    for (size_t n = 0; n < FLOWS_MAX && lo < s->n_edges; n++, lo++) {
        if ((is_to ? edges[lo].to : edges[lo].from) != id)
            return;
        struct sv_arg *a = sv_batch_arg(b);
        a->type = is_to ? SV_ARG_FLOW_END : SV_ARG_FLOW_BEGIN;
        a->u = sv_mix64(edges[lo].from ^ sv_mix64(edges[lo].to ^ 0x667874));
    }
}

static void put_job(struct fxt *s, struct sv_batch *b, const struct job *j)
{
    struct sv_lines *l = &s->lines;
    char footprint[32];
    add_flows(s, b, j->id, false);
    add_flows(s, b, j->id, true);
    struct sv_arg *batch = sv_batch_arg(b); /* in the trace of whoever submitted it */
    batch->type = SV_ARG_FLOW;
    batch->u = sv_starpu_job_flow(j->id);
    sv_add_uint(l, b, "JobId", j->id);
    sv_add_uint(l, b, "WorkerId", j->worker);
    sv_add_uint(l, b, "MemoryNode", j->node);
    if (j->is_submitted) {
        sv_add_uint(l, b, "SubmitOrder", j->order);
        sv_add_int(l, b, "Priority", j->priority);
        if (j->submit_ns <= j->start_ns)
            sv_add_int(l, b, "queued", j->start_ns - j->submit_ns);
    }
    if (j->model)
        sv_add_text(l, b, "Model", sv_dict_text(l->dict, j->model));
    if (j->has_ended) {
        int n = snprintf(footprint, sizeof footprint, "%llx", (unsigned long long)j->footprint);
        sv_add_uint(l, b, "Size", j->bytes);
        sv_add_text(l, b, "Footprint", (struct sv_text){footprint, (uint32_t)n});
        sv_add_text(l, b, "Arch", sv_dict_text(l->dict, j->arch));
    }
    sv_str name = j->name ? j->name : j->model ? j->model : sv_dict_cstr(l->dict, "task");
    struct sv_event *e =
        sv_put_event(l, b, j->has_ended ? SV_SLICE : SV_BEGIN, j->start_ns, j->track, name, "task");
    e->dur_ns = j->has_ended && j->end_ns > j->start_ns ? j->end_ns - j->start_ns : 0;
}

static bool end(struct sv_lines *l, struct sv_batch *b)
{
    struct fxt *s = (struct fxt *)l;
    if (!s->is_sorted)
        sort_edges(s);
    s->is_sorted = true;
    while (s->at_job < s->n_jobs) {
        const struct job *j = &s->jobs[s->at_job++];
        if (j->track) {
            put_job(s, b, j);
            return true;
        }
    }
    if (s->at_row == s->n_rows)
        return false;
    const struct row *r = &s->rows[s->at_row++];
    for (size_t i = 0; i < r->n_open; i++)
        sv_put_event(l, b, SV_BEGIN, r->open[i].ts_ns, r->states,
                     sv_dict_cstr(l->dict, r->open[i].name), "state");
    return true;
}

/* ---- life ---- */

static void init(struct sv_lines *l)
{
    ((struct fxt *)l)->top = sv_lines_group(l, 0, SV_TRACK_CUSTOM, "StarPU", 6);
}

static void fini(struct sv_lines *l)
{
    struct fxt *s = (struct fxt *)l;
    if (s->n_under_way > 0)
        sv_report_add(l->source.report, SV_SKIPPED, "transfer without an end", s->n_under_way,
                      SV_NO_POS, NULL);
    sv_map_fini(&s->worker_of);
    sv_map_fini(&s->by_place);
    sv_map_fini(&s->by_id);
    sv_map_fini(&s->by_copy);
    free(s->rows);
    free(s->jobs);
    free(s->edges);
    free(s->edges_to);
    free(s->copies);
}

static const struct sv_lines_kind kind = {
    .size = sizeof(struct fxt),
    .max_events = OPEN_MAX + 2,
    .gives = SV_HAS_EDGES | SV_HAS_SLICES | SV_IN_NO_ORDER,
    .damaged = "malformed event",
    .clock = SV_CLOCK_MONOTONIC,
    .init = init,
    .read = read_next,
    .end = end,
    .fini = fini,
};

static int open_source(struct sv_input *in, const struct sv_read_options *options,
                       struct sv_dict *dict, struct sv_report *report, struct sv_source **out,
                       struct sv_err *err)
{
    int more = sv_input_need(in, HEAD_BYTES, err);
    if (more < 0)
        return more;
    if (is_head(in->data, in->len, true))
        return sv_err_set(err, SV_EFORMAT, 0,
                          "an FxT trace of a big-endian machine, which is not read; "
                          "starpu_fxt_tool makes a paje.trace of it, which is");
    if (!is_head(in->data, in->len, false))
        return sv_err_set(err, SV_EFORMAT, 0, "not the head of an FxT trace");
    return sv_lines_open(&kind, in, options, dict, report, out);
}

const struct sv_format sv_fxt_format = {
    .name = "fxt",
    .help = "StarPU's own trace by FxT, prof_file_*",
    .lacks = "the machine that it is from",
    .files = "`prof_file_*` of a StarPU built with FxT (`STARPU_FXT_TRACE=1`), without "
             "`starpu_fxt_tool`",
    .times = "CLOCK_MONOTONIC, nanoseconds",
    .probe = probe,
    .open_source = open_source,
};
