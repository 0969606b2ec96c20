/* Which user is at the other end of a connection on this machine: asked of the kernel, never of the
 * peer.
 *
 * Of a Unix socket the kernel keeps the user who connected or listened. Of TCP over loopback it
 * knows the owner of the other end's socket. Called by libstave before it sends a token or events,
 * by listeners and the viewer before they take anything. No memory is allocated. */
#pragma once

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/types.h>

#define SV_PEER_UNKNOWN ((uid_t)-1)

/* Another machine's address, or the kernel does not say: SV_PEER_UNKNOWN. So is a socket that its
 * owner has closed already. */
uid_t sv_peer_uid(int fd);
/* The same of a Unix socket only. */
uid_t sv_peer_uid_unix(int fd);
/* The same by the two addresses of a TCP connection: ours and the peer's. */
uid_t sv_peer_uid_of(const struct sockaddr *own, const struct sockaddr *peer);
/* The owner of the socket that listens on this loopback address: who will get what is sent there,
 * also while the connection waits to be accepted. */
uid_t sv_peer_listener(const struct sockaddr *address);

bool sv_peer_is_loopback(const struct sockaddr *address);

/* May this user be talked to? This user and root may, and those in a list as users write it:
 * numbers with commas, or "any". NULL: no list. */
bool sv_peer_may(uid_t uid, const char *list);
bool sv_peer_list_is_valid(const char *list);
