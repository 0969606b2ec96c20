/* The sort stage: everything goes into a sorter, and at the end comes out of it in order.
 *
 * The pump inserts it between a source that gives disorder and a sink that needs order. Nothing
 * reaches `next` before close(), so that a failed stream leaves no half output, unless the owner
 * releases what is older than all that can still come. */
#include "core/stream/sorter.h"
#include "core/stream/stages.h"

#include <stdlib.h>

struct sort {
    struct sv_sink sink;
    struct sv_sorter *sorter;
    struct sv_sink *next;
    size_t memory_bytes;
    bool failed;
};

static int sort_write(struct sv_sink *s, const struct sv_event *events, size_t n,
                      struct sv_err *err)
{
    struct sort *sort = (struct sort *)s;
    int code = sv_sorter_add(sort->sorter, events, n, err);
    sort->failed |= code < 0;
    return code;
}

static int drain(struct sort *sort, struct sv_err *err)
{
    struct sv_event events[SV_BATCH];
    int n = sv_sorter_finish(sort->sorter, 0, err);
    if (n < 0)
        return n;
    while ((n = sv_sorter_next(sort->sorter, events, SV_BATCH, err)) > 0) {
        int code = sort->next->write(sort->next, events, (size_t)n, err);
        if (code < 0)
            return code;
    }
    return n;
}

/* The events of a batch that are before `before_ns` go on, the others to `later`. */
static int part(struct sort *sort, const struct sv_event *events, size_t n, int64_t before_ns,
                struct sv_sorter *later, struct sv_err *err)
{
    size_t first_later = 0;
    while (first_later < n && events[first_later].ts_ns < before_ns)
        first_later++;
    int code = first_later ? sort->next->write(sort->next, events, first_later, err) : 0;
    if (code >= 0 && first_later < n)
        code = sv_sorter_add(later, events + first_later, n - first_later, err);
    return code;
}

int sv_sort_release(struct sv_sink *s, int64_t before_ns, struct sv_err *err)
{
    struct sort *sort = (struct sort *)s;
    struct sv_event events[SV_BATCH];
    struct sv_sorter *later = sv_sorter_new(sort->memory_bytes);
    int code = sv_sorter_finish(sort->sorter, 0, err), n = 0;
    while (code >= 0 && (n = sv_sorter_next(sort->sorter, events, SV_BATCH, err)) > 0)
        code = part(sort, events, (size_t)n, before_ns, later, err);
    sv_sorter_free(sort->sorter);
    sort->sorter = later;
    code = code < 0 ? code : n;
    sort->failed |= code < 0;
    return code;
}

static int sort_close(struct sv_sink *s, bool failed, struct sv_err *err)
{
    struct sort *sort = (struct sort *)s;
    failed |= sort->failed;
    int code = failed ? 0 : drain(sort, err);
    sv_sorter_free(sort->sorter);
    int closed = sort->next->close(sort->next, failed || code < 0, err);
    free(sort);
    return code < 0 ? code : closed;
}

struct sv_sink *sv_sort_new(struct sv_dict *dict, size_t memory_bytes, struct sv_sink *next)
{
    (void)dict; /* records refer to it by number only */
    struct sort *sort = sv_alloc(sizeof *sort);
    sort->sink = (struct sv_sink){
        .write = sort_write, .close = sort_close, .takes = sv_sink_wants(next) | SV_IN_NO_ORDER};
    sort->sorter = sv_sorter_new(memory_bytes);
    sort->memory_bytes = memory_bytes;
    sort->next = next;
    return &sort->sink;
}
