#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "limits/commit_budget.hpp"

namespace tensorpool::testing {

/// Replaces the system in a test: how much memory there is, and what time it is.
struct FakeSystem {
    inline static std::atomic<std::size_t> available = 0;
    inline static std::atomic<std::size_t> resident = 0;
    inline static std::atomic<std::size_t> untouched = 0;
    inline static std::atomic<unsigned> looks = 0;  // how often the available memory was read
    inline static std::atomic<std::uint64_t> now_ns = 0;

    static void set(std::size_t available_bytes, std::size_t resident_bytes,
                    std::size_t untouched_bytes = 0) {
        available = available_bytes;
        resident = resident_bytes;
        untouched = untouched_bytes;
    }
    static void pass_ms(std::uint64_t ms) { now_ns += ms * 1'000'000; }

    static limits::CommitBudget::Source source() {
        return {[]() noexcept -> std::size_t { return ++looks, available.load(); },
                []() noexcept -> std::size_t { return resident.load(); },
                []() noexcept -> std::size_t { return untouched.load(); }};
    }
    static std::uint64_t clock_ns() noexcept { return now_ns; }
};

}  // namespace tensorpool::testing
