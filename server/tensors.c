/* Reads safetensors files.
 *
 * Called when a model is loaded. Order: the whole file into memory, the header's members one by
 * one, then the data after it. Nothing of the file is used before its bounds are checked; the first
 * contradiction refuses the file with a sentence that names the tensor. */
#include "server/tensors.h"

#include "core/base/json_scan.h"
#include "core/base/mem.h"
#include "core/stream/json_members.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct reading {
    struct sv_tensors *t;
    const char *path;
    size_t data_size;
    struct sv_err *err;
};

static int refuse(struct reading *r, const char *what, const char *name)
{
    return sv_error(r->err, SV_EFORMAT, "%s: %s%s%s", r->path, what, name ? " " : "",
                    name ? name : "");
}

static bool copy_text(const struct sv_member *m, char *out, size_t size)
{
    unsigned oddities = 0;
    if (m->type != '"' || m->value.len >= size)
        return false;
    size_t len = sv_json_unescape((const uint8_t *)m->value.bytes, m->value.len, out, &oddities);
    out[len] = 0;
    return oddities == 0;
}

static bool read_shape(const struct sv_member *m, struct sv_tensor *out)
{
    struct sv_members dims = sv_members_of(m->value.bytes, m->value.len);
    out->n = 1;
    for (struct sv_member dim; sv_member_next(&dims, &dim);) {
        int64_t v;
        if (out->n_dims == SV_TENSOR_DIMS || !sv_member_i64(&dim, &v) || v < 1 || v > 1 << 24)
            return false;
        out->dims[out->n_dims++] = (uint32_t)v;
        out->n *= (size_t)v;
        if (out->n > SV_TENSORS_FILE)
            return false;
    }
    return !dims.is_bad;
}

static bool read_offsets(const struct sv_member *m, int64_t *from, int64_t *to)
{
    struct sv_members pair = sv_members_of(m->value.bytes, m->value.len);
    struct sv_member item;
    return sv_member_next(&pair, &item) && sv_member_i64(&item, from) &&
           sv_member_next(&pair, &item) && sv_member_i64(&item, to) && *from >= 0 && *to >= *from &&
           !sv_member_next(&pair, &item) && !pair.is_bad;
}

static int read_tensor(struct reading *r, const struct sv_member *m)
{
    struct sv_tensors *t = r->t;
    if (t->n == SV_TENSORS_MAX)
        return refuse(r, "too many tensors, at most 256", NULL);
    struct sv_tensor *out = &t->items[t->n];
    struct sv_member name = {.type = '"', .value = m->key};
    if (!copy_text(&name, out->name, sizeof out->name))
        return refuse(r, "a tensor name is too long or not a text", NULL);
    if (m->type != '{')
        return refuse(r, "missing description of tensor", out->name);
    if (sv_tensors_find(t, out->name))
        return refuse(r, "duplicate tensor", out->name);
    struct sv_members members = sv_members_of(m->value.bytes, m->value.len);
    int64_t from = -1, to = -1;
    bool has_shape = false, is_f32 = false;
    for (struct sv_member item; sv_member_next(&members, &item);) {
        if (sv_member_is(&item, "dtype"))
            is_f32 = item.type == '"' && item.value.len == 3 &&
                     memcmp(item.value.bytes, "F32", 3) == 0;
        else if (sv_member_is(&item, "shape"))
            has_shape = item.type == '[' && !has_shape && read_shape(&item, out);
        else if (sv_member_is(&item, "data_offsets") && !read_offsets(&item, &from, &to))
            return refuse(r, "damaged offsets of tensor", out->name);
    }
    if (members.is_bad || !has_shape)
        return refuse(r, "damaged shape of tensor", out->name);
    if (!is_f32)
        return refuse(r, "only dtype F32 is supported; another one in tensor", out->name);
    if (from < 0 || (uint64_t)to > r->data_size || from % 4 != 0 ||
        (uint64_t)(to - from) != out->n * sizeof(float))
        return refuse(r, "offsets do not match shape or file: tensor", out->name);
    out->data = t->data + from / 4;
    t->n++;
    return 0;
}

static int read_metadata(struct reading *r, const struct sv_member *m)
{
    struct sv_members members = sv_members_of(m->value.bytes, m->value.len);
    struct sv_member item;
    while (m->type == '{' && sv_member_next(&members, &item)) {
        bool ok = true;
        if (sv_member_is(&item, "stave.input"))
            ok = copy_text(&item, r->t->input, sizeof r->t->input);
        else if (sv_member_is(&item, "stave.layers"))
            ok = copy_text(&item, r->t->layers, sizeof r->t->layers);
        if (!ok)
            return refuse(r, "stave.input or stave.layers is too long or not a text", NULL);
    }
    return m->type != '{' || members.is_bad ? refuse(r, "damaged __metadata__", NULL) : 0;
}

static int read_header(struct reading *r, const uint8_t *json, size_t len)
{
    if (!sv_json_valid(json, len))
        return refuse(r, "not a safetensors file: its header is not JSON", NULL);
    struct sv_members members = sv_members_of((const char *)json, len);
    struct sv_member m;
    int code = members.is_object
                   ? 0
                   : refuse(r, "not a safetensors file: its header is not a JSON object", NULL);
    while (code == 0 && sv_member_next(&members, &m))
        code = sv_member_is(&m, "__metadata__") ? read_metadata(r, &m) : read_tensor(r, &m);
    return code == 0 && members.is_bad ? refuse(r, "damaged header", NULL) : code;
}

/* The data is copied after the header so that floats lie aligned whatever the header's length. */
static int read_parts(struct reading *r, FILE *f, size_t size)
{
    uint8_t head[8];
    uint64_t len = 0;
    if (size < 10 || fread(head, 1, 8, f) != 8)
        return refuse(r, "not a safetensors file: too short", NULL);
    for (int i = 7; i >= 0; i--)
        len = len << 8 | head[i];
    if (len < 2 || len > SV_TENSORS_HEADER || len > size - 8)
        return refuse(r, "not a safetensors file: the length of its header does not match the file",
                      NULL);
    r->data_size = size - 8 - len;
    r->t->bytes = sv_alloc(len + SV_JSON_PAD);
    r->t->data = sv_alloc_aligned(r->data_size + 64, 64);
    if (fread(r->t->bytes, 1, len, f) != len ||
        fread(r->t->data, 1, r->data_size, f) != r->data_size)
        return sv_error(r->err, SV_EINPUT, "%s: cannot read to the end", r->path);
    return read_header(r, r->t->bytes, len);
}

int sv_tensors_open(const char *path, struct sv_tensors **out, struct sv_err *err)
{
    FILE *f = fopen(path, "rbe");
    if (!f) {
        sv_err_sys(err, "%s", path);
        return SV_EINPUT;
    }
    struct reading r = {.t = sv_alloc(sizeof *r.t), .path = path, .err = err};
    long size = fseek(f, 0, SEEK_END) == 0 ? ftell(f) : -1;
    int code;
    if (size < 0 || fseek(f, 0, SEEK_SET) != 0)
        code = sv_error(err, SV_EINPUT, "%s: not a regular file", path);
    else if ((uint64_t)size > SV_TENSORS_FILE)
        code = sv_error(err, SV_ELIMIT, "%s: larger than 1 GiB", path);
    else
        code = read_parts(&r, f, (size_t)size);
    fclose(f);
    if (code < 0) {
        sv_tensors_close(r.t);
        return code;
    }
    *out = r.t;
    return 0;
}

void sv_tensors_close(struct sv_tensors *t)
{
    if (!t)
        return;
    free(t->bytes);
    free(t->data);
    free(t);
}

const struct sv_tensor *sv_tensors_find(const struct sv_tensors *t, const char *name)
{
    for (uint32_t i = 0; i < t->n; i++)
        if (strcmp(t->items[i].name, name) == 0)
            return &t->items[i];
    return NULL;
}
