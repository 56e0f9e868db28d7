#pragma once

/// @file
/// Ten minutes of heap profiles of one process, so that the page can show who held memory before.

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include <tensorpool/heap_profile.hpp>

namespace tensorpool::command::serve {

/// Returns the profile without its small sites: those that hold less than `min_part` of the live
/// bytes and of the bytes at the peak. These become one site without a stack.
HeapProfile fold_small_sites(HeapProfile profile, double min_part);

/// Used by one thread at a time.
class ProfileHistory {
public:
    static constexpr std::uint64_t step_ns = 10'000'000'000;
    static constexpr std::size_t max_count = 60;
    static constexpr double min_part = 0.005;

    /// Whether a step has passed since the last profile. `steady_ns` is of a monotonic clock.
    bool is_due(std::uint64_t steady_ns) const noexcept;
    void add(HeapProfile profile, std::uint64_t steady_ns);
    /// Returns the times of the profiles in nanoseconds since 1970, oldest first.
    std::vector<std::uint64_t> times() const;
    /// Returns the newest profile that is not newer than this time; null if there is none.
    std::shared_ptr<const HeapProfile> at(std::uint64_t time_unix_ns) const;

private:
    std::deque<std::shared_ptr<const HeapProfile>> profiles_;
    std::uint64_t last_ns_ = 0;
};

}  // namespace tensorpool::command::serve
