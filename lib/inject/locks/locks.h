/* What the files of the library share.
 *
 *   stacks.c     where a thread is: functions of Python by its interpreter's frames, native ones by
 *                their addresses, which the recorder names
 *   table.c      who released a lock last, for those that wait for it
 *   record.c     a wait into the trace
 *   calls.c      the calls themselves
 *
 * A lock that is free costs one call more. Only a thread that has to wait enters its lock into the
 * table, and only who releases a lock that somebody has waited for long says where it is. */
#pragma once

#include "inject/preload/preload.h"

#include <errno.h>
#include <stddef.h>

#define WAIT_LEAST_NS 50000 /* shorter waits are not recorded */

/* ---- stacks.c ---- */

enum { NATIVE_MAX = 12, PYTHON_BYTES = 900 };
struct lock_stack {
    uint32_t n_native;
    uint32_t python_len;             /* each text with its NUL, innermost first */
    uintptr_t native[NATIVE_MAX];    /* innermost first */
    char python[PYTHON_BYTES];
};
/* Of the calling thread; `caller`: who called the function of the libc. */
void lock_stack_take(struct lock_stack *s, const void *caller);
void lock_stacks_init(void);
/* Is it a part of CPython's own lock? */
bool lock_is_gil(uintptr_t address);

/* ---- table.c ---- */

struct lock_release {
    int64_t ns; /* 0: nobody has */
    uint32_t tid;
    char name[16]; /* of the thread */
    struct lock_stack stack;
};
struct lock_entry;
/* A thread begins and ends to wait. NULL: the table is full. */
struct lock_entry *lock_wait_begin(uintptr_t address, int64_t now_ns);
void lock_wait_end(struct lock_entry *e);
/* Somebody is about to release the lock. Costs a load where nobody waits. */
void lock_released(uintptr_t address, const void *caller);
/* The last release since then. False: none is known. */
bool lock_last_release(struct lock_entry *e, int64_t since_ns, struct lock_release *to);

/* ---- record.c ---- */

struct lock_wait {
    const char *function; /* of the libc: a literal */
    const void *caller;
    uintptr_t futex; /* what the kernel would call the lock */
    int64_t start_ns, end_ns;
    bool is_timeout;
    const struct lock_release *by; /* NULL: not known */
    uint32_t by_tid;               /* without more; 0: see `by` */
};
void lock_record(const struct lock_wait *w);
