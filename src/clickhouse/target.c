/* The URL of a database taken apart, and the credentials for it. Called by the commands before
 * anything is sent. */
#include "clickhouse/target.h"

#include "core/files/trusted.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FORM "clickhouse://HOST:PORT/DATABASE[?cluster=NAME]"

static bool is_word(const char *text, size_t n, const char *more)
{
    for (size_t i = 0; i < n; i++)
        if (!isalnum((unsigned char)text[i]) && !strchr(more, text[i]))
            return false;
    return n > 0;
}

bool sv_ch_host_is_valid(const char *host)
{
    size_t n = strlen(host);
    if (n > 2 && host[0] == '[' && host[n - 1] == ']')
        return is_word(host + 1, n - 2, ":.%");
    return is_word(host, n, ".-_");
}

static int bad(const char *what, struct sv_err *err)
{
    return sv_error(err, SV_EUSAGE, "the URL of the database %s: use " FORM, what);
}

static bool copy(char *to, size_t size, const char *from, size_t n)
{
    if (n >= size)
        return false;
    memcpy(to, from, n);
    to[n] = 0;
    return true;
}

static int parse_port(const char *text, size_t n, uint16_t *port)
{
    unsigned long v = 0;
    for (size_t i = 0; i < n; i++) {
        if (!isdigit((unsigned char)text[i]) || n > 5)
            return -1;
        v = v * 10 + (unsigned long)(text[i] - '0');
    }
    *port = (uint16_t)v;
    return n == 0 || v == 0 || v > 65535 ? -1 : 0;
}

static int parse_place(const char *text, size_t n, struct sv_ch_target *t, struct sv_err *err)
{
    size_t bracket = n && text[0] == '[' ? (size_t)(strcspn(text, "]") + 1) : 0;
    const char *colon = bracket < n ? memchr(text + bracket, ':', n - bracket) : NULL;
    size_t host = colon ? (size_t)(colon - text) : n;
    if (memchr(text, '@', n))
        return sv_error(err, SV_EUSAGE,
                        "a user or password in a URL can be read by others: set "
                        "STAVE_CLICKHOUSE_USER and STAVE_CLICKHOUSE_PASSWORD, and use " FORM);
    if (!copy(t->host, sizeof t->host, text, host) || !sv_ch_host_is_valid(t->host))
        return bad("has no valid host", err);
    if (colon && parse_port(colon + 1, n - host - 1, &t->port) < 0)
        return bad("has no valid port", err);
    return 0;
}

static int parse_option(const char *text, size_t n, struct sv_ch_target *t, struct sv_err *err)
{
    if (n > 8 && memcmp(text, "cluster=", 8) == 0) {
        if (!is_word(text + 8, n - 8, ".-_") ||
            !copy(t->cluster, sizeof t->cluster, text + 8, n - 8))
            return bad("names a cluster that is no plain name", err);
        return 0;
    }
    if (n == 8 && memcmp(text, "secure=", 7) == 0 && (text[7] == '0' || text[7] == '1')) {
        t->is_secure |= text[7] == '1';
        return 0;
    }
    if ((n >= 4 && memcmp(text, "user", 4) == 0) || (n >= 8 && memcmp(text, "password", 8) == 0))
        return parse_place("@", 1, t, err);
    return bad("has an option that is neither cluster=NAME nor secure=1", err);
}

int sv_ch_target_parse(const char *url, struct sv_ch_target *t, struct sv_err *err)
{
    *t = (struct sv_ch_target){0};
    const char *at = strstr(url, "://");
    size_t scheme = at ? (size_t)(at - url) : 0;
    t->is_secure = scheme == 11 && memcmp(url, "clickhouses", 11) == 0;
    if (!t->is_secure && !(scheme == 10 && memcmp(url, "clickhouse", 10) == 0))
        return bad("does not begin with clickhouse:// or clickhouses://", err);
    at += 3;
    size_t place = strcspn(at, "/?#");
    int code = parse_place(at, place, t, err);
    if (code < 0)
        return code;
    at += place;
    if (*at != '/')
        return bad("names no database", err);
    size_t name = strcspn(++at, "?#");
    if (!is_word(at, name, "_") || isdigit((unsigned char)*at) ||
        !copy(t->database, sizeof t->database, at, name))
        return bad("names no database of letters, digits and _ (at most 63)", err);
    at += name;
    while (code >= 0 && *at) {
        if (*at == '#')
            return bad("has a part after #", err);
        size_t n = strcspn(++at, "&#");
        code = parse_option(at, n, t, err);
        at += n;
    }
    if (t->port == 0)
        t->port = t->is_secure ? 8443 : 8123;
    return code;
}

/* ---- credentials ---- */

/* They become lines of a header. */
static int set(char to[static SV_CH_SECRET_MAX], const char *from, const char *what,
               struct sv_err *err)
{
    size_t n = strlen(from);
    for (size_t i = 0; i < n; i++)
        if (iscntrl((unsigned char)from[i]))
            return sv_error(err, SV_EUSAGE, "%s holds a control character", what);
    if (!copy(to, SV_CH_SECRET_MAX, from, n))
        return sv_error(err, SV_EUSAGE, "%s is longer than %d bytes", what, SV_CH_SECRET_MAX - 1);
    return 0;
}

/* Lines user=… and password=…; empty ones and those with # in front count for nothing. */
static int take_lines(char *text, const char *path, struct sv_ch_target *t, struct sv_err *err)
{
    int code = 0, number = 0;
    for (char *line = text, *next; line && code >= 0; line = next) {
        next = strchr(line, '\n');
        if (next)
            *next++ = 0;
        number++;
        if (strncmp(line, "user=", 5) == 0)
            code = set(t->user, line + 5, "the user's name", err);
        else if (strncmp(line, "password=", 9) == 0)
            code = set(t->password, line + 9, "the password", err);
        else if (*line && *line != '#')
            code = sv_error(err, SV_EUSAGE, "%.300s: line %d: neither user=NAME nor password=TEXT",
                            path, number);
    }
    return code;
}

static int read_file(const char *path, bool must_exist, struct sv_ch_target *t, struct sv_err *err)
{
    char text[2048];
    ssize_t n = -1;
    int fd = sv_trusted_file(AT_FDCWD, path, O_RDONLY, SV_TRUST_PRIVATE, 0);
    if (fd < 0 && errno == ENOENT && !must_exist)
        return 0;
    if (fd < 0 && (errno == EPERM || errno == ELOOP))
        return sv_error(
            err, SV_EUSAGE,
            "%.300s: credentials must be in a file of yours that nobody else can read: chmod 600",
            path);
    if (fd < 0)
        return sv_err_sys(err, "%.300s", path);
    FILE *f = fdopen(fd, "r");
    if (f) {
        n = (ssize_t)fread(text, 1, sizeof text - 1, f);
        fclose(f);
    }
    if (n < 0 || n == sizeof text - 1)
        return sv_error(err, SV_EUSAGE, "%.300s: cannot be read, or is too long", path);
    text[n] = 0;
    int code = take_lines(text, path, t, err);
    explicit_bzero(text, sizeof text);
    return code;
}

int sv_ch_credentials(struct sv_ch_target *t, struct sv_err *err)
{
    const char *user = getenv("STAVE_CLICKHOUSE_USER");
    const char *password = getenv("STAVE_CLICKHOUSE_PASSWORD");
    const char *file = sv_trusted_getenv("STAVE_CLICKHOUSE_FILE");
    const char *config = sv_trusted_getenv("XDG_CONFIG_HOME"), *home = sv_trusted_getenv("HOME");
    char path[1024] = "";
    int code = 0;
    if (file && *file)
        return read_file(file, true, t, err);
    if (user || password) {
        code = set(t->user, user ? user : "", "STAVE_CLICKHOUSE_USER", err);
        return code < 0
                   ? code
                   : set(t->password, password ? password : "", "STAVE_CLICKHOUSE_PASSWORD", err);
    }
    if (config && *config == '/')
        snprintf(path, sizeof path, "%.900s/stave/clickhouse", config);
    else if (home && *home == '/')
        snprintf(path, sizeof path, "%.900s/.config/stave/clickhouse", home);
    return *path ? read_file(path, false, t, err) : 0;
}
