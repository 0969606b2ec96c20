/* Conditions: their grammar, windows of durations, and when each kind holds. */
#include "core/stream/batch.h"
#include "record/when/when.h"
#include "record/when/window.h"
#include "subjects/io/words.h"
#include "tests/harness/test.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MS ((int64_t)1000000)
#define S  (1000 * MS)

static struct sv_dict *dict;
static struct sv_when *when;
static sv_track thread, process;

static void set_up(const char *condition)
{
    struct sv_err err = {0};
    dict = sv_dict_new();
    when = sv_when_new(dict);
    process = sv_dict_process(dict, 0, 7);
    dict->tracks[process].name = sv_dict_cstr(dict, "train");
    thread = sv_dict_thread(dict, 0, 7, 8);
    sv_when_add(when, condition, &err);
    CHECK_STR_EQ(err.msg, "");
    REQUIRE(sv_when_n(when) == 1);
    sv_when_tick(when, 0);
}

static void tear_down(void)
{
    sv_when_free(when);
    sv_dict_free(dict);
}

static void feed(unsigned kind, sv_track track, const char *name, int64_t ts_ns, int64_t dur_ns,
                 double value)
{
    struct sv_arg arg = {.type = SV_ARG_DOUBLE, .d = value};
    if (kind == SV_LOSS)
        arg = (struct sv_arg){.type = SV_ARG_INT, .i = (int64_t)value};
    struct sv_event e = {.kind = (uint8_t)kind,
                         .track = track,
                         .name = sv_dict_cstr(dict, name),
                         .ts_ns = ts_ns,
                         .dur_ns = dur_ns,
                         .n_args = kind == SV_COUNTER || kind == SV_LOSS,
                         .args = &arg};
    sv_when_feed(when, &e, 1);
}

static void slice(const char *name, int64_t ts_ns, int64_t dur_ns)
{
    feed(SV_SLICE, thread, name, ts_ns, dur_ns, 0);
}

static void end_process(int64_t ts_ns, int status)
{
    struct sv_arg arg = {.key = sv_dict_cstr(dict, "status"), .type = SV_ARG_INT, .i = status};
    struct sv_event e = {.kind = SV_INSTANT,
                         .track = thread,
                         .name = sv_dict_cstr(dict, "exit"),
                         .cat = sv_dict_cstr(dict, SV_CAT_PROCESS),
                         .ts_ns = ts_ns,
                         .n_args = 1,
                         .args = &arg};
    sv_when_feed(when, &e, 1);
}

static size_t hits(struct sv_when_hit *last)
{
    struct sv_when_hit h = {0};
    size_t n = 0;
    while (sv_when_next(when, &h)) {
        n++;
        if (last)
            *last = h;
    }
    return n;
}

/* ---- the grammar ---- */

static const struct {
    const char *text, *says; /* NULL: it is right */
} grammar[] = {
    {"step > 500ms", NULL},
    {"step>500ms", NULL},
    {"  step  >=  1.5 x  p99.9  over 1m  ", NULL},
    {"step > 2x median", NULL},
    {"request > p99 over 1m", NULL},
    {"slice 'load*' > 500ms", NULL},
    {"slice \"it's\" < 1us", NULL},
    {"no step for 30s", NULL},
    {"no event 'checkpoint' for 2h", NULL},
    {"counter 'GPU 0/sm' < 10% for 5s", NULL},
    {"counter 'used' > 60G", NULL},
    {"counter 'x' <= -3", NULL},
    {"rate 'read' > 1000/s over 10s", NULL},
    {"pressure memory > 10%", NULL},
    {"exit != 0", NULL},
    {"exit 'python*' == 3", NULL},
    {"signal", NULL},
    {"signal SEGV", NULL},
    {"signal 'python*' SIGKILL", NULL},
    {"oom", NULL},
    {"loss", NULL},
    {"log /var/log/x.log ~ 'CUDA error'", NULL},
    {"log 'a b.log' ~ \"x\"", NULL},
    {"", "it ends too early: expected one of step, request, slice, no"},
    {"steps > 5ms", "character 1, 'steps': expected one of step"},
    {"step", "it ends too early: expected <, <=, > or >="},
    {"step = 5ms", "character 6, '=': expected <, <=, > or >="},
    {"step == 5ms", "character 6, '=': expected <, <=, > or >="},
    {"step > fast", "character 8, 'fast': expected a time (500ms), a factor"},
    {"step > 5", "character 8, '5': expected a time (500ms), a factor"},
    {"step > 2x medain", "character 11, 'medain': expected median, or a percentile"},
    {"step > 0x median", "character 8, '0x': expected a time (500ms), a factor"},
    {"step > p100", "expected a percentile between p1 and p99.99"},
    {"step > 2x median over", "it ends too early: expected a time such as 500ms"},
    {"step > 500ms now", "character 14, 'now': expected the end of the condition"},
    {"slice load > 5ms", "character 7, 'load': expected a name in quotes"},
    {"slice 'load > 5ms", "character 7, ''': expected a text with a quote at its end"},
    {"slice '' > 5ms", "character 7, ''': expected a text between the quotes"},
    {"no step", "it ends too early: expected for, and a time"},
    {"no coffee for 3s", "character 4, 'coffee': expected step, request or event 'NAME'"},
    {"counter 'x' > 5 apples", "character 17, 'apples': expected the end"},
    {"counter 'x' > 5q", "character 16, 'q': expected one of the units"},
    {"pressure disk > 1%", "character 10, 'disk': expected cpu, memory or io"},
    {"exit is 0", "character 6, 'is': expected ==, !=, <, <=, > or >="},
    {"signal HUPP", "character 8, 'HUPP': expected the name of a signal"},
    {"log x.log", "it ends too early: expected ~"},
    {"log", "it ends too early: expected the path of a log"},
    {"oom now", "character 5, 'now': expected the end"},
};

TEST(when_conditions_are_read_and_errors_point_at_the_place)
{
    for (size_t i = 0; i < sizeof grammar / sizeof *grammar; i++) {
        struct sv_err err = {0};
        dict = sv_dict_new();
        when = sv_when_new(dict);
        int code = sv_when_add(when, grammar[i].text, &err);
        CHECK_INT_EQ(code, grammar[i].says ? SV_EUSAGE : 0);
        if (code != (grammar[i].says ? SV_EUSAGE : 0) ||
            (grammar[i].says && !strstr(err.msg, grammar[i].says))) {
            printf("  %s: %s\n", grammar[i].text, err.msg);
            CHECK(false);
        }
        tear_down();
    }
}

TEST(when_has_at_most_so_many_conditions)
{
    struct sv_err err = {0};
    set_up("loss");
    for (int i = 1; i < SV_WHEN_MAX; i++)
        CHECK_INT_EQ(sv_when_add(when, "step > 1s", &err), 0);
    CHECK_INT_EQ(sv_when_add(when, "loss", &err), SV_EUSAGE);
    tear_down();
}

/* ---- windows ---- */

TEST(when_windows_know_percentiles_and_forget)
{
    struct sv_when_window *w = sv_window_new(8 * S);
    for (int64_t i = 1; i <= 1000; i++)
        sv_window_add(w, i * MS, i * 1000);
    CHECK_UINT_EQ(w->n, 1000);
    for (double share = 0.1; share < 1; share += 0.1) {
        double is = (double)sv_window_at(w, share), should = share * 1e6;
        CHECK(is > should * 0.97 && is < should * 1.03);
    }
    sv_window_add(w, 6 * S, INT64_MAX);
    sv_window_add(w, 6 * S, -5);
    CHECK_UINT_EQ(w->n, 1002);
    sv_window_turn(w, 10 * S); /* the first second is too old, the others are not */
    CHECK_UINT_EQ(w->n, 2);
    sv_window_add(w, S, 1);
    CHECK_UINT_EQ(w->n, 2);
    sv_window_turn(w, 1000 * S);
    CHECK_UINT_EQ(w->n, 0);
    CHECK_INT_EQ(sv_window_at(w, 0.5), 0);
    free(w);
}

/* ---- durations ---- */

TEST(when_a_step_takes_longer)
{
    struct sv_when_hit h = {0};
    set_up("step > 500ms");
    slice("ProfilerStep#1", 0, 500 * MS);
    slice("load", S, 900 * MS);
    CHECK_UINT_EQ(hits(NULL), 0);
    slice("ProfilerStep#2", S, 501 * MS);
    REQUIRE(hits(&h) == 1);
    CHECK_STR_EQ(h.cause, "'ProfilerStep#2' took 501.000 ms");
    CHECK_INT_EQ(h.ts_ns, S + 501 * MS);
    CHECK_UINT_EQ(h.track, thread);
    tear_down();
}

TEST(when_the_first_marker_of_steps_counts)
{
    set_up("step > 500ms");
    slice("epoch 1", 0, 900 * MS);
    CHECK_UINT_EQ(hits(NULL), 1); /* until there are steps, these are it */
    slice("step 1", S, 10 * MS);
    slice("epoch 2", S, 900 * MS);
    CHECK_UINT_EQ(hits(NULL), 0);
    tear_down();
}

TEST(when_a_step_is_far_above_the_median)
{
    set_up("step > 2x median");
    slice("step", 0, 9 * S);
    CHECK_UINT_EQ(hits(NULL), 0); /* nothing to compare with */
    for (int i = 1; i < 20; i++)
        slice("step", i * S, 100 * MS);
    CHECK_UINT_EQ(hits(NULL), 0);
    slice("step", 20 * S, 190 * MS);
    CHECK_UINT_EQ(hits(NULL), 0);
    slice("step", 21 * S, 215 * MS);
    CHECK_UINT_EQ(hits(NULL), 1);
    tear_down();
}

TEST(when_a_percentile_needs_values_beyond_it)
{
    set_up("request > p99 over 1m");
    for (int i = 0; i < 99; i++)
        slice("request", i * MS, (i + 1) * MS);
    CHECK_UINT_EQ(hits(NULL), 0);
    slice("request 100", 100 * MS, 2 * MS);
    slice("request 101", 100 * MS, 90 * MS);
    CHECK_UINT_EQ(hits(NULL), 0);
    slice("Request", 101 * MS, 120 * MS);
    CHECK_UINT_EQ(hits(NULL), 1);
    slice("request", 300 * S, 500 * MS); /* the window is empty again */
    CHECK_UINT_EQ(hits(NULL), 0);
    tear_down();
}

TEST(when_an_open_slice_is_too_long_it_is_not_said_twice)
{
    struct sv_when_hit h = {0};
    set_up("slice 'load*' > 1s");
    feed(SV_BEGIN, thread, "outer", 0, 0, 0);
    feed(SV_BEGIN, thread, "load batch", S, 0, 0);
    feed(SV_BEGIN, thread, "inner", S, 0, 0);
    sv_when_tick(when, S + 900 * MS);
    CHECK_UINT_EQ(hits(NULL), 0);
    feed(SV_END, thread, "", S + 950 * MS, 0, 0);
    sv_when_tick(when, 2 * S + 100 * MS);
    REQUIRE(hits(&h) == 1);
    CHECK_STR_EQ(h.cause, "'load batch' has not ended after 1.100 s");
    sv_when_tick(when, 3 * S);
    feed(SV_END, thread, "", 4 * S, 0, 0);
    CHECK_UINT_EQ(hits(NULL), 0);
    feed(SV_END, thread, "", 5 * S, 0, 0); /* of the outer one */
    feed(SV_BEGIN, thread, "load", 6 * S, 0, 0);
    feed(SV_END, thread, "", 8 * S, 0, 0);
    CHECK_UINT_EQ(hits(NULL), 1);
    tear_down();
}

TEST(when_more_are_open_than_there_are_places_none_is_mistaken)
{
    set_up("slice 'load' > 1s");
    for (int i = 0; i < 5000; i++)
        feed(SV_BEGIN, thread, "load", 0, 0, 0);
    for (int i = 0; i < 5000; i++)
        feed(SV_END, thread, "", 500 * MS, 0, 0);
    CHECK_UINT_EQ(hits(NULL), 0);
    feed(SV_BEGIN, thread, "load", S, 0, 0);
    feed(SV_END, thread, "", 3 * S, 0, 0);
    CHECK_UINT_EQ(hits(NULL), 1);
    feed(SV_BEGIN, thread, "load", 4 * S, 0, 0);
    sv_when_forget(when, thread);
    sv_when_tick(when, 9 * S);
    CHECK_UINT_EQ(hits(NULL), 0);
    tear_down();
}

/* ---- the others ---- */

TEST(when_nothing_comes_any_more)
{
    struct sv_when_hit h = {0};
    set_up("no step for 30s");
    sv_when_tick(when, 100 * S);
    CHECK_UINT_EQ(hits(NULL), 0); /* there was none yet */
    slice("step", 100 * S, S);
    sv_when_tick(when, 130 * S);
    CHECK_UINT_EQ(hits(NULL), 0);
    sv_when_tick(when, 132 * S);
    REQUIRE(hits(&h) == 1);
    CHECK_INT_EQ(h.ts_ns, 131 * S);
    sv_when_tick(when, 500 * S);
    CHECK_UINT_EQ(hits(NULL), 0); /* once */
    slice("step", 500 * S, S);
    sv_when_tick(when, 532 * S);
    CHECK_UINT_EQ(hits(NULL), 1);
    tear_down();
}

TEST(when_a_counter_stays_below)
{
    struct sv_when_hit h = {0};
    set_up("counter 'GPU 0/sm' < 10% for 5s");
    sv_track gpu = sv_dict_child(dict, 0, SV_TRACK_GPU, sv_dict_cstr(dict, "GPU 0"));
    sv_track sm = sv_dict_child(dict, gpu, SV_TRACK_COUNTER, sv_dict_cstr(dict, "sm"));
    sv_track other = sv_dict_child(dict, process, SV_TRACK_COUNTER, sv_dict_cstr(dict, "sm"));
    for (int i = 0; i < 20; i++) {
        feed(SV_COUNTER, sm, "", i * S, 0, i == 4 || i > 12 ? 50 : 3);
        feed(SV_COUNTER, other, "", i * S, 0, 3);
    }
    REQUIRE(hits(&h) == 1); /* from 5 s on, and once */
    CHECK_INT_EQ(h.ts_ns, 10 * S);
    CHECK_UINT_EQ(h.track, sm);
    CHECK_STR_EQ(h.cause, "counter 'GPU 0/sm' is 3 for 5.000 s");
    tear_down();
}

TEST(when_a_counter_keeps_its_value_while_its_process_runs)
{
    set_up("counter 'queue' > 10 for 1s");
    sv_track queue = sv_dict_child(dict, process, SV_TRACK_COUNTER, sv_dict_cstr(dict, "queue"));
    feed(SV_COUNTER, queue, "", 0, 0, 11);
    sv_when_tick(when, 900 * MS);
    CHECK_UINT_EQ(hits(NULL), 0);
    sv_when_tick(when, S);
    CHECK_UINT_EQ(hits(NULL), 1);
    feed(SV_COUNTER, queue, "", 2 * S, 0, 3);
    feed(SV_COUNTER, queue, "", 3 * S, 0, 12);
    end_process(3 * S, 0);
    sv_when_tick(when, 9 * S);
    CHECK_UINT_EQ(hits(NULL), 0);
    tear_down();
}

TEST(when_a_name_comes_often)
{
    set_up("rate 'read' > 100/s over 1s");
    for (int i = 0; i < 3000; i++) {
        slice("read", i * 20 * MS, MS); /* 50 a second */
        sv_when_tick(when, i * 20 * MS);
    }
    CHECK_UINT_EQ(hits(NULL), 0);
    for (int i = 0; i < 3000; i++) {
        slice("read", 60 * S + i * 5 * MS, MS); /* 200 */
        sv_when_tick(when, 60 * S + i * 5 * MS);
    }
    CHECK_UINT_EQ(hits(NULL), 1);
    tear_down();
}

TEST(when_a_process_ends)
{
    struct sv_when_hit h = {0};
    set_up("exit != 0");
    end_process(S, 0);
    CHECK_UINT_EQ(hits(NULL), 0);
    end_process(S, 3 << 8);
    REQUIRE(hits(&h) == 1);
    CHECK_STR_EQ(h.cause, "process 'train' ended with exit code 3");
    end_process(S, SIGSEGV);
    CHECK_UINT_EQ(hits(NULL), 1);
    tear_down();
    set_up("exit 'other' != 0");
    end_process(S, 3 << 8);
    CHECK_UINT_EQ(hits(NULL), 0);
    tear_down();
    set_up("signal SEGV");
    end_process(S, 3 << 8);
    end_process(S, SIGKILL);
    CHECK_UINT_EQ(hits(NULL), 0);
    end_process(S, SIGSEGV);
    REQUIRE(hits(&h) == 1);
    CHECK_STR_EQ(h.cause, "process 'train' was ended by signal 11, SIGSEGV");
    tear_down();
}

TEST(when_memory_runs_out)
{
    set_up("oom");
    sv_track memory = sv_dict_child(dict, 0, SV_TRACK_CUSTOM, sv_dict_cstr(dict, "Memory"));
    sv_track kills = sv_dict_child(dict, memory, SV_TRACK_COUNTER, sv_dict_cstr(dict, "oom kills"));
    feed(SV_COUNTER, kills, "", 0, 0, 17); /* kills before the recording */
    end_process(S, SIGKILL);
    CHECK_UINT_EQ(hits(NULL), 0);
    feed(SV_COUNTER, kills, "", 30 * S, 0, 18); /* another process */
    CHECK_UINT_EQ(hits(NULL), 0);
    end_process(31 * S, SIGKILL);
    CHECK_UINT_EQ(hits(NULL), 1);
    end_process(32 * S, SIGKILL);
    CHECK_UINT_EQ(hits(NULL), 0);
    tear_down();
}

TEST(when_events_are_lost)
{
    struct sv_when_hit h = {0};
    set_up("loss");
    feed(SV_LOSS, thread, "full ring", S, 0, 12);
    REQUIRE(hits(&h) == 1);
    CHECK_STR_EQ(h.cause, "12 events were lost: full ring");
    for (int i = 0; i < 1000; i++)
        feed(SV_LOSS, thread, "full ring", S, 0, 12);
    CHECK(hits(NULL) < 1000);
    CHECK(sv_when_uncounted(when) > 0);
    tear_down();
}

TEST(when_a_log_has_a_new_line)
{
    struct sv_when_hit h = {0};
    char condition[300];
    const char *path = test_scratch("log");
    snprintf(condition, sizeof condition, "log '%s' ~ 'error'", path);
    test_write_file(path, "an old error\n");
    set_up(condition);
    CHECK_UINT_EQ(hits(NULL), 0); /* the old one */
    FILE *f = fopen(path, "ae");
    REQUIRE(f);
    fputs("fine\nan err", f);
    fflush(f);
    sv_when_tick(when, S);
    CHECK_UINT_EQ(hits(NULL), 0); /* not whole */
    fputs("or \033[31m of ours\nanother", f);
    fflush(f);
    sv_when_tick(when, 2 * S);
    REQUIRE(hits(&h) == 1);
    CHECK(strstr(h.cause, "an error ?[31m of ours") != NULL);
    fclose(f);
    REQUIRE(remove(path) == 0); /* another one in its place, from its beginning */
    test_write_file(path, "error\n");
    sv_when_tick(when, 3 * S);
    CHECK_UINT_EQ(hits(NULL), 1);
    f = fopen(path, "we");
    REQUIRE(f);
    for (int i = 0; i < 40000; i++)
        fputs("x", f);
    fputs(" error\n", f); /* a line that is longer than what is held */
    fclose(f);
    sv_when_tick(when, 4 * S);
    CHECK_UINT_EQ(hits(NULL), 1);
    tear_down();
}

TEST(when_a_name_does_not_occur_that_is_said_once)
{
    unsigned condition;
    const char *what;
    set_up("slice 'laod*' > 1s");
    slice("load", 0, S);
    sv_when_tick(when, 59 * S);
    CHECK(!sv_when_unseen(when, false, &condition, &what));
    sv_when_tick(when, 61 * S);
    REQUIRE(sv_when_unseen(when, false, &condition, &what));
    CHECK_STR_EQ(what, "laod*");
    CHECK(!sv_when_unseen(when, false, &condition, &what));
    tear_down();
    set_up("slice 'load*' > 1s");
    slice("load", 0, MS);
    CHECK(!sv_when_unseen(when, true, &condition, &what));
    tear_down();
}

/* ---- the table in docs/record.md ---- */

#define DOCS  TEST_SRC "/docs/record.md"
#define BEGIN "<!-- conditions: made from src/record/when; UPDATE=1 build/tests/unit -n when. -->\n"
#define END   "<!-- /conditions -->\n"

static void make_table(char *to, size_t size)
{
    struct sv_when_row row;
    size_t n = (size_t)snprintf(to, size, "| condition | holds when |\n|---|---|\n");
    for (size_t i = 0; sv_when_row(i, &row) && n < size; i++)
        n += (size_t)snprintf(to + n, size - n, "| `%s` | %s |\n", row.syntax, row.holds);
    REQUIRE(n < size);
}

TEST(when_conditions_are_in_the_documentation)
{
    static char docs[1 << 18], is[1 << 15], table[1 << 15];
    struct sv_when_row row;
    for (size_t i = 0; sv_when_row(i, &row); i++) { /* each example is right */
        set_up(row.syntax);
        tear_down();
    }
    make_table(table, sizeof table);
    FILE *f = fopen(DOCS, "re");
    REQUIRE(f);
    size_t n = fread(docs, 1, sizeof docs - 1, f);
    fclose(f);
    docs[n] = '\0';
    char *from = strstr(docs, BEGIN);
    REQUIRE(from);
    from += strlen(BEGIN);
    char *to = strstr(from, END);
    REQUIRE(to);
    snprintf(is, sizeof is, "%.*s", (int)(to - from), from);
    if (!getenv("UPDATE")) {
        CHECK_STR_EQ(is, table);
        return;
    }
    f = fopen(DOCS, "we");
    REQUIRE(f);
    fprintf(f, "%.*s%s%s", (int)(from - docs), docs, table, to);
    fclose(f);
}
