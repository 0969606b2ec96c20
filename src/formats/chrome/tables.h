/* The Chrome reader's tables: what it may find, and the members of an event. Each is written once,
 * here. */
#pragma once

/* X(name, severity, what): rows of the report. */
#define CHROME_FINDINGS(X)                                                                         \
    /* the input is broken: */                                                                     \
    X(CUT_EVENT, SV_DAMAGE, "event cut short by the end of the input, skipped")                    \
    X(CUT_KEPT, SV_DAMAGE, "event cut short by the end of the input, kept in part")                \
    X(BAD_EVENT, SV_DAMAGE, "damaged event skipped")                                               \
    X(BAD_KEPT, SV_DAMAGE, "damaged event kept in part")                                           \
    X(BIG_EVENT, SV_DAMAGE, "event larger than 64 MiB or never closed")                            \
    X(NOT_EVENT, SV_DAMAGE, "element that is not an event")                                        \
    X(NO_PHASE, SV_DAMAGE, "event without a phase skipped")                                        \
    X(JUNK, SV_DAMAGE, "bytes that belong to no event")                                            \
    X(NUL, SV_DAMAGE, "NUL byte between values")                                                   \
    X(CUT_FILE, SV_DAMAGE, "input ends before the trace does")                                     \
    X(NO_EVENTS, SV_DAMAGE, "no list of events in the input")                                      \
    X(OPEN_ARRAY, SV_DAMAGE, "array without its closing bracket")                                  \
    X(MISSING_COMMA, SV_DAMAGE, "missing comma")                                                   \
    X(EXTRA_COMMA, SV_DAMAGE, "comma too many")                                                    \
    X(CONTROL, SV_DAMAGE, "raw control character in a string")                                     \
    X(BAD_UTF8, SV_DAMAGE, "invalid UTF-8, kept as it is")                                         \
    X(BAD_ESCAPE, SV_DAMAGE, "unknown escape in a string, kept as it is")                          \
    X(SURROGATE, SV_DAMAGE, "half a surrogate pair, replaced by U+FFFD")                           \
    X(QUOTE, SV_DAMAGE, "unescaped quote in a string")                                             \
    X(WORD, SV_DAMAGE, "bare word as a value")                                                     \
    X(NO_VALUE, SV_DAMAGE, "key without a value")                                                  \
    X(NUMBER, SV_DAMAGE, "number not in JSON's form")                                              \
    X(NO_TIME, SV_DAMAGE, "event without a usable time skipped")                                   \
    X(BAD_DUR, SV_DAMAGE, "unusable duration, taken as 0")                                         \
    X(NEGATIVE_DUR, SV_DAMAGE, "negative duration, taken as 0")                                    \
    X(BAD_THREAD_TIME, SV_DAMAGE, "unusable thread time")                                          \
    X(BAD_PID, SV_DAMAGE, "pid or tid that is neither number nor text")                            \
    X(NO_FLOW_ID, SV_DAMAGE, "flow event without a usable id skipped")                             \
    X(NO_ASYNC_ID, SV_DAMAGE, "async or object event without an id")                               \
    X(FLOW_DIRECTION, SV_DAMAGE, "bind_id without flow_in or flow_out")                            \
    X(COUNTER_VALUE, SV_DAMAGE, "counter value that is not a number")                              \
    X(COUNTER_EMPTY, SV_DAMAGE, "counter event without a value")                                   \
    X(BAD_SCOPE, SV_DAMAGE, "instant with an unknown scope, put on its thread")                    \
    X(BAD_METADATA, SV_DAMAGE, "metadata event without a usable value")                            \
    X(BAD_TRACK, SV_DAMAGE, "unusable stave_track description")                                    \
    X(BAD_TOP, SV_DAMAGE, "top-level value that is not valid JSON, kept as text")                  \
    /* worth saying, but nothing was lost: */                                                      \
    X(BOM, SV_NOTE, "byte order mark")                                                             \
    X(LINES, SV_NOTE, "one event a line, without commas")                                          \
    X(EMPTY_EVENT, SV_NOTE, "empty event")                                                         \
    X(DOCUMENTS, SV_NOTE, "another document follows the first")                                    \
    X(DUPLICATE, SV_NOTE, "key given twice, the last one counts")                                  \
    X(ROUNDED, SV_NOTE, "time with a part below a nanosecond, rounded")                            \
    X(BIG_INT, SV_NOTE, "integer past 64 bits, kept as a double")                                  \
    X(NO_DUR, SV_NOTE, "X event without dur, taken as 0")                                          \
    X(NO_PID, SV_NOTE, "event without a pid, put on process 0")                                    \
    X(NO_TID, SV_NOTE, "event without a tid, put on the process's first thread")                   \
    X(PHASE, SV_NOTE, "unknown phase, kept as an instant")                                         \
    X(LONG_PHASE, SV_NOTE, "phase of several letters, the first one counts")                       \
    X(DEEP, SV_NOTE, "value nested too deeply, kept as text")                                      \
    X(LATE_BASE, SV_NOTE, "baseTimeNanoseconds after the events, kept as a clock snapshot")        \
    X(EPOCH, SV_NOTE,                                                                              \
      "Kineto times without baseTimeNanoseconds, taken as microseconds since 1970")                \
    X(NO_FRAME, SV_NOTE, "stack frame that is not described before its event, kept as its number") \
    /* well-formed, but the model cannot represent it: */                                          \
    X(TEXT_CUT, SV_SKIPPED, "text longer than 16 MiB, cut")                                        \
    X(ARGS_CUT, SV_SKIPPED, "arguments past the limit of one event")                               \
    X(TOP_BIG, SV_SKIPPED, "top-level value too large to keep")                                    \
    X(METADATA_MANY, SV_SKIPPED, "metadata event past the limit")                                  \
    X(COUNTER_FIELD, SV_SKIPPED, "field of a counter event other than its values")                 \
    X(META_FIELD, SV_SKIPPED, "field of a metadata event other than its args")

/* X(name, key). From ID on a value is kept as raw JSON until the phase says what it means. */
#define CHROME_FIELDS(X)    \
    X(PH, "ph")             \
    X(NAME, "name")         \
    X(CAT, "cat")           \
    X(PID, "pid")           \
    X(TID, "tid")           \
    X(TS, "ts")             \
    X(DUR, "dur")           \
    X(ARGS, "args")         \
    X(TTS, "tts")           \
    X(TDUR, "tdur")         \
    X(ID, "id")             \
    X(ID2, "id2")           \
    X(SCOPE, "scope")       \
    X(BIND_ID, "bind_id")   \
    X(FLOW_IN, "flow_in")   \
    X(FLOW_OUT, "flow_out") \
    X(BP, "bp")             \
    X(S, "s")               \
    X(SF, "sf")             \
    X(ESF, "esf")           \
    X(STACK, "stack")       \
    X(ESTACK, "estack")

#define CHROME_FINDING_NAME(name, severity, what) FOUND_##name,
#define CHROME_FIELD_NAME(name, key)              FIELD_##name,

enum chrome_finding { CHROME_FINDINGS(CHROME_FINDING_NAME) FOUND_N };
/* FIELD_CLOSE is not a field but the end of them. */
enum chrome_field { FIELD_OTHER, CHROME_FIELDS(CHROME_FIELD_NAME) FIELD_N, FIELD_CLOSE = FIELD_N };
