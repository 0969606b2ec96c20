/* The table of formats, and the three ways to find one: by name, by the suffix of a path, by content.
 *
 * Called by cmd/ and by the tests that run every reader with every writer. A suffix is only a wish for the output; an input is
 * recognised by its first bytes alone. */
#include "formats/formats.h"

#include <string.h>

#define PROBE_BYTES 65536

static const char *const perfetto_suffixes[] = {".pftrace", ".perfetto-trace", ".pb", ".proto",
                                                NULL};

static const struct sv_format perfetto = {
    .name = "perfetto",
    .suffixes = perfetto_suffixes,
    .help = "Perfetto protobuf trace",
    .probe = sv_perfetto_probe,
    .open_source = sv_perfetto_source,
    .open_sink = sv_perfetto_sink,
    .is_binary = true,
    .readers_sort = true,
    .compresses_inside = true,
    .can_continue = true,
};

static const char *const chrome_suffixes[] = {".json", NULL};

static const struct sv_format chrome = {
    .name = "chrome",
    .suffixes = chrome_suffixes,
    .help = "Chrome trace-event JSON, Kineto's included",
    .probe = sv_chrome_probe,
    .open_source = sv_chrome_source,
    .open_sink = sv_chrome_sink,
    .can_continue = true,
};

static const char *const text_suffixes[] = {".txt", ".stave", NULL};

static const struct sv_format text = {
    .name = "text",
    .suffixes = text_suffixes,
    .help = "canonical text, one event a line",
    .probe = sv_text_probe,
    .open_source = sv_text_source,
    .open_sink = sv_text_sink,
};

static const char *const csv_suffixes[] = {".csv", NULL};

static const struct sv_format csv = {
    .name = "csv",
    .suffixes = csv_suffixes,
    .help = "one line per slice, instant and counter value",
    .open_sink = sv_csv_sink,
};

/* What other tools print: these are only read, and an output's suffix never means them. */
static const char *const no_suffixes[] = {NULL};

#define SV_I_LOG(id, word, about, day, where) SV_I_DERIVED(id, word, about, day, where, NULL)
#define SV_I_DERIVED(id, word, about, day, where, from) \
    static const struct sv_format id = {                \
        .name = word,                                   \
        .suffixes = no_suffixes,                        \
        .help = about,                                  \
        .probe = sv_##id##_probe,                       \
        .open_source = sv_##id##_source,                \
        .needs_date = day,                              \
        .needs_zone = where,                            \
        .told_by = from,                                \
    }

SV_I_LOG(bpftrace, "bpftrace", "what the bpftrace scripts for file and block I/O print", false,
         false);
SV_I_LOG(time_align, "time-align", "bpftrace's nanoseconds beside the wall clock's seconds", true,
         true);
SV_I_LOG(mpstat, "mpstat", "CPU utilisation by mpstat", false, true);
SV_I_LOG(pmon, "pmon", "GPU utilisation by process, nvidia-smi pmon -o DT", false, true);
SV_I_LOG(iostat, "iostat", "disk utilisation by iostat -o JSON", false, false);
SV_I_LOG(strace, "strace", "system calls by strace -f -ttt -T, or -tt", true, false);
SV_I_LOG(mllog, "mllog", "a log with MLPerf's :::MLLOG lines", false, false);
SV_I_LOG(dlio, "dlio", "a log of the DLIO benchmark", false, false);
SV_I_LOG(batching_csv, "batching-csv", "the summary of an inference server's batches", false,
         false);

/* starpu_fxt_tool makes these of prof_file_*; the graph has the order of what the others tell the times of. */
static const char *const by_fxt[] = {"fxt", NULL};
static const char *const by_times[] = {"fxt", "starpu-rec", "paje", NULL};

SV_I_DERIVED(paje, "paje", "a Paje trace, StarPU's paje.trace among them", false, false, by_fxt);
SV_I_DERIVED(starpu_rec, "starpu-rec", "StarPU's tasks.rec and trace.rec", false, false, by_fxt);
SV_I_DERIVED(starpu_dag, "starpu-dag", "StarPU's graph of tasks, dag.dot: order, not time", false,
             false, by_times);
SV_I_LOG(fxt, "fxt", "StarPU's own trace by FxT, prof_file_*", false, false);
SV_I_LOG(nsys, "nsys", "SQLite export of Nsight Systems", false, false);
SV_I_LOG(rocprofv3, "rocprofv3", "JSON of ROCm's rocprofv3", false, false);

/* Variants of a format with a writer of their own: (identifier, format, --dialect, help). */
#define SV_I_DIALECT(id, of, word, about) \
    static const struct sv_format id = {  \
        .name = #id,                      \
        .suffixes = no_suffixes,          \
        .help = about,                    \
        .open_sink = sv_##id##_sink,      \
        .dialect_of = of,                 \
        .dialect = word,                  \
    }

SV_I_DIALECT(kineto, "chrome", "kineto", "Chrome JSON as PyTorch's profiler writes it");
SV_I_DIALECT(perfetto_gpu, "perfetto", SV_PERFETTO_GPU, "GPU work as GPU packets");
SV_I_DIALECT(tracesmith, "chrome", "seed", "Chrome JSON as TraceSmith writes it");
SV_I_DIALECT(tracesmith_basic, "chrome", "seed-basic", "the same without track names and arrows");

static const char *const dot_suffixes[] = {".dot", ".gv", NULL};

static const struct sv_format dot = {
    .name = "dot",
    .suffixes = dot_suffixes,
    .help = "the graph of GPU work, for Graphviz",
    .open_sink = sv_dot_sink,
};

SV_I_LOG(sbt, "sbt", "TraceSmith's binary trace", false, false);

const struct sv_format *const sv_formats[] = {
    &perfetto,     &chrome,       &text,       &csv,
    &bpftrace,     &time_align,   &mpstat,     &pmon,
    &iostat,       &strace,       &mllog,      &dlio,
    &kineto,       &perfetto_gpu, &tracesmith, &tracesmith_basic,
    &batching_csv, &paje,         &starpu_rec, &dot,
    &sbt,          &nsys,         &fxt,        &rocprofv3,
    &starpu_dag,   NULL};

const struct sv_format *sv_format_named(const char *name)
{
    for (const struct sv_format *const *f = sv_formats; *f; f++)
        if (strcmp((*f)->name, name) == 0)
            return *f;
    return NULL;
}

const struct sv_format *sv_format_dialect(const struct sv_format *format, const char *dialect)
{
    for (const struct sv_format *const *f = sv_formats; dialect && *f; f++)
        if ((*f)->dialect && strcmp((*f)->dialect_of, format->name) == 0 &&
            strcmp((*f)->dialect, dialect) == 0)
            return *f;
    return format;
}

static bool ends_with(const char *s, size_t len, const char *suffix)
{
    size_t n = strlen(suffix);
    return len > n && memcmp(s + len - n, suffix, n) == 0;
}

const struct sv_format *sv_format_for_path(const char *path, enum sv_compression *compression)
{
    size_t len = strlen(path);
    *compression = SV_PLAIN;
    if (ends_with(path, len, ".gz")) {
        *compression = SV_GZIP;
        len -= 3;
    } else if (ends_with(path, len, ".zst")) {
        *compression = SV_ZSTD;
        len -= 4;
    }
    for (const struct sv_format *const *f = sv_formats; *f; f++)
        for (const char *const *suffix = (*f)->suffixes; *suffix; suffix++)
            if (ends_with(path, len, *suffix))
                return *f;
    return NULL;
}

const struct sv_format *sv_format_probe(struct sv_input *in, struct sv_err *err)
{
    const struct sv_format *best = NULL;
    int best_score = 0;
    if (sv_input_need(in, PROBE_BYTES, err) < 0)
        return NULL;
    for (const struct sv_format *const *f = sv_formats; *f; f++) {
        int score = (*f)->probe ? (*f)->probe(in->data, in->len) : 0;
        if (score > best_score) {
            best_score = score;
            best = *f;
        }
    }
    return best;
}
