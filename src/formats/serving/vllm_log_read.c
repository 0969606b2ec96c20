/* Logs of vLLM, whose lines begin with a date without its year and a time, to a second:
 *
 *     (APIServer pid=17) INFO 11-17 15:00:10 [loggers.py:257] Engine 000: Avg prompt throughput:
 *     51.2 tokens/s, Avg generation throughput: 8.0 tokens/s, Running: 2 reqs,
 *         Waiting: 1 reqs, GPU KV cache usage: 3.4%, Prefix cache hit rate: 12.5%
 *     INFO 11-17 15:00:11 [loggers.py:201] Engine 000: Iteration(7): 1 context requests, 512
 *     context tokens, 3 generation requests, 3 generation tokens,
 *         iteration elapsed time: 21.50 ms, GPU KV cache usage: 3.4%
 *     INFO 11-17 15:00:09 [logger.py:39] Received request cmpl-1: params: …, lora_request: None.
 *
 * Opened through the table of formats. The first becomes counters of its engine. The second
 * (`--enable-logging-iteration-details`) is an engine step in the words of
 * core/serving/engine_words.h: how long it took is exact, when it ended is not, so steps of an
 * engine are put one after the other. What is said about single requests becomes instants; a second
 * is too coarse to make latencies of them, which are in vLLM's spans (formats/otlp). Texts of
 * prompts and answers are not kept. Other lines are passed over. */
#include "core/serving/engine_words.h"
#include "formats/decimal.h"
#include "formats/lines.h"

#include <string.h>

enum { PREFIX_MAX = 160, ENGINES_MAX = 256, FIGURES_MAX = 16, ID_MAX = 256 };

#define LOG_CATEGORY "serving.log"

struct engine {
    sv_track track;
    bool has_steps;
    int64_t end_ns; /* of its last step, as it was put */
};

struct log {
    struct sv_lines lines;
    bool has_clock;
    int64_t year;
    unsigned month;
    sv_track server, requests;
    struct engine engines[ENGINES_MAX];
    size_t n_engines;
};

/* ---- lines ---- */

struct record {
    unsigned month, day;
    int64_t of_day;
    struct sv_text message;
};

static bool two_digits(const char *p, unsigned *out)
{
    if (p[0] < '0' || p[0] > '9' || p[1] < '0' || p[1] > '9')
        return false;
    *out = (unsigned)(p[0] - '0') * 10 + (unsigned)(p[1] - '0');
    return true;
}

/* MM-DD HH:MM:SS */
static bool take_time(const char *p, size_t len, struct record *r)
{
    return len > 15 && p[2] == '-' && p[5] == ' ' && two_digits(p, &r->month) &&
           two_digits(p + 3, &r->day) && r->month >= 1 && r->month <= 12 && r->day >= 1 &&
           r->day <= 31 && sv_civil_parse_clock(p + 6, 8, &r->of_day) == 8;
}

/* Colours of a terminal, and blanks. */
static const char *pass_colours(const char *p, const char *end)
{
    while (p < end && (*p == ' ' || *p == '\033')) {
        if (*p++ == ' ')
            continue;
        while (p < end && *p != 'm')
            p++;
        p += p < end;
    }
    return p;
}

/* LEVEL TIME [FILE:LINE] MESSAGE; a prefix of the process may be before it. */
static bool take_record(const char *p, size_t len, struct record *r)
{
    const char *end = p + len;
    size_t limit = len < PREFIX_MAX ? len : PREFIX_MAX;
    for (size_t i = 1; i < limit; i++) {
        if ((p[i - 1] != ' ' && p[i - 1] != 'm') || !take_time(p + i, len - i, r))
            continue;
        const char *at = pass_colours(p + i + 14, end);
        const char *close = at < end && *at == '[' ? memchr(at, ']', (size_t)(end - at)) : NULL;
        if (!close)
            return false;
        at = pass_colours(close + 1, end);
        r->message = (struct sv_text){at, (uint32_t)(end - at)};
        return true;
    }
    return false;
}

/* ---- what a message is ---- */

enum what { OTHER, FIGURES, ITERATION, RECEIVED, ADDED, ABORTED, GENERATED };

/* `after`: of a request's message, what follows its words. Before the words of the others is the
 * engine's name. */
static enum what kind_of(struct sv_text m, struct sv_text *after)
{
    static const struct {
        const char *word;
        enum what what;
    } words[] = {{"Received request ", RECEIVED},
                 {"Added request ", ADDED},
                 {"Aborted request(s) ", ABORTED},
                 {"Aborted request ", ABORTED},
                 {"Generated response ", GENERATED}};
    size_t near = m.len < PREFIX_MAX ? m.len : PREFIX_MAX;
    *after = m;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        uint32_t n = (uint32_t)strlen(words[i].word);
        if (!sv_text_begins(m, words[i].word))
            continue;
        *after = (struct sv_text){m.bytes + n, m.len - n};
        return words[i].what;
    }
    if (sv_bytes_find(m.bytes, near, "Avg prompt throughput: "))
        return FIGURES;
    return sv_bytes_find(m.bytes, near, "Iteration(") ? ITERATION : OTHER;
}

static int probe(const uint8_t *head, size_t n)
{
    struct sv_fields h = sv_head(head, n);
    struct sv_text line, after;
    struct record r;
    int sure = 0;
    while (sv_head_line(&h, &line)) {
        if (!take_record(line.bytes, line.len, &r))
            continue;
        if (kind_of(r.message, &after) != OTHER)
            return 95;
        if (sv_bytes_find(r.message.bytes, r.message.len, "vLLM API server version"))
            sure = 90;
    }
    return sure;
}

/* ---- times ---- */

/* The year is that of --date; a month that goes back by more than half a year is the next one's. */
static bool time_of(struct log *g, const struct record *r, int64_t *ns)
{
    struct sv_lines *l = &g->lines;
    bool is_dated = l->wall.has_date;
    if (!g->has_clock) {
        unsigned month, day;
        g->has_clock = true;
        sv_civil_date(is_dated ? l->wall.days : 0, &g->year, &month, &day);
        g->month = r->month;
        sv_wall_set_clock(l);
        g->server = sv_lines_group(l, 0, SV_TRACK_CUSTOM, "vLLM", 4);
    }
    if (r->month + 6 < g->month)
        g->year++;
    else if (g->month + 6 < r->month) /* a late line of the last year */
        g->year--;
    g->month = r->month;
    sv_wall_set_date(&l->wall, sv_civil_days(g->year, r->month, r->day));
    l->wall.has_date = is_dated;
    l->wall.last_of_day = 0;
    return sv_wall_ns(&l->wall, r->of_day, ns);
}

/* ---- engines ---- */

/* NAME: before the word. Those past the limit share the last. */
static struct engine *engine_of(struct log *g, struct sv_text m, const char *word)
{
    const char *at = sv_bytes_find(m.bytes, m.len, word);
    size_t len = at ? (size_t)(at - m.bytes) : 0;
    while (len && (m.bytes[len - 1] == ' ' || m.bytes[len - 1] == ':'))
        len--;
    sv_track track = sv_lines_group(&g->lines, g->server, SV_TRACK_CUSTOM, len ? m.bytes : "engine",
                                    len ? len : 6);
    for (size_t i = 0; i < g->n_engines; i++)
        if (g->engines[i].track == track)
            return &g->engines[i];
    g->n_engines += g->n_engines < ENGINES_MAX;
    g->engines[g->n_engines - 1] = (struct engine){.track = track};
    return &g->engines[g->n_engines - 1];
}

/* The number at the begin of a text. */
static struct sv_text number_at(struct sv_text t)
{
    uint32_t n = 0;
    while (n < t.len && ((t.bytes[n] >= '0' && t.bytes[n] <= '9') || t.bytes[n] == '.'))
        n++;
    return (struct sv_text){t.bytes, n};
}

/* The next part of a list, without the blanks before it. */
static bool next_part(struct sv_fields *f, struct sv_text *part)
{
    while (f->p < f->end && (*f->p == ' ' || *f->p == ','))
        f->p++;
    if (f->p == f->end)
        return false;
    const char *comma = memchr(f->p, ',', (size_t)(f->end - f->p));
    const char *stop = comma ? comma : f->end;
    *part = (struct sv_text){f->p, (uint32_t)(stop - f->p)};
    f->p = stop;
    return true;
}

static bool put_figure(struct log *g, struct sv_batch *b, sv_track engine, int64_t ts_ns,
                       struct sv_text part)
{
    static const struct {
        const char *word, *counter, *unit;
    } known[] = {
        {"Avg prompt throughput: ", "prompt throughput", "tokens/s"},
        {"Avg generation throughput: ", "generation throughput", "tokens/s"},
        {"Running: ", "requests running", "requests"},
        {"Waiting: ", "requests waiting", "requests"},
        {"Pending: ", "requests waiting", "requests"}, /* as older versions call it */
        {"Deferred: ", "requests deferred", "requests"},
        {"Swapped: ", "requests swapped", "requests"},
        {"Corrupted: ", "requests corrupted", "requests"},
        {"Preemptions: ", "preemptions", "preemptions"},
        {"GPU KV cache usage: ", "KV cache used", "%"},
        {"CPU KV cache usage: ", "KV cache used in main memory", "%"},
        {"Prefix cache hit rate: ", "prefix cache hits", "%"},
        {"External prefix cache hit rate: ", "external prefix cache hits", "%"},
        {"MM cache hit rate: ", "multimodal cache hits", "%"},
    };
    struct sv_lines *l = &g->lines;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (!sv_text_begins(part, known[i].word))
            continue;
        uint32_t n = (uint32_t)strlen(known[i].word);
        double v;
        if (!sv_text_double(number_at((struct sv_text){part.bytes + n, part.len - n}), &v))
            return false;
        sv_put_counter(l, b, sv_lines_counter(l, engine, known[i].counter, known[i].unit), ts_ns,
                       v);
        return true;
    }
    sv_report_add(l->source.report, SV_SKIPPED, "unknown figure of vLLM", 1, l->pos, NULL);
    return true;
}

static bool put_figures(struct log *g, struct sv_batch *b, struct sv_text m, int64_t ts_ns)
{
    const char *at = sv_bytes_find(m.bytes, m.len, "Avg prompt throughput: ");
    struct sv_fields f = {at, m.bytes + m.len};
    sv_track engine = engine_of(g, m, "Avg prompt throughput: ")->track;
    struct sv_text part;
    for (size_t n = 0; n < FIGURES_MAX && next_part(&f, &part); n++)
        if (!put_figure(g, b, engine, ts_ns, part))
            return sv_lines_bad(&g->lines, "a number after each name");
    return true;
}

/* ---- steps ---- */

struct step {
    int64_t number, prefill, prefill_tokens, decode, decode_tokens, took_ns;
};

static bool take_step(struct sv_text m, struct step *s)
{
    const char *at = sv_bytes_find(m.bytes, m.len, "Iteration("), *end = m.bytes + m.len;
    const char *colon = memchr(at, ':', (size_t)(end - at));
    static const char elapsed[] = "iteration elapsed time: ";
    struct sv_text part;
    *s = (struct step){-1, -1, -1, -1, -1, -1};
    at += strlen("Iteration(");
    if (!colon || !sv_text_i64(number_at((struct sv_text){at, (uint32_t)(end - at)}), &s->number))
        return false;
    for (struct sv_fields f = {colon + 1, end}; next_part(&f, &part);) {
        const struct {
            const char *word;
            int64_t *to;
        } rows[] = {{" context requests", &s->prefill},
                    {" context tokens", &s->prefill_tokens},
                    {" generation requests", &s->decode},
                    {" generation tokens", &s->decode_tokens}};
        struct sv_text number = number_at(part);
        struct sv_text rest = {part.bytes + number.len, part.len - number.len};
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
            if (sv_text_is(rest, rows[i].word) && !sv_text_i64(number, rows[i].to))
                return false;
        if (!sv_text_begins(part, elapsed))
            continue;
        uint32_t n = sizeof elapsed - 1;
        number = number_at((struct sv_text){part.bytes + n, part.len - n});
        if (!sv_decimal_ns(number, 6, &s->took_ns))
            return false;
    }
    enum { MOST = 1 << 30 };
    return s->prefill >= 0 && s->decode >= 0 && s->prefill_tokens >= 0 && s->decode_tokens >= 0 &&
           s->took_ns >= 0 && s->prefill < MOST && s->decode < MOST && s->prefill_tokens < MOST &&
           s->decode_tokens < MOST;
}

/* It ended in the second that begins at `ts_ns`, after the engine's step before it. */
static bool put_step(struct log *g, struct sv_batch *b, struct sv_text m, int64_t ts_ns)
{
    struct sv_lines *l = &g->lines;
    struct step s;
    int64_t end_ns, start_ns;
    if (!take_step(m, &s))
        return sv_lines_bad(l, "requests, tokens and the time of an iteration");
    struct engine *e = engine_of(g, m, "Iteration(");
    if (!e->has_steps || __builtin_add_overflow(e->end_ns, s.took_ns, &end_ns) || end_ns < ts_ns)
        end_ns = ts_ns;
    if (__builtin_sub_overflow(end_ns, s.took_ns, &start_ns))
        return sv_lines_bad(l, "a time before the year 2262");
    e->has_steps = true;
    e->end_ns = end_ns;
    sv_add_int(l, b, SV_STEP_NUMBER, s.number);
    sv_add_int(l, b, SV_STEP_REQUESTS, s.prefill + s.decode);
    sv_add_int(l, b, SV_STEP_PREFILL, s.prefill);
    sv_add_int(l, b, SV_STEP_DECODE, s.decode);
    sv_add_int(l, b, SV_STEP_TOKENS_IN, s.prefill_tokens + s.decode_tokens);
    sv_put_event(l, b, SV_SLICE, start_ns, e->track, sv_dict_cstr(l->dict, SV_ENGINE_STEP),
                 SV_ENGINE_CATEGORY)
        ->dur_ns = s.took_ns;
    return true;
}

/* ---- requests ---- */

/* The id is before the first blank; what the line has after it may be a user's text. */
static struct sv_text id_of(struct sv_text t)
{
    uint32_t n = 0;
    while (n < t.len && n < ID_MAX && t.bytes[n] != ' ')
        n++;
    while (n && (t.bytes[n - 1] == '.' || t.bytes[n - 1] == ':'))
        n--;
    return (struct sv_text){t.bytes, n};
}

static bool put_request(struct log *g, struct sv_batch *b, struct sv_text after, enum what what,
                        int64_t ts_ns)
{
    static const char *const names[] = {[RECEIVED] = "request received",
                                        [ADDED] = "request added",
                                        [ABORTED] = "request aborted",
                                        [GENERATED] = "response generated"};
    struct sv_lines *l = &g->lines;
    struct sv_text id = id_of(after);
    if (id.len == 0)
        return sv_lines_bad(l, "the id of a request");
    if (!g->requests)
        g->requests = sv_lines_group(l, g->server, SV_TRACK_CUSTOM, "requests", 8);
    sv_add_text(l, b, SV_REQUEST, id);
    sv_put_event(l, b, SV_INSTANT, ts_ns, g->requests, sv_dict_cstr(l->dict, names[what]),
                 LOG_CATEGORY);
    return true;
}

static bool line(struct sv_lines *l, struct sv_batch *b, const char *p, size_t len)
{
    struct log *g = (struct log *)l;
    struct record r;
    struct sv_text after;
    int64_t ts_ns;
    if (!take_record(p, len, &r)) {
        if (sv_bytes_find(p, len, "INFO:") && sv_bytes_find(p, len, " HTTP/1."))
            sv_report_add(l->source.report, SV_SKIPPED, "access line of the API server", 1, l->pos,
                          "it has no time");
        return true;
    }
    enum what what = kind_of(r.message, &after);
    if (what == OTHER)
        return true;
    if (!time_of(g, &r, &ts_ns))
        return sv_lines_bad(l, "a time before the year 2262");
    switch (what) {
    case FIGURES: return put_figures(g, b, r.message, ts_ns);
    case ITERATION: return put_step(g, b, r.message, ts_ns);
    default: return put_request(g, b, after, what, ts_ns);
    }
}

static const struct sv_lines_kind kind = {
    .size = sizeof(struct log),
    .max_events = FIGURES_MAX,
    .gives = SV_HAS_SLICES | SV_IN_NO_ORDER,
    .damaged = "line of vLLM that cannot be read",
    .taken_as_utc = "vLLM's times taken as UTC",
    .line = line,
};

const struct sv_format sv_vllm_log_format = {
    .name = "vllm-log",
    .help = "a log of vLLM: its figures, iterations and requests",
    .lacks = "times of single requests (they are in its spans), processes, flows",
    .files = "the server's log; with `--enable-logging-iteration-details` also each engine step, "
             "with `--enable-log-requests` when requests came",
    .times = "to a second, without the year, which `import --date` gives; UTC unless `--log-tz` "
             "says otherwise",
    .probe = probe,
    .lines = &kind,
    .needs_date = true,
};
