/* Ends a file that cannot grow any more: a full disk, a limit, a broken device. Called by the
 * writer thread when it ends.
 *
 * The file is cut where it was whole, at the last commit or at an earlier one where there is space
 * for what follows: an event that says how many are missing. Its space is what the cut frees, so
 * that it fits however full the disk is. The sink that wrote the file remembers names and tracks
 * that may have been cut: another one writes the rest. */
#include "core/files/trusted.h"
#include "core/files/write_all.h"
#include "sdk/session/destination.h"
#include "sdk/write/writer.h"

#include <fcntl.h>
#include <unistd.h>

#define TAIL_BYTES_MAX ((size_t)1 << 20)

static void report_loss(const struct sv_session_writer *w, struct sv_dict *dict,
                        struct sv_sink *sink, uint64_t lost, struct sv_err *err)
{
    struct sv_arg count = {.type = SV_ARG_INT, .i = (int64_t)lost};
    struct sv_event e = {.ts_ns = w->failed_ns,
                         .dur_ns = sv_session_writer_boot_ns() - w->failed_ns,
                         .track = sv_dict_process(dict, 0, w->process->pid),
                         .name = sv_dict_cstr(dict, w->cause),
                         .kind = SV_LOSS,
                         .n_args = 1,
                         .args = &count};
    sink->write(sink, &e, 1, err);
}

/* What follows the cut. */
static bool make_tail(struct sv_session_writer *w, bool is_rest, uint64_t lost, struct sv_buf *tail)
{
    struct sv_err err = {0};
    struct sv_sink *sink;
    struct sv_snapshot snapshot;
    struct sv_dict *dict = sv_dict_new();
    dict->clocks.trace_clock = SV_CLOCK_BOOTTIME;
    sv_destination_describe(dict, w->process->pid);
    sv_ticks_snapshot(&snapshot, NULL);
    sv_clocks_add(&dict->clocks, &snapshot);
    int status = sv_destination_rest_sink(w->out, is_rest, dict, &w->report, tail, &sink, &err);
    if (status >= 0) {
        if (lost > 0)
            report_loss(w, dict, sink, lost, &err);
        status = sink->close(sink, false, &err);
    }
    sv_dict_free(dict);
    return status >= 0;
}

static bool cut_at(struct sv_session_writer *w, const struct sv_commit_point *at, uint64_t lost)
{
    struct sv_buf tail;
    sv_buf_init(&tail, TAIL_BYTES_MAX);
    bool is_rest = at->bytes > 0;
    bool ok = (lost == 0 && is_rest) || make_tail(w, is_rest, lost, &tail);
    if (ok && is_rest)
        sv_destination_rest_join(w->out, &tail);
    ok = ok && !tail.failed;
    int fd = ok ? sv_trusted_file(AT_FDCWD, w->part, O_WRONLY, SV_TRUST_OWN, 0) : -1;
    ok = fd >= 0 && ftruncate(fd, (off_t)at->bytes) == 0 &&
         sv_write_all_at(fd, tail.data, tail.len, at->bytes);
    if (fd >= 0) /* network file systems report a full disk here */
        ok = close(fd) == 0 && ok;
    sv_buf_fini(&tail);
    return ok;
}

bool sv_cut_file(struct sv_session_writer *w)
{
    static const struct sv_commit_point start;
    if (w->plan.full == STAVE_FULL_OVERWRITE || !sv_destination_can_go_on(w->out))
        return false;
    uint64_t first = w->n_points > SV_POINTS ? w->n_points - SV_POINTS : 0;
    uint64_t written = w->n_points ? w->points[(w->n_points - 1) % SV_POINTS].written : 0;
    for (uint64_t i = w->n_points; i-- > first;) {
        const struct sv_commit_point *at = &w->points[i % SV_POINTS];
        uint64_t more = written - at->written;
        if (cut_at(w, at, w->lost + more)) {
            atomic_fetch_add(&w->process->session->lost_output, more);
            return true;
        }
    }
    return first > 0 ? false : cut_at(w, &start, w->lost + written);
}
