/* An archive as a folder: its files are found as those of a folder are. */
#pragma once

#include "files/found.h"

/* Adds the files in the archive `path` (tar, also compressed by gzip or zstd) as "path/NAME", in
 * the order of a folder's. 1: it is an archive; 0: it is none, and nothing was done. What cannot be
 * taken is reported, and counted in f->refused; with `strict` damage is an error. */
int sv_files_archive(struct sv_files *f, const char *path, bool strict, struct sv_err *err);
/* A regular file that begins like one. */
bool sv_is_archive(const char *path);
