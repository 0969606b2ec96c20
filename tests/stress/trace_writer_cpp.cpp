/* The writer of ferrum's files from C++: trace_writer_cpp FILE. trace_writer.sh looks at the
 * file. */
#include <stave/trace_writer.hpp>

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <stdexcept>

static void must_(bool holds, int line, const char *what)
{
    if (!holds) {
        std::cerr << "trace_writer_cpp.cpp:" << line << ": not " << what << '\n';
        std::exit(1);
    }
}
#define must(...) must_((__VA_ARGS__), __LINE__, #__VA_ARGS__)

static std::string read_file(const char *path)
{
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), {}};
}

/* What the tests of ferrum's trace.rs check. */
static void document(const char *path)
{
    auto e = stave::TraceEvent::complete("rms_norm", "norm", 1'000'000, 0.123, 1);
    must(e.ph == 'X' && e.dur == 123 && e.name == "rms_norm");
    must(e.to_json() ==
         R"({"name":"rms_norm","cat":"norm","ph":"X","ts":1000000,"dur":123,"pid":0,"tid":1})");
    e.args = R"({"a":1})";
    must(e.to_json().find(R"("tid":1,"args":{"a":1}})") != std::string::npos);
    e.args = "no";
    must(e.to_json().empty());

    auto off = stave::TraceWriter::disabled();
    off.push("rms_norm", "norm", 1.0, 0);
    must(!off.is_enabled() && !off.flush());

    using stave::TraceWriter;
    must(!TraceWriter::from_env_vars({{"FERRUM_TRACE_OUT", ""}, {"OTHER", "1"}}).is_enabled());
    const std::map<std::string, std::string> vars{{"FERRUM_TRACE_OUT", "snapshot_cpp.json"}};
    must(TraceWriter::from_env_vars(vars).is_enabled());
    must(!TraceWriter::from_env().is_enabled() && !stave::global_trace().is_enabled());
    must(TraceWriter::enabled("no/such/folder").flush() == std::errc::no_such_file_or_directory);

    auto w = TraceWriter::enabled(path);
    w.push("rms_norm", "norm", 1.0, 1);
    w.push(std::string_view("rope and more").substr(0, 4), std::string("attn"), 0.5, 1);
    must(!w.flush() && !w.flush());
    must(read_file(path).find(R"("rope","cat":"attn")") != std::string::npos);
}

static void args(const stave::TraceWriter &w)
{
    w.push_with_args(
        "shapes", "gemm", 0.25, 3,
        {{"tokens", 4}, {"dims", std::vector<int>{64, 128}}, {"on", true}, {"x", 0.5}});
    w.push_with_args("texts", "gemm", 0.25, 3,
                     {{"a\"b", "\xff\n"},
                      {"none", nullptr},
                      {"nan", std::nan("")},
                      {"long", std::string(1000, '"') + std::string(999, '\xc3') + "\xc3\xbc"},
                      {"nested", {{"a", 1}, {"b", std::vector<std::string>{"c"}}}},
                      {"big", UINT64_MAX}});
    w.push_with_args("map", "", 0.25, 3, std::map<std::string, double>{{"y", 2.5}, {"z", 1e300}});
    w.push_with_args("empty", "", 0.25, 3, std::map<std::string, int>{});
}

int main(int argc, char **argv)
{
    must(argc == 2);
    document(argv[1]);
    auto w = stave::TraceWriter::disabled();
    w = stave::TraceWriter::enabled(argv[1]); /* the file begins anew */
    args(w);
    auto moved = std::move(w);
    moved.push("last", "end", 0.1, 0);
    stave::flush_global_trace();
    std::set_terminate([] { std::_Exit(7); });
    throw std::runtime_error("nobody catches it");
}
