/* The NVTX injection library, inside: what its files know of each other.
 *
 * A program calls NVTX; NVTX calls the functions of nvtx_callbacks.c through its tables, which
 * nvtx_entry.c filled. Texts become names (nvtx_names.c), names become call places of the SDK, one
 * per kind of event and set of arguments, so that a range costs a lookup and a record of 16 bytes.
 * Everything here may be called from any thread; nothing here calls NVTX. */
#pragma once

#include <stave/stave.h>
#include <wchar.h>

#define NVTX_NO_IMPL
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtCounters.h>
#include <nvtx3/nvToolsExtPayload.h>

#define NVTX_CATEGORY "user_annotation" /* as PyTorch's own traces call ranges of the user */

enum {
    NVTX_TEXT_MAX = 1000, /* of a name that is remembered; longer ones travel with each event */
    NVTX_NAMES_MAX = 16384,
    NVTX_DEPTH_MAX = 256,  /* open ranges of a thread */
    NVTX_OPEN_MAX = 65536, /* open start/end ranges of the process */
    NVTX_VALUES_MAX = 12
};

/* Which arguments an event has: the shape of its call place. */
enum nvtx_shape {
    NVTX_DOMAIN = 1,
    NVTX_CATEGORY_NAME = 2,
    NVTX_CATEGORY_NUMBER = 4,
    NVTX_COLOR = 8,
    NVTX_INT = 16,
    NVTX_UINT = 32,
    NVTX_DOUBLE = 64,
    NVTX_EXTENDED = 128, /* arguments of a payload with a schema */
    NVTX_STARTED_ON = 256,
    NVTX_EXTENDED_END = 512,
    NVTX_CONTINUED = 1024,
    NVTX_UNFINISHED = 2048,
    NVTX_DYNAMIC = 4096 /* the name is not remembered */
};

struct nvtx_site {
    struct stave_site site; /* first */
    struct nvtx_site *next;
    uint32_t shape;
    uint8_t types[NVTX_VALUES_MAX];
    const char *keys[NVTX_VALUES_MAX + 1];
};

/* A text of a domain, for the life of the process. A registered string is one, too. */
struct nvtx_name {
    uint64_t hash;
    struct nvtx_domain *domain;
    struct nvtx_site *sites[STAVE_KIND_COMPLETE + 1]; /* by kind; published by a release store */
    nvtxStringHandle_t next;                          /* what the next tool calls it */
    uint32_t len;
    char text[];
};

struct nvtx_category {
    struct nvtx_category *next;
    uint32_t id;
    char name[];
};

struct nvtx_domain {
    struct nvtx_domain *next_domain;
    nvtxDomainHandle_t next; /* what the next tool calls it */
    struct nvtx_category *categories[64];
    struct nvtx_name *anonymous; /* for names that are not remembered */
    struct nvtx_schema *schemas;
    stave_track_t ranges;     /* of start/end ranges; 0: none yet */
    struct nvtx_lanes *lanes; /* below it, by the thread that starts them */
    bool is_default, is_off;
    const char *name;
};

/* An event on its way: a name and the words of its arguments, in the order of the bits of its
 * shape. */
struct nvtx_event {
    struct nvtx_domain *domain;
    struct nvtx_name *name; /* NULL: `text` */
    const char *text;
    uint32_t shape, n;
    uint64_t values[NVTX_VALUES_MAX];
    char color[16], narrow[NVTX_TEXT_MAX + 4];
};

/* ---- nvtx_names.c ---- */

struct nvtx_domain *nvtx_domain_of(nvtxDomainHandle_t handle); /* NULL: the default one */
struct nvtx_domain *nvtx_domain_make(const char *name);
void nvtx_category_name(struct nvtx_domain *d, uint32_t id, const char *name);
const char *nvtx_category_find(const struct nvtx_domain *d, uint32_t id);
/* NULL: too many or too long, or another thread is making one right now. */
struct nvtx_name *nvtx_name_find(struct nvtx_domain *d, const char *text);
/* The call place for these events, NULL without memory. */
struct stave_site *nvtx_site_of(struct nvtx_event *e, enum stave_kind kind);
/* Wide text as UTF-8, cut to fit. */
const char *nvtx_narrow(const wchar_t *wide, char *out, size_t size);

/* ---- nvtx_payload.c ---- */

uint64_t nvtx_schema_register(nvtxDomainHandle_t domain, const nvtxPayloadSchemaAttr_t *attr);
uint64_t nvtx_enum_register(nvtxDomainHandle_t domain, const nvtxPayloadEnumAttr_t *attr);
/* Adds the values of the payloads to `args` as `key`, `key 2`, … The message among them, if there
 * is one, is the result (in `message`). */
const char *nvtx_payload_read(struct nvtx_domain *d, const char *key, const nvtxPayloadData_t *data,
                              size_t n, struct stave_args *args, char *message,
                              size_t message_size);
/* The name of the schema of the first payload, NULL without one. */
const char *nvtx_payload_name(struct nvtx_domain *d, const nvtxPayloadData_t *data, size_t n);

/* ---- nvtx_events.c ---- */

void nvtx_event_init(struct nvtx_event *e, struct nvtx_domain *d, const char *text);
/* Reads no more than the attributes' own size says. */
void nvtx_event_read(struct nvtx_event *e, struct nvtx_domain *d, const nvtxEventAttributes_t *a);
void nvtx_event_payload(struct nvtx_event *e, struct nvtx_domain *d, const nvtxPayloadData_t *data,
                        size_t n);
void nvtx_mark(struct nvtx_event *e);
int nvtx_push(struct nvtx_event *e); /* the level of the range, from 0 */
int nvtx_push_text(struct nvtx_domain *d, const char *text);
int nvtx_pop(struct nvtx_domain *d, const struct stave_args *more); /* its level, negative: none */
uint32_t nvtx_tid(void);
/* The words of a call place: first what its kind needs, then the name if it is not remembered, then
 * the arguments. Returns the session, 0 when nothing was recorded. */
uint32_t nvtx_record(struct nvtx_event *e, enum stave_kind kind, const uint64_t *first,
                     unsigned n_first);
static inline void nvtx_event_add(struct nvtx_event *e, uint32_t shape, uint64_t value)
{
    e->shape |= shape;
    e->values[e->n++] = value;
}
void nvtx_thread_name(uint32_t tid, const char *name);
void nvtx_object_name(const char *kind, uint64_t handle, const char *name);
/* What could not be recorded, by cause: reported once, at the end. */
enum nvtx_loss {
    NVTX_LOST_DEPTH,
    NVTX_LOST_OPEN,
    NVTX_LOST_MEMORY,
    NVTX_LOST_DEFERRED,
    NVTX_LOSSES
};
void nvtx_lost(enum nvtx_loss cause);
struct stave_args *nvtx_args(void); /* this thread's, emptied; NULL without memory */
void nvtx_events_init(void);

/* ---- nvtx_ranges.c ---- */

nvtxRangeId_t nvtx_start(struct nvtx_event *e, nvtxRangeId_t next_id);
/* Returns what the next tool calls it. */
nvtxRangeId_t nvtx_end(nvtxRangeId_t id, const struct stave_args *more);
void nvtx_ranges_finish(void);
void nvtx_ranges_forked(void);

/* ---- nvtx_counters.c ---- */

uint64_t nvtx_counter_register(nvtxDomainHandle_t domain, const nvtxCounterAttr_t *attr);
void nvtx_counter_int(nvtxDomainHandle_t domain, uint64_t id, int64_t value);
void nvtx_counter_double(nvtxDomainHandle_t domain, uint64_t id, double value);
void nvtx_counter_sample(nvtxDomainHandle_t domain, uint64_t id, const void *values, size_t size);

/* ---- nvtx_callbacks.c, nvtx_extension.c: our functions, by the number that NVTX gives them
 * ---- */

struct nvtx_table {
    unsigned n;
    const NvtxFunctionPointer *ours;
    NvtxFunctionPointer *next; /* of the tool behind us, where there is one */
};
const struct nvtx_table *nvtx_table_of(NvtxCallbackModule module);
extern bool nvtx_has_next;
void nvtx_extension_fill(const nvtxExtModuleInfo_t *info);
