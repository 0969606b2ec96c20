/* Dates, times of day and zones: what people write and what it means. */
#include "formats/civil.h"

#include "tests/harness/test.h"

#include <string.h>

TEST(dates)
{
    static const struct {
        const char *text;
        int64_t year; /* 0: refused */
        unsigned month, day;
    } rows[] = {
        {"1970-01-01", 1970, 1, 1},   {"2024-02-29", 2024, 2, 29},
        {"20230211", 2023, 2, 11},    {"11/15/2026", 2026, 11, 15},
        {"11/15/26", 2026, 11, 15},   {"07/20/99", 1999, 7, 20},
        {"31/12/2022", 2022, 12, 31}, {"15.11.2026", 2026, 11, 15},
        {"2026-13-01", 0, 0, 0},      {"2026-00-01", 0, 0, 0},
        {"2026-01-32", 0, 0, 0},      {"20231312", 0, 0, 0},
        {"2026-01", 0, 0, 0},         {"", 0, 0, 0},
        {"1/2/3/4", 0, 0, 0},         {"2026-01/01", 0, 0, 0},
        {"yesterday", 0, 0, 0},       {"99999-1-1", 0, 0, 0},
    };
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        int64_t days, year;
        unsigned month, day;
        CONTEXT("%s", rows[i].text);
        bool is_date = sv_civil_parse_date(rows[i].text, strlen(rows[i].text), &days);
        if (!CHECK(is_date == (rows[i].year != 0)) || !is_date)
            continue;
        sv_civil_date(days, &year, &month, &day);
        CHECK_INT_EQ(year, rows[i].year);
        CHECK_INT_EQ(month, rows[i].month);
        CHECK_INT_EQ(day, rows[i].day);
    }
}

TEST(days_count_both_ways)
{
    int64_t year;
    unsigned month, day;
    CHECK_INT_EQ(sv_civil_days(2000, 3, 1), 11017);
    for (int64_t days = -1000; days < 90000; days += 37) {
        sv_civil_date(days, &year, &month, &day);
        CHECK_INT_EQ(sv_civil_days(year, month, day), days);
    }
}

TEST(clocks)
{
    static const struct {
        const char *text;
        size_t used;
        int64_t ns;
    } rows[] = {
        {"00:00:00", 8, 0},
        {"23:59:59.999999999", 18, 86400 * SV_S_NS - 1},
        {"9:05:07", 7, 32707 * SV_S_NS},
        {"12:00:00,5", 10, 43200 * SV_S_NS + 500000000},
        {"12:00:00.", 8, 43200 * SV_S_NS},
        {"24:00:00", 0, 0},
        {"12:00:005", 0, 0},
        {"12:00:18446744073709551615", 0, 0},
        {"12:60:00", 0, 0},
        {"12:5:00", 0, 0},
        {"12:05", 0, 0},
        {"", 0, 0},
    };
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        int64_t ns = 0;
        CONTEXT("%s", rows[i].text);
        CHECK_UINT_EQ(sv_civil_parse_clock(rows[i].text, strlen(rows[i].text), &ns), rows[i].used);
        CHECK_INT_EQ(rows[i].used ? ns : 0, rows[i].ns);
    }
}

/* The hour that goes wrong most often: 12 AM is the first of the day, 12 PM the thirteenth. */
TEST(twelve_hour_clock)
{
    static const struct {
        int hour;
        bool is_pm;
        int of_day; /* -1: there is no such hour */
    } rows[] = {{12, false, 0}, {12, true, 12}, {1, false, 1}, {1, true, 13},
                {11, true, 23}, {0, false, -1}, {13, true, -1}};
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        int64_t ns = (rows[i].hour * 3600 + 35 * 60 + 54) * SV_S_NS;
        CONTEXT("%d %s", rows[i].hour, rows[i].is_pm ? "PM" : "AM");
        bool is_hour = sv_civil_half_day(rows[i].is_pm, &ns);
        CHECK(is_hour == (rows[i].of_day >= 0));
        if (is_hour)
            CHECK_INT_EQ(ns / SV_S_NS, rows[i].of_day * 3600 + 35 * 60 + 54);
    }
}

TEST(fixed_zones)
{
    static const struct {
        const char *name;
        int64_t utc; /* of the local second 0; INT64_MIN: refused */
    } rows[] = {
        {"UTC", 0},
        {"Z", 0},
        {"+01:00", -3600},
        {"-0500", 18000},
        {"-05", 18000},
        {"+05:30", -19800},
        {"+5", INT64_MIN},
        {"+1:00", INT64_MIN},
        {"+99:00", INT64_MIN},
        {"", INT64_MIN},
        {"../etc/passwd", INT64_MIN},
        {"/etc/localtime", INT64_MIN},
        {"+01:", INT64_MIN},
        {"Mars/Olympus", INT64_MIN},
    };
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        struct sv_zone *z;
        struct sv_err err = {0};
        CONTEXT("%s", rows[i].name);
        int code = sv_zone_open(rows[i].name, &z, &err);
        CHECK((code == 0) == (rows[i].utc != INT64_MIN));
        if (code == 0)
            CHECK_INT_EQ(sv_zone_utc(z, 0, INT64_MIN), rows[i].utc);
        sv_zone_free(z);
    }
}

static size_t put(uint8_t *p, size_t at, uint64_t v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        p[at + i] = (uint8_t)(n - 1 - i < 8 ? v >> 8 * (n - 1 - i) : 0);
    return at + n;
}

/* A zone file: an hour east, two hours from second 1000 on, one again from 100000 on. */
static size_t zone_file(uint8_t *p)
{
    size_t at = 0;
    for (int part = 0; part < 2; part++) {
        size_t n = part ? 2 : 0;
        memcpy(p + at, "TZif2", 5);
        memset(p + at + 5, 0, 15);
        at = put(p, at + 20, 0, 12);
        at = put(p, at, n, 4);
        at = put(p, at, part ? 2 : 1, 4);
        at = put(p, at, 4, 4);
        if (part) {
            at = put(p, at, 1000, 8);
            at = put(p, at, 100000, 8);
            at = put(p, at, 1, 1);
            at = put(p, at, 0, 1);
        }
        for (size_t type = 0; type < (part ? 2u : 1u); type++)
            at = put(p, put(p, at, type ? 7200 : 3600, 4), 0, 2);
        at = put(p, at, 0, 4);
    }
    return at;
}

TEST(summer_time)
{
    uint8_t bytes[512];
    struct sv_zone *z;
    struct sv_err err = {0};
    size_t len = zone_file(bytes);
    REQUIRE(sv_zone_open_bytes(bytes, len, &z, &err) == 0);
    CHECK_INT_EQ(sv_zone_utc(z, 0, INT64_MIN), -3600);
    CHECK_INT_EQ(sv_zone_utc(z, 4599, INT64_MIN), 999);
    CHECK_INT_EQ(sv_zone_utc(z, 8200, INT64_MIN), 1000);    /* the jump leaves 4600 … 8199 out */
    CHECK_INT_EQ(sv_zone_utc(z, 5000, INT64_MIN), 1400);    /* … they count on */
    CHECK_INT_EQ(sv_zone_utc(z, 104000, INT64_MIN), 96800); /* occurs twice: the first time */
    CHECK_INT_EQ(sv_zone_utc(z, 104000, 99000), 100400);    /* … and the second */
    CHECK_INT_EQ(sv_zone_utc(z, 200000, INT64_MIN), 196400);
    sv_zone_free(z);
    for (size_t cut = 0; cut < len; cut++)
        CHECK(sv_zone_open_bytes(bytes, cut, &z, &(struct sv_err){0}) == SV_EFORMAT);
}
