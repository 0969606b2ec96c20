/* Statements that only aggregate slices, rewritten over groups of slices (groups.c).
 *
 *     SELECT name, count(*), sum(dur) FROM slice GROUP BY name
 *     SELECT name, stave_count(slice.stave_n), sum(slice.stave_dur_sum) FROM stave_slice_groups AS
 *     slice GROUP BY name
 *
 * A sum over groups is the sum over their slices, whatever the groups are joined with, if all that
 * the statement reads of a slice is the same within a group (name, category, track_id, depth), an
 * aggregate that can be put together from those of groups, or a bound on ts or dur. This file
 * recognises such statements by their words and leaves every other one as it is: what it does not
 * know for certain is not rewritten. SQLite has prepared the statement before, so it is correct SQL
 * and its names are unambiguous. */
#include "sql/fold.h"

#ifdef SV_HAVE_SQLITE
#include "core/base/mem.h"
#include "sql/groups.h"

#include <stdlib.h>
#include <string.h>

/* ---- what may be there ---- */

static const char *const bases[] = {"slice", "slices", "thread_slice", NULL};
static const char *const keys[] = {"name", "category", "cat", "track_id", "depth", NULL};
static const char *const others[] = {"id",
                                     "ts",
                                     "dur",
                                     "parent_id",
                                     "arg_set_id",
                                     "thread_ts",
                                     "thread_dur",
                                     "thread_instruction_count",
                                     "thread_instruction_delta",
                                     "slice_id",
                                     "kind",
                                     "self_dur",
                                     "view_row",
                                     "view_line",
                                     "rowid",
                                     "oid",
                                     "_rowid_",
                                     NULL};
/* Of thread_slice, and what one utid determines. */
static const char *const of_thread[] = {"thread_name", "tid",          "utid",           "upid",
                                        "pid",         "process_name", "is_main_thread", NULL};
static const char *const aggregates[] = {"count", "sum", "min", "max", "avg", "percentile", NULL};
static const char *const functions[] = {
    "abs",         "round",       "coalesce",    "ifnull",     "iif",        "nullif",
    "printf",      "format",      "substr",      "substring",  "upper",      "lower",
    "length",      "replace",     "instr",       "trim",       "ltrim",      "rtrim",
    "log2_bucket", "time_str",    "ts_str",      "time_to_ns", "time_to_us", "time_to_ms",
    "time_to_s",   "time_to_min", "trace_start", "trace_end",  "trace_dur",  "cast",
    "in",          "and",         "or",          "not",        "on",         "when",
    "then",        "else",        "case",        "like",       "glob",       "using",
    "by",          "where",       "having",      "select",     "between",    NULL};
static const char *const times[] = {"trace_start",  "trace_end",   "trace_dur", "time_from_us",
                                    "time_from_ms", "time_from_s", NULL};
static const char *const refused[] = {
    "all",     "with",   "union",  "intersect", "except",       "over",         "filter",
    "window",  "values", "exists", "collate",   "natural",      "right",        "full",
    "indexed", "match",  "regexp", "escape",    "current_time", "current_date", "current_timestamp",
    NULL};
static const char *const words[] = {
    "select",  "from",    "where", "group", "by",     "having",  "order", "limit", "offset",
    "as",      "and",     "or",    "not",   "is",     "null",    "in",    "like",  "glob",
    "between", "case",    "when",  "then",  "else",   "end",     "asc",   "desc",  "nulls",
    "first",   "last",    "join",  "inner", "cross",  "left",    "outer", "on",    "using",
    "cast",    "integer", "real",  "text",  "isnull", "notnull", "true",  "false", NULL};

/* ---- words of a statement ---- */

static bool is(const struct sv_sql_word *w, const char *text)
{
    return w->kind != SV_WORD_STRING && strlen(text) == w->len &&
           sqlite3_strnicmp(w->at, text, (int)w->len) == 0;
}

static bool is_one_of(const struct sv_sql_word *w, const char *const *list)
{
    for (; *list; list++)
        if (is(w, *list))
            return true;
    return false;
}

static bool same_word(const struct sv_sql_word *a, const struct sv_sql_word *b)
{
    return a->kind == b->kind && a->len == b->len &&
           sqlite3_strnicmp(a->at, b->at, (int)a->len) == 0;
}

/* A name that is no word of SQL. */
static bool is_name(const struct sv_sql_word *w)
{
    return w->kind == SV_WORD_NAME && !is_one_of(w, words);
}

/* ---- what is known of a statement ---- */

#define TABLES_MAX 8
#define ITEMS_MAX  64

struct span {
    size_t from, to; /* words */
};

struct table {
    const struct sv_sql_word *name, *alias; /* alias: by which columns are qualified */
};

struct item {
    struct span expr;
    const struct sv_sql_word *alias; /* NULL: none */
    bool is_grouped;                 /* GROUP BY has it, as a whole */
};

struct fold {
    struct sv_sql *q;
    const struct sv_sql_word *w;
    size_t n;
    struct span list, from, where, group, having, order, limit;
    struct table tables[TABLES_MAX];
    size_t n_tables, base;
    struct item items[ITEMS_MAX], terms[ITEMS_MAX]; /* of SELECT and of GROUP BY */
    size_t n_items, n_terms;
    bool by_utid, has_aggregate;
    enum sv_sql_sums needs;
    struct sv_buf out;
    const char *copied; /* the text before it is in `out` */
};

/* The words up to one of SQL at the top level that is in `ends`. */
static size_t clause_end(const struct fold *f, size_t at, const char *const *ends)
{
    while (at < f->n && !(f->w[at].depth == 0 && is_one_of(&f->w[at], ends)))
        at++;
    return at;
}

static bool take_clause(const struct fold *f, size_t *at, const char *word, bool has_by,
                        struct span *out)
{
    static const char *const ends[] = {"from", "where", "group", "having", "order", "limit", NULL};
    *out = (struct span){*at, *at};
    if (*at == f->n || !is(&f->w[*at], word))
        return true;
    size_t from = *at + 1;
    if (has_by && (from == f->n || !is(&f->w[from++], "by")))
        return false;
    *out = (struct span){from, clause_end(f, from, ends)};
    *at = out->to;
    return out->from < out->to;
}

static bool find_clauses(struct fold *f)
{
    size_t at = 0;
    if (!take_clause(f, &at, "select", false, &f->list) || f->list.from == f->list.to ||
        !take_clause(f, &at, "from", false, &f->from) || f->from.from == f->from.to ||
        !take_clause(f, &at, "where", false, &f->where) ||
        !take_clause(f, &at, "group", true, &f->group) ||
        !take_clause(f, &at, "having", false, &f->having) ||
        !take_clause(f, &at, "order", true, &f->order) ||
        !take_clause(f, &at, "limit", false, &f->limit))
        return false;
    return at == f->n;
}

/* The tables of FROM. Slices must be there once, and where rows of others may be filled up with
 * NULL, first. */
static bool find_tables(struct fold *f)
{
    bool wants_table = true, has_left = false;
    size_t n_bases = 0;
    for (size_t i = f->from.from; i < f->from.to; i++) {
        const struct sv_sql_word *w = &f->w[i], *next = i + 1 < f->from.to ? w + 1 : NULL;
        has_left |= is(w, "left");
        if (w->depth == 0 && (is(w, ",") || is(w, "join"))) {
            wants_table = true;
        } else if (wants_table) {
            if (is_one_of(w, words))
                continue;
            if (!is_name(w) || f->n_tables == TABLES_MAX ||
                (next && (is(next, ".") || is(next, "("))))
                return false;
            struct table *t = &f->tables[f->n_tables];
            *t = (struct table){w, w};
            size_t alias = next && is(next, "as") ? i + 2 : i + 1;
            if (alias < f->from.to && is_name(&f->w[alias])) {
                t->alias = &f->w[alias];
                i = alias;
            }
            if (is_one_of(w, bases)) {
                f->base = f->n_tables;
                n_bases++;
            }
            f->n_tables++;
            wants_table = false;
        }
    }
    return n_bases == 1 && (f->base == 0 || !has_left);
}

/* The parts of a list that are separated by commas. */
static bool split(const struct fold *f, struct span s, struct item *items, size_t *n)
{
    for (size_t from = s.from, i = s.from; i <= s.to && s.from < s.to; i++) {
        if (i < s.to && !(f->w[i].depth == 0 && is(&f->w[i], ",")))
            continue;
        if (*n == ITEMS_MAX || from == i)
            return false;
        items[(*n)++] = (struct item){.expr = {from, i}};
        from = i + 1;
    }
    return true;
}

/* Takes `AS x` or a bare `x` off the end of each item. */
static void find_aliases(struct fold *f)
{
    for (size_t i = 0; i < f->n_items; i++) {
        struct item *item = &f->items[i];
        size_t last = item->expr.to - 1;
        if (last <= item->expr.from || !is_name(&f->w[last]))
            continue;
        const struct sv_sql_word *before = &f->w[last - 1];
        bool has_as = is(before, "as");
        if (has_as || is(before, ")") || is_name(before) || before->kind == SV_WORD_NUMBER ||
            before->kind == SV_WORD_STRING || is(before, "end")) {
            item->alias = &f->w[last];
            item->expr.to = has_as ? last - 1 : last;
        }
    }
}

static bool same_span(const struct fold *f, struct span a, struct span b)
{
    if (a.to - a.from != b.to - b.from)
        return false;
    for (size_t i = 0; i < a.to - a.from; i++)
        if (!same_word(&f->w[a.from + i], &f->w[b.from + i]))
            return false;
    return true;
}

/* Which items GROUP BY names: by number, by alias, or word for word. A column has precedence over
 * an alias of the same name. */
static bool find_terms(struct fold *f)
{
    if (!split(f, f->group, f->terms, &f->n_terms))
        return false;
    for (size_t t = 0; t < f->n_terms; t++) {
        struct span s = f->terms[t].expr;
        const struct sv_sql_word *w = &f->w[s.from], *last = &f->w[s.to - 1];
        bool is_single = s.to - s.from == 1;
        f->by_utid |= is(last, "utid") && (is_single || s.to - s.from == 3);
        if (is_single && w->kind == SV_WORD_NUMBER) {
            unsigned long number = strtoul(w->at, NULL, 10);
            if (number < 1 || number > f->n_items)
                return false;
            f->items[number - 1].is_grouped = true;
            continue;
        }
        bool is_column = is_one_of(w, keys) || is_one_of(w, others);
        for (size_t i = 0; i < f->n_items; i++) {
            const struct item *item = &f->items[i];
            if (same_span(f, item->expr, s) ||
                (is_single && !is_column && item->alias && same_word(item->alias, w)))
                f->items[i].is_grouped = true;
        }
    }
    return true;
}

/* ---- columns ---- */

/* A column: `name` or `table.name`; where it ends. */
struct column {
    const struct sv_sql_word *table, *name; /* table: NULL when it is not qualified */
    size_t end;
};

static bool column_at(const struct fold *f, size_t at, size_t end, struct column *out)
{
    const struct sv_sql_word *w = &f->w[at];
    if (!is_name(w))
        return false;
    *out = (struct column){NULL, w, at + 1};
    if (at + 1 < end && is(&w[1], ".")) {
        if (at + 2 >= end || w[2].kind != SV_WORD_NAME)
            return false;
        *out = (struct column){w, &w[2], at + 3};
    }
    return !(out->end < end && is(&f->w[out->end], "("));
}

static bool is_of_base(const struct fold *f, const struct column *c)
{
    return !c->table || same_word(c->table, f->tables[f->base].alias);
}

/* A column of a slice that differs within a group. */
static bool is_other(const struct fold *f, const struct column *c)
{
    return is_of_base(f, c) && is_one_of(c->name, others);
}

static bool is_alias(const struct fold *f, const struct sv_sql_word *w)
{
    for (size_t i = 0; i < f->n_items; i++)
        if (f->items[i].alias && same_word(f->items[i].alias, w))
            return true;
    return false;
}

/* Whether a group of the result has one value of the column. */
static bool is_determined(const struct fold *f, const struct column *c)
{
    for (size_t t = 0; t < f->n_terms; t++) {
        struct column term;
        struct span s = f->terms[t].expr;
        if (column_at(f, s.from, s.to, &term) && term.end == s.to &&
            same_word(term.name, c->name) &&
            (!term.table || !c->table || same_word(term.table, c->table)))
            return true;
    }
    if (!f->by_utid)
        return false;
    if (!c->table)
        return is_one_of(c->name, of_thread);
    for (size_t i = 0; i < f->n_tables; i++)
        if (same_word(c->table, f->tables[i].alias))
            return is(f->tables[i].name, "thread") || is(f->tables[i].name, "process") ||
                   (i == f->base && is_one_of(c->name, of_thread));
    return false;
}

/* ---- writing ---- */

/* Replaces the words [from, to). */
static void replace(struct fold *f, size_t from, size_t to, const char *text)
{
    const char *at = f->w[from].at;
    sv_buf_add(&f->out, f->copied, (size_t)(at - f->copied));
    sv_buf_str(&f->out, text);
    f->copied = f->w[to - 1].at + f->w[to - 1].len;
}

/* `format` with the name by which columns of slices are qualified in the places of '@'. */
static void replace_figures(struct fold *f, size_t from, size_t to, const char *format)
{
    const struct sv_sql_word *base = f->tables[f->base].alias;
    struct sv_buf text;
    sv_buf_init(&text, 1u << 12);
    for (; *format; format++) {
        if (*format == '@')
            sv_buf_add(&text, base->at, base->len);
        else
            sv_buf_byte(&text, (uint8_t)*format);
    }
    replace(f, from, to, sv_buf_cstr(&text));
    sv_buf_fini(&text);
}

static void need(struct fold *f, enum sv_sql_sums sums)
{
    f->needs = sums > f->needs ? sums : f->needs;
}

/* An aggregate of ts or dur in the words [at, end). */
static bool write_figure(struct fold *f, size_t at, size_t end, const struct column *c)
{
    static const struct {
        const char *function, *column, *figure;
        enum sv_sql_sums needs;
    } figures[] = {
        {"sum", "dur", "sum(@.stave_dur_sum)", SV_SUMS_FIT},
        {"min", "dur", "min(@.stave_dur_min)", SV_SUMS_OVERFLOW},
        {"max", "dur", "max(@.stave_dur_max)", SV_SUMS_OVERFLOW},
        {"min", "ts", "min(@.stave_ts_min)", SV_SUMS_OVERFLOW},
        {"max", "ts", "max(@.stave_ts_max)", SV_SUMS_OVERFLOW},
        {"avg", "dur", "stave_mean(@.stave_n, @.stave_dur_sum)", SV_SUMS_ARE_EXACT},
        {"count", "dur", "stave_count(@.stave_n)", SV_SUMS_OVERFLOW},
        {"count", "ts", "stave_count(@.stave_n)", SV_SUMS_OVERFLOW},
        {"count", "id", "stave_count(@.stave_n)", SV_SUMS_OVERFLOW},
    };
    if (!is_of_base(f, c))
        return false;
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++)
        if (is(&f->w[at], figures[i].function) && is(c->name, figures[i].column)) {
            need(f, figures[i].needs);
            replace_figures(f, at, end, figures[i].figure);
            return true;
        }
    return false;
}

/* percentile(dur, NUMBER): the number stays. `c` is the column. */
static bool write_percentile(struct fold *f, size_t at, size_t end, const struct column *c)
{
    const struct sv_sql_word *number = &f->w[c->end + 1];
    if (!is_of_base(f, c) || !is(c->name, "dur") || c->end + 3 != end || !is(&f->w[c->end], ",") ||
        number->kind != SV_WORD_NUMBER || strtod(number->at, NULL) > 100)
        return false;
    need(f, SV_SUMS_ARE_EXACT);
    replace_figures(f, at, c->end, "stave_percentile(@.stave_dur_values");
    return true;
}

/* The aggregate at `at`; *end is where it ends. */
static bool write_aggregate(struct fold *f, size_t at, size_t limit, size_t *end)
{
    const struct sv_sql_word *name = &f->w[at], *first = name + 2;
    size_t close = at + 2;
    while (close < limit && f->w[close].depth > name->depth)
        close++;
    /* The closing parenthesis has the depth of the name. */
    if (close == limit || close == at + 2)
        return false;
    *end = close + 1;
    f->has_aggregate = true;
    struct column c;
    bool is_one = close == at + 3;
    if (is(name, "count") && is_one && (is(first, "*") || first->kind == SV_WORD_NUMBER)) {
        replace_figures(f, at, *end, "stave_count(@.stave_n)");
        return true;
    }
    /* Values that are the same in a group count once, however many groups have them. */
    if (is(name, "count") && is(first, "distinct"))
        return column_at(f, at + 3, close, &c) && c.end == close && !is_other(f, &c);
    if (!column_at(f, at + 2, close, &c))
        return false;
    if (is(name, "percentile"))
        return write_percentile(f, at, *end, &c);
    if (c.end != close)
        return false;
    if (is_other(f, &c))
        return write_figure(f, at, *end, &c);
    return is(name, "min") || is(name, "max"); /* the same however often a value occurs */
}

/* Words of an expression. `check`: whether a column outside of aggregates may be there. */
static bool write_expression(struct fold *f, struct span s,
                             bool (*check)(const struct fold *f, const struct column *c))
{
    for (size_t i = s.from; i < s.to;) {
        const struct sv_sql_word *w = &f->w[i];
        struct column c;
        bool is_call = w->kind == SV_WORD_NAME && i + 1 < s.to && is(&w[1], "(");
        if (is(w, "*") && (i == s.from || is(&w[-1], ".") || is(&w[-1], ",")))
            return false;
        if (is_call && is_one_of(w, aggregates)) {
            if (!write_aggregate(f, i, s.to, &i))
                return false;
        } else if (is_call) {
            if (!is_one_of(w, functions))
                return false;
            i++;
        } else if (is_name(w)) {
            if (!column_at(f, i, s.to, &c) || is_other(f, &c) || !check(f, &c))
                return false;
            i = c.end;
        } else {
            i++;
        }
    }
    return true;
}

static bool any_column(const struct fold *f, const struct column *c)
{
    (void)f;
    (void)c;
    return true;
}

static bool has_aggregate(const struct fold *f, struct span s)
{
    for (size_t i = s.from; i + 1 < s.to; i++)
        if (is_one_of(&f->w[i], aggregates) && is(&f->w[i + 1], "("))
            return true;
    return false;
}

/* ---- the clauses ---- */

static bool write_list(struct fold *f)
{
    for (size_t i = 0; i < f->n_items; i++) {
        const struct item *item = &f->items[i];
        if (item->alias && is_one_of(item->alias, keys) &&
            !(item->expr.to - item->expr.from == 1 &&
              same_word(item->alias, &f->w[item->expr.from])))
            return false; /* which of the two is meant elsewhere? */
        if (!write_expression(f, item->expr, item->is_grouped ? any_column : is_determined))
            return false;
    }
    return true;
}

static bool write_from(struct fold *f)
{
    const struct table *t = &f->tables[f->base];
    size_t at = (size_t)(t->name - f->w);
    bool has_alias = t->alias != t->name;
    struct sv_buf text;
    sv_buf_init(&text, 1u << 12);
    if (is(t->name, "thread_slice"))
        sv_buf_str(&text, "(" SV_SQL_THREAD_SLICE_GROUPS ")");
    else
        sv_buf_str(&text, SV_SQL_GROUPS);
    if (!has_alias) {
        sv_buf_str(&text, " AS ");
        sv_buf_add(&text, t->name->at, t->name->len);
    }
    replace(f, at, at + 1, sv_buf_cstr(&text));
    sv_buf_fini(&text);
    /* Conditions of joins: all columns but those that differ within a group. */
    bool is_condition = false;
    for (size_t i = f->from.from; i < f->from.to; i++) {
        const struct sv_sql_word *w = &f->w[i];
        struct column c;
        if (is(w, "on") || is(w, "using"))
            is_condition = true;
        else if (w->depth == 0 && (is(w, ",") || is(w, "join")))
            is_condition = false;
        else if (is_condition && w->kind == SV_WORD_NAME && i + 1 < f->from.to && is(&w[1], "(") &&
                 !is_one_of(w, functions))
            return false;
        else if (is_condition && column_at(f, i, f->from.to, &c)) {
            if (is_other(f, &c))
                return false;
            i = c.end - 1;
        }
    }
    return true;
}

/* A bound: numbers and times of the trace, nothing else. */
static bool is_constant(const struct fold *f, struct span s)
{
    for (size_t i = s.from; i < s.to; i++) {
        const struct sv_sql_word *w = &f->w[i];
        static const char *const signs[] = {"+", "-", "*", "(", ")", NULL};
        if (w->kind != SV_WORD_NUMBER && !is_one_of(w, signs) && !is_one_of(w, times))
            return false;
    }
    return s.from < s.to;
}

/* `dur > 1000`, `ts BETWEEN 1 AND 2`: what the table of groups applies itself. `between` is where
 * its AND is, or 0. */
static bool is_bound(const struct fold *f, struct span s, size_t between)
{
    static const char *const ops[] = {"<", "<=", ">", ">=", "=", "==", NULL};
    struct column c;
    if (!column_at(f, s.from, s.to, &c) || !is_of_base(f, &c) || c.end >= s.to ||
        !(is(c.name, "ts") || is(c.name, "dur")))
        return false;
    struct span rest = {c.end + 1, s.to};
    if (is_one_of(&f->w[c.end], ops))
        return !between && is_constant(f, rest);
    return is(&f->w[c.end], "between") && between &&
           is_constant(f, (struct span){rest.from, between}) &&
           is_constant(f, (struct span){between + 1, s.to});
}

static bool has_word(const struct fold *f, struct span s, const char *word)
{
    for (size_t i = s.from; i < s.to; i++)
        if (f->w[i].depth == 0 && is(&f->w[i], word))
            return true;
    return false;
}

/* WHERE, condition by condition. */
static bool write_where(struct fold *f)
{
    bool is_conjunction = !has_word(f, f->where, "or") && !has_word(f, f->where, "case");
    size_t from = f->where.from, between = 0;
    bool is_between = false;
    for (size_t i = f->where.from; i <= f->where.to && from < f->where.to; i++) {
        bool is_and = i < f->where.to && f->w[i].depth == 0 && is(&f->w[i], "and");
        if (i < f->where.to && f->w[i].depth == 0 && is(&f->w[i], "between"))
            is_between = true;
        if (is_and && is_between && !between) {
            between = i;
            continue;
        }
        if (!is_and && i < f->where.to)
            continue;
        struct span s = {from, i};
        if (!(is_conjunction && is_bound(f, s, between)) &&
            (has_aggregate(f, s) || !write_expression(f, s, any_column)))
            return false;
        from = i + 1;
        between = 0;
        is_between = false;
    }
    return true;
}

static bool write_order(struct fold *f)
{
    struct item terms[ITEMS_MAX];
    size_t n = 0;
    if (!split(f, f->order, terms, &n))
        return false;
    for (size_t i = 0; i < n; i++) {
        struct span s = terms[i].expr;
        const struct sv_sql_word *last = &f->w[s.to - 1];
        if (s.to - s.from == 2 && (is(last, "asc") || is(last, "desc")))
            s.to--;
        if (s.to - s.from == 1 && is_alias(f, &f->w[s.from]))
            continue;
        if (!write_expression(f, s, is_determined))
            return false;
    }
    return true;
}

/* Whether the tables that the words name are Stave's own. */
static bool are_tables_own(const struct fold *f)
{
    const struct sv_sql_word *base = f->tables[f->base].name;
    char name[16];
    sqlite3_snprintf((int)(base->len + 1), name, "%s", base->at);
    const char *own = NULL;
    for (const char *const *v = sv_sql_views; *v; v++)
        if (sqlite3_strnicmp(*v + strlen("CREATE VIEW "), name, (int)base->len) == 0 &&
            (*v)[strlen("CREATE VIEW ") + base->len] == ' ')
            own = *v;
    sqlite3_stmt *s = NULL;
    bool is_own = true;
    if (sqlite3_prepare_v2(f->q->db,
                           "SELECT sql IS ?2 FROM (SELECT name, sql FROM sqlite_schema UNION ALL "
                           "SELECT name, sql FROM sqlite_temp_schema) WHERE name LIKE ?1",
                           -1, &s, NULL) != SQLITE_OK)
        return false;
    sqlite3_bind_text(s, 1, name, -1, SQLITE_STATIC);
    sqlite3_bind_text(s, 2, own, -1, SQLITE_STATIC);
    size_t n = 0;
    while (sqlite3_step(s) == SQLITE_ROW) {
        is_own = is_own && sqlite3_column_int(s, 0);
        n++;
    }
    sqlite3_finalize(s);
    return is_own && n == (own != NULL);
}

static bool fold_statement(struct fold *f)
{
    if (!find_clauses(f) || !find_tables(f) || !split(f, f->list, f->items, &f->n_items))
        return false;
    find_aliases(f);
    if (!find_terms(f) || has_aggregate(f, f->group) || !write_list(f) || !write_from(f) ||
        !write_where(f) || !write_expression(f, f->group, any_column) ||
        !write_expression(f, f->having, is_determined) || !write_order(f) ||
        !write_expression(f, f->limit, is_determined))
        return false;
    if (!f->has_aggregate && f->n_terms == 0)
        return false;
    return are_tables_own(f) && (f->needs == SV_SUMS_OVERFLOW || sv_sql_sums(f->q) >= f->needs);
}

bool sv_sql_is_aggregate(const char *name)
{
    for (const char *const *a = aggregates; *a; a++)
        if (sqlite3_stricmp(name, *a) == 0)
            return true;
    return false;
}

char *sv_sql_fold(struct sv_sql *q, const char *sql, const char *end)
{
    struct sv_sql_word w[SV_SQL_WORDS_MAX];
    size_t n = sv_sql_words(sql, end, w, SV_SQL_WORDS_MAX);
    if (n < 4 || !is(&w[0], "select") || q->has_own_aggregate)
        return NULL;
    for (size_t i = 1; i < n; i++)
        if (is(&w[i], "select") || is_one_of(&w[i], refused) ||
            (is(&w[i], "distinct") && !(i > 2 && is(&w[i - 2], "count"))))
            return NULL;
    struct fold *f = sv_alloc(sizeof *f);
    *f = (struct fold){.q = q, .w = w, .n = n, .copied = sql};
    sv_buf_init(&f->out, 1u << 20);
    char *text = NULL;
    if (fold_statement(f)) {
        const char *last = w[n - 1].at + w[n - 1].len;
        sv_buf_add(&f->out, f->copied, (size_t)(last - f->copied));
        text = f->out.failed ? NULL : sv_strndup(sv_buf_cstr(&f->out), f->out.len);
    }
    sv_buf_fini(&f->out);
    free(f);
    return text;
}
#else
char *sv_sql_fold(struct sv_sql *q, const char *sql, const char *end)
{
    (void)q;
    (void)sql;
    (void)end;
    return NULL;
}
#endif
