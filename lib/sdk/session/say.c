/* One line on stderr: see say.h. Whatever is in the text, and whoever reads it. */
#include "sdk/session/say.h"

#include "core/base/printable.h"
#include "core/files/file_id.h"
#include "sdk/session/quiet.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int sv_fail(struct stave_error *error, int code, int os_error, const char *text)
{
    if (error) {
        error->code = code;
        error->os_error = os_error;
        snprintf(error->text, sizeof error->text, "%s", text);
    }
    return code;
}

static struct sv_file_id at_begin;
static bool has_begun;

void sv_say_begin(void)
{
    at_begin = sv_file_id_of(STDERR_FILENO);
    has_begun = true;
}

bool sv_say_may(void)
{
    return !has_begun || sv_file_id_is(STDERR_FILENO, &at_begin);
}

__attribute__((weak)) void sv_said(const char *text, size_t len)
{
    (void)text;
    (void)len;
}

__attribute__((weak)) bool sv_say_elsewhere(const char *line, size_t len)
{
    (void)line;
    (void)len;
    return false;
}

static __thread bool errors_are_returned;

void sv_say_return_errors(bool on)
{
    errors_are_returned = on;
}

/* A failed start, whose caller shows it. */
static bool is_returned(const char *text)
{
    size_t len = strlen(text), end = sizeof SV_SAY_OFF - 1;
    return errors_are_returned && len >= end && strcmp(text + len - end, SV_SAY_OFF) == 0;
}

void sv_say(const char *format, ...)
{
    static const char start[] = "stave: ";
    char text[1024], line[1024];
    va_list ap;
    va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    memcpy(line, start, sizeof start - 1);
    size_t len = sizeof start - 1;
    len += sv_printable(line + len, sizeof line - len - 1, text); /* names act on no terminal */
    sv_said(line + sizeof start - 1, len - (sizeof start - 1));
    if (is_returned(text))
        return;
    line[len++] = '\n';
    struct sv_quiet quiet; /* nobody may be there to read it */
    sv_quiet_begin(&quiet);
    ssize_t ignored =
        sv_say_elsewhere(line, len) || !sv_say_may() ? 0 : write(STDERR_FILENO, line, len);
    (void)ignored;
    sv_quiet_end(&quiet);
}
