/* Requests that are received: see check.h. All of the message is looked at, by the table of
 * schema.h, so that the reader of the kept bytes finds no damage. */
#include "formats/otlp/check.h"
#include "formats/otlp/reader.h"

enum { NESTED_MAX = 2 * OTLP_DEPTH_MAX + 4 };

/* Can it be read to its end, with all that is in it? Fields that nobody knows are as they are. */
static bool is_sound(const struct sv_otlp_message *m, struct sv_pb w, unsigned depth)
{
    for (struct sv_pb_field f; sv_pb_next(&w, &f);) {
        const struct sv_otlp_field *known = sv_otlp_field(m, f.id);
        if (!known)
            continue;
        if (f.type != sv_otlp_wire_type(known))
            return false;
        if (known->type == OTLP_TYPE_MESSAGE &&
            (depth == NESTED_MAX || !is_sound(known->message, sv_pb_sub(&f), depth + 1)))
            return false;
    }
    return !w.bad;
}

static bool has_late_event(struct sv_pb w)
{
    struct sv_pb_field f, time;
    while (sv_pb_next(&w, &f)) {
        if (f.id != OTLP_SPAN_EVENTS || f.type != SV_PB_BYTES)
            continue;
        for (struct sv_pb event = sv_pb_sub(&f); sv_pb_next(&event, &time);)
            if (time.id == OTLP_EVENT_TIME && time.type == SV_PB_FIXED64 && time.u > INT64_MAX)
                return true;
    }
    return false;
}

/* Why a span cannot be kept, or NULL. */
static const char *judge(struct sv_pb w)
{
    struct otlp_span s;
    otlp_span_outline(w, &s);
    if (s.wrong)
        return s.wrong;
    if (s.start > INT64_MAX || s.end > INT64_MAX || (s.has_events && has_late_event(w)))
        return "a time is past the year 2262";
    return NULL;
}

static bool copy_scope_spans(struct sv_pb w, struct sv_buf *out, struct sv_otlp_checked *c)
{
    struct sv_pb_field f;
    const uint8_t *from = w.p;
    for (; sv_pb_next(&w, &f); from = w.p) {
        const char *why = f.id == OTLP_SS_SPANS ? judge(sv_pb_sub(&f)) : NULL;
        if (!why) {
            sv_buf_add(out, from, (size_t)(w.p - from));
            c->spans += f.id == OTLP_SS_SPANS;
            continue;
        }
        c->why = c->rejected++ ? c->why : why;
    }
    return !w.bad;
}

/* A message with its elements of this number copied by `copy`, all else as it is. */
static bool copy_with(struct sv_pb w, uint32_t id, struct sv_buf *out, struct sv_otlp_checked *c,
                      bool (*copy)(struct sv_pb, struct sv_buf *, struct sv_otlp_checked *))
{
    struct sv_pb_field f;
    bool ok = true;
    const uint8_t *from = w.p;
    for (; ok && sv_pb_next(&w, &f); from = w.p) {
        if (f.id != id || f.type != SV_PB_BYTES) {
            sv_buf_add(out, from, (size_t)(w.p - from));
            continue;
        }
        size_t mark = sv_put_begin(out, id);
        ok = copy(sv_pb_sub(&f), out, c);
        sv_put_end(out, mark);
    }
    return ok && !w.bad;
}

static bool copy_resource_spans(struct sv_pb w, struct sv_buf *out, struct sv_otlp_checked *c)
{
    return copy_with(w, OTLP_RS_SCOPE_SPANS, out, c, copy_scope_spans);
}

bool sv_otlp_check(const uint8_t *bytes, size_t len, struct sv_buf *out, struct sv_otlp_checked *c)
{
    struct sv_pb w = len ? sv_pb_at(bytes, len) : (struct sv_pb){0};
    *c = (struct sv_otlp_checked){0};
    if (len == 0)
        return true;
    return is_sound(&sv_otlp_request, w, 0) &&
           copy_with(w, OTLP_RESOURCE_SPANS, out, c, copy_resource_spans) && !out->failed;
}
