/* An image: a finished trace as a file of columns that is mapped instead of being read again.
 *
 *     struct sv_image_writer *w = sv_image_writer_new();
 *     sv_trace_put(trace, report, w);
 *     sv_image_add(w, "view.blocks", blocks, n * sizeof *blocks, sizeof *blocks);   // sections of
 *         others
 *     sv_image_write(w, fd, &key, NULL, NULL, err);
 *
 *     struct sv_image *im = sv_image_open(fd, &key);                // NULL: not this key, or
 *         damaged
 *     struct sv_trace *t = sv_trace_of_image(im, dict, report, 0);  // takes the image
 *     blocks = sv_image_find(sv_trace_image(t), "view.blocks", sizeof *blocks, &n);
 *
 * The file: a head, sections (each at a multiple of SV_IMAGE_ALIGN), a checksum for each
 * SV_IMAGE_CHUNK bytes of a section, a table of the sections. Numbers are as the machine has them
 * and structs as the compiler lays them out. Raise SV_IMAGE_VERSION when a stored struct or the
 * meaning of a section changes. Damage must never crash a reader: what is used as an index or a
 * length is checked, see sv_trace_check(). */
#pragma once

#include "core/base/report.h"
#include "store/trace.h"

#define SV_IMAGE_VERSION 6u
#define SV_IMAGE_ALIGN   ((size_t)4096)
#define SV_IMAGE_CHUNK   ((size_t)1 << 16)
#define SV_IMAGE_NAME    24u /* bytes, the end included */

/* What the image belongs to; the caller's own. */
struct sv_image_key {
    uint64_t words[12];
};

/* ---- writing ---- */

struct sv_image_writer;

struct sv_image_writer *sv_image_writer_new(void);
void sv_image_writer_free(struct sv_image_writer *w);
/* `bytes` must stay as they are until the writer is freed. An empty section exists, too. */
void sv_image_add(struct sv_image_writer *w, const char *name, const void *bytes, size_t size,
                  size_t item_size);
/* Zeroed memory for a section that is made for the file; it goes with the writer. */
void *sv_image_add_new(struct sv_image_writer *w, const char *name, size_t size, size_t item_size);
uint64_t sv_image_size(const struct sv_image_writer *w); /* of the file */
/* Writes to an empty file. A long one is on the disk afterwards. `stop` (may be NULL) is asked now
 * and then: true ends it with SV_EAGAIN. */
int sv_image_write(const struct sv_image_writer *w, int fd, const struct sv_image_key *key,
                   bool (*stop)(void *), void *ctx, struct sv_err *err);

/* ---- reading ---- */

struct sv_image;

/* Maps the file; NULL when it is no whole image of this version and key. Only head, table and
 * checksums are looked at. */
struct sv_image *sv_image_open(int fd, const struct sv_image_key *key);
/* The same of bytes in memory, which must outlive it. `key` may be NULL: any. */
struct sv_image *sv_image_of_bytes(const void *bytes, size_t size, const struct sv_image_key *key);
void sv_image_close(struct sv_image *im);

/* The items of a section, NULL when there is none of this name and size of items. An empty section
 * is not NULL. */
const void *sv_image_find(const struct sv_image *im, const char *name, size_t item_size,
                          uint64_t *n);

/* Section i with its name, NULL when there are no more. */
const char *sv_image_section(const struct sv_image *im, size_t i, const void **bytes,
                             uint64_t *size);

#define SV_IMAGE_QUICK 1u /* only short sections and samples of the long ones */
/* Compares with the checksums. `how`: 0 or SV_IMAGE_QUICK; `stop` as above. */
bool sv_image_verify(const struct sv_image *im, unsigned how, bool (*stop)(void *), void *ctx);
/* Puts all checksums right, for tests: what is behind them must not crash either. False: it is no
 * image at all. */
bool sv_image_seal(void *bytes, size_t size);

/* ---- traces ---- */

/* False: the trace cannot be kept (its dictionary is of a live source). */
bool sv_trace_put(const struct sv_trace *t, const struct sv_report *report,
                  struct sv_image_writer *w);
/* The trace whose columns lie in the image, which it takes in any case. `dict` and `report` are
 * empty and get what they had. NULL when something is odd; then both may be filled in part. */
struct sv_trace *sv_trace_of_image(struct sv_image *im, struct sv_dict *dict,
                                   struct sv_report *report, unsigned how);
/* What SV_IMAGE_QUICK leaves out: checksums of all pages, and that every number used as an index is
 * one. */
bool sv_trace_check(const struct sv_trace *t, unsigned how, bool (*stop)(void *), void *ctx);
const struct sv_image *sv_trace_image(const struct sv_trace *t); /* NULL: it was loaded */
