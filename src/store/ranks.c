/* Ranks and machines of tracks: see ranks.h. Called by SQL, reports, plots and the viewer, on any
 * dictionary, also a hostile one. */
#include "store/ranks.h"
#include "core/stream/launched.h"
#include "core/stream/machine.h"
#include "store/filter.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { STEPS_MAX = 1000, KEY_MAX = 1024, LABELS_MAX = 16 };

static sv_str origin_label(const struct sv_dict *d, sv_track track)
{
    sv_track at = track < d->n_tracks ? sv_dict_process_of(d, track) : 0;
    if (at == 0) {
        at = track < d->n_tracks ? track : 0;
        for (unsigned steps = 0; steps < STEPS_MAX && d->tracks[at].parent; steps++)
            at = d->tracks[at].parent;
    }
    return d->tracks[at].origin;
}

static const struct sv_meta *find_under(const struct sv_dict *d, const char *label, size_t len,
                                        const char *key)
{
    char text[KEY_MAX];
    int n = snprintf(text, sizeof text, "%.*s/%s", (int)len, label, key);
    return n > 0 && n < KEY_MAX ? sv_dict_find_meta(d, text) : NULL;
}

/* The label "a/b" means the metadata of "a/b", of "b" where all inputs agreed on them, of "a", and
 * at last those without a label. */
static const struct sv_meta *meta_of_track(const struct sv_dict *d, sv_track track, const char *key)
{
    struct sv_text label = sv_dict_text(d, origin_label(d, track));
    const struct sv_meta *found;
    size_t starts[LABELS_MAX + 1], n = 0;
    if (label.len == 0 || label.len >= KEY_MAX)
        return sv_dict_find_meta(d, key);
    starts[n++] = 0;
    for (size_t i = 0; i < label.len && n < LABELS_MAX; i++)
        if (label.bytes[i] == '/')
            starts[n++] = i + 1;
    starts[n] = (size_t)label.len + 1;
    for (size_t end = n; end > 0; end--)
        for (size_t from = 0; from < end; from++)
            if ((found = find_under(d, label.bytes + starts[from], starts[end] - 1 - starts[from],
                                    key)))
                return found;
    return sv_dict_find_meta(d, key);
}

static const char *text_of(const struct sv_dict *d, sv_track track, const char *key)
{
    const struct sv_meta *m = meta_of_track(d, track, key);
    return m && m->value ? sv_dict_text(d, m->value).bytes : NULL;
}

static int64_t number_of(const struct sv_dict *d, sv_track track, const char *key)
{
    const char *text = text_of(d, track, key);
    char *end;
    if (!text)
        return -1;
    errno = 0;
    long long n = strtoll(text, &end, 10);
    return errno == 0 && end != text && *end == '\0' && n >= 0 ? n : -1;
}

struct sv_origin sv_origin_of(const struct sv_dict *d, sv_track track)
{
    return (struct sv_origin){
        .rank = number_of(d, track, SV_META_RANK),
        .local_rank = number_of(d, track, SV_META_LOCAL_RANK),
        .world_size = number_of(d, track, SV_META_WORLD_SIZE),
        .launcher = text_of(d, track, SV_META_LAUNCHER),
        .job = text_of(d, track, SV_META_JOB),
        .host = text_of(d, track, SV_META_HOST),
        .boot = text_of(d, track, SV_META_BOOT),
    };
}

int64_t sv_rank_of_track(const struct sv_trace *t, sv_track track)
{
    return number_of(t->dict, track, SV_META_RANK);
}

const char *sv_host_of_track(const struct sv_trace *t, sv_track track)
{
    return text_of(t->dict, track, SV_META_HOST);
}

const char *sv_boot_of_track(const struct sv_trace *t, sv_track track)
{
    return text_of(t->dict, track, SV_META_BOOT);
}

void sv_rank_prefix(const struct sv_dict *d, sv_track track, struct sv_buf *to)
{
    int64_t rank = number_of(d, track, SV_META_RANK);
    if (rank >= 0)
        sv_buf_printf(to, "rank %" PRId64 " \xc2\xb7 ", rank);
}

void sv_track_title(const struct sv_dict *d, sv_track track, struct sv_buf *to)
{
    sv_rank_prefix(d, track, to);
    sv_track_path(d, track, to);
}
