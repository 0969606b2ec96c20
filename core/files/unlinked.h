/* A temporary file without a name: gone when its descriptor is closed, also after a crash. */
#pragma once

/* In the directory; a descriptor for reading and writing, or -1 and errno. */
int sv_open_unlinked(const char *dir);
/* Where such files of a command are made: $TMPDIR, else /var/tmp, else /tmp. */
const char *sv_temporary_dir(void);
