/* Times of --since and --until: what people write, and what it means. */
#include "files/range.h"

#include "tests/harness/test.h"

#define S   ((int64_t)1000000000)
#define DAY (86400 * S)

TEST(range_sides)
{
    static const struct {
        const char *text;
        enum sv_side_kind kind; /* NONE: refused */
        int64_t ns;
    } rows[] = {
        {"2026-11-19", SV_SIDE_UTC, 20776 * DAY},
        {"2026-11-19T03:40", SV_SIDE_UTC, 20776 * DAY + 13200 * S},
        {"2026-11-19 03:40:12.5", SV_SIDE_UTC, 20776 * DAY + 13212 * S + S / 2},
        {"2026-11-19T03:40:12Z", SV_SIDE_UTC, 20776 * DAY + 13212 * S},
        {"20261119T034012.345Z", SV_SIDE_UTC, 20776 * DAY + 13212 * S + 345000000},
        {"03:40", SV_SIDE_OF_DAY, 13200 * S},
        {"23:59:59.999", SV_SIDE_OF_DAY, DAY - 1000000},
        {"90min", SV_SIDE_OF_START, 5400 * S},
        {"1.5", SV_SIDE_OF_START, S + S / 2},
        {"0s", SV_SIDE_OF_START, 0},
        {"-10min", SV_SIDE_OF_END, 600 * S},
        {"@123ns", SV_SIDE_CLOCK, 123},
        {"@-5s", SV_SIDE_CLOCK, -5 * S},
        {"", SV_SIDE_NONE, 0},
        {"soon", SV_SIDE_NONE, 0},
        {"24:00", SV_SIDE_NONE, 0},
        {"03:4", SV_SIDE_NONE, 0},
        {"03:40x", SV_SIDE_NONE, 0},
        {"2026-13-01", SV_SIDE_NONE, 0},
        {"2026-11-19T", SV_SIDE_NONE, 0},
        {"2026-11-19T25:00", SV_SIDE_NONE, 0},
        {"2026-11-19T03:40 and more", SV_SIDE_NONE, 0},
        {"99999999999999999999s", SV_SIDE_NONE, 0},
        {"20261119T034012.3450000000000000000000000000000000000Z", SV_SIDE_NONE, 0},
    };
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        struct sv_side side;
        struct sv_err err = {0};
        CONTEXT("%s", rows[i].text);
        int code = sv_side_parse("since", rows[i].text, &side, &err);
        CHECK((code >= 0) == (rows[i].kind != SV_SIDE_NONE));
        if (code < 0)
            continue;
        CHECK(side.kind == rows[i].kind);
        CHECK_INT_EQ(side.ns, rows[i].ns);
    }
}

TEST(range_not_given)
{
    struct sv_side side;
    struct sv_err err = {0};
    CHECK(sv_side_parse("until", NULL, &side, &err) == 0 && side.kind == SV_SIDE_NONE);
}

TEST(range_utc_text)
{
    char text[SV_UTC_SIZE];
    CHECK_STR_EQ(sv_utc_text(text, 20776 * DAY + 13212 * S + 999999999), "2026-11-19 03:40:12");
    CHECK_STR_EQ(sv_utc_text(text, -1), "1969-12-31 23:59:59");
    CHECK_STR_EQ(sv_utc_text(text, 0), "1970-01-01 00:00:00");
}
