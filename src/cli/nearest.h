/* Did you mean …? The word that a user most likely wanted. */
#pragma once

#include <stddef.h>

/* The candidate nearest to word by edit distance, NULL when none is near. */
const char *sv_nearest(const char *word, const char *const *candidates, size_t n);
