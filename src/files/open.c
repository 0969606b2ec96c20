/* Opening inputs and outputs for the commands, and running one into the other.
 *
 * Every command that reads a trace goes through sv_open_input(), so that all of them recognise
 * formats, name files in errors and print findings alike. Must not know what a command does with
 * the events. */
#include "files/open.h"
#include "cli/console.h"
#include "core/base/buf.h"
#include "core/base/mem.h"
#include "core/files/recording_mode.h"
#include "core/files/trusted.h"
#include "files/recordings.h"
#include "files/unpack.h"
#include "formats/foreign.h"
#include "formats/tar.h"
#include "threads/workers.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Kept free after a growing file, for its end. */
enum { END_BYTES = 32 << 10 };
#define THREADS_FROM ((uint64_t)1 << 20)

int sv_err_in_file(struct sv_err *err, const char *path)
{
    char msg[sizeof err->msg];
    snprintf(msg, sizeof msg, "%s", err->msg);
    const char *name = strcmp(path, "-") == 0 ? "(stdin)" : path;
    if (err->pos != SV_NO_POS)
        snprintf(err->msg, sizeof err->msg, "%.200s: byte %lld: %.260s", name, (long long)err->pos,
                 msg);
    else
        snprintf(err->msg, sizeof err->msg, "%.200s: %.290s", name, msg);
    err->pos = SV_NO_POS;
    return err->code;
}

int sv_recording_option(const char *mode, struct sv_err *err)
{
    mode_t ignored;
    if (!mode)
        return 0;
    if (!sv_recording_mode_parse(mode, &ignored))
        return sv_error(
            err, SV_EUSAGE,
            "--mode: expected 0600, 0640 or 0644 (reading for others, never writing), not '%.100s'",
            mode);
    return setenv("STAVE_MODE", mode, 1) == 0 ? 0 : sv_err_sys(err, "--mode");
}

int sv_open_log(const char *path, struct sv_err *err)
{
    int fd = sv_trusted_file(AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC, SV_TRUST_OWN,
                             sv_recording_mode());
    if (fd >= 0)
        return fd;
    struct stat st;
    int error = errno;
    if (lstat(path, &st) == 0 && error != ENOSPC)
        return sv_error(err, SV_EIO,
                        "%.300s exists and is not a regular file that only you can write: remove "
                        "it, or choose another name for the trace",
                        path);
    errno = error;
    return sv_err_sys(err, "cannot write %.300s", path);
}

/* Why an input has no format, in words that help. */
static const char *explain(const struct sv_input *in)
{
    const char *foreign = sv_foreign_file(in->data, in->len);
    if (in->len == 0)
        return "the file is empty";
    return foreign ? foreign : "not a trace that Stave knows; --from FORMAT forces one";
}

/* "--to: there is no writer for 'x'; use one of …" */
static int not_among(const char *what, const char *name, enum sv_format_list list,
                     const struct sv_format *of, struct sv_err *err)
{
    struct sv_buf names;
    sv_buf_init(&names, sizeof err->msg);
    sv_format_names(&names, list, of, ", ", " or ");
    sv_error(err, SV_EUSAGE, "%s '%.100s'; use %s%s", what, name, sv_buf_cstr(&names),
             list == SV_LIST_SUFFIXES ? ", or --to FORMAT" : "");
    sv_buf_fini(&names);
    return SV_EUSAGE;
}

int sv_check_reader(const char *from, struct sv_err *err)
{
    const struct sv_format *f = from ? sv_format_named(from) : NULL;
    if (from && (!f || !sv_format_reads(f)))
        return not_among("--from: there is no reader for", from, SV_LIST_READERS, NULL, err);
    return 0;
}

static const struct sv_format *choose_format(struct sv_opened *o, const char *from,
                                             struct sv_err *err)
{
    const struct sv_format *f;
    if (!from) {
        f = sv_format_probe(o->in, err);
        if (!f && err->code == SV_OK)
            sv_err_set(err, SV_EINPUT, 0, "%s", explain(o->in));
        return f;
    }
    if (sv_check_reader(from, err) < 0)
        return NULL;
    if (o->in->size_bytes && sv_input_need(o->in, SV_TAR_BLOCK, err) < 0)
        return NULL;
    if (sv_tar_is(o->in->data, o->in->len)) { /* no format is: its bytes would be misread */
        sv_err_set(err, SV_EINPUT, 0, "%s", explain(o->in));
        return NULL;
    }
    return sv_format_named(from);
}

static int open_source(struct sv_opened *o, const char *from, const struct sv_read_options *options,
                       struct sv_dict *dict, struct sv_err *err)
{
    o->format = choose_format(o, from, err);
    if (!o->format)
        return err->code;
    bool is_part = options->rotation || sv_is_part(o);
    int code = sv_format_open(o->format, o->in, options, dict, &o->report, &o->source, err);
    if (code >= 0 && is_part)
        sv_rotation_wrap(o, options->rotation, options, dict);
    return code;
}

int sv_open_input(const char *path, const char *from, uint32_t space, struct sv_dict *dict,
                  struct sv_opened *o, struct sv_err *err)
{
    return sv_open_input_as(path, from, &(struct sv_read_options){.space = space}, dict, o, err);
}

bool sv_is_database(const char *path)
{
    return strncmp(path, "clickhouse://", 13) == 0 || strncmp(path, "clickhouses://", 14) == 0;
}

/* The URL is not repeated: it may hold what others must not read. */
static int refuse_database(struct sv_err *err)
{
    return sv_error(err, SV_EUSAGE,
                    "this command reads files, not a database: 'stave query' and 'stave steps' "
                    "take a clickhouse:// URL");
}

/* Threads for an input whose caller has none, unless it is so small that it is read before they
 * run. */
static struct sv_workers *own_workers(const struct sv_input *in)
{
    bool is_small = in->size_bytes > 0 && in->size_bytes < THREADS_FROM;
    return is_small ? NULL : sv_workers_new(0);
}

static int open_named(struct sv_opened *o, const char *from, const struct sv_read_options *options,
                      struct sv_dict *dict, struct sv_err *err)
{
    struct sv_read_options with = *options;
    sv_report_init(&o->report);
    if (sv_is_database(o->path))
        return refuse_database(err);
    int code = o->in ? 0 : sv_input_open(o->path, &o->in, err);
    if (code >= 0 && !with.workers)
        with.workers = o->workers = own_workers(o->in);
    if (code >= 0) {
        sv_unpack_beside(o->in, with.workers, 0);
        code = open_source(o, from, &with, dict, err);
    }
    if (code == SV_EIO || code == SV_EFORMAT)
        code = err->code = SV_EINPUT;
    if (code < 0)
        sv_err_in_file(err, o->path);
    return code;
}

int sv_open_input_as(const char *path, const char *from, const struct sv_read_options *options,
                     struct sv_dict *dict, struct sv_opened *o, struct sv_err *err)
{
    return sv_open_input_in(path, NULL, from, options, dict, o, err);
}

int sv_open_input_in(const char *path, struct sv_input *in, const char *from,
                     const struct sv_read_options *options, struct sv_dict *dict,
                     struct sv_opened *o, struct sv_err *err)
{
    *o = (struct sv_opened){.path = path, .fd = -1, .in = in};
    return open_named(o, from, options, dict, err);
}

int sv_open_piece(const char *path, int fd, const struct sv_piece *piece, struct sv_dict *dict,
                  struct sv_opened *o, struct sv_err *err)
{
    *o = (struct sv_opened){.path = path, .fd = fd, .piece = *piece};
    sv_input_open_pieces(fd, &o->piece, 1, path, &o->in);
    return open_named(o, NULL, &(struct sv_read_options){0}, dict, err);
}

int sv_open_pieces(const char *path, int fd, const struct sv_piece *pieces, size_t n,
                   struct sv_dict *dict, struct sv_opened *o, struct sv_err *err)
{
    *o = (struct sv_opened){.path = path, .fd = fd, .piece = pieces[0]};
    sv_input_open_pieces(fd, pieces, n, path, &o->in);
    return open_named(o, NULL, &(struct sv_read_options){0}, dict, err);
}

void sv_opened_close(struct sv_opened *o)
{
    if (o->source)
        o->source->close(o->source);
    if (o->in)
        sv_input_unpack_end(o->in);
    sv_workers_free(o->workers);
    if (o->in)
        sv_input_close(o->in);
    if (o->piece.bytes)
        close(o->fd);
    sv_report_fini(&o->report);
    o->source = NULL;
    o->workers = NULL;
    o->in = NULL;
    o->piece.bytes = 0;
}

static int parse_compression(const char *text, enum sv_compression *c, struct sv_err *err)
{
    if (sv_compression_named(text, c))
        return 0;
    return sv_error(err, SV_EUSAGE, "--compress: '%s' is not none, gzip or zstd", text);
}

/* A choice as it is carried out. */
struct chosen {
    const struct sv_format *format;
    const struct sv_writer *writer;
    enum sv_compression around;
    struct sv_write_options options;
};

/* --to names a format or a dialect of one; without it the suffix decides, then the dialect. */
static int choose_format_of(const struct sv_output_choice *choice, struct chosen *c,
                            struct sv_err *err)
{
    const char *path = choice->path ? choice->path : "-";
    c->around = SV_PLAIN;
    c->format = strcmp(path, "-") == 0 ? NULL : sv_format_for_path(path, &c->around);
    c->options.dialect = choice->dialect;
    if (choice->to) {
        c->format = sv_format_named(choice->to);
        if (!c->format && (c->format = sv_format_of_dialect(choice->to)) && !choice->dialect)
            c->options.dialect = choice->to;
        if (!c->format || !c->format->writer)
            return not_among("--to: there is no writer for", choice->to, SV_LIST_WRITERS, NULL,
                             err);
    }
    if (!c->format && choice->dialect)
        c->format = sv_format_of_dialect(choice->dialect);
    if (c->format)
        return 0;
    if (strcmp(path, "-") == 0)
        return sv_error(err, SV_EUSAGE, "no output format: use -o FILE or --to FORMAT");
    return not_among("no format has the suffix of", path, SV_LIST_SUFFIXES, NULL, err);
}

static int choose_dialect(struct chosen *c, struct sv_err *err)
{
    const char *name = c->options.dialect;
    c->writer = c->format->writer;
    if (!name)
        return 0;
    const struct sv_dialect *d = sv_dialect_named(c->format, name);
    if (!d && !c->format->dialects)
        return sv_error(err, SV_EUSAGE, "--dialect: %s has no dialects", c->format->name);
    if (!d) {
        char what[64];
        snprintf(what, sizeof what, "--dialect: %s has no", c->format->name);
        return not_among(what, name, SV_LIST_DIALECTS, c->format, err);
    }
    c->options.dialect = d->name;
    if (d->writer)
        c->writer = d->writer;
    return 0;
}

static int choose(const struct sv_output_choice *choice, struct chosen *c, struct sv_err *err)
{
    *c = (struct chosen){.options.joined = choice->joined};
    int code = choose_format_of(choice, c, err);
    if (code < 0)
        return code;
    assert(c->format && c->format->writer); /* formats with suffixes or dialects have one */
    code = choose_dialect(c, err);
    if (code < 0 || !choice->compress)
        return code;
    /* Perfetto files compress their packets, so that a cut file can still be read. */
    return parse_compression(
        choice->compress, c->writer->compresses_inside ? &c->options.compression : &c->around, err);
}

int sv_check_output(const struct sv_output_choice *choice, struct sv_err *err)
{
    return choose(choice, &(struct chosen){0}, err);
}

/* Takes the output. */
static int open_sink(const struct chosen *c, struct sv_output *out, struct sv_dict *dict,
                     struct sv_report *report, struct sv_sink **sink, struct sv_err *err)
{
    int code = c->writer->open(out, &c->options, dict, report, sink, err);
    if (code < 0)
        sv_output_discard(out);
    return code;
}

int sv_open_output(const struct sv_output_choice *choice, struct sv_dict *dict,
                   struct sv_report *report, struct sv_sink **sink, struct sv_err *err)
{
    struct chosen c;
    struct sv_output *out;
    const char *path = choice->path ? choice->path : "-";
    int code = choose(choice, &c, err);
    if (code >= 0 && strcmp(path, "-") == 0 && c.writer->is_binary && isatty(STDOUT_FILENO))
        code = sv_error(err, SV_EUSAGE,
                        "%s is binary and standard output is a terminal; use -o FILE",
                        c.format->name);
    if (code >= 0)
        code = sv_output_open(path, SV_OUTPUT_RENAME, c.around, &out, err);
    return code < 0 ? code : open_sink(&c, out, dict, report, sink, err);
}

int sv_can_continue(const struct sv_output_choice *choice, bool *needs_end, struct sv_err *err)
{
    struct chosen c;
    int code = choose(choice, &c, err);
    if (code < 0)
        return code;
    *needs_end = !c.writer->is_binary; /* packets follow each other; texts have a last line */
    return c.writer->can_continue;
}

int sv_open_growing(const struct sv_output_choice *choice, const char *part, struct sv_dict *dict,
                    struct sv_report *report, struct sv_sink **sink, struct sv_err *err)
{
    struct chosen c;
    struct sv_output *out;
    int code = choose(choice, &c, err);
    if (code >= 0)
        code = sv_output_open(part, SV_OUTPUT_GROW, c.around, &out, err);
    if (code < 0)
        return code;
    code = sv_output_reserve(out, END_BYTES, err);
    if (code < 0)
        sv_output_discard(out);
    return code < 0 ? code : open_sink(&c, out, dict, report, sink, err);
}

int sv_open_rest(const struct sv_output_choice *choice, const char *part, uint64_t offset,
                 struct sv_dict *dict, struct sv_report *report, struct sv_sink **sink,
                 struct sv_err *err)
{
    struct chosen c;
    struct sv_output *out;
    int code = choose(choice, &c, err);
    if (code >= 0)
        code = sv_output_open_at(part, offset, &out, err);
    if (code < 0)
        return code;
    assert(c.writer->can_continue);
    c.options.continues = offset > 0;
    return open_sink(&c, out, dict, report, sink, err);
}

int sv_run_into(struct sv_opened *o, struct sv_sink *sink, bool strict, const char *what,
                struct sv_err *err)
{
    struct sv_progress progress;
    struct sv_pump_options options = {.strict = strict,
                                      .progress = sv_progress_tick,
                                      .progress_ctx = &progress,
                                      .n_events = &o->n_events};
    sv_progress_begin(&progress, o->in, what);
    int code = sv_pump_into(o->source, sink, &options, err);
    o->source = NULL;
    sv_progress_end(&progress);
    bool has_place = code < 0 && err->pos != SV_NO_POS; /* in the input: outputs have none */
    if (code == SV_EINPUT || code == SV_EFORMAT || code == SV_EFOUND || has_place)
        sv_err_in_file(err, o->path);
    return code;
}

/* Did it say anything: a track, a clock, a property? */
static bool is_blank(const struct sv_dict *d)
{
    return d->n_tracks <= 1 && d->n_meta == 0 && d->clocks.n == 0 &&
           d->clocks.trace_clock == SV_CLOCK_UNKNOWN;
}

/* It looked like the format, but nothing in it is: damage, and nothing else. The first place is
 * named. */
static bool is_no_trace(const struct sv_opened *o, const struct sv_dict *dict, struct sv_err *err)
{
    const struct sv_finding *first = NULL;
    if (o->n_events || o->is_live || o->takes_nothing || !is_blank(dict))
        return false;
    for (size_t i = 0; i < o->report.n; i++) {
        const struct sv_finding *row = &o->report.rows[i];
        if (row->severity == SV_DAMAGE &&
            (!first || (uint64_t)row->first_pos < (uint64_t)first->first_pos))
            first = row;
    }
    if (!first)
        return false;
    sv_err_set(err, SV_EINPUT, first->first_pos, "%s; no event can be read, so this is no trace",
               first->what);
    sv_err_in_file(err, o->path);
    return true;
}

int sv_run(struct sv_opened *o, struct sv_sink *sink, bool strict, const char *what,
           struct sv_err *err)
{
    struct sv_dict *dict = o->source->dict;
    sink = sv_pump_adapt(o->source->gives, sink, dict, &o->report, NULL);
    int code = sv_run_into(o, sink, strict, what, err);
    bool is_nothing = code >= 0 && is_no_trace(o, dict, err);
    if (is_nothing)
        code = err->code;
    int closed = sink->close(sink, code < 0, code < 0 ? &(struct sv_err){0} : err);
    sv_input_unpack_end(o->in);
    sv_workers_free(o->workers);
    o->workers = NULL;
    if (!o->is_live && !is_nothing)
        sv_console_findings(o->path, &o->report);
    return code < 0 ? code : closed;
}

int sv_copy_trace(const struct sv_copy *c, struct sv_err *err)
{
    struct sv_dict *dict = sv_dict_new();
    struct sv_opened in;
    struct sv_sink *sink;
    struct sv_chosen chosen = {0};
    in = (struct sv_opened){.path = c->path, .fd = -1};
    int code = sv_check_inputs(&c->path, 1, c->out->path, err);
    if (code >= 0 && sv_needs_choice(&c->path, 1, &c->range)) {
        code = sv_choose_parts(&c->path, 1, &c->range, c->from, &chosen, err);
        if (code >= 0)
            code = sv_chosen_open(&chosen, c->from, (struct sv_read_options){0}, dict, &in, err);
    } else if (code >= 0) {
        code = sv_open_input(c->path, c->from, 0, dict, &in, err);
    }
    if (code >= 0)
        code = sv_open_output(c->out, dict, &in.report, &sink, err);
    if (code >= 0 && chosen.has_window) /* the writer wants the shape of the input */
        sink = sv_chosen_window(
            &chosen, dict,
            sv_pump_adapt(in.source->gives & ~SV_ORDER_BITS, sink, dict, &in.report, NULL));
    if (code >= 0 && c->before)
        code = c->before(c->ctx, dict, &in.report, &sink, err);
    if (code >= 0)
        code = sv_run(&in, sink, c->strict, c->what, err);
    if (code >= 0 && c->is_result && in.n_events == 0) {
        sv_console_error(c->path, SV_NO_POS, "no events: what was written is empty");
        code = SV_EXIT_LESS;
    }
    sv_opened_close(&in);
    sv_chosen_fini(&chosen);
    sv_dict_free(dict);
    return code;
}

/* ---- lists for the help ---- */

static void add_list(struct sv_buf *out, enum sv_format_list which, bool is_help)
{
    sv_format_names(out, which, NULL, is_help ? ", " : " ", is_help ? " or " : " ");
}

void sv_list_readers(struct sv_buf *out, bool is_help)
{
    add_list(out, SV_LIST_READERS, is_help);
}

static void list_writers(struct sv_buf *out, bool is_help)
{
    add_list(out, SV_LIST_WRITERS, is_help);
}

static void list_suffixes(struct sv_buf *out, bool is_help)
{
    add_list(out, SV_LIST_SUFFIXES, is_help);
}

static void list_dialects(struct sv_buf *out, bool is_help)
{
    if (is_help)
        sv_format_dialects(out);
    else
        add_list(out, SV_LIST_DIALECTS, false);
}

const struct sv_word_list sv_format_lists[] = {
    {"readers", sv_list_readers},
    {"writers", list_writers},
    {"suffixes", list_suffixes},
    {"dialects", list_dialects},
    {0},
};

/* ---- the same file twice ---- */

struct identity {
    dev_t device;
    ino_t inode;
    size_t at; /* which input */
};

static int by_identity(const void *a, const void *b)
{
    const struct identity *x = a, *y = b;
    if (x->device != y->device)
        return x->device < y->device ? -1 : 1;
    if (x->inode != y->inode)
        return x->inode < y->inode ? -1 : 1;
    return (x->at > y->at) - (x->at < y->at);
}

/* Of regular files, and of standard input (as the file -1): what else there is may be read twice
 * with good reason. */
static bool identify(const char *path, struct identity *id)
{
    struct stat st;
    if (strcmp(path, "-") == 0) {
        *id = (struct identity){.device = (dev_t)-1, .inode = (ino_t)-1};
        return true;
    }
    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode))
        return false;
    *id = (struct identity){.device = st.st_dev, .inode = st.st_ino};
    return true;
}

bool sv_is_same_file(const char *a, const char *b)
{
    struct identity x, y;
    return strcmp(a, "-") != 0 && strcmp(b, "-") != 0 && identify(a, &x) && identify(b, &y) &&
           x.device == y.device && x.inode == y.inode;
}

int sv_check_inputs(const char *const *paths, size_t n, const char *output, struct sv_err *err)
{
    struct identity *ids = sv_alloc((n + 1) * sizeof *ids);
    size_t n_ids = 0;
    int code = 0;
    for (size_t i = 0; i < n && code >= 0; i++) {
        if (output && sv_is_same_file(paths[i], output))
            code = sv_error(err, SV_EUSAGE,
                            "%.300s: is the input and the output; write to another file", paths[i]);
        if (identify(paths[i], &ids[n_ids]))
            ids[n_ids++].at = i;
    }
    qsort(ids, n_ids, sizeof *ids, by_identity);
    for (size_t i = 1; i < n_ids && code >= 0; i++)
        if (ids[i].device == ids[i - 1].device && ids[i].inode == ids[i - 1].inode)
            code = sv_error(err, SV_EUSAGE, "%.220s: is given twice, first as %.220s",
                            paths[ids[i].at], paths[ids[i - 1].at]);
    free(ids);
    return code;
}

int sv_expect_operands(const struct sv_words *operands, size_t at_least, size_t at_most,
                       const char *what, struct sv_err *err)
{
    if (operands->n < at_least)
        return sv_error(err, SV_EUSAGE, "%s missing; see --help", what);
    if (operands->n > at_most)
        return sv_error(err, SV_EUSAGE, "one %s too many: '%s'", what, operands->items[at_most]);
    return 0;
}
