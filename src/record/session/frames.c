/* Names for the waits that the library of --inject locks records: its frames are addresses, and
 * locks have none. Called for each round of libstave's events, while the process mostly still
 * lives. Addresses are another process's words: they are looked up in its maps, nothing else. */
#include "record/session/frames.h"

#include "record/decode/decode.h"
#include "record/sample/procfs.h"
#include "subjects/io/words.h"
#include "why/words.h"

#include <string.h>

static void set_text(struct sv_arg *a, const char *text)
{
    a->type = SV_ARG_TEXT;
    a->text = text;
    a->size = (uint32_t)strlen(text) & 0xffffff;
}

/* The members of a stack. */
static void name_frames(const struct sv_named_source *s, struct sv_arg *stack, uint32_t pid,
                        int64_t ts_ns)
{
    for (uint32_t i = 1; i <= stack->size; i++) {
        if (stack[i].type != SV_ARG_POINTER)
            continue;
        const char *name = sv_stacks_name(s->stacks, pid, stack[i].u, ts_ns);
        set_text(&stack[i], name ? name : "[unknown]");
    }
}

static uint32_t pid_of(const struct sv_named_source *s, const struct sv_event *e)
{
    const struct sv_dict *d = s->source.dict;
    return (uint32_t)d->tracks[sv_dict_process_of(d, e->track)].pid;
}

static void name_wait(const struct sv_named_source *s, const struct sv_event *e)
{
    uint32_t pid = pid_of(s, e);
    /* The batch is ours until the sink has it. */
    struct sv_arg *a = (struct sv_arg *)(uintptr_t)e->args, *end = a + e->n_args, *lock = NULL;
    bool is_gil;
    for (; a < end; a += sv_arg_next(a) - a) {
        if (a->type == SV_ARG_STACK || (a->type == SV_ARG_ARRAY && a->key == s->waker_stack)) {
            name_frames(s, a, pid, e->ts_ns);
        } else if (a->type == SV_ARG_POINTER && a->key == s->lock_name) {
            lock = a;
        }
    }
    /* After the frames: a library that was loaded a moment ago is known by now. */
    const char *name = lock ? sv_stacks_lock(s->stacks, pid, lock->u, &is_gil) : NULL;
    if (name)
        set_text(lock, name);
}

/* A library has recorded it, so nobody else says that a program begins: its name, its rank and its
 * maps are other ones now, and it may be Python. */
static void take_exec(const struct sv_named_source *s, const struct sv_event *e)
{
    uint32_t pid = pid_of(s, e);
    const struct sv_arg *a = e->args, *end = a + e->n_args;
    char program[4096];
    sv_symbols_exec(s->symbols, pid, e->ts_ns);
    (void)sv_procfs_complete(s->inside.tree, pid); /* it may be gone */
    while (a < end && !(a->key == s->path && a->type == SV_ARG_TEXT && a->size < sizeof program))
        a = sv_arg_next(a);
    if (a == end)
        return;
    memcpy(program, a->text, a->size);
    program[a->size] = '\0';
    sv_stacks_exec(s->stacks, pid, program);
}

static int next(struct sv_source *source, struct sv_batch *b, struct sv_err *err)
{
    struct sv_named_source *s = (struct sv_named_source *)source;
    int n = s->inner->next(s->inner, b, err);
    for (size_t i = 0; n > 0 && i < b->n; i++) {
        const struct sv_event *e = &b->events[i];
        if (e->cat == s->cat && e->n_args)
            name_wait(s, e);
        else if (e->cat == s->process && e->name == s->exec)
            take_exec(s, e);
        else
            sv_inside_count(&s->inside, e);
    }
    return n;
}

struct sv_source *sv_named_source(struct sv_named_source *s, struct sv_source *inner,
                                  struct sv_decode *decode)
{
    if (s->inner != inner) {
        *s = (struct sv_named_source){
            .source = *inner,
            .inner = inner,
            .stacks = sv_decode_stacks(decode),
            .symbols = sv_decode_symbols(decode),
            .process = sv_dict_cstr(inner->dict, SV_CAT_PROCESS),
            .exec = sv_dict_cstr(inner->dict, "exec"),
            .path = sv_dict_cstr(inner->dict, "path"),
            .cat = sv_dict_cstr(inner->dict, SV_CAT_OFFCPU_SAMPLE),
            .waker_stack = sv_dict_cstr(inner->dict, SV_WAIT_WAKER_STACK),
            .lock_name = sv_dict_cstr(inner->dict, SV_WAIT_LOCK_NAME),
        };
        sv_inside_init(&s->inside, inner->dict, sv_decode_tree(decode));
    }
    s->source.next = next;
    return &s->source;
}
