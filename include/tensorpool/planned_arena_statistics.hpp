#pragma once

/// @file
/// What an arena that serves a learned plan did and holds. All sizes are bytes.

#include <cstdint>
#include <string>

#include <tensorpool/export.hpp>

namespace tensorpool {

/// A snapshot of one PlannedArena. Exact when no call is under way; otherwise each figure is one
/// that held while the snapshot was taken.
struct PlannedArenaStatistics {
    static constexpr std::uint32_t current_version = 1;

    enum class State : std::uint8_t {
        learning,  ///< requests go to the pool and are noted
        planning,  ///< what was learned lies with the caller's executor; the pool serves
        serving,   ///< requests are served from the plan
    };

    std::uint32_t version = current_version;
    char name[48] = {};
    State state = State::learning;
    std::uint64_t id = 0;  ///< unlike that of any other pool or arena of the process, ever

    std::uint64_t buffers = 0;            ///< of the plan, or learned so far
    std::uint64_t lower_bound_bytes = 0;  ///< most bytes alive at once in what was learned
    std::uint64_t pool_peak_bytes = 0;    ///< most bytes of the pool's blocks for that at once
    std::uint64_t plan_peak_bytes = 0;    ///< what the plan needs; 0 before there is one
    std::uint64_t capacity_bytes = 0;     ///< held for the plan now
    std::uint64_t in_use_bytes = 0;       ///< in slots of the plan that callers hold
    std::uint64_t pool_in_use_bytes = 0;  ///< of the pool's blocks that callers hold through it

    /// Running totals.
    std::uint64_t iterations = 0;
    std::uint64_t served = 0;        ///< requests from the plan
    std::uint64_t from_pool = 0;     ///< all others, learning included
    std::uint64_t too_large = 0;     ///< of those, larger than their slot
    std::uint64_t out_of_order = 0;  ///< of those, whose place in the sequence was another's
    std::uint64_t unknown = 0;       ///< of those, beyond the end of the sequence
    std::uint64_t still_in_use = 0;  ///< of those, whose bytes somebody still held
    std::uint64_t plans = 0;         ///< made, or loaded
    std::uint64_t planning_ns = 0;   ///< spent on them
};

/// "learning" and so on.
TENSORPOOL_API const char* to_string(PlannedArenaStatistics::State state) noexcept;
/// One JSON object, the names those of the fields above; the state is a word, such as "serving".
TENSORPOOL_API std::string to_json(const PlannedArenaStatistics& statistics);
/// A report for people: a headline, then a few lines of figures. Ends with a newline.
TENSORPOOL_API std::string to_text(const PlannedArenaStatistics& statistics);

}  // namespace tensorpool
