/* Fuzz target of the Perfetto reader: any bytes must give well-formed events, and never crash, hang or read outside.
 *
 * Every event is looked at as a sink would: numbers within the dictionary, argument lists that add up, each byte of each
 * text. A batch's texts are read before the next call, as the contract allows. */
#include "formats/formats.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile unsigned char sink; /* so that reading a text is not optimised away */

static void require(bool ok)
{
    if (!ok)
        abort();
}

static void check_args(const struct sv_dict *d, const struct sv_arg *a, size_t n)
{
    const struct sv_arg *end = a + n;
    for (size_t i = 0; i < n; i++) {
        require(a[i].key < d->n_strings);
        require(a[i].type >= SV_ARG_NULL && a[i].type <= SV_ARG_THREAD_DUR);
        require(sv_arg_next(&a[i]) <= end);
        for (uint32_t k = 0; a[i].type == SV_ARG_TEXT && k < a[i].size; k++)
            sink = (unsigned char)a[i].text[k];
    }
}

static void check_event(const struct sv_dict *d, const struct sv_event *e)
{
    require(e->kind >= SV_BEGIN && e->kind <= SV_LOSS);
    require(e->track < d->n_tracks);
    require(e->name < d->n_strings && e->cat < d->n_strings);
    require(e->dur_ns >= 0);
    require(e->n_args == 0 || e->args);
    if (e->kind == SV_COUNTER)
        require(e->n_args > 0 &&
                (e->args[0].type == SV_ARG_INT || e->args[0].type == SV_ARG_DOUBLE));
    if (e->kind == SV_FLOW)
        require(e->n_args > 0 && e->args[0].type >= SV_ARG_FLOW_BEGIN &&
                e->args[0].type <= SV_ARG_FLOW_END);
    if (e->kind == SV_LOSS)
        require(e->n_args > 0 && e->args[0].type == SV_ARG_INT);
    if (e->n_args > 0)
        check_args(d, e->args, e->n_args);
}

static void check_tracks(const struct sv_dict *d)
{
    for (sv_track t = 1; t < d->n_tracks; t++) {
        unsigned steps = 0;
        for (sv_track up = t; up; up = d->tracks[up].parent)
            require(++steps < 10000);
        require(d->tracks[t].name < d->n_strings);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sv_err err = {0};
    struct sv_input *in;
    struct sv_source *source;
    struct sv_report report;
    struct sv_batch b;
    struct sv_dict *dict = sv_dict_new();
    struct sv_read_options options = {.space = size % 2 ? 0 : 7};
    int n;
    sv_report_init(&report);
    sv_batch_init(&b);
    sv_perfetto_probe(data, size);
    require(sv_input_open_memory(data, size, "fuzz", &in, &err) == 0);
    require(sv_perfetto_source(in, &options, dict, &report, &source, &err) == 0);
    while ((n = source->next(source, &b, &err)) > 0) {
        require((size_t)n == b.n && n <= SV_BATCH);
        for (int i = 0; i < n; i++)
            check_event(dict, &b.events[i]);
        sv_batch_reset(&b);
    }
    check_tracks(dict);
    source->close(source);
    sv_input_close(in);
    sv_batch_fini(&b);
    sv_report_fini(&report);
    sv_dict_free(dict);
    return 0;
}
