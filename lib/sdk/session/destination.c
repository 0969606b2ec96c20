/* Destinations of a session: patterns to names, names to sinks.
 *
 * Called by the session (names) and the writer (sinks). The SDK has the writers of core/ only. The
 * growing file has the final name and ".part"; beside it the marker of the claim
 * (core/files/claim.h) leads `stave recover` to the rings. */
#include "sdk/session/destination.h"

#include "core/files/out_name.h"
#include "core/stream/machine.h"
#include "core/stream/writer.h"
#include "sdk/session/copy.h"
#include "sdk/write/writer.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static const struct sv_writer *const writers[] = {&sv_perfetto_writer, &sv_chrome_writer};
enum { N_WRITERS = sizeof writers / sizeof *writers };

/* NULL: the path has no suffix of theirs. */
static const struct sv_writer *writer_of(const char *path, enum sv_compression *whole)
{
    for (int i = 0; i < N_WRITERS; i++)
        if (sv_name_suffix(path, writers[i]->suffixes, whole))
            return writers[i];
    return NULL;
}

static bool compression_of(const char *name, enum sv_compression *out)
{
    return sv_compression_named(*name ? name : "none", out);
}

static const char *need_suffix(char *text, size_t size)
{
    size_t at = (size_t)snprintf(text, size, "expected a name that ends in ");
    for (int i = 0; i < N_WRITERS; i++)
        for (const char *const *s = writers[i]->suffixes; *s && at < size; s++)
            at += (size_t)snprintf(text + at, size - at, "%s, ", *s);
    if (at < size)
        snprintf(text + at, size - at, "or one of these with .gz or .zst after it");
    return text;
}

const char *sv_destination_check(const char *pattern, const char *compress, char *text, size_t size)
{
    enum sv_compression c, whole;
    if (!compression_of(compress, &c))
        return "STAVE_COMPRESS is none, gzip or zstd";
    if (sv_stream_is(pattern))
        return sv_stream_check(pattern);
    const struct sv_writer *w = writer_of(pattern, &whole);
    if (!w)
        return need_suffix(text, size);
    if (c != SV_PLAIN && !w->compresses_inside && whole != c)
        return "STAVE_COMPRESS needs the suffix of the compressed file, .json.gz";
    char name[SV_OUT_MAX];
    return sv_destination_expand(pattern, 1, name, sizeof name);
}

/* Before the suffix: t.pftrace → t.123.pftrace */
bool sv_destination_number(char *path, size_t size, uint32_t value)
{
    char number[16];
    snprintf(number, sizeof number, ".%u", value);
    return sv_name_insert(path, size, number);
}

/* A socket, too, is looked for later, from another directory. */
static const char *expand_address(const char *pattern, uint32_t pid,
                                  const struct sv_launcher *launcher, char *to, size_t size)
{
    static const char local[] = "unix:";
    size_t n = strncmp(pattern, local, sizeof local - 1) == 0 ? sizeof local - 1 : 0;
    memcpy(to, pattern, n);
    const char *why = sv_name_expand(pattern + n, pid, n == 0, launcher, to + n, size - n);
    return why                           ? why
           : sv_stream_check(to) == NULL ? NULL
           : n                           ? "the path of the socket, from / on, is too long"
                                         : sv_stream_check(to);
}

const char *sv_destination_expand(const char *pattern, uint32_t pid, char *to, size_t size)
{
    struct sv_launcher launcher = sv_launcher_find();
    return sv_stream_is(pattern) ? expand_address(pattern, pid, &launcher, to, size)
                                 : sv_name_expand(pattern, pid, false, &launcher, to, size);
}

const char *sv_destination_name(const char *pattern, uint32_t pid, bool is_child, char *to,
                                size_t size)
{
    struct sv_launcher launcher = sv_launcher_find();
    bool changed = false;
    const char *why = sv_destination_expand(pattern, pid, to, size);
    if (why || sv_stream_is(pattern)) /* each process has a stream of its own to the same place */
        return why;
    if (!sv_name_add_rank(pattern, &launcher, to, size, &changed) ||
        (is_child && !sv_name_has(pattern, 'p') && !sv_destination_number(to, size, pid)))
        return "too long";
    static _Atomic bool has_said;
    if (changed && launcher.rank == 0 && !is_child && !atomic_exchange(&has_said, true))
        sv_say("each rank writes a file of its own: %s (%%r in STAVE_OUT puts the rank elsewhere)",
               to);
    return NULL;
}

/* ---- the growing name ---- */

/* The file that this process finished last. Set by the writer and read before the next one
 * starts. */
static struct {
    uint64_t device, inode;
    bool is_known, has_events;
} finished;

static void remember_own(const char *path, bool has_events)
{
    struct stat st;
    finished.is_known = lstat(path, &st) == 0;
    finished.device = finished.is_known ? st.st_dev : 0;
    finished.inode = finished.is_known ? st.st_ino : 0;
    finished.has_events = has_events;
}

/* A program that starts again under its own name replaces its file; but where STAVE_OUT has chosen
 * the name, only one without events. */
static void meet_own(struct sv_claim *c)
{
    c->is_own = finished.is_known && c->found.exists && c->found.device == finished.device &&
                c->found.inode == finished.inode;
    c->keeps &= !c->is_own || finished.has_events;
}

bool sv_destination_claim(struct sv_claim *c, const char *out, uint32_t pid, const char *dir,
                          bool is_shared, struct sv_err *err)
{
    enum { COARSE_NS = 20000000 }; /* times of files and of processes are that coarse */
    struct sv_claim_wish wish = {.kind = SV_CLAIM_PROGRAM,
                                 .session = dir,
                                 .pid = pid,
                                 .keep_since_ns = is_shared || sv_is_in_plugin()
                                                      ? sv_process_job_start_ns() - COARSE_NS
                                                      : 0};
    char own[SV_OUT_MAX];
    int code = sv_claim_take(c, out, &wish, err);
    if (code == SV_EHELD && snprintf(own, sizeof own, "%s", out) < (int)sizeof own &&
        sv_destination_number(own, sizeof own, pid)) {
        sv_err_clear(err);
        code = sv_claim_take(c, own, &wish, err);
    }
    if (code >= 0)
        meet_own(c);
    if (code >= 0 && c->has_left)
        sv_say(
            "%s: an earlier program was killed before its trace was complete; to complete it, run: "
            "stave recover %s",
            c->out, c->out);
    return code >= 0;
}

int sv_destination_settle(struct sv_claim *c, bool has_events, struct sv_err *err)
{
    char wanted[SV_CLAIM_PATH_MAX];
    memcpy(wanted, c->out, sizeof wanted);
    int code = sv_claim_settle(c, err);
    if (code >= 0)
        remember_own(c->out, has_events);
    if (code >= 0 && strcmp(wanted, c->out) != 0)
        sv_say("%s was written by another process meanwhile: the trace is %s", wanted, c->out);
    else if (code >= 0 && c->kept[0])
        sv_say("%s: a process of this job has written it before: that trace is now %s", c->out,
               c->kept);
    else if (code >= 0 && c->has_replaced)
        sv_say("%s: the trace of an earlier run was replaced", c->out);
    return code;
}

/* ---- sinks ---- */

/* Takes the output. */
static int open_sink(const struct sv_writer *w, struct sv_output *o,
                     const struct sv_write_options *options, struct sv_dict *dict,
                     struct sv_report *report, struct sv_sink **sink, struct sv_err *err)
{
    int status = w->open(o, options, dict, report, sink, err);
    if (status < 0)
        sv_output_discard(o);
    return status;
}

int sv_destination_sink(const char *out, const char *part, const char *compress,
                        struct sv_dict *dict, struct sv_report *report, struct sv_sink **sink,
                        struct sv_err *err)
{
    enum sv_compression whole;
    const struct sv_writer *w = writer_of(out, &whole);
    struct sv_write_options options = {0};
    struct sv_output *o;
    if (w->compresses_inside)
        compression_of(compress, &options.compression);
    int status = sv_output_open(part, SV_OUTPUT_GROW, whole, &o, err);
    return status < 0 ? status : open_sink(w, o, &options, dict, report, sink, err);
}

bool sv_destination_rotates(const char *out)
{
    enum sv_compression whole;
    return !sv_stream_is(out) && writer_of(out, &whole) == &sv_perfetto_writer && whole == SV_PLAIN;
}

bool sv_destination_can_go_on(const char *out)
{
    enum sv_compression whole;
    return !sv_stream_is(out) && writer_of(out, &whole) && whole == SV_PLAIN;
}

/* Packets of Perfetto may come from any writer; JSON continues with a comma. A file that is
 * compressed as a whole cannot be continued. */
int sv_destination_rest_sink(const char *out, bool is_rest, struct sv_dict *dict,
                             struct sv_report *report, struct sv_buf *to, struct sv_sink **sink,
                             struct sv_err *err)
{
    enum sv_compression whole;
    const struct sv_writer *w = writer_of(out, &whole);
    struct sv_write_options options = {.dialect = is_rest && !w->is_binary ? "array" : NULL};
    struct sv_output *o;
    if (!sv_destination_can_go_on(out))
        return sv_error(err, SV_EUSAGE, "the file is compressed");
    int status = sv_output_open_buf(to, SV_PLAIN, &o, err);
    return status < 0 ? status : open_sink(w, o, &options, dict, report, sink, err);
}

void sv_destination_rest_join(const char *out, struct sv_buf *rest)
{
    enum sv_compression whole;
    if (writer_of(out, &whole)->is_binary)
        return;
    if (rest->len == 0)
        sv_buf_str(rest, "\n]");
    else
        rest->data[0] = ','; /* it was the bracket of an array */
    while (rest->len > 0 && rest->data[rest->len - 1] != ']')
        rest->len--;
    sv_buf_str(rest, "}\n");
}
