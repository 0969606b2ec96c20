/*
 * Stave: the C SDK. This folder is all that a user of libstave may include.
 *
 *     STAVE_SCOPE("nn", "attention", "layer", 12, "tokens", n);     a slice until the end of the block
 *     STAVE_INSTANT("io", "cache miss", "path", path);
 *     STAVE_COUNTER("mem", "allocated", bytes);
 *
 * and STAVE_OUT=trace.pftrace in the environment. Until it is switched on an event costs one load and one branch, and its
 * arguments are not evaluated. Everything here may be called from any thread at any time.
 *
 * The version below is the only place where it is written: the build, the package and the
 * pkg-config file read it from here.
 */
#ifndef STAVE_STAVE_H
#define STAVE_STAVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STAVE_VERSION_MAJOR 0
#define STAVE_VERSION_MINOR 1
#define STAVE_VERSION_PATCH 0

/* What the library exports; everything else in it is hidden. */
#define STAVE_API __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

/* Version of the library that was loaded, "MAJOR.MINOR.PATCH". Never NULL, never freed. */
STAVE_API const char *stave_version(void);

/* ---- switching on and off ---- */

enum stave_full {
    STAVE_FULL_DEFAULT,  /* drop, or what STAVE_FULL says */
    STAVE_FULL_DROP,     /* the event is not recorded, and counted */
    STAVE_FULL_BLOCK,    /* the thread waits for the writer */
    STAVE_FULL_OVERWRITE /* flight recorder: the newest events stay, written when a trigger fires */
};

/* Every member left 0 means the default, or what the environment says. */
struct stave_options {
    size_t size; /* sizeof(struct stave_options) */
    /* STAVE_OUT: .pftrace, .json, .json.gz …; unix:PATH, tcp:HOST:PORT; %p %h %r %j */
    const char *out;
    const char *categories; /* STAVE_CATEGORIES: globs, comma separated; -GLOB excludes */
    size_t buffer_bytes;    /* STAVE_BUFFER: ring of each thread, rounded up to a power of two */
    enum stave_full full;   /* STAVE_FULL */
    const char *compress;   /* STAVE_COMPRESS: none, gzip, zstd */
    /* Flight recorder (STAVE_FULL_OVERWRITE): */
    /* STAVE_KEEP_MS: what is older than this is not written; 0: all the rings hold */
    uint64_t keep_ms;
    uint64_t after_ms;        /* STAVE_AFTER_MS: how long recording goes on after a trigger */
    int trigger_signal;       /* STAVE_TRIGGER_SIGNAL: a number; 0 none */
    const char *trigger_name; /* STAVE_TRIGGER=NAME:MS, a slice of this name … */
    uint64_t trigger_ms;      /* … longer than this */
};

/* All idempotent. 0, or a negative number after one line on stderr. A session started by STAVE_OUT needs none of them. */
STAVE_API int stave_start(const struct stave_options *options); /* NULL: by the environment */
STAVE_API int stave_flush(void); /* everything recorded so far is in the (growing) file */
STAVE_API int stave_stop(void);  /* the file is complete and has its name */
/* before _exit(): what a normal end of the program does by itself */
STAVE_API void stave_finish(void);

/* Where this process's session lives, "" without one: with STAVE_SESSION set to it, a program that is executed traces into the same output. */
STAVE_API const char *stave_session(void);

/* Flight recorder: writes what the rings hold to the next numbered file and returns its number, or a negative number: no flight recorder
 * runs, or too many triggers wait. With after_ms it returns at once, and the file comes that much later. */
STAVE_API int stave_trigger(const char *reason);

/* Globs as in STAVE_CATEGORIES, from now on. */
STAVE_API void stave_categories(const char *globs);
/* to skip expensive preparation; NULL: is anything recorded at all */
STAVE_API bool stave_enabled(const char *category);

struct stave_counts {
    size_t size;               /* sizeof(struct stave_counts) */
    uint64_t events;           /* handed to the file or stream */
    uint64_t lost_full;        /* the ring was full */
    uint64_t lost_nested;      /* a signal handler traced while its thread was recording */
    uint64_t lost_ring;        /* no ring for the thread */
    uint64_t lost_output;      /* the file or stream failed, or the stream stalled */
    uint64_t lost_overwritten; /* flight recorder: older than the ring holds; not an error */
};
STAVE_API void stave_count(struct stave_counts *counts); /* of this session */

/* ---- tracks ---- */

/* a small number, valid for the life of the process, forked children included */
typedef uint32_t stave_track_t;
#define STAVE_THREAD  ((stave_track_t)0) /* the calling thread's own: the default */
#define STAVE_PROCESS ((stave_track_t)1)
#define STAVE_ROOT    ((stave_track_t)2) /* as a parent: top level */

/* Made at the first call, the same number ever after. A group is a track that others hang below; any depth. */
STAVE_API stave_track_t stave_track(stave_track_t parent, const char *name);
STAVE_API stave_track_t stave_counter(stave_track_t parent, const char *name, const char *unit);
STAVE_API stave_track_t stave_async(stave_track_t parent, const char *name,
                                    uint64_t id); /* one row per id */
/* A row of the device that others hang below (GPU) or of its queue (STREAM): viewers and analysis know what it is. */
enum stave_row { STAVE_ROW_PLAIN = 1, STAVE_ROW_GPU = 6, STAVE_ROW_STREAM = 7 };
STAVE_API stave_track_t stave_track_as(enum stave_row row, stave_track_t parent, const char *name);
STAVE_API stave_track_t stave_thread_track(int64_t tid); /* as a parent: any thread's own */
STAVE_API void stave_track_order(stave_track_t track, int64_t order); /* among its siblings */
STAVE_API void stave_thread_name(const char *name); /* of the calling thread's track */
#define stave_group stave_track

/* ---- flows: an arrow per number, from the slice that has it as STAVE_FLOW_OUT to the one with STAVE_FLOW_IN ---- */

STAVE_API uint64_t stave_flow_new(void); /* unique across processes */
/* Keys with a meaning: STAVE_SCOPE("c", "n", STAVE_FLOW_IN, a, STAVE_FLOW_OUT, b, STAVE_FLOW_OUT, c); */
#define STAVE_FLOW_OUT    "\001>"
#define STAVE_FLOW_IN     "\001<"
#define STAVE_CORRELATION "\001="

/* ---- time ---- */

STAVE_API int64_t stave_now_ns(void); /* CLOCK_MONOTONIC: what stave_complete() takes */

/* ---- nested arguments: build, then give &args as a value ---- */

#define STAVE_ARGS_BYTES 16000
struct stave_args {
    uint32_t len, depth, limit, dropped;
    uint32_t count[32], kept[32];
    uint8_t is_list[32];
    unsigned char bytes[STAVE_ARGS_BYTES];
};
STAVE_API void stave_args_init(struct stave_args *a);
STAVE_API void stave_args_limit(struct stave_args *a,
                                uint32_t items); /* of each list and dictionary; 256 */
STAVE_API void stave_args_int(struct stave_args *a, const char *key,
                              int64_t v); /* in a list: key NULL */
STAVE_API void stave_args_uint(struct stave_args *a, const char *key, uint64_t v);
STAVE_API void stave_args_double(struct stave_args *a, const char *key, double v);
STAVE_API void stave_args_bool(struct stave_args *a, const char *key, bool v);
STAVE_API void stave_args_text(struct stave_args *a, const char *key, const char *v);
STAVE_API void stave_args_text_n(struct stave_args *a, const char *key, const char *v, size_t len);
STAVE_API void stave_args_pointer(struct stave_args *a, const char *key, const void *v);
STAVE_API void stave_args_flow(struct stave_args *a, const char *direction, uint64_t id);
STAVE_API void stave_args_dict(struct stave_args *a, const char *key); /* until stave_args_end() */
STAVE_API void stave_args_list(struct stave_args *a, const char *key);
STAVE_API void stave_args_more(struct stave_args *a,
                               uint32_t items); /* so many of the open one are left out */
STAVE_API void stave_args_end(struct stave_args *a);

/* The text of an enum value: STAVE_INSTANT("c", "n", "mode", stave_enum(mode, names, 3)). */
static inline const char *stave_enum(int64_t v, const char *const *names, size_t n)
{
    return v >= 0 && (uint64_t)v < n && names[v] ? names[v] : "?";
}

/* ---- for bindings: everything at run time; the macros of macros.h are several times cheaper ---- */

enum stave_kind {
    STAVE_KIND_BEGIN = 1,
    STAVE_KIND_END,
    STAVE_KIND_INSTANT,
    STAVE_KIND_COUNTER,
    STAVE_KIND_COMPLETE,
    STAVE_KIND_LOSS /* for call places only: something else lost events here */
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
/* False: off, or lost and counted; of a begin: its end must not follow. An end closes what the calling thread has begun last on the track, and
 * where it has begun nothing there, the newest slice of any thread. */
STAVE_API bool stave_emit(const struct stave_event *event);
/* A slice on a track of your own that is ended by its number: by any thread, and in any order with others. `kind` is not looked at; the end takes
 * track and arguments. 0: off, or lost and counted. */
STAVE_API uint64_t stave_slice_begin(const struct stave_event *begin);
STAVE_API void stave_slice_end(uint64_t slice, const struct stave_event *end);

#ifdef __cplusplus
}
#endif

#include <stave/macros.h>

#endif
