/* Clients: see client.h. Collectors use one for each process that they read, and recovery for each
 * process that left a session. */
#include "sdk/collect/client.h"

#include "core/stream/dict.h"
#include "sdk/drain/drain.h"

bool sv_client_open(struct sv_client *c, int base_fd, const char *path, bool is_writable,
                    struct sv_dict *dict, struct sv_report *report, struct sv_ring_view *window)
{
    *c = (struct sv_client){.files = sv_client_files_open(base_fd, path, is_writable)};
    if (!c->files)
        return false;
    c->drain = sv_drain_new(dict, report, c->files->process.pid);
    sv_drain_through(c->drain, window);
    return true;
}

void sv_client_close(struct sv_client *c)
{
    sv_drain_free(c->drain);
    sv_client_files_close(c->files);
    *c = (struct sv_client){0};
}

uint64_t sv_client_round(struct sv_client *c, uint64_t round)
{
    struct sv_source *source = sv_drain_source(c->drain);
    size_t before = sv_dict_used_bytes(source->dict);
    sv_client_files_rings(c->files, c->drain, round, source->report);
    uint64_t bytes = sv_drain_round(c->drain);
    if (!sv_client_files_names(c->files, c->drain,
                               source->report)) { /* perhaps in the next round */
        sv_drain_hold(c->drain);
        bytes = 0;
    }
    c->dict_bytes += sv_dict_used_bytes(source->dict) - before;
    return bytes;
}

int sv_client_next(struct sv_client *c, struct sv_batch *b, struct sv_err *err)
{
    struct sv_source *source = sv_drain_source(c->drain);
    size_t before = sv_dict_used_bytes(source->dict);
    int n = source->next(source, b, err);
    c->dict_bytes += sv_dict_used_bytes(source->dict) - before;
    return n;
}

const char *sv_client_fault(const struct sv_client *c, size_t budget_bytes)
{
    if (c->files->is_gone)
        return "its files were cut while they were read";
    if (c->dict_bytes > budget_bytes || sv_drain_bytes(c->drain) > budget_bytes - c->dict_bytes)
        return "its names, tracks and texts take more memory than one client may have";
    return NULL;
}

bool sv_client_runs(const struct sv_client *c)
{
    const struct sv_process_id *p = &c->files->process;
    if (c->is_near) /* the short way: asked for every client ten times a second */
        return p->start_ticks != 0 && sv_process_start_ticks(p->pid) == p->start_ticks;
    return sv_process_id_state(p) != SV_PROCESS_GONE;
}
