/* Archives of the tar kind: ustar, pax and GNU headers, read from an input one member after the
 * other.
 *
 *     struct sv_tar tar = sv_tar_at(in, UINT64_MAX);
 *     while ((code = sv_tar_next(&tar, &member, err)) > 0) { … member.bytes bytes of in are its
 *     content … }
 *     sv_tar_fini(&tar);
 *
 * Nothing in an archive is trusted. Names are given as they are, and sizes as they are declared:
 * the content may end before. */
#pragma once

#include "core/base/buf.h"
#include "core/files/input.h"

#define SV_TAR_BLOCK 512

enum sv_tar_kind {
    SV_TAR_FILE,
    SV_TAR_FOLDER, /* or another entry without content for anybody, such as a label */
    SV_TAR_LINK,
    SV_TAR_DEVICE,
    SV_TAR_SPARSE,
    SV_TAR_OTHER
};

struct sv_tar_member {
    const char *name; /* valid until the next call */
    enum sv_tar_kind kind;
    uint64_t bytes; /* of content, which is next in the input; the caller takes all, some or none */
};

struct sv_tar {
    struct sv_input *in;
    uint64_t next;  /* where the next header is */
    uint64_t limit; /* no member may end after it */
    struct sv_buf name, extra;
};

/* Does a file begin like an archive? */
bool sv_tar_is(const uint8_t *head, size_t n);

struct sv_tar sv_tar_at(struct sv_input *in, uint64_t limit);
/* 1: a member; 0: the end. SV_EFORMAT: the archive is damaged or breaks off there, SV_ELIMIT: it is
 * longer than the limit; nothing can be read after these. Other errors are those of the input. */
int sv_tar_next(struct sv_tar *t, struct sv_tar_member *m, struct sv_err *err);
void sv_tar_fini(struct sv_tar *t);
