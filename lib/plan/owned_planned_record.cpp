#include "plan/owned_planned_record.hpp"

#include "events/recorder_hooks.hpp"
#include "events/snapshot_sources.hpp"
#include "statistics/records/record_values.hpp"
#include "statistics/segment/owned_record.hpp"

namespace tensorpool::planned {

struct OwnedPlannedRecord::Source final : events::SnapshotSource {
    explicit Source(std::string_view wanted)
        : name(wanted.substr(0, sizeof PlannedArenaStatistics::name - 1)),
          record(statistics::OwnedRecord<statistics::PlannedRecord>(
                     name, [](statistics::PlannedRecord&) {})
                     .or_throw()),
          id(record->id.load(std::memory_order_relaxed)) {}

    void add_to(Snapshot& snapshot) const override {
        snapshot.planned.push_back(statistics::statistics_of(*record));
    }
    Identity identify() const noexcept override { return {TraceSource::planned, id, name}; }
    std::size_t capacity() const noexcept override {
        return record->totals.capacity_bytes.load(std::memory_order_relaxed);
    }

    std::string name;
    statistics::OwnedRecord<statistics::PlannedRecord> record;
    std::uint64_t id;
};

OwnedPlannedRecord::OwnedPlannedRecord(std::string_view name)
    : source_(std::make_unique<Source>(name)), totals_(&source_->record->totals) {
    events::look_for_recorder();  // the first allocations may take no slow path
    events::snapshot_sources().enter(*source_);
}

OwnedPlannedRecord::~OwnedPlannedRecord() {
    events::snapshot_sources().leave(*source_);
}

std::uint64_t OwnedPlannedRecord::id() const noexcept {
    return source_->id;
}

// Relaxed: the value is independent of others.
void OwnedPlannedRecord::set_state(PlannedArenaStatistics::State state) noexcept {
    source_->record->state.store(static_cast<std::uint64_t>(state), std::memory_order_relaxed);
}

void OwnedPlannedRecord::note_iteration() noexcept {
    source_->record.fold();
}

void OwnedPlannedRecord::note_capacity() noexcept {
    source_->record.fold();
    source_->record_capacity();
}

PlannedArenaStatistics OwnedPlannedRecord::statistics() const noexcept {
    return statistics::statistics_of(*source_->record);
}

}  // namespace tensorpool::planned
