/* A few parts of a large trace that can be read by themselves, from which the whole can be
 * estimated. */
#pragma once

#include "files/open.h"

#define SV_SAMPLE_PIECES 48
#define SV_SAMPLE_HEAD   ((uint64_t)48 << 20) /* decompressed bytes */

enum sv_sample_kind {
    /* pieces of a recording by Stave, each from one resync point (core/perfetto/stave.h) to the
     * next; the first and the last are among them */
    SV_SAMPLE_RESYNC,
    /* pieces of Chrome JSON, each of whole events; begin and end of the file are among them, but
     * events may be in any order */
    SV_SAMPLE_EVENTS,
    /* the beginning: the caller stops when SV_SAMPLE_HEAD bytes were read and sets `bytes` */
    SV_SAMPLE_HEAD_ONLY
};

struct sv_sample {
    enum sv_sample_kind kind;
    struct sv_piece pieces[SV_SAMPLE_PIECES];
    size_t n;             /* 0: no sample */
    uint64_t bytes, size; /* of the pieces, of the file, as they are stored */
};

/* Opens some pieces of a file that is larger than `above` as one input, or a foreign Perfetto file
 * or a compressed one, which can be read from their beginning only (compressed ones are large from
 * an eighth of it). 1: done, `s` must outlive it; 0: the file is not large, or not one that can be
 * read in part; negative: an error. */
int sv_open_sample(const char *path, uint64_t above, struct sv_sample *s, struct sv_dict *dict,
                   struct sv_opened *o, struct sv_err *err);
