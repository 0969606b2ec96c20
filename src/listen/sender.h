/* One sender of `stave listen`, without its socket: the greeting, and the frames on their way into
 * the spool (sdk/write/stream_wire.h says what is on the wire). Every byte is untrusted. Used by
 * listen.c and fed directly by tests. */
#pragma once

#include "listen/spool.h"
#include "sdk/write/stream_wire.h"

/* ---- the greeting ---- */

struct sv_greeting {
    char text[sizeof SV_GREETING + SV_TOKEN_MAX];
    size_t n;
};

enum sv_greeted {
    SV_GREETED_MORE, /* the line has not ended yet */
    SV_GREETED_OK,
    SV_GREETED_WRONG,   /* no greeting */
    SV_GREETED_VERSION, /* of another version of Stave */
    SV_GREETED_TOKEN    /* its token is wrong */
};

/* Takes bytes up to the end of the line; *used says how many. `token` NULL: none is asked for, any
 * is taken. */
enum sv_greeted sv_greeting_take(struct sv_greeting *g, const uint8_t *bytes, size_t n,
                                 const char *token, size_t *used);

/* ---- the stream ---- */

/* Finds the frames in a stream that comes in pieces of any size. */
struct sv_frames {
    uint8_t head[SV_FRAME_HEAD];
    size_t n_head;
    struct sv_frame frame; /* the one that `left` bytes are missing of */
    uint64_t left;
    uint64_t events; /* of all whole frames */
    bool is_open;    /* a head has come, its bytes not all */
    bool has_ended;  /* by the last frame: nothing may follow */
};

enum sv_frames_step {
    SV_FRAMES_MORE,  /* all bytes are used; the frame continues */
    SV_FRAMES_HEAD,  /* a head is whole: `frame` is new */
    SV_FRAMES_WHOLE, /* a frame is whole */
    SV_FRAMES_BAD    /* no such head can be */
};

/* Continues with the next step; *used says how many bytes that took. */
enum sv_frames_step sv_frames_next(struct sv_frames *f, const uint8_t *bytes, size_t n,
                                   size_t *used);

struct sv_stream {
    struct sv_frames frames;
    struct sv_spool_sender spooled;
    uint64_t taken; /* bytes of frames that are stored or counted: what the sender is answered */
    uint64_t seen;  /* bytes of frames that have come */
    uint64_t kept;  /* events in whole frames that are stored */
};

enum sv_taken {
    SV_TAKEN_SOME,
    SV_TAKEN_LAST, /* the sender has ended */
    SV_TAKEN_BAD   /* no frames: the connection is to be closed */
};

/* Stores what it can in the spool and counts what it cannot. */
enum sv_taken sv_stream_take(struct sv_stream *s, struct sv_spool *spool, const uint8_t *bytes,
                             size_t n);

/* The connection has ended by itself (`cause` says why, when the sender had not ended before). */
void sv_stream_cut(struct sv_stream *s, struct sv_spool *spool, enum sv_spool_cause cause);
