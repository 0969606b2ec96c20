/* The subjects that Stave knows, one line each: SUBJECT(NAME, REPORT, TABLES).
 *
 * All that is known of a subject (words, figures, tables, sections, pictures, page) is in its
 * folder, subjects/NAME/. REPORT is HAS where it makes sv_NAME_report (subjects/subject.h), TABLES
 * where it makes sv_NAME_tables (sql/set.h), else NONE. Every part may include this: it has names
 * only. The order is that of `stave report --help`. */
#pragma once

#define SV_SUBJECTS(SUBJECT)   \
    SUBJECT(io, HAS, NONE)     \
    SUBJECT(gpu, HAS, HAS)     \
    SUBJECT(ops, HAS, HAS)     \
    SUBJECT(serving, HAS, HAS) \
    SUBJECT(engine, HAS, HAS)  \
    SUBJECT(comm, HAS, HAS)    \
    SUBJECT(wait, HAS, HAS)    \
    SUBJECT(steps, NONE, HAS)

/* Their text where a subject has such a thing, and nothing where it has none. */
#define SV_IF_HAS(...) __VA_ARGS__
#define SV_IF_NONE(...)
