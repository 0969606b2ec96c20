/* The view of `stave show`: what is on the screen, what keys do to it. Knows no terminal, so that
 * tests can press keys. */
#pragma once

#include "cli/terminal.h"
#include "plot/screen.h"

/* One line of the drawing, top to bottom: a process, a line of slices, a counter. */
struct sv_view_line {
    size_t row; /* of the layout */
    uint32_t line;
    bool is_process;
};

struct sv_view {
    const struct sv_trace *trace;
    const char *name;
    struct sv_layout_index *index;
    struct sv_colors colors;
    struct sv_view_line *lines;
    size_t n_lines, cap_lines;
    size_t *line_of_row;    /* the first line of each row */
    uint32_t *row_of_track; /* SV_NO_ROW: it has no slices */
    int64_t from_ns, to_ns;
    size_t top, cursor; /* lines */
    uint32_t selected;  /* slice, SV_NO_ROW: none */
    bool *is_match;     /* by string: what was searched for; NULL: nothing yet */
    char pattern[128], message[160];
    size_t n_typed;
    bool is_typing, shows_help, hides_details, is_over;
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
