/* The list of probes, and what is asked of all of them. Asked by the decoder, the loader of the
 * kernel programs and `stave record`. */
#include "record/probes/probe.h"

#include <string.h>

const struct sv_probe *const sv_probes[SV_N_PROBES] = {
#define SV_PROBE(name, option, ...) &sv_probe_##name,
#include "record/probes/list.h"
#undef SV_PROBE
};

static uint64_t chosen_by_option(const struct sv_probe *p, const struct sv_probe_setting *s)
{
    if (p->option.turns_off)
        return !s->is_given;
    if (p->option.off_name[0])
        return s->is_given || !s->is_off;
    return p->option.arg[0] ? s->number : s->is_given;
}

void sv_probes_choose(const struct sv_probe_setting settings[SV_N_PROBES], unsigned groups,
                      uint64_t chosen[SV_N_PROBES])
{
    for (unsigned i = 0; i < SV_N_PROBES; i++) {
        const struct sv_probe *p = sv_probes[i];
        if (p->option.name[0])
            chosen[i] = chosen_by_option(p, &settings[i]);
        else
            chosen[i] = p->groups == 0 || p->groups & groups;
    }
    for (unsigned i = 0; i < SV_N_PROBES; i++) {
        const struct sv_probe *const *with = sv_probes[i]->with;
        if (with[0])
            chosen[i] = 0;
        for (unsigned k = 0; with[0] && k < SV_N_PROBES; k++)
            if (sv_probes[k] == with[0] || sv_probes[k] == with[1])
                chosen[i] |= chosen[k];
    }
}

int sv_probe_of_program(const char *program)
{
    for (unsigned i = 0; i < SV_N_PROBES; i++)
        if (strncmp(program, "on_", 3) == 0 &&
            strncmp(program + 3, sv_probes[i]->name, strlen(sv_probes[i]->name)) == 0)
            return (int)i;
    return -1;
}

const char *sv_probe_lost_name(unsigned kind)
{
    for (unsigned i = 0; i < SV_N_PROBES; i++)
        for (unsigned k = 0; k < SV_PROBE_RECORDS; k++)
            if (sv_probes[i]->records[k].size && sv_probes[i]->records[k].kind == kind)
                return sv_probes[i]->records[k].name;
    return "records";
}

const struct sv_probe *sv_probe_that_lost(const char *name)
{
    for (unsigned i = 0; i < SV_N_PROBES; i++)
        for (unsigned k = 0; k < SV_PROBE_RECORDS && sv_probes[i]->records[k].size; k++)
            if (strcmp(sv_probes[i]->records[k].name, name) == 0)
                return sv_probes[i];
    return NULL;
}
