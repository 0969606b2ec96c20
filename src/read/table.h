/* The result of a query in columns: what stave_read_query() gives. Texts are kept once each. */
#pragma once

#include "core/base/rows.h"

#include <stave/read.h>

/* A table that takes rows. When a second one begins, the first is forgotten: the last one
 * counts. */
struct stave_read_table *sv_read_table_new(void);
struct sv_rows_sink *sv_read_table_sink(struct stave_read_table *t);
