/* Payloads with a schema: a blob of the program's memory and a description of what is in it, as
 * arguments.
 *
 * Schemas and enums are copied when they are registered and never freed (readers take no lock). The
 * blob is read once, inside the call that brought it, within the size that came with it; what lies
 * behind a pointer is asked of the kernel, so that a wild one cannot end the program. Depth,
 * entries, elements and text are bounded. Not read: offsets to data elsewhere in the blob, which
 * are shown as numbers, and dimensions that are in another payload. */
#include "inject/nvtx/nvtx.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

enum { DEPTH_MAX = 8, ENTRIES_MAX = 256, ELEMENTS_MAX = 256, PAYLOADS_MAX = 16, STRING_MAX = 1000 };

struct nvtx_schema {
    struct nvtx_schema *next;
    uint64_t id, type, flags;
    size_t n, size, align, pack;
    bool is_enum;
    char *name;
    nvtxPayloadSchemaEntry_t *entries;
    nvtxPayloadEnum_t *values;
};

static pthread_mutex_t registering = PTHREAD_MUTEX_INITIALIZER;
static uint64_t next_id = NVTX_PAYLOAD_SCHEMA_ID_DYNAMIC_START;

struct blob {
    const uint8_t *at;
    size_t size;
};

struct reading {
    struct nvtx_domain *domain;
    struct stave_args *args;
    char *message; /* of the event, if an entry says that it is it */
    size_t message_size;
    bool has_message;
    unsigned budget; /* of elements: schemas may contain each other */
};

/* ---- registration ---- */

static char *copy_text(const char *s)
{
    return s ? strndup(s, STRING_MAX) : NULL;
}

static struct nvtx_schema *schema_find(const struct nvtx_domain *d, uint64_t id)
{
    struct nvtx_schema *s = __atomic_load_n(&d->schemas, __ATOMIC_ACQUIRE);
    while (s && s->id != id)
        s = s->next;
    return s;
}

/* The newest of an id is found first: a later registration replaces the earlier one. */
static uint64_t publish(struct nvtx_domain *d, struct nvtx_schema *s, uint64_t id)
{
    pthread_mutex_lock(&registering);
    s->id = id ? id : next_id++;
    s->next = d->schemas;
    __atomic_store_n(&d->schemas, s, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&registering);
    return s->id;
}

static const struct {
    uint8_t size, align;
} sizes[] = {
    [NVTX_PAYLOAD_ENTRY_TYPE_CHAR] = {1, 1},
    [NVTX_PAYLOAD_ENTRY_TYPE_UCHAR] = {1, 1},
    [NVTX_PAYLOAD_ENTRY_TYPE_SHORT] = {2, 2},
    [NVTX_PAYLOAD_ENTRY_TYPE_USHORT] = {2, 2},
    [NVTX_PAYLOAD_ENTRY_TYPE_INT] = {4, 4},
    [NVTX_PAYLOAD_ENTRY_TYPE_UINT] = {4, 4},
    [NVTX_PAYLOAD_ENTRY_TYPE_LONG] = {sizeof(long), _Alignof(long)},
    [NVTX_PAYLOAD_ENTRY_TYPE_ULONG] = {sizeof(long), _Alignof(long)},
    [NVTX_PAYLOAD_ENTRY_TYPE_LONGLONG] = {8, 8},
    [NVTX_PAYLOAD_ENTRY_TYPE_ULONGLONG] = {8, 8},
    [NVTX_PAYLOAD_ENTRY_TYPE_INT8] = {1, 1},
    [NVTX_PAYLOAD_ENTRY_TYPE_UINT8] = {1, 1},
    [NVTX_PAYLOAD_ENTRY_TYPE_INT16] = {2, 2},
    [NVTX_PAYLOAD_ENTRY_TYPE_UINT16] = {2, 2},
    [NVTX_PAYLOAD_ENTRY_TYPE_INT32] = {4, 4},
    [NVTX_PAYLOAD_ENTRY_TYPE_UINT32] = {4, 4},
    [NVTX_PAYLOAD_ENTRY_TYPE_INT64] = {8, 8},
    [NVTX_PAYLOAD_ENTRY_TYPE_UINT64] = {8, 8},
    [NVTX_PAYLOAD_ENTRY_TYPE_FLOAT] = {4, 4},
    [NVTX_PAYLOAD_ENTRY_TYPE_DOUBLE] = {8, 8},
    [NVTX_PAYLOAD_ENTRY_TYPE_LONGDOUBLE] = {sizeof(long double), _Alignof(long double)},
    [NVTX_PAYLOAD_ENTRY_TYPE_SIZE] = {sizeof(size_t), sizeof(size_t)},
    [NVTX_PAYLOAD_ENTRY_TYPE_ADDRESS] = {sizeof(void *), sizeof(void *)},
    [NVTX_PAYLOAD_ENTRY_TYPE_WCHAR] = {sizeof(wchar_t), sizeof(wchar_t)},
    [NVTX_PAYLOAD_ENTRY_TYPE_CHAR8] = {1, 1},
    [NVTX_PAYLOAD_ENTRY_TYPE_CHAR16] = {2, 2},
    [NVTX_PAYLOAD_ENTRY_TYPE_CHAR32] = {4, 4},
    [NVTX_PAYLOAD_ENTRY_TYPE_BYTE] = {1, 1},
    [NVTX_PAYLOAD_ENTRY_TYPE_INT128] = {16, 16},
    [NVTX_PAYLOAD_ENTRY_TYPE_UINT128] = {16, 16},
    [NVTX_PAYLOAD_ENTRY_TYPE_FLOAT16] = {2, 2},
    [NVTX_PAYLOAD_ENTRY_TYPE_FLOAT32] = {4, 4},
    [NVTX_PAYLOAD_ENTRY_TYPE_FLOAT64] = {8, 8},
    [NVTX_PAYLOAD_ENTRY_TYPE_FLOAT128] = {16, 16},
    [NVTX_PAYLOAD_ENTRY_TYPE_BF16] = {2, 2},
    [NVTX_PAYLOAD_ENTRY_TYPE_TF32] = {4, 4},
    [NVTX_PAYLOAD_ENTRY_TYPE_CATEGORY] = {4, 4},
    [NVTX_PAYLOAD_ENTRY_TYPE_COLOR_ARGB] = {4, 4},
    [NVTX_PAYLOAD_ENTRY_TYPE_SCOPE_ID] = {8, 8},
    [NVTX_PAYLOAD_ENTRY_TYPE_PID_UINT32] = {4, 4},
    [NVTX_PAYLOAD_ENTRY_TYPE_PID_UINT64] = {8, 8},
    [NVTX_PAYLOAD_ENTRY_TYPE_TID_UINT32] = {4, 4},
    [NVTX_PAYLOAD_ENTRY_TYPE_TID_UINT64] = {8, 8},
    [NVTX_PAYLOAD_ENTRY_TYPE_CSTRING] = {sizeof(void *), sizeof(void *)},
    [NVTX_PAYLOAD_ENTRY_TYPE_CSTRING_UTF8] = {sizeof(void *), sizeof(void *)},
    [NVTX_PAYLOAD_ENTRY_TYPE_CSTRING_UTF16] = {sizeof(void *), sizeof(void *)},
    [NVTX_PAYLOAD_ENTRY_TYPE_CSTRING_UTF32] = {sizeof(void *), sizeof(void *)},
    [NVTX_PAYLOAD_ENTRY_TYPE_NVTX_REGISTERED_STRING_HANDLE] = {sizeof(void *), sizeof(void *)},
    [NVTX_PAYLOAD_ENTRY_TYPE_UNION_SELECTOR] = {4, 4},
};
enum { TYPES = sizeof sizes / sizeof *sizes };

static bool is_string(uint64_t type)
{
    return type >= NVTX_PAYLOAD_ENTRY_TYPE_CSTRING && type <= NVTX_PAYLOAD_ENTRY_TYPE_CSTRING_UTF32;
}

static unsigned unit_of(uint64_t string_type)
{
    return string_type == NVTX_PAYLOAD_ENTRY_TYPE_CSTRING_UTF16   ? 2
           : string_type == NVTX_PAYLOAD_ENTRY_TYPE_CSTRING_UTF32 ? 4
                                                                  : 1;
}

static bool is_union(const struct nvtx_schema *s)
{
    return s->type == NVTX_PAYLOAD_SCHEMA_TYPE_UNION ||
           s->type == NVTX_PAYLOAD_SCHEMA_TYPE_UNION_WITH_INTERNAL_SELECTOR;
}

static unsigned array_of(const nvtxPayloadSchemaEntry_t *e)
{
    return (unsigned)(e->flags >> 4 & 7);
}
enum { ARRAY_FIXED = 1, ARRAY_TERMINATED = 2, ARRAY_INDEX = 3 };

/* A text that lies in the blob itself and not behind a pointer. */
static bool is_embedded(const nvtxPayloadSchemaEntry_t *e)
{
    return is_string(e->type) && !(e->flags & NVTX_PAYLOAD_ENTRY_FLAG_POINTER) &&
           (array_of(e) || e->arrayOrUnionDetail);
}

static void size_of(const struct nvtx_domain *d, const nvtxPayloadSchemaEntry_t *e, size_t *size,
                    size_t *align)
{
    const struct nvtx_schema *s;
    *size = *align = 1;
    if (e->flags & (NVTX_PAYLOAD_ENTRY_FLAG_POINTER | NVTX_PAYLOAD_ENTRY_FLAG_OFFSET_FROM_BASE |
                    NVTX_PAYLOAD_ENTRY_FLAG_OFFSET_FROM_HERE)) {
        *size = *align = sizeof(void *);
    } else if (is_embedded(e)) {
        *size = *align = unit_of(e->type);
    } else if (e->type < TYPES && sizes[e->type].size) {
        *size = sizes[e->type].size;
        *align = sizes[e->type].align;
    } else if ((s = schema_find(d, e->type))) {
        *size = s->size;
        *align = s->align;
    }
}

static size_t align_up(size_t n, size_t align)
{
    return align ? (n + align - 1) / align * align : n;
}

/* The offsets that the program left to us, by the rules of C; the first entry that has no fixed
 * size ends it. */
static void lay_out(const struct nvtx_domain *d, struct nvtx_schema *s, size_t given_size)
{
    size_t at = 0, largest = 0;
    s->align = 1;
    for (size_t i = 0; i < s->n; i++) {
        nvtxPayloadSchemaEntry_t *e = &s->entries[i];
        size_t size, align;
        size_of(d, e, &size, &align);
        if (s->pack && align > s->pack)
            align = s->pack;
        if (is_union(s))
            at = 0;
        else if (!e->offset)
            e->offset = at = align_up(at, align);
        else
            at = e->offset;
        bool by_detail = array_of(e) == ARRAY_FIXED || (is_embedded(e) && !array_of(e));
        at += size * (by_detail ? (size_t)e->arrayOrUnionDetail : 1);
        largest = at > largest ? at : largest;
        s->align = align > s->align ? align : s->align;
    }
    s->size = given_size ? given_size : align_up(largest, s->align);
}

uint64_t nvtx_schema_register(nvtxDomainHandle_t domain, const nvtxPayloadSchemaAttr_t *a)
{
    const uint64_t needed = NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES |
                            NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES;
    if (!a || (a->fieldMask & needed) != needed || !a->entries || a->numEntries > ENTRIES_MAX)
        return 0;
    struct nvtx_domain *d = nvtx_domain_of(domain);
    struct nvtx_schema *s = calloc(1, sizeof *s);
    if (!s || !(s->entries = calloc(a->numEntries + 1, sizeof *s->entries))) {
        free(s);
        nvtx_lost(NVTX_LOST_MEMORY);
        return 0;
    }
#define FIELD(mask, value) (a->fieldMask & NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_##mask ? (value) : 0)
    s->name = copy_text(FIELD(NAME, a->name));
    s->type = FIELD(TYPE, a->type);
    s->flags = FIELD(FLAGS, a->flags);
    s->pack = FIELD(ALIGNMENT, a->packAlign);
    s->n = a->numEntries;
    for (size_t i = 0; i < s->n; i++) {
        s->entries[i] = a->entries[i];
        s->entries[i].name = copy_text(a->entries[i].name);
        s->entries[i].description = NULL;
        s->entries[i].semantics = NULL;
    }
    lay_out(d, s, FIELD(STATIC_SIZE, a->payloadStaticSize));
    return publish(d, s, FIELD(SCHEMA_ID, a->schemaId));
#undef FIELD
}

uint64_t nvtx_enum_register(nvtxDomainHandle_t domain, const nvtxPayloadEnumAttr_t *a)
{
    const uint64_t needed = NVTX_PAYLOAD_ENUM_ATTR_FIELD_ENTRIES |
                            NVTX_PAYLOAD_ENUM_ATTR_FIELD_NUM_ENTRIES;
    if (!a || (a->fieldMask & needed) != needed || !a->entries || a->numEntries > ENTRIES_MAX)
        return 0;
    struct nvtx_schema *s = calloc(1, sizeof *s);
    if (!s || !(s->values = calloc(a->numEntries + 1, sizeof *s->values))) {
        free(s);
        nvtx_lost(NVTX_LOST_MEMORY);
        return 0;
    }
    s->is_enum = true;
    s->n = a->numEntries;
    s->size = a->fieldMask & NVTX_PAYLOAD_ENUM_ATTR_FIELD_SIZE ? a->sizeOfEnum : sizeof(int);
    s->size = s->size == 1 || s->size == 2 || s->size == 8 ? s->size : 4;
    s->align = s->size;
    s->name = copy_text(a->fieldMask & NVTX_PAYLOAD_ENUM_ATTR_FIELD_NAME ? a->name : NULL);
    for (size_t i = 0; i < s->n; i++) {
        s->values[i] = a->entries[i];
        s->values[i].name = copy_text(a->entries[i].name);
    }
    return publish(nvtx_domain_of(domain), s,
                   a->fieldMask & NVTX_PAYLOAD_ENUM_ATTR_FIELD_SCHEMA_ID ? a->schemaId : 0);
}

/* ---- values ---- */

static uint64_t load_uint(const uint8_t *at, size_t size)
{
    uint64_t v = 0;
    memcpy(&v, at, size < 8 ? size : 8);
    return v;
}

static int64_t load_int(const uint8_t *at, size_t size)
{
    uint64_t v = load_uint(at, size);
    unsigned unused = size < 8 ? 64 - 8 * (unsigned)size : 0;
    return (int64_t)(v << unused) >> unused;
}

/* Sign, exponent and fraction of 16 bits to those of 32. */
static float from_half(uint64_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, exponent = h >> 10 & 31,
             fraction = (uint32_t)h & 1023;
    float value;
    if (exponent == 0) {
        value = (float)fraction / 16777216.0f;
        return sign ? -value : value;
    }
    uint32_t bits = sign | (exponent == 31 ? 255 : exponent + 112) << 23 | fraction << 13;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static double load_float(uint64_t type, const uint8_t *at)
{
    uint32_t bits = (uint32_t)load_uint(at, 4);
    float f;
    double d;
    long double l;
    switch (type) {
    case NVTX_PAYLOAD_ENTRY_TYPE_FLOAT16: return (double)from_half(load_uint(at, 2));
    case NVTX_PAYLOAD_ENTRY_TYPE_BF16: bits = (uint32_t)load_uint(at, 2) << 16; break;
    case NVTX_PAYLOAD_ENTRY_TYPE_DOUBLE:
    case NVTX_PAYLOAD_ENTRY_TYPE_FLOAT64: memcpy(&d, at, sizeof d); return d;
    case NVTX_PAYLOAD_ENTRY_TYPE_LONGDOUBLE: memcpy(&l, at, sizeof l); return (double)l;
    default: break;
    }
    memcpy(&f, &bits, sizeof f);
    return (double)f;
}

static void put_hex(struct stave_args *args, const char *key, const uint8_t *at, size_t n)
{
    char text[2 * 64 + 4];
    size_t shown = n < 64 ? n : 64;
    for (size_t i = 0; i < shown; i++)
        snprintf(text + 2 * i, 3, "%02x", at[i]);
    if (shown < n)
        memcpy(text + 2 * shown, "…", 4);
    else
        text[2 * shown] = '\0';
    stave_args_text(args, key, text);
}

static void put_registered(struct stave_args *args, const char *key, const uint8_t *at)
{
    const struct nvtx_name *n = NULL;
    memcpy(&n, at, sizeof n);
    stave_args_text(args, key, n ? n->text : "");
}

static void put_number(struct reading *r, const char *key, uint64_t type, const uint8_t *at)
{
    struct stave_args *args = r->args;
    size_t size = sizes[type].size;
    const char *category;
    switch (type) {
    case NVTX_PAYLOAD_ENTRY_TYPE_CHAR: stave_args_text_n(args, key, (const char *)at, 1); break;
    case NVTX_PAYLOAD_ENTRY_TYPE_SHORT:
    case NVTX_PAYLOAD_ENTRY_TYPE_INT:
    case NVTX_PAYLOAD_ENTRY_TYPE_LONG:
    case NVTX_PAYLOAD_ENTRY_TYPE_LONGLONG:
    case NVTX_PAYLOAD_ENTRY_TYPE_INT8:
    case NVTX_PAYLOAD_ENTRY_TYPE_INT16:
    case NVTX_PAYLOAD_ENTRY_TYPE_INT32:
    case NVTX_PAYLOAD_ENTRY_TYPE_INT64: stave_args_int(args, key, load_int(at, size)); break;
    case NVTX_PAYLOAD_ENTRY_TYPE_FLOAT:
    case NVTX_PAYLOAD_ENTRY_TYPE_DOUBLE:
    case NVTX_PAYLOAD_ENTRY_TYPE_LONGDOUBLE:
    case NVTX_PAYLOAD_ENTRY_TYPE_FLOAT16:
    case NVTX_PAYLOAD_ENTRY_TYPE_FLOAT32:
    case NVTX_PAYLOAD_ENTRY_TYPE_FLOAT64:
    case NVTX_PAYLOAD_ENTRY_TYPE_BF16:
    case NVTX_PAYLOAD_ENTRY_TYPE_TF32: stave_args_double(args, key, load_float(type, at)); break;
    case NVTX_PAYLOAD_ENTRY_TYPE_ADDRESS:
        stave_args_pointer(args, key, (const void *)(uintptr_t)load_uint(at, size));
        break;
    case NVTX_PAYLOAD_ENTRY_TYPE_INT128:
    case NVTX_PAYLOAD_ENTRY_TYPE_UINT128:
    case NVTX_PAYLOAD_ENTRY_TYPE_FLOAT128: put_hex(args, key, at, size); break;
    case NVTX_PAYLOAD_ENTRY_TYPE_CATEGORY:
        category = nvtx_category_find(r->domain, (uint32_t)load_uint(at, size));
        if (category)
            stave_args_text(args, key, category);
        else
            stave_args_uint(args, key, load_uint(at, size));
        break;
    case NVTX_PAYLOAD_ENTRY_TYPE_NVTX_REGISTERED_STRING_HANDLE:
        put_registered(args, key, at);
        break;
    default: stave_args_uint(args, key, load_uint(at, size)); break;
    }
}

static void put_enum(struct stave_args *args, const char *key, const struct nvtx_schema *s,
                     const uint8_t *at)
{
    uint64_t v = load_uint(at, s->size), left = v;
    char text[STRING_MAX] = "";
    for (size_t i = 0; i < s->n; i++) {
        const nvtxPayloadEnum_t *e = &s->values[i];
        if (!e->name)
            continue;
        if (e->value == v && !e->isFlag) {
            stave_args_text(args, key, e->name);
            return;
        }
        if (e->isFlag && e->value && (left & e->value) == e->value) {
            size_t len = strlen(text);
            snprintf(text + len, sizeof text - len, "%s%s", len ? "|" : "", e->name);
            left &= ~e->value;
        }
    }
    if (*text && left == 0)
        stave_args_text(args, key, text);
    else
        stave_args_int(args, key, load_int(at, s->size));
}

/* ---- texts ---- */

/* What lies behind a pointer, up to `size` bytes; the kernel looks, so that nothing happens when it
 * is wild. */
static size_t look_behind(uint64_t pointer, uint8_t *out, size_t size)
{
    const size_t page = 4096;
    size_t n = 0;
    while (n < size) { /* page by page: the next one need not exist */
        size_t part = page - (size_t)((pointer + n) % page);
        part = part < size - n ? part : size - n;
        struct iovec to = {out + n, part}, from = {(void *)(uintptr_t)(pointer + n), part};
        if (process_vm_readv(getpid(), &to, 1, &from, 1, 0) != (ssize_t)part)
            break;
        n += part;
        if (memchr(out + n - part, 0, part))
            break;
    }
    return n;
}

static size_t text_end(const uint8_t *at, size_t size, unsigned unit)
{
    size_t n = 0;
    while (n + unit <= size && load_uint(at + n, unit))
        n += unit;
    return n;
}

static void narrow_units(const uint8_t *at, size_t size, unsigned unit, char *out, size_t out_size)
{
    wchar_t wide[STRING_MAX + 1];
    size_t n = 0;
    for (size_t i = 0; i + unit <= size && n < STRING_MAX; i += unit) {
        uint32_t c = (uint32_t)load_uint(at + i, unit);
        if (unit == 2 && c >= 0xd800 && c < 0xdc00 && i + 4 <= size) {
            uint32_t low = (uint32_t)load_uint(at + i + 2, 2);
            c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
            i += 2;
        }
        wide[n++] = (wchar_t)c;
    }
    wide[n] = 0;
    nvtx_narrow(wide, out, out_size);
}

static void put_text(struct reading *r, const nvtxPayloadSchemaEntry_t *e, const char *key,
                     const uint8_t *at, size_t size)
{
    char text[STRING_MAX + 4];
    unsigned unit = unit_of(e->type);
    size = text_end(at, size, unit);
    if (unit > 1) {
        narrow_units(at, size, unit, text, sizeof text);
    } else {
        size = size < STRING_MAX ? size : STRING_MAX;
        memcpy(text, at, size);
        text[size] = '\0';
    }
    if (e->flags & NVTX_PAYLOAD_ENTRY_FLAG_EVENT_MESSAGE) {
        snprintf(r->message, r->message_size, "%s", text);
        r->has_message = true;
    } else {
        stave_args_text(r->args, key, text);
    }
}

/* ---- entries ---- */

static void read_schema(struct reading *r, const struct nvtx_schema *s, struct blob b,
                        uint64_t selector, unsigned depth);

static void put_element(struct reading *r, const nvtxPayloadSchemaEntry_t *e, const char *key,
                        struct blob b, uint64_t selector, unsigned depth)
{
    const struct nvtx_schema *s;
    if (r->budget == 0)
        return;
    r->budget--;
    if (e->type < TYPES && sizes[e->type].size) {
        if (b.size >= sizes[e->type].size)
            put_number(r, key, e->type, b.at);
    } else if ((s = schema_find(r->domain, e->type))) {
        if (s->is_enum && b.size >= s->size) {
            put_enum(r->args, key, s, b.at);
        } else if (!s->is_enum && depth < DEPTH_MAX) {
            stave_args_dict(r->args, key);
            read_schema(r, s, b, selector, depth + 1);
            stave_args_end(r->args);
        }
    }
}

static bool is_zero(const uint8_t *at, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (at[i])
            return false;
    return true;
}

/* How many elements an entry has, as far as they fit. */
static size_t count_of(const nvtxPayloadSchemaEntry_t *e, struct blob b, size_t size,
                       const uint64_t *values, size_t n_values)
{
    size_t fit = size ? b.size / size : 0, n = 1;
    switch (array_of(e)) {
    case ARRAY_FIXED: n = (size_t)e->arrayOrUnionDetail; break;
    case ARRAY_TERMINATED:
        for (n = 0; n < fit && !is_zero(b.at + n * size, size);)
            n++;
        break;
    case ARRAY_INDEX:
        n = e->arrayOrUnionDetail < n_values ? (size_t)values[e->arrayOrUnionDetail] : 0;
        break;
    default: break;
    }
    return n < fit ? n : fit;
}

/* Puts one entry and returns how many bytes of the blob it took. */
static size_t put_entry(struct reading *r, const nvtxPayloadSchemaEntry_t *e, struct blob b,
                        const uint64_t *values, size_t n_values, unsigned depth)
{
    const char *key = e->name ? e->name : "value";
    size_t size, align;
    size_of(r->domain, e, &size, &align);
    if (b.size < size || (e->flags & NVTX_PAYLOAD_ENTRY_FLAG_HIDE))
        return size;
    if (e->flags &
        (NVTX_PAYLOAD_ENTRY_FLAG_OFFSET_FROM_BASE | NVTX_PAYLOAD_ENTRY_FLAG_OFFSET_FROM_HERE)) {
        stave_args_uint(r->args, key, load_uint(b.at, size));
        return size;
    }
    if (is_string(e->type)) {
        size_t n = e->arrayOrUnionDetail * size;
        if (array_of(e) == ARRAY_INDEX)
            n = count_of(e, b, size, values, n_values) * size;
        else if (array_of(e) == ARRAY_TERMINATED)
            n = b.size;
        if (is_embedded(e)) {
            put_text(r, e, key, b.at, n < b.size ? n : b.size);
            return array_of(e) == ARRAY_TERMINATED ? text_end(b.at, b.size, unit_of(e->type)) + size
                                                   : n;
        }
        uint8_t behind[STRING_MAX + 4];
        uint64_t pointer = load_uint(b.at, sizeof(void *));
        put_text(r, e, key, behind, pointer ? look_behind(pointer, behind, STRING_MAX) : 0);
        return size;
    }
    if (e->flags & NVTX_PAYLOAD_ENTRY_FLAG_POINTER) {
        stave_args_pointer(r->args, key, (const void *)(uintptr_t)load_uint(b.at, size));
        return size;
    }
    uint64_t selector = e->arrayOrUnionDetail < n_values ? values[e->arrayOrUnionDetail] : 0;
    if (!array_of(e)) {
        put_element(r, e, key, b, selector, depth);
        return size;
    }
    size_t n = count_of(e, b, size, values, n_values), shown = n < ELEMENTS_MAX ? n : ELEMENTS_MAX;
    stave_args_list(r->args, key);
    for (size_t i = 0; i < shown; i++)
        put_element(r, e, NULL, (struct blob){b.at + i * size, size}, 0, depth);
    if (n > shown)
        stave_args_more(r->args, (uint32_t)(n - shown));
    stave_args_end(r->args);
    return n * size + (array_of(e) == ARRAY_TERMINATED ? size : 0);
}

static struct blob part_of(struct blob b, size_t at)
{
    return at < b.size ? (struct blob){b.at + at, b.size - at} : (struct blob){b.at, 0};
}

static void read_union(struct reading *r, const struct nvtx_schema *s, struct blob b,
                       uint64_t selector, unsigned depth)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->entries[i].type == NVTX_PAYLOAD_ENTRY_TYPE_UNION_SELECTOR &&
            s->entries[i].offset + 4 <= b.size)
            selector = load_uint(b.at + s->entries[i].offset, 4);
    if (selector < s->n)
        put_entry(r, &s->entries[selector], part_of(b, s->entries[selector].offset), NULL, 0,
                  depth);
}

static void read_schema(struct reading *r, const struct nvtx_schema *s, struct blob b,
                        uint64_t selector, unsigned depth)
{
    if (is_union(s)) {
        read_union(r, s, b, selector, depth);
        return;
    }
    uint64_t values[ENTRIES_MAX];
    bool is_dynamic = s->type == NVTX_PAYLOAD_SCHEMA_TYPE_DYNAMIC;
    size_t at = 0;
    for (size_t i = 0; i < s->n; i++) {
        const nvtxPayloadSchemaEntry_t *e = &s->entries[i];
        size_t size, align;
        size_of(r->domain, e, &size, &align);
        /* Behind something of variable length the offsets of the layout no longer hold. */
        at = is_dynamic && at > e->offset ? align_up(at, align) : e->offset;
        struct blob part = part_of(b, at);
        values[i] = part.size >= size && size <= 8 ? load_uint(part.at, size) : 0;
        at += put_entry(r, e, part, values, i, depth);
    }
}

static void read_payload(struct reading *r, const char *key, const nvtxPayloadData_t *p)
{
    struct blob b = {p->payload, p->size};
    const struct nvtx_schema *s = schema_find(r->domain, p->schemaId);
    if (s) {
        if (b.size == SIZE_MAX)
            b.size = s->size;
        put_element(r, &(nvtxPayloadSchemaEntry_t){.type = p->schemaId}, key, b, 0, 0);
        return;
    }
    bool is_known = p->schemaId < TYPES && sizes[p->schemaId].size;
    if (b.size == SIZE_MAX)
        b.size = is_known ? sizes[p->schemaId].size : 0;
    if (is_known) {
        size_t n = b.size / sizes[p->schemaId].size;
        nvtxPayloadSchemaEntry_t e = {.type = p->schemaId, .name = key};
        if (n != 1) {
            e.flags = NVTX_PAYLOAD_ENTRY_FLAG_ARRAY_FIXED_SIZE;
            e.arrayOrUnionDetail = n;
        }
        put_entry(r, &e, b, NULL, 0, 0);
    } else {
        put_hex(r->args, key, b.at, b.size); /* raw, or of an unregistered schema */
    }
}

const char *nvtx_payload_read(struct nvtx_domain *d, const char *key, const nvtxPayloadData_t *data,
                              size_t n, struct stave_args *args, char *message, size_t message_size)
{
    struct reading r = {d, args, message, message_size, false, 4096};
    unsigned number = 0;
    for (size_t i = 0; data && i < n && i < PAYLOADS_MAX; i++) {
        if (!data[i].payload || data[i].schemaId == NVTX_TYPE_PAYLOAD_SCHEMA_REFERENCED)
            continue;
        char numbered[32];
        if (number++ > 0)
            snprintf(numbered, sizeof numbered, "%s %u", key, number);
        read_payload(&r, number > 1 ? numbered : key, &data[i]);
    }
    return r.has_message ? message : NULL;
}

const char *nvtx_payload_name(struct nvtx_domain *d, const nvtxPayloadData_t *data, size_t n)
{
    const struct nvtx_schema *s = data && n ? schema_find(d, data->schemaId) : NULL;
    return s ? s->name : NULL;
}
