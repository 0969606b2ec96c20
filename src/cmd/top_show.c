/* The sums of `stave top` as lines for a screen, a pipe or a program. Called by top.c. */
#include "cmd/top.h"

#include "cli/console.h"
#include "core/base/json.h"
#include "core/base/mem.h"
#include "core/base/printable.h"
#include "core/base/utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_LEAST = 12 };

static const char *const table_keys[SV_TOP_TABLES] = {"functions", "waits", "files", "states"};

/* ---- order ---- */

static int64_t weight(const struct sv_top_row *row, enum sv_top_table table,
                      const struct sv_top_view *v)
{
    const struct sv_top_sum *s = v->is_all ? &row->all : &row->now;
    switch (table) {
    case SV_TOP_FUNCTIONS: return (int64_t)(v->order == SV_TOP_BY_TOTAL ? s->more : s->n);
    case SV_TOP_FILES: return v->order == SV_TOP_BY_TOTAL ? s->ns : (int64_t)s->more;
    default: return s->ns;
    }
}

struct ranked {
    int64_t weight, second;
    const struct sv_top_row *row;
};

static int by_weight(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    if (x->weight != y->weight)
        return x->weight > y->weight ? -1 : 1;
    if (x->second != y->second)
        return x->second > y->second ? -1 : 1;
    return x->row->name < y->row->name ? -1 : x->row->name > y->row->name;
}

/* Rows that have something, the largest first; to be freed. */
static struct ranked *rank(const struct sv_top *t, enum sv_top_table table,
                           const struct sv_top_view *v, size_t *n)
{
    const struct sv_top_rows *r = &t->tables[table];
    struct ranked *found = sv_alloc((r->n + 1) * sizeof *found);
    *n = 0;
    for (size_t i = 0; i < r->n; i++) {
        const struct sv_top_sum *s = v->is_all ? &r->rows[i].all : &r->rows[i].now;
        if (s->ns > 0 || s->n > 0 || s->more > 0)
            found[(*n)++] = (struct ranked){weight(&r->rows[i], table, v),
                                            (int64_t)(s->more + s->n) + s->ns, &r->rows[i]};
    }
    qsort(found, *n, sizeof *found, by_weight);
    return found;
}

static double share(double part, double whole)
{
    return whole > 0 ? part / whole : 0;
}

static int64_t state_ns(const struct sv_top *t, const struct sv_top_view *v, const char *name)
{
    const struct sv_top_rows *r = &t->tables[SV_TOP_STATES];
    sv_str wanted = name ? sv_dict_find_str(t->names, name, strlen(name)) : 0;
    int64_t ns = 0;
    for (size_t i = 0; i < r->n; i++)
        if (!name || (wanted && r->rows[i].name == wanted))
            ns += v->is_all ? r->rows[i].all.ns : r->rows[i].now.ns;
    return ns;
}

static int64_t length_ns(const struct sv_top *t, const struct sv_top_view *v)
{
    int64_t ns = t->now_ns - (v->is_all ? t->began_ns : t->from_ns);
    return ns > 0 ? ns : 1;
}

/* ---- lines ---- */

struct lines {
    struct sv_buf *to;
    unsigned width, left; /* left: lines that fit */
};

/* Cuts at the width, so that no line wraps. */
static void put_line(struct lines *l, const char *text)
{
    size_t len = strlen(text), at = 0;
    unsigned columns = 0;
    if (l->left == 0)
        return;
    while (at < len && columns < l->width) {
        size_t next = at + 1;
        while (next < len && ((uint8_t)text[next] & 0xc0) == 0x80)
            next++;
        at = next;
        columns++;
    }
    sv_buf_add(l->to, text, at);
    sv_buf_byte(l->to, '\n');
    l->left--;
}

/* Printable, and of a long one its end, which says more of a path and of "f (file.py)". */
static const char *shown(const struct sv_top *t, sv_str s, unsigned width, bool is_ascii, char *to,
                         size_t size)
{
    struct sv_text text = sv_dict_text(t->names, s);
    struct sv_buf b;
    sv_buf_init(&b, 1u << 20);
    sv_buf_printable(&b, text.bytes, text.len);
    const char *from = sv_buf_cstr(&b);
    size_t columns = sv_utf8_columns(from, strlen(from));
    const char *dots = is_ascii ? "..." : "…";
    unsigned room = width - (is_ascii ? 3 : 1);
    bool is_cut = columns > width;
    for (; columns > room && is_cut && *from; columns--)
        do
            from++;
        while (((uint8_t)*from & 0xc0) == 0x80);
    snprintf(to, size, "%s%s", is_cut ? dots : "", from);
    sv_buf_fini(&b);
    return to;
}

/* The words of people for the scheduler's states; others are reasons of waits, which stay. */
static const char *state_label(struct sv_text name)
{
    static const struct {
        const char *state, *label;
    } labels[] = {{"Running", "on a CPU"},      {"Runnable", "run queue"},
                  {"Preempted", "run queue"},   {"Blocked on I/O", "disk"},
                  {"Blocked", "in the kernel"}, {"Sleeping", "sleeping"},
                  {"Stopped", "stopped"}};
    for (size_t i = 0; i < sizeof labels / sizeof *labels; i++)
        if (name.len == strlen(labels[i].state) && !memcmp(name.bytes, labels[i].state, name.len))
            return labels[i].label;
    return NULL;
}

enum { STATES_MAX = 32 };
struct state {
    char name[48];
    double ns;
};

static int by_ns(const void *a, const void *b)
{
    double x = ((const struct state *)a)->ns, y = ((const struct state *)b)->ns;
    return (x < y) - (x > y);
}

/* Whole items only: one that does not fit into the line is left out, with those behind it. */
static void put_states(struct lines *l, const struct sv_top *t, const struct sv_top_view *v)
{
    char text[512];
    struct state states[STATES_MAX];
    size_t n, n_states = 0, at;
    struct ranked *rows = rank(t, SV_TOP_STATES, v, &n);
    double all = (double)state_ns(t, v, NULL);
    for (size_t i = 0; i < n && n_states < STATES_MAX; i++) {
        char name[48];
        const char *label = state_label(sv_dict_text(t->names, rows[i].row->name));
        size_t k = 0;
        if (!label)
            label = shown(t, rows[i].row->name, 40, v->is_ascii, name, sizeof name);
        while (k < n_states && strcmp(states[k].name, label) != 0)
            k++;
        if (k == n_states) {
            states[n_states++].ns = 0;
            snprintf(states[k].name, sizeof states[k].name, "%s", label);
        }
        states[k].ns += (double)rows[i].weight;
    }
    qsort(states, n_states, sizeof *states, by_ns);
    at = (size_t)snprintf(text, sizeof text, "Threads:");
    for (size_t i = 0; i < n_states; i++) {
        char item[80];
        int len = snprintf(item, sizeof item, "%s %s %.0f %%", i ? "," : "", states[i].name,
                           100 * share(states[i].ns, all));
        if (100 * states[i].ns < all / 2 || at + (size_t)len > l->width ||
            at + (size_t)len >= sizeof text)
            break;
        memcpy(text + at, item, (size_t)len + 1);
        at += (size_t)len;
    }
    if (n)
        put_line(l, text);
    free(rows);
}

static void put_head(struct lines *l, const struct sv_top *t, const struct sv_top_view *v)
{
    char text[600], a[32], b[32];
    int64_t ns = length_ns(t, v);
    snprintf(text, sizeof text, "stave top  %.200s  %.0f s%s", v->what,
             (double)(t->now_ns - t->began_ns) / 1e9, v->is_paused ? "  (paused)" : "");
    put_line(l, text);
    int n = snprintf(text, sizeof text, "CPU %.0f %%, %llu samples",
                     100 * share((double)state_ns(t, v, "Running"), (double)ns),
                     (unsigned long long)(v->is_all ? t->samples_all : t->samples_now));
    if (t->has_totals && !v->is_all)
        n += snprintf(text + n, sizeof text - (size_t)n, ", read %s/s, written %s/s",
                      sv_human_bytes(a, (uint64_t)((double)(t->read_bytes - t->read_before) * 1e9 /
                                                   (double)ns)),
                      sv_human_bytes(b, (uint64_t)((double)(t->written_bytes - t->written_before) *
                                                   1e9 / (double)ns)));
    if (t->lost)
        n +=
            snprintf(text + n, sizeof text - (size_t)n, ", %llu lost", (unsigned long long)t->lost);
    snprintf(text + n, sizeof text - (size_t)n, "; %s", v->by);
    put_line(l, text);
    put_states(l, t, v);
}

static void put_row(struct lines *l, const struct sv_top *t, enum sv_top_table table,
                    const struct sv_top_view *v, const struct sv_top_row *row)
{
    char text[2048], name[1024], a[32], b[32];
    const struct sv_top_sum *s = v->is_all ? &row->all : &row->now;
    double samples = (double)(v->is_all ? t->samples_all : t->samples_now);
    unsigned rest = l->width > 30 + NAME_LEAST ? l->width - 30 : NAME_LEAST;
    switch (table) {
    case SV_TOP_FUNCTIONS:
        rest = l->width > 18 + NAME_LEAST ? l->width - 18 : NAME_LEAST;
        snprintf(text, sizeof text, "%6.1f %%  %6.1f %%  %s", 100 * share((double)s->n, samples),
                 100 * share((double)s->more, samples),
                 shown(t, row->name, rest, v->is_ascii, name, sizeof name));
        break;
    case SV_TOP_WAITS: {
        char what[64];
        snprintf(text, sizeof text, "%6.1f %%  %6llu  %-10s  %s",
                 100 * share((double)s->ns, (double)length_ns(t, v)), (unsigned long long)s->n,
                 shown(t, row->name, 10, v->is_ascii, what, sizeof what),
                 shown(t, row->in, rest, v->is_ascii, name, sizeof name));
        break;
    }
    default:
        snprintf(text, sizeof text, "%8llu  %10s  %8s  %s", (unsigned long long)s->n,
                 sv_human_bytes(a, s->more), s->ns ? sv_human_ns(b, s->ns) : "-",
                 shown(t, row->name, rest, v->is_ascii, name, sizeof name));
    }
    put_line(l, text);
}

static void put_table(struct lines *l, const struct sv_top *t, enum sv_top_table table,
                      const struct sv_top_view *v, size_t most)
{
    static const char *const heads[] = {"     own     total  function, of the CPU's samples",
                                        "    time   waits  for         in",
                                        "   calls       bytes      time  file"};
    size_t n;
    struct ranked *rows = rank(t, table, v, &n);
    put_line(l, "");
    put_line(l, heads[table]);
    for (size_t i = 0; i < n && i < most; i++)
        put_row(l, t, table, v, rows[i].row);
    if (n == 0)
        put_line(l, "       -");
    free(rows);
}

void sv_top_show(const struct sv_top *t, const struct sv_top_view *v, struct sv_buf *to)
{
    struct lines l = {to, v->width, v->height ? v->height - (v->keys != NULL) : 100000};
    put_head(&l, t, v);
    size_t most = v->rows;
    unsigned used = 3 + 6; /* the head; two lines for each table */
    if (v->height && v->only < 0)
        most = l.left + 3 > used ? (l.left + 3 - used) / 3 : 1;
    else if (v->height)
        most = l.left;
    for (int i = 0; i < SV_TOP_STATES; i++)
        if (v->only < 0 || v->only == i)
            put_table(&l, t, (enum sv_top_table)i, v, most);
    l.left = v->keys ? 1 : 0;
    if (v->keys)
        put_line(&l, v->keys);
}

/* ---- for programs ---- */

static void put_json_row(struct sv_json *j, const struct sv_top *t, enum sv_top_table table,
                         const struct sv_top_view *v, const struct sv_top_row *row)
{
    const struct sv_top_sum *s = v->is_all ? &row->all : &row->now;
    double samples = (double)(v->is_all ? t->samples_all : t->samples_now);
    struct sv_text name = sv_dict_text(t->names, row->name), in = sv_dict_text(t->names, row->in);
    sv_json_begin(j, '{');
    sv_json_put(j, "name", text, name.bytes, name.len);
    if (table == SV_TOP_FUNCTIONS) {
        sv_json_put(j, "own", double, share((double)s->n, samples));
        sv_json_put(j, "total", double, share((double)s->more, samples));
    } else if (table == SV_TOP_FILES) {
        sv_json_put(j, "bytes", u64, s->more);
        sv_json_put(j, "calls", u64, s->n);
        sv_json_put(j, "ns", i64, s->ns);
    } else {
        sv_json_put(j, "ns", i64, s->ns);
        sv_json_put(j, "n", u64, s->n);
    }
    if (in.len)
        sv_json_put(j, "in", text, in.bytes, in.len);
    sv_json_end(j);
}

void sv_top_json(const struct sv_top *t, const struct sv_top_view *v, struct sv_buf *to)
{
    struct sv_json j;
    sv_json_init(&j, to);
    sv_json_begin(&j, '{');
    sv_json_put(&j, "version", u64, 1);
    sv_json_put(&j, "what", cstr, v->what);
    sv_json_put(&j, "by", cstr, v->by);
    sv_json_put(&j, "elapsed_ns", i64, t->now_ns - t->began_ns);
    sv_json_put(&j, "ns", i64, length_ns(t, v));
    sv_json_put(&j, "cpu", double,
                share((double)state_ns(t, v, "Running"), (double)length_ns(t, v)));
    sv_json_put(&j, "samples", u64, v->is_all ? t->samples_all : t->samples_now);
    sv_json_put(&j, "lost", u64, t->lost);
    if (t->has_totals) {
        sv_json_put(&j, "read_bytes", u64, t->read_bytes - t->read_before);
        sv_json_put(&j, "written_bytes", u64, t->written_bytes - t->written_before);
    }
    for (int i = 0; i < SV_TOP_TABLES; i++) {
        size_t n;
        struct ranked *rows = rank(t, (enum sv_top_table)i, v, &n);
        sv_json_key(&j, table_keys[i], strlen(table_keys[i]));
        sv_json_begin(&j, '[');
        for (size_t k = 0; k < n && k < v->rows; k++)
            put_json_row(&j, t, (enum sv_top_table)i, v, rows[k].row);
        sv_json_end(&j);
        free(rows);
    }
    sv_json_end(&j);
    sv_buf_byte(to, '\n');
}
