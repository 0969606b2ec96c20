/* Decides when the state of ended processes and threads is freed. Called by the recorder after each
 * round, when no batch of events is in use.
 *
 * Programs with libstave have their rows until their rings are empty. */
#include "record/decode/forget.h"
#include "cli/console.h"
#include "record/session/recorder.h"
#include "sdk/collect/collect.h"

enum { WORTH_IT = 64 };
#define LATE_NS    ((int64_t)1000000000) /* records, samples and rings come at most so late */
#define EVERY_NS   ((int64_t)250000000)
#define IN_TURN_NS ((int64_t)100000000) /* records of the spool, which are in order */

static bool is_read(void *ctx, uint32_t pid)
{
    const struct sv_recorder *r = ctx;
    return r->collect && sv_collect_has(r->collect, pid);
}

/* Looking at all costs as much as there are: worth it when some part of them is gone. */
static bool is_worth_it(const struct sv_tree *t)
{
    return t->n_ended >= WORTH_IT && t->n_ended >= (t->n + t->n_threads) / 4;
}

/* They have rows below the processes that go. */
static void write_sums(struct sv_recorder *r, int64_t now)
{
    struct sv_err err = {0};
    if (sv_recorder_sums(r, now, true, &err) < 0)
        sv_console_note("%s", err.msg);
}

void sv_record_forget(struct sv_recorder *r, int64_t now)
{
    struct sv_tree *t = sv_decode_tree(r->system.decode);
    if (!is_worth_it(t) || now - r->times.forgot_ns < EVERY_NS)
        return;
    r->times.forgot_ns = now;
    write_sums(r, now);
    sv_forget_dead(t, now - LATE_NS, is_read, r, r->meter.input);
}

void sv_record_forget_decoded(struct sv_recorder *r, int64_t decoded_ns)
{
    struct sv_tree *t = sv_decode_tree(r->system.decode);
    int64_t passed = decoded_ns - r->times.forgot_decoded_ns;
    if (!is_worth_it(t) || (passed >= 0 && passed < IN_TURN_NS))
        return;
    r->times.forgot_decoded_ns = decoded_ns;
    write_sums(r, decoded_ns);
    sv_forget_dead(t, decoded_ns - IN_TURN_NS, is_read, r, r->meter.input);
}
