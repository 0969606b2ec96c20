/* Writing to a descriptor until everything is written, and reading until everything is there. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A disk may take less than it is given, and a signal may come in between. False: errno says why
 * not all was written. */
bool sv_write_all(int fd, const void *bytes, size_t n);

/* The same at a place in the file, and reading from there; false without an error: it is
 * shorter. */
bool sv_write_all_at(int fd, const void *bytes, size_t n, uint64_t at);
bool sv_read_all_at(int fd, void *to, size_t n, uint64_t at);
