/* Names as people write them: kernels without mangling, calls without their version.
 *
 * CUPTI's names live as long as the process, so that a name is remembered by its address and text;
 * the tables are bounded, and what does not fit is used as it is. Called under the decoder's
 * lock. */
#include "inject/cuda/cuda.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

enum { NAMES = 8192, CALLS = 2048, CALL_BYTES = 80 };

struct known {
    char *mangled, *plain;
};
static struct known names[NAMES];

typedef char *(*demangle_fn)(const char *name, char *storage, size_t *size, int *status);

/* Of the C++ runtime, which programs with kernels have; without it names stay mangled. */
static demangle_fn demangler(void)
{
    static bool is_known;
    static demangle_fn found;
    if (!is_known) {
        void *f = dlsym(RTLD_DEFAULT, "__cxa_demangle");
        if (!f) {
            void *library = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_NOLOAD);
            f = library ? dlsym(library, "__cxa_demangle") : NULL;
        }
        memcpy(&found, &f, sizeof f);
        is_known = true;
    }
    return found;
}

static unsigned slot_of(const char *name)
{
    unsigned h = 2166136261u;
    for (; *name; name++)
        h = (h ^ (unsigned char)*name) * 16777619u;
    return (h ^ h >> 13) % NAMES;
}

const char *cuda_kernel_name(const char *name)
{
    if (!name)
        return "kernel";
    demangle_fn demangle = strncmp(name, "_Z", 2) == 0 ? demangler() : NULL;
    if (!demangle)
        return name;
    struct known *k = &names[slot_of(name)];
    if (k->mangled && strcmp(k->mangled, name) == 0)
        return k->plain;
    int status = 0;
    char *plain = demangle(name, NULL, NULL, &status), *copy = plain ? strdup(name) : NULL;
    if (!copy) {
        free(plain);
        return name;
    }
    free(k->mangled); /* another name at this place: the SDK has copied it */
    free(k->plain);
    k->mangled = copy;
    k->plain = plain;
    return plain;
}

/* Ends in _v and digits, for calls whose parameters changed once. */
static void cut_version(char *name)
{
    char *v = strrchr(name, '_');
    if (v && v[1] == 'v' && v[2] && strspn(v + 2, "0123456789") == strlen(v + 2))
        *v = '\0';
}

const char *cuda_call_name(const struct cuda_cupti *c, CUpti_CallbackDomain domain, uint32_t id)
{
    static char calls[2][CALLS][CALL_BYTES];
    bool is_driver = domain == CUPTI_CB_DOMAIN_DRIVER_API;
    const char *name = NULL;
    if (id < CALLS && *calls[is_driver][id])
        return calls[is_driver][id];
    if (c->callback_name(domain, id, &name) != CUPTI_SUCCESS || !name || id >= CALLS)
        return name ? name : is_driver ? "CUDA driver call" : "CUDA runtime call";
    size_t len = strnlen(name, CALL_BYTES - 1);
    memcpy(calls[is_driver][id], name, len);
    cut_version(calls[is_driver][id]);
    return calls[is_driver][id];
}
