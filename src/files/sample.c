/* Choosing pieces of a trace. Called by `stave info`. See sample.h. */
#include "files/sample.h"

#include "core/base/json_scan.h"
#include "core/base/mem.h"
#include "files/tail.h"
#include "threads/workers.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { RESYNC_PIECES = 10 };

static uint64_t used_until(const struct sv_sample *s)
{
    return s->n ? s->pieces[s->n - 1].at + s->pieces[s->n - 1].bytes : 0;
}

static void put_piece(struct sv_sample *s, uint64_t begin, uint64_t end)
{
    s->pieces[s->n++] = (struct sv_piece){begin, end - begin};
    s->bytes += end - begin;
}

/* ---- between resync points ---- */

/* Adds the piece from the first resync point at or after `at` to the next one. */
static void add_piece(int fd, uint64_t at, struct sv_sample *s)
{
    uint64_t begin, end;
    if (!sv_find_resync(fd, at, &begin) || begin < used_until(s))
        return;
    if (!sv_find_resync(fd, begin + 1, &end))
        end = s->size;
    put_piece(s, begin, end);
}

/* The last resync point. Looks back in steps that double. */
static uint64_t last_resync(int fd, uint64_t size)
{
    uint64_t found = 0, next;
    for (uint64_t back = 1u << 20; found == 0 && back < 2 * size; back *= 2)
        if (!sv_find_resync(fd, size > back ? size - back : 0, &found))
            found = 0;
    while (sv_find_resync(fd, found + 1, &next))
        found = next;
    return found;
}

/* Whether there are pieces, and together less than half of the file. */
static bool choose_resync(int fd, struct sv_sample *s)
{
    uint64_t first;
    if (!sv_has_resync(fd, 0) || !sv_find_resync(fd, 1, &first))
        return false;
    uint64_t last = last_resync(fd, s->size), parts = RESYNC_PIECES - 1;
    for (uint64_t i = 0; i < parts; i++) {
        uint64_t at = s->size / parts * i;
        if (at < last)
            add_piece(fd, at, s);
    }
    add_piece(fd, last, s);
    return s->bytes < s->size / 2;
}

/* ---- between events of Chrome JSON ---- */

/* A window in the middle of the file, with the pad that scanning needs. */
struct window {
    uint8_t *bytes;
    const struct sv_json_scan *scan;
};

enum { WINDOW_BYTES = 256 << 10, EVENTS_IN_A_ROW = 3, TRIES = 2000 };

static const uint8_t *after_value(const struct window *w, const uint8_t *p, const uint8_t *end)
{
    struct sv_json_skip s = {0};
    return p < end ? sv_json_skip(&s, w->scan, p, end) : NULL;
}

/* Of a well-formed object: it has a phase, as every event has and what is in its arguments has
 * not. */
static bool has_phase(const struct window *w, const uint8_t *p, const uint8_t *end)
{
    for (p = sv_json_solid(p + 1, end); p < end && *p == '"'; p = sv_json_solid(p + 1, end)) {
        const uint8_t *key = p + 1, *after = after_value(w, p, end);
        if (!after)
            return false;
        bool is_phase = after - key == 3 && memcmp(key, "ph", 2) == 0;
        p = sv_json_solid(after, end);                 /* the colon */
        p = p < end ? sv_json_solid(p + 1, end) : end; /* the value */
        if (is_phase)
            return p < end && *p == '"';
        after = after_value(w, p, end);
        p = after ? sv_json_solid(after, end) : end; /* the comma, or the end */
    }
    return false;
}

static bool events_follow(const struct window *w, const uint8_t *p, const uint8_t *end)
{
    for (int i = 0; p < end && *p == '{'; i++) {
        const uint8_t *after = after_value(w, p, end);
        if (!after || !sv_json_valid(p, (size_t)(after - p)) || !has_phase(w, p, after))
            return false;
        if (i + 1 == EVENTS_IN_A_ROW)
            return true;
        p = sv_json_solid(after, end);
        if (p >= end || *p != ',')
            return false;
        p = sv_json_solid(p + 1, end);
    }
    return false;
}

/* The first comma at or after `at`, within a window, that is between two events. From inside of a
 * text no object can be read: its quotes are escaped. */
static bool find_event(const struct window *w, int fd, uint64_t at, uint64_t *comma)
{
    ssize_t n = pread(fd, w->bytes, WINDOW_BYTES, (off_t)at);
    const uint8_t *p = w->bytes, *end = p + (n > 0 ? n : 0);
    for (int i = 0; i < TRIES && p < end; i++) {
        p = memchr(p, '}', (size_t)(end - p));
        if (!p)
            return false;
        const uint8_t *q = ++p < end ? sv_json_solid(p, end) : end;
        if (q < end && *q == ',' && q + 1 < end &&
            events_follow(w, sv_json_solid(q + 1, end), end)) {
            *comma = at + (uint64_t)(q - w->bytes);
            return true;
        }
    }
    return false;
}

static bool is_json(int fd)
{
    uint8_t b[64 + SV_JSON_PAD] = {0};
    ssize_t n = pread(fd, b, 64, 0);
    const uint8_t *p = b, *end = b + (n > 0 ? n : 0);
    if (n > 3 && memcmp(b, "\xef\xbb\xbf", 3) == 0)
        p += 3;
    p = p < end ? sv_json_solid(p, end) : end;
    return p < end && (*p == '{' || *p == '[');
}

/* From the head to the first event after it, from an event before the tail to the end, and between
 * these some of a given size. What is before and after the events is read as a whole; if it is
 * much, the pieces say little about the rest. */
static bool choose_events_by(const struct window *w, int fd, struct sv_sample *s)
{
    uint64_t unit = s->size / 512 < (512 << 10) ? s->size / 512 : 512 << 10, most = 8 * unit;
    uint64_t head, tail, begin, end;
    for (head = unit; head <= most && !find_event(w, fd, head, &begin); head *= 2)
        ;
    if (head > most)
        return false;
    put_piece(s, 0, begin);
    for (tail = unit; tail <= most && !find_event(w, fd, s->size - tail, &end); tail *= 2)
        ;
    if (tail > most)
        return false;
    uint64_t last = end, parts = SV_SAMPLE_PIECES - 2, step = (last - begin) / (parts + 1);
    for (uint64_t i = 1, from = begin; i <= parts; i++)
        if (find_event(w, fd, from + step * i, &begin) && begin >= used_until(s) &&
            find_event(w, fd, begin + unit, &end) && end <= last)
            put_piece(s, begin, end);
    if (s->n < parts / 2 || last < used_until(s))
        return false;
    put_piece(s, last, s->size);
    return s->bytes < s->size / 2;
}

static bool choose_events(int fd, struct sv_sample *s)
{
    if (!is_json(fd) || s->size < 512)
        return false;
    struct window w = {sv_alloc(WINDOW_BYTES + SV_JSON_PAD), sv_json_scan_best()};
    bool is_chosen = choose_events_by(&w, fd, s);
    free(w.bytes);
    return is_chosen;
}

/* ---- the beginning ---- */

static bool is_compressed(int fd)
{
    uint8_t b[4];
    return pread(fd, b, sizeof b, 0) == (ssize_t)sizeof b &&
           (memcmp(b, "\x1f\x8b", 2) == 0 || memcmp(b, "\x28\xb5\x2f\xfd", 4) == 0);
}

/* As a whole: who reads it stops. By one thread, so that little is read ahead of what was
 * counted. */
static int open_head(const char *path, struct sv_sample *s, struct sv_dict *dict,
                     struct sv_opened *o, struct sv_err *err)
{
    struct sv_workers *alone = sv_workers_new(1);
    int code =
        sv_open_input_as(path, NULL, &(struct sv_read_options){.workers = alone}, dict, o, err);
    o->workers = alone;
    s->kind = SV_SAMPLE_HEAD_ONLY;
    s->n = 1;
    bool is_stream = code >= 0 && (strcmp(o->format->name, "perfetto") == 0 ||
                                   strcmp(o->format->name, "chrome") == 0);
    if (is_stream)
        return 1;
    sv_opened_close(o);
    return code < 0 ? code : 0;
}

int sv_open_sample(const char *path, uint64_t above, struct sv_sample *s, struct sv_dict *dict,
                   struct sv_opened *o, struct sv_err *err)
{
    struct stat st;
    *s = (struct sv_sample){0};
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0; /* who opens it as a whole says why */
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
        s->size = (uint64_t)st.st_size;
    bool is_packed = is_compressed(fd), has_pieces = false;
    bool is_large = s->size > (is_packed ? above / 8 : above);
    if (is_large && !is_packed) {
        has_pieces = choose_resync(fd, s);
        if (!has_pieces && s->n == 0 && choose_events(fd, s)) {
            has_pieces = true;
            s->kind = SV_SAMPLE_EVENTS;
        }
    }
    if (has_pieces) {
        int code = sv_open_pieces(path, fd, s->pieces, s->n, dict, o, err);
        return code < 0 ? code : 1;
    }
    bool is_foreign =
        s->n == 0 &&
        !is_json(fd); /* with some pieces it is a recording or JSON that is read as a whole */
    close(fd);
    s->n = 0;
    s->bytes = 0;
    return is_large && is_foreign ? open_head(path, s, dict, o, err) : 0;
}
