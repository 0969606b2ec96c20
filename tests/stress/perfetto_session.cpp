/* TraceSmith's sessions and its protobuf exporter by Stave's headers, as TraceSmith's own examples
 * use them: every call of theirs. Run by perfetto_exporter.sh in a folder of its own. */
#include <stave/tracesmith_session.hpp>

#include <cstdio>
#include <cstdlib>
#include <thread>

using namespace tracesmith;

static void check(bool is, const char *what)
{
    if (!is) {
        std::printf("not so: %s\n", what);
        std::exit(1);
    }
}

static void work(TracingSession &session, int number)
{
    for (int i = 0; i < 50; ++i) {
        TraceEvent kernel(EventType::KernelLaunch);
        kernel.timestamp = getCurrentTimestamp();
        kernel.duration = static_cast<Timestamp>(50000 + i * 1000);
        kernel.name = "kernel_" + std::to_string(number) + "_" + std::to_string(i);
        kernel.stream_id = static_cast<std::uint32_t>(i % 4);
        kernel.metadata["operator"] = "sample::kernel";
        kernel.flow_info =
            FlowInfo(static_cast<std::uint64_t>(number * 1000 + i), FlowType::FwdBwd, i % 2 == 0);
        check(session.emit(std::move(kernel)), "emit");
        check(session.emitCounter("Iteration", i), "emitCounter");
    }
}

int main()
{
    check(PerfettoProtoExporter::isSDKAvailable(), "isSDKAvailable");
    TracingSession session(150, 4096);
    TracingConfig config;
    config.buffer_size_kb = 4096;
    config.enable_gpu_tracks = config.enable_flow_events = true;
    check(session.getState() == TracingSession::State::Stopped && !session.emitCounter("early", 1),
          "stopped");
    check(session.start(config) && !session.start(config) && session.isActive(), "start");
    std::thread threads[3];
    for (int i = 0; i < 3; i++)
        threads[i] = std::thread(work, std::ref(session), i);
    for (auto &thread : threads)
        thread.join();
    check(!session.emit(TraceEvent(EventType::Marker)), "a full session drops");
    session.stop();
    const auto &stats = session.getStatistics();
    check(stats.events_emitted == 150 && stats.events_dropped == 1 &&
              stats.counters_emitted == 150 && stats.duration_ms() > 0,
          "statistics");
    check(session.getEvents().size() == 150 && session.getCounters().size() == 150 &&
              session.eventBufferCapacity() == 150 && session.eventsDropped() == 1,
          "what it holds");
    check(session.exportToFile("realtime.perfetto-trace", true), "protobuf");
    check(session.exportToFile("realtime.json", false), "JSON");
    check(!session.exportToFile("/nowhere/x.json") && !session.error().empty(), "its error");

    PerfettoProtoExporter exporter(PerfettoProtoExporter::Format::PROTOBUF);
    check(exporter.getFormat() == PerfettoProtoExporter::Format::PROTOBUF, "getFormat");
    check(exporter.exportToFile(session.getEvents(), "proto.pftrace"), "exportToFile");
    check(!exporter.exportToProto(session.getEvents()).empty(), "exportToProto");
    PerfettoExporter plain;
    plain.setEnableCounterTracks(false);
    check(plain.exportToFile(session.getEvents(), session.getCounters(), "none.json"), "none.json");
    session.clear();
    check(session.getEvents().empty() && session.eventBufferSize() == 0, "clear");
    config.write_to_file = true;
    config.output_file = "at_stop.pftrace";
    check(session.start(config) && session.getMode() == TracingSession::Mode::File, "again");
    work(session, 7);
    return 0; /* the destructor stops it, which writes the file */
}
