/* Payloads whose pointers lead nowhere: the program must not notice that somebody looked. */
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtPayload.h>
#include <stdint.h>
#include <sys/mman.h>

int main(void)
{
    nvtxDomainHandle_t d = nvtxDomainCreateA("wild");
    nvtxPayloadSchemaEntry_t entries[] = {
        {.type = NVTX_PAYLOAD_ENTRY_TYPE_CSTRING, .name = "text"},
        {.type = NVTX_PAYLOAD_ENTRY_TYPE_CSTRING_UTF16, .name = "more"}};
    nvtxPayloadSchemaAttr_t a = {.fieldMask = NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NAME |
                                              NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES |
                                              NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES,
                                 .name = "wild",
                                 .entries = entries,
                                 .numEntries = 2};
    uint64_t id = nvtxPayloadSchemaRegister(d, &a);
    char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return 1;
    munmap(page + 4096, 4096);
    page[4094] = 'e'; /* a text that runs into nothing */
    page[4095] = 'd';
    uintptr_t pointers[][2] = {{8, 1}, {(uintptr_t)page + 4094, (uintptr_t)page + 4095}, {0, 0}};
    for (int i = 0; i < 3; i++) {
        nvtxPayloadData_t data = {id, sizeof pointers[i], pointers[i]};
        nvtxMarkPayload(d, &data, 1);
    }
    nvtxPayloadData_t none = {id, SIZE_MAX, NULL};
    nvtxMarkPayload(NULL, &none, 1);
    nvtxMarkPayload(d, NULL, 5);
    return 0;
}
