/* Probe `offcpu`: times in which threads did not run, as slices on a row `off CPU` below each
 * thread, named by what the thread waited for, with its stack. */
#include "record/bpf/offcpu.h"

#include "core/base/buf.h"
#include "record/probes/waits.h"
#include "record/spool/scout.h"

#include <string.h>

/* Stacks of threads that ended a wait, until the record of that wait comes. As many as threads that
 * are woken at one time; by the number of the one that waits, and a newer one takes the place of an
 * older one. */
enum { RELEASES = 256 };
struct release {
    uint64_t tid, begin_ns;
    struct sv_buf frames; /* innermost first, each with its NUL */
    int n;
};

struct offcpu {
    struct sv_waits words;
    sv_str waker_stack;
    struct release releases[RELEASES];
};

static void open_offcpu(struct sv_decode *d, void *state)
{
    struct offcpu *o = state;
    sv_waits_init(&o->words, d->source.dict);
    o->waker_stack = sv_dict_cstr(d->source.dict, SV_WAIT_WAKER_STACK);
    for (unsigned i = 0; i < RELEASES; i++)
        sv_buf_init(&o->releases[i].frames, 1 << 20);
}

static void close_offcpu(struct sv_decode *d, void *state)
{
    struct offcpu *o = state;
    (void)d;
    for (unsigned i = 0; i < RELEASES; i++)
        sv_buf_fini(&o->releases[i].frames);
}

static bool decode_release(struct sv_decode *d, void *state, struct sv_batch *b,
                           const struct sv_wire_head *record, uint32_t size)
{
    struct offcpu *o = state;
    const struct sv_wire_release *r = (const void *)record;
    const char *frames[SV_STACKS_FRAMES];
    struct release *to = &o->releases[r->stack.own[0] % RELEASES];
    (void)b;
    int n = sv_stacks_frames(d->stacks, record, &r->stack, size - sizeof *r, frames, NULL);
    if (n < 0)
        return false;
    to->tid = r->stack.own[0];
    to->begin_ns = r->stack.own[1];
    to->n = n;
    sv_buf_clear(&to->frames);
    for (int i = 0; i < n; i++)
        sv_buf_add(&to->frames, frames[i], strlen(frames[i]) + 1);
    if (to->frames.failed)
        to->n = 0;
    return true;
}

static void put_frame(struct sv_batch *b, const char *text)
{
    struct sv_arg *a = sv_batch_arg(b);
    a->type = SV_ARG_TEXT;
    a->text = text;
    a->size = (uint32_t)strlen(text) & 0xffffff;
}

/* Outermost first. */
static void put_waker_stack(struct offcpu *o, struct sv_batch *b, uint32_t tid, uint64_t begin_ns)
{
    struct release *r = &o->releases[tid % RELEASES];
    const char *frames[SV_STACKS_FRAMES], *at;
    if (r->n == 0 || r->tid != tid || r->begin_ns != begin_ns)
        return;
    at = sv_batch_text(b, sv_buf_cstr(&r->frames), r->frames.len);
    for (int i = 0; i < r->n; i++, at += strlen(at) + 1)
        frames[i] = at;
    size_t open = sv_batch_open(b, o->waker_stack, SV_ARG_ARRAY);
    for (int i = r->n; i-- > 0;)
        put_frame(b, frames[i]);
    sv_batch_close(b, open);
    r->n = 0;
}

static void put_stack(struct sv_batch *b, const char **frames, int n)
{
    size_t open = sv_batch_open(b, 0, SV_ARG_STACK);
    while (n-- > 0)
        put_frame(b, frames[n]);
    sv_batch_close(b, open);
}

/* The wait of a record, and the frames of its stack. Negative: the record is malformed. */
static int frames_of(struct sv_decode *d, const struct sv_wire_head *record, uint32_t size,
                     struct sv_wire_away *a, const char **frames)
{
    const struct sv_wire_offcpu *r = (const void *)record;
    const struct sv_wire_short_offcpu *without = (const void *)record;
    if (record->flags & SV_WIRE_NO_STACK) {
        const struct sv_wire_stack stack = {
            .regs = {[SV_STACK_IP] = without->ip, [SV_STACK_SP] = 8}}; /* known, of no use */
        *a = without->away;
        return sv_stacks_frames(d->stacks, record, &stack, 0, frames, NULL);
    }
    if (size < sizeof *r + sizeof *a)
        return -1;
    /* Not aligned: what is before it is as long as the copy of the stack. The ring adds nothing
     * behind a record. */
    size_t bytes = size - sizeof *r - sizeof *a;
    memcpy(a, (const char *)(r + 1) + bytes, sizeof *a);
    return sv_stacks_frames(d->stacks, record, &r->stack, bytes, frames, NULL);
}

static bool decode_offcpu(struct sv_decode *d, void *state, struct sv_batch *b,
                          const struct sv_wire_head *record, uint32_t size)
{
    struct offcpu *o = state;
    const struct sv_waits *w = &o->words;
    const char *frames[SV_STACKS_FRAMES] = {"[no stack]"};
    struct sv_wire_away a;
    int n = frames_of(d, record, size, &a, frames);
    if (n < 0 || a.end_ns < a.begin_ns || a.end_ns > INT64_MAX)
        return false;
    n = n ? n : 1;
    enum sv_wait_reason reason = sv_waits_reason(a.state, a.nr, a.file);
    reason = reason ? reason : SV_WAIT_FOR_OTHER;
    sv_track row = sv_decode_row(d, record, SV_PROBE_offcpu, SV_ROW_OFFCPU);
    struct sv_event *e = sv_batch_put(b, SV_SLICE, (int64_t)a.begin_ns, row, w->reasons[reason],
                                      sv_dict_cstr(d->source.dict, SV_CAT_OFFCPU_SAMPLE));
    e->dur_ns = (int64_t)(a.end_ns - a.begin_ns);
    if (a.woken_ns >= a.begin_ns && a.woken_ns <= a.end_ns)
        sv_batch_int(b, w->queued, (int64_t)(a.end_ns - a.woken_ns));
    const struct sv_waits_for what = {.pid = record->tgid,
                                      .reason = reason,
                                      .nr = a.nr,
                                      .file = a.file,
                                      .lock = a.lock,
                                      .begin_ns = a.begin_ns};
    e->name = w->reasons[sv_waits_put(w, d, b, &what)];
    if (a.state & SV_STATE_INFERRED)
        sv_batch_int(b, w->inferred, 1);
    if (a.woken_ns)
        sv_waits_waker(d, b, a.waker_tid, a.waker_comm);
    if (a.lock)
        put_waker_stack(o, b, record->tid, a.begin_ns);
    put_stack(b, frames, n);
    sv_batch_finish(b, e);
    return true;
}

static bool can_wait(struct sv_scout *s, const struct sv_wire_head *record, uint32_t size)
{
    const struct sv_wire_short_offcpu *w = (const void *)record;
    return record->kind == SV_WIRE_OFFCPU && record->flags & SV_WIRE_NO_STACK
               ? sv_scout_code(s, record, w->ip)
               : sv_scout_stack(s, record, size);
}

const struct sv_probe sv_probe_offcpu = {
    .name = "offcpu",
    .cat = SV_CAT_OFFCPU_SAMPLE,
    .records = {{SV_WIRE_OFFCPU, sizeof(struct sv_wire_short_offcpu), "waits with their stacks",
                 decode_offcpu},
                {SV_WIRE_RELEASE, sizeof(struct sv_wire_release), "stacks of wakers",
                 decode_release}},
    .option = {.name = "offcpu",
               .help = "record waits with their stacks in spite of --light or a configuration's "
                       "no-offcpu",
               .topic = "Threads",
               .off_name = "no-offcpu",
               .off_help = "do not record waits with their stacks"},
    .less = "a longer --offcpu-min or --no-offcpu",
    .docs =
        {"waits with their stacks", "`off CPU` below the thread",
         "what the thread waited for (the name), how long, the lock, the waker, the whole stack"},
    .tracepoint = "sched_switch",
    .state_size = sizeof(struct offcpu),
    .open = open_offcpu,
    .close = close_offcpu,
    .can_wait = can_wait,
};
