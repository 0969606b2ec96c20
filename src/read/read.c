/* libstave-read: a loaded trace in other people's programs.
 *
 * A thin layer: files/ loads, analysis/ answers SQL, cmd/ has the reports and pictures. A handle
 * has one lock, since none of them knows threads; what they share between handles does not change
 * after the first call (tests/install checks that the library has no other variables). */
#include <stave/read.h>

#include "cli/console.h"
#include "cmd/plot.h"
#include "cmd/query_shell.h"
#include "core/base/mem.h"
#include "explain/explain.h"
#include "plot/cairo_paint.h"
#include "plot/svg.h"
#include "read/table.h"
#include "subjects/subject.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OUTPUT_MAX ((size_t)2 << 30) /* of a report or picture */

struct stave_read {
    pthread_mutex_t lock;
    struct sv_loaded loaded;
    char *path; /* the first one: messages name it */
    struct sv_sql *sql;
};

/* Reports and pictures ask which options the command line had: none. */
struct sv_common sv_common;

const char *stave_read_version(void)
{
    return SV_VERSION;
}

/* ---- errors ---- */

static enum stave_code public_code(int code)
{
    switch (code) {
    case SV_EUSAGE: return STAVE_EUSAGE;
    case SV_EIO:
    case SV_EINPUT:
    case SV_EHELD: return STAVE_EINPUT;
    case SV_EFORMAT: return STAVE_EFORMAT;
    case SV_ENOMEM: return STAVE_EMEMORY;
    case SV_EFOUND: return STAVE_ENOTHING;
    case SV_EAGAIN: return STAVE_EINTERRUPTED;
    default: return STAVE_EOTHER;
    }
}

static void give_error(struct stave_error *error, int code, const struct sv_err *err)
{
    if (!error)
        return;
    error->code = (int)public_code(code);
    if (err->pos == SV_NO_POS)
        snprintf(error->text, sizeof error->text, "%s", err->msg);
    else
        snprintf(error->text, sizeof error->text, "byte %lld: %s", (long long)err->pos, err->msg);
}

static void begin(struct sv_err *err, struct stave_error *error)
{
    sv_err_clear(err);
    if (error)
        *error = (struct stave_error){.code = STAVE_OK};
}

/* ---- opening ---- */

/* Members that the caller does not know are 0. */
static void take_struct(void *own, size_t own_size, const void *given)
{
    size_t size = 0;
    if (given)
        memcpy(&size, given, sizeof size); /* the first member */
    memset(own, 0, own_size);
    if (size)
        memcpy(own, given, size < own_size ? size : own_size);
}

static int load(struct stave_read *r, const char *const *paths, size_t n,
                const struct stave_read_options *o, struct sv_err *err)
{
    struct sv_load_how how = {
        .from = o->from,
        .strict = o->strict,
        .assume = o->assume,
        .memory_limit_bytes = o->memory_limit,
        .threads = o->threads,
        .index = o->no_index ? SV_INDEX_NOT_USED : SV_INDEX_USED,
    };
    if (n == 0)
        return sv_error(err, SV_EUSAGE, "no trace was given");
    for (size_t i = 0; i < n; i++)
        if (sv_is_database(paths[i]))
            return sv_error(err, SV_EUSAGE,
                            "%.200s: only files can be loaded; 'stave query' asks databases",
                            paths[i]);
    r->path = sv_strndup(paths[0], strlen(paths[0]));
    int code = sv_load_traces(paths, n, &how, &r->loaded, err);
    if (code == SV_EFOUND)
        code = SV_EFORMAT; /* damage, under `strict` */
    r->loaded.in.path = r->path;
    if (code < 0 || !sv_sql_is_built_in())
        return code;
    /* Without a limit: SQLite's is one for the whole process, whose owner may use SQLite, too. */
    struct sv_sql_options options = sv_query_options(&r->loaded, 0);
    return sv_sql_open(r->loaded.trace, &options, &r->sql, err);
}

static pthread_mutex_t loads_cairo = PTHREAD_MUTEX_INITIALIZER; /* one for all handles */
static pthread_once_t is_muted = PTHREAD_ONCE_INIT;

struct stave_read *stave_read_open(const char *const *paths, size_t n,
                                   const struct stave_read_options *options,
                                   struct stave_error *error)
{
    struct stave_read_options o;
    struct sv_err err;
    begin(&err, error);
    pthread_once(&is_muted, sv_console_mute);
    take_struct(&o, sizeof o, options);
    struct stave_read *r = sv_alloc(sizeof *r);
    pthread_mutex_init(&r->lock, NULL);
    int code = load(r, paths, n, &o, &err);
    if (code >= 0)
        return r;
    give_error(error, code, &err);
    stave_read_close(r);
    return NULL;
}

void stave_read_close(struct stave_read *r)
{
    if (!r)
        return;
    sv_sql_close(r->sql);
    if (r->loaded.dict)
        sv_loaded_free(&r->loaded);
    pthread_mutex_destroy(&r->lock);
    free(r->path);
    free(r);
}

uint64_t stave_read_damage(struct stave_read *r)
{
    return sv_report_count(&r->loaded.in.report, SV_DAMAGE);
}

/* ---- SQL ---- */

struct stave_read_table *stave_read_query(struct stave_read *r, const char *sql,
                                          struct stave_error *error)
{
    return stave_read_query_with(r, sql, NULL, 0, error);
}

/* The values as SQL takes them; false: one has a type that is none. */
static bool take_values(const struct stave_read_value *given, size_t n, struct sv_cell *cells,
                        const char **names)
{
    for (size_t i = 0; i < n; i++) {
        const struct stave_read_value *v = &given[i];
        names[i] = v->name ? v->name : "";
        if (v->type < STAVE_READ_NULL || v->type >= STAVE_READ_MIXED)
            return false;
        cells[i] = (struct sv_cell){.type = (enum sv_cell_type)v->type,
                                    .i = v->i,
                                    .d = v->real,
                                    .text = v->bytes ? v->bytes : "",
                                    .len = v->bytes ? v->len : 0};
    }
    return true;
}

struct stave_read_table *stave_read_query_with(struct stave_read *r, const char *sql,
                                               const struct stave_read_value *values, size_t n,
                                               struct stave_error *error)
{
    struct sv_err err;
    begin(&err, error);
    struct sv_cell *cells = sv_alloc((n + 1) * sizeof *cells);
    const char **names = sv_alloc((n + 1) * sizeof *names);
    struct sv_sql_values with = {cells, n && values[0].name ? names : NULL, n};
    struct stave_read_table *t = sv_read_table_new();
    pthread_mutex_lock(&r->lock);
    int code =
        !take_values(values, n, cells, names)
            ? sv_error(&err, SV_EUSAGE, "a value for a parameter has no type that SQL knows")
        : r->sql
            ? sv_sql_run_with(r->sql, sql, &with, sv_read_table_sink(t), &err)
            : sv_error(
                  &err, SV_ELIMIT,
                  "libstave-read was built without SQLite: install libsqlite3-dev and build again");
    pthread_mutex_unlock(&r->lock);
    free(cells);
    free(names);
    if (code >= 0)
        return t;
    give_error(error, code, &err);
    stave_read_table_free(t);
    return NULL;
}

void stave_read_interrupt(struct stave_read *r)
{
    if (r->sql)
        sv_sql_interrupt(r->sql);
}

/* ---- reports and pictures ---- */

/* The buffer's bytes become the caller's. */
static char *give_text(int code, struct sv_buf *b, size_t *len, struct sv_err *err,
                       struct stave_error *error)
{
    if (code >= 0 && b->failed)
        code = sv_error(err, SV_ELIMIT, "the result is larger than 2 GB");
    if (code < 0) {
        give_error(error, code, err);
        sv_buf_fini(b);
        return NULL;
    }
    char *text = sv_strndup(b->len ? (const char *)b->data : "", b->len);
    if (len)
        *len = b->len;
    sv_buf_fini(b);
    return text;
}

char *stave_read_report(struct stave_read *r, const char *subject, size_t rows, size_t *len,
                        struct stave_error *error)
{
    struct sv_err err;
    struct sv_buf json;
    begin(&err, error);
    sv_buf_init(&json, OUTPUT_MAX);
    pthread_mutex_lock(&r->lock);
    int code = sv_report_json(subject, r->loaded.trace, rows ? rows : SIZE_MAX, &json, &err);
    pthread_mutex_unlock(&r->lock);
    if (code == SV_EINPUT) /* the trace was read: it has nothing on the subject */
        code = SV_EFOUND;
    return give_text(code, &json, len, &err, error);
}

char *stave_read_explain(struct stave_read *r, const char *unit, size_t *len,
                         struct stave_error *error)
{
    struct sv_err err;
    struct sv_buf json;
    int code = 0;
    begin(&err, error);
    sv_buf_init(&json, OUTPUT_MAX);
    pthread_mutex_lock(&r->lock);
    if (r->loaded.trace->slices.n || r->loaded.trace->counters.n) {
        struct sv_explanation e;
        sv_explain(&e, r->loaded.trace, r->path, &(struct sv_explain_options){.unit = unit});
        sv_explain_json(&e, &json);
        sv_explanation_fini(&e);
    } else {
        code = sv_error(&err, SV_EFOUND, "%s has no events: there is nothing to explain", r->path);
    }
    pthread_mutex_unlock(&r->lock);
    return give_text(code, &json, len, &err, error);
}

static struct sv_plot_options plot_options(const struct stave_read_plot *given)
{
    struct sv_plot_options o = {
        .title = given->title, .width = given->width, .height = given->height, .top = given->top};
    if (given->from_ns)
        o.window.from = (struct sv_moment){.ns = given->from_ns, .is_given = true};
    if (given->to_ns)
        o.window.to = (struct sv_moment){.ns = given->to_ns, .is_given = true};
    return o;
}

static int paint(const struct sv_picture *p, enum sv_picture_form form, double scale,
                 struct sv_buf *to, struct sv_err *err)
{
    if (form != SV_FORM_SVG)
        return sv_cairo_paint(to, p, form, scale, err);
    sv_svg_paint(to, p);
    return 0;
}

static int draw(struct stave_read *r, const struct stave_read_plot *given,
                enum sv_picture_form form, double scale, struct sv_buf *to, struct sv_err *err)
{
    struct sv_plot_options o = plot_options(given);
    struct sv_picture picture;
    double its_scale; /* what the options say, which have none */
    struct sv_plot p = {.o = &o,
                        .trace = r->loaded.trace,
                        .path = r->path,
                        .name = basename(r->path),
                        .names = given->names,
                        .n_names = given->n_names};
    sv_plot_fn *fn = NULL;
    int code = sv_plot_kind(given->kind ? given->kind : "timeline", p.n_names, &fn, err);
    if (code < 0)
        return code;
    code = sv_plot_picture(&p, fn, &o.window, &picture, &its_scale, err);
    if (code >= 0)
        code = paint(&picture, form, scale > 0 ? scale : 1, to, err);
    sv_picture_fini(&picture);
    return code;
}

char *stave_read_picture(struct stave_read *r, const struct stave_read_plot *plot, const char *form,
                         double scale, size_t *len, struct stave_error *error)
{
    struct stave_read_plot given;
    struct sv_err err;
    struct sv_buf bytes;
    enum sv_picture_form as;
    char name[16];
    begin(&err, error);
    take_struct(&given, sizeof given, plot);
    sv_buf_init(&bytes, OUTPUT_MAX);
    snprintf(name, sizeof name, "a.%.8s", form ? form : "svg"); /* a suffix says the form */
    pthread_mutex_lock(&r->lock);
    pthread_mutex_lock(&loads_cairo);
    int code = sv_plot_form(name, &as, &err);
    pthread_mutex_unlock(&loads_cairo);
    if (code >= 0)
        code = draw(r, &given, as, scale, &bytes, &err);
    pthread_mutex_unlock(&r->lock);
    return give_text(code, &bytes, len, &err, error);
}

char *stave_read_svg(struct stave_read *r, const struct stave_read_plot *plot, size_t *len,
                     struct stave_error *error)
{
    return stave_read_picture(r, plot, "svg", 1, len, error);
}

void stave_read_free(char *text)
{
    free(text);
}
