// What a C++ program writes: values of every kind, scopes that are moved, on tracks, with arguments
// that are known later. cpp_features.sh looks at the trace.
#include <stave/stave.hpp>

#include <array>
#include <cstdio>
#include <filesystem>
#include <map>
#include <optional>
#include <stdexcept>
#include <thread>
#include <unordered_map>
#include <vector>

static int failures;
#define EXPECT(what) \
    ((what) ? (void)0 : (void)(failures++, std::printf("line %d: %s\n", __LINE__, #what)))

enum class mode { train = 3 };

static void values()
{
    const std::vector<int> shape = {8, 128, 4096};
    const std::map<std::string, std::vector<double>> losses = {{"a", {0.5, 1.5}}, {"b", {}}};
    const std::unordered_map<int, bool> flags = {{7, true}};
    const std::optional<std::string> name = "resnet", no_name;
    const std::array<std::optional<int>, 2> holes = {1, std::nullopt};
    const unsigned dims[] = {4, 5};
    const std::string_view cut = std::string_view("abcdef").substr(1, 3);
    STAVE_INSTANT("v", "containers", "shape", shape, "losses", losses, "flags", flags, "n", 5);
    STAVE_INSTANT("v", "nulls", "null", nullptr, "name", name, "no_name", no_name, "holes", holes,
                  "last", 1.5);
    STAVE_INSTANT("v", "others", "dims", dims, "mode", mode::train, "cut", cut, "path",
                  std::filesystem::path("/a/b"), "char", "text", "bits",
                  (std::vector<bool>{true, false}), "pointer", reinterpret_cast<void *>(0x1234));
    const std::string text(1000, 'x');
    STAVE_INSTANT("v", "long texts", "view", std::string_view(text), "string", text);
    STAVE_INSTANT_DYN("v", text.c_str(), "list", (std::vector<std::string>{"p", "q"}));
    STAVE_INSTANT("v", "many", "list", (std::vector<int>(300, 1)));
}

static void scopes()
{
    stave::scope first("s", std::string("outer ") + "name", "layer", 12, "shape",
                       std::vector<int>{1, 2});
    {
        stave::scope second = std::move(first); // it ends here
        EXPECT(second && !first);
        second.add("loss", 0.25).add("more", std::map<std::string, int>{{"k", 1}});
        first.add("lost", 1); // nothing: it is not open
    }
    stave::scope none;
    EXPECT(!none);
    none = stave::scope("s", [] { return std::string("made by a function"); });
    none.end();
    none.end();
    EXPECT(!none);
    struct stave_args args;
    stave_args_init(&args);
    stave_args_int(&args, "built", 1);
    const stave::scope old_form("s", "with args", &args);
    try {
        const stave::scope thrown("s", "exception", "n", 1);
        throw std::runtime_error("x");
    } catch (const std::runtime_error &) {
    }
}

/* Two slices on a track, which end in the order in which they began, one of them on another
 * thread. */
static void on_a_track()
{
    const stave_track_t track = stave_track(STAVE_PROCESS, "requests");
    const std::uint64_t flow = stave_flow_new();
    stave::scope a(track, "s", "request a", "id", 1, STAVE_FLOW_OUT, flow);
    stave::scope b(track, "s", std::string_view("request b"), "id", 2, STAVE_FLOW_IN, flow);
    std::thread other([moved = std::move(a)]() mutable { moved.add("status", 200).end(); });
    other.join();
    b.add("status", 404);
}

/* While a category is off nothing of an event is made. */
static int made;
static std::vector<int> make()
{
    made++;
    return {1};
}

static void nothing_when_off()
{
    made = 0;
    STAVE_INSTANT("off", "x", "v", make());
    STAVE_SCOPE("off", "y", "v", make());
    stave::scope s("off", [] { return "made " + std::to_string(make().size()); });
    EXPECT(!s && made == 0);
    s.add("x", 1);
}

int main(int argc, char **)
{
    if (argc > 1)
        stave_set_categories("*,-off");
    nothing_when_off();
    if (argc > 1) {
        values();
        scopes();
        on_a_track();
    }
    return failures != 0;
}
