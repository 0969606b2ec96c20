/* --gpu-interval: samples of GPUs into the trace. Called by the recorder; record/sample/gpus.h
 * finds the GPUs. */
#include "record/sample/gpus.h"
#include "cli/console.h"
#include "record/session/recorder.h"

#include <stdio.h>
#include <string.h>

#define SHORTEST_NS ((int64_t)10000000)

static int parse(const char *text, int64_t *ns, struct sv_err *err)
{
    struct sv_moment m = {0};
    if (sv_parse_moment(text, strlen(text), &m) < 0 || m.is_absolute || m.ns < 0 ||
        (m.ns > 0 && m.ns < SHORTEST_NS))
        return sv_err_set(err, SV_EUSAGE, SV_NO_POS,
                          "--gpu-interval: '%s' is neither a time of at least 10ms nor 0 for none",
                          text);
    *ns = m.ns;
    return 0;
}

int sv_record_gpus_open(struct sv_recorder *r, struct sv_err *err)
{
    const char *given = r->options->use.gpu_interval;
    int code = parse(given ? given : r->is_bare ? "0" : "200ms", &r->samplers.gpu_interval_ns, err);
    if (code < 0 || r->samplers.gpu_interval_ns == 0)
        return code;
    r->samplers.gpus = sv_gpus_new(r->dict, sv_decode_tree(r->system.decode), NULL, NULL);
    if (sv_gpus_count(r->samplers.gpus) == 0 && given)
        sv_console_note("no GPU: %s", sv_gpus_why_none(r->samplers.gpus));
    return 0;
}

int sv_record_gpus_round(struct sv_recorder *r, int64_t now, struct sv_err *err)
{
    if (!r->samplers.gpus || sv_gpus_count(r->samplers.gpus) == 0 ||
        now - r->samplers.gpus_ns < r->samplers.gpu_interval_ns)
        return 0;
    sv_gpus_sample(r->samplers.gpus, now);
    r->samplers.gpus_ns = now;
    return sv_recorder_pull(r, sv_gpus_source(r->samplers.gpus), err);
}

void sv_record_gpus_summary(const struct sv_recorder *r)
{
    size_t n = r->samplers.gpus ? sv_gpus_count(r->samplers.gpus) : 0;
    for (size_t i = 0; i < n; i++)
        sv_print(stderr, i + 1 < n ? "%s%s" : "%s%s\n",
                 i ? ", " : "  GPUs: ", sv_gpus_name(r->samplers.gpus, i));
    if (r->samplers.gpus && n == 0 && !r->options->use.gpu_interval)
        sv_print(stderr, "  no GPU: %s\n", sv_gpus_why_none(r->samplers.gpus));
}

void sv_record_gpus_close(struct sv_recorder *r)
{
    sv_gpus_free(r->samplers.gpus);
    r->samplers.gpus = NULL;
}
