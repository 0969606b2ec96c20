/* Lines, fields, wall time and arguments for the readers of text logs. Opened by each of them
 * through sv_lines_open().
 *
 * Lines are bounded: a longer one is damage and is passed over without being kept. */
#include "formats/lines.h"

#include "core/base/hex.h"
#include "core/base/mem.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE_MAX_BYTES 1048576u
#define HALF_DAY_NS    (43200 * SV_S_NS)

/* ---- the source ---- */

static void damaged(struct sv_lines *l, const char *what, const char *why)
{
    sv_report_add(l->source.report, SV_DAMAGE, what, 1, l->pos, "%s", why ? why : "not understood");
}

/* Passes over a line that is too long, as far as it goes. */
static int pass_long_line(struct sv_lines *l, struct sv_err *err)
{
    damaged(l, "line that is too long", "more than 1 MiB");
    for (;;) {
        const uint8_t *end = memchr(l->in->data, '\n', l->in->len);
        sv_input_skip(l->in, end ? (size_t)(end - l->in->data) + 1 : l->in->len);
        if (end)
            return 0;
        int more = sv_input_need(l->in, 1, err);
        if (more <= 0)
            return more;
    }
}

/* Finds the end of the line at the window's start. 1: there is a line of *len bytes (without its
 * end), which takes *taken. */
static int find_line(struct sv_lines *l, size_t *len, size_t *taken, struct sv_err *err)
{
    size_t seen = 0;
    for (;;) {
        const uint8_t *end = seen < l->in->len ? memchr(l->in->data + seen, '\n', l->in->len - seen)
                                               : NULL;
        if (end) {
            *len = (size_t)(end - l->in->data);
            *taken = *len + 1;
            break;
        }
        seen = l->in->len;
        if (seen > LINE_MAX_BYTES) {
            *len = seen;
            break;
        }
        int more = sv_input_need(l->in, seen + 1, err);
        if (more < 0)
            return more;
        if (more == 0) {
            *len = *taken = l->in->len;
            return l->in->len > 0;
        }
    }
    return *len <= LINE_MAX_BYTES ? 1 : 2;
}

static int read_line(struct sv_lines *l, struct sv_batch *b, struct sv_err *err)
{
    size_t len, taken;
    l->pos = (int64_t)l->in->pos;
    int found = find_line(l, &len, &taken, err);
    if (found < 0)
        return found;
    if (found == 0) {
        l->is_at_end = true;
        return 0;
    }
    if (found == 2)
        return pass_long_line(l, err);
    const char *p = (const char *)l->in->data;
    while (len > 0 && (p[len - 1] == '\r' || p[len - 1] == '\0'))
        len--;
    l->why = NULL;
    size_t before = b->n;
    if (!l->kind->line(l, b, p, len)) {
        damaged(l, l->kind->damaged, l->why);
        b->n = before;
        sv_batch_drop_args(b);
    }
    sv_input_skip(l->in, taken);
    return 0;
}

/* The events of one line, or what else the reader gives at once. */
static int give_some(struct sv_lines *l, struct sv_batch *b, struct sv_err *err)
{
    if (l->kind->more && l->kind->more(l, b))
        return 0;
    if (!l->is_at_end)
        return l->kind->read ? l->kind->read(l, b, err) : read_line(l, b, err);
    if (!l->kind->end || !l->kind->end(l, b)) {
        l->is_finished = true;
        sv_input_report(l->in, l->source.report);
    }
    return 0;
}

static int next(struct sv_source *s, struct sv_batch *b, struct sv_err *err)
{
    struct sv_lines *l = (struct sv_lines *)s;
    while (!l->is_finished && b->n + l->kind->max_events <= SV_BATCH && !s->has_refused) {
        size_t before = b->n;
        int code = give_some(l, b, err);
        if (code < 0)
            return code;
        for (size_t i = before; i < b->n; i++)
            if (!sv_event_ends(&b->events[i]))
                sv_source_refuse(s, l->pos);
    }
    return sv_source_given(s, b->n, err);
}

static void close_source(struct sv_source *s)
{
    struct sv_lines *l = (struct sv_lines *)s;
    if (l->kind->fini)
        l->kind->fini(l);
    sv_zone_free(l->utc);
    free(l);
}

static void use_log_zone(struct sv_lines *l)
{
    if (!l->log_zone && sv_zone_open("UTC", &l->utc, NULL) == 0)
        sv_report_add(l->source.report, SV_NOTE, l->kind->taken_as_utc, 1, SV_NO_POS,
                      "stave import --log-tz gives another zone");
    l->wall.zone = l->log_zone ? l->log_zone : l->utc;
    l->wall.is_elsewhere = true;
}

int sv_lines_open(const struct sv_lines_kind *kind, struct sv_input *in,
                  const struct sv_read_options *options, struct sv_dict *dict,
                  struct sv_report *report, struct sv_source **out)
{
    struct sv_lines *l = sv_alloc(kind->size);
    l->source = (struct sv_source){
        .next = next, .close = close_source, .gives = kind->gives, .dict = dict, .report = report};
    l->kind = kind;
    l->in = in;
    l->dict = dict;
    l->space = options->space;
    l->wall = (struct sv_wall){
        .zone = options->zone, .has_date = options->has_date, .days = options->date_days};
    l->wall.last_utc_s = INT64_MIN;
    l->log_zone = options->log_zone;
    l->columns = options->columns;
    l->roles = options->roles;
    l->skip_subjects = options->skip_subjects;
    if (kind->taken_as_utc)
        use_log_zone(l);
    if (kind->clock)
        dict->clocks.trace_clock = kind->clock;
    if (kind->init)
        kind->init(l);
    *out = &l->source;
    return SV_OK;
}

/* ---- wall time ---- */

void sv_wall_set_date(struct sv_wall *w, int64_t days)
{
    if (!w->has_date || days != w->days)
        w->last_of_day = 0;
    w->has_date = true;
    w->days = days;
}

bool sv_wall_ns(struct sv_wall *w, int64_t ns_of_day, int64_t *ns)
{
    if (w->last_of_day - ns_of_day > HALF_DAY_NS)
        w->days++;
    w->last_of_day = ns_of_day;
    int64_t second = w->days * SV_DAY_S + ns_of_day / SV_S_NS;
    if (w->zone)
        second = sv_zone_utc(w->zone, second, w->last_utc_s);
    w->last_utc_s = second;
    return !__builtin_mul_overflow(second, SV_S_NS, ns) &&
           !__builtin_add_overflow(*ns, ns_of_day % SV_S_NS, ns);
}

void sv_wall_set_clock(struct sv_lines *l)
{
    bool is_known = l->wall.zone && l->wall.has_date;
    l->dict->clocks.trace_clock = is_known ? SV_CLOCK_REALTIME : SV_CLOCK_UNKNOWN;
    if (!l->wall.has_date)
        sv_report_add(l->source.report, SV_NOTE, "times of day without a date", 1, SV_NO_POS,
                      "they count from 1970-01-01; stave import --date gives the day");
    if (!l->wall.zone)
        sv_report_add(l->source.report, SV_NOTE, "local times without a zone", 1, SV_NO_POS,
                      "they are not converted; stave import --tz gives the zone");
    if (l->wall.has_date && !l->wall.is_elsewhere) {
        char text[32];
        int64_t year;
        unsigned month, day;
        sv_civil_date(l->wall.days, &year, &month, &day);
        int n = snprintf(text, sizeof text, "%04d-%02u-%02u", (int)year, month, day);
        sv_dict_set_meta(l->dict, "local_date", text, (size_t)n, false);
    }
}

/* ---- fields ---- */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

struct sv_text sv_field_next(struct sv_fields *f)
{
    while (f->p < f->end && is_blank(*f->p))
        f->p++;
    const char *start = f->p;
    while (f->p < f->end && !is_blank(*f->p))
        f->p++;
    return (struct sv_text){start, (uint32_t)(f->p - start)};
}

struct sv_text sv_field_rest(struct sv_fields *f)
{
    while (f->p < f->end && is_blank(*f->p))
        f->p++;
    const char *start = f->p, *end = f->end;
    while (end > start && is_blank(end[-1]))
        end--;
    f->p = f->end;
    return (struct sv_text){start, (uint32_t)(end - start)};
}

size_t sv_field_count(struct sv_fields f)
{
    size_t n = 0;
    while (n < 32 && sv_field_next(&f).len)
        n++;
    return n;
}

bool sv_text_u64(struct sv_text t, uint64_t *out)
{
    bool is_hex = t.len > 2 && t.bytes[0] == '0' && t.bytes[1] == 'x';
    uint64_t v = 0, base = is_hex ? 16 : 10;
    if (t.len == 0 || t.len > 24)
        return false;
    for (uint32_t i = is_hex ? 2 : 0; i < t.len; i++) {
        int digit = sv_hex_digit(t.bytes[i]);
        if (digit < 0 || (uint64_t)digit >= base || __builtin_mul_overflow(v, base, &v) ||
            __builtin_add_overflow(v, (uint64_t)digit, &v))
            return false;
    }
    *out = v;
    return true;
}

/* Its digits, and whether a minus is before them. */
static bool signed_digits(struct sv_text t, bool *is_negative, uint64_t *u)
{
    *is_negative = t.len > 0 && t.bytes[0] == '-';
    if (*is_negative)
        t = (struct sv_text){t.bytes + 1, t.len - 1};
    return !(t.len > 1 && t.bytes[1] == 'x') && sv_text_u64(t, u);
}

bool sv_text_i64(struct sv_text t, int64_t *out)
{
    uint64_t u;
    bool is_negative;
    if (!signed_digits(t, &is_negative, &u) || u > (uint64_t)INT64_MAX + is_negative)
        return false;
    *out = (int64_t)(is_negative ? 0 - u : u);
    return true;
}

bool sv_text_signless(struct sv_text t, int64_t *out)
{
    uint64_t u;
    bool is_negative;
    if (!signed_digits(t, &is_negative, &u) || (is_negative && u > (uint64_t)INT64_MAX + 1))
        return false;
    *out = (int64_t)(is_negative ? 0 - u : u);
    return true;
}

bool sv_text_double(struct sv_text t, double *out)
{
    double v = 0, scale = 0;
    uint32_t i = t.len > 0 && t.bytes[0] == '-';
    bool negative = i == 1;
    if (t.len == i || t.len > 32)
        return false;
    for (; i < t.len; i++) {
        char c = t.bytes[i];
        if ((c == '.' || c == ',') && scale == 0 && i + 1 < t.len)
            scale = 1;
        else if (c >= '0' && c <= '9') {
            v = v * 10 + (c - '0');
            scale *= 10;
        } else
            return false;
    }
    v = scale > 0 ? v / scale : v;
    *out = negative ? -v : v;
    return true;
}

const char *sv_bytes_find(const char *p, size_t len, const char *word)
{
    return len ? memmem(p, len, word, strlen(word)) : NULL;
}

bool sv_head_line(struct sv_fields *head, struct sv_text *line)
{
    const char *end = head->p < head->end ? memchr(head->p, '\n', (size_t)(head->end - head->p))
                                          : NULL;
    if (!end && head->p < head->end)
        end = head->end;
    if (!end)
        return false;
    *line = (struct sv_text){head->p, (uint32_t)(end - head->p)};
    while (line->len > 0 && line->bytes[line->len - 1] == '\r')
        line->len--;
    head->p = end < head->end ? end + 1 : end;
    return true;
}

/* ---- events ---- */

static struct sv_arg *add(struct sv_lines *l, struct sv_batch *b, const char *key, unsigned type)
{
    sv_str k = sv_dict_cstr(l->dict, key);
    struct sv_arg *a = sv_batch_arg(b);
    a->key = k;
    a->type = type & 0xff;
    return a;
}

void sv_add_int(struct sv_lines *l, struct sv_batch *b, const char *key, int64_t v)
{
    add(l, b, key, SV_ARG_INT)->i = v;
}

void sv_add_uint(struct sv_lines *l, struct sv_batch *b, const char *key, uint64_t v)
{
    add(l, b, key, v > INT64_MAX ? SV_ARG_UINT : SV_ARG_INT)->u = v;
}

void sv_put_value(struct sv_batch *b, sv_str key, struct sv_text t)
{
    struct sv_arg *a = sv_batch_arg(b);
    bool is_hex = t.len > 1 && t.bytes[1] == 'x';
    a->key = key;
    if (sv_text_i64(t, &a->i)) {
        a->type = SV_ARG_INT;
    } else if (!is_hex && sv_text_u64(t, &a->u)) {
        a->type = SV_ARG_UINT;
    } else if (t.len && strchr("0123456789-.", t.bytes[0]) && sv_text_double(t, &a->d)) {
        a->type = SV_ARG_DOUBLE;
    } else {
        a->type = SV_ARG_TEXT;
        a->text = sv_batch_text(b, t.bytes, t.len);
        a->size = t.len & 0xffffff;
    }
}

void sv_add_pointer(struct sv_lines *l, struct sv_batch *b, const char *key, uint64_t v)
{
    add(l, b, key, SV_ARG_POINTER)->u = v;
}

void sv_add_double(struct sv_lines *l, struct sv_batch *b, const char *key, double v)
{
    add(l, b, key, SV_ARG_DOUBLE)->d = v;
}

void sv_add_text(struct sv_lines *l, struct sv_batch *b, const char *key, struct sv_text t)
{
    const char *copy = sv_batch_text(b, t.bytes, t.len);
    struct sv_arg *a = add(l, b, key, SV_ARG_TEXT);
    a->text = copy;
    a->size = t.len & 0xffffff;
}

void sv_add_result(struct sv_lines *l, struct sv_batch *b, int64_t ret, bool is_transfer)
{
    if (ret >= 0 && is_transfer)
        sv_add_int(l, b, "bytes", ret);
    sv_add_int(l, b, "ret", ret);
    if (ret < 0 && ret >= -4095)
        sv_add_int(l, b, "errno", -ret);
}

struct sv_event *sv_put_event(struct sv_lines *l, struct sv_batch *b, unsigned kind, int64_t ts_ns,
                              sv_track track, sv_str name, const char *cat)
{
    sv_str category = sv_dict_cstr(l->dict, cat);
    struct sv_event *e = sv_batch_put(b, kind, ts_ns, track, name, category);
    sv_batch_finish(b, e);
    return e;
}

void sv_put_counter(struct sv_lines *l, struct sv_batch *b, sv_track track, int64_t ts_ns, double v)
{
    if (!isfinite(v)) {
        damaged(l, "value of a counter that is not a number", "left out");
        return;
    }
    struct sv_event *e = sv_batch_event(b);
    struct sv_arg *a = sv_batch_arg(b);
    a->type = SV_ARG_DOUBLE;
    a->d = v;
    e->kind = SV_COUNTER;
    e->ts_ns = ts_ns;
    e->track = track;
    sv_batch_finish(b, e);
}

sv_track sv_lines_process(struct sv_lines *l, int64_t pid, struct sv_text comm)
{
    sv_track t = sv_dict_process(l->dict, l->space, pid);
    sv_track role = l->roles ? sv_dict_find_track(l->roles, sv_uuid_process(0, pid)) : 0;
    if (role)
        comm = sv_dict_text(l->roles, l->roles->tracks[role].name);
    if (comm.len && !l->dict->tracks[t].name) {
        l->dict->tracks[t].name = sv_dict_str(l->dict, comm.bytes, comm.len);
        sv_dict_touch(l->dict, t);
    }
    return t;
}

sv_track sv_lines_group(struct sv_lines *l, sv_track parent, unsigned kind, const char *name,
                        size_t len)
{
    sv_str s = sv_dict_str(l->dict, name, len);
    return sv_dict_child(l->dict, parent, kind, s);
}

sv_track sv_lines_counter(struct sv_lines *l, sv_track parent, const char *name, const char *unit)
{
    sv_track t = sv_lines_group(l, parent, SV_TRACK_COUNTER, name, strlen(name));
    if (!l->dict->tracks[t].unit) {
        l->dict->tracks[t].unit = sv_dict_cstr(l->dict, unit);
        sv_dict_touch(l->dict, t);
    }
    return t;
}
