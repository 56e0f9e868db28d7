#include "statistics/segment/planned_place.hpp"

#include <string>

#include "statistics/recorder_hooks.hpp"
#include "statistics/segment/folded_words.hpp"
#include "statistics/segment/name.hpp"
#include "statistics/segment/segment.hpp"
#include "statistics/sums/planned_statistics.hpp"
#include "statistics/sums/snapshot_sources.hpp"

namespace tensorpool::statistics {

struct PlannedPlace::Source final : SnapshotSource {
    explicit Source(std::string_view name);
    ~Source();

    void add_to(Snapshot& snapshot) const override {
        snapshot.planned.push_back(figures_of(*record));
    }
    Identity identify() const noexcept override { return {TraceSource::planned, id, name}; }
    std::size_t capacity() const noexcept override {
        return record->totals.capacity_bytes.load(std::memory_order_relaxed);
    }
    void fold() noexcept;

    std::string name;
    PlannedRecord* record;
    std::unique_ptr<PlannedRecord> own;  // null: the record has a place
    bool is_counted = false;             // as left out
    std::uint64_t id;
    FoldedWords<words_of<PlannedTotals>> folded;
};

PlannedPlace::Source::Source(std::string_view wanted)
    : name(wanted.substr(0, sizeof PlannedArenaStatistics::name - 1)),
      record(segment().add_planned(name)) {
    if (record == nullptr) {
        own.reset(new PlannedRecord{});
        record = own.get();
        store_name(record->name, name);
        record->id.store(segment().next_id(), std::memory_order_relaxed);
        is_counted = segment().header() != nullptr;
        if (is_counted) segment().count_left_out(Segment::Kind::planned, true);
    }
    id = record->id.load(std::memory_order_relaxed);
}

PlannedPlace::Source::~Source() {
    if (own == nullptr) {
        segment().remove_planned(*record);
        return;
    }
    if (PlannedRecord* const other = segment().other_planned()) {
        folded.unfold(as_words(other->totals));
    }
    if (is_counted) segment().count_left_out(Segment::Kind::planned, false);
}

void PlannedPlace::Source::fold() noexcept {
    if (own == nullptr) return;
    PlannedRecord* const other = segment().other_planned();
    if (other != nullptr) folded.fold(as_words(own->totals), as_words(other->totals));
}

PlannedPlace::PlannedPlace(std::string_view name)
    : source_(std::make_unique<Source>(name)), totals_(&source_->record->totals) {
    look_for_recorder();  // the first allocations may take no slow path
    snapshot_sources().enter(*source_);
}

PlannedPlace::~PlannedPlace() {
    snapshot_sources().leave(*source_);
}

std::uint64_t PlannedPlace::id() const noexcept {
    return source_->id;
}

// Relaxed: a figure of its own.
void PlannedPlace::set_state(PlannedArenaStatistics::State state) noexcept {
    source_->record->state.store(static_cast<std::uint64_t>(state), std::memory_order_relaxed);
}

void PlannedPlace::note_iteration() noexcept {
    source_->fold();
}

void PlannedPlace::note_capacity() noexcept {
    source_->fold();
    source_->record_capacity();
}

PlannedArenaStatistics PlannedPlace::figures() const noexcept {
    return figures_of(*source_->record);
}

}  // namespace tensorpool::statistics
