/*
 * The macros of the SDK, and what they expand to. Included by stave.h.
 *
 * Each use of a macro defines a static struct stave_site (a call site), which is registered when it
 * is first executed. Its member `state` says whether the event is recorded: one load, one branch.
 * Values are passed as 64-bit words whose types the site knows. Names that begin with stave_i_ or
 * STAVE_I_ are not for users; the macros for users are at the end.
 */
#ifndef STAVE_MACROS_H
#define STAVE_MACROS_H

#include <stave/lists.h>
#include <stave/sites.h>
#include <stave/stave.h>

/* Category of STAVE_FUNC() and STAVE_FUNC_ARGS(): define your own before the include. */
#ifndef STAVE_CATEGORY
#define STAVE_CATEGORY "function"
#endif

static __attribute__((destructor, unused)) void stave_i_dso_fini(void)
{
    if (stave_i_dso.registered)
        stave_i_dso_gone(&stave_i_dso);
}

/* A new site is registered before anything is evaluated. */
static inline bool stave_i_on(struct stave_site *site)
{
    uint8_t state = __atomic_load_n(&site->state, __ATOMIC_RELAXED);
    return __builtin_expect(state, 0) &&
           (__builtin_expect(state != STAVE_I_NEW, 1) || stave_i_first(site));
}
#define STAVE_I_ON(site) __builtin_expect(stave_i_on(&(site)), 0)

/* ---- words ---- */

static inline uint64_t stave_i_from_int(int64_t v)
{
    return (uint64_t)v;
}
static inline uint64_t stave_i_from_uint(uint64_t v)
{
    return v;
}
static inline uint64_t stave_i_from_double(double v)
{
    uint64_t u;
    __builtin_memcpy(&u, &v, sizeof u);
    return u;
}
static inline uint64_t stave_i_from_ptr(const volatile void *v)
{
    return (uint64_t)(uintptr_t)v;
}

#ifdef __cplusplus
extern "C++" { /* also where this file is included within extern "C" */
#if __cplusplus < 201703L
#include <stave/words.hpp>
#else
#include <stave/values.hpp>
#endif
}
#define STAVE_I_TYPE(v)       ::stave::type_of<decltype(v)>()
#define STAVE_I_KEY_OF(k, v)  ::stave::key_of<decltype(v)>(k),
#define STAVE_I_WORD_OF(k, v) ::stave::word(k, v).bits,
#define STAVE_I_LIST(...)     (::stave::list{{__VA_ARGS__}}.at)
#define STAVE_I_IS_LITERAL(x) (::stave::is_array_of_const<decltype(x)>() || __builtin_constant_p(x))
#define STAVE_I_ASSERT        static_assert
#else
#define STAVE_I_PICK(v, s, u, d, b, t, a, p) \
    _Generic((v), char: s, signed char: s, short: s, int: s, long: s, long long: s,        \
             unsigned char: u, unsigned short: u, unsigned: u, unsigned long: u,           \
             unsigned long long: u, float: d, double: d, long double: d, _Bool: b,         \
             char *: t, const char *: t, struct stave_args *: a, const struct stave_args *: a, \
             default: p)
#define STAVE_I_TYPE(v)                                                                    \
    STAVE_I_PICK(v, STAVE_I_INT, STAVE_I_UINT, STAVE_I_DOUBLE, STAVE_I_BOOL, STAVE_I_TEXT, \
                 STAVE_I_ARGS, STAVE_I_POINTER)
#define STAVE_I_WORD(v)                                                                          \
    STAVE_I_PICK(v, stave_i_from_int, stave_i_from_uint, stave_i_from_double, stave_i_from_uint, \
                 stave_i_from_ptr, stave_i_from_ptr, stave_i_from_ptr)                           \
    (v)
#define STAVE_I_KEY_OF(k, v)  k,
#define STAVE_I_WORD_OF(k, v) STAVE_I_WORD(v),
#define STAVE_I_LIST(...)     ((const uint64_t[]){__VA_ARGS__})
#define STAVE_I_IS_LITERAL(x)                                                                  \
    (__builtin_constant_p(x) || !(__builtin_types_compatible_p(__typeof__(x), const char *) || \
                                  __builtin_types_compatible_p(__typeof__(x), char *)))
#define STAVE_I_ASSERT _Static_assert
#endif

#define STAVE_I_TYPE_OF(k, v) STAVE_I_TYPE(v),

/* ---- sites and events ---- */

/* Words before the arguments: `x` selects them (NONE, TRACK, END, NAME, TIME), `w` is a list of
 * their values in parentheses. */
#define STAVE_I_K_NONE()
#define STAVE_I_T_NONE()
#define STAVE_I_W_NONE(w)
#define STAVE_I_K_TRACK()                 "",
#define STAVE_I_T_TRACK()                 STAVE_I_TRACK,
#define STAVE_I_W_TRACK(w)                (uint64_t)(w),
#define STAVE_I_K_END()                   "", "",
#define STAVE_I_T_END()                   STAVE_I_TRACK, STAVE_I_SLICE,
#define STAVE_I_W_END(w)                  (uint64_t)(w), 0,
#define STAVE_I_K_NAME()                  "",
#define STAVE_I_T_NAME()                  STAVE_I_NAME,
#define STAVE_I_W_NAME(w)                 stave_i_from_ptr(w),
#define STAVE_I_K_TIME()                  "", "", "",
#define STAVE_I_T_TIME()                  STAVE_I_TRACK, STAVE_I_START, STAVE_I_DUR,
#define STAVE_I_W_TIME(track, start, dur) (uint64_t)(track), (uint64_t)(start), (uint64_t)(dur),

#define STAVE_I_SITE_(id, kind_, cat_, name_, keys_, types_)                           \
    STAVE_I_ASSERT(STAVE_I_IS_LITERAL(cat_) && STAVE_I_IS_LITERAL(name_),              \
                   "category and name are literals: for a name known at run time use " \
                   "STAVE_..._DYN, for both stave_emit()");                            \
    static const char *const STAVE_I_JOIN(id, k)[] = {keys_ 0};                        \
    static const uint8_t STAVE_I_JOIN(id, t)[] = {types_ 0};                           \
    static struct stave_site id = {0,                                                  \
                                   STAVE_I_NEW,                                        \
                                   kind_,                                              \
                                   (uint8_t)(sizeof STAVE_I_JOIN(id, t) - 1),          \
                                   0,                                                  \
                                   __LINE__,                                           \
                                   cat_,                                               \
                                   name_,                                              \
                                   __FILE__,                                           \
                                   __func__,                                           \
                                   STAVE_I_JOIN(id, k),                                \
                                   STAVE_I_JOIN(id, t),                                \
                                   &stave_i_dso,                                       \
                                   0,                                                  \
                                   0}
#define STAVE_I_SITE(id, kind, x, cat, name, ...)                                              \
    STAVE_I_SITE_(id, kind, cat, name, STAVE_I_K_##x() STAVE_I_M(STAVE_I_KEY_OF, __VA_ARGS__), \
                  STAVE_I_T_##x() STAVE_I_M(STAVE_I_TYPE_OF, __VA_ARGS__))
#define STAVE_I_WORDS(x, w, ...) \
    STAVE_I_LIST(STAVE_I_W_##x w STAVE_I_M(STAVE_I_WORD_OF, __VA_ARGS__) 0)
#define STAVE_I_SEND(id, zero, x, w, ...)         \
    (sizeof(STAVE_I_JOIN(id, t)) == 1 ? zero(&id) \
                                      : stave_i_emit(&id, STAVE_I_WORDS(x, w, __VA_ARGS__)))

#define STAVE_I_SCOPE(n, ...) \
    STAVE_I_SCOPE_(STAVE_I_JOIN(stave_i_s, n), STAVE_I_JOIN(stave_i_v, n), __VA_ARGS__)
#define STAVE_I_SCOPE_(id, var, x, w, cat, name, ...)              \
    STAVE_I_SITE(id, STAVE_KIND_BEGIN, x, cat, name, __VA_ARGS__); \
    __attribute__((cleanup(stave_i_scope_fini), unused))           \
    uint32_t var = STAVE_I_ON(id) ? STAVE_I_SEND(id, stave_i_begin0, x, w, __VA_ARGS__) : 0
#define STAVE_I_EVENT(kind, x, w, cat, name, ...)                               \
    do {                                                                        \
        STAVE_I_SITE(stave_i_s, kind, x, cat, name, __VA_ARGS__);               \
        if (STAVE_I_ON(stave_i_s))                                              \
            (void)STAVE_I_SEND(stave_i_s, stave_i_instant0, x, w, __VA_ARGS__); \
    } while (0)
#define STAVE_I_BEGIN(x, w, cat, name, ...)                                                     \
    do {                                                                                        \
        STAVE_I_SITE(stave_i_s, STAVE_KIND_BEGIN, x, cat, name, __VA_ARGS__);                   \
        if (STAVE_I_ON(stave_i_s)) {                                                            \
            if (sizeof stave_i_st == 1)                                                         \
                stave_i_open0(&stave_i_s);                                                      \
            else                                                                                \
                stave_i_note_begin(stave_i_emit(&stave_i_s, STAVE_I_WORDS(x, w, __VA_ARGS__))); \
        }                                                                                       \
    } while (0)
#define STAVE_I_END(cat, ...)                                                      \
    do {                                                                           \
        STAVE_I_SITE(stave_i_s, STAVE_KIND_END, NONE, cat, 0, 0, __VA_ARGS__);     \
        if (STAVE_I_ON(stave_i_s)) {                                               \
            if (sizeof stave_i_st == 1)                                            \
                stave_i_end0();                                                    \
            else                                                                   \
                stave_i_end(&stave_i_s, STAVE_I_WORDS(NONE, (0), 0, __VA_ARGS__)); \
        }                                                                          \
    } while (0)
/* Records the event with another function than stave_i_emit(). */
#define STAVE_I_EVENT_BY(send, kind, x, w, cat, name, ...)            \
    do {                                                              \
        STAVE_I_SITE(stave_i_s, kind, x, cat, name, __VA_ARGS__);     \
        if (STAVE_I_ON(stave_i_s))                                    \
            (void)send(&stave_i_s, STAVE_I_WORDS(x, w, __VA_ARGS__)); \
    } while (0)
struct stave_i_track_scope {
    struct stave_site *end;
    stave_track_t track;
    uint64_t slice;
};
static inline void stave_i_track_scope_fini(const struct stave_i_track_scope *s)
{
    if (__builtin_expect(s->slice != 0, 0))
        stave_i_scope_on_end(s->end, s->track, s->slice);
}
#define STAVE_I_SCOPE_ON(n, ...)                                              \
    STAVE_I_SCOPE_ON_(STAVE_I_JOIN(stave_i_s, n), STAVE_I_JOIN(stave_i_e, n), \
                      STAVE_I_JOIN(stave_i_v, n), __VA_ARGS__)
#define STAVE_I_SCOPE_ON_(id, end, var, track, cat, name, ...)                                    \
    STAVE_I_SITE(id, STAVE_KIND_BEGIN, TRACK, cat, name, __VA_ARGS__);                            \
    STAVE_I_SITE(end, STAVE_KIND_END, END, cat, 0, 0, 0);                                         \
    __attribute__((cleanup(stave_i_track_scope_fini), unused)) struct stave_i_track_scope var = { \
        &end, (track),                                                                            \
        STAVE_I_ON(id) ? stave_i_scope_on(&id, STAVE_I_WORDS(TRACK, (track), __VA_ARGS__)) : 0}

static inline void stave_i_scope_fini(const uint32_t *session)
{
    if (__builtin_expect(*session != 0, 0))
        stave_i_scope_end(*session);
}

/* ---- for users: (category, name, key, value, …); keys, categories and names are literals ---- */

/* A slice from here to the end of the block, on the thread's track. It also ends with an early
 * return or a goto. */
#define STAVE_SCOPE(...)                                               \
    STAVE_I_SCOPE(__COUNTER__, NONE, (0), STAVE_I_1ST(__VA_ARGS__, 0), \
                  STAVE_I_2ND(__VA_ARGS__, 0), __VA_ARGS__)
/* The same with any string as name, which is copied. */
#define STAVE_SCOPE_DYN(...)                                                                     \
    STAVE_I_SCOPE(__COUNTER__, NAME, (STAVE_I_2ND(__VA_ARGS__, 0)), STAVE_I_1ST(__VA_ARGS__, 0), \
                  0, __VA_ARGS__)
/* The same on a track of your own. The block must end on the thread where it began. */
#define STAVE_SCOPE_ON(track, ...)                                                                 \
    STAVE_I_SCOPE_ON(__COUNTER__, track, STAVE_I_1ST(__VA_ARGS__, 0), STAVE_I_2ND(__VA_ARGS__, 0), \
                     __VA_ARGS__)
/* The function as a slice. */
#define STAVE_FUNC() STAVE_SCOPE(STAVE_CATEGORY, __func__)
/* The function with its arguments (at most eight): STAVE_FUNC_ARGS(a, b) */
#define STAVE_FUNC_ARGS(...) STAVE_SCOPE(STAVE_CATEGORY, __func__, STAVE_I_NAMED(__VA_ARGS__))

/* Explicit begin and end. An end closes the newest open slice of the thread and may add
 * arguments: (category, key, value, …) */
#define STAVE_BEGIN(...) \
    STAVE_I_BEGIN(NONE, (0), STAVE_I_1ST(__VA_ARGS__, 0), STAVE_I_2ND(__VA_ARGS__, 0), __VA_ARGS__)
#define STAVE_BEGIN_DYN(...) \
    STAVE_I_BEGIN(NAME, (STAVE_I_2ND(__VA_ARGS__, 0)), STAVE_I_1ST(__VA_ARGS__, 0), 0, __VA_ARGS__)
#define STAVE_END(...) STAVE_I_END(STAVE_I_1ST(__VA_ARGS__, 0), __VA_ARGS__)
/* On a track of your own. Threads may share a track: an end closes the newest slice that its own
 * thread has open there or, if there is none, the newest of any thread. Slices of a track that
 * overlap without nesting get sibling rows. */
#define STAVE_BEGIN_ON(track, ...)                                       \
    STAVE_I_EVENT_BY(stave_i_begin_on, STAVE_KIND_BEGIN, TRACK, (track), \
                     STAVE_I_1ST(__VA_ARGS__, 0), STAVE_I_2ND(__VA_ARGS__, 0), __VA_ARGS__)
#define STAVE_END_ON(track, ...)                                                                   \
    STAVE_I_EVENT_BY(stave_i_end_on, STAVE_KIND_END, END, (track), STAVE_I_1ST(__VA_ARGS__, 0), 0, \
                     0, __VA_ARGS__)

/* A point in time, on the thread's track or on one of your own. */
#define STAVE_INSTANT(...)                                                    \
    STAVE_I_EVENT(STAVE_KIND_INSTANT, NONE, (0), STAVE_I_1ST(__VA_ARGS__, 0), \
                  STAVE_I_2ND(__VA_ARGS__, 0), __VA_ARGS__)
#define STAVE_INSTANT_DYN(...)                                             \
    STAVE_I_EVENT(STAVE_KIND_INSTANT, NAME, (STAVE_I_2ND(__VA_ARGS__, 0)), \
                  STAVE_I_1ST(__VA_ARGS__, 0), 0, __VA_ARGS__)
#define STAVE_INSTANT_ON(track, ...)                                               \
    STAVE_I_EVENT(STAVE_KIND_INSTANT, TRACK, (track), STAVE_I_1ST(__VA_ARGS__, 0), \
                  STAVE_I_2ND(__VA_ARGS__, 0), __VA_ARGS__)

/* The value of a counter of the process from now on. */
#define STAVE_COUNTER(cat, name, value) \
    STAVE_I_EVENT(STAVE_KIND_COUNTER, NONE, (0), cat, name, cat, name, "", value)
/* The same for a counter track. */
#define STAVE_COUNTER_ON(track, cat, value) \
    STAVE_I_EVENT(STAVE_KIND_COUNTER, TRACK, (track), cat, 0, cat, 0, "", value)
/* Adds to a counter of the process, whose value is the sum of all deltas. */
#define STAVE_COUNTER_ADD(cat, name, delta)                                                 \
    do {                                                                                    \
        STAVE_I_SITE(stave_i_s, STAVE_KIND_COUNTER, NONE, cat, name, 0, 0, "", (int64_t)0); \
        if (STAVE_I_ON(stave_i_s))                                                          \
            stave_i_add(&stave_i_s, (delta));                                               \
    } while (0)

/* A slice that was measured elsewhere: (track, category, name, start_ns, dur_ns, key, value, …).
 * Times are those of stave_now_ns(). */
#define stave_complete(track, cat, name, start_ns, ...)                                           \
    STAVE_I_EVENT(STAVE_KIND_COMPLETE, TIME, (track, start_ns, STAVE_I_1ST(__VA_ARGS__, 0)), cat, \
                  name, 0, __VA_ARGS__)

#endif
