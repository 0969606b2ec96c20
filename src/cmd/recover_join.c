/* Joining what a killed process left, and showing that nothing of it is missing in the result: see
 * recover_join.h. Called by `stave recover`.
 *
 * Three inputs: the growing file, the recorder's spool, the rings. What the journal says of the
 * growing file's length is a hint: past it are events that are in the rings, too. Where they are
 * not (the journal was wrong, or the events came from the kernel), all of the file is read. */
#include "cmd/recover_join.h"

#include "cli/console.h"
#include "core/files/part_name.h"
#include "core/files/trusted.h"
#include "core/stream/still_open.h"
#include "files/rotation.h"
#include "record/output/ring_files.h"
#include "record/spool/left.h"
#include "sdk/ring/guard.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct join {
    const struct sv_leftover *o;
    uint64_t part_bytes; /* of the growing file that are read */
    struct sv_dict *dict;
    struct sv_report report;
    struct sv_input *in;
    void *bytes;
    size_t n;
    struct sv_guarded guarded;
    volatile sig_atomic_t is_gone;
    bool
        /* the growing file is not where it should be: the other inputs are whole all the same */
        is_missing;
};

/* The growing file; of a recorder with --last all of its segments. Negative: it cannot be read; -1
 * without an error: it is not there. */
static int open_bytes(const struct join *j, uint64_t *bytes, struct sv_err *err)
{
    const struct sv_leftover *o = j->o;
    *bytes = j->part_bytes;
    if (o->has_claim && o->claim.segment)
        return sv_ring_left_join(&o->claim, j->part_bytes, bytes, err);
    if (!o->part[0])
        return -1;
    int fd = sv_trusted_file(AT_FDCWD, o->part, O_RDONLY, SV_TRUST_OWN, 0);
    return fd >= 0 ? fd : sv_err_sys(err, "%s", o->part);
}

/* So many bytes of the file in memory; what cuts it meanwhile reads as zeros. */
static void map_bytes(struct join *j, int fd, uint64_t bytes)
{
    struct stat st;
    uint64_t size = fstat(fd, &st) == 0 ? (uint64_t)st.st_size : 0;
    if (size < bytes)
        sv_report_add(&j->report, SV_DAMAGE, "the partial file was truncated", 1, (int64_t)size,
                      NULL);
    j->n = (size_t)(size < bytes ? size : bytes);
    void *at = j->n ? mmap(NULL, j->n, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
    close(fd);
    if (at == MAP_FAILED)
        return;
    j->bytes = at;
    sv_guard_add(&j->guarded, at, (j->n + SV_PAGE - 1) & ~(size_t)(SV_PAGE - 1), &j->is_gone);
}

/* A program that was killed between two parts has no growing file: what is in its rings is the next
 * part. Its number of the process is in the name of the recording. */
static void label_next(struct join *j)
{
    const struct sv_leftover *o = j->o;
    char path[SV_PATH_MAX], pid[32];
    uint32_t next = o->has_session ? sv_parts_free_number(o->out) : 1;
    if (next == 1)
        return;
    sv_parts_name(o->out, next - 1, path, sizeof path);
    struct sv_part_label l = sv_part_label_of(path, NULL);
    int n = snprintf(pid, sizeof pid, "-%lx", (unsigned long)o->dead.session.process.pid);
    size_t len = strlen(l.recording);
    if (l.number && len > (size_t)n && strcmp(l.recording + len - (size_t)n, pid) == 0)
        sv_still_label(j->dict, l.recording, l.number + 1, l.start_ns);
}

/* The whole part of the growing file as an input. */
static int open_part(struct join *j, struct sv_source **source, struct sv_err *err)
{
    const struct sv_leftover *o = j->o;
    uint64_t bytes;
    *source = NULL;
    int fd = open_bytes(j, &bytes, err);
    if (fd < 0 && err->code < 0)
        return err->code;
    j->is_missing = fd < 0 && bytes > 0;
    if (fd < 0)
        label_next(j);
    if (j->is_missing)
        sv_report_add(&j->report, SV_DAMAGE, "the partial file is missing", 1, SV_NO_POS, NULL);
    if (fd >= 0)
        map_bytes(j, fd, bytes);
    if (!j->bytes)
        return 0;
    int code = sv_input_open_memory(j->bytes, j->n, o->part, &j->in, err);
    if (code < 0)
        return code;
    const struct sv_format *f = sv_format_probe(j->in, err); /* not always that of OUT */
    if (!f && o->has_session)
        f = sv_format_for_path(o->out, &(enum sv_compression){SV_PLAIN});
    struct sv_read_options options = {0};
    if (!f || !sv_format_reads(f))
        return sv_error(err, SV_EINPUT, "%s: no reader for this format", o->part);
    return sv_format_open(f, j->in, &options, j->dict, &j->report, source, err);
}

static void close_part(struct join *j)
{
    if (j->in)
        sv_input_close(j->in);
    if (!j->bytes)
        return;
    sv_guard_remove(&j->guarded);
    munmap(j->bytes, j->n);
}

/* ---- joining ---- */

static void begin(struct join *j, const struct sv_leftover *o, uint64_t part_bytes)
{
    *j = (struct join){.o = o, .part_bytes = part_bytes, .dict = sv_dict_new()};
    sv_report_init(&j->report);
}

static void end(struct join *j)
{
    close_part(j);
    sv_report_fini(&j->report);
    sv_dict_free(j->dict);
}

/* All of them into the sink (NULL: nowhere), counted one by one. */
static int pump_all(struct join *j, struct sv_sink *sink, struct sv_recovered *r,
                    struct sv_err *err)
{
    const struct sv_leftover *o = j->o;
    const struct sv_pump_options options = {0};
    struct sv_source *part, *rings, *spool;
    struct sv_tally all = {0}, before;
    int code = open_part(j, &part, err);
    unsigned gives = SV_ABANDONED_GIVES | (part ? part->gives : 0) |
                     (o->spool_bytes ? sv_spool_left_gives : 0);
    if (sink)
        sink = sv_pump_adapt(gives, sink, j->dict, &j->report, &options);
    sink = sv_tally_new(&all, sink);
    if (code >= 0 && part)
        code = sv_pump_into(part, sink, &options, err);
    r->part = before = all;
    if (code >= 0 && o->spool_bytes)
        code = sv_spool_left_source(o->spool, j->part_bytes, j->dict, &j->report, &spool, err);
    if (code >= 0 && o->spool_bytes)
        code = sv_pump_into(spool, sink, &options, err);
    r->spool = sv_tally_since(&all, &before);
    before = all;
    if (code >= 0 && o->has_session)
        code = sv_abandoned_source(&o->dead, j->dict, &j->report, &rings, err);
    if (code >= 0 && o->has_session)
        code = sv_pump_into(rings, sink, &options, err);
    r->rings = sv_tally_since(&all, &before);
    int closed = sink->close(sink, code < 0, err);
    r->inputs = all;
    return code < 0 ? code : closed;
}

/* `out` NULL: only counts, and reports nothing. */
static int join_into(const struct sv_leftover *o, const struct sv_output_choice *out,
                     struct sv_recovered *r, struct sv_err *err)
{
    struct join j;
    struct sv_sink *sink = NULL;
    begin(&j, o, o->part_bytes);
    int code = out ? sv_open_output(out, j.dict, &j.report, &sink, err) : 0;
    if (code >= 0)
        code = pump_all(&j, sink, r, err);
    if (j.is_gone)
        sv_report_add(&j.report, SV_DAMAGE, "the partial file was truncated while it was read", 1,
                      SV_NO_POS, NULL);
    if (out)
        sv_console_findings(out->path, &j.report);
    r->is_damaged = sv_report_count(&j.report, SV_DAMAGE) > j.is_missing;
    end(&j);
    return code;
}

/* ---- what it must hold ---- */

/* The growing file to its end, as any reader reads it: what cannot be read further ends it. */
static int read_plainly(const struct sv_leftover *o, struct sv_tally *t, struct sv_err *err)
{
    struct join j;
    struct sv_source *part;
    begin(&j, o, o->file_bytes);
    int code = open_part(&j, &part, err);
    struct sv_sink *counter = sv_tally_new(t, NULL);
    if (code >= 0 && part)
        code = sv_pump_into(part, counter, &(struct sv_pump_options){0}, err);
    counter->close(counter, false, err);
    end(&j);
    if (code == SV_EIO || code == SV_ENOMEM)
        return code;
    sv_err_clear(err);
    return 0;
}

/* How much of the growing file is to be read: what the journal says, unless events would be
 * missing. */
static int choose_length(struct sv_leftover *o, struct sv_recovered *r, struct sv_err *err)
{
    char what[96];
    if (!o->part[0] || o->part_bytes >= o->file_bytes)
        return 0;
    int code = read_plainly(o, &r->plain, err);
    if (code >= 0)
        code = join_into(o, NULL, r, err);
    if (code < 0)
        return code;
    if (!sv_tally_holds(&r->inputs, &r->plain, what, sizeof what))
        o->part_bytes = o->file_bytes;
    return 0;
}

int sv_recover_join(struct sv_leftover *o, const struct sv_output_choice *out,
                    struct sv_recovered *r, struct sv_err *err)
{
    *r = (struct sv_recovered){0};
    int code = choose_length(o, r, err);
    if (code >= 0)
        code = join_into(o, out, r, err);
    return code;
}

int sv_recover_check(const struct sv_leftover *o, const char *path, struct sv_recovered *r,
                     struct sv_err *err)
{
    struct sv_err why = {0};
    char what[96];
    if (sv_tally_file(path, &r->result, &why) < 0)
        return sv_error(err, SV_EIO, "%.200s: cannot be read back: %.200s; nothing was removed",
                        path, why.msg);
    if (!sv_tally_holds(&r->result, &r->inputs, what, sizeof what) ||
        !sv_tally_holds(&r->result, &r->plain, what, sizeof what))
        return sv_error(err, SV_EIO, "%.200s: it would hold only %s of %.200s; nothing was removed",
                        path, what, o->part[0] ? o->part : o->dead.dir);
    return 0;
}
