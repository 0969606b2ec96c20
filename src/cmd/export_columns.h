/* What the exports share that take many traces, one after the other: a folder of column files, an
 * archive for Perfetto. */
#pragma once

#include "cli/command.h"
#include "core/stream/dict.h"
#include "sql/sql.h"
#include "sql/typed.h"

/* Refuses a merged trace: it has one axis and many ranks. */
int sv_export_check_rank(const struct sv_dict *dict, struct sv_err *err);

/* One table as a Parquet file. *n_unfit grows by the values that its types cannot hold. */
int sv_parquet_table(struct sv_sql *q, const struct sv_trace *t, const struct sv_typed_table *table,
                     const char *path, uint64_t *n_unfit, struct sv_err *err);
