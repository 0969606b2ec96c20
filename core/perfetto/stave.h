/* How Stave writes, and reads back, what Perfetto's protobufs have no place for.
 *
 * Private fields have one number in every message; Perfetto's importer skips them. Everything else
 * below is a form that Perfetto reads, too, chosen so that neither reader loses anything:
 *
 *   clock of unknown origin    trace clock SV_PF_CLOCK_TRACE_FILE (Perfetto: "the file's own time
 *                              line")
 *   trace clock that no        the same; ClockSnapshot.991 = the clock, whose readings equal those
 *                              of clock 11. Perfetto relates
 *   snapshot ties to BOOTTIME  every file to BOOTTIME and calls it a loss where it cannot
 *   metadata                   TraceAttributes; Attribute.990 = 1 when the text is JSON
 *   times before zero          Perfetto's are unsigned. A window that has such times is written
 *                              later: TraceAttributes.992 and
 *                              ClockSnapshot.992 = the origin (int64, below 0), and a time is the
 *                              value in the file plus the origin.
 *                              That holds for timestamps of packets, for readings of the primary
 *                              clock, of the clock that it
 *                              represents (991) and of clocks of a sequence, and for start times of
 *                              processes. All windows of a
 *                              finished file have one origin; those of a growing file may differ.
 *                              The attribute
 *                              SV_PF_ORIGIN_KEY explains it to people; its Attribute.990 = 2: no
 *                              metadata of the trace
 *   snapshot's uncertainty     ClockSnapshot.990, nanoseconds; absent: unknown
 *   snapshot's wall clock      ClockSnapshot.993 = enum sv_wall_state, .994 = its greatest error in
 *                              nanoseconds; absent: unknown
 *   argument NULL              an empty DebugAnnotation.proto_value, its type SV_PF_NULL_TYPE;
 *                              Perfetto reads null, too
 *   empty dict, empty array    DebugAnnotation.legacy_json_value "{}", "[]"
 *   flow begin, flow end       legacy_event {bind_id, flow_direction OUT or IN}, no phase; further
 *                              ones of the same event,
 *                              and all SV_ARG_FLOW, in flow_ids and terminating_flow_ids
 *   SV_FLOW point              legacy_event {phase s, t or f, unscoped_id, bind_to_enclosing unless
 *                              SV_BIND_NEXT}
 *                              TracePacketDefaults.990 = 1: flows differ by their numbers only, not
 *                              by name and category
 *   scope of an instant        legacy_event {phase I, instant_event_scope}; that of a process where
 *                              none is known beside
 *                              TYPE_INSTANT, no phase
 *   thread time                extra counter of type THREAD_TIME_NS on begin and end; the
 *                              difference is SV_ARG_THREAD_DUR
 *   SV_LOSS                    an instant in the category SV_PF_LOSS_CATEGORY (further categories
 *                              follow it), its name the
 *                              cause, annotations SV_PF_LOSS_COUNT and SV_PF_LOSS_SPAN; its packet
 *                              has previous_packet_dropped, which is therefore no other loss */
#pragma once

enum {
    SV_PF_STAVE = 990
}; /* the private field of TrackDescriptor, ClockSnapshot, Attribute and TracePacketDefaults */

/* TrackDescriptor.990, a message, present when one of these is: */
enum {
    SV_PF_STAVE_TRACK_KIND = 1,  /* enum sv_track_kind, where the descriptor does not show it */
    SV_PF_STAVE_TRACK_SPACE = 2, /* whose pids these are, when not 0 */
    SV_PF_STAVE_TRACK_PID =
        3, /* int64: the real pid; the descriptor has a substitute that Perfetto can hold */
    SV_PF_STAVE_TRACK_ORDER = 4, /* int64: sibling order that does not fit sibling_order_rank */
    SV_PF_STAVE_TRACK_FLAGS = 5,
    SV_PF_STAVE_TRACK_ORIGIN = 6 /* text: sv_track_info.origin */
};
enum {
    SV_PF_STAVE_MERGE_DEFAULT =
        1, /* sibling_merge is SV_MERGE_DEFAULT, whatever the descriptor has */
    SV_PF_STAVE_COUNTER_INCREMENTAL =
        2 /* sv_track_info.is_incremental; the values are absolute all the same */
};

enum { SV_PF_STAVE_CLOCK = 991 };  /* ClockSnapshot: what the file's own time line really is */
enum { SV_PF_STAVE_ORIGIN = 992 }; /* ClockSnapshot, TraceAttributes: what times count from */
enum { SV_PF_STAVE_WALL = 993, SV_PF_STAVE_WALL_ERROR = 994 }; /* ClockSnapshot */
enum { SV_PF_STAVE_JSON = 1, SV_PF_STAVE_EXPLAINS = 2 };       /* values of Attribute.990 */
#define SV_PF_ORIGIN_KEY "time_origin_ns"
enum { SV_PF_CLOCK_TRACE_FILE = 11 }; /* SV_CLOCK_UNKNOWN in a file */

#define SV_PF_NULL_TYPE     ".perfetto.protos.SourceLocation" /* any message that Perfetto knows */
#define SV_PF_LOSS_CATEGORY "stave.loss"
#define SV_PF_LOSS_COUNT    "count"   /* int: args[0] of the event */
#define SV_PF_LOSS_SPAN     "span_ns" /* int: dur_ns, absent when 0 */

/* synchronization_marker, before every resync point. Nothing after it refers to anything before
 * it. */
#define SV_PF_SYNC_MARKER "\x82\x47\x7a\x76\xb2\x8d\x42\xba\x81\xdc\x33\x32\x6d\x57\xa0\x79"
enum { SV_PF_SYNC_MARKER_SIZE = 16 };
