/* Fills empty tables and indexes of a SQLite file with entries that are sorted already: pages one
 * after the other, from the leaves up.
 *
 *     struct sv_tree_file *f;
 *     code = sv_tree_file_open(path, &f, err);              // no connection may have the file open
 *     code = sv_tree_fill(f, root, &(struct sv_page_tree){…}, err);
 *     code = sv_tree_file_close(f, err);                    // the header says how many pages there
 *                                                           are now
 *
 * SQLite itself would look for the place of each entry or sort them first. The format is
 * https://sqlite.org/fileformat2.html; entries that would need overflow pages are not supported:
 * see sv_tree_payload_max(). */
#pragma once

#include "core/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sv_tree_file;

struct sv_page_tree {
    bool is_index;
    uint64_t n;
    /* Writes the record of entry i (its bytes are at most sv_tree_payload_max()) and returns its
     * length; of a table, entry i is row i + 1. */
    size_t (*record)(void *ctx, uint64_t i, uint8_t *out);
    void *ctx;
};

/* Anything but a file that SQLite just made with pages of 4096 bytes is refused with SV_ELIMIT. */
int sv_tree_file_open(const char *path, struct sv_tree_file **out, struct sv_err *err);
int sv_tree_fill(struct sv_tree_file *f, uint32_t root, const struct sv_page_tree *tree,
                 struct sv_err *err);
int sv_tree_file_close(struct sv_tree_file *f, struct sv_err *err);

size_t sv_tree_payload_max(bool is_index);

/* Parts of a record. A record is a header (its own length and a type for each value) and the
 * values. */
size_t sv_tree_put_varint(uint8_t *out, uint64_t v);
unsigned sv_tree_int_type(int64_t v);                           /* the smallest that holds it */
size_t sv_tree_put_int(uint8_t *out, unsigned type, int64_t v); /* returns its length */
