/* Folded stacks, for flame graph tools: a form of `stave export`. */
#include "cli/console.h"
#include "cmd/export.h"
#include "core/base/printable.h"
#include "core/files/output.h"
#include "stats/calltree.h"

#define FRAMES_MAX 1024 /* of a line */

/* A name in a line of its own rules: printable, no separator. */
static void put_name(struct sv_buf *b, const struct sv_call_node *x)
{
    size_t start = b->len;
    sv_buf_printable(b, x->name, x->len);
    for (size_t i = start; i < b->len; i++)
        if (b->data[i] == ';')
            b->data[i] = ':';
}

/* Returns false when the path was cut to its innermost FRAMES_MAX frames. */
static bool put_path(struct sv_buf *b, const struct sv_calltree *c, size_t call)
{
    const struct sv_call_node *path[FRAMES_MAX];
    size_t n = 0;
    for (; call != 0 && n < FRAMES_MAX; call = c->calls[call].parent)
        path[n++] = &c->calls[call];
    while (n-- > 0) {
        put_name(b, path[n]);
        if (n)
            sv_buf_byte(b, ';');
    }
    return call == 0;
}

/* One line per call path: stack samples counted, or, where a trace has none, microseconds of the
 * slices' own time. */
static void make_tree(struct sv_calltree *c, const struct sv_trace *t, bool *has_samples)
{
    sv_calltree_make(c, &t, 1, &(struct sv_calltree_options){.of_samples = true});
    *has_samples = c->n > 1;
    if (!*has_samples) {
        sv_calltree_fini(c);
        sv_calltree_make(c, &t, 1, &(struct sv_calltree_options){0});
    }
}

static int write_folded(const struct sv_export_options *o, const struct sv_trace *t,
                        struct sv_err *err)
{
    struct sv_calltree c;
    struct sv_output *out;
    struct sv_buf line;
    bool has_samples;
    uint64_t n_cut = 0;
    int code = sv_output_open(o->output, SV_OUTPUT_RENAME, SV_PLAIN, &out, err);
    if (code < 0)
        return code;
    make_tree(&c, t, &has_samples);
    sv_buf_init(&line, (size_t)1 << 30);
    for (size_t i = 1; i < c.n && code >= 0; i++) {
        uint64_t n = has_samples ? c.calls[i].count[0] : (uint64_t)c.calls[i].self_ns[0] / 1000;
        if (n == 0)
            continue;
        n_cut += !put_path(&line, &c, i);
        sv_buf_printf(&line, " %llu\n", (unsigned long long)n);
        if (line.failed)
            code = sv_error(err, SV_ELIMIT, "a call path is too long for a line");
        sv_output_pass_on(out, &line);
        code = code < 0 ? code : sv_output_failure(out, err);
    }
    if (n_cut)
        sv_console_note("%llu call paths are deeper than %d: their outermost frames are omitted",
                        (unsigned long long)n_cut, FRAMES_MAX);
    sv_buf_fini(&line);
    sv_calltree_fini(&c);
    return sv_export_end(out, code, err);
}

const struct sv_export_form sv_export_folded = {
    .name = "folded",
    .help = "a line per call path with a number, for flame graph tools",
    .about = "folded: one line per call path with a number, for flame graph tools: the number of "
             "stack samples ('stave record --sample') or, in a trace without samples, the self "
             "time of the slices in microseconds.",
    .suffixes = ".folded",
    .needs_no_sqlite = true,
    .to_stdout = true,
    .write_trace = write_folded,
};
