/* Loading a whole trace into the store, for the commands that look at it as a whole. */
#pragma once

#include "files/kept.h"
#include "files/range.h"
#include "store/trace.h"

struct sv_chosen;

struct sv_loaded {
    struct sv_dict *dict;
    struct sv_trace *trace;
    struct sv_opened in;    /* closed for reading; path, format and report stay */
    struct sv_kept_key key; /* of the file, where an index may be made or was used */
    char *own_path;         /* in.path, where it is none that was given */
};

enum sv_index_use {
    SV_INDEX_USED = false,    /* where there is one */
    SV_INDEX_NOT_USED = true, /* --no-index */
    /* The caller will make one if there is none; of one that is there only samples are checked, the
     * caller calls sv_trace_check(). */
    SV_INDEX_MADE
};

struct sv_load_how {
    const char *from;
    bool strict, assume;
    size_t memory_limit_bytes;
    unsigned threads; /* 0: as --threads says, see threads/workers.h */
    /* Several traces above each other instead of on one axis, and the event that is at 0 in each:
     * see clocks/merge.h */
    bool compare;
    const char *anchor;
    /* A sink that shall see the events of a single trace on their way into the store; NULL:
     * none. */
    struct sv_sink *(*pass)(void *ctx, struct sv_dict *dict, struct sv_sink *next);
    void *pass_ctx;
    unsigned index;      /* enum sv_index_use */
    bool is_live;        /* the file is being written: its findings are not printed */
    uint64_t tail_bytes; /* only about so much of its end; 0: all */
    struct sv_range range;
    const struct sv_rotation *
        /* sv_load(): the trace is the first of these parts (files/rotation.h); NULL: alone */
        rotation;
    const struct sv_chosen *chosen; /* instead: parts and window (files/recordings.h) */
};
/* A folder means the parts of the recording in it (files/recordings.h). */
int sv_load(const char *path, const struct sv_load_how *how, struct sv_loaded *l,
            struct sv_err *err);
/* Several traces in one store, as `merge` puts them together, parts of one recording as one trace:
 * refused when their clocks cannot be related, unless `assume` says to take their times as they
 * are. */
int sv_load_traces(const char *const *paths, size_t n, const struct sv_load_how *how,
                   struct sv_loaded *l, struct sv_err *err);
void sv_loaded_free(struct sv_loaded *l); /* also after a failed load */

/* The options of commands that load several traces: those of all inputs, and `bool assume`. */
#define SV_ASSUME_OPTION(type)                                                     \
    {                                                                              \
        0, "assume", NULL, SV_OPT_FLAG, offsetof(type, assume),                    \
            "several traces whose clocks cannot be related: use their timestamps " \
            "unchanged",                                                           \
            NULL, NULL                                                             \
    }
#define SV_INPUTS_OPTIONS(type) SV_ASSUME_OPTION(type), SV_INPUT_OPTIONS(type)

/* `bool no_index` and `uint64_t memory_limit`, of all commands that load a whole trace. */
#define SV_INDEX_OPTION(type)                                                                     \
    {                                                                                             \
        0, "no-index", NULL, SV_OPT_FLAG, offsetof(type, no_index),                               \
            "read the trace even if the cache has an index of it (see stave view)", NULL, "Input" \
    }
#define SV_MEMORY_OPTION(type)                                                         \
    {                                                                                  \
        0, "memory-limit", "BYTES", SV_OPT_BYTES, offsetof(type, memory_limit),        \
            "stop with an error instead of using more memory than this", NULL, "Input" \
    }
/* struct sv_load_how, as the options above of a command say. */
#define SV_LOAD_HOW(o)                                                                       \
    {                                                                                        \
        .from = (o)->from, .strict = (o)->strict, .assume = (o)->assume,                     \
        .memory_limit_bytes = (o)->memory_limit, .index = (o)->no_index, .range = (o)->range \
    }
/* `struct sv_interval window`; `what` is done with it. */
#define SV_TIME_OPTION(type, what)                                                          \
    {                                                                                       \
        0, "time", "FROM:TO", SV_OPT_WINDOW, offsetof(type, window),                        \
            what "; times count from the start of the trace, with a leading @ they are on " \
                 "its clock",                                                               \
            NULL, NULL                                                                      \
    }
