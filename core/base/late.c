/* Loads libraries by name: see late.h. Called by what uses them; keeps nothing itself. */
#include "core/base/late.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

bool sv_late_load(const char *soname, const char *package, const char *const *names, size_t n,
                  void *functions, char *why, size_t size)
{
    void *handle = dlopen(soname, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!handle) {
        snprintf(why, size, "%s cannot be loaded: install it (Debian: %s)", soname, package);
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        void *symbol = dlsym(handle, names[i]);
        if (!symbol) {
            snprintf(why, size, "%s has no function %s", soname, names[i]);
            return false;
        }
        memcpy((char *)functions + i * sizeof symbol, &symbol, sizeof symbol);
    }
    return true;
}
