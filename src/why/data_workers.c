/* Who forked whom, and who is a data worker of whom. Called by the report on waits and by the roles
 * of the I/O report. */
#include "why/data_workers.h"

#include "core/base/mem.h"
#include "why/coverage.h"

#include <stdlib.h>
#include <string.h>

/* How many calls that read or map data files make a worker. Opening, listing and looking up does
 * not, nor two calls that read a configuration: every program does that when it starts. */
enum { CALLS_LEAST = 3 };

static bool takes_content(const struct sv_thread_states *s, uint32_t row)
{
    struct sv_text name = sv_dict_text(s->trace->dict, s->trace->slices.name[row]);
    return (s->call_class[s->trace->slices.name[row]] == SV_CALL_TRANSFER &&
            !memmem(name.bytes, name.len, "write", 5)) ||
           (name.len == 4 && memcmp(name.bytes, "mmap", 4) == 0);
}

/* Stops as soon as it is sure; a process that uses none is looked at as a whole. */
static bool uses_data(const struct sv_thread_states *s, const struct sv_thread_rows *x,
                      bool is_looked)
{
    const struct sv_trace *t = s->trace;
    unsigned n = 0;
    if (!x->calls)
        return !s->has_calls && !is_looked;
    for (uint32_t row = t->tracks[x->calls].first; row < t->tracks[x->calls].end; row++) {
        if (!takes_content(s, row) || !sv_state_is_call(s, row))
            continue;
        n += sv_is_data_file(sv_call_path(s, row));
        if (n == CALLS_LEAST)
            return true;
    }
    return false;
}

void sv_data_workers_init(struct sv_data_workers *w, const struct sv_thread_states *s)
{
    size_t n = (size_t)s->trace->dict->n_tracks + 1;
    *w = (struct sv_data_workers){.states = s,
                                  .parent = sv_alloc(n * sizeof *w->parent),
                                  .has_exec = sv_alloc(n * sizeof *w->has_exec),
                                  .uses_data = sv_alloc(n * sizeof *w->uses_data)};
    /* A recording without kernel programs says nothing about files: nobody is a loader by that. */
    bool is_looked = sv_coverage_is_looked(s->trace->dict);
    for (uint32_t i = 0; i < s->n; i++) {
        const struct sv_thread_rows *x = &s->threads[i];
        w->has_exec[x->process] |= x->has_exec;
        w->uses_data[x->process] = w->uses_data[x->process] || uses_data(s, x, is_looked);
        if (x->starter == SV_NO_THREAD || s->threads[x->starter].process == x->process)
            continue;
        w->parent[x->process] = s->threads[x->starter].process;
        w->has_parents = true;
    }
}

void sv_data_workers_fini(struct sv_data_workers *w)
{
    free(w->parent);
    free(w->has_exec);
    free(w->uses_data);
    *w = (struct sv_data_workers){0};
}

/* Scripts fork and use files, too, and one that becomes the program leaves children behind that are
 * none of its workers. */
static bool is_shell(const struct sv_dict *d, sv_str name)
{
    static const char *const shells[] = {"sh", "bash", "dash", "zsh", "ksh", "busybox"};
    struct sv_text text = sv_dict_text(d, name);
    for (size_t i = 0; i < sizeof shells / sizeof *shells; i++)
        if (text.len == strlen(shells[i]) && memcmp(text.bytes, shells[i], text.len) == 0)
            return true;
    return false;
}

static bool have_same_name(const struct sv_dict *d, sv_track a, sv_track b)
{
    return d->tracks[a].name && d->tracks[a].name == d->tracks[b].name;
}

bool sv_is_same_program(const struct sv_dict *d, sv_track master, sv_track process, bool has_exec)
{
    return !has_exec || have_same_name(d, master, process);
}

bool sv_is_data_worker(const struct sv_data_workers *w, sv_track master, sv_track process)
{
    const struct sv_dict *d = w->states->trace->dict;
    if (!master || !process || master == process ||
        d->tracks[master].space != d->tracks[process].space || !w->uses_data[process] ||
        is_shell(d, d->tracks[process].name))
        return false;
    if (!w->parent[process])
        return have_same_name(d, master, process) && !w->parent[master];
    sv_track up = w->parent[process];
    /* Between them there may be a server that forks (forkserver). */
    for (int depth = 0; up && depth < 4; depth++, up = w->parent[up])
        if (up == master)
            return sv_is_same_program(d, master, process, w->has_exec[process]);
    return false;
}
