/* Passes over the kernel's type information: see tracepoints.h. Called once, by the loader of the
 * kernel programs.
 *
 * Each tracepoint has a typedef `btf_trace_NAME` of a pointer to a function type. The bytes are
 * checked: a length that does not fit ends the reading. */
#include "record/kernel/tracepoints.h"

#include "core/base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/btf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BYTES_MAX = 256 << 20, STEP = 1 << 20, KINDS = 20 };
static const char prefix[] = "btf_trace_";

/* Bytes after the type itself: some, and some for each member. Kinds of newer kernels are not
 * known. */
static const struct {
    uint8_t fixed, each;
} extra[KINDS] = {
    [1] = {4, 0},  [3] = {12, 0}, [4] = {0, 12},  [5] = {0, 12}, [6] = {0, 8},
    [13] = {0, 8}, [14] = {4, 0}, [15] = {0, 12}, [17] = {4, 0}, [19] = {0, 12},
};

static size_t read_all(int fd, uint8_t **bytes)
{
    size_t n = 0, cap = 0;
    while (n < BYTES_MAX) {
        if (cap - n < STEP) {
            cap = cap ? cap * 2 : (size_t)8 * STEP;
            *bytes = sv_realloc(*bytes, cap);
        }
        ssize_t got = read(fd, *bytes + n, cap - n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        n += (size_t)got;
    }
    return n;
}

/* Since Linux 6.16 the kernel's own bytes can be mapped; a read gives 4 KiB of them at a time. */
static size_t get_all(struct sv_tracepoints *t, const char *path)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    size_t n = fstat(fd, &st) == 0 && st.st_size > 0 && st.st_size <= BYTES_MAX ? (size_t)st.st_size
                                                                                : 0;
    void *at = n ? mmap(NULL, n, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
    if (at != MAP_FAILED) {
        t->bytes = at;
        t->n_mapped = n;
    } else {
        n = read_all(fd, &t->bytes);
    }
    close(fd);
    return n;
}

/* The types, one after the other. */
struct types {
    const uint8_t *at, *end;
    const char *texts;
    size_t texts_len;
    uint32_t *where, n; /* by number, from 1 on */
    size_t cap;
    const uint8_t *first;
};

static bool open_types(struct types *x, const uint8_t *bytes, size_t n)
{
    struct btf_header h;
    if (n < sizeof h)
        return false;
    memcpy(&h, bytes, sizeof h);
    size_t left = h.hdr_len <= n ? n - h.hdr_len : 0;
    if (h.magic != BTF_MAGIC || h.type_off > left || h.type_len > left - h.type_off ||
        h.str_off > left || h.str_len > left - h.str_off || h.str_len == 0 ||
        bytes[h.hdr_len + h.str_off + h.str_len - 1] != 0)
        return false;
    x->first = x->at = bytes + h.hdr_len + h.type_off;
    x->end = x->at + h.type_len;
    x->texts = (const char *)bytes + h.hdr_len + h.str_off;
    x->texts_len = h.str_len;
    return true;
}

/* False: the end, or what is not understood. */
static bool next_type(struct types *x, struct btf_type *type)
{
    if ((size_t)(x->end - x->at) < sizeof *type)
        return false;
    memcpy(type, x->at, sizeof *type);
    unsigned kind = BTF_INFO_KIND(type->info);
    if (kind == 0 || kind >= KINDS)
        return false;
    size_t size = sizeof *type + extra[kind].fixed +
                  (size_t)extra[kind].each * BTF_INFO_VLEN(type->info);
    if (size > (size_t)(x->end - x->at))
        return false;
    x->where = sv_grow(x->where, &x->cap, (size_t)x->n + 2, sizeof *x->where);
    x->where[++x->n] = (uint32_t)(x->at - x->first);
    x->at += size;
    return true;
}

static bool type_at(const struct types *x, uint32_t number, struct btf_type *type)
{
    if (number == 0 || number > x->n)
        return false;
    memcpy(type, x->first + x->where[number], sizeof *type);
    return true;
}

static unsigned n_args(const struct types *x, uint32_t pointer)
{
    struct btf_type t;
    if (!type_at(x, pointer, &t) || BTF_INFO_KIND(t.info) != BTF_KIND_PTR ||
        !type_at(x, t.type, &t) || BTF_INFO_KIND(t.info) != BTF_KIND_FUNC_PROTO)
        return 0;
    return BTF_INFO_VLEN(t.info);
}

static void find_all(struct sv_tracepoints *t, struct types *x)
{
    struct btf_type type;
    while (next_type(x, &type)) {
        if (BTF_INFO_KIND(type.info) == BTF_KIND_FUNC && type.name_off < x->texts_len &&
            strcmp(x->texts + type.name_off, "bpf_rdonly_cast") == 0)
            t->has_casts = true;
        if (BTF_INFO_KIND(type.info) != BTF_KIND_TYPEDEF || type.name_off >= x->texts_len ||
            strncmp(x->texts + type.name_off, prefix, sizeof prefix - 1) != 0)
            continue;
        t->all = sv_grow(t->all, &t->cap, t->n + 1, sizeof *t->all);
        t->all[t->n++] = (struct sv_tracepoint){
            .name = x->texts + type.name_off + sizeof prefix - 1, .pointer = type.type};
    }
    t->is_known = x->at == x->end && t->n > 0;
    for (size_t i = 0; i < t->n; i++)
        t->all[i].n_args = n_args(x, t->all[i].pointer);
}

void sv_tracepoints_read(struct sv_tracepoints *t, const char *path)
{
    struct types x = {0};
    *t = (struct sv_tracepoints){0};
    size_t n = get_all(t, path);
    if (open_types(&x, t->bytes, n))
        find_all(t, &x);
    free(x.where);
}

void sv_tracepoints_fini(struct sv_tracepoints *t)
{
    free(t->all);
    if (t->n_mapped)
        munmap(t->bytes, t->n_mapped);
    else
        free(t->bytes);
    *t = (struct sv_tracepoints){0};
}

const struct sv_tracepoint *sv_tracepoints_find(const struct sv_tracepoints *t, const char *name)
{
    for (size_t i = 0; i < t->n; i++)
        if (strcmp(t->all[i].name, name) == 0)
            return &t->all[i];
    return NULL;
}
