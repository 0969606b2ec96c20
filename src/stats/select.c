/* Selecting slices by globs. Used by stats, diff and the reports; the terms come from the command
 * line.
 *
 * A category is a list joined by commas: one of its parts must match. */
#include "stats/select.h"

#include "core/base/glob.h"
#include "core/base/mem.h"
#include "store/ranks.h"
#include "subjects/io/words.h"
#include "why/words.h"

#include <stdlib.h>
#include <string.h>

enum { NAME, CAT, TRACK, N_KINDS };
static const char *const kinds[N_KINDS] = {"name=", "cat=", "track="};

static int kind_of(const char *term)
{
    for (int k = 0; k < N_KINDS; k++)
        if (strncmp(term, kinds[k], strlen(kinds[k])) == 0)
            return k;
    return -1;
}

struct sv_meanwhile sv_meanwhile_of(const struct sv_dict *d)
{
    return (struct sv_meanwhile){
        sv_dict_find_str(d, SV_CAT_THREAD_STATE, strlen(SV_CAT_THREAD_STATE)),
        sv_dict_find_str(d, SV_CAT_OFFCPU_SAMPLE, strlen(SV_CAT_OFFCPU_SAMPLE))};
}

static bool matches_part(const char *glob, struct sv_text text)
{
    const char *at = text.bytes, *end = text.bytes + text.len;
    for (;;) {
        const char *comma = memchr(at, ',', (size_t)(end - at)), *stop = comma ? comma : end;
        if (sv_glob_match(glob, at, (size_t)(stop - at)))
            return true;
        if (!comma)
            return false;
        at = comma + 1;
    }
}

static bool parse_ns(const char *text, int64_t *ns)
{
    static const struct {
        const char *unit;
        double ns;
    } units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"", 1}};
    char *end;
    double v = strtod(text, &end);
    if (end == text || v < 0)
        return false;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (strcmp(end, units[i].unit) == 0 && v * units[i].ns < 9e18) {
            *ns = (int64_t)(v * units[i].ns + 0.5);
            return true;
        }
    }
    return false;
}

static bool add_duration(struct sv_select *s, const char *term)
{
    if (strncmp(term, "dur>=", 5) == 0)
        return parse_ns(term + 5, &s->min_dur_ns);
    if (strncmp(term, "dur<=", 5) == 0)
        return parse_ns(term + 5, &s->max_dur_ns);
    return false;
}

/* Whether any term of this kind accepts; all do when there is none. */
static bool accepts(const char *const *terms, size_t n, int kind, struct sv_text text,
                    struct sv_text path)
{
    bool is_asked = false;
    for (size_t i = 0; i < n; i++) {
        if (kind_of(terms[i]) != kind)
            continue;
        const char *glob = terms[i] + strlen(kinds[kind]);
        is_asked = true;
        if (kind == CAT ? matches_part(glob, text) : sv_glob_match(glob, text.bytes, text.len))
            return true;
        if (kind == TRACK && sv_glob_match(glob, path.bytes, path.len))
            return true;
    }
    return !is_asked;
}

static void match_tracks(struct sv_select *s, const char *const *terms, size_t n)
{
    const struct sv_dict *d = s->trace->dict;
    struct sv_buf path;
    sv_buf_init(&path, 1u << 16);
    for (sv_track k = 0; k < s->trace->n_tracks; k++) {
        sv_buf_clear(&path);
        if (k)
            sv_track_path(d, k, &path);
        struct sv_text name = sv_dict_text(d, k ? d->tracks[k].name : 0);
        s->tracks[k] = accepts(terms, n, TRACK, name,
                               (struct sv_text){sv_buf_cstr(&path), (uint32_t)path.len});
        if (s->tracks[k] || k == 0)
            continue;
        sv_buf_clear(&path);
        sv_track_title(d, k, &path);
        s->tracks[k] = accepts(terms, n, TRACK, name,
                               (struct sv_text){sv_buf_cstr(&path), (uint32_t)path.len});
    }
    sv_buf_fini(&path);
}

int sv_select_init(struct sv_select *s, const struct sv_trace *t, const char *const *terms,
                   size_t n, struct sv_err *err)
{
    *s = (struct sv_select){.trace = t, .max_dur_ns = INT64_MAX, .n_strings = t->dict->n_strings};
    s->strings = sv_alloc((size_t)s->n_strings + 1);
    s->tracks = sv_alloc(((size_t)t->n_tracks + 1) * sizeof *s->tracks);
    for (size_t i = 0; i < n; i++) {
        s->is_named |= kind_of(terms[i]) >= 0;
        if (kind_of(terms[i]) < 0 && !add_duration(s, terms[i]))
            return sv_error(
                err, SV_EUSAGE,
                "--filter: '%s' is not name=GLOB, cat=GLOB, track=GLOB, dur>=TIME or dur<=TIME",
                terms[i]);
    }
    for (sv_str x = 0; x < s->n_strings; x++) {
        struct sv_text text = sv_dict_text(t->dict, x);
        s->strings[x] = (uint8_t)(accepts(terms, n, NAME, text, text) |
                                  accepts(terms, n, CAT, text, text) << 1);
    }
    match_tracks(s, terms, n);
    return 0;
}

void sv_select_fini(struct sv_select *s)
{
    free(s->strings);
    free(s->tracks);
    *s = (struct sv_select){0};
}
