/* The viewer's front: addresses, the state of loading, and which requests are old. See viewer.h. */
#include "view/viewer.h"

#include "core/base/mem.h"
#include "view/notes.h"
#include "view/page.h"
#include "view/sketch.h"
#include "view/sql_desk.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#define BODY_MAX   ((size_t)2 << 20)
#define ANSWER_MAX ((size_t)256 << 20)
#define TABS       64u

static const char policy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' "
    "blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

struct sv_viewer {
    struct sv_web *web;
    char **files, *notes, url[160];
    size_t n_files;
    _Atomic int progress; /* in 1/1000 */
    struct sv_sketch *sketch;
    /* Answers hold it for reading; what changes the trace or its dictionary holds it alone. */
    pthread_rwlock_t lock;
    struct sv_shown *shown; /* NULL: it is being loaded */
    struct sv_sql_desk *desk;
    struct {
        _Atomic uint64_t tab, seq;
    } tabs[TABS]; /* the newest request of each */
    pthread_mutex_t notes_lock, index_lock, report_lock;
    pthread_t worker;
    bool has_worker;
    _Atomic bool is_closing;
    void (*work)(void *ctx);
    void *work_ctx;
    int (*report)(const char *subject, const struct sv_track_rows *rows, size_t limit,
                  struct sv_buf *to, struct sv_err *err);
};

/* ---- what is old ---- */

void sv_viewer_newest(struct sv_viewer *v, uint64_t tab, uint64_t seq)
{
    size_t at = tab % TABS;
    if (atomic_exchange(&v->tabs[at].tab, tab) != tab)
        atomic_store(&v->tabs[at].seq, 0);
    uint64_t seen = atomic_load(&v->tabs[at].seq);
    while (seen < seq && !atomic_compare_exchange_weak(&v->tabs[at].seq, &seen, seq))
        ;
}

/* Tabs share a place when there are too many of them: then nothing of theirs is old. */
bool sv_viewer_is_old(struct sv_viewer *v, uint64_t tab, uint64_t seq)
{
    size_t at = tab % TABS;
    return tab && atomic_load(&v->tabs[at].tab) == tab && atomic_load(&v->tabs[at].seq) > seq;
}

/* ---- answers ---- */

void sv_viewer_put_name(struct sv_json *j, const struct sv_viewer *v)
{
    sv_json_put(j, "name", cstr, v->files[0]);
    sv_json_put(j, "files", begin, '[');
    for (size_t i = 0; i < v->n_files; i++)
        sv_json_cstr(j, v->files[i]);
    sv_json_end(j);
}

const struct sv_shown *sv_viewer_shown(const struct sv_viewer *v)
{
    return v->shown;
}

uint64_t sv_viewer_id(struct sv_viewer *v, uint32_t slice)
{
    pthread_mutex_lock(&v->index_lock);
    uint64_t id = sv_index_id(v->shown->index, slice);
    pthread_mutex_unlock(&v->index_lock);
    return id;
}

uint32_t sv_viewer_slice(struct sv_viewer *v, uint64_t id)
{
    pthread_mutex_lock(&v->index_lock);
    uint32_t slice = sv_index_row(v->shown->index, id);
    pthread_mutex_unlock(&v->index_lock);
    return slice;
}

/* Before the trace is there. */
static void answer_state(struct sv_viewer *v, struct sv_web_answer *a)
{
    struct sv_json j;
    sv_json_init(&j, &a->body);
    sv_json_begin(&j, '{');
    sv_json_put(&j, "version", i64, 1);
    sv_json_put(&j, "state", text, "loading", 7);
    sv_viewer_put_name(&j, v);
    sv_json_put(&j, "progress", double, atomic_load(&v->progress) / 1000.0);
    sv_json_lit(&j, "sketch");
    sv_sketch_put(v->sketch, &j);
    sv_json_end(&j);
}

static const struct {
    const char *path;
    sv_view_answer *answer;
} addresses[] = {
    {"/api/trace", sv_answer_trace}, {"/api/window", sv_answer_window},
    {"/api/names", sv_answer_names}, {"/api/slice", sv_answer_slice},
    {"/api/near", sv_answer_near},   {"/api/search", sv_answer_search},
    {"/api/area", sv_answer_area},   {"/api/steps", sv_answer_steps},
    {"/api/path", sv_answer_path},   {"/api/order", sv_answer_order},
};

#define REPORT_ROWS 500u
#define CALM        10 /* how much nicer than others */

struct reporting {
    struct sv_viewer *viewer;
    const char *subject;
    struct sv_buf *to;
    struct sv_err err;
    int code;
};

static void *make_report(void *ctx)
{
    struct reporting *r = ctx;
    struct sv_viewer *v = r->viewer;
    r->code = v->report(r->subject, v->shown->rows, REPORT_ROWS, r->to, &r->err);
    return NULL;
}

/* Windows come before reports, which take seconds where the trace is large. The priority is that
 * of this thread and of those that it starts. */
static void *make_report_calmly(void *ctx)
{
    if (setpriority(PRIO_PROCESS, 0, CALM) < 0)
        errno = 0; /* then it has that of all others */
    return make_report(ctx);
}

void sv_viewer_report(struct sv_viewer *v, const char *subject, struct sv_web_answer *a)
{
    pthread_t thread;
    struct reporting r = {v, subject ? subject : "", &a->body, .code = SV_EUSAGE};
    sv_err_clear(&r.err);
    pthread_mutex_lock(&v->report_lock);
    if (v->report && pthread_create(&thread, NULL, make_report_calmly, &r) == 0)
        pthread_join(thread, NULL);
    else if (v->report)
        make_report(&r);
    pthread_mutex_unlock(&v->report_lock);
    int code = r.code;
    if (code == SV_EINPUT)
        sv_web_error(a, 200, "the trace has nothing of this");
    else if (code < 0)
        sv_web_error(a, 400, "%s", r.err.msg);
}

/* The trace is there. */
static void answer_shown(struct sv_viewer *v, const struct sv_web_request *q,
                         struct sv_web_answer *a)
{
    struct sv_shown *s = v->shown;
    for (size_t i = 0; i < sizeof addresses / sizeof *addresses; i++)
        if (strcmp(q->path, addresses[i].path) == 0) {
            addresses[i].answer(s, q, a);
            return;
        }
    if (strcmp(q->path, "/api/sql") == 0) {
        sv_answer_sql(v->desk, s, q, a);
    } else if (strcmp(q->path, "/api/tables") == 0) {
        sv_answer_tables(v->desk, s, a);
    } else if (strcmp(q->path, "/api/report") == 0) {
        sv_viewer_report(v, sv_web_param(q, "subject"), a);
    } else if (strcmp(q->path, "/api/notes") == 0) {
        pthread_mutex_lock(&v->notes_lock);
        sv_answer_notes(v->notes, q, a);
        pthread_mutex_unlock(&v->notes_lock);
    } else {
        sv_web_error(a, 404, "no such address");
    }
}

static void answer_api(struct sv_viewer *v, const struct sv_web_request *q, struct sv_web_answer *a)
{
    bool is_cut = strcmp(q->path, "/api/cut") == 0;
    if (is_cut)
        pthread_rwlock_wrlock(&v->lock);
    else
        pthread_rwlock_rdlock(&v->lock);
    if (!v->shown && strcmp(q->path, "/api/trace") == 0)
        answer_state(v, a);
    else if (!v->shown)
        sv_web_error(a, 503, "the trace is being loaded");
    else if (is_cut)
        sv_answer_cut(v->shown, q, a);
    else
        answer_shown(v, q, a);
    pthread_rwlock_unlock(&v->lock);
}

void sv_viewer_answer(void *ctx, const struct sv_web_request *q, struct sv_web_answer *a)
{
    if (strncmp(q->path, "/api/", 5) == 0) {
        answer_api(ctx, q, a);
        return;
    }
    const struct sv_page_file *f = sv_page_file(q->path);
    if (!f || q->is_post) {
        sv_web_error(a, f ? 405 : 404, f ? "this address supports only GET" : "no such address");
        return;
    }
    a->type = f->type;
    a->fixed = f->bytes;
    a->fixed_len = (size_t)(f->end - f->bytes);
}

/* ---- opening and closing ---- */

int sv_viewer_open(const struct sv_viewer_options *o, struct sv_viewer **out, struct sv_err *err)
{
    struct sv_viewer *v = *out = sv_alloc(sizeof *v);
    v->files = sv_alloc((o->n_files + 1) * sizeof *v->files);
    for (; v->n_files < o->n_files; v->n_files++)
        v->files[v->n_files] = sv_strndup(o->files[v->n_files], strlen(o->files[v->n_files]));
    v->notes = sv_strndup(o->notes, strlen(o->notes));
    v->sketch = sv_sketch_new();
    pthread_rwlock_init(&v->lock, NULL);
    pthread_mutex_init(&v->notes_lock, NULL);
    pthread_mutex_init(&v->index_lock, NULL);
    pthread_mutex_init(&v->report_lock, NULL);
    v->report = o->report;
    if (o->is_offline)
        return 0;
    int code = sv_web_open(&(struct sv_web_options){.answer = sv_viewer_answer,
                                                    .ctx = v,
                                                    .policy = policy,
                                                    .body_max = BODY_MAX,
                                                    .answer_max = ANSWER_MAX,
                                                    .port = o->port,
                                                    .socket = o->socket},
                           &v->web, err);
    if (code < 0)
        return code;
    snprintf(v->url, sizeof v->url, "http://127.0.0.1:%u/#token=%s",
             o->socket ? 8080u : sv_web_port(v->web), sv_web_token(v->web));
    return 0;
}

static void free_shown(struct sv_shown *s)
{
    if (!s)
        return;
    sv_strips_free(s->strips);
    sv_arg_hits_fini(&s->found);
    sv_track_rows_free(s->rows);
    sv_colors_fini(&s->colors);
    sv_thread_states_fini(&s->states);
    sv_index_free(s->index);
    free(s);
}

/* ---- work beside the answers ---- */

bool sv_viewer_is_closing(void *viewer)
{
    return atomic_load(&((struct sv_viewer *)viewer)->is_closing);
}

static void *run_work(void *viewer)
{
    struct sv_viewer *v = viewer;
    v->work(v->work_ctx);
    return NULL;
}

void sv_viewer_work(struct sv_viewer *v, void (*work)(void *ctx), void *ctx)
{
    v->work = work;
    v->work_ctx = ctx;
    v->has_worker = pthread_create(&v->worker, NULL, run_work, v) == 0;
}

void sv_viewer_put(const struct sv_viewer *v, struct sv_image_writer *w)
{
    sv_track_rows_put(v->shown->rows, w);
    sv_strips_put(v->shown->strips, w);
    sv_colors_put(&v->shown->colors, w);
    sv_pages_put(v->shown->pages, w);
}

void sv_viewer_close(struct sv_viewer *v)
{
    if (!v)
        return;
    atomic_store(&v->is_closing, true);
    if (v->has_worker)
        pthread_join(v->worker, NULL);
    sv_web_close(v->web); /* nobody asks any more */
    sv_sql_desk_free(v->desk);
    free_shown(v->shown);
    sv_sketch_free(v->sketch);
    pthread_rwlock_destroy(&v->lock);
    pthread_mutex_destroy(&v->notes_lock);
    pthread_mutex_destroy(&v->index_lock);
    pthread_mutex_destroy(&v->report_lock);
    for (size_t i = 0; i < v->n_files; i++)
        free(v->files[i]);
    free(v->files);
    free(v->notes);
    free(v);
}

const char *sv_viewer_url(const struct sv_viewer *v)
{
    return v->url;
}

uint16_t sv_viewer_port(const struct sv_viewer *v)
{
    return sv_web_port(v->web);
}

void sv_viewer_progress(struct sv_viewer *v, double share)
{
    atomic_store(&v->progress, (int)(share * 1000));
}

struct sv_sink *sv_viewer_sketch(struct sv_viewer *v, struct sv_dict *dict, struct sv_sink *next)
{
    return sv_sketch_sink(v->sketch, dict, next);
}

void sv_viewer_show(struct sv_viewer *v, const struct sv_trace *t,
                    const struct sv_viewer_trace *about)
{
    struct sv_shown *s = sv_alloc(sizeof *s), *before;
    struct sv_sql_desk *desk = sv_sql_desk_new(), *desk_before;
    s->trace = t;
    s->about = *about;
    s->viewer = v;
    s->rows = sv_track_rows_new(t);
    s->strips = sv_strips_new(s->rows);
    sv_arg_hits_init(&s->found);
    sv_colors_init(&s->colors, t, NULL);
    s->pages = sv_pages_of(t);
    if (s->pages >> SV_PAGE_WAITS & 1)
        sv_thread_states_init(&s->states, t);
    s->index = sv_index_new(t);
    pthread_rwlock_wrlock(&v->lock);
    before = v->shown;
    desk_before = v->desk;
    s->generation = before ? before->generation + 1 : 1;
    v->shown = s;
    v->desk = desk;
    pthread_rwlock_unlock(&v->lock);
    sv_sql_desk_free(desk_before);
    free_shown(before);
}
