/* stave view: the trace in a browser.
 *
 * The inputs are opened once to see that they are traces; then the page is served, while the trace
 * is loaded here; then the program waits for a signal. The browser gets the address from a file
 * that only this user can read: the arguments of a program can be read by everybody. */
#include "view/export_html.h"

#include "cli/console.h"
#include "cmd/commands.h"
#include "core/base/mem.h"
#include "explain/explain.h"
#include "files/load.h"
#include "net/web.h"
#include "subjects/subject.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct view {
    const char *from, *socket, *export;
    const char *align;
    bool strict, assume, no_browser, follow, compare, no_index;
    uint64_t port, memory_limit;
    struct sv_range range;
};

/* ---- the browser ---- */

static bool has_display(void)
{
    const char *x = getenv("DISPLAY"), *wayland = getenv("WAYLAND_DISPLAY");
    return (x && *x) || (wayland && *wayland);
}

/* A page that leads to the address. Its name, or NULL. */
static char *write_link(const char *url)
{
    const char *folder = getenv("XDG_RUNTIME_DIR");
    char *name = NULL;
    if (asprintf(&name, "%s/stave-view-XXXXXX.html", folder && *folder ? folder : "/tmp") < 0)
        return NULL;
    int fd = mkstemps(name, 5); /* 0600 */
    FILE *f = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (!f) {
        if (fd >= 0)
            close(fd);
        free(name);
        return NULL;
    }
    fprintf(f,
            "<!doctype html><meta charset=\"utf-8\"><title>stave view</title>"
            "<meta http-equiv=\"refresh\" content=\"0;url=%s\"><a href=\"%s\">stave view</a>\n",
            url, url);
    fclose(f);
    return name;
}

static void open_browser(char *link)
{
    char program[] = "xdg-open";
    char *argv[] = {program, link, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none;
    pid_t pid;
    sigemptyset(&none);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    if (posix_spawnp(&pid, program, &actions, &attributes, argv, environ) != 0)
        sv_console_note("no browser was found: open the address yourself");
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
}

/* ---- serving ---- */

struct serving {
    struct sv_viewer *viewer;
    const struct view *options;
    const struct sv_loaded *loaded;   /* what the work on the index is about */
    struct sv_image_writer *to_write; /* NULL: there is an index, or none is made */
    char *link;
    bool is_live;        /* the recording goes on */
    uint64_t tail_bytes; /* of which only the end is read; 0: all */
    int64_t began_ns;
};

static const sigset_t *end_signals(void)
{
    static sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    return &set;
}

static void end_serving(struct serving *s)
{
    sv_viewer_close(s->viewer);
    if (s->link)
        unlink(s->link);
    free(s->link);
}

/* While the trace is loaded nobody waits for signals; here they are looked for, and obeyed after
 * cleaning up. */
static void on_progress(void *ctx, uint64_t read, uint64_t size)
{
    struct serving *s = ctx;
    sigset_t pending;
    if (size)
        sv_viewer_progress(s->viewer, 0.95 * (double)(read < size ? read : size) / (double)size);
    sigpending(&pending);
    if (sigismember(&pending, SIGINT) || sigismember(&pending, SIGTERM) ||
        sigismember(&pending, SIGHUP)) {
        end_serving(s);
        exit(0);
    }
}

static char *notes_name(const char *path)
{
    char *name = NULL;
    if (asprintf(&name, "%s.notes.json", path) < 0)
        sv_out_of_memory(strlen(path) + 16);
    return name;
}

/* A pipe can be read once. */
static bool can_read_again(const char *path)
{
    struct stat s;
    return stat(path, &s) == 0 && S_ISREG(s.st_mode);
}

/* Nothing is served of what is no trace. What can be read only once is checked by loading it,
 * before its address is printed. */
static int check_inputs(const struct view *o, const struct sv_words *paths, struct sv_err *err)
{
    int code = sv_check_inputs(paths->items, paths->n, NULL, err);
    for (size_t i = 0; i < paths->n && code >= 0; i++) {
        if (!can_read_again(paths->items[i])) /* nor folders: what is in them is looked for */
            continue;
        struct sv_dict *dict = sv_dict_new();
        struct sv_opened in;
        code = sv_open_input(paths->items[i], o->from, 0, dict, &in, err);
        sv_opened_close(&in);
        sv_dict_free(dict);
    }
    return code;
}

/* The file of a recording that is running, or of one that has ended. */
static int check_recording(const char *path, struct sv_err *err)
{
    char *part = NULL;
    if (asprintf(&part, "%s.part", path) < 0)
        sv_out_of_memory(strlen(path) + 8);
    bool is_there = access(part, R_OK) == 0 || access(path, R_OK) == 0;
    free(part);
    if (is_there)
        return 0;
    return sv_error(err, SV_EINPUT, "%s: no recording writes this file ('stave status' lists them)",
                    path);
}

static void announce(const struct view *o, struct serving *s)
{
    char host[256] = "HOST";
    const char *url = sv_viewer_url(s->viewer);
    unsigned port = sv_viewer_port(s->viewer);
    sv_print(stdout, "%s\n", url);
    fflush(stdout);
    gethostname(host, sizeof host - 1);
    if (o->socket)
        sv_console_note("from your machine: ssh -N -L 8080:%s %s", o->socket, host);
    else
        sv_console_note("from another machine: ssh -N -L %u:127.0.0.1:%u %s", port, port, host);
    if (o->no_browser || o->socket || !has_display())
        return;
    s->link = write_link(url);
    if (s->link)
        open_browser(s->link);
}

static struct sv_sink *pass_sketch(void *ctx, struct sv_dict *dict, struct sv_sink *next)
{
    struct serving *s = ctx;
    return sv_viewer_sketch(s->viewer, dict, next);
}

/* ---- the index ---- */

/* What is still being written or is put together from several files has none. */
static unsigned index_use(const struct view *o)
{
    if (o->export && !o->no_index)
        return SV_INDEX_USED;
    return o->no_index || o->follow || o->compare ? SV_INDEX_NOT_USED : SV_INDEX_MADE;
}

/* Once the trace is shown: what was not checked of the index is; or there is none, and it is
 * made. */
static void work_on_index(void *serving)
{
    struct serving *s = serving;
    const struct sv_loaded *l = s->loaded;
    struct sv_err err;
    sv_err_clear(&err);
    if (!s->to_write) {
        if (sv_trace_check(l->trace, 0, sv_viewer_is_closing, s->viewer))
            return;
        sv_kept_remove(&l->key);
        sv_console_error(l->in.path, SV_NO_POS,
                         "the index of this trace is damaged and was removed: what is shown may be "
                         "wrong, start stave view again");
        return;
    }
    sv_viewer_put(s->viewer, s->to_write);
    int code = sv_kept_end(s->to_write, l->in.path, s->options->from, &l->key, sv_viewer_is_closing,
                           s->viewer, &err);
    if (code < 0 && code != SV_EAGAIN)
        sv_console_note("no index of the trace was made: %s", err.msg);
}

/* Before the trace is shown, because requests may change its dictionary. */
static void begin_index(const struct view *o, const struct sv_loaded *l, struct serving *s)
{
    uint64_t least = sv_kept_slices() < SV_KEPT_SLICES ? sv_kept_slices() : SV_KEPT_SLICES;
    bool is_wanted = index_use(o) == SV_INDEX_MADE && l->key.is_known &&
                     !sv_trace_image(l->trace) && l->trace->slices.n >= least;
    s->to_write = is_wanted ? sv_kept_begin(l->trace, &l->in.report, l->in.format) : NULL;
    s->options = o;
    s->loaded = l;
}

static void end_index(struct serving *s)
{
    bool is_sampled = index_use(s->options) == SV_INDEX_MADE && sv_trace_image(s->loaded->trace);
    if (s->to_write || is_sampled)
        sv_viewer_work(s->viewer, work_on_index, s);
}

static int load(const struct view *o, const struct sv_words *paths, struct serving *s,
                struct sv_loaded *l, struct sv_err *err)
{
    struct sv_load_how how = {.from = o->from,
                              .strict = o->strict,
                              .assume = o->assume,
                              .memory_limit_bytes = o->memory_limit,
                              .compare = o->compare,
                              .anchor = o->align,
                              .pass = pass_sketch,
                              .pass_ctx = s,
                              .index = index_use(o),
                              .is_live = s->is_live,
                              .tail_bytes = s->tail_bytes,
                              .range = o->range};
    struct stat file;
    sv_progress_watch(on_progress, s);
    int code = sv_load_traces(paths->items, paths->n, &how, l, err);
    sv_progress_watch(NULL, NULL);
    if (code < 0)
        return code;
    struct sv_viewer_trace about = {
        .report = &l->in.report,
        .format = l->in.format ? l->in.format->name : NULL,
        .bytes = stat(paths->items[0], &file) == 0 ? (uint64_t)file.st_size : 0,
        .is_live = s->is_live,
        .is_compared = o->compare,
        .is_tail = l->in.piece.bytes > 0,
        .began_ns = s->began_ns};
    if (!about.is_tail)
        s->began_ns = l->trace->first_ns;
    begin_index(o, l, s);
    sv_viewer_show(s->viewer, l->trace, &about);
    end_index(s);
    return 0;
}

/* ---- a recording that is running ---- */

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Whether a signal asks to end within that time. */
static bool wait_ms(int64_t ms)
{
    struct timespec t = {ms / 1000, ms % 1000 * 1000000};
    return sigtimedwait(end_signals(), NULL, &t) > 0;
}

static bool has_changed(const char *path, struct stat *last)
{
    struct stat now;
    if (stat(path, &now) != 0)
        return false;
    bool is_other = now.st_size != last->st_size || now.st_ino != last->st_ino ||
                    now.st_mtim.tv_sec != last->st_mtim.tv_sec ||
                    now.st_mtim.tv_nsec != last->st_mtim.tv_nsec;
    *last = now;
    return is_other;
}

/* What took so long to read shall take SLOW_MS at most: as much of its end as that needs. */
static void bound_tail(struct serving *s, const struct sv_loaded *l, uint64_t size, int64_t took_ms)
{
    enum { SLOW_MS = 300, LEAST = 4 << 20 };
    if (took_ms <= SLOW_MS)
        return;
    uint64_t read = l->in.piece.bytes ? l->in.piece.bytes : size;
    uint64_t bytes = read / (uint64_t)took_ms * SLOW_MS * 3 / 4;
    s->tail_bytes = bytes > LEAST ? bytes : LEAST;
}

/* Loads the file again when it has grown, only its end if that takes long. The longer it takes, the
 * longer the pause: a third of one core at most. What cannot be read at one moment may be at the
 * next. The viewer refers to what it shows: two traces take turns. True: a signal asked to end. */
static bool follow(const struct view *o, const char *path, struct serving *s,
                   struct sv_loaded turns[2])
{
    size_t next = 1;
    char *part = NULL;
    struct stat last = {0};
    int64_t pause_ms = 200;
    bool is_ended = false;
    if (asprintf(&part, "%s.part", path) < 0)
        sv_out_of_memory(strlen(path) + 8);
    while (s->is_live && !(is_ended = wait_ms(pause_ms))) {
        bool is_whole = access(part, F_OK) != 0;
        const char *name[] = {is_whole ? path : part};
        struct sv_err err;
        sv_err_clear(&err);
        if (!has_changed(name[0], &last) && !is_whole)
            continue;
        int64_t start = now_ms();
        s->is_live = !is_whole;
        if (is_whole)
            s->tail_bytes = 0;
        if (load(o, &(struct sv_words){name, 1, 1}, s, &turns[next], &err) >= 0) {
            bound_tail(s, &turns[next], (uint64_t)last.st_size, now_ms() - start);
            next = 1 - next;
        }
        sv_loaded_free(&turns[next]);
        pause_ms = 2 * (now_ms() - start);
        pause_ms = pause_ms < 200 ? 200 : pause_ms;
    }
    free(part);
    return is_ended;
}

/* What a page asks for: a subject's report, or what slows the run down and the rows it is in. */
static int answer(const char *subject, const struct sv_track_rows *rows, size_t limit,
                  struct sv_buf *to, struct sv_err *err)
{
    struct sv_explanation e;
    if (strcmp(subject, "explain") != 0)
        return sv_report_json(subject, rows->trace, limit, to, err);
    sv_explain(&e, rows->trace, "TRACE", NULL);
    sv_explain_rows(&e, rows);
    sv_explain_json(&e, to);
    sv_explanation_fini(&e);
    return 0;
}

/* The page and the trace in one file. */
static int export_page(const struct view *o, const struct sv_words *paths, struct sv_err *err)
{
    struct sv_loaded loaded = {0};
    struct serving s = {0};
    struct sv_output *out = NULL;
    const char *name[] = {basename(paths->items[0])};
    int code = sv_check_inputs(paths->items, paths->n, o->export, err);
    if (code >= 0)
        code = sv_output_open(o->export, SV_OUTPUT_RENAME, SV_PLAIN, &out, err);
    if (code < 0)
        return code;
    code = sv_viewer_open(
        &(struct sv_viewer_options){
            .files = name, .n_files = 1, .notes = "", .is_offline = true, .report = answer},
        &s.viewer, err);
    if (code >= 0)
        code = load(o, paths, &s, &loaded, err);
    if (code >= 0)
        code = sv_view_export(s.viewer, out, err);
    if (code < 0)
        sv_output_discard(out);
    else
        code = sv_output_close(out, err);
    end_serving(&s);
    sv_loaded_free(&loaded);
    return code;
}

static int serve(const struct view *o, const struct sv_words *paths, struct sv_err *err)
{
    struct sv_loaded turns[2] = {{0}, {0}};
    struct serving s = {.is_live = o->follow};
    char *notes = notes_name(paths->items[0]);
    const char **names = sv_alloc((paths->n + 1) * sizeof *names);
    for (size_t i = 0; i < paths->n; i++)
        names[i] = basename(paths->items[i]);
    sigset_t before;
    int signal;
    sigprocmask(SIG_BLOCK, end_signals(), &before); /* the threads of the viewer inherit it */
    int code = sv_viewer_open(&(struct sv_viewer_options){.files = names,
                                                          .n_files = paths->n,
                                                          .notes = notes,
                                                          .port = (uint16_t)o->port,
                                                          .socket = o->socket,
                                                          .report = answer},
                              &s.viewer, err);
    free(notes);
    free(names);
    bool is_checked = true;
    for (size_t i = 0; i < paths->n; i++)
        is_checked = is_checked && (o->follow || can_read_again(paths->items[i]));
    if (code >= 0 && is_checked)
        announce(o, &s);
    if (code >= 0 && !o->follow)
        code = load(o, paths, &s, &turns[0], err);
    if (code >= 0 && !is_checked)
        announce(o, &s);
    if (code >= 0 && !(o->follow && follow(o, paths->items[0], &s, turns)))
        sigwait(end_signals(), &signal);
    end_serving(&s);
    sv_loaded_free(&turns[0]);
    sv_loaded_free(&turns[1]);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return code;
}

static int run(void *options, const struct sv_words *operands, struct sv_err *err)
{
    const struct view *o = options;
    int code = sv_expect_operands(operands, 1, SIZE_MAX, "trace", err);
    if (code >= 0)
        code = sv_options_either("port", "socket", err);
    if (code < 0)
        return code;
    if (o->port > 65535)
        return sv_error(err, SV_EUSAGE, "--port must be 1 to 65535");
    struct sv_err why = {0};
    if (sv_web_load(&why) < 0)
        return sv_error(err, SV_EUSAGE, "no viewer: %s", why.msg);
    static const char *const alone[] = {"follow", "port", "socket", "no-browser"};
    code = sv_options_need("align", "compare", err);
    if (code >= 0)
        code = sv_options_either("follow", "compare", err);
    for (size_t i = 0; i < sizeof alone / sizeof *alone && code >= 0; i++)
        code = sv_options_either("export", alone[i], err);
    if (code < 0)
        return code;
    if (o->follow && operands->n > 1)
        return sv_error(err, SV_EUSAGE, "--follow takes one trace");
    if (o->export)
        return export_page(o, operands, err);
    if (o->compare && operands->n != 2)
        return sv_error(err, SV_EUSAGE, "--compare takes two traces");
    code = o->follow ? check_recording(operands->items[0], err) : check_inputs(o, operands, err);
    return code < 0 ? code : serve(o, operands, err);
}

static const struct sv_option options[] = {
    {0, "port", "PORT", SV_OPT_COUNT, offsetof(struct view, port),
     "the port on 127.0.0.1 and ::1 (default: any that is free)", NULL, NULL},
    {0, "socket", "PATH", SV_OPT_TEXT, offsetof(struct view, socket),
     "a Unix socket that only you can open, instead of a port", NULL, NULL},
    {0, "no-browser", NULL, SV_OPT_FLAG, offsetof(struct view, no_browser),
     "print the address only", NULL, NULL},
    {0, "compare", NULL, SV_OPT_FLAG, offsetof(struct view, compare),
     "two traces above each other with one zoom, each from its beginning", NULL, NULL},
    {0, "align", "GLOB", SV_OPT_TEXT, offsetof(struct view, align),
     "with --compare: the first event of this name is at 0 in both (default: the first event)",
     NULL, NULL},
    {0, "export", "FILE", SV_OPT_OUTPUT, offsetof(struct view, export),
     "write the page with a small trace as one HTML file and exit", NULL, NULL},
    {0, "follow", NULL, SV_OPT_FLAG, offsetof(struct view, follow),
     "show a recording that is running, and what comes", NULL, NULL},
    SV_MEMORY_OPTION(struct view),
    SV_INDEX_OPTION(struct view),
    SV_RANGE_OPTIONS(struct view),
    SV_INPUTS_OPTIONS(struct view),
    {0},
};

static const struct sv_example examples[] = {
    {"stave view run.pftrace", "prints the address and opens the browser"},
    {"stave view rank0.pftrace rank1.pftrace", "several traces on one axis"},
    {"stave view --compare before.json after.json --align 'ProfilerStep#3'",
     "two runs with one zoom, from the same step on"},
    {"stave view run.pftrace --export run.html", "one file for mail or a bug report"},
    {"stave view --follow train.pftrace", "a recording that is running"},
    {"stave view --no-browser --port 9001 run.json.gz",
     "on a server; stave prints the ssh command for your machine"},
    {0},
};

const struct sv_command sv_command_view = {
    .name = "view",
    .operands = "TRACE…",
    .summary = "show the timeline in a browser",
    .description =
        "Serves the timeline of the traces to a browser on this machine, without internet: the "
        "page is part of the program. It prints the address and ends with Ctrl-C. In the page, ? "
        "lists the keys.\n\n"
        "Only this machine can connect, and only with the token in the address. From another "
        "machine use ssh; the command for it is printed. Notes that you write in the page are "
        "kept beside the trace in FILE.notes.json.",
    .options = options,
    .examples = examples,
    .lists = sv_format_lists,
    .options_size = sizeof(struct view),
    .run = run,
};
