/* Indexes: finished traces, kept in a folder of the user's cache so that a second program maps them
 * instead of reading the file again.
 *
 * An index belongs to one file as it was: device, inode, size, times, samples of its content, how
 * it was read, and by what was built from which sources. If anything of this is different or the
 * index is damaged, it is not used. It may be removed at any time. */
#pragma once

#include "files/open.h"
#include "store/image.h"

/* Of the sources that this was built from: others may read the same file differently. Made by
 * tools/cmake/sources_hash.cmake. */
extern const uint64_t sv_kept_build;

#define SV_KEPT_SLICES 200000u /* traces with fewer are read fast enough */

/* The file as it is now. */
struct sv_kept_key {
    struct sv_image_key image;
    uint64_t name;   /* of the index */
    bool is_known;   /* false: no index for what this is */
    bool is_settled; /* it was not changed just now, so that a change would be seen */
};
/* Unless `is_needed`, only if there is an index of this name: samples take a while on a slow
 * disk. */
void sv_kept_key(const char *path, const char *from, bool is_needed, struct sv_kept_key *key);

/* The trace from its index, NULL: there is none. Fills dictionary, report and format. how: enum
 * sv_image_how. */
struct sv_trace *sv_kept_open(const struct sv_kept_key *key, unsigned how, struct sv_dict **dict,
                              struct sv_report *report, const struct sv_format **format);
void sv_kept_remove(const struct sv_kept_key *key); /* it turned out to be damaged */

/* What an index is made of; others may add sections. NULL: none can be made. */
struct sv_image_writer *sv_kept_begin(const struct sv_trace *t, const struct sv_report *report,
                                      const struct sv_format *format);
/* Writes it under its name, removes the oldest ones where there are too many, and frees the writer.
 * A file that is not `path` as it was any more gets none. SV_EAGAIN: stopped. */
int sv_kept_end(struct sv_image_writer *w, const char *path, const char *from,
                const struct sv_kept_key *key, bool (*stop)(void *), void *ctx, struct sv_err *err);

/* From how many slices on every command makes an index (STAVE_INDEX_SLICES, for tests); UINT64_MAX:
 * it does not. */
uint64_t sv_kept_slices(void);
