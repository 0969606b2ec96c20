/* The code objects that the kernel programs have sent, and the texts of their frames. Called by
 * stacks.c.
 *
 * Their bytes are of other users' processes: lengths are checked, texts are made valid. */
#include "record/stacks/python.h"
#include "core/base/map.h"
#include "core/base/mem.h"
#include "core/base/python_place.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CODES_MAX = 1 << 17 };

struct code {
    uint64_t key; /* in by_code */
    uint32_t pid;
    char *name, *file; /* the file without folders that everybody has */
    uint8_t *table;
    size_t n;
    int first_line;
};

struct sv_python_codes {
    struct sv_map by_code; /* process and address → index + 1 */
    struct code *codes;
    size_t n, cap;
};

struct sv_python_codes *sv_python_codes_new(void)
{
    return sv_alloc(sizeof(struct sv_python_codes));
}

static void free_code(struct code *c)
{
    free(c->name);
    free(c->file);
    free(c->table);
}

void sv_python_codes_free(struct sv_python_codes *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < c->n; i++)
        free_code(&c->codes[i]);
    free(c->codes);
    sv_map_fini(&c->by_code);
    free(c);
}

static uint64_t key_of(uint32_t pid, uint64_t code)
{
    return sv_mix64(code ^ (uint64_t)pid << 48) ^ pid;
}

static size_t put_utf8(char *to, uint32_t c)
{
    if (c < 0x20 || c == 0x7f || (c >= 0xd800 && c < 0xe000) || c > 0x10ffff)
        c = '?';
    if (c < 0x80) {
        to[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        to[0] = (char)(0xc0 | c >> 6);
        to[1] = (char)(0x80 | (c & 0x3f));
        return 2;
    }
    if (c < 0x10000) {
        to[0] = (char)(0xe0 | c >> 12);
        to[1] = (char)(0x80 | (c >> 6 & 0x3f));
        to[2] = (char)(0x80 | (c & 0x3f));
        return 3;
    }
    to[0] = (char)(0xf0 | c >> 18);
    to[1] = (char)(0x80 | (c >> 12 & 0x3f));
    to[2] = (char)(0x80 | (c >> 6 & 0x3f));
    to[3] = (char)(0x80 | (c & 0x3f));
    return 4;
}

/* CPython stores characters of one, two or four bytes. */
static char *text_of(const char *bytes, size_t n, unsigned kind)
{
    if (kind != 1 && kind != 2 && kind != 4)
        n = 0;
    char *text = sv_alloc(4 * n + 1), *to = text;
    for (size_t i = 0; n && i + kind <= n; i += kind) {
        uint32_t c = 0;
        memcpy(&c, bytes + i, kind);
        to += put_utf8(to, c);
    }
    return text;
}

bool sv_python_codes_add(struct sv_python_codes *c, const struct sv_wire_code *code, size_t size)
{
    bool is_new;
    if (size < sizeof *code || size - sizeof *code < code->linetable_bytes ||
        code->name_bytes > sizeof code->name || code->file_bytes > sizeof code->file)
        return false;
    if (c->n == CODES_MAX)
        return true; /* its frames have no name */
    uint64_t *at = sv_map_add(&c->by_code, key_of(code->head.tgid, code->code), &is_new);
    if (is_new) {
        c->codes = sv_grow(c->codes, &c->cap, c->n + 1, sizeof *c->codes);
        *at = ++c->n;
    } else {
        free_code(&c->codes[*at - 1]);
    }
    char *file = text_of(code->file, code->file_bytes, code->file_kind);
    const char *shown = sv_python_short_file(file);
    memmove(file, shown, strlen(shown) + 1);
    struct code *x = &c->codes[*at - 1];
    *x = (struct code){.key = key_of(code->head.tgid, code->code),
                       .pid = code->head.tgid,
                       .name = text_of(code->name, code->name_bytes, code->name_kind),
                       .file = file,
                       .first_line = code->first_line < INT32_MAX ? (int)code->first_line : 0,
                       .n = code->linetable_bytes};
    x->table = sv_alloc(x->n + 1);
    memcpy(x->table, code + 1, x->n);
    return true;
}

void sv_python_codes_end(struct sv_python_codes *c, uint32_t pid)
{
    for (size_t i = 0; i < c->n;) {
        struct code *x = &c->codes[i], *last = &c->codes[c->n - 1];
        if (x->pid != pid) {
            i++;
            continue;
        }
        sv_map_remove(&c->by_code, x->key);
        free_code(x);
        if (x != last) {
            uint64_t *at = sv_map_find(&c->by_code, last->key);
            *x = *last;
            if (at)
                *at = i + 1;
        }
        c->n--;
    }
}

size_t sv_python_frame(const struct sv_python_codes *c, uint32_t pid,
                       const struct sv_wire_pyframe *frame, bool has_files, char *text, size_t max)
{
    const uint64_t *at = sv_map_find(&c->by_code, key_of(pid, frame->code));
    const struct code *x = at ? &c->codes[*at - 1] : NULL;
    if (!x || !x->name[0])
        return 0;
    int line = sv_python_line(x->table, x->n, x->first_line, frame->at), n;
    if (!has_files || !x->file[0])
        n = snprintf(text, max, "%s", x->name);
    else if (line > 0)
        n = snprintf(text, max, "%s (%s:%d)", x->name, x->file, line);
    else
        n = snprintf(text, max, "%s (%s)", x->name, x->file);
    return (size_t)n < max ? (size_t)n : max - 1;
}
