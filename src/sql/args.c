/* The table `args` and the function EXTRACT_ARG.
 *
 * An argument set is the list of one slice (the store's handle) or facts about a track, process or
 * thread in the form of arguments. Lists are stored nested and shown flat, keys spelt as Perfetto
 * spells them: "debug.a.b[2].c" (key) and "debug.a.b.c" (flat_key), with "args." instead of
 * "debug." for traces that came from JSON. EXTRACT_ARG takes either prefix, or none. */
#include "sql/sql.h"

#ifdef SV_HAVE_SQLITE
#include "core/base/mem.h"
#include "sql/impl.h"

#include <stdlib.h>
#include <string.h>

/* ---- flattening ---- */

#define DEPTH_MAX 64
#define KEY_MAX   4096u

/* One row of `args`; texts live in the arena of the list. */
struct entry {
    const char *key, *flat_key;
    struct sv_arg arg;
};

struct flat {
    struct sv_batch *batch; /* decoded arguments and keys */
    struct entry *entries;
    size_t n, cap;
};

static void flat_init(struct flat *f)
{
    *f = (struct flat){.batch = sv_alloc(sizeof *f->batch)};
    sv_batch_init(f->batch);
}

static void flat_fini(struct flat *f)
{
    sv_batch_fini(f->batch);
    free(f->batch);
    free(f->entries);
}

static void flat_clear(struct flat *f)
{
    sv_batch_reset(f->batch);
    f->n = 0;
}

static void add_entry(struct flat *f, struct sv_buf *key, struct sv_buf *flat_key,
                      const struct sv_arg *arg)
{
    SV_APPEND(f->entries, f->n, f->cap) =
        (struct entry){sv_arena_copy(&f->batch->arena, sv_buf_cstr(key), key->len),
                       sv_arena_copy(&f->batch->arena, sv_buf_cstr(flat_key), flat_key->len), *arg};
}

static bool is_container(unsigned type)
{
    return type == SV_ARG_DICT || type == SV_ARG_ARRAY || type == SV_ARG_SOURCE ||
           type == SV_ARG_STACK;
}

/* Types that are not shown: they have columns or tables of their own. */
static bool is_shown(unsigned type)
{
    return (type > SV_ARG_NULL && type <= SV_ARG_ARRAY) || type == SV_ARG_CORRELATION ||
           type == SV_ARG_SOURCE || type == SV_ARG_STACK;
}

struct level {
    const struct sv_arg *end;
    size_t key_len, flat_len; /* of the container's own key */
    uint32_t next;            /* index of the next member, arrays only */
    uint8_t type;
};

struct walk {
    struct sv_buf key, flat_key;
    struct level levels[DEPTH_MAX];
    size_t depth;
    const char *prefix;
    bool is_sanitized; /* dots and brackets in names become '_' */
};

static void add_name(const struct walk *w, struct sv_buf *b, struct sv_text name)
{
    if (!w->is_sanitized) {
        sv_buf_add(b, name.bytes, name.len);
        return;
    }
    for (uint32_t i = 0; i < name.len; i++) {
        char c = name.bytes[i];
        sv_buf_byte(b, c == '.' || c == '[' || c == ']' ? '_' : (uint8_t)c);
    }
}

/* Names of source locations as Perfetto has them. */
static struct sv_text source_name(struct sv_text name)
{
    static const struct {
        const char *ours, *theirs;
    } names[] = {{"file", "file_name"}, {"function", "function_name"}, {"line", "line_number"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name.bytes, names[i].ours) == 0)
            return (struct sv_text){names[i].theirs, (uint32_t)strlen(names[i].theirs)};
    return name;
}

static const char *special_key(unsigned type)
{
    return type == SV_ARG_SOURCE        ? "source"
           : type == SV_ARG_STACK       ? "stack"
           : type == SV_ARG_CORRELATION ? "correlation_id"
                                        : NULL;
}

/* Sets both keys to that of `arg` within the innermost open container. */
static void set_keys(const struct sv_sql *q, struct walk *w, const struct sv_arg *arg)
{
    struct level *top = w->depth ? &w->levels[w->depth - 1] : NULL;
    const char *special = special_key(arg->type);
    struct sv_text name = sv_dict_text(q->dict, arg->key);
    w->key.failed = w->flat_key.failed =
        false; /* a key that is too long is cut, the next one is not */
    w->key.len = top ? top->key_len : 0;
    w->flat_key.len = top ? top->flat_len : 0;
    if (top && (top->type == SV_ARG_ARRAY || top->type == SV_ARG_STACK)) {
        sv_buf_byte(&w->key, '[');
        sv_buf_u64(&w->key, top->next++);
        sv_buf_byte(&w->key, ']');
        return;
    }
    if (top) {
        sv_buf_byte(&w->key, '.');
        sv_buf_byte(&w->flat_key, '.');
        if (top->type == SV_ARG_SOURCE)
            name = source_name(name);
    } else if (special) {
        name = (struct sv_text){special, (uint32_t)strlen(special)};
    } else {
        sv_buf_str(&w->key, w->prefix);
        sv_buf_str(&w->flat_key, w->prefix);
    }
    add_name(w, &w->key, name);
    add_name(w, &w->flat_key, name);
}

static void flatten(const struct sv_sql *q, const struct sv_arg *args, size_t n, struct flat *f)
{
    struct walk w = {.prefix = q->arg_prefix, .is_sanitized = strcmp(q->arg_prefix, "args.") != 0};
    sv_buf_init(&w.key, KEY_MAX);
    sv_buf_init(&w.flat_key, KEY_MAX);
    for (const struct sv_arg *a = args, *end = args + n; a < end;) {
        while (w.depth && a >= w.levels[w.depth - 1].end)
            w.depth--;
        set_keys(q, &w, a); /* also of what is not shown: members of an array are counted */
        if (!is_shown(a->type)) {
            a = sv_arg_next(a);
            continue;
        }
        if (!is_container(a->type)) {
            add_entry(f, &w.key, &w.flat_key, a++);
        } else if (w.depth == DEPTH_MAX || a->size == 0) {
            a = sv_arg_next(a);
        } else {
            w.levels[w.depth++] =
                (struct level){sv_arg_next(a), w.key.len, w.flat_key.len, 0, (uint8_t)a->type};
            a++;
        }
    }
    sv_buf_fini(&w.key);
    sv_buf_fini(&w.flat_key);
}

bool sv_sql_has_args(struct sv_sql *q, uint32_t handle)
{
    size_t n;
    bool found = false;
    if (handle == q->args_of) /* a join asks for each argument of a slice */
        return q->has_args;
    const struct sv_arg *args = sv_trace_args(q->trace, handle, q->scratch, &n);
    for (const struct sv_arg *a = args, *end = args + n; a < end && !found; a = sv_arg_next(a))
        found = is_shown(a->type) && !(is_container(a->type) && a->size == 0);
    sv_batch_reset(q->scratch);
    q->args_of = handle;
    return q->has_args = found;
}

/* ---- facts about tracks as arguments ---- */

static void add_fact(struct flat *f, const char *key, struct sv_arg value)
{
    SV_APPEND(f->entries, f->n, f->cap) = (struct entry){key, key, value};
}

static void add_text_fact(struct flat *f, const char *key, const char *text, size_t len)
{
    if (len)
        add_fact(
            f, key,
            (struct sv_arg){.type = SV_ARG_TEXT, .size = (uint32_t)len & 0xffffff, .text = text});
}

static void add_int_fact(struct flat *f, const char *key, unsigned type, int64_t v)
{
    add_fact(f, key, (struct sv_arg){.type = type & 0xff, .i = v});
}

static void add_source_facts(const struct sv_sql *q, sv_track track, struct flat *f)
{
    static const char *const orders[] = {[SV_ORDER_LEXICOGRAPHIC] = "lexicographic",
                                         [SV_ORDER_CHRONOLOGICAL] = "chronological",
                                         [SV_ORDER_EXPLICIT] = "explicit"};
    const struct sv_track_info *k = &q->dict->tracks[track];
    struct sv_text desc = sv_dict_text(q->dict, k->desc);
    add_text_fact(f, "source", "descriptor", 10);
    add_int_fact(f, "trace_id", SV_ARG_INT, (int64_t)k->uuid);
    add_int_fact(f, "is_root_in_scope", SV_ARG_BOOL,
                 k->kind == SV_TRACK_PROCESS || k->kind == SV_TRACK_THREAD);
    if (k->child_order != SV_ORDER_DEFAULT && k->child_order <= SV_ORDER_EXPLICIT)
        add_text_fact(f, "child_ordering", orders[k->child_order], strlen(orders[k->child_order]));
    if (k->has_order)
        add_int_fact(f, "sibling_order_rank", SV_ARG_INT, k->order);
    add_text_fact(f, "description", desc.bytes, desc.len);
}

static void add_track_facts(const struct sv_sql *q, enum sv_arg_owner owner, sv_track track,
                            struct flat *f)
{
    const struct sv_track_info *k = &q->dict->tracks[track];
    switch (owner) {
    case SV_OF_TRACK_SOURCE: add_source_facts(q, track, f); break;
    case SV_OF_TRACK_DIMENSION:
        if (q->thread_of[track])
            add_int_fact(f, "utid", SV_ARG_INT, q->thread_of[track] - 1);
        else if (q->process_of[track])
            add_int_fact(f, "upid", SV_ARG_INT, q->process_of[track] - 1);
        if (k->kind != SV_TRACK_THREAD)
            add_int_fact(f, "track_uuid", SV_ARG_INT, (int64_t)k->uuid);
        break;
    case SV_OF_PROCESS: add_int_fact(f, "process_sort_index_hint", SV_ARG_INT, k->order); break;
    case SV_OF_THREAD: add_int_fact(f, "thread_sort_index_hint", SV_ARG_INT, k->order); break;
    default: break;
    }
}

/* ---- which sets there are ---- */

/* Handles come from users, too: only those that a slice has may be decoded. One bit each. */
static void make_arg_sets(struct sv_sql *q)
{
    if (q->arg_sets)
        return;
    const struct sv_slices *s = &q->trace->slices;
    for (uint64_t row = 0; row < s->n; row++)
        if (s->args[row] > q->arg_set_max)
            q->arg_set_max = s->args[row];
    q->arg_sets = sv_alloc((size_t)q->arg_set_max / 64 * 8 + 8);
    for (uint64_t row = 0; row < s->n; row++)
        q->arg_sets[s->args[row] / 64] |= (uint64_t)(s->args[row] != 0) << s->args[row] % 64;
}

static bool is_handle(struct sv_sql *q, uint32_t handle)
{
    make_arg_sets(q);
    return handle <= q->arg_set_max && (q->arg_sets[handle / 64] >> handle % 64 & 1);
}

/* The first handle after `handle`, 0 when there is none. */
static uint32_t next_handle(const struct sv_sql *q, uint32_t handle)
{
    uint64_t at = (uint64_t)handle + 1;
    while (at <= q->arg_set_max) {
        uint64_t bits = q->arg_sets[at / 64] >> at % 64;
        if (bits)
            return (uint32_t)(at + (unsigned)__builtin_ctzll(bits));
        at = (at / 64 + 1) * 64;
    }
    return 0;
}

/* All arguments of a set. A number that is no set of this trace gives nothing. */
static void load_set(struct sv_sql *q, int64_t set, struct flat *f)
{
    uint32_t number = (uint32_t)set;
    size_t n;
    flat_clear(f);
    if (set >> 32 == SV_OF_SLICE) {
        if (!is_handle(q, number))
            return;
        const struct sv_arg *args = sv_trace_args(q->trace, number, f->batch, &n);
        flatten(q, args, n, f);
    } else if (set >> 32 > 0 && set >> 32 <= SV_OF_THREAD && number > 0 &&
               number < q->dict->n_tracks) {
        add_track_facts(q, (enum sv_arg_owner)(set >> 32), number, f);
    }
}

/* ---- values ---- */

static void result_value(sqlite3_context *ctx, const struct sv_arg *a)
{
    switch (a->type) {
    case SV_ARG_BOOL:
    case SV_ARG_INT: sqlite3_result_int64(ctx, a->i); break;
    case SV_ARG_UINT:
    case SV_ARG_POINTER:
    case SV_ARG_CORRELATION: sqlite3_result_int64(ctx, (sqlite3_int64)a->u); break;
    case SV_ARG_DOUBLE: sqlite3_result_double(ctx, a->d); break;
    case SV_ARG_TEXT: sv_sql_result_text(ctx, a->text, a->size); break;
    default: break;
    }
}

static const char *type_name(unsigned type)
{
    switch (type) {
    case SV_ARG_BOOL: return "bool";
    case SV_ARG_INT: return "int";
    case SV_ARG_UINT:
    case SV_ARG_CORRELATION: return "uint";
    case SV_ARG_POINTER: return "pointer";
    case SV_ARG_DOUBLE: return "real";
    case SV_ARG_TEXT: return "string";
    default: return "null";
    }
}

static void print_value(struct sv_buf *b, const struct sv_arg *a)
{
    switch (a->type) {
    case SV_ARG_NULL: break;
    case SV_ARG_BOOL: sv_buf_str(b, a->i ? "true" : "false"); break;
    case SV_ARG_INT: sv_buf_i64(b, a->i); break;
    case SV_ARG_DOUBLE: sv_buf_double(b, a->d); break;
    case SV_ARG_TEXT: sv_buf_add(b, a->text, a->size); break;
    case SV_ARG_POINTER: sv_buf_printf(b, "0x%llx", (unsigned long long)a->u); break;
    default: sv_buf_u64(b, a->u); break;
    }
}

static void result_display(struct sv_sql *q, sqlite3_context *ctx, const struct sv_arg *a)
{
    if (a->type == SV_ARG_NULL)
        return;
    sv_buf_clear(&q->text);
    print_value(&q->text, a);
    sv_sql_result_text(ctx, sv_buf_cstr(&q->text), q->text.len);
}

/* ---- the table ---- */

enum { A_ID, A_SET, A_FLAT_KEY, A_KEY, A_INT, A_STRING, A_REAL, A_TYPE, A_DISPLAY };

struct scan {
    struct flat flat;
    size_t at;       /* entry */
    int64_t current; /* its set */
    bool is_single;  /* no other set is asked for */
};

static uint64_t args_rows(struct sv_sql *q)
{
    return q->trace->slices.n * 4 + q->dict->n_tracks * 8ull;
}

/* The set after `set`: slices' in the order of handles, then what there is of each track. 0 at the
 * end. */
static int64_t next_set(const struct sv_sql *q, int64_t set)
{
    uint32_t number = (uint32_t)set, handle;
    if (set >> 32 == SV_OF_SLICE && (handle = next_handle(q, number)))
        return handle;
    if (set >> 32 != SV_OF_SLICE && number + 1 < q->dict->n_tracks)
        return set + 1;
    return set >> 32 < SV_OF_THREAD ? ((set >> 32) + 1) << 32 : 0;
}

/* Whether a row of its table refers to this set. */
static bool set_exists(const struct sv_sql *q, int64_t set)
{
    uint32_t number = (uint32_t)set;
    if (set >> 32 == SV_OF_SLICE)
        return true;
    if (number == 0)
        return false;
    const struct sv_track_info *k = &q->dict->tracks[number];
    switch (set >> 32) {
    case SV_OF_PROCESS: return k->kind == SV_TRACK_PROCESS && k->has_order;
    case SV_OF_THREAD: return k->kind == SV_TRACK_THREAD && k->has_order;
    default: return true;
    }
}

/* Moves to the next entry, loading sets until one has any. False: there is none. */
static bool scan_settle(struct sv_sql *q, struct scan *s)
{
    while (s->at >= s->flat.n) {
        s->current = s->is_single ? 0 : next_set(q, s->current);
        s->at = 0;
        if (s->current == 0)
            return false;
        flat_clear(&s->flat);
        if (set_exists(q, s->current))
            load_set(q, s->current, &s->flat);
    }
    return true;
}

static void settle(struct sv_sql_cursor *c)
{
    if (!scan_settle(c->q, c->state))
        sv_sql_none(c);
}

static int args_start(struct sv_sql_cursor *c, int order, const struct sv_sql_cond *conds, size_t n)
{
    (void)order;
    const struct sv_sql_cond *cond = sv_sql_find_cond(conds, n, A_SET, SV_OP_EQ);
    struct scan *s = c->state = sv_alloc(sizeof *s);
    flat_init(&s->flat);
    make_arg_sets(c->q);
    sv_sql_range(c, 0, UINT64_MAX);
    s->is_single = cond != NULL;
    if (cond && sv_sql_value_int(cond->value, SV_OP_EQ, &s->current))
        load_set(c->q, s->current, &s->flat);
    settle(c);
    return SQLITE_OK;
}

static int args_step(struct sv_sql_cursor *c)
{
    struct scan *s = c->state;
    s->at++;
    c->row++;
    settle(c);
    return SQLITE_OK;
}

static void args_finish(struct sv_sql_cursor *c)
{
    if (c->state)
        flat_fini(&((struct scan *)c->state)->flat);
    free(c->state);
    c->state = NULL;
}

/* Unique and in the order of arguments: the set, then the place in it. */
static int64_t scan_id(const struct scan *s)
{
    return s->current << 16 | (int64_t)(s->at & 0xffff);
}

static void args_column(struct sv_sql_cursor *c, sqlite3_context *ctx, int column)
{
    const struct scan *s = c->state;
    const struct entry *e = &s->flat.entries[s->at];
    bool is_int = e->arg.type != SV_ARG_DOUBLE && e->arg.type != SV_ARG_TEXT;
    switch (column) {
    case A_ID: sqlite3_result_int64(ctx, scan_id(s)); break;
    case A_SET: sqlite3_result_int64(ctx, s->current); break;
    case A_FLAT_KEY: sv_sql_result_text(ctx, e->flat_key, strlen(e->flat_key)); break;
    case A_KEY: sv_sql_result_text(ctx, e->key, strlen(e->key)); break;
    case A_INT:
        if (is_int)
            result_value(ctx, &e->arg);
        break;
    case A_STRING:
        if (e->arg.type == SV_ARG_TEXT)
            result_value(ctx, &e->arg);
        break;
    case A_REAL:
        if (e->arg.type == SV_ARG_DOUBLE)
            result_value(ctx, &e->arg);
        break;
    case A_TYPE: sqlite3_result_text(ctx, type_name(e->arg.type), -1, SQLITE_STATIC); break;
    case A_DISPLAY: result_display(c->q, ctx, &e->arg); break;
    default: break;
    }
}

static const struct sv_sql_key args_keys[] = {{A_SET, "e", 1e-6}};

const struct sv_sql_table sv_sql_args = {
    .name = "args",
    .columns = "id INTEGER, arg_set_id INTEGER, flat_key TEXT, key TEXT, int_value INTEGER, "
               "string_value TEXT, real_value DOUBLE, value_type TEXT, display_value TEXT",
    .keys = args_keys,
    .n_keys = 1,
    .rows = args_rows,
    .start = args_start,
    .step = args_step,
    .column = args_column,
    .finish = args_finish,
};

/* ---- the table without SQL ---- */

int sv_sql_each_arg(struct sv_sql *q, int (*take)(void *ctx, const struct sv_arg_row *row),
                    void *ctx)
{
    struct scan s = {0};
    int code = 0;
    flat_init(&s.flat);
    make_arg_sets(q);
    for (; code >= 0 && scan_settle(q, &s); s.at++) {
        const struct entry *e = &s.flat.entries[s.at];
        sv_buf_clear(&q->text);
        print_value(&q->text, &e->arg);
        struct sv_arg_row row = {.id = scan_id(&s),
                                 .set = s.current,
                                 .flat_key = e->flat_key,
                                 .key = e->key,
                                 .type = type_name(e->arg.type),
                                 .arg = &e->arg,
                                 .display = sv_buf_cstr(&q->text),
                                 .display_len = q->text.len};
        code = take(ctx, &row);
    }
    flat_fini(&s.flat);
    return code;
}

struct sv_index *sv_sql_index(struct sv_sql *q)
{
    return q->index;
}

/* ---- EXTRACT_ARG ---- */

/* The key without "debug." or "args.". */
static const char *bare_key(const char *key)
{
    return strncmp(key, "debug.", 6) == 0 ? key + 6 : strncmp(key, "args.", 5) == 0 ? key + 5 : key;
}

/* A key at the top of the list, found without decoding it. */
static bool quick_find(const struct sv_sql *q, uint32_t handle, const char *bare,
                       struct sv_arg *out)
{
    sv_str key = sv_dict_find_str(q->dict, bare, strlen(bare));
    return key && sv_trace_arg(q->trace, handle, key, out) && !is_container(out->type);
}

static void extract_arg(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    (void)argc;
    struct sv_sql *q = sqlite3_user_data(ctx);
    int64_t set;
    const char *key = (const char *)sqlite3_value_text(argv[1]);
    if (!key || sqlite3_value_type(argv[0]) == SQLITE_NULL ||
        !sv_sql_value_int(argv[0], SV_OP_EQ, &set))
        return;
    const char *bare = bare_key(key);
    struct sv_arg arg;
    if (set > 0 && set <= UINT32_MAX && is_handle(q, (uint32_t)set) &&
        quick_find(q, (uint32_t)set, bare, &arg)) {
        result_value(ctx, &arg);
        return;
    }
    struct flat f;
    flat_init(&f);
    load_set(q, set, &f);
    for (size_t i = 0; i < f.n; i++) {
        if (strcmp(bare_key(f.entries[i].key), bare) == 0) {
            result_value(ctx, &f.entries[i].arg);
            break;
        }
    }
    flat_fini(&f);
}

/* arg_list(arg_set_id, key): the members of an array as text, "[8, 1, 1]"; NULL when there is
 * none. */
static void arg_list(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    (void)argc;
    struct sv_sql *q = sqlite3_user_data(ctx);
    const char *key = (const char *)sqlite3_value_text(argv[1]);
    int64_t set;
    if (!key || sqlite3_value_type(argv[0]) == SQLITE_NULL ||
        !sv_sql_value_int(argv[0], SV_OP_EQ, &set))
        return;
    const char *bare = bare_key(key);
    size_t len = strlen(bare);
    struct flat f;
    struct sv_buf text;
    flat_init(&f);
    sv_buf_init(&text, 1 << 20);
    load_set(q, set, &f);
    for (size_t i = 0; i < f.n; i++) {
        const char *k = bare_key(f.entries[i].key);
        if (strncmp(k, bare, len) != 0 || k[len] != '[')
            continue;
        sv_buf_str(&text, text.len ? ", " : "[");
        print_value(&text, &f.entries[i].arg);
    }
    if (text.len) {
        sv_buf_byte(&text, ']');
        sv_sql_result_text(ctx, (const char *)text.data, text.len);
    }
    sv_buf_fini(&text);
    flat_fini(&f);
}

int sv_sql_add_arg_functions(struct sv_sql *q)
{
    int flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS;
    int rc = sqlite3_create_function(q->db, "extract_arg", 2, flags, q, extract_arg, NULL, NULL);
    return rc == SQLITE_OK
               ? sqlite3_create_function(q->db, "arg_list", 2, flags, q, arg_list, NULL, NULL)
               : rc;
}
#endif
