/* iostat -o JSON: disk utilisation, an element of `statistics` per interval.
 *
 * Opened through the table of formats. Elements are found one after the other, so that a long file
 * needs no memory and one that was cut (iostat closes its brackets only when it is interrupted)
 * gives all that is whole. The columns depend on iostat's options: -x has rMB/s, plain -d
 * MB_read/s, -k kilobytes. */
#include "core/stream/json_members.h"
#include "formats/logs/meters.h"

#include "core/base/json_scan.h"

#include <string.h>

#define ELEMENT_MAX  1048576u
#define DISKS_MAX    20 /* of one element; more are reported */
#define COUNTERS_MAX 8

struct iostat {
    struct sv_lines lines;
    bool is_inside; /* the array of statistics */
    bool has_clock;
    uint64_t n_elements;
};

static int probe(const uint8_t *head, size_t n)
{
    const char *p = (const char *)head;
    return sv_bytes_find(p, n, "\"sysstat\"") && sv_bytes_find(p, n, "\"hosts\"") ? 100 : 0;
}

/* "11/15/2026 10:41:52 PM", "2026-11-15T22:41:52+0100", "2026-11-15 22:41:52": date, time, half,
 * zone. */
static bool take_timestamp(struct iostat *s, struct sv_text t, int64_t *ts_ns)
{
    struct sv_lines *l = &s->lines;
    const char *cut = NULL, *end = t.bytes + t.len;
    for (const char *p = t.bytes; p < end && !cut; p++)
        if (*p == ' ' || *p == 'T')
            cut = p;
    int64_t days, of_day;
    if (!cut || !sv_civil_parse_date(t.bytes, (size_t)(cut - t.bytes), &days))
        return false;
    size_t used = sv_civil_parse_clock(cut + 1, (size_t)(end - cut - 1), &of_day);
    if (used == 0)
        return false;
    struct sv_fields f = {cut + 1 + used, end};
    struct sv_text rest = sv_field_rest(&f);
    bool is_pm = sv_text_is(rest, "PM");
    if ((is_pm || sv_text_is(rest, "AM")) && !sv_civil_half_day(is_pm, &of_day))
        return false;
    char zone_name[8] = "";
    bool is_time;
    struct sv_zone *own = NULL;
    if (rest.len > 0 && (rest.bytes[0] == '+' || rest.bytes[0] == '-')) {
        if (rest.len >= sizeof zone_name)
            return false;
        memcpy(zone_name, rest.bytes, rest.len);
        if (sv_zone_open(zone_name, &own, NULL) < 0)
            return false;
    }
    sv_wall_set_date(&l->wall, days);
    if (own) {
        const struct sv_zone *given = l->wall.zone;
        l->wall.zone = own;
        if (!s->has_clock)
            sv_wall_set_clock(l);
        is_time = sv_wall_ns(&l->wall, of_day, ts_ns);
        l->wall.zone = given;
        sv_zone_free(own);
    } else {
        if (!s->has_clock)
            sv_wall_set_clock(l);
        is_time = sv_wall_ns(&l->wall, of_day, ts_ns);
    }
    s->has_clock = true;
    return is_time;
}

static bool put_disk(struct sv_lines *l, struct sv_batch *b, const struct sv_member *disk,
                     int64_t ts_ns)
{
    struct sv_members members = sv_members_of(disk->value.bytes, disk->value.len);
    sv_track track = 0;
    size_t put = 0;
    for (struct sv_member m; sv_member_next(&members, &m);) {
        double value;
        if (sv_member_is(&m, "disk_device") && m.type == '"')
            track = sv_meter_disk(l, sv_member_text(&m, b));
        const struct sv_meter *meter = track ? sv_meter_named(SV_METER_DISK, m.key) : NULL;
        if (!meter || put == COUNTERS_MAX)
            continue;
        if (!sv_member_double(&m, &value)) {
            sv_report_add(l->source.report, SV_DAMAGE, "value that is not a number", 1, l->pos,
                          "%s", meter->word);
            continue;
        }
        sv_meter_put(l, b, meter, track, ts_ns, value);
        put++;
    }
    return track && !members.is_bad;
}

static bool put_element(struct iostat *s, struct sv_batch *b, const char *p, size_t len)
{
    struct sv_lines *l = &s->lines;
    struct sv_members members = sv_members_of(p, len);
    struct sv_member m, disk;
    int64_t ts_ns = 0;
    bool has_time = false;
    size_t n = 0;
    while (sv_member_next(&members, &m)) {
        if (sv_member_is(&m, "timestamp") && m.type == '"')
            has_time = take_timestamp(s, sv_member_text(&m, b), &ts_ns);
        if (!sv_member_is(&m, "disk") || m.type != '[')
            continue;
        if (!has_time)
            return sv_lines_bad(l, "a timestamp before the disks (iostat -t)");
        struct sv_members disks = sv_members_of(m.value.bytes, m.value.len);
        while (sv_member_next(&disks, &disk)) {
            if (disk.type != '{' || (n < DISKS_MAX && !put_disk(l, b, &disk, ts_ns)))
                return sv_lines_bad(l, "a disk with its name and values");
            n++;
        }
        if (n > DISKS_MAX)
            sv_report_add(l->source.report, SV_SKIPPED, "disk past the first 20", n - DISKS_MAX,
                          l->pos, NULL);
    }
    return !members.is_bad && has_time;
}

/* Moves to the next array of statistics; false at the end of the input. */
static int seek(struct iostat *s, struct sv_err *err)
{
    static const char word[] = "\"statistics\"";
    struct sv_input *in = s->lines.in;
    for (;;) {
        const char *found = sv_bytes_find((const char *)in->data, in->len, word);
        if (found) {
            const uint8_t *p = (const uint8_t *)found + sizeof word - 1, *end = in->data + in->len;
            while (p < end && *p != '[')
                p++;
            if (p < end) {
                sv_input_skip(in, (size_t)(p + 1 - in->data));
                s->is_inside = true;
                return 1;
            }
        }
        if (!found && in->len > sizeof word)
            sv_input_skip(in, in->len - sizeof word);
        if (in->len > ELEMENT_MAX)
            return 0;
        int more = sv_input_need(in, in->len + 1, err);
        if (more <= 0)
            return more;
    }
}

/* The end of the element that begins at the window's start: its size, 0 when the input breaks off,
 * negative on an error. */
static int64_t element_size(struct sv_input *in, struct sv_err *err)
{
    for (;;) {
        struct sv_json_skip skip = {0};
        const uint8_t *after =
            sv_json_skip(&skip, sv_json_scan_best(), in->data, in->data + in->len);
        if (after)
            return after - in->data;
        if (in->len > ELEMENT_MAX)
            return 0;
        int more = sv_input_need(in, in->len * 2, err);
        if (more < 0)
            return more;
        if (more == 0 && in->eof) {
            skip = (struct sv_json_skip){0};
            after = sv_json_skip(&skip, sv_json_scan_best(), in->data, in->data + in->len);
            return after ? after - in->data : 0;
        }
    }
}

static int broke_off(struct iostat *s)
{
    sv_report_add(s->lines.source.report, SV_DAMAGE, "iostat's JSON breaks off", 1, s->lines.pos,
                  "after %llu whole intervals", (unsigned long long)s->n_elements);
    s->lines.is_at_end = true;
    return 0;
}

static int read_element(struct sv_lines *l, struct sv_batch *b, struct sv_err *err)
{
    struct iostat *s = (struct iostat *)l;
    if (!s->is_inside) {
        int found = seek(s, err);
        l->is_at_end = found <= 0;
        return found < 0 ? found : 0;
    }
    while (l->in->len > 0 && (sv_json_is_blank(*l->in->data) || *l->in->data == ','))
        sv_input_skip(l->in, 1);
    if (l->in->len == 0) {
        int more = sv_input_need(l->in, 1, err);
        return more < 0 ? more : more == 0 ? broke_off(s) : 0;
    }
    l->pos = (int64_t)l->in->pos;
    if (*l->in->data == ']') {
        s->is_inside = false;
        sv_input_skip(l->in, 1);
        return 0;
    }
    int64_t size = *l->in->data == '{' ? element_size(l->in, err) : 0;
    if (size <= 0)
        return size < 0 ? (int)size : broke_off(s);
    size_t before = b->n;
    l->why = NULL;
    if (put_element(s, b, (const char *)l->in->data, (size_t)size)) {
        s->n_elements++;
    } else {
        sv_report_add(l->source.report, SV_DAMAGE, l->kind->damaged, 1, l->pos, "%s",
                      l->why ? l->why : "not understood");
        b->n = before;
        sv_batch_drop_args(b);
    }
    sv_input_skip(l->in, (size_t)size);
    return 0;
}

static const struct sv_lines_kind kind = {
    .size = sizeof(struct iostat),
    .max_events = DISKS_MAX * COUNTERS_MAX,
    .gives = SV_HAS_NESTED | SV_IN_NO_ORDER,
    .damaged = "interval that is not iostat's",
    .read = read_element,
};

const struct sv_format sv_iostat_format = {
    .name = "iostat",
    .help = "disk utilisation by iostat -o JSON",
    .lacks = "slices, flows, arguments",
    .files = "`iostat -o JSON` with `-t`, `-x`, `-d`, `-k`, `-m`, also cut off",
    .times = "local; with S_TIME_FORMAT=ISO the zone is in the file",
    .probe = probe,
    .covers = SV_ABOUT_DISKS,
    .lines = &kind,
};
