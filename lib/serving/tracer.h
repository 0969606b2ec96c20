/* A traced server: what the files of this directory share.
 *
 *   life_cycle.c     the calls: one event of the SDK each, and one record in the ring
 *   engine_calls.c   the same for engines; a step is a record only
 *   call_ring.c      that ring
 *   tracer_thread.c  the thread that empties it: life cycle → files and time line
 *   held_calls.c     calls of requests that may be left out, until that is known
 *   keep_rule.c      which ones are not
 *   batching_json.c, summary_csv.c, server_tracks.c, engine_tracks.c    what it makes
 *   backlog.c, processors.c    what waits while all processors are busy
 *   ended.c          requests and batches that have ended, for the server
 *   growing_file.c   files that are whole after every flush
 *   open.c           configuration, start and end
 *   kept_files.c     file names; earlier files are kept
 *   names.c          models and workers */
#pragma once

#include "serving/call_ring.h"
#include "serving/keep_rule.h"

#include <pthread.h>
#include <stave/serving.h>

enum {
    SV_SERVING_ENGINES_MAX = 64,
    SV_SERVING_MODELS_MAX = 1024,
    SV_SERVING_NAME_MAX = 128,
    SV_SERVING_PATH_MAX = 4096
};

struct sv_serving_paths {
    char json[SV_SERVING_PATH_MAX], csv[SV_SERVING_PATH_MAX], metrics[SV_SERVING_PATH_MAX],
        pftrace[SV_SERVING_PATH_MAX], dir[SV_SERVING_PATH_MAX];
};

struct sv_tracer_thread;

struct stave_serving {
    struct sv_call_ring ring;           /* first: it is aligned */
    struct stave_serving_config config; /* resolved: no member means "default" */
    char server[SV_SERVING_NAME_MAX];
    struct sv_serving_paths paths;
    uint64_t salt; /* of the flows: two servers in one process do not meet */
    stave_track_t group, life;
    int64_t opened_ns;
    bool owns_session;
    int pid; /* a forked child has the struct, but not the thread */
    struct sv_tracer_thread *thread;
    /* The rule of what is kept. Calls are recorded at once where holds is false. */
    _Atomic bool holds;
    _Atomic int64_t slow_ns;
    _Atomic uint32_t slow_percent;
    /* One of so many is recorded at all, or as its caller says. */
    _Atomic uint32_t rate, turn;
    _Atomic bool by_parent;
    pthread_mutex_t names_lock; /* models and workers only: no life-cycle call takes it */
    char *models[SV_SERVING_MODELS_MAX];
    uint32_t n_models;
    /* Filled before the number is given out, and read by the thread when a step with it came. */
    stave_track_t engines[SV_SERVING_ENGINES_MAX], engines_group;
    _Atomic uint32_t n_engines;
};

/* ---- life_cycle.c ---- */

/* Into the ring, with words or text behind it; a full ring is treated as the configuration says. */
void sv_serving_put(struct stave_serving *s, const struct sv_call_cell *call, const uint64_t *words,
                    uint32_t n_words);
void sv_serving_put_text(struct stave_serving *s, const struct sv_call_cell *call,
                         const char *text);

/* The event of a call that was held. */
void sv_serving_record(const struct stave_serving *s, const struct sv_call_cell *call,
                       const uint64_t *words);

/* The time, or now. */
static inline int64_t sv_serving_at(int64_t time_ns)
{
    return time_ns ? time_ns : stave_now_ns();
}
/* In the trace a span is its end and how long it took, which no change of clocks can spoil; -1: not
 * known. */
static inline int64_t sv_serving_took(int64_t start_ns, int64_t end_ns)
{
    return start_ns ? end_ns - start_ns : -1;
}

/* The event of the SDK: (server, its time, name, key, value, …). A server that is not there has
 * none, and the call ends here. */
#define SV_SERVING_RECORD(s, time_ns, ...) \
    if (!(s))                              \
        return;                            \
    (time_ns) = sv_serving_at(time_ns);    \
    SV_INSTANT_AT((s)->life, (time_ns), SV_LIFE_CATEGORY, __VA_ARGS__)
/* The record for the files: (server, .member = value, …). */
#define SV_SERVING_PUT(s, ...) sv_serving_put((s), &(struct sv_call_cell){__VA_ARGS__}, NULL, 0)

/* ---- ended.c ---- */

void sv_serving_ended(const struct stave_serving *s, struct sv_life *l, enum sv_life_moment moment,
                      const struct sv_life_request *r, const struct sv_life_batch *b);

/* ---- kept_files.c ---- */

/* Names in `dir`; what earlier servers left is kept under a number, or overwritten if the
 * configuration says so. False: errno. */
bool sv_serving_name_files(struct stave_serving *s, const char *dir);

/* ---- tracer_thread.c ---- */

bool sv_tracer_thread_start(struct stave_serving *s, char *message, size_t message_size);
/* Everything that was put before is in the files. 0 or errno of the first failure. */
int sv_tracer_thread_flush(struct stave_serving *s);
int sv_tracer_thread_stop(struct stave_serving *s, char *message, size_t message_size);
void sv_tracer_thread_count(const struct stave_serving *s, struct stave_serving_counts *counts);

/* ---- events of the SDK with a time of their own ---- */

#define STAVE_I_K_AT()             "", "",
#define STAVE_I_T_AT()             STAVE_I_TRACK, STAVE_I_START,
#define STAVE_I_W_AT(track, start) (uint64_t)(track), (uint64_t)(start),
#define STAVE_I_K_NAMED()          "", "", "", "",
#define STAVE_I_T_NAMED()          STAVE_I_TRACK, STAVE_I_START, STAVE_I_DUR, STAVE_I_NAME,
#define STAVE_I_W_NAMED(track, start, dur, name) \
    (uint64_t)(track), (uint64_t)(start), (uint64_t)(dur), stave_i_from_ptr(name),

#define STAVE_I_K_LOST()             "", "",
#define STAVE_I_T_LOST()             STAVE_I_TRACK, STAVE_I_NAME,
#define STAVE_I_W_LOST(track, cause) (uint64_t)(track), stave_i_from_ptr(cause),

/* (track, time_ns, category, name, key, value, …) */
#define SV_INSTANT_AT(track, time_ns, ...)                                               \
    STAVE_I_EVENT(STAVE_KIND_INSTANT, AT, (track, time_ns), STAVE_I_1ST(__VA_ARGS__, 0), \
                  STAVE_I_2ND(__VA_ARGS__, 0), __VA_ARGS__)
#define SV_COUNTER_AT(track, time_ns, cat, value) \
    STAVE_I_EVENT(STAVE_KIND_COUNTER, AT, (track, time_ns), cat, 0, cat, 0, "", value)
/* So many events of this component did not come into the trace. */
#define SV_LOSS(track, cause, cat, count) \
    STAVE_I_EVENT(STAVE_KIND_LOSS, LOST, (track, cause), cat, 0, cat, 0, "", count)
/* (track, start_ns, dur_ns, name, category, 0, key, value, …): a slice whose name is any text */
#define SV_COMPLETE_NAMED(track, start_ns, dur_ns, name, cat, ...)                          \
    STAVE_I_EVENT(STAVE_KIND_COMPLETE, NAMED, (track, start_ns, dur_ns, name), cat, 0, cat, \
                  __VA_ARGS__)
