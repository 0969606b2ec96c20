/* One call as strace prints it, taken apart: NAME(ARGUMENTS) = RESULT ERRNO (text) <duration>. */
#pragma once

#include "formats/lines.h"

enum sv_strace_kind {
    SV_STRACE_OTHER,
    SV_STRACE_TRANSFER, /* what it returns are bytes */
    SV_STRACE_OPEN,     /* … a descriptor */
    SV_STRACE_DUP,
    SV_STRACE_CLOSE,
    SV_STRACE_CLONE
};

struct sv_strace_call {
    struct sv_text name;
    enum sv_strace_kind kind;
    bool has_ret, has_duration, has_fd, has_dirfd, has_requested, has_length, has_offset;
    bool has_fd2;                /* a copy: where to */
    bool has_address, is_thread; /* is_thread: a clone with CLONE_THREAD */
    int64_t ret, dur_ns;         /* ret: −errno on failure */
    int64_t fd, fd2, dirfd, requested, length, offset;
    uint64_t address;
    struct sv_text path, path2, fd_path; /* fd_path: of strace -y */
};

/* Texts live in the batch or in `text`. False: it is not a call. */
bool sv_strace_parse(struct sv_text text, struct sv_batch *b, struct sv_strace_call *out);
