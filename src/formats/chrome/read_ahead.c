/* The Chrome reader's other threads: events are read before their turn, and enter the trace in
 * their turn.
 *
 * Called by the document file between events. The input is cut into blocks at places that look like
 * the border of two events; a thread reads the events of a block into struct chrome_fields by a
 * reader of its own, with a dictionary of its own. The reader of the file takes them in order,
 * gives their strings its own numbers (in the order in which it would have met them itself), and
 * emits them.
 *
 * Whatever is not everyday (a finding, a damaged event, a border that was none) is read again by
 * the reader of the file, from the same bytes. So the result does not depend on threads, nor on
 * where the input is cut. */
#include "formats/chrome/reader.h"

#include "core/base/buf.h"
#include "core/base/mem.h"
#include "threads/workers.h"

#include <stdlib.h>

#define BLOCK_BYTES  ((size_t)252 << 10) /* with a border it fits the smallest window */
#define BLOCKS_AGAIN 8 /* that are read without threads after they could not be used */
#define BORDER_MAX   48u
#define TEXTS_MAX    (64u << 10) /* strings of a block's dictionary, which begins anew then */

struct quick {
    struct chrome_fields f;
    const struct sv_arg *args; /* in the block's batch, with keys of the block's dictionary */
    uint32_t n_args;
    sv_str n_strings; /* of the block's dictionary, up to this event */
    bool is_plain;    /* false: it is to be read again */
    bool is_before_comma;
};

struct block {
    struct sv_input_block in;
    struct sv_input view;
    struct chrome_reader *reader;
    struct sv_dict *dict;
    struct sv_batch batch;
    bool has_batch;
    bool is_stale; /* the dictionary has strings of bytes that were no events */
    struct quick *events;
    size_t n, cap, at;
    size_t stop;    /* bytes of the block that the events are */
    sv_str *shared; /* by string of the block's dictionary: the number in the file's */
    size_t n_shared, cap_shared;
};

struct chrome_ahead {
    struct sv_line *line;
    struct sv_workers *workers;
    struct sv_input *input;
    struct block *block; /* at hand; NULL: the input itself is read */
    size_t block_bytes, value_max;
    uint64_t from; /* not before this position */
    uint8_t
        border[BORDER_MAX]; /* the bytes from one event's end to the beginning of the next one */
    size_t border_len;
};

/* ---- cutting ---- */

/* The last border of two events in the window before `limit`; 0: there is none. It ends before the
 * next event's brace. */
static size_t find_border(const struct chrome_ahead *a, const uint8_t *data, size_t limit)
{
    for (size_t n = limit; n > a->border_len; n--) {
        const uint8_t *brace = memrchr(data + a->border_len, '{', n - a->border_len);
        if (!brace)
            return 0;
        size_t at = (size_t)(brace - data);
        /* What follows the brace is part of the border: its first key. */
        if (memcmp(brace - a->border_len + 5, a->border, a->border_len) == 0)
            return at;
        n = at + 1;
    }
    return 0;
}

static bool fill_block(void *ctx, void *item)
{
    struct chrome_ahead *a = ctx;
    struct block *k = item;
    struct sv_err again = {0}; /* the input keeps its error for who asks next */
    if (sv_input_need(a->input, a->block_bytes + BORDER_MAX, &again) < 0 ||
        a->input->len <= BORDER_MAX)
        return false;
    size_t limit = a->input->len - BORDER_MAX;
    size_t n = find_border(a, a->input->data, limit < a->block_bytes ? limit : a->block_bytes);
    if (n == 0)
        return false;
    sv_input_take(a->input, n, &k->in);
    return true;
}

/* ---- reading: on any thread ---- */

static void forget_texts(struct block *k)
{
    if (k->reader)
        chrome_fini(k->reader);
    free(k->reader);
    sv_dict_free(k->dict);
    k->dict = NULL;
    k->reader = NULL;
    k->n_shared = 0;
}

static void prepare(struct block *k, const struct chrome_ahead *a)
{
    if (k->dict && (k->is_stale || k->dict->n_strings > TEXTS_MAX))
        forget_texts(k);
    k->is_stale = false;
    if (!k->dict) {
        k->dict = sv_dict_new();
        k->reader = sv_alloc(sizeof *k->reader);
        chrome_init(k->reader, k->dict, a->value_max);
        k->reader->is_ahead = true;
        k->reader->in = &k->view;
    }
    if (!k->has_batch)
        sv_batch_init(&k->batch);
    k->has_batch = true;
    sv_batch_reset(&k->batch);
    k->reader->batch = &k->batch;
    k->n = k->at = 0;
}

/* They stay where they are in the batch, and the next event's follow. */
static void keep_args(struct sv_batch *b, struct quick *q)
{
    q->args = b->args;
    q->n_args = (uint32_t)(b->arg - b->args);
    b->args = b->arg;
}

/* The byte after it; NULL: it cannot be read from here. */
static const uint8_t *read_event(struct block *k, const uint8_t *p, const uint8_t *end)
{
    struct chrome_reader *v = k->reader;
    if (k->n == k->cap)
        k->events = sv_grow(k->events, &k->cap, k->n + 1, sizeof *k->events);
    struct quick *q = &k->events[k->n];
    memset(&q->f, 0, offsetof(struct chrome_fields, raw));
    q->f.start = p;
    v->needs_turn = false;
    const uint8_t *next = chrome_event(v, p, end, &q->f);
    if (next) {
        if (q->f.has & FIELD_BIT(FIELD_ID))
            chrome_look_up(v, &q->f);
        q->is_plain = v->pending_mask == 0 && !v->needs_turn && !v->has_tombs && !k->batch.overflow;
        q->is_before_comma = next < end && *next == ',';
        q->n_strings = k->dict->n_strings;
        keep_args(&k->batch, q);
        k->n++;
    }
    k->is_stale |= !next;
    chrome_drop_notes(v);
    sv_batch_drop_args(&k->batch);
    return next;
}

/* Events with commas between them. Anything else ends the block here: what follows is for the
 * reader of the file. */
static void read_block(void *ctx, void *item)
{
    struct block *k = item;
    prepare(k, ctx);
    const uint8_t *p = k->in.data, *end = p + k->in.len;
    k->view = (struct sv_input){.data = k->in.data, .len = k->in.len, .pos = k->in.pos};
    for (;;) {
        const uint8_t *start = sv_json_solid(p, end), *next;
        if (start < end && *start == '{' && (next = read_event(k, start, end))) {
            p = next;
            if (!k->events[k->n - 1].is_before_comma)
                break;
            p++;
            continue;
        }
        if (start == end)
            p = end;
        break;
    }
    k->stop = (size_t)(p - k->in.data);
}

static void clean_block(void *item)
{
    struct block *k = item;
    forget_texts(k);
    sv_input_block_fini(&k->in);
    if (k->has_batch)
        sv_batch_fini(&k->batch);
    free(k->events);
    free(k->shared);
}

static const struct sv_line_ops block_ops = {fill_block, read_block, clean_block,
                                             sizeof(struct block)};

/* ---- in their turn ---- */

/* The strings that were new with this event: met in this order by whoever reads it. */
static void share_strings(struct chrome_reader *r, struct block *k, sv_str n)
{
    if (n > k->cap_shared)
        k->shared = sv_grow(k->shared, &k->cap_shared, n, sizeof *k->shared);
    for (; k->n_shared < n; k->n_shared++) {
        struct sv_text text = sv_dict_text(k->dict, (sv_str)k->n_shared);
        k->shared[k->n_shared] = text.len ? sv_dict_str(r->dict, text.bytes, text.len) : 0;
    }
}

static void put_args(struct sv_batch *b, const struct quick *q, const sv_str *shared)
{
    bool is_room = (size_t)(b->args_end - b->arg) >= q->n_args;
    for (uint32_t i = 0; i < q->n_args; i++) {
        struct sv_arg *a = is_room ? b->arg++ : sv_batch_arg(b);
        *a = q->args[i];
        a->key = shared[a->key];
    }
}

/* An event that is emitted is changed. A counter may have to be emitted again, its other values in
 * the next batch. */
static bool emit_quick(struct chrome_reader *r, struct block *k, struct quick *q)
{
    struct chrome_fields again, *f = &q->f;
    if (__builtin_expect(f->ph == 'C', 0)) {
        memcpy(&again, f, f->has & FIELDS_RAW ? sizeof *f : offsetof(struct chrome_fields, raw));
        f = &again;
    }
    if (k->n_shared < q->n_strings)
        share_strings(r, k, q->n_strings);
    put_args(r->batch, q, k->shared);
    f->name = k->shared[f->name];
    f->cat = k->shared[f->cat];
    r->has_tombs = false;
    if (!chrome_emit(r, f)) {
        chrome_drop_notes(r);
        return false;
    }
    r->n_events++;
    if (r->pending_mask)
        chrome_flush_notes(r);
    return true;
}

enum chrome_step chrome_ahead_events(struct chrome_reader *r)
{
    struct block *k = r->ahead->block;
    enum chrome_step step = STEP_ON;
    for (; k->at < k->n; k->at++) {
        struct quick *q = &k->events[k->at];
        if (r->batch->n >= SV_BATCH)
            return STEP_FULL;
        if (__builtin_expect(!r->after_comma || !q->is_plain, 0)) {
            if (!chrome_one_event(r, q->f.start, k->in.data + k->in.len, &step))
                return step;
        } else if (!emit_quick(r, k, q)) {
            return STEP_FULL;
        }
        r->after_comma = q->is_before_comma;
    }
    const uint8_t *stop = k->in.data + k->stop;
    if (r->in->data < stop) {
        sv_input_skip(r->in, (size_t)(stop - r->in->data));
        r->gap_has_line = false;
    }
    return STEP_ON;
}

/* ---- the way in and out ---- */

bool chrome_ahead_is_on(const struct chrome_reader *r)
{
    return r->ahead && r->ahead->block;
}

static bool take_block(struct chrome_reader *r)
{
    struct chrome_ahead *a = r->ahead;
    a->block = sv_line_next(a->line);
    r->in = a->block ? &a->block->view : a->input;
    if (!a->block)
        a->from = a->input->pos + BLOCKS_AGAIN * a->block_bytes;
    return a->block != NULL;
}

/* What is before the next event in this file: blanks, its brace and the beginning of its first
 * key. */
static bool learn_border(struct chrome_ahead *a)
{
    const uint8_t *p = a->input->data, *end = p + a->input->len, *brace = sv_json_solid(p, end);
    if (end - brace < 8 || *brace != '{' || (size_t)(brace - p) + 6 > BORDER_MAX)
        return false;
    a->border[0] = ',';
    memcpy(a->border + 1, p, (size_t)(brace - p) + 5);
    a->border_len = (size_t)(brace - p) + 6;
    return true;
}

bool chrome_ahead_try(struct chrome_reader *r)
{
    struct chrome_ahead *a = r->ahead;
    if (r->is_lost || !r->after_comma || r->form == FORM_LINES || r->by_lines || r->n_events == 0 ||
        r->batch->n || r->in->pos < a->from)
        return false;
    a->from = r->in->pos + BLOCKS_AGAIN * a->block_bytes; /* in vain, perhaps */
    if (!learn_border(a))
        return false;
    if (a->line)
        sv_line_resume(a->line);
    else
        a->line = sv_line_new(a->workers, &block_ops, a);
    return take_block(r);
}

void chrome_ahead_leave(struct chrome_reader *r)
{
    struct chrome_ahead *a = r->ahead;
    struct sv_buf bytes;
    sv_buf_init(&bytes, SIZE_MAX);
    sv_line_halt(a->line);
    sv_buf_add(&bytes, r->in->data, r->in->len);
    a->block->is_stale = true;
    for (struct block *k; (k = sv_line_next(a->line));) {
        sv_buf_add(&bytes, k->in.data, k->in.len);
        k->is_stale = true;
    }
    sv_input_put_back(a->input, bytes.data, bytes.len);
    sv_buf_fini(&bytes);
    a->block = NULL;
    r->in = a->input;
    a->from = a->input->pos + BLOCKS_AGAIN * a->block_bytes;
}

void chrome_ahead_next(struct chrome_reader *r)
{
    if (r->in->len > 0)
        chrome_ahead_leave(r); /* what is left is no whole event: the border was none */
    else
        take_block(r);
}

void chrome_ahead_open(struct chrome_reader *r, const struct sv_read_options *options)
{
    if (!options || !options->workers || sv_workers_count(options->workers) < 2)
        return;
    r->ahead = sv_alloc(sizeof *r->ahead);
    r->ahead->workers = options->workers;
    r->ahead->input = r->in;
    r->ahead->value_max = r->value_max;
    r->ahead->block_bytes = options->block_bytes ? options->block_bytes : BLOCK_BYTES;
}

void chrome_ahead_close(struct chrome_reader *r)
{
    if (!r->ahead)
        return;
    bool was_used = r->ahead->line != NULL;
    sv_line_free(r->ahead->line);
    free(r->ahead);
    if (was_used) /* buffers of every thread; the store needs most when it is finished */
        sv_return_freed();
}
