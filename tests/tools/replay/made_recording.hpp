#pragma once

/// @file
/// Builds recordings in memory with one process and one pool; threads are given by index.

#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "formats/trace/recording.hpp"

namespace tensorpool::command::replay {

inline constexpr std::uint64_t made_process = 4711;

class MadeRecording {
public:
    explicit MadeRecording(std::uint32_t threads) {
        recording_.processes.push_back({.number = made_process, .name = "made"});
        recording_.sources.resize(2);
        for (std::uint32_t i = 0; i < threads; ++i) {
            recording_.threads.push_back({.process = 0, .number = made_process + i});
        }
    }

    void allocate(std::uint32_t thread, std::uint64_t address, std::uint64_t bytes,
                  std::uint8_t alignment_log2 = 6) {
        add(thread, TraceAction::allocate, address, bytes, alignment_log2);
    }
    void deallocate(std::uint32_t thread, std::uint64_t address) {
        add(thread, TraceAction::deallocate, address, 0, 0);
    }
    void resize(std::uint32_t thread, std::uint64_t address, std::uint64_t bytes) {
        add(thread, TraceAction::resize, address, bytes, 0);
    }
    void add(std::uint32_t thread, TraceAction action, std::uint64_t address, std::uint64_t bytes,
             std::uint8_t alignment_log2) {
        recording_.calls.push_back({.time_ns = recording_.calls.size(),
                                    .address = address,
                                    .bytes = bytes,
                                    .thread = thread,
                                    .source = 1,
                                    .action = action,
                                    .alignment_log2 = alignment_log2});
    }
    trace::Recording& get() noexcept { return recording_; }

private:
    trace::Recording recording_;
};

/// Returns a random recording of valid calls: half of the frees are made by another thread, and
/// there are some resizes, some blocks from before the recording, and some that are never freed.
inline trace::Recording any_recording(unsigned seed, std::uint32_t threads, unsigned calls,
                                      std::uint64_t max_bytes) {
    std::mt19937 random(seed);
    const auto below = [&](std::uint64_t limit) {
        return std::uniform_int_distribution<std::uint64_t>(0, limit - 1)(random);
    };
    MadeRecording made(threads);
    std::vector<std::pair<std::uint64_t, std::uint32_t>> alive;  // address, maker
    for (std::uint64_t before = 0; before < 5; ++before) alive.emplace_back(before * 4096 + 64, 0);
    std::uint64_t next_address = std::uint64_t{1} << 20;
    for (unsigned i = 0; i < calls; ++i) {
        const auto thread = static_cast<std::uint32_t>(below(threads));
        if (alive.empty() || below(5) < 2) {
            made.allocate(thread, next_address, 1 + below(max_bytes),
                          static_cast<std::uint8_t>(below(8)));
            alive.emplace_back(next_address, thread);
            next_address += 4096;
            continue;
        }
        const std::size_t chosen = below(alive.size());
        const auto [address, maker] = alive[chosen];
        if (below(6) == 0) {
            made.resize(thread, address, 1 + below(max_bytes));
            alive[chosen].second = thread;
        } else {
            made.deallocate(below(2) == 0 ? maker : thread, address);
            alive.erase(alive.begin() + static_cast<std::ptrdiff_t>(chosen));
        }
    }
    return std::move(made.get());
}

}  // namespace tensorpool::command::replay
