/* The viewer: a trace that is shown in a browser. The page is in page/, what it asks for is in
 * docs/view_protocol.md.
 *
 *     sv_viewer_open(&options, &v, err);        // serves the page, which shows that the trace is
 *                                               being loaded
 *     sv_viewer_progress(v, 0.5);
 *     sv_viewer_show(v, trace, &about);         // from now on the trace is served; it must outlive
 *                                               the viewer
 *     …
 *     sv_viewer_close(v);
 *
 * The trace is read-only, so requests are answered on many threads at once; only SQL is one at a
 * time. */
#pragma once

#include "core/base/buf.h"
#include "core/base/report.h"
#include "store/image.h"
#include "store/track_rows.h"

struct sv_viewer;

struct sv_viewer_options {
    const char *const *files; /* names of the traces, for people; the first one is the title */
    size_t n_files;
    const char *notes;  /* the file in which the user's notes are kept */
    uint16_t port;      /* 0: any */
    const char *socket; /* NULL: none */
    bool is_offline;    /* nothing is served: for export_html.h */
    /* The report on a subject as JSON; SV_EINPUT: the trace has nothing of it. One call at a
     * time. */
    int (*report)(const char *subject, const struct sv_track_rows *rows, size_t limit,
                  struct sv_buf *to, struct sv_err *err);
};

int sv_viewer_open(const struct sv_viewer_options *o, struct sv_viewer **out, struct sv_err *err);
void sv_viewer_close(struct sv_viewer *v);
/* The address of the page with its token; for a Unix socket with a port for the user to choose. */
const char *sv_viewer_url(const struct sv_viewer *v);
uint16_t sv_viewer_port(const struct sv_viewer *v);

void sv_viewer_progress(struct sv_viewer *v, double share); /* 0 … 1 */
/* A sink in front of another, for showing what is being loaded; it takes what that one takes. */
struct sv_sink *sv_viewer_sketch(struct sv_viewer *v, struct sv_dict *dict, struct sv_sink *next);

struct sv_viewer_trace {
    const struct sv_report *report; /* what the readers found */
    const char *format;             /* of the file, may be NULL */
    uint64_t bytes;                 /* its size */
    bool is_live;                   /* it grows: sv_viewer_show() will come again */
    bool is_compared;               /* traces of two runs: see clocks/merge.h */
    bool is_tail;                   /* the end of a recording that began at began_ns */
    int64_t began_ns;
};
/* What was shown before is not used any more when it returns. */
void sv_viewer_show(struct sv_viewer *v, const struct sv_trace *t,
                    const struct sv_viewer_trace *about);
/* Adds what was made for showing the trace to an image of it, so that it is not made again. */
void sv_viewer_put(const struct sv_viewer *v, struct sv_image_writer *w);
/* Does something in a thread of its own, once. It looks now and then whether the viewer is being
 * closed, which waits for it. */
void sv_viewer_work(struct sv_viewer *v, void (*work)(void *ctx), void *ctx);
bool sv_viewer_is_closing(void *viewer);
