/*
 * Stave: the C SDK. The headers of this directory are the public API of libstave.
 *
 *     STAVE_SCOPE("nn", "attention", "layer", 12, "tokens", n);     a slice until the end of the
 *         block
 *     STAVE_INSTANT("io", "cache miss", "path", path);
 *     STAVE_COUNTER("mem", "allocated", bytes);
 *
 * Set STAVE_OUT=trace.pftrace in the environment to record. While tracing is off, an event costs
 * one load and one branch, and its arguments are not evaluated. All functions may be called from
 * any thread at any time.
 *
 * The version is defined here only: the build, the package and the pkg-config file read it from
 * this file.
 */
#ifndef STAVE_STAVE_H
#define STAVE_STAVE_H

#include <stave/standard.h>

#include <stave/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STAVE_VERSION_MAJOR 0
#define STAVE_VERSION_MINOR 1
#define STAVE_VERSION_PATCH 0

#ifdef __cplusplus
extern "C" {
#endif

/* Returns the version of the loaded library, "MAJOR.MINOR.PATCH". Never NULL; must not be freed. */
STAVE_API const char *stave_version(void);

/* ---- switching on and off ---- */

/* What happens to an event when its thread's ring is full. */
enum stave_full {
    /* The value of the environment variable STAVE_FULL, else DROP. */
    STAVE_FULL_DEFAULT,
    /* The event is not recorded, but counted. */
    STAVE_FULL_DROP,
    /* The thread waits for the writer. */
    STAVE_FULL_BLOCK,
    /* Flight recorder: the event replaces the oldest ones. The rings are written when a trigger
     * fires. */
    STAVE_FULL_OVERWRITE
};

/* A member left 0 means the value of the environment variable, or else the default. */
struct stave_options {
    size_t size; /* sizeof(struct stave_options) */
    /* STAVE_OUT: a file (.pftrace, .json, .json.gz …), unix:PATH or tcp:HOST:PORT. %p, %h, %r
     * and %j are replaced by pid, host name, rank and job. */
    const char *out;
    /* STAVE_CATEGORIES: globs, separated by commas; -GLOB excludes. */
    const char *categories;
    /* STAVE_BUFFER: size of each thread's ring, rounded up to a power of two. */
    size_t buffer_bytes;
    /* STAVE_FULL */
    enum stave_full full;
    /* STAVE_COMPRESS: none, gzip or zstd. */
    const char *compress;

    /* The rest is for the flight recorder (STAVE_FULL_OVERWRITE). */

    /* STAVE_KEEP_MS: older events are not written. 0: everything in the rings is. */
    uint64_t keep_ms;
    /* STAVE_AFTER_MS: how long recording continues after a trigger. */
    uint64_t after_ms;
    /* STAVE_TRIGGER_SIGNAL: number of a signal; 0: none. */
    int trigger_signal;
    /* STAVE_TRIGGER=NAME:MS: a slice with this name that takes longer than this is a trigger. */
    const char *trigger_name;
    uint64_t trigger_ms;

    /* Why recording cannot begin is in `error` only, not on stderr: for callers that show it. */
    bool quiet;

    /* A file that ends in .pftrace: the next part begins after so many bytes (at least 262,144), or
     * after this time (at least a second); 0: never. Each part is a trace of its own, and all of
     * them are one for a command that is given all of them. OUT is the newest one, the earlier ones
     * are OUT-0001, OUT-0002 … */
    uint64_t rotate_bytes;
    int64_t rotate_ns;
    uint64_t rotate_parts; /* the newest so many parts are kept; 0: all */
};

/* These may be repeated. Failures are one line on stderr, too (but see `quiet`). A session started
 * by STAVE_OUT needs none of them. */

/* Starts recording. NULL: the options are those of the environment. */
STAVE_API int stave_start(const struct stave_options *options, struct stave_error *error);
/* Writes everything recorded so far to the file, which is still incomplete. */
STAVE_API int stave_flush(void);
/* Completes the file and gives it its final name. */
STAVE_API int stave_stop(void);
/* For programs that call _exit(): does what happens by itself at a normal exit. */
STAVE_API void stave_finish(void);

/* Returns the directory of this process's session, or "" if there is none. A program that is
 * executed with STAVE_SESSION set to it records into the same output. */
STAVE_API const char *stave_session(void);

/* Flight recorder: writes the contents of the rings to the next numbered file and returns its
 * number. With after_ms it returns at once, and the file is written after that time.
 * STAVE_EUSAGE: no flight recorder runs; STAVE_ELIMIT: too many triggers are waiting. */
STAVE_API int stave_trigger(const char *reason);

/* Selects categories from now on: globs as in STAVE_CATEGORIES. */
STAVE_API void stave_set_categories(const char *globs);
/* Is this category recorded? Lets a program skip expensive preparation. NULL: is anything
 * recorded? */
STAVE_API bool stave_enabled(const char *category);

/* Counts of this session. */
struct stave_counts {
    size_t size;               /* sizeof(struct stave_counts) */
    uint64_t events;           /* handed to the file or stream */
    uint64_t lost_full;        /* the ring was full */
    uint64_t lost_nested;      /* recorded by a signal handler while its thread was recording */
    uint64_t lost_ring;        /* the thread has no ring */
    uint64_t lost_output;      /* the file or stream failed, or the stream stalled */
    uint64_t lost_overwritten; /* flight recorder: overwritten by newer events; not an error */
    /* With rotate_bytes or rotate_ns: parts of this session with the growing one, and how many of
     * them were removed. */
    uint64_t parts, parts_removed;
};
STAVE_API void stave_count(struct stave_counts *counts);

/* ---- tracks ---- */

/* A small number, valid as long as the process runs, and in forked children. */
typedef uint32_t stave_track_t;
#define STAVE_THREAD  ((stave_track_t)0) /* the calling thread's own: the default */
#define STAVE_PROCESS ((stave_track_t)1)
#define STAVE_ROOT    ((stave_track_t)2) /* as a parent: the top level */

/* The first call makes the track, later ones return the same number. Any track may be the parent
 * of others. */
STAVE_API stave_track_t stave_track(stave_track_t parent, const char *name);
STAVE_API stave_track_t stave_counter(stave_track_t parent, const char *name, const char *unit);
/* One row per id. */
STAVE_API stave_track_t stave_async(stave_track_t parent, const char *name, uint64_t id);
/* A track that viewers and the analysis recognise as a device (GPU, the parent of its streams)
 * or as one of its queues (STREAM). */
enum stave_row { STAVE_ROW_PLAIN, STAVE_ROW_GPU, STAVE_ROW_STREAM };
STAVE_API stave_track_t stave_track_as(enum stave_row row, stave_track_t parent, const char *name);
/* The track of any thread, for use as a parent. */
STAVE_API stave_track_t stave_thread_track(int64_t tid);
/* The position among its siblings. */
STAVE_API void stave_set_track_order(stave_track_t track, int64_t order);
/* Names the track of the calling thread. */
STAVE_API void stave_set_thread_name(const char *name);
/* Names the calling process, also in later sessions; otherwise it has the name of its program. */
STAVE_API void stave_set_process_name(const char *name);

/* ---- flows ---- */

/* A flow connects the slice that has its number as STAVE_FLOW_OUT with the one that has it as
 * STAVE_FLOW_IN. Returns a new number, unique across processes. */
STAVE_API uint64_t stave_flow_new(void);
/* Special argument keys: STAVE_SCOPE("c", "n", STAVE_FLOW_IN, a, STAVE_FLOW_OUT, b,
 * STAVE_FLOW_OUT, c); */
#define STAVE_FLOW_OUT    "\001>"
#define STAVE_FLOW_IN     "\001<"
#define STAVE_CORRELATION "\001="

/* ---- time ---- */

/* Returns CLOCK_MONOTONIC in nanoseconds, the time of stave_complete(). */
STAVE_API int64_t stave_now_ns(void);

/* ---- nested arguments: build them, then pass &args as a value ---- */

#define STAVE_ARGS_BYTES 16000
struct stave_args {
    uint32_t len, depth, limit, dropped;
    uint32_t count[32], kept[32];
    uint8_t is_list[32];
    unsigned char bytes[STAVE_ARGS_BYTES];
};
STAVE_API void stave_args_init(struct stave_args *a);
/* Limits the items of each list and dictionary; 256 by default. */
STAVE_API void stave_args_limit(struct stave_args *a, uint32_t items);
/* These add a value. In a list the key is NULL. */
STAVE_API void stave_args_int(struct stave_args *a, const char *key, int64_t v);
STAVE_API void stave_args_uint(struct stave_args *a, const char *key, uint64_t v);
STAVE_API void stave_args_double(struct stave_args *a, const char *key, double v);
STAVE_API void stave_args_bool(struct stave_args *a, const char *key, bool v);
STAVE_API void stave_args_text(struct stave_args *a, const char *key, const char *v);
STAVE_API void stave_args_text_n(struct stave_args *a, const char *key, const char *v, size_t len);
STAVE_API void stave_args_null(struct stave_args *a, const char *key);
STAVE_API void stave_args_pointer(struct stave_args *a, const char *key, const void *v);
STAVE_API void stave_args_flow(struct stave_args *a, const char *direction, uint64_t id);
/* These open a dictionary or a list; stave_args_end() closes it. */
STAVE_API void stave_args_dict(struct stave_args *a, const char *key);
STAVE_API void stave_args_list(struct stave_args *a, const char *key);
/* The key of a list that is the stack of the event: a text for each function, outermost first:
 * "function (file:line)". */
#define STAVE_STACK "\001s"
/* Says that the caller has left out `items` items of the open list or dictionary. */
STAVE_API void stave_args_more(struct stave_args *a, uint32_t items);
STAVE_API void stave_args_end(struct stave_args *a);

/* Returns the text of an enum value: STAVE_INSTANT("c", "n", "mode", stave_enum(mode, names,
 * 3)). */
static inline const char *stave_enum(int64_t v, const char *const *names, size_t n)
{
    return v >= 0 && (uint64_t)v < n && names[v] ? names[v] : "?";
}

/* ---- for bindings ---- */

/* Category, name and keys are known at run time only. The macros of macros.h are several times
 * cheaper. */
enum stave_kind {
    STAVE_KIND_BEGIN = 1,
    STAVE_KIND_END,
    STAVE_KIND_INSTANT,
    STAVE_KIND_COUNTER,
    STAVE_KIND_COMPLETE,
    STAVE_KIND_LOSS /* for call sites only: another component has lost events here */
};
struct stave_event {
    size_t size; /* sizeof(struct stave_event) */
    enum stave_kind kind;
    stave_track_t track;
    const char *category, *name;
    const struct stave_args *args; /* or NULL */
    int64_t start_ns, dur_ns;      /* COMPLETE */
    double value;                  /* COUNTER, on a counter track */
};
/* Records an event. False: tracing is off, or the event was lost and counted; after a begin that
 * returned false there must be no end. An end closes the newest slice that the calling thread
 * has open on the track or, if there is none, the newest of any thread. */
STAVE_API bool stave_emit(const struct stave_event *event);
/* A slice on a track of your own that is ended by its number: by any thread, and in any order.
 * `kind` is ignored; of the end, track and arguments are used. Returns 0 if tracing is off, or
 * if the slice was lost and counted. */
STAVE_API uint64_t stave_slice_begin(const struct stave_event *begin);
STAVE_API void stave_slice_end(uint64_t slice, const struct stave_event *end);

#ifdef __cplusplus
}
#endif

#include <stave/macros.h>

#endif
