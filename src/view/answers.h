/* Inside the viewer: the trace as it is shown, and the answers about it. One function per address
 * of docs/view_protocol.md. */
#pragma once

#include "core/base/json.h"
#include "net/web.h"
#include "plot/colors.h"
#include "plot/strips.h"
#include "store/index.h"
#include "view/pages.h"
#include "view/search_args.h"
#include "view/viewer.h"
#include "why/thread_states.h"

/* Everything that is made once of a trace. */
struct sv_shown {
    const struct sv_trace *trace;
    struct sv_viewer_trace about;
    struct sv_track_rows *rows;
    struct sv_strips *strips;
    struct sv_colors colors;
    struct sv_arg_hits found;       /* arguments that were looked for */
    struct sv_thread_states states; /* n is 0 where the trace has none */
    struct sv_viewer *viewer;
    struct sv_index *index;
    uint32_t pages; /* pages.h */
    uint64_t generation;
};

typedef void sv_view_answer(struct sv_shown *s, const struct sv_web_request *q,
                            struct sv_web_answer *a);
sv_view_answer sv_answer_trace, sv_answer_window, sv_answer_names, sv_answer_slice, sv_answer_near,
    sv_answer_search, sv_answer_area, sv_answer_cut, sv_answer_steps, sv_answer_path,
    sv_answer_order;

/* Puts the members "name" and "files". */
void sv_viewer_put_name(struct sv_json *j, const struct sv_viewer *v);
uint64_t sv_viewer_id(struct sv_viewer *v, uint32_t slice); /* the one that SQL shows */
uint32_t sv_viewer_slice(struct sv_viewer *v, uint64_t id); /* SV_NO_ROW: none has it */

/* What is shown; NULL: nothing yet. For one thread. */
const struct sv_shown *sv_viewer_shown(const struct sv_viewer *v);
void sv_viewer_report(struct sv_viewer *v, const char *subject, struct sv_web_answer *a);

/* Any request that was let in; ctx is the viewer. */
void sv_viewer_answer(void *ctx, const struct sv_web_request *q, struct sv_web_answer *a);

/* The tab asks for this; and whether it has asked for something newer: then an answer is not needed
 * any more. */
#define SV_ASKED_NEWER "the tab has asked for something newer"
void sv_viewer_newest(struct sv_viewer *v, uint64_t tab, uint64_t seq);
bool sv_viewer_is_old(struct sv_viewer *v, uint64_t tab, uint64_t seq);

/* ---- bodies of requests ---- */

#define SV_ASK_ROWS_MAX 4096u
#define SV_ASK_TEXT_MAX 1024u

/* [row, first line, lines] */
struct sv_ask_row {
    uint32_t row, first_line, n_lines;
};

/* What a request may hold; which members are needed is said by `needs`. */
struct sv_ask {
    int64_t from_ns, to_ns, at_ns;
    int64_t width, left, right, limit, slice, seq, args;
    uint64_t tab; /* a hash of it */
    bool has_from, has_to, has_at, has_slice, has_width, has_left, has_right;
    char text[SV_ASK_TEXT_MAX], to_word[16];
    struct sv_ask_row *rows; /* owned */
    size_t n_rows, cap_rows;
    int64_t *names; /* owned */
    size_t n_names, cap_names;
};
/* False: it is no such object, and the error is in the answer. sv_ask_fini() in both cases. */
bool sv_ask_read(struct sv_ask *ask, const struct sv_shown *s, const struct sv_web_request *q,
                 struct sv_web_answer *a);
void sv_ask_fini(struct sv_ask *ask);
/* A slice number of the query; false: the error is in the answer. */
bool sv_ask_slice(const struct sv_shown *s, const struct sv_web_request *q, struct sv_web_answer *a,
                  uint32_t *out);

/* ---- parts of answers ---- */

void sv_json_str(struct sv_json *j, const struct sv_dict *d, sv_str s);
void sv_put_args(struct sv_json *j, const struct sv_shown *s, uint32_t slice);  /* [{"key":…}] */
void sv_put_short(struct sv_json *j, const struct sv_shown *s, uint32_t slice); /* a short slice */
/* "wait": {…}, of states and waits of threads. */
void sv_put_wait(struct sv_json *j, const struct sv_shown *s, uint32_t slice);
