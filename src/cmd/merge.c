/* stave merge: several traces on one time axis. */
#include "cmd/commands.h"
#include "files/archive.h"
#include "files/found.h"
#include "files/join.h"
#include "files/relations.h"

#include <string.h>

struct merge {
    struct sv_output_choice out;
    const char *from, *align;
    bool strict, assume, same_host, skip_bad, repeat_ranks;
    struct sv_words offsets, relations;
};

static int run(void *options, const struct sv_words *operands, struct sv_err *err)
{
    struct merge *o = options;
    struct sv_join join = {.out = o->out,
                           .from = o->from,
                           .strict = o->strict,
                           .assume = o->assume,
                           .same_host = o->same_host,
                           .skip_bad = o->skip_bad,
                           .repeat_ranks = o->repeat_ranks,
                           .inputs = operands,
                           .offsets = &o->offsets};
    struct sv_relation *relations = NULL;
    bool is_many = operands->n == 1 && /* an archive: what it is, is said when it is opened */
                   (sv_is_folder(operands->items[0]) || sv_is_archive(operands->items[0]));
    int code = sv_expect_operands(operands, is_many ? 1 : 2, SIZE_MAX, "second input file", err);
    join.align_collectives = o->align && strcmp(o->align, "collectives") == 0;
    if (code >= 0 && o->align && !join.align_collectives)
        code = sv_error(err, SV_EUSAGE, "--align: '%s' is not collectives", o->align);
    if (code >= 0)
        code = sv_relations_load(&o->relations, &relations, &join.n_relations, err);
    join.relations = relations;
    if (code >= 0)
        code = sv_join_run(&join, err);
    sv_relations_free(relations, join.n_relations);
    sv_words_free(&o->offsets);
    sv_words_free(&o->relations);
    return code;
}

static const struct sv_option options[] = {
    {0, "offset", "FILE=TIME", SV_OPT_LIST, offsetof(struct merge, offsets),
     "shift FILE by TIME (-1.5ms, +20us, 3s, or a plain number of nanoseconds), after its clock "
     "was related, or its unchanged times if the clock cannot be related; may be given several "
     "times",
     NULL, NULL},
    {0, "relation", "FILE", SV_OPT_LIST, offsetof(struct merge, relations),
     "what 'stave sync' measured between two hosts; may be given several times", NULL, NULL},
    {0, "align", "HOW", SV_OPT_TEXT, offsetof(struct merge, align),
     "collectives: estimate how hosts relate from the ends of their common collectives, where "
     "nothing was measured; the result is marked as an estimate",
     "collectives", NULL},
    {0, "assume", NULL, SV_OPT_FLAG, offsetof(struct merge, assume),
     "also merge inputs whose clocks cannot be related: use their timestamps unchanged", NULL,
     NULL},
    {0, "same-host", NULL, SV_OPT_FLAG, offsetof(struct merge, same_host),
     "all inputs are from one machine: equal pids are the same process", NULL, NULL},
    {0, "skip-bad", NULL, SV_OPT_FLAG, offsetof(struct merge, skip_bad),
     "leave out inputs that cannot be read, with --strict also damaged ones; each is named with "
     "the "
     "reason and the byte position",
     NULL, NULL},
    {0, "repeat-ranks", NULL, SV_OPT_FLAG, offsetof(struct merge, repeat_ranks),
     "also merge inputs of the same rank that cover the same time, for example of two jobs", NULL,
     NULL},
    SV_OUTPUT_OPTIONS(struct merge),
    SV_INPUT_OPTIONS(struct merge),
    {0},
};

static const struct sv_example examples[] = {
    {"stave merge rank0.json.gz rank1.json.gz -o all.pftrace",
     "two ranks of a training job, each with its own processes"},
    {"stave merge traces/ --skip-bad -o all.pftrace",
     "all traces of a folder, without those that cannot be read"},
    {"stave merge app.pftrace system.pftrace --same-host -o both.pftrace",
     "two recordings of one machine"},
    {"stave merge a.pftrace b.pftrace --relation b.relation -o ab.pftrace",
     "two hosts between which 'stave sync' has measured"},
    {"stave merge a.json b.json --offset b.json=+1.25ms -o ab.json",
     "two files whose relation only you know"},
    {0},
};

const struct sv_command sv_command_merge = {
    .name = "merge",
    .operands = "A B… | FOLDER -o OUT",
    .summary = "merge several traces onto one time axis",
    .description =
        "Relates the clocks of the inputs through their clock snapshots, wall clocks or Kineto's "
        "baseTimeNanoseconds, writes all events on one time axis, and reports the uncertainty. "
        "Processes, threads, flow and correlation numbers of different machines or ranks are kept "
        "apart, even when they are equal; inputs of one machine (same boot id or host name in "
        "their metadata) share its processes, unless they are of different containers (pid "
        "namespaces). The order of the inputs does not matter. An input may be a folder: all "
        "traces "
        "in it are merged, and other files in it are named and skipped.\n\n"
        "All inputs are opened before the first one is read. If one cannot be read, nothing is "
        "written, unless --skip-bad leaves it out. The same file twice, or two files of one rank "
        "that "
        "cover the same time, are refused with both names.\n\n"
        "Between hosts, the times are as good as what relates their clocks: pings that were "
        "exchanged while recording ('stave record --sync', or 'stave sync' and --relation), "
        "synchronised wall clocks with the greatest error that each kernel states, or wall clocks "
        "of which nothing is known. merge says which it was and how far two hosts may be apart, "
        "and writes it to the metadata clock_axis.\n\n"
        "If two clocks cannot be related, the merge is refused with the reason, because a wrong "
        "offset would not be noticed in the result. --offset gives the relation by hand, --assume "
        "uses timestamps unchanged. A Kineto file that was cut has lost the base of its times, "
        "which is "
        "at its end: it takes the base from another rank of its job on the same host, and is left "
        "out "
        "with a message where there is none.",
    .options = options,
    .examples = examples,
    .lists = sv_format_lists,
    .options_size = sizeof(struct merge),
    .run = run,
};
