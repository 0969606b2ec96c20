/* Held events and the outbox: see hold.h. Used by pair, split and filter. */
#include "core/stream/hold.h"
#include "core/stream/args.h"

struct sv_held *sv_hold(struct sv_pool *pool, const struct sv_event *e)
{
    size_t bytes = sizeof(struct sv_held);
    if (e->n_args)
        bytes += sv_args_bytes(e->args, e->n_args, NULL);
    struct sv_held *h = sv_pool_get(pool, bytes);
    *h = (struct sv_held){.bytes = bytes, .event = *e};
    h->event.args = e->n_args ? sv_args_copy(h + 1, e->args, e->n_args) : NULL;
    return h;
}

void sv_outbox_init(struct sv_outbox *o, struct sv_pool *pool, struct sv_sink *next)
{
    o->next = next;
    o->pool = pool;
    o->spent = NULL;
    o->err = NULL;
    o->code = 0;
    o->n = 0;
    sv_arena_init(&o->scratch, (size_t)1 << 16);
}

int sv_outbox_flush(struct sv_outbox *o)
{
    if (o->n && o->code == 0)
        o->code = o->next->write(o->next, o->events, o->n, o->err);
    o->n = 0;
    sv_arena_reset(&o->scratch);
    while (o->spent) {
        struct sv_held *h = o->spent;
        o->spent = h->next;
        sv_held_free(o->pool, h);
    }
    return o->code;
}

int sv_outbox_close(struct sv_outbox *o, bool failed, struct sv_err *err)
{
    int code = failed ? 0 : o->code;
    int closed = o->next->close(o->next, failed || code < 0, err);
    sv_arena_fini(&o->scratch);
    return code < 0 ? code : closed;
}
