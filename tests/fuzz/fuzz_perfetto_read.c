/* Fuzz target of the Perfetto reader: any bytes must give well-formed events, and never crash, hang
 * or read outside.
 *
 * Every event is looked at as a sink would: numbers within the dictionary, argument lists that add
 * up, each byte of each text. A batch's texts are read before the next call, as the contract
 * allows. The mutator changes fields of the packets and now and then packs some of them, so that
 * the reader's unpacking sees more than broken streams. */
#include "core/perfetto/proto.h"
#include "formats/formats.h"
#include "tests/fuzz/mutate_wire.h"

#include <stdlib.h>
#include <zlib.h>

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
    static struct sv_batch b; /* kept: its blocks are large against one input */
    struct sv_dict *dict = sv_dict_new();
    /* Small blocks: damage in one of them, in the first packet of one, between two. */
    struct sv_read_options options = {.space = size % 2 ? 0 : 7,
                                      .block_bytes = size % 3 ? 1 + size % 200 : 0};
    int n;
    sv_report_init(&report);
    if (!b.arena.chunk_bytes)
        sv_batch_init(&b);
    sv_perfetto_format.probe(data, size);
    require(sv_input_open_memory(data, size, "fuzz", &in, &err) == 0);
    require(sv_format_open(&sv_perfetto_format, in, &options, dict, &report, &source, &err) == 0);
    while ((n = source->next(source, &b, &err)) > 0) {
        require((size_t)n == b.n && n <= SV_BATCH);
        for (int i = 0; i < n; i++)
            check_event(dict, &b.events[i]);
        sv_batch_reset(&b);
    }
    check_tracks(dict);
    source->close(source);
    sv_input_close(in);
    sv_batch_reset(&b);
    sv_report_fini(&report);
    sv_dict_free(dict);
    return 0;
}

/* ---- mutation ---- */

/* From one packet to the end: in one compressed packet. */
static void pack_tail(struct mutate *m)
{
    struct sv_pb w = sv_pb_at(m->data, m->size);
    struct sv_pb_field f;
    size_t at = 0, n = 0;
    for (size_t start = 0; sv_pb_next(&w, &f); start = (size_t)(w.p - m->data))
        if (mutate_one_in(m, ++n))
            at = start;
    uint8_t made[2 * MUTATE_SCRATCH];
    uLongf packed = MUTATE_SCRATCH;
    if (n == 0 || compress2(made, &packed, m->data + at, m->size - at, 1) != Z_OK)
        return;
    struct sv_buf b;
    sv_buf_init(&b, 2 * MUTATE_SCRATCH);
    size_t packet = sv_put_begin(&b, SV_PF_TRACE_PACKET);
    sv_put_bytes(&b, SV_PF_PACKET_COMPRESSED, made, packed);
    sv_put_end(&b, packet);
    if (!b.failed)
        (void)mutate_replace(m, at, m->size - at, b.data, b.len);
    sv_buf_fini(&b);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    static struct mutate m;
    mutate_init(&m, data, size, max_size, seed);
    (void)mutate_wire(&m);
    if (mutate_one_in(&m, 64))
        pack_tail(&m);
    return m.size;
}

size_t LLVMFuzzerCustomCrossOver(const uint8_t *data1, size_t size1, const uint8_t *data2,
                                 size_t size2, uint8_t *out, size_t max_size, unsigned seed)
{
    static struct mutate m;
    mutate_init_copy(&m, data1, size1, out, max_size, seed);
    return mutate_wire_cross(&m, data2, size2);
}
