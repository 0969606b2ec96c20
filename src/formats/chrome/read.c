/* The Chrome JSON reader: its source and the document around the events.
 *
 * Opened through the table of formats, pulled by the pump. Understands the array form, the object
 * form (traceEvents and other top-level keys in any order), one event a line with or without a
 * bracket before it, and several such documents one after another. The input is a sliding window:
 * an event that does not end in it is read again when more has come, so memory is bounded by the
 * largest event. Texts of a batch point into the window, hence a batch ends before the window is
 * refilled. */
#include "formats/chrome/reader.h"
#include "formats/writers.h"
#include "store/once_paths.h"

#include <assert.h>
#include <stdlib.h>

static void skip_to(struct chrome_reader *r, const uint8_t *p)
{
    sv_input_skip(r->in, (size_t)(p - r->in->data));
}

/* Nothing follows: what does that mean where we are? */
static enum chrome_step end_of_input(struct chrome_reader *r)
{
    const uint8_t *at = r->in->data;
    if (r->is_closed && r->is_lost)
        ; /* only junk came after the end */
    else if (!r->any_list && r->n_events == 0)
        chrome_note(r, FOUND_NO_EVENTS, at);
    else if (r->state == STATE_EVENTS && r->form == FORM_ARRAY)
        chrome_note(r, FOUND_OPEN_ARRAY, at);
    else if ((r->state == STATE_EVENTS && r->form == FORM_OBJECT) || r->state == STATE_TOP ||
             r->state == STATE_SKIP)
        chrome_note(r, FOUND_CUT_FILE, at);
    chrome_flush_notes(r);
    sv_input_report(r->in, r->source.report);
    r->state = STATE_END;
    return STEP_ON;
}

/* ---- before the events ---- */

/* The first object of a document: does it hold the events, or is it one? */
static bool is_event_object(struct chrome_reader *r, const uint8_t *p, const uint8_t *end,
                            bool *is_sure)
{
    struct chrome_span key;
    *is_sure = true;
    for (p++;;) {
        p = sv_json_solid(p, end);
        if (p < end && *p == ',')
            p = sv_json_solid(p + 1, end);
        if (p >= end || *p != '"')
            break;
        const uint8_t *q = chrome_string(r, p, end, &key);
        if (!q)
            break;
        if (key.len == 2 && memcmp(key.p, "ph", 2) == 0)
            return true;
        if (key.len == 11 && memcmp(key.p, "traceEvents", 11) == 0)
            return false;
        if (!(q = chrome_colon(r, q, end)) || !(q = chrome_skip(r, q, end)))
            break;
        if (q == p) /* not a value */
            break;
        p = q;
    }
    *is_sure = (p && p < end && !r->stop_is_cut) || r->in->eof || r->in->len > CHROME_META_MAX ||
               r->in->len >= r->value_max;
    return false;
}

static enum chrome_step start_object(struct chrome_reader *r, const uint8_t *p, const uint8_t *end)
{
    bool is_sure;
    r->stop_is_cut = false;
    bool is_event = is_event_object(r, p, end, &is_sure);
    chrome_drop_notes(r); /* they will be found again */
    if (!is_sure) {
        skip_to(r, p);
        return chrome_more(r);
    }
    r->form = is_event ? FORM_LINES : FORM_OBJECT;
    r->state = is_event ? STATE_EVENTS : STATE_TOP;
    r->after_comma = true;
    if (is_event)
        r->any_list = true;
    skip_to(r, is_event ? p : p + 1);
    return STEP_ON;
}

static const uint8_t *skip_nuls(struct chrome_reader *r, const uint8_t *p, const uint8_t *end)
{
    const uint8_t *start = p;
    while (p < end && *p == 0)
        p++;
    chrome_note_n(r, FOUND_NUL, (uint32_t)(p - start), start);
    chrome_flush_notes(r);
    return p;
}

static enum chrome_step junk(struct chrome_reader *r, const uint8_t *p)
{
    if (!r->is_lost)
        chrome_note(r, FOUND_JUNK, p);
    chrome_flush_notes(r);
    return chrome_go_lost(r, p);
}

static enum chrome_step start(struct chrome_reader *r)
{
    const uint8_t *p = r->in->data, *end = p + r->in->len;
    if (r->in->len < 4 && !r->in->eof)
        return chrome_more(r);
    if (r->in->pos == 0 && r->in->len >= 3 && memcmp(p, "\xef\xbb\xbf", 3) == 0) {
        chrome_note(r, FOUND_BOM, p);
        p += 3;
    }
    chrome_flush_notes(r);
    p = sv_json_solid(p, end);
    if (p < end && *p == 0)
        p = skip_nuls(r, p, end);
    else if (p < end && *p == '{')
        return start_object(r, p, end);
    else if (p < end && *p == '[') {
        skip_to(r, p + 1);
        r->form = FORM_ARRAY;
        r->state = STATE_EVENTS;
        r->any_list = r->after_comma = true;
        return STEP_ON;
    } else if (p < end) {
        r->form = FORM_ARRAY;
        return junk(r, p);
    }
    skip_to(r, p);
    if (p < end)
        return STEP_ON;
    return r->in->eof ? end_of_input(r) : chrome_more(r);
}

/* ---- the object form ---- */

/* A key of the top-level object at p, and its value. */
static enum chrome_step top_member(struct chrome_reader *r, const uint8_t *p, const uint8_t *end)
{
    struct chrome_span key;
    struct sv_batch *b = r->batch;
    const uint8_t *value = NULL, *q = chrome_string(r, p, end, &key);
    if (q && (q = chrome_colon(r, q, end))) {
        value = q;
        if (*q == '[' && key.len == 11 && memcmp(key.p, "traceEvents", 11) == 0) {
            skip_to(r, q + 1);
            chrome_flush_notes(r);
            r->state = STATE_EVENTS;
            r->any_list = r->after_comma = true;
            return STEP_ON;
        }
        if ((q = chrome_skip(r, q, end))) {
            chrome_top_value(r, key, value, (size_t)(q - value));
            sv_batch_drop_args(b);
            chrome_flush_notes(r);
            skip_to(r, q);
            return STEP_ON;
        }
    }
    chrome_drop_notes(r);
    if (!r->stop_is_cut)
        return junk(r, p);
    skip_to(r, p);
    if (r->in->eof)
        return end_of_input(r);
    if (r->in->len < r->value_max)
        return chrome_more(r);
    if (!value)
        return junk(r, r->in->data + 1);
    chrome_note(r, FOUND_TOP_BIG, value);
    chrome_flush_notes(r);
    skip_to(r, value);
    r->skip = (struct sv_json_skip){0};
    r->state = STATE_SKIP;
    return STEP_ON;
}

static enum chrome_step top(struct chrome_reader *r)
{
    const uint8_t *p = r->in->data, *end = p + r->in->len;
    p = sv_json_solid(p, end);
    if (p < end && *p == ',')
        p = sv_json_solid(p + 1, end);
    if (p == end) {
        skip_to(r, p);
        return r->in->eof ? end_of_input(r) : chrome_more(r);
    }
    if (*p == '"')
        return top_member(r, p, end);
    if (*p == '}') {
        skip_to(r, p + 1);
        r->state = STATE_AFTER;
        return STEP_ON;
    }
    if (*p == 0) {
        skip_to(r, skip_nuls(r, p, end));
        return STEP_ON;
    }
    return junk(r, p);
}

/* A top-level value that is too large for the window. */
static enum chrome_step skip_value(struct chrome_reader *r)
{
    const uint8_t *p = r->in->data, *end = p + r->in->len;
    const uint8_t *q = sv_json_skip(&r->skip, r->scan, p, end);
    skip_to(r, q ? q : end);
    if (q) {
        r->state = STATE_TOP;
        return STEP_ON;
    }
    return r->in->eof ? end_of_input(r) : chrome_more(r);
}

/* ---- the events ---- */

/* Is there a newline between the last event and p? */
static bool has_line_before(const struct chrome_reader *r, const uint8_t *p)
{
    while (p > r->in->data && sv_json_is_blank(p[-1]))
        if (*--p == '\n')
            return true;
    return p == r->in->data && r->gap_has_line;
}

/* Bytes up to p leave the window before the next event is read. */
static void leave_gap(struct chrome_reader *r, const uint8_t *p)
{
    r->gap_has_line = has_line_before(r, p);
    skip_to(r, p);
}

/* Two events without a comma between them. Some writers put one event a line and no commas, which
 * is fine. */
static void note_separator(struct chrome_reader *r, const uint8_t *p)
{
    if (!has_line_before(r, p) || (!r->by_lines && r->n_events != 1)) {
        chrome_note(r, FOUND_MISSING_COMMA, p);
        return;
    }
    if (!r->by_lines)
        chrome_note(r, FOUND_LINES, p);
    r->by_lines = true;
}

/* Something else than an event, at p. Returns where to continue, or NULL: *step says how. */
static const uint8_t *between_events(struct chrome_reader *r, const uint8_t *p, const uint8_t *end,
                                     enum chrome_step *step)
{
    if (*p == ',') {
        if (r->after_comma && !r->is_lost)
            chrome_note(r, FOUND_EXTRA_COMMA, p);
        chrome_flush_notes(r);
        r->after_comma = true;
        return p + 1;
    }
    if (*p == ']' && r->is_lost) {
        *step = chrome_lost_bracket(r, p, end);
        return NULL;
    }
    if (*p == ']' && r->form != FORM_LINES) {
        if (r->after_comma && r->n_events)
            chrome_note(r, FOUND_EXTRA_COMMA, p);
        chrome_flush_notes(r);
        skip_to(r, p + 1);
        r->state = r->form == FORM_OBJECT ? STATE_TOP : STATE_AFTER;
        r->is_closed = true;
        *step = STEP_ON;
        return NULL;
    }
    if (*p == 0)
        return skip_nuls(r, p, end);
    if (!r->is_lost && (*p == '"' || *p == '-' || (*p >= '0' && *p <= '9') || *p == 't' ||
                        *p == 'f' || *p == 'n')) {
        const uint8_t *q = chrome_skip(r, p, end), *next = q ? sv_json_solid(q, end) : end;
        if (next == end && !r->in->eof && (size_t)(end - p) < r->value_max) {
            skip_to(r, p);
            *step = chrome_more(r);
            return NULL;
        }
        if (q && (next == end || *next == ',' || *next == ']')) {
            chrome_note(r, FOUND_NOT_EVENT, p);
            chrome_flush_notes(r);
            r->after_comma = false;
            return q;
        }
    }
    *step = junk(r, p);
    return NULL;
}

/* The object at p. Returns the byte after it, or NULL: *step says how to continue. */
static inline const uint8_t *one_event(struct chrome_reader *r, const uint8_t *p,
                                       const uint8_t *end, enum chrome_step *step)
{
    struct chrome_fields f;
    memset(&f, 0, offsetof(struct chrome_fields, raw));
    f.start = p;
    const uint8_t *q = chrome_event(r, p, end, &f);
    if (__builtin_expect(!q, 0)) {
        bool is_too_big = false;
        if (r->stop_is_cut && !r->in->eof) {
            is_too_big = (size_t)(end - p) >= r->value_max;
            if (!is_too_big) {
                chrome_drop_notes(r);
                sv_batch_drop_args(r->batch);
                leave_gap(r, p);
                *step = chrome_more(r);
                return NULL;
            }
        }
        *step = chrome_go_lost(r, chrome_recover(r, &f, is_too_big));
        return NULL;
    }
    if (__builtin_expect(r->is_lost, 0)) {
        if (!(f.has >> FIELD_PH & 1)) { /* a piece of what was damaged */
            sv_batch_drop_args(r->batch);
            chrome_drop_notes(r);
            return q;
        }
        r->is_lost = r->is_closed = false;
    } else if (__builtin_expect(!r->after_comma && r->form != FORM_LINES, 0)) {
        note_separator(r, p);
    }
    if (__builtin_expect(!chrome_emit(r, &f), 0)) {
        chrome_drop_notes(r);
        leave_gap(r, p);
        *step = STEP_FULL;
        return NULL;
    }
    r->n_events++;
    r->gap_has_line = false;
    if (__builtin_expect(r->pending_mask != 0, 0))
        chrome_flush_notes(r);
    return q;
}

const uint8_t *chrome_one_event(struct chrome_reader *r, const uint8_t *p, const uint8_t *end,
                                enum chrome_step *step)
{
    return one_event(r, p, end, step);
}

static enum chrome_step events(struct chrome_reader *r)
{
    if (r->ahead && (chrome_ahead_is_on(r) || chrome_ahead_try(r))) {
        enum chrome_step ahead = chrome_ahead_events(r);
        if (ahead != STEP_ON)
            return ahead;
    }
    struct sv_input *in = r->in;
    const uint8_t *p = in->data, *end = p + in->len, *next;
    enum chrome_step step = STEP_ON;
    for (; r->batch->n < SV_BATCH; p = next) {
        p = sv_json_solid(p, end);
        if (p == end) {
            leave_gap(r, p);
            return in->eof ? end_of_input(r) : chrome_more(r);
        }
        if (__builtin_expect(*p == '{', 1)) {
            next = one_event(r, p, end, &step);
            if (next)
                r->after_comma = *next == ',' && next < end;
            if (next && r->after_comma)
                next++;
        } else {
            next = between_events(r, p, end, &step);
        }
        if (!next)
            return step;
    }
    leave_gap(r, p);
    return STEP_FULL;
}

static enum chrome_step after(struct chrome_reader *r)
{
    const uint8_t *p = r->in->data, *end = p + r->in->len;
    p = sv_json_solid(p, end);
    if (p == end) {
        skip_to(r, p);
        return r->in->eof ? end_of_input(r) : chrome_more(r);
    }
    if (*p == 0) {
        skip_to(r, skip_nuls(r, p, end));
        return STEP_ON;
    }
    if (*p == '{' || *p == '[') {
        chrome_note(r, FOUND_DOCUMENTS, p);
        chrome_flush_notes(r);
        skip_to(r, p);
        r->state = STATE_START;
        return STEP_ON;
    }
    return junk(r, p);
}

/* ---- the source ---- */

static enum chrome_step (*const steps[])(struct chrome_reader *) = {
    [STATE_START] = start,   [STATE_TOP] = top,          [STATE_SKIP] = skip_value,
    [STATE_EVENTS] = events, [STATE_LOST] = chrome_lost, [STATE_AFTER] = after};

static int next(struct sv_source *s, struct sv_batch *b, struct sv_err *err)
{
    struct chrome_reader *r = (struct chrome_reader *)(void *)s;
    assert(b->n == 0);
    r->batch = b;
    while (r->state != STATE_END && b->n < SV_BATCH) {
        bool must_leave = chrome_ahead_is_on(r) && (r->state != STATE_EVENTS || r->is_lost);
        enum chrome_step step = r->need || must_leave ? STEP_MORE : steps[r->state](r);
        if (step == STEP_FULL)
            break;
        if (step == STEP_ON)
            continue;
        if (b->n) /* its texts are in the window */
            break;
        size_t need = r->need;
        r->need = 0;
        if (must_leave) {
            chrome_ahead_leave(r);
            continue;
        }
        if (chrome_ahead_is_on(r)) {
            chrome_ahead_next(r);
            continue;
        }
        int rc = sv_input_fill(r->in, need, err);
        if (rc < 0)
            return rc;
        if (rc == 0 && !r->in->eof)
            return sv_err_set(err, SV_EIO, (int64_t)r->in->pos,
                              "the input gives nothing and does not end");
    }
    if (r->state == STATE_END)
        chrome_balance_report(r);
    if (r->once_paths)
        sv_once_paths_fill_in(r->once_paths, b);
    if (b->n == 0 && !r->any_list && r->n_events == 0)
        return sv_error(err, SV_EFORMAT, "no trace events found: not a Chrome trace");
    return sv_source_given(s, b->n, err);
}

static void close_source(struct sv_source *s)
{
    struct chrome_reader *r = (struct chrome_reader *)(void *)s;
    chrome_ahead_close(r);
    chrome_fini(r);
    free(r);
}

void chrome_fini(struct chrome_reader *r)
{
    sv_once_paths_free(r->once_paths);
    sv_map_fini(&r->text_numbers);
    sv_map_fini(&r->tracks);
    sv_map_fini(&r->pid_tracks);
    sv_map_fini(&r->plain_tracks);
    sv_map_fini(&r->frames);
    chrome_device_fini(r);
    chrome_balance_fini(&r->balance);
    free(r->frame_list);
    free(r->seen);
    free(r->undo);
}

static void init_guesses(struct chrome_guess (*shapes)[CHROME_PLACES * CHROME_WAYS])
{
    for (size_t i = 0; i < CHROME_SHAPES; i++) {
        for (size_t k = 0; k < (size_t)CHROME_PLACES * CHROME_WAYS; k++) {
            shapes[i][k].least = 255;
            shapes[i][k].step = k < (size_t)(CHROME_PLACES - 1) * CHROME_WAYS ? CHROME_WAYS : 0;
        }
    }
}

void chrome_init(struct chrome_reader *r, struct sv_dict *dict, size_t value_max)
{
    r->dict = dict;
    r->scan = sv_json_scan_best();
    init_guesses(r->event_guesses);
    init_guesses(r->args_guesses);
    r->value_max = value_max;
}

static int open_source(struct sv_input *in, const struct sv_read_options *options,
                       struct sv_dict *dict, struct sv_report *report, struct sv_source **out,
                       struct sv_err *err)
{
    (void)err;
    struct chrome_reader *r = sv_alloc(sizeof *r);
    r->source = (struct sv_source){
        .next = next,
        .close = close_source,
        .gives = SV_HAS_EDGES | SV_HAS_SLICES | SV_IN_NO_ORDER | SV_HAS_FLOW_POINTS,
        .dict = dict,
        .report = report,
        .beside_from = 3, /* two threads have enough to do with reading ahead and storing */
    };
    chrome_init(r, dict,
                in->window_limit / 2 < CHROME_VALUE_MAX ? in->window_limit / 2 : CHROME_VALUE_MAX);
    r->in = in;
    r->space = options ? options->space : 0;
    chrome_ahead_open(r, options);
    *out = &r->source;
    return 0;
}

static bool contains(const uint8_t *head, size_t n, const char *text)
{
    return memmem(head, n, text, strlen(text)) != NULL;
}

static int probe(const uint8_t *head, size_t n)
{
    const uint8_t *p = head, *end = head + n;
    if (n >= 3 && memcmp(p, "\xef\xbb\xbf", 3) == 0)
        p += 3;
    while (p < end && sv_json_is_blank(*p))
        p++;
    size_t left = (size_t)(end - p);
    if (left == 0)
        return 0;
    bool has_phase = contains(p, left, "\"ph\"");
    if (*p == '{')
        return contains(p, left, "\"traceEvents\"") ? 100 : has_phase ? 90 : left > 1 ? 30 : 5;
    if (*p == '[')
        return has_phase ? 95 : 30;
    /* A file that lost its head, perhaps. */
    return has_phase && contains(p, left, "\"ts\"") ? 20 : 0;
}

static const struct sv_dialect dialects[] = {
    {"object", "an object with traceEvents, the default", NULL, NULL},
    {"array", "only the array of events", "metadata, but for an event that only Stave reads", NULL},
    {"kineto", "as PyTorch's profiler writes it",
     "slices that never ended (get duration 0), kinds of tracks", &sv_kineto_writer},
    {"tracesmith", "as TraceSmith writes it", "all but GPU work and counters, nested arguments",
     &sv_tracesmith_writer},
    {"tracesmith-basic", "the same without track names and arrows",
     "all but GPU work and counters, nested arguments, flows", &sv_tracesmith_writer},
    {"ferrum", "as ferrum's trace writer writes it",
     "all but slices; flows, names of tracks, parts of a microsecond", &sv_ferrum_writer},
    {"batching", "a server's batching_trace.json", "all but a server's requests and batches",
     &sv_batching_writer},
    {"batching-newer", "a server's perfetto_trace.json", "all but a server's requests and batches",
     &sv_batching_writer},
    {0},
};

const struct sv_format sv_chrome_format = {
    .name = "chrome",
    .help = "Chrome trace-event JSON, Kineto's included",
    .lacks =
        "arguments of counters, pointers (come back as text), NaN and infinities in arguments "
        "(become strings), bytes that are not UTF-8 (become `\\xNN`); units of counters, kinds "
        "of tracks and "
        "clocks are in keys that only Stave reads",
    .probe = probe,
    .open_source = open_source,
    .writer = &sv_chrome_writer,
    .dialects = dialects,
};
