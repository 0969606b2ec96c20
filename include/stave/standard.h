/*
 * The check of the standard, included by stave.h first; nothing here is for users. Headers that
 * need C++17 check that themselves.
 */
#ifndef STAVE_STANDARD_H
#define STAVE_STANDARD_H

#ifdef __cplusplus
#if __cplusplus < 201103L
#error "stave/stave.h needs C++11: compile with -std=c++11 or newer"
#define STAVE_I_TOO_OLD
#endif
#elif !defined __STDC_VERSION__ || __STDC_VERSION__ < 199901L
#error "stave/stave.h needs C11: compile with -std=c11 or newer"
#define inline __inline__ /* so that this is the only message */
#define STAVE_I_TOO_OLD
#endif

#ifdef STAVE_I_TOO_OLD
#define STAVE_MACROS_H /* instead of macros.h */
#include <stave/too_old.h>
#endif

#endif
