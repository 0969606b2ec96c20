/* Names of C++ functions as people write them. */
#ifndef SV_RECORD_STACKS_DEMANGLE_H
#define SV_RECORD_STACKS_DEMANGLE_H

#include <stdbool.h>

/* The caller frees it. NULL: not such a name, or this machine has no libstdc++. */
char *sv_demangle(const char *name);
bool sv_demangle_is_possible(void);

#endif
