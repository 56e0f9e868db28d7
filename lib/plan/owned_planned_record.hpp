#pragma once

#include "events/recorder_hooks.hpp"
#include "plan/planned_table.hpp"
#include "statistics/records/record_values.hpp"
#include "statistics/segment/owned_record.hpp"

namespace tensorpool::planned {

/// The counters of one planned arena. They lie in a record of the segment, so that other processes
/// read the counters that the owner writes. If the segment has no free record, they lie in private
/// memory and are added to `other` from time to time. While this object exists, snapshots contain
/// the arena, and recorders identify it by its number. Only the owner may call the functions,
/// except `id`, `statistics`, and the counters in `totals` that other threads may write.
class OwnedPlannedRecord {
public:
    /// Throws std::bad_alloc. `name` is truncated to 47 bytes.
    explicit OwnedPlannedRecord(std::string_view name)
        : record_(statistics::OwnedRecord<statistics::PlannedRecord>(
                      name, [](statistics::PlannedRecord&) {})
                      .or_throw()) {
        events::look_for_recorder();  // the first allocations may take no slow path
        events::name_source(TraceSource::planned, id(),
                            name.substr(0, statistics::Name::bytes - 1));
    }
    ~OwnedPlannedRecord() { events::record(TraceAction::gone, id(), nullptr, 0); }
    OwnedPlannedRecord(const OwnedPlannedRecord&) = delete;
    OwnedPlannedRecord& operator=(const OwnedPlannedRecord&) = delete;

    std::uint64_t id() const noexcept { return record_->id.load(std::memory_order_relaxed); }
    statistics::PlannedTotals& totals() noexcept { return totals_; }
    // Relaxed: the value is independent of others.
    void set_state(PlannedArenaStatistics::State state) noexcept {
        record_->state.store(static_cast<std::uint64_t>(state), std::memory_order_relaxed);
    }

    /// Must be called when an iteration ended. Updates `other` if the arena has no record in the
    /// segment; cheap otherwise.
    void note_iteration() noexcept { record_.fold(); }
    /// Must be called after memory for a plan was obtained or released and counted in the totals.
    /// Also reports it to a recorder.
    void note_capacity() noexcept {
        record_.fold();
        events::record_capacity(id(), totals_.capacity_bytes);
    }

    /// Returns the statistics of the arena. Takes no lock.
    PlannedArenaStatistics statistics() const noexcept {
        return statistics::statistics_of(*record_);
    }

private:
    statistics::OwnedRecord<statistics::PlannedRecord> record_;
    statistics::PlannedTotals& totals_ = record_->totals;  // avoids an indirection on the path that
                                                           // serves requests
};

}  // namespace tensorpool::planned
