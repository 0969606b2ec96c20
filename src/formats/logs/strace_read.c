/* strace -f with -ttt or -tt, and -T: a line per system call.
 *
 * Opened through the table of formats. A call that another thread's line interrupts comes in two
 * parts (<unfinished ...>, <... NAME resumed>), which are joined. Threads are distinguished from
 * processes by the flags of the clone that made them. Descriptors are followed from open, dup,
 * close and fork to give each call its path; strace -y gives it directly. A descriptor is free when
 * its close begins and names a file when its open ends, so a call in two parts has the path that
 * its descriptor had at its first one. Without -T a call has no duration and becomes an instant. */
#include "formats/logs/strace_call.h"

#include "core/base/map.h"
#include "core/base/mem.h"
#include "formats/decimal.h"
#include "subjects/io/words.h"

#include <stdlib.h>
#include <string.h>

#define PENDING_MAX 16384u /* calls that wait for their second part */
#define FIRST_PART  4096u  /* bytes kept of a first part */
#define FORK_FDS    1024   /* descriptors that a child inherits */

struct pending {
    int64_t tid, ts_ns;
    size_t len;
    char *text;
    int64_t pid; /* of the call, as it was known then … */
    sv_str path; /* … and the path of its descriptor; 0: none is known */
};

struct strace {
    struct sv_lines lines;
    struct sv_map processes; /* tid → pid, of threads */
    struct sv_map paths;     /* pid, fd → string */
    struct sv_map waiting;   /* tid → index + 1 in pending */
    struct pending *pending;
    size_t n_pending, cap_pending;
    int64_t cloning_pid; /* a clone of a thread has begun and not returned; 0: none */
    bool has_clock, is_wall;
};

/* ---- the head of a line ---- */

struct head {
    int64_t tid;
    bool has_tid, is_epoch;
    int64_t ns; /* since 1970, or of the day */
};

static bool take_epoch(struct sv_text t, int64_t *ns)
{
    const char *dot = memchr(t.bytes, '.', t.len);
    uint32_t whole = dot ? (uint32_t)(dot - t.bytes) : 0, decimals = dot ? t.len - whole - 1 : 0;
    return whole >= 9 && whole <= 10 && decimals >= 3 && decimals <= 9 && sv_decimal_ns(t, 9, ns);
}

static bool take_head(struct sv_fields *f, struct head *h)
{
    *h = (struct head){0};
    struct sv_text word = sv_field_next(f);
    if (sv_text_is(word, "[pid")) {
        word = sv_field_next(f);
        if (word.len < 2 || word.bytes[word.len - 1] != ']')
            return false;
        word.len--;
        h->has_tid = sv_text_i64(word, &h->tid);
        word = sv_field_next(f);
    } else if (sv_text_i64(word, &h->tid) && h->tid > 0) {
        h->has_tid = true;
        word = sv_field_next(f);
    }
    if (take_epoch(word, &h->ns)) {
        h->is_epoch = true;
        return h->tid >= 0;
    }
    return h->tid >= 0 && word.len >= 8 &&
           sv_civil_parse_clock(word.bytes, word.len, &h->ns) == word.len;
}

static bool looks_like_call(struct sv_fields f)
{
    struct sv_text rest = sv_field_rest(&f);
    uint32_t i = 0;
    while (i < rest.len && i < 32 &&
           ((rest.bytes[i] >= 'a' && rest.bytes[i] <= 'z') || rest.bytes[i] == '_' ||
            (rest.bytes[i] >= '0' && rest.bytes[i] <= '9')))
        i++;
    return (i > 1 && i < rest.len && rest.bytes[i] == '(') || sv_text_begins(rest, "<... ") ||
           sv_text_begins(rest, "+++ ") || sv_text_begins(rest, "--- ");
}

static int probe(const uint8_t *head, size_t n)
{
    struct sv_fields lines = sv_head(head, n);
    struct sv_text line;
    struct head h;
    int good = 0, bad = 0;
    for (int i = 0; i < 32 && sv_head_line(&lines, &line); i++) {
        struct sv_fields f = {line.bytes, line.bytes + line.len};
        if (take_head(&f, &h) && looks_like_call(f))
            good++;
        else if (line.len)
            bad++;
    }
    return good > bad ? 97 : 0;
}

/* ---- processes and descriptors ---- */

static int64_t process_of(struct strace *s, int64_t tid)
{
    bool is_new;
    uint64_t *pid = sv_map_add(&s->processes, (uint64_t)tid, &is_new);
    if (is_new) /* a thread may speak before the clone that made it has returned */
        *pid = (uint64_t)(s->cloning_pid ? s->cloning_pid : tid);
    return (int64_t)*pid;
}

static uint64_t fd_key(int64_t pid, int64_t fd)
{
    return (uint64_t)pid << 24 ^ ((uint64_t)fd & 0xffffff);
}

static sv_str path_of(const struct strace *s, int64_t pid, int64_t fd)
{
    const uint64_t *path = fd >= 0 ? sv_map_find(&s->paths, fd_key(pid, fd)) : NULL;
    return path ? (sv_str)*path : 0;
}

static void set_path(struct strace *s, int64_t pid, int64_t fd, sv_str path)
{
    if (fd < 0)
        return;
    if (path)
        *sv_map_add(&s->paths, fd_key(pid, fd), NULL) = path;
    else
        sv_map_remove(&s->paths, fd_key(pid, fd));
}

static void follow_clone(struct strace *s, int64_t pid, const struct sv_strace_call *c)
{
    if (c->is_thread)
        s->cloning_pid = 0; /* it has returned, with or without a thread */
    if (c->ret <= 0)
        return;
    bool is_new;
    uint64_t *slot = sv_map_add(&s->processes, (uint64_t)c->ret, &is_new);
    if (c->is_thread) {
        *slot = (uint64_t)pid;
        return;
    }
    *slot = (uint64_t)c->ret;
    for (int64_t fd = 0; fd < FORK_FDS; fd++) {
        sv_str path = path_of(s, pid, fd);
        if (path)
            set_path(s, c->ret, fd, path);
    }
}

static void follow(struct strace *s, int64_t pid, const struct sv_strace_call *c, sv_str path)
{
    if (c->kind == SV_STRACE_CLONE)
        follow_clone(s, pid, c);
    else if (c->kind == SV_STRACE_OPEN && c->has_ret && c->ret >= 0)
        set_path(s, pid, c->ret, path);
    else if (c->kind == SV_STRACE_DUP && c->has_ret && c->ret >= 0)
        set_path(s, pid, c->ret, path_of(s, pid, c->fd));
    else if (c->kind == SV_STRACE_CLOSE)
        set_path(s, pid, c->fd, 0);
}

/* ---- events ---- */

static sv_str find_path(struct strace *s, int64_t pid, const struct sv_strace_call *c)
{
    struct sv_dict *d = s->lines.dict;
    if (c->path.len == 0)
        return c->fd_path.len ? sv_dict_str(d, c->fd_path.bytes, c->fd_path.len)
               : c->has_fd    ? path_of(s, pid, c->fd)
                              : 0;
    sv_str folder = c->path.bytes[0] != '/' && c->has_dirfd ? path_of(s, pid, c->dirfd) : 0;
    if (!folder)
        return sv_dict_str(d, c->path.bytes, c->path.len);
    struct sv_text a = sv_dict_text(d, folder);
    size_t len = (size_t)a.len + 1 + c->path.len;
    char *joined = sv_alloc(len);
    memcpy(joined, a.bytes, a.len);
    joined[a.len] = '/';
    memcpy(joined + a.len + 1, c->path.bytes, c->path.len);
    sv_str path = sv_dict_str(d, joined, len);
    free(joined);
    return path;
}

static void add_arguments(struct strace *s, struct sv_batch *b, int64_t pid,
                          const struct sv_strace_call *c, sv_str path)
{
    struct sv_text path2 = c->path2;
    struct sv_lines *l = &s->lines;
    bool opens = c->kind == SV_STRACE_OPEN;
    if (opens && c->has_ret && c->ret >= 0)
        sv_add_int(l, b, "fd", c->ret);
    else if (!opens && c->has_fd && c->fd >= 0)
        sv_add_int(l, b, "fd", c->fd);
    if (path)
        sv_add_text(l, b, "path", sv_dict_text(l->dict, path));
    if (c->has_fd2) {
        sv_add_int(l, b, "fd2", c->fd2);
        path2 = path2.len ? path2 : sv_dict_text(l->dict, path_of(s, pid, c->fd2));
    }
    if (path2.len)
        sv_add_text(l, b, "path2", path2);
    if (c->has_requested)
        sv_add_int(l, b, "requested", c->requested);
    if (c->has_length)
        sv_add_int(l, b, "length", c->length);
    if (c->has_offset)
        sv_add_int(l, b, "offset", c->offset);
    if (c->has_address)
        sv_add_pointer(l, b, "address", c->address);
    if (c->has_ret)
        sv_add_result(l, b, c->ret, c->kind == SV_STRACE_TRANSFER);
}

/* `first`: its first part came before; NULL: the call is one line. */
static bool put_call(struct strace *s, struct sv_batch *b, int64_t tid, int64_t ts_ns,
                     struct sv_text text, const struct pending *first)
{
    struct sv_lines *l = &s->lines;
    struct sv_strace_call c;
    if (!sv_strace_parse(text, b, &c))
        return sv_lines_bad(l, "NAME(ARGUMENTS) = RESULT <SECONDS>");
    int64_t pid = process_of(s, tid);
    bool was_seen = first && first->pid == pid;
    sv_str path = was_seen && (first->path || (c.path.len == 0 && c.fd_path.len == 0))
                      ? first->path
                      : find_path(s, pid, &c);
    sv_track track = sv_dict_thread(l->dict, l->space, pid, tid);
    add_arguments(s, b, pid, &c, path);
    if (!was_seen || c.kind != SV_STRACE_CLOSE)
        follow(s, pid, &c, path);
    sv_str name = sv_dict_str(l->dict, c.name.bytes, c.name.len);
    struct sv_event *e = sv_put_event(l, b, c.has_duration ? SV_SLICE : SV_INSTANT, ts_ns, track,
                                      name, SV_CAT_SYSCALL);
    e->dur_ns = c.has_duration ? c.dur_ns : 0;
    return true;
}

/* ---- calls in two parts ---- */

/* What the descriptors mean now: other threads may close and open them before the call returns. */
static void enter(struct strace *s, struct sv_batch *b, struct pending *p)
{
    static const char end[] = ") = ?";
    struct sv_strace_call c;
    char *text = sv_arena_get(&b->arena, p->len + sizeof end, 1);
    memcpy(text, p->text, p->len);
    memcpy(text + p->len, end, sizeof end);
    if (!sv_strace_parse((struct sv_text){text, (uint32_t)(p->len + sizeof end - 1)}, b, &c))
        return;
    p->pid = process_of(s, p->tid);
    p->path = find_path(s, p->pid, &c);
    if (c.kind == SV_STRACE_CLOSE)
        follow(s, p->pid, &c, p->path);
}

static bool hold(struct strace *s, struct sv_batch *b, int64_t tid, int64_t ts_ns,
                 struct sv_text first)
{
    bool is_new;
    if (s->waiting.n >= PENDING_MAX)
        return sv_lines_bad(&s->lines, "fewer calls that wait for their second part");
    if (sv_bytes_find(first.bytes, first.len, "CLONE_THREAD"))
        s->cloning_pid = process_of(s, tid);
    uint64_t *slot = sv_map_add(&s->waiting, (uint64_t)tid, &is_new);
    if (is_new) {
        SV_APPEND(s->pending, s->n_pending, s->cap_pending) = (struct pending){0};
        *slot = s->n_pending;
    }
    struct pending *p = &s->pending[*slot - 1];
    free(p->text);
    if (first.len > FIRST_PART)
        first.len = FIRST_PART;
    *p = (struct pending){
        .tid = tid, .ts_ns = ts_ns, .len = first.len, .text = sv_strndup(first.bytes, first.len)};
    enter(s, b, p);
    return true;
}

/* "<... read resumed>REST": REST joined to what was held. */
static bool resume(struct strace *s, struct sv_batch *b, int64_t tid, struct sv_text text)
{
    const char *at = sv_bytes_find(text.bytes, text.len, "resumed>");
    const uint64_t *slot = sv_map_find(&s->waiting, (uint64_t)tid);
    if (!at || !slot || !s->pending[*slot - 1].text)
        return sv_lines_bad(&s->lines, "a first part of this call");
    struct pending *p = &s->pending[*slot - 1];
    at += 8;
    size_t rest = (size_t)(text.bytes + text.len - at);
    char *whole = sv_arena_get(&b->arena, p->len + rest + 1, 1);
    memcpy(whole, p->text, p->len);
    memcpy(whole + p->len, at, rest);
    struct sv_text joined = {whole, (uint32_t)(p->len + rest)};
    free(p->text);
    p->text = NULL;
    return put_call(s, b, tid, p->ts_ns, joined, p);
}

/* ---- lines ---- */

static void set_clock(struct strace *s, bool is_epoch)
{
    if (s->has_clock)
        return;
    s->has_clock = true;
    s->is_wall = !is_epoch;
    if (is_epoch)
        s->lines.dict->clocks.trace_clock = SV_CLOCK_REALTIME;
    else
        sv_wall_set_clock(&s->lines);
}

static bool is_message(struct sv_text text)
{
    return text.len == 0 || sv_text_begins(text, "strace: ") ||
           sv_text_begins(text, " <unfinished");
}

static bool put_rest(struct strace *s, struct sv_batch *b, int64_t tid, int64_t ts_ns,
                     struct sv_text rest)
{
    struct sv_lines *l = &s->lines;
    if (sv_text_begins(rest, "+++ ") || sv_text_begins(rest, "--- ")) {
        rest.len = rest.len > 128 ? 128 : rest.len;
        sv_track track = sv_dict_thread(l->dict, l->space, process_of(s, tid), tid);
        bool is_exit = rest.bytes[0] == '+';
        sv_add_text(l, b, "text", (struct sv_text){rest.bytes + 4, rest.len - 4});
        sv_put_event(l, b, SV_INSTANT, ts_ns, track,
                     sv_dict_cstr(l->dict, is_exit ? "exit" : "signal"), SV_CAT_PROCESS);
        return true;
    }
    if (sv_text_begins(rest, "<... "))
        return resume(s, b, tid, rest);
    static const char unfinished[] = "<unfinished ...>";
    size_t n = sizeof unfinished - 1;
    if (rest.len > n && memcmp(rest.bytes + rest.len - n, unfinished, n) == 0) {
        rest.len -= (uint32_t)n;
        while (rest.len && rest.bytes[rest.len - 1] == ' ')
            rest.len--;
        return hold(s, b, tid, ts_ns, rest);
    }
    return put_call(s, b, tid, ts_ns, rest, NULL);
}

static bool line(struct sv_lines *l, struct sv_batch *b, const char *p, size_t len)
{
    struct strace *s = (struct strace *)l;
    struct sv_text text = {p, (uint32_t)len};
    struct sv_fields f = {p, p + len};
    struct head h;
    if (is_message(text))
        return true;
    if (!take_head(&f, &h))
        return sv_lines_bad(l, "a time (strace -ttt or -tt) before the year 2262");
    set_clock(s, h.is_epoch);
    if (h.is_epoch == s->is_wall)
        return sv_lines_bad(l, "a time like those before it");
    if (!h.has_tid)
        sv_report_add(l->source.report, SV_NOTE, "line without a process number", 1, l->pos,
                      "strace prints it only with -f -o FILE, or once there are several: pid 0");
    int64_t ts_ns = h.ns;
    if (!h.is_epoch && !sv_wall_ns(&l->wall, h.ns, &ts_ns))
        return sv_lines_bad(l, "a time before the year 2262");
    return put_rest(s, b, h.tid, ts_ns, sv_field_rest(&f));
}

/* Calls that never came back: until the end of the trace, as far as anybody knows. */
static bool end(struct sv_lines *l, struct sv_batch *b)
{
    struct strace *s = (struct strace *)l;
    while (s->n_pending > 0) {
        struct pending *p = &s->pending[--s->n_pending];
        if (!p->text)
            continue;
        size_t n = 0;
        while (n < p->len && p->text[n] != '(')
            n++;
        sv_track track = sv_dict_thread(l->dict, l->space, process_of(s, p->tid), p->tid);
        sv_str name = sv_dict_str(l->dict, p->text, n);
        sv_put_event(l, b, SV_SLICE, p->ts_ns, track, name, SV_CAT_SYSCALL)->dur_ns = SV_UNFINISHED;
        free(p->text);
        p->text = NULL;
        return true;
    }
    return false;
}

static void fini(struct sv_lines *l)
{
    struct strace *s = (struct strace *)l;
    for (size_t i = 0; i < s->n_pending; i++)
        free(s->pending[i].text);
    free(s->pending);
    sv_map_fini(&s->processes);
    sv_map_fini(&s->paths);
    sv_map_fini(&s->waiting);
}

static const struct sv_lines_kind kind = {
    .size = sizeof(struct strace),
    .max_events = 1,
    .gives = SV_HAS_SLICES | SV_IN_NO_ORDER,
    .damaged = "line that is not strace's",
    .line = line,
    .end = end,
    .fini = fini,
};

const struct sv_format sv_strace_format = {
    .name = "strace",
    .help = "system calls by strace -f -ttt -T, or -tt",
    .lacks = "names of threads, flows, times below a microsecond",
    .files = "`strace -f -ttt -T`, `-tt`, `-y`",
    .times = "-ttt: UTC; -tt: local without a day",
    .probe = probe,
    .lines = &kind,
    .needs_date = true,
};
