/* stave show: the time line in a terminal.
 *
 * Loads the trace, then draws whole screens and waits for keys; or draws one screen as text. */
#include "cmd/show.h"

#include "cli/console.h"
#include "cmd/commands.h"
#include "cmd/first_rows.h"
#include "files/load.h"
#include "plot/activity.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct show {
    const char *from, *find, *order;
    struct sv_interval window;
    uint64_t width, height, memory_limit;
    bool strict, once, ascii, no_index;
};

static bool is_set(const char *name)
{
    const char *value = getenv(name);
    return value && *value;
}

/* What the terminal can show, by what it says of itself. */
static enum sv_depth color_depth(bool is_terminal)
{
    const char *term = getenv("TERM"), *color = getenv("COLORTERM");
    bool is_asked = sv_common.color && strcmp(sv_common.color, "always") == 0;
    bool is_refused = sv_common.color && strcmp(sv_common.color, "never") == 0;
    if (is_refused || (!is_asked && (is_set("NO_COLOR") || !is_terminal)))
        return SV_DEPTH_MONO;
    if (color && (strcmp(color, "truecolor") == 0 || strcmp(color, "24bit") == 0))
        return SV_DEPTH_TRUE;
    if (!is_asked && (!term || strcmp(term, "dumb") == 0 || strncmp(term, "vt", 2) == 0))
        return SV_DEPTH_MONO;
    return SV_DEPTH_256;
}

static bool has_utf8(void)
{
    const char *value = is_set("LC_ALL")     ? getenv("LC_ALL")
                        : is_set("LC_CTYPE") ? getenv("LC_CTYPE")
                                             : getenv("LANG");
    return value && (strcasestr(value, "utf-8") || strcasestr(value, "utf8"));
}

static void open_screen(struct sv_screen *s, const struct show *o, unsigned width, unsigned height,
                        bool is_terminal)
{
    sv_screen_init(s, width, height);
    s->depth = color_depth(is_terminal);
    s->is_ascii = o->ascii || !has_utf8();
}

static int print_once(struct sv_view *v, const struct show *o, struct sv_err *err)
{
    bool is_terminal = isatty(STDOUT_FILENO);
    unsigned width = 100, height = 30;
    struct sv_screen s;
    struct sv_buf text;
    if (is_terminal)
        sv_terminal_size(&width, &height);
    width = o->width ? (unsigned)o->width : width;
    height = o->height ? (unsigned)o->height : height;
    open_screen(&s, o, width, height, is_terminal);
    sv_view_draw(v, &s);
    sv_buf_init(&text, 1u << 28);
    s.height--; /* no line about keys */
    sv_screen_write(&s, false, &text);
    size_t len = text.len;
    while (len > 1 && text.data[len - 1] == '\n' && text.data[len - 2] == '\n')
        len--;
    int code = sv_print_data(stdout, text.data, len, err);
    sv_buf_fini(&text);
    sv_screen_fini(&s);
    return code;
}

static void draw(struct sv_view *v, const struct show *o)
{
    unsigned width, height;
    struct sv_screen s;
    struct sv_buf bytes;
    sv_terminal_size(&width, &height);
    open_screen(&s, o,
                width < 20     ? 20
                : width > 2000 ? 2000
                               : width,
                height < 5      ? 5
                : height > 1000 ? 1000
                                : height,
                true);
    sv_view_draw(v, &s);
    sv_buf_init(&bytes, 1u << 28);
    /* Terminals that know it show the frame at once. */
    sv_buf_str(&bytes, "\x1b[?2026h");
    s.height = s.height > height ? height : s.height;
    sv_screen_write(&s, true, &bytes);
    sv_buf_str(&bytes, "\x1b[?2026l");
    sv_terminal_write(bytes.data, bytes.len);
    sv_buf_fini(&bytes);
    sv_screen_fini(&s);
}

#define CTRL_L 12u
#define CTRL_Z 26u

static int interact(struct sv_view *v, const struct show *o, struct sv_err *err)
{
    int code = sv_terminal_open(err);
    if (code < 0)
        return code;
    uint32_t key = SV_TERMINAL_RESIZED;
    while (!v->is_over && key != SV_TERMINAL_ENDED) {
        draw(v, o);
        key = sv_terminal_key();
        if (key == CTRL_Z)
            sv_terminal_suspend();
        else if (key < SV_TERMINAL_RESIZED && key != CTRL_L && key != SV_KEY_NONE)
            sv_view_key(v, key);
    }
    int signal = sv_terminal_signal();
    sv_terminal_close();
    if (signal)
        raise(signal);
    return 0;
}

static int show(const struct show *o, const struct sv_trace *t, const char *path,
                struct sv_err *err)
{
    struct sv_view v;
    int64_t from = sv_moment_in(&o->window.from, t->first_ns, t->first_ns);
    int64_t to = sv_moment_in(&o->window.to, t->first_ns,
                              t->last_ns < INT64_MAX ? t->last_ns + 1 : INT64_MAX);
    if (t->slices.n == 0 && t->counters.n == 0)
        return sv_error(err, SV_EFOUND,
                        "%s has neither slices nor counters: there is nothing to show", path);
    if (to <= from || from > t->last_ns || to <= t->first_ns)
        return sv_error(err, SV_EUSAGE, "--time: no events in that window");
    struct sv_activity active;
    bool is_all = from <= t->first_ns && to > t->last_ns;
    if (is_all && sv_activity_find(t, &active)) { /* the key 0 shows everything */
        from = active.from_ns;
        to = active.to_ns;
    }
    sv_view_init(&v, t, basename(path), from, to);
    v.width = o->width ? (unsigned)o->width : 100;
    v.height = o->height ? (unsigned)o->height : 30;
    uint32_t first[SV_EXPLAIN_ROWS];
    sv_view_first_rows(&v, first, sv_first_rows(o->order, v.index->rows, first));
    int code = 0;
    if (o->find && !sv_view_find(&v, o->find))
        code = sv_error(err, SV_EFOUND, "no slice matches '%s'", o->find);
    if (code >= 0)
        code = o->once ? print_once(&v, o, err) : interact(&v, o, err);
    sv_view_fini(&v);
    return code;
}

static int run(void *options, const struct sv_words *operands, struct sv_err *err)
{
    const struct show *o = options;
    struct sv_loaded loaded;
    int code = sv_expect_operands(operands, 1, 1, "trace", err);
    if (code < 0)
        return code;
    code = sv_options_need("width", "once", err);
    if (code >= 0)
        code = sv_check_order(o->order, err);
    if (code >= 0)
        code = sv_options_need("height", "once", err);
    if (code < 0)
        return code;
    if ((o->width && (o->width < 20 || o->width > 2000)) ||
        (o->height && (o->height < 5 || o->height > 1000)))
        return sv_error(err, SV_EUSAGE,
                        "--width must be 20 to 2000 columns, --height 5 to 1000 lines");
    if (!o->once && !isatty(STDOUT_FILENO))
        return sv_error(err, SV_EUSAGE,
                        "standard output is not a terminal; use --once to print one screen");
    struct sv_load_how how = {.from = o->from,
                              .strict = o->strict,
                              .memory_limit_bytes = o->memory_limit,
                              .index = o->no_index};
    code = sv_load(operands->items[0], &how, &loaded, err);
    if (code >= 0)
        code = show(o, loaded.trace, operands->items[0], err);
    sv_loaded_free(&loaded);
    return code;
}

static const struct sv_option options[] = {
    {0, "once", NULL, SV_OPT_FLAG, offsetof(struct show, once),
     "print one screen and exit; plain text unless standard output is a terminal", NULL, NULL},
    SV_TIME_OPTION(struct show, "show this window first (default: the whole trace)"),
    {0, "find", "NAME", SV_OPT_TEXT, offsetof(struct show, find),
     "select the first slice whose name contains this (or matches it as a glob)", NULL, NULL},
    {0, "order", "WORD", SV_OPT_TEXT, offsetof(struct show, order), SV_ORDER_HELP, "findings trace",
     NULL},
    {0, "width", "COLUMNS", SV_OPT_COUNT, offsetof(struct show, width),
     "columns, with --once (default: those of the terminal, else 100)", NULL, NULL},
    {0, "height", "LINES", SV_OPT_COUNT, offsetof(struct show, height),
     "lines, with --once (default: those of the terminal, else 30)", NULL, NULL},
    {0, "ascii", NULL, SV_OPT_FLAG, offsetof(struct show, ascii),
     "use only ASCII characters (default if the locale is not UTF-8)", NULL, NULL},
    SV_MEMORY_OPTION(struct show),
    SV_INDEX_OPTION(struct show),
    SV_INPUT_OPTIONS(struct show),
    {0},
};

static const struct sv_example examples[] = {
    {"stave show trace.json.gz", "interactive; ? lists the keys, q quits"},
    {"stave show run.pftrace --find optimizer --once",
     "the first such slice with its arguments, as text"},
    {"stave show run.pftrace --once --time 1.2s:1.3s --width 160 --height 50",
     "plain text for scripts and mail"},
    {0},
};

const struct sv_command sv_command_show = {
    .name = "show",
    .operands = "TRACE",
    .summary = "show the timeline in the terminal",
    .description = "Draws the timeline in the terminal, also over ssh: zoom with + and -, move "
                   "with the arrows, walk from slice to slice with Tab, search with /; the "
                   "selected slice is shown with its arguments. c folds a row or a process, p pins "
                   "a row to the top, x hides it, & filters the rows by their names. ? lists all "
                   "keys.\n\n"
                   "Rows that the findings of `stave explain` are about come first; processes that "
                   "do next to nothing are folded into one line at the end.\n\n"
                   "The terminal (COLORTERM, TERM) and NO_COLOR decide whether true colour, 256 "
                   "colours or none are used. Slices narrower than a character cell are merged.",
    .options = options,
    .examples = examples,
    .lists = sv_format_lists,
    .options_size = sizeof(struct show),
    .run = run,
};
