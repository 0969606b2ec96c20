/* stave top: what a running process does now, in the terminal.
 *
 * The recorder runs as for `stave record`, with the same rungs, and writes to sums instead of a
 * file. Once in a while these are shown and begin anew. Keys and the screen are served in the
 * recorder's rounds. */
#include "cmd/top.h"

#include "cli/console.h"
#include "cli/terminal.h"
#include "cmd/commands.h"
#include "core/base/mem.h"
#include "record/session/recorder.h"
#include "record/watch/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HZ = 99, ROWS = 10, REDRAW_BYTES = 1 << 20 };
#define KEYS "q quit  o order  a all  f functions  w waits  i files  space pause  r reset"

struct top_options {
    struct sv_words pids;
    const char *interval, *duration;
    uint64_t hz, rows;
    bool once, json;
};

struct top {
    const struct top_options *o;
    struct sv_top sums;
    struct sv_top_view view;
    struct sv_recorder *recorder;
    char what[200], refused[160];
    int64_t every_ns, shown_ns;
    bool has_screen, wants_screen, has_kernel, is_over;
    uint32_t pid;
    int output; /* of the command, while the screen is ours; -1 */
    struct sv_err why;
};

/* ---- showing ---- */

static void draw(struct top *p)
{
    struct sv_buf b;
    unsigned width, height;
    sv_terminal_size(&width, &height);
    p->view.width = width;
    p->view.height = height;
    sv_buf_init(&b, REDRAW_BYTES);
    struct sv_buf out;
    sv_buf_init(&out, 2 * REDRAW_BYTES);
    sv_top_show(&p->sums, &p->view, &b);
    sv_buf_str(&out, "\033[H");
    for (size_t i = 0, row = 0; i < b.len && row < height; i++) {
        if (b.data[i] != '\n') {
            sv_buf_byte(&out, b.data[i]);
            continue;
        }
        sv_buf_str(&out, ++row < height ? "\033[K\r\n" : "\033[K");
    }
    sv_buf_str(&out, "\033[J");
    sv_terminal_write(out.data, out.len);
    sv_buf_fini(&out);
    sv_buf_fini(&b);
}

static void print(struct top *p)
{
    struct sv_buf b;
    sv_buf_init(&b, REDRAW_BYTES);
    if (p->o->json) {
        sv_top_json(&p->sums, &p->view, &b);
    } else {
        sv_top_show(&p->sums, &p->view, &b);
        if (!p->o->once)
            sv_buf_byte(&b, '\n');
    }
    if (sv_print_data(stdout, b.data, b.len, &p->why) < 0)
        p->is_over = true;
    fflush(stdout);
    sv_buf_fini(&b);
}

/* ---- keys ---- */

static void take_key(struct top *p, uint32_t key)
{
    struct sv_top_view *v = &p->view;
    switch (key) {
    case 'q':
    case 3: /* Ctrl-C */
    case SV_TERMINAL_ENDED: p->is_over = true; break;
    case 'o':
    case 's': v->order = v->order == SV_TOP_BY_OWN ? SV_TOP_BY_TOTAL : SV_TOP_BY_OWN; break;
    case 'a': v->is_all = !v->is_all; break;
    case 'f': v->only = v->only == SV_TOP_FUNCTIONS ? -1 : SV_TOP_FUNCTIONS; break;
    case 'w': v->only = v->only == SV_TOP_WAITS ? -1 : SV_TOP_WAITS; break;
    case 'i': v->only = v->only == SV_TOP_FILES ? -1 : SV_TOP_FILES; break;
    case ' ': v->is_paused = !v->is_paused; break;
    case 'r': sv_top_next(&p->sums, true); break;
    case 26: sv_terminal_suspend(); break; /* Ctrl-Z */
    default: break;
    }
}

static void take_keys(struct top *p)
{
    bool is_changed = false;
    for (uint32_t key; !p->is_over && (key = sv_terminal_key_now()) != SV_KEY_NONE;) {
        take_key(p, key);
        is_changed = true;
    }
    if (is_changed && !p->is_over)
        draw(p);
}

/* ---- what the recorder calls ---- */

static struct sv_sink *open_sums(void *ctx, const struct sv_dict *dict)
{
    struct top *p = ctx;
    return sv_top_sink(&p->sums, dict);
}

static void begin(struct top *p, int64_t now_ns)
{
    const struct sv_recorder *r = p->recorder;
    p->has_kernel = r->system.kernel != NULL;
    p->view.by = p->has_kernel     ? "by kernel programs"
                 : r->ladder.watch ? "by looks at /proc"
                                   : "nothing can be observed here";
    p->pid = p->pid ? p->pid : (uint32_t)r->child.pid;
    p->shown_ns = p->sums.now_ns = now_ns;
    sv_top_next(&p->sums, true);
    if (!p->has_kernel && p->pid)
        sv_top_look_at_files(&p->sums, p->pid); /* where files are now */
    if (!p->wants_screen)
        return;
    struct sv_err no_terminal = {0};
    p->has_screen = sv_terminal_open(&no_terminal) >= 0;
    if (p->has_screen)
        p->view.keys = KEYS;
}

/* Without its memory there are no functions: why not is known after the first look. */
static void say_what_is_refused(struct top *p)
{
    struct sv_watch *w = p->recorder->ladder.watch;
    const char *why = w ? sv_watch_sums(w).why_unreadable : NULL;
    if (!why)
        return;
    snprintf(p->refused, sizeof p->refused, "by looks at /proc, without stacks: %s", why);
    p->view.by = p->refused;
}

static void show(struct top *p, int64_t now_ns)
{
    say_what_is_refused(p);
    if (!p->has_kernel && p->pid)
        sv_top_look_at_files(&p->sums, p->pid);
    sv_top_catch_up(&p->sums, now_ns);
    if (p->has_screen)
        draw(p);
    else
        print(p);
    sv_top_next(&p->sums, false);
    p->is_over |= p->o->once;
}

static bool on_round(void *ctx, int64_t now_ns)
{
    struct top *p = ctx;
    if (!p->view.by)
        begin(p, now_ns);
    if (p->has_screen)
        take_keys(p);
    if (!p->is_over && !p->view.is_paused && now_ns - p->shown_ns >= p->every_ns) {
        p->shown_ns = now_ns;
        show(p, now_ns);
    }
    return !p->is_over;
}

/* ---- the command ---- */

/* While the screen is ours, what the command prints waits in a file that nobody else sees. */
static int hold_output(struct top *p, struct sv_recorder *r)
{
    if (!p->wants_screen || r->command->n == 0)
        return 0;
    FILE *f = tmpfile();
    p->output = f ? fcntl(fileno(f), F_DUPFD_CLOEXEC, 0) : -1;
    if (f)
        fclose(f);
    r->copier.fds[0] = p->output < 0 ? -1 : fcntl(p->output, F_DUPFD_CLOEXEC, 0);
    r->copier.fds[1] = p->output < 0 ? -1 : fcntl(p->output, F_DUPFD_CLOEXEC, 0);
    return 0;
}

static void give_output(struct top *p)
{
    char bytes[1 << 14];
    off_t at = 0;
    for (ssize_t n; p->output >= 0 && (n = pread(p->output, bytes, sizeof bytes, at)) > 0; at += n)
        if (write(STDOUT_FILENO, bytes, (size_t)n) < 0)
            break;
    if (p->output >= 0)
        close(p->output);
}

/* A command that the terminal's user has left ends as by Ctrl-C. */
static void end_command(const struct sv_recorder *r)
{
    if (r->child.pid > 0 && !r->child.has_ended)
        kill(r->child.pid, SIGTERM);
}

static int parse(struct top *p, const struct sv_words *operands, struct sv_err *err)
{
    const struct top_options *o = p->o;
    struct sv_moment every = {.ns = 1000000000};
    if ((operands->n == 0) == (o->pids.n == 0))
        return sv_error(err, SV_EUSAGE,
                        "what to watch: give -p PID, or a command after --, and not both");
    if (o->interval && (sv_parse_moment(o->interval, strlen(o->interval), &every) < 0 ||
                        every.is_absolute || every.ns < 50000000))
        return sv_error(err, SV_EUSAGE, "--interval: '%s' is not a time of 50ms or more such as 2s",
                        o->interval);
    if (o->hz > 1000)
        return sv_error(err, SV_EUSAGE, "--hz: at most 1000 times a second");
    p->every_ns = every.ns;
    p->pid = o->pids.n ? (uint32_t)strtoul(o->pids.items[0], NULL, 10) : 0;
    p->wants_screen = !o->once && !o->json && isatty(STDOUT_FILENO);
    p->view.rows = o->rows ? o->rows : o->json ? 2 * ROWS : ROWS;
    p->view.width = sv_screen_columns();
    p->view.width = p->view.width ? p->view.width : 400; /* not cut for a pipe */
    p->view.is_ascii = sv_locale_is_c();
    return 0;
}

/* Whom the first line names. */
static void name_it(struct top *p, const struct sv_words *operands)
{
    char path[64], text[160] = "";
    size_t n = 0;
    if (p->pid) {
        snprintf(path, sizeof path, "/proc/%u/cmdline", p->pid);
        FILE *f = fopen(path, "re");
        n = f ? fread(text, 1, sizeof text - 1, f) : 0;
        if (f)
            fclose(f);
        for (size_t i = 0; i + 1 < n; i++)
            text[i] = text[i] ? text[i] : ' ';
        snprintf(p->what, sizeof p->what, "%u %s", p->pid, text);
    }
    for (size_t i = 0; !p->pid && i < operands->n && n < sizeof p->what - 2; i++)
        n += (size_t)snprintf(p->what + n, sizeof p->what - n, "%s%.150s", i ? " " : "",
                              operands->items[i]);
    p->view.what = p->what;
}

static int watch(struct top *p, const struct sv_words *operands, struct sv_err *err)
{
    const struct top_options *o = p->o;
    const struct sv_record_live live = {p, open_sums, on_round};
    struct sv_record_options record = {.out.path = "stave-top",
                                       .pids = o->pids,
                                       .duration = o->duration,
                                       .interval = "0",
                                       .spool = "0",
                                       .look_hz = o->hz ? o->hz : HZ,
                                       .no_summary = true,
                                       .no_explain = true,
                                       .live = &live,
                                       .use = {.gpu_interval = "0", .no_inject = true}};
    struct sv_recorder r = {.options = &record,
                            .command = operands,
                            .detach_fd = -1,
                            .copier.fds = {-1, -1},
                            .child.umask = umask(077)};
    umask(r.child.umask);
    record.probes[SV_PROBE_sample].number = record.look_hz;
    p->recorder = &r;
    hold_output(p, &r);
    int code = sv_recorder_run(&r, err);
    if (p->has_screen)
        sv_terminal_close();
    if (!p->o->once && p->is_over)
        end_command(&r);
    give_output(p);
    if (p->is_over && r.child.pid > 0 && !r.child.has_ended)
        code = code < 0 ? code : 0;
    return code < 0 ? code : p->why.code < 0 ? (*err = p->why, p->why.code) : code;
}

static int run(void *options, const struct sv_words *operands, struct sv_err *err)
{
    struct top_options *o = options;
    struct top p = {.o = o, .output = -1, .view.only = -1};
    int code = parse(&p, operands, err);
    if (code >= 0) {
        sv_top_init(&p.sums);
        name_it(&p, operands);
        code = watch(&p, operands, err);
        sv_top_fini(&p.sums);
    }
    sv_words_free(&o->pids);
    return code;
}

#define AT(member) offsetof(struct top_options, member)
static const struct sv_option options[] = {
    {'p', "pid", "PID", SV_OPT_LIST, AT(pids),
     "watch this running process, its threads and descendants; may be given several times", NULL,
     NULL},
    {0, "once", NULL, SV_OPT_FLAG, AT(once), "print one interval and end; needs no terminal", NULL,
     NULL},
    {0, "json", NULL, SV_OPT_FLAG, AT(json),
     "print a line of JSON for each interval (docs/top.md has its members)", NULL, NULL},
    {0, "interval", "TIME", SV_OPT_TEXT, AT(interval), "between two refreshes (default 1s)", NULL,
     NULL},
    {0, "duration", "TIME", SV_OPT_TEXT, AT(duration), "stop after this time (default: no limit)",
     NULL, NULL},
    {0, "hz", "N", SV_OPT_COUNT, AT(hz), "samples, or looks, a second (default 99)", NULL, NULL},
    {0, "rows", "N", SV_OPT_COUNT, AT(rows),
     "rows of each table where there is no screen (default 10, with --json 20)", NULL, NULL},
    {0},
};

static const struct sv_example examples[] = {
    {"stave top -p 4711", "what the process does now: functions, waits and files"},
    {"stave top -- python3 train.py", "a command; what it prints is shown at the end"},
    {"stave top -p 4711 --once", "one second of it, as plain lines"},
    {"stave top -p 4711 --json --interval 5s", "a line of JSON every five seconds, for programs"},
    {0},
};

const struct sv_command sv_command_top = {
    .name = "top",
    .operands = "-p PID | -- COMMAND [WORD…]",
    .summary = "show live what a process computes, waits for and reads",
    .description =
        "Shows in the terminal, once a second, in which functions a running process computes, what "
        "its threads wait for and where, and which files it reads and writes. It uses what this "
        "user may: kernel programs as root or with CAP_BPF and CAP_PERFMON, otherwise looks at "
        "/proc and at the process's memory, as far as the rules of ptrace allow them. Nothing is "
        "written, and nothing is loaded into the process.\n\n"
        "Functions are shares of the samples on a CPU: own, and with what they call. Waits are "
        "shares of the time; several threads may wait at once. Without kernel programs functions "
        "are Python's, and files are those whose position moved; the sums of bytes are the "
        "kernel's.\n\n"
        "Keys: q ends it (a command that it started gets SIGTERM), o sorts by own or by total, a "
        "shows the last interval or all, f, w and i show functions, waits or files only, the space "
        "bar stops and continues the display, r begins anew. Where standard output is no terminal "
        "it prints plain lines.",
    .options = options,
    .examples = examples,
    .options_size = sizeof(struct top_options),
    .takes_command = true,
    .run = run,
};
