/* The tables of a trace as Parquet files, measured from the loaded store.
 *
 *     parquet FILE FOLDER     rows for bench/run: slices per second of the writer, bytes per slice,
 *                             memory above the store; with -v CPU seconds of each table and the
 *                             memory up to it
 *
 * CPU time. The order of slices by time is made with the first table and counts for it. One export
 * per process, so that the peak of memory is its own. */
#include "measure.h"

#include "cmd/export_columns.h"
#include "files/load.h"

#include <string.h>
#include <sys/stat.h>

/* A line of /proc/self/status in MB. */
static double status_mb(const char *key)
{
    FILE *f = fopen("/proc/self/status", "r");
    char line[256];
    double kb = 0;
    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, key, strlen(key)) == 0)
            kb = strtod(line + strlen(key) + 1, NULL);
    if (f)
        fclose(f);
    return kb * 1024 / 1e6;
}

/* The peak counts from here on. */
static void reset_peak(void)
{
    FILE *f = fopen("/proc/self/clear_refs", "w");
    if (f) {
        fputs("5", f);
        fclose(f);
    }
}

int main(int argc, char **argv)
{
    bool is_verbose = argc == 4 && strcmp(argv[3], "-v") == 0;
    struct sv_loaded l;
    struct sv_sql *q;
    struct sv_err err = {0};
    struct stat st;
    char path[4096];
    uint64_t n_unfit = 0;
    double slices_s = 0, all_s = 0;
    if (argc < 3)
        return 2;
    if (sv_load(argv[1], &(struct sv_load_how){.index = SV_INDEX_NOT_USED}, &l, &err) < 0 ||
        sv_sql_open(l.trace, &(struct sv_sql_options){0}, &q, &err) < 0) {
        fprintf(stderr, "parquet: %s: %s\n", argv[1], err.msg);
        return 1;
    }
    reset_peak();
    double before_mb = status_mb("VmRSS");
    for (size_t i = 0; i < sv_n_typed_tables; i++) {
        const struct sv_typed_table *t = &sv_typed_tables[i];
        snprintf(path, sizeof path, "%s/%s.parquet", argv[2], t->name);
        double start = clock_s(CLOCK_PROCESS_CPUTIME_ID);
        if (sv_parquet_table(q, l.trace, t, path, &n_unfit, &err) < 0) {
            fprintf(stderr, "parquet: %s: %s\n", path, err.msg);
            return 1;
        }
        double spent = clock_s(CLOCK_PROCESS_CPUTIME_ID) - start;
        all_s += spent;
        if (is_verbose)
            printf("%s %.3f s %.1f MB so far\n", t->name, spent, status_mb("VmHWM") - before_mb);
        if (strcmp(t->name, "slice") != 0)
            continue;
        slices_s = spent;
        row("parquet_bytes_per_slice",
            stat(path, &st) == 0 ? (double)st.st_size / (double)l.trace->slices.n : 0, "bytes");
    }
    row("parquet_writer", (double)l.trace->slices.n / slices_s / 1e6, "M/s");
    row("parquet_all_tables", (double)l.trace->slices.n / all_s / 1e6, "M/s");
    row("parquet_memory", status_mb("VmHWM") - before_mb, "MB");
    sv_sql_close(q);
    sv_loaded_free(&l);
    return 0;
}
