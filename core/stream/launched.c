/* Metadata of a trace about its launcher: see launched.h. Called by the SDK and the recorder when a file begins. */
#include "core/stream/launched.h"

#include "core/files/launcher.h"

#include <stdio.h>
#include <string.h>

static void set_number(struct sv_dict *d, const char *key, int64_t value)
{
    char text[32];
    if (value < 0)
        return;
    snprintf(text, sizeof text, "%lld", (long long)value);
    sv_dict_set_meta(d, key, text, strlen(text), false);
}

void sv_dict_describe_launcher(struct sv_dict *dict)
{
    struct sv_launcher l = sv_launcher_find();
    if (l.rank < 0)
        return;
    set_number(dict, SV_META_RANK, l.rank);
    set_number(dict, SV_META_WORLD_SIZE, l.size);
    set_number(dict, SV_META_LOCAL_RANK, l.local_rank);
    if (l.name)
        sv_dict_set_meta(dict, SV_META_LAUNCHER, l.name, strlen(l.name), false);
    if (l.job[0])
        sv_dict_set_meta(dict, SV_META_JOB, l.job, strlen(l.job), false);
}
