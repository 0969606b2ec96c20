/* Which rows `stave show` has on its screen: their order, and what is folded, filtered, hidden and
 * pinned. Called by the view for each key that changes that.
 *
 * The lines are made anew from the rows; the cursor stays on its row. Must not draw. */
#include "cmd/show.h"

#include "core/base/mem.h"
#include "plot/lanes.h"

#include <stdlib.h>
#include <string.h>

enum { IS_FOLDED = 1, IS_HIDDEN = 2, IS_PINNED = 4, IS_UNFOLDED = 8 /* its lanes are */ };

static sv_track group_of(const struct sv_view *v, size_t row)
{
    return v->index->rows->items[row].group;
}

static void add_line(struct sv_view *v, size_t row, uint32_t line, enum sv_view_line_kind kind)
{
    SV_APPEND(v->lines, v->n_lines, v->cap_lines) = (struct sv_view_line){row, line, kind};
}

bool sv_view_is_dense(const struct sv_view *v, size_t row)
{
    return sv_row_overlap(v->index->rows, row) >= SV_DENSE_LEAST && v->row_state[row] & IS_FOLDED;
}

static void add_row(struct sv_view *v, size_t row)
{
    const struct sv_row_info *r = &v->index->rows->items[row];
    uint32_t n = v->row_state[row] & IS_FOLDED ? 1 : sv_layout_lines(r);
    v->line_of_row[row] = v->n_lines;
    for (uint32_t line = 0; line == 0 || line < n; line++)
        add_line(v, row, line, SV_VIEW_ROW);
}

/* All words of the filter are in the names of the row and its group. */
static bool is_wanted(const struct sv_view *v, size_t row)
{
    struct sv_buf name;
    char words[sizeof v->filter], *rest = NULL;
    bool has_all = true;
    if (!*v->filter)
        return true;
    sv_buf_init(&name, 1u << 20);
    sv_row_name(v->index->rows, row, &name);
    sv_buf_byte(&name, ' ');
    sv_group_name(v->trace->dict, group_of(v, row), &name);
    memcpy(words, v->filter, sizeof words);
    for (char *word = strtok_r(words, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
        has_all = has_all && strcasestr(sv_buf_cstr(&name), word);
    sv_buf_fini(&name);
    return has_all;
}

static bool is_shown(const struct sv_view *v, size_t row)
{
    return !(v->row_state[row] & (IS_HIDDEN | IS_PINNED)) &&
           !(v->group_state[group_of(v, row)] & IS_HIDDEN) && is_wanted(v, row);
}

/* What the rows before this one say about it. */
struct walk {
    uint8_t gather; /* the heading that is open */
    bool has_group;
    sv_track group;
    uint32_t folded_depth; /* rows below it are not shown */
    uint32_t lanes;        /* whose line is there */
};

/* What stands for lanes comes before them. Are they shown one by one? */
static bool walk_lanes(struct sv_view *v, struct walk *w, uint32_t lanes)
{
    if (lanes != SV_NO_ROW && lanes != w->lanes)
        add_line(v, lanes, 0, SV_VIEW_LANES);
    w->lanes = lanes;
    return lanes == SV_NO_ROW || v->row_state[lanes] & IS_UNFOLDED;
}

static void walk_row(struct sv_view *v, struct walk *w, size_t row)
{
    uint8_t gather = v->order.gather[row];
    bool is_filtered = *v->filter;
    uint32_t depth = v->index->rows->items[row].depth;
    sv_track group = group_of(v, row);
    if (!is_shown(v, row))
        return;
    if (gather != w->gather && gather != SV_GATHER_NOT)
        add_line(v, row, gather, SV_VIEW_GATHER);
    w->gather = gather;
    if (gather != SV_GATHER_NOT && !v->is_open[gather] && !is_filtered)
        return;
    if (!w->has_group || group != w->group) {
        add_line(v, row, 0, SV_VIEW_GROUP);
        *w = (struct walk){gather, true, group, UINT32_MAX, SV_NO_ROW};
    }
    if (v->group_state[group] & IS_FOLDED && !is_filtered)
        return;
    if (depth > w->folded_depth && !is_filtered)
        return;
    w->folded_depth = v->row_state[row] & IS_FOLDED ? depth : UINT32_MAX;
    if (is_filtered || walk_lanes(v, w, v->lanes[row]))
        add_row(v, row);
}

/* The line that the cursor was on, or the heading of what it was in. */
static size_t find_again(const struct sv_view *v, const struct sv_view_line *was)
{
    size_t best = v->n_fixed < v->n_lines ? v->n_fixed : 0;
    if (was->kind == SV_VIEW_ROW && v->line_of_row[was->row] != SIZE_MAX) {
        size_t at = v->line_of_row[was->row] + was->line;
        return at < v->n_lines && v->lines[at].row == was->row ? at : v->line_of_row[was->row];
    }
    for (size_t i = v->n_lines; i-- > 0;) {
        const struct sv_view_line *x = &v->lines[i];
        bool is_same_group = group_of(v, x->row) == group_of(v, was->row);
        bool is_same_lanes = x->kind == SV_VIEW_LANES && x->row == v->lanes[was->row];
        if (is_same_lanes && was->kind != SV_VIEW_GROUP)
            return i;
        if (x->kind == was->kind && x->kind == SV_VIEW_GATHER && x->line == was->line)
            return i;
        if (x->kind == SV_VIEW_GROUP && is_same_group)
            best = i;
        if (x->kind == SV_VIEW_GATHER && x->line == v->order.gather[was->row] && best <= v->n_fixed)
            best = i;
    }
    return best;
}

void sv_view_make_lines(struct sv_view *v)
{
    struct sv_view_line was = {0};
    struct walk w = {.folded_depth = UINT32_MAX, .lanes = SV_NO_ROW};
    bool has_cursor = v->cursor < v->n_lines;
    if (has_cursor)
        was = v->lines[v->cursor];
    v->n_lines = 0;
    for (size_t row = 0; row < v->index->rows->n; row++)
        v->line_of_row[row] = SIZE_MAX;
    for (size_t i = 0; i < v->n_pins; i++)
        add_row(v, v->pins[i]);
    v->n_fixed = v->n_lines;
    for (size_t i = 0; i < v->index->rows->n; i++)
        walk_row(v, &w, v->order.rows[i]);
    v->cursor = has_cursor && v->n_lines ? find_again(v, &was) : v->n_lines > 1 ? 1 : 0;
}

static void find_lanes(struct sv_view *v)
{
    const struct sv_track_rows *rows = v->index->rows;
    struct sv_buf stem;
    bool *is_shown = sv_alloc(rows->n + 1);
    v->lanes = sv_alloc((rows->n + 1) * sizeof *v->lanes);
    sv_buf_init(&stem, 1u << 20);
    for (size_t row = 0; row < rows->n; row++)
        is_shown[row] = rows->items[row].lines > 0 && sv_strips_count(v->index->strips, row) > 0;
    for (size_t row = 0, end, n; row < rows->n; row = end) {
        end = sv_lanes_end(rows, is_shown, row, &stem, &n);
        for (size_t lane = row; lane < end; lane++)
            v->lanes[lane] = n > 1 && is_shown[lane] ? (uint32_t)row : SV_NO_ROW;
    }
    sv_buf_fini(&stem);
    free(is_shown);
}

void sv_view_lanes_name(const struct sv_view *v, size_t first, struct sv_buf *to)
{
    const struct sv_track_rows *rows = v->index->rows;
    bool *is_shown = sv_alloc(rows->n + 1);
    struct sv_buf stem;
    size_t n;
    sv_buf_init(&stem, 1u << 20);
    for (size_t row = first; row < rows->n; row++)
        is_shown[row] = v->lanes[row] == first;
    sv_lanes_end(rows, is_shown, first, &stem, &n);
    sv_buf_add(to, stem.data, stem.len);
    sv_buf_printf(to, " (%zu)", n);
    sv_buf_fini(&stem);
    free(is_shown);
}

void sv_view_rows_init(struct sv_view *v)
{
    const struct sv_track_rows *rows = v->index->rows;
    v->line_of_row = sv_alloc((rows->n + 1) * sizeof *v->line_of_row);
    v->row_of_track = rows->row_of_track;
    v->row_state = sv_alloc(rows->n + 1);
    v->group_state = sv_alloc((size_t)v->trace->dict->n_tracks + 1);
    for (size_t row = 0; row < rows->n; row++)
        if (sv_row_overlap(rows, row) >= SV_DENSE_LEAST)
            v->row_state[row] = IS_FOLDED;
    v->is_open[SV_GATHER_MACHINE] = true;
    find_lanes(v);
    sv_view_first_rows(v, NULL, 0);
}

void sv_view_rows_fini(struct sv_view *v)
{
    sv_row_order_fini(&v->order);
    free(v->lines);
    free(v->line_of_row);
    free(v->row_state);
    free(v->group_state);
    free(v->lanes);
    free(v->pins);
}

void sv_view_first_rows(struct sv_view *v, const uint32_t *first, size_t n)
{
    sv_row_order_fini(&v->order);
    sv_row_order_make(&v->order, v->index->rows, v->index->strips, first, n);
    v->n_lines = 0; /* the cursor goes to the first row again */
    sv_view_make_lines(v);
}

/* Opens what is above a row, so that it is on the screen. */
void sv_view_reveal(struct sv_view *v, size_t row, uint32_t line)
{
    const struct sv_row_info *items = v->index->rows->items;
    bool is_in_sight = v->line_of_row[row] != SIZE_MAX &&
                       (line == 0 || !(v->row_state[row] & IS_FOLDED));
    if (is_in_sight)
        return;
    v->is_open[v->order.gather[row]] = true;
    v->group_state[items[row].group] = 0;
    v->row_state[row] &= (uint8_t) ~(IS_HIDDEN | IS_FOLDED);
    if (v->lanes[row] != SV_NO_ROW)
        v->row_state[v->lanes[row]] |= IS_UNFOLDED;
    for (size_t i = row, depth = items[row].depth; depth > 0 && i-- > 0;)
        if (items[i].depth < depth) {
            depth = items[i].depth;
            v->row_state[i] &= (uint8_t)~IS_FOLDED;
        }
    if (!is_wanted(v, row))
        *v->filter = 0;
    sv_view_make_lines(v);
}

/* ---- what keys do ---- */

void sv_view_fold(struct sv_view *v)
{
    const struct sv_view_line *at = &v->lines[v->cursor];
    if (at->kind == SV_VIEW_GATHER)
        v->is_open[at->line] = !v->is_open[at->line];
    else if (at->kind == SV_VIEW_GROUP)
        v->group_state[group_of(v, at->row)] ^= IS_FOLDED;
    else if (at->kind == SV_VIEW_LANES)
        v->row_state[at->row] ^= IS_UNFOLDED;
    else
        v->row_state[at->row] ^= IS_FOLDED;
    sv_view_make_lines(v);
}

void sv_view_fold_all(struct sv_view *v)
{
    const struct sv_track_rows *rows = v->index->rows;
    bool is_any_open = false;
    for (size_t row = 0; row < rows->n; row++)
        is_any_open = is_any_open || !(v->group_state[rows->items[row].group] & IS_FOLDED);
    for (size_t row = 0; row < rows->n; row++) {
        uint8_t *state = &v->group_state[rows->items[row].group];
        *state = (uint8_t)(is_any_open ? *state | IS_FOLDED : *state & ~IS_FOLDED);
    }
    sv_view_make_lines(v);
}

void sv_view_hide(struct sv_view *v)
{
    const struct sv_view_line at = v->lines[v->cursor];
    size_t from = v->cursor;
    if (at.kind == SV_VIEW_GATHER)
        return;
    if (at.kind == SV_VIEW_GROUP)
        v->group_state[group_of(v, at.row)] |= IS_HIDDEN;
    for (size_t row = at.row; row < v->index->rows->n && at.kind == SV_VIEW_LANES; row++)
        if (v->lanes[row] == at.row)
            v->row_state[row] |= IS_HIDDEN;
    if (at.kind == SV_VIEW_ROW)
        v->row_state[at.row] |= IS_HIDDEN;
    if (v->row_state[at.row] & IS_PINNED)
        sv_view_pin(v);
    sv_view_make_lines(v);
    v->cursor = from < v->n_lines ? from : v->n_lines ? v->n_lines - 1 : 0;
}

void sv_view_unhide(struct sv_view *v)
{
    for (size_t row = 0; row < v->index->rows->n; row++) {
        v->row_state[row] &= (uint8_t)~IS_HIDDEN;
        v->group_state[group_of(v, row)] &= (uint8_t)~IS_HIDDEN;
    }
    sv_view_make_lines(v);
}

void sv_view_pin(struct sv_view *v)
{
    const struct sv_view_line *at = &v->lines[v->cursor];
    if (at->kind != SV_VIEW_ROW)
        return;
    size_t row = at->row, kept = 0;
    bool was_pinned = v->row_state[row] & IS_PINNED;
    for (size_t i = 0; i < v->n_pins; i++)
        if (v->pins[i] != row)
            v->pins[kept++] = v->pins[i];
    v->n_pins = kept;
    if (!was_pinned)
        SV_APPEND(v->pins, v->n_pins, v->cap_pins) = (uint32_t)row;
    v->row_state[row] ^= IS_PINNED;
    sv_view_make_lines(v);
}

/* ---- how headings begin ---- */

const char *sv_view_sign(const struct sv_view *v, const struct sv_view_line *line)
{
    if (*v->filter)
        return "";
    if (line->kind == SV_VIEW_GATHER)
        return v->is_open[line->line] ? "- " : "+ ";
    if (line->kind == SV_VIEW_GROUP)
        return v->group_state[group_of(v, line->row)] & IS_FOLDED ? "+ " : "";
    if (line->kind == SV_VIEW_LANES)
        return v->row_state[line->row] & IS_UNFOLDED ? "- " : "+ ";
    bool is_folded = v->row_state[line->row] & IS_FOLDED &&
                     sv_layout_lines(&v->index->rows->items[line->row]) > 1;
    return is_folded ? "+ " : "";
}
