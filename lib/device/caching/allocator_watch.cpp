#include "device/caching/allocator_watch.hpp"

#include <algorithm>
#include <stdexcept>

#include "base/text.hpp"
#include "device/caching/blocks/size_rules.hpp"
#include "events/recorder_hooks.hpp"
#include "events/timeline.hpp"

namespace tensorpool::device {
namespace {

constinit thread_local unsigned callbacks_under_way = 0;

[[noreturn]] void refuse_callback(const std::string& name, const char* why) {
    throw std::invalid_argument("tensorpool: add_callback: \"" + name + "\": " + why);
}

}  // namespace

bool AllocatorWatch::is_in_callback() noexcept {
    return callbacks_under_way != 0;
}

AllocatorWatch::AllocatorWatch(Backend& backend, Device device, const CachingOptions& options,
                               OwnedDeviceRecord& record)
    : backend_(backend),
      device_(device),
      timeline_(options.timeline),
      watches_blocks_(backend.abilities(device.index).watches_blocks),
      name_(options.name),
      record_(record) {}

void AllocatorWatch::add(std::string name, AllocatorCallback callback) {
    if (name.empty() || !callback) {
        refuse_callback(name, name.empty() ? "it has no name; expected one"
                                           : "it has no function; expected one");
    }
    const std::lock_guard guard(mutex_);
    auto next =
        callbacks_ ? std::make_shared<Callbacks>(*callbacks_) : std::make_shared<Callbacks>();
    const auto has_name = [&](const auto& entry) { return entry.first == name; };
    if (std::any_of(next->begin(), next->end(), has_name)) {
        refuse_callback(name, "the name is taken; expected another one");
    }
    next->emplace_back(std::move(name), std::move(callback));
    callbacks_ = std::move(next);
}

bool AllocatorWatch::remove(std::string_view name) noexcept try {
    std::shared_ptr<const Callbacks> former;  // destroyed after the lock is released: its
                                              // destructor may call this allocator
    const std::lock_guard guard(mutex_);
    if (!callbacks_) return false;
    auto next = std::make_shared<Callbacks>(*callbacks_);
    const auto is_it = [&](const auto& entry) { return entry.first == name; };
    if (std::erase_if(*next, is_it) == 0) return false;
    former = std::move(callbacks_);
    if (!next->empty()) callbacks_ = std::move(next);
    return true;
} catch (...) {
    return false;  // no memory for the new list
}

void AllocatorWatch::add_callback_names(DeviceAllocationFailure& failure) const noexcept {
    const std::shared_ptr<const Callbacks> all = callbacks();
    if (!all) return;
    base::FixedText text(failure.callbacks, sizeof failure.callbacks);
    const char* between = "";
    for (const auto& [name, callback] : *all) {
        text.add("%s%s", between, name.c_str());
        between = ", ";
    }
}

bool AllocatorWatch::wants_all() const noexcept {
    const std::lock_guard guard(mutex_);
    return callbacks_ != nullptr || timeline_ != TimelineSet::none || watches_blocks_;
}

std::shared_ptr<const AllocatorWatch::Callbacks> AllocatorWatch::callbacks() const noexcept {
    const std::lock_guard guard(mutex_);
    return callbacks_;
}

void AllocatorWatch::notify(AllocatorEvent::Kind kind, const Seen& block) noexcept {
    const std::shared_ptr<const Callbacks> all = callbacks();
    if (!all) return;
    const AllocatorEvent event = {kind, device_, block.address, block.bytes, block.stream};
    ++callbacks_under_way;
    for (const auto& [name, callback] : *all) callback(event);
    --callbacks_under_way;
}

void AllocatorWatch::note(BlockNote::Kind kind, const Seen& block) noexcept {
    if (!watches_blocks_) return;
    backend_.note_block({kind, device_.index, block.address, block.bytes, block.stream});
}

void AllocatorWatch::write(EntryKind kind, std::size_t bytes, LimitKind limit) const noexcept {
    events::write_entry(kind, limit, bytes, name_);
}

void AllocatorWatch::keep(TimelineSet part, EntryKind kind, std::size_t bytes) noexcept {
    if (!contains(timeline_, part)) return;
    if (contains(timeline_, TimelineSet::large_only) && bytes <= small_limit) return;
    write(kind, bytes);
}

void AllocatorWatch::keep_profile() noexcept {
    if (!contains(timeline_, TimelineSet::profile)) return;
    const std::uint64_t in_use = record_.statistics().in_use_bytes;
    // Relaxed: the thread that raises the value writes the entry; no other data depends on it.
    std::uint64_t last = profiled_.load(std::memory_order_relaxed);
    while (in_use > last + last / 16) {
        if (profiled_.compare_exchange_weak(last, in_use, std::memory_order_relaxed)) {
            return write(EntryKind::profile, in_use);
        }
    }
}

void AllocatorWatch::handed_out(const Seen& block, Memory memory) noexcept {
    const bool fresh = memory == Memory::fresh;
    note(BlockNote::Kind::allocated, block);
    events::record_device_block(record_.id(), block.stream, block.address, block.requested);
    keep(fresh ? TimelineSet::allocations : TimelineSet::recycles,
         fresh ? EntryKind::allocation : EntryKind::recycle, block.bytes);
    keep_profile();
    notify(fresh ? AllocatorEvent::Kind::allocated : AllocatorEvent::Kind::recycled, block);
}

void AllocatorWatch::freed(const Seen& block) noexcept {
    events::record(block.deferred ? TraceAction::defer : TraceAction::deallocate, record_.id(),
                   block.address, block.bytes);
    note(BlockNote::Kind::freed, block);
    keep(TimelineSet::releases, EntryKind::release, block.bytes);
    notify(AllocatorEvent::Kind::freed, block);
}

void AllocatorWatch::used(const Seen& block) noexcept {
    note(BlockNote::Kind::used, block);
}

void AllocatorWatch::reusable(const Seen& block) noexcept {
    if (block.requested != 0) {
        events::record(TraceAction::deallocate, record_.id(), block.address, block.bytes);
    }
    note(BlockNote::Kind::reusable, block);
}

void AllocatorWatch::gained(const void* address, std::size_t bytes) const noexcept {
    events::record(TraceAction::slab, record_.id(), address, bytes);
}

void AllocatorWatch::losing(const void* address, std::size_t bytes) const noexcept {
    events::record(TraceAction::slab_end, record_.id(), address, bytes);
}

void AllocatorWatch::refused(std::size_t bytes) const noexcept {
    events::record(TraceAction::refuse, record_.id(), nullptr, bytes);
}

void AllocatorWatch::released(void* address, std::size_t bytes, StreamHandle stream) noexcept {
    notify(AllocatorEvent::Kind::released, {address, bytes, bytes, stream});
}

void AllocatorWatch::failing(std::size_t bytes, StreamHandle stream) noexcept {
    notify(AllocatorEvent::Kind::allocation_failed, {nullptr, bytes, bytes, stream});
}

}  // namespace tensorpool::device
