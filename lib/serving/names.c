/* Models and workers: numbers for names, and their descriptions, recorded once.
 *
 * Called when a server sets itself up; these calls may wait for each other. Their events have the
 * time of the opening: a name is before each call that has its number, also before one that is
 * reported later with an earlier time. */
#include "serving/tracer.h"

#include <stdio.h>
#include <string.h>

/* With the lock held. The number of the name, n_models when it is new. */
static uint32_t find_model(const struct stave_serving *s, const char *name)
{
    uint32_t i = 0;
    while (i < s->n_models && strcmp(s->models[i], name) != 0)
        i++;
    return i;
}

uint32_t stave_serving_model(struct stave_serving *s, const char *name)
{
    if (!s)
        return 0;
    char cut[SV_SERVING_NAME_MAX];
    snprintf(cut, sizeof cut, "%s", name ? name : "");
    pthread_mutex_lock(&s->names_lock);
    uint32_t model = find_model(s, cut);
    if (model == s->n_models) {
        char *copy = model < SV_SERVING_MODELS_MAX ? strdup(cut) : NULL;
        if (copy)
            s->models[s->n_models++] = copy;
        else
            model = s->n_models ? s->n_models - 1 : 0;
        SV_INSTANT_AT(s->life, s->opened_ns, SV_LIFE_CATEGORY, "model", "model", model, "name",
                      cut);
        struct sv_call_cell c = {.op = SV_LIFE_MODEL, .id = model};
        sv_serving_put_text(s, &c, cut);
    }
    pthread_mutex_unlock(&s->names_lock);
    return model;
}

void stave_serving_worker(struct stave_serving *s, int32_t worker, const char *type, int32_t device)
{
    if (!s)
        return;
    if (!type || !*type)
        type = "unknown";
    SV_INSTANT_AT(s->life, s->opened_ns, SV_LIFE_CATEGORY, "worker", "worker", worker, "type", type,
                  "device", device);
    struct sv_call_cell c = {
        .op = SV_LIFE_WORKER, .id = (uint64_t)(uint32_t)worker, .device = device};
    sv_serving_put_text(s, &c, type);
}
