/* Allocations that fail on demand: the unit executable is linked with --wrap, so that malloc and
 * its kin, and what allocates inside of the C library, come here first. Without a demand it only
 * counts. */
#include "tests/harness/test.h"

#include <dirent.h>
#include <errno.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *old, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *old, size_t size);
DIR *__real_fdopendir(int fd);
DIR *__wrap_fdopendir(int fd);

static _Atomic unsigned fail_at, seen;

void test_alloc_fail(unsigned k)
{
    seen = 0;
    fail_at = k;
}

bool test_alloc_failed(void)
{
    return fail_at != 0 && seen >= fail_at;
}

static bool fails(void)
{
    if (fail_at == 0 || ++seen < fail_at)
        return false;
    errno = ENOMEM;
    return true;
}

void *__wrap_malloc(size_t size)
{
    return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
    return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *old, size_t size)
{
    return fails() ? NULL : __real_realloc(old, size);
}

DIR *__wrap_fdopendir(int fd)
{
    return fails() ? NULL : __real_fdopendir(fd);
}
