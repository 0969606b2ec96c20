/* The address that `stave listen` listens on, and whose connections come there. */
#pragma once

#include "core/base/err.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct sv_address {
    int fd;
    char unix_path[108]; /* removed at the end, "": none */
    dev_t device;        /* of that socket: another one's is not removed */
    ino_t inode;
};

struct sv_peer {
    uint64_t id;   /* one number for one address, or one user of this machine */
    uid_t uid;     /* SV_PEER_UNKNOWN: of another machine, or the kernel does not say */
    bool is_local; /* of this machine */
    char name[40]; /* for messages: safe to print */
};

/* unix:PATH or tcp:ADDRESS:PORT. One that others can reach is refused without a token. The Unix
 * socket is this user's only unless it `is_shared`; who comes is then asked of the kernel. */
int sv_address_open(struct sv_address *a, const char *text, bool has_token, bool is_shared,
                    struct sv_err *err);
void sv_address_close(struct sv_address *a); /* also twice, and after a failed open */

/* The next connection, non-blocking; -1 with errno. */
int sv_address_accept(const struct sv_address *a, struct sv_peer *peer);
