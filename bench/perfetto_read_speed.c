/* The speed of the Perfetto reader alone: a file into a sink that only counts.
 *
 *     perfetto_read_speed [-n TIMES] FILE
 *
 * The file is read into memory first, so that the disk is not measured, and time is that of the
 * processor. Prints the median of TIMES runs (5): million events per second, megabytes per second,
 * nanoseconds per event. */
#include "formats/formats.h"
#include "measure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static double run(const uint8_t *bytes, size_t len, uint64_t *n_events)
{
    struct sv_err err = {0};
    struct sv_input *in;
    struct sv_source *source;
    struct sv_report report;
    struct sv_batch b;
    struct sv_dict *dict = sv_dict_new();
    int n;
    sv_report_init(&report);
    sv_batch_init(&b);
    double start = clock_s(CLOCK_PROCESS_CPUTIME_ID);
    sv_input_open_memory(bytes, len, "bench", &in, &err);
    sv_format_open(&sv_perfetto_format, in, NULL, dict, &report, &source, &err);
    *n_events = 0;
    while ((n = source->next(source, &b, &err)) > 0) {
        *n_events += (uint64_t)n;
        sv_batch_reset(&b);
    }
    double seconds = clock_s(CLOCK_PROCESS_CPUTIME_ID) - start;
    if (n < 0)
        fprintf(stderr, "perfetto_read: %s\n", err.msg);
    source->close(source);
    sv_input_close(in);
    for (size_t i = 0; i < report.n; i++)
        fprintf(stderr, "perfetto_read: %s: %llu\n", report.rows[i].what,
                (unsigned long long)report.rows[i].count);
    sv_batch_fini(&b);
    sv_report_fini(&report);
    sv_dict_free(dict);
    return seconds;
}

int main(int argc, char **argv)
{
    int times = 5, option;
    while ((option = getopt(argc, argv, "n:")) != -1)
        if (option == 'n')
            times = (int)strtol(optarg, NULL, 10);
    if (optind + 1 != argc || times < 1 || times > 100) {
        fprintf(stderr, "usage: perfetto_read_speed [-n TIMES] FILE\n");
        return 2;
    }
    size_t len = 0;
    uint64_t n_events = 0;
    uint8_t *bytes = read_file(argv[optind], 0, &len);
    if (!bytes) {
        perror(argv[optind]);
        return 3;
    }
    double seconds[100];
    for (int i = 0; i < times; i++)
        seconds[i] = run(bytes, len, &n_events);
    double typical = median(seconds, (size_t)times);
    printf("perfetto_read: %llu events, %.1f MB: %.2f M events/s, %.0f MB/s, %.1f ns/event\n",
           (unsigned long long)n_events, (double)len / 1e6, (double)n_events / typical / 1e6,
           (double)len / typical / 1e6, typical / (double)n_events * 1e9);
    free(bytes);
    return 0;
}
