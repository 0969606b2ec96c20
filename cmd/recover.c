/* stave recover: the trace of a program that was killed, from its growing file and its rings. */
#include "cmd/commands.h"
#include "cmd/console.h"
#include "cmd/files.h"
#include "cmd/ring_files.h"
#include "sdk/dead.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct recover {
    struct sv_output_choice out;
    bool keep, clean;
};

/* ---- the list ---- */

struct listing {
    bool clean;
    unsigned n, removed;
};

static int list_one(void *ctx, const char *dir)
{
    struct listing *l = ctx;
    struct sv_dead d;
    struct sv_err err = {0};
    char part[32], rings[32];
    if (sv_dead_look(dir, &d, &err) < 0)
        return 0;
    bool has_trace = sv_dead_has_trace(&d), is_busy = d.is_alive || d.live_guest;
    l->n++;
    printf("%s  pid %u %s", dir, d.session.pid,
           d.is_alive     ? "(running)"
           : d.live_guest ? "(dead, but a forked process runs)"
           : has_trace    ? "(dead)"
                          : "(finished)");
    if (d.n_guests)
        printf(" and %u forked from it", d.n_guests);
    printf("\n  %s\n", d.session.command);
    if (has_trace)
        printf("  %s: %s written, %s in rings\n", d.session.out, sv_human_bytes(part, d.part_bytes),
               sv_human_bytes(rings, d.ring_bytes));
    if (l->clean && !is_busy) {
        sv_dead_remove(&d, true);
        l->removed++;
        printf("  removed\n");
    }
    return 0;
}

static int list(const struct recover *o)
{
    struct listing l = {.clean = o->clean};
    sv_dead_each(list_one, &l);
    if (l.n == 0)
        sv_console_note("no sessions on this machine");
    return SV_EXIT_OK;
}

/* ---- joining ---- */

struct join {
    struct sv_dict *dict;
    struct sv_report report;
    struct sv_input *in;
    void *bytes;
    size_t n;
};

/* The whole part of the growing file as an input: what follows it is also in the rings. */
static int open_part(const struct sv_dead *d, struct join *j, struct sv_source **source,
                     struct sv_err *err)
{
    struct sv_claim claim;
    uint64_t part_bytes = d->part_bytes;
    struct stat st;
    int fd;
    *source = NULL;
    if (sv_claim_of_session(d->session.out, d->dir, &claim) && claim.segment) {
        fd = sv_ring_left_join(&claim, d->part_bytes, &part_bytes, err);
        if (fd < 0)
            return fd;
    } else {
        fd = open(d->session.part, O_RDONLY | O_CLOEXEC);
    }
    if (part_bytes == 0) {
        if (fd >= 0)
            close(fd);
        return 0;
    }
    if (fd < 0 || fstat(fd, &st) != 0) {
        if (fd >= 0)
            close(fd);
        sv_report_add(&j->report, SV_DAMAGE, "the growing file is gone", 1, SV_NO_POS, "%s",
                      d->session.part);
        return 0;
    }
    if ((uint64_t)st.st_size < part_bytes)
        sv_report_add(&j->report, SV_DAMAGE, "the growing file was cut", 1, st.st_size, NULL);
    j->n = (uint64_t)st.st_size < part_bytes ? (size_t)st.st_size : (size_t)part_bytes;
    j->bytes = j->n ? mmap(NULL, j->n, PROT_READ, MAP_PRIVATE, fd, 0) : NULL;
    close(fd);
    if (!j->bytes || j->bytes == MAP_FAILED) {
        j->bytes = NULL;
        return 0;
    }
    int code = sv_input_open_memory(j->bytes, j->n, d->session.part, &j->in, err);
    if (code < 0)
        return code;
    const struct sv_format *f = sv_format_probe(j->in, err); /* not always that of OUT */
    struct sv_read_options options = {0};
    if (!f || !f->open_source)
        return sv_err_set(err, SV_EINPUT, SV_NO_POS, "%s: no reader for this format",
                          d->session.part);
    return f->open_source(j->in, &options, j->dict, &j->report, source, err);
}

static int pump_both(const struct sv_dead *d, struct join *j, struct sv_sink *sink,
                     struct sv_err *err)
{
    struct sv_source *part, *rings;
    struct sv_pump_options options = {0};
    int code = open_part(d, j, &part, err);
    unsigned gives = SV_HAS_EDGES | SV_HAS_DISORDER | (part ? part->gives : 0);
    sink = sv_pump_adapt(gives, sink, j->dict, &j->report, &options);
    if (code >= 0 && part)
        code = sv_pump_into(part, sink, &options, err);
    if (code >= 0)
        code = sv_dead_source(d, j->dict, &j->report, &rings, err);
    if (code >= 0)
        code = sv_pump_into(rings, sink, &options, err);
    int closed = sink->close(sink, code < 0, err);
    return code < 0 ? code : closed;
}

static int join(const struct recover *o, const struct sv_dead *d, struct sv_err *err)
{
    struct join j = {.dict = sv_dict_new()};
    struct sv_sink *sink;
    struct sv_output_choice out = o->out;
    if (!out.path)
        out.path = d->session.out;
    sv_report_init(&j.report);
    int code = sv_open_output(&out, j.dict, &j.report, &sink, err);
    if (code >= 0)
        code = pump_both(d, &j, sink, err);
    sv_console_findings(out.path, &j.report);
    if (j.in)
        sv_input_close(j.in);
    if (j.bytes)
        munmap(j.bytes, j.n);
    sv_report_fini(&j.report);
    sv_dict_free(j.dict);
    if (code >= 0) {
        char part[32], rings[32];
        sv_console_note("%s: joined %s of %s and %s of rings", out.path,
                        sv_human_bytes(part, d->part_bytes), d->session.part,
                        sv_human_bytes(rings, d->ring_bytes));
    }
    return code;
}

/* Two recoveries of one session would take the rings away from each other. Returns the lock, a descriptor. */
static int take(struct sv_dead *d, struct sv_err *err)
{
    int fd = open(d->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) != 0) {
        if (fd >= 0)
            close(fd);
        return sv_err_set(err, SV_EINPUT, SV_NO_POS, "%s: it is being recovered right now", d->dir);
    }
    char dir[SV_PATH_MAX];
    snprintf(dir, sizeof dir, "%s", d->dir);
    int code = sv_dead_look(dir, d, err); /* as it is now */
    if (code < 0)
        close(fd);
    return code < 0 ? code : fd;
}

static int recover_one(const struct recover *o, const char *name, struct sv_dead *d,
                       struct sv_err *err)
{
    if (d->is_alive && sv_dead_has_trace(d))
        return sv_err_set(err, SV_EUSAGE, SV_NO_POS,
                          "%s: process %u is still writing it; recover it when that has ended",
                          name, d->session.pid);
    if (d->live_guest)
        return sv_err_set(err, SV_EUSAGE, SV_NO_POS,
                          "%s: process %u, forked from it, still runs; recover it when that has "
                          "ended",
                          name, d->live_guest);
    if (!o->out.path && !sv_format_for_path(d->session.out, &(enum sv_compression){SV_PLAIN}))
        return sv_err_set(err, SV_EUSAGE, SV_NO_POS,
                          "%s went to no file; give the file to write: -o FILE",
                          d->session.out[0] ? d->session.out : "its trace");
    struct sv_claim claim;
    int code = join(o, d, err);
    if (code < 0 || o->keep)
        return code;
    if (sv_claim_of_session(d->session.out, d->dir, &claim) && claim.segment)
        sv_ring_left_remove(&claim);
    sv_dead_remove(d, true);
    return code;
}

static int run(void *options, const struct sv_words *operands, struct sv_err *err)
{
    struct recover *o = options;
    if (operands->n == 0)
        return list(o);
    int code = sv_expect_operands(operands, 1, 1, "output of the killed program", err);
    if (code < 0)
        return code;
    struct sv_dead d;
    struct stat st;
    const char *name = operands->items[0];
    bool is_dir = stat(name, &st) == 0 && S_ISDIR(st.st_mode);
    code = is_dir ? sv_dead_look(name, &d, err) : sv_dead_of_output(name, &d, err);
    int lock = code < 0 ? -1 : take(&d, err);
    if (code >= 0)
        code = lock < 0 ? lock : recover_one(o, name, &d, err);
    if (lock >= 0)
        close(lock);
    return code;
}
static const struct sv_option options[] = {
    {'o', "output", "FILE", SV_OPT_TEXT, offsetof(struct recover, out.path),
     "where to write; default is the name the program was to write", NULL},
    {0, "keep", NULL, SV_OPT_FLAG, offsetof(struct recover, keep),
     "leave the growing file and the session directory where they are", NULL},
    {0, "clean", NULL, SV_OPT_FLAG, offsetof(struct recover, clean),
     "without a file: remove the sessions of programs that no longer run", NULL},
    {0},
};

static const struct sv_example examples[] = {
    {"stave recover", "what can be recovered on this machine"},
    {"stave recover trace.pftrace", "after kill -9: the whole trace under its name"},
    {"stave recover trace.pftrace -o part.json", "somewhere else, in another format"},
    {0},
};

const struct sv_command sv_command_recover = {
    .name = "recover",
    .operands = "[OUT]",
    .summary = "make the trace of a killed program whole",
    .description =
        "A program that traces with libstave and is killed leaves OUT.part, the trace as far as it "
        "was "
        "written, and in memory the rings with everything later, up to the last event. This joins "
        "both into one valid trace: every event that was recorded is in it once.\n\n"
        "OUT is the name that was given in STAVE_OUT, or a session directory. Without it the "
        "sessions "
        "of this machine are listed.",
    .options = options,
    .examples = examples,
    .options_size = sizeof(struct recover),
    .run = run,
};
