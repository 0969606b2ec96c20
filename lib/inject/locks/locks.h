/* What the files of the library share.
 *
 *   table.c      who released a lock last, for those that wait for it
 *   calls.c      the calls themselves
 *
 * A lock that is free costs one call more. Only a thread that has to wait enters its lock into the
 * table, and only who releases a lock that somebody has waited for long says where it is. */
#pragma once

#include "inject/preload/preload.h"

#include <errno.h>
#include <stddef.h>

#define WAIT_LEAST_NS 50000 /* shorter waits are not recorded */

/* ---- table.c ---- */

struct lock_release {
    int64_t ns; /* 0: nobody has */
    uint32_t tid;
    char name[16]; /* of the thread */
    struct pre_stack stack;
};
struct lock_entry;
/* A thread begins and ends to wait. NULL: the table is full. */
struct lock_entry *lock_wait_begin(uintptr_t address, int64_t now_ns);
void lock_wait_end(struct lock_entry *e);
/* Somebody is about to release the lock. Costs a load where nobody waits. */
void lock_released(uintptr_t address, const void *caller);
/* The last release since then. False: none is known. */
bool lock_last_release(struct lock_entry *e, int64_t since_ns, struct lock_release *to);
