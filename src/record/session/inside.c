/* Sums of calls that a library in the command has recorded: files and bytes for the summary, as the
 * kernel's records are summed by their probe (probes/syscalls.c). Called by the source of
 * libstave's events, for each of them, and by the summary. */
#include "record/session/inside.h"

#include "record/decode/calls.h"
#include "subjects/io/words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void sv_inside_init(struct sv_inside *x, struct sv_dict *dict, struct sv_tree *tree)
{
    bool is_new;
    *x = (struct sv_inside){.dict = dict,
                            .tree = tree,
                            .cat = sv_dict_cstr(dict, SV_CAT_SYSCALL),
                            .path = sv_dict_cstr(dict, "path"),
                            .path2 = sv_dict_cstr(dict, "path2"),
                            .bytes = sv_dict_cstr(dict, "bytes")};
    for (size_t i = 0; i < sv_n_calls; i++)
        *sv_map_add(&x->calls, sv_dict_cstr(dict, sv_calls[i].name), &is_new) = i + 1;
}

void sv_inside_fini(struct sv_inside *x)
{
    sv_map_fini(&x->calls);
    sv_map_fini(&x->by_pid);
    free(x->all);
    *x = (struct sv_inside){0};
}

static struct sv_gone *process_of(struct sv_inside *x, sv_track track)
{
    bool is_new;
    sv_track process = sv_dict_process_of(x->dict, track);
    uint32_t pid = (uint32_t)x->dict->tracks[process].pid;
    uint64_t *at = sv_map_add(&x->by_pid, pid, &is_new);
    if (is_new) {
        x->all = sv_grow(x->all, &x->cap, x->n + 1, sizeof *x->all);
        x->all[x->n++] = (struct sv_gone){.pid = pid};
        *at = x->n;
    }
    struct sv_gone *p = &x->all[*at - 1];
    if (!p->name[0])
        snprintf(p->name, sizeof p->name, "%s",
                 sv_dict_text(x->dict, x->dict->tracks[process].name).bytes);
    return p;
}

static struct sv_file *file_of(struct sv_inside *x, const struct sv_event *e, sv_str key)
{
    const struct sv_arg *a = e->args, *end = a + e->n_args;
    for (; a < end; a = sv_arg_next(a)) {
        if (a->key != key)
            continue;
        bool is_text = a->type == SV_ARG_TEXT && a->size > 0;
        return is_text ? sv_tree_file(x->tree, NULL, a->text, a->size) : NULL;
    }
    return NULL;
}

static uint64_t bytes_of(const struct sv_inside *x, const struct sv_event *e)
{
    const struct sv_arg *a = e->args, *end = a + e->n_args;
    for (; a < end; a = sv_arg_next(a))
        if (a->key == x->bytes && a->type == SV_ARG_INT && a->i > 0)
            return (uint64_t)a->i;
    return 0;
}

static void count_file(struct sv_inside *x, struct sv_file *f, const struct sv_event *e,
                       const struct sv_call *call, bool writes, uint64_t bytes)
{
    bool is_transfer = call->sense == SV_SENSE_TRANSFER || call->sense == SV_SENSE_VECTOR;
    if (!f)
        return;
    f->opens += call->effect == SV_EFFECT_OPEN || call->effect == SV_EFFECT_OPEN2;
    f->reads += is_transfer && !writes;
    f->writes += writes;
    f->read_bytes += writes ? 0 : bytes;
    f->written_bytes += writes ? bytes : 0;
    f->time_ns += e->dur_ns;
    f->longest_ns = e->dur_ns > f->longest_ns ? e->dur_ns : f->longest_ns;
    f->refs++; /* of many files those that nobody uses are forgotten */
    sv_file_put(x->tree, f);
}

void sv_inside_count(struct sv_inside *x, const struct sv_event *e)
{
    const uint64_t *at = e->cat == x->cat ? sv_map_find(&x->calls, e->name) : NULL;
    if (!at || e->kind != SV_SLICE)
        return;
    const struct sv_call *call = &sv_calls[*at - 1];
    bool writes = sv_call_writes(call);
    uint64_t bytes = bytes_of(x, e);
    struct sv_gone *p = process_of(x, e->track);
    x->n_calls++;
    p->calls++;
    p->time_ns += e->dur_ns;
    p->bytes_read += writes ? 0 : bytes;
    p->bytes_written += writes || call->places ? bytes : 0;
    count_file(x, file_of(x, e, x->path), e, call, writes, bytes);
    struct sv_file *second = call->places ? file_of(x, e, x->path2) : NULL;
    if (second) {
        second->writes++;
        second->written_bytes += bytes;
    }
}

uint64_t sv_inside_others(const struct sv_inside *x)
{
    uint64_t n = 0;
    for (size_t i = 0; i < x->n; i++)
        n += sv_tree_find(x->tree, x->all[i].pid) == NULL;
    return n;
}
