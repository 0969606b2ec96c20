/* Option parsing by table: one parser for every command.
 *
 * Called by main before a command runs. Understands -o FILE, -oFILE, --out FILE, --out=FILE,
 * clustered flags, `--`, and operands anywhere. A lone "-" is an operand. What it cannot understand
 * is named together with the nearest thing it could. */
#include "cli/command.h"
#include "core/base/mem.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static int parse_window(const char *text, struct sv_interval *w)
{
    const char *colon = strchr(text, ':');
    if (!colon || (colon == text && !colon[1]))
        return SV_EUSAGE;
    if (colon > text && sv_parse_moment(text, (size_t)(colon - text), &w->from) < 0)
        return SV_EUSAGE;
    if (colon[1] && sv_parse_moment(colon + 1, strlen(colon + 1), &w->to) < 0)
        return SV_EUSAGE;
    return 0;
}

static int parse_value(const struct sv_option *o, const char *text, void *value)
{
    switch (o->type) {
    case SV_OPT_FLAG: *(bool *)value = true; return 0;
    case SV_OPT_OUTPUT:
    case SV_OPT_TEXT: *(const char **)value = text; return *text ? 0 : SV_EUSAGE;
    case SV_OPT_LIST: sv_words_add(value, text); return *text ? 0 : SV_EUSAGE;
    case SV_OPT_BYTES: return sv_parse_bytes(text, value);
    case SV_OPT_COUNT: return sv_parse_count(text, value);
    case SV_OPT_WINDOW: return parse_window(text, value);
    }
    return SV_EUSAGE;
}

static const char *const expected[] = {
    [SV_OPT_TEXT] = "some text",
    [SV_OPT_OUTPUT] = "a file",
    [SV_OPT_LIST] = "some text",
    [SV_OPT_BYTES] = "a size such as 512M or 2G",
    [SV_OPT_COUNT] = "a whole number",
    [SV_OPT_WINDOW] = "FROM:TO, for example 1.5s:2s, 20ms: or :@123456789ns",
};

static bool is_end(const struct sv_option *o)
{
    return !o->name;
}

/* The option and where its value lives: the command's own options first, then those of every
 * command. */
struct match {
    const struct sv_option *option;
    void *value;
    bool is_common;
};

static struct match find_option(const struct sv_command *c, void *options, const char *name,
                                size_t len, char letter)
{
    struct {
        const struct sv_option *table;
        char *values;
    } sets[] = {{c->options, options}, {sv_common_options, (char *)&sv_common}};
    for (size_t s = 0; s < 2; s++)
        for (const struct sv_option *o = sets[s].table; o && !is_end(o); o++)
            if (letter ? o->letter == letter
                       : strlen(o->name) == len && memcmp(o->name, name, len) == 0)
                return (struct match){o, sets[s].values + o->offset, s == 1};
    return (struct match){0};
}

static int unknown_option(const struct sv_command *c, const char *given, size_t len,
                          struct sv_err *err)
{
    const char *names[128];
    size_t n = 0;
    const struct sv_option *tables[] = {c->options, sv_common_options};
    for (size_t s = 0; s < 2; s++)
        for (const struct sv_option *o = tables[s]; o && !is_end(o) && n < 128; o++)
            names[n++] = o->name;
    char word[64] = "";
    if (len < sizeof word)
        memcpy(word, given, len);
    const char *near = sv_nearest(word, names, n);
    return near ? sv_error(err, SV_EUSAGE, "unknown option '--%.*s'; did you mean '--%s'?",
                           (int)len, given, near)
                : sv_error(err, SV_EUSAGE, "unknown option '--%.*s'; 'stave%c%s --help' lists them",
                           (int)len, given, c->is_program ? '-' : ' ', c->name);
}

int sv_refuse_url(const char *option, const char *text, const char *schemes, struct sv_err *err)
{
    size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+.-");
    if (n == 0 || !isalpha((unsigned char)*text) || strncmp(text + n, "://", 3) != 0 ||
        (schemes && sv_word_among(text, n, schemes)))
        return 0;
    return sv_error(err, SV_EUSAGE,
                    "--%s: %.*s:// is a URL, and this writes %s%s; write a file and copy it there",
                    option, (int)(n < 32 ? n : 32), text,
                    schemes ? "only to files and to URLs of: " : "only files",
                    schemes ? schemes : "");
}

static int set_value(const struct match *m, const char *text, struct sv_err *err)
{
    int code = parse_value(m->option, text, m->value);
    if (code < 0 && !*text)
        return sv_error(err, SV_EUSAGE, "--%s: the value is empty", m->option->name);
    if (m->option->type == SV_OPT_OUTPUT && sv_refuse_url(m->option->name, text, NULL, err) < 0)
        return SV_EUSAGE;
    if (code < 0)
        return sv_error(err, SV_EUSAGE, "--%s: '%s' is not %s", m->option->name, text,
                        expected[m->option->type]);
    if (m->is_common && m->option->choices &&
        !sv_word_among(text, strlen(text), m->option->choices))
        return sv_error(err, SV_EUSAGE, "--%s: '%s' is none of: %s", m->option->name, text,
                        m->option->choices);
    if (!m->is_common)
        sv_words_add(&sv_common.given, m->option->name);
    return 0;
}

int sv_option_set(const struct sv_option *o, void *options, const char *text, struct sv_err *err)
{
    return set_value(&(struct match){o, (char *)options + o->offset, false}, text, err);
}

/* ---- options beside each other ---- */

bool sv_word_among(const char *word, size_t len, const char *list)
{
    for (const char *p = list; len && *p;) {
        size_t n = strcspn(p, " ");
        if (n == len && strncmp(p, word, n) == 0)
            return true;
        p += n + strspn(p + n, " ");
    }
    return false;
}

bool sv_option_is_given(const char *name)
{
    for (size_t i = 0; i < sv_common.given.n; i++)
        if (strcmp(sv_common.given.items[i], name) == 0)
            return true;
    return false;
}

int sv_options_only(const char *what, const char *allowed, struct sv_err *err)
{
    for (size_t i = 0; i < sv_common.given.n; i++) {
        const char *name = sv_common.given.items[i];
        if (!sv_word_among(name, strlen(name), allowed))
            return sv_error(err, SV_EUSAGE, "%s has no option --%s", what, name);
    }
    return 0;
}

int sv_options_need(const char *option, const char *other, struct sv_err *err)
{
    if (sv_option_is_given(option) && !sv_option_is_given(other))
        return sv_error(err, SV_EUSAGE, "--%s needs --%s", option, other);
    return 0;
}

int sv_options_either(const char *option, const char *other, struct sv_err *err)
{
    if (sv_option_is_given(option) && sv_option_is_given(other))
        return sv_error(err, SV_EUSAGE, "--%s or --%s, not both", option, other);
    return 0;
}

/* --name, --name=value, --name value. Returns how many words it used, or negative. */
static int parse_long(const struct sv_command *c, int left, char **argv, void *options,
                      struct sv_err *err)
{
    const char *name = argv[0] + 2, *equals = strchr(name, '=');
    size_t len = equals ? (size_t)(equals - name) : strlen(name);
    struct match m = find_option(c, options, name, len, 0);
    if (!m.option)
        return unknown_option(c, name, len, err);
    bool takes_value = m.option->type != SV_OPT_FLAG;
    if (equals && !takes_value)
        return sv_error(err, SV_EUSAGE, "--%s takes no value", m.option->name);
    if (takes_value && !equals && left < 2)
        return sv_error(err, SV_EUSAGE, "--%s needs %s", m.option->name, m.option->arg);
    const char *value = equals ? equals + 1 : takes_value ? argv[1] : "";
    int code = set_value(&m, value, err);
    return code < 0 ? code : takes_value && !equals ? 2 : 1;
}

/* -v, -vq, -o FILE, -oFILE. Returns how many words it used, or negative. */
static int parse_short(const struct sv_command *c, int left, char **argv, void *options,
                       struct sv_err *err)
{
    for (const char *p = argv[0] + 1; *p; p++) {
        struct match m = find_option(c, options, "", 0, *p);
        if (!m.option)
            return sv_error(err, SV_EUSAGE, "unknown option '-%c'; 'stave%c%s --help' lists them",
                            *p, c->is_program ? '-' : ' ', c->name);
        bool takes_value = m.option->type != SV_OPT_FLAG;
        if (takes_value && !p[1] && left < 2)
            return sv_error(err, SV_EUSAGE, "-%c needs %s", *p, m.option->arg);
        int code = set_value(&m, !takes_value ? "" : p[1] ? p + 1 : argv[1], err);
        if (code < 0)
            return code;
        if (takes_value)
            return p[1] ? 1 : 2;
    }
    return 1;
}

/* stave record ls -la: whose option it is cannot be known. The words as they should have been, as
 * far as they fit. */
static int ask_for_dashes(const struct sv_command *c, const struct sv_words *operands, int argc,
                          char **argv, struct sv_err *err)
{
    char line[200];
    size_t n = 0;
    for (size_t i = 0; i < operands->n && n < sizeof line; i++)
        n += (size_t)snprintf(line + n, sizeof line - n, " %s", operands->items[i]);
    for (int i = 0; i < argc && n < sizeof line; i++)
        n += (size_t)snprintf(line + n, sizeof line - n, " %s", argv[i]);
    return sv_error(err, SV_EUSAGE, "put -- before the command: stave %s --%s%s", c->name, line,
                    n < sizeof line ? "" : "…");
}

/* The command is not run, which would free its lists. */
static void free_lists(const struct sv_command *c, void *options)
{
    for (const struct sv_option *o = c->options; o && !is_end(o); o++)
        if (o->type == SV_OPT_LIST)
            sv_words_free((struct sv_words *)(void *)((char *)options + o->offset));
}

int sv_command_parse(const struct sv_command *c, int argc, char **argv, void *options,
                     struct sv_words *operands, struct sv_err *err)
{
    for (int i = 0; i < argc;) {
        const char *word = argv[i];
        if (strcmp(word, "--") == 0) {
            for (i++; i < argc; i++)
                sv_words_add(operands, argv[i]);
        } else if (word[0] != '-' || !word[1]) {
            sv_words_add(operands, word);
            i++;
        } else if (c->takes_command && operands->n > 0) {
            return ask_for_dashes(c, operands, argc - i, argv + i, err);
        } else {
            int used = word[1] == '-' ? parse_long(c, argc - i, argv + i, options, err)
                                      : parse_short(c, argc - i, argv + i, options, err);
            if (used < 0) {
                free_lists(c, options);
                return used;
            }
            i += used;
        }
    }
    return 0;
}
