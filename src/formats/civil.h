/* Civil time: dates, times of day and time zones, for the readers of files that write the time as
 * people do.
 *
 * Nothing here asks the machine for its own zone or locale: what a file means must not depend on
 * where it is read. */
#pragma once

#include "core/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SV_DAY_S ((int64_t)86400)
#define SV_S_NS  ((int64_t)1000000000)

/* Days since 1970-01-01 (proleptic Gregorian), and back. */
int64_t sv_civil_days(int64_t year, unsigned month, unsigned day);
void sv_civil_date(int64_t days, int64_t *year, unsigned *month, unsigned *day);

/* YYYY-MM-DD, YYYYMMDD, MM/DD/YYYY, MM/DD/YY (DD/MM when the first cannot be a month), DD.MM.YYYY.
 * The whole text. */
bool sv_civil_parse_date(const char *p, size_t len, int64_t *days);

/* HH:MM:SS with up to nine decimals after '.' or ','; the bytes used, 0: there is none. */
size_t sv_civil_parse_clock(const char *p, size_t len, int64_t *ns_of_day);
/* The hour of a 12-hour clock: 12 AM is midnight, 12 PM is noon. False when the hour is not 1 …
 * 12. */
bool sv_civil_half_day(bool is_pm, int64_t *ns_of_day);

/* A time zone: UTC, Z, ±HH:MM, ±HHMM, ±HH, or a name of the zone database (Europe/Berlin). */
struct sv_zone;
int sv_zone_open(const char *name, struct sv_zone **out, struct sv_err *err);
/* From the bytes of a file of that database (TZif). */
int sv_zone_open_bytes(const uint8_t *p, size_t len, struct sv_zone **out, struct sv_err *err);
void sv_zone_free(struct sv_zone *z);

/* The UTC second of a local one. In the hour that occurs twice, the first one that is not before
 * `not_before`; what the jump in spring leaves out counts on from before it. */
int64_t sv_zone_utc(const struct sv_zone *z, int64_t local_s, int64_t not_before);
