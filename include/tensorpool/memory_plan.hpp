#pragma once

/// @file
/// Plans the layout of buffers with known lifetimes in one contiguous block of memory. All sizes
/// are in bytes.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <tensorpool/export.hpp>

namespace tensorpool {

/// A buffer that is alive in the half-open interval [begin, end) of a clock that counts upwards:
/// calls, operators or nanoseconds. Two buffers whose intervals only touch may share bytes.
struct TensorLifetime {
    /// The first moment at which the buffer is live.
    std::int64_t begin = 0;
    /// The first moment at which it is not live any more; greater than `begin`.
    std::int64_t end = 0;
    /// The size of the buffer.
    std::uint64_t bytes = 0;
    /// The alignment of the offset, a power of two.
    std::uint64_t alignment = 1;
    /// Returns whether two lifetimes are equal.
    friend bool operator==(const TensorLifetime&, const TensorLifetime&) = default;
};

/// The method that found a plan. The greedy orders are tried first, then repacking and the search.
enum class PlanMethod : std::uint8_t {
    none,          ///< there was nothing to plan
    by_size,       ///< greedy, the largest buffer first
    by_class,      ///< greedy, by size class; within one, long lifetimes at busy times come first
    by_area,       ///< greedy, the largest product of bytes and lifetime first
    by_lifetime,   ///< greedy, the longest lifetime first
    by_conflicts,  ///< greedy, the buffer that is alive together with the most bytes first
    by_time,       ///< greedy, in the order of allocation, as an allocator places blocks
    repacking,     ///< a greedy plan whose highest buffers were moved to lower offsets
    exact,         ///< exact search
};
/// Returns the method as text, such as "by size". Never nullptr.
TENSORPOOL_API const char* to_string(PlanMethod method) noexcept;

/// Limits on the effort of `plan_memory`.
struct PlanOptions {
    /// Time limit. The first greedy order is always tried; the others and the search run while time
    /// is left. 0 means greedy orders only, about half a second of them at most. The clock is used
    /// only to stop: planning that ends within the limit gives the same plan on every machine.
    std::chrono::nanoseconds budget = std::chrono::seconds(1);
    /// Limit on search steps, about 1 µs each; 0 means no limit. Makes a plan repeatable even if
    /// the search is stopped.
    std::uint64_t max_steps = 0;
    /// Planning stops at a plan of at most this many bytes; 0 means only at an optimal plan.
    std::uint64_t enough_bytes = 0;
};

/// The result of `plan_memory`.
struct MemoryPlan {
    std::vector<std::uint64_t> offsets;  ///< of each buffer in bytes, in the caller's order
    std::uint64_t peak_bytes = 0;        ///< size of the plan: the highest end of a buffer
    /// The maximum number of bytes alive at once, which no plan can go below. Includes the padding
    /// of an alignment that all buffers share.
    std::uint64_t lower_bound_bytes = 0;
    bool optimal = false;  ///< it is proven that no plan needs fewer bytes
    /// The method that found the plan.
    PlanMethod method = PlanMethod::none;
};

/// Computes an offset for each buffer such that no two buffers overlap while both are alive, in as
/// few bytes as it can find. (The problem is NP-hard: "dynamic storage allocation", Garey and
/// Johnson, SR2.) It is a pure computation: it allocates none of the planned memory and starts no
/// thread. Any number of threads may call it at once. The search handles at most 4,096 buffers and
/// recurses once for each: it uses up to 450 bytes of stack a buffer, mostly 150 (optimised,
/// x86-64). With a budget of 0 there is no search. Throws std::invalid_argument that names the
/// buffer and what was expected, for an interval that is empty or reversed, an alignment that is
/// not a power of two, and sizes whose sum exceeds 2^63.
TENSORPOOL_API MemoryPlan plan_memory(std::span<const TensorLifetime> lifetimes,
                                      const PlanOptions& options = {});

/// Checks that a plan is valid: it has one offset for each buffer, each offset is aligned, no two
/// buffers overlap while both are alive, and all end within `peak_bytes`. Throws
/// std::invalid_argument that names the buffers and their offsets if it is not. Shares no code with
/// the planner. Any number of threads may call it at once.
TENSORPOOL_API void validate(std::span<const TensorLifetime> lifetimes, const MemoryPlan& plan);

}  // namespace tensorpool
