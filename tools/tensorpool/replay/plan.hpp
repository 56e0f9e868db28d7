#pragma once

/// @file
/// What a contender is to do: a recording turned into steps, for each thread its own.
///
/// Each block has a place in a table, its slot, where the thread that makes it leaves its address
/// and the thread that frees it finds it. Where these are two threads, the slot is used once and
/// the second waits for the first. Where there are several threads, the steps are parted into
/// stages, which no thread enters before all have left those before: without, a thread that has
/// little to do would run ahead of the recording, and other blocks would be alive together than
/// were.
///
/// Nobody waits for ever: steps are made in the order of the recording's calls, and wait for steps
/// of earlier calls only. So of all steps not done, that of the earliest call need not wait.

#include <cstdint>
#include <limits>
#include <vector>

namespace tensorpool::command::replay {

enum class StepKind : std::uint8_t {
    allocate,    ///< into `slot`
    deallocate,  ///< what is in `slot`
    resize,      ///< what is in `from`, into `slot`
    stage,       ///< leaves stage `from`, if any, and enters `slot`, if any
};

struct Step {
    static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();
    /// Larger requests would not fit; no system has so much.
    static constexpr std::uint64_t max_bytes = (std::uint64_t{1} << 47) - 1;
    static constexpr unsigned max_alignment_log2 = 46;
    /// The pool's blocks are aligned to 64 bytes where nobody asked for it; so up to that nobody is
    /// taken to have asked.
    static constexpr unsigned plain_alignment_log2 = 6;

    std::uint64_t packed = 0;
    std::uint32_t slot = none;
    std::uint32_t from = none;

    static constexpr Step make(StepKind kind, std::uint32_t slot, std::uint64_t bytes = 0,
                               unsigned alignment_log2 = 0, std::uint32_t from = none) noexcept {
        const auto high = static_cast<std::uint64_t>(kind) | std::uint64_t{alignment_log2} << 8;
        return {bytes | high << 48, slot, from};
    }
    constexpr StepKind kind() const noexcept { return static_cast<StepKind>(packed >> 48 & 0xf); }
    /// The maker tells another thread that the block is there, or the other waits for that.
    constexpr bool is_handover() const noexcept { return (packed >> 52 & 1) != 0; }
    constexpr bool takes_over() const noexcept { return (packed >> 53 & 1) != 0; }
    constexpr void mark_handover() noexcept { packed |= std::uint64_t{1} << 52; }
    constexpr void mark_takes_over() noexcept { packed |= std::uint64_t{1} << 53; }
    constexpr std::uint64_t bytes() const noexcept { return packed & ((1ULL << 48) - 1); }
    constexpr unsigned alignment_log2() const noexcept {
        return static_cast<unsigned>(packed >> 56);
    }
};
static_assert(sizeof(Step) == 16);

/// A thread's steps: from `first` on, `count` of them.
struct PlannedThread {
    std::uint64_t first = 0;
    std::uint64_t count = 0;
    std::uint64_t is_main = 0;  ///< 1: the first thread of its process
};

/// What the recording came to.
struct PlanFigures {
    std::uint64_t threads = 0;
    std::uint64_t allocations = 0;  ///< those before the recording included
    std::uint64_t deallocations = 0;
    std::uint64_t resizes = 0;
    std::uint64_t from_before = 0;  ///< blocks made before the recording began
    std::uint64_t never_freed = 0;
    std::uint64_t allocated_bytes = 0;
    std::uint64_t max_alive_bytes = 0;  ///< at once
    std::uint64_t planned_bytes = 0;    ///< what a plan of all needs; 0: nobody asked for one
};

struct Plan {
    /// The first makes what was there before the recording; the others begin after it, together.
    std::vector<PlannedThread> threads;
    std::vector<Step> steps;
    std::uint32_t slots = 0;
    std::vector<std::uint32_t> stages;  ///< how many threads each has
    /// For the floor: where each step's block lies, as an offset; empty where nobody asked.
    std::vector<std::uint64_t> places;
    std::uint64_t places_bytes = 0;  ///< that they span
    /// The same as `plan_memory` lays them out.
    std::vector<std::uint64_t> planned_places;
    std::uint64_t planned_bytes = 0;
    PlanFigures figures;
};

}  // namespace tensorpool::command::replay
