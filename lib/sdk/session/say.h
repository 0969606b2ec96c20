/* One line on stderr, from any library that links say.c: what went wrong, and what that means for
 * the trace. */
#pragma once

#include <stave/error.h>
#include <stdbool.h>
#include <stddef.h>

void sv_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Lines of this thread that end with SV_SAY_OFF are not printed: they are returned to a caller. */
#define SV_SAY_OFF "; tracing is off"
void sv_say_return_errors(bool on);

/* Fills `error` (which may be NULL) and returns the code. STAVE_OK: the text is empty. */
int sv_fail(struct stave_error *error, int code, int os_error, const char *text);

/* When the library is loaded: standard error is what it is now. What the program opens later under
 * its number is its own, and gets no line. */
void sv_say_begin(void);
/* Is it still that? Async-signal-safe. */
bool sv_say_may(void);

/* Called with each line, without its begin and end. Weak: libstave has its own. */
void sv_said(const char *text, size_t len);
/* The line with its begin and end, for a thread without standard error; true: it is printed, or
 * will be. Weak, too. */
bool sv_say_elsewhere(const char *line, size_t len);
