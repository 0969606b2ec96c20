/* Files of relations: see relations.h. They are small; a larger one is none. */
#include "files/relations.h"

#include "core/base/mem.h"
#include "files/open.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILE_MAX = 1 << 20 };

static int cannot_read(const char *path, struct sv_err *err)
{
    return sv_error(err, SV_EINPUT, "--relation: %s: %s", path, strerror(errno));
}

static int load_one(const char *path, struct sv_relation *r, struct sv_err *err)
{
    FILE *f = fopen(path, "rbe");
    if (!f)
        return cannot_read(path, err);
    char *text = sv_alloc(FILE_MAX + 1);
    size_t n = fread(text, 1, FILE_MAX + 1, f);
    int code = 0;
    if (ferror(f)) {
        code = cannot_read(path, err);
    } else if (n > FILE_MAX) {
        code = sv_error(err, SV_EFORMAT, "--relation: more than 1 MiB is no relation");
    } else {
        code = sv_relation_parse(r, text, n, err);
    }
    fclose(f);
    free(text);
    if (code == SV_EFORMAT)
        sv_err_in_file(err, path);
    return code;
}

int sv_relations_load(const struct sv_words *paths, struct sv_relation **out, size_t *n,
                      struct sv_err *err)
{
    *n = 0;
    *out = sv_alloc((paths->n + 1) * sizeof **out);
    for (size_t i = 0; i < paths->n; i++) {
        int code = load_one(paths->items[i], &(*out)[*n], err);
        if (code < 0)
            return code;
        ++*n;
    }
    return 0;
}

void sv_relations_free(struct sv_relation *relations, size_t n)
{
    for (size_t i = 0; i < n; i++)
        sv_relation_fini(&relations[i]);
    free(relations);
}
