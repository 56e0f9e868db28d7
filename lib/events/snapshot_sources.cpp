#include "events/snapshot_sources.hpp"

#include "base/never_destroyed.hpp"
#include "events/recorder_hooks.hpp"

namespace tensorpool::events {
namespace {

constinit base::NeverDestroyed<SnapshotSources> the_sources;

}  // namespace

SnapshotSources& snapshot_sources() noexcept {
    return the_sources.get();
}

// Two threads may report changes in another order than that in which they made them. The thread
// that reports last then reports the current value, or repeats the report.
void SnapshotSource::record_capacity() const noexcept {
    if (!is_recording()) [[likely]]
        return;
    const std::uint64_t number = identify().number;
    std::size_t reported = 0;
    do {
        reported = capacity();
        record(TraceAction::capacity, number, nullptr, reported);
    } while (capacity() != reported);
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
    // A recorder that starts in between finds the source in the list.
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

// Only a source knows to which vector it adds, so each vector has room for all sources. Unused room
// is address space that is never touched.
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

// Returns false if there are more sources than room; `room` is then the room that is needed.
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

}  // namespace tensorpool::events
