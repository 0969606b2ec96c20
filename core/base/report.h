/* What a reader reports to the user: damage, unusual content, content that the model cannot
 * represent.
 *
 * One row per kind of finding, with its count and the first byte position. Readers add while they
 * read; cmd/ prints the rows at the end and turns damage into an exit code under --strict. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum sv_severity {
    SV_NOTE,    /* fine, but worth saying (an unusual form that was understood) */
    SV_SKIPPED, /* well-formed content that Stave cannot represent, counted by kind */
    SV_DAMAGE   /* the input is broken here; what could be recovered was */
};

struct sv_finding {
    enum sv_severity severity;
    /* "truncated packet", "ftrace_events packet"; the identity of the row, with severity */
    char *what;
    uint64_t count;
    int64_t first_pos;  /* byte position in the decompressed input, SV_NO_POS when it has none */
    char *first_detail; /* of the first one, or NULL: "expected ':' after key" */
};

struct sv_report {
    struct sv_finding *rows;
    size_t n, cap;
};

void sv_report_init(struct sv_report *r);
void sv_report_fini(struct sv_report *r);

/* `what` is copied when it is new. */
void sv_report_add(struct sv_report *r, enum sv_severity severity, const char *what, uint64_t count,
                   int64_t pos, const char *detail_fmt, ...) __attribute__((format(printf, 6, 7)));
uint64_t sv_report_count(const struct sv_report *r, enum sv_severity severity);
