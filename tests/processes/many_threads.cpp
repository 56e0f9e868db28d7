#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <fstream>

#include <tensorpool/memory_pool.hpp>

#include "blocks.hpp"
#include "lives.hpp"

namespace processes {
namespace {

constexpr std::size_t stack_bytes = 64 << 10;
constexpr std::size_t first_bytes = 1000;
constexpr std::size_t second_bytes = 5000;

std::atomic<unsigned> waiting = 0;
std::atomic<bool> may_end = false;

void* hold_blocks(void* /*unused*/) {
    void* const first = take(first_bytes);
    void* const second = take(second_bytes);
    waiting.fetch_add(1);
    waiting.notify_one();
    may_end.wait(false);
    give(second, second_bytes);
    give(first, first_bytes);
    return nullptr;
}

/// Starts up to `count` threads that live at the same time. Returns how many the system permitted.
unsigned run_wave(unsigned count) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, stack_bytes);
    std::vector<pthread_t> threads(count);
    waiting = 0;
    may_end = false;
    unsigned started = 0;
    while (started < count &&
           pthread_create(&threads[started], &attributes, hold_blocks, nullptr) == 0) {
        ++started;
    }
    for (unsigned seen = waiting; seen != started; seen = waiting) waiting.wait(seen);
    may_end = true;
    may_end.notify_all();
    for (unsigned i = 0; i < started; ++i) pthread_join(threads[i], nullptr);
    pthread_attr_destroy(&attributes);
    return started;
}

/// Runs waves until `count` threads have run. Returns the size of the largest.
unsigned run_threads(unsigned count) {
    unsigned largest = 0;
    for (unsigned left = count; left != 0;) {
        const unsigned started = run_wave(left);
        if (started == 0) fail("the system permits no thread");
        largest = std::max(largest, started);
        left -= started;
    }
    return largest;
}

struct State {
    std::uint64_t in_use = 0;
    std::uint64_t capacity = 0;
    std::uint64_t parked = 0;
    std::uint64_t records = 0;
    std::uint64_t resident = 0;
};

State state_after_trim() {
    tensorpool::get_global_memory_pool().trim();
    const tensorpool::PoolStatistics pool = tensorpool::get_global_memory_pool().statistics();
    std::ifstream file("/proc/self/statm");
    std::uint64_t pages = 0;
    file >> pages >> pages;
    return {pool.in_use_bytes, pool.capacity_bytes, pool.parked_bytes, pool.record_bytes,
            pages * 4096};
}

bool print(const char* when, const State& state) {
    std::printf("%s: %llu in use, %llu capacity, %llu records, %llu resident; ", when,
                static_cast<unsigned long long>(state.in_use),
                static_cast<unsigned long long>(state.capacity),
                static_cast<unsigned long long>(state.records),
                static_cast<unsigned long long>(state.resident));
    return true;
}

}  // namespace

int run_many_threads(unsigned count) {
    constexpr std::uint64_t slack = 8 << 20;  // stacks and records that the C library keeps
    run_threads(4);
    const State before = state_after_trim();
    const unsigned together = run_threads(count);
    const State once = state_after_trim();
    run_threads(count);
    const State twice = state_after_trim();
    std::printf("%u threads, %u at the same time; ", count, together);
    print("before", before);
    print("after", once);
    print("after a second time", twice);
    std::puts("");
    std::fflush(stdout);
    if (twice.in_use > before.in_use + slack / 8) fail("blocks in use remain");
    if (twice.parked > before.parked + slack / 8) fail("parked blocks remain");
    if (once.capacity > before.capacity + slack) fail("the capacity remains");
    if (twice.capacity > once.capacity + slack / 8) fail("the capacity grows");
    if (twice.records > once.records + slack / 8) fail("the records grow");
    if (twice.resident > once.resident + slack) fail("resident memory grows");
    return 0;
}

}  // namespace processes
