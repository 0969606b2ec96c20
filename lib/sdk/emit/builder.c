/* The builder of nested arguments: a flat list of bytes that a record carries as it is.
 *
 * An item is its type (enum sv_item), its key (16-bit length, bytes), then 8 bytes of a number, or
 * a 32-bit length and the bytes of a text, or nothing for null, or for a container everything up to
 * its end item. Called by users before an event; no global state. Each container holds at most
 * `limit` items; what was left out is counted, and a last item says so. */
#include "sdk/emit/items.h"

#include <stave/stave.h>
#include <stdio.h>
#include <string.h>

enum {
    DEPTH_MAX = 32,
    KEEP_BYTES = 64 * DEPTH_MAX
}; /* reserved for the last items of open containers */

void stave_args_init(struct stave_args *a)
{
    a->len = 0;
    a->depth = 0;
    a->limit = 256;
    a->dropped = 0;
    a->count[0] = a->kept[0] = 0;
    a->is_list[0] = 0;
}

void stave_args_limit(struct stave_args *a, uint32_t items)
{
    a->limit = items;
}

static void put(struct stave_args *a, const void *bytes, size_t n)
{
    memcpy(a->bytes + a->len, bytes, n);
    a->len += (uint32_t)n;
}

static void put_head(struct stave_args *a, unsigned type, const char *key, size_t key_len)
{
    uint8_t t = (uint8_t)type;
    uint16_t n = (uint16_t)key_len;
    put(a, &t, 1);
    put(a, &n, 2);
    put(a, key, key_len);
}

/* Does one more item of this size fit in the open container? Counts it either way. */
static bool admit(struct stave_args *a, size_t key_len, size_t payload)
{
    if (a->dropped) /* inside a container that was itself left out */
        return false;
    bool is_limited = a->depth > 0 && a->count[a->depth] >= a->limit;
    bool has_gap = a->count[a->depth] != a->kept[a->depth]; /* nothing follows what was left out */
    a->count[a->depth]++;
    if (is_limited || has_gap || key_len > UINT16_MAX ||
        a->len + 3 + key_len + payload + KEEP_BYTES > sizeof a->bytes)
        return false;
    a->kept[a->depth]++;
    return true;
}

static void add(struct stave_args *a, unsigned type, const char *key, const void *bytes, size_t n)
{
    size_t key_len = key ? strlen(key) : 0;
    if (!admit(a, key_len, n))
        return;
    put_head(a, type, key ? key : "", key_len);
    put(a, bytes, n);
}

void stave_args_int(struct stave_args *a, const char *key, int64_t v)
{
    add(a, SV_ITEM_INT, key, &v, sizeof v);
}

void stave_args_uint(struct stave_args *a, const char *key, uint64_t v)
{
    add(a, SV_ITEM_UINT, key, &v, sizeof v);
}

void stave_args_double(struct stave_args *a, const char *key, double v)
{
    add(a, SV_ITEM_DOUBLE, key, &v, sizeof v);
}

void stave_args_bool(struct stave_args *a, const char *key, bool v)
{
    uint64_t u = v;
    add(a, SV_ITEM_BOOL, key, &u, sizeof u);
}

void stave_args_null(struct stave_args *a, const char *key)
{
    add(a, SV_ITEM_NULL, key, "", 0);
}

void stave_args_pointer(struct stave_args *a, const char *key, const void *v)
{
    uint64_t u = (uint64_t)(uintptr_t)v;
    add(a, SV_ITEM_POINTER, key, &u, sizeof u);
}

void stave_args_flow(struct stave_args *a, const char *direction, uint64_t id)
{
    add(a, SV_ITEM_UINT, direction, &id, sizeof id);
}

void stave_args_text_n(struct stave_args *a, const char *key, const char *v, size_t len)
{
    if (!v) {
        v = "(null)";
        len = 6;
    }
    size_t key_len = key ? strlen(key) : 0;
    size_t used = a->len + 3 + key_len + 4 + KEEP_BYTES;
    size_t left = used < sizeof a->bytes ? sizeof a->bytes - used : 0;
    if (len > left && left >= 64)
        len = left; /* better a part than nothing */
    if (!admit(a, key_len, 4 + len))
        return;
    uint32_t n = (uint32_t)len;
    put_head(a, SV_ITEM_TEXT, key ? key : "", key_len);
    put(a, &n, sizeof n);
    put(a, v, len);
}

void stave_args_text(struct stave_args *a, const char *key, const char *v)
{
    stave_args_text_n(a, key, v, v ? strlen(v) : 0);
}

static void open_container(struct stave_args *a, unsigned type, const char *key)
{
    size_t key_len = key ? strlen(key) : 0;
    if (a->depth + 1 >= DEPTH_MAX || !admit(a, key_len, 8)) {
        a->dropped++;
        return;
    }
    put_head(a, type, key ? key : "", key_len);
    a->depth++;
    a->count[a->depth] = a->kept[a->depth] = 0;
    a->is_list[a->depth] = type == SV_ITEM_LIST;
}

void stave_args_dict(struct stave_args *a, const char *key)
{
    open_container(a, SV_ITEM_DICT, key);
}

void stave_args_list(struct stave_args *a, const char *key)
{
    open_container(a, SV_ITEM_LIST, key);
}

/* Space for these few bytes was reserved. */
static void add_left_out(struct stave_args *a)
{
    char text[48];
    uint32_t more = a->count[a->depth] - a->kept[a->depth];
    bool is_list = a->is_list[a->depth];
    uint32_t n =
        (uint32_t)snprintf(text, sizeof text, "%s(%u more items)", is_list ? "... " : "", more);
    put_head(a, SV_ITEM_TEXT, "...", is_list ? 0 : 3);
    put(a, &n, sizeof n);
    put(a, text, n);
}

void stave_args_more(struct stave_args *a, uint32_t items)
{
    if (!a->dropped)
        a->count[a->depth] += items;
}

void stave_args_end(struct stave_args *a)
{
    if (a->dropped) {
        a->dropped--;
        return;
    }
    if (a->depth == 0)
        return;
    if (a->count[a->depth] > a->kept[a->depth])
        add_left_out(a);
    put_head(a, SV_ITEM_END, "", 0);
    a->depth--;
}
