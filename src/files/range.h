/* --since, --until and --recording: which part of a recording is meant, by time.
 *
 * A side is a time of the wall clock in UTC, a time of the trace's clock (@…), or counts from the
 * start of the recording or, with a minus, from its end. */
#pragma once

#include "cli/command.h"

/* As the user gave them; NULL: not given. */
struct sv_range {
    const char *since, *until, *recording;
};

enum sv_side_kind {
    SV_SIDE_NONE,
    SV_SIDE_OF_START, /* ns after the start of the recording */
    SV_SIDE_OF_END,   /* ns before its end */
    SV_SIDE_CLOCK,    /* ns of the trace's clock */
    SV_SIDE_UTC,      /* ns since 1970 */
    /* ns since midnight, UTC, of the day of its end; --since of the day before where it would be
     * after the end */
    SV_SIDE_OF_DAY
};

struct sv_side {
    enum sv_side_kind kind;
    int64_t ns;
};

/* `text` NULL: SV_SIDE_NONE. SV_EUSAGE names the option. */
int sv_side_parse(const char *option, const char *text, struct sv_side *side, struct sv_err *err);

/* "2026-11-19 03:40:12", for messages. */
#define SV_UTC_SIZE 32
const char *sv_utc_text(char to[static SV_UTC_SIZE], int64_t utc_ns);

#define SV_RANGE_OPTIONS(type)                                                                    \
    {0,                                                                                           \
     "since",                                                                                     \
     "TIME",                                                                                      \
     SV_OPT_TEXT,                                                                                 \
     offsetof(type, range.since),                                                                 \
     "only what happened from then on: 2026-11-19T03:40 or 03:40 (UTC), 90min after the start, "  \
     "-10min before the end; of a folder only the parts that this needs are read",                \
     NULL,                                                                                        \
     "Folders and ranges"},                                                                       \
        {0,                                                                                       \
         "until",                                                                                 \
         "TIME",                                                                                  \
         SV_OPT_TEXT,                                                                             \
         offsetof(type, range.until),                                                             \
         "only what happened before that time",                                                   \
         NULL,                                                                                    \
         "Folders and ranges"},                                                                   \
    {                                                                                             \
        0, "recording", "NAME", SV_OPT_TEXT, offsetof(type, range.recording),                     \
            "of a folder with several recordings: this one, as the message that asks lists them", \
            NULL, "Folders and ranges"                                                            \
    }
