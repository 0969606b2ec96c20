/* Where a ClickHouse database is, and who asks: the URL and the credentials.
 *
 *     clickhouse://HOST[:PORT]/DATABASE[?cluster=NAME][&secure=1]        clickhouses://… is the
 *         same with secure=1
 *
 * PORT is that of the HTTP interface (8123, with TLS 8443). A user or a password in the URL is
 * refused: command lines are visible to other users and kept in histories. They come from
 * STAVE_CLICKHOUSE_USER and STAVE_CLICKHOUSE_PASSWORD, or from a file that only its owner can
 * read. */
#pragma once

#include "core/base/err.h"

#include <stdbool.h>
#include <stdint.h>

enum { SV_CH_NAME_MAX = 64, SV_CH_HOST_MAX = 256, SV_CH_SECRET_MAX = 256 };

struct sv_ch_target {
    char host[SV_CH_HOST_MAX]; /* an IPv6 address with its brackets */
    uint16_t port;
    bool is_secure;
    char database[SV_CH_NAME_MAX], cluster[SV_CH_NAME_MAX]; /* cluster "": none */
    char user[SV_CH_SECRET_MAX], password[SV_CH_SECRET_MAX];
};

/* Everything but the credentials. SV_EUSAGE says what is wrong; it never repeats what could be a
 * password. */
int sv_ch_target_parse(const char *url, struct sv_ch_target *t, struct sv_err *err);
/* From the environment, else from the file; neither: the server's default user. */
int sv_ch_credentials(struct sv_ch_target *t, struct sv_err *err);

/* A name that may be in a URL: an address, or letters, digits, '.', '-', '_'. Also for what a
 * server says of its cluster. */
bool sv_ch_host_is_valid(const char *host);
