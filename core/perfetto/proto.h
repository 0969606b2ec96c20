/* Field numbers and enum values of Perfetto's trace protobufs, as far as Stave reads or writes
 * them.
 *
 * One enum per message, SV_PF_<message>_<field>; the comment names the wire type where it is not a
 * varint. The reader and the writer share them. Here are packets, clocks, interned data, process
 * lists, metadata and statistics; track events and descriptors of tracks are in
 * core/perfetto/proto_event.h, messages about GPUs in core/perfetto/proto_gpu.h. */
#pragma once

#include "core/perfetto/payloads.h"
#include "core/perfetto/proto_event.h"

enum { SV_PF_TRACE_PACKET = 1 }; /* Trace: every packet of the file */

/* TracePacket: the fields beside the payload. */
enum {
    SV_PF_PACKET_TRUSTED_UID = 3,
    SV_PF_PACKET_TIMESTAMP = 8,
    SV_PF_PACKET_SEQUENCE_ID = 10,
    SV_PF_PACKET_INTERNED_DATA = 12, /* message */
    SV_PF_PACKET_SEQUENCE_FLAGS = 13,
    SV_PF_PACKET_STATE_CLEARED = 41, /* bool, the old form of SV_PF_SEQ_CLEARED */
    SV_PF_PACKET_PREVIOUS_DROPPED = 42,
    SV_PF_PACKET_CLOCK_ID = 58,
    SV_PF_PACKET_DEFAULTS = 59, /* message */
    SV_PF_PACKET_TRUSTED_PID = 79,
    SV_PF_PACKET_FIRST_ON_SEQUENCE = 87,
    SV_PF_PACKET_MACHINE_ID = 98
};
enum { SV_PF_SEQ_CLEARED = 1, SV_PF_SEQ_NEEDS_STATE = 2 }; /* sequence_flags */

enum { SV_PF_DEFAULTS_TRACK_EVENT = 11, SV_PF_DEFAULTS_CLOCK_ID = 58 }; /* TracePacketDefaults */

/* ClockSnapshot, ClockSnapshot.Clock, RemoteClockSync. Clock numbers: enum sv_clock; 64..127 belong
 * to one sequence. */
enum { SV_PF_SNAPSHOT_CLOCKS = 1, SV_PF_SNAPSHOT_PRIMARY = 2 };
enum {
    SV_PF_CLOCK_ID = 1,
    SV_PF_CLOCK_TIMESTAMP,
    SV_PF_CLOCK_IS_INCREMENTAL,
    SV_PF_CLOCK_MULTIPLIER_NS
};
enum { SV_PF_REMOTE_SYNCED = 1, SV_PF_SYNCED_CLIENT = 2, SV_PF_SYNCED_HOST = 3 };
enum { SV_PF_CLOCK_SEQUENCE_FIRST = 64, SV_PF_CLOCK_SEQUENCE_LAST = 127 };

/* InternedData: every list is repeated {1 iid, 2 text …}; the others are named. */
enum { SV_PF_INTERNED_IID = 1, SV_PF_INTERNED_TEXT = 2 };
enum {
    SV_PF_INTERNED_CATEGORIES = 1,
    SV_PF_INTERNED_NAMES = 2,
    SV_PF_INTERNED_ANNOTATION_NAMES = 3,
    SV_PF_INTERNED_SOURCE_LOCATIONS = 4, /* SourceLocation */
    SV_PF_INTERNED_FUNCTIONS = 5,
    SV_PF_INTERNED_FRAMES = 6,     /* Frame */
    SV_PF_INTERNED_CALLSTACKS = 7, /* Callstack: 1 iid, 2 repeated frame iid */
    SV_PF_INTERNED_BUILD_IDS = 16,
    SV_PF_INTERNED_MAPPING_PATHS = 17,
    SV_PF_INTERNED_SOURCE_PATHS = 18,
    SV_PF_INTERNED_MAPPINGS = 19, /* Mapping: 1 iid, 7 repeated path iid */
    SV_PF_INTERNED_LOG_BODIES = 20,
    SV_PF_INTERNED_GRAPHICS_CONTEXTS = 23, /* 1 iid, 2 pid, 3 api */
    SV_PF_INTERNED_GPU_SPECS = 24,         /* 1 iid, 2 name, 3 description, 4 category */
    SV_PF_INTERNED_ANNOTATION_TYPES = 27,
    SV_PF_INTERNED_ANNOTATION_STRINGS = 29,
    SV_PF_INTERNED_CORRELATION_STRINGS = 43,
    SV_PF_INTERNED_GPU_COUNTERS = 47,      /* 1 iid, 2 GpuCounterDescriptor, 3 gpu id */
    SV_PF_INTERNED_COMPUTE_KERNELS = 1000, /* 1 iid, 2 name, 3 demangled, 4 arch, 5 args */
    SV_PF_INTERNED_COMPUTE_ARG_NAMES = 1001
};
enum {
    SV_PF_FRAME_FUNCTION_IID = 2,
    SV_PF_FRAME_MAPPING_IID,
    SV_PF_FRAME_REL_PC,
    SV_PF_FRAME_SOURCE_IID,
    SV_PF_FRAME_LINE
};
enum { SV_PF_MAPPING_PATH_IIDS = 7 };

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
enum { SV_PF_STATS_OOM_SCORE_ADJ = 10, SV_PF_STATS_USER_TIME = 21, SV_PF_STATS_KERNEL_TIME = 22 };

/* Metadata */
enum { SV_PF_UUID_MSB = 1, SV_PF_UUID_LSB = 2 }; /* TraceUuid */
enum { SV_PF_ATTRIBUTES_LIST = 1 };              /* TraceAttributes */
enum { SV_PF_ATTRIBUTE_KEY = 1, SV_PF_ATTRIBUTE_LONG = 2, SV_PF_ATTRIBUTE_STRING = 3 };
enum { SV_PF_CONFIG_UNIQUE_SESSION_NAME = 22 }; /* TraceConfig */
enum { SV_PF_CHROME_TRIGGER_NAME = 1, SV_PF_CHROME_TRIGGER_HASH, SV_PF_CHROME_TRIGGER_FLOW };
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
    SV_PF_TRACE_STATS_FLUSHES_FAILED = 14,
    SV_PF_TRACE_STATS_WRITERS = 18
};
enum { SV_PF_WRITER_SEQUENCE_ID = 1, SV_PF_WRITER_BUFFER = 4 };
enum {
    SV_PF_BUFFER_CHUNKS_OVERWRITTEN = 3,
    SV_PF_BUFFER_PATCHES_FAILED = 6,
    SV_PF_BUFFER_ABI_VIOLATIONS = 9,
    SV_PF_BUFFER_BYTES_OVERWRITTEN = 13,
    SV_PF_BUFFER_CHUNKS_DISCARDED = 18,
    SV_PF_BUFFER_PACKET_LOSS = 19
};
