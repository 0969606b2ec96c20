/* The binary interface between a program's ITT part (linked into it) and a collector: only what a
 * collector needs of it, in our own words. No package of Debian has its header. Facts:
 * github.com/intel/ittapi, src/ittnotify/ittnotify_config.h and include/ittnotify.h (interface
 * version 3).
 *
 * The program's part loads the library that INTEL_LIBITTNOTIFY64 names and calls its
 * __itt_api_init(), which puts functions into the list of the program's part. Each shared object
 * may have such a part of its own, with its own list. */
#pragma once

#include <pthread.h>
#include <stddef.h>

struct itt_api {
    const char *name;         /* "__itt_task_begin"; NULL ends the list */
    void **function;          /* what the program calls */
    void *at_first, *without; /* the program's own: before a collector is there, and without one */
    int group;
};

struct itt_part {
    unsigned char magic[8];
    unsigned long major, minor, build;
    volatile long is_initialized, has_mutex, counter;
    pthread_mutex_t mutex;
    void *library, *error_handler;
    const char **path;
    struct itt_api *list;
    /* More follows: what the program made before a collector was there. Its handles stay valid,
     * since we read names only. */
};

struct itt_domain {
    volatile int flags; /* 0: off */
    const char *name;
    void *wide;
    int extra1;
    void *extra2;
    struct itt_domain *next;
};

struct itt_string {
    const char *text;
    void *wide;
    int extra1;
    void *extra2;
    struct itt_string *next;
};

struct itt_counter {
    const char *name;
    void *wide;
    const char *domain;
    void *wide_domain;
    int type;
    long index;
    int extra1;
    void *extra2;
    struct itt_counter *next;
};

struct itt_id {
    unsigned long long d1, d2, d3;
};

enum itt_type {
    ITT_UNKNOWN,
    ITT_U64,
    ITT_S64,
    ITT_U32,
    ITT_S32,
    ITT_U16,
    ITT_S16,
    ITT_FLOAT,
    ITT_DOUBLE
};

enum itt_scope { ITT_ANY, ITT_GLOBAL, ITT_PROCESS, ITT_THREAD, ITT_TASK, ITT_MARKER };

/* Every function that the program may find in us: X(return type, name, parameters). */
/* clang-format off */
#define ITT_FUNCTIONS(X) \
    X(struct itt_domain *, domain_create, (const char *name)) \
    X(struct itt_string *, string_handle_create, (const char *text)) \
    X(struct itt_counter *, counter_create, (const char *name, const char *domain)) \
    X(struct itt_counter *, counter_create_typed, (const char *name, const char *domain, int type)) \
    X(struct itt_counter *, counter_create_v3, (const struct itt_domain *d, const char *name, int type)) \
    X(void, counter_destroy, (struct itt_counter *c)) \
    X(void, counter_inc, (struct itt_counter *c)) \
    X(void, counter_inc_delta, (struct itt_counter *c, unsigned long long delta)) \
    X(void, counter_dec, (struct itt_counter *c)) \
    X(void, counter_dec_delta, (struct itt_counter *c, unsigned long long delta)) \
    X(void, counter_set_value, (struct itt_counter *c, void *value)) \
    X(void, counter_set_value_v3, (struct itt_counter *c, void *value)) \
    X(void, counter_inc_v3, (const struct itt_domain *d, struct itt_string *name)) \
    X(void, counter_inc_delta_v3, (const struct itt_domain *d, struct itt_string *name, unsigned long long delta)) \
    X(void, counter_dec_v3, (const struct itt_domain *d, struct itt_string *name)) \
    X(void, counter_dec_delta_v3, (const struct itt_domain *d, struct itt_string *name, unsigned long long delta)) \
    X(void, pause, (void)) \
    X(void, resume, (void)) \
    X(void, pause_scoped, (int scope)) \
    X(void, resume_scoped, (int scope)) \
    X(void, detach, (void)) \
    X(void, thread_set_name, (const char *name)) \
    X(int, thr_name_set, (const char *name, int len)) \
    X(unsigned long long, get_timestamp, (void)) \
    X(const char *, api_version, (void)) \
    X(void, task_begin, (const struct itt_domain *d, struct itt_id id, struct itt_id parent, struct itt_string *name)) \
    X(void, task_begin_fn, (const struct itt_domain *d, struct itt_id id, struct itt_id parent, void *function)) \
    X(void, task_end, (const struct itt_domain *d)) \
    X(void, task_begin_overlapped, (const struct itt_domain *d, struct itt_id id, struct itt_id parent, struct itt_string *name)) \
    X(void, task_end_overlapped, (const struct itt_domain *d, struct itt_id id)) \
    X(void, task_group, (const struct itt_domain *d, struct itt_id id, struct itt_id parent, struct itt_string *name)) \
    X(void, region_begin, (const struct itt_domain *d, struct itt_id id, struct itt_id parent, struct itt_string *name)) \
    X(void, region_end, (const struct itt_domain *d, struct itt_id id)) \
    X(void, frame_begin_v3, (const struct itt_domain *d, struct itt_id *id)) \
    X(void, frame_end_v3, (const struct itt_domain *d, struct itt_id *id)) \
    X(void, frame_submit_v3, (const struct itt_domain *d, struct itt_id *id, unsigned long long begin, unsigned long long end)) \
    X(void *, frame_create, (const char *domain)) \
    X(void, frame_begin, (void *frame)) \
    X(void, frame_end, (void *frame)) \
    X(void, marker, (const struct itt_domain *d, struct itt_id id, struct itt_string *name, int scope)) \
    X(int, mark_create, (const char *name)) \
    X(int, mark, (int mark, const char *parameter)) \
    X(int, mark_global, (int mark, const char *parameter)) \
    X(int, event_create, (const char *name, int len)) \
    X(int, event_start, (int event)) \
    X(int, event_end, (int event)) \
    X(void, metadata_add, (const struct itt_domain *d, struct itt_id id, struct itt_string *key, int type, size_t n, void *data)) \
    X(void, metadata_str_add, (const struct itt_domain *d, struct itt_id id, struct itt_string *key, const char *text, size_t len)) \
    X(void, metadata_add_with_scope, (const struct itt_domain *d, int scope, struct itt_string *key, int type, size_t n, void *data)) \
    X(void, metadata_str_add_with_scope, (const struct itt_domain *d, int scope, struct itt_string *key, const char *text, size_t len)) \
    X(void, relation_add, (const struct itt_domain *d, struct itt_id head, int relation, struct itt_id tail)) \
    X(void, relation_add_to_current, (const struct itt_domain *d, int relation, struct itt_id tail))
/* clang-format on */
