#pragma once

#include <cstdint>
#include <string>

#include <tensorpool/statistics.hpp>

namespace tensorpool::command::explain {

/// Returns `one + other`, or the largest number if that is more.
constexpr std::uint64_t sum(std::uint64_t one, std::uint64_t other) {
    return one > UINT64_MAX - other ? UINT64_MAX : one + other;
}
/// Returns `one - other`, or 0 if that is less.
constexpr std::uint64_t above(std::uint64_t one, std::uint64_t other) {
    return one > other ? one - other : 0;
}
/// Returns `part / of`; 0 if `of` is 0.
double ratio(std::uint64_t part, std::uint64_t of);
/// Returns `bytes * factor`. REQUIRES: `factor` is 0 to 1.
std::uint64_t times(std::uint64_t bytes, double factor);

/// The free memory of one pool that was touched, by what keeps it. The statistics may be damaged.
struct FreeMemory {
    explicit FreeMemory(const PoolStatistics& pool);

    std::uint64_t prepared = 0;  ///< free pages that `reserve` prepared
    std::uint64_t pages = 0;     ///< other free pages
    std::uint64_t cached = 0;    ///< large blocks
    std::uint64_t parked = 0;    ///< blocks in threads' magazines
    std::uint64_t parked_back = 0;
    std::uint64_t depot = 0;  ///< small blocks in magazines that no thread holds
    std::uint64_t depot_back = 0;
    std::uint64_t spans = 0;    ///< small blocks in spans, on pages that hold nothing else
    std::uint64_t pinned = 0;   ///< small blocks in spans, on pages that also hold others
    std::uint64_t waiting = 0;  ///< in the quarantine, or lost by a fork

    std::uint64_t all() const;

private:
    void add(const BucketStatistics& bucket, double in_free_pages);
};

}  // namespace tensorpool::command::explain
