/* The files that a command line means: those that it names, and all below the folders that it
 * names. */
#pragma once

#include "core/files/input.h"
#include "formats/formats.h"

#define SV_FILES_MAX   10000u
#define SV_FOLDERS_MAX 8 /* levels */

struct sv_found {
    char *path;
    const struct sv_format *format; /* for the command: NULL: unknown, or left out */
    const char *covered_by;         /* left out: the file that says the same and more, borrowed */
    bool was_found;                 /* in a folder, not named by the user */
    bool is_reported;               /* why it was left out was printed */
    bool has_columns;               /* --columns describes it */
    unsigned needs;                 /* enum sv_needs */
    struct sv_holds holds;
    unsigned covered_subjects; /* of enum sv_covers: other files hold them */
    bool is_member;            /* of an archive: `part` of `fd`, and `path` is no file */
    int fd;
    struct sv_piece part;
};

struct sv_files {
    struct sv_found *items;
    size_t n, cap;
    size_t too_many, too_deep;
    const char *output; /* no input, even if an earlier run left it in the folder */
    int *stores;        /* what members of archives are parts of */
    size_t n_stores, stores_cap;
    size_t n_links; /* in archives, and devices: not read, but there is nothing in them */
    size_t
        /* members of archives, or ends of archives, that were not read; each was reported */
        refused;
};

void sv_files_add(struct sv_files *f, const char *path, bool was_found);
/* A file, or all below a folder, in the order of their names; not through links, so that a circle
 * ends. `depth` 0: the user named it. */
int sv_files_walk(struct sv_files *f, const char *path, int depth, struct sv_err *err);
/* The bytes of one of them. */
int sv_found_open(const struct sv_found *file, struct sv_input **in, struct sv_err *err);
void sv_files_free(struct sv_files *f);
bool sv_is_folder(const char *path);
