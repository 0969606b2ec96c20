/* A shared library that is loaded by its name when it is first used: a program that does not use
 * it starts sooner, and runs where it is not installed.
 *
 *     #define FUNCTIONS(F) F(cairo_create) F(cairo_destroy)
 *     static struct { FUNCTIONS(SV_LATE_MEMBER) } lib;
 *     static const char *const names[] = {FUNCTIONS(SV_LATE_NAME)};
 *     if (!sv_late_load("libcairo.so.2", "libcairo2", names, N, &lib, why, sizeof why)) …
 *     lib.cairo_create(…); */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define SV_LATE_MEMBER(name) __typeof__(name) *name;
#define SV_LATE_NAME(name)   #name,

/* Finds the n functions and writes their addresses one after the other to `functions`. The library
 * stays loaded. False: `why` says what to install (`package` is Debian's name). */
bool sv_late_load(const char *soname, const char *package, const char *const *names, size_t n,
                  void *functions, char *why, size_t size);
