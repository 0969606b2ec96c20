/* Arbitrary bytes as configurations: what is accepted is within the limits, and reading it by a
 * table ends. */
#include "cli/yaml.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Bounded by the parser's own limit of depth. */
static size_t walk(const struct sv_yaml_node *node, int depth) // NOLINT(misc-no-recursion)
{
    size_t n = 0, all = 1;
    assert(depth <= SV_YAML_DEPTH_MAX + 1 && node->text && node->line > 0);
    for (const struct sv_yaml_node *m = node->first; m; m = m->next, n++) {
        assert((node->kind == SV_YAML_MAP) == (m->key != NULL));
        assert(!m->key || sv_yaml_find(node, m->key) == m);
        all += walk(m, depth + 1);
    }
    assert(n == node->n);
    return all;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct values {
        bool b;
        int64_t i;
        double d;
        const char *t;
        struct sv_yaml_texts l;
        struct part {
            int64_t i;
        } p;
        const struct sv_yaml_node *any;
    } v = {0};
    static const struct sv_yaml_field part[] = {
        {"i", SV_YAML_INT, -5, 5, "", offsetof(struct part, i), NULL, NULL, false}, {0}};
    static const struct sv_yaml_field fields[] = {
        {"b", SV_YAML_BOOL, 0, 0, "", offsetof(struct values, b), NULL, NULL, false},
        {"i", SV_YAML_INT, 0, 100, "", offsetof(struct values, i), NULL, NULL, false},
        {"d", SV_YAML_NUMBER, 0, 1, "", offsetof(struct values, d), NULL, NULL, false},
        {"t", SV_YAML_TEXT, 0, 0, "", offsetof(struct values, t), "x y", NULL, false},
        {"l", SV_YAML_TEXTS, 0, 0, "", offsetof(struct values, l), NULL, NULL, false},
        {"p", SV_YAML_PART, 0, 0, "", offsetof(struct values, p), NULL, part, false},
        {"a", SV_YAML_ANY, 0, 0, "", offsetof(struct values, any), NULL, NULL, true},
        {0}};
    struct sv_yaml *y;
    struct sv_err err = {0};
    if (sv_yaml_parse((const char *)data, size, "f", &y, &err) < 0) {
        assert(strncmp(err.msg, "f:", 2) == 0);
        return 0;
    }
    assert(walk(sv_yaml_root(y), 0) <= SV_YAML_NODES_MAX);
    (void)sv_yaml_read(y, sv_yaml_root(y), fields, &v, &err);
    sv_yaml_free(y);
    return 0;
}
