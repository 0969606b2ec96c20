/* Copies of the library: libstave.a is in each program and plugin that links it, and a plugin may
 * be unloaded (docs/decisions/0016). */
#pragma once

#include <stdbool.h>

/* Is this a copy in a shared object, which may go and come again? libstave.so itself is never
 * unloaded. */
bool sv_is_in_plugin(void);
