/* Requests to ClickHouse over its HTTP interface, by libcurl. Without libcurl in the build
 * sv_ch_open() says so.
 *
 *     code = sv_ch_open(&target, &c, err);
 *     code = sv_ch_ask(c, host, SV_CH_READ, "SELECT 1", 8, &take, err);       // waits for the
 *         answer
 *     code = sv_ch_insert(c, host, "INSERT INTO … FORMAT RowBinary", &body, err);   // goes on
 *         meanwhile
 *     code = sv_ch_finish(c, err);                                             // every insert was
 *         accepted
 *     sv_ch_close(c);
 *
 * No redirection is followed, no proxy is used, and an insert never goes over a connection that was
 * used before: libcurl would send it a second time when the server closes such a connection. What
 * the server says is bounded. Errors hold the server's own words: SV_EUSAGE where they are about
 * the statement, else SV_EIO. */
#pragma once

#include "clickhouse/target.h"
#include "core/base/buf.h"

#include <stddef.h>

struct sv_ch;

enum sv_ch_how {
    SV_CH_READ = 1,        /* the statement may change nothing */
    SV_CH_NO_DATABASE = 2, /* it makes the database */
    SV_CH_ONCE = 4         /* twice would be wrong: an insert */
};

/* Takes the answer as it comes; a negative code ends the request. */
struct sv_ch_take {
    int (*bytes)(struct sv_ch_take *take, const char *data, size_t n, struct sv_err *err);
};

int sv_ch_open(const struct sv_ch_target *t, struct sv_ch **out, struct sv_err *err);
void sv_ch_close(struct sv_ch *c); /* ends what is under way */
const struct sv_ch_target *sv_ch_target_of(const struct sv_ch *c);

/* host NULL: the URL's. take NULL: the answer does not matter. Answers have the form
 * TabSeparatedWithNamesAndTypes. */
int sv_ch_ask(struct sv_ch *c, const char *host, unsigned how, const char *sql, size_t len,
              struct sv_ch_take *take, struct sv_err *err);
/* The body (packed by pack.h) becomes the client's, also on failure. Waits while SV_CH_INSERTS_MAX
 * are under way. */
enum { SV_CH_INSERTS_MAX = 4 };
int sv_ch_insert(struct sv_ch *c, const char *host, const char *sql, struct sv_buf *body,
                 struct sv_err *err);
int sv_ch_go_on(struct sv_ch *c, struct sv_err *err); /* moves bytes, waits for nothing */
int sv_ch_finish(struct sv_ch *c,
                 struct sv_err *err); /* returns when none is under way, also after a failure */
void sv_ch_forget(struct sv_ch *c);   /* the same; what failed does not matter any more */

/* The first line of what the server says of a failure, printable bytes of it, and the number after
 * "Code: " (0: none). */
int sv_ch_words(const char *body, size_t n, char *to, size_t size);
/* Whether an error with this number is about the statement. */
bool sv_ch_is_about_sql(int number);
