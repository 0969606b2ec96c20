/* The files of the page, which are part of the program. */
#pragma once

#include <stddef.h>

struct sv_page_file {
    const char *path, *type; /* "/app.js"; of HTTP */
    const unsigned char *bytes, *end;
};

/* "/" is index.html; NULL: there is no such file. */
const struct sv_page_file *sv_page_file(const char *path);

extern const struct sv_page_file
    sv_page_files[]; /* made by tools/cmake/page.cmake; ends with a zeroed one */
