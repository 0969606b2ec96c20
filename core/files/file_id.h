/* Which file a descriptor is, so that one of ours is not confused with another under its number.
 *
 * The library's descriptors are in a table that belongs to the program, which may close all of them
 * (closefrom) and open others under the same numbers. What is kept open for long is looked at
 * before it is used, and closed only when it is still the same file. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

struct sv_file_id {
    dev_t device;
    ino_t inode; /* with device 0 as well: none */
};

struct sv_file_id sv_file_id_of(int fd);
bool sv_file_id_is(int fd, const struct sv_file_id *id);
/* Closes it if it is that file. 0, or -1 with errno as of close(); EBADF: it is not. */
int sv_file_id_close(int fd, const struct sv_file_id *id);
/* The same file under a high number, where it is in nobody's way: programs expect low ones for what
 * they open. The old number is closed. Where that cannot be, the descriptor itself. */
int sv_file_id_move_up(int fd);
