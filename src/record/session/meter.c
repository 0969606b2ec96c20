/* The meter: see record/session/meter.h. Called by the recorder, which gives it what each round
 * brings. */
#include "record/session/meter.h"

#include "record/session/recorder.h"
#include "record/spool/defer.h"
#include "store/once_paths.h"

#include <stddef.h>

static struct sv_recorder *recorder_of(struct sv_sink *s)
{
    return (struct sv_recorder *)((char *)s - offsetof(struct sv_recorder, meter.sink));
}

static uint64_t losses_in(const struct sv_event *events, size_t n)
{
    uint64_t n_lost = 0;
    for (size_t i = 0; i < n; i++)
        if (events[i].kind == SV_LOSS && events[i].n_args > 0 && events[i].args[0].i > 0)
            n_lost += (uint64_t)events[i].args[0].i - 1;
    return n_lost;
}

static int meter_write(struct sv_sink *s, const struct sv_event *events, size_t n,
                       struct sv_err *err)
{
    struct sv_recorder *r = recorder_of(s);
    r->meter.events += n;
    r->meter.lost += losses_in(events, n);
    sv_triggers_feed(r, events, n);
    if (r->output.sink->write(r->output.sink, events, n, err) < 0)
        sv_record_output_fail(r, err);
    if (!sv_defer_is_replaying(r))
        sv_record_commit_many(r, err);
    return 0;
}

static void meter_forget(struct sv_sink *s, sv_track track)
{
    struct sv_recorder *r = recorder_of(s);
    sv_triggers_forget(r, track);
    r->output.sink->forget(r->output.sink, track);
}

void sv_record_meter_open(struct sv_recorder *r, bool has_paths_once)
{
    r->meter.sink = (struct sv_sink){.write = meter_write,
                                     .forget = r->output.sink->forget ? meter_forget : NULL};
    sv_sink_takes_as(&r->meter.sink, r->output.sink, SV_IN_NO_ORDER);
    r->meter.input = r->meter.once = has_paths_once ? sv_once_paths_sink(r->dict, &r->meter.sink)
                                                    : &r->meter.sink;
    if (r->options->redact) /* all that comes: from the kernel, from programs, from samplers */
        r->meter.input = sv_redact_stage(&r->system.redact, r->dict, r->meter.once, false);
}

void sv_record_meter_close(struct sv_recorder *r)
{
    if (r->meter.input && r->meter.input != r->meter.once)
        r->meter.input->close(r->meter.input, false, NULL);
    if (r->meter.once && r->meter.once != &r->meter.sink)
        r->meter.once->close(r->meter.once, false, NULL);
    r->meter.input = r->meter.once = NULL;
}

void sv_record_meter_new_file(struct sv_recorder *r)
{
    if (r->meter.once != &r->meter.sink)
        sv_once_paths_sink_new_file(r->meter.once);
}
