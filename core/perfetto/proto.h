/* Field numbers and enum values of Perfetto's trace protobufs, as far as Stave reads or writes them.
 *
 * One enum per message, SV_PF_<message>_<field>; the comment names the wire type where it is not a varint. Shared by
 * the reader and the writer, so a number exists once. */
#ifndef SV_CORE_PERFETTO_PROTO_H
#define SV_CORE_PERFETTO_PROTO_H

#include "core/perfetto/payloads.h"

enum { SV_PF_TRACE_PACKET = 1 }; /* Trace: every packet of the file */

/* TracePacket: what rides beside the payload. */
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

/* ClockSnapshot, ClockSnapshot.Clock, RemoteClockSync. Clock numbers: enum sv_clock; 64..127 belong to one sequence. */
enum { SV_PF_SNAPSHOT_CLOCKS = 1, SV_PF_SNAPSHOT_PRIMARY = 2 };
enum {
    SV_PF_CLOCK_ID = 1,
    SV_PF_CLOCK_TIMESTAMP,
    SV_PF_CLOCK_IS_INCREMENTAL,
    SV_PF_CLOCK_MULTIPLIER_NS
};
enum { SV_PF_REMOTE_SYNCED = 1, SV_PF_SYNCED_CLIENT = 2, SV_PF_SYNCED_HOST = 3 };
enum { SV_PF_CLOCK_SEQUENCE_FIRST = 64, SV_PF_CLOCK_SEQUENCE_LAST = 127 };

/* TrackEvent; TrackEventDefaults uses the numbers 11, 31, 45 of it. */
enum {
    SV_PF_EVENT_TIMESTAMP_DELTA_US = 1,
    SV_PF_EVENT_THREAD_TIME_DELTA_US = 2,
    SV_PF_EVENT_CATEGORY_IIDS = 3,     /* repeated, may be packed */
    SV_PF_EVENT_DEBUG_ANNOTATIONS = 4, /* repeated message */
    SV_PF_EVENT_TASK_EXECUTION = 5,    /* message */
    SV_PF_EVENT_LEGACY_EVENT = 6,      /* message */
    SV_PF_EVENT_INSTRUCTIONS_DELTA = 8,
    SV_PF_EVENT_TYPE = 9,
    SV_PF_EVENT_NAME_IID = 10,
    SV_PF_EVENT_TRACK_UUID = 11,
    SV_PF_EVENT_EXTRA_COUNTER_VALUES = 12, /* repeated, may be packed */
    SV_PF_EVENT_TIMESTAMP_ABSOLUTE_US = 16,
    SV_PF_EVENT_THREAD_TIME_ABSOLUTE_US = 17,
    SV_PF_EVENT_INSTRUCTIONS_ABSOLUTE = 20,
    SV_PF_EVENT_LOG_MESSAGE = 21, /* message */
    SV_PF_EVENT_CATEGORIES = 22,  /* repeated string */
    SV_PF_EVENT_NAME = 23,        /* string */
    SV_PF_EVENT_COUNTER_VALUE = 30,
    SV_PF_EVENT_EXTRA_COUNTER_UUIDS = 31, /* repeated, may be packed */
    SV_PF_EVENT_SOURCE_LOCATION = 33,     /* message */
    SV_PF_EVENT_SOURCE_LOCATION_IID = 34,
    SV_PF_EVENT_FLOW_IDS_OLD = 36,         /* repeated varint */
    SV_PF_EVENT_END_FLOW_IDS_OLD = 42,     /* repeated varint */
    SV_PF_EVENT_DOUBLE_COUNTER_VALUE = 44, /* double */
    SV_PF_EVENT_EXTRA_DOUBLE_COUNTER_UUIDS = 45,
    SV_PF_EVENT_EXTRA_DOUBLE_COUNTER_VALUES = 46, /* repeated double */
    SV_PF_EVENT_FLOW_IDS = 47,                    /* repeated fixed64 */
    SV_PF_EVENT_END_FLOW_IDS = 48,                /* repeated fixed64 */
    SV_PF_EVENT_SCREENSHOT = 50,                  /* message: bytes jpg_image = 1 */
    SV_PF_EVENT_CORRELATION_ID = 52,
    SV_PF_EVENT_CORRELATION_STR = 53, /* string */
    SV_PF_EVENT_CORRELATION_STR_IID = 54,
    SV_PF_EVENT_CALLSTACK = 55, /* message */
    SV_PF_EVENT_CALLSTACK_IID = 56,
    SV_PF_EVENT_CALLSTACK_WEIGHT = 57,  /* double */
    SV_PF_EVENT_GPU_CORRELATION = 3000, /* message: 1 submission ids, 2 wait ids */
    SV_PF_EVENT_GPU_API = 3001
};
enum {
    SV_PF_TYPE_UNSPECIFIED = 0,
    SV_PF_TYPE_BEGIN,
    SV_PF_TYPE_END,
    SV_PF_TYPE_INSTANT,
    SV_PF_TYPE_COUNTER,
    SV_PF_TYPE_STATE
};

enum { SV_PF_GPU_SUBMISSION_IDS = 1, SV_PF_GPU_WAIT_IDS = 2 }; /* GpuCorrelation, both repeated */

/* TrackEvent.LegacyEvent */
enum {
    SV_PF_LEGACY_NAME_IID = 1,
    SV_PF_LEGACY_PHASE = 2,
    SV_PF_LEGACY_DURATION_US = 3,
    SV_PF_LEGACY_THREAD_DURATION_US = 4,
    SV_PF_LEGACY_UNSCOPED_ID = 6,
    SV_PF_LEGACY_ID_SCOPE = 7, /* string */
    SV_PF_LEGACY_BIND_ID = 8,
    SV_PF_LEGACY_USE_ASYNC_TTS = 9,
    SV_PF_LEGACY_LOCAL_ID = 10,
    SV_PF_LEGACY_GLOBAL_ID = 11,
    SV_PF_LEGACY_BIND_TO_ENCLOSING = 12,
    SV_PF_LEGACY_FLOW_DIRECTION = 13,
    SV_PF_LEGACY_INSTANT_SCOPE = 14,
    SV_PF_LEGACY_THREAD_INSTRUCTION_DELTA = 15,
    SV_PF_LEGACY_PID_OVERRIDE = 18,
    SV_PF_LEGACY_TID_OVERRIDE = 19
};
enum { SV_PF_FLOW_IN = 1, SV_PF_FLOW_OUT = 2, SV_PF_FLOW_INOUT = 3 };
enum { SV_PF_SCOPE_GLOBAL = 1, SV_PF_SCOPE_PROCESS = 2, SV_PF_SCOPE_THREAD = 3 };

/* DebugAnnotation, and its old nested form DebugAnnotation.NestedValue */
enum {
    SV_PF_ANN_NAME_IID = 1,
    SV_PF_ANN_BOOL = 2,
    SV_PF_ANN_UINT = 3,
    SV_PF_ANN_INT = 4,
    SV_PF_ANN_DOUBLE = 5, /* double */
    SV_PF_ANN_STRING = 6, /* string */
    SV_PF_ANN_POINTER = 7,
    SV_PF_ANN_NESTED = 8, /* NestedValue */
    SV_PF_ANN_JSON = 9,   /* string */
    SV_PF_ANN_NAME = 10,  /* string */
    SV_PF_ANN_DICT = 11,  /* repeated DebugAnnotation */
    SV_PF_ANN_ARRAY = 12, /* repeated DebugAnnotation */
    SV_PF_ANN_PROTO_TYPE_IID = 13,
    SV_PF_ANN_PROTO_VALUE = 14, /* bytes */
    SV_PF_ANN_PROTO_TYPE = 16,  /* string */
    SV_PF_ANN_STRING_IID = 17
};
enum {
    SV_PF_NESTED_TYPE = 1,
    SV_PF_NESTED_DICT_KEYS,    /* repeated string */
    SV_PF_NESTED_DICT_VALUES,  /* repeated NestedValue */
    SV_PF_NESTED_ARRAY_VALUES, /* repeated NestedValue */
    SV_PF_NESTED_INT,
    SV_PF_NESTED_DOUBLE, /* double */
    SV_PF_NESTED_BOOL,
    SV_PF_NESTED_STRING /* string */
};
enum { SV_PF_NESTED_IS_DICT = 1, SV_PF_NESTED_IS_ARRAY = 2 };

/* Small typed messages of TrackEvent */
enum { SV_PF_TASK_POSTED_FROM_IID = 1 };
enum { SV_PF_LOG_SOURCE_IID = 1, SV_PF_LOG_BODY_IID, SV_PF_LOG_PRIORITY };
enum {
    SV_PF_SOURCE_IID = 1,
    SV_PF_SOURCE_FILE,
    SV_PF_SOURCE_FUNCTION,
    SV_PF_SOURCE_LINE
};                                                                        /* 2, 3: string */
enum { SV_PF_INLINE_FRAMES = 1 };                                         /* InlineCallstack */
enum { SV_PF_INLINE_FUNCTION = 1, SV_PF_INLINE_FILE, SV_PF_INLINE_LINE }; /* its Frame */

/* TrackDescriptor */
enum {
    SV_PF_TRACK_UUID = 1,
    SV_PF_TRACK_NAME = 2,    /* string */
    SV_PF_TRACK_PROCESS = 3, /* ProcessDescriptor */
    SV_PF_TRACK_THREAD = 4,  /* ThreadDescriptor */
    SV_PF_TRACK_PARENT_UUID = 5,
    SV_PF_TRACK_CHROME_PROCESS = 6,
    SV_PF_TRACK_CHROME_THREAD = 7,
    SV_PF_TRACK_COUNTER = 8, /* CounterDescriptor */
    SV_PF_TRACK_DISALLOW_MERGING = 9,
    SV_PF_TRACK_STATIC_NAME = 10,        /* string */
    SV_PF_TRACK_CHILD_ORDERING = 11,     /* the values are those of enum sv_child_order */
    SV_PF_TRACK_SIBLING_ORDER_RANK = 12, /* int32 */
    SV_PF_TRACK_ATRACE_NAME = 13,        /* string */
    SV_PF_TRACK_DESCRIPTION = 14,        /* string */
    SV_PF_TRACK_SIBLING_MERGE = 15,      /* the values are those of enum sv_sibling_merge */
    SV_PF_TRACK_MERGE_KEY = 16,          /* string */
    SV_PF_TRACK_MERGE_KEY_INT = 17,
    SV_PF_TRACK_STATE = 18, /* message, empty */
    SV_PF_TRACK_PROCESS_ORDERING = 19,
    SV_PF_TRACK_THREAD_ORDERING = 20
};
enum {
    SV_PF_PROCESS_PID = 1,
    SV_PF_PROCESS_CMDLINE = 2, /* repeated string */
    SV_PF_PROCESS_SORT_INDEX = 3,
    SV_PF_PROCESS_CHROME_TYPE = 4,
    SV_PF_PROCESS_PRIORITY = 5,
    SV_PF_PROCESS_NAME = 6, /* string */
    SV_PF_PROCESS_START_NS = 7,
    SV_PF_PROCESS_LABELS = 8 /* repeated string */
};
enum {
    SV_PF_THREAD_PID = 1,
    SV_PF_THREAD_TID = 2,
    SV_PF_THREAD_SORT_INDEX = 3,
    SV_PF_THREAD_CHROME_TYPE = 4,
    SV_PF_THREAD_NAME = 5, /* string */
    SV_PF_THREAD_REFERENCE_US = 6,
    SV_PF_THREAD_REFERENCE_THREAD_US = 7,
    SV_PF_THREAD_REFERENCE_INSTRUCTIONS = 8
};
enum {
    SV_PF_CHROME_PROCESS_TYPE = 1,
    SV_PF_CHROME_PROCESS_SORT_INDEX = 3,
    SV_PF_CHROME_PROCESS_PACKAGE = 4
};
enum { SV_PF_CHROME_THREAD_TYPE = 1, SV_PF_CHROME_THREAD_SORT_INDEX = 2 };
enum {
    SV_PF_COUNTER_TYPE = 1,
    SV_PF_COUNTER_CATEGORIES, /* repeated string */
    SV_PF_COUNTER_UNIT,
    SV_PF_COUNTER_MULTIPLIER,
    SV_PF_COUNTER_IS_INCREMENTAL,
    SV_PF_COUNTER_UNIT_NAME, /* string */
    SV_PF_COUNTER_SHARE_KEY  /* string */
};
enum { SV_PF_COUNTER_THREAD_TIME_NS = 1, SV_PF_COUNTER_THREAD_INSTRUCTIONS = 2 }; /* type */
enum {
    SV_PF_UNIT_UNSPECIFIED = 0,
    SV_PF_UNIT_TIME_NS,
    SV_PF_UNIT_COUNT,
    SV_PF_UNIT_BYTES
}; /* unit */

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

#endif
