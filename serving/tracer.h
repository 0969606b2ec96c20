/* A traced server: what the files of this room share.
 *
 *   life_cycle.c  the life-cycle calls: one event of the SDK each
 *   open.c        configuration, start and end
 *   names.c       models and workers, the tracks, the names of the files */
#ifndef SV_SERVING_TRACER_H
#define SV_SERVING_TRACER_H

#include <pthread.h>
#include <stave/serving.h>
#include <stdatomic.h>

enum { SV_SERVING_MODELS_MAX = 1024, SV_SERVING_NAME_MAX = 128, SV_SERVING_PATH_MAX = 4096 };

/* Category of the life cycle as it was told, one instant per call: what reports and recovery read. */
#define SV_SERVING_LIFE "serving.life"

struct sv_serving_paths {
    char json[SV_SERVING_PATH_MAX], csv[SV_SERVING_PATH_MAX], metrics[SV_SERVING_PATH_MAX],
        pftrace[SV_SERVING_PATH_MAX];
};

struct stave_serving {
    struct stave_serving_config config; /* resolved: no member means "default" */
    char server[SV_SERVING_NAME_MAX];
    struct sv_serving_paths paths;
    uint64_t salt; /* of the flows: two servers in one process do not meet */
    stave_track_t group, life;
    bool owns_session;
    pthread_mutex_t names_lock; /* models and workers only: no life-cycle call takes it */
    char *models[SV_SERVING_MODELS_MAX];
    uint32_t n_models;
};

/* ---- events of the SDK with a time of their own ---- */

#define STAVE_I_K_AT()             "", "",
#define STAVE_I_T_AT()             STAVE_I_TRACK, STAVE_I_START,
#define STAVE_I_W_AT(track, start) (uint64_t)(track), (uint64_t)(start),

/* (track, time_ns, category, name, key, value, …) */
#define SV_INSTANT_AT(track, time_ns, ...)                                                 \
    STAVE_I_EVENT(STAVE_KIND_INSTANT, AT, (track, time_ns), STAVE_I_1ST(__VA_ARGS__, 0), \
                  STAVE_I_2ND(__VA_ARGS__, 0), __VA_ARGS__)
#define SV_COUNTER_AT(track, time_ns, cat, value) \
    STAVE_I_EVENT(STAVE_KIND_COUNTER, AT, (track, time_ns), cat, 0, cat, 0, "", value)

#endif
