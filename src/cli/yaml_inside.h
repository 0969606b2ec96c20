/* What the two halves of cli/yaml share: the document. Included by cli/yaml*.c only. */
#pragma once

#include "cli/yaml.h"
#include "core/base/mem.h"

enum { SV_YAML_OTHERS_MAX = 50 };

struct sv_yaml {
    struct sv_arena arena;
    char *name;
    struct sv_yaml_node *root;
    const char *others[SV_YAML_OTHERS_MAX];
    size_t n_others;
};
