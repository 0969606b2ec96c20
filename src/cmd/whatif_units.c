/* stave whatif --without: what units would take without a file, a thread, a lock or a cause. */
#include "cmd/whatif.h"

#include "cli/console.h"
#include "core/base/json.h"
#include "why/coverage.h"
#include "why/unit_replay.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* What is left out, and its name: "file:*.npy". */
struct asked {
    const char *words[SV_WITHOUT_MAX];
    struct sv_without picks[SV_WITHOUT_MAX]; /* the first is nothing */
    struct sv_replayed to[SV_WITHOUT_MAX];
    size_t n;
};

static unsigned class_of(const char *name)
{
    unsigned class = 0;
    while (class < SV_N_WHY_CLASSES && strcmp(name, sv_why_class_names[class]) != 0)
        class ++;
    return class;
}

/* Reads "file:GLOB", "thread:GLOB", "lock:GLOB" or "cause:CLASS". */
static int read_word(const char *word, struct sv_without *w, struct sv_err *err)
{
    const char *colon = strchr(word, ':');
    size_t len = colon ? (size_t)(colon - word) : 0;
    *w = SV_WITHOUT_NOTHING;
    if (len == 4 && memcmp(word, "file", len) == 0 && colon[1])
        w->file = colon + 1;
    else if (len == 6 && memcmp(word, "thread", len) == 0 && colon[1])
        w->thread = colon + 1;
    else if (len == 4 && memcmp(word, "lock", len) == 0 && colon[1])
        w->lock = colon + 1;
    else if (len == 5 && memcmp(word, "cause", len) == 0)
        w->class = class_of(colon + 1);
    if (!w->file && !w->thread && !w->lock && w->class == SV_N_WHY_CLASSES)
        return sv_err_set(err, SV_EUSAGE, SV_NO_POS,
                          "--without: '%.60s' is none of file:GLOB, thread:GLOB, lock:GLOB and "
                          "cause:CLASS (a class of 'stave explain': disk, lock, cpu …)",
                          word);
    return 0;
}

int sv_whatif_check(const struct sv_words *without, struct sv_err *err)
{
    struct sv_without w;
    if (without->n > SV_WITHOUT_MAX - 1)
        return sv_err_set(err, SV_EUSAGE, SV_NO_POS, "--without: at most %d may be given",
                          SV_WITHOUT_MAX - 1);
    for (size_t i = 0; i < without->n; i++)
        if (read_word(without->items[i], &w, err) < 0)
            return SV_EUSAGE;
    return 0;
}

static void put_number(struct sv_json *j, const char *key, double v)
{
    sv_json_key(j, key, strlen(key));
    sv_json_double(j, v);
}

static void put_each(struct sv_json *j, const struct asked *a, double units)
{
    sv_json_lit(j, "without");
    sv_json_begin(j, '[');
    for (size_t i = 1; i < a->n; i++) {
        sv_json_line(j);
        sv_json_begin(j, '{');
        sv_json_lit(j, "what");
        sv_json_text(j, a->words[i], strlen(a->words[i]));
        put_number(j, "replayed_ns", a->to[i].ns / units);
        put_number(j, "gone_ns", a->to[i].gone_ns / units);
        put_number(j, "gain", 1 - a->to[i].ns / a->to[0].ns);
        sv_json_end(j);
    }
    sv_json_end(j);
}

static int print_json(const struct sv_ledger *l, const struct asked *a, const char *reason,
                      struct sv_err *err)
{
    struct sv_buf b;
    struct sv_json j;
    double units = (double)(l->n_counted ? l->n_counted : 1);
    sv_buf_init(&b, 1u << 20);
    sv_json_init(&j, &b);
    sv_json_begin(&j, '{');
    sv_json_lit(&j, "version");
    sv_json_i64(&j, 1);
    sv_json_lit(&j, "units");
    sv_json_begin(&j, '{');
    sv_json_lit(&j, "kind");
    sv_json_text(&j, sv_unit_kind_names[l->kind], strlen(sv_unit_kind_names[l->kind]));
    sv_json_lit(&j, "n");
    sv_json_u64(&j, l->n_counted);
    sv_json_end(&j);
    put_number(&j, "measured_ns", (double)l->dur_ns / units);
    put_number(&j, "replayed_ns", a->to[0].ns / units);
    put_number(&j, "error", l->dur_ns > 0 ? a->to[0].ns / (double)l->dur_ns - 1 : 0);
    if (reason) {
        sv_json_lit(&j, "cannot_say");
        sv_json_text(&j, reason, strlen(reason));
    } else {
        put_each(&j, a, units);
    }
    sv_json_end(&j);
    return sv_print_json(&b, err);
}

static void print_text(const struct sv_ledger *l, const struct asked *a)
{
    double units = (double)(l->n_counted ? l->n_counted : 1);
    char text[2][32];
    sv_print(stdout, "time of a %s  %s measured, %s replayed (%+.1f %%), mean of %zu\n",
             sv_unit_kind_names[l->kind],
             sv_human_ns(text[0], (int64_t)((double)l->dur_ns / units)),
             sv_human_ns(text[1], (int64_t)(a->to[0].ns / units)),
             100 * (a->to[0].ns / (double)l->dur_ns - 1), l->n_counted);
    for (size_t i = 1; i < a->n; i++) {
        sv_print_text(stdout, "without ", a->words[i], strlen(a->words[i]), "");
        sv_print(stdout, "  %s (%+.1f %%), of %s that is gone\n",
                 sv_human_ns(text[0], (int64_t)(a->to[i].ns / units)),
                 100 * (a->to[i].ns / a->to[0].ns - 1),
                 sv_human_ns(text[1], (int64_t)(a->to[i].gone_ns / units)));
    }
}

/* Why nothing can be said; NULL: something can. */
static const char *why_not(const struct sv_ledger *l, const struct asked *a)
{
    if (!l->states.has_states || sv_coverage_is_looked(l->trace->dict))
        return "the states of threads were not recorded, so a wait does not say who ended it; "
               "record with 'stave record' as root";
    if (!l->n_counted || l->dur_ns <= 0)
        return "there are no units";
    double error = a->to[0].ns / (double)l->dur_ns - 1;
    return error > SV_REPLAY_ERROR || error < -SV_REPLAY_ERROR
               ? "the unchanged replay misses the measured time by more than 5 %"
               : NULL;
}

int sv_whatif_units(const struct sv_trace *t, const char *path, const struct sv_words *without,
                    const char *unit, bool as_json, struct sv_err *err)
{
    struct asked a = {.picks = {SV_WITHOUT_NOTHING}, .words = {""}, .n = 1};
    struct sv_ledger l;
    int code = 0;
    for (size_t i = 0; i < without->n && code >= 0; i++, a.n++) {
        a.words[a.n] = without->items[i];
        code = read_word(without->items[i], &a.picks[a.n], err);
    }
    if (code < 0)
        return code;
    sv_ledger_make(&l, t,
                   &(struct sv_ledger_options){.step = -1, .marker = unit, .pieces_max = SIZE_MAX});
    sv_units_replay(&l, a.picks, a.n, a.to);
    const char *reason = why_not(&l, &a);
    for (size_t i = 1; i < a.n && !reason && code >= 0; i++)
        if (a.to[i].gone_ns <= 0)
            code = sv_err_set(err, SV_EINPUT, SV_NO_POS, "%s: nothing matches '%.60s'", path,
                              a.words[i]);
    if (code >= 0 && as_json)
        code = print_json(&l, &a, reason, err);
    else if (code >= 0 && !reason)
        print_text(&l, &a);
    if (code >= 0 && reason) {
        sv_console_error(path, SV_NO_POS, reason);
        code = SV_EXIT_UNSURE;
    }
    sv_ledger_fini(&l);
    return code;
}
