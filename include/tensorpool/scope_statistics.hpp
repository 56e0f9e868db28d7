#pragma once

/// @file
/// What scopes of one name did, and what a stretch of code left behind. Sizes are bytes.

#include <array>
#include <cstdint>
#include <string>

#include <tensorpool/detail/buckets.hpp>
#include <tensorpool/export.hpp>

namespace tensorpool {

/// All scopes of one name that have ended, on all threads, added up.
struct ScopeStatistics {
    char name[48] = {};
    std::uint64_t calls = 0;  ///< scopes that ended
    std::uint64_t open = 0;   ///< scopes that began and have not ended
    std::uint64_t allocations = 0;
    std::uint64_t deallocations = 0;
    std::uint64_t requested_bytes = 0;    ///< asked for
    std::uint64_t allocated_bytes = 0;    ///< handed out for it
    std::uint64_t deallocated_bytes = 0;  ///< of the blocks that came back
    /// The most that one of them had more than at its beginning. Looked at when a thread's magazine
    /// is exchanged, when a large block comes or goes, and at the end: it may lag by what the
    /// thread's magazines hold.
    std::uint64_t peak_bytes = 0;
    std::uint64_t out_of_order = 0;  ///< ended before one inside them, or on another thread

    /// Of all together; negative where more was freed than allocated.
    std::int64_t growth_bytes() const noexcept {
        return static_cast<std::int64_t>(allocated_bytes - deallocated_bytes);
    }
};

/// By how much the blocks in use of one thread grew.
struct ScopeGrowth {
    std::int64_t bytes = 0;
    std::array<std::int64_t, detail::bucket_count> blocks = {};  ///< by bucket
    std::int64_t large_blocks = 0;
    std::int64_t large_bytes = 0;
    bool grew = false;  ///< in bytes, or in the blocks of any one bucket

    /// It did not grow: so `EXPECT_TRUE(growth) << to_text(growth)` in a test.
    explicit operator bool() const noexcept { return !grew; }
};

/// "did not grow", or "grew by 192 B: 3 blocks of 64 B" and so on, without an end of line.
TENSORPOOL_API std::string to_text(const ScopeGrowth& growth);
TENSORPOOL_API std::string to_json(const ScopeStatistics& scope);

}  // namespace tensorpool
