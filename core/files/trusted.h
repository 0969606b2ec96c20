/* Trusted paths: opening what has a name that others could have made.
 *
 * Sessions, claims and growing files are found by names in folders that other users may write to
 * (/tmp, /dev/shm). Whatever is opened through here is checked on the descriptor, not on the name:
 * it belongs to this user, nobody else may write to it, it is not a symbolic link and has no second
 * name. What was opened this way was written by this user, so that its content may name further
 * paths.
 *
 * All functions return a descriptor (O_CLOEXEC) or -1 with errno; EPERM means that the check
 * failed. No memory is allocated. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum sv_trust {
    SV_TRUST_OWN,    /* of this user, writable by nobody else */
    SV_TRUST_PRIVATE /* the same, and readable by nobody else */
};

/* The system could not open it (no descriptors, no memory, a broken disk, no right to look): it may
 * be there all the same. False: it is not there, or the check failed. */
bool sv_trusted_failed(int error);

/* `base_fd` is a folder or AT_FDCWD. The path's last component must not be a link; the components
 * before it are the caller's. */
int sv_trusted_folder(int base_fd, const char *path, enum sv_trust trust);
/* The same, made with mode 0700 when it is not there. */
int sv_trusted_make_folder(int base_fd, const char *path);

/* A regular file. `flags` as for open(): access mode, O_CREAT | O_EXCL, O_APPEND. O_TRUNC is done
 * after the check. */
int sv_trusted_file(int base_fd, const char *path, int flags, enum sv_trust trust, mode_t mode);

/* At most size - 1 bytes of a file, terminated. Returns the number of bytes or -1. */
ssize_t sv_trusted_read(int base_fd, const char *path, char *to, size_t size);

/* May an output be written under this name, which leads through links to what is to be replaced or
 * opened? False: a link on the way was made by another user (root's are believed), or at its end is
 * another user's pipe in a folder where everybody may make names; errno is EPERM. What is not there
 * may. The components before the last are the caller's. */
bool sv_trusted_target(const char *path);

/* A folder (O_PATH) by a way on which no other user can have put a link: each component is opened
 * by itself, and links are followed only if this user or root made them. EPERM: another user made
 * one. */
int sv_trusted_walk(const char *folder);

/* Removes the file if it is still this one. Its folder is opened once: if the folder is exchanged
 * meanwhile, nothing is removed elsewhere. */
bool sv_trusted_remove(const char *path, dev_t device, ino_t inode);

/* Environment variables that name paths: NULL in programs that run with more rights than their
 * caller (setuid, capabilities). */
const char *sv_trusted_getenv(const char *name);
