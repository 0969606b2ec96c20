/* Merge: several inputs as one source, on one time axis, with one dictionary.
 *
 *     m = sv_merge_new(&options);
 *     for each input: sv_merge_add(m, &input, source, …);       // reads it to its end, sorted,
 *         into bounded memory
 *     sv_merge_relate(m, dict, report, err);                     // relates the clocks or refuses
 *     sv_merge_pump(m, sink, err);                               // frees the merge
 *
 * Of a cluster's run each machine shares nothing with the others but the axis. A sink that takes
 * tracks one by one (a Perfetto file, the store) gets one machine after the other: only that
 * machine's inputs are read side by side, and what a file has to repeat for the tracks in use stays
 * small. All other sinks get everything in the order of time.
 *
 * Each input was read with a dictionary of its own. Inputs of the same machine (equal "boot_id" in
 * the metadata; "hostname" where there is none, see hosts.h; or same_host) share a pid space, so
 * that an SDK's file and a system capture of one process join; inputs of the same machine and
 * "rank" share flow and correlation numbers too. All else is kept apart. The result does not depend
 * on the order in which inputs were added: they are numbered by (rank, hostname, name). Inputs that
 * are compared are an exception. */
#pragma once

#include "core/stream/stream.h"

struct sv_relation;

struct sv_merge_options {
    size_t memory_bytes; /* 0: the sorter's default; for all inputs together */
    bool same_host;      /* all inputs come from one machine, whatever their metadata say */
    bool assume;         /* inputs whose clocks cannot be related are taken as they are */
    bool repeats_ranks;  /* several inputs of one rank may cover the same time */
    bool skips_bad;      /* of two inputs of one rank, a damaged one is left out */
    /* Inputs whose clocks relate to none of the others are left out and named here, where that is
     * not NULL: for who cannot ask again. */
    void (*left_out)(void *ctx, const char *name);
    void *left_out_ctx;
    /* To compare the inputs: each is a machine of its own, in the order in which they were added,
     * and its anchor is at 0: the first event whose name matches the glob, NULL: the first
     * event. */
    bool compare;
    const char *anchor;
    /* Relations from files of their own, beside those in the inputs' metadata; they must outlive
     * the merge. */
    const struct sv_relation *relations;
    size_t n_relations;
    bool align_collectives; /* estimate what is not measured: align.h */
};

struct sv_merge_input {
    const char *name;     /* the path: for messages and order */
    const char *kind;     /* of the file: its format; not copied; NULL: unknown */
    struct sv_dict *dict; /* of this input only; the merge frees it, also when add fails */
    bool has_offset;      /* see relate.h */
    int64_t offset_ns;
};

struct sv_merge;

struct sv_merge *sv_merge_new(const struct sv_merge_options *options);
void sv_merge_free(struct sv_merge *m);

/* Runs the source to its end and closes it. Edges are paired here: on a track that two inputs
 * share, the end of one must not close the begin of the other. After a failure the input is not in
 * the merge, which can go on without it. */
int sv_merge_add(struct sv_merge *m, const struct sv_merge_input *input, struct sv_source *source,
                 const struct sv_pump_options *pump, struct sv_err *err);

/* How all inputs come onto one axis; clocks and metadata go into `dict`, which is empty. `report`
 * gets a note on how each input was placed, and names those that are left out: see
 * merge_ranks.c. */
int sv_merge_relate(struct sv_merge *m, struct sv_dict *dict, struct sv_report *report,
                    struct sv_err *err);

/* Everything into the sink, through the stages that it needs. Closes the sink and frees the merge,
 * whatever happens. */
int sv_merge_pump(struct sv_merge *m, struct sv_sink *sink, struct sv_err *err);

/* Relates, and gives the merged stream as one source: slices, instants, counters, losses and flow
 * points in time order. Takes the merge on success. */
int sv_merge_source(struct sv_merge *m, struct sv_dict *dict, struct sv_report *report,
                    struct sv_source **out, struct sv_err *err);
