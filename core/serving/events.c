/* Events to calls of the life cycle. Called by the report and by the converter. What the event says
 * is another program's word: numbers that do not fit are cut, unknown keys are passed over. */
#include "core/serving/events.h"

#include "core/base/sat.h"
#include "core/serving/engine_words.h"

#include <stdio.h>
#include <string.h>

static sv_str find(struct sv_dict *d, const char *text)
{
    return sv_dict_find_str(d, text, strlen(text));
}

static void look_up(struct sv_life_words *w, struct sv_dict *d,
                    sv_str (*word)(struct sv_dict *d, const char *text))
{
    memset(w, 0, sizeof *w);
    w->cat = word(d, SV_LIFE_CATEGORY);
    for (int op = SV_LIFE_MODEL; op < SV_N_LIFE_OPS; op++)
        w->ops[op] = word(d, sv_life_op_names[op]);
    for (int i = 0; i < SV_LIFE_MEMBERS_MAX; i++) {
        char key[16];
        snprintf(key, sizeof key, "r%d", i);
        w->members[i] = word(d, key);
    }
    for (int i = 0; i < SV_N_LEFT_OUT; i++)
        w->left_out[i] = word(d, sv_left_out_names[i]);
    for (int i = 0; i < SV_N_TRANSPORT; i++)
        w->transport[i] = word(d, sv_transport_keys[i]);
    const struct {
        sv_str *to;
        const char *text;
    } keys[] = {{&w->request, "request"},    {&w->batch, "batch"},   {&w->model, "model"},
                {&w->flags, "flags"},        {&w->n, "n"},           {&w->samples, "samples"},
                {&w->took, "took_ns"},       {&w->worker, "worker"}, {&w->type, "type"},
                {&w->device, "device"},      {&w->name, "name"},     {&w->congested, "congested"},
                {&w->tokens, SV_LIFE_TOKENS}};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        *keys[i].to = word(d, keys[i].text);
}

void sv_life_words_init(struct sv_life_words *w, struct sv_dict *d)
{
    look_up(w, d, sv_dict_cstr);
}

void sv_life_words_find(struct sv_life_words *w, const struct sv_dict *d)
{
    look_up(w, (struct sv_dict *)(uintptr_t)d, find);
}

static uint16_t op_of(const struct sv_life_words *w, const struct sv_event *e)
{
    if (e->kind != SV_INSTANT || e->cat != w->cat || !e->cat || !e->name)
        return 0;
    for (unsigned op = SV_LIFE_MODEL; op < SV_N_LIFE_OPS; op++)
        if (w->ops[op] == e->name)
            return (uint16_t)op;
    return 0;
}

static void take_text(struct sv_life_in *in, const struct sv_arg *a)
{
    size_t n = a->size < sizeof in->text - 1 ? a->size : sizeof in->text - 1;
    if (a->type != SV_ARG_TEXT)
        return;
    memcpy(in->text, a->text, n);
    in->text[n] = '\0';
    in->call.text = in->text;
}

/* The one of n keys that the argument has; n: none. */
static int which(const sv_str *keys, int n, sv_str key)
{
    int i = 0;
    while (i < n && keys[i] != key)
        i++;
    return i;
}

static void take_left_out(const struct sv_life_words *w, struct sv_life_in *in,
                          const struct sv_arg *a)
{
    int i = which(w->left_out, SV_N_LEFT_OUT, a->key);
    if (a->key == w->model)
        in->call.model = (uint32_t)a->u;
    else if (i < SV_N_LEFT_OUT && a->type != SV_ARG_TEXT && a->i >= 0)
        in->members[i] = a->u;
    in->call.n = SV_N_LEFT_OUT;
}

static void take_transport(const struct sv_life_words *w, struct sv_life_in *in,
                           const struct sv_arg *a)
{
    int i = which(w->transport, SV_N_TRANSPORT, a->key);
    if (a->key == w->request)
        in->call.id = a->u;
    else if (i < SV_N_TRANSPORT && a->type == SV_ARG_INT)
        in->members[i] = a->u;
}

static void take_arg(const struct sv_life_words *w, struct sv_life_in *in, const struct sv_arg *a)
{
    struct sv_life_call *c = &in->call;
    bool is_worker = c->op == SV_LIFE_WORKER;
    int member;
    if (c->op == SV_LIFE_LEFT_OUT)
        take_left_out(w, in, a);
    else if (c->op == SV_LIFE_TRANSPORT)
        take_transport(w, in, a);
    else if (a->key == w->request || a->key == w->batch)
        c->id = a->u;
    else if (a->key == w->model && c->op == SV_LIFE_MODEL)
        c->id = a->u;
    else if (a->key == w->model)
        c->model = (uint32_t)a->u;
    else if (a->key == w->flags || a->key == w->congested)
        c->flags = (uint16_t)a->u;
    else if (a->key == w->samples || a->key == w->tokens)
        c->samples = (uint32_t)a->u;
    else if (a->key == w->took)
        c->start_ns = a->i >= 0 ? sv_sat_sub(c->time_ns, a->i) : 0;
    else if (a->key == w->worker && is_worker)
        c->id = (uint32_t)a->i;
    else if (a->key == w->worker)
        c->worker = (int32_t)a->i;
    else if (a->key == w->device)
        c->device = (int32_t)a->i;
    else if (a->key == w->n)
        c->n = a->u < SV_LIFE_MEMBERS_MAX ? (uint32_t)a->u : SV_LIFE_MEMBERS_MAX;
    else if (a->key == w->name || a->key == w->type)
        take_text(in, a);
    else if ((member = which(w->members, SV_LIFE_MEMBERS_MAX, a->key)) < SV_LIFE_MEMBERS_MAX)
        in->members[member] = a->u;
}

bool sv_life_read(const struct sv_life_words *w, const struct sv_event *e, struct sv_life_in *in)
{
    uint16_t op = op_of(w, e);
    if (!op)
        return false;
    memset(&in->call, 0, sizeof in->call);
    memset(in->members, op == SV_LIFE_TRANSPORT ? 0xff : 0, sizeof in->members);
    in->call.op = op;
    in->call.time_ns = e->ts_ns;
    in->call.members = in->members;
    const struct sv_arg *end = e->args + e->n_args;
    for (const struct sv_arg *a = e->args; a < end; a = sv_arg_next(a))
        if (a->key && a->type >= SV_ARG_BOOL && a->type <= SV_ARG_TEXT)
            take_arg(w, in, a);
    return true;
}
