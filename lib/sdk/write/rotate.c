/* Parts of a session's file (stave_options.rotate_bytes, rotate_ns). Called by the writer thread.
 *
 * The growing file is always OUT.part. When it is long enough it is ended, gets a name with a
 * number, and the next one begins; files/rotation.h says how both are read as one. In this order,
 * so that a process that is killed at any instruction leaves each event once:
 *
 *   commit: all that was read from the rings is in the file
 *   the open slices end in it; it is closed
 *   it gets its name; the journal says that nothing of the growing file is whole yet
 *   the next one is opened, the open slices begin in it; commit */
#include "core/files/output.h"
#include "core/files/part_name.h"
#include "core/serving/life.h"
#include "core/stream/still_open.h"
#include "sdk/session/destination.h"
#include "sdk/write/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Events come to us at most so late. */
#define LATE_NS ((int64_t)1000000000)
enum { NAMES_TRIED = 100 };

struct sv_session_parts {
    struct sv_still still;
    char id[SV_PART_ID];
    uint32_t part;     /* the growing one, from 1 on */
    int64_t start_ns;  /* when it began, on the trace clock */
    uint64_t written;  /* before it */
    uint32_t *numbers; /* in the names of those before it, oldest first */
    size_t n, cap, oldest;
};

static void begin_part(struct sv_session_writer *w)
{
    struct sv_session_parts *p = w->parts;
    p->part++;
    p->start_ns = sv_session_writer_boot_ns();
    p->written = w->written;
    sv_still_label(w->dict, p->id, p->part, p->start_ns);
    atomic_store_explicit(&w->process->n_parts, p->part, memory_order_relaxed);
}

void sv_turn_begin(struct sv_session_writer *w)
{
    static const char *const naming[] = SV_LIFE_NAMING;
    atomic_store(&w->process->n_parts, 0);
    atomic_store(&w->process->n_parts_removed, 0);
    if (!w->plan.rotate_bytes && !w->plan.rotate_ns)
        return;
    w->parts = sv_alloc(sizeof *w->parts);
    sv_part_new_id(w->parts->id);
    sv_still_repeat(&w->parts->still, w->dict, SV_LIFE_CATEGORY, naming);
    begin_part(w);
}

void sv_turn_end(struct sv_session_writer *w)
{
    if (!w->parts)
        return;
    sv_still_fini(&w->parts->still);
    free(w->parts->numbers);
    free(w->parts);
    w->parts = NULL;
}

void sv_turn_note(struct sv_session_writer *w, const struct sv_event *events, size_t n)
{
    sv_still_note(&w->parts->still, events, n);
}

/* ---- the part that has ended ---- */

static int end_part(struct sv_session_writer *w, struct sv_err *err)
{
    struct sv_session_parts *p = w->parts;
    int code = sv_still_end(&p->still, sv_session_writer_boot_ns() - LATE_NS, p->part + 1, w->dict,
                            w->sink, err);
    int closed = w->sink->close(w->sink, code < 0, err);
    w->sink = NULL;
    return code < 0 ? code : closed;
}

/* The next free number: nothing is replaced, whoever made it. */
static int name_part(struct sv_session_writer *w, struct sv_err *err)
{
    struct sv_session_parts *p = w->parts;
    char path[SV_PATH_MAX];
    uint32_t number = sv_parts_free_number(w->out);
    if (!sv_part_settle(w))
        return sv_error(err, SV_EIO, "the folder was moved or removed");
    for (uint32_t end = number + NAMES_TRIED; number < end; number++) {
        sv_parts_name(w->out, number, path, sizeof path);
        int failed = renameat2(AT_FDCWD, w->part, AT_FDCWD, path, RENAME_NOREPLACE);
        if (failed && (errno == EINVAL || errno == ENOSYS)) { /* of this file system */
            failed = link(w->part, path);
            failed = failed ? failed : unlink(w->part);
        }
        if (!failed) {
            SV_APPEND(p->numbers, p->n, p->cap) = number;
            return 0;
        }
        if (errno != EEXIST)
            break;
    }
    return sv_err_sys(err, "cannot rename it to %.200s", path);
}

/* The newest one counts. One that somebody has removed is counted all the same. */
static void remove_oldest(struct sv_session_writer *w)
{
    struct sv_session_parts *p = w->parts;
    char path[SV_PATH_MAX];
    while (w->plan.rotate_parts && p->n - p->oldest + 1 > w->plan.rotate_parts) {
        sv_parts_name(w->out, p->numbers[p->oldest++], path, sizeof path);
        unlink(path);
        atomic_fetch_add_explicit(&w->process->n_parts_removed, 1, memory_order_relaxed);
    }
}

/* ---- the next one ---- */

/* Only the newest pair of clocks. */
static void turn_clocks(struct sv_clocks *c)
{
    if (c->n > 1) {
        c->snapshots[0] = c->snapshots[c->n - 1];
        c->n = 1;
    }
}

static int open_part(struct sv_session_writer *w, struct sv_err *err)
{
    struct sv_session_parts *p = w->parts;
    turn_clocks(&w->dict->clocks);
    begin_part(w);
    int code =
        sv_destination_sink(w->out, w->part, w->plan.compress, w->dict, &w->report, &w->sink, err);
    if (code < 0)
        return code;
    sv_part_open(w);
    return sv_still_begin(&p->still, p->start_ns - LATE_NS, p->part, w->dict, w->sink, err);
}

static void turn(struct sv_session_writer *w)
{
    struct sv_err err = {0};
    sv_session_writer_commit(w);
    if (w->failed)
        return;
    int code = end_part(w, &err);
    if (code >= 0)
        code = name_part(w, &err);
    if (code >= 0) {
        sv_part_close(w);
        atomic_store(&w->process->session->bytes[w->round & 1], 0);
        w->points[0] = (struct sv_commit_point){0, w->written};
        w->n_points = 1;
        remove_oldest(w);
        code = open_part(w, &err);
    }
    if (code < 0)
        sv_session_writer_fail(w, &err);
    else
        sv_session_writer_commit(w);
}

/* A part without events is not ended: it would only drive out an older one. */
static bool is_time(const struct sv_session_writer *w)
{
    const struct sv_session_parts *p = w->parts;
    if (w->written == p->written)
        return false;
    if (w->plan.rotate_bytes && sv_output_position(w->sink->file) >= w->plan.rotate_bytes)
        return true;
    return w->plan.rotate_ns && sv_session_writer_boot_ns() - p->start_ns >= w->plan.rotate_ns;
}

void sv_turn_round(struct sv_session_writer *w)
{
    if (is_time(w))
        turn(w);
}
