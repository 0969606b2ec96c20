/* --config FILE.yml: the options of `stave record` as keys of a YAML file, for set-ups that are
 * used again.
 *
 * Called by `stave record` before anything else. The table of options is the schema: a new option
 * is a new key by itself. What the command line gave stays; lists are replaced, not joined. */
#include "cli/yaml.h"
#include "record/session/recorder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEYS_MAX = 128 };

struct config {
    struct sv_yaml *y;
    const struct sv_option *table;
    struct sv_record_options values; /* what the file says */
};

static const struct sv_option *option_of(const struct config *c, const char *key)
{
    for (const struct sv_option *o = c->table; o->name; o++)
        if (strcmp(o->name, key) == 0 && strcmp(key, "config") != 0)
            return o;
    return NULL;
}

static int unknown(const struct config *c, const struct sv_yaml_node *member, struct sv_err *err)
{
    const char *names[KEYS_MAX];
    size_t n = 0;
    names[n++] = "command";
    for (const struct sv_option *o = c->table; o->name && n < KEYS_MAX; o++)
        if (strcmp(o->name, "config") != 0)
            names[n++] = o->name;
    return sv_yaml_unknown(c->y, member, names, n, err);
}

/* One value through the parser of the command line; its complaint gets the line. */
static int set_text(struct config *c, const struct sv_option *o, const struct sv_yaml_node *node,
                    struct sv_err *err)
{
    struct sv_err why = {0};
    if (node->kind != SV_YAML_SCALAR)
        return sv_yaml_fail(c->y, node, err, "%s: expected %s", o->name,
                            o->type == SV_OPT_LIST ? "texts"
                            : o->choices           ? "one text, words separated by commas"
                                                   : "one value");
    if (sv_option_set(o, &c->values, node->text, &why) < 0)
        return sv_yaml_fail(c->y, node, err, "%s", why.msg + strspn(why.msg, "-"));
    return 0;
}

static int set_option(struct config *c, const struct sv_option *o, const struct sv_yaml_node *node,
                      struct sv_err *err)
{
    int code = 0;
    if (o->type == SV_OPT_FLAG) {
        if (!sv_yaml_bool(node, (bool *)((char *)&c->values + o->offset)))
            return sv_yaml_fail(c->y, node, err, "%s: expected true or false", o->name);
        return 0;
    }
    if (o->type != SV_OPT_LIST || node->kind != SV_YAML_LIST)
        return set_text(c, o, node, err);
    for (const struct sv_yaml_node *i = node->first; code >= 0 && i; i = i->next)
        code = set_text(c, o, i, err);
    return code;
}

static int set_command(struct config *c, const struct sv_yaml_node *node, struct sv_words *command,
                       struct sv_err *err)
{
    if (node->kind != SV_YAML_LIST || node->n == 0)
        return sv_yaml_fail(c->y, node, err,
                            "command: expected a list of words, such as [python3, train.py]");
    for (const struct sv_yaml_node *i = node->first; i; i = i->next) {
        if (i->kind != SV_YAML_SCALAR)
            return sv_yaml_fail(c->y, i, err, "command: expected a word");
        sv_words_add(command, i->text);
    }
    return 0;
}

static size_t size_of(enum sv_option_type type)
{
    switch (type) {
    case SV_OPT_FLAG: return sizeof(bool);
    case SV_OPT_OUTPUT:
    case SV_OPT_TEXT: return sizeof(char *);
    case SV_OPT_LIST: return sizeof(struct sv_words);
    case SV_OPT_BYTES:
    case SV_OPT_COUNT: return sizeof(uint64_t);
    case SV_OPT_WINDOW: return sizeof(struct sv_interval);
    }
    return 0;
}

/* All that is zero was not given. */
static void take_over(const struct config *c, struct sv_record_options *options)
{
    static const char none[sizeof(struct sv_interval)];
    for (const struct sv_option *o = c->table; o->name; o++) {
        char *to = (char *)options + o->offset;
        const char *from = (const char *)&c->values + o->offset;
        size_t size = size_of(o->type);
        if (memcmp(to, none, size) == 0)
            memcpy(to, from, size);
        else if (o->type == SV_OPT_LIST)
            free(((const struct sv_words *)from)->items);
    }
}

static int read_members(struct config *c, struct sv_words *command, struct sv_err *err)
{
    const struct sv_yaml_node *root = sv_yaml_root(c->y);
    int code = 0;
    if (root->kind != SV_YAML_MAP)
        return sv_yaml_fail(c->y, root, err, "expected keys such as 'duration: 30s'");
    for (const struct sv_yaml_node *m = root->first; code >= 0 && m; m = m->next) {
        const struct sv_option *o = option_of(c, m->key);
        code = strcmp(m->key, "command") == 0 ? set_command(c, m, command, err)
               : o                            ? set_option(c, o, m, err)
                                              : unknown(c, m, err);
    }
    return code;
}

int sv_record_config(const char *path, const struct sv_option *table,
                     struct sv_record_options *options, struct sv_words *command,
                     struct sv_yaml **out, struct sv_err *err)
{
    struct config c = {.table = table};
    struct sv_words words = {0};
    int code = sv_yaml_open(path, &c.y, err);
    if (code == SV_EIO) /* an input like any other */
        code = err->code = SV_EINPUT;
    if (code < 0)
        return code;
    code = read_members(&c, &words, err);
    if (code >= 0 && command->n == 0 && !options->all && options->pids.n == 0 && !options->comm &&
        !options->cgroup) {
        *command = words;
        words = (struct sv_words){0};
    }
    /* The processes to record are one choice: where the command line makes it, the file's is
     * dropped. */
    if (command->n > 0) {
        sv_words_free(&c.values.pids);
        c.values.comm = c.values.cgroup = NULL;
    }
    take_over(&c, options);
    sv_words_free(&words);
    *out = c.y;
    return code;
}
