/* The view of `stave show`: state, keys, drawing. The command feeds it keys and prints its screen.
 *
 * Only rows that are on the screen are laid out, so moving through a large trace costs no more than
 * through a small one. */
#include "cmd/show.h"

#include "core/base/glob.h"
#include "core/base/mem.h"
#include "core/base/utf8.h"
#include "core/chrome/args_json.h"
#include "plot/axis.h"
#include "plot/frame.h"
#include "plot/picture.h"
#include "store/ranks.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEAST_SPAN_NS 20
#define HEAD_LINES    2u /* title and axis */

void sv_view_init(struct sv_view *v, const struct sv_trace *t, const char *name, int64_t from_ns,
                  int64_t to_ns)
{
    *v = (struct sv_view){.trace = t,
                          .name = name,
                          .index = sv_layout_index_new(t),
                          .from_ns = from_ns,
                          .to_ns = to_ns,
                          .selected = SV_NO_ROW,
                          .width = 80,
                          .height = 24};
    sv_colors_init(&v->colors, t, NULL);
    sv_view_rows_init(v);
}

void sv_view_fini(struct sv_view *v)
{
    sv_view_rows_fini(v);
    sv_layout_index_free(v->index);
    sv_colors_fini(&v->colors);
    free(v->is_match);
    *v = (struct sv_view){0};
}

/* ---- sizes ---- */

static unsigned label_width(unsigned width)
{
    unsigned w = width / 5;
    return w < 8 ? 8 : w > 28 ? 28 : w;
}

static unsigned plot_width(const struct sv_view *v)
{
    unsigned label = label_width(v->width);
    return v->width > label + 1 ? v->width - label : 1;
}

static unsigned details_height(const struct sv_view *v)
{
    if (v->selected == SV_NO_ROW || v->hides_details || v->height < 10)
        return 0;
    unsigned third = v->height / 3;
    return third > 9 ? 9 : third;
}

static size_t body_height(const struct sv_view *v)
{
    unsigned other = HEAD_LINES + 1 + details_height(v);
    return v->height > other ? v->height - other : 1;
}

/* Lines of pinned rows that stay on the screen. */
static size_t n_fixed(const struct sv_view *v)
{
    size_t half = body_height(v) / 2;
    return v->n_fixed < half ? v->n_fixed : half;
}

static void keep_in_sight(struct sv_view *v)
{
    size_t fixed = n_fixed(v), height = body_height(v) - fixed;
    if (v->cursor >= v->n_lines)
        v->cursor = v->n_lines ? v->n_lines - 1 : 0;
    v->top = v->top < fixed ? fixed : v->top;
    if (v->cursor < fixed)
        return;
    if (v->cursor < v->top)
        v->top = v->cursor;
    if (v->cursor >= v->top + height)
        v->top = v->cursor - height + 1;
    if (v->top == fixed + 1 && v->cursor < fixed + height)
        v->top = fixed; /* show the first process' name */
}

/* ---- time ---- */

static int64_t end_ns(const struct sv_view *v)
{
    return v->trace->last_ns < INT64_MAX ? v->trace->last_ns + 1 : INT64_MAX;
}

/* The window [from, from + span), moved into the trace. */
static void set_window(struct sv_view *v, double from, double span)
{
    double first = (double)v->trace->first_ns, whole = (double)end_ns(v) - first;
    span = fmin(fmax(span, LEAST_SPAN_NS), whole);
    double at = fmin(fmax(from - first, 0), whole - span);
    v->from_ns = v->trace->first_ns + (int64_t)at;
    v->to_ns = span >= whole ? end_ns(v) : v->from_ns + (int64_t)ceil(span - 1e-6);
    if (v->to_ns <= v->from_ns)
        v->to_ns = v->from_ns + 1;
}

static double span_of(const struct sv_view *v)
{
    return (double)v->to_ns - (double)v->from_ns;
}

static bool is_in_window(const struct sv_view *v, uint32_t slice)
{
    return v->trace->slices.ts_ns[slice] < v->to_ns &&
           sv_trace_end_ns(v->trace, slice) >= v->from_ns;
}

/* The middle of what is visible of the selected slice, else of the window. */
static double focus_ns(const struct sv_view *v)
{
    double from = (double)v->from_ns, to = (double)v->to_ns;
    if (v->selected != SV_NO_ROW && is_in_window(v, v->selected)) {
        from = fmax(from, (double)v->trace->slices.ts_ns[v->selected]);
        to = fmin(to, (double)sv_trace_end_ns(v->trace, v->selected));
    }
    return (from + to) / 2;
}

static void zoom(struct sv_view *v, double factor)
{
    double at = focus_ns(v), span = span_of(v);
    double share = (at - (double)v->from_ns) / span;
    double next = fmax(span * factor, LEAST_SPAN_NS);
    set_window(v, at - share * next, next);
}

/* ---- selection ---- */

static const struct sv_row_member *member_of(const struct sv_view *v, uint32_t slice)
{
    sv_track track = v->trace->slices.track[slice];
    const struct sv_row_info *r = &v->index->rows->items[v->row_of_track[track]];
    const struct sv_row_member *m = &v->index->rows->members[r->first_member];
    while (m->track != track)
        m++;
    return m;
}

static void select_slice(struct sv_view *v, uint32_t slice)
{
    sv_track track = v->trace->slices.track[slice];
    uint32_t row = v->row_of_track[track],
             line = sv_layout_line(v->index, member_of(v, slice), slice);
    v->selected = slice;
    sv_view_reveal(v, row, line);
    v->cursor = v->line_of_row[row] + line;
    if (!is_in_window(v, slice))
        set_window(v, (double)v->trace->slices.ts_ns[slice] - span_of(v) / 2, span_of(v));
    keep_in_sight(v);
}

/* The slice of the cursor's line that is nearest to the focus. */
static void select_near(struct sv_view *v)
{
    const struct sv_view_line *line = &v->lines[v->cursor];
    struct sv_layout l;
    double at = focus_ns(v), best = INFINITY;
    v->selected = SV_NO_ROW;
    if (v->n_lines == 0 || line->kind != SV_VIEW_ROW ||
        v->index->rows->items[line->row].lines == 0 || sv_view_is_dense(v, line->row))
        return;
    sv_layout_init(&l, v->index,
                   &(struct sv_layout_window){.from_ns = v->from_ns,
                                              .to_ns = v->to_ns,
                                              .width = plot_width(v),
                                              .first_row = line->row,
                                              .n_rows = 1});
    double x = sv_layout_x(&l, (int64_t)at);
    for (size_t i = 0; i < l.n_rects; i++) {
        double distance = fmax(fmax(l.rects[i].x0 - x, x - l.rects[i].x1), 0);
        if (l.rects[i].line == line->line && distance < best) {
            best = distance;
            v->selected = l.rects[i].slice;
        }
    }
    sv_layout_fini(&l);
}

/* The next or previous slice on the selected one's line. */
static void select_beside(struct sv_view *v, bool forward)
{
    if (v->selected == SV_NO_ROW) {
        select_near(v);
        return;
    }
    const struct sv_row_member *m = member_of(v, v->selected);
    const struct sv_trace_track *k = &v->trace->tracks[m->track];
    uint32_t line = sv_layout_line(v->index, m, v->selected), at = v->selected;
    while (forward ? at + 1 < k->end : at > k->first) {
        at = forward ? at + 1 : at - 1;
        if (sv_layout_line(v->index, m, at) == line) {
            select_slice(v, at);
            return;
        }
    }
    snprintf(v->message, sizeof v->message, "no %s slice on this line",
             forward ? "further" : "earlier");
}

static void move_cursor(struct sv_view *v, long by)
{
    long to = (long)v->cursor + by;
    to = to < 0 ? 0 : to >= (long)v->n_lines ? (long)v->n_lines - 1 : to;
    if (v->n_lines == 0)
        return;
    v->cursor = (size_t)to;
    select_near(v);
    keep_in_sight(v);
}

/* ---- search ---- */

static void set_pattern(struct sv_view *v, const char *text)
{
    const struct sv_dict *d = v->trace->dict;
    char glob[160];
    bool is_glob = strpbrk(text, "*?[") != NULL;
    snprintf(glob, sizeof glob, "%s", text);
    snprintf(v->pattern, sizeof v->pattern, "%s", text);
    free(v->is_match);
    v->is_match = sv_alloc((size_t)d->n_strings + 1);
    for (sv_str s = 1; s < d->n_strings; s++) {
        struct sv_text name = sv_dict_text(d, s);
        v->is_match[s] = is_glob ? sv_glob_match(glob, name.bytes, name.len)
                                 : strcasestr(name.bytes, text) != NULL;
    }
}

/* Is row x before row y in the order of time, equal times by row? */
static bool is_before(const struct sv_trace *t, uint32_t x, uint32_t y)
{
    int64_t a = t->slices.ts_ns[x], b = t->slices.ts_ns[y];
    return a != b ? a < b : x < y;
}

/* The match of one track that comes next after (or last before) row `at`, whose time is ts_ns. */
static uint32_t match_on_track(const struct sv_view *v, sv_track track, int64_t ts_ns, uint32_t at,
                               bool forward)
{
    const struct sv_trace *t = v->trace;
    const struct sv_trace_track *k = &t->tracks[track];
    uint32_t row = sv_trace_row_from(t, track, ts_ns);
    if (forward) {
        while (row < k->end && at != SV_NO_ROW && t->slices.ts_ns[row] == ts_ns && row <= at)
            row++;
        while (row < k->end && !v->is_match[t->slices.name[row]])
            row++;
        return row < k->end ? row : SV_NO_ROW;
    }
    while (row < k->end && at != SV_NO_ROW && t->slices.ts_ns[row] == ts_ns && row < at)
        row++;
    while (row > k->first && !v->is_match[t->slices.name[row - 1]])
        row--;
    return row > k->first ? row - 1 : SV_NO_ROW;
}

static bool find_next(struct sv_view *v, bool forward)
{
    const struct sv_trace *t = v->trace;
    int64_t ts_ns = v->selected != SV_NO_ROW ? t->slices.ts_ns[v->selected] : v->from_ns;
    uint32_t best = SV_NO_ROW;
    for (sv_track k = 1; v->is_match && k < t->n_tracks; k++) {
        if (v->row_of_track[k] == SV_NO_ROW)
            continue;
        uint32_t row = match_on_track(v, k, ts_ns, v->selected, forward);
        if (row != SV_NO_ROW &&
            (best == SV_NO_ROW || is_before(t, forward ? row : best, forward ? best : row)))
            best = row;
    }
    if (best == SV_NO_ROW) {
        snprintf(v->message, sizeof v->message, "no %s slice matches '%.60s'",
                 forward ? "further" : "earlier", v->pattern);
        return false;
    }
    select_slice(v, best);
    snprintf(v->message, sizeof v->message, "found '%.60s'; n: next, N: previous", v->pattern);
    return true;
}

bool sv_view_find(struct sv_view *v, const char *text)
{
    set_pattern(v, text);
    v->selected = SV_NO_ROW;
    return find_next(v, true);
}

/* ---- keys ---- */

static void search_typed(struct sv_view *v)
{
    char text[sizeof v->pattern];
    if (v->types_filter || v->n_typed == 0)
        return;
    memcpy(text, v->pattern, sizeof text);
    set_pattern(v, text);
    find_next(v, true);
}

/* A filter acts while it is typed, a search at the end. */
static void type_key(struct sv_view *v, uint32_t key)
{
    char *text = v->types_filter ? v->filter : v->pattern;
    if (key == SV_KEY_ESCAPE) {
        v->is_typing = false;
        if (v->types_filter)
            *text = 0;
    } else if (key == SV_KEY_ENTER) {
        v->is_typing = false;
        search_typed(v);
    } else if (key == SV_KEY_BACKSPACE || key == 8) {
        while (v->n_typed && ((unsigned char)text[--v->n_typed] & 0xc0) == 0x80)
            ;
        text[v->n_typed] = 0;
    } else if (key >= ' ' && key < SV_KEY_UP && v->n_typed + 5 < sizeof v->pattern) {
        v->n_typed += sv_utf8_encode(text + v->n_typed, key);
        text[v->n_typed] = 0;
    }
    if (v->types_filter)
        sv_view_make_lines(v);
}

static void begin_typing(struct sv_view *v, bool is_filter)
{
    v->is_typing = true;
    v->types_filter = is_filter;
    v->n_typed = 0;
    *(is_filter ? v->filter : v->pattern) = 0;
    if (is_filter)
        sv_view_make_lines(v);
}

static void fit_selection(struct sv_view *v)
{
    if (v->selected == SV_NO_ROW)
        return;
    double from = (double)v->trace->slices.ts_ns[v->selected];
    double span = (double)sv_trace_end_ns(v->trace, v->selected) - from;
    set_window(v, from - span * 0.05, span * 1.1);
}

static void move_key(struct sv_view *v, uint32_t key)
{
    long page = (long)body_height(v) - 1;
    switch (key) {
    case SV_KEY_LEFT:
    case 'h': set_window(v, (double)v->from_ns - span_of(v) / 5, span_of(v)); break;
    case SV_KEY_RIGHT:
    case 'l': set_window(v, (double)v->from_ns + span_of(v) / 5, span_of(v)); break;
    case SV_KEY_UP:
    case 'k': move_cursor(v, -1); break;
    case SV_KEY_DOWN:
    case 'j': move_cursor(v, 1); break;
    case SV_KEY_PAGE_UP: move_cursor(v, -page); break;
    case SV_KEY_PAGE_DOWN:
    case ' ': move_cursor(v, page); break;
    case SV_KEY_TAB:
    case '.': select_beside(v, true); break;
    case SV_KEY_BACK_TAB:
    case ',': select_beside(v, false); break;
    case SV_KEY_HOME:
    case 'g': set_window(v, (double)v->trace->first_ns, span_of(v)); break;
    case SV_KEY_END:
    case 'G': set_window(v, (double)end_ns(v), span_of(v)); break;
    default: break;
    }
}

/* Keys that change which rows there are. */
static const struct {
    uint32_t key;
    void (*act)(struct sv_view *v);
    bool needs_line;
} row_keys[] = {{'c', sv_view_fold, true},
                {'C', sv_view_fold_all, false},
                {'p', sv_view_pin, true},
                {'x', sv_view_hide, true},
                {'X', sv_view_unhide, false}};

static bool row_key(struct sv_view *v, uint32_t key)
{
    bool is_heading = v->n_lines && v->lines[v->cursor].kind != SV_VIEW_ROW;
    key = is_heading && (key == SV_KEY_ENTER || key == 'f') ? 'c' : key;
    for (size_t i = 0; i < sizeof row_keys / sizeof *row_keys; i++)
        if (row_keys[i].key == key) {
            if (v->n_lines || !row_keys[i].needs_line)
                row_keys[i].act(v);
            keep_in_sight(v);
            return true;
        }
    return false;
}

void sv_view_key(struct sv_view *v, uint32_t key)
{
    v->message[0] = 0;
    if (v->is_typing) {
        type_key(v, key);
        return;
    }
    if (v->shows_help) {
        v->shows_help = false;
        return;
    }
    if (row_key(v, key))
        return;
    switch (key) {
    case SV_KEY_ENTER:
    case 'f': fit_selection(v); break;
    case 'q':
    case 3: v->is_over = true; break;
    case '?': v->shows_help = true; break;
    case '/':
    case '&': begin_typing(v, key == '&'); break;
    case 'n':
    case 'N':
        if (v->is_match)
            find_next(v, key == 'n');
        else
            snprintf(v->message, sizeof v->message, "no search yet: press /");
        break;
    case '+':
    case '=': zoom(v, 1 / 1.6); break;
    case '-': zoom(v, 1.6); break;
    case '0': set_window(v, (double)v->trace->first_ns, (double)INT64_MAX); break;
    case 'd': v->hides_details = !v->hides_details; break;
    case SV_KEY_ESCAPE: v->selected = SV_NO_ROW; break;
    default: move_key(v, key); break;
    }
}

/* ---- drawing ---- */

static struct sv_pen pen_of(unsigned flags)
{
    struct sv_pen pen = SV_PLAIN_PEN;
    pen.flags = (uint8_t)flags;
    return pen;
}

static void draw_title(const struct sv_view *v, struct sv_screen *s)
{
    struct sv_buf b;
    sv_buf_init(&b, 4096);
    sv_text_clean(&b, v->name, strlen(v->name));
    sv_buf_str(&b, "  ");
    sv_format_duration(&b, (double)v->from_ns - (double)v->trace->first_ns);
    sv_buf_str(&b, " + ");
    sv_format_duration(&b, span_of(v));
    sv_buf_str(&b, "  ");
    sv_format_count(&b, v->trace->slices.n);
    sv_buf_str(&b, " slices");
    if (v->trace->losses.n)
        sv_buf_printf(&b, "  events were lost at %" PRIu64 " places", v->trace->losses.n);
    sv_screen_text(s, 0, 0, s->width, sv_buf_cstr(&b), b.len, pen_of(SV_CELL_BOLD));
    sv_buf_fini(&b);
}

static void draw_heading(const struct sv_view *v, struct sv_screen *s,
                         const struct sv_view_line *line, unsigned y)
{
    struct sv_buf b;
    sv_buf_init(&b, 4096);
    sv_buf_str(&b, sv_view_sign(v, line));
    if (line->kind == SV_VIEW_GATHER)
        sv_gather_name(&v->order, (enum sv_gather)line->line, &b);
    else
        sv_group_name(v->trace->dict, v->index->rows->items[line->row].group, &b);
    sv_screen_text(s, 0, y, s->width, sv_buf_cstr(&b), b.len, pen_of(SV_CELL_BOLD));
    sv_buf_fini(&b);
}

/* The rows of a line that are not in the list yet: appended. */
static size_t add_rows(const struct sv_view *v, const struct sv_view_line *line, bool *is_there,
                       uint32_t *rows, size_t n)
{
    for (size_t row = line->row; row < v->index->rows->n; row++) {
        bool is_part = line->kind == SV_VIEW_LANES ? v->lanes[row] == line->row
                                                   : line->kind == SV_VIEW_ROW && row == line->row;
        if (is_part && !is_there[row])
            rows[n++] = (uint32_t)row;
        is_there[row] |= is_part;
        if (line->kind != SV_VIEW_LANES)
            break;
    }
    return n;
}

static void draw_lanes(const struct sv_view *v, struct sv_screen *s, const struct sv_layout *l,
                       const struct sv_view_line *line, unsigned x, unsigned y)
{
    size_t n_rows = v->index->rows->n;
    uint32_t *rows = sv_alloc((n_rows + 1) * sizeof *rows);
    bool *is_there = sv_alloc(n_rows + 1);
    sv_screen_density(s, x, y, l, rows, add_rows(v, line, is_there, rows, 0));
    free(is_there);
    free(rows);
}

static void draw_body_line(const struct sv_view *v, struct sv_screen *s, const struct sv_layout *l,
                           size_t number, unsigned y)
{
    const struct sv_view_line *line = &v->lines[number];
    const struct sv_row_info *info = &v->index->rows->items[line->row];
    unsigned label = label_width(s->width);
    bool is_cursor = number == v->cursor;
    uint32_t row = (uint32_t)line->row;
    struct sv_buf b;
    if (line->kind == SV_VIEW_GROUP || line->kind == SV_VIEW_GATHER) {
        draw_heading(v, s, line, y);
        if (is_cursor)
            sv_screen_text(s, s->width - 1, y, 1, "<", 1, pen_of(0));
        return;
    }
    sv_buf_init(&b, 4096);
    sv_buf_str(&b, is_cursor ? ">" : number < v->n_fixed ? "^" : " ");
    for (uint32_t i = 0; line->line == 0 && i < info->depth; i++)
        sv_buf_str(&b, " ");
    if (line->line == 0)
        sv_buf_str(&b, sv_view_sign(v, line));
    if (line->kind == SV_VIEW_LANES)
        sv_view_lanes_name(v, line->row, &b);
    else if (line->line == 0)
        sv_row_name(v->index->rows, line->row, &b);
    sv_screen_text(s, 0, y, label - 1, sv_buf_cstr(&b), b.len,
                   pen_of(is_cursor ? SV_CELL_BOLD : 0));
    if (line->kind == SV_VIEW_LANES)
        draw_lanes(v, s, l, line, label, y);
    else if (sv_view_is_dense(v, line->row))
        sv_screen_density(s, label, y, l, &row, 1);
    else if (info->lines)
        sv_screen_slices(s, label, y, l, line->row, line->line, &v->colors, v->selected);
    else
        sv_screen_counter(s, label, y, l, line->row);
    sv_buf_fini(&b);
}

/* Lines [from, to) on the screen, those that do not scroll before the others. */
static size_t line_at(const struct sv_view *v, size_t place)
{
    size_t fixed = n_fixed(v);
    return place < fixed ? place : v->top + place - fixed;
}

static void draw_body(const struct sv_view *v, struct sv_screen *s)
{
    size_t height = body_height(v), n = 0;
    uint32_t *rows = sv_alloc((v->index->rows->n + 1) * sizeof *rows);
    bool *is_there = sv_alloc(v->index->rows->n + 1);
    struct sv_layout l;
    for (size_t i = 0; i < height && line_at(v, i) < v->n_lines; i++)
        n = add_rows(v, &v->lines[line_at(v, i)], is_there, rows, n);
    sv_layout_init(&l, v->index,
                   &(struct sv_layout_window){.from_ns = v->from_ns,
                                              .to_ns = v->to_ns,
                                              .width = plot_width(v),
                                              .n_rows = n,
                                              .rows = rows});
    sv_screen_axis(s, label_width(s->width), 1, &l);
    for (size_t i = 0; i < height && line_at(v, i) < v->n_lines; i++)
        draw_body_line(v, s, &l, line_at(v, i), HEAD_LINES + (unsigned)i);
    sv_layout_fini(&l);
    free(is_there);
    free(rows);
}

struct details {
    struct sv_screen *s;
    unsigned y, end;
    size_t left_out;
};

static void add_detail(struct details *d, const char *key, size_t key_len, struct sv_buf *value)
{
    if (d->y >= d->end) {
        d->left_out++;
        return;
    }
    unsigned x = 1 +
                 sv_screen_text(d->s, 1, d->y, d->s->width - 1, key, key_len, pen_of(SV_CELL_DIM));
    sv_screen_text(d->s, x + 1, d->y, d->s->width > x + 1 ? d->s->width - x - 1 : 0,
                   sv_buf_cstr(value), value->len, pen_of(0));
    d->y++;
    sv_buf_clear(value);
}

static void add_args(const struct sv_view *v, struct details *d, struct sv_buf *b)
{
    const struct sv_dict *dict = v->trace->dict;
    struct sv_batch *scratch = sv_alloc(sizeof *scratch);
    size_t n;
    sv_batch_init(scratch);
    const struct sv_arg *args =
        sv_trace_args(v->trace, v->trace->slices.args[v->selected], scratch, &n);
    for (const struct sv_arg *a = args; args && a < args + n; a = sv_arg_next(a)) {
        struct sv_json j;
        struct sv_text key = sv_dict_text(dict, a->key);
        if (key.len == 0) {
            key.bytes = sv_arg_type_name(a->type);
            key.len = (uint32_t)strlen(key.bytes);
        }
        sv_json_init(&j, b);
        sv_arg_json(&j, dict, a, args + n);
        add_detail(d, key.bytes, key.len, b);
    }
    sv_batch_fini(scratch);
    free(scratch);
}

static void draw_details(const struct sv_view *v, struct sv_screen *s)
{
    const struct sv_trace *t = v->trace;
    const struct sv_slices *c = &t->slices;
    unsigned height = details_height(v), top = s->height - 1 - height;
    uint32_t at = v->selected;
    struct details d = {.s = s, .y = top + 1, .end = top + height};
    struct sv_text name = sv_dict_text(t->dict, c->name[at]),
                   cat = sv_dict_text(t->dict, c->cat[at]);
    struct sv_buf b;
    if (height == 0)
        return;
    sv_buf_init(&b, 1u << 20);
    for (unsigned x = 0; x < s->width; x++)
        sv_screen_text(s, x, top, 1, s->is_ascii ? "-" : "\xe2\x94\x80", s->is_ascii ? 1 : 3,
                       pen_of(SV_CELL_DIM));
    sv_screen_text(s, 2, top, s->width > 4 ? s->width - 4 : 0, name.bytes, name.len,
                   pen_of(SV_CELL_BOLD));
    if (c->kind[at] == SV_INSTANT)
        sv_buf_str(&b, "instant");
    else if (c->dur_ns[at] == SV_UNFINISHED)
        sv_buf_str(&b, "never ended");
    else
        sv_format_duration(&b, (double)c->dur_ns[at]);
    sv_buf_str(&b, " at ");
    sv_format_duration(&b, (double)c->ts_ns[at] - (double)t->first_ns);
    if (cat.len) {
        sv_buf_str(&b, ", category ");
        sv_buf_add(&b, cat.bytes, cat.len);
    }
    add_detail(&d, "time", 4, &b);
    sv_track_title(t->dict, c->track[at], &b);
    if (c->parent[at] != SV_NO_ROW) {
        struct sv_text parent = sv_dict_text(t->dict, c->name[c->parent[at]]);
        sv_buf_str(&b, ", within ");
        sv_buf_add(&b, parent.bytes, parent.len);
    }
    add_detail(&d, "on", 2, &b);
    add_args(v, &d, &b);
    if (d.left_out)
        sv_screen_printf(s, s->width > 24 ? s->width - 24 : 0, top, 22, pen_of(SV_CELL_DIM),
                         " %zu more arguments ", d.left_out);
    sv_buf_fini(&b);
}

static void draw_help(struct sv_screen *s)
{
    static const char *const lines[] = {
        "left right   h l    move in time",
        "+ -                 zoom in and out around the selected slice",
        "up down      k j    next line; selects the slice nearest to the middle",
        "page up, page down  a screen of lines",
        "Tab  Shift-Tab  . , next and previous slice on this line",
        "Enter        f      fit the selected slice into the window",
        "0                   the whole trace",
        "Home End     g G    start and end of the trace",
        "/ n N               search by name (part of it, or a glob), next, previous",
        "d                   details of the selected slice on or off",
        "c            C      fold or unfold the row or process; all processes",
        "p                   pin the row to the top, or not any more",
        "x            X      hide the row or process; show all again",
        "&                   filter the rows by names; Esc shows all",
        "Esc                 clear the selection",
        "q                   quit",
    };
    sv_screen_clear(s);
    sv_screen_printf(s, 1, 0, s->width - 1, pen_of(SV_CELL_BOLD), "stave show: keys");
    for (unsigned i = 0; i < sizeof lines / sizeof *lines; i++)
        sv_screen_printf(s, 1, i + 2, s->width - 1, pen_of(0), "%s", lines[i]);
    sv_screen_printf(s, 1, s->height - 1, s->width - 1, pen_of(SV_CELL_DIM),
                     "any key: back to the trace");
}

void sv_view_draw(struct sv_view *v, struct sv_screen *s)
{
    v->width = s->width;
    v->height = s->height;
    keep_in_sight(v);
    sv_screen_clear(s);
    if (v->shows_help) {
        draw_help(s);
        return;
    }
    draw_title(v, s);
    draw_body(v, s);
    if (v->selected != SV_NO_ROW)
        draw_details(v, s);
    unsigned last = s->height - 1;
    if (v->is_typing)
        sv_screen_printf(s, 0, last, s->width, pen_of(0), "%s%s_", v->types_filter ? "&" : "/",
                         v->types_filter ? v->filter : v->pattern);
    else if (v->message[0])
        sv_screen_printf(s, 0, last, s->width, pen_of(0), "%s", v->message);
    else if (*v->filter)
        sv_screen_printf(s, 0, last, s->width, pen_of(SV_CELL_DIM),
                         "rows with '%s'; &: another filter, & Esc: all rows", v->filter);
    else
        sv_screen_printf(s, 0, last, s->width, pen_of(SV_CELL_DIM),
                         "arrows: move  + -: zoom  Tab: next slice  Enter: fit  /: find  0: all  "
                         "?: help  q: quit");
}
