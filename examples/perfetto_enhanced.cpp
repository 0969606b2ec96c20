// Six events of a GPU in the words of TraceSmith, exported as its own program does: as JSON, as
// JSON without track names and arrows, and in Perfetto's format. Then a larger run, to compare the
// sizes, and the same events one by one while they come.
//
//     perfetto_enhanced [FOLDER]
#include <stave/perfetto_exporter.hpp>

#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

using namespace tracesmith;

static TraceEvent make(EventType type, const char *name, Timestamp start_us, Timestamp dur_us,
                       std::uint32_t stream, std::uint64_t correlation)
{
    TraceEvent e(type, start_us * 1000);
    e.name = name;
    e.duration = dur_us * 1000;
    e.stream_id = stream;
    e.correlation_id = correlation;
    return e;
}

static MemoryParams memory(std::uint64_t from, std::uint64_t to)
{
    MemoryParams m;
    m.src_address = from;
    m.dst_address = to;
    m.size_bytes = 1024 * 1024;
    return m;
}

static std::vector<TraceEvent> vector_add(Timestamp start_us, std::uint64_t correlation)
{
    KernelParams kernel;
    kernel.grid_x = kernel.block_x = 256;
    kernel.grid_y = kernel.grid_z = kernel.block_y = kernel.block_z = 1;
    kernel.registers_per_thread = 32;
    std::vector<TraceEvent> events = {
        make(EventType::MemAlloc, "cudaMalloc", start_us, 50, 0, correlation),
        make(EventType::MemcpyH2D, "cudaMemcpy", start_us + 100, 200, 1, correlation),
        make(EventType::KernelLaunch, "vectorAdd", start_us + 350, 500, 1, correlation + 1),
        make(EventType::KernelComplete, "vectorAdd", start_us + 850, 0, 1, correlation + 1),
        make(EventType::MemcpyD2H, "cudaMemcpy", start_us + 900, 180, 1, correlation + 2),
        make(EventType::StreamSync, "cudaStreamSynchronize", start_us + 1100, 50, 1,
             correlation + 2),
    };
    events[0].memory_params = memory(0, 0x100000000);
    events[1].memory_params = memory(0x7fff00000000, 0x100000000);
    events[2].kernel_params = events[3].kernel_params = kernel;
    events[4].memory_params = memory(0x100000000, 0x7fff00000000);
    return events;
}

static std::string folder = ".";

static long size_of(const std::string &name)
{
    std::ifstream in(folder + "/" + name, std::ios::binary | std::ios::ate);
    return static_cast<long>(in.tellg());
}

static bool save(PerfettoExporter &exporter, const std::vector<TraceEvent> &events,
                 const char *name)
{
    if (exporter.exportToFile(events, folder + "/" + name))
        return true;
    std::fprintf(stderr, "perfetto_enhanced: %s\n", exporter.error().c_str());
    return false;
}

static bool compare_sizes()
{
    PerfettoExporter exporter;
    std::vector<TraceEvent> events;
    for (unsigned i = 0; i < 1667; i++)
        for (const TraceEvent &e : vector_add(1000 + i * 1200, 1 + i * 3))
            events.push_back(e);
    if (!save(exporter, events, "large.json") || !save(exporter, events, "large.pftrace"))
        return false;
    const long json = size_of("large.json"), proto = size_of("large.pftrace");
    std::printf("%zu events: %ld bytes of JSON, %ld bytes as .pftrace: %.1f times smaller\n",
                events.size(), json, proto, static_cast<double>(json) / static_cast<double>(proto));
    return true;
}

/* The file grows with each flush; readers may look at it, and a crash loses only what came after
 * the last one. */
static bool stream()
{
    PerfettoExporter exporter;
    if (!exporter.open(folder + "/stream.pftrace"))
        return false;
    for (unsigned i = 0; i < 100; i++) {
        const Timestamp start_us = 1000 + i * 1200;
        if (!exporter.flush(start_us * 1000))
            return false;
        for (const TraceEvent &e : vector_add(start_us, 1 + i * 3))
            if (!exporter.write(e))
                return false;
        if (!exporter.write(CounterEvent("GPU Memory Usage", 1.5 * i, start_us * 1000, "GB")))
            return false;
    }
    return exporter.close();
}

int main(int argc, char **argv)
{
    if (argc > 1)
        folder = argv[1];
    const std::vector<TraceEvent> events = vector_add(1000, 1);
    PerfettoExporter exporter;
    exporter.setEnableGPUTracks(true);
    exporter.setEnableFlowEvents(true);
    if (!save(exporter, events, "perfetto_enhanced_trace.json") ||
        !save(exporter, events, "perfetto_enhanced_trace.pftrace"))
        return 1;
    std::printf("Successfully exported %zu events to perfetto_enhanced_trace.json\n",
                events.size());

    PerfettoExporter basic;
    PerfettoMetadata metadata;
    metadata.process_name = "vector \"add\"";
    metadata.custom_metadata["run"] = "7";
    basic.setEnableGPUTracks(false);
    basic.setEnableFlowEvents(false);
    if (!save(basic, events, "basic.json"))
        return 1;
    basic.setMetadata(metadata);
    if (!save(basic, events, "named.json") || !save(basic, events, "named.pftrace"))
        return 1;
    return compare_sizes() && stream() ? 0 : 1;
}
