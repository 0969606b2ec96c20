/* Logs of the DLIO benchmark: `[INFO] 2023-03-20T14:40:29.513205 Starting block 1 …`.
 *
 * Opened through the table of formats. "Starting X" and "Ending X" (also "Finished X") become
 * slices, other lines of the log instants. DLIO logs no initialisation: what lies before the first
 * start is the phase `init`. Times have no zone; containers mostly run in UTC, so that is taken
 * unless the user says otherwise. */
#include "formats/logs/phases.h"

#include <string.h>

struct dlio {
    struct sv_lines lines;
    struct sv_phases phases;
    bool has_first, has_started;
    int64_t first_ns;
};

/* [LEVEL] DATE T TIME: the rest of the line and the time. */
static bool take_head(struct sv_fields *f, int64_t *days, int64_t *of_day)
{
    struct sv_text level = sv_field_next(f), stamp = sv_field_next(f);
    if (level.len < 3 || level.bytes[0] != '[' || level.bytes[level.len - 1] != ']')
        return false;
    return stamp.len >= 19 && stamp.bytes[10] == 'T' &&
           sv_civil_parse_date(stamp.bytes, 10, days) &&
           sv_civil_parse_clock(stamp.bytes + 11, stamp.len - 11, of_day) == stamp.len - 11;
}

static int probe(const uint8_t *head, size_t n)
{
    struct sv_fields h = sv_head(head, n);
    struct sv_text line;
    int64_t days, of_day;
    for (int i = 0; i < 64 && sv_head_line(&h, &line); i++) {
        struct sv_fields f = {line.bytes, line.bytes + line.len};
        if (take_head(&f, &days, &of_day))
            return 96;
    }
    return 0;
}

/* block, eval, checkpoint, epoch: the first such word; the number after it. */
static struct sv_text take_phase(struct sv_fields f, int64_t *number)
{
    static const char *const words[] = {"block", "eval",     "evaluation", "checkpoint",
                                        "epoch", "training", "train"};
    static const char *const phases[] = {"block", "eval",     "eval",    "checkpoint",
                                         "epoch", "training", "training"};
    *number = -1;
    for (struct sv_text word; (word = sv_field_next(&f)).len;) {
        for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
            if (!sv_text_is(word, words[i]))
                continue;
            struct sv_text behind = sv_field_next(&f);
            while (behind.len &&
                   (behind.bytes[behind.len - 1] == ':' || behind.bytes[behind.len - 1] == ','))
                behind.len--;
            if (!sv_text_i64(behind, number) || *number < 0)
                *number = -1;
            return (struct sv_text){phases[i], (uint32_t)strlen(phases[i])};
        }
    }
    return (struct sv_text){0};
}

static bool put_line(struct dlio *s, struct sv_batch *b, struct sv_fields f, int64_t ts_ns)
{
    struct sv_lines *l = &s->lines;
    sv_track track = sv_phase_track(l, -1);
    struct sv_fields message = f;
    struct sv_text verb = sv_field_next(&f);
    bool begins = sv_text_is(verb, "Starting");
    bool ends = sv_text_is(verb, "Ending") || sv_text_is(verb, "Finished");
    int64_t number = -1;
    struct sv_text phase = begins || ends ? take_phase(f, &number) : (struct sv_text){0};
    if (phase.len == 0) {
        struct sv_text text = sv_field_rest(&message);
        if (text.len > 256)
            text.len = 256;
        sv_put_event(l, b, SV_INSTANT, ts_ns, track, sv_dict_str(l->dict, text.bytes, text.len),
                     "log");
        return true;
    }
    sv_str name = sv_dict_str(l->dict, phase.bytes, phase.len);
    if (begins && !s->has_started) {
        s->has_started = true;
        struct sv_event *e = sv_put_event(l, b, SV_SLICE, s->first_ns, track,
                                          sv_dict_cstr(l->dict, "init"), "phase");
        e->dur_ns = ts_ns > s->first_ns ? ts_ns - s->first_ns : 0;
    }
    if (begins)
        return sv_phase_begin(&s->phases, track, name, ts_ns, number) ||
               sv_lines_bad(l, "fewer phases that are open at once");
    return sv_phase_end(&s->phases, l, b, track, name, ts_ns, number) ||
           sv_lines_bad(l, "a beginning before this end");
}

static bool line(struct sv_lines *l, struct sv_batch *b, const char *p, size_t len)
{
    struct dlio *s = (struct dlio *)l;
    struct sv_fields f = {p, p + len};
    int64_t days, of_day;
    if (sv_field_count(f) == 0)
        return true;
    if (!take_head(&f, &days, &of_day)) {
        sv_report_add(l->source.report, SV_SKIPPED, "line without a time", 1, l->pos, NULL);
        return true;
    }
    sv_wall_set_date(&l->wall, days);
    if (!s->has_first)
        sv_wall_set_clock(l);
    int64_t ts_ns;
    if (!sv_wall_ns(&l->wall, of_day, &ts_ns))
        return sv_lines_bad(l, "a time before the year 2262");
    if (!s->has_first)
        s->first_ns = ts_ns;
    s->has_first = true;
    return put_line(s, b, f, ts_ns);
}

static bool end(struct sv_lines *l, struct sv_batch *b)
{
    return sv_phase_leave(&((struct dlio *)l)->phases, l, b);
}

static void fini(struct sv_lines *l)
{
    struct dlio *s = (struct dlio *)l;
    sv_phases_fini(&s->phases);
}

static const struct sv_lines_kind kind = {
    .size = sizeof(struct dlio),
    .max_events = 2,
    .gives = SV_HAS_SLICES | SV_IN_NO_ORDER,
    .damaged = "line that is not DLIO's",
    .taken_as_utc = "DLIO's times taken as UTC",
    .line = line,
    .end = end,
    .fini = fini,
};

const struct sv_format sv_dlio_format = {
    .name = "dlio",
    .help = "a log of the DLIO benchmark",
    .lacks = "processes, threads, flows",
    .files = "DLIO's log",
    .times = "UTC unless `--log-tz` says otherwise",
    .probe = probe,
    .covers = SV_ABOUT_PHASES,
    .lines = &kind,
};
