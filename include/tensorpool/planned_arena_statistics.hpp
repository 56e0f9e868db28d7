#pragma once

/// @file
/// The statistics of a PlannedArena. All sizes are in bytes.

#include <cstdint>
#include <string>

#include <tensorpool/export.hpp>

namespace tensorpool {

/// A snapshot of one PlannedArena. It is exact if no call is in progress. Otherwise each value was
/// true at some moment while the snapshot was taken.
struct PlannedArenaStatistics {
    /// The version of this structure.
    static constexpr std::uint32_t current_version = 1;

    /// What the arena does with requests.
    enum class State : std::uint8_t {
        learning,  ///< the pool serves requests, and they are recorded
        planning,  ///< the caller's executor is making a plan; the pool serves requests
        serving,   ///< the plan serves requests
    };

    /// The version of the structure that was filled in.
    std::uint32_t version = current_version;
    /// The arena's name, zero-terminated.
    char name[48] = {};
    /// What the arena does with requests now.
    State state = State::learning;
    std::uint64_t id = 0;  ///< unique among all pools and arenas of the process, past ones too

    std::uint64_t buffers = 0;            ///< in the plan, or learned so far
    std::uint64_t lower_bound_bytes = 0;  ///< maximum bytes alive at once in the learned requests
    std::uint64_t pool_peak_bytes = 0;    ///< maximum bytes of pool blocks at once for the same
    std::uint64_t plan_peak_bytes = 0;    ///< bytes that the plan needs; 0 without a plan
    std::uint64_t capacity_bytes = 0;     ///< memory committed for plans now
    std::uint64_t in_use_bytes = 0;       ///< in buffers of the plan that callers hold
    std::uint64_t pool_in_use_bytes = 0;  ///< in pool blocks that callers hold through the arena

    /// Running totals.
    std::uint64_t iterations = 0;
    std::uint64_t served = 0;        ///< requests served by the plan
    std::uint64_t from_pool = 0;     ///< all other requests, those while learning included
    std::uint64_t too_large = 0;     ///< of those: larger than their buffer in the plan
    std::uint64_t out_of_order = 0;  ///< of those: not at their turn in the sequence
    std::uint64_t unknown = 0;       ///< of those: after the end of the sequence
    std::uint64_t still_in_use = 0;  ///< of those: bytes of their buffer were still held
    std::uint64_t plans = 0;         ///< plans made or loaded
    std::uint64_t planning_ns = 0;   ///< time spent on planning
};

/// Returns the state as text, such as "learning". Never nullptr.
TENSORPOOL_API const char* to_string(PlannedArenaStatistics::State state) noexcept;
/// Returns one JSON object with the fields of the structure. The state is text, such as "serving".
TENSORPOOL_API std::string to_json(const PlannedArenaStatistics& statistics);
/// Returns a report for people: a headline, then a few lines of values. Ends with a newline.
TENSORPOOL_API std::string to_text(const PlannedArenaStatistics& statistics);

}  // namespace tensorpool
