/* The tables that leave Stave for other engines, with one fixed type per column.
 *
 * SQLite gives each value its own type; a column file or a server needs one per column, and the
 * same one for every rank. A value of another type is converted where nothing is lost by it (a
 * number becomes its decimal text); what cannot be converted becomes NULL and the caller counts it.
 * Columns have the names of docs/sql.md. Of `track` the hidden columns are there, too: the views
 * over tracks cannot be made without them. */
#pragma once

#include "core/base/buf.h"
#include "core/base/rows.h"

#include <stdbool.h>

enum sv_column_type { SV_COLUMN_INT = 'i', SV_COLUMN_REAL = 'r', SV_COLUMN_TEXT = 't' };

/* Every column may be NULL. */
struct sv_typed_column {
    char name[32];
    enum sv_column_type type;
};

#define SV_TYPED_COLUMNS_MAX 48 /* checked where the columns are read */

struct sv_typed_table {
    const char *name;
    const char *columns;    /* names with blanks between them; :real, :text, :any or an integer */
    const char *categories; /* of the slices that can be in it, as SQL lists them; NULL: of any */
};

size_t sv_typed_columns(const struct sv_typed_table *t,
                        struct sv_typed_column to[SV_TYPED_COLUMNS_MAX]);

/* The categories of the views over slices, here and in their definitions. */
#define SV_CALLS_COPY \
    "'sendfile', 'copy_file_range', 'splice'" /* they read `path`, write `path2` */
#define SV_CATEGORIES_IO     "'io', 'vfs', 'block', 'syscall', 'io_uring', 'aio'"
#define SV_CATEGORIES_KERNEL "'kernel', 'gpu_kernel', 'Kernel', 'mtia_ccp_events', 'hpu_op'"
#define SV_CATEGORIES_MEMCPY "'gpu_memcpy', 'gpu_memset', 'gpu_memory', 'memcpy', 'memset'"
#define SV_CATEGORIES_GPU_SLICE \
    "'kernel', 'gpu_kernel', 'Kernel', 'gpu_memcpy', 'gpu_memset', 'Memcpy', 'Memset'"
#define SV_CATEGORIES_BATCH       "'batch', 'batching', 'serving.life'"
#define SV_CATEGORIES_BATCH_SLICE "'batch', 'batching'"
#define SV_CATEGORIES_REQUEST     "'request', 'batching'"
#define SV_CATEGORIES_ENGINE      "'request', 'batching', 'serving', 'serving.life', 'serving.engine'"
#define SV_CATEGORIES_ENGINE_STEP "'batching', 'serving.life', 'serving.engine', 'user_annotation'"

extern const struct sv_typed_table sv_typed_tables[];
extern const size_t sv_n_typed_tables;

const struct sv_typed_table *sv_typed_table(const char *name); /* NULL: there is none */

/* Appends the columns as in CREATE TABLE: the declaration of a table of SQL that has just these. */
void sv_typed_declare(const struct sv_typed_table *t, struct sv_buf *sql);

/* Appends "SELECT "a", "b", … FROM "name"", the columns in their order. */
void sv_typed_select(const struct sv_typed_table *t, struct sv_buf *sql);

/* The value in the column's type; a text is in `text`, which is emptied first, or where it was.
 * False: it is NULL now, since the type cannot hold it. */
bool sv_typed_convert(enum sv_column_type type, struct sv_cell *cell, struct sv_buf *text);
