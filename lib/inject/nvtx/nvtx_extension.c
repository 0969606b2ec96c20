/* The extensions of NVTX: payloads with schemas, and counters.
 *
 * NVTX hands over a table of slots per extension; a slot left alone makes the call a no-op. Events
 * that a program measured itself and hands over later (deferred ones) are counted, not recorded.
 * The tool behind us does not see extended calls. */
#include "inject/nvtx/nvtx.h"

static void mark_payload(nvtxDomainHandle_t domain, const nvtxPayloadData_t *data, size_t n)
{
    struct nvtx_event e;
    struct nvtx_domain *d = nvtx_domain_of(domain);
    nvtx_event_init(&e, d, "");
    nvtx_event_payload(&e, d, data, n);
    nvtx_mark(&e);
}

static int push_payload(nvtxDomainHandle_t domain, const nvtxPayloadData_t *data, size_t n)
{
    struct nvtx_event e;
    struct nvtx_domain *d = nvtx_domain_of(domain);
    nvtx_event_init(&e, d, "");
    nvtx_event_payload(&e, d, data, n);
    return nvtx_push(&e);
}

static const struct stave_args *read_args(struct nvtx_domain *d, const nvtxPayloadData_t *data,
                                          size_t n)
{
    char message[NVTX_TEXT_MAX];
    struct stave_args *args = n ? nvtx_args() : NULL;
    if (args && nvtx_payload_read(d, "end payload", data, n, args, message, sizeof message))
        stave_args_text(args, "message", message); /* the range has its name already */
    return args;
}

static int pop_payload(nvtxDomainHandle_t domain, const nvtxPayloadData_t *data, size_t n)
{
    struct nvtx_domain *d = nvtx_domain_of(domain);
    return nvtx_pop(d, read_args(d, data, n));
}

static nvtxRangeId_t start_payload(nvtxDomainHandle_t domain, const nvtxPayloadData_t *data,
                                   size_t n)
{
    struct nvtx_event e;
    struct nvtx_domain *d = nvtx_domain_of(domain);
    nvtx_event_init(&e, d, "");
    nvtx_event_payload(&e, d, data, n);
    return nvtx_start(&e, 0);
}

static void end_payload(nvtxDomainHandle_t domain, nvtxRangeId_t id, const nvtxPayloadData_t *data,
                        size_t n)
{
    nvtx_end(id, read_args(nvtx_domain_of(domain), data, n));
}

static uint8_t is_enabled(nvtxDomainHandle_t domain)
{
    return !nvtx_domain_of(domain)->is_off && stave_enabled(NVTX_CATEGORY);
}

static uint64_t scope_register(nvtxDomainHandle_t domain, const nvtxScopeAttr_t *attr)
{
    (void)domain;
    return attr && attr->scopeId ? attr->scopeId : NVTX_SCOPE_ID_DYNAMIC_START;
}

static int64_t timestamp(void)
{
    return stave_now_ns();
}

static void deferred(void)
{
    nvtx_lost(NVTX_LOST_DEFERRED);
}

#define AT(name, function) [NVTX3EXT_CBID_nvtx##name] = (intptr_t)(function)

static const intptr_t payload_slots[] = {
    AT(PayloadSchemaRegister, nvtx_schema_register),
    AT(PayloadEnumRegister, nvtx_enum_register),
    AT(MarkPayload, mark_payload),
    AT(RangePushPayload, push_payload),
    AT(RangePopPayload, pop_payload),
    AT(RangeStartPayload, start_payload),
    AT(RangeEndPayload, end_payload),
    AT(DomainIsEnabled, is_enabled),
    AT(ScopeRegister, scope_register),
    AT(TimestampGet, timestamp),
    AT(EventSubmit, deferred),
    AT(EventBatchSubmit, deferred),
};

static const intptr_t counter_slots[] = {
    AT(CounterRegister, nvtx_counter_register),
    AT(CounterSampleInt64, nvtx_counter_int),
    AT(CounterSampleFloat64, nvtx_counter_double),
    AT(CounterSample, nvtx_counter_sample),
    AT(CounterBatchSubmit, deferred),
};

/* Only the slots that both sides know. */
static void fill(const nvtxExtModuleInfo_t *info, const intptr_t *ours, size_t n)
{
    for (size_t s = 0; s < info->segmentsCount && s < 1; s++)
        for (size_t i = 0; i < n && i < info->segments[s].slotCount; i++)
            if (ours[i])
                info->segments[s].functionSlots[i] = ours[i];
}

void nvtx_extension_fill(const nvtxExtModuleInfo_t *info)
{
    if (!info || info->structSize < sizeof *info || !info->segments)
        return;
    if (info->moduleId == NVTX_EXT_PAYLOAD_MODULEID)
        fill(info, payload_slots, sizeof payload_slots / sizeof *payload_slots);
    else if (info->moduleId == NVTX_EXT_COUNTERS_MODULEID)
        fill(info, counter_slots, sizeof counter_slots / sizeof *counter_slots);
}
