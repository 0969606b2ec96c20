/* The table of formats, and the ways to find one: by name, by the suffix of a path, by content.
 *
 * Called by cmd/ and by the tests that run every reader with every writer. A suffix is only a wish
 * for the output; an input is recognised only by its first bytes. */
#include "formats/formats.h"

#include "core/files/out_name.h"
#include "formats/foreign.h"
#include "formats/lines.h"
#include "formats/tar.h"

#include <assert.h>
#include <string.h>

#define PROBE_BYTES 65536

const struct sv_format *const sv_formats[] = {
#define SV_FORMAT(id) &sv_##id##_format,
#include "formats/list.h"
#undef SV_FORMAT
    NULL,
};

/* ---- by name ---- */

const struct sv_format *sv_format_named(const char *name)
{
    for (const struct sv_format *const *f = sv_formats; *f; f++)
        if (strcmp((*f)->name, name) == 0)
            return *f;
    return NULL;
}

const struct sv_dialect *sv_dialect_named(const struct sv_format *f, const char *name)
{
    for (const struct sv_dialect *d = f->dialects; d && d->name; d++)
        if (strcmp(d->name, name) == 0)
            return d;
    return NULL;
}

const struct sv_format *sv_format_of_dialect(const char *name)
{
    for (const struct sv_format *const *f = sv_formats; *f; f++)
        if (sv_dialect_named(*f, name))
            return *f;
    return NULL;
}

/* ---- reading ---- */

bool sv_format_reads(const struct sv_format *f)
{
    return f->open_source || f->lines;
}

int sv_format_open(const struct sv_format *f, struct sv_input *in,
                   const struct sv_read_options *options, struct sv_dict *dict,
                   struct sv_report *report, struct sv_source **out, struct sv_err *err)
{
    return f->lines ? sv_lines_open(f->lines, in, options, dict, report, out)
                    : f->open_source(in, options, dict, report, out, err);
}

/* ---- by suffix ---- */

const struct sv_format *sv_format_for_path(const char *path, enum sv_compression *compression)
{
    sv_name_unpacked(path, compression);
    for (const struct sv_format *const *f = sv_formats; *f; f++)
        if ((*f)->writer && sv_name_suffix(path, (*f)->writer->suffixes, compression))
            return *f;
    return NULL;
}

size_t sv_format_stem(const char *path)
{
    enum sv_compression ignored;
    size_t len = sv_name_unpacked(path, &ignored);
    const struct sv_format *f = sv_format_for_path(path, &ignored);
    size_t n = f ? strlen(sv_name_suffix(path, f->writer->suffixes, &ignored)) : 0;
    return n < len && path[len - n - 1] != '/' ? len - n : len;
}

/* ---- by content ---- */

const struct sv_format *sv_format_probe(struct sv_input *in, struct sv_err *err)
{
    const struct sv_format *best = NULL;
    int best_score = 0;
    if (sv_input_need(in, PROBE_BYTES, err) < 0)
        return NULL;
    if (sv_tar_is(in->data, in->len)) /* its text files are not one text */
        return NULL;
    for (const struct sv_format *const *f = sv_formats; *f; f++) {
        int score = (*f)->probe ? (*f)->probe(in->data, in->len) : 0;
        if (score > best_score) {
            best_score = score;
            best = *f;
        }
    }
    /* Most messages of protobuf are packets of some kind. */
    return best == &sv_perfetto_format && sv_foreign_file(in->data, in->len) ? NULL : best;
}

unsigned sv_format_needs(const struct sv_format *f, struct sv_input *in)
{
    struct sv_err ignored = {0};
    if (!f->needs)
        return (f->needs_date ? SV_NEEDS_DATE : 0u) | (f->needs_zone ? SV_NEEDS_ZONE : 0u);
    return sv_input_need(in, PROBE_BYTES, &ignored) < 0 ? 0 : f->needs(in->data, in->len);
}

struct sv_holds sv_format_holds(const struct sv_format *f, struct sv_input *in)
{
    struct sv_err ignored = {0};
    if ((!f->holds && !f->covers) || sv_input_need(in, PROBE_BYTES, &ignored) < 0)
        return (struct sv_holds){.pid = -1};
    if (f->holds)
        return f->holds(in->data, in->len, in->name);
    bool is_own = f->probe(in->data, in->len) >= 90;
    return (struct sv_holds){f->covers, is_own ? SV_MEASURED : SV_ALIGNED, -1};
}

/* ---- lists ---- */

enum { NAMES_MAX = 128 };

struct names {
    const char *items[NAMES_MAX];
    size_t n;
};

static void add_name(struct names *to, const char *name)
{
    for (size_t i = 0; i < to->n; i++)
        if (strcmp(to->items[i], name) == 0) /* a dialect of two formats */
            return;
    assert(to->n < NAMES_MAX);
    to->items[to->n++] = name;
}

static void add_names(struct names *to, const struct sv_format *f, enum sv_format_list which)
{
    switch (which) {
    case SV_LIST_READERS:
        if (sv_format_reads(f))
            add_name(to, f->name);
        break;
    case SV_LIST_WRITERS:
        if (f->writer)
            add_name(to, f->name);
        break;
    case SV_LIST_SUFFIXES:
        if (f->writer)
            add_name(to, f->writer->suffixes[0]);
        break;
    case SV_LIST_DIALECTS:
        for (const struct sv_dialect *d = f->dialects; d && d->name; d++)
            add_name(to, d->name);
        break;
    }
}

void sv_format_names(struct sv_buf *out, enum sv_format_list which, const struct sv_format *of,
                     const char *between, const char *last)
{
    struct names names = {.n = 0};
    for (const struct sv_format *const *f = sv_formats; *f; f++)
        if (!of || of == *f)
            add_names(&names, *f, which);
    for (size_t i = 0; i < names.n; i++) {
        sv_buf_str(out, i == 0 ? "" : i + 1 < names.n ? between : last);
        sv_buf_str(out, names.items[i]);
    }
}

void sv_format_dialects(struct sv_buf *out)
{
    const char *before = "";
    for (const struct sv_format *const *f = sv_formats; *f; f++) {
        const struct sv_dialect *d = (*f)->dialects;
        for (bool first = true; d && d->name; d++, first = false)
            sv_buf_printf(out, "%s%s%s%s (%s)", first ? before : ", ", first ? (*f)->name : "",
                          first ? ": " : "", d->name, d->help);
        before = (*f)->dialects ? "; " : before;
    }
}
