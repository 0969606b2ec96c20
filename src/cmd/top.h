/* What the files of `stave top` share: the sums that a recording is reduced to (top_sums.c), what
 * /proc says of files (top_files.c), and how both are shown (top_show.c). */
#pragma once

#include "core/base/buf.h"
#include "core/base/map.h"
#include "core/stream/stream.h"

enum sv_top_table { SV_TOP_FUNCTIONS, SV_TOP_WAITS, SV_TOP_FILES, SV_TOP_STATES, SV_TOP_TABLES };

/* Since the last refresh, and since the beginning. */
struct sv_top_sum {
    int64_t ns;       /* waits, calls and states */
    uint64_t n, more; /* samples, waits, calls; more: samples with callers; bytes */
};
struct sv_top_row {
    sv_str name, in; /* of waits: what for, and the function that waits */
    struct sv_top_sum now, all;
};

struct sv_top_rows {
    struct sv_map by_name; /* → index + 1 */
    struct sv_top_row *rows;
    size_t n, cap;
};

struct sv_top_file; /* an open descriptor and its position: top_files.c */

struct sv_top {
    struct sv_sink sink;        /* first: the callbacks find the rest */
    const struct sv_dict *dict; /* of the events */
    struct sv_dict *names;      /* of the rows: the other one forgets */
    struct sv_top_rows tables[SV_TOP_TABLES];
    struct sv_map open; /* track → index + 1 of what has begun there and not ended */
    struct sv_top_open *opened;
    size_t n_opened, cap_opened;
    uint64_t samples_now, samples_all, lost;
    int64_t from_ns, now_ns, began_ns; /* of the interval; of all */
    struct sv_map files;               /* process and descriptor → position + 1 */
    uint64_t read_bytes, written_bytes, read_before, written_before; /* of /proc/PID/io */
    bool has_totals;
};

void sv_top_init(struct sv_top *t);
void sv_top_fini(struct sv_top *t);
struct sv_sink *sv_top_sink(struct sv_top *t, const struct sv_dict *dict);
/* What has not ended yet is counted up to here. */
void sv_top_catch_up(struct sv_top *t, int64_t now_ns);
/* The next interval begins; `all`: everything begins anew. */
void sv_top_next(struct sv_top *t, bool all);
void sv_top_add(struct sv_top *t, enum sv_top_table table, sv_str name, sv_str in,
                const struct sv_top_sum *more);

/* What a process and its descendants read and wrote since the last call: sums by the kernel, and
 * files whose position has moved. For who gets no system calls. */
void sv_top_look_at_files(struct sv_top *t, uint32_t pid);

enum sv_top_order { SV_TOP_BY_OWN, SV_TOP_BY_TOTAL };
struct sv_top_view {
    const char *what; /* what is watched, for the first line */
    const char *by;   /* by which means */
    int only;         /* enum sv_top_table, -1: all of them */
    enum sv_top_order order;
    bool is_all, is_paused; /* is_all: since the beginning */
    unsigned width, height; /* height 0: as many lines as there are, up to `rows` a table */
    size_t rows;
    const char *keys; /* the last line; NULL: none */
    bool is_ascii;
};
void sv_top_show(const struct sv_top *t, const struct sv_top_view *v, struct sv_buf *to);
void sv_top_json(const struct sv_top *t, const struct sv_top_view *v, struct sv_buf *to);
