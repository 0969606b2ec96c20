/* Debug information of a file: which functions an address is in, with those that were inlined, and
 * in which line. By elfutils' libdw. */
#ifndef SV_RECORD_STACKS_DEBUG_INFO_H
#define SV_RECORD_STACKS_DEBUG_INFO_H

#include "record/symbols/symbols.h"

/* The build id of an ELF file as hexadecimal digits. False: it has none, or libdw is not here. */
enum { SV_BUILD_ID_MAX = 64 };
bool sv_debug_info_build_id(int fd, char hex[2 * SV_BUILD_ID_MAX + 1]);

struct sv_debug_frame {
    const char *name; /* may be mangled; NULL: not known */
    const char *file; /* without its folder; NULL: not known */
    int line;         /* 0: not known */
};

/* In the file itself or in one for debuggers that has the same build id (/usr/lib/debug). NULL:
 * there is none. Its symbols take at most *left bytes, which become fewer. */
struct sv_debug_info *sv_debug_info_new(const struct sv_code_file *f, size_t *left);
void sv_debug_info_free(struct sv_debug_info *d);

/* Innermost first; the last one is the function that is really there. The texts are valid until
 * sv_debug_info_free(). */
size_t sv_debug_info_frames(struct sv_debug_info *d, uint64_t address, struct sv_debug_frame *out,
                            size_t max);
/* What the symbols of the file for debuggers say: it has those of functions in assembler, too,
 * which have no other debug information. NULL: not known. */
const char *sv_debug_info_symbol(const struct sv_debug_info *d, uint64_t address);

#endif
