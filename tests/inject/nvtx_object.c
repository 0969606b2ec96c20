/* Two roles in one shared object: a library with NVTX in it, and a tool that another one is
 * injected before.
 *
 * As a tool it prints each call with its own handles: 0x11 the domain, 0x22 the string, 0x33 the
 * range. */
#include <nvtx3/nvToolsExt.h>
#include <stdio.h>
#include <string.h>

#define ENTRY __attribute__((visibility("default")))
ENTRY void work_in_object(void);
ENTRY int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table);

void work_in_object(void)
{
    nvtxRangePushA("in the object");
    nvtxRangePop();
}

static nvtxDomainHandle_t create(const char *name)
{
    printf("next: domain %s\n", name);
    return (nvtxDomainHandle_t)0x11;
}
static nvtxStringHandle_t text(nvtxDomainHandle_t d, const char *s)
{
    printf("next: string %p %s\n", (void *)d, s);
    return (nvtxStringHandle_t)0x22;
}
static int push(nvtxDomainHandle_t d, const nvtxEventAttributes_t *a)
{
    printf("next: push %p %p\n", (void *)d, (void *)a->message.registered);
    return 0;
}
static int pop(nvtxDomainHandle_t d)
{
    printf("next: pop %p\n", (void *)d);
    return 0;
}
static nvtxRangeId_t start(nvtxDomainHandle_t d, const nvtxEventAttributes_t *a)
{
    printf("next: start %p %p\n", (void *)d, (void *)a->message.registered);
    return 0x33;
}
static void end(nvtxDomainHandle_t d, nvtxRangeId_t id)
{
    printf("next: end %p %#llx\n", (void *)d, (unsigned long long)id);
}
static int push_a(const char *s)
{
    printf("next: push %s\n", s);
    return 0;
}

#define SET(table, id, f) (*(table)[NVTX_CBID_##id] = (NvtxFunctionPointer)(f))

int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table)
{
    const NvtxExportTableCallbacks *c = get_table(NVTX_ETID_CALLBACKS);
    NvtxFunctionTable core, core2;
    unsigned n;
    if (!c || !c->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &core, &n) ||
        !c->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &core2, &n))
        return 0;
    SET(core, CORE_RangePushA, push_a);
    SET(core2, CORE2_DomainCreateA, create);
    SET(core2, CORE2_DomainRegisterStringA, text);
    SET(core2, CORE2_DomainRangePushEx, push);
    SET(core2, CORE2_DomainRangePop, pop);
    SET(core2, CORE2_DomainRangeStartEx, start);
    SET(core2, CORE2_DomainRangeEnd, end);
    return 1;
}
