// What programs with NVTX annotations say, in Stave's words: each row of docs/porting.md, "From
// NVTX", is in this file. porting_nvtx.sh looks at the trace.
#define STAVE_CATEGORY "nvtx"
#include <stave/stave.hpp>

#include <thread>
#include <vector>

static void whole_function()
{
    STAVE_FUNC();
}

static void pushed()
{
    STAVE_BEGIN("nvtx", "epoch");
    STAVE_BEGIN_DYN("nvtx", std::to_string(7).c_str());
    STAVE_END("nvtx");
    STAVE_END("nvtx");
    STAVE_INSTANT("nvtx", "checkpoint");
}

static void scoped(const std::string &text)
{
    STAVE_SCOPE("nvtx", "batch");
    stave::scope range("nvtx", text);
    range.add("payload", 42);
}

static void started()
{
    const stave_track_t track = stave_track(STAVE_PROCESS, "ranges");
    stave::scope range(track, "nvtx", "request");
    std::thread other([range = std::move(range)]() mutable { range.end(); });
    other.join();
}

int main()
{
    stave_set_thread_name("loader");
    whole_function();
    pushed();
    scoped("known at run time");
    started();
    const std::vector<int> shape = {8, 128};
    STAVE_SCOPE("my.domain", "gemm", "shape", shape, "color", "#ff0000");
    STAVE_COUNTER("my.domain", "queue", 3);
    return stave_enabled("my.domain") ? 0 : 1;
}
