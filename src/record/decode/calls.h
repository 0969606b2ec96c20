/* The system calls that the recorder knows: what their arguments are, which group they belong to,
 * what they do to descriptors.
 *
 * One table for both sides: the kernel programs get the plan of each number, the decoder its
 * meaning. */
#ifndef SV_RECORD_DECODE_CALLS_H
#define SV_RECORD_DECODE_CALLS_H

#include "record/bpf/syscalls.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Groups, as --calls names them. */
enum sv_call_group {
    SV_CALLS_FILES = 1 << 0, /* open, close, read, write and similar */
    SV_CALLS_MAPS = 1 << 1,  /* mmap, munmap, msync, madvise */
    SV_CALLS_SYNC = 1 << 2,  /* fsync and similar */
    SV_CALLS_NAMES = 1 << 3, /* mkdir, unlink, rename … */
    SV_CALLS_STAT = 1 << 4,  /* stat and similar, access, readlink, getdents64 */
    SV_CALLS_SOCKETS = 1 << 5,
    SV_CALLS_URING = 1 << 6,
    SV_CALLS_FDS = 1 << 7,     /* only for the table of descriptors: never an event */
    SV_CALLS_POLL = 1 << 8,    /* poll and similar: with WAITING, where the thread waited */
    SV_CALLS_WAITING = 1 << 9, /* asks for sockets and poll where the thread waited */
    SV_CALLS_DEFAULT = SV_CALLS_FILES | SV_CALLS_MAPS | SV_CALLS_SYNC | SV_CALLS_NAMES |
                       SV_CALLS_STAT | SV_CALLS_URING
};

/* What a call does to the table of descriptors when it succeeds. */
enum sv_call_effect {
    SV_EFFECT_NONE,
    SV_EFFECT_OPEN,        /* ret is a new descriptor for the path; aux: open flags */
    SV_EFFECT_OPEN2,       /* the same, flags unknown */
    SV_EFFECT_CLOSE,       /* fd is gone */
    SV_EFFECT_DUP,         /* ret is another fd for the same file */
    SV_EFFECT_DUP2,        /* the same; close-on-exec by aux */
    SV_EFFECT_FCNTL,       /* aux: command, size: its argument */
    SV_EFFECT_CLOSE_RANGE, /* fd … aux, size: flags */
    SV_EFFECT_CHDIR,
    SV_EFFECT_FCHDIR,
    SV_EFFECT_CHROOT,
    SV_EFFECT_MEMFD,  /* ret is a new descriptor; the path is a name of no file */
    SV_EFFECT_SOCKET, /* ret is a new descriptor without a path */
    SV_EFFECT_PAIR,   /* two of them, in the memory that `size` points to */
    SV_EFFECT_MAP,    /* pages of fd's file, whose device is aux, will be the process's */
    /* From here on none. */
    SV_EFFECT_SYMLINK, /* path2 is the text of the link, not a path from here */
    SV_EFFECT_SUBMIT,  /* requests of asynchronous I/O */
    SV_EFFECT_REAP     /* their ends */
};

/* What the number in `size` and the return value mean as arguments of the event. */
enum sv_call_sense {
    SV_SENSE_PLAIN,    /* nothing but a failure */
    SV_SENSE_TRANSFER, /* size: requested; ret: bytes */
    /* the same; what was asked for is spread over a vector, `size` says how many */
    SV_SENSE_VECTOR,
    SV_SENSE_RANGE, /* size: length */
    SV_SENSE_MAP,   /* size: length; ret: address */
    SV_SENSE_SEEK,  /* ret: offset */
    SV_SENSE_FLAGS, /* aux: flags of open; size: its mode, where they create a file */
    SV_SENSE_MODE,  /* size: mode */
    SV_SENSE_RET    /* ret: a number of its own */
};

struct sv_call {
    const char *name;
    uint16_t nr;
    /* Numbers of arguments, SV_WIRE_NONE. With a path, `fd` is the directory it starts from; with
     * two, `aux` is the second one's. */
    uint8_t fd, path, path2, size, offset, aux;
    uint8_t places; /* not 0: it copies from `fd` to `aux` (struct sv_wire_plan) */
    uint16_t group;
    uint8_t effect; /* enum sv_call_effect */
    uint8_t sense;  /* enum sv_call_sense */
    bool has_position;
};

extern const struct sv_call sv_calls[];
extern const size_t sv_n_calls;

/* By number, NULL: not recorded. */
void sv_calls_index(const struct sv_call *index[SV_WIRE_CALLS_MAX]);

/* Fills plans[SV_WIRE_CALLS_MAX] for these groups; calls that change descriptors are always in
 * them. */
void sv_calls_plan(unsigned groups, struct sv_wire_plan *plans);

/* "files,stat" → groups; false at the first unknown word, which is left in *bad. */
bool sv_calls_groups(const char *text, unsigned *groups, char bad[32]);
extern const char *const sv_call_group_names[]; /* by bit, NULL-terminated */

/* A transfer into its descriptor. A call that copies is none. */
bool sv_call_writes(const struct sv_call *c);

/* The record of a call, whichever form it has. Sets *text to what follows it, up to `size`. False:
 * the record is too short. */
bool sv_call_whole(const struct sv_wire_head *record, uint32_t size, struct sv_wire_call *whole,
                   const char **text);

#endif
