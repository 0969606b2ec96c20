/* MLPerf logs: `:::MLLOG {json}` among the other lines of an application's output, perhaps after a
 * launcher's prefix "[rank] ".
 *
 * Opened through the table of formats. Times are milliseconds since 1970, UTC. INTERVAL_START and
 * INTERVAL_END become slices, or, in logs without event types, keys that end in _start and _stop;
 * all else becomes instants. Other lines are counted. */
#include "core/stream/json_members.h"
#include "formats/logs/phases.h"

#include <math.h>
#include <string.h>

static const char mark[] = ":::MLLOG";

struct mllog {
    struct sv_lines lines;
    struct sv_phases phases;
};

struct record {
    int64_t time_ms, rank, number;
    bool has_time;
    struct sv_text key, type;
    struct sv_member value;
};

static int probe(const uint8_t *head, size_t n)
{
    const char *at = sv_bytes_find((const char *)head, n, mark);
    size_t left = at ? n - (size_t)(at - (const char *)head) : 0;
    return left > 10 && memchr(at, '{', left < 12 ? left : 12) ? 95 : 0;
}

static void take_metadata(const struct sv_member *metadata, struct record *r)
{
    struct sv_members members = sv_members_of(metadata->value.bytes, metadata->value.len);
    for (struct sv_member m; sv_member_next(&members, &m);) {
        if (sv_member_is(&m, "rank") || sv_member_is(&m, "process_index"))
            (void)sv_member_i64(&m, &r->rank);
        else if (sv_member_is(&m, "epoch_num") || sv_member_is(&m, "first_epoch_num") ||
                 sv_member_is(&m, "step_num") || sv_member_is(&m, "block"))
            (void)sv_member_i64(&m, &r->number);
    }
}

static bool take_record(const char *json, size_t len, struct sv_batch *b, struct record *r)
{
    struct sv_members members = sv_members_of(json, len);
    for (struct sv_member m; sv_member_next(&members, &m);) {
        if (sv_member_is(&m, "time_ms"))
            r->has_time = sv_member_i64(&m, &r->time_ms);
        else if (sv_member_is(&m, "key") && m.type == '"')
            r->key = sv_member_text(&m, b);
        else if (sv_member_is(&m, "event_type") && m.type == '"')
            r->type = sv_member_text(&m, b);
        else if (sv_member_is(&m, "value"))
            r->value = m;
        else if (sv_member_is(&m, "metadata") && m.type == '{')
            take_metadata(&m, r);
    }
    return !members.is_bad && r->has_time && r->time_ms > 0 && r->time_ms < INT64_MAX / 1000000 &&
           r->key.len > 0;
}

/* The launcher's "[0] " or "[1,0]<stdout>:" before the mark. */
static int64_t rank_of(const char *p, size_t len)
{
    int64_t rank = -1;
    if (len < 3 || p[0] != '[')
        return -1;
    const char *close = memchr(p, ']', len), *comma = memrchr(p, ',', len);
    const char *from = comma && close && comma < close ? comma + 1 : p + 1;
    if (!close || !sv_text_i64((struct sv_text){from, (uint32_t)(close - from)}, &rank))
        return -1;
    return rank;
}

static bool ends_with(struct sv_text t, const char *suffix, struct sv_text *stem)
{
    size_t n = strlen(suffix);
    if (t.len <= n || memcmp(t.bytes + t.len - n, suffix, n) != 0)
        return false;
    *stem = (struct sv_text){t.bytes, t.len - (uint32_t)n};
    return true;
}

static void put_point(struct sv_lines *l, struct sv_batch *b, const struct record *r,
                      sv_track track)
{
    int64_t i;
    double d;
    if (r->value.type == '0' && sv_member_i64(&r->value, &i))
        sv_add_int(l, b, "value", i);
    else if (r->value.type == '0' && sv_member_double(&r->value, &d) && isfinite(d))
        sv_add_double(l, b, "value", d);
    else if (r->value.type && r->value.type != 'n')
        sv_add_text(l, b, "value", sv_member_text(&r->value, b));
    if (r->number >= 0)
        sv_add_int(l, b, "epoch", r->number);
    sv_put_event(l, b, SV_INSTANT, r->time_ms * 1000000, track,
                 sv_dict_str(l->dict, r->key.bytes, r->key.len), "log");
}

static bool put_record(struct mllog *s, struct sv_batch *b, const struct record *r)
{
    struct sv_lines *l = &s->lines;
    sv_track track = sv_phase_track(l, r->rank);
    struct sv_text stem = r->key;
    bool begins = ends_with(r->key, "_start", &stem);
    bool ends = !begins && (ends_with(r->key, "_stop", &stem) || ends_with(r->key, "_end", &stem));
    if (r->type.len) {
        begins = sv_text_is(r->type, "INTERVAL_START");
        ends = sv_text_is(r->type, "INTERVAL_END");
    }
    if (!begins && !ends) {
        put_point(l, b, r, track);
        return true;
    }
    sv_str name = sv_dict_str(l->dict, stem.bytes, stem.len);
    int64_t ts_ns = r->time_ms * 1000000;
    if (begins)
        return sv_phase_begin(&s->phases, track, name, ts_ns, r->number) ||
               sv_lines_bad(l, "fewer phases that are open at once");
    return sv_phase_end(&s->phases, l, b, track, name, ts_ns, r->number) ||
           sv_lines_bad(l, "a beginning before this end");
}

static bool line(struct sv_lines *l, struct sv_batch *b, const char *p, size_t len)
{
    struct mllog *s = (struct mllog *)l;
    const char *at = sv_bytes_find(p, len, mark);
    if (!at) {
        if (len)
            sv_report_add(l->source.report, SV_SKIPPED, "line without :::MLLOG", 1, l->pos, NULL);
        return true;
    }
    struct record r = {.rank = rank_of(p, (size_t)(at - p)), .number = -1};
    at += sizeof mark - 1;
    if (!take_record(at, (size_t)(p + len - at), b, &r))
        return sv_lines_bad(l, "an object with key and time_ms");
    return put_record(s, b, &r);
}

static bool end(struct sv_lines *l, struct sv_batch *b)
{
    return sv_phase_leave(&((struct mllog *)l)->phases, l, b);
}

static void fini(struct sv_lines *l)
{
    sv_phases_fini(&((struct mllog *)l)->phases);
}

static const struct sv_lines_kind kind = {
    .size = sizeof(struct mllog),
    .max_events = 1,
    .gives = SV_HAS_SLICES | SV_IN_NO_ORDER,
    .damaged = "line that is not MLLOG's",
    .clock = SV_CLOCK_REALTIME,
    .line = line,
    .end = end,
    .fini = fini,
};

const struct sv_format sv_mllog_format = {
    .name = "mllog",
    .help = "a log with MLPerf's :::MLLOG lines",
    .lacks = "threads, flows, times below a millisecond",
    .files = "lines with `:::MLLOG {…}` among others, with a launcher's `[rank]` before them",
    .times = "UTC, milliseconds",
    .probe = probe,
    .covers = SV_ABOUT_PHASES,
    .lines = &kind,
};
