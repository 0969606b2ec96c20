/* See files/redact.h. Called by cmd/redact.c and by the recorder.
 *
 * What is a path, or SQL, is decided by the key of an argument where that says it, and otherwise by
 * the text: whatever has a slash is treated as if it had a path in it. Better a word too much than
 * one too few. */
#include "files/redact.h"

#include "core/base/glob.h"
#include "core/base/map.h"
#include "core/base/mem.h"
#include "core/stream/frame_text.h"
#include "core/stream/machine.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define REDACTED "redacted"

static const char *const path_keys[] = {
    "path",     "path2",   "root",          "cgroup",         "file",
    "filename", "cwd",     "dir",           "directory",      "exe",
    "script",   "library", "code.filepath", "code.file.path", "code.filename"};
static const char *const command_keys[] = {
    "command", "cmdline", "argv", "command_line", "process.command_line", "process.command_args"};
static const char *const sql_keys[] = {"sql", "statement", "query", "db.statement",
                                       "db.query.text"};
/* Metadata of a trace that name where it was made, and with what words. */
static const char *const command_meta[] = {"command", "trace_name", "cmdline"};

/* ---- the list ---- */

static int add_word(struct sv_redact_plan *p, const char *word, size_t len, struct sv_err *err)
{
    bool is_all = len == 3 && memcmp(word, "all", 3) == 0, is_known = is_all;
    const struct {
        const char *name;
        bool *on;
    } words[] = {{"paths", &p->paths}, {"commands", &p->commands}, {"sql", &p->sql}};
    for (size_t i = 0; i < 3; i++) {
        bool is = strlen(words[i].name) == len && memcmp(word, words[i].name, len) == 0;
        *words[i].on |= is_all || is;
        is_known |= is;
    }
    if (len > 5 && len - 5 < sizeof p->keys[0] && strncmp(word, "args=", 5) == 0 &&
        p->n_keys < SV_REDACT_KEYS_MAX) {
        snprintf(p->keys[p->n_keys++], sizeof p->keys[0], "%.*s", (int)(len - 5), word + 5);
        is_known = true;
    }
    return is_known ? 0
                    : sv_error(err, SV_EUSAGE,
                               "redact: '%.*s' is none of paths, commands, sql, args=GLOB and all",
                               (int)(len < 100 ? len : 100), word);
}

int sv_redact_parse(const char *list, struct sv_redact_plan *plan, struct sv_err *err)
{
    *plan = (struct sv_redact_plan){0};
    if (!sv_redact_init(&plan->tokens))
        return sv_err_sys(err, "redact: no random key");
    for (;;) {
        size_t len = strcspn(list, ",");
        int code = add_word(plan, list, len, err);
        if (code < 0 || !list[len])
            return code;
        list += len + 1;
    }
}

/* ---- one text ---- */

static bool is_among(const char *key, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(key, list[i]) == 0)
            return true;
    return false;
}
#define AMONG(key, list) is_among((key), (list), sizeof(list) / sizeof *(list))

/* A component takes at most a token, and has at least a byte. */
static char *whole_path(const struct sv_redact_plan *p, const char *text, size_t len,
                        size_t *out_len)
{
    size_t size = len * (SV_REDACT_TOKEN + 1) + SV_REDACT_TOKEN;
    char *to = sv_alloc(size + 1);
    *out_len = sv_redact_path(&p->tokens, text, len, to, size);
    return to;
}

static bool ends_path(char c)
{
    return (unsigned char)c <= ' ' || strchr("\"'()[]{}<>|;,=", c) != NULL;
}

/* Words with a slash within a text; the rest stays. NULL: it has none. */
static char *paths_in(const struct sv_redact_plan *p, const char *text, size_t len, size_t *out_len)
{
    if (!memchr(text, '/', len))
        return NULL;
    char *to = sv_alloc(len * (SV_REDACT_TOKEN + 1) + SV_REDACT_TOKEN + 1);
    size_t n = 0;
    for (size_t i = 0; i < len;) {
        size_t from = i, word_len;
        while (i < len && !ends_path(text[i]))
            i++;
        if (i > from && memchr(text + from, '/', i - from)) {
            char *word = whole_path(p, text + from, i - from, &word_len);
            memcpy(to + n, word, word_len);
            n += word_len;
            free(word);
        } else {
            memcpy(to + n, text + from, i - from);
            n += i - from;
        }
        if (i < len)
            to[n++] = text[i++];
    }
    *out_len = n;
    return to;
}

/* "step (train.py:41)": the file, not its line. "[libm.so.6+0x1f0]": the file, not the place in
 * it. NULL: the text is no frame of a stack. */
static char *frame(const struct sv_redact_plan *p, const char *text, size_t len, size_t *out_len)
{
    struct sv_frame_parts parts = sv_frame_parts(text, len);
    const char *plus = len > 5 && text[0] == '[' ? memmem(text, len, "+0x", 3) : NULL;
    size_t at = plus ? 1 : parts.file_at, n = plus ? (size_t)(plus - text) - 1 : parts.file_len,
           path_len;
    if (n == 0 || memchr(text + at, ' ', n))
        return NULL;
    char *path = whole_path(p, text + at, n, &path_len), *to = sv_alloc(len - n + path_len + 1);
    memcpy(to, text, at);
    memcpy(to + at, path, path_len);
    memcpy(to + at + path_len, text + at + n, len - at - n);
    free(path);
    *out_len = len - n + path_len;
    return to;
}

/* Addresses of sockets are "10.0.0.7:443", "[::1]:443", or a path. */
static bool is_path(const char *key, const char *text, size_t len)
{
    if (strcmp(key, "peer") == 0)
        return len > 0 && !isdigit((unsigned char)text[0]) && text[0] != '[';
    return AMONG(key, path_keys);
}

char *sv_redact_text(const struct sv_redact_plan *p, const char *key, const char *text, size_t len,
                     size_t *out_len)
{
    bool is_hidden = p->commands && AMONG(key, command_keys);
    for (size_t i = 0; i < p->n_keys && !is_hidden; i++)
        is_hidden = sv_glob_match(p->keys[i], key, strlen(key));
    if (is_hidden) {
        *out_len = strlen(REDACTED);
        return sv_strndup(REDACTED, *out_len);
    }
    if (p->sql && (AMONG(key, sql_keys) || sv_redact_is_sql(text, len)))
        return sv_redact_sql(text, len, out_len);
    if (p->paths && is_path(key, text, len))
        return whole_path(p, text, len, out_len);
    char *new = p->paths ? frame(p, text, len, out_len) : NULL;
    return new || !p->paths ? new : paths_in(p, text, len, out_len);
}

/* ---- the stage ---- */

struct stage {
    struct sv_sink sink, *next;
    struct sv_redact_plan plan;
    struct sv_dict *dict;
    bool owns;
    struct sv_arena arena; /* of one call */
    sv_str *names;         /* by string: what it becomes; 0: not looked at */
    size_t n_names;
    int32_t *revisions; /* of tracks, as they were left; 0: not looked at */
    size_t n_revisions;
    sv_str *meta; /* by place: the value that was left there; 0: not looked at */
    size_t n_meta;
    struct sv_map build_ids; /* keys that have no file any more */
};

static struct stage *of(struct sv_sink *s)
{
    return (struct stage *)(void *)s;
}

static sv_str redact_name(struct stage *s, sv_str name)
{
    if (name >= s->n_names) {
        size_t n = (size_t)s->dict->n_strings + s->dict->n_strings / 2 + 64;
        s->names = sv_realloc(s->names, n * sizeof *s->names);
        memset(s->names + s->n_names, 0, (n - s->n_names) * sizeof *s->names);
        s->n_names = n;
    }
    if (!name || s->names[name])
        return name ? s->names[name] : 0;
    struct sv_text text = sv_dict_text(s->dict, name);
    size_t len;
    char *new = sv_redact_text(&s->plan, "", text.bytes, text.len, &len);
    sv_str becomes = new ? sv_dict_str(s->dict, new, len) : name;
    free(new);
    s->names[name] = becomes;
    if (becomes < s->n_names)
        s->names[becomes] = becomes; /* once is enough */
    return becomes;
}

static void redact_track(struct stage *s, sv_track t)
{
    struct sv_track_info *info = &s->dict->tracks[t];
    sv_str name = info->name, desc = info->desc;
    bool is_process = info->kind == SV_TRACK_PROCESS;
    sv_str new_name = redact_name(s, name);
    sv_str new_desc = s->plan.commands && is_process ? 0 : redact_name(s, desc);
    info = &s->dict->tracks[t];
    if (new_name != name || new_desc != desc) {
        info->name = new_name;
        info->desc = new_desc;
        sv_dict_touch(s->dict, t);
    }
    s->revisions[t] = info->revision + 1;
}

static void redact_tracks(struct stage *s)
{
    if (s->dict->n_tracks > s->n_revisions) {
        size_t n = (size_t)s->dict->n_tracks * 2;
        s->revisions = sv_realloc(s->revisions, n * sizeof *s->revisions);
        memset(s->revisions + s->n_revisions, 0, (n - s->n_revisions) * sizeof *s->revisions);
        s->n_revisions = n;
    }
    for (sv_track t = 1; t < s->dict->n_tracks; t++)
        if (s->revisions[t] != s->dict->tracks[t].revision + 1)
            redact_track(s, t);
}

/* "rank 3/command", "chrome.command" */
static const char *last_word(const char *key)
{
    const char *word = key;
    for (; *key; key++)
        word = *key == '/' || *key == '.' ? key + 1 : word;
    return word;
}

/* "build_id.FILE": the files of stacks, in the key. True: it has another key now. */
static bool redact_build_id(struct stage *s, uint32_t i)
{
    struct sv_text key = sv_dict_text(s->dict, s->dict->meta[i].key),
                   value = sv_dict_text(s->dict, s->dict->meta[i].value);
    size_t head = strlen(SV_META_BUILD_ID), len;
    bool is_new;
    if (!s->plan.paths || key.len <= head || memcmp(key.bytes, SV_META_BUILD_ID, head) != 0 ||
        sv_map_find(&s->build_ids, s->dict->meta[i].key))
        return false;
    char *file = whole_path(&s->plan, key.bytes + head, key.len - head, &len);
    char *new = sv_arena_get(&s->arena, head + len + 1, 1), *old = sv_strndup(key.bytes, key.len);
    memcpy(new, SV_META_BUILD_ID, head);
    memcpy(new + head, file, len);
    new[head + len] = '\0';
    *sv_map_add(&s->build_ids, sv_dict_str(s->dict, new, head + len), &is_new) = 1;
    char *id = sv_strndup(value.bytes, value.len);
    sv_dict_unset_meta(s->dict, old);
    sv_dict_set_meta(s->dict, new, id, strlen(id), false);
    free(file);
    free(old);
    free(id);
    return true;
}

static void redact_build_ids(struct stage *s)
{
    for (uint32_t i = 0; i < s->dict->n_meta; i++)
        if (redact_build_id(s, i)) {
            if (s->n_meta)
                memset(s->meta, 0, s->n_meta * sizeof *s->meta); /* places have changed */
            i--;
        }
}

static void redact_meta(struct stage *s)
{
    redact_build_ids(s);
    if (s->dict->n_meta > s->n_meta) {
        s->meta = sv_realloc(s->meta, s->dict->n_meta * sizeof *s->meta);
        memset(s->meta + s->n_meta, 0, (s->dict->n_meta - s->n_meta) * sizeof *s->meta);
        s->n_meta = s->dict->n_meta;
    }
    for (uint32_t i = 0; i < s->dict->n_meta; i++) {
        if (s->meta[i] == s->dict->meta[i].value)
            continue;
        struct sv_text key = sv_dict_text(s->dict, s->dict->meta[i].key),
                       value = sv_dict_text(s->dict, s->dict->meta[i].value);
        const char *name = last_word(key.bytes);
        size_t len = strlen(REDACTED);
        char *new = s->plan.commands &&AMONG(name, command_meta)
                        ? sv_strndup(REDACTED, len)
                        : sv_redact_text(&s->plan, name, value.bytes, value.len, &len);
        if (new)
            sv_dict_set_meta(s->dict, key.bytes, new, len, s->dict->meta[i].is_json);
        free(new);
        s->meta[i] = s->dict->meta[i].value;
    }
}

static void redact_args(struct stage *s, struct sv_event *e)
{
    struct sv_arg *args = sv_arena_get(&s->arena, e->n_args * sizeof *args, 16);
    memcpy(args, e->args, e->n_args * sizeof *args);
    sv_str key = 0;
    for (struct sv_arg *a = args; a < args + e->n_args; a++) {
        key = a->key ? a->key : key; /* members of an array have that of the array */
        if (a->type != SV_ARG_TEXT)
            continue;
        size_t len;
        char *new =
            sv_redact_text(&s->plan, sv_dict_text(s->dict, key).bytes, a->text, a->size, &len);
        if (!new)
            continue;
        a->text = sv_arena_copy(&s->arena, new, len);
        a->size = (uint32_t)len & 0xffffff;
        free(new);
    }
    e->args = args;
}

static int stage_write(struct sv_sink *sink, const struct sv_event *events, size_t n,
                       struct sv_err *err)
{
    struct stage *s = of(sink);
    redact_tracks(s);
    redact_meta(s);
    sv_arena_reset(&s->arena);
    struct sv_event *copies = sv_arena_get(&s->arena, n * sizeof *copies, 16);
    memcpy(copies, events, n * sizeof *copies);
    for (size_t i = 0; i < n; i++) {
        copies[i].name = redact_name(s, copies[i].name);
        if (copies[i].n_args)
            redact_args(s, &copies[i]);
    }
    return s->next->write(s->next, copies, n, err);
}

static int stage_flush(struct sv_sink *sink, struct sv_err *err)
{
    return of(sink)->next->flush(of(sink)->next, err);
}

static void stage_forget(struct sv_sink *sink, sv_track track)
{
    struct stage *s = of(sink);
    if (track < s->n_revisions)
        s->revisions[track] = 0;
    s->next->forget(s->next, track);
}

static int stage_close(struct sv_sink *sink, bool failed, struct sv_err *err)
{
    struct stage *s = of(sink);
    int code = 0;
    if (!failed) {
        redact_tracks(s);
        redact_meta(s);
    }
    if (s->owns)
        code = s->next->close(s->next, failed, err);
    sv_arena_fini(&s->arena);
    sv_map_fini(&s->build_ids);
    free(s->names);
    free(s->revisions);
    free(s->meta);
    free(s);
    return code;
}

struct sv_sink *sv_redact_stage(const struct sv_redact_plan *plan, struct sv_dict *dict,
                                struct sv_sink *next, bool owns)
{
    struct stage *s = sv_alloc(sizeof *s);
    s->sink = (struct sv_sink){.write = stage_write,
                               .close = stage_close,
                               .flush = next->flush ? stage_flush : NULL,
                               .forget = next->forget ? stage_forget : NULL,
                               .file = next->file,
                               .rewrites = next->rewrites};
    sv_sink_takes_as(&s->sink, next, SV_IN_NO_ORDER);
    s->next = next;
    s->plan = *plan;
    s->dict = dict;
    s->owns = owns;
    sv_arena_init(&s->arena, 1 << 16);
    return &s->sink;
}
