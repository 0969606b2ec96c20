/* FxT, StarPU's own recorder: is it there, and where is its file? Called by the engine and the
 * program.
 *
 * STARPU_FXT_TRACE=1 asks for it, in the environment or under starpu_env. A StarPU that was built
 * without FxT ignores that without a word; so the server says it. The file is written when StarPU
 * ends, to a folder that STARPU_FXT_PREFIX names: by default the one of the batching trace. */
#include "server/run/engine.h"

#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define PREFIX "STARPU_FXT_PREFIX"

/* trace_output may be a folder or a file in it. */
static void set_prefix(const char *output)
{
    char folder[PATH_MAX];
    struct stat st;
    if (!output || getenv(PREFIX))
        return;
    snprintf(folder, sizeof folder, "%s", output);
    size_t n = strlen(folder);
    if (!(stat(folder, &st) == 0 && S_ISDIR(st.st_mode)) && n && folder[n - 1] != '/') {
        char *slash = strrchr(folder, '/');
        snprintf(slash ? slash + 1 : folder, 2, "%s", slash ? "" : ".");
    }
    setenv(PREFIX, folder, 1);
}

void sv_fxt_prepare(struct sv_fxt *f, const char *folder)
{
    const char *wanted = getenv("STARPU_FXT_TRACE");
    *f = (struct sv_fxt){.is_wanted = wanted && strcmp(wanted, "0") != 0 && *wanted,
                         .is_there = dlsym(RTLD_DEFAULT, "starpu_fxt_options_init") != NULL,
                         .since_s = time(NULL)};
    if (!f->is_wanted || !f->is_there)
        return;
    set_prefix(folder);
}

/* The newest prof_file_USER_N of this run. */
void sv_fxt_find(struct sv_fxt *f)
{
    const char *folder = getenv(PREFIX);
    int64_t newest = f->since_s - 1;
    if (!f->is_wanted || !f->is_there)
        return;
    folder = folder && *folder ? folder : "/tmp";
    DIR *dir = opendir(folder);
    for (const struct dirent *e; dir && (e = readdir(dir));) {
        char path[PATH_MAX + 256];
        struct stat st;
        bool has_slash = folder[strlen(folder) - 1] == '/';
        snprintf(path, sizeof path, "%s%s%s", folder, has_slash ? "" : "/", e->d_name);
        if (strncmp(e->d_name, "prof_file_", 10) != 0 || lstat(path, &st) != 0 ||
            !S_ISREG(st.st_mode) || st.st_uid != geteuid() || st.st_mtime <= newest)
            continue;
        newest = st.st_mtime;
        snprintf(f->file, sizeof f->file, "%.*s", PATH_MAX - 1, path);
    }
    if (dir)
        closedir(dir);
}
