/* By libstdc++, which is loaded when the first mangled name comes: a program that draws a picture
 * needs none. */
#include "store/demangle.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

typedef char *demangler(const char *name, char *buffer, size_t *size, int *status);

static demangler *find(void)
{
    static demangler *found;
    static bool is_looked_up;
    if (!is_looked_up) {
        is_looked_up = true;
        void *library = dlopen("libstdc++.so.6", RTLD_NOW | RTLD_LOCAL);
        void *symbol = library ? dlsym(library, "__cxa_demangle") : NULL;
        memcpy(&found, &symbol, sizeof found);
    }
    return found;
}

bool sv_demangle_is_possible(void)
{
    return find() != NULL;
}

char *sv_demangle(const char *name)
{
    enum { LONGEST = 1 << 14 }; /* what nests deeper is damaged or hostile */
    int status = -1;
    if (strncmp(name, "_Z", 2) != 0 || strnlen(name, LONGEST) == LONGEST)
        return NULL;
    demangler *demangle = find();
    char *text = demangle ? demangle(name, NULL, NULL, &status) : NULL;
    return status == 0 ? text : NULL;
}
