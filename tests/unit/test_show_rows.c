/* The order in which rows are seen, what is gathered at its end, and what keys of `stave show` do
 * to rows. */
#include "cmd/show.h"
#include "tests/harness/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BUSY = 100, QUIET = 200, N_QUIET = 4, SLICES = 6000 };

struct world {
    struct sv_dict *d;
    struct sv_trace *t;
    struct sv_view v;
    struct sv_screen s;
    struct sv_buf text;
};

static void put(struct world *w, sv_track track, int64_t ts_ns, int64_t dur_ns, const char *name)
{
    struct sv_err err;
    struct sv_event e = {.kind = SV_SLICE,
                         .ts_ns = ts_ns,
                         .dur_ns = dur_ns,
                         .track = track,
                         .name = sv_dict_cstr(w->d, name)};
    sv_err_clear(&err);
    struct sv_sink *sink = sv_trace_sink(w->t);
    REQUIRE(sink->write(sink, &e, 1, &err) == 0);
}

static sv_track thread(struct world *w, int64_t pid, int64_t tid, const char *name)
{
    sv_track process = sv_dict_process(w->d, 0, pid), track = sv_dict_thread(w->d, 0, pid, tid);
    w->d->tracks[process].name = sv_dict_cstr(w->d, pid == BUSY ? "train" : "sh");
    w->d->tracks[track].name = sv_dict_cstr(w->d, name);
    return track;
}

/* A process with a main thread of two lines and a loader; four that ran a moment each. */
static void begin(struct world *w, unsigned height)
{
    struct sv_err err;
    *w = (struct world){.d = sv_dict_new()};
    w->t = sv_trace_new(w->d, NULL, 0);
    sv_track first = thread(w, BUSY, BUSY, "trainer"), loader = thread(w, BUSY, BUSY + 1, "loader");
    sv_err_clear(&err);
    for (int64_t i = 0; i < SLICES; i++) {
        int64_t ts = i * 1000;
        put(w, first, ts, 900, "step");
        put(w, first, ts + 10, 100, "part");
        if (i % 2)
            put(w, loader, ts, 100, "read");
        if (i < N_QUIET)
            put(w, thread(w, QUIET + i, QUIET + i, i ? "idler" : "culprit"), ts, 50, "exec");
    }
    REQUIRE(sv_trace_finish(w->t, &err) == 0);
    sv_view_init(&w->v, w->t, "x", w->t->first_ns, w->t->last_ns + 1);
    sv_screen_init(&w->s, 80, height);
    sv_buf_init(&w->text, 1u << 20);
    sv_view_key(&w->v, 'd'); /* no details below the rows */
}

static void finish(struct world *w)
{
    sv_view_fini(&w->v);
    sv_screen_fini(&w->s);
    sv_buf_fini(&w->text);
    sv_trace_free(w->t);
    sv_dict_free(w->d);
}

/* The labels from top to bottom, joined by bars. */
static const char *labels(struct world *w)
{
    struct sv_buf all;
    sv_buf_init(&all, 1u << 20);
    sv_view_draw(&w->v, &w->s);
    w->s.height--; /* no line about keys */
    sv_screen_write(&w->s, false, &all);
    w->s.height++;
    sv_buf_clear(&w->text);
    char *rest = NULL, *line = strtok_r((char *)(uintptr_t)sv_buf_cstr(&all), "\n", &rest);
    for (unsigned y = 0; line; line = strtok_r(NULL, "\n", &rest), y++) {
        size_t n = strlen(line), used = n < 16 ? n : 16;
        bool is_heading = strstr(line, "(pid") || strstr(line, "others");
        used = is_heading ? n : used;
        while (used && (line[used - 1] == ' ' || line[used - 1] == '<'))
            used--;
        if (y < 2 || used == 0)
            continue;
        size_t from = strspn(line, is_heading ? "" : " >");
        if (from >= used)
            continue;
        sv_buf_str(&w->text, w->text.len ? "|" : "");
        sv_buf_add(&w->text, line + from, used - from);
    }
    sv_buf_fini(&all);
    return sv_buf_cstr(&w->text);
}

static void press(struct world *w, const char *keys)
{
    for (; *keys; keys++)
        sv_view_key(&w->v, (unsigned char)*keys);
}

static uint32_t row_named(const struct world *w, const char *name)
{
    const struct sv_track_rows *r = w->v.index->rows;
    for (uint32_t i = 0; i < r->n; i++)
        if (strcmp(sv_dict_text(w->d, w->d->tracks[r->items[i].track].name).bytes, name) == 0)
            return i;
    REQUIRE(false);
    return 0;
}

TEST(processes_that_do_next_to_nothing_are_one_line)
{
    struct world w;
    begin(&w, 24);
    CHECK_STR_EQ(labels(&w), "train (pid 100)|trainer|loader|+ 4 others");
    press(&w, "kkkkjjjjc"); /* to the heading */
    CHECK_STR_EQ(labels(&w), "train (pid 100)|trainer|loader|- 4 others|sh (pid 200)|culprit|"
                             "sh (pid 201)|idler|sh (pid 202)|idler|sh (pid 203)|idler");
    press(&w, "c");
    CHECK_STR_EQ(labels(&w), "train (pid 100)|trainer|loader|+ 4 others");
    finish(&w);
}

/* A server with a main thread and nine lanes of requests, two of which overlap at a time. */
static void serve(struct world *w)
{
    struct sv_err err;
    sv_err_clear(&err);
    *w = (struct world){.d = sv_dict_new()};
    w->t = sv_trace_new(w->d, NULL, 0);
    sv_track main_thread = thread(w, BUSY, BUSY, "main");
    put(w, main_thread, 0, 1000, "serve");
    for (int64_t i = 0; i < 9; i++) {
        char name[32];
        snprintf(name, sizeof name, "requests %d", (int)i + 1);
        bool is_new;
        sv_track lane = sv_dict_track(w->d, 1000 + (uint64_t)i, &is_new);
        w->d->tracks[lane].kind = SV_TRACK_CUSTOM;
        w->d->tracks[lane].parent = sv_dict_process(w->d, 0, BUSY);
        w->d->tracks[lane].name = sv_dict_cstr(w->d, name);
        put(w, lane, i * 100, 200, "request");
    }
    REQUIRE(sv_trace_finish(w->t, &err) == 0);
    sv_view_init(&w->v, w->t, "x", 0, 1000);
    sv_screen_init(&w->s, 80, 24);
    sv_buf_init(&w->text, 1u << 20);
    sv_view_key(&w->v, 'd');
}

TEST(lanes_are_one_line_until_they_are_unfolded)
{
    struct world w;
    serve(&w);
    CHECK_STR_EQ(labels(&w), "train (pid 100)|main|+ requests (9)");
    press(&w, "jc");
    CHECK_STR_EQ(labels(&w), "train (pid 100)|main|- requests (9)|requests 1|requests 2|requests 3|"
                             "requests 4|requests 5|requests 6|requests 7|requests 8|requests 9");
    press(&w, "jjc"); /* a lane by itself has nothing to fold */
    press(&w, "kkc");
    CHECK_STR_EQ(labels(&w), "train (pid 100)|main|+ requests (9)");
    press(&w, "&requests 7\r");
    CHECK_STR_EQ(labels(&w), "train (pid 100)|requests 7");
    press(&w, "&");
    sv_view_key(&w.v, SV_KEY_ESCAPE);
    press(&w, "/request\r"); /* a hit in a lane unfolds them */
    CHECK(w.v.lines[w.v.cursor].row == row_named(&w, "requests 1"));
    press(&w, "kx"); /* hidden together */
    CHECK_STR_EQ(labels(&w), "train (pid 100)|main");
    press(&w, "X");
    CHECK(strstr(labels(&w), "requests (9)") != NULL);
    finish(&w);
}

TEST(whom_a_finding_names_comes_first_and_is_not_among_the_others)
{
    struct world w;
    begin(&w, 24);
    uint32_t first[] = {row_named(&w, "culprit")};
    sv_view_first_rows(&w.v, first, 1);
    CHECK_STR_EQ(labels(&w), "sh (pid 200)|culprit|train (pid 100)|trainer|loader|+ 3 others");
    first[0] = row_named(&w, "loader");
    sv_view_first_rows(&w.v, first, 1);
    CHECK_STR_EQ(labels(&w), "train (pid 100)|loader|trainer|+ 4 others");
    finish(&w);
}

TEST(keys_fold_rows_and_processes)
{
    struct world w;
    begin(&w, 24);
    size_t all = w.v.n_lines;
    press(&w, "c"); /* the cursor is on the first row */
    CHECK_UINT_EQ(w.v.n_lines, all - 1);
    CHECK_STR_EQ(labels(&w), "train (pid 100)|+ trainer|loader|+ 4 others");
    press(&w, "ckkc"); /* the process */
    CHECK_STR_EQ(labels(&w), "+ train (pid 100)|+ 4 others");
    press(&w, "/read\r"); /* a hit in it opens it */
    CHECK_STR_EQ(labels(&w), "train (pid 100)|trainer|loader|+ 4 others");
    CHECK(w.v.lines[w.v.cursor].row == row_named(&w, "loader"));
    press(&w, "C");
    CHECK_STR_EQ(labels(&w), "+ train (pid 100)|+ 4 others");
    press(&w, "C");
    CHECK_STR_EQ(labels(&w), "train (pid 100)|trainer|loader|+ 4 others");
    finish(&w);
}

TEST(keys_filter_rows)
{
    struct world w;
    begin(&w, 24);
    press(&w, "&LOAD");
    CHECK_STR_EQ(labels(&w), "train (pid 100)|loader");
    press(&w, "\r");
    CHECK(w.v.filter[0]);
    press(&w, "&sh idler"); /* those that are gathered are found, too */
    CHECK_STR_EQ(labels(&w), "4 others|sh (pid 201)|idler|sh (pid 202)|idler|sh (pid 203)|idler");
    press(&w, "zzz");
    CHECK_UINT_EQ(w.v.n_lines, 0);
    press(&w, "\rjkcpxXCC\t.,f");
    sv_view_key(&w.v, SV_KEY_ENTER);
    labels(&w);
    press(&w, "&");
    sv_view_key(&w.v, SV_KEY_ESCAPE);
    CHECK_STR_EQ(labels(&w), "train (pid 100)|trainer|loader|+ 4 others");
    press(&w, "&load\r/part\r"); /* a hit outside of the filter ends it */
    CHECK_STR_EQ(labels(&w), "train (pid 100)|trainer|loader|+ 4 others");
    finish(&w);
}

TEST(keys_hide_and_pin_rows)
{
    struct world w;
    begin(&w, 9); /* five lines for rows */
    press(&w, "jjp");
    CHECK_UINT_EQ(w.v.n_fixed, 1);
    CHECK_STR_EQ(labels(&w), "loader|train (pid 100)|trainer|+ 4 others");
    press(&w, "jjjjc"); /* the others */
    press(&w, "jjjjjjjjjjjjjjj");
    CHECK(strncmp(labels(&w), "^loader|", 8) == 0); /* it does not scroll */
    press(&w, "kkkkkkkkkkkkkkkkkkkkp");
    CHECK_UINT_EQ(w.v.n_fixed, 0);
    CHECK(w.v.lines[w.v.cursor].row == row_named(&w, "loader"));
    press(&w, "x");
    CHECK(strstr(labels(&w), "loader") == NULL);
    press(&w, "X");
    press(&w, "kkkkkkkkkkkkkkkkkkkk");
    CHECK(strstr(labels(&w), "loader"));
    press(&w, "x"); /* the process */
    CHECK(strncmp(labels(&w), "- 4 others", 10) == 0);
    finish(&w);
}
