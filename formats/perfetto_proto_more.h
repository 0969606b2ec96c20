/* Field numbers of Perfetto's packets beside track events: process lists, metadata, statistics, GPU. See perfetto_proto.h. */
#ifndef SV_FORMATS_PERFETTO_PROTO_MORE_H
#define SV_FORMATS_PERFETTO_PROTO_MORE_H

/* ProcessTree and ProcessStats */
enum { SV_PF_TREE_PROCESSES = 1, SV_PF_TREE_THREADS = 2 };
enum {
    SV_PF_TREE_PID = 1,
    SV_PF_TREE_PPID = 2,
    SV_PF_TREE_CMDLINE = 3, /* repeated string */
    SV_PF_TREE_UID = 5,
    SV_PF_TREE_START_FROM_BOOT = 7,
    SV_PF_TREE_IS_KTHREAD = 8,
    SV_PF_TREE_CMDLINE_IS_COMM = 9
};
enum { SV_PF_TREE_TID = 1, SV_PF_TREE_THREAD_NAME = 2, SV_PF_TREE_TGID = 3 };
enum { SV_PF_STATS_PROCESSES = 1, SV_PF_STATS_PID = 1, SV_PF_STATS_THREADS = 11 };
#define SV_PF_STATS_KB_COUNTERS(                                                               \
    X) /* field of ProcessStats.Process in kilobytes, name of its counter in Perfetto */       \
    X(2, "mem.virt")                                                                           \
    X(3, "mem.rss")                                                                            \
    X(4, "mem.rss.anon") X(5, "mem.rss.file") X(6, "mem.rss.shmem") X(7, "mem.swap")           \
        X(8, "mem.locked") X(9, "mem.rss.watermark") X(13, "chrome.private_footprint_kb")      \
            X(14, "chrome.peak_resident_set_kb") X(16, "mem.smaps.rss") X(17, "mem.smaps.pss") \
                X(18, "mem.smaps.pss.anon") X(19, "mem.smaps.pss.file")                        \
                    X(20, "mem.smaps.pss.shmem") X(23, "mem.smaps.swap.pss")                   \
                        X(24, "mem.dmabuf_rss")
enum { SV_PF_STATS_OOM_SCORE_ADJ = 10, SV_PF_STATS_USER_TIME = 21, SV_PF_STATS_KERNEL_TIME = 22 };

/* Metadata */
enum { SV_PF_UUID_MSB = 1, SV_PF_UUID_LSB = 2 }; /* TraceUuid */
enum { SV_PF_ATTRIBUTES_LIST = 1 };              /* TraceAttributes */
enum { SV_PF_ATTRIBUTE_KEY = 1, SV_PF_ATTRIBUTE_LONG = 2, SV_PF_ATTRIBUTE_STRING = 3 };
enum { SV_PF_CONFIG_UNIQUE_SESSION_NAME = 22 }; /* TraceConfig */
enum { SV_PF_TRIGGER_NAME = 1, SV_PF_TRIGGER_PRODUCER = 2, SV_PF_TRIGGER_UID = 3 };
enum {
    SV_PF_UTSNAME_SYSNAME = 1,
    SV_PF_UTSNAME_VERSION,
    SV_PF_UTSNAME_RELEASE,
    SV_PF_UTSNAME_MACHINE
};
enum {
    SV_PF_SYSTEM_UTSNAME = 1, /* message */
    SV_PF_SYSTEM_FINGERPRINT = 2,
    SV_PF_SYSTEM_HZ = 3,
    SV_PF_SYSTEM_SERVICE_VERSION = 4,
    SV_PF_SYSTEM_PAGE_SIZE = 6,
    SV_PF_SYSTEM_TIMEZONE_OFF_MINS = 7,
    SV_PF_SYSTEM_NUM_CPUS = 8,
    SV_PF_SYSTEM_RAM_BYTES = 16,
    SV_PF_SYSTEM_MACHINE_NAME = 17
};
enum {
    SV_PF_BUNDLE_TRACE_EVENTS = 1,
    SV_PF_BUNDLE_METADATA = 2,
    SV_PF_BUNDLE_FTRACE = 4,
    SV_PF_BUNDLE_JSON = 5
};
enum {
    SV_PF_META_NAME = 1,
    SV_PF_META_STRING,
    SV_PF_META_BOOL,
    SV_PF_META_INT,
    SV_PF_META_JSON
}; /* ChromeMetadata */
enum {
    SV_PF_CHROME_VERSION_CODE = 2,
    SV_PF_CHROME_CATEGORIES = 3,
    SV_PF_CHROME_PACKAGE = 5,
    SV_PF_CHROME_VERSION = 6,
    SV_PF_CHROME_OS = 8
};

/* TraceStats and TraceStats.BufferStats: what was lost while recording */
enum {
    SV_PF_TRACE_STATS_BUFFERS = 1,
    SV_PF_TRACE_STATS_CHUNKS_DISCARDED = 8,
    SV_PF_TRACE_STATS_PATCHES_DISCARDED = 9,
    SV_PF_TRACE_STATS_INVALID_PACKETS = 10,
    SV_PF_TRACE_STATS_FLUSHES_FAILED = 14
};
enum {
    SV_PF_BUFFER_CHUNKS_OVERWRITTEN = 3,
    SV_PF_BUFFER_PATCHES_FAILED = 6,
    SV_PF_BUFFER_ABI_VIOLATIONS = 9,
    SV_PF_BUFFER_BYTES_OVERWRITTEN = 13,
    SV_PF_BUFFER_CHUNKS_DISCARDED = 18,
    SV_PF_BUFFER_PACKET_LOSS = 19
};

/* GpuRenderStageEvent and its parts */
enum {
    SV_PF_STAGE_EVENT_ID = 1,
    SV_PF_STAGE_DURATION = 2,
    SV_PF_STAGE_HW_QUEUE_ID = 3, /* old: index into specifications */
    SV_PF_STAGE_STAGE_ID = 4,    /* old */
    SV_PF_STAGE_CONTEXT = 5,
    SV_PF_STAGE_EXTRA_DATA = 6,     /* repeated message: 1 name, 2 value */
    SV_PF_STAGE_SPECIFICATIONS = 7, /* message, old */
    SV_PF_STAGE_RENDER_TARGET = 8,
    SV_PF_STAGE_RENDER_PASS = 9,
    SV_PF_STAGE_SUBMISSION_ID = 10,
    SV_PF_STAGE_GPU_ID = 11,
    SV_PF_STAGE_COMMAND_BUFFER = 12,
    SV_PF_STAGE_HW_QUEUE_IID = 13,
    SV_PF_STAGE_STAGE_IID = 14,
    SV_PF_STAGE_SUBPASS_MASK = 15, /* repeated */
    SV_PF_STAGE_RENDER_PASS_INSTANCE = 16,
    SV_PF_STAGE_NAME = 17,     /* string */
    SV_PF_STAGE_WAIT_IDS = 18, /* repeated */
    SV_PF_STAGE_KERNEL_IID = 19,
    SV_PF_STAGE_NAME_IID = 20,
    SV_PF_STAGE_LAUNCH =
        21 /* message: 1 grid, 2 workgroup (each 1 x, 2 y, 3 z), 3 repeated ExtraComputeArg */
};
enum { SV_PF_LAUNCH_GRID = 1, SV_PF_LAUNCH_WORKGROUP = 2, SV_PF_LAUNCH_ARGS = 3 };
enum {
    SV_PF_KARG_NAME_IID = 1,
    SV_PF_KARG_NAME,
    SV_PF_KARG_INT,
    SV_PF_KARG_UINT,
    SV_PF_KARG_DOUBLE,
    SV_PF_KARG_STRING,
    SV_PF_KARG_STRING_IID
};
enum { SV_PF_SPECS_CONTEXT = 1, SV_PF_SPECS_HW_QUEUE = 2, SV_PF_SPECS_STAGE = 3 };
enum { SV_PF_SPEC_NAME = 1, SV_PF_SPEC_DESCRIPTION = 2 };
enum { SV_PF_KERNEL_NAME = 2, SV_PF_KERNEL_DEMANGLED, SV_PF_KERNEL_ARCH, SV_PF_KERNEL_ARGS };
enum { SV_PF_GPU_SPEC_NAME = 2, SV_PF_GPU_SPEC_DESCRIPTION, SV_PF_GPU_SPEC_CATEGORY };
enum { SV_PF_GPU_CONTEXT_PID = 2, SV_PF_GPU_CONTEXT_API = 3 };

/* GpuCounterEvent, GpuCounterDescriptor and its GpuCounterSpec */
enum {
    SV_PF_GPU_COUNTER_DESCRIPTOR = 1,
    SV_PF_GPU_COUNTER_VALUES,
    SV_PF_GPU_COUNTER_GPU_ID,
    SV_PF_GPU_COUNTER_DESCRIPTOR_IID
};
enum { SV_PF_GPU_VALUE_ID = 1, SV_PF_GPU_VALUE_INT = 2, SV_PF_GPU_VALUE_DOUBLE = 3 };
enum { SV_PF_GPU_DESCRIPTOR_SPECS = 1 };
enum {
    SV_PF_GPU_CSPEC_ID = 1,
    SV_PF_GPU_CSPEC_NAME = 2,
    SV_PF_GPU_CSPEC_DESCRIPTION = 3,
    SV_PF_GPU_CSPEC_NUMERATOR = 7,
    SV_PF_GPU_CSPEC_DENOMINATOR = 8
};

enum { SV_PF_GPU_FREQUENCY_ID = 1, SV_PF_GPU_FREQUENCY_KHZ = 2 }; /* GenericGpuFrequencyEvent */
enum { SV_PF_GPU_MEM_ID = 1, SV_PF_GPU_MEM_PID = 2, SV_PF_GPU_MEM_SIZE = 3 }; /* GpuMemTotalEvent */
enum { SV_PF_GPU_LOG_SEVERITY = 1, SV_PF_GPU_LOG_TAG = 2, SV_PF_GPU_LOG_MESSAGE = 3 }; /* GpuLog */
enum { SV_PF_GPU_INFO_GPUS = 1 };                                                      /* GpuInfo */
enum {
    SV_PF_GPU_NAME = 1,
    SV_PF_GPU_VENDOR,
    SV_PF_GPU_MODEL,
    SV_PF_GPU_ARCHITECTURE,
    SV_PF_GPU_UUID,
    SV_PF_GPU_EXTRA,
    SV_PF_GPU_PCI
};

#endif
