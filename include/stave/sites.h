/*
 * Call sites and the functions that record events: what the macros of macros.h expand to. Included
 * by macros.h; nothing here is for users.
 */
#include <stave/stave.h> /* before the guard: where this file is the first, stave.h includes it */

#ifndef STAVE_SITES_H
#define STAVE_SITES_H

enum stave_i_type {
    STAVE_I_INT = 1,
    STAVE_I_UINT,
    STAVE_I_DOUBLE,
    STAVE_I_BOOL,
    STAVE_I_POINTER,
    STAVE_I_TRACK, /* the track; not an argument */
    STAVE_I_START, /* CLOCK_MONOTONIC in ns; not an argument; without DUR the event's time */
    STAVE_I_DUR,   /* ns; not an argument */
    STAVE_I_ARRAY, /* the number of following words that are its members */
    STAVE_I_SLICE, /* END on a track: the slice that it ends; set when it is recorded */
    /* BEGIN on a track: its owner within the thread; bit 0: in order with the others */
    STAVE_I_OWNER,
    STAVE_I_TEXT = 16, /* this and the following types have bytes after the words */
    STAVE_I_NAME,      /* dynamic name of the event */
    STAVE_I_CAT,       /* dynamic category */
    STAVE_I_ARGS       /* struct stave_args */
};

struct stave_i_dso;

enum { STAVE_I_NEW = 2 };

struct stave_site {
    uint64_t word; /* first word of its records; 0: not registered (atomic) */
    uint8_t state; /* 0: off, 1: on, STAVE_I_NEW: not registered yet (atomic) */
    uint8_t kind, n_args, flags;
    uint32_t line;
    const char *cat, *name, *file, *func;
    const char *const *keys;
    const uint8_t *types;
    struct stave_i_dso *dso;
    struct stave_site *next;
    int64_t *sum; /* STAVE_COUNTER_ADD */
};

/* One per program or shared object: dlclose() removes its call sites from the library's lists. */
struct stave_i_dso {
    struct stave_site *sites;
    struct stave_i_dso *next;
    uint32_t registered;
};

#ifdef __cplusplus
extern "C" {
#endif
extern struct stave_i_dso stave_i_dso;
__attribute__((weak, visibility("hidden"))) struct stave_i_dso stave_i_dso;

/* 0 in programs that read traces: STAVE_OUT names the output of other programs, which they must
 * not replace. */
extern uint32_t stave_i_obeys_environment __attribute__((visibility("hidden")));

/* For bindings: what STAVE_FULL_DEFAULT means from now on (enum stave_full: drop or block), also in
 * the session that runs, if neither the program nor STAVE_FULL has chosen there. */
STAVE_API void stave_i_default_full(uint32_t full);
/* For bindings: where stave_enabled(NULL) looks; 0 while nothing is recorded (atomic). */
STAVE_API const uint32_t *stave_i_gate(void);
STAVE_API void stave_i_dso_gone(struct stave_i_dso *dso);
/* Registers a site. True: it is on. */
STAVE_API bool stave_i_first(struct stave_site *site);
/* These record an event and return the session's number, or 0 when nothing was recorded. */
STAVE_API uint32_t stave_i_begin0(struct stave_site *site);
STAVE_API uint32_t stave_i_instant0(struct stave_site *site);
STAVE_API uint32_t stave_i_emit(struct stave_site *site, const uint64_t *values);
/* STAVE_BEGIN: remembers for STAVE_END whether it was recorded. */
STAVE_API void stave_i_note_begin(uint32_t recorded);
STAVE_API void stave_i_end(struct stave_site *site, const uint64_t *values);
/* STAVE_BEGIN and STAVE_END without arguments. */
STAVE_API void stave_i_open0(struct stave_site *site);
STAVE_API void stave_i_end0(void);
STAVE_API void stave_i_scope_end(uint32_t session);
/* The end of a scope, with arguments. */
STAVE_API void stave_i_scope_end_with(uint32_t session, struct stave_site *site,
                                      const uint64_t *values);
STAVE_API void stave_i_add(struct stave_site *site, int64_t delta);
/* Slices on a track. The first value is the number of the track; the second word of an end is
 * the slice. A begin returns the slice, or 0 when it was not recorded. end_on() ends the newest
 * slice of the thread on the track, close_on() the given slice, scope_on_end() that of a block. */
STAVE_API uint64_t stave_i_begin_on(struct stave_site *site, const uint64_t *values);
STAVE_API void stave_i_end_on(struct stave_site *site, const uint64_t *values);
STAVE_API uint64_t stave_i_open_on(struct stave_site *site, const uint64_t *values);
STAVE_API void stave_i_close_on(struct stave_site *site, uint64_t slice, const uint64_t *values);
STAVE_API uint64_t stave_i_scope_on(struct stave_site *site, const uint64_t *values);
STAVE_API void stave_i_scope_on_end(struct stave_site *site, stave_track_t track, uint64_t slice);
#ifdef __cplusplus
}
#endif

#endif
