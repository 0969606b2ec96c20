/* Finds the files of the page. Called for every address that is not below /api. */
#include "view/page.h"

#include <string.h>

const struct sv_page_file *sv_page_file(const char *path)
{
    if (strcmp(path, "/") == 0)
        path = "/index.html";
    for (const struct sv_page_file *f = sv_page_files; f->path; f++)
        if (strcmp(path, f->path) == 0)
            return f;
    return NULL;
}
