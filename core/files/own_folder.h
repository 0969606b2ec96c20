/* Folders of this user in places where everybody may make names (/dev/shm, /tmp).
 *
 * BASE/NAME is the usual one. Another user can make that name first; then this user has
 * BASE/NAME.RANDOM, which nobody can know before, and who looks for it finds it by its beginning
 * and its owner. Called by the SDK for sessions and by the recorder for its list, and by those who
 * read them. No memory is allocated. */
#pragma once

#include <stddef.h>

enum { SV_OWN_OTHERS_MAX = 4, SV_OWN_NAME_MAX = 64 };

/* The names BASE/NAME.… that are folders of this user alone; how many. */
size_t sv_own_others(const char *base, const char *name,
                     char to[static SV_OWN_OTHERS_MAX][SV_OWN_NAME_MAX]);

/* Such a folder, made if there is none; its name goes to `made`. A descriptor or -1 with errno. */
int sv_own_other(const char *base, const char *name, char made[static SV_OWN_NAME_MAX]);
