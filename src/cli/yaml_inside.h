/* What the two halves of base/yaml share: the document. Included by base/yaml*.c only. */
#ifndef SV_BASE_YAML_INSIDE_H
#define SV_BASE_YAML_INSIDE_H

#include "base/mem.h"
#include "base/yaml.h"

struct sv_yaml {
    struct sv_arena arena;
    char *name;
    struct sv_yaml_node *root;
};

#endif
