/*
 * The macros of macros.h for compilers that are too old for them: after an #error they do nothing,
 * so that it is the only message.
 */
#ifndef STAVE_TOO_OLD_H
#define STAVE_TOO_OLD_H

#ifdef STAVE_I_TOO_OLD /* defined with the #error */
#define STAVE_SCOPE(...)       (void)0
#define STAVE_SCOPE_DYN(...)   (void)0
#define STAVE_SCOPE_ON(...)    (void)0
#define STAVE_FUNC()           (void)0
#define STAVE_FUNC_ARGS(...)   (void)0
#define STAVE_BEGIN(...)       (void)0
#define STAVE_BEGIN_DYN(...)   (void)0
#define STAVE_BEGIN_ON(...)    (void)0
#define STAVE_END(...)         (void)0
#define STAVE_END_ON(...)      (void)0
#define STAVE_INSTANT(...)     (void)0
#define STAVE_INSTANT_DYN(...) (void)0
#define STAVE_INSTANT_ON(...)  (void)0
#define STAVE_COUNTER(...)     (void)0
#define STAVE_COUNTER_ON(...)  (void)0
#define STAVE_COUNTER_ADD(...) (void)0
#define stave_complete(...)    (void)0
#endif

#endif
