// The exporter in TraceSmith's words: what docs/porting.md lists (each row of its table is in this
// file), and what TraceSmith gets wrong. perfetto_exporter FOLDER;
// tests/stress/perfetto_exporter.sh looks at the files.
#include <stave/perfetto_exporter.hpp>

#include <cstdio>

using namespace tracesmith;

static int failures;
#define EXPECT(what) \
    ((what) ? (void)0 : (void)(failures++, std::printf("line %d: %s\n", __LINE__, #what)))

static std::vector<TraceEvent> odd_events()
{
    std::vector<TraceEvent> events;
    TraceEvent event(EventType::KernelLaunch, 1001); // 1.001 µs: TraceSmith cuts it
    event.name = "gemm<\"a\\b\">\n";
    event.duration = 500;
    event.metadata["note"] = "quoted \"text\"";
    event.thread_id = 77;
    event.flow_info = FlowInfo(9, FlowType::FwdBwd, true);
    event.stream_id = 3;
    events.push_back(event);
    event =
        TraceEvent(EventType::KernelLaunch, 500); // out of order, the same stream of another device
    event.name = "second";
    event.duration = 100;
    event.device_id = 1;
    event.stream_id = 3;
    event.flow_info = FlowInfo(9, FlowType::FwdBwd, false);
    event.call_stack = CallStack();
    event.call_stack->frames.push_back(StackFrame(0xabc));
    event.custom_data = {1, 255};
    events.push_back(event);
    events.push_back(TraceEvent(EventType::Unknown, 3000));
    events.push_back(TraceEvent(EventType::MemFree, 4000));
    events.back().memory_params = MemoryParams();
    events.back().memory_params->size_bytes = 64;
    return events;
}

static void export_files(const std::string &folder)
{
    const std::vector<TraceEvent> events = odd_events();
    PerfettoExporter exporter;
    EXPECT(exporter.exportToFile(events, folder + "/odd.json"));
    EXPECT(exporter.exportToFile(events, folder + "/odd.pftrace"));
    EXPECT(exporter.exportToFile(events, folder + "/odd.pftrace.gz"));
    EXPECT(exporter.exportToFile(events, folder + "/odd")); // any name
    std::string json = exporter.exportToString(events);
    EXPECT(json.find("\"second\"") != std::string::npos);
    std::vector<CounterEvent> counters = {CounterEvent("SM Occupancy", 71.5, 2000, "%")};
    EXPECT(exporter.exportToFile(events, counters, folder + "/counters.json"));
    EXPECT(exporter.exportToFile(events, counters, folder + "/counters.pftrace"));
    exporter.setEnableGPUTracks(false);
    EXPECT(exporter.exportToFile(events, folder + "/no_tracks.json"));
    exporter.setEnableGPUTracks(true);
    exporter.setEnableFlowEvents(false);
    EXPECT(exporter.exportToFile(events, folder + "/no_flows.json"));
    PerfettoMetadata metadata;
    metadata.process_name = "trainer";
    metadata.thread_name = "worker";
    metadata.custom_metadata["run"] = "7";
    exporter.setMetadata(metadata);
    EXPECT(exporter.exportToFile({}, folder + "/empty.json"));
    EXPECT(exporter.exportToFile({}, folder + "/empty.pftrace"));
}

static void refuse(const std::string &folder)
{
    PerfettoExporter exporter;
    EXPECT(!exporter.exportToFile(odd_events(), folder + "/no/such/folder.json"));
    EXPECT(!exporter.error().empty());
    std::vector<TraceEvent> late = {TraceEvent(EventType::Marker, 1ULL << 63)};
    EXPECT(!exporter.exportToFile(late, folder + "/late.json"));
    EXPECT(!exporter.exportToFile(late, folder + "/late.pftrace"));
    EXPECT(exporter.error().find("9223372036854775808") != std::string::npos);
    EXPECT(!exporter.write(TraceEvent(EventType::Marker, 1))); // nothing is open
    EXPECT(!exporter.flush(1) && exporter.close());
}

static void stream(const std::string &folder)
{
    PerfettoExporter exporter;
    EXPECT(exporter.open(folder + "/stream.pftrace"));
    EXPECT(exporter.write(TraceEvent(EventType::Marker, 2000)));
    EXPECT(exporter.write(TraceEvent(EventType::Marker, 1000)));
    EXPECT(exporter.flush(1500));
    EXPECT(!exporter.write(TraceEvent(EventType::Marker, 1499)));
    EXPECT(exporter.write(TraceEvent(EventType::Marker, 1500)));
    EXPECT(exporter.close());
    EXPECT(exporter.open(folder + "/stream.json"));
    EXPECT(!exporter.flush(1));
    EXPECT(exporter.write(CounterEvent("GPU Memory Usage", 1.5, 1000, "GB")));
    // the destructor completes it
}

int main(int argc, char **argv)
{
    const std::string folder = argc > 1 ? argv[1] : ".";
    EXPECT(TraceEvent(EventType::Marker).timestamp > 1000000000ULL * 1000000000); // now
    export_files(folder);
    refuse(folder);
    stream(folder);
    return failures != 0;
}
