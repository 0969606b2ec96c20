/* Relations between hosts from files of their own (`stave sync -o`), for `stave merge
 * --relation`. */
#pragma once

#include "cli/command.h"
#include "clocks/relation.h"

/* All of them, or the first that cannot be read. */
int sv_relations_load(const struct sv_words *paths, struct sv_relation **out, size_t *n,
                      struct sv_err *err);
void sv_relations_free(struct sv_relation *relations, size_t n);
