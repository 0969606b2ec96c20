/* Field numbers of Perfetto's track events and descriptors of tracks. Included by
 * core/perfetto/proto.h. */
#pragma once

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
