/* One line of a CSV file as fields: quotes are taken off, doubled ones become one.
 *
 *     struct sv_csv_line line = {0};
 *     if (sv_csv_split(&line, p, len)) … line.fields[i] …      valid until the next split
 *     sv_csv_fini(&line);
 *
 * A field does not continue in the next line: none of the servers' files has such ones. */
#pragma once

#include "core/stream/dict.h"

#include <stdbool.h>

#define SV_CSV_FIELDS_MAX 64u

struct sv_csv_line {
    struct sv_text fields[SV_CSV_FIELDS_MAX];
    size_t n;
    char *texts; /* of quoted fields */
    size_t cap_texts, n_texts;
};

/* False (and no fields): a quote that is not closed, something after one, or too many fields. */
bool sv_csv_split(struct sv_csv_line *line, const char *p, size_t len);
/* A field that Stave's own writers made of a text (core/base/csv_text.h), as that text. Valid until
 * the next split; to be asked once for each field. */
struct sv_text sv_csv_own_text(struct sv_csv_line *line, size_t field);
void sv_csv_fini(struct sv_csv_line *line);

/* place[k]: the field that is called names[k], -1: none. A mark of UTF-8 before the first name is
 * passed over. */
void sv_csv_find(const struct sv_csv_line *head, const char *const *names, size_t n, int *place);
/* The names that were not found, with commas, cut to `cap` bytes. Returns how many there are. */
size_t sv_csv_missing(const char *const *names, const int *place, size_t n, char *out, size_t cap);
