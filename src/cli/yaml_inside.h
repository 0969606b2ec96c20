/* What the two halves of cli/yaml share: the document. Included by cli/yaml*.c only. */
#pragma once

#include "cli/yaml.h"
#include "core/base/mem.h"

struct sv_yaml {
    struct sv_arena arena;
    char *name;
    struct sv_yaml_node *root;
};
