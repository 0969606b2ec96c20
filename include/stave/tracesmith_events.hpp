/*
 * Stave for users of TraceSmith: its event types, with its names and numbers. Included by
 * perfetto_exporter.hpp.
 *
 * They are in namespace stave::tracesmith, and `tracesmith` is another name for it, so that code
 * written for TraceSmith compiles. Define STAVE_NO_TRACESMITH_NAMESPACE before the include where
 * TraceSmith's own headers are used, too.
 */
#ifndef STAVE_TRACESMITH_EVENTS_HPP
#define STAVE_TRACESMITH_EVENTS_HPP

#if __cplusplus < 201703L
#error "stave needs C++17 or newer: compile with -std=c++17"
#endif

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace stave::tracesmith
{

enum class EventType : std::uint8_t {
    Unknown,
    KernelLaunch,
    KernelComplete,
    MemcpyH2D,
    MemcpyD2H,
    MemcpyD2D,
    MemsetDevice,
    StreamSync,
    DeviceSync,
    EventRecord,
    EventSync,
    StreamCreate,
    StreamDestroy,
    ContextCreate,
    ContextDestroy,
    MemAlloc,
    MemFree,
    Marker,
    RangeStart,
    RangeEnd,
    NCCLStart,
    NCCLComplete,
    Custom = 255
};

enum class FlowType : std::uint8_t { None, FwdBwd, AsyncCpuGpu, Custom = 255 };

using Timestamp = std::uint64_t; /* ns */

/* The wall clock. */
inline Timestamp getCurrentTimestamp()
{
    std::timespec t = {};
    std::timespec_get(&t, TIME_UTC);
    return static_cast<Timestamp>(t.tv_sec) * 1000000000 + static_cast<Timestamp>(t.tv_nsec);
}

struct FlowInfo {
    std::uint64_t id = 0;
    FlowType type = FlowType::None;
    bool is_start = false;

    FlowInfo() = default;
    FlowInfo(std::uint64_t flow_id, FlowType flow_type, bool start)
        : id(flow_id), type(flow_type), is_start(start)
    {
    }
};

struct KernelParams {
    std::uint32_t grid_x = 0, grid_y = 0, grid_z = 0;
    std::uint32_t block_x = 0, block_y = 0, block_z = 0;
    std::uint32_t shared_mem_bytes = 0;
    std::uint32_t registers_per_thread = 0;
};

struct MemoryParams {
    std::uint64_t src_address = 0, dst_address = 0, size_bytes = 0;
};

struct StackFrame {
    std::uint64_t address = 0;
    std::string function_name, file_name;
    std::uint32_t line_number = 0;

    StackFrame() = default;
    StackFrame(std::uint64_t at) : address(at)
    {
    }
};

struct CallStack {
    std::vector<StackFrame> frames;
    std::uint64_t thread_id = 0;

    bool empty() const
    {
        return frames.empty();
    }
    std::size_t depth() const
    {
        return frames.size();
    }
};

struct TraceEvent {
    EventType type = EventType::Unknown;
    Timestamp timestamp = 0, duration = 0;
    std::uint32_t device_id = 0, stream_id = 0;
    std::uint64_t correlation_id = 0; /* 0: none */
    std::string name;
    std::uint32_t thread_id = 0; /* 0: unknown */
    std::map<std::string, std::string> metadata;
    FlowInfo flow_info; /* id 0: none */
    std::optional<KernelParams> kernel_params;
    std::optional<MemoryParams> memory_params;
    std::optional<CallStack> call_stack;
    std::vector<std::uint8_t> custom_data;

    TraceEvent() = default;
    /* A time of 0 means now. */
    TraceEvent(EventType kind, Timestamp at = 0)
        : type(kind), timestamp(at ? at : getCurrentTimestamp())
    {
    }
};

struct CounterEvent {
    Timestamp timestamp = 0;
    std::uint32_t device_id = 0, track_id = 0;
    std::string counter_name;
    double value = 0;
    std::string unit;

    CounterEvent() = default;
    CounterEvent(const std::string &name, double number, Timestamp at = 0,
                 const std::string &unit_name = "")
        : timestamp(at ? at : getCurrentTimestamp()), counter_name(name), value(number),
          unit(unit_name)
    {
    }
};

} /* namespace stave::tracesmith */

#ifndef STAVE_NO_TRACESMITH_NAMESPACE
namespace tracesmith = stave::tracesmith;
#endif

#endif
