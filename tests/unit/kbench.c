/* Kernel ring buffers made by hand: what a BPF ring buffer maps, without the kernel. */
#include "tests/unit/kbench.h"

#include <linux/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct kbench *kbench_new(const struct sv_decode_options *options)
{
    struct kbench *k = sv_alloc(sizeof *k);
    k->dict = sv_dict_new();
    sv_report_init(&k->report);
    sv_batch_init(&k->batch);
    k->decode = sv_decode_new(k->dict, &k->report, options);
    k->source = sv_totals_init(&k->totals, sv_decode_source(k->decode));
    shape_check_sink(&k->shape, k->source->gives, NULL);
    for (size_t i = 0; i < KBENCH_RINGS; i++)
        sv_krings_add(sv_decode_rings(k->decode), &k->rings[i].consumer, &k->rings[i].producer,
                      k->rings[i].data, KBENCH_SIZE, false);
    return k;
}

void kbench_free(struct kbench *k)
{
    shape_check_end(&k->shape);
    sv_once_paths_free(k->left_out);
    sv_once_paths_free(k->filled_in);
    k->source->close(k->source);
    sv_totals_fini(&k->totals);
    sv_decode_free(k->decode);
    sv_batch_fini(&k->batch);
    sv_report_fini(&k->report);
    sv_dict_free(k->dict);
    free(k);
}

/* The kernel maps the data twice in a row: so do we, by writing twice. */
static void put_bytes(struct kbench *k, unsigned ring, uint64_t at, const void *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        size_t where = (at + i) % KBENCH_SIZE;
        uint8_t *data = k->rings[ring].data;
        memcpy(data + where, (const uint8_t *)bytes + i, 1);
        data[where + KBENCH_SIZE] = data[where];
    }
}

void kbench_put(struct kbench *k, unsigned ring, const void *record, size_t size, const char *text,
                size_t text_len, uint32_t bits)
{
    uint64_t at = k->rings[ring].producer;
    uint32_t head[2] = {(uint32_t)(size + text_len) | bits, 0};
    put_bytes(k, ring, at, head, sizeof head);
    put_bytes(k, ring, at + sizeof head, record, size);
    put_bytes(k, ring, at + sizeof head + size, text, text_len);
    k->rings[ring].producer = at + ((sizeof head + size + text_len + 7) & ~(uint64_t)7);
}

static size_t put_arg(const struct kbench *k, const struct sv_arg *a, char *to, size_t cap)
{
    const char *key = sv_dict_text(k->dict, a->key).bytes;
    if (a->type == SV_ARG_TEXT)
        return (size_t)snprintf(to, cap, " %s=%.*s", key, (int)a->size, a->text);
    return (size_t)snprintf(to, cap, " %s=%lld", key, (long long)a->i);
}

static void put_line(struct kbench *k, const struct sv_event *e);

/* A whole slice shows as its two edges. */
static void put_edges(struct kbench *k, const struct sv_event *e)
{
    struct sv_event begin = *e, end = {.kind = SV_END, .track = e->track};
    begin.kind = SV_BEGIN;
    end.ts_ns = e->ts_ns + e->dur_ns;
    put_line(k, &begin);
    put_line(k, &end);
}

static void put_line(struct kbench *k, const struct sv_event *e)
{
    size_t n = strlen(k->text), cap = sizeof k->text;
    const struct sv_track_info *track = &k->dict->tracks[e->track];
    const struct sv_track_info *parent = &k->dict->tracks[track->parent];
    n += (size_t)snprintf(k->text + n, cap - n, "%lld %s %s/%s %s", (long long)e->ts_ns,
                          sv_kind_name(e->kind), sv_dict_text(k->dict, parent->name).bytes,
                          sv_dict_text(k->dict, track->name).bytes,
                          sv_dict_text(k->dict, e->name).bytes);
    for (size_t i = 0; i < e->n_args; i++)
        n += put_arg(k, &e->args[i], k->text + n, cap - n);
    snprintf(k->text + n, cap - n, "\n");
}

void kbench_once(struct kbench *k, bool fills_in)
{
    k->left_out = sv_once_paths_new(k->dict);
    k->filled_in = fills_in ? sv_once_paths_new(k->dict) : NULL;
}

size_t kbench_round(struct kbench *k, uint64_t cutoff_ns)
{
    struct sv_source *source = k->source;
    size_t all = 0;
    k->text[0] = 0;
    sv_decode_round(k->decode, cutoff_ns);
    for (int n; sv_batch_reset(&k->batch), (n = source->next(source, &k->batch, NULL)) > 0;) {
        shape_check_see(&k->shape, k->batch.events, k->batch.n);
        if (k->left_out)
            sv_once_paths_leave_out(k->left_out, &k->batch);
        if (k->filled_in)
            sv_once_paths_fill_in(k->filled_in, &k->batch);
        for (int i = 0; i < n; i++) {
            const struct sv_event *e = &k->batch.events[i];
            all += e->kind == SV_SLICE ? 2 : 1;
            (e->kind == SV_SLICE ? put_edges : put_line)(k, e);
        }
    }
    sv_decode_release(k->decode);
    return all;
}

struct sv_wire_call kbench_call(long nr, uint64_t start_ns, uint64_t end_ns, int fd, int64_t ret)
{
    return (struct sv_wire_call){.head = {.kind = SV_WIRE_CALL,
                                          .tgid = 10,
                                          .tid = 11,
                                          .what = (uint32_t)nr,
                                          .ts_ns = end_ns},
                                 .start_ns = start_ns,
                                 .ret = ret,
                                 .fd = fd,
                                 .offset = -1};
}
