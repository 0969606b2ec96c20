/* The sort stage: everything goes into a sorter, and at the end comes out of it in order.
 *
 * The pump inserts it between a source that gives disorder and a sink that needs order. Nothing reaches `next` before
 * close(), so that a failed stream leaves no half output. */
#include "core/stream/sorter.h"
#include "core/stream/stages.h"

#include <stdlib.h>

struct sort {
    struct sv_sink sink;
    struct sv_sorter *sorter;
    struct sv_sink *next;
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
    sort->next = next;
    return &sort->sink;
}
