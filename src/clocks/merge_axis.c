/* What a merge knows about the clocks of its inputs: see merge_axis.h. The decisions are those of
 * time_axis.c and align.c. */
#include "clocks/merge_axis.h"

#include "core/base/mem.h"
#include "core/stream/machine.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static const char *meta_text(const struct sv_dict *d, const char *key)
{
    const struct sv_meta *meta = sv_dict_find_meta(d, key);
    return meta && meta->value ? sv_dict_text(d, meta->value).bytes : NULL;
}

/* Whose clock; an input that does not say it has one of its own, known by the number of its
 * machine. */
static void owner_of(const struct sv_merge_axis_input *in, struct sv_clock_owner *o)
{
    const char *times = meta_text(in->dict, SV_META_TIMES);
    *o = (struct sv_clock_owner){0};
    snprintf(o->host, sizeof o->host, "%.255s", in->from->host ? in->from->host : in->name);
    snprintf(o->times, sizeof o->times, "%.63s", times ? times : "");
    if (in->from->boot)
        snprintf(o->boot, sizeof o->boot, "%.39s", in->from->boot);
    else
        snprintf(o->boot, sizeof o->boot, "machine %" PRIu32, in->from->machine);
}

static void take_inputs(struct sv_merge_axis *x, const struct sv_merge_axis_input *inputs, size_t n)
{
    x->inputs = sv_alloc((n + 1) * sizeof *x->inputs);
    x->owners = sv_alloc((n + 1) * sizeof *x->owners);
    for (size_t i = 0; i < n; i++) {
        const struct sv_merge_axis_input *in = &inputs[i];
        owner_of(in, &x->owners[i]);
        x->inputs[i] =
            (struct sv_time_axis_input){.is = {.name = in->name,
                                               .clocks = &in->dict->clocks,
                                               .machine = in->from->machine,
                                               .has_offset = in->has_offset,
                                               .offset_ns = in->offset_ns},
                                        .host = in->from->is_mixed ? NULL : in->from->host,
                                        .boot = x->owners[i].boot,
                                        .times = x->owners[i].times,
                                        .first_ns = in->first_ns,
                                        .last_ns = in->last_ns};
    }
    x->axis.inputs = x->inputs;
    x->axis.n = n;
}

/* ---- relations ---- */

static void read_relations(struct sv_merge_axis *x, const struct sv_merge_axis_input *inputs,
                           size_t n)
{
    struct sv_err err;
    for (size_t i = 0; i < n; i++) {
        const struct sv_meta *meta = sv_dict_find_meta(inputs[i].dict, SV_META_RELATION);
        if (!meta)
            continue;
        struct sv_text json = sv_dict_text(inputs[i].dict, meta->value);
        sv_err_clear(&err);
        if (sv_relation_parse(&x->relations[x->n_own], json.bytes, json.len, &err) == 0)
            x->n_own++;
        else
            sv_report_add(&x->notes, SV_SKIPPED, "clock relation that cannot be used", 1, SV_NO_POS,
                          "%s: %s", inputs[i].name, err.msg);
    }
}

static int align(struct sv_merge_axis *x, const struct sv_merge_axis_input *inputs, size_t n,
                 struct sv_err *err)
{
    struct sv_align_input *aligned = sv_alloc((n + 1) * sizeof *aligned);
    struct sv_relation *estimates;
    size_t n_estimates;
    for (size_t i = 0; i < n; i++)
        aligned[i] = (struct sv_align_input){.name = inputs[i].name,
                                             .owner = x->owners[i],
                                             .clocks = &inputs[i].dict->clocks,
                                             .ends = inputs[i].ends};
    int code = sv_align(aligned, n, &x->notes, &x->axis.measured, &estimates, &n_estimates, err);
    for (size_t i = 0; i < n_estimates; i++) /* fewer than inputs */
        x->relations[x->n_own++] = estimates[i];
    free(estimates);
    free(aligned);
    return code;
}

int sv_merge_axis_relate(struct sv_merge_axis *x, const struct sv_merge_axis_input *inputs,
                         size_t n, const struct sv_merge_options *options, struct sv_err *err)
{
    int code = 0;
    sv_merge_axis_fini(x);
    sv_report_init(&x->notes);
    take_inputs(x, inputs, n);
    x->relations = sv_alloc((2 * n + options->n_relations + 1) * sizeof *x->relations);
    read_relations(x, inputs, n);
    if (options->align_collectives)
        code = align(x, inputs, n, err);
    for (size_t i = 0; i < options->n_relations; i++)
        x->relations[x->n_own + i] = options->relations[i];
    x->axis.relations = x->relations;
    x->axis.n_relations = x->n_own + options->n_relations;
    x->axis.assume = options->assume || options->left_out;
    return code < 0 ? code : sv_time_axis_relate(&x->axis, err);
}

struct sv_shift sv_merge_axis_take(struct sv_merge_axis *x, size_t i)
{
    struct sv_shift shift = x->axis.shifts[i];
    x->axis.shifts[i].points = NULL; /* the rest is still asked for */
    return shift;
}

/* ---- what is said ---- */

/* Snapshots stay true where the common clock is read. */
static void take_snapshots(const struct sv_time_axis *a, struct sv_dict *dict)
{
    int64_t ns;
    for (size_t i = 0; a->clock && i < a->n; i++) {
        const struct sv_clocks *c = a->inputs[i].is.clocks;
        for (size_t s = 0; a->places[i].has_common_clock && s < c->n; s++)
            if (sv_snapshot_get(&c->snapshots[s], a->clock, &ns))
                sv_clocks_add(&dict->clocks, &c->snapshots[s]);
    }
}

/* The relations of one machine's files to the same reference as one: it may be merged with those of
 * other machines later. Where several machines were merged, their relations have done their
 * work. */
static void keep_relation(const struct sv_merge_axis *x, struct sv_dict *dict)
{
    struct sv_relation all = {0};
    struct sv_buf json;
    for (size_t i = 1; i < x->axis.n; i++)
        if (x->inputs[i].is.machine != x->inputs[0].is.machine)
            return;
    for (size_t i = 0; i < x->n_own; i++) {
        const struct sv_relation *r = &x->relations[i];
        if (r->is_estimate)
            continue;
        if (all.n == 0) {
            all.local = r->local;
            all.reference = r->reference;
        }
        bool is_same = sv_clock_owner_equal(&all.local, &r->local) &&
                       sv_clock_owner_equal(&all.reference, &r->reference);
        for (size_t k = 0; is_same && k < r->n; k++)
            sv_relation_add(&all, &r->rounds[k]);
    }
    sv_buf_init(&json, 1 << 20);
    sv_relation_put(&all, &json);
    if (all.n)
        sv_dict_set_meta(dict, SV_META_RELATION, (const char *)json.data, json.len, true);
    sv_buf_fini(&json);
    sv_relation_fini(&all);
}

void sv_merge_axis_say(const struct sv_merge_axis *x, struct sv_dict *dict,
                       struct sv_report *report)
{
    for (size_t i = 0; report && i < x->notes.n; i++) {
        const struct sv_finding *f = &x->notes.rows[i];
        sv_report_add(report, f->severity, f->what, f->count, f->first_pos, "%s",
                      f->first_detail ? f->first_detail : "");
    }
    if (!dict)
        return;
    dict->clocks.trace_clock = x->axis.clock;
    take_snapshots(&x->axis, dict);
    sv_time_axis_describe(&x->axis, dict);
    keep_relation(x, dict);
    if (report)
        sv_time_axis_report(&x->axis, report);
}

void sv_merge_axis_fini(struct sv_merge_axis *x)
{
    sv_time_axis_fini(&x->axis);
    for (size_t i = 0; i < x->n_own; i++)
        sv_relation_fini(&x->relations[i]);
    sv_report_fini(&x->notes);
    free(x->relations);
    free(x->inputs);
    free(x->owners);
    *x = (struct sv_merge_axis){0};
}
