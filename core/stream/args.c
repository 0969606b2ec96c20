/* Argument lists as one block each: how stages keep what a batch only lends them.
 *
 * Called by everyone who holds events back: the sorter (packed, since its records move and go to
 * files), pair and filter (live), and by everyone who pairs edges. Nesting needs no care here:
 * lists are flat and only TEXT slots point anywhere. */
#include "core/stream/args.h"
#include "core/base/map.h"

#include <assert.h>
#include <string.h>

size_t sv_args_bytes(const struct sv_arg *args, size_t n, bool *has_text)
{
    size_t bytes = n * sizeof *args;
    bool any = false;
    for (size_t i = 0; i < n; i++) {
        if (args[i].type == SV_ARG_TEXT) {
            bytes += args[i].size;
            any = true;
        }
    }
    if (has_text)
        *has_text = any;
    return (bytes + 7) & ~(size_t)7;
}

/* Texts are stored relative to `base`: the block itself gives offsets, NULL gives pointers. */
static struct sv_arg *place(char *to, const struct sv_arg *args, size_t n, const char *base)
{
    struct sv_arg *slots = (struct sv_arg *)(void *)to;
    char *text = to + n * sizeof *args;
    if (n)
        memcpy(slots, args, n * sizeof *args);
    for (size_t i = 0; i < n; i++) {
        if (args[i].type != SV_ARG_TEXT)
            continue;
        if (args[i].size)
            memcpy(text, args[i].text, args[i].size);
        slots[i].u = (uint64_t)((uintptr_t)text - (uintptr_t)base);
        text += args[i].size;
    }
    /* No stray bytes of the heap in a file. */
    while ((uintptr_t)text & 7)
        *text++ = 0;
    return slots;
}

struct sv_arg *sv_args_copy(void *to, const struct sv_arg *args, size_t n)
{
    return place(to, args, n, NULL);
}

void sv_args_pack(void *to, const struct sv_arg *args, size_t n)
{
    place(to, args, n, to);
}

void sv_args_unpack(void *at, size_t n)
{
    struct sv_arg *slots = at;
    for (size_t i = 0; i < n; i++)
        if (slots[i].type == SV_ARG_TEXT)
            slots[i].text = (const char *)at + slots[i].u;
}

/* ---- joining ---- */

#define FEW_SLOTS 16 /* up to here a scan is faster than a map */

/* The keys on the top level of a list. */
struct keys {
    const struct sv_arg *args, *end;
    /* key → index + 1; filled for long lists only, so that hostile ones stay linear */
    struct sv_map map;
    bool is_long;
};

static void keys_init(struct keys *k, const struct sv_arg *args, size_t n)
{
    assert(args || n == 0);
    *k = (struct keys){.args = args, .end = n ? args + n : args, .is_long = n > FEW_SLOTS};
    for (const struct sv_arg *a = args; k->is_long && a < k->end; a = sv_arg_next(a))
        if (a->key)
            *sv_map_add(&k->map, a->key, NULL) = (uint64_t)(a - args) + 1;
}

static const struct sv_arg *keys_find(const struct keys *k, sv_str key)
{
    if (key == 0)
        return NULL;
    if (k->is_long) {
        uint64_t *at = sv_map_find(&k->map, key);
        return at ? k->args + *at - 1 : NULL;
    }
    for (const struct sv_arg *a = k->args; a < k->end; a = sv_arg_next(a))
        if (a->key == key)
            return a;
    return NULL;
}

static const struct sv_arg *find_type(const struct sv_arg *args, size_t n, unsigned type)
{
    for (size_t i = 0; i < n; i++)
        if (args[i].type == type)
            return &args[i];
    return NULL;
}

/* Copies the argument with its members. */
static size_t append(struct sv_arg *to, size_t n, const struct sv_arg *a)
{
    size_t slots = (size_t)(sv_arg_next(a) - a);
    memcpy(to + n, a, slots * sizeof *a);
    return n + slots;
}

size_t sv_args_join(struct sv_arg *to, const struct sv_arg *begin, size_t n_begin,
                    const struct sv_arg *end, size_t n_end)
{
    struct keys begins, ends;
    keys_init(&begins, begin, n_begin);
    keys_init(&ends, end, n_end);
    const struct sv_arg *from = find_type(begin, n_begin, SV_ARG_THREAD_TIME);
    const struct sv_arg *until = find_type(end, n_end, SV_ARG_THREAD_TIME);
    size_t n = 0;
    for (const struct sv_arg *a = begin; a < begins.end; a = sv_arg_next(a)) {
        const struct sv_arg *newer = keys_find(&ends, a->key);
        n = append(to, n, newer ? newer : a);
    }
    for (const struct sv_arg *a = end; a < ends.end; a = sv_arg_next(a)) {
        if (a == until && from)
            to[n++] = (struct sv_arg){.type = SV_ARG_THREAD_DUR,
                                      .i = (int64_t)((uint64_t)until->i - (uint64_t)from->i)};
        else if (!keys_find(&begins, a->key))
            n = append(to, n, a);
    }
    sv_map_fini(&begins.map);
    sv_map_fini(&ends.map);
    return n;
}
