/* Chrome JSON to lines of text: see the header. Pieces come through a pipe in packet mode, where
 * each read() gives what one write() put in, so that a test decides where the window ends. */
#include "chrome_text.h"

#include "core/base/map.h"
#include "core/files/input.h"
#include "tests/harness/test.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

struct dump {
    struct chrome_text_result *out;
    struct sv_dict *dict;
    struct sv_map flows; /* id → number */
};

static void put_str(struct sv_buf *b, const struct sv_dict *d, sv_str s)
{
    struct sv_text t = sv_dict_text(d, s);
    sv_buf_escaped(b, t.bytes, t.len);
}

static void put_track(struct sv_buf *b, const struct sv_dict *d, sv_track t)
{
    const struct sv_track_info *info = &d->tracks[t];
    if (info->parent) {
        put_track(b, d, info->parent);
        sv_buf_str(b, "/");
    }
    if (info->kind == SV_TRACK_PROCESS) {
        sv_buf_printf(b, info->pid < -1 && info->name ? "p*" : "p%" PRId64, info->pid);
    } else if (info->kind == SV_TRACK_THREAD) {
        sv_buf_printf(b, info->tid < -1 && info->name ? "t*" : "t%" PRId64, info->tid);
    } else {
        sv_buf_printf(b, "%s:", sv_track_kind_name(info->kind));
        put_str(b, d, info->name);
    }
}

static size_t flow_number(struct dump *x, uint64_t id)
{
    bool is_new;
    uint64_t *number = sv_map_add(&x->flows, id, &is_new);
    if (is_new)
        *number = x->flows.n;
    return (size_t)*number;
}

static const struct sv_arg *put_arg(struct dump *x, const struct sv_arg *a);

static void put_args(struct dump *x, const struct sv_arg *a, const struct sv_arg *end)
{
    for (bool first = true; a < end; first = false) {
        if (!first)
            sv_buf_str(&x->out->events, ",");
        a = put_arg(x, a);
    }
}

static const struct sv_arg *put_arg(struct dump *x, const struct sv_arg *a)
{
    struct sv_buf *b = &x->out->events;
    if (a->key) {
        put_str(b, x->dict, a->key);
        sv_buf_str(b, "=");
    }
    switch (a->type) {
    case SV_ARG_NULL: sv_buf_str(b, "null"); break;
    case SV_ARG_BOOL: sv_buf_str(b, a->i ? "true" : "false"); break;
    case SV_ARG_INT: sv_buf_printf(b, "%" PRId64, a->i); break;
    case SV_ARG_UINT: sv_buf_printf(b, "%" PRIu64 "u", a->u); break;
    case SV_ARG_DOUBLE: sv_buf_printf(b, "%.17gd", a->d); break;
    case SV_ARG_TEXT:
        sv_buf_str(b, "'");
        sv_buf_escaped(b, a->text, a->size);
        sv_buf_str(b, "'");
        break;
    case SV_ARG_FLOW_BEGIN: sv_buf_printf(b, ">#%zu", flow_number(x, a->u)); break;
    case SV_ARG_FLOW: sv_buf_printf(b, "~#%zu", flow_number(x, a->u)); break;
    case SV_ARG_FLOW_END: sv_buf_printf(b, "<#%zu", flow_number(x, a->u)); break;
    case SV_ARG_CORRELATION: sv_buf_printf(b, "corr %" PRIu64, a->u); break;
    case SV_ARG_THREAD_TIME: sv_buf_printf(b, "tts %" PRId64, a->i); break;
    case SV_ARG_THREAD_DUR: sv_buf_printf(b, "tdur %" PRId64, a->i); break;
    case SV_ARG_SOURCE: sv_buf_str(b, "source"); /* fall through */
    case SV_ARG_DICT:
    case SV_ARG_ARRAY:
    case SV_ARG_STACK: {
        bool is_dict = a->type == SV_ARG_DICT || a->type == SV_ARG_SOURCE;
        sv_buf_str(b, a->type == SV_ARG_STACK ? "stack[" : is_dict ? "{" : "[");
        put_args(x, a + 1, a + 1 + a->size);
        sv_buf_str(b, is_dict ? "}" : "]");
        break;
    }
    default: sv_buf_printf(b, "?%u", (unsigned)a->type);
    }
    return sv_arg_next(a);
}

static void put_event(struct dump *x, const struct sv_event *e)
{
    static const char letters[] = "?BEXiCfL";
    struct sv_buf *b = &x->out->events;
    sv_buf_printf(b, "%c %" PRId64, e->kind < 8 ? letters[e->kind] : '?', e->ts_ns);
    if (e->kind == SV_SLICE || e->kind == SV_LOSS)
        sv_buf_printf(b, "+%" PRId64, e->dur_ns);
    sv_buf_str(b, " ");
    put_track(b, x->dict, e->track);
    if (e->name) {
        sv_buf_str(b, " ");
        put_str(b, x->dict, e->name);
    }
    if (e->cat) {
        sv_buf_str(b, " [");
        put_str(b, x->dict, e->cat);
        sv_buf_str(b, "]");
    }
    if (e->flags)
        sv_buf_printf(b, "%s%s%s", e->flags & SV_BIND_NEXT ? " next" : "",
                      e->flags & SV_SCOPE_PROCESS ? " process" : "",
                      e->flags & SV_SCOPE_GLOBAL ? " global" : "");
    if (e->n_args) {
        sv_buf_str(b, " ");
        put_args(x, e->args, e->args + e->n_args);
    }
    sv_buf_str(b, "\n");
}

static void put_findings(struct chrome_text_result *out, const struct sv_report *report)
{
    for (size_t i = 0; i < report->n; i++)
        sv_buf_printf(&out->findings, "%c %" PRIu64 " %s @%" PRId64 "\n",
                      "nsD"[report->rows[i].severity], report -> rows[i].count,
                      report->rows[i].what, report->rows[i].first_pos);
}

static void put_tracks(struct chrome_text_result *out, const struct sv_dict *d)
{
    for (sv_track t = 1; t < d->n_tracks; t++) {
        const struct sv_track_info *info = &d->tracks[t];
        put_track(&out->tracks, d, t);
        if (info->name && (info->kind == SV_TRACK_PROCESS || info->kind == SV_TRACK_THREAD)) {
            sv_buf_str(&out->tracks, " ");
            put_str(&out->tracks, d, info->name);
        }
        if (info->has_order)
            sv_buf_printf(&out->tracks, " order %" PRId64, info->order);
        if (info->desc) {
            sv_buf_str(&out->tracks, " desc ");
            put_str(&out->tracks, d, info->desc);
        }
        if (info->unit) {
            sv_buf_str(&out->tracks, " unit ");
            put_str(&out->tracks, d, info->unit);
        }
        sv_buf_str(&out->tracks, "\n");
    }
    for (uint32_t i = 0; i < d->n_meta; i++) {
        put_str(&out->meta, d, d->meta[i].key);
        sv_buf_str(&out->meta, d->meta[i].is_json ? " json " : " text ");
        put_str(&out->meta, d, d->meta[i].value);
        sv_buf_str(&out->meta, "\n");
    }
}

static void pull(struct sv_input *in, uint32_t space, struct chrome_text_result *out)
{
    struct sv_report report;
    struct sv_source *s;
    struct sv_batch *b = malloc(sizeof *b);
    struct dump x = {.out = out, .dict = sv_dict_new()};
    struct sv_read_options options = {.space = space};
    sv_report_init(&report);
    sv_batch_init(b);
    REQUIRE(sv_format_open(&sv_chrome_format, in, &options, x.dict, &report, &s, &out->err) == 0);
    while ((out->rc = s->next(s, b, &out->err)) > 0) {
        CHECK(out->rc <= SV_BATCH && (size_t)out->rc == b->n);
        for (int i = 0; i < out->rc; i++)
            put_event(&x, &b->events[i]);
        out->n_events += (uint64_t)out->rc;
        sv_batch_reset(b);
    }
    put_findings(out, &report);
    put_tracks(out, x.dict);
    out->clocks.trace_clock = x.dict->clocks.trace_clock;
    out->clocks.n = x.dict->clocks.n;
    if (x.dict->clocks.n)
        sv_snapshot_get(&x.dict->clocks.snapshots[0], SV_CLOCK_REALTIME, &out->base_snapshot_ns);
    s->close(s);
    sv_batch_fini(b);
    free(b);
    sv_report_fini(&report);
    sv_dict_free(x.dict);
    sv_map_fini(&x.flows);
}

/* A child writes the pieces, each as one packet. It must not hold the end that is read: a reader
 * that refuses the rest would never end it. */
static pid_t write_pieces(const int fds[2], const char *bytes, size_t len, size_t piece)
{
    pid_t child = fork();
    int fd = fds[1];
    if (child != 0)
        return child;
    close(fds[0]);
    for (size_t at = 0; at < len; at += piece)
        if (write(fd, bytes + at, len - at < piece ? len - at : piece) < 0)
            _exit(1);
    _exit(0);
}

void chrome_text_read(const void *bytes, size_t len, size_t piece, uint32_t space,
                      struct chrome_text_result *out)
{
    struct sv_input *in;
    memset(out, 0, sizeof *out);
    sv_buf_init(&out->events, (size_t)1 << 28);
    sv_buf_init(&out->findings, (size_t)1 << 20);
    sv_buf_init(&out->tracks, (size_t)1 << 26);
    sv_buf_init(&out->meta, (size_t)1 << 26);
    if (piece == 0) {
        REQUIRE(sv_input_open_memory(bytes, len, "test", &in, &out->err) == 0);
        pull(in, space, out);
        sv_input_close(in);
        return;
    }
    int fds[2];
    char path[64];
    REQUIRE(pipe2(fds, O_DIRECT) == 0);
    pid_t child = write_pieces(fds, bytes, len, piece);
    REQUIRE(child > 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fds[0]);
    REQUIRE(sv_input_open(path, &in, &out->err) == 0);
    close(fds[0]);
    close(fds[1]);
    pull(in, space, out);
    sv_input_close(in);
    waitpid(child, NULL, 0);
}

void chrome_text_free(struct chrome_text_result *r)
{
    sv_buf_fini(&r->events);
    sv_buf_fini(&r->findings);
    sv_buf_fini(&r->tracks);
    sv_buf_fini(&r->meta);
}
