#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <string_view>
#include <thread>

#include "blocks.hpp"
#include "lives.hpp"

namespace processes {
namespace {

/// A static object that allocates when it is destroyed, while threads still work.
struct LastWork {
    unsigned count = 0;
    ~LastWork() { work(count, count); }
};
LastWork last_work;

void start_threads(std::atomic<unsigned>& rounds, unsigned count) {
    for (unsigned i = 0; i < count; ++i) {
        std::thread([&rounds, i] {
            for (unsigned seed = i * 1000;; seed += 7) {
                work(seed, 20);
                rounds.fetch_add(1, std::memory_order_relaxed);
            }
        }).detach();
    }
}

}  // namespace

int end_at_work(const char* how, unsigned seed) {
    static std::atomic<unsigned> rounds = 0;
    last_work.count = 50;
    const std::string_view wanted = how;
    const bool is_last_thread = wanted == "pthread_exit";
    if (is_last_thread) {
        // The last thread that ends calls exit.
        std::thread([seed] { work(seed, 1000); }).detach();
        pthread_exit(nullptr);
    }
    start_threads(rounds, 3);
    while (rounds.load(std::memory_order_relaxed) < seed % 8) work(seed, 10);
    if (wanted == "exit") std::exit(0);
    if (wanted == "quick_exit") std::quick_exit(0);
    if (wanted == "_exit") _exit(0);
    return wanted == "return" ? 0 : 2;
}

}  // namespace processes
