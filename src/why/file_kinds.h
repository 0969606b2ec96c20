/* What a system call works on: files apart from pipes, sockets and terminals, and calls that only
 * wait. By the name of the call and the path of its descriptor, as the recorder and strace -y write
 * it ("pipe:[123]", "socket:[…]", "/dev/pts/3"). Used by the states of threads and by the I/O
 * report. */
#ifndef SV_WHY_FILE_KINDS_H
#define SV_WHY_FILE_KINDS_H

#include "core/stream/dict.h"

enum sv_file_kind {
    SV_FILE_UNKNOWN, /* no path is known */
    SV_FILE_REGULAR, /* a file or a folder */
    SV_FILE_PIPE,
    SV_FILE_SOCKET,
    SV_FILE_TERMINAL,
    SV_FILE_OTHER, /* devices, /proc, eventfd and others: nothing that is stored */
    SV_N_FILE_KINDS
};
extern const char *const sv_file_kind_names[SV_N_FILE_KINDS];

enum sv_file_kind sv_file_kind_of(struct sv_text path);

/* Does the path look like data rather than code or configuration? */
bool sv_is_data_file(struct sv_text path);

/* What a call may wait for, by its name alone. */
enum sv_call_class {
    SV_CALL_OTHER,
    SV_CALL_TRANSFER, /* read, write and their kin: the descriptor decides */
    SV_CALL_FILE,     /* open, stat, fsync …: a file system */
    SV_CALL_SOCKET,
    SV_CALL_FUTEX,
    SV_CALL_POLL,
    SV_CALL_CHILD,
    SV_CALL_SLEEP,
    SV_N_CALL_CLASSES
};

/* By string of the dictionary; free() it. */
uint8_t *sv_call_classes(const struct sv_dict *d);

#endif
