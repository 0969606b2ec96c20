/* A program that uses all of NVTX and knows nothing of Stave: the tests trace it and look for each
 * thing by name. */
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtCounters.h>
#include <nvtx3/nvToolsExtPayload.h>
#include <nvtx3/nvToolsExtSync.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static nvtxEventAttributes_t attributes(const char *message)
{
    nvtxEventAttributes_t a = {.version = NVTX_VERSION, .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE};
    a.messageType = NVTX_MESSAGE_TYPE_ASCII;
    a.message.ascii = message;
    return a;
}

static void plain(void)
{
    int level[5] = {nvtxRangePushA("outer")};
    level[1] = nvtxRangePushW(L"wide ä→𝄞");
    for (int i = 2; i < 5; i++)
        level[i] = nvtxRangePop();
    printf("levels %d %d %d %d %d\n", level[0], level[1], level[2], level[3], level[4] < 0);
    nvtxMarkA("plain mark");
    nvtxMarkW(L"wide mark");
    nvtxRangePushA(NULL);
    nvtxRangePop();
    char changing[32];
    for (int i = 0; i < 3; i++) { /* one address, three names */
        snprintf(changing, sizeof changing, "changing %d", i);
        nvtxRangePushA(changing);
        nvtxRangePop();
    }
    char longest[3000];
    memset(longest, 'x', sizeof longest);
    longest[sizeof longest - 1] = '\0';
    nvtxRangePushA(longest);
    nvtxRangePop();
}

static void with_attributes(nvtxDomainHandle_t domain)
{
    nvtxDomainNameCategoryA(domain, 7, "forward");
    nvtxEventAttributes_t a = attributes("coloured");
    a.category = 7;
    a.colorType = NVTX_COLOR_ARGB;
    a.color = 0xff76b900;
    a.payloadType = NVTX_PAYLOAD_TYPE_INT32;
    a.payload.iValue = -5;
    nvtxDomainRangePushEx(domain, &a);
    nvtxDomainRangePop(domain);
    a = attributes("half transparent");
    a.category = 8;
    a.colorType = NVTX_COLOR_ARGB;
    a.color = 0x80ff0000;
    a.payloadType = NVTX_PAYLOAD_TYPE_DOUBLE;
    a.payload.dValue = 0.5;
    nvtxDomainMarkEx(domain, &a);
    a = attributes("unsigned");
    a.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
    a.payload.ullValue = 18446744073709551615u;
    nvtxDomainMarkEx(domain, &a);
    a = attributes("short struct"); /* of an older version: the message lies outside */
    a.size = 16;
    nvtxDomainMarkEx(domain, &a);
    nvtxStringHandle_t s = nvtxDomainRegisterStringA(domain, "registered name");
    a = attributes(NULL);
    a.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    a.message.registered = s;
    nvtxDomainRangePushEx(domain, &a);
    nvtxDomainRangePop(domain);
    a.message.registered = nvtxDomainRegisterStringW(domain, L"wide registered");
    nvtxDomainMarkEx(domain, &a);
}

/* The stacks of two domains cross: a, b, end of a, end of b. */
static void crossing(nvtxDomainHandle_t a, nvtxDomainHandle_t b)
{
    nvtxEventAttributes_t first = attributes("crossing a"), second = attributes("crossing b");
    nvtxDomainRangePushEx(a, &first);
    nvtxDomainRangePushEx(b, &second);
    nvtxDomainRangePop(a);
    nvtxDomainRangePop(b);
}

static void *end_elsewhere(void *id)
{
    nvtxNameOsThreadA((uint32_t)syscall(SYS_gettid), "ender");
    nvtxRangeEnd(*(nvtxRangeId_t *)id);
    nvtxMarkA("in the ender");
    return NULL;
}

static void ranges(nvtxDomainHandle_t domain)
{
    nvtxRangeId_t id = nvtxRangeStartA("across threads"), other = nvtxRangeStartW(L"overlapping");
    pthread_t t;
    pthread_create(&t, NULL, end_elsewhere, &id);
    pthread_join(t, NULL);
    nvtxRangeEnd(other);
    nvtxRangeEnd(other); /* twice, and one that never was */
    nvtxRangeEnd(12345678901234567u);
    nvtxEventAttributes_t a = attributes("range with payload");
    a.payloadType = NVTX_PAYLOAD_TYPE_FLOAT;
    a.payload.fValue = 1.5f;
    a.colorType = NVTX_COLOR_ARGB;
    a.color = 0xff0000ff;
    nvtxDomainRangeEnd(domain, nvtxDomainRangeStartEx(domain, &a));
    nvtxRangeStartA("never ended");
}

enum mode { FAST = 1, SAFE = 2 };
struct inner {
    uint16_t rows, columns;
};
struct sample {
    int32_t count;
    double ratio;
    const char *label;
    uint8_t mode;
    uint32_t flags;
    float weights[3];
    struct inner shape;
    char fixed[8];
};

static uint64_t sample_schema(nvtxDomainHandle_t domain)
{
    nvtxPayloadEnum_t modes[] = {{"fast", FAST, 0}, {"safe", SAFE, 0}},
                      bits[] = {{"read", 1, 1}, {"write", 2, 1}, {"lock", 8, 1}};
    nvtxPayloadEnumAttr_t e = {.fieldMask = NVTX_PAYLOAD_ENUM_ATTR_FIELD_ENTRIES |
                                            NVTX_PAYLOAD_ENUM_ATTR_FIELD_NUM_ENTRIES |
                                            NVTX_PAYLOAD_ENUM_ATTR_FIELD_SIZE,
                               .entries = modes,
                               .numEntries = 2,
                               .sizeOfEnum = 1};
    uint64_t mode = nvtxPayloadEnumRegister(domain, &e);
    e.entries = bits;
    e.numEntries = 3;
    e.sizeOfEnum = 4;
    uint64_t flags = nvtxPayloadEnumRegister(domain, &e);
    nvtxPayloadSchemaEntry_t inner[] = {
        {.type = NVTX_PAYLOAD_ENTRY_TYPE_UINT16, .name = "rows"},
        {.type = NVTX_PAYLOAD_ENTRY_TYPE_UINT16, .name = "columns"}};
    nvtxPayloadSchemaAttr_t a = {.fieldMask = NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NAME |
                                              NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_TYPE |
                                              NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES |
                                              NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES,
                                 .name = "inner",
                                 .type = NVTX_PAYLOAD_SCHEMA_TYPE_STATIC,
                                 .entries = inner,
                                 .numEntries = 2};
    uint64_t shape = nvtxPayloadSchemaRegister(domain, &a);
    nvtxPayloadSchemaEntry_t entries[] = {
        {.type = NVTX_PAYLOAD_ENTRY_TYPE_INT32, .name = "count"},
        {.type = NVTX_PAYLOAD_ENTRY_TYPE_DOUBLE, .name = "ratio"},
        {.type = NVTX_PAYLOAD_ENTRY_TYPE_CSTRING, .name = "label"},
        {.type = mode, .name = "mode"},
        {.type = flags, .name = "flags"},
        {.flags = NVTX_PAYLOAD_ENTRY_FLAG_ARRAY_FIXED_SIZE,
         .type = NVTX_PAYLOAD_ENTRY_TYPE_FLOAT,
         .name = "weights",
         .arrayOrUnionDetail = 3},
        {.type = shape, .name = "shape"},
        {.type = NVTX_PAYLOAD_ENTRY_TYPE_CSTRING, .name = "fixed", .arrayOrUnionDetail = 8},
    };
    a.name = "sample";
    a.entries = entries;
    a.numEntries = sizeof entries / sizeof *entries;
    a.fieldMask |= NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_STATIC_SIZE;
    a.payloadStaticSize = sizeof(struct sample);
    return nvtxPayloadSchemaRegister(domain, &a);
}

static void payloads(nvtxDomainHandle_t domain)
{
    uint64_t id = sample_schema(domain);
    struct sample s = {42, 0.25, "a label", SAFE, 3, {1, 2, 3.5f}, {4, 5}, "fixed"};
    nvtxPayloadData_t data = {id, sizeof s, &s};
    nvtxEventAttributes_t a = attributes("with schema");
    a.payloadType = NVTX_PAYLOAD_TYPE_EXT;
    a.reserved0 = 1;
    a.payload.ullValue = (uint64_t)(uintptr_t)&data;
    nvtxDomainRangePushEx(domain, &a);
    nvtxDomainRangePop(domain);
    nvtxMarkPayload(domain, &data, 1); /* named by its schema */
    nvtxRangePushPayload(domain, &data, 1);
    int64_t result = -9;
    nvtxPayloadData_t number = {NVTX_PAYLOAD_ENTRY_TYPE_INT64, sizeof result, &result};
    nvtxRangePopPayload(domain, &number, 1);
    nvtxRangeEndPayload(domain, nvtxRangeStartPayload(domain, &data, 1), &number, 1);
    s.label = (const char *)8; /* wild */
    data.size = 20;            /* cut in the middle of an entry */
    nvtxMarkPayload(domain, &data, 1);
    nvtxPayloadData_t unknown = {999999, 5, "bytes"};
    a.message.ascii = "unknown schema";
    a.payload.ullValue = (uint64_t)(uintptr_t)&unknown;
    nvtxDomainMarkEx(domain, &a);
}

static void counters(nvtxDomainHandle_t domain)
{
    nvtxCounterAttr_t a = {
        .structSize = sizeof a, .schemaId = NVTX_PAYLOAD_ENTRY_TYPE_INT64, .name = "queue length"};
    uint64_t id = nvtxCounterRegister(domain, &a);
    nvtxCounterSampleInt64(domain, id, 3);
    nvtxCounterSampleFloat64(domain, id, 4.5);
    int64_t value = 5;
    nvtxCounterSample(domain, id, &value, sizeof value);
}

static void locks(nvtxDomainHandle_t domain)
{
    nvtxSyncUserAttributes_t a = {.version = NVTX_VERSION,
                                  .size = NVTX_SYNCUSER_ATTRIB_STRUCT_SIZE};
    a.messageType = NVTX_MESSAGE_TYPE_ASCII;
    a.message.ascii = "weights";
    nvtxSyncUser_t s = nvtxDomainSyncUserCreate(domain, &a);
    nvtxDomainSyncUserAcquireStart(s);
    nvtxDomainSyncUserAcquireSuccess(s);
    nvtxDomainSyncUserReleasing(s);
    nvtxDomainSyncUserAcquireStart(s);
    nvtxDomainSyncUserAcquireFailed(s);
    nvtxDomainSyncUserDestroy(s);
}

int main(void)
{
    nvtxNameOsThreadA((uint32_t)syscall(SYS_gettid), "main of nvtx_all");
    nvtxDomainHandle_t a = nvtxDomainCreateA("library A"), b = nvtxDomainCreateW(L"library Ü");
    plain();
    with_attributes(a);
    crossing(a, b);
    ranges(b);
    payloads(a);
    counters(a);
    locks(a);
    nvtxDomainDestroy(a);
    return 0;
}
