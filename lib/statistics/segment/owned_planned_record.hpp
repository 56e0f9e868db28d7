#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include <tensorpool/planned_arena_statistics.hpp>

#include "statistics/metrics/planned_metrics.hpp"

namespace tensorpool::statistics {

/// Where the figures of one planned arena lie: a place in the segment, so that others read the very
/// words that its owner writes; or, where none is left, memory of its own, which is added up under
/// `other` now and then. While it lives, snapshots show it, and recorders know it by its number.
/// The owner's, but for `id`, `figures` and what `totals` allows to others.
class OwnedPlannedRecord {
public:
    /// Throws std::bad_alloc. `name` is cut to 47 bytes.
    explicit OwnedPlannedRecord(std::string_view name);
    ~OwnedPlannedRecord();
    OwnedPlannedRecord(const OwnedPlannedRecord&) = delete;
    OwnedPlannedRecord& operator=(const OwnedPlannedRecord&) = delete;

    std::uint64_t id() const noexcept;
    PlannedTotals& totals() noexcept { return *totals_; }
    void set_state(PlannedArenaStatistics::State state) noexcept;

    /// An iteration ended: brings `other` up to date where it has no place. Cheap where it has one.
    void note_iteration() noexcept;
    /// Memory for a plan came or went, and the totals say so: tells a recorder too.
    void note_capacity() noexcept;

    /// Takes no lock.
    PlannedArenaStatistics figures() const noexcept;

private:
    struct Source;
    std::unique_ptr<Source> source_;
    PlannedTotals* totals_;  // of the source's record: one step less on the path that serves
};

}  // namespace tensorpool::statistics
