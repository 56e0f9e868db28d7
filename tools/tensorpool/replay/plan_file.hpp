#pragma once

/// @file
/// A plan in a memory file, which the allocators' processes map.

#include <cstddef>
#include <cstdint>
#include <span>

#include "replay/plan.hpp"

namespace tensorpool::command::replay {

/// A memory file with a plan. Owns its descriptor.
class PlanFile {
public:
    /// Throws CommandError if there is no memory.
    explicit PlanFile(const Plan& plan);
    ~PlanFile();
    PlanFile(const PlanFile&) = delete;
    PlanFile& operator=(const PlanFile&) = delete;

    int descriptor() const noexcept { return descriptor_; }

private:
    int descriptor_ = -1;
};

/// A plan as mapped in another process.
struct PlanView {
    std::span<const PlannedThread> threads;
    std::span<const Step> steps;
    std::span<const std::uint32_t> stages;
    std::span<const std::uint64_t> offsets;
    std::uint64_t offsets_bytes = 0;
    std::span<const std::uint64_t> planned_offsets;
    std::uint64_t planned_bytes = 0;
    std::uint32_t slots = 0;
};

/// Maps a plan until the process ends, with all pages present. Returns false on failure. Does not
/// allocate.
bool map_plan(int descriptor, PlanView& plan) noexcept;

}  // namespace tensorpool::command::replay
