/*
 * Which libstave is loaded: a program may have been compiled against another header.
 *
 * Called by anyone at any time, from any thread or signal handler: it only returns a constant.
 */
#include <stave/stave.h>

#define TEXT_OF(x) #x
#define TEXT(x)    TEXT_OF(x)

const char *stave_version(void)
{
    return TEXT(STAVE_VERSION_MAJOR) "." TEXT(STAVE_VERSION_MINOR) "." TEXT(STAVE_VERSION_PATCH);
}
