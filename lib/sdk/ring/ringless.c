/* The reader's side of the page of counters: see ringless.h. Called by the ring source, by
 * collectors and by recovery. The program's side is in slow.c. */
#include "sdk/ring/ringless.h"

#include "core/stream/dict.h"

void sv_report_loss(struct sv_batch *b, sv_track track, int64_t ns, sv_str cause, uint64_t n)
{
    struct sv_event *e = sv_batch_event(b);
    e->ts_ns = ns;
    e->track = track;
    e->kind = SV_LOSS;
    e->name = cause;
    struct sv_arg *a = sv_batch_arg(b);
    a->type = SV_ARG_INT;
    a->i = (int64_t)n;
    sv_batch_finish(b, e);
}

void sv_ringless_reader_init(struct sv_ringless_reader *r, const struct sv_ringless *page,
                             struct sv_dict *dict, uint32_t pid)
{
    *r = (struct sv_ringless_reader){
        .page = page, .pid = pid, .cause = sv_dict_cstr(dict, SV_LOST_RING)};
}

bool sv_ringless_report(struct sv_ringless_reader *r, struct sv_dict *dict, struct sv_batch *b,
                        int64_t ns)
{
    for (unsigned i = 0; r->page && i < SV_LOST_SLOTS; i++) {
        const struct sv_lost_slot *slot = &r->page->slots[i];
        uint64_t lost = atomic_load_explicit(&slot->lost, memory_order_relaxed);
        if (lost <= r->reported[i])
            continue;
        if (b->n == SV_BATCH)
            return false;
        uint32_t pid = atomic_load_explicit(&slot->pid, memory_order_relaxed);
        sv_report_loss(b, sv_dict_process(dict, 0, pid ? pid : r->pid), ns, r->cause,
                       lost - r->reported[i]);
        r->reported[i] = lost;
    }
    return true;
}

void sv_ringless_mark(const struct sv_ringless_reader *r, struct sv_ringless *page, uint64_t round)
{
    unsigned older = atomic_load(&page->mark_round[0]) >= atomic_load(&page->mark_round[1]);
    for (unsigned i = 0; i < SV_LOST_SLOTS; i++)
        atomic_store_explicit(&page->slots[i].marked[older], r->reported[i], memory_order_relaxed);
    atomic_store_explicit(&page->mark_round[older], round, memory_order_release);
}

/* The newest mark that is not past the round; -1: none was made. */
static int valid_mark(const struct sv_ringless *page, uint64_t round)
{
    int best = -1;
    uint64_t best_round = 0;
    for (int i = 0; i < 2; i++) {
        uint64_t of = atomic_load(&page->mark_round[i]);
        if (of != 0 && of <= round && of > best_round) {
            best_round = of;
            best = i;
        }
    }
    return best;
}

static uint64_t reported(const struct sv_ringless *page, unsigned slot, int mark)
{
    return mark < 0 ? 0
                    : atomic_load_explicit(&page->slots[slot].marked[mark], memory_order_relaxed);
}

void sv_ringless_resume(struct sv_ringless_reader *r, uint64_t round)
{
    int mark = r->page ? valid_mark(r->page, round) : -1;
    for (unsigned i = 0; r->page && i < SV_LOST_SLOTS; i++)
        r->reported[i] = reported(r->page, i, mark);
}

uint64_t sv_ringless_pending(const struct sv_ringless *page, uint64_t round)
{
    uint64_t n = 0;
    int mark = valid_mark(page, round);
    for (unsigned i = 0; i < SV_LOST_SLOTS; i++) {
        uint64_t lost = atomic_load_explicit(&page->slots[i].lost, memory_order_relaxed);
        uint64_t done = reported(page, i, mark);
        n += lost > done ? lost - done : 0;
    }
    return n;
}
