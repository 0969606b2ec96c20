/* The table of cli/yaml.h: checks a map of a document and puts its values where they belong.
 *
 * Called by whatever reads a configuration. Every complaint names the line, what was found and what
 * is expected. */
#include "cli/nearest.h"
#include "cli/yaml_inside.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAMES_MAX = 256 };

static uint32_t line_of(const struct sv_yaml_node *node)
{
    return node->key ? node->key_line : node->line;
}

int sv_yaml_fail(const struct sv_yaml *y, const struct sv_yaml_node *node, struct sv_err *err,
                 const char *fmt, ...)
{
    char text[400];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    return sv_error(err, SV_EUSAGE, "%s:%u: %s", y->name, line_of(node), text);
}

int sv_yaml_unknown(const struct sv_yaml *y, const struct sv_yaml_node *member,
                    const char *const *names, size_t n, struct sv_err *err)
{
    const char *near = sv_nearest(member->key, names, n);
    if (near)
        return sv_yaml_fail(y, member, err, "unknown key '%.100s'; did you mean '%s'?", member->key,
                            near);
    char list[240] = ""; /* as many as fit */
    size_t at = 0, i = 0;
    for (; i < n && at + strlen(names[i]) + sizeof ", …" <= sizeof list; i++)
        at += (size_t)snprintf(list + at, sizeof list - at, "%s%s", i ? ", " : "", names[i]);
    return sv_yaml_fail(y, member, err, "unknown key '%.100s'; known keys: %s%s", member->key, list,
                        i < n ? ", …" : "");
}

/* ---- several complaints ---- */

void sv_yaml_also(struct sv_yaml *y, const struct sv_err *own, struct sv_err *err)
{
    if (own->code >= 0)
        return;
    if (err->code >= 0) {
        *err = *own;
    } else if (y->n_others < SV_YAML_OTHERS_MAX) {
        size_t n = strlen(own->msg) + 1;
        char *copy = sv_arena_get(&y->arena, n, 1);
        memcpy(copy, own->msg, n);
        y->others[y->n_others++] = copy;
    }
}

const char *const *sv_yaml_others(const struct sv_yaml *y, size_t *n)
{
    *n = y->n_others;
    return y->others;
}

/* ---- scalars ---- */

bool sv_yaml_bool(const struct sv_yaml_node *node, bool *out)
{
    static const char *const words[][2] = {{"false", "true"}, {"False", "True"}, {"FALSE", "TRUE"},
                                           {"no", "yes"},     {"No", "Yes"},     {"NO", "YES"},
                                           {"off", "on"},     {"Off", "On"},     {"OFF", "ON"}};
    if (node->kind != SV_YAML_SCALAR || node->is_quoted)
        return false;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        for (int v = 0; v < 2; v++)
            if (strcmp(node->text, words[i][v]) == 0) {
                *out = v;
                return true;
            }
    return false;
}

bool sv_yaml_int(const struct sv_yaml_node *node, int64_t *out)
{
    const char *digits = node->text + (node->text[0] == '-' || node->text[0] == '+');
    char *end;
    if (node->kind != SV_YAML_SCALAR || node->is_quoted || *digits < '0' || *digits > '9')
        return false;
    errno = 0;
    long long v = strtoll(node->text, &end, 10);
    if (*end || errno != 0)
        return false;
    *out = v;
    return true;
}

bool sv_yaml_number(const struct sv_yaml_node *node, double *out)
{
    static const char allowed[] = "0123456789+-.eE";
    char *end;
    if (node->kind != SV_YAML_SCALAR || node->is_quoted || !node->text[0] ||
        strspn(node->text, allowed) != strlen(node->text))
        return false; /* neither nan nor hexadecimal */
    double v = strtod(node->text, &end);
    if (*end || !isfinite(v))
        return false;
    *out = v;
    return true;
}

/* ---- fields ---- */

static bool is_within(const struct sv_yaml_field *f, double v)
{
    return (f->min == 0 && f->max == 0) || (v >= f->min && v <= f->max);
}

static int out_of_range(const struct sv_yaml *y, const struct sv_yaml_field *f,
                        const struct sv_yaml_node *node, struct sv_err *err)
{
    if (f->max >= DBL_MAX / 2 || f->max >= 9e18)
        return sv_yaml_fail(y, node, err, "%s: %.40s is too small; at least %.15g", f->key,
                            node->text, f->min);
    return sv_yaml_fail(y, node, err, "%s: %.40s is not within %.15g and %.15g", f->key, node->text,
                        f->min, f->max);
}

static bool is_choice(const char *choices, const char *text)
{
    size_t len = strlen(text);
    for (const char *at = choices; *at;) {
        size_t n = strcspn(at, " ");
        if (n == len && memcmp(at, text, n) == 0)
            return true;
        at += n + (at[n] == ' ');
    }
    return false;
}

static const char *found(const struct sv_yaml_node *node)
{
    return node->kind == SV_YAML_MAP       ? "a map"
           : node->kind == SV_YAML_LIST    ? "a list"
           : node->kind == SV_YAML_NOTHING ? "nothing"
                                           : node->text;
}

static int wrong(const struct sv_yaml *y, const struct sv_yaml_field *f,
                 const struct sv_yaml_node *node, const char *expected, struct sv_err *err)
{
    return sv_yaml_fail(y, node, err, "%s: expected %s, found %.60s%s", f->key, expected,
                        found(node), node->is_quoted ? " in quotes" : "");
}

static int read_text(const struct sv_yaml *y, const struct sv_yaml_field *f,
                     const struct sv_yaml_node *node, const char **out, struct sv_err *err)
{
    if (node->kind != SV_YAML_SCALAR)
        return wrong(y, f, node, "a text", err);
    if (!node->text[0])
        return sv_yaml_fail(y, node, err, "%s: the text is empty", f->key);
    if (f->choices && !is_choice(f->choices, node->text))
        return sv_yaml_fail(y, node, err, "%s: '%.60s' is none of: %s", f->key, node->text,
                            f->choices);
    *out = node->text;
    return 0;
}

static int read_texts(struct sv_yaml *y, const struct sv_yaml_field *f,
                      const struct sv_yaml_node *node, struct sv_yaml_texts *out,
                      struct sv_err *err)
{
    bool is_list = node->kind == SV_YAML_LIST;
    size_t n = is_list ? node->n : 1;
    const char **items = sv_arena_get(&y->arena, (n + 1) * sizeof *items, _Alignof(char *));
    const struct sv_yaml_node *item = is_list ? node->first : node;
    for (size_t i = 0; i < n; i++, item = item->next) {
        int code = read_text(y, f, item, &items[i], err);
        if (code < 0)
            return code;
    }
    *out = (struct sv_yaml_texts){items, n};
    return 0;
}

static int read_map(struct sv_yaml *y, const struct sv_yaml_node *map,
                    const struct sv_yaml_field *fields, void *into, struct sv_err *err);

/* A part says all that is wrong with it, too. */
static int read_field(struct sv_yaml *y, const struct sv_yaml_field *f,
                      const struct sv_yaml_node *node, void *value, struct sv_err *err)
{
    switch (f->type) {
    case SV_YAML_BOOL:
        return sv_yaml_bool(node, value) ? 0 : wrong(y, f, node, "true or false", err);
    case SV_YAML_INT: {
        int64_t v;
        if (!sv_yaml_int(node, &v))
            return wrong(y, f, node, "a whole number", err);
        *(int64_t *)value = v;
        return is_within(f, (double)v) ? 0 : out_of_range(y, f, node, err);
    }
    case SV_YAML_NUMBER: {
        double v;
        if (!sv_yaml_number(node, &v))
            return wrong(y, f, node, "a number", err);
        *(double *)value = v;
        return is_within(f, v) ? 0 : out_of_range(y, f, node, err);
    }
    case SV_YAML_TEXT: return read_text(y, f, node, value, err);
    case SV_YAML_TEXTS: return read_texts(y, f, node, value, err);
    case SV_YAML_PART:
        return node->kind == SV_YAML_MAP ? read_map(y, node, f->fields, value, err)
                                         : wrong(y, f, node, "a map of keys", err);
    case SV_YAML_ANY: *(const struct sv_yaml_node **)value = node; return 0;
    }
    return SV_EUSAGE;
}

static const struct sv_yaml_field *field_of(const struct sv_yaml_field *fields, const char *key)
{
    for (const struct sv_yaml_field *f = fields; f->key; f++)
        if (strcmp(f->key, key) == 0)
            return f;
    return NULL;
}

static int unknown_field(const struct sv_yaml *y, const struct sv_yaml_node *member,
                         const struct sv_yaml_field *fields, struct sv_err *err)
{
    const char *names[NAMES_MAX];
    size_t n = 0;
    for (const struct sv_yaml_field *f = fields; f->key && n < NAMES_MAX; f++)
        names[n++] = f->key;
    return sv_yaml_unknown(y, member, names, n, err);
}

/* All missing keys in one message, not one per run. */
static int check_required(const struct sv_yaml *y, const struct sv_yaml_node *map,
                          const struct sv_yaml_field *fields, struct sv_err *err)
{
    char list[300] = "";
    size_t at = 0;
    for (const struct sv_yaml_field *f = fields; f->key && at < sizeof list - 1; f++)
        if (f->is_required && !sv_yaml_find(map, f->key))
            at += (size_t)snprintf(list + at, sizeof list - at, "%s%s", at ? ", " : "", f->key);
    if (!at)
        return 0;
    return sv_yaml_fail(y, map, err, "missing: %s", list);
}

/* All of it is read, whatever is wrong with a part of it: err has the first complaint. */
static int read_map(struct sv_yaml *y, const struct sv_yaml_node *map,
                    const struct sv_yaml_field *fields, void *into, struct sv_err *err)
{
    for (const struct sv_yaml_node *m = map->first; m; m = m->next) {
        const struct sv_yaml_field *f = field_of(fields, m->key);
        struct sv_err own = {0};
        if (f && f->type == SV_YAML_PART && m->kind == SV_YAML_MAP)
            read_field(y, f, m, (char *)into + f->offset, err);
        else if (f)
            read_field(y, f, m, (char *)into + f->offset, &own);
        else
            unknown_field(y, m, fields, &own);
        sv_yaml_also(y, &own, err);
    }
    struct sv_err missing = {0};
    check_required(y, map, fields, &missing);
    sv_yaml_also(y, &missing, err);
    return err->code;
}

int sv_yaml_read(struct sv_yaml *y, const struct sv_yaml_node *map,
                 const struct sv_yaml_field *fields, void *into, struct sv_err *err)
{
    if (map->kind != SV_YAML_MAP && map->kind != SV_YAML_NOTHING)
        return sv_yaml_fail(y, map, err, "expected a map of keys ('key: value'), found %.60s",
                            found(map));
    sv_err_clear(err);
    return read_map(y, map, fields, into, err);
}
