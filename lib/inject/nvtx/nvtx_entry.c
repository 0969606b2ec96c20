/* libstave-nvtx.so: NVTX loads it by NVTX_INJECTION64_PATH and calls the two functions here.
 *
 * Each shared object with NVTX in it has its own tables and calls once: filling them again is all
 * there is to do. A tool that was to be injected before (STAVE_NEXT_NVTX_INJECTION64_PATH, which
 * `stave record` sets to the path that it found) is loaded first and fills the tables, we remember
 * its functions and put ours there. Never unloaded: NVTX keeps pointers to us. */
#include "inject/nvtx/nvtx.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ENTRY __attribute__((visibility("default")))

ENTRY int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table);
ENTRY int InitializeInjectionNvtxExtension(nvtxExtModuleInfo_t *info);

static pthread_once_t once = PTHREAD_ONCE_INIT;
static NvtxInitializeInjectionNvtxFunc_t next_entry;
static pthread_mutex_t filling = PTHREAD_MUTEX_INITIALIZER;

/* One line, and the program runs on with our own half. */
static void load_next(void)
{
    const char *path = secure_getenv("STAVE_NEXT_NVTX_INJECTION64_PATH");
    if (!path || !*path)
        return;
    void *library = dlopen(path, RTLD_LAZY);
    void *entry = library ? dlsym(library, "InitializeInjectionNvtx2") : NULL;
    memcpy(&next_entry, &entry, sizeof entry); /* C has no cast for this */
    if (!next_entry) {
        const char *why = dlerror();
        dprintf(2, "stave: nvtx: %s: cannot be loaded behind stave: %s\n", path, why ? why : "");
    }
}

static void begin(void)
{
    load_next();
    nvtx_events_init();
}

enum { CELLS_MAX = 32 };
struct before {
    NvtxFunctionTable table;
    unsigned n;
    NvtxFunctionPointer cells[CELLS_MAX];
};

static const NvtxExportTableCallbacks *callbacks_of(NvtxGetExportTableFunc_t get_table)
{
    const NvtxExportTableCallbacks *c = get_table ? get_table(NVTX_ETID_CALLBACKS) : NULL;
    return c && c->struct_size >= sizeof *c ? c : NULL;
}

static void look(const NvtxExportTableCallbacks *c, NvtxCallbackModule module, struct before *b)
{
    unsigned n = 0;
    b->n = 0;
    if (!nvtx_table_of(module) || !c->GetModuleFunctionTable(module, &b->table, &n))
        return;
    b->n = n < CELLS_MAX ? n : CELLS_MAX;
    for (unsigned i = 0; i < b->n; i++)
        b->cells[i] = b->table[i] ? *b->table[i] : NULL;
}

/* A cell that changed holds a function of the next tool. The last cell of a table is NULL in some
 * versions. */
static void take_over(NvtxCallbackModule module, const struct before *b, bool has_next)
{
    const struct nvtx_table *t = nvtx_table_of(module);
    for (unsigned i = 0; t && i < b->n && i < t->n; i++) {
        if (!t->ours[i] || !b->table[i])
            continue;
        if (has_next && *b->table[i] != b->cells[i])
            t->next[i] = *b->table[i];
        *b->table[i] = t->ours[i];
    }
}

int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table)
{
    pthread_once(&once, begin);
    const NvtxExportTableCallbacks *c = callbacks_of(get_table);
    if (!c)
        return 0;
    struct before before[NVTX_CB_MODULE_SIZE];
    pthread_mutex_lock(&filling);
    for (int m = 0; m < NVTX_CB_MODULE_SIZE; m++)
        look(c, (NvtxCallbackModule)m, &before[m]);
    bool has_next = next_entry && next_entry(get_table);
    nvtx_has_next |= has_next;
    for (int m = 0; m < NVTX_CB_MODULE_SIZE; m++)
        take_over((NvtxCallbackModule)m, &before[m], has_next);
    pthread_mutex_unlock(&filling);
    return 1;
}

int InitializeInjectionNvtxExtension(nvtxExtModuleInfo_t *info)
{
    pthread_once(&once, begin);
    nvtx_extension_fill(info);
    return 1;
}
