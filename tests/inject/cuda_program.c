/* A simulated CUDA program for the injected library: it does what the driver does at the first
 * call, and then its own work. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(void)
{
    const char *path = getenv("CUDA_INJECTION64_PATH");
    void *library = path ? dlopen(path, RTLD_NOW) : NULL, *symbol;
    int (*initialize)(void) = NULL;
    symbol = library ? dlsym(library, "InitializeInjection") : NULL;
    memcpy(&initialize, &symbol, sizeof symbol);
    if (!initialize) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    initialize();
    initialize(); /* a second driver in the process */
    puts("the program runs on");
    return 0;
}
