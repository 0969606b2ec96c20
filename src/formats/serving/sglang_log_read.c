/* Logs of SGLang with --enable-request-time-stats-logging: one line for each request that has
 * ended,
 *
 *     [2025-12-24 21:05:35 TP0] Req Time Stats(rid=23b2f0, input len=38, output len=484,
 *     type=unified): queue_duration=1.25ms, forward_duration=1759.38ms, start_time=1766581533.340
 *     [2026-10-02 08:00:01] ReqTimeStats(rid=23b2f0, input_len=38, cached_input_len=32,
 *     output_len=484, attempts=0, type=unified): queue_duration=1.25ms,
 *         initial_prefill_elapsed=20.00ms, post_prefill_elapsed=1739.38ms,
 *         forward_duration=1759.38ms, entry_time=…
 *
 * Opened through the table of formats. Each is a request in the words of
 * core/serving/engine_words.h. It begins at start_time where that is a time of day near the line's;
 * else the line's time is its end, which is exact to a second. Other lines of the log are passed
 * over. vLLM's request log says no such times; its spans do (formats/otlp). */
#include "core/serving/engine_words.h"
#include "formats/decimal.h"
#include "formats/lines.h"

#include <string.h>

struct log {
    struct sv_lines lines;
    sv_track track;
    uint64_t n_requests;
};

/* What the parentheses and the text after them say. Durations are -1 where they are not there. */
struct stats {
    struct sv_text rid, type;
    int64_t input, cached, output;
    int64_t queue_ns, forward_ns, prefill_ns, decode_ns, bootstrap_ns, start_ns;
};

static const char *find_stats(const char *p, size_t len)
{
    const char *at = sv_bytes_find(p, len, "Req Time Stats(");
    return at ? at : sv_bytes_find(p, len, "ReqTimeStats(");
}

/* [DATE TIME …] */
static bool take_time(const char *p, size_t len, int64_t *days, int64_t *of_day)
{
    return len > 20 && p[0] == '[' && p[11] == ' ' && sv_civil_parse_date(p + 1, 10, days) &&
           sv_civil_parse_clock(p + 12, len - 12, of_day) > 0;
}

static int probe(const uint8_t *head, size_t n)
{
    struct sv_fields h = sv_head(head, n);
    int64_t days, of_day;
    for (struct sv_text line; sv_head_line(&h, &line);)
        if (take_time(line.bytes, line.len, &days, &of_day) && find_stats(line.bytes, line.len))
            return 95;
    return 0;
}

/* "1.25ms", "1.25s", "1766581533.340" (seconds). */
static bool take_duration(struct sv_text t, int64_t *ns)
{
    int decimals = 9;
    if (t.len > 2 && memcmp(t.bytes + t.len - 2, "ms", 2) == 0) {
        t.len -= 2;
        decimals = 6;
    } else if (t.len > 1 && t.bytes[t.len - 1] == 's') {
        t.len--;
    }
    return sv_decimal_ns(t, decimals, ns);
}

static bool take_pair(struct stats *s, struct sv_text key, struct sv_text value)
{
    const struct {
        const char *key;
        int64_t *number, *ns;
        struct sv_text *text;
    } rows[] = {
        {"rid", NULL, NULL, &s->rid},
        {"type", NULL, NULL, &s->type},
        {"input len", &s->input, NULL, NULL},
        {"input_len", &s->input, NULL, NULL},
        {"cached_input_len", &s->cached, NULL, NULL},
        {"output len", &s->output, NULL, NULL},
        {"output_len", &s->output, NULL, NULL},
        {"queue_duration", NULL, &s->queue_ns, NULL},
        {"forward_duration", NULL, &s->forward_ns, NULL},
        {"initial_prefill_elapsed", NULL, &s->prefill_ns, NULL},
        {"post_prefill_elapsed", NULL, &s->decode_ns, NULL},
        {"bootstrap_duration", NULL, &s->bootstrap_ns, NULL},
        {"bootstrap_queue_duration", NULL, &s->bootstrap_ns, NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (!sv_text_is(key, rows[i].key))
            continue;
        if (rows[i].text)
            *rows[i].text = value;
        else if (rows[i].number)
            return sv_text_i64(value, rows[i].number) && *rows[i].number >= 0;
        else
            return take_duration(value, rows[i].ns);
    }
    if (sv_text_is(key, "start_time") || sv_text_is(key, "entry_time"))
        (void)take_duration(
            value, &s->start_ns); /* later versions print a date: the line's time counts then */
    return true;
}

/* KEY=VALUE, KEY=VALUE …; a parenthesis and a colon are between the two lists. */
static bool take_stats(const char *p, const char *end, struct stats *s)
{
    *s = (struct stats){.input = -1,
                        .cached = -1,
                        .output = -1,
                        .queue_ns = -1,
                        .forward_ns = -1,
                        .prefill_ns = -1,
                        .decode_ns = -1,
                        .bootstrap_ns = -1,
                        .start_ns = -1};
    while (p < end) {
        const char *stop = p;
        while (stop < end && *stop != ',' && *stop != ')')
            stop++;
        const char *equal = memchr(p, '=', (size_t)(stop - p));
        if (equal && !take_pair(s, (struct sv_text){p, (uint32_t)(equal - p)},
                                (struct sv_text){equal + 1, (uint32_t)(stop - equal - 1)}))
            return false;
        for (p = stop; p < end && strchr(",): ", *p) && *p; p++)
            ;
        if (p == stop) /* a byte that no list has */
            p = stop + 1;
    }
    return s->rid.len > 0 && s->queue_ns >= 0 && s->forward_ns >= 0;
}

static void put_known(struct sv_lines *l, struct sv_batch *b, const char *key, int64_t v)
{
    if (v >= 0)
        sv_add_int(l, b, key, v);
}

static void put_request(struct log *g, struct sv_batch *b, const struct stats *s, int64_t line_ns,
                        int64_t dur_ns)
{
    struct sv_lines *l = &g->lines;
    int64_t ts_ns = line_ns - dur_ns, off;
    /* A time of day, not one since the machine's start. */
    if (s->start_ns > 0 && !__builtin_sub_overflow(s->start_ns, ts_ns, &off) &&
        off > -SV_DAY_S * SV_S_NS && off < SV_DAY_S * SV_S_NS)
        ts_ns = s->start_ns;
    sv_add_text(l, b, SV_REQUEST, s->rid);
    put_known(l, b, SV_LLM_PROMPT_TOKENS, s->input);
    put_known(l, b, SV_LLM_CACHED_TOKENS, s->cached);
    put_known(l, b, SV_LLM_OUTPUT_TOKENS, s->output);
    put_known(l, b, SV_LLM_QUEUE_NS, s->queue_ns);
    put_known(l, b, SV_LLM_TTFT_NS, s->prefill_ns >= 0 ? s->queue_ns + s->prefill_ns : -1);
    put_known(l, b, SV_LLM_PREFILL_NS, s->prefill_ns);
    put_known(l, b, SV_LLM_DECODE_NS, s->decode_ns);
    if (s->type.len)
        sv_add_text(l, b, "type", s->type);
    sv_add_text(l, b, SV_LLM_OUTCOME, (struct sv_text){"responded", 9});
    sv_put_event(l, b, SV_SLICE, ts_ns, g->track, sv_dict_cstr(l->dict, SV_LLM_REQUEST),
                 SV_LLM_CATEGORY)
        ->dur_ns = dur_ns;
}

static bool line(struct sv_lines *l, struct sv_batch *b, const char *p, size_t len)
{
    struct log *g = (struct log *)l;
    const char *at = find_stats(p, len);
    struct stats s;
    int64_t days, of_day, ts_ns, dur_ns;
    if (!at)
        return true;
    if (!take_time(p, len, &days, &of_day))
        return sv_lines_bad(l, "a date and a time in brackets");
    at = memchr(at, '(', (size_t)(p + len - at));
    if (!take_stats(at + 1, p + len, &s))
        return sv_lines_bad(l, "rid, queue_duration and forward_duration");
    sv_wall_set_date(&l->wall, days);
    if (g->n_requests++ == 0) {
        sv_wall_set_clock(l);
        g->track = sv_lines_group(l, 0, SV_TRACK_CUSTOM, "SGLang", 6);
    }
    if (!sv_wall_ns(&l->wall, of_day, &ts_ns) ||
        __builtin_add_overflow(s.queue_ns, s.forward_ns, &dur_ns) ||
        __builtin_sub_overflow(ts_ns, dur_ns, &days) || s.prefill_ns > INT64_MAX / 2 ||
        s.queue_ns > INT64_MAX / 2)
        return sv_lines_bad(l, "a time before the year 2262");
    put_request(g, b, &s, ts_ns, dur_ns);
    return true;
}

static const struct sv_lines_kind kind = {
    .size = sizeof(struct log),
    .max_events = 1,
    .gives = SV_HAS_SLICES | SV_IN_NO_ORDER,
    .damaged = "line of SGLang that cannot be read",
    .taken_as_utc = "SGLang's times taken as UTC",
    .line = line,
};

const struct sv_format sv_sglang_log_format = {
    .name = "sglang-log",
    .help = "a log of SGLang with the times of requests",
    .lacks = "all but requests; processes, flows",
    .files = "the server's log with `--enable-request-time-stats-logging`",
    .times = "UTC unless `--log-tz` says otherwise, to a second; exact where the line has the time "
             "of arrival",
    .probe = probe,
    .lines = &kind,
};
