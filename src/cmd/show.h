/* The view of `stave show`: what is on the screen, what keys do to it. Knows no terminal, so that
 * tests can press keys. show_rows.c has which rows there are, show_view.c all else. */
#pragma once

#include "cli/terminal.h"
#include "plot/row_order.h"
#include "plot/screen.h"

enum sv_view_line_kind {
    SV_VIEW_ROW,   /* a line of slices, a counter */
    SV_VIEW_GROUP, /* the name of a process */
    SV_VIEW_LANES, /* what stands for lanes of one kind, `row` is the first of them */
    SV_VIEW_GATHER /* the name of several processes; `line`: enum sv_gather */
};

/* One line of the drawing, top to bottom. */
struct sv_view_line {
    size_t row; /* of the layout: the first one of a group */
    uint32_t line;
    enum sv_view_line_kind kind;
};

#define SV_DENSE_LEAST 16u /* so many at once are shown as their number, until they are unfolded */

struct sv_view {
    const struct sv_trace *trace;
    const char *name;
    struct sv_layout_index *index;
    struct sv_colors colors;
    struct sv_view_line *lines;
    size_t n_lines, cap_lines;
    size_t n_fixed;               /* lines of pinned rows: they do not scroll */
    size_t *line_of_row;          /* the first line of each row, SIZE_MAX: it is not shown */
    const uint32_t *row_of_track; /* SV_NO_ROW: it has no slices */
    struct sv_row_order order;
    uint8_t *row_state, *group_state; /* by row; by track: folded, hidden, pinned */
    uint32_t *lanes; /* by row: the first of the lanes that it is one of, SV_NO_ROW: of none */
    bool is_open[SV_N_GATHERS];
    uint32_t *pins; /* rows, in the order in which they were pinned */
    size_t n_pins, cap_pins;
    int64_t from_ns, to_ns;
    size_t top, cursor; /* lines */
    uint32_t selected;  /* slice, SV_NO_ROW: none */
    bool *is_match;     /* by string: what was searched for; NULL: nothing yet */
    char pattern[128], filter[128], message[160];
    size_t n_typed;
    bool is_typing, types_filter, shows_help, hides_details, is_over;
    unsigned width, height; /* of the screen when it was last drawn */
};

void sv_view_init(struct sv_view *v, const struct sv_trace *t, const char *name, int64_t from_ns,
                  int64_t to_ns);
void sv_view_fini(struct sv_view *v);
void sv_view_draw(struct sv_view *v, struct sv_screen *s);
void sv_view_key(struct sv_view *v, uint32_t key);
/* Selects the first slice whose name holds the text (a glob if it has * or ?). False: there is
 * none. */
bool sv_view_find(struct sv_view *v, const char *text);
/* These rows come first, and the cursor goes to the first row. */
void sv_view_first_rows(struct sv_view *v, const uint32_t *first, size_t n);

/* ---- rows, for the view ---- */

void sv_view_rows_init(struct sv_view *v);
void sv_view_rows_fini(struct sv_view *v);
/* After the filter has changed. */
void sv_view_make_lines(struct sv_view *v);
void sv_view_reveal(struct sv_view *v, size_t row, uint32_t line);
/* Of the row, process or heading of the cursor. */
void sv_view_fold(struct sv_view *v);
void sv_view_hide(struct sv_view *v);
void sv_view_pin(struct sv_view *v);
/* Of all. */
void sv_view_fold_all(struct sv_view *v);
void sv_view_unhide(struct sv_view *v);
/* Its slices are drawn as how many there are at once. */
bool sv_view_is_dense(const struct sv_view *v, size_t row);
/* "requests (64)": what lanes have in common, and how many there are. */
void sv_view_lanes_name(const struct sv_view *v, size_t first, struct sv_buf *to);
/* Before a name: "+ " of what is folded. */
const char *sv_view_sign(const struct sv_view *v, const struct sv_view_line *line);
