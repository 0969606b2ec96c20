/* The kinds of conditions: one struct each, and their list at the end. To add one, write what its
 * words are, what is fed to it and when it holds; the table in docs/record.md is made from the
 * list. Conditions on durations are in slices.c. */
#include "cli/console.h"
#include "core/base/glob.h"
#include "core/base/mem.h"
#include "record/when/condition.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define OOM_NEAR_NS ((int64_t)5000000000)
#define RATE_NS     ((int64_t)10000000000)

/* ---- step, request, slice ---- */

static void parse_step(struct sv_when_reader *r, struct sv_condition *c)
{
    c->pick.kind = SV_PICK_STEP;
    sv_slice_parse(r, c);
}

static void parse_request(struct sv_when_reader *r, struct sv_condition *c)
{
    c->pick.kind = SV_PICK_REQUEST;
    sv_slice_parse(r, c);
}

static void parse_name(struct sv_when_reader *r, struct sv_condition *c, const char *expected)
{
    c->pick.kind = SV_PICK_NAME;
    c->pick.glob = sv_when_quoted(r, expected);
}

static void parse_slice(struct sv_when_reader *r, struct sv_condition *c)
{
    parse_name(r, c, "a name in quotes such as 'load*'");
    sv_slice_parse(r, c);
}

static const struct sv_when_kind step = {
    .word = "step",
    .syntax = "step > 500ms",
    .holds = "a training step took longer, or has been open for longer. Instead of a time: "
             "`2x median`, `p99` or `1.5x p95`, of the steps of the last ten minutes or, with "
             "`over 1m`, of that time",
    .feeds = SV_SEEN_NAME,
    .parse = parse_step,
    .feed = sv_slice_feed,
    .check = sv_slice_check,
};

static const struct sv_when_kind request = {
    .word = "request",
    .syntax = "request > p99 over 1m",
    .holds = "a slice called `request…` took longer: the same limits",
    .feeds = SV_SEEN_NAME,
    .parse = parse_request,
    .feed = sv_slice_feed,
    .check = sv_slice_check,
};

static const struct sv_when_kind slice = {
    .word = "slice",
    .syntax = "slice 'load*' > 2x median",
    .holds = "a slice with a name like this took longer: the same limits",
    .feeds = SV_SEEN_NAME,
    .parse = parse_slice,
    .feed = sv_slice_feed,
    .check = sv_slice_check,
};

/* ---- no ---- */

static void parse_no(struct sv_when_reader *r, struct sv_condition *c)
{
    if (sv_when_word(r, "step"))
        c->pick.kind = SV_PICK_STEP;
    else if (sv_when_word(r, "request"))
        c->pick.kind = SV_PICK_REQUEST;
    else if (sv_when_word(r, "event"))
        parse_name(r, c, "a name in quotes such as 'checkpoint*'");
    else
        sv_when_expect(r, "step, request or event 'NAME'");
    if (!sv_when_word(r, "for"))
        sv_when_expect(r, "for, and a time");
    c->for_ns = sv_when_time(r);
}

static void feed_no(struct sv_when *w, struct sv_condition *c, const struct sv_seen *s)
{
    (void)w;
    if (!sv_pick_takes(c, s))
        return;
    c->is_seen = true;
    c->has_fired = false;
    c->last_ns = s->ts_ns > c->last_ns ? s->ts_ns : c->last_ns;
}

static void check_no(struct sv_when *w, struct sv_condition *c, int64_t now_ns)
{
    char a[32];
    if (!c->is_seen || c->has_fired || now_ns - c->last_ns < c->for_ns)
        return;
    c->has_fired = true;
    sv_when_hit(w, c, c->last_ns + c->for_ns, 0, "nothing of it has ended for %s",
                sv_human_ns(a, c->for_ns));
}

static const struct sv_when_kind no = {
    .word = "no",
    .syntax = "no step for 30s",
    .holds = "after the first step none has ended for so long. Also `no request`, and `no event "
             "'checkpoint*'` for slices and instants",
    .feeds = SV_SEEN_NAME,
    .parse = parse_no,
    .feed = feed_no,
    .check = check_no,
};

/* ---- counter, pressure ---- */

static void parse_for(struct sv_when_reader *r, struct sv_condition *c)
{
    c->for_ns = sv_when_word(r, "for") ? sv_when_time(r) : 0;
}

static void parse_counter(struct sv_when_reader *r, struct sv_condition *c)
{
    parse_name(r, c, "the name of a counter in quotes such as 'GPU 0/sm'");
    c->op = sv_when_compare(r, false);
    c->value = sv_when_quantity(r, false);
    parse_for(r, c);
}

static struct sv_when_counter *row_of(struct sv_condition *c, sv_track track)
{
    for (size_t i = 0; i < c->n_rows; i++)
        if (c->rows[i].track == track)
            return &c->rows[i];
    if (c->n_rows == SV_ROWS_MAX)
        return NULL;
    c->rows[c->n_rows] = (struct sv_when_counter){.track = track};
    return &c->rows[c->n_rows++];
}

static void hit_counter(struct sv_when *w, struct sv_condition *c, struct sv_when_counter *row)
{
    char since[48] = "", a[32];
    const struct sv_track_info *t = &w->dict->tracks[row->track];
    row->has_fired = true;
    if (c->for_ns)
        snprintf(since, sizeof since, " for %s", sv_human_ns(a, c->for_ns));
    sv_when_hit(w, c, row->since_ns + c->for_ns, row->track,
                "counter '%.60s%s%.60s' is %g%s%.10s%s",
                sv_dict_text(w->dict, w->dict->tracks[t->parent].name).bytes, t->parent ? "/" : "",
                sv_dict_text(w->dict, t->name).bytes, row->value, t->unit ? " " : "",
                sv_dict_text(w->dict, t->unit).bytes, since);
}

static void look_at(struct sv_when *w, struct sv_condition *c, struct sv_when_counter *row,
                    int64_t ts_ns)
{
    if (row->holds && !row->has_fired && ts_ns - row->since_ns >= c->for_ns)
        hit_counter(w, c, row);
}

static void feed_counter(struct sv_when *w, struct sv_condition *c, const struct sv_seen *s)
{
    struct sv_when_counter *row = row_of(c, s->track);
    c->is_seen = true;
    if (!row)
        return;
    look_at(w, c, row, s->ts_ns);
    bool holds = sv_when_holds(c->op, s->value, c->value);
    if (!holds || !row->holds) {
        row->since_ns = s->ts_ns;
        row->has_fired = false;
    }
    row->holds = holds;
    row->value = s->value;
    look_at(w, c, row, s->ts_ns);
}

/* It keeps its value until the next one. */
static void check_counter(struct sv_when *w, struct sv_condition *c, int64_t now_ns)
{
    for (size_t i = 0; i < c->n_rows; i++)
        look_at(w, c, &c->rows[i], now_ns);
}

static const struct sv_when_kind counter = {
    .word = "counter",
    .syntax = "counter 'GPU 0/sm' < 10% for 5s",
    .holds =
        "the value of a counter is so, all that time (without `for`: once); it keeps its value "
        "until the next one, or until its process ends. The name is that of its row, or its path "
        "with `/`, and may have `*`; a value may end "
        "in `%`, `K`, `M`, `G` or `T`",
    .feeds = SV_SEEN_COUNTER,
    .parse = parse_counter,
    .feed = feed_counter,
    .check = check_counter,
};

static void parse_pressure(struct sv_when_reader *r, struct sv_condition *c)
{
    static const char *const names[] = {"cpu", "memory", "io"};
    char path[32];
    for (size_t i = 0; i < 3 && !c->pick.glob; i++)
        if (sv_when_word(r, names[i])) {
            snprintf(path, sizeof path, "Pressure/%s", names[i]);
            c->pick.glob = sv_strndup(path, strlen(path));
        }
    if (!c->pick.glob)
        sv_when_expect(r, "cpu, memory or io");
    c->pick.kind = SV_PICK_NAME;
    c->op = sv_when_compare(r, false);
    c->value = sv_when_quantity(r, false);
    parse_for(r, c);
}

static const struct sv_when_kind pressure = {
    .word = "pressure",
    .syntax = "pressure memory > 10%",
    .holds = "tasks of this machine waited for `cpu`, `memory` or `io` in so much of the last ten "
             "seconds (`some avg10` of /proc/pressure)",
    .feeds = SV_SEEN_COUNTER,
    .needs = SV_WHEN_PRESSURE,
    .parse = parse_pressure,
    .feed = feed_counter,
    .check = check_counter,
};

/* ---- rate ---- */

static void parse_rate(struct sv_when_reader *r, struct sv_condition *c)
{
    parse_name(r, c, "a name in quotes such as 'read'");
    c->op = sv_when_compare(r, false);
    c->value = sv_when_quantity(r, true);
    c->span_ns = sv_when_word(r, "over") ? sv_when_time(r) : RATE_NS;
    if (c->span_ns < SV_RATE_SLOTS)
        c->span_ns = SV_RATE_SLOTS;
}

static void turn_rate(struct sv_condition *c, int64_t ts_ns)
{
    int64_t slot = ts_ns / (c->span_ns / SV_RATE_SLOTS);
    if (slot - c->slot > SV_RATE_SLOTS)
        c->slot = slot - SV_RATE_SLOTS;
    while (c->slot < slot)
        c->slots[(uint64_t)++c->slot % SV_RATE_SLOTS] = 0;
}

static void feed_rate(struct sv_when *w, struct sv_condition *c, const struct sv_seen *s)
{
    (void)w;
    int64_t slot = s->ts_ns / (c->span_ns / SV_RATE_SLOTS);
    if (!c->is_seen)
        c->last_ns = s->ts_ns;
    c->is_seen = true;
    turn_rate(c, s->ts_ns);
    if (slot > c->slot - SV_RATE_SLOTS)
        c->slots[(uint64_t)slot % SV_RATE_SLOTS]++;
}

static void check_rate(struct sv_when *w, struct sv_condition *c, int64_t now_ns)
{
    uint64_t n = 0;
    if (!c->is_seen || now_ns - c->last_ns < c->span_ns)
        return;
    turn_rate(c, now_ns);
    for (unsigned i = 0; i < SV_RATE_SLOTS; i++)
        n += c->slots[i];
    double rate = (double)n * 1e9 / (double)c->span_ns;
    bool holds = sv_when_holds(c->op, rate, c->value);
    if (holds && !c->has_fired)
        sv_when_hit(w, c, now_ns, 0, "'%.100s' happened %g times a second", c->pick.glob, rate);
    c->has_fired = holds;
}

static const struct sv_when_kind rate = {
    .word = "rate",
    .syntax = "rate 'read' > 1000/s over 10s",
    .holds = "slices and instants of this name come so often, in the mean over that time (default "
             "10 s)",
    .feeds = SV_SEEN_NAME,
    .parse = parse_rate,
    .feed = feed_rate,
    .check = check_rate,
};

/* ---- ends of processes ---- */

static int code_of(double status)
{
    int s = (int)status;
    return WIFSIGNALED(s) ? 128 + WTERMSIG(s) : WEXITSTATUS(s);
}

static bool is_named(const struct sv_condition *c, const struct sv_seen *s)
{
    return !c->pick.glob || sv_glob_match(c->pick.glob, s->text, strlen(s->text));
}

static void parse_process(struct sv_when_reader *r, struct sv_condition *c)
{
    if (sv_when_is_quote(r))
        c->pick.glob = sv_when_quoted(r, "the name of a process");
}

static void parse_exit(struct sv_when_reader *r, struct sv_condition *c)
{
    parse_process(r, c);
    c->op = sv_when_compare(r, true);
    c->value = sv_when_number(r, "an exit code");
}

static void feed_exit(struct sv_when *w, struct sv_condition *c, const struct sv_seen *s)
{
    int code = code_of(s->value);
    if (is_named(c, s) && sv_when_holds(c->op, code, c->value))
        sv_when_hit(w, c, s->ts_ns, 0, "process '%.60s' ended with exit code %d", s->text, code);
}

static const struct sv_when_kind exit_kind = {
    .word = "exit",
    .syntax = "exit != 0",
    .holds = "a recorded process ended with such an exit code (128 and the number of the signal, "
             "where one ended it). `exit 'python*' != 0`: one of that name",
    .feeds = SV_SEEN_EXIT,
    .parse = parse_exit,
    .feed = feed_exit,
};

static void parse_signal(struct sv_when_reader *r, struct sv_condition *c)
{
    parse_process(r, c);
    while (*r->at == ' ')
        r->at++;
    if (!*r->at)
        return;
    const char *from = r->at;
    char *word = sv_when_bare(r, "a signal");
    for (int i = 1; word && i < NSIG; i++) {
        const char *name = sigabbrev_np(i);
        if (name && strcmp(name, strncmp(word, "SIG", 3) == 0 ? word + 3 : word) == 0)
            c->signal = i;
    }
    free(word);
    if (!c->signal) {
        r->at = from;
        sv_when_expect(r, "the name of a signal such as SEGV or KILL");
    }
}

static void feed_signal(struct sv_when *w, struct sv_condition *c, const struct sv_seen *s)
{
    int status = (int)s->value;
    if (!WIFSIGNALED(status) || !is_named(c, s) || (c->signal && c->signal != WTERMSIG(status)))
        return;
    const char *name = sigabbrev_np(WTERMSIG(status));
    sv_when_hit(w, c, s->ts_ns, 0, "process '%.60s' was ended by signal %d%s%s", s->text,
                WTERMSIG(status), name ? ", SIG" : "", name ? name : "");
}

static const struct sv_when_kind signal_kind = {
    .word = "signal",
    .syntax = "signal",
    .holds = "a signal ended a recorded process. `signal SEGV`: this one; `signal 'python*' KILL`: "
             "a process of that name",
    .feeds = SV_SEEN_EXIT,
    .parse = parse_signal,
    .feed = feed_signal,
};

/* ---- oom ---- */

static void parse_oom(struct sv_when_reader *r, struct sv_condition *c)
{
    (void)r;
    c->pick.glob = sv_strndup("Memory/oom kills", 16);
    c->pick.kind = SV_PICK_NAME;
}

static void feed_oom(struct sv_when *w, struct sv_condition *c, const struct sv_seen *s)
{
    if (s->kind == SV_SEEN_COUNTER) {
        if (c->is_seen && s->value > c->oom_count)
            c->oom_ns = s->ts_ns;
        c->is_seen = true;
        c->oom_count = s->value;
    } else if (WIFSIGNALED((int)s->value) && WTERMSIG((int)s->value) == SIGKILL) {
        c->killed_ns = s->ts_ns;
        snprintf(c->killed, sizeof c->killed, "%.60s", s->text);
    }
    if (c->oom_ns == INT64_MIN || c->killed_ns == INT64_MIN ||
        c->oom_ns - c->killed_ns > OOM_NEAR_NS || c->killed_ns - c->oom_ns > OOM_NEAR_NS)
        return;
    sv_when_hit(w, c, c->killed_ns, 0,
                "process '%s' was ended by SIGKILL while the kernel killed for want of memory",
                c->killed);
    c->oom_ns = c->killed_ns = INT64_MIN;
}

static const struct sv_when_kind oom = {
    .word = "oom",
    .syntax = "oom",
    .holds = "SIGKILL ended a recorded process within five seconds of a kill for want of memory "
             "(`oom_kill` of /proc/vmstat)",
    .feeds = SV_SEEN_EXIT | SV_SEEN_COUNTER,
    .needs = SV_WHEN_OOM,
    .parse = parse_oom,
    .feed = feed_oom,
};

/* ---- loss, log ---- */

static void feed_loss(struct sv_when *w, struct sv_condition *c, const struct sv_seen *s)
{
    sv_when_hit(w, c, s->ts_ns, s->track, "%.0f events were lost: %.100s", s->value, s->text);
}

static const struct sv_when_kind loss = {
    .word = "loss",
    .syntax = "loss",
    .holds = "events were lost",
    .feeds = SV_SEEN_LOSS,
    .feed = feed_loss,
};

static void parse_log(struct sv_when_reader *r, struct sv_condition *c)
{
    char *path = sv_when_bare(r, "the path of a log");
    if (!sv_when_word(r, "~"))
        sv_when_expect(r, "~");
    char *text = sv_when_quoted(r, "a text in quotes");
    if (path && text)
        c->log = sv_when_log_new(path, text);
    free(path);
    free(text);
}

static void check_log(struct sv_when *w, struct sv_condition *c, int64_t now_ns)
{
    enum { LINES_MOST = 16 }; /* of one look; a log that repeats itself says nothing new */
    const char *line;
    for (int i = 0; (line = sv_when_log_next(c->log)); i++)
        if (i < LINES_MOST)
            sv_when_hit(w, c, now_ns, 0, "log %.100s: %.200s", sv_when_log_path(c->log), line);
}

static const struct sv_when_kind log_kind = {
    .word = "log",
    .syntax = "log train.log ~ 'CUDA error'",
    .holds = "a new line of the file has this text. The file may be there later, be replaced or "
             "cut; what it had at the start does not count",
    .needs = SV_WHEN_LOG,
    .parse = parse_log,
    .check = check_log,
};

const struct sv_when_kind *const sv_when_kinds[] = {
    &step,      &request,     &slice, &no,   &counter,  &pressure, &rate,
    &exit_kind, &signal_kind, &oom,   &loss, &log_kind, NULL,
};
