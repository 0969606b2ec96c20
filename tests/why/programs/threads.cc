/* Programs of C++ with threads:
 *
 *     threads rwlock | semaphore | config | ok
 *
 * rwlock: readers of a table wait for a writer that holds std::shared_mutex while it sleeps.
 * semaphore: the main loop waits for a producer that computes. config: the main loop needs a mutex
 * that a thread holds while it reads a file past the cache. ok: threads that do not touch it. */
#include "truth.h"

#include <stave/stave.hpp>

#include <condition_variable>
#include <mutex>
#include <semaphore.h>
#include <shared_mutex>
#include <string>
#include <thread>

static std::string how;
static bool stop;
static sem_t begin_it, began_it, ready;
static std::shared_mutex table_lock;
static std::mutex config_lock;
static int config;

__attribute__((noinline)) static void refresh_table()
{
    std::unique_lock<std::shared_mutex> l(table_lock);
    sem_post(&began_it);
    why_sleep_ms(30);
}

__attribute__((noinline)) static void reload_config()
{
    static char page[65536];
    std::lock_guard<std::mutex> l(config_lock);
    sem_post(&began_it);
    int64_t end = why_now() + 30000000;
    while (why_now() < end) {
        posix_fadvise(config, 0, 0, POSIX_FADV_DONTNEED);
        for (int i = 0; i < 64 && why_now() < end; i++)
            if (pread(config, page, sizeof page, i * 65536l) < 0)
                abort();
    }
}

__attribute__((noinline)) static void render_frame()
{
    why_spin_ms(30);
}

static void worker()
{
    prctl(PR_SET_NAME, how == "rwlock" ? "refresher" : how == "config" ? "reloader" : "renderer");
    for (;;) {
        sem_wait(&begin_it);
        if (stop)
            return;
        if (how == "rwlock")
            refresh_table();
        else if (how == "config")
            reload_config();
        else
            render_frame();
        if (how == "semaphore")
            sem_post(&ready);
    }
}

static void use()
{
    if (how == "rwlock") {
        std::shared_lock<std::shared_mutex> l(table_lock);
    } else if (how == "config") {
        std::lock_guard<std::mutex> l(config_lock);
    } else if (how == "semaphore") {
        sem_wait(&ready);
    }
}

int main(int, char **argv)
{
    struct why w = {};
    enum { N = 30 };
    int64_t ns = 0;
    how = argv[1];
    sem_init(&begin_it, 0, 0);
    sem_init(&began_it, 0, 0);
    sem_init(&ready, 0, 0);
    config = why_file("config.bin", O_RDWR | O_CREAT);
    static char page[65536];
    for (int i = 0; i < 64; i++)
        if (write(config, page, sizeof page) < 0)
            abort();
    fsync(config);
    std::thread t(worker);
    why_begin(&w);
    for (int i = 0; i < N; i++) {
        stave::scope unit("training", "train_step", "n", i);
        sem_post(&begin_it);
        if (how == "rwlock" || how == "config")
            sem_wait(&began_it);
        why_spin_ms(how == "ok" ? 35 : 8);
        int64_t at = why_now();
        use();
        ns += why_now() - at;
    }
    why_end(&w);
    stop = true;
    sem_post(&begin_it);
    t.join();
    if (how == "rwlock")
        why_cause(&w, "\"lock\"", ns, "\"name\": \"refresher\", \"function\": \"refresh_table\"");
    else if (how == "config")
        why_cause(&w, "\"lock\"", ns, "\"name\": \"reloader\", \"function\": \"reload_config\"");
    else if (how == "semaphore")
        why_cause(&w, "\"data\", \"lock\"", ns, "\"name\": \"renderer\"");
    why_write(&w, "step", N, 1);
    return 0;
}
