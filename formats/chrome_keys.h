/* Names that the Chrome reader and the Chrome writer must agree on.
 *
 * Chrome JSON knows processes, threads, counters and async ids; every other track is written as a synthetic tid of its
 * process, described once, before its first event, by a metadata event:
 *
 *     {"ph":"M","name":"stave_track","pid":P,"tid":T,"args":{"uuid":"0x…","parent":"0x…","kind":"custom",
 *      "name":"…","order":5,"unit":"bytes","desc":"…"}}
 *
 * From then on every event of (P, T), whatever its phase, is on the track with that uuid; a counter event there has one
 * series. All members but `uuid` may be absent: without `parent` the parent is process P, "0x0" is the top level. The
 * reader believes uuids and flow ids literally only in a file whose otherData, before traceEvents, has SV_CHROME_STAVE. */
#ifndef SV_FORMATS_CHROME_KEYS_H
#define SV_FORMATS_CHROME_KEYS_H

/* otherData.stave: the version of Stave that wrote the file, a string. In such a file the id of a flow event is the flow's
 * own number ("0x…"), not to be hashed with category and name. */
#define SV_CHROME_STAVE "stave"

/* Dictionary metadata "chrome.KEY" is the top-level key KEY of the object form ("chrome.displayTimeUnit",
 * "chrome.otherData"), a plain string or JSON text; other metadata is a member of otherData. */
#define SV_CHROME_META "chrome."

#define SV_CHROME_TRACK          "stave_track"
#define SV_CHROME_TRACK_UUID     "uuid"
#define SV_CHROME_TRACK_PARENT   "parent"
#define SV_CHROME_TRACK_KIND     "kind" /* sv_track_kind_name() */
#define SV_CHROME_TRACK_NAME     "name"
#define SV_CHROME_TRACK_ORDER    "order"
#define SV_CHROME_TRACK_UNIT     "unit"
#define SV_CHROME_TRACK_DESC     "desc"
#define SV_CHROME_TRACK_CATEGORY "cat"

/* Arguments for what Chrome's own fields cannot say: the phase of an event that became an instant. */
#define SV_CHROME_PHASE "ph"

#endif
