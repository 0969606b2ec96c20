/* stave status: lists the running recordings. */
#include "cli/console.h"
#include "cli/json_fit.h"
#include "cmd/commands.h"
#include "core/base/json.h"
#include "files/open.h"
#include "files/range.h"
#include "record/session/running.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct status_options {
    bool json, all;
};

/* Whole seconds are known. */
static const char *age_of(char to[static 32], int64_t s)
{
    if (s < 60)
        snprintf(to, 32, "%d s", s > 0 ? (int)s : 0);
    else
        snprintf(to, 32, "%lld:%02d:%02d", (long long)(s / 3600), (int)(s / 60 % 60),
                 (int)(s % 60));
    return to;
}

struct list {
    const struct sv_running *all;
    size_t n;
};

static void put_words(struct sv_json *j, const char *name, const char *words, char between)
{
    sv_json_key(j, name, strlen(name));
    sv_json_begin(j, '[');
    while (*words) {
        size_t n = strcspn(words, (char[]){between, '\0'});
        sv_json_text(j, words, n);
        words += n + (words[n] != '\0');
    }
    sv_json_end(j);
}

/* What not every recording has is null. */
static void put_limits(struct sv_json *j, const struct sv_running *r)
{
    const struct sv_running_state *s = &r->state;
    sv_json_lit(j, "disk_limit");
    if (s->disk_bytes)
        sv_json_u64(j, s->disk_bytes);
    else
        sv_json_null(j);
    sv_json_lit(j, "budget");
    if (s->budget > 0) {
        sv_json_begin(j, '{');
        sv_json_put(j, "share", double, s->budget);
        sv_json_put(j, "cost", double, s->cost);
        sv_json_put(j, "steps_given_up", u64, s->steps);
        sv_json_end(j);
    } else {
        sv_json_null(j);
    }
    sv_json_lit(j, "parts");
    if (s->parts) {
        sv_json_begin(j, '{');
        sv_json_put(j, "files", u64, s->parts);
        sv_json_put(j, "removed", u64, s->parts_removed);
        sv_json_end(j);
    } else {
        sv_json_null(j);
    }
}

static void put_triggers(struct sv_json *j, const struct sv_running *r)
{
    const struct sv_running_state *s = &r->state;
    sv_json_lit(j, "triggers");
    if (!r->is_ring) {
        sv_json_null(j);
        return;
    }
    sv_json_begin(j, '{');
    put_words(j, "when", s->conditions, '\n');
    sv_json_put(j, "hits", u64, s->hits);
    sv_json_put(j, "counted_only", u64, s->skipped);
    sv_json_put(j, "saved", u64, s->saved);
    sv_json_put(j, "removed", u64, s->removed);
    sv_json_put(j, "newest", cstr, s->newest);
    sv_json_end(j);
}

static void put_recording(struct sv_json *j, const struct sv_running *r)
{
    char since[SV_UTC_SIZE];
    sv_json_begin(j, '{');
    sv_json_put(j, "pid", i64, r->id.pid);
    sv_json_put(j, "age_s", i64, (int64_t)time(NULL) - r->since_s);
    sv_json_put(j, "since_utc", cstr, sv_utc_text(since, r->since_s * 1000000000));
    sv_json_put(j, "bytes", u64, r->bytes);
    sv_json_put(j, "name", cstr, r->name);
    sv_json_put(j, "out", cstr, r->out);
    sv_json_put(j, "events", u64, r->state.events);
    sv_json_put(j, "lost", u64, r->state.lost);
    put_words(j, "recorded", r->state.recorded, ' ');
    put_limits(j, r);
    put_triggers(j, r);
    sv_json_end(j);
}

static int fill(void *ctx, size_t most, struct sv_buf *to, struct sv_err *err)
{
    const struct list *l = ctx;
    struct sv_json j;
    (void)err;
    sv_json_init(&j, to);
    sv_json_begin(&j, '{');
    sv_json_put(&j, "version", u64, 1);
    sv_json_lit(&j, "recordings");
    sv_json_begin(&j, '[');
    for (size_t i = 0; i < l->n && i < most; i++)
        put_recording(&j, &l->all[i]);
    sv_json_end(&j);
    sv_json_end(&j);
    return 0;
}

static int print_all(const struct sv_running *all, size_t n, bool whole, struct sv_err *err)
{
    return sv_json_fit(&(struct sv_json_fit){.fill = fill,
                                             .ctx = &(struct list){all, n},
                                             .all = whole,
                                             .more = "--all has every recording"},
                       err);
}

static void print_line(const struct sv_running *r)
{
    char age[32], size[32];
    sv_print(stdout, "%-8d %-12s %10s  %s → %s\n", (int)r->id.pid,
             age_of(age, (int64_t)time(NULL) - r->since_s), sv_human_bytes(size, r->bytes), r->name,
             r->out);
}

static int run(void *options, const struct sv_words *operands, struct sv_err *err)
{
    struct sv_running *all;
    char text[700];
    const struct status_options *o = options;
    int code = sv_expect_operands(operands, 0, 0, "word", err);
    if (code >= 0)
        code = sv_options_need("all", "json", err);
    if (code < 0)
        return code;
    size_t n = sv_running_all(&all);
    const char *problem = n == 0 ? sv_running_problem(text, sizeof text) : NULL;
    if (o->json && !problem)
        code = print_all(all, n, o->all, err);
    for (size_t i = 0; i < n && !o->json; i++)
        print_line(&all[i]);
    if (n == 0 && !problem && !o->json)
        sv_console_note("no recording is running");
    free(all);
    return problem ? sv_error(err, SV_EINPUT, "%s", problem) : code;
}

static const struct sv_option options[] = {
    {0, "json", NULL, SV_OPT_FLAG, offsetof(struct status_options, json),
     "the recordings as JSON (docs/json.md)", NULL, NULL},
    {0, "all", NULL, SV_OPT_FLAG, offsetof(struct status_options, all),
     "with --json: all recordings, however many", NULL, NULL},
    {0},
};

static const struct sv_example examples[] = {
    {"stave status", "one line per recording: pid, age, size so far, what is recorded, output"},
    {0},
};

const struct sv_command sv_command_status = {
    .name = "status",
    .operands = "",
    .summary = "list the running recordings",
    .description = "Lists the running recordings of this user, detached or not, oldest first. The "
                   "size is that of all files of the recording so far.",
    .options = options,
    .examples = examples,
    .options_size = sizeof(struct status_options),
    .run = run,
};
