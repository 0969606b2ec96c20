/* The Chrome reader on any bytes: it must end, stay in its memory and give only events that hold
 * together.
 *
 * The first byte chooses the space and the limit of the window. Every event is walked
 * through to the last argument byte: a wrong size or a dangling text is found by the sanitizer. */
#include "core/files/input.h"
#include "formats/formats.h"

#include <assert.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t walk(const struct sv_dict *d, const struct sv_arg *a, const struct sv_arg *end)
{
    uint64_t sum = 0;
    while (a < end) {
        assert(a->type >= SV_ARG_NULL && a->type <= SV_ARG_THREAD_DUR);
        assert(a->key < d->n_strings);
        if (a->type == SV_ARG_TEXT)
            for (uint32_t i = 0; i < a->size; i++)
                sum += (uint8_t)a->text[i];
        const struct sv_arg *next = sv_arg_next(a);
        assert(next <= end);
        a++; /* members are checked like their parents */
    }
    return sum;
}

static uint64_t check_event(const struct sv_dict *d, const struct sv_event *e)
{
    assert(e->kind >= SV_BEGIN && e->kind <= SV_LOSS);
    assert(e->track > 0 && e->track < d->n_tracks);
    assert(e->name < d->n_strings && e->cat < d->n_strings);
    assert(e->dur_ns >= SV_UNFINISHED);
    assert(e->kind != SV_COUNTER ||
           (e->n_args == 1 && (e->args->type == SV_ARG_INT || e->args->type == SV_ARG_DOUBLE)));
    assert(e->kind != SV_FLOW || (e->n_args >= 1 && e->args->type >= SV_ARG_FLOW_BEGIN &&
                                  e->args->type <= SV_ARG_FLOW_END));
    return e->n_args ? walk(d, e->args, e->args + e->n_args) : 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sv_err err = {0};
    struct sv_input *in;
    struct sv_source *s;
    struct sv_report report;
    uint64_t sum = 0;
    sv_chrome_format.probe(data, size);
    if (size == 0 || sv_input_open_memory(data + 1, size - 1, "fuzz", &in, &err) < 0)
        return 0;
    struct sv_dict *d = sv_dict_new();
    struct sv_batch *b = malloc(sizeof *b);
    struct sv_read_options options = {.space = data[0] & 1};
    sv_report_init(&report);
    sv_batch_init(b);
    in->window_limit = (size_t)1 << (10 + data[0] % 12);
    if (sv_format_open(&sv_chrome_format, in, &options, d, &report, &s, &err) == 0) {
        for (int n; (n = s->next(s, b, &err)) > 0; sv_batch_reset(b)) {
            assert((size_t)n == b->n && n <= SV_BATCH);
            for (int i = 0; i < n; i++)
                sum += check_event(d, &b->events[i]);
        }
        s->close(s);
    }
    for (sv_track t = 1; t < d->n_tracks; t++)
        assert(d->tracks[t].parent < d->n_tracks && d->tracks[t].name < d->n_strings);
    sv_input_close(in);
    sv_batch_fini(b);
    free(b);
    sv_report_fini(&report);
    sv_dict_free(d);
    return (int)(sum & 0); /* keeps the compiler from dropping the sum */
}
