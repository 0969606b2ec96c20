/* All conditions of a recording: which events matter to which, hits. See record/when/when.h.
 *
 * Most events matter to none. A name is compared with the conditions once, when it comes for the
 * first time; after that an event costs a look into a table. */
#include "record/when/when.h"

#include "core/base/mem.h"
#include "record/when/condition.h"
#include "subjects/io/words.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK_EVERY_NS ((int64_t)100000000)
#define UNSEEN_NS      ((int64_t)60000000000)

struct sv_when *sv_when_new(struct sv_dict *dict)
{
    struct sv_when *w = sv_alloc(sizeof *w);
    w->dict = dict;
    w->first_tick_ns = w->checked_ns = INT64_MIN;
    w->exit = sv_dict_cstr(dict, "exit");
    w->status = sv_dict_cstr(dict, "status");
    w->cat_process = sv_dict_cstr(dict, SV_CAT_PROCESS);
    return w;
}

static void free_condition(struct sv_condition *c)
{
    free(c->text);
    free(c->pick.glob);
    free(c->limit.window);
    sv_when_log_free(c->log);
    free(c);
}

void sv_when_free(struct sv_when *w)
{
    if (!w)
        return;
    for (size_t i = 0; i < w->n; i++)
        free_condition(w->all[i]);
    free(w->by_name);
    free(w->by_track);
    sv_map_fini(&w->top);
    free(w);
}

static const struct sv_when_kind *find_kind(struct sv_when_reader *r)
{
    char expected[200] = "one of";
    for (size_t i = 0; sv_when_kinds[i]; i++) {
        if (sv_when_word(r, sv_when_kinds[i]->word))
            return sv_when_kinds[i];
        size_t n = strlen(expected);
        snprintf(expected + n, sizeof expected - n, "%s %s", i ? "," : "", sv_when_kinds[i]->word);
    }
    sv_when_expect(r, expected);
    return NULL;
}

int sv_when_add(struct sv_when *w, const char *text, struct sv_err *err)
{
    struct sv_when_reader r = {text, text, err};
    sv_err_clear(err);
    if (w->n == SV_WHEN_MAX)
        return sv_error(err, SV_EUSAGE, "--when: more than %d conditions", SV_WHEN_MAX);
    const struct sv_when_kind *kind = find_kind(&r);
    if (!kind)
        return err->code;
    struct sv_condition *c = sv_alloc(sizeof *c);
    c->kind = kind;
    c->number = (unsigned)w->n;
    c->text = sv_strndup(text, strlen(text));
    c->last_ns = c->killed_ns = c->oom_ns = INT64_MIN;
    if (kind->parse)
        kind->parse(&r, c);
    if (!sv_when_failed(&r))
        sv_when_end(&r);
    if (sv_when_failed(&r)) {
        free_condition(c);
        return err->code;
    }
    w->feeds |= kind->feeds;
    w->all[w->n++] = c;
    return 0;
}

size_t sv_when_n(const struct sv_when *w)
{
    return w->n;
}

const char *sv_when_text(const struct sv_when *w, unsigned condition)
{
    return w->all[condition]->text;
}

bool sv_when_is_private(const struct sv_when *w, unsigned condition)
{
    return w->all[condition]->log != NULL;
}

unsigned sv_when_needs(const struct sv_when *w)
{
    unsigned needs = 0;
    for (size_t i = 0; i < w->n; i++)
        needs |= w->all[i]->kind->needs;
    return needs;
}

bool sv_when_row(size_t i, struct sv_when_row *row)
{
    if (!sv_when_kinds[i])
        return false;
    *row = (struct sv_when_row){sv_when_kinds[i]->syntax, sv_when_kinds[i]->holds};
    return true;
}

/* ---- hits ---- */

void sv_when_hit(struct sv_when *w, struct sv_condition *c, int64_t ts_ns, sv_track track,
                 const char *fmt, ...)
{
    size_t max = sizeof w->hits / sizeof *w->hits;
    if (w->n_hits == max) {
        w->n_uncounted++;
        return;
    }
    struct sv_when_hit *h = &w->hits[(w->first_hit + w->n_hits++) % max];
    *h = (struct sv_when_hit){.condition = c->number, .ts_ns = ts_ns, .track = track};
    va_list args;
    va_start(args, fmt);
    vsnprintf(h->cause, sizeof h->cause, fmt, args);
    va_end(args);
    for (char *at = h->cause; *at; at++) /* names and lines are others' bytes */
        if ((unsigned char)*at < 32 || *at == 127)
            *at = '?';
}

bool sv_when_next(struct sv_when *w, struct sv_when_hit *hit)
{
    if (w->n_hits == 0)
        return false;
    *hit = w->hits[w->first_hit];
    w->first_hit = (w->first_hit + 1) % (sizeof w->hits / sizeof *w->hits);
    w->n_hits--;
    return true;
}

uint64_t sv_when_uncounted(const struct sv_when *w)
{
    return w->n_uncounted;
}

/* ---- which event matters ---- */

static uint64_t *place_in(uint64_t **table, size_t *n, uint32_t i, uint32_t n_all)
{
    if (i >= *n) {
        size_t more = n_all > i ? (size_t)n_all + n_all / 2 + 64 : (size_t)i + 64;
        *table = sv_realloc(*table, more * sizeof **table);
        memset(*table + *n, 0, (more - *n) * sizeof **table);
        *n = more;
    }
    return &(*table)[i];
}

static uint64_t conditions_of(const struct sv_when *w, unsigned feeds, const char *text)
{
    uint64_t found = SV_WHEN_KNOWN;
    for (size_t i = 0; i < w->n; i++)
        if ((w->all[i]->kind->feeds & feeds) && sv_pick_has(&w->all[i]->pick, text))
            found |= (uint64_t)1 << i;
    return found;
}

static uint64_t by_name(struct sv_when *w, sv_str name)
{
    uint64_t *found = place_in(&w->by_name, &w->n_names, name, w->dict->n_strings);
    if (!*found)
        *found = conditions_of(w, SV_SEEN_NAME, sv_dict_text(w->dict, name).bytes);
    return *found & ~SV_WHEN_KNOWN;
}

/* A counter is meant by its name, or by its path: "GPU 0/sm". */
static uint64_t by_track(struct sv_when *w, sv_track track)
{
    uint64_t *found = place_in(&w->by_track, &w->n_tracks, track, w->dict->n_tracks);
    if (*found)
        return *found & ~SV_WHEN_KNOWN;
    char path[512];
    size_t at = sizeof path - 1;
    path[at] = '\0';
    for (sv_track t = track; t && at > 0; t = w->dict->tracks[t].parent) {
        struct sv_text name = sv_dict_text(w->dict, w->dict->tracks[t].name);
        size_t len = name.len < at ? name.len : at;
        at -= len;
        memcpy(path + at, name.bytes + name.len - len, len);
        *found |= conditions_of(w, SV_SEEN_COUNTER, path + at);
        if (at > 0 && w->dict->tracks[t].parent)
            path[--at] = '/';
    }
    *found |= SV_WHEN_KNOWN;
    return *found & ~SV_WHEN_KNOWN;
}

static void feed_to(struct sv_when *w, uint64_t conditions, const struct sv_seen *s)
{
    for (; conditions; conditions &= conditions - 1) {
        struct sv_condition *c = w->all[__builtin_ctzll(conditions)];
        c->kind->feed(w, c, s);
    }
}

static uint64_t fed_with(const struct sv_when *w, unsigned feeds)
{
    uint64_t found = 0;
    for (size_t i = 0; i < w->n; i++)
        found |= w->all[i]->kind->feeds & feeds ? (uint64_t)1 << i : 0;
    return found;
}

/* Device rows repeat the host's annotations. */
static bool is_device(const struct sv_when *w, sv_track track)
{
    unsigned kind = w->dict->tracks[track].kind;
    return kind == SV_TRACK_GPU || kind == SV_TRACK_STREAM;
}

/* ---- events ---- */

static struct sv_seen named(const struct sv_when *w, const struct sv_event *e)
{
    return (struct sv_seen){.kind = SV_SEEN_NAME,
                            .name = e->name,
                            .text = sv_dict_text(w->dict, e->name).bytes,
                            .track = e->track,
                            .ts_ns = e->ts_ns};
}

static void feed_slice(struct sv_when *w, const struct sv_event *e)
{
    uint64_t conditions = by_name(w, e->name);
    if (!conditions || e->dur_ns < 0 || is_device(w, e->track))
        return;
    struct sv_seen s = named(w, e);
    s.is_slice = true;
    s.dur_ns = e->dur_ns;
    s.ts_ns += e->dur_ns;
    feed_to(w, conditions, &s);
}

static void feed_end(struct sv_when *w, const struct sv_event *e)
{
    struct sv_when_open o;
    if (!sv_when_open_end(w, e, &o) || is_device(w, e->track))
        return;
    struct sv_seen s = {.kind = SV_SEEN_NAME,
                        .is_slice = true,
                        .name = o.name,
                        .text = sv_dict_text(w->dict, o.name).bytes,
                        .track = e->track,
                        .ts_ns = e->ts_ns,
                        .dur_ns = e->ts_ns > o.begin_ns ? e->ts_ns - o.begin_ns : 0,
                        .fired = o.fired};
    feed_to(w, o.conditions, &s);
}

static const struct sv_arg *find_arg(const struct sv_event *e, sv_str key)
{
    for (const struct sv_arg *a = e->args; a < e->args + e->n_args; a = sv_arg_next(a))
        if (a->key == key)
            return a;
    return NULL;
}

/* Of a process that has ended: nothing gives them another value. */
static void forget_counters(struct sv_when *w, sv_track process)
{
    for (size_t i = 0; process && i < w->n; i++) {
        struct sv_condition *c = w->all[i];
        for (size_t k = 0; k < c->n_rows; k++)
            if (sv_dict_process_of(w->dict, c->rows[k].track) == process)
                c->rows[k--] = c->rows[--c->n_rows];
    }
}

static void feed_instant(struct sv_when *w, const struct sv_event *e)
{
    uint64_t conditions = by_name(w, e->name);
    if (conditions) {
        struct sv_seen s = named(w, e);
        feed_to(w, conditions, &s);
    }
    if (e->name != w->exit || e->cat != w->cat_process)
        return;
    const struct sv_arg *status = find_arg(e, w->status);
    sv_track process = sv_dict_process_of(w->dict, e->track);
    forget_counters(w, process);
    if (status && status->type == SV_ARG_INT)
        sv_when_exit(w, e->ts_ns, sv_dict_text(w->dict, w->dict->tracks[process].name).bytes,
                     (int)status->i);
}

void sv_when_exit(struct sv_when *w, int64_t ts_ns, const char *name, int status)
{
    struct sv_seen s = {
        .kind = SV_SEEN_EXIT, .text = name, .ts_ns = ts_ns, .value = (double)status};
    feed_to(w, fed_with(w, SV_SEEN_EXIT), &s);
}

static void feed_counter(struct sv_when *w, const struct sv_event *e)
{
    uint64_t conditions = e->n_args ? by_track(w, e->track) : 0;
    if (!conditions)
        return;
    const struct sv_track_info *t = &w->dict->tracks[e->track];
    double factor = t->multiplier ? (double)t->multiplier : 1;
    struct sv_seen s = {
        .kind = SV_SEEN_COUNTER,
        .text = sv_dict_text(w->dict, t->name).bytes,
        .track = e->track,
        .ts_ns = e->ts_ns,
        .value = factor * (e->args[0].type == SV_ARG_DOUBLE ? e->args[0].d : (double)e->args[0].i)};
    feed_to(w, conditions, &s);
}

static void feed_loss(struct sv_when *w, const struct sv_event *e)
{
    struct sv_seen s = named(w, e);
    s.kind = SV_SEEN_LOSS;
    s.value = e->n_args ? (double)e->args[0].i : 0;
    feed_to(w, fed_with(w, SV_SEEN_LOSS), &s);
}

void sv_when_feed(struct sv_when *w, const struct sv_event *events, size_t n)
{
    for (const struct sv_event *e = events; e < events + n; e++)
        switch (e->kind) {
        case SV_SLICE: feed_slice(w, e); break;
        case SV_BEGIN:
            by_name(w, e->name);
            sv_when_open_begin(w, e);
            break;
        case SV_END: feed_end(w, e); break;
        case SV_INSTANT: feed_instant(w, e); break;
        case SV_COUNTER: feed_counter(w, e); break;
        case SV_LOSS: feed_loss(w, e); break;
        default: break;
        }
}

void sv_when_forget(struct sv_when *w, sv_track track)
{
    sv_when_open_forget(w, track);
    if (track < w->n_tracks)
        w->by_track[track] = 0;
    for (size_t i = 0; i < w->n; i++) {
        struct sv_condition *c = w->all[i];
        for (size_t k = 0; k < c->n_rows; k++)
            if (c->rows[k].track == track)
                c->rows[k--] = c->rows[--c->n_rows];
    }
}

void sv_when_suspended(struct sv_when *w, int64_t ns)
{
    for (size_t i = 0; i < w->n; i++) {
        struct sv_condition *c = w->all[i];
        c->last_ns += c->is_seen ? ns : 0;
        for (size_t k = 0; k < c->n_rows; k++)
            c->rows[k].since_ns += ns;
    }
    for (uint32_t i = 0; i < SV_OPEN_MAX && w->n_open; i++)
        if (w->open[i].track)
            w->open[i].begin_ns += ns;
}

void sv_when_tick(struct sv_when *w, int64_t now_ns)
{
    if (w->first_tick_ns == INT64_MIN)
        w->first_tick_ns = now_ns;
    if (w->checked_ns != INT64_MIN && now_ns - w->checked_ns < CHECK_EVERY_NS)
        return;
    w->checked_ns = now_ns;
    for (size_t i = 0; i < w->n; i++)
        if (w->all[i]->kind->check)
            w->all[i]->kind->check(w, w->all[i], now_ns);
}

/* What is not there, as the object of a sentence; NULL: it is, or need not be. */
static const char *missing(struct sv_condition *c)
{
    if (c->log)
        return sv_when_log_is_there(c->log) ? NULL : sv_when_log_path(c->log);
    if (c->is_seen || !c->pick.kind)
        return NULL;
    return c->pick.kind == SV_PICK_STEP      ? "a step (the names are in docs/why.md)"
           : c->pick.kind == SV_PICK_REQUEST ? "a request"
                                             : c->pick.glob;
}

bool sv_when_unseen(struct sv_when *w, bool at_end, unsigned *condition, const char **what)
{
    if (!at_end && (w->first_tick_ns == INT64_MIN || w->checked_ns - w->first_tick_ns < UNSEEN_NS))
        return false;
    for (unsigned i = 0; i < w->n; i++) {
        if (w->all[i]->is_said || !(*what = missing(w->all[i])))
            continue;
        w->all[i]->is_said = true;
        *condition = i;
        return true;
    }
    return false;
}
