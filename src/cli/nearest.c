/* The nearest of some words, for messages about names that do not exist. Called by whatever checks
 * names that people write: options, verbs, keys of a configuration. */
#include "cli/nearest.h"

#include <string.h>

static size_t smallest(size_t a, size_t b, size_t c)
{
    size_t m = a < b ? a : b;
    return m < c ? m : c;
}

/* Levenshtein distance over two rows; words longer than the row are "far". */
static size_t distance(const char *a, const char *b)
{
    size_t row[64], n = strlen(b);
    if (n >= 64 || strlen(a) >= 64)
        return 64;
    for (size_t j = 0; j <= n; j++)
        row[j] = j;
    for (size_t i = 1; a[i - 1]; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= n; j++) {
            size_t above = row[j];
            row[j] = smallest(above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1]));
            diagonal = above;
        }
    }
    return row[n];
}

const char *sv_nearest(const char *word, const char *const *candidates, size_t n)
{
    const char *best = NULL;
    size_t best_distance = strlen(word) / 3 + 2;
    for (size_t i = 0; i < n; i++) {
        size_t d = distance(word, candidates[i]);
        if (strncmp(candidates[i], word, strlen(word)) == 0)
            d = d > 1 ? 1 : d; /* an abbreviation is near, however long the rest */
        if (d < best_distance) {
            best_distance = d;
            best = candidates[i];
        }
    }
    return best;
}
