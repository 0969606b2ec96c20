/* Texts, axes, colours and the SVG painter: the base of all plots. */
#include "plot/axis.h"
#include "plot/cairo_paint.h"
#include "plot/colors.h"
#include "plot/frame.h"
#include "plot/picture.h"
#include "plot/svg.h"
#include "tests/harness/test.h"

#include <string.h>

TEST(texts_are_cut_between_characters)
{
    static const struct {
        const char *text;
        double max_width;
        size_t fits;
        bool cut;
    } rows[] = {{"abc", 100, 3, false},
                {"abcdefghij", 40, 5, true},
                {"\xc3\xa4\xc3\xb6\xc3\xbc\xc3\xa4\xc3\xb6\xc3\xbc", 40, 8, true},
                {"abcdef", 5, 0, true},
                {"", 10, 0, false}};
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        bool cut;
        CONTEXT("row %zu", i);
        CHECK_UINT_EQ(sv_text_fit(rows[i].text, strlen(rows[i].text), 10, rows[i].max_width, &cut),
                      rows[i].fits);
        CHECK(cut == rows[i].cut);
    }
}

TEST(what_cannot_be_shown_is_replaced)
{
    struct sv_buf b;
    sv_buf_init(&b, 1000);
    sv_text_clean(&b, "a\x1b[1m\xff\xc3\xa4\x7f", 9);
    CHECK_STR_EQ(sv_buf_cstr(&b), "a\xef\xbf\xbd[1m\xef\xbf\xbd\xc3\xa4\xef\xbf\xbd");
    sv_buf_fini(&b);
}

TEST(characters_take_their_columns)
{
    CHECK_UINT_EQ(sv_char_columns('a'), 1);
    CHECK_UINT_EQ(sv_char_columns(0xe4), 1);
    CHECK_UINT_EQ(sv_char_columns(0x4e16), 2);
    CHECK_UINT_EQ(sv_char_columns(0x301), 0);
    CHECK_UINT_EQ(sv_char_columns(0x1f600), 2);
}

TEST(axes_have_round_steps_and_one_unit)
{
    static const struct {
        double from, to, n, step, value;
        enum sv_axis_unit unit;
        const char *text;
    } rows[] = {
        {0, 1e9, 10, 1e8, 5e8, SV_AXIS_TIME, "0.5 s"},
        {0, 78e6, 8, 1e7, 2e7, SV_AXIS_TIME, "20 ms"},
        {1.2e9, 1.21e9, 10, 1e6, 1.205e9, SV_AXIS_TIME, "1.205 s"},
        {0, 3, 10, 1, 2, SV_AXIS_TIME, "2 ns"},
        {0, 7, 20, 1, 3, SV_AXIS_WHOLE, "3"},
        {0, 0.5, 5, 0.1, 0.3, SV_AXIS_COUNT, "0.3"},
        {0, 4e5, 4, 1e5, 2e5, SV_AXIS_COUNT, "200 k"},
        {0, 8388608, 4, 2097152, 4194304, SV_AXIS_BYTES, "4 MiB"},
        {1700000000e9, 1700000010e9, 10, 1e9, 1700000003e9, SV_AXIS_WALL, "22:13:23"},
        {1700000000e9, 1700000000.01e9, 10, 1e6, 1700000000.003e9, SV_AXIS_WALL, "22:13:20.003"},
    };
    struct sv_buf b;
    sv_buf_init(&b, 1000);
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        struct sv_axis a = {.from = rows[i].from, .to = rows[i].to, .unit = rows[i].unit};
        CONTEXT("row %zu", i);
        double step = sv_axis_step(&a, rows[i].n);
        CHECK(step > rows[i].step * 0.999 && step < rows[i].step * 1.001);
        sv_buf_clear(&b);
        sv_axis_format(&b, &a, rows[i].value, step);
        CHECK_STR_EQ(sv_buf_cstr(&b), rows[i].text);
    }
    sv_buf_fini(&b);
}

TEST(axes_survive_odd_numbers)
{
    static const double odd[] = {0, -0.0, 1e300, -1e300, 1e-300, 1.0 / 0.0, 0.0 / 0.0};
    struct sv_picture p;
    for (size_t i = 0; i < TEST_COUNT(odd); i++)
        for (size_t j = 0; j < TEST_COUNT(odd); j++)
            for (int unit = SV_AXIS_TIME; unit <= SV_AXIS_BYTES; unit++) {
                struct sv_axis a = {.from = odd[i],
                                    .to = odd[j],
                                    .at0 = 0,
                                    .at1 = 500,
                                    .unit = (enum sv_axis_unit)unit};
                sv_picture_init(&p, 600);
                sv_axis_draw_x(&p, &a, 0, 10, false, 0);
                sv_axis_draw_y(&p, &a, 0, 10);
                CHECK(p.n < 1000);
                sv_picture_fini(&p);
            }
}

TEST(colours_mix_and_stay_readable)
{
    CHECK_UINT_EQ(sv_color_mix(0x000000, 0xffffff, 0.5), 0x808080);
    CHECK_UINT_EQ(sv_color_diverging(1), 0xd55e00);
    CHECK_UINT_EQ(sv_color_diverging(-1), 0x0072b2);
    CHECK_UINT_EQ(sv_color_ink_on(0xf0e442), 0x000000);
    CHECK_UINT_EQ(sv_color_ink_on(0x0072b2), 0xffffff);
}

TEST(svg_escapes_groups_and_rounds)
{
    struct sv_picture p;
    struct sv_buf b;
    sv_buf_init(&b, 1u << 20);
    sv_picture_init(&p, 100);
    p.height = 50;
    sv_picture_box(&p, 1.005, 2, 30.12345, 1e30, 0x112233);
    p.marks[0].title = sv_picture_printf(&p, "<a> & \"b\"\nsecond \x01");
    sv_svg_paint(&b, &p);
    const char *text = sv_buf_cstr(&b);
    CHECK(
        strstr(text, "<g><title>&lt;a&gt; &amp; &quot;b&quot;\nsecond \xef\xbf\xbd</title><rect "));
    CHECK(strstr(text, "width=\"30.12\" height=\"0\" fill=\"#112233\"/></g>"));
    CHECK(!strstr(text, "<script"));
    sv_picture_fini(&p);
    sv_buf_fini(&b);
}

TEST(marks_can_be_moved_to_the_back)
{
    struct sv_picture p;
    sv_picture_init(&p, 100);
    for (unsigned i = 0; i < 5; i++)
        sv_picture_box(&p, i, 0, 1, 1, i);
    sv_picture_move(&p, 3, 1);
    static const uint32_t expected[] = {0, 3, 4, 1, 2};
    for (size_t i = 0; i < 5; i++)
        CHECK_UINT_EQ(p.marks[i].color, expected[i]);
    sv_picture_fini(&p);
}

TEST(cairo_paints_or_says_that_it_is_absent)
{
    struct sv_picture p;
    struct sv_buf b;
    struct sv_err err = {0};
    sv_buf_init(&b, 1u << 24);
    sv_picture_init(&p, 200);
    p.height = 100;
    sv_picture_label(&p, 10, 20, 12, SV_ANCHOR_START, SV_MARK_BOLD, 0, 50,
                     sv_picture_printf(&p, "a long text with \xe4\xb8\x96 and \xff"));
    int code = sv_cairo_paint(&b, &p, SV_FORM_PNG, 2, &err);
    struct sv_err why = {0};
    if (sv_cairo_load(&why) >= 0) {
        CHECK_INT_EQ(code, 0);
        CHECK(b.len > 100 && memcmp(b.data, "\x89PNG\r\n\x1a\n", 8) == 0);
        CHECK_UINT_EQ(b.data[18] << 8 | b.data[19], 400);
        sv_buf_clear(&b);
        CHECK_INT_EQ(sv_cairo_paint(&b, &p, SV_FORM_PDF, 1, &err), 0);
        CHECK(memcmp(b.data, "%PDF-", 5) == 0);
        p.height = 1e6;
        CHECK_INT_EQ(sv_cairo_paint(&b, &p, SV_FORM_PNG, 1, &err), SV_ELIMIT);
    } else {
        CHECK_INT_EQ(code, SV_EUSAGE);
        CHECK_STR_EQ(err.msg, why.msg);
    }
    sv_picture_fini(&p);
    sv_buf_fini(&b);
}
