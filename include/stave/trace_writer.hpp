/*
 * Stave for C++: ferrum's trace writer. Header only, on top of trace_writer.h, which describes the
 * file and what happens when a program ends or forks.
 *
 *     #include <stave/trace_writer.hpp>
 *     stave::global_trace().push("attn", "attention", 1.25, 3);
 *     stave::global_trace().push_with_args("gemm", "gemm", 0.5, 3, {{"tokens", 4}, {"dims",
 *     std::vector<int>{64, 128}}});
 */
#ifndef STAVE_TRACE_WRITER_HPP
#define STAVE_TRACE_WRITER_HPP

#if __cplusplus < 201703L
#error "stave/trace_writer.hpp needs C++17 or newer: compile with -std=c++17"
#endif

#include <cmath>
#include <cstdio>
#include <initializer_list>
#include <map>
#include <stave/trace_writer.h>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

namespace stave
{

/* One complete event. */
struct TraceEvent {
    std::string name, cat;
    char ph = 'X';
    std::uint64_t ts = 0, dur = 0; /* microseconds */
    std::uint32_t pid = 0, tid = 0;
    std::string args; /* a JSON object; empty: none */

    static TraceEvent complete(std::string name, std::string cat, std::uint64_t start_ts_us,
                               double dur_ms, std::uint32_t tid)
    {
        const stave_trace_event e = stave_trace_event_complete("", "", start_ts_us, dur_ms, tid);
        return {std::move(name), std::move(cat), 'X', e.ts, e.dur, e.pid, e.tid, {}};
    }

    stave_trace_event as_c() const
    {
        return {name.c_str(), cat.c_str(),  ts,          dur,        pid,
                tid,          args.c_str(), name.size(), cat.size(), args.size()};
    }

    /* As it is in the file; empty if `args` is not a JSON object. */
    std::string to_json() const
    {
        std::string out(6 * (name.size() + cat.size()) + args.size() + 256, '\0');
        const stave_trace_event e = as_c();
        const int n = stave_trace_event_json(&e, out.data(), out.size());
        out.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
        return out;
    }
};

/* A value as JSON: null, a truth value, a number, a text, a vector or a map with texts as keys. NaN
 * and infinities are null. */
struct trace_value {
    trace_value(std::nullptr_t) : json_("null")
    {
    }
    trace_value(const char *text) : json_(quoted(text))
    {
    }
    trace_value(std::string_view text) : json_(quoted(text))
    {
    }
    trace_value(const std::string &text) : json_(quoted(text))
    {
    }

    template <class T, class = std::enable_if_t<std::is_arithmetic_v<T>>> trace_value(T v)
    {
        if constexpr (std::is_same_v<T, bool>)
            json_ = v ? "true" : "false";
        else if constexpr (std::is_integral_v<T>)
            json_ = std::to_string(v);
        else
            json_ = number(static_cast<double>(v));
    }

    template <class T> trace_value(const std::vector<T> &items) : json_("[")
    {
        for (const auto &item : items)
            add(trace_value(static_cast<const T &>(item)).json_);
        json_ += ']';
    }

    template <class T> trace_value(const std::map<std::string, T> &members) : json_("{")
    {
        for (const auto &[key, value] : members)
            add(quoted(key) + ':' + trace_value(value).json_);
        json_ += '}';
    }

    trace_value(std::initializer_list<std::pair<std::string_view, trace_value>> members)
        : json_("{")
    {
        for (const auto &[key, value] : members)
            add(quoted(key) + ':' + value.json_);
        json_ += '}';
    }

    const std::string &json() const
    {
        return json_;
    }

  private:
    std::string json_;

    void add(const std::string &part)
    {
        if (json_.size() > 1)
            json_ += ',';
        json_ += part;
    }

    static std::string quoted(std::string_view text)
    {
        std::string out(stave_trace_json_text(text.data(), text.size(), nullptr, 0), '\0');
        stave_trace_json_text(text.data(), text.size(), out.data(), out.size());
        return out;
    }

    static std::string number(double v)
    {
        char text[40];
        if (!std::isfinite(v))
            return "null";
        std::snprintf(text, sizeof text, "%.17g", v);
        for (char &c : text) /* the locale's point */
            c = c == ',' ? '.' : c;
        return text;
    }
};

/* The members of an event's `args`. */
struct trace_args {
    trace_args(std::initializer_list<std::pair<std::string_view, trace_value>> members)
        : json_(trace_value(members).json())
    {
    }
    template <class T>
    trace_args(const std::map<std::string, T> &members) : json_(trace_value(members).json())
    {
    }
    const std::string &json() const
    {
        return json_;
    }

  private:
    std::string json_;
};

struct TraceWriter {
    static TraceWriter from_env()
    {
        return TraceWriter(stave_trace_writer_from_env());
    }

    /* A map, or any range of pairs of name and value, instead of the environment. */
    template <class Pairs> static TraceWriter from_env_vars(const Pairs &vars)
    {
        std::vector<std::string> texts;
        std::vector<const char *> pointers;
        for (const auto &[name, value] : vars)
            texts.push_back(std::string(name) + '=' + std::string(value));
        for (const std::string &text : texts)
            pointers.push_back(text.c_str());
        pointers.push_back(nullptr);
        return TraceWriter(stave_trace_writer_from_vars(pointers.data()));
    }
    static TraceWriter from_env_vars(
        std::initializer_list<std::pair<std::string_view, std::string_view>> vars)
    {
        return from_env_vars<decltype(vars)>(vars);
    }

    static TraceWriter enabled(const std::string &out_path)
    {
        return TraceWriter(stave_trace_writer_open(out_path.c_str()));
    }
    static TraceWriter disabled()
    {
        return TraceWriter(nullptr);
    }

    TraceWriter(TraceWriter &&other) noexcept
        : writer_(std::exchange(other.writer_, nullptr)), is_owner_(other.is_owner_)
    {
    }
    TraceWriter &operator=(TraceWriter &&other) noexcept
    {
        std::swap(writer_, other.writer_);
        std::swap(is_owner_, other.is_owner_);
        return *this;
    }
    ~TraceWriter()
    {
        if (is_owner_)
            stave_trace_writer_close(writer_);
    }

    bool is_enabled() const noexcept
    {
        return stave_trace_writer_is_enabled(writer_);
    }

    /* An event that ends now and took dur_ms. */
    void push(std::string_view name, std::string_view cat, double dur_ms,
              std::uint32_t tid) const noexcept
    {
        push_text(name, cat, dur_ms, tid, {});
    }
    void push_with_args(std::string_view name, std::string_view cat, double dur_ms,
                        std::uint32_t tid, const trace_args &args) const noexcept
    {
        push_text(name, cat, dur_ms, tid, args.json());
    }

    /* Are all events in the file? */
    std::error_code flush() const noexcept
    {
        stave_error error;
        stave_trace_writer_flush(writer_, &error);
        return {error.os_error, std::generic_category()};
    }

  private:
    struct stave_trace_writer *writer_;
    bool is_owner_ = true;

    explicit TraceWriter(struct stave_trace_writer *w, bool is_owner = true) noexcept
        : writer_(w), is_owner_(is_owner)
    {
    }
    friend const TraceWriter &global_trace();

    void push_text(std::string_view name, std::string_view cat, double dur_ms, std::uint32_t tid,
                   std::string_view args) const noexcept
    {
        if (!writer_)
            return;
        stave_trace_event e{};
        e.name = name.empty() ? "" : name.data(); /* a length of 0 is not known */
        e.cat = cat.empty() ? "" : cat.data();
        e.args = args.empty() ? "" : args.data();
        e.name_len = name.size();
        e.cat_len = cat.size();
        e.args_len = args.size();
        e.tid = tid;
        stave_trace_writer_push_timed(writer_, &e, dur_ms);
    }
};

/* The writer of the program: see stave_global_trace(). */
inline const TraceWriter &global_trace()
{
    static const TraceWriter writer(stave_global_trace(), false);
    return writer;
}

inline void flush_global_trace()
{
    stave_flush_global_trace();
}

} // namespace stave

#endif
