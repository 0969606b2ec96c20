/* Errors: formatting into the caller's struct.
 *
 * Called by every layer above. The first error of a chain is the cause and is kept; a later one,
 * set while cleaning up, would only hide it. What a message quotes may come from anywhere, so
 * messages are made printable here, once for all who show them. Must not allocate: it also reports
 * that there is no memory. */
#include "core/base/err.h"
#include "core/base/printable.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

__attribute__((format(printf, 4, 0))) static void set(struct sv_err *err, int code, int64_t pos,
                                                      const char *fmt, va_list ap)
{
    err->code = code;
    err->pos = pos;
    char raw[sizeof err->msg];
    vsnprintf(raw, sizeof raw, fmt, ap);
    sv_printable(err->msg, sizeof err->msg, raw);
}

int sv_err_set(struct sv_err *err, int code, int64_t pos, const char *fmt, ...)
{
    if (err && err->code == SV_OK) {
        va_list ap;
        va_start(ap, fmt);
        set(err, code, pos, fmt, ap);
        va_end(ap);
    }
    return code;
}

int sv_err_sys(struct sv_err *err, const char *fmt, ...)
{
    int saved = errno;
    if (err && err->code == SV_OK) {
        va_list ap;
        va_start(ap, fmt);
        set(err, SV_EIO, SV_NO_POS, fmt, ap);
        va_end(ap);
        size_t len = strlen(err->msg);
        snprintf(err->msg + len, sizeof err->msg - len, ": %s", strerror(saved));
    }
    return SV_EIO;
}

int sv_err_stdout(struct sv_err *err)
{
    if (errno == EPIPE)
        return sv_err_set(err, SV_EPIPE, SV_NO_POS, "standard output: its reader has closed it");
    return sv_err_sys(err, "standard output");
}

void sv_err_clear(struct sv_err *err)
{
    err->code = SV_OK;
    err->pos = SV_NO_POS;
    err->msg[0] = '\0';
}
