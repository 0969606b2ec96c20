/* Pings between hosts over TCP: what `stave record --sync` and `stave sync` exchange to relate
 * their clocks (clocks/clock_sync.h).
 *
 *     client                                   server
 *     "STVSYNC1", the token (16 bytes)    →
 *                                         ←    "STVSYNC1", whose clock it is (struct
 *                                              sv_clock_owner, fixed size)
 *     a number (8 bytes)                  →    read at t2
 *                                         ←    the number, t2, t3: BOOTTIME in nanoseconds, little
 *                                              endian
 *
 * Whoever does not give the token within a few seconds is cut off without a word; the token is
 * compared in constant time. Nothing that a peer sends is kept but its last number, so that a
 * hostile one costs a descriptor. The token crosses the network as it is: it keeps strangers away,
 * not somebody who reads the traffic. */
#ifndef SV_RECORD_SYNC_PING_H
#define SV_RECORD_SYNC_PING_H

#include "clocks/relation.h"

enum { SV_PING_TOKEN = 16, SV_PING_TOKEN_TEXT = 2 * SV_PING_TOKEN + 1 };
enum { SV_PING_EVERY_MS = 30000 }; /* between two rounds */

bool sv_ping_token_new(uint8_t token[static SV_PING_TOKEN]);
void sv_ping_token_text(const uint8_t token[static SV_PING_TOKEN],
                        char to[static SV_PING_TOKEN_TEXT]);
bool sv_ping_token_parse(const char *text, uint8_t token[static SV_PING_TOKEN]);

int64_t sv_ping_now_ns(void); /* BOOTTIME */

/* ---- the server ---- */

struct sv_ping_server;

/* `address` is HOST, HOST:PORT or [HOST]:PORT; no port, or 0: any free one. */
int sv_ping_server_open(const char *address, const uint8_t token[static SV_PING_TOKEN],
                        struct sv_ping_server **out, struct sv_err *err);
void sv_ping_server_close(struct sv_ping_server *s);
/* Answers what has come, or waits for so long. */
void sv_ping_server_turn(struct sv_ping_server *s, int timeout_ms);
/* "HOST:PORT" as it listens. */
const char *sv_ping_server_address(const struct sv_ping_server *s);
size_t sv_ping_server_met(const struct sv_ping_server *s);   /* peers that had the token, so far */
size_t sv_ping_server_peers(const struct sv_ping_server *s); /* and are still there */

/* ---- the client ---- */

struct sv_ping_client {
    int fd; /* -1: not connected */
    struct sv_clock_owner server;
};

int sv_ping_connect(struct sv_ping_client *c, const char *address,
                    const uint8_t token[static SV_PING_TOKEN], int timeout_ms, struct sv_err *err);
void sv_ping_disconnect(struct sv_ping_client *c);
/* Some dozens of pings. On failure it is disconnected. */
int sv_ping_round(struct sv_ping_client *c, struct sv_sync_round *out, struct sv_err *err);

#endif
