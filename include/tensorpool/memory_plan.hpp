#pragma once

/// @file
/// Where each of many buffers lies in one piece of memory, when their lifetimes are known before.
/// All sizes are bytes.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <tensorpool/export.hpp>

namespace tensorpool {

/// A buffer that is alive in the half-open interval [begin, end) of any clock that counts upwards:
/// calls, operators, nanoseconds. Two whose intervals only touch may share their bytes.
struct TensorLifetime {
    std::int64_t begin = 0;
    std::int64_t end = 0;  ///< above `begin`
    std::uint64_t bytes = 0;
    std::uint64_t alignment = 1;  ///< of the offset; a power of two
    friend bool operator==(const TensorLifetime&, const TensorLifetime&) = default;
};

/// What found a plan: one of the greedy orders, which are tried first, or what came after.
enum class PlanMethod : std::uint8_t {
    none,          ///< nothing to plan
    by_size,       ///< the largest first
    by_class,      ///< by classes of sizes; in each, what lives longest at the busiest time first
    by_area,       ///< the largest bytes × time first
    by_lifetime,   ///< the longest first
    by_conflicts,  ///< those first that most bytes are alive with
    by_time,       ///< in the order of their beginnings, as an allocator would
    repacking,     ///< a greedy plan whose highest buffers went elsewhere, others making room
    exact,         ///< the exact search
};
/// "by size" and so on.
TENSORPOOL_API const char* to_string(PlanMethod method) noexcept;

struct PlanOptions {
    /// How long to plan: the first of the greedy orders is always tried, the others and then the
    /// search as long as there is time; 0: all orders that take a moment, and no search. The clock
    /// is only asked whether to stop: what ends before gives the same plan on each run and machine.
    std::chrono::nanoseconds budget = std::chrono::seconds(1);
    /// The same in steps of the search, of about a microsecond each, for plans that are to be
    /// repeatable also where the search does not end; 0: no bound.
    std::uint64_t max_steps = 0;
    /// A plan of at most so many bytes is good enough; 0: only the least is.
    std::uint64_t enough_bytes = 0;
};

/// Offsets for buffers, in the order in which those were given.
struct MemoryPlan {
    std::vector<std::uint64_t> offsets;
    std::uint64_t peak_bytes = 0;  ///< what the plan needs: the highest end of a buffer
    /// The most bytes alive at once: no plan needs less. Where all share an alignment, with the
    /// padding that it costs.
    std::uint64_t lower_bound_bytes = 0;
    bool optimal = false;  ///< no plan can need less than this one: proven
    PlanMethod method = PlanMethod::none;
};

/// Lays buffers out so that no two that are alive at once overlap, in as few bytes as it can find
/// (NP-hard: "dynamic storage allocation", Garey and Johnson, SR2). Pure: takes nothing of what it
/// plans, asks no system and starts no thread; any number of threads may plan at once. The search,
/// of 4,096 buffers at most, goes as deep as there are buffers: it may take 450 bytes of the stack
/// for each (optimised, on x86-64), mostly takes 150, and with a budget of 0 is not made. Throws
/// std::invalid_argument, naming the buffer and what was expected, for an interval that is empty
/// or runs backwards, an alignment that is no power of two, and sizes that together pass 2^63.
TENSORPOOL_API MemoryPlan plan_memory(std::span<const TensorLifetime> lifetimes,
                                      const PlanOptions& options = {});

/// Proves that a plan holds: an offset for each buffer, each aligned, none overlapping another that
/// is alive with it, none beyond `peak_bytes`. Throws std::invalid_argument, naming the buffers and
/// where they lie, for a plan that does not.
TENSORPOOL_API void validate(std::span<const TensorLifetime> lifetimes, const MemoryPlan& plan);

}  // namespace tensorpool
