/* The console: colours, progress and messages on standard error.
 *
 * Data goes to standard output, messages to standard error. Colour and progress only on a terminal,
 * without NO_COLOR and --quiet. */
#pragma once

#include "core/base/buf.h"
#include "core/base/report.h"
#include "core/files/input.h"

#include <stdbool.h>
#include <stdio.h>

enum sv_style_code { SV_RESET, SV_BOLD, SV_RED, SV_YELLOW, SV_DIM };

/* color: auto, always, never or NULL */
void sv_console_init(const char *verb, const char *color, bool quiet);
/* Nothing is printed from now on: for a library, whose callers find all of it in reports and
 * errors. */
void sv_console_mute(void);
const char *sv_style(enum sv_style_code code); /* for standard output; "" when plain */

/* printf for people: what %s brings is made printable (core/base/printable.h), the format is kept.
 * Styled: all of it in that style, where the stream has colours. */
void sv_print(FILE *to, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void sv_print_styled(FILE *to, enum sv_style_code code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void sv_vprint_styled(FILE *to, enum sv_style_code code, const char *fmt, va_list ap)
    __attribute__((format(printf, 3, 0)));
/* A text that may hold zero bytes, between two of our own. */
void sv_print_text(FILE *to, const char *before, const char *bytes, size_t len, const char *after);

/* Flushes standard output at the end. Returns `code`, or what kept it from being written; a reader
 * who left is no failure. */
int sv_console_finish(int code, struct sv_err *err);

/* ascii.c. Is the chosen locale C? Text for people then is ASCII. Appends such text as ASCII. */
bool sv_locale_is_c(void);
void sv_buf_ascii(struct sv_buf *b, const char *s, size_t len);
/* How wide a line may be: COLUMNS, or the terminal's width; 0: standard output is none. */
unsigned sv_screen_columns(void);

/* Output for programs, which has its own quoting: as it is. SV_EPIPE: nobody reads it any more. */
int sv_print_data(FILE *to, const void *bytes, size_t n, struct sv_err *err);
/* A JSON document and a line feed on standard output. Frees the buffer. */
int sv_print_json(struct sv_buf *json, struct sv_err *err);

/* `stave VERB: FILE: byte N: message`; file and pos may be NULL and SV_NO_POS. */
void sv_console_error(const char *file, int64_t pos, const char *msg);
void sv_console_note(const char *fmt, ...)
    __attribute__((format(printf, 1, 2))); /* silent under --quiet */

/* Prints what a reader found: damage always, the rest unless --quiet. */
void sv_console_findings(const char *file, const struct sv_report *r);
/* The same without notes: for one of very many inputs. */
void sv_console_problems(const char *file, const struct sv_report *r);

/* A progress line for reading an input; appears after a second, on a terminal only. The callback is
 * for sv_pump_options. */
struct sv_progress {
    const struct sv_input *input;
    const char *what;
    int64_t started_ns, shown_ns;
    bool is_visible;
};
void sv_progress_begin(struct sv_progress *p, const struct sv_input *input, const char *what);
void sv_progress_tick(void *progress);
void sv_progress_end(struct sv_progress *p);
/* Called at every tick of every progress, on a terminal or not, with what was read of how much (0:
 * unknown); NULL: no more. */
void sv_progress_watch(void (*call)(void *ctx, uint64_t read, uint64_t size), void *ctx);

/* 1234567 → "1,234,567"; 1536 → "1.5 KiB"; 1500000 → "1.500 ms". Returns buf. */
char *sv_human_count(char buf[32], uint64_t n);
char *sv_human_bytes(char buf[32], uint64_t bytes);
char *sv_human_ns(char buf[32], int64_t ns);
