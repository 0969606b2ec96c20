/* What the program says to a person: messages, colours, progress, numbers with units.
 *
 * Used by main and the commands only. The state is set once by main before a command runs. All text
 * for people leaves through the functions below, which escape what the arguments bring; nothing
 * else in cmd/ may print (tools/check-style). */
#include "cli/console.h"

#include "core/base/printable.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define TEXT_MAX ((size_t)1 << 30) /* of one print: a name of a trace may have megabytes */

static struct {
    const char *verb;
    bool color_out, color_err, quiet, mute;
    int failed; /* errno of the first write to standard output that failed */
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

/* Help and completions are printed without a check of each word: all of it fits, so that the flush
 * at the end knows why it failed. */
static void widen_stdout(void)
{
    static char buffer[64 << 10];
    static bool is_done;
    if (!is_done && !isatty(STDOUT_FILENO))
        setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
    is_done = true;
}

void sv_console_init(const char *verb, const char *color, bool quiet)
{
    widen_stdout();
    console.verb = verb;
    console.quiet = quiet;
    console.color_out = wants_color(color, STDOUT_FILENO);
    console.color_err = wants_color(color, STDERR_FILENO);
}

void sv_console_mute(void)
{
    console.quiet = console.mute = true;
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

unsigned sv_screen_columns(void)
{
    const char *given = getenv("COLUMNS");
    struct winsize size = {0};
    unsigned long n = given ? strtoul(given, NULL, 10) : 0;
    if (n > 0)
        return n < 10000 ? (unsigned)n : 10000;
    return isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

/* Not checked by those who print: sv_console_finish() reports it. */
static int write_to(FILE *to, const void *bytes, size_t n)
{
    if (n == 0 || fwrite(bytes, 1, n, to) == n)
        return 0;
    if (to == stdout && !console.failed)
        console.failed = errno ? errno : EIO;
    return -1;
}

/* Text for people. Frees the buffer. */
static void write_text(FILE *to, struct sv_buf *b)
{
    struct sv_buf ascii;
    sv_buf_init(&ascii, TEXT_MAX);
    if (sv_locale_is_c())
        sv_buf_ascii(&ascii, (const char *)b->data, b->len);
    else
        sv_buf_add(&ascii, b->data, b->len);
    write_to(to, ascii.data, ascii.len);
    sv_buf_fini(&ascii);
    sv_buf_fini(b);
}

void sv_vprint_styled(FILE *to, enum sv_style_code code, const char *fmt, va_list ap)
{
    bool is_styled = code != SV_RESET && (to == stderr ? console.color_err : console.color_out);
    struct sv_buf b;
    sv_buf_init(&b, TEXT_MAX);
    sv_buf_str(&b, style(code, is_styled));
    sv_buf_printable_vformat(&b, fmt, ap);
    sv_buf_str(&b, style(SV_RESET, is_styled));
    write_text(to, &b);
}

void sv_print(FILE *to, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    sv_vprint_styled(to, SV_RESET, fmt, ap);
    va_end(ap);
}

void sv_print_styled(FILE *to, enum sv_style_code code, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    sv_vprint_styled(to, code, fmt, ap);
    va_end(ap);
}

void sv_print_text(FILE *to, const char *before, const char *bytes, size_t len, const char *after)
{
    struct sv_buf b;
    sv_buf_init(&b, TEXT_MAX);
    sv_buf_str(&b, before);
    sv_buf_printable(&b, bytes, len);
    sv_buf_str(&b, after);
    write_text(to, &b);
}

int sv_print_data(FILE *to, const void *bytes, size_t n, struct sv_err *err)
{
    return write_to(to, bytes, n) == 0 ? 0 : sv_err_stdout(err);
}

int sv_print_json(struct sv_buf *json, struct sv_err *err)
{
    sv_buf_byte(json, '\n');
    int code = json->failed ? sv_error(err, SV_ENOMEM, "the output is too long for JSON")
                            : sv_print_data(stdout, json->data, json->len, err);
    sv_buf_fini(json);
    return code;
}

/* `stave VERB: FILE: byte N: ` */
static void add_prefix(struct sv_buf *b, const char *file, int64_t pos)
{
    sv_buf_printable_format(b, "stave%s%s: ", *console.verb ? " " : "", console.verb);
    if (file)
        sv_buf_printable_format(b, "%s: ", file);
    if (pos != SV_NO_POS)
        sv_buf_printable_format(b, "byte %" PRId64 ": ", pos);
}

/* One line on standard error in one write, so that lines of several processes do not mix. Frees
 * it. */
static void write_line(struct sv_buf *line, enum sv_style_code code)
{
    bool is_styled = console.color_err && code != SV_RESET;
    struct sv_buf ascii;
    sv_buf_init(&ascii, TEXT_MAX);
    if (sv_locale_is_c())
        sv_buf_ascii(&ascii, (const char *)line->data, line->len);
    fprintf(stderr, "%s%s%s\n", style(code, is_styled),
            sv_locale_is_c() ? sv_buf_cstr(&ascii) : sv_buf_cstr(line), style(SV_RESET, is_styled));
    sv_buf_fini(&ascii);
    sv_buf_fini(line);
}

int sv_console_finish(int code, struct sv_err *err)
{
    int at_end = fflush(stdout) != 0 ? errno : ferror(stdout) ? EIO : 0;
    if (code < 0 || (!console.failed && !at_end))
        return code;
    errno = console.failed ? console.failed : at_end;
    return errno == EPIPE ? code : sv_err_stdout(err);
}

void sv_console_error(const char *file, int64_t pos, const char *msg)
{
    struct sv_buf line;
    sv_buf_init(&line, TEXT_MAX);
    fflush(stdout);
    add_prefix(&line, file, pos);
    sv_buf_printable(&line, msg, strlen(msg));
    write_line(&line, SV_RED);
}

void sv_console_note(const char *fmt, ...)
{
    struct sv_buf line;
    va_list ap;
    if (console.quiet)
        return;
    sv_buf_init(&line, TEXT_MAX);
    add_prefix(&line, NULL, SV_NO_POS);
    va_start(ap, fmt);
    sv_buf_printable_vformat(&line, fmt, ap);
    va_end(ap);
    write_line(&line, SV_RESET);
}

static void print_findings(const char *file, const struct sv_report *r, bool with_notes)
{
    static const char *const tails[] = {
        [SV_NOTE] = "", [SV_SKIPPED] = " not represented, omitted", [SV_DAMAGE] = ""};
    fflush(stdout);
    for (size_t i = 0; i < r->n; i++) {
        const struct sv_finding *f = &r->rows[i];
        bool is_silent = console.mute || (console.quiet && f->severity != SV_DAMAGE) ||
                         (!with_notes && f->severity == SV_NOTE);
        if (is_silent)
            continue;
        struct sv_buf line;
        sv_buf_init(&line, TEXT_MAX);
        add_prefix(&line, file, f->first_pos);
        sv_buf_printable_format(&line, "%s%s", f->what, tails[f->severity]);
        if (f->first_detail)
            sv_buf_printable_format(&line, " (%s)", f->first_detail);
        if (f->count > 1)
            sv_buf_printable_format(&line, ", %" PRIu64 " times, the first here", f->count);
        write_line(&line, f->severity == SV_DAMAGE ? SV_YELLOW : SV_DIM);
    }
}

void sv_console_findings(const char *file, const struct sv_report *r)
{
    print_findings(file, r, true);
}

void sv_console_problems(const char *file, const struct sv_report *r)
{
    print_findings(file, r, false);
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

static struct {
    void (*call)(void *ctx, uint64_t read, uint64_t size);
    void *ctx;
} watch;

void sv_progress_watch(void (*call)(void *ctx, uint64_t read, uint64_t size), void *ctx)
{
    watch.call = call;
    watch.ctx = ctx;
}

void sv_progress_tick(void *progress)
{
    struct sv_progress *p = progress;
    if (watch.call)
        watch.call(watch.ctx, sv_input_read_bytes(p->input), p->input->size_bytes);
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
        sv_print(stderr, "\r%s [%.*s%*s] %3d%% %s of %s ", p->what, filled,
                 "##############################", 30 - filled, "", (int)(read * 100 / size), done,
                 sv_human_bytes(all, size));
    } else {
        sv_print(stderr, "\r%s %s ", p->what, done);
    }
}

void sv_progress_end(struct sv_progress *p)
{
    if (p->is_visible)
        sv_print(stderr, "\r\033[K");
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
    int64_t magnitude = ns == INT64_MIN ? INT64_MAX : ns < 0 ? -ns : ns;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (magnitude >= units[i].unit) {
            snprintf(buf, 32, "%.3f %s", (double)ns / (double)units[i].unit, units[i].name);
            return buf;
        }
    }
    snprintf(buf, 32, "%" PRId64 " ns", ns);
    return buf;
}
