/*
 * What PerfettoExporter does with an event. Included by perfetto_exporter.hpp; nothing here is for
 * users.
 *
 * Both formats get the same events, in the words of docs/gpu.md; `event_type` keeps TraceSmith's
 * number of the type, from which the JSON is made.
 */
#ifndef STAVE_PERFETTO_EXPORTER_IMPL_HPP
#define STAVE_PERFETTO_EXPORTER_IMPL_HPP

#include <stave/perfetto_exporter.hpp>

namespace stave::tracesmith
{

namespace detail
{

struct kind {
    const char *category, *track;
    const char *key, *word; /* an argument that says more, or nullptr */
    bool is_slice;          /* also without a duration */
};

inline kind kind_of(EventType type)
{
    switch (type) {
    case EventType::KernelLaunch: return {"kernel", "GPU Compute", nullptr, nullptr, true};
    case EventType::KernelComplete: return {"kernel", "GPU Compute", nullptr, nullptr, false};
    case EventType::MemcpyH2D:
        return {"gpu_memcpy", "GPU Memory Copy (H->D)", "copyKind", "HtoD", true};
    case EventType::MemcpyD2H:
        return {"gpu_memcpy", "GPU Memory Copy (D->H)", "copyKind", "DtoH", true};
    case EventType::MemcpyD2D:
        return {"gpu_memcpy", "GPU Memory Copy (D->D)", "copyKind", "DtoD", true};
    case EventType::MemsetDevice: return {"gpu_memset", "GPU Memory Ops", nullptr, nullptr, true};
    case EventType::MemAlloc:
    case EventType::MemFree: return {"gpu_alloc", "GPU Memory Ops", nullptr, nullptr, false};
    case EventType::StreamSync:
        return {"cuda_sync", "GPU Synchronization", "cuda_sync_kind", "Stream Sync", true};
    case EventType::DeviceSync:
        return {"cuda_sync", "GPU Synchronization", "cuda_sync_kind", "Device Sync", true};
    case EventType::EventSync:
        return {"cuda_sync", "GPU Synchronization", "cuda_sync_kind", "Event Sync", false};
    case EventType::EventRecord: return {"gpu_event", "GPU Stream", nullptr, nullptr, false};
    case EventType::StreamCreate:
    case EventType::StreamDestroy: return {"gpu_stream", "GPU Stream", nullptr, nullptr, false};
    case EventType::ContextCreate:
    case EventType::ContextDestroy: return {"gpu_context", "GPU Other", nullptr, nullptr, false};
    case EventType::Marker:
    case EventType::RangeStart:
    case EventType::RangeEnd: return {"gpu_user_annotation", "GPU Other", nullptr, nullptr, false};
    case EventType::NCCLStart:
    case EventType::NCCLComplete: return {"kernel", "GPU Other", nullptr, nullptr, false};
    default: return {"gpu", "GPU Other", nullptr, nullptr, false};
    }
}

inline void add_dimensions(stave_args *to, const char *key, std::uint32_t x, std::uint32_t y,
                           std::uint32_t z)
{
    stave_args_list(to, key);
    for (const std::uint32_t n : {x, y, z})
        stave_args_uint(to, nullptr, n);
    stave_args_end(to);
}

inline void add_kernel(stave_args *to, const KernelParams &k)
{
    add_dimensions(to, "grid", k.grid_x, k.grid_y, k.grid_z);
    add_dimensions(to, "block", k.block_x, k.block_y, k.block_z);
    stave_args_uint(to, "shared memory", k.shared_mem_bytes);
    stave_args_uint(to, "registers per thread", k.registers_per_thread);
}

/* Allocations have Kineto's words, in which a release is negative. */
inline void add_memory(stave_args *to, EventType type, const MemoryParams &m)
{
    const auto bytes = static_cast<std::int64_t>(m.size_bytes);
    const bool is_alloc = type == EventType::MemAlloc || type == EventType::MemFree;
    if (is_alloc)
        stave_args_int(to, "Bytes", type == EventType::MemFree && bytes > 0 ? -bytes : bytes);
    else
        stave_args_uint(to, "bytes", m.size_bytes);
    if (m.src_address)
        stave_args_uint(to, "from address", m.src_address);
    if (m.dst_address)
        stave_args_uint(to, is_alloc ? "Addr" : "to address", m.dst_address);
}

inline void add_stack(stave_args *to, const CallStack &stack)
{
    stave_args_list(to, "stack");
    for (const StackFrame &f : stack.frames) {
        char address[32];
        std::snprintf(address, sizeof address, "0x%llx",
                      static_cast<unsigned long long>(f.address));
        std::string text = f.function_name.empty() ? address : f.function_name;
        if (!f.file_name.empty())
            text += " (" + f.file_name + ":" + std::to_string(f.line_number) + ")";
        stave_args_text_n(to, nullptr, text.data(), text.size());
    }
    stave_args_end(to);
}

inline void add_data(stave_args *to, const std::vector<std::uint8_t> &data)
{
    static const char digits[] = "0123456789abcdef";
    std::string text;
    for (const std::uint8_t byte : data) {
        text += digits[byte >> 4];
        text += digits[byte & 15];
    }
    stave_args_text_n(to, "custom_data", text.data(), text.size());
}

/* Arrows of flow_info must not meet those of correlation numbers. */
inline std::uint64_t flow_number(const FlowInfo &flow)
{
    return flow.id ^ 0x5453000000000000;
}

inline std::int64_t clipped(std::uint64_t v)
{
    const auto most = std::numeric_limits<std::int64_t>::max();
    return v < static_cast<std::uint64_t>(most) ? static_cast<std::int64_t>(v) : most;
}

inline bool is_perfetto(std::string path)
{
    const auto ends = [&path](const std::string &suffix) {
        return path.size() > suffix.size() &&
               path.compare(path.size() - suffix.size(), suffix.size(), suffix) == 0;
    };
    if (ends(".gz") || ends(".zst"))
        path.resize(path.rfind('.'));
    for (const char *suffix : {".pftrace", ".perfetto-trace", ".perfetto", ".pb", ".proto"})
        if (ends(suffix))
            return true;
    return false;
}

} /* namespace detail */

inline bool PerfettoExporter::open(const std::string &path)
{
    stave_error error;
    close();
    error_.clear();
    is_json_ = !detail::is_perfetto(path);
    unsigned parts = 0;
    if (has_tracks_)
        parts |= STAVE_TRACESMITH_TRACKS;
    if (has_flows_)
        parts |= STAVE_TRACESMITH_FLOWS;
    file_ = is_json_ ? stave_file_open_tracesmith(path.c_str(), parts, &error)
                     : stave_file_open(path.c_str(), nullptr, &error);
    if (!file_) {
        error_ = path + ": " + error.text;
        return false;
    }
    devices_.clear();
    streams_.clear();
    process_ = 0;
    if (!metadata_.process_name.empty()) {
        stave_file_metadata(file_, "process_name", metadata_.process_name.c_str());
        if (!is_json_)
            process_ = stave_file_process(file_, getpid(), metadata_.process_name.c_str());
    }
    if (!metadata_.thread_name.empty())
        stave_file_metadata(file_, "thread_name", metadata_.thread_name.c_str());
    for (const auto &[key, value] : metadata_.custom_metadata)
        stave_file_metadata(file_, key.c_str(), value.c_str());
    return true;
}

inline bool PerfettoExporter::close()
{
    stave_error error;
    if (!file_)
        return true;
    stave_file *file = std::exchange(file_, nullptr);
    const int status = stave_file_close(file, &error);
    if (status != 0)
        error_ = error.text;
    return status == 0;
}

inline bool PerfettoExporter::flush(Timestamp before)
{
    return file_ && !is_json_ && stave_file_flush(file_, detail::clipped(before)) == 0;
}

inline std::uint32_t PerfettoExporter::device_row(std::uint32_t device)
{
    std::uint32_t &row = devices_[device];
    if (!row)
        row = stave_file_track_as(file_, STAVE_ROW_GPU, process_,
                                  ("GPU Device " + std::to_string(device)).c_str());
    return row;
}

inline std::uint32_t PerfettoExporter::stream_row(std::uint32_t device, std::uint32_t stream)
{
    std::uint32_t &row = streams_[{device, stream}];
    if (!row)
        row = stave_file_track_as(file_, STAVE_ROW_STREAM, device_row(device),
                                  ("Stream " + std::to_string(stream)).c_str());
    return row;
}

/* Metadata first: what the event itself says of the same key counts. */
inline void PerfettoExporter::add_args(stave_args *to, const TraceEvent &e) const
{
    const detail::kind kind = detail::kind_of(e.type);
    for (const auto &[key, value] : e.metadata)
        stave_args_text_n(to, key.c_str(), value.data(), value.size());
    if (has_tracks_ && !is_json_)
        stave_args_text(to, "track_name", kind.track);
    if (has_flows_ && e.correlation_id) {
        stave_args_flow(to, STAVE_CORRELATION, e.correlation_id);
        stave_args_flow(to, STAVE_FLOW_OUT, e.correlation_id);
    }
    if (has_flows_ && e.flow_info.id)
        stave_args_flow(to, e.flow_info.is_start ? STAVE_FLOW_OUT : STAVE_FLOW_IN,
                        detail::flow_number(e.flow_info));
    stave_args_uint(to, "event_type", static_cast<std::uint64_t>(e.type));
    stave_args_uint(to, "device", e.device_id);
    stave_args_uint(to, "stream", e.stream_id);
    if (e.thread_id)
        stave_args_uint(to, "thread", e.thread_id);
    if (e.flow_info.id) {
        stave_args_uint(to, "flow_id", e.flow_info.id);
        stave_args_uint(to, "flow_type", static_cast<std::uint64_t>(e.flow_info.type));
        stave_args_bool(to, "flow_start", e.flow_info.is_start);
    }
    if (kind.key)
        stave_args_text(to, kind.key, kind.word);
    if (e.memory_params)
        detail::add_memory(to, e.type, *e.memory_params);
    if (e.kernel_params)
        detail::add_kernel(to, *e.kernel_params);
    if (is_json_) /* which has no place for the rest */
        return;
    if (e.call_stack && !e.call_stack->empty())
        detail::add_stack(to, *e.call_stack);
    if (!e.custom_data.empty())
        detail::add_data(to, e.custom_data);
}

inline bool PerfettoExporter::emit(const stave_event &event, Timestamp at, Timestamp duration)
{
    const auto most = static_cast<Timestamp>(std::numeric_limits<std::int64_t>::max());
    if (at <= most && duration <= most && stave_file_emit(file_, &event) == 0)
        return true;
    error_ = "the event at " + std::to_string(at) +
             " ns cannot be written: it ends past 2^63 ns, begins before the time of a flush, or "
             "the file has failed";
    return false;
}

inline bool PerfettoExporter::write(const TraceEvent &e)
{
    if (!file_)
        return false;
    const detail::kind kind = detail::kind_of(e.type);
    stave_args args;
    stave_args_init(&args);
    add_args(&args, e);
    const stave_event event = {sizeof event,
                               kind.is_slice || e.duration ? STAVE_KIND_COMPLETE
                                                           : STAVE_KIND_INSTANT,
                               stream_row(e.device_id, e.stream_id),
                               kind.category,
                               e.name.c_str(),
                               &args,
                               detail::clipped(e.timestamp),
                               detail::clipped(e.duration),
                               0};
    return emit(event, e.timestamp, e.duration);
}

inline bool PerfettoExporter::write(const CounterEvent &c)
{
    if (!file_)
        return false;
    const std::uint32_t row =
        stave_file_counter(file_, device_row(c.device_id), c.counter_name.c_str(), c.unit.c_str());
    const stave_event event = {sizeof event, STAVE_KIND_COUNTER,           row, "counter", nullptr,
                               nullptr,      detail::clipped(c.timestamp), 0,   c.value};
    return emit(event, c.timestamp, 0);
}

} /* namespace stave::tracesmith */

#endif
