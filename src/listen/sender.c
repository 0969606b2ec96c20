/* One sender: see sender.h. Knows nothing of sockets and clocks; listen.c reads, answers and
 * watches the time. */
#include "listen/sender.h"

#include <errno.h>

/* ---- the greeting ---- */

static enum sv_greeted judge(const struct sv_greeting *g, const char *token)
{
    static const char any[] = "STAVE ";
    size_t len = sizeof SV_GREETING - 1;
    if (g->n < len || memcmp(g->text, SV_GREETING, len) != 0)
        return g->n >= sizeof any && memcmp(g->text, any, sizeof any - 1) == 0 ? SV_GREETED_VERSION
                                                                               : SV_GREETED_WRONG;
    return !token || sv_token_equal(token, g->text + len, g->n - len) ? SV_GREETED_OK
                                                                      : SV_GREETED_TOKEN;
}

enum sv_greeted sv_greeting_take(struct sv_greeting *g, const uint8_t *bytes, size_t n,
                                 const char *token, size_t *used)
{
    for (*used = 0; *used < n;) {
        char c = (char)bytes[(*used)++];
        if (c == '\n')
            return judge(g, token);
        if (g->n == sizeof g->text)
            return SV_GREETED_WRONG;
        g->text[g->n++] = c;
    }
    return SV_GREETED_MORE;
}

/* ---- frames ---- */

static bool is_possible(const struct sv_frames *f, const struct sv_frame *head)
{
    return head->bytes <= SV_FRAME_BYTES_MAX && head->events >= f->events &&
           head->events <= INT64_MAX && (head->flags & ~(uint64_t)SV_FRAME_LAST) == 0;
}

static enum sv_frames_step end_frame(struct sv_frames *f)
{
    f->is_open = false;
    f->n_head = 0;
    f->events = f->frame.events;
    f->has_ended = (f->frame.flags & SV_FRAME_LAST) != 0;
    return SV_FRAMES_WHOLE;
}

enum sv_frames_step sv_frames_next(struct sv_frames *f, const uint8_t *bytes, size_t n,
                                   size_t *used)
{
    *used = 0;
    if (f->has_ended)
        return n == 0 ? SV_FRAMES_MORE : SV_FRAMES_BAD;
    if (f->is_open) {
        *used = f->left < n ? (size_t)f->left : n;
        f->left -= *used;
        return f->left == 0 ? end_frame(f) : SV_FRAMES_MORE;
    }
    *used = sizeof f->head - f->n_head < n ? sizeof f->head - f->n_head : n;
    memcpy(f->head + f->n_head, bytes, *used);
    f->n_head += *used;
    if (f->n_head < sizeof f->head)
        return SV_FRAMES_MORE;
    struct sv_frame head = sv_frame_get(f->head);
    if (!is_possible(f, &head))
        return SV_FRAMES_BAD;
    f->frame = head;
    f->left = head.bytes;
    f->is_open = true;
    return SV_FRAMES_HEAD;
}

/* ---- the stream ---- */

static bool is_losing(const struct sv_stream *s)
{
    uint32_t cause = s->spooled.slot.cause;
    return cause == SV_SPOOL_LIMIT || cause == SV_SPOOL_NO_SPACE;
}

/* From here on nothing of it is stored: names that were in what is missing would be missing in what
 * follows. */
static void begin_loss(struct sv_stream *s, struct sv_spool *spool, enum sv_spool_cause cause)
{
    s->spooled.slot.cause = cause;
    s->spooled.slot.events = s->frames.is_open ? s->frames.frame.events : s->frames.events;
    sv_spool_note(spool, &s->spooled);
}

static void store(struct sv_stream *s, struct sv_spool *spool, const uint8_t *bytes, size_t n)
{
    if (n > 0 && !is_losing(s) && !sv_spool_put(spool, &s->spooled, bytes, n))
        begin_loss(s, spool, errno == EFBIG ? SV_SPOOL_LIMIT : SV_SPOOL_NO_SPACE);
}

/* A head is whole. `before` bytes of frames before it are not stored yet, `with` that head. */
static void meet_head(struct sv_stream *s, struct sv_spool *spool, const uint8_t *bytes,
                      size_t before, size_t with)
{
    if (!is_losing(s) && !sv_spool_has_place(spool, with + s->frames.left)) {
        store(s, spool, bytes, before);
        if (!is_losing(s)) {
            s->kept = s->frames.events;
            begin_loss(s, spool, SV_SPOOL_LIMIT);
        }
    } else if (is_losing(s)) {
        s->spooled.slot.events = s->frames.frame.events;
        sv_spool_note(spool, &s->spooled);
    }
}

/* What was not stored may have been no more than this end. */
static void end_stream(struct sv_stream *s, struct sv_spool *spool)
{
    if (is_losing(s) && s->kept != s->frames.events)
        return;
    s->spooled.slot.cause = SV_SPOOL_WHOLE;
    s->spooled.slot.events = s->frames.events;
    sv_spool_note(spool, &s->spooled);
}

enum sv_taken sv_stream_take(struct sv_stream *s, struct sv_spool *spool, const uint8_t *bytes,
                             size_t n)
{
    size_t at = 0, whole = 0, used;
    enum sv_frames_step step;
    do {
        step = sv_frames_next(&s->frames, bytes + at, n - at, &used);
        at += used;
        if (step == SV_FRAMES_HEAD)
            meet_head(s, spool, bytes, whole, at);
        if (step == SV_FRAMES_WHOLE)
            whole = at;
    } while (step != SV_FRAMES_MORE && step != SV_FRAMES_BAD);
    store(s, spool, bytes, step == SV_FRAMES_BAD ? whole : n);
    if (!is_losing(s))
        s->kept = s->frames.events;
    if (whole > 0)
        s->taken = s->seen + whole;
    s->seen += n;
    if (s->frames.has_ended)
        end_stream(s, spool);
    return step == SV_FRAMES_BAD ? SV_TAKEN_BAD
           : s->frames.has_ended ? SV_TAKEN_LAST
                                 : SV_TAKEN_SOME;
}

void sv_stream_cut(struct sv_stream *s, struct sv_spool *spool, enum sv_spool_cause cause)
{
    if (is_losing(s) || s->spooled.slot.cause == SV_SPOOL_WHOLE)
        return;
    bool is_missing = s->frames.is_open && cause != SV_SPOOL_STOP; /* then the sender keeps it */
    s->spooled.slot.cause = cause;
    s->spooled.slot.events = is_missing ? s->frames.frame.events : s->frames.events;
    sv_spool_note(spool, &s->spooled);
}
