/* A table of descriptors of the writer thread's own.
 *
 * Descriptors belong to the process: a program that closes all of them (closefrom, close_range)
 * closes the writer's, too, and what it opens next gets their numbers. So the writer thread takes a
 * table of its own when it starts, before it opens anything, and with it a root and a working
 * directory that chroot() and chdir() do not change. It keeps nothing that is the program's: a pipe
 * whose end it held would never report its end.
 *
 * Where the kernel or a filter refuses that, the writer shares the program's table and looks at
 * each descriptor before it uses it (core/files/file_id.h). */
#pragma once

#include <stdbool.h>

struct sv_process;

/* For the writer thread, as its first step. Of the program's descriptors only `keep` stays. False:
 * the table is shared, as before. */
bool sv_own_table_take(int keep);
bool sv_own_table_is(void); /* of the calling thread: does it have one? */
/* In a thread of the program: prints the line that the writer could not print, if there is one.
 * Async-signal-safe. */
void sv_own_table_say(struct sv_process *p);
