/* Writing to a descriptor until everything is written. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* A disk may take less than it is given, and a signal may come in between. False: errno says why
 * not all was written. */
bool sv_write_all(int fd, const void *bytes, size_t n);
