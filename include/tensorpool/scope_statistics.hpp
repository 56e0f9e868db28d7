#pragma once

/// @file
/// The statistics of scopes. Sizes are bytes.

#include <array>
#include <cstdint>
#include <string>

#include <tensorpool/detail/buckets.hpp>
#include <tensorpool/export.hpp>

namespace tensorpool {

/// The statistics of all scopes of one name that have ended, on all threads.
struct ScopeStatistics {
    /// The scopes' name, zero-terminated.
    char name[48] = {};
    /// The number of scopes that ended.
    std::uint64_t calls = 0;
    /// The number of scopes that began and have not ended.
    std::uint64_t open = 0;
    /// The number of allocations inside the scopes.
    std::uint64_t allocations = 0;
    /// The number of deallocations inside the scopes.
    std::uint64_t deallocations = 0;
    /// The total of the requested sizes.
    std::uint64_t requested_bytes = 0;
    /// The total of the block sizes that served the requests.
    std::uint64_t allocated_bytes = 0;
    /// The total bytes of the freed blocks.
    std::uint64_t deallocated_bytes = 0;
    /// The most bytes in use in one scope above those at its beginning.
    ///
    /// It is updated when a thread's magazine is exchanged, when a large block is allocated or
    /// freed, and at the scope's end. So it may lag by what the thread's magazines hold.
    std::uint64_t peak_bytes = 0;
    /// The scopes that ended before one inside them, or on another thread.
    std::uint64_t out_of_order = 0;

    /// Returns the growth of all scopes together, in bytes; negative if more was freed than
    /// allocated.
    std::int64_t growth_bytes() const noexcept {
        return static_cast<std::int64_t>(allocated_bytes - deallocated_bytes);
    }
};

/// The growth of one thread's blocks in use.
struct ScopeGrowth {
    /// The growth in bytes.
    std::int64_t bytes = 0;
    /// The growth in blocks, for each bucket.
    std::array<std::int64_t, detail::bucket_count> blocks = {};
    /// The growth in large blocks.
    std::int64_t large_blocks = 0;
    /// The growth in bytes of large blocks.
    std::int64_t large_bytes = 0;
    /// Whether the bytes grew, or the blocks of any one bucket.
    bool grew = false;

    /// Returns true if nothing grew, for `EXPECT_TRUE(growth) << to_text(growth)` in a test.
    explicit operator bool() const noexcept { return !grew; }
};

/// Returns "did not grow", or text such as "grew by 192 B: 3 blocks of 64 B", without a newline.
TENSORPOOL_API std::string to_text(const ScopeGrowth& growth);
/// Returns one JSON object whose keys are the names of the fields of ScopeStatistics.
TENSORPOOL_API std::string to_json(const ScopeStatistics& scope);

}  // namespace tensorpool
