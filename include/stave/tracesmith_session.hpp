/*
 * Stave for users of TraceSmith: PerfettoProtoExporter, TracingConfig and TracingSession, over the
 * exporter of perfetto_exporter.hpp.
 *
 *     tracesmith::TracingSession session;
 *     session.start(tracesmith::TracingConfig());
 *     session.emit(event);                                any thread
 *     session.emitCounter("GPU Memory", 1024);
 *     session.stop();
 *     session.exportToFile("trace.pftrace");
 *
 * A session keeps its events in memory, at most as many as were asked for; what comes then is
 * counted as dropped. Where memory should not grow, use PerfettoExporter::open() and write().
 */
#ifndef STAVE_TRACESMITH_SESSION_HPP
#define STAVE_TRACESMITH_SESSION_HPP

#include <stave/perfetto_exporter.hpp>

#include <atomic>
#include <mutex>

namespace stave::tracesmith
{

struct TracingConfig {
    std::uint32_t buffer_size_kb = 4096; /* of TraceSmith's own writer: not used */
    std::uint32_t duration_ms = 0;       /* not used: stop() ends a session */
    bool write_to_file = false;          /* stop() exports to output_file */
    std::string output_file;
    bool enable_gpu_tracks = true, enable_counter_tracks = true, enable_flow_events = true;
};

/* The format is that of the suffix, or the one that was asked for where the suffix names none. */
class PerfettoProtoExporter : public PerfettoExporter
{
  public:
    enum class Format { JSON, PROTOBUF };

    explicit PerfettoProtoExporter(Format format = Format::PROTOBUF) : format_(format)
    {
    }
    using PerfettoExporter::exportToFile;
    /* The bytes of a .pftrace; empty on failure. */
    std::vector<std::uint8_t> exportToProto(const std::vector<TraceEvent> &events)
    {
        const std::string text = exportAs(events, "trace.pftrace");
        return {text.begin(), text.end()};
    }
    Format getFormat() const
    {
        return format_;
    }
    static bool isSDKAvailable() /* Perfetto's own format needs nothing else here */
    {
        return true;
    }

  private:
    Format format_;
};

class TracingSession
{
  public:
    enum class State { Stopped, Starting, Running, Stopping };
    enum class Mode { InProcess, File };

    struct Statistics {
        std::uint64_t events_emitted = 0, events_dropped = 0, counters_emitted = 0;
        Timestamp start_time = 0, stop_time = 0;

        double duration_ms() const
        {
            return stop_time > start_time ? static_cast<double>(stop_time - start_time) / 1e6 : 0;
        }
    };

    explicit TracingSession(std::size_t events = 65536, std::size_t counters = 4096)
        : most_events_(events), most_counters_(counters)
    {
    }
    ~TracingSession()
    {
        stop();
    }
    TracingSession(const TracingSession &) = delete;
    TracingSession &operator=(const TracingSession &) = delete;

    /* False: it runs already. What an earlier run has kept is gone. */
    bool start(const TracingConfig &config)
    {
        const std::lock_guard<std::mutex> held(lock_);
        if (state_ != State::Stopped)
            return false;
        forget();
        config_ = config;
        stats_.start_time = getCurrentTimestamp();
        state_ = State::Running;
        return true;
    }
    void stop()
    {
        std::string file;
        {
            const std::lock_guard<std::mutex> held(lock_);
            if (state_ != State::Running)
                return;
            stats_.stop_time = getCurrentTimestamp();
            state_ = State::Stopped;
            file = config_.write_to_file ? config_.output_file : "";
        }
        if (!file.empty())
            exportToFile(file);
    }

    /* False: the session does not run, or holds as many as it may. */
    bool emit(TraceEvent event)
    {
        const std::lock_guard<std::mutex> held(lock_);
        if (state_ != State::Running)
            return false;
        if (events_.size() >= most_events_) {
            stats_.events_dropped++;
            return false;
        }
        events_.push_back(std::move(event));
        stats_.events_emitted++;
        return true;
    }
    bool emitCounter(const std::string &name, double value, Timestamp timestamp = 0)
    {
        const std::lock_guard<std::mutex> held(lock_);
        if (state_ != State::Running || counters_.size() >= most_counters_)
            return false;
        counters_.emplace_back(name, value, timestamp);
        stats_.counters_emitted++;
        return true;
    }

    /* By the suffix; `use_protobuf` chooses where it names no format. False: error() says why. */
    bool exportToFile(const std::string &path, bool use_protobuf = true)
    {
        (void)use_protobuf;
        const std::lock_guard<std::mutex> held(lock_);
        PerfettoExporter exporter;
        exporter.setEnableGPUTracks(config_.enable_gpu_tracks);
        exporter.setEnableFlowEvents(config_.enable_flow_events);
        exporter.setEnableCounterTracks(config_.enable_counter_tracks);
        const bool is_done = exporter.exportToFile(events_, counters_, path);
        error_ = exporter.error();
        return is_done;
    }
    void clear()
    {
        const std::lock_guard<std::mutex> held(lock_);
        forget();
    }

    bool isActive() const
    {
        return state_ == State::Running;
    }
    State getState() const
    {
        return state_;
    }
    Mode getMode() const
    {
        return config_.write_to_file ? Mode::File : Mode::InProcess;
    }
    /* These three: not while other threads emit. */
    const Statistics &getStatistics() const
    {
        return stats_;
    }
    const std::vector<TraceEvent> &getEvents() const
    {
        return events_;
    }
    const std::vector<CounterEvent> &getCounters() const
    {
        return counters_;
    }
    std::size_t eventBufferSize() const
    {
        return events_.size();
    }
    std::size_t eventBufferCapacity() const
    {
        return most_events_;
    }
    std::uint64_t eventsDropped() const
    {
        return stats_.events_dropped;
    }
    const std::string &error() const
    {
        return error_;
    }

  private:
    void forget()
    {
        events_.clear();
        counters_.clear();
        stats_ = {};
    }

    std::mutex lock_;
    std::atomic<State> state_{State::Stopped};
    TracingConfig config_;
    Statistics stats_;
    std::vector<TraceEvent> events_;
    std::vector<CounterEvent> counters_;
    std::size_t most_events_, most_counters_;
    std::string error_;
};

} /* namespace stave::tracesmith */

#endif
