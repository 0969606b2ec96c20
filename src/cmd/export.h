/* The forms of `stave export`: what each is called, what it takes, and what writes it. Each is one
 * `const struct sv_export_form` in its own file; export_forms.h is the only list of them. Help,
 * completion, errors and the table in docs/formats.md are made from it. */
#pragma once

#include "cli/command.h"
#include "files/range.h"
#include "files/rotation.h"
#include "sql/sql.h"
#include "store/trace.h"

struct sv_output;

struct sv_export_options {
    const char *from, *to, *output;
    const char *run, *rank; /* NULL: as the traces say */
    bool strict, assume, force, no_index;
    uint64_t memory_limit, retry_s;
    struct sv_words categories;
    struct sv_range range; /* always empty: each form has its own way to read parts */
};

struct sv_export_form {
    const char *name;     /* what --to takes */
    const char *help;     /* one line */
    const char *about;    /* a paragraph of the verb's description; NULL: none */
    const char *suffixes; /* of outputs that choose it, blanks between them; NULL: none does */
    const char *options;  /* of the verb, that this form takes and others do not; NULL: none */
    bool needs_no_sqlite;
    bool to_stdout;   /* can be written there */
    bool to_folder;   /* which may be there already */
    bool is_database; /* the output is clickhouse://… */
    int (*check)(const struct sv_export_options *o, struct sv_err *err); /* of the output; NULL */
    /* One of these. All traces as one: their tables, or the store. Or each by itself, a recording
     * with all its parts. */
    int (*write_tables)(const struct sv_export_options *o, struct sv_sql *q, struct sv_err *err);
    int (*write_trace)(const struct sv_export_options *o, const struct sv_trace *t,
                       struct sv_err *err);
    int (*write_each)(const struct sv_export_options *o, const struct sv_rotations *traces,
                      struct sv_err *err);
};

#define SV_EXPORT_FORM(id) extern const struct sv_export_form sv_export_##id;
#include "cmd/export_forms.h"
#undef SV_EXPORT_FORM
extern const struct sv_export_form *const sv_export_forms[]; /* NULL-terminated */

/* Ends the file; `code` is that of what was written to it. */
int sv_export_end(struct sv_output *out, int code, struct sv_err *err);
