#pragma once

/// What can be on in a program that never looks at it, and the works of such programs.
/// perf/defaults times them; tests/pool/default_costs_linux_test.cpp counts their instructions.
/// Each runs a work in a process of its own, once with a feature and once without.

#include <algorithm>
#include <barrier>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <latch>
#include <span>
#include <string_view>
#include <thread>
#include <vector>

#include <unistd.h>

#include <tensorpool/budget.hpp>
#include <tensorpool/live_trace.hpp>
#include <tensorpool/memory_pool.hpp>

#include "support/living_threads.hpp"
#include "support/run_program.hpp"

namespace tensorpool::testing {

/// Measures the works below.
class Meter {
public:
    virtual ~Meter() = default;
    /// Measures what the calling thread does until `end`.
    virtual void begin() = 0;
    virtual void end() = 0;
    /// Measures a thread that does `body`, its end included.
    virtual void run_thread(const std::function<void()>& body) = 0;
    /// Measures a fork.
    virtual void fork_once() = 0;
};

/// How much of a work is measured at a time.
struct Sizes {
    unsigned rounds;
    unsigned pairs;
    unsigned passes;  // over a batch of blocks
    unsigned blocks;
    unsigned slots;
    unsigned steps;  // replacements among them
    unsigned warm_blocks;
    unsigned threads;
    unsigned pairs_of_thread;
};

namespace works {

constexpr std::size_t kib = std::size_t{1} << 10;
inline constinit Checks checks_of_pools = Checks::off;

template <class T>
void hide(T& value) {
    asm volatile("" : "+r"(value) : : "memory");
}

inline void make_pairs(std::size_t bytes, unsigned count) {
    MemoryPool& pool = get_global_memory_pool();
    for (unsigned i = 0; i != count; ++i) {
        hide(bytes);
        void* block = pool.allocate(bytes);
        hide(block);
        pool.deallocate(block, bytes);
    }
}

inline void allocate_all(std::span<void*> blocks, std::size_t bytes) {
    for (void*& block : blocks) {
        hide(bytes);
        block = get_global_memory_pool().allocate(bytes);
    }
}
inline void free_all(std::span<void*> blocks, std::size_t bytes) {
    for (void* const block : blocks) {
        hide(bytes);
        get_global_memory_pool().deallocate(block, bytes);
    }
}

/// Replaces random blocks among `slots` by others, from 64 B up to `64 << max_shift` bytes.
inline void replace(unsigned slots, unsigned steps, unsigned max_shift, Meter* meter = nullptr) {
    struct Slot {
        void* block = nullptr;
        std::size_t bytes = 0;
    };
    std::vector<Slot> all(slots);
    std::uint64_t random = 0x9E3779B97F4A7C15;
    const auto replace_some = [&](unsigned count) {
        for (unsigned i = 0; i != count; ++i) {
            random = random * 6364136223846793005 + 1442695040888963407;
            Slot& slot = all[(random >> 40) % slots];
            if (slot.block != nullptr) get_global_memory_pool().deallocate(slot.block, slot.bytes);
            const std::size_t largest = std::size_t{64} << (random >> 33) % (max_shift + 1);
            slot.bytes = largest - (random >> 20) % (largest / 2);
            slot.block = get_global_memory_pool().allocate(slot.bytes);
        }
    };
    if (meter != nullptr) {
        replace_some(128 * slots);
        meter->begin();
    }
    replace_some(steps);
    if (meter != nullptr) meter->end();
    for (const Slot& slot : all) {
        if (slot.block != nullptr) get_global_memory_pool().deallocate(slot.block, slot.bytes);
    }
}

template <std::size_t bytes>
void pairs(Meter& meter, const Sizes& sizes) {
    make_pairs(bytes, 4);
    meter.begin();
    make_pairs(bytes, sizes.pairs);
    meter.end();
}

template <std::size_t bytes>
void batches(Meter& meter, const Sizes& sizes) {
    std::vector<void*> blocks(bytes == kib ? sizes.warm_blocks : sizes.blocks);
    const auto pass = [&] {
        allocate_all(blocks, bytes);
        free_all(blocks, bytes);
    };
    for (int warm = 0; warm != 8; ++warm) pass();
    meter.begin();
    for (unsigned i = 0; i != sizes.passes; ++i) pass();
    meter.end();
}

inline void slots(Meter& meter, const Sizes& sizes) {
    replace(sizes.slots, sizes.steps, 10, &meter);
}

/// One thread allocates, another frees. They take turns, so that each is measured by itself.
inline void handover(Meter& meter, const Sizes& sizes) {
    constexpr std::size_t bytes = 256;
    constexpr int warm = 8;
    std::vector<void*> blocks(sizes.warm_blocks);
    std::barrier turn(2);
    const auto measured = [&](int round, auto all) {
        if (round == warm) meter.begin();
        all(blocks, bytes);
        if (round == warm) meter.end();
        turn.arrive_and_wait();
    };
    std::thread other([&] {
        for (int round = 0; round <= warm; ++round) {
            turn.arrive_and_wait();
            measured(round, free_all);
        }
    });
    for (int round = 0; round <= warm; ++round) {
        measured(round, allocate_all);
        turn.arrive_and_wait();
    }
    other.join();
}

inline void short_threads(Meter& meter, const Sizes& sizes) {
    meter.run_thread([&] { replace(32, sizes.pairs_of_thread, 8); });
}

inline void short_pools(Meter& meter, const Sizes&) {
    meter.begin();
    {
        MemoryPool pool({.name = "short", .checks = checks_of_pools});
        pool.deallocate(pool.allocate(100), 100);
    }
    meter.end();
}

inline void use_once() {
    make_pairs(100, 1);
    make_pairs(100'000, 1);
}

inline void beside_idle_threads(Meter& meter, const Sizes& sizes) {
    const LivingThreads idle(sizes.threads, use_once);
    pairs<300'000>(meter, sizes);
}

inline void forks(Meter& meter, const Sizes& sizes) {
    const LivingThreads idle(sizes.threads, use_once);
    meter.fork_once();
}

}  // namespace works

/// A work, which a meter measures in parts. What it needs beside is not measured.
struct Work {
    const char* name;
    void (*run)(Meter& meter, const Sizes& sizes);
};

inline constexpr Work all_works[] = {
    {"pairs of 64 B", works::pairs<64>},
    {"pairs of 16 KiB", works::pairs<16 * works::kib>},
    {"pairs of 300 KB", works::pairs<300'000>},
    {"batches of 64 B", works::batches<64>},
    {"batches of 16 KiB", works::batches<16 * works::kib>},
    {"replaced slots", works::slots},
    {"handover", works::handover},
    {"warm blocks of 1 KiB", works::batches<works::kib>},
    {"short threads", works::short_threads},
    {"short pools", works::short_pools},
    {"300 KB beside idle threads", works::beside_idle_threads},
    {"forks beside idle threads", works::forks},
};

/// What can be on: by variables of the environment, or by what the program does first.
struct Feature {
    const char* name;
    Variables on;
    Variables off;
    /// Variables with which it looks at next to nothing: samples and guards then take no share of
    /// what is measured, only that they may come.
    Variables calm = {};
    /// Called in the program, if it is on, and if it is off.
    void (*begin)() = [] {};
    void (*begin_without)() = [] {};
};

namespace features {

/// The trimmer's thread starts where `tensorpool run` starts it: when the program has a thread.
inline void start_trimmer() {
    allow_background_trimmer(true);
}

/// Records some calls. The recording ends before anything is measured.
inline void record_some_calls() {
    works::make_pairs(100'000, 1);
    LiveTrace trace = LiveTrace::ask(static_cast<std::uint64_t>(getpid()));
    works::make_pairs(100'000, 1);
    trace.look([](const TracePart&) {});
    trace.stop();
    works::make_pairs(100'000, 1);
}
inline void make_as_many_calls() {
    works::make_pairs(100'000, 3);
}

inline void make_budget() {
    static Budget unused("unused", {.hard = std::size_t{1} << 40});
}

inline void charge_a_block() {
    static Budget charged("charged", {.hard = std::size_t{1} << 40});
    const BudgetScope scope(charged);
    (void)get_global_memory_pool().allocate(100);
}

inline void make_pool() {
    static MemoryPool unused({.name = "unused"});
}

inline void guard_short_pools() {
    works::checks_of_pools = Checks::sampled;
}

}  // namespace features

inline std::vector<Feature> all_features() {
    return {
        {"heap profile",
         {{"TENSORPOOL_PROFILE", "on"}},
         {{"TENSORPOOL_PROFILE", "off"}},
         {{"TENSORPOOL_PROFILE", "1TiB"}}},
        {"background trimmer",
         {{"TENSORPOOL_RETAIN_BACKGROUND", "auto"}},
         {{"TENSORPOOL_RETAIN_BACKGROUND", "off"}},
         {},
         features::start_trimmer},
        {"shared statistics",
         {{"TENSORPOOL_STATISTICS", "on"}},
         {{"TENSORPOOL_STATISTICS", "off"}}},
        {"guards",
         {{"TENSORPOOL_CHECKS", "sampled"}},
         {{"TENSORPOOL_CHECKS", "off"}},
         {{"TENSORPOOL_GUARD_SHARE", "0.000000001"}},
         features::guard_short_pools},
        {"recorder hooks", {}, {}, {}, features::record_some_calls, features::make_as_many_calls},
        {"unused budget", {}, {}, {}, features::make_budget},
        {"charged block", {}, {}, {}, features::charge_a_block},
        {"unused pool", {}, {}, {}, features::make_pool},
    };
}

/// Begins with or without `feature`. REQUIRES: the process was started with its variables.
inline void begin(const Feature& feature, bool is_on) {
    works::make_pairs(1000, 64);
    is_on ? feature.begin() : feature.begin_without();
}

/// Does a work. Another thread runs meanwhile, because the C library does without locked operations
/// in a process with one thread.
inline void do_work(const Work& work, Meter& meter, const Sizes& sizes) {
    std::latch over(1);
    std::thread second([&] { over.wait(); });
    for (unsigned round = 0; round != sizes.rounds; ++round) work.run(meter, sizes);
    over.count_down();
    second.join();
}

/// Returns the entry with this name.
template <class Entries>
auto* find_named(Entries& entries, std::string_view name) {
    const auto found = std::find_if(std::begin(entries), std::end(entries),
                                    [&](const auto& entry) { return entry.name == name; });
    return found == std::end(entries) ? nullptr : &*found;
}

}  // namespace tensorpool::testing
