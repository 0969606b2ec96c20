/* The Chrome writer's tracks: which pid and tid the events of a track get, and the metadata events
 * that say what the track really is (core/chrome/keys.h documents the rules).
 *
 * Called when a track is met first, and at the end of the file for tracks that changed or had no
 * events. Numbers that are true are kept; whatever Chrome has no number for, or whose number is
 * taken, gets a synthetic number that no system uses. Descriptions go from the outside in: a
 * process before its threads, a group before its members. Parents come from files and may form a
 * cycle: every walk upwards is bounded. */
#include "core/chrome/writer.h"

#include <inttypes.h>
#include <stdio.h>

#define SYNTHETIC    ((int64_t)1 << 30) /* pids of Linux end at 2^22 */
#define STEPS_MAX    1000
#define PATH_MAX_LEN 32 /* names in a path */

static const struct sv_track_info *info_of(const struct chrome_writer *w, sv_track t)
{
    return &w->dict->tracks[t];
}

static struct chrome_row *row_of(struct chrome_writer *w, sv_track t)
{
    if (t >= w->n_rows) {
        size_t n = w->dict->n_tracks;
        w->rows = sv_grow(w->rows, &w->cap_rows, n, sizeof *w->rows);
        memset(w->rows + w->n_rows, 0, (n - w->n_rows) * sizeof *w->rows);
        w->n_rows = n;
    }
    return &w->rows[t];
}

/* ---- numbers ---- */

/* What a JSON reader that knows doubles only can hold. */
static bool is_exact_double(int64_t n)
{
    return n > -((int64_t)1 << 53) && n < (int64_t)1 << 53;
}

static int64_t synthetic(struct chrome_writer *w)
{
    if (w->next_number == 0)
        w->next_number = SYNTHETIC;
    while (sv_map_find(&w->pids, (uint64_t)w->next_number) != NULL)
        w->next_number++;
    return w->next_number++;
}

static int64_t take_pid(struct chrome_writer *w, sv_track t, bool is_true, int64_t pid)
{
    bool is_new = false;
    if (is_true && is_exact_double(pid))
        sv_map_add(&w->pids, (uint64_t)pid, &is_new);
    if (!is_new)
        pid = synthetic(w);
    *sv_map_add(&w->pids, (uint64_t)pid, NULL) = t;
    return pid;
}

static uint64_t pair_hash(int64_t pid, uint64_t other)
{
    return sv_mix64((uint64_t)pid ^ sv_mix64(other + 0x9e3779b97f4a7c15ull));
}

static int64_t take_tid(struct chrome_writer *w, int64_t pid, sv_track t, bool is_true, int64_t tid)
{
    bool is_new = false;
    uint64_t *owner = NULL;
    if (is_true && is_exact_double(tid))
        owner = sv_map_add(&w->tids, pair_hash(pid, (uint64_t)tid), &is_new);
    if (!is_new) {
        do {
            tid = synthetic(w);
            owner = sv_map_add(&w->tids, pair_hash(pid, (uint64_t)tid), &is_new);
        } while (!is_new);
    }
    *owner = t;
    return tid;
}

static void set_ids(struct chrome_writer *w, struct chrome_row *row, int64_t pid, int64_t tid,
                    bool has_tid)
{
    char text[64];
    int len = has_tid
                  ? snprintf(text, sizeof text, "\"pid\":%" PRId64 ",\"tid\":%" PRId64, pid, tid)
                  : snprintf(text, sizeof text, "\"pid\":%" PRId64, pid);
    row->ids = sv_arena_copy(&w->arena, text, (size_t)len);
    row->ids_len = (uint16_t)len;
}

/* ---- names for viewers ---- */

static void put_own_name(struct chrome_writer *w, struct sv_buf *b, sv_track t)
{
    const struct sv_track_info *info = info_of(w, t);
    struct sv_text name = sv_dict_text(w->dict, info->name);
    if (name.len > 0)
        sv_buf_add(b, name.bytes, name.len);
    else if (info->kind == SV_TRACK_THREAD)
        sv_buf_printf(b, "thread %" PRId64, info->tid);
    else if (info->kind == SV_TRACK_PROCESS)
        sv_buf_printf(b, "process %" PRId64, info->pid);
    else
        sv_buf_str(b, sv_track_kind_name(info->kind));
}

/* The names from below the group down to the track: "GPU 0 › stream 7 (lane 2)". */
static struct sv_text shown_path(struct chrome_writer *w, sv_track t, sv_track group)
{
    sv_track path[PATH_MAX_LEN];
    size_t n = 0;
    for (sv_track at = t; at != 0 && n < PATH_MAX_LEN && (at != group || n == 0);
         at = info_of(w, at)->parent)
        path[n++] = at;
    struct sv_buf *b = &w->scratch;
    sv_buf_clear(b);
    while (n-- > 0) {
        const struct sv_track_info *info = info_of(w, path[n]);
        if (info->kind == SV_TRACK_LANE && b->len > 0) {
            sv_buf_printf(b, " (lane %" PRId64 ")", info->has_order ? info->order + 1 : 2);
            continue;
        }
        if (b->len > 0)
            sv_buf_str(b, " › ");
        put_own_name(w, b, path[n]);
    }
    return (struct sv_text){.bytes = sv_buf_cstr(b), .len = (uint32_t)b->len};
}

static struct sv_text shown_process(struct chrome_writer *w, sv_track t)
{
    const struct sv_track_info *info = info_of(w, t);
    struct sv_buf *b = &w->scratch;
    sv_buf_clear(b);
    put_own_name(w, b, t);
    if (info->kind == SV_TRACK_PROCESS && w->rows[t].group_pid != info->pid) {
        sv_buf_printf(b, " (pid %" PRId64, info->pid);
        if (info->space != 0)
            sv_buf_printf(b, ", space %u", info->space);
        sv_buf_str(b, ")");
    }
    return (struct sv_text){.bytes = sv_buf_cstr(b), .len = (uint32_t)b->len};
}

/* ---- metadata events ---- */

void chrome_begin_metadata(struct chrome_writer *w, const char *name, int64_t pid, int64_t tid)
{
    struct sv_json *j = &w->json;
    chrome_line(w);
    sv_json_put(j, "ph", text, "M", 1);
    sv_json_put(j, "name", cstr, name);
    sv_json_put(j, "pid", i64, pid);
    sv_json_put(j, "tid", i64, tid);
    sv_json_put(j, "args", begin, '{');
}

void chrome_end_metadata(struct chrome_writer *w)
{
    sv_json_end(&w->json);
    sv_json_end(&w->json);
}

static void put_number(struct chrome_writer *w, const char *key, int64_t v)
{
    sv_json_key(&w->json, key, strlen(key));
    sv_json_i64(&w->json, v);
}

static void put_text_if(struct chrome_writer *w, const char *key, sv_str text)
{
    if (text != 0)
        chrome_key_text(w, key, strlen(key), text);
}

static void put_sort_index(struct chrome_writer *w, const char *event, sv_track t, int64_t pid,
                           int64_t tid)
{
    const struct sv_track_info *info = info_of(w, t), *shown = info;
    for (unsigned steps = 0;
         shown->kind == SV_TRACK_LANE && shown->parent != 0 && steps < STEPS_MAX; steps++)
        shown = info_of(w, shown->parent); /* a lane stays beside its track */
    if (!info->has_order && !shown->has_order)
        return;
    chrome_begin_metadata(w, event, pid, tid);
    put_number(w, "sort_index", shown->has_order ? shown->order : 0);
    if (shown != info && info->has_order)
        put_number(w, SV_CHROME_TRACK_ORDER, info->order);
    chrome_end_metadata(w);
}

/* What the numbers in a description of this kind are when it does not name them. */
static void put_true_numbers(struct chrome_writer *w, const struct sv_track_info *info, int64_t pid,
                             int64_t tid)
{
    bool has_pid = info->kind == SV_TRACK_PROCESS || info->kind == SV_TRACK_THREAD;
    if (info->pid != (has_pid ? pid : -1))
        put_number(w, SV_CHROME_TRACK_PID, info->pid);
    if (info->tid != (info->kind == SV_TRACK_THREAD ? tid : -1))
        put_number(w, SV_CHROME_TRACK_TID, info->tid);
}

struct place {
    int64_t pid, tid;
    sv_track default_parent;
    unsigned default_kind;
};

/* The members that make a track out of a name. */
static void put_track(struct chrome_writer *w, sv_track t, struct sv_text shown,
                      const struct place *at)
{
    struct sv_json *j = &w->json;
    const struct sv_track_info *info = info_of(w, t);
    struct sv_text name = sv_dict_text(w->dict, info->name);
    sv_json_put(j, SV_CHROME_TRACK_UUID, hex, chrome_uuid(w, t));
    if (info->kind != at->default_kind) {
        const char *kind = sv_track_kind_name(info->kind);
        sv_json_put(j, SV_CHROME_TRACK_KIND, cstr, kind);
    }
    if (info->parent != at->default_parent)
        sv_json_put(j, SV_CHROME_TRACK_PARENT, hex,
                    info->parent != 0 ? chrome_uuid(w, info->parent) : 0);
    if (name.len != shown.len || memcmp(name.bytes, shown.bytes, name.len) != 0)
        sv_json_put(j, SV_CHROME_TRACK_NAME, text, name.bytes, name.len);
    put_true_numbers(w, info, at->pid, at->tid);
    if (info->space != 0)
        put_number(w, SV_CHROME_TRACK_SPACE, info->space);
    if (info->child_order != 0)
        put_number(w, SV_CHROME_TRACK_CHILD_ORDER, info->child_order);
    if (info->sibling_merge != 0)
        put_number(w, SV_CHROME_TRACK_MERGE, info->sibling_merge);
    put_text_if(w, SV_CHROME_TRACK_MERGE_KEY, info->merge_key);
    put_text_if(w, SV_CHROME_TRACK_UNIT, info->unit);
    if (info->multiplier != 0)
        put_number(w, SV_CHROME_TRACK_MULTIPLIER, info->multiplier);
    if (info->is_incremental)
        sv_json_put(j, SV_CHROME_TRACK_INCREMENTAL, bool, true);
    if (info->start_ns != 0)
        put_number(w, SV_CHROME_TRACK_START, info->start_ns);
    put_text_if(w, SV_CHROME_TRACK_CATEGORY, info->cat);
    put_text_if(w, SV_CHROME_TRACK_ORIGIN, info->origin);
    if (at->default_kind != SV_TRACK_PROCESS)
        put_text_if(w, SV_CHROME_TRACK_DESC, info->desc);
}

/* Properties that only a description with a uuid can hold. */
static bool has_extras(const struct sv_track_info *i)
{
    return i->child_order != 0 || i->sibling_merge != 0 || i->merge_key != 0 || i->unit != 0 ||
           i->origin != 0 || i->multiplier != 0 || i->is_incremental || i->start_ns != 0;
}

/* ---- processes and groups ---- */

static void update_children(struct chrome_writer *w)
{
    size_t n = w->dict->n_tracks;
    if (w->n_seen == n)
        return;
    w->has_child = sv_grow(w->has_child, &w->cap_seen, n, 1);
    memset(w->has_child + w->n_seen, 0, n - w->n_seen);
    for (; w->n_seen < n; w->n_seen++)
        w->has_child[info_of(w, (sv_track)w->n_seen)->parent] = 1;
}

/* The track whose pid this one is shown under: its process, or the top of its group; 0: it has
 * neither. */
static sv_track group_of(struct chrome_writer *w, sv_track t)
{
    sv_track top = sv_dict_process_of(w->dict, t);
    if (top != 0)
        return top;
    top = t;
    for (unsigned steps = 0; info_of(w, top)->parent != 0; steps++) {
        if (steps == STEPS_MAX)
            return 0;
        top = info_of(w, top)->parent;
    }
    update_children(w);
    return top != t || w->has_child[t] ? top : 0;
}

static bool is_plain_process(const struct chrome_writer *w, sv_track t)
{
    const struct sv_track_info *info = info_of(w, t);
    return info->kind == SV_TRACK_PROCESS && info->parent == 0 && info->space == 0 &&
           info->tid == -1 && info->uuid == sv_uuid_process(0, info->pid) &&
           w->rows[t].group_pid == info->pid && info->cat == 0 && !has_extras(info);
}

static void describe_group(struct chrome_writer *w, sv_track t)
{
    const struct sv_track_info *info = info_of(w, t);
    int64_t pid = w->rows[t].group_pid;
    bool is_plain = is_plain_process(w, t);
    if (!is_plain || info->name != 0) {
        struct sv_text shown = shown_process(w, t);
        chrome_begin_metadata(w, "process_name", pid, pid);
        sv_json_put(&w->json, "name", text, shown.bytes, shown.len);
        if (!is_plain)
            put_track(w, t, shown, &(struct place){pid, pid, 0, SV_TRACK_PROCESS});
        chrome_end_metadata(w);
    }
    if (info->desc != 0) {
        chrome_begin_metadata(w, "process_labels", pid, pid);
        put_text_if(w, "labels", info->desc);
        chrome_end_metadata(w);
    }
    put_sort_index(w, "process_sort_index", t, pid, pid);
    w->rows[t].is_group_described = true;
    w->rows[t].group_revision = info->revision;
}

static int64_t group_pid(struct chrome_writer *w, sv_track group)
{
    if (group != 0) {
        struct chrome_row *row = row_of(w, group);
        if (!row->has_group) {
            const struct sv_track_info *info = info_of(w, group);
            bool is_true = info->kind == SV_TRACK_PROCESS && info->space == 0;
            row->group_pid = take_pid(w, group, is_true, info->pid);
            row->has_group = true;
            describe_group(w, group);
        }
        return w->rows[group].group_pid;
    }
    if (!w->has_global) {
        w->has_global = true;
        w->global_pid = take_pid(w, 0, false, 0);
        chrome_begin_metadata(w, "process_name", w->global_pid, w->global_pid);
        sv_json_put(&w->json, "name", text, "global", 6);
        sv_json_put(&w->json, SV_CHROME_TRACK_UUID, hex, 0);
        chrome_end_metadata(w);
    }
    return w->global_pid;
}

bool chrome_is_process(struct chrome_writer *w, sv_track t, int64_t *pid)
{
    if (info_of(w, t)->kind != SV_TRACK_PROCESS)
        return false;
    *pid = group_pid(w, t);
    return true;
}

/* ---- the other tracks ---- */

static void describe_row(struct chrome_writer *w, sv_track t, sv_track group, bool with_uuid)
{
    const struct sv_track_info *info = info_of(w, t);
    struct chrome_row *row = &w->rows[t];
    bool is_thread = row->form == ROW_THREAD && info->kind == SV_TRACK_THREAD;
    if (with_uuid || (is_thread && info->name != 0)) {
        struct sv_text shown = is_thread && info->name != 0 ? sv_dict_text(w->dict, info->name)
                                                            : shown_path(w, t, group);
        chrome_begin_metadata(w, "thread_name", row->pid, row->tid);
        sv_json_put(&w->json, "name", text, shown.bytes, shown.len);
        if (with_uuid) /* inside itself a group cannot be its own default parent */
            put_track(w, t, shown,
                      &(struct place){row->pid, row->tid, t == group ? UINT32_MAX : group,
                                      SV_TRACK_THREAD});
        chrome_end_metadata(w);
    }
    if (with_uuid || is_thread)
        put_sort_index(w, "thread_sort_index", t, row->pid, row->tid);
    row->is_described = true;
    row->is_bound |= with_uuid;
    row->revision = info->revision;
}

static void bind_row(struct chrome_writer *w, sv_track t, sv_track group);

/* Groups on the way up that have no events of their own must be described all the same. */
static void place_ancestors(struct chrome_writer *w, sv_track t, sv_track group)
{
    sv_track chain[STEPS_MAX];
    size_t n = 0;
    if (w->is_placing)
        return; /* the caller goes through the chain */
    for (sv_track at = info_of(w, t)->parent; at != 0 && at != group && at != t && n < STEPS_MAX;
         at = info_of(w, at)->parent)
        chain[n++] = at;
    w->is_placing = true;
    while (n-- > 0) {
        if (row_of(w, chain[n])->form == ROW_NONE)
            chrome_place(w, chain[n], NULL);
        if (!w->rows[chain[n]].is_bound && info_of(w, chain[n])->name == 0)
            bind_row(w, chain[n], group); /* nothing else in the file may mention it */
    }
    w->is_placing = false;
}

static void bind_row(struct chrome_writer *w, sv_track t, sv_track group)
{
    struct chrome_row *row = &w->rows[t];
    if (!row->has_tid) {
        row->tid = take_tid(w, row->pid, t, false, 0);
        row->has_tid = true;
        if (row->form != ROW_ASYNC) /* whose events keep the tid of their thread */
            set_ids(w, row, row->pid, row->tid, true);
        if (row->form == ROW_SERIES)
            row->form = ROW_COUNTER;
    }
    place_ancestors(w, t, group);
    describe_row(w, t, group, true);
}

static bool is_plain_thread(const struct chrome_writer *w, sv_track t, sv_track group)
{
    const struct sv_track_info *info = info_of(w, t);
    const struct chrome_row *row = &w->rows[t];
    return group != 0 && info->parent == group && info->space == 0 && info->pid == row->pid &&
           info->tid == row->tid && info->pid == info_of(w, group)->pid &&
           info_of(w, group)->uuid == sv_uuid_process(0, info->pid) &&
           info->uuid == sv_uuid_thread(0, info->pid, info->tid) && info->desc == 0 &&
           info->cat == 0 && !has_extras(info);
}

/* A child of its process that the reader makes from pid and name. */
static bool is_plain_counter(const struct chrome_writer *w, sv_track t, sv_track parent, sv_str cat)
{
    const struct sv_track_info *info = info_of(w, t);
    struct sv_text name = sv_dict_text(w->dict, info->name);
    return parent != 0 && info->parent == parent && name.len > 0 && info->cat == cat &&
           !info->has_order && info->desc == 0 && info->pid == -1 && info->tid == -1 &&
           info->space == info_of(w, parent)->space &&
           info->uuid ==
               sv_uuid_child(info_of(w, parent)->uuid, SV_TRACK_COUNTER, name.bytes, name.len) &&
           !has_extras(info);
}

static bool is_series(const struct chrome_writer *w, sv_track t, sv_track group, sv_str cat)
{
    const struct sv_track_info *info = info_of(w, t);
    struct sv_text name = sv_dict_text(w->dict, info->name);
    return info->parent != 0 && info_of(w, info->parent)->kind == SV_TRACK_COUNTER &&
           is_plain_counter(w, info->parent, group, cat) &&
           is_plain_counter(w, t, info->parent, 0) &&
           info->name != info_of(w, info->parent)->name &&
           !(name.len == 5 && memcmp(name.bytes, "value", 5) == 0) &&
           !(name.len == 4 && memcmp(name.bytes, "unit", 4) == 0);
}

static void place_counter(struct chrome_writer *w, sv_track t, sv_track group,
                          const struct sv_event *first)
{
    struct chrome_row *row = &w->rows[t];
    const struct sv_track_info *info = info_of(w, t);
    bool in_process = group != 0 && info_of(w, group)->kind == SV_TRACK_PROCESS;
    sv_str cat = first != NULL ? first->cat : info->cat;
    row->form = ROW_COUNTER;
    set_ids(w, row, row->pid, 0, false);
    row->label = info->name;
    if (in_process && is_series(w, t, group, cat)) {
        row->form = ROW_SERIES;
        row->label = info_of(w, info->parent)->name;
    } else if (!in_process || !is_plain_counter(w, t, group, cat)) {
        struct sv_text path = shown_path(w, t, group);
        row->label = sv_dict_str(w->dict, path.bytes, path.len);
        bind_row(w, t, group);
        row = &w->rows[t];
    }
    row->is_described = true;
    row->revision = info_of(w, t)->revision;
    bool is_new;
    uint64_t *owner = sv_map_add(&w->labels, pair_hash(row->pid, row->label), &is_new);
    sv_track key = row->form == ROW_SERIES ? info_of(w, t)->parent : t;
    if (is_new)
        *owner = key;
    row->needs_id = *owner != key;
}

/* Viewers show an operation under its thread, or else under the process's first one. */
static void place_async(struct chrome_writer *w, sv_track t, sv_track group,
                        const struct sv_event *first)
{
    w->rows[t].form = ROW_ASYNC;
    sv_track thread = sv_dict_thread_of(w->dict, info_of(w, t)->parent);
    if (thread != 0 && row_of(w, thread)->form == ROW_NONE)
        chrome_place(w, thread, NULL);
    struct chrome_row *row = &w->rows[t];
    const struct sv_track_info *info = info_of(w, t);
    set_ids(w, row, row->pid, thread != 0 ? w->rows[thread].tid : row->pid, true);
    bool is_plain = info->parent == group && first != NULL && first->name == info->name &&
                    first->kind != SV_END && info->desc == 0 && info->cat == 0 &&
                    !info->has_order && info->pid == -1 && info->tid == -1 &&
                    info->space == (group != 0 ? info_of(w, group)->space : 0) && !has_extras(info);
    row->is_described = true;
    row->revision = info->revision;
    if (!is_plain)
        bind_row(w, t, group);
}

/* Gives a track its place and describes it. `first` is its first event, NULL when there is none. */
struct chrome_row *chrome_place(struct chrome_writer *w, sv_track t, const struct sv_event *first)
{
    sv_track group = group_of(w, t);
    int64_t pid = group_pid(w, group);
    struct chrome_row *row = row_of(w, t);
    const struct sv_track_info *info = info_of(w, t);
    if (row->form != ROW_NONE)
        return row;
    row->pid = pid;
    if (info->kind == SV_TRACK_COUNTER) {
        place_counter(w, t, group, first);
    } else if (info->kind == SV_TRACK_ASYNC) {
        place_async(w, t, group, first);
    } else {
        bool is_true = info->kind == SV_TRACK_THREAD && info->tid != -1;
        row->form = ROW_THREAD;
        row->tid = take_tid(w, pid, t, is_true, info->tid);
        row->has_tid = true;
        set_ids(w, row, pid, row->tid, true);
        if (info->kind == SV_TRACK_THREAD && is_plain_thread(w, t, group))
            describe_row(w, t, group, false);
        else
            bind_row(w, t, group);
    }
    return &w->rows[t];
}

/* For events that the reader would put elsewhere by their phase. */
struct chrome_row *chrome_bind(struct chrome_writer *w, sv_track t)
{
    if (!chrome_place(w, t, NULL)->is_bound)
        bind_row(w, t, group_of(w, t));
    return &w->rows[t];
}

static void describe_again(struct chrome_writer *w, sv_track t)
{
    struct chrome_row *row = &w->rows[t];
    sv_track group = group_of(w, t);
    if (row->form == ROW_THREAD && !row->is_bound && is_plain_thread(w, t, group))
        describe_row(w, t, group, false);
    else
        bind_row(w, t, group);
}

void chrome_describe_late(struct chrome_writer *w)
{
    for (sv_track t = 1; t < w->dict->n_tracks; t++) {
        const struct sv_track_info *info = info_of(w, t);
        struct chrome_row *row = row_of(w, t);
        if (row->is_group_described && row->group_revision != info->revision)
            describe_group(w, t);
        if (row->form != ROW_NONE && row->revision != info->revision)
            describe_again(w, t);
        else if (row->form == ROW_NONE && info->is_described && info->kind == SV_TRACK_PROCESS)
            group_pid(w, t);
        else if (row->form == ROW_NONE && info->is_described && !row->has_group)
            chrome_place(w, t, NULL);
    }
}
