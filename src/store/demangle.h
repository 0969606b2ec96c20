/* Names of C++ functions as people write them. */
#pragma once

#include <stdbool.h>

/* The caller frees it. NULL: not such a name, or this machine has no libstdc++. */
char *sv_demangle(const char *name);
bool sv_demangle_is_possible(void);
