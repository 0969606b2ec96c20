/* Reading tar archives: see tar.h. Called by the import of archives, and by all who must know an
 * archive from a trace.
 *
 * An archive is a row of blocks of 512 bytes: a header with a checksum, the content, and zeros up
 * to the next block; two blocks of zeros are the end. Headers of the types x (pax), L and K (GNU)
 * say more about the member that follows. */
#include "formats/tar.h"

#include <string.h>

enum {
    NAME_AT = 0,
    NAME_BYTES = 100,
    SIZE_AT = 124,
    SUM_AT = 148,
    SUM_BYTES = 8,
    TYPE_AT = 156,
    MAGIC_AT = 257,
    PREFIX_AT = 345,
    PREFIX_BYTES = 155,
    SPARSE_MORE_AT = 482, /* in a header of the type S: a block of more follows … */
    SPARSE_NEXT_AT = 504  /* … and in that block: another one */
};

#define EXTRA_MAX         ((size_t)1 << 20) /* of a header that says more */
#define SIZE_MAX_DECLARED ((uint64_t)1 << 60)

/* What headers before the member's own said about it. */
struct about {
    bool has_name, has_size, is_sparse;
    uint64_t size;
};

/* ---- fields ---- */

/* Octal digits between spaces, ended by a space or NUL; an empty field is 0. */
static bool parse_octal(const uint8_t *p, size_t n, uint64_t *v)
{
    size_t i = 0;
    *v = 0;
    while (i < n && p[i] == ' ')
        i++;
    for (; i < n && p[i] >= '0' && p[i] <= '7'; i++)
        *v = *v << 3 | (uint64_t)(p[i] - '0');
    return i == n || p[i] == 0 || p[i] == ' ';
}

/* Large sizes are binary numbers (GNU): the first byte is then 0x80. */
static bool parse_size(const uint8_t *head, uint64_t *v)
{
    const uint8_t *p = head + SIZE_AT;
    if (!(p[0] & 0x80))
        return parse_octal(p, 12, v);
    *v = 0;
    bool fits = p[0] == 0x80 && p[1] == 0 && p[2] == 0 && p[3] == 0;
    for (int i = 4; i < 12; i++)
        *v = *v << 8 | p[i];
    return fits && *v <= SIZE_MAX_DECLARED;
}

static bool is_zero(const uint8_t *block)
{
    static const uint8_t zeros[SV_TAR_BLOCK];
    return memcmp(block, zeros, sizeof zeros) == 0;
}

/* Of all bytes, with spaces in place of the sum; some writers added them as signed numbers. */
static bool has_sum(const uint8_t *head)
{
    uint64_t said;
    int64_t plain = 0, with_sign = 0;
    for (int i = 0; i < SV_TAR_BLOCK; i++) {
        uint8_t c = i >= SUM_AT && i < SUM_AT + SUM_BYTES ? ' ' : head[i];
        plain += c;
        with_sign += (int8_t)c;
    }
    return parse_octal(head + SUM_AT, SUM_BYTES, &said) && said > 0 &&
           ((int64_t)said == plain || (int64_t)said == with_sign);
}

bool sv_tar_is(const uint8_t *head, size_t n)
{
    uint64_t size;
    return n >= SV_TAR_BLOCK && has_sum(head) && parse_size(head, &size);
}

/* ---- what follows a header ---- */

static int damaged(const struct sv_tar *t, const char *what, struct sv_err *err)
{
    return sv_err_set(err, SV_EFORMAT, (int64_t)t->in->pos, "%s", what);
}

/* A whole block in the window. */
static int need_block(struct sv_tar *t, struct sv_err *err)
{
    int more = sv_input_need(t->in, SV_TAR_BLOCK, err);
    return more == 0 ? damaged(t, "the archive breaks off: its end is missing", err) : more;
}

static int skip_to(struct sv_tar *t, uint64_t at, struct sv_err *err)
{
    while (t->in->pos < at) {
        uint64_t left = at - t->in->pos;
        int more = sv_input_need(t->in, 1, err);
        if (more < 0)
            return more;
        if (more == 0)
            return damaged(t, "the archive breaks off: its end is missing", err);
        sv_input_skip(t->in, left < t->in->len ? (size_t)left : t->in->len);
    }
    return 0;
}

/* The content of `bytes` bytes begins here: where the next header is. */
static int set_next(struct sv_tar *t, uint64_t bytes, struct sv_err *err)
{
    uint64_t blocks = (bytes + SV_TAR_BLOCK - 1) / SV_TAR_BLOCK;
    t->next = t->in->pos + blocks * SV_TAR_BLOCK;
    if (t->next > t->limit)
        return sv_err_set(err, SV_ELIMIT, (int64_t)t->in->pos,
                          "it would unpack to more than %llu MiB, the most for its size",
                          (unsigned long long)(t->limit >> 20));
    return 0;
}

/* ---- headers that say more ---- */

static void set_name(struct sv_tar *t, struct about *a, const void *name, size_t n)
{
    sv_buf_clear(&t->name);
    sv_buf_add(&t->name, name, n);
    a->has_name = true;
}

static bool parse_decimal(const char *p, size_t n, uint64_t *v)
{
    *v = 0;
    for (size_t i = 0; i < n; i++) {
        if (p[i] < '0' || p[i] > '9' || *v > SIZE_MAX_DECLARED / 10 - 1)
            return false;
        *v = *v * 10 + (uint64_t)(p[i] - '0');
    }
    return n > 0;
}

static bool is_key(const char *p, size_t n, const char *key)
{
    return n == strlen(key) && memcmp(p, key, n) == 0;
}

/* One record, "key=value", without its length and line feed. */
static bool use_record(struct sv_tar *t, struct about *a, const char *p, size_t n)
{
    static const char sparse[] = "GNU.sparse.";
    const char *equals = memchr(p, '=', n);
    if (!equals)
        return false;
    size_t n_key = (size_t)(equals - p), n_value = n - n_key - 1;
    const char *value = equals + 1;
    bool is_sparse = n_key >= sizeof sparse - 1 && memcmp(p, sparse, sizeof sparse - 1) == 0;
    a->is_sparse |= is_sparse;
    if (is_key(p, n_key, "path") || is_key(p, n_key, "GNU.sparse.name")) {
        if (memchr(value, 0, n_value))
            return false;
        set_name(t, a, value, n_value);
    } else if (is_key(p, n_key, "size")) {
        a->has_size = parse_decimal(value, n_value, &a->size);
        return a->has_size;
    }
    return true;
}

/* "LEN key=value\n", one after the other; LEN counts all of it. */
static bool use_records(struct sv_tar *t, struct about *a)
{
    const char *p = sv_buf_cstr(&t->extra), *end = p + t->extra.len;
    while (p < end) {
        const char *space = memchr(p, ' ', (size_t)(end - p));
        uint64_t len;
        if (!space || !parse_decimal(p, (size_t)(space - p), &len) || len > (uint64_t)(end - p) ||
            len < (uint64_t)(space - p) + 2 || p[len - 1] != '\n' ||
            !use_record(t, a, space + 1, (size_t)len - (size_t)(space - p) - 2))
            return false;
        p += len;
    }
    return true;
}

/* The content of such a header, whole. */
static int read_extra(struct sv_tar *t, uint64_t bytes, struct sv_err *err)
{
    if (bytes > EXTRA_MAX)
        return damaged(t, "a header of more than 1 MiB", err);
    int more = sv_input_need(t->in, (size_t)bytes, err);
    if (more <= 0)
        return more < 0 ? more : damaged(t, "the archive breaks off: its end is missing", err);
    sv_buf_clear(&t->extra);
    sv_buf_add(&t->extra, t->in->data, (size_t)bytes);
    return 0;
}

static int use_extra(struct sv_tar *t, struct about *a, uint8_t type, uint64_t bytes,
                     struct sv_err *err)
{
    int code = set_next(t, bytes, err);
    if (code < 0 || type == 'g' || type == 'K')
        return code; /* for all members: nothing that is needed; the target of a link */
    code = read_extra(t, bytes, err);
    if (code < 0)
        return code;
    if (type == 'L')
        set_name(t, a, t->extra.data, strnlen(sv_buf_cstr(&t->extra), t->extra.len));
    else if (!use_records(t, a))
        return damaged(t, "a pax header is damaged", err);
    return 0;
}

/* ---- members ---- */

static const struct kind {
    char type;
    enum sv_tar_kind kind;
    bool has_content; /* whatever the size field says */
} kinds[] = {
    {'0', SV_TAR_FILE, true},    {0, SV_TAR_FILE, true},      {'7', SV_TAR_FILE, true},
    {'1', SV_TAR_LINK, false},   {'2', SV_TAR_LINK, false},   {'3', SV_TAR_DEVICE, false},
    {'4', SV_TAR_DEVICE, false}, {'5', SV_TAR_FOLDER, false}, {'6', SV_TAR_DEVICE, false},
    {'D', SV_TAR_FOLDER, true},  {'V', SV_TAR_FOLDER, false}, {'S', SV_TAR_SPARSE, true},
};

static const struct kind *kind_of(uint8_t type)
{
    static const struct kind other = {0, SV_TAR_OTHER, true};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if ((uint8_t)kinds[i].type == type)
            return &kinds[i];
    return &other;
}

static void name_by_header(struct sv_tar *t, const uint8_t *head)
{
    size_t n_name = strnlen((const char *)head + NAME_AT, NAME_BYTES);
    size_t n_prefix = memcmp(head + MAGIC_AT, "ustar", 6) == 0
                          ? strnlen((const char *)head + PREFIX_AT, PREFIX_BYTES)
                          : 0;
    sv_buf_clear(&t->name);
    sv_buf_add(&t->name, head + PREFIX_AT, n_prefix);
    if (n_prefix)
        sv_buf_byte(&t->name, '/');
    sv_buf_add(&t->name, head + NAME_AT, n_name);
}

/* The blocks between the header of an old sparse file and its content. */
static int skip_sparse_map(struct sv_tar *t, bool has_more, struct sv_err *err)
{
    while (has_more) {
        int more = need_block(t, err);
        if (more < 0)
            return more;
        has_more = t->in->data[SPARSE_NEXT_AT] != 0;
        sv_input_skip(t->in, SV_TAR_BLOCK);
        if (t->in->pos > t->limit)
            return set_next(t, 0, err);
    }
    return 0;
}

/* The header of a member is in the window. */
static int take_member(struct sv_tar *t, const struct about *a, uint64_t size,
                       struct sv_tar_member *m, struct sv_err *err)
{
    const uint8_t *head = t->in->data;
    uint8_t type = head[TYPE_AT];
    const struct kind *kind = kind_of(type);
    bool has_map = type == 'S' && head[SPARSE_MORE_AT] != 0;
    if (!a->has_name)
        name_by_header(t, head);
    sv_input_skip(t->in, SV_TAR_BLOCK);
    m->name = sv_buf_cstr(&t->name);
    m->kind = kind->kind;
    m->bytes = !kind->has_content ? 0 : a->has_size ? a->size : size;
    size_t len = strlen(m->name);
    if (m->kind == SV_TAR_FILE && len > 0 && m->name[len - 1] == '/')
        m->kind = SV_TAR_FOLDER; /* as they were before there was a type for them */
    if (m->kind == SV_TAR_FILE && a->is_sparse)
        m->kind = SV_TAR_SPARSE;
    int code = skip_sparse_map(t, has_map, err);
    if (code >= 0)
        code = set_next(t, m->bytes, err);
    return code < 0 ? code : 1;
}

int sv_tar_next(struct sv_tar *t, struct sv_tar_member *m, struct sv_err *err)
{
    struct about about = {0};
    for (;;) {
        uint64_t size;
        int code = skip_to(t, t->next, err);
        if (code >= 0)
            code = need_block(t, err);
        if (code < 0)
            return code;
        if (is_zero(t->in->data))
            return 0;
        if (!has_sum(t->in->data) || !parse_size(t->in->data, &size))
            return damaged(t, "the archive is damaged: this is no header of a file", err);
        uint8_t type = t->in->data[TYPE_AT];
        if (type == 0 || !strchr("xXgLK", type))
            return take_member(t, &about, size, m, err);
        sv_input_skip(t->in, SV_TAR_BLOCK);
        code = use_extra(t, &about, type, size, err);
        if (code < 0)
            return code;
    }
}

struct sv_tar sv_tar_at(struct sv_input *in, uint64_t limit)
{
    struct sv_tar t = {.in = in, .next = in->pos, .limit = limit};
    sv_buf_init(&t.name, EXTRA_MAX + SV_TAR_BLOCK);
    sv_buf_init(&t.extra, EXTRA_MAX + SV_TAR_BLOCK);
    return t;
}

void sv_tar_fini(struct sv_tar *t)
{
    sv_buf_fini(&t->name);
    sv_buf_fini(&t->extra);
}
