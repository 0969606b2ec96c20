/* B-trees of SQLite's file format, written in one pass: see tree_file.h. Used by export.c only.
 *
 * Leaves are filled in the order of the entries. Of an index, the entry between two pages lives in
 * the page above them, of a table only its number is there. A level is then a list of pages, each
 * with the entry that separates it from the next one, and becomes the level above until one page is
 * left, which is the root that SQLite made. No page is left without an entry: one that would be
 * takes the last of the page before it. */
#include "sql/tree_file.h"

#include "core/base/mem.h"
#include "core/files/write_all.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PAGE      4096u
#define LOCK_PAGE (0x40000000u / PAGE + 1) /* SQLite's locks are there: never used for data */
#define PIECE     (256u * PAGE)
#define CELL_MAX  (PAGE - 35 + 32)

enum { INDEX_INNER = 2, TABLE_INNER = 5, INDEX_LEAF = 10, TABLE_LEAF = 13 };

struct sv_tree_file {
    int fd;
    uint32_t n_pages, change;
    uint8_t *piece; /* pages that are not written yet, the first is piece_first */
    uint32_t piece_first;
    size_t piece_len;
    int error; /* errno of the first failure */
};

struct page {
    uint8_t bytes[PAGE];
    unsigned head, n, content, last; /* last: bytes of the newest cell */
};

/* A page below, and the number of the entry that separates it from the next one. */
struct child {
    uint32_t page;
    uint64_t key;
};

struct level {
    struct child *items;
    size_t n, cap;
};

size_t sv_tree_payload_max(bool is_index)
{
    return is_index ? (PAGE - 12) * 64 / 255 - 23 : PAGE - 35;
}

/* ---- numbers ---- */

static void put_u16(uint8_t *at, unsigned v)
{
    at[0] = (uint8_t)(v >> 8);
    at[1] = (uint8_t)v;
}

static void put_u32(uint8_t *at, uint32_t v)
{
    put_u16(at, v >> 16);
    put_u16(at + 2, v & 0xffff);
}

static uint32_t get_u32(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

size_t sv_tree_put_varint(uint8_t *out, uint64_t v)
{
    uint8_t reversed[10];
    size_t n = 0;
    if (v < 0x80) {
        out[0] = (uint8_t)v;
        return 1;
    }
    if (v >> 56) { /* nine bytes, the last one has eight bits */
        out[8] = (uint8_t)v;
        v >>= 8;
        for (int i = 7; i >= 0; i--, v >>= 7)
            out[i] = (uint8_t)(v & 0x7f) | 0x80;
        return 9;
    }
    for (; v; v >>= 7)
        reversed[n++] = (uint8_t)(v & 0x7f) | 0x80;
    for (size_t i = 0; i < n; i++)
        out[i] = reversed[n - 1 - i];
    out[n - 1] &= 0x7f;
    return n;
}

static unsigned int_bytes(unsigned type)
{
    static const uint8_t bytes[] = {0, 1, 2, 3, 4, 6, 8, 0, 0, 0};
    return bytes[type];
}

unsigned sv_tree_int_type(int64_t v)
{
    if (v == 0 || v == 1)
        return v ? 9 : 8;
    uint64_t u = v < 0 ? ~(uint64_t)v : (uint64_t)v;
    return u < 0x80             ? 1
           : u < 0x8000         ? 2
           : u < 0x800000       ? 3
           : u < 0x80000000     ? 4
           : u < 0x800000000000 ? 5
                                : 6;
}

size_t sv_tree_put_int(uint8_t *out, unsigned type, int64_t v)
{
    unsigned n = int_bytes(type);
    uint64_t u = (uint64_t)v;
    for (unsigned i = 0; i < n; i++)
        out[i] = (uint8_t)(u >> 8 * (n - 1 - i));
    return n;
}

/* ---- the file ---- */

static void write_at(struct sv_tree_file *f, const uint8_t *bytes, size_t len, uint64_t at)
{
    if (!f->error && !sv_write_all_at(f->fd, bytes, len, at))
        f->error = errno;
}

static void flush(struct sv_tree_file *f)
{
    write_at(f, f->piece, f->piece_len, (uint64_t)(f->piece_first - 1) * PAGE);
    f->piece_len = 0;
}

/* Appends a page and returns its number. */
static uint32_t append(struct sv_tree_file *f, const struct page *p)
{
    uint32_t number = ++f->n_pages;
    if (number == LOCK_PAGE || f->piece_len == PIECE)
        flush(f);
    if (number == LOCK_PAGE)
        number = ++f->n_pages;
    if (f->piece_len == 0)
        f->piece_first = number;
    memcpy(f->piece + f->piece_len, p->bytes, PAGE);
    f->piece_len += PAGE;
    return number;
}

int sv_tree_file_open(const char *path, struct sv_tree_file **out, struct sv_err *err)
{
    uint8_t head[100];
    struct sv_tree_file *f = *out = sv_alloc(sizeof *f);
    f->fd = open(path, O_RDWR | O_CLOEXEC);
    ssize_t n = f->fd < 0 ? -1 : pread(f->fd, head, sizeof head, 0);
    if (n < 0) {
        int code = sv_err_sys(err, "%.300s: cannot open", path);
        sv_tree_file_close(f, NULL);
        *out = NULL;
        return code;
    }
    /* Page size, no reserved bytes, no pages about pages (auto_vacuum), text as UTF-8. */
    if (n != sizeof head || head[16] != PAGE >> 8 || head[17] != 0 || head[20] != 0 ||
        get_u32(head + 52) != 0 || get_u32(head + 56) != 1) {
        sv_tree_file_close(f, NULL);
        *out = NULL;
        return sv_error(err, SV_ELIMIT, "%.300s: SQLite made an unusual file", path);
    }
    f->change = get_u32(head + 24);
    f->n_pages = get_u32(head + 28);
    f->piece = sv_alloc(PIECE);
    return 0;
}

int sv_tree_file_close(struct sv_tree_file *f, struct sv_err *err)
{
    if (f->piece) {
        uint8_t number[4];
        flush(f);
        put_u32(number, f->n_pages);
        write_at(f, number, 4, 28);
        put_u32(number, f->change + 1);
        write_at(f, number, 4, 24);
        write_at(f, number, 4, 92); /* the number of pages is that of this change */
    }
    if (f->fd >= 0 && close(f->fd) < 0 && !f->error)
        f->error = errno;
    int error = f->error;
    free(f->piece);
    free(f);
    if (!error || !err)
        return 0;
    errno = error;
    return sv_err_sys(err, "cannot write the database");
}

/* ---- pages ---- */

static void page_begin(struct page *p, unsigned type)
{
    memset(p->bytes, 0, PAGE);
    p->bytes[0] = (uint8_t)type;
    p->head = type == INDEX_INNER || type == TABLE_INNER ? 12 : 8;
    p->n = 0;
    p->content = PAGE;
}

static bool page_add(struct page *p, const uint8_t *cell, size_t len)
{
    if (p->head + 2 * (p->n + 1) + len > p->content)
        return false;
    p->content -= (unsigned)len;
    p->last = (unsigned)len;
    memcpy(p->bytes + p->content, cell, len);
    put_u16(p->bytes + p->head + 2 * p->n, p->content);
    p->n++;
    return true;
}

static void page_drop_last(struct page *p)
{
    p->n--;
    memset(p->bytes + p->content, 0, p->last);
    p->content += p->last;
    put_u16(p->bytes + p->head + 2 * p->n, 0);
}

static void page_end(struct page *p)
{
    put_u16(p->bytes + 3, p->n);
    put_u16(p->bytes + 5, p->content);
}

static void level_add(struct level *l, uint32_t page, uint64_t key)
{
    SV_APPEND(l->items, l->n, l->cap) = (struct child){page, key};
}

/* The last page of a level: if it is the only one it becomes the root. */
static void end_level(struct sv_tree_file *f, uint32_t root, struct page *p, struct level *l)
{
    page_end(p);
    if (l->n == 0)
        write_at(f, p->bytes, PAGE, (uint64_t)(root - 1) * PAGE);
    else
        level_add(l, append(f, p), 0);
}

static void next_page(struct sv_tree_file *f, struct page *p, struct level *l, uint64_t key)
{
    page_end(p);
    level_add(l, append(f, p), key);
    page_begin(p, p->bytes[0]);
}

/* ---- trees ---- */

/* A cell of a leaf; of an index the same follows the number of the page in a cell above. */
static size_t entry_cell(const struct sv_page_tree *t, uint64_t i, uint8_t *cell)
{
    uint8_t record[PAGE];
    size_t len = t->record(t->ctx, i, record), n = sv_tree_put_varint(cell, len);
    if (!t->is_index)
        n += sv_tree_put_varint(cell + n, i + 1);
    memcpy(cell + n, record, len);
    return n + len;
}

static void fill_leaves(struct sv_tree_file *f, uint32_t root, const struct sv_page_tree *t,
                        struct level *l)
{
    struct page p;
    uint8_t cell[CELL_MAX];
    page_begin(&p, t->is_index ? INDEX_LEAF : TABLE_LEAF);
    for (uint64_t i = 0; i < t->n; i++) {
        size_t len = entry_cell(t, i, cell);
        if (page_add(&p, cell, len))
            continue;
        if (!t->is_index) {
            next_page(f, &p, l, i); /* row i is the last one of it */
        } else if (i + 1 < t->n) {
            next_page(f, &p, l, i); /* the entry itself goes up */
            continue;
        } else {
            page_drop_last(&p);
            next_page(f, &p, l, i - 1);
        }
        page_add(&p, cell, len);
    }
    end_level(f, root, &p, l);
}

static size_t inner_cell(const struct sv_page_tree *t, const struct child *c, uint8_t *cell)
{
    put_u32(cell, c->page);
    return 4 +
           (t->is_index ? entry_cell(t, c->key, cell + 4) : sv_tree_put_varint(cell + 4, c->key));
}

static void fill_above(struct sv_tree_file *f, uint32_t root, const struct sv_page_tree *t,
                       const struct level *below, struct level *l)
{
    struct page p;
    uint8_t cell[CELL_MAX];
    page_begin(&p, t->is_index ? INDEX_INNER : TABLE_INNER);
    for (size_t i = 0; i + 1 < below->n; i++) {
        if (page_add(&p, cell, inner_cell(t, &below->items[i], cell)))
            continue;
        /* This child becomes the last one of the page. If only one more followed, the next page
         * would have no cell. */
        if (i + 2 == below->n) {
            page_drop_last(&p);
            i--;
        }
        put_u32(p.bytes + 8, below->items[i].page);
        next_page(f, &p, l, below->items[i].key);
    }
    put_u32(p.bytes + 8, below->items[below->n - 1].page);
    end_level(f, root, &p, l);
}

int sv_tree_fill(struct sv_tree_file *f, uint32_t root, const struct sv_page_tree *tree,
                 struct sv_err *err)
{
    struct level below = {0};
    fill_leaves(f, root, tree, &below);
    while (below.n > 1 && !f->error) {
        struct level above = {0};
        fill_above(f, root, tree, &below, &above);
        free(below.items);
        below = above;
    }
    free(below.items);
    errno = f->error;
    return f->error ? sv_err_sys(err, "cannot write the database") : 0;
}
