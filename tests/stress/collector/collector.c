/* collector DIR OUT [SECONDS]: a small collector, as a recording command would be one: empties the
 * rings of every process that has STAVE_SESSION=DIR into OUT, until all that came have gone (or at
 * most so long). Prints `ready`, then `N processes`. */
#include "formats/formats.h"
#include "sdk/collect/collect.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t is_asked_to_end;

static void on_signal(int sig)
{
    (void)sig;
    is_asked_to_end = 1;
}

struct state {
    struct sv_collect *collect;
    struct sv_sink *sink;
    struct sv_batch batch;
    const char *part;
};

static int fail(const struct sv_err *err)
{
    fprintf(stderr, "collector: %s\n", err->msg);
    return 1;
}

static int round_trip(struct state *s, bool look, struct sv_err *err)
{
    struct sv_source *source = sv_collect_source(s->collect);
    struct stat st;
    sv_collect_round(s->collect, look);
    int code = sv_pump_round(source, s->sink, &s->batch, err);
    if (code >= 0)
        code = s->sink->flush(s->sink, err);
    if (code >= 0)
        sv_collect_commit(s->collect, stat(s->part, &st) == 0 ? (uint64_t)st.st_size : 0);
    return code;
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    struct sv_err err = {0};
    struct sv_report report;
    struct sv_dict *dict = sv_dict_new();
    struct sv_output *o;
    struct sv_write_options options = {0};
    char part[4096];
    struct state s = {.part = part};
    time_t give_up = time(NULL) + (argc > 3 ? (time_t)strtol(argv[3], NULL, 10) : 60);
    snprintf(part, sizeof part, "%s.part", argv[2]);
    sv_report_init(&report);
    sv_batch_init(&s.batch);
    signal(SIGTERM, on_signal);
    if (sv_output_open(part, SV_OUTPUT_GROW, SV_PLAIN, &o, &err) < 0 ||
        sv_perfetto_writer.open(o, &options, dict, &report, &s.sink, &err) < 0 ||
        sv_collect_open(argv[1], argv[2], part, dict, &report, &s.collect, &err) < 0)
        return fail(&err);
    printf("ready\n");
    fflush(stdout);
    int code = 0;
    do {
        usleep(2000);
        code = round_trip(&s, false, &err);
    } while (code >= 0 && !is_asked_to_end && time(NULL) < give_up &&
             (sv_collect_n_ever(s.collect) == 0 || sv_collect_n_running(s.collect) > 0));
    if (code >= 0)
        code = round_trip(&s, true, &err);
    printf("%llu processes\n", (unsigned long long)sv_collect_n_ever(s.collect));
    sv_collect_close(s.collect, code < 0);
    int closed = s.sink->close(s.sink, code < 0, &err);
    if (code < 0 || closed < 0 || rename(part, argv[2]) != 0)
        return fail(&err);
    for (size_t i = 0; i < report.n; i++)
        printf("finding: %s\n", report.rows[i].what);
    sv_batch_fini(&s.batch);
    sv_report_fini(&report);
    sv_dict_free(dict);
    return 0;
}
