/*
 * Stave for users of TraceSmith: its PerfettoExporter, on stave/file.h.
 *
 *     #include <stave/perfetto_exporter.hpp>                 instead of
 *                                                            <tracesmith/perfetto_exporter.hpp>
 *     tracesmith::PerfettoExporter exporter;
 *     exporter.exportToFile(events, "trace.json");           TraceSmith's JSON
 *     exporter.exportToFile(events, "trace.pftrace");        Perfetto's own format
 *
 * Events may come in any order; times are nanoseconds of any clock. While they come:
 *
 *     exporter.open("trace.pftrace");
 *     exporter.write(event);                                 any number of times
 *     exporter.flush(oldest);                                what began before is in the file
 *     exporter.close();
 *
 * Functions that return bool return false on failure; error() says why. A file appears under its
 * name, and replaces an earlier one, only when it is complete. An exporter is used by one thread at
 * a time.
 */
#ifndef STAVE_PERFETTO_EXPORTER_HPP
#define STAVE_PERFETTO_EXPORTER_HPP

#include <stave/tracesmith_events.hpp>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <limits>
#include <stave/file.h>
#include <stdlib.h>
#include <unistd.h>
#include <utility>

namespace stave::tracesmith
{

/* In Perfetto's format a process named process_name is above the devices. All of it is metadata of
 * the file (JSON: `otherData`). */
struct PerfettoMetadata {
    std::string process_name, thread_name;
    std::map<std::string, std::string> custom_metadata;
};

class PerfettoExporter
{
  public:
    PerfettoExporter() = default;
    PerfettoExporter(const PerfettoExporter &) = delete;
    PerfettoExporter &operator=(const PerfettoExporter &) = delete;
    ~PerfettoExporter()
    {
        close();
    }

    /* The kind of work as argument `track_name` ("GPU Compute" …). On by default. */
    void setEnableGPUTracks(bool enable)
    {
        has_tracks_ = enable;
    }
    /* Correlation numbers, and arrows through the events that have the same. On by default. */
    void setEnableFlowEvents(bool enable)
    {
        has_flows_ = enable;
    }
    /* Counters that exportToFile() is given. On by default. */
    void setEnableCounterTracks(bool enable)
    {
        has_counters_ = enable;
    }
    void setMetadata(const PerfettoMetadata &metadata)
    {
        metadata_ = metadata;
    }

    /* The suffix selects the format: .pftrace, .perfetto-trace, .perfetto, .pb and .proto are
     * Perfetto's, every other one is JSON; .gz and .zst after it compress the file. */
    bool exportToFile(const std::vector<TraceEvent> &events, const std::string &path)
    {
        return exportToFile(events, {}, path);
    }
    bool exportToFile(const std::vector<TraceEvent> &events,
                      const std::vector<CounterEvent> &counters, const std::string &path);
    /* The JSON as a text; empty on failure. */
    std::string exportToString(const std::vector<TraceEvent> &events)
    {
        return exportAs(events, "trace.json");
    }

    bool open(const std::string &path);
    /* False: the event is not in the file, since it ends past 2^63 ns, or begins before the time of
     * a flush; or the file cannot be written, and close() will fail, too. */
    bool write(const TraceEvent &event);
    bool write(const CounterEvent &counter);
    /* No event that begins before `before` will come: those that came are in the growing file,
     * PATH.PID.N.part. Not for JSON, which is made in memory: false, and nothing has changed. */
    bool flush(Timestamp before);
    /* Completes the file. Without an open file it does nothing. */
    bool close();

    const std::string &error() const
    {
        return error_;
    }

  protected:
    /* The bytes of the file that would have this name; empty on failure. */
    std::string exportAs(const std::vector<TraceEvent> &events, const char *name);

  private:
    bool emit(const stave_event &event, Timestamp at, Timestamp duration);
    std::uint32_t device_row(std::uint32_t device);
    std::uint32_t stream_row(std::uint32_t device, std::uint32_t stream);
    void add_args(stave_args *to, const TraceEvent &event) const;

    bool has_tracks_ = true, has_flows_ = true, has_counters_ = true, is_json_ = false;
    PerfettoMetadata metadata_;
    std::string error_;
    stave_file *file_ = nullptr;
    std::uint32_t process_ = 0;
    std::map<std::uint32_t, std::uint32_t> devices_;
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> streams_;
};

inline bool PerfettoExporter::exportToFile(const std::vector<TraceEvent> &events,
                                           const std::vector<CounterEvent> &counters,
                                           const std::string &path)
{
    if (!open(path))
        return false;
    bool is_whole = true;
    for (std::size_t i = 0; is_whole && i < events.size(); i++)
        is_whole = write(events[i]);
    for (std::size_t i = 0; has_counters_ && is_whole && i < counters.size(); i++)
        is_whole = write(counters[i]);
    if (!is_whole)
        stave_file_discard(std::exchange(file_, nullptr));
    return is_whole && close();
}

inline std::string PerfettoExporter::exportAs(const std::vector<TraceEvent> &events,
                                              const char *name)
{
    const char *parent = getenv("TMPDIR");
    std::string folder = std::string(parent && *parent ? parent : "/tmp") + "/stave-XXXXXX", text;
    if (!mkdtemp(folder.data())) {
        error_ = folder + ": cannot make a temporary folder";
        return text;
    }
    const std::string path = folder + "/" + name;
    if (exportToFile(events, path)) {
        std::ifstream in(path, std::ios::binary);
        text.assign(std::istreambuf_iterator<char>(in), {});
    }
    std::remove(path.c_str());
    rmdir(folder.c_str());
    return text;
}

} /* namespace stave::tracesmith */

#include <stave/perfetto_exporter_impl.hpp>

#endif
