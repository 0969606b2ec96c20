/* Tasks of a thread, and what is said about tasks: metadata, relations, markers. Called by the
 * program through its ITT part.
 *
 * A task is a slice of its thread. What is added to it while it is open is written with its end. */
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "itt.h"

enum { DEPTH_MAX = 128, ITEMS_MAX = 256 };

struct task {
    bool is_recorded;
    struct itt_id id;
    struct stave_args *more;
};

/* Deeper tasks are counted, not recorded, so that ends meet their begins. */
static _Thread_local struct {
    unsigned depth;
    struct task tasks[DEPTH_MAX];
} stack;

static struct task *current(void)
{
    return stack.depth && stack.depth <= DEPTH_MAX ? &stack.tasks[stack.depth - 1] : NULL;
}

/* ---- tasks of a thread ---- */

static void begin(const struct itt_domain *d, struct itt_id id, struct itt_id parent,
                  const char *name, const void *function)
{
    unsigned at = stack.depth++;
    if (at >= DEPTH_MAX)
        return;
    stack.tasks[at] = (struct task){.id = id};
    if (!itt_is_on(d))
        return;
    struct stave_args args;
    stave_args_init(&args);
    if (*itt_domain_name(d))
        stave_args_text(&args, "domain", itt_domain_name(d));
    if (function)
        stave_args_pointer(&args, "function", function);
    if (!itt_is_null(id)) {
        itt_add_id(&args, "id", id);
        stave_args_flow(&args, STAVE_FLOW_OUT, itt_flow(id));
    }
    if (!itt_is_null(parent))
        itt_add_id(&args, "parent", parent);
    stack.tasks[at].is_recorded =
        stave_emit(&(struct stave_event){.size = sizeof(struct stave_event),
                                         .kind = STAVE_KIND_BEGIN,
                                         .category = ITT_CATEGORY,
                                         .name = name,
                                         .args = &args});
}

void itt_task_begin(const struct itt_domain *d, struct itt_id id, struct itt_id parent,
                    struct itt_string *name)
{
    begin(d, id, parent, itt_name(name), NULL);
}

void itt_task_begin_fn(const struct itt_domain *d, struct itt_id id, struct itt_id parent,
                       void *function)
{
    begin(d, id, parent, "task", function);
}

void itt_task_end(const struct itt_domain *d)
{
    (void)d;
    struct task *t = current();
    if (stack.depth)
        stack.depth--;
    if (!t)
        return;
    if (t->is_recorded)
        stave_emit(&(struct stave_event){.size = sizeof(struct stave_event),
                                         .kind = STAVE_KIND_END,
                                         .category = ITT_CATEGORY,
                                         .args = t->more});
    free(t->more);
    *t = (struct task){0};
}

/* ---- those that overlap ---- */

void itt_task_begin_overlapped(const struct itt_domain *d, struct itt_id id, struct itt_id parent,
                               struct itt_string *name)
{
    if (itt_is_on(d))
        itt_span_begin(&(struct itt_key){ITT_SPAN_TASK, d, id}, itt_domain_name(d), itt_name(name),
                       parent);
}

void itt_task_end_overlapped(const struct itt_domain *d, struct itt_id id)
{
    itt_span_end(&(struct itt_key){ITT_SPAN_TASK, d, id});
}

void itt_region_begin(const struct itt_domain *d, struct itt_id id, struct itt_id parent,
                      struct itt_string *name)
{
    if (itt_is_on(d))
        itt_span_begin(&(struct itt_key){ITT_SPAN_REGION, d, id}, itt_domain_name(d),
                       itt_name(name), parent);
}

void itt_region_end(const struct itt_domain *d, struct itt_id id)
{
    itt_span_end(&(struct itt_key){ITT_SPAN_REGION, d, id});
}

static struct itt_key frame_key(const struct itt_domain *d, const struct itt_id *id)
{
    return (struct itt_key){ITT_SPAN_FRAME, d, id ? *id : (struct itt_id){0}};
}

void itt_frame_begin_v3(const struct itt_domain *d, struct itt_id *id)
{
    struct itt_key key = frame_key(d, id);
    if (d && itt_is_on(d))
        itt_span_begin(&key, itt_domain_name(d), "frame", (struct itt_id){0});
}

void itt_frame_end_v3(const struct itt_domain *d, struct itt_id *id)
{
    struct itt_key key = frame_key(d, id);
    itt_span_end(&key);
}

void itt_frame_submit_v3(const struct itt_domain *d, struct itt_id *id, unsigned long long from,
                         unsigned long long to)
{
    struct itt_key key = frame_key(d, id);
    /* 0 for the end means now. */
    if (d && itt_is_on(d))
        itt_span_whole(&key, itt_domain_name(d), "frame", (int64_t)from,
                       to ? (int64_t)to : stave_now_ns());
}

void itt_frame_begin(void *frame)
{
    itt_frame_begin_v3(frame, NULL);
}

void itt_frame_end(void *frame)
{
    itt_frame_end_v3(frame, NULL);
}

static struct itt_key event_key(int event)
{
    return (struct itt_key){
        ITT_SPAN_EVENT,
        NULL,
        {(unsigned long long)event, (unsigned long long)syscall(SYS_gettid), 1}};
}

int itt_event_start(int event)
{
    struct itt_key key = event_key(event);
    const struct itt_string *name = itt_numbered(event);
    if (name && itt_is_on(NULL))
        itt_span_begin(&key, "", name->text, (struct itt_id){0});
    return 0;
}

int itt_event_end(int event)
{
    struct itt_key key = event_key(event);
    itt_span_end(&key);
    return 0;
}

/* ---- instants ---- */

static void instant(const char *name, bool is_process, struct stave_args *args)
{
    stave_emit(&(struct stave_event){.size = sizeof(struct stave_event),
                                     .kind = STAVE_KIND_INSTANT,
                                     .track = is_process ? STAVE_PROCESS : STAVE_THREAD,
                                     .category = ITT_CATEGORY,
                                     .name = name,
                                     .args = args});
}

static bool is_of_process(int scope)
{
    return scope == ITT_GLOBAL || scope == ITT_PROCESS;
}

static void args_of_domain(struct stave_args *args, const struct itt_domain *d)
{
    stave_args_init(args);
    if (*itt_domain_name(d))
        stave_args_text(args, "domain", itt_domain_name(d));
}

void itt_marker(const struct itt_domain *d, struct itt_id id, struct itt_string *name, int scope)
{
    struct stave_args args;
    if (!itt_is_on(d))
        return;
    args_of_domain(&args, d);
    if (!itt_is_null(id))
        itt_add_id(&args, "id", id);
    instant(itt_name(name), is_of_process(scope), &args);
}

static int mark(int number, const char *parameter, bool is_process)
{
    struct stave_args args;
    const struct itt_string *name = itt_numbered(number);
    if (!name)
        return -1;
    if (!itt_is_on(NULL))
        return 0;
    stave_args_init(&args);
    if (parameter)
        stave_args_text(&args, "parameter", parameter);
    instant(name->text, is_process, &args);
    return 0;
}

int itt_mark(int number, const char *parameter)
{
    return mark(number, parameter, false);
}

int itt_mark_global(int number, const char *parameter)
{
    return mark(number, parameter, true);
}

void itt_task_group(const struct itt_domain *d, struct itt_id id, struct itt_id parent,
                    struct itt_string *name)
{
    struct stave_args args;
    if (!itt_is_on(d))
        return;
    args_of_domain(&args, d);
    itt_add_id(&args, "id", id);
    if (!itt_is_null(parent))
        itt_add_id(&args, "parent", parent);
    instant(itt_name(name), false, &args);
}

/* ---- relations: an arrow from the task that is named to an instant in the one that is related
 * ---- */

static const char *const relations[] = {"is unknown to",   "is dependent on",    "is sibling of",
                                        "is parent of",    "is continuation of", "is child of",
                                        "is continued by", "is predecessor to"};

static void relate(const struct itt_domain *d, struct itt_id head, int relation, struct itt_id tail)
{
    struct stave_args args;
    if (!itt_is_on(d))
        return;
    args_of_domain(&args, d);
    if (!itt_is_null(head))
        itt_add_id(&args, "head", head);
    itt_add_id(&args, "tail", tail);
    stave_args_flow(&args, STAVE_FLOW_IN, itt_flow(tail));
    instant(stave_enum(relation, relations, sizeof relations / sizeof *relations), false, &args);
}

void itt_relation_add(const struct itt_domain *d, struct itt_id head, int relation,
                      struct itt_id tail)
{
    relate(d, head, relation, tail);
}

void itt_relation_add_to_current(const struct itt_domain *d, int relation, struct itt_id tail)
{
    const struct task *t = current();
    relate(d, t ? t->id : (struct itt_id){0}, relation, tail);
}

/* ---- metadata ---- */

struct metadata {
    const char *key;
    int type; /* 0: text */
    size_t n;
    const void *data;
};

static bool add_number(struct stave_args *a, const char *key, int type, const unsigned char *data,
                       size_t i)
{
    union {
        uint64_t u64;
        int64_t s64;
        uint32_t u32;
        int32_t s32;
        uint16_t u16;
        int16_t s16;
        float f;
        double d;
    } v;
    static const unsigned char sizes[] = {0, 8, 8, 4, 4, 2, 2, 4, 8};
    if (type <= ITT_UNKNOWN || type > ITT_DOUBLE)
        return false;
    memcpy(&v, data + i * sizes[type], sizes[type]);
    switch ((enum itt_type)type) {
    case ITT_U64: stave_args_uint(a, key, v.u64); break;
    case ITT_S64: stave_args_int(a, key, v.s64); break;
    case ITT_U32: stave_args_uint(a, key, v.u32); break;
    case ITT_S32: stave_args_int(a, key, v.s32); break;
    case ITT_U16: stave_args_uint(a, key, v.u16); break;
    case ITT_S16: stave_args_int(a, key, v.s16); break;
    case ITT_FLOAT: stave_args_double(a, key, (double)v.f); break;
    case ITT_DOUBLE: stave_args_double(a, key, v.d); break;
    case ITT_UNKNOWN: break;
    }
    return true;
}

static void add_metadata(struct stave_args *a, const void *data)
{
    const struct metadata *m = data;
    if (!m->type) {
        stave_args_text_n(a, m->key, m->data, m->n);
        return;
    }
    if (m->n == 1) {
        add_number(a, m->key, m->type, m->data, 0);
        return;
    }
    size_t n = m->n < ITEMS_MAX ? m->n : ITEMS_MAX;
    stave_args_list(a, m->key);
    for (size_t i = 0; i < n; i++)
        add_number(a, NULL, m->type, m->data, i);
    if (m->n > n)
        stave_args_more(a, (uint32_t)(m->n - n));
    stave_args_end(a);
}

static bool add_to_task(struct task *t, const struct metadata *m)
{
    if (!t || !t->is_recorded)
        return false;
    if (!t->more && (t->more = malloc(sizeof *t->more)))
        stave_args_init(t->more);
    if (t->more)
        add_metadata(t->more, m);
    return true;
}

/* To the thread's task of that id, or the open one of any thread, else as an instant of its own. */
static void add_by_id(const struct itt_domain *d, struct itt_id id, const struct metadata *m)
{
    struct stave_args args;
    if (!itt_is_on(d) || !m->data)
        return;
    if (itt_is_null(id) && add_to_task(current(), m))
        return;
    unsigned depth = stack.depth < DEPTH_MAX ? stack.depth : DEPTH_MAX;
    for (unsigned i = depth; i > 0 && !itt_is_null(id); i--) {
        struct task *t = &stack.tasks[i - 1];
        if (t->id.d1 == id.d1 && t->id.d2 == id.d2 && t->id.d3 == id.d3 && add_to_task(t, m))
            return;
    }
    if (!itt_is_null(id) && itt_span_args(id, add_metadata, m))
        return;
    args_of_domain(&args, d);
    if (!itt_is_null(id))
        itt_add_id(&args, "id", id);
    add_metadata(&args, m);
    instant("metadata", false, &args);
}

static void add_by_scope(const struct itt_domain *d, int scope, const struct metadata *m)
{
    struct stave_args args;
    if (!itt_is_on(d) || !m->data || (scope == ITT_TASK && add_to_task(current(), m)))
        return;
    args_of_domain(&args, d);
    add_metadata(&args, m);
    instant("metadata", is_of_process(scope), &args);
}

/* A length of 0 means that the text ends itself. */
static struct metadata text_of(const struct itt_string *key, const char *text, size_t len)
{
    size_t n = text ? strnlen(text, len && len < STAVE_ARGS_BYTES ? len : STAVE_ARGS_BYTES) : 0;
    return (struct metadata){itt_name(key), 0, n, text};
}

static bool is_known(int type, size_t n)
{
    return type > ITT_UNKNOWN && type <= ITT_DOUBLE && n > 0;
}

void itt_metadata_add(const struct itt_domain *d, struct itt_id id, struct itt_string *key,
                      int type, size_t n, void *data)
{
    if (is_known(type, n))
        add_by_id(d, id, &(struct metadata){itt_name(key), type, n, data});
}

void itt_metadata_str_add(const struct itt_domain *d, struct itt_id id, struct itt_string *key,
                          const char *text, size_t len)
{
    struct metadata m = text_of(key, text, len);
    add_by_id(d, id, &m);
}

void itt_metadata_add_with_scope(const struct itt_domain *d, int scope, struct itt_string *key,
                                 int type, size_t n, void *data)
{
    if (is_known(type, n))
        add_by_scope(d, scope, &(struct metadata){itt_name(key), type, n, data});
}

void itt_metadata_str_add_with_scope(const struct itt_domain *d, int scope, struct itt_string *key,
                                     const char *text, size_t len)
{
    struct metadata m = text_of(key, text, len);
    add_by_scope(d, scope, &m);
}
