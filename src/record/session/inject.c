/* --inject: libraries of Stave that the loaders of OpenCL, NVTX, ITT and CUDA, and the dynamic
 * linker (MPI, io, locks), load into the command, and a folder for Python (PyTorch), by one
 * environment variable each.
 *
 * Called by `stave record` before it starts the command; needs neither root nor eBPF. A variable
 * that the user has set is not thrown away: lists get one more entry, single paths are handed on in
 * STAVE_NEXT_<VARIABLE> for the library to load. */
#include "cli/console.h"
#include "core/base/mem.h"
#include "record/session/injections.h"
#include "record/session/use.h"

#include <elf.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct injection {
    const char *name, *library, *variable;
    bool is_list; /* entries separated by ':' */
};

static const struct injection injections[] = {
#define INJECTION(name, variable, is_list) {#name, "libstave-" #name ".so", variable, is_list},
    SV_INJECTIONS(INJECTION)
#undef INJECTION
};
enum { N_INJECTIONS = sizeof injections / sizeof *injections };
static bool is_given[N_INJECTIONS];

static bool is_python(const struct injection *x)
{
    return strcmp(x->variable, "PYTHONPATH") == 0;
}

/* Python finds modules in folders. */
static const char *file_of(const struct injection *x)
{
    return is_python(x) ? "stave-torch" : x->library;
}

/* The first file that matches, as an absolute path without links. */
static bool find_one(const char *pattern, char path[PATH_MAX])
{
    glob_t found;
    bool is_there = glob(pattern, GLOB_NOSORT, NULL, &found) == 0 && found.gl_pathc > 0 &&
                    realpath(found.gl_pathv[0], path) != NULL;
    globfree(&found);
    return is_there;
}

/* Beside the program (where it was built), or in the library folder that belongs to it;
 * STAVE_INJECT_DIR is asked first. */
static bool find_library(const char *library, char path[PATH_MAX])
{
    static const char *const places[] = {"", "/inject", "/../lib/stave", "/../lib64/stave",
                                         "/../lib/*/stave"};
    char self[1024], pattern[1200];
    const char *own = getenv("STAVE_INJECT_DIR");
    snprintf(pattern, sizeof pattern, "%.1000s/%s", own ? own : "", library);
    if (own && *own && find_one(pattern, path))
        return true;
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    self[n > 0 ? n : 0] = 0;
    char *slash = strrchr(self, '/');
    if (slash)
        *slash = 0;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        snprintf(pattern, sizeof pattern, "%s%s/%s", self, places[i], library);
        if (find_one(pattern, path))
            return true;
    }
    return false;
}

/* Is `path` one of the entries already? */
static bool has_entry(const char *list, const char *path)
{
    size_t len = strlen(path);
    for (const char *at = list; at; at = strchr(at, ':')) {
        at += *at == ':';
        if (strncmp(at, path, len) == 0 && (at[len] == ':' || !at[len]))
            return true;
    }
    return false;
}

/* A program that was built with AddressSanitizer refuses to start if a library comes before the
 * sanitizer's own; ours pass every call on to it. */
static void allow_before_asan(void)
{
    static const char word[] = "verify_asan_link_order=0";
    const char *before = getenv("ASAN_OPTIONS");
    char text[1024];
    if (before && strstr(before, "verify_asan_link_order"))
        return;
    if (snprintf(text, sizeof text, "%s%s%s", before ? before : "", before && *before ? ":" : "",
                 word) < (int)sizeof text)
        setenv("ASAN_OPTIONS", text, 1);
}

static void set_variable(const struct injection *x, const char *path)
{
    const char *before = getenv(x->variable);
    if (strcmp(x->variable, "LD_PRELOAD") == 0)
        allow_before_asan();
    if (!before || !*before) {
        setenv(x->variable, path, 1);
        return;
    }
    if (has_entry(before, path))
        return;
    size_t size = strlen(before) + strlen(path) + strlen(x->variable) + 16;
    char *text = sv_alloc(size);
    if (x->is_list) {
        /* Of several sitecustomize.py Python runs the first; ours runs the next one. */
        snprintf(text, size, "%s:%s", is_python(x) ? path : before, is_python(x) ? before : path);
        setenv(x->variable, text, 1);
    } else {
        snprintf(text, size, "STAVE_NEXT_%s", x->variable);
        setenv(text, before, 1);
        sv_console_note("%s was %s; it is now Stave's library, which finds the other one in %s",
                        x->variable, before, text);
        setenv(x->variable, path, 1);
    }
    free(text);
}

/* What the build of a library needs, where it may have been left out. */
static const char *needs_of(const struct injection *x)
{
    return strcmp(x->name, "mpi") == 0 ? ", which needs mpi.h of Open MPI (package libopenmpi-dev)"
           : strcmp(x->name, "opencl") == 0 ? ", which needs the package opencl-headers"
           : strcmp(x->name, "itt") == 0 || strcmp(x->name, "io") == 0 ||
                   strcmp(x->name, "locks") == 0 || is_python(x)
               ? ""
               : ", which needs the headers of a CUDA toolkit";
}

void sv_inject_look(void (*take)(void *ctx, const char *name, const char *path, const char *needs),
                    void *ctx)
{
    char path[PATH_MAX];
    for (size_t i = 0; i < N_INJECTIONS; i++) {
        bool is_there = find_library(file_of(&injections[i]), path);
        take(ctx, injections[i].name, is_there ? path : NULL, needs_of(&injections[i]));
    }
}

bool sv_inject_is_there(const char *name)
{
    char path[PATH_MAX];
    for (size_t i = 0; i < N_INJECTIONS; i++)
        if (strcmp(injections[i].name, name) == 0)
            return find_library(file_of(&injections[i]), path);
    return false;
}

/* LD_PRELOAD separates by blanks and colons, PYTHONPATH by colons. */
static int check_path(const struct injection *x, const char *path, struct sv_err *err)
{
    const char *apart = strcmp(x->variable, "LD_PRELOAD") == 0 ? " :\t\n" : is_python(x) ? ":" : "";
    if (!strpbrk(path, apart))
        return 0;
    return sv_err_set(
        err, SV_EUSAGE, SV_NO_POS,
        "--inject %s: %s cannot hold the path '%s', which has a blank or a colon: set "
        "STAVE_INJECT_DIR to a folder without them that holds the library",
        x->name, x->variable, path);
}

static int inject_one(const char *name, size_t len, struct sv_err *err)
{
    const char *names[N_INJECTIONS];
    char word[64], path[PATH_MAX];
    snprintf(word, sizeof word, "%.*s", (int)(len < 60 ? len : 60), name);
    for (size_t i = 0; i < N_INJECTIONS; i++) {
        const struct injection *x = &injections[i];
        names[i] = x->name;
        if (strcmp(x->name, word) != 0)
            continue;
        if (is_given[i])
            return 0;
        if (!find_library(file_of(x), path))
            return sv_err_set(err, SV_EIO, SV_NO_POS,
                              "--inject %s: %s is neither beside stave nor in its lib/stave: build "
                              "it with 'make'%s, install it with 'make install', or set "
                              "STAVE_INJECT_DIR to its folder",
                              x->name, file_of(x), needs_of(x));
        int code = check_path(x, path, err);
        if (code == 0)
            set_variable(x, path);
        is_given[i] = code == 0;
        return code;
    }
    const char *near = sv_nearest(word, names, N_INJECTIONS);
    return sv_err_set(err, SV_EUSAGE, SV_NO_POS,
                      "--inject: unknown interface '%s'; %s%s%sgive some of " SV_INJECTIONS(
                          SV_INJECTION_COMMA) "separated by commas",
                      word, near ? "did you mean '" : "", near ? near : "", near ? "'? " : "");
}

bool sv_inject_has(const char *name)
{
    for (size_t i = 0; i < N_INJECTIONS; i++)
        if (strcmp(injections[i].name, name) == 0)
            return is_given[i];
    return false;
}

/* ---- programs without a dynamic linker ---- */

static int open_in_path(const char *command)
{
    char path[PATH_MAX];
    const char *at = getenv("PATH");
    if (strchr(command, '/') || !at)
        return open(command, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    while (*at) {
        int n = (int)strcspn(at, ":");
        snprintf(path, sizeof path, "%.*s/%s", n, at, command);
        int fd = access(path, X_OK) == 0 ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
        if (fd >= 0)
            return fd;
        at += n + (at[n] == ':');
    }
    return -1;
}

/* A 64-bit ELF program that names no interpreter. */
static bool is_static(int fd)
{
    Elf64_Ehdr e;
    if (pread(fd, &e, sizeof e, 0) != sizeof e || memcmp(e.e_ident, ELFMAG, SELFMAG) != 0 ||
        e.e_ident[EI_CLASS] != ELFCLASS64 || e.e_phentsize != sizeof(Elf64_Phdr))
        return false;
    for (unsigned i = 0; i < e.e_phnum; i++) {
        Elf64_Phdr p;
        if (pread(fd, &p, sizeof p, (off_t)(e.e_phoff + i * sizeof p)) != sizeof p ||
            p.p_type == PT_INTERP)
            return false;
    }
    return e.e_phnum > 0;
}

void sv_inject_check(const char *command)
{
    struct stat st;
    int fd = sv_inject_has("io") || sv_inject_has("locks") ? open_in_path(command) : -1;
    if (fd < 0)
        return;
    if (is_static(fd))
        sv_console_note("%s is linked statically: --inject io and locks do not see its calls; "
                        "record it as root, with the kernel's probes",
                        command);
    else if (fstat(fd, &st) == 0 && st.st_mode & (S_ISUID | S_ISGID))
        sv_console_note("%s runs as another user: --inject io and locks are not loaded into it",
                        command);
    close(fd);
}

int sv_inject_names(const char *list, struct sv_err *err)
{
    int code = 0;
    for (const char *at = list; code >= 0 && *at;) {
        size_t len = strcspn(at, ",");
        code = inject_one(at, len, err);
        at += len + (at[len] == ',');
    }
    return code;
}

int sv_inject(const struct sv_words *lists, struct sv_err *err)
{
    int code = 0;
    for (size_t i = 0; code >= 0 && i < lists->n; i++)
        code = sv_inject_names(lists->items[i], err);
    return code;
}
