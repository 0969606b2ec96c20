/* Argument lists as one block each: how stages keep what a batch only lends them.
 *
 * Called by every stage that holds events back: the sorter (packed, since its records move and go to files), pair and
 * filter (live). Nesting needs no care here: lists are flat and only TEXT slots point anywhere. */
#include "model/args.h"

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
