/* The Chrome reader's recovery: after damage, where does the next event start?
 *
 * Called by the document file when an event cannot be read to its end or when there are bytes where
 * no event can be. The search looks for `{ "key" :` that is not itself a value, or for the tail of
 * the object form. It starts one byte after the damaged event's brace, because a torn record often
 * swallowed the start of a whole one; how much may be read again is limited by what was consumed so
 * far, so that no input makes it quadratic. */
#include "formats/chrome/reader.h"

#define LOOK_MAX      256u   /* longest key that is recognised */
#define GAP_MAX       65536u /* blanks between brace and key */
#define RESCAN_FACTOR 8u
#define RESCAN_FREE   ((uint64_t)256 << 20) /* bytes that may be read again in any input */

/* Members of `args` that were read to their end stay, the one in which reading stopped goes: it may
 * have swallowed what follows. */
static void drop_open_member(struct chrome_reader *r, struct chrome_fields *f)
{
    struct sv_batch *b = r->batch;
    uint32_t at = UINT32_MAX;
    for (uint32_t i = 0; i < r->depth && at == UINT32_MAX; i++)
        at = r->levels[i].at;
    chrome_close_levels(r);
    if (at == UINT32_MAX)
        return;
    b->arg = b->args + at;
    b->overflow = false;
    if (f->args_at + f->n_args > at)
        f->n_args = at > f->args_at ? at - f->args_at : 0;
}

/* Counts the damage, keeps what is usable, and returns where the search continues. */
const uint8_t *chrome_recover(struct chrome_reader *r, struct chrome_fields *f, bool is_too_big)
{
    const uint8_t *stop = r->stop_at;
    bool is_cut = r->stop_is_cut, has_phase = f->has >> FIELD_PH & 1;
    bool is_usable = !is_too_big && chrome_is_usable(f);
    drop_open_member(r, f);
    if (r->is_lost && !has_phase &&
        !is_too_big) { /* a piece of the event that was counted before */
        chrome_drop_notes(r);
    } else {
        enum chrome_finding what = is_cut      ? is_usable ? FOUND_CUT_KEPT : FOUND_CUT_EVENT
                                   : is_usable ? FOUND_BAD_KEPT
                                               : FOUND_BAD_EVENT;
        chrome_note(r, is_too_big ? FOUND_BIG_EVENT : what, f->start);
    }
    if (is_usable && !chrome_emit(r, f))
        r->series_done = 0;
    sv_batch_drop_args(r->batch);
    chrome_flush_notes(r);
    uint64_t again = (uint64_t)(stop - f->start);
    if (r->rescanned + again > (uint64_t)chrome_pos(r, stop) * RESCAN_FACTOR + RESCAN_FREE)
        return stop > f->start ? stop : f->start + 1;
    r->rescanned += again;
    return f->start + 1;
}

/* From p on nothing is known. */
enum chrome_step chrome_go_lost(struct chrome_reader *r, const uint8_t *p)
{
    struct sv_input *in = r->in;
    for (const uint8_t *q = p; q > in->data; q--) {
        if (!sv_json_is_blank(q[-1])) {
            r->lost_prev = q[-1];
            break;
        }
    }
    sv_input_skip(in, (size_t)(p - in->data));
    r->is_lost = true;
    r->state = STATE_LOST;
    return STEP_ON;
}

enum verdict { NO, YES, UNSURE };

/* Is the brace at p the start of an event? */
static enum verdict starts_event(struct chrome_reader *r, const uint8_t *p, const uint8_t *end)
{
    uint8_t prev = r->lost_prev;
    for (const uint8_t *q = p; q > r->in->data; q--) {
        if (!sv_json_is_blank(q[-1])) {
            prev = q[-1];
            break;
        }
    }
    if (prev == ':') /* the value of a key */
        return NO;
    enum verdict at_end = r->in->eof ? NO : UNSURE;
    const uint8_t *q = sv_json_solid(p + 1, end);
    if ((size_t)(q - p) > GAP_MAX)
        return NO;
    if (q == end)
        return at_end;
    if (*q != '"')
        return NO;
    const uint8_t *limit = (size_t)(end - q) > LOOK_MAX ? q + LOOK_MAX : end;
    q = r->scan->quote(q + 1, limit);
    if (q == limit)
        return limit == end ? at_end : NO;
    if (*q != '"')
        return NO;
    q = sv_json_solid(q + 1, end);
    if (q == end)
        return at_end;
    return *q == ':' ? YES : NO;
}

/* Does the list of events end with the bracket at p? Only asked when that is in doubt. */
static enum verdict ends_events(struct chrome_reader *r, const uint8_t *p, const uint8_t *end)
{
    if ((size_t)(end - p) < LOOK_MAX && !r->in->eof)
        return UNSURE;
    p = sv_json_solid(p + 1, end);
    if (p < end && *p == '}' && r->form == FORM_OBJECT)
        p = sv_json_solid(p + 1, end);
    if (p == end)
        return r->in->eof ? YES : NO;
    if (*p != ',' || r->form != FORM_OBJECT)
        return NO;
    return chrome_is_tail_key(sv_json_solid(p + 1, end), end) ? YES : NO;
}

/* A closing bracket while lost: the end of the events, or a piece of the damage? */
enum chrome_step chrome_lost_bracket(struct chrome_reader *r, const uint8_t *p, const uint8_t *end)
{
    enum verdict v = ends_events(r, p, end);
    if (v == NO)
        return chrome_go_lost(r, p + 1);
    if (v == YES)
        p++;
    chrome_go_lost(r, p);
    if (v == UNSURE)
        return chrome_more(r);
    r->is_lost = false;
    r->state = r->form == FORM_OBJECT ? STATE_TOP : STATE_AFTER;
    return STEP_ON;
}

enum chrome_step chrome_lost(struct chrome_reader *r)
{
    struct sv_input *in = r->in;
    const uint8_t *end = in->data + in->len;
    for (const uint8_t *p = in->data;; p++) {
        p = r->scan->structure(p, end);
        if (p == end) {
            chrome_go_lost(r, end);
            if (!in->eof)
                return chrome_more(r);
            r->state = STATE_EVENTS; /* which knows what the end means */
            return STEP_ON;
        }
        if (*p == ']')
            return chrome_lost_bracket(r, p, end);
        if (*p != '{')
            continue;
        enum verdict v = starts_event(r, p, end);
        if (v == NO)
            continue;
        chrome_go_lost(r, p);
        if (v == UNSURE)
            return chrome_more(r);
        r->state = STATE_EVENTS;
        r->after_comma = true;
        return STEP_ON;
    }
}
