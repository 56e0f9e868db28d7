#pragma once

/// @file
/// A plan in a file of memory, which contenders map.

#include <cstddef>
#include <cstdint>
#include <span>

#include "replay/plan.hpp"

namespace tensorpool::command::replay {

/// Owns a descriptor.
class PlanFile {
public:
    /// Throws CommandError where there is no memory.
    explicit PlanFile(const Plan& plan);
    ~PlanFile();
    PlanFile(const PlanFile&) = delete;
    PlanFile& operator=(const PlanFile&) = delete;

    int descriptor() const noexcept { return descriptor_; }

private:
    int descriptor_ = -1;
};

/// The same plan, in another process. Calls nothing that allocates.
struct PlanView {
    std::span<const PlannedThread> threads;
    std::span<const Step> steps;
    std::span<const std::uint32_t> stages;
    std::span<const std::uint64_t> places;
    std::uint64_t places_bytes = 0;
    std::span<const std::uint64_t> planned_places;
    std::uint64_t planned_bytes = 0;
    std::uint32_t slots = 0;
};

/// Maps it for the life of the process, every page at once. False where that cannot be.
bool map_plan(int descriptor, PlanView& plan) noexcept;

}  // namespace tensorpool::command::replay
