// A producer and a consumer in C++: scopes that end with exceptions, string_view, an arrow for each
// item.
//
//     STAVE_OUT=pipeline.pftrace pipeline
#include <stave/stave.hpp>

#include <condition_variable>
#include <mutex>
#include <queue>
#include <stdexcept>
#include <thread>

struct item {
    int number;
    std::uint64_t flow;
};

static std::mutex lock;
static std::condition_variable more;
static std::queue<item> items;

static void produce(std::string_view name)
{
    for (int i = 0; i < 20; i++) {
        const item it = {i, stave_flow_new()};
        STAVE_SCOPE("pipeline", "produce", "by", name, "number", i, STAVE_FLOW_OUT, it.flow);
        const std::lock_guard<std::mutex> guard(lock);
        items.push(it);
        more.notify_one();
    }
}

static void consume()
{
    for (int i = 0; i < 20; i++) {
        std::unique_lock<std::mutex> guard(lock);
        more.wait(guard, [] { return !items.empty(); });
        const item it = items.front();
        items.pop();
        guard.unlock();
        try {
            STAVE_SCOPE("pipeline", "consume", "number", it.number, STAVE_FLOW_IN, it.flow);
            if (it.number == 13)
                throw std::runtime_error("unlucky");
        } catch (const std::runtime_error &e) {
            STAVE_INSTANT("pipeline", "error", "what", e.what());
        }
    }
}

int main()
{
    std::thread producer(produce, "first");
    std::thread consumer(consume);
    producer.join();
    consumer.join();
    return 0;
}
