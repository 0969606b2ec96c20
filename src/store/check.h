/* The check: a sink that looks for what is wrong with a trace, rule by rule, while it streams by.
 *
 *     struct sv_check check;
 *     sv_pump(source, sv_check_new(dict, source->gives, 256 << 20, &check), NULL, err);
 *     for (unsigned r = 0; r < SV_CHECK_RULES; r++)
 *         if (check.rows[r].count) … sv_check_rules[r].name, sv_check_rules[r].text …
 *
 * It takes every shape: order is looked at as events come, everything else after a sort in bounded
 * memory. Memory is bounded throughout; where a bound is reached the rest is not looked at, and a
 * row says so. */
#pragma once

#include "core/stream/stream.h"

#define SV_CHECK_OPEN_MAX  (1u << 20) /* slices open at the same time, all tracks together */
#define SV_CHECK_FLOWS_MAX (1u << 19) /* flow numbers that are remembered */
#define SV_CHECK_DEPTH_MAX 512u       /* deeper slices are dropped by Perfetto */

enum sv_check_severity {
    SV_CHECK_NOTE,    /* worth knowing */
    SV_CHECK_WARNING, /* some program will show or count it wrongly */
    SV_CHECK_ERROR    /* the trace contradicts itself */
};

/* name, severity, what it means */
#define SV_CHECK_LIST(RULE)                                                                       \
    RULE(END_WITHOUT_BEGIN, "end-without-begin", ERROR, "an end with nothing open on its track")  \
    RULE(BEGIN_WITHOUT_END, "begin-without-end", WARNING, "a begin that is never ended")          \
    RULE(UNFINISHED_SLICE, "unfinished-slice", WARNING, "a slice that is given as never ended")   \
    RULE(OVERLAP, "overlap", WARNING, "slices of one track that overlap without nesting")         \
    RULE(NEAR_OVERLAP, "near-overlap", NOTE,                                                      \
         "slices of one track that miss nesting by one unit of time, as rounding does")           \
    RULE(NEGATIVE_DURATION, "negative-duration", ERROR, "a slice that ends before it begins")     \
    RULE(ENDLESS_DURATION, "endless-duration", ERROR,                                             \
         "a slice of 2^63 ns (292 years) or more: no duration can say it, and most commands "     \
         "refuse the trace")                                                                      \
    RULE(DEEP_NESTING, "deep-nesting", WARNING,                                                   \
         "a slice below 512 others on its track: Perfetto drops it")                              \
    RULE(EDGE_ORDER, "edge-order", WARNING,                                                       \
         "a begin or end earlier than the one before it on its track")                            \
    RULE(SLICE_ORDER, "slice-order", NOTE,                                                        \
         "a slice that begins before the one before it on its track")                             \
    RULE(FILE_ORDER, "file-order", NOTE,                                                          \
         "an event that comes after a later one of its track, where every reader sorts: "         \
         "an instant, or in a Perfetto file a begin or end")                                      \
    RULE(COUNTER_ORDER, "counter-order", NOTE,                                                    \
         "a counter value earlier than the one before it, in a format whose readers do not sort") \
    RULE(FLOW_END_WITHOUT_BEGIN, "flow-end-without-begin", ERROR,                                 \
         "a flow that ends and never began")                                                      \
    RULE(FLOW_WITHOUT_END, "flow-without-end", WARNING,                                           \
         "a flow that begins and reaches no other event")                                         \
    RULE(FLOW_BEGUN_TWICE, "flow-begun-twice", WARNING,                                           \
         "a flow that begins again before it ended")                                              \
    RULE(FLOW_OUTSIDE, "flow-outside", ERROR, "a flow point with no slice around it")             \
    RULE(COUNTER_TRACK, "counter-track", WARNING,                                                 \
         "a counter value on a track that is not a counter")                                      \
    RULE(COUNTER_VALUE, "counter-value", ERROR, "a counter event without a number")               \
    RULE(SLICE_ON_COUNTER, "slice-on-counter", NOTE, "a slice or instant on a counter's track")   \
    RULE(NO_NAME, "no-name", NOTE, "a slice or instant without a name")                           \
    RULE(NO_TRACK, "no-track", WARNING, "an event without a track")                               \
    RULE(UNDESCRIBED_TRACK, "undescribed-track", NOTE,                                            \
         "a track with events but without description")                                           \
    RULE(UNKNOWN_PARENT, "unknown-parent", ERROR, "a track below one that was never described")   \
    RULE(PARENT_CYCLE, "parent-cycle", ERROR, "a track that is below itself")                     \
    RULE(LOSS, "loss", WARNING, "events that were lost, as the trace itself says")                \
    RULE(UNCHECKED, "unchecked", NOTE,                                                            \
         "events past a memory bound of the check: not all rules saw them")

enum sv_check_rule {
#define RULE(id, name, severity, text) SV_CHECK_##id,
    SV_CHECK_LIST(RULE)
#undef RULE
        SV_CHECK_RULES
};

struct sv_check_rule_info {
    const char *name; /* "end-without-begin": for --json, and to name it on a command line */
    enum sv_check_severity severity;
    const char *text; /* what one such finding is */
};
extern const struct sv_check_rule_info sv_check_rules[SV_CHECK_RULES];

struct sv_check_row {
    uint64_t count;   /* LOSS: what the trace says was lost, where it says so */
    int64_t first_ns; /* of the first one (by time; rules of order: as it came) */
    sv_track track;   /* 0: none */
    sv_str name;      /* of the event, 0: none */
    sv_str other;     /* of the slice it collides with, 0: none */
};

struct sv_check {
    /* set between sv_check_new() and the first event: edges and counters in disorder do no harm */
    bool readers_sort;
    struct sv_check_row rows[SV_CHECK_RULES];
    uint64_t events;
    int64_t unit_ns; /* all times are multiples of it: 1000 in many JSON files, else 1 */
};

/* `gives` is the shape of the source: without disorder nothing is sorted. *check is filled when the
 * sink is closed. */
struct sv_sink *sv_check_new(struct sv_dict *dict, unsigned gives, size_t sort_memory_bytes,
                             struct sv_check *check);

/* The worst severity that was found, -1 when nothing was. */
int sv_check_worst(const struct sv_check *check);
/* "note", "warning", "error" */
const char *sv_check_severity_name(enum sv_check_severity severity);
