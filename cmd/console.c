/* What the program says to a person: messages, colours, progress, numbers with units.
 *
 * Used by main and the commands only. The state is set once by main before a command runs. */
#include "cmd/console.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static struct {
    const char *verb;
    bool color_out, color_err, quiet;
} console = {.verb = ""};

static bool wants_color(const char *choice, int fd)
{
    const char *no = getenv("NO_COLOR"), *force = getenv("CLICOLOR_FORCE");
    if (choice && strcmp(choice, "always") == 0)
        return true;
    if (choice && strcmp(choice, "never") == 0)
        return false;
    if (no && *no)
        return false;
    if (force && *force && strcmp(force, "0") != 0)
        return true;
    const char *term = getenv("TERM");
    return isatty(fd) && !(term && strcmp(term, "dumb") == 0);
}

void sv_console_init(const char *verb, const char *color, bool quiet)
{
    console.verb = verb;
    console.quiet = quiet;
    console.color_out = wants_color(color, STDOUT_FILENO);
    console.color_err = wants_color(color, STDERR_FILENO);
}

static const char *style(enum sv_style_code code, bool on)
{
    static const char *const codes[] = {
        [SV_RESET] = "\033[0m",   [SV_BOLD] = "\033[1m", [SV_RED] = "\033[31m",
        [SV_YELLOW] = "\033[33m", [SV_DIM] = "\033[2m",
    };
    return on ? codes[code] : "";
}

const char *sv_style(enum sv_style_code code)
{
    return style(code, console.color_out);
}

const char *sv_style_err(enum sv_style_code code)
{
    return style(code, console.color_err);
}

static void print_prefix(const char *file, int64_t pos)
{
    fprintf(stderr, "stave%s%s: ", *console.verb ? " " : "", console.verb);
    if (file)
        fprintf(stderr, "%s: ", file);
    if (pos != SV_NO_POS)
        fprintf(stderr, "byte %" PRId64 ": ", pos);
}

void sv_console_error(const char *file, int64_t pos, const char *msg)
{
    fflush(stdout);
    fputs(sv_style_err(SV_RED), stderr);
    print_prefix(file, pos);
    fprintf(stderr, "%s%s\n", msg, sv_style_err(SV_RESET));
}

void sv_console_note(const char *fmt, ...)
{
    if (console.quiet)
        return;
    print_prefix(NULL, SV_NO_POS);
    va_list ap;
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
}

void sv_console_findings(const char *file, const struct sv_report *r)
{
    static const char *const tails[] = {
        [SV_NOTE] = "", [SV_SKIPPED] = " not represented, left out", [SV_DAMAGE] = ""};
    fflush(stdout);
    for (size_t i = 0; i < r->n; i++) {
        const struct sv_finding *f = &r->rows[i];
        if (console.quiet && f->severity != SV_DAMAGE)
            continue;
        fputs(sv_style_err(f->severity == SV_DAMAGE ? SV_YELLOW : SV_DIM), stderr);
        print_prefix(file, f->first_pos);
        fputs(f->what, stderr);
        fputs(tails[f->severity], stderr);
        if (f->first_detail)
            fprintf(stderr, " (%s)", f->first_detail);
        if (f->count > 1)
            fprintf(stderr, ", %" PRIu64 " times, the first here", f->count);
        fprintf(stderr, "%s\n", sv_style_err(SV_RESET));
    }
}

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

void sv_progress_begin(struct sv_progress *p, const struct sv_input *input, const char *what)
{
    *p = (struct sv_progress){.input = input, .what = what, .started_ns = now_ns()};
}

void sv_progress_tick(void *progress)
{
    struct sv_progress *p = progress;
    if (console.quiet || !isatty(STDERR_FILENO))
        return;
    int64_t now = now_ns();
    if (now - p->started_ns < 1000000000 || now - p->shown_ns < 100000000)
        return;
    p->shown_ns = now;
    p->is_visible = true;
    char done[32], all[32];
    uint64_t read = sv_input_read_bytes(p->input), size = p->input->size_bytes;
    sv_human_bytes(done, read);
    if (size) {
        int filled = (int)(read * 30 / size);
        fprintf(stderr, "\r%s [%.*s%*s] %3d%% %s of %s ", p->what, filled,
                "##############################", 30 - filled, "", (int)(read * 100 / size), done,
                sv_human_bytes(all, size));
    } else {
        fprintf(stderr, "\r%s %s ", p->what, done);
    }
}

void sv_progress_end(struct sv_progress *p)
{
    if (p->is_visible)
        fprintf(stderr, "\r\033[K");
    p->is_visible = false;
}

char *sv_human_count(char buf[32], uint64_t n)
{
    char digits[24];
    int len = snprintf(digits, sizeof digits, "%" PRIu64, n);
    char *at = buf;
    for (int i = 0; i < len; i++) {
        if (i && (len - i) % 3 == 0)
            *at++ = ',';
        *at++ = digits[i];
    }
    *at = '\0';
    return buf;
}

char *sv_human_bytes(char buf[32], uint64_t bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double v = (double)bytes;
    size_t u = 0;
    while (v >= 1024 && u + 1 < sizeof units / sizeof *units) {
        v /= 1024;
        u++;
    }
    snprintf(buf, 32, u ? "%.1f %s" : "%.0f %s", v, units[u]);
    return buf;
}

char *sv_human_ns(char buf[32], int64_t ns)
{
    static const struct {
        int64_t unit;
        const char *name;
    } units[] = {{1000000000, "s"}, {1000000, "ms"}, {1000, "us"}};
    int64_t magnitude = ns < 0 ? -ns : ns;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (magnitude >= units[i].unit) {
            snprintf(buf, 32, "%.3f %s", (double)ns / (double)units[i].unit, units[i].name);
            return buf;
        }
    }
    snprintf(buf, 32, "%" PRId64 " ns", ns);
    return buf;
}
