/* Texts of native frames: names, demangled, with the functions that were inlined, file and line
 * where they are known. */
#ifndef SV_RECORD_STACKS_NAMES_H
#define SV_RECORD_STACKS_NAMES_H

#include "core/stream/machine.h"
#include "record/stacks/debug_info.h"
#include "record/symbols/symbols.h"

#define SV_BUILD_ID_KEY SV_META_BUILD_ID

enum { SV_NAMES_INLINED = 16 }; /* functions at one address, at most */

struct sv_frame_names;
struct sv_frame_names *sv_names_new(bool has_files);
void sv_names_free(struct sv_frame_names *n);
/* Forgets texts where there are too many: those that were given are not valid any more. */
void sv_names_sweep(struct sv_frame_names *n);

struct sv_named {
    const char *texts[SV_NAMES_INLINED]; /* innermost first */
    uint8_t n;
    bool is_python_loop; /* here the interpreter runs Python's frames */
    bool is_nameless;    /* "[libc.so.6+0x1234]" */
};
const struct sv_named *sv_names_of(struct sv_frame_names *n, const struct sv_code_at *at);

/* A copy that lives as long as the names. */
const char *sv_names_text(struct sv_frame_names *n, const char *text, size_t len);

/* What could not be named, for one line at the end: files without symbols, the first three of
 * them. */
struct sv_names_lack {
    uint64_t frames;
    size_t n_files;
    char first[200];
};
/* Those files, by which names can be found later (stave symbolize). */
struct sv_names_build {
    char file[64]; /* "libc.so.6", as in the texts of its frames */
    char id[2 * SV_BUILD_ID_MAX + 1];
};
size_t sv_names_builds(const struct sv_frame_names *n, const struct sv_names_build **builds);

struct sv_names_lack sv_names_lack(const struct sv_frame_names *n);

#endif
