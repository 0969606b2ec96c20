/* Who may read what is recorded: the mode of traces and of all files that belong to a recording.
 *
 * 0600 unless STAVE_MODE or --mode says otherwise: a trace has paths, command lines and host names.
 * Files that are made from a trace (convert, cut, plot …) follow the umask, as copies do. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/* STAVE_MODE, or 0600. */
mode_t sv_recording_mode(void);

/* "0640": reading for others as well, never writing. False: not such a mode. */
bool sv_recording_mode_parse(const char *text, mode_t *mode);

/* For programs that write nothing but recordings: the umask that gives every file this mode.
 * Returns the one before. */
mode_t sv_recording_umask(void);
