/* The Chrome writer's arguments: the pre-order list of an event becomes the object `args`.
 *
 * Called once per event, first chrome_survey() for what Chrome keeps elsewhere (thread times, the
 * stack, flows), then chrome_put_args(). Order is kept; several flows or correlations of one event
 * are gathered in an array at the position of the first one, because a JSON object has each key
 * once. */
#include "core/chrome/args_json.h"
#include "core/chrome/writer.h"

struct chrome_extras chrome_survey(const struct sv_arg *args, size_t n)
{
    struct chrome_extras x = {0};
    for (const struct sv_arg *a = args, *end = args + n; a < end; a = sv_arg_next(a)) {
        switch (a->type) {
        case SV_ARG_THREAD_TIME: x.thread_time = a; break;
        case SV_ARG_THREAD_DUR: x.thread_dur = a; break;
        case SV_ARG_STACK: x.stack = a; break;
        case SV_ARG_CORRELATION:
            x.n_correlations++;
            x.any_args = true;
            break;
        case SV_ARG_FLOW_BEGIN:
        case SV_ARG_FLOW:
        case SV_ARG_FLOW_END:
            x.n_flows++;
            x.any_args = true;
            break;
        default: x.any_args = true; break;
        }
    }
    return x;
}

static void put_key(struct chrome_writer *w, sv_str key)
{
    struct sv_text text = sv_dict_text(w->dict, key);
    sv_json_key(&w->json, text.bytes, text.len);
}

static void put_value(struct chrome_writer *w, const struct sv_arg *a, const struct sv_arg *end)
{
    if (!sv_arg_json(&w->json, w->dict, a, end))
        sv_report_add(w->report, SV_SKIPPED, "argument nested too deeply for the Chrome format", 1,
                      SV_NO_POS, NULL);
}

_Static_assert(SV_ARG_FLOW == SV_ARG_FLOW_BEGIN + 1 && SV_ARG_FLOW_END == SV_ARG_FLOW_BEGIN + 2,
               "in this order");

static void put_flows(struct chrome_writer *w, const struct sv_arg *a, const struct sv_arg *end)
{
    sv_json_put(&w->json, SV_CHROME_FLOW, begin, '[');
    for (; a < end; a = sv_arg_next(a)) {
        if (!sv_arg_is_flow(a))
            continue;
        static const char *const how[] = {"\"begin 0x", "\"0x", "\"end 0x"};
        sv_json_raw(&w->json, how[a->type - SV_ARG_FLOW_BEGIN],
                    strlen(how[a->type - SV_ARG_FLOW_BEGIN]));
        sv_buf_hex(&w->buf, a->u);
        sv_buf_byte(&w->buf, '"');
    }
    sv_json_end(&w->json);
}

static void put_correlations(struct chrome_writer *w, const struct sv_arg *a,
                             const struct sv_arg *end, uint32_t n)
{
    sv_json_lit(&w->json, SV_CHROME_CORRELATION);
    if (n > 1)
        sv_json_begin(&w->json, '[');
    for (; a < end; a = sv_arg_next(a))
        if (a->type == SV_ARG_CORRELATION)
            sv_json_u64(&w->json, a->u);
    if (n > 1)
        sv_json_end(&w->json);
}

void chrome_put_args(struct chrome_writer *w, const struct sv_arg *args, size_t n,
                     const struct chrome_extras *x)
{
    const struct sv_arg *end = args + n;
    bool flows_done = false, correlations_done = false;
    if (!x->any_args)
        return;
    sv_json_put(&w->json, "args", begin, '{');
    for (const struct sv_arg *a = args; a < end; a = sv_arg_next(a)) {
        if (a == x->thread_time || a == x->thread_dur || a == x->stack)
            continue;
        if (sv_arg_is_flow(a)) {
            if (!flows_done)
                put_flows(w, a, end);
            flows_done = true;
        } else if (a->type == SV_ARG_CORRELATION) {
            if (!correlations_done)
                put_correlations(w, a, end, x->n_correlations);
            correlations_done = true;
        } else {
            if (a->type == SV_ARG_SOURCE)
                sv_json_lit(&w->json, SV_CHROME_SOURCE);
            else
                put_key(w, a->key);
            put_value(w, a, end);
        }
    }
    sv_json_end(&w->json);
}

void chrome_stack(struct chrome_writer *w, const struct sv_arg *stack)
{
    sv_json_lit(&w->json, "stack");
    put_value(w, stack, sv_arg_next(stack));
}
