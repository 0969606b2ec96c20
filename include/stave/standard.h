/*
 * The check of the C standard, included by stave.h first; nothing here is for users. stave.hpp checks
 * that of C++.
 */
#ifndef STAVE_STANDARD_H
#define STAVE_STANDARD_H

#if !defined __cplusplus && (!defined __STDC_VERSION__ || __STDC_VERSION__ < 199901L)
#error "stave/stave.h needs C11: compile with -std=c11 or newer"
#define inline __inline__ /* so that this is the only message */
#define STAVE_MACROS_H    /* instead of macros.h */
#define STAVE_I_TOO_OLD
#include <stave/too_old.h>
#endif

#endif
