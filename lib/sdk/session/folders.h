/* Where sessions are: the folders in which traced programs and recorders make theirs, and where
 * recovery looks for them. */
#pragma once

#include "core/files/own_folder.h"
#include "sdk/ring/session_layout.h"

#include <stdbool.h>
#include <stddef.h>

/* Three usual ones, and those that this user has beside one of them because another user took its
 * name (core/files/own_folder.h). */
enum { SV_FOLDERS_USUAL = 3, SV_FOLDERS_MAX = SV_FOLDERS_USUAL * (1 + SV_OWN_OTHERS_MAX) };

struct sv_folder {
    char path[SV_PATH_MAX];
    bool is_given; /* by STAVE_SESSION_DIR: may be a folder that several users share */
};

/* In the order of preference; the one that was given, if one was. The usual ones are listed also if
 * they are not this user's. */
size_t sv_folders(struct sv_folder to[static SV_FOLDERS_MAX]);

/* A descriptor of the folder, which is made if it is not there and `makes`. -1: errno says why;
 * EPERM: it is not this user's alone. */
int sv_folder_open(const struct sv_folder *f, bool makes);

/* Makes the folder of a new session, NAME or NAME and a number, in the first folder that can be
 * used and that does not hold the path `not_in` (NULL: any). Its path goes to `path`. Returns its
 * descriptor or -1. */
int sv_folder_for_session(const char *name, const char *not_in, char *path, size_t size);
/* The same in the folder `base`, whose path is `base_path`. */
int sv_folder_in(int base, const char *base_path, const char *name, char *path, size_t size);
