/* --log FILE: MLPerf and DLIO logs of the command as rows of the trace.
 *
 * Called by the recorder when everything else is in the file: a log is read once, at the end,
 * through the reader of its format, and its wall-clock times are moved onto the trace's clock by
 * the recorder's own snapshots. What the file holds from earlier runs is left out and counted. A
 * log that cannot be read costs one line, never the trace. */
#include "cli/console.h"
#include "formats/civil.h"
#include "record/session/recorder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct log_run {
    struct sv_sink sink; /* first: the stage that moves events onto the trace's clock and rows */
    struct sv_recorder *r;
    struct sv_sink *to; /* what the recorder's sink needs, and that */
    sv_track group;
    sv_track *rows; /* by the reader's tracks: ours, below the group */
    size_t n_rows, cap_rows;
    uint64_t n_events, n_earlier;
    int64_t first_ns;
    struct sv_clocks clocks; /* all of the recording */
};

/* ---- the recorder's sink, which must outlive the stages before it ---- */

struct lent {
    struct sv_sink sink;
    struct sv_sink *next;
};

static int lent_write(struct sv_sink *s, const struct sv_event *events, size_t n,
                      struct sv_err *err)
{
    struct sv_sink *next = ((struct lent *)s)->next;
    return next->write(next, events, n, err);
}

static int lent_close(struct sv_sink *s, bool failed, struct sv_err *err)
{
    (void)failed;
    (void)err;
    free(s);
    return 0;
}

static struct sv_sink *lend(struct sv_sink *next)
{
    struct lent *l = sv_alloc(sizeof *l);
    *l = (struct lent){{.write = lent_write, .close = lent_close}, next};
    sv_sink_takes_as(&l->sink, next, SV_IN_ORDER);
    return &l->sink;
}

/* ---- events ---- */

/* Rows of several logs are called alike: each log has a group of its own. */
static sv_track row_of(struct log_run *g, sv_track t)
{
    struct sv_dict *d = g->r->dict;
    if (t >= g->n_rows) {
        g->rows = sv_grow(g->rows, &g->cap_rows, (size_t)t + 1, sizeof *g->rows);
        memset(g->rows + g->n_rows, 0, ((size_t)t + 1 - g->n_rows) * sizeof *g->rows);
        g->n_rows = (size_t)t + 1;
    }
    if (g->rows[t] == 0) {
        unsigned kind = d->tracks[t].kind;
        sv_str unit = d->tracks[t].unit;
        g->rows[t] = sv_dict_child(d, g->group, kind, d->tracks[t].name);
        d->tracks[g->rows[t]].unit = unit;
    }
    return g->rows[t];
}

/* On the trace's clock and row; false: from before the recording. */
static bool adopt(struct log_run *g, struct sv_event *e)
{
    const struct sv_clocks *clocks = &g->clocks;
    int64_t from = e->ts_ns, to;
    bool is_slice = e->kind == SV_SLICE && e->dur_ns != SV_UNFINISHED;
    if (!sv_clocks_convert(clocks, SV_CLOCK_REALTIME, SV_CLOCK_BOOTTIME, from, &e->ts_ns))
        return false;
    int64_t end = from + (is_slice ? e->dur_ns : 0);
    if (!sv_clocks_convert(clocks, SV_CLOCK_REALTIME, SV_CLOCK_BOOTTIME, end, &to))
        return false;
    /* Logs have milliseconds: an entry of the first one is not older than the recording. */
    if (to < g->first_ns)
        return false;
    if (is_slice)
        e->dur_ns = to > e->ts_ns ? to - e->ts_ns : 0;
    e->track = row_of(g, e->track);
    return true;
}

static int log_write(struct sv_sink *s, const struct sv_event *events, size_t n, struct sv_err *err)
{
    struct log_run *g = (struct log_run *)s;
    struct sv_event kept[SV_BATCH];
    size_t n_kept = 0;
    for (size_t i = 0; i < n; i++) {
        kept[n_kept] = events[i];
        n_kept += adopt(g, &kept[n_kept]);
    }
    g->n_earlier += n - n_kept;
    g->n_events += n_kept;
    return n_kept ? g->to->write(g->to, kept, n_kept, err) : 0;
}

static int log_close(struct sv_sink *s, bool failed, struct sv_err *err)
{
    struct sv_sink *to = ((struct log_run *)s)->to;
    return to->close(to, failed, err);
}

/* ---- files ---- */

/* Times without a zone were made on this machine: TZ, else the zone that it is set to. NULL:
 * UTC. */
static struct sv_zone *zone_here(const char *given, struct sv_err *err)
{
    struct sv_zone *zone = NULL;
    struct sv_err ignored = {0};
    const char *tz = getenv("TZ");
    if (given)
        return sv_zone_open(given, &zone, err) < 0 ? NULL : zone;
    if (tz && *tz)
        return sv_zone_open(tz + (*tz == ':'), &zone, &ignored) < 0 ? NULL : zone;
    char bytes[1 << 16];
    FILE *f = fopen("/etc/localtime", "re");
    size_t n = f ? fread(bytes, 1, sizeof bytes, f) : 0;
    if (f)
        (void)fclose(f);
    return n > 0 && sv_zone_open_bytes((const uint8_t *)bytes, n, &zone, &ignored) >= 0 ? zone
                                                                                        : NULL;
}

static int open_log(struct sv_recorder *r, const char *path, const struct sv_read_options *read,
                    struct sv_opened *o, struct sv_err *err)
{
    uint32_t clock = r->dict->clocks.trace_clock;
    int code = sv_open_input_as(path, NULL, read, r->dict, o, err);
    r->dict->clocks.trace_clock = clock; /* the reader has set its own */
    if (code < 0)
        return code;
    if (strcmp(o->format->name, "mllog") != 0 && strcmp(o->format->name, "dlio") != 0)
        return sv_err_set(err, SV_EINPUT, SV_NO_POS,
                          "%s: neither MLLOG lines nor DLIO's log, but %s; 'stave merge' joins it",
                          path, o->format->name);
    return 0;
}

static int read_log(struct sv_recorder *r, const char *path, const struct sv_read_options *read,
                    struct sv_err *err)
{
    struct log_run g = {.r = r, .first_ns = r->times.started_ns - 1000000};
    struct sv_opened o;
    char name[300], n[32];
    const char *slash = strrchr(path, '/');
    int code = open_log(r, path, read, &o, err);
    if (code >= 0) {
        snprintf(name, sizeof name, "log %.255s", slash ? slash + 1 : path);
        g.group = sv_dict_child(r->dict, 0, SV_TRACK_CUSTOM, sv_dict_cstr(r->dict, name));
        g.to = sv_pump_adapt(o.source->gives, lend(r->output.sink), r->dict, &o.report, NULL);
        g.sink = (struct sv_sink){.write = log_write, .close = log_close, .takes = o.source->gives};
        sv_parts_clocks(r, &g.clocks);
        code = sv_pump(o.source, &g.sink, NULL, err);
        o.source = NULL;
        r->meter.events += g.n_events;
        if (code >= 0 && g.n_earlier)
            sv_console_note("%s: %s entries from before the recording left out", path,
                            sv_human_count(n, g.n_earlier));
        sv_console_findings(path, &o.report);
    }
    sv_opened_close(&o);
    free(g.rows);
    sv_clocks_fini(&g.clocks);
    return code;
}

void sv_record_logs(struct sv_recorder *r)
{
    const struct sv_words *logs = &r->options->use.logs;
    struct sv_err err = {0};
    if (logs->n == 0)
        return;
    struct sv_zone *zone = zone_here(r->options->use.log_tz, &err);
    struct sv_read_options read = {.log_zone = zone};
    for (size_t i = 0; i < logs->n; i++) {
        sv_err_clear(&err);
        if (read_log(r, logs->items[i], &read, &err) >= 0)
            continue;
        r->is_partial = true;
        sv_console_error(NULL, SV_NO_POS, err.msg);
    }
    sv_zone_free(zone);
}

int sv_record_logs_check(const struct sv_record_options *o, struct sv_err *err)
{
    struct sv_zone *zone = NULL;
    if (o->use.logs.n > 0 && o->redact)
        return sv_err_set(err, SV_EUSAGE, SV_NO_POS,
                          "--log and --redact exclude each other: texts of a log stay as they are");
    if (o->use.log_tz && sv_zone_open(o->use.log_tz, &zone, err) < 0)
        return SV_EUSAGE;
    sv_zone_free(zone);
    return 0;
}
