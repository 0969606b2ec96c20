/*
 * Reading traces in process: SQL, reports and pictures, over the same store and index as the
 * program `stave`. Link with libstave-read (pkg-config stave-read); libstave is not needed.
 *
 *     struct stave_error error;
 *     const char *path = "run.pftrace";
 *     struct stave_read *trace = stave_read_open(&path, 1, NULL, &error);
 *     struct stave_read_table *t =
 *         stave_read_query(trace, "SELECT name, sum(dur) FROM slice GROUP BY name", &error);
 *     const struct stave_read_column *sum = stave_read_column(t, 1);
 *     for (size_t row = 0; row < stave_read_n_rows(t); row++)
 *         use(stave_read_text(t, 0, row, NULL), sum->ints[row]);
 *     stave_read_table_free(t);
 *     stave_read_close(trace);
 *
 * Any thread may use a handle; calls on one handle wait for each other, calls on different handles
 * run at the same time. Nothing is printed. A table stays valid after its trace is closed. When
 * memory is exhausted the process is aborted: give `memory_limit` to get an error before that.
 */
#ifndef STAVE_READ_H
#define STAVE_READ_H

#include <stave/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct stave_read;
struct stave_read_table;

/* Every member left 0 means the default. */
struct stave_read_options {
    size_t size;           /* sizeof(struct stave_read_options) */
    const char *from;      /* format; NULL: by content */
    bool strict;           /* damage is an error */
    bool assume;           /* of several traces whose clocks cannot be related: times as they are */
    bool no_index;         /* neither use nor make an index in the user's cache */
    uint64_t memory_limit; /* bytes for the loaded trace; 0: none */
    unsigned threads;      /* that load it, 64 at most; 0: the CPUs that the process may use */
};

/* The version of the library: "1.2.3". */
STAVE_API const char *stave_read_version(void);

/* Loads traces; several ones are put together as `stave merge` does it. What was found in the files
 * (damage, content that was left out) is in the SQL table `stats`. */
STAVE_API struct stave_read *stave_read_open(const char *const *paths, size_t n,
                                             const struct stave_read_options *options,
                                             struct stave_error *error);
STAVE_API void stave_read_close(struct stave_read *r); /* NULL is allowed */

/* How often the files were damaged; 0: not at all. */
STAVE_API uint64_t stave_read_damage(struct stave_read *r);

/* ---- SQL ---- */

/* Runs all statements (docs/sql.md); the result is the table of the last one that has columns, or
 * an empty table without columns. Tables and views that statements create stay until the trace is
 * closed. */
STAVE_API struct stave_read_table *stave_read_query(struct stave_read *r, const char *sql,
                                                    struct stave_error *error);
/* A value for a parameter of SQL. */
struct stave_read_value {
    const char *name; /* without ':', '@' or '$'; NULL in all: ?, ?1 and so on, in order */
    int type;         /* enum stave_read_type */
    int64_t i;
    double real;
    const char *bytes; /* of a text or blob */
    size_t len;
};
/* The same with values for parameters, which are never read as SQL. */
STAVE_API struct stave_read_table *stave_read_query_with(struct stave_read *r, const char *sql,
                                                         const struct stave_read_value *values,
                                                         size_t n, struct stave_error *error);
/* Ends the statement that another thread runs, soon. */
STAVE_API void stave_read_interrupt(struct stave_read *r);
STAVE_API void stave_read_table_free(struct stave_read_table *t); /* NULL is allowed */

enum stave_read_type {
    STAVE_READ_NULL,
    STAVE_READ_INT,
    STAVE_READ_REAL,
    STAVE_READ_TEXT,
    STAVE_READ_BLOB,
    STAVE_READ_MIXED /* of a column: its cells are of several types */
};

/* A column as arrays with one element per row; valid until the table is freed. */
struct stave_read_column {
    const char *name;
    int type;             /* enum stave_read_type, NULLs aside */
    bool has_nulls;       /* there are cells without a value */
    const uint8_t *types; /* of the cells: enum stave_read_type; 0 is NULL */
    /* The values in 8 bytes each: integers, or doubles where the cell is one; of texts and blobs
     * the number for stave_read_texts(). 0 for NULL. */
    const int64_t *ints;
    const double *reals; /* the same bytes */
};

STAVE_API size_t stave_read_n_rows(const struct stave_read_table *t);
STAVE_API size_t stave_read_n_columns(const struct stave_read_table *t);
/* NULL when there is no such column. */
STAVE_API const struct stave_read_column *stave_read_column(const struct stave_read_table *t,
                                                            size_t column);
/* A text or blob, terminated; NULL for other cells. `len` may be NULL. */
STAVE_API const char *stave_read_text(const struct stave_read_table *t, size_t column, size_t row,
                                      size_t *len);
/* All different texts of the table, each with a zero byte after it: text i ends before ends[i], the
 * next one begins at ends[i] + 1. Returns their number. */
STAVE_API size_t stave_read_texts(const struct stave_read_table *t, const char **bytes,
                                  const uint64_t **ends);

/* ---- reports and pictures ---- */

/* What `stave report SUBJECT --json` prints (io, gpu, batch, comm); at most `rows` rows of each
 * table, 0: all. To be freed with stave_read_free(). */
STAVE_API char *stave_read_report(struct stave_read *r, const char *subject, size_t rows,
                                  size_t *len, struct stave_error *error);

/* What slows the run down, as `stave explain --json` prints it (docs/why.md). `unit`: the name or
 * glob of the slices that are the units, NULL: found. To be freed with stave_read_free(). */
STAVE_API char *stave_read_explain(struct stave_read *r, const char *unit, size_t *len,
                                   struct stave_error *error);

/* Every member left 0 means the default. */
struct stave_read_plot {
    size_t size; /* sizeof(struct stave_read_plot) */
    const char
        *kind; /* timeline (the default), flame, hist, counter, steps, layers, gpu, comm, llm */
    const char *const *names; /* of slices (hist) or counters */
    size_t n_names;
    const char *title;
    int64_t from_ns, to_ns; /* window, since the start of the trace; both 0: all */
    unsigned width, height; /* in pixels */
    size_t top;             /* only the largest rows, counters, steps */
};
/* The picture as SVG. To be freed with stave_read_free(). */
STAVE_API char *stave_read_svg(struct stave_read *r, const struct stave_read_plot *plot,
                               size_t *len, struct stave_error *error);
/* The picture as "svg", "png" or "pdf". PNG and PDF need cairo (libcairo.so.2), which is loaded by
 * the first call; without it STAVE_EUSAGE. `scale`: pixels of a PNG per pixel of the picture, 0: 1.
 * To be freed with stave_read_free(). */
STAVE_API char *stave_read_picture(struct stave_read *r, const struct stave_read_plot *plot,
                                   const char *form, double scale, size_t *len,
                                   struct stave_error *error);
STAVE_API void stave_read_free(char *text);

#ifdef __cplusplus
}
#endif

#endif
