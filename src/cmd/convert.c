/* stave convert: any trace to any format, in one streaming pass. */
#include "cmd/commands.h"
#include "core/stream/stages.h"
#include "files/join.h"
#include "files/open.h"

#include <string.h>

struct convert {
    struct sv_output_choice out;
    const char *from, *gpu_tracks;
    bool strict;
    struct sv_range range;
};

/* The stage that --gpu-tracks asks for, before the output. */
static int put_rows(const void *options, struct sv_dict *dict, struct sv_report *report,
                    struct sv_sink **sink, struct sv_err *err)
{
    const struct convert *o = options;
    if (!o->gpu_tracks)
        return 0;
    bool by_kind = strcmp(o->gpu_tracks, "kind") == 0;
    if (!by_kind && strcmp(o->gpu_tracks, "streams") != 0) {
        (*sink)->close(*sink, true, &(struct sv_err){0});
        return sv_error(err, SV_EUSAGE, "--gpu-tracks: '%s' is not streams or kind", o->gpu_tracks);
    }
    *sink = sv_gpu_rows_new(dict, report, by_kind, *sink);
    return 0;
}

static int run(void *options, const struct sv_words *operands, struct sv_err *err)
{
    struct convert *o = options;
    int code = sv_expect_operands(operands, 1, SIZE_MAX, "input file", err);
    if (code < 0)
        return code;
    if (operands->n > 1 && (o->range.since || o->range.until || o->range.recording))
        return sv_error(err, SV_EUSAGE,
                        "--since, --until and --recording work with one input, which may be a "
                        "folder of parts");
    if (operands->n > 1 && o->gpu_tracks)
        return sv_error(
            err, SV_EUSAGE,
            "--gpu-tracks works with one input: convert each input, then use 'stave merge'");
    if (operands->n > 1) {
        struct sv_join join = {
            .out = o->out, .from = o->from, .strict = o->strict, .inputs = operands};
        return sv_join_run(&join, err);
    }
    return sv_copy_trace(&(struct sv_copy){.path = operands->items[0],
                                           .from = o->from,
                                           .range = o->range,
                                           .out = &o->out,
                                           .strict = o->strict,
                                           .what = "converting",
                                           .is_result = true,
                                           .before = put_rows,
                                           .ctx = o},
                         err);
}

static const struct sv_option options[] = {
    SV_OUTPUT_OPTIONS(struct convert),
    SV_RANGE_OPTIONS(struct convert),
    SV_INPUT_OPTIONS(struct convert),
    {0, "gpu-tracks", "HOW", SV_OPT_TEXT, offsetof(struct convert, gpu_tracks),
     "tracks of GPU work: streams (device, context, stream) or kind (GPU Compute, GPU Memory Copy "
     "(H→D) …); default: as in the input",
     "streams kind", NULL},
    {0},
};

static const struct sv_example examples[] = {
    {"stave convert trace.json.gz -o trace.pftrace",
     "a Chrome or Kineto trace for Perfetto, nothing rounded"},
    {"stave convert run.pftrace -o run.json", "for chrome://tracing, speedscope and scripts"},
    {"stave convert run.pftrace -o run.pftrace.small --to perfetto --compress zstd",
     "a smaller file; zstd needs Perfetto 58 or newer, gzip works with every reader"},
    {"stave convert server.pftrace --dialect batching -o batching_trace.json",
     "the file that an inference server writes itself (docs/serving.md); with -o summary.csv its "
     "summary"},
    {"stave convert run.pftrace --dialect ferrum -o trace.json",
     "the file of ferrum's trace writer (docs/porting.md)"},
    {"zcat trace.json.gz | stave convert - --to csv > events.csv", "in a pipe"},
    {0},
};

const struct sv_command sv_command_convert = {
    .name = "convert",
    .operands = "IN… -o OUT",
    .summary = "convert a trace to another format",
    .description = "Reads a trace in any known format (recognised by its content, also gzip or "
                   "zstd compressed, '-' is standard input) and writes it in the format of OUT's "
                   "suffix: {suffixes}; .gz or .zst after it compresses. Nanoseconds, flows, "
                   "arguments and tracks are kept; what the format cannot hold is reported.\n\n"
                   "The file is streamed: memory does not depend on its size. Damaged input is "
                   "repaired where possible and each kind of damage is reported with its first "
                   "byte position; --strict refuses it instead.\n\n"
                   "Several inputs are merged as 'stave merge' does.",
    .options = options,
    .examples = examples,
    .lists = sv_format_lists,
    .options_size = sizeof(struct convert),
    .run = run,
};
