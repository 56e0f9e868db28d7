#pragma once

#include <memory>

#include "plan/planned_table.hpp"

namespace tensorpool::planned {

/// The counters of one planned arena. They lie in a record of the segment, so that other processes
/// read the counters that the owner writes. If the segment has no free record, they lie in private
/// memory and are added to `other` from time to time. While this object exists, snapshots contain
/// the arena, and recorders identify it by its number. Only the owner may call the functions,
/// except `id`, `statistics`, and the counters in `totals` that other threads may write.
class OwnedPlannedRecord {
public:
    /// Throws std::bad_alloc. `name` is truncated to 47 bytes.
    explicit OwnedPlannedRecord(std::string_view name);
    ~OwnedPlannedRecord();
    OwnedPlannedRecord(const OwnedPlannedRecord&) = delete;
    OwnedPlannedRecord& operator=(const OwnedPlannedRecord&) = delete;

    std::uint64_t id() const noexcept;
    statistics::PlannedTotals& totals() noexcept { return *totals_; }
    void set_state(PlannedArenaStatistics::State state) noexcept;

    /// Must be called when an iteration ended. Updates `other` if the arena has no record in the
    /// segment; cheap otherwise.
    void note_iteration() noexcept;
    /// Must be called after memory for a plan was obtained or released and counted in the totals.
    /// Also reports it to a recorder.
    void note_capacity() noexcept;

    /// Returns the statistics of the arena. Takes no lock.
    PlannedArenaStatistics statistics() const noexcept;

private:
    struct Source;
    std::unique_ptr<Source> source_;
    statistics::PlannedTotals* totals_;  // of the source's record: avoids an indirection on the
                                         // path that serves requests
};

}  // namespace tensorpool::planned
