/* The inside of the Chrome JSON reader, shared by its files and by nobody else.
 *
 *   formats/chrome/read.c          the source: probe, open, next, close; the document around the
 *                                  events
 *   formats/chrome/read_ahead.c    events read by other threads, before their turn
 *   formats/chrome/read_lost.c     damage: where does the next event start
 *   formats/chrome/read_top.c      top-level keys of the object form, metadata
 *   formats/chrome/read_event.c    one event object → struct chrome_fields (the hot loop)
 *   formats/chrome/read_tree.c     JSON values → arguments
 *   formats/chrome/read_text.c     strings, keys, findings, text that is not quite JSON
 *   formats/chrome/read_phase.c    struct chrome_fields → events of the model, by phase
 *   formats/chrome/read_track.c    pids, tids, ids and names → tracks; metadata events
 *   formats/chrome/read_balance.c  begins and ends, flows: what has no partner
 *   formats/chrome/read_device.c   rows whose names say that they are work of accelerators
 *   formats/chrome/read_stave.c    what only files of Stave's own writer have
 *
 * A parse function returns the byte after what it read, or NULL after chrome_stop(). Nothing that
 * it did may outlive a stop at the end of the window, because the event is then read again:
 * findings wait in `pending`, arguments in the open list of the batch. */
#pragma once

#include "formats/chrome/state.h"

/* ---- findings and stops ---- */

void chrome_note(struct chrome_reader *r, enum chrome_finding what, const uint8_t *at);
void chrome_note_n(struct chrome_reader *r, enum chrome_finding what, uint32_t count,
                   const uint8_t *at);
void chrome_flush_notes(struct chrome_reader *r);
void chrome_drop_notes(struct chrome_reader *r);

static inline int64_t chrome_pos(const struct chrome_reader *r, const uint8_t *p)
{
    return (int64_t)r->in->pos + (p - r->in->data);
}

/* Reading cannot continue at p. */
static inline const uint8_t *chrome_stop(struct chrome_reader *r, const uint8_t *p,
                                         const uint8_t *end)
{
    r->stop_at = p < end ? p : end;
    r->stop_is_cut = p >= end;
    return NULL;
}

/* ---- values ---- */

extern const bool chrome_ends[256]; /* what may follow a number or a word */

/* Is the guess at p? A free one is where there are 16 NULs. */
static inline bool chrome_guess_is(const struct chrome_guess *g, const uint8_t *p)
{
    if (!sv_json_same16_but(p, g->text, g->skip))
        return false;
    if (g->len <= 16)
        return true;
    if (g->len <= 32)
        return sv_json_same16(p + 16, g->text + 16, g->len - 16u);
    return sv_json_same16(p + 16, g->text + 16, 16) &&
           sv_json_same16(p + 32, g->text + 32, g->len - 32u);
}

/* The guess that leads from the end of a value to the next one, or past the closing brace; NULL
 * when there is none. */
static inline const struct chrome_guess *chrome_guess(const uint8_t *p, const uint8_t *end,
                                                      const struct chrome_guess *ways)
{
    const struct chrome_guess *g = &ways[0];
    if (__builtin_expect(!chrome_guess_is(g, p), 0) && !chrome_guess_is(g = &ways[1], p))
        return NULL;
    /* Something must follow, and this file may have more blanks before it than the one that was
     * remembered. */
    p += g->len;
    return __builtin_expect(p < end && *p >= g->least, 1) ? g : NULL;
}

/* The same place in the guesses of another phase. */
static inline struct chrome_guess *chrome_same_place(struct chrome_reader *r,
                                                     const struct chrome_guess *ways, uint8_t ph)
{
    size_t place = (size_t)(ways - r->event_guesses[0]) % (CHROME_PLACES * CHROME_WAYS);
    return &r->event_guesses[ph % CHROME_SHAPES][place];
}

/* Over the colon after a key, to its value. */
static inline const uint8_t *chrome_colon(struct chrome_reader *r, const uint8_t *p,
                                          const uint8_t *end)
{
    if (__builtin_expect(*p != ':', 0)) {
        p = sv_json_solid(p, end);
        if (p == end || *p != ':')
            return chrome_stop(r, p, end);
    }
    p = sv_json_solid(p + 1, end);
    return __builtin_expect(p < end, 1) ? p : chrome_stop(r, end, end);
}

void chrome_grow_seen(struct chrome_reader *r, sv_str key);
void chrome_seen_before(struct chrome_reader *r, sv_str key, const uint8_t *at);

/* Called before the argument of a key is appended. */
static inline void chrome_mark_key(struct chrome_reader *r, sv_str key, const uint8_t *at)
{
    if (__builtin_expect(key >= r->cap_seen, 0))
        chrome_grow_seen(r, key);
    struct chrome_seen *s = &r->seen[key];
    if (__builtin_expect(s->stamp >= r->event_stamp, 0))
        chrome_seen_before(r, key, at);
    s->stamp = r->stamp_now;
    s->at = (uint32_t)(r->batch->arg - r->batch->args);
}

const uint8_t *chrome_key(struct chrome_reader *r, const uint8_t *p, const uint8_t *end,
                          struct chrome_guess *out);
/* The same as chrome_guess() by the grammar, and by what comes close to it: `value` is the start of
 * the value before p, NULL before the first member. r->odd_end is where the member's value starts.
 * NULL after a stop. */
const struct chrome_guess *chrome_member(struct chrome_reader *r, const uint8_t *p,
                                         const uint8_t *end, const uint8_t *value,
                                         struct chrome_guess *ways);
const uint8_t *chrome_string(struct chrome_reader *r, const uint8_t *p, const uint8_t *end,
                             struct chrome_span *out);
const uint8_t *chrome_value(struct chrome_reader *r, const uint8_t *p, const uint8_t *end,
                            sv_str key);
const uint8_t *chrome_args(struct chrome_reader *r, const uint8_t *p, const uint8_t *end,
                           unsigned shape);
const uint8_t *chrome_skip(struct chrome_reader *r, const uint8_t *p, const uint8_t *end);
const uint8_t *chrome_odd_key(struct chrome_reader *r, const uint8_t *p, const uint8_t *end);
const uint8_t *chrome_odd_end(struct chrome_reader *r, const uint8_t *value, const uint8_t *p,
                              const uint8_t *end, struct chrome_span *mended);
sv_str chrome_intern(struct chrome_reader *r, const uint8_t *p, size_t len);
void chrome_close_levels(struct chrome_reader *r);
void chrome_begin_event(struct chrome_reader *r);
void chrome_drop_tombs(struct chrome_reader *r);
void chrome_bury(struct chrome_reader *r, uint32_t at, uint32_t n);
/* Text of a string value, or of any other scalar as it is in the file; false for containers and
 * null. */
bool chrome_span_text(struct chrome_reader *r, struct chrome_span raw, struct chrome_span *out);

/* ---- events ---- */

const uint8_t *chrome_event(struct chrome_reader *r, const uint8_t *p, const uint8_t *end,
                            struct chrome_fields *f);
/* False: the batch is full before the event was done; read it again into the next one. */
bool chrome_emit(struct chrome_reader *r, struct chrome_fields *f);
/* Is the part that was read before a stop worth keeping? */
bool chrome_is_usable(const struct chrome_fields *f);

/* ---- tracks and metadata ---- */

/* What the ids of an event mean, from its bytes: for threads that read ahead, since the bytes are
 * in their cache. */
void chrome_look_up(struct chrome_reader *r, struct chrome_fields *f);
struct chrome_id chrome_event_id(struct chrome_reader *r, const struct chrome_fields *f);
bool chrome_id_number(struct chrome_reader *r, struct chrome_span raw, uint64_t *out);
uint64_t chrome_hash_str(const struct chrome_reader *r, sv_str s);
static inline struct chrome_thread *chrome_thread_slot(struct chrome_reader *r, int64_t pid,
                                                       int64_t tid)
{
    uint64_t h = ((uint64_t)pid * 31 + (uint64_t)tid) * 0x9e3779b97f4a7c15ull;
    return &r->threads[h >> 32 & (CHROME_THREADS - 1)];
}

int64_t chrome_text_number(struct chrome_reader *r, const uint8_t *p, size_t len);
sv_track chrome_thread_slow(struct chrome_reader *r, struct chrome_fields *f);
sv_track chrome_process(struct chrome_reader *r, struct chrome_fields *f);
sv_track chrome_named_track(struct chrome_reader *r,
                            const struct chrome_fields *f); /* by stave_track, or 0 */
sv_track chrome_global(struct chrome_reader *r);
sv_track chrome_async(struct chrome_reader *r, struct chrome_fields *f, struct chrome_id id,
                      bool with_name, bool with_pid);
void chrome_metadata(struct chrome_reader *r, struct chrome_fields *f);
const struct sv_arg *chrome_find_arg(struct chrome_reader *r, const struct chrome_fields *f,
                                     const char *key);
bool chrome_arg_int(const struct sv_arg *a, int64_t *out);
bool chrome_hex_number(const uint8_t *p, size_t len, uint64_t *out);
uint64_t chrome_thread_key(int64_t pid, int64_t tid);
bool chrome_set_text(struct chrome_reader *r, const struct chrome_fields *f, const char *key,
                     sv_track t, size_t member);
bool chrome_set_order(struct chrome_reader *r, const struct chrome_fields *f, const char *key,
                      sv_track t);

/* ---- files of Stave's own: see core/chrome/keys.h ---- */

void chrome_stave(struct chrome_reader *r, struct chrome_span object);
bool chrome_stave_other_data(struct chrome_reader *r, struct chrome_span object);
void chrome_stave_plain(struct chrome_reader *r, uint64_t uuid, sv_track t);
bool chrome_stave_track(struct chrome_reader *r, struct chrome_fields *f, bool is_thread);
void chrome_stave_args(struct chrome_reader *r, struct chrome_fields *f);
bool chrome_stave_is_loss(const struct chrome_reader *r, const struct chrome_fields *f,
                          sv_str *cat);

/* ---- work of accelerators that no category names ---- */

void chrome_device_row(struct chrome_reader *r, sv_track process); /* it was just named */
void chrome_device_slice(struct chrome_reader *r, const struct chrome_fields *f,
                         struct sv_event *e);
void chrome_device_fini(struct chrome_reader *r);

/* ---- what has no partner ---- */

void chrome_balance_edge(struct chrome_balance *b, const struct sv_event *e, int64_t pos);
void chrome_balance_flow(struct chrome_balance *b, const struct sv_event *e, int64_t pos);
void chrome_balance_report(struct chrome_reader *r); /* once, at the end of the input */
void chrome_balance_fini(struct chrome_balance *b);

/* ---- the document ---- */

bool chrome_next_member(struct chrome_reader *r, const uint8_t **p, const uint8_t *end,
                        struct chrome_span *key, struct chrome_span *value);
bool chrome_next_element(struct chrome_reader *r, const uint8_t **p, const uint8_t *end,
                         struct chrome_span *value);
bool chrome_find_member(struct chrome_reader *r, struct chrome_span object, const char *name,
                        struct chrome_span *value);
bool chrome_take_base(struct chrome_reader *r, struct chrome_span raw);
void chrome_meta(struct chrome_reader *r, const char *key, const uint8_t *p, size_t len);
bool chrome_put_stack(struct chrome_reader *r, struct chrome_span raw, sv_str key, unsigned type);
void chrome_top_value(struct chrome_reader *r, struct chrome_span key, const uint8_t *p,
                      size_t len);
bool chrome_is_tail_key(const uint8_t *p, const uint8_t *end);

enum chrome_step chrome_lost(struct chrome_reader *r);
enum chrome_step chrome_go_lost(struct chrome_reader *r, const uint8_t *p);
enum chrome_step chrome_lost_bracket(struct chrome_reader *r, const uint8_t *p, const uint8_t *end);
const uint8_t *chrome_recover(struct chrome_reader *r, struct chrome_fields *f, bool is_too_big);

/* ---- reading ahead ---- */

void chrome_init(struct chrome_reader *r, struct sv_dict *dict, size_t value_max);
void chrome_fini(struct chrome_reader *r);
const uint8_t *chrome_one_event(struct chrome_reader *r, const uint8_t *p, const uint8_t *end,
                                enum chrome_step *step);

void chrome_ahead_open(struct chrome_reader *r, const struct sv_read_options *options);
void chrome_ahead_close(struct chrome_reader *r);
/* Is the reader at a place from which others may read ahead, and does that pay? Then r->in becomes
 * a block. */
bool chrome_ahead_try(struct chrome_reader *r);
/* Are blocks in use? */
bool chrome_ahead_is_on(const struct chrome_reader *r);
/* The events that were read ahead; STEP_ON: none is left in this block, go on with what is in the
 * window. */
enum chrome_step chrome_ahead_events(struct chrome_reader *r);
/* The window of a block is used up, or cannot be used: another block, or the input itself. The
 * batch is empty. */
void chrome_ahead_next(struct chrome_reader *r);
void chrome_ahead_leave(struct chrome_reader *r);

static inline enum chrome_step chrome_more(struct chrome_reader *r)
{
    r->need = r->in->len * 2 > r->in->len + 1 ? r->in->len * 2 : r->in->len + 1;
    return STEP_MORE;
}
