/* The terminal view: keys in, screens out. */
#include "cmd/show.h"
#include "tests/harness/test.h"
#include "trace_text.h"

#include <stdlib.h>
#include <string.h>

static const char *const sample =
    "X 0 1000 main step\nX 100 300 main forward k=5\nX 500 400 main backward\n"
    "X 1000 1000 main step\nX 1200 100 main forward\nC 0 queue 3\nC 900 queue 8\n";

struct fixture {
    struct sv_dict *d;
    struct sv_trace *t;
    struct sv_view v;
    struct sv_screen s;
    struct sv_buf text;
};

static void begin(struct fixture *f, const char *text, unsigned width, unsigned height)
{
    f->d = sv_dict_new();
    f->t = trace_text_load(text, f->d, NULL);
    sv_view_init(&f->v, f->t, "x", f->t->first_ns, f->t->last_ns + 1);
    sv_screen_init(&f->s, width, height);
    sv_buf_init(&f->text, 1u << 20);
    sv_view_draw(&f->v, &f->s);
}

static void finish(struct fixture *f)
{
    sv_view_fini(&f->v);
    sv_screen_fini(&f->s);
    sv_buf_fini(&f->text);
    sv_trace_free(f->t);
    sv_dict_free(f->d);
}

static const char *screen(struct fixture *f)
{
    sv_view_draw(&f->v, &f->s);
    sv_buf_clear(&f->text);
    sv_screen_write(&f->s, false, &f->text);
    return sv_buf_cstr(&f->text);
}

static void type(struct fixture *f, const char *keys)
{
    for (; *keys; keys++)
        sv_view_key(&f->v, (unsigned char)*keys);
}

static const char *selected(const struct fixture *f)
{
    return f->v.selected == SV_NO_ROW ? "-"
                                      : sv_dict_text(f->d, f->t->slices.name[f->v.selected]).bytes;
}

TEST(search_goes_through_time_in_both_directions)
{
    struct fixture f;
    begin(&f, sample, 80, 24);
    type(&f, "/FORW\r");
    CHECK_STR_EQ(selected(&f), "forward");
    CHECK_INT_EQ(f.t->slices.ts_ns[f.v.selected], 100);
    CHECK(strstr(screen(&f), "k 5"));
    type(&f, "n");
    CHECK_INT_EQ(f.t->slices.ts_ns[f.v.selected], 1200);
    type(&f, "n");
    CHECK(strstr(screen(&f), "no further slice"));
    type(&f, "N");
    CHECK_INT_EQ(f.t->slices.ts_ns[f.v.selected], 100);
    type(&f, "/back*\r");
    CHECK_STR_EQ(selected(&f), "backward");
    type(&f, "/nothing\r");
    CHECK_STR_EQ(selected(&f), "backward");
    finish(&f);
}

TEST(keys_move_zoom_and_fit)
{
    struct fixture f;
    begin(&f, sample, 80, 24);
    type(&f, "/backward\r\r");
    CHECK_INT_EQ(f.v.from_ns, 480);
    CHECK_INT_EQ(f.v.to_ns, 920);
    type(&f, "0");
    CHECK_INT_EQ(f.v.from_ns, 0);
    CHECK_INT_EQ(f.v.to_ns, 2001);
    type(&f, "+");
    CHECK(f.v.to_ns - f.v.from_ns > 1200 && f.v.to_ns - f.v.from_ns < 1300);
    CHECK(f.v.from_ns < 500 && f.v.to_ns > 900);
    type(&f, "hhhhhhhh");
    CHECK_INT_EQ(f.v.from_ns, 0);
    type(&f, "llllllllllllll");
    CHECK_INT_EQ(f.v.to_ns, 2001);
    type(&f, "++++++++++++++++++++++++++++++++++++++++++++++++++");
    CHECK(f.v.to_ns - f.v.from_ns >= 20 && f.v.to_ns - f.v.from_ns <= 21);
    type(&f, "--------------------------------------------------");
    CHECK_INT_EQ(f.v.to_ns - f.v.from_ns, 2001);
    finish(&f);
}

TEST(the_cursor_walks_over_lines_and_slices)
{
    struct fixture f;
    begin(&f, sample, 80, 24);
    sv_view_key(&f.v, SV_KEY_DOWN);
    CHECK(strcmp(selected(&f), "backward") == 0 || strcmp(selected(&f), "forward") == 0);
    sv_view_key(&f.v, SV_KEY_ESCAPE);
    type(&f, "/forward\r");
    sv_view_key(&f.v, SV_KEY_TAB);
    CHECK_STR_EQ(selected(&f), "backward");
    sv_view_key(&f.v, SV_KEY_BACK_TAB);
    CHECK_STR_EQ(selected(&f), "forward");
    sv_view_key(&f.v, SV_KEY_UP);
    CHECK_STR_EQ(selected(&f), "step");
    sv_view_key(&f.v, SV_KEY_ESCAPE);
    CHECK_STR_EQ(selected(&f), "-");
    for (unsigned i = 0; i < 20; i++)
        sv_view_key(&f.v, SV_KEY_DOWN);
    CHECK_UINT_EQ(f.v.cursor, f.v.n_lines - 1);
    CHECK_STR_EQ(selected(&f), "-"); /* a counter */
    finish(&f);
}

TEST(any_keys_on_any_screen_are_survived)
{
    static const uint32_t keys[] = {'h',
                                    'j',
                                    'k',
                                    'l',
                                    '+',
                                    '-',
                                    '0',
                                    'f',
                                    'd',
                                    'n',
                                    'N',
                                    '?',
                                    '/',
                                    'a',
                                    13,
                                    27,
                                    9,
                                    '.',
                                    ',',
                                    'g',
                                    'G',
                                    'c',
                                    'C',
                                    'p',
                                    'x',
                                    'X',
                                    '&',
                                    ' ',
                                    127,
                                    0x4e16,
                                    SV_KEY_UP,
                                    SV_KEY_DOWN,
                                    SV_KEY_LEFT,
                                    SV_KEY_RIGHT,
                                    SV_KEY_HOME,
                                    SV_KEY_END,
                                    SV_KEY_PAGE_UP,
                                    SV_KEY_PAGE_DOWN,
                                    SV_KEY_BACK_TAB};
    static const unsigned sizes[][2] = {{20, 5}, {21, 9}, {80, 24}, {300, 60}};
    uint64_t state = 12345;
    for (size_t i = 0; i < TEST_COUNT(sizes); i++) {
        struct fixture f;
        begin(&f, sample, sizes[i][0], sizes[i][1]);
        f.s.depth = i % 2 ? SV_DEPTH_TRUE : SV_DEPTH_MONO;
        for (unsigned k = 0; k < 3000; k++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            sv_view_key(&f.v, keys[(state >> 33) % TEST_COUNT(keys)]);
            if (k % 7 == 0)
                screen(&f);
            CHECK(f.v.from_ns < f.v.to_ns && (f.v.cursor < f.v.n_lines || f.v.n_lines == 0));
        }
        finish(&f);
    }
}

TEST(a_trace_of_one_instant_and_one_of_counters)
{
    static const char *const texts[] = {"I 5 t x\n", "C 5 c 1\n", "X 5 0 t x\n", "B 5 t x\n"};
    for (size_t i = 0; i < TEST_COUNT(texts); i++) {
        struct fixture f;
        CONTEXT("trace %zu", i);
        begin(&f, texts[i], 60, 12);
        type(&f, "+jk-0f/x\r\rn");
        sv_view_key(&f.v, SV_KEY_TAB);
        CHECK(strlen(screen(&f)) > 10);
        finish(&f);
    }
}
