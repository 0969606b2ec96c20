/* Field numbers of Perfetto's messages about GPUs. See core/perfetto/proto.h. */
#pragma once

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
