#pragma once

#include <array>
#include <cstdint>

#include <tensorpool/detail/counters.hpp>

namespace tensorpool::statistics {

/// Sums of what one thread did with all pools, or did between two points in time. The values are
/// modulo 2^64, so only their differences are meaningful.
struct ThreadSums {
    // Blocks by bucket. Blocks of finer sizes count under the bucket that serves the same requests.
    std::array<std::uint64_t, detail::bucket_count> allocations = {};
    std::array<std::uint64_t, detail::bucket_count> deallocations = {};
    std::uint64_t small_allocated_bytes = 0;
    std::uint64_t small_deallocated_bytes = 0;
    std::uint64_t requested_bytes = 0;
    std::uint64_t large_allocations = 0;
    std::uint64_t large_allocated_bytes = 0;
    std::uint64_t large_deallocations = 0;
    std::uint64_t large_deallocated_bytes = 0;

    /// Adds counters of blocks of this series of sizes (base/block_sizes.hpp).
    void add(const detail::ThreadCounters& counted, unsigned series) noexcept;
    void add(const ThreadSums& more) noexcept;
    void subtract(const ThreadSums& less) noexcept;

    std::uint64_t allocation_count() const noexcept;
    std::uint64_t deallocation_count() const noexcept;
    std::uint64_t allocated_bytes() const noexcept {
        return small_allocated_bytes + large_allocated_bytes;
    }
    std::uint64_t deallocated_bytes() const noexcept {
        return small_deallocated_bytes + large_deallocated_bytes;
    }
    std::uint64_t net_bytes() const noexcept { return allocated_bytes() - deallocated_bytes(); }
};

/// Returns the bytes allocated minus the bytes freed. Reads only half of the counters.
std::uint64_t net_bytes(const detail::ThreadCounters& counted, unsigned series) noexcept;

}  // namespace tensorpool::statistics
