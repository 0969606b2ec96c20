/* See rotation.h. Called by open.c for each input that is a part, and by who takes several inputs.
 *
 * A source behind a source: it leaves events out, and gives those that a part alone begins with at
 * its end, at the time at which the part began: they were written with the time of the event
 * before, since events reach a recorder late. The Perfetto reader's events have no order, so that
 * is as good as any other place. */
#include "files/rotation.h"

#include "core/base/mem.h"
#include "core/files/claim.h"
#include "core/stream/machine.h"
#include "files/open.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HEAD_BYTES = 1 << 16, LABEL_BYTES = 1 << 18, MARKER_BYTES = 21 };

static struct sv_part_label label_of(const struct sv_dict *dict)
{
    struct sv_part_label l = {0};
    const struct sv_meta *meta = sv_dict_find_meta(dict, SV_META_ROTATION);
    long long start;
    unsigned number;
    if (!meta || sscanf(sv_dict_text(dict, meta->value).bytes, "%63s %u %lld", l.recording, &number,
                        &start) != 3)
        return (struct sv_part_label){0};
    l.number = number;
    l.start_ns = start;
    return l;
}

/* ---- one part after the other ---- */

/* An event that goes on from the part before, with its arguments. */
struct held {
    struct sv_event event;
    int64_t start_ns; /* of its part */
    struct sv_arg args[2];
};

/* Of a track with such events: their time, and that of the first edge or value of the part from
 * there on. Those before it were late, and say nothing. */
struct row {
    int64_t held_ns, next_ns;
};

struct rotation {
    struct sv_source source;
    struct sv_source *inner; /* of the part that is read */
    const char **paths;      /* of all parts; NULL: it is alone */
    uint32_t *numbers;
    size_t n, at;
    struct sv_input *in; /* of a part after the first */
    struct sv_read_options options;
    struct sv_part_label label; /* of the part that is read */
    sv_str mark;
    struct held *held;
    size_t n_held, cap_held, n_given;
    struct row *rows; /* by track */
    size_t n_rows, cap_rows;
};

static struct rotation *of(struct sv_source *s)
{
    return (struct rotation *)(void *)s;
}

/* The number of the part in which the event goes on; 0: it is an ordinary one. */
static uint32_t mark_of(const struct rotation *r, const struct sv_event *e)
{
    if (e->kind != SV_BEGIN && e->kind != SV_END && e->kind != SV_COUNTER && e->kind != SV_INSTANT)
        return 0;
    for (const struct sv_arg *a = e->args; a < e->args + e->n_args; a = sv_arg_next(a))
        if (a->key == r->mark && (a->type == SV_ARG_INT || a->type == SV_ARG_UINT) && a->i > 0 &&
            a->i < UINT32_MAX)
            return (uint32_t)a->i;
    return 0;
}

static bool is_next_there(const struct rotation *r)
{
    return r->at + 1 < r->n && r->numbers[r->at + 1] == r->label.number + 1;
}

static bool is_before_there(const struct rotation *r)
{
    return r->at > 0 && r->numbers[r->at - 1] + 1 == r->label.number;
}

static void see(struct rotation *r, const struct sv_event *e)
{
    if (e->track >= r->n_rows || e->kind == SV_INSTANT)
        return;
    struct row *row = &r->rows[e->track];
    if (e->ts_ns >= row->held_ns && e->ts_ns < row->next_ns)
        row->next_ns = e->ts_ns;
}

static void hold(struct rotation *r, const struct sv_event *e)
{
    r->held = sv_grow(r->held, &r->cap_held, r->n_held + 1, sizeof *r->held);
    struct held *h = &r->held[r->n_held++];
    *h = (struct held){.event = *e, .start_ns = r->label.start_ns};
    h->event.n_args = e->n_args < 2 ? e->n_args : 2;
    memcpy(h->args, e->args, h->event.n_args * sizeof *h->args);
    size_t n = (size_t)e->track + 1;
    if (n > r->n_rows)
        r->rows = sv_grow(r->rows, &r->cap_rows, n, sizeof *r->rows);
    for (; r->n_rows < n; r->n_rows++)
        r->rows[r->n_rows] = (struct row){INT64_MAX, INT64_MAX};
    r->rows[e->track].held_ns = e->ts_ns;
}

/* Leaves out of the batch what was put between two parts, and what is given later. */
static void filter(struct rotation *r, struct sv_batch *b)
{
    size_t n = 0;
    for (size_t i = 0; i < b->n; i++) {
        const struct sv_event *e = &b->events[i];
        uint32_t mark = mark_of(r, e);
        bool is_end = mark == r->label.number + 1, is_begin = mark && mark == r->label.number;
        if ((is_end && is_next_there(r)) || (is_begin && is_before_there(r)))
            continue;
        if (is_begin && r->at == 0 && e->kind != SV_INSTANT) {
            hold(r, e);
            continue;
        }
        see(r, e);
        b->events[n++] = *e;
    }
    b->n = n;
}

/* When the part began, unless something has happened on the track before. */
static int give_held(struct rotation *r, struct sv_batch *b)
{
    while (r->n_given < r->n_held && b->n < SV_BATCH) {
        const struct held *h = &r->held[r->n_given++];
        const struct row *row = &r->rows[h->event.track];
        int64_t ns = h->start_ns > h->event.ts_ns ? h->start_ns : h->event.ts_ns;
        struct sv_event *e = sv_batch_put(b, h->event.kind,
                                          row->next_ns <= ns ? row->next_ns - 1 : ns,
                                          h->event.track, h->event.name, h->event.cat);
        for (size_t i = 0; i < h->event.n_args; i++)
            *sv_batch_arg(b) = h->args[i];
        sv_batch_finish(b, e);
    }
    return (int)b->n;
}

static void close_part(struct rotation *r)
{
    if (r->inner)
        r->inner->close(r->inner);
    r->inner = NULL;
    sv_input_close(r->in);
    r->in = NULL;
}

/* What is found in it goes into the report of the first one. */
static int open_next(struct rotation *r, struct sv_err *err)
{
    const char *path = r->paths[++r->at];
    int code = sv_part_input(path, &r->in, err);
    if (code >= 0)
        code = sv_format_open(sv_format_named("perfetto"), r->in, &r->options, r->source.dict,
                              r->source.report, &r->inner, err);
    return code < 0 ? sv_err_in_file(err, path) : 0;
}

/* It comes before the first event of a part. What is made of several parts is none. */
static void learn(struct rotation *r)
{
    struct sv_part_label l = label_of(r->source.dict);
    if (l.number && (r->n == 1 || l.number == r->numbers[r->at]))
        r->label = l;
    if (r->n > 1)
        sv_dict_unset_meta(r->source.dict, SV_META_ROTATION);
}

static int rotation_next(struct sv_source *s, struct sv_batch *b, struct sv_err *err)
{
    struct rotation *r = of(s);
    while (r->inner) {
        int n = r->inner->next(r->inner, b, err);
        s->has_refused = r->inner->has_refused;
        s->refused_pos = r->inner->refused_pos;
        learn(r);
        if (n < 0)
            return n;
        if (n == 0) {
            close_part(r);
            int code = r->at + 1 < r->n ? open_next(r, err) : 0;
            if (code < 0)
                return code;
            continue;
        }
        filter(r, b);
        if (b->n > 0)
            return (int)b->n;
        sv_batch_reset(b);
    }
    return give_held(r, b);
}

static void rotation_close(struct sv_source *s)
{
    struct rotation *r = of(s);
    close_part(r);
    free(r->paths);
    free(r->numbers);
    free(r->held);
    free(r->rows);
    free(r);
}

void sv_rotation_wrap(struct sv_opened *o, const struct sv_rotation *parts,
                      const struct sv_read_options *options, struct sv_dict *dict)
{
    struct rotation *r = sv_alloc(sizeof *r);
    r->n = parts ? parts->n : 1;
    r->inner = o->source;
    r->options = *options;
    r->mark = sv_dict_cstr(dict, SV_ARG_PART);
    r->source = (struct sv_source){.next = rotation_next,
                                   .close = rotation_close,
                                   .gives = o->source->gives,
                                   .dict = dict,
                                   .report = o->source->report,
                                   .beside_from = o->source->beside_from};
    if (parts) {
        r->paths = sv_alloc(r->n * sizeof *r->paths);
        r->numbers = sv_alloc(r->n * sizeof *r->numbers);
        memcpy(r->paths, parts->paths, r->n * sizeof *r->paths);
        memcpy(r->numbers, parts->numbers, r->n * sizeof *r->numbers);
    }
    o->source = &r->source;
}

/* ---- which files are parts ---- */

/* The metadata are near the beginning. In a compressed packet they cannot be seen: then it may be
 * one. */
bool sv_is_part(struct sv_opened *o)
{
    static const char key[] = SV_META_ROTATION;
    static const uint8_t zstd[] = {0xaa, 0x08}, deflate[] = {0x92, 0x03};
    struct sv_err ignored;
    sv_err_clear(&ignored);
    if (strcmp(o->format->name, "perfetto") != 0 ||
        sv_input_need(o->in, HEAD_BYTES, &ignored) < 0 || o->in->pos != 0)
        return false;
    const uint8_t *p = o->in->data;
    size_t n = o->in->len < HEAD_BYTES ? o->in->len : HEAD_BYTES;
    if (memmem(p, n, key, sizeof key - 1))
        return true;
    if (n < MARKER_BYTES + 8)
        return false;
    p += MARKER_BYTES + 1; /* tag and length of the first packet after the marker */
    while (*p++ & 0x80 && p < o->in->data + MARKER_BYTES + 6) {}
    return memcmp(p, zstd, sizeof zstd) == 0 || memcmp(p, deflate, sizeof deflate) == 0;
}

static bool is_file(const char *path)
{
    struct stat st;
    return !sv_is_database(path) && stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

/* Reads the first events of what was opened. */
static void read_label(struct sv_opened *o, struct sv_dict *dict, struct sv_part_label *l)
{
    struct sv_err ignored;
    struct sv_batch *b = sv_alloc(sizeof *b);
    sv_err_clear(&ignored);
    sv_batch_init(b);
    int n = o->source->next(o->source, b, &ignored);
    *l = label_of(dict);
    if (!l->number && n > 0)
        l->start_ns = b->events[0].ts_ns;
    l->is_trace = n > 0 || dict->n_meta > 0 || dict->clocks.n > 0;
    l->has_utc = sv_clocks_convert(&dict->clocks, dict->clocks.trace_clock, SV_CLOCK_REALTIME,
                                   l->start_ns, &l->utc_ns);
    sv_batch_fini(b);
    free(b);
}

/* Takes the file up to there, as long as it is that long; NULL: it is not, or no file. */
static struct sv_input *open_head(const char *path, uint64_t bytes, bool is_cut)
{
    struct stat st;
    struct sv_input *in = NULL;
    int fd = is_file(path) ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    bool is_there = fd >= 0 && fstat(fd, &st) == 0 && st.st_size > 0 &&
                    (is_cut || (uint64_t)st.st_size >= bytes);
    if (is_there) {
        struct sv_piece head = {0, (uint64_t)st.st_size < bytes ? (uint64_t)st.st_size : bytes};
        sv_input_take_part(fd, &head, path, &in);
    } else if (fd >= 0) {
        close(fd);
    }
    return in;
}

struct sv_part_label sv_part_label_of(const char *path, const char *from)
{
    struct sv_part_label l = {0};
    struct sv_err ignored;
    struct sv_opened o;
    struct sv_input *in = open_head(path, LABEL_BYTES, true);
    if (!in)
        return l;
    struct sv_dict *dict = sv_dict_new();
    sv_err_clear(&ignored);
    if (sv_open_input_in(path, in, from, &(struct sv_read_options){0}, dict, &o, &ignored) >= 0)
        read_label(&o, dict, &l);
    sv_opened_close(&o);
    sv_dict_free(dict);
    return l;
}

int sv_part_input(const char *path, struct sv_input **in, struct sv_err *err)
{
    struct sv_claim c;
    char out[SV_CLAIM_PATH_MAX];
    size_t len = strlen(path), suffix = sizeof SV_PART_SUFFIX - 1;
    *in = NULL;
    if (len > suffix && len < sizeof out && strcmp(path + len - suffix, SV_PART_SUFFIX) == 0) {
        snprintf(out, sizeof out, "%.*s", (int)(len - suffix), path);
        if (sv_claim_read(out, &c) == SV_CLAIM_THERE && c.whole_bytes != SV_CLAIM_UNKNOWN)
            *in = open_head(path, c.whole_bytes, false);
    }
    return *in ? 0 : sv_input_open(path, in, err);
}

struct found {
    const char *path;
    struct sv_part_label label;
    size_t place; /* on the command line */
};

static int by_part(const void *a, const void *b)
{
    const struct found *x = a, *y = b;
    int order = strcmp(x->label.recording, y->label.recording);
    if (order)
        return order;
    if (x->label.number != y->label.number)
        return x->label.number < y->label.number ? -1 : 1;
    return x->place < y->place ? -1 : x->place > y->place;
}

static int by_place(const void *a, const void *b)
{
    const struct found *x = a, *y = b;
    return x->place < y->place ? -1 : x->place > y->place;
}

/* found[0 … n] are all parts of one recording, none of them twice, or one file. */
static void add_group(struct sv_rotations *r, const struct found *found, size_t n)
{
    struct sv_rotation *to = &r->items[r->n];
    r->inputs[r->n++] = found[0].path;
    if (n < 2)
        return;
    to->paths = sv_alloc(n * sizeof *to->paths);
    to->numbers = sv_alloc(n * sizeof *to->numbers);
    to->n = n;
    for (size_t i = 0; i < n; i++) {
        to->paths[i] = found[i].path;
        to->numbers[i] = found[i].label.number;
    }
}

/* The parts of a recording take the place of the one that was named first. A part that is there
 * twice stays apart. */
static size_t group_end(const struct found *found, size_t n, size_t i)
{
    size_t end = i + 1;
    while (found[i].label.number && end < n &&
           strcmp(found[end].label.recording, found[i].label.recording) == 0 &&
           found[end].label.number != found[end - 1].label.number)
        end++;
    return end;
}

void sv_rotations_find(const char *const *paths, size_t n, const char *from, struct sv_rotations *r)
{
    struct found *found = sv_alloc((n + 1) * sizeof *found),
                 *heads = sv_alloc((n + 1) * sizeof *heads);
    size_t n_heads = 0;
    *r = (struct sv_rotations){.inputs = sv_alloc((n + 1) * sizeof *r->inputs),
                               .items = sv_alloc((n + 1) * sizeof *r->items)};
    for (size_t i = 0; i < n; i++) {
        found[i] = (struct found){.path = paths[i], .place = i};
        if (n > 1)
            found[i].label = sv_part_label_of(paths[i], from);
    }
    if (n > 1)
        qsort(found, n, sizeof *found, by_part);
    for (size_t i = 0, end; i < n; i = end) {
        end = group_end(found, n, i);
        struct found head = {.place = found[i].place};
        for (size_t k = i; k < end; k++)
            head.place = found[k].place < head.place ? found[k].place : head.place;
        head.label.number = (uint32_t)i; /* where it begins in `found` */
        heads[n_heads++] = head;
    }
    if (n_heads > 1)
        qsort(heads, n_heads, sizeof *heads, by_place);
    for (size_t i = 0; i < n_heads; i++) {
        size_t at = heads[i].label.number;
        add_group(r, found + at, group_end(found, n, at) - at);
    }
    free(found);
    free(heads);
}

void sv_rotations_fini(struct sv_rotations *r)
{
    for (size_t i = 0; i < r->n; i++) {
        free(r->items[i].paths);
        free(r->items[i].numbers);
    }
    free(r->items);
    free(r->inputs);
    *r = (struct sv_rotations){0};
}

const struct sv_rotation *sv_rotation_of(const struct sv_rotations *r, const char *path)
{
    for (size_t i = 0; r && i < r->n; i++)
        if (r->items[i].n && r->inputs[i] == path)
            return &r->items[i];
    return NULL;
}
