/* Writing to a descriptor until everything is written. */
#ifndef SV_CORE_FILES_WRITE_ALL_H
#define SV_CORE_FILES_WRITE_ALL_H

#include <stdbool.h>
#include <stddef.h>

/* A disk may take less than it is given, and a signal may come in between. False: errno says why
 * not all was written. */
bool sv_write_all(int fd, const void *bytes, size_t n);

#endif
