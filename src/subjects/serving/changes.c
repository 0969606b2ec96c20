/* Figures of two runs, and bars. Called by report batch and report llm. */
#include "subjects/serving/changes.h"

#include "cli/command.h"
#include "cli/console.h"
#include "core/base/sat.h"
#include "subjects/subject.h"

#include <string.h>

enum { BAR = 60 };

static double worsening(const struct sv_change *c)
{
    double by = c->less_is_worse ? c->before - c->after : c->after - c->before;
    return c->is_count ? c->after : c->before > 0 ? by / c->before * 100 : 0;
}

int sv_percent_option(const char *option, const char *text, double otherwise, double *out,
                      struct sv_err *err)
{
    *out = otherwise;
    if (!text)
        return 0;
    size_t len = strlen(text);
    len -= len && text[len - 1] == '%';
    if (sv_parse_number(text, len, out) < 0)
        return sv_error(err, SV_EUSAGE, "--%s: '%s' is not a number", option, text);
    return 0;
}

static void print_change(const struct sv_change *c, bool is_missed)
{
    char before[32], after[32];
    if (c->is_count || c->less_is_worse) {
        snprintf(before, sizeof before, "%.1f", c->before);
        snprintf(after, sizeof after, "%.1f", c->after);
    } else {
        sv_human_ns(before, (int64_t)c->before);
        sv_human_ns(after, (int64_t)c->after);
    }
    double change = c->before > 0 ? (c->after / c->before - 1) * 100 : 0;
    sv_print(stdout, "  %-24s %14s %14s %+9.1f %%  %s\n", c->name, before, after, change,
             is_missed ? "MISSED" : "ok");
}

static void json_change(const struct sv_change *c, bool is_missed, bool is_first)
{
    sv_print(stdout,
             "%s\n  {\"figure\":\"%s\",\"baseline\":%.6g,\"candidate\":%.6g,\"worse_by\":%.6g,"
             "\"limit\":%.6g,\"missed\":%s}",
             is_first ? "" : ",", c->name, c->before, c->after, worsening(c), c->limit,
             is_missed ? "true" : "false");
}

bool sv_print_changes(const struct sv_change *changes, size_t n, bool is_json)
{
    bool any_missed = false;
    if (!is_json)
        sv_print(stdout, "  %-24s %14s %14s %11s\n", "", "baseline", "this run", "change");
    else
        sv_print(stdout, "{\"version\":%d,\"changes\":[", SV_REPORT_FORM);
    for (size_t i = 0; i < n; i++) {
        bool is_missed = worsening(&changes[i]) > changes[i].limit;
        any_missed |= is_missed;
        if (is_json)
            json_change(&changes[i], is_missed, i == 0);
        else
            print_change(&changes[i], is_missed);
    }
    if (is_json)
        sv_print(stdout, "\n]}\n");
    return any_missed;
}

/* 0 … BAR; what lies outside, as a trace out of order may have it, is at the ends. */
static int place(int64_t ns, int64_t total_ns)
{
    __extension__ typedef __int128 wide;
    wide at = total_ns > 0 ? (wide)ns * BAR / total_ns : 0;
    return at < 0 ? 0 : at > BAR ? BAR : (int)at;
}

void sv_print_bar(const char *name, int64_t from_ns, int64_t to_ns, int64_t start_ns,
                  int64_t total_ns)
{
    char from[32], took[32], bar[BAR + 1];
    int first = place(sv_sat_sub(from_ns, start_ns), total_ns);
    int last = place(sv_sat_sub(to_ns, start_ns), total_ns);
    memset(bar, ' ', BAR);
    bar[BAR] = '\0';
    for (int i = first; i < last; i++)
        bar[i] = '#';
    if (to_ns > from_ns && first < BAR && bar[first] == ' ')
        bar[first] = '|';
    sv_print(stdout, "  %-11s %12s %12s  %s\n", name,
             sv_human_ns(from, sv_sat_sub(from_ns, start_ns)),
             sv_human_ns(took, sv_sat_sub(to_ns, from_ns)), bar);
}
