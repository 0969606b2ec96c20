/* StarPU's graph of tasks, dag.dot, as starpu_fxt_tool writes it: tasks, tags and MPI transfers
 * with their dependencies, no times.
 *
 * Opened through the table of formats. One statement a line, as StarPU's
 * src/debug/traces/starpu_fxt_dag.c (1.3 to 1.4) prints them; names are not escaped there, so that
 * a quote ends a value only where a list continues after it. All nodes wait until the end. Then
 * each is a slice at its place in the order: a level is a step after all that it depends on, at
 * most LANES_MAX nodes of a level are side by side. A tag of one task is that task; a tag of
 * several is a slice before and one after them. Must not pretend that the order is time: the row's
 * name, a note and the metadata say so. */
#include "core/base/map.h"
#include "core/base/mem.h"
#include "formats/lines.h"
#include "formats/starpu/digraph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    NODES_MAX = 1 << 22,
    EDGES_MAX = 1 << 24,
    NOTES_MAX = 1 << 22,
    RANKS_MAX = 1 << 16,
    CHAIN_MAX = 8,    /* nodes of one statement a->b->c */
    DEPTH_MAX = 4,    /* of subgraphs: a stretch, an iteration, an iteration in it */
    LANES_MAX = 16,   /* of a level; what is more goes after them */
    FLOWS_MAX = 4096, /* of a node, in each direction */
    JOINED_MAX = 512,
    STEP_NS = 1000,
    SLICE_NS = 800 /* of a step: the rest is for the arrow */
};

enum node_kind { TASK, TAG, MPI, N_NODE_KINDS };

/* What a line says about a node that most nodes do not have. */
enum about {
    DEP_LABELS,
    ENDS_AFTER,
    HREF,
    RECURSIVE,
    PARENT,
    ITERATION,
    SUBITERATION,
    TAGS,
    N_ABOUT
};

struct note {
    uint32_t about; /* enum about */
    sv_str value;
    uint32_t next; /* of the same node: index + 1 */
};

struct node {
    uint64_t key;    /* hash of its name in the file */
    uint64_t number; /* of the task, of the tag, of the transfer */
    uint64_t mpi_tag;
    int64_t pos;  /* where it is named first */
    int32_t rank; /* of MPI; -1: unknown */
    uint32_t kind;
    uint32_t notes;  /* index + 1 of the newest */
    uint32_t task;   /* TAG: index + 1 of its only task */
    uint32_t behind; /* TAG of several tasks: index + 1 of the node that comes when they are done */
    sv_str label, color;
};

struct dag {
    struct sv_lines lines;
    struct sv_map by_key; /* → index + 1 in nodes */
    struct node *nodes;
    uint32_t *stretches; /* of each node: how many waits for all tasks its rank had seen */
    size_t n_nodes, cap_nodes, cap_stretches;
    struct note *notes;
    size_t n_notes, cap_notes;
    struct sv_map first_stretch; /* rank → the file's stretch in which it appears first */
    struct sv_digraph graph;
    struct sv_levels levels;
    size_t *level_start; /* in steps; of one more than there are */
    size_t at;           /* in levels.sorted */
    uint32_t at_level;
    size_t in_level;
    int64_t depth;                  /* of braces */
    uint32_t stretch;               /* of the file, by waits for all tasks */
    sv_str iteration, subiteration; /* 0: outside */
    bool has_begun, is_ordered;
};

/* ---- recognising ---- */

static struct sv_text trimmed(const char *p, size_t len)
{
    while (len > 0 && (*p == ' ' || *p == '\t'))
        p++, len--;
    while (len > 0 && (p[len - 1] == ' ' || p[len - 1] == '\t' || p[len - 1] == ';'))
        len--;
    return (struct sv_text){p, (uint32_t)len};
}

/* The first lines are always the same: the graph, two of its attributes, the first stretch. */
static int probe(const uint8_t *head, size_t n)
{
    static const char *const first[] = {"digraph G {", "color=white", "rankdir=LR",
                                        "subgraph cluster_0 {"};
    struct sv_fields h = sv_head(head, n);
    struct sv_text line;
    size_t seen = 0;
    while (seen < sizeof first / sizeof *first && sv_head_line(&h, &line)) {
        line = trimmed(line.bytes, line.len);
        if (line.len > 0 && !sv_text_is(line, first[seen++]))
            return 0;
    }
    return seen == sizeof first / sizeof *first ? 97 : 0;
}

/* ---- names ---- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool take_number(struct sv_text *t, unsigned base, uint64_t *out)
{
    uint32_t i = 0;
    uint64_t v = 0;
    for (; i < t->len; i++) {
        char c = t->bytes[i];
        unsigned digit = is_digit(c)            ? (unsigned)(c - '0')
                         : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10
                                                : 16;
        if (digit >= base)
            break;
        if (__builtin_mul_overflow(v, base, &v) || __builtin_add_overflow(v, digit, &v))
            return false;
    }
    *t = (struct sv_text){t->bytes + i, t->len - i};
    *out = v;
    return i > 0;
}

/* "task_12", "task_1_12" of rank 1, "tag_1f", "tag_1_1f", "mpi_TAG_ID". */
static bool parse_name(struct sv_text name, struct node *out)
{
    static const char *const words[N_NODE_KINDS] = {"task_", "tag_", "mpi_"};
    uint64_t first;
    *out = (struct node){.key = sv_hash_bytes(name.bytes, name.len, 11), .rank = -1};
    while (out->kind < N_NODE_KINDS && !sv_text_begins(name, words[out->kind]))
        out->kind++;
    if (out->kind == N_NODE_KINDS)
        return false;
    uint32_t skip = (uint32_t)strlen(words[out->kind]);
    struct sv_text rest = {name.bytes + skip, name.len - skip}, whole = rest;
    if (take_number(&rest, 10, &first) && rest.len > 1 && rest.bytes[0] == '_') {
        rest = (struct sv_text){rest.bytes + 1, rest.len - 1};
        if (out->kind == MPI)
            out->mpi_tag = first;
        else if (first < RANKS_MAX)
            out->rank = (int32_t)first;
        else
            return false;
    } else {
        rest = whole;
        if (out->kind == MPI)
            return false;
    }
    return take_number(&rest, out->kind == TAG ? 16 : 10, &out->number) && rest.len == 0;
}

/* Stretches count from where the rank appears first: the ranks of an MPI run follow each other in
 * the file. */
static uint32_t stretch_of(struct dag *s, int32_t rank)
{
    bool is_new;
    uint64_t *first = sv_map_add(&s->first_stretch, (uint64_t)(uint32_t)rank, &is_new);
    if (is_new)
        *first = s->stretch;
    return s->stretch - (uint32_t)*first;
}

static uint32_t add_node(struct dag *s, const struct node *n)
{
    s->nodes = sv_grow(s->nodes, &s->cap_nodes, s->n_nodes + 1, sizeof *s->nodes);
    s->stretches = sv_grow(s->stretches, &s->cap_stretches, s->n_nodes + 1, sizeof *s->stretches);
    s->nodes[s->n_nodes] = *n;
    s->nodes[s->n_nodes].pos = s->lines.pos;
    s->stretches[s->n_nodes] = n->kind == MPI ? 0 : stretch_of(s, n->rank);
    return (uint32_t)s->n_nodes++;
}

/* The node of this name, made when it is new. */
static bool find_node(struct dag *s, struct sv_text name, uint32_t *out)
{
    struct node n;
    bool is_new;
    if (!parse_name(name, &n))
        return sv_lines_bad(&s->lines, "a node task_N, tag_N or mpi_N_N");
    if (s->n_nodes >= NODES_MAX && !sv_map_find(&s->by_key, n.key))
        return sv_lines_bad(&s->lines, "no more than 4 million tasks");
    uint64_t *at = sv_map_add(&s->by_key, n.key, &is_new);
    if (is_new)
        *at = add_node(s, &n) + (uint64_t)1;
    *out = (uint32_t)*at - 1;
    return true;
}

static void add_note(struct dag *s, uint32_t node, enum about about, sv_str value)
{
    if (s->n_notes == NOTES_MAX) {
        sv_report_add(s->lines.source.report, SV_SKIPPED, "attribute past the first 4 million", 1,
                      s->lines.pos, NULL);
        return;
    }
    s->notes = sv_grow(s->notes, &s->cap_notes, s->n_notes + 1, sizeof *s->notes);
    s->notes[s->n_notes] = (struct note){about, value, s->nodes[node].notes};
    s->nodes[node].notes = (uint32_t)++s->n_notes;
}

/* ---- statements ---- */

static void skip_blanks(struct sv_fields *f)
{
    while (f->p < f->end && (*f->p == ' ' || *f->p == '\t'))
        f->p++;
}

static bool take(struct sv_fields *f, const char *word)
{
    size_t len = strlen(word);
    skip_blanks(f);
    if ((size_t)(f->end - f->p) < len || memcmp(f->p, word, len) != 0)
        return false;
    f->p += len;
    return true;
}

/* A name in quotes, which never holds one. */
static bool take_name(struct sv_fields *f, struct sv_text *out)
{
    if (!take(f, "\""))
        return false;
    const char *end = memchr(f->p, '"', (size_t)(f->end - f->p));
    if (!end)
        return false;
    *out = (struct sv_text){f->p, (uint32_t)(end - f->p)};
    f->p = end + 1;
    return true;
}

/* Does the list continue after this quote: ", key=" or "]"? */
static bool ends_value(const char *p, const char *end)
{
    struct sv_fields f = {p, end};
    if (take(&f, "]")) {
        skip_blanks(&f);
        return f.p == f.end || *f.p == '[' || *f.p == ';';
    }
    if (!take(&f, ","))
        return false;
    skip_blanks(&f);
    const char *word = f.p;
    while (f.p < f.end && ((*f.p >= 'a' && *f.p <= 'z') || *f.p == '_'))
        f.p++;
    return f.p > word && f.p < f.end && *f.p == '=';
}

static bool take_value(struct sv_fields *f, struct sv_text *out)
{
    const char *start;
    if (!take(f, "\"")) {
        start = f->p;
        while (f->p < f->end && !strchr(" \t,];\"", *f->p))
            f->p++;
        *out = (struct sv_text){start, (uint32_t)(f->p - start)};
        return out->len > 0;
    }
    start = f->p;
    while (f->p < f->end && (*f->p != '"' || !ends_value(f->p + 1, f->end)))
        f->p++;
    if (f->p == f->end)
        return false;
    *out = (struct sv_text){start, (uint32_t)(f->p - start)};
    f->p++;
    return true;
}

struct attributes {
    struct sv_text label, color, ends_after, href, recursive, parent;
};

static struct sv_text *place_of(struct attributes *a, struct sv_text key, struct sv_text *looks)
{
    return sv_text_is(key, "label")                   ? &a->label
           : sv_text_is(key, "fillcolor")             ? &a->color
           : sv_text_is(key, "end_dep")               ? &a->ends_after
           : sv_text_is(key, "href")                  ? &a->href
           : sv_text_is(key, "recursive_task")        ? &a->recursive
           : sv_text_is(key, "recursive_task_parent") ? &a->parent
           : sv_text_is(key, "style") || sv_text_is(key, "fontcolor") || sv_text_is(key, "shape")
               ? looks
               : NULL;
}

/* Any number of lists "[ key=value, … ]" up to the end of the line. */
static bool take_attributes(struct dag *s, struct sv_fields *f, struct attributes *a)
{
    while (take(f, "[")) {
        while (!take(f, "]")) {
            struct sv_text looks, *value;
            skip_blanks(f);
            struct sv_text key = {f->p, 0};
            while (f->p < f->end && !strchr(" \t=,]\"", *f->p))
                f->p++;
            key.len = (uint32_t)(f->p - key.bytes);
            value = place_of(a, key, &looks);
            if (key.len == 0 || !take(f, "="))
                return sv_lines_bad(&s->lines, "attributes 'key=value'");
            if (!value)
                sv_report_add(s->lines.source.report, SV_SKIPPED, "attribute of a node", 1,
                              s->lines.pos, "%.*s", (int)(key.len < 40 ? key.len : 40), key.bytes);
            if (!take_value(f, value ? value : &looks))
                return sv_lines_bad(&s->lines, "a value with an end");
            (void)take(f, ",");
        }
    }
    (void)take(f, ";");
    skip_blanks(f);
    return f->p == f->end || sv_lines_bad(&s->lines, "nothing after the attributes");
}

static sv_str str(struct dag *s, struct sv_text t)
{
    return sv_dict_str(s->lines.dict, t.bytes, t.len);
}

static bool describe(struct dag *s, uint32_t node, const struct attributes *a)
{
    const struct {
        enum about about;
        struct sv_text value;
    } rows[] = {{ENDS_AFTER, a->ends_after},
                {HREF, a->href},
                {RECURSIVE, a->recursive},
                {PARENT, a->parent}};
    struct node *n = &s->nodes[node];
    if (a->label.bytes)
        n->label = str(s, a->label);
    if (a->color.bytes)
        n->color = str(s, a->color);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].value.bytes)
            add_note(s, node, rows[i].about, str(s, rows[i].value));
    if (a->label.bytes && s->iteration)
        add_note(s, node, ITERATION, s->iteration);
    if (a->label.bytes && s->subiteration)
        add_note(s, node, SUBITERATION, s->subiteration);
    return true;
}

static bool add_edge(struct dag *s, uint32_t from, uint32_t to)
{
    if (s->graph.n_edges == EDGES_MAX)
        return sv_lines_bad(&s->lines, "no more than 16 million dependencies");
    if (from == to)
        return sv_lines_bad(&s->lines, "no task that depends on itself");
    sv_digraph_edge(&s->graph, from, to);
    return true;
}

/* "tag"->"task"->"tag": the task carries the tag. The first one is meant when others name the tag;
 * with a second one the tag becomes two nodes around both, since the file does not say which of
 * them is waited for. */
static bool bind_tag(struct dag *s, uint32_t tag, uint32_t task)
{
    char name[32];
    int len = snprintf(name, sizeof name, "%llx", (unsigned long long)s->nodes[tag].number);
    uint32_t before = s->nodes[tag].task;
    add_note(s, task, TAGS, sv_dict_str(s->lines.dict, name, (size_t)len));
    if (before == task + 1)
        return true;
    if (before == 0 && !s->nodes[tag].behind) {
        s->nodes[tag].task = task + 1;
        return true;
    }
    if (!s->nodes[tag].behind) {
        struct node behind = s->nodes[tag];
        behind.key = sv_mix64(behind.key);
        behind.task = behind.notes = 0;
        uint32_t at = add_node(s, &behind);
        s->nodes[tag].behind = at + 1;
        s->nodes[tag].task = 0;
        if (!add_edge(s, tag, before - 1) || !add_edge(s, before - 1, at))
            return false;
    }
    return add_edge(s, tag, task) && add_edge(s, task, s->nodes[tag].behind - 1);
}

/* A legend of the workers, at the end of the file. */
static bool learn_worker(struct dag *s, struct sv_text name)
{
    struct sv_text rest = {name.bytes + 7, name.len - 7};
    uint64_t number;
    char key[48];
    if (!take_number(&rest, 10, &number) || rest.len < 2 || rest.bytes[0] != '_')
        return sv_lines_bad(&s->lines, "a worker worker_N_KIND");
    snprintf(key, sizeof key, "starpu worker %u", (unsigned)number);
    sv_dict_set_meta(s->lines.dict, key, rest.bytes + 1, rest.len - 1, false);
    return true;
}

static bool statement(struct dag *s, struct sv_fields f)
{
    struct sv_text name;
    struct attributes a = {0};
    uint32_t nodes[CHAIN_MAX];
    size_t n = 0;
    do {
        if (!take_name(&f, &name))
            return sv_lines_bad(&s->lines, "a name in quotes");
        if (n == 0 && sv_text_begins(name, "worker_"))
            return take_attributes(s, &f, &a) && learn_worker(s, name);
        if (n == CHAIN_MAX)
            return sv_lines_bad(&s->lines, "at most 8 nodes in a line");
        if (!find_node(s, name, &nodes[n++]))
            return false;
    } while (take(&f, "->"));
    if (!take_attributes(s, &f, &a))
        return false;
    if (n == 1)
        return describe(s, nodes[0], &a);
    if (n == 3 && nodes[0] == nodes[2] && s->nodes[nodes[0]].kind == TAG &&
        s->nodes[nodes[1]].kind == TASK)
        return bind_tag(s, nodes[0], nodes[1]);
    for (size_t i = 1; i < n; i++)
        if (!add_edge(s, nodes[i - 1], nodes[i]))
            return false;
    if (a.label.len)
        add_note(s, nodes[n - 1], DEP_LABELS, str(s, a.label));
    return true;
}

/* ---- lines ---- */

/* "cluster_3": tasks between two waits for all of them; "cluster_iterations_5", in it
 * "cluster_iterations_5_sub_1". */
static bool open_subgraph(struct dag *s, struct sv_text name)
{
    uint64_t number, sub;
    bool is_iteration = sv_text_begins(name, "cluster_iterations_");
    uint32_t skip = is_iteration ? 19 : 8;
    if (s->depth++ >= DEPTH_MAX || !sv_text_begins(name, "cluster_"))
        return sv_lines_bad(&s->lines, "a subgraph cluster_N in its place");
    struct sv_text rest = {name.bytes + skip, name.len - skip}, whole = rest;
    if (!take_number(&rest, 10, &number))
        return sv_lines_bad(&s->lines, "a subgraph with a number");
    if (!is_iteration) {
        s->stretch += s->depth == 2 && number > 0 && s->stretch < UINT32_MAX - 1;
        return true;
    }
    if (s->iteration && sv_text_begins(rest, "_sub_")) {
        rest = (struct sv_text){rest.bytes + 5, rest.len - 5};
        whole = rest;
        if (take_number(&rest, 10, &sub))
            s->subiteration = str(s, whole);
    } else
        s->iteration = str(s, whole);
    return true;
}

static bool close_brace(struct dag *s)
{
    if (s->depth == 0)
        return sv_lines_bad(&s->lines, "no more braces than were opened");
    s->depth--;
    if (s->subiteration)
        s->subiteration = 0;
    else
        s->iteration = 0;
    return true;
}

static bool line(struct sv_lines *l, struct sv_batch *b, const char *p, size_t len)
{
    struct dag *s = (struct dag *)l;
    (void)b;
    struct sv_text t = trimmed(p, len);
    if (t.len == 0)
        return true;
    if (!s->has_begun) {
        s->has_begun = true;
        s->depth = 1;
        return sv_text_is(t, "digraph G {") || sv_lines_bad(l, "'digraph G {' in the first line");
    }
    if (sv_text_is(t, "}"))
        return close_brace(s);
    if (s->depth == 0)
        return sv_lines_bad(l, "nothing after the graph");
    if (t.bytes[0] == '"')
        return statement(s, (struct sv_fields){t.bytes, t.bytes + t.len});
    if (sv_text_begins(t, "subgraph ") && t.bytes[t.len - 1] == '{')
        return open_subgraph(s, trimmed(t.bytes + 9, t.len - 10));
    return sv_text_begins(t, "color=") || sv_text_begins(t, "rankdir=") ||
           sv_lines_bad(l, "a node, a dependency or a subgraph");
}

/* ---- the order ---- */

/* What others mean by a tag: its task, or the nodes around its tasks. */
static uint32_t as_source(const struct dag *s, uint32_t node)
{
    const struct node *n = &s->nodes[node];
    return n->task ? n->task - 1 : n->behind ? n->behind - 1 : node;
}

static uint32_t as_target(const struct dag *s, uint32_t node)
{
    return s->nodes[node].task ? s->nodes[node].task - 1 : node;
}

/* The bound edges of a tag of several tasks start at the tag itself. */
static void resolve_tags(struct dag *s)
{
    for (size_t k = 0; k < s->graph.n_edges; k++) {
        struct sv_digraph_edge *e = &s->graph.edges[k];
        bool is_bound = s->nodes[e->from].behind && s->nodes[e->to].kind == TASK;
        if (!is_bound)
            e->from = as_source(s, e->from);
        e->to = as_target(s, e->to);
    }
}

static bool is_drawn(const struct node *n)
{
    return n->kind != TAG || !n->task;
}

/* Where each level begins: it is as long as its nodes need, LANES_MAX of them at a time. */
static void measure_levels(struct dag *s)
{
    s->level_start = sv_alloc(((size_t)s->levels.n_levels + 1) * sizeof *s->level_start);
    for (size_t i = 0; i < s->n_nodes; i++)
        if (is_drawn(&s->nodes[i]))
            s->level_start[s->levels.level[i] + 1]++;
    for (size_t i = 0; i < s->levels.n_levels; i++)
        s->level_start[i + 1] = s->level_start[i] +
                                (s->level_start[i + 1] + LANES_MAX - 1) / LANES_MAX;
}

static void report_end(struct dag *s, size_t own)
{
    struct sv_report *r = s->lines.source.report;
    if (own)
        sv_report_add(r, SV_DAMAGE, "task that depends on itself by its tag", own, SV_NO_POS, NULL);
    if (s->levels.n_circles)
        sv_report_add(r, SV_DAMAGE, "dependencies in a circle", s->levels.n_circles,
                      s->nodes[s->levels.first_circle].pos,
                      "what depends on each other has no order; placed by the file's");
    if (s->depth > 0)
        sv_report_add(r, SV_DAMAGE, "graph that is cut off", 1, s->lines.pos,
                      "a brace is missing at the end");
    sv_report_add(r, SV_NOTE, "task graph without times", 1, SV_NO_POS,
                  "order, not time: a step of 1 us is a step of the order");
}

static void order(struct dag *s)
{
    static const char said[] =
        "StarPU task graph: order, not time; a step of 1 us is a step of the order";
    resolve_tags(s);
    size_t own = sv_digraph_index(&s->graph, (uint32_t)s->n_nodes);
    sv_digraph_levels(&s->graph, s->stretches, &s->levels);
    measure_levels(s);
    report_end(s, own);
    sv_dict_set_meta(s->lines.dict, "times", said, sizeof said - 1, false);
    s->is_ordered = true;
}

/* ---- slices ---- */

static sv_track track_of(struct dag *s, const struct node *n)
{
    char name[64] = "StarPU task graph (order, not time)";
    sv_track top = sv_lines_group(&s->lines, 0, SV_TRACK_CUSTOM, name, strlen(name));
    int len = n->kind == MPI ? snprintf(name, sizeof name, "MPI")
              : n->rank >= 0 ? snprintf(name, sizeof name, "tasks of rank %d", n->rank)
                             : snprintf(name, sizeof name, "tasks");
    return sv_lines_group(&s->lines, top, SV_TRACK_CUSTOM, name, (size_t)len);
}

/* An edge is drawn when it leads forward and neither end has too many; both ends must agree. */
static bool is_arrow(const struct dag *s, uint32_t from, uint32_t to)
{
    const struct sv_digraph *g = &s->graph;
    return s->levels.level[from] < s->levels.level[to] &&
           g->after_at[from + 1] - g->after_at[from] <= FLOWS_MAX &&
           g->before_at[to + 1] - g->before_at[to] <= FLOWS_MAX;
}

static void add_flow(struct dag *s, struct sv_batch *b, unsigned type, uint32_t from, uint32_t to)
{
    struct sv_arg *a = sv_batch_arg(b);
    a->type = type & 0xff;
    a->u = sv_mix64(s->nodes[from].key ^ sv_mix64(s->nodes[to].key));
}

static void add_flows(struct dag *s, struct sv_batch *b, uint32_t node)
{
    const struct sv_digraph *g = &s->graph;
    uint64_t left_out = 0;
    for (size_t k = g->after_at[node]; k < g->after_at[node + 1]; k++) {
        if (is_arrow(s, node, g->after[k]))
            add_flow(s, b, SV_ARG_FLOW_BEGIN, node, g->after[k]);
        else
            left_out++;
    }
    for (size_t k = g->before_at[node]; k < g->before_at[node + 1]; k++)
        if (is_arrow(s, g->before[k], node))
            add_flow(s, b, SV_ARG_FLOW_END, g->before[k], node);
    if (left_out)
        sv_report_add(s->lines.source.report, SV_SKIPPED,
                      "dependency in a circle, or one of more than 4096 of a task", left_out,
                      s->nodes[node].pos, NULL);
}

/* "file#line" becomes where in the code it is. */
static void add_place(struct dag *s, struct sv_batch *b, struct sv_text href)
{
    uint32_t at = href.len;
    int64_t line_number;
    while (at > 0 && href.bytes[at - 1] != '#')
        at--;
    if (at < 2 || !sv_text_i64((struct sv_text){href.bytes + at, href.len - at}, &line_number)) {
        sv_add_text(&s->lines, b, "href", href);
        return;
    }
    size_t opened = sv_batch_open(b, 0, SV_ARG_SOURCE);
    sv_add_text(&s->lines, b, "file", (struct sv_text){href.bytes, at - 1});
    sv_add_int(&s->lines, b, "line", line_number);
    sv_batch_close(b, opened);
}

static void add_value(struct dag *s, struct sv_batch *b, const char *key, struct sv_text value)
{
    int64_t i;
    if (sv_text_i64(value, &i))
        sv_add_int(&s->lines, b, key, i);
    else
        sv_add_text(&s->lines, b, key, value);
}

/* All that was said about one thing, in the file's order, as one text. */
static void add_joined(struct dag *s, struct sv_batch *b, uint32_t node, enum about about,
                       const char *key)
{
    char text[JOINED_MAX];
    size_t start = sizeof text;
    for (uint32_t i = s->nodes[node].notes; i; i = s->notes[i - 1].next) {
        const struct note *note = &s->notes[i - 1];
        struct sv_text value = sv_dict_text(s->lines.dict, note->value);
        if (note->about != about)
            continue;
        if (value.len + 1 > start) {
            sv_report_add(s->lines.source.report, SV_SKIPPED, "attribute past 512 bytes of a task",
                          1, s->nodes[node].pos, NULL);
            break;
        }
        if (start < sizeof text)
            text[--start] = ' ';
        start -= value.len;
        memcpy(text + start, value.bytes, value.len);
    }
    struct sv_text all = {text + start, (uint32_t)(sizeof text - start)};
    if (all.len == 0)
        return;
    if (about == HREF)
        add_place(s, b, all);
    else if (about == TAGS || about == DEP_LABELS)
        sv_add_text(&s->lines, b, key, all);
    else
        add_value(s, b, key, all);
}

static void add_arguments(struct dag *s, struct sv_batch *b, uint32_t node)
{
    static const char *const keys[N_ABOUT] = {"DepLabels", "EndsAfter", "href",         "Recursive",
                                              "Parent",    "Iteration", "Subiteration", "Tag"};
    const struct node *n = &s->nodes[node];
    if (n->kind == TASK)
        sv_add_int(&s->lines, b, "JobId", (int64_t)n->number);
    if (n->kind == MPI)
        sv_add_int(&s->lines, b, "MPITag", (int64_t)n->mpi_tag);
    if (n->rank >= 0)
        sv_add_int(&s->lines, b, "MPIRank", n->rank);
    if (s->stretches[node])
        sv_add_int(&s->lines, b, "WaitsBefore", s->stretches[node]);
    for (unsigned a = 0; n->notes && a < N_ABOUT; a++)
        add_joined(s, b, node, (enum about)a, keys[a]);
    if (n->color)
        sv_add_text(&s->lines, b, "color", sv_dict_text(s->lines.dict, n->color));
    sv_add_int(&s->lines, b, "level", s->levels.level[node]);
}

static sv_str title_of(struct dag *s, uint32_t node)
{
    const struct node *n = &s->nodes[node];
    char text[64];
    if (n->label)
        return n->label;
    int len = n->kind == TASK
                  ? snprintf(text, sizeof text, "task %llu", (unsigned long long)n->number)
              : n->kind == MPI
                  ? snprintf(text, sizeof text, "transfer %llu", (unsigned long long)n->number)
                  : snprintf(text, sizeof text, "tag %llx", (unsigned long long)n->number);
    return sv_dict_str(s->lines.dict, text, (size_t)len);
}

static void put_node(struct dag *s, struct sv_batch *b, uint32_t node)
{
    static const char *const categories[N_NODE_KINDS] = {"task", "tag", "mpi"};
    const struct node *n = &s->nodes[node];
    uint32_t level = s->levels.level[node];
    s->in_level = level == s->at_level ? s->in_level : 0;
    s->at_level = level;
    size_t step = s->level_start[level] + s->in_level++ / LANES_MAX;
    add_flows(s, b, node);
    add_arguments(s, b, node);
    sv_put_event(&s->lines, b, SV_SLICE, (int64_t)step * STEP_NS, track_of(s, n), title_of(s, node),
                 categories[n->kind])
        ->dur_ns = SLICE_NS;
}

static bool end(struct sv_lines *l, struct sv_batch *b)
{
    struct dag *s = (struct dag *)l;
    if (!s->is_ordered)
        order(s);
    while (s->at < s->n_nodes) {
        uint32_t node = s->levels.sorted[s->at++];
        if (is_drawn(&s->nodes[node])) {
            put_node(s, b, node);
            return true;
        }
    }
    return false;
}

static void fini(struct sv_lines *l)
{
    struct dag *s = (struct dag *)l;
    sv_map_fini(&s->by_key);
    sv_map_fini(&s->first_stretch);
    sv_digraph_fini(&s->graph);
    sv_levels_fini(&s->levels);
    free(s->level_start);
    free(s->nodes);
    free(s->stretches);
    free(s->notes);
}

static const struct sv_lines_kind kind = {
    .size = sizeof(struct dag),
    .max_events = 1,
    .gives = SV_HAS_SLICES,
    .damaged = "line that is not of StarPU's dag.dot",
    .line = line,
    .end = end,
    .fini = fini,
};

/* the same tasks, with times */
static const char *const covered_by[] = {"fxt", "starpu-rec", "paje", NULL};

const struct sv_format sv_starpu_dag_format = {
    .name = "starpu-dag",
    .help = "StarPU's graph of tasks, dag.dot: order, not time",
    .lacks = "times, workers",
    .files = "`dag.dot` of `starpu_fxt_tool`, StarPU 1.3 and 1.4",
    .times = "none: order, not time",
    .probe = probe,
    .lines = &kind,
    .covered_by = covered_by,
};
