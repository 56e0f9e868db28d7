#pragma once

#include "events/recorder_hooks.hpp"
#include "events/snapshot_sources.hpp"
#include "statistics/segment/owned_record.hpp"
#include "statistics/sums/planned_statistics.hpp"

namespace tensorpool::planned {

/// The counters of one planned arena. They lie in a record of the segment, so that other processes
/// read the counters that the owner writes. If the segment has no free record, they lie in private
/// memory and are added to `other` from time to time. While this object exists, snapshots contain
/// the arena, and recorders identify it by its number. Only the owner may call the functions,
/// except `id`, `statistics`, and the counters in `totals` that other threads may write.
class OwnedPlannedRecord final : private events::SnapshotSource {
public:
    /// Throws std::bad_alloc. `name` is truncated to 47 bytes.
    explicit OwnedPlannedRecord(std::string_view name)
        : name_(name.substr(0, sizeof PlannedArenaStatistics::name - 1)),
          record_(statistics::OwnedRecord<statistics::PlannedRecord>(
                      name_, [](statistics::PlannedRecord&) {})
                      .or_throw()),
          id_(record_->id.load(std::memory_order_relaxed)) {
        events::look_for_recorder();  // the first allocations may take no slow path
        events::snapshot_sources().enter(*this);
    }
    ~OwnedPlannedRecord() { events::snapshot_sources().leave(*this); }

    std::uint64_t id() const noexcept { return id_; }
    statistics::PlannedTotals& totals() noexcept { return record_->totals; }
    void set_state(PlannedArenaStatistics::State state) noexcept {
        // Relaxed: the value is independent of others.
        record_->state.store(static_cast<std::uint64_t>(state), std::memory_order_relaxed);
    }

    /// Must be called when an iteration ended. Updates `other` if the arena has no record in the
    /// segment; cheap otherwise.
    void note_iteration() noexcept { record_.fold(); }
    /// Must be called after memory for a plan was obtained or released and counted in the totals.
    /// Also reports it to a recorder.
    void note_capacity() noexcept {
        record_.fold();
        record_capacity();
    }

    /// Returns the statistics of the arena. Takes no lock.
    PlannedArenaStatistics statistics() const noexcept {
        return statistics::statistics_of(*record_);
    }

private:
    void add_to(Snapshot& snapshot) const override { snapshot.planned.push_back(statistics()); }
    Identity identify() const noexcept override { return {TraceSource::planned, id_, name_}; }
    std::size_t capacity() const noexcept override {
        return record_->totals.capacity_bytes.load(std::memory_order_relaxed);
    }

    const std::string name_;
    statistics::OwnedRecord<statistics::PlannedRecord> record_;
    const std::uint64_t id_;
};

}  // namespace tensorpool::planned
