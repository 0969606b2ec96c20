/* What the tests of the stages (pair, split, lanes, filter) share: two threads A and B of one
 * process, events as text, a sink that collects.
 *
 *     struct fixture f;
 *     setup_stage(&f);
 *     size_t n = parse_events(&f, "S A 10 5 x; B B 12 y", events);
 *     push_events(events, n, sv_split_new(f.dict, &f.report, collect_sink(&f.out,
 *     SV_HAS_ANYTHING)), &err);
 *     teardown(&f); */
#ifndef TESTS_UNIT_STAGE_FIXTURE_H
#define TESTS_UNIT_STAGE_FIXTURE_H

#include "core/stream/stages.h"

#include "tests/harness/gen_events.h"
#include "tests/harness/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fixture {
    struct sv_dict *dict;
    struct sv_report report;
    struct collect out;
    sv_track a, b, c;         /* c: a counter, where a test has one */
    sv_str x, y, k, l;        /* names and keys, where a test has them */
    struct sv_arg values[64]; /* of counters in parse_events() */
};

static inline void setup_stage(struct fixture *f)
{
    memset(f, 0, sizeof *f);
    f->dict = sv_dict_new();
    sv_report_init(&f->report);
    f->a = sv_dict_thread(f->dict, 0, 1, 1);
    f->b = sv_dict_thread(f->dict, 0, 1, 2);
    f->dict->tracks[f->a].name = sv_dict_cstr(f->dict, "A");
    f->dict->tracks[f->b].name = sv_dict_cstr(f->dict, "B");
}

static inline void teardown(struct fixture *f)
{
    collect_fini(&f->out);
    sv_report_fini(&f->report);
    sv_dict_free(f->dict);
}

/* Events separated by semicolons: "S A 10 5 x" is a slice x on track A at 10 for 5 ("-":
 * unfinished), B begin, E end (without a name), I instant, F flow, N flow that binds to the next
 * slice, L loss for 5, C counter with its value as name. A name may have a category: x:cat. */
static inline size_t parse_events(struct fixture *f, const char *text, struct sv_event *events)
{
    static const char letters[] = "?BESICFL";
    size_t n = 0;
    for (const char *line = text; *line; n++) {
        char kind, track, name[32] = "", dur[16] = "0";
        long long ts;
        int used = 0;
        REQUIRE(sscanf(line, " %c %c %lld%n", &kind, &track, &ts, &used) == 3);
        line += used;
        if (kind == 'S' || kind == 'L') {
            REQUIRE(sscanf(line, " %15[-0-9]%n", dur, &used) == 1);
            line += used;
        }
        if (kind != 'E') {
            REQUIRE(sscanf(line, " %31[a-z:0-9,]%n", name, &used) == 1);
            line += used;
        }
        line += strspn(line, "; ");
        char *colon = strchr(name, ':');
        if (colon)
            *colon++ = '\0';
        struct sv_event *e = &events[n];
        *e = (struct sv_event){
            .ts_ns = ts,
            .dur_ns = dur[0] == '-' ? SV_UNFINISHED : strtoll(dur, NULL, 10),
            .track = track == 'A'   ? f->a
                     : track == 'B' ? f->b
                                    : f->c,
            .kind = (uint8_t)(strchr(letters, kind == 'N' ? 'F' : kind) - letters),
            .flags = kind == 'N' ? SV_BIND_NEXT : 0};
        if (kind == 'C') {
            f->values[n] = (struct sv_arg){.type = SV_ARG_INT, .i = strtoll(name, NULL, 10)};
            e->args = &f->values[n];
            e->n_args = 1;
        } else {
            e->name = sv_dict_cstr(f->dict, name);
            e->cat = colon ? sv_dict_cstr(f->dict, colon) : 0;
        }
    }
    return n;
}

/* 3,000 events into a stage whose next sink fails at the 500th: `make` puts the stage before it. */
static inline void check_failure_is_passed_on(unsigned shape,
                                              struct sv_sink *(*make)(struct sv_dict *dict,
                                                                      struct sv_sink *next))
{
    struct gen g;
    gen_make(&g, &(struct gen_options){.seed = 5, .n = 3000, .shape = shape, .extras = GEN_ALL});
    struct collect c = {.fail_at = 500};
    struct sv_err err = {0};
    CHECK_INT_EQ(gen_push(&g, make(g.dict, collect_sink(&c, SV_HAS_ANYTHING)), &err), SV_EIO);
    CHECK(c.closed && c.failed);
    collect_fini(&c);
    gen_fini(&g);
}

#endif
