/* Names that the Chrome reader and the Chrome writer must agree on: how content that Chrome JSON
 * cannot represent is written so that viewers show it and our reader gets it back exactly.
 * Everything rides in places where viewers look for nothing (unknown metadata events would make
 * chrome://tracing complain).
 *
 * THE FILE.
 *     {"displayTimeUnit":"ns","baseTimeNanoseconds":N,"otherData":{"stave":{…},…},
 *      "traceEvents":[…],"stave":{…}}
 * otherData.stave comes before the events and says that the rules below hold. After the events
 * "stave" may come again with what was learnt late. The array form begins with
 * {"ph":"M","name":"stave","args":{the same object}}, which then also holds baseTimeNanoseconds and
 * `meta`, and may end with another one.
 *   stave:
 *   {"version":1,"clock":6,"snapshots":[{"readings":[[6,NS],[1,NS]],"uncertainty_ns":N,"wall":[STATE,ERROR_NS]},…],
 *           "meta":{…}}
 *   `clock` is enum sv_clock, absent: unknown; `uncertainty_ns` absent: unknown; `wall` is enum
 *   sv_wall_state and
 *   the greatest error of the wall clock, absent: unknown; `meta` only in the late one, with full
 *   keys.
 *
 * TRACKS. Every track of another kind than process and thread is a synthetic tid, a group without a
 * process is a synthetic pid; so is a process or thread whose number is taken by another one. A
 * track that pid and tid do not define is described, before its first event and again when it
 * changed, by members of the args of
 *     {"ph":"M","name":"thread_name","pid":P,"tid":T,"args":{"name":"for
 *     viewers","uuid":"0x…","kind":"stream",…}}
 * From then on every event of (P, T), whatever its phase (but b, n, e, see below), is on the track
 * with that uuid; a counter event there has one series. The same members in a process_name event
 * say which track the pid P is (not necessarily a process). thread_sort_index, process_sort_index
 * and process_labels apply to such a track too; where the args of a sort index have `order`, that
 * is the true one.
 *   An absent member has its default: `parent` the track of P (for a pid: none), "0x0" none;
 *   `track_name` is `name`.
 *
 * ASYNC. The id of b, n and e is the uuid of the track in hexadecimal, the category plays no part.
 * Unless described, such a track is a child of the process P and is named after its first event.
 *
 * COUNTERS that are not described: {"NAME":{"value":v}} is the child NAME of the process, and
 * {"NAME":{"a":v,"b":v}} are its children a and b.
 *
 * FLOWS. A flow of a slice, begin, end or instant is in its args, exactly; the s, t and f events of
 * the category SV_CHROME_FLOW_MIRROR say the same for viewers and are skipped by our reader. Those
 * of all other categories are SV_FLOW points; their id is the flow's own number, whatever category
 * and name. */
#pragma once

#define SV_CHROME_STAVE       "stave"
#define SV_CHROME_VERSION     "version"
#define SV_CHROME_CLOCK       "clock"
#define SV_CHROME_SNAPSHOTS   "snapshots"
#define SV_CHROME_READINGS    "readings"
#define SV_CHROME_UNCERTAINTY "uncertainty_ns"
#define SV_CHROME_WALL        "wall"
#define SV_CHROME_LATE_META   "meta"
#define SV_CHROME_BASE        "baseTimeNanoseconds" /* Kineto's key; the real time that ts counts from */

/* Dictionary metadata "chrome.KEY" is the top-level key KEY of the object form
 * ("chrome.displayTimeUnit", "chrome.otherData"), a plain string or JSON text; other metadata is a
 * member of otherData. */
#define SV_CHROME_META "chrome."

/* Members of the args of thread_name and process_name; uuid is always there, any other may be
 * absent. */
#define SV_CHROME_TRACK_UUID        "uuid" /* "0x…" */
#define SV_CHROME_TRACK_PARENT      "parent"
#define SV_CHROME_TRACK_KIND        "kind" /* sv_track_kind_name(); absent: process or thread */
#define SV_CHROME_TRACK_NAME        "track_name" /* "" where there is none */
#define SV_CHROME_TRACK_PID         "pid"        /* the true numbers, where P and T are synthetic */
#define SV_CHROME_TRACK_TID         "tid"
#define SV_CHROME_TRACK_SPACE       "space"
#define SV_CHROME_TRACK_ORDER       "order"         /* where there is no sort index event */
#define SV_CHROME_TRACK_CHILD_ORDER "child_order"   /* enum sv_child_order */
#define SV_CHROME_TRACK_MERGE       "sibling_merge" /* enum sv_sibling_merge */
#define SV_CHROME_TRACK_MERGE_KEY   "merge_key"
#define SV_CHROME_TRACK_UNIT        "unit"
#define SV_CHROME_TRACK_MULTIPLIER  "multiplier"
#define SV_CHROME_TRACK_INCREMENTAL "incremental" /* true */
#define SV_CHROME_TRACK_START       "start_ns"
#define SV_CHROME_TRACK_DESC        "desc" /* where there is no process_labels event */
#define SV_CHROME_TRACK_CATEGORY    "cat"
#define SV_CHROME_TRACK_ORIGIN      "origin" /* sv_track_info.origin */

/* Arguments for what Chrome's own fields cannot say (thread times are tts and tdur, stacks are
 * `stack`). */
#define SV_CHROME_PHASE "ph" /* the phase of an event that became an instant */
#define SV_CHROME_CORRELATION \
    "correlation"                       /* number(s) of SV_ARG_CORRELATION, as in Kineto's files */
#define SV_CHROME_SOURCE "stave.source" /* {"file":…,"function":…,"line":…} */
#define SV_CHROME_FLOW   "stave.flow" /* ["0x1","begin 0x2","end 0x3"]: the flow arguments in order */

#define SV_CHROME_FLOW_MIRROR "stave.flow"

/* SV_LOSS is an instant in this category (the event's own, if any, follows after ','), its name the
 * cause. */
#define SV_CHROME_LOSS       "stave.loss"
#define SV_CHROME_LOSS_COUNT "count"   /* args[0] of the event */
#define SV_CHROME_LOSS_SPAN  "span_ns" /* dur_ns, absent when 0 */
