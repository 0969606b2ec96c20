/* The parser of cli/yaml.h: one pass over the text, a node per value.
 *
 * Called through cli/yaml.h by whatever reads a configuration. Nesting is bounded by
 * SV_YAML_DEPTH_MAX, everything else by the size of the text; all memory is the document's arena.
 * It must not guess: what is outside the subset is an error with its line. */
#include "cli/yaml_inside.h"
#include "core/base/utf8.h"
#include "core/files/input.h"

#include <stdlib.h>
#include <string.h>

struct parser {
    struct sv_yaml *y;
    const char *at, *end, *line_start;
    uint32_t line;
    int depth;
    size_t n_nodes;
    struct sv_err *err;
};

static int fail(struct parser *p, uint32_t line, const char *what)
{
    return sv_error(p->err, SV_EFORMAT, "%s:%u: %s", p->y->name, line, what);
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* At the end of a line or of the text? */
static bool ends_line(const struct parser *p, const char *at)
{
    return at == p->end || *at == '\n' || (*at == '\r' && (at + 1 == p->end || at[1] == '\n'));
}

/* Does a blank, or the end of the line, follow? */
static bool ends_word(const struct parser *p, const char *at)
{
    return ends_line(p, at) || is_blank(*at);
}

static int column(const struct parser *p)
{
    return (int)(p->at - p->line_start);
}

static void next_line(struct parser *p)
{
    while (p->at < p->end && *p->at != '\n')
        p->at++;
    if (p->at < p->end)
        p->at++;
    p->line++;
    p->line_start = p->at;
}

static void skip_blanks(struct parser *p)
{
    while (p->at < p->end && is_blank(*p->at))
        p->at++;
}

/* From the start of a line to the next content. 0, or negative for a tab where indentation is
 * counted. */
static int skip_to_content(struct parser *p)
{
    while (p->at < p->end) {
        while (p->at < p->end && *p->at == ' ')
            p->at++;
        const char *content = p->at;
        skip_blanks(p);
        if (!ends_line(p, p->at) && *p->at != '#') {
            if (p->at != content)
                return fail(p, p->line, "a tab in the indentation; use spaces");
            return 0;
        }
        next_line(p);
    }
    return 0;
}

/* After a value: nothing but a comment may follow on its line. */
static int end_line(struct parser *p)
{
    const char *after = p->at;
    skip_blanks(p);
    if (!ends_line(p, p->at) && (*p->at != '#' || p->at == after))
        return fail(p, p->line,
                    "unexpected text after the value (texts with ': ' or after quotes "
                    "need quotes around all of it)");
    next_line(p);
    return skip_to_content(p);
}

static struct sv_yaml_node *new_node(struct parser *p, enum sv_yaml_kind kind)
{
    if (++p->n_nodes > SV_YAML_NODES_MAX) {
        fail(p, p->line, "too many values");
        return NULL;
    }
    struct sv_yaml_node *node =
        sv_arena_get(&p->y->arena, sizeof *node, _Alignof(struct sv_yaml_node));
    *node = (struct sv_yaml_node){.kind = kind, .line = p->line, .text = ""};
    return node;
}

/* ---- scalars ---- */

static int hex_value(const char *s, int digits, uint32_t *out)
{
    *out = 0;
    for (int i = 0; i < digits; i++) {
        char c = s[i];
        int v = c >= '0' && c <= '9'   ? c - '0'
                : c >= 'a' && c <= 'f' ? c - 'a' + 10
                : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                       : -1;
        if (v < 0)
            return -1;
        *out = *out * 16 + (uint32_t)v;
    }
    return 0;
}

/* \xNN, \uNNNN, \UNNNNNNNN at p->at (the letter). */
static size_t escape_code(struct parser *p, char *to)
{
    int digits = *p->at == 'x' ? 2 : *p->at == 'u' ? 4 : 8;
    uint32_t code;
    if (p->end - p->at <= digits || hex_value(p->at + 1, digits, &code) < 0 || code == 0 ||
        code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
        return 0;
    p->at += digits;
    return sv_utf8_encode(to, code);
}

/* The character after a backslash; how many bytes it became, 0: unknown. */
static size_t escape(struct parser *p, char *to)
{
    static const char from[] = "nrtabefv\\\"/ ", into[] = "\n\r\t\a\b\033\f\v\\\"/ ";
    if (p->at == p->end || *p->at == 0)
        return 0;
    if (*p->at == 'x' || *p->at == 'u' || *p->at == 'U')
        return escape_code(p, to);
    const char *known = strchr(from, *p->at);
    if (known)
        *to = into[known - from];
    return known ? 1 : 0;
}

/* From the opening quote to after the closing one, on one line. */
static int read_quoted(struct parser *p, const char **text)
{
    char quote = *p->at++;
    const char *stop = p->at;
    while (!ends_line(p, stop))
        stop++;
    char *out = sv_arena_get(&p->y->arena, (size_t)(stop - p->at) + 1, 1);
    size_t n = 0;
    for (; p->at < stop; p->at++) {
        if (*p->at == quote && quote == '\'' && p->at + 1 < stop && p->at[1] == quote) {
            out[n++] = *p->at++;
        } else if (*p->at == quote) {
            p->at++;
            out[n] = 0;
            *text = out;
            return 0;
        } else if (*p->at == '\\' && quote == '"') {
            p->at++;
            size_t made = escape(p, out + n);
            if (made == 0)
                return fail(p, p->line, "unknown escape after '\\' in a text in double quotes");
            n += made;
        } else {
            out[n++] = *p->at;
        }
    }
    return fail(p, p->line, "a quote is not closed on its line");
}

/* Why a plain text may not begin so; NULL: it may. */
static const char *refuses(char c)
{
    switch (c) {
    case '&':
    case '*': return "anchors and aliases are not supported; texts that start like one need quotes";
    case '!': return "tags are not supported; texts that start like one need quotes";
    case '|':
    case '>': return "texts over several lines are not supported; use quotes and \\n";
    case '%':
    case '@':
    case '`': return "texts that start with %, @ or ` need quotes";
    case ']':
    case '}':
    case ',': return "unexpected bracket or comma; texts that start with one need quotes";
    default: return NULL;
    }
}

/* Where the plain text at p->at ends: before ": ", " #", the end of the line and, inside brackets,
 * before , ] } [ {. */
static const char *plain_end(const struct parser *p, bool in_flow)
{
    const char *s = p->at, *last = s;
    for (; !ends_line(p, s); s++) {
        if (*s == ':' && (ends_word(p, s + 1) || (in_flow && strchr(",]}", s[1]))))
            break;
        if (*s == '#' && s > p->at && is_blank(s[-1]))
            break;
        if (in_flow && strchr(",]}[{", *s))
            break;
        if (!is_blank(*s))
            last = s + 1;
    }
    return last;
}

static struct sv_yaml_node *read_scalar(struct parser *p, bool in_flow)
{
    struct sv_yaml_node *node = new_node(p, SV_YAML_SCALAR);
    if (!node)
        return NULL;
    if (*p->at == '"' || *p->at == '\'') {
        node->is_quoted = true;
        return read_quoted(p, &node->text) < 0 ? NULL : node;
    }
    const char *why = refuses(*p->at);
    if (!why && (*p->at == '-' || *p->at == '?') && ends_word(p, p->at + 1))
        why = "a list or key cannot begin here";
    const char *end = plain_end(p, in_flow);
    if (!why && end == p->at)
        why = "a text is missing here";
    if (why) {
        fail(p, p->line, why);
        return NULL;
    }
    size_t len = (size_t)(end - p->at);
    node->text = sv_arena_copy(&p->y->arena, p->at, len);
    p->at = end;
    if (strcmp(node->text, "~") == 0 || strcmp(node->text, "null") == 0) {
        node->kind = SV_YAML_NOTHING;
        node->text = "";
    }
    return node;
}

/* ---- members ---- */

struct chain {
    struct sv_yaml_node *owner, *last;
};

static int add_member(struct parser *p, struct chain *c, struct sv_yaml_node *member)
{
    for (const struct sv_yaml_node *m = c->owner->first; member->key && m; m = m->next)
        if (strcmp(m->key, member->key) == 0)
            return sv_error(p->err, SV_EFORMAT, "%s:%u: '%s' is given twice (first in line %u)",
                            p->y->name, member->key_line, member->key, m->key_line);
    if (member->key && c->owner->n == SV_YAML_KEYS_MAX)
        return fail(p, member->key_line, "too many keys in one map");
    if (c->last)
        c->last->next = member;
    else
        c->owner->first = member;
    c->last = member;
    c->owner->n++;
    return 0;
}

/* Reads `key:` if there is one here. 1: there is, p->at is after the colon; 0: no key, nothing was
 * read. */
static int read_key(struct parser *p, bool in_flow, const char **key)
{
    const char *from = p->at, *end;
    if (*from == '"' || *from == '\'') {
        if (read_quoted(p, key) < 0)
            return SV_EFORMAT;
        end = p->at;
    } else {
        if (refuses(*from) || strchr("[{#", *from) ||
            ((*from == '?' || *from == '-') && ends_word(p, from + 1)))
            return 0;
        end = plain_end(p, in_flow);
        *key = NULL;
    }
    p->at = end;
    skip_blanks(p);
    bool is_key = p->at < p->end && *p->at == ':' && (ends_word(p, p->at + 1) || in_flow) &&
                  end > from;
    if (!is_key) {
        p->at = from;
        return 0;
    }
    if (!*key)
        *key = sv_arena_copy(&p->y->arena, from, (size_t)(end - from));
    p->at++;
    if (strcmp(*key, "<<") == 0 || (*key)[0] == 0)
        return fail(p, p->line, "merging (<<) and empty keys are not supported");
    return 1;
}

/* ---- [a, b] and {a: 1} ---- */

static struct sv_yaml_node *read_flow(struct parser *p);

/* Blanks, line breaks and comments between brackets. */
static void skip_flow(struct parser *p)
{
    for (;;) {
        const char *before = p->at;
        skip_blanks(p);
        if (p->at < p->end &&
            (ends_line(p, p->at) || (*p->at == '#' && (p->at > before || p->at == p->line_start))))
            next_line(p);
        else
            return;
    }
}

static struct sv_yaml_node *read_flow_value(struct parser *p)
{
    if (p->at == p->end) {
        fail(p, p->line, "a bracket is not closed");
        return NULL;
    }
    return *p->at == '[' || *p->at == '{' ? read_flow(p) : read_scalar(p, true);
}

static struct sv_yaml_node *read_flow_member(struct parser *p)
{
    const char *key;
    uint32_t line = p->line;
    int code = read_key(p, true, &key);
    if (code == 0)
        fail(p, p->line, "expected 'key: value' between { and }");
    if (code <= 0)
        return NULL;
    skip_flow(p);
    bool is_empty = p->at < p->end && (*p->at == ',' || *p->at == '}');
    struct sv_yaml_node *node = is_empty ? new_node(p, SV_YAML_NOTHING) : read_flow_value(p);
    if (node) {
        node->key = key;
        node->key_line = line;
    }
    return node;
}

static int read_flow_items(struct parser *p, struct sv_yaml_node *owner, char close)
{
    struct chain chain = {owner, NULL};
    uint32_t opened = p->line;
    for (;;) {
        skip_flow(p);
        if (p->at == p->end)
            return fail(p, opened, "a bracket is not closed");
        if (*p->at == close)
            break;
        struct sv_yaml_node *node = close == ']' ? read_flow_value(p) : read_flow_member(p);
        if (!node || add_member(p, &chain, node) < 0)
            return SV_EFORMAT;
        skip_flow(p);
        if (p->at < p->end && *p->at == ',')
            p->at++;
        else if (p->at < p->end && *p->at != close)
            return fail(p, p->line, close == ']' ? "expected ',' or ']'" : "expected ',' or '}'");
    }
    p->at++;
    return 0;
}

static struct sv_yaml_node *read_flow(struct parser *p)
{
    char open = *p->at;
    struct sv_yaml_node *node = new_node(p, open == '[' ? SV_YAML_LIST : SV_YAML_MAP);
    if (!node)
        return NULL;
    if (++p->depth > SV_YAML_DEPTH_MAX) {
        fail(p, p->line, "nested too deeply");
        return NULL;
    }
    p->at++;
    int code = read_flow_items(p, node, open == '[' ? ']' : '}');
    p->depth--;
    return code < 0 ? NULL : node;
}

/* ---- by indentation ---- */

static struct sv_yaml_node *read_block(struct parser *p);

static bool is_item(const struct parser *p)
{
    return p->at < p->end && *p->at == '-' && ends_word(p, p->at + 1);
}

/* The value after `key:` or a lone `-`: on the same line, or deeper on the next ones, or
 * nothing. */
static struct sv_yaml_node *read_value(struct parser *p, int parent, bool is_member)
{
    uint32_t line = p->line;
    skip_blanks(p);
    if (!ends_line(p, p->at) && *p->at != '#') {
        if (!is_member)
            return read_block(p);
        struct sv_yaml_node *node = *p->at == '[' || *p->at == '{' ? read_flow(p)
                                                                   : read_scalar(p, false);
        return node && end_line(p) < 0 ? NULL : node;
    }
    next_line(p);
    if (skip_to_content(p) < 0)
        return NULL;
    if (p->at < p->end && (column(p) > parent || (is_member && column(p) == parent && is_item(p))))
        return read_block(p);
    struct sv_yaml_node *node = new_node(p, SV_YAML_NOTHING);
    if (node)
        node->line = line;
    return node;
}

static struct sv_yaml_node *read_member(struct parser *p, int indent)
{
    const char *key;
    uint32_t line = p->line;
    int code = read_key(p, false, &key);
    if (code == 0)
        fail(p, p->line, "expected 'key: value'");
    if (code <= 0)
        return NULL;
    struct sv_yaml_node *node = read_value(p, indent, true);
    if (node) {
        node->key = key;
        node->key_line = line;
    }
    return node;
}

static struct sv_yaml_node *read_item(struct parser *p, int indent)
{
    if (!is_item(p)) {
        fail(p, p->line, "expected '- ' as in the items before");
        return NULL;
    }
    p->at++;
    return read_value(p, indent, false);
}

/* Is this still an item of the list? 1: yes; 0: it ends here; negative: its indentation fits no
 * list. */
static int goes_on(struct parser *p, const struct sv_yaml_node *owner, int indent)
{
    if (p->at == p->end || column(p) < indent)
        return 0;
    if (column(p) > indent)
        return fail(p, p->line,
                    "indented more than the lines before it (texts over several lines "
                    "are not supported; use quotes on one line)");
    /* A list at the column of its key ends where the next key begins. */
    return owner->kind == SV_YAML_LIST && !is_item(p) ? 0 : 1;
}

static bool is_key_here(struct parser *p)
{
    struct parser look = *p;
    const char *key;
    struct sv_err ignored = {0};
    look.err = &ignored;
    return read_key(&look, false, &key) != 0; /* a bad key is one, too */
}

/* A map, a list or one value that begins here; afterwards p is at the next content. */
static struct sv_yaml_node *read_block(struct parser *p)
{
    int indent = column(p), code;
    enum sv_yaml_kind kind = is_item(p) ? SV_YAML_LIST : is_key_here(p) ? SV_YAML_MAP : 0;
    if (kind == SV_YAML_NOTHING) {
        struct sv_yaml_node *one = *p->at == '[' || *p->at == '{' ? read_flow(p)
                                                                  : read_scalar(p, false);
        return one && end_line(p) < 0 ? NULL : one;
    }
    struct sv_yaml_node *node = new_node(p, kind);
    if (!node)
        return NULL;
    if (++p->depth > SV_YAML_DEPTH_MAX) {
        fail(p, p->line, "nested too deeply");
        return NULL;
    }
    struct chain chain = {node, NULL};
    do {
        struct sv_yaml_node *m = kind == SV_YAML_MAP ? read_member(p, indent)
                                                     : read_item(p, indent);
        if (!m || add_member(p, &chain, m) < 0)
            return NULL;
        code = goes_on(p, node, indent);
    } while (code > 0);
    p->depth--;
    return code < 0 ? NULL : node;
}

/* ---- the document ---- */

/* Control characters, including NUL, and invalid UTF-8 are refused. */
static int check_bytes(struct parser *p)
{
    uint32_t line = 1;
    size_t len = (size_t)(p->end - p->at), good = sv_utf8_valid(p->at, len);
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)p->at[i];
        if (i == good)
            return fail(p, line, "not valid UTF-8");
        if ((c < ' ' && c != '\n' && c != '\t' && c != '\r') || c == 127)
            return fail(p, line, "a control character");
        line += c == '\n';
    }
    return 0;
}

static bool is_mark(const struct parser *p, const char *mark)
{
    return p->end - p->at >= 3 && memcmp(p->at, mark, 3) == 0 && column(p) == 0 &&
           ends_word(p, p->at + 3);
}

static int read_document(struct parser *p)
{
    if (check_bytes(p) < 0 || skip_to_content(p) < 0)
        return SV_EFORMAT;
    if (p->at < p->end && *p->at == '%' && column(p) == 0)
        return fail(p, p->line, "directives (%) are not supported");
    if (is_mark(p, "---")) {
        p->at += 3;
        if (end_line(p) < 0)
            return SV_EFORMAT;
    }
    p->y->root = p->at == p->end ? new_node(p, SV_YAML_NOTHING) : read_block(p);
    if (!p->y->root)
        return SV_EFORMAT;
    if (p->at < p->end)
        return fail(p, p->line,
                    is_mark(p, "---") || is_mark(p, "...")
                        ? "only one document per file"
                        : "indented less than the lines before it, or of another kind");
    return 0;
}

int sv_yaml_parse(const char *text, size_t len, const char *name, struct sv_yaml **out,
                  struct sv_err *err)
{
    struct sv_err own = {0};
    struct sv_yaml *y = sv_alloc(sizeof *y);
    if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) {
        text += 3;
        len -= 3;
    }
    y->name = sv_strndup(name, strlen(name));
    sv_arena_init(&y->arena, 4096);
    struct parser p = {.y = y,
                       .at = text,
                       .end = text + len,
                       .line_start = text,
                       .line = 1,
                       .err = err ? err : &own};
    int code = len > SV_YAML_BYTES_MAX ? fail(&p, 1, "too large for a configuration (1 MiB)")
                                       : read_document(&p);
    if (code < 0) {
        sv_yaml_free(y);
        return SV_EFORMAT;
    }
    *out = y;
    return 0;
}

int sv_yaml_open(const char *path, struct sv_yaml **out, struct sv_err *err)
{
    struct sv_input *in;
    struct sv_err why = {0};
    int code = sv_input_open(path, &in, &why);
    if (code < 0)
        return sv_error(err, code, "%s: %s", path, why.msg);
    code = sv_input_need(in, SV_YAML_BYTES_MAX + 1, &why);
    if (code < 0)
        sv_error(err, code, "%s: %s", path, why.msg);
    else
        code = sv_yaml_parse((const char *)in->data, in->len, path, out, err);
    sv_input_close(in);
    return code;
}

void sv_yaml_free(struct sv_yaml *y)
{
    if (!y)
        return;
    sv_arena_fini(&y->arena);
    free(y->name);
    free(y);
}

const struct sv_yaml_node *sv_yaml_root(const struct sv_yaml *y)
{
    return y->root;
}

const char *sv_yaml_name(const struct sv_yaml *y)
{
    return y->name;
}

const struct sv_yaml_node *sv_yaml_find(const struct sv_yaml_node *map, const char *key)
{
    if (!map || map->kind != SV_YAML_MAP)
        return NULL;
    for (const struct sv_yaml_node *m = map->first; m; m = m->next)
        if (strcmp(m->key, key) == 0)
            return m;
    return NULL;
}
