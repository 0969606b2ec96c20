/* Files of a command: inputs recognised by content, outputs chosen by suffix, and the run between
 * them. */
#pragma once

#include "cli/command.h"
#include "files/range.h"
#include "formats/formats.h"

/* An input that is open: path, bytes, format, events, findings. */
struct sv_opened {
    const char *path;
    struct sv_input *in;
    const struct sv_format *format;
    struct sv_source *source; /* NULL once it was pumped */
    struct sv_report report;
    struct sv_workers *workers; /* its own threads, until it was pumped; NULL: none */
    bool is_live;       /* it is being written: that it ends anywhere is nothing to report */
    bool takes_nothing; /* damage without any event is a result, not an error (validate) */
    uint64_t n_events;  /* that it gave, once it was pumped */
    /* of sv_open_piece() */
    int fd;
    struct sv_piece piece;
};

/* Whether the operand names a database (clickhouse://…) rather than a file. Those few commands that
 * take one ask before they open anything. */
bool sv_is_database(const char *path);

/* `from` names a format, or NULL: by content. The error names the file. */
int sv_open_input(const char *path, const char *from, uint32_t space, struct sv_dict *dict,
                  struct sv_opened *o, struct sv_err *err);
/* The same with all options of a reader. */
int sv_open_input_as(const char *path, const char *from, const struct sv_read_options *options,
                     struct sv_dict *dict, struct sv_opened *o, struct sv_err *err);
/* The same for an input that was opened already (NULL: by its path) and that `o` closes. */
int sv_open_input_in(const char *path, struct sv_input *in, const char *from,
                     const struct sv_read_options *options, struct sv_dict *dict,
                     struct sv_opened *o, struct sv_err *err);
/* A part of a file, which `o` closes. */
int sv_open_piece(const char *path, int fd, const struct sv_piece *piece, struct sv_dict *dict,
                  struct sv_opened *o, struct sv_err *err);
/* Several parts, one after the other; `pieces` must outlive it. */
int sv_open_pieces(const char *path, int fd, const struct sv_piece *pieces, size_t n,
                   struct sv_dict *dict, struct sv_opened *o, struct sv_err *err);
void sv_opened_close(struct sv_opened *o); /* also after a failed open */

struct sv_output_choice {
    const char *path;     /* "-" or NULL: standard output */
    const char *to;       /* format name, NULL: by the suffix */
    const char *compress; /* none, gzip or zstd; NULL: by the suffix */
    const char *dialect;
    uint32_t joined; /* struct sv_write_options */
};

/* What {readers}, {writers}, {suffixes} and {dialects} mean in the texts of a command: for its
 * `lists`. */
extern const struct sv_word_list sv_format_lists[];
void sv_list_readers(struct sv_buf *out, bool is_help); /* {readers}, for lists of other words */

#define SV_OUTPUT_OPTIONS(type)                                                            \
    {'o',                                                                                  \
     "output",                                                                             \
     "FILE",                                                                               \
     SV_OPT_OUTPUT,                                                                        \
     offsetof(type, out.path),                                                             \
     "where to write; the suffix chooses the format ({suffixes}), '-' is standard output", \
     NULL,                                                                                 \
     NULL},                                                                                \
        {0,                                                                                \
         "to",                                                                             \
         "FORMAT",                                                                         \
         SV_OPT_TEXT,                                                                      \
         offsetof(type, out.to),                                                           \
         "output format regardless of the suffix: {writers}",                              \
         "{writers}",                                                                      \
         "Output"},                                                                        \
        {0,                                                                                \
         "compress",                                                                       \
         "HOW",                                                                            \
         SV_OPT_TEXT,                                                                      \
         offsetof(type, out.compress),                                                     \
         "none, gzip or zstd: inside a Perfetto file, around any other",                   \
         "none gzip zstd",                                                                 \
         "Output"},                                                                        \
    {                                                                                      \
        0, "dialect", "NAME", SV_OPT_TEXT, offsetof(type, out.dialect),                    \
            "a variant of the format: {dialects}", "{dialects}", "Output"                  \
    }

/* `--mode` of commands that record: who may read their files (core/files/recording_mode.h). */
#define SV_RECORDING_MODE_OPTION(type, member)                                                     \
    {                                                                                              \
        0, "mode", "MODE", SV_OPT_TEXT, offsetof(type, member),                                    \
            "who may read what is recorded: 0600 (default), 0640 or 0644; others can never write", \
            "0600 0640 0644", "Output"                                                             \
    }
/* Checks it (NULL: not given) and makes it hold for this process and what it starts. */
int sv_recording_option(const char *mode, struct sv_err *err);

/* `--from FORMAT`, or under another name where --from means something else. */
#define SV_INPUT_OPTIONS_AS(type, name, field)                                       \
    {0,                                                                              \
     name,                                                                           \
     "FORMAT",                                                                       \
     SV_OPT_TEXT,                                                                    \
     offsetof(type, field),                                                          \
     "input format: {readers} (default: recognised by content)",                     \
     "{readers}",                                                                    \
     "Input"},                                                                       \
    {                                                                                \
        0, "strict", NULL, SV_OPT_FLAG, offsetof(type, strict),                      \
            "if an input is damaged, exit with 1 and write no output", NULL, "Input" \
    }
#define SV_INPUT_OPTIONS(type) SV_INPUT_OPTIONS_AS(type, "from", from)

/* Would it open? For commands that work long before they write. */
int sv_check_output(const struct sv_output_choice *choice, struct sv_err *err);
int sv_open_output(const struct sv_output_choice *choice, struct sv_dict *dict,
                   struct sv_report *report, struct sv_sink **sink, struct sv_err *err);

/* The same for a file that grows under the name `part`, which the caller has claimed
 * (core/files/claim.h). Nothing removes it here, and it keeps space for its end when the disk
 * fills. */
int sv_open_growing(const struct sv_output_choice *choice, const char *part, struct sv_dict *dict,
                    struct sv_report *report, struct sv_sink **sink, struct sv_err *err);
/* Continues such a file after its first `offset` bytes, which end where it was flushed. */
int sv_open_rest(const struct sv_output_choice *choice, const char *part, uint64_t offset,
                 struct sv_dict *dict, struct sv_report *report, struct sv_sink **sink,
                 struct sv_err *err);
/* 1: the format has that; 0: it does not; negative: no such format. `needs_end`: a file that was
 * cut is not whole without its end. */
int sv_can_continue(const struct sv_output_choice *choice, bool *needs_end, struct sv_err *err);

/* Runs an opened input into a sink (which it closes), with progress, and prints what was found. */
int sv_run(struct sv_opened *o, struct sv_sink *sink, bool strict, const char *what,
           struct sv_err *err);
/* The same, but the sink takes the events as they are and stays open. */
int sv_run_into(struct sv_opened *o, struct sv_sink *sink, bool strict, const char *what,
                struct sv_err *err);

/* One input into one output. `before` (may be NULL) puts stages before the writer: it replaces
 * *sink, or closes it and fails. */
struct sv_copy {
    const char *path, *from; /* a folder: the recording in it */
    struct sv_range range;
    const struct sv_output_choice *out;
    bool strict;
    const char *what; /* as for sv_run() */
    bool is_result;   /* a copy without any event gets a line and SV_EXIT_LESS */
    int (*before)(const void *ctx, struct sv_dict *dict, struct sv_report *report,
                  struct sv_sink **sink, struct sv_err *err);
    const void *ctx;
};
int sv_copy_trace(const struct sv_copy *c, struct sv_err *err);

/* Puts the file's name (and the position) into the message. Returns err->code. */
int sv_err_in_file(struct sv_err *err, const char *path);

/* A text file beside a trace, emptied: only this user's, so that nothing is written through what
 * others planted under its name. */
int sv_open_log(const char *path, struct sv_err *err);

/* SV_EUSAGE when there are not exactly / at least n operands. */
/* Refuses (SV_EUSAGE) a file that is given twice, also under two names, and an output (may be NULL)
 * that is one of the inputs: what it holds would count double, or be gone. */
int sv_check_inputs(const char *const *paths, size_t n, const char *output, struct sv_err *err);
int sv_check_reader(const char *from, struct sv_err *err); /* --from; NULL is fine */
bool sv_is_same_file(const char *a, const char *b);

int sv_expect_operands(const struct sv_words *operands, size_t at_least, size_t at_most,
                       const char *what, struct sv_err *err);
