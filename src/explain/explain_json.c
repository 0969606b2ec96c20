/* What explain found, for programs: docs/why.md has the form. Called by the command explain and the
 * viewer. */
#include "explain/explain.h"

#include "core/base/buf.h"
#include "core/base/json.h"

#include <string.h>

/* ---- what was not observed ---- */

static bool was_left_out(const struct sv_observed *o, enum sv_coverage_part part)
{
    return o->recorded[part] == SV_COVERAGE_HAS_NONE || o->recorded[part] == SV_COVERAGE_UNKNOWN;
}

size_t sv_explain_missing(const struct sv_explanation *e, struct sv_missing to[SV_EXPLAIN_MISSING])
{
    static const char
        plain[] = "stave record -o run.pftrace -- COMMAND",
        calls[] = "stave record --calls files,maps,sync,names,stat,sockets -o run.pftrace -- "
                  "COMMAND",
        sample[] = "stave record --sample 99 -o run.pftrace -- COMMAND";
    const struct sv_observed *o = &e->observed;
    size_t n = 0;
    if (o->is_lossy)
        to[n++] = (struct sv_missing){"events that the recording lost",
                                      "record fewer kinds of calls, or with a larger --ring", NULL};
    if (o->given_up[0])
        to[n++] = (struct sv_missing){o->given_up, "record with a larger --budget", NULL};
    if (o->has_requests && o->states < 0.5)
        return n;
    if (o->states < 0.5)
        to[n++] = (struct sv_missing){"states of threads",
                                      "record with 'stave record' as root, or with CAP_BPF and "
                                      "CAP_PERFMON",
                                      plain};
    else if (!o->has_stacks && was_left_out(o, SV_COVERAGE_WAITS))
        to[n++] =
            (struct sv_missing){"stacks of waits", "record without --light and --no-offcpu", plain};
    if (o->calls < 0.5 && was_left_out(o, SV_COVERAGE_CALLS))
        to[n++] = (struct sv_missing){"system calls",
                                      o->is_looked
                                          ? "record as root, or with CAP_BPF and CAP_PERFMON"
                                          : "record without --no-io",
                                      plain};
    bool is_dim = o->states >= 0.5 && e->shares[SV_WHY_UNKNOWN] >= SV_EXPLAIN_LEAST;
    if (is_dim && o->is_looked)
        to[n++] = (struct sv_missing){"waits in calls that no library of the recording sees",
                                      "record as root, or with CAP_BPF and CAP_PERFMON", plain};
    else if (is_dim && !o->has_all_sockets)
        to[n++] =
            (struct sv_missing){"whether waits on several sockets are for requests or answers",
                                "record all calls on sockets", calls};
    if (e->shares[SV_WHY_COMPUTE] >= 0.5 && !e->n && !e->n_hot &&
        o->recorded[SV_COVERAGE_SAMPLES] == SV_COVERAGE_HAS_NONE)
        to[n++] = (struct sv_missing){"which functions compute", "record with --sample 99", sample};
    return n;
}

/* ---- JSON ---- */

static void put_text(struct sv_json *j, const char *key, const char *text)
{
    if (!text || !*text)
        return;
    sv_json_key(j, key, strlen(key));
    sv_json_text(j, text, strlen(text));
}

static void put_number(struct sv_json *j, const char *key, int64_t v, int64_t none)
{
    if (v == none)
        return;
    sv_json_key(j, key, strlen(key));
    sv_json_i64(j, v);
}

static void put_culprit(struct sv_json *j, const struct sv_culprit *c)
{
    sv_json_lit(j, "culprit");
    sv_json_begin(j, '{');
    put_text(j, "kind", c->kind);
    put_text(j, "name", c->name);
    put_number(j, "pid", c->pid, -1);
    put_number(j, "tid", c->tid, -1);
    put_text(j, "function", c->function);
    put_text(j, "file", c->file);
    put_number(j, "line", c->line, 0);
    put_text(j, "path", c->path);
    put_text(j, "lock", c->lock);
    put_number(j, "rank", c->rank, -1);
    put_text(j, "host", c->host);
    put_text(j, "device", c->device);
    put_text(j, "cgroup", c->cgroup);
    sv_json_end(j);
}

/* of: what is asked about: "units" or "slow_units" */
static void put_finding(struct sv_json *j, const struct sv_answer *f, const char *of)
{
    sv_json_line(j);
    sv_json_begin(j, '{');
    put_text(j, "cause", sv_explain_words[f->cause]);
    put_text(j, "of", of);
    sv_json_lit(j, "share");
    sv_json_double(j, f->share);
    sv_json_lit(j, "gain");
    sv_json_double(j, f->gain);
    put_text(j, "sure", f->sure);
    put_text(j, "sentence", f->sentence);
    put_text(j, "command", f->command);
    put_culprit(j, &f->culprit);
    sv_json_lit(j, "chain");
    sv_json_begin(j, '[');
    for (size_t i = 0; i < f->n_chain; i++)
        sv_json_text(j, f->chain[i], strlen(f->chain[i]));
    sv_json_end(j);
    sv_json_lit(j, "units");
    sv_json_u64(j, f->n_units);
    sv_json_lit(j, "worst");
    sv_json_begin(j, '[');
    for (size_t i = 0; i < f->n_worst; i++) {
        sv_json_begin(j, '{');
        put_number(j, "unit", f->worst[i].number, -1);
        put_number(j, "ts", f->worst[i].ts_ns, INT64_MIN);
        put_number(j, "dur", f->worst[i].dur_ns, INT64_MIN);
        sv_json_end(j);
    }
    sv_json_end(j);
    put_text(j, "advice", sv_answer_advice(f));
    sv_json_end(j);
}

static void put_slow(struct sv_json *j, const struct sv_slow_units *s)
{
    sv_json_lit(j, "slow_units");
    sv_json_begin(j, '{');
    sv_json_lit(j, "n");
    sv_json_u64(j, s->n);
    sv_json_lit(j, "of");
    sv_json_u64(j, s->of);
    put_number(j, "mean_ns", (int64_t)s->mean_ns, -1);
    put_number(j, "usual_ns", (int64_t)s->usual_ns, -1);
    put_number(j, "longest_ns", (int64_t)s->longest_ns, -1);
    sv_json_lit(j, "findings");
    sv_json_begin(j, '[');
    for (size_t i = 0; i < s->n_findings; i++)
        put_finding(j, &s->findings[i], "slow_units");
    sv_json_end(j);
    sv_json_end(j);
}

/* Parts of the recording as its metadata name them: all of which at least this much is there, or
 * none. */
static void put_recorded(struct sv_json *j, const char *key, const struct sv_observed *o,
                         enum sv_coverage_is is)
{
    sv_json_key(j, key, strlen(key));
    sv_json_begin(j, '[');
    for (int i = 0; i < SV_N_COVERAGE_PARTS; i++)
        if (is == SV_COVERAGE_HAS_NONE ? o->recorded[i] == is : o->recorded[i] >= is)
            sv_json_text(j, sv_coverage_names[i], strlen(sv_coverage_names[i]));
    sv_json_end(j);
}

static void put_coverage(struct sv_json *j, const struct sv_explanation *e)
{
    const struct sv_observed *o = &e->observed;
    const struct {
        const char *key;
        double share;
    } shares[] = {{"states", o->states}, {"calls", o->calls}, {"slices", o->slices}};
    const struct {
        const char *key;
        bool is;
    } parts[] = {{"stacks", o->has_stacks},
                 {"flows", o->has_flows},
                 {"gpu", o->has_gpu},
                 {"ranks", o->has_ranks},
                 {"requests", o->has_requests}};
    struct sv_missing missing[SV_EXPLAIN_MISSING];
    sv_json_lit(j, "coverage");
    sv_json_begin(j, '{');
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
        sv_json_key(j, shares[i].key, strlen(shares[i].key));
        sv_json_double(j, shares[i].share);
    }
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        sv_json_key(j, parts[i].key, strlen(parts[i].key));
        sv_json_bool(j, parts[i].is);
    }
    sv_json_lit(j, "lost");
    sv_json_u64(j, o->lost);
    put_recorded(j, "recorded", o, SV_COVERAGE_HAS_SOME);
    put_recorded(j, "not_recorded", o, SV_COVERAGE_HAS_NONE);
    sv_json_end(j);
    sv_json_lit(j, "not_observed");
    sv_json_begin(j, '[');
    size_t n = sv_explain_missing(e, missing);
    for (size_t i = 0; i < n; i++) {
        sv_json_begin(j, '{');
        put_text(j, "what", missing[i].what);
        put_text(j, "how", missing[i].how);
        put_text(j, "record", missing[i].record);
        sv_json_end(j);
    }
    sv_json_end(j);
}

static void put_hot(struct sv_json *j, const struct sv_explanation *e)
{
    sv_json_lit(j, "hot");
    sv_json_begin(j, '[');
    for (size_t i = 0; i < e->n_hot; i++) {
        sv_json_begin(j, '{');
        put_text(j, "function", e->hot[i].function);
        sv_json_lit(j, "share");
        sv_json_double(j, e->hot[i].share);
        sv_json_end(j);
    }
    sv_json_end(j);
}

/* One kind of units: what it is, where its time went, and the findings. */
static void put_units(struct sv_json *j, const struct sv_explanation *e)
{
    sv_json_lit(j, "units");
    sv_json_begin(j, '{');
    put_text(j, "kind", e->unit_kind);
    sv_json_lit(j, "n");
    sv_json_u64(j, e->n_units);
    sv_json_lit(j, "dur_ns");
    sv_json_i64(j, e->dur_ns);
    sv_json_lit(j, "marked");
    sv_json_bool(j, !e->is_found);
    sv_json_end(j);
    if (e->is_against) {
        sv_json_lit(j, "change");
        sv_json_double(j, e->change);
    }
    sv_json_lit(j, "time");
    sv_json_begin(j, '{');
    for (int k = 0; k < SV_N_WHY_CLASSES; k++)
        if (e->shares[k] > 0) {
            sv_json_key(j, sv_why_class_names[k], strlen(sv_why_class_names[k]));
            sv_json_double(j, e->shares[k]);
        }
    sv_json_end(j);
    if (e->n_hot)
        put_hot(j, e);
    sv_json_lit(j, "left_off");
    sv_json_u64(j, e->n_suspended);
    sv_json_lit(j, "findings");
    sv_json_begin(j, '[');
    for (size_t i = 0; i < e->n; i++)
        put_finding(j, &e->findings[i], "units");
    sv_json_end(j);
    if (e->slow.n)
        put_slow(j, &e->slow);
}

static void put_rows(struct sv_json *j, const struct sv_explanation *e)
{
    sv_json_lit(j, "rows");
    sv_json_begin(j, '[');
    for (size_t i = 0; i < e->n_rows; i++)
        sv_json_u64(j, e->rows[i]);
    sv_json_end(j);
}

static void write_json(const struct sv_explanation *e, struct sv_buf *b)
{
    struct sv_json j;
    sv_json_init(&j, b);
    sv_json_begin(&j, '{');
    sv_json_lit(&j, "version");
    sv_json_u64(&j, SV_EXPLAIN_FORM);
    sv_json_lit(&j, "can_say");
    sv_json_bool(&j, e->can_say);
    put_coverage(&j, e);
    put_units(&j, e);
    if (e->also) {
        sv_json_lit(&j, "also");
        sv_json_begin(&j, '{');
        put_units(&j, e->also);
        sv_json_end(&j);
    }
    if (e->n_rows)
        put_rows(&j, e);
    sv_json_end(&j);
    sv_buf_byte(b, '\n');
}

/* Leaves off the finding of least weight; false: there is none. */
static bool shorten(struct sv_explanation *e)
{
    if (e->also && shorten(e->also))
        return true;
    if (!e->n && !e->slow.n_findings)
        return false;
    if (e->slow.n_findings > 1 || !e->n)
        e->slow.n_findings--;
    else
        e->n--;
    e->n_suspended++;
    return true;
}

void sv_explain_json(struct sv_explanation *e, struct sv_buf *b)
{
    enum { BYTES_MAX = 16384 };
    size_t from = b->len;
    for (;;) {
        write_json(e, b);
        if (b->len - from <= BYTES_MAX || !shorten(e))
            return;
        b->len = from;
    }
}
