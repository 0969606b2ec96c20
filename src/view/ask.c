/* Requests of the page as structs, and the small parts that answers share.
 *
 * A body is a small JSON object of known members; unknown ones are ignored, wrong ones refused.
 * Everything in it is hostile: numbers are checked against the trace here, so that answers need
 * not. */
#include "view/answers.h"

#include "core/base/map.h"
#include "core/base/mem.h"
#include "core/stream/json_members.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- parts of answers ---- */

void sv_json_str(struct sv_json *j, const struct sv_dict *d, sv_str s)
{
    struct sv_text text = sv_dict_text(d, s);
    sv_json_text(j, text.bytes, text.len);
}

void sv_put_short(struct sv_json *j, const struct sv_shown *s, uint32_t slice)
{
    const struct sv_slices *c = &s->trace->slices;
    sv_json_begin(j, '{');
    sv_json_put(j, "slice", u64, slice);
    sv_json_put(j, "name", str, s->trace->dict, c->name[slice]);
    sv_json_put(j, "ts", i64_text, c->ts_ns[slice]);
    sv_json_put(j, "dur", i64_text, c->dur_ns[slice]);
    sv_json_put(j, "row", u64, s->rows->row_of_track[c->track[slice]]);
    sv_json_put(j, "line", u64, sv_track_rows_line(s->rows, slice));
    sv_json_put(j, "colour", u64, sv_color_number(&s->colors, slice));
    sv_json_end(j);
}

/* ---- members ---- */

/* Times are strings, because JavaScript's numbers cannot hold them; whole numbers will do, too. */
static bool read_i64(const struct sv_member *m, int64_t *out)
{
    char text[24], *end;
    if (m->value.len == 0 || m->value.len >= sizeof text)
        return false;
    if (m->type != '"' && m->type != '0')
        return false;
    memcpy(text, m->value.bytes, m->value.len);
    text[m->value.len] = 0;
    errno = 0;
    *out = strtoll(text, &end, 10);
    return *end == 0 && errno == 0 && text[0] != ' ' && text[0] != '+';
}

static bool read_text(const struct sv_member *m, char *out, size_t size)
{
    struct sv_batch scratch;
    if (m->type != '"')
        return false;
    sv_batch_init(&scratch);
    struct sv_text text = sv_member_text(m, &scratch);
    bool fits = text.len < size && !memchr(text.bytes, 0, text.len);
    if (fits) {
        memcpy(out, text.bytes, text.len);
        out[text.len] = 0;
    }
    sv_batch_fini(&scratch);
    return fits;
}

static bool read_row(struct sv_ask *ask, const struct sv_shown *s, const struct sv_member *m)
{
    int64_t v[3];
    size_t n = 0;
    struct sv_member item;
    struct sv_members items = sv_members_of(m->value.bytes, m->value.len);
    if (m->type != '[')
        return false;
    while (n < 3 && sv_member_next(&items, &item))
        if (!read_i64(&item, &v[n++]))
            return false;
    if (n != 3 || items.is_bad || v[0] < 0 || (uint64_t)v[0] >= s->rows->n || v[1] < 0 ||
        v[1] > SV_ROW_LINES_MAX || v[2] < 0 || v[2] > SV_ROW_LINES_MAX)
        return false;
    SV_APPEND(ask->rows, ask->n_rows, ask->cap_rows) =
        (struct sv_ask_row){(uint32_t)v[0], (uint32_t)v[1], (uint32_t)v[2]};
    return true;
}

static bool read_rows(struct sv_ask *ask, const struct sv_shown *s, const struct sv_member *m)
{
    struct sv_members items = sv_members_of(m->value.bytes, m->value.len);
    if (m->type != '[')
        return false;
    for (struct sv_member item; sv_member_next(&items, &item);)
        if (ask->n_rows == SV_ASK_ROWS_MAX || !read_row(ask, s, &item))
            return false;
    return !items.is_bad;
}

static bool read_names(struct sv_ask *ask, const struct sv_member *m)
{
    struct sv_members items = sv_members_of(m->value.bytes, m->value.len);
    if (m->type != '[')
        return false;
    for (struct sv_member item; sv_member_next(&items, &item);) {
        int64_t name;
        if (ask->n_names == 10000 || !read_i64(&item, &name) || name < 0)
            return false;
        SV_APPEND(ask->names, ask->n_names, ask->cap_names) = name;
    }
    return !items.is_bad;
}

static bool read_tab(struct sv_ask *ask, const struct sv_member *m)
{
    ask->tab = sv_hash_bytes(m->value.bytes, m->value.len, 1) | 1;
    return m->type == '"';
}

/* `to` is a time of a window, or a direction. */
static bool read_to(struct sv_ask *ask, const struct sv_member *m)
{
    if (read_i64(m, &ask->to_ns))
        return ask->has_to = true;
    return read_text(m, ask->to_word, sizeof ask->to_word);
}

static bool read_member(struct sv_ask *ask, const struct sv_shown *s, const struct sv_member *m)
{
    const struct {
        const char *key;
        int64_t *value;
        bool *is_given;
    } numbers[] = {
        {"from", &ask->from_ns, &ask->has_from},
        {"at", &ask->at_ns, &ask->has_at},
        {"width", &ask->width, &ask->has_width},
        {"left", &ask->left, &ask->has_left},
        {"right", &ask->right, &ask->has_right},
        {"slice", &ask->slice, &ask->has_slice},
        {"limit", &ask->limit, NULL},
        {"seq", &ask->seq, NULL},
        {"args", &ask->args, NULL},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (sv_member_is(m, numbers[i].key)) {
            if (numbers[i].is_given)
                *numbers[i].is_given = true;
            return read_i64(m, numbers[i].value);
        }
    if (sv_member_is(m, "to"))
        return read_to(ask, m);
    if (sv_member_is(m, "rows"))
        return read_rows(ask, s, m);
    if (sv_member_is(m, "names"))
        return read_names(ask, m);
    if (sv_member_is(m, "tab"))
        return read_tab(ask, m);
    if (sv_member_is(m, "text"))
        return read_text(m, ask->text, sizeof ask->text);
    return true;
}

bool sv_ask_read(struct sv_ask *ask, const struct sv_shown *s, const struct sv_web_request *q,
                 struct sv_web_answer *a)
{
    *ask = (struct sv_ask){0};
    if (!q->is_post || q->len == 0 || q->body[0] != '{') {
        sv_web_error(a, q->is_post ? 400 : 405, "expected POST with a JSON object");
        return false;
    }
    struct sv_members members = sv_members_of((const char *)q->body, q->len);
    for (struct sv_member m; sv_member_next(&members, &m);)
        if (!read_member(ask, s, &m)) {
            sv_web_error(a, 400, "malformed value of '%.*s'", (int)(m.key.len & 63), m.key.bytes);
            return false;
        }
    if (members.is_bad ||
        (ask->has_slice && (ask->slice < 0 || (uint64_t)ask->slice >= s->trace->slices.n))) {
        sv_web_error(a, 400, members.is_bad ? "the body is not JSON" : "no such slice");
        return false;
    }
    if (ask->tab && ask->seq > 0)
        sv_viewer_newest(s->viewer, ask->tab, (uint64_t)ask->seq);
    return true;
}

void sv_ask_fini(struct sv_ask *ask)
{
    free(ask->rows);
    free(ask->names);
}

/* A number of the query; false: it is none. */
static bool read_param(const struct sv_web_request *q, const char *name, uint64_t *out)
{
    const char *text = sv_web_param(q, name);
    char *end;
    if (!text || text[0] < '0' || text[0] > '9')
        return false;
    errno = 0;
    *out = strtoull(text, &end, 10);
    return *end == 0 && errno == 0;
}

bool sv_ask_slice(const struct sv_shown *s, const struct sv_web_request *q, struct sv_web_answer *a,
                  uint32_t *out)
{
    uint64_t v;
    *out = SV_NO_ROW;
    if (read_param(q, "slice", &v))
        *out = v < s->trace->slices.n ? (uint32_t)v : SV_NO_ROW;
    else if (read_param(q, "id", &v))
        *out = sv_viewer_slice(s->viewer, v);
    if (*out == SV_NO_ROW)
        sv_web_error(a, 404, "no such slice");
    return *out != SV_NO_ROW;
}
