/* Names of listeners: see stream_address.h. */
#include "sdk/session/stream_address.h"

#include <stdlib.h>
#include <string.h>

bool sv_stream_is(const char *out)
{
    return strncmp(out, "unix:", 5) == 0 || strncmp(out, "tcp:", 4) == 0;
}

socklen_t sv_stream_parse(const char *out, union sv_stream_address *a)
{
    memset(a, 0, sizeof *a);
    if (out[0] == 'u') {
        size_t n = strlen(out + 5);
        if (n == 0 || n >= sizeof a->local.sun_path)
            return 0;
        a->local.sun_family = AF_UNIX;
        memcpy(a->local.sun_path, out + 5, n);
        return (socklen_t)sizeof a->local;
    }
    const char *colon = strrchr(out + 4, ':');
    char host[64], *end;
    if (!colon || (size_t)(colon - out - 4) >= sizeof host)
        return 0;
    memcpy(host, out + 4, (size_t)(colon - out - 4));
    host[colon - out - 4] = '\0';
    unsigned long port = strtoul(colon + 1, &end, 10);
    a->inet.sin_family = AF_INET;
    a->inet.sin_port = htons((uint16_t)port);
    bool ok = inet_pton(AF_INET, strcmp(host, "localhost") == 0 ? "127.0.0.1" : host,
                        &a->inet.sin_addr) == 1;
    return ok && *end == '\0' && port > 0 && port < 65536 ? (socklen_t)sizeof a->inet : 0;
}

const char *sv_stream_check(const char *out)
{
    union sv_stream_address a;
    return sv_stream_parse(out, &a) ? NULL : "expected unix:PATH or tcp:ADDRESS:PORT";
}
