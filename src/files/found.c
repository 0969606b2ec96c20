/* Finding files: see found.h. Used by merge and import. */
#include "files/found.h"

#include "cli/console.h"
#include "core/base/mem.h"
#include "files/open.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void sv_files_add(struct sv_files *f, const char *path, bool was_found)
{
    if (f->n == SV_FILES_MAX) {
        f->too_many++;
        return;
    }
    SV_APPEND(f->items, f->n, f->cap) =
        (struct sv_found){.path = sv_strndup(path, strlen(path)), .was_found = was_found};
}

void sv_files_free(struct sv_files *f)
{
    for (size_t i = 0; i < f->n; i++)
        free(f->items[i].path);
    free(f->items);
    for (size_t i = 0; i < f->n_stores; i++)
        close(f->stores[i]);
    free(f->stores);
}

int sv_found_open(const struct sv_found *file, struct sv_input **in, struct sv_err *err)
{
    if (!file->is_member)
        return sv_input_open(file->path, in, err);
    sv_input_open_part(file->fd, &file->part, file->path, in);
    return 0;
}

bool sv_is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static char **read_names(const char *path, size_t *n, struct sv_err *err)
{
    DIR *dir = opendir(path);
    char **names = NULL;
    size_t cap = 0;
    *n = 0;
    if (!dir) {
        sv_err_sys(err, "%s", path);
        return NULL;
    }
    for (const struct dirent *e; (e = readdir(dir));) { /* all: what is too much is counted later */
        if (e->d_name[0] == '.')
            continue;
        names = sv_grow(names, &cap, *n + 1, sizeof *names);
        names[(*n)++] = sv_strndup(e->d_name, strlen(e->d_name));
    }
    (void)closedir(dir);
    if (*n)
        qsort(names, *n, sizeof *names, compare_names);
    return names;
}

static int walk_folder(struct sv_files *f, const char *path, int depth, struct sv_err *err)
{
    size_t n = 0, len = strlen(path);
    while (len > 1 && path[len - 1] == '/')
        len--;
    char **names = read_names(path, &n, err);
    int code = !names && err->code ? (err->code = SV_EINPUT) : 0;
    for (size_t i = 0; names && i < n; i++) {
        size_t size = len + strlen(names[i]) + 2;
        char *child = sv_alloc(size);
        snprintf(child, size, "%.*s/%s", (int)len, path, names[i]);
        if (code >= 0)
            code = sv_files_walk(f, child, depth + 1, err);
        free(child);
        free(names[i]);
    }
    free(names);
    return code;
}

int sv_files_walk(struct sv_files *f, const char *path, int depth, struct sv_err *err)
{
    struct stat st;
    if ((depth ? lstat : stat)(path, &st) != 0) {
        sv_err_sys(err, "%s", path);
        return err->code = SV_EINPUT;
    }
    if (!S_ISDIR(st.st_mode)) {
        if (depth > 0 && f->output && sv_is_same_file(path, f->output))
            sv_console_note("%s: skipped, it is the output", path);
        else if (depth == 0 || S_ISREG(st.st_mode))
            sv_files_add(f, path, depth > 0);
        return 0;
    }
    if (depth == SV_FOLDERS_MAX) {
        f->too_deep++;
        return 0;
    }
    return walk_folder(f, path, depth, err);
}
