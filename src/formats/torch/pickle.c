/* Python's pickle without Python: the operations that make numbers, texts, lists and dictionaries,
 * on a stack of values. Called by the readers of dumps.
 *
 * A pickle is a program. Its operations that look up or call anything (GLOBAL, REDUCE, BUILD and so
 * on) are refused, as are those that data do not need, each by its name and byte position. Time and
 * memory are in step with the bytes: each operation makes one value at most. */
#include "formats/torch/py_values.h"

#include "core/base/map.h"

#include <stdlib.h>
#include <string.h>

/* Operations of protocols 0 to 5 that are not understood. */
static const struct {
    uint8_t code;
    const char *name;
} refused[] = {
    {'c', "GLOBAL"},       {'R', "REDUCE"},
    {'b', "BUILD"},        {'i', "INST"},
    {'o', "OBJ"},          {0x81, "NEWOBJ"},
    {0x92, "NEWOBJ_EX"},   {0x93, "STACK_GLOBAL"},
    {'P', "PERSID"},       {'Q', "BINPERSID"},
    {0x82, "EXT1"},        {0x83, "EXT2"},
    {0x84, "EXT4"},        {'0', "POP"},
    {'1', "POP_MARK"},     {'2', "DUP"},
    {'F', "FLOAT"},        {'I', "INT"},
    {'L', "LONG"},         {'S', "STRING"},
    {'V', "UNICODE"},      {'g', "GET"},
    {'p', "PUT"},          {'d', "DICT"},
    {'l', "LIST"},         {0x8b, "LONG4"},
    {0x8f, "EMPTY_SET"},   {0x90, "ADDITEMS"},
    {0x91, "FROZENSET"},   {0x96, "BYTEARRAY8"},
    {0x97, "NEXT_BUFFER"}, {0x98, "READONLY_BUFFER"},
    {'T', "BINSTRING"},    {'U', "SHORT_BINSTRING"},
    {'B', "BINBYTES"},     {'C', "SHORT_BINBYTES"},
    {0x8e, "BINBYTES8"},
};

struct machine {
    struct sv_py_values *v;
    const uint8_t *bytes, *p, *end;
    struct sv_py **stack; /* NULL is a mark */
    size_t n, cap;
    struct sv_map memo; /* number → value */
    uint64_t next_memo; /* MEMOIZE counts */
    int64_t at;         /* byte position of the operation */
    struct sv_err *err;
};

/* ---- the stack ---- */

static int cut_short(struct machine *m)
{
    return sv_err_set(m->err, SV_EFORMAT, m->at, "the pickle ends within an operation");
}

static int no_value(struct machine *m)
{
    sv_err_set(m->err, SV_EFORMAT, m->at, "the pickle's stack does not hold what this needs");
    return SV_EFORMAT;
}

static void push(struct machine *m, struct sv_py *value)
{
    SV_APPEND(m->stack, m->n, m->cap) = value;
}

/* The number of values above the newest mark; SIZE_MAX: there is none. */
static size_t above_mark(const struct machine *m)
{
    for (size_t i = m->n; i > 0; i--)
        if (!m->stack[i - 1])
            return m->n - i;
    return SIZE_MAX;
}

static bool take_number(struct machine *m, unsigned n_bytes, uint64_t *out)
{
    *out = 0;
    if ((size_t)(m->end - m->p) < n_bytes)
        return false;
    for (unsigned i = 0; i < n_bytes; i++)
        *out |= (uint64_t)m->p[i] << (8 * i);
    m->p += n_bytes;
    return true;
}

/* ---- values ---- */

static int push_int(struct machine *m, int64_t i, enum sv_py_type type)
{
    struct sv_py *value = sv_py_new(m->v, type);
    value->i = i;
    push(m, value);
    return 0;
}

static int push_text(struct machine *m, unsigned n_bytes)
{
    uint64_t len;
    if (!take_number(m, n_bytes, &len) || len > (uint64_t)(m->end - m->p) || len > UINT32_MAX)
        return cut_short(m);
    struct sv_py *value = sv_py_new(m->v, SV_PY_TEXT);
    value->text = (const char *)m->p;
    value->len = (uint32_t)len;
    m->p += len;
    push(m, value);
    return 0;
}

static int push_real(struct machine *m)
{
    uint64_t bits = 0;
    if (m->end - m->p < 8)
        return cut_short(m);
    for (int i = 0; i < 8; i++) /* the one big-endian number of the format */
        bits = bits << 8 | *m->p++;
    struct sv_py *value = sv_py_new(m->v, SV_PY_REAL);
    memcpy(&value->d, &bits, sizeof value->d);
    push(m, value);
    return 0;
}

/* Two's complement of up to 8 bytes; longer ones are kept as none. */
static int push_long(struct machine *m)
{
    uint64_t len, bits = 0;
    if (!take_number(m, 1, &len) || len > (uint64_t)(m->end - m->p))
        return cut_short(m);
    if (len > 8) {
        m->p += len;
        return push_int(m, 0, SV_PY_NONE);
    }
    (void)take_number(m, (unsigned)len, &bits);
    if (len && len < 8 && bits >> (8 * len - 1))
        bits |= UINT64_MAX << (8 * len);
    return push_int(m, (int64_t)bits, SV_PY_INT);
}

/* The newest n values become a list. */
static int push_list(struct machine *m, size_t n)
{
    struct sv_py *list = sv_py_new(m->v, SV_PY_LIST);
    if (n > m->n)
        return no_value(m);
    for (size_t i = m->n - n; i < m->n; i++) {
        if (!m->stack[i])
            return no_value(m);
        sv_py_append(list, m->stack[i]);
    }
    m->n -= n;
    push(m, list);
    return 0;
}

static int push_tuple(struct machine *m)
{
    size_t n = above_mark(m);
    int code = n == SIZE_MAX ? no_value(m) : push_list(m, n);
    if (code < 0)
        return code;
    m->stack[m->n - 2] = m->stack[m->n - 1]; /* instead of the mark */
    m->n--;
    return 0;
}

/* The newest n values go into the container below them (and below the mark, if there is one). */
static int fill(struct machine *m, enum sv_py_type type, size_t n, bool has_mark)
{
    size_t below = n + has_mark;
    if (n == SIZE_MAX || m->n <= below)
        return no_value(m);
    struct sv_py *to = m->stack[m->n - below - 1];
    if (!sv_py_is(to, type) || (type == SV_PY_DICT && n % 2))
        return no_value(m);
    for (size_t i = m->n - n; i < m->n; i++) {
        if (!m->stack[i])
            return no_value(m);
        sv_py_append(to, m->stack[i]);
    }
    m->n -= below;
    return 0;
}

/* ---- the memo ---- */

static int keep(struct machine *m, uint64_t number)
{
    if (m->n == 0 || !m->stack[m->n - 1])
        return no_value(m);
    *sv_map_add(&m->memo, number, NULL) = (uint64_t)(uintptr_t)m->stack[m->n - 1];
    return 0;
}

static int push_kept(struct machine *m, unsigned n_bytes)
{
    uint64_t number;
    if (!take_number(m, n_bytes, &number))
        return cut_short(m);
    const uint64_t *found = sv_map_find(&m->memo, number);
    if (!found)
        return sv_err_set(m->err, SV_EFORMAT, m->at,
                          "the pickle refers to a value that it has not");
    push(m, (struct sv_py *)(uintptr_t)*found); // NOLINT(performance-no-int-to-ptr)
    return 0;
}

/* ---- operations ---- */

static int refuse(struct machine *m, uint8_t code)
{
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (refused[i].code == code)
            return sv_err_set(
                m->err, SV_EFORMAT, m->at,
                "the pickle has the operation %s; only plain data are read, nothing is "
                "executed",
                refused[i].name);
    return sv_err_set(m->err, SV_EFORMAT, m->at, "0x%02x is no operation of pickle", code);
}

/* Numbers that stand in the operation. */
static int step_number(struct machine *m, uint8_t code)
{
    uint64_t x;
    unsigned n_bytes = code == 'K' ? 1 : code == 'M' ? 2 : 4;
    if (!take_number(m, n_bytes, &x))
        return cut_short(m);
    return push_int(m, code == 'J' ? (int64_t)(int32_t)(uint32_t)x : (int64_t)x, SV_PY_INT);
}

static int step_memo(struct machine *m, uint8_t code)
{
    uint64_t x;
    if (code == 'h' || code == 'j')
        return push_kept(m, code == 'h' ? 1 : 4);
    if (code == 0x94)
        return keep(m, m->next_memo++);
    return take_number(m, code == 'q' ? 1 : 4, &x) ? keep(m, x) : cut_short(m);
}

/* What surrounds the values: the protocol and the lengths of frames. */
static int step_frame(struct machine *m, uint8_t code)
{
    uint64_t x;
    if (!take_number(m, code == 0x80 ? 1 : 8, &x))
        return cut_short(m);
    return code == 0x80 && x > 5 ? sv_err_set(m->err, SV_EFORMAT, m->at,
                                              "protocol %u of pickle is not known", (unsigned)x)
                                 : 0;
}

static int step(struct machine *m, uint8_t code)
{
    switch (code) {
    case 0x80:
    case 0x95: return step_frame(m, code);
    case '(': push(m, NULL); return 0;
    case 'N': return push_int(m, 0, SV_PY_NONE);
    case 0x88:
    case 0x89: return push_int(m, code == 0x88, SV_PY_BOOL);
    case 'J':
    case 'K':
    case 'M': return step_number(m, code);
    case 0x8a: return push_long(m);
    case 'G': return push_real(m);
    case 'X': return push_text(m, 4);
    case 0x8c: return push_text(m, 1);
    case 0x8d: return push_text(m, 8);
    case '}': push(m, sv_py_new(m->v, SV_PY_DICT)); return 0;
    case ']':
    case ')': push(m, sv_py_new(m->v, SV_PY_LIST)); return 0;
    case 0x85:
    case 0x86:
    case 0x87: return push_list(m, code - 0x84u);
    case 't': return push_tuple(m);
    case 'a': return fill(m, SV_PY_LIST, 1, false);
    case 'e': return fill(m, SV_PY_LIST, above_mark(m), true);
    case 's': return fill(m, SV_PY_DICT, 2, false);
    case 'u': return fill(m, SV_PY_DICT, above_mark(m), true);
    case 'q':
    case 'r':
    case 'h':
    case 'j':
    case 0x94: return step_memo(m, code);
    default: return refuse(m, code);
    }
}

int sv_py_unpickle(struct sv_py_values *v, const uint8_t *bytes, size_t len,
                   const struct sv_py **top, struct sv_err *err)
{
    struct machine m = {.v = v, .bytes = bytes, .p = bytes, .end = bytes + len, .err = err};
    int code = 0;
    *top = NULL;
    while (code >= 0) {
        m.at = m.p - bytes;
        if (m.p == m.end)
            code = sv_err_set(err, SV_EFORMAT, m.at, "the pickle ends before its operation STOP");
        else if (*m.p == '.')
            break;
        else
            code = step(&m, *m.p++);
    }
    if (code >= 0 && (m.n != 1 || !m.stack[0]))
        code = no_value(&m);
    if (code >= 0)
        *top = m.stack[0];
    free(m.stack);
    sv_map_fini(&m.memo);
    return code;
}
