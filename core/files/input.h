/* Input: a file, a pipe or memory as one sliding window of decompressed bytes.
 *
 * Compression is recognised by content at the first fill (gzip with any number of members, zstd
 * with any number of frames). The window holds at least what sv_input_need() was asked for;
 * consumed bytes disappear from the front, so memory stays bounded by the largest single record.
 *
 *     while (sv_input_need(in, 1, err) > 0) { … in->data, in->len …; sv_input_skip(in, n); }
 *
 * SV_INPUT_PAD bytes past data[len] are always readable (zeros, or bytes that follow later), so
 * that vector code may load past the end without faulting. */
#pragma once

#include "core/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define SV_INPUT_PAD          64
#define SV_INPUT_WINDOW_LIMIT ((size_t)1 << 30)

struct sv_input_impl;
struct sv_report;

struct sv_input {
    const uint8_t *data; /* the window */
    size_t len;
    uint64_t pos;      /* position of data[0] in the decompressed stream */
    bool eof;          /* nothing follows the window */
    bool truncated;    /* the compressed stream broke off or is damaged; what came before is good */
    bool has_trailing; /* other bytes follow the compressed stream; they are ignored */
    char *name;        /* for messages: the path, or "(stdin)" */
    const char *compression; /* "gzip", "zstd" or NULL; known after the first fill */
    uint64_t size_bytes;     /* of the file as stored, 0 when unknown (pipes) */
    size_t window_limit;     /* SV_INPUT_WINDOW_LIMIT; may be changed before the first fill */
    struct sv_input_impl *impl;
};

/* path "-" is standard input. */
int sv_input_open(const char *path, struct sv_input **out, struct sv_err *err);
int sv_input_open_memory(const void *bytes, size_t len, const char *name, struct sv_input **out,
                         struct sv_err *err); /* bytes are borrowed, and decompressed alike */
/* Parts of a file, one after the other, never decompressed. Descriptor and pieces are borrowed;
 * where the file ends before a piece does, the input ends. */
struct sv_piece {
    uint64_t at, bytes;
};
void sv_input_open_pieces(int fd, const struct sv_piece *pieces, size_t n, const char *name,
                          struct sv_input **out);
/* One part of a file as if it were a file: decompressed like one. */
void sv_input_open_part(int fd, const struct sv_piece *part, const char *name,
                        struct sv_input **out);
/* The same, and takes the descriptor. */
void sv_input_take_part(int fd, const struct sv_piece *part, const char *name,
                        struct sv_input **out);
void sv_input_close(struct sv_input *in);

/* Makes the window at least `need` bytes long unless the input ends before. Returns 1 when it is, 0
 * when the input ended with fewer (the window holds what is left), negative on an error or when
 * need exceeds the window limit (SV_ENOMEM). Pointers into the window are invalid afterwards. It
 * reads ahead in large blocks, so calling it per record is cheap: the inline test answers most
 * calls. Memory grows with the bytes that arrive, not with `need`. */
int sv_input_fill(struct sv_input *in, size_t need, struct sv_err *err);

static inline int sv_input_need(struct sv_input *in, size_t need, struct sv_err *err)
{
    return __builtin_expect(in->len >= need, 1) ? 1 : sv_input_fill(in, need, err);
}

/* All of it in memory, for readers that go back and forth. SV_ELIMIT with `too_large` where it is
 * more than the window may hold. */
int sv_input_need_all(struct sv_input *in, const char *too_large, struct sv_err *err);

static inline void sv_input_skip(struct sv_input *in, size_t n)
{
    in->data += n;
    in->len -= n;
    in->pos += n;
}

/* Bytes that left an input in the memory that they were read into, so that they can be used while
 * the input goes on. Zeroed: none. */
struct sv_input_block {
    const uint8_t *data; /* with SV_INPUT_PAD readable bytes after it, like a window */
    size_t len;
    uint64_t pos;
    uint8_t *buffer;
    size_t cap;
};

/* Moves the first n bytes of the window to `b`. The memory that b held before becomes the input's
 * window. */
void sv_input_take(struct sv_input *in, size_t n, struct sv_input_block *b);
/* The opposite: these bytes, the last ones that were taken, are before the window again. */
void sv_input_put_back(struct sv_input *in, const uint8_t *bytes, size_t n);
void sv_input_block_fini(struct sv_input_block *b);

/* Decoded bytes that others give, from several threads for instance: see files/unpack.h. */
struct sv_input_unpacker {
    /* Bytes to dst, 1 and more. 0: the input's own decoder goes on, at *stored, where a member or
     * frame begins or the file ends; it is 0 at first and counts the stored bytes of all that was
     * given. */
    size_t (*give)(void *ctx, uint8_t *dst, size_t cap, uint64_t *stored);
    void (*close)(void *ctx);
};
/* Before the first fill. */
void sv_input_unpack_by(struct sv_input *in, const char *compression,
                        const struct sv_input_unpacker *ops, void *ctx);
/* Closes the unpacker, if there is still one, and the input ends there: for those who stop
 * early. */
void sv_input_unpack_end(struct sv_input *in);
/* Stored bytes from any place, before and while others unpack: how many, 0 at the end and where
 * there are none to be had in this way (pipes). From any thread. */
ssize_t sv_input_read_at(const struct sv_input *in, uint64_t at, uint8_t *dst, size_t cap);

/* Adds to r what a user must know about the compressed stream: broken off, damaged, trailing bytes.
 * Readers call it once, at the end. */
void sv_input_report(const struct sv_input *in, struct sv_report *r);

/* How much of the stored file has been read, for progress: 0..size_bytes. May be asked while
 * another thread reads. */
uint64_t sv_input_read_bytes(const struct sv_input *in);
