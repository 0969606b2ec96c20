/* The one place that opens SQLite, and what a connection may do.
 *
 * SQL text is hostile input, and so is a database file that another made: SQLite itself has
 * functions that take and give addresses (fts3_tokenizer), virtual tables that parse bytes of the
 * database (fts, rtree, dbstat), statements that open files. A connection of ours has none of them:
 * what is allowed is listed here, by name, and everything else is refused when a statement is
 * prepared.
 *
 *     sv_sandbox_open(&x, flags)     a database in memory; its owner adds tables, functions and
 *                                    views of its own
 *     sv_sandbox_seal(&x)            from now on statements are not ours
 *     sv_sandbox_trust(&x, true) … sv_sandbox_trust(&x, false)    around statements of our own that
 *         write a file
 *     sv_sandbox_close(&x)
 *
 * sv_sandbox_open_foreign() opens a database file of somebody else, from which plain tables are
 * read and nothing else is done. */
#pragma once

#include "core/base/buf.h"

#ifdef SV_HAVE_SQLITE
#include <sqlite3.h>

/* Views that statements of one connection may make: SQLite resolves a chain of views by
 * recursion. */
#define SV_SANDBOX_VIEWS_MAX 500

struct sv_sandbox {
    sqlite3 *db;
    struct sv_buf
        refused; /* functions that SQLite brought and that are not allowed; each ends with a NUL */
    unsigned n_views;
    bool has_too_many_views; /* why the last statement was refused */
    bool is_trusted;
};

/* Both return SQLite's code; the database exists, for its message, unless memory is short. */
int sv_sandbox_open(struct sv_sandbox *x, int flags);
int sv_sandbox_seal(struct sv_sandbox *x);
void sv_sandbox_trust(struct sv_sandbox *x, bool is_trusted);
void sv_sandbox_close(struct sv_sandbox *x);

/* Whether statements may define a function of this name: not if SQLite has one that they may not
 * call. */
bool sv_sandbox_may_define(const struct sv_sandbox *x, const char *name);

/* A database that another made: a file by its URI or, without one, bytes that must outlive the
 * connection. Read-only. SQLite's code; close it with sqlite3_close(), also if it failed. */
int sv_sandbox_open_foreign(const char *uri, void *bytes, size_t size, sqlite3 **db);

#endif
