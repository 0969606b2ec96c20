/* Recordings in folders: see recordings.h.
 *
 * A recording is all parts with one identity (files/rotation.h), or a trace alone. A part reaches
 * from its beginning to that of the next one, the last one to when its file was changed last.
 * Events reach a recorder late, and a part says to the nearest round when it began: what is within
 * LATE_NS of the range is read, too. */
#include "files/recordings.h"

#include "cli/console.h"
#include "core/base/mem.h"
#include "core/base/sat.h"
#include "core/files/claim.h"
#include "files/found.h"
#include "store/filter.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LATE_NS ((int64_t)1000000000)
#define DAY_NS  ((int64_t)86400000000000)
enum { LISTED_MAX = 12, NAME_BYTES = 256 };

struct file {
    char *path;
    struct sv_part_label label;
    int64_t changed_ns; /* by the wall clock */
    uint64_t bytes;
};

/* files[first … first + n), in the order of their numbers. */
struct recording {
    const struct file *files;
    size_t n;
    char name[NAME_BYTES]; /* of its files, without the number of a part */
};

struct set {
    struct file *files;
    size_t n, cap;
    struct recording *all;
    size_t n_all, cap_all;
};

struct wanted {
    struct sv_side since, until;
    const char *recording;
    bool has_range;
};

static void set_fini(struct set *s)
{
    for (size_t i = 0; i < s->n; i++)
        free(s->files[i].path);
    free(s->files);
    free(s->all);
}

/* ---- what there is ---- */

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

/* Only the end of a ring's file that grows is in it: its segments are joined when it is saved. */
static bool is_left_out(const char *path)
{
    return strstr(path, ".ring-") || ends_with(path, SV_CLAIM_SUFFIX);
}

static void add_file(struct set *s, const struct sv_found *f, const char *from)
{
    struct stat st;
    struct sv_part_label l = {0};
    if (!f->was_found || !is_left_out(f->path))
        l = sv_part_label_of(f->path, from);
    if (f->was_found && (!l.is_trace || (ends_with(f->path, SV_PART_SUFFIX) && !l.number)))
        return;
    bool is_there = stat(f->path, &st) == 0;
    SV_APPEND(s->files, s->n, s->cap) = (struct file){
        .path = sv_strndup(f->path, strlen(f->path)),
        .label = l,
        .bytes = is_there ? (uint64_t)st.st_size : 0,
        .changed_ns = is_there ? st.st_mtim.tv_sec * 1000000000LL + st.st_mtim.tv_nsec : 0};
}

static int by_part(const void *a, const void *b)
{
    const struct file *x = a, *y = b;
    int order = strcmp(x->label.recording, y->label.recording);
    if (order == 0 && x->label.number != y->label.number)
        order = x->label.number < y->label.number ? -1 : 1;
    return order ? order : strcmp(x->path, y->path);
}

/* "night/job-0012.pftrace" of a part is job.pftrace. */
static void name_it(struct recording *r)
{
    const char *base = strrchr(r->files->path, '/');
    base = base ? base + 1 : r->files->path;
    snprintf(r->name, sizeof r->name, "%s", base);
    if (!r->files->label.number)
        return;
    if (ends_with(r->name, SV_PART_SUFFIX))
        r->name[strlen(r->name) - strlen(SV_PART_SUFFIX)] = '\0';
    char *dot = strrchr(r->name, '.'), *dash = dot;
    while (dash && dash > r->name && dash[-1] >= '0' && dash[-1] <= '9')
        dash--;
    if (dash && dash < dot && dash > r->name && dash[-1] == '-')
        memmove(dash - 1, dot, strlen(dot) + 1);
}

static int by_time(const void *a, const void *b)
{
    const struct recording *x = a, *y = b;
    int64_t s = x->files->label.utc_ns, t = y->files->label.utc_ns;
    return s != t ? (s > t) - (s < t) : strcmp(x->files->path, y->files->path);
}

static void find_recordings(struct set *s)
{
    if (s->n > 1)
        qsort(s->files, s->n, sizeof *s->files, by_part);
    for (size_t i = 0, end; i < s->n; i = end) {
        const struct file *f = &s->files[i];
        for (end = i + 1; f->label.number && end < s->n &&
                          strcmp(s->files[end].label.recording, f->label.recording) == 0;)
            end++;
        SV_APPEND(s->all, s->n_all, s->cap_all) = (struct recording){.files = f, .n = end - i};
        name_it(&s->all[s->n_all - 1]);
    }
    if (s->n_all > 1)
        qsort(s->all, s->n_all, sizeof *s->all, by_time);
}

/* A file that was named, and is not in a folder. */
static int add_named(struct sv_files *found, const char *path, struct sv_err *err)
{
    if (!sv_is_database(path) && access(path, R_OK) != 0) {
        sv_err_sys(err, "cannot open");
        err->code = SV_EINPUT;
        return sv_err_in_file(err, path);
    }
    sv_files_add(found, path, false);
    return 0;
}

static int gather(const char *const *paths, size_t n, const char *from, struct set *s,
                  struct sv_err *err)
{
    struct sv_files found = {0};
    int code = 0;
    for (size_t i = 0; i < n && code >= 0; i++) {
        if (strcmp(paths[i], "-") == 0)
            code = sv_error(err, SV_EUSAGE,
                            "--since and --until need a file or a folder: what is piped can be "
                            "read only once");
        else if (sv_is_folder(paths[i]))
            code = sv_files_walk(&found, paths[i], 0, err);
        else
            code = add_named(&found, paths[i], err);
    }
    if (code >= 0 && (found.too_many || found.too_deep))
        code = sv_error(err, SV_ELIMIT,
                        "%.200s: more than %u files, or folders in more than %d levels: give a "
                        "folder below it",
                        paths[0], SV_FILES_MAX, SV_FOLDERS_MAX);
    for (size_t i = 0; i < found.n && code >= 0; i++)
        add_file(s, &found.items[i], from);
    sv_files_free(&found);
    if (code >= 0 && s->n == 0)
        code = sv_error(err, SV_EINPUT, "%.200s: there is no trace in this folder", paths[0]);
    find_recordings(s);
    return code;
}

/* ---- the range ---- */

static const struct file *last_of(const struct recording *r)
{
    return &r->files[r->n - 1];
}

/* Sides that count from the end of all there is, as times of the wall clock. */
static void place_at_end(const struct set *s, struct sv_side *side, bool is_since)
{
    int64_t end = 0;
    for (size_t i = 0; i < s->n; i++)
        end = s->files[i].changed_ns > end ? s->files[i].changed_ns : end;
    if (side->kind == SV_SIDE_OF_END)
        *side = (struct sv_side){SV_SIDE_UTC, sv_sat_sub(end, side->ns)};
    if (side->kind != SV_SIDE_OF_DAY)
        return;
    int64_t ns = end / DAY_NS * DAY_NS + side->ns;
    *side = (struct sv_side){SV_SIDE_UTC, ns - (is_since && ns > end ? DAY_NS : 0)};
}

/* Sides that count from the start of a recording, on the trace's clock: parts have that, and the
 * wall clock. False: this recording has no wall clock. */
static bool place(const struct recording *r, const struct sv_side *side, struct sv_side *out)
{
    *out = *side;
    if (side->kind == SV_SIDE_OF_START)
        *out = (struct sv_side){SV_SIDE_CLOCK, sv_sat_add(r->files->label.start_ns, side->ns)};
    return out->kind != SV_SIDE_UTC || r->files->label.has_utc;
}

static int64_t begin_of(const struct file *f, enum sv_side_kind kind)
{
    return kind == SV_SIDE_CLOCK ? f->label.start_ns : f->label.utc_ns;
}

/* On the trace's clock, by the part that is there at that time: a wall clock may have been set
 * between two. */
static int64_t on_clock(const struct recording *r, const struct sv_side *side)
{
    const struct file *f = r->files;
    if (side->kind == SV_SIDE_CLOCK)
        return side->ns;
    for (size_t i = 1; i < r->n && r->files[i].label.utc_ns <= side->ns; i++)
        f = &r->files[i];
    return sv_sat_add(f->label.start_ns, sv_sat_sub(side->ns, f->label.utc_ns));
}

/* Whether part i has something of the range. */
static bool touches(const struct recording *r, size_t i, const struct sv_side *since,
                    const struct sv_side *until)
{
    const struct file *f = &r->files[i];
    if (until->kind && begin_of(f, until->kind) >= sv_sat_add(until->ns, LATE_NS))
        return false;
    if (!since->kind)
        return true;
    if (i + 1 < r->n)
        return begin_of(f + 1, since->kind) > sv_sat_sub(since->ns, LATE_NS);
    return since->kind == SV_SIDE_CLOCK || f->changed_ns >= since->ns;
}

static bool is_meant(const struct recording *r, const struct wanted *w)
{
    struct sv_side since, until;
    size_t stem = strlen(r->name);
    const char *dot = strrchr(r->name, '.'), *name = w->recording;
    if (name && strcmp(name, r->name) != 0 && strcmp(name, r->files->label.recording) != 0 &&
        strcmp(name, r->files->path) != 0 &&
        !(dot && strncmp(name, r->name, stem = (size_t)(dot - r->name)) == 0 && !name[stem]))
        return false;
    if (!place(r, &w->since, &since) || !place(r, &w->until, &until))
        return true; /* it is said when it is the only one */
    for (size_t i = 0; i < r->n; i++)
        if (touches(r, i, &since, &until))
            return true;
    return false;
}

/* ---- one of them ---- */

static void describe(const struct recording *r, char *to, size_t size)
{
    char from[SV_UTC_SIZE], until[SV_UTC_SIZE], parts[64] = "";
    if (r->files->label.number)
        snprintf(parts, sizeof parts, " (%.50s)", r->files->label.recording);
    int n = snprintf(to, size, "%s%s: %zu %s", r->name, parts, r->n, r->n == 1 ? "file" : "parts");
    if (r->files->label.has_utc && n > 0 && (size_t)n < size)
        snprintf(to + n, size - (size_t)n, ", from %s to %s UTC",
                 sv_utc_text(from, r->files->label.utc_ns),
                 sv_utc_text(until, last_of(r)->changed_ns));
}

static int not_one(const struct set *s, const struct wanted *w, size_t n_meant, const char *what,
                   struct sv_err *err)
{
    char text[NAME_BYTES + 256];
    size_t n = 0;
    for (size_t i = 0; i < s->n_all && n < LISTED_MAX; i++) {
        if (n_meant && !is_meant(&s->all[i], w))
            continue;
        describe(&s->all[i], text, sizeof text);
        sv_console_note("%s", text);
        n++;
    }
    if (n_meant > n || (!n_meant && s->n_all > n))
        sv_console_note("… and %zu more", (n_meant ? n_meant : s->n_all) - n);
    if (n_meant)
        return sv_error(err, SV_EUSAGE,
                        "%.200s: these are %zu recordings: choose one with --recording NAME, or by "
                        "--since and --until",
                        what, n_meant);
    return sv_error(err, SV_EINPUT, "%.200s: nothing %s: what is there was listed", what,
                    w->has_range ? "was recorded in that time" : "has the name of --recording");
}

static void take(struct sv_chosen *c, const struct file *f)
{
    c->paths = sv_realloc(c->paths, (c->n + 1) * sizeof *c->paths);
    c->numbers = sv_realloc(c->numbers, (c->n + 1) * sizeof *c->numbers);
    c->paths[c->n] = sv_strndup(f->path, strlen(f->path));
    c->numbers[c->n++] = f->label.number;
    c->is_growing |= ends_with(f->path, SV_PART_SUFFIX);
    c->bytes += f->bytes;
}

static void say_what(const struct recording *r, const struct sv_chosen *c, size_t first,
                     const char *what)
{
    if (r->n > 1)
        sv_console_note("%s: %zu of %zu parts of %s", what, c->n - first, r->n, r->name);
    else if (strcmp(what, r->files->path) != 0)
        sv_console_note("%s: %s", what, r->name);
}

/* The parts of the recording that the range touches. */
static int take_parts(const struct recording *r, const struct wanted *w, const char *what,
                      struct sv_chosen *c, struct sv_err *err)
{
    struct sv_side since, until;
    size_t first = c->n;
    if (!place(r, &w->since, &since) || !place(r, &w->until, &until))
        return sv_error(err, SV_EUSAGE,
                        "%.200s has no wall clock: give --since and --until as times from its "
                        "start, such as 90s",
                        what);
    for (size_t i = 0; i < r->n; i++) {
        bool is_twice = i > 0 && r->files[i].label.number == r->files[i - 1].label.number;
        if (is_twice)
            sv_console_note("%s: the same part as %s; left out", r->files[i].path,
                            r->files[i - 1].path);
        else if (touches(r, i, &since, &until))
            take(c, &r->files[i]);
    }
    c->has_window = w->has_range;
    c->from_ns = since.kind ? on_clock(r, &since) : INT64_MIN;
    c->to_ns = until.kind ? on_clock(r, &until) : INT64_MAX;
    say_what(r, c, first, what);
    return c->from_ns < c->to_ns ? 0 : sv_error(err, SV_EUSAGE, "--since is not before --until");
}

/* All operands in `paths` mean one recording together. */
static int choose(const char *const *paths, size_t n, const struct wanted *wanted, const char *from,
                  struct sv_chosen *c, struct sv_err *err)
{
    struct set s = {0};
    struct wanted is = *wanted;
    const struct wanted *w = &is;
    const struct recording *one = NULL;
    size_t n_meant = 0;
    int code = gather(paths, n, from, &s, err);
    place_at_end(&s, &is.since, true);
    place_at_end(&s, &is.until, false);
    for (size_t i = 0; i < s.n_all && code >= 0; i++)
        if (is_meant(&s.all[i], w)) {
            one = &s.all[i];
            n_meant++;
        }
    if (code >= 0)
        code = n_meant == 1 ? take_parts(one, w, paths[0], c, err)
                            : not_one(&s, w, n_meant, paths[0], err);
    set_fini(&s);
    return code;
}

bool sv_needs_choice(const char *const *paths, size_t n, const struct sv_range *range)
{
    bool needs = range->since || range->until || range->recording;
    for (size_t i = 0; i < n && !needs; i++)
        needs = !sv_is_database(paths[i]) && sv_is_folder(paths[i]);
    return needs;
}

/* Without a range each folder is a recording of its own. */
int sv_choose_parts(const char *const *paths, size_t n, const struct sv_range *range,
                    const char *from, struct sv_chosen *c, struct sv_err *err)
{
    struct wanted w = {.recording = range->recording, .has_range = range->since || range->until};
    *c = (struct sv_chosen){.from_ns = INT64_MIN, .to_ns = INT64_MAX};
    int code = sv_side_parse("since", range->since, &w.since, err);
    if (code >= 0)
        code = sv_side_parse("until", range->until, &w.until, err);
    c->is_one = n == 1 || w.has_range || w.recording;
    if (code >= 0 && c->is_one)
        code = choose(paths, n, &w, from, c, err);
    for (size_t i = 0; i < n && code >= 0 && !c->is_one; i++) {
        struct file alone = {.path = (char *)(uintptr_t)paths[i]};
        if (sv_is_folder(paths[i]))
            code = choose(&paths[i], 1, &w, from, c, err);
        else
            take(c, &alone);
    }
    c->rotation = (struct sv_rotation){c->paths, c->numbers, c->n};
    return code;
}

/* ---- reading it ---- */

int sv_chosen_open(const struct sv_chosen *c, const char *from, struct sv_read_options options,
                   struct sv_dict *dict, struct sv_opened *o, struct sv_err *err)
{
    struct sv_input *in = NULL;
    if (c->n > 1)
        options.rotation = &c->rotation;
    *o = (struct sv_opened){.path = c->paths[0], .fd = -1};
    sv_report_init(&o->report);
    if (strcmp(c->paths[0], "-") != 0 && sv_part_input(c->paths[0], &in, err) < 0) {
        err->code = SV_EINPUT;
        return sv_err_in_file(err, c->paths[0]);
    }
    return sv_open_input_in(c->paths[0], in, from, &options, dict, o, err);
}

struct sv_sink *sv_chosen_window(const struct sv_chosen *c, struct sv_dict *dict,
                                 struct sv_sink *next)
{
    const struct sv_filter filter = {.from_ns = c->from_ns, .to_ns = c->to_ns};
    return c->has_window ? sv_filter_new(dict, &filter, next) : next;
}

void sv_chosen_fini(struct sv_chosen *c)
{
    for (size_t i = 0; i < c->n; i++)
        free((char *)(uintptr_t)c->paths[i]);
    free(c->paths);
    free(c->numbers);
    *c = (struct sv_chosen){0};
}
