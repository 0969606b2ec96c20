/* Metadata of a trace about its launcher: see launched.h. Called by the SDK and the recorder when a
 * file begins. */
#include "core/stream/launched.h"

#include <stdio.h>
#include <string.h>

static void set_text(struct sv_dict *d, const char *label, const char *key, const char *value)
{
    char name[64];
    snprintf(name, sizeof name, "%s%s%s", label, *label ? "/" : "", key);
    sv_dict_set_meta(d, name, value, strlen(value), false);
}

static void set_number(struct sv_dict *d, const char *label, const char *key, int64_t value)
{
    char text[32];
    if (value < 0)
        return;
    snprintf(text, sizeof text, "%lld", (long long)value);
    set_text(d, label, key, text);
}

static void describe(struct sv_dict *d, const char *label, const struct sv_launcher *l)
{
    set_number(d, label, SV_META_RANK, l->rank);
    set_number(d, label, SV_META_WORLD_SIZE, l->size);
    set_number(d, label, SV_META_LOCAL_RANK, l->local_rank);
    if (l->name)
        set_text(d, label, SV_META_LAUNCHER, l->name);
    if (l->job[0])
        set_text(d, label, SV_META_JOB, l->job);
}

void sv_dict_describe_launcher(struct sv_dict *dict)
{
    struct sv_launcher l = sv_launcher_find();
    if (l.rank >= 0)
        describe(dict, "", &l);
}

sv_str sv_dict_describe_rank(struct sv_dict *dict, const struct sv_launcher *l)
{
    char label[32];
    snprintf(label, sizeof label, "rank %lld", (long long)l->rank);
    describe(dict, label, l);
    return sv_dict_cstr(dict, label);
}
