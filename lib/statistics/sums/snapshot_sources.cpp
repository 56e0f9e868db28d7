#include "statistics/sums/snapshot_sources.hpp"

#include "base/never_destroyed.hpp"
#include "statistics/reader/segment_snapshot.hpp"
#include "statistics/recorder_hooks.hpp"
#include "statistics/segment/segment.hpp"

namespace tensorpool {
namespace statistics {
namespace {

constinit base::NeverDestroyed<SnapshotSources> the_sources;

}  // namespace

SnapshotSources& snapshot_sources() noexcept {
    return the_sources.get();
}

// Two threads may tell in another order than that in which they changed it: whoever told last sees
// then what holds, or tells again.
void SnapshotSource::record_capacity() const noexcept {
    if (!is_recording()) [[likely]]
        return;
    const std::uint64_t number = identify().number;
    std::size_t told = 0;
    do {
        told = capacity();
        record(TraceAction::capacity, number, nullptr, told);
    } while (capacity() != told);
}

void SnapshotSources::enter(SnapshotSource& source) noexcept {
    {
        const std::lock_guard guard(mutex_);
        source.previous_ = last_;
        source.next_ = nullptr;
        (last_ != nullptr ? last_->next_ : first_) = &source;
        last_ = &source;
        ++count_;
    }
    // A recorder that begins meanwhile finds it in the list.
    const SnapshotSource::Identity identity = source.identify();
    name_source(identity.kind, identity.number, identity.name);
}

void SnapshotSources::leave(SnapshotSource& source) noexcept {
    record(TraceAction::gone, source.identify().number, nullptr, 0);
    const std::lock_guard guard(mutex_);
    (source.previous_ != nullptr ? source.previous_->next_ : first_) = source.next_;
    (source.next_ != nullptr ? source.next_->previous_ : last_) = source.previous_;
    --count_;
}

// Which vector a source adds to only the source knows, so each has room for all: room that is not
// used is address space that is not touched.
Snapshot SnapshotSources::take() const {
    Snapshot snapshot;
    for (std::size_t room = 0; !fill(snapshot, room);) {
        snapshot.pools.reserve(room);
        snapshot.arenas.reserve(room);
        snapshot.scratches.reserve(room);
        snapshot.devices.reserve(room);
        snapshot.planned.reserve(room);
    }
    return snapshot;
}

// False when more sources came than there is room for; `room` is then what is needed.
bool SnapshotSources::fill(Snapshot& snapshot, std::size_t& room) const {
    const std::lock_guard guard(mutex_);
    if (count_ > room) {
        room = count_;
        return false;
    }
    for (const SnapshotSource* source = first_; source != nullptr; source = source->next_) {
        source->add_to(snapshot);
    }
    return true;
}

}  // namespace statistics

Snapshot take_snapshot() {
    Snapshot snapshot = statistics::snapshot_sources().take();
    if (const auto* const header = statistics::segment().header()) {
        statistics::SegmentImage image(header);
        image.count();
        snapshot.scopes = statistics::scopes_in(image);
    }
    return snapshot;
}

}  // namespace tensorpool
