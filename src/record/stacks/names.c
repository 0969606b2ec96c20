/* Each address of a file is named once, for all processes. Called by stacks.c for each native
 * frame. */
#include "record/stacks/names.h"
#include "core/base/map.h"
#include "core/base/mem.h"
#include "record/stacks/debug_info.h"
#include "store/demangle.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TEXT_MAX = 512, ADDRESSES_MAX = 1 << 18, FILES_LACKING = 64, FILES_SHOWN = 3 };
#define TEXTS_BYTES   ((size_t)128 << 20)
#define SYMBOLS_BYTES ((size_t)256 << 20) /* of all files for debuggers */

struct sv_frame_names {
    bool has_files;
    struct sv_arena texts;
    size_t bytes;
    struct sv_map by_text;    /* hash → the text */
    struct sv_map by_address; /* file and address → index + 1 */
    struct sv_named *all;
    size_t n, cap;
    size_t symbols_left; /* bytes */
    uint64_t n_nameless;
    uint32_t lacking[FILES_LACKING]; /* numbers of files without names */
    size_t n_lacking;
    struct sv_names_build *builds; /* of those that have an id */
    size_t n_builds, cap_builds;
    char first[200];
};

struct sv_frame_names *sv_names_new(bool has_files)
{
    struct sv_frame_names *n = sv_alloc(sizeof *n);
    n->has_files = has_files;
    n->symbols_left = SYMBOLS_BYTES;
    sv_arena_init(&n->texts, 1u << 16);
    return n;
}

void sv_names_free(struct sv_frame_names *n)
{
    if (!n)
        return;
    sv_arena_fini(&n->texts);
    sv_map_fini(&n->by_text);
    sv_map_fini(&n->by_address);
    free(n->all);
    free(n->builds);
    free(n);
}

void sv_names_sweep(struct sv_frame_names *n)
{
    if (n->bytes < TEXTS_BYTES && n->n < ADDRESSES_MAX)
        return;
    sv_arena_reset(&n->texts);
    sv_map_clear(&n->by_text);
    sv_map_clear(&n->by_address);
    n->n = n->bytes = 0;
}

const char *sv_names_text(struct sv_frame_names *n, const char *text, size_t len)
{
    bool is_new;
    uint64_t hash = sv_hash_bytes(text, len, 0);
    uint64_t *at = sv_map_add(&n->by_text, hash, &is_new);
    const char *known = (const char *)(uintptr_t)*at;
    if (!is_new && strlen(known) == len && memcmp(known, text, len) == 0)
        return known;
    const char *copy = sv_arena_copy(&n->texts, text, len);
    n->bytes += len + 1;
    if (is_new)
        *at = (uint64_t)(uintptr_t)copy;
    return copy;
}

static const char *put(struct sv_frame_names *n, const char *name, const char *file, int line)
{
    char text[TEXT_MAX + 128];
    char *readable = sv_demangle(name);
    const char *shown = readable ? readable : name;
    int len;
    if (!n->has_files || !file)
        len = snprintf(text, sizeof text, "%.*s", TEXT_MAX, shown);
    else if (line > 0)
        len = snprintf(text, sizeof text, "%.*s (%.100s:%d)", TEXT_MAX, shown, file, line);
    else
        len = snprintf(text, sizeof text, "%.*s (%.100s)", TEXT_MAX, shown, file);
    free(readable);
    return sv_names_text(n, text, (size_t)len);
}

/* Two files of one name cannot be distinguished later: neither is noted. */
static void note_build(struct sv_frame_names *n, const struct sv_code_file *f)
{
    struct sv_names_build b;
    size_t len = strlen(f->nameless);
    int fd = f->fd >= 0 ? f->fd : open(f->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    bool has_id = fd >= 0 && len > 2 && len - 2 < sizeof b.file && sv_debug_info_build_id(fd, b.id);
    if (fd >= 0 && fd != f->fd)
        close(fd);
    if (!has_id)
        return;
    snprintf(b.file, sizeof b.file, "%.*s", (int)len - 2, f->nameless + 1);
    for (size_t i = 0; i < n->n_builds; i++)
        if (strcmp(n->builds[i].file, b.file) == 0) {
            if (strcmp(n->builds[i].id, b.id) != 0)
                n->builds[i].id[0] = 0;
            return;
        }
    n->builds = sv_grow(n->builds, &n->cap_builds, n->n_builds + 1, sizeof *n->builds);
    n->builds[n->n_builds++] = b;
}

size_t sv_names_builds(const struct sv_frame_names *n, const struct sv_names_build **builds)
{
    *builds = n->builds;
    return n->n_builds;
}

static void note_lack(struct sv_frame_names *n, const struct sv_code_file *f)
{
    n->n_nameless++;
    for (size_t i = 0; i < n->n_lacking; i++)
        if (n->lacking[i] == f->number)
            return;
    size_t len = strlen(n->first);
    if (n->n_lacking < FILES_SHOWN)
        snprintf(n->first + len, sizeof n->first - len, "%s%.60s", len ? " " : "", f->nameless);
    if (n->n_lacking < FILES_LACKING) {
        n->lacking[n->n_lacking++] = f->number;
        note_build(n, f);
    }
}

/* Never a name that may be another function's: the file, and where in it the function begins. */
static const char *put_nameless(struct sv_frame_names *n, const struct sv_code_at *at)
{
    char text[400];
    const char *file = at->file->nameless;
    size_t len = strlen(file);
    if (at->file->path[0] != '/' || len < 2)
        return sv_names_text(n, file, len);
    uint64_t where = at->address == UINT64_MAX
                         ? at->offset
                         : sv_elf_begin(&at->file->elf, at->file->fd, at->address);
    int size = snprintf(text, sizeof text, "%.*s+0x%" PRIx64 "]", (int)len - 1, file, where);
    return sv_names_text(n, text, (size_t)size);
}

static void make(struct sv_frame_names *n, const struct sv_code_at *at, struct sv_named *out)
{
    struct sv_code_file *f = at->file;
    struct sv_debug_frame frames[SV_NAMES_INLINED];
    size_t count = 0;
    if (!f->has_debug) {
        f->has_debug = true;
        f->debug = sv_debug_info_new(f, &n->symbols_left);
    }
    const struct sv_elf_symbol *s = sv_elf_symbol(&f->elf, at->address);
    const char *symbol = s ? f->elf.names + s->name : NULL;
    if (f->debug && at->address != UINT64_MAX) {
        count = sv_debug_info_frames(f->debug, at->address, frames, SV_NAMES_INLINED);
        symbol = symbol ? symbol : sv_debug_info_symbol(f->debug, at->address);
    }
    *out = (struct sv_named){0};
    for (size_t i = 0; i < count; i++) {
        bool is_last = i + 1 == count;
        const char *name = frames[i].name ? frames[i].name : is_last ? symbol : "[inlined]";
        if (name && *name)
            out->texts[out->n++] = put(n, name, frames[i].file, frames[i].line);
    }
    if (out->n == 0 && symbol && *symbol)
        out->texts[out->n++] = put(n, symbol, NULL, 0);
    const char *real = symbol ? symbol : count ? frames[count - 1].name : NULL;
    out->is_python_loop = real && strncmp(real, "_PyEval_EvalFrameDefault", 24) == 0;
    out->is_nameless = out->n == 0;
    if (out->n == 0)
        out->texts[out->n++] = put_nameless(n, at);
}

const struct sv_named *sv_names_of(struct sv_frame_names *n, const struct sv_code_at *at)
{
    bool is_new;
    uint64_t key = sv_mix64(at->offset) ^ (uint64_t)at->file->number << 40 ^ at->file->number;
    uint64_t *found = sv_map_add(&n->by_address, key, &is_new);
    if (is_new) {
        n->all = sv_grow(n->all, &n->cap, n->n + 1, sizeof *n->all);
        make(n, at, &n->all[n->n]);
        *found = ++n->n;
    }
    const struct sv_named *named = &n->all[*found - 1];
    if (named->is_nameless && at->file->path[0] == '/')
        note_lack(n, at->file);
    return named;
}

struct sv_names_lack sv_names_lack(const struct sv_frame_names *n)
{
    struct sv_names_lack lack = {.frames = n->n_nameless, .n_files = n->n_lacking};
    memcpy(lack.first, n->first, sizeof lack.first);
    return lack;
}
