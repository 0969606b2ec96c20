/* stave validate: what is wrong with a trace, rule by rule, with an exit code for scripts. */
#include "cli/console.h"
#include "cli/json_fit.h"
#include "cmd/commands.h"
#include "core/base/buf.h"
#include "core/base/json.h"
#include "files/open.h"
#include "store/check.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct validate {
    const char *from;
    bool json, strict, rules;
};

static void print_quoted(const char *before, struct sv_text t)
{
    sv_print_text(stdout, before, t.bytes, t.len, "\"");
}

static void print_row(const struct sv_dict *d, const struct sv_check_row *row,
                      enum sv_check_rule rule)
{
    static const enum sv_style_code styles[] = {
        [SV_CHECK_NOTE] = SV_DIM, [SV_CHECK_WARNING] = SV_YELLOW, [SV_CHECK_ERROR] = SV_RED};
    const struct sv_check_rule_info *info = &sv_check_rules[rule];
    char count[32];
    sv_print_styled(stdout, styles[info->severity], "%-7s", sv_check_severity_name(info->severity));
    sv_print(stdout, " %-22s %9s  %s", info->name, sv_human_count(count, row->count), info->text);
    sv_print(stdout, "\n%41s first at %" PRId64 " ns", "", row->first_ns);
    if (row->track) {
        struct sv_text t = sv_dict_text(d, d->tracks[row->track].name);
        sv_print_text(stdout, " on ", t.bytes, t.len, "");
        if (d->tracks[row->track].tid != -1)
            sv_print(stdout, " (tid %" PRId64 ")", d->tracks[row->track].tid);
    }
    if (row->name)
        print_quoted(", \"", sv_dict_text(d, row->name));
    if (row->other)
        print_quoted(" against \"", sv_dict_text(d, row->other));
    sv_print(stdout, "\n");
}

static void print_found(const struct sv_dict *d, const struct sv_check *check, uint64_t damage)
{
    char n[32];
    for (int severity = SV_CHECK_ERROR; severity >= SV_CHECK_NOTE; severity--)
        for (unsigned r = 0; r < SV_CHECK_RULES; r++)
            if (check->rows[r].count && (int)sv_check_rules[r].severity == severity)
                print_row(d, &check->rows[r], (enum sv_check_rule)r);
    sv_print(stdout, "%s events checked", sv_human_count(n, check->events));
    if (damage)
        sv_print(stdout, ", the file is damaged in %s place%s\n", sv_human_count(n, damage),
                 damage == 1 ? "" : "s");
    else
        sv_print(stdout, sv_check_worst(check) >= SV_CHECK_WARNING ? "\n" : ", nothing wrong\n");
}

static void json_member(struct sv_json *j, const char *key, struct sv_text t)
{
    sv_json_key(j, key, strlen(key));
    sv_json_text(j, t.bytes, t.len);
}

static int print_json(const struct sv_dict *d, const struct sv_check *check, uint64_t damage,
                      struct sv_err *err)
{
    struct sv_buf b;
    struct sv_json json, *j = &json;
    sv_buf_init(&b, 1 << 24);
    sv_json_init(j, &b);
    sv_json_begin(j, '{');
    sv_json_put(j, "version", u64, 1);
    sv_json_put(j, "events", u64, check->events);
    sv_json_put(j, "damage", u64, damage);
    sv_json_put(j, "findings", begin, '[');
    for (unsigned r = 0; r < SV_CHECK_RULES; r++) {
        const struct sv_check_row *row = &check->rows[r];
        if (!row->count)
            continue;
        const char *severity = sv_check_severity_name(sv_check_rules[r].severity);
        sv_json_begin(j, '{');
        json_member(
            j, "rule",
            (struct sv_text){sv_check_rules[r].name, (uint32_t)strlen(sv_check_rules[r].name)});
        json_member(j, "severity", (struct sv_text){severity, (uint32_t)strlen(severity)});
        sv_json_put(j, "count", u64, row->count);
        sv_json_put(j, "first_ns", i64, row->first_ns);
        json_member(j, "track", sv_json_short(sv_dict_text(d, d->tracks[row->track].name)));
        json_member(j, "name", sv_json_short(sv_dict_text(d, row->name)));
        sv_json_end(j);
    }
    sv_json_end(j);
    sv_json_end(j);
    return sv_print_json(&b, err);
}

static int list_rules(void)
{
    for (unsigned r = 0; r < SV_CHECK_RULES; r++)
        sv_print(stdout, "%-7s %-22s %s\n", sv_check_severity_name(sv_check_rules[r].severity),
                 sv_check_rules[r].name, sv_check_rules[r].text);
    return 0;
}

static int run(void *options, const struct sv_words *operands, struct sv_err *err)
{
    struct validate *o = options;
    if (o->rules) {
        int code = sv_options_only("validate --rules", "rules", err);
        if (code >= 0)
            code = sv_expect_operands(operands, 0, 0, "operand", err);
        return code < 0 ? code : list_rules();
    }
    int code = sv_expect_operands(operands, 1, 1, "input file", err);
    if (code < 0)
        return code;
    struct sv_dict *dict = sv_dict_new();
    struct sv_opened in;
    struct sv_check check = {0};
    uint64_t damage = 0;
    code = sv_open_input(operands->items[0], o->from, 0, dict, &in, err);
    if (code >= 0) {
        struct sv_sink *sink = sv_check_new(dict, in.source->gives, 0, &check);
        check.readers_sort = in.format->readers_sort;
        in.takes_nothing = true;
        code = sv_run(&in, sink, false, "checking", err);
        damage = sv_report_count(&in.report, SV_DAMAGE);
    }
    if (code >= 0) {
        if (o->json)
            code = print_json(dict, &check, damage, err);
        else
            print_found(dict, &check, damage);
        int limit = o->strict ? SV_CHECK_NOTE : SV_CHECK_WARNING;
        if (code >= 0 || code == SV_EPIPE)
            code = damage || sv_check_worst(&check) >= limit ? SV_EXIT_FOUND : SV_EXIT_OK;
    }
    sv_opened_close(&in);
    sv_dict_free(dict);
    return code;
}

static const struct sv_option options[] = {
    {0, "json", NULL, SV_OPT_FLAG, offsetof(struct validate, json), "as JSON", NULL, NULL},
    {0, "strict", NULL, SV_OPT_FLAG, offsetof(struct validate, strict),
     "notes also cause exit code 1", NULL, NULL},
    {0, "rules", NULL, SV_OPT_FLAG, offsetof(struct validate, rules), "list the rules and exit",
     NULL, NULL},
    {0, "from", "FORMAT", SV_OPT_TEXT, offsetof(struct validate, from),
     "input format: {readers} (default: recognised by content)", "{readers}", NULL},
    {0},
};

static const struct sv_example examples[] = {
    {"stave validate trace.pftrace",
     "nesting, flows, order, tracks; exit code 1 if something is wrong"},
    {"stave validate --json trace.json | jq '.findings[].rule'", "for scripts"},
    {0},
};

const struct sv_command sv_command_validate = {
    .name = "validate",
    .operands = "IN",
    .summary = "check a trace: nesting, flows, time order, references",
    .description = "Reads the trace once and reports, for each rule, how often it is violated and "
                   "the first position: ends without begins, slices that overlap without nesting "
                   "(those that overlap by one unit of time separately), flows that end without a "
                   "begin or are outside of any slice, times that go backwards, tracks below "
                   "unknown parents, losses. Damage of the file is an error.\n\n"
                   "Exit code 0: no findings, or only notes; 1: errors or warnings.",
    .options = options,
    .examples = examples,
    .lists = sv_format_lists,
    .options_size = sizeof(struct validate),
    .run = run,
};
