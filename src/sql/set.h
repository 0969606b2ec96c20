/* The tables that a subject brings to every SQL connection, and what it keeps for one. */
#pragma once

#include "subjects/list.h"

struct sv_sql;
struct sv_sql_table;

struct sv_sql_set {
    const struct sv_sql_table *const *tables; /* NULL-terminated */
    int (*add_functions)(struct sv_sql *q);   /* a code of SQLite; may be NULL */
    void (*forget)(void *kept);               /* frees what the connection kept for it */
};

#define SV_SET_DECLARE(name, report, tables) \
    SV_IF_##tables(extern const struct sv_sql_set sv_##name##_tables;)
SV_SUBJECTS(SV_SET_DECLARE)
#undef SV_SET_DECLARE

/* Where the set keeps what it has made for this connection, which is NULL at first. */
void **sv_sql_kept(struct sv_sql *q, const struct sv_sql_set *set);
